/* fuzz_mediator.c - whatever both sides say, what passes keeps its promises.
 *
 * The input is a conversation in the form of the transcripts (tests/unit/
 * transcripts): its first byte picks a scope, then one line each: "< LINE" of
 * the extension, "> LINE" of the host, "^ LINE" an over-long one, "@" a second
 * goes by, "x ID" gives a call up. Anything else is said by the extension. */
#include "mediator.h"

#include "check.h"
#include "cleanup.h"
#include "frame.h"
#include "json_scan.h"
#include "proto.h"
#include "text.h"

#include <string.h>

static const char *const scopes[] = {
	"{\"zotbox\":1,\"protocol\":{\"commands\":true,\"tools\":true,"
	"\"deferred\":true,\"panels\":true,\"notify\":true,\"prompt\":true,"
	"\"insert\":true,\"submit\":false,\"slash\":false,\"call_tool\":[],"
	"\"events\":[],\"event_content\":false,\"intercept\":{}}}",
	"{\"zotbox\":1,\"protocol\":{\"commands\":true,\"tools\":true,"
	"\"deferred\":true,\"panels\":\"any\",\"notify\":true,\"prompt\":true,"
	"\"insert\":true,\"submit\":true,\"slash\":[\"help\",\"model\"],"
	"\"call_tool\":[\"read\"],\"events\":[\"turn_end\",\"tool_call\"],"
	"\"event_content\":false,\"intercept\":{\"tool_call\":[\"block\","
	"\"modify:t\"],\"assistant_message\":[\"replace\"]},"
	"\"on_failure\":\"block\"},\"limits\":{\"submits\":5}}",
	"{\"zotbox\":1,\"protocol\":{}}",
};

static struct zb_plan plans[ZB_ARRAY_LEN(scopes)];

static void must(bool ok, const char *what, const char *line, size_t len)
{
	if (ok)
		return;
	fprintf(stderr, "broken: %s\n%.*s\n", what, (int)len, line);
	abort();
}

static void load_plans(void)
{
	for (size_t i = 0; !plans[0].name && i < ZB_ARRAY_LEN(scopes); i++) {
		struct zb_error err = {0};
		const char *s = scopes[i];

		if (zb_scope_parse(&plans[i].scope, "scope.json", s, strlen(s),
				   NULL, &err))
			abort();
	}
	for (size_t i = 0; i < ZB_ARRAY_LEN(scopes); i++)
		if (!plans[i].name)
			plans[i].name = zb_strdup("weather");
}

/* ---- promises ---- */

static void text_is_clean(const struct zb_json *j, uint32_t i)
{
	struct zb_buf raw = {0}, clean = {0};
	bool changed = false;

	zb_json_string(j, i, &raw);
	zb_text_clean(&clean, zb_buf_str(&raw), raw.len, true, &changed);
	must(!changed, "text that a terminal would act on", j->text, j->len);
	zb_buf_done(&raw);
	zb_buf_done(&clean);
}

/* Text that reaches the editor or the prompt queue. */
static void text_is_harmless(const struct zb_plan *plan,
			     const struct zb_json *j, uint32_t i)
{
	struct zb_buf text = {0}, name = {0};
	enum zb_text_kind kind;

	zb_json_string(j, i, &text);
	kind = zb_text_kind(zb_buf_str(&text), text.len);
	must(kind != ZB_TEXT_SHELL, "a shell command", j->text, j->len);
	if (kind == ZB_TEXT_SLASH) {
		zb_slash_name(zb_buf_str(&text), text.len, &name);
		must(zb_plan_verb(plan, ZB_VERB_SLASH, zb_buf_str(&name)) &&
			     !zb_slash_forbidden(zb_buf_str(&name)),
		     "a slash command", j->text, j->len);
	}
	zb_buf_done(&text);
	zb_buf_done(&name);
}

static void object_is_known(const struct zb_json *j, uint32_t obj,
			    const struct zb_shape *shape)
{
	for (uint32_t i = zb_json_first(j, obj); i != ZB_JSON_NONE;
	     i = zb_json_next(j, i)) {
		const struct zb_field *f = NULL;

		for (unsigned k = 0; k < shape->n && !f; k++)
			if (zb_json_key_is(j, i, shape->fields[k].name))
				f = &shape->fields[k];
		must(f != NULL, "an unknown field", j->text, j->len);
		if (!f)
			return;
		if (f->type == ZB_FIELD_STRING && (f->flags & ZB_FIELD_TEXT) &&
		    j->tok[i].type == ZB_JSON_STRING)
			text_is_clean(j, i);
		if (f->type == ZB_FIELD_LINES)
			for (uint32_t e = zb_json_first(j, i);
			     e != ZB_JSON_NONE; e = zb_json_next(j, e))
				if (j->tok[e].type == ZB_JSON_STRING)
					text_is_clean(j, e);
		if (f->type == ZB_FIELD_SHAPE)
			object_is_known(j, i, f->shape);
		if (f->type == ZB_FIELD_BLOCKS)
			for (uint32_t e = zb_json_first(j, i);
			     e != ZB_JSON_NONE; e = zb_json_next(j, e))
				object_is_known(j, e, f->shape);
	}
}

static void verb_is_granted(const struct zb_plan *plan,
			    const struct zb_frame_row *row,
			    const struct zb_json *j)
{
	bool any = row->verb == ZB_VERB_PANELS &&
		   plan->scope.verbs[ZB_VERB_PANELS].any;

	if (row->verb != ZB_VERB_COUNT)
		must(any || zb_plan_verb(plan, row->verb, NULL),
		     "a verb that is not granted", j->text, j->len);
	if (row->id == ZB_FRAME_SUBMIT || row->id == ZB_FRAME_SUBMIT_SLASH)
		text_is_harmless(plan, j, zb_json_get(j, 0, "text"));
	if (row->id == ZB_FRAME_COMMAND_RESPONSE &&
	    zb_json_is(j, zb_json_get(j, 0, "action"), "insert"))
		text_is_harmless(plan, j, zb_json_get(j, 0, "insert"));
}

/* A line that goes to the host: the extension's, or, without @plan, an answer
 * in its place. */
static void check_up(const struct zb_plan *plan, const char *line, size_t len)
{
	const struct zb_json_limits limits = {.index_depth = 3, .nul_ok = true};
	const struct zb_frame_row *row;
	struct zb_json_fault fault;
	struct zb_json j = {0};
	struct zb_buf type = {0};
	int rc = zb_json_scan(&j, line, len, &limits, &fault);

	must(len <= ZB_FRAME_MAX, "too long", line, len);
	must(!memchr(line, '\n', len), "two lines", line, len);
	/* Values that nobody reads may hold "a" and "A", and odd keys. */
	if (rc &&
	    (fault.kind == ZB_JSON_DUPLICATE || fault.kind == ZB_JSON_NUL)) {
		zb_json_done(&j);
		return;
	}
	must(!rc && j.tok[0].type == ZB_JSON_OBJECT, "no frame", line, len);
	zb_json_string(&j, zb_json_get(&j, 0, "type"), &type);
	row = zb_proto_row(ZB_FROM_EXT, zb_buf_str(&type), type.len);
	must(row != NULL, "an unknown type", line, len);
	if (row) {
		object_is_known(&j, 0, &row->shape);
		if (plan)
			verb_is_granted(plan, row, &j);
	}
	zb_buf_done(&type);
	zb_json_done(&j);
}

/* ---- the conversation ---- */

struct talk {
	struct zb_mediator *m;
	const struct zb_plan *plan;
	struct zb_med_out out;
	int64_t now_ms;
	bool hello, dead;
};

static void check_said(struct talk *t, const char *line, size_t len,
		       size_t open_before)
{
	const struct zb_med_out *o = &t->out;
	struct zb_med_call c;
	size_t open = 0;

	while (zb_mediator_open_call(t->m, open, &c))
		open++;
	must(open <= open_before, "a call opened by itself", line, len);
	if (o->verdict == ZB_MED_PASS)
		check_up(t->plan, line, len);
	if (o->verdict == ZB_MED_CUT)
		check_up(t->plan, zb_buf_str(&o->bytes), o->bytes.len);
	if (o->also_upstream.len)
		check_up(NULL, zb_buf_str(&o->also_upstream),
			 o->also_upstream.len);
	if (o->verdict == ZB_MED_PASS || o->verdict == ZB_MED_CUT)
		must(t->hello || o->is_hello, "a frame before hello", line,
		     len);
	if (o->is_reply)
		must(open < open_before, "a reply that closed nothing", line,
		     len);
	t->hello |= o->is_hello;
	t->dead = o->verdict == ZB_MED_KILL;
}

static void from_ext(struct talk *t, const char *line, size_t len,
		     bool too_long)
{
	struct zb_med_call c;
	size_t open = 0;
	int rc;

	while (zb_mediator_open_call(t->m, open, &c))
		open++;
	rc = too_long ? zb_mediator_too_long(t->m, t->now_ms, line, len,
					     len + (1u << 22), &t->out)
		      : zb_mediator_from_ext(t->m, t->now_ms, line, len,
					     &t->out);
	must(rc == 0, "out of memory", line, len);
	check_said(t, line, len, open);
}

/* No scope here grants the content of events. */
static void check_down(const struct zb_med_out *o, const char *line, size_t len)
{
	static const struct zb_json_limits limits = {.index_depth = 1,
						     .nul_ok = true};
	struct zb_json j = {0};
	bool event = strcmp(o->type, "event") == 0;
	int rc = zb_json_scan(&j, line, len, &limits, NULL);

	must(rc == 0 || (!event && o->verdict == ZB_MED_PASS),
	     "a bad line to the extension", line, len);
	if (event)
		must(zb_json_get(&j, 0, "text") == ZB_JSON_NONE &&
			     zb_json_get(&j, 0, "tool_args") == ZB_JSON_NONE,
		     "content of an event", line, len);
	zb_json_done(&j);
}

static void from_host(struct talk *t, const char *line, size_t len)
{
	const struct zb_med_out *o = &t->out;

	must(zb_mediator_from_host(t->m, t->now_ms, line, len, &t->out) == 0,
	     "out of memory", line, len);
	if (o->verdict == ZB_MED_PASS)
		check_down(o, line, len);
	if (o->verdict == ZB_MED_CUT)
		check_down(o, zb_buf_str(&o->bytes), o->bytes.len);
	if (o->verdict == ZB_MED_REPLY)
		check_up(NULL, zb_buf_str(&o->bytes), o->bytes.len);
}

static void say(struct talk *t, const char *line, size_t len)
{
	char id[64];

	if (len && line[0] == '@') {
		t->now_ms += 1000;
	} else if (len > 2 && line[0] == 'x' && len - 2 < sizeof(id)) {
		memcpy(id, line + 2, len - 2);
		id[len - 2] = '\0';
		zb_mediator_expire(t->m, t->now_ms, id);
	} else if (len >= 2 && line[0] == '>') {
		from_host(t, line + 2, len - 2);
	} else if (len >= 2 && line[0] == '^') {
		from_ext(t, line + 2, len - 2, true);
	} else if (len >= 2 && line[0] == '<') {
		from_ext(t, line + 2, len - 2, false);
	} else {
		from_ext(t, line, len, false);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct talk t = {0};
	struct zb_mediator_config cfg = {.data_dir = "/data",
					 .extension_dir = "/ext"};
	const char *p = (const char *)data, *end = p + size;

	load_plans();
	if (!size)
		return 0;
	t.plan = &plans[(unsigned char)*p++ % ZB_ARRAY_LEN(scopes)];
	cfg.plan = t.plan;
	if (zb_mediator_new(&t.m, &cfg, NULL))
		abort();
	while (p < end && !t.dead) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		const char *stop = nl ? nl : end;

		say(&t, p, (size_t)(stop - p));
		p = stop + 1;
	}
	zb_mediator_hold_ms(t.m, t.now_ms);
	zb_mediator_free(t.m);
	zb_med_out_done(&t.out);
	return 0;
}
