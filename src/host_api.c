/* host_api.c - the client API as tables: a row a request, a row a frame that
 * becomes an event. */
#include "host_api.h"
#include "cleanup.h"
#include "host_frames.h"
#include "text.h"

#include <string.h>

enum kind {
	STRING,
	OBJECT,
	NUMBER, /* an integer, 1 to 2^31 - 1 */
	NAMES,	/* an array of strings */
};

static const struct {
	const char *name;
	enum kind kind;
} fields[] = {
	[ZB_API_TOKEN] = {"token", STRING},
	[ZB_API_BUILTIN_COMMANDS] = {"builtin_commands", NAMES},
	[ZB_API_BUILTIN_TOOLS] = {"builtin_tools", NAMES},
	[ZB_API_FORMAT] = {"format", STRING},
	[ZB_API_NAME] = {"name", STRING},
	[ZB_API_ARGS] = {"args", STRING}, /* of a tool_call: OBJECT */
	[ZB_API_TIMEOUT_MS] = {"timeout_ms", NUMBER},
	[ZB_API_EVENT_NAME] = {"event", STRING},
	[ZB_API_PANEL_ID] = {"panel_id", STRING},
	[ZB_API_EXTENSION] = {"extension", STRING},
	[ZB_API_KEY] = {"key", STRING},
	[ZB_API_TEXT] = {"text", STRING},
	[ZB_API_COLUMNS] = {"columns", NUMBER},
	[ZB_API_ROWS] = {"rows", NUMBER},
	[ZB_API_SINCE] = {"since", STRING},
};

#define F(name) (1u << ZB_API_##name)

/* @open: what else it has belongs to the frame it becomes. */
static const struct row {
	const char *name;
	unsigned must, may;
	bool open;
} rows[] = {
	[ZB_API_HELLO] = {"hello", 0,
			  F(TOKEN) | F(BUILTIN_COMMANDS) | F(BUILTIN_TOOLS),
			  false},
	[ZB_API_LIST_EXTENSIONS] = {"list_extensions", 0, 0, false},
	[ZB_API_LIST_COMMANDS] = {"list_commands", 0, 0, false},
	[ZB_API_LIST_TOOLS] = {"list_tools", 0, F(FORMAT), false},
	[ZB_API_INVOKE] = {"invoke", F(NAME), F(ARGS), false},
	[ZB_API_TOOL_CALL] = {"tool_call", F(NAME), F(ARGS) | F(TIMEOUT_MS),
			      false},
	[ZB_API_EVENT] = {"event", F(EVENT_NAME), 0, true},
	[ZB_API_INTERCEPT] = {"intercept", F(EVENT_NAME), 0, true},
	[ZB_API_PANEL_KEY] = {"panel_key", F(PANEL_ID) | F(KEY),
			      F(TEXT) | F(EXTENSION), false},
	[ZB_API_PANEL_CLOSE] = {"panel_close", F(PANEL_ID), F(EXTENSION),
				false},
	[ZB_API_PANEL_RESIZE] = {"panel_resize", F(PANEL_ID),
				 F(COLUMNS) | F(ROWS) | F(EXTENSION), false},
	[ZB_API_RELOAD] = {"reload", 0, F(NAME), false},
	[ZB_API_DENIALS] = {"denials", 0, F(NAME) | F(SINCE), false},
	[ZB_API_STATE] = {"state", 0, 0, false},
	[ZB_API_PING] = {"ping", 0, 0, false},
	[ZB_API_SHUTDOWN] = {"shutdown", 0, 0, false},
};

const char *zb_api_type_name(enum zb_api_type t)
{
	return rows[t].name;
}

/* ---- reading ---- */

struct reader {
	struct zb_api_request *q;
	const struct zb_json *j;
	const struct row *row;
	struct zb_error *err;
};

static int wrong(const struct reader *r, const char *field, const char *want)
{
	return zb_fail(r->err, ZB_EUSAGE, "%s: %s must be %s", r->row->name,
		       field, want);
}

static char *source(const struct zb_json *j, uint32_t i)
{
	return zb_strndup(j->text + j->tok[i].start,
			  j->tok[i].end - j->tok[i].start);
}

static enum kind kind_of(const struct reader *r, enum zb_api_field f)
{
	if (f == ZB_API_ARGS && r->q->type == ZB_API_TOOL_CALL)
		return OBJECT;
	return fields[f].kind;
}

static int take_string(struct reader *r, enum zb_api_field f, uint32_t i)
{
	struct zb_buf text = {0};
	bool nul;

	if (r->j->tok[i].type != ZB_JSON_STRING)
		return wrong(r, fields[f].name, "a string");
	zb_json_string(r->j, i, &text);
	nul = text.len && memchr(text.data, '\0', text.len);
	r->q->text[f] = text.len ? zb_buf_steal(&text) : zb_strdup("");
	zb_buf_done(&text);
	if (nul)
		return wrong(r, fields[f].name, "a string without \\u0000");
	return r->q->text[f] ? 0 : zb_fail(r->err, ZB_ELIMIT, "out of memory");
}

static int take_object(struct reader *r, enum zb_api_field f, uint32_t i)
{
	if (r->j->tok[i].type != ZB_JSON_OBJECT)
		return wrong(r, fields[f].name, "an object");
	r->q->text[f] = source(r->j, i);
	return r->q->text[f] ? 0 : zb_fail(r->err, ZB_ELIMIT, "out of memory");
}

static int take_number(struct reader *r, enum zb_api_field f, uint32_t i)
{
	int64_t n;

	if (r->j->tok[i].type != ZB_JSON_NUMBER || !zb_json_int(r->j, i, &n) ||
	    n < 1 || n > INT32_MAX)
		return wrong(r, fields[f].name,
			     "a whole number from 1 to 2147483647");
	r->q->number[f] = n;
	return 0;
}

/* The elements are below the level that is indexed: scanned on their own. */
static int take_names(struct reader *r, enum zb_api_field f, uint32_t i)
{
	static const struct zb_json_limits limits = {.index_depth = 1};
	const struct zb_json_tok *t = &r->j->tok[i];
	struct zb_json j = {0};
	bool good = t->type == ZB_JSON_ARRAY &&
		    !zb_json_scan(&j, r->j->text + t->start, t->end - t->start,
				  &limits, NULL) &&
		    j.tok[0].size <= ZB_API_NAMES;
	uint32_t k = good ? zb_json_first(&j, 0) : ZB_JSON_NONE;

	for (; good && k != ZB_JSON_NONE; k = zb_json_next(&j, k))
		good = j.tok[k].type == ZB_JSON_STRING &&
		       !zb_strv_take(&r->q->list[f], zb_json_dup_string(&j, k));
	zb_json_done(&j);
	return good ? 0
		    : wrong(r, fields[f].name, "a list of at most 256 strings");
}

static int take_field(struct reader *r, enum zb_api_field f, uint32_t i)
{
	static int (*const takers[])(struct reader *, enum zb_api_field,
				     uint32_t) = {
		[STRING] = take_string,
		[OBJECT] = take_object,
		[NUMBER] = take_number,
		[NAMES] = take_names,
	};

	if (r->j->tok[i].type == ZB_JSON_NULL)
		return 0;
	return takers[kind_of(r, f)](r, f, i);
}

/* The field that member @i is, or ZB_API_FIELDS. */
static enum zb_api_field field_of(const struct reader *r, uint32_t i)
{
	unsigned known = r->row->must | r->row->may;

	for (unsigned f = 0; f < ZB_API_FIELDS; f++)
		if (known & 1u << f && zb_json_key_is(r->j, i, fields[f].name))
			return f;
	return ZB_API_FIELDS;
}

static int refuse_member(const struct reader *r, uint32_t i)
{
	const char *known[ZB_API_FIELDS + 1] = {0};
	struct zb_buf shown = {0};
	zb_auto(free) char *key = zb_json_dup_key(r->j, i);
	const char *near;
	unsigned n = 0;

	for (unsigned f = 0; f < ZB_API_FIELDS; f++)
		if ((r->row->must | r->row->may) & 1u << f)
			known[n++] = fields[f].name;
	near = key && n ? zb_nearest(key, known) : NULL;
	zb_text_escape(&shown, key ? key : "", key ? strlen(key) : 0, 100);
	zb_fail(r->err, ZB_EUSAGE, "%s has no field \"%s\"%s%s%s", r->row->name,
		zb_buf_str(&shown), near ? " (did you mean \"" : "",
		near ? near : "", near ? "\"?)" : "");
	zb_buf_done(&shown);
	return ZB_EUSAGE;
}

static void keep_member(const struct reader *r, uint32_t i, struct zb_buf *rest)
{
	const struct zb_json_tok *t = &r->j->tok[i];

	zb_buf_addc(rest, rest->len ? ',' : '{');
	zb_buf_add(rest, r->j->text + t->key_start, t->end - t->key_start);
}

static int take_members(struct reader *r)
{
	struct zb_buf rest = {0};
	int rc = 0;

	for (uint32_t i = zb_json_first(r->j, 0); !rc && i != ZB_JSON_NONE;
	     i = zb_json_next(r->j, i)) {
		enum zb_api_field f;

		if (zb_json_key_is(r->j, i, "id") ||
		    zb_json_key_is(r->j, i, "type"))
			continue;
		f = field_of(r, i);
		if (f != ZB_API_FIELDS)
			rc = take_field(r, f, i);
		else if (r->row->open)
			keep_member(r, i, &rest);
		else
			rc = refuse_member(r, i);
	}
	zb_buf_adds(&rest, rest.len ? "}" : "{}");
	if (r->row->open)
		r->q->fields = zb_buf_steal(&rest);
	zb_buf_done(&rest);
	if (!rc && r->row->open && !r->q->fields)
		rc = zb_fail(r->err, ZB_ELIMIT, "out of memory");
	return rc;
}

static int check_required(const struct reader *r)
{
	for (unsigned f = 0; f < ZB_API_FIELDS; f++)
		if (r->row->must & 1u << f &&
		    (!r->q->text[f] || !r->q->text[f][0]))
			return zb_fail(r->err, ZB_EUSAGE,
				       "%s needs \"%s\", not empty",
				       r->row->name, fields[f].name);
	return 0;
}

static int take_id(struct reader *r)
{
	uint32_t i = zb_json_get(r->j, 0, "id");
	const struct zb_json_tok *t = i == ZB_JSON_NONE ? NULL : &r->j->tok[i];

	if (!t || t->type == ZB_JSON_NULL)
		return 0;
	if (t->type != ZB_JSON_STRING && t->type != ZB_JSON_NUMBER)
		return zb_fail(r->err, ZB_EUSAGE,
			       "id must be a string or a number");
	if (t->end - t->start > ZB_API_ID_MAX)
		return zb_fail(r->err, ZB_EUSAGE,
			       "id is longer than %d bytes of JSON",
			       ZB_API_ID_MAX);
	free(r->q->id);
	r->q->id = source(r->j, i);
	return r->q->id ? 0 : zb_fail(r->err, ZB_ELIMIT, "out of memory");
}

static int take_type(struct reader *r)
{
	const char *names[ZB_API_TYPES + 1] = {0};
	uint32_t i = zb_json_get(r->j, 0, "type");
	struct zb_buf shown = {0};
	const char *near;

	if (i == ZB_JSON_NONE || r->j->tok[i].type != ZB_JSON_STRING)
		return zb_fail(r->err, ZB_EUSAGE,
			       "a request needs a \"type\", a string");
	r->q->command = zb_json_dup_string(r->j, i);
	if (!r->q->command)
		return zb_fail(r->err, ZB_ELIMIT, "out of memory");
	for (unsigned t = 0; t < ZB_API_TYPES; t++) {
		names[t] = rows[t].name;
		if (strcmp(rows[t].name, r->q->command) != 0)
			continue;
		r->q->type = t;
		r->row = &rows[t];
		return 0;
	}
	near = zb_nearest(r->q->command, names);
	zb_text_escape(&shown, r->q->command, strlen(r->q->command), 100);
	zb_fail(r->err, ZB_EUSAGE, "unknown request \"%s\"%s%s%s",
		zb_buf_str(&shown), near ? " (did you mean \"" : "",
		near ? near : "", near ? "\"?)" : "");
	zb_buf_done(&shown);
	return ZB_EUSAGE;
}

int zb_api_read(struct zb_api_request *out, const char *line, size_t len,
		struct zb_error *err)
{
	static const struct zb_json_limits limits = {.index_depth = 1,
						     .nul_ok = true};
	struct zb_json_fault fault;
	struct zb_json j = {0};
	struct reader r = {.q = out, .j = &j, .err = err};
	int rc;

	*out = (struct zb_api_request){.id = zb_strdup("null")};
	rc = zb_json_scan(&j, line, len, &limits, &fault);
	if (rc == ZB_EUSAGE)
		zb_fail(err, rc, "malformed JSON at byte %zu: %s",
			fault.offset + 1, fault.what);
	else if (rc)
		zb_fail(err, rc, "out of memory");
	else if (j.tok[0].type != ZB_JSON_OBJECT)
		rc = zb_fail(err, ZB_EUSAGE, "a request is a JSON object");
	if (!rc)
		rc = take_id(&r);
	if (!rc)
		rc = take_type(&r);
	if (!rc)
		rc = take_members(&r);
	if (!rc)
		rc = check_required(&r);
	zb_json_done(&j);
	return rc;
}

void zb_api_request_done(struct zb_api_request *q)
{
	free(q->id);
	free(q->command);
	free(q->fields);
	for (unsigned f = 0; f < ZB_API_FIELDS; f++) {
		free(q->text[f]);
		zb_strv_done(&q->list[f]);
	}
	*q = (struct zb_api_request){0};
}

/* ---- writing ---- */

static int close_line(struct zb_buf *out)
{
	zb_buf_addc(out, '}');
	return out->failed ? ZB_ELIMIT : 0;
}

static void head(struct zb_buf *out, const char *id, const char *command)
{
	zb_buf_adds(out, "{\"type\":\"response\",\"id\":");
	zb_buf_adds(out, id ? id : "null");
	zb_buf_adds(out, ",\"command\":");
	zb_json_quote_or_null(out, command);
}

int zb_api_success(struct zb_buf *out, const char *id, const char *command,
		   const char *data)
{
	head(out, id, command);
	zb_buf_adds(out, ",\"success\":true,\"data\":");
	zb_buf_adds(out, data);
	return close_line(out);
}

const char *zb_api_code_name(enum zb_api_code code)
{
	static const char *const names[] = {
		[ZB_API_OK] = "ok",
		[ZB_API_USAGE] = "usage",
		[ZB_API_UNKNOWN] = "unknown",
		[ZB_API_TIMEOUT] = "timeout",
		[ZB_API_EXITED] = "exited",
		[ZB_API_DENIED] = "denied",
		[ZB_API_LIMIT] = "limit",
		[ZB_API_UNSUPPORTED] = "unsupported",
	};

	return names[code];
}

int zb_api_failure(struct zb_buf *out, const char *id, const char *command,
		   enum zb_api_code code, const char *text)
{
	head(out, id, command);
	zb_buf_adds(out, ",\"success\":false,\"error\":");
	zb_json_quote_or_null(out, text);
	zb_buf_addf(out, ",\"code\":\"%s\"", zb_api_code_name(code));
	return close_line(out);
}

int zb_api_event(struct zb_buf *out, const char *type, const char *extension,
		 const char *rest)
{
	size_t n = strlen(rest);

	zb_buf_addf(out, "{\"type\":\"%s\",\"extension\":", type);
	zb_json_quote_or_null(out, extension);
	if (n > 2) {
		zb_buf_addc(out, ',');
		zb_buf_add(out, rest + 1, n - 2);
	}
	return close_line(out);
}

/* ---- frames of an extension as events ---- */

/* {"AS":VALUE} from string member @key. */
static bool one_text(struct zb_buf *rest, const struct zb_json *j,
		     const char *key, const char *as)
{
	zb_auto(free) char *s = NULL;
	uint32_t i = zb_json_get(j, 0, key);

	if (i != ZB_JSON_NONE)
		s = zb_json_dup_string(j, i);
	if (!s)
		return false;
	zb_buf_addf(rest, "{\"%s\":", as);
	zb_json_quote_or_null(rest, s);
	zb_buf_addc(rest, '}');
	return true;
}

/* The panel in member @key, with its id under the name it has elsewhere. */
static bool panel(struct zb_buf *rest, const struct zb_json *j, const char *key)
{
	zb_auto(free) char *id = NULL;
	struct zb_buf body = {0};
	uint32_t i = zb_json_get(j, 0, key);
	const struct zb_json_tok *t = i == ZB_JSON_NONE ? NULL : &j->tok[i];
	bool good;

	if (!t || t->type != ZB_JSON_OBJECT)
		return false;
	id = zb_frame_string(j->text + t->start, t->end - t->start, "id");
	good = id &&
	       !zb_frame_rest(&body, j->text + t->start, t->end - t->start);
	if (good) {
		zb_buf_adds(rest, "{\"panel_id\":");
		zb_json_quote_or_null(rest, id);
		if (body.len > 2) {
			zb_buf_addc(rest, ',');
			zb_buf_add(rest, body.data + 1, body.len - 1);
		} else {
			zb_buf_addc(rest, '}');
		}
	}
	zb_buf_done(&body);
	return good;
}

/* A tool that the agent is to run, then a turn with @prompt if there is one. */
static bool tool_prompt(struct zb_buf *rest, const struct zb_json *j)
{
	static const struct {
		const char *key, *as;
		enum zb_json_type type;
	} members[] = {
		{"tool_name", "name", ZB_JSON_STRING},
		{"tool_args", "args", ZB_JSON_OBJECT},
		{"prompt", "text", ZB_JSON_STRING},
	};
	struct zb_buf frame = {0};
	bool named = false, good;

	for (size_t k = 0; k < ZB_ARRAY_LEN(members); k++) {
		uint32_t i = zb_json_get(j, 0, members[k].key);
		const struct zb_json_tok *t;

		if (i == ZB_JSON_NONE || j->tok[i].type != members[k].type)
			continue;
		t = &j->tok[i];
		named = named || !k;
		zb_buf_addf(&frame, "%c\"%s\":", frame.len ? ',' : '{',
			    members[k].as);
		zb_buf_add(&frame, j->text + t->start, t->end - t->start);
	}
	zb_buf_addc(&frame, '}');
	good = named && !zb_frame_rest(rest, zb_buf_str(&frame), frame.len);
	zb_buf_done(&frame);
	return good;
}

static const char *response_event(const struct zb_json *j, struct zb_buf *rest)
{
	static const struct {
		const char *action, *key, *as, *event;
	} actions[] = {
		{"prompt", "prompt", "text", "ext_prompt"},
		{"insert", "insert", "text", "ext_insert"},
		{"display", "display", "text", "ext_display"},
		{"open_panel", "open_panel", NULL, "ext_panel_open"},
	};
	uint32_t i = zb_json_get(j, 0, "action");

	if (i != ZB_JSON_NONE && zb_json_is(j, i, "tool_prompt"))
		return tool_prompt(rest, j) ? "ext_tool_prompt" : NULL;
	for (size_t k = 0; i != ZB_JSON_NONE && k < ZB_ARRAY_LEN(actions);
	     k++) {
		if (!zb_json_is(j, i, actions[k].action))
			continue;
		if (actions[k].as
			    ? one_text(rest, j, actions[k].key, actions[k].as)
			    : panel(rest, j, actions[k].key))
			return actions[k].event;
	}
	return NULL;
}

const char *zb_api_frame_event(const char *type, const char *line, size_t len,
			       struct zb_buf *rest)
{
	static const struct {
		const char *type, *event;
	} plain[] = {
		{"notify", "ext_notify"},
		{"display", "ext_display"},
		{"clear_notes", "ext_clear_notes"},
		{"panel_render", "ext_panel_render"},
		{"panel_close", "ext_panel_close"},
	};
	static const struct zb_json_limits limits = {.index_depth = 1};
	struct zb_json j = {0};
	const char *event = NULL;

	for (size_t i = 0; i < ZB_ARRAY_LEN(plain); i++)
		if (!strcmp(plain[i].type, type))
			return zb_frame_rest(rest, line, len) ? NULL
							      : plain[i].event;
	if (zb_json_scan(&j, line, len, &limits, NULL))
		return NULL;
	if (!strcmp(type, "command_response"))
		event = response_event(&j, rest);
	else if (!strcmp(type, "open_panel") && panel(rest, &j, "panel"))
		event = "ext_panel_open";
	zb_json_done(&j);
	return event;
}
