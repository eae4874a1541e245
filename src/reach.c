/* reach.c - counting below a path, within bounds. */
#include "config.h"

#include "reach.h"

#include "cleanup.h"
#include "path_match.h"

#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The host's path, or NULL: it depends on the start. */
static char *host_path(const struct zb_store *store, const char *value)
{
	if (!strcmp(value, "~") || !strncmp(value, "~/", 2))
		return zb_strf("%s%s", store->home, value + 1);
	if (!strncmp(value, "${home}", 7) && (!value[7] || value[7] == '/'))
		return zb_strf("%s%s", store->home, value + 7);
	if (!strncmp(value, "${zot_home}", 11) &&
	    (!value[11] || value[11] == '/'))
		return zb_strf("%s%s", store->zot_home, value + 11);
	return value[0] == '/' ? zb_strdup(value) : NULL;
}

/* One entry that fts came to. */
static void count(struct zb_reach *out, const FTSENT *e, size_t skip)
{
	bool secret = zb_looks_like_credentials(e->fts_name);

	if (e->fts_info != FTS_F && e->fts_info != FTS_NSOK &&
	    e->fts_info != FTS_DEFAULT && e->fts_info != FTS_SL)
		return;
	out->files++;
	if (!secret)
		return;
	out->secrets++;
	if (!out->example && e->fts_pathlen > skip)
		out->example = zb_strdup(e->fts_path + skip);
}

/* @only: of what is directly in @real no more than what matches it. */
static int walk(struct zb_reach *out, char *real, const char *only)
{
	char *const roots[] = {real, NULL};
	const int64_t end = now_ms() + ZB_REACH_MS_MAX;
	const size_t skip = strlen(real) + 1;
	FTS *f = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	FTSENT *e;

	if (!f)
		return ZB_ELIMIT;
	while ((e = fts_read(f))) {
		if (only && e->fts_level == 1 &&
		    !zb_pattern_match(only, e->fts_path)) {
			fts_set(f, e, FTS_SKIP);
			continue;
		}
		count(out, e, skip);
		if (out->files >= ZB_REACH_FILES_MAX || now_ms() > end) {
			out->more = true;
			break;
		}
	}
	fts_close(f);
	return 0;
}

static bool holds(const char *real, const char *what)
{
	zb_auto(free) char *path = realpath(what, NULL);

	return path && zb_path_below(path, real);
}

/* The directory that a pattern in the last component is about, and in *@only
 * the pattern with its real name. Return: NULL for any other pattern. */
static char *of_pattern(const char *plain, char **only)
{
	zb_auto(free) char *dir = zb_path_dir(plain);
	zb_auto(free) char *real = NULL;

	if (!dir || zb_pattern_is_glob(dir))
		return NULL;
	real = realpath(dir, NULL);
	if (!real)
		return NULL;
	*only = zb_strf("%s/%s", strcmp(real, "/") ? real : "",
			zb_path_name(plain));
	return *only ? zb_steal(&real) : NULL;
}

static bool holds_matching(const char *only, const char *what)
{
	zb_auto(free) char *path = realpath(what, NULL);

	return path && zb_pattern_match(only, path);
}

/* The directories of PATH, where they really are. */
static int path_dirs(struct zb_strv *out)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t n = strcspn(path, ":");
		zb_auto(free) char *dir = zb_strndup(path, n);
		zb_auto(free) char *real = NULL;

		if (!dir)
			return ZB_ELIMIT;
		if (*dir == '/')
			real = realpath(dir, NULL);
		/* One that is not there yet is a directory of programs once
		 * it is made. */
		if (*dir == '/' && !real)
			real = zb_path_join(NULL, dir);
		if (real && zb_strv_take(out, zb_steal(&real)))
			return ZB_ELIMIT;
		path += n;
		path += *path == ':';
	}
	return 0;
}

/* Does something in @real run later? Of the whole HOME it goes without saying.
 */
static int look_for_runs(struct zb_reach *out, const struct zb_store *store,
			 const char *real, const char *only)
{
	zb_auto(free) char *home = realpath(store->home, NULL);
	struct zb_strv dirs = {0};
	int rc = out->all ? 0 : path_dirs(&dirs);
	const char *hit = NULL;

	if (!rc && !out->all)
		hit = zb_run_later(real, only, store->home, &dirs);
	if (!rc && !out->all && !hit && home)
		hit = zb_run_later(real, only, home, &dirs);
	out->runs = zb_strdup(hit);
	if (hit && !out->runs)
		rc = ZB_ELIMIT;
	zb_strv_done(&dirs);
	return rc;
}

static int look_at_pattern(struct zb_reach *out, const struct zb_store *store,
			   const char *plain)
{
	zb_auto(free) char *only = NULL;
	zb_auto(free) char *real = of_pattern(plain, &only);

	if (!real)
		return 0;
	out->all = holds_matching(only, store->home);
	out->keeper = holds_matching(only, store->zot_home);
	out->kind = ZB_REACH_DIR;
	if (look_for_runs(out, store, real, only))
		return ZB_ELIMIT;
	return walk(out, real, only);
}

int zb_reach_look(struct zb_reach *out, const struct zb_store *store,
		  const char *value)
{
	zb_auto(free) char *path = host_path(store, value);
	zb_auto(free) char *plain = path ? zb_path_join("/", path) : NULL;
	zb_auto(free) char *real = NULL;
	struct stat st;
	int rc = 0;

	*out = (struct zb_reach){0};
	if (!plain)
		return 0;
	if (zb_pattern_is_glob(plain)) {
		rc = look_at_pattern(out, store, plain);
		goto out;
	}
	real = realpath(plain, NULL);
	if (!real || stat(real, &st)) {
		out->kind = ZB_REACH_ABSENT;
		rc = look_for_runs(out, store, plain, NULL);
		goto out;
	}
	out->all = holds(real, store->home);
	out->keeper = holds(real, store->zot_home);
	if (strcmp(real, plain) != 0)
		out->leads_to = zb_strdup(real);
	rc = look_for_runs(out, store, real, NULL);
	if (rc)
		goto out;
	if (S_ISDIR(st.st_mode)) {
		out->kind = ZB_REACH_DIR;
		rc = walk(out, real, NULL);
	} else {
		out->kind =
			S_ISREG(st.st_mode) ? ZB_REACH_FILE : ZB_REACH_OTHER;
		out->files = 1;
		out->secrets = zb_looks_like_credentials(zb_path_name(real));
	}
out:
	if (rc)
		zb_reach_done(out);
	return rc;
}

int zb_reach_ask(struct zb_ask *out, const struct zb_store *store,
		 const char *key, const char *value)
{
	struct zb_reach reach = {0};
	int rc = 0;

	if (!strcmp(key, "fs.read") || !strcmp(key, "fs.write"))
		rc = zb_reach_look(&reach, store, value);
	if (!rc)
		rc = zb_ask_say(out, key, value, &reach);
	zb_reach_done(&reach);
	return rc;
}
