/* mediator_ext.c - what an extension may say: the handlers of what it says
 * unasked, and the dispatch of all.
 *
 * A handler starts from a verdict of DROP, and may call zb_med_pass() when all
 * that the scope and the protocol ask for is there. Verbs that are lists of
 * names (slash, call_tool, events, intercept) are asked by the handler, the
 * plain ones before it runs. */
#include "mediator_internal.h"

#include "cleanup.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- small things ---- */

void zb_med_drop(struct zb_mediator *m, const char *why)
{
	zb_med_log(m, "%s: %s; dropped", m->out->type, why);
}

bool zb_med_pass_plain(struct zb_mediator *m, struct zb_view *v)
{
	if (!v->bad[0] && zb_med_pass(m, v))
		return true;
	if (!m->oom)
		zb_med_drop(m, v->bad);
	return false;
}

/* Is the extension at work on something that it was asked for? A call that is
 * older than its time limit is none: whoever never answers is not at work for
 * ever. A tool may wait for the user as long as its panel is open. */
static bool is_asked(const struct zb_mediator *m, enum zb_call_kind kind)
{
	bool tool = kind == ZB_CALL_TOOL;
	uint64_t limit =
		zb_plan_limit(m->plan, tool ? ZB_LIMIT_TOOL_SECONDS
					    : ZB_LIMIT_COMMAND_SECONDS);

	if (!m->calls.count[kind])
		return false;
	if (limit > INT64_MAX / 1000 || (tool && m->panel_open))
		return true;
	for (size_t i = 0; i < m->calls.n_open; i++) {
		const struct zb_call *c = &m->calls.open[i];

		if (c->kind == kind &&
		    m->now_ms - c->opened_ms < (int64_t)limit * 1000)
			return true;
	}
	return false;
}

/* ---- panels ---- */

void zb_med_open_panel(struct zb_mediator *m, const char *id)
{
	struct zb_strv *l = &m->panels;
	size_t i = 0;

	while (i < l->n && strcmp(l->v[i], id) != 0)
		i++;
	if (i == l->n && l->n < 64 && zb_strv_add(l, id)) {
		m->oom = true;
		return;
	}
	if (i == l->n) { /* full: the oldest one is forgotten */
		char *copy = zb_strdup(id);

		if (!copy) {
			m->oom = true;
			return;
		}
		free(l->v[0]);
		l->v[0] = copy;
		i = 0;
	}
	/* The open one stands last. */
	for (; i + 1 < l->n; i++) {
		char *t = l->v[i];

		l->v[i] = l->v[i + 1];
		l->v[i + 1] = t;
	}
	m->panel_open = true;
}

static bool panel_is_open(const struct zb_mediator *m, const char *id)
{
	return m->panel_open && strcmp(m->panels.v[m->panels.n - 1], id) == 0;
}

bool zb_med_plain_id(struct zb_mediator *m, const struct zb_part *p,
		     const char *field, char **out)
{
	uint32_t cp;

	if (!zb_med_name(m, p, field))
		return false;
	for (size_t i = 0; i < m->raw.len;) {
		i += zb_utf8_next(m->raw.data + i, m->raw.len - i, &cp);
		if (zb_is_hazard(cp) || cp == '\n')
			return false;
	}
	*out = zb_strdup(zb_buf_str(&m->raw));
	m->oom |= !*out;
	return *out != NULL;
}

static void on_open_panel(struct zb_mediator *m, struct zb_view *v)
{
	const struct zb_switch *sw = &m->plan->scope.verbs[ZB_VERB_PANELS];
	zb_auto(free) char *id = NULL;
	struct zb_part panel;

	if (!v->bad[0] && (!zb_med_nested(v, "panel", &panel) ||
			   !zb_med_plain_id(m, &panel, "id", &id)))
		zb_med_note_bad(v, "no \"panel\" with an \"id\"");
	if (v->bad[0] || !id) {
		zb_med_drop(m, v->bad);
		return;
	}
	if (!sw->any && !is_asked(m, ZB_CALL_TOOL) &&
	    !is_asked(m, ZB_CALL_COMMAND)) {
		zb_auto(free) char *rule = zb_strf(
			"%s: protocol.panels is true, which opens one in reply "
			"to a command or while a tool call is open",
			sw->origin.file ? sw->origin.file : "scope");

		m->oom |= !rule;
		zb_med_refuse(m, &(struct zb_med_refusal){
					 .op = ZB_OP_PROTO,
					 .detail = zb_verb_name(ZB_VERB_PANELS),
					 .asked = id,
					 .asked_len = strlen(id),
					 .target = "unasked panel",
					 .rule = rule,
					 .key = "protocol.panels",
					 .value = "any"});
		return;
	}
	if (zb_med_pass_plain(m, v))
		zb_med_open_panel(m, id);
}

static void on_panel_render(struct zb_mediator *m, struct zb_view *v)
{
	if (!v->bad[0]) {
		if (!zb_med_name(m, &v->top, "panel_id")) {
			zb_med_drop(m, "no \"panel_id\"");
			return;
		}
		/* A redraw after the user closed it is no offence. */
		if (!panel_is_open(m, zb_buf_str(&m->raw)))
			return;
	}
	zb_med_pass_plain(m, v);
}

static void on_panel_close(struct zb_mediator *m, struct zb_view *v)
{
	if (v->bad[0] || !zb_med_name(m, &v->top, "panel_id")) {
		zb_med_drop(m, v->bad[0] ? v->bad : "no \"panel_id\"");
		return;
	}
	if (!zb_strv_has(&m->panels, zb_buf_str(&m->raw)))
		return;
	if (panel_is_open(m, zb_buf_str(&m->raw)))
		m->panel_open = false;
	zb_med_pass_plain(m, v);
}

/* ---- submits ---- */

static void on_submit(struct zb_mediator *m, struct zb_view *v)
{
	enum zb_text_kind kind;

	if (v->bad[0] || !zb_med_text(m, &v->top, "text")) {
		zb_med_drop(m, v->bad[0] ? v->bad : "no \"text\"");
		return;
	}
	kind = zb_text_kind(zb_buf_str(&m->clean), m->clean.len);
	if (kind == ZB_TEXT_BLANK)
		return; /* the host ignores it too */
	if (!zb_med_text_allowed(m, ZB_VERB_SUBMIT)) {
		zb_med_drop(m, "its text may not pass");
		return;
	}
	if (!is_asked(m, ZB_CALL_COMMAND) && !zb_med_submit_budget(m))
		return;
	zb_med_pass_plain(m, v);
}

static void on_submit_slash(struct zb_mediator *m, struct zb_view *v)
{
	enum zb_text_kind kind;

	if (v->bad[0] || !zb_med_text(m, &v->top, "text")) {
		zb_med_drop(m, v->bad[0] ? v->bad : "no \"text\"");
		return;
	}
	kind = zb_text_kind(zb_buf_str(&m->clean), m->clean.len);
	if (kind == ZB_TEXT_PLAIN || kind == ZB_TEXT_BLANK) {
		zb_med_drop(m, "not a slash command");
		return;
	}
	if (!zb_med_text_allowed(m, ZB_VERB_SLASH)) {
		zb_med_drop(m, "its text may not pass");
		return;
	}
	if (!is_asked(m, ZB_CALL_COMMAND) && !zb_med_submit_budget(m))
		return;
	zb_med_pass_plain(m, v);
}

/* ---- call_tool ---- */

#define OWN_CALLS 64 /* open at a time */

/* The extension hears no at once. */
static void reply_no(struct zb_mediator *m, const char *id, const char *why)
{
	zb_med_answer(m, &m->out->bytes, ZB_CALL_OWN, id, why);
	m->out->verdict = ZB_MED_REPLY;
}

static void on_call_tool(struct zb_mediator *m, struct zb_view *v)
{
	zb_auto(free) char *id = NULL;
	zb_auto(free) char *name = NULL;
	int rc;

	if (!zb_med_plain_id(m, &v->top, "id", &id) || !id[0] ||
	    strlen(id) > 128) {
		zb_med_drop(m, "no usable \"id\"");
		return;
	}
	if (zb_med_name(m, &v->top, "name"))
		name = zb_strdup(zb_buf_str(&m->raw));
	if (v->bad[0] || !name || !name[0]) {
		reply_no(m, id, v->bad[0] ? v->bad : "no \"name\"");
		return;
	}
	if (!zb_med_verb(m, ZB_VERB_CALL_TOOL, name, name, strlen(name))) {
		reply_no(m, id, "call_tool of this tool is not granted");
		return;
	}
	rc = m->calls.count[ZB_CALL_OWN] >= OWN_CALLS
		     ? ZB_ELIMIT
		     : zb_calls_open(&m->calls, ZB_CALL_OWN, id, "", name,
				     m->now_ms);
	if (rc) {
		reply_no(m, id,
			 rc == ZB_EUSAGE ? "this id is in use"
					 : "too many calls are open");
		return;
	}
	if (!zb_med_pass(m, v)) {
		reply_no(m, id, v->bad);
		zb_calls_close(&m->calls,
			       zb_calls_find(&m->calls, ZB_CALL_OWN, id),
			       ZB_CALL_ANSWERED, m->now_ms);
	}
}

static void on_call_tool_cancel(struct zb_mediator *m, struct zb_view *v)
{
	if (zb_med_name(m, &v->top, "id") &&
	    zb_calls_find(&m->calls, ZB_CALL_OWN, zb_buf_str(&m->raw)))
		zb_med_pass_plain(m, v);
	else
		zb_med_drop(m, "no such call is open");
}

/* ---- dispatch ---- */

static void on_plain(struct zb_mediator *m, struct zb_view *v)
{
	zb_med_pass_plain(m, v);
}

static void (*const handlers[ZB_FRAME_COUNT])(struct zb_mediator *,
					      struct zb_view *) = {
	[ZB_FRAME_HELLO] = zb_med_on_hello,
	[ZB_FRAME_REGISTER_COMMAND] = zb_med_on_register_command,
	[ZB_FRAME_REGISTER_TOOL] = zb_med_on_register_tool,
	[ZB_FRAME_READY] = zb_med_on_ready,
	[ZB_FRAME_SUBSCRIBE] = zb_med_on_subscribe,
	[ZB_FRAME_TOOL_RESULT] = zb_med_on_tool_result,
	[ZB_FRAME_COMMAND_RESPONSE] = zb_med_on_command_response,
	[ZB_FRAME_INTERCEPT_RESPONSE] = zb_med_on_intercept_response,
	[ZB_FRAME_NOTIFY] = on_plain,
	[ZB_FRAME_DISPLAY] = on_plain,
	[ZB_FRAME_CLEAR_NOTES] = on_plain,
	[ZB_FRAME_SUBMIT] = on_submit,
	[ZB_FRAME_SUBMIT_SLASH] = on_submit_slash,
	[ZB_FRAME_CALL_TOOL] = on_call_tool,
	[ZB_FRAME_CALL_TOOL_CANCEL] = on_call_tool_cancel,
	[ZB_FRAME_OPEN_PANEL] = on_open_panel,
	[ZB_FRAME_PANEL_RENDER] = on_panel_render,
	[ZB_FRAME_PANEL_CLOSE] = on_panel_close,
	[ZB_FRAME_SHUTDOWN_ACK] = zb_med_on_shutdown_ack,
};

/* Verbs that the handler asks: by name, or only after what no grant lets
 * pass. */
static bool handler_asks(enum zb_verb v)
{
	return v == ZB_VERB_SLASH || v == ZB_VERB_CALL_TOOL ||
	       v == ZB_VERB_SUBMIT || v == ZB_VERB_COUNT;
}

/* What to show of a frame that is refused by its verb alone. */
static void asked_of(struct zb_mediator *m, const struct zb_view *v)
{
	static const char *const fields[] = {"text", "message", "name",
					     "panel_id", "id"};

	zb_buf_clear(&m->raw);
	for (size_t i = 0; i < ZB_ARRAY_LEN(fields); i++)
		if (zb_proto_field(v->top.shape, fields[i],
				   strlen(fields[i])) >= 0 &&
		    zb_med_name(m, &v->top, fields[i]))
			return;
}

/* The frames of a start, once, and replies: not counted. Whether a reply is
 * one turns out when it claims its call. */
static bool is_solicited(const struct zb_mediator *m,
			 const struct zb_frame_row *row)
{
	return row->reply || (row->id == ZB_FRAME_HELLO && !m->hello) ||
	       (row->id == ZB_FRAME_READY && !m->ready);
}

static bool is_registration(const struct zb_frame_row *row)
{
	return row->id == ZB_FRAME_REGISTER_COMMAND ||
	       row->id == ZB_FRAME_REGISTER_TOOL;
}

/* Is this a registration whose name must be on a list, and has it a name that
 * could be? (If not, the handler refuses it for that.) */
static bool asked_by_name(const struct zb_mediator *m,
			  const struct zb_frame_row *row, bool *valid)
{
	const char *name = zb_buf_str(&m->raw);

	if (row->id == ZB_FRAME_REGISTER_COMMAND)
		*valid = zb_command_name_valid(name, m->raw.len);
	else if (row->id == ZB_FRAME_REGISTER_TOOL)
		*valid = zb_tool_name_valid(name, m->raw.len);
	else
		return false;
	return m->plan->scope.verbs[row->verb].is_list;
}

/* The verb of a row, unless the handler asks. A list in place of `true` names
 * the commands and tools that may be registered. */
static bool verb_allows(struct zb_mediator *m, const struct zb_view *v)
{
	const struct zb_frame_row *row = v->row;
	const char *name = NULL;
	bool valid = false;

	if (handler_asks(row->verb) ||
	    (!is_registration(row) && zb_med_granted(m, row->verb, NULL)))
		return true;
	asked_of(m, v);
	if (asked_by_name(m, row, &valid)) {
		if (!valid)
			return true;
		name = zb_buf_str(&m->raw);
	}
	if (zb_med_verb(m, row->verb, name, zb_buf_str(&m->raw), m->raw.len))
		return true;
	if (row->reply)
		zb_med_spend(m);
	return false;
}

void zb_med_from_ext(struct zb_mediator *m, struct zb_view *v)
{
	const struct zb_frame_row *row = v->row;
	struct zb_med_out *o = m->out;

	if (!m->hello && row->id != ZB_FRAME_HELLO)
		return;
	zb_med_take_id(m, v);
	if (m->id.len && m->id.len < sizeof(o->id))
		memcpy(o->id, zb_buf_str(&m->id), m->id.len + 1);
	if (!is_solicited(m, row))
		zb_med_spend(m);
	if (verb_allows(m, v))
		handlers[row->id](m, v);
}
