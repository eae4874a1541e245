/* agent_calls.c - questions to members, and what becomes of them.
 *
 * A call leaves the list before its callback runs, so the callback may start
 * others. An intercept is a call per interceptor, one after the other; what
 * it has come to so far lives in struct chain. */
#include "agent_internal.h"
#include "cleanup.h"
#include "host_frames.h"

#include <string.h>

#define TICK_MS 250u /* how closely an open panel stops a tool's clock */

struct chain;

struct call {
	struct call *next;
	struct member *m;
	char id[24];
	char *name; /* tool, "/command", or the event */
	bool tool;
	uint64_t left, armed; /* ms; when the timer was armed */
	uint64_t limit_ms;
	uint64_t own_ms, deadline; /* the caller's, loop time; 0: none */
	uv_timer_t timer;
	zb_agent_done *done;
	void *ctx;
	struct chain *chain; /* of an intercept: then @done is ours */
};

/* ---- the list ---- */

static void on_call_closed(uv_handle_t *h)
{
	struct call *c = h->data;

	free(c->name);
	free(c);
}

/* Out of the list; the memory goes with its timer. */
static void unlink_call(struct zb_agent *a, struct call *c)
{
	struct call **p = &a->calls;

	while (*p && *p != c)
		p = &(*p)->next;
	if (*p)
		*p = c->next;
	uv_timer_stop(&c->timer);
}

static void end_call(struct call *c, enum zb_reply how, const char *line,
		     size_t len, const char *why)
{
	struct zb_agent_reply r = {.how = how,
				   .member = c->m->index,
				   .line = line,
				   .len = len,
				   .why = why};

	unlink_call(c->m->a, c);
	c->done(c->ctx, &r);
	uv_close((uv_handle_t *)&c->timer, on_call_closed);
}

static void arm(struct call *c);

/* "60 s", "1500 ms" */
static void add_time(struct zb_buf *out, uint64_t ms)
{
	bool whole = ms % 1000 == 0;

	zb_buf_addf(out, "%llu %s",
		    (unsigned long long)(whole ? ms / 1000 : ms),
		    whole ? "s" : "ms");
}

/* Tell it that the answer is of no use, if it said that it wants to know. */
static bool send_cancel(const struct call *c)
{
	struct zb_buf frame = {0};
	bool sent;

	if (!c->tool || !c->m->cancels || !zb_agent_running(c->m))
		return false;
	zb_host_tool_cancel(&frame, c->id);
	sent = !zb_agent_send(c->m, &frame, "tool_cancel");
	zb_buf_done(&frame);
	return sent;
}

static void on_tick(uv_timer_t *t)
{
	struct call *c = t->data;
	struct member *m = c->m;
	uint64_t now = uv_now(m->a->cfg.loop), past = now - c->armed;
	bool called_off = c->deadline && now >= c->deadline;
	struct zb_buf why = {0};

	if (c->tool &&
	    zb_mediator_panel_open(zb_extension_mediator(m->pub.ext)))
		past = 0; /* the user is at it */
	if (past < c->left && !called_off) {
		c->left -= past;
		arm(c);
		return;
	}
	send_cancel(c);
	zb_extension_expire(m->pub.ext, c->id);
	zb_buf_addf(&why, "%s timed out after ", c->name);
	add_time(&why, called_off ? c->own_ms : c->limit_ms);
	zb_buf_addf(&why, " (extension %s)", m->name);
	if (!c->chain)
		zb_ledger_say(zb_extension_ledger(m->pub.ext), "%s",
			      zb_buf_str(&why));
	end_call(c, ZB_REPLY_TIMEOUT, NULL, 0, zb_buf_str(&why));
	zb_buf_done(&why);
}

static void arm(struct call *c)
{
	uint64_t wait = c->left;

	c->armed = uv_now(c->m->a->cfg.loop);
	if (c->tool && wait > TICK_MS)
		wait = TICK_MS;
	if (c->deadline && c->armed + wait > c->deadline)
		wait = c->deadline > c->armed ? c->deadline - c->armed : 0;
	uv_timer_start(&c->timer, on_tick, wait, 0);
}

/* For the life of the process, whatever agents it has. */
static unsigned long long last_id;

/* A new call to @m, in the list, its id made; NULL when out of memory. */
static struct call *new_call(struct member *m, enum zb_limit limit,
			     const char *name, zb_agent_done *done, void *ctx)
{
	struct zb_agent *a = m->a;
	const struct zb_prepared *p = zb_extension_prepared(m->pub.ext);
	struct call *c = calloc(1, sizeof(*c));
	uint64_t seconds;

	if (!c)
		return NULL;
	c->m = m;
	c->name = zb_strdup(name);
	c->done = done;
	c->ctx = ctx;
	c->tool = limit == ZB_LIMIT_TOOL_SECONDS;
	seconds = zb_plan_limit(&p->plan, limit);
	c->limit_ms =
		seconds < UINT64_MAX / 4000 ? seconds * 1000 : UINT64_MAX / 4;
	c->left = c->limit_ms;
	snprintf(c->id, sizeof(c->id), "z%llu", ++last_id);
	uv_timer_init(a->cfg.loop, &c->timer);
	c->timer.data = c;
	c->next = a->calls;
	a->calls = c;
	return c;
}

static bool is_open(const struct zb_agent *a, const struct call *c)
{
	for (const struct call *p = a->calls; p; p = p->next)
		if (p == c)
			return true;
	return false;
}

static void ask(struct call *c, const struct zb_buf *frame)
{
	struct member *m = c->m;
	struct zb_buf why = {0};
	int rc = zb_agent_send(m, frame, c->name);

	/* The mediator may have answered in the extension's place. */
	if (!is_open(m->a, c))
		return;
	if (!rc) {
		arm(c);
		return;
	}
	if (rc == ZB_ELIMIT)
		zb_buf_addf(&why,
			    "%s is not reading its stdin (%zu bytes queued)",
			    m->name, ZB_STDIN_BOUND);
	else
		zb_buf_addf(&why, "%s closed its stdin", m->name);
	end_call(c, ZB_REPLY_STUCK, NULL, 0, zb_buf_str(&why));
	zb_buf_done(&why);
}

void zb_agent_take_reply(struct member *m, const char *line, size_t len)
{
	zb_auto(free) char *id = zb_frame_string(line, len, "id");

	for (struct call *c = id ? m->a->calls : NULL; c; c = c->next)
		if (c->m == m && !strcmp(c->id, id)) {
			end_call(c, ZB_REPLY_OK, line, len, NULL);
			return;
		}
}

void zb_agent_end_calls(struct member *m, enum zb_reply how)
{
	struct zb_buf why = {0};
	struct call *c = m->a->calls;

	if (how == ZB_REPLY_GONE && m->pub.problem)
		zb_buf_adds(&why, m->pub.problem);
	else
		zb_buf_addf(&why, "%s was stopped", m->name);
	while (c) {
		if (c->m != m) {
			c = c->next;
			continue;
		}
		end_call(c, how, NULL, 0, zb_buf_str(&why));
		c = m->a->calls; /* the callback may have changed it */
	}
	zb_buf_done(&why);
}

/* ---- tools and commands ---- */

static void refuse(zb_agent_done *done, void *ctx, enum zb_reply how,
		   size_t member, const char *why)
{
	struct zb_agent_reply r = {.how = how, .member = member, .why = why};

	done(ctx, &r);
}

/* Nobody answers to the name: say why. */
static void no_such(struct zb_agent *a, bool tool, const char *name,
		    enum zb_reg_state state, zb_agent_done *done, void *ctx)
{
	const char *what = tool ? "tool" : "command";
	enum zb_reply how = ZB_REPLY_UNKNOWN;
	size_t who = ZB_NOBODY;
	struct zb_buf why = {0};

	if (state == ZB_REG_BUILTIN && !tool) {
		how = ZB_REPLY_BUILTIN;
		zb_buf_addf(&why, "/%s is a command of the agent itself", name);
	} else if (state == ZB_REG_DEFERRED) {
		zb_buf_addf(&why, "tool \"%s\" is deferred and not activated",
			    name);
	} else if (state == ZB_REG_LATE) {
		zb_buf_addf(&why,
			    "tool \"%s\" was registered after ready; it is "
			    "there from the next turn on",
			    name);
	} else if (zb_registry_lost(&a->registry, tool, name, &who)) {
		const struct zb_member *m = zb_agent_member(a, who);

		how = ZB_REPLY_GONE;
		zb_buf_addf(&why, "%s \"%s\": %s", what, name,
			    m->problem ? m->problem : "was stopped");
	} else {
		zb_buf_addf(&why, "unknown %s \"%s\"", what, name);
	}
	refuse(done, ctx, how, who, zb_buf_str(&why));
	zb_buf_done(&why);
}

/* Found in the registry, but is it there to answer? */
static bool available(struct member *m, zb_agent_done *done, void *ctx)
{
	struct zb_buf why = {0};

	if (zb_agent_running(m))
		return true;
	zb_buf_addf(&why, "%s is %s", m->name,
		    zb_member_state_name(m->pub.state));
	refuse(done, ctx, ZB_REPLY_GONE, m->index, zb_buf_str(&why));
	zb_buf_done(&why);
	return false;
}

void zb_agent_call(struct zb_agent *a, const char *tool, const char *args_json,
		   zb_agent_done *done, void *ctx)
{
	zb_agent_call_within(a, tool, args_json, 0, done, ctx);
}

void zb_agent_call_within(struct zb_agent *a, const char *tool,
			  const char *args_json, uint64_t timeout_ms,
			  zb_agent_done *done, void *ctx)
{
	struct zb_buf frame = {0};
	enum zb_reg_state state;
	struct call *c;
	size_t who, i;

	if (!zb_registry_tool(&a->registry, tool, &who, &i, &state)) {
		no_such(a, true, tool, state, done, ctx);
		return;
	}
	if (!available(a->members[who], done, ctx))
		return;
	c = new_call(a->members[who], ZB_LIMIT_TOOL_SECONDS, tool, done, ctx);
	if (!c) {
		refuse(done, ctx, ZB_REPLY_STUCK, who, "out of memory");
		return;
	}
	if (timeout_ms) {
		c->own_ms = timeout_ms;
		c->deadline = uv_now(a->cfg.loop) + timeout_ms;
	}
	zb_host_tool_call(&frame, c->id, tool, args_json);
	ask(c, &frame);
	zb_buf_done(&frame);
}

bool zb_agent_cancel(struct zb_agent *a, zb_agent_done *done, const void *ctx)
{
	for (const struct call *c = a->calls; c; c = c->next)
		if (c->done == done && c->ctx == ctx)
			return send_cancel(c);
	return false;
}

void zb_agent_command(struct zb_agent *a, const char *name, const char *args,
		      zb_agent_done *done, void *ctx)
{
	zb_auto(free) char *shown = NULL;
	struct zb_buf frame = {0};
	enum zb_reg_state state;
	const char *canonical;
	struct call *c;
	size_t who, i;

	if (!zb_registry_command(&a->registry, name, &who, &i, &state)) {
		no_such(a, false, name, state, done, ctx);
		return;
	}
	if (!available(a->members[who], done, ctx))
		return;
	canonical = a->registry.members[who].commands[i].name;
	shown = zb_strf("/%s", canonical);
	c = new_call(a->members[who], ZB_LIMIT_COMMAND_SECONDS, shown, done,
		     ctx);
	if (!c) {
		refuse(done, ctx, ZB_REPLY_STUCK, who, "out of memory");
		return;
	}
	zb_host_command(&frame, c->id, canonical, args);
	ask(c, &frame);
	zb_buf_done(&frame);
}

/* ---- intercepts ---- */

struct chain {
	struct zb_agent *a;
	char *event, *fields, *reason, *rewrite, *tool;
	const char *member_key, *answer_key; /* NULL: no rewrite of it */
	size_t at, by; /* the member to ask next; who is named */
	bool block;
	struct zb_agent_opinion *opinions;
	size_t n_opinions;
	zb_agent_judged *done;
	void *ctx;
};

static void advance(struct chain *ch);

static void opine(struct chain *ch, size_t member, const char *outcome)
{
	struct zb_agent_opinion *v =
		realloc(ch->opinions, (ch->n_opinions + 1) * sizeof(*v));

	if (!v)
		return;
	ch->opinions = v;
	v[ch->n_opinions++] = (struct zb_agent_opinion){member, outcome};
}

static void finish(struct chain *ch)
{
	struct zb_agent_verdict v = {.block = ch->block,
				     .by = ch->by,
				     .reason = ch->reason,
				     .key = ch->answer_key,
				     .rewrite = ch->block ? NULL : ch->rewrite,
				     .opinions = ch->opinions,
				     .n_opinions = ch->n_opinions};

	ch->done(ch->ctx, &v);
	free(ch->event);
	free(ch->fields);
	free(ch->reason);
	free(ch->rewrite);
	free(ch->tool);
	free(ch->opinions);
	free(ch);
}

/* "tool_call bash" */
static void describe(const struct chain *ch, struct zb_buf *out)
{
	zb_buf_adds(out, ch->event);
	if (ch->tool)
		zb_buf_addf(out, " %s", ch->tool);
}

static bool must_not_miss(const struct chain *ch, const struct member *m)
{
	return zb_strv_has(&m->guarded, ch->event);
}

/* @m gave no answer: allowed, as the protocol says, or blocked, as its scope
 * may say. Either way it is told: each time in the log, once to the user. */
static void unanswered(struct chain *ch, struct member *m, const char *outcome,
		       const char *how)
{
	bool block = must_not_miss(ch, m);
	struct zb_buf text = {0};

	zb_buf_addf(&text, "guard \"%s\" %s for ", m->name, how);
	describe(ch, &text);
	zb_buf_addf(&text, "; %s", block ? "blocked" : "allowed");
	if (!m->silence_said || !m->pub.ext)
		zb_agent_tell(m, "%s", zb_buf_str(&text));
	else
		zb_ledger_say(zb_extension_ledger(m->pub.ext), "%s",
			      zb_buf_str(&text));
	m->silence_said = true;
	opine(ch, m->index, outcome);
	ch->by = m->index;
	if (!block) {
		zb_buf_done(&text);
		advance(ch);
		return;
	}
	ch->block = true;
	free(ch->reason);
	ch->reason = zb_buf_steal(&text);
	finish(ch);
}

static void missing(struct chain *ch, struct member *m)
{
	static const char *const plural[][2] = {
		{"tool_call", "tool calls"},
		{"turn_start", "turns"},
		{"assistant_message", "messages"},
	};
	const char *what = ch->event;
	const char *why = m->pub.reason ? m->pub.reason
					: zb_member_state_name(m->pub.state);

	for (size_t i = 0; i < ZB_ARRAY_LEN(plural); i++)
		if (!strcmp(plural[i][0], ch->event))
			what = plural[i][1];
	free(ch->reason);
	ch->reason = zb_strf("required guard \"%s\" is not running (%s); %s "
			     "are blocked",
			     m->name, why, what);
	zb_agent_tell(m, "%s", ch->reason ? ch->reason : "");
	opine(ch, m->index, "not running");
	ch->by = m->index;
	ch->block = true;
	finish(ch);
}

static void on_answer(void *ctx, const struct zb_agent_reply *r)
{
	struct chain *ch = ctx;
	struct member *m = ch->a->members[r->member];
	struct zb_intercept_answer a;
	char how[64];

	if (r->how == ZB_REPLY_TIMEOUT) {
		snprintf(how, sizeof(how), "gave no answer in %llu s",
			 (unsigned long long)zb_plan_limit(
				 &zb_extension_prepared(m->pub.ext)->plan,
				 ZB_LIMIT_INTERCEPT_SECONDS));
		unanswered(ch, m, "timeout", how);
		return;
	}
	if (r->how != ZB_REPLY_OK ||
	    zb_host_read_answer(&a, r->line, r->len, ch->event)) {
		unanswered(ch, m, r->how == ZB_REPLY_STUCK ? "stuck" : "gone",
			   r->how == ZB_REPLY_STUCK
				   ? "could not be asked"
				   : "ended before it answered");
		return;
	}
	opine(ch, m->index,
	      a.block	  ? "block"
	      : a.rewrite ? "rewrite"
			  : "allow");
	if (a.reason) {
		free(ch->reason);
		ch->reason = zb_steal(&a.reason);
	}
	/* Named is who blocked, else who rewrote last, else who came last. */
	if (a.block || a.rewrite || !ch->rewrite)
		ch->by = m->index;
	if (a.rewrite) {
		free(ch->rewrite);
		ch->rewrite = zb_steal(&a.rewrite);
	}
	ch->block = a.block;
	zb_intercept_answer_done(&a);
	if (ch->block)
		finish(ch);
	else
		advance(ch);
}

static void consult(struct chain *ch, struct member *m)
{
	struct call *c = new_call(m, ZB_LIMIT_INTERCEPT_SECONDS, ch->event,
				  on_answer, ch);
	struct zb_buf frame = {0};

	if (!c) {
		unanswered(ch, m, "stuck", "could not be asked");
		return;
	}
	c->chain = ch;
	zb_host_intercept(&frame, c->id, ch->event, ch->fields,
			  ch->rewrite ? ch->member_key : NULL, ch->rewrite);
	ask(c, &frame);
	zb_buf_done(&frame);
}

static bool subscribed(const struct member *m, const char *event)
{
	return zb_strv_has(
		zb_mediator_intercepts(zb_extension_mediator(m->pub.ext)),
		event);
}

/* Ask the next one that wants to be asked. */
static void advance(struct chain *ch)
{
	while (ch->at < ch->a->n) {
		struct member *m = ch->a->members[ch->at++];

		if (!zb_agent_running(m) || (m->pub.state != ZB_MEMBER_READY &&
					     !subscribed(m, ch->event))) {
			if (!must_not_miss(ch, m))
				continue;
			missing(ch, m);
			return;
		}
		if (!subscribed(m, ch->event))
			continue;
		consult(ch, m);
		return;
	}
	finish(ch);
}

void zb_agent_intercept(struct zb_agent *a, const char *event,
			const char *fields_json, zb_agent_judged *done,
			void *ctx)
{
	struct chain *ch = calloc(1, sizeof(*ch));
	struct zb_agent_verdict none = {
		.block = true, .by = ZB_NOBODY, .reason = "out of memory"};

	if (ch) {
		ch->event = zb_strdup(event);
		ch->fields = zb_strdup(fields_json);
	}
	if (!ch || !ch->event || !ch->fields) {
		done(ctx, &none);
		free(ch ? ch->event : NULL);
		free(ch ? ch->fields : NULL);
		free(ch);
		return;
	}
	ch->a = a;
	ch->by = ZB_NOBODY;
	ch->done = done;
	ch->ctx = ctx;
	ch->tool =
		zb_frame_string(fields_json, strlen(fields_json), "tool_name");
	zb_host_rewrite_of(event, &ch->member_key, &ch->answer_key);
	advance(ch);
}

/* ---- events ---- */

size_t zb_agent_event(struct zb_agent *a, const char *event,
		      const char *fields_json)
{
	struct zb_strv names = {0};
	size_t n = zb_agent_event_to(a, event, fields_json, &names);

	zb_strv_done(&names);
	return n;
}

size_t zb_agent_event_to(struct zb_agent *a, const char *event,
			 const char *fields_json, struct zb_strv *names)
{
	struct zb_buf frame = {0};
	size_t delivered = 0;

	if (!strcmp(event, "turn_start") || !strcmp(event, "turn_end"))
		zb_agent_bring_late(a);
	zb_host_event(&frame, event, fields_json);
	for (size_t i = 0; i < a->n; i++) {
		struct member *m = a->members[i];

		if (!zb_agent_running(m) ||
		    !zb_strv_has(zb_mediator_events(
					 zb_extension_mediator(m->pub.ext)),
				 event))
			continue;
		if (zb_agent_send(m, &frame, event))
			continue;
		delivered++;
		zb_strv_add(names, m->name);
	}
	zb_buf_done(&frame);
	return delivered;
}

void zb_agent_turn(struct zb_agent *a)
{
	zb_agent_event(a, "turn_end", "{\"stop\":\"end\"}");
}
