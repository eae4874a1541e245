/* mediator_host.c - what the host says to an extension. It passes whole, with
 * unknown fields and unknown types: the extension may be newer than we are.
 * Rewritten: the directories in hello_ack. Held back: events that were not
 * granted, and their content unless event_content is. */
#include "mediator_internal.h"

#include "cleanup.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

static void pass(struct zb_mediator *m)
{
	m->out->verdict = ZB_MED_PASS;
}

/* Pass with the edits in m->splice. */
static void pass_edited(struct zb_mediator *m)
{
	if (!m->splice.n && !m->splice.failed) {
		pass(m);
		return;
	}
	if (zb_splice_apply(&m->splice, m->line, m->len, &m->out->bytes))
		m->oom = true;
	else
		m->out->verdict = ZB_MED_CUT;
}

/* The same of a frame that the strict scanner refuses (arguments that a model
 * made up may hold half a surrogate pair): it is looked at as far as needed. */
static bool peeked(struct zb_mediator *m, const char *name, struct zb_buf *out)
{
	char text[ZB_PROTO_ID + 1];

	if (!zb_med_peek_string(m->line, m->len, name, text, sizeof(text)))
		return false;
	m->oom |= zb_buf_adds(out, text) != 0;
	return !m->oom;
}

/* String member @name of the frame in @out; false if it is none (@out is empty
 * then), or holds a NUL. */
static bool member(struct zb_mediator *m, const char *name, struct zb_buf *out)
{
	uint32_t i;

	zb_buf_clear(out);
	if (!m->json.n)
		return peeked(m, name, out);
	i = zb_json_get(&m->json, 0, name);
	if (i == ZB_JSON_NONE || m->json.tok[i].type != ZB_JSON_STRING)
		return false;
	m->oom |= zb_json_string(&m->json, i, out) != 0;
	return !memchr(zb_buf_str(out), '\0', out->len);
}

/* ---- calls ---- */

static const char *own_answer(enum zb_call_kind kind)
{
	switch (kind) {
	case ZB_CALL_TOOL:
		return "protocol.tools is not granted";
	case ZB_CALL_COMMAND:
		return "protocol.commands is not granted";
	case ZB_CALL_INTERCEPT:
	case ZB_CALL_OWN:
	case ZB_CALL_KINDS:
		break;
	}
	return "this intercept is not granted";
}

/* The host hears no in the extension's place. */
static void reply_no(struct zb_mediator *m, enum zb_call_kind kind,
		     const char *id, const char *why)
{
	zb_med_answer(m, &m->out->bytes, kind, id, why);
	m->out->verdict = ZB_MED_REPLY;
}

static void log_open_already(struct zb_mediator *m, enum zb_call_kind kind,
			     const char *id)
{
	struct zb_med_text t;

	zb_med_log(m, "%s with id \"%s\" which is open already",
		   zb_call_kind_name(kind),
		   zb_med_show(&t, id, strlen(id), 60));
}

/* Remember the question in m->id, m->event and m->name, and pass it on.
 * @granted: may it be asked at all? */
static void ask(struct zb_mediator *m, enum zb_call_kind kind, bool granted)
{
	const char *id = zb_buf_str(&m->id);
	int rc;

	if (!granted) {
		/* Nothing of the extension failed: an allow is an allow. */
		if (kind == ZB_CALL_INTERCEPT) {
			zb_buf_adds(&m->out->bytes,
				    "{\"type\":\"event_intercept_response\","
				    "\"id\":");
			zb_json_quote(&m->out->bytes, id, strlen(id));
			zb_buf_addc(&m->out->bytes, '}');
			m->out->verdict = ZB_MED_REPLY;
			return;
		}
		reply_no(m, kind, id, own_answer(kind));
		return;
	}
	rc = zb_calls_open(&m->calls, kind, id, zb_buf_str(&m->event),
			   zb_buf_str(&m->name), m->now_ms);
	if (rc == ZB_ELIMIT) {
		reply_no(m, kind, id, "too many calls are open");
		return;
	}
	if (rc)
		log_open_already(m, kind, id);
	pass(m);
}

/* A list in place of `true` names the commands and tools there may be. */
static bool call_granted(const struct zb_mediator *m, enum zb_call_kind kind,
			 const char *name)
{
	enum zb_verb v =
		kind == ZB_CALL_TOOL ? ZB_VERB_TOOLS : ZB_VERB_COMMANDS;

	return zb_plan_verb(m->plan, v,
			    m->plan->scope.verbs[v].is_list ? name : NULL);
}

static void on_call(struct zb_mediator *m, enum zb_call_kind kind)
{
	bool intercept = kind == ZB_CALL_INTERCEPT;
	const char *event;

	member(m, intercept ? "tool_name" : "name", &m->name);
	if (!intercept || !member(m, "event", &m->event))
		zb_buf_clear(&m->event);
	event = zb_buf_str(&m->event);
	if (m->oom)
		return;
	if (!m->id.len || m->id.len > ZB_PROTO_ID)
		zb_med_log(m, "host: %s without a usable id; dropped",
			   m->out->type);
	else
		ask(m, kind,
		    intercept ? zb_plan_intercept(m->plan, event, NULL)
			      : call_granted(m, kind, zb_buf_str(&m->name)));
}

/* ---- events ---- */

/* Is this member of an event more than its bare fact? */
static bool is_content(struct zb_mediator *m, uint32_t i)
{
	enum zb_json_type type = m->json.tok[i].type;

	zb_buf_clear(&m->key);
	m->oom |= zb_json_key(&m->json, i, &m->key) != 0;
	return type == ZB_JSON_OBJECT || type == ZB_JSON_ARRAY ||
	       !zb_event_field_plain(zb_buf_str(&m->key), m->key.len);
}

static void drop_event(struct zb_mediator *m)
{
	struct zb_med_text t;
	const char *name =
		zb_med_show(&t, zb_buf_str(&m->event), m->event.len, 60);

	if (zb_med_once(m, "host event %s", name))
		zb_med_log(m, "event \"%s\" is not granted; dropped", name);
}

static void on_event(struct zb_mediator *m)
{
	struct zb_cutter c = {0};

	if (!member(m, "event", &m->event) ||
	    !zb_plan_verb(m->plan, ZB_VERB_EVENTS, zb_buf_str(&m->event))) {
		drop_event(m);
		return;
	}
	if (zb_plan_verb(m->plan, ZB_VERB_EVENT_CONTENT, NULL)) {
		pass(m);
		return;
	}
	zb_splice_clear(&m->splice);
	for (uint32_t i = zb_json_first(&m->json, 0); i != ZB_JSON_NONE;
	     i = zb_json_next(&m->json, i)) {
		const struct zb_json_tok *tok = &m->json.tok[i];

		if (is_content(m, i))
			zb_cutter_cut(&c, tok->key_start, tok->end);
		else
			zb_cutter_keep(&c, &m->splice, tok->key_start,
				       tok->end);
	}
	zb_cutter_end(&c, &m->splice);
	pass_edited(m);
}

/* ---- the rest ---- */

static const char *own_dir(const struct zb_mediator *m, uint32_t i)
{
	if (zb_json_key_is(&m->json, i, "data_dir"))
		return m->data_dir;
	if (zb_json_key_is(&m->json, i, "extension_dir"))
		return m->extension_dir;
	return NULL;
}

static void on_hello_ack(struct zb_mediator *m)
{
	zb_splice_clear(&m->splice);
	for (uint32_t i = zb_json_first(&m->json, 0); i != ZB_JSON_NONE;
	     i = zb_json_next(&m->json, i)) {
		const char *dir = own_dir(m, i);

		if (!dir)
			continue;
		zb_buf_clear(&m->quoted);
		m->oom |= zb_json_quote(&m->quoted, dir, strlen(dir)) != 0;
		zb_splice_add(&m->splice, m->json.tok[i].start,
			      m->json.tok[i].end, m->quoted.data,
			      m->quoted.len);
	}
	pass_edited(m);
}

static void on_host_panel_close(struct zb_mediator *m)
{
	if (m->panel_open && member(m, "panel_id", &m->raw) &&
	    strcmp(m->panels.v[m->panels.n - 1], zb_buf_str(&m->raw)) == 0)
		m->panel_open = false;
	pass(m);
}

static void on_call_result(struct zb_mediator *m)
{
	struct zb_call *call = NULL;

	if (m->id.len)
		call = zb_calls_find(&m->calls, ZB_CALL_OWN,
				     zb_buf_str(&m->id));
	if (call)
		zb_calls_close(&m->calls, call, ZB_CALL_ANSWERED, m->now_ms);
	pass(m);
}

static void on_command(struct zb_mediator *m)
{
	on_call(m, ZB_CALL_COMMAND);
}

static void on_tool_call(struct zb_mediator *m)
{
	on_call(m, ZB_CALL_TOOL);
}

static void on_intercept(struct zb_mediator *m)
{
	on_call(m, ZB_CALL_INTERCEPT);
}

/* @whole: must have been scanned, since it is read or rewritten inside. */
static const struct {
	void (*handle)(struct zb_mediator *m);
	bool whole;
} handlers[ZB_FRAME_COUNT] = {
	[ZB_FRAME_HELLO_ACK] = {on_hello_ack, true},
	[ZB_FRAME_COMMAND_INVOKED] = {on_command, false},
	[ZB_FRAME_TOOL_CALL] = {on_tool_call, false},
	[ZB_FRAME_TOOL_CANCEL] = {pass, false},
	[ZB_FRAME_CALL_RESULT] = {on_call_result, false},
	[ZB_FRAME_EVENT] = {on_event, true},
	[ZB_FRAME_EVENT_INTERCEPT] = {on_intercept, false},
	[ZB_FRAME_PANEL_KEY] = {pass, false},
	[ZB_FRAME_PANEL_RESIZE] = {pass, false},
	[ZB_FRAME_HOST_PANEL_CLOSE] = {on_host_panel_close, false},
	[ZB_FRAME_SHUTDOWN] = {pass, false},
};

static void not_a_frame(struct zb_mediator *m, const char *why)
{
	struct zb_med_text t;

	m->out->malformed = true;
	zb_med_log(m, "host: line that is not a frame: \"%s\" (%s); dropped",
		   zb_med_show(&t, m->line, m->len, 120), why);
}

void zb_med_from_host(struct zb_mediator *m)
{
	static const struct zb_json_limits limits = {
		.max_depth = ZB_PROTO_DEPTH,
		.index_depth = 1,
		.max_tokens = 4096,
		.nul_ok = true,
	};
	const struct zb_frame_row *row;
	const char *fault = m->fault.what;
	int rc = zb_json_scan(&m->json, m->line, m->len, &limits, &m->fault);

	if (rc == ZB_ELIMIT) {
		m->oom = true;
		return;
	}
	if ((!rc && m->json.tok[0].type != ZB_JSON_OBJECT) ||
	    !member(m, "type", &m->raw)) {
		not_a_frame(m, rc ? fault : "no object with a \"type\"");
		return;
	}
	if (m->raw.len < sizeof(m->out->type))
		memcpy(m->out->type, zb_buf_str(&m->raw), m->raw.len + 1);
	row = zb_proto_row(ZB_FROM_HOST, zb_buf_str(&m->raw), m->raw.len);
	if (rc && (!row || handlers[row->id].whole)) {
		not_a_frame(m, fault);
		return;
	}
	if (!member(m, "id", &m->id))
		zb_buf_clear(&m->id);
	if (m->id.len && m->id.len < sizeof(m->out->id))
		memcpy(m->out->id, zb_buf_str(&m->id), m->id.len + 1);
	if (row)
		handlers[row->id].handle(m);
	else
		pass(m);
}
