/* shim.c - which program a version manager's shim would start.
 *
 * The rules are the managers' own, as they document them: an environment
 * variable, else a version file in the working directory or above, else the
 * manager's global choice, else the next program in PATH. The version file in
 * the extension's directory was written by its author: it may choose among
 * what the user installed, so a version is a name and never a path. */
#include "config.h"

#include "shim.h"

#include "cleanup.h"
#include "hostfs.h"
#include "path_match.h"
#include "store.h"
#include "text.h"

#include <ctype.h>
#include <dirent.h>
#include <string.h>

#define MAX_FILE ((size_t)64 << 10)
#define SHIM_MAX 4096 /* a shim is small */

void zb_shim_done(struct zb_shim *s)
{
	free(s->target);
	free(s->why);
	zb_strv_done(&s->args);
	memset(s, 0, sizeof(*s));
}

const char *zb_shim_by_name(const char *real, const char *name)
{
	static const char *const managers[] = {"mise", "rtx",  "volta-shim",
					       "asdf", "vfox", "proto-shim"};
	const char *base = zb_path_name(real);

	for (size_t i = 0; i < ZB_ARRAY_LEN(managers); i++)
		if (!strcmp(base, managers[i]) && strcmp(name, base) != 0)
			return managers[i];
	return NULL;
}

/* ---- lines and words ---------------------------------------------------- */

/* The next line of @*p without its end; false at the end of the text. */
static bool next_line(const char **p, struct zb_buf *line)
{
	size_t n = strcspn(*p, "\n");

	if (!**p)
		return false;
	zb_buf_clear(line);
	zb_buf_add(line, *p, n);
	*p += n + ((*p)[n] == '\n');
	return true;
}

static const char *skip_blank(const char *s)
{
	return s + strspn(s, " \t");
}

/* A name of one version: no path that leads elsewhere. */
static bool is_version(const char *s)
{
	return *s && s[0] != '/' && s[0] != '-' && strcmp(s, "..") != 0 &&
	       strncmp(s, "../", 3) != 0 && !strstr(s, "/../") &&
	       !(strlen(s) >= 3 && !strcmp(s + strlen(s) - 3, "/.."));
}

/* Words of @text between any of @seps, without # comments. */
static int words(const char *text, const char *seps, struct zb_strv *out)
{
	while (*text) {
		size_t n;

		text += strspn(text, seps);
		if (*text == '#') {
			text += strcspn(text, "\n");
			continue;
		}
		n = strcspn(text, seps);
		if (n && zb_strv_take(out, zb_strndup(text, n)))
			return ZB_ELIMIT;
		text += n;
	}
	return 0;
}

/* ---- plain: exec "/abs/path" "$@" --------------------------------------- */

/* The word at @*p, if it is literal: "..." and '...' without expansions, or
 * bare letters. Heap, or NULL. */
static char *literal_word(const char **p)
{
	const char *s = skip_blank(*p);
	size_t n;

	if (*s == '"' || *s == '\'') {
		const char *end = strchr(s + 1, *s);

		n = end ? (size_t)(end - s - 1) : 0;
		if (!end || (*s == '"' && strcspn(s + 1, "$`\\") < n) ||
		    (end[1] && !isspace((unsigned char)end[1])))
			return NULL;
		*p = end + 1;
		return zb_strndup(s + 1, n);
	}
	n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		      "0123456789_-./=+,:@");
	if (!n || (s[n] && !isspace((unsigned char)s[n])))
		return NULL;
	*p = s + n;
	return zb_strndup(s, n);
}

/* A line that is exec PATH WORD... "$@": fill @out. */
static bool plain_exec(const char *line, struct zb_shim *out)
{
	const char *p = skip_blank(line);
	char *word;

	if (strncmp(p, "exec", 4) || !isspace((unsigned char)p[4]))
		return false;
	p += 4;
	word = literal_word(&p);
	if (!word || word[0] != '/') {
		free(word);
		return false;
	}
	out->target = word;
	for (;;) {
		const char *s = skip_blank(p);

		if (!strncmp(s, "\"$@\"", 4))
			return !*skip_blank(s + 4);
		word = literal_word(&p);
		if (!word || zb_strv_take(&out->args, word))
			return false;
	}
}

/* A script with one command, and that an exec of an absolute path. */
static bool plain_shim(const char *head, struct zb_shim *out)
{
	struct zb_buf line = {0};
	unsigned commands = 0;
	bool ok = true;

	while (ok && next_line(&head, &line)) {
		const char *s = skip_blank(zb_buf_str(&line));

		if (!*s || *s == '#')
			continue;
		ok = ++commands == 1 && plain_exec(s, out);
	}
	zb_buf_done(&line);
	if (ok && commands == 1) {
		out->manager = "plain";
		return true;
	}
	zb_shim_done(out);
	return false;
}

/* ---- version files ------------------------------------------------------ */

/* Read @file in @dir and every directory above it: the first that is there.
 * Return: heap path of it, or NULL. */
static char *find_upwards(const char *dir, const char *file,
			  struct zb_buf *text)
{
	zb_auto(free) char *at = zb_strdup(dir);

	while (at) {
		zb_auto(free) char *path =
			zb_strf("%s/%s", strcmp(at, "/") ? at : "", file);
		char *up;

		if (path && !zb_read_file(path, MAX_FILE, text, NULL))
			return zb_steal(&path);
		if (!strcmp(at, "/"))
			break;
		up = zb_path_dir(at);
		free(at);
		at = up;
	}
	return NULL;
}

/* ---- pyenv and its kin -------------------------------------------------- */

struct manager {
	const char *name;
	const char *root_var, *version_var;
	const char *file; /* the local version file */
};

static const struct manager managers[] = {
	{"pyenv", "PYENV_ROOT", "PYENV_VERSION", ".python-version"},
	{"rbenv", "RBENV_ROOT", "RBENV_VERSION", ".ruby-version"},
	{"nodenv", "NODENV_ROOT", "NODENV_VERSION", ".node-version"},
	{"goenv", "GOENV_ROOT", "GOENV_VERSION", ".go-version"},
};

/* What one choice needs to know. */
struct choice {
	const struct manager *m;
	const char *shim, *name, *dir, *path_env;
	char *root;
	struct zb_strv versions;
	char *set_by;
	struct zb_error *err;
};

static const struct manager *manager_of(const char *head)
{
	for (size_t i = 0; i < ZB_ARRAY_LEN(managers); i++) {
		zb_auto(free) char *call =
			zb_strf("/%s\" exec \"$program\"", managers[i].name);

		if (call && strstr(head, call))
			return &managers[i];
	}
	return NULL;
}

/* Value of `export VAR="..."` in the shim, else of the variable, else the
 * directory that holds shims/. */
static char *root_of(const struct choice *c, const char *head)
{
	zb_auto(free) char *key = zb_strf("export %s=\"", c->m->root_var);
	zb_auto(free) char *shims = zb_path_dir(c->shim);
	const char *at = key ? strstr(head, key) : NULL;
	const char *env = getenv(c->m->root_var);

	if (at) {
		at += strlen(key);
		if (at[0] == '/')
			return zb_strndup(at, strcspn(at, "\"\n"));
	}
	if (env && env[0] == '/')
		return zb_strdup(env);
	return shims ? zb_path_dir(shims) : NULL;
}

/* Which versions are chosen, and by what. None: "system". */
static int find_versions(struct choice *c)
{
	static const char seps[] = ": \t\r\n";
	const char *env = getenv(c->m->version_var);
	zb_auto(free) char *global = zb_strf("%s/version", c->root);
	struct zb_buf text = {0};
	int rc;

	if (env && *env) {
		c->set_by = zb_strdup(c->m->version_var);
		return words(env, ":", &c->versions);
	}
	c->set_by = find_upwards(c->dir, c->m->file, &text);
	if (!c->set_by && global &&
	    !zb_read_file(global, MAX_FILE, &text, NULL))
		c->set_by = zb_steal(&global);
	rc = words(zb_buf_str(&text), seps, &c->versions);
	zb_buf_done(&text);
	if (!rc && !c->versions.n)
		rc = zb_strv_add(&c->versions, "system");
	return rc;
}

/* Compare 3.9.18 and 3.11.7 as numbers. */
static int compare_versions(const char *a, const char *b)
{
	while (*a && *b) {
		char *ea, *eb;
		unsigned long x = strtoul(a, &ea, 10), y = strtoul(b, &eb, 10);

		if (ea == a || eb == b)
			return strcmp(a, b);
		if (x != y)
			return x < y ? -1 : 1;
		a = ea + (*ea == '.');
		b = eb + (*eb == '.');
	}
	return (*a != 0) - (*b != 0);
}

/* "3.11" stands for the newest installed 3.11.x. Heap name, or NULL. */
static char *newest(const char *versions, const char *prefix)
{
	DIR *d = opendir(versions);
	size_t n = strlen(prefix);
	char *best = NULL;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		const char *rest = e->d_name + n;

		if (strncmp(e->d_name, prefix, n) || *rest != '.' ||
		    rest[strspn(rest, ".0123456789")])
			continue;
		if (best && compare_versions(best, e->d_name) >= 0)
			continue;
		free(best);
		best = zb_strdup(e->d_name);
	}
	if (d)
		closedir(d);
	return best;
}

/* The program in version @v, or NULL. */
static char *in_version(const struct choice *c, const char *v)
{
	zb_auto(free) char *versions = zb_strf("%s/versions", c->root);
	zb_auto(free) char *exact = NULL;
	zb_auto(free) char *full = NULL;

	if (!is_version(v) || !versions)
		return NULL;
	exact = zb_strf("%s/%s", versions, v);
	if (exact && !zb_host_exists("", exact)) {
		full = newest(versions, v);
		free(exact);
		exact = full ? zb_strf("%s/%s", versions, full) : NULL;
	}
	return exact ? zb_strf("%s/bin/%s", exact, c->name) : NULL;
}

static char *in_system(const struct choice *c)
{
	zb_auto(free) char *shims = zb_path_dir(c->shim);

	return zb_host_which(c->name, c->path_env, shims);
}

static int not_found(const struct choice *c)
{
	struct zb_buf list = {0};

	/* A version file is a stranger's text. */
	for (size_t i = 0; i < c->versions.n && i < 4; i++) {
		const char *v = c->versions.v[i];

		zb_buf_adds(&list, i ? ", " : "");
		zb_text_escape(&list, v, strlen(v), 32);
	}
	zb_fail(c->err, ZB_EUSAGE,
		"%s is a shim of %s, and version %s (set by %s) has no %s: "
		"install that version or choose another",
		c->shim, c->m->name, zb_buf_str(&list),
		c->set_by ? c->set_by : "default", c->name);
	zb_buf_done(&list);
	return ZB_EUSAGE;
}

static int choose(struct choice *c, struct zb_shim *out)
{
	if (find_versions(c))
		return zb_fail(c->err, ZB_ELIMIT, "out of memory");
	for (size_t i = 0; i < c->versions.n; i++) {
		const char *v = c->versions.v[i];
		char *at =
			!strcmp(v, "system") ? in_system(c) : in_version(c, v);

		if (at && zb_host_is_program(at)) {
			out->target = at;
			out->manager = c->m->name;
			out->why = zb_strf("%s, set by %s", v,
					   c->set_by ? c->set_by : "default");
			return 0;
		}
		free(at);
	}
	return not_found(c);
}

/* ---- asdf --------------------------------------------------------------- */

static const char asdf_mark[] = "# asdf-plugin: ";

/* Versions of @plugin in the text of a .tool-versions file. */
static int tool_versions(const char *text, const char *plugin,
			 struct zb_strv *out)
{
	struct zb_buf line = {0};
	int rc = 0;

	while (!rc && next_line(&text, &line)) {
		struct zb_strv w = {0};

		rc = words(zb_buf_str(&line), " \t\r", &w);
		if (w.n && !strcmp(w.v[0], plugin))
			for (size_t i = 1; !rc && i < w.n; i++)
				rc = zb_strv_add(out, w.v[i]);
		zb_strv_done(&w);
	}
	zb_buf_done(&line);
	return rc;
}

/* ASDF_NODEJS_VERSION of "nodejs". */
static const char *asdf_env(const char *plugin)
{
	zb_auto(free) char *var = zb_strf("ASDF_%s_VERSION", plugin);

	for (char *p = var; p && *p; p++)
		*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
	return var ? getenv(var) : NULL;
}

static int asdf_versions(struct choice *c, const char *plugin)
{
	const char *env = asdf_env(plugin), *home = getenv("HOME");
	zb_auto(free) char *at = zb_strdup(c->dir);
	struct zb_buf text = {0};
	int rc = 0;

	if (env && *env) {
		free(c->set_by);
		c->set_by = zb_strdup("the environment");
		return words(env, " ", &c->versions);
	}
	/* Like asdf, go on upwards past a file that does not name it. */
	while (at && !rc && !c->versions.n) {
		char *up;

		free(c->set_by);
		c->set_by = find_upwards(at, ".tool-versions", &text);
		if (!c->set_by)
			break;
		rc = tool_versions(zb_buf_str(&text), plugin, &c->versions);
		free(at);
		at = zb_path_dir(c->set_by);
		up = at && strcmp(at, "/") ? zb_path_dir(at) : NULL;
		free(at);
		at = up;
	}
	if (!rc && !c->versions.n && home) {
		free(c->set_by);
		c->set_by = find_upwards(home, ".tool-versions", &text);
		rc = tool_versions(zb_buf_str(&text), plugin, &c->versions);
	}
	zb_buf_done(&text);
	return rc;
}

/* Where @plugin's version @v has the program: plugins differ. */
static char *asdf_program(const struct choice *c, const char *plugin,
			  const char *v)
{
	static const char *const bins[] = {"bin", "go/bin", "."};

	for (size_t i = 0; i < ZB_ARRAY_LEN(bins); i++) {
		zb_auto(free) char *at =
			zb_strf("%s/installs/%s/%s/%s/%s", c->root, plugin, v,
				bins[i], c->name);

		if (at && zb_host_is_program(at))
			return zb_path_join("/", at);
	}
	return NULL;
}

/* Try the plugin named on one line of the shim. *@out is set if it has it. */
static int asdf_plugin(struct choice *c, const char *line, struct zb_shim *out)
{
	struct zb_strv w = {0};
	int rc = words(line, " \t\r", &w);

	zb_strv_done(&c->versions); /* of the plugin before */
	if (!rc && w.n && is_version(w.v[0]) && !strchr(w.v[0], '/'))
		rc = asdf_versions(c, w.v[0]);
	for (size_t i = 0; !rc && i < c->versions.n && !out->target; i++) {
		const char *v = c->versions.v[i];

		if (!strcmp(v, "system"))
			out->target = in_system(c);
		else if (is_version(v) && !strchr(v, '/'))
			out->target = asdf_program(c, w.v[0], v);
		if (out->target)
			out->why = zb_strf("%s, set by %s", v,
					   c->set_by ? c->set_by : "?");
	}
	zb_strv_done(&w);
	return rc;
}

static int asdf(struct choice *c, const char *head, struct zb_shim *out)
{
	struct zb_buf line = {0};
	int rc = 0;

	while (!rc && !out->target && next_line(&head, &line)) {
		const char *s = zb_buf_str(&line);

		if (!strncmp(s, asdf_mark, sizeof(asdf_mark) - 1))
			rc = asdf_plugin(c, s + sizeof(asdf_mark) - 1, out);
	}
	zb_buf_done(&line);
	out->manager = "asdf";
	if (rc)
		return zb_fail(c->err, ZB_ELIMIT, "out of memory");
	return out->target ? 0
			   : zb_fail(c->err, ZB_EUSAGE,
				     "%s is a shim of asdf, and no installed "
				     "version of %s is chosen: run `asdf set` "
				     "(or `asdf global`) for it",
				     c->shim, c->name);
}

int zb_shim_resolve(struct zb_shim *out, const char *path, const char *name,
		    const char *head, const char *dir, const char *path_env,
		    struct zb_error *err)
{
	struct choice c = {.m = manager_of(head),
			   .shim = path,
			   .name = name,
			   .dir = dir,
			   .path_env = path_env,
			   .err = err};
	int rc = 0;

	memset(out, 0, sizeof(*out));
	if (strlen(head) >= SHIM_MAX)
		return 0;
	if (c.m) {
		c.root = root_of(&c, head);
		rc = c.root ? choose(&c, out)
			    : zb_fail(err, ZB_ELIMIT, "out of memory");
	} else if (strstr(head, asdf_mark)) {
		c.m = &(const struct manager){.name = "asdf",
					      .root_var = "ASDF_DATA_DIR"};
		c.root = root_of(&c, "");
		rc = c.root ? asdf(&c, head, out)
			    : zb_fail(err, ZB_ELIMIT, "out of memory");
	} else {
		plain_shim(head, out);
	}
	free(c.root);
	free(c.set_by);
	zb_strv_done(&c.versions);
	if (rc)
		zb_shim_done(out);
	return rc;
}
