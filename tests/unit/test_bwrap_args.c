/* test_bwrap_args.c - the command line for bubblewrap: its order, what it
 * refuses, and, where this machine can, the sandbox that it makes. */
#include "../golden/plans.h"

#include "cleanup.h"
#include "enforce.h"
#include "platform/linux/bwrap_args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RO (ZB_MAY_READ | ZB_MAY_LIST)
#define RW (RO | ZB_MAY_WRITE | ZB_MAY_CREATE)
#define RX (RO | ZB_MAY_EXEC)

static void make(struct zb_bwrap_args *a, const struct zb_plan *plan)
{
	struct zb_error err = {0};

	if (zb_bwrap_args(a, plan, &err))
		fail_msg("%s", err.msg);
}

/* Index of the first argument of @words (NULL-terminated) in a row, or -1. */
static int find(const struct zb_bwrap_args *a, const char *const *words)
{
	for (size_t i = 0; i < a->args.n; i++) {
		size_t k = 0;

		while (words[k] && i + k < a->args.n &&
		       !strcmp(words[k], a->args.v[i + k]))
			k++;
		if (!words[k])
			return (int)i;
	}
	return -1;
}

#define FIND(a, ...) find((a), (const char *const[]){__VA_ARGS__, NULL})

static void every_layer_is_there(void **state)
{
	static const char *const flags[] = {
		"--unshare-user",    "--unshare-pid",	 "--unshare-ipc",
		"--unshare-uts",     "--unshare-cgroup", "--unshare-net",
		"--die-with-parent", "--new-session",	 "--as-pid-1",
	};
	struct zb_bwrap_args a;
	struct zb_plan plan;

	(void)state;
	assert_true(zb_test_plan("strict-python", &plan));
	make(&a, &plan);
	for (size_t i = 0; i < ZB_ARRAY_LEN(flags); i++)
		assert_true(FIND(&a, flags[i]) >= 0);
	assert_true(FIND(&a, "--cap-drop", "ALL") >= 0);
	assert_true(FIND(&a, "--remount-ro", "/proc") >
		    FIND(&a, "--proc", "/proc"));
	assert_int_equal(FIND(&a, "--remount-ro", "/") + 2,
			 FIND(&a, "--chdir", plan.cwd));
	/* nothing of the environment, and no option that bwrap 0.6 lacks */
	assert_int_equal(FIND(&a, "--setenv"), -1);
	assert_int_equal(FIND(&a, "--argv0"), -1);
	assert_int_equal(FIND(&a, "--disable-userns"), -1);
	for (size_t i = 0; i < a.args.n; i++)
		assert_null(strstr(a.args.v[i], "s3cret"));
	zb_bwrap_args_done(&a);
	zb_test_plan_done(&plan);
}

static void layers_can_be_taken_out(void **state)
{
	static const struct zb_bwrap_layers some[] = {
		{false, true, true}, {true, false, true}, {true, true, false}};
	struct zb_plan plan;

	(void)state;
	assert_true(zb_test_plan("strict-python", &plan));
	for (size_t i = 0; i < ZB_ARRAY_LEN(some); i++) {
		struct zb_bwrap_args a;
		struct zb_error err = {0};

		assert_int_equal(
			zb_bwrap_args_layered(&a, &plan, &some[i], &err), 0);
		assert_int_equal(FIND(&a, "--unshare-net") >= 0, some[i].netns);
		assert_int_equal(FIND(&a, "--cap-drop", "ALL") >= 0,
				 some[i].caps);
		assert_int_equal(FIND(&a, "--dev-bind", "/", "/") >= 0,
				 !some[i].mounts);
		assert_int_equal(FIND(&a, "--remount-ro", "/") >= 0,
				 some[i].mounts);
		zb_bwrap_args_done(&a);
	}
	zb_test_plan_done(&plan);
}

static void parents_come_first(void **state)
{
	static const char *const order[] = {
		"/home/u", "/home/u/.zot", "/home/u/.zot/extensions",
		"/home/u/.zot/extensions/weather",
		"/home/u/.zot/extensions/weather/main.py"};
	struct zb_bwrap_args a;
	struct zb_plan plan;
	int last = -1;

	(void)state;
	assert_true(zb_test_plan("standard-home", &plan));
	make(&a, &plan);
	for (size_t i = 0; i < ZB_ARRAY_LEN(order); i++) {
		int at = -1;

		for (size_t k = 0; k + 2 < a.args.n; k++)
			if ((!strcmp(a.args.v[k], "--bind") ||
			     !strcmp(a.args.v[k], "--ro-bind")) &&
			    !strcmp(a.args.v[k + 2], order[i]))
				at = (int)k;
		assert_true(at > last);
		last = at;
	}
	assert_true(FIND(&a, "--ro-bind", "/home/u/src/app",
			 "/home/u/src/app") >= 0);
	assert_true(FIND(&a, "--bind", "/home/u/.zot/zotbox/weather/home/src",
			 "/home/u/src") >= 0);
	zb_bwrap_args_done(&a);
	zb_test_plan_done(&plan);
}

/* A link is made in the root and in /tmp; in a bound place it is there. */
static void links_are_not_made_on_the_host(void **state)
{
	struct zb_bwrap_args a;
	struct zb_plan plan;

	(void)state;
	assert_true(zb_test_plan("links", &plan));
	make(&a, &plan);
	assert_true(FIND(&a, "--symlink", "usr/bin", "/bin") >= 0);
	assert_int_equal(FIND(&a, "--symlink", "/srv/w", "/home/u/work"), -1);
	zb_bwrap_args_done(&a);
	zb_test_plan_done(&plan);
}

static void directories_of_ours_end_read_only(void **state)
{
	struct zb_bwrap_args a;
	struct zb_plan plan;
	int made, bound, closed;

	(void)state;
	assert_true(zb_test_plan("standard-tmp", &plan));
	make(&a, &plan);
	made = FIND(&a, "--tmpfs", "/tmp/w");
	bound = FIND(&a, "--ro-bind", "/tmp/w/app", "/tmp/w/app");
	closed = FIND(&a, "--remount-ro", "/tmp/w");
	assert_true(made >= 0 && made < bound && bound < closed);
	/* In the root itself a mount would be wasted. */
	assert_non_null(
		zb_test_place(&plan, ZB_PLACE_DIR, "/zz", NULL, RO, true));
	zb_bwrap_args_done(&a);
	make(&a, &plan);
	assert_true(FIND(&a, "--dir", "/zz") >= 0);
	assert_int_equal(FIND(&a, "--remount-ro", "/zz"), -1);
	zb_bwrap_args_done(&a);
	zb_test_plan_done(&plan);
}

static void texts_wait_for_their_descriptor(void **state)
{
	struct zb_bwrap_args a;
	struct zb_plan plan;

	(void)state;
	assert_true(zb_test_plan("strict-native", &plan));
	make(&a, &plan);
	assert_int_equal(a.n_data, 2);
	for (size_t i = 0; i < a.n_data; i++) {
		size_t at = a.data[i].arg;

		assert_string_equal(a.args.v[at], "FD");
		assert_string_equal(a.args.v[at - 1], "--ro-bind-data");
		assert_int_equal(a.data[i].len, strlen(a.data[i].content));
	}
	assert_string_equal(a.args.v[a.data[0].arg + 1], "/etc/group");
	assert_string_equal(a.data[0].content, "u:x:1000:\n");
	zb_bwrap_args_done(&a);
	zb_test_plan_done(&plan);
}

static void small_files_are_copied(void **state)
{
	struct zb_bwrap_args a;
	struct zb_plan plan;
	struct zb_place *p;

	(void)state;
	assert_true(zb_test_plan_minimal(&plan));
	p = zb_test_place(&plan, ZB_PLACE_SYSTEM, "/etc/x", "/etc/y",
			  ZB_MAY_READ, false);
	assert_non_null(p);
	p->copied = true;
	make(&a, &plan);
	assert_true(FIND(&a, "--perms", "0444", "--file", "FD", "/etc/x") >= 0);
	assert_int_equal(FIND(&a, "--ro-bind", "/etc/y", "/etc/x"), -1);
	assert_int_equal(a.n_data, 1);
	assert_string_equal(a.data[0].source, "/etc/y");
	assert_null(a.data[0].content);
	assert_string_equal(a.args.v[a.data[0].arg - 2], "0444");
	zb_bwrap_args_done(&a);
	zb_test_plan_done(&plan);
}

static void refuse(struct zb_plan *plan, enum zb_code code, const char *word)
{
	struct zb_bwrap_args a = {0};
	struct zb_error err = {0};

	assert_int_equal(zb_bwrap_args(&a, plan, &err), code);
	if (!strstr(err.msg, word))
		fail_msg("\"%s\" does not say \"%s\"", err.msg, word);
	assert_null(a.args.v);
	zb_test_plan_done(plan);
}

/* In a place of the host's that shows it; and nowhere else. */
static void what_is_shown_gets_no_mount(void **state)
{
	static const struct {
		const char *source;
		unsigned rights;
		const char *of; /* NULL: refused */
	} rows[] = {
		{"/srv", RO, "/srv/x"}, {"/other", RO, "/other/x"},
		{"/other", RO, NULL},	{"/srv", RW, NULL},
		{NULL, RO, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		const char *of = rows[i].of ? rows[i].of : "/srv/x";
		struct zb_bwrap_args a;
		struct zb_plan plan;
		struct zb_place *p;

		assert_true(zb_test_plan_minimal(&plan));
		if (rows[i].source)
			assert_non_null(zb_test_place(&plan, ZB_PLACE_GRANT,
						      "/srv", rows[i].source,
						      rows[i].rights, true));
		p = zb_test_place(&plan, ZB_PLACE_SYSTEM, "/srv/x", of, RX,
				  false);
		assert_non_null(p);
		p->shown = true;
		if (!rows[i].of) {
			refuse(&plan, ZB_EUNSUPPORTED, "does not show it");
			continue;
		}
		make(&a, &plan);
		assert_int_equal(FIND(&a, "--ro-bind", of, "/srv/x"), -1);
		assert_true(FIND(&a, "--ro-bind", rows[i].source, "/srv") >= 0);
		zb_bwrap_args_done(&a);
		zb_test_plan_done(&plan);
	}
}

/* A small directory of the system is one of the root's, with copies in it. */
static void copies_lie_in_a_directory_of_ours(void **state)
{
	struct zb_bwrap_args a;
	struct zb_plan plan;
	struct zb_place *p;
	int dir, file;

	(void)state;
	assert_true(zb_test_plan_minimal(&plan));
	assert_non_null(
		zb_test_place(&plan, ZB_PLACE_DIR, "/srv", NULL, RO, true));
	p = zb_test_place(&plan, ZB_PLACE_SYSTEM, "/srv/x", "/srv/x",
			  ZB_MAY_READ, false);
	assert_non_null(p);
	p->copied = true;
	make(&a, &plan);
	dir = FIND(&a, "--dir", "/srv");
	file = FIND(&a, "--file", "FD", "/srv/x");
	assert_true(dir >= 0 && file > dir);
	assert_int_equal(FIND(&a, "--remount-ro", "/srv"), -1);
	zb_bwrap_args_done(&a);
	zb_test_plan_done(&plan);
}

/* A wide grant is the root, and stays as writable as it was granted. */
static void root_can_be_granted(void **state)
{
	struct zb_bwrap_args a;
	struct zb_plan plan;

	(void)state;
	assert_true(zb_test_plan_minimal(&plan));
	assert_non_null(
		zb_test_place(&plan, ZB_PLACE_GRANT, "/", "", RW, true));
	make(&a, &plan);
	assert_true(FIND(&a, "--bind", "/", "/") >= 0);
	assert_int_equal(FIND(&a, "--remount-ro", "/"), -1);
	zb_bwrap_args_done(&a);
	zb_test_plan_done(&plan);
}

static void refuses_by_name(void **state)
{
	static const struct {
		enum zb_place_kind kind;
		const char *path, *source;
		unsigned rights;
		const char *word;
	} rows[] = {
		{ZB_PLACE_GRANT, "srv", "/srv", RO, "absolute"},
		{ZB_PLACE_GRANT, "/srv/", "/srv", RO, "/srv/"},
		{ZB_PLACE_GRANT, "/srv/../x", "/x", RO, "canonical"},
		{ZB_PLACE_GRANT, "/srv//x", "/x", RO, "canonical"},
		{ZB_PLACE_GRANT, "/srv", NULL, RO, "source"},
		{ZB_PLACE_GRANT, "/srv", "srv", RO, "source"},
		{ZB_PLACE_HOME, "/home/v", NULL, RW, "/home/v"},
		{ZB_PLACE_RUNTIME, "/usr/x", "/usr/x", RW, "writable"},
		{ZB_PLACE_SYSTEM, "/usr/x", "/usr/x", RW, "writable"},
		{ZB_PLACE_GRANT, "/tmp", "/tmp", RO, "two places"},
		{ZB_PLACE_GRANT, "/lib/x", "/lib/x", RO, "link"},
		{ZB_PLACE_LINK, "/l", NULL, 0, "target"},
		{ZB_PLACE_TEXT, "/t", NULL, RO, "content"},
		{ZB_PLACE_GRANT, "/a\033[2Jb/", "/x", RO, "\\x1b[2Jb"},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_plan plan;

		assert_true(zb_test_plan("strict-native", &plan));
		assert_non_null(zb_test_place(&plan, rows[i].kind, rows[i].path,
					      rows[i].source, rows[i].rights,
					      true));
		refuse(&plan, ZB_EUNSUPPORTED, rows[i].word);
	}
}

/* It would be made on the host. */
static void refuses_copies_in_a_mount(void **state)
{
	struct zb_plan plan;
	struct zb_place *p;

	(void)state;
	assert_true(zb_test_plan_minimal(&plan));
	assert_non_null(
		zb_test_place(&plan, ZB_PLACE_GRANT, "/srv", "", RW, true));
	p = zb_test_place(&plan, ZB_PLACE_SYSTEM, "/srv/x", "/etc/y",
			  ZB_MAY_READ, false);
	assert_non_null(p);
	p->copied = true;
	refuse(&plan, ZB_EUNSUPPORTED, "copy");
}

static void refuses_disorder(void **state)
{
	struct zb_plan plan;

	(void)state;
	assert_true(zb_test_plan_minimal(&plan));
	assert_non_null(
		zb_test_place(&plan, ZB_PLACE_GRANT, "/srv/a", "", RO, true));
	assert_non_null(
		zb_test_place(&plan, ZB_PLACE_GRANT, "/srv", "", RO, true));
	refuse(&plan, ZB_EUNSUPPORTED, "before");
	assert_true(zb_test_plan_minimal(&plan));
	free(plan.cwd);
	plan.cwd = NULL;
	refuse(&plan, ZB_EUNSUPPORTED, "working directory");
}

/* More than bwrap takes is our error, with what to do. */
static void refuses_too_many(void **state)
{
	struct zb_plan plan;

	(void)state;
	assert_true(zb_test_plan_minimal(&plan));
	for (unsigned i = 0; i < ZB_BWRAP_ARGS_MAX / 3; i++) {
		zb_auto(free) char *path = zb_strf("/srv/%u", i);

		assert_non_null(path);
		assert_non_null(zb_test_place(&plan, ZB_PLACE_GRANT, path, "",
					      ZB_MAY_READ, false));
	}
	refuse(&plan, ZB_ELIMIT, "grant a directory");
}

/* Each rule, how. */
static void rules_say_how(void **state)
{
	static const struct {
		const char *plan, *rule;
		enum zb_enforced how;
	} rows[] = {
		{"standard-home", "fs.read ${project}", ZB_ENFORCED_BROKER},
		{"standard-home", "fs.deny /home/u/src/app/**/.env*",
		 ZB_ENFORCED_BROKER},
		{"standard-home", "fs.state beside", ZB_ENFORCED_FLOOR},
		{"sh-exec", "fs.exec git", ZB_ENFORCED_FLOOR},
		{"file-write", "fs.write ~/notes/todo.txt", ZB_ENFORCED_FLOOR},
		{"file-write", "fs.read /nope/xyz", ZB_ENFORCED_FLOOR},
		{"strict-python", "limits.memory 536870912",
		 ZB_ENFORCED_SUPERVISOR},
		{"strict-python", "anything else", ZB_ENFORCED_FLOOR},
		/* the weakest of the places that one rule made */
		{"links", "fs.read ~/work", ZB_ENFORCED_BROKER},
		{"awkward", "fs.write ~/out", ZB_ENFORCED_BROKER},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_rule_status *v = NULL;
		struct zb_error err = {0};
		struct zb_plan plan;
		bool found = false;
		size_t n = 0;
		int rc;

		assert_true(zb_test_plan(rows[i].plan, &plan));
		rc = zb_bwrap_rules(&plan, &v, &n, &err);
		assert_int_equal(rc, 0);
		for (size_t k = 0; k < n; k++) {
			if (strcmp(v[k].rule, rows[i].rule) != 0)
				continue;
			found = true;
			assert_int_equal(v[k].how, rows[i].how);
			assert_true(v[k].by[0]);
		}
		if (!found)
			fail_msg("%s: no rule %s", rows[i].plan, rows[i].rule);
		zb_rule_statuses_done(v, n);
		zb_test_plan_done(&plan);
	}
}

/* A rule that made no place of its own: each reason in its own words. */
static void placeless_rules_say_why(void **state)
{
	static const struct {
		const char *value, *notice, *by;
		bool no_project;
	} rows[] = {
		{"/nope", "does not exist; skipped",
		 "mount (no place of its own: it does not exist; skipped)",
		 false},
		{"${project}/x", NULL,
		 "mount (nothing: there is no project that could be granted)",
		 true},
		{"${project}/x", NULL,
		 "broker (it alone opens here), mount (shown by "
		 "standard.json: fs.read[0])",
		 false},
		{"${tmp}/x", NULL,
		 "mount, Landlock (it is the extension's own)", false},
		{"~/.zot/extensions/weather/x*", NULL,
		 "mount, Landlock (it is the extension's own)", false},
		{"/usr/lib/x86_64-linux-gnu", NULL,
		 "mount, Landlock (shown as what the program needs)", false},
		{"/nowhere", NULL, "mount (nothing is shown there)", false},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		char file[] = "scope.json", key[] = "fs.read[7]";
		struct zb_origin o = {.file = file, .key = key, .line = 3};
		struct zb_rule_status *v = NULL;
		struct zb_plan plan;
		size_t n = 0, k = 0;
		zb_auto(free) char *rule = zb_strf("fs.read %s", rows[i].value);

		assert_true(zb_test_plan("standard-home", &plan));
		assert_int_equal(
			zb_rules_add(&plan.scope.fs_read, rows[i].value, &o),
			0);
		if (rows[i].no_project) {
			free(plan.project);
			plan.project = NULL;
		}
		/* One of another rule, then ours. */
		zb_strv_add(&plan.notices,
			    "scope fs.read \"/z\" is left out (scope.json: "
			    "fs.read[1])");
		if (rows[i].notice)
			zb_strv_addf(&plan.notices,
				     "scope fs.read \"%s\" %s "
				     "(scope.json: fs.read[7])",
				     rows[i].value, rows[i].notice);
		assert_int_equal(zb_bwrap_rules(&plan, &v, &n, NULL), 0);
		while (k < n && strcmp(v[k].rule, rule) != 0)
			k++;
		assert_true(k < n);
		assert_string_equal(v[k].by, rows[i].by);
		zb_rule_statuses_done(v, n);
		zb_test_plan_done(&plan);
	}
}

/* A program in a place that only the broker serves would not start. */
static void refuses_what_cannot_be(void **state)
{
	struct zb_rule_status *v = NULL;
	struct zb_error err = {0};
	struct zb_plan plan;
	size_t n = 0;

	(void)state;
	assert_true(zb_test_plan("sh-exec", &plan));
	for (size_t i = 0; i < plan.n_places; i++)
		plan.places[i].carved |=
			!strcmp(plan.places[i].path, "/usr/bin/git");
	assert_int_equal(zb_bwrap_rules(&plan, &v, &n, &err), ZB_EUNSUPPORTED);
	assert_non_null(strstr(err.msg, "fs.exec git cannot be enforced"));
	zb_rule_statuses_done(v, n);
	zb_test_plan_done(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_layer_is_there),
		cmocka_unit_test(layers_can_be_taken_out),
		cmocka_unit_test(parents_come_first),
		cmocka_unit_test(links_are_not_made_on_the_host),
		cmocka_unit_test(directories_of_ours_end_read_only),
		cmocka_unit_test(texts_wait_for_their_descriptor),
		cmocka_unit_test(small_files_are_copied),
		cmocka_unit_test(what_is_shown_gets_no_mount),
		cmocka_unit_test(copies_lie_in_a_directory_of_ours),
		cmocka_unit_test(refuses_copies_in_a_mount),
		cmocka_unit_test(root_can_be_granted),
		cmocka_unit_test(refuses_by_name),
		cmocka_unit_test(refuses_disorder),
		cmocka_unit_test(refuses_too_many),
		cmocka_unit_test(rules_say_how),
		cmocka_unit_test(placeless_rules_say_why),
		cmocka_unit_test(refuses_what_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
