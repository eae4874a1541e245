/* jail_walk.c - the slow way: a path component by component.
 *
 * For paths that lead nowhere. The kernel says only ENOENT; a record wants the
 * name that was meant, with the links that exist followed and the rest spelled
 * out, and a creation wants the directory that holds the last name. The same
 * walk asks the host, where it must not start an automounter's work. */
#include "config.h"

#include "platform/linux/jail.h"

#include "cleanup.h"
#include "fdutil.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#define MAX_LINKS 40 /* as the kernel has it */
#define AUTOFS	  0x0187
#define INSIDE	  (RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)

/* The state of a walk. @todo: what is left of the path. */
struct walker {
	struct zb_jail_walk *w;
	int root, cur;
	uint64_t proc_dev, cur_dev;
	bool host, follow;
	unsigned links;
	char todo[PATH_MAX];
};

static bool append(struct zb_jail_walk *w, const char *name)
{
	size_t n = strlen(w->path), m = strlen(name);

	if (n + m + 1 >= sizeof(w->path))
		return false;
	w->path[n] = '/';
	memcpy(w->path + n + 1, name, m + 1);
	return true;
}

static void strip(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

/* Take the next component off @todo. Return: false if there is none. */
static bool next(struct walker *k, char name[NAME_MAX + 1], bool *last,
		 int *err)
{
	char *s = k->todo + strspn(k->todo, "/");
	size_t n = strcspn(s, "/");

	if (!n)
		return false;
	if (n > NAME_MAX) {
		*err = ENAMETOOLONG;
		return false;
	}
	memcpy(name, s, n);
	name[n] = '\0';
	s += n;
	*last = !s[strspn(s, "/")];
	/* A slash at the end asks for what a link leads to. */
	if (*last && *s)
		k->follow = true;
	memmove(k->todo, s, strlen(s) + 1);
	return true;
}

/* Move to an open directory. Takes @fd. */
static void enter(struct walker *k, int fd)
{
	struct stat st;

	if (k->cur >= 0)
		close(k->cur);
	k->cur = fd;
	k->cur_dev = fd >= 0 && !fstat(fd, &st) ? st.st_dev : 0;
}

static int go_up(struct walker *k)
{
	int fd;

	strip(k->w->path);
	fd = zb_jail_open(k->root, k->w->path[0] ? k->w->path : "/",
			  O_DIRECTORY, INSIDE | RESOLVE_NO_SYMLINKS);
	if (fd < 0)
		return -fd;
	enter(k, fd);
	return 0;
}

/* Put the text of link @fd before what is left. */
static int follow_link(struct walker *k, int fd)
{
	char text[PATH_MAX];
	ssize_t n;
	size_t left = strlen(k->todo);

	if (++k->links > MAX_LINKS)
		return ELOOP;
	n = readlinkat(fd, "", text, sizeof(text));
	if (n <= 0)
		return n ? errno : ENOENT;
	if ((size_t)n + 1 + left >= sizeof(k->todo))
		return ENAMETOOLONG;
	memmove(k->todo + n + 1, k->todo, left + 1);
	memcpy(k->todo, text, (size_t)n);
	k->todo[n] = '/';
	if (!left) /* no slash that was not there */
		k->todo[n] = '\0';
	if (text[0] != '/')
		return 0;
	k->w->path[0] = '\0';
	fd = zb_jail_open(k->root, "/", O_DIRECTORY, INSIDE);
	if (fd < 0)
		return -fd;
	enter(k, fd);
	return 0;
}

/* The rest does not exist: spell it out, without "." and "..". */
static void spell_rest(struct walker *k)
{
	char name[NAME_MAX + 1];
	bool last;
	int err = 0;

	while (next(k, name, &last, &err)) {
		if (!strcmp(name, "."))
			continue;
		if (!strcmp(name, ".."))
			strip(k->w->path);
		else if (!append(k->w, name))
			return;
	}
}

/* Is the host's @path/@name a mount point already? */
static bool is_mounted(const char *path, const char *name)
{
	zb_auto(file) FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[8192];

	while (f && fgets(line, sizeof(line), f)) {
		char *s = line, *at;

		for (int i = 0; i < 4 && s; i++)
			s = strchr(s, ' ') ? strchr(s, ' ') + 1 : NULL;
		if (!s)
			continue;
		at = s;
		s[strcspn(s, " \n")] = '\0';
		if (!strncmp(at, path, strlen(path)) &&
		    at[strlen(path)] == '/' &&
		    !strcmp(at + strlen(path) + 1, name))
			return true;
	}
	return false;
}

static bool asks_automounter(const struct walker *k, const char *name)
{
	struct statfs fs;

	return k->host && !fstatfs(k->cur, &fs) && fs.f_type == AUTOFS &&
	       !is_mounted(k->w->path, name);
}

static bool in_proc(const struct walker *k)
{
	struct statfs fs;

	if (!k->host)
		return k->proc_dev && k->cur_dev == k->proc_dev;
	return !fstatfs(k->cur, &fs) && fs.f_type == 0x9fa0;
}

/* At @name the walk came into a /proc, where only the caller could go on. */
static void leave_to_caller(struct walker *k, const char *name)
{
	struct zb_jail_walk *w = k->w;
	size_t n;

	w->proc = true;
	if (!append(w, name))
		return;
	n = strlen(w->path);
	for (const char *s = k->todo; *s && n + 1 < sizeof(w->path); s++)
		if (*s != '/' || s[1] != '/')
			w->path[n++] = *s;
	w->path[n] = '\0';
}

/* @name, the last looked up, is not there. */
static void ends(struct walker *k, const char *name, bool last, int err)
{
	struct zb_jail_walk *w = k->w;

	if (in_proc(k)) {
		leave_to_caller(k, name);
		return;
	}
	w->err = err;
	if (last) {
		w->dir = zb_steal_fd(&k->cur);
		memcpy(w->name, name, strlen(name) + 1);
	}
	if (append(w, name))
		spell_rest(k);
}

/* One component. Return: true to go on. */
static bool step(struct walker *k)
{
	struct zb_jail_walk *w = k->w;
	char name[NAME_MAX + 1];
	zb_auto(fd) int fd = -1;
	struct stat st;
	bool last;

	if (!next(k, name, &last, &w->err)) {
		w->exists = !w->err;
		return false;
	}
	if (!strcmp(name, "."))
		return true;
	if (!strcmp(name, "..")) {
		w->err = go_up(k);
		return !w->err;
	}
	if (asks_automounter(k, name)) {
		ends(k, name, last, ENOENT);
		return false;
	}
	fd = openat(k->cur, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		ends(k, name, last, errno);
		return false;
	}
	if (S_ISLNK(st.st_mode) && (!last || k->follow)) {
		if (in_proc(k))
			leave_to_caller(k, name);
		else
			w->err = follow_link(k, fd);
		return !w->proc && !w->err;
	}
	if (!append(w, name)) {
		w->err = ENAMETOOLONG;
		return false;
	}
	if (!last) {
		enter(k, zb_steal_fd(&fd));
		return true;
	}
	w->exists = true;
	w->dir = zb_steal_fd(&k->cur);
	memcpy(w->name, name, strlen(name) + 1);
	return false;
}

static void walk(struct walker *k, const char *path, struct zb_jail_walk *out)
{
	size_t n = strlen(path);

	*out = (struct zb_jail_walk){.dir = -1};
	k->w = out;
	k->cur = -1;
	if (n >= sizeof(k->todo)) {
		out->err = ENAMETOOLONG;
		return;
	}
	memcpy(k->todo, path, n + 1);
	enter(k, zb_jail_open(k->root, "/", O_DIRECTORY, INSIDE));
	while (k->cur >= 0 && step(k))
		;
	if (k->cur >= 0)
		close(k->cur);
	if (!out->path[0])
		strcpy(out->path, "/");
}

void zb_jail_walk(const struct zb_jail *j, const char *path, bool follow,
		  struct zb_jail_walk *out)
{
	struct walker k = {
		.root = j->root, .proc_dev = j->proc_dev, .follow = follow};

	walk(&k, path, out);
}

void zb_host_walk(int root, const char *path, bool follow,
		  struct zb_jail_walk *out)
{
	struct walker k = {.root = root, .host = true, .follow = follow};

	walk(&k, path, out);
}

void zb_jail_walk_done(struct zb_jail_walk *w)
{
	if (w->dir >= 0)
		close(w->dir);
	w->dir = -1;
}
