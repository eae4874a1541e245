/* workers.c - threads for what may block.
 *
 * A worker blocked in the kernel holds a dead caller's socket or file until
 * it comes back, so the notify thread looks at the ids from time to time and
 * interrupts those nobody waits for. The signal does nothing but make the
 * system call return EINTR; it is sent to these threads only. A signal that
 * comes just too late interrupts the next task, which tries again. */
#include "config.h"

#include "platform/linux/workers.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_QUEUED 4096 /* each is a blocked thread of the sandbox */
#define IDLE_S	   5
#define KICK	   (SIGRTMIN + 3)

static void nothing(int signo)
{
	(void)signo;
}

static void install(void)
{
	struct sigaction sa = {.sa_handler = nothing};

	sigemptyset(&sa.sa_mask);
	sigaction(KICK, &sa, NULL); /* no SA_RESTART: that is the point */
}

void zb_workers_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
}

/* Let this thread, whose signals are blocked, be interrupted. */
static void unmask(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, KICK);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void zb_workers_init(struct zb_workers *w)
{
	pthread_condattr_t attr;

	memset(w, 0, sizeof(*w));
	w->last = &w->first;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->more, &attr);
	pthread_condattr_destroy(&attr);
}

void zb_workers_done(struct zb_workers *w)
{
	struct zb_task *t, *next;

	for (t = w->first; t; t = next) {
		next = t->next;
		free(t);
	}
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->more);
}

/* Called with the lock held. */
static bool need_thread(const struct zb_workers *w)
{
	return w->queued > w->idle && w->threads < ZB_WORKERS_MAX;
}

bool zb_workers_add(struct zb_workers *w, const struct zb_task *t)
{
	struct zb_task *own = malloc(sizeof(*own));
	bool ok = false;

	if (!own)
		return false;
	*own = *t;
	own->next = NULL;
	pthread_mutex_lock(&w->lock);
	if (!w->stop && w->queued < MAX_QUEUED) {
		*w->last = own;
		w->last = &own->next;
		w->queued++;
		if (need_thread(w) && w->start(w->ctx))
			w->threads++;
		ok = w->threads;
		if (ok)
			own = NULL;
	}
	if (own && w->first == own) { /* no thread at all: take it back */
		w->first = NULL;
		w->last = &w->first;
		w->queued--;
	}
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
	free(own);
	return ok;
}

/* Wait for a task. NULL: the thread should end. Lock held. */
static struct zb_task *wait_task(struct zb_workers *w)
{
	struct timespec until;
	struct zb_task *t;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += IDLE_S;
	while (!w->first && !w->stop) {
		int rc;

		w->idle++;
		rc = pthread_cond_timedwait(&w->more, &w->lock, &until);
		w->idle--;
		if (rc == ETIMEDOUT && !w->first)
			return NULL;
	}
	if (w->stop)
		return NULL;
	t = w->first;
	w->first = t->next;
	if (!w->first)
		w->last = &w->first;
	w->queued--;
	return t;
}

static unsigned free_slot(struct zb_workers *w)
{
	unsigned i = 0;

	while (i + 1 < ZB_WORKERS_MAX && w->slot[i].used)
		i++;
	w->slot[i].used = true;
	w->slot[i].thread = pthread_self();
	w->slot[i].busy_with = 0;
	return i;
}

void zb_workers_run(struct zb_workers *w, void *scratch)
{
	struct zb_task *t;
	unsigned i;

	unmask();
	pthread_mutex_lock(&w->lock);
	i = free_slot(w);
	while ((t = wait_task(w))) {
		w->slot[i].busy_with = t->id;
		pthread_mutex_unlock(&w->lock);
		w->handle(w->ctx, scratch, t);
		free(t);
		pthread_mutex_lock(&w->lock);
		w->slot[i].busy_with = 0;
	}
	w->slot[i].used = false;
	w->threads--;
	pthread_mutex_unlock(&w->lock);
}

bool zb_workers_kick(struct zb_workers *w)
{
	bool busy = false;

	pthread_mutex_lock(&w->lock);
	for (unsigned i = 0; i < ZB_WORKERS_MAX; i++) {
		if (!w->slot[i].used || !w->slot[i].busy_with)
			continue;
		busy = true;
		if (w->stop || !w->valid(w->ctx, w->slot[i].busy_with))
			pthread_kill(w->slot[i].thread, KICK);
	}
	busy |= w->first != NULL;
	pthread_mutex_unlock(&w->lock);
	return busy;
}

void zb_workers_stop(struct zb_workers *w)
{
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->more);
	pthread_mutex_unlock(&w->lock);
}
