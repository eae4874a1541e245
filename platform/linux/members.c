/* members.c - the processes of a sandbox.
 *
 * Its members are what its own /proc lists, so nobody can leave the count by
 * being re-parented. */
#include "config.h"

#include "platform/linux/members.h"

#include "cleanup.h"
#include "fdutil.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static DIR *open_list(int proc, const char *path)
{
	int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (!d && fd >= 0)
		close(fd);
	return d;
}

/* Is @name a process of the listing? Process 1 is ours. */
static bool is_member(const char *name)
{
	return name[0] >= '1' && name[0] <= '9' && strcmp(name, "1") != 0;
}

uint64_t zb_members_each(int proc,
			 void (*visit)(int proc, const char *pid, void *ctx),
			 void *ctx)
{
	DIR *d = open_list(proc, ".");
	struct dirent *e;
	uint64_t n = 0;

	while (d && (e = readdir(d))) {
		if (!is_member(e->d_name))
			continue;
		n++;
		visit(proc, e->d_name, ctx);
	}
	if (d)
		closedir(d);
	return n;
}

ssize_t zb_member_read(int proc, const char *seat, const char *file, char *buf,
		       size_t room)
{
	char path[2 * ZB_SEAT_MAX];
	zb_auto(fd) int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", seat, file);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, room - 1);
	if (n >= 0)
		buf[n] = '\0';
	return n;
}

/* The kernel counts them in the links of this directory. */
uint64_t zb_member_threads(int proc, const char *pid)
{
	char path[ZB_SEAT_MAX];
	struct stat sb;

	snprintf(path, sizeof(path), "%.20s/task", pid);
	if (fstatat(proc, path, &sb, 0) < 0 || sb.st_nlink < 3)
		return 1;
	return (uint64_t)sb.st_nlink - 2;
}

static uint64_t resident(int proc, const char *seat)
{
	char buf[128];
	unsigned long long size, pages;

	if (zb_member_read(proc, seat, "statm", buf, sizeof(buf)) <= 0 ||
	    sscanf(buf, "%llu %llu", &size, &pages) != 2 || !size)
		return 0;
	/* The tables of what is only reserved are little, but not nothing. */
	return (pages + 1) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t zb_member_seat(int proc, const char *pid, uint64_t threads,
			char seat[ZB_SEAT_MAX])
{
	char path[ZB_SEAT_MAX];
	uint64_t bytes;
	struct dirent *e;
	DIR *d;

	snprintf(seat, ZB_SEAT_MAX, "%.20s", pid);
	bytes = resident(proc, seat);
	if (bytes || threads < 2)
		return bytes;
	snprintf(path, sizeof(path), "%.20s/task", pid);
	d = open_list(proc, path);
	while (d && !bytes && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(seat, ZB_SEAT_MAX, "%.20s/task/%.20s", pid, e->d_name);
		bytes = resident(proc, seat);
	}
	if (d)
		closedir(d);
	return bytes;
}
