/* judge.c - the two texts of a plan, held against the evaluator. */
#include "judge.h"

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

void judge_read(struct texts *t)
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

void judge_done(struct texts *t)
{
	sbpl_free(t->profile);
	ac_free(t->container);
	zb_plan_done(&t->plan);
}

bool judge_evaluate(const struct texts *t, enum zb_op op, const char *target,
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
bool judge_macos_says(const struct texts *t, const char *path)
{
	char at[4096];

	return !sbpl_locate(t->profile, path, at, sizeof(at));
}

bool judge_windows_says(const struct texts *t, const char *path)
{
	char at[4096];

	return !ac_locate(t->container, path, at, sizeof(at)) ||
	       ac_below(t->container, "closed", path);
}

static bool is_net(enum zb_op op)
{
	return op == ZB_OP_NET_CONNECT || op == ZB_OP_NET_LISTEN;
}

bool judge_macos(const struct texts *t, enum zb_op op, const char *target,
		 unsigned flags)
{
	char at[4096];

	if (is_net(op) || (flags & HOST))
		return ask_profile(t, op, target, flags);
	return sbpl_locate(t->profile, target, at, sizeof(at)) &&
	       ask_profile(t, op, at, flags);
}

bool judge_windows(const struct texts *t, enum zb_op op, const char *target,
		   unsigned flags)
{
	char at[4096];

	if (is_net(op) || (flags & HOST))
		return ask_container(t, op, target, flags);
	return ac_locate(t->container, target, at, sizeof(at)) &&
	       ask_container(t, op, at, flags);
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
		bool yes = judge_evaluate(t, op, path, flags);
		bool mac = judge_macos(t, op, path, flags);
		bool win = judge_windows(t, op, path, flags);

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

static void judge_grown(const struct texts *less, const struct texts *more,
			const char *path)
{
	for (size_t o = 0; o < ZB_ARRAY_LEN(fs_ops); o++) {
		if (judge_macos(less, fs_ops[o], path, 0) &&
		    !judge_macos(more, fs_ops[o], path, 0))
			fail_msg("macOS: %s %s was allowed",
				 zb_op_name(fs_ops[o]), path);
		if (judge_windows(less, fs_ops[o], path, 0) &&
		    !judge_windows(more, fs_ops[o], path, 0))
			fail_msg("Windows: %s %s was allowed",
				 zb_op_name(fs_ops[o]), path);
	}
}

size_t judge_sweep(const struct texts *t)
{
	size_t asked = 0;

	for (size_t i = 0; i < t->plan.n_places; i++) {
		const struct zb_place *p = &t->plan.places[i];

		if (p->kind == ZB_PLACE_DEV || p->kind == ZB_PLACE_PROC ||
		    p->kind == ZB_PLACE_LINK)
			continue;
		asked += sweep(t, p->path, p->is_dir);
		if (p->source)
			asked += sweep(t, p->source, p->is_dir);
	}
	return asked;
}

size_t judge_more(const struct texts *less, const struct texts *more)
{
	size_t asked = 0;

	for (size_t i = 0; i < less->plan.n_places; i++)
		for (size_t j = 0; j < ZB_ARRAY_LEN(tails); j++) {
			zb_auto(free) char *path = zb_strf(
				"%s%s", less->plan.places[i].path, tails[j]);

			assert_non_null(path);
			judge_grown(less, more, path);
			asked++;
		}
	return asked;
}
