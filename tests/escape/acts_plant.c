/* acts_plant.c - a name that others run, brought to be by every way there is.
 * Each works in a directory of its own (the first argument) and leaves nothing
 * there; what it came for is the second. */
#include "config.h"

#include "escapist.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define EXCHANGE 2u /* RENAME_EXCHANGE */

/* "DIR/NAME": valid until the eighth call after. */
static const char *in(const char *dir, const char *name)
{
	static char ring[8][4096];
	static unsigned at;
	char *p = ring[at++ % 8];

	snprintf(p, sizeof(ring[0]), "%.2000s/%.2000s", dir, name);
	return p;
}

/* What is in W/d. */
static const char *in_d(const char *work, const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%.2000s/d/%.1000s", work, name);
	return path;
}

static int file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* Make W/d with @name in it. */
static int tree(const char *work, const char *name)
{
	if ((mkdir(in(work, "d"), 0755) && errno != EEXIST) ||
	    (mkdir(in_d(work, name), 0755) && errno != EEXIST))
		return errno;
	return 0;
}

static void clear(const char *work, const char *name)
{
	unlink(in(work, "f"));
	unlink(in(work, "l"));
	rmdir(in_d(work, name));
	rmdir(in(work, "d"));
}

static int by_rename(char **a, struct say *s)
{
	int e = file(in(a[0], "f"));

	(void)s;
	if (!e && rename(in(a[0], "f"), a[1]))
		e = errno;
	clear(a[0], "hooks");
	return e;
}

static int by_directory(char **a, struct say *s)
{
	int e = tree(a[0], "hooks");

	(void)s;
	if (!e && rename(in(a[0], "d"), a[1]))
		e = errno;
	clear(a[0], "hooks");
	return e;
}

/* The other is there. */
static int by_exchange(char **a, struct say *s)
{
	int e = file(in(a[0], "f"));

	(void)s;
	if (!e && syscall(SYS_renameat2, AT_FDCWD, in(a[0], "f"), AT_FDCWD,
			  a[1], EXCHANGE))
		e = errno;
	clear(a[0], "hooks");
	return e;
}

static int by_link(char **a, struct say *s)
{
	int e = file(in(a[0], "f"));

	(void)s;
	if (!e && link(in(a[0], "f"), a[1]))
		e = errno;
	clear(a[0], "hooks");
	return e;
}

/* A hard link of a symbolic one, to where @a[2] is. */
static int by_linked_link(char **a, struct say *s)
{
	int e = tree(a[0], a[2]);

	(void)s;
	if (!e && (symlink(in(a[0], "d"), in(a[0], "l")) ||
		   linkat(AT_FDCWD, in(a[0], "l"), AT_FDCWD, a[1], 0)))
		e = errno;
	clear(a[0], a[2]);
	return e;
}

static int by_symlink(char **a, struct say *s)
{
	int e = tree(a[0], a[2]);

	(void)s;
	if (!e && symlink(in(a[0], "d"), a[1]))
		e = errno;
	clear(a[0], a[2]);
	return e;
}

static int by_renamed_link(char **a, struct say *s)
{
	int e = tree(a[0], a[2]);

	(void)s;
	if (!e && (symlink(in(a[0], "d"), in(a[0], "l")) ||
		   rename(in(a[0], "l"), a[1])))
		e = errno;
	clear(a[0], a[2]);
	return e;
}

/* A directory with @a[2] in it, moved as a whole. */
static int below(char **a, struct say *s)
{
	int e = tree(a[0], a[2]);

	(void)s;
	if (!e && rename(in(a[0], "d"), a[1]))
		e = errno;
	clear(a[0], a[2]);
	return e;
}

static int nameless(const char *dir)
{
	return open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
}

static int by_nameless(char **a, struct say *s)
{
	int fd = nameless(a[0]), e = fd < 0 ? errno : 0;

	(void)s;
	if (!e &&
	    linkat(AT_FDCWD, fd_path(fd), AT_FDCWD, a[1], AT_SYMLINK_FOLLOW))
		e = errno;
	if (fd >= 0)
		close(fd);
	return e;
}

static int by_empty_path(char **a, struct say *s)
{
	int fd = nameless(a[0]), e = fd < 0 ? errno : 0;

	(void)s;
	if (!e && linkat(fd, "", AT_FDCWD, a[1], AT_EMPTY_PATH))
		e = errno;
	if (fd >= 0)
		close(fd);
	return e;
}

static int by_socket(char **a, struct say *s)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int e = fd < 0 ? errno : 0;

	(void)s;
	snprintf(to.sun_path, sizeof(to.sun_path), "%.107s", a[1]);
	if (!e && bind(fd, (struct sockaddr *)&to, sizeof(to)))
		e = errno;
	if (fd >= 0)
		close(fd);
	return e;
}

/* What may only be read, written by another name of its own. */
static int through_a_name(char **a, struct say *s)
{
	int fd, e = 0;

	(void)s;
	if (link(a[1], in(a[0], "l")))
		return errno;
	fd = open(in(a[0], "l"), O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		e = errno;
	else
		close(fd);
	clear(a[0], "hooks");
	return e;
}

/* N, a name that is open and one that is not, of one length. */
struct chase {
	char path[4096];
	const char *good, *bad;
	atomic_bool stop;
};

static void *flip(void *arg)
{
	struct chase *c = arg;
	size_t n = strlen(c->good);

	while (!atomic_load(&c->stop)) {
		memcpy(c->path, c->bad, n);
		atomic_signal_fence(memory_order_seq_cst);
		memcpy(c->path, c->good, n);
		atomic_signal_fence(memory_order_seq_cst);
	}
	return NULL;
}

static int race(char **a, struct say *s)
{
	static struct chase c;
	struct stat st;
	int made = 0, got = 0;
	pthread_t t;

	if (strlen(a[1]) != strlen(a[2]) || strlen(a[1]) >= sizeof(c.path))
		return EINVAL;
	strcpy(c.path, a[1]);
	c.good = a[1];
	c.bad = a[2];
	atomic_store(&c.stop, false);
	if (pthread_create(&t, NULL, flip, &c))
		return EAGAIN;
	for (int i = 0; i < number(a[0]) && !got; i++) {
		made += !mkdir(c.path, 0755);
		got = !lstat(a[2], &st);
		rmdir(a[1]);
	}
	atomic_store(&c.stop, true);
	pthread_join(t, NULL);
	say(s, "made=%d", made);
	return got ? 0 : made ? EACCES : EINVAL;
}

const struct act acts_plant[] = {
	{"plant-by-rename", 2, by_rename},
	{"plant-by-directory", 2, by_directory},
	{"plant-by-exchange", 2, by_exchange},
	{"plant-by-link", 2, by_link},
	{"plant-by-linked-link", 3, by_linked_link},
	{"plant-by-symlink", 3, by_symlink},
	{"plant-by-renamed-link", 3, by_renamed_link},
	{"plant-below", 3, below},
	{"plant-by-nameless", 2, by_nameless},
	{"plant-by-empty-path", 2, by_empty_path},
	{"plant-by-socket", 2, by_socket},
	{"write-through-a-name", 2, through_a_name},
	{"race-plant", 3, race},
	{NULL, 0, NULL},
};
