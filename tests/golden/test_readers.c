/* test_readers.c - the profile and the description, read by somebody who does
 * not know the plan, must answer as the evaluator does. Golden files say that
 * nothing changed; this says that what is written is right.
 *
 * Where a system cannot say what the plan does, the answer is no, and the text
 * has said so (UNSUPPORTED). Where it can only say more than the plan does, the
 * answer is no as well (STRICTER). It is never yes where the evaluator's is no.
 */
#include "judge.h"
#include "plans.h"

#include "backend.h"
#include "cleanup.h"
#include "enforce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define EXT "/home/u/.zot/extensions/weather"
#define BOX "/home/u/.zot/zotbox/weather"
#define APP "/home/u/src/app"

enum expect {
	SAME,
	UNSUPPORTED,
	STRICTER
};
static const struct row {
	const char *plan;
	enum zb_op op;
	const char *target;
	unsigned flags;
	bool allowed;
	enum expect macos, windows;
} rows[] = {
	{"strict-python", ZB_OP_FS_READ, "/usr/lib/python3.11/os.py", 0, true,
	 SAME, SAME},
	{"strict-python", ZB_OP_FS_WRITE, "/usr/lib/python3.11/os.py", 0, false,
	 SAME, SAME},
	{"strict-python", ZB_OP_FS_EXEC, "/usr/bin/python3.11", 0, true, SAME,
	 SAME},
	{"strict-python", ZB_OP_FS_DELETE, "/usr/bin/python3.11", 0, false,
	 SAME, SAME},
	{"strict-python", ZB_OP_FS_READ, EXT "/main.py", 0, true, SAME, SAME},
	{"strict-python", ZB_OP_FS_WRITE, EXT "/main.py", 0, false, SAME, SAME},
	{"strict-python", ZB_OP_FS_META, EXT "/main.py", 0, false, SAME, SAME},
	{"strict-python", ZB_OP_FS_CREATE, EXT "/new.py", ABSENT, false, SAME,
	 SAME},
	{"strict-python", ZB_OP_FS_READ, EXT "/extension.json", 0, true,
	 UNSUPPORTED, UNSUPPORTED},
	{"strict-python", ZB_OP_FS_READ, "/etc/passwd", 0, true, UNSUPPORTED,
	 UNSUPPORTED},
	{"strict-python", ZB_OP_FS_CREATE, BOX "/data/state.json", ABSENT, true,
	 SAME, SAME},
	{"strict-python", ZB_OP_FS_WRITE, BOX "/data/state.json", 0, true, SAME,
	 SAME},
	{"strict-python", ZB_OP_FS_DELETE, BOX "/data/state.json", 0, true,
	 SAME, SAME},
	{"strict-python", ZB_OP_FS_RENAME, BOX "/data/state.json", 0, true,
	 SAME, SAME},
	{"strict-python", ZB_OP_FS_DELETE, BOX "/data", DIR_, false, SAME,
	 SAME},
	{"strict-python", ZB_OP_FS_CREATE, "/home/u/.cache/x", ABSENT, true,
	 SAME, SAME},
	{"strict-python", ZB_OP_FS_READ, "/home/u/.cache/x", 0, true, SAME,
	 SAME},
	{"strict-python", ZB_OP_FS_EXEC, "/home/u/.cache/tool", 0, true, SAME,
	 SAME},
	{"strict-python", ZB_OP_FS_EXEC, "/tmp/go-build/main", 0, true, SAME,
	 SAME},
	{"strict-python", ZB_OP_FS_READ, "/home/u/.ssh/id_ed25519",
	 HOST | ABSENT, false, SAME, SAME},
	{"strict-python", ZB_OP_FS_READ, "/home/u/.zot/auth.json",
	 HOST | ABSENT, false, SAME, SAME},
	{"strict-python", ZB_OP_FS_WRITE, BOX "/scope.json", HOST | ABSENT,
	 false, SAME, SAME},
	{"strict-python", ZB_OP_FS_READ, BOX "/manifest.json", HOST | ABSENT,
	 false, SAME, SAME},
	{"strict-python", ZB_OP_FS_READ, "/etc/shadow", HOST | ABSENT, false,
	 SAME, SAME},
	{"strict-python", ZB_OP_FS_READ, "/tmp/other-user", HOST | ABSENT,
	 false, SAME, SAME},
	{"strict-python", ZB_OP_FS_EXEC, "/usr/bin/id", HOST | ABSENT, false,
	 SAME, SAME},
	{"strict-python", ZB_OP_NET_CONNECT, "example.org:443", 0, false, SAME,
	 SAME},
	{"strict-python", ZB_OP_NET_LISTEN, "10.0.0.1:80", 0, false, SAME,
	 SAME},
	{"standard-home", ZB_OP_FS_READ, APP "/src/main.c", 0, true, SAME,
	 UNSUPPORTED},
	{"standard-home", ZB_OP_FS_READ, APP "/src", DIR_, true, SAME,
	 UNSUPPORTED},
	{"standard-home", ZB_OP_FS_READ, APP "/.env", 0, false, SAME, SAME},
	{"standard-home", ZB_OP_FS_READ, APP "/a/b/.env.local", 0, false, SAME,
	 SAME},
	{"standard-home", ZB_OP_FS_READ, APP "/.ssh/config", 0, false, SAME,
	 SAME},
	{"standard-home", ZB_OP_FS_READ, APP "/tls/server.pem", 0, false, SAME,
	 SAME},
	{"standard-home", ZB_OP_FS_READ, APP "/server.pem.txt", 0, true, SAME,
	 UNSUPPORTED},
	{"standard-home", ZB_OP_FS_READ, APP "/environment", 0, true, SAME,
	 UNSUPPORTED},
	/* one file on most of a Mac's disks */
	{"standard-home", ZB_OP_FS_READ, APP "/.ENV", 0, true, STRICTER,
	 UNSUPPORTED},
	{"standard-home", ZB_OP_FS_WRITE, APP "/src/main.c", 0, false, SAME,
	 SAME},
	{"standard-home", ZB_OP_FS_EXEC, APP "/configure", 0, false, SAME,
	 SAME},
	{"standard-home", ZB_OP_FS_READ, "/home/u/src/other/x", HOST | ABSENT,
	 false, SAME, SAME},
	{"standard-home", ZB_OP_FS_CREATE, EXT "/todos.json", ABSENT, true,
	 UNSUPPORTED, UNSUPPORTED},
	{"standard-home", ZB_OP_FS_READ, EXT "/main.py", 0, true, SAME, SAME},
	{"standard-home", ZB_OP_FS_WRITE, EXT "/main.py", 0, false, SAME, SAME},
	{"standard-tmp", ZB_OP_FS_READ, "/tmp/w/app/x", 0, true, SAME,
	 UNSUPPORTED},
	{"standard-tmp", ZB_OP_FS_READ, "/tmp/w/app/.env", 0, false, SAME,
	 SAME},
	{"standard-tmp", ZB_OP_FS_CREATE, "/tmp/y", ABSENT, true, SAME, SAME},
	{"standard-tmp", ZB_OP_FS_READ, "/tmp/w/other", HOST | ABSENT, false,
	 SAME, SAME},
	{"sh-exec", ZB_OP_FS_EXEC, "/usr/bin/git", 0, true, SAME, SAME},
	{"sh-exec", ZB_OP_FS_EXEC, "/usr/lib/git-core/git-log", 0, true, SAME,
	 SAME},
	{"sh-exec", ZB_OP_FS_EXEC, "/usr/bin/curl", HOST | ABSENT, false, SAME,
	 SAME},
	{"sh-exec", ZB_OP_FS_WRITE, "/usr/bin/git", 0, false, SAME, SAME},
	{"file-write", ZB_OP_FS_WRITE, "/home/u/notes/todo.txt", 0, true, SAME,
	 SAME},
	{"file-write", ZB_OP_FS_META, "/home/u/notes/todo.txt", 0, true, SAME,
	 SAME},
	{"file-write", ZB_OP_FS_DELETE, "/home/u/notes/todo.txt", 0, false,
	 SAME, SAME},
	{"file-write", ZB_OP_FS_EXEC, "/home/u/notes/todo.txt", 0, false, SAME,
	 SAME},
	{"file-write", ZB_OP_FS_READ, "/home/u/notes/diary.txt", HOST | ABSENT,
	 false, SAME, SAME},
	{"file-write", ZB_OP_FS_READ, "/srv/feed/a", 0, true, SAME, SAME},
	{"file-write", ZB_OP_FS_CREATE, "/srv/feed/b", ABSENT, false, SAME,
	 SAME},
	{"file-write", ZB_OP_FS_EXEC, "/srv/feed/a", 0, false, SAME, SAME},
	{"file-write", ZB_OP_FS_READ, "/srv/feeder/a", HOST | ABSENT, false,
	 SAME, SAME},
	{"links", ZB_OP_FS_READ, "/srv/w/a", 0, true, SAME, SAME},
	{"links", ZB_OP_FS_READ, "/srv/w/secret.txt", 0, false, SAME, SAME},
	{"links", ZB_OP_FS_READ, "/srv/w/secret.txt.bak", 0, true, SAME, SAME},
	{"links", ZB_OP_FS_READ, "/home/u/logs/app/x.log", 0, true, SAME,
	 UNSUPPORTED},
	{"links", ZB_OP_FS_READ, "/home/u/logs/app/x.txt", 0, false, SAME,
	 SAME},
	{"links", ZB_OP_FS_READ, "/home/u/logs/app", DIR_, true, SAME,
	 UNSUPPORTED},
	{"awkward", ZB_OP_FS_READ,
	 "/home/u/My Files (old)/\"quoted\" ; \\n ) $HOME/f", 0, true, SAME,
	 SAME},
	{"awkward", ZB_OP_FS_READ, "/home/u/My Files (old)/sch\303\266n 'x'", 0,
	 true, SAME, SAME},
	{"awkward", ZB_OP_FS_CREATE, "/home/u/out/a", ABSENT, true, SAME,
	 UNSUPPORTED},
	{"awkward", ZB_OP_FS_CREATE, "/home/u/out/.git", ABSENT | DIR_, false,
	 SAME, SAME},
	{"awkward", ZB_OP_FS_CREATE, "/home/u/out/sub/.git/hooks/x", ABSENT,
	 false, SAME, SAME},
	{"awkward", ZB_OP_FS_READ, "/home/u/out/.git/config", 0, true, SAME,
	 UNSUPPORTED},
	{"awkward", ZB_OP_FS_READ, "/home/u/out/keys/prod", 0, false, SAME,
	 SAME},
	{"awkward", ZB_OP_FS_READ, "/home/u/out/keys/dev", 0, true, SAME,
	 UNSUPPORTED},
	{"awkward", ZB_OP_FS_READ, "/home/u/out/cfg/tok\303\251n (1).txt", 0,
	 false, SAME, SAME},
	{"awkward", ZB_OP_FS_READ, "/home/u/out/cfg/tokn (1).txt", 0, true,
	 SAME, UNSUPPORTED},
	/* could be moved with what is denied in it */
	{"awkward", ZB_OP_FS_RENAME, "/home/u/out/keys", DIR_, true, STRICTER,
	 UNSUPPORTED},
};

static void check(const struct row *r, const char *system, enum expect expect,
		  bool answer, bool says)
{
	bool should = r->allowed && expect == SAME;

	if (answer != should)
		fail_msg("%s on %s: %s %s is %s", r->plan, system,
			 zb_op_name(r->op), r->target,
			 answer ? "allowed" : "denied");
	if (expect == UNSUPPORTED && !says)
		fail_msg("%s on %s: %s is left out without a word", r->plan,
			 system, r->target);
}

static void load(struct texts *t, const char *name)
{
	assert_true(zb_test_plan(name, &t->plan));
	judge_read(t);
}

static void answers_as_the_evaluator(void **state)
{
	(void)state;
	assert_true(ZB_ARRAY_LEN(rows) >= 30);
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct texts t;

		load(&t, r->plan);
		if (judge_evaluate(&t, r->op, r->target, r->flags) !=
		    r->allowed)
			fail_msg("%s: the evaluator differs on %s %s", r->plan,
				 zb_op_name(r->op), r->target);
		check(r, "macOS", r->macos,
		      judge_macos(&t, r->op, r->target, r->flags),
		      judge_macos_says(&t, r->target));
		check(r, "Windows", r->windows,
		      judge_windows(&t, r->op, r->target, r->flags),
		      judge_windows_says(&t, r->target));
		judge_done(&t);
	}
}

/* A plan that a text cannot hold is not started. */
static void unsupported_is_refused(void **state)
{
	static const struct {
		const char *plan;
		bool macos, windows;
	} starts[] = {
		{"strict-python", true, true},	{"standard-home", false, false},
		{"standard-tmp", false, false}, {"sh-exec", true, true},
		{"file-write", true, true},	{"links", true, false},
		{"awkward", true, false},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(starts); i++) {
		struct zb_rule_status *v = NULL;
		struct zb_error err = {0};
		struct zb_plan plan;
		size_t n = 0;

		assert_true(zb_test_plan(starts[i].plan, &plan));
		assert_int_equal(zb_backend_seatbelt.rules(&plan, &v, &n, &err),
				 starts[i].macos ? 0 : ZB_EUNSUPPORTED);
		zb_rule_statuses_done(v, n);
		assert_int_equal(
			zb_backend_appcontainer.rules(&plan, &v, &n, &err),
			starts[i].windows ? 0 : ZB_EUNSUPPORTED);
		zb_rule_statuses_done(v, n);
		zb_test_plan_done(&plan);
	}
}

/* Foreign backends explain, and have nothing to run with. */
static void foreign_backends_cannot_run(void **state)
{
	const struct zb_backend *const foreign[] = {&zb_backend_seatbelt,
						    &zb_backend_appcontainer};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(foreign); i++) {
		assert_non_null(foreign[i]->render);
		assert_non_null(foreign[i]->rules);
		assert_null(foreign[i]->probe);
		assert_null(foreign[i]->spawn);
	}
}

/* Many more targets than a table holds. */
static void never_wider_than_the_plan(void **state)
{
	size_t asked = 0;

	(void)state;
	for (size_t i = 0; zb_test_plan_names[i]; i++) {
		struct texts t;

		load(&t, zb_test_plan_names[i]);
		asked += judge_sweep(&t);
		judge_done(&t);
	}
	assert_true(asked > 1000);
}

/* More permission never takes an allow away. */
static void more_never_takes_away(void **state)
{
	(void)state;
	for (size_t i = 0; zb_test_plan_names[i]; i++) {
		struct texts less, more;

		load(&less, zb_test_plan_names[i]);
		assert_true(zb_test_plan(zb_test_plan_names[i], &more.plan));
		assert_non_null(zb_test_place(&more.plan, ZB_PLACE_GRANT,
					      "/opt/more", "",
					      ZB_MAY_READ | ZB_MAY_LIST, true));
		assert_non_null(zb_test_place(
			&more.plan, ZB_PLACE_GRANT, "/srv", "",
			ZB_MAY_READ | ZB_MAY_LIST | ZB_MAY_EXEC, true));
		judge_read(&more);
		assert_true(judge_more(&less, &more) > 100);
		judge_done(&less);
		judge_done(&more);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_as_the_evaluator),
		cmocka_unit_test(unsupported_is_refused),
		cmocka_unit_test(foreign_backends_cannot_run),
		cmocka_unit_test(never_wider_than_the_plan),
		cmocka_unit_test(more_never_takes_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
