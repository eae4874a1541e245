/* test_golden.c - plans as each system gets them, against files: those written
 * by hand, and presets as they are resolved on a host made of a table. What is
 * resolved is judged by the two readers as well. */
#include "../unit/fake_host.h"

#include "golden.h"
#include "judge.h"
#include "plans.h"

#include "cleanup.h"

static void matches_golden_files(void **state)
{
	(void)state;
	for (size_t i = 0; zb_test_plan_names[i]; i++) {
		struct zb_plan plan;

		assert_true(zb_test_plan(zb_test_plan_names[i], &plan));
		golden_compare(&plan, zb_test_plan_names[i]);
		zb_test_plan_done(&plan);
	}
}

static const struct {
	const char *name, *preset, *scope;
} resolved[] = {
	{"resolved-strict", "strict", NULL},
	{"resolved-standard", "standard", NULL},
	{"resolved-apart", "standard",
	 "{\"zotbox\":1,\"fs\":{\"state\":\"apart\",\"exec\":[\"git\"],"
	 "\"read\":[\"~/.config/weather\"],"
	 "\"write\":[\"~/src/other/x.txt\"]}}"},
};

/* The presets themselves, from policies/. */
static void presets_match_and_are_judged(void **state)
{
	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(resolved); i++) {
		struct fake_setup s;
		struct texts t;

		fake_init(&s);
		s.scopes[0] = "strict";
		s.scopes[1] = strcmp(resolved[i].preset, "strict")
				      ? resolved[i].preset
				      : resolved[i].scope;
		s.scopes[2] = s.scopes[1] == resolved[i].preset
				      ? resolved[i].scope
				      : NULL;
		if (fake_plan(&s, &t.plan))
			fail_msg("%s: %s", resolved[i].name, s.err.msg);
		golden_compare(&t.plan, resolved[i].name);
		judge_read(&t);
		assert_true(judge_sweep(&t) > 100);
		judge_done(&t);
		fake_done(&s);
	}
}

/* What explains a plan is shown to people: no value of the environment. */
static void shows_no_secret(void **state)
{
	struct zb_plan plan;
	bool has_one = false;

	(void)state;
	assert_true(zb_test_plan("strict-python", &plan));
	for (size_t i = 0; i < plan.n_env; i++)
		has_one |= !strcmp(plan.env[i].value, "s3cret-value");
	assert_true(has_one);
	for (size_t s = 0; s < GOLDEN_SYSTEMS; s++) {
		struct zb_buf b = {0};

		golden_text(&plan, s, &b);
		assert_null(strstr(zb_buf_str(&b), "s3cret"));
		zb_buf_done(&b);
	}
	zb_test_plan_done(&plan);
}

/* Two renders of one plan are the same, byte for byte. */
static void is_deterministic(void **state)
{
	(void)state;
	for (size_t i = 0; zb_test_plan_names[i]; i++) {
		struct zb_plan a, b;

		assert_true(zb_test_plan(zb_test_plan_names[i], &a));
		assert_true(zb_test_plan(zb_test_plan_names[i], &b));
		for (size_t s = 0; s < GOLDEN_SYSTEMS; s++) {
			struct zb_buf x = {0}, y = {0};

			golden_text(&a, s, &x);
			golden_text(&b, s, &y);
			assert_string_equal(zb_buf_str(&x), zb_buf_str(&y));
			zb_buf_done(&x);
			zb_buf_done(&y);
		}
		zb_test_plan_done(&a);
		zb_test_plan_done(&b);
	}
}

/* A failed render leaves nothing of itself behind. */
static void fails_whole(void **state)
{
	(void)state;
	for (size_t s = 0; s < GOLDEN_SYSTEMS; s++) {
		struct zb_plan plan;
		struct zb_buf b = {0};
		struct zb_error err = {0};

		assert_true(zb_test_plan("strict-native", &plan));
		assert_non_null(zb_test_place(&plan, ZB_PLACE_GRANT, "/srv", "",
					      ZB_MAY_READ, true));
		free(plan.places[plan.n_places - 1].source);
		plan.places[plan.n_places - 1].source = NULL;
		zb_buf_adds(&b, "before");
		assert_int_equal(golden_render(&plan, s, &b, &err),
				 ZB_EUNSUPPORTED);
		assert_string_equal(zb_buf_str(&b), "before");
		assert_true(err.msg[0]);
		zb_buf_done(&b);
		zb_test_plan_done(&plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches_golden_files),
		cmocka_unit_test(presets_match_and_are_judged),
		cmocka_unit_test(shows_no_secret),
		cmocka_unit_test(is_deterministic),
		cmocka_unit_test(fails_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
