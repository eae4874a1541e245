/* fragment.c - reading runtime fragments and finding what they name.
 *
 * The files are our own, so a fault in one is a bug of the installation: it
 * ends the start with the file's name, and nothing is guessed. */
#include "config.h"

#include "fragment.h"

#include "cleanup.h"
#include "hostfs.h"
#include "json_scan.h"
#include "path_match.h"
#include "store.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#define MAX_FRAGMENT ((size_t)256 << 10)
#define MAX_MATCHES  256 /* of one pattern */
#define MAX_NEEDS    4096
#define MAX_WITH     8 /* fragments that ask for fragments */

/* One being expanded. */
struct expansion {
	const struct zb_fragment_vars *v;
	struct zb_program *out;
	struct zb_error *err;
	char *file; /* "runtimes/python.json" */
	struct zb_buf text;
	struct zb_json json;
	char *within;
	struct zb_strv dirs; /* where programs are */
	unsigned depth;
};

int zb_need_add(struct zb_program *out, const char *path, unsigned rights,
		const char *from)
{
	struct zb_need *grown;

	if (out->n_needs >= MAX_NEEDS)
		return ZB_ELIMIT;
	/* Grows by powers of two; the count tells the capacity. */
	if (!(out->n_needs & (out->n_needs - 1))) {
		size_t cap = out->n_needs ? out->n_needs * 2 : 1;

		grown = realloc(out->needs, cap * sizeof(*grown));
		if (!grown)
			return ZB_ELIMIT;
		out->needs = grown;
	}
	grown = &out->needs[out->n_needs];
	*grown = (struct zb_need){.path = zb_strdup(path),
				  .rights = rights,
				  .optional = true,
				  .from = zb_strdup(from)};
	if (!grown->path || !grown->from) {
		free(grown->path);
		free(grown->from);
		return ZB_ELIMIT;
	}
	out->n_needs++;
	return 0;
}

static int no_memory(struct expansion *x)
{
	return zb_fail(x->err, ZB_ELIMIT, "%s: out of memory", x->file);
}

static int bad(struct expansion *x, uint32_t tok, const char *what)
{
	unsigned line = 0, column = 0;

	zb_json_position(x->text.data, x->text.len, x->json.tok[tok].start,
			 &line, &column);
	return zb_fail(x->err, ZB_ESYS, "%s:%u:%u: %s; install zotbox again",
		       x->file, line, column, what);
}

/* ---- variables ---------------------------------------------------------- */

/* Debian's name for this machine's libraries: x86_64-linux-gnu. */
static char *triplet(void)
{
	static const struct {
		const char *machine, *triplet;
	} odd[] = {
		{"armv7l", "arm-linux-gnueabihf"},
		{"armv6l", "arm-linux-gnueabihf"},
		{"i686", "i386-linux-gnu"},
		{"ppc64le", "powerpc64le-linux-gnu"},
	};
	struct utsname u;

	if (uname(&u))
		return zb_strdup("unknown-linux-gnu");
	for (size_t i = 0; i < ZB_ARRAY_LEN(odd); i++)
		if (!strcmp(u.machine, odd[i].machine))
			return zb_strdup(odd[i].triplet);
	return zb_strf("%s-linux-gnu", u.machine);
}

/* Is the C library in @dir? */
static bool has_libc(const char *root, const char *dir)
{
	static const char *const names[] = {"libc.so.6", "libc.so",
					    "ld-musl-*.so.1"};

	for (size_t i = 0; i < ZB_ARRAY_LEN(names); i++) {
		zb_auto(free) char *at =
			zb_strf("%s%s/%s", root, dir, names[i]);
		glob_t g = {0};
		bool found = at && !glob(at, GLOB_NOSORT, NULL, &g);

		globfree(&g);
		if (found)
			return true;
	}
	return false;
}

/* Where this system keeps its libraries: the multiarch directories, else
 * lib64, else lib, as the C library is there; by their real names, so that a
 * merged /usr has one. */
static int libdirs(const char *root, struct zb_strv *out)
{
	zb_auto(free) char *t = triplet();
	zb_auto(free) char *multi = zb_strf("lib/%s", t ? t : "?");
	const char *const below[] = {multi, "lib64", "lib"};

	for (size_t i = 0; i < ZB_ARRAY_LEN(below); i++) {
		zb_auto(free) char *usr = zb_strf("/usr/%s", below[i]);
		zb_auto(free) char *top = zb_strf("/%s", below[i]);
		const char *const both[] = {usr, top};

		if (!usr || !top)
			return ZB_ELIMIT;
		if (!has_libc(root, usr) && !has_libc(root, top))
			continue;
		for (size_t k = 0; k < ZB_ARRAY_LEN(both); k++) {
			zb_auto(free) char *real =
				zb_host_resolve(root, both[k], NULL);

			if (real && !zb_strv_has(out, real) &&
			    zb_strv_add(out, real))
				return ZB_ELIMIT;
		}
		return 0;
	}
	return 0;
}

/* A prefix that many programs share: no right to its whole lib. */
static bool is_shared_prefix(const struct zb_fragment_vars *v,
			     const char *prefix)
{
	zb_auto(free) char *local =
		v->home ? zb_strf("%s/.local", v->home) : NULL;

	return !strcmp(prefix, "/") || !strcmp(prefix, "/usr") ||
	       !strcmp(prefix, "/usr/local") ||
	       (v->home && !strcmp(prefix, v->home)) ||
	       (local && !strcmp(prefix, local));
}

static int own_prefixes(const struct zb_fragment_vars *v, struct zb_strv *out)
{
	for (size_t i = 0; !v->strange && i < v->prefix.n; i++)
		if (!is_shared_prefix(v, v->prefix.v[i]) &&
		    zb_strv_add(out, v->prefix.v[i]))
			return ZB_ELIMIT;
	return 0;
}

static int ancestors(const char *dir, struct zb_strv *out)
{
	zb_auto(free) char *at = dir ? zb_path_dir(dir) : NULL;

	while (at) {
		char *up;

		if (zb_strv_add(out, strcmp(at, "/") ? at : ""))
			return ZB_ELIMIT;
		if (!strcmp(at, "/"))
			break;
		up = zb_path_dir(at);
		free(at);
		at = up;
	}
	return 0;
}

/* "3.11" of /usr/bin/python3.11; of python3, which says too little, "*": a
 * pattern. */
static char *version_of(const char *real)
{
	const char *name = real ? zb_path_name(real) : "";
	const char *p = name + strcspn(name, "0123456789");

	if (p == name || !strchr(p, '.') || p[strspn(p, "0123456789.")])
		return zb_strdup("*");
	return zb_strdup(p);
}

static int add_if(struct zb_strv *out, const char *s)
{
	return s && zb_strv_add(out, s) ? ZB_ELIMIT : 0;
}

/* All values of variable @name of @n bytes. Return: -1 if there is none. */
static int values_of(struct expansion *x, const char *name, size_t n,
		     struct zb_strv *out)
{
	const struct zb_fragment_vars *v = x->v;
	zb_auto(free) char *key = zb_strndup(name, n);
	zb_auto(free) char *heap = NULL;

	if (!key)
		return ZB_ELIMIT;
	if (!strcmp(key, "prefix"))
		return zb_strv_copy(out, &v->prefix);
	if (!strcmp(key, "own_prefix"))
		return own_prefixes(v, out);
	if (!strcmp(key, "libdir"))
		return libdirs(v->root, out);
	if (!strcmp(key, "ancestors"))
		return ancestors(v->ext_dir, out);
	if (!strcmp(key, "home"))
		return add_if(out, v->home);
	if (!strcmp(key, "within"))
		return add_if(out, x->within);
	if (!strcmp(key, "extension_dir"))
		return add_if(out, v->ext_dir);
	if (!strcmp(key, "triplet")) {
		heap = triplet();
		return add_if(out, heap);
	}
	if (!strcmp(key, "version")) {
		heap = version_of(v->real);
		return add_if(out, heap);
	}
	return -1;
}

/* A value goes into a shell pattern as itself. */
static void add_quoted(struct zb_buf *out, const char *s, bool quote)
{
	for (; *s; s++) {
		if (quote && strchr("*?[\\", *s))
			zb_buf_addc(out, '\\');
		zb_buf_addc(out, *s);
	}
}

/* Append to @out all that @rest stands for, each after @done, which is final:
 * a value that looks like a variable is not one. @pattern: what comes out is a
 * pattern, so values are quoted (but for version's *). */
static int expand_rest(struct expansion *x, uint32_t tok, const char *done,
		       const char *rest, bool pattern, struct zb_strv *out)
{
	const char *at = strstr(rest, "${"), *end = at ? strchr(at, '}') : NULL;
	struct zb_strv values = {0};
	int rc;

	if (!end)
		return zb_strv_addf(out, "%s%s", done, rest) ? no_memory(x) : 0;
	rc = values_of(x, at + 2, (size_t)(end - at - 2), &values);
	if (rc < 0 && rc != ZB_ELIMIT)
		rc = bad(x, tok, "unknown variable");
	for (size_t i = 0; !rc && i < values.n; i++) {
		struct zb_buf b = {0};

		zb_buf_adds(&b, done);
		zb_buf_add(&b, rest, (size_t)(at - rest));
		add_quoted(&b, values.v[i],
			   pattern && strcmp(values.v[i], "*") != 0);
		rc = b.failed ? no_memory(x)
			      : expand_rest(x, tok, b.data, end + 1, pattern,
					    out);
		zb_buf_done(&b);
	}
	zb_strv_done(&values);
	return rc;
}

static int expand(struct expansion *x, uint32_t tok, const char *s,
		  bool pattern, struct zb_strv *out)
{
	return expand_rest(x, tok, "", s, pattern, out);
}

/* ---- needs -------------------------------------------------------------- */

static bool is_link(const char *root, const char *path)
{
	zb_auto(free) char *at = zb_strf("%s%s", root, path);
	struct stat st;

	return at && !lstat(at, &st) && S_ISLNK(st.st_mode);
}

static const struct {
	const char *word;
	unsigned rights;
} rights_words[] = {
	{"read", ZB_MAY_READ | ZB_MAY_LIST},
	{"exec", ZB_MAY_READ | ZB_MAY_LIST | ZB_MAY_EXEC},
	{"link", 0},
};

/* A prefix that everybody shares is the system's. */
static bool is_system_prefix(const char *prefix)
{
	return !strcmp(prefix, "/") || !strcmp(prefix, "/usr") ||
	       !strcmp(prefix, "/usr/local");
}

/* Where a stranger says that a prefix is, its lib may be a link to what was
 * never meant: only what really lies in the prefix counts. */
static bool leads_out(const struct zb_fragment_vars *v, const char *path)
{
	for (size_t i = 0; i < v->prefix.n; i++) {
		const char *prefix = v->prefix.v[i];
		zb_auto(free) char *top = NULL;
		zb_auto(free) char *real = NULL;

		if (is_system_prefix(prefix) || !zb_path_below(path, prefix))
			continue;
		top = zb_host_resolve(v->root, prefix, NULL);
		real = zb_host_resolve(v->root, path, NULL);
		if (!top || !real || !zb_path_below(real, top))
			return true;
	}
	return false;
}

static int add_found(struct expansion *x, const char *path, unsigned rights)
{
	const char *root = x->v->root;
	zb_auto(free) char *tidy = zb_path_join("/", path + strlen(root));

	if (!tidy)
		return no_memory(x);
	if (rights ? !zb_host_exists(root, tidy) : !is_link(root, tidy))
		return 0;
	if (x->v->strange && leads_out(x->v, tidy))
		return 0;
	return zb_need_add(x->out, tidy, rights, x->file) ? no_memory(x) : 0;
}

/* Add everything that @pattern names. */
static int add_matches(struct expansion *x, const char *pattern,
		       unsigned rights)
{
	zb_auto(free) char *at = NULL;
	struct zb_buf b = {0};
	glob_t g = {0};
	int rc = 0, found;

	add_quoted(&b, x->v->root, true);
	zb_buf_adds(&b, pattern);
	at = zb_buf_steal(&b);
	if (!at)
		return no_memory(x);
	if (!strpbrk(at, "*?[\\"))
		return add_found(x, at, rights); /* if it is there */
	found = glob(at, 0, NULL, &g);
	if (!found && g.gl_pathc > MAX_MATCHES)
		rc = zb_fail(x->err, ZB_ELIMIT,
			     "%s: %s names more than %d files", x->file,
			     pattern, MAX_MATCHES);
	for (size_t i = 0; !found && !rc && i < g.gl_pathc; i++)
		rc = add_found(x, g.gl_pathv[i], rights);
	globfree(&g);
	return rc;
}

/* Is the program installed below the prefix that string @tok names? */
static bool has_prefix(struct expansion *x, uint32_t tok)
{
	zb_auto(free) char *prefix = zb_json_dup_string(&x->json, tok);

	return prefix && zb_strv_has(&x->v->prefix, prefix);
}

static int need(struct expansion *x, uint32_t tok)
{
	uint32_t path = zb_json_get(&x->json, tok, "path");
	uint32_t word = zb_json_get(&x->json, tok, "rights");
	uint32_t only = zb_json_get(&x->json, tok, "prefix");
	zb_auto(free) char *text = path == ZB_JSON_NONE
					   ? NULL
					   : zb_json_dup_string(&x->json, path);
	struct zb_strv paths = {0};
	size_t r;
	int rc;

	if (!text || word == ZB_JSON_NONE)
		return bad(x, tok, "a need has \"path\" and \"rights\"");
	for (r = 0; r < ZB_ARRAY_LEN(rights_words); r++)
		if (zb_json_is(&x->json, word, rights_words[r].word))
			break;
	if (r == ZB_ARRAY_LEN(rights_words))
		return bad(x, word, "rights are \"read\", \"exec\", \"link\"");
	if (only != ZB_JSON_NONE && !has_prefix(x, only))
		return 0;
	rc = expand(x, path, text, true, &paths);
	for (size_t i = 0; !rc && i < paths.n; i++)
		rc = add_matches(x, paths.v[i], rights_words[r].rights);
	zb_strv_done(&paths);
	return rc;
}

/* Where the system keeps programs, each directory once: /bin of a merged /usr
 * is /usr/bin. HOME's own programs are not what the sandbox sees there. */
static int find_dirs(struct expansion *x)
{
	static const char *const dirs[] = {"/usr/bin", "/bin", "/usr/sbin",
					   "/sbin"};

	for (size_t i = 0; i < ZB_ARRAY_LEN(dirs); i++) {
		zb_auto(free) char *real =
			zb_host_resolve(x->v->root, dirs[i], NULL);

		if (real && !zb_strv_has(&x->dirs, real) &&
		    zb_strv_add(&x->dirs, real))
			return no_memory(x);
	}
	return 0;
}

/* A program of the system, by name. */
static int program(struct expansion *x, uint32_t tok)
{
	zb_auto(free) char *name = zb_json_dup_string(&x->json, tok);

	if (!name)
		return bad(x, tok, "a program is a name");
	if (!x->dirs.n && find_dirs(x))
		return ZB_ELIMIT;
	for (size_t i = 0; i < x->dirs.n; i++) {
		zb_auto(free) char *at = zb_strf("%s/%s", x->dirs.v[i], name);

		if (!at || (zb_host_exists(x->v->root, at) &&
			    zb_need_add(x->out, at, ZB_MAY_READ | ZB_MAY_EXEC,
					x->file)))
			return no_memory(x);
	}
	return 0;
}

static int quiet(struct expansion *x, uint32_t tok)
{
	zb_auto(free) char *text = zb_json_dup_string(&x->json, tok);

	if (!text)
		return bad(x, tok, "a quiet probe is a path");
	return expand(x, tok, text, false, &x->out->quiet);
}

static int include(struct expansion *x, uint32_t tok);

static const struct {
	const char *key;
	int (*take)(struct expansion *x, uint32_t tok);
} lists[] = {
	{"needs", need},
	{"programs", program},
	{"with", include},
	{"quiet", quiet},
};

static int take_lists(struct expansion *x)
{
	for (size_t i = 0; i < ZB_ARRAY_LEN(lists); i++) {
		uint32_t list = zb_json_get(&x->json, 0, lists[i].key);
		uint32_t t;

		if (list == ZB_JSON_NONE)
			continue;
		for (t = zb_json_first(&x->json, list); t != ZB_JSON_NONE;
		     t = zb_json_next(&x->json, t)) {
			int rc = lists[i].take(x, t);

			if (rc)
				return rc;
		}
	}
	return 0;
}

/* ---- files -------------------------------------------------------------- */

static void expansion_done(struct expansion *x)
{
	free(x->file);
	free(x->within);
	zb_strv_done(&x->dirs);
	zb_buf_done(&x->text);
	zb_json_done(&x->json);
}

static int load(struct expansion *x, const char *name)
{
	static const char *const keys[] = {
		"zotbox_runtime", "kind",  "match", "below", "within", "marker",
		"programs",	  "needs", "with",  "quiet", "why",
	};
	struct zb_json_fault fault;
	uint32_t t;

	x->file = zb_strf("runtimes/%s.json", name);
	if (!x->file)
		return zb_fail(x->err, ZB_ELIMIT, "out of memory");
	if (zb_policy_text(x->file, &x->text, x->err))
		return zb_wrap(x->err, "runtime %s", name);
	if (zb_json_scan(&x->json, x->text.data, x->text.len, NULL, &fault))
		return zb_fail(x->err, ZB_ESYS,
			       "%s:%u:%u: %s; install zotbox again", x->file,
			       fault.line, fault.column, fault.what);
	for (t = zb_json_first(&x->json, 0); t != ZB_JSON_NONE;
	     t = zb_json_next(&x->json, t)) {
		bool known = false;

		for (size_t i = 0; i < ZB_ARRAY_LEN(keys); i++)
			known |= zb_json_key_is(&x->json, t, keys[i]);
		if (!known)
			return bad(x, t, "unknown key");
	}
	return 0;
}

static int include(struct expansion *x, uint32_t tok)
{
	zb_auto(free) char *name = zb_json_dup_string(&x->json, tok);
	struct expansion y = {
		.v = x->v, .out = x->out, .err = x->err, .depth = x->depth + 1};
	int rc;

	if (!name || y.depth > MAX_WITH)
		return bad(x, tok, "no such fragment, or a circle of them");
	rc = load(&y, name);
	if (!rc)
		rc = take_lists(&y);
	expansion_done(&y);
	return rc;
}

/* A string member of the root; NULL if absent. */
static char *member(struct expansion *x, const char *key)
{
	uint32_t t = zb_json_get(&x->json, 0, key);

	return t == ZB_JSON_NONE ? NULL : zb_json_dup_string(&x->json, t);
}

static bool matches_name(struct expansion *x)
{
	uint32_t list = zb_json_get(&x->json, 0, "match"), t;

	if (list == ZB_JSON_NONE)
		return false;
	for (t = zb_json_first(&x->json, list); t != ZB_JSON_NONE;
	     t = zb_json_next(&x->json, t)) {
		zb_auto(free) char *p = zb_json_dup_string(&x->json, t);

		for (size_t i = 0; p && i < x->v->names.n; i++)
			if (!fnmatch(p, x->v->names.v[i], 0))
				return true;
	}
	return false;
}

static bool matches_below(struct expansion *x)
{
	zb_auto(free) char *dir = member(x, "below");

	return dir && x->v->real && zb_path_below(x->v->real, dir);
}

static bool matches_within(struct expansion *x)
{
	/* A stranger can lay out directories like a manager's, with links. */
	zb_auto(free) char *name = x->v->strange ? NULL : member(x, "within");
	zb_auto(free) char *marker = member(x, "marker");
	zb_auto(free) char *part = name ? zb_strf("/%s/", name) : NULL;
	const char *at = part && x->v->real ? strstr(x->v->real, part) : NULL;
	zb_auto(free) char *mark = NULL;

	if (!at || !marker)
		return false;
	free(x->within);
	x->within = zb_strndup(x->v->real, (size_t)(at - x->v->real));
	mark = x->within ? zb_strf("%s/%s", x->within, marker) : NULL;
	return mark && zb_host_exists(x->v->root, mark);
}

/* If @name is a fragment for this program, take what it asks for. */
static int apply(const char *name, const struct zb_fragment_vars *v,
		 struct zb_program *out, struct zb_error *err)
{
	struct expansion x = {.v = v, .out = out, .err = err};
	char *kind;
	int rc = load(&x, name);

	if (!rc &&
	    (matches_name(&x) || matches_below(&x) || matches_within(&x))) {
		rc = take_lists(&x);
		kind = member(&x, "kind");
		if (!rc && kind && !out->kind && strcmp(kind, "native") != 0)
			out->kind = zb_steal(&kind);
		free(kind);
	}
	expansion_done(&x);
	return rc;
}

static int by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* Names of all fragments, sorted. */
static int names_of_fragments(struct zb_strv *out, struct zb_error *err)
{
	zb_auto(free) char *base = zb_own_file("policies/runtimes/base.json");
	zb_auto(free) char *dir = base ? zb_path_dir(base) : NULL;
	DIR *d = dir ? opendir(dir) : NULL;
	struct dirent *e;
	int rc = 0;

	if (!d)
		return zb_fail(err, ZB_ESYS,
			       "the runtime fragments (policies/runtimes) are "
			       "not installed: install zotbox again");
	while (!rc && (e = readdir(d))) {
		size_t n = strlen(e->d_name);

		if (n > 5 && !strcmp(e->d_name + n - 5, ".json"))
			rc = zb_strv_take(out, zb_strndup(e->d_name, n - 5));
	}
	closedir(d);
	if (rc)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_name);
	return 0;
}

int zb_fragments_apply(const struct zb_fragment_vars *v, struct zb_program *out,
		       struct zb_error *err)
{
	struct zb_strv names = {0};
	int rc = names_of_fragments(&names, err);

	for (size_t i = 0; !rc && i < names.n; i++)
		rc = apply(names.v[i], v, out, err);
	zb_strv_done(&names);
	return rc;
}

int zb_fragment_add(const char *name, const struct zb_fragment_vars *v,
		    struct zb_program *out, struct zb_error *err)
{
	struct expansion x = {.v = v, .out = out, .err = err};
	int rc = load(&x, name);

	if (!rc)
		rc = take_lists(&x);
	expansion_done(&x);
	return rc;
}

/* ---- tidying ------------------------------------------------------------ */

/* A need seen with its links followed. */
struct seen {
	char *real;
	struct zb_strv links;
};

/* Is link @at shown by another need than @self: inside what it grants, or as
 * a need of its own? */
static bool link_is_shown(const char *at, const struct zb_need *needs,
			  const struct seen *seen, size_t n, size_t self)
{
	for (size_t i = 0; i < n; i++) {
		if (i == self || !needs[i].path)
			continue;
		if (!strcmp(needs[i].path, at))
			return true;
		if (needs[i].rights && seen[i].real &&
		    zb_path_below(at, seen[i].real))
			return true;
	}
	return false;
}

/* Does some other need show all of number @self: its target, and each link on
 * the way? */
static bool is_redundant(const struct zb_need *needs, const struct seen *seen,
			 size_t n, size_t self)
{
	unsigned rights = needs[self].rights;
	bool covered = false;

	if (!rights || !seen[self].real)
		return false;
	for (size_t i = 0; i < n && !covered; i++)
		covered = i != self && needs[i].path && seen[i].real &&
			  (needs[i].rights & rights) == rights &&
			  zb_path_below(seen[self].real, seen[i].real);
	for (size_t i = 0; i < seen[self].links.n && covered; i++)
		covered = link_is_shown(seen[self].links.v[i], needs, seen, n,
					self);
	return covered;
}

void zb_needs_tidy(const char *root, struct zb_need *needs, size_t *n)
{
	struct seen *seen = calloc(*n ? *n : 1, sizeof(*seen));
	size_t kept = 0;

	if (!seen)
		return; /* only mounts more than it must */
	for (size_t i = 0; i < *n; i++)
		if (needs[i].rights)
			seen[i].real = zb_host_resolve(root, needs[i].path,
						       &seen[i].links);
	/* From the end: of two spellings the one named first stays. */
	for (size_t i = *n; i-- > 0;) {
		if (!is_redundant(needs, seen, *n, i))
			continue;
		free(needs[i].path);
		free(needs[i].from);
		needs[i] = (struct zb_need){0};
		free(seen[i].real);
		seen[i].real = NULL;
	}
	for (size_t i = 0; i < *n; i++) {
		free(seen[i].real);
		zb_strv_done(&seen[i].links);
		if (needs[i].path)
			needs[kept++] = needs[i];
	}
	free(seen);
	*n = kept;
}
