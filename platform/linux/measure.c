/* measure.c - the exact measurement.
 *
 * Proportional and swapped pages are what each process's smaps says. Shared
 * memory is in a tmpfs of the sandbox, and counted there whether it is mapped
 * or not, or it belongs to no file: where that makes the difference it is
 * looked up, mapping by mapping.
 *
 * Memory that no process has mapped and no file system of the sandbox holds
 * cannot be seen from here: so the filter refuses memory files (allowed.def).
 * What the kernel keeps in buffers of sockets and pipes is left, and only a
 * control group counts it (cgroup.c).
 *
 * All of it on a thread, since reading smaps takes a lock of the process that
 * is read: a fork bomb holds it nearly always, and one that runs at the lowest
 * priority need never let it go. */
#include "config.h"

#include "platform/linux/measure.h"

#include "cleanup.h"
#include "fdutil.h"
#include "platform/linux/members.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define STACK	  (128 * 1024)
#define SMAPS_MAX (8u << 20) /* bytes read in one measurement */

struct zb_measure {
	int proc, tmpfs[ZB_MEASURE_TMPFS];
	uint64_t limit;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t change;
	/* under @lock */
	bool running, wanted, done, quit;
	int64_t begun;
	uint64_t bytes;
};

/* What one measurement adds up. */
struct sums {
	uint64_t pages;	    /* proportional, but for shared memory */
	uint64_t shmem;	    /* proportional: mapped tmpfs and anonymous */
	uint64_t anonymous; /* of that, what is in no file system */
	uint64_t read;	    /* bytes of smaps */
};

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

uint64_t zb_measure_tmpfs(const int tmpfs[ZB_MEASURE_TMPFS])
{
	uint64_t sum = 0;
	struct statfs fs;

	for (int i = 0; i < ZB_MEASURE_TMPFS; i++)
		if (tmpfs[i] >= 0 && fstatfs(tmpfs[i], &fs) == 0)
			sum += (uint64_t)(fs.f_blocks - fs.f_bfree) *
			       (uint64_t)fs.f_bsize;
	return sum;
}

static uint64_t field(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	unsigned long long kb = 0;

	if (at)
		sscanf(at + strlen(name), " %llu", &kb);
	return (uint64_t)kb * 1024;
}

static void add_rollup(int proc, const char *pid, void *ctx)
{
	struct sums *s = ctx;
	char buf[2048], seat[ZB_SEAT_MAX];
	uint64_t threads = zb_member_threads(proc, pid), shmem;
	uint64_t resident = zb_member_seat(proc, pid, threads, seat);

	if (zb_member_read(proc, seat, "smaps_rollup", buf, sizeof(buf)) <= 0) {
		s->pages += resident;
		return;
	}
	shmem = field(buf, "\nPss_Shmem:");
	s->pages += field(buf, "\nPss:") - shmem;
	s->pages += field(buf, "\nSwapPss:");
	s->shmem += shmem;
}

/* A mapping's first line: shared memory without a file? */
static bool is_anonymous(const char *line)
{
	return strstr(line, " /dev/zero (deleted)") ||
	       strstr(line, " [anon_shmem:");
}

static bool begins_mapping(const char *line)
{
	return (line[0] >= '0' && line[0] <= '9') ||
	       (line[0] >= 'a' && line[0] <= 'f');
}

static void add_anonymous(int proc, const char *pid, void *ctx)
{
	struct sums *s = ctx;
	char path[2 * ZB_SEAT_MAX], seat[ZB_SEAT_MAX], line[8192];
	zb_auto(file) FILE *f = NULL;
	bool counts = false;
	int fd;

	zb_member_seat(proc, pid, zb_member_threads(proc, pid), seat);
	snprintf(path, sizeof(path), "%s/smaps", seat);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	f = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (!f && fd >= 0)
		close(fd);
	while (f && s->read < SMAPS_MAX && fgets(line, sizeof(line), f)) {
		unsigned long long kb;

		s->read += strlen(line);
		if (begins_mapping(line))
			counts = is_anonymous(line);
		else if (counts && sscanf(line, "Pss: %llu", &kb) == 1)
			s->anonymous += (uint64_t)kb * 1024;
	}
}

/* More to look up than can be looked at counts as if it were in no file. */
static uint64_t measure(const struct zb_measure *m)
{
	struct sums s = {0};
	uint64_t files, least;

	zb_members_each(m->proc, add_rollup, &s);
	files = zb_measure_tmpfs(m->tmpfs);
	least = s.pages + (files > s.shmem ? files : s.shmem);
	if (least > m->limit || s.pages + files + s.shmem <= m->limit)
		return least;
	zb_members_each(m->proc, add_anonymous, &s);
	if (s.read >= SMAPS_MAX || s.anonymous > s.shmem)
		s.anonymous = s.shmem;
	return s.pages + files + s.anonymous;
}

static void *serve(void *arg)
{
	struct zb_measure *m = arg;

	pthread_setname_np(pthread_self(), "zb-measure");
	pthread_mutex_lock(&m->lock);
	while (!m->quit) {
		uint64_t bytes;

		if (!m->wanted || m->done) {
			pthread_cond_wait(&m->change, &m->lock);
			continue;
		}
		pthread_mutex_unlock(&m->lock);
		bytes = measure(m);
		pthread_mutex_lock(&m->lock);
		m->bytes = bytes;
		m->done = true;
		pthread_cond_broadcast(&m->change);
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

static bool start(struct zb_measure *m)
{
	pthread_attr_t at;
	sigset_t all, old;
	int rc;

	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&at);
	pthread_attr_setstacksize(&at, STACK);
	rc = pthread_create(&m->thread, &at, serve, m);
	pthread_attr_destroy(&at);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc == 0;
}

int zb_measure_new(struct zb_measure **out, int proc,
		   const int tmpfs[ZB_MEASURE_TMPFS], uint64_t limit,
		   struct zb_error *err)
{
	struct zb_measure *m = calloc(1, sizeof(*m));
	pthread_condattr_t at;

	if (!m)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	m->proc = proc;
	memcpy(m->tmpfs, tmpfs, sizeof(m->tmpfs));
	m->limit = limit;
	pthread_mutex_init(&m->lock, NULL);
	pthread_condattr_init(&at);
	pthread_condattr_setclock(&at, CLOCK_MONOTONIC);
	pthread_cond_init(&m->change, &at);
	pthread_condattr_destroy(&at);
	*out = m;
	return 0;
}

void zb_measure_free(struct zb_measure *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->quit = true;
	pthread_cond_broadcast(&m->change);
	pthread_mutex_unlock(&m->lock);
	if (m->running)
		pthread_join(m->thread, NULL);
	pthread_mutex_destroy(&m->lock);
	pthread_cond_destroy(&m->change);
	free(m);
}

static struct timespec in_ms(int ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000L;
	if (t.tv_nsec >= 1000000000L) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000L;
	}
	return t;
}

bool zb_measure_take(struct zb_measure *m, int wait_ms, uint64_t *bytes,
		     int64_t *since_ms)
{
	struct timespec until = in_ms(wait_ms);
	bool done;

	pthread_mutex_lock(&m->lock);
	/* Not before there is something to do: most starts are short. */
	if (!m->running)
		m->running = start(m);
	if (!m->wanted) {
		m->wanted = true;
		m->begun = now_ms();
		pthread_cond_broadcast(&m->change);
	}
	while (!m->done &&
	       pthread_cond_timedwait(&m->change, &m->lock, &until) == 0)
		;
	done = m->done;
	if (done) {
		*bytes = m->bytes;
		m->wanted = m->done = false;
	} else {
		*since_ms = now_ms() - m->begun;
	}
	pthread_mutex_unlock(&m->lock);
	return done;
}
