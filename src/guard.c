/* guard.c - questions that must not go unanswered. */
#include "guard.h"
#include "cleanup.h"
#include "mediator_internal.h"

#include <string.h>

int zb_guard_init(struct zb_guard *g, const struct zb_plan *plan)
{
	const struct zb_scope *s = &plan->scope;
	uint64_t own = zb_plan_limit(plan, ZB_LIMIT_INTERCEPT_SECONDS);
	int rc = 0;

	memset(g, 0, sizeof(*g));
	if (!s->on_failure_block || !s->n_intercepts)
		return 0;
	g->on = true;
	g->wait_ms =
		own < ZB_GUARD_MS / 1000 ? (int64_t)own * 1000 : ZB_GUARD_MS;
	g->name = zb_strdup(plan->name);
	for (size_t i = 0; i < s->n_intercepts && !rc; i++)
		rc = zb_strv_add(&g->events, s->intercepts[i].event);
	return g->name ? rc : ZB_ELIMIT;
}

void zb_guard_call_done(struct zb_guard_call *c)
{
	free(c->id);
	free(c->event);
	free(c->tool);
	memset(c, 0, sizeof(*c));
}

void zb_guard_done(struct zb_guard *g)
{
	for (size_t i = 0; i < g->n; i++)
		zb_guard_call_done(&g->open[i]);
	free(g->open);
	free(g->name);
	zb_strv_done(&g->events);
	memset(g, 0, sizeof(*g));
}

/* String member @key. What a model made up may hold what the strict scanner
 * refuses (half a surrogate pair); that must not make a question invisible, so
 * such a line is looked at as far as needed. */
static char *string_of(const struct zb_json *j, const char *line, size_t len,
		       const char *key)
{
	char text[ZB_PROTO_ID + 1];
	uint32_t i;

	if (!j->n)
		return zb_med_peek_string(line, len, key, text, sizeof(text))
			       ? zb_strdup(text)
			       : NULL;
	i = zb_json_get(j, 0, key);
	return i == ZB_JSON_NONE ? NULL : zb_json_dup_string(j, i);
}

bool zb_guard_question(const struct zb_guard *g, const char *line, size_t len,
		       struct zb_guard_call *out)
{
	static const struct zb_json_limits top = {.index_depth = 1};
	zb_auto(free) char *type = NULL;
	struct zb_json j = {0};
	bool ours = false;

	memset(out, 0, sizeof(*out));
	if (!g->on)
		return false;
	zb_json_scan(&j, line, len, &top, NULL);
	type = string_of(&j, line, len, "type");
	if (type && !strcmp(type, "event_intercept")) {
		out->id = string_of(&j, line, len, "id");
		out->event = string_of(&j, line, len, "event");
		out->tool = string_of(&j, line, len, "tool_name");
		ours = out->id && out->event &&
		       zb_strv_has(&g->events, out->event);
	}
	zb_json_done(&j);
	if (!ours)
		zb_guard_call_done(out);
	return ours;
}

int zb_guard_ask(struct zb_guard *g, int64_t now_ms, struct zb_guard_call *c)
{
	if (g->n >= ZB_GUARD_OPEN)
		return ZB_ELIMIT;
	if (g->n == g->cap) {
		size_t cap = g->cap ? g->cap * 2 : 16;
		struct zb_guard_call *v = realloc(g->open, cap * sizeof(*v));

		if (!v)
			return ZB_ELIMIT;
		g->open = v;
		g->cap = cap;
	}
	c->deadline_ms = now_ms + g->wait_ms;
	g->open[g->n++] = *c;
	memset(c, 0, sizeof(*c));
	return 0;
}

static void take(struct zb_guard *g, size_t i, struct zb_guard_call *out)
{
	*out = g->open[i];
	g->n--;
	memmove(&g->open[i], &g->open[i + 1], (g->n - i) * sizeof(*g->open));
}

void zb_guard_answered(struct zb_guard *g, const char *id)
{
	struct zb_guard_call c;

	for (size_t i = 0; i < g->n; i++)
		if (!strcmp(g->open[i].id, id)) {
			take(g, i, &c);
			zb_guard_call_done(&c);
			return;
		}
}

int64_t zb_guard_wait(const struct zb_guard *g, int64_t now_ms)
{
	int64_t left;

	if (!g->n)
		return -1;
	left = g->open[0].deadline_ms - now_ms;
	return left > 0 ? left : 0;
}

bool zb_guard_due(struct zb_guard *g, int64_t now_ms, struct zb_guard_call *out)
{
	if (!g->n || g->open[0].deadline_ms > now_ms)
		return false;
	take(g, 0, out);
	return true;
}

static void quote(struct zb_buf *out, const char *s)
{
	zb_json_quote(out, s, strlen(s));
}

int zb_guard_allow(const struct zb_guard_call *c, struct zb_buf *out)
{
	zb_buf_adds(out, "{\"type\":\"event_intercept_response\",\"id\":");
	quote(out, c->id);
	zb_buf_addc(out, '}');
	return out->failed ? ZB_ELIMIT : 0;
}

int zb_guard_block(const struct zb_guard *g, const struct zb_guard_call *c,
		   const char *reason, struct zb_buf *out)
{
	zb_auto(free) char *text = zb_strf(
		"required guard \"%s\" %s; blocked: %s%s%s", g->name, reason,
		c->event, c->tool ? " " : "", c->tool ? c->tool : "");

	zb_buf_adds(out, "{\"type\":\"event_intercept_response\",\"id\":");
	quote(out, c->id);
	zb_buf_adds(out, ",\"block\":true,\"reason\":");
	quote(out, text ? text : "blocked");
	zb_buf_addc(out, '}');
	return out->failed ? ZB_ELIMIT : 0;
}

static void list(struct zb_buf *out, const struct zb_strv *l)
{
	zb_buf_addc(out, '[');
	for (size_t i = 0; l && i < l->n; i++) {
		if (i)
			zb_buf_addc(out, ',');
		quote(out, l->v[i]);
	}
	zb_buf_addc(out, ']');
}

int zb_guard_subscribe(const struct zb_guard *g, const struct zb_strv *events,
		       struct zb_buf *out)
{
	zb_buf_adds(out, "{\"type\":\"subscribe\",\"events\":");
	list(out, events);
	zb_buf_adds(out, ",\"intercept\":");
	list(out, &g->events);
	zb_buf_addc(out, '}');
	return out->failed ? ZB_ELIMIT : 0;
}
