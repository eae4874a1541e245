/* test_frame.c - bytes to lines, however they are cut. */
#include "cleanup.h"
#include "frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void feed(struct zb_framer *f, const char *s)
{
	assert_int_equal(zb_framer_feed(f, s, strlen(s)), 0);
}

static void expect(struct zb_framer *f, enum zb_line_kind kind,
		   const char *text, uint64_t total, uint64_t number)
{
	struct zb_line l;

	zb_framer_next(f, &l);
	assert_int_equal(l.kind, kind);
	if (kind == ZB_LINE_NONE)
		return;
	assert_int_equal(l.len, strlen(text));
	assert_memory_equal(l.text, text, l.len);
	assert_int_equal(l.total, total);
	assert_int_equal(l.number, number);
}

static void splits_at_newlines_only(void **state)
{
	struct zb_framer f;
	struct zb_line l;

	(void)state;
	zb_framer_init(&f, 100);
	expect(&f, ZB_LINE_NONE, "", 0, 0);
	feed(&f, "{}\n\n{\"a\":1}\r\npart");
	expect(&f, ZB_LINE_FRAME, "{}", 2, 1);
	expect(&f, ZB_LINE_FRAME, "", 0, 2);
	expect(&f, ZB_LINE_FRAME, "{\"a\":1}\r", 8, 3);
	expect(&f, ZB_LINE_NONE, "", 0, 0);
	expect(&f, ZB_LINE_NONE, "", 0, 0);
	feed(&f, "ial");
	expect(&f, ZB_LINE_NONE, "", 0, 0);
	zb_framer_end(&f, &l);
	assert_int_equal(l.kind, ZB_LINE_FRAME);
	assert_int_equal(l.len, 7);
	assert_memory_equal(l.text, "partial", 7);
	zb_framer_end(&f, &l);
	assert_int_equal(l.kind, ZB_LINE_NONE);
	zb_framer_done(&f);
}

static void too_long_costs_itself_only(void **state)
{
	struct zb_framer f;
	struct zb_line l;

	(void)state;
	zb_framer_init(&f, 4);
	feed(&f, "abcd\nabcde\nxy\n");
	expect(&f, ZB_LINE_FRAME, "abcd", 4, 1);
	expect(&f, ZB_LINE_TOO_LONG, "abcd", 5, 2);
	expect(&f, ZB_LINE_FRAME, "xy", 2, 3);
	feed(&f, "0123456");
	expect(&f, ZB_LINE_NONE, "", 0, 0);
	feed(&f, "789");
	expect(&f, ZB_LINE_NONE, "", 0, 0);
	feed(&f, "ab\nnext\n");
	expect(&f, ZB_LINE_TOO_LONG, "0123", 12, 4);
	expect(&f, ZB_LINE_FRAME, "next", 4, 5);
	feed(&f, "endless");
	zb_framer_end(&f, &l);
	assert_int_equal(l.kind, ZB_LINE_TOO_LONG);
	assert_int_equal(l.total, 7);
	assert_memory_equal(l.text, "endl", 4);
	zb_framer_end(&f, &l);
	assert_int_equal(l.kind, ZB_LINE_NONE);
	zb_framer_done(&f);
}

static void an_endless_line_needs_no_memory(void **state)
{
	static char piece[65536];
	struct zb_framer f;
	struct zb_line l;

	(void)state;
	memset(piece, 'x', sizeof(piece));
	zb_framer_init(&f, 100000);
	for (int i = 0; i < 2000; i++) {
		assert_int_equal(zb_framer_feed(&f, piece, sizeof(piece)), 0);
		zb_framer_next(&f, &l);
		assert_int_equal(l.kind, ZB_LINE_NONE);
		assert_true(f.buf.cap < 1000000);
	}
	feed(&f, "\nok\n");
	zb_framer_next(&f, &l);
	assert_int_equal(l.kind, ZB_LINE_TOO_LONG);
	assert_int_equal(l.len, 100000);
	assert_int_equal(l.total, 2000 * sizeof(piece));
	expect(&f, ZB_LINE_FRAME, "ok", 2, 2);
	zb_framer_done(&f);
}

static void one_byte_order_mark_at_the_start(void **state)
{
	struct zb_framer f;
	struct zb_line l;

	(void)state;
	zb_framer_init(&f, 100);
	feed(&f, "\xef");
	expect(&f, ZB_LINE_NONE, "", 0, 0);
	feed(&f, "\xbb");
	expect(&f, ZB_LINE_NONE, "", 0, 0);
	feed(&f, "\xbf{}\n\xef\xbb\xbf{}\n");
	expect(&f, ZB_LINE_FRAME, "{}", 2, 1);
	expect(&f, ZB_LINE_FRAME, "\xef\xbb\xbf{}", 5, 2);
	assert_true(f.bom);
	zb_framer_done(&f);
	assert_false(f.bom);
	/* done leaves it ready for another stream */
	feed(&f, "\xef\xbb\n");
	expect(&f, ZB_LINE_FRAME, "\xef\xbb", 2, 1);
	assert_false(f.bom);
	zb_framer_done(&f);
	feed(&f, "\xef\xbb");
	zb_framer_end(&f, &l);
	assert_int_equal(l.kind, ZB_LINE_FRAME);
	assert_int_equal(l.len, 2);
	zb_framer_done(&f);
	feed(&f, "\xef\xbb\xbf");
	zb_framer_end(&f, &l);
	assert_int_equal(l.kind, ZB_LINE_NONE);
	assert_true(f.bom);
	zb_framer_done(&f);
	zb_framer_done(NULL);
}

static unsigned rnd(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 16;
}

/* The next line of @s by the definition: up to \n or the end. */
static void check_line(const struct zb_line *l, const char *s, size_t n,
		       size_t *at, size_t max, uint64_t number)
{
	const char *nl = memchr(s + *at, '\n', n - *at);
	size_t end = nl ? (size_t)(nl - s) : n, len = end - *at;

	assert_int_equal(l->kind, len > max ? ZB_LINE_TOO_LONG : ZB_LINE_FRAME);
	assert_int_equal(l->total, len);
	assert_int_equal(l->len, len > max ? max : len);
	assert_memory_equal(l->text, s + *at, l->len);
	assert_int_equal(l->number, number);
	*at = nl ? end + 1 : n;
}

/* Random streams in random pieces give the lines of the definition. */
static void any_cut_gives_the_same_lines(void **state)
{
	unsigned seed = 7;
	char s[400];

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t n = rnd(&seed) % sizeof(s), fed = 0, at = 0;
		size_t max = 1 + rnd(&seed) % 40;
		unsigned often = 2 + rnd(&seed) % 60;
		struct zb_framer f;
		uint64_t number = 0;
		struct zb_line l;

		for (size_t i = 0; i < n; i++)
			s[i] = rnd(&seed) % often ? (char)('a' + i % 26) : '\n';
		zb_framer_init(&f, max);
		while (fed < n) {
			size_t k = 1 + rnd(&seed) % 50;

			k = k < n - fed ? k : n - fed;
			zb_framer_feed(&f, s + fed, k);
			fed += k;
			for (;;) {
				zb_framer_next(&f, &l);
				if (l.kind == ZB_LINE_NONE)
					break;
				check_line(&l, s, fed, &at, max, ++number);
			}
			assert_true(f.buf.len - f.read <= max);
		}
		zb_framer_end(&f, &l);
		if (at < n)
			check_line(&l, s, n, &at, max, ++number);
		assert_int_equal(at, n);
		zb_framer_done(&f);
	}
}

/* Read straight into its memory: the same lines, and a large one's memory is
 * given back once nothing is held. */
static void room_is_as_good_as_feed(void **state)
{
	size_t n = 3 << 20, fed = 0, max = 0;
	char *s = malloc(n), *room;
	struct zb_framer f;
	struct zb_line l;

	(void)state;
	assert_non_null(s);
	memset(s, 'x', n);
	s[10] = s[n - 11] = '\n';
	zb_framer_init(&f, 0);
	while (fed < n) {
		size_t k = zb_framer_room(&f, &room);

		assert_true(k >= 65536);
		max = k > max ? k : max;
		k = k < n - fed ? k : n - fed;
		memcpy(room, s + fed, k);
		zb_framer_came(&f, k);
		fed += k;
		if (fed == k)
			expect(&f, ZB_LINE_FRAME, "xxxxxxxxxx", 10, 1);
		if (fed < n)
			expect(&f, ZB_LINE_NONE, "", 0, 0);
	}
	assert_true(max > 65536);
	zb_framer_next(&f, &l);
	assert_int_equal(l.len, n - 11 - 11);
	assert_memory_equal(l.text, s + 11, l.len);
	assert_true(zb_framer_is_large(&f));
	zb_framer_relax(&f); /* something is held */
	assert_true(zb_framer_is_large(&f));
	zb_framer_end(&f, &l);
	assert_int_equal(l.len, 10);
	assert_false(zb_framer_is_past_large(&f)); /* it has only just gone */
	zb_framer_room(&f, &room);
	memcpy(room, "a\nb", 3);
	zb_framer_came(&f, 3);
	expect(&f, ZB_LINE_FRAME, "a", 1, 4);
	expect(&f, ZB_LINE_NONE, "", 0, 0);
	assert_false(zb_framer_is_past_large(&f)); /* something is held */
	zb_framer_room(&f, &room);
	memcpy(room, "\n", 1);
	zb_framer_came(&f, 1);
	expect(&f, ZB_LINE_FRAME, "b", 1, 5);
	assert_false(zb_framer_is_past_large(&f)); /* did not come as a whole */
	zb_framer_room(&f, &room);
	memcpy(room, "c\n", 2);
	zb_framer_came(&f, 2);
	expect(&f, ZB_LINE_FRAME, "c", 1, 6);
	assert_true(zb_framer_is_past_large(&f));
	zb_framer_relax(&f);
	assert_false(zb_framer_is_large(&f));
	feed(&f, "again\n");
	assert_false(zb_framer_is_past_large(&f));
	expect(&f, ZB_LINE_FRAME, "again", 5, 7);
	free(s);
	zb_framer_done(&f);
}

/* A million small lines in one piece: bytes are not moved for each. */
static void small_lines_are_linear(void **state)
{
	size_t n = 2000000;
	char *s = malloc(n);
	struct zb_framer f;
	struct zb_line l;
	size_t lines = 0;

	(void)state;
	assert_non_null(s);
	for (size_t i = 0; i < n; i++)
		s[i] = i & 1 ? '\n' : 'x';
	zb_framer_init(&f, 0);
	assert_int_equal(f.max, ZB_FRAME_MAX);
	assert_int_equal(zb_framer_feed(&f, s, n), 0);
	for (zb_framer_next(&f, &l); l.kind; zb_framer_next(&f, &l))
		lines++;
	assert_int_equal(lines, n / 2);
	free(s);
	zb_framer_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splits_at_newlines_only),
		cmocka_unit_test(room_is_as_good_as_feed),
		cmocka_unit_test(too_long_costs_itself_only),
		cmocka_unit_test(an_endless_line_needs_no_memory),
		cmocka_unit_test(one_byte_order_mark_at_the_start),
		cmocka_unit_test(any_cut_gives_the_same_lines),
		cmocka_unit_test(small_lines_are_linear),
	};

	alarm(60); /* what is not linear does not end in time */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
