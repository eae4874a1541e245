/* hostfs.c - looking at the host's files by path. */
#include "config.h"

#include "hostfs.h"

#include "cleanup.h"
#include "fdutil.h"
#include "path_match.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_LINKS 40 /* as the kernel has it */

/* One walk: @done is canonical, @todo is what is left of the path. */
struct walk {
	const char *root;
	char *done;
	char *todo;
	unsigned links;
	struct zb_strv *seen;
};

/* readlink(2) of a canonical path below the root. NULL: no link, errno
 * EINVAL, or not there. */
static char *read_link(const char *root, const char *path)
{
	zb_auto(free) char *at = zb_strf("%s%s", root, path);
	char text[PATH_MAX];
	ssize_t n = at ? readlink(at, text, sizeof(text)) : -1;

	return n < 0 ? NULL : zb_strndup(text, (size_t)n);
}

/* @next (taken) is the link's text, found at canonical @at: put it before
 * what is left. */
static bool follow(struct walk *w, const char *at, char *next)
{
	zb_auto(free) char *text = next;
	char *todo;

	if (++w->links > MAX_LINKS) {
		errno = ELOOP;
		return false;
	}
	if (w->seen && zb_strv_add(w->seen, at))
		return false;
	if (text[0] == '/') {
		free(w->done);
		w->done = zb_strdup("");
	}
	todo = zb_strf("%s/%s", text, w->todo);
	free(w->todo);
	w->todo = todo;
	return w->done && todo;
}

/* Take one component of what is left. */
static bool step(struct walk *w)
{
	size_t skip = strspn(w->todo, "/");
	size_t n = strcspn(w->todo + skip, "/");
	zb_auto(free) char *name = zb_strndup(w->todo + skip, n);
	zb_auto(free) char *at = NULL;
	char *link;

	memmove(w->todo, w->todo + skip + n, strlen(w->todo + skip + n) + 1);
	if (!name || !strcmp(name, ".") || !*name)
		return name != NULL;
	if (!strcmp(name, "..")) {
		char *slash = strrchr(w->done, '/');

		if (slash)
			*slash = '\0';
		return true;
	}
	at = zb_strf("%s/%s", w->done, name);
	if (!at)
		return false;
	link = read_link(w->root, at);
	if (link)
		return follow(w, at, link);
	if (errno != EINVAL)
		return false;
	free(w->done);
	w->done = zb_steal(&at);
	return true;
}

char *zb_host_resolve(const char *root, const char *path, struct zb_strv *links)
{
	struct walk w = {.root = root, .seen = links};
	char *out = NULL;

	if (!*root && !links)
		return realpath(path, NULL);
	w.done = zb_strdup("");
	w.todo = zb_strdup(path);
	errno = ENOENT;
	while (w.done && w.todo && w.todo[strspn(w.todo, "/")])
		if (!step(&w))
			goto done;
	if (w.done)
		out = *w.done ? zb_steal(&w.done) : zb_strdup("/");
done:
	free(w.todo);
	free(w.done);
	return out;
}

bool zb_host_exists(const char *root, const char *path)
{
	zb_auto(free) char *real = NULL;
	struct stat st;

	if (!*root)
		return !stat(path, &st);
	real = zb_host_resolve(root, path, NULL);
	return real != NULL;
}

bool zb_host_is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* @path without . and //; one with .. may pass through links, so its
 * directory is resolved. */
static char *spelled(const char *path)
{
	zb_auto(free) char *dir = zb_path_dir(path);
	zb_auto(free) char *real = NULL;

	if (!strstr(path, "/.."))
		return zb_path_join("/", path);
	real = dir ? zb_host_resolve("", dir, NULL) : NULL;
	return real ? zb_path_join(real, zb_path_name(path)) : NULL;
}

char *zb_host_which(const char *name, const char *path, const char *skip)
{
	for (const char *p = path; p; p = strchr(p, ':')) {
		zb_auto(free) char *at = NULL;
		size_t n;

		p += *p == ':';
		n = strcspn(p, ":");
		if (p[0] != '/')
			continue;
		if (skip && strlen(skip) == n && !strncmp(p, skip, n))
			continue;
		at = zb_strf("%.*s/%s", (int)n, p, name);
		if (at && zb_host_is_program(at))
			return spelled(at);
	}
	return NULL;
}

bool zb_host_head(const char *path, size_t max, struct zb_buf *out)
{
	zb_auto(fd) int fd =
		open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char chunk[4096];
	struct stat st;
	ssize_t n = 1;

	zb_buf_clear(out);
	if (fd < 0 || fstat(fd, &st))
		return false;
	if (!S_ISREG(st.st_mode)) {
		errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
		return false;
	}
	while (n > 0 && out->len < max) {
		size_t want = max - out->len;

		n = read(fd, chunk,
			 want < sizeof(chunk) ? want : sizeof(chunk));
		if (n < 0 || zb_buf_add(out, chunk, (size_t)n))
			return false;
	}
	return true;
}
