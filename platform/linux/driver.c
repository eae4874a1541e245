/* driver.c - a running sandbox: start it, watch it, end it.
 *
 * One thread a sandbox watches it: the control socket (how the first process
 * ended, and that the sandbox is gone) and the limits that no rlimit can
 * express. The broker has a thread of its own. Everything is started from the
 * main thread: --die-with-parent is about the thread that started bwrap.
 *
 * The end: process 1 inside is killed and takes its namespace along; it also
 * leaves by itself when our end of the control socket closes, so a supervisor
 * that was killed at any moment, also before bwrap had set its death signal,
 * leaves nothing behind. */
#include "config.h"

#include "cleanup.h"
#include "enforce.h"
#include "fdutil.h"
#include "layers.h"
#include "platform/linux/broker.h"
#include "platform/linux/bwrap_args.h"
#include "platform/linux/driver.h"
#include "platform/linux/launch.h"
#include "platform/linux/limits.h"
#include "platform/linux/probe.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WATCH_STACK (128 * 1024)

struct zb_proc {
	const struct zb_plan *plan;
	struct zb_spawn_options opt;
	struct zb_launch launch;
	struct zb_broker *broker;
	struct zb_limits limits;
	pthread_t thread;
	int quit; /* eventfd: the thread shall end */
	pthread_mutex_t lock;
	/* under @lock */
	bool stopped; /* stop() was called: the end is the owner's doing */
	bool ended;   /* @exit is final and was reported */
	char *reason; /* why we killed it */
	struct zb_exit exit; /* its reason is owned */
};

/* ---- how it ended -------------------------------------------------------*/

static const char *limit_signal(int sig)
{
	if (sig == SIGXCPU)
		return "used up its CPU time (limits.cpu_seconds)";
	if (sig == SIGXFSZ)
		return "wrote a file larger than limits.file_size";
	return NULL;
}

/* The first process ended with wait status @status, or (-1) was never heard
 * of again. Reported once. */
static void report_end(struct zb_proc *p, int status)
{
	struct zb_exit e = {.signalled = true, .code = SIGKILL};
	const char *why = NULL;
	bool told;

	pthread_mutex_lock(&p->lock);
	told = p->ended;
	p->ended = true;
	if (status >= 0 && WIFEXITED(status))
		e = (struct zb_exit){.code = WEXITSTATUS(status)};
	else if (status >= 0 && WIFSIGNALED(status))
		e.code = WTERMSIG(status);
	if (p->reason)
		why = p->reason;
	else if (status >= 0 && e.signalled)
		why = limit_signal(e.code);
	else if (status < 0 && !p->stopped)
		why = "the sandbox was killed from outside";
	if (!told) {
		e.reason = zb_strdup(why);
		p->exit = e;
	}
	pthread_mutex_unlock(&p->lock);
	if (!told && p->opt.on_exit)
		p->opt.on_exit(p->opt.ctx, &e);
}

/* ---- limits -------------------------------------------------------------*/

static int64_t unix_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* The ledger's record of a limit; twice the value is what to try next. */
static void record(struct zb_proc *p, enum zb_limit limit, const char *value,
		   char *twice)
{
	const struct zb_limit_value *v = &p->plan->scope.limits[limit];
	const char *file = v->origin.file ? v->origin.file : "limits";
	struct zb_denial d = {
		.op = ZB_OP_LIMIT,
		.detail = zb_strdup(zb_limit_name(limit)),
		.ext = zb_strdup(p->plan->name),
		.pid = p->launch.first,
		.by = ZB_BY_LIMIT,
		.floor = ZB_FLOOR_NONE,
		.evidence = ZB_EV_OBSERVED,
		.rule = zb_strf("%s: limits.%s %s", file, zb_limit_name(limit),
				value),
		.grant_key = zb_strf("limits.%s", zb_limit_name(limit)),
		.grant_value = twice,
		.count = 1,
	};

	d.first_ms = d.last_ms = unix_ms();
	if (p->opt.on_denial)
		p->opt.on_denial(p->opt.ctx, &d);
	else
		zb_denial_done(&d);
}

static void give_reason(struct zb_proc *p, char *reason)
{
	pthread_mutex_lock(&p->lock);
	if (!p->reason && !p->ended)
		p->reason = reason;
	else
		free(reason);
	pthread_mutex_unlock(&p->lock);
}

static unsigned long long mib(uint64_t bytes)
{
	return (unsigned long long)((bytes + (1u << 20) - 1) >> 20);
}

/* Memory ran over: found by us, or by the kernel in its group. What is advised
 * would have held what was seen. */
static void over_memory(struct zb_proc *p, char *reason)
{
	unsigned long long enough = 2 * mib(p->limits.memory);
	char value[40];

	while (enough && enough <= mib(p->limits.used))
		enough *= 2;

	give_reason(p, reason);
	zb_launch_kill(&p->launch);
	snprintf(value, sizeof(value), "%lluM", mib(p->limits.memory));
	record(p, ZB_LIMIT_MEMORY, value, zb_strf("%lluM", enough));
}

static void over_processes(struct zb_proc *p, bool threads)
{
	unsigned long long max = p->limits.processes;
	char value[40];

	if (threads)
		give_reason(p,
			    zb_strf("exceeded the limit of %llu processes, "
				    "each of up to %d threads, and was killed "
				    "(it had %llu threads)",
				    max, ZB_LIMITS_THREADS,
				    (unsigned long long)p->limits.threads));
	else
		give_reason(p, zb_strf("exceeded the limit of %llu processes "
				       "and was killed",
				       max));
	zb_launch_kill(&p->launch);
	snprintf(value, sizeof(value), "%llu", max);
	record(p, ZB_LIMIT_PROCESSES, value, zb_strf("%llu", 2 * max));
}

/* Look once; kill what is over a limit, and say so. Return: was it? */
static bool enforce(struct zb_proc *p)
{
	switch (zb_limits_check(&p->limits)) {
	case ZB_WITHIN:
		return false;
	case ZB_OVER_MEMORY:
		over_memory(p, zb_strf("exceeded memory limit %llu MiB and was "
				       "killed (it used %s%llu MiB)",
				       mib(p->limits.memory),
				       p->limits.exact ? "" : "up to ",
				       mib(p->limits.used)));
		return true;
	case ZB_OVER_PROCESSES:
	case ZB_OVER_THREADS:
		over_processes(p, p->limits.procs <= p->limits.processes);
		return true;
	}
	return false;
}

/* Was it the kernel that killed, in the sandbox's own group? */
static bool was_out_of_memory(struct zb_proc *p)
{
	if (!zb_cgroup_out_of_memory(&p->launch.cgroup))
		return false;
	over_memory(p, zb_strf("exceeded memory limit %llu MiB and was killed "
			       "(by the kernel, in its control group)",
			       mib(p->limits.memory)));
	return true;
}

/* ---- the watching thread ------------------------------------------------*/

/* Take one message. Return: is the sandbox still there? */
static bool hear(struct zb_proc *p, bool *killed)
{
	struct zb_stage_msg msg;

	p->launch.deadline = INT64_MAX;
	if (zb_launch_receive(&p->launch, &msg, NULL))
		return false;
	if (msg.type != ZB_STAGE_EXITED)
		return true;
	if (!*killed && WIFSIGNALED(msg.value))
		*killed = was_out_of_memory(p);
	report_end(p, msg.value);
	return true;
}

/* Thousands of processes at work leave an ordinary thread nearly nothing of a
 * CPU, and nothing but this thread limits those of root. Where it is not
 * allowed (an ordinary user) the kernel's limit holds. */
static void go_first(void)
{
	const struct sched_param first = {.sched_priority = 1};

	pthread_setschedparam(pthread_self(), SCHED_RR, &first);
}

static void *watch(void *arg)
{
	struct zb_proc *p = arg;
	struct pollfd fds[2] = {{.fd = p->launch.ctrl, .events = POLLIN},
				{.fd = p->quit, .events = POLLIN}};
	bool killed = false;

	pthread_setname_np(pthread_self(), "zb-watch");
	go_first();
	for (;;) {
		int wait = killed ? -1 : zb_limits_interval(&p->limits);
		int n = poll(fds, 2, wait);

		if (fds[1].revents && n > 0)
			break;
		if (n > 0 && fds[0].revents && !hear(p, &killed))
			break;
		if (n == 0 && !killed)
			killed = enforce(p);
	}
	if (!killed)
		was_out_of_memory(p);
	report_end(p, -1);
	return NULL;
}

static int start_watching(struct zb_proc *p, struct zb_error *err)
{
	pthread_attr_t at;
	sigset_t all, old;
	int rc;

	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&at);
	pthread_attr_setstacksize(&at, WATCH_STACK);
	rc = pthread_create(&p->thread, &at, watch, p);
	pthread_attr_destroy(&at);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc ? zb_fail_sys(err, rc, "start a thread" ZB_PROCESSES_HINT)
		  : 0;
}

/* ---- the backend's acts -------------------------------------------------*/

static void release(struct zb_proc *p)
{
	zb_launch_done(&p->launch);
	zb_broker_stop(p->broker);
	zb_limits_done(&p->limits);
	if (p->quit >= 0)
		close(p->quit);
	pthread_mutex_destroy(&p->lock);
	free(p->reason);
	free(p->exit.reason);
	free(p);
}

static int start_broker(struct zb_proc *p, const struct zb_host *host,
			struct zb_error *err)
{
	struct zb_broker_config cfg = {
		.plan = p->plan,
		.host = host,
		.on_denial = p->opt.on_denial,
		.ctx = p->opt.ctx,
	};

	return zb_broker_start(&p->broker, &cfg, err);
}

/* Is there a rule that nothing enforces? Whoever made the plan may have asked
 * already; what starts it must not depend on that. */
static int check_rules(const struct zb_plan *plan, struct zb_error *err)
{
	struct zb_rule_status *rules = NULL;
	size_t n = 0;
	int rc = zb_bwrap_rules(plan, &rules, &n, err);

	zb_rule_statuses_done(rules, n);
	return rc;
}

/* Does the plan need what this kernel lacks? Before 5.19 a signal may break off
 * a call that the broker is just carrying out, and it would be made again. */
static int check_kernel(const struct zb_plan *plan, const struct zb_host *host,
			struct zb_error *err)
{
	const unsigned change = ZB_MAY_WRITE | ZB_MAY_CREATE;

	for (size_t i = 0; !host->wait_killable && i < plan->n_places; i++) {
		const struct zb_place *p = &plan->places[i];

		if ((p->carved || p->brokered) && p->rights & change)
			return zb_fail(err, ZB_EUNSUPPORTED,
				       "%s: changes there are made by the "
				       "broker, which needs seccomp's "
				       "WAIT_KILLABLE_RECV; use Linux 5.19 or "
				       "newer, or a grant without exceptions",
				       p->path);
	}
	return 0;
}

static int bring_up(struct zb_proc *p, const struct zb_host *host,
		    const int stdio[3], struct zb_error *err)
{
	int rc = zb_launch_begin(&p->launch, p->plan, host, stdio, err);

	/* While bwrap is at work: */
	if (rc == 0 &&
	    (check_rules(p->plan, err) || check_kernel(p->plan, host, err) ||
	     (zb_layers.seccomp && start_broker(p, host, err))))
		return (int)err->code;
	if (rc == 0)
		rc = zb_launch_ready(&p->launch, err);
	if (rc == ZB_EUNSUPPORTED)
		return zb_probe_explain(host, err);
	if (rc)
		return rc;
	rc = zb_limits_init(&p->limits, p->plan, p->launch.root, err);
	if (rc == 0 && zb_layers.seccomp)
		rc = zb_broker_serve(p->broker,
				     zb_steal_fd(&p->launch.listener),
				     zb_steal_fd(&p->launch.root), err);
	if (rc == 0)
		rc = zb_launch_go(&p->launch, err);
	/* A broker that may not look into the program answers EPERM: Yama. */
	if (rc == ZB_ESYS && err->sys == EPERM)
		return zb_probe_explain(host, err);
	if (rc == 0)
		rc = start_watching(p, err);
	return rc;
}

int zb_driver_spawn(const struct zb_plan *plan, const struct zb_host *host,
		    const int stdio[3], const struct zb_spawn_options *opt,
		    struct zb_proc **out, struct zb_error *err)
{
	struct zb_proc *p = calloc(1, sizeof(*p));
	struct zb_error own = {0};
	int rc;

	if (!err)
		err = &own;
	if (!p)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	p->plan = plan;
	p->opt = *opt;
	p->launch = ZB_LAUNCH_NONE;
	p->limits = ZB_LIMITS_NONE;
	p->quit = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&p->lock, NULL);
	rc = p->quit < 0 ? zb_fail_sys(err, errno, "make an eventfd")
			 : bring_up(p, host, stdio, err);
	if (rc) {
		release(p);
		return rc;
	}
	*out = p;
	return 0;
}

void zb_driver_stop(struct zb_proc *p)
{
	pthread_mutex_lock(&p->lock);
	p->stopped = true;
	pthread_mutex_unlock(&p->lock);
	zb_launch_kill(&p->launch);
}

uint64_t zb_driver_notifications(const struct zb_proc *p)
{
	return zb_broker_taken(p->broker);
}

int zb_driver_pid(const struct zb_proc *p)
{
	return p->launch.first;
}

int zb_driver_signal(struct zb_proc *p, int signo, struct zb_error *err)
{
	if (p->launch.first_pidfd < 0)
		return zb_fail_sys(err, ESRCH, "signal the extension");
	if (syscall(SYS_pidfd_send_signal, p->launch.first_pidfd, signo, NULL,
		    0) < 0)
		return zb_fail_sys(err, errno, "signal the extension");
	return 0;
}

void zb_driver_reap(struct zb_proc *p, struct zb_exit *out)
{
	const uint64_t one = 1;

	if (!p)
		return;
	zb_driver_stop(p);
	/* Process 1 is gone when its end of the socket is: the thread sees
	 * that by itself; the eventfd is for a kernel that cannot kill it. */
	zb_launch_wait(&p->launch);
	if (write(p->quit, &one, sizeof(one)) < 0)
		zb_launch_kill(&p->launch);
	pthread_join(p->thread, NULL);
	if (out) {
		*out = p->exit;
		p->exit.reason = NULL;
	}
	release(p);
}
