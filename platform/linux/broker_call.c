/* broker_call.c - what all handlers share: arguments, judging, refusing.
 *
 * Two rules hold everywhere. What was read from the caller is judged and used
 * as our copy, never read a second time for the same decision. And a call
 * goes on in the kernel (CONTINUE), which does read it again, only where the
 * floor would give no more whatever it reads then. */
#include "config.h"

#include "platform/linux/broker_int.h"
#include "platform/linux/notify.h"
#include "platform/linux/peer.h"

#include "cleanup.h"
#include "fdutil.h"
#include "path_match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

void zb_say_continue(struct zb_call *c)
{
	c->said = ZB_SAID_CONTINUE;
}

void zb_say_errno(struct zb_call *c, int e)
{
	c->said = ZB_SAID_ERRNO;
	c->value = e;
}

void zb_say_result(struct zb_call *c, long rc)
{
	if (rc < 0) {
		zb_say_errno(c, errno);
		return;
	}
	c->said = ZB_SAID_VALUE;
	c->value = rc;
}

bool zb_say_later(struct zb_call *c)
{
	if (c->worker)
		return false;
	c->said = ZB_SAID_LATER;
	return true;
}

/* Is the caller still waiting (and so what was read its own)? */
static bool waits(const struct zb_call *c)
{
	return zb_notify_valid(c->b->listener, c->id);
}

bool zb_may_act(struct zb_call *c)
{
	if (waits(c))
		return true;
	c->said = ZB_SAID_SENT;
	return false;
}

bool zb_call_again(const struct zb_call *c)
{
	return !atomic_load(&c->b->stopping) && waits(c);
}

int zb_arg_int(const struct zb_call *c, int index)
{
	return index < 0 ? 0 : (int)(uint32_t)c->args[index];
}

int zb_arg_dir(const struct zb_call *c, int index)
{
	return index < 0 ? AT_FDCWD : (int)(uint32_t)c->args[index];
}

uint32_t zb_arg_flags(const struct zb_call *c)
{
	return (uint32_t)zb_arg_int(c, c->row->flags) | c->row->fixed;
}

bool zb_arg_path(struct zb_call *c, int index, char out[PATH_MAX])
{
	int n = zb_peer_string(c->tid, c->args[index], out, PATH_MAX);

	if (n >= 0)
		return true;
	zb_say_errno(c, -n);
	return false;
}

bool zb_arg_is_fd(struct zb_call *c)
{
	if (!(zb_arg_flags(c) & AT_EMPTY_PATH))
		return false;
	c->asked[0] = '\0';
	if (c->args[c->row->path] && !zb_arg_path(c, c->row->path, c->asked))
		return true;
	if (!c->asked[0])
		zb_say_continue(c);
	return !c->asked[0];
}

int zb_own_fd(const char *path)
{
	static const char *const tops[] = {"/proc/self/fd/",
					   "/proc/thread-self/fd/"};

	for (size_t i = 0; i < ZB_ARRAY_LEN(tops); i++) {
		const char *s = path + strlen(tops[i]);
		size_t n;

		if (strncmp(path, tops[i], strlen(tops[i])) != 0)
			continue;
		n = strspn(s, "0123456789");
		return n && n < 10 && !s[n] ? atoi(s) : -1;
	}
	return -1;
}

int zb_own_duplicate(const struct zb_call *c, const char *path)
{
	char mine[32], same[80];
	struct zb_peer_status st;
	size_t n;
	int fd;

	if (!strstr(path, "/fd/") || zb_peer_status(c->tid, &st))
		return -EBADF;
	n = (size_t)snprintf(mine, sizeof(mine), "/proc/%d/", st.inside);
	if (!strncmp(path, mine, n)) {
		snprintf(same, sizeof(same), "/proc/self/%.64s", path + n);
		path = same;
	}
	fd = zb_own_fd(path);
	if (fd < 0)
		return -EBADF;
	/* A thread may have a table of its own. */
	return zb_peer_fd(zb_path_below(path, "/proc/self") ? st.tgid : c->tid,
			  fd);
}

bool zb_arg_spell(struct zb_call *c, int dir, int path, char asked[PATH_MAX],
		  char full[PATH_MAX])
{
	int rc;

	if (!zb_arg_path(c, path, asked))
		return false;
	rc = zb_spell(&c->b->jail, c->tid, zb_arg_dir(c, dir), asked, full);
	if (!rc)
		return true;
	zb_say_errno(c, -rc);
	return false;
}

/* Let the kernel do it, or, where the broker acts, fail with @e. */
static void leave(struct zb_call *c, int e)
{
	if (c->acts)
		zb_say_errno(c, e);
	else
		zb_say_continue(c);
}

static bool is_fs(enum zb_op op)
{
	return op <= ZB_OP_FS_META;
}

/* Is this refusal to leave no record? */
static bool is_unrecorded(const struct zb_plan *plan,
			  const struct zb_refusal *r)
{
	if (r->op == ZB_OP_FS_READ && plan->ledger == ZB_LEDGER_WRITES)
		return true;
	return is_fs(r->op) && r->target && zb_plan_is_quiet(plan, r->target);
}

enum zb_verdict zb_ask(struct zb_broker *b, const struct zb_query *q)
{
	enum zb_verdict v = ZB_DENY;

	pthread_rwlock_rdlock(&b->plan_lock);
	if (b->plan)
		v = zb_evaluate_fast(b->plan, q);
	pthread_rwlock_unlock(&b->plan_lock);
	return v;
}

/* The answer in words. Return: is it to be recorded? */
static bool explain(struct zb_broker *b, const struct zb_refusal *r,
		    struct zb_answer *a)
{
	struct zb_query q = {
		.op = r->op,
		.target = r->judged ? r->judged : r->target,
		.place = r->place,
		.is_dir = r->is_dir,
		.exists = r->exists,
		.is_link = r->is_link,
	};
	bool yes = false;

	pthread_rwlock_rdlock(&b->plan_lock);
	if (b->plan) {
		yes = !is_unrecorded(b->plan, r);
		if (!r->why)
			zb_evaluate(b->plan, &q, a);
	}
	pthread_rwlock_unlock(&b->plan_lock);
	if (r->why) {
		a->rule = zb_strdup(r->why);
		a->why_not = zb_strdup("no grant changes that");
	}
	return yes;
}

static void note(struct zb_call *c, const struct zb_refusal *r,
		 struct zb_answer *a, int err)
{
	struct zb_note *n = calloc(1, sizeof(*n));
	char exe[PATH_MAX];

	if (!n)
		return;
	zb_peer_exe(c->tid, exe, sizeof(exe));
	n->ask = r->ask;
	n->is_dir = r->is_dir;
	n->d = (struct zb_denial){
		.op = r->op,
		.pid = zb_peer_process(c->tid),
		.exe = exe[0] ? zb_strdup(exe) : NULL,
		.syscall = zb_strdup(c->row->name),
		.asked = zb_strdup(r->asked),
		.target = zb_strdup(r->target ? r->target : r->asked),
		.err_no = err,
		.by = ZB_BY_BROKER,
		.evidence = r->evidence,
	};
	zb_note_answer(&n->d, a);
	if (!waits(c)) { /* all that may be another's */
		zb_note_free(n);
		return;
	}
	n->next = c->notes;
	c->notes = n;
}

void zb_refuse(struct zb_call *c, const struct zb_refusal *r)
{
	struct zb_answer a = {.place = -1};
	bool record = explain(c->b, r, &a);
	int err = r->err ? r->err : a.err_no;

	err = err > 0 ? err : EACCES;
	zb_say_errno(c, err);
	if (record)
		note(c, r, &a, err);
	else
		zb_answer_done(&a);
}

enum zb_verdict zb_stricter(enum zb_verdict a, enum zb_verdict b)
{
	if (a == ZB_DENY || b == ZB_DENY)
		return ZB_DENY;
	return a == ZB_ALLOW ? b : a;
}

enum zb_verdict zb_judge(struct zb_call *c, enum zb_op op, struct zb_spot *f)
{
	const struct zb_jail_mount *m = zb_jail_mount(&c->b->jail, f->mnt);
	struct zb_query q = {
		.op = op,
		.place = f->place,
		.is_dir = S_ISDIR(f->mode),
		.exists = true,
	};

	if (m && m->place >= 0 && m->uniform && is_fs(op)) {
		/* the place's own path serves, the object's is not needed */
		q.target = m->path;
	} else {
		int rc = zb_spot_name(&c->b->jail, f);

		if (rc) {
			f->err = -rc;
			return ZB_DENY;
		}
		q.target = f->path;
	}
	return zb_ask(c->b, &q);
}

static enum zb_verdict judge_absent(struct zb_call *c, enum zb_op op,
				    const char *target)
{
	struct zb_query q = {.op = op, .target = target, .place = -1};

	return zb_ask(c->b, &q);
}

void zb_refuse_found(struct zb_call *c, enum zb_op op, struct zb_spot *f,
		     const char *asked, enum zb_ask ask)
{
	struct zb_refusal r = {
		.op = op,
		.asked = asked,
		.place = f->place,
		.is_dir = S_ISDIR(f->mode),
		.exists = true,
		.ask = ask,
	};
	int rc = f->err ? -f->err : 0;

	if (!rc)
		rc = zb_spot_name(&c->b->jail, f);
	if (rc && !f->path[0]) { /* gone: nothing to name */
		zb_say_errno(c, -rc);
		return;
	}
	if (rc) {
		r.why = "reached by a name that deny patterns cannot judge";
		r.err = -rc;
	}
	r.target = f->path;
	zb_refuse(c, &r);
}

/* Where does @full lead, of which @at found nothing? Into @c->walk, unless it
 * is plain. Return: the canonical path; NULL: only the caller can tell. */
static const char *meant(struct zb_call *c, const struct zb_spot *at,
			 const char *full, bool follow)
{
	struct zb_jail_walk *w = &c->walk;

	if (at->err == ENOENT && at->path[0] && zb_is_plain(full) &&
	    !zb_path_below(full, "/proc"))
		return full;
	zb_jail_walk_done(w);
	zb_jail_walk(&c->b->jail, full, follow, w);
	return w->proc ? NULL : w->path;
}

void zb_missing(struct zb_call *c, enum zb_op op, const char *asked,
		const char *full, bool follow, const struct zb_spot *at,
		enum zb_ask ask)
{
	const char *path = meant(c, at, full, follow);

	if (!path) {
		leave(c, EACCES);
		return;
	}
	if (at->err != ENOENT) {
		zb_say_errno(c, at->err);
		return;
	}
	switch (judge_absent(c, op, path)) {
	case ZB_ALLOW:
		leave(c, ENOENT);
		return;
	case ZB_ALLOW_BROKERED:
		zb_say_errno(c, ENOENT);
		return;
	case ZB_DENY:
		break;
	}
	zb_refuse(c, &(struct zb_refusal){
			     .op = op,
			     .asked = asked,
			     .target = path,
			     .place = -1,
			     .ask = ask,
			     .err = ENOENT,
		     });
}

bool zb_locate(struct zb_call *c, enum zb_op op, const char *asked,
	       const char *full, bool follow, enum zb_ask ask,
	       struct zb_spot *f)
{
	zb_spot_done(f);
	zb_find(&c->b->jail, full, follow, f);
	if (f->fd < 0) {
		zb_missing(c, op, asked, full, follow, f, ask);
		return false;
	}
	if (f->proc) {
		leave(c, EACCES);
		return false;
	}
	return true;
}

/* Split @full at its last component, in place of @parent. Return: false for
 * one that names no entry ("", ".", ".."). */
static bool split(const char *full, char parent[PATH_MAX], struct zb_name *n)
{
	size_t end = strlen(full), start, len;

	while (end && full[end - 1] == '/')
		end--;
	n->slash = full[end] == '/';
	for (start = end; start && full[start - 1] != '/';)
		start--;
	len = end - start;
	if (!len || len > NAME_MAX)
		return false;
	memcpy(n->name, full + start, len);
	n->name[len] = '\0';
	memcpy(parent, full, start);
	parent[start] = '\0';
	if (!start)
		strcpy(parent, "/");
	return strcmp(n->name, ".") && strcmp(n->name, "..");
}

static void look_at_name(const struct zb_jail *j, struct zb_name *n)
{
	struct statx sx;

	n->place = n->dir->place;
	n->exists = !statx(n->dir->fd, n->name,
			   AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC,
			   STATX_TYPE | STATX_MODE | STATX_MNT_ID, &sx);
	if (!n->exists)
		return;
	n->mode = sx.stx_mode;
	n->mounted = sx.stx_mnt_id != n->dir->mnt;
	if (n->mounted)
		n->place = zb_jail_place(j, sx.stx_mnt_id);
}

bool zb_locate_name(struct zb_call *c, enum zb_op op, const char *asked,
		    const char *full, enum zb_ask ask, struct zb_spot *dir,
		    struct zb_name *out)
{
	const struct zb_jail *j = &c->b->jail;
	char parent[PATH_MAX];
	int rc;

	*out = (struct zb_name){.dir = dir, .place = -1};
	if (!split(full, parent, out)) {
		/* What such a name makes or removes, no kernel does; and the
		 * floor holds for another that is put in its place. */
		leave(c, EBUSY);
		return false;
	}
	zb_spot_done(dir);
	zb_find(j, parent, true, dir);
	if (dir->fd < 0) {
		zb_missing(c, op, asked, full, false, dir, ask);
		return false;
	}
	if (dir->proc) {
		leave(c, EACCES);
		return false;
	}
	rc = S_ISDIR(dir->mode) ? zb_spot_name(j, dir) : -ENOTDIR;
	if (!rc && snprintf(out->path, sizeof(out->path), "%s/%s",
			    strcmp(dir->path, "/") ? dir->path : "",
			    out->name) >= (int)sizeof(out->path))
		rc = -ENAMETOOLONG;
	if (rc) {
		zb_say_errno(c, -rc);
		return false;
	}
	look_at_name(j, out);
	return true;
}

/* Where a file system takes several spellings for one name, those of a name
 * that has only plain letters are known: zb_path_fold() knows the case, and
 * what is left out here is what the rest could hide in (short names, streams,
 * what is cut at the end, letters that fold to others). */
static bool is_ambiguous(const struct zb_call *c, const struct zb_name *n)
{
	size_t len = strlen(n->name);

	if (!zb_jail_folds(&c->b->jail, n->dir->mnt))
		return false;
	for (size_t i = 0; i < len; i++)
		if (n->name[i] < ' ' || n->name[i] > '~' ||
		    strchr("~:\\*?\"<>|", n->name[i]))
			return true;
	return !len || n->name[len - 1] == '.' || n->name[len - 1] == ' ';
}

static enum zb_verdict ask_name(struct zb_call *c, enum zb_op op,
				const struct zb_name *n)
{
	struct zb_query q = {
		.op = op,
		.target = n->path,
		.place = n->place,
		.is_dir = n->exists && S_ISDIR(n->mode),
		.exists = n->exists,
		.is_link = n->is_link,
	};

	return zb_ask(c->b, &q);
}

enum zb_verdict zb_judge_name(struct zb_call *c, enum zb_op op,
			      const struct zb_name *n)
{
	enum zb_verdict v = ask_name(c, op, n);

	/* It could be another spelling of one that is denied. */
	return v == ZB_ALLOW_BROKERED && is_ambiguous(c, n) ? ZB_DENY : v;
}

void zb_refuse_name(struct zb_call *c, enum zb_op op, const struct zb_name *n,
		    const char *asked, enum zb_ask ask)
{
	struct zb_refusal r = {
		.op = op,
		.asked = asked,
		.target = n->path,
		.place = n->place,
		.is_dir = n->exists && S_ISDIR(n->mode),
		.exists = n->exists,
		.is_link = n->is_link,
		.ask = ask,
	};

	if (ask_name(c, op, n) != ZB_DENY) {
		r.err = EACCES;
		r.why = "built in: this file system takes several spellings "
			"for a name, and what this one could stand for is not "
			"known";
	}
	zb_refuse(c, &r);
}

void zb_take_umask(struct zb_call *c)
{
	struct zb_peer_status st;

	umask(zb_peer_status(c->tid, &st) ? 077 : st.umask);
}

void zb_inject(struct zb_call *c, int fd, bool cloexec)
{
	int rc = zb_notify_inject(c->b->listener, c->id, fd, cloexec);

	if (rc == 0 || rc == -ENOENT)
		c->said = ZB_SAID_SENT;
	else
		zb_say_errno(c, -rc);
}

bool zb_is_to_make(struct zb_call *c, struct zb_name *out)
{
	if (!zb_locate_name(c, ZB_OP_FS_CREATE, c->asked, c->full,
			    ZB_ASK_CREATE, &c->found, out))
		return false;
	out->is_link = c->row->fixed == S_IFLNK;
	switch (zb_judge_name(c, ZB_OP_FS_CREATE, out)) {
	case ZB_ALLOW:
		/* What exists was not judged as what would be made. */
		if (c->acts && out->exists)
			zb_say_errno(c, EEXIST);
		else if (!c->acts)
			zb_say_continue(c);
		return c->acts && !out->exists;
	case ZB_ALLOW_BROKERED:
		return true;
	case ZB_DENY:
		break;
	}
	zb_refuse_name(c, ZB_OP_FS_CREATE, out, c->asked, ZB_ASK_CREATE);
	return false;
}

void zb_refuse_set_id(struct zb_call *c)
{
	zb_refuse(c, &(struct zb_refusal){
			     .op = ZB_OP_FS_META,
			     .asked = c->asked,
			     .target = c->full,
			     .place = -1,
			     .err = EPERM,
			     .why = ZB_NO_SET_ID,
		     });
}
