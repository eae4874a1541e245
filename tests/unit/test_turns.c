/* test_turns.c - idle, busy, and what waits. */
#include "turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void next_is(struct zb_turns *t, const char *who, const char *text)
{
	struct zb_prompt p;

	assert_true(zb_turns_next(t, &p));
	assert_string_equal(p.who, who);
	assert_string_equal(p.text, text);
	free(p.who);
	free(p.text);
}

static void follows_the_turns(void **state)
{
	struct zb_turns t = {0};

	(void)state;
	assert_true(zb_turns_event(&t, "turn_start", NULL, 1));
	assert_true(t.busy);
	assert_false(zb_turns_event(&t, "turn_end", "tool_use", 0));
	assert_true(t.busy);
	assert_false(zb_turns_event(&t, "turn_start", NULL, 2));
	assert_false(zb_turns_event(&t, "turn_end", "end", 0));
	assert_false(t.busy);
	/* A step that is not the first is no new prompt. */
	assert_false(zb_turns_event(&t, "turn_start", NULL, 2));
	assert_false(zb_turns_event(&t, "turn_end", NULL, 0));
	assert_false(t.busy);
	assert_true(zb_turns_event(&t, "turn_start", NULL, 0));
	assert_true(zb_turns_event(&t, "user_prompt_submit", NULL, 0));
	assert_true(t.busy);
	assert_false(zb_turns_event(&t, "tool_call", NULL, 0));
	assert_true(t.busy);
	zb_turns_done(&t);
}

static void queues_while_busy(void **state)
{
	struct zb_turns t = {0};
	struct zb_prompt p;

	(void)state;
	assert_int_equal(zb_turns_submit(&t, "e", ""), ZB_SUBMIT_IGNORED);
	assert_int_equal(zb_turns_submit(&t, "e", " \t\n\xe3\x80\x80"),
			 ZB_SUBMIT_IGNORED);
	assert_false(t.busy);
	assert_int_equal(zb_turns_submit(&t, "e", "1"), ZB_SUBMIT_NOW);
	assert_true(t.busy);
	assert_int_equal(zb_turns_submit(&t, "f", "2"), ZB_SUBMIT_QUEUED);
	assert_int_equal(zb_turns_submit(&t, "e", "3"), ZB_SUBMIT_QUEUED);
	assert_false(zb_turns_next(&t, &p));
	zb_turns_event(&t, "turn_end", "end", 0);
	/* Nobody overtakes those that wait. */
	assert_int_equal(zb_turns_submit(&t, "g", "4"), ZB_SUBMIT_QUEUED);
	next_is(&t, "f", "2");
	assert_false(zb_turns_next(&t, &p));
	zb_turns_event(&t, "turn_end", "aborted", 0);
	next_is(&t, "e", "3");
	zb_turns_event(&t, "turn_end", "end", 0);
	next_is(&t, "g", "4");
	zb_turns_event(&t, "turn_end", "end", 0);
	assert_false(zb_turns_next(&t, &p));
	assert_false(t.busy);
	zb_turns_done(&t);
}

static void is_bounded(void **state)
{
	struct zb_turns t = {.busy = true};
	char *large = malloc(ZB_TURNS_BYTES);

	(void)state;
	assert_non_null(large);
	memset(large, 'x', ZB_TURNS_BYTES - 1);
	large[ZB_TURNS_BYTES - 1] = '\0';
	for (unsigned i = 0; i < ZB_TURNS_QUEUE; i++)
		assert_int_equal(zb_turns_submit(&t, "e", "x"),
				 ZB_SUBMIT_QUEUED);
	assert_int_equal(zb_turns_submit(&t, "e", "x"), ZB_SUBMIT_FULL);
	zb_turns_done(&t);
	t.busy = true;
	assert_int_equal(zb_turns_submit(&t, "e", large), ZB_SUBMIT_QUEUED);
	assert_int_equal(zb_turns_submit(&t, "e", "x"), ZB_SUBMIT_QUEUED);
	assert_int_equal(zb_turns_submit(&t, "e", "x"), ZB_SUBMIT_FULL);
	zb_turns_event(&t, "turn_end", NULL, 0);
	next_is(&t, "e", large);
	assert_int_equal(zb_turns_submit(&t, "e", "x"), ZB_SUBMIT_QUEUED);
	zb_turns_done(&t);
	free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_the_turns),
		cmocka_unit_test(queues_while_busy),
		cmocka_unit_test(is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
