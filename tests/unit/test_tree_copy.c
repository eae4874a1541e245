/* test_tree_copy.c - a stranger's tree: links, special files, modes. */
#include "config.h"

#include "cleanup.h"
#include "tmphome.h"
#include "tree_copy.h"

#include <errno.h>
#include <sys/stat.h>

/* Directories `from` and `to` of the throw-away one; the test's own `from`. */
static const struct tmphome *top;
static char *from, *to;

static int setup(void **state)
{
	int rc = tmp_setup(state);

	top = *state;
	from = put_dir(top, "from");
	to = put_dir(top, "to");
	return rc;
}

static int teardown(void **state)
{
	free(from);
	free(to);
	return tmp_teardown(state);
}

static void file(const char *name, mode_t mode)
{
	zb_auto(free) char *path = zb_strf("from/%s", name);

	free(put(top, path, mode, "x"));
}

static void point(const char *name, const char *target)
{
	zb_auto(free) char *path = zb_strf("from/%s", name);

	free(put_link(top, path, target));
}

static void sub(const char *name)
{
	zb_auto(free) char *path = zb_strf("from/%s", name);

	free(put_dir(top, path));
}

static bool copied(const char *name)
{
	zb_auto(free) char *path = zb_strf("%s/%s", to, name);
	struct stat st;

	return !lstat(path, &st);
}

static int copy(struct zb_tree_copy *c, struct zb_error *err)
{
	*c = (struct zb_tree_copy){0};
	return zb_tree_copy(from, to, c, err);
}

static void files_keep_content_and_mode(void **state)
{
	zb_auto(free) char *path = NULL;
	struct zb_tree_copy c;
	struct zb_error err = {0};
	struct stat st;

	(void)state;
	sub("d");
	file("d/main", 04755);
	path = zb_strf("%s/d/main", to);
	assert_int_equal(copy(&c, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	/* The executable bits stay, set-user-id goes. */
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(c.files, 2);
	zb_strv_done(&c.warnings);
}

static void git_is_left_out_at_every_depth(void **state)
{
	struct zb_tree_copy c;
	struct zb_error err = {0};

	(void)state;
	sub(".git");
	file(".git/config", 0644);
	sub("s");
	sub("s/.git");
	file("s/.gitignore", 0644);
	assert_int_equal(copy(&c, &err), 0);
	assert_false(copied(".git"));
	assert_false(copied("s/.git"));
	assert_true(copied("s/.gitignore"));
	assert_true(c.git_left_out);
	zb_strv_done(&c.warnings);
}

static void links_that_stay_are_kept(void **state)
{
	struct zb_tree_copy c;
	struct zb_error err = {0};

	(void)state;
	sub("a");
	file("a/f", 0644);
	sub("b");
	point("b/l", "../a/f");
	point("me", ".");
	point("nowhere", "missing");
	point("k", "k2");
	point("k2", "k");
	assert_int_equal(copy(&c, &err), 0);
	assert_true(copied("b/l"));
	/* Dangling and looping ones are said. */
	assert_int_equal(c.warnings.n, 3);
	zb_strv_done(&c.warnings);
}

static void leaves(const char *target)
{
	struct zb_tree_copy c;
	struct zb_error err = {0};

	sub("a");
	point("up", ".");
	point("l", target);
	assert_int_equal(copy(&c, &err), ZB_EPOLICY);
	assert_non_null(strstr(err.msg, "points outside"));
	assert_non_null(strstr(err.msg, target));
	zb_strv_done(&c.warnings);
}

static void absolute_links_are_refused(void **state)
{
	(void)state;
	leaves("/etc/passwd");
}

static void links_up_are_refused(void **state)
{
	(void)state;
	leaves("a/../../x");
}

static void links_through_links_are_refused(void **state)
{
	(void)state;
	leaves("up/../x");
}

static void special_files_are_refused(void **state)
{
	zb_auto(free) char *fifo = zb_strf("%s/fifo", from);
	struct zb_tree_copy c;
	struct zb_error err = {0};

	(void)state;
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(copy(&c, &err), ZB_EPOLICY);
	assert_non_null(strstr(err.msg, "fifo"));
	zb_strv_done(&c.warnings);
}

static void stops_when_told(void **state)
{
	static volatile sig_atomic_t stop = 1;
	struct zb_tree_copy c = {.stop = &stop};
	struct zb_error err = {0};

	(void)state;
	file("f", 0644);
	assert_int_equal(zb_tree_copy(from, to, &c, &err), ZB_ESYS);
	assert_int_equal(err.sys, EINTR);
	zb_strv_done(&c.warnings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_keep_content_and_mode,
						setup, teardown),
		cmocka_unit_test_setup_teardown(git_is_left_out_at_every_depth,
						setup, teardown),
		cmocka_unit_test_setup_teardown(links_that_stay_are_kept, setup,
						teardown),
		cmocka_unit_test_setup_teardown(absolute_links_are_refused,
						setup, teardown),
		cmocka_unit_test_setup_teardown(links_up_are_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(links_through_links_are_refused,
						setup, teardown),
		cmocka_unit_test_setup_teardown(special_files_are_refused,
						setup, teardown),
		cmocka_unit_test_setup_teardown(stops_when_told, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
