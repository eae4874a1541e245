/* json_edit.c - splice one member. */
#include "json_edit.h"

#include "cleanup.h"
#include "json_scan.h"

#include <string.h>

/* What stands between the brace and the first member: copied before the new
 * one, so that the file's own indentation is kept. */
static size_t blanks_after(const char *text, size_t at, size_t len)
{
	size_t n = 0;

	while (at + n < len && strchr(" \t\r\n", text[at + n]))
		n++;
	return n;
}

static void add_first(struct zb_buf *out, const struct zb_json *json,
		      const char *key, const char *value)
{
	const char *text = json->text;
	size_t at = json->tok[0].start + 1;
	size_t blank = blanks_after(text, at, json->len);

	zb_buf_add(out, text, at + blank);
	zb_json_quote(out, key, strlen(key));
	zb_buf_addf(out, ": %s", value);
	if (json->tok[0].size) {
		zb_buf_addc(out, ',');
		zb_buf_add(out, blank ? text + at : " ", blank ? blank : 1);
	}
	zb_buf_add(out, text + at + blank, json->len - at - blank);
}

int zb_json_set(struct zb_buf *out, const char *text, size_t len,
		const char *key, const char *value, struct zb_error *err)
{
	struct zb_json json = {0};
	struct zb_json_fault fault = {0};
	uint32_t i;

	if (zb_json_scan(&json, text, len, NULL, &fault) ||
	    json.tok[0].type != ZB_JSON_OBJECT) {
		zb_json_done(&json);
		return zb_fail(err, ZB_EUSAGE, "not a JSON object: %s",
			       fault.what);
	}
	i = zb_json_get(&json, 0, key);
	if (i == ZB_JSON_NONE) {
		add_first(out, &json, key, value);
	} else {
		zb_buf_add(out, text, json.tok[i].start);
		zb_buf_adds(out, value);
		zb_buf_add(out, text + json.tok[i].end, len - json.tok[i].end);
	}
	zb_json_done(&json);
	return out->failed ? zb_fail(err, ZB_ELIMIT, "out of memory") : 0;
}

/* `"KEY" :false,` right behind the brace: as nobody writes it, by hand or by
 * program, so that it can be told from a member that was there before. */
static int added_text(struct zb_buf *out, const char *key)
{
	zb_json_quote(out, key, strlen(key));
	return zb_buf_adds(out, " :false,");
}

/* Add that text behind byte @at, or take it away if it is @there. Return:
 * false if it should be there and is not. */
static bool splice_added(struct zb_buf *out, const char *text, size_t len,
			 size_t at, const char *key, bool there)
{
	struct zb_buf added = {0};
	size_t gone = 0;
	bool ok = !added_text(&added, key);

	if (there) {
		gone = added.len;
		ok = ok && len - at > gone &&
		     !memcmp(text + at, zb_buf_str(&added), gone);
	}
	if (ok) {
		zb_buf_add(out, text, at);
		if (!there)
			zb_buf_add(out, zb_buf_str(&added), added.len);
		zb_buf_add(out, text + at + gone, len - at - gone);
	}
	zb_buf_done(&added);
	return ok;
}

static bool is_switch(const struct zb_json_tok *t)
{
	return t->type == ZB_JSON_TRUE || t->type == ZB_JSON_FALSE ||
	       t->type == ZB_JSON_NULL;
}

int zb_json_toggle(struct zb_buf *out, const char *text, size_t len,
		   const char *key, bool on, struct zb_error *err)
{
	struct zb_json json = {0};
	struct zb_json_fault fault = {0};
	size_t at;
	uint32_t i;
	int rc = 0;

	if (zb_json_scan(&json, text, len, NULL, &fault) ||
	    json.tok[0].type != ZB_JSON_OBJECT) {
		zb_json_done(&json);
		return zb_fail(err, ZB_EUSAGE, "not a JSON object: %s",
			       fault.what);
	}
	at = json.tok[0].start + 1;
	i = zb_json_get(&json, 0, key);
	if (i == ZB_JSON_NONE && on)
		zb_buf_add(out, text, len);
	else if (i == ZB_JSON_NONE && json.tok[0].size)
		out->failed |= !splice_added(out, text, len, at, key, false);
	else if (i != ZB_JSON_NONE && !is_switch(&json.tok[i]))
		rc = zb_fail(err, ZB_EUSAGE, "\"%s\" is not true or false",
			     key);
	else if (!on || !splice_added(out, text, len, at, key, true))
		rc = zb_json_set(out, text, len, key, on ? "true" : "false",
				 err);
	zb_json_done(&json);
	if (!rc && out->failed)
		rc = zb_fail(err, ZB_ELIMIT, "out of memory");
	return rc;
}
