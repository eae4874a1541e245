/* test_jail.c - where paths lead: the walk and the quick way, in a directory
 * that stands for a sandbox's root. */
#include "config.h"

#include "platform/linux/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char top[64];
static struct zb_plan plan;
static struct zb_jail jail;

static int made(int rc)
{
	assert_int_equal(rc, 0);
	return rc;
}

static int set_up(void **state)
{
	struct zb_error err = {0};
	int fd;

	(void)state;
	strcpy(top, "/tmp/zotbox-test-XXXXXX");
	if (!mkdtemp(top) || chdir(top))
		return -1;
	made(mkdir("a", 0755));
	made(mkdir("a/b", 0755));
	fd = open("a/b/f", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
	made(symlink("b/f", "a/l"));
	made(symlink("/a/b", "abs"));
	made(symlink("/etc/../../../hidden/x", "out"));
	made(symlink("loop2", "loop1"));
	made(symlink("loop1", "loop2"));
	made(symlink("a/new", "dangling"));
	fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return zb_jail_init(&jail, &plan, fd, &err);
}

static int tear_down(void **state)
{
	static const char *const names[] = {"a/b/f", "a/l",   "abs",	 "out",
					    "loop1", "loop2", "dangling"};

	(void)state;
	zb_jail_done(&jail);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
	rmdir("a/b");
	rmdir("a");
	return chdir("/") || rmdir(top);
}

struct row {
	const char *path;
	bool follow;
	const char *want; /* canonical */
	bool exists;
	int err;
	bool dir; /* the directory of the last name is known */
};

static void walks(void **state)
{
	static const struct row rows[] = {
		{"/", true, "/", true, 0, false},
		{"/a/b/f", true, "/a/b/f", true, 0, true},
		{"//a/./b//f", true, "/a/b/f", true, 0, true},
		{"/a/l", true, "/a/b/f", true, 0, true},
		{"/a/l", false, "/a/l", true, 0, true},
		{"/abs/f", true, "/a/b/f", true, 0, true},
		{"/abs", false, "/abs", true, 0, true},
		{"/abs/", false, "/a/b", true, 0, true},
		{"/a/b/../b/f", true, "/a/b/f", true, 0, true},
		{"/../../a", true, "/a", true, 0, true},
		{"/abs/..", true, "/a", true, 0, false},
		{"/a/none", true, "/a/none", false, ENOENT, true},
		{"/no/such/../x", true, "/no/x", false, ENOENT, false},
		/* what is not there has no "..": the names cancel out */
		{"/out", true, "/hidden/x", false, ENOENT, false},
		{"/dangling", true, "/a/new", false, ENOENT, true},
		{"/loop1", true, NULL, false, ELOOP, false},
		{"/a/b/f/x", true, "/a/b/f/x", false, ENOTDIR, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct zb_jail_walk w;

		zb_jail_walk(&jail, r->path, r->follow, &w);
		if (r->want)
			assert_string_equal(w.path, r->want);
		assert_int_equal(w.exists, r->exists);
		assert_int_equal(w.err, r->err);
		if (r->dir)
			assert_true(w.dir >= 0);
		zb_jail_walk_done(&w);
	}
}

/* The quick way and the walk agree on what exists, and on its name. */
static void quick_way_agrees(void **state)
{
	static const char *const paths[] = {
		"/",	   "/a/b/f", "/a/l",  "/abs/f", "/abs/",   "/../../a",
		"/abs/..", "/out",   "/a/no", "/loop1", "/a/b/f/x"};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct zb_jail_walk w;
		struct zb_spot s;

		zb_jail_walk(&jail, paths[i], true, &w);
		zb_find(&jail, paths[i], true, &s);
		assert_int_equal(s.fd >= 0, w.exists);
		if (s.fd < 0)
			assert_int_equal(s.err, w.err);
		zb_spot_done(&s);
		zb_jail_walk_done(&w);
	}
}

static void never_leaves(void **state)
{
	struct zb_spot s, t;
	struct stat st;

	(void)state;
	zb_find(&jail, "/../../../../etc", true, &s);
	assert_int_equal(s.err, ENOENT);
	zb_find(&jail, "/..", true, &t);
	assert_true(t.fd >= 0);
	assert_int_equal(stat(top, &st), 0);
	assert_int_equal(t.ino, st.st_ino);
	zb_spot_done(&t);
}

static void plain_paths(void **state)
{
	static const char *const plain[] = {"/a",     "/a/b", "/.a/b..",
					    "/a/..b", "/...", "/a/.b"};
	static const char *const other[] = {"",	    "/",     "a",    "/a/",
					    "//a",  "/a//b", "/.",   "/..",
					    "/a/.", "/a/..", "/./a", "/../a"};

	(void)state;
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		assert_true(zb_is_plain(plain[i]));
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		assert_false(zb_is_plain(other[i]));
}

static void long_paths(void **state)
{
	static char path[PATH_MAX];
	struct zb_jail_walk w;

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	zb_jail_walk(&jail, path, true, &w);
	assert_int_equal(w.err, ENAMETOOLONG);
	zb_jail_walk_done(&w);
	for (size_t i = 0; i + 2 < sizeof(path); i += 2)
		memcpy(path + i, "/y", 2);
	zb_jail_walk(&jail, path, true, &w);
	assert_int_equal(w.err, ENOENT);
	assert_int_equal(strncmp(w.path, "/y/y/y", 6), 0);
	zb_jail_walk_done(&w);
}

static void the_hosts_own(void **state)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct zb_jail_walk w;
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/a/l", top);
	zb_host_walk(root, path, true, &w);
	assert_true(w.exists);
	assert_string_equal(w.path + strlen(w.path) - 6, "/a/b/f");
	zb_jail_walk_done(&w);
	zb_host_walk(root, "/proc/self/fd/0", true, &w);
	assert_true(w.proc);
	assert_false(w.exists);
	zb_jail_walk_done(&w);
	close(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks),
		cmocka_unit_test(quick_way_agrees),
		cmocka_unit_test(never_leaves),
		cmocka_unit_test(plain_paths),
		cmocka_unit_test(long_paths),
		cmocka_unit_test(the_hosts_own),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
