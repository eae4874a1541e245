/* plan.c - a plan in memory: questions to it, and its end. Making one is
 * resolve.c, printing one plan_print.c. */
#include "plan.h"

#include "path_match.h"
#include "resolve.h"

#include <stdlib.h>
#include <string.h>

void zb_program_done(struct zb_program *p)
{
	free(p->exec_path);
	free(p->kind);
	zb_strv_done(&p->argv);
	for (size_t i = 0; i < p->n_needs; i++) {
		free(p->needs[i].path);
		free(p->needs[i].from);
	}
	free(p->needs);
	zb_strv_done(&p->path_prefix);
	zb_strv_done(&p->quiet);
	zb_strv_done(&p->story);
	*p = (struct zb_program){0};
}

static void drop_lists(struct zb_plan *p)
{
	for (size_t i = 0; i < p->n_places; i++)
		zb_place_done(&p->places[i]);
	free(p->places);
	for (size_t i = 0; i < p->n_denies; i++) {
		free(p->denies[i].pattern);
		zb_origin_done(&p->denies[i].origin);
	}
	free(p->denies);
	for (size_t i = 0; i < p->n_env; i++) {
		free(p->env[i].name);
		free(p->env[i].value);
		zb_origin_done(&p->env[i].origin);
	}
	free(p->env);
	zb_strv_done(&p->argv);
	zb_strv_done(&p->quiet);
	zb_strv_done(&p->env_withheld);
	zb_strv_done(&p->notices);
	zb_strv_done(&p->data_copies);
	zb_strv_done(&p->made);
	zb_strv_done(&p->own);
	zb_granted_done(&p->granted);
}

void zb_plan_done(struct zb_plan *p)
{
	char *strings[] = {p->name,	      p->base,
			   p->project,	      p->home,
			   p->zot_home,	      p->extension_dir,
			   p->data_dir,	      p->home_real,
			   p->zot_home_real,  p->cwd,
			   p->exec_path,      p->extension_real,
			   p->project_refused};

	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		free(strings[i]);
	drop_lists(p);
	zb_scope_done(&p->scope);
	*p = (struct zb_plan){0};
}

const char *zb_plan_own(const struct zb_plan *p, const char *path,
			const char *only)
{
	for (size_t i = 0; i < p->own.n; i++) {
		const char *own = p->own.v[i];

		if (zb_path_below(path, own) ||
		    (only ? zb_pattern_match(only, own)
			  : zb_path_below(own, path)))
			return own;
	}
	return NULL;
}

/* "/" before any other byte: what lies in a directory follows it at once. */
int zb_place_order(const char *a, const char *b)
{
	size_t i = 0;
	int ca, cb;

	while (a[i] && a[i] == b[i])
		i++;
	ca = a[i] == '/' ? 1 : a[i] ? (unsigned char)a[i] + 1 : 0;
	cb = b[i] == '/' ? 1 : b[i] ? (unsigned char)b[i] + 1 : 0;
	return ca - cb;
}

static bool holds(const struct zb_place *p, const char *path, size_t n)
{
	size_t k = strlen(p->path);

	if (k > n || memcmp(p->path, path, k) != 0)
		return false;
	if (p->kind == ZB_PLACE_LINK)
		return k == n;
	return k == n || path[k] == '/' || k == 1;
}

/* Among places in order, those that hold a path are a chain, and the deepest
 * one comes last. */
int zb_plan_place_n(const struct zb_plan *p, const char *path, size_t n)
{
	for (size_t i = p->n_places; i-- > 0;)
		if (holds(&p->places[i], path, n))
			return (int)i;
	return -1;
}

int zb_plan_place(const struct zb_plan *p, const char *path)
{
	return zb_plan_place_n(p, path, strlen(path));
}

uint64_t zb_plan_limit(const struct zb_plan *p, enum zb_limit l)
{
	const struct zb_limit_value *v = &p->scope.limits[l];

	return v->set && !v->none ? v->value : UINT64_MAX;
}

static bool names_it(const struct zb_switch *s, enum zb_verb v,
		     const char *name)
{
	if (!name)
		return s->names.n > 0;
	if (v != ZB_VERB_SLASH)
		return zb_rules_has(&s->names, name);
	for (size_t i = 0; i < s->names.n; i++)
		if (zb_slash_same(s->names.v[i].value, name))
			return true;
	return false;
}

bool zb_plan_verb(const struct zb_plan *p, enum zb_verb v, const char *name)
{
	const struct zb_switch *s = &p->scope.verbs[v];

	if (v == ZB_VERB_INTERCEPT)
		return name ? zb_plan_intercept(p, name, NULL)
			    : p->scope.n_intercepts > 0;
	/* Belt and braces: the resolver refuses a scope that has one. */
	if (v == ZB_VERB_SLASH && name && zb_slash_forbidden(name))
		return false;
	return s->is_list ? names_it(s, v, name) : s->on;
}

bool zb_plan_intercept(const struct zb_plan *p, const char *event,
		       const char *part)
{
	for (size_t i = 0; i < p->scope.n_intercepts; i++) {
		const struct zb_intercept *in = &p->scope.intercepts[i];

		if (!strcmp(in->event, event))
			return part ? zb_rules_has(&in->may, part)
				    : in->may.n > 0;
	}
	return false;
}
