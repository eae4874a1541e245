/* broker_paths.c - names: making, removing, renaming, linking, looking.
 *
 * In a private place the kernel does it (CONTINUE): mounts and Landlock allow
 * it nowhere else. In a place that the broker serves alone, the broker does
 * it, relative to a directory of the sandbox that it has resolved and judged,
 * so that the mounts' own flags hold. Else an errno.
 *
 * What can put a link in the place of a directory (symlink, link, rename) the
 * broker does everywhere, and not while another instance of the extension
 * starts: that one's bubblewrap walks through the same home/ by path, in a
 * namespace where the host's own / has a name. It holds the box's edit.lock
 * meanwhile (stubs.h). */
#include "config.h"

#include "platform/linux/broker_int.h"
#include "platform/linux/peer.h"

#include "cleanup.h"
#include "fdutil.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Wait until no other instance is starting, and keep it so until @fd is
 * closed. Return: false if answered, or to be called again where it may wait.
 */
static bool hold_names(struct zb_call *c, int *fd)
{
	if (c->b->box < 0)
		return true;
	*fd = openat(c->b->box, "edit.lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0) {
		if (errno == ENOENT) /* a box that is gone starts nothing */
			return true;
		zb_say_errno(c, EAGAIN);
		return false;
	}
	while (flock(*fd, LOCK_SH | (c->worker ? 0 : LOCK_NB))) {
		if (errno == EINTR && zb_call_again(c))
			continue;
		if (errno == EINTR)
			c->said = ZB_SAID_SENT;
		else if (errno != EWOULDBLOCK || !zb_say_later(c))
			zb_say_errno(c, EAGAIN);
		return false;
	}
	return true;
}

void zb_call_remove(struct zb_call *c)
{
	uint32_t flags = zb_arg_flags(c);
	struct zb_name n;

	if (!zb_arg_spell(c, c->row->dir, c->row->path, c->asked, c->full) ||
	    !zb_locate_name(c, ZB_OP_FS_DELETE, c->asked, c->full,
			    ZB_ASK_REMOVE, &c->found, &n))
		return;
	switch (zb_judge_name(c, ZB_OP_FS_DELETE, &n)) {
	case ZB_ALLOW:
		zb_say_continue(c);
		return;
	case ZB_DENY:
		zb_refuse_name(c, ZB_OP_FS_DELETE, &n, c->asked, ZB_ASK_REMOVE);
		return;
	case ZB_ALLOW_BROKERED:
		if (n.mounted) /* which the kernel sees from inside only */
			zb_say_errno(c, EBUSY);
		else if (n.slash && n.exists && !S_ISDIR(n.mode))
			zb_say_errno(c, ENOTDIR);
		else if (zb_may_act(c))
			zb_say_result(c,
				      unlinkat(n.dir->fd, n.name, (int)flags));
	}
}

/* The text of a link may be anything; only where it lies is judged. */
static void make_link(struct zb_call *c, const struct zb_name *n)
{
	zb_auto(fd) int held = -1;

	if (n->slash && !n->exists)
		zb_say_errno(c, ENOENT);
	else if (zb_arg_path(c, 0, c->full2) && hold_names(c, &held) &&
		 zb_may_act(c))
		zb_say_result(c, symlinkat(c->full2, n->dir->fd, n->name));
}

static void make(struct zb_call *c, const struct zb_name *n, mode_t mode)
{
	mode_t type = c->row->fixed ? c->row->fixed : mode & S_IFMT;

	if (c->row->fixed == S_IFLNK) {
		make_link(c, n);
		return;
	}
	zb_take_umask(c);
	if (!zb_may_act(c))
		return;
	switch (type) {
	case S_IFDIR:
		zb_say_result(c, mkdirat(n->dir->fd, n->name, mode & 01777));
		return;
	case 0:
	case S_IFREG:
	case S_IFIFO:
	case S_IFSOCK:
		zb_say_result(c, mknodat(n->dir->fd, n->name,
					 type | (mode & 01777), 0));
		return;
	default:
		zb_say_errno(c, EPERM);
	}
}

/* mkdir, mknod, symlink. A name that exists is the kernel's EEXIST. */
void zb_call_make(struct zb_call *c)
{
	mode_t mode = (mode_t)zb_arg_int(c, c->row->mode);
	struct zb_name n;

	if (!zb_arg_spell(c, c->row->dir, c->row->path, c->asked, c->full))
		return;
	if (!c->row->fixed && (mode & 06000)) {
		zb_refuse_set_id(c);
		return;
	}
	c->acts = c->row->fixed == S_IFLNK;
	if (zb_is_to_make(c, &n))
		make(c, &n, mode);
}

/* Resolve both names of a call that has two. Return: false if answered. */
static bool two_names(struct zb_call *c, enum zb_op op, enum zb_op op2,
		      struct zb_name *a, struct zb_name *b)
{
	const struct zb_row *r = c->row;

	return zb_arg_spell(c, r->dir, r->path, c->asked, c->full) &&
	       zb_arg_spell(c, r->dir2, r->path2, c->asked2, c->full2) &&
	       zb_locate_name(c, op, c->asked, c->full, ZB_ASK_REMOVE,
			      &c->found, a) &&
	       zb_locate_name(c, op2, c->asked2, c->full2, ZB_ASK_CREATE,
			      &c->found2, b);
}

static void stays(struct zb_call *c, const struct zb_name *n, const char *asked,
		  const char *why)
{
	zb_refuse(c, &(struct zb_refusal){
			     .op = ZB_OP_FS_RENAME,
			     .asked = asked,
			     .target = n->path,
			     .place = n->place,
			     .is_dir = n->exists && S_ISDIR(n->mode),
			     .exists = n->exists,
			     .err = EXDEV,
			     .why = why,
		     });
}

/* Would names below the one be judged otherwise below the other? Then nothing
 * goes from here to there as a whole: mv then copies, and each name is judged.
 *
 * It is asked of everything, not of directories only: what stands at a name can
 * be replaced until the rename is made. And since only what keeps the verdict
 * on all names below it ever moves, nobody else's rename can undo what was
 * judged of a path meanwhile. Return: false if refused. */
static bool keeps_names(struct zb_call *c, const struct zb_name *a,
			const struct zb_name *b)
{
	char text[3 * PATH_MAX] = "a mount of the sandbox stands in it";
	const struct zb_deny *d = NULL;
	struct zb_broker *br = c->b;
	bool yes = false;

	pthread_rwlock_rdlock(&br->plan_lock);
	if (br->plan)
		yes = zb_plan_may_move(br->plan, a->dir->place, a->path,
				       b->path, &d);
	if (d)
		snprintf(text, sizeof(text),
			 "%s: fs.deny %s closes other names below it than "
			 "below %s",
			 d->origin.file ? d->origin.file : "built in",
			 d->pattern, a->path);
	pthread_rwlock_unlock(&br->plan_lock);
	if (!yes)
		stays(c, b, c->asked2, text);
	return yes;
}

/* Return: false if answered, or to be called again on a worker. */
static bool may_move(struct zb_call *c, const struct zb_name *a,
		     const struct zb_name *b)
{
	static const char why[] =
		"built in: below it are names that zot, git or an editor runs, "
		"or more than can be looked at; it is not moved as a whole";
	bool swap = zb_arg_flags(c) & RENAME_EXCHANGE;
	const struct zb_jail_mount *m = zb_jail_mount(&c->b->jail, a->dir->mnt);

	if (!keeps_names(c, a, b))
		return false;
	if (!m || !m->carved ||
	    (!S_ISDIR(a->mode) && !(swap && S_ISDIR(b->mode))))
		return true;
	if (zb_say_later(c))
		return false;
	if (!zb_tree_may_go(c, a))
		stays(c, a, c->asked, why);
	else if (swap && !zb_tree_may_go(c, b))
		stays(c, b, c->asked2, why);
	else
		return true;
	return false;
}

static void rename_names(struct zb_call *c, const struct zb_name *a,
			 const struct zb_name *b)
{
	bool is_dir = a->exists && S_ISDIR(a->mode);
	zb_auto(fd) int held = -1;

	if (a->mounted || b->mounted)
		zb_say_errno(c, EBUSY);
	else if (a->exists && !is_dir && (a->slash || b->slash))
		zb_say_errno(c, ENOTDIR);
	else if (hold_names(c, &held) && zb_may_act(c))
		zb_say_result(c, syscall(SYS_renameat2, a->dir->fd, a->name,
					 b->dir->fd, b->name, zb_arg_flags(c)));
}

void zb_call_rename(struct zb_call *c)
{
	struct zb_name a, b;
	enum zb_verdict va, vb;
	enum zb_op op;

	c->acts = true;
	/* RENAME_WHITEOUT leaves a device node behind. */
	if (zb_arg_flags(c) & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE)) {
		zb_say_errno(c, EINVAL);
		return;
	}
	if (!two_names(c, ZB_OP_FS_RENAME, ZB_OP_FS_RENAME, &a, &b))
		return;
	if (a.dir->mnt != b.dir->mnt) {
		zb_say_errno(c, EXDEV);
		return;
	}
	/* mv(1) asks so first: no refusal of ours, whatever stands there. */
	if (zb_arg_flags(c) == RENAME_NOREPLACE && a.exists && b.exists) {
		zb_say_errno(c, EEXIST);
		return;
	}
	/* An absent name is judged as one that would be made. */
	op = a.exists ? ZB_OP_FS_RENAME : ZB_OP_FS_DELETE;
	va = zb_judge_name(c, op, &a);
	vb = zb_judge_name(c, ZB_OP_FS_RENAME, &b);
	if (va != ZB_DENY && zb_put_over(c, &a, &b))
		return;
	if (va == ZB_DENY)
		zb_refuse_name(c, op, &a, c->asked, ZB_ASK_REMOVE);
	else if (vb == ZB_DENY)
		zb_refuse_name(c, ZB_OP_FS_RENAME, &b, c->asked2,
			       ZB_ASK_CREATE);
	else if (!a.exists)
		zb_say_errno(c, ENOENT);
	else if (may_move(c, &a, &b))
		rename_names(c, &a, &b);
}

/* The source of linkat(2), into @c->found: a path, or a descriptor. */
static bool link_source(struct zb_call *c, uint32_t flags)
{
	struct zb_spot *f = &c->found;
	int fd;

	if (!zb_arg_path(c, c->row->path, c->asked))
		return false;
	if (!c->asked[0] && (flags & AT_EMPTY_PATH)) {
		fd = zb_arg_dir(c, c->row->dir);
	} else if ((fd = zb_own_fd(c->asked)) < 0) {
		if (!zb_arg_spell(c, c->row->dir, c->row->path, c->asked,
				  c->full))
			return false;
		return zb_locate(c, ZB_OP_FS_READ, c->asked, c->full,
				 flags & AT_SYMLINK_FOLLOW, ZB_ASK_EXISTS, f);
	}
	/* Not followed it is a link of /proc, which lies nowhere else. */
	if (c->asked[0] && !(flags & AT_SYMLINK_FOLLOW)) {
		zb_say_errno(c, EXDEV);
		return false;
	}
	zb_spot_done(f);
	zb_spot_fd(&c->b->jail, zb_peer_fd(c->tid, fd), f);
	if (f->fd >= 0)
		return true;
	zb_say_errno(c, f->err);
	return false;
}

/* Of a file that was made without a name, or is open for writing (and so was
 * judged before), only the new name is judged. Another must be open to all that
 * the new name will be: what may only be read would be written through it. In
 * *@op what to name if it is no. */
static enum zb_verdict judge_source(struct zb_call *c, enum zb_op *op)
{
	struct stat st;

	if (zb_is_open_to_write(c->found.fd) ||
	    (!fstat(c->found.fd, &st) && !st.st_nlink))
		return ZB_ALLOW;
	*op = ZB_OP_FS_READ;
	if (zb_judge(c, ZB_OP_FS_READ, &c->found) == ZB_DENY)
		return ZB_DENY;
	*op = ZB_OP_FS_WRITE;
	return zb_judge(c, ZB_OP_FS_WRITE, &c->found);
}

/* Both names are known, and lie in one mount. */
static void link_names(struct zb_call *c, const struct zb_name *n)
{
	zb_auto(fd) int held = -1;
	char link[ZB_FD_LINK];
	enum zb_op op;

	if (judge_source(c, &op) == ZB_DENY) {
		zb_refuse_found(c, op, &c->found, c->asked, ZB_ASK_NOTHING);
	} else if (zb_judge_name(c, ZB_OP_FS_CREATE, n) == ZB_DENY) {
		zb_refuse_name(c, ZB_OP_FS_CREATE, n, c->asked2, ZB_ASK_CREATE);
	} else if (n->slash) {
		zb_say_errno(c, ENOENT);
	} else if (hold_names(c, &held) && zb_may_act(c)) {
		zb_fd_link(c->found.fd, link);
		zb_say_result(c, linkat(AT_FDCWD, link, n->dir->fd, n->name,
					AT_SYMLINK_FOLLOW));
	}
}

void zb_call_link(struct zb_call *c)
{
	struct zb_name n;

	c->acts = true;
	if (!link_source(c, zb_arg_flags(c)) ||
	    !zb_arg_spell(c, c->row->dir2, c->row->path2, c->asked2,
			  c->full2) ||
	    !zb_locate_name(c, ZB_OP_FS_CREATE, c->asked2, c->full2,
			    ZB_ASK_CREATE, &c->found2, &n))
		return;
	n.is_link = S_ISLNK(c->found.mode);
	if (n.exists)
		zb_say_errno(c, EEXIST);
	else if (c->found.mnt != n.dir->mnt)
		zb_say_errno(c, EXDEV);
	else
		link_names(c, &n);
}

/* stat and its kin, in ledger mode `full`: what exists may be looked at, also
 * where its content is denied; what does not is hidden or absent. */
void zb_call_look(struct zb_call *c)
{
	uint32_t flags = zb_arg_flags(c);
	bool follow = !(flags & AT_SYMLINK_NOFOLLOW);

	if (zb_arg_is_fd(c))
		return;
	if (zb_arg_spell(c, c->row->dir, c->row->path, c->asked, c->full) &&
	    zb_locate(c, ZB_OP_FS_READ, c->asked, c->full, follow,
		      ZB_ASK_EXISTS, &c->found))
		zb_say_continue(c);
}
