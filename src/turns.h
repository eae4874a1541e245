/* turns.h - is the agent at work, and what waits for it to be done: the rule
 * for prompts that extensions submit, and when notes have had their time.
 * Pure.
 *
 * A turn of the user's goes from turn_start to a turn_end whose stop is not
 * "tool_use" (after that one the model goes on). A prompt that was handed to
 * the agent makes it busy, too: its turn is about to start. */
#ifndef ZB_TURNS_H
#define ZB_TURNS_H

#include "buf.h"

#define ZB_TURNS_QUEUE 64u		 /* prompts that wait */
#define ZB_TURNS_BYTES ((size_t)4 << 20) /* of them together */

struct zb_prompt {
	char *who, *text;
};

/* Zero-initialised: idle, nothing waits. */
struct zb_turns {
	bool busy;
	struct zb_prompt queue[ZB_TURNS_QUEUE];
	size_t n, bytes;
};

enum zb_submitted {
	ZB_SUBMIT_IGNORED, /* blank */
	ZB_SUBMIT_NOW,	   /* the agent was idle: hand it over */
	ZB_SUBMIT_QUEUED,
	ZB_SUBMIT_FULL, /* or out of memory: it is lost */
};

void zb_turns_done(struct zb_turns *t);
/* Extension @who submits @text (valid UTF-8). */
enum zb_submitted zb_turns_submit(struct zb_turns *t, const char *who,
				  const char *text);
/* The agent tells of @event; @stop is turn_end's, or NULL.
 * Return: true when the user's own prompt begins (a turn_start with @step 1 or
 * none while idle, user_prompt_submit): one-shot notes end there. */
bool zb_turns_event(struct zb_turns *t, const char *event, const char *stop,
		    int64_t step);
/* Idle and something waits: it is moved to @out (heap; busy from now on). */
bool zb_turns_next(struct zb_turns *t, struct zb_prompt *out);

#endif
