/* broker_open.c - open, openat, creat.
 *
 * Three answers. Where mounts and Landlock give what the evaluator gives, the
 * kernel opens (CONTINUE). Where some files of a place are denied, or the
 * place lost its Landlock right to one that has such files below, the broker
 * opens what it has resolved and judged, and puts the descriptor into the
 * caller: whatever a second thread does to the path or to the directories
 * meanwhile, the file that was judged is the file that is opened. Else an
 * errno.
 *
 * What names a descriptor that the caller has already (/dev/stdin,
 * /proc/self/fd/N) is judged as the file that it holds, and opened afresh:
 * with what the file may be, not with what the descriptor is.
 *
 * The broker opens regular files and directories only, through the sandbox's
 * own mounts (a read-only one yields no writable descriptor), and never waits
 * for another process while it does. */
#include "config.h"

#include "platform/linux/broker_int.h"

#include "cleanup.h"
#include "fdutil.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define TMPFILE (O_TMPFILE & ~O_DIRECTORY) /* the one bit */
#define TRIES	3			   /* for what changes meanwhile */

struct opening {
	uint32_t flags;
	mode_t mode;
	bool read, write, create, exclusive, follow;
};

static struct opening want(const struct zb_call *c)
{
	struct opening o = {.flags = zb_arg_flags(c)};
	uint32_t access = o.flags & O_ACCMODE;

	if (o.flags & O_PATH)
		o.flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	o.mode = (mode_t)zb_arg_int(c, c->row->mode) & 07777;
	o.read = access != O_WRONLY;
	o.write = access != O_RDONLY || o.flags & O_TRUNC;
	o.create = o.flags & O_CREAT;
	o.exclusive = o.create && o.flags & O_EXCL;
	o.follow = !(o.flags & O_NOFOLLOW) && !o.exclusive;
	return o;
}

/* Let the descriptor be as the caller asked, and theirs. Takes @fd. */
static void hand_over(struct zb_call *c, const struct opening *o, int fd)
{
	const uint32_t kept = O_APPEND | O_DIRECT | O_NOATIME;
	zb_auto(fd) int own = fd;

	if (!(o->flags & O_NONBLOCK))
		fcntl(own, F_SETFL, (int)(o->flags & kept));
	zb_inject(c, own, o->flags & O_CLOEXEC);
}

/* Open what @c->found holds. O_NONBLOCK: not even for a lease of another. */
static void reopen(struct zb_call *c, const struct opening *o)
{
	const uint32_t done = O_CREAT | O_EXCL | O_NOFOLLOW;
	char link[ZB_FD_LINK];
	int fd;

	/* Reading changes nothing, and is given to the caller or nobody. */
	if (o->write && !zb_may_act(c))
		return;
	zb_fd_link(c->found.fd, link);
	fd = open(link, (int)((o->flags & ~done) | O_CLOEXEC | O_NONBLOCK |
			      O_NOCTTY));
	if (fd < 0)
		zb_say_errno(c, errno);
	else
		hand_over(c, o, fd);
}

/* The verdict on all that is asked, and in *@op what to name if it is no. */
static enum zb_verdict judge(struct zb_call *c, const struct opening *o,
			     enum zb_op *op)
{
	enum zb_verdict r = ZB_ALLOW, w = ZB_ALLOW;

	if (o->write)
		w = zb_judge(c, ZB_OP_FS_WRITE, &c->found);
	if (o->read)
		r = zb_judge(c, ZB_OP_FS_READ, &c->found);
	*op = w == ZB_DENY || !o->read ? ZB_OP_FS_WRITE : ZB_OP_FS_READ;
	return zb_stricter(r, w);
}

/* What every kernel says first, whatever may be read or written. */
static int plain_error(const struct opening *o, mode_t mode)
{
	if (o->exclusive)
		return EEXIST;
	if (S_ISLNK(mode))
		return o->flags & O_DIRECTORY ? ENOTDIR : ELOOP;
	if (S_ISDIR(mode))
		return o->write || o->create ? EISDIR : 0;
	return o->flags & O_DIRECTORY ? ENOTDIR : 0;
}

/* Is writing refused by the file's own mode? Then the sandbox has no part in
 * it, and no grant would help. */
static bool mode_refuses(const struct zb_call *c)
{
	return syscall(SYS_faccessat2, c->found.fd, "", W_OK,
		       AT_EACCESS | AT_EMPTY_PATH) &&
	       errno == EACCES;
}

static void open_existing(struct zb_call *c, const struct opening *o)
{
	struct zb_spot *f = &c->found;
	enum zb_op op;
	enum zb_verdict v = judge(c, o, &op);
	int e = plain_error(o, f->mode);

	if (v == ZB_ALLOW) {
		zb_say_continue(c);
	} else if (e) {
		zb_say_errno(c, e);
	} else if (v == ZB_DENY) {
		if (op == ZB_OP_FS_WRITE && mode_refuses(c))
			zb_say_errno(c, EACCES);
		else
			zb_refuse_found(c, op, f, c->asked,
					op == ZB_OP_FS_WRITE ? ZB_ASK_WRITE
							     : ZB_ASK_NOTHING);
	} else if (!S_ISREG(f->mode) && !S_ISDIR(f->mode)) {
		zb_refuse(c, &(struct zb_refusal){
				     .op = op,
				     .asked = c->asked,
				     .target = f->path,
				     .place = f->place,
				     .err = EACCES,
				     .why = "only files and directories are "
					    "opened where a deny may match",
			     });
	} else {
		reopen(c, o);
	}
}

/* A file that has no name any more can be judged by none. What was opened in
 * the caller's descriptor was judged when it had one, and is given again. */
static void reopen_nameless(struct zb_call *c, const struct opening *o)
{
	const struct zb_jail_mount *m =
		zb_jail_mount(&c->b->jail, c->found2.mnt);
	int flags = fcntl(c->found2.fd, F_GETFL);
	int has = flags & O_ACCMODE;

	if (m->uniform || !S_ISREG(c->found2.mode) || flags < 0 ||
	    flags & O_PATH || (o->read && has != O_RDONLY && has != O_RDWR) ||
	    (o->write && has != O_WRONLY && has != O_RDWR))
		return; /* the floor's word */
	zb_spot_done(&c->found);
	c->found = c->found2;
	c->found2.fd = -1;
	reopen(c, o);
}

/* The path led into /proc, and the floor, to which the answer was left, gives
 * nothing in a place that the broker serves. If it names a descriptor of the
 * caller's own there, the file is found by its name as it is now. The caller
 * may put another one under the number at any time, so only our duplicate
 * counts from here on. */
static void open_own(struct zb_call *c, const struct opening *o)
{
	const struct zb_jail *j = &c->b->jail;
	struct zb_spot *own = &c->found2;

	zb_spot_done(own);
	zb_spot_fd(j, zb_own_duplicate(c, c->walk.path), own);
	if (own->fd < 0 || own->proc || !zb_jail_mount(j, own->mnt) ||
	    !zb_may_act(c))
		return;
	for (int i = 0; i < TRIES; i++) {
		own->path[0] = '\0';
		if (zb_spot_name(j, own) == -ENOENT) {
			reopen_nameless(c, o);
			return;
		}
		zb_spot_done(&c->found);
		zb_find(j, own->path, false, &c->found);
		if (c->found.fd < 0 || !zb_spot_same(&c->found, own))
			continue;
		if (!o->write || !zb_is_stale(c, ZB_OP_FS_WRITE, &c->found))
			open_existing(c, o);
		return;
	}
	zb_refuse(c, &(struct zb_refusal){
			     .op = o->write ? ZB_OP_FS_WRITE : ZB_OP_FS_READ,
			     .asked = c->asked,
			     .target = own->path,
			     .place = own->place,
			     .exists = true,
			     .err = EACCES,
			     .why = "it was renamed or replaced while it was "
				    "looked at",
		     });
}

/* The path leads nowhere that we can see. */
static void open_missing(struct zb_call *c, const struct opening *o,
			 enum zb_op op, enum zb_ask ask)
{
	c->walk.proc = false;
	zb_missing(c, op, c->asked, c->full, o->follow, &c->found, ask);
	if (c->said == ZB_SAID_CONTINUE && c->walk.proc && o->follow)
		open_own(c, o);
}

/* Make the file in the directory that was judged; a name put there meanwhile
 * is opened only if it is a plain file in the same mount. */
static void create(struct zb_call *c, const struct opening *o,
		   const struct zb_name *n)
{
	struct statx sx;
	zb_auto(fd) int fd = -1;

	zb_take_umask(c);
	if (!zb_may_act(c))
		return;
	fd = openat(n->dir->fd, n->name,
		    (int)(o->flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK |
			  O_NOCTTY),
		    o->mode);
	if (fd < 0) {
		zb_say_errno(c, errno);
		return;
	}
	if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MNT_ID, &sx) ||
	    !S_ISREG(sx.stx_mode) || sx.stx_mnt_id != n->dir->mnt) {
		zb_say_errno(c, EACCES);
		return;
	}
	hand_over(c, o, zb_steal_fd(&fd));
}

/* Making @n, and opening what is made. */
static enum zb_verdict judge_new(struct zb_call *c, const struct opening *o,
				 const struct zb_name *n)
{
	enum zb_verdict v = zb_judge_name(c, ZB_OP_FS_CREATE, n);
	struct zb_name made = *n;

	made.exists = true;
	made.mode = S_IFREG;
	if (v != ZB_DENY && o->read)
		v = zb_stricter(v, zb_judge_name(c, ZB_OP_FS_READ, &made));
	if (v != ZB_DENY && o->write)
		v = zb_stricter(v, zb_judge_name(c, ZB_OP_FS_WRITE, &made));
	return v;
}

/* @n is a name that does not exist, in a directory that does. */
static void create_name(struct zb_call *c, const struct opening *o,
			const struct zb_name *n)
{
	switch (judge_new(c, o, n)) {
	case ZB_ALLOW:
		zb_say_continue(c);
		return;
	case ZB_ALLOW_BROKERED:
		create(c, o, n);
		return;
	case ZB_DENY:
		zb_refuse_name(c, ZB_OP_FS_CREATE, n, c->asked, ZB_ASK_OPEN);
	}
}

/* Return: false if the name has come to exist meanwhile. */
static bool open_new(struct zb_call *c, const struct opening *o)
{
	struct zb_jail_walk *w = &c->walk;
	struct zb_name n = {.dir = &c->found2};

	/* Without a link on the way the spelled directory is the one. */
	if (c->found.path[0] && zb_is_plain(c->full)) {
		if (!zb_locate_name(c, ZB_OP_FS_CREATE, c->asked, c->full,
				    ZB_ASK_OPEN, n.dir, &n))
			return true;
		if (!n.exists)
			create_name(c, o, &n);
		return !n.exists;
	}
	zb_jail_walk_done(w);
	zb_jail_walk(&c->b->jail, c->full, o->follow, w);
	if (w->exists)
		return false;
	if (c->full[strlen(c->full) - 1] == '/') {
		zb_say_errno(c, EISDIR);
		return true;
	}
	if (w->proc || w->err != ENOENT || w->dir < 0) {
		open_missing(c, o, ZB_OP_FS_CREATE, ZB_ASK_OPEN);
		return true;
	}
	zb_spot_done(n.dir);
	zb_spot_fd(&c->b->jail, zb_steal_fd(&w->dir), n.dir);
	if (n.dir->fd < 0 || zb_spot_name(&c->b->jail, n.dir) ||
	    snprintf(n.path, sizeof(n.path), "%s/%s",
		     strcmp(n.dir->path, "/") ? n.dir->path : "",
		     w->name) >= (int)sizeof(n.path)) {
		zb_say_errno(c, ENOENT);
		return true;
	}
	memcpy(n.name, w->name, sizeof(n.name));
	n.place = n.dir->place;
	create_name(c, o, &n);
	return true;
}

/* A file without a name, which linkat may give it one. */
static void open_nameless(struct zb_call *c, const struct opening *o)
{
	struct zb_name n = {.dir = &c->found, .name = "."};

	if (!zb_locate(c, ZB_OP_FS_CREATE, c->asked, c->full, o->follow,
		       ZB_ASK_EXISTS, &c->found))
		return;
	if (!S_ISDIR(c->found.mode)) {
		zb_say_errno(c, ENOTDIR);
		return;
	}
	if (zb_spot_name(&c->b->jail, &c->found)) {
		zb_say_errno(c, ENOENT);
		return;
	}
	/* Some name that is not there stands for the one it may get. */
	if (snprintf(n.path, sizeof(n.path), "%s/(unnamed)",
		     strcmp(c->found.path, "/") ? c->found.path : "") >=
	    (int)sizeof(n.path)) {
		zb_say_errno(c, ENAMETOOLONG);
		return;
	}
	n.place = c->found.place;
	create_name(c, o, &n);
}

/* Most opens at a start are of many files in few directories that the sandbox
 * cannot change. Once one of these was found to be without a link on the way,
 * one look at the last name decides: a file or directory in the same mount is
 * judged by its place, and what is absent there is absent outside as well.
 * The floor decides in any case; at stake is only what is recorded. */

static struct zb_memo *memo_of(struct zb_call *c, const char *path, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)path[i]) * 16777619u;
	return &c->memos[h % ZB_MEMOS];
}

static size_t dir_len(const char *path)
{
	return (size_t)(strrchr(path, '/') - path);
}

/* Does @path lie in a directory known by now, and may it be read? */
static bool is_known(struct zb_call *c, const char *path)
{
	size_t len = dir_len(path);
	const struct zb_memo *memo = memo_of(c, path, len);
	struct zb_query q = {.op = ZB_OP_FS_READ, .exists = true};
	const struct zb_jail_mount *m;
	struct statx sx;

	if (memo->len != len || !len || memcmp(memo->dir, path, len) != 0 ||
	    strlen(path + len + 1) > NAME_MAX)
		return false;
	m = zb_jail_mount(&c->b->jail, memo->mnt);
	if (!m || m->place < 0)
		return false;
	if (statx(c->b->jail.root, path + 1,
		  AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC,
		  STATX_TYPE | STATX_MNT_ID, &sx)) {
		if (errno != ENOENT)
			return false;
		q.exists = false;
	} else if (sx.stx_mnt_id != m->id ||
		   (!S_ISREG(sx.stx_mode) && !S_ISDIR(sx.stx_mode))) {
		return false;
	}
	q.is_dir = q.exists && S_ISDIR(sx.stx_mode);
	q.place = m->place;
	q.target = m->path;
	return zb_ask(c->b, &q) == ZB_ALLOW;
}

/* Keep the directory of what was just found at @path. */
static void remember(struct zb_call *c, const char *path)
{
	const struct zb_spot *f = &c->found;
	const struct zb_jail_mount *m = zb_jail_mount(&c->b->jail, f->mnt);
	size_t len = dir_len(path);
	struct zb_memo *memo;

	/* What holds the mount itself is not in it: names beside it may be
	 * hidden ones. */
	if (!m || m->place < 0 || !m->steady || !len || len < strlen(m->path) ||
	    strcmp(f->path, path) != 0)
		return;
	memo = memo_of(c, path, len);
	memo->mnt = f->mnt;
	if (memo->len == len && !memcmp(memo->dir, path, len))
		return;
	free(memo->dir);
	memo->dir = zb_strndup(path, len);
	memo->len = memo->dir ? len : 0;
}

void zb_forget_memos(struct zb_call *c)
{
	for (size_t i = 0; i < ZB_MEMOS; i++)
		free(c->memos[i].dir);
}

/* A set-id program in a private place would be one on the host, too. */
static bool is_set_id(struct zb_call *c, const struct opening *o)
{
	if (!(o->flags & (O_CREAT | TMPFILE)) || !(o->mode & 06000))
		return false;
	zb_refuse_set_id(c);
	return true;
}

void zb_call_open(struct zb_call *c)
{
	struct opening o = want(c);
	int e;

	if (!zb_arg_spell(c, c->row->dir, c->row->path, c->asked, c->full) ||
	    is_set_id(c, &o))
		return;
	if (!o.write && !o.create && !(o.flags & O_PATH) &&
	    zb_is_plain(c->full) && is_known(c, c->full)) {
		zb_say_continue(c);
		return;
	}
	if (o.flags & TMPFILE) {
		open_nameless(c, &o);
		return;
	}
	for (int i = 0; i < TRIES; i++) {
		zb_spot_done(&c->found);
		zb_find(&c->b->jail, c->full, o.follow, &c->found);
		e = c->found.err;
		if (c->found.fd >= 0) {
			/* O_PATH gives nothing but the name; opening that
			 * through /proc is judged by the file again. */
			if (c->found.proc || o.flags & O_PATH)
				zb_say_continue(c);
			else if (!o.write ||
				 !zb_is_stale(c, ZB_OP_FS_WRITE, &c->found))
				open_existing(c, &o);
			if (c->said == ZB_SAID_CONTINUE)
				remember(c, c->full);
			return;
		}
		if (e != ENOENT || !o.create) {
			open_missing(c, &o,
				     o.write ? ZB_OP_FS_WRITE : ZB_OP_FS_READ,
				     ZB_ASK_EXISTS);
			return;
		}
		if (open_new(c, &o))
			return;
	}
	zb_say_errno(c, ENOENT);
}
