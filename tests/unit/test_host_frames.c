/* test_host_frames.c - frames as a host writes and reads them. */
#include "host_frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct zb_buf out;

static void expect(const char *text)
{
	assert_string_equal(zb_buf_str(&out), text);
	zb_buf_clear(&out);
}

static void writes_what_zot_writes(void **state)
{
	const struct zb_hello_info info = {.zot_version = "1",
					   .provider = "p",
					   .model = "m\"",
					   .cwd = "/p",
					   .extension_dir = "/e",
					   .data_dir = "/d"};

	(void)state;
	zb_host_hello_ack(&out, &info);
	expect("{\"type\":\"hello_ack\",\"protocol_version\":1,"
	       "\"zot_version\":\"1\",\"provider\":\"p\",\"model\":\"m\\\"\","
	       "\"cwd\":\"/p\",\"extension_dir\":\"/e\",\"data_dir\":\"/d\"}");
	zb_host_tool_call(&out, "z1", "t", "{\"n\": 9007199254740993}");
	expect("{\"type\":\"tool_call\",\"id\":\"z1\",\"name\":\"t\","
	       "\"args\":{\"n\": 9007199254740993}}");
	zb_host_command(&out, "z2", "c", "");
	expect("{\"type\":\"command_invoked\",\"id\":\"z2\",\"name\":\"c\"}");
	zb_host_command(&out, "z2", "c", "a  b");
	expect("{\"type\":\"command_invoked\",\"id\":\"z2\",\"name\":\"c\","
	       "\"args\":\"a  b\"}");
	zb_host_event(&out, "turn_end", "{ \"stop\" : \"end\" }");
	expect("{\"type\":\"event\",\"event\":\"turn_end\",\"stop\":\"end\"}");
	zb_host_panel_key(&out, "p", "rune", "x");
	expect("{\"type\":\"panel_key\",\"panel_id\":\"p\",\"key\":\"rune\","
	       "\"text\":\"x\"}");
	zb_host_panel_close(&out, "p");
	expect("{\"type\":\"panel_close\",\"panel_id\":\"p\"}");
	zb_host_tool_cancel(&out, "z1");
	expect("{\"type\":\"tool_cancel\",\"id\":\"z1\"}");
	zb_host_refuse_tool(&out, "i", "no");
	expect("{\"type\":\"tool_result\",\"id\":\"i\",\"content\":[{\"type\":"
	       "\"text\",\"text\":\"no\"}],\"is_error\":true}");
}

/* A rewrite takes the place of the member, and comes in where there is none. */
static void intercepts_chain(void **state)
{
	(void)state;
	zb_host_intercept(&out, "z", "tool_call",
			  "{\"tool_args\":{\"a\":1},\"tool_name\":\"bash\"}",
			  NULL, NULL);
	expect("{\"type\":\"event_intercept\",\"id\":\"z\",\"event\":"
	       "\"tool_call\",\"tool_args\":{\"a\":1},\"tool_name\":\"bash\"}");
	zb_host_intercept(&out, "z", "tool_call",
			  "{\"tool_args\":{\"a\":1},\"tool_name\":\"bash\"}",
			  "tool_args", "{\"b\":2}");
	expect("{\"type\":\"event_intercept\",\"id\":\"z\",\"event\":"
	       "\"tool_call\",\"tool_name\":\"bash\",\"tool_args\":{\"b\":2}}");
	zb_host_intercept(&out, "z", "assistant_message", "{}", "text",
			  "\"t\"");
	expect("{\"type\":\"event_intercept\",\"id\":\"z\",\"event\":"
	       "\"assistant_message\",\"text\":\"t\"}");
}

#define ANSWER(rest)                                                           \
	"{\"type\":\"event_intercept_response\",\"id\":\"z\"" rest "}"

static void check_answer(const char *line, const char *event, bool block,
			 const char *reason, const char *rewrite)
{
	struct zb_intercept_answer a;

	assert_int_equal(zb_host_read_answer(&a, line, strlen(line), event), 0);
	assert_int_equal(a.block, block);
	assert_int_equal(a.reason != NULL, reason != NULL);
	if (reason)
		assert_string_equal(a.reason, reason);
	assert_int_equal(a.rewrite != NULL, rewrite != NULL);
	if (rewrite)
		assert_string_equal(a.rewrite, rewrite);
	zb_intercept_answer_done(&a);
}

static void answers(void **state)
{
	struct zb_intercept_answer a;

	(void)state;
	check_answer(ANSWER(""), "tool_call", false, NULL, NULL);
	check_answer(ANSWER(",\"block\":true,\"reason\":\"r\","
			    "\"modified_args\":{}"),
		     "tool_call", true, "r", NULL);
	check_answer(ANSWER(",\"block\":false,\"modified_args\":{\"x\": 1}"),
		     "tool_call", false, NULL, "{\"x\": 1}");
	check_answer(ANSWER(",\"modified_args\":null,\"replace_text\":\"t\""),
		     "tool_call", false, NULL, NULL);
	check_answer(ANSWER(",\"replace_text\":\"t\""), "assistant_message",
		     false, NULL, "\"t\"");
	check_answer(ANSWER(",\"replace_text\":\"\""), "assistant_message",
		     false, NULL, NULL);
	check_answer(ANSWER(",\"replace_text\":\"t\""), "turn_start", false,
		     NULL, NULL);
	assert_int_equal(zb_host_read_answer(&a, "{\"type\":\"ready\"}", 16,
					     "tool_call"),
			 ZB_EUSAGE);
	assert_int_equal(zb_host_read_answer(&a, "{", 1, "tool_call"),
			 ZB_EUSAGE);
}

static void rest(const char *line, const char *want)
{
	assert_int_equal(zb_frame_rest(&out, line, strlen(line)), 0);
	expect(want);
}

static void rest_of_a_frame(void **state)
{
	(void)state;
	rest("{\"type\":\"notify\",\"level\":\"info\",\"id\":\"x\"}",
	     "{\"level\":\"info\"}");
	rest("{\"type\":\"a\"}", "{}");
	/* The bytes of values stay: numbers, escapes, inner type and id. */
	rest("{ \"n\" : 9007199254740993 ,\r \"o\": {\"type\": 1, \"id\":2},"
	     "\"s\":\"a \\\" b\\\\\" }",
	     "{\"n\":9007199254740993,\"o\":{\"type\":1,\"id\":2},"
	     "\"s\":\"a \\\" b\\\\\"}");
	/* Nothing that a terminal acts on is left raw; the value is equal. */
	rest("{\"s\":\"a\302\233b\342\200\256c\363\240\201\201\"}",
	     "{\"s\":\"a\\u009bb\\u202ec\\udb40\\udc41\"}");
	assert_int_equal(zb_frame_rest(&out, "[1]", 3), ZB_EUSAGE);
	assert_int_equal(zb_frame_rest(&out, "{", 1), ZB_EUSAGE);
}

static void string_members(void **state)
{
	static const char line[] =
		"{\"type\":\"x\",\"name\":\"a\\nb\",\"n\":1}";
	char *s = zb_frame_string(line, strlen(line), "name");

	(void)state;
	assert_string_equal(s, "a\nb");
	free(s);
	assert_null(zb_frame_string(line, strlen(line), "n"));
	assert_null(zb_frame_string(line, strlen(line), "none"));
	assert_null(zb_frame_string("{", 1, "none"));
	zb_buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_what_zot_writes),
		cmocka_unit_test(intercepts_chain),
		cmocka_unit_test(answers),
		cmocka_unit_test(rest_of_a_frame),
		cmocka_unit_test(string_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
