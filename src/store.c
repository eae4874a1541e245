/* store.c - where things are kept, and writes that a crash cannot halve.
 *
 * What strangers can reach: the inside of a box's data/ and home/ (an
 * extension writes there as it likes, also while we look), and the tree below
 * extensions/NAME as its author made it. So nothing here follows a link below
 * those, recurses as deep as a stranger chose, or trusts a file to be small. */
#include "config.h"

#include "store.h"

#include "cleanup.h"
#include "fdutil.h"
#include "path_match.h"
#include "text.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <uv.h>

static void zb_auto_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* ---- $ZOT_HOME ---------------------------------------------------------- */

/* Canonical form of @path, also when its end is not there yet: the part that
 * exists is resolved, the rest stays as spelled. */
static char *real_prefix(const char *path)
{
	zb_auto(free) char *head = zb_strdup(path);

	while (head && head[1]) {
		zb_auto(free) char *real = realpath(head, NULL);
		zb_auto(free) char *up = NULL;

		if (real) {
			const char *rest = path + strlen(head);

			return zb_strf("%s%s", strcmp(real, "/") ? real : "",
				       rest);
		}
		up = zb_path_dir(head);
		free(head);
		head = zb_steal(&up);
	}
	return zb_strdup(path);
}

/* Value of an environment variable that holds a directory; NULL if unset or
 * empty. */
static const char *env_dir(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

static bool has_dotdot(const char *path)
{
	size_t n = strlen(path);

	return strstr(path, "/../") || (n >= 3 && !strcmp(path + n - 3, "/.."));
}

/* @path as the user spelled it, without . // and a slash at the end. A `..`
 * cannot be taken out of a spelling that may hold links: then the real path
 * stands for it. */
static int spell(char **out, const char *what, const char *path,
		 struct zb_error *err)
{
	if (path[0] != '/')
		return zb_fail(err, ZB_EUSAGE,
			       "%s is \"%s\": it must be an absolute path",
			       what, path);
	if (has_dotdot(path)) {
		*out = realpath(path, NULL);
		if (!*out)
			return zb_fail(err, ZB_EUSAGE,
				       "%s is \"%s\": %s; write it without ..",
				       what, path, strerror(errno));
		return 0;
	}
	*out = zb_path_join("/", path);
	return *out ? 0 : zb_fail(err, ZB_ELIMIT, "out of memory");
}

#ifdef __APPLE__
#define STATE_BELOW_HOME "Library/Application Support/zot"
#else
#define STATE_BELOW_HOME ".local/state/zot"
#endif

/* Where zot keeps its state: $ZOT_HOME, $XDG_STATE_HOME/zot, the system's
 * custom below HOME. */
static int find_zot_home(struct zb_store *s, struct zb_error *err)
{
	zb_auto(free) char *below = NULL;
	const char *v = env_dir("ZOT_HOME");

	if (v)
		return spell(&s->zot_home, "ZOT_HOME", v, err);
	v = env_dir("XDG_STATE_HOME");
	below = v ? zb_strf("%s/zot", v)
		  : zb_strf("%s/" STATE_BELOW_HOME, s->home);
	if (!below)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	return spell(&s->zot_home, v ? "XDG_STATE_HOME" : "HOME", below, err);
}

/* Extensions are told where they are in JSON, which can only say UTF-8. */
static int check_utf8(const char *path, struct zb_error *err)
{
	struct zb_buf shown = {0};
	size_t n = strlen(path);

	if (zb_utf8_check(path, n) == n)
		return 0;
	zb_text_escape(&shown, path, n, 300);
	zb_fail(err, ZB_EUSAGE,
		"ZOT_HOME is %s: its name is not UTF-8, and the extension "
		"protocol cannot carry it",
		zb_buf_str(&shown));
	zb_buf_done(&shown);
	return ZB_EUSAGE;
}

int zb_store_open(struct zb_store *out, struct zb_error *err)
{
	struct zb_store s = {0};
	const char *home = env_dir("HOME");
	int rc;

	if (!home)
		return zb_fail(err, ZB_EUSAGE,
			       "HOME is not set: set it to your home "
			       "directory");
	rc = spell(&s.home, "HOME", home, err);
	if (!rc)
		rc = find_zot_home(&s, err);
	if (!rc)
		rc = check_utf8(s.zot_home, err);
	if (!rc) {
		s.zot_home_real = real_prefix(s.zot_home);
		s.extensions = zb_strf("%s/extensions", s.zot_home);
		s.boxes = zb_strf("%s/zotbox", s.zot_home);
		s.logs = zb_strf("%s/logs", s.zot_home);
		if (!s.zot_home_real || !s.extensions || !s.boxes || !s.logs)
			rc = zb_fail(err, ZB_ELIMIT, "out of memory");
	}
	if (rc)
		zb_store_done(&s);
	else
		*out = s;
	return rc;
}

void zb_store_done(struct zb_store *s)
{
	if (!s)
		return;
	free(s->home);
	free(s->zot_home);
	free(s->zot_home_real);
	free(s->extensions);
	free(s->boxes);
	free(s->logs);
	memset(s, 0, sizeof(*s));
}

char *zb_store_box(const struct zb_store *s, const char *name, const char *file)
{
	return zb_strf("%s/%s%s%s", s->boxes, name, *file ? "/" : "", file);
}

char *zb_store_path_box_name(const char *real_path)
{
	struct sha256_ctx ctx;
	uint8_t hash[SHA256_DIGEST_SIZE];
	char hex[17];

	sha256_init(&ctx);
	sha256_update(&ctx, strlen(real_path), (const uint8_t *)real_path);
	sha256_digest(&ctx, sizeof(hash), hash);
	for (int i = 0; i < 8; i++)
		snprintf(hex + 2 * i, 3, "%02x", hash[i]);
	return zb_strf("@%s", hex);
}

/* ---- reading and writing ------------------------------------------------ */

static int read_all(int fd, const char *path, size_t max, struct zb_buf *out,
		    struct zb_error *err)
{
	char chunk[8192];

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return zb_fail_sys(err, errno, "read %s", path);
		if (n == 0)
			return 0;
		if (out->len + (size_t)n > max)
			return zb_fail(err, ZB_ELIMIT,
				       "read %s: larger than %zu bytes", path,
				       max);
		if (zb_buf_add(out, chunk, (size_t)n))
			return zb_fail(err, ZB_ELIMIT, "read %s: out of memory",
				       path);
	}
}

int zb_read_file(const char *path, size_t max, struct zb_buf *out,
		 struct zb_error *err)
{
	/* O_NONBLOCK: a FIFO put in the place of a file must not stop us. */
	zb_auto(fd) int fd =
		open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return zb_fail_sys(err, errno, "open %s", path);
	if (fstat(fd, &st))
		return zb_fail_sys(err, errno, "stat %s", path);
	if (S_ISDIR(st.st_mode))
		return zb_fail_sys(err, EISDIR, "read %s", path);
	if (!S_ISREG(st.st_mode)) {
		zb_fail(err, ZB_ESYS, "read %s: it is no regular file", path);
		if (err)
			err->sys = EINVAL;
		return ZB_ESYS;
	}
	zb_buf_clear(out);
	return read_all(fd, path, max, out, err);
}

/* Make the directory's entries last. Some file systems cannot: EINVAL. */
static int sync_dir(const char *dir)
{
	zb_auto(fd) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	return fsync(fd) && errno != EINVAL && errno != EROFS ? -1 : 0;
}

int zb_write_file_atomic(const char *path, const void *p, size_t n,
			 unsigned mode, struct zb_error *err)
{
	zb_auto(free) char *dir = zb_path_dir(path);
	/* Short, so that a NAME of full length still fits. */
	zb_auto(free) char *temp = dir ? zb_strf("%s/.zb-XXXXXX", dir) : NULL;
	zb_auto(fd) int fd = -1;
	int rc = 0;

	if (!temp)
		return zb_fail(err, ZB_ELIMIT, "write %s: out of memory", path);
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0)
		return zb_fail_sys(err, errno, "write %s: temporary file in %s",
				   path, dir);
	if (fchmod(fd, mode) || zb_write_all(fd, p, n) || fsync(fd) ||
	    rename(temp, path)) {
		rc = zb_fail_sys(err, errno, "write %s", path);
		unlink(temp);
		return rc;
	}
	if (sync_dir(dir))
		return zb_fail_sys(err, errno, "write %s: sync %s", path, dir);
	return 0;
}

int zb_make_dirs(const char *path, unsigned mode, struct zb_error *err)
{
	zb_auto(free) char *buf = zb_strdup(path);
	struct stat st;

	if (!buf)
		return zb_fail(err, ZB_ELIMIT, "mkdir %s: out of memory", path);
	if (!*buf)
		return zb_fail_sys(err, ENOENT, "mkdir \"\"");
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return 0; /* as nearly always */
	for (char *p = buf + 1;; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		if (mkdir(buf, mode) && errno != EEXIST) {
			int e = errno;

			/* Above what is ours a directory may be there though
			 * nobody lets us make one: EACCES, EROFS. */
			if (stat(buf, &st) || !S_ISDIR(st.st_mode))
				return zb_fail_sys(err, e, "mkdir %s", buf);
		}
		*p = c;
		if (!c)
			break;
	}
	if (stat(path, &st))
		return zb_fail_sys(err, errno, "mkdir %s", path);
	if (!S_ISDIR(st.st_mode))
		return zb_fail_sys(err, ENOTDIR, "mkdir %s", path);
	return 0;
}

/* ---- rm -r -------------------------------------------------------------- *
 *
 * A tree an extension made may be deeper than any stack or descriptor table,
 * its directories unreadable, and (until the sandbox is gone) in motion. So
 * there is no recursion and no "..": a directory found below the top one is
 * emptied of everything but directories, those are moved up into the top one,
 * and it is removed; each directory moves once. Two descriptors are enough. */

#define MAX_PASSES 1000000

struct remover {
	int top;
	unsigned long serial; /* for names of moved directories */
	struct zb_error *err;
	const char *path;
};

/* Open directory @name in @at without following a link, and make sure that we
 * may read, change and enter it. Return: descriptor or -1. */
static int open_dir_at(int at, const char *name)
{
	zb_auto(fd) int fd = -1;
	zb_auto(fd) int handle =
		openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char self[64];
	struct stat st;

	if (handle < 0 || fstat(handle, &st))
		return -1;
	if ((st.st_mode & 0700) != 0700) {
		/* There is no fchmod for O_PATH and no chmod without following
		 * links; through /proc it is this very directory. */
		snprintf(self, sizeof(self), "/proc/self/fd/%d", handle);
		chmod(self, 0700);
	}
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return zb_steal_fd(&fd);
}

static int removal_failed(struct remover *r, int e, const char *name)
{
	return zb_fail_sys(r->err, e, "remove %s: %s", r->path, name);
}

/* Move directory @name of @dir up into the top one under a name of ours. */
static int lift(struct remover *r, int dir, const char *name)
{
	zb_auto(fd) int fd = open_dir_at(dir, name); /* makes it movable */
	char to[32];

	(void)fd;
	/* A rename onto a directory that is empty is as good: all goes. */
	for (int tries = 0; tries < 100000; tries++) {
		snprintf(to, sizeof(to), ".zb-rm-%lu", r->serial++);
		if (!renameat(dir, name, r->top, to))
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
			break;
	}
	return errno == ENOENT ? 0 : removal_failed(r, errno, name);
}

/* Take all out of @dir (a descriptor, not taken): unlink, or lift. */
static int empty_dir(struct remover *r, int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	zb_auto(dir) DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	if (!d) {
		zb_auto_fd(&copy);
		return removal_failed(r, errno, ".");
	}
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (!unlinkat(dir, e->d_name, 0) || errno == ENOENT)
			continue;
		if (errno != EISDIR && errno != EPERM)
			return removal_failed(r, errno, e->d_name);
		if (!unlinkat(dir, e->d_name, AT_REMOVEDIR))
			continue;
		if (lift(r, dir, e->d_name))
			return ZB_ESYS;
	}
	return 0;
}

/* One directory of the top: empty it and remove it. */
static int remove_one(struct remover *r, const char *name)
{
	/* Entries may appear while a sandbox is ending: a few rounds. */
	for (int round = 0; round < 16; round++) {
		zb_auto(fd) int fd = -1;

		if (!unlinkat(r->top, name, AT_REMOVEDIR) || errno == ENOENT)
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			break;
		fd = open_dir_at(r->top, name);
		if (fd < 0)
			break;
		if (empty_dir(r, fd))
			return ZB_ESYS;
	}
	return removal_failed(r, errno, name);
}

/* Pass over the top directory once. *@found: something was there. */
static int sweep(struct remover *r, bool *found)
{
	int copy = openat(r->top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	zb_auto(dir) DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	if (!d) {
		zb_auto_fd(&copy);
		return removal_failed(r, errno, ".");
	}
	*found = false;
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		*found = true;
		if (!unlinkat(r->top, e->d_name, 0) || errno == ENOENT)
			continue;
		if (errno != EISDIR && errno != EPERM)
			return removal_failed(r, errno, e->d_name);
		if (remove_one(r, e->d_name))
			return ZB_ESYS;
	}
	return 0;
}

int zb_remove_tree(const char *path, struct zb_error *err)
{
	struct remover r = {.err = err, .path = path};
	zb_auto(fd) int top = -1;
	bool found = true;

	if (!unlink(path) || errno == ENOENT || errno == ENOTDIR)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return zb_fail_sys(err, errno, "remove %s", path);
	top = open_dir_at(AT_FDCWD, path);
	if (top < 0)
		return zb_fail_sys(err, errno, "remove %s", path);
	r.top = top;
	/* A pass brings one level up: as many passes as the tree is deep. */
	for (int pass = 0; found; pass++) {
		if (pass > MAX_PASSES)
			return removal_failed(&r, EBUSY, "it keeps growing");
		if (sweep(&r, &found))
			return ZB_ESYS;
	}
	if (rmdir(path) && errno != ENOENT)
		return zb_fail_sys(err, errno, "remove %s", path);
	return 0;
}

/* ---- locks -------------------------------------------------------------- */

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Is @fd still the file at @path? */
static bool same_file(int fd, const char *path)
{
	struct stat a, b;

	return !fstat(fd, &a) && !lstat(path, &b) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

int zb_lock_file(const char *path, bool exclusive, int wait_ms, int *fd,
		 struct zb_error *err)
{
	int64_t end = now_ms() + wait_ms;

	for (;;) {
		zb_auto(fd) int f = open(
			path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (f < 0)
			return zb_fail_sys(err, errno, "open %s", path);
		if (!flock(f, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB)) {
			if (!same_file(f, path))
				continue; /* removed and made again */
			*fd = zb_steal_fd(&f);
			return 0;
		}
		if (errno != EWOULDBLOCK && errno != EINTR)
			return zb_fail_sys(err, errno, "lock %s", path);
		if (now_ms() >= end)
			return zb_fail(err, ZB_EPOLICY,
				       "%s is locked by another zotbox; try "
				       "again when it is done",
				       path);
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
}

int zb_store_lock(const struct zb_store *s, const char *name, bool exclusive,
		  int wait_ms, int *fd, struct zb_error *err)
{
	zb_auto(free) char *path = zb_strf("%s/.lock-%s", s->boxes, name);
	int rc;

	if (!path)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	rc = zb_make_dirs(s->zot_home, 0755, err);
	if (!rc)
		rc = zb_make_dirs(s->boxes, 0700, err);
	if (!rc)
		rc = zb_lock_file(path, exclusive, wait_ms, fd, err);
	if (rc == ZB_EPOLICY)
		zb_fail(err, ZB_EPOLICY,
			"extension \"%s\" is being changed or started by "
			"another zotbox; try again when it is done",
			name);
	return rc;
}

/* ---- the program's own files -------------------------------------------- */

static bool is_there(const char *path)
{
	return path && !access(path, R_OK);
}

static const char *whole; /* that this program is a part of */

void zb_own_program_is(const char *program)
{
	whole = program;
}

char *zb_own_program(void)
{
	char buf[PATH_MAX];
	size_t n = sizeof(buf);
	static const char gone[] = " (deleted)";
	char *real;

	if (whole)
		return zb_strdup(whole);
	if (uv_exepath(buf, &n))
		return NULL;
	real = realpath(buf, NULL);
	if (real)
		return real;
	/* Replaced by an update while it runs: the new one stands there. */
	n = strlen(buf);
	if (n > sizeof(gone) && !strcmp(buf + n - sizeof(gone) + 1, gone))
		buf[n - sizeof(gone) + 1] = '\0';
	return zb_strdup(buf);
}

/* The build tree that this program was made in and stands in, or NULL. Nothing
 * but its place says so: what looks like a build tree can be made by anybody
 * who may write beside a program. Programs of a build tree stand at its top or
 * below its tests/. */
static const char *build_tree(const char *dir)
{
	static char *top;
	zb_auto(free) char *tests = NULL;

	if (!top)
		top = realpath(ZB_BUILDDIR, NULL);
	tests = top ? zb_strf("%s/tests", top) : NULL;
	return tests && (!strcmp(dir, top) || zb_path_below(dir, tests)) ? top
									 : NULL;
}

/* A start asks for twenty files, and the program does not move meanwhile. */
static const char *own_dir(void)
{
	static char *dir;
	zb_auto(free) char *exe = dir ? NULL : zb_own_program();

	if (exe)
		dir = zb_path_dir(exe);
	return dir;
}

const char *zb_own_tree(void)
{
	const char *dir = own_dir();

	return dir ? build_tree(dir) : NULL;
}

#define OWN_DIRS 4

/* Where the program's files are looked for, the first place first; heap paths
 * that may not be there. `pkgdata` in a build tree is a link to the sources.
 * Never a directory of programs: an extension may have been granted one. */
static size_t own_dirs(char *out[OWN_DIRS])
{
	const char *dir = own_dir(), *tree = zb_own_tree();
	size_t n = 0;

	if (tree) {
		out[n++] = zb_strdup(dir); /* a test beside its like */
		out[n++] = zb_strdup(tree);
		out[n++] = zb_strf("%s/pkgdata", tree);
		return n;
	}
	if (dir) {
		zb_auto(free) char *up = zb_path_dir(dir);

		out[n++] = zb_strf("%s/libexec/zotbox", up ? up : "");
		out[n++] = zb_strf("%s/share/zotbox", up ? up : "");
	}
	out[n++] = zb_strdup(ZB_PKGLIBEXECDIR);
	out[n++] = zb_strdup(ZB_PKGDATADIR);
	return n;
}

char *zb_own_file(const char *name)
{
	char *dirs[OWN_DIRS] = {0};
	size_t n = own_dirs(dirs);
	char *found = NULL;

	for (size_t i = 0; i < n; i++) {
		zb_auto(free) char *at =
			dirs[i] && !found ? zb_strf("%s/%s", dirs[i], name)
					  : NULL;

		if (is_there(at))
			found = zb_steal(&at);
		free(dirs[i]);
	}
	return found;
}

static const char *started_as;

void zb_own_started_as(const char *argv0)
{
	started_as = argv0;
}

static bool is_same_file(const char *path, const struct stat *self)
{
	struct stat st;

	return !stat(path, &st) && st.st_dev == self->st_dev &&
	       st.st_ino == self->st_ino;
}

/* Where @word is looked for in PATH, up to the place where it is found: what is
 * put into one of these takes its place. It is this program if @self is not
 * NULL, else any; nothing if it is found nowhere. */
static int add_names_in_path(struct zb_strv *out, const char *word,
			     const struct stat *self)
{
	const char *path = getenv("PATH");
	struct zb_strv before = {0};
	bool found = false;
	int rc = 0;

	while (!rc && !found && path && *path) {
		size_t n = strcspn(path, ":");
		zb_auto(free) char *name =
			zb_strf("%.*s/%s", (int)n, path, word);

		if (!name)
			rc = ZB_ELIMIT;
		else if (*path == '/') {
			found = self ? is_same_file(name, self)
				     : !access(name, X_OK);
			rc = zb_strv_take(&before, zb_steal(&name));
		}
		path += n;
		path += *path == ':';
	}
	for (size_t i = 0; found && !rc && i < before.n; i++)
		rc = zb_strv_add(out, before.v[i]);
	zb_strv_done(&before);
	return rc;
}

/* The name that the program was started by, what starts it from PATH, and what
 * it starts from there itself. */
static int add_names(struct zb_strv *out, const char *program)
{
	const char *base = started_as ? strrchr(started_as, '/') : NULL;
	const char *const words[] = {"zotbox", "zot", base ? NULL : started_as};
	zb_auto(free) char *cwd = NULL;
	zb_auto(free) char *named = NULL;
	struct stat self;

	if (add_names_in_path(out, "bwrap", NULL) ||
	    add_names_in_path(out, "git", NULL))
		return ZB_ELIMIT;
	if (stat(program, &self))
		return 0;
	for (size_t i = 0; i < ZB_ARRAY_LEN(words); i++)
		if (words[i] && add_names_in_path(out, words[i], &self))
			return ZB_ELIMIT;
	if (!base)
		return 0;
	cwd = *started_as == '/' ? zb_strdup("/") : realpath(".", NULL);
	named = cwd ? zb_strf("%s/%s", *started_as == '/' ? "" : cwd,
			      started_as)
		    : NULL;
	return named && is_same_file(named, &self)
		       ? zb_strv_take(out, zb_steal(&named))
		       : 0;
}

#define MAX_LINKS_IN 500

/* Where a file among the program's own is a link, what it leads to counts. */
static int add_links_in(struct zb_strv *out, const char *name)
{
	zb_auto(free) char *dir = zb_own_file(name);
	DIR *d = dir ? opendir(dir) : NULL;
	struct dirent *e;
	int rc = dir ? zb_strv_add(out, dir) : 0;

	for (size_t n = 0; d && !rc && n < MAX_LINKS_IN && (e = readdir(d));) {
		if (e->d_name[0] == '.' ||
		    (e->d_type != DT_LNK && e->d_type != DT_UNKNOWN))
			continue;
		rc = zb_strv_addf(out, "%s/%s", dir, e->d_name);
		n++;
	}
	if (d)
		closedir(d);
	return rc;
}

static int add_files(struct zb_strv *out)
{
	zb_auto(free) char *terminal = zb_own_file("zotbox-terminal");

	if (terminal && zb_strv_add(out, terminal))
		return ZB_ELIMIT;
	return add_links_in(out, "policies") ||
			       add_links_in(out, "policies/runtimes")
		       ? ZB_ELIMIT
		       : 0;
}

int zb_own_places(struct zb_strv *out)
{
	zb_auto(free) char *program = zb_own_program();
	const char *tree = zb_own_tree();
	char *dirs[OWN_DIRS] = {0};
	size_t n = own_dirs(dirs);
	int rc = 0;

	if (!program || zb_strv_add(out, program) || add_names(out, program) ||
	    add_files(out))
		rc = ZB_ELIMIT;
	/* Of a tree all of it; what its `pkgdata` leads to holds the sources
	 * too, of which only the policies are read. */
	for (size_t i = 0; i < n; i++) {
		if (!rc && (!tree || i < 2))
			rc = dirs[i] ? zb_strv_add(out, dirs[i]) : ZB_ELIMIT;
		free(dirs[i]);
	}
	return rc;
}

int zb_own_check(struct zb_error *err)
{
	zb_auto(free) char *some = zb_own_file("policies/strict.json");
	const char *tree = zb_own_tree();
	char *dirs[OWN_DIRS] = {0};
	size_t n = own_dirs(dirs);

	if (!some && tree)
		zb_fail(err, ZB_ESYS,
			"the files that belong to zotbox (policies/strict.json "
			"and others) are not in %s/pkgdata: run make there",
			tree);
	else if (!some)
		zb_fail(err, ZB_ESYS,
			"the files that belong to zotbox (policies/strict.json "
			"and others) are neither in %s nor in %s: install it "
			"with make install; from a build tree it runs only "
			"where that was configured, which was %s",
			dirs[1] ? dirs[1] : "", ZB_PKGDATADIR, ZB_BUILDDIR);
	for (size_t i = 0; i < n; i++)
		free(dirs[i]);
	return some ? 0 : ZB_ESYS;
}

#define POLICY_MAX ((size_t)1 << 20)

int zb_policy_text(const char *name, struct zb_buf *out, struct zb_error *err)
{
	const char *dot = strrchr(name, '.');
	zb_auto(free) char *file = NULL;
	zb_auto(free) char *path = NULL;

	if (strstr(name, "..") || name[0] == '/')
		return zb_fail(err, ZB_EUSAGE, "no such policy: %s", name);
	file = zb_strf("policies/%s%s", name,
		       dot && !strcmp(dot, ".json") ? "" : ".json");
	path = file ? zb_own_file(file) : NULL;
	if (!path && zb_own_check(err))
		return ZB_ESYS;
	if (!path)
		return zb_fail(err, ZB_EUSAGE,
			       "no such policy: %s (looked for %s)", name,
			       file ? file : name);
	return zb_read_file(path, POLICY_MAX, out, err);
}
