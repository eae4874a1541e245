/* acts_files.c - files that are out of reach: by name, by another name, by a
 * descriptor, by a race. */
#include "config.h"

#include "escapist.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int read_path(char **a, struct say *s)
{
	int fd = open(a[0], O_RDONLY | O_CLOEXEC);

	return secret_in(fd, errno, s);
}

/* DIR REL: from a descriptor of DIR. */
static int read_at(char **a, struct say *s)
{
	int dir = open(a[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

	if (dir < 0)
		return errno;
	fd = openat(dir, a[1], O_RDONLY | O_CLOEXEC);
	return secret_in(fd, errno, s);
}

static int chdir_read(char **a, struct say *s)
{
	if (chdir(a[0]))
		return errno;
	return read_path(a + 1, s);
}

/* openat2(2) names the same file, with its flags where no filter can look. */
static int read_openat2(char **a, struct say *s)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, a[0], &how, sizeof(how));

	return secret_in(fd, errno, s);
}

/* DIR PATH: from a descriptor of DIR as far up as it goes, then down. */
static int walk_up(char **a, struct say *s)
{
	int fd = open(a[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC), up;

	if (fd < 0)
		return errno;
	for (int i = 0; i < 64; i++) {
		up = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (up < 0)
			return errno;
		close(fd);
		fd = up;
	}
	up = openat(fd, a[1] + 1, O_RDONLY | O_CLOEXEC);
	return secret_in(up, errno, s);
}

/* The same with descriptors that need no right to read. */
static int walk_up_path(char **a, struct say *s)
{
	int fd = open(a[0], O_PATH | O_DIRECTORY | O_CLOEXEC), up;

	for (int i = 0; fd >= 0 && i < 64; i++) {
		up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = up;
	}
	if (fd < 0)
		return errno;
	up = openat(fd, a[1] + 1, O_RDONLY | O_CLOEXEC);
	return secret_in(up, errno, s);
}

/* Add a byte to a file that exists. */
static int append(char **a, struct say *s)
{
	int fd = open(a[0], O_WRONLY | O_APPEND | O_CLOEXEC);

	(void)s;
	if (fd < 0)
		return errno;
	return write(fd, "x", 1) == 1 ? 0 : errno;
}

/* Open for writing, and leave it at that. */
static int open_write(char **a, struct say *s)
{
	int fd = open(a[0], O_WRONLY | O_CLOEXEC);

	(void)s;
	return fd >= 0 ? 0 : errno;
}

static int create(char **a, struct say *s)
{
	int fd = open(a[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	(void)s;
	return fd >= 0 ? 0 : errno;
}

static int truncate_path(char **a, struct say *s)
{
	(void)s;
	return truncate(a[0], 0) ? errno : 0;
}

static int remove_path(char **a, struct say *s)
{
	(void)s;
	return unlink(a[0]) ? errno : 0;
}

static int rename_path(char **a, struct say *s)
{
	(void)s;
	return rename(a[0], a[1]) ? errno : 0;
}

static int make_symlink(char **a, struct say *s)
{
	(void)s;
	return symlink(a[0], a[1]) ? errno : 0;
}

static int make_link(char **a, struct say *s)
{
	(void)s;
	return link(a[0], a[1]) ? errno : 0;
}

static int make_dir(char **a, struct say *s)
{
	(void)s;
	return mkdir(a[0], 0755) ? errno : 0;
}

/* Any name in DIR? */
static int list(char **a, struct say *s)
{
	DIR *d = opendir(a[0]);
	struct dirent *e;
	int n = 0;

	if (!d)
		return errno;
	while ((e = readdir(d)))
		if (e->d_name[0] != '.' || strlen(e->d_name) > 2) {
			say(s, "%.40s ", e->d_name);
			n++;
		}
	closedir(d);
	return n ? 0 : ENODATA;
}

/* Does the path lead to anything? */
static int exists(char **a, struct say *s)
{
	struct stat st;

	(void)s;
	return stat(a[0], &st) ? errno : 0;
}

/* A new link of ours to a file, and through it. */
static int through_symlink(char **a, struct say *s)
{
	unlink(a[1]);
	if (symlink(a[0], a[1]))
		return errno;
	return read_path(a + 1, s);
}

static int through_hard_link(char **a, struct say *s)
{
	if (link(a[0], a[1]))
		return errno;
	return read_path(a + 1, s);
}

/* The same by a descriptor that needed no right. */
static int through_linkat(char **a, struct say *s)
{
	int fd = open(a[0], O_PATH | O_CLOEXEC);

	if (fd < 0)
		return errno;
	if (linkat(AT_FDCWD, fd_path(fd), AT_FDCWD, a[1], AT_SYMLINK_FOLLOW) &&
	    linkat(fd, "", AT_FDCWD, a[1], AT_EMPTY_PATH))
		return errno;
	return read_path(a + 1, s);
}

/* An O_PATH descriptor costs no right; opened again it would be one to
 * read. */
static int reopen_read(char **a, struct say *s)
{
	int fd = open(a[0], O_PATH | O_CLOEXEC);

	if (fd < 0)
		return errno;
	fd = open(fd_path(fd), O_RDONLY | O_CLOEXEC);
	return secret_in(fd, errno, s);
}

/* One to read, opened again for writing. */
static int reopen_write(char **a, struct say *s)
{
	int fd = open(a[0], O_RDONLY | O_CLOEXEC);

	(void)s;
	if (fd < 0)
		return errno;
	fd = open(fd_path(fd), O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return errno;
	return write(fd, "x", 1) == 1 ? 0 : errno;
}

/* A descriptor that came with us: N */
static int inherited(char **a, struct say *s)
{
	char path[64];
	int n = 0, fd;

	for (int i = 3; i < 256; i++)
		n += fcntl(i, F_GETFD) >= 0;
	/* One is the pipe that takes our outcome. */
	say(s, "%d descriptors ", n - 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", number(a[0]));
	fd = dup(number(a[0]));
	return secret_in(fd, errno, s);
}

/* N PATH: descriptor N is a directory of the host. */
static int inherited_dir(char **a, struct say *s)
{
	int fd = openat(number(a[0]), a[1], O_RDONLY | O_CLOEXEC);

	return secret_in(fd, errno, s);
}

/* ---- starting what may not be -----------------------------------------*/

static int wait_ok(pid_t pid)
{
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return EINVAL;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EFAULT;
}

static int run(char **a, struct say *s)
{
	pid_t pid = fork();

	(void)s;
	if (!pid) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 1);
		dup2(null, 2);
		execl(a[0], a[0], (char *)NULL);
		_exit(errno);
	}
	return wait_ok(pid);
}

static int run_by_descriptor(char **a, struct say *s)
{
	int fd = open(a[0], O_PATH | O_CLOEXEC);
	char word[] = "whoami", *const env[] = {NULL},
	     *const argv[] = {a[0], word, NULL};
	pid_t pid;

	(void)s;
	if (fd < 0)
		return errno;
	pid = fork();
	if (!pid) {
		syscall(SYS_execveat, fd, "", argv, env, AT_EMPTY_PATH);
		_exit(errno);
	}
	return wait_ok(pid);
}

/* The way of fexecve(3) where there is no execveat(2). */
static int run_by_proc(char **a, struct say *s)
{
	int fd = open(a[0], O_PATH | O_CLOEXEC);
	char word[] = "whoami", link[64], *const env[] = {NULL},
	     *const argv[] = {a[0], word, NULL};
	pid_t pid;

	(void)s;
	if (fd < 0)
		return errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	pid = fork();
	if (!pid) {
		execve(link, argv, env);
		_exit(errno);
	}
	return wait_ok(pid);
}

/* Is the effective user of a set-user-id program another? */
static int run_set_id(char **a, struct say *s)
{
	pid_t pid = fork();
	int rc;

	(void)s;
	if (!pid) {
		execl(a[0], a[0], "whoami", (char *)NULL);
		_exit(errno);
	}
	rc = wait_ok(pid);
	return rc == 1 ? 0 : rc ? rc : EPERM;
}

/* ---- races --------------------------------------------------------------*/

struct race {
	char path[4096];
	const char *good, *bad;
	_Atomic int stop;
};

/* The one buffer holds now this path, now that one. */
static void *flip(void *arg)
{
	struct race *r = arg;
	size_t n = strlen(r->good);

	while (!atomic_load(&r->stop)) {
		memcpy(r->path, r->bad, n);
		atomic_signal_fence(memory_order_seq_cst);
		memcpy(r->path, r->good, n);
		atomic_signal_fence(memory_order_seq_cst);
	}
	return NULL;
}

static void *exchange(void *arg)
{
	struct race *r = arg;

	while (!atomic_load(&r->stop))
		syscall(SYS_renameat2, AT_FDCWD, r->good, AT_FDCWD, r->bad,
			2u /* RENAME_EXCHANGE */);
	return NULL;
}

static int chase(struct race *r, void *(*other)(void *), const char *path,
		 int n, struct say *s)
{
	int got = 0, good = 0, failed = 0;
	pthread_t t;
	char buf[16];

	if (pthread_create(&t, NULL, other, r))
		return EAGAIN;
	/* One is enough, and says that the race can be won. */
	for (int i = 0; i < n && !got; i++) {
		int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
		ssize_t len = fd < 0 ? -1 : read(fd, buf, sizeof(buf));

		if (fd >= 0)
			close(fd);
		if (len >= 6 && !memcmp(buf, SECRET, 6))
			got++;
		else if (len >= 0)
			good++;
		else
			failed++;
	}
	atomic_store(&r->stop, 1);
	pthread_join(t, NULL);
	say(s, "secret=%d good=%d failed=%d", got, good, failed);
	return got ? 0 : EACCES;
}

/* N GOOD BAD: names of the same length. */
static int race_path(char **a, struct say *s)
{
	static struct race r;

	if (strlen(a[1]) != strlen(a[2]) || strlen(a[1]) >= sizeof(r.path))
		return EINVAL;
	strcpy(r.path, a[1]);
	r.good = a[1];
	r.bad = a[2];
	return chase(&r, flip, r.path, number(a[0]), s);
}

/* N LINK A B: LINK is a link now to A, now to B. */
static int race_links(char **a, struct say *s)
{
	static struct race r;
	static char other[4096];

	snprintf(other, sizeof(other), "%s-other", a[1]);
	unlink(a[1]);
	unlink(other);
	if (symlink(a[2], a[1]) || symlink(a[3], other))
		return errno;
	r.good = a[1];
	r.bad = other;
	return chase(&r, exchange, a[1], number(a[0]), s);
}

const struct act acts_files[] = {
	{"read", 1, read_path},
	{"read-at", 2, read_at},
	{"chdir-read", 2, chdir_read},
	{"read-openat2", 1, read_openat2},
	{"walk-up", 2, walk_up},
	{"walk-up-path", 2, walk_up_path},
	{"append", 1, append},
	{"open-write", 1, open_write},
	{"create", 1, create},
	{"truncate", 1, truncate_path},
	{"remove", 1, remove_path},
	{"rename", 2, rename_path},
	{"symlink", 2, make_symlink},
	{"link", 2, make_link},
	{"mkdir", 1, make_dir},
	{"list", 1, list},
	{"exists", 1, exists},
	{"through-symlink", 2, through_symlink},
	{"through-hard-link", 2, through_hard_link},
	{"through-linkat", 2, through_linkat},
	{"reopen-read", 1, reopen_read},
	{"reopen-write", 1, reopen_write},
	{"inherited", 1, inherited},
	{"inherited-dir", 2, inherited_dir},
	{"run", 1, run},
	{"run-by-descriptor", 1, run_by_descriptor},
	{"run-by-proc", 1, run_by_proc},
	{"run-set-id", 1, run_set_id},
	{"race", 3, race_path},
	{"race-links", 4, race_links},
	{NULL, 0, NULL},
};
