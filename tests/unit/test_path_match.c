/* test_path_match.c - canonical paths, and patterns against a slow twin. */
#include "path_match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void joins(void **state)
{
	static const struct {
		const char *base, *path, *want;
	} rows[] = {
		{NULL, "/", "/"},
		{NULL, "/a/b", "/a/b"},
		{NULL, "//a///b//", "/a/b"},
		{NULL, "/a/./b/.", "/a/b"},
		{NULL, "/a/../b", "/b"},
		{NULL, "/../../x", "/x"},
		{NULL, "/a/b/../..", "/"},
		{NULL, "/a/b/../../..", "/"},
		{"/home/u", "x", "/home/u/x"},
		{"/home/u", "../v/x", "/home/v/x"},
		{"/home/u", "", "/home/u"},
		{"/home/u/", ".", "/home/u"},
		{"/", "..", "/"},
		{"/b", "/a", "/a"},
		{NULL, "/...", "/..."},
		{NULL, "/..a/b..", "/..a/b.."},
		{NULL, "/a/b/../c/../../d", "/d"},
		{NULL, "a", NULL},
		{"rel", "a", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *got = zb_path_join(rows[i].base, rows[i].path);

		if (!rows[i].want)
			assert_null(got);
		else
			assert_string_equal(got, rows[i].want);
		free(got);
	}
}

static void pieces_of_paths(void **state)
{
	char *d;

	(void)state;
	assert_true(zb_path_below("/a/b", "/a"));
	assert_true(zb_path_below("/a", "/a"));
	assert_false(zb_path_below("/ab", "/a"));
	assert_false(zb_path_below("/", "/a"));
	assert_true(zb_path_below("/x", "/"));
	assert_true(zb_path_below("/", "/"));
	assert_string_equal(zb_path_name("/a/b"), "b");
	assert_string_equal(zb_path_name("/"), "/");
	d = zb_path_dir("/a/b");
	assert_string_equal(d, "/a");
	free(d);
	d = zb_path_dir("/a");
	assert_string_equal(d, "/");
	free(d);
	d = zb_path_dir("/");
	assert_string_equal(d, "/");
	free(d);
}

static void patterns(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool match;
	} rows[] = {
		{"/a", "/a", true},
		{"/a", "/a/b/c", true}, /* and what is below */
		{"/a", "/ab", false},
		{"/a/b", "/a", false},
		{"/", "/x", true},
		{"/a/*", "/a", false},
		{"/a/*", "/a/x", true},
		{"/a/*", "/a/x/y", true},
		{"/a/*.txt", "/a/x.txt", true},
		{"/a/*.txt", "/a/.txt", true},
		{"/a/*.txt", "/a/x.txtt", false},
		{"/a/*.txt", "/a/b/x.txt", false},
		{"/a/.env*", "/a/.env", true},
		{"/a/.env*", "/a/.env.local", true},
		{"/a/.env*", "/a/x.env", false},
		{"/a/?b", "/a/xb", true},
		{"/a/?b", "/a/b", false},
		{"/a/?", "/a/\xc3\xa9", true},
		{"/a/??", "/a/\xc3\xa9", false},
		{"/a/?", "/a/xy", false},
		{"/a/**", "/a", true},
		{"/a/**", "/a/b/c", true},
		{"/a/**", "/b", false},
		{"/a/**/c", "/a/c", true},
		{"/a/**/c", "/a/b/c", true},
		{"/a/**/c", "/a/b/b/b/c", true},
		{"/a/**/c", "/a/b/c/d", true},
		{"/a/**/c", "/a/b/cd", false},
		{"/a/**/b/*.x", "/a/b/b/q.x", true},
		{"/a/**/b/*.x", "/a/b/c/b/q.x", true},
		{"/a/**/b/*.x", "/a/b/c/q.x", false},
		{"/a/**/b/**/c", "/a/c/b/c", true},
		{"/a/**/b/**/c", "/a/c/c/b", false},
		{"/a/**/.git", "/a/.git", true},
		{"/a/**/.git", "/a/sub/.git/hooks/x", true},
		{"/a/**/.git", "/a/.gitignore", false},
		{"/a/**/.git/**", "/a/.git", true},
		{"/**/id_rsa*", "/id_rsa.pub", true},
		{"/**/id_rsa*", "/x/y/id_rsa", true},
		{"/a/**/**/b", "/a/b", true},
		{"/a/x*y*z", "/a/xyyyz", true},
		{"/a/x*y*z", "/a/xzz", false},
		{"/a/***", "/a/q", true},
		{"/a/[b]", "/a/[b]", true}, /* brackets are plain */
		{"/a/[b]", "/a/b", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (zb_pattern_match(rows[i].pattern, rows[i].path) !=
		    rows[i].match)
			fail_msg("row %zu: %s ~ %s", i, rows[i].pattern,
				 rows[i].path);
}

static void touches(void **state)
{
	static const struct {
		const char *pattern, *dir;
		bool touches;
	} rows[] = {
		{"/a/b", "/a", true},	     {"/a/b", "/a/b", true},
		{"/a/b", "/a/b/c", true},    {"/a/b", "/c", false},
		{"/a/b", "/", true},	     {"/a/*.x", "/a", true},
		{"/a/*.x", "/a/q", false},   {"/a/*.x", "/a/q.x", true},
		{"/a/**/x", "/a/q/r", true}, {"/a/**/x", "/b", false},
		{"/**/x", "/b", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (zb_pattern_touches(rows[i].pattern, rows[i].dir) !=
		    rows[i].touches)
			fail_msg("row %zu: %s ~ %s", i, rows[i].pattern,
				 rows[i].dir);
	assert_true(zb_pattern_is_glob("/a/*"));
	assert_true(zb_pattern_is_glob("/a/?"));
	assert_false(zb_pattern_is_glob("/a/[b]"));
}

/* The same relation, written as it is defined: slow and plainly right. */
static bool slow_piece(const char *p, size_t pn, const char *s, size_t sn)
{
	if (!pn)
		return !sn;
	if (*p == '*')
		return slow_piece(p + 1, pn - 1, s, sn) ||
		       (sn && slow_piece(p, pn, s + 1, sn - 1));
	if (!sn || (*p != '?' && *p != *s))
		return false;
	return slow_piece(p + 1, pn - 1, s + 1, sn - 1);
}

static bool slow(const char *p, const char *s)
{
	size_t pn, sn;

	if (!*p)
		return true;
	pn = strcspn(p + 1, "/");
	sn = *s ? strcspn(s + 1, "/") : 0;
	if (pn == 2 && !strncmp(p + 1, "**", 2)) {
		if (slow(p + 3, s))
			return true;
		return *s && slow(p, s + 1 + sn);
	}
	if (!*s || !slow_piece(p + 1, pn, s + 1, sn))
		return false;
	return slow(p + 1 + pn, s + 1 + sn);
}

static unsigned long seed = 12345;

static unsigned pick(unsigned n)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)(seed >> 33) % n;
}

static void random_path(char *out, bool pattern)
{
	static const char *const plain[] = {"a", "b", "ab", "ba", "aab"};
	static const char *const pats[] = {"a",	 "**", "*",  "?b", "a*",
					   "*b", "**", "b?", "a*b"};
	unsigned n = 1 + pick(5);

	out[0] = '\0';
	while (n--) {
		strcat(out, "/");
		strcat(out, pattern ? pats[pick(9)] : plain[pick(5)]);
	}
}

static void agrees_with_the_definition(void **state)
{
	char pat[64], path[64];
	unsigned matches = 0;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		bool got;

		random_path(pat, true);
		random_path(path, false);
		got = zb_pattern_match(pat, path);
		if (got != slow(pat, path))
			fail_msg("%s ~ %s", pat, path);
		matches += got;
		/* What matches is touched, from every ancestor. */
		if (got)
			for (char *p = path + strlen(path); p > path; p--)
				if (*p == '/' || !*p) {
					char keep = *p;

					*p = '\0';
					if (!zb_pattern_touches(pat, path))
						fail_msg("%s, %s", pat, path);
					*p = keep;
				}
	}
	assert_true(matches > 1000 && matches < 99000);
}

static void appended(char *out, const char *a, const char *d)
{
	snprintf(out, 192, "%s%s", a, d);
}

/* What is alike matches alike, whatever lies below; and what leads, leads to
 * something. Both against many names below. */
static void says_what_lies_below(void **state)
{
	char pat[64], a[64], b[64], d[64], ad[192], bd[192];
	unsigned alike = 0, leads = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		bool same, differs = false;

		random_path(pat, true);
		random_path(a, false);
		random_path(b, false);
		same = zb_pattern_alike(pat, a, b);
		if (same != zb_pattern_alike(pat, b, a))
			fail_msg("%s: %s %s", pat, a, b);
		alike += same;
		leads += zb_pattern_leads(pat, a);
		for (int k = 0; k < 30; k++) {
			random_path(d, false);
			appended(ad, a, d);
			appended(bd, b, d);
			differs |= slow(pat, ad) != slow(pat, bd);
		}
		if (same && differs)
			fail_msg("%s: %s and %s are not alike", pat, a, b);
	}
	assert_true(alike > 2000 && alike < 18000);
	assert_true(leads > 1000 && leads < 19000);
}

/* A link of one's own, to a directory beside it, makes no name that matches
 * and did not: unless it leads. */
static void links_lead(void **state)
{
	static const char neutral[] = "/zzz"; /* no pattern here fits it */
	char pat[64], up[64], name[64], d[64], at[192], beside[192];

	(void)state;
	for (int i = 0; i < 20000; i++) {
		random_path(pat, true);
		if (strstr(pat, "/*") || strstr(pat, "?"))
			continue; /* fits anything */
		random_path(up, false);
		random_path(name, false);
		name[strcspn(name + 1, "/") + 1] = '\0';
		for (int k = 0; k < 20; k++) {
			random_path(d, false);
			snprintf(at, sizeof(at), "%s%s%s", up, name, d);
			snprintf(beside, sizeof(beside), "%s%s%s", up, neutral,
				 d);
			if (slow(pat, at) == slow(pat, beside))
				continue;
			snprintf(at, sizeof(at), "%s%s", up, name);
			if (!zb_pattern_leads(pat, at))
				fail_msg("%s: %s", pat, at);
		}
	}
}

static void what_is_built_in(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool leads;
	} rows[] = {
		{"/**/.zot/extensions", "/p/.zot", true},
		{"/**/.zot/extensions", "/p/q/.zot", true},
		{"/**/.zot/extensions", "/p/.zot/extensions", true},
		{"/**/.zot/extensions", "/p/zot", false},
		{"/**/.zot/extensions", "/.zot/p", false},
		{"/**/.git", "/p/x", false},
		{"/p/**/.env*", "/p/x", false},
		{"/p/secret/*.txt", "/p/secret", true},
		{"/p/secret/*.txt", "/p/other", false},
		{"/p/*/x", "/p/any", true},
		{"/q/secret", "/p/secret", false},
		{"/p/**", "/p/x", true}, /* matches itself */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (zb_pattern_leads(rows[i].pattern, rows[i].path) !=
		    rows[i].leads)
			fail_msg("%s: %s", rows[i].pattern, rows[i].path);
	assert_true(zb_pattern_alike("/**/.git", "/p/a", "/p/b/c"));
	assert_false(
		zb_pattern_alike("/**/.zot/extensions", "/p/a", "/p/.zot"));
	assert_false(zb_pattern_alike("/p/s/*.txt", "/p/s", "/p/t"));
	assert_true(zb_pattern_alike("/p/s/*.txt", "/p/u", "/p/t"));
}

static void folds(void **state)
{
	static const struct {
		const char *path, *want;
	} rows[] = {
		{"/p/.git", "/p/.git"},
		{"/P/.GiT/Hooks", "/p/.git/hooks"},
		{"/p/.git./x", "/p/.git/x"},
		{"/p/.git ", "/p/.git"},
		{"/p/.git. .", "/p/.git"},
		{"/p/...", "/p/..."},
		{"/p/. ", "/p/. "},
		{"/p/.g\xe2\x80\x8dit", "/p/.git"}, /* U+200D */
		{"/p/.v\xc5\xbf"
		 "code",
		 "/p/.vscode"},		     /* long s */
		{"/p/\xe2\x84\xaa", "/p/k"}, /* Kelvin */
		{"/p/\xc3\x84", "/p/\xc3\xa4"},
		{"/p/Stra\xc3\x9f"
		 "e",
		 "/p/strasse"},
		{"/p/\xff\x80Q", "/p/\xff\x80q"}, /* no UTF-8 */
		{"/p/**/A?*", "/p/**/a?*"},
		{"/p/\xef\xbb\xbf", "/p/\xef\xbb\xbf"}, /* nothing else */
		{"/\xef\xbb\xbf/x", "/\xef\xbb\xbf/x"},
		{"//p/", "//p/"},
		{"", ""},
	};
	static char out[ZB_PATH_FOLD_MAX], longest[16384];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(zb_path_fold(rows[i].path, out));
		assert_string_equal(out, rows[i].want);
	}
	memset(longest, 'a', sizeof(longest) - 1);
	assert_false(zb_path_fold(longest, out));
	memset(longest, '/', sizeof(longest) - 1);
	assert_false(zb_path_fold(longest, out));
	/* Any path fits: what folds to more bytes is at most half as long. */
	for (size_t i = 0; i + 1 < 4096; i += 2)
		memcpy(longest + i, "\xc8\xba", 2);
	longest[4095] = '\0';
	assert_true(zb_path_fold(longest, out));
}

/* A hostile pattern is answered at once. */
static void is_not_exponential(void **state)
{
	char pat[4096] = "", path[4096] = "";

	(void)state;
	for (int i = 0; i < 400; i++) {
		strcat(pat, "/**/a*a*a");
		strcat(path, "/aaaaaaaa");
	}
	strcat(pat, "/x");
	assert_false(zb_pattern_match(pat, path));
	memset(pat, 0, sizeof(pat));
	strcpy(pat, "/");
	for (int i = 0; i < 1000; i++)
		strcat(pat, "*a");
	strcpy(path, "/");
	for (int i = 0; i < 2000; i++)
		strcat(path, "a");
	strcat(path, "b");
	assert_false(zb_pattern_match(pat, path));
	/* and one of too many components says the careful thing */
	pat[0] = '\0';
	for (int i = 0; i < 200; i++)
		strcat(pat, "/**/a");
	assert_false(zb_pattern_alike(pat, "/a", "/a"));
	assert_true(zb_pattern_leads(pat, "/b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joins),
		cmocka_unit_test(pieces_of_paths),
		cmocka_unit_test(patterns),
		cmocka_unit_test(touches),
		cmocka_unit_test(agrees_with_the_definition),
		cmocka_unit_test(says_what_lies_below),
		cmocka_unit_test(links_lead),
		cmocka_unit_test(what_is_built_in),
		cmocka_unit_test(folds),
		cmocka_unit_test(is_not_exponential),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
