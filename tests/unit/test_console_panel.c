/* test_console_panel.c - keys of a terminal, panels as cells, frames as lines.
 */
#include "cleanup.h"
#include "console_keys.h"
#include "console_panel.h"
#include "console_text.h"
#include "denial.h"
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- keys ---- */

/* All keys of @bytes as "up rune:x ...", given @step bytes at a time. */
static char *keys_of(const char *bytes, size_t n, size_t step)
{
	struct zb_keys k = {0};
	struct zb_buf out = {0};
	struct zb_key key;

	for (size_t i = 0; i < n; i += step) {
		zb_keys_feed(&k, bytes + i, n - i < step ? n - i : step);
		while (zb_keys_next(&k, false, &key))
			zb_buf_addf(&out, "%s%s%s%s", out.len ? " " : "",
				    key.name, key.text[0] ? ":" : "", key.text);
	}
	while (zb_keys_next(&k, true, &key))
		zb_buf_addf(&out, "%s%s%s%s", out.len ? " " : "", key.name,
			    key.text[0] ? ":" : "", key.text);
	assert_int_equal(k.n, 0);
	return zb_buf_steal(&out);
}

static const struct {
	const char *bytes, *keys;
} key_rows[] = {
	{"\033[A\033[B\033[C\033[D", "up down right left"},
	{"\033OA\033OB\033OC\033OD", "up down right left"},
	{"\033[H\033OH\033[1~\033[7~", "home home home home"},
	{"\033[F\033OF\033[4~\033[8~", "end end end end"},
	{"\033[3~\033[5~\033[6~", "delete pageup pagedown"},
	{"\r\n\t\177\b", "enter enter tab backspace backspace"},
	{"\033OM", "enter"},
	{"a Z~", "rune:a rune:  rune:Z rune:~"},
	{"\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80",
	 "rune:\xc3\xa9 rune:\xe6\xbc\xa2 rune:\xf0\x9f\x98\x80"},
	{"\003", "esc"},
	{"\033", "esc"},
	{"\033\033", "esc esc"},
	{"\033\033[A", "esc up"},
	{"\001\032\034\037", "unknown unknown unknown unknown"},
	{"\033x", "unknown"},
	{"\033\xc3\xa9q", "unknown rune:q"},
	{"\033[1;5A", "unknown"},
	{"\033[15~\033[[A\033OP\033[Z", "unknown unknown unknown unknown"},
	{"\033[200~x\033[201~", "unknown rune:x unknown"},
	{"\033[<0;10;10Mq", "unknown rune:q"},
	{"\033[", "unknown"},
	{"\033O", "unknown"},
	{"\033[12", "unknown"},
	{"\033[1\003", "unknown esc"},
	{"\xff\xc3(\x80", "unknown unknown rune:( unknown"},
	{"\xe6\xbc", "unknown"},
	{"\xc2\x9b", "unknown"},
	{"\xed\xa0\x80", "unknown unknown unknown"},
};

static void keys(void **state)
{
	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(key_rows); i++)
		for (size_t step = 1; step < 20; step += 6) {
			zb_auto(free) char *got =
				keys_of(key_rows[i].bytes,
					strlen(key_rows[i].bytes), step);

			/* Whole sequences alone: two in one read are told
			 * apart, a byte at a time needs no waiting either. */
			assert_string_equal(got, key_rows[i].keys);
		}
}

/* NUL is a key (Ctrl-Space); a sequence that never ends is one, too. */
static void odd_keys(void **state)
{
	char long_one[ZB_KEY_ROOM];
	zb_auto(free) char *nul = keys_of("\0a", 2, 2);
	zb_auto(free) char *got = NULL;

	(void)state;
	assert_string_equal(nul, "unknown rune:a");
	memset(long_one, ';', sizeof(long_one));
	memcpy(long_one, "\033[", 2);
	got = keys_of(long_one, sizeof(long_one), sizeof(long_one));
	assert_string_equal(got, "unknown");
}

static void room_for_keys(void **state)
{
	struct zb_keys k = {0};
	char many[ZB_KEY_ROOM + 10];
	struct zb_key key;
	size_t n = 0;

	(void)state;
	memset(many, 'a', sizeof(many));
	assert_int_equal(zb_keys_room(&k), ZB_KEY_ROOM);
	zb_keys_feed(&k, many, sizeof(many));
	assert_int_equal(zb_keys_room(&k), 0);
	while (zb_keys_next(&k, false, &key))
		n++;
	assert_int_equal(n, ZB_KEY_ROOM);
}

/* What terminfo says comes first; a beginning of it is waited for. */
static void own_keys(void **state)
{
	static const struct zb_key_seq own[] = {
		{"home", "\033[25z"}, {"backspace", "\030"}, {"up", "#U"}};
	struct zb_keys k = {.more = own, .n_more = ZB_ARRAY_LEN(own)};
	struct zb_key key;

	(void)state;
	zb_keys_feed(&k, "\033[25z\030#", 7);
	assert_true(zb_keys_next(&k, false, &key));
	assert_string_equal(key.name, "home");
	assert_true(zb_keys_next(&k, false, &key));
	assert_string_equal(key.name, "backspace");
	assert_false(zb_keys_next(&k, false, &key));
	zb_keys_feed(&k, "U#", 2);
	assert_true(zb_keys_next(&k, false, &key));
	assert_string_equal(key.name, "up");
	assert_false(zb_keys_next(&k, false, &key));
	assert_true(zb_keys_next(&k, true, &key));
	assert_string_equal(key.text, "#");
}

/* ---- panels ---- */

/* Enough of wcwidth(3), without a locale. */
static int width(uint32_t cp)
{
	if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0xfffe)
		return -1;
	if ((cp >= 0x300 && cp < 0x370) || cp == 0xfe0f || cp == 0x200d)
		return 0;
	return (cp >= 0x1100 && cp < 0x1160) || (cp >= 0x2e80 && cp < 0xa4d0) ||
			       (cp >= 0xac00 && cp < 0xd7a4) ||
			       (cp >= 0x1f300 && cp < 0x1f700)
		       ? 2
		       : 1;
}

static void read_ok(struct zb_panel *p, const char *json, const char *key)
{
	assert_int_equal(zb_panel_read(p, json, strlen(json), key), 0);
}

static void reading(void **state)
{
	struct zb_panel p = {0};
	static const char bad[] = "{\"type\":\"open_panel\",\"panel\":{}}";

	(void)state;
	read_ok(&p,
		"{\"type\":\"open_panel\",\"panel\":{\"id\":\"a\",\"title\":"
		"\"T\",\"lines\":[\"1\",\"2\"],\"footer\":\"F\"}}",
		"panel");
	assert_string_equal(p.id, "a");
	assert_int_equal(p.lines.n, 2);
	read_ok(&p,
		"{\"type\":\"panel_render\",\"panel_id\":\"a\",\"lines\":["
		"\"3\"]}",
		NULL);
	assert_string_equal(p.title, "T"); /* kept */
	assert_string_equal(p.footer, ""); /* replaced */
	assert_int_equal(p.lines.n, 1);
	assert_string_equal(p.lines.v[0], "3");
	/* A failure leaves it as it was. */
	assert_int_equal(zb_panel_read(&p, bad, strlen(bad), "panel"),
			 ZB_EUSAGE);
	assert_int_equal(zb_panel_read(&p, "[]", 2, NULL), ZB_EUSAGE);
	assert_int_equal(zb_panel_read(&p, "x", 1, NULL), ZB_EUSAGE);
	assert_string_equal(p.lines.v[0], "3");
	read_ok(&p,
		"{\"panel_id\":\"a\",\"title\":7,\"lines\":[1,null,{\"x\":[]},"
		"\"s\"],\"footer\":null}",
		NULL);
	assert_int_equal(p.lines.n, 4);
	assert_string_equal(p.lines.v[0], "");
	assert_string_equal(p.lines.v[3], "s");
	zb_panel_done(&p);
}

static void bounds(void **state)
{
	struct zb_panel p = {0};
	struct zb_buf json = {0};

	(void)state;
	zb_buf_adds(&json, "{\"panel_id\":\"a\",\"lines\":[\"x\"");
	for (int i = 0; i < 5000; i++)
		zb_buf_adds(&json, ",\"y\"");
	zb_buf_adds(&json, "]}");
	read_ok(&p, zb_buf_str(&json), NULL);
	assert_int_equal(p.lines.n, ZB_PANEL_LINES);
	assert_true(p.cut);
	zb_buf_clear(&json);
	zb_buf_adds(&json, "{\"panel_id\":\"a\",\"lines\":[");
	for (int i = 0; i < 100; i++)
		zb_buf_addf(&json, "%s\"%08000d\"", i ? "," : "", i);
	zb_buf_adds(&json, "]}");
	read_ok(&p, zb_buf_str(&json), NULL);
	assert_true(p.cut);
	assert_int_equal(p.lines.n, ZB_PANEL_BYTES / 8000);
	zb_buf_done(&json);
	zb_panel_done(&p);
}

/* A screen as text, rows with | at both ends; the right half of a wide
 * character is left out. */
static char *drawn(const struct zb_screen *s)
{
	struct zb_buf out = {0};

	for (unsigned r = 0; r < s->rows; r++) {
		zb_buf_addc(&out, '|');
		for (unsigned c = 0; c < s->cols; c++) {
			const struct zb_cell *cell = &s->cell[r * s->cols + c];

			/* What ncurses is given: printable, whole, in place. */
			if (!cell->n) {
				assert_true(c > 0);
				assert_int_equal(cell[-1].width, 2);
				assert_true(cell[-1].n > 0);
				continue;
			}
			assert_in_range(cell->width, 1, 2);
			assert_true(c + cell->width <= s->cols);
			assert_true(cell->width == 1 || !cell[1].n);
			for (unsigned i = 0; i < cell->n; i++) {
				assert_false(zb_is_hazard(cell->cp[i]));
				assert_true(cell->cp[i] >= 0x20);
				zb_utf8_add(&out, cell->cp[i]);
			}
		}
		zb_buf_adds(&out, "|\n");
	}
	return zb_buf_steal(&out);
}

static char *draw(const char *lines, const char *title, const char *footer,
		  unsigned rows, unsigned cols)
{
	struct zb_screen s = {0};
	struct zb_panel p = {0};
	struct zb_buf json = {0};
	char *text;

	zb_buf_addf(&json,
		    "{\"panel_id\":\"p\",\"title\":\"%s\",\"lines\":[%s],"
		    "\"footer\":\"%s\"}",
		    title, lines, footer);
	read_ok(&p, zb_buf_str(&json), NULL);
	assert_int_equal(
		zb_panel_draw(&p, "ext", " news", rows, cols, width, &s), 0);
	text = drawn(&s);
	zb_screen_done(&s);
	zb_panel_done(&p);
	zb_buf_done(&json);
	return text;
}

static const struct {
	const char *lines, *title, *footer;
	unsigned rows, cols;
	const char *screen;
} draw_rows[] = {
	{"\"one\",\"two\"", "T", "foot", 6, 16,
	 "| ext: T         |\n|one             |\n|two             |\n"
	 "|                |\n|foot            |\n| ne  Esc closes |\n"},
	/* Wrapped; wide characters are not cut in two, marks take no room. */
	{"\"abcdefghi\",\"\u6f22\u6f22\u6f22\",\"e\u0301x\"", "", "", 8, 5,
	 "| ext |\n|abcde|\n|fghi |\n|\u6f22\u6f22 |\n|\u6f22   |\n"
	 "|e\u0301x   |\n|     |\n| news|\n"},
	{"\"\u6f22a\"", "", "", 3, 1, "| |\n|?|\n| |\n"},
	/* Tabs, line ends inside, marks without a base, the empty line. */
	{"\"a\\tb\",\"\",\"x\\ny\",\"\u0301\"", "", "", 6, 10,
	 "| ext      |\n|a       b |\n|          |\n|x y       |\n"
	 "| \u0301         |\n| news     |\n"},
	/* Controls, sequences, hazards. */
	{"\"\\u001b[2Ja\\u001b]0;t\\u0007b\\u009b5Ac\\r\\u202e\\ufffe\"",
	 "\\u001b]0;x\\u0007", "", 3, 20,
	 "| ext                |\n|abc\\u{202e}?        |\n"
	 "| news    Esc closes |\n"},
	{"\"\\u001b\",\"\\u001b[\",\"\\u001b[3\"", "", "", 5, 4,
	 "| ext|\n|    |\n|    |\n|    |\n| new|\n"},
	/* Little room. */
	{"\"a\"", "T", "f", 1, 9, "| ext: T  |\n"},
	{"\"a\"", "T", "f", 2, 9, "| ext: T  |\n|a        |\n"},
	{"\"a\",\"b\"", "T", "f", 4, 9,
	 "| ext: T  |\n|a        |\n|b        |\n| news    |\n"},
	/* The footer has two rows at most. */
	{"\"a\"", "", "abcdefghijkl", 6, 5,
	 "| ext |\n|a    |\n|     |\n|abcde|\n|fghij|\n| news|\n"},
	{"\"a\"", "", " \\t ", 5, 5,
	 "| ext |\n|a    |\n|     |\n|     |\n| news|\n"},
	/* What is chosen is in sight, and what part that is. */
	{"\"0\",\"1\",\"2\",\"3\",\"> 4\",\"5\",\"6\"", "T", "", 5, 44,
	 "| ext: T                       rows 4-6 of 7 |\n"
	 "|3                                           |\n"
	 "|> 4                                         |\n"
	 "|5                                           |\n"
	 "| news                            Esc closes |\n"},
	{"\"0\",\"1\",\"2\",\"3\",\"4\",\"  \u25b8 5\"", "T", "", 5, 9,
	 "| ext: T  |\n|3        |\n|4        |\n|  \u25b8 5    |\n"
	 "| news    |\n"},
	{"\"\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\"",
	 "\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22", "", 2, 12,
	 "| ext: \u6f22\u6f22\u6f22|\n"
	 "|\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22|\n"},
};

static void drawing(void **state)
{
	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(draw_rows); i++) {
		zb_auto(free) char *got =
			draw(draw_rows[i].lines, draw_rows[i].title,
			     draw_rows[i].footer, draw_rows[i].rows,
			     draw_rows[i].cols);

		if (strcmp(got, draw_rows[i].screen))
			fail_msg("row %zu:\n%sis not\n%s", i, got,
				 draw_rows[i].screen);
	}
}

/* Any size, whatever is in it: drawn() checks each cell. */
static void sizes(void **state)
{
	static const char lines[] =
		"\"\u6f22a\u6f22\u0301\u0301\u0301\u0301\u0301b\\t\u6f22\","
		"\"> \\u001b[1;31mx\u6f22\",\"\"";

	(void)state;
	for (unsigned rows = 0; rows < 9; rows++)
		for (unsigned cols = 0; cols < 60; cols++)
			free(draw(lines, "\u6f22\u6f22T\u6f22", "f\u6f22\u6f22",
				  rows, cols));
	free(draw(lines, "", "", 100000, 100000));
}

static struct zb_style style_of(const char *sgr)
{
	struct zb_screen s = {0};
	struct zb_panel p = {0};
	struct zb_buf json = {0};
	struct zb_style st;

	zb_buf_addf(&json, "{\"panel_id\":\"p\",\"lines\":[\"%sx\"]}", sgr);
	read_ok(&p, zb_buf_str(&json), NULL);
	assert_int_equal(zb_panel_draw(&p, "e", "", 3, 9, width, &s), 0);
	assert_int_equal(s.cell[9].cp[0], 'x');
	st = s.cell[9].style;
	zb_screen_done(&s);
	zb_panel_done(&p);
	zb_buf_done(&json);
	return st;
}

static const struct {
	const char *sgr;
	int fg, bg;
	unsigned flags;
} style_rows[] = {
	{"", -1, -1, 0},
	{"\\u001b[31m", 1, -1, 0},
	{"\\u001b[1;4;44m", -1, 4, ZB_STYLE_BOLD | ZB_STYLE_UNDERLINE},
	{"\\u001b[1m\\u001b[m", -1, -1, 0},
	{"\\u001b[1;2;22;3;7m", -1, -1, ZB_STYLE_ITALIC | ZB_STYLE_REVERSE},
	{"\\u001b[97;101m", 15, 9, 0},
	{"\\u001b[38;5;208m", 208, -1, 0},
	{"\\u001b[48;2;255;0;0;1m", -1, 196, ZB_STYLE_BOLD},
	{"\\u001b[38:2::0:0:255m", 21, -1, 0},
	{"\\u001b[38:2:0:0:255;4m", 21, -1, ZB_STYLE_UNDERLINE},
	{"\\u001b[38:5:9;1m", 9, -1, ZB_STYLE_BOLD},
	{"\\u001b[4:3m", -1, -1, ZB_STYLE_UNDERLINE},
	{"\\u001b[58;5;3;1m", -1, -1, ZB_STYLE_BOLD},
	{"\\u001b[31;42m\\u001b[39;49m", -1, -1, 0},
	{"\\u001b[38m", -1, -1, 0},
	{"\\u001b[38;5m", -1, -1, 0},
	{"\\u001b[38;2;1m", -1, -1, 0},
	{"\\u001b[38;2;999;999;999m", 231, -1, 0},
};

static void styles(void **state)
{
	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(style_rows); i++) {
		struct zb_style s = style_of(style_rows[i].sgr);

		if (s.fg != style_rows[i].fg || s.bg != style_rows[i].bg ||
		    s.flags != style_rows[i].flags)
			fail_msg("%s: %d %d %u", style_rows[i].sgr, s.fg, s.bg,
				 s.flags);
	}
}

/* ---- lines ---- */

static const struct {
	const char *type, *json, *text;
} text_rows[] = {
	{"notify", "{\"level\":\"info\",\"message\":\"hi\"}", "[e] hi\n"},
	{"display", "{\"text\":\"a\\nb\"}", "[e] a\n[e] b\n"},
	{"display", "{\"display\":\"a\"}", "[e] a\n"},
	{"prompt", "{\"prompt\":\"do\"}", "[e] prompt: do\n"},
	{"noop", "{\"action\":\"noop\"}", "[e] done\n"},
	{"noop", "{\"action\":\"noop\",\"error\":\"bad\"}", "[e] error: bad\n"},
	{"error", "{\"error\":\"no\"}", "[e] error: no\n"},
	{"result",
	 "{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\","
	 "\"text\":\"b\"},{\"type\":\"image\",\"data\":\"AAAA\"}]}",
	 "[e] result: a\n[e] b\n[e] (an image, 4 bytes of base64)\n"},
	{"result", "{\"content\":[],\"is_error\":true}", "[e] error result\n"},
	{"tool", "{\"name\":\"t\",\"state\":\"active\",\"schema\":{}}",
	 "[e] tool: t  active\n"},
	{"other", "{\"a\":[1]}", "[e] other: {\"a\":[1]}\n"},
	{"notify", "not json", "[e] not json\n"},
	/* Nobody speaks for another. */
	{"notify", "{\"message\":\"x\\n[zotbox] y\\r[z]\"}",
	 "[e] x\n[e] [zotbox] y[z]\n"},
	{"notify",
	 "{\"message\":\"\\u001b[31mr\\u001b]0;t\\u0007\\u202e\\u009b1A\"}",
	 "[e] r\\u{202e}\n"},
	{"notify", "{\"message\":\"\"}", "[e] \n"},
	{"display", "{\"text\":\"\\n\\na\\n\"}", "[e] \n[e] \n[e] a\n"},
};

static void lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(text_rows); i++) {
		struct zb_buf out = {0};

		assert_int_equal(zb_console_text(&out, "e", text_rows[i].type,
						 text_rows[i].json,
						 strlen(text_rows[i].json),
						 false),
				 0);
		assert_string_equal(zb_buf_str(&out), text_rows[i].text);
		zb_buf_done(&out);
	}
}

/* No row begins with what an extension says. */
static void rows_begin_alike(void **state)
{
	static const struct {
		const char *ext, *lines, *rows;
		unsigned cols;
	} t[] = {
		{"e", "[e] 0123456789abcdef\n[e] x\n",
		 "[e] 0123456789abcdef\n[e] x\n", 20},
		{"e", "[e] 0123456789abcdef!\n",
		 "[e] 0123456789abcdef\n[e] !\n", 20},
		{"e", "[e] 0123456789abcd\xe6\xbc\xa2\xe6\xbc\xa2\n",
		 "[e] 0123456789abcd\xe6\xbc\xa2\n[e] \xe6\xbc\xa2\n", 20},
		{"e", "\033[31m[e] 0123456789\033[0m\n",
		 "\033[31m[e] 0123456789\033[0m\n", 14},
		{"e", "[e] a\tb\tzotbox> x\n", "[e] a\tb\tzotb\n[e] ox> x\n",
		 20},
		{"long", "[long] 01234567\n", "[long] 01234\n  567\n", 12},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(t); i++) {
		struct zb_buf out = {0};

		assert_int_equal(zb_console_rows(&out, t[i].ext, t[i].lines,
						 strlen(t[i].lines), t[i].cols,
						 width),
				 0);
		assert_string_equal(zb_buf_str(&out), t[i].rows);
		zb_buf_done(&out);
	}
}

/* Nor with what it asked for and was refused. */
static void refusal_rows(void **state)
{
	char ext[] = "e", rule[] = "strict.json: nothing grants it";
	char target[] = "/home/u/0123456789 zotbox> rm -rf 0123456789 zotbox>";
	const struct zb_denial d = {
		.ext = ext,
		.op = ZB_OP_FS_READ,
		.asked = target,
		.target = target,
		.rule = rule,
		.count = 1,
	};
	struct zb_buf text = {0}, line = {0}, out = {0};
	unsigned n = 0;

	(void)state;
	assert_int_equal(zb_denial_text(&d, "/home/u", &text), 0);
	assert_int_equal(
		zb_console_lines(&line, "e", zb_buf_str(&text), text.len, true),
		0);
	assert_int_equal(zb_console_rows(&out, "e", zb_buf_str(&line), line.len,
					 24, width),
			 0);
	for (const char *p = zb_buf_str(&out); *p; p = strchr(p, '\n') + 1) {
		const char *head = n++ ? "[e] " : "\033[1m[e]\033[0m ";

		assert_memory_equal(p, head, strlen(head));
		assert_true(strcspn(p, "\n") <= strlen(head) + 20);
	}
	assert_true(n > 4);
	zb_buf_done(&text);
	zb_buf_done(&line);
	zb_buf_done(&out);
}

static void coloured_lines(void **state)
{
	static const char json[] = "{\"level\":\"error\",\"message\":\"x\"}";
	struct zb_buf out = {0};

	(void)state;
	zb_console_text(&out, "e", "notify", json, strlen(json), true);
	assert_string_equal(zb_buf_str(&out), "\033[31m[e] x\n\033[0m");
	zb_buf_clear(&out);
	zb_console_lines(&out, "e", "x", 1, true);
	assert_string_equal(zb_buf_str(&out), "\033[1m[e]\033[0m x\n");
	zb_buf_done(&out);
}

static void long_lines(void **state)
{
	struct zb_buf text = {0}, out = {0};

	(void)state;
	zb_buf_addc(&text, 'x');
	while (text.len < 2 * ZB_CONSOLE_TEXT_MAX)
		zb_buf_adds(&text, "\u6f22");
	assert_int_equal(
		zb_console_lines(&out, "e", zb_buf_str(&text), text.len, false),
		0);
	assert_true(out.len < ZB_CONSOLE_TEXT_MAX + 100);
	assert_int_equal(zb_utf8_check(out.data, out.len), out.len);
	assert_non_null(strstr(out.data, " more bytes are not shown)\n"));
	zb_buf_clear(&out);
	zb_console_lines(&out, "e", "a\xff\nb", 4, false);
	assert_string_equal(zb_buf_str(&out), "[e] a\\xff\\x0ab\n");
	zb_buf_done(&text);
	zb_buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys),
		cmocka_unit_test(odd_keys),
		cmocka_unit_test(room_for_keys),
		cmocka_unit_test(own_keys),
		cmocka_unit_test(reading),
		cmocka_unit_test(bounds),
		cmocka_unit_test(drawing),
		cmocka_unit_test(sizes),
		cmocka_unit_test(styles),
		cmocka_unit_test(lines),
		cmocka_unit_test(rows_begin_alike),
		cmocka_unit_test(refusal_rows),
		cmocka_unit_test(coloured_lines),
		cmocka_unit_test(long_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
