/* tree_copy.c - copying a tree by descriptors, link by link.
 *
 * Directories are opened with O_NOFOLLOW relative to their parent, so a name
 * that is swapped for a link meanwhile is an error and not a way out. Links
 * are judged at the end, in the copy, by openat2(2) with RESOLVE_BENEATH: the
 * kernel's own answer to whether they lead outside. */
#include "config.h"

#include "cleanup.h"
#include "fdutil.h"
#include "text.h"
#include "tree_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define DEPTH_MAX 64
/* Nobody else writes to it, and it runs as nobody else. */
#define MODE_KEPT 0755

struct walk {
	struct zb_tree_copy *c;
	struct zb_strv links; /* relative paths, judged when all is there */
	struct zb_error *err;
};

/* Names are a stranger's: nothing of them acts on a terminal. */
static int refuse(struct walk *w, const char *path, const char *why)
{
	struct zb_buf b = {0};

	zb_text_escape(&b, path, strlen(path), 300);
	zb_fail(w->err, ZB_EPOLICY, "refused: %s %s", zb_buf_str(&b), why);
	zb_buf_done(&b);
	return ZB_EPOLICY;
}

static int failed(struct walk *w, int sys, const char *what, const char *path)
{
	struct zb_buf b = {0};

	zb_text_escape(&b, path, strlen(path), 300);
	zb_fail_sys(w->err, sys, "%s %s", what, zb_buf_str(&b));
	zb_buf_done(&b);
	return ZB_ESYS;
}

/* Most that an extension may be, and whether to go on. */
static int check_bounds(struct walk *w, const char *path)
{
	struct zb_tree_copy *c = w->c;

	if (c->stop && *c->stop)
		return failed(w, EINTR, "copy", path);
	if (c->files > ZB_TREE_FILES_MAX || c->bytes > ZB_TREE_BYTES_MAX)
		return zb_fail(w->err, ZB_ELIMIT,
			       "the extension is too large: over %u files or "
			       "%llu bytes",
			       ZB_TREE_FILES_MAX, ZB_TREE_BYTES_MAX);
	return 0;
}

static int count(struct walk *w, const char *path)
{
	struct zb_tree_copy *c = w->c;

	c->files++;
	if (c->progress && !(c->files & 0xff))
		c->progress(c->ctx, c->files, c->bytes);
	return check_bounds(w, path);
}

static int write_all(int out, const char *p, size_t n)
{
	while (n) {
		ssize_t k = write(out, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -1;
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

/* What is read is what counts: a file may grow, or say that it is empty. */
static int copy_bytes(struct walk *w, int in, int out, const char *path)
{
	static char block[1 << 16];
	int rc = 0;

	while (!rc) {
		ssize_t n = read(in, block, sizeof(block));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed(w, errno, "read", path);
		if (!n)
			return 0;
		if (write_all(out, block, (size_t)n))
			return failed(w, errno, "write", path);
		w->c->bytes += (uint64_t)n;
		rc = check_bounds(w, path);
	}
	return rc;
}

static int copy_file(struct walk *w, int from, int to, const char *name,
		     const char *path)
{
	zb_auto(fd) int in = openat(
		from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	zb_auto(fd) int out = -1;
	struct stat st;
	int rc;

	if (in < 0 || fstat(in, &st))
		return failed(w, errno, "open", path);
	if (!S_ISREG(st.st_mode))
		return refuse(w, path, "is not a regular file");
	rc = count(w, path);
	if (rc)
		return rc;
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return failed(w, errno, "create", path);
	rc = copy_bytes(w, in, out, path);
	if (!rc && fchmod(out, (st.st_mode & MODE_KEPT) | 0400))
		rc = failed(w, errno, "chmod", path);
	return rc;
}

static int copy_link(struct walk *w, int from, int to, const char *name,
		     const char *path)
{
	char target[4096];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);
	int rc;

	if (n < 0)
		return failed(w, errno, "read link", path);
	target[n] = '\0';
	rc = count(w, path);
	if (rc)
		return rc;
	if (symlinkat(target, to, name))
		return failed(w, errno, "link", path);
	return zb_strv_add(&w->links, path)
		       ? zb_fail(w->err, ZB_ELIMIT, "out of memory")
		       : 0;
}

static int copy_dir(struct walk *w, int from, int to, const char *path,
		    unsigned depth);

static int copy_subdir(struct walk *w, int from, int to, const char *name,
		       const char *path, unsigned depth)
{
	zb_auto(fd) int in = openat(
		from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	zb_auto(fd) int out = -1;
	struct stat st;
	int rc;

	if (in < 0 || fstat(in, &st))
		return failed(w, errno, "open", path);
	rc = count(w, path);
	if (rc)
		return rc;
	if (mkdirat(to, name, 0700))
		return failed(w, errno, "mkdir", path);
	out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (out < 0)
		return failed(w, errno, "open copy of", path);
	rc = copy_dir(w, in, out, path, depth);
	/* The owner must be able to go through and to remove it later. */
	if (!rc && fchmod(out, (st.st_mode & MODE_KEPT) | 0700))
		rc = failed(w, errno, "chmod", path);
	return rc;
}

static int copy_entry(struct walk *w, int from, int to, const char *name,
		      const char *path, unsigned depth)
{
	struct stat st;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW))
		return failed(w, errno, "stat", path);
	if (S_ISDIR(st.st_mode))
		return copy_subdir(w, from, to, name, path, depth + 1);
	if (S_ISLNK(st.st_mode))
		return copy_link(w, from, to, name, path);
	if (S_ISREG(st.st_mode))
		return copy_file(w, from, to, name, path);
	return refuse(w, path, "is a device, socket or FIFO");
}

static int copy_dir(struct walk *w, int from, int to, const char *path,
		    unsigned depth)
{
	int dup_fd = fcntl(from, F_DUPFD_CLOEXEC, 0);
	DIR *d = dup_fd < 0 ? NULL : fdopendir(dup_fd);
	struct dirent *e;
	int rc = 0;

	if (!d) {
		rc = failed(w, errno, "open", *path ? path : "the source");
		if (dup_fd >= 0)
			close(dup_fd);
		return rc;
	}
	if (depth > DEPTH_MAX)
		rc = refuse(w, path, "is nested too deep");
	while (!rc && (errno = 0, e = readdir(d))) {
		zb_auto(free) char *sub = NULL;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (!strcmp(e->d_name, ".git")) {
			w->c->git_left_out = true;
			continue;
		}
		sub = zb_strf("%s%s%s", path, *path ? "/" : "", e->d_name);
		rc = sub ? copy_entry(w, from, to, e->d_name, sub, depth)
			 : zb_fail(w->err, ZB_ELIMIT, "out of memory");
	}
	if (!rc && errno)
		rc = failed(w, errno, "read", *path ? path : "the source");
	closedir(d);
	return rc;
}

/* Does @target, read from the directory of @path, climb above the top? What
 * leads nowhere now may lead somewhere once a part of it exists. */
static bool climbs_out(const char *path, const char *target)
{
	long depth = 0;

	for (const char *p = path; (p = strchr(p, '/')); p++)
		depth++;
	while (*target && depth >= 0) {
		size_t n = strcspn(target, "/");

		if (n == 2 && !strncmp(target, "..", 2))
			depth--;
		else if (n && !(n == 1 && *target == '.'))
			depth++;
		target += n + (target[n] == '/');
	}
	return depth < 0;
}

static int leads_outside(struct walk *w, const char *path, const char *target)
{
	zb_auto(free) char *why = NULL;
	struct zb_buf b = {0};

	zb_text_escape(&b, target, strlen(target), 300);
	why = zb_strf("-> %s points outside the extension", zb_buf_str(&b));
	zb_buf_done(&b);
	return refuse(w, path, why ? why : "points outside the extension");
}

static int leads_nowhere(struct walk *w, const char *path)
{
	struct zb_buf b = {0};
	int rc;

	zb_text_escape(&b, path, strlen(path), 300);
	rc = zb_strv_addf(&w->c->warnings, "%s is a link that leads nowhere",
			  zb_buf_str(&b));
	zb_buf_done(&b);
	return rc ? zb_fail(w->err, ZB_ELIMIT, "out of memory") : 0;
}

/* Where the link leads, or -1. Any rename on the machine makes the kernel
 * unsure about "..": EAGAIN, try again. */
static int resolve(int to, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	int fd = -1;

	for (int tries = 0; tries < 10000; tries++) {
		fd = (int)syscall(SYS_openat2, to, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd;
}

/* Does the link at @path, in the copy, lead outside it? */
static int judge_link(struct walk *w, int to, const char *path)
{
	zb_auto(fd) int fd = resolve(to, path);
	int sys = fd < 0 ? errno : 0;
	char target[4096] = "";
	ssize_t n;

	if (fd >= 0)
		return 0;
	n = readlinkat(to, path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	if (sys == EXDEV || climbs_out(path, target))
		return leads_outside(w, path, target);
	if (sys == ENOENT || sys == ELOOP || sys == ENOTDIR)
		return leads_nowhere(w, path);
	return failed(w, sys, "resolve", path);
}

int zb_tree_copy(const char *from, const char *to, struct zb_tree_copy *c,
		 struct zb_error *err)
{
	zb_auto(fd) int in = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	zb_auto(fd) int out = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct walk w = {.c = c, .err = err};
	struct stat st;
	int rc;

	if (in < 0 || fstat(in, &st))
		return zb_fail_sys(err, errno, "open %s", from);
	if (out < 0)
		return zb_fail_sys(err, errno, "open %s", to);
	rc = copy_dir(&w, in, out, "", 0);
	for (size_t i = 0; !rc && i < w.links.n; i++)
		rc = judge_link(&w, out, w.links.v[i]);
	if (!rc && fchmod(out, (st.st_mode & MODE_KEPT) | 0700))
		rc = zb_fail_sys(err, errno, "chmod %s", to);
	if (!rc && syncfs(out))
		rc = zb_fail_sys(err, errno, "sync %s", to);
	zb_strv_done(&w.links);
	return rc;
}

int zb_tree_judge_links(const char *dir, const struct zb_strv *links,
			struct zb_strv *warnings, struct zb_error *err)
{
	zb_auto(fd) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct zb_tree_copy c = {0};
	struct walk w = {.c = &c, .err = err};
	int rc = 0;

	if (fd < 0)
		return zb_fail_sys(err, errno, "open %s", dir);
	for (size_t i = 0; !rc && i < links->n; i++)
		rc = judge_link(&w, fd, links->v[i]);
	for (size_t i = 0; !rc && i < c.warnings.n; i++)
		if (zb_strv_add(warnings, c.warnings.v[i]))
			rc = zb_fail(err, ZB_ELIMIT, "out of memory");
	zb_strv_done(&c.warnings);
	return rc;
}
