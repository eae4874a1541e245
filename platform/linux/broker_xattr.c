/* broker_xattr.c - reading extended attributes by path.
 *
 * A user.* attribute is content that hangs on a name: a download's address
 * with its token, a checksum, a note. The kernel asks for the right to read
 * the file, but Landlock does not, and whoever can name a file could read it.
 * So the broker reads what it has resolved and judged, and writes it into the
 * caller's buffer; through /proc it says that there are none.
 *
 * Attributes of the system (ACLs, labels) are metadata like the mode, which
 * is visible of all that exists. */
#include "config.h"

#include "platform/linux/broker_int.h"
#include "platform/linux/peer.h"

#include "cleanup.h"
#include "fdutil.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define DATA_MAX   65536 /* of a value and of a list, as the kernel has it */
#define NAME_BYTES 256

static bool is_users(const char *name)
{
	return !strncmp(name, "user.", 5);
}

/* For CAP_SYS_ADMIN only, which root outside may have. */
static bool is_trusted(const char *name)
{
	return !strncmp(name, "trusted.", 8);
}

/* What the call is about, into @c->found. Return: false if answered. */
static bool subject(struct zb_call *c)
{
	bool follow = !(zb_arg_flags(c) & AT_SYMLINK_NOFOLLOW);

	c->acts = true;
	c->walk.proc = false;
	if (!zb_arg_spell(c, c->row->dir, c->row->path, c->asked, c->full))
		return false;
	if (zb_locate(c, ZB_OP_FS_READ, c->asked, c->full, follow,
		      ZB_ASK_EXISTS, &c->found))
		return true;
	if (c->found.proc || c->walk.proc)
		zb_say_errno(c, EOPNOTSUPP);
	return false;
}

static bool may_read(struct zb_call *c)
{
	if (zb_judge(c, ZB_OP_FS_READ, &c->found) != ZB_DENY)
		return true;
	zb_refuse_found(c, ZB_OP_FS_READ, &c->found, c->asked, ZB_ASK_NOTHING);
	if (c->notes) /* Landlock, which guards content, knows none of this */
		c->notes->d.floor = ZB_FLOOR_NONE;
	return false;
}

/* Give @n bytes to the caller, in its buffer of @room at @addr; with no room
 * it wants to know how many there are. */
static void give(struct zb_call *c, const char *p, size_t n, uint64_t addr,
		 uint64_t room)
{
	struct zb_peer_memory memory = ZB_PEER_MEMORY;
	int rc = 0;

	if (room && n > room) {
		zb_say_errno(c, ERANGE);
		return;
	}
	if (room && n) {
		rc = zb_peer_memory(&memory, c->tid);
		if (!zb_may_act(c)) {
			zb_peer_memory_done(&memory);
			return;
		}
		if (!rc)
			rc = zb_peer_write(&memory, addr, p, n);
	}
	zb_peer_memory_done(&memory);
	if (rc)
		zb_say_errno(c, -rc);
	else
		zb_say_result(c, (long)n);
}

void zb_call_getxattr(struct zb_call *c)
{
	size_t room = c->args[3] < DATA_MAX ? (size_t)c->args[3] : DATA_MAX;
	zb_auto(free) char *value = malloc(room + 1);
	char name[NAME_BYTES], link[ZB_FD_LINK];
	int rc = zb_peer_string(c->tid, c->args[1], name, sizeof(name));
	ssize_t n;

	if (!value || rc <= 0) {
		zb_say_errno(c, !value		? ENOMEM
				: rc == -EFAULT ? EFAULT
						: ERANGE);
		return;
	}
	if (!subject(c) || (is_users(name) && !may_read(c)))
		return;
	zb_fd_link(c->found.fd, link);
	errno = ENODATA;
	n = is_trusted(name) ? -1 : getxattr(link, name, value, room);
	if (n < 0)
		zb_say_errno(c, errno);
	else
		give(c, value, (size_t)n, c->args[2], room);
}

/* Drop what only a capability shows. *@users: some of it is the users'. */
static size_t sift(char *list, size_t n, bool *users)
{
	size_t out = 0;

	*users = false;
	for (size_t i = 0, len; i < n; i += len) {
		len = strnlen(list + i, n - i) + 1;
		if (len > n - i) /* no list of the kernel's */
			break;
		if (is_trusted(list + i))
			continue;
		*users = *users || is_users(list + i);
		memmove(list + out, list + i, len);
		out += len;
	}
	return out;
}

/* Programs list attributes of all that a directory holds: a file that has none
 * of its own is no denial. */
void zb_call_listxattr(struct zb_call *c)
{
	zb_auto(free) char *list = malloc(DATA_MAX);
	char link[ZB_FD_LINK];
	bool users;
	ssize_t n;
	size_t kept;

	if (!list) {
		zb_say_errno(c, ENOMEM);
		return;
	}
	if (!subject(c))
		return;
	zb_fd_link(c->found.fd, link);
	n = listxattr(link, list, DATA_MAX);
	if (n < 0) {
		zb_say_errno(c, errno);
		return;
	}
	kept = sift(list, (size_t)n, &users);
	if (!users || may_read(c))
		give(c, list, kept, c->args[1], c->args[2]);
}
