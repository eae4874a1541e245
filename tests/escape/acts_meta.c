/* acts_meta.c - metadata, and files of special kinds. */
#include "config.h"

#include "escapist.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

static int change_mode(char **a, struct say *s)
{
	(void)s;
	return chmod(a[0], 0777) ? errno : 0;
}

/* PATH MODE */
static int change_mode_to(char **a, struct say *s)
{
	(void)s;
	return chmod(a[0], (mode_t)number(a[1])) ? errno : 0;
}

/* By an O_PATH descriptor, which needs no right, in each way there is. */
static int mode_by_descriptor(char **a, struct say *s)
{
	int fd = open(a[0], O_PATH | O_CLOEXEC), e;
	char link[64];

	(void)s;
	if (fd < 0)
		return errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (!chmod(link, 0777))
		return 0;
	e = errno;
	snprintf(link, sizeof(link), "/proc/%d/fd/%d", getpid(), fd);
	if (!chmod(link, 0777) || !fchmod(fd, 0777))
		return 0;
#ifdef SYS_fchmodat2
	if (!syscall(SYS_fchmodat2, fd, "", 0777, AT_EMPTY_PATH))
		return 0;
#endif
	return e;
}

static int time_by_descriptor(char **a, struct say *s)
{
	int fd = open(a[0], O_PATH | O_CLOEXEC), e;

	(void)s;
	if (fd < 0)
		return errno;
	if (!utimensat(AT_FDCWD, fd_path(fd), long_ago, 0))
		return 0;
	e = errno;
	if (!utimensat(fd, "", long_ago, AT_EMPTY_PATH))
		return 0;
	return e;
}

static int owner_by_descriptor(char **a, struct say *s)
{
	int fd = open(a[0], O_PATH | O_CLOEXEC), e;

	(void)s;
	if (fd < 0)
		return errno;
	if (!chown(fd_path(fd), getuid(), getgid()))
		return 0;
	e = errno;
	return fchownat(fd, "", getuid(), getgid(), AT_EMPTY_PATH) ? e : 0;
}

static int truncate_by_descriptor(char **a, struct say *s)
{
	int fd = open(a[0], O_PATH | O_CLOEXEC);

	(void)s;
	if (fd < 0)
		return errno;
	return truncate(fd_path(fd), 0) ? errno : 0;
}

static int xattr_by_descriptor(char **a, struct say *s)
{
	int fd = open(a[0], O_RDONLY | O_CLOEXEC);

	(void)s;
	if (fd < 0)
		return errno;
	return fsetxattr(fd, "user.zb", "x", 1, 0) ? errno : 0;
}

/* Is @value, of @n bytes, a planted secret? */
static int secret_value(const char *value, ssize_t n, struct say *s)
{
	if (n < 0)
		return errno;
	if (n < 6 || strncmp(value, "S3CRET", 6) != 0)
		return ENODATA;
	say(s, "%.*s", (int)n, value);
	return 0;
}

/* The attribute of a file, by path, in each way there is. */
static int read_attribute(char **a, struct say *s)
{
	char value[64], link[64];
	int fd = open(a[0], O_PATH | O_CLOEXEC), e;

	if (fd < 0)
		return errno;
	if (!secret_value(value,
			  lgetxattr(a[0], "user.zb", value, sizeof(value)), s))
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (!secret_value(value,
			  getxattr(link, "user.zb", value, sizeof(value)), s) ||
	    !secret_value(value, fgetxattr(fd, "user.zb", value, sizeof(value)),
			  s))
		return 0;
	e = secret_value(value, getxattr(a[0], "user.zb", value, sizeof(value)),
			 s);
	return e;
}

/* Their names may say as much. */
static int list_attributes(char **a, struct say *s)
{
	char names[1024];
	ssize_t n = llistxattr(a[0], names, sizeof(names));

	if (n >= 0)
		n = listxattr(a[0], names, sizeof(names));
	if (n < 0)
		return errno;
	for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1)
		if (!strcmp(names + i, "user.zb"))
			return 0;
	(void)s;
	return ENODATA;
}

static int mode_of_open_file(char **a, struct say *s)
{
	int fd = open(a[0], O_RDONLY | O_CLOEXEC);

	(void)s;
	if (fd < 0)
		return errno;
	return fchmod(fd, 0777) ? errno : 0;
}

/* A set-user-id file of ours: chmod, then every other way to make one. */
static int make_set_id(char **a, struct say *s)
{
	int fd = open(a[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0700), e;
	char other[4096];
	struct stat st;

	(void)s;
	if (fd < 0)
		return errno;
	if (!chmod(a[0], 04755) && !stat(a[0], &st) && st.st_mode & S_ISUID)
		return 0;
	e = errno;
	if (!fchmod(fd, 04755) && !stat(a[0], &st) && st.st_mode & S_ISUID)
		return 0;
	snprintf(other, sizeof(other), "%s-new", a[0]);
	fd = open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 04755);
	if (fd >= 0 && !stat(other, &st) && st.st_mode & S_ISUID)
		return 0;
	snprintf(other, sizeof(other), "%s-node", a[0]);
	if (!mknod(other, S_IFREG | 04755, 0) && !stat(other, &st) &&
	    st.st_mode & S_ISUID)
		return 0;
	return e;
}

/* A device node that needs no capability (overlayfs marks with it). */
static int make_device(char **a, struct say *s)
{
	(void)s;
	unlink(a[0]);
	return mknod(a[0], S_IFCHR | 0600, makedev(0, 0)) ? errno : 0;
}

/* A node for the real null device: MAJOR MINOR as the host has them. */
static int make_real_device(char **a, struct say *s)
{
	(void)s;
	unlink(a[0]);
	return mknod(a[0], S_IFCHR | 0600, makedev(1, 3)) ? errno : 0;
}

/* A file by its handle needs no path at all. */
static int by_handle(char **a, struct say *s)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u = {.h = {.handle_bytes = MAX_HANDLE_SZ}};
	int id, fd, dir = open(a[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (name_to_handle_at(AT_FDCWD, a[0], &u.h, &id, 0))
		return errno;
	fd = open_by_handle_at(dir, &u.h, O_RDONLY | O_CLOEXEC);
	return secret_in(fd, errno, s);
}

/* ---- the log at descriptor 2 --------------------------------------------*/

static int cut_log(char **a, struct say *s)
{
	(void)a;
	(void)s;
	if (!ftruncate(2, 0))
		return 0;
	return errno;
}

static int seek_log(char **a, struct say *s)
{
	(void)a;
	(void)s;
	return lseek(2, 0, SEEK_SET) < 0 ? errno : 0;
}

static int overwrite_log(char **a, struct say *s)
{
	(void)a;
	(void)s;
	return pwrite(2, "x", 1, 0) < 0 ? errno : 0;
}

static int reopen_log(char **a, struct say *s)
{
	int fd = open("/proc/self/fd/2", O_RDWR | O_CLOEXEC);
	struct stat st;

	(void)a;
	if (fd < 0)
		return errno;
	/* A pipe may be opened again: there is nothing in it to overwrite. */
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		say(s, "no file");
		return ESPIPE;
	}
	return ftruncate(fd, 0) ? errno : 0;
}

static int write_log(char **a, struct say *s)
{
	(void)s;
	return write(2, a[0], strlen(a[0])) < 0 || write(2, "\n", 1) < 0 ? errno
									 : 0;
}

/* MIB: so much text on standard error. */
static int flood_log(char **a, struct say *s)
{
	static char block[1 << 16];
	long left = (long)number(a[0]) << 20;

	memset(block, 'x', sizeof(block));
	for (size_t i = 99; i < sizeof(block); i += 100)
		block[i] = '\n';
	for (; left > 0; left -= (long)sizeof(block))
		if (write(2, block, sizeof(block)) < 0)
			return errno;
	say(s, "written");
	return 0;
}

/* ---- terminals ----------------------------------------------------------*/

/* The user's terminal. */
static int open_tty(char **a, struct say *s)
{
	int fd = open(a[0], O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return errno;
	say(s, "%d", isatty(fd));
	return isatty(fd) ? 0 : ENOTTY;
}

/* In a session of our own, whose terminal is one that we made. */
static int type_into_own(unsigned long nr)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
	char c = 'x';

	if (setsid() < 0 || master < 0 || grantpt(master) || unlockpt(master))
		return errno;
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0 || ioctl(slave, TIOCSCTTY, 0))
		return errno;
	return syscall(SYS_ioctl, slave, nr, &c) ? errno : 0;
}

/* HEX: ioctl number. Types into (or pastes on) a terminal of our own, which a
 * kernel that allows it at all allows on any that one has. */
static int type_into(char **a, struct say *s)
{
	pid_t pid = fork();
	int status;

	(void)s;
	if (!pid)
		_exit(type_into_own(strtoul(a[0], NULL, 16)));
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EFAULT;
}

const struct act acts_meta[] = {
	{"chmod", 1, change_mode},
	{"chmod-to", 2, change_mode_to},
	{"mode-by-descriptor", 1, mode_by_descriptor},
	{"time-by-descriptor", 1, time_by_descriptor},
	{"owner-by-descriptor", 1, owner_by_descriptor},
	{"truncate-by-descriptor", 1, truncate_by_descriptor},
	{"xattr-by-descriptor", 1, xattr_by_descriptor},
	{"read-attribute", 1, read_attribute},
	{"list-attributes", 1, list_attributes},
	{"mode-of-open-file", 1, mode_of_open_file},
	{"make-set-id", 1, make_set_id},
	{"make-device", 1, make_device},
	{"make-real-device", 1, make_real_device},
	{"by-handle", 2, by_handle},
	{"cut-log", 0, cut_log},
	{"seek-log", 0, seek_log},
	{"overwrite-log", 0, overwrite_log},
	{"reopen-log", 0, reopen_log},
	{"write-log", 1, write_log},
	{"flood-log", 1, flood_log},
	{"open-tty", 1, open_tty},
	{"type-into", 1, type_into},
	{NULL, 0, NULL},
};
