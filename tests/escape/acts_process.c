/* acts_process.c - other processes: looking into them, signalling them,
 * taking descriptors from them; and too many of one's own. */
#include "config.h"

#include "escapist.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* PID FILE */
static const char *proc(char **a)
{
	static char path[4200];

	snprintf(path, sizeof(path), "/proc/%s/%s", a[0], a[1]);
	return path;
}

/* PID FILE: can it be opened and read at all? */
static int peek(char **a, struct say *s)
{
	int fd = open(proc(a), O_RDONLY | O_CLOEXEC);
	char buf[256];
	ssize_t n;

	if (fd < 0)
		return errno;
	n = read(fd, buf, sizeof(buf) - 1);
	if (n < 0)
		return errno;
	buf[n] = '\0';
	say(s, "%.80s", buf);
	return n ? 0 : ENODATA;
}

/* PID ADDRESS: its memory. */
static int peek_memory(char **a, struct say *s)
{
	char path[64], buf[16] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/mem", a[0]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	if (!number(a[1])) /* it was opened: that is all there is to get */
		return 0;
	if (pread(fd, buf, sizeof(buf) - 1, (off_t)strtoull(a[1], NULL, 0)) < 0)
		return errno;
	say(s, "%s", buf);
	return strstr(buf, SECRET) ? 0 : ENODATA;
}

/* PID: its descriptors. */
static int peek_descriptors(char **a, struct say *s)
{
	char path[64], link[512], target[256];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%s/fd", a[0]);
	d = opendir(path);
	if (!d)
		return errno;
	while ((e = readdir(d))) {
		ssize_t n;

		if (e->d_name[0] == '.')
			continue;
		snprintf(link, sizeof(link), "%s/%s", path, e->d_name);
		n = readlink(link, target, sizeof(target) - 1);
		if (n > 0) {
			say(s, "%.*s", (int)n, target);
			closedir(d);
			return 0;
		}
	}
	closedir(d);
	return EACCES;
}

/* PID LINK: root, cwd, exe. */
static int peek_link(char **a, struct say *s)
{
	char target[256];
	ssize_t n = readlink(proc(a), target, sizeof(target) - 1);

	if (n < 0)
		return errno;
	say(s, "%.*s", (int)n, target);
	return 0;
}

static int attach(char **a, struct say *s)
{
	pid_t pid = number(a[0]);

	(void)s;
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		return errno;
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return 0;
}

/* A tracer could change the calls of a tracee after they were judged. */
static int trace_child(char **a, struct say *s)
{
	pid_t pid = fork();
	int status;

	(void)a;
	(void)s;
	if (!pid)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? errno : 0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return errno;
	return WEXITSTATUS(status);
}

/* PID ADDRESS */
static int vm_read(char **a, struct say *s)
{
	char buf[16] = "";
	struct iovec mine = {buf, sizeof(buf) - 1};
	struct iovec theirs = {(void *)(size_t)strtoull(a[1], NULL, 0),
			       sizeof(buf) - 1};

	if (process_vm_readv(number(a[0]), &mine, 1, &theirs, 1, 0) < 0)
		return errno;
	say(s, "%s", buf);
	return strstr(buf, SECRET) ? 0 : ENODATA;
}

/* PID FD: a duplicate of its descriptor. */
static int take_descriptor(char **a, struct say *s)
{
	int pidfd = (int)syscall(SYS_pidfd_open, number(a[0]), 0), fd;

	(void)s;
	if (pidfd < 0)
		return errno;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, number(a[1]), 0);
	return fd >= 0 ? 0 : errno;
}

/* PID SIGNAL */
static int send_signal(char **a, struct say *s)
{
	(void)s;
	return kill(number(a[0]), number(a[1])) ? errno : 0;
}

/* SIGNAL, to whomever it reaches. */
static int signal_all(char **a, struct say *s)
{
	signal(number(a[0]), SIG_IGN);
	say(s, "%d", kill(-1, number(a[0])));
	return ESRCH; /* whom it reached, the victim tells */
}

static int in_proc(char **a, struct say *s)
{
	char path[64];
	struct stat st;

	(void)s;
	snprintf(path, sizeof(path), "/proc/%s", a[0]);
	return stat(path, &st) ? errno : 0;
}

/* NAME of a variable, of our own or (PID 1) of what started us. */
static int variable(char **a, struct say *s)
{
	const char *v = getenv(a[0]);

	if (!v)
		return ENODATA;
	say(s, "%.40s", v);
	return strstr(v, SECRET) ? 0 : ENODATA;
}

/* Whom does a process ask for its limits? */
static int limit_other(char **a, struct say *s)
{
	struct {
		unsigned long long cur, max;
	} lim;

	(void)s;
	return syscall(SYS_prlimit64, number(a[0]), 7, NULL, &lim) ? errno : 0;
}

/* ---- namespaces ---------------------------------------------------------*/

/* FLAGS, in a child. */
static int new_namespace(char **a, struct say *s)
{
	pid_t pid = fork();
	int status;

	(void)s;
	if (!pid)
		_exit(unshare(number(a[0])) ? errno : 0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return errno;
	return WEXITSTATUS(status);
}

static int clone_namespace(char **a, struct say *s)
{
	long pid = syscall(SYS_clone, number(a[0]) | SIGCHLD, NULL, NULL, NULL,
			   NULL);

	(void)s;
	if (!pid)
		_exit(0);
	if (pid < 0)
		return errno;
	waitpid((pid_t)pid, NULL, 0);
	return 0;
}

static int clone3_namespace(char **a, struct say *s)
{
	struct {
		unsigned long long flags, pidfd, child_tid, parent_tid, signal,
			stack, stack_size, tls;
	} args = {.flags = (unsigned)number(a[0]), .signal = SIGCHLD};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	(void)s;
	if (!pid)
		_exit(0);
	if (pid < 0)
		return errno;
	waitpid((pid_t)pid, NULL, 0);
	return 0;
}

/* PID KIND: its namespace; it is a child of ours in a new one if PID is 0. */
static int join_namespace(char **a, struct say *s)
{
	char path[64];
	pid_t pid = number(a[0]), child = 0;
	int fd, p[2];
	char c;

	(void)s;
	if (!pid && !pipe(p)) {
		child = fork();
		if (!child) {
			unshare(CLONE_NEWUSER);
			close(p[0]);
			close(p[1]);
			pause();
			_exit(0);
		}
		close(p[1]);
		if (read(p[0], &c, 1) < 0)
			return errno;
		pid = child;
	}
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, a[1]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	fd = fd < 0 || setns(fd, 0) ? errno : 0;
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	return fd;
}

/* ---- too much -----------------------------------------------------------*/

/* N processes at once, each doing nothing for a while. */
static int many_processes(char **a, struct say *s)
{
	int n = number(a[0]), made = 0;

	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (!pid) {
			poll(NULL, 0, 3000);
			_exit(0);
		}
		if (pid < 0)
			break;
		made++;
	}
	poll(NULL, 0, 2500);
	say(s, "%d", made);
	return made == n ? 0 : EAGAIN;
}

/* MIB of memory, used. */
static int much_memory(char **a, struct say *s)
{
	size_t n = (size_t)number(a[0]) << 20;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)s;
	if (p == MAP_FAILED)
		return errno;
	for (size_t i = 0; i < n; i += 4096)
		p[i] = 1;
	poll(NULL, 0, 2000);
	return 0;
}

const struct act acts_process[] = {
	{"peek", 2, peek},
	{"peek-memory", 2, peek_memory},
	{"peek-descriptors", 1, peek_descriptors},
	{"peek-link", 2, peek_link},
	{"attach", 1, attach},
	{"trace-child", 0, trace_child},
	{"vm-read", 2, vm_read},
	{"take-descriptor", 2, take_descriptor},
	{"signal", 2, send_signal},
	{"signal-all", 1, signal_all},
	{"in-proc", 1, in_proc},
	{"variable", 1, variable},
	{"limit-other", 1, limit_other},
	{"new-namespace", 1, new_namespace},
	{"clone-namespace", 1, clone_namespace},
	{"clone3-namespace", 1, clone3_namespace},
	{"join-namespace", 2, join_namespace},
	{"many-processes", 1, many_processes},
	{"much-memory", 1, much_memory},
	{NULL, 0, NULL},
};
