/* test_binfmt.c - shebang lines as the kernel reads them, env -S, ELF headers.
 */
#include "binfmt.h"
#include "cleanup.h"

#include "fake_elf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void kinds(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		enum zb_bin_kind kind;
	} rows[] = {
		{"", 0, ZB_BIN_EMPTY},
		{"\177ELF\2", 5, ZB_BIN_ELF},
		{"#!/bin/sh\n", 10, ZB_BIN_SCRIPT},
		{"\xef\xbb\xbf#!/bin/sh\n", 13, ZB_BIN_BOM_SCRIPT},
		{"\xcf\xfa\xed\xfe\7", 5, ZB_BIN_MACHO},
		{"MZ\x90", 3, ZB_BIN_PE},
		{"import os\n", 10, ZB_BIN_TEXT},
		{"a\0b", 3, ZB_BIN_OTHER},
		{"#", 1, ZB_BIN_TEXT},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++)
		assert_int_equal(zb_bin_kind(rows[i].bytes, rows[i].n),
				 rows[i].kind);
}

static void shebangs(void **state)
{
	static const struct {
		const char *line;
		bool ok;
		const char *interp, *arg;
		bool crlf;
	} rows[] = {
		{"#!/bin/sh\n", true, "/bin/sh", "", false},
		{"#!/bin/sh", true, "/bin/sh", "", false},
		{"#! \t/bin/sh \t\n", true, "/bin/sh", "", false},
		{"#!/bin/sh -e -u\nx", true, "/bin/sh", "-e -u", false},
		{"#!/usr/bin/env -S a  b \n", true, "/usr/bin/env", "-S a  b",
		 false},
		{"#!/usr/bin/python3\r\n", true, "/usr/bin/python3\r", "",
		 true},
		{"#!/usr/bin/env python3\r\n", true, "/usr/bin/env",
		 "python3\r", true},
		/* Without a newline the CR is no line end. */
		{"#!/bin/sh\r", true, "/bin/sh\r", "", false},
		{"#!\n", false, "", "", false},
		{"#!  \n/bin/sh\n", false, "", "", false},
		{"#", false, "", "", false},
		{"/bin/sh\n", false, "", "", false},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_shebang sb;

		assert_int_equal(zb_shebang_parse(rows[i].line,
						  strlen(rows[i].line), &sb),
				 rows[i].ok);
		if (!rows[i].ok)
			continue;
		assert_string_equal(sb.interp, rows[i].interp);
		assert_string_equal(sb.arg, rows[i].arg);
		assert_int_equal(sb.crlf, rows[i].crlf);
	}
}

/* The kernel reads 256 bytes: a longer argument is cut, a longer name is not
 * started. */
static void long_shebangs(void **state)
{
	char line[600];
	struct zb_shebang sb;

	(void)state;
	memset(line, 'x', sizeof(line));
	memcpy(line, "#!/", 3);
	assert_false(zb_shebang_parse(line, sizeof(line), &sb));
	line[20] = ' ';
	assert_true(zb_shebang_parse(line, sizeof(line), &sb));
	assert_int_equal(strlen(sb.interp), 18);
	assert_int_equal(strlen(sb.arg), ZB_SHEBANG_MAX - 21);
}

static void env_split(void **state)
{
	static const struct {
		const char *s, *words; /* with | between; NULL: refused */
	} rows[] = {
		{"", ""},
		{" npx --yes tsx ", "npx|--yes|tsx"},
		{"a 'b c' \"d e\"", "a|b c|d e"},
		{"a\\_b", "a|b"},
		{"'a\\_b'", "a\\_b"},
		{"\"a\\_b\"", "a b"},
		{"a\\tb '' c", "a\tb||c"},
		{"a\\cb c", "a"},
		{"a'b'\"c\"d", "abcd"},
		{"'\\''", "'"},
		{"$HOME/x", NULL},
		{"\"${X}\"", NULL},
		{"'$X'", "$X"},
		{"'open", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_strv l = {0};
		struct zb_buf b = {0};
		struct zb_error err = {0};
		int rc = zb_env_split(rows[i].s, &l, &err);

		assert_int_equal(rc, rows[i].words ? 0 : ZB_EUSAGE);
		for (size_t k = 0; k < l.n; k++)
			zb_buf_addf(&b, "%s%s", k ? "|" : "", l.v[k]);
		if (rows[i].words)
			assert_string_equal(zb_buf_str(&b), rows[i].words);
		zb_buf_done(&b);
		zb_strv_done(&l);
	}
}

struct bytes {
	const unsigned char *p;
	size_t n;
};

static bool read_at(void *ctx, uint64_t offset, void *p, size_t n)
{
	const struct bytes *b = ctx;

	if (offset > b->n || n > b->n - offset)
		return false;
	memcpy(p, b->p + offset, n);
	return true;
}

static void elf_fields(void **state)
{
	unsigned char file[FAKE_ELF_SIZE];
	struct bytes b = {file, sizeof(file)};
	struct zb_elf e;
	struct zb_error err = {0};

	(void)state;
	fake_elf(file, 183, 3, "/lib/ld.so", "$ORIGIN/../lib::/opt/x");
	assert_int_equal(zb_elf_parse(&e, read_at, &b, &err), 0);
	assert_int_equal(e.machine, 183);
	assert_true(e.is64 && e.little_endian && e.executable);
	assert_string_equal(e.interp, "/lib/ld.so");
	assert_int_equal(e.runpath.n, 2);
	assert_string_equal(e.runpath.v[0], "$ORIGIN/../lib");
	assert_string_equal(e.runpath.v[1], "/opt/x");
	zb_elf_done(&e);
	fake_elf(file, 62, 1, NULL, NULL);
	assert_int_equal(zb_elf_parse(&e, read_at, &b, &err), 0);
	assert_false(e.executable);
	assert_null(e.interp);
	zb_elf_done(&e);
}

/* Every cut, and every byte of the headers changed: an answer, no more. */
static void elf_hostile(void **state)
{
	static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
	unsigned char file[FAKE_ELF_SIZE];
	struct bytes b = {file, 0};
	struct zb_elf e;
	struct zb_error err = {0};
	unsigned refused = 0;

	(void)state;
	fake_elf(file, 62, 3, "/lib/ld.so", "/opt/x");
	for (b.n = 0; b.n < sizeof(file); b.n++) {
		if (zb_elf_parse(&e, read_at, &b, &err))
			refused++;
		else
			zb_elf_done(&e);
	}
	assert_true(refused >= 1024); /* up to where the loader's name is */
	for (size_t i = 0; i < 64 + 3 * 56; i++)
		for (size_t k = 0; k < sizeof(values); k++) {
			unsigned char old = file[i];

			file[i] = values[k];
			if (!zb_elf_parse(&e, read_at, &b, &err))
				zb_elf_done(&e);
			file[i] = old;
		}
}

static void elf_of_this_program(void **state)
{
	static unsigned char file[64 << 20];
	FILE *f = fopen("/proc/self/exe", "re");
	struct bytes b = {file, 0};
	struct zb_elf e;
	struct zb_error err = {0};

	(void)state;
	if (!f) {
		skip();
		return;
	}
	b.n = fread(file, 1, sizeof(file), f);
	fclose(f);
	assert_int_equal(zb_elf_parse(&e, read_at, &b, &err), 0);
	assert_true(zb_elf_is_native(&e));
	assert_true(e.executable);
	zb_elf_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds),
		cmocka_unit_test(shebangs),
		cmocka_unit_test(long_shebangs),
		cmocka_unit_test(env_split),
		cmocka_unit_test(elf_fields),
		cmocka_unit_test(elf_hostile),
		cmocka_unit_test(elf_of_this_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
