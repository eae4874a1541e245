/* ledger.c - recording refusals.
 *
 * A kind is what zb_denial_same() says. The first hit of a kind is written at
 * once, to the ledger and as a line to the log; after that only a number
 * grows, and every two seconds the kinds that grew get one more line with what
 * was added. So a retry loop costs a line every two seconds, and a reader who
 * sums the lines has exact counts, whenever the writer ends.
 *
 * An extension chooses how many kinds there are, by asking for names nobody
 * has thought of. Beyond the bounds of ledger.h a new kind is not kept: it is
 * counted, per operation, into one record that says so. Kinds that were kept
 * before go on being counted exactly.
 *
 * One lock guards it all. Files are written under it: that is some
 * microseconds a new kind, and there are few of those.
 */
#include "ledger.h"

#include "cleanup.h"
#include "extlog.h"
#include "json_scan.h"
#include "ledger_file.h"
#include "manifest.h"
#include "path_match.h"
#include "store.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define STRING_MAX ((size_t)4096)
#define SLOTS	   4096u /* a power of two */
/* Lines of repeats a flush; the others wait for the next one. */
#define FLUSH_MAX 64u

/* An operation, and the same below HOME. */
#define CLASSES	     (2 * ZB_OP_COUNT)
#define KINDS_MAX    (ZB_LEDGER_KINDS_SESSION + CLASSES * ZB_LEDGER_KINDS_RESERVED)
#define RESERVED_MAX ((size_t)4096) /* bytes of a record in the reserve */

_Static_assert(SLOTS * 3 >= KINDS_MAX * 4, "the table has room");

struct kind {
	struct zb_denial d;	   /* as of the first hit; never changes */
	uint64_t pending;	   /* hits that are in no line of the ledger */
	int64_t first_ms, last_ms; /* of these */
	uint64_t total;
	uint64_t shown; /* the total that the log last spoke of */
};

struct zb_ledger {
	pthread_mutex_t lock;
	struct zb_ledger_file file;
	struct zb_extlog log;
	char *ext, *session, *home;
	bool by_path; /* see struct zb_denial */
	void (*on_first)(void *ctx, const struct zb_denial *d);
	void *ctx;
	struct kind *kinds[KINDS_MAX];
	size_t n_kinds, kept_bytes;
	uint16_t slots[SLOTS]; /* place in kinds plus one */
	struct kind *folded[ZB_OP_COUNT];
	int64_t window_ms; /* monotonic start of the window */
	size_t window_kinds;
	unsigned class_kinds[CLASSES];
	size_t next; /* where the last flush stopped */
	uint64_t by_op[ZB_OP_COUNT];
	int trouble; /* errno of the ledger file, 0: none */
};

static int64_t now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- opening, closing ---- */

static void free_kind(struct kind *k)
{
	if (k)
		zb_denial_done(&k->d);
	free(k);
}

static void free_ledger(struct zb_ledger *l)
{
	for (size_t i = 0; i < l->n_kinds; i++)
		free_kind(l->kinds[i]);
	for (size_t i = 0; i < ZB_OP_COUNT; i++)
		free_kind(l->folded[i]);
	zb_ledger_file_done(&l->file);
	zb_extlog_close(&l->log);
	free(l->ext);
	free(l->session);
	free(l->home);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* Ledger trouble is said once when it comes and once when it goes. */
static void note_trouble(struct zb_ledger *l, int sys)
{
	struct zb_buf b = {0};

	if (sys == l->trouble)
		return;
	if (sys)
		zb_buf_addf(&b,
			    "%s cannot be written: %s; it is tried again, and "
			    "what was denied is counted",
			    l->file.path, strerror(sys));
	else
		zb_buf_addf(&b, "%s is written again", l->file.path);
	l->trouble = sys;
	zb_extlog_ours(&l->log, zb_buf_str(&b), b.len);
	zb_buf_done(&b);
}

static bool append(struct zb_ledger *l, struct zb_buf *line)
{
	int rc;

	zb_buf_addc(line, '\n');
	if (line->failed)
		return false;
	rc = zb_ledger_file_append(&l->file, line->data, line->len);
	note_trouble(l, -rc);
	return !rc;
}

/* The start stands in the ledger even if nothing will be denied: "the last
 * session" must not be an older one. */
static int note_start(struct zb_ledger *l, struct zb_error *err)
{
	struct zb_buf b = {0};

	zb_buf_adds(&b, "{\"v\":1,\"note\":\"start\",\"session\":");
	zb_json_quote(&b, l->session, strlen(l->session));
	zb_buf_addc(&b, '}');
	append(l, &b);
	zb_buf_done(&b);
	if (!l->trouble || zb_disk_is_full(l->trouble))
		return 0;
	return zb_fail_sys(err, l->trouble, "write %s", l->file.path);
}

int zb_ledger_open(struct zb_ledger **out, const struct zb_ledger_config *cfg,
		   struct zb_error *err)
{
	const char *file = cfg->file ? cfg->file : cfg->ext;
	struct zb_ledger *l;
	struct zb_error why = {0};
	int rc;

	if (!zb_name_valid(cfg->ext) || !cfg->session)
		return zb_fail(err, ZB_EUSAGE,
			       "ledger: not an extension's name");
	if (zb_make_dirs(cfg->logs_dir, 0755, &why) &&
	    !zb_disk_is_full(why.sys)) {
		if (err)
			*err = why;
		return why.code;
	}
	l = calloc(1, sizeof(*l));
	if (!l)
		return zb_fail(err, ZB_ELIMIT, "ledger: out of memory");
	pthread_mutex_init(&l->lock, NULL);
	l->log.fd = -1;
	l->file.fd = -1;
	l->file.path = zb_ledger_path(cfg->logs_dir, file, "");
	l->file.older = zb_ledger_path(cfg->logs_dir, file, ".1");
	l->ext = zb_strdup(cfg->ext);
	l->by_path = file[0] == '@';
	l->session = zb_strdup(cfg->session);
	l->home = zb_strdup(cfg->home);
	l->on_first = cfg->on_first;
	l->ctx = cfg->ctx;
	l->window_ms = now_ms(CLOCK_MONOTONIC);
	rc = zb_extlog_open(&l->log,
			    zb_strf("%s/ext-%s.log", cfg->logs_dir, file),
			    cfg->log_fd, cfg->log_bytes, err);
	if (!rc)
		rc = note_start(l, err);
	if (rc)
		free_ledger(l);
	else
		*out = l;
	return rc;
}

/* ---- recording ---- */

static struct zb_denial delta(const struct kind *k)
{
	struct zb_denial d = k->d;

	d.count = k->pending;
	d.first_ms = k->first_ms;
	d.last_ms = k->last_ms;
	return d;
}

/* Write what @k has pending. */
static bool write_kind(struct zb_ledger *l, struct kind *k)
{
	struct zb_denial d = delta(k);
	struct zb_buf b = {0};
	bool ok;

	zb_denial_json(&d, &b);
	ok = append(l, &b);
	if (ok)
		k->pending = 0;
	zb_buf_done(&b);
	return ok;
}

static void log_kind(struct zb_ledger *l, struct kind *k)
{
	struct zb_denial d = k->d;
	struct zb_buf b = {0};

	d.count = k->total;
	zb_denial_text(&d, l->home, &b);
	zb_extlog_ours(&l->log, zb_buf_str(&b), b.len);
	k->shown = k->total;
	zb_buf_done(&b);
}

/* Cut a string of the extension to a length that fits into a record. Return:
 * whether it was cut. */
static bool clip(char *s)
{
	size_t n = STRING_MAX;

	if (!s || strlen(s) <= n)
		return false;
	while (n > STRING_MAX - 4 && ((unsigned char)s[n] & 0xc0) == 0x80)
		n--;
	s[n] = '\0';
	return true;
}

static void fill(const struct zb_ledger *l, struct zb_denial *d)
{
	int64_t now = now_ms(CLOCK_REALTIME);

	if (!d->ext)
		d->ext = zb_strdup(l->ext);
	d->by_path = l->by_path;
	if (!d->session)
		d->session = zb_strdup(l->session);
	if (!d->count)
		d->count = 1;
	if (!d->last_ms)
		d->last_ms = now;
	if (!d->first_ms)
		d->first_ms = d->last_ms;
	clip(d->detail);
	clip(d->exe);
	clip(d->syscall);
	clip(d->asked);
	clip(d->rule);
	clip(d->why_not);
	if (clip(d->target) || clip(d->grant_value)) {
		/* Half a name is another name. */
		free(d->grant_key);
		d->grant_key = NULL;
		free(d->why_not);
		d->why_not = zb_strdup("the name is too long to be recorded");
	}
}

static size_t record_size(const struct zb_denial *d)
{
	const char *const strings[] = {
		d->exe,	 d->syscall, d->asked,	     d->target,
		d->rule, d->detail,  d->grant_value, d->why_not,
	};
	size_t n = 400;

	for (size_t i = 0; i < ZB_ARRAY_LEN(strings); i++)
		n += strings[i] ? strlen(strings[i]) : 0;
	return n;
}

/* The slot of @d's kind: its own, or the free one where it belongs. */
static uint16_t *slot_of(struct zb_ledger *l, const struct zb_denial *d)
{
	size_t i = zb_denial_hash(d) % SLOTS;

	while (l->slots[i] && !zb_denial_same(&l->kinds[l->slots[i] - 1]->d, d))
		i = (i + 1) % SLOTS;
	return &l->slots[i];
}

static unsigned class_of(const struct zb_ledger *l, const struct zb_denial *d)
{
	bool personal =
		l->home && d->target && zb_path_below(d->target, l->home);

	return (unsigned)d->op + (personal ? (unsigned)ZB_OP_COUNT : 0u);
}

static bool has_room(struct zb_ledger *l, const struct zb_denial *d)
{
	int64_t now = now_ms(CLOCK_MONOTONIC);

	if (now - l->window_ms >= ZB_LEDGER_WINDOW_MS) {
		l->window_ms = now;
		l->window_kinds = 0;
	}
	if (l->class_kinds[class_of(l, d)] < ZB_LEDGER_KINDS_RESERVED &&
	    record_size(d) <= RESERVED_MAX)
		return true;
	return l->n_kinds < ZB_LEDGER_KINDS_SESSION &&
	       l->window_kinds < ZB_LEDGER_KINDS_WINDOW &&
	       l->kept_bytes + record_size(d) <= ZB_LEDGER_BYTES_SESSION;
}

/* Takes @d. */
static struct kind *new_kind(struct zb_ledger *l, uint16_t *slot,
			     struct zb_denial *d)
{
	struct kind *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	l->kept_bytes += record_size(d);
	l->window_kinds++;
	l->class_kinds[class_of(l, d)]++;
	k->d = *d;
	*d = (struct zb_denial){0};
	l->kinds[l->n_kinds++] = k;
	*slot = (uint16_t)l->n_kinds;
	return k;
}

/* The record for what is not kept one by one. */
static struct kind *folded_kind(struct zb_ledger *l, const struct zb_denial *d,
				bool *first)
{
	struct kind *k = l->folded[d->op];

	*first = !k;
	if (k)
		return k;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->d = (struct zb_denial){
		.op = d->op,
		.ext = zb_strdup(l->ext),
		.session = zb_strdup(l->session),
		.by = d->by,
		.floor = d->floor,
		.evidence = d->evidence,
		.rule = zb_strf("more different ones than are listed one by "
				"one (%u in %u s, %u a session)",
				ZB_LEDGER_KINDS_WINDOW,
				ZB_LEDGER_WINDOW_MS / 1000,
				ZB_LEDGER_KINDS_SESSION),
		.why_not = zb_strdup("they are counted only"),
		.count = d->count,
		.first_ms = d->first_ms,
		.last_ms = d->last_ms,
	};
	l->folded[d->op] = k;
	return k;
}

static void hit(struct kind *k, uint64_t count, int64_t first, int64_t last)
{
	if (!k->pending || first < k->first_ms)
		k->first_ms = first;
	if (!k->pending || last > k->last_ms)
		k->last_ms = last;
	k->pending += count;
	k->total += count;
}

/* Count @d. Return: its kind if this is the first hit of it, else NULL. */
static struct kind *count(struct zb_ledger *l, struct zb_denial *d)
{
	uint64_t n = d->count;
	int64_t first = d->first_ms, last = d->last_ms;
	uint16_t *slot = slot_of(l, d);
	bool is_new = !*slot;
	struct kind *k;

	l->by_op[d->op] += n;
	if (!is_new)
		k = l->kinds[*slot - 1];
	else if (has_room(l, d))
		k = new_kind(l, slot, d);
	else
		k = folded_kind(l, d, &is_new);
	if (!k)
		return NULL;
	hit(k, n, first, last);
	return is_new ? k : NULL;
}

void zb_ledger_record(struct zb_ledger *l, struct zb_denial *d)
{
	struct kind *first;

	if ((unsigned)d->op >= ZB_OP_COUNT) {
		zb_denial_done(d);
		return;
	}
	fill(l, d);
	pthread_mutex_lock(&l->lock);
	first = count(l, d);
	if (first) {
		write_kind(l, first);
		log_kind(l, first);
	}
	pthread_mutex_unlock(&l->lock);
	zb_denial_done(d);
	/* Not under the lock: it may say something. A kind stays where it is
	 * until the ledger is closed, and its record never changes. */
	if (first && l->on_first)
		l->on_first(l->ctx, &first->d);
}

/* ---- the log ---- */

void zb_ledger_say(struct zb_ledger *l, const char *fmt, ...)
{
	struct zb_buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	zb_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&l->lock);
	zb_extlog_ours(&l->log, zb_buf_str(&b), b.len);
	pthread_mutex_unlock(&l->lock);
	zb_buf_done(&b);
}

void zb_ledger_stderr(struct zb_ledger *l, const char *p, size_t n)
{
	pthread_mutex_lock(&l->lock);
	zb_extlog_theirs(&l->log, p, n);
	pthread_mutex_unlock(&l->lock);
}

int zb_ledger_stderr_head(struct zb_ledger *l, unsigned lines,
			  struct zb_buf *out)
{
	int rc;

	pthread_mutex_lock(&l->lock);
	rc = zb_extlog_head(&l->log, lines, out);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

/* ---- repeats ---- */

/* Write the pending hits of @k, and a line to the log when it is due: the
 * total grew tenfold, or this is the end. */
static bool settle(struct zb_ledger *l, struct kind *k, bool at_end)
{
	bool ok = !k->pending || write_kind(l, k);

	if (k->total >= 10 * k->shown || (at_end && k->total != k->shown))
		log_kind(l, k);
	return ok;
}

/* The others come next time; where it stopped is remembered, so that each has
 * its turn. */
static void flush(struct zb_ledger *l, bool at_end)
{
	size_t budget = at_end ? SIZE_MAX : FLUSH_MAX;
	bool ok = true;

	for (size_t op = 0; op < ZB_OP_COUNT && (ok || at_end); op++)
		if (l->folded[op])
			ok = settle(l, l->folded[op], at_end);
	for (size_t i = 0; i < l->n_kinds && (ok || at_end) && budget; i++) {
		struct kind *k = l->kinds[l->next++ % l->n_kinds];

		if (!k->pending && (!at_end || k->total == k->shown))
			continue;
		ok = settle(l, k, at_end);
		budget--;
	}
}

void zb_ledger_flush(struct zb_ledger *l)
{
	pthread_mutex_lock(&l->lock);
	flush(l, false);
	zb_extlog_tick(&l->log);
	pthread_mutex_unlock(&l->lock);
}

int zb_ledger_summary(struct zb_ledger *l, struct zb_buf *out)
{
	const char *sep = "";

	pthread_mutex_lock(&l->lock);
	for (unsigned op = 0; op < ZB_OP_COUNT; op++)
		if (l->by_op[op]) {
			zb_buf_addf(out, "%s%llu %s", sep,
				    (unsigned long long)l->by_op[op],
				    zb_op_name((enum zb_op)op));
			sep = ", ";
		}
	pthread_mutex_unlock(&l->lock);
	return out->failed ? ZB_ELIMIT : 0;
}

void zb_ledger_close(struct zb_ledger *l)
{
	if (!l)
		return;
	flush(l, true);
	free_ledger(l);
}
