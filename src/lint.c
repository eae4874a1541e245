/* lint.c - findings about one scope file.
 *
 * Malformed is what the parser says, and a chain that leads nowhere. The rest
 * are warnings, each found by asking rather than by knowing: a rule is resolved
 * alone (would it be refused, is it too broad, is there anything?), and then
 * all are, with it and without it (does it add anything?). So what is said here
 * is what a start would do, and no second copy of the rules is kept. */
#include "config.h"

#include "lint.h"

#include "chain.h"
#include "cleanup.h"
#include "granted_file.h"
#include "path_match.h"
#include "prepare.h"
#include "runtime.h"
#include "text.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define SCOPE_MAX    ((size_t)1 << 20)
#define FINDINGS_MAX 1000
#define NO_EXTENSION ".check"

/* A file under examination. */
struct bench {
	struct zb_lint *out;
	const struct zb_store *store;
	const char *file;
	struct zb_scope own;	/* what the file itself says */
	struct zb_scope base;	/* what it extends */
	struct zb_scope merged; /* both, but for what is refused */
	struct zb_facts facts;
	struct zb_manifest manifest;
	struct zb_need *needs;
	size_t n_needs;
	struct zb_strv quiet, own_places;
	char *dir, *data, *home; /* of an extension that may not be there */
	struct zb_granted granted;
	char *name; /* of the extension whose scope.json it is, or NULL */
	bool has_dir;
	bool failed;
};

/* The lists of paths of a scope, in the order of a file. */
enum {
	L_READ,
	L_WRITE,
	L_EXEC,
	L_DENY,
	LISTS
};

static struct zb_rules *list_of(struct zb_scope *s, int l)
{
	struct zb_rules *lists[] = {&s->fs_read, &s->fs_write, &s->fs_exec,
				    &s->fs_deny};

	return lists[l];
}

/* ---- findings ------------------------------------------------------------ */

void zb_lint_done(struct zb_lint *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].key);
		free(l->v[i].text);
	}
	free(l->v);
	*l = (struct zb_lint){0};
}

static void add(struct bench *b, bool warning, unsigned line, unsigned column,
		const char *key, const char *text)
{
	struct zb_lint *l = b->out;
	struct zb_lint_finding *v;

	if (l->n >= FINDINGS_MAX)
		return;
	v = realloc(l->v, (l->n + 1) * sizeof(*v));
	if (!v) {
		b->failed = true;
		return;
	}
	l->v = v;
	v += l->n++;
	*v = (struct zb_lint_finding){.warning = warning,
				      .line = line,
				      .column = column,
				      .key = zb_strdup(key),
				      .text = zb_strdup(text)};
	b->failed = b->failed || !v->text || (key && !v->key);
	l->malformed = l->malformed || !warning;
}

static bool said(const struct bench *b, unsigned line, const char *text)
{
	for (size_t i = 0; i < b->out->n; i++)
		if (b->out->v[i].line == line &&
		    !strcmp(b->out->v[i].text, text))
			return true;
	return false;
}

/* A warning about one rule: KEY "VALUE": text. */
static void warn(struct bench *b, const struct zb_rule *rule, const char *fmt,
		 ...) ZB_PRINTF(3, 4);
static void warn(struct bench *b, const struct zb_rule *rule, const char *fmt,
		 ...)
{
	struct zb_buf text = {0};
	va_list ap;

	if (rule->origin.key)
		zb_text_escape(&text, rule->origin.key,
			       strlen(rule->origin.key), 200);
	zb_buf_adds(&text, " \"");
	zb_text_escape(&text, rule->value, strlen(rule->value), 200);
	zb_buf_adds(&text, "\": ");
	va_start(ap, fmt);
	zb_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	if (!said(b, rule->origin.line, zb_buf_str(&text)))
		add(b, true, rule->origin.line, 0, rule->origin.key,
		    zb_buf_str(&text));
	zb_buf_done(&text);
}

/* A finding about the file as a whole; or in words of the parser or of the
 * resolver, which say where: "FILE:LINE:COLUMN: what", "FILE:LINE: what". */
static void tell(struct bench *b, bool warning, const char *text)
{
	struct zb_buf name = {0};
	unsigned line = 0, column = 0;
	const char *rest = text;
	int used = 0;

	zb_text_escape(&name, b->file, strlen(b->file), 0);
	if (!strncmp(text, zb_buf_str(&name), name.len)) {
		const char *at = text + name.len;

		if (sscanf(at, ":%u:%u: %n", &line, &column, &used) < 2 ||
		    !used) {
			column = 0;
			if (sscanf(at, ":%u: %n", &line, &used) < 1 || !used)
				line = 0;
		}
		if (line)
			rest = at + used;
	}
	add(b, warning, line, column, NULL, rest);
	zb_buf_done(&name);
}

/* ---- reading ------------------------------------------------------------- */

/* Return: is there anything to go on with? */
static bool read_own(struct bench *b, const char *path)
{
	struct zb_buf text = {0};
	struct zb_strv all = {0};
	struct zb_error err = {0};
	int rc = zb_read_file(path, SCOPE_MAX, &text, &err);

	if (rc)
		tell(b, false, err.msg);
	else if (zb_scope_parse(&b->own, b->file, zb_buf_str(&text), text.len,
				&all, &err)) {
		rc = -1;
		for (size_t i = 0; i < all.n; i++)
			tell(b, false, all.v[i]);
		b->failed = b->failed || !all.n;
	}
	zb_strv_done(&all);
	zb_buf_done(&text);
	return !rc;
}

static bool read_base(struct bench *b, const char *path)
{
	zb_auto(free) char *dir = zb_path_dir(path);
	struct zb_chain base = {0};
	struct zb_error err = {0};
	/* A preset that extends nothing is the bottom of every chain. */
	bool bottom =
		!b->own.extends && !strcmp(zb_path_name(path), "strict.json");
	int rc = !dir	  ? ZB_ELIMIT
		 : bottom ? 0
			  : zb_chain_add(&base,
					 b->own.extends ? b->own.extends
							: "strict",
					 dir, &err);

	if (rc == ZB_ELIMIT)
		b->failed = true;
	else if (rc)
		tell(b, false, err.msg);
	b->base = base.scope;
	base.scope = (struct zb_scope){0};
	zb_chain_done(&base);
	return !rc;
}

/* ---- the host ------------------------------------------------------------ */

static int find_program(void *ctx, const char *name, struct zb_program *out,
			struct zb_error *err)
{
	(void)ctx;
	return zb_runtime_program(out, name, getenv("PATH"), err);
}

static const char *const no_environment[] = {NULL};

/* The scope.json of an installed extension is held against what is known of
 * its grants. */
static int recall(struct bench *b, const char *path, struct zb_error *err)
{
	zb_auto(free) char *real = realpath(path, NULL);
	zb_auto(free) char *box = real ? zb_path_dir(real) : NULL;
	zb_auto(free) char *above = box ? zb_path_dir(box) : NULL;
	zb_auto(free) char *boxes = realpath(b->store->boxes, NULL);

	if (!above || !boxes || strcmp(above, boxes) != 0 ||
	    strcmp(zb_path_name(real), "scope.json") != 0 ||
	    !zb_name_valid(zb_path_name(box)))
		return 0;
	b->name = zb_strdup(zb_path_name(box));
	b->facts.command_name = b->name;
	b->facts.granted = &b->granted;
	return b->name ? zb_granted_read(&b->granted, box, err) : ZB_ELIMIT;
}

/* The extension that the file belongs to, if it lies in one; else some. */
static int set_up(struct bench *b, const char *path, const char *project,
		  struct zb_error *err)
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	zb_auto(free) char *at = zb_path_dir(path);
	zb_auto(free) char *manifest =
		at ? zb_path_join(at, "extension.json") : NULL;

	b->has_dir = manifest && !access(manifest, F_OK);
	b->dir = b->has_dir ? zb_strdup(at)
			    : zb_strf("%s/" NO_EXTENSION, b->store->extensions);
	b->data = zb_strf("%s/" NO_EXTENSION "/data", b->store->boxes);
	b->home = zb_strf("%s/" NO_EXTENSION "/home", b->store->boxes);
	if (!b->dir || !b->data || !b->home)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	b->facts = (struct zb_facts){
		.home = b->store->home,
		.zot_home = b->store->zot_home,
		.zot_home_real = b->store->zot_home_real,
		.extension_dir = b->dir,
		.extension_real = b->dir,
		.project = project,
		.xdg_runtime_dir = xdg && xdg[0] == '/' ? xdg : NULL,
		.private_data = b->data,
		.private_home = b->home,
		.user_name = "user",
		.environ_ = no_environment,
		.look = zb_facts_look,
		.expand = zb_facts_expand,
		.find_program = find_program,
		.own = &b->own_places,
		.own_tree = zb_own_tree(),
	};
	if (zb_own_places(&b->own_places))
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	if (zb_runtime_base(&b->needs, &b->n_needs, &b->quiet, err))
		return err ? err->code : ZB_ESYS;
	b->facts.base_needs = b->needs;
	b->facts.n_base_needs = b->n_needs;
	return recall(b, path, err);
}

static void tear_down(struct bench *b)
{
	zb_scope_done(&b->own);
	zb_scope_done(&b->base);
	zb_scope_done(&b->merged);
	zb_needs_done(b->needs, b->n_needs);
	zb_strv_done(&b->quiet);
	zb_strv_done(&b->own_places);
	zb_granted_done(&b->granted);
	free(b->name);
	free(b->dir);
	free(b->data);
	free(b->home);
}

/* Resolve a copy of @s. */
static int resolve(struct bench *b, const struct zb_scope *s, bool mean_it,
		   struct zb_plan *out, struct zb_error *err)
{
	struct zb_scope copy = {0};
	int rc = zb_scope_merge(&copy, s, err);

	b->facts.mean_it = mean_it;
	*out = (struct zb_plan){0};
	if (!rc)
		rc = zb_plan_resolve(out, &copy, &b->manifest, &b->facts, err);
	zb_scope_done(&copy);
	if (rc == ZB_ELIMIT)
		b->failed = true;
	return rc;
}

/* ---- words --------------------------------------------------------------- */

/* Values that mean something else, or nothing, where the file will be used. */
static bool depends(const struct bench *b, const char *value)
{
	return !strncmp(value, "${data_dir}", 11) ||
	       (!b->has_dir && !strncmp(value, "${extension_dir}", 16)) ||
	       (!b->facts.project && !strncmp(value, "${project}", 10));
}

/* A message about a rule names file, key and value first; so do we. */
static const char *after_value(const char *msg, const struct zb_rule *rule)
{
	zb_auto(free) char *end = zb_strf("\"%s\": ", rule->value);
	const char *at = end ? strstr(msg, end) : NULL;

	return at ? at + strlen(end) : msg;
}

/* What the plan says of @rule: `scope KEY "VALUE" text (FILE: KEY)`. */
static void pass_on(struct bench *b, const struct zb_rule *rule,
		    const struct zb_plan *plan)
{
	struct zb_buf tail = {0};
	bool project = !strncmp(rule->value, "${project}", 10);

	zb_buf_adds(&tail, " (");
	zb_origin_text(&rule->origin, &tail);
	zb_buf_addc(&tail, ')');
	for (size_t i = 0; i < plan->notices.n; i++) {
		const char *s = plan->notices.v[i];
		size_t n = strlen(s);
		const char *text = strstr(s, "\" ");
		zb_auto(free) char *cut = NULL;

		if (n < tail.len || !text ||
		    strcmp(s + n - tail.len, zb_buf_str(&tail)) != 0)
			continue;
		cut = zb_strndup(text + 2,
				 n - tail.len - (size_t)(text + 2 - s));
		/* What a project has, another may not have. */
		if (cut && !(project && strstr(cut, "does not exist")))
			warn(b, rule, "%s", cut);
	}
	zb_buf_done(&tail);
}

/* ---- rule by rule -------------------------------------------------------- */

static bool same_origin(const struct zb_origin *a, const struct zb_origin *b)
{
	return a->file && b->file && a->key && b->key && a->line == b->line &&
	       !strcmp(a->file, b->file) && !strcmp(a->key, b->key);
}

/* One file to be written: it is a mount of its own, that nothing can take the
 * place of. */
static void check_single(struct bench *b, const struct zb_rule *rule,
			 const struct zb_plan *plan)
{
	for (size_t i = 0; i < plan->n_places; i++) {
		const struct zb_place *p = &plan->places[i];

		if (p->kind == ZB_PLACE_GRANT && !p->is_dir &&
		    same_origin(&p->origin, &rule->origin))
			warn(b, rule,
			     "a single file: outside HOME nothing can be made "
			     "beside it, so what saves by a temporary file and "
			     "a rename cannot; and once the host replaces it, "
			     "it is closed until the next start; grant its "
			     "directory if that is needed");
	}
}

/* Resolve @rule of list @l, and nothing else. Return: is it fit to be tried
 * with the others? */
static bool try_alone(struct bench *b, int l, const struct zb_rule *rule)
{
	struct zb_scope s = {.file = zb_strdup(b->file)};
	struct zb_plan plan;
	struct zb_error err = {0};
	struct zb_rules *list = list_of(&s, l);
	int rc = s.file ? zb_rules_add(list, rule->value, &rule->origin)
			: ZB_ELIMIT;

	s.state_set = true;
	s.state_beside = b->merged.state_beside;
	list->set = true;
	if (!rc)
		rc = resolve(b, &s, false, &plan, &err);
	if (!rc) {
		pass_on(b, rule, &plan);
		if (l == L_WRITE)
			check_single(b, rule, &plan);
		zb_plan_done(&plan);
	} else {
		warn(b, rule, "%s%s",
		     rc == ZB_EPOLICY ? "" : "a start under it is refused: ",
		     after_value(err.msg, rule));
		/* Too broad is only a question of being meant. */
		rc = rc == ZB_EPOLICY ? resolve(b, &s, true, &plan, &err) : rc;
		if (!rc)
			zb_plan_done(&plan);
	}
	zb_scope_done(&s);
	return !rc;
}

static void remove_rule(struct zb_rules *l, const struct zb_rule *rule)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->v[i].value, rule->value)) {
			free(l->v[i].value);
			zb_origin_done(&l->v[i].origin);
			memmove(&l->v[i], &l->v[i + 1],
				(l->n - i - 1) * sizeof(*l->v));
			l->n--;
			return;
		}
}

static bool same_words(const struct zb_strv *a, const struct zb_strv *b)
{
	bool same = a->n == b->n;

	for (size_t i = 0; same && i < a->n; i++)
		same = zb_strv_has(b, a->v[i]);
	return same;
}

/* Is what exists inside the same in both? */
static bool same_places(const struct zb_plan *a, const struct zb_plan *b)
{
	if (a->n_places != b->n_places)
		return false;
	for (size_t i = 0; i < a->n_places; i++) {
		const struct zb_place *x = &a->places[i], *y = &b->places[i];

		if (strcmp(x->path, y->path) != 0 || x->rights != y->rights ||
		    x->kind != y->kind || !same_words(&x->only, &y->only) ||
		    !same_words(&x->only_changes, &y->only_changes))
			return false;
	}
	return true;
}

/* A grant that all others together give as well. */
static void check_shadowed(struct bench *b, int l, const struct zb_rule *rule,
			   const struct zb_plan *whole)
{
	struct zb_scope less = {0};
	struct zb_plan plan;
	struct zb_error err = {0};

	if (zb_scope_merge(&less, &b->merged, &err)) {
		b->failed = true;
	} else {
		remove_rule(list_of(&less, l), rule);
		if (!resolve(b, &less, true, &plan, &err)) {
			if (same_places(whole, &plan))
				warn(b, rule,
				     "adds nothing to what is there without "
				     "it; remove it");
			zb_plan_done(&plan);
		}
	}
	zb_scope_done(&less);
}

/* A deny that no grant needs. */
static void check_deny(struct bench *b, const struct zb_rule *rule,
		       const struct zb_plan *whole)
{
	bool any = false, touches = false;

	for (size_t d = 0; d < whole->n_denies; d++) {
		const struct zb_deny *deny = &whole->denies[d];

		if (!same_origin(&deny->origin, &rule->origin))
			continue;
		any = true;
		for (size_t i = 0; i < whole->n_places && !touches; i++)
			touches = whole->places[i].kind == ZB_PLACE_GRANT &&
				  zb_pattern_touches(deny->pattern,
						     whole->places[i].path);
	}
	if (any && !touches)
		warn(b, rule,
		     "nothing that it covers is granted, here and now: it "
		     "closes what is closed");
}

static bool was_said(const struct bench *b, const struct zb_rule *rule)
{
	for (size_t i = 0; i < b->out->n; i++)
		if (b->out->v[i].line == rule->origin.line &&
		    b->out->v[i].key && rule->origin.key &&
		    !strcmp(b->out->v[i].key, rule->origin.key))
			return true;
	return false;
}

/* All together. */
static void check_whole(struct bench *b)
{
	struct zb_plan whole;
	struct zb_error err = {0};

	if (resolve(b, &b->merged, true, &whole, &err)) {
		tell(b, true, err.msg);
		return;
	}
	for (int l = 0; l < LISTS; l++) {
		const struct zb_rules *own = list_of(&b->own, l);

		for (size_t i = 0; i < own->n; i++) {
			const struct zb_rule *rule = &own->v[i];

			pass_on(b, rule, &whole);
			if (was_said(b, rule) || depends(b, rule->value))
				continue;
			if (l == L_DENY)
				check_deny(b, rule, &whole);
			else
				check_shadowed(b, l, rule, &whole);
		}
	}
	zb_plan_done(&whole);
}

/* A directory that is nobody's project says nothing about ${project}. */
static void judge_project(struct bench *b)
{
	struct zb_scope s = {.file = zb_strdup(b->file)};
	struct zb_plan plan;
	struct zb_error err = {0};

	s.fs_read.set = true;
	if (!s.file ||
	    zb_rules_add(&s.fs_read, "${project}", &(struct zb_origin){0}))
		b->failed = true;
	else if (resolve(b, &s, false, &plan, &err))
		b->facts.project = NULL;
	else {
		if (!plan.project)
			b->facts.project = NULL;
		zb_plan_done(&plan);
	}
	zb_scope_done(&s);
}

static void check_paths(struct bench *b)
{
	size_t n = 0;

	for (int l = 0; l < LISTS; l++)
		n += list_of(&b->own, l)->n;
	if (n > ZB_LINT_RULES_MAX) {
		tell(b, true,
		     "more than 200 paths: what each comes to was not "
		     "tried");
		return;
	}
	judge_project(b);
	for (int l = 0; l < LISTS; l++) {
		const struct zb_rules *own = list_of(&b->own, l);

		for (size_t i = 0; i < own->n; i++)
			if (depends(b, own->v[i].value) ||
			    !try_alone(b, l, &own->v[i]))
				remove_rule(list_of(&b->merged, l), &own->v[i]);
	}
	check_whole(b);
}

/* ---- without the host ---------------------------------------------------- */

/* A value that its own list, or what is inherited, has already. */
static void check_twice(struct bench *b, const struct zb_rules *own,
			const struct zb_rules *base)
{
	for (size_t i = 0; i < own->n; i++) {
		const struct zb_rule *rule = &own->v[i];
		size_t k = 0;

		while (k < i && strcmp(own->v[k].value, rule->value) != 0)
			k++;
		if (k < i) {
			warn(b, rule, "stands there twice, first in line %u",
			     own->v[k].origin.line);
			continue;
		}
		for (k = 0; !own->reset && k < base->n; k++)
			if (!strcmp(base->v[k].value, rule->value))
				warn(b, rule, "%s has it already",
				     base->v[k].origin.file
					     ? base->v[k].origin.file
					     : "what it extends");
	}
}

static void check_lists(struct bench *b)
{
	static const struct zb_rules none;
	struct zb_scope *o = &b->own, *s = &b->base;
	const struct {
		const struct zb_rules *own, *base;
	} lists[] = {
		{&o->fs_read, &s->fs_read},
		{&o->fs_write, &s->fs_write},
		{&o->fs_exec, &s->fs_exec},
		{&o->fs_deny, &s->fs_deny},
		{&o->net_connect, &s->net_connect},
		{&o->net_listen, &s->net_listen},
		{&o->net_unix, &s->net_unix},
		{&o->env_pass, &s->env_pass},
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(lists); i++)
		check_twice(b, lists[i].own, lists[i].base);
	for (int v = 0; v < ZB_VERB_COUNT; v++)
		check_twice(b, &o->verbs[v].names, &s->verbs[v].names);
	for (size_t i = 0; i < o->n_intercepts; i++)
		check_twice(b, &o->intercepts[i].may, &none);
}

static void check_network(struct bench *b)
{
	const struct zb_rules *lists[] = {&b->own.net_connect,
					  &b->own.net_listen, &b->own.net_unix};
	struct zb_rules *merged[] = {&b->merged.net_connect,
				     &b->merged.net_listen,
				     &b->merged.net_unix};

	for (size_t l = 0; l < ZB_ARRAY_LEN(lists); l++)
		for (size_t i = 0; i < lists[l]->n; i++)
			warn(b, &lists[l]->v[i],
			     "this version grants no network: a start under it "
			     "is refused");
	if (b->base.net_connect.n || b->base.net_listen.n || b->base.net_unix.n)
		tell(b, true,
		     "what it extends wants the network, which this version "
		     "grants to nobody: a start under it is refused");
	for (size_t l = 0; l < ZB_ARRAY_LEN(merged); l++)
		while (merged[l]->n)
			remove_rule(merged[l], &merged[l]->v[0]);
}

/* Grants of the protocol that open more than they say, or that nobody gets. */
static void check_red(struct bench *b, const char *key,
		      const struct zb_rules *l)
{
	for (size_t i = 0; i < l->n; i++) {
		zb_auto(free) char *rule = zb_strf("%s %s", key, l->v[i].value);
		const char *why = rule ? zb_scope_red(rule) : NULL;

		if (why)
			warn(b, &l->v[i], "opens %s%s", why,
			     zb_scope_flag_why(key, l->v[i].value)
				     ? ", and needs --yes-i-mean-it"
				     : "");
	}
}

/* A newer host may have more events than are known here: said, no error. */
static void check_event(struct bench *b, const struct zb_rule *rule,
			const char *name, const char *const *known)
{
	const char *near;

	for (size_t i = 0; known[i]; i++)
		if (!strcmp(known[i], name))
			return;
	near = zb_nearest(name, known);
	warn(b, rule, "this is not an event that zot sends today%s%s%s",
	     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static void check_events(struct bench *b)
{
	const struct zb_rules *events = &b->own.verbs[ZB_VERB_EVENTS].names;

	for (size_t i = 0; i < events->n; i++)
		check_event(b, &events->v[i], events->v[i].value,
			    zb_known_events);
	for (size_t i = 0; i < b->own.n_intercepts; i++) {
		const struct zb_intercept *in = &b->own.intercepts[i];

		if (in->may.n)
			check_event(b, &in->may.v[0], in->event,
				    zb_known_intercepts);
	}
}

static void check_protocol(struct bench *b)
{
	const struct zb_scope *o = &b->own, *m = &b->merged;
	const struct zb_rules *slash = &o->verbs[ZB_VERB_SLASH].names;
	const struct zb_switch *events = &m->verbs[ZB_VERB_EVENTS];

	for (size_t i = 0; i < slash->n; i++)
		if (zb_slash_forbidden(slash->v[i].value)) {
			warn(b, &slash->v[i],
			     "cannot be granted to an extension: a start under "
			     "it is refused");
			remove_rule(&b->merged.verbs[ZB_VERB_SLASH].names,
				    &slash->v[i]);
		}
	check_red(b, "protocol.call_tool", &o->verbs[ZB_VERB_CALL_TOOL].names);
	for (size_t i = 0; i < o->n_intercepts; i++) {
		zb_auto(free) char *key = zb_strf("protocol.intercept.%s",
						  o->intercepts[i].event);

		if (key)
			check_red(b, key, &o->intercepts[i].may);
	}
	if (o->on_failure_set && o->on_failure_block && !m->n_intercepts)
		tell(b, true,
		     "protocol.on_failure is \"block\", and no intercept "
		     "is granted: it has no effect");
	if (o->verbs[ZB_VERB_EVENT_CONTENT].on &&
	    !(events->is_list ? events->names.n > 0 : events->on))
		tell(b, true,
		     "protocol.event_content is true, and no event is "
		     "granted: it has no effect");
}

static void examine(struct bench *b)
{
	struct zb_error err = {0};

	check_lists(b);
	if (zb_scope_merge(&b->merged, &b->base, &err) ||
	    zb_scope_merge(&b->merged, &b->own, &err)) {
		b->failed = true;
		return;
	}
	check_network(b);
	check_events(b);
	check_protocol(b);
	check_paths(b);
}

int zb_lint_file(struct zb_lint *out, const struct zb_store *store,
		 const char *path, const char *project, struct zb_error *err)
{
	struct bench b = {.out = out, .store = store, .file = path};
	zb_auto(free) char *real = realpath(path, NULL);
	int rc;

	*out = (struct zb_lint){0};
	rc = set_up(&b, real ? real : path, project, err);
	if (!rc && read_own(&b, path) && read_base(&b, real ? real : path))
		examine(&b);
	if (!rc && b.failed)
		rc = zb_fail(err, ZB_ELIMIT, "out of memory checking %s", path);
	tear_down(&b);
	if (rc)
		zb_lint_done(out);
	return rc;
}
