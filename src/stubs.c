/* stubs.c - mount points inside the private directories.
 *
 * Theory. Everything here is named by a path relative to the box and walked
 * one component at a time from the box's own descriptor, each opened as a
 * directory and never through a link: an extension that plants a link in its
 * home/ gets a refusal, not a file made elsewhere.
 *
 * What was made is remembered in the box's file `stubs`, so that a stub which
 * no plan needs any more can go; only if it is still as it was made, that is,
 * empty. Two locks: `edit.lock`, held exclusively while any of this is done,
 * and `run.lock`, held shared as long as a sandbox runs. Who gets `run.lock`
 * exclusively is alone and may remove; everybody else may only add.
 *
 * An instance that runs could exchange a directory for a link between our look
 * and the mount, and bubblewrap, which has the host's / as /oldroot by then,
 * would make the missing rest of a mount point behind it. So `edit.lock` is
 * kept until the mounts are made, and every broker takes it shared for each
 * name that could become a link (broker_paths.c).
 *
 * The file `loose` says of what sort the instances are that run: with it they
 * have a loose HOME, and could move what is mounted there; so one that has
 * something carved in HOME does not start beside them. Without it they need
 * HOME held, and one that starts holds it too. Who is alone chooses. */
#include "config.h"

#include "stubs.h"

#include "cleanup.h"
#include "fdutil.h"
#include "path_match.h"
#include "store.h"
#include "text.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define MAX_LIST ((size_t)4 << 20)
#define MAX_COPY ((off_t)256 << 20)
#define WAIT_MS	 5000

/* 'd' directory, 'f' file, 'l' link. */
struct stub {
	char kind;
	char *path; /* relative to the box */
	char *text; /* of a link; "" else */
};

struct stubs {
	struct stub *v;
	size_t n, cap;
};

struct job {
	const struct zb_plan *plan;
	const char *box_path;
	int box;
	struct stubs needed, old;
	bool alone;
	struct zb_error *err;
};

static void stubs_done(struct stubs *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].path);
		free(s->v[i].text);
	}
	free(s->v);
	*s = (struct stubs){0};
}

static int no_memory(struct job *j)
{
	return zb_fail(j->err, ZB_ELIMIT, "%s: out of memory", j->box_path);
}

static int add(struct stubs *s, char kind, const char *path, const char *text)
{
	struct stub *v;

	if (s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 32;

		v = realloc(s->v, cap * sizeof(*v));
		if (!v)
			return ZB_ELIMIT;
		s->v = v;
		s->cap = cap;
	}
	v = &s->v[s->n];
	*v = (struct stub){
		.kind = kind, .path = zb_strdup(path), .text = zb_strdup(text)};
	if (!v->path || !v->text) {
		free(v->path);
		free(v->text);
		return ZB_ELIMIT;
	}
	s->n++;
	return 0;
}

static bool has(const struct stubs *s, const struct stub *one)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].kind == one->kind &&
		    !strcmp(s->v[i].path, one->path) &&
		    !strcmp(s->v[i].text, one->text))
			return true;
	return false;
}

/* ---- what the plan needs ------------------------------------------------- */

/* The nearest place around place @i that is no link, or NULL. */
static const struct zb_place *around(const struct zb_plan *p, size_t i)
{
	for (size_t k = i; k-- > 0;)
		if (p->places[k].kind != ZB_PLACE_LINK &&
		    zb_path_below(p->places[i].path, p->places[k].path))
			return &p->places[k];
	return NULL;
}

static bool is_private(const struct zb_place *p)
{
	return p && p->source &&
	       (p->kind == ZB_PLACE_HOME || p->kind == ZB_PLACE_DATA ||
		p->kind == ZB_PLACE_PIN);
}

/* Where in the box does a mount at place @i stand? Heap, relative; NULL: in
 * nothing of the box. */
static char *place_in_box(const struct job *j, size_t i)
{
	const struct zb_place *p = &j->plan->places[i];
	const struct zb_place *outer = around(j->plan, i);
	zb_auto(free) char *at = NULL;

	if (!is_private(outer) || !zb_path_below(outer->source, j->box_path))
		return NULL;
	at = zb_strf("%s%s", outer->source, p->path + strlen(outer->path));
	if (!at || strlen(at) <= strlen(j->box_path) + 1)
		return NULL;
	return zb_strdup(at + strlen(j->box_path) + 1);
}

static int find_needed(struct job *j)
{
	for (size_t i = 0; i < j->plan->n_places; i++) {
		const struct zb_place *p = &j->plan->places[i];
		zb_auto(free) char *at = place_in_box(j, i);
		char kind = p->kind == ZB_PLACE_LINK ? 'l'
			    : p->is_dir		     ? 'd'
						     : 'f';

		if (at &&
		    add(&j->needed, kind, at, kind == 'l' ? p->link_to : ""))
			return no_memory(j);
	}
	return 0;
}

/* ---- the list ------------------------------------------------------------ */

/* Canonical, and not absolute. */
static bool is_relative(const char *path)
{
	zb_auto(free) char *canonical = zb_path_join("/", path);

	return *path && path[0] != '/' && canonical &&
	       !strcmp(canonical + 1, path);
}

/* One stub is kind, path and text, each ended by a NUL: any path fits. */
static int read_list(struct job *j)
{
	zb_auto(free) char *path = zb_strf("%s/stubs", j->box_path);
	struct zb_buf b = {0};
	const char *p, *end;
	int rc = path ? zb_read_file(path, MAX_LIST, &b, j->err) : ZB_ELIMIT;

	if (rc == ZB_ESYS && j->err && j->err->sys == ENOENT) {
		*j->err = (struct zb_error){0};
		return 0;
	}
	p = zb_buf_str(&b);
	end = p + b.len;
	/* A buffer ends with a NUL, so no strlen() runs out of it. */
	while (!rc && p < end) {
		const char *name = p + strlen(p) + 1;
		const char *text = name <= end ? name + strlen(name) + 1 : end;

		if (text >= end || !strchr("dfl", *p) || !*p ||
		    !is_relative(name))
			break; /* damaged: what is left is forgotten */
		rc = add(&j->old, *p, name, text);
		p = text + strlen(text) + 1;
	}
	zb_buf_done(&b);
	return rc == ZB_ELIMIT ? no_memory(j) : rc;
}

static int write_list(struct job *j, const struct stubs *s)
{
	zb_auto(free) char *path = zb_strf("%s/stubs", j->box_path);
	struct zb_buf b = {0};
	int rc;

	for (size_t i = 0; i < s->n; i++) {
		zb_buf_addc(&b, s->v[i].kind);
		zb_buf_addc(&b, '\0');
		zb_buf_add(&b, s->v[i].path, strlen(s->v[i].path) + 1);
		zb_buf_add(&b, s->v[i].text, strlen(s->v[i].text) + 1);
	}
	if (!path || b.failed)
		rc = no_memory(j);
	else
		rc = zb_write_file_atomic(path, zb_buf_str(&b), b.len, 0600,
					  j->err);
	zb_buf_done(&b);
	return rc;
}

/* ---- walking ------------------------------------------------------------- */

static int in_the_way(struct job *j, const char *path, const char *want)
{
	struct zb_buf b = {0};

	zb_text_escape(&b, path, strlen(path), 512);
	zb_fail(j->err, ZB_EPOLICY,
		"%s/%s is in the way: the sandbox mounts something there and "
		"needs %s; the extension made it, remove it",
		j->box_path, zb_buf_str(&b), want);
	zb_buf_done(&b);
	return ZB_EPOLICY;
}

static int open_dir(int at, const char *name)
{
	return openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* What the extension has shut in its own directory, so that nothing could be
 * made in it, is opened again: it is ours to mount in. */
static void unshut(int dir)
{
	char link[32];
	struct stat st;

	if (fstat(dir, &st) || (st.st_mode & 0700) == 0700 ||
	    st.st_uid != geteuid())
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	(void)chmod(link, (st.st_mode & 07777) | 0700);
}

/* Open the directory that holds the last component of @path, making what is
 * missing if @make. @last points into @path. Return: descriptor, or -1 with
 * the error set (but not for what is absent without @make). */
static int open_parent(struct job *j, const char *path, bool make,
		       const char **last)
{
	zb_auto(fd) int at = fcntl(j->box, F_DUPFD_CLOEXEC, 3);
	const char *p = path, *slash;

	while (at >= 0 && (slash = strchr(p, '/'))) {
		zb_auto(free) char *name = zb_strndup(p, (size_t)(slash - p));
		zb_auto(free) char *so_far =
			zb_strndup(path, (size_t)(slash - path));
		int next;

		if (!name || !so_far) {
			no_memory(j);
			return -1;
		}
		next = open_dir(at, name);
		if (next < 0 && errno == ENOENT && make) {
			if (mkdirat(at, name, 0700) && errno != EEXIST) {
				zb_fail_sys(j->err, errno, "mkdir %s/%s",
					    j->box_path, so_far);
				return -1;
			}
			next = open_dir(at, name);
		}
		if (next < 0) {
			if (make)
				in_the_way(j, so_far, "a directory");
			return -1;
		}
		if (make)
			unshut(next);
		close(at);
		at = next;
		p = slash + 1;
	}
	*last = p;
	return zb_steal_fd(&at);
}

/* Why open_parent() failed. */
static int failure(struct job *j)
{
	if (j->err->code)
		return j->err->code;
	return zb_fail_sys(j->err, errno, "open %s", j->box_path);
}

/* Does the text of link @name in @at equal @text? */
static bool link_says(int at, const char *name, const char *text)
{
	char buf[PATH_MAX];
	ssize_t n = readlinkat(at, name, buf, sizeof(buf));

	return n >= 0 && (size_t)n == strlen(text) && !memcmp(buf, text, n);
}

static mode_t type_at(int at, const char *name)
{
	struct stat st;

	return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW)
		       ? 0
		       : st.st_mode & S_IFMT;
}

/* ---- making -------------------------------------------------------------- */

static int make_at(struct job *j, int at, const char *name,
		   const struct stub *s)
{
	zb_auto(fd) int fd = -1;
	int rc = 0;

	if (s->kind == 'd')
		rc = mkdirat(at, name, 0700);
	else if (s->kind == 'l')
		rc = symlinkat(s->text, at, name);
	else
		rc = fd = openat(at, name,
				 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
					 O_CLOEXEC,
				 0600);
	if (rc >= 0)
		return 0;
	if (errno != EEXIST)
		return zb_fail_sys(j->err, errno, "make %s/%s", j->box_path,
				   s->path);
	if (s->kind == 'd' && type_at(at, name) != S_IFDIR)
		return in_the_way(j, s->path, "a directory");
	if (s->kind == 'f' && type_at(at, name) != S_IFREG)
		return in_the_way(j, s->path, "a file");
	if (s->kind == 'l' && !link_says(at, name, s->text))
		return in_the_way(j, s->path, "a link of its own");
	return 0;
}

static int make(struct job *j, const struct stub *s)
{
	const char *name;
	zb_auto(fd) int at = open_parent(j, s->path, true, &name);

	return at < 0 ? failure(j) : make_at(j, at, name, s);
}

static bool is_there(struct job *j, const struct stub *s)
{
	const char *name;
	zb_auto(fd) int at = open_parent(j, s->path, false, &name);

	return at >= 0 && type_at(at, name);
}

/* ---- removing ------------------------------------------------------------ */

/* Remove a stub that is as it was made. Return: false if it must stay. */
static bool discard(struct job *j, const struct stub *s)
{
	const char *name;
	zb_auto(fd) int at = open_parent(j, s->path, false, &name);
	struct stat st;

	if (at < 0 || fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW))
		return true; /* gone already, or not ours any more */
	if (s->kind == 'd' && S_ISDIR(st.st_mode))
		return !unlinkat(at, name, AT_REMOVEDIR);
	if (s->kind == 'l' && S_ISLNK(st.st_mode))
		return !link_says(at, name, s->text) || !unlinkat(at, name, 0);
	if (s->kind == 'f' && S_ISREG(st.st_mode) && !st.st_size)
		return !unlinkat(at, name, 0);
	return true;
}

/* The list after this start: old ones that stay, and what will be made. */
static int settle(struct job *j, struct stubs *list, bool *changed)
{
	*changed = false;
	/* Parents were made first, so they go last. */
	for (size_t i = j->old.n; i-- > 0;) {
		struct stub *s = &j->old.v[i];

		if (!has(&j->needed, s) && j->alone && discard(j, s)) {
			free(s->path);
			s->path = NULL;
			*changed = true;
		}
	}
	for (size_t i = 0; i < j->old.n; i++)
		if (j->old.v[i].path && add(list, j->old.v[i].kind,
					    j->old.v[i].path, j->old.v[i].text))
			return no_memory(j);
	for (size_t i = 0; i < j->needed.n; i++) {
		struct stub *s = &j->needed.v[i];

		/* What the extension made itself is not ours to remove. */
		if (has(list, s) || is_there(j, s))
			continue;
		if (add(list, s->kind, s->path, s->text))
			return no_memory(j);
		*changed = true;
	}
	return 0;
}

/* ---- copies of shipped files --------------------------------------------- */

static int copy_bytes(int from, int to)
{
	char chunk[65536];

	for (;;) {
		ssize_t n = read(from, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -1 : fsync(to);
		if (zb_write_all(to, chunk, (size_t)n))
			return -1;
	}
}

/* The shipped file @rel as @name in directory @at of data/, which has none
 * yet. Under another name first: half a file is worse than none. */
static int copy_at(struct job *j, const char *rel, int at, const char *name)
{
	zb_auto(free) char *source =
		zb_strf("%s/%s", j->plan->extension_real, rel);
	static const char temp[] = ".zb-copy";
	zb_auto(fd) int from = -1;
	zb_auto(fd) int to = -1;
	struct stat st;

	if (!source)
		return no_memory(j);
	from = open(source, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (from < 0 || fstat(from, &st))
		return zb_fail_sys(j->err, errno, "copy %s", source);
	if (!S_ISREG(st.st_mode) || st.st_size > MAX_COPY)
		return zb_fail(j->err, ZB_EPOLICY,
			       "copy %s: it is no file, or over 256 MB",
			       source);
	unlinkat(at, temp, 0);
	to = openat(at, temp,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600 | (st.st_mode & 0111 ? 0100 : 0));
	if (to < 0 || copy_bytes(from, to) || renameat(at, temp, at, name)) {
		int e = errno;

		unlinkat(at, temp, 0);
		return zb_fail_sys(j->err, e, "copy %s to %s/data", source,
				   j->box_path);
	}
	return 0;
}

static int copy(struct job *j, const char *rel)
{
	zb_auto(free) char *path = zb_strf("data/%s", rel);
	const char *name;
	zb_auto(fd) int at = -1;

	if (!path)
		return no_memory(j);
	at = open_parent(j, path, true, &name);
	if (at < 0)
		return failure(j);
	switch (type_at(at, name)) {
	case 0:
		return copy_at(j, rel, at, name);
	case S_IFREG:
		return 0; /* the extension's own by now */
	default:
		return in_the_way(j, path, "a file");
	}
}

/* ---- loose HOME ---------------------------------------------------------- */

static const char loose[] = "loose";

static bool is_loose(int box)
{
	return type_at(box, loose);
}

static bool has_carved_home(const struct zb_plan *plan)
{
	for (size_t i = 0; i < plan->n_places; i++)
		if (plan->places[i].kind == ZB_PLACE_HOME &&
		    plan->places[i].brokered)
			return true;
	return false;
}

/* Alone: say what we are. Else: do we go with those that run? */
static int settle_home(struct job *j)
{
	const char *name = zb_path_name(j->box_path);
	zb_auto(fd) int fd = -1;

	if (!j->alone && is_loose(j->box) && has_carved_home(j->plan))
		return zb_fail(j->err, ZB_EPOLICY,
			       "another instance of %s runs under a scope that "
			       "denies nothing, and could move what this one "
			       "must not read: end it (close the other zot), "
			       "then start again",
			       name);
	if (!j->alone && !is_loose(j->box) && j->plan->loose_home)
		return zb_fail(j->err, ZB_EPOLICY,
			       "%s: another instance has files in HOME that it "
			       "must not read, and this one could move them",
			       name);
	if (!j->alone || is_loose(j->box) == j->plan->loose_home)
		return 0;
	if (!j->plan->loose_home)
		return unlinkat(j->box, loose, 0)
			       ? zb_fail_sys(j->err, errno, "remove %s/%s",
					     j->box_path, loose)
			       : 0;
	fd = openat(j->box, loose,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? zb_fail_sys(j->err, errno, "make %s/%s", j->box_path,
				    loose)
		      : 0;
}

/* ---- all of it ----------------------------------------------------------- */

static int do_all(struct job *j)
{
	struct stubs list = {0};
	bool changed;
	int rc = settle_home(j);

	if (!rc)
		rc = find_needed(j);
	if (!rc)
		rc = read_list(j);
	if (!rc)
		rc = settle(j, &list, &changed);
	/* Remembered first: a stub that nobody remembers would stay. */
	if (!rc && changed)
		rc = write_list(j, &list);
	for (size_t i = 0; !rc && i < j->needed.n; i++)
		rc = make(j, &j->needed.v[i]);
	for (size_t i = 0; !rc && i < j->plan->data_copies.n; i++)
		rc = copy(j, j->plan->data_copies.v[i]);
	stubs_done(&list);
	return rc;
}

static int open_box(const char *box, struct zb_error *err)
{
	int fd = open(box, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		zb_fail_sys(err, errno, "open %s", box);
	return fd;
}

/* Hold run.lock: exclusively if nobody runs, else shared. */
static int take_run_lock(const char *box, int *fd, bool *alone,
			 struct zb_error *err)
{
	zb_auto(free) char *path = zb_strf("%s/run.lock", box);
	struct zb_error ignored = {0};

	if (!path)
		return zb_fail(err, ZB_ELIMIT, "%s: out of memory", box);
	*alone = !zb_lock_file(path, true, 0, fd, &ignored);
	return *alone ? 0 : zb_lock_file(path, false, WAIT_MS, fd, err);
}

int zb_stubs_lock(const char *box, int locks[2], struct zb_stubs_state *out,
		  struct zb_error *err)
{
	zb_auto(free) char *edit = zb_strf("%s/edit.lock", box);
	zb_auto(fd) int dir = -1;
	zb_auto(fd) int editing = -1;
	zb_auto(fd) int running = -1;
	bool alone;
	int rc;

	if (!edit)
		return zb_fail(err, ZB_ELIMIT, "%s: out of memory", box);
	dir = open_box(box, err);
	if (dir < 0)
		return ZB_ESYS;
	rc = zb_lock_file(edit, true, WAIT_MS, &editing, err);
	if (!rc)
		rc = take_run_lock(box, &running, &alone, err);
	if (rc)
		return rc;
	locks[0] = fcntl(running, F_DUPFD_CLOEXEC, 3);
	locks[1] = fcntl(editing, F_DUPFD_CLOEXEC, 3);
	if (locks[0] < 0 || locks[1] < 0)
		return zb_fail_sys(err, errno, "lock %s", box);
	out->alone = alone;
	out->held_home = !alone && !is_loose(dir);
	return 0;
}

int zb_stubs_own(const char *box, int locks[2], struct zb_error *err)
{
	struct zb_stubs_state state = {0};
	int rc = zb_stubs_lock(box, locks, &state, err);

	if (rc || state.alone)
		return rc;
	for (int i = 0; i < 2; i++)
		close(zb_steal_fd(&locks[i]));
	return zb_fail(err, ZB_EPOLICY, "something runs in %s", box);
}

int zb_stubs_make(const struct zb_plan *plan, const char *box,
		  const int locks[2], const struct zb_stubs_state *state,
		  struct zb_error *err)
{
	struct zb_error local = {0};
	struct job j = {.plan = plan,
			.box_path = box,
			.alone = state->alone,
			.err = err ? err : &local};
	zb_auto(fd) int dir = open_box(box, err);
	int rc;

	if (dir < 0)
		return ZB_ESYS;
	j.box = dir;
	rc = do_all(&j);
	stubs_done(&j.needed);
	stubs_done(&j.old);
	if (rc)
		return rc;
	/* Under edit.lock nobody can come between. */
	if (j.alone && flock(locks[0], LOCK_SH))
		return zb_fail_sys(err, errno, "lock %s", box);
	return 0;
}
