/* test_json_edit.c - one member changes, every other byte stays. */
#include "json_edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check(const char *text, const char *key, const char *value,
		  const char *expected)
{
	struct zb_buf out = {0};
	struct zb_error err = {0};

	assert_int_equal(
		zb_json_set(&out, text, strlen(text), key, value, &err), 0);
	assert_string_equal(zb_buf_str(&out), expected);
	zb_buf_done(&out);
}

static void replaces_in_place(void **state)
{
	(void)state;
	check("{\r\n\t\"zzz\": 9007199254740993,  \"enabled\" : true }\n",
	      "enabled", "false",
	      "{\r\n\t\"zzz\": 9007199254740993,  \"enabled\" : false }\n");
	check("{\"extends\":{\"a\":[1,2]},\"b\":1}", "extends", "\"strict\"",
	      "{\"extends\":\"strict\",\"b\":1}");
}

static void adds_first_in_the_files_own_style(void **state)
{
	(void)state;
	check("{}", "a", "1", "{\"a\": 1}");
	check("{\"b\":2}", "a", "1", "{\"a\": 1, \"b\":2}");
	check("{\n  \"b\": 2\n}\n", "a", "1",
	      "{\n  \"a\": 1,\n  \"b\": 2\n}\n");
	/* A key of an inner object is another key. */
	check("{\"b\":{\"a\":3}}", "a", "1", "{\"a\": 1, \"b\":{\"a\":3}}");
}

static void twice_toggled_is_the_same(void **state)
{
	static const char text[] =
		"{ \"x\":1.10,\"enabled\":true,\"y\":\"\\u00e9\"}";
	struct zb_buf off = {0}, on = {0};
	struct zb_error err = {0};

	(void)state;
	assert_int_equal(
		zb_json_set(&off, text, strlen(text), "enabled", "false", &err),
		0);
	assert_int_equal(
		zb_json_set(&on, off.data, off.len, "enabled", "true", &err),
		0);
	assert_string_equal(zb_buf_str(&on), text);
	zb_buf_done(&off);
	zb_buf_done(&on);
}

/* Off and on again is the same bytes, wherever the member stands, or not. */
static void toggled_back_is_the_same(void **state)
{
	static const char *const texts[] = {
		"{ \"x\":1.10,\"on\":true,\"y\":\"\\u00e9\"}",
		"{\"on\": true, \"x\": 1}",
		"{\"on\":true,\"x\":1}",
		"{\"on\": true}",
		"{\n  \"x\": 1\n}\n",
		"{\"x\":1}",
		"{ \"x\": 1 }",
		"  {\r\n\"x\" : {\"on\":false}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct zb_buf same = {0}, off = {0}, twice = {0}, on = {0};
		const char *s = texts[i];

		assert_int_equal(
			zb_json_toggle(&same, s, strlen(s), "on", true, NULL),
			0);
		assert_string_equal(zb_buf_str(&same), s);
		assert_int_equal(
			zb_json_toggle(&off, s, strlen(s), "on", false, NULL),
			0);
		assert_string_not_equal(zb_buf_str(&off), s);
		assert_int_equal(zb_json_toggle(&twice, off.data, off.len, "on",
						false, NULL),
				 0);
		assert_string_equal(zb_buf_str(&twice), zb_buf_str(&off));
		assert_int_equal(zb_json_toggle(&on, off.data, off.len, "on",
						true, NULL),
				 0);
		assert_string_equal(zb_buf_str(&on), s);
		zb_buf_done(&same);
		zb_buf_done(&off);
		zb_buf_done(&twice);
		zb_buf_done(&on);
	}
}

static void toggles_only_booleans(void **state)
{
	static const char *const bad[] = {"{\"on\":1}", "{\"on\":\"true\"}",
					  "[]", "{\"on\":true"};
	struct zb_buf out = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(zb_json_toggle(&out, bad[i], strlen(bad[i]),
						"on", true, NULL),
				 ZB_EUSAGE);
	assert_int_equal(
		zb_json_toggle(&out, "{\"on\":null}", 11, "on", false, NULL),
		0);
	assert_string_equal(zb_buf_str(&out), "{\"on\":false}");
	zb_buf_clear(&out);
	assert_int_equal(zb_json_toggle(&out, "{}", 2, "on", false, NULL), 0);
	assert_string_equal(zb_buf_str(&out), "{\"on\": false}");
	zb_buf_done(&out);
}

static void refuses_what_is_no_object(void **state)
{
	static const char *const bad[] = {
		"", "[]", "{", "{\"a\":1,\"A\":2}", "\"x\"", "{} {}"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct zb_buf out = {0};
		struct zb_error err = {0};

		assert_int_equal(zb_json_set(&out, bad[i], strlen(bad[i]), "a",
					     "1", &err),
				 ZB_EUSAGE);
		assert_int_equal(out.len, 0);
		zb_buf_done(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replaces_in_place),
		cmocka_unit_test(adds_first_in_the_files_own_style),
		cmocka_unit_test(twice_toggled_is_the_same),
		cmocka_unit_test(toggled_back_is_the_same),
		cmocka_unit_test(toggles_only_booleans),
		cmocka_unit_test(refuses_what_is_no_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
