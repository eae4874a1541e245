/* guard.h - on_failure "block": which questions of zot to a guard are open,
 * until when, and what to say when no answer came. Pure; wrap acts on it.
 *
 * zot allows after 5 s what got no answer, so the answer that blocks must come
 * before that: after 4.5 s, or limits.intercept_seconds if that is less. */
#ifndef ZB_GUARD_H
#define ZB_GUARD_H

#include "plan.h"

#define ZB_GUARD_MS   4500
#define ZB_GUARD_OPEN 1024 /* questions at a time; more are blocked at once */

struct zb_guard_call {
	char *id, *event;
	char *tool; /* of a tool_call; NULL */
	int64_t deadline_ms;
};

/* Zero-initialise. @events: those that the scope grants, whether it has
 * subscribed to them or not. */
struct zb_guard {
	bool on;
	char *name;
	struct zb_strv events;
	int64_t wait_ms;
	struct zb_guard_call *open; /* oldest first */
	size_t n, cap;
};

/* @g->on stays false unless @plan says so. */
int zb_guard_init(struct zb_guard *g, const struct zb_plan *plan);
void zb_guard_done(struct zb_guard *g);

/* Is @line of zot a question about one of the events? Fills @out (heap, see
 * zb_guard_call_done()) if so. */
bool zb_guard_question(const struct zb_guard *g, const char *line, size_t len,
		       struct zb_guard_call *out);
void zb_guard_call_done(struct zb_guard_call *c);
/* It was passed on to the extension: remember it. Takes @c's contents.
 * Return: 0 or ZB_ELIMIT (then answer it: @c is untouched). */
int zb_guard_ask(struct zb_guard *g, int64_t now_ms, struct zb_guard_call *c);
/* An answer passed. */
void zb_guard_answered(struct zb_guard *g, const char *id);
/* Milliseconds until the first must be answered; -1: none is open. */
int64_t zb_guard_wait(const struct zb_guard *g, int64_t now_ms);
/* Take one that is due by @now_ms (INT64_MAX: any). */
bool zb_guard_due(struct zb_guard *g, int64_t now_ms,
		  struct zb_guard_call *out);

/* Frames to zot, appended without newline. */
int zb_guard_block(const struct zb_guard *g, const struct zb_guard_call *c,
		   const char *reason, struct zb_buf *out);
int zb_guard_allow(const struct zb_guard_call *c, struct zb_buf *out);
/* subscribe: @events as the extension asked (NULL: none), and every
 * intercept that is guarded. */
int zb_guard_subscribe(const struct zb_guard *g, const struct zb_strv *events,
		       struct zb_buf *out);

#endif
