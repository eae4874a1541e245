/* fuzz_denial.c - the ledger's lines read back, and names an extension chose
 * shown: a record read is a record written, and no name acts on a terminal or
 * gets into a command unquoted. */
#include "check.h"
#include "denial.h"

#include <string.h>

/* Both forms may be shown, and the JSON form reads back as the same. */
static void check_record(const struct zb_denial *d, const char *home)
{
	struct zb_buf a = {0}, b = {0}, text = {0};
	struct zb_error e = {0};
	struct zb_denial back;

	CHECK(!zb_denial_json(d, &a));
	CHECK(shows(a.data, a.len));
	CHECK(!zb_denial_parse(&back, a.data, a.len, &e));
	CHECK(!zb_denial_json(&back, &b));
	CHECK(a.len == b.len && !memcmp(a.data, b.data, a.len));
	CHECK(zb_denial_hash(&back) == zb_denial_hash(&back));
	CHECK(!zb_denial_text(d, home, &text));
	CHECK(shows(text.data, text.len));
	zb_denial_done(&back);
	zb_buf_done(&a);
	zb_buf_done(&b);
	zb_buf_done(&text);
}

static void check_name(const char *name, size_t n)
{
	struct zb_denial d = {
		.op = ZB_OP_FS_READ,
		.ext = zb_strdup("w"),
		.exe = zb_strndup(name, n),
		.target = zb_strndup(name, n),
		.asked = zb_strndup(name, n),
		.rule = zb_strndup(name, n),
		.grant_key = zb_strdup("fs.read"),
		.grant_value = zb_strndup(name, n),
		.count = 1,
	};

	check_record(&d, "/home/u");
	zb_denial_done(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *line = (const char *)data;
	struct zb_error e = {0};
	struct zb_denial d;
	int64_t ms;
	char *s;

	if (!zb_denial_parse(&d, line, size, &e)) {
		check_record(&d, NULL);
		zb_denial_done(&d);
	} else {
		CHECK(e.msg[0] && shows(e.msg, strlen(e.msg)));
	}
	check_name(line, size);
	s = zb_strndup(line, size);
	CHECK(s);
	if (zb_time_parse(s, 0, &ms)) {
		struct zb_buf b = {0};
		int64_t back;

		CHECK(!zb_time_rfc3339(ms, &b));
		CHECK(zb_time_parse(b.data, 0, &back));
		zb_buf_done(&b);
	}
	free(s);
	return 0;
}
