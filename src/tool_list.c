/* tool_list.c - renderings of the tool list.
 *
 * A model's provider caches the beginning of a conversation, and the list of
 * tools is at its very beginning: to add one there throws the cache away. Kimi
 * takes definitions at any later place, as a system message that has "tools"
 * and no "content"; so what is activated on the way is placed where it
 * happened, and the first list never changes. */
#include "tool_list.h"
#include "cleanup.h"
#include "json_scan.h"

#include <string.h>

bool zb_tool_format(const char *name, enum zb_tool_format *out)
{
	static const char *const names[] = {
		[ZB_TOOLS_ZOT] = "zot",
		[ZB_TOOLS_ANTHROPIC] = "anthropic",
		[ZB_TOOLS_OPENAI] = "openai",
		[ZB_TOOLS_KIMI] = "kimi",
	};

	for (unsigned i = 0; i < ZB_ARRAY_LEN(names); i++)
		if (!strcmp(names[i], name)) {
			*out = i;
			return true;
		}
	return false;
}

static void member(struct zb_buf *out, const char *key, const char *value)
{
	zb_buf_addf(out, "\"%s\":", key);
	zb_json_quote(out, value ? value : "", value ? strlen(value) : 0);
	zb_buf_addc(out, ',');
}

/* The APIs refuse a request whole for a schema that is no object's. */
static const char *schema_of(const struct zb_tool_row *t)
{
	if (!t->schema || !strcmp(t->schema, "{}"))
		return "{\"type\":\"object\",\"properties\":{}}";
	return t->schema;
}

static void zot(struct zb_buf *out, const struct zb_tool_row *t)
{
	zb_buf_addc(out, '{');
	member(out, "name", t->name);
	member(out, "description", t->description);
	zb_buf_adds(out, "\"schema\":");
	zb_buf_adds(out, t->schema ? t->schema : "{}");
	zb_buf_addc(out, ',');
	member(out, "extension", t->extension);
	zb_buf_addf(out, "\"deferred\":%s,\"active\":%s}",
		    t->deferred ? "true" : "false",
		    t->active ? "true" : "false");
}

static void anthropic(struct zb_buf *out, const struct zb_tool_row *t)
{
	zb_buf_addc(out, '{');
	member(out, "name", t->name);
	member(out, "description", t->description);
	zb_buf_adds(out, "\"input_schema\":");
	zb_buf_adds(out, schema_of(t));
	zb_buf_addc(out, '}');
}

static void openai(struct zb_buf *out, const struct zb_tool_row *t)
{
	zb_buf_adds(out, "{\"type\":\"function\",\"function\":{");
	member(out, "name", t->name);
	member(out, "description", t->description);
	zb_buf_adds(out, "\"parameters\":");
	zb_buf_adds(out, schema_of(t));
	zb_buf_adds(out, "}}");
}

static bool is_placed(const struct zb_tool_row *t)
{
	return t->active && t->deferred && t->activated_by;
}

static bool in_list(enum zb_tool_format format, const struct zb_tool_row *t)
{
	if (format == ZB_TOOLS_ZOT)
		return true;
	return t->active && (format != ZB_TOOLS_KIMI || !is_placed(t));
}

static bool placed_before(const struct zb_tool_row *rows, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (is_placed(&rows[k]) &&
		    !strcmp(rows[k].activated_by, rows[i].activated_by))
			return true;
	return false;
}

static void placed(struct zb_buf *out, const struct zb_tool_row *rows, size_t n)
{
	const char *comma = "";

	zb_buf_adds(out, ",\"placed\":[");
	for (size_t i = 0; i < n; i++) {
		if (!is_placed(&rows[i]) || placed_before(rows, i))
			continue;
		zb_buf_addf(out, "%s{\"after\":", comma);
		zb_buf_adds(out, rows[i].activated_by);
		zb_buf_adds(out, ",\"message\":{\"role\":\"system\","
				 "\"tools\":[");
		comma = "";
		for (size_t k = i; k < n; k++) {
			if (!is_placed(&rows[k]) ||
			    strcmp(rows[k].activated_by,
				   rows[i].activated_by) != 0)
				continue;
			zb_buf_adds(out, comma);
			openai(out, &rows[k]);
			comma = ",";
		}
		zb_buf_adds(out, "]}}");
		comma = ",";
	}
	zb_buf_addc(out, ']');
}

int zb_tool_list(struct zb_buf *out, enum zb_tool_format format,
		 const struct zb_tool_row *rows, size_t n)
{
	static void (*const writers[])(struct zb_buf *,
				       const struct zb_tool_row *) = {
		[ZB_TOOLS_ZOT] = zot,
		[ZB_TOOLS_ANTHROPIC] = anthropic,
		[ZB_TOOLS_OPENAI] = openai,
		[ZB_TOOLS_KIMI] = openai,
	};
	const char *comma = "";

	zb_buf_adds(out, "{\"tools\":[");
	for (size_t i = 0; i < n; i++) {
		if (!in_list(format, &rows[i]))
			continue;
		zb_buf_adds(out, comma);
		writers[format](out, &rows[i]);
		comma = ",";
	}
	zb_buf_addc(out, ']');
	if (format == ZB_TOOLS_KIMI)
		placed(out, rows, n);
	zb_buf_addc(out, '}');
	return out->failed ? ZB_ELIMIT : 0;
}
