/* test_console_script.c - lines of a console script. */
#include "console_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct zb_script_line parse(const char *text)
{
	struct zb_script_line l;
	struct zb_error err = {0};

	if (zb_script_parse(&l, text, strlen(text), &err))
		fail_msg("%s: %s", text, err.msg);
	return l;
}

static void refuse(const char *text, const char *part)
{
	struct zb_script_line l;
	struct zb_error err = {0};

	assert_int_equal(zb_script_parse(&l, text, strlen(text), &err),
			 ZB_EUSAGE);
	if (!strstr(err.msg, part))
		fail_msg("%s: \"%s\" lacks \"%s\"", text, err.msg, part);
	assert_null(l.name);
	assert_null(l.json);
}

static void nothing(void **state)
{
	static const char *const lines[] = {"",		  "   \t", "# x",
					    "  # call t", "\r",	   " \r"};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(parse(lines[i]).verb, ZB_SCRIPT_NOTHING);
}

static void check_command(const char *text, const char *name, const char *args,
			  bool detached)
{
	struct zb_script_line l = parse(text);

	assert_int_equal(l.verb, ZB_SCRIPT_COMMAND);
	assert_string_equal(l.name, name);
	assert_string_equal(l.text, args);
	assert_int_equal(l.detached, detached);
	zb_script_line_done(&l);
}

static void commands(void **state)
{
	(void)state;
	check_command("/hello", "hello", "", false);
	check_command("  /hello a  b  ", "hello", "a  b", false);
	check_command("cmd dEPLOY   a  b  ", "dEPLOY", "a  b", false);
	check_command("cmd \"odd name\\u00e9\" x\"y", "odd name\303\251",
		      "x\"y", false);
	check_command("/pause &", "pause", "", true);
	check_command("/pause x &  ", "pause", "x", true);
	check_command("/pause x \\&", "pause", "x &", false);
	check_command("/pause x&", "pause", "x&", false);
	check_command("/pause & x", "pause", "& x", false);
	check_command("/pause x\r", "pause", "x", false);
	check_command("//slash", "/slash", "", false);
}

static void check_json(const char *text, enum zb_script_verb verb,
		       const char *name, const char *json, bool detached)
{
	struct zb_script_line l = parse(text);

	assert_int_equal(l.verb, verb);
	assert_string_equal(l.name, name);
	assert_string_equal(l.json, json);
	assert_int_equal(l.detached, detached);
	zb_script_line_done(&l);
}

static void json_is_kept_byte_for_byte(void **state)
{
	(void)state;
	check_json("call t", ZB_SCRIPT_CALL, "t", "{}", false);
	check_json("call t  {\"n\": 9007199254740993, \"A\":1,\"a\":2} &",
		   ZB_SCRIPT_CALL, "t",
		   "{\"n\": 9007199254740993, \"A\":1,\"a\":2}", true);
	check_json("call \"a b\" {\"type\":\"x\"}", ZB_SCRIPT_CALL, "a b",
		   "{\"type\":\"x\"}", false);
	check_json("event turn_end {\"stop\":\"end\"}", ZB_SCRIPT_EVENT,
		   "turn_end", "{\"stop\":\"end\"}", false);
	check_json("intercept tool_call", ZB_SCRIPT_INTERCEPT, "tool_call",
		   "{}", false);
}

static void keys_and_panels(void **state)
{
	struct zb_script_line l = parse("key p down");

	(void)state;
	assert_int_equal(l.verb, ZB_SCRIPT_KEY);
	assert_string_equal(l.key, "down");
	assert_null(l.text);
	zb_script_line_done(&l);
	/* A typed blank is text. */
	l = parse("key \"my panel\" rune  ");
	assert_string_equal(l.name, "my panel");
	assert_string_equal(l.text, " ");
	zb_script_line_done(&l);
	l = parse("panel_close p");
	assert_int_equal(l.verb, ZB_SCRIPT_PANEL_CLOSE);
	zb_script_line_done(&l);
}

static void numbers(void **state)
{
	static const struct {
		const char *text;
		unsigned number;
	} rows[] = {
		{"sleep 0.2", 200}, {"sleep 14", 14000}, {"sleep 1.5", 1500},
		{"sleep 0", 0},	    {"sleep 0.001", 1},	 {"sleep 2.", 2000},
		{"kill a 9", 9},    {"kill a KILL", 9},	 {"kill a SIGTERM", 15},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct zb_script_line l = parse(rows[i].text);

		assert_int_equal(l.number, rows[i].number);
		zb_script_line_done(&l);
	}
}

static void bare_verbs(void **state)
{
	struct zb_script_line l;

	(void)state;
	assert_int_equal(parse("idle").verb, ZB_SCRIPT_IDLE);
	assert_int_equal(parse("tools").verb, ZB_SCRIPT_TOOLS);
	assert_int_equal(parse("commands ").verb, ZB_SCRIPT_COMMANDS);
	assert_int_equal(parse("exts").verb, ZB_SCRIPT_EXTS);
	assert_int_equal(parse("shutdown").verb, ZB_SCRIPT_SHUTDOWN);
	assert_int_equal(parse("denials").verb, ZB_SCRIPT_DENIALS);
	assert_null(parse("reload").name);
	l = parse("reload pd &");
	assert_string_equal(l.name, "pd");
	assert_true(l.detached);
	zb_script_line_done(&l);
}

static void bad_lines(void **state)
{
	struct zb_error err = {0};
	struct zb_script_line l;

	(void)state;
	refuse("cal t", "did you mean \"call\"?");
	refuse("\033[2J", "unknown verb \"\\x1b[2J\"; zotbox console --help");
	refuse("/", "/NAME");
	refuse("call", "call TOOL [JSON]");
	refuse("call t {", "not JSON");
	refuse("call t [1]", "takes one JSON object");
	refuse("call t {} {}", "not JSON");
	refuse("call t {},\"b\":{}", "takes one JSON object");
	refuse("call \"t {}", "string without an end");
	refuse("event x {\"type\":\"y\"}", "\"type\" is set by the console");
	refuse("event x {\"TYPE\":\"y\"}", "\"type\" is set by the console");
	refuse("intercept x {\"i\\u0064\":1}", "\"id\" is set");
	refuse("event x {\"a\":1,\"A\":2}", "not JSON");
	refuse("key p", "key PANEL KEY [TEXT]");
	refuse("sleep", "number of seconds");
	refuse("sleep -1", "number of seconds");
	refuse("sleep .", "number of seconds");
	refuse("sleep 1e9", "number of seconds");
	refuse("sleep 99999999", "number of seconds");
	refuse("kill a", "needs a signal");
	refuse("kill a NOPE", "signal's name or number");
	refuse("kill a 65", "signal's name or number");
	refuse("idle now", "takes no more");
	refuse("reload a b", "takes no more");
	refuse("call t \377", "UTF-8");
	assert_int_equal(zb_script_parse(&l, "idle\0x", 6, &err), ZB_EUSAGE);
}

static void slots(void **state)
{
	static const struct {
		const char *line; /* the word asked for begins at its end */
		enum zb_script_slot slot;
	} rows[] = {
		{"", ZB_SLOT_VERB},	   {"  ", ZB_SLOT_VERB},
		{"call ", ZB_SLOT_TOOL},   {"  call  ", ZB_SLOT_TOOL},
		{"call t ", ZB_SLOT_NONE}, {"cmd ", ZB_SLOT_COMMAND},
		{"/p ", ZB_SLOT_NONE},	   {"key ", ZB_SLOT_PANEL},
		{"key p ", ZB_SLOT_KEY},   {"key p up ", ZB_SLOT_NONE},
		{"kill ", ZB_SLOT_EXT},	   {"event ", ZB_SLOT_EVENT},
		{"sleep ", ZB_SLOT_NONE},  {"nonsense ", ZB_SLOT_NONE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(
			zb_script_slot(rows[i].line, strlen(rows[i].line)),
			rows[i].slot);
	assert_string_equal(zb_script_verb_word(0), "call");
	for (size_t i = 0; zb_script_verb_word(i); i++)
		assert_in_range(i, 0, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing),
		cmocka_unit_test(commands),
		cmocka_unit_test(json_is_kept_byte_for_byte),
		cmocka_unit_test(keys_and_panels),
		cmocka_unit_test(numbers),
		cmocka_unit_test(bare_verbs),
		cmocka_unit_test(bad_lines),
		cmocka_unit_test(slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
