/* ledger_read.c - the ledger read back: every file of it, records summed per
 * kind. Rotation uses the same sums to squeeze repeats out of a file. */
#include "cleanup.h"
#include "fdutil.h"
#include "json_scan.h"
#include "ledger_file.h"
#include "store.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

/* The writers keep a file near ZB_LEDGER_FILE_MAX. */
#define READ_MAX (4 * ZB_LEDGER_FILE_MAX)

char *zb_ledger_path(const char *logs_dir, const char *ext, const char *suffix)
{
	return zb_strf("%s/ext-%s.denials.jsonl%s", logs_dir, ext, suffix);
}

void zb_ledger_sum_done(struct zb_ledger_sum *s)
{
	for (size_t i = 0; i < s->n; i++)
		zb_denial_done(&s->v[i]);
	free(s->v);
	free(s->index);
	free(s->session);
	*s = (struct zb_ledger_sum){0};
}

/* Slot of the kind of @d: free (0) or its place in v plus one. */
static uint32_t *slot_of(struct zb_ledger_sum *s, const struct zb_denial *d)
{
	size_t i = zb_denial_hash(d) & (s->index_size - 1);

	while (s->index[i] && !zb_denial_same(&s->v[s->index[i] - 1], d))
		i = (i + 1) & (s->index_size - 1);
	return &s->index[i];
}

static bool make_room(struct zb_ledger_sum *s)
{
	size_t cap = s->cap ? s->cap * 2 : 64;
	struct zb_denial *v;
	uint32_t *index;

	if (s->n < s->cap)
		return true;
	v = realloc(s->v, cap * sizeof(*v));
	if (!v)
		return false;
	s->v = v;
	index = calloc(cap * 2, sizeof(*index));
	if (!index)
		return false;
	free(s->index);
	s->index = index;
	s->index_size = cap * 2;
	s->cap = cap;
	for (size_t i = 0; i < s->n; i++)
		*slot_of(s, &s->v[i]) = (uint32_t)i + 1;
	return true;
}

/* Takes @d. */
static bool add_record(struct zb_ledger_sum *s, struct zb_denial *d)
{
	struct zb_denial *sum;
	uint32_t *slot;

	s->lines++;
	if (!s->oldest_ms || d->first_ms < s->oldest_ms)
		s->oldest_ms = d->first_ms;
	if (d->last_ms < s->since_ms) {
		zb_denial_done(d);
		return true;
	}
	if (!make_room(s)) {
		zb_denial_done(d);
		return false;
	}
	slot = slot_of(s, d);
	if (!*slot) {
		s->v[s->n++] = *d;
		*slot = (uint32_t)s->n;
		return true;
	}
	sum = &s->v[*slot - 1];
	sum->count += d->count;
	if (d->first_ms < sum->first_ms)
		sum->first_ms = d->first_ms;
	if (d->last_ms > sum->last_ms)
		sum->last_ms = d->last_ms;
	zb_denial_done(d);
	return true;
}

static void add_note(struct zb_ledger_sum *s, const struct zb_json *j)
{
	char *session = zb_json_dup_string(j, zb_json_get(j, 0, "session"));
	char *oldest = zb_json_dup_string(j, zb_json_get(j, 0, "oldest"));
	int64_t n;

	if (session &&
	    strncmp(session, ZB_LEDGER_PROBE, strlen(ZB_LEDGER_PROBE)) != 0) {
		free(s->session);
		s->session = zb_steal(&session);
	}
	if (oldest && zb_time_parse(oldest, 0, &n) &&
	    (!s->oldest_ms || n < s->oldest_ms))
		s->oldest_ms = n;
	/* Each note counts all that was dropped before it. */
	if (zb_json_int(j, zb_json_get(j, 0, "dropped"), &n) && n >= 0 &&
	    (uint64_t)n > s->dropped)
		s->dropped = (uint64_t)n;
	free(session);
	free(oldest);
}

/* A line: a record, a note, or torn. Return: false when out of memory. */
static bool add_line(struct zb_ledger_sum *s, struct zb_json *j,
		     const char *line, size_t len)
{
	static const char note[] = "{\"v\":1,\"note\":";
	struct zb_denial d;
	int rc;

	if (len > sizeof(note) && !memcmp(line, note, sizeof(note) - 1)) {
		if (!zb_json_scan(j, line, len, NULL, NULL))
			add_note(s, j);
		return true;
	}
	rc = zb_denial_parse(&d, line, len, NULL);
	if (rc)
		return rc == ZB_EUSAGE;
	return add_record(s, &d);
}

int zb_ledger_sum_file(struct zb_ledger_sum *s, const char *path,
		       struct zb_error *err)
{
	struct zb_error why = {0};
	struct zb_buf b = {0};
	struct zb_json j = {0};
	bool ok = true;
	int rc = zb_read_file(path, READ_MAX, &b, &why);

	if (rc && why.sys == ENOENT) {
		zb_buf_done(&b);
		return 0;
	}
	if (rc && err)
		*err = why;
	for (size_t at = 0; !rc && ok && at < b.len;) {
		const char *line = b.data + at;
		const char *nl = memchr(line, '\n', b.len - at);
		size_t len = nl ? (size_t)(nl - line) : b.len - at;

		ok = add_line(s, &j, line, len);
		at += len + 1;
	}
	zb_json_done(&j);
	zb_buf_done(&b);
	return ok ? rc : zb_fail(err, ZB_ELIMIT, "%s: out of memory", path);
}

/* Hold the newest file against rotation, so that no record moves to the older
 * one behind our back. -1: there is none. */
static int hold(const char *path)
{
	for (int i = 0; i < 5; i++) {
		zb_auto(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
		off_t size;

		if (fd < 0)
			break;
		zb_ledger_lock(fd, LOCK_SH);
		if (zb_ledger_current(fd, path, &size))
			return zb_steal_fd(&fd);
	}
	return -1;
}

static int sum_all(struct zb_ledger_sum *s, const char *logs_dir,
		   const char *ext, struct zb_error *err)
{
	zb_auto(free) char *older = zb_ledger_path(logs_dir, ext, ".1");
	zb_auto(free) char *path = zb_ledger_path(logs_dir, ext, "");
	zb_auto(fd) int held = path ? hold(path) : -1;
	int rc;

	if (!older || !path)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	(void)held;
	rc = zb_ledger_sum_file(s, older, err);
	return rc ? rc : zb_ledger_sum_file(s, path, err);
}

static int by_age(const void *pa, const void *pb)
{
	const struct zb_denial *a = pa, *b = pb;

	return (a->first_ms > b->first_ms) - (a->first_ms < b->first_ms);
}

/* Keep the records of @session only; NULL: all. */
static void keep_session(struct zb_ledger_sum *s, const char *session)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++) {
		const char *of = s->v[i].session;

		if (session && (!of || strcmp(of, session) != 0))
			zb_denial_done(&s->v[i]);
		else
			s->v[kept++] = s->v[i];
	}
	s->n = kept;
}

int zb_ledger_read(const char *logs_dir, const char *ext, int64_t since_ms,
		   const char *session, struct zb_denial **out, size_t *n,
		   struct zb_error *err)
{
	struct zb_ledger_sum s = {.since_ms = since_ms};
	int rc = sum_all(&s, logs_dir, ext, err);

	if (!rc) {
		if (session && !*session)
			session = s.session ? s.session : "";
		keep_session(&s, session);
		if (s.n)
			qsort(s.v, s.n, sizeof(*s.v), by_age);
		*out = s.v;
		*n = s.n;
		s.v = NULL;
		s.n = 0;
	}
	zb_ledger_sum_done(&s);
	return rc;
}

int zb_ledger_past(const char *logs_dir, const char *ext,
		   struct zb_ledger_past *out, struct zb_error *err)
{
	struct zb_ledger_sum s = {.since_ms = INT64_MAX};
	int rc = sum_all(&s, logs_dir, ext, err);

	if (!rc)
		*out = (struct zb_ledger_past){s.oldest_ms, s.dropped};
	zb_ledger_sum_done(&s);
	return rc;
}
