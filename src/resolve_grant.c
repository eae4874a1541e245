/* resolve_grant.c - what the scope's fs lists become.
 *
 * A value is a base (a variable, "~" or nothing) and a rest. Only the rest
 * can hold patterns: a project that is called "a*b" is a name, not a pattern.
 *
 * A grant is judged by the real path it leads to, so that no link makes a
 * narrow name of a wide place. Private places (/tmp, data/, home/) need none.
 * What this version cannot enforce is an error that names the rule. Writing
 * below a directory always has carve-outs: zot, git and editors run what
 * stands in some names. */
#include "cleanup.h"
#include "path_match.h"
#include "resolve.h"

#include <stdlib.h>
#include <string.h>

const char *const zb_carve_outs[] = {
	"/**/.git",	     "/**/.zot/extensions",
	"/**/.zot/mcp.json", "/**/.claude",
	"/**/.agents",	     "/**/.envrc",
	"/**/.vscode",	     NULL,
};

/* fs.exec: programs of one pattern. Over it, a whole directory is granted as
 * a directory, anything else is an error. */
#define MAX_PROGRAMS 64

struct target {
	char *base; /* canonical, as spelled; "" for none */
	char *rest; /* the value behind it */
	char *head; /* base and the components before the first pattern */
	char *tail; /* the components from the first pattern on, or "" */
	bool skip;  /* names something that is not there to name */
	bool own;   /* below the private /tmp */
	bool slash; /* ends in "/" */
};

static void target_done(struct target *t)
{
	free(t->base);
	free(t->rest);
	free(t->head);
	free(t->tail);
	*t = (struct target){0};
}

struct variable {
	const char *name;
	const char *value; /* NULL: not known on this host */
};

static size_t list_variables(const struct zb_resolver *r, struct variable v[8])
{
	const struct zb_plan *p = r->plan;
	const struct variable all[] = {
		{"~", p->home},
		{"${home}", p->home},
		{"${project}", p->project},
		{"${extension_dir}", p->extension_dir},
		{"${data_dir}", p->data_dir},
		{"${zot_home}", p->zot_home},
		{"${tmp}", "/tmp"},
		{"${xdg_runtime_dir}", r->facts->xdg_runtime_dir},
	};

	memcpy(v, all, sizeof(all));
	return sizeof(all) / sizeof(all[0]);
}

/* Split @t->rest into head and tail at its first component with a pattern. */
static int split(struct target *t)
{
	const char *s = t->rest;
	zb_auto(free) char *lit = NULL;

	while (*s) {
		size_t slashes = strspn(s, "/");
		size_t n = slashes + strcspn(s + slashes, "/");
		zb_auto(free) char *piece = zb_strndup(s, n);

		if (!piece)
			return ZB_ELIMIT;
		if (zb_pattern_is_glob(piece))
			break;
		s += n;
	}
	lit = zb_strf("%s/%.*s", t->base, (int)(s - t->rest), t->rest);
	t->head = lit ? zb_path_join(NULL, lit) : NULL;
	t->tail = zb_strdup(s + strspn(s, "/"));
	return t->head && t->tail ? 0 : ZB_ELIMIT;
}

static bool has_parent(const char *s)
{
	while (*s) {
		size_t n;

		s += strspn(s, "/");
		n = strcspn(s, "/");
		if (n == 2 && !memcmp(s, "..", 2))
			return true;
		s += n;
	}
	return false;
}

static int set_base(struct zb_resolver *r, const struct zb_rule *rule,
		    struct target *t)
{
	struct variable vars[8];
	size_t n_vars = list_variables(r, vars);

	for (size_t i = 0; i < n_vars; i++) {
		size_t n = strlen(vars[i].name);
		const char *rest = rule->value + n;

		if (strncmp(rule->value, vars[i].name, n) != 0 ||
		    (*rest && *rest != '/'))
			continue;
		t->own = !strcmp(vars[i].name, "${tmp}");
		t->rest = zb_strdup(rest);
		t->base = zb_strdup(vars[i].value ? vars[i].value : "");
		if (!t->rest || !t->base)
			return ZB_ELIMIT;
		t->skip = !vars[i].value;
		if (!t->skip || !strcmp(vars[i].name, "${project}"))
			return 0; /* an absent project was said already */
		return zb_resolve_notice(r, rule, "is left out: it is not set");
	}
	if (rule->value[0] != '/')
		return zb_resolve_fail(r, ZB_EUSAGE, rule,
				       "not an absolute path; start it with "
				       "/, ~/ or a variable like ${project}");
	t->rest = zb_strdup(rule->value);
	t->base = zb_strdup("");
	return t->rest && t->base ? 0 : ZB_ELIMIT;
}

static int expand(struct zb_resolver *r, const struct zb_rule *rule,
		  struct target *t)
{
	size_t n = strlen(rule->value);
	int rc = set_base(r, rule, t);

	if (rc || t->skip)
		return rc;
	if (has_parent(t->rest))
		return zb_resolve_fail(r, ZB_EUSAGE, rule,
				       "\"..\" in a path; name the directory "
				       "that is meant");
	t->slash = n > 1 && rule->value[n - 1] == '/';
	return split(t);
}

/* Where the name led */

/* What a name is kept under. Behind a variable it is another path at each
 * place, so it is kept as it is written; else as the path that it is. */
static char *name_of(const struct zb_resolver *r, const struct zb_rule *rule,
		     const struct target *t)
{
	size_t n = strlen(rule->value);
	zb_auto(free) char *name = NULL;

	while (n > 1 && rule->value[n - 1] == '/')
		n--;
	if (!strncmp(rule->value, "${", 2) &&
	    strncmp(rule->value, "${home}", 7) != 0)
		name = zb_strndup(rule->value, n);
	else
		name = zb_strf("%s%s%s", t->head,
			       *t->tail && strcmp(t->head, "/") ? "/" : "",
			       t->tail);
	return name ? zb_resolve_spelled(r, name) : NULL;
}

/* Is the name @name of list @key one that the user gives now, in whichever
 * spelling? */
static bool is_given(struct zb_resolver *r, const char *key, const char *name)
{
	const struct zb_strv *l = r->facts->given;
	size_t n = strlen(key);
	bool hit = false;

	for (size_t i = 0; l && !hit && i < l->n; i++) {
		zb_auto(free) char *value = NULL;
		zb_auto(free) char *of = zb_strdup(key);
		zb_auto(free) char *given = NULL;
		struct zb_rule rule = {.origin = {.key = of}};
		struct target t = {0};

		if (strncmp(l->v[i], key, n) != 0 || l->v[i][n] != ' ')
			continue;
		value = zb_strdup(l->v[i] + n + 1);
		rule.value = value;
		if (value && of && !expand(r, &rule, &t) && !t.skip)
			given = name_of(r, &rule, &t);
		hit = given && !strcmp(given, name);
		target_done(&t);
	}
	return hit;
}

static bool is_of_project(const struct zb_rule *rule)
{
	static const char var[] = "${project}";

	return !strncmp(rule->value, var, sizeof(var) - 1);
}

/* Is where @rule leads kept? Not of a project, nor of a rule that no file has.
 */
static bool is_kept(const struct zb_rule *rule)
{
	return rule->origin.key && !is_of_project(rule);
}

/* The list that @rule is of: "fs.read[0]" is one of "fs.read". */
static char *list_key(const struct zb_rule *rule)
{
	const char *key = rule->origin.key ? rule->origin.key : "";

	return zb_strndup(key, strcspn(key, "["));
}

/* A start depends on that no name of the scope leads elsewhere by now. */
static int judge_name(struct zb_resolver *r, const struct zb_rule *rule,
		      const struct target *t, const struct zb_walk *w)
{
	zb_auto(free) char *key = list_key(rule);
	zb_auto(free) char *name = name_of(r, rule, t);
	zb_auto(free) char *why = NULL;
	struct zb_way way = {.rule = rule, .key = key, .name = name};
	int rc;

	if (!is_kept(rule))
		return 0;
	if (!key || !name)
		return ZB_ELIMIT;
	way.given = is_given(r, key, name);
	way.deny = !strcmp(key, "fs.deny");
	way.tail = t->tail;
	rc = zb_resolve_judge_way(r, &way, w, &why);
	return rc || !why ? rc
			  : zb_resolve_fail(r, ZB_EPOLICY, rule, "%s", why);
}

static bool is_private(const struct zb_resolver *r, const char *path)
{
	return zb_path_below(path, r->data) || zb_path_below(path, r->home_box);
}

/* Denies */

static int add_deny(struct zb_resolver *r, const char *dir, const char *tail,
		    const struct zb_origin *origin)
{
	struct zb_plan *p = r->plan;
	struct zb_deny *v;

	v = realloc(p->denies, (p->n_denies + 1) * sizeof(*v));
	if (!v)
		return ZB_ELIMIT;
	p->denies = v;
	v += p->n_denies;
	*v = (struct zb_deny){0};
	v->pattern = *tail ? zb_strf("%s/%s", strcmp(dir, "/") ? dir : "", tail)
			   : zb_strdup(dir);
	if (!v->pattern || zb_origin_copy(&v->origin, origin)) {
		free(v->pattern);
		return ZB_ELIMIT;
	}
	p->n_denies++;
	return 0;
}

int zb_resolve_close(struct zb_resolver *r, const char *path,
		     const struct zb_origin *origin)
{
	struct zb_plan *p = r->plan;
	int rc;

	for (size_t i = 0; i < p->n_denies; i++)
		if (p->denies[i].built_in &&
		    !strcmp(p->denies[i].pattern, path))
			return 0;
	rc = add_deny(r, path, "", origin);
	if (!rc)
		p->denies[p->n_denies - 1].built_in = true;
	return rc;
}

static bool is_needed(const struct zb_place *p)
{
	return p->kind == ZB_PLACE_SYSTEM || p->kind == ZB_PLACE_RUNTIME ||
	       p->kind == ZB_PLACE_EXTENSION || p->kind == ZB_PLACE_TEXT ||
	       p->kind == ZB_PLACE_PROC || p->kind == ZB_PLACE_DEV;
}

/* A deny inside @what has no hold. One that means exactly that says something
 * that will not be so; those of a preset for whatever the project is are a
 * word to the user, when the project is the extension itself. */
static int deny_in_vain(struct zb_resolver *r, const struct zb_rule *rule,
			const char *what)
{
	if (!strncmp(rule->value, "${project}", 10))
		return zb_resolve_notice(r, NULL,
					 "denies below ${project} do not hold "
					 "for %s, which the extension needs to "
					 "run",
					 what);
	return zb_resolve_fail(r, ZB_EUNSUPPORTED, rule,
			       "it lies in %s, which the extension needs to "
			       "run; remove it",
			       what);
}

/* Without these nothing would start, so a deny is about grants only. */
static int judge_deny(struct zb_resolver *r, const struct zb_rule *rule,
		      const struct target *t, const struct zb_walk *w)
{
	const struct zb_plan *plan = r->plan;

	if (zb_path_below(w->path, plan->extension_real))
		return deny_in_vain(r, rule, plan->extension_real);
	for (size_t i = 0; i < plan->n_places; i++) {
		const struct zb_place *p = &plan->places[i];

		if (!is_needed(p))
			continue;
		if (zb_path_below(w->path, p->path))
			return deny_in_vain(r, rule, p->path);
		if (!*t->tail && zb_path_below(p->path, w->path))
			return zb_resolve_notice(r, rule,
						 "does not hold for %s, which "
						 "the extension needs to run",
						 p->path);
	}
	return 0;
}

/* A deny of one name denies what the name leads to, and the name. Links on the
 * way stay as they are. */
static int deny_link(struct zb_resolver *r, const struct zb_rule *rule,
		     const struct target *t, const struct zb_walk *w)
{
	struct zb_walk link;
	int rc = zb_resolve_close_links(r, w, &rule->origin);

	if (rc || *t->tail || !w->links.n)
		return rc;
	if (zb_resolve_walk(r, t->head, true, &link))
		return ZB_ELIMIT;
	if (strcmp(link.path, w->path) != 0) {
		rc = add_deny(r, link.path, "", &rule->origin);
		if (!rc && !w->exists)
			rc = zb_resolve_notice(r, rule,
					       "is a dangling symlink to %s",
					       w->path);
	}
	zb_walk_done(&link);
	return rc;
}

static int resolve_deny(struct zb_resolver *r, const struct zb_rule *rule)
{
	struct target t = {0};
	struct zb_walk w = {0};
	int rc = expand(r, rule, &t);

	if (rc || t.skip)
		goto out;
	rc = ZB_ELIMIT;
	if (zb_resolve_walk(r, t.head, false, &w))
		goto out;
	if (t.own || is_private(r, w.path)) {
		rc = zb_resolve_fail(r, ZB_EUNSUPPORTED, rule,
				     "it lies in a directory that is the "
				     "extension's own; remove it");
		goto out;
	}
	rc = judge_name(r, rule, &t, &w);
	if (!rc)
		rc = judge_deny(r, rule, &t, &w);
	if (!rc)
		rc = add_deny(r, w.path, t.tail, &rule->origin);
	if (!rc)
		rc = deny_link(r, rule, &t, &w);
out:
	zb_walk_done(&w);
	target_done(&t);
	return rc;
}

int zb_resolve_denies(struct zb_resolver *r)
{
	const struct zb_rules *l = &r->scope->fs_deny;
	int rc = 0;

	for (size_t i = 0; !rc && i < l->n; i++)
		rc = resolve_deny(r, &l->v[i]);
	return rc;
}

/* Breadth */

/* Is it at, or does it hold, what stands at @what? @only: of what is below
 * @path just that. */
static bool reaches(const char *path, const char *only, const char *what)
{
	return only ? zb_pattern_match(only, what) : zb_path_below(what, path);
}

static int judge_breadth(struct zb_resolver *r, const struct zb_rule *rule,
			 const char *path, const char *only)
{
	const struct zb_plan *p = r->plan;
	const struct {
		const char *what, *words;
	} wide[] = {
		{p->home_real, "is or holds your whole HOME"},
		{p->zot_home_real, "is or holds zot's own directory"},
		{r->auth, "holds zot's credentials"},
	};

	if (zb_path_below(path, r->boxes) || zb_path_below(path, r->logs))
		return zb_resolve_fail(r, ZB_EPOLICY, rule,
				       "the supervisor's own directories "
				       "cannot be granted; remove it");
	if (zb_path_below(path, "/proc") || zb_path_below(path, "/dev"))
		return zb_resolve_fail(r, ZB_EPOLICY, rule,
				       "the host's /proc and /dev cannot be "
				       "granted, the sandbox has its own; "
				       "remove it");
	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
		if (!r->facts->mean_it && reaches(path, only, wide[i].what))
			return zb_resolve_fail(
				r, ZB_EPOLICY, rule,
				"it %s; grant what is needed below it, or "
				"grant this with --yes-i-mean-it",
				wide[i].words);
	return 0;
}

/* A wide grant still does not show the supervisor's own directories. */
static int hide_own(struct zb_resolver *r, const char *path)
{
	char *const own[] = {r->boxes, r->logs};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		struct zb_walk w;
		int rc;

		if (!zb_path_below(own[i], path))
			continue;
		if (zb_resolve_walk(r, own[i], false, &w))
			return ZB_ELIMIT;
		if (w.is_dir)
			rc = zb_resolve_add(
				r, &(struct zb_place){.kind = ZB_PLACE_DIR,
						      .path = w.path,
						      .rights = ZB_MAY_READ |
								ZB_MAY_LIST,
						      .is_dir = true});
		else
			rc = add_deny(r, own[i], "", &(struct zb_origin){0});
		zb_walk_done(&w);
		if (rc)
			return rc;
	}
	return 0;
}

/* "DIR/x*", as a pattern over real names; NULL in *@only for all of DIR. */
static int take_pattern(struct zb_resolver *r, const struct zb_rule *rule,
			const struct target *t, const struct zb_walk *w,
			char **only)
{
	*only = NULL;
	if (strchr(t->tail, '/'))
		return zb_resolve_fail(r, ZB_EUSAGE, rule,
				       "a pattern may stand only in the last "
				       "component of a grant");
	if (!*t->tail || !strcmp(t->tail, "**"))
		return 0;
	*only = zb_strf("%s/%s", strcmp(w->path, "/") ? w->path : "", t->tail);
	return *only ? 0 : ZB_ELIMIT;
}

/* Where the extension's own directory stands there is nothing of the host to
 * choose from. */
static int judge_pattern(struct zb_resolver *r, const struct zb_rule *rule,
			 const char *path)
{
	if (!zb_path_below(r->plan->home_real, path) &&
	    !zb_path_below("/tmp", path))
		return 0;
	return zb_resolve_fail(r, ZB_EUNSUPPORTED, rule,
			       "a pattern directly in %s: the extension's own "
			       "directory stands there; name the files",
			       path);
}

/* fs.read */

static int absent(struct zb_resolver *r, const struct zb_rule *rule,
		  const struct zb_walk *w)
{
	return zb_resolve_notice(r, rule,
				 w->exists ? "is neither a file nor a "
					     "directory; skipped"
					   : "does not exist; skipped");
}

static int place_read(struct zb_resolver *r, const struct zb_rule *rule,
		      const struct zb_walk *w, const char *only)
{
	struct zb_plan *p = r->plan;
	int rc = judge_breadth(r, rule, w->path, only);

	if (!rc && only)
		rc = judge_pattern(r, rule, w->path);
	if (rc)
		return rc;
	if (!w->is_dir && (only || !w->is_file))
		return absent(r, rule, w);
	if (!strcmp(w->path, "/tmp"))
		return zb_resolve_notice(r, rule,
					 "is the extension's own /tmp inside; "
					 "grant what is below it; skipped");
	rc = zb_resolve_add_walked(r, ZB_PLACE_GRANT, w,
				   ZB_MAY_READ | ZB_MAY_LIST, &rule->origin);
	if (!rc && only)
		rc = zb_strv_add(&p->places[p->n_places - 1].only, only);
	return rc ? rc : hide_own(r, w->path);
}

static int grant_read(struct zb_resolver *r, const struct zb_rule *rule)
{
	struct target t = {0};
	struct zb_walk w = {0};
	zb_auto(free) char *only = NULL;
	int rc = expand(r, rule, &t);

	if (rc || t.skip || t.own)
		goto out;
	rc = ZB_ELIMIT;
	if (zb_resolve_walk(r, t.head, false, &w))
		goto out;
	rc = judge_name(r, rule, &t, &w);
	if (!rc)
		rc = take_pattern(r, rule, &t, &w, &only);
	if (!rc && !is_private(r, w.path) &&
	    !zb_path_below(w.path, r->plan->extension_real))
		rc = place_read(r, rule, &w, only);
out:
	zb_walk_done(&w);
	target_done(&t);
	return rc;
}

/* fs.exec */

static int place_exec(struct zb_resolver *r, const struct zb_rule *rule,
		      const struct zb_walk *w)
{
	int rc = judge_breadth(r, rule, w->path, NULL);

	return rc ? rc
		  : zb_resolve_add_walked(r, ZB_PLACE_GRANT, w,
					  ZB_MAY_READ | ZB_MAY_LIST |
						  ZB_MAY_EXEC,
					  &rule->origin);
}

/* One program, with what it needs to run. */
static int grant_program(struct zb_resolver *r, const struct zb_rule *rule,
			 const char *name)
{
	struct zb_program prog = {0};
	struct zb_walk w = {0};
	struct zb_error err = {0};
	int rc = r->facts->find_program(r->facts->ctx, name, &prog, &err);

	if (rc) {
		rc = zb_resolve_fail(r, rc, rule, "%s", err.msg);
		goto out;
	}
	rc = ZB_ELIMIT;
	if (!prog.exec_path || zb_resolve_walk(r, prog.exec_path, false, &w) ||
	    zb_strv_copy(&r->plan->quiet, &prog.quiet))
		goto out;
	rc = place_exec(r, rule, &w);
	if (!rc)
		rc = zb_resolve_needs(r, ZB_PLACE_RUNTIME, prog.needs,
				      prog.n_needs, rule->origin.key);
out:
	zb_walk_done(&w);
	zb_program_done(&prog);
	return rc;
}

/* The same for @path, one program that a pattern has found. Beside a pattern
 * that was granted before, a link that was not there then is new: it counts as
 * if it had been a program of its own. *@ok: it may be granted. */
static int judge_found(struct zb_resolver *r, const struct zb_rule *rule,
		       const struct target *t, const char *path, bool *ok)
{
	zb_auto(free) char *key = list_key(rule);
	zb_auto(free) char *pattern = name_of(r, rule, t);
	zb_auto(free) char *name = zb_resolve_spelled(r, path);
	zb_auto(free) char *own = NULL;
	zb_auto(free) char *why = NULL;
	struct zb_way way = {.rule = rule, .key = key, .name = name};
	struct zb_walk w = {0}, at = {0};
	int rc = ZB_ELIMIT;

	*ok = !is_kept(rule);
	if (*ok)
		return 0;
	if (!key || !pattern || !name || zb_resolve_walk(r, path, false, &w) ||
	    zb_resolve_walk(r, path, true, &at))
		goto out;
	own = zb_resolve_real_word(r, at.path);
	way.given = is_given(r, key, pattern);
	if (r->facts->granted &&
	    zb_granted_real(r->facts->granted, key, pattern))
		way.else_was = own;
	rc = !own	  ? ZB_ELIMIT
	     : !w.links.n ? 0
			  : zb_resolve_judge_way(r, &way, &w, &why);
	*ok = !rc && !why;
	if (!rc && why)
		rc = zb_resolve_notice(r, rule, "is not granted %s: %s", name,
				       why);
out:
	zb_walk_done(&w);
	zb_walk_done(&at);
	return rc;
}

static int grant_programs(struct zb_resolver *r, const struct zb_rule *rule,
			  const struct target *t)
{
	zb_auto(free) char *pattern =
		zb_strf("%s/%s", strcmp(t->head, "/") ? t->head : "", t->tail);
	struct zb_strv found = {0};
	struct zb_walk w = {0};
	int rc = 0;

	if (!pattern)
		return ZB_ELIMIT;
	r->facts->expand(r->facts->ctx, pattern, &found);
	if (!found.n) {
		rc = zb_resolve_fail(r, ZB_EUSAGE, rule, "nothing matches it");
	} else if (found.n <= MAX_PROGRAMS) {
		for (size_t i = 0; !rc && i < found.n; i++) {
			bool ok;

			rc = judge_found(r, rule, t, found.v[i], &ok);
			if (!rc && ok)
				rc = grant_program(r, rule, found.v[i]);
		}
	} else if (strcmp(t->tail, "*") != 0) {
		rc = zb_resolve_fail(r, ZB_EUSAGE, rule,
				     "it matches %zu programs, at most %d can "
				     "be granted by one pattern; narrow it, or "
				     "grant the directory",
				     found.n, MAX_PROGRAMS);
	} else {
		rc = zb_resolve_walk(r, t->head, false, &w);
		if (!rc)
			rc = place_exec(r, rule, &w);
	}
	zb_walk_done(&w);
	zb_strv_done(&found);
	return rc;
}

static int grant_exec(struct zb_resolver *r, const struct zb_rule *rule)
{
	struct target t = {0};
	struct zb_walk w = {0};
	int rc;

	if (!strchr(rule->value, '/') && rule->value[0] != '~' &&
	    rule->value[0] != '$')
		return grant_program(r, rule, rule->value);
	rc = expand(r, rule, &t);
	if (rc || t.skip || t.own)
		goto out;
	rc = ZB_ELIMIT;
	if (zb_resolve_walk(r, t.head, false, &w))
		goto out;
	rc = judge_name(r, rule, &t, &w);
	if (rc || is_private(r, w.path) ||
	    zb_path_below(w.path, r->plan->extension_real))
		goto out; /* these may execute as they are */
	if (*t.tail)
		rc = grant_programs(r, rule, &t);
	else if (w.is_dir)
		rc = place_exec(r, rule, &w);
	else if (w.is_file)
		rc = grant_program(r, rule, t.head);
	else
		rc = zb_resolve_fail(r, ZB_EUSAGE, rule,
				     "there is no such program; remove it or "
				     "install the program");
out:
	zb_walk_done(&w);
	target_done(&t);
	return rc;
}

/* fs.write */

static int add_built_in(struct zb_resolver *r, const char *pattern)
{
	return zb_resolve_close(r, pattern, &(struct zb_origin){0});
}

/* Where one of these names is a link in @dir itself, what it leads to is run
 * as well, and so what another link on the way leads to would be. */
static int carve_linked(struct zb_resolver *r, const char *dir,
			const char *name)
{
	zb_auto(free) char *path = zb_path_join(dir, name);
	struct zb_walk w;
	int rc = 0;

	if (!path || zb_resolve_walk(r, path, false, &w))
		return ZB_ELIMIT;
	if (strcmp(w.path, path) != 0)
		rc = add_built_in(r, w.path);
	if (!rc)
		rc = zb_resolve_close_links(r, &w, &(struct zb_origin){0});
	zb_walk_done(&w);
	return rc;
}

/* What stays closed below @dir, which is granted for writing. */
static int carve_out(struct zb_resolver *r, const char *dir)
{
	zb_auto(free) char *mcp =
		zb_path_join(r->plan->zot_home_real, "mcp.json");
	int rc = mcp ? 0 : ZB_ELIMIT;

	for (size_t i = 0; !rc && zb_carve_outs[i]; i++) {
		rc = add_built_in(r, zb_carve_outs[i]);
		if (!rc)
			rc = carve_linked(r, dir,
					  zb_carve_outs[i] + strlen("/**/"));
	}
	if (!rc && zb_path_below(r->extensions, dir))
		rc = add_built_in(r, r->extensions);
	if (!rc && zb_path_below(mcp, dir))
		rc = add_built_in(r, mcp);
	return rc;
}

/* Run by zot, git, an editor or a shell: only by its own name, and meant. */
static int judge_write(struct zb_resolver *r, const struct zb_rule *rule,
		       const char *path, const char *only)
{
	zb_auto(free) char *mcp =
		zb_path_join(r->plan->zot_home_real, "mcp.json");
	bool run = false;

	if (!mcp)
		return ZB_ELIMIT;
	if (zb_path_below(path, r->extensions))
		return zb_resolve_fail(r, ZB_EPOLICY, rule,
				       "zot starts what stands there; it "
				       "cannot be granted for writing");
	for (size_t i = 0; i < r->plan->n_places; i++) {
		const struct zb_place *p = &r->plan->places[i];

		if (is_needed(p) && zb_path_below(path, p->path))
			return zb_resolve_fail(
				r, ZB_EPOLICY, rule,
				"it lies in %s, which the extension runs from; "
				"it cannot be granted for writing",
				p->path);
	}
	for (size_t i = 0; zb_carve_outs[i]; i++)
		run = run || zb_pattern_match(zb_carve_outs[i], path);
	if ((run || zb_path_below(path, mcp)) && !r->facts->mean_it)
		return zb_resolve_fail(r, ZB_EPOLICY, rule,
				       "zot, git or an editor runs what stands "
				       "there; remove it, or grant it with "
				       "--yes-i-mean-it");
	return judge_breadth(r, rule, path, only);
}

static int place_write_dir(struct zb_resolver *r, const struct zb_rule *rule,
			   const struct zb_walk *w, const char *only)
{
	struct zb_plan *p = r->plan;
	int rc = zb_resolve_add_walked(r, ZB_PLACE_GRANT, w,
				       ZB_MAY_READ | ZB_MAY_WRITE |
					       ZB_MAY_CREATE | ZB_MAY_LIST,
				       &rule->origin);

	if (!rc && only &&
	    (zb_strv_add(&p->places[p->n_places - 1].only, only) ||
	     zb_strv_add(&p->places[p->n_places - 1].only_changes, only)))
		rc = ZB_ELIMIT;
	if (!rc)
		rc = carve_out(r, w->path);
	return rc ? rc : hide_own(r, w->path);
}

/* Nothing is there. "DIR/" says that it is to be a directory, which is made at
 * the start where its parent exists. */
static int place_new_dir(struct zb_resolver *r, const struct zb_rule *rule,
			 const struct target *t, const struct zb_walk *w)
{
	zb_auto(free) char *parent = zb_path_dir(w->path);
	struct zb_walk p = {0}, made = *w;
	int rc;

	if (!parent || (t->slash && zb_resolve_walk(r, parent, false, &p)))
		return ZB_ELIMIT;
	made.exists = made.is_dir = true;
	if (!t->slash)
		rc = zb_resolve_notice(r, rule,
				       "does not exist; skipped: a file that "
				       "is to be made needs its directory "
				       "granted; a directory that is to be "
				       "made ends in /");
	else if (!p.is_dir)
		rc = zb_resolve_notice(r, rule,
				       "does not exist; skipped: it is made "
				       "where its parent exists");
	else if (zb_strv_has(&r->plan->made, w->path))
		rc = 0;
	else
		rc = zb_strv_add(&r->plan->made, w->path)
			     ? ZB_ELIMIT
			     : place_write_dir(r, rule, &made, NULL);
	zb_walk_done(&p);
	return rc;
}

/* @own, of the supervisor, would be open: no word that it is meant helps, since
 * who may change it is confined no more, and no other extension either. A
 * project stays readable, of which the user may have said nothing today. */
static int place_own(struct zb_resolver *r, const struct zb_rule *rule,
		     const struct zb_walk *w, const char *only, const char *own)
{
	const char *tree = r->facts->own_tree;
	/* The policies stand with the sources, which may be elsewhere. */
	bool built = tree && (zb_path_below(own, tree) ||
			      !strcmp(zb_path_name(own), "policies"));
	int rc;

	if (!is_of_project(rule))
		return zb_resolve_fail(
			r, ZB_EPOLICY, rule,
			"it is, holds or lies in %s, which zotbox itself runs "
			"or reads where it is there; that cannot be granted "
			"for writing%s",
			own,
			built ? "; install zotbox, and use the installed one"
			      : "");
	rc = zb_resolve_notice(
		r, rule,
		"is granted for reading only: it is, holds or lies in %s, "
		"which zotbox itself runs or reads where it is there%s",
		own,
		built ? "; to have it written to, install zotbox, and use "
			"the installed one"
		      : "");
	return rc ? rc : place_read(r, rule, w, only);
}

static int place_write(struct zb_resolver *r, const struct zb_rule *rule,
		       const struct target *t, const struct zb_walk *w)
{
	zb_auto(free) char *only = NULL;
	int rc = take_pattern(r, rule, t, w, &only);
	const char *own = rc ? NULL : zb_plan_own(r->plan, w->path, only);

	if (own)
		return place_own(r, rule, w, only, own);
	if (!rc)
		rc = judge_write(r, rule, w->path, only);
	if (!rc && only)
		rc = judge_pattern(r, rule, w->path);
	if (rc)
		return rc;
	if (only && !w->is_dir)
		return absent(r, rule, w);
	if (!w->exists)
		return place_new_dir(r, rule, t, w);
	if (w->is_dir && strcmp(w->path, "/tmp") != 0)
		return place_write_dir(r, rule, w, only);
	if (!strcmp(w->path, "/tmp"))
		return zb_resolve_notice(r, rule,
					 "is the extension's own /tmp inside; "
					 "grant what is below it; skipped");
	if (!w->is_file)
		return absent(r, rule, w);
	return zb_resolve_add_walked(r, ZB_PLACE_GRANT, w,
				     ZB_MAY_READ | ZB_MAY_WRITE, &rule->origin);
}

static int grant_write(struct zb_resolver *r, const struct zb_rule *rule)
{
	struct target t = {0};
	struct zb_walk w = {0};
	int rc = expand(r, rule, &t);

	if (rc || t.skip)
		goto out;
	rc = ZB_ELIMIT;
	if (zb_resolve_walk(r, t.head, false, &w))
		goto out;
	rc = t.own ? 0 : judge_name(r, rule, &t, &w);
	if (rc)
		goto out;
	if (t.own || is_private(r, w.path))
		rc = zb_resolve_notice(r, rule,
				       "needs no grant: it is the extension's "
				       "own");
	else if (zb_path_below(w.path, r->plan->extension_real))
		rc = 0; /* zb_resolve_shipped() */
	else
		rc = place_write(r, rule, &t, &w);
out:
	zb_walk_done(&w);
	target_done(&t);
	return rc;
}

/* Is @path, in the extension's directory, the program or a word of its command
 * line (the script an interpreter is given)? */
static bool is_started(const struct zb_resolver *r, const char *path)
{
	const struct zb_program *p = r->facts->program;
	const char *ext = r->plan->extension_real;
	size_t n = strlen(ext);
	bool hit = p && p->exec_path && !strcmp(p->exec_path, path);

	for (size_t i = 0; p && !hit && i < p->argv.n; i++) {
		zb_auto(free) char *at = zb_path_join(ext, p->argv.v[i]);
		const char *word = zb_path_name(p->argv.v[i]);

		/* The command line has the directory as the user spells it. */
		hit = (at && !strcmp(at, path)) ||
		      (*p->argv.v[i] == '/' && !strcmp(word, path + n + 1));
	}
	return hit;
}

/* fs.write in the extension's own directory: only a shipped file of state
 * "beside", which then is the copy in data/. */
static int ship(struct zb_resolver *r, const struct zb_rule *rule,
		const struct target *t, const struct zb_walk *w)
{
	const char *ext = r->plan->extension_real;
	const char *name = w->path + strlen(ext) + (strcmp(ext, "/") ? 1 : 0);

	if (!r->plan->state_beside)
		return zb_resolve_fail(
			r, ZB_EPOLICY, rule,
			"the extension's code is read-only under fs.state "
			"\"apart\"; let it write in ${data_dir}, or set "
			"fs.state to \"beside\"");
	if (!strcmp(w->path, ext))
		return zb_resolve_notice(r, rule,
					 "needs no grant: new files beside the "
					 "code go to the extension's own data");
	if (!strcmp(name, "extension.json"))
		return zb_resolve_fail(r, ZB_EPOLICY, rule,
				       "the manifest cannot be granted for "
				       "writing; remove it");
	if (*t->tail || w->is_dir)
		return zb_resolve_fail(r, ZB_EUNSUPPORTED, rule,
				       "a shipped directory cannot be made "
				       "writable; name its files");
	if (!w->is_file)
		return zb_resolve_notice(r, rule,
					 "needs no grant: it is not shipped, "
					 "so it is the extension's own");
	if (is_started(r, w->path))
		return zb_resolve_fail(r, ZB_EPOLICY, rule,
				       "this is the program that starts: what "
				       "writes it is another extension at its "
				       "next start; remove it");
	if (zb_strv_has(&r->open, name))
		return 0;
	return zb_strv_add(&r->open, name) ||
			       zb_strv_add(&r->plan->data_copies, name)
		       ? ZB_ELIMIT
		       : 0;
}

int zb_resolve_shipped(struct zb_resolver *r)
{
	const struct zb_rules *l = &r->scope->fs_write;
	int rc = 0;

	for (size_t i = 0; !rc && i < l->n; i++) {
		struct target t = {0};
		struct zb_walk w = {0};

		rc = expand(r, &l->v[i], &t);
		if (!rc && !t.skip && !t.own) {
			rc = zb_resolve_walk(r, t.head, false, &w);
			if (!rc &&
			    zb_path_below(w.path, r->plan->extension_real))
				rc = ship(r, &l->v[i], &t, &w);
		}
		zb_walk_done(&w);
		target_done(&t);
	}
	return rc;
}

/* Programs before writes: what they run from is not for writing. */
int zb_resolve_grants(struct zb_resolver *r)
{
	const struct {
		const struct zb_rules *rules;
		int (*grant)(struct zb_resolver *, const struct zb_rule *);
	} lists[] = {
		{&r->scope->fs_read, grant_read},
		{&r->scope->fs_exec, grant_exec},
		{&r->scope->fs_write, grant_write},
	};
	int rc = 0;

	for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++)
		for (size_t i = 0; !rc && i < lists[l].rules->n; i++)
			rc = lists[l].grant(r, &lists[l].rules->v[i]);
	return rc;
}
