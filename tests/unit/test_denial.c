/* test_denial.c - the record and its two forms. */
#include "cleanup.h"
#include "denial.h"
#include "text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The record of the example in the documentation. */
static struct zb_denial example(void)
{
	struct zb_denial d = {
		.op = ZB_OP_FS_READ,
		.ext = zb_strdup("weather"),
		.session = zb_strdup("s1"),
		.pid = 7,
		.exe = zb_strdup("/usr/bin/python3.11"),
		.syscall = zb_strdup("openat"),
		.asked = zb_strdup("../../.ssh/id_ed25519"),
		.target = zb_strdup("/home/u/.ssh/id_ed25519"),
		.err_no = ENOENT,
		.by = ZB_BY_BROKER,
		.floor = ZB_FLOOR_MOUNT,
		.evidence = ZB_EV_DECIDED,
		.rule = zb_strdup("strict grants nothing there"),
		.grant_key = zb_strdup("fs.read"),
		.grant_value = zb_strdup("~/.ssh/id_ed25519"),
		.count = 3,
		.first_ms = INT64_C(1796119199000),
		.last_ms = INT64_C(1796119200123),
	};

	zb_strv_add(&d.exposes, "/home/u/keys/id");
	return d;
}

static void set(char **s, const char *value)
{
	free(*s);
	*s = zb_strdup(value);
}

static void json_has_the_documented_form(void **state)
{
	static const char want[] =
		"{\"v\":1,\"time\":\"2026-12-01T10:00:00.123Z\","
		"\"ext\":\"weather\",\"session\":\"s1\",\"pid\":7,"
		"\"exe\":\"/usr/bin/python3.11\",\"op\":\"fs.read\","
		"\"syscall\":\"openat\",\"asked\":\"../../.ssh/id_ed25519\","
		"\"target\":\"/home/u/.ssh/id_ed25519\",\"errno\":\"ENOENT\","
		"\"decided_by\":\"broker\",\"floor\":\"mount\","
		"\"rule\":\"strict grants nothing there\","
		"\"evidence\":\"decided\",\"count\":3,"
		"\"first\":\"2026-12-01T09:59:59.000Z\","
		"\"last\":\"2026-12-01T10:00:00.123Z\","
		"\"grant\":{\"key\":\"fs.read\","
		"\"value\":\"~/.ssh/id_ed25519\"},\"exposes\":["
		"\"/home/u/keys/id\"]}";
	struct zb_denial d = example();
	struct zb_buf b = {0};

	(void)state;
	assert_int_equal(zb_denial_json(&d, &b), 0);
	assert_string_equal(zb_buf_str(&b), want);
	zb_denial_done(&d);
	zb_denial_done(NULL);
	zb_buf_done(&b);
}

static void json_without_a_grant(void **state)
{
	struct zb_denial d = {
		.op = ZB_OP_PROTO,
		.detail = zb_strdup("submit"),
		.ext = zb_strdup("w"),
		.target = zb_strdup("a\xff"
				    "b"),
		.by = ZB_BY_MEDIATOR,
		.why_not = zb_strdup("text that starts with ! never passes"),
		.count = 1,
	};
	struct zb_buf b = {0};

	(void)state;
	zb_denial_json(&d, &b);
	assert_string_equal(
		zb_buf_str(&b),
		"{\"v\":1,\"time\":\"1970-01-01T00:00:00.000Z\",\"ext\":\"w\","
		"\"op\":\"proto.submit\",\"target\":\"a\xef\xbf\xbd"
		"b\","
		"\"target_hex\":\"61ff62\",\"decided_by\":\"mediator\","
		"\"floor\":\"none\",\"evidence\":\"decided\",\"count\":1,"
		"\"first\":\"1970-01-01T00:00:00.000Z\","
		"\"last\":\"1970-01-01T00:00:00.000Z\",\"grant\":null,"
		"\"cannot\":\"text that starts with ! never passes\"}");
	zb_denial_done(&d);
	zb_buf_done(&b);
}

static void inferred_never_yields_a_grant(void **state)
{
	struct zb_denial d = example();
	struct zb_buf b = {0};

	(void)state;
	d.evidence = ZB_EV_OBSERVED;
	zb_denial_json(&d, &b);
	assert_non_null(strstr(zb_buf_str(&b), "\"grant\":{"));
	zb_buf_clear(&b);
	d.evidence = ZB_EV_INFERRED;
	zb_denial_json(&d, &b);
	assert_non_null(strstr(zb_buf_str(&b), "\"grant\":null,\"cannot\":\""));
	zb_buf_clear(&b);
	zb_denial_text(&d, "/home/u", &b);
	assert_null(strstr(zb_buf_str(&b), "zotbox ext allow"));
	zb_denial_done(&d);
	zb_buf_done(&b);
}

static void text_for_people(void **state)
{
	struct zb_denial d = example();
	struct zb_buf b = {0};

	(void)state;
	zb_denial_text(&d, "/home/u", &b);
	assert_string_equal(
		zb_buf_str(&b),
		"denied fs.read ~/.ssh/id_ed25519 (python3.11, openat, x3): "
		"strict grants nothing there; a grant opens ~/keys/id; "
		"to allow: zotbox ext allow weather fs.read "
		"~/.ssh/id_ed25519");
	zb_buf_clear(&b);
	/* its name may be another's */
	d.by_path = true;
	zb_denial_text(&d, "/home/u", &b);
	assert_non_null(strstr(zb_buf_str(&b),
			       "; to allow: fs.read ~/.ssh/id_ed25519 in its "
			       "scope file (--scope)"));
	d.by_path = false;
	zb_buf_clear(&b);
	for (int i = 0; i < 3; i++)
		zb_strv_add(&d.exposes, "/x; to allow: id");
	zb_denial_text(&d, "/home/u", &b);
	assert_non_null(strstr(zb_buf_str(&b),
			       "; a grant opens ~/keys/id, '/x; to allow: id', "
			       "'/x; to allow: id' and 1 more; to allow: "));
	zb_buf_clear(&b);
	zb_strv_done(&d.exposes);
	/* only below home, not beside it */
	zb_denial_text(&d, "/home/u/.ss", &b);
	assert_non_null(strstr(zb_buf_str(&b), " /home/u/.ssh/id_ed25519 ("));
	zb_buf_clear(&b);
	zb_denial_text(&d, NULL, &b);
	assert_non_null(strstr(zb_buf_str(&b), " /home/u/.ssh/id_ed25519 ("));
	zb_buf_clear(&b);
	set(&d.grant_value, "/home/u/my files/it's");
	set(&d.rule, NULL);
	set(&d.exe, NULL);
	d.count = 1;
	zb_denial_text(&d, "/home/u/", &b);
	assert_string_equal(
		zb_buf_str(&b),
		"denied fs.read ~/.ssh/id_ed25519 (openat): to allow: zotbox "
		"ext allow weather fs.read '/home/u/my files/it'\\''s'");
	zb_buf_clear(&b);
	set(&d.grant_key, NULL);
	set(&d.why_not, "shadow is never granted");
	set(&d.syscall, NULL);
	zb_denial_text(&d, "/", &b);
	assert_string_equal(zb_buf_str(&b),
			    "denied fs.read /home/u/.ssh/id_ed25519: cannot be "
			    "granted: shadow is never granted");
	zb_buf_clear(&b);
	set(&d.why_not, "it opens much; it takes --yes-i-mean-it");
	zb_denial_text(&d, "/", &b);
	assert_string_equal(zb_buf_str(&b),
			    "denied fs.read /home/u/.ssh/id_ed25519: granted "
			    "only if you mean it: it opens much; it takes "
			    "--yes-i-mean-it");
	zb_denial_done(&d);
	zb_buf_done(&b);
}

static void hostile_names_get_no_command(void **state)
{
	static const char *const rows[][2] = {
		{"/etc/\x1b]0;pwn\x07", "control characters"},
		{"/etc/a\rOK", "control characters"},
		{"/etc/a\n[zotbox] denied", "control characters"},
		{"/etc/\xe2\x80\xae_gnp.exe", "control characters"},
		{"/etc/\xc2\x9b"
		 "31m",
		 "control characters"},
		{"/etc/\xff", "not UTF-8"},
		{"/etc/a\\b", "a backslash"},
	};
	struct zb_denial d = example();
	struct zb_buf b = {0};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		set(&d.target, rows[i][0]);
		set(&d.asked, rows[i][0]);
		set(&d.grant_value, rows[i][0]);
		set(&d.exe, rows[i][0]);
		set(&d.rule, rows[i][0]);
		zb_buf_clear(&b);
		zb_denial_text(&d, "/home/u", &b);
		assert_null(strstr(zb_buf_str(&b), "zotbox ext allow"));
		assert_non_null(strstr(zb_buf_str(&b), rows[i][1]));
		for (const char *p = zb_buf_str(&b); *p; p++)
			assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
		assert_int_equal(zb_utf8_check(b.data, b.len), b.len);
		zb_buf_clear(&b);
		zb_denial_json(&d, &b);
		for (const char *p = zb_buf_str(&b); *p; p++)
			assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
		assert_int_equal(zb_utf8_check(b.data, b.len), b.len);
	}
	zb_denial_done(&d);
	zb_buf_done(&b);
}

/* Names that would read as our own words are quoted. */
static void names_are_not_sentences(void **state)
{
	static const struct {
		const char *target, *exe, *want;
	} rows[] = {
		{"/x; to allow: zotbox ext allow e fs.read /", "p",
		 "denied fs.read '/x; to allow: zotbox ext allow e fs.read /' "
		 "(p, openat, x3): "},
		{"/home/u/it's (1)", "p",
		 "denied fs.read ~/'it'\\''s (1)' (p, openat, x3): "},
		{"/x\n\"y", "a, b): z; to allow: w",
		 "denied fs.read \"/x\\x0a\\\"y\" ('a, b): z; to allow: w', "
		 "openat, x3): "},
		{"no path; to allow: y", "p",
		 "denied fs.read 'no path; to allow: y' (p, openat, x3): "},
		{"unshare CLONE_NEWUSER", "p",
		 "denied fs.read unshare CLONE_NEWUSER (p, openat, x3): "},
		{"/home/u", "p", "denied fs.read ~ (p, openat, x3): "},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_denial d = example();
		struct zb_buf b = {0};

		set(&d.target, rows[i].target);
		set(&d.exe, rows[i].exe);
		zb_denial_text(&d, "/home/u", &b);
		assert_ptr_equal(strstr(zb_buf_str(&b), rows[i].want),
				 zb_buf_str(&b));
		zb_buf_done(&b);
		zb_denial_done(&d);
	}
}

static void same_kind(void **state)
{
	struct zb_denial a = example(), b;

	(void)state;
	assert_int_equal(zb_denial_copy(&b, &a), 0);
	assert_true(zb_denial_same(&a, &b));
	/* what merging ignores */
	b.pid = 9;
	b.count = 100;
	b.last_ms++;
	set(&b.asked, "other spelling");
	set(&b.rule, NULL);
	assert_true(zb_denial_same(&a, &b));
	assert_int_equal(zb_denial_hash(&a), zb_denial_hash(&b));
	/* what it does not */
	set(&b.target, "/x");
	assert_false(zb_denial_same(&a, &b));
	assert_true(zb_denial_hash(&a) != zb_denial_hash(&b));
	set(&b.target, a.target);
	set(&b.exe, NULL);
	assert_false(zb_denial_same(&a, &b));
	set(&b.exe, a.exe);
	set(&b.detail, "");
	assert_false(zb_denial_same(&a, &b));
	set(&b.detail, NULL);
	b.err_no = EACCES;
	assert_false(zb_denial_same(&a, &b));
	b.err_no = a.err_no;
	b.op = ZB_OP_FS_WRITE;
	assert_false(zb_denial_same(&a, &b));
	b.op = a.op;
	set(&b.session, "s2");
	assert_false(zb_denial_same(&a, &b));
	set(&b.session, "s1");
	set(&b.ext, "x");
	assert_false(zb_denial_same(&a, &b));
	zb_denial_done(&a);
	zb_denial_done(&b);
}

static unsigned rnd(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 16;
}

/* Bytes, or text; NULL now and then. */
static char *any_string(unsigned *seed, bool utf8)
{
	struct zb_buf b = {0};
	unsigned n = rnd(seed) % 12;

	if (n == 11)
		return NULL;
	zb_buf_adds(&b, "");
	while (n--) {
		uint32_t cp = rnd(seed) % 3 ? 1 + rnd(seed) % 300
					    : 1 + rnd(seed) * 7 % 0x10fffe;

		if (!utf8)
			zb_buf_addc(&b, (char)(1 + rnd(seed) % 255));
		else if (cp < 0xd800 || cp > 0xdfff)
			zb_utf8_add(&b, cp);
	}
	return zb_buf_steal(&b);
}

static struct zb_denial any_denial(unsigned *seed)
{
	struct zb_denial d = {
		.op = (enum zb_op)(rnd(seed) % ZB_OP_COUNT),
		.ext = zb_strdup("e"),
		.session = any_string(seed, true),
		.pid = (int)(rnd(seed) % 3),
		.exe = any_string(seed, true),
		.syscall = any_string(seed, true),
		.asked = any_string(seed, false),
		.target = any_string(seed, false),
		.err_no = (int)(rnd(seed) % 200),
		.by = (enum zb_decider)(rnd(seed) % ZB_BY_COUNT),
		.floor = (enum zb_floor)(rnd(seed) % ZB_FLOOR_COUNT),
		.evidence = (enum zb_evidence)(rnd(seed) % 2),
		.rule = any_string(seed, true),
		.count = 1 + rnd(seed),
		.first_ms = (int64_t)rnd(seed) * 12345677,
		.last_ms = (int64_t)rnd(seed) * 98765431,
	};

	if (d.op == ZB_OP_PROTO || d.op == ZB_OP_LIMIT)
		d.detail = zb_strdup(rnd(seed) % 2 ? "submit" : "a.b");
	if (rnd(seed) % 2) {
		d.grant_key = zb_strdup("fs.read");
		d.grant_value = any_string(seed, true);
		if (!d.grant_value)
			set(&d.grant_key, NULL);
		else
			for (unsigned n = rnd(seed) % 3; n; n--)
				zb_strv_take(&d.exposes, zb_strdup("14 files"));
	}
	if (!d.grant_key)
		d.why_not = zb_strdup("because");
	return d;
}

static void assert_same_string(const char *a, const char *b)
{
	if (!a || !b)
		assert_ptr_equal(a, b);
	else
		assert_string_equal(a, b);
}

static void what_is_written_is_read_back(void **state)
{
	unsigned seed = 3;

	(void)state;
	for (int round = 0; round < 5000; round++) {
		struct zb_denial d = any_denial(&seed), back;
		struct zb_buf a = {0}, b = {0};
		struct zb_error e = {0};

		zb_denial_json(&d, &a);
		if (zb_denial_parse(&back, a.data, a.len, &e))
			fail_msg("%s: %s", a.data, e.msg);
		assert_same_string(d.target, back.target);
		assert_same_string(d.asked, back.asked);
		assert_same_string(d.exe, back.exe);
		assert_same_string(d.rule, back.rule);
		assert_same_string(d.detail, back.detail);
		assert_same_string(d.grant_key, back.grant_key);
		assert_same_string(d.grant_value, back.grant_value);
		assert_same_string(d.why_not, back.why_not);
		assert_int_equal(d.err_no, back.err_no);
		assert_int_equal(d.count, back.count);
		assert_int_equal(d.first_ms, back.first_ms);
		assert_int_equal(d.last_ms, back.last_ms);
		assert_int_equal(d.exposes.n, back.exposes.n);
		assert_true(zb_denial_same(&d, &back));
		zb_denial_json(&back, &b);
		assert_string_equal(a.data, b.data);
		zb_buf_done(&a);
		zb_buf_done(&b);
		zb_denial_done(&d);
		zb_denial_done(&back);
	}
}

/* Each required part taken out of the documented example, or spoilt. */
static void other_lines_are_no_records(void **state)
{
	static const char *const edits[][2] = {
		{"\"v\":1", "\"v\":2"},
		{"\"ext\":\"weather\"", "\"ext\":7"},
		{"\"ext\"", "\"x\""},
		{"fs.read\",\"sys", "fs.fly\",\"sys"},
		{"\"op\"", "\"x\""},
		{"\"count\":3", "\"count\":0"},
		{"\"count\":3", "\"count\":-1"},
		{"\"count\":3", "\"count\":\"3\""},
		{"\"pid\":7", "\"pid\":99999999999"},
		{"ENOENT", "ENOPE"},
		{"broker", "joker"},
		{"mount", "floor"},
		{"decided\",\"count", "guessed\",\"count"},
		{"\"first\":\"2026-12", "\"first\":\"2026-13"},
		{"\"last\"", "\"x\""},
		{"\"asked\"", "\"target_hex\":\"6\",\"asked\""},
		{"\"asked\"", "\"target_hex\":\"00\",\"asked\""},
		{"\"asked\"", "\"target_hex\":\"6G\",\"asked\""},
		{"\"asked\"", "\"Exe\":\"\",\"asked\""},
		{"}", ""},
		{"{", "[zotbox] {"},
	};
	struct zb_denial d = example(), back;
	struct zb_buf good = {0}, b = {0};
	struct zb_error e = {0};

	(void)state;
	zb_denial_json(&d, &good);
	assert_int_equal(zb_denial_parse(&back, good.data, good.len, &e), 0);
	zb_denial_done(&back);
	for (size_t i = 0; i < ZB_ARRAY_LEN(edits); i++) {
		const char *at = strstr(good.data, edits[i][0]);

		assert_non_null(at);
		zb_buf_clear(&b);
		zb_buf_add(&b, good.data, (size_t)(at - good.data));
		zb_buf_adds(&b, edits[i][1]);
		zb_buf_adds(&b, at + strlen(edits[i][0]));
		if (zb_denial_parse(&back, b.data, b.len, &e) != ZB_EUSAGE)
			fail_msg("taken: %s", b.data);
	}
	zb_buf_done(&good);
	zb_buf_done(&b);
	zb_denial_done(&d);
}

static void unknown_members_are_fine(void **state)
{
	static const char line[] =
		"{\"v\":1,\"new\":{\"a\":1},\"ext\":\"w\",\"op\":\"env\","
		"\"decided_by\":\"plan\",\"floor\":\"none\",\"evidence\":"
		"\"decided\",\"count\":1,\"first\":\"2026-12-01T10:00:00Z\","
		"\"last\":\"2026-12-01T10:00:00Z\"}";
	struct zb_denial d;
	struct zb_error e = {0};

	(void)state;
	assert_int_equal(zb_denial_parse(&d, line, strlen(line), &e), 0);
	assert_int_equal(d.op, ZB_OP_ENV);
	assert_int_equal(d.last_ms, INT64_C(1796119200000));
	zb_denial_done(&d);
}

static void times(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} rows[] = {
		{0, "1970-01-01T00:00:00.000Z"},
		{-1, "1969-12-31T23:59:59.999Z"},
		{INT64_C(951782400000), "2000-02-29T00:00:00.000Z"},
		{INT64_C(1709164800000), "2024-02-29T00:00:00.000Z"},
		{INT64_C(4107542400000), "2100-03-01T00:00:00.000Z"},
		{INT64_C(253402300799999), "9999-12-31T23:59:59.999Z"},
		{INT64_C(-62167219200000), "0000-01-01T00:00:00.000Z"},
	};
	struct zb_buf b = {0};
	int64_t ms;

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		zb_buf_clear(&b);
		zb_time_rfc3339(rows[i].ms, &b);
		assert_string_equal(zb_buf_str(&b), rows[i].text);
		assert_true(zb_time_parse(rows[i].text, 0, &ms));
		assert_int_equal(ms, rows[i].ms);
	}
	zb_buf_clear(&b);
	zb_time_rfc3339(INT64_MAX, &b);
	assert_string_equal(zb_buf_str(&b), "9999-12-31T23:59:59.999Z");
	zb_buf_clear(&b);
	zb_time_rfc3339(INT64_MIN, &b);
	assert_string_equal(zb_buf_str(&b), "0000-01-01T00:00:00.000Z");
	/* every day of 400 years goes there and back */
	for (int64_t day = 0; day < 146097; day++) {
		zb_buf_clear(&b);
		zb_time_rfc3339(day * 86400000, &b);
		if (!zb_time_parse(zb_buf_str(&b), 0, &ms) ||
		    ms != day * 86400000)
			fail_msg("%s", zb_buf_str(&b));
	}
	zb_buf_done(&b);
}

static void times_of_people(void **state)
{
	static const char *const bad[] = {
		"",
		"m",
		"10",
		"10s",
		"10 m",
		"-5m",
		"10mm",
		"1234567890m",
		"yesterday",
		"2026-12-01",
		"2026-12-01T10:00:00",
		"2026-02-29T10:00:00Z",
		"2026-04-31T10:00:00Z",
		"2026-00-01T10:00:00Z",
		"2026-12-00T10:00:00Z",
		"2026-12-01T24:00:00Z",
		"2026-12-01T10:60:00Z",
		"2026-12-01T10:00:00.Z",
		"2026-12-01T10:00:00Zx",
		"2026-12-01T10:00:00+1:00",
		"2026-12-01T10:00:00+01:0",
	};
	int64_t now = INT64_C(1000000000), ms;

	(void)state;
	assert_true(zb_time_parse("10m", now, &ms));
	assert_int_equal(ms, now - 600000);
	assert_true(zb_time_parse("2h", now, &ms));
	assert_int_equal(ms, now - 7200000);
	assert_true(zb_time_parse("3d", now, &ms));
	assert_int_equal(ms, now - 259200000);
	assert_true(zb_time_parse("2026-12-01T11:30:00+01:30", now, &ms));
	assert_int_equal(ms, INT64_C(1796119200000));
	assert_true(zb_time_parse("2026-12-01t04:00:00.1239-06:00", now, &ms));
	assert_int_equal(ms, INT64_C(1796119200123));
	for (size_t i = 0; i < ZB_ARRAY_LEN(bad); i++)
		if (zb_time_parse(bad[i], now, &ms))
			fail_msg("taken: %s", bad[i]);
}

static void errno_names(void **state)
{
	(void)state;
	assert_string_equal(zb_errno_name(ENOENT), "ENOENT");
	assert_string_equal(zb_errno_name(ECONNREFUSED), "ECONNREFUSED");
	assert_null(zb_errno_name(0));
	assert_null(zb_errno_name(9999));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_has_the_documented_form),
		cmocka_unit_test(json_without_a_grant),
		cmocka_unit_test(inferred_never_yields_a_grant),
		cmocka_unit_test(text_for_people),
		cmocka_unit_test(hostile_names_get_no_command),
		cmocka_unit_test(names_are_not_sentences),
		cmocka_unit_test(same_kind),
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(other_lines_are_no_records),
		cmocka_unit_test(unknown_members_are_fine),
		cmocka_unit_test(times),
		cmocka_unit_test(times_of_people),
		cmocka_unit_test(errno_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
