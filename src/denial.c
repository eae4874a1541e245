/* denial.c - one refusal: the record, its merging, its two printed forms.
 *
 * The JSON form is for machines and keeps everything: bytes that are not UTF-8
 * stand beside it in hexadecimal, so that a record read back is the record
 * that was written. The text form is for people and keeps what helps: a line
 * that a terminal can show, and a command only if copying it does what it
 * seems to do.
 */
#include "denial.h"

#include "cleanup.h"
#include "json_scan.h"
#include "scope.h"
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 1024

/* @n digits at *@s, at most @max; moves *@s. */
static bool number(const char **s, size_t n, int64_t max, int64_t *out)
{
	*out = 0;
	for (; n; n--, ++*s) {
		if (**s < '0' || **s > '9')
			return false;
		*out = *out * 10 + (**s - '0');
	}
	return *out <= max;
}

/* ---- the names of errno values: the same on every system ---- */

#define E(name)                                                                \
	{                                                                      \
		name, #name                                                    \
	}

static const struct {
	int value;
	const char *name;
} errnos[] = {
	E(EPERM),
	E(ENOENT),
	E(ESRCH),
	E(EINTR),
	E(EIO),
	E(ENXIO),
	E(E2BIG),
	E(ENOEXEC),
	E(EBADF),
	E(ECHILD),
	E(EAGAIN),
	E(ENOMEM),
	E(EACCES),
	E(EFAULT),
	E(EBUSY),
	E(EEXIST),
	E(EXDEV),
	E(ENODEV),
	E(ENOTDIR),
	E(EISDIR),
	E(EINVAL),
	E(ENFILE),
	E(EMFILE),
	E(ENOTTY),
	E(EFBIG),
	E(ENOSPC),
	E(ESPIPE),
	E(EROFS),
	E(EMLINK),
	E(EPIPE),
	E(EDOM),
	E(ERANGE),
	E(EDEADLK),
	E(ENAMETOOLONG),
	E(ENOLCK),
	E(ENOSYS),
	E(ENOTEMPTY),
	E(ELOOP),
	E(EPROTO),
	E(EOVERFLOW),
	E(EILSEQ),
	E(ENOTSOCK),
	E(EDESTADDRREQ),
	E(EMSGSIZE),
	E(EPROTOTYPE),
	E(ENOPROTOOPT),
	E(EPROTONOSUPPORT),
	E(EOPNOTSUPP),
	E(EAFNOSUPPORT),
	E(EADDRINUSE),
	E(EADDRNOTAVAIL),
	E(ENETDOWN),
	E(ENETUNREACH),
	E(ENETRESET),
	E(ECONNABORTED),
	E(ECONNRESET),
	E(ENOBUFS),
	E(EISCONN),
	E(ENOTCONN),
	E(ETIMEDOUT),
	E(ECONNREFUSED),
	E(EHOSTUNREACH),
	E(EALREADY),
	E(EINPROGRESS),
	E(ECANCELED),
#ifdef EDQUOT
	E(EDQUOT),
#endif
#ifdef ESTALE
	E(ESTALE),
#endif
#ifdef ETXTBSY
	E(ETXTBSY),
#endif
#ifdef EUSERS
	E(EUSERS),
#endif
#ifdef EPFNOSUPPORT
	E(EPFNOSUPPORT),
#endif
#ifdef ESOCKTNOSUPPORT
	E(ESOCKTNOSUPPORT),
#endif
};

const char *zb_errno_name(int value)
{
	for (size_t i = 0; i < ZB_ARRAY_LEN(errnos); i++)
		if (errnos[i].value == value)
			return errnos[i].name;
	return NULL;
}

static bool errno_from_name(const char *name, int *out)
{
	size_t len = strlen(name);
	int64_t n;

	for (size_t i = 0; i < ZB_ARRAY_LEN(errnos); i++)
		if (!strcmp(errnos[i].name, name)) {
			*out = errnos[i].value;
			return true;
		}
	if (!len || len > 5 || !number(&name, len, 65535, &n) || !n)
		return false;
	*out = (int)n;
	return true;
}

/* ---- the record ---- */

#define AT(member) offsetof(struct zb_denial, member)

/* All its strings. */
static const size_t strings[] = {
	AT(detail),    AT(ext),		AT(session), AT(exe),
	AT(syscall),   AT(asked),	AT(target),  AT(rule),
	AT(grant_key), AT(grant_value), AT(why_not),
};

static char **string_at(struct zb_denial *d, size_t at)
{
	return (char **)((char *)d + at);
}

static char *const *const_string_at(const struct zb_denial *d, size_t at)
{
	return (char *const *)((const char *)d + at);
}

void zb_denial_done(struct zb_denial *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < ZB_ARRAY_LEN(strings); i++)
		free(*string_at(d, strings[i]));
	zb_strv_done(&d->exposes);
	*d = (struct zb_denial){0};
}

int zb_denial_copy(struct zb_denial *out, const struct zb_denial *in)
{
	struct zb_denial d = *in;
	bool ok = true;

	d.exposes = (struct zb_strv){0};
	for (size_t i = 0; i < ZB_ARRAY_LEN(strings); i++) {
		const char *from = *const_string_at(in, strings[i]);
		char **to = string_at(&d, strings[i]);

		*to = zb_strdup(from);
		ok = ok && (*to || !from);
	}
	if (!ok || zb_strv_copy(&d.exposes, &in->exposes)) {
		zb_denial_done(&d);
		return ZB_ELIMIT;
	}
	*out = d;
	return 0;
}

static bool equal(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

bool zb_denial_same(const struct zb_denial *a, const struct zb_denial *b)
{
	return a->op == b->op && a->err_no == b->err_no &&
	       equal(a->target, b->target) && equal(a->detail, b->detail) &&
	       equal(a->exe, b->exe) && equal(a->ext, b->ext) &&
	       equal(a->session, b->session);
}

static uint64_t hash_string(uint64_t h, const char *s)
{
	for (; s && *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	return (h ^ (s ? 0x100 : 0x101)) * UINT64_C(0x100000001b3);
}

uint64_t zb_denial_hash(const struct zb_denial *d)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	h = (h ^ (uint64_t)d->op) * UINT64_C(0x100000001b3);
	h = (h ^ (uint64_t)(unsigned)d->err_no) * UINT64_C(0x100000001b3);
	h = hash_string(h, d->target);
	h = hash_string(h, d->detail);
	h = hash_string(h, d->exe);
	h = hash_string(h, d->ext);
	return hash_string(h, d->session);
}

/* Why no grant is offered for @d; NULL: one is. */
static const char *no_grant(const struct zb_denial *d)
{
	if (!d->grant_key || !d->grant_value)
		return d->why_not ? d->why_not : "no rule covers it";
	if (d->evidence == ZB_EV_INFERRED)
		return "it was inferred, not seen";
	if (zb_utf8_check(d->grant_value, strlen(d->grant_value)) !=
	    strlen(d->grant_value))
		return "the name holds bytes that are not UTF-8";
	return NULL;
}

/* ---- JSON ---- */

static void add_op(struct zb_buf *out, const struct zb_denial *d, bool escape)
{
	zb_buf_adds(out, zb_op_name(d->op));
	if ((d->op != ZB_OP_PROTO && d->op != ZB_OP_LIMIT) || !d->detail)
		return;
	zb_buf_addc(out, '.');
	if (escape)
		zb_text_escape(out, d->detail, strlen(d->detail), 100);
	else
		zb_buf_adds(out, d->detail);
}

static void add_string(struct zb_buf *out, const char *key, const char *s)
{
	if (!s)
		return;
	zb_buf_addf(out, ",\"%s\":", key);
	zb_json_quote(out, s, strlen(s));
}

/* Bytes: beside text that is not UTF-8, its bytes in hexadecimal. */
static void add_bytes(struct zb_buf *out, const char *key, const char *s)
{
	static const char hex[] = "0123456789abcdef";

	if (!s)
		return;
	add_string(out, key, s);
	if (zb_utf8_check(s, strlen(s)) == strlen(s))
		return;
	zb_buf_addf(out, ",\"%s_hex\":\"", key);
	for (; *s; s++) {
		zb_buf_addc(out, hex[(unsigned char)*s >> 4]);
		zb_buf_addc(out, hex[*s & 15]);
	}
	zb_buf_addc(out, '"');
}

static void add_time(struct zb_buf *out, const char *key, int64_t ms)
{
	zb_buf_addf(out, ",\"%s\":\"", key);
	zb_time_rfc3339(ms, out);
	zb_buf_addc(out, '"');
}

static void add_errno(struct zb_buf *out, int value)
{
	const char *name = zb_errno_name(value);

	if (!value)
		return;
	if (name)
		add_string(out, "errno", name);
	else
		zb_buf_addf(out, ",\"errno\":\"%d\"", value);
}

static void add_grant(struct zb_buf *out, const struct zb_denial *d)
{
	const char *why = no_grant(d);

	if (why) {
		zb_buf_adds(out, ",\"grant\":null");
		add_string(out, "cannot", why);
		return;
	}
	zb_buf_adds(out, ",\"grant\":{\"key\":");
	zb_json_quote(out, d->grant_key, strlen(d->grant_key));
	add_string(out, "value", d->grant_value);
	zb_buf_adds(out, "},\"exposes\":[");
	for (size_t i = 0; i < d->exposes.n; i++) {
		if (i)
			zb_buf_addc(out, ',');
		zb_json_quote(out, d->exposes.v[i], strlen(d->exposes.v[i]));
	}
	zb_buf_addc(out, ']');
}

int zb_denial_json(const struct zb_denial *d, struct zb_buf *out)
{
	struct zb_buf op = {0};

	add_op(&op, d, false);
	zb_buf_adds(out, "{\"v\":1");
	add_time(out, "time", d->last_ms);
	add_string(out, "ext", d->ext);
	add_string(out, "session", d->session);
	if (d->pid > 0)
		zb_buf_addf(out, ",\"pid\":%d", d->pid);
	add_string(out, "exe", d->exe);
	add_string(out, "op", zb_buf_str(&op));
	add_string(out, "syscall", d->syscall);
	add_bytes(out, "asked", d->asked);
	add_bytes(out, "target", d->target);
	add_errno(out, d->err_no);
	add_string(out, "decided_by", zb_decider_name(d->by));
	add_string(out, "floor", zb_floor_name(d->floor));
	add_string(out, "rule", d->rule);
	add_string(out, "evidence", zb_evidence_name(d->evidence));
	zb_buf_addf(out, ",\"count\":%llu", (unsigned long long)d->count);
	add_time(out, "first", d->first_ms);
	add_time(out, "last", d->last_ms);
	add_grant(out, d);
	if (op.failed)
		out->failed = true;
	zb_buf_done(&op);
	return zb_buf_addc(out, '}');
}

/* ---- reading back ---- */

/* Members that are plain strings of the record. */
static const struct {
	const char *key;
	size_t at;
} members[] = {
	{"ext", AT(ext)},     {"session", AT(session)},
	{"exe", AT(exe)},     {"syscall", AT(syscall)},
	{"asked", AT(asked)}, {"target", AT(target)},
	{"rule", AT(rule)},   {"cannot", AT(why_not)},
};

static bool take_string(const struct zb_json *j, uint32_t obj, const char *key,
			char **out)
{
	uint32_t i = zb_json_get(j, obj, key);

	if (i == ZB_JSON_NONE)
		return true;
	free(*out);
	*out = zb_json_dup_string(j, i);
	return *out != NULL;
}

static int nibble(char c)
{
	const char *digits = "0123456789abcdef", *p = strchr(digits, c);

	return c && p ? (int)(p - digits) : -1;
}

/* KEY_hex has the true bytes of KEY. */
static bool take_hex(const struct zb_json *j, const char *key, char **out)
{
	char *hex = NULL;
	size_t n = 0;

	if (!take_string(j, 0, key, &hex))
		return false;
	if (!hex)
		return true;
	for (const char *p = hex; *p; p += 2) {
		int a = nibble(p[0]), b = a < 0 ? -1 : nibble(p[1]);

		if (b < 0 || !(a | b)) {
			free(hex);
			return false;
		}
		hex[n++] = (char)(a << 4 | b);
	}
	hex[n] = '\0';
	free(*out);
	*out = hex;
	return true;
}

static bool take_time(const struct zb_json *j, const char *key, int64_t *out)
{
	zb_auto(free) char *s = NULL;

	return take_string(j, 0, key, &s) && s && strchr(s, 'T') &&
	       zb_time_parse(s, 0, out);
}

static bool take_op(const struct zb_json *j, struct zb_denial *d)
{
	zb_auto(free) char *s = NULL;
	const char *rest = NULL;

	if (!take_string(j, 0, "op", &s) || !s)
		return false;
	if (!strncmp(s, "proto.", 6) || !strncmp(s, "limit.", 6)) {
		rest = s + 6;
		s[5] = '\0';
	}
	if (!zb_op_from_name(s, &d->op))
		return false;
	d->detail = zb_strdup(rest);
	return d->detail || !rest;
}

/* The index of a member's string among the @n names that @name gives. */
static bool take_name(const struct zb_json *j, const char *key,
		      const char *(*name)(unsigned), unsigned n, unsigned *out)
{
	uint32_t i = zb_json_get(j, 0, key);

	for (unsigned k = 0; k < n; k++)
		if (zb_json_is(j, i, name(k))) {
			*out = k;
			return true;
		}
	return false;
}

static const char *decider_name(unsigned i)
{
	return zb_decider_name((enum zb_decider)i);
}

static const char *floor_name(unsigned i)
{
	return zb_floor_name((enum zb_floor)i);
}

static const char *evidence_name(unsigned i)
{
	return zb_evidence_name((enum zb_evidence)i);
}

static bool take_names(const struct zb_json *j, struct zb_denial *d)
{
	unsigned by, fl, ev;

	if (!take_name(j, "decided_by", decider_name, ZB_BY_COUNT, &by) ||
	    !take_name(j, "floor", floor_name, ZB_FLOOR_COUNT, &fl) ||
	    !take_name(j, "evidence", evidence_name, ZB_EV_COUNT, &ev))
		return false;
	d->by = (enum zb_decider)by;
	d->floor = (enum zb_floor)fl;
	d->evidence = (enum zb_evidence)ev;
	return true;
}

static bool take_numbers(const struct zb_json *j, struct zb_denial *d)
{
	zb_auto(free) char *name = NULL;
	uint32_t pid = zb_json_get(j, 0, "pid");
	int64_t n = 0;

	if (!zb_json_int(j, zb_json_get(j, 0, "count"), &n) || n < 1)
		return false;
	d->count = (uint64_t)n;
	if (pid != ZB_JSON_NONE) {
		if (!zb_json_int(j, pid, &n) || n < 1 || n > INT32_MAX)
			return false;
		d->pid = (int)n;
	}
	if (!take_string(j, 0, "errno", &name))
		return false;
	return !name || errno_from_name(name, &d->err_no);
}

static bool take_grant(const struct zb_json *j, struct zb_denial *d)
{
	uint32_t grant = zb_json_get(j, 0, "grant");
	uint32_t list = zb_json_get(j, 0, "exposes");

	if (grant != ZB_JSON_NONE && j->tok[grant].type == ZB_JSON_OBJECT &&
	    (!take_string(j, grant, "key", &d->grant_key) ||
	     !take_string(j, grant, "value", &d->grant_value)))
		return false;
	for (uint32_t i = zb_json_first(j, list); i != ZB_JSON_NONE;
	     i = zb_json_next(j, i))
		if (zb_strv_take(&d->exposes, zb_json_dup_string(j, i)))
			return false;
	return true;
}

static bool take_all(const struct zb_json *j, struct zb_denial *d)
{
	int64_t v;

	if (j->tok[0].type != ZB_JSON_OBJECT ||
	    !zb_json_int(j, zb_json_get(j, 0, "v"), &v) || v != 1)
		return false;
	for (size_t i = 0; i < ZB_ARRAY_LEN(members); i++)
		if (!take_string(j, 0, members[i].key,
				 string_at(d, members[i].at)))
			return false;
	return d->ext && take_hex(j, "asked_hex", &d->asked) &&
	       take_hex(j, "target_hex", &d->target) && take_op(j, d) &&
	       take_names(j, d) && take_numbers(j, d) &&
	       take_time(j, "first", &d->first_ms) &&
	       take_time(j, "last", &d->last_ms) && take_grant(j, d);
}

int zb_denial_parse(struct zb_denial *out, const char *line, size_t len,
		    struct zb_error *err)
{
	struct zb_denial d = {0};
	struct zb_json_fault fault;
	struct zb_json j = {0};
	int rc = zb_json_scan(&j, line, len, NULL, &fault);

	if (rc == ZB_EUSAGE)
		zb_fail(err, rc, "not a denial record: column %u: %s",
			fault.column, fault.what);
	else if (rc)
		zb_fail(err, rc, "denial record: out of memory");
	else if (!take_all(&j, &d))
		rc = zb_fail(err, ZB_EUSAGE,
			     "not a denial record of version 1");
	zb_json_done(&j);
	if (rc)
		zb_denial_done(&d);
	else
		*out = d;
	return rc;
}

/* ---- text ---- */

/* A name that the extension chose must not read as part of our sentence ("x;
 * to allow: zotbox ext allow..."): quoted, unless it is a plain word. */
static void add_name(struct zb_buf *out, const char *s, size_t max)
{
	struct zb_buf b = {0};

	if (strlen(s) <= max && !zb_text_shell_quote(out, s))
		return;
	zb_text_escape(&b, s, strlen(s), max);
	zb_buf_addc(out, '"');
	for (size_t i = 0; i < b.len; i++) {
		if (b.data[i] == '"')
			zb_buf_addc(out, '\\');
		zb_buf_addc(out, b.data[i]);
	}
	zb_buf_addc(out, '"');
	if (b.failed)
		out->failed = true;
	zb_buf_done(&b);
}

static void add_target(struct zb_buf *out, const char *s, const char *home)
{
	size_t n = home ? strlen(home) : 0;

	while (n > 1 && home[n - 1] == '/')
		n--;
	if (n > 1 && !strncmp(s, home, n) && !s[n]) {
		zb_buf_addc(out, '~');
	} else if (n > 1 && !strncmp(s, home, n) && s[n] == '/') {
		zb_auto(free) char *at = zb_strf("~%s", s + n);

		if (at)
			add_name(out, at, TEXT_MAX);
	} else if (s[0] == '/' || strchr(s, ';') || strstr(s, "zotbox")) {
		add_name(out, s, TEXT_MAX); /* ours are words and neither */
	} else {
		zb_text_escape(out, s, strlen(s), TEXT_MAX);
	}
}

/* " (python3.11, openat, x3)" */
static void add_details(struct zb_buf *out, const struct zb_denial *d)
{
	const char *slash = d->exe ? strrchr(d->exe, '/') : NULL;
	const char *exe = slash ? slash + 1 : d->exe;
	const char *sep = " (";

	if (exe) {
		zb_buf_adds(out, sep);
		add_name(out, exe, 100);
		sep = ", ";
	}
	if (d->syscall) {
		zb_buf_adds(out, sep);
		zb_text_escape(out, d->syscall, strlen(d->syscall), 100);
		sep = ", ";
	}
	if (d->count > 1) {
		zb_buf_addf(out, "%sx%llu", sep, (unsigned long long)d->count);
		sep = ", ";
	}
	if (sep[0] == ',')
		zb_buf_addc(out, ')');
}

/* Why the grant's value cannot stand in a command; NULL: it can. */
static const char *not_plain(const char *value)
{
	size_t n = strlen(value), i = 0;
	uint32_t cp = 0;

	if (zb_text_is_plain(value, n))
		return NULL;
	while (i < n) {
		i += zb_utf8_next(value + i, n - i, &cp);
		if (cp == '\n' || cp == '\t' || zb_is_hazard(cp))
			return "the name holds control characters";
	}
	return "the name holds a backslash";
}

static void add_remedy(struct zb_buf *out, const struct zb_denial *d)
{
	const char *why = no_grant(d);

	if (why) {
		zb_buf_addf(out, "%s: ", zb_no_command_label(why));
		zb_text_escape(out, why, strlen(why), TEXT_MAX);
		return;
	}
	why = not_plain(d->grant_value);
	if (why || !d->ext || !zb_text_is_plain(d->ext, strlen(d->ext))) {
		zb_buf_addf(out, "cannot be granted by a copied command: %s",
			    why ? why : "the extension has no plain name");
		return;
	}
	zb_buf_adds(out, "to allow: ");
	if (!d->by_path) {
		zb_buf_adds(out, "zotbox ext allow ");
		zb_text_shell_quote(out, d->ext);
		zb_buf_addc(out, ' ');
	}
	zb_text_shell_quote(out, d->grant_key);
	zb_buf_addc(out, ' ');
	zb_text_shell_quote(out, d->grant_value);
	if (d->by_path)
		zb_buf_adds(out, " in its scope file (--scope)");
}

#define EXPOSED_SHOWN 3

/* What it would really open, if that is not what it is called. */
static void add_exposed(struct zb_buf *out, const struct zb_denial *d,
			const char *home)
{
	size_t n = d->exposes.n;

	if (!n || no_grant(d))
		return;
	zb_buf_adds(out, "a grant opens ");
	for (size_t i = 0; i < n && i < EXPOSED_SHOWN; i++) {
		zb_buf_adds(out, i ? ", " : "");
		add_target(out, d->exposes.v[i], home);
	}
	if (n > EXPOSED_SHOWN)
		zb_buf_addf(out, " and %zu more", n - EXPOSED_SHOWN);
	zb_buf_adds(out, "; ");
}

int zb_denial_text(const struct zb_denial *d, const char *home,
		   struct zb_buf *out)
{
	const char *what = d->target ? d->target : d->asked;

	zb_buf_adds(out, "denied ");
	add_op(out, d, true);
	if (what) {
		zb_buf_addc(out, ' ');
		add_target(out, what, home);
	}
	add_details(out, d);
	zb_buf_adds(out, ": ");
	if (d->rule) {
		zb_text_escape(out, d->rule, strlen(d->rule), TEXT_MAX);
		zb_buf_adds(out, "; ");
	}
	add_exposed(out, d, home);
	add_remedy(out, d);
	return out->failed ? ZB_ELIMIT : 0;
}

/* ---- time ---- */

#define DAY_MS	  INT64_C(86400000)
#define YEAR_0000 INT64_C(-62167219200000)
#define YEAR_9999 INT64_C(253402300799999)

/* Days from 1970-01-01 to a date of the Gregorian calendar. Years start in
 * March here, so that the leap day is the last of its year. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
	int64_t y = year - (month <= 2), m = (month + 9) % 12;
	int64_t era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 +
	       (m * 153 + 2) / 5 + day - 1 - 719468;
}

static void date_of(int64_t days, int *year, int *month, int *day)
{
	int64_t z = days + 719468;
	int64_t era = (z >= 0 ? z : z - 146096) / 146097;
	int64_t d = z - era * 146097;
	int64_t y = (d - d / 1460 + d / 36524 - d / 146096) / 365;
	int64_t of_year = d - (365 * y + y / 4 - y / 100);
	int64_t m = (5 * of_year + 2) / 153;

	*day = (int)(of_year - (153 * m + 2) / 5 + 1);
	*month = (int)(m < 10 ? m + 3 : m - 9);
	*year = (int)(y + era * 400 + (*month <= 2));
}

int zb_time_rfc3339(int64_t unix_ms, struct zb_buf *out)
{
	int64_t days, ms;
	int year, month, day;

	/* The form has four digits for the year. */
	if (unix_ms < YEAR_0000)
		unix_ms = YEAR_0000;
	if (unix_ms > YEAR_9999)
		unix_ms = YEAR_9999;
	days = unix_ms / DAY_MS - (unix_ms % DAY_MS < 0);
	ms = unix_ms - days * DAY_MS;
	date_of(days, &year, &month, &day);
	return zb_buf_addf(out, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", year,
			   month, day, (int)(ms / 3600000),
			   (int)(ms / 60000 % 60), (int)(ms / 1000 % 60),
			   (int)(ms % 1000));
}

static bool skip(const char **s, const char *any)
{
	if (!**s || !strchr(any, **s))
		return false;
	++*s;
	return true;
}

/* "Z" or "+HH:MM" at the end, in milliseconds. */
static bool zone(const char *s, int64_t *out)
{
	int64_t h, m, sign = *s == '-' ? -1 : 1;

	*out = 0;
	if (skip(&s, "Zz"))
		return !*s;
	if (!skip(&s, "+-") || !number(&s, 2, 23, &h) || !skip(&s, ":") ||
	    !number(&s, 2, 59, &m))
		return false;
	*out = sign * (h * 60 + m) * 60000;
	return !*s;
}

/* "2026-12-01", in days. */
static bool date(const char **s, int64_t *out)
{
	int64_t y, mon, d;
	int ny, nm, nd;

	if (!number(s, 4, 9999, &y) || !skip(s, "-") ||
	    !number(s, 2, 12, &mon) || !skip(s, "-") || !number(s, 2, 31, &d) ||
	    mon < 1 || d < 1)
		return false;
	*out = days_of(y, mon, d);
	date_of(*out, &ny, &nm, &nd);
	return nm == mon; /* else the month has no such day */
}

/* "10:00:00" with or without a fraction, in milliseconds. */
static bool time_of_day(const char **s, int64_t *out)
{
	int64_t h, min, sec, scale = 100;

	if (!number(s, 2, 23, &h) || !skip(s, ":") || !number(s, 2, 59, &min) ||
	    !skip(s, ":") || !number(s, 2, 60, &sec))
		return false;
	*out = h * 3600000 + min * 60000 + sec * 1000;
	if (!skip(s, "."))
		return true;
	if (**s < '0' || **s > '9')
		return false;
	for (; **s >= '0' && **s <= '9'; ++*s, scale /= 10)
		*out += scale * (**s - '0');
	return true;
}

static bool rfc3339(const char *s, int64_t *out)
{
	int64_t days, ms, off;

	if (!date(&s, &days) || !skip(&s, "Tt") || !time_of_day(&s, &ms) ||
	    !zone(s, &off))
		return false;
	*out = days * DAY_MS + ms - off;
	return true;
}

bool zb_time_parse(const char *s, int64_t now_ms, int64_t *out)
{
	static const struct {
		char letter;
		int64_t ms;
	} units[] = {{'m', 60000}, {'h', 3600000}, {'d', DAY_MS}};
	size_t n = strspn(s, "0123456789");
	int64_t value;

	if (rfc3339(s, out))
		return true;
	if (!n || !s[n] || s[n + 1] || n > 9 ||
	    !number(&s, n, INT32_MAX, &value))
		return false;
	for (size_t i = 0; i < ZB_ARRAY_LEN(units); i++)
		if (units[i].letter == *s) {
			*out = now_ms - value * units[i].ms;
			return true;
		}
	return false;
}
