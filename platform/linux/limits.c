/* limits.c - measuring a sandbox from outside.
 *
 * Its members are what its own /proc lists, so nobody can leave the count by
 * being re-parented. The quick estimate errs on the high side, but for memory
 * files that are not mapped; the slow one sees those too and is taken every
 * few looks. Both read only what the kernel says; nothing here can block on a
 * file system of the extension's choice. */
#include "config.h"

#include "cleanup.h"
#include "fdutil.h"
#include "platform/linux/limits.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define TMPFS_TYPE   0x01021994
#define MEMORY_FILES 4096 /* told apart in one look */
#define SLOW_EVERY   8
#define MS_SOON	     10 /* it would be over the limit before long */
#define MS_NEAR	     20 /* over half of the limit */
#define MS_NORMAL    100
#define MS_STILL     250
#define STILL_LOOKS  10

/* ---- reading ------------------------------------------------------------*/

/* Is @name a process of the listing? Process 1 is ours. */
static bool is_member(const char *name)
{
	return name[0] >= '1' && name[0] <= '9' && strcmp(name, "1") != 0;
}

static ssize_t read_file(int dir, const char *pid, const char *file, char *buf,
			 size_t room)
{
	char path[64];
	zb_auto(fd) int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%.20s/%s", pid, file);
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, room - 1);
	if (n >= 0)
		buf[n] = '\0';
	return n;
}

/* Visit each member. Return: how many there are. */
static uint64_t
each(int proc, void (*visit)(int proc, const char *pid, void *ctx), void *ctx)
{
	uint64_t n = 0;
	int fd = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((e = readdir(d))) {
		if (!is_member(e->d_name))
			continue;
		n++;
		if (visit)
			visit(proc, e->d_name, ctx);
	}
	closedir(d);
	return n;
}

static uint64_t tmpfs_bytes(const struct zb_limits *l)
{
	uint64_t sum = 0;
	struct statfs fs;

	for (int i = 0; i < ZB_LIMITS_TMPFS; i++)
		if (l->tmpfs[i] >= 0 && fstatfs(l->tmpfs[i], &fs) == 0)
			sum += (uint64_t)(fs.f_blocks - fs.f_bfree) *
			       (uint64_t)fs.f_bsize;
	return sum;
}

/* ---- the quick estimate -------------------------------------------------*/

static void add_resident(int proc, const char *pid, void *ctx)
{
	char buf[128];
	unsigned long long size, resident;

	if (read_file(proc, pid, "statm", buf, sizeof(buf)) > 0 &&
	    sscanf(buf, "%llu %llu", &size, &resident) == 2)
		*(uint64_t *)ctx += resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- the measurement ----------------------------------------------------*/

struct measure {
	uint64_t pages; /* proportional, but for shared memory */
	uint64_t shmem; /* proportional: mapped tmpfs and memory files */
	uint64_t files; /* memory files, mapped or not */
	ino_t seen[MEMORY_FILES];
	size_t n_seen;
};

static uint64_t field(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	unsigned long long kb = 0;

	if (at)
		sscanf(at + strlen(name), " %llu", &kb);
	return (uint64_t)kb * 1024;
}

static void add_memory_file(struct measure *m, int fds, const char *name)
{
	struct stat sb;
	char link[16];
	ssize_t n = readlinkat(fds, name, link, sizeof(link));

	if (n < 7 || memcmp(link, "/memfd:", 7) != 0 ||
	    fstatat(fds, name, &sb, 0) < 0)
		return;
	for (size_t i = 0; i < m->n_seen; i++)
		if (m->seen[i] == sb.st_ino)
			return;
	if (m->n_seen < MEMORY_FILES)
		m->seen[m->n_seen++] = sb.st_ino;
	m->files += (uint64_t)sb.st_blocks * 512;
}

static void add_memory_files(struct measure *m, int proc, const char *pid)
{
	char path[64];
	struct dirent *e;
	DIR *d;
	int fd;

	snprintf(path, sizeof(path), "%.20s/fd", pid);
	fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd >= 0 ? fdopendir(fd) : NULL;
	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			add_memory_file(m, dirfd(d), e->d_name);
	closedir(d);
}

static void add_measured(int proc, const char *pid, void *ctx)
{
	struct measure *m = ctx;
	char buf[2048];

	if (read_file(proc, pid, "smaps_rollup", buf, sizeof(buf)) > 0) {
		uint64_t shmem = field(buf, "\nPss_Shmem:");

		m->pages += field(buf, "\nPss:") - shmem;
		m->pages += field(buf, "\nSwapPss:");
		m->shmem += shmem;
	} else {
		add_resident(proc, pid, &m->pages);
	}
	add_memory_files(m, proc, pid);
}

static uint64_t measure(const struct zb_limits *l)
{
	zb_auto(free) struct measure *m = calloc(1, sizeof(*m));
	uint64_t files;

	if (!m)
		return 0;
	each(l->proc, add_measured, m);
	files = m->files + tmpfs_bytes(l);
	return m->pages + (files > m->shmem ? files : m->shmem);
}

/* ---- the module's face --------------------------------------------------*/

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
	return 0;
}

void zb_limits_done(struct zb_limits *l)
{
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

enum zb_excess zb_limits_check(struct zb_limits *l)
{
	uint64_t used = 0, procs = each(l->proc, add_resident, &used);
	int64_t now = now_ms();
	bool moved;

	used += tmpfs_bytes(l);
	if (used > l->memory || l->looks % SLOW_EVERY == 0) {
		uint64_t exact = measure(l);

		used = exact ? exact : used;
	}
	moved = procs != l->procs || used > l->used + l->memory / 64 ||
		used + l->memory / 64 < l->used;
	l->still = moved ? 0 : l->still + 1;
	l->looks++;
	l->grown = used > l->used ? used - l->used : 0;
	l->apart = l->at ? now - l->at : MS_NORMAL;
	l->at = now;
	l->used = used;
	l->procs = procs;
	if (used > l->memory)
		return ZB_OVER_MEMORY;
	return procs > l->processes ? ZB_OVER_PROCESSES : ZB_WITHIN;
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
