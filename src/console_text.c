/* console_text.c - from the JSON of a frame to lines, by a table of types. */
#include "console_text.h"

#include "cleanup.h"
#include "json_scan.h"
#include "text.h"

#include <string.h>

#define MEMBERS 7

/* Colours of ours (SGR). */
static const char red[] = "31", yellow[] = "33", green[] = "32";

/* What of a type is told: the members that are there, in this order. */
static const struct row {
	const char *type, *label, *colour;
	const char *member[MEMBERS];
} rows[] = {
	{"notify", NULL, NULL, {"message"}},
	{"display", NULL, NULL, {"display", "text"}},
	{"prompt", "prompt", NULL, {"prompt"}},
	{"insert", "insert", NULL, {"insert"}},
	{"tool_prompt",
	 "tool_prompt",
	 NULL,
	 {"tool_name", "tool_args", "prompt"}},
	{"submit", "submit", NULL, {"text"}},
	{"submit_slash", "submit_slash", NULL, {"text"}},
	{"noop", "done", NULL, {NULL}},
	{"clear_notes", "clears its notes", NULL, {NULL}},
	{"error", "error", red, {"error"}},
	{"builtin", "error", red, {"error"}},
	{"load_error", "not loaded", red, {"error"}},
	{"exit", "ended", red, {"error"}},
	{"block", "block", red, {"reason", "by"}},
	{"tool", "tool", NULL, {"name", "state", "by", "description"}},
	{"command", "command", NULL, {"name", "description"}},
	{"ext",
	 NULL,
	 NULL,
	 {"state", "version", "policy", "pid", "dir", "problem"}},
};

static const struct {
	const char *level, *colour;
} levels[] = {
	{"success", green},
	{"warn", yellow},
	{"warning", yellow},
	{"error", red},
};

static void begin(struct zb_buf *out, const char *ext, bool colour)
{
	zb_buf_addf(out, colour ? "\x1b[1m[%s]\x1b[0m " : "[%s] ", ext);
}

/* At most ZB_CONSOLE_TEXT_MAX bytes, whole characters. */
static size_t bounded(const char *s, size_t n)
{
	if (n <= ZB_CONSOLE_TEXT_MAX)
		return n;
	for (n = ZB_CONSOLE_TEXT_MAX; n && (s[n] & 0xc0) == 0x80; n--)
		;
	return n;
}

int zb_console_lines(struct zb_buf *out, const char *ext, const char *text,
		     size_t n, bool colour)
{
	struct zb_buf clean = {0}, valid = {0};
	const char *p;
	size_t shown, line;
	int rc;

	/* Names of files may be any bytes. */
	if (zb_utf8_check(text, n) < n) {
		zb_text_escape(&valid, text, n, 0);
		text = zb_buf_str(&valid);
		n = valid.len;
	}
	shown = bounded(text, n);
	zb_text_clean(&clean, text, shown, false, NULL);
	p = zb_buf_str(&clean);
	do {
		line = strcspn(p, "\n");
		begin(out, ext, colour);
		zb_buf_add(out, p, line);
		zb_buf_addc(out, '\n');
		p += line + (p[line] == '\n');
	} while (*p);
	if (shown < n) {
		begin(out, ext, colour);
		zb_buf_addf(out, "(%zu more bytes are not shown)\n", n - shown);
	}
	rc = out->failed || clean.failed ? ZB_ELIMIT : 0;
	zb_buf_done(&clean);
	zb_buf_done(&valid);
	return rc;
}

/* ---- rows ---- */

/* Cells of a character. What a terminal may draw wider than it is said to be
 * counts so: a row that ends early is no harm. */
static unsigned cells_of(uint32_t cp, zb_width *width)
{
	int w = width(cp);

	if (w < 0)
		return 4;
	if (w == 1 && (cp >= 0x1f000 || (cp >= 0x2600 && cp < 0x2c00)))
		return 2;
	return (unsigned)w;
}

/* Bytes of a colour of ours at @s, or 0. */
static size_t colour_at(const char *s, size_t n)
{
	size_t i = 2;

	if (n < 3 || s[0] != '\x1b' || s[1] != '[')
		return 0;
	while (i < n && (s[i] == ';' || (s[i] >= '0' && s[i] <= '9')))
		i++;
	return i < n && s[i] == 'm' ? i + 1 : 0;
}

int zb_console_rows(struct zb_buf *out, const char *ext, const char *lines,
		    size_t n, unsigned cols, zb_width *width)
{
	const size_t head = strlen(ext) + 3;
	const bool room = head + 10 <= cols;
	const unsigned full = cols > 12 ? cols : 12;
	unsigned at = 0, used;

	for (size_t i = 0; i < n; i += used) {
		unsigned w = 0;
		uint32_t cp;

		used = (unsigned)colour_at(lines + i, n - i);
		if (!used && lines[i] == '\n') {
			used = 1;
			at = 0;
		} else if (!used && lines[i] == '\t') {
			used = 1;
			w = 8 - at % 8;
		} else if (!used) {
			used = zb_utf8_next(lines + i, n - i, &cp);
			w = used ? cells_of(cp, width) : 4;
			used = used ? used : 1;
		}
		if (at + w > full) {
			zb_buf_addf(out, room ? "\n[%s] " : "\n  ", ext);
			at = room ? (unsigned)head : 2;
		}
		at += w;
		zb_buf_add(out, lines + i, used);
	}
	return out->failed ? ZB_ELIMIT : 0;
}

/* ---- frames ---- */

/* @body's lines, the first behind @label; our colour around that one. */
static int tell(struct zb_buf *out, const char *ext, const char *label,
		const char *code, const struct zb_buf *body, bool colour)
{
	struct zb_buf text = {0};
	int rc;

	if (label)
		zb_buf_addf(&text, "%s%s", label, body->len ? ": " : "");
	zb_buf_add(&text, zb_buf_str(body), body->len);
	if (colour && code)
		zb_buf_addf(out, "\x1b[%sm", code);
	rc = zb_console_lines(out, ext, zb_buf_str(&text), text.len,
			      colour && !code);
	if (colour && code)
		zb_buf_adds(out, "\x1b[0m");
	zb_buf_done(&text);
	return rc;
}

static void add_value(struct zb_buf *body, const struct zb_json *j, uint32_t i)
{
	size_t before = body->len;

	if (i == ZB_JSON_NONE || j->tok[i].type == ZB_JSON_NULL)
		return;
	if (before)
		zb_buf_adds(body, "  ");
	if (j->tok[i].type == ZB_JSON_STRING)
		zb_json_string(j, i, body);
	else
		zb_buf_add(body, j->text + j->tok[i].start,
			   j->tok[i].end - j->tok[i].start);
}

static void add_blocks(struct zb_buf *body, const struct zb_json *j,
		       uint32_t list)
{
	uint32_t i = list == ZB_JSON_NONE ? list : zb_json_first(j, list);

	for (; i != ZB_JSON_NONE; i = zb_json_next(j, i)) {
		uint32_t text = zb_json_get(j, i, "text");
		uint32_t data = zb_json_get(j, i, "data");

		if (body->len && body->data[body->len - 1] != '\n')
			zb_buf_addc(body, '\n');
		if (data != ZB_JSON_NONE)
			zb_buf_addf(body, "(an image, %zu bytes of base64)",
				    (size_t)(j->tok[data].end -
					     j->tok[data].start - 2));
		else if (text != ZB_JSON_NONE)
			zb_json_string(j, text, body);
	}
}

static const char *level_colour(const struct zb_json *j)
{
	uint32_t i = zb_json_get(j, 0, "level");

	for (size_t k = 0; i != ZB_JSON_NONE && k < ZB_ARRAY_LEN(levels); k++)
		if (zb_json_is(j, i, levels[k].level))
			return levels[k].colour;
	return NULL;
}

static int tell_result(struct zb_buf *out, const char *ext,
		       const struct zb_json *j, struct zb_buf *body,
		       bool colour)
{
	uint32_t i = zb_json_get(j, 0, "is_error");
	bool bad = i != ZB_JSON_NONE && j->tok[i].type == ZB_JSON_TRUE;
	uint32_t list = zb_json_get(j, 0, "content");

	add_blocks(body, j, list);
	return tell(out, ext, bad ? "error result" : "result",
		    bad ? yellow : NULL, body, colour);
}

static int tell_row(struct zb_buf *out, const char *ext, const struct row *r,
		    const struct zb_json *j, struct zb_buf *body, bool colour)
{
	uint32_t bad = zb_json_get(j, 0, "error");
	const char *code = r->colour;

	for (size_t i = 0; i < MEMBERS && r->member[i]; i++)
		add_value(body, j, zb_json_get(j, 0, r->member[i]));
	if (!strcmp(r->type, "notify"))
		code = level_colour(j);
	/* An error is one whatever the action. */
	if (!r->colour && bad != ZB_JSON_NONE && !zb_json_is(j, bad, "")) {
		zb_buf_clear(body);
		add_value(body, j, bad);
		return tell(out, ext, "error", red, body, colour);
	}
	return tell(out, ext, r->label, code, body, colour);
}

int zb_console_text(struct zb_buf *out, const char *ext, const char *type,
		    const char *json, size_t len, bool colour)
{
	static const struct zb_json_limits limits = {.index_depth = 3};
	const struct row *row = NULL;
	struct zb_json j = {0};
	struct zb_buf body = {0};
	int rc;

	for (size_t i = 0; i < ZB_ARRAY_LEN(rows) && !row; i++)
		if (!strcmp(rows[i].type, type))
			row = &rows[i];
	if (zb_json_scan(&j, json, len, &limits, NULL) ||
	    j.tok[0].type != ZB_JSON_OBJECT) {
		rc = zb_console_lines(out, ext, json, len, colour);
	} else if (row) {
		rc = tell_row(out, ext, row, &j, &body, colour);
	} else if (!strcmp(type, "result")) {
		rc = tell_result(out, ext, &j, &body, colour);
	} else {
		zb_buf_add(&body, json, len);
		rc = tell(out, ext, type, NULL, &body, colour);
	}
	zb_json_done(&j);
	zb_buf_done(&body);
	return rc;
}
