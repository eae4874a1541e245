/* broker_over.c - single files that are granted for writing.
 *
 * Such a file is a mount of its own, so nothing can be renamed onto it, and
 * that is how many programs save: a new file beside it, then rename(2). For
 * them the new file's content is put into the granted one, which stays the file
 * it is, with its mode and owner; then the new one is gone as if it had been
 * renamed. Who reads it meanwhile may see a part of either. Room for the
 * content is made sure of first, so that a full disk leaves the old one.
 *
 * A mount shows one file, not whatever stands at a name. When the host replaces
 * the file, the sandbox still has the old one, which nobody else sees: what
 * would be written there were lost. That is refused and recorded as
 * stale_grant.
 */
#include "config.h"

#include "platform/linux/broker_int.h"

#include "cleanup.h"
#include "fdutil.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_BYTES (64 << 20) /* that are put into it while the caller waits */

/* The path on the host of the single file at @f, which may be written to; NULL:
 * it is none. */
static char *source_of(struct zb_call *c, const struct zb_spot *f)
{
	struct zb_broker *b = c->b;
	const struct zb_place *p;
	char *source = NULL;

	if (!S_ISREG(f->mode) || f->place < 0)
		return NULL;
	pthread_rwlock_rdlock(&b->plan_lock);
	p = b->plan ? &b->plan->places[f->place] : NULL;
	if (p && p->kind == ZB_PLACE_GRANT && !p->is_dir && !p->carved &&
	    (p->rights & ZB_MAY_WRITE))
		source = zb_strdup(p->source);
	pthread_rwlock_unlock(&b->plan_lock);
	return source;
}

static void refuse_over(struct zb_call *c, enum zb_op op, const char *target,
			int place, int err, const char *why)
{
	zb_refuse(c,
		  &(struct zb_refusal){
			  .op = op,
			  .asked = op == ZB_OP_FS_RENAME ? c->asked2 : c->asked,
			  .target = target,
			  .place = place,
			  .exists = true,
			  .err = err,
			  .why = why,
		  });
}

bool zb_is_stale(struct zb_call *c, enum zb_op op, struct zb_spot *f)
{
	zb_auto(free) char *source = source_of(c, f);
	struct stat here, there;

	if (source && c->b->jail.slow && zb_say_later(c))
		return true;
	if (!source || fstat(f->fd, &here) ||
	    (!lstat(source, &there) && here.st_dev == there.st_dev &&
	     here.st_ino == there.st_ino))
		return false;
	refuse_over(c, op, source, f->place, ESTALE,
		    "stale_grant: the host has replaced or removed this file "
		    "since the start, and inside it is still the old one; "
		    "start the extension again, or grant the directory");
	return true;
}

/* Return: 0 or an errno. */
static int copy_all(int from, int to, uint64_t size)
{
	char buf[65536];
	uint64_t done = 0;

	if (size && fallocate(to, FALLOC_FL_KEEP_SIZE, 0, (off_t)size) &&
	    errno != EOPNOTSUPP && errno != ENOSYS)
		return errno;
	while (done < size) {
		ssize_t n = pread(from, buf, sizeof(buf), (off_t)done);
		ssize_t k = 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (!n)
			break;
		if ((uint64_t)n > size - done)
			n = (ssize_t)(size - done);
		while (k < n) {
			ssize_t w = pwrite(to, buf + k, (size_t)(n - k),
					   (off_t)done + k);

			if (w < 0 && errno != EINTR)
				return errno;
			k += w < 0 ? 0 : w;
		}
		done += (uint64_t)n;
	}
	return ftruncate(to, (off_t)done) || fsync(to) ? errno : 0;
}

/* The caller waits, and this thread has no more rights than it. @f is the
 * granted file, to which @a is judged to be renamed. */
static void put_over(struct zb_call *c, const struct zb_name *a,
		     const struct zb_name *b, const struct zb_spot *f)
{
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	zb_auto(fd) int from = openat(a->dir->fd, a->name, O_RDONLY | flags);
	zb_auto(fd) int to = openat(b->dir->fd, b->name, O_WRONLY | flags);
	struct statx sx;
	struct stat st;
	int e = from < 0 || to < 0 ? errno : 0;

	if (!e &&
	    (fstat(to, &st) || st.st_dev != f->dev || st.st_ino != f->ino ||
	     statx(from, "", AT_EMPTY_PATH,
		   STATX_TYPE | STATX_SIZE | STATX_MNT_ID, &sx) ||
	     !S_ISREG(sx.stx_mode) || sx.stx_mnt_id != a->dir->mnt))
		e = EBUSY;
	if (!e && sx.stx_size > MAX_BYTES) {
		refuse_over(c, ZB_OP_FS_RENAME, b->path, f->place, EBUSY,
			    "built in: it is a mount of its own, and more than "
			    "64 MiB are not put into it in place of a rename; "
			    "grant the directory");
		return;
	}
	if (!e)
		e = copy_all(from, to, sx.stx_size);
	if (!e && unlinkat(a->dir->fd, a->name, 0))
		e = errno;
	if (e)
		zb_say_errno(c, e);
	else
		zb_say_result(c, 0);
}

bool zb_put_over(struct zb_call *c, const struct zb_name *a,
		 const struct zb_name *b)
{
	zb_auto(free) char *source = NULL;
	struct zb_spot to = {.fd = -1};
	bool ours = false;

	if (!b->mounted || !b->exists || a->mounted || a->slash || b->slash ||
	    !S_ISREG(a->mode) || !S_ISREG(b->mode) || zb_arg_flags(c))
		return false;
	zb_spot_fd(&c->b->jail,
		   openat(b->dir->fd, b->name, O_PATH | O_NOFOLLOW | O_CLOEXEC),
		   &to);
	if (to.fd >= 0 && zb_judge(c, ZB_OP_FS_WRITE, &to) == ZB_ALLOW)
		source = source_of(c, &to);
	if (source && !strcmp(source, b->path)) {
		ours = true;
		if (!zb_say_later(c) && !zb_is_stale(c, ZB_OP_FS_RENAME, &to) &&
		    zb_may_act(c))
			put_over(c, a, b, &to);
	}
	zb_spot_done(&to);
	return ours;
}
