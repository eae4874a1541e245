/* staging.c - stages, and the mark; see staging.h for the idea.
 *
 * Order of locks: that of a NAME, then the one for making and judging stages
 * (zotbox/.lock, held for a moment), then the stage's own. */
#include "config.h"

#include "staging.h"

#include "cleanup.h"
#include "fdutil.h"
#include "stubs.h"
#include "swap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STAGE_PREFIX  ".stage-"
#define ASIDE_PREFIX  "aside-"
#define JUDGE_WAIT_MS 5000

static int no_memory(struct zb_error *err)
{
	return zb_fail(err, ZB_ELIMIT, "out of memory");
}

/* ---- stages -------------------------------------------------------------- */

/* Between its making and its lock, a stage would look like a left-over: both
 * happen under this one. The file goes with the lock. */
static int judge_lock(const struct zb_store *s, char **path, int *fd,
		      struct zb_error *err)
{
	*path = zb_strf("%s/.lock", s->boxes);
	return *path ? zb_lock_file(*path, true, JUDGE_WAIT_MS, fd, err)
		     : no_memory(err);
}

static int hold_stage(const char *dir, int *fd, struct zb_error *err)
{
	zb_auto(free) char *path = zb_strf("%s/.hold", dir);

	return path ? zb_lock_file(path, true, 0, fd, err) : no_memory(err);
}

int zb_staging_make(struct zb_staging *out, const struct zb_store *s,
		    struct zb_error *err)
{
	zb_auto(free) char *dir =
		zb_strf("%s/" STAGE_PREFIX "XXXXXX", s->boxes);
	zb_auto(free) char *lock = NULL;
	zb_auto(fd) int judge = -1;
	int rc;

	*out = (struct zb_staging){.hold = -1};
	if (!dir)
		return no_memory(err);
	rc = zb_make_dirs(s->zot_home, 0755, err);
	if (!rc)
		rc = zb_make_dirs(s->boxes, 0700, err);
	if (!rc)
		rc = judge_lock(s, &lock, &judge, err);
	if (rc)
		return rc;
	if (!mkdtemp(dir))
		rc = zb_fail_sys(err, errno, "make a directory in %s",
				 s->boxes);
	else if (hold_stage(dir, &out->hold, err))
		rc = ZB_ESYS, rmdir(dir);
	else
		out->dir = zb_steal(&dir);
	unlink(lock);
	return rc;
}

int zb_staging_put_aside(const struct zb_staging *st, const struct zb_store *s,
			 const char *name, struct zb_error *err)
{
	zb_auto(free) char *box = zb_store_box(s, name, "");
	zb_auto(free) char *to =
		zb_strf("%s/" ASIDE_PREFIX "%s", st->dir, name);

	if (!box || !to)
		return no_memory(err);
	return rename(box, to)
		       ? zb_fail_sys(err, errno, "move %s to %s", box, to)
		       : 0;
}

/* One thing put aside: back to its place, if that is empty. False: somebody
 * is at work on that NAME, so it must stay for now. */
static bool put_back(const struct zb_store *s, const char *from,
		     const char *name, const char *held)
{
	zb_auto(free) char *box = zb_store_box(s, name, "");
	zb_auto(fd) int fd = -1;
	struct stat st;

	if (!box)
		return false;
	if ((!held || strcmp(held, name) != 0) &&
	    zb_store_lock(s, name, true, 0, &fd, NULL))
		return false;
	/* A failed rename means that there is a successor, or will. */
	if (lstat(box, &st) && errno == ENOENT)
		return !rename(from, box);
	return true;
}

static bool put_back_all(const struct zb_store *s, const char *dir,
			 const char *held)
{
	const size_t n = strlen(ASIDE_PREFIX);
	DIR *d = opendir(dir);
	struct dirent *e;
	bool all = true;

	while (d && (e = readdir(d))) {
		zb_auto(free) char *from = zb_strf("%s/%s", dir, e->d_name);

		if (!strncmp(e->d_name, ASIDE_PREFIX, n) &&
		    zb_name_valid(e->d_name + n))
			all = from && put_back(s, from, e->d_name + n, held) &&
			      all;
	}
	if (d)
		closedir(d);
	return all;
}

void zb_staging_end(struct zb_staging *st, const struct zb_store *s,
		    const char *name)
{
	if (st->dir && put_back_all(s, st->dir, name))
		zb_remove_tree(st->dir, NULL);
	if (st->hold >= 0)
		close(st->hold);
	free(st->dir);
	*st = (struct zb_staging){.hold = -1};
}

/* A stage that can be locked is nobody's any more. */
static void drop_stage(const struct zb_store *s, const char *name)
{
	struct zb_staging st = {.hold = -1};
	zb_auto(free) char *lock = NULL;
	zb_auto(fd) int judge = -1;

	st.dir = zb_strf("%s/%s", s->boxes, name);
	if (st.dir && !judge_lock(s, &lock, &judge, NULL)) {
		int rc = hold_stage(st.dir, &st.hold, NULL);

		unlink(lock);
		close(zb_steal_fd(&judge));
		if (!rc) {
			zb_staging_end(&st, s, NULL);
			return;
		}
	}
	free(st.dir);
}

/* ---- deleting ------------------------------------------------------------ */

int zb_discard(const struct zb_store *s, const char *path, struct zb_error *err)
{
	struct zb_staging st = {.hold = -1};
	zb_auto(free) char *to = NULL;
	struct stat sb;
	bool moved;

	if (lstat(path, &sb))
		return errno == ENOENT
			       ? 0
			       : zb_fail_sys(err, errno, "remove %s", path);
	/* A full disk has no room for a stage; another file system, or a
	 * directory that may not be written, does not let itself be moved. */
	moved = !zb_staging_make(&st, s, NULL) &&
		(to = zb_strf("%s/old", st.dir)) && !rename(path, to);
	zb_staging_end(&st, s, NULL);
	return moved ? 0 : zb_remove_tree(path, err);
}

int zb_replace_file(const struct zb_store *s, const char *path,
		    const struct zb_buf *text, unsigned mode,
		    struct zb_error *err)
{
	struct zb_staging st = {.hold = -1};
	zb_auto(free) char *temp = NULL;
	int rc = zb_staging_make(&st, s, err);

	if (!rc && !(temp = zb_strf("%s/new", st.dir)))
		rc = no_memory(err);
	if (!rc)
		rc = zb_write_file_atomic(temp, zb_buf_str(text), text->len,
					  mode, err);
	if (!rc && rename(temp, path))
		rc = errno == EXDEV
			     ? zb_write_file_atomic(path, zb_buf_str(text),
						    text->len, mode, err)
			     : zb_fail_sys(err, errno, "write %s", path);
	zb_staging_end(&st, s, NULL);
	return rc;
}

void zb_forget_lock(const struct zb_store *s, const char *name, int fd)
{
	zb_auto(free) char *box = NULL;
	zb_auto(free) char *lock = NULL;
	struct stat st;

	if (fd < 0)
		return;
	box = zb_store_box(s, name, "");
	lock = zb_strf("%s/.lock-%s", s->boxes, name);
	if (box && lock && lstat(box, &st) && errno == ENOENT)
		unlink(lock);
	close(fd);
}

/* ---- the mark ------------------------------------------------------------ */

/* A number that may be used again, and when it was made. */
bool zb_identity(const char *path, char out[ZB_IDENTITY_MAX])
{
	struct statx x;

	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME,
		  &x))
		return false;
	if (!(x.stx_mask & STATX_BTIME))
		x.stx_btime = (struct statx_timestamp){0};
	snprintf(out, ZB_IDENTITY_MAX, "%llu %lld.%u",
		 (unsigned long long)x.stx_ino, (long long)x.stx_btime.tv_sec,
		 x.stx_btime.tv_nsec);
	return true;
}

int zb_mark(const char *box, const char *ext, bool keep_box,
	    struct zb_error *err)
{
	zb_auto(free) char *path = zb_strf("%s/staged", box);
	zb_auto(free) char *line = NULL;
	char id[ZB_IDENTITY_MAX];

	if (!zb_identity(ext, id))
		return zb_fail_sys(err, errno, "look at %s", ext);
	line = zb_strf("%s%s\n", id, keep_box ? " keep" : "");
	return path && line ? zb_write_file_atomic(path, line, strlen(line),
						   0600, err)
			    : no_memory(err);
}

bool zb_is_marked(const struct zb_store *s, const char *name)
{
	zb_auto(free) char *mark = zb_store_box(s, name, "staged");

	return mark && !access(mark, F_OK);
}

int zb_sync_dir(const char *dir, struct zb_error *err)
{
	zb_auto(fd) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || (fsync(fd) && errno != EINVAL && errno != EROFS))
		return zb_fail_sys(err, errno, "sync %s", dir);
	return 0;
}

int zb_unmark(const struct zb_store *s, const char *name, struct zb_error *err)
{
	zb_auto(free) char *mark = zb_store_box(s, name, "staged");
	zb_auto(free) char *box = zb_store_box(s, name, "");
	int rc;

	if (!mark || !box)
		return no_memory(err);
	rc = zb_sync_dir(s->extensions, err);
	if (!rc)
		rc = zb_sync_dir(s->boxes, err);
	if (!rc && unlink(mark))
		rc = zb_fail_sys(err, errno, "remove %s", mark);
	/* It is done; at worst a crash undoes it. */
	if (!rc)
		(void)zb_sync_dir(box, NULL);
	return rc;
}

int zb_undo_marked(const struct zb_store *s, const char *name,
		   struct zb_error *err)
{
	zb_auto(free) char *mark = zb_store_box(s, name, "staged");
	zb_auto(free) char *box = zb_store_box(s, name, "");
	zb_auto(free) char *ext = zb_strf("%s/%s", s->extensions, name);
	struct zb_buf line = {0};
	char id[ZB_IDENTITY_MAX] = "";
	size_t n;
	bool keep;
	int rc = 0;

	if (!mark || !box || !ext)
		return no_memory(err);
	rc = zb_undo_swap(s, name, err);
	if (rc || access(mark, F_OK))
		return rc;
	if (zb_read_file(mark, 256, &line, NULL))
		zb_buf_clear(&line);
	n = zb_identity(ext, id) ? strlen(id) : 0;
	keep = strstr(zb_buf_str(&line), " keep\n");
	/* Something else of this name is not ours to delete. */
	if (n && !strncmp(zb_buf_str(&line), id, n) &&
	    strchr(" \n", zb_buf_str(&line)[n]))
		rc = zb_discard(s, ext, err);
	zb_buf_done(&line);
	if (rc)
		return rc;
	if (!keep)
		return zb_discard(s, box, err);
	return unlink(mark) && errno != ENOENT
		       ? zb_fail_sys(err, errno, "remove %s", mark)
		       : 0;
}

/* ---- left-overs ---------------------------------------------------------- */

/* A file that is about to be renamed over another, or tried: while nobody
 * holds the lock of the NAME, it is a left-over. */
static bool is_litter(const char *name)
{
	return (!strncmp(name, ".zb-", 4) && strlen(name) == 10) ||
	       !strncmp(name, ".scope-trial-", 13);
}

static void find_litter(const char *box, struct zb_strv *out)
{
	DIR *d = opendir(box);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (is_litter(e->d_name))
			zb_strv_addf(out, "%s/%s", box, e->d_name);
	if (d)
		closedir(d);
}

static void finish_box(const struct zb_store *s, const char *name)
{
	zb_auto(free) char *box = zb_store_box(s, name, "");
	struct zb_strv litter = {0};
	int fd = -1;

	if (box)
		find_litter(box, &litter);
	if ((litter.n || zb_is_marked(s, name) || zb_is_swapping(s, name)) &&
	    !zb_store_lock(s, name, true, 0, &fd, NULL)) {
		for (size_t i = 0; i < litter.n; i++)
			unlink(litter.v[i]);
		zb_undo_marked(s, name, NULL);
		zb_forget_lock(s, name, fd);
	}
	zb_strv_done(&litter);
}

/* "@HASH", the box of a path. */
static bool is_path_box(const char *name)
{
	return name[0] == '@' && strlen(name) == 17 &&
	       strspn(name + 1, "0123456789abcdef") == 16;
}

/* Does somebody start something in @box just now? Then we do not wait. */
static bool is_edited(const char *box)
{
	zb_auto(free) char *lock = zb_strf("%s/edit.lock", box);
	zb_auto(fd) int fd = -1;

	return !lock || zb_lock_file(lock, true, 0, &fd, NULL);
}

/* Those who start it or ask about it write under the run lock of the box, who
 * trusts it under that of the name. One that says no path is of a trust that
 * had hardly begun, or of a question: it goes. */
static void finish_path_box(const struct zb_store *s, const char *name)
{
	zb_auto(free) char *box = zb_store_box(s, name, "");
	zb_auto(free) char *path = zb_store_box(s, name, "path");
	bool nobodys = path && access(path, F_OK);
	int fd = -1, locks[2] = {-1, -1};
	struct zb_strv litter = {0};

	if (box)
		find_litter(box, &litter);
	if (box && (litter.n || nobodys) &&
	    !zb_store_lock(s, name, true, 0, &fd, NULL)) {
		if (!is_edited(box) && !zb_stubs_own(box, locks, NULL)) {
			for (size_t i = 0; i < litter.n; i++)
				unlink(litter.v[i]);
			if (nobodys && access(path, F_OK))
				zb_discard(s, box, NULL);
		}
		for (int i = 0; i < 2; i++)
			zb_auto_fd(&locks[i]);
		zb_forget_lock(s, name, fd);
	}
	zb_strv_done(&litter);
}

/* The file of a lock whose holder was killed. */
static void drop_judge_lock(const struct zb_store *s)
{
	zb_auto(free) char *lock = NULL;
	zb_auto(fd) int judge = -1;

	if (!judge_lock(s, &lock, &judge, NULL))
		unlink(lock);
}

void zb_recover(const struct zb_store *s)
{
	struct zb_strv stages = {0}, names = {0};
	DIR *d = opendir(s->boxes);
	bool locked = false;
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, STAGE_PREFIX, strlen(STAGE_PREFIX)))
			zb_strv_add(&stages, e->d_name);
		else if (!strcmp(e->d_name, ".lock"))
			locked = true;
		else if (zb_name_valid(e->d_name) || is_path_box(e->d_name))
			zb_strv_add(&names, e->d_name);
	if (d)
		closedir(d);
	/* Boxes first: what was put aside goes back to an empty place. */
	for (size_t i = 0; i < names.n; i++)
		if (is_path_box(names.v[i]))
			finish_path_box(s, names.v[i]);
		else
			finish_box(s, names.v[i]);
	for (size_t i = 0; i < stages.n; i++)
		drop_stage(s, stages.v[i]);
	if (locked && !stages.n)
		drop_judge_lock(s);
	zb_strv_done(&stages);
	zb_strv_done(&names);
}
