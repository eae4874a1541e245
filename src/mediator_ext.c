/* mediator_ext.c - what an extension may say: one handler a frame type.
 *
 * A handler starts from a verdict of DROP, and may call zb_med_pass() when all
 * that the scope and the protocol ask for is there. Verbs that are lists of
 * names (slash, call_tool, events, intercept) are asked by the handler, the
 * plain ones before it runs. */
#include "mediator_internal.h"

#include "cleanup.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- small things ---- */

/* A frame that is of no use: logged, dropped. */
static void drop(struct zb_mediator *m, const char *why)
{
	zb_med_log(m, "%s: %s; dropped", m->out->type, why);
}

/* Pass a frame that nobody waits for, unless something is wrong with it. */
static bool pass_plain(struct zb_mediator *m, struct zb_view *v)
{
	if (!v->bad[0] && zb_med_pass(m, v))
		return true;
	if (!m->oom)
		drop(m, v->bad);
	return false;
}

/* FNV-1a: to see whether a definition is the same as before. */
static uint64_t hash_bytes(uint64_t h, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * UINT64_C(1099511628211);
	return h;
}

static void late_registration(struct zb_mediator *m, const char *what,
			      const char *name)
{
	struct zb_med_text t;

	if (m->ready)
		zb_med_log(m,
			   "%s \"%s\" after ready: passed on, but zot may use "
			   "it only after a reload",
			   what, zb_med_show(&t, name, strlen(name), 100));
}

/* ---- hello, ready, shutdown_ack ---- */

static void on_hello(struct zb_mediator *m, struct zb_view *v)
{
	struct zb_med_out *o = m->out;
	struct zb_med_text t;

	if (m->hello) {
		zb_med_log(m, "second hello; dropped");
		return;
	}
	if (v->bad[0] || !zb_med_pass(m, v)) {
		snprintf(o->reason, sizeof(o->reason), "hello frame: %s",
			 v->bad);
		return;
	}
	m->hello = o->is_hello = true;
	if (zb_med_name(m, &v->top, "name") && m->plan->name &&
	    strcmp(zb_buf_str(&m->raw), m->plan->name) != 0)
		zb_med_log(m,
			   "hello says \"%s\", the manifest \"%s\": the "
			   "manifest's name counts",
			   zb_med_show(&t, zb_buf_str(&m->raw), m->raw.len, 80),
			   m->plan->name);
}

static void on_ready(struct zb_mediator *m, struct zb_view *v)
{
	if (m->ready) {
		zb_med_log(m, "second ready; dropped");
		return;
	}
	m->ready = m->out->is_ready = pass_plain(m, v);
}

static void on_shutdown_ack(struct zb_mediator *m, struct zb_view *v)
{
	m->out->is_shutdown_ack = pass_plain(m, v);
}

/* ---- registrations ---- */

/* The registered command that folds to @name, or NULL. */
static const char *same_command(const struct zb_mediator *m, const char *name)
{
	for (size_t i = 0; i < m->commands.n; i++)
		if (zb_fold_equal(m->commands.v[i], strlen(m->commands.v[i]),
				  name, strlen(name)))
			return m->commands.v[i];
	return NULL;
}

static void on_register_command(struct zb_mediator *m, struct zb_view *v)
{
	zb_auto(free) char *name = NULL;
	struct zb_med_text t;
	const char *old, *shown;

	if (v->bad[0]) {
		drop(m, v->bad);
		return;
	}
	if (!zb_med_name(m, &v->top, "name") ||
	    !zb_command_name_valid(zb_buf_str(&m->raw), m->raw.len)) {
		zb_med_log(
			m,
			"command \"%s\" not registered: a name is 1 to 64 "
			"bytes without blanks, slashes or control "
			"characters",
			zb_med_show(&t, zb_buf_str(&m->raw), m->raw.len, 100));
		return;
	}
	name = zb_strdup(zb_buf_str(&m->raw));
	if (!name) {
		m->oom = true;
		return;
	}
	shown = zb_med_show(&t, name, strlen(name), 100);
	old = same_command(m, name);
	if (old && strcmp(old, name) != 0) {
		struct zb_med_text o;

		zb_med_log(m,
			   "command \"%s\" already registered as \"%s\"; "
			   "ignored",
			   shown, zb_med_show(&o, old, strlen(old), 100));
		return;
	}
	if (!old && m->commands.n >= ZB_PROTO_COMMANDS) {
		zb_med_log(m, "command \"%s\" not registered: %d are the limit",
			   shown, ZB_PROTO_COMMANDS);
		return;
	}
	if (!pass_plain(m, v))
		return;
	if (!old && zb_strv_add(&m->commands, name))
		m->oom = true;
	if (zb_command_is_builtin(name, strlen(name)))
		zb_med_log(m,
			   "command \"%s\" has the name of a built-in one, "
			   "which wins",
			   shown);
	late_registration(m, "register_command", name);
}

/* A tool that does not reach the model: recorded, since people look for it. */
static void refuse_tool(struct zb_mediator *m, const char *name,
			const char *why)
{
	struct zb_med_text t;
	const char *shown = zb_med_show(&t, name, strlen(name), 100);
	char rule[400];

	snprintf(rule, sizeof(rule), "tool not registered: %s", why);
	zb_med_log(m, "tool \"%s\" not registered: %s", shown, why);
	zb_med_refuse(m, &(struct zb_refusal){
				 .op = ZB_OP_PROTO,
				 .detail = zb_verb_name(ZB_VERB_TOOLS),
				 .asked = name,
				 .asked_len = strlen(name),
				 .target = shown,
				 .rule = rule,
				 .why_not = "the rule holds for every tool",
			 });
}

static bool is_builtin_tool(const struct zb_mediator *m, const char *name)
{
	size_t n = strlen(name);

	if (zb_tool_is_builtin(name, n))
		return true;
	for (size_t i = 0; i < m->builtin_tools.n; i++)
		if (zb_fold_equal(name, n, m->builtin_tools.v[i],
				  strlen(m->builtin_tools.v[i])))
			return true;
	return false;
}

/* A schema that a model's API would refuse takes every tool down with it: the
 * whole request fails. So the shapes that all of them ask for are checked. */
static const char *schema_fault(const struct zb_json *j)
{
	uint32_t type = zb_json_get(j, 0, "type");
	uint32_t props = zb_json_get(j, 0, "properties");
	uint32_t required = zb_json_get(j, 0, "required");

	if (type != ZB_JSON_NONE && !zb_json_is(j, type, "object"))
		return "schema.type must be \"object\"";
	if (props != ZB_JSON_NONE && j->tok[props].type != ZB_JSON_OBJECT)
		return "schema.properties must be an object";
	for (uint32_t i = props == ZB_JSON_NONE ? props
						: zb_json_first(j, props);
	     i != ZB_JSON_NONE; i = zb_json_next(j, i))
		if (j->tok[i].type != ZB_JSON_OBJECT &&
		    j->tok[i].type != ZB_JSON_TRUE &&
		    j->tok[i].type != ZB_JSON_FALSE)
			return "each of schema.properties must be an object";
	if (required != ZB_JSON_NONE && j->tok[required].type != ZB_JSON_ARRAY)
		return "schema.required must be an array";
	for (uint32_t i = required == ZB_JSON_NONE ? required
						   : zb_json_first(j, required);
	     i != ZB_JSON_NONE; i = zb_json_next(j, i))
		if (j->tok[i].type != ZB_JSON_STRING)
			return "schema.required must hold strings";
	return NULL;
}

static bool has_external_ref(const struct zb_json *j)
{
	for (uint32_t i = 1; i < j->n; i++)
		if (j->tok[i].type == ZB_JSON_STRING &&
		    zb_json_key_is(j, i, "$ref") &&
		    j->text[j->tok[i].start + 1] != '#')
			return true;
	return false;
}

static const char *check_schema(struct zb_mediator *m, const struct zb_view *v,
				const char *field)
{
	static const struct zb_json_limits limits = {.max_depth = 64,
						     .index_depth = 64,
						     .max_tokens = 8192,
						     .nul_ok = true};
	uint32_t i = zb_med_field(&v->top, field);
	const struct zb_json_tok *t;
	struct zb_json *j = &m->inner[0];
	struct zb_json_fault fault;
	const char *why;
	int rc;

	if (i == ZB_JSON_NONE)
		return NULL;
	t = &m->json.tok[i];
	rc = zb_json_scan(j, m->json.text + t->start, t->end - t->start,
			  &limits, &fault);
	/* "a" and "A" as properties are two to the model's API: only the index
	 * is missing then, and the shape is not looked at. */
	if (rc == ZB_EUSAGE && fault.kind == ZB_JSON_DUPLICATE)
		return NULL;
	if (rc == ZB_EUSAGE && fault.kind == ZB_JSON_DEPTH)
		return "schema is nested more than 64 deep";
	if (rc)
		return "schema has too many parts";
	why = schema_fault(j);
	if (!why && has_external_ref(j))
		why = "schema has a $ref outside of itself";
	return why;
}

static bool namespace_ok(struct zb_mediator *m, const struct zb_view *v)
{
	if (!zb_med_has(v, "namespace"))
		return true;
	if (!zb_med_name(m, &v->top, "namespace"))
		return false;
	for (size_t i = 0; i < m->raw.len; i++)
		if (m->raw.data[i] != '.' &&
		    !zb_tool_name_valid(m->raw.data + i, 1))
			return false;
	return true;
}

/* Is the tool anything but a plain one that the model sees at once? */
static bool is_deferred(const struct zb_view *v)
{
	uint32_t e = zb_med_field(&v->top, "exposure");
	bool other = e != ZB_JSON_NONE &&
		     !zb_json_is(v->top.json, e, "direct") &&
		     !zb_json_is(v->top.json, e, "");

	return other || zb_med_true(v, "deferred");
}

static const char *tool_fault(struct zb_mediator *m, const struct zb_view *v,
			      const char *name)
{
	const char *why;

	if (v->bad[0])
		return v->bad;
	if (!zb_tool_name_valid(name, strlen(name)))
		return "a name is [A-Za-z0-9_-]{1,64}";
	if (is_builtin_tool(m, name))
		return "a built-in tool has this name";
	if (!namespace_ok(m, v))
		return "a namespace is [A-Za-z0-9_.-]{1,64}";
	why = check_schema(m, v, "schema");
	return why ? why : check_schema(m, v, "output_schema");
}

static uint64_t tool_hash(const struct zb_view *v)
{
	static const char *const parts[] = {
		"description", "schema", "output_schema",
		"namespace_description", "namespace_instructions"};
	uint64_t h = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < ZB_ARRAY_LEN(parts); i++) {
		uint32_t tok = zb_med_field(&v->top, parts[i]);
		const struct zb_json *j = v->top.json;

		if (tok != ZB_JSON_NONE)
			h = hash_bytes(h, j->text + j->tok[tok].start,
				       j->tok[tok].end - j->tok[tok].start);
		h = hash_bytes(h, "", 1);
	}
	return h;
}

static void on_register_tool(struct zb_mediator *m, struct zb_view *v)
{
	bool named = zb_med_name(m, &v->top, "name");
	zb_auto(free) char *name = zb_strdup(named ? zb_buf_str(&m->raw) : "");
	uint64_t h = tool_hash(v);
	const char *why;
	size_t at = 0;

	if (!name) {
		m->oom = true;
		return;
	}
	while (at < m->tools.n && strcmp(m->tools.v[at], name) != 0)
		at++;
	why = tool_fault(m, v, name);
	if (!why && at >= ZB_PROTO_TOOLS)
		why = "128 tools are the limit";
	if (why) {
		refuse_tool(m, name, why);
		return;
	}
	if (is_deferred(v) &&
	    !zb_med_verb(m, ZB_VERB_DEFERRED, NULL, name, strlen(name)))
		return;
	if (!zb_med_pass(m, v)) {
		refuse_tool(m, name, v->bad);
		return;
	}
	if (at == m->tools.n && zb_strv_add(&m->tools, name))
		m->oom = true;
	else if (at < m->tools.n - 1 || m->tool_hash[at])
		zb_med_log(m, "tool \"%s\" registered again%s", name,
			   m->tool_hash[at] == h
				   ? ""
				   : ", with another description or schema");
	if (at < ZB_PROTO_TOOLS)
		m->tool_hash[at] = h;
	late_registration(m, "register_tool", name);
}

/* ---- lists of names ---- */

/* What must be granted for a capability to be told to the host. */
static bool capability_granted(const struct zb_mediator *m, const char *name)
{
	static const struct {
		const char *name;
		enum zb_verb verb;
	} caps[] = {
		{"commands", ZB_VERB_COMMANDS},
		{"tools", ZB_VERB_TOOLS},
		{"tool_cancel", ZB_VERB_TOOLS},
		{"panels", ZB_VERB_PANELS},
		{"notify", ZB_VERB_NOTIFY},
		{"submit", ZB_VERB_SUBMIT},
		{"call_tool", ZB_VERB_CALL_TOOL},
		{"submit_slash", ZB_VERB_SLASH},
		{"deferred", ZB_VERB_DEFERRED},
	};
	const struct zb_scope *s = &m->plan->scope;

	for (size_t i = 0; i < ZB_ARRAY_LEN(caps); i++)
		if (strcmp(caps[i].name, name) == 0)
			return zb_plan_verb(m->plan, caps[i].verb, NULL) ||
			       (caps[i].verb == ZB_VERB_PANELS &&
				s->verbs[ZB_VERB_PANELS].any);
	if (strcmp(name, "events") == 0)
		return zb_plan_verb(m->plan, ZB_VERB_EVENTS, NULL) ||
		       s->n_intercepts > 0;
	return false;
}

static bool keep_capability(struct zb_mediator *m, const char *name)
{
	struct zb_med_text t;

	if (capability_granted(m, name))
		return true;
	if (zb_med_once(m, "capability %s", name))
		zb_med_log(m,
			   "hello: capability \"%s\" is not granted; cut out",
			   zb_med_show(&t, name, strlen(name), 60));
	return false;
}

static bool keep_event(struct zb_mediator *m, const char *name)
{
	struct zb_med_text t;

	if (zb_plan_verb(m->plan, ZB_VERB_EVENTS, name))
		return true;
	if (!zb_med_once(m, "event %s", name))
		return false;
	zb_med_verb(m, ZB_VERB_EVENTS, name, name, strlen(name));
	zb_med_log(m, "subscribe: event \"%s\" is not granted; cut out",
		   zb_med_show(&t, name, strlen(name), 60));
	return false;
}

/* The record of something an intercept may not do. @part: "block"... */
static void refuse_intercept(struct zb_mediator *m, const char *event,
			     const char *part)
{
	zb_auto(free) char *key = zb_strf("protocol.intercept.%s", event);
	zb_auto(free) char *target = zb_strf("%s %s", event, part);
	zb_auto(free) char *rule = NULL;
	const struct zb_scope *s = &m->plan->scope;
	const char *file = NULL;

	for (size_t i = 0; i < s->n_intercepts; i++)
		if (strcmp(s->intercepts[i].event, event) == 0 &&
		    s->intercepts[i].may.n)
			file = s->intercepts[i].may.v[0].origin.file;
	if (file)
		rule = zb_strf("%s: protocol.intercept.%s does not list "
			       "\"%s\"",
			       file, event, part);
	else
		rule = zb_strf("no scope grants protocol.intercept.%s", event);
	m->oom |= !key || !target || !rule;
	zb_med_refuse(m, &(struct zb_refusal){
				 .op = ZB_OP_PROTO,
				 .detail = zb_verb_name(ZB_VERB_INTERCEPT),
				 .asked = event,
				 .asked_len = strlen(event),
				 .target = target,
				 .rule = rule,
				 .key = key,
				 .value = part,
			 });
}

static bool keep_intercept(struct zb_mediator *m, const char *event)
{
	bool prompt = strcmp(event, "before_agent_start") == 0;
	struct zb_med_text t;

	if (zb_plan_intercept(m->plan, event, NULL))
		return true;
	if (!zb_med_once(m, "intercept %s", event))
		return false;
	refuse_intercept(m, event, prompt ? "replace" : "block");
	zb_med_log(m, "subscribe: intercept of \"%s\" is not granted; cut out",
		   zb_med_show(&t, event, strlen(event), 60));
	return false;
}

static bool keep_activated(struct zb_mediator *m, const char *name)
{
	struct zb_med_text t;

	if (zb_strv_has(&m->tools, name))
		return true;
	if (zb_med_once(m, "activate %s", name))
		zb_med_log(m,
			   "activate_tools: \"%s\" is no tool of this "
			   "extension; cut out",
			   zb_med_show(&t, name, strlen(name), 60));
	return false;
}

static bool note_subscription(struct zb_mediator *m, struct zb_strv *list,
			      const char *name)
{
	if (!zb_strv_has(list, name) && list->n < ZB_PROTO_NAMES &&
	    zb_strv_add(list, name))
		m->oom = true;
	return true;
}

bool zb_med_keep_name(struct zb_mediator *m, const struct zb_frame_row *row,
		      const struct zb_field *field, const char *name,
		      size_t len)
{
	if (memchr(name, '\0', len) || len > field->max)
		return false;
	if (row->id == ZB_FRAME_HELLO)
		return keep_capability(m, name);
	if (row->id == ZB_FRAME_TOOL_RESULT)
		return keep_activated(m, name);
	if (strcmp(field->name, "events") == 0)
		return keep_event(m, name) &&
		       note_subscription(m, &m->events, name);
	return keep_intercept(m, name) &&
	       note_subscription(m, &m->intercepts, name);
}

static void on_subscribe(struct zb_mediator *m, struct zb_view *v)
{
	if (pass_plain(m, v) && m->ready)
		zb_med_log(m, "subscribe after ready: passed on");
}

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
	if (zb_med_name(m, &v->top, "id"))
		past = zb_calls_past(&m->calls, kind, zb_buf_str(&m->raw));
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

	if (zb_med_name(m, &v->top, "id"))
		call = zb_calls_find(&m->calls, kind, zb_buf_str(&m->raw));
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

static void note_bad(struct zb_view *v, const char *why)
{
	if (!v->bad[0])
		snprintf(v->bad, sizeof(v->bad), "%s", why);
}

/* Images are the only thing in a result that is not text. */
static const char *block_fault(struct zb_mediator *m, const struct zb_part *p)
{
	uint32_t type = zb_med_field(p, "type");
	uint32_t mime = zb_med_field(p, "mime_type");
	uint32_t data = zb_med_field(p, "data");
	const struct zb_json_tok *t;

	if (type == ZB_JSON_NONE)
		return "a content block has no \"type\"";
	if (zb_json_is(p->json, type, "text"))
		return NULL;
	if (mime == ZB_JSON_NONE || zb_json_is(p->json, mime, ""))
		return "an image has no \"mime_type\"";
	if (data == ZB_JSON_NONE)
		return "an image has no \"data\"";
	t = &p->json->tok[data];
	if (!t->escaped)
		return zb_base64_valid(p->json->text + t->start + 1,
				       t->end - t->start - 2)
			       ? NULL
			       : "an image's \"data\" is not base64";
	zb_buf_clear(&m->raw);
	m->oom |= zb_json_string(p->json, data, &m->raw) != 0;
	return zb_base64_valid(zb_buf_str(&m->raw), m->raw.len)
		       ? NULL
		       : "an image's \"data\" is not base64";
}

static void check_content(struct zb_mediator *m, struct zb_view *v)
{
	uint32_t content = zb_med_field(&v->top, "content");
	struct zb_json *j;
	int f = zb_proto_field(v->top.shape, "content", 7);

	if (content == ZB_JSON_NONE || v->bad[0] || f < 0)
		return;
	j = v->top.inner[f];
	for (uint32_t i = zb_json_first(j, 0); i != ZB_JSON_NONE;
	     i = zb_json_next(j, i)) {
		struct zb_part block = {.shape = v->top.shape->fields[f].shape,
					.json = j,
					.obj = i};
		const char *why;

		zb_med_read_part(m, v->row, &block, v->bad);
		why = block_fault(m, &block);
		if (why) {
			note_bad(v, why);
			return;
		}
	}
}

static void on_tool_result(struct zb_mediator *m, struct zb_view *v)
{
	struct zb_call *call = claim(m, v, ZB_CALL_TOOL);

	if (!call)
		return;
	check_content(m, v);
	settle(m, v, call);
}

/* ---- panels ---- */

static void open_panel(struct zb_mediator *m, const char *id)
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

/* The panel's id, copied; false if there is none of use. It names a thing on
 * the user's screen: nothing that a terminal acts on. */
static bool panel_id(struct zb_mediator *m, const struct zb_part *p,
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

	if (!v->bad[0] && (!zb_med_nested(m, v, "panel", &panel) ||
			   !panel_id(m, &panel, "id", &id)))
		note_bad(v, "no \"panel\" with an \"id\"");
	if (v->bad[0]) {
		drop(m, v->bad);
		return;
	}
	if (!sw->any && !m->calls.count[ZB_CALL_TOOL] &&
	    !m->calls.count[ZB_CALL_COMMAND]) {
		zb_auto(free) char *rule = zb_strf(
			"%s: protocol.panels is true, which opens one in reply "
			"to a command or while a tool call is open",
			sw->origin.file ? sw->origin.file : "scope");

		m->oom |= !rule;
		zb_med_refuse(m, &(struct zb_refusal){
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
	if (pass_plain(m, v))
		open_panel(m, id);
}

static void on_panel_render(struct zb_mediator *m, struct zb_view *v)
{
	if (!v->bad[0]) {
		if (!zb_med_name(m, &v->top, "panel_id")) {
			drop(m, "no \"panel_id\"");
			return;
		}
		/* A redraw after the user closed it is no offence. */
		if (!panel_is_open(m, zb_buf_str(&m->raw)))
			return;
	}
	pass_plain(m, v);
}

static void on_panel_close(struct zb_mediator *m, struct zb_view *v)
{
	if (v->bad[0] || !zb_med_name(m, &v->top, "panel_id")) {
		drop(m, v->bad[0] ? v->bad : "no \"panel_id\"");
		return;
	}
	if (!zb_strv_has(&m->panels, zb_buf_str(&m->raw)))
		return;
	if (panel_is_open(m, zb_buf_str(&m->raw)))
		m->panel_open = false;
	pass_plain(m, v);
}

/* ---- commands ---- */

/* A refusal of text that no grant would let pass. */
static void refuse_text(struct zb_mediator *m, enum zb_verb verb,
			const char *target, const char *rule,
			const char *why_not)
{
	zb_med_refuse(m, &(struct zb_refusal){
				 .op = ZB_OP_PROTO,
				 .detail = zb_verb_name(verb),
				 .asked = zb_buf_str(&m->clean),
				 .asked_len = m->clean.len,
				 .target = target,
				 .rule = rule,
				 .why_not = why_not,
			 });
}

/* May slash text pass (it is in m->clean)? Records it if not. */
static bool slash_allowed(struct zb_mediator *m)
{
	const char *text = zb_buf_str(&m->clean);
	zb_auto(free) char *name = NULL;
	zb_auto(free) char *target = NULL;
	struct zb_buf b = {0};

	m->oom |= zb_slash_name(text, m->clean.len, &b) != 0;
	name = zb_strdup(zb_buf_str(&b));
	target = zb_strf("/%s", zb_buf_str(&b));
	zb_buf_done(&b);
	if (m->oom || !name || !target) {
		m->oom = true;
		return false;
	}
	if (zb_slash_forbidden(name)) {
		refuse_text(m, ZB_VERB_SLASH, target,
			    "some commands of zot pass for no extension",
			    "/jail /unjail /cd /exit /logout /settings are "
			    "yours alone");
		return false;
	}
	if (!name[0] || memchr(text, '\n', m->clean.len)) {
		refuse_text(m, ZB_VERB_SLASH, target,
			    "slash commands pass by their name",
			    "it is not one command on one line");
		return false;
	}
	return zb_med_verb(m, ZB_VERB_SLASH, name, text, m->clean.len);
}

/* May this text reach the editor or the prompt queue, where a leading `!` or
 * `/` acts? Asked of what the extension wrote (m->raw) and of what the host
 * would get (m->clean). Records it if not. */
static bool text_allowed(struct zb_mediator *m, enum zb_verb verb)
{
	enum zb_text_kind wrote = zb_text_kind(zb_buf_str(&m->raw), m->raw.len);
	enum zb_text_kind gets =
		zb_text_kind(zb_buf_str(&m->clean), m->clean.len);

	if (wrote == ZB_TEXT_SHELL || gets == ZB_TEXT_SHELL) {
		refuse_text(m, verb, m->out->type,
			    "text that starts with `!` runs in the user's "
			    "shell",
			    "`!` commands have no grant: they are your shell");
		return false;
	}
	if (gets == ZB_TEXT_SLASH)
		return slash_allowed(m);
	if (wrote == ZB_TEXT_SLASH) {
		refuse_text(m, ZB_VERB_SLASH, m->out->type,
			    "slash commands pass by their name",
			    "characters that do not show stand before it");
		return false;
	}
	return true;
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
	if (!zb_med_verb(m, a->verb, tool, tool ? tool : zb_buf_str(&m->clean),
			 tool ? strlen(tool) : m->clean.len))
		return false;
	return a->verb != ZB_VERB_INSERT || text_allowed(m, a->verb);
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

static void on_command_response(struct zb_mediator *m, struct zb_view *v)
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
	    zb_med_nested(m, v, "open_panel", &p) &&
	    !panel_id(m, &p, "id", &panel))
		note_bad(v, "\"open_panel\" has no \"id\"");
	settle(m, v, call);
	if (panel && m->out->verdict != ZB_MED_DROP)
		open_panel(m, panel);
}

/* ---- intercepts ---- */

/* Parts of an answer and what the scope must list for them. */
static bool part_allowed(struct zb_mediator *m, const struct zb_call *call,
			 const char *part)
{
	if (zb_plan_intercept(m->plan, call->event, part))
		return true;
	refuse_intercept(m, call->event, part);
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
		note_bad(v, why);
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

static void on_intercept_response(struct zb_mediator *m, struct zb_view *v)
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

/* ---- submits ---- */

static void on_submit(struct zb_mediator *m, struct zb_view *v)
{
	enum zb_text_kind kind;

	if (v->bad[0] || !zb_med_text(m, &v->top, "text")) {
		drop(m, v->bad[0] ? v->bad : "no \"text\"");
		return;
	}
	kind = zb_text_kind(zb_buf_str(&m->clean), m->clean.len);
	if (kind == ZB_TEXT_BLANK)
		return; /* the host ignores it too */
	if (!text_allowed(m, ZB_VERB_SUBMIT))
		return;
	if (!m->calls.count[ZB_CALL_COMMAND] && !zb_med_submit_budget(m))
		return;
	pass_plain(m, v);
}

static void on_submit_slash(struct zb_mediator *m, struct zb_view *v)
{
	enum zb_text_kind kind;

	if (v->bad[0] || !zb_med_text(m, &v->top, "text")) {
		drop(m, v->bad[0] ? v->bad : "no \"text\"");
		return;
	}
	kind = zb_text_kind(zb_buf_str(&m->clean), m->clean.len);
	if (kind == ZB_TEXT_PLAIN || kind == ZB_TEXT_BLANK) {
		drop(m, "not a slash command");
		return;
	}
	if (!text_allowed(m, ZB_VERB_SLASH))
		return;
	if (!m->calls.count[ZB_CALL_COMMAND] && !zb_med_submit_budget(m))
		return;
	pass_plain(m, v);
}

/* ---- call_tool ---- */

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

	if (zb_med_name(m, &v->top, "id") && m->raw.len && m->raw.len <= 128)
		id = zb_strdup(zb_buf_str(&m->raw));
	if (!id) {
		drop(m, "no usable \"id\"");
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
	rc = zb_calls_open(&m->calls, ZB_CALL_OWN, id, "", name, m->now_ms);
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
		pass_plain(m, v);
	else
		drop(m, "no such call is open");
}

/* ---- dispatch ---- */

static void on_plain(struct zb_mediator *m, struct zb_view *v)
{
	pass_plain(m, v);
}

static void (*const handlers[ZB_FRAME_COUNT])(struct zb_mediator *,
					      struct zb_view *) = {
	[ZB_FRAME_HELLO] = on_hello,
	[ZB_FRAME_REGISTER_COMMAND] = on_register_command,
	[ZB_FRAME_REGISTER_TOOL] = on_register_tool,
	[ZB_FRAME_READY] = on_ready,
	[ZB_FRAME_SUBSCRIBE] = on_subscribe,
	[ZB_FRAME_TOOL_RESULT] = on_tool_result,
	[ZB_FRAME_COMMAND_RESPONSE] = on_command_response,
	[ZB_FRAME_INTERCEPT_RESPONSE] = on_intercept_response,
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
	[ZB_FRAME_SHUTDOWN_ACK] = on_shutdown_ack,
};

/* Verbs that are asked by name, by the handler. */
static bool by_name(enum zb_verb v)
{
	return v == ZB_VERB_SLASH || v == ZB_VERB_CALL_TOOL ||
	       v == ZB_VERB_COUNT;
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

/* Frames that are part of starting or ending, or that answer: not counted. */
static bool is_solicited(const struct zb_frame_row *row)
{
	return row->reply || row->id == ZB_FRAME_HELLO ||
	       row->id == ZB_FRAME_READY || row->id == ZB_FRAME_SHUTDOWN_ACK;
}

void zb_med_from_ext(struct zb_mediator *m, struct zb_view *v)
{
	const struct zb_frame_row *row = v->row;
	struct zb_med_out *o = m->out;

	if (!m->hello && row->id != ZB_FRAME_HELLO)
		return;
	if (zb_proto_field(&row->shape, "id", 2) >= 0 &&
	    zb_med_name(m, &v->top, "id") && m->raw.len < sizeof(o->id))
		memcpy(o->id, zb_buf_str(&m->raw), m->raw.len + 1);
	if (!is_solicited(row) || (row->id == ZB_FRAME_READY && m->ready))
		zb_med_spend(m);
	if (!by_name(row->verb)) {
		asked_of(m, v);
		if (!zb_med_verb(m, row->verb, NULL, zb_buf_str(&m->raw),
				 m->raw.len))
			return;
	}
	handlers[row->id](m, v);
}
