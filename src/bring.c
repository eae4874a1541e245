/* bring.c - from a source to files that were judged, and to the manifest and
 * the lock that are made of them. */
#include "config.h"

#include "bring.h"

#include "cleanup.h"
#include "denial.h"
#include "fdutil.h"
#include "lock.h"
#include "text.h"
#include "tree_copy.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define LARGE_MAX     ((size_t)64 << 20)
#define FILE_MAX      ((size_t)1 << 20)
#define CLONE_SECONDS 600u

static int no_memory(struct zb_error *err)
{
	return zb_fail(err, ZB_ELIMIT, "out of memory");
}

void zb_brought_done(struct zb_brought *b)
{
	zb_source_done(&b->source);
	zb_manifest_done(&b->manifest);
	zb_buf_done(&b->shipped);
}

static int slurp(const char *dir, const char *name, size_t max,
		 struct zb_buf *out, bool *found, struct zb_error *err)
{
	zb_auto(free) char *path = zb_strf("%s/%s", dir, name);
	struct zb_error e = {0};

	*found = false;
	if (!path)
		return no_memory(err);
	if (zb_read_file(path, max, out, &e)) {
		if (e.sys == ENOENT)
			return 0;
		if (err)
			*err = e;
		return e.code;
	}
	*found = true;
	return 0;
}

int zb_slurp(const char *dir, const char *name, struct zb_buf *out, bool *found,
	     struct zb_error *err)
{
	return slurp(dir, name, FILE_MAX, out, found, err);
}

int zb_slurp_large(const char *dir, const char *name, struct zb_buf *out,
		   bool *found, struct zb_error *err)
{
	return slurp(dir, name, LARGE_MAX, out, found, err);
}

int zb_put(const char *dir, const char *name, const struct zb_buf *b,
	   unsigned mode, struct zb_error *err)
{
	zb_auto(free) char *path = zb_strf("%s/%s", dir, name);

	return path ? zb_write_file_atomic(path, zb_buf_str(b), b->len, mode,
					   err)
		    : no_memory(err);
}

/* ---- the files ----------------------------------------------------------- */

struct job {
	struct zb_brought *b;
	const char *to, *scratch;
	const struct zb_bringing *how;
	struct zb_strv *warnings;
};

static int say_git(struct job *j, struct zb_error *err)
{
	const char *commit = j->b->source.commit;

	return zb_strv_addf(j->warnings, ".git left out%s%s%s",
			    commit ? " (source commit " : "",
			    commit ? commit : "", commit ? " recorded)" : "")
		       ? no_memory(err)
		       : 0;
}

static int copy_from(struct job *j, const char *from, struct zb_error *err)
{
	struct zb_tree_copy c = {
		.stop = j->how->stop,
		.progress = j->how->progress,
		.ctx = j->how->ctx,
	};
	int rc = zb_tree_copy(from, j->to, &c, err);

	for (size_t i = 0; !rc && i < c.warnings.n; i++)
		if (zb_strv_add(j->warnings, c.warnings.v[i]))
			rc = no_memory(err);
	if (!rc && c.git_left_out && j->b->source.kind == ZB_SOURCE_PATH)
		rc = say_git(j, err);
	zb_strv_done(&c.warnings);
	return rc;
}

static int fetch(struct job *j, struct zb_error *err)
{
	zb_auto(free) char *clone = zb_strf("%s/clone", j->scratch);
	const char *from = j->b->source.dir;
	int rc = clone ? 0 : no_memory(err);

	if (!rc && j->b->source.kind == ZB_SOURCE_GIT) {
		rc = zb_source_clone(&j->b->source, clone, CLONE_SECONDS,
				     j->how->stop, err);
		from = clone;
	}
	if (!rc)
		rc = copy_from(j, from, err);
	if (!rc && zb_source_submodules(j->to, j->warnings))
		rc = no_memory(err);
	return rc;
}

/* ---- the manifest -------------------------------------------------------- */

/* Links of the stage were judged: what is there is inside. */
static bool has_theme(const char *dir)
{
	static const char *const names[] = {"theme.json", "themes/theme.json"};
	struct stat st;

	for (size_t i = 0; i < ZB_ARRAY_LEN(names); i++) {
		zb_auto(free) char *path = zb_strf("%s/%s", dir, names[i]);

		if (path && !stat(path, &st) && S_ISREG(st.st_mode))
			return true;
	}
	return false;
}

/* A theme that is named by its path lies inside, whatever is there later. */
static int check_theme(const struct zb_brought *b, struct zb_error *err)
{
	const char *theme = b->manifest.theme;
	struct zb_buf shown = {0};

	if (!theme || (theme[0] != '/' && theme[0] != '~' &&
		       !strstr(theme, "..") && !strchr(theme, '\\')))
		return 0;
	zb_text_escape(&shown, theme, strlen(theme), 200);
	zb_fail(err, ZB_EPOLICY,
		"refused: extension.json: theme \"%s\" may lie outside the "
		"extension",
		zb_buf_str(&shown));
	zb_buf_done(&shown);
	return ZB_EPOLICY;
}

/* The manifest as shipped: its bytes and what they mean. */
static int read_manifest(struct zb_brought *b, const char *dir,
			 struct zb_error *err)
{
	bool found;
	int rc = zb_slurp(dir, "extension.json", &b->shipped, &found, err);

	if (rc)
		return rc;
	if (!found)
		return zb_fail(err, ZB_EUSAGE,
			       "%s: source lacks extension.json",
			       b->source.shown);
	rc = zb_manifest_parse(&b->manifest, zb_buf_str(&b->shipped),
			       b->shipped.len, has_theme(dir), err);
	if (rc)
		return zb_wrap(err, "%s/extension.json", b->source.shown), rc;
	if (b->manifest.wrapped)
		return zb_fail(err, ZB_EPOLICY,
			       "%s is what zotbox made of \"%s\" when it was "
			       "installed; install it from where it came",
			       b->source.shown, b->manifest.name);
	return check_theme(b, err);
}

int zb_bring(struct zb_brought *b, const char *to, const char *scratch,
	     const struct zb_bringing *how, struct zb_strv *warnings,
	     struct zb_error *err)
{
	struct job j = {.b = b,
			.to = to,
			.scratch = scratch,
			.how = how,
			.warnings = warnings};
	int rc = fetch(&j, err);

	return rc ? rc : read_manifest(b, to, err);
}

/* ---- what is made of it -------------------------------------------------- */

static char *now_rfc3339(void)
{
	struct timespec t;
	struct zb_buf b = {0};

	clock_gettime(CLOCK_REALTIME, &t);
	zb_time_rfc3339((int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000, &b);
	return zb_buf_steal(&b);
}

int zb_write_lock(const struct zb_brought *b, const char *dir, const char *box,
		  const char *policy, struct zb_lock *out, struct zb_error *err)
{
	zb_auto(free) char *path = zb_strf("%s/lock.json", box);
	zb_auto(free) char *shipped = zb_strf("%s/manifest.json", box);
	struct zb_lock l = {0};
	int rc;

	if (!path || !shipped)
		return no_memory(err);
	rc = zb_lock_make(&l, dir, shipped, err);
	if (rc)
		return rc;
	l.source = zb_strdup(b->source.shown);
	l.commit = zb_strdup(b->source.commit);
	l.policy = zb_strdup(policy);
	l.installed = now_rfc3339();
	rc = zb_lock_write(&l, path, err);
	if (!rc && out)
		*out = l;
	else
		zb_lock_done(&l);
	return rc;
}

int zb_wrapped_text(const struct zb_manifest *m, struct zb_buf *out,
		    struct zb_error *err)
{
	zb_auto(free) char *self = zb_own_program();
	int rc;

	if (!self)
		return zb_fail(err, ZB_ESYS,
			       "the path of this program cannot be found");
	rc = zb_manifest_wrap(out, m, self);
	if (rc == ZB_EUSAGE)
		return zb_fail(err, rc,
			       "%s: the path of this program is not UTF-8, and "
			       "a manifest cannot name it",
			       self);
	return rc ? no_memory(err) : 0;
}

/* The mode of a manifest that takes the place of @path. */
unsigned zb_manifest_mode(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0644 : (st.st_mode & 0644) | 0600;
}

int zb_put_wrapped(const struct zb_manifest *m, const char *dir,
		   struct zb_error *err)
{
	zb_auto(free) char *path = zb_strf("%s/extension.json", dir);
	struct zb_buf wrapped = {0};
	int rc;

	if (!m->exec)
		return 0;
	rc = path ? zb_wrapped_text(m, &wrapped, err) : no_memory(err);
	if (!rc)
		rc = zb_write_file_atomic(path, zb_buf_str(&wrapped),
					  wrapped.len, zb_manifest_mode(path),
					  err);
	zb_buf_done(&wrapped);
	return rc;
}
