/* lock.c - what was installed, file by file, and whether it still is.
 *
 * The list is made of names and contents alone: no times, no owners, and of
 * the mode only whether a file may be executed, so that a copy of the tree is
 * the same tree. Directories are not in it; a link counts by its text. Reading
 * goes from descriptor to descriptor and follows nothing, so that a name is
 * hashed as what it is, even if it is exchanged meanwhile.
 *
 * The tree's hash is over the list: for each file its kind, its path and its
 * hash, each ended by a NUL.
 *
 * Every start does this, so it is done by as many threads as there are CPUs:
 * one walks and lists, then all of them hash. Nothing is kept from the last
 * time: sizes and times of files are cheaper to ask for, but a file that is
 * mapped can change without them. */
#include "config.h"

#include "lock.h"

#include "cleanup.h"
#include "fdutil.h"
#include "json_scan.h"
#include "text.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <nettle/sha2.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define MAX_FILES 100000
#define MAX_DEPTH 64
#define MAX_BYTES (8ull << 30) /* as of a copy, tree_copy.h */
#define MAX_LOCK  ((size_t)64 << 20)
#define MAX_DIFF  100
#define CHUNK	  ((size_t)64 << 10)
/* A thread is worth it for so many files. */
#define PER_THREAD  64
#define MAX_THREADS 8
#define NOT_YET	    '?'

/* A walk over the tree. */
struct walk {
	struct zb_lock *out;
	size_t cap;
	const char *dir;     /* for messages */
	const char *shipped; /* stands for extension.json */
	bool whole;	     /* nothing is left out */
	struct zb_buf path;  /* relative, of where we are */
	struct zb_error *err;
};

void zb_lock_done(struct zb_lock *l)
{
	if (!l)
		return;
	free(l->source);
	free(l->commit);
	free(l->tree);
	free(l->policy);
	free(l->installed);
	for (size_t i = 0; i < l->n_files; i++)
		free(l->files[i].path);
	free(l->files);
	memset(l, 0, sizeof(*l));
}

/* ---- hashing ------------------------------------------------------------- */

static void hex_digest(struct sha256_ctx *ctx, char hex[65])
{
	uint8_t hash[SHA256_DIGEST_SIZE];

	sha256_digest(ctx, sizeof(hash), hash);
	for (int i = 0; i < SHA256_DIGEST_SIZE; i++)
		snprintf(hex + 2 * i, 3, "%02x", hash[i]);
}

/* Of all files together: a sparse one costs its writer nothing. */
static bool is_too_much(atomic_ullong *total, uint64_t n)
{
	return atomic_fetch_add(total, n) + n > MAX_BYTES;
}

/* Return: 0, or -1 with errno; EFBIG: over the maximum. The size that it says
 * to have counts before anything is read, what it grows by as it is read. */
static int hash_fd(int fd, uint64_t size, uint8_t *chunk, atomic_ullong *total,
		   char hex[65])
{
	struct sha256_ctx ctx;
	uint64_t seen = 0;
	ssize_t n;

	if (is_too_much(total, size)) {
		errno = EFBIG;
		return -1;
	}
	sha256_init(&ctx);
	for (;;) {
		n = read(fd, chunk, CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		seen += (uint64_t)n;
		if (seen > size && is_too_much(total, (size_t)n)) {
			errno = EFBIG;
			return -1;
		}
		sha256_update(&ctx, (size_t)n, chunk);
	}
	if (n < 0)
		return -1;
	hex_digest(&ctx, hex);
	return 0;
}

static char *tree_hash(const struct zb_lock *l)
{
	struct sha256_ctx ctx;
	char hex[65];

	sha256_init(&ctx);
	for (size_t i = 0; i < l->n_files; i++) {
		const struct zb_lock_file *f = &l->files[i];
		const char kind[2] = {f->kind, '\0'};

		sha256_update(&ctx, 2, (const uint8_t *)kind);
		sha256_update(&ctx, strlen(f->path) + 1,
			      (const uint8_t *)f->path);
		sha256_update(&ctx, strlen(f->sha256) + 1,
			      (const uint8_t *)f->sha256);
	}
	hex_digest(&ctx, hex);
	return zb_strdup(hex);
}

/* ---- the walk ------------------------------------------------------------ */

/* Room for one more file. NULL when out of memory, or over the limit. */
static struct zb_lock_file *new_file(struct zb_lock *l, size_t *cap)
{
	struct zb_lock_file *v;

	if (l->n_files == *cap) {
		size_t want = *cap ? *cap * 2 : 64;

		v = realloc(l->files, want * sizeof(*v));
		if (!v)
			return NULL;
		l->files = v;
		*cap = want;
	}
	v = &l->files[l->n_files];
	memset(v, 0, sizeof(*v));
	return v;
}

static int fail_at(struct walk *w, int sys, const char *what)
{
	return zb_fail_sys(w->err, sys, "%s %s/%s", what, w->dir,
			   zb_buf_str(&w->path));
}

static int add_link(struct walk *w, struct zb_lock_file *f, int at,
		    const char *name)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(at, name, text, sizeof(text));
	struct sha256_ctx ctx;

	if (n < 0)
		return fail_at(w, errno, "read link");
	f->kind = 'l';
	sha256_init(&ctx);
	sha256_update(&ctx, (size_t)n, (const uint8_t *)text);
	hex_digest(&ctx, f->sha256);
	return 0;
}

/* The file or link @name of directory @at; w->path is its path. A file is
 * hashed later, when all are known: until then its kind is NOT_YET. */
static int add(struct walk *w, int at, const char *name, bool link)
{
	struct zb_lock_file *f;
	int rc;

	if (w->out->n_files >= MAX_FILES)
		return zb_fail(w->err, ZB_ELIMIT, "%s has more than %d files",
			       w->dir, MAX_FILES);
	f = new_file(w->out, &w->cap);
	if (!f)
		return zb_fail(w->err, ZB_ELIMIT, "out of memory");
	f->kind = NOT_YET;
	rc = link ? add_link(w, f, at, name) : 0;
	if (rc)
		return rc;
	f->path = zb_strdup(zb_buf_str(&w->path));
	if (!f->path)
		return zb_fail(w->err, ZB_ELIMIT, "out of memory");
	w->out->n_files++;
	return 0;
}

static int walk_dir(struct walk *w, int at, const char *name, unsigned depth);

static bool is_left_out(const struct walk *w, const char *name, unsigned depth)
{
	return !strcmp(name, ".") || !strcmp(name, "..") ||
	       (depth == 0 && !w->whole &&
		(!strcmp(name, ".git") || !strcmp(name, "extension.json")));
}

/* DT_DIR, DT_LNK or something else; not every file system tells at once. */
static int type_of(struct walk *w, int at, const struct dirent *e, int *out)
{
	struct stat st;

	*out = e->d_type;
	if (*out != DT_UNKNOWN)
		return 0;
	if (fstatat(at, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
		return fail_at(w, errno, "stat");
	*out = S_ISDIR(st.st_mode)   ? DT_DIR
	       : S_ISLNK(st.st_mode) ? DT_LNK
				     : DT_REG;
	return 0;
}

static int walk_entry(struct walk *w, int at, const struct dirent *e,
		      unsigned depth)
{
	size_t len = w->path.len;
	int rc, type;

	if (is_left_out(w, e->d_name, depth))
		return 0;
	if (zb_buf_addf(&w->path, "%s%s", len ? "/" : "", e->d_name))
		return zb_fail(w->err, ZB_ELIMIT, "out of memory");
	rc = type_of(w, at, e, &type);
	if (!rc && type == DT_DIR)
		rc = walk_dir(w, at, e->d_name, depth + 1);
	else if (!rc)
		rc = add(w, at, e->d_name, type == DT_LNK);
	w->path.len = len;
	w->path.data[len] = '\0';
	return rc;
}

static int walk_dir(struct walk *w, int at, const char *name, unsigned depth)
{
	zb_auto(fd) int fd = openat(at, name,
				    O_RDONLY | O_DIRECTORY | O_CLOEXEC |
					    (depth ? O_NOFOLLOW : 0));
	struct dirent *e;
	DIR *d;
	int rc = 0;

	if (depth > MAX_DEPTH)
		return zb_fail(w->err, ZB_ELIMIT,
			       "%s has directories more than %d deep", w->dir,
			       MAX_DEPTH);
	if (fd < 0)
		return fail_at(w, errno, "open");
	d = fdopendir(fd);
	if (!d)
		return fail_at(w, errno, "read");
	errno = 0;
	while (!rc && (e = readdir(d))) {
		rc = walk_entry(w, fd, e, depth);
		errno = 0;
	}
	if (!rc && errno)
		rc = fail_at(w, errno, "read");
	zb_steal_fd(&fd); /* closedir() closes it */
	closedir(d);
	return rc;
}

static int by_path(const void *a, const void *b)
{
	const struct zb_lock_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* ---- many at once -------------------------------------------------------- */

/* What all threads share: each takes the next file. */
struct crew {
	struct zb_lock *l;
	const char *dir, *shipped;
	int root;
	atomic_size_t next;
	atomic_ullong bytes;
	atomic_bool failed;
};

struct worker {
	struct crew *c;
	pthread_t thread;
	bool started;
	size_t at; /* the file that failed */
	struct zb_error err;
};

/* Below the tree, through no link, also if one is put there meanwhile. The
 * shipped manifest lies elsewhere. */
static int open_file(const struct crew *c, const struct zb_lock_file *f)
{
	struct open_how how = {
		.flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
			 O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};

	if (c->shipped && !strcmp(f->path, "extension.json"))
		return open(c->shipped, (int)how.flags);
	return (int)syscall(SYS_openat2, c->root, f->path, &how, sizeof(how));
}

static int fail_file(const struct crew *c, const struct zb_lock_file *f,
		     const char *what, struct zb_error *err)
{
	return zb_fail_sys(err, errno, "%s %s/%s", what, c->dir, f->path);
}

/* A file, by what the open descriptor is. */
static int hash_file(struct crew *c, struct zb_lock_file *f, uint8_t *chunk,
		     struct zb_error *err)
{
	zb_auto(fd) int fd = open_file(c, f);
	bool odd = fd < 0 && errno == ENXIO; /* a socket */
	struct stat st;

	if (fd < 0 && !odd)
		return fail_file(c, f, "open", err);
	if (!odd && fstat(fd, &st))
		return fail_file(c, f, "stat", err);
	if (odd || !S_ISREG(st.st_mode))
		return zb_fail(err, ZB_EPOLICY,
			       "%s/%s is neither a file, a directory nor a "
			       "link: it cannot be part of an extension",
			       c->dir, f->path);
	f->kind = st.st_mode & 0111 ? 'x' : 'f';
	if (!hash_fd(fd, (uint64_t)st.st_size, chunk, &c->bytes, f->sha256))
		return 0;
	return errno == EFBIG
		       ? zb_fail(err, ZB_ELIMIT, "%s has more than %llu bytes",
				 c->dir, MAX_BYTES)
		       : fail_file(c, f, "read", err);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct crew *c = w->c;
	zb_auto(free) uint8_t *chunk = malloc(CHUNK);
	size_t i;

	if (!chunk) {
		zb_fail(&w->err, ZB_ELIMIT, "out of memory");
		atomic_store(&c->failed, true);
	}
	while (!atomic_load(&c->failed) &&
	       (i = atomic_fetch_add(&c->next, 1)) < c->l->n_files) {
		struct zb_lock_file *f = &c->l->files[i];

		if (f->kind != NOT_YET || !hash_file(c, f, chunk, &w->err))
			continue;
		w->at = i;
		atomic_store(&c->failed, true);
	}
	return NULL;
}

static size_t crew_size(size_t files)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t n = files / PER_THREAD + 1;

	if (cpus > 0 && n > (size_t)cpus)
		n = (size_t)cpus;
	return n > MAX_THREADS ? MAX_THREADS : n;
}

/* Signals are the main thread's. One that cannot be started is done without. */
static void start(struct worker *w, size_t n)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (size_t i = 1; i < n; i++)
		w[i].started = !pthread_create(&w[i].thread, NULL, work, &w[i]);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Hash what the walk has listed. Of several errors the one of the first file
 * counts, so that it is the same each time. */
static int hash_all(struct zb_lock *l, const char *dir, const char *shipped,
		    struct zb_error *err)
{
	zb_auto(fd) int root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct crew c = {.l = l, .dir = dir, .shipped = shipped, .root = root};
	struct worker w[MAX_THREADS] = {0}, *first = NULL;
	size_t n = crew_size(l->n_files);

	if (root < 0)
		return zb_fail_sys(err, errno, "open %s", dir);
	for (size_t i = 0; i < n; i++)
		w[i].c = &c;
	start(w, n);
	work(&w[0]);
	for (size_t i = 0; i < n; i++) {
		if (w[i].started)
			pthread_join(w[i].thread, NULL);
		if (w[i].err.code && (!first || w[i].at < first->at))
			first = &w[i];
	}
	if (first && err)
		*err = first->err;
	return first ? first->err.code : 0;
}

static int add_shipped(struct walk *w)
{
	zb_buf_clear(&w->path);
	if (zb_buf_adds(&w->path, "extension.json"))
		return zb_fail(w->err, ZB_ELIMIT, "out of memory");
	return add(w, AT_FDCWD, w->shipped, false);
}

static void mark_shipped(struct zb_lock *l)
{
	/* The mode of a file of ours says nothing. */
	for (size_t i = 0; i < l->n_files; i++)
		if (!strcmp(l->files[i].path, "extension.json"))
			l->files[i].kind = 'f';
}

static int make(struct zb_lock *out, const char *dir, const char *shipped,
		bool whole, struct zb_error *err)
{
	struct zb_lock l = {0};
	struct walk w = {.out = &l,
			 .dir = dir,
			 .shipped = shipped,
			 .whole = whole,
			 .err = err};
	int rc = 0;

	if (zb_buf_adds(&w.path, ""))
		rc = zb_fail(err, ZB_ELIMIT, "out of memory");
	if (!rc)
		rc = walk_dir(&w, AT_FDCWD, dir, 0);
	if (!rc && shipped)
		rc = add_shipped(&w);
	zb_buf_done(&w.path);
	if (!rc && l.n_files)
		qsort(l.files, l.n_files, sizeof(*l.files), by_path);
	if (!rc)
		rc = hash_all(&l, dir, shipped, err);
	if (!rc) {
		if (shipped)
			mark_shipped(&l);
		l.tree = tree_hash(&l);
		if (!l.tree)
			rc = zb_fail(err, ZB_ELIMIT, "out of memory");
	}
	if (rc) {
		/* The last one may be half filled: its path is not. */
		zb_lock_done(&l);
		return rc;
	}
	*out = l;
	return 0;
}

int zb_lock_make(struct zb_lock *out, const char *dir, const char *shipped,
		 struct zb_error *err)
{
	return make(out, dir, shipped, false, err);
}

int zb_lock_make_whole(struct zb_lock *out, const char *dir,
		       struct zb_error *err)
{
	return make(out, dir, NULL, true, err);
}

/* ---- the file ------------------------------------------------------------ */

static void add_member(struct zb_buf *b, const char *key, const char *value)
{
	zb_buf_addf(b, "  \"%s\": ", key);
	zb_json_quote_or_null(b, value);
	zb_buf_adds(b, ",\n");
}

/* A path whose bytes are not UTF-8 cannot be a JSON string: hexadecimal. */
static void add_path(struct zb_buf *b, const char *path)
{
	size_t n = strlen(path);

	if (zb_utf8_check(path, n) == n) {
		zb_buf_adds(b, "\"path\":");
		zb_json_quote(b, path, n);
		return;
	}
	zb_buf_adds(b, "\"path_hex\":\"");
	for (size_t i = 0; i < n; i++)
		zb_buf_addf(b, "%02x", (unsigned char)path[i]);
	zb_buf_addc(b, '"');
}

int zb_lock_write(const struct zb_lock *l, const char *path,
		  struct zb_error *err)
{
	struct zb_buf b = {.max = MAX_LOCK};
	int rc;

	zb_buf_adds(&b, "{\n  \"zotbox_lock\": 1,\n");
	add_member(&b, "source", l->source);
	add_member(&b, "commit", l->commit);
	add_member(&b, "policy", l->policy);
	add_member(&b, "installed", l->installed);
	add_member(&b, "tree", l->tree);
	zb_buf_adds(&b, "  \"files\": [");
	for (size_t i = 0; i < l->n_files; i++) {
		zb_buf_adds(&b, i ? ",\n    {" : "\n    {");
		add_path(&b, l->files[i].path);
		zb_buf_addf(&b, ",\"kind\":\"%c\",\"sha256\":\"%s\"}",
			    l->files[i].kind, l->files[i].sha256);
	}
	zb_buf_adds(&b, l->n_files ? "\n  ]\n}\n" : "]\n}\n");
	rc = b.failed ? zb_fail(err, ZB_ELIMIT, "write %s: too large", path)
		      : zb_write_file_atomic(path, b.data, b.len, 0600, err);
	zb_buf_done(&b);
	return rc;
}

static char *from_hex(char *hex)
{
	char *out = hex;

	for (char *p = hex; p && *p; p += 2) {
		char pair[3] = {p[0], p[1], '\0'}, *end;

		*out++ = (char)strtoul(pair, &end, 16);
		if (*end || end != pair + 2 || !out[-1]) {
			free(hex);
			return NULL;
		}
	}
	if (out)
		*out = '\0';
	return hex;
}

static char *member(const struct zb_json *j, uint32_t obj, const char *key)
{
	uint32_t t = zb_json_get(j, obj, key);

	return t == ZB_JSON_NONE ? NULL : zb_json_dup_string(j, t);
}

static bool is_hash(const char *s)
{
	return s && strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

static bool read_one(struct zb_lock *l, size_t *cap, const struct zb_json *j,
		     uint32_t t)
{
	zb_auto(free) char *path = member(j, t, "path");
	zb_auto(free) char *kind = member(j, t, "kind");
	zb_auto(free) char *hash = member(j, t, "sha256");
	struct zb_lock_file *f;

	if (!path)
		path = from_hex(member(j, t, "path_hex"));
	if (!path || !*path || !kind || !is_hash(hash) || strlen(kind) != 1 ||
	    !strchr("fxl", kind[0]) || l->n_files > MAX_FILES)
		return false;
	f = new_file(l, cap);
	if (!f)
		return false;
	f->kind = kind[0];
	memcpy(f->sha256, hash, 65);
	f->path = zb_steal(&path);
	l->n_files++;
	/* In order, so each is there once. */
	return l->n_files < 2 || by_path(f - 1, f) < 0;
}

static bool read_members(struct zb_lock *l, const struct zb_json *j)
{
	uint32_t files = zb_json_get(j, 0, "files"), t;
	uint32_t version = zb_json_get(j, 0, "zotbox_lock");
	zb_auto(free) char *tree = NULL;
	int64_t v = 0;
	size_t cap = 0;

	if (version == ZB_JSON_NONE || !zb_json_int(j, version, &v) || v != 1 ||
	    files == ZB_JSON_NONE || j->tok[files].type != ZB_JSON_ARRAY)
		return false;
	l->source = member(j, 0, "source");
	l->commit = member(j, 0, "commit");
	l->policy = member(j, 0, "policy");
	l->installed = member(j, 0, "installed");
	l->tree = member(j, 0, "tree");
	for (t = zb_json_first(j, files); t != ZB_JSON_NONE;
	     t = zb_json_next(j, t))
		if (!read_one(l, &cap, j, t))
			return false;
	tree = tree_hash(l);
	return tree && l->tree && !strcmp(tree, l->tree);
}

int zb_lock_read(struct zb_lock *out, const char *path, struct zb_error *err)
{
	struct zb_buf text = {.max = MAX_LOCK};
	struct zb_json json = {0};
	struct zb_json_fault fault = {0};
	struct zb_lock l = {0};
	int rc = zb_read_file(path, MAX_LOCK, &text, err);

	if (rc)
		goto out;
	if (zb_json_scan(&json, zb_buf_str(&text), text.len, NULL, &fault))
		rc = zb_fail(err, ZB_EUSAGE, "%s:%u:%u: %s", path, fault.line,
			     fault.column, fault.what);
	else if (!read_members(&l, &json))
		rc = zb_fail(err, ZB_EUSAGE, "%s: this is no lock file", path);
out:
	zb_json_done(&json);
	zb_buf_done(&text);
	if (rc)
		zb_lock_done(&l);
	else
		*out = l;
	return rc;
}

/* ---- comparing ----------------------------------------------------------- */

static int add_diff(struct zb_strv *diff, size_t *n, const char *word,
		    const char *path)
{
	struct zb_buf b = {0};

	if ((*n)++ >= MAX_DIFF)
		return 0;
	zb_buf_addf(&b, "%s ", word);
	zb_text_escape(&b, path, strlen(path), 512);
	return zb_strv_take(diff, zb_buf_steal(&b));
}

/* Both lists are in the byte order of their paths. */
int zb_lock_diff(const struct zb_lock *was, const struct zb_lock *now,
		 struct zb_strv *diff)
{
	size_t a = 0, b = 0, n = 0;
	int rc = 0;

	if (was->tree && now->tree && !strcmp(was->tree, now->tree))
		return 0;
	while (!rc && (a < was->n_files || b < now->n_files)) {
		const struct zb_lock_file *x =
			a < was->n_files ? &was->files[a] : NULL;
		const struct zb_lock_file *y =
			b < now->n_files ? &now->files[b] : NULL;
		int order = !x ? 1 : !y ? -1 : by_path(x, y);

		if (order < 0)
			rc = add_diff(diff, &n, "removed", x->path);
		else if (order > 0)
			rc = add_diff(diff, &n, "added", y->path);
		else if (x->kind != y->kind || strcmp(x->sha256, y->sha256))
			rc = add_diff(diff, &n, "changed", y->path);
		a += order <= 0;
		b += order >= 0;
	}
	if (!rc && n > MAX_DIFF)
		rc = zb_strv_addf(diff, "and %zu more", n - MAX_DIFF);
	return rc;
}

int zb_lock_compare(const struct zb_lock *l, const char *dir,
		    const char *shipped, struct zb_strv *diff,
		    struct zb_error *err)
{
	struct zb_lock now = {0};
	int rc = zb_lock_make(&now, dir, shipped, err);

	if (rc)
		return rc;
	rc = zb_lock_diff(l, &now, diff);
	if (rc)
		zb_fail(err, ZB_ELIMIT, "out of memory");
	zb_lock_done(&now);
	return rc ? ZB_ELIMIT : 0;
}
