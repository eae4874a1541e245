/* test_tool_list.c - one list of tools in the forms that models' APIs take. */
#include "tool_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct zb_tool_row rows[] = {
	{"a", "first \"one\"", "{\"type\":\"object\"}", "e", false, true, NULL},
	{"b", NULL, "{}", "e", true, true, "7"},
	{"c", "c", "{}", "f", true, false, NULL},
	{"d", "d", "{}", "f", true, true, "\"x\""},
	{"g", "g", "{}", "f", true, true, "7"},
	{"h", "h", "{}", "f", true, true, NULL},
	{"l", "late", "{}", "f", false, false, NULL},
};
#define N (sizeof(rows) / sizeof(rows[0]))
#define FN(name, text)                                                         \
	"{\"type\":\"function\",\"function\":{\"name\":\"" name "\","          \
	"\"description\":\"" text "\",\"parameters\":{\"type\":\"object\","    \
	"\"properties\":{}}}}"
#define FIRST                                                                  \
	"{\"type\":\"function\",\"function\":{\"name\":\"a\","                 \
	"\"description\":\"first \\\"one\\\"\",\"parameters\":{\"type\":"      \
	"\"object\"}}}"

static void expect(enum zb_tool_format f, const struct zb_tool_row *r, size_t n,
		   const char *text)
{
	struct zb_buf out = {0};

	assert_int_equal(zb_tool_list(&out, f, r, n), 0);
	assert_string_equal(zb_buf_str(&out), text);
	zb_buf_done(&out);
}

static void knows_its_forms(void **state)
{
	enum zb_tool_format f = ZB_TOOLS_KIMI;

	(void)state;
	assert_true(zb_tool_format("zot", &f) && f == ZB_TOOLS_ZOT);
	assert_true(zb_tool_format("anthropic", &f) && f == ZB_TOOLS_ANTHROPIC);
	assert_true(zb_tool_format("openai", &f) && f == ZB_TOOLS_OPENAI);
	assert_true(zb_tool_format("kimi", &f) && f == ZB_TOOLS_KIMI);
	assert_false(zb_tool_format("Kimi", &f));
	assert_false(zb_tool_format("", &f));
}

static void zot_shows_all(void **state)
{
	(void)state;
	expect(ZB_TOOLS_ZOT, rows, 3,
	       "{\"tools\":[{\"name\":\"a\",\"description\":\"first "
	       "\\\"one\\\"\",\"schema\":{\"type\":\"object\"},\"extension\":"
	       "\"e\",\"deferred\":false,\"active\":true},"
	       "{\"name\":\"b\",\"description\":\"\",\"schema\":{},"
	       "\"extension\":\"e\",\"deferred\":true,\"active\":true},"
	       "{\"name\":\"c\",\"description\":\"c\",\"schema\":{},"
	       "\"extension\":\"f\",\"deferred\":true,\"active\":false}]}");
	expect(ZB_TOOLS_ZOT, rows, 0, "{\"tools\":[]}");
}

static void the_whole_active_list(void **state)
{
	(void)state;
	expect(ZB_TOOLS_ANTHROPIC, rows, 3,
	       "{\"tools\":[{\"name\":\"a\",\"description\":\"first "
	       "\\\"one\\\"\",\"input_schema\":{\"type\":\"object\"}},"
	       "{\"name\":\"b\",\"description\":\"\",\"input_schema\":{"
	       "\"type\":\"object\",\"properties\":{}}}]}");
	expect(ZB_TOOLS_OPENAI, rows, N,
	       "{\"tools\":[" FIRST "," FN("b", "") "," FN("d", "d") "," FN(
		       "g", "g") "," FN("h", "h") "]}");
}

/* One message a result, in the order of the results' first tools; what nobody
 * of this conversation activated is in the first list. */
static void kimi_places_what_came_later(void **state)
{
	(void)state;
	expect(ZB_TOOLS_KIMI, rows, N,
	       "{\"tools\":[" FIRST
	       "," FN("h",
		      "h") "],\"placed\":["
			   "{\"after\":7,\"message\":{\"role\":\"system\",\"tools\":[" FN(
				   "b",
				   "") "," FN("g",
					      "g") "]}},"
						   "{\"after\":\"x\",\"message\":{\"role\":\"system\",\"tools\":"
						   "[" FN("d", "d") "]}}]}");
	expect(ZB_TOOLS_KIMI, rows, 1, "{\"tools\":[" FIRST "],\"placed\":[]}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_its_forms),
		cmocka_unit_test(zot_shows_all),
		cmocka_unit_test(the_whole_active_list),
		cmocka_unit_test(kimi_places_what_came_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
