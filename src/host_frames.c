/* host_frames.c - the host's side of the protocol as text. */
#include "host_frames.h"
#include "cleanup.h"
#include "text.h"

#include <string.h>

/* The members of a frame are all that is read here. */
static const struct zb_json_limits top_level = {.index_depth = 1};

static void quote(struct zb_buf *out, const char *s)
{
	zb_json_quote(out, s, strlen(s));
}

/* ,"KEY":"VALUE" */
static void member(struct zb_buf *out, const char *key, const char *value)
{
	zb_buf_addf(out, ",\"%s\":", key);
	quote(out, value ? value : "");
}

static void open_frame(struct zb_buf *out, const char *type)
{
	zb_buf_addf(out, "{\"type\":\"%s\"", type);
}

static int close_frame(struct zb_buf *out)
{
	zb_buf_addc(out, '}');
	return out->failed ? ZB_ELIMIT : 0;
}

int zb_host_hello_ack(struct zb_buf *out, const struct zb_hello_info *info)
{
	open_frame(out, "hello_ack");
	zb_buf_adds(out, ",\"protocol_version\":1");
	member(out, "zot_version", info->zot_version);
	member(out, "provider", info->provider);
	member(out, "model", info->model);
	member(out, "cwd", info->cwd);
	member(out, "extension_dir", info->extension_dir);
	member(out, "data_dir", info->data_dir);
	return close_frame(out);
}

int zb_host_tool_call(struct zb_buf *out, const char *id, const char *name,
		      const char *args_json)
{
	open_frame(out, "tool_call");
	member(out, "id", id);
	member(out, "name", name);
	zb_buf_addf(out, ",\"args\":");
	zb_buf_adds(out, args_json);
	return close_frame(out);
}

int zb_host_command(struct zb_buf *out, const char *id, const char *name,
		    const char *args)
{
	open_frame(out, "command_invoked");
	member(out, "id", id);
	member(out, "name", name);
	/* As zot has it: absent when there are none. */
	if (args && *args)
		member(out, "args", args);
	return close_frame(out);
}

/* The members of object @json but @except, each after a comma. */
static void members_of(struct zb_buf *out, const char *json, const char *except)
{
	struct zb_json j = {0};
	uint32_t i = ZB_JSON_NONE;

	if (!zb_json_scan(&j, json, strlen(json), &top_level, NULL))
		i = zb_json_first(&j, 0);
	for (; i != ZB_JSON_NONE; i = zb_json_next(&j, i)) {
		const struct zb_json_tok *t = &j.tok[i];

		if (except && zb_json_key_is(&j, i, except))
			continue;
		zb_buf_addc(out, ',');
		zb_buf_add(out, json + t->key_start, t->key_end - t->key_start);
		zb_buf_addc(out, ':');
		zb_buf_add(out, json + t->start, t->end - t->start);
	}
	zb_json_done(&j);
}

int zb_host_event(struct zb_buf *out, const char *event,
		  const char *fields_json)
{
	open_frame(out, "event");
	member(out, "event", event);
	members_of(out, fields_json, NULL);
	return close_frame(out);
}

int zb_host_intercept(struct zb_buf *out, const char *id, const char *event,
		      const char *fields_json, const char *key,
		      const char *value_json)
{
	open_frame(out, "event_intercept");
	member(out, "id", id);
	member(out, "event", event);
	members_of(out, fields_json, key);
	if (key) {
		zb_buf_addf(out, ",\"%s\":", key);
		zb_buf_adds(out, value_json);
	}
	return close_frame(out);
}

int zb_host_panel_key(struct zb_buf *out, const char *panel, const char *key,
		      const char *text)
{
	open_frame(out, "panel_key");
	member(out, "panel_id", panel);
	member(out, "key", key);
	if (text)
		member(out, "text", text);
	return close_frame(out);
}

int zb_host_tool_cancel(struct zb_buf *out, const char *id)
{
	open_frame(out, "tool_cancel");
	member(out, "id", id);
	return close_frame(out);
}

int zb_host_panel_close(struct zb_buf *out, const char *panel)
{
	open_frame(out, "panel_close");
	member(out, "panel_id", panel);
	return close_frame(out);
}

int zb_host_panel_resize(struct zb_buf *out, const char *panel,
			 unsigned columns, unsigned rows)
{
	open_frame(out, "panel_resize");
	member(out, "panel_id", panel);
	if (columns)
		zb_buf_addf(out, ",\"columns\":%u", columns);
	if (rows)
		zb_buf_addf(out, ",\"rows\":%u", rows);
	return close_frame(out);
}

int zb_host_refuse_tool(struct zb_buf *out, const char *id, const char *why)
{
	open_frame(out, "tool_result");
	member(out, "id", id);
	zb_buf_adds(out, ",\"content\":[{\"type\":\"text\"");
	member(out, "text", why);
	zb_buf_adds(out, "}],\"is_error\":true");
	return close_frame(out);
}

bool zb_host_rewrite_of(const char *event, const char **name,
			const char **answer)
{
	static const struct {
		const char *event, *member, *answer;
	} rows[] = {
		{"tool_call", "tool_args", "modified_args"},
		{"assistant_message", "text", "replace_text"},
		{"before_agent_start", "system_prompt", "system_prompt"},
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++)
		if (!strcmp(rows[i].event, event)) {
			*name = rows[i].member;
			*answer = rows[i].answer;
			return true;
		}
	return false;
}

/* JSON text of member @key if it changes anything. */
static char *rewrite(const struct zb_json *j, const char *key)
{
	uint32_t i = zb_json_get(j, 0, key);
	const struct zb_json_tok *t = i == ZB_JSON_NONE ? NULL : &j->tok[i];

	if (!t || (t->type != ZB_JSON_OBJECT && t->type != ZB_JSON_STRING))
		return NULL;
	if (t->type == ZB_JSON_STRING && t->end - t->start == 2)
		return NULL;
	return zb_strndup(j->text + t->start, t->end - t->start);
}

int zb_host_read_answer(struct zb_intercept_answer *out, const char *line,
			size_t len, const char *event)
{
	const char *name, *answer;
	struct zb_json j = {0};
	uint32_t i = ZB_JSON_NONE;
	int rc = ZB_EUSAGE;

	memset(out, 0, sizeof(*out));
	if (!zb_json_scan(&j, line, len, &top_level, NULL))
		i = zb_json_get(&j, 0, "type");
	if (i != ZB_JSON_NONE && zb_json_is(&j, i, "event_intercept_response"))
		rc = 0;
	i = rc ? ZB_JSON_NONE : zb_json_get(&j, 0, "block");
	out->block = i != ZB_JSON_NONE && j.tok[i].type == ZB_JSON_TRUE;
	i = rc ? ZB_JSON_NONE : zb_json_get(&j, 0, "reason");
	if (i != ZB_JSON_NONE)
		out->reason = zb_json_dup_string(&j, i);
	if (!rc && !out->block && zb_host_rewrite_of(event, &name, &answer))
		out->rewrite = rewrite(&j, answer);
	zb_json_done(&j);
	return rc;
}

void zb_intercept_answer_done(struct zb_intercept_answer *a)
{
	free(a->reason);
	free(a->rewrite);
	memset(a, 0, sizeof(*a));
}

static void escape_unit(struct zb_buf *out, uint32_t cp)
{
	if (cp > 0xffff) {
		cp -= 0x10000;
		zb_buf_addf(out, "\\u%04x\\u%04x", 0xd800 + (cp >> 10),
			    0xdc00 + (cp & 0x3ff));
	} else {
		zb_buf_addf(out, "\\u%04x", cp);
	}
}

/* JSON text (already scanned) as it may be printed on one line. */
static void print_safe(struct zb_buf *out, const char *s, size_t n)
{
	bool in_string = false, escaped = false;

	while (n) {
		uint32_t cp;
		unsigned used = zb_utf8_next(s, n, &cp);

		if (!used)
			return;
		if (in_string && !escaped && zb_is_hazard(cp))
			escape_unit(out, cp);
		else if (in_string || !strchr(" \t\r\n", *s))
			zb_buf_add(out, s, used);
		if (*s == '"' && !escaped)
			in_string = !in_string;
		escaped = in_string && !escaped && *s == '\\';
		s += used;
		n -= used;
	}
}

int zb_frame_rest(struct zb_buf *out, const char *line, size_t len)
{
	struct zb_json j = {0};
	const char *comma = "";

	if (zb_json_scan(&j, line, len, &top_level, NULL) ||
	    j.tok[0].type != ZB_JSON_OBJECT) {
		zb_json_done(&j);
		return ZB_EUSAGE;
	}
	zb_buf_addc(out, '{');
	for (uint32_t i = zb_json_first(&j, 0); i != ZB_JSON_NONE;
	     i = zb_json_next(&j, i)) {
		const struct zb_json_tok *t = &j.tok[i];

		if (zb_json_key_is(&j, i, "type") ||
		    zb_json_key_is(&j, i, "id"))
			continue;
		zb_buf_adds(out, comma);
		print_safe(out, line + t->key_start, t->end - t->key_start);
		comma = ",";
	}
	zb_json_done(&j);
	return close_frame(out);
}

char *zb_frame_string(const char *line, size_t len, const char *key)
{
	struct zb_json j = {0};
	char *s = NULL;
	uint32_t i;

	if (!zb_json_scan(&j, line, len, &top_level, NULL)) {
		i = zb_json_get(&j, 0, key);
		if (i != ZB_JSON_NONE)
			s = zb_json_dup_string(&j, i);
	}
	zb_json_done(&j);
	return s;
}
