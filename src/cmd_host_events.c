/* cmd_host_events.c - what the client is told without having asked.
 *
 * A client that does not read must not cost memory: once its pipe is full and
 * a megabyte waits, no extension is read and no request taken, until it has
 * caught up. What comes from elsewhere meanwhile (denials, log lines) is
 * counted instead of sent. At the end nobody waits for the client: extensions
 * are read again, and their events dropped. */
#include "cleanup.h"
#include "cmd.h"
#include "cmd_host.h"
#include "host_frames.h"

#include <string.h>

/* ---- out ---- */

static void set_paused(struct zb_host_server *h, bool paused)
{
	if (h->paused == paused)
		return;
	h->paused = paused;
	zb_wrap_in_pause(&h->in, paused);
	if (h->agent)
		zb_agent_pause(h->agent, paused);
}

void zb_host_send(struct zb_host_server *h, const struct zb_buf *line)
{
	if (line->failed)
		return;
	zb_wrap_out_line(&h->out, zb_buf_str(line), line->len);
	if (!h->closing && zb_wrap_out_full(&h->out))
		set_paused(h, true);
}

static void say_untold(struct zb_host_server *h)
{
	struct zb_buf line = {0};

	if (!h->untold)
		return;
	zb_buf_addf(&line,
		    "{\"type\":\"ext_log\",\"extension\":null,\"text\":\"%llu "
		    "events were left out while the client did not read\"}",
		    h->untold);
	h->untold = 0;
	zb_host_send(h, &line);
	zb_buf_done(&line);
}

void zb_host_on_drained(void *ctx)
{
	struct zb_host_server *h = ctx;

	say_untold(h);
	set_paused(h, false);
}

void zb_host_emit(struct zb_host_server *h, const char *type,
		  const char *extension, const char *rest)
{
	struct zb_buf line = {0};

	if (!h->greeted)
		return;
	if (zb_wrap_out_full(&h->out) && !h->out.plain) {
		static const char *const optional[] = {"ext_log", "ext_denied",
						       NULL};

		for (size_t i = 0; optional[i] && !h->closing; i++)
			if (!strcmp(optional[i], type)) {
				h->untold++;
				return;
			}
		if (h->closing)
			return;
	}
	if (!zb_api_event(&line, type, extension, rest))
		zb_host_send(h, &line);
	zb_buf_done(&line);
}

const char *zb_host_name_of(const struct zb_host_server *h, size_t member)
{
	const char *name;

	if (member == ZB_NOBODY || !h->agent)
		return "-";
	name = zb_agent_member(h->agent, member)->name;
	/* An extension whose manifest was not read may be called anything. */
	return zb_name_valid(name) ? name : "-";
}

static void text_event(struct zb_host_server *h, const char *type,
		       const char *extension, const char *text)
{
	struct zb_buf rest = {0};

	zb_buf_adds(&rest, "{\"text\":");
	zb_json_quote(&rest, text, strlen(text));
	zb_buf_addc(&rest, '}');
	zb_host_emit(h, type, extension, zb_buf_str(&rest));
	zb_buf_done(&rest);
}

/* ---- notes, prompts ---- */

static void note(struct zb_host_server *h, const char *name, bool there)
{
	struct zb_strv *l = &h->noted;

	if (there) {
		if (!zb_strv_has(l, name))
			zb_strv_add(l, name);
		return;
	}
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->v[i], name)) {
			free(l->v[i]);
			l->n--;
			memmove(&l->v[i], &l->v[i + 1],
				(l->n - i + 1) * sizeof(char *));
			return;
		}
}

void zb_host_end_notes(struct zb_host_server *h)
{
	for (size_t i = 0; i < h->noted.n; i++)
		zb_host_emit(h, "ext_clear_notes", h->noted.v[i], "{}");
	zb_strv_done(&h->noted);
}

static void prompt_event(struct zb_host_server *h, const char *name,
			 const char *text, bool queued)
{
	struct zb_buf rest = {0};

	zb_buf_adds(&rest, "{\"text\":");
	zb_json_quote(&rest, text, strlen(text));
	zb_buf_addf(&rest, ",\"slash\":false,\"queued\":%s}",
		    queued ? "true" : "false");
	zb_host_emit(h, "ext_submit", name, zb_buf_str(&rest));
	zb_buf_done(&rest);
}

void zb_host_next_prompt(struct zb_host_server *h)
{
	struct zb_prompt p;

	if (!zb_turns_next(&h->turns, &p))
		return;
	prompt_event(h, p.who, p.text, true);
	free(p.who);
	free(p.text);
}

static void submit(struct zb_host_server *h, size_t member, const char *line,
		   size_t len)
{
	zb_auto(free) char *text = zb_frame_string(line, len, "text");
	const struct zb_member *m = zb_agent_member(h->agent, member);
	const char *name = zb_host_name_of(h, member);

	if (!text)
		return;
	switch (zb_turns_submit(&h->turns, name, text)) {
	case ZB_SUBMIT_NOW:
		prompt_event(h, name, text, false);
		break;
	case ZB_SUBMIT_FULL:
		if (m->ext)
			zb_extension_tell(m->ext,
					  "%s: submit dropped: %u prompts wait "
					  "already",
					  name, ZB_TURNS_QUEUE);
		break;
	case ZB_SUBMIT_IGNORED:
	case ZB_SUBMIT_QUEUED:
		break;
	}
}

/* A command of the agent's own is not a prompt and does not wait for one. */
static void submit_slash(struct zb_host_server *h, size_t member,
			 const char *line, size_t len)
{
	zb_auto(free) char *text = zb_frame_string(line, len, "text");
	struct zb_buf rest = {0};

	if (!text)
		return;
	zb_buf_adds(&rest, "{\"text\":");
	zb_json_quote(&rest, text, strlen(text));
	zb_buf_adds(&rest, ",\"slash\":true,\"queued\":false}");
	zb_host_emit(h, "ext_submit", zb_host_name_of(h, member),
		     zb_buf_str(&rest));
	zb_buf_done(&rest);
}

/* ---- what the agent reports ---- */

/* Who has notes on the screen after this. */
static void follow(struct zb_host_server *h, const char *name,
		   const char *event)
{
	if (!strcmp(event, "ext_notify") || !strcmp(event, "ext_display"))
		note(h, name, true);
	else if (!strcmp(event, "ext_clear_notes"))
		note(h, name, false);
}

static void on_frame(void *ctx, size_t member, const char *type,
		     const char *line, size_t len)
{
	struct zb_host_server *h = ctx;
	struct zb_buf rest = {0};
	const char *event;

	if (!strcmp(type, "submit")) {
		submit(h, member, line, len);
		return;
	}
	if (!strcmp(type, "submit_slash")) {
		submit_slash(h, member, line, len);
		return;
	}
	event = zb_api_frame_event(type, line, len, &rest);
	if (event) {
		follow(h, zb_host_name_of(h, member), event);
		zb_host_emit(h, event, zb_host_name_of(h, member),
			     zb_buf_str(&rest));
	}
	zb_buf_done(&rest);
}

static void on_denied(void *ctx, size_t member, const struct zb_denial *d)
{
	struct zb_host_server *h = ctx;
	struct zb_buf rest = {0}, text = {0};

	zb_denial_text(d, h->store.home, &text);
	zb_buf_adds(&rest, "{\"text\":");
	zb_json_quote(&rest, zb_buf_str(&text), text.len);
	zb_buf_adds(&rest, ",\"denial\":");
	zb_denial_json(d, &rest);
	zb_buf_addc(&rest, '}');
	zb_host_emit(h, "ext_denied", zb_host_name_of(h, member),
		     zb_buf_str(&rest));
	zb_buf_done(&rest);
	zb_buf_done(&text);
}

static void on_say(void *ctx, size_t member, const char *text)
{
	text_event(ctx, "ext_log", zb_host_name_of(ctx, member), text);
}

void zb_host_add_denials(struct zb_buf *out, const struct zb_denial *d,
			 size_t n)
{
	zb_buf_adds(out, ",\"denials\":[");
	for (size_t i = 0; i < n; i++) {
		zb_buf_adds(out, i ? "," : "");
		zb_denial_json(&d[i], out);
	}
	zb_buf_addc(out, ']');
}

/* Whether it could not be started, or ended. */
static void tell_end(struct zb_host_server *h, size_t member,
		     const struct zb_member *m)
{
	struct zb_buf rest = {0};

	zb_buf_adds(&rest, "{\"error\":");
	if (m->problem)
		zb_json_quote(&rest, m->problem, strlen(m->problem));
	else
		zb_buf_adds(&rest, "null");
	if (m->session[0])
		zb_buf_addf(&rest, ",\"%s\":%d",
			    m->exit.signalled ? "signal" : "status",
			    m->exit.code);
	if (m->log) {
		zb_buf_adds(&rest, ",\"log\":");
		zb_json_quote(&rest, m->log, strlen(m->log));
	}
	zb_buf_adds(&rest, ",\"stderr\":[");
	for (size_t i = 0; i < m->head.n; i++) {
		zb_buf_adds(&rest, i ? "," : "");
		zb_json_quote(&rest, m->head.v[i], strlen(m->head.v[i]));
	}
	zb_buf_addc(&rest, ']');
	zb_host_add_denials(&rest, m->denials, m->n_denials);
	zb_buf_addc(&rest, '}');
	zb_host_emit(h, m->said_hello ? "ext_exit" : "ext_load_error",
		     zb_host_name_of(h, member), zb_buf_str(&rest));
	zb_buf_done(&rest);
}

static void tell_ready(struct zb_host_server *h, size_t member,
		       const struct zb_member *m)
{
	struct zb_buf rest = {0};

	zb_buf_addf(&rest, "{\"start_ms\":%llu,\"auto_ready\":%s}",
		    (unsigned long long)m->start_ms,
		    m->auto_ready || m->ready_timeout ? "true" : "false");
	zb_host_emit(h, "ext_ready", zb_host_name_of(h, member),
		     zb_buf_str(&rest));
	zb_buf_done(&rest);
}

static void on_changed(void *ctx, size_t member)
{
	struct zb_host_server *h = ctx;
	const struct zb_member *m = zb_agent_member(h->agent, member);

	switch (m->state) {
	case ZB_MEMBER_READY:
		tell_ready(h, member, m);
		break;
	case ZB_MEMBER_GONE:
		if (m->problem || m->said_hello)
			tell_end(h, member, m);
		break;
	case ZB_MEMBER_STOPPING:
	case ZB_MEMBER_STARTING:
	case ZB_MEMBER_REGISTERING:
		break;
	}
}

static void on_tools(void *ctx, size_t member)
{
	zb_host_emit(ctx, "ext_tools_changed", zb_host_name_of(ctx, member),
		     "{}");
}

static void on_settled(void *ctx)
{
	struct zb_host_server *h = ctx;

	h->settled = true;
	zb_host_go_on(h);
}

static void on_panel_gone(void *ctx, size_t member, const char *id)
{
	struct zb_host_server *h = ctx;
	struct zb_buf rest = {0};

	zb_buf_adds(&rest, "{\"panel_id\":");
	zb_json_quote(&rest, id, strlen(id));
	zb_buf_addc(&rest, '}');
	zb_host_emit(h, "ext_panel_close", zb_host_name_of(h, member),
		     zb_buf_str(&rest));
	zb_buf_done(&rest);
}

static void on_closed(void *ctx)
{
	struct zb_host_server *h = ctx;

	/* The agent is not freed from within itself. */
	h->closed = true;
	zb_host_wake(h);
}

const struct zb_agent_ops zb_host_agent_ops = {
	.frame = on_frame,
	.denied = on_denied,
	.say = on_say,
	.changed = on_changed,
	.settled = on_settled,
	.tools = on_tools,
	.panel_gone = on_panel_gone,
	.closed = on_closed,
};
