/* race.h - opens whose path changes while somebody else decides about it. */
#ifndef ZB_TEST_RACE_H
#define ZB_TEST_RACE_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct race_result {
	int good, bad, failed; /* by what the opened file says */
};

struct race {
	char path[4096];
	const char *good, *bad;
	_Atomic int stop;
};

/* Both paths have the same length; the one word that differs flips. */
static inline void *race_flip(void *arg)
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

static inline void race_open(const char *path, struct race_result *out)
{
	char buf[16];
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
	ssize_t n;

	if (fd < 0) {
		out->failed++;
		return;
	}
	n = read(fd, buf, sizeof(buf));
	if (n >= 6 && !memcmp(buf, "SECRET", 6))
		out->bad++;
	else
		out->good++;
	close(fd);
}

static inline void race_swap(int n, const char *good, const char *bad,
			     struct race_result *out)
{
	static struct race r;
	pthread_t t;

	if (strlen(good) != strlen(bad))
		return;
	memset(&r, 0, sizeof(r));
	strcpy(r.path, good);
	r.good = good;
	r.bad = bad;
	pthread_create(&t, NULL, race_flip, &r);
	for (int i = 0; i < n; i++)
		race_open(r.path, out);
	atomic_store(&r.stop, 1);
	pthread_join(t, NULL);
}

static inline void *race_exchange(void *arg)
{
	struct race *r = arg;

	while (!atomic_load(&r->stop))
		syscall(SYS_renameat2, AT_FDCWD, r->good, AT_FDCWD, r->bad,
			2u /* RENAME_EXCHANGE */);
	return NULL;
}

/* @link and @link-other are links to @a and @b and change places. */
static inline void race_links(int n, const char *link, const char *a,
			      const char *b, struct race_result *out)
{
	static struct race r;
	static char other[4096];
	pthread_t t;

	memset(&r, 0, sizeof(r));
	snprintf(other, sizeof(other), "%.4000s-other", link);
	unlink(link);
	unlink(other);
	if (symlink(a, link) || symlink(b, other))
		return;
	r.good = link;
	r.bad = other;
	pthread_create(&t, NULL, race_exchange, &r);
	for (int i = 0; i < n; i++)
		race_open(link, out);
	atomic_store(&r.stop, 1);
	pthread_join(t, NULL);
}

struct race_numbers {
	int slot, good, bad;
	_Atomic int stop;
};

static inline void *race_renumber(void *arg)
{
	struct race_numbers *r = arg;

	while (!atomic_load(&r->stop)) {
		dup2(r->bad, r->slot);
		dup2(r->good, r->slot);
	}
	return NULL;
}

/* Opens of /proc/self/fd/N, where N is now a descriptor of @good and now one of
 * @bad; neither gives a right to read. */
static inline void race_fds(int n, const char *good, const char *bad,
			    struct race_result *out)
{
	static struct race_numbers r;
	char path[64];
	pthread_t t;

	r.good = open(good, O_PATH | O_CLOEXEC);
	r.bad = open(bad, O_PATH | O_CLOEXEC);
	r.slot = dup(r.good);
	atomic_store(&r.stop, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", r.slot);
	if (r.good < 0 || r.bad < 0 || r.slot < 0)
		return;
	pthread_create(&t, NULL, race_renumber, &r);
	for (int i = 0; i < n; i++)
		race_open(path, out);
	atomic_store(&r.stop, 1);
	pthread_join(t, NULL);
	close(r.good);
	close(r.bad);
	close(r.slot);
}

/* A file made at a path that flips, and removed again. What is made at @bad
 * stays if nobody may remove it. */
static inline int race_make(int n, const char *good, const char *bad)
{
	static struct race r;
	pthread_t t;
	int made = 0;

	if (strlen(good) != strlen(bad))
		return -1;
	memset(&r, 0, sizeof(r));
	strcpy(r.path, good);
	r.good = good;
	r.bad = bad;
	pthread_create(&t, NULL, race_flip, &r);
	for (int i = 0; i < n; i++) {
		int fd = (int)syscall(SYS_openat, AT_FDCWD, r.path,
				      O_CREAT | O_WRONLY, 0644);

		if (fd < 0)
			continue;
		made++;
		close(fd);
		unlink(good);
	}
	atomic_store(&r.stop, 1);
	pthread_join(t, NULL);
	return made;
}

/* Directories made at LINK/@name, where LINK is now one to @a and now one to
 * @b. */
static inline int race_make_below(int n, const char *link, const char *a,
				  const char *b, const char *name)
{
	static struct race r;
	static char other[4096], path[4096], mine[4096];
	pthread_t t;
	int made = 0;

	memset(&r, 0, sizeof(r));
	snprintf(other, sizeof(other), "%.4000s-other", link);
	snprintf(path, sizeof(path), "%.2000s/%.2000s", link, name);
	snprintf(mine, sizeof(mine), "%.2000s/%.2000s", a, name);
	if (symlink(a, link) || symlink(b, other))
		return -1;
	r.good = link;
	r.bad = other;
	pthread_create(&t, NULL, race_exchange, &r);
	for (int i = 0; i < n; i++) {
		made += !mkdir(path, 0755);
		rmdir(mine);
	}
	atomic_store(&r.stop, 1);
	pthread_join(t, NULL);
	return made;
}

#endif
