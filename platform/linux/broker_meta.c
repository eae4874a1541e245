/* broker_meta.c - truncate, chmod, chown, utime, xattr.
 *
 * Landlock mediates none of these but truncate, and only from ABI 3; by path,
 * and on an O_PATH descriptor through /proc/self/fd, they work on any file
 * that can be named. So they never go on in the kernel: the broker does them
 * on what it has resolved and judged. Through /proc they are refused. */
#include "config.h"

#include "platform/linux/broker_int.h"
#include "platform/linux/peer.h"

#include "cleanup.h"
#include "fdutil.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <utime.h>

#define XATTR_VALUE_MAX 65536 /* as the kernel has it */
#define XATTR_NAME	256
#define ST_READONLY	1 /* in statfs f_flags */
/* Majors of the terminals of a devpts. */
#define PTY_FIRST 136
#define PTY_LAST  143

/* The object of a call by path, into @c->found. Return: false if answered. */
static bool subject(struct zb_call *c, enum zb_op op, enum zb_ask ask)
{
	bool follow = !(zb_arg_flags(c) & AT_SYMLINK_NOFOLLOW);

	return zb_arg_spell(c, c->row->dir, c->row->path, c->asked, c->full) &&
	       zb_locate(c, op, c->asked, c->full, follow, ask, &c->found);
}

static bool may_be_changed(struct zb_call *c)
{
	if (zb_judge(c, ZB_OP_FS_META, &c->found) != ZB_DENY)
		return zb_may_act(c);
	zb_refuse_found(c, ZB_OP_FS_META, &c->found, c->asked, ZB_ASK_OWNER);
	return false;
}

/* /dev/null and its like are the host's own, and their mounts cannot be
 * read-only (bwrap's would be nodev as well): for root, who owns them, a
 * change of mode would be one for everybody. A terminal is the sandbox's.
 * Return: true if so, and refused. */
static bool is_host_device(struct zb_call *c)
{
	struct zb_spot *f = &c->found;
	struct stat st;
	unsigned m;

	if (!S_ISCHR(f->mode) && !S_ISBLK(f->mode))
		return false;
	m = fstat(f->fd, &st) ? 0 : major(st.st_rdev);
	if (S_ISCHR(f->mode) && m >= PTY_FIRST && m <= PTY_LAST)
		return false;
	if (zb_spot_name(&c->b->jail, f)) {
		zb_say_errno(c, EPERM);
		return true;
	}
	zb_refuse(c, &(struct zb_refusal){
			     .op = ZB_OP_FS_META,
			     .asked = f->path,
			     .target = f->path,
			     .place = f->place,
			     .exists = true,
			     .err = EPERM,
			     .why = "the device is the host's own",
		     });
	return true;
}

bool zb_is_open_to_write(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_PATH) &&
	       (flags & O_ACCMODE) != O_RDONLY;
}

/* In a place that may be written to a descriptor may be of a file that may only
 * be read. One without a name is nobody else's. Return: true if so, and
 * refused. */
static bool is_closed(struct zb_call *c)
{
	const struct zb_jail_mount *m =
		zb_jail_mount(&c->b->jail, c->found.mnt);
	struct stat st;

	if (!m || !m->carved || zb_is_open_to_write(c->found.fd) ||
	    fstat(c->found.fd, &st) || !st.st_nlink ||
	    zb_judge(c, ZB_OP_FS_META, &c->found) != ZB_DENY)
		return false;
	zb_refuse_found(c, ZB_OP_FS_META, &c->found, c->found.path,
			ZB_ASK_OWNER);
	return true;
}

/* A descriptor of the caller, for calls on descriptors. Return: false if
 * answered: not one that can be written through, or its mount cannot. */
static bool writable_fd(struct zb_call *c, int peer_fd)
{
	struct zb_spot *f = &c->found;
	struct statfs fs;
	int flags;

	c->asked[0] = '\0';
	zb_spot_fd(&c->b->jail, zb_peer_fd(c->tid, peer_fd), f);
	if (f->fd < 0) {
		zb_say_errno(c, EBADF);
		return false;
	}
	flags = fcntl(f->fd, F_GETFL);
	if (flags < 0 || flags & O_PATH) {
		zb_say_errno(c, EBADF);
		return false;
	}
	if (is_host_device(c))
		return false;
	if (fstatfs(f->fd, &fs) || !(fs.f_flags & ST_READONLY))
		return !is_closed(c);
	if (zb_spot_name(&c->b->jail, f)) {
		zb_say_errno(c, EROFS);
		return false;
	}
	zb_refuse(c, &(struct zb_refusal){
			     .op = ZB_OP_FS_META,
			     .asked = f->path,
			     .target = f->path,
			     .place = f->place,
			     .is_dir = S_ISDIR(f->mode),
			     .exists = true,
			     .ask = ZB_ASK_OWNER,
			     .err = EROFS,
		     });
	return false;
}

/* Does the call name its object by descriptor: no path, where @null_is_fd,
 * or an empty one, where its flags say so? Return: -1 if answered. */
static int by_descriptor(struct zb_call *c, bool null_is_fd)
{
	const struct zb_row *r = c->row;
	char first;
	int rc;

	if (r->dir < 0 || zb_arg_dir(c, r->dir) == AT_FDCWD)
		return 0;
	if (!c->args[r->path])
		return null_is_fd;
	if (r->flags < 0 || !(zb_arg_flags(c) & AT_EMPTY_PATH))
		return 0;
	rc = zb_peer_read(c->tid, c->args[r->path], &first, 1);
	if (rc) {
		zb_say_errno(c, -rc);
		return -1;
	}
	return !first;
}

/* As the C library has it for calls that know no flag. Not followed it is a
 * link of /proc. Return: N, -1 for another path, -2 if answered. */
static int by_proc(struct zb_call *c)
{
	if (zb_arg_flags(c) & AT_SYMLINK_NOFOLLOW)
		return -1;
	if (!zb_arg_path(c, c->row->path, c->asked))
		return -2;
	return zb_own_fd(c->asked);
}

/* May the metadata of what the call names be changed? It is in @c->found
 * then. A descriptor that was opened says so by its mount; one that was not
 * (O_PATH) is judged like a path. */
static bool may_change(struct zb_call *c, bool null_is_fd)
{
	int by_fd, fd;

	c->acts = true;
	by_fd = by_descriptor(c, null_is_fd);
	if (by_fd < 0)
		return false;
	fd = by_fd ? zb_arg_dir(c, c->row->dir) : by_proc(c);
	if (fd == -2)
		return false;
	if (!by_fd && fd < 0)
		return subject(c, ZB_OP_FS_META, ZB_ASK_OWNER) &&
		       may_be_changed(c);
	c->asked[0] = '\0';
	zb_spot_fd(&c->b->jail, zb_peer_fd(c->tid, fd), &c->found);
	if (c->found.fd < 0 || c->found.proc) {
		zb_say_errno(c, c->found.fd < 0 ? c->found.err : EACCES);
		return false;
	}
	if (fcntl(c->found.fd, F_GETFL) & O_PATH)
		return may_be_changed(c);
	zb_spot_done(&c->found);
	return writable_fd(c, fd) && zb_may_act(c);
}

/* The caller's RLIMIT_FSIZE is not ours. */
static bool over_limit(const struct zb_call *c, off_t size)
{
	struct zb_peer_status st;
	struct rlimit lim;

	if (zb_peer_status(c->tid, &st) ||
	    prlimit(st.tgid, RLIMIT_FSIZE, NULL, &lim))
		return true;
	return lim.rlim_cur != RLIM_INFINITY &&
	       (uint64_t)size > (uint64_t)lim.rlim_cur;
}

void zb_call_truncate(struct zb_call *c)
{
	off_t size = (off_t)c->args[1];
	char link[ZB_FD_LINK];

	if (size < 0) {
		zb_say_errno(c, EINVAL);
		return;
	}
	c->acts = true;
	/* It waits for whoever holds a lease on the file. */
	if (zb_say_later(c) || !subject(c, ZB_OP_FS_WRITE, ZB_ASK_EXISTS))
		return;
	if (!S_ISREG(c->found.mode)) {
		zb_say_errno(c, S_ISDIR(c->found.mode) ? EISDIR : EINVAL);
		return;
	}
	if (zb_judge(c, ZB_OP_FS_WRITE, &c->found) == ZB_DENY) {
		zb_refuse_found(c, ZB_OP_FS_WRITE, &c->found, c->asked,
				ZB_ASK_WRITE);
		return;
	}
	if (over_limit(c, size)) {
		zb_say_errno(c, EFBIG);
		return;
	}
	zb_fd_link(c->found.fd, link);
	if (!zb_is_stale(c, ZB_OP_FS_WRITE, &c->found) && zb_may_act(c))
		zb_say_result(c, truncate(link, size));
}

/* A set-id file in a private place would be one on the host as well. On a
 * directory the bits mean something else. */
static bool is_set_id(struct zb_call *c, mode_t mode)
{
	if (!(mode & 06000) || S_ISDIR(c->found.mode))
		return false;
	if (zb_spot_name(&c->b->jail, &c->found)) {
		zb_say_errno(c, EPERM);
		return true;
	}
	zb_refuse(c, &(struct zb_refusal){
			     .op = ZB_OP_FS_META,
			     .asked = c->asked,
			     .target = c->found.path,
			     .place = c->found.place,
			     .exists = true,
			     .err = EPERM,
			     .why = ZB_NO_SET_ID,
		     });
	return true;
}

void zb_call_chmod(struct zb_call *c)
{
	mode_t mode = (mode_t)zb_arg_int(c, c->row->mode) & 07777;
	char link[ZB_FD_LINK];

	if (!may_change(c, false) || is_set_id(c, mode))
		return;
	if (S_ISLNK(c->found.mode)) {
		zb_say_errno(c, EOPNOTSUPP);
		return;
	}
	zb_fd_link(c->found.fd, link);
	zb_say_result(c, fchmodat(AT_FDCWD, link, mode, 0));
}

void zb_call_fchmod(struct zb_call *c)
{
	mode_t mode = (mode_t)zb_arg_int(c, c->row->mode) & 07777;

	/* Done here on our duplicate, since another file put under the same
	 * number would get the bits that are right for this one. */
	if (writable_fd(c, zb_arg_int(c, 0)) && !is_set_id(c, mode) &&
	    zb_may_act(c))
		zb_say_result(c, fchmod(c->found.fd, mode));
}

/* Only to itself: there is one user inside, and no other id has a meaning. */
static void change_owner(struct zb_call *c)
{
	int i = c->row->mode;
	uid_t uid = (uid_t)zb_arg_int(c, i);
	gid_t gid = (gid_t)zb_arg_int(c, i + 1);

	if ((uid != (uid_t)-1 && uid != c->b->uid) ||
	    (gid != (gid_t)-1 && gid != c->b->gid)) {
		zb_say_errno(c, EPERM);
		return;
	}
	zb_say_result(c, fchownat(c->found.fd, "", uid, gid, AT_EMPTY_PATH));
}

void zb_call_chown(struct zb_call *c)
{
	if (may_change(c, false))
		change_owner(c);
}

/* Done here on our duplicate, as fchmod is: see there. */
void zb_call_fchown(struct zb_call *c)
{
	if (writable_fd(c, zb_arg_int(c, 0)) && zb_may_act(c))
		change_owner(c);
}

static bool from_timeval(const struct timeval tv[2], struct timespec ts[2])
{
	for (int i = 0; i < 2; i++) {
		if (tv[i].tv_usec < 0 || tv[i].tv_usec >= 1000000)
			return false;
		ts[i].tv_sec = tv[i].tv_sec;
		ts[i].tv_nsec = tv[i].tv_usec * 1000;
	}
	return true;
}

/* Read the times in the form that the call has. Return: 0 or an errno. */
static int read_times(struct zb_call *c, uint64_t at, struct timespec ts[2])
{
	struct utimbuf ut;
	struct timeval tv[2];
	int rc;

	if (!strcmp(c->row->name, "utimensat"))
		return -zb_peer_read(c->tid, at, ts, 2 * sizeof(*ts));
	if (strcmp(c->row->name, "utime")) {
		rc = zb_peer_read(c->tid, at, tv, sizeof(tv));
		if (!rc && !from_timeval(tv, ts))
			rc = -EINVAL;
		return -rc;
	}
	rc = zb_peer_read(c->tid, at, &ut, sizeof(ut));
	if (!rc) {
		ts[0] = (struct timespec){.tv_sec = ut.actime};
		ts[1] = (struct timespec){.tv_sec = ut.modtime};
	}
	return -rc;
}

void zb_call_times(struct zb_call *c)
{
	uint64_t at = c->args[c->row->mode];
	struct timespec ts[2];
	int e = at ? read_times(c, at, ts) : 0;

	if (e) {
		zb_say_errno(c, e);
		return;
	}
	if (may_change(c, c->row->dir >= 0))
		zb_say_result(c, utimensat(c->found.fd, "", at ? ts : NULL,
					   AT_EMPTY_PATH));
}

/* user.* and ACLs; what else there is wants a capability. */
static bool attribute(struct zb_call *c, char name[XATTR_NAME])
{
	int n = zb_peer_string(c->tid, c->args[1], name, XATTR_NAME);

	if (n < 0 || !n)
		zb_say_errno(c, n == -EFAULT ? EFAULT : ERANGE);
	else if (!strncmp(name, "user.", 5) ||
		 !strncmp(name, "system.posix_acl_", 17))
		return true;
	else
		zb_say_errno(c, EPERM);
	return false;
}

/* The arguments of a setxattr; the value is heap. Return: false if answered. */
static bool read_attribute(struct zb_call *c, char name[XATTR_NAME],
			   char **value)
{
	size_t n = (size_t)c->args[3];
	int rc;

	if (n > XATTR_VALUE_MAX) {
		zb_say_errno(c, E2BIG);
		return false;
	}
	*value = malloc(n + 1);
	rc = !*value ? -ENOMEM : zb_peer_read(c->tid, c->args[2], *value, n);
	if (rc) {
		zb_say_errno(c, -rc);
		return false;
	}
	return attribute(c, name);
}

void zb_call_setxattr(struct zb_call *c)
{
	zb_auto(free) char *value = NULL;
	char name[XATTR_NAME], link[ZB_FD_LINK];

	if (!read_attribute(c, name, &value) || !may_change(c, false))
		return;
	zb_fd_link(c->found.fd, link);
	zb_say_result(c, setxattr(link, name, value, (size_t)c->args[3],
				  (int)(uint32_t)c->args[4]));
}

void zb_call_removexattr(struct zb_call *c)
{
	char name[XATTR_NAME], link[ZB_FD_LINK];

	if (!attribute(c, name) || !may_change(c, false))
		return;
	zb_fd_link(c->found.fd, link);
	zb_say_result(c, removexattr(link, name));
}

/* Done here on our duplicate, as fchmod is: see there. */
void zb_call_fsetxattr(struct zb_call *c)
{
	zb_auto(free) char *value = NULL;
	char name[XATTR_NAME];

	if (read_attribute(c, name, &value) &&
	    writable_fd(c, zb_arg_int(c, 0)) && zb_may_act(c))
		zb_say_result(c, fsetxattr(c->found.fd, name, value,
					   (size_t)c->args[3],
					   (int)(uint32_t)c->args[4]));
}

void zb_call_fremovexattr(struct zb_call *c)
{
	char name[XATTR_NAME];

	if (attribute(c, name) && writable_fd(c, zb_arg_int(c, 0)) &&
	    zb_may_act(c))
		zb_say_result(c, fremovexattr(c->found.fd, name));
}
