/* limits.c - what a sandbox uses, and whether that is too much.
 *
 * Two looks. The quick one takes no lock that a process could hold: resident
 * pages, tmpfs, processes, threads. It errs on the high side, since pages that
 * are shared count for each. So when it says that memory is over the limit it
 * is measured exactly (measure.c); a sandbox that does not let itself be
 * measured in time has what the quick look says. Swapped pages are seen only
 * by the exact one, which is taken now and then for that. */
#include "config.h"

#include "cleanup.h"
#include "fdutil.h"
#include "platform/linux/limits.h"
#include "platform/linux/measure.h"
#include "platform/linux/members.h"

#include <fcntl.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define TMPFS_TYPE  0x01021994
#define SLOW_EVERY  8
#define WAIT_MS	    50	 /* for a measurement, in one look */
#define PATIENCE_MS 1000 /* with one that would acquit */
#define FAR_OVER    4	 /* so many times the limit needs no patience */
#define MS_SOON	    10	 /* it would be over the limit before long */
#define MS_NEAR	    20	 /* over half of the limit */
#define MS_NORMAL   100
#define MS_STILL    250
#define STILL_LOOKS 10

struct estimate {
	uint64_t bytes, threads;
};

static void add(int proc, const char *pid, void *ctx)
{
	struct estimate *sum = ctx;
	uint64_t threads = zb_member_threads(proc, pid);
	char seat[ZB_SEAT_MAX];

	sum->bytes += zb_member_seat(proc, pid, threads, seat);
	sum->threads += threads;
}

/* A tmpfs of the sandbox at @path, or -1. */
static int tmpfs_at(int root, const char *path)
{
	zb_auto(fd) int fd =
		openat(root, path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	struct statfs fs;

	if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_TYPE)
		return -1;
	return zb_steal_fd(&fd);
}

int zb_limits_init(struct zb_limits *l, const struct zb_plan *plan, int root,
		   struct zb_error *err)
{
	*l = ZB_LIMITS_NONE;
	l->memory = zb_plan_limit(plan, ZB_LIMIT_MEMORY);
	l->processes = zb_plan_limit(plan, ZB_LIMIT_PROCESSES);
	l->proc = openat(root, "proc",
			 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (l->proc < 0)
		return zb_fail_sys(err, errno, "open the sandbox's /proc");
	l->tmpfs[0] = tmpfs_at(root, "tmp");
	l->tmpfs[1] = tmpfs_at(root, "dev/shm");
	l->tmpfs[2] = tmpfs_at(root, ".");
	if (l->memory == UINT64_MAX)
		return 0;
	return zb_measure_new(&l->measure, l->proc, l->tmpfs, l->memory, err);
}

void zb_limits_done(struct zb_limits *l)
{
	zb_measure_free(l->measure);
	if (l->proc >= 0)
		close(l->proc);
	for (int i = 0; i < ZB_LIMITS_TMPFS; i++)
		if (l->tmpfs[i] >= 0)
			close(l->tmpfs[i]);
	*l = ZB_LIMITS_NONE;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Is memory over the limit? @l->used is the estimate, and becomes what was
 * measured if that is known. */
static bool over_memory(struct zb_limits *l)
{
	bool over = l->used > l->memory, far = l->used / FAR_OVER > l->memory;
	uint64_t bytes = 0;
	int64_t since = 0;

	l->exact = false;
	if (!l->measure || (!over && l->looks % SLOW_EVERY))
		return over;
	if (!zb_measure_take(l->measure, WAIT_MS, &bytes, &since))
		return over && (far || since > PATIENCE_MS);
	if (bytes) {
		l->exact = true;
		l->used = bytes;
	}
	return l->used > l->memory;
}

enum zb_excess zb_limits_check(struct zb_limits *l)
{
	struct estimate sum = {0};
	uint64_t procs = zb_members_each(l->proc, add, &sum);
	uint64_t before = l->used;
	enum zb_excess e = ZB_WITHIN;
	int64_t now = now_ms();
	bool moved;

	l->used = sum.bytes + zb_measure_tmpfs(l->tmpfs);
	/* These need no measurement, and one that hangs is theirs to make. */
	if (procs > l->processes)
		e = ZB_OVER_PROCESSES;
	else if (sum.threads / ZB_LIMITS_THREADS > l->processes)
		e = ZB_OVER_THREADS;
	else if (over_memory(l))
		e = ZB_OVER_MEMORY;
	moved = procs != l->procs || l->used > before + l->memory / 64 ||
		l->used + l->memory / 64 < before;
	l->still = moved ? 0 : l->still + 1;
	l->looks++;
	l->grown = l->used > before ? l->used - before : 0;
	l->apart = l->at ? now - l->at : MS_NORMAL;
	l->at = now;
	l->procs = procs;
	l->threads = sum.threads;
	return e;
}

/* At the rate of the last interval, half of the time until it is over. */
static int64_t until_over(const struct zb_limits *l)
{
	if (l->memory == UINT64_MAX || !l->grown || l->used > l->memory)
		return INT64_MAX;
	return (int64_t)((double)(l->memory - l->used) * (double)l->apart /
			 (double)l->grown / 2);
}

int zb_limits_interval(const struct zb_limits *l)
{
	int ms = l->still > STILL_LOOKS ? MS_STILL : MS_NORMAL;
	int64_t soon = until_over(l);

	if (l->memory == UINT64_MAX && l->processes == UINT64_MAX)
		return -1;
	if (l->used > l->memory / 2 || l->procs > l->processes / 2)
		ms = MS_NEAR;
	if (soon < ms)
		ms = soon > MS_SOON ? (int)soon : MS_SOON;
	return ms;
}
