/* resolve_env.c - the environment: only what the scope names.
 *
 * A pattern (LC_*) never brings a variable that makes programs load or run
 * something: those must be named whole. What is withheld is told by name, if
 * it was asked for or looks like a secret; values are never looked at. */
#include "path_match.h"
#include "resolve.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* Loaded, preloaded or run by the dynamic loader, shells and interpreters. */
static const char *const loaders[] = {
	"LD_*",
	"DYLD_*",
	"GCONV_PATH",
	"LOCPATH",
	"NLSPATH",
	"BASH_ENV",
	"BASH_FUNC_*",
	"ENV",
	"SHELLOPTS",
	"BASHOPTS",
	"PS4",
	"PROMPT_COMMAND",
	"IFS",
	"NODE_OPTIONS",
	"NODE_PATH",
	"NODE_EXTRA_CA_CERTS",
	"PYTHONPATH",
	"PYTHONHOME",
	"PYTHONSTARTUP",
	"PYTHONINSPECT",
	"PYTHONUSERBASE",
	"PERL5LIB",
	"PERL5OPT",
	"PERL5DB",
	"RUBYOPT",
	"RUBYLIB",
	"JAVA_TOOL_OPTIONS",
	"_JAVA_OPTIONS",
	"JDK_JAVA_OPTIONS",
	"GIT_SSH*",
	"GIT_ASKPASS",
	"GIT_EXEC_PATH",
	"GIT_CONFIG*",
	"GIT_EXTERNAL_DIFF",
	"GIT_PAGER",
	"GIT_EDITOR",
	"OPENSSL_CONF",
	"OPENSSL_MODULES",
	"OPENSSL_ENGINES",
	NULL,
};

static const char *const secrets[] = {"TOKEN", "KEY", "SECRET", "PASSWORD"};

/* Names hold no slash, so the patterns of paths serve. */
static bool fits(const char *pattern, const char *name)
{
	char p[256], n[256];

	if (strlen(pattern) > 250 || strlen(name) > 250 || strchr(name, '/'))
		return !strcmp(pattern, name);
	p[0] = n[0] = '/';
	memcpy(p + 1, pattern, strlen(pattern) + 1);
	memcpy(n + 1, name, strlen(name) + 1);
	return zb_pattern_match(p, n);
}

static bool is_loader(const char *name)
{
	for (size_t i = 0; loaders[i]; i++)
		if (fits(loaders[i], name))
			return true;
	return false;
}

static char upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

bool zb_env_looks_secret(const char *name)
{
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
		for (const char *s = name; *s; s++) {
			size_t k = 0;

			while (secrets[i][k] && upper(s[k]) == secrets[i][k])
				k++;
			if (!secrets[i][k])
				return true;
		}
	return false;
}

const struct zb_rule *zb_env_rule(const struct zb_scope *s, const char *name)
{
	for (size_t i = 0; i < s->env_pass.n; i++) {
		const struct zb_rule *rule = &s->env_pass.v[i];

		if (!strcmp(rule->value, name))
			return rule;
		if (zb_pattern_is_glob(rule->value) && !is_loader(name) &&
		    fits(rule->value, name))
			return rule;
	}
	return NULL;
}

static int set(struct zb_resolver *r, const char *name, const char *value,
	       const struct zb_origin *origin)
{
	struct zb_plan *p = r->plan;
	struct zb_env_var *v = NULL;

	for (size_t i = 0; i < p->n_env && !v; i++)
		if (!strcmp(p->env[i].name, name))
			v = &p->env[i];
	if (!v) {
		v = realloc(p->env, (p->n_env + 1) * sizeof(*v));
		if (!v)
			return ZB_ELIMIT;
		p->env = v;
		v += p->n_env;
		*v = (struct zb_env_var){.name = zb_strdup(name)};
		if (!v->name)
			return ZB_ELIMIT;
		p->n_env++;
	}
	free(v->value);
	v->value = zb_strdup(value);
	if (!v->value)
		return ZB_ELIMIT;
	return zb_origin_copy(&v->origin, origin);
}

/* NAME of "NAME=VALUE" into @name; the value, or NULL for what is none. */
static const char *parse(const char *entry, char name[256])
{
	const char *eq = strchr(entry, '=');
	size_t n = eq ? (size_t)(eq - entry) : 0;

	if (!n || n > 255)
		return NULL;
	memcpy(name, entry, n);
	name[n] = '\0';
	return eq + 1;
}

static bool is_asked_for(const struct zb_resolver *r, const char *name)
{
	const struct zb_strv *asked = r->facts->requested_env;

	for (size_t i = 0; asked && i < asked->n; i++)
		if (fits(asked->v[i], name))
			return true;
	return false;
}

static int pass_all(struct zb_resolver *r)
{
	const char *const *e = r->facts->environ_;

	for (; e && *e; e++) {
		char name[256];
		const char *value = parse(*e, name);
		const struct zb_rule *rule;
		int rc = 0;

		if (!value)
			continue;
		rule = zb_env_rule(r->scope, name);
		if (rule)
			rc = set(r, name, value, &rule->origin);
		else if ((zb_env_looks_secret(name) || is_asked_for(r, name)) &&
			 !zb_strv_has(&r->plan->env_withheld, name))
			rc = zb_strv_add(&r->plan->env_withheld, name);
		if (rc)
			return rc;
	}
	return 0;
}

static struct zb_env_var *get(struct zb_plan *p, const char *name)
{
	for (size_t i = 0; i < p->n_env; i++)
		if (!strcmp(p->env[i].name, name))
			return &p->env[i];
	return NULL;
}

/* What the interpreter's version manager would have put first, first. */
static int set_path(struct zb_resolver *r)
{
	const struct zb_program *prog = r->facts->program;
	const struct zb_rule *rule = zb_env_rule(r->scope, "PATH");
	struct zb_env_var *now = get(r->plan, "PATH");
	struct zb_buf b = {0};
	char *value;
	int rc;

	if (!rule && !now)
		return 0;
	for (size_t i = 0; prog && i < prog->path_prefix.n; i++)
		zb_buf_addf(&b, "%s:", prog->path_prefix.v[i]);
	zb_buf_adds(&b, now && *now->value ? now->value : DEFAULT_PATH);
	value = zb_buf_steal(&b);
	if (!value)
		return ZB_ELIMIT;
	rc = set(r, "PATH", value, now ? &now->origin : &rule->origin);
	free(value);
	return rc;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct zb_env_var *)a)->name,
		      ((const struct zb_env_var *)b)->name);
}

static int by_string(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int zb_resolve_env(struct zb_resolver *r)
{
	const struct zb_scope *s = r->scope;
	struct zb_plan *p = r->plan;
	const struct zb_rule *home = zb_env_rule(s, "HOME");
	int rc = pass_all(r);

	if (!rc && home)
		rc = set(r, "HOME", r->facts->home, &home->origin);
	for (size_t i = 0; !rc && i < s->n_env_set; i++)
		rc = set(r, s->env_set[i].name, s->env_set[i].value,
			 &s->env_set[i].origin);
	if (!rc)
		rc = set_path(r);
	/* The launcher sets it to the working directory whatever we say: what
	 * is planned is what is seen. */
	if (!rc)
		rc = set(r, "PWD", p->cwd, &(struct zb_origin){0});
	if (rc)
		return rc;
	if (p->n_env)
		qsort(p->env, p->n_env, sizeof(*p->env), by_name);
	if (p->env_withheld.n)
		qsort(p->env_withheld.v, p->env_withheld.n,
		      sizeof(*p->env_withheld.v), by_string);
	return 0;
}
