/* test_text.c - decoding, showing, cleaning, quoting, folding. */
#include "cleanup.h"
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define S(lit) (lit), (sizeof(lit) - 1)

static void utf8_is_strict(void **state)
{
	static const struct {
		const char *s;
		size_t n;
		unsigned used;
		uint32_t cp;
	} rows[] = {
		{S("a"), 1, 'a'},
		{S("\0"), 1, 0},
		{S("\x7f"), 1, 0x7f},
		{S("\xc2\x80"), 2, 0x80},
		{S("\xdf\xbf"), 2, 0x7ff},
		{S("\xe0\xa0\x80"), 3, 0x800},
		{S("\xed\x9f\xbf"), 3, 0xd7ff},
		{S("\xee\x80\x80"), 3, 0xe000},
		{S("\xef\xbf\xbf"), 3, 0xffff},
		{S("\xf0\x90\x80\x80"), 4, 0x10000},
		{S("\xf4\x8f\xbf\xbf"), 4, 0x10ffff},
		/* overlong, surrogates, too high, cut off, stray */
		{S("\xc0\x80"), 0, 0},
		{S("\xc1\xbf"), 0, 0},
		{S("\xe0\x9f\xbf"), 0, 0},
		{S("\xed\xa0\x80"), 0, 0},
		{S("\xed\xbf\xbf"), 0, 0},
		{S("\xf0\x8f\xbf\xbf"), 0, 0},
		{S("\xf4\x90\x80\x80"), 0, 0},
		{S("\xf5\x80\x80\x80"), 0, 0},
		{S("\xff"), 0, 0},
		{S("\x80"), 0, 0},
		{S("\xc2"), 0, 0},
		{S("\xc2\x41"), 0, 0},
		{S("\xe2\x82"), 0, 0},
		{S("\xe2\x82\x41"), 0, 0},
		{S("\xf0\x9f\x98"), 0, 0},
		{S("\xf0\x9f\x98\x41"), 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		uint32_t cp = 0;

		assert_int_equal(zb_utf8_next(rows[i].s, rows[i].n, &cp),
				 rows[i].used);
		if (rows[i].used)
			assert_int_equal(cp, rows[i].cp);
		assert_int_equal(zb_utf8_check(rows[i].s, rows[i].n),
				 rows[i].used ? rows[i].n : 0);
	}
}

static void every_scalar_goes_there_and_back(void **state)
{
	struct zb_buf b = {0};

	(void)state;
	for (uint32_t cp = 0; cp < 0x110000; cp++) {
		uint32_t back = 0;

		if (cp >= 0xd800 && cp <= 0xdfff)
			continue;
		zb_buf_clear(&b);
		zb_utf8_add(&b, cp);
		if (zb_utf8_next(b.data, b.len, &back) != b.len || back != cp)
			fail_msg("U+%04X", cp);
	}
	zb_buf_done(&b);
}

/* The bad byte is found at every offset and alignment of a long text. */
static void check_finds_the_first_bad_byte(void **state)
{
	char text[100];

	(void)state;
	for (size_t at = 0; at < sizeof(text); at++) {
		memset(text, 'x', sizeof(text));
		text[at] = '\xff';
		assert_int_equal(zb_utf8_check(text, sizeof(text)), at);
		assert_int_equal(zb_utf8_check(text, at), at);
	}
}

static void blanks_are_those_of_go(void **state)
{
	unsigned n = 0;

	(void)state;
	for (uint32_t cp = 0; cp < 0x110000; cp++)
		n += zb_is_blank(cp);
	assert_int_equal(n, 25);
	assert_true(zb_is_blank(0x85));
	assert_true(zb_is_blank(0xa0));
	assert_true(zb_is_blank(0x3000));
	assert_true(zb_is_blank(0x2028));
	assert_false(zb_is_blank(0x200b));
	assert_false(zb_is_blank(0x180e));
	assert_false(zb_is_blank(0xfeff));
	assert_int_equal(zb_skip_blanks(S(" \xc2\xa0\xe3\x80\x80\t!x")), 7);
	assert_int_equal(zb_skip_blanks(S("")), 0);
	assert_int_equal(zb_skip_blanks(S("\xff ")), 0);
}

struct pair {
	const char *in;
	size_t n;
	const char *out;
};

static void escapes(void **state)
{
	static const struct pair rows[] = {
		{S("plain text, \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
		 "plain text, \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
		{S("a\nb\tc\rd"), "a\\x0ab\\x09c\\x0dd"},
		{S("\x1b]0;pwn\x07"), "\\x1b]0;pwn\\x07"},
		{S("\x9b"
		   "31m\xff"),
		 "\\x9b31m\\xff"},
		{S("\xc2\x9b"
		   "31m"),
		 "\\u{9b}31m"},
		{S("\xe2\x80\xae_gnp.exe"), "\\u{202e}_gnp.exe"},
		{S("\xef\xbb\xbf"), "\\u{feff}"},
		{S("\xcd\x8f"), "\\u{34f}"},
		{S("\xc2\xad"), "\\u{ad}"},
		{S("\xf3\xa0\x81\x81"), "\\u{e0041}"},
		{S("C:\\x"), "C:\\\\x"},
		{S("nul\0x"), "nul\\x00x"},
		{S("\x7f"), "\\x7f"},
	};
	struct zb_buf b = {0};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		bool same = !strcmp(rows[i].in, rows[i].out);

		zb_buf_clear(&b);
		assert_int_equal(zb_text_escape(&b, rows[i].in, rows[i].n, 0),
				 0);
		assert_string_equal(zb_buf_str(&b), rows[i].out);
		assert_int_equal(zb_text_is_plain(rows[i].in, rows[i].n),
				 same && strlen(rows[i].in) == rows[i].n);
	}
	assert_true(zb_text_is_plain(S("")));
	zb_buf_done(&b);
}

static void escape_is_bounded(void **state)
{
	struct zb_buf b = {0};

	(void)state;
	zb_text_escape(&b, S("abcdef"), 6);
	assert_string_equal(zb_buf_str(&b), "abcdef");
	zb_buf_clear(&b);
	zb_text_escape(&b, S("abcdefg"), 6);
	assert_string_equal(zb_buf_str(&b), "abcdef...");
	zb_buf_clear(&b);
	/* never half of an escape, never half of a character */
	zb_text_escape(&b, S("abc\x1b"), 6);
	assert_string_equal(zb_buf_str(&b), "abc...");
	zb_buf_clear(&b);
	zb_text_escape(&b, S("ab\xe2\x82\xac"), 4);
	assert_string_equal(zb_buf_str(&b), "ab...");
	zb_buf_done(&b);
}

struct clean_row {
	const char *in, *plain, *sgr;
};

static const struct clean_row cleans[] = {
	{"hello\n\tworld", "hello\n\tworld", "hello\n\tworld"},
	{"\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac",
	 "\xc3\xa4\xe2\x82\xac"},
	{"\x1b[31mred\x1b[0m", "red", "\x1b[31mred\x1b[0m"},
	{"\x1b[mx", "x", "\x1b[mx"},
	{"\x1b[38;5;8mx", "x", "\x1b[38;5;8mx"},
	{"\x1b[38:2:8:8:8mx", "x", "\x1b[38:2:8:8:8mx"},
	/* conceals: the user would not see what the model sees */
	{"\x1b[8mx", "x", "x"},
	{"\x1b[1;8mx", "x", "x"},
	{"\x1b[38;5;1;8mx", "x", "x"},
	{"\x1b[?25lx", "x", "x"},
	{"\x1b[>4;1mx", "x", "x"},
	{"\x1b[1 mx", "x", "x"},
	{"\x1b[2J\x1b[Hx", "x", "x"},
	{"\x1b]0;title\x07x", "x", "x"},
	{"\x1b]0;title\x1b\\x", "x", "x"},
	{"\x1b]0;title\xc2\x9cx", "x", "x"},
	{"\x1b]52;c;ZXZpbA==\ny", "\ny", "\ny"},
	{"\x1b]52;c;ZXZp", "", ""},
	{"a\x1b", "a", "a"},
	{"a\x1b[", "a", "a"},
	{"a\x1b[31", "a", "a"},
	{"a\x1b[3\xc3\xa4", "a\xc3\xa4", "a\xc3\xa4"},
	{"\x1bPq#0\x1b\\x", "x", "x"},
	{"\x1b_Gf=100;AAAA\x1b\\x", "x", "x"},
	{"\x1b^pm\x1b\\x", "x", "x"},
	{"\x1bXsos\x1b\\x", "x", "x"},
	{"\x1b(0x", "x", "x"},
	{"\x1b#8x", "x", "x"},
	{"\x1b cx", "x", "x"},
	{"\x1b"
	 "cx",
	 "x", "x"},
	{"\x1b\x1b[31mx", "x", "\x1b[31mx"},
	{"\x1b]0;a\x1b[31mx", "x", "\x1b[31mx"},
	{"\x1b]0;a\x18x", "x", "x"},
	{"\xc2\x9b"
	 "31mx",
	 "x", "x"},
	{"\xc2\x9d"
	 "0;t\xc2\x9cx",
	 "x", "x"},
	{"\xc2\x90q\x07x", "x", "x"},
	{"\xc2\x9e\xc2\x9cx\xc2\x9f\xc2\x9cy\xc2\x98\xc2\x9cz", "xyz", "xyz"},
	{"\xc2\x85\xc2\x8dx", "x", "x"},
	{"a\rb\bc\x7f"
	 "d\x01",
	 "abcd", "abcd"},
	{"\xe2\x80\xaex", "\\u{202e}x", "\\u{202e}x"},
	{"\xe2\x80\x8bx", "\\u{200b}x", "\\u{200b}x"},
	{"\xe2\x80\xa8x", "\\u{2028}x", "\\u{2028}x"},
	{"\xf3\xa0\x81\x81x", "\\u{e0041}x", "\\u{e0041}x"},
	{"back\\slash", "back\\slash", "back\\slash"},
};

static void cleans_whole_sequences(void **state)
{
	struct zb_buf b = {0};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(cleans); i++) {
		const struct clean_row *r = &cleans[i];
		bool changed;

		for (int sgr = 0; sgr < 2; sgr++) {
			const char *want = sgr ? r->sgr : r->plain;

			zb_buf_clear(&b);
			zb_text_clean(&b, r->in, strlen(r->in), sgr, &changed);
			assert_string_equal(zb_buf_str(&b), want);
			assert_int_equal(changed, strcmp(r->in, want) != 0);
		}
	}
	zb_buf_done(&b);
}

static unsigned rnd(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 16;
}

/* Random mixtures of the grammar's own bytes: nothing a terminal acts on is
 * left, and cleaning again changes nothing. */
static void clean_leaves_nothing(void **state)
{
	static const char *const bits[] = {
		"\x1b",	    "[",
		"]",	    "P",
		"3",	    "1",
		";",	    "m",
		"\x07",	    "\x1b\\",
		"\xc2\x9b", "\xc2\x9d",
		"x",	    "\n",
		"\xc2\x9c", "(",
		"8",	    "\x18",
		"\x7f",	    "\r",
		"?",	    "\xe2\x80\xae",
		"\xc3\xa4", "J",
	};
	unsigned seed = 1;
	struct zb_buf in = {0}, out = {0}, again = {0};

	(void)state;
	for (int round = 0; round < 20000; round++) {
		bool sgr = round & 1, changed;
		unsigned n = rnd(&seed) % 24;

		zb_buf_clear(&in);
		zb_buf_clear(&out);
		zb_buf_clear(&again);
		while (n--)
			zb_buf_adds(&in, bits[rnd(&seed) % ZB_ARRAY_LEN(bits)]);
		zb_text_clean(&out, zb_buf_str(&in), in.len, sgr, NULL);
		zb_text_clean(&again, zb_buf_str(&out), out.len, sgr, &changed);
		assert_false(changed);
		assert_string_equal(zb_buf_str(&again), zb_buf_str(&out));
		assert_null(strpbrk(zb_buf_str(&out), "\r\x07\x7f\x18"));
		if (!sgr)
			assert_null(strchr(zb_buf_str(&out), 0x1b));
	}
	zb_buf_done(&in);
	zb_buf_done(&out);
	zb_buf_done(&again);
}

static void quotes_for_a_shell(void **state)
{
	static const char *const rows[][2] = {
		{"plain", "plain"},
		{"/a/b-c_d.e:f,g=h+i%j@k", "/a/b-c_d.e:f,g=h+i%j@k"},
		{"~/x", "~/x"},
		{"~/", "~/"},
		{"~/a b", "~/'a b'"},
		{"~", "'~'"},
		{"~root/x", "'~root/x'"},
		{"", "''"},
		{"a b", "'a b'"},
		{"it's", "'it'\\''s'"},
		{"$(id)", "'$(id)'"},
		{"a;b", "'a;b'"},
		{"*", "'*'"},
		{"=ls", "'=ls'"},
		{"${project}/x", "'${project}/x'"},
		{"!reset", "'!reset'"},
		{"\xc3\xa4", "'\xc3\xa4'"},
	};
	struct zb_buf b = {0};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		zb_buf_clear(&b);
		assert_int_equal(zb_text_shell_quote(&b, rows[i][0]), 0);
		assert_string_equal(zb_buf_str(&b), rows[i][1]);
	}
	zb_buf_clear(&b);
	assert_int_equal(zb_text_shell_quote(&b, "a\nb"), ZB_EUSAGE);
	assert_int_equal(zb_text_shell_quote(&b, "a\\b"), ZB_EUSAGE);
	assert_int_equal(zb_text_shell_quote(&b, "\xff"), ZB_EUSAGE);
	assert_int_equal(zb_text_shell_quote(&b, "~/\xe2\x80\xae"), ZB_EUSAGE);
	assert_int_equal(b.len, 0);
	zb_buf_done(&b);
}

static void folds_as_go(void **state)
{
	unsigned n = 0;

	(void)state;
	assert_int_equal(zb_fold('K'), 'k');
	assert_int_equal(zb_fold(0x212a), 'k');
	assert_int_equal(zb_fold(0x17f), 's');
	assert_int_equal(zb_fold(0x1e9e), 0xdf);
	assert_int_equal(zb_fold(0x3c2), zb_fold(0x3a3));
	assert_int_equal(zb_fold(0x1c5), zb_fold(0x1c4));
	assert_int_equal(zb_fold(0x1c6), zb_fold(0x1c4));
	assert_int_equal(zb_fold(0xab70), zb_fold(0x13a0));
	assert_int_equal(zb_fold(0x10400), 0x10428);
	assert_int_equal(zb_fold(0x1e921), 0x1e943);
	assert_int_equal(zb_fold(0xfb05), zb_fold(0xfb06));
	/* Go does not fold the dotted and the dotless i to i */
	assert_int_equal(zb_fold(0x130), 0x130);
	assert_int_equal(zb_fold(0x131), 0x131);
	assert_int_equal(zb_fold('['), '[');
	for (uint32_t cp = 0; cp < 0x110000; cp++) {
		uint32_t f = zb_fold(cp);

		n += f != cp;
		if (zb_fold(f) != f)
			fail_msg("U+%04X folds twice", cp);
	}
	/* the number of C and S rows of CaseFolding.txt 17.0.0 */
	assert_int_equal(n, 1512);
	assert_true(zb_fold_equal(S("arg\xc5\xbf"), S("ARGS")));
	assert_true(zb_fold_equal(S("\xe2\x84\xaa"), S("k")));
	assert_false(zb_fold_equal(S("arg"), S("args")));
	assert_false(zb_fold_equal(S("\xff"), S("\xff")));
	assert_true(zb_fold_equal(S(""), S("")));
}

static void nearest_words(void **state)
{
	static const char *const words[] = {"connect", "listen", "unix", NULL};
	char huge[200];

	(void)state;
	assert_int_equal(zb_edit_distance("kitten", "sitting"), 3);
	assert_int_equal(zb_edit_distance("", "abc"), 3);
	assert_int_equal(zb_edit_distance("same", "same"), 0);
	assert_string_equal(zb_nearest("conect", words), "connect");
	assert_string_equal(zb_nearest("unixx", words), "unix");
	assert_null(zb_nearest("xy", words));
	assert_null(zb_nearest("", words));
	memset(huge, 'x', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	assert_null(zb_nearest(huge, words));
	assert_int_equal(zb_edit_distance(huge, huge), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_is_strict),
		cmocka_unit_test(every_scalar_goes_there_and_back),
		cmocka_unit_test(check_finds_the_first_bad_byte),
		cmocka_unit_test(blanks_are_those_of_go),
		cmocka_unit_test(escapes),
		cmocka_unit_test(escape_is_bounded),
		cmocka_unit_test(cleans_whole_sequences),
		cmocka_unit_test(clean_leaves_nothing),
		cmocka_unit_test(quotes_for_a_shell),
		cmocka_unit_test(folds_as_go),
		cmocka_unit_test(nearest_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
