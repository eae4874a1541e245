/* test_readers.c - the profile and the description, read by somebody who does
 * not know the plan, must answer as the evaluator does. Golden files say that
 * nothing changed; this says that what is written is right.
 *
 * Where a system cannot say what the plan does, the answer is no, and the text
 * has said so (UNSUPPORTED). Where it can only say more than the plan does, the
 * answer is no as well (STRICTER). It is never yes where the evaluator's is no.
 */
#include "appcontainer_reader.h"
#include "plans.h"
#include "sbpl_reader.h"

#include "cleanup.h"
#include "evaluator.h"
#include "platform/macos/sbpl.h"
#include "platform/windows/appcontainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TMP "/private/var/folders/zz/T/zotbox-1"
#define EXT "/home/u/.zot/extensions/weather"
#define BOX "/home/u/.zot/zotbox/weather"
#define APP "/home/u/src/app"

enum expect {
	SAME,
	UNSUPPORTED,
	STRICTER
};
enum {
	DIR_ = 1,
	ABSENT = 2,
	HOST = 4, /* the host's file under this very name, not what the plan
		     would show there: absent inside, and closed outside */
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

struct texts {
	struct zb_plan plan;
	struct sbpl *profile;
	struct ac *container;
};

static void read_texts(struct texts *t)
{
	struct zb_buf mac = {0}, win = {0};
	struct zb_error err = {0};
	char why[200];

	if (zb_sbpl_render(&t->plan, &mac, &err) ||
	    zb_appcontainer_render(&t->plan, &win, &err))
		fail_msg("%s", err.msg);
	t->profile = sbpl_read(zb_buf_str(&mac), TMP, why, sizeof(why));
	if (!t->profile)
		fail_msg("profile: %s", why);
	t->container = ac_read(zb_buf_str(&win), why, sizeof(why));
	if (!t->container)
		fail_msg("description: %s", why);
	zb_buf_done(&mac);
	zb_buf_done(&win);
}

static void load(struct texts *t, const char *name)
{
	assert_true(zb_test_plan(name, &t->plan));
	read_texts(t);
}

static void unload(struct texts *t)
{
	sbpl_free(t->profile);
	ac_free(t->container);
	zb_test_plan_done(&t->plan);
}

static bool evaluate(const struct texts *t, enum zb_op op, const char *target,
		     unsigned flags)
{
	struct zb_query q = {.op = op,
			     .target = target,
			     .place = -1,
			     .is_dir = flags & DIR_,
			     .exists = !(flags & ABSENT)};
	struct zb_answer a;
	bool yes;

	zb_evaluate(&t->plan, &q, &a);
	yes = a.verdict != ZB_DENY;
	assert_int_equal(a.verdict, zb_evaluate_fast(&t->plan, &q));
	zb_answer_done(&a);
	return yes;
}

/* All of the operations that the act takes must be allowed. */
static bool ask_profile(const struct texts *t, enum zb_op op, const char *path,
			unsigned flags)
{
	const char *ops[2] = {NULL, NULL};

	switch ((int)op) {
	case ZB_OP_FS_READ:
		ops[0] = "file-read-data";
		break;
	case ZB_OP_FS_WRITE:
		ops[0] = "file-write-data";
		break;
	case ZB_OP_FS_META:
		ops[0] = "file-write-mode";
		break;
	case ZB_OP_FS_CREATE:
		ops[0] = "file-write-create";
		break;
	case ZB_OP_FS_DELETE:
		ops[0] = "file-write-unlink";
		break;
	case ZB_OP_FS_RENAME:
		ops[0] = flags & ABSENT ? "file-write-create"
					: "file-write-unlink";
		break;
	case ZB_OP_FS_EXEC:
		ops[0] = "process-exec*";
		ops[1] = "file-read-data";
		break;
	case ZB_OP_NET_CONNECT:
		ops[0] = "network-outbound";
		break;
	case ZB_OP_NET_LISTEN:
		ops[0] = "network-bind";
		ops[1] = "network-inbound";
		break;
	default:
		fail_msg("no operation for %s", zb_op_name(op));
	}
	for (size_t i = 0; i < 2 && ops[i]; i++) {
		enum sbpl_answer a = sbpl_decide(t->profile, ops[i], path);

		if (a == SBPL_SPLIT)
			fail_msg("%s %s: the two models differ", ops[i], path);
		if (a == SBPL_BAD)
			fail_msg("%s %s: not understood", ops[i], path);
		if (a == SBPL_DENY)
			return false;
	}
	return true;
}

static bool ask_container(const struct texts *t, enum zb_op op,
			  const char *path, unsigned flags)
{
	static const int acts[ZB_OP_COUNT] = {
		[ZB_OP_FS_READ] = AC_READ,     [ZB_OP_FS_WRITE] = AC_WRITE,
		[ZB_OP_FS_META] = AC_META,     [ZB_OP_FS_CREATE] = AC_CREATE,
		[ZB_OP_FS_DELETE] = AC_DELETE, [ZB_OP_FS_EXEC] = AC_EXEC,
	};
	enum ac_act act = (enum ac_act)acts[op];

	if (op == ZB_OP_NET_CONNECT)
		return ac_capability(t->container, "internetClient");
	if (op == ZB_OP_NET_LISTEN)
		return ac_capability(t->container, "internetClientServer");
	if (op == ZB_OP_FS_RENAME)
		act = flags & ABSENT ? AC_CREATE : AC_DELETE;
	return ac_decide(t->container, act, path, flags & DIR_);
}

/* Does the text say that it cannot show what the plan has at @path? */
static bool profile_says(const struct texts *t, const char *path)
{
	char at[4096];

	return !sbpl_locate(t->profile, path, at, sizeof(at));
}

static bool container_says(const struct texts *t, const char *path)
{
	char at[4096];

	return !ac_locate(t->container, path, at, sizeof(at)) ||
	       ac_below(t->container, "closed", path);
}

static bool is_net(enum zb_op op)
{
	return op == ZB_OP_NET_CONNECT || op == ZB_OP_NET_LISTEN;
}

static bool answer_macos(const struct texts *t, enum zb_op op,
			 const char *target, unsigned flags)
{
	char at[4096];

	if (is_net(op) || (flags & HOST))
		return ask_profile(t, op, target, flags);
	return sbpl_locate(t->profile, target, at, sizeof(at)) &&
	       ask_profile(t, op, at, flags);
}

static bool answer_windows(const struct texts *t, enum zb_op op,
			   const char *target, unsigned flags)
{
	char at[4096];

	if (is_net(op) || (flags & HOST))
		return ask_container(t, op, target, flags);
	return ac_locate(t->container, target, at, sizeof(at)) &&
	       ask_container(t, op, at, flags);
}

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

static void answers_as_the_evaluator(void **state)
{
	(void)state;
	assert_true(ZB_ARRAY_LEN(rows) >= 30);
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct texts t;

		load(&t, r->plan);
		if (evaluate(&t, r->op, r->target, r->flags) != r->allowed)
			fail_msg("%s: the evaluator differs on %s %s", r->plan,
				 zb_op_name(r->op), r->target);
		check(r, "macOS", r->macos,
		      answer_macos(&t, r->op, r->target, r->flags),
		      profile_says(&t, r->target));
		check(r, "Windows", r->windows,
		      answer_windows(&t, r->op, r->target, r->flags),
		      container_says(&t, r->target));
		unload(&t);
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
		for (size_t k = 0; k < n; k++) {
			free(v[k].rule);
			free(v[k].by);
		}
		free(v);
		assert_int_equal(
			zb_backend_appcontainer.rules(&plan, &v, &n, &err),
			starts[i].windows ? 0 : ZB_EUNSUPPORTED);
		for (size_t k = 0; k < n; k++) {
			free(v[k].rule);
			free(v[k].by);
		}
		free(v);
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

/* Many more targets than a table holds: below every place and source of every
 * plan, with names that denies mind. Never yes where the evaluator says no. */

static const char *const tails[] = {
	"",
	"/x",
	"/.env",
	"/a/.env.x",
	"/b/.git",
	"/.git/c",
	"/id_rsa",
	"/a/b/c.pem",
	"/.ssh/d",
	"/keys/prod/z",
	"/keys",
	"/x.log",
	"/secret.txt",
	"/data/y",
	"/home/y",
	"/.zot/extensions/q",
	"x",
	"/CREDENTIALS",
	"/\303\251",
	"/extension.json",
};

static const enum zb_op fs_ops[] = {
	ZB_OP_FS_READ,	 ZB_OP_FS_WRITE,  ZB_OP_FS_META,
	ZB_OP_FS_CREATE, ZB_OP_FS_DELETE, ZB_OP_FS_EXEC,
};

/* Is the host's @path what some private place uses, or macOS' own? */
static bool is_private_source(const struct zb_plan *p, const char *path)
{
	for (size_t i = 0; i < p->n_places; i++) {
		const struct zb_place *q = &p->places[i];

		if ((q->kind == ZB_PLACE_HOME || q->kind == ZB_PLACE_DATA) &&
		    !strncmp(path, q->source, strlen(q->source)))
			return true;
	}
	return false;
}

/* A directory that is there for a mount below it, and kept in its place by a
 * mount. Without mounts it is an ordinary one in a private place, if at all. */
static bool is_scaffold(const struct zb_plan *p, const char *path)
{
	int i = zb_plan_place(p, path);

	return i >= 0 && (p->places[i].kind == ZB_PLACE_DIR ||
			  (p->places[i].kind == ZB_PLACE_PIN &&
			   !strcmp(p->places[i].path, path)));
}

static bool is_windows_own(const struct texts *t, enum zb_op op,
			   const char *path)
{
	char at[4096];

	if (op != ZB_OP_FS_EXEC)
		return false;
	if (ac_below(t->container, "system", path))
		return true;
	return ac_locate(t->container, path, at, sizeof(at)) &&
	       !strncmp(at, "container-temp", strlen("container-temp"));
}

static bool is_directory(const struct zb_plan *p, const char *path)
{
	for (size_t i = 0; i < p->n_places; i++) {
		const struct zb_place *q = &p->places[i];

		if (q->is_dir && (!strcmp(q->path, path) ||
				  (q->source && !strcmp(q->source, path))))
			return true;
	}
	return false;
}

static void compare_one(const struct texts *t, const char *path)
{
	char at[4096];

	for (size_t o = 0; o < ZB_ARRAY_LEN(fs_ops); o++) {
		enum zb_op op = fs_ops[o];
		unsigned flags = (op == ZB_OP_FS_CREATE ? ABSENT : 0) |
				 (is_directory(&t->plan, path) ? DIR_ : 0);
		bool yes = evaluate(t, op, path, flags);
		bool mac = answer_macos(t, op, path, flags);
		bool win = answer_windows(t, op, path, flags);

		if (is_scaffold(&t->plan, path))
			mac = win = false;
		if (op == ZB_OP_FS_EXEC && (flags & DIR_))
			continue; /* to pass through it, on Windows */
		if (mac && !yes && !sbpl_is_base(t->profile, path))
			fail_msg("macOS allows %s %s", zb_op_name(op), path);
		/* Windows' own entries are as they are: of system
		 * directories, and of the container's folder, where a program
		 * may start although Linux could not under this plan. */
		if (win && !yes && !is_windows_own(t, op, path))
			fail_msg("Windows allows %s %s", zb_op_name(op), path);
		/* The host's file of that name. */
		if (yes || is_private_source(&t->plan, path))
			continue;
		if (sbpl_locate(t->profile, path, at, sizeof(at)) &&
		    !strcmp(at, path) && sbpl_is_base(t->profile, path))
			continue;
		if (ask_profile(t, op, path, flags))
			fail_msg("macOS allows the host's %s %s",
				 zb_op_name(op), path);
		if (ask_container(t, op, path, flags) &&
		    !is_windows_own(t, op, path))
			fail_msg("Windows allows the host's %s %s",
				 zb_op_name(op), path);
	}
}

/* Everything below @root, a directory or else a file. Returns how many. */
static size_t sweep(const struct texts *t, const char *root, bool is_dir)
{
	size_t n = 0;

	for (size_t i = 0; i < ZB_ARRAY_LEN(tails); i++) {
		zb_auto(free) char *path = zb_strf("%s%s", root, tails[i]);

		assert_non_null(path);
		if (!is_dir && tails[i][0] == '/')
			continue; /* nothing is below a file */
		compare_one(t, path);
		n++;
	}
	return n;
}

static void never_wider_than_the_plan(void **state)
{
	size_t asked = 0;

	(void)state;
	for (size_t i = 0; zb_test_plan_names[i]; i++) {
		struct texts t;

		load(&t, zb_test_plan_names[i]);
		for (size_t k = 0; k < t.plan.n_places; k++) {
			const struct zb_place *p = &t.plan.places[k];

			if (p->kind == ZB_PLACE_DEV ||
			    p->kind == ZB_PLACE_PROC ||
			    p->kind == ZB_PLACE_LINK)
				continue;
			asked += sweep(&t, p->path, p->is_dir);
			if (p->source)
				asked += sweep(&t, p->source, p->is_dir);
		}
		unload(&t);
	}
	assert_true(asked > 1000);
}

/* More permission never takes an allow away. */
static void compare_grown(const struct texts *less, const struct texts *more,
			  const char *path)
{
	for (size_t o = 0; o < ZB_ARRAY_LEN(fs_ops); o++) {
		if (answer_macos(less, fs_ops[o], path, 0) &&
		    !answer_macos(more, fs_ops[o], path, 0))
			fail_msg("macOS: %s %s was allowed",
				 zb_op_name(fs_ops[o]), path);
		if (answer_windows(less, fs_ops[o], path, 0) &&
		    !answer_windows(more, fs_ops[o], path, 0))
			fail_msg("Windows: %s %s was allowed",
				 zb_op_name(fs_ops[o]), path);
	}
}

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
		read_texts(&more);
		for (size_t k = 0; k < less.plan.n_places; k++)
			for (size_t j = 0; j < ZB_ARRAY_LEN(tails); j++) {
				zb_auto(free) char *path = zb_strf(
					"%s%s", less.plan.places[k].path,
					tails[j]);

				assert_non_null(path);
				compare_grown(&less, &more, path);
			}
		unload(&less);
		unload(&more);
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
