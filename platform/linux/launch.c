/* launch.c - one confined start.
 *
 *	driver                 bwrap                      zotbox-stage
 *	memfds: arguments,
 *	file contents, configuration, the stage itself
 *	spawn ---------------> namespaces, mounts,
 *	(broker starts)        capabilities away
 *	                       exec ---------------------> checks, Landlock,
 *	READY, listener, / <----------------------------- seccomp
 *	(broker serves)                                    fork
 *	CHILD <-------------------------------------------- child, waits
 *	go -----------------------------------------------> child execs
 *	STARTED <------------------------------------------ execve worked
 *
 * bwrap gets /dev/null and a pipe as its standard descriptors: its monitor
 * keeps those open, and the program's must close when the program closes
 * them. Its environment is empty. The program's goes to the stage: an
 * LD_PRELOAD that a scope sets must not load into bwrap, outside. */
#include "config.h"

#include "cleanup.h"
#include "fdutil.h"
#include "layers.h"
#include "platform/linux/bwrap_args.h"
#include "platform/linux/filter.h"
#include "platform/linux/landlock_rules.h"
#include "platform/linux/launch.h"
#include "platform/linux/limits.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif
#define COPY_MAX   (1 << 20) /* a small file may have grown */
#define LL_NET_TCP 3	     /* BIND_TCP CONNECT_TCP */
#define LL_SCOPED  3	     /* ABSTRACT_UNIX_SOCKET SIGNAL */

int64_t zb_monotonic_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- descriptors --------------------------------------------------------*/

/* Descriptors 0-2 are bwrap's own: keep ours out of their place, should the
 * supervisor have been started without some of them. */
static int lift(int fd)
{
	int high;

	if (fd < 0 || fd > 2)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	close(fd);
	return high;
}

/* A memory file with @data, read from its start. */
static int memory_file(const char *name, const void *data, size_t len,
		       unsigned flags, struct zb_error *err)
{
	zb_auto(fd) int fd = lift(memfd_create(name, MFD_CLOEXEC | flags));

	if (fd < 0 || zb_write_all(fd, data, len) < 0 ||
	    lseek(fd, 0, SEEK_SET) < 0) {
		zb_fail_sys(err, errno, "make the memory file %s", name);
		return -1;
	}
	return zb_steal_fd(&fd);
}

/* The stage as a sealed, executable memory file, made once. */
static int stage_file(struct zb_error *err)
{
	static int fd = -1;
	size_t len = (uintptr_t)zb_stage_image_end - (uintptr_t)zb_stage_image;
	const unsigned seal = MFD_ALLOW_SEALING;

	if (fd >= 0)
		return fd;
	fd = memory_file("zotbox-stage", zb_stage_image, len, seal | MFD_EXEC,
			 err);
	if (fd < 0 && errno == EINVAL) /* before 6.3: no MFD_EXEC, no need */
		fd = memory_file("zotbox-stage", zb_stage_image, len, seal,
				 err);
	if (fd >= 0 && fcntl(fd, F_ADD_SEALS,
			     F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW |
				     F_SEAL_WRITE) < 0) {
		zb_fail_sys(err, errno, "seal zotbox-stage");
		close(fd);
		fd = -1;
	}
	return fd;
}

/* ---- the stage's configuration -----------------------------------------*/

static uint32_t align(struct zb_buf *b)
{
	while (b->len % 8)
		if (zb_buf_addc(b, '\0'))
			break;
	return (uint32_t)b->len;
}

static uint32_t add_string(struct zb_buf *b, const char *s)
{
	uint32_t at = (uint32_t)b->len;

	zb_buf_add(b, s, strlen(s) + 1);
	return at;
}

static uint32_t add_array(struct zb_buf *b, const void *p, size_t bytes)
{
	uint32_t at = align(b);

	zb_buf_add(b, p, bytes);
	return at;
}

static struct zb_stage_config *head(struct zb_buf *b)
{
	return (struct zb_stage_config *)(void *)b->data;
}

/* Open the source of a place without following a link: plans hold real paths,
 * so a link is one that came since. Return: a descriptor or -1. */
static int open_source(const char *source, uint64_t flags, struct zb_error *err)
{
	struct open_how how = {.flags = flags | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, source, &how, sizeof(how));

	if (fd < 0 && errno == ELOOP)
		zb_fail(err, ZB_EPOLICY,
			"%s has become a symbolic link since the sandbox was "
			"planned; start again",
			source);
	else if (fd < 0)
		zb_fail_sys(err, errno, "look at %s", source);
	return fd;
}

/* What a mount must turn out to be. */
static int look_at(const char *source, struct zb_stage_mount *out,
		   struct zb_error *err)
{
	zb_auto(fd) int fd = open_source(source, O_PATH, err);
	struct stat sb;

	if (fd < 0)
		return err ? (int)err->code : ZB_ESYS;
	if (fstat(fd, &sb) < 0)
		return zb_fail_sys(err, errno, "look at %s", source);
	out->dev = sb.st_dev;
	out->ino = sb.st_ino;
	return 0;
}

/* Is place @i what is seen at its path: does no later one stand there too? */
static bool on_top(const struct zb_plan *plan, size_t i)
{
	for (size_t j = i + 1; j < plan->n_places; j++)
		if (strcmp(plan->places[i].path, plan->places[j].path) == 0)
			return false;
	return true;
}

/* Is the mount writable? As bwrap_args.c has it. */
static bool is_writable(const struct zb_place *p)
{
	return p->kind == ZB_PLACE_HOME || p->kind == ZB_PLACE_DATA ||
	       p->kind == ZB_PLACE_PIN ||
	       p->rights & (ZB_MAY_WRITE | ZB_MAY_CREATE);
}

static int add_mounts(struct zb_buf *b, const struct zb_plan *plan,
		      struct zb_error *err)
{
	zb_auto(free) struct zb_stage_mount *m =
		calloc(plan->n_places + 1, sizeof(*m));
	uint32_t n = 0;

	if (!m)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	for (size_t i = 0; zb_layers.mounts && i < plan->n_places; i++) {
		const struct zb_place *p = &plan->places[i];
		bool writable = is_writable(p);
		int rc;

		if (!p->source || p->copied || !on_top(plan, i))
			continue;
		rc = look_at(p->source, &m[n], err);
		if (rc)
			return rc;
		m[n].read_only = !writable;
		m[n++].path = add_string(b, p->path);
	}
	head(b)->n_mounts = n;
	n = add_array(b, m, n * sizeof(*m));
	head(b)->mounts = n;
	return 0;
}

static int add_landlock(struct zb_buf *b, const struct zb_plan *plan, int abi,
			struct zb_error *err)
{
	struct zb_landlock_rule *rules = NULL;
	zb_auto(free) struct zb_stage_rule *out = NULL;
	size_t n = 0;
	uint32_t at;
	int rc = zb_landlock_rules(plan, abi, &rules, &n, err);

	if (rc)
		return rc;
	out = calloc(n + 1, sizeof(*out));
	for (size_t i = 0; out && i < n; i++) {
		bool skip = rules[i].optional || !zb_layers.mounts;

		out[i].path = add_string(b, rules[i].path);
		out[i].access = rules[i].access;
		out[i].flags = (rules[i].is_dir ? ZB_STAGE_RULE_DIR : 0) |
			       (skip ? ZB_STAGE_RULE_OPTIONAL : 0);
	}
	zb_landlock_rules_done(rules, n);
	if (!out)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	at = add_array(b, out, n * sizeof(*out));
	head(b)->flags |= ZB_STAGE_LANDLOCK;
	head(b)->rules = at;
	head(b)->n_rules = (uint32_t)n;
	head(b)->ll_fs = zb_landlock_handled(abi);
	head(b)->ll_net = abi >= 4 ? LL_NET_TCP : 0;
	head(b)->ll_scoped = abi >= 6 ? LL_SCOPED : 0;
	return 0;
}

static void add_filter(struct zb_buf *b, const struct zb_plan *plan,
		       const struct zb_host *host)
{
	bool every_open = false;
	struct zb_filter f;
	uint32_t at;

	for (size_t i = 0; i < plan->n_places; i++)
		every_open |=
			plan->places[i].carved || plan->places[i].brokered;
	f = zb_filter(plan->ledger, every_open);
	at = add_array(b, f.insn, f.n * sizeof(*f.insn));
	head(b)->filter = at;
	head(b)->n_filter = (uint32_t)f.n;
	head(b)->flags |= ZB_STAGE_SECCOMP;
	if (host->wait_killable)
		head(b)->flags |= ZB_STAGE_KILLABLE;
}

static void add_program(struct zb_buf *b, const struct zb_plan *plan)
{
	size_t n_args = plan->argv.n, n_env = plan->n_env;
	zb_auto(free) uint64_t *v = calloc(n_args + n_env + 2, sizeof(*v));
	uint32_t at;

	if (!v) {
		b->failed = true;
		return;
	}
	for (size_t i = 0; i < n_args; i++)
		v[i] = add_string(b, plan->argv.v[i]);
	for (size_t i = 0; i < n_env; i++) {
		v[n_args + 1 + i] = b->len;
		zb_buf_addf(b, "%s=%s", plan->env[i].name, plan->env[i].value);
		zb_buf_addc(b, '\0');
	}
	at = add_string(b, plan->exec_path ? plan->exec_path : "");
	head(b)->exec = at;
	at = add_array(b, v, (n_args + n_env + 2) * sizeof(*v));
	head(b)->argv = at;
	head(b)->envp = at + (uint32_t)((n_args + 1) * sizeof(*v));
}

static void add_rlimit(struct zb_stage_config *c, int resource, uint64_t value,
		       uint64_t hard)
{
	if (value != UINT64_MAX && c->n_rlimits < ZB_STAGE_RLIMITS)
		c->rlimits[c->n_rlimits++] = (struct zb_stage_rlimit){
			(uint64_t)resource, value, hard};
}

/* RLIMIT_NPROC counts threads, for an ordinary user within this sandbox's own
 * user namespace: a brake on fork bombs while the supervisor counts processes
 * (limits.c). Never RLIMIT_AS: runtimes reserve what they never use. */
static void add_rlimits(struct zb_stage_config *c, const struct zb_plan *plan)
{
	uint64_t procs = zb_plan_limit(plan, ZB_LIMIT_PROCESSES);
	uint64_t files = zb_plan_limit(plan, ZB_LIMIT_OPEN_FILES);
	uint64_t size = zb_plan_limit(plan, ZB_LIMIT_FILE_SIZE);
	uint64_t cpu = zb_plan_limit(plan, ZB_LIMIT_CPU_SECONDS);

	procs = procs > UINT64_MAX / ZB_LIMITS_THREADS
			? UINT64_MAX
			: procs * ZB_LIMITS_THREADS;
	add_rlimit(c, RLIMIT_CORE, 0, 0);
	add_rlimit(c, RLIMIT_NOFILE, files, files);
	add_rlimit(c, RLIMIT_FSIZE, size, size);
	add_rlimit(c, RLIMIT_NPROC, procs, procs);
	/* The soft limit's signal has a name of its own; the hard one's is
	 * SIGKILL. */
	add_rlimit(c, RLIMIT_CPU, cpu, cpu < UINT64_MAX ? cpu + 1 : cpu);
}

/* All of it, as a memory file. Return: its descriptor or -1. */
static int configuration(const struct zb_plan *plan, const struct zb_host *host,
			 const int stdio[3], struct zb_error *err)
{
	struct zb_stage_config c = {.magic = ZB_STAGE_MAGIC};
	struct zb_buf b = {.max = ZB_STAGE_CONF_MAX};
	int rc = 0, fd = -1;

	for (int i = 0; i < 3; i++)
		c.stdio[i] = stdio ? stdio[i] : -1;
	c.flags = (stdio ? 0u : (unsigned)ZB_STAGE_SELF_TEST) |
		  (zb_layers.caps ? (unsigned)ZB_STAGE_NO_CAPS : 0u);
	add_rlimits(&c, plan);
	if (zb_buf_add(&b, &c, sizeof(c)) == 0)
		rc = add_mounts(&b, plan, err);
	if (rc == 0 && !b.failed && zb_layers.landlock)
		rc = add_landlock(&b, plan, host->landlock_abi, err);
	if (rc == 0 && !b.failed && zb_layers.seccomp)
		add_filter(&b, plan, host);
	if (rc == 0 && !b.failed) {
		add_program(&b, plan);
		zb_buf_addc(&b, '\0');
	}
	if (rc == 0 && b.failed)
		rc = zb_fail(err, ZB_ELIMIT,
			     "the plan is too large for a sandbox");
	if (rc == 0) {
		head(&b)->size = (uint32_t)b.len;
		fd = memory_file("zotbox-config", b.data, b.len, 0, err);
	}
	zb_buf_done(&b);
	return fd;
}

/* ---- bwrap --------------------------------------------------------------*/

/* Descriptors that bwrap inherits under their own numbers. */
struct inherit {
	int *fd;
	size_t n, cap;
};

static int inherit(struct inherit *in, int fd)
{
	int *v;

	if (fd < 0)
		return -1;
	if (in->n == in->cap) {
		v = reallocarray(in->fd, in->cap + 32, sizeof(*v));
		if (!v) {
			close(fd);
			return -1;
		}
		in->fd = v;
		in->cap += 32;
	}
	in->fd[in->n++] = fd;
	return fd;
}

static void inherit_done(struct inherit *in)
{
	for (size_t i = 0; i < in->n; i++)
		close(in->fd[i]);
	free(in->fd);
	*in = (struct inherit){0};
}

static void set_mode(char *arg, mode_t mode)
{
	snprintf(arg, sizeof("0444"), "%04o", (unsigned)mode & 0777u);
}

/* What a file inside shall hold, as a descriptor to read. A copy has the mode
 * of its source; one that the user may not read cannot be read inside either.
 */
static int content_of(struct zb_bwrap_args *a, const struct zb_bwrap_data *d,
		      struct zb_error *err)
{
	zb_auto(fd) int fd = -1;
	struct stat sb;

	if (!d->source)
		return memory_file("zotbox-data", d->content, d->len, 0, err);
	fd = open_source(d->source, O_RDONLY | O_NONBLOCK | O_NOCTTY, err);
	if (fd < 0 && err && err->sys == EACCES) {
		*err = (struct zb_error){0};
		set_mode(a->args.v[d->arg - 2], 0);
		return memory_file("zotbox-data", "", 0, 0, err);
	}
	if (fd < 0)
		return -1;
	if (fstat(fd, &sb) < 0 || !S_ISREG(sb.st_mode) ||
	    sb.st_size > COPY_MAX) {
		zb_fail(err, ZB_EPOLICY,
			"%s has become another file since the sandbox was "
			"planned; start again",
			d->source);
		return -1;
	}
	set_mode(a->args.v[d->arg - 2], sb.st_mode);
	return lift(zb_steal_fd(&fd));
}

/* bwrap's arguments as a memory file: NUL after each. */
static int arguments(const struct zb_plan *plan, struct inherit *in,
		     struct zb_error *err)
{
	struct zb_bwrap_layers layers = {zb_layers.mounts, zb_layers.netns,
					 zb_layers.caps};
	struct zb_bwrap_args a = {0};
	struct zb_buf b = {0};
	int fd = -1, rc = zb_bwrap_args_layered(&a, plan, &layers, err);

	for (size_t i = 0; rc == 0 && i < a.n_data; i++) {
		char **slot = &a.args.v[a.data[i].arg];
		int data = inherit(in, content_of(&a, &a.data[i], err));

		if (data < 0)
			rc = err && err->code ? (int)err->code : ZB_ESYS;
		free(*slot);
		*slot = zb_strf("%d", data);
		if (!*slot)
			rc = zb_fail(err, ZB_ELIMIT, "out of memory");
	}
	for (size_t i = 0; rc == 0 && i < a.args.n; i++)
		zb_buf_add(&b, a.args.v[i], strlen(a.args.v[i]) + 1);
	if (rc == 0 && b.failed)
		rc = zb_fail(err, ZB_ELIMIT, "out of memory");
	if (rc == 0)
		fd = inherit(in, memory_file("zotbox-args", zb_buf_str(&b),
					     b.len, 0, err));
	zb_buf_done(&b);
	zb_bwrap_args_done(&a);
	return fd;
}

/* What posix_spawn needs: @in stay open, 0 and 1 are /dev/null, 2 is
 * @messages, signals are default, and a session of its own keeps the user's
 * terminal and its Ctrl-C away. */
static int spawn(pid_t *pid, const char *path, char *const argv[],
		 const struct inherit *in, int messages)
{
	char *const env[] = {NULL};
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	sigset_t set;
	int rc;

	posix_spawn_file_actions_init(&fa);
	posix_spawnattr_init(&at);
	rc = posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_addopen(&fa, 1, "/dev/null",
						      O_WRONLY, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&fa, messages, 2);
	for (size_t i = 0; rc == 0 && i < in->n; i++)
		rc = posix_spawn_file_actions_adddup2(&fa, in->fd[i],
						      in->fd[i]);
	sigemptyset(&set);
	posix_spawnattr_setsigmask(&at, &set);
	sigfillset(&set);
	posix_spawnattr_setsigdefault(&at, &set);
	posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK |
					      POSIX_SPAWN_SETSIGDEF |
					      POSIX_SPAWN_SETSID);
	if (rc == 0)
		rc = posix_spawn(pid, path, &fa, &at, argv, env);
	posix_spawnattr_destroy(&at);
	posix_spawn_file_actions_destroy(&fa);
	return rc;
}

/* The same as spawn(), with the child born in the control group @cgroup:
 * posix_spawn() cannot. Return: its number, or -1. */
static pid_t spawn_into(int cgroup, const char *path, char *const argv[],
			const struct inherit *in, int messages)
{
	struct clone_args args = {.flags = CLONE_INTO_CGROUP,
				  .exit_signal = SIGCHLD,
				  .cgroup = (uint64_t)cgroup};
	struct sigaction plain = {.sa_handler = SIG_DFL};
	char *const env[] = {NULL};
	sigset_t all, old;
	pid_t pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid != 0) {
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		return pid;
	}
	/* A copy of one thread only: nothing but system calls from here on. */
	setsid();
	for (size_t i = 0; i < in->n; i++)
		fcntl(in->fd[i], F_SETFD, 0);
	dup2(open("/dev/null", O_RDWR | O_CLOEXEC), 0);
	dup2(0, 1);
	dup2(messages, 2);
	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &plain, NULL);
	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	execve(path, argv, env);
	_exit(127);
}

static int start_bwrap(struct zb_launch *l, const char *bwrap,
		       const struct inherit *in, const int fds[4], int messages,
		       struct zb_error *err)
{
	char num[3][16], stage[40];
	const char *const argv[] = {"bwrap",
				    "--die-with-parent",
				    "--new-session",
				    "--as-pid-1",
				    "--args",
				    num[0],
				    "--",
				    stage,
				    num[1],
				    num[2],
				    NULL};
	char *const *args = (char *const *)(uintptr_t)argv;
	pid_t pid = -1;
	int rc = 0;

	for (int i = 0; i < 3; i++)
		snprintf(num[i], sizeof(num[i]), "%d", fds[i]);
	snprintf(stage, sizeof(stage), "/proc/self/fd/%d", fds[3]);
	if (l->cgroup.dir >= 0)
		pid = spawn_into(l->cgroup.dir, bwrap, args, in, messages);
	if (pid < 0)
		rc = spawn(&pid, bwrap, args, in, messages);
	if (zb_is_short(rc))
		return zb_fail_sys(err, rc, "start %s%s", bwrap,
				   rc == EAGAIN ? ZB_PROCESSES_HINT : "");
	if (rc)
		return zb_fail(err, ZB_EUNSUPPORTED, "start %s: %s", bwrap,
			       strerror(rc));
	l->bwrap = pid;
	return 0;
}

/* ---- the handshake ------------------------------------------------------*/

/* What bwrap said before it ended, verbatim, without the last newline. */
static void words(const struct zb_launch *l, char *buf, size_t room)
{
	ssize_t n = l->messages >= 0 ? read(l->messages, buf, room - 1) : 0;

	if (n < 0)
		n = 0;
	while (n > 0 && (buf[n - 1] == '\n' || buf[n - 1] == '\r'))
		n--;
	buf[n] = '\0';
}

/* The socket closed where a message was due. */
static int closed(struct zb_launch *l, struct zb_error *err)
{
	char said[1024];

	if (l->stage)
		return zb_fail(err, ZB_ESYS,
			       "the sandbox ended while it was starting");
	/* bwrap has closed the socket but may be about to speak. */
	poll(&(struct pollfd){.fd = l->messages, .events = POLLIN}, 1, 1000);
	words(l, said, sizeof(said));
	return zb_fail(err, ZB_EUNSUPPORTED, "cannot create the sandbox: %s",
		       said[0] ? said : "bwrap ended without a message");
}

static int stage_failed(const struct zb_stage_msg *msg, struct zb_error *err)
{
	if (msg->code == ZB_EUNSUPPORTED && msg->value == EBUSY) {
		zb_fail(err, ZB_EUNSUPPORTED,
			"seccomp user-notification unavailable: a listener "
			"already sits on this process (WSL2, or another "
			"sandbox around zotbox), and the kernel allows one");
		if (err)
			err->sys = EBUSY; /* the probe knows a remedy */
		return ZB_EUNSUPPORTED;
	}
	if (msg->code == ZB_EPOLICY)
		return zb_fail(err, ZB_EPOLICY, "%s (%s)", msg->text,
			       "a path changed between planning and mounting; "
			       "start again");
	if (msg->value)
		zb_fail_sys(err, msg->value, "in the sandbox: %s", msg->text);
	else
		zb_fail(err, ZB_ESYS, "in the sandbox: %s", msg->text);
	if (err && msg->code)
		err->code = (enum zb_code)msg->code;
	return msg->code ? msg->code : ZB_ESYS;
}

/* Descriptors and sender of one message. */
struct extra {
	int fd[2];
	int n;
	int pid;
};

static void unpack(struct msghdr *m, struct extra *x)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS) {
			struct ucred cred;

			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			x->pid = cred.pid;
		} else if (c->cmsg_type == SCM_RIGHTS) {
			x->n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
			memcpy(x->fd, CMSG_DATA(c), (size_t)x->n * sizeof(int));
		}
	}
}

static int pidfd(int pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Keep what a message brought. The sender waits for us (stage) or is a child
 * that process 1 has not reaped (program), so its number is its own. */
static int keep(struct zb_launch *l, const struct zb_stage_msg *msg,
		const struct extra *x, struct zb_error *err)
{
	int want = zb_layers.seccomp ? 2 : 1;

	if (msg->type == ZB_STAGE_READY && !l->stage && x->n == want) {
		l->root = x->fd[0];
		l->listener = want == 2 ? x->fd[1] : -1;
		l->stage = x->pid;
		l->stage_pidfd = pidfd(x->pid);
		if (l->stage_pidfd < 0)
			return zb_fail_sys(err, errno, "watch process %d",
					   x->pid);
		return 0;
	}
	for (int i = 0; i < x->n; i++)
		close(x->fd[i]);
	if (msg->type == ZB_STAGE_CHILD && !l->first) {
		l->first = x->pid;
		/* It may have ended: then there is nobody to signal. */
		l->first_pidfd = pidfd(x->pid);
	}
	return 0;
}

static int await(struct zb_launch *l, struct zb_error *err)
{
	for (;;) {
		int64_t left = l->deadline - zb_monotonic_ms();
		struct pollfd p = {.fd = l->ctrl, .events = POLLIN};
		int n;

		if (left > INT_MAX)
			left = INT_MAX;
		n = left > 0 ? poll(&p, 1, (int)left) : 0;

		if (n > 0)
			return 0;
		if (n == 0)
			return zb_fail(err, ZB_ESYS,
				       "the sandbox was not ready within %d "
				       "seconds",
				       ZB_LAUNCH_MS / 1000);
		if (errno != EINTR)
			return zb_fail_sys(err, errno, "wait for the sandbox");
	}
}

int zb_launch_receive(struct zb_launch *l, struct zb_stage_msg *msg,
		      struct zb_error *err)
{
	struct iovec iov = {.iov_base = msg, .iov_len = sizeof(*msg)};
	union {
		char space[CMSG_SPACE(2 * sizeof(int)) +
			   CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} u;
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &u,
			   .msg_controllen = sizeof(u)};
	struct extra x = {.fd = {-1, -1}};
	ssize_t n;
	int rc = await(l, err);

	if (rc)
		return rc;
	n = recvmsg(l->ctrl, &m, MSG_CMSG_CLOEXEC);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return closed(l, err);
	if (n < 0)
		return zb_fail_sys(err, errno, "hear from the sandbox");
	unpack(&m, &x);
	rc = keep(l, msg, &x, err);
	if (rc)
		return rc;
	if (n != sizeof(*msg))
		return zb_fail(err, ZB_ESYS, "garbled message of zotbox-stage");
	msg->text[sizeof(msg->text) - 1] = '\0';
	return msg->type == ZB_STAGE_FAILED ? stage_failed(msg, err) : 0;
}

/* ---- start and end ------------------------------------------------------*/

/* Everything up to a running bwrap. What @in holds is the caller's to close
 * in any case. */
static int begin(struct zb_launch *l, struct inherit *in,
		 const struct zb_plan *plan, const struct zb_host *host,
		 const int stdio[3], struct zb_error *err)
{
	int pair[2], pipes[2], moved[3], fds[4], on = 1, rc;
	zb_auto(fd) int messages = -1;

	if (!host->bwrap)
		return zb_fail(err, ZB_EUNSUPPORTED,
			       "bubblewrap (bwrap) is not installed");
	if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) < 0)
		return zb_fail_sys(err, errno, "make a pipe");
	l->messages = lift(pipes[0]);
	messages = lift(pipes[1]);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return zb_fail_sys(err, errno, "make a socket pair");
	l->ctrl = lift(pair[0]);
	fds[1] = inherit(in, lift(pair[1]));
	setsockopt(l->ctrl, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	for (int i = 0; stdio && i < 3; i++) {
		moved[i] = inherit(in, fcntl(stdio[i], F_DUPFD_CLOEXEC, 3));
		if (moved[i] < 0)
			return zb_fail_sys(err, errno, "copy descriptor %d",
					   stdio[i]);
	}
	fds[3] = stage_file(err);
	if (fds[3] < 0)
		return ZB_ESYS;
	fds[3] = inherit(in, fcntl(fds[3], F_DUPFD_CLOEXEC, 3));
	fds[2] = inherit(in,
			 configuration(plan, host, stdio ? moved : NULL, err));
	if (fds[2] < 0)
		return err && err->code ? (int)err->code : ZB_ESYS;
	fds[0] = arguments(plan, in, err);
	if (fds[0] < 0)
		return err && err->code ? (int)err->code : ZB_ESYS;
	if (fds[1] < 0 || fds[3] < 0)
		return zb_fail_sys(err, errno, "copy a descriptor");
	zb_cgroup_make(&l->cgroup, plan);
	rc = start_bwrap(l, host->bwrap, in, fds, messages, err);
	return rc;
}

static int check_thread(struct zb_error *err)
{
	if (syscall(SYS_gettid) == getpid())
		return 0;
	return zb_fail(err, ZB_EUSAGE,
		       "a sandbox must be started from the main thread: it "
		       "ends with the thread that started it");
}

int zb_launch_begin(struct zb_launch *out, const struct zb_plan *plan,
		    const struct zb_host *host, const int stdio[3],
		    struct zb_error *err)
{
	struct zb_launch l = ZB_LAUNCH_NONE;
	struct zb_error own = {0};
	struct inherit in = {0};
	int rc = check_thread(err);

	if (rc)
		return rc;
	if (!err)
		err = &own;
	l.deadline = zb_monotonic_ms() + ZB_LAUNCH_MS;
	rc = begin(&l, &in, plan, host, stdio, err);
	inherit_done(&in);
	if (rc) {
		zb_launch_done(&l);
		return rc;
	}
	*out = l;
	return 0;
}

int zb_launch_ready(struct zb_launch *l, struct zb_error *err)
{
	struct zb_stage_msg msg;
	int rc = zb_launch_receive(l, &msg, err);

	if (rc == 0 && !l->stage)
		rc = zb_fail(err, ZB_ESYS, "unexpected word of zotbox-stage");
	return rc;
}

int zb_launch_go(struct zb_launch *l, struct zb_error *err)
{
	const char go = ZB_STAGE_GO;
	struct zb_stage_msg msg;

	/* One that has ended already may have said why. */
	if (send(l->ctrl, &go, 1, MSG_NOSIGNAL) != 1 && errno != EPIPE)
		return zb_fail_sys(err, errno, "start the program");
	for (;;) {
		int rc = zb_launch_receive(l, &msg, err);

		if (rc)
			return rc;
		if (msg.type == ZB_STAGE_STARTED)
			return 0;
		if (msg.type != ZB_STAGE_CHILD)
			return zb_fail(err, ZB_ESYS,
				       "unexpected word of zotbox-stage");
	}
}

/* Its session's group; and itself, should it not have come to have one yet
 * (spawn_into). */
static void kill_bwrap(const struct zb_launch *l)
{
	if (l->bwrap <= 0)
		return;
	kill(-l->bwrap, SIGKILL);
	kill(l->bwrap, SIGKILL);
}

/* Once there is a process 1 it is the one to kill: bwrap's monitor follows it,
 * and its number may be collected by another thread meanwhile. */
void zb_launch_kill(const struct zb_launch *l)
{
	if (l->stage_pidfd >= 0)
		syscall(SYS_pidfd_send_signal, l->stage_pidfd, SIGKILL, NULL,
			0);
	else
		kill_bwrap(l);
}

void zb_launch_wait(struct zb_launch *l)
{
	struct pollfd p = {.fd = l->stage_pidfd, .events = POLLIN};

	while (l->stage_pidfd >= 0 && poll(&p, 1, ZB_LAUNCH_MS) < 0 &&
	       errno == EINTR)
		;
	kill_bwrap(l);
	while (l->bwrap > 0 && waitpid(l->bwrap, NULL, 0) < 0 && errno == EINTR)
		;
	l->bwrap = 0;
}

void zb_launch_done(struct zb_launch *l)
{
	int *fds[] = {&l->ctrl,	    &l->listener,    &l->root,
		      &l->messages, &l->stage_pidfd, &l->first_pidfd};

	zb_launch_kill(l);
	zb_launch_wait(l);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	zb_cgroup_done(&l->cgroup);
}
