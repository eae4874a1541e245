/* test_store.c - $ZOT_HOME, safe writes, rm -r of hostile trees, locks. */
#include "config.h"

#include "cleanup.h"
#include "fdutil.h"
#include "store.h"
#include "tmphome.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void zot_home_order(void **state)
{
	struct zb_store s = {0};
	struct zb_error err = {0};

	(void)state;
	setenv("HOME", "/h/./u/", 1);
	setenv("ZOT_HOME", "/z//x/", 1);
	setenv("XDG_STATE_HOME", "/xdg", 1);
	assert_int_equal(zb_store_open(&s, &err), 0);
	assert_string_equal(s.home, "/h/u");
	assert_string_equal(s.zot_home, "/z/x");
	assert_string_equal(s.zot_home_real, "/z/x");
	assert_string_equal(s.extensions, "/z/x/extensions");
	assert_string_equal(s.boxes, "/z/x/zotbox");
	assert_string_equal(s.logs, "/z/x/logs");
	zb_store_done(&s);
	setenv("ZOT_HOME", "", 1);
	assert_int_equal(zb_store_open(&s, &err), 0);
	assert_string_equal(s.zot_home, "/xdg/zot");
	zb_store_done(&s);
	unsetenv("XDG_STATE_HOME");
	assert_int_equal(zb_store_open(&s, &err), 0);
	assert_string_equal(s.zot_home, "/h/u/.local/state/zot");
	zb_store_done(&s);
	unsetenv("ZOT_HOME");
}

static void relative_places_are_refused(void **state)
{
	struct zb_store s = {0};
	struct zb_error err = {0};

	(void)state;
	setenv("HOME", "u", 1);
	assert_int_equal(zb_store_open(&s, &err), ZB_EUSAGE);
	assert_non_null(strstr(err.msg, "HOME is \"u\""));
	unsetenv("HOME");
	assert_int_equal(zb_store_open(&s, &err), ZB_EUSAGE);
	setenv("HOME", "/h", 1);
	setenv("ZOT_HOME", "zot", 1);
	assert_int_equal(zb_store_open(&s, &err), ZB_EUSAGE);
	setenv("ZOT_HOME", "/a/\xff", 1);
	assert_int_equal(zb_store_open(&s, &err), ZB_EUSAGE);
	assert_non_null(strstr(err.msg, "/a/\\xff"));
	setenv("ZOT_HOME", "/nope/../x", 1);
	assert_int_equal(zb_store_open(&s, &err), ZB_EUSAGE);
	unsetenv("ZOT_HOME");
}

static void linked_zot_home_keeps_its_spelling(void **state)
{
	struct tmphome *t = *state;
	zb_auto(free) char *link = in(t, "link");
	zb_auto(free) char *dotted = in(t, "link/../link");
	zb_auto(free) char *deep = in(t, "link/not/yet");
	zb_auto(free) char *real = in(t, "real");
	zb_auto(free) char *realdeep = in(t, "real/not/yet");
	struct zb_store s = {0};
	struct zb_error err = {0};

	free(put_dir(t, "real"));
	free(put_link(t, "link", "real"));
	setenv("HOME", t->dir, 1);
	setenv("ZOT_HOME", link, 1);
	assert_int_equal(zb_store_open(&s, &err), 0);
	assert_string_equal(s.zot_home, link);
	assert_string_equal(s.zot_home_real, real);
	zb_store_done(&s);
	setenv("ZOT_HOME", deep, 1);
	assert_int_equal(zb_store_open(&s, &err), 0);
	assert_string_equal(s.zot_home, deep);
	assert_string_equal(s.zot_home_real, realdeep);
	zb_store_done(&s);
	setenv("ZOT_HOME", dotted, 1);
	assert_int_equal(zb_store_open(&s, &err), 0);
	assert_string_equal(s.zot_home, real);
	zb_store_done(&s);
	unsetenv("ZOT_HOME");
}

static void boxes(void **state)
{
	struct zb_store s = {.boxes = (char[]){"/z/zotbox"}};
	zb_auto(free) char *f = zb_store_box(&s, "w", "lock.json");
	zb_auto(free) char *d = zb_store_box(&s, "w", "");
	zb_auto(free) char *a = zb_store_path_box_name("/a");
	zb_auto(free) char *b = zb_store_path_box_name("/b");

	(void)state;
	assert_string_equal(f, "/z/zotbox/w/lock.json");
	assert_string_equal(d, "/z/zotbox/w");
	/* printf /a | sha256sum | cut -c1-16 */
	assert_string_equal(a, "@6a50dc8584134c7d");
	assert_string_not_equal(a, b);
}

static void reading(void **state)
{
	struct tmphome *t = *state;
	struct zb_buf b = {0};
	struct zb_error err = {0};
	zb_auto(free) char *f = put(t, "f", 0600, "12345");
	zb_auto(free) char *none = in(t, "none");
	zb_auto(free) char *fifo = in(t, "fifo");

	assert_int_equal(zb_read_file(f, 5, &b, &err), 0);
	assert_string_equal(zb_buf_str(&b), "12345");
	assert_int_equal(zb_read_file(f, 4, &b, &err), ZB_ELIMIT);
	assert_int_equal(zb_read_file(none, 4, &b, &err), ZB_ESYS);
	assert_int_equal(err.sys, ENOENT);
	assert_int_equal(zb_read_file(t->dir, 4, &b, &err), ZB_ESYS);
	assert_int_equal(err.sys, EISDIR);
	/* Nobody writes there: a reader that waits would hang here. */
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(zb_read_file(fifo, 4, &b, &err), ZB_ESYS);
	assert_int_equal(err.sys, EINVAL);
	zb_buf_done(&b);
}

static unsigned count_entries(const char *dir)
{
	DIR *d = opendir(dir);
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void writing_replaces_and_leaves_nothing_else(void **state)
{
	struct tmphome *t = *state;
	struct zb_error err = {0};
	struct zb_buf b = {0};
	zb_auto(free) char *dir = put_dir(t, "w");
	zb_auto(free) char *target = put(t, "target", 0600, "keep");
	zb_auto(free) char *f = put_link(t, "w/f", "../target");
	zb_auto(free) char *bad = in(t, "nowhere/f");
	struct stat st;

	/* A link in the place of the file is replaced, not followed. */
	assert_int_equal(zb_write_file_atomic(f, "new", 3, 0640, &err), 0);
	assert_int_equal(lstat(f, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(zb_read_file(target, 10, &b, &err), 0);
	assert_string_equal(zb_buf_str(&b), "keep");
	assert_int_equal(zb_read_file(f, 10, &b, &err), 0);
	assert_string_equal(zb_buf_str(&b), "new");
	assert_int_equal(count_entries(dir), 1);
	assert_int_equal(zb_write_file_atomic(bad, "x", 1, 0600, &err),
			 ZB_ESYS);
	assert_int_equal(err.sys, ENOENT);
	zb_buf_done(&b);
}

static void failed_write_keeps_the_old_file(void **state)
{
	struct tmphome *t = *state;
	struct zb_error err = {0};
	zb_auto(free) char *dir = put_dir(t, "w");
	zb_auto(free) char *sub = put_dir(t, "w/sub"); /* not replaceable */
	zb_auto(free) char *in_sub = put(t, "w/sub/x", 0600, "x");

	assert_int_equal(zb_write_file_atomic(sub, "new", 3, 0600, &err),
			 ZB_ESYS);
	assert_int_equal(count_entries(dir), 1);
	assert_int_equal(access(in_sub, F_OK), 0);
}

static void make_dirs(void **state)
{
	struct tmphome *t = *state;
	struct zb_error err = {0};
	zb_auto(free) char *deep = in(t, "a/b/c");
	zb_auto(free) char *file = put(t, "file", 0600, "");
	zb_auto(free) char *below = in(t, "file/x");
	struct stat st;

	assert_int_equal(zb_make_dirs(deep, 0700, &err), 0);
	assert_int_equal(zb_make_dirs(deep, 0700, &err), 0);
	assert_int_equal(stat(deep, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(zb_make_dirs(file, 0700, &err), ZB_ESYS);
	assert_int_equal(zb_make_dirs(below, 0700, &err), ZB_ESYS);
	assert_int_equal(zb_make_dirs("", 0700, &err), ZB_ESYS);
}

static void remove_does_not_follow_links(void **state)
{
	struct tmphome *t = *state;
	struct zb_error err = {0};
	zb_auto(free) char *tree = put_dir(t, "tree");
	zb_auto(free) char *keep = put(t, "keep/file", 0600, "x");
	zb_auto(free) char *l2 = put_link(t, "toplink", "keep");

	free(put_link(t, "tree/dirlink", "../keep"));
	free(put(t, "tree/a/b/c", 0600, "x"));
	assert_int_equal(zb_remove_tree(tree, &err), 0);
	assert_int_equal(access(tree, F_OK), -1);
	assert_int_equal(zb_remove_tree(l2, &err), 0);
	assert_int_equal(access(l2, F_OK), -1);
	assert_int_equal(access(keep, F_OK), 0);
	assert_int_equal(zb_remove_tree(tree, &err), 0); /* absent is fine */
}

/* Deeper than PATH_MAX and than any descriptor limit; names like ours; and
 * directories nobody may enter. */
static void remove_survives_hostile_trees(void **state)
{
	struct tmphome *t = *state;
	struct zb_error err = {0};
	zb_auto(free) char *tree = put_dir(t, "tree");
	zb_auto(free) char *in1 = in(t, "tree/a/locked");
	zb_auto(free) char *in2 = in(t, "tree/a/locked/in");
	int at = open(tree, O_DIRECTORY | O_RDONLY | O_CLOEXEC);

	free(put(t, "tree/.zb-rm-0/full", 0600, "x"));
	free(put(t, "tree/.zb-rm-1", 0600, "x"));
	free(put(t, "tree/a/locked/in/x", 0600, "x"));
	assert_true(at >= 0);
	for (int i = 0; i < 3000; i++) {
		int next;

		assert_int_equal(mkdirat(at, "deep", 0700), 0);
		next = openat(at, "deep", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
		assert_true(next >= 0);
		close(at);
		at = next;
	}
	close(at);
	assert_int_equal(chmod(in2, 0), 0);
	assert_int_equal(chmod(in1, 0500), 0);
	assert_int_equal(zb_remove_tree(tree, &err), 0);
	assert_int_equal(access(tree, F_OK), -1);
}

static void locks(void **state)
{
	struct tmphome *t = *state;
	struct zb_store s = {0};
	struct zb_error err = {0};
	int a = -1, b = -1, c = -1;

	setenv("HOME", t->dir, 1);
	unsetenv("ZOT_HOME");
	unsetenv("XDG_STATE_HOME");
	assert_int_equal(zb_store_open(&s, &err), 0);
	assert_int_equal(zb_store_lock(&s, "w", false, 0, &a, &err), 0);
	assert_int_equal(zb_store_lock(&s, "w", false, 0, &b, &err), 0);
	assert_int_equal(zb_store_lock(&s, "w", true, 30, &c, &err),
			 ZB_EPOLICY);
	assert_non_null(strstr(err.msg, "\"w\""));
	assert_int_equal(zb_store_lock(&s, "other", true, 0, &c, &err), 0);
	close(c);
	close(a);
	close(b);
	assert_int_equal(zb_store_lock(&s, "w", true, 0, &c, &err), 0);
	assert_int_equal(zb_store_lock(&s, "w", false, 0, &a, &err),
			 ZB_EPOLICY);
	assert_int_equal(fcntl(c, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(c);
	zb_store_done(&s);
}

/* Another process holds the lock for a while: the waiter gets it then. */
static void lock_waits(void **state)
{
	struct tmphome *t = *state;
	struct zb_error err = {0};
	zb_auto(free) char *path = in(t, "lock");
	int a = -1, b = -1;
	int ready[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		int rc = zb_lock_file(path, true, 0, &a, NULL);

		if (write(ready[1], "r", 1) != 1)
			_exit(2);
		usleep(100000);
		_exit(rc ? 1 : 0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(zb_lock_file(path, true, 0, &b, &err), ZB_EPOLICY);
	assert_int_equal(zb_lock_file(path, true, 5000, &b, &err), 0);
	close(b);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void own_files(void **state)
{
	zb_auto(free) char *self = zb_own_program();
	zb_auto(free) char *unit = zb_own_file("test_store");
	zb_auto(free) char *mark = zb_own_file("config.status");
	zb_auto(free) char *none = zb_own_file("no-such-file");
	struct zb_buf b = {0};
	struct zb_error err = {0};

	(void)state;
	assert_non_null(self);
	assert_int_equal(self[0], '/');
	assert_string_equal(strrchr(self, '/'), "/test_store");
	assert_string_equal(unit, self); /* beside the program */
	assert_non_null(mark);		 /* top of the build tree */
	assert_null(none);
	assert_int_equal(zb_policy_text("nope", &b, &err), ZB_EUSAGE);
	assert_int_equal(zb_policy_text("../configure.ac", &b, &err),
			 ZB_EUSAGE);
	assert_int_equal(zb_policy_text("/etc/passwd", &b, &err), ZB_EUSAGE);
	zb_buf_done(&b);
}

/* In a process of its own: what a program is a part of does not change. */
static void part_of_another(void **state)
{
	int status = -1;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		zb_auto(free) char *self = NULL;
		zb_auto(free) char *own = NULL;

		zb_own_program_is("/bin/sh");
		self = zb_own_program();
		own = zb_own_file("ls");
		/* What stands beside a program is not its own. */
		_exit(!self || strcmp(self, "/bin/sh") != 0 || own ||
		      access("/bin/ls", F_OK) || zb_own_tree());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* What looks like a build tree is none: a program in it finds nothing there. */
static void only_the_build_tree_is_one(void **state)
{
	struct tmphome *t = *state;
	static const char *const planted[] = {
		"bin/zotbox-terminal",	"bin/policies/strict.json",
		"bin/config.status",	"bin/tests/zotbox-terminal",
		"bin/pkgdata/policies",
	};
	zb_auto(free) char *program = put(t, "bin/tests/x/zotbox", 0755, "");
	zb_auto(free) char *above = put(t, "bin/zotbox", 0755, "");
	const char *const programs[] = {program, above};
	int status = -1;

	for (size_t i = 0; i < ZB_ARRAY_LEN(planted); i++)
		free(put(t, planted[i], 0755, "{}"));
	for (size_t i = 0; i < ZB_ARRAY_LEN(programs); i++) {
		pid_t pid = fork();

		if (pid == 0) {
			zb_auto(free) char *own = NULL;
			zb_auto(free) char *policy = NULL;

			zb_own_program_is(programs[i]);
			own = zb_own_file("zotbox-terminal");
			policy = zb_own_file("policies/strict.json");
			_exit((own && strstr(own, t->dir)) ||
			      (policy && strstr(policy, t->dir)) ||
			      zb_own_tree());
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

/* Installed: beside nothing, but in ../libexec and ../share; and each of these
 * is one of its places, be it there or not. */
static void installed_files(void **state)
{
	struct tmphome *t = *state;
	zb_auto(free) char *program = put(t, "p/bin/zotbox", 0755, "");
	zb_auto(free) char *share =
		put(t, "p/share/zotbox/policies/strict.json", 0644, "{}");
	zb_auto(free) char *libexec = zb_strf("%s/p/libexec/zotbox", t->dir);
	zb_auto(free) char *data = zb_strf("%s/p/share/zotbox", t->dir);
	zb_auto(free) char *other = put_dir(t, "other");
	zb_auto(free) char *link = put_link(t, "names/zotbox", program);
	zb_auto(free) char *earlier = zb_strf("%s/zotbox", other);
	zb_auto(free) char *late = zb_strf("%s/late/zotbox", t->dir);
	zb_auto(free) char *path =
		zb_strf("relative:%s:%s/names:%s/late", other, t->dir, t->dir);
	const char *const places[] = {program, link, earlier, libexec, data};
	struct zb_strv own = {0};
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		zb_auto(free) char *found = NULL;
		int bad = setenv("PATH", path, 1);

		zb_own_program_is(program);
		found = zb_own_file("policies/strict.json");
		bad |= !found || strcmp(found, share) != 0;
		bad |= zb_own_check(NULL) || zb_own_places(&own);
		for (size_t i = 0; i < ZB_ARRAY_LEN(places); i++)
			bad |= !zb_strv_has(&own, places[i]);
		bad |= zb_strv_has(&own, late);
		zb_strv_done(&own);
		_exit(bad != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Of a build tree all of it, and the policies that it links to. */
static void places_of_a_build_tree(void **state)
{
	struct zb_strv own = {0};
	zb_auto(free) char *policies = NULL;

	(void)state;
	assert_non_null(zb_own_tree());
	assert_int_equal(zb_own_places(&own), 0);
	assert_true(zb_strv_has(&own, zb_own_tree()));
	policies = zb_strf("%s/pkgdata/policies", zb_own_tree());
	assert_true(zb_strv_has(&own, policies));
	assert_int_equal(zb_own_check(NULL), 0);
	zb_strv_done(&own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zot_home_order),
		cmocka_unit_test(relative_places_are_refused),
		with_tmp(linked_zot_home_keeps_its_spelling),
		cmocka_unit_test(boxes),
		with_tmp(reading),
		with_tmp(writing_replaces_and_leaves_nothing_else),
		with_tmp(failed_write_keeps_the_old_file),
		with_tmp(make_dirs),
		with_tmp(remove_does_not_follow_links),
		with_tmp(remove_survives_hostile_trees),
		with_tmp(locks),
		with_tmp(lock_waits),
		cmocka_unit_test(part_of_another),
		with_tmp(only_the_build_tree_is_one),
		with_tmp(installed_files),
		cmocka_unit_test(own_files),
		cmocka_unit_test(places_of_a_build_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
