/* broker.h - answers the watched calls of one sandbox (watched.def). Effects.
 *
 * One permanent thread receives every notification of the listener and
 * answers it; slow acts (opens that may block, connects) and questions to the
 * host (hidden or absent?) go to worker threads. CONTINUE only where the
 * floor allows no more than the evaluator; inside a carved or brokered place
 * an errno or a descriptor that the broker opened itself. */
#ifndef ZB_BROKER_H
#define ZB_BROKER_H

#include "backend.h"

struct zb_broker;

struct zb_broker_config {
	const struct zb_plan *plan; /* borrowed, outlives the broker */
	const struct zb_host *host; /* read during zb_broker_serve() at most */
	void (*on_denial)(void *ctx, struct zb_denial *d); /* takes contents */
	void *ctx;
};

/* Start the threads, which takes a while: they wait for zb_broker_serve(), so
 * that this can be done while the sandbox is still being made. */
int zb_broker_start(struct zb_broker **out, const struct zb_broker_config *cfg,
		    struct zb_error *err);
/* Answer from now on what comes from @listener (seccomp's), in the sandbox
 * whose / is @root (O_PATH). Once. Both are taken, also on failure. */
int zb_broker_serve(struct zb_broker *b, int listener, int root,
		    struct zb_error *err);
/* Stop and join: after the sandbox is gone, or to give it up (pending calls
 * then fail with ENOSYS). NULL is fine. */
void zb_broker_stop(struct zb_broker *b);
/* How many notifications it has taken. NULL: none. */
uint64_t zb_broker_taken(const struct zb_broker *b);

#endif
