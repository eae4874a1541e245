/* test_guard.c - questions to a guard that must not go unanswered. */
#include "guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char tool_call[] = "tool_call", turn_start[] = "turn_start";
static struct zb_intercept granted[] = {{.event = tool_call},
					{.event = turn_start}};
static char name[] = "fw";

static struct zb_plan plan(bool block, uint64_t seconds)
{
	struct zb_plan p = {.name = name};

	p.scope.intercepts = granted;
	p.scope.n_intercepts = 2;
	p.scope.on_failure_block = block;
	p.scope.limits[ZB_LIMIT_INTERCEPT_SECONDS] =
		(struct zb_limit_value){.set = true, .value = seconds};
	return p;
}

static bool question(const struct zb_guard *g, const char *line,
		     struct zb_guard_call *out)
{
	return zb_guard_question(g, line, strlen(line), out);
}

static void off_unless_the_scope_says_so(void **state)
{
	struct zb_plan p = plan(false, 5);
	struct zb_guard g;
	struct zb_guard_call c;

	(void)state;
	assert_int_equal(zb_guard_init(&g, &p), 0);
	assert_false(g.on);
	assert_false(question(&g,
			      "{\"type\":\"event_intercept\",\"id\":\"1\","
			      "\"event\":\"tool_call\"}",
			      &c));
	zb_guard_done(&g);
}

static void questions(void **state)
{
	struct zb_plan p = plan(true, 5);
	struct zb_guard g;
	struct zb_guard_call c;

	(void)state;
	zb_guard_init(&g, &p);
	assert_true(question(&g,
			     "{\"type\":\"event_intercept\",\"id\":\"1\","
			     "\"event\":\"tool_call\",\"tool_name\":\"bash\"}",
			     &c));
	assert_string_equal(c.id, "1");
	assert_string_equal(c.tool, "bash");
	zb_guard_call_done(&c);
	/* What the strict scanner refuses is a question all the same. */
	assert_true(question(&g,
			     "{\"type\":\"event_intercept\",\"id\":\"2\","
			     "\"event\":\"tool_call\",\"tool_args\":"
			     "{\"a\":\"\\ud800\"}}",
			     &c));
	assert_string_equal(c.id, "2");
	zb_guard_call_done(&c);
	/* Not of a granted event, not a question, not a frame. */
	assert_false(question(&g,
			      "{\"type\":\"event_intercept\",\"id\":\"1\","
			      "\"event\":\"assistant_message\"}",
			      &c));
	assert_false(question(
		&g, "{\"type\":\"event\",\"event\":\"tool_call\"}", &c));
	assert_false(question(&g, "{", &c));
	zb_guard_done(&g);
}

static struct zb_guard_call call(const char *id)
{
	return (struct zb_guard_call){.id = zb_strdup(id),
				      .event = zb_strdup(tool_call),
				      .tool = zb_strdup("bash")};
}

static void deadlines(void **state)
{
	struct zb_plan p = plan(true, 60);
	struct zb_guard_call c = call("1"), d = call("2"), due;
	struct zb_guard g;

	(void)state;
	zb_guard_init(&g, &p);
	assert_int_equal(zb_guard_wait(&g, 0), -1);
	/* Before zot's own 5 s, whatever the scope says. */
	assert_int_equal(zb_guard_ask(&g, 1000, &c), 0);
	assert_null(c.id);
	assert_int_equal(zb_guard_wait(&g, 1000), 4500);
	assert_int_equal(zb_guard_ask(&g, 2000, &d), 0);
	zb_guard_answered(&g, "nobody");
	assert_false(zb_guard_due(&g, 5499, &due));
	assert_true(zb_guard_due(&g, 5500, &due));
	assert_string_equal(due.id, "1");
	zb_guard_call_done(&due);
	zb_guard_answered(&g, "2");
	assert_int_equal(zb_guard_wait(&g, 5500), -1);
	assert_false(zb_guard_due(&g, INT64_MAX, &due));
	zb_guard_done(&g);
	p = plan(true, 2);
	zb_guard_init(&g, &p);
	assert_int_equal(g.wait_ms, 2000);
	zb_guard_done(&g);
}

static void bounded(void **state)
{
	struct zb_plan p = plan(true, 5);
	struct zb_guard_call c;
	struct zb_guard g;

	(void)state;
	zb_guard_init(&g, &p);
	for (int i = 0; i < ZB_GUARD_OPEN; i++) {
		c = call("x");
		assert_int_equal(zb_guard_ask(&g, 0, &c), 0);
	}
	c = call("more");
	assert_int_equal(zb_guard_ask(&g, 0, &c), ZB_ELIMIT);
	assert_string_equal(c.id, "more");
	zb_guard_call_done(&c);
	zb_guard_done(&g);
}

static void frames(void **state)
{
	struct zb_plan p = plan(true, 5);
	struct zb_guard_call c = call("a\"");
	struct zb_strv events = {0};
	struct zb_buf b = {0};
	struct zb_guard g;

	(void)state;
	zb_guard_init(&g, &p);
	zb_guard_block(&g, &c, "is not running (exited with status 1)", &b);
	assert_string_equal(
		zb_buf_str(&b),
		"{\"type\":\"event_intercept_response\",\"id\":\"a\\\"\","
		"\"block\":true,\"reason\":\"required guard \\\"fw\\\" is not "
		"running (exited with status 1); blocked: tool_call bash\"}");
	zb_buf_clear(&b);
	zb_guard_allow(&c, &b);
	assert_string_equal(zb_buf_str(&b),
			    "{\"type\":\"event_intercept_response\",\"id\":"
			    "\"a\\\"\"}");
	zb_buf_clear(&b);
	zb_guard_subscribe(&g, NULL, &b);
	assert_string_equal(zb_buf_str(&b),
			    "{\"type\":\"subscribe\",\"events\":[],"
			    "\"intercept\":[\"tool_call\",\"turn_start\"]}");
	zb_buf_clear(&b);
	zb_strv_add(&events, "turn_end");
	zb_strv_add(&events, "tool_call");
	zb_guard_subscribe(&g, &events, &b);
	assert_string_equal(
		zb_buf_str(&b),
		"{\"type\":\"subscribe\",\"events\":[\"turn_end\","
		"\"tool_call\"],\"intercept\":[\"tool_call\",\"turn_start\"]}");
	zb_buf_done(&b);
	zb_strv_done(&events);
	zb_guard_call_done(&c);
	zb_guard_done(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(off_unless_the_scope_says_so),
		cmocka_unit_test(questions),
		cmocka_unit_test(deadlines),
		cmocka_unit_test(bounded),
		cmocka_unit_test(frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
