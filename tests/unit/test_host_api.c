/* test_host_api.c - the client API as text: every row of the table. */
#include "cleanup.h"
#include "host_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct zb_api_request q;
static struct zb_error err;

static int read_line(const char *line)
{
	memset(&err, 0, sizeof(err));
	return zb_api_read(&q, line, strlen(line), &err);
}

/* One that is good, with what it must come to. */
static void good(const char *line, enum zb_api_type type)
{
	if (read_line(line))
		fail_msg("%s: %s", line, err.msg);
	assert_int_equal(q.type, type);
	assert_string_equal(q.command, zb_api_type_name(type));
}

static void bad(const char *line, const char *why)
{
	int rc = read_line(line);

	if (rc != ZB_EUSAGE || !strstr(err.msg, why))
		fail_msg("%s: %d: %s", line, rc, err.msg);
	zb_api_request_done(&q);
}

static void reads_every_request(void **state)
{
	static const struct {
		const char *line;
		enum zb_api_type type;
	} rows[] = {
		{"{\"type\":\"hello\"}", ZB_API_HELLO},
		{"{\"type\":\"list_extensions\"}", ZB_API_LIST_EXTENSIONS},
		{"{\"type\":\"list_commands\"}", ZB_API_LIST_COMMANDS},
		{"{\"type\":\"list_tools\"}", ZB_API_LIST_TOOLS},
		{"{\"type\":\"invoke\",\"name\":\"x\"}", ZB_API_INVOKE},
		{"{\"type\":\"tool_call\",\"name\":\"x\"}", ZB_API_TOOL_CALL},
		{"{\"type\":\"event\",\"event\":\"x\"}", ZB_API_EVENT},
		{"{\"type\":\"intercept\",\"event\":\"x\"}", ZB_API_INTERCEPT},
		{"{\"type\":\"panel_key\",\"panel_id\":\"p\",\"key\":\"up\"}",
		 ZB_API_PANEL_KEY},
		{"{\"type\":\"panel_close\",\"panel_id\":\"p\"}",
		 ZB_API_PANEL_CLOSE},
		{"{\"type\":\"panel_resize\",\"panel_id\":\"p\"}",
		 ZB_API_PANEL_RESIZE},
		{"{\"type\":\"reload\"}", ZB_API_RELOAD},
		{"{\"type\":\"denials\"}", ZB_API_DENIALS},
		{"{\"type\":\"state\"}", ZB_API_STATE},
		{"{\"type\":\"ping\"}", ZB_API_PING},
		{"{\"type\":\"shutdown\"}", ZB_API_SHUTDOWN},
	};

	(void)state;
	assert_int_equal(ZB_ARRAY_LEN(rows), ZB_API_TYPES);
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		good(rows[i].line, rows[i].type);
		assert_string_equal(q.id, "null");
		zb_api_request_done(&q);
	}
}

static void reads_every_field(void **state)
{
	(void)state;
	good("{\"id\":1,\"type\":\"hello\",\"token\":\"t\\n\","
	     "\"builtin_commands\":[\"a\",\"b\"],\"builtin_tools\":[]}",
	     ZB_API_HELLO);
	assert_string_equal(q.text[ZB_API_TOKEN], "t\n");
	assert_int_equal(q.list[ZB_API_BUILTIN_COMMANDS].n, 2);
	assert_string_equal(q.list[ZB_API_BUILTIN_COMMANDS].v[1], "b");
	assert_int_equal(q.list[ZB_API_BUILTIN_TOOLS].n, 0);
	zb_api_request_done(&q);

	good("{\"type\":\"list_tools\",\"format\":\"kimi\"}",
	     ZB_API_LIST_TOOLS);
	assert_string_equal(q.text[ZB_API_FORMAT], "kimi");
	zb_api_request_done(&q);

	good("{\"type\":\"invoke\",\"name\":\"x\",\"args\":\" a \"}",
	     ZB_API_INVOKE);
	assert_string_equal(q.text[ZB_API_ARGS], " a ");
	zb_api_request_done(&q);

	/* Numbers and the order of keys stay what they are. */
	good("{\"type\":\"tool_call\",\"name\":\"x\",\"timeout_ms\":1500.0,"
	     "\"args\": {\"b\":9007199254740993,\"a\":[1]} }",
	     ZB_API_TOOL_CALL);
	assert_string_equal(q.text[ZB_API_ARGS],
			    "{\"b\":9007199254740993,\"a\":[1]}");
	assert_int_equal(q.number[ZB_API_TIMEOUT_MS], 1500);
	zb_api_request_done(&q);

	good("{\"type\":\"panel_key\",\"panel_id\":\"p\",\"key\":\"rune\","
	     "\"text\":\"\",\"extension\":\"e\"}",
	     ZB_API_PANEL_KEY);
	assert_string_equal(q.text[ZB_API_PANEL_ID], "p");
	assert_string_equal(q.text[ZB_API_KEY], "rune");
	assert_string_equal(q.text[ZB_API_TEXT], "");
	assert_string_equal(q.text[ZB_API_EXTENSION], "e");
	zb_api_request_done(&q);

	good("{\"type\":\"panel_resize\",\"panel_id\":\"p\",\"columns\":80,"
	     "\"rows\":24}",
	     ZB_API_PANEL_RESIZE);
	assert_int_equal(q.number[ZB_API_COLUMNS], 80);
	assert_int_equal(q.number[ZB_API_ROWS], 24);
	zb_api_request_done(&q);

	good("{\"type\":\"denials\",\"name\":null,\"since\":\"2h\"}",
	     ZB_API_DENIALS);
	assert_null(q.text[ZB_API_NAME]);
	assert_string_equal(q.text[ZB_API_SINCE], "2h");
	zb_api_request_done(&q);
}

static void keeps_what_belongs_to_the_frame(void **state)
{
	(void)state;
	good("{\"a\" : 1, \"id\":2,\"type\":\"event\",\"event\":\"turn_end\","
	     "\"stop\":\"end\",\"name\":\"n\"}",
	     ZB_API_EVENT);
	assert_string_equal(q.text[ZB_API_EVENT_NAME], "turn_end");
	assert_string_equal(q.fields,
			    "{\"a\" : 1,\"stop\":\"end\",\"name\":\"n\"}");
	zb_api_request_done(&q);
	good("{\"type\":\"intercept\",\"event\":\"x\"}", ZB_API_INTERCEPT);
	assert_string_equal(q.fields, "{}");
	zb_api_request_done(&q);
}

static void echoes_ids(void **state)
{
	static const char *const ids[] = {"1", "-0.5e3", "123456789012345678",
					  "\"\"", "\"a\\u0041\\\"\""};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(ids); i++) {
		zb_auto(free) char *line =
			zb_strf("{\"id\":%s,\"type\":\"ping\"}", ids[i]);

		good(line, ZB_API_PING);
		assert_string_equal(q.id, ids[i]);
		zb_api_request_done(&q);
	}
	/* Also of what is wrong, as far as it can be read. */
	assert_int_equal(read_line("{\"id\":\"x\",\"type\":\"pin\"}"),
			 ZB_EUSAGE);
	assert_string_equal(q.id, "\"x\"");
	assert_string_equal(q.command, "pin");
	zb_api_request_done(&q);
	assert_int_equal(read_line("{"), ZB_EUSAGE);
	assert_string_equal(q.id, "null");
	assert_null(q.command);
	zb_api_request_done(&q);
}

static void refuses_what_is_wrong(void **state)
{
	zb_auto(free) char *id = zb_strf("{\"id\":\"%0300d\",\"type\":"
					 "\"ping\"}",
					 0);
	struct zb_buf many = {0};

	(void)state;
	bad("", "malformed JSON at byte 1");
	bad("{\"type\":\"ping\"} x", "malformed JSON at byte 17");
	bad("\"ping\"", "a request is a JSON object");
	bad("{\"id\":1}", "needs a \"type\"");
	bad("{\"type\":1}", "needs a \"type\"");
	bad("{\"type\":\"png\"}", "did you mean \"ping\"?");
	bad("{\"type\":\"x\\u001b[2J\"}", "unknown request \"x\\x1b[2J\"");
	bad("{\"id\":true,\"type\":\"ping\"}", "id must be");
	bad(id, "id is longer than 256");
	bad("{\"type\":\"ping\",\"Type\":\"x\"}", "duplicate key");
	bad("{\"type\":\"ping\",\"x\":1}", "ping has no field \"x\"");
	bad("{\"type\":\"reload\",\"nam\":\"x\"}", "did you mean \"name\"?");
	bad("{\"type\":\"invoke\"}", "invoke needs \"name\"");
	bad("{\"type\":\"invoke\",\"name\":null}", "invoke needs \"name\"");
	bad("{\"type\":\"invoke\",\"name\":\"\"}", "not empty");
	bad("{\"type\":\"invoke\",\"name\":{}}", "name must be a string");
	bad("{\"type\":\"invoke\",\"name\":\"a\\u0000b\"}", "without \\u0000");
	bad("{\"type\":\"invoke\",\"name\":\"x\",\"args\":{}}",
	    "args must be a string");
	bad("{\"type\":\"tool_call\",\"name\":\"x\",\"args\":\"\"}",
	    "args must be an object");
	bad("{\"type\":\"tool_call\",\"name\":\"x\",\"timeout_ms\":0}",
	    "timeout_ms must be a whole number");
	bad("{\"type\":\"tool_call\",\"name\":\"x\",\"timeout_ms\":1.5}",
	    "timeout_ms must be a whole number");
	bad("{\"type\":\"tool_call\",\"name\":\"x\",\"timeout_ms\":1e10}",
	    "timeout_ms must be a whole number");
	bad("{\"type\":\"event\"}", "event needs \"event\"");
	bad("{\"type\":\"panel_key\",\"panel_id\":\"p\"}", "needs \"key\"");
	bad("{\"type\":\"hello\",\"builtin_tools\":{}}", "list of at most");
	bad("{\"type\":\"hello\",\"builtin_tools\":[1]}", "list of at most");
	zb_buf_adds(&many, "{\"type\":\"hello\",\"builtin_tools\":[\"a\"");
	for (int i = 0; i < 256; i++)
		zb_buf_adds(&many, ",\"a\"");
	zb_buf_adds(&many, "]}");
	bad(zb_buf_str(&many), "list of at most 256");
	zb_buf_done(&many);
}

static struct zb_buf out;

static void expect(const char *text)
{
	assert_string_equal(zb_buf_str(&out), text);
	zb_buf_done(&out);
}

static void writes_replies(void **state)
{
	(void)state;
	assert_int_equal(zb_api_success(&out, "\"a\"", "ping", "{}"), 0);
	expect("{\"type\":\"response\",\"id\":\"a\",\"command\":\"ping\","
	       "\"success\":true,\"data\":{}}");
	zb_api_failure(&out, "1", "x\x1b", ZB_API_TIMEOUT, "late \xff");
	expect("{\"type\":\"response\",\"id\":1,\"command\":\"x\\u001b\","
	       "\"success\":false,\"error\":\"late \xef\xbf\xbd\","
	       "\"code\":\"timeout\"}");
	zb_api_failure(&out, NULL, NULL, ZB_API_USAGE, "x");
	expect("{\"type\":\"response\",\"id\":null,\"command\":null,"
	       "\"success\":false,\"error\":\"x\",\"code\":\"usage\"}");
	zb_api_event(&out, "ext_ready", "e", "{}");
	expect("{\"type\":\"ext_ready\",\"extension\":\"e\"}");
	zb_api_event(&out, "ext_log", NULL, "{\"text\":\"x\"}");
	expect("{\"type\":\"ext_log\",\"extension\":null,\"text\":\"x\"}");
}

/* @frame becomes @event with @rest; NULL: none. */
static void becomes(const char *type, const char *frame, const char *event,
		    const char *rest)
{
	const char *got = zb_api_frame_event(type, frame, strlen(frame), &out);

	if (!event) {
		assert_null(got);
		zb_buf_done(&out);
		return;
	}
	assert_non_null(got);
	assert_string_equal(got, event);
	expect(rest);
}

static void frames_become_events(void **state)
{
	(void)state;
	becomes("notify",
		"{\"type\":\"notify\",\"level\":\"info\",\"message\":\"m\"}",
		"ext_notify", "{\"level\":\"info\",\"message\":\"m\"}");
	becomes("display", "{\"type\":\"display\",\"text\":\"t\"}",
		"ext_display", "{\"text\":\"t\"}");
	becomes("clear_notes", "{\"type\":\"clear_notes\"}", "ext_clear_notes",
		"{}");
	becomes("panel_render",
		"{\"type\":\"panel_render\",\"panel_id\":\"p\",\"lines\":[]}",
		"ext_panel_render", "{\"panel_id\":\"p\",\"lines\":[]}");
	becomes("panel_close", "{\"type\":\"panel_close\",\"panel_id\":\"p\"}",
		"ext_panel_close", "{\"panel_id\":\"p\"}");
	becomes("open_panel",
		"{\"type\":\"open_panel\",\"panel\":{\"lines\":[\"l\"],"
		"\"id\":\"p\"}}",
		"ext_panel_open", "{\"panel_id\":\"p\",\"lines\":[\"l\"]}");
	becomes("open_panel",
		"{\"type\":\"open_panel\",\"panel\":{\"id\":\"p\"}}",
		"ext_panel_open", "{\"panel_id\":\"p\"}");
	becomes("open_panel", "{\"type\":\"open_panel\",\"panel\":{}}", NULL,
		NULL);
	becomes("command_response",
		"{\"type\":\"command_response\",\"id\":\"1\",\"action\":"
		"\"prompt\",\"prompt\":\"do\"}",
		"ext_prompt", "{\"text\":\"do\"}");
	becomes("command_response",
		"{\"type\":\"command_response\",\"action\":\"insert\","
		"\"insert\":\"i\\u001b\"}",
		"ext_insert", "{\"text\":\"i\\u001b\"}");
	becomes("command_response",
		"{\"type\":\"command_response\",\"action\":\"display\","
		"\"display\":\"d\",\"error\":\"e\"}",
		"ext_display", "{\"text\":\"d\"}");
	becomes("command_response",
		"{\"type\":\"command_response\",\"action\":\"open_panel\","
		"\"open_panel\":{\"id\":\"p\",\"title\":\"t\"}}",
		"ext_panel_open", "{\"panel_id\":\"p\",\"title\":\"t\"}");
	becomes("command_response",
		"{\"type\":\"command_response\",\"action\":\"tool_prompt\","
		"\"prompt\":\"p\",\"tool_args\":{\"type\":1, \"id\":2},"
		"\"tool_name\":\"t\"}",
		"ext_tool_prompt",
		"{\"name\":\"t\",\"args\":{\"type\":1,\"id\":2},"
		"\"text\":\"p\"}");
	becomes("command_response",
		"{\"type\":\"command_response\",\"action\":\"tool_prompt\","
		"\"prompt\":\"p\",\"tool_args\":{}}",
		NULL, NULL);
	becomes("command_response",
		"{\"type\":\"command_response\",\"action\":\"noop\"}", NULL,
		NULL);
	becomes("command_response",
		"{\"type\":\"command_response\",\"action\":\"prompt\"}", NULL,
		NULL);
	becomes("tool_result", "{\"type\":\"tool_result\"}", NULL, NULL);
	becomes("notify", "{", NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_request),
		cmocka_unit_test(reads_every_field),
		cmocka_unit_test(keeps_what_belongs_to_the_frame),
		cmocka_unit_test(echoes_ids),
		cmocka_unit_test(refuses_what_is_wrong),
		cmocka_unit_test(writes_replies),
		cmocka_unit_test(frames_become_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
