/* json_edit.c - splice one member. */
#include "json_edit.h"
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
