/* peer.c - reading the process that waits for an answer.
 *
 * Memory comes by process_vm_readv(2). The supervisor needs no capability for
 * it: it owns the user namespace that the sandbox lives in. */
#include "config.h"

#include "platform/linux/peer.h"

#include "fdutil.h"

#include "cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE	  4096u	 /* or a divisor of it: reads are clipped there */
#define FIRST	  256u	 /* most paths are shorter */
#define NO_LEADER O_EXCL /* PIDFD_THREAD, since 6.9 */

/* One transfer inside one page. */
static ssize_t transfer(int tid, uint64_t addr, char *out, size_t n)
{
	struct iovec to = {.iov_base = out, .iov_len = n};
	struct iovec from = {.iov_base = (void *)(uintptr_t)addr, .iov_len = n};
	ssize_t got = process_vm_readv(tid, &to, 1, &from, 1, 0);

	if (got > 0)
		return got;
	return got == 0 || errno == ESRCH ? -EFAULT : -errno;
}

static size_t to_page_end(uint64_t addr)
{
	return PAGE - (size_t)(addr & (PAGE - 1));
}

/* As many of @n bytes as can be read, at least one. Return: how many. */
static ssize_t read_some(int tid, uint64_t addr, void *out, size_t n)
{
	size_t done = 0;

	while (done < n) {
		size_t part = to_page_end(addr + done);
		ssize_t got;

		if (part > n - done)
			part = n - done;
		got = transfer(tid, addr + done, (char *)out + done, part);
		if (got < 0)
			return done ? (ssize_t)done : got;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

int zb_peer_read(int tid, uint64_t addr, void *out, size_t n)
{
	ssize_t got = n ? read_some(tid, addr, out, n) : 0;

	if (got < 0)
		return (int)got;
	return (size_t)got == n ? 0 : -EFAULT;
}

int zb_peer_string(int tid, uint64_t addr, char *out, size_t cap)
{
	size_t done = 0;

	while (done < cap) {
		size_t part = to_page_end(addr + done);
		const char *nul;
		ssize_t got;

		if (part > cap - done)
			part = cap - done;
		if (!done && part > FIRST)
			part = FIRST;
		got = transfer(tid, addr + done, out + done, part);
		if (got < 0)
			return (int)got;
		nul = memchr(out + done, '\0', (size_t)got);
		if (nul)
			return (int)(nul - out);
		done += (size_t)got;
	}
	return -ENAMETOOLONG;
}

static int open_proc(int tid, const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
	return open(path, flags | O_CLOEXEC);
}

int zb_peer_memory(struct zb_peer_memory *out, int tid)
{
	zb_auto(fd) int maps = open_proc(tid, "maps", O_RDONLY);

	*out = ZB_PEER_MEMORY;
	out->mem = open_proc(tid, "mem", O_WRONLY);
	out->maps = maps < 0 ? NULL : fdopen(maps, "re");
	if (out->maps)
		zb_steal_fd(&maps); /* the stream's */
	return out->maps && out->mem >= 0 ? 0 : -EFAULT;
}

void zb_peer_memory_done(struct zb_peer_memory *m)
{
	if (m->mem >= 0)
		close(m->mem);
	if (m->maps)
		fclose(m->maps);
	*m = ZB_PEER_MEMORY;
}

/* May the process itself write all from @at to @end? /proc/PID/mem forces its
 * way into what may only be read; process_vm_writev(2) does not, but goes by a
 * number that may be another's by now. So the mappings are asked, by a handle
 * that is as much the process's as the other. A stack grows down to where it
 * is written. */
static bool is_writable(FILE *maps, uint64_t at, uint64_t end)
{
	zb_auto(free) char *line = NULL;
	size_t room = 0;

	while (at < end && getline(&line, &room, maps) > 0) {
		unsigned long long from, to;
		char mode[5];

		if (sscanf(line, "%llx-%llx %4s", &from, &to, mode) != 3)
			break;
		if (to <= at)
			continue;
		if (mode[1] != 'w' || (from > at && !strstr(line, "[stack]")))
			break;
		at = to;
	}
	return at >= end;
}

int zb_peer_write(const struct zb_peer_memory *m, uint64_t addr, const void *p,
		  size_t n)
{
	if (addr > INT64_MAX - n || !is_writable(m->maps, addr, addr + n))
		return -EFAULT;
	return pwrite(m->mem, p, n, (off_t)addr) == (ssize_t)n ? 0 : -EFAULT;
}

static int pidfd_open(int pid, unsigned flags)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, flags);

	return fd < 0 ? -errno : fd;
}

/* A handle on @tid. Its number is that of a thread; kernels before 6.9 have
 * handles on whole processes only, whose descriptors are the same unless a
 * thread was made without CLONE_FILES. */
static int open_thread(int tid)
{
	struct zb_peer_status st;
	int fd = pidfd_open(tid, NO_LEADER);

	if (fd >= 0)
		return fd;
	fd = pidfd_open(tid, 0);
	if (fd >= 0)
		return fd;
	if (zb_peer_status(tid, &st))
		return -ESRCH;
	return pidfd_open(st.tgid, 0);
}

int zb_peer_fd(int tid, int fd)
{
	zb_auto(fd) int pidfd = open_thread(tid);
	int dup;

	if (pidfd < 0)
		return -EBADF;
	dup = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	return dup < 0 ? -errno : dup;
}

/* Most callers are the first thread of their process, which alone is in the
 * group of its own number: cheaper than a look at /proc. */
int zb_peer_process(int tid)
{
	struct zb_peer_status st;

	if (!syscall(SYS_tgkill, tid, tid, 0) || errno == EPERM ||
	    zb_peer_status(tid, &st))
		return tid;
	return st.tgid;
}

static int read_link(const char *link, char *out, size_t cap)
{
	ssize_t n = readlink(link, out, cap - 1);

	if (n < 0)
		return -errno;
	if ((size_t)n >= cap - 1)
		return -ENAMETOOLONG;
	out[n] = '\0';
	return 0;
}

void zb_peer_exe(int tid, char *out, size_t cap)
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/%d/exe", tid);
	if (read_link(link, out, cap))
		out[0] = '\0';
}

/* On a whole line of numbers, one for each namespace, the innermost; else 0. */
static int last_number(const char *line)
{
	bool whole = line && strchr(line + 1, '\n');
	const char *p = whole ? strchr(line + 1, ':') : NULL;
	int n = 0;
	char *end;

	while (p && *++p == '\t') {
		n = (int)strtol(p, &end, 10);
		p = end - 1;
	}
	return n;
}

int zb_peer_status(int tid, struct zb_peer_status *out)
{
	struct zb_peer_status st = {.umask = 022};
	char path[64], text[1024];
	const char *p;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	{
		zb_auto(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			return -ESRCH;
		n = read(fd, text, sizeof(text) - 1);
	}
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	/* The name on the first line is the program's choice, but has its
	 * newlines escaped. */
	p = strstr(text, "\nUmask:");
	if (p)
		st.umask = (mode_t)strtoul(p + 7, NULL, 8) & 0777;
	p = strstr(text, "\nTgid:");
	if (!p)
		return -ESRCH;
	st.tgid = (int)strtol(p + 6, NULL, 10);
	st.inside = last_number(strstr(text, "\nNStgid:"));
	*out = st;
	return st.tgid > 0 ? 0 : -ESRCH;
}
