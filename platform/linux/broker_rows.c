/* broker_rows.c - the table of watched calls: where each has its arguments,
 * and who decides it. watched.def says which calls there are; a name of that
 * list without a row here would be a call that nobody answers, so the test
 * compares the two. */
#include "config.h"

#include "platform/linux/broker_int.h"

#include "cleanup.h"

#include <string.h>

/* fixed, for calls whose meaning is not in their flags */
#define NOFOLLOW AT_SYMLINK_NOFOLLOW
#define CREATES	 (O_CREAT | O_WRONLY | O_TRUNC)

#define ROW(n, h, d, p, f, m, x)                                               \
	{                                                                      \
		.name = #n, .handle = zb_call_##h, .dir = d, .path = p,        \
		.dir2 = -1, .path2 = -1, .flags = f, .mode = m, .fixed = x     \
	}
#define ROW2(n, h, d, p, d2, p2, f)                                            \
	{                                                                      \
		.name = #n, .handle = zb_call_##h, .dir = d, .path = p,        \
		.dir2 = d2, .path2 = p2, .flags = f, .mode = -1                \
	}

static const struct zb_row rows[] = {
	/*  name, handler, dir, path, flags, mode, fixed */
	ROW(open, open, -1, 0, 1, 2, 0),
	ROW(openat, open, 0, 1, 2, 3, 0),
	ROW(creat, open, -1, 0, -1, 1, CREATES),
	ROW(execve, exec, -1, 0, -1, -1, 0),
	ROW(execveat, exec, 0, 1, 4, -1, 0),
	ROW(unlink, remove, -1, 0, -1, -1, 0),
	ROW(unlinkat, remove, 0, 1, 2, -1, 0),
	ROW(rmdir, remove, -1, 0, -1, -1, AT_REMOVEDIR),
	ROW2(rename, rename, -1, 0, -1, 1, -1),
	ROW2(renameat, rename, 0, 1, 2, 3, -1),
	ROW2(renameat2, rename, 0, 1, 2, 3, 4),
	ROW2(link, link, -1, 0, -1, 1, -1),
	ROW2(linkat, link, 0, 1, 2, 3, 4),
	ROW(symlink, make, -1, 1, -1, -1, S_IFLNK),
	ROW(symlinkat, make, 1, 2, -1, -1, S_IFLNK),
	ROW(mkdir, make, -1, 0, -1, 1, S_IFDIR),
	ROW(mkdirat, make, 0, 1, -1, 2, S_IFDIR),
	ROW(mknod, make, -1, 0, -1, 1, 0),
	ROW(mknodat, make, 0, 1, -1, 2, 0),
	ROW(truncate, truncate, -1, 0, -1, -1, 0),
	ROW(chmod, chmod, -1, 0, -1, 1, 0),
	ROW(fchmodat, chmod, 0, 1, -1, 2, 0),
	ROW(fchmodat2, chmod, 0, 1, 3, 2, 0),
	ROW(fchmod, fchmod, 0, -1, -1, 1, 0),
	ROW(chown, chown, -1, 0, -1, 1, 0),
	ROW(lchown, chown, -1, 0, -1, 1, NOFOLLOW),
	ROW(fchownat, chown, 0, 1, 4, 2, 0),
	ROW(fchown, fchown, 0, -1, -1, 1, 0),
	ROW(utime, times, -1, 0, -1, 1, 0),
	ROW(utimes, times, -1, 0, -1, 1, 0),
	ROW(futimesat, times, 0, 1, -1, 2, 0),
	ROW(utimensat, times, 0, 1, 3, 2, 0),
	ROW(setxattr, setxattr, -1, 0, -1, -1, 0),
	ROW(lsetxattr, setxattr, -1, 0, -1, -1, NOFOLLOW),
	ROW(fsetxattr, fsetxattr, 0, -1, -1, -1, 0),
	ROW(removexattr, removexattr, -1, 0, -1, -1, 0),
	ROW(fremovexattr, fremovexattr, 0, -1, -1, -1, 0),
	ROW(lremovexattr, removexattr, -1, 0, -1, -1, NOFOLLOW),
	ROW(getxattr, getxattr, -1, 0, -1, -1, 0),
	ROW(lgetxattr, getxattr, -1, 0, -1, -1, NOFOLLOW),
	ROW(listxattr, listxattr, -1, 0, -1, -1, 0),
	ROW(llistxattr, listxattr, -1, 0, -1, -1, NOFOLLOW),
	ROW(connect, connect, 0, -1, -1, -1, 0),
	ROW(bind, bind, 0, -1, -1, -1, 0),
	ROW(sendto, sendto, 0, -1, -1, -1, 0),
	ROW(socket, socket, -1, -1, -1, -1, 0),
	ROW(socketpair, socket, -1, -1, -1, -1, 0),
	ROW(stat, look, -1, 0, -1, -1, 0),
	ROW(lstat, look, -1, 0, -1, -1, NOFOLLOW),
	ROW(newfstatat, look, 0, 1, 3, -1, 0),
	ROW(statx, look, 0, 1, 2, -1, 0),
	ROW(access, look, -1, 0, -1, -1, 0),
	ROW(faccessat, look, 0, 1, -1, -1, 0),
	ROW(faccessat2, look, 0, 1, 3, -1, 0),
	ROW(readlink, look, -1, 0, -1, -1, NOFOLLOW),
	ROW(readlinkat, look, 0, 1, -1, -1, NOFOLLOW | AT_EMPTY_PATH),
};

#define ZB_WATCH(name, when)
#define ZB_REFUSE(n) ROW(n, refuse, -1, -1, -1, -1, 0),
static const struct zb_row refused[] = {
#include "platform/linux/watched.def"
};
#undef ZB_WATCH
#undef ZB_REFUSE

#define ZB_WATCH(name, when) #name,
#define ZB_REFUSE(name)	     #name,
static const char *const names[] = {
#include "platform/linux/watched.def"
	NULL,
};
#undef ZB_WATCH
#undef ZB_REFUSE

const char *const *zb_row_names(void)
{
	return names;
}

const struct zb_row *zb_row_of(const char *name)
{
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	for (size_t i = 0; i < ZB_ARRAY_LEN(refused); i++)
		if (!strcmp(refused[i].name, name))
			return &refused[i];
	return NULL;
}
