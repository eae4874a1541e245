/* calls.h - which questions are open, and which answers may still come.
 *
 * A reply passes once, for the id of an open call of its own kind. What was
 * answered or given up is remembered for a while, only to say "late" or
 * "twice" instead of "unknown". Pure. */
#ifndef ZB_CALLS_H
#define ZB_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum zb_call_kind {
	ZB_CALL_TOOL,	   /* tool_call of the host */
	ZB_CALL_COMMAND,   /* command_invoked */
	ZB_CALL_INTERCEPT, /* event_intercept */
	ZB_CALL_OWN,	   /* call_tool of the extension */
	ZB_CALL_KINDS
};

enum zb_call_state {
	ZB_CALL_OPEN,
	ZB_CALL_ANSWERED,
	ZB_CALL_EXPIRED
};

#define ZB_CALLS_OPEN	4096 /* open at a time */
#define ZB_CALLS_CLOSED 256  /* remembered */

/* @id and what follows it are one allocation. @name: the tool or command.
 * @event: of an intercept (else ""). Times are the caller's milliseconds. */
struct zb_call {
	enum zb_call_kind kind;
	enum zb_call_state state;
	uint32_t hash;
	char *id;
	const char *name, *event;
	int64_t opened_ms, closed_ms;
};

struct zb_calls {
	struct zb_call *open; /* oldest first */
	size_t n_open, cap;
	struct zb_call *closed; /* ring of ZB_CALLS_CLOSED */
	size_t next_closed;
	size_t count[ZB_CALL_KINDS]; /* open ones */
};

/* The frame type that opens a kind of call: "tool_call"... static. */
const char *zb_call_kind_name(enum zb_call_kind kind);

void zb_calls_done(struct zb_calls *c);
/* Open a call; the texts are copied. Return: 0, ZB_ELIMIT (too many, or out of
 * memory), ZB_EUSAGE if one of that kind and id is open already. */
int zb_calls_open(struct zb_calls *c, enum zb_call_kind kind, const char *id,
		  const char *event, const char *name, int64_t now_ms);
/* The open call of that kind and id, or NULL. */
struct zb_call *zb_calls_find(const struct zb_calls *c, enum zb_call_kind kind,
			      const char *id);
/* A closed one that is still remembered, or NULL. */
const struct zb_call *zb_calls_past(const struct zb_calls *c,
				    enum zb_call_kind kind, const char *id);
/* Close an open call (then @call is gone). */
void zb_calls_close(struct zb_calls *c, struct zb_call *call,
		    enum zb_call_state state, int64_t now_ms);

#endif
