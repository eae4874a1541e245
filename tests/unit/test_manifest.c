/* test_manifest.c - extension.json, read and written afresh. */
#include "cleanup.h"
#include "manifest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEN "0123456789"
#define N64 "abcd" TEN TEN TEN TEN TEN TEN

static void names(void **state)
{
	static const char *const good[] = {
		"a", "A1", "zot-web", "a.b", "a_b-c.d", "0", N64,
	};
	static const char *const bad[] = {
		"",    ".",	"..",	".hidden", "-x",  "_x",
		"a.",  "a/b",	"../a", "a b",	   "a\n", "\xc3\xa4",
		"a:b", "@0123", "a\\b", (N64 "x"),
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(good); i++)
		assert_true(zb_name_valid(good[i]));
	for (size_t i = 0; i < ZB_ARRAY_LEN(bad); i++)
		assert_false(zb_name_valid(bad[i]));
}

static void reads_all(void **state)
{
	static const char text[] =
		"{\"name\":\"weather\",\"version\":\"1.0.0\",\r\n"
		"\"exec\":\"./weather\",\"args\":[\"--mode\",\"daemon\"],"
		"\"language\":\"go\",\"description\":\"current \\u001b[31m"
		"weather\\nnow\",\"enabled\":false,\"theme\":\"dark.json\","
		"\"permissions\":[{\"tool\":\"x\"}],\"skills\":[\"s\"]}\n";
	struct zb_manifest m;
	struct zb_error e = {0};

	(void)state;
	assert_int_equal(zb_manifest_parse(&m, text, strlen(text), false, &e),
			 0);
	assert_string_equal(m.name, "weather");
	assert_string_equal(m.version, "1.0.0");
	assert_string_equal(m.exec, "./weather");
	assert_int_equal(m.args.n, 2);
	assert_string_equal(m.args.v[1], "daemon");
	assert_string_equal(m.language, "go");
	assert_string_equal(m.description, "current weather now");
	assert_string_equal(m.theme, "dark.json");
	assert_false(m.enabled);
	assert_false(m.wrapped);
	zb_manifest_done(&m);
	zb_manifest_done(NULL);
}

static void defaults(void **state)
{
	static const char text[] =
		"{\"name\":\"a\",\"exec\":\"x\",\"version\":null,\"args\":null,"
		"\"enabled\":null,\"theme\":{\"x\":1}}";
	struct zb_manifest m;
	struct zb_error e = {0};

	(void)state;
	assert_int_equal(zb_manifest_parse(&m, text, strlen(text), false, &e),
			 0);
	assert_true(m.enabled);
	assert_null(m.version);
	assert_null(m.language);
	assert_null(m.theme);
	assert_int_equal(m.args.n, 0);
	zb_manifest_done(&m);
}

static const struct {
	const char *text, *message;
} faults[] = {
	{"", "parse manifest: 1:1: the text is empty"},
	{"{\"name\": \"a02\",",
	 "parse manifest: 1:16: the text ends where a key was expected"},
	{"{\"name\":\"a\"\n x}", "parse manifest: 2:2: unexpected 'x'"},
	{"\xef\xbb\xbf{}", "parse manifest: 1:1: the text starts with a "
			   "byte-order mark"},
	{"[]", "manifest: 1:1: it must be an object, not a list"},
	{"null", "manifest: 1:1: it must be an object, not null"},
	{"{}", "manifest: name is required"},
	{"{\"exec\":\"x\"}", "manifest: name is required"},
	{"{\"name\":\"\",\"exec\":\"x\"}", "manifest: name is required"},
	{"{\"name\":null,\"exec\":\"x\"}", "manifest: name is required"},
	{"{\"name\":\"a\"}", "manifest: exec is required"},
	{"{\"name\":\"a\",\"exec\":\"\"}", "manifest: exec is required"},
	{"{\"name\":\"../x\",\"exec\":\"x\"}",
	 "manifest: name \"../x\" cannot be used"},
	{"{\"name\":\"\\u001b[2J\",\"exec\":\"x\"}",
	 "manifest: name \"\\x1b[2J\" cannot be used"},
	{"{\"name\":5,\"exec\":\"x\"}",
	 "manifest: 1:9: \"name\" must be a string, not a number"},
	{"{\"name\":\"a\",\"exec\":[\"x\"]}",
	 "\"exec\" must be a string, not a list"},
	{"{\"name\":\"a\",\"exec\":\"x\",\"args\":\"y\"}",
	 "\"args\" must be a list of strings, not a string"},
	{"{\"name\":\"a\",\"exec\":\"x\",\"args\":[\"y\",1]}",
	 "\"args\" must hold strings, not a number"},
	{"{\"name\":\"a\",\"exec\":\"x\",\"args\":[null]}",
	 "\"args\" must hold strings, not null"},
	{"{\"name\":\"a\",\"exec\":\"x\",\"enabled\":\"yes\"}",
	 "\"enabled\" must be true or false, not a string"},
	{"{\"name\":\"a\",\"exec\":\"x\",\"version\":1}",
	 "\"version\" must be a string"},
	/* what zot would read otherwise than we do */
	{"{\"name\":\"a\",\"exec\":\"x\",\"exec\":\"y\"}",
	 "duplicate key \"exec\""},
	{"{\"name\":\"a\",\"exec\":\"x\",\"Exec\":\"y\"}", "are the same"},
	{"{\"name\":\"a\",\"exec\":\"x\",\"args\":[],\"arg\xc5\xbf\":[\"y\"]}",
	 "are the same"},
	{"{\"name\":\"a\",\"Exec\":\"x\"}",
	 "manifest: 1:13: key \"Exec\" would be read as \"exec\""},
	{"{\"name\":\"a\",\"exec\":\"x\",\"arg\xc5\xbf\":[\"y\"]}",
	 "would be read as \"args\""},
	{"{\"name\":\"a\",\"exec\":\"x\",\"\\u0041rgs\":[\"y\"]}",
	 "would be read as \"args\""},
	{"{\"name\":\"a\",\"exec\":\"x\\u0000y\"}", "\\u0000"},
	{"{\"name\":\"a\",\"exec\":\"x\"} trailing", "more text"},
	{"{\"name\":\"a\",\"exec\":\"\xff\"}", "not UTF-8"},
};

static void refusals_are_worded(void **state)
{
	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(faults); i++) {
		struct zb_manifest m;
		struct zb_error e = {0};
		int rc = zb_manifest_parse(&m, faults[i].text,
					   strlen(faults[i].text), false, &e);

		if (rc != ZB_EUSAGE || e.code != ZB_EUSAGE ||
		    !strstr(e.msg, faults[i].message))
			fail_msg("%s: rc %d: %s", faults[i].text, rc, e.msg);
		zb_manifest_done(&m);
	}
}

static void what_was_read_is_kept_on_failure(void **state)
{
	static const char text[] = "{\"version\":\"1.0.0\",\"exec\":\"x\"}";
	struct zb_manifest m;
	struct zb_error e = {0};

	(void)state;
	assert_int_equal(zb_manifest_parse(&m, text, strlen(text), false, &e),
			 ZB_EUSAGE);
	assert_string_equal(m.version, "1.0.0");
	zb_manifest_done(&m);
}

static void parse_ok(struct zb_manifest *m, const char *text, bool theme)
{
	struct zb_error e = {0};

	if (zb_manifest_parse(m, text, strlen(text), theme, &e))
		fail_msg("%s: %s", text, e.msg);
}

static void wrapping(void **state)
{
	static const char text[] =
		"{\"name\":\"w\",\"exec\":\"python3\",\"args\":[\"m.py\"],"
		"\"version\":\"1\",\"description\":\"say \\\"hi\\\"\","
		"\"language\":\"python\",\"x\":{\"Exec\":1},"
		"\"permissions\":[]}";
	static const char want[] = "{\n"
				   "  \"args\": [\n"
				   "    \"wrap\",\n"
				   "    \"w\"\n"
				   "  ],\n"
				   "  \"description\": \"say \\\"hi\\\"\",\n"
				   "  \"enabled\": true,\n"
				   "  \"exec\": \"/usr/bin/zotbox\",\n"
				   "  \"language\": \"python\",\n"
				   "  \"name\": \"w\",\n"
				   "  \"version\": \"1\"\n"
				   "}\n";
	struct zb_manifest m;
	struct zb_buf b = {0};

	(void)state;
	parse_ok(&m, text, false);
	assert_int_equal(zb_manifest_wrap(&b, &m, "zotbox"), ZB_EUSAGE);
	assert_int_equal(zb_manifest_wrap(&b, &m, "/\xff/zotbox"), ZB_EUSAGE);
	assert_int_equal(b.len, 0);
	assert_int_equal(zb_manifest_wrap(&b, &m, "/usr/bin/zotbox"), 0);
	assert_string_equal(zb_buf_str(&b), want);
	zb_manifest_done(&m);
	parse_ok(&m, zb_buf_str(&b), false);
	assert_true(m.wrapped);
	zb_manifest_done(&m);
	zb_buf_done(&b);
}

static void theme_only(void **state)
{
	struct zb_manifest m;
	struct zb_buf b = {0};

	(void)state;
	parse_ok(&m, "{\"name\":\"t\",\"enabled\":false,\"theme\":\"a\"}",
		 true);
	assert_null(m.exec);
	assert_false(m.wrapped);
	assert_int_equal(zb_manifest_wrap(&b, &m, "/zotbox"), 0);
	assert_string_equal(zb_buf_str(&b), "{\n  \"enabled\": false,\n"
					    "  \"name\": \"t\",\n"
					    "  \"theme\": \"a\"\n}\n");
	zb_manifest_done(&m);
	zb_buf_done(&b);
}

/* By meaning, not by bytes: zot itself rewrites the file. */
static void wrapped_is_a_meaning(void **state)
{
	static const struct {
		const char *text;
		bool wrapped;
	} rows[] = {
		{"{\"args\":[\"wrap\",\"a\"],\"name\":\"a\",\"exec\":"
		 "\"/usr/bin/zotbox\"}",
		 true},
		{"{\"name\":\"a\",\"exec\":\"/zotbox\",\"args\":[\"wr\\u0061p\""
		 ",\"a\"],\"enabled\":false}",
		 true},
		{"{\"name\":\"a\",\"exec\":\"zotbox\",\"args\":[\"wrap\",\"a\"]"
		 "}",
		 false},
		{"{\"name\":\"a\",\"exec\":\"./zotbox\",\"args\":[\"wrap\","
		 "\"a\"]}",
		 false},
		{"{\"name\":\"a\",\"exec\":\"/bin/xzotbox\",\"args\":[\"wrap\","
		 "\"a\"]}",
		 false},
		{"{\"name\":\"a\",\"exec\":\"/bin/zotbox\",\"args\":[\"wrap\","
		 "\"b\"]}",
		 false},
		{"{\"name\":\"a\",\"exec\":\"/bin/zotbox\",\"args\":[\"wrap\","
		 "\"a\",\"x\"]}",
		 false},
		{"{\"name\":\"a\",\"exec\":\"/bin/zotbox\",\"args\":[\"help\","
		 "\"a\"]}",
		 false},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_manifest m;

		parse_ok(&m, rows[i].text, false);
		assert_int_equal(m.wrapped, rows[i].wrapped);
		zb_manifest_done(&m);
	}
}

/* Whatever the description holds, the wrapped text is JSON whose exec and args
 * are ours, and hides nothing from a terminal. */
static void hostile_strings_stay_strings(void **state)
{
	static const char text[] =
		"{\"name\":\"w\",\"exec\":\"x\",\"description\":"
		"\"\\\",\\n  \\\"exec\\\": \\\"/bin/evil\\\",\\u202e\\u009b2J"
		"\\ud83d\\ude00\",\"theme\":\"\\\"}\\u001b\"}";
	struct zb_manifest m, back;
	struct zb_buf b = {0};

	(void)state;
	parse_ok(&m, text, false);
	assert_int_equal(zb_manifest_wrap(&b, &m, "/o p/\"t\"/zotbox"), 0);
	assert_null(strchr(zb_buf_str(&b), 0x1b));
	parse_ok(&back, zb_buf_str(&b), false);
	assert_string_equal(back.exec, "/o p/\"t\"/zotbox");
	assert_true(back.wrapped);
	assert_string_equal(back.description, m.description);
	assert_string_equal(back.theme, m.theme);
	zb_manifest_done(&m);
	zb_manifest_done(&back);
	zb_buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(reads_all),
		cmocka_unit_test(defaults),
		cmocka_unit_test(refusals_are_worded),
		cmocka_unit_test(what_was_read_is_kept_on_failure),
		cmocka_unit_test(wrapping),
		cmocka_unit_test(theme_only),
		cmocka_unit_test(wrapped_is_a_meaning),
		cmocka_unit_test(hostile_strings_stay_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
