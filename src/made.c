/* made.c - directories made at the start, removed at the end if still empty.
 *
 * Two instances may have the same one. Whoever removed it under the other
 * would leave it with a directory that nothing can be made in any more. So each
 * holds it with a shared lock, and only who gets it alone removes it. */
#include "config.h"

#include "made.h"

#include "cleanup.h"
#include "fdutil.h"
#include "path_match.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define TRIES 50

/* The directory @path, through no link. Return: descriptor or -1. */
static int open_plain(const char *path)
{
	const struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

/* Does @name in @dir still lead to @fd? */
static bool is_there(int dir, const char *name, int fd)
{
	struct stat a, b;

	return !fstat(fd, &a) && !fstatat(dir, name, &b, AT_SYMLINK_NOFOLLOW) &&
	       a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static void nap(void)
{
	struct timespec t = {.tv_nsec = 2 * 1000 * 1000};

	nanosleep(&t, NULL);
}

/* Make or join @d->path. Another that is about to remove it is waited for. */
static int take(struct zb_made_dir *d, struct zb_error *err)
{
	zb_auto(free) char *parent = zb_path_dir(d->path);
	const char *name = zb_path_name(d->path);
	zb_auto(fd) int dir = parent ? open_plain(parent) : -1;

	if (dir < 0)
		return zb_fail_sys(err, errno, "open %s", parent ? parent : "");
	for (int i = 0; i < TRIES; i++) {
		int fd;

		d->ours = !mkdirat(dir, name, 0777);
		if (!d->ours && errno != EEXIST)
			return zb_fail_sys(err, errno, "make %s", d->path);
		fd = openat(dir, name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT)
			return zb_fail(err, ZB_EPOLICY,
				       "%s is in the way: it is no directory",
				       d->path);
		if (fd >= 0 && !flock(fd, LOCK_SH | LOCK_NB) &&
		    is_there(dir, name, fd)) {
			d->fd = fd;
			return 0;
		}
		if (fd >= 0)
			close(fd);
		nap();
	}
	return zb_fail(err, ZB_ESYS, "%s comes and goes: try again", d->path);
}

int zb_made_make(struct zb_made *out, const struct zb_strv *paths,
		 struct zb_error *err)
{
	int rc = 0;

	*out = (struct zb_made){0};
	if (!paths->n)
		return 0;
	out->v = calloc(paths->n, sizeof(*out->v));
	if (!out->v)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	for (size_t i = 0; !rc && i < paths->n; i++) {
		struct zb_made_dir *d = &out->v[out->n++];

		d->fd = -1;
		d->path = zb_strdup(paths->v[i]);
		rc = d->path ? take(d, err)
			     : zb_fail(err, ZB_ELIMIT, "out of memory");
	}
	if (rc)
		zb_made_done(out);
	return rc;
}

static void give_back(struct zb_made_dir *d)
{
	zb_auto(free) char *parent = NULL;
	zb_auto(fd) int dir = -1;

	if (d->fd < 0 || !d->ours || flock(d->fd, LOCK_EX | LOCK_NB))
		return;
	parent = zb_path_dir(d->path);
	dir = parent ? open_plain(parent) : -1;
	/* With anything in it, it stays. */
	if (dir >= 0 && is_there(dir, zb_path_name(d->path), d->fd))
		unlinkat(dir, zb_path_name(d->path), AT_REMOVEDIR);
}

void zb_made_done(struct zb_made *m)
{
	/* Inner ones first. */
	for (size_t i = m->n; i-- > 0;) {
		give_back(&m->v[i]);
		if (m->v[i].fd >= 0)
			close(m->v[i].fd);
		free(m->v[i].path);
	}
	free(m->v);
	*m = (struct zb_made){0};
}
