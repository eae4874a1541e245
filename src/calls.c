/* calls.c - which questions are open, and which answers may still come. */
#include "calls.h"

#include "error.h"

#include <stdlib.h>
#include <string.h>

const char *zb_call_kind_name(enum zb_call_kind kind)
{
	static const char *const names[ZB_CALL_KINDS] = {
		"tool_call", "command_invoked", "event_intercept", "call_tool"};

	return names[kind];
}

/* FNV-1a: only to compare fewer strings. */
static uint32_t hash(const char *s)
{
	uint32_t h = 2166136261u;

	while (*s)
		h = (h ^ (unsigned char)*s++) * 16777619u;
	return h;
}

void zb_calls_done(struct zb_calls *c)
{
	for (size_t i = 0; i < c->n_open; i++)
		free(c->open[i].id);
	for (size_t i = 0; c->closed && i < ZB_CALLS_CLOSED; i++)
		free(c->closed[i].id);
	free(c->open);
	free(c->closed);
	*c = (struct zb_calls){0};
}

static bool reserve(struct zb_calls *c)
{
	size_t cap = c->cap ? c->cap * 2 : 8;
	struct zb_call *v;

	if (!c->closed)
		c->closed = calloc(ZB_CALLS_CLOSED, sizeof(*c->closed));
	if (!c->closed)
		return false;
	if (c->n_open < c->cap)
		return true;
	v = realloc(c->open, cap * sizeof(*v));
	if (!v)
		return false;
	c->open = v;
	c->cap = cap;
	return true;
}

static char *put(char **at, const char *s)
{
	size_t n = strlen(s) + 1;
	char *p = *at;

	memcpy(p, s, n);
	*at += n;
	return p;
}

int zb_calls_open(struct zb_calls *c, enum zb_call_kind kind, const char *id,
		  const char *event, const char *name, int64_t now_ms)
{
	struct zb_call call = {.kind = kind, .opened_ms = now_ms};
	char *at;

	if (zb_calls_find(c, kind, id))
		return ZB_EUSAGE;
	if (c->n_open >= ZB_CALLS_OPEN || !reserve(c))
		return ZB_ELIMIT;
	at = malloc(strlen(id) + strlen(event) + strlen(name) + 3);
	if (!at)
		return ZB_ELIMIT;
	call.id = put(&at, id);
	call.event = put(&at, event);
	call.name = put(&at, name);
	call.hash = hash(id);
	c->open[c->n_open++] = call;
	c->count[kind]++;
	return 0;
}

struct zb_call *zb_calls_find(const struct zb_calls *c, enum zb_call_kind kind,
			      const char *id)
{
	uint32_t h = hash(id);

	for (size_t i = 0; i < c->n_open; i++) {
		struct zb_call *call = &c->open[i];

		if (call->hash == h && call->kind == kind &&
		    strcmp(call->id, id) == 0)
			return call;
	}
	return NULL;
}

const struct zb_call *zb_calls_past(const struct zb_calls *c,
				    enum zb_call_kind kind, const char *id)
{
	uint32_t h = hash(id);

	for (size_t i = 0; c->closed && i < ZB_CALLS_CLOSED; i++) {
		const struct zb_call *call = &c->closed[i];

		if (call->id && call->hash == h && call->kind == kind &&
		    strcmp(call->id, id) == 0)
			return call;
	}
	return NULL;
}

void zb_calls_close(struct zb_calls *c, struct zb_call *call,
		    enum zb_call_state state, int64_t now_ms)
{
	struct zb_call *to = &c->closed[c->next_closed];
	size_t i = (size_t)(call - c->open);

	free(to->id);
	*to = *call;
	to->state = state;
	to->closed_ms = now_ms;
	c->next_closed = (c->next_closed + 1) % ZB_CALLS_CLOSED;
	c->count[to->kind]--;
	c->n_open--;
	memmove(call, call + 1, (c->n_open - i) * sizeof(*call));
}
