/* broker_tree.c - is there anything in a directory that must stay where it is?
 *
 * What zot, git and editors run is made under its name by the host alone. A
 * directory that has such a name in it could bring it, with all that stands
 * there, to below another: so it is not moved as a whole.
 *
 * Looking first and moving then is no race with the sandbox: it can make no
 * such name, and what has one in it never moves. */
#include "config.h"

#include "platform/linux/broker_int.h"

#include "cleanup.h"
#include "fdutil.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_NAMES 200000
#define MAX_DEPTH 64

struct look {
	struct zb_call *c;
	int place;
	unsigned names;
	char path[PATH_MAX]; /* of what is looked at */
};

static bool is_closed(const struct look *k)
{
	struct zb_broker *b = k->c->b;
	bool closed = true;

	pthread_rwlock_rdlock(&b->plan_lock);
	if (b->plan)
		closed = zb_plan_is_built_in(b->plan, k->place, k->path);
	pthread_rwlock_unlock(&b->plan_lock);
	return closed;
}

static bool is_dir(int dir, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type == DT_DIR;
	return fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
	       S_ISDIR(st.st_mode);
}

static bool look_into(struct look *k, int parent, const char *name,
		      unsigned depth);

/* Is entry @d of the directory @fd, and all below it, free to go? */
static bool look_at(struct look *k, int fd, const struct dirent *d,
		    unsigned depth)
{
	size_t at = strlen(k->path);
	bool ok;

	if (++k->names > MAX_NAMES ||
	    at + 1 + strlen(d->d_name) >= sizeof(k->path))
		return false;
	k->path[at] = '/';
	strcpy(k->path + at + 1, d->d_name);
	ok = !is_closed(k) &&
	     (!is_dir(fd, d) || look_into(k, fd, d->d_name, depth + 1));
	k->path[at] = '\0';
	return ok;
}

/* The directory @name in @parent, whose path is in @k. */
static bool look_into(struct look *k, int parent, const char *name,
		      unsigned depth)
{
	int fd = depth > MAX_DEPTH
			 ? -1
			 : openat(parent, name,
				  O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
					  O_NONBLOCK | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;
	bool ok = true;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (ok && (d = readdir(dir)))
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			ok = look_at(k, dirfd(dir), d, depth) &&
			     !atomic_load(&k->c->b->stopping);
	closedir(dir);
	return ok;
}

bool zb_tree_may_go(struct zb_call *c, const struct zb_name *n)
{
	struct look k = {.c = c, .place = n->dir->place};

	if (!n->exists || !S_ISDIR(n->mode))
		return true;
	strcpy(k.path, n->path);
	return look_into(&k, n->dir->fd, n->name, 0);
}
