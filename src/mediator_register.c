/* mediator_register.c - how an extension introduces itself: hello, commands,
 * tools, subscriptions. Names it takes are names that people type and models
 * call, so they are checked here, once. */
#include "mediator_internal.h"

#include "cleanup.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void zb_med_on_hello(struct zb_mediator *m, struct zb_view *v)
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

void zb_med_on_ready(struct zb_mediator *m, struct zb_view *v)
{
	if (m->ready) {
		zb_med_log(m, "second ready; dropped");
		return;
	}
	m->ready = m->out->is_ready = zb_med_pass_plain(m, v);
}

void zb_med_on_shutdown_ack(struct zb_mediator *m, struct zb_view *v)
{
	m->out->is_shutdown_ack = zb_med_pass_plain(m, v);
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

/* A name that the host would take, and that is none: m->raw. */
static void refuse_command(struct zb_mediator *m)
{
	static const char why[] = "a name is 1 to 64 bytes without blanks, "
				  "slashes or control characters";
	struct zb_med_text t;
	const char *shown =
		zb_med_show(&t, zb_buf_str(&m->raw), m->raw.len, 100);
	char rule[300];

	snprintf(rule, sizeof(rule), "command not registered: %s", why);
	zb_med_log(m, "command \"%s\" not registered: %s", shown, why);
	zb_med_refuse(m, &(struct zb_med_refusal){
				 .op = ZB_OP_PROTO,
				 .detail = zb_verb_name(ZB_VERB_COMMANDS),
				 .asked = zb_buf_str(&m->raw),
				 .asked_len = m->raw.len,
				 .target = shown[0] ? shown : "(no name)",
				 .rule = rule,
				 .why_not = "the rule holds for every command",
			 });
}

void zb_med_on_register_command(struct zb_mediator *m, struct zb_view *v)
{
	zb_auto(free) char *name = NULL;
	struct zb_med_text t;
	const char *old, *shown;

	if (v->bad[0]) {
		zb_med_drop(m, v->bad);
		return;
	}
	if (!zb_med_name(m, &v->top, "name") ||
	    !zb_command_name_valid(zb_buf_str(&m->raw), m->raw.len)) {
		refuse_command(m);
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
	if (!zb_med_pass_plain(m, v))
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
	zb_med_refuse(m, &(struct zb_med_refusal){
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

/* A name of a type, or a list of them; "int" is none, though often meant. */
static bool is_type(const struct zb_json *j, uint32_t i)
{
	static const char *const names[] = {"string",  "number", "integer",
					    "boolean", "object", "array",
					    "null"};

	if (j->tok[i].type == ZB_JSON_ARRAY) {
		for (uint32_t k = zb_json_first(j, i); k != ZB_JSON_NONE;
		     k = zb_json_next(j, k))
			if (j->tok[k].type != ZB_JSON_STRING || !is_type(j, k))
				return false;
		return true;
	}
	for (size_t n = 0; n < ZB_ARRAY_LEN(names); n++)
		if (zb_json_is(j, i, names[n]))
			return true;
	return false;
}

static const char *property_fault(const struct zb_json *j, uint32_t i)
{
	enum zb_json_type t = j->tok[i].type;
	uint32_t type =
		t == ZB_JSON_OBJECT ? zb_json_get(j, i, "type") : ZB_JSON_NONE;

	if (t != ZB_JSON_OBJECT && t != ZB_JSON_TRUE && t != ZB_JSON_FALSE)
		return "each of schema.properties must be an object";
	if (type != ZB_JSON_NONE && !is_type(j, type))
		return "the type of a property must be one that JSON Schema "
		       "knows";
	return NULL;
}

/* A schema that a model's API would refuse takes every tool down with it: the
 * whole request fails. So the shapes that all of them ask for are checked. */
static const char *schema_fault(const struct zb_json *j)
{
	uint32_t type = zb_json_get(j, 0, "type");
	uint32_t props = zb_json_get(j, 0, "properties");
	uint32_t required = zb_json_get(j, 0, "required");
	const char *why = NULL;

	if (type != ZB_JSON_NONE && !zb_json_is(j, type, "object"))
		return "schema.type must be \"object\"";
	if (props != ZB_JSON_NONE && j->tok[props].type != ZB_JSON_OBJECT)
		return "schema.properties must be an object";
	for (uint32_t i = props == ZB_JSON_NONE ? props
						: zb_json_first(j, props);
	     i != ZB_JSON_NONE && !why; i = zb_json_next(j, i))
		why = property_fault(j, i);
	if (why)
		return why;
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

void zb_med_on_register_tool(struct zb_mediator *m, struct zb_view *v)
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
void zb_med_refuse_intercept(struct zb_mediator *m, const char *event,
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
	zb_med_refuse(m, &(struct zb_med_refusal){
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
	zb_med_refuse_intercept(m, event, prompt ? "replace" : "block");
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

void zb_med_on_subscribe(struct zb_mediator *m, struct zb_view *v)
{
	if (zb_med_pass_plain(m, v) && m->ready)
		zb_med_log(m, "subscribe after ready: passed on");
}
