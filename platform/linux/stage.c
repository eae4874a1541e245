/* stage.c - zotbox-stage: the last trusted code before the extension, and
 * process 1 of its pid namespace.
 *
 * bwrap has built the namespaces and mounts and dropped every capability; it
 * execs us through a descriptor, so that no file of ours is inside. In order:
 *
 *  1. not dumpable (nobody inside may look at us), no_new_privs
 *  2. no capability is left; each planned mount is the inode that the driver
 *     saw, and read-only where the plan says so: a path that was swapped
 *     between planning and mounting ends it here
 *  3. Landlock, then the seccomp filter with its listener
 *  4. listener and an O_PATH of / go to the driver
 *  5. fork: the child takes the program's stdio and limits, waits for the
 *     driver's word, since execve needs somebody who answers, and execs; we
 *     let go of stdio (its end must mean that the extension closed it), reap,
 *     and report how the first process ended
 *
 * Should: end as soon as the driver's end of the socket closes, however the
 * driver died; that ends the pid namespace and everything in it.
 * Mustn't: make a watched call (watched.def) after step 3; hold anything of
 * the program's after step 5; use libc (see stage_sys.h). Any failure is
 * reported and final: nothing is ever started half confined. */
#include "config.h"

#include "error.h"
#include "platform/linux/stage.h"
#include "platform/linux/stage_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#define KERNEL_SIGSET 8 /* bytes of the kernel's sigset_t */
#define ST_RDONLY_BIT 1 /* statfs f_flags */

/* linux/landlock.h of older systems lacks the newer fields. */
struct ruleset_attr {
	uint64_t fs, net, scoped;
};
struct path_beneath {
	uint64_t access;
	int32_t fd;
} __attribute__((packed));
#define LL_RULE_PATH_BENEATH 1
/* EXECUTE WRITE_FILE READ_FILE TRUNCATE IOCTL_DEV: what a file can have. */
#define LL_FILE_RIGHTS (1u | 2u | 4u | 1u << 14 | 1u << 15)

struct stage {
	struct zb_stage_config *conf;
	char *base; /* of the same mapping */
	int ctrl;
};

static _Noreturn void leave(int code)
{
	for (;;)
		sys1(SYS_exit_group, code);
}

static void copy(char *to, size_t room, const char *from)
{
	size_t i = 0;

	for (; from[i] && i + 1 < room; i++)
		to[i] = from[i];
	to[i] = '\0';
}

/* Send one message, with up to two descriptors. */
static bool tell(int ctrl, const struct zb_stage_msg *msg, const int *fds,
		 unsigned n)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)msg,
			    .iov_len = sizeof(*msg)};
	union {
		char space[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} u = {0};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n) {
		u.align.cmsg_level = SOL_SOCKET;
		u.align.cmsg_type = SCM_RIGHTS;
		u.align.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&u.align), fds, n * sizeof(int));
		m.msg_control = &u;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	return sys3(SYS_sendmsg, ctrl, &m, MSG_NOSIGNAL) >= 0;
}

static _Noreturn void fail_as(int ctrl, enum zb_code code, long err,
			      const char *what, const char *path)
{
	struct zb_stage_msg m = {
		.type = ZB_STAGE_FAILED, .code = code, .value = (int32_t)-err};
	size_t n = 0;

	copy(m.text, sizeof(m.text), what);
	while (m.text[n])
		n++;
	if (path && n + 2 < sizeof(m.text)) {
		m.text[n++] = ' ';
		copy(m.text + n, sizeof(m.text) - n, path);
	}
	tell(ctrl, &m, NULL, 0);
	leave(1);
}

static _Noreturn void fail(int ctrl, long err, const char *what,
			   const char *path)
{
	fail_as(ctrl, ZB_ESYS, err, what, path);
}

static int number(const char *s)
{
	int n = 0;

	for (; *s >= '0' && *s <= '9' && n < 100000; s++)
		n = n * 10 + (*s - '0');
	return n;
}

/* Is [@at, @at + @n * @size) inside the configuration? */
static bool inside(const struct stage *st, uint32_t at, uint64_t n,
		   uint64_t size)
{
	return n <= st->conf->size && at >= sizeof(*st->conf) &&
	       at + n * size <= st->conf->size;
}

/* A string of the configuration: its last byte is a NUL, so any offset inside
 * is the start of one. */
static const char *text(const struct stage *st, uint64_t at)
{
	if (at < sizeof(*st->conf) || at >= st->conf->size)
		fail(st->ctrl, 0, "configuration: string outside", NULL);
	return st->base + at;
}

/* A list of strings: offsets become pointers where they stand. */
static char **vector(const struct stage *st, uint32_t at)
{
	uint64_t *first = (uint64_t *)(void *)(st->base + at);

	for (uint64_t *v = first;; v++) {
		if (at % 8 || !inside(st, at + (uint32_t)(v - first) * 8, 1, 8))
			fail(st->ctrl, 0, "configuration: bad list", NULL);
		if (!*v)
			return (char **)first;
		*v = (uint64_t)(uintptr_t)text(st, *v);
	}
}

static const void *array(const struct stage *st, uint32_t at, uint32_t n,
			 size_t size)
{
	if (at % 8 || !inside(st, at, n, size))
		fail(st->ctrl, 0, "configuration: bad array", NULL);
	return st->base + at;
}

static void map_configuration(struct stage *st, int fd)
{
	struct stat sb;
	long at, err = sys2(SYS_fstat, fd, &sb);

	if (err < 0)
		fail(st->ctrl, err, "configuration", NULL);
	if (sb.st_size < (long)sizeof(*st->conf) ||
	    sb.st_size > ZB_STAGE_CONF_MAX)
		fail(st->ctrl, 0, "configuration: wrong size", NULL);
	at = sys6p(SYS_mmap, 0, sb.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE,
		   fd, 0);
	if (at < 0 && at > -4096)
		fail(st->ctrl, at, "configuration: mmap", NULL);
	st->base = (char *)at;
	st->conf = (struct zb_stage_config *)at;
	/* cppcheck does not see that fail() ends the program. */
	/* cppcheck-suppress nullPointerRedundantCheck */
	if (st->conf->magic != ZB_STAGE_MAGIC || st->conf->size != sb.st_size ||
	    st->base[sb.st_size - 1] || st->conf->n_rlimits > ZB_STAGE_RLIMITS)
		fail(st->ctrl, 0, "configuration: not ours", NULL);
	sys1(SYS_close, fd);
}

static void close_the_door(const struct stage *st)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct cap[2] = {{0}};
	long err = sys5(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);

	if (err >= 0)
		err = sys5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (err >= 0)
		err = sys2(SYS_capget, &head, cap);
	if (err < 0)
		fail(st->ctrl, err, "give up privileges", NULL);
	sys2(SYS_prctl, PR_SET_NAME, "zotbox-stage");
	if (sys0(SYS_getpid) != 1)
		fail_as(st->ctrl, ZB_EUNSUPPORTED, 0,
			"not process 1: no pid namespace", NULL);
	for (int i = 0; st->conf->flags & ZB_STAGE_NO_CAPS && i < 2; i++)
		if (cap[i].effective | cap[i].permitted | cap[i].inheritable)
			fail_as(st->ctrl, ZB_EUNSUPPORTED, 0,
				"capabilities are left", NULL);
}

/* Open @path without following any link. */
static long open_path(const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS |
					  RESOLVE_NO_MAGICLINKS};

	return sys4(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

static void check_mounts(const struct stage *st)
{
	const struct zb_stage_mount *m =
		array(st, st->conf->mounts, st->conf->n_mounts, sizeof(*m));

	for (uint32_t i = 0; i < st->conf->n_mounts; i++, m++) {
		const char *path = text(st, m->path);
		struct statfs fs;
		struct stat sb;
		long fd = open_path(path), err = fd;

		if (fd >= 0)
			err = sys2(SYS_fstat, fd, &sb);
		if (err >= 0)
			err = sys2(SYS_fstatfs, fd, &fs);
		if (err < 0)
			fail(st->ctrl, err, "check the mount of", path);
		if (sb.st_dev != m->dev || sb.st_ino != m->ino)
			fail_as(st->ctrl, ZB_EPOLICY, 0,
				"swapped while starting:", path);
		if (m->read_only && !(fs.f_flags & ST_RDONLY_BIT))
			fail_as(st->ctrl, ZB_EPOLICY, 0,
				"not mounted read-only:", path);
		sys1(SYS_close, fd);
	}
}

static void add_rule(const struct stage *st, long set,
		     const struct zb_stage_rule *rule)
{
	const char *path = text(st, rule->path);
	struct path_beneath at = {.access = rule->access};
	struct stat sb;
	long fd = open_path(path), err = fd;

	if (err >= 0)
		err = sys2(SYS_fstat, fd, &sb);
	if (err >= 0 && rule->flags & ZB_STAGE_RULE_DIR && !S_ISDIR(sb.st_mode))
		err = -ENOTDIR;
	if (err >= 0 && !S_ISDIR(sb.st_mode))
		at.access &= LL_FILE_RIGHTS;
	at.fd = (int32_t)fd;
	if (err >= 0 && at.access)
		err = sys4(SYS_landlock_add_rule, set, LL_RULE_PATH_BENEATH,
			   &at, 0);
	else if (rule->flags & ZB_STAGE_RULE_OPTIONAL &&
		 (err == -ENOENT || err == -ELOOP || err == -ENOTDIR))
		err = 0;
	if (err < 0)
		fail(st->ctrl, err, "Landlock rule for", path);
	if (fd >= 0)
		sys1(SYS_close, fd);
}

static void landlock(const struct stage *st)
{
	const struct zb_stage_rule *rule =
		array(st, st->conf->rules, st->conf->n_rules, sizeof(*rule));
	struct ruleset_attr attr = {st->conf->ll_fs, st->conf->ll_net,
				    st->conf->ll_scoped};
	long err,
		set = sys3(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	if (set < 0)
		fail_as(st->ctrl, ZB_EUNSUPPORTED, set,
			"create the Landlock ruleset", NULL);
	for (uint32_t i = 0; i < st->conf->n_rules; i++)
		add_rule(st, set, rule + i);
	err = sys2(SYS_landlock_restrict_self, set, 0);
	if (err < 0)
		fail(st->ctrl, err, "enter the Landlock domain", NULL);
	sys1(SYS_close, set);
}

static int load_filter(const struct stage *st)
{
	struct sock_fprog prog = {
		.len = (unsigned short)st->conf->n_filter,
		.filter = (struct sock_filter *)(uintptr_t)array(
			st, st->conf->filter, st->conf->n_filter,
			sizeof(struct sock_filter))};
	unsigned long how = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	long fd;

	if (st->conf->flags & ZB_STAGE_KILLABLE)
		how |= SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
	fd = sys3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, how, &prog);
	if (fd < 0)
		fail_as(st->ctrl, ZB_EUNSUPPORTED, fd,
			"load the seccomp filter with a listener", NULL);
	return (int)fd;
}

/* Confine ourselves, hand over what the driver needs. */
static void enter(const struct stage *st)
{
	struct zb_stage_msg ready = {.type = ZB_STAGE_READY};
	int fds[2];
	long fd;

	if (st->conf->flags & ZB_STAGE_LANDLOCK)
		landlock(st);
	fd = sys4(SYS_openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC,
		  0);
	if (fd < 0)
		fail(st->ctrl, fd, "open /", NULL);
	fds[0] = (int)fd;
	if (st->conf->flags & ZB_STAGE_SECCOMP) {
		fds[1] = load_filter(st);
		tell(st->ctrl, &ready, fds, 2);
		sys1(SYS_close, fds[1]);
	} else {
		tell(st->ctrl, &ready, fds, 1);
	}
	sys1(SYS_close, fds[0]);
}

static void apply_rlimits(const struct stage *st)
{
	for (uint32_t i = 0; i < st->conf->n_rlimits; i++) {
		const struct zb_stage_rlimit *want = &st->conf->rlimits[i];
		uint64_t lim[2]; /* soft, hard */
		long err = sys4(SYS_prlimit64, 0, want->resource, NULL, lim);

		/* The hard limit cannot be raised, and need not. */
		if (want->hard < lim[1])
			lim[1] = want->hard;
		lim[0] = want->soft < lim[1] ? want->soft : lim[1];
		if (err >= 0)
			err = sys4(SYS_prlimit64, 0, want->resource, lim, NULL);
		if (err < 0)
			fail(st->ctrl, err, "set a resource limit", NULL);
	}
}

static void default_signals(void)
{
	uint64_t none[4] = {0}; /* handler, flags, restorer, mask */

	for (int sig = 1; sig <= 64; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			sys4(SYS_rt_sigaction, sig, none, NULL, KERNEL_SIGSET);
	sys4(SYS_rt_sigprocmask, SIG_SETMASK, none, NULL, KERNEL_SIGSET);
}

/* The driver's listener shows whether it can read our memory and inject a
 * descriptor: we report what we then read. */
static _Noreturn void zb_stage_self_test(const struct stage *st)
{
	struct zb_stage_msg m = {.type = ZB_STAGE_TESTED};
	long fd = sys4(SYS_openat, AT_FDCWD, ZB_STAGE_TEST_PATH, O_RDONLY, 0);
	long n = fd;

	if (fd >= 0)
		n = sys3(SYS_read, fd, m.text, sizeof(m.text) - 1);
	m.value = (int32_t)n;
	tell(st->ctrl, &m, NULL, 0);
	leave(0);
}

static _Noreturn void become_program(const struct stage *st, int failed)
{
	struct zb_stage_msg here = {.type = ZB_STAGE_CHILD};
	const struct zb_stage_config *conf = st->conf;
	char **argv = vector(st, conf->argv), **envp = vector(st, conf->envp);
	const char *path = text(st, conf->exec);
	long err;
	char go = 0;

	sys0(SYS_setsid);
	for (int i = 0; i < 3 && !(conf->flags & ZB_STAGE_SELF_TEST); i++)
		if (sys3(SYS_dup3, conf->stdio[i], i, 0) < 0)
			fail(st->ctrl, 0, "standard descriptors", NULL);
	err = sys3(SYS_close_range, 3, ~0u, 1u << 2 /* CLOEXEC */);
	if (err < 0)
		fail(st->ctrl, err, "close descriptors", NULL);
	apply_rlimits(st);
	default_signals();
	/* The program is nobody's secret, and the broker must see its calls,
	 * from execve on. */
	sys5(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
	tell(st->ctrl, &here, NULL, 0);
	if (sys3(SYS_read, st->ctrl, &go, 1) != 1 || go != ZB_STAGE_GO)
		leave(1);
	if (conf->flags & ZB_STAGE_SELF_TEST)
		zb_stage_self_test(st);
	err = sys3(SYS_execve, path, argv, envp);
	sys3(SYS_write, failed, "x", 1);
	fail(st->ctrl, err, "start", path);
}

/* Reap what ended. Return: the first process, or 0 once it has ended. */
static long reap(int ctrl, long first)
{
	for (;;) {
		struct zb_stage_msg m = {.type = ZB_STAGE_EXITED};
		int status = 0;
		long pid = sys4(SYS_wait4, -1, &status, WNOHANG, NULL);

		if (pid == -ECHILD)
			leave(0); /* nobody is left: the namespace may end */
		if (pid <= 0)
			return first;
		if (pid != first)
			continue;
		m.value = status;
		tell(ctrl, &m, NULL, 0);
		first = 0;
	}
}

static _Noreturn void be_init(int ctrl, int children, long first)
{
	struct pollfd p[2] = {{.fd = ctrl, .events = POLLIN},
			      {.fd = children, .events = POLLIN}};
	char buf[128];

	for (;;) {
		first = reap(ctrl, first);
		sys5(SYS_ppoll, p, 2, NULL, NULL, 0);
		/* The driver says nothing more: readable means closed. */
		if (p[0].revents)
			leave(0);
		if (p[1].revents)
			sys3(SYS_read, children, buf, sizeof(buf));
	}
}

/* Keep only three descriptors of our own, in the place of 0, 1, 2. */
static void keep(int ctrl, int children, int failed)
{
	if (sys3(SYS_dup3, ctrl, 0, O_CLOEXEC) < 0 ||
	    sys3(SYS_dup3, children, 1, O_CLOEXEC) < 0 ||
	    sys3(SYS_dup3, failed, 2, O_CLOEXEC) < 0 ||
	    sys3(SYS_close_range, 3, ~0u, 0) < 0)
		fail(ctrl, 0, "close descriptors", NULL);
}

static _Noreturn void run(const struct stage *st)
{
	struct zb_stage_msg started = {.type = ZB_STAGE_STARTED};
	uint64_t chld = 1ull << (SIGCHLD - 1);
	int fds[2];
	long pid, children;
	char c;

	sys4(SYS_rt_sigprocmask, SIG_BLOCK, &chld, NULL, KERNEL_SIGSET);
	children = sys4(SYS_signalfd4, -1, &chld, KERNEL_SIGSET, O_CLOEXEC);
	if (children < 0 || sys2(SYS_pipe2, fds, O_CLOEXEC) < 0)
		fail(st->ctrl, 0, "prepare to start", NULL);
	pid = sys5(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid < 0)
		fail(st->ctrl, pid, "fork", NULL);
	if (pid == 0)
		become_program(st, fds[1]);
	keep(st->ctrl, (int)children, fds[0]);
	sys2(SYS_munmap, st->base, st->conf->size);
	/* End of file: execve closed the other end (or the child never got
	 * its word: then the driver is gone). */
	if (sys3(SYS_read, 2, &c, 1) == 0)
		tell(0, &started, NULL, 0);
	sys1(SYS_close, 2);
	be_init(0, 1, pid);
}

_Noreturn void stage_main(const long *sp);

/* argv: the descriptors of the control socket and of the configuration. */
_Noreturn void stage_main(const long *sp)
{
	const char *const *argv = (const char *const *)(const void *)(sp + 1);
	struct stage st = {0};

	if (*sp != 3)
		leave(2);
	st.ctrl = number(argv[1]);
	map_configuration(&st, number(argv[2]));
	close_the_door(&st);
	check_mounts(&st);
	enter(&st);
	run(&st);
}
