/* test_buf.c - buffers, lists, errors. */
#include "buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void grows_and_keeps_nul(void **state)
{
	struct zb_buf b = {0};

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(zb_buf_addf(&b, "%d,", i), 0);
	assert_int_equal(strlen(zb_buf_str(&b)), b.len);
	zb_buf_consume(&b, 2);
	assert_memory_equal(b.data, "1,2,", 4);
	zb_buf_done(&b);
	assert_string_equal(zb_buf_str(&b), "");
}

static void maximum_is_hard_and_sticky(void **state)
{
	struct zb_buf b = {.max = 4};

	(void)state;
	assert_int_equal(zb_buf_adds(&b, "abcd"), 0);
	assert_int_equal(zb_buf_addc(&b, 'e'), ZB_ELIMIT);
	assert_true(b.failed);
	assert_null(zb_buf_steal(&b));
}

static void lists(void **state)
{
	struct zb_strv l = {0};

	(void)state;
	for (int i = 0; i < 50; i++)
		assert_int_equal(zb_strv_addf(&l, "s%d", i), 0);
	assert_true(zb_strv_has(&l, "s49"));
	assert_false(zb_strv_has(&l, "s50"));
	assert_null(l.v[50]);
	zb_strv_done(&l);
}

static void errors_wrap_and_map(void **state)
{
	struct zb_error e = {0};

	(void)state;
	assert_int_equal(zb_fail(&e, ZB_EUNSUPPORTED, "no %s", "x"),
			 ZB_EUNSUPPORTED);
	assert_int_equal(zb_wrap(&e, "plan %d", 1), ZB_EUNSUPPORTED);
	assert_string_equal(e.msg, "plan 1: no x");
	assert_int_equal(zb_exit_code(e.code), 4);
	zb_fail_sys(&e, 2, "open %s", "/x");
	assert_string_equal(e.msg, "open /x: No such file or directory");
	assert_int_equal(e.sys, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_and_keeps_nul),
		cmocka_unit_test(maximum_is_hard_and_sticky),
		cmocka_unit_test(lists),
		cmocka_unit_test(errors_wrap_and_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
