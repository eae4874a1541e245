/* prepare.c - from a name or a path to a plan that can be started.
 *
 * The order is the one of trust: who is it (NAME, box, lock); is its code what
 * the user installed; what did the user grant; what does the host have; may
 * all that be done (the resolver); and only then are directories made. Code
 * that changed is not even parsed.
 *
 * Breadth: a grant that needed --yes-i-mean-it is remembered in the box, in
 * meant.json, a copy of the scope that was confirmed. Later every line that
 * stands there too is taken as meant, and everything else is judged as if the
 * flag were not given: a confirmed "~" does not open the door for "/". */
#include "config.h"

#include "prepare.h"

#include "chain.h"
#include "cleanup.h"
#include "fdutil.h"
#include "granted_file.h"
#include "hostfs.h"
#include "lock.h"
#include "path_match.h"
#include "runtime.h"
#include "staging.h"
#include "stubs.h"
#include "swap.h"
#include "text.h"
#include "trust.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <nettle/sha2.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_FILE     ((size_t)1 << 20)
#define MAX_ENTRIES  1000
#define MAX_EXPAND   256
#define LOCK_WAIT_MS 5000
#define FULL_RUNS    3
#define LARGE_DIR    4096 /* one block */

extern char **environ;

/* One preparation. */
struct job {
	const struct zb_store *store;
	const struct zb_target *target;
	struct zb_prepared *out;
	struct zb_error *err;
	char *box_name; /* NAME or @HASH */
	char *real;	/* of the extension's directory */
	char *shipped;	/* box/manifest.json, NULL: shown as it is */
	char *tree;	/* tree hash of the lock, NULL: none */
	char *path_env; /* PATH for bare names */
	int name_lock;	/* shared while we read */
	char *box_real; /* canonical */
	struct zb_stubs_state box_state;
	bool has_asked; /* there is a permissions.json */
	struct zb_scope asked;
	struct zb_chain chain;
	struct zb_program program;
	struct zb_need *base;
	size_t n_base;
	struct zb_strv base_quiet, entries, asked_env, late_notices;
};

static int no_memory(struct job *j)
{
	return zb_fail(j->err, ZB_ELIMIT, "out of memory");
}

static char *in_box(struct job *j, const char *file)
{
	return zb_store_box(j->store, j->box_name, file);
}

static bool is_file(const char *dir, const char *name)
{
	zb_auto(free) char *path = zb_strf("%s/%s", dir, name);
	struct stat st;

	return path && !stat(path, &st) && S_ISREG(st.st_mode);
}

/* ---- who is it ----------------------------------------------------------- */

static int refuse_name(struct job *j, const char *why)
{
	return zb_fail(j->err, ZB_EPOLICY, "extension \"%s\" %s",
		       j->target->name, why);
}

/* $ZOT_HOME/extensions/NAME, a directory and no link. */
static int find_name(struct job *j)
{
	const char *name = j->target->name;
	struct stat st;
	int rc;

	if (!zb_name_valid(name)) {
		struct zb_buf b = {0};

		zb_text_escape(&b, name, strlen(name), 100);
		zb_fail(j->err, ZB_EUSAGE,
			"\"%s\" is no name of an extension: letters, digits, "
			". _ and -, at most 64, no dot at the end",
			zb_buf_str(&b));
		zb_buf_done(&b);
		return ZB_EUSAGE;
	}
	j->box_name = zb_strdup(name);
	j->out->dir = zb_strf("%s/%s", j->store->extensions, name);
	if (!j->box_name || !j->out->dir)
		return no_memory(j);
	if (lstat(j->out->dir, &st))
		return zb_fail(j->err, ZB_EPOLICY,
			       "extension \"%s\" is not installed: there is no "
			       "%s",
			       name, j->out->dir);
	if (!S_ISDIR(st.st_mode))
		return zb_fail(j->err, ZB_EPOLICY,
			       "%s is %s, and zotbox runs only what was "
			       "installed; install what it leads to",
			       j->out->dir,
			       S_ISLNK(st.st_mode) ? "a symbolic link"
						   : "no directory");
	if (!j->target->held) {
		rc = zb_settle_swap(j->store, name, j->err);
		if (!rc)
			rc = zb_store_lock(j->store, name, false, LOCK_WAIT_MS,
					   &j->name_lock, j->err);
		if (rc)
			return rc;
	}
	j->real = zb_host_resolve("", j->out->dir, NULL);
	return j->real ? 0 : zb_fail_sys(j->err, errno, "%s", j->out->dir);
}

/* A directory that is not installed. */
static int find_path(struct job *j)
{
	zb_auto(free) char *given = realpath(j->target->path, NULL);
	char cwd[PATH_MAX];
	struct stat st;

	if (!given || stat(given, &st))
		return zb_fail(j->err, ZB_EUSAGE, "%s: %s", j->target->path,
			       strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return zb_fail(j->err, ZB_EUSAGE, "%s: is no directory",
			       j->target->path);
	j->real = zb_strdup(given);
	/* As spelled, for the paths that the extension sees. */
	if (strstr(j->target->path, ".."))
		j->out->dir = zb_strdup(given);
	else
		j->out->dir = zb_path_join(getcwd(cwd, sizeof(cwd)) ? cwd : "/",
					   j->target->path);
	j->box_name = zb_store_path_box_name(given);
	if (!j->real || !j->out->dir || !j->box_name)
		return no_memory(j);
	if (zb_utf8_check(j->out->dir, strlen(j->out->dir)) <
	    strlen(j->out->dir))
		return zb_fail(j->err, ZB_EUSAGE,
			       "%s: its name is not UTF-8, and the extension "
			       "protocol cannot carry it",
			       j->target->path);
	return 0;
}

static int find(struct job *j)
{
	int rc = j->target->name ? find_name(j) : find_path(j);

	if (rc)
		return rc;
	j->out->box = in_box(j, "");
	return j->out->box ? 0 : no_memory(j);
}

/* ---- manifests ----------------------------------------------------------- */

static int parse_manifest(struct job *j, const char *path,
			  struct zb_manifest *out)
{
	bool theme = is_file(j->out->dir, "theme.json") ||
		     is_file(j->out->dir, "themes/theme.json");
	struct zb_buf text = {0};
	int rc = zb_read_file(path, MAX_FILE, &text, j->err);

	if (!rc) {
		rc = zb_manifest_parse(out, zb_buf_str(&text), text.len, theme,
				       j->err);
		if (rc)
			zb_wrap(j->err, "%s", path);
	} else if (rc == ZB_ESYS && j->err && j->err->sys == ENOENT) {
		rc = zb_fail(j->err, ZB_EPOLICY, "%s is missing", path);
	}
	zb_buf_done(&text);
	return rc;
}

/* What zot starts must be us, under this very name. */
static int check_installed(struct job *j)
{
	zb_auto(free) char *path = zb_strf("%s/extension.json", j->out->dir);
	struct zb_manifest m = {0};
	int rc = path ? parse_manifest(j, path, &m) : no_memory(j);

	if (rc)
		return rc;
	if (strcmp(m.name, j->target->name) != 0)
		rc = zb_fail(j->err, ZB_EPOLICY,
			     "%s names the extension \"%s\": it is not the one "
			     "that was installed here",
			     path, m.name);
	else if (m.exec && !m.wrapped)
		rc = zb_fail(j->err, ZB_EPOLICY,
			     "extension \"%s\" is unconfined: %s does not "
			     "start it through zotbox. To confine it again: "
			     "zotbox ext doctor --repair %s, or remove and "
			     "install it",
			     m.name, path, m.name);
	zb_manifest_done(&m);
	return rc;
}

/* The shipped manifest and scope.json must be there, or zotbox never installed
 * it. */
static int check_box(struct job *j)
{
	zb_auto(free) char *scope = in_box(j, "scope.json");

	j->shipped = in_box(j, "manifest.json");
	if (!scope || !j->shipped)
		return no_memory(j);
	if (!j->target->held && zb_is_marked(j->store, j->target->name))
		return refuse_name(j, "was not installed to the end, or is "
				      "half removed: install it again");
	if (access(j->shipped, F_OK))
		return refuse_name(j, "was not installed by zotbox (it has no "
				      "manifest.json in its box): plain zot "
				      "runs it unconfined. Remove it and "
				      "install it with zotbox ext install");
	if (access(scope, F_OK) && !j->target->scope && !j->target->policy)
		return refuse_name(j, "has no scope.json: nothing says what it "
				      "may do. Remove it and install it again");
	return check_installed(j);
}

static int read_manifest(struct job *j)
{
	zb_auto(free) char *own = zb_strf("%s/extension.json", j->out->dir);
	struct zb_manifest *m = &j->out->manifest;
	int rc;

	if (!own)
		return no_memory(j);
	rc = parse_manifest(j, j->shipped ? j->shipped : own, m);
	if (rc)
		return rc;
	if (!m->exec)
		return zb_fail(j->err, ZB_EPOLICY,
			       "extension \"%s\" is theme-only: there is "
			       "nothing to start",
			       m->name);
	if (!j->shipped && m->wrapped)
		return zb_fail(j->err, ZB_EUSAGE,
			       "%s is the installed extension \"%s\": give its "
			       "name instead of the path",
			       j->out->dir, m->name);
	if (m->wrapped)
		return zb_fail(j->err, ZB_EPOLICY,
			       "extension \"%s\" starts zotbox itself",
			       m->name);
	return 0;
}

/* ---- is it what was installed -------------------------------------------- */

/* The way out comes first: a message has an end, a list of files may not. */
static int say_changed(struct job *j)
{
	struct zb_buf b = {0};
	const struct zb_strv *c = &j->out->changed;
	size_t i;

	for (i = 0; i < c->n && i < 10 && b.len < 900; i++)
		zb_buf_addf(&b, "\n  %s", c->v[i]);
	if (c->n > i)
		zb_buf_addf(&b, "\n  and %zu more", c->n - i);
	zb_fail(j->err, ZB_EPOLICY,
		"extension \"%s\" was changed since it was installed, and does "
		"not start under a grant that was given to other code. To "
		"fetch it again from where it came: zotbox ext update %s%s",
		j->target->name, j->target->name, zb_buf_str(&b));
	zb_buf_done(&b);
	return ZB_EPOLICY;
}

/* What a project brings along starts as it was approved, or not at all. */
static int check_trust(struct job *j)
{
	const char *path = j->target->path;

	return zb_is_project_local(j->store, path)
		       ? zb_trust_check(j->store, path, &j->out->changed,
					j->err)
		       : 0;
}

static int check_lock(struct job *j)
{
	zb_auto(free) char *path = in_box(j, "lock.json");
	struct zb_lock lock = {0};
	int rc = path ? zb_lock_read(&lock, path, j->err) : no_memory(j);

	if (rc == ZB_ESYS || rc == ZB_EUSAGE) {
		zb_wrap(j->err,
			"extension \"%s\": its lock cannot be read; "
			"install it again",
			j->target->name);
		if (j->err)
			j->err->code = ZB_EPOLICY;
		return ZB_EPOLICY;
	}
	if (!rc)
		rc = zb_lock_compare(&lock, j->out->dir, j->shipped,
				     &j->out->changed, j->err);
	if (!rc && j->out->changed.n)
		rc = say_changed(j);
	if (!rc)
		j->tree = zb_steal(&lock.tree);
	zb_lock_done(&lock);
	return rc;
}

static int check_integrity(struct job *j)
{
	return j->target->name ? check_lock(j) : check_trust(j);
}

/* ---- what is granted, what is asked for ---------------------------------- */

/* The stored scope of a path is there only after `trust` or `allow`. */
static int read_scope(struct job *j)
{
	const struct zb_target *t = j->target;
	zb_auto(free) char *stored = in_box(j, "scope.json");
	zb_auto(free) char *cwd = getcwd(NULL, 0);
	zb_auto(free) char *given = NULL;
	int rc = 0;

	if (!stored)
		return no_memory(j);
	if (!cwd)
		cwd = zb_strdup("/");
	if (t->policy)
		rc = zb_chain_add(&j->chain, t->policy, cwd ? cwd : "/",
				  j->err);
	if (rc)
		return rc;
	if (t->scope) {
		given = zb_path_join(cwd ? cwd : "/", t->scope);
		return given ? zb_chain_add_file(&j->chain, given, t->scope,
						 t->policy, j->err)
			     : no_memory(j);
	}
	if (t->policy)
		return 0;
	if (!access(stored, F_OK))
		return zb_chain_add_file(&j->chain, stored, "scope.json", NULL,
					 j->err);
	return zb_chain_add(&j->chain, "strict", "/", j->err);
}

/* permissions.json asks and grants nothing: a malformed one is only said. */
static int read_asked(struct job *j)
{
	zb_auto(free) char *path = zb_strf("%s/permissions.json", j->out->dir);
	struct zb_buf text = {0};
	struct zb_error err = {0};
	int rc = 0;

	if (!path)
		return no_memory(j);
	if (zb_read_file(path, MAX_FILE, &text, &err)) {
		if (err.sys != ENOENT)
			rc = zb_strv_addf(&j->late_notices,
					  "permissions.json cannot be read: %s",
					  err.msg);
	} else if (zb_scope_parse(&j->asked, "permissions.json",
				  zb_buf_str(&text), text.len, NULL, &err)) {
		rc = zb_strv_addf(&j->late_notices,
				  "what the extension asks for is not "
				  "understood: %s",
				  err.msg);
	} else {
		j->has_asked = true;
		for (size_t i = 0; !rc && i < j->asked.env_pass.n; i++)
			rc = zb_strv_add(&j->asked_env,
					 j->asked.env_pass.v[i].value);
	}
	zb_buf_done(&text);
	return rc ? no_memory(j) : 0;
}

static int ask_for(struct job *j, const char *key, const char *value)
{
	return zb_strv_addf(&j->out->requested, "%s %s", key, value)
		       ? no_memory(j)
		       : 0;
}

static int compare_list(struct job *j, const char *key,
			const struct zb_rules *asked,
			const struct zb_rules *granted,
			const struct zb_rules *also)
{
	for (size_t i = 0; i < asked->n; i++) {
		const char *v = asked->v[i].value;

		if (zb_rules_has(granted, v) || (also && zb_rules_has(also, v)))
			continue;
		if (ask_for(j, key, v))
			return ZB_ELIMIT;
	}
	return 0;
}

static int compare_env_set(struct job *j, const struct zb_scope *asked,
			   const struct zb_scope *granted)
{
	for (size_t i = 0; i < asked->n_env_set; i++) {
		const struct zb_env_set *a = &asked->env_set[i];
		bool same = false;

		for (size_t k = 0; k < granted->n_env_set && !same; k++)
			same = !strcmp(a->name, granted->env_set[k].name) &&
			       !strcmp(a->value, granted->env_set[k].value);
		if (!same && zb_strv_addf(&j->out->requested, "env.set %s=%s",
					  a->name, a->value))
			return no_memory(j);
	}
	return 0;
}

static int compare_verb(struct job *j, enum zb_verb v)
{
	const struct zb_switch *asked = &j->asked.verbs[v];
	zb_auto(free) char *key = zb_strf("protocol.%s", zb_verb_name(v));
	int rc = 0;

	if (!key)
		return no_memory(j);
	if (!asked->set)
		return 0;
	if (asked->any)
		return j->out->plan.scope.verbs[v].any ? 0
						       : ask_for(j, key, "any");
	if (!asked->is_list)
		return asked->on && !zb_plan_verb(&j->out->plan, v, NULL)
			       ? ask_for(j, key, "true")
			       : 0;
	for (size_t i = 0; !rc && i < asked->names.n; i++)
		if (!zb_plan_verb(&j->out->plan, v, asked->names.v[i].value))
			rc = ask_for(j, key, asked->names.v[i].value);
	return rc;
}

static int compare_intercept(struct job *j, const struct zb_intercept *in)
{
	zb_auto(free) char *key = zb_strf("protocol.intercept.%s", in->event);
	int rc = key ? 0 : no_memory(j);

	for (size_t i = 0; !rc && i < in->may.n; i++)
		if (!zb_plan_intercept(&j->out->plan, in->event,
				       in->may.v[i].value))
			rc = ask_for(j, key, in->may.v[i].value);
	return rc;
}

static int compare_limit(struct job *j, enum zb_limit l)
{
	const struct zb_limit_value *asked = &j->asked.limits[l];
	uint64_t want = asked->none ? UINT64_MAX : asked->value;
	zb_auto(free) char *key = zb_strf("limits.%s", zb_limit_name(l));
	char value[32] = "null";

	if (!key)
		return no_memory(j);
	if (!asked->set || want <= zb_plan_limit(&j->out->plan, l))
		return 0;
	if (!asked->none)
		snprintf(value, sizeof(value), "%llu",
			 (unsigned long long)asked->value);
	return ask_for(j, key, value);
}

/* What it asks for and does not get. */
static int compare_asked(struct job *j)
{
	const struct zb_scope *a = &j->asked, *g = &j->out->plan.scope;
	const struct {
		const char *key;
		const struct zb_rules *asked, *granted, *also;
	} lists[] = {
		{"fs.read", &a->fs_read, &g->fs_read, &g->fs_write},
		{"fs.write", &a->fs_write, &g->fs_write, NULL},
		{"fs.exec", &a->fs_exec, &g->fs_exec, NULL},
		{"net.connect", &a->net_connect, &g->net_connect, NULL},
		{"net.listen", &a->net_listen, &g->net_listen, NULL},
		{"net.unix", &a->net_unix, &g->net_unix, NULL},
		{"env.pass", &a->env_pass, &g->env_pass, NULL},
	};
	int rc = 0;

	if (!j->has_asked)
		return 0;
	for (size_t i = 0; !rc && i < ZB_ARRAY_LEN(lists); i++)
		rc = compare_list(j, lists[i].key, lists[i].asked,
				  lists[i].granted, lists[i].also);
	if (!rc && a->state_set && a->state_beside && !g->state_beside)
		rc = ask_for(j, "fs.state", "beside");
	if (!rc)
		rc = compare_env_set(j, a, g);
	for (int v = 0; !rc && v < ZB_VERB_COUNT; v++)
		if (v != ZB_VERB_INTERCEPT)
			rc = compare_verb(j, (enum zb_verb)v);
	for (size_t i = 0; !rc && i < a->n_intercepts; i++)
		rc = compare_intercept(j, &a->intercepts[i]);
	if (!rc && a->on_failure_set && a->on_failure_block &&
	    !g->on_failure_block)
		rc = ask_for(j, "protocol.on_failure", "block");
	for (int l = 0; !rc && l < ZB_LIMIT_COUNT; l++)
		rc = compare_limit(j, (enum zb_limit)l);
	return rc;
}

/* ---- the host as the resolver sees it ------------------------------------ */

void zb_facts_look(void *ctx, const char *path, struct zb_path_fact *out)
{
	char text[PATH_MAX];
	struct stat st;
	ssize_t n;

	(void)ctx;
	*out = (struct zb_path_fact){0};
	if (lstat(path, &st))
		return;
	out->exists = true;
	if (S_ISLNK(st.st_mode)) {
		out->is_link = true;
		n = readlink(path, text, sizeof(text));
		out->link = n < 0 ? NULL : zb_strndup(text, (size_t)n);
		out->exists = !stat(path, &st);
		if (!out->exists)
			return;
	}
	out->is_dir = S_ISDIR(st.st_mode);
	out->is_file = S_ISREG(st.st_mode);
	out->size = (uint64_t)st.st_size;
	/* Of what is one's own one can change the mode. */
	out->held = out->is_dir && !out->is_link && geteuid() &&
		    st.st_uid != geteuid() &&
		    faccessat(AT_FDCWD, path, W_OK, AT_EACCESS);
}

void zb_facts_expand(void *ctx, const char *pattern, struct zb_strv *out)
{
	glob_t g = {0};

	(void)ctx;
	if (!glob(pattern, 0, NULL, &g))
		for (size_t i = 0; i < g.gl_pathc && i < MAX_EXPAND; i++)
			zb_strv_add(out, g.gl_pathv[i]);
	globfree(&g);
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

static bool list(void *ctx, const char *dir, size_t max, struct zb_strv *out)
{
	struct stat st;
	struct dirent *e;
	bool ok;
	DIR *d;

	(void)ctx;
	/* Most are large: that is seen without reading them, by their size or
	 * by how many directories they hold. */
	if (stat(dir, &st) || st.st_size > LARGE_DIR || st.st_nlink > max + 2)
		return false;
	d = opendir(dir);
	ok = d;
	while (ok && (e = readdir(d)))
		if (!is_dots(e->d_name))
			ok = max-- && !zb_strv_add(out, e->d_name);
	if (d)
		closedir(d);
	return ok;
}

static int find_program(void *ctx, const char *name, struct zb_program *out,
			struct zb_error *err)
{
	const struct job *j = ctx;

	return zb_runtime_program(out, name, j->path_env, err);
}

static int by_string(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Top-level names of the extension's directory, sorted. */
static int list_entries(struct job *j)
{
	DIR *d = opendir(j->real);
	struct dirent *e;
	int rc = 0;

	if (!d)
		return zb_fail_sys(j->err, errno, "read %s", j->real);
	while (!rc && (e = readdir(d))) {
		if (is_dots(e->d_name) || !strcmp(e->d_name, ".git"))
			continue;
		if (j->entries.n >= MAX_ENTRIES)
			rc = zb_fail(j->err, ZB_ELIMIT,
				     "%s has more than %d entries at its top",
				     j->real, MAX_ENTRIES);
		else if (zb_strv_add(&j->entries, e->d_name))
			rc = no_memory(j);
	}
	closedir(d);
	if (!rc && j->entries.n)
		qsort(j->entries.v, j->entries.n, sizeof(*j->entries.v),
		      by_string);
	return rc;
}

/* PATH as the sandbox will have it, but for what is put before it. */
static int choose_path(struct job *j)
{
	const struct zb_scope *s = &j->chain.scope;
	const char *path = getenv("PATH");

	for (size_t i = 0; i < s->n_env_set; i++)
		if (!strcmp(s->env_set[i].name, "PATH"))
			path = s->env_set[i].value;
	j->path_env = zb_strdup(path && *path ? path
					      : "/usr/local/bin:/usr/bin:/bin");
	return j->path_env ? 0 : no_memory(j);
}

/* The program that was found the last time, kept in the box. */
static int remember_program(struct job *j)
{
	zb_auto(free) char *path = in_box(j, "program");
	const char *now = j->program.exec_path;
	struct zb_buf then = {0};
	int rc = 0;

	if (!path)
		return no_memory(j);
	if (zb_read_file(path, PATH_MAX, &then, NULL))
		zb_buf_clear(&then);
	if (!strcmp(zb_buf_str(&then), now))
		goto out;
	if (then.len)
		rc = zb_strv_addf(&j->late_notices,
				  "the program is now %s; the last time it was "
				  "%s",
				  now, zb_buf_str(&then));
	rc = rc ? no_memory(j)
		: zb_write_file_atomic(path, now, strlen(now), 0600, j->err);
out:
	zb_buf_done(&then);
	return rc;
}

/* It cannot be found any more: say what it was. */
static void recall_program(struct job *j)
{
	zb_auto(free) char *path = in_box(j, "program");
	struct zb_buf then = {0};

	if (path && !zb_read_file(path, PATH_MAX, &then, NULL) && then.len &&
	    access(zb_buf_str(&then), F_OK))
		zb_wrap(j->err, "interpreter %s recorded at install is gone",
			zb_buf_str(&then));
	zb_buf_done(&then);
}

/* zot finds the program by its own PATH; so do we. */
static int find_runtime(struct job *j)
{
	const char *path = getenv("PATH");
	int rc = zb_runtime_resolve(&j->program, j->out->dir, &j->out->manifest,
				    path, j->err);

	if (rc)
		recall_program(j);
	else
		rc = zb_runtime_base(&j->base, &j->n_base, &j->base_quiet,
				     j->err);
	if (!rc && zb_strv_copy(&j->out->story, &j->program.story))
		rc = no_memory(j);
	return rc;
}

/* A private directory of the box: ours, and not a link. */
static int make_private(struct job *j, const char *name, char **out)
{
	struct stat st;
	int rc;

	*out = in_box(j, name);
	if (!*out)
		return no_memory(j);
	rc = zb_make_dirs(*out, 0700, j->err);
	if (rc)
		return rc;
	if (lstat(*out, &st) || !S_ISDIR(st.st_mode))
		return zb_fail(j->err, ZB_EPOLICY,
			       "%s is no directory of its own: remove it",
			       *out);
	/* The extension may have shut itself out; its next start is ours. */
	if ((st.st_mode & 0700) != 0700 && chmod(*out, st.st_mode | 0700))
		return zb_fail_sys(j->err, errno,
				   "%s has mode %o and cannot be used: chmod "
				   "700",
				   *out, (unsigned)st.st_mode & 07777);
	return 0;
}

/* What runs in it has a say in the plan. */
static int lock_box(struct job *j)
{
	free(j->box_real);
	j->box_real = zb_host_resolve("", j->out->box, NULL);
	if (!j->box_real)
		return zb_fail_sys(j->err, errno, "%s", j->out->box);
	return zb_stubs_lock(j->box_real, j->out->lock_fds, &j->box_state,
			     j->err);
}

/* The deepest directory on the way to @path that is there. */
static char *nearest(const char *path)
{
	char *at = zb_strdup(path);

	while (at && at[1] && access(at, F_OK)) {
		char *up = zb_path_dir(at);

		free(at);
		at = up;
	}
	return at;
}

/* What has the name of its path in it was run, or trusted, and stays. */
static bool is_named(const char *box)
{
	zb_auto(free) char *path = zb_strf("%s/path", box);

	return !path || !access(path, F_OK);
}

static int note_passing(struct job *j)
{
	struct zb_prepared *p = j->out;

	if (!j->target->passing || !j->target->path || is_named(p->box))
		return 0;
	p->above = nearest(j->store->boxes);
	p->passing = j->store;
	return p->above ? 0 : no_memory(j);
}

/* Who only asked leaves nothing, unless somebody runs it meanwhile: the last
 * one that asks does it then. */
static void leave_nothing(struct zb_prepared *p)
{
	const struct zb_store *s = p->passing;
	char *at = zb_strdup(s->boxes);
	int locks[2] = {-1, -1};

	if (!access(p->box, F_OK) && !zb_stubs_own(p->box, locks, NULL) &&
	    !is_named(p->box))
		zb_discard(s, p->box, NULL);
	for (int i = 0; i < 2; i++)
		if (locks[i] >= 0)
			close(locks[i]);
	while (at && strcmp(at, p->above) != 0 && !rmdir(at)) {
		char *up = zb_path_dir(at);

		free(at);
		at = up;
	}
	free(at);
}

/* The box of a path says which one it is for. */
static int name_box(struct job *j)
{
	zb_auto(free) char *path = in_box(j, "path");
	zb_auto(free) char *line = zb_strf("%s\n", j->real);

	if (!path || !line)
		return no_memory(j);
	if (j->target->name || j->target->passing || !access(path, F_OK))
		return 0;
	return zb_write_file_atomic(path, line, strlen(line), 0600, j->err);
}

#define BOX_TRIES 100

/* The box, held. Somebody who asked may take it away before that, or make it
 * anew; who holds a lock of it keeps it. */
static int make_box(struct job *j, char **data, char **home)
{
	int rc = ZB_ESYS;

	for (int tries = 0; rc; tries++) {
		rc = zb_make_dirs(j->out->box, 0700, j->err);
		if (!rc)
			rc = name_box(j);
		if (!rc)
			rc = lock_box(j);
		if (rc != ZB_ESYS || j->err->sys != ENOENT ||
		    tries + 1 == BOX_TRIES)
			break;
		*j->err = (struct zb_error){0};
	}
	if (!rc)
		rc = make_private(j, "data", data);
	if (!rc)
		rc = make_private(j, "home", home);
	return rc;
}

static int user_name(char *out, size_t n)
{
	char buf[4096];
	struct passwd pw, *found = NULL;

	if (getpwuid_r(geteuid(), &pw, buf, sizeof(buf), &found) || !found)
		return snprintf(out, n, "user");
	return snprintf(out, n, "%s", pw.pw_name);
}

/* ---- breadth ------------------------------------------------------------- */

static void drop_rule(struct zb_rules *l, size_t i)
{
	free(l->v[i].value);
	zb_origin_done(&l->v[i].origin);
	memmove(&l->v[i], &l->v[i + 1], (l->n - i - 1) * sizeof(*l->v));
	l->n--;
}

static void subtract(struct zb_rules *l, const struct zb_rules *meant)
{
	for (size_t i = l->n; i-- > 0;)
		if (zb_rules_has(meant, l->v[i].value))
			drop_rule(l, i);
}

/* Take every line out of @s that @meant has too. */
static void subtract_scope(struct zb_scope *s, const struct zb_scope *meant)
{
	subtract(&s->fs_read, &meant->fs_read);
	subtract(&s->fs_write, &meant->fs_write);
	subtract(&s->fs_exec, &meant->fs_exec);
	for (int v = 0; v < ZB_VERB_COUNT; v++)
		subtract(&s->verbs[v].names, &meant->verbs[v].names);
	for (size_t i = 0; i < s->n_intercepts; i++)
		for (size_t k = 0; k < meant->n_intercepts; k++)
			if (!strcmp(s->intercepts[i].event,
				    meant->intercepts[k].event))
				subtract(&s->intercepts[i].may,
					 &meant->intercepts[k].may);
}

/* What was confirmed for this NAME, with what that extends. False: nothing. */
static bool read_meant(struct job *j, struct zb_chain *out)
{
	zb_auto(free) char *path = in_box(j, "meant.json");

	return j->target->name && path && !access(path, F_OK) &&
	       !zb_chain_add_file(out, path, "meant.json", NULL, NULL);
}

/* Remember the nearest file of the chain as meant: it says all that the user
 * granted by NAME. */
static int remember_meant(struct job *j)
{
	zb_auto(free) char *path = in_box(j, "meant.json");
	zb_auto(free) char *stored = in_box(j, "scope.json");
	const char *from = j->target->scope ? j->target->scope : stored;
	struct zb_buf text = {0};
	int rc;

	if (!path || !stored)
		return no_memory(j);
	rc = zb_read_file(from, MAX_FILE, &text, j->err);
	if (!rc)
		rc = zb_write_file_atomic(path, zb_buf_str(&text), text.len,
					  0600, j->err);
	zb_buf_done(&text);
	return rc;
}

/* Resolve a copy of the scope without what was confirmed, as if nothing were
 * meant. *@broad: it does not pass for a reason that the flag could mend. */
static int try_unmeant(struct job *j, struct zb_facts *facts,
		       const struct zb_scope *meant, bool *broad)
{
	struct zb_scope copy = {0};
	struct zb_plan plan = {0};
	int rc = zb_scope_merge(&copy, &j->chain.scope, j->err);

	if (rc)
		return rc;
	if (meant)
		subtract_scope(&copy, meant);
	facts->mean_it = false;
	rc = zb_plan_resolve(&plan, &copy, &j->out->manifest, facts, j->err);
	*broad = rc == ZB_EPOLICY;
	if (!rc)
		zb_plan_done(&plan);
	zb_scope_done(&copy);
	return rc;
}

/* Is breadth no question, since every broad line was confirmed before or is
 * now (*@anew)? facts->mean_it says so to the resolver. */
static int settle_breadth(struct job *j, struct zb_facts *facts, bool *anew)
{
	struct zb_chain meant = {0};
	bool had = read_meant(j, &meant), broad = false;
	int rc = 0;

	facts->mean_it = j->target->mean_it;
	if (had || (j->target->mean_it && j->target->name)) {
		rc = try_unmeant(j, facts, had ? &meant.scope : NULL, &broad);
		facts->mean_it = true;
		*anew = broad && j->target->mean_it;
		if (*anew)
			rc = 0;
	}
	zb_chain_done(&meant);
	return rc;
}

/* ---- the plan ------------------------------------------------------------ */

static int resolve(struct job *j)
{
	zb_auto(free) char *data = NULL;
	zb_auto(free) char *home = NULL;
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	struct zb_strv own = {0};
	bool newly_meant = false;
	char user[256];
	struct zb_facts facts = {
		.home = j->store->home,
		.zot_home = j->store->zot_home,
		.zot_home_real = j->store->zot_home_real,
		.extension_dir = j->out->dir,
		.extension_real = j->real,
		.project = j->target->project,
		.xdg_runtime_dir = xdg && xdg[0] == '/' ? xdg : NULL,
		.shipped_manifest = j->shipped,
		.user_name = user,
		.uid = geteuid(),
		.gid = getegid(),
		.environ_ = (const char *const *)environ,
		.extension_entries = &j->entries,
		.program = &j->program,
		.base_needs = j->base,
		.n_base_needs = j->n_base,
		.base_quiet = &j->base_quiet,
		.look = zb_facts_look,
		.expand = zb_facts_expand,
		.list = list,
		.find_program = find_program,
		.ctx = j,
		.requested_env = &j->asked_env,
		.granted = &j->out->granted,
		.given = j->target->given,
		.own = &own,
		.own_tree = zb_own_tree(),
		.command_name = j->target->name,
	};
	int rc;

	user_name(user, sizeof(user));
	rc = note_passing(j);
	if (!rc)
		rc = make_box(j, &data, &home);
	if (rc)
		return rc;
	facts.held_home = j->box_state.held_home;
	facts.private_data = data;
	facts.private_home = home;
	rc = remember_program(j);
	if (!rc)
		rc = zb_granted_read(&j->out->granted, j->out->box, j->err);
	if (!rc)
		rc = zb_own_places(&own) ? no_memory(j) : 0;
	if (!rc)
		rc = settle_breadth(j, &facts, &newly_meant);
	if (!rc)
		rc = zb_plan_resolve(&j->out->plan, &j->chain.scope,
				     &j->out->manifest, &facts, j->err);
	/* What is refused all the same was not granted. */
	if (!rc && newly_meant)
		rc = remember_meant(j);
	zb_strv_done(&own);
	return rc;
}

/* A policy file that a sandbox could write would grant itself more. */
static int check_policy_files(struct job *j)
{
	const struct zb_plan *p = &j->out->plan;
	zb_auto(free) char *boxes = zb_host_resolve("", j->store->boxes, NULL);

	for (size_t i = 0; i < j->chain.files.n; i++) {
		const char *file = j->chain.files.v[i];
		bool inside = false;

		/* Boxes hold data/ and home/ of every extension. */
		if (boxes && zb_path_below(file, boxes)) {
			const char *rest =
				strchr(file + strlen(boxes) + 1, '/');

			inside = rest && (!strncmp(rest, "/data/", 6) ||
					  !strncmp(rest, "/home/", 6));
		}
		for (size_t k = 0; k < p->n_places; k++)
			if (p->places[k].source &&
			    (p->places[k].rights &
			     (ZB_MAY_WRITE | ZB_MAY_CREATE)) &&
			    zb_path_below(file, p->places[k].source))
				inside = true;
		if (inside)
			return zb_fail(j->err, ZB_EPOLICY,
				       "the scope file %s lies where a sandbox "
				       "may write: keep it elsewhere",
				       file);
	}
	return 0;
}

/* What is granted from now on is to lead where it leads now. */
static int keep_granted(struct job *j)
{
	struct zb_prepared *p = j->out;
	int rc = zb_granted_merge(&p->granted, &p->plan.granted, &p->led_anew);

	if (rc)
		return no_memory(j);
	/* Who only asked leaves nothing. */
	if (!p->led_anew || j->target->trial || p->passing)
		return 0;
	return zb_granted_write(&p->granted, p->box, j->err);
}

static int make_dirs(struct job *j)
{
	return j->target->still ? 0
				: zb_made_make(&j->out->made,
					       &j->out->plan.made, j->err);
}

static int make_stubs(struct job *j)
{
	return zb_stubs_make(&j->out->plan, j->box_real, j->out->lock_fds,
			     &j->box_state, j->err);
}

static int name_policy(struct job *j)
{
	struct zb_plan *p = &j->out->plan;

	j->out->policy =
		zb_strf("%s%s", j->chain.preset ? j->chain.preset : "none",
			j->chain.more ? "+scope" : "");
	free(p->base);
	p->base = zb_strdup(j->out->policy);
	if (!p->base || !j->out->policy)
		return no_memory(j);
	for (size_t i = 0; i < j->late_notices.n; i++) {
		struct zb_buf b = {0};
		const char *s = j->late_notices.v[i];

		zb_text_escape(&b, s, strlen(s), 600);
		if (zb_strv_take(&p->notices, zb_buf_steal(&b)))
			return no_memory(j);
	}
	return 0;
}

/* ---- the first runs ------------------------------------------------------ */

/* What, when it changes, makes the runs count from the start again. */
static void fingerprint(struct job *j, char hex[65])
{
	struct sha256_ctx ctx;
	uint8_t hash[SHA256_DIGEST_SIZE];

	sha256_init(&ctx);
	if (j->tree)
		sha256_update(&ctx, strlen(j->tree), (uint8_t *)j->tree);
	sha256_update(&ctx, j->chain.texts.len,
		      (const uint8_t *)zb_buf_str(&j->chain.texts));
	sha256_digest(&ctx, sizeof(hash), hash);
	for (size_t i = 0; i < sizeof(hash); i++)
		snprintf(hex + 2 * i, 3, "%02x", hash[i]);
}

/* Programs look before they open, so the first runs record looks too. */
static int choose_ledger(struct job *j)
{
	zb_auto(free) char *path = in_box(j, "runs");
	zb_auto(free) char *line = NULL;
	struct zb_buf text = {0};
	unsigned runs = 0;
	char now[65];

	if (!path)
		return no_memory(j);
	fingerprint(j, now);
	if (!zb_read_file(path, 256, &text, NULL) && text.len > 65 &&
	    !strncmp(text.data, now, 64))
		runs = (unsigned)strtoul(text.data + 65, NULL, 10);
	zb_buf_done(&text);
	if (runs < FULL_RUNS || j->target->full_ledger)
		j->out->plan.ledger = ZB_LEDGER_FULL;
	if (!j->target->run || runs >= FULL_RUNS)
		return 0;
	line = zb_strf("%s %u\n", now, runs + 1);
	return line ? zb_write_file_atomic(path, line, strlen(line), 0600,
					   j->err)
		    : no_memory(j);
}

/* ---- all of it ----------------------------------------------------------- */

static const struct {
	int (*take)(struct job *j);
	bool named; /* only for an installed one */
} steps[] = {
	{find, false},
	{check_box, true},
	{check_integrity, false},
	{read_manifest, false},
	{read_scope, false},
	{read_asked, false},
	{choose_path, false},
	{list_entries, false},
	{find_runtime, false},
	{resolve, false},
	{check_policy_files, false},
	{keep_granted, false},
	{make_dirs, false},
	{make_stubs, false},
	{name_policy, false},
	{compare_asked, false},
	{choose_ledger, false},
};

static void job_done(struct job *j)
{
	free(j->box_name);
	free(j->real);
	free(j->shipped);
	free(j->tree);
	free(j->path_env);
	free(j->box_real);
	zb_auto_fd(&j->name_lock);
	zb_scope_done(&j->asked);
	zb_chain_done(&j->chain);
	zb_program_done(&j->program);
	zb_needs_done(j->base, j->n_base);
	zb_strv_done(&j->base_quiet);
	zb_strv_done(&j->entries);
	zb_strv_done(&j->asked_env);
	zb_strv_done(&j->late_notices);
}

char *zb_target_log(const struct zb_target *t)
{
	zb_auto(free) char *real =
		t->name || !t->path ? NULL : realpath(t->path, NULL);

	return t->name ? zb_strdup(t->name)
	       : real  ? zb_store_path_box_name(real)
		       : NULL;
}

int zb_prepare(struct zb_prepared *out, const struct zb_store *store,
	       const struct zb_target *target, struct zb_error *err)
{
	struct zb_error local = {0};
	struct zb_prepared p = {.lock_fds = {-1, -1}};
	struct job j = {.store = store,
			.target = target,
			.out = &p,
			.err = err ? err : &local,
			.name_lock = -1};
	int rc = 0;

	if (!target->name == !target->path)
		return zb_fail(err, ZB_EUSAGE,
			       "an extension is given by its name or its path");
	for (size_t i = 0; !rc && i < ZB_ARRAY_LEN(steps); i++)
		if (!steps[i].named || target->name)
			rc = steps[i].take(&j);
	job_done(&j);
	*out = (struct zb_prepared){.lock_fds = {-1, -1}};
	if (rc) {
		out->changed = p.changed;
		p.changed = (struct zb_strv){0};
		zb_prepared_done(&p);
		return rc;
	}
	*out = p;
	return 0;
}

void zb_prepared_started(struct zb_prepared *p)
{
	if (p->lock_fds[1] > 2)
		close(p->lock_fds[1]);
	p->lock_fds[1] = -1;
}

void zb_prepared_done(struct zb_prepared *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < ZB_ARRAY_LEN(p->lock_fds); i++)
		if (p->lock_fds[i] > 2)
			close(p->lock_fds[i]);
	if (p->passing && p->above)
		leave_nothing(p);
	zb_manifest_done(&p->manifest);
	zb_plan_done(&p->plan);
	free(p->dir);
	free(p->box);
	free(p->above);
	free(p->policy);
	zb_made_done(&p->made);
	zb_strv_done(&p->changed);
	zb_strv_done(&p->requested);
	zb_strv_done(&p->story);
	zb_granted_done(&p->granted);
	*p = (struct zb_prepared){.lock_fds = {-1, -1}};
}
