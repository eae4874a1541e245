/* test_code_diff.c - two trees against each other, in words. */
#include "config.h"

#include "cleanup.h"
#include "code_diff.h"
#include "tmphome.h"

struct pair {
	struct tmphome *t;
	char *was, *now, *was_manifest, *now_manifest;
	struct zb_lock before, after;
	struct zb_code_diff diff;
};

static void compare(struct pair *p)
{
	struct zb_error err = {0};

	p->was_manifest = put(p->t, "box/was.json", 0600, "{\n}\n");
	p->now_manifest = put(p->t, "box/now.json", 0600, "{\n\"a\":1\n}\n");
	assert_int_equal(
		zb_lock_make(&p->before, p->was, p->was_manifest, &err), 0);
	assert_int_equal(zb_lock_make(&p->after, p->now, p->now_manifest, &err),
			 0);
	assert_int_equal(zb_code_diff(&p->diff,
				      &(struct zb_code_side){&p->before, p->was,
							     p->was_manifest},
				      &(struct zb_code_side){&p->after, p->now,
							     p->now_manifest},
				      &err),
			 0);
}

static char *put_bytes(const struct tmphome *t, const char *name,
		       const char *bytes, size_t n)
{
	char *path = put(t, name, 0644, "");
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	return path;
}

static struct pair begin(void **state)
{
	struct tmphome *t = *state;

	return (struct pair){
		.t = t, .was = put_dir(t, "was"), .now = put_dir(t, "now")};
}

static void end(struct pair *p)
{
	zb_code_diff_done(&p->diff);
	zb_lock_done(&p->before);
	zb_lock_done(&p->after);
	free(p->was);
	free(p->now);
	free(p->was_manifest);
	free(p->now_manifest);
}

static void each_kind_of_change(void **state)
{
	static const char *const lines[] = {
		"added a.py: 1 line",
		"changed b.py: 2 lines new, 1 gone",
		"added bin: 0 lines",
		"changed data: 4 bytes, before 3",
		"changed extension.json: 1 line new, 0 gone",
		"added link; is a link now",
		"changed moved.py: 0 lines new, 0 gone",
		"removed old.py",
		"changed run; may be executed now",
		"changed was_link: 1 line; was a link before",
		"added x\\x1b[31m: 1 line",
	};
	struct pair p = begin(state);

	free(put(p.t, "now/a.py", 0644, "no newline"));
	free(put(p.t, "was/b.py", 0644, "1\n2\n3\n"));
	free(put(p.t, "now/b.py", 0644, "1\n3\n4\n4\n"));
	free(put(p.t, "now/bin", 0644, ""));
	free(put_bytes(p.t, "was/data", "a\0b", 3));
	free(put_bytes(p.t, "now/data", "a\0bc", 4));
	free(put_link(p.t, "now/link", "a.py"));
	free(put(p.t, "was/moved.py", 0644, "1\n2\n"));
	free(put(p.t, "now/moved.py", 0644, "2\n1\n"));
	free(put(p.t, "was/old.py", 0644, "x"));
	free(put(p.t, "was/run", 0644, "same\n"));
	free(put(p.t, "now/run", 0755, "same\n"));
	free(put(p.t, "was/same", 0644, "same\n"));
	free(put(p.t, "now/same", 0644, "same\n"));
	free(put_link(p.t, "was/was_link", "x"));
	free(put(p.t, "now/was_link", 0644, "y"));
	free(put(p.t, "now/x\033[31m", 0644, "x"));
	compare(&p);
	for (size_t i = 0; i < ZB_ARRAY_LEN(lines); i++) {
		assert_true(i < p.diff.lines.n);
		assert_string_equal(p.diff.lines.v[i], lines[i]);
	}
	assert_int_equal(p.diff.lines.n, ZB_ARRAY_LEN(lines));
	assert_int_equal(p.diff.added, 4);
	assert_int_equal(p.diff.removed, 1);
	assert_int_equal(p.diff.changed, 6);
	end(&p);
}

static void many_are_counted(void **state)
{
	struct pair p = begin(state);

	for (int i = 0; i < ZB_DIFF_LINES + 50; i++) {
		zb_auto(free) char *name = zb_strf("now/f%d", i);

		free(put(p.t, name, 0644, "x"));
	}
	compare(&p);
	assert_int_equal(p.diff.lines.n, ZB_DIFF_LINES + 1);
	assert_string_equal(p.diff.lines.v[ZB_DIFF_LINES], "and 51 more");
	assert_int_equal(p.diff.added, ZB_DIFF_LINES + 50);
	end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_tmp(each_kind_of_change),
		with_tmp(many_are_counted),
	};

	return cmocka_run_group_tests_name("code_diff", tests, NULL, NULL);
}
