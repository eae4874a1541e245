/* mediator.c - the protocol boundary of one extension: state, entry points,
 * and the words in which it refuses.
 *
 * Whoever speaks to the host over this protocol can make it run commands in
 * the user's shell, so the stream of frames is as much a boundary as the
 * kernel's. What passes is decided in this order, and each step may only take
 * away:
 *
 *	1. the line is one strict JSON object, its keys unique (json_scan.h);
 *	2. the first one is hello;
 *	3. its type has a row in the table, and no key only folds to a known
 *one;
 *	4. the row's verb is granted;
 *	5. fields have their types and bounds, enumerations their values;
 *	6. the handler of the type agrees: ids, names, budgets, texts;
 *	7. what is unknown or not granted is cut out, text is cleaned.
 *
 * What is left are the extension's own bytes. Where the host waits for an
 * answer that was refused, it gets the protocol's own "no" in its place.
 *
 * The other way everything passes but events that were not granted and, unless
 * granted, their content. */
#include "mediator_internal.h"

#include "cleanup.h"
#include "frame.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a line came to ---- */

/* Give back what one huge frame needed: an extension costs little for long. */
static void shrink_buf(struct zb_buf *b)
{
	if (b->cap > 65536)
		zb_buf_done(b);
}

void zb_med_out_clear(struct zb_med_out *o)
{
	for (size_t i = 0; i < o->n_denials; i++)
		zb_denial_done(&o->denials[i]);
	free(o->denials);
	o->denials = NULL;
	o->n_denials = 0;
	if (o->log.n)
		zb_strv_done(&o->log);
	shrink_buf(&o->bytes);
	shrink_buf(&o->also_upstream);
	zb_buf_clear(&o->bytes);
	zb_buf_clear(&o->also_upstream);
	o->verdict = ZB_MED_DROP;
	o->type[0] = '\0';
	o->id[0] = '\0';
	o->reason[0] = '\0';
	o->is_hello = o->is_ready = o->is_shutdown_ack = o->is_reply = false;
	o->malformed = false;
}

void zb_med_out_done(struct zb_med_out *o)
{
	if (!o)
		return;
	zb_med_out_clear(o);
	zb_strv_done(&o->log);
	zb_buf_done(&o->bytes);
	zb_buf_done(&o->also_upstream);
	*o = (struct zb_med_out){0};
}

void zb_med_log(struct zb_mediator *m, const char *fmt, ...)
{
	struct zb_buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	zb_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	if (zb_strv_take(&m->out->log, zb_buf_steal(&b)))
		m->oom = true;
	zb_buf_done(&b);
}

bool zb_med_once(struct zb_mediator *m, const char *fmt, ...)
{
	struct zb_buf b = {.max = 1024};
	va_list ap;
	bool first;

	va_start(ap, fmt);
	zb_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	first = !zb_strv_has(&m->seen, zb_buf_str(&b));
	if (first && m->seen.n < ZB_MED_SEEN &&
	    zb_strv_add(&m->seen, zb_buf_str(&b)))
		m->oom = true;
	zb_buf_done(&b);
	return first;
}

const char *zb_med_show(struct zb_med_text *t, const char *s, size_t n,
			size_t max)
{
	struct zb_buf b = {0};

	if (max > sizeof(t->s) - 4)
		max = sizeof(t->s) - 4;
	zb_text_escape(&b, s, n, max);
	snprintf(t->s, sizeof(t->s), "%s", zb_buf_str(&b));
	zb_buf_done(&b);
	return t->s;
}

static char *copy(struct zb_mediator *m, const char *s)
{
	char *p = zb_strdup(s);

	if (s && !p)
		m->oom = true;
	return p;
}

#define ASKED_MAX 120

void zb_med_refuse(struct zb_mediator *m, const struct zb_med_refusal *r)
{
	struct zb_med_out *o = m->out;
	const char *meant;
	struct zb_denial *d;

	d = realloc(o->denials, (o->n_denials + 1) * sizeof(*d));
	if (!d) {
		m->oom = true;
		return;
	}
	o->denials = d;
	d += o->n_denials++;
	*d = (struct zb_denial){
		.op = r->op,
		.by = r->op == ZB_OP_LIMIT ? ZB_BY_LIMIT : ZB_BY_MEDIATOR,
		.floor = ZB_FLOOR_NONE,
		.evidence = ZB_EV_DECIDED,
		.count = 1,
	};
	d->detail = copy(m, r->detail);
	d->target = copy(m, r->target);
	d->rule = copy(m, r->rule);
	meant = zb_scope_flag_why(r->key, r->value);
	d->grant_key = meant ? NULL : copy(m, r->key);
	d->grant_value = meant ? NULL : copy(m, r->value);
	d->why_not = copy(m, meant ? meant : r->why_not);
	if (r->asked) {
		size_t n = r->asked_len;

		if (n > ASKED_MAX)
			for (n = ASKED_MAX;
			     n && ((unsigned char)r->asked[n] & 0xc0) == 0x80;)
				n--;
		d->asked = zb_strndup(r->asked, n);
		m->oom |= !d->asked;
	}
}

/* ---- verbs ---- */

bool zb_med_granted(const struct zb_mediator *m, enum zb_verb v,
		    const char *name)
{
	const struct zb_switch *sw = &m->plan->scope.verbs[v];

	return zb_plan_verb(m->plan, v, name) ||
	       (v == ZB_VERB_PANELS && sw->any);
}

bool zb_med_verb(struct zb_mediator *m, enum zb_verb v, const char *name,
		 const char *asked, size_t asked_len)
{
	const struct zb_switch *sw = &m->plan->scope.verbs[v];
	const char *file = sw->origin.file;
	zb_auto(free) char *rule = NULL;
	zb_auto(free) char *key = NULL;
	struct zb_med_text t;

	if (zb_med_granted(m, v, name))
		return true;
	key = zb_strf("protocol.%s", zb_verb_name(v));
	if (!sw->set || !file)
		rule = zb_strf("no scope grants protocol.%s", zb_verb_name(v));
	else if (name)
		rule = zb_strf("%s: protocol.%s does not list \"%s\"", file,
			       zb_verb_name(v),
			       zb_med_show(&t, name, strlen(name), 100));
	else
		rule = zb_strf("%s: protocol.%s is false", file,
			       zb_verb_name(v));
	m->oom |= !key || !rule;
	zb_med_refuse(m, &(struct zb_med_refusal){
				 .op = ZB_OP_PROTO,
				 .detail = zb_verb_name(v),
				 .asked = asked,
				 .asked_len = asked_len,
				 .target = name ? name : m->out->type,
				 .rule = rule,
				 .key = key,
				 .value = name ? name : "true",
			 });
	return false;
}

/* ---- answers in place of refused ones ---- */

static void answer_tool(struct zb_buf *out, const char *text)
{
	zb_buf_adds(out, ",\"content\":[{\"type\":\"text\",\"text\":");
	zb_json_quote(out, text, strlen(text));
	zb_buf_adds(out, "}],\"is_error\":true}");
}

void zb_med_answer(struct zb_mediator *m, struct zb_buf *out,
		   enum zb_call_kind kind, const char *id, const char *why)
{
	static const char *const types[ZB_CALL_KINDS] = {
		"tool_result", "command_response", "event_intercept_response",
		"tool_result"};
	zb_auto(free) char *text =
		zb_strf("zotbox: extension %s: %s", m->plan->name, why);

	if (!text) {
		m->oom = true;
		return;
	}
	zb_buf_clear(out);
	zb_buf_addf(out, "{\"type\":\"%s\",\"id\":", types[kind]);
	zb_json_quote(out, id, strlen(id));
	switch (kind) {
	case ZB_CALL_TOOL:
	case ZB_CALL_OWN:
	case ZB_CALL_KINDS:
		answer_tool(out, text);
		break;
	case ZB_CALL_COMMAND:
		zb_buf_adds(out, ",\"action\":\"noop\",\"error\":");
		zb_json_quote(out, text, strlen(text));
		zb_buf_addc(out, '}');
		break;
	case ZB_CALL_INTERCEPT:
		if (m->plan->scope.on_failure_block) {
			zb_buf_adds(out, ",\"block\":true,\"reason\":");
			zb_json_quote(out, text, strlen(text));
		}
		zb_buf_addc(out, '}');
		break;
	}
	m->oom |= out->failed;
}

void zb_med_refuse_reply(struct zb_mediator *m, struct zb_call *call,
			 const char *why)
{
	struct zb_med_text t;

	m->out->verdict = ZB_MED_DROP;
	m->out->is_reply = true;
	zb_med_log(m, "%s to \"%s\" refused: %s; %s",
		   m->out->type[0] ? m->out->type : "reply",
		   zb_med_show(&t, call->id, strlen(call->id), 60), why,
		   call->kind != ZB_CALL_INTERCEPT ? "answered with an error"
		   : m->plan->scope.on_failure_block
			   ? "blocked (protocol.on_failure)"
			   : "answer ignored, allowed");
	zb_med_answer(m, &m->out->also_upstream, call->kind, call->id, why);
	zb_calls_close(&m->calls, call, ZB_CALL_ANSWERED, m->now_ms);
}

/* ---- rates ---- */

static void refill(struct zb_mediator *m)
{
	int64_t dt = m->now_ms - m->tokens_ms;
	int64_t fps = (int64_t)m->frames_per_second;
	int64_t full = ZB_MED_BUCKET > fps ? ZB_MED_BUCKET : fps;

	if (dt <= 0)
		return;
	m->tokens_ms = m->now_ms;
	full *= 1000;
	if (dt > 1000000)
		dt = 1000000;
	m->tokens += dt * fps;
	if (m->tokens >= full) {
		m->tokens = full;
		m->holding = false;
	}
}

void zb_med_spend(struct zb_mediator *m)
{
	const char *file =
		m->plan->scope.limits[ZB_LIMIT_FRAMES_PER_SECOND].origin.file;
	char rule[256], value[24];

	if (m->frames_per_second == UINT64_MAX)
		return;
	refill(m);
	m->tokens -= 1000;
	if (m->tokens >= 1000 || m->holding)
		return;
	m->holding = true;
	snprintf(rule, sizeof(rule),
		 "%.150s: frames_per_second is %" PRIu64
		 " (bucket of %d); reading waits, nothing is dropped",
		 file ? file : "limits", m->frames_per_second, ZB_MED_BUCKET);
	snprintf(value, sizeof(value), "%" PRIu64, m->frames_per_second * 2);
	zb_med_refuse(
		m, &(struct zb_med_refusal){.op = ZB_OP_LIMIT,
					    .detail = "frames",
					    .rule = rule,
					    .key = "limits.frames_per_second",
					    .value = value});
}

int64_t zb_mediator_hold_ms(struct zb_mediator *m, int64_t now_ms)
{
	int64_t fps = (int64_t)m->frames_per_second;

	if (m->frames_per_second == UINT64_MAX)
		return 0;
	m->now_ms = now_ms;
	refill(m);
	if (m->tokens >= 1000)
		return 0;
	return fps ? (1000 - m->tokens + fps - 1) / fps : 1000;
}

bool zb_med_submit_budget(struct zb_mediator *m)
{
	const struct zb_limit_value *l =
		&m->plan->scope.limits[ZB_LIMIT_SUBMITS];
	uint64_t most = zb_plan_limit(m->plan, ZB_LIMIT_SUBMITS);
	char rule[256], value[24];

	if (most == UINT64_MAX)
		return true;
	if (m->n_submits) {
		int64_t *slot = &m->submits[m->next_submit];

		if (*slot == INT64_MIN || m->now_ms - *slot >= 60000) {
			*slot = m->now_ms;
			m->next_submit = (m->next_submit + 1) % m->n_submits;
			return true;
		}
	}
	snprintf(rule, sizeof(rule),
		 "%.150s: limits.submits is %" PRIu64
		 " a minute for those that answer no command of the user",
		 l->origin.file ? l->origin.file : "limits", most);
	snprintf(value, sizeof(value), "%" PRIu64, most ? most * 2 : 20);
	zb_med_refuse(m, &(struct zb_med_refusal){.op = ZB_OP_LIMIT,
						  .detail = "submits",
						  .rule = rule,
						  .key = "limits.submits",
						  .value = value});
	return false;
}

/* ---- the machine ---- */

static int take_config(struct zb_mediator *m,
		       const struct zb_mediator_config *cfg)
{
	uint64_t most = zb_plan_limit(cfg->plan, ZB_LIMIT_SUBMITS);
	uint64_t bytes = zb_plan_limit(cfg->plan, ZB_LIMIT_FRAME_BYTES);

	m->plan = cfg->plan;
	m->data_dir = copy(m, cfg->data_dir);
	m->extension_dir = copy(m, cfg->extension_dir);
	if (cfg->builtin_tools &&
	    zb_strv_copy(&m->builtin_tools, cfg->builtin_tools))
		return ZB_ELIMIT;
	m->frame_bytes = bytes < ZB_FRAME_MAX ? (size_t)bytes : ZB_FRAME_MAX;
	m->frames_per_second =
		zb_plan_limit(cfg->plan, ZB_LIMIT_FRAMES_PER_SECOND);
	if (m->frames_per_second != UINT64_MAX &&
	    m->frames_per_second > 1000000)
		m->frames_per_second = 1000000;
	m->tokens = INT64_C(1000) * ZB_MED_BUCKET;
	m->tokens_ms = INT64_MIN / 2;
	if (most != UINT64_MAX)
		m->n_submits =
			most > ZB_MED_SUBMITS ? ZB_MED_SUBMITS : (size_t)most;
	m->submits = calloc(m->n_submits + 1, sizeof(*m->submits));
	for (size_t i = 0; m->submits && i < m->n_submits; i++)
		m->submits[i] = INT64_MIN;
	return m->oom || !m->submits ? ZB_ELIMIT : 0;
}

int zb_mediator_new(struct zb_mediator **out,
		    const struct zb_mediator_config *cfg, struct zb_error *err)
{
	struct zb_mediator *m = calloc(1, sizeof(*m));

	if (!m || take_config(m, cfg)) {
		zb_mediator_free(m);
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	}
	*out = m;
	return 0;
}

void zb_mediator_free(struct zb_mediator *m)
{
	if (!m)
		return;
	free(m->data_dir);
	free(m->extension_dir);
	zb_strv_done(&m->builtin_tools);
	zb_calls_done(&m->calls);
	zb_strv_done(&m->commands);
	zb_strv_done(&m->tools);
	zb_strv_done(&m->events);
	zb_strv_done(&m->intercepts);
	zb_strv_done(&m->panels);
	zb_strv_done(&m->seen);
	free(m->submits);
	zb_json_done(&m->json);
	for (size_t i = 0; i < ZB_MED_INNER; i++)
		zb_json_done(&m->inner[i]);
	zb_splice_done(&m->splice);
	zb_buf_done(&m->raw);
	zb_buf_done(&m->clean);
	zb_buf_done(&m->key);
	zb_buf_done(&m->quoted);
	zb_buf_done(&m->id);
	zb_buf_done(&m->name);
	zb_buf_done(&m->event);
	free(m);
}

static void begin(struct zb_mediator *m, int64_t now_ms, const char *line,
		  size_t len, struct zb_med_out *out)
{
	zb_med_out_clear(out);
	m->out = out;
	m->now_ms = now_ms;
	m->line = line;
	m->len = len;
	m->oom = false;
}

static void shrink(struct zb_json *j)
{
	if (j->n > 1024)
		zb_json_done(j);
}

static int end(struct zb_mediator *m)
{
	struct zb_med_out *o = m->out;

	shrink(&m->json);
	for (size_t i = 0; i < ZB_MED_INNER; i++)
		shrink(&m->inner[i]);
	shrink_buf(&m->raw);
	shrink_buf(&m->clean);
	shrink_buf(&m->quoted);
	shrink_buf(&m->key);
	shrink_buf(&m->id);
	shrink_buf(&m->name);
	shrink_buf(&m->event);
	if (m->splice.cap > 1024 || m->splice.bytes.cap > 65536)
		zb_splice_done(&m->splice);
	m->out = NULL;
	if (!m->oom && !o->bytes.failed && !o->also_upstream.failed)
		return 0;
	o->verdict = ZB_MED_DROP;
	return ZB_ELIMIT;
}

static bool is_blank_line(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
			return false;
	return true;
}

/* A line that is no JSON the host should see. */
static void not_json(struct zb_mediator *m, const struct zb_json_fault *f)
{
	struct zb_med_text t;

	m->out->malformed = true;
	switch (f->kind) {
	case ZB_JSON_UTF8:
		zb_med_log(m,
			   "invalid UTF-8 at byte %zu of line %" PRIu64
			   "; line dropped: \"%s\"",
			   f->offset + 1, m->lines,
			   zb_med_show(&t, m->line + f->offset,
				       m->len - f->offset, 60));
		return;
	case ZB_JSON_DEPTH:
		zb_med_log(m,
			   "JSON nesting deeper than %d at byte %zu of line "
			   "%" PRIu64 "; line dropped",
			   ZB_PROTO_DEPTH, f->offset + 1, m->lines);
		return;
	case ZB_JSON_DUPLICATE:
		m->out->malformed = false;
		zb_med_smuggled(m, NULL, f->what);
		return;
	case ZB_JSON_SYNTAX:
	case ZB_JSON_BOM:
	case ZB_JSON_NUL:
	case ZB_JSON_TRAILING:
	case ZB_JSON_TOO_MANY:
	case ZB_JSON_EMPTY:
		break;
	}
	m->not_frames++;
	zb_med_log(m,
		   "skipped line that is not a frame: \"%s\" (%s; %" PRIu64
		   " so far)",
		   zb_med_show(&t, m->line, m->len, 120), f->what,
		   m->not_frames);
}

static void not_a_frame(struct zb_mediator *m, const char *why)
{
	struct zb_json_fault f = {.kind = ZB_JSON_SYNTAX};

	snprintf(f.what, sizeof(f.what), "%s", why);
	not_json(m, &f);
}

/* Scan the line into m->json. Return: false if it is no object with a type;
 * that is said already. The type is in m->raw. */
static bool scan(struct zb_mediator *m)
{
	static const struct zb_json_limits limits = {
		.max_depth = ZB_PROTO_DEPTH,
		.index_depth = 1,
		.max_tokens = 4096,
		.nul_ok = true,
	};
	uint32_t type;
	int rc;

	rc = zb_json_scan(&m->json, m->line, m->len, &limits, &m->fault);
	if (rc == ZB_ELIMIT)
		m->oom = true;
	else if (rc)
		not_json(m, &m->fault);
	if (rc)
		return false;
	if (m->json.tok[0].type != ZB_JSON_OBJECT) {
		not_a_frame(m, "not an object");
		return false;
	}
	type = zb_json_get(&m->json, 0, "type");
	if (type == ZB_JSON_NONE || m->json.tok[type].type != ZB_JSON_STRING) {
		not_a_frame(m, type == ZB_JSON_NONE ? "no \"type\""
						    : "\"type\" is no string");
		return false;
	}
	zb_buf_clear(&m->raw);
	m->oom |= zb_json_string(&m->json, type, &m->raw) != 0;
	return !m->oom;
}

/* Does a key at the top fold to "type"? Then it is no mere noise. */
static void check_folded_type(struct zb_mediator *m)
{
	for (uint32_t i = zb_json_first(&m->json, 0); i != ZB_JSON_NONE;
	     i = zb_json_next(&m->json, i)) {
		zb_buf_clear(&m->key);
		zb_json_key(&m->json, i, &m->key);
		if (!zb_json_key_is(&m->json, i, "type") &&
		    zb_fold_equal(zb_buf_str(&m->key), m->key.len, "type", 4)) {
			zb_med_smuggled(m, NULL,
					"a key that only folds to \"type\"");
			return;
		}
	}
}

/* Is the type's text in m->raw fit to be a word in messages and records? */
static bool plain_type(const struct zb_buf *type)
{
	if (type->len < 1 || type->len > 39)
		return false;
	for (size_t i = 0; i < type->len; i++) {
		char c = type->data[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') &&
		    c != '_')
			return false;
	}
	return true;
}

static void unknown_type(struct zb_mediator *m)
{
	bool plain = plain_type(&m->raw);
	struct zb_med_text t;
	const char *shown =
		zb_med_show(&t, zb_buf_str(&m->raw), m->raw.len, 100);

	if (zb_med_once(m, "type %s", shown))
		zb_med_log(m, "unknown frame type \"%s\"; ignored", shown);
	zb_med_refuse(m,
		      &(struct zb_med_refusal){
			      .op = ZB_OP_PROTO,
			      .detail = plain ? zb_buf_str(&m->raw) : "frame",
			      .asked = m->line,
			      .asked_len = m->len,
			      .target = shown,
			      .rule = "only frame types that an extension is "
				      "known to send pass",
			      .why_not = "no permission exists for a frame of "
					 "this type",
		      });
}

static void set_type(struct zb_mediator *m)
{
	if (!plain_type(&m->raw))
		return;
	memcpy(m->out->type, m->raw.data, m->raw.len + 1);
}

/* A line of the extension that may be a frame. */
static void frame(struct zb_mediator *m)
{
	const struct zb_frame_row *row;
	struct zb_view v;

	if (!scan(m)) {
		if (m->json.n && m->json.tok[0].type == ZB_JSON_OBJECT)
			check_folded_type(m);
		zb_med_spend(m);
		return;
	}
	row = zb_proto_row(ZB_FROM_EXT, zb_buf_str(&m->raw), m->raw.len);
	if (!row) {
		set_type(m);
		unknown_type(m);
		zb_med_spend(m);
		return;
	}
	memcpy(m->out->type, row->type, row->type_len + 1);
	if (zb_med_view(m, &v, row) == ZB_VIEW_SMUGGLED)
		zb_med_spend(m);
	else
		zb_med_from_ext(m, &v);
}

static void kill_without_hello(struct zb_mediator *m)
{
	struct zb_med_out *o = m->out;
	struct zb_med_text t;

	o->verdict = ZB_MED_KILL;
	if (o->reason[0])
		return;
	snprintf(o->reason, sizeof(o->reason),
		 "first stdout line is not a hello frame: \"%s\" (stdout "
		 "carries frames only; write logs to stderr)",
		 zb_med_show(&t, m->line, m->len, 120));
}

int zb_mediator_from_ext(struct zb_mediator *m, int64_t now_ms,
			 const char *line, size_t len, struct zb_med_out *out)
{
	if (len > m->frame_bytes)
		return zb_mediator_too_long(m, now_ms, line, len, len, out);
	begin(m, now_ms, line, len, out);
	m->lines++;
	if (is_blank_line(line, len)) {
		zb_med_spend(m);
		return end(m);
	}
	frame(m);
	if (!m->hello)
		kill_without_hello(m);
	return end(m);
}

/* ---- over-long lines ---- */

static void refuse_length(struct zb_mediator *m, uint64_t total)
{
	const char *file =
		m->plan->scope.limits[ZB_LIMIT_FRAME_BYTES].origin.file;
	char rule[256], asked[64], most[24];

	snprintf(asked, sizeof(asked), "a line of %" PRIu64 " bytes", total);
	snprintf(rule, sizeof(rule), "%.150s: limits.frame_bytes is %zu",
		 file ? file : "limits", m->frame_bytes);
	snprintf(most, sizeof(most), "%u", ZB_FRAME_MAX);
	zb_med_refuse(
		m, &(struct zb_med_refusal){
			   .op = ZB_OP_LIMIT,
			   .detail = "frame_bytes",
			   .asked = asked,
			   .asked_len = strlen(asked),
			   .target = m->out->type[0] ? m->out->type : NULL,
			   .rule = rule,
			   .key = total <= ZB_FRAME_MAX ? "limits.frame_bytes"
							: NULL,
			   .value = total <= ZB_FRAME_MAX ? most : NULL,
			   .why_not = total <= ZB_FRAME_MAX
					      ? NULL
					      : "zot's reader takes no "
						"longer line",
		   });
}

/* The kind of call that a frame of this type answers, or ZB_CALL_KINDS. */
static enum zb_call_kind answers(const char *type)
{
	if (strcmp(type, "tool_result") == 0)
		return ZB_CALL_TOOL;
	if (strcmp(type, "command_response") == 0)
		return ZB_CALL_COMMAND;
	if (strcmp(type, "event_intercept_response") == 0)
		return ZB_CALL_INTERCEPT;
	return ZB_CALL_KINDS;
}

/* The call that an over-long line of @kind meant: by its id, or, if the id
 * stands behind what was kept, the only one that is open. */
static struct zb_call *meant(struct zb_mediator *m, enum zb_call_kind kind)
{
	char id[ZB_PROTO_ID + 1];

	if (kind == ZB_CALL_KINDS)
		return NULL;
	if (zb_med_peek_string(m->line, m->len, "id", id, sizeof(id)))
		return zb_calls_find(&m->calls, kind, id);
	if (m->calls.count[kind] != 1)
		return NULL;
	for (size_t i = 0; i < m->calls.n_open; i++)
		if (m->calls.open[i].kind == kind)
			return &m->calls.open[i];
	return NULL;
}

static void too_long(struct zb_mediator *m, uint64_t total)
{
	struct zb_med_out *o = m->out;
	char type[40] = "", id[128] = "", why[128];
	struct zb_call *call;

	zb_med_peek_string(m->line, m->len, "type", type, sizeof(type));
	if (zb_proto_row(ZB_FROM_EXT, type, strlen(type)))
		memcpy(o->type, type, sizeof(type));
	if (zb_med_peek_string(m->line, m->len, "id", id, sizeof(id)))
		memcpy(o->id, id, sizeof(id));
	snprintf(why, sizeof(why),
		 "line of %" PRIu64 " bytes is longer than %zu", total,
		 m->frame_bytes);
	refuse_length(m, total);
	zb_med_log(m, "%s; dropped", why);
	call = meant(m, answers(o->type));
	if (call) {
		snprintf(o->id, sizeof(o->id), "%s",
			 strlen(call->id) < sizeof(o->id) ? call->id : "");
		zb_med_refuse_reply(m, call, why);
		return;
	}
	zb_med_spend(m);
	if (strcmp(o->type, "call_tool") == 0 && o->id[0]) {
		zb_med_answer(m, &o->bytes, ZB_CALL_OWN, o->id, why);
		o->verdict = ZB_MED_REPLY;
	}
}

int zb_mediator_too_long(struct zb_mediator *m, int64_t now_ms,
			 const char *head, size_t len, uint64_t total,
			 struct zb_med_out *out)
{
	begin(m, now_ms, head, len, out);
	m->lines++;
	too_long(m, total);
	if (!m->hello)
		kill_without_hello(m);
	return end(m);
}

/* ---- the host's side and the owner's questions ---- */

int zb_mediator_from_host(struct zb_mediator *m, int64_t now_ms,
			  const char *line, size_t len, struct zb_med_out *out)
{
	begin(m, now_ms, line, len, out);
	zb_med_from_host(m);
	return end(m);
}

void zb_mediator_expire(struct zb_mediator *m, int64_t now_ms, const char *id)
{
	static const enum zb_call_kind kinds[] = {ZB_CALL_TOOL, ZB_CALL_COMMAND,
						  ZB_CALL_INTERCEPT};

	for (size_t i = 0; i < ZB_ARRAY_LEN(kinds); i++) {
		struct zb_call *c = zb_calls_find(&m->calls, kinds[i], id);

		if (c)
			zb_calls_close(&m->calls, c, ZB_CALL_EXPIRED, now_ms);
	}
}

bool zb_mediator_open_call(const struct zb_mediator *m, size_t i,
			   struct zb_med_call *out)
{
	for (size_t k = 0; k < m->calls.n_open; k++) {
		const struct zb_call *c = &m->calls.open[k];

		if (c->kind == ZB_CALL_OWN || i--)
			continue;
		*out = (struct zb_med_call){c->id, zb_call_kind_name(c->kind),
					    c->name, c->event, c->opened_ms};
		return true;
	}
	return false;
}

bool zb_mediator_panel_open(const struct zb_mediator *m)
{
	return m->panel_open;
}

const struct zb_strv *zb_mediator_events(const struct zb_mediator *m)
{
	return &m->events;
}

const struct zb_strv *zb_mediator_intercepts(const struct zb_mediator *m)
{
	return &m->intercepts;
}

const struct zb_strv *zb_mediator_commands(const struct zb_mediator *m)
{
	return &m->commands;
}

const struct zb_strv *zb_mediator_tools(const struct zb_mediator *m)
{
	return &m->tools;
}
