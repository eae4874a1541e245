/* broker.c - answers the watched calls of one sandbox.
 *
 * Threads. One takes every notification and answers it; it lives as long as
 * the sandbox. Workers come and go for what may block. One more brings
 * refusals to the ledger. The first two lay down every capability: what they
 * do for a caller is what the caller could do, also when a root's supervisor
 * runs them. They have a umask and a working directory of their own.
 *
 * The thread must never wait for the sandbox. It takes a notification only
 * when poll() has seen one: RECV would sleep for ever if the last caller were
 * killed in between. That a caller is gone (ENOENT) is news about the caller
 * only. End of the listener (HUP) is the end of the sandbox.
 *
 * Ownership. Threads are detached and each holds a reference: one that hangs
 * in a dead file server does not keep zb_broker_stop() from returning. It
 * then finds a listener that answers nothing, a plan that has gone and a
 * recorder that says nothing, and frees what it was the last to hold. */
#include "config.h"

#include "platform/linux/broker_int.h"
#include "platform/linux/filter.h"
#include "platform/linux/notify.h"

#include "cleanup.h"
#include "fdutil.h"
#include "path_match.h"

#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>

#define STACK	(512 * 1024)
#define LOOK_MS 200  /* how often workers' callers are looked after */
#define STOP_MS 2000 /* patience with threads at the end, twice */

/* Become what the sandbox is: no capability; nothing shared with the
 * supervisor's other threads but memory and descriptors. */
static int confine(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	if (unshare(CLONE_FS) || syscall(SYS_capset, &head, none))
		return errno;
	return 0;
}

static void release(struct zb_broker *b)
{
	unsigned left;

	pthread_mutex_lock(&b->lock);
	left = --b->refs;
	pthread_mutex_unlock(&b->lock);
	if (left)
		return;
	zb_jail_done(&b->jail);
	zb_workers_done(&b->workers);
	zb_recorder_free(b->recorder);
	if (b->listener >= 0)
		close(b->listener);
	if (b->wake >= 0)
		close(b->wake);
	if (b->box >= 0)
		close(b->box);
	pthread_rwlock_destroy(&b->plan_lock);
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->change);
	free(b);
}

/* Start a detached thread that owns a reference. Signals are for others. */
static int start_thread(struct zb_broker *b, void *(*fn)(void *))
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t t;
	int rc;

	pthread_mutex_lock(&b->lock);
	b->refs++;
	pthread_mutex_unlock(&b->lock);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(&t, &attr, fn, b);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		release(b);
	return rc;
}

/* Change what others wait for. */
static void announce(struct zb_broker *b, void (*change)(struct zb_broker *))
{
	pthread_mutex_lock(&b->lock);
	change(b);
	pthread_cond_broadcast(&b->change);
	pthread_mutex_unlock(&b->lock);
}

static struct zb_call *new_call(struct zb_broker *b)
{
	struct zb_call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->b = b;
	c->found.fd = c->found2.fd = c->walk.dir = -1;
	return c;
}

static void free_call(struct zb_call *c)
{
	if (c)
		zb_forget_memos(c);
	free(c);
}

static void send_notes(struct zb_call *c)
{
	struct zb_note *n;

	while ((n = c->notes)) {
		c->notes = n->next;
		zb_recorder_add(c->b->recorder, n);
	}
}

static void answer(struct zb_call *c)
{
	int fd = c->b->listener;
	struct zb_task t = {.id = c->id, .tid = c->tid, .nr = c->nr};

	switch (c->said) {
	case ZB_SAID_CONTINUE:
		zb_notify_continue(fd, c->id);
		break;
	case ZB_SAID_ERRNO:
		zb_notify_errno(fd, c->id, (int)c->value);
		break;
	case ZB_SAID_VALUE:
		zb_notify_value(fd, c->id, c->value);
		break;
	case ZB_SAID_LATER:
		memcpy(t.args, c->args, sizeof(t.args));
		if (!zb_workers_add(&c->b->workers, &t))
			zb_notify_errno(fd, c->id, EAGAIN);
		break;
	case ZB_SAID_NOTHING:
		zb_notify_errno(fd, c->id, EPERM);
		break;
	case ZB_SAID_SENT:
		break;
	}
}

static const struct zb_row foreign = {.name = "foreign",
				      .handle = zb_call_foreign};

/* Decide the call that @c holds, answer it, leave @c clean. */
static void decide(struct zb_call *c)
{
	struct zb_broker *b = c->b;

	c->said = ZB_SAID_NOTHING;
	c->acts = false;
	if (!c->worker && zb_call_is_foreign(c)) {
		/* Its number is not one of ours, whatever it looks like. */
		c->row = &foreign;
		zb_call_foreign(c);
		answer(c);
		send_notes(c);
		return;
	}
	c->row = c->nr >= 0 && c->nr < ZB_ROWS ? b->rows[c->nr] : NULL;
	if (!c->row || !c->confined)
		zb_say_errno(c, EPERM);
	else if (!b->jail.slow || !zb_say_later(c))
		c->row->handle(c);
	answer(c);
	send_notes(c);
	zb_spot_done(&c->found);
	zb_spot_done(&c->found2);
	zb_jail_walk_done(&c->walk);
}

static bool worker_valid(void *ctx, uint64_t id)
{
	struct zb_broker *b = ctx;

	return zb_notify_valid(b->listener, id);
}

static void worker_handle(void *ctx, void *scratch, const struct zb_task *t)
{
	struct zb_broker *b = ctx;
	struct zb_call *c = scratch;

	if (!c) { /* out of memory when the thread began */
		zb_notify_errno(b->listener, t->id, EAGAIN);
		return;
	}
	c->id = t->id;
	c->tid = t->tid;
	c->nr = t->nr;
	memcpy(c->args, t->args, sizeof(c->args));
	decide(c);
}

static void one_less(struct zb_broker *b)
{
	b->threads--;
}

static void *worker_main(void *arg)
{
	struct zb_broker *b = arg;
	struct zb_call *c = new_call(b);

	pthread_setname_np(pthread_self(), "zb-worker");
	if (c) {
		c->worker = true;
		c->confined = !confine();
	}
	zb_workers_run(&b->workers, c);
	free_call(c);
	announce(b, one_less);
	release(b);
	return NULL;
}

/* Called with the workers' lock held. */
static bool worker_start(void *ctx)
{
	struct zb_broker *b = ctx;

	pthread_mutex_lock(&b->lock);
	b->threads++;
	pthread_mutex_unlock(&b->lock);
	if (!start_thread(b, worker_main))
		return true;
	announce(b, one_less);
	return false;
}

/* Return: false when the listener is of no more use. */
static bool take_one(struct zb_call *c)
{
	struct seccomp_notif n;
	int rc = zb_notify_recv(c->b->listener, &n);

	if (rc)
		return rc == -ENOENT || rc == -EINTR;
	atomic_fetch_add_explicit(&c->b->taken, 1, memory_order_relaxed);
	c->id = n.id;
	c->tid = (int)n.pid;
	c->nr = n.data.nr;
	c->arch = n.data.arch;
	for (int i = 0; i < 6; i++)
		c->args[i] = n.data.args[i];
	decide(c);
	return true;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void serve(struct zb_broker *b, struct zb_call *c)
{
	struct pollfd p[2] = {{.fd = b->listener, .events = POLLIN},
			      {.fd = b->wake, .events = POLLIN}};
	int64_t looked = 0;
	bool busy = false; /* workers may be */

	while (!atomic_load(&b->stopping)) {
		int n = poll(p, 2, busy ? LOOK_MS : -1);

		if (n < 0 && errno != EINTR)
			return;
		if (n > 0 && p[1].revents)
			return;
		if (n > 0 && (p[0].revents & POLLIN)) {
			if (!take_one(c))
				return;
			busy |= c->said == ZB_SAID_LATER;
		} else if (n > 0 && p[0].revents) {
			return; /* HUP: nobody is left */
		}
		if (busy && now_ms() - looked >= LOOK_MS) {
			busy = zb_workers_kick(&b->workers);
			looked = now_ms();
		}
	}
}

/* From now on the listener is closed for all, without its number becoming
 * another's while a thread that hangs may still use it. */
static void retire_listener(struct zb_broker *b)
{
	int nothing;

	if (b->listener < 0)
		return;
	nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (nothing < 0)
		return;
	dup3(nothing, b->listener, O_CLOEXEC);
	close(nothing);
}

static void now_ready(struct zb_broker *b)
{
	b->ready = true;
}

static void now_serving(struct zb_broker *b)
{
	b->serving = true;
}

static void now_stopping(struct zb_broker *b)
{
	atomic_store(&b->stopping, true);
}

/* Return: true, or false if there will be no listener. */
static bool await_listener(struct zb_broker *b)
{
	bool serving;

	pthread_mutex_lock(&b->lock);
	while (!b->serving && !atomic_load(&b->stopping))
		pthread_cond_wait(&b->change, &b->lock);
	serving = b->serving;
	pthread_mutex_unlock(&b->lock);
	return serving;
}

static void *notify_main(void *arg)
{
	struct zb_broker *b = arg;
	struct zb_call *c = new_call(b);

	pthread_setname_np(pthread_self(), "zb-broker");
	b->setup_error = c ? confine() : ENOMEM;
	announce(b, now_ready);
	if (c && !b->setup_error && await_listener(b)) {
		c->confined = true;
		serve(b, c);
	}
	free_call(c);
	/* Nobody receives any more: later calls fail instead of waiting. */
	retire_listener(b);
	announce(b, one_less);
	release(b);
	return NULL;
}

static void recorder_through(struct zb_broker *b)
{
	b->recording = false;
}

static void *recorder_main(void *arg)
{
	struct zb_broker *b = arg;

	pthread_setname_np(pthread_self(), "zb-recorder");
	zb_recorder_run(b->recorder);
	announce(b, recorder_through);
	release(b);
	return NULL;
}

static int fill_rows(struct zb_broker *b, struct zb_error *err)
{
	const char *const *names = zb_row_names();

	for (size_t i = 0; names[i]; i++) {
		const struct zb_row *row = zb_row_of(names[i]);
		int nr = zb_watched_number(i);

		if (!row)
			return zb_fail(err, ZB_ESYS, "broker: no row for %s",
				       names[i]);
		if (nr >= 0 && nr < ZB_ROWS)
			b->rows[nr] = row;
	}
	return 0;
}

static void init_locks(struct zb_broker *b)
{
	pthread_condattr_t attr;

	pthread_rwlock_init(&b->plan_lock, NULL);
	pthread_mutex_init(&b->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&b->change, &attr);
	pthread_condattr_destroy(&attr);
	zb_workers_init(&b->workers);
	b->workers.start = worker_start;
	b->workers.valid = worker_valid;
	b->workers.handle = worker_handle;
	b->workers.ctx = b;
}

/* The box that home/ lies in, which other instances have as well. */
static int open_box(const struct zb_plan *plan)
{
	for (size_t i = 0; i < plan->n_places; i++) {
		const struct zb_place *p = &plan->places[i];
		zb_auto(free) char *dir = NULL;

		if ((p->kind != ZB_PLACE_HOME && p->kind != ZB_PLACE_DATA) ||
		    !p->is_dir || !p->source)
			continue;
		dir = zb_path_dir(p->source);
		return dir ? open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	}
	return -1;
}

static int set_up(struct zb_broker *b, struct zb_error *err)
{
	const struct zb_broker_config *cfg = &b->cfg;
	struct zb_recorder_config rec = {
		.plan = cfg->plan,
		.on_denial = cfg->on_denial,
		.ctx = cfg->ctx,
	};

	if (zb_recorder_new(&b->recorder, &rec, err) || fill_rows(b, err))
		return err ? (int)err->code : ZB_ESYS;
	if (!zb_notify_usable())
		return zb_fail(err, ZB_EUNSUPPORTED,
			       "this kernel's seccomp notifications have a "
			       "form that is not known here");
	b->box = open_box(cfg->plan);
	b->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b->wake < 0)
		return zb_fail_sys(err, errno, "eventfd");
	zb_workers_prepare();
	return 0;
}

static int start_threads(struct zb_broker *b, struct zb_error *err)
{
	int rc = start_thread(b, recorder_main);

	if (rc)
		return zb_fail_sys(err, rc,
				   "broker: start a thread" ZB_PROCESSES_HINT);
	b->recording = true;
	b->threads = 1;
	rc = start_thread(b, notify_main);
	if (rc) {
		b->threads = 0;
		return zb_fail_sys(err, rc,
				   "broker: start a thread" ZB_PROCESSES_HINT);
	}
	pthread_mutex_lock(&b->lock);
	while (!b->ready)
		pthread_cond_wait(&b->change, &b->lock);
	rc = b->setup_error;
	pthread_mutex_unlock(&b->lock);
	return rc ? zb_fail_sys(err, rc, "broker: lay down capabilities") : 0;
}

int zb_broker_start(struct zb_broker **out, const struct zb_broker_config *cfg,
		    struct zb_error *err)
{
	struct zb_broker *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return zb_fail(err, ZB_ELIMIT, "broker: out of memory");
	b->cfg = *cfg;
	b->plan = cfg->plan;
	b->listener = -1;
	b->wake = -1;
	b->box = -1;
	b->jail.root = -1;
	b->refs = 1;
	b->uid = geteuid();
	b->gid = getegid();
	init_locks(b);
	rc = set_up(b, err);
	if (!rc)
		rc = start_threads(b, err);
	if (rc) {
		zb_broker_stop(b);
		return rc;
	}
	*out = b;
	return 0;
}

int zb_broker_serve(struct zb_broker *b, int listener, int root,
		    struct zb_error *err)
{
	int rc = zb_jail_init(&b->jail, b->cfg.plan, root, err);

	if (rc) {
		close(listener);
		return rc;
	}
	b->listener = listener;
	if (!b->cfg.host || b->cfg.host->sync_wake_up)
		zb_notify_sync_wake_up(listener);
	announce(b, now_serving);
	return 0;
}

uint64_t zb_broker_taken(const struct zb_broker *b)
{
	return b ? atomic_load_explicit(&b->taken, memory_order_relaxed) : 0;
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

static bool is_past(struct timespec t)
{
	struct timespec now = in_ms(0);

	return now.tv_sec > t.tv_sec ||
	       (now.tv_sec == t.tv_sec && now.tv_nsec >= t.tv_nsec);
}

static bool deciding(const struct zb_broker *b)
{
	return b->threads;
}

static bool recording(const struct zb_broker *b)
{
	return b->recording;
}

/* Wait a bounded time while @busy, interrupting what hangs. */
static void wait_while(struct zb_broker *b,
		       bool (*busy)(const struct zb_broker *))
{
	struct timespec until = in_ms(STOP_MS);

	pthread_mutex_lock(&b->lock);
	while (busy(b) && !is_past(until)) {
		struct timespec soon = in_ms(20);

		pthread_cond_timedwait(&b->change, &b->lock, &soon);
		pthread_mutex_unlock(&b->lock);
		zb_workers_kick(&b->workers);
		pthread_mutex_lock(&b->lock);
	}
	pthread_mutex_unlock(&b->lock);
}

void zb_broker_stop(struct zb_broker *b)
{
	const uint64_t one = 1;

	if (!b)
		return;
	announce(b, now_stopping);
	if (b->wake >= 0 && write(b->wake, &one, sizeof(one)) < 0)
		(void)0; /* the thread sees @stopping at the next poll */
	zb_workers_stop(&b->workers);
	wait_while(b, deciding);
	retire_listener(b);
	pthread_rwlock_wrlock(&b->plan_lock);
	b->plan = NULL; /* its owner may free it now */
	pthread_rwlock_unlock(&b->plan_lock);
	if (b->recorder) {
		zb_recorder_finish(b->recorder);
		wait_while(b, recording);
		zb_recorder_mute(b->recorder);
	}
	release(b);
}
