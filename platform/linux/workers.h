/* workers.h - threads for what may block. Effects.
 *
 * A watched call that may wait (a connect, a look at a network file system)
 * is decided again from its start on a thread of its own, while the notify
 * thread goes on. Ids may be answered in any order. */
#ifndef ZB_WORKERS_H
#define ZB_WORKERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define ZB_WORKERS_MAX 32

/* What a notification says, without the scratch space to decide it. */
struct zb_task {
	struct zb_task *next;
	uint64_t id;
	int tid, nr;
	uint64_t args[6];
};

struct zb_workers {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct zb_task *first, **last;
	unsigned queued, threads, idle;
	bool stop;
	struct {
		pthread_t thread;
		bool used;
		uint64_t busy_with; /* id, or 0 */
	} slot[ZB_WORKERS_MAX];
	/* Start a thread that ends up in zb_workers_run(). */
	bool (*start)(void *ctx);
	/* Does the caller of id still wait? */
	bool (*valid)(void *ctx, uint64_t id);
	/* Handle one task. */
	void (*handle)(void *ctx, void *scratch, const struct zb_task *t);
	void *ctx;
};

/* Zeroes @w; the caller sets the callbacks and @ctx after it. */
void zb_workers_init(struct zb_workers *w);
/* Queue a copy of @t. Return: false when there is no room or no thread. */
bool zb_workers_add(struct zb_workers *w, const struct zb_task *t);
/* The body of a worker: until told to stop, or idle for some seconds. */
void zb_workers_run(struct zb_workers *w, void *scratch);
/* Interrupt those whose caller has gone; all of them when stopping. Return:
 * true while some task is under way. */
bool zb_workers_kick(struct zb_workers *w);
/* Tell all to end; those at work are interrupted by zb_workers_kick(). */
void zb_workers_stop(struct zb_workers *w);
/* Free what was queued; every thread has ended. */
void zb_workers_done(struct zb_workers *w);
/* Make the signal known that interrupts a worker's system call. */
void zb_workers_prepare(void);

#endif
