/* cmd_ext_logs.c - zotbox ext logs: the text log, or the denials.
 *
 * Following denials means reading the ledger again when its files changed:
 * repeats are written late and as counts that add up, so that a record is new
 * if it was not there, and has grown if its count has. Times do not tell. */
#include "backend.h"
#include "cleanup.h"
#include "cmd.h"
#include "discover.h"
#include "fdutil.h"
#include "ledger.h"
#include "prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
	OPT_FOLLOW,
	OPT_DENIALS,
	OPT_SINCE,
	OPT_JSON
};

/* A line without an end is shown in pieces of this size. */
#define LINE_MAX_SHOWN ((size_t)1 << 20)

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void nap(void)
{
	struct timespec t = {.tv_nsec = 200 * 1000 * 1000};

	nanosleep(&t, NULL);
}

/* What cannot be seen on this host, so that nothing reads as "none". */
static void say_blind_spots(const char *since)
{
	const struct zb_backend *b = zb_backend_native();
	struct zb_host host = {0};

	zb_cmd_say("no denials are recorded%s%s; what could not be seen here:",
		   since ? " since " : "", since ? since : "");
	if (b->probe)
		b->probe(&host, NULL);
	for (size_t i = 0; i < host.blind_spots.n; i++)
		zb_cmd_say("  %s", host.blind_spots.v[i]);
	zb_host_done(&host);
}

/* ---- denials ------------------------------------------------------------- */

/* What was printed already: kinds and their counts. */
struct printed {
	struct {
		struct zb_denial d;
		uint64_t hash;
	} * v;
	size_t n, cap;
};

struct view {
	const struct zb_store *store;
	const char *name, *since;
	int64_t since_ms;
	bool json, follow;
	struct printed printed;
	size_t total;
};

static void printed_done(struct printed *p)
{
	for (size_t i = 0; i < p->n; i++)
		zb_denial_done(&p->v[i].d);
	free(p->v);
}

/* Is it new, or has it grown? It is taken as printed then. */
static bool is_news(struct printed *p, const struct zb_denial *d)
{
	uint64_t hash = zb_denial_hash(d);

	for (size_t i = 0; i < p->n; i++) {
		bool grown;

		if (p->v[i].hash != hash || !zb_denial_same(&p->v[i].d, d))
			continue;
		grown = d->count > p->v[i].d.count;
		p->v[i].d.count = d->count;
		return grown;
	}
	if (p->n == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 64;
		void *v = realloc(p->v, cap * sizeof(*p->v));

		if (!v)
			return true;
		p->v = v;
		p->cap = cap;
	}
	if (!zb_denial_copy(&p->v[p->n].d, d))
		p->v[p->n++].hash = hash;
	return true;
}

static int print_record(struct zb_denial *d, const struct view *v)
{
	struct zb_buf line = {0};
	int rc;

	d->by_path = v->name[0] == '@';

	if (v->json) {
		zb_denial_json(d, &line);
	} else {
		zb_time_rfc3339(d->last_ms, &line);
		zb_buf_addc(&line, ' ');
		zb_denial_text(d, v->store->home, &line);
	}
	zb_buf_addc(&line, '\n');
	rc = line.failed ? ZB_ELIMIT : zb_cmd_out(line.data, line.len);
	zb_buf_done(&line);
	return rc;
}

static int print_news(struct view *v, struct zb_error *err)
{
	struct zb_denial *d = NULL;
	size_t n = 0;
	int rc = zb_ledger_read(v->store->logs, v->name, v->since_ms, NULL, &d,
				&n, err);

	for (size_t i = 0; i < n; i++) {
		if (!rc && (!v->follow || is_news(&v->printed, &d[i]))) {
			v->total++;
			if (print_record(&d[i], v))
				rc = ZB_ESYS;
		}
		zb_denial_done(&d[i]);
	}
	free(d);
	return rc;
}

/* What the files of the ledger look like from outside. */
static void look(const struct view *v, struct stat out[2])
{
	static const char *const ends[] = {"", ".1"};

	memset(out, 0, 2 * sizeof(*out));
	for (int i = 0; i < 2; i++) {
		zb_auto(free) char *path =
			zb_strf("%s/ext-%s.denials.jsonl%s", v->store->logs,
				v->name, ends[i]);

		if (!path || stat(path, &out[i]))
			out[i] = (struct stat){0};
	}
}

static bool same_look(const struct stat a[2], const struct stat b[2])
{
	for (int i = 0; i < 2; i++)
		if (a[i].st_ino != b[i].st_ino ||
		    a[i].st_size != b[i].st_size ||
		    a[i].st_mtim.tv_sec != b[i].st_mtim.tv_sec ||
		    a[i].st_mtim.tv_nsec != b[i].st_mtim.tv_nsec)
			return false;
	return true;
}

static int follow_denials(struct view *v, struct zb_error *err)
{
	struct stat then[2] = {0}, now[2];
	int rc = 0;

	while (!rc) {
		nap();
		look(v, now);
		if (same_look(then, now))
			continue;
		memcpy(then, now, sizeof(then));
		rc = print_news(v, err);
	}
	return rc;
}

static int denials(const struct zb_store *store, const char *name,
		   const struct zb_args *a, struct zb_error *err)
{
	struct view v = {
		.store = store,
		.name = name,
		.since = a->opt[OPT_SINCE],
		.json = a->opt[OPT_JSON],
		.follow = a->opt[OPT_FOLLOW],
	};
	int rc;

	if (v.since && !zb_time_parse(v.since, now_ms(), &v.since_ms))
		return zb_fail(
			err, ZB_EUSAGE,
			"--since %s: not a time; write minutes, hours or "
			"days before now (10m, 2h, 3d), or a point in "
			"time (2026-12-01T10:00:00Z)",
			v.since);
	rc = print_news(&v, err);
	if (!rc && !v.total)
		say_blind_spots(v.since);
	if (!rc && v.follow)
		rc = follow_denials(&v, err);
	printed_done(&v.printed);
	return rc;
}

/* ---- text ---------------------------------------------------------------- */

/* With what a terminal would act on made visible: the file has our escapes
 * already, but plain zot writes it raw. */
static int show(const char *p, size_t n)
{
	struct zb_buf out = {0};
	int rc;

	zb_cmd_visible(&out, p, n);
	rc = out.failed ? ZB_ELIMIT : zb_cmd_out(zb_buf_str(&out), out.len);
	zb_buf_done(&out);
	return rc;
}

/* How much of it can be shown: whole lines, or a piece of an endless one. */
static size_t showable(const struct zb_buf *rest)
{
	size_t n = rest->len;

	while (n && rest->data[n - 1] != '\n')
		n--;
	return n || rest->len < LINE_MAX_SHOWN ? n : rest->len;
}

/* Copy from @fd to its end; an unfinished line waits for the next call. */
static int drain(int fd, struct zb_buf *rest, struct zb_error *err)
{
	char block[1 << 15];

	for (;;) {
		ssize_t n = read(fd, block, sizeof(block));
		size_t whole;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return zb_fail_sys(err, errno, "read the log");
		if (!n)
			return 0;
		if (zb_buf_add(rest, block, (size_t)n))
			return zb_fail(err, ZB_ELIMIT, "out of memory");
		whole = showable(rest);
		if (whole && show(rest->data, whole))
			return ZB_ESYS;
		zb_buf_consume(rest, whole);
	}
}

/* Was the file replaced, or cut shorter than where we stand? Then from its
 * beginning; one that is not there (yet) is waited for. */
static void look_again(int *fd, const char *path)
{
	struct stat here, there;
	int next;

	if (fstat(*fd, &here) || stat(path, &there) ||
	    (here.st_ino == there.st_ino && here.st_dev == there.st_dev &&
	     lseek(*fd, 0, SEEK_CUR) <= there.st_size))
		return;
	next = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (next < 0)
		return;
	close(*fd);
	*fd = next;
}

static int text(const char *path, const char *name, bool follow,
		struct zb_error *err)
{
	zb_auto(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct zb_buf rest = {0};
	int rc;

	if (fd < 0 && errno == ENOENT) {
		zb_cmd_say("%s has no log yet: it was never started", name);
		return 0;
	}
	if (fd < 0)
		return zb_fail_sys(err, errno, "read %s", path);
	for (;;) {
		rc = drain(fd, &rest, err);
		if (rc || !follow)
			break;
		nap();
		look_again(&fd, path);
	}
	if (!rc && rest.len && show(rest.data, rest.len))
		rc = ZB_ESYS;
	zb_buf_done(&rest);
	return rc;
}

/* ---- the command --------------------------------------------------------- */

/* Logs outlive their extension, so its name need not be installed; but one
 * that never was has nothing to be silent about. */
static bool is_known(const struct zb_store *store, const char *name,
		     const char *log)
{
	zb_auto(free) char *ledger =
		zb_strf("%s/ext-%s.denials.jsonl", store->logs, name);
	struct zb_found_list list = {0};
	struct zb_error err = {0};
	const struct zb_found *f;
	bool known = !access(log, F_OK) || (ledger && !access(ledger, F_OK));

	if (!known && !zb_discover(&list, store, NULL, &err))
		known = !zb_discover_installed(&list, name, &f, &err);
	zb_found_list_done(&list);
	return known;
}

/* What stands in the files' names for NAME, or for the PATH of one that is not
 * installed; "@HASH" as it is. Heap, or NULL. */
static char *word_of(const char *arg, struct zb_error *err)
{
	struct zb_target t = {.path = arg};
	char *word;

	if (zb_name_valid(arg) ||
	    (arg[0] == '@' && zb_name_valid(arg + 1) && !strchr(arg, '.')))
		return zb_strdup(arg);
	word = strchr(arg, '/') ? zb_target_log(&t) : NULL;
	if (!word)
		zb_fail(err, ZB_EUSAGE,
			"\"%s\" is neither an extension's name nor the path "
			"of one",
			arg);
	return word;
}

int zb_cmd_ext_logs(const struct zb_args *a)
{
	struct zb_error err = {0};
	struct zb_store store = {0};
	zb_auto(free) char *name = word_of(a->arg[0], &err);
	zb_auto(free) char *log = NULL;
	int rc = 0;

	if (!name)
		return zb_cmd_fail(&err);
	if (zb_store_open(&store, &err))
		return zb_cmd_fail(&err);
	log = zb_strf("%s/ext-%s.log", store.logs, name);
	if (!log)
		rc = zb_fail(&err, ZB_ELIMIT, "out of memory");
	else if (!is_known(&store, name, log))
		rc = zb_fail(&err, ZB_EPOLICY,
			     "no extension \"%s\" is installed, and none has "
			     "left a log in %s (zotbox ext list shows what "
			     "there is)",
			     a->arg[0], store.logs);
	else if (!a->opt[OPT_DENIALS] && !a->opt[OPT_JSON] &&
		 !a->opt[OPT_SINCE])
		rc = text(log, name, a->opt[OPT_FOLLOW], &err);
	else
		rc = denials(&store, name, a, &err);
	zb_store_done(&store);
	if (err.code)
		return zb_cmd_fail(&err);
	return rc ? 1 : 0;
}
