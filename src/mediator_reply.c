/* mediator_reply.c - answers to the host's questions: results of tools, what a
 * command does, what an intercept decides. A reply must claim the open call it
 * is for; one that is refused is answered in its place, so that nobody waits.
 */
#include "mediator_internal.h"

#include "cleanup.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- replies ---- */

/* The id of a reply as its raw JSON, for messages. */
static const char *show_id(struct zb_mediator *m, const struct zb_view *v,
			   struct zb_med_text *t)
{
	uint32_t i = zb_med_field(&v->top, "id");
	const struct zb_json_tok *tok = &v->top.json->tok[i];

	return zb_med_show(t, m->line + tok->start, tok->end - tok->start, 80);
}

/* A reply that answers no open call. */
static void unclaimed(struct zb_mediator *m, const struct zb_view *v,
		      enum zb_call_kind kind)
{
	const struct zb_call *past = NULL;
	struct zb_med_text t;
	const char *id, *type = v->row->type;

	if (!zb_med_has(v, "id")) {
		if (zb_med_once(m, "reply %s without id", type))
			zb_med_log(m, "%s without an id; dropped", type);
		return;
	}
	id = show_id(m, v, &t);
	if (m->id.len)
		past = zb_calls_past(&m->calls, kind, zb_buf_str(&m->id));
	if (!zb_med_once(m, "reply %s %d %s", type,
			 past ? (int)past->state : -1, id))
		return;
	if (!past)
		zb_med_log(m, "%s for unknown id %s; dropped", type, id);
	else if (past->state == ZB_CALL_EXPIRED)
		zb_med_log(m, "late %s for %s (%.1f s overdue); dropped", type,
			   id, (double)(m->now_ms - past->closed_ms) / 1000);
	else
		zb_med_log(m, "second %s for %s; dropped", type, id);
}

static struct zb_call *claim(struct zb_mediator *m, const struct zb_view *v,
			     enum zb_call_kind kind)
{
	struct zb_call *call = NULL;

	if (m->id.len)
		call = zb_calls_find(&m->calls, kind, zb_buf_str(&m->id));
	if (!call) {
		zb_med_spend(m);
		unclaimed(m, v, kind);
	}
	return call;
}

/* Pass the reply and close its call, or refuse it. */
static void settle(struct zb_mediator *m, struct zb_view *v,
		   struct zb_call *call)
{
	if (v->bad[0] || !zb_med_pass(m, v)) {
		zb_med_refuse_reply(m, call, v->bad);
		return;
	}
	m->out->is_reply = true;
	zb_calls_close(&m->calls, call, ZB_CALL_ANSWERED, m->now_ms);
}

void zb_med_note_bad(struct zb_view *v, const char *why)
{
	if (!v->bad[0])
		snprintf(v->bad, sizeof(v->bad), "%s", why);
}

static bool is_base64(struct zb_mediator *m, const struct zb_json *j,
		      uint32_t i)
{
	const struct zb_json_tok *t = &j->tok[i];

	if (!t->escaped)
		return zb_base64_valid(j->text + t->start + 1,
				       t->end - t->start - 2);
	zb_buf_clear(&m->raw);
	m->oom |= zb_json_string(j, i, &m->raw) != 0;
	return zb_base64_valid(zb_buf_str(&m->raw), m->raw.len);
}

/* Images are the only thing in a result that is not text. */
static const char *block_fault(struct zb_mediator *m, const struct zb_part *p)
{
	uint32_t type = zb_med_field(p, "type");
	uint32_t data = zb_med_field(p, "data");
	uint32_t mime;

	if (type == ZB_JSON_NONE)
		return "a content block has no \"type\"";
	if (zb_json_is(p->json, type, "text"))
		return data == ZB_JSON_NONE || zb_json_is(p->json, data, "")
			       ? NULL
			       : "a text block has \"data\"";
	mime = zb_med_field(p, "mime_type");
	if (mime == ZB_JSON_NONE || zb_json_is(p->json, mime, ""))
		return "an image has no \"mime_type\"";
	if (data == ZB_JSON_NONE)
		return "an image has no \"data\"";
	return is_base64(m, p->json, data)
		       ? NULL
		       : "an image's \"data\" is not base64";
}

static void check_content(struct zb_mediator *m, struct zb_view *v)
{
	struct zb_json *j;
	int f = zb_proto_field(v->top.shape, "content", 7);

	if (f < 0 || v->top.tok[f] == ZB_JSON_NONE || v->bad[0])
		return;
	j = v->top.inner[f];
	for (uint32_t i = zb_json_first(j, 0); i != ZB_JSON_NONE;
	     i = zb_json_next(j, i)) {
		struct zb_part block;
		const char *why;

		zb_med_part(&block, v->top.shape->fields[f].shape, j, i, 0);
		why = block_fault(m, &block);
		if (why) {
			zb_med_note_bad(v, why);
			return;
		}
	}
}

void zb_med_on_tool_result(struct zb_mediator *m, struct zb_view *v)
{
	struct zb_call *call = claim(m, v, ZB_CALL_TOOL);

	if (!call)
		return;
	check_content(m, v);
	settle(m, v, call);
}

/* ---- commands ---- */

/* A refusal of text that no grant would let pass. */
static void refuse_text(struct zb_mediator *m, enum zb_verb verb,
			const char *target, const char *rule,
			const char *why_not)
{
	zb_med_refuse(m, &(struct zb_med_refusal){
				 .op = ZB_OP_PROTO,
				 .detail = zb_verb_name(verb),
				 .asked = zb_buf_str(&m->clean),
				 .asked_len = m->clean.len,
				 .target = target,
				 .rule = rule,
				 .why_not = why_not,
			 });
}

/* Why no grant lets this slash command pass (its text is in m->clean), or
 * NULL. */
static const char *slash_fault(const struct zb_mediator *m, const char *name)
{
	if (zb_slash_forbidden(name))
		return "/jail /unjail /cd /exit /logout /settings are yours "
		       "alone";
	if (!name[0] || memchr(zb_buf_str(&m->clean), '\n', m->clean.len))
		return "it is not one command on one line";
	return NULL;
}

/* What no grant lets pass comes first: a record must not advise one that would
 * not help. Then the verb, then the command's name. */
static bool text_allowed(struct zb_mediator *m, enum zb_verb verb,
			 const char *slash)
{
	const char *text = zb_buf_str(&m->clean);
	const char *fault = slash ? slash_fault(m, slash) : NULL;

	if (fault) {
		zb_auto(free) char *target = zb_strf("/%s", slash);

		m->oom |= !target;
		refuse_text(m, ZB_VERB_SLASH, target,
			    "slash commands pass one at a time, by name, and "
			    "not all of them",
			    fault);
		return false;
	}
	if (verb != ZB_VERB_SLASH &&
	    !zb_med_verb(m, verb, NULL, text, m->clean.len))
		return false;
	return !slash ||
	       zb_med_verb(m, ZB_VERB_SLASH, slash, text, m->clean.len);
}

bool zb_med_text_allowed(struct zb_mediator *m, enum zb_verb verb)
{
	enum zb_text_kind wrote = zb_text_kind(zb_buf_str(&m->raw), m->raw.len);
	enum zb_text_kind gets =
		zb_text_kind(zb_buf_str(&m->clean), m->clean.len);
	struct zb_buf name = {0};
	bool ok;

	if (wrote == ZB_TEXT_SHELL || gets == ZB_TEXT_SHELL) {
		refuse_text(m, verb, "!",
			    "text that starts with `!` runs in the user's "
			    "shell",
			    "`!` commands have no grant: they are your shell");
		return false;
	}
	if (gets != ZB_TEXT_SLASH && wrote == ZB_TEXT_SLASH) {
		refuse_text(m, ZB_VERB_SLASH, "/",
			    "slash commands pass by their name",
			    "characters that do not show stand before it");
		return false;
	}
	if (gets == ZB_TEXT_SLASH)
		m->oom |= zb_slash_name(zb_buf_str(&m->clean), m->clean.len,
					&name) != 0;
	ok = !m->oom &&
	     text_allowed(m, verb,
			  gets == ZB_TEXT_SLASH ? zb_buf_str(&name) : NULL);
	zb_buf_done(&name);
	return ok;
}

/* What an action of a command_response needs besides `commands`. */
static const struct action {
	const char *name;
	enum zb_verb verb; /* ZB_VERB_COUNT: nothing */
	const char *field; /* what it brings along, NULL: nothing */
} actions[] = {
	{"prompt", ZB_VERB_PROMPT, "prompt"},
	{"insert", ZB_VERB_INSERT, "insert"},
	{"open_panel", ZB_VERB_PANELS, "open_panel"},
	{"tool_prompt", ZB_VERB_CALL_TOOL, "tool_args"},
	{"display", ZB_VERB_COUNT, NULL},
	{"noop", ZB_VERB_COUNT, NULL},
	{"", ZB_VERB_COUNT, NULL},
};

static const struct action *action_of(const struct zb_view *v)
{
	uint32_t tok = zb_med_field(&v->top, "action");

	for (size_t i = 0; tok != ZB_JSON_NONE && i < ZB_ARRAY_LEN(actions);
	     i++)
		if (zb_json_is(v->top.json, tok, actions[i].name))
			return &actions[i];
	return &actions[ZB_ARRAY_LEN(actions) - 1];
}

/* Fields of other actions mean nothing now, and may mean something to a newer
 * host: they go. */
static void cut_other_actions(struct zb_mediator *m, struct zb_view *v,
			      const struct action *a)
{
	bool tool = a->verb == ZB_VERB_CALL_TOOL;

	for (size_t i = 0; i < ZB_ARRAY_LEN(actions); i++) {
		const char *field = actions[i].field;

		if (field && &actions[i] != a)
			zb_med_cut(v, field);
	}
	if (!tool)
		zb_med_cut(v, "tool_name");
	/* tool_prompt starts a turn with its prompt. */
	if (tool && zb_med_has(v, "prompt") &&
	    zb_plan_verb(m->plan, ZB_VERB_PROMPT, NULL))
		v->top.cut &=
			~(1u << zb_proto_field(v->top.shape, "prompt", 6));
}

/* Is the action granted? If not it is recorded. */
static bool action_allowed(struct zb_mediator *m, const struct zb_view *v,
			   const struct action *a)
{
	zb_auto(free) char *tool = NULL;

	if (a->verb == ZB_VERB_COUNT)
		return true;
	if (a->verb == ZB_VERB_CALL_TOOL) {
		if (!zb_med_name(m, &v->top, "tool_name") || !m->raw.len)
			return false;
		tool = zb_strdup(zb_buf_str(&m->raw));
		if (!tool) {
			m->oom = true;
			return false;
		}
	}
	zb_buf_clear(&m->raw);
	zb_buf_clear(&m->clean);
	if (a->verb == ZB_VERB_PROMPT || a->verb == ZB_VERB_INSERT)
		zb_med_text(m, &v->top, a->field);
	if (a->verb == ZB_VERB_INSERT)
		return zb_med_text_allowed(m, a->verb);
	return zb_med_verb(m, a->verb, tool,
			   tool ? tool : zb_buf_str(&m->clean),
			   tool ? strlen(tool) : m->clean.len);
}

static void refuse_action(struct zb_mediator *m, struct zb_call *call,
			  const struct action *a)
{
	const struct zb_denial *d =
		m->out->n_denials ? &m->out->denials[m->out->n_denials - 1]
				  : NULL;
	zb_auto(free) char *why = NULL;
	struct zb_buf value = {0};

	if (d && d->grant_key && d->grant_value &&
	    zb_text_shell_quote(&value, d->grant_value) == 0)
		why = zb_strf("action \"%s\" refused; to allow: zotbox ext "
			      "allow %s %s %s",
			      a->name, m->plan->name, d->grant_key,
			      zb_buf_str(&value));
	else
		why = zb_strf("action \"%s\" refused; %s", a->name,
			      d && d->why_not ? d->why_not : "it is malformed");
	zb_buf_done(&value);
	m->oom |= !why;
	if (why)
		zb_med_refuse_reply(m, call, why);
}

void zb_med_on_command_response(struct zb_mediator *m, struct zb_view *v)
{
	struct zb_call *call = claim(m, v, ZB_CALL_COMMAND);
	const struct action *a;
	zb_auto(free) char *panel = NULL;
	struct zb_part p;

	if (!call)
		return;
	a = action_of(v);
	if (!v->bad[0] && !action_allowed(m, v, a)) {
		refuse_action(m, call, a);
		return;
	}
	cut_other_actions(m, v, a);
	if (a->verb == ZB_VERB_PANELS && !v->bad[0] &&
	    zb_med_nested(v, "open_panel", &p) &&
	    !zb_med_plain_id(m, &p, "id", &panel))
		zb_med_note_bad(v, "\"open_panel\" has no \"id\"");
	settle(m, v, call);
	if (panel && m->out->verdict != ZB_MED_DROP)
		zb_med_open_panel(m, panel);
}

/* ---- intercepts ---- */

/* Parts of an answer and what the scope must list for them. */
static bool part_allowed(struct zb_mediator *m, const struct zb_call *call,
			 const char *part)
{
	if (zb_plan_intercept(m->plan, call->event, part))
		return true;
	zb_med_refuse_intercept(m, call->event, part);
	return false;
}

static bool event_is(const struct zb_call *call, const char *event)
{
	return strcmp(call->event, event) == 0;
}

/* A field that is no part of an answer to this event goes, said once. */
static void cut_stray(struct zb_mediator *m, struct zb_view *v,
		      const struct zb_call *call, const char *field)
{
	struct zb_med_text t;

	zb_med_cut(v, field);
	if (zb_med_once(m, "stray %s %s", call->event, field))
		zb_med_log(
			m, "\"%s\" is no answer to %s; cut out", field,
			zb_med_show(&t, call->event, strlen(call->event), 60));
}

static void check_replacement(struct zb_mediator *m, struct zb_view *v,
			      const struct zb_call *call, const char *field,
			      const char *event)
{
	static const char *const known[] = {"tool_call", "turn_start",
					    "assistant_message",
					    "before_agent_start"};
	bool other = false;

	if (!zb_med_has(v, field))
		return;
	for (size_t i = 0; i < ZB_ARRAY_LEN(known); i++)
		other |= event_is(call, known[i]) &&
			 strcmp(known[i], event) != 0;
	if (other)
		cut_stray(m, v, call, field);
	else if (!part_allowed(m, call, "replace"))
		zb_med_cut(v, field);
}

static void check_modified(struct zb_mediator *m, struct zb_view *v,
			   const struct zb_call *call)
{
	static const struct zb_json_limits limits = {
		.max_depth = ZB_PROTO_DEPTH,
		.index_depth = 1,
		.max_tokens = 4096,
		.nul_ok = true,
	};
	uint32_t tok = zb_med_field(&v->top, "modified_args");
	const struct zb_json_tok *t;
	struct zb_json_fault fault;
	char part[ZB_PROTO_ID + 8];

	if (tok == ZB_JSON_NONE)
		return;
	t = &m->json.tok[tok];
	if (zb_json_scan(&m->inner[0], m->json.text + t->start,
			 t->end - t->start, &limits, &fault)) {
		char why[120];

		snprintf(why, sizeof(why), "\"modified_args\": %.90s",
			 fault.what);
		zb_med_note_bad(v, why);
		return;
	}
	if (!event_is(call, "tool_call")) {
		cut_stray(m, v, call, "modified_args");
		return;
	}
	snprintf(part, sizeof(part), "modify:%.*s", ZB_PROTO_ID, call->name);
	if (!part_allowed(m, call, part))
		zb_med_cut(v, "modified_args");
}

void zb_med_on_intercept_response(struct zb_mediator *m, struct zb_view *v)
{
	struct zb_call *call = claim(m, v, ZB_CALL_INTERCEPT);

	if (!call)
		return;
	if (!v->bad[0]) {
		if (zb_med_true(v, "block") &&
		    !part_allowed(m, call, "block")) {
			zb_med_cut(v, "block");
			zb_med_cut(v, "reason");
		}
		check_modified(m, v, call);
		check_replacement(m, v, call, "replace_text",
				  "assistant_message");
		check_replacement(m, v, call, "system_prompt",
				  "before_agent_start");
	}
	settle(m, v, call);
}
