/* test_json_scan.c - what the strict reader takes, refuses, and finds. */
#include "cleanup.h"
#include "json_scan.h"
#include "text.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define S(lit) (lit), (sizeof(lit) - 1)

static void takes_what_is_json(void **state)
{
	static const char *const texts[] = {
		"{}",
		"[]",
		"0",
		"-0",
		"-1.5e+10",
		"1E5",
		"0.0",
		"\"\"",
		"true",
		" \t\r\n null \r\n",
		"[1,[2,[3]],{}]",
		"{\"a\":{\"b\":[]},\"c\":\"d\"}",
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\"",
		"\"\\ud83d\\ude00\"",
		"\"\xf0\x9f\x98\x80 \xe2\x82\xac\"",
		"\"\x7f\xc2\x80\"",
		"{\"\":1}",
		"{\"a\":1,\"aa\":2,\"\xc3\xa4\":3,\"\xc3\x9f\":4,\"ss\":5}",
		/* equal keys in different objects */
		"[{\"a\":1},{\"a\":2},{\"b\":{\"a\":3}}]",
		"{\"a\":{\"a\":{\"a\":1}}}",
		"9007199254740993",
		"1e999",
	};
	struct zb_json j = {0};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(texts); i++) {
		struct zb_json_fault f = {0};

		if (zb_json_scan(&j, texts[i], strlen(texts[i]), NULL, &f))
			fail_msg("%s: %s", texts[i], f.what);
		assert_true(j.n > 0);
	}
	zb_json_done(&j);
}

struct refusal {
	const char *text;
	size_t n;
	enum zb_json_fault_kind kind;
	size_t offset;
	const char *what; /* part of it */
};

static const struct refusal refusals[] = {
	{S(""), ZB_JSON_EMPTY, 0, "empty"},
	{S(" \n "), ZB_JSON_EMPTY, 3, "empty"},
	{S("\xef\xbb\xbf{}"), ZB_JSON_BOM, 0, "byte-order mark"},
	{S("{} x"), ZB_JSON_TRAILING, 3, "more text"},
	{S("{}{}"), ZB_JSON_TRAILING, 2, "more text"},
	{S("{}\0"), ZB_JSON_TRAILING, 2, "more text"},
	{S("01"), ZB_JSON_TRAILING, 1, "more text"},
	{S("{"), ZB_JSON_SYNTAX, 1, "ends where a key"},
	{S("["), ZB_JSON_SYNTAX, 1, "ends where a value"},
	{S("[1"), ZB_JSON_SYNTAX, 2, "ends inside an array"},
	{S("[1,"), ZB_JSON_SYNTAX, 3, "ends where a value"},
	{S("[1,]"), ZB_JSON_SYNTAX, 3, "unexpected ']'"},
	{S("[1 2]"), ZB_JSON_SYNTAX, 3, "inside an array"},
	{S("[1}"), ZB_JSON_SYNTAX, 2, "unexpected '}'"},
	{S("{\"a\":1]"), ZB_JSON_SYNTAX, 6, "unexpected ']'"},
	{S("{a:1}"), ZB_JSON_SYNTAX, 1, "unexpected 'a' where a key"},
	{S("{'a':1}"), ZB_JSON_SYNTAX, 1, "where a key"},
	{S("{\"a\" 1}"), ZB_JSON_SYNTAX, 5, "where a colon"},
	{S("{\"a\":}"), ZB_JSON_SYNTAX, 5, "where a value"},
	{S("{\"a\":1,}"), ZB_JSON_SYNTAX, 7, "where a key"},
	{S("{,}"), ZB_JSON_SYNTAX, 1, "where a key"},
	{S("{1:2}"), ZB_JSON_SYNTAX, 1, "where a key"},
	{S("]"), ZB_JSON_SYNTAX, 0, "where a value"},
	{S("// x\n{}"), ZB_JSON_SYNTAX, 0, "where a value"},
	{S("[1]/**/"), ZB_JSON_TRAILING, 3, "more text"},
	{S("tru"), ZB_JSON_SYNTAX, 0, "where a value"},
	{S("TRUE"), ZB_JSON_SYNTAX, 0, "where a value"},
	{S("nulll"), ZB_JSON_TRAILING, 4, "more text"},
	{S("NaN"), ZB_JSON_SYNTAX, 0, "where a value"},
	{S("Infinity"), ZB_JSON_SYNTAX, 0, "where a value"},
	{S("-"), ZB_JSON_SYNTAX, 1, "where a digit"},
	{S("-x"), ZB_JSON_SYNTAX, 1, "where a digit"},
	{S("+1"), ZB_JSON_SYNTAX, 0, "where a value"},
	{S(".5"), ZB_JSON_SYNTAX, 0, "where a value"},
	{S("1."), ZB_JSON_SYNTAX, 2, "where a digit"},
	{S("1.e5"), ZB_JSON_SYNTAX, 2, "where a digit"},
	{S("1e"), ZB_JSON_SYNTAX, 2, "where a digit"},
	{S("1e+"), ZB_JSON_SYNTAX, 3, "where a digit"},
	{S("-01"), ZB_JSON_TRAILING, 2, "more text"},
	{S("0x10"), ZB_JSON_TRAILING, 1, "more text"},
	{S("[\0]"), ZB_JSON_SYNTAX, 1, "unexpected '\\x00'"},
	{S("[\x0b]"), ZB_JSON_SYNTAX, 1, "unexpected '\\x0b'"},
	{S("[\xc2\xa0]"), ZB_JSON_SYNTAX, 1, "where a value"},
	{S("[\xff]"), ZB_JSON_SYNTAX, 1, "unexpected '\\xff'"},
	{S("\"abc"), ZB_JSON_SYNTAX, 0, "not closed"},
	{S("\"abc\\"), ZB_JSON_SYNTAX, 5, "inside a string"},
	{S("\"abc\\\""), ZB_JSON_SYNTAX, 0, "not closed"},
	{S("\"a\nb\""), ZB_JSON_SYNTAX, 2, "control character \\x0a"},
	{S("\"a\0b\""), ZB_JSON_SYNTAX, 2, "control character \\x00"},
	{S("\"a\tb\""), ZB_JSON_SYNTAX, 2, "control character"},
	{S("\"\\x41\""), ZB_JSON_SYNTAX, 1, "unknown escape"},
	{S("\"\\\0\""), ZB_JSON_SYNTAX, 1, "unknown escape"},
	{S("\"\\u12\""), ZB_JSON_SYNTAX, 1, "four hexadecimal"},
	{S("\"\\u12g4\""), ZB_JSON_SYNTAX, 1, "four hexadecimal"},
	{S("\"\\ud83d\""), ZB_JSON_UTF8, 1, "surrogate"},
	{S("\"\\ude00\""), ZB_JSON_UTF8, 1, "surrogate"},
	{S("\"\\ud83d\\ud83d\""), ZB_JSON_UTF8, 1, "surrogate"},
	{S("\"\\ud83dxxxxxxx\""), ZB_JSON_UTF8, 1, "surrogate"},
	{S("\"\xed\xa0\xbd\""), ZB_JSON_UTF8, 1, "not UTF-8"},
	{S("\"\xc0\x80\""), ZB_JSON_UTF8, 1, "not UTF-8"},
	{S("\"ab\xff\""), ZB_JSON_UTF8, 3, "byte \\xff is not UTF-8"},
	{S("\"\xe2\x82\""), ZB_JSON_UTF8, 1, "not UTF-8"},
	{S("{\"\xff\":1}"), ZB_JSON_UTF8, 2, "not UTF-8"},
	{S("\"a\\u0000b\""), ZB_JSON_NUL, 2, "\\u0000"},
	{S("{\"a\\u0000b\":1}"), ZB_JSON_NUL, 3, "\\u0000"},
	{S("{\"a\":1,\"a\":2}"), ZB_JSON_DUPLICATE, 7, "duplicate key \"a\""},
	{S("{\"type\":1,\"TYPE\":2}"), ZB_JSON_DUPLICATE, 10,
	 "\"type\" and \"TYPE\" are the same"},
	{S("{\"args\":1,\"arg\xc5\xbf\":2}"), ZB_JSON_DUPLICATE, 10,
	 "are the same"},
	{S("{\"k\":1,\"\xe2\x84\xaa\":2}"), ZB_JSON_DUPLICATE, 7,
	 "are the same"},
	{S("{\"a\":1,\"\\u0061\":2}"), ZB_JSON_DUPLICATE, 7, "are the same"},
	{S("{\"\\u0061\":1,\"A\":2}"), ZB_JSON_DUPLICATE, 12, "are the same"},
	{S("{\"\xc3\x84\":1,\"\xc3\xa4\":2}"), ZB_JSON_DUPLICATE, 8,
	 "are the same"},
	{S("{\"\":1,\"\":2}"), ZB_JSON_DUPLICATE, 6, "duplicate"},
	{S("[{\"x\":{\"b\":1,\"c\":2,\"b\":3}}]"), ZB_JSON_DUPLICATE, 19,
	 "duplicate"},
};

static void refuses_the_rest(void **state)
{
	struct zb_json j = {0};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(refusals); i++) {
		const struct refusal *r = &refusals[i];
		struct zb_json_fault f = {0};
		int rc = zb_json_scan(&j, r->text, r->n, NULL, &f);

		if (rc != ZB_EUSAGE || f.kind != r->kind ||
		    f.offset != r->offset || !strstr(f.what, r->what))
			fail_msg("row %zu %s: rc %d kind %d at %zu: %s", i,
				 r->text, rc, (int)f.kind, f.offset, f.what);
		assert_int_equal(j.n, 0);
		assert_int_equal(zb_json_scan(&j, r->text, r->n, NULL, NULL),
				 ZB_EUSAGE);
	}
	zb_json_done(&j);
}

static void faults_have_a_place(void **state)
{
	static const char text[] = "{\n  \"a\": 1,\n  \"b\": x\n}\n";
	struct zb_json_fault f = {0};
	struct zb_json j = {0};
	unsigned line, column;

	(void)state;
	zb_json_scan(&j, S(text), NULL, &f);
	assert_int_equal(f.line, 3);
	assert_int_equal(f.column, 8);
	assert_string_equal(f.what,
			    "unexpected 'x' where a value was expected");
	zb_json_position(S("ab\ncd"), 100, &line, &column);
	assert_int_equal(line, 2);
	assert_int_equal(column, 3);
	/* the message of a fault is safe to show */
	zb_json_scan(&j, S("{\"\xe2\x80\xae\":1,\"\xe2\x80\xae\":1}"), NULL,
		     &f);
	assert_string_equal(f.what, "duplicate key \"\\u{202e}\"");
	zb_json_done(&j);
}

static void offsets_and_links(void **state)
{
	static const char text[] =
		" {\"a\":[1,{\"b\":null}],\"c\":\"x\",\"d\":{}} ";
	struct zb_json j = {0};
	uint32_t a, c, d, obj;

	(void)state;
	assert_int_equal(zb_json_scan(&j, S(text), NULL, NULL), 0);
	assert_int_equal(j.n, 7);
	assert_int_equal(j.tok[0].start, 1);
	assert_int_equal(j.tok[0].end, sizeof(text) - 2);
	assert_int_equal(j.tok[0].size, 3);
	assert_int_equal(j.tok[0].parent, ZB_JSON_NONE);
	assert_int_equal(j.tok[0].key_end, 0);
	a = zb_json_get(&j, 0, "a");
	c = zb_json_get(&j, 0, "c");
	d = zb_json_get(&j, 0, "d");
	assert_int_equal(zb_json_first(&j, 0), a);
	assert_int_equal(zb_json_next(&j, a), c);
	assert_int_equal(zb_json_next(&j, c), d);
	assert_int_equal(zb_json_next(&j, d), ZB_JSON_NONE);
	assert_memory_equal(text + j.tok[a].start, "[1,{\"b\":null}]", 14);
	assert_int_equal(j.tok[a].end - j.tok[a].start, 14);
	assert_memory_equal(text + j.tok[c].key_start, "\"c\"", 3);
	assert_int_equal(j.tok[c].key_end - j.tok[c].key_start, 3);
	obj = zb_json_next(&j, zb_json_first(&j, a));
	assert_int_equal(j.tok[obj].type, ZB_JSON_OBJECT);
	assert_int_equal(j.tok[obj].depth, 2);
	assert_int_equal(j.tok[obj].parent, a);
	assert_int_equal(j.tok[zb_json_get(&j, obj, "b")].type, ZB_JSON_NULL);
	assert_int_equal(zb_json_first(&j, d), ZB_JSON_NONE);
	assert_int_equal(zb_json_get(&j, 0, "A"), ZB_JSON_NONE);
	assert_int_equal(zb_json_get(&j, c, "a"), ZB_JSON_NONE);
	assert_int_equal(zb_json_get(&j, ZB_JSON_NONE, "a"), ZB_JSON_NONE);
	assert_int_equal(zb_json_first(&j, ZB_JSON_NONE), ZB_JSON_NONE);
	zb_json_done(&j);
}

static void strings_are_unescaped(void **state)
{
	static const char text[] =
		"{\"k\\u0065y\":\"a\\n\\u20ac\\ud83d\\ude00\\\"\xc3\xa4z\","
		"\"n\":5}";
	static const char want[] = "a\n\xe2\x82\xac\xf0\x9f\x98\x80\"\xc3\xa4z";
	struct zb_json j = {0};
	struct zb_buf b = {0};
	char *s;
	uint32_t i;

	(void)state;
	assert_int_equal(zb_json_scan(&j, S(text), NULL, NULL), 0);
	i = zb_json_get(&j, 0, "key");
	assert_int_equal(i, 1);
	assert_true(zb_json_key_is(&j, i, "key"));
	assert_false(zb_json_key_is(&j, i, "ke"));
	assert_false(zb_json_key_is(&j, i, "keyy"));
	assert_false(zb_json_key_is(&j, 0, "key"));
	assert_int_equal(zb_json_string(&j, i, &b), 0);
	assert_string_equal(zb_buf_str(&b), want);
	assert_true(zb_json_is(&j, i, want));
	assert_false(zb_json_is(&j, i, "a"));
	s = zb_json_dup_string(&j, i);
	assert_string_equal(s, want);
	free(s);
	s = zb_json_dup_key(&j, i);
	assert_string_equal(s, "key");
	free(s);
	i = zb_json_next(&j, i);
	assert_null(zb_json_dup_string(&j, i));
	assert_false(zb_json_is(&j, i, "5"));
	assert_null(zb_json_dup_key(&j, 0));
	zb_buf_done(&b);
	zb_json_done(&j);
}

static void integers(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		int64_t value;
	} rows[] = {
		{"0", true, 0},
		{"-0", true, 0},
		{"-0.0e5", true, 0},
		{"42", true, 42},
		{"2.0", true, 2},
		{"20e-1", true, 2},
		{"1e3", true, 1000},
		{"1.5e1", true, 15},
		{"100.500e1", true, 1005},
		{"9007199254740993", true, INT64_C(9007199254740993)},
		{"9223372036854775807", true, INT64_MAX},
		{"-9223372036854775808", true, INT64_MIN},
		{"9223372036854775808", false, 0},
		{"-9223372036854775809", false, 0},
		{"18446744073709551616", false, 0},
		{"1e18", true, INT64_C(1000000000000000000)},
		{"1e19", false, 0},
		{"1e99999999999999999999", false, 0},
		{"0e99999999999999999999", true, 0},
		{"1e-99999999999999999999", false, 0},
		{"1.5", false, 0},
		{"1e-1", false, 0},
		{"0.00000000000000000000000000001", false, 0},
		{"100000000000000000000000000000e-29", true, 1},
		{"\"5\"", false, 0},
		{"true", false, 0},
	};
	struct zb_json j = {0};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		int64_t v = 7;

		assert_int_equal(zb_json_scan(&j, rows[i].text,
					      strlen(rows[i].text), NULL, NULL),
				 0);
		if (zb_json_int(&j, 0, &v) != rows[i].ok ||
		    v != (rows[i].ok ? rows[i].value : 7))
			fail_msg("%s: %lld", rows[i].text, (long long)v);
	}
	zb_json_done(&j);
}

static void below_the_index(void **state)
{
	static const char text[] =
		"{\"a\":{\"b\":1,\"b\":2,\"c\":\"\\u0000\"},\"d\":[[]]}";
	struct zb_json_limits lim = {.index_depth = 1};
	struct zb_json j = {0};
	struct zb_json_fault f;

	(void)state;
	assert_int_equal(zb_json_scan(&j, S(text), &lim, &f), 0);
	assert_int_equal(j.n, 3);
	assert_int_equal(j.tok[1].size, 0);
	assert_memory_equal(text + j.tok[1].start, "{\"b\":1", 6);
	assert_int_equal(text[j.tok[1].end - 1], '}');
	/* syntax and UTF-8 are still checked there */
	assert_int_equal(zb_json_scan(&j, S("{\"a\":{\"b\":[1,]}}"), &lim, &f),
			 ZB_EUSAGE);
	assert_int_equal(
		zb_json_scan(&j, S("{\"a\":{\"b\":\"\xff\"}}"), &lim, &f),
		ZB_EUSAGE);
	assert_int_equal(
		zb_json_scan(&j, S("{\"a\":{\"\\ud800\":1}}"), &lim, &f),
		ZB_EUSAGE);
	/* one level more sees the equal keys */
	lim.index_depth = 2;
	assert_int_equal(zb_json_scan(&j, S(text), &lim, &f), ZB_EUSAGE);
	assert_int_equal(f.kind, ZB_JSON_DUPLICATE);
	zb_json_done(&j);
}

static void fill(struct zb_buf *b, const char *open, size_t n,
		 const char *close)
{
	zb_buf_clear(b);
	for (size_t i = 0; i < n; i++)
		zb_buf_adds(b, open);
	for (size_t i = 0; i < n; i++)
		zb_buf_adds(b, close);
}

static void depth_is_bounded(void **state)
{
	static const char *const brackets[][2] = {{"[", "]"}, {"{\"a\":", "}"}};
	struct zb_json_limits lim = {0};
	struct zb_json_fault f;
	struct zb_json j = {0};
	struct zb_buf b = {0};

	(void)state;
	fill(&b, "[", 256, "]");
	assert_int_equal(zb_json_scan(&j, b.data, b.len, NULL, &f), 0);
	assert_int_equal(j.n, 256);
	fill(&b, "[", 257, "]");
	assert_int_equal(zb_json_scan(&j, b.data, b.len, NULL, &f), ZB_EUSAGE);
	assert_int_equal(f.kind, ZB_JSON_DEPTH);
	assert_int_equal(f.offset, 256);
	/* a wish for more than the cap is cut to it; never recursion */
	lim.max_depth = 1 << 30;
	for (size_t i = 0; i < 2; i++) {
		fill(&b, brackets[i][0], 1000000, brackets[i][1]);
		assert_int_equal(zb_json_scan(&j, b.data, b.len, &lim, &f),
				 ZB_EUSAGE);
		assert_int_equal(f.kind, ZB_JSON_DEPTH);
	}
	lim.max_depth = 2;
	assert_int_equal(zb_json_scan(&j, S("[[1]]"), &lim, &f), 0);
	assert_int_equal(zb_json_scan(&j, S("[[[]]]"), &lim, &f), ZB_EUSAGE);
	zb_buf_done(&b);
	zb_json_done(&j);
}

static void *scan_deep(void *arg)
{
	struct zb_json_limits lim = {.max_depth = ZB_JSON_DEPTH_CAP};
	struct zb_json j = {0};
	struct zb_buf b = {0};
	int *rc = arg;

	for (unsigned i = 0; i < ZB_JSON_DEPTH_CAP; i++)
		zb_buf_adds(&b, "[");
	zb_buf_adds(&b, "x");
	*rc = zb_json_scan(&j, b.data, b.len, &lim, NULL);
	zb_json_done(&j);
	zb_buf_done(&b);
	return NULL;
}

/* Depth costs heap, not stack. */
static void a_small_stack_is_enough(void **state)
{
	pthread_attr_t attr;
	pthread_t t;
	int rc = 0;

	(void)state;
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, 128 << 10), 0);
	assert_int_equal(pthread_create(&t, &attr, scan_deep, &rc), 0);
	pthread_join(t, NULL);
	pthread_attr_destroy(&attr);
	assert_int_equal(rc, ZB_EUSAGE);
}

static void tokens_are_bounded(void **state)
{
	struct zb_json_limits lim = {.max_tokens = 4};
	struct zb_json_fault f;
	struct zb_json j = {0};

	(void)state;
	assert_int_equal(zb_json_scan(&j, S("[1,2,3]"), &lim, &f), 0);
	assert_int_equal(zb_json_scan(&j, S("[1,2,3,4]"), &lim, &f), ZB_EUSAGE);
	assert_int_equal(f.kind, ZB_JSON_TOO_MANY);
	zb_json_done(&j);
}

/* Objects of every size around the change of method: all keys different, then
 * one key equal to each older one in turn, in another case. */
static void equal_keys_are_found_at_any_size(void **state)
{
	struct zb_json_fault f;
	struct zb_json j = {0};
	struct zb_buf b = {0};

	(void)state;
	for (unsigned n = 1; n < 80; n++)
		for (unsigned dup = 0; dup <= n; dup++) {
			int rc;

			zb_buf_clear(&b);
			zb_buf_addc(&b, '{');
			for (unsigned i = 0; i < n; i++)
				zb_buf_addf(&b, "\"Key%u\":%u,", i * 7, i);
			zb_buf_addf(&b, "\"kEY%u\":0}", dup * 7);
			rc = zb_json_scan(&j, b.data, b.len, NULL, &f);
			if (rc != (dup < n ? ZB_EUSAGE : 0))
				fail_msg("n %u dup %u: %d", n, dup, rc);
			if (dup < n)
				assert_int_equal(f.kind, ZB_JSON_DUPLICATE);
		}
	zb_buf_done(&b);
	zb_json_done(&j);
}

#define CHOSEN 60

/* Keys chosen so that they meet in the hash table of an object of this size:
 * the other method finds the same. */
static void chosen_keys_are_found_too(void **state)
{
	struct zb_json_fault f;
	struct zb_json j = {0}, all = {0};
	struct zb_buf b = {0}, many = {0};
	unsigned chosen = 0;

	(void)state;
	zb_buf_addc(&many, '{');
	for (unsigned i = 0; i < 40000; i++)
		zb_buf_addf(&many, "\"Key%u\":0,", i);
	zb_buf_adds(&many, "\"x\":0}");
	assert_int_equal(zb_json_scan(&all, many.data, many.len, NULL, &f), 0);
	zb_buf_addc(&b, '{');
	for (uint32_t i = 1; i < all.n && chosen < CHOSEN; i++) {
		const struct zb_json_tok *t = &all.tok[i];

		if (t->hash & 0x3ff)
			continue;
		zb_buf_add(&b, many.data + t->key_start,
			   t->key_end - t->key_start);
		zb_buf_adds(&b, ":0,");
		chosen++;
	}
	assert_true(chosen > 35);
	zb_buf_adds(&b, "\"x\":0}");
	assert_int_equal(zb_json_scan(&j, b.data, b.len, NULL, &f), 0);
	assert_non_null(j.sort); /* it did come to that */
	/* the second key once more, in capitals */
	b.len -= strlen("\"x\":0}");
	zb_buf_adds(&b, "\"KEY");
	zb_buf_add(&b, b.data + j.tok[2].key_start + 4,
		   j.tok[2].key_end - j.tok[2].key_start - 5);
	zb_buf_adds(&b, "\":0}");
	assert_int_equal(zb_json_scan(&j, b.data, b.len, NULL, &f), ZB_EUSAGE);
	assert_int_equal(f.kind, ZB_JSON_DUPLICATE);
	assert_non_null(strstr(f.what, "\"KEY"));
	zb_json_done(&j);
	zb_json_done(&all);
	zb_buf_done(&b);
	zb_buf_done(&many);
}

/* 400 000 keys of one object: linear, or this test does not end in time. */
static void many_keys_are_cheap(void **state)
{
	struct zb_json_fault f;
	struct zb_json j = {0};
	struct zb_buf b = {0};

	(void)state;
	zb_buf_addc(&b, '{');
	for (unsigned i = 0; i < 400000; i++)
		zb_buf_addf(&b, "\"%x\":0,", i);
	zb_buf_adds(&b, "\"last\":0}");
	assert_int_equal(zb_json_scan(&j, b.data, b.len, NULL, &f), 0);
	assert_int_equal(j.tok[0].size, 400001);
	b.len -= strlen("\"last\":0}");
	zb_buf_adds(&b, "\"1a2B\":0}");
	assert_int_equal(zb_json_scan(&j, b.data, b.len, NULL, &f), ZB_EUSAGE);
	assert_int_equal(f.kind, ZB_JSON_DUPLICATE);
	assert_int_equal(f.offset, b.len - strlen("\"1a2B\":0}"));
	zb_buf_done(&b);
	zb_json_done(&j);
}

/* Special bytes at every place of a word, of a block, and of the end of the
 * text. */
static void specials_at_every_offset(void **state)
{
	static const char *const specials[] = {"\"", "\\", "\n", "\xff"};
	struct zb_json_fault f;
	struct zb_json j = {0};
	char text[400];

	(void)state;
	for (size_t k = 0; k < ZB_ARRAY_LEN(specials); k++)
		for (size_t at = 1; at < 380; at++) {
			size_t len = at < 40 && at % 2 ? 42 : sizeof(text);

			memset(text, 'x', sizeof(text));
			text[0] = '"';
			text[at] = specials[k][0];
			text[len - 1] = '"';
			assert_int_equal(zb_json_scan(&j, text, len, NULL, &f),
					 ZB_EUSAGE);
			assert_int_equal(f.offset, k ? at : at + 1);
			assert_int_equal(zb_json_scan(&j, text, at, NULL, &f),
					 ZB_EUSAGE);
			text[at] = '"';
			assert_int_equal(
				zb_json_scan(&j, text, at + 1, NULL, &f), 0);
			assert_int_equal(j.tok[0].end, at + 1);
		}
	zb_json_done(&j);
}

/* The memory of one scan serves the next. */
static void reuse_allocates_nothing(void **state)
{
	static const char text[] = "{\"a\":[1,2,3,4],\"b\":{\"c\":\"d\"}}";
	struct zb_json j = {0};
	const void *tok;

	(void)state;
	assert_int_equal(zb_json_scan(&j, S(text), NULL, NULL), 0);
	tok = j.tok;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(zb_json_scan(&j, S("[x"), NULL, NULL),
				 ZB_EUSAGE);
		assert_int_equal(j.n, 0);
		assert_int_equal(zb_json_get(&j, 0, "a"), ZB_JSON_NONE);
		assert_int_equal(zb_json_scan(&j, S(text), NULL, NULL), 0);
		assert_int_equal(j.n, 8);
		assert_ptr_equal(j.tok, tok);
	}
	zb_json_done(&j);
	zb_json_done(&j);
	zb_json_done(NULL);
}

static void quoting_goes_there_and_back(void **state)
{
	struct zb_json j = {0};
	struct zb_buf q = {0}, b = {0}, back = {0};

	(void)state;
	zb_json_quote(&q, S("a\"\\\b\f\n\r\t\x1b\x7f\xc3\xa4\xff\xc2\x9b"
			    "\xe2\x80\xae\xf3\xa0\x81\x81\xf0\x9f\x98\x80"));
	assert_string_equal(
		zb_buf_str(&q),
		"\"a\\\"\\\\\\b\\f\\n\\r\\t\\u001b\\u007f\xc3\xa4\xef\xbf\xbd"
		"\\u009b\\u202e\\udb40\\udc41\xf0\x9f\x98\x80\"");
	for (uint32_t cp = 1; cp < 0x110000; cp += cp < 0x3000 ? 1 : 37) {
		if (cp >= 0xd800 && cp <= 0xdfff)
			continue;
		zb_buf_clear(&b);
		zb_buf_clear(&q);
		zb_buf_clear(&back);
		zb_buf_addc(&b, 'x');
		zb_utf8_add(&b, cp);
		zb_buf_addc(&b, 'y');
		zb_json_quote(&q, b.data, b.len);
		assert_int_equal(zb_json_scan(&j, q.data, q.len, NULL, NULL),
				 0);
		zb_json_string(&j, 0, &back);
		assert_string_equal(zb_buf_str(&back), zb_buf_str(&b));
	}
	zb_buf_clear(&q);
	zb_json_quote(&q, "", 0);
	assert_string_equal(zb_buf_str(&q), "\"\"");
	zb_buf_done(&q);
	zb_buf_done(&b);
	zb_buf_done(&back);
	zb_json_done(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_is_json),
		cmocka_unit_test(refuses_the_rest),
		cmocka_unit_test(faults_have_a_place),
		cmocka_unit_test(offsets_and_links),
		cmocka_unit_test(strings_are_unescaped),
		cmocka_unit_test(integers),
		cmocka_unit_test(below_the_index),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(a_small_stack_is_enough),
		cmocka_unit_test(tokens_are_bounded),
		cmocka_unit_test(equal_keys_are_found_at_any_size),
		cmocka_unit_test(chosen_keys_are_found_too),
		cmocka_unit_test(many_keys_are_cheap),
		cmocka_unit_test(specials_at_every_offset),
		cmocka_unit_test(reuse_allocates_nothing),
		cmocka_unit_test(quoting_goes_there_and_back),
	};

	alarm(60); /* what is not linear does not end in time */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
