/* turns.c - idle, busy, and a queue of prompts. */
#include "turns.h"
#include "cleanup.h"
#include "text.h"

#include <string.h>

static void drop(struct zb_prompt *p)
{
	free(p->who);
	free(p->text);
	*p = (struct zb_prompt){0};
}

void zb_turns_done(struct zb_turns *t)
{
	for (size_t i = 0; i < t->n; i++)
		drop(&t->queue[i]);
	*t = (struct zb_turns){0};
}

enum zb_submitted zb_turns_submit(struct zb_turns *t, const char *who,
				  const char *text)
{
	size_t len = strlen(text);
	struct zb_prompt p;

	if (zb_skip_blanks(text, len) == len)
		return ZB_SUBMIT_IGNORED;
	if (!t->busy && !t->n) {
		t->busy = true;
		return ZB_SUBMIT_NOW;
	}
	if (t->n >= ZB_TURNS_QUEUE || len > ZB_TURNS_BYTES - t->bytes)
		return ZB_SUBMIT_FULL;
	p = (struct zb_prompt){zb_strdup(who), zb_strdup(text)};
	if (!p.who || !p.text) {
		drop(&p);
		return ZB_SUBMIT_FULL;
	}
	t->queue[t->n++] = p;
	t->bytes += len;
	return ZB_SUBMIT_QUEUED;
}

bool zb_turns_event(struct zb_turns *t, const char *event, const char *stop,
		    int64_t step)
{
	bool was_busy = t->busy;

	if (!strcmp(event, "user_prompt_submit"))
		return true;
	if (!strcmp(event, "turn_start")) {
		t->busy = true;
		return !was_busy && step <= 1;
	}
	if (!strcmp(event, "turn_end"))
		t->busy = stop && !strcmp(stop, "tool_use");
	return false;
}

bool zb_turns_next(struct zb_turns *t, struct zb_prompt *out)
{
	if (t->busy || !t->n)
		return false;
	*out = t->queue[0];
	t->bytes -= strlen(out->text);
	t->n--;
	memmove(&t->queue[0], &t->queue[1], t->n * sizeof(t->queue[0]));
	t->busy = true;
	return true;
}
