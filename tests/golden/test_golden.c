/* test_golden.c - the hand-written plans as each system gets them, compared
 * with files beside this one: NAME.linux, NAME.macos, NAME.windows, and what
 * the rules of the plan come to there. ZB_UPDATE=1 writes the files anew. */
#include "plans.h"

#include "cleanup.h"
#include "enforce.h"
#include "platform/linux/bwrap_args.h"
#include "platform/macos/sbpl.h"
#include "platform/windows/appcontainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *name;
	int (*render)(const struct zb_plan *plan, struct zb_buf *out,
		      struct zb_error *err);
	int (*rules)(const struct zb_plan *plan, struct zb_rule_status **out,
		     size_t *n, struct zb_error *err);
} systems[] = {
	{"linux", zb_bwrap_render, zb_bwrap_rules},
	{"macos", zb_sbpl_render, zb_sbpl_rules},
	{"windows", zb_appcontainer_render, zb_appcontainer_rules},
};

static char *golden_path(const char *plan, const char *system)
{
	const char *src = getenv("ZB_SRC");

	return zb_strf("%s/tests/golden/%s.%s", src ? src : ".", plan, system);
}

static void read_file(const char *path, struct zb_buf *out)
{
	zb_auto(file) FILE *f = fopen(path, "r");
	char chunk[4096];
	size_t n;

	while (f && (n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		zb_buf_add(out, chunk, n);
}

static void write_file(const char *path, const struct zb_buf *b)
{
	zb_auto(file) FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(b->data, 1, b->len, f), b->len);
}

/* The text that is compared: what is rendered, then each rule with how. */
static void make_text(const struct zb_plan *plan, size_t s, struct zb_buf *out)
{
	struct zb_rule_status *v = NULL;
	struct zb_error err = {0};
	size_t n = 0;
	bool any = false;
	int rc = systems[s].render(plan, out, &err);

	if (rc)
		fail_msg("%s: %s", systems[s].name, err.msg);
	rc = systems[s].rules(plan, &v, &n, &err);
	zb_buf_adds(out, "\n==== rules\n");
	for (size_t i = 0; i < n; i++) {
		zb_buf_addf(out, "%s: %s: %s\n", v[i].rule,
			    zb_enforced_name(v[i].how), v[i].by);
		any |= v[i].how == ZB_NOT_ENFORCEABLE;
	}
	zb_rule_statuses_done(v, n);
	if (rc)
		zb_buf_addf(out, "==== refused\n%s\n", err.msg);
	/* One rule that cannot be enforced refuses the start, none does not. */
	assert_int_equal(rc, any ? ZB_EUNSUPPORTED : 0);
	assert_false(out->failed);
}

static void first_difference(const char *name, const char *is,
			     const char *should)
{
	size_t line = 1;

	while (*is && *is == *should) {
		line += *is == '\n';
		is++;
		should++;
	}
	fail_msg("%s: line %zu differs: \"%.60s\", not \"%.60s\" (ZB_UPDATE=1 "
		 "writes the file anew)",
		 name, line, is, should);
}

static void matches_golden_files(void **state)
{
	const char *update = getenv("ZB_UPDATE");

	(void)state;
	for (size_t i = 0; zb_test_plan_names[i]; i++) {
		struct zb_plan plan;

		assert_true(zb_test_plan(zb_test_plan_names[i], &plan));
		for (size_t s = 0; s < ZB_ARRAY_LEN(systems); s++) {
			zb_auto(free) char *path = golden_path(
				zb_test_plan_names[i], systems[s].name);
			struct zb_buf is = {0}, should = {0};

			make_text(&plan, s, &is);
			if (update && *update)
				write_file(path, &is);
			read_file(path, &should);
			if (strcmp(zb_buf_str(&is), zb_buf_str(&should)) != 0)
				first_difference(path, zb_buf_str(&is),
						 zb_buf_str(&should));
			zb_buf_done(&is);
			zb_buf_done(&should);
		}
		zb_test_plan_done(&plan);
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
	for (size_t s = 0; s < ZB_ARRAY_LEN(systems); s++) {
		struct zb_buf b = {0};

		make_text(&plan, s, &b);
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
		for (size_t s = 0; s < ZB_ARRAY_LEN(systems); s++) {
			struct zb_buf x = {0}, y = {0};

			make_text(&a, s, &x);
			make_text(&b, s, &y);
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
	for (size_t s = 0; s < ZB_ARRAY_LEN(systems); s++) {
		struct zb_plan plan;
		struct zb_buf b = {0};
		struct zb_error err = {0};

		assert_true(zb_test_plan("strict-native", &plan));
		assert_non_null(zb_test_place(&plan, ZB_PLACE_GRANT, "/srv", "",
					      ZB_MAY_READ, true));
		free(plan.places[plan.n_places - 1].source);
		plan.places[plan.n_places - 1].source = NULL;
		zb_buf_adds(&b, "before");
		assert_int_equal(systems[s].render(&plan, &b, &err),
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
		cmocka_unit_test(shows_no_secret),
		cmocka_unit_test(is_deterministic),
		cmocka_unit_test(fails_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
