/* evaluator_words.c - a finding in words: the rule that decided, and the least
 * grant that would change it.
 *
 * A grant is named only if granting it would help: what a deny covers, what
 * cannot be granted to anybody, what needs --yes-i-mean-it, and what this
 * version does not build gets a reason instead. */
#include "evaluator_internal.h"

#include "cleanup.h"
#include "path_match.h"
#include "resolve.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

static const struct zb_place *place_at(const struct zb_plan *plan, int i)
{
	return i < 0 ? NULL : &plan->places[i];
}

/* The key of fs.* that an operation would need. */
static const char *key_of(enum zb_op op)
{
	if (op == ZB_OP_FS_READ)
		return "fs.read";
	return op == ZB_OP_FS_EXEC ? "fs.exec" : "fs.write";
}

static const char *files_of(const struct zb_plan *plan)
{
	return plan->scope.file ? plan->scope.file : "the scope";
}

/* The widest directory around @path of which it is true that no grant reaches
 * into it, but no wider than HOME, the project, or one name below /. */
static char *ungranted(const struct zb_plan *plan, const char *path)
{
	const char *from = NULL;
	const char *slash;

	if (plan->home_real && zb_path_below(path, plan->home_real))
		from = plan->home_real;
	if (plan->project && zb_path_below(path, plan->project) &&
	    (!from || zb_path_below(plan->project, from)))
		from = plan->project;
	slash = from ? path + strlen(from) : strchr(path + 1, '/');
	while (slash && *slash) {
		size_t n = (size_t)(slash - path);
		bool reached = false;

		for (size_t i = 0; i < plan->n_places && !reached; i++) {
			const struct zb_place *p = &plan->places[i];

			reached = p->kind == ZB_PLACE_GRANT &&
				  !strncmp(p->path, path, n) &&
				  (p->path[n] == '/' || !p->path[n]);
		}
		if (!reached)
			return zb_strndup(path, n);
		slash = strchr(slash + 1, '/');
	}
	return zb_strdup(path);
}

static const char *place_words(const struct zb_plan *plan,
			       const struct zb_place *p)
{
	switch (p->kind) {
	case ZB_PLACE_SYSTEM:
	case ZB_PLACE_RUNTIME:
		return "is shown read-only, as what the program needs to run";
	case ZB_PLACE_EXTENSION:
		return plan->state_beside
			       ? "is the extension's installed code"
			       : "is the extension's code, read-only under "
				 "fs.state \"apart\"";
	case ZB_PLACE_GRANT:
		return p->rights & ZB_MAY_WRITE ? "is granted"
		       : p->rights & ZB_MAY_EXEC
			       ? "is granted for reading and executing"
			       : "is granted for reading only";
	case ZB_PLACE_TEXT:
	case ZB_PLACE_DIR:
	case ZB_PLACE_PROC:
	case ZB_PLACE_DEV:
	case ZB_PLACE_LINK:
		return "is made by the sandbox";
	case ZB_PLACE_DATA:
	case ZB_PLACE_HOME:
	case ZB_PLACE_TMP:
	case ZB_PLACE_PIN:
		return "is the extension's own";
	}
	return "";
}

static void add_origin(struct zb_buf *b, const struct zb_origin *o)
{
	zb_buf_addf(b, "%s: ", o->file ? o->file : "built in");
}

static void verb_rule(const struct zb_plan *plan, const struct zb_query *q,
		      struct zb_buf *b)
{
	struct zb_asked a = zb_parse_verb(q->target);
	const struct zb_switch *s;

	if (a.verb == ZB_VERB_COUNT) {
		zb_buf_addf(b, "built in: nothing grants %s", q->target);
		return;
	}
	s = &plan->scope.verbs[a.verb];
	if (a.verb == ZB_VERB_INTERCEPT)
		zb_buf_addf(b, "%s: protocol.intercept does not grant %s",
			    files_of(plan), q->target + strlen("intercept:"));
	else if (!s->set)
		zb_buf_addf(b, "%s: nothing grants protocol.%s", files_of(plan),
			    zb_verb_name(a.verb));
	else if (s->is_list && a.has_name)
		zb_buf_addf(b, "%s: protocol.%s does not name %s",
			    s->origin.file ? s->origin.file : files_of(plan),
			    zb_verb_name(a.verb), a.name);
	else
		zb_buf_addf(b, "%s: protocol.%s is %s",
			    s->origin.file ? s->origin.file : files_of(plan),
			    zb_verb_name(a.verb), s->is_list ? "[]" : "false");
}

static void limit_rule(const struct zb_plan *plan, const struct zb_query *q,
		       struct zb_buf *b)
{
	enum zb_limit l;
	uint64_t amount;

	if (!zb_parse_limit(q->target, &l, &amount))
		return;
	add_origin(b, &plan->scope.limits[l].origin);
	zb_buf_addf(b, "limits.%s is %llu", zb_limit_name(l),
		    (unsigned long long)zb_plan_limit(plan, l));
}

/* The line that @p is there for, or that lets it be changed. */
static const struct zb_origin *origin_of(const struct zb_place *p,
					 const struct zb_query *q)
{
	bool change = q->op != ZB_OP_FS_READ && q->op != ZB_OP_FS_EXEC;

	return change && p->changed_by.file ? &p->changed_by : &p->origin;
}

static void only_rule(const struct zb_place *p, const struct zb_query *q,
		      struct zb_buf *b)
{
	const struct zb_strv *only =
		q->op == ZB_OP_FS_READ || q->op == ZB_OP_FS_EXEC
			? &p->only
			: &p->only_changes;

	zb_buf_addf(b, "%s grants only ", origin_of(p, q)->key);
	for (size_t i = 0; i < only->n; i++)
		zb_buf_addf(b, "%s%s", i ? ", " : "", only->v[i]);
}

static void place_rule(const struct zb_plan *plan, const struct zb_query *q,
		       const struct zb_finding *f, struct zb_buf *b)
{
	const struct zb_place *p = place_at(plan, f->place);

	if (!p)
		return;
	add_origin(b, origin_of(p, q));
	if (f->reason == ZB_R_ONLY)
		only_rule(p, q, b);
	else if (f->reason == ZB_R_PARTLY)
		zb_buf_addf(b,
			    "nothing can be executed in %s, into which a deny "
			    "or a pattern reaches",
			    p->path);
	else
		zb_buf_addf(b, "%s %s", p->path, place_words(plan, p));
}

static void hidden_rule(const struct zb_plan *plan, const struct zb_query *q,
			struct zb_buf *b)
{
	zb_auto(free) char *dir = q->op == ZB_OP_FS_EXEC
					  ? zb_strdup(q->target)
					  : ungranted(plan, q->target);
	bool itself = dir && !strcmp(dir, q->target);

	zb_buf_addf(b, "%s: nothing grants %s %s %s", files_of(plan),
		    key_of(q->op), itself ? "of" : "below",
		    dir ? dir : q->target);
}

/* The line that allows it, for what is no path. */
static const struct zb_origin *granted_by(const struct zb_plan *plan,
					  const struct zb_query *q)
{
	const struct zb_scope *s = &plan->scope;
	struct zb_asked a;
	enum zb_limit l;
	uint64_t amount;

	if (q->op == ZB_OP_LIMIT && zb_parse_limit(q->target, &l, &amount))
		return &s->limits[l].origin;
	for (size_t i = 0; q->op == ZB_OP_ENV && i < plan->n_env; i++)
		if (!strcmp(plan->env[i].name, q->target))
			return &plan->env[i].origin;
	if (q->op == ZB_OP_ENV) {
		const struct zb_rule *r = zb_env_rule(s, q->target);

		return r ? &r->origin : NULL;
	}
	if (q->op != ZB_OP_PROTO)
		return NULL;
	a = zb_parse_verb(q->target);
	for (size_t i = 0; a.verb == ZB_VERB_INTERCEPT && i < s->n_intercepts;
	     i++)
		if (a.has_name && !strcmp(s->intercepts[i].event, a.name) &&
		    s->intercepts[i].may.n)
			return &s->intercepts[i].may.v[0].origin;
	return a.verb < ZB_VERB_INTERCEPT ? &s->verbs[a.verb].origin : NULL;
}

/* The line of policy that decided, or NULL. */
static const struct zb_origin *decided_by(const struct zb_plan *plan,
					  const struct zb_query *q,
					  const struct zb_finding *f)
{
	const struct zb_place *p = place_at(plan, f->place);
	const struct zb_origin *o = f->deny ? &f->deny->origin
				    : p	    ? origin_of(p, q)
					    : granted_by(plan, q);

	return o && o->file ? o : NULL;
}

static void allowed_rule(const struct zb_plan *plan, const struct zb_query *q,
			 const struct zb_finding *f, struct zb_buf *b)
{
	const struct zb_origin *o = granted_by(plan, q);

	if (f->place >= 0)
		place_rule(plan, q, f, b);
	else if (o && o->file)
		zb_buf_addf(b, "%s: %s", o->file, o->key ? o->key : "");
	else
		zb_buf_adds(b, "built in");
}

static void add_rule(const struct zb_plan *plan, const struct zb_query *q,
		     const struct zb_finding *f, struct zb_buf *b)
{
	switch (f->reason) {
	case ZB_R_ALLOWED:
		allowed_rule(plan, q, f, b);
		break;
	case ZB_R_HIDDEN:
		hidden_rule(plan, q, b);
		break;
	case ZB_R_SKELETON:
		zb_buf_adds(b, "built in: the directory exists inside only "
			       "for what lies below it, read-only");
		break;
	case ZB_R_DENIED:
		add_origin(b, &f->deny->origin);
		zb_buf_addf(b, "fs.deny %s", f->deny->pattern);
		break;
	case ZB_R_NO_EXEC:
		zb_buf_addf(b, "%s: nothing grants fs.exec of %s",
			    files_of(plan), q->target);
		break;
	case ZB_R_MOUNT:
		zb_buf_addf(b,
			    "built in: %s is a mount of its own, it can be "
			    "neither renamed nor removed",
			    q->target);
		break;
	case ZB_R_READONLY:
	case ZB_R_ONLY:
	case ZB_R_PARTLY:
	case ZB_R_NO_RIGHT:
		place_rule(plan, q, f, b);
		break;
	case ZB_R_NET:
		zb_buf_addf(b, "%s: the sandbox's network is empty",
			    files_of(plan));
		break;
	case ZB_R_SOCKET:
		zb_buf_addf(b, "%s: nothing grants net.unix %s", files_of(plan),
			    q->target);
		break;
	case ZB_R_SYSCALL:
		zb_buf_addf(b, "built in: the system call %s is closed",
			    q->target);
		break;
	case ZB_R_ENV:
		zb_buf_addf(b, "%s: env.pass does not name %s", files_of(plan),
			    q->target);
		break;
	case ZB_R_VERB:
		verb_rule(plan, q, b);
		break;
	case ZB_R_LIMIT:
		limit_rule(plan, q, b);
		break;
	case ZB_R_OTHER:
		zb_buf_addf(b, "built in: %s", zb_op_name(q->op));
		break;
	}
}

/* A rule is shown as it is, and names in it are a stranger's. */
static char *rule_text(const struct zb_plan *plan, const struct zb_query *q,
		       const struct zb_finding *f)
{
	struct zb_buf raw = {0}, b = {0};

	add_rule(plan, q, f, &raw);
	zb_text_escape(&b, zb_buf_str(&raw), raw.len, 0);
	zb_buf_done(&raw);
	return zb_buf_steal(&b);
}

/* Grants */

struct grant {
	const char *key;
	char *value;
	const char *why_not;
};

/* As a user would write it, and as it will be the same elsewhere. */
static char *pretty(const struct zb_plan *plan, const char *path)
{
	const struct {
		const char *dir, *name;
	} shorter[] = {
		{plan->extension_real, "${extension_dir}"},
		{plan->project, "${project}"},
		{plan->home_real, "~"},
	};

	for (size_t i = 0; i < sizeof(shorter) / sizeof(shorter[0]); i++) {
		const char *dir = shorter[i].dir;

		if (dir && strcmp(dir, "/") != 0 && zb_path_below(path, dir))
			return zb_strf("%s%s", shorter[i].name,
				       path + strlen(dir));
	}
	return zb_strdup(path);
}

/* Reasons that no scope can change, by where the target lies. */
static const char *never(const struct zb_plan *plan, const struct zb_query *q)
{
	const char *t = q->target;
	const char *zot = plan->zot_home_real ? plan->zot_home_real : "/\001";
	size_t n = strlen(zot);
	const char *rest = zb_path_below(t, zot) ? t + n : "";

	if (zb_path_below(rest, "/zotbox") || zb_path_below(rest, "/logs"))
		return "the supervisor's own directories cannot be granted";
	if (zb_path_below(t, "/proc") || zb_path_below(t, "/dev"))
		return "the sandbox has its own /proc and /dev";
	if (!strcmp(t, "/tmp"))
		return "/tmp inside is the extension's own";
	if (zb_pattern_is_glob(t))
		return "its name has * or ? in it; grant the directory";
	if (!zb_text_is_plain(t, strlen(t)))
		return "its name is not plain text; grant the directory";
	if ((plan->home_real && zb_path_below(plan->home_real, t)) ||
	    zb_path_below(zot, t))
		return "it is or holds HOME or zot's own directory, which "
		       "takes --yes-i-mean-it";
	if (!strcmp(rest, "/auth.json"))
		return "it holds zot's credentials, which takes "
		       "--yes-i-mean-it";
	return NULL;
}

/* Does @entry of PATH mean the directory @dir, perhaps by a link (/bin)? */
static bool means(const struct zb_plan *plan, const char *entry, size_t n,
		  const char *dir)
{
	if (strlen(dir) == n && !strncmp(entry, dir, n))
		return true;
	for (size_t i = 0; i < plan->n_places; i++) {
		const struct zb_place *p = &plan->places[i];
		zb_auto(free) char *from = NULL, *to = NULL;

		if (p->kind != ZB_PLACE_LINK || strlen(p->path) != n ||
		    strncmp(p->path, entry, n) != 0)
			continue;
		from = zb_path_dir(p->path);
		to = from ? zb_path_join(from, p->link_to) : NULL;
		if (to && !strcmp(to, dir))
			return true;
	}
	return false;
}

static bool on_path(const struct zb_plan *plan, const char *path)
{
	zb_auto(free) char *dir = zb_path_dir(path);
	const char *s = "";

	for (size_t i = 0; i < plan->n_env; i++)
		if (!strcmp(plan->env[i].name, "PATH"))
			s = plan->env[i].value;
	while (dir && *s) {
		size_t k = strcspn(s, ":");

		if (means(plan, s, k, dir))
			return true;
		s += k + (s[k] == ':');
	}
	return false;
}

/* Run by zot, git, an editor or a shell, and so closed below any grant? */
static bool is_run(const struct zb_plan *plan, const char *path)
{
	zb_auto(free) char *own = zb_path_join(
		plan->zot_home_real ? plan->zot_home_real : "/", "extensions");
	bool run = !own || (plan->zot_home_real && zb_path_below(path, own));

	for (size_t i = 0; zb_carve_outs[i]; i++)
		run = run || zb_pattern_match(zb_carve_outs[i], path);
	return run;
}

/* Directories that nobody is advised to let be written to. */
static const char *const systems[] = {
	"/bin", "/boot", "/etc", "/lib",     "/lib64",	   "/opt",
	"/run", "/sbin", "/usr", "/var/lib", "/var/spool", NULL};

static bool is_system(const char *dir)
{
	bool yes = !strcmp(dir, "/");

	for (size_t i = 0; systems[i]; i++)
		yes = yes || zb_path_below(dir, systems[i]);
	return yes;
}

/* Does the name of a shipped file say that it keeps state? Only then is it
 * suggested for writing: anything else may be code, and a grant of code is a
 * grant of all that the extension may ever do. */
static bool is_state_file(const char *name)
{
	static const char *const kinds[] = {
		".json", ".toml", ".yaml",   ".yml", ".ini", ".conf", ".txt",
		".csv",	 ".db",	  ".sqlite", ".log", ".dat", ".md",
	};
	const char *dot = strrchr(name, '.');

	if (!dot || !strcmp(name, "package.json") ||
	    !strcmp(name, "permissions.json"))
		return false;
	for (size_t i = 0; i < ZB_ARRAY_LEN(kinds); i++)
		if (!strcmp(dot, kinds[i]))
			return true;
	return false;
}

static const char own_words[] = "zotbox itself runs or reads what stands there";

/* Names come and go by a grant of their directory. */
static void grant_directory(const struct zb_plan *plan,
			    const struct zb_query *q, const struct zb_place *p,
			    struct grant *g)
{
	bool names = q->op != ZB_OP_FS_WRITE && q->op != ZB_OP_FS_META;
	zb_auto(free) char *dir =
		names ? zb_path_dir(q->target) : zb_strdup(q->target);
	struct zb_query there = {.op = q->op, .target = dir};

	if (!dir)
		return;
	if (p && p->kind == ZB_PLACE_EXTENSION)
		g->why_not = "a shipped directory cannot be made writable; "
			     "name its files";
	else if (is_system(dir))
		g->why_not = "it lies in a directory of the system; if that "
			     "is meant, grant the directory by its name";
	else if (zb_plan_own(plan, dir, NULL))
		g->why_not = own_words;
	else
		g->why_not = never(plan, &there);
	if (g->why_not)
		return;
	g->key = "fs.write";
	g->value = pretty(plan, dir);
}

static void grant_change(const struct zb_plan *plan, const struct zb_query *q,
			 const struct zb_finding *f, struct grant *g)
{
	const struct zb_place *p = place_at(plan, f->place);

	if (p && p->kind == ZB_PLACE_TEXT) {
		g->why_not = "the file is made by the sandbox";
	} else if (p && (p->kind == ZB_PLACE_SYSTEM ||
			 p->kind == ZB_PLACE_RUNTIME)) {
		g->why_not = "what the program runs from stays read-only";
	} else if (p && p->kind == ZB_PLACE_EXTENSION && !plan->state_beside) {
		g->why_not = "the extension's code is read-only; it can keep "
			     "its files in its data directory";
	} else if (p && p->kind == ZB_PLACE_EXTENSION && q->exists &&
		   !is_state_file(zb_path_name(q->target))) {
		g->why_not = "it is installed code: what may write it is "
			     "another extension at its next start";
	} else if (p && p->kind == ZB_PLACE_EXTENSION &&
		   !strcmp(zb_path_name(q->target), "extension.json")) {
		g->why_not = "the manifest cannot be granted for writing";
	} else if ((q->op != ZB_OP_FS_WRITE && q->op != ZB_OP_FS_META) ||
		   q->is_dir) {
		grant_directory(plan, q, p, g);
	} else if (zb_plan_own(plan, q->target, NULL)) {
		g->why_not = own_words;
	} else {
		g->key = "fs.write";
		g->value = pretty(plan, q->target);
	}
}

/* A deny stands above every grant, whatever else is missing. */
static bool is_denied(const struct zb_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n_denies; i++)
		if (!plan->denies[i].built_in &&
		    zb_pattern_match(plan->denies[i].pattern, path))
			return true;
	return false;
}

/* Names that are run, and the directory of zot's own extensions, which not even
 * that opens. */
static const char *why_run(const struct zb_plan *plan, const char *target)
{
	const char *zot = plan->zot_home_real;

	if (zot && zb_path_below(target, zot) &&
	    zb_path_below(target + strlen(zot), "/extensions"))
		return "zot runs what stands there; it cannot be granted for "
		       "writing";
	return "zot, git, an editor or a shell runs what stands there; it "
	       "takes --yes-i-mean-it, by its own name";
}

static void grant_fs(const struct zb_plan *plan, const struct zb_query *q,
		     const struct zb_finding *f, struct grant *g)
{
	static const char wins[] =
		"fs.deny wins over every grant: edit the scope";
	const struct zb_place *p = place_at(plan, f->place);

	/* The user's deny first: it stays, even when the name is granted. */
	if (is_denied(plan, q->target)) {
		g->why_not = wins;
		return;
	}
	if (q->op != ZB_OP_FS_READ && q->op != ZB_OP_FS_EXEC &&
	    f->reason != ZB_R_MOUNT && !(p && p->kind == ZB_PLACE_EXTENSION) &&
	    ((f->deny && f->deny->built_in && !f->deny->origin.file) ||
	     is_run(plan, q->target))) {
		g->why_not = why_run(plan, q->target);
		return;
	}
	if (f->reason == ZB_R_DENIED) {
		g->why_not = wins;
		return;
	}
	g->why_not = f->reason == ZB_R_MOUNT ? "it is a mount of the sandbox"
					     : never(plan, q);
	if (g->why_not)
		return;
	if (f->reason == ZB_R_PARTLY) {
		g->why_not = "the kernel cannot execute from a directory into "
			     "which a deny or a pattern reaches";
	} else if (q->op == ZB_OP_FS_READ) {
		g->key = "fs.read";
		g->value = pretty(plan, q->target);
	} else if (q->op == ZB_OP_FS_EXEC && p && p->kind == ZB_PLACE_TEXT) {
		g->why_not = "the file is made by the sandbox";
	} else if (q->op == ZB_OP_FS_EXEC) {
		g->key = "fs.exec";
		g->value = on_path(plan, q->target)
				   ? zb_strdup(zb_path_name(q->target))
				   : pretty(plan, q->target);
	} else {
		grant_change(plan, q, f, g);
	}
}

static void grant_verb(const struct zb_plan *plan, const struct zb_query *q,
		       struct grant *g, char **key)
{
	struct zb_asked a = zb_parse_verb(q->target);

	if (a.verb == ZB_VERB_COUNT ||
	    !zb_text_is_plain(q->target, strlen(q->target))) {
		g->why_not = "no scope grants it";
		return;
	}
	if (a.verb == ZB_VERB_SLASH && a.has_name &&
	    zb_slash_forbidden(a.name)) {
		g->why_not = "this command cannot be granted to an extension";
		return;
	}
	if (a.verb == ZB_VERB_INTERCEPT) {
		if (!a.has_name || !a.part) {
			g->why_not = "name what the answer may do: block, "
				     "replace or modify:TOOL";
			return;
		}
		*key = zb_strf("protocol.intercept.%s", a.name);
		g->value = zb_strdup(a.part);
	} else {
		const struct zb_switch *s = &plan->scope.verbs[a.verb];
		bool lists = s->is_list || a.verb == ZB_VERB_EVENTS ||
			     a.verb == ZB_VERB_SLASH ||
			     a.verb == ZB_VERB_CALL_TOOL;

		if (lists && !a.has_name) {
			g->why_not = "it is granted by name";
			return;
		}
		*key = zb_strf("protocol.%s", zb_verb_name(a.verb));
		g->value = zb_strdup(lists ? a.name : "true");
	}
	g->why_not = zb_scope_flag_why(*key, g->value);
	g->key = g->why_not ? NULL : *key;
}

static void find_grant(const struct zb_plan *plan, const struct zb_query *q,
		       const struct zb_finding *f, struct grant *g, char **key)
{
	switch (f->reason) {
	case ZB_R_NET:
	case ZB_R_SOCKET:
		g->why_not = "this version grants no network";
		break;
	case ZB_R_SYSCALL:
		g->why_not = "no scope grants system calls";
		break;
	case ZB_R_OTHER:
		g->why_not = "no scope grants it";
		break;
	case ZB_R_ENV:
		g->key = "env.pass";
		g->value = zb_strdup(q->target);
		break;
	case ZB_R_VERB:
		grant_verb(plan, q, g, key);
		break;
	case ZB_R_LIMIT:
		*key = zb_strf("limits.%.*s", (int)strcspn(q->target, ":"),
			       q->target);
		g->key = *key;
		g->value = zb_strdup(strchr(q->target, ':') + 1);
		break;
	case ZB_R_ALLOWED:
		break;
	case ZB_R_HIDDEN:
	case ZB_R_SKELETON:
	case ZB_R_READONLY:
	case ZB_R_DENIED:
	case ZB_R_ONLY:
	case ZB_R_NO_EXEC:
	case ZB_R_PARTLY:
	case ZB_R_MOUNT:
	case ZB_R_NO_RIGHT:
		grant_fs(plan, q, f, g);
		break;
	}
}

void zb_evaluate(const struct zb_plan *plan, const struct zb_query *q,
		 struct zb_answer *out)
{
	struct zb_finding f = zb_judge_query(plan, q);
	struct grant g = {0};
	char *key = NULL;

	*out = (struct zb_answer){.verdict = f.verdict,
				  .place = f.place,
				  .err_no = f.err_no,
				  .floor = f.floor,
				  .rule = rule_text(plan, q, &f),
				  .origin = decided_by(plan, q, &f)};
	if (f.verdict != ZB_DENY)
		return;
	find_grant(plan, q, &f, &g, &key);
	if (g.key && g.value) {
		out->grant_key = key ? key : zb_strdup(g.key);
		out->grant_value = g.value;
		return;
	}
	free(key);
	free(g.value);
	out->why_not = zb_strdup(g.why_not ? g.why_not : "out of memory");
}

void zb_answer_done(struct zb_answer *a)
{
	free(a->rule);
	free(a->grant_key);
	free(a->grant_value);
	free(a->why_not);
	*a = (struct zb_answer){0};
}
