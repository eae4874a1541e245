/* console_panel.c - a panel: read from a frame, composed for a screen.
 *
 * Text is cleaned as it is read (again: the mediator did it too, but here is
 * where it would be drawn), and what is left of control sequences, the colours,
 * is taken apart here: a cell has a style, no sequence. A frame may bring
 * megabytes of lines and a terminal may have one column, so rows are counted
 * first and cells are made for what is visible only. */
#include "console_panel.h"

#include "cleanup.h"
#include "json_scan.h"
#include "text.h"

#include <string.h>

#define SGR_NUMBERS 32
#define TAB	    8
#define FOOTER_ROWS 2
#define WITH_HINT   40 /* columns from which the title may share its row */

/* In sight whatever is said. */
static const char way_out[] = "  Esc closes ";

static const struct zb_style plain = {-1, -1, 0};
static const struct zb_style bar = {-1, -1, ZB_STYLE_REVERSE};

/* ---- reading ---- */

static char *cleaned(const struct zb_json *j, uint32_t i, bool keep_sgr)
{
	struct zb_buf raw = {0}, out = {0};
	char *s;

	if (i != ZB_JSON_NONE && j->tok[i].type == ZB_JSON_STRING)
		zb_json_string(j, i, &raw);
	zb_text_clean(&out, zb_buf_str(&raw), raw.len, keep_sgr, NULL);
	s = zb_buf_steal(&out);
	zb_buf_done(&raw);
	return s ? s : zb_strdup("");
}

static int read_lines(struct zb_panel *p, const struct zb_json *j, uint32_t i)
{
	size_t bytes = 0;
	int rc = 0;

	if (i == ZB_JSON_NONE || j->tok[i].type != ZB_JSON_ARRAY)
		return 0;
	for (i = zb_json_first(j, i); i != ZB_JSON_NONE && !rc;
	     i = zb_json_next(j, i)) {
		char *s = cleaned(j, i, true);

		bytes += s ? strlen(s) : 0;
		p->cut = p->lines.n == ZB_PANEL_LINES || bytes > ZB_PANEL_BYTES;
		if (p->cut) {
			free(s);
			break;
		}
		rc = zb_strv_take(&p->lines, s);
	}
	return rc;
}

static int read_members(struct zb_panel *p, const struct zb_json *j,
			uint32_t obj, const char *id_key)
{
	uint32_t id = zb_json_get(j, obj, id_key);
	int rc;

	if (id == ZB_JSON_NONE)
		return ZB_EUSAGE;
	p->id = zb_json_dup_string(j, id);
	p->title = cleaned(j, zb_json_get(j, obj, "title"), false);
	p->footer = cleaned(j, zb_json_get(j, obj, "footer"), true);
	rc = read_lines(p, j, zb_json_get(j, obj, "lines"));
	return rc || !p->id || !p->title || !p->footer ? ZB_EUSAGE : 0;
}

int zb_panel_read(struct zb_panel *out, const char *line, size_t len,
		  const char *key)
{
	struct zb_json_limits limits = {.index_depth = 3};
	struct zb_panel p = {0};
	struct zb_json j = {0};
	uint32_t obj = 0;
	int rc = ZB_EUSAGE;

	if (zb_json_scan(&j, line, len, &limits, NULL))
		return ZB_EUSAGE;
	if (key)
		obj = zb_json_get(&j, 0, key);
	if (obj != ZB_JSON_NONE && j.tok[obj].type == ZB_JSON_OBJECT)
		rc = read_members(&p, &j, obj, key ? "id" : "panel_id");
	zb_json_done(&j);
	if (rc) {
		zb_panel_done(&p);
		return ZB_EUSAGE;
	}
	if (!key && !p.title[0] && out->title) {
		free(p.title);
		p.title = zb_steal(&out->title);
	}
	zb_panel_done(out);
	*out = p;
	return 0;
}

void zb_panel_done(struct zb_panel *p)
{
	free(p->id);
	free(p->title);
	free(p->footer);
	zb_strv_done(&p->lines);
	memset(p, 0, sizeof(*p));
}

/* ---- styles ---- */

/* The nearest of the 6 * 6 * 6 colours that terminals have from 16 on. */
static int16_t cube(const unsigned rgb[3])
{
	int16_t c = 0;

	for (int i = 0; i < 3; i++) {
		unsigned v = rgb[i] > 255 ? 255 : rgb[i];
		unsigned step = v < 48 ? 0 : v < 115 ? 1 : (v - 35) / 40;

		c = (int16_t)(c * 6 + (int)step);
	}
	return (int16_t)(c + 16);
}

/* The numbers between ESC [ and m, and which of them follow a colon. */
struct sgr {
	unsigned v[SGR_NUMBERS];
	bool colon[SGR_NUMBERS];
	size_t n;
};

static void numbers(struct sgr *g, const char *s, size_t n)
{
	memset(g, 0, sizeof(*g));
	g->n = 1;
	for (size_t i = 0; i < n; i++) {
		if (s[i] >= '0' && s[i] <= '9') {
			unsigned *v = &g->v[g->n - 1];

			*v = *v > 9999 ? *v : *v * 10 + (unsigned)(s[i] - '0');
			continue;
		}
		if (g->n == SGR_NUMBERS)
			return;
		g->colon[g->n++] = s[i] == ':';
	}
}

/* 38;5;N  38;2;R;G;B  38:2::R:G:B, from number @i. Return: how many more. */
static size_t colour(const struct sgr *g, size_t i, int16_t *out)
{
	size_t group = i + 1, skip = 2;

	while (group < g->n && g->colon[group])
		group++;
	if (i + 2 < g->n && g->v[i + 1] == 5) {
		*out = (int16_t)(g->v[i + 2] & 255);
	} else if (i + 1 < g->n && g->v[i + 1] == 2) {
		size_t at = group - i >= 6 ? i + 3 : i + 2;

		skip = at + 2 - i;
		if (at + 2 < g->n)
			*out = cube(&g->v[at]);
	}
	return group > i + 1 ? group - i - 1 : skip;
}

/* What sets or clears flags. */
static const struct {
	uint8_t code, set, clear;
} flag_codes[] = {
	{1, ZB_STYLE_BOLD, 0},
	{2, ZB_STYLE_DIM, 0},
	{3, ZB_STYLE_ITALIC, 0},
	{4, ZB_STYLE_UNDERLINE, 0},
	{5, ZB_STYLE_BLINK, 0},
	{6, ZB_STYLE_BLINK, 0},
	{7, ZB_STYLE_REVERSE, 0},
	{21, ZB_STYLE_UNDERLINE, 0},
	{22, 0, ZB_STYLE_BOLD | ZB_STYLE_DIM},
	{23, 0, ZB_STYLE_ITALIC},
	{24, 0, ZB_STYLE_UNDERLINE},
	{25, 0, ZB_STYLE_BLINK},
	{27, 0, ZB_STYLE_REVERSE},
};

static void apply_one(struct zb_style *st, unsigned v)
{
	for (size_t i = 0; i < ZB_ARRAY_LEN(flag_codes); i++)
		if (flag_codes[i].code == v) {
			st->flags |= flag_codes[i].set;
			st->flags &= (uint8_t)~flag_codes[i].clear;
			return;
		}
	if (v >= 30 && v <= 37)
		st->fg = (int16_t)(v - 30);
	else if (v >= 40 && v <= 47)
		st->bg = (int16_t)(v - 40);
	else if (v >= 90 && v <= 97)
		st->fg = (int16_t)(v - 90 + 8);
	else if (v >= 100 && v <= 107)
		st->bg = (int16_t)(v - 100 + 8);
	else if (v == 39)
		st->fg = -1;
	else if (v == 49)
		st->bg = -1;
}

static void apply(struct zb_style *st, const struct zb_style *base,
		  const struct sgr *g)
{
	int16_t none;

	for (size_t i = 0; i < g->n; i++) {
		unsigned v = g->v[i];

		if (v == 0)
			*st = *base;
		else if (v == 38 || v == 48 || v == 58)
			i += colour(g, i,
				    v == 38   ? &st->fg
				    : v == 48 ? &st->bg
					      : &none);
		else
			apply_one(st, v);
		while (i + 1 < g->n && g->colon[i + 1])
			i++; /* the shape of an underline */
	}
}

/* ---- cells ---- */

/* Text on its way into cells. */
struct flow {
	const char *s;
	size_t n;
	struct zb_style style, base;
	unsigned col;	 /* of the row that is being filled */
	unsigned blanks; /* of a tab */
	zb_width *width;
};

static void blank(struct zb_cell *c, struct zb_style style)
{
	*c = (struct zb_cell){.cp = {' '}, .n = 1, .width = 1, .style = style};
}

/* A colour sequence at the front. Cleaned text has no others; whatever else
 * begins with ESC would lose it. */
static bool take_sgr(struct flow *f)
{
	struct sgr g;
	size_t i = 2;

	if (*f->s != 0x1b)
		return false;
	if (f->n > 2 && f->s[1] == '[')
		while (i < f->n && f->s[i] >= '0' && f->s[i] <= ';')
			i++;
	if (i < f->n && f->s[i] == 'm') {
		numbers(&g, f->s + 2, i - 2);
		apply(&f->style, &f->base, &g);
		i++;
	} else {
		i = 1;
	}
	f->s += i;
	f->n -= i;
	return true;
}

/* The character at the front and its columns: those that no terminal shows as
 * they are become a question mark. */
static unsigned look(const struct flow *f, uint32_t *cp, int *width)
{
	unsigned used = zb_utf8_next(f->s, f->n, cp);

	*width = used ? f->width(*cp) : -1;
	if (!used || zb_is_hazard(*cp) || *width < 0 || *width > 2) {
		*cp = '?';
		*width = 1;
	}
	return used ? used : 1;
}

static void take_marks(struct flow *f, struct zb_cell *c)
{
	uint32_t cp;
	int width;

	while (f->n && *f->s != 0x1b) {
		unsigned used = look(f, &cp, &width);

		if (width != 0)
			return;
		if (c->n < ZB_CELL_CHARACTERS)
			c->cp[c->n++] = cp;
		f->s += used;
		f->n -= used;
	}
}

/* Return: false at the end. */
static bool next_cell(struct flow *f, struct zb_cell *c)
{
	unsigned used;
	uint32_t cp;
	int width;

	while (f->n && !f->blanks && take_sgr(f))
		;
	blank(c, f->style);
	if (f->blanks) {
		f->blanks--;
		return true;
	}
	if (!f->n)
		return false;
	if (*f->s == '\t' || *f->s == '\n') {
		f->blanks = *f->s == '\t' ? TAB - 1 - f->col % TAB : 0;
		f->s++;
		f->n--;
		return true;
	}
	used = look(f, &cp, &width);
	if (width) {
		f->s += used;
		f->n -= used;
		c->cp[0] = cp;
		c->width = (uint8_t)width;
	}
	take_marks(f, c);
	return true;
}

/* ---- rows ---- */

/* Where rows go: those from @first on, to the screen's rows from @top, @height
 * of them. No screen: they are only counted. */
struct window {
	struct zb_screen *screen;
	unsigned top, height, cols;
	size_t first;
	zb_width *width;
};

/* What @c covers of a wide character leaves no half of it. */
static void place(const struct window *w, size_t row, unsigned col,
		  const struct zb_cell *c)
{
	struct zb_cell *at;

	if (!w->screen || row < w->first || row - w->first >= w->height)
		return;
	at = w->screen->cell +
	     (size_t)(w->top + (row - w->first)) * w->screen->cols + col;
	if (!at->n && col)
		blank(at - 1, at->style);
	if (col + c->width < w->screen->cols && !at[c->width].n)
		blank(at + c->width, at->style);
	at[0] = *c;
	if (c->width == 2) {
		at[1] = *c;
		at[1].n = 0;
	}
}

/* Lay @s into rows from @row on. Return: how many it took, at least one. */
static size_t lay(const struct window *w, const char *s, struct zb_style style,
		  size_t row)
{
	struct flow f = {.s = s,
			 .n = strlen(s),
			 .style = style,
			 .base = style,
			 .width = w->width};
	size_t rows = 1;
	struct zb_cell c;

	while (next_cell(&f, &c)) {
		if (c.width > w->cols) {
			blank(&c, c.style);
			c.cp[0] = '?';
		}
		if (f.col + c.width > w->cols) {
			f.col = 0;
			rows++;
		}
		place(w, row + rows - 1, f.col, &c);
		f.col += c.width;
	}
	return rows;
}

/* Marks that extensions put before the line that is chosen. */
static bool chosen(const char *s)
{
	static const char *const marks[] = {"▸ ", "● ", "› ", "> "};

	s += strspn(s, " ");
	for (size_t i = 0; i < ZB_ARRAY_LEN(marks); i++)
		if (!strncmp(s, marks[i], strlen(marks[i])))
			return true;
	return false;
}

/* All rows of the lines; *@mark is the row of the chosen one, or 0. */
static size_t count_rows(const struct zb_panel *p, const struct window *w,
			 size_t *mark)
{
	struct window count = {.cols = w->cols, .width = w->width};
	size_t rows = 0;

	*mark = 0;
	for (size_t i = 0; i < p->lines.n; i++) {
		if (!*mark && chosen(p->lines.v[i]))
			*mark = rows;
		rows += lay(&count, p->lines.v[i], plain, 0);
	}
	return rows;
}

static void draw_body(const struct zb_panel *p, struct window *w, size_t total,
		      size_t mark)
{
	size_t row = 0;

	if (total > w->height && mark >= w->height)
		w->first = mark - w->height / 2;
	if (w->first && w->first + w->height > total)
		w->first = total - w->height;
	for (size_t i = 0; i < p->lines.n && row < w->first + w->height; i++) {
		struct zb_style style = plain;

		if (chosen(p->lines.v[i]))
			style.flags |= ZB_STYLE_BOLD;
		row += lay(w, p->lines.v[i], style, row);
	}
}

/* ---- the screen ---- */

static void fill(struct zb_screen *s, unsigned row, struct zb_style style)
{
	for (unsigned i = 0; i < s->cols; i++)
		blank(&s->cell[(size_t)row * s->cols + i], style);
}

/* One row in reverse: what is longer is cut. */
static void draw_bar(struct zb_screen *s, unsigned row, const char *text,
		     zb_width *width)
{
	struct window w = {.screen = s,
			   .top = row,
			   .height = 1,
			   .cols = s->cols,
			   .width = width};

	fill(s, row, bar);
	lay(&w, text, bar, 0);
}

/* What is always there, on the right of a row of ours. */
static void draw_right(struct zb_screen *s, unsigned row, const char *text,
		       zb_width *width)
{
	struct window w = {.screen = s,
			   .top = row,
			   .height = 1,
			   .cols = s->cols,
			   .width = width};
	size_t len = strlen(text);
	struct zb_cell c;

	if (len > s->cols)
		return;
	for (size_t i = 0; i < len; i++) {
		blank(&c, bar);
		c.cp[0] = (unsigned char)text[i];
		place(&w, 0, s->cols - (unsigned)(len - i), &c);
	}
}

static void draw_title(struct zb_screen *s, const struct zb_panel *p,
		       const char *ext, const struct window *w, size_t total)
{
	struct zb_buf text = {0};

	zb_buf_addf(&text, " %s", ext);
	if (p->title[0] && strcmp(p->title, ext) != 0)
		zb_buf_addf(&text, ": %s", p->title);
	draw_bar(s, 0, zb_buf_str(&text), w->width);
	zb_buf_clear(&text);
	if (w->height && (total > w->height || p->cut)) {
		size_t last = w->first + w->height;

		zb_buf_addf(&text, "  rows %zu-%zu of %zu%s ", w->first + 1,
			    last < total ? last : total, total,
			    p->cut ? "+" : "");
		if (s->cols >= WITH_HINT && text.len < s->cols / 2)
			draw_right(s, 0, zb_buf_str(&text), w->width);
	}
	zb_buf_done(&text);
}

static int make_screen(struct zb_screen *s, unsigned rows, unsigned cols)
{
	struct zb_cell *cell;

	rows = !rows ? 1 : rows > ZB_PANEL_SIDE ? ZB_PANEL_SIDE : rows;
	cols = !cols ? 1 : cols > ZB_PANEL_SIDE ? ZB_PANEL_SIDE : cols;
	cell = realloc(s->cell, (size_t)rows * cols * sizeof(*cell));
	if (!cell)
		return ZB_ELIMIT;
	s->cell = cell;
	s->rows = rows;
	s->cols = cols;
	for (unsigned i = 0; i < rows; i++)
		fill(s, i, plain);
	return 0;
}

int zb_panel_draw(const struct zb_panel *p, const char *ext, const char *status,
		  unsigned rows, unsigned cols, zb_width *width,
		  struct zb_screen *out)
{
	struct zb_style dim = {-1, -1, ZB_STYLE_DIM};
	struct window w = {.screen = out, .top = 1, .width = width};
	size_t total, mark, footer = 0;

	if (make_screen(out, rows, cols))
		return ZB_ELIMIT;
	w.cols = out->cols;
	if (out->rows > 4 && p->footer[strspn(p->footer, " \t\n")]) {
		struct window count = {.cols = w.cols, .width = width};

		footer = lay(&count, p->footer, dim, 0);
		if (footer > FOOTER_ROWS)
			footer = FOOTER_ROWS;
	}
	w.height = out->rows - (out->rows > 2) - (unsigned)footer - 1;
	total = count_rows(p, &w, &mark);
	if (w.height)
		draw_body(p, &w, total, mark);
	draw_title(out, p, ext, &w, total);
	if (footer) {
		struct window below = w;

		below.first = 0;
		below.top = 1 + w.height;
		below.height = (unsigned)footer;
		lay(&below, p->footer, dim, 0);
	}
	if (out->rows > 2) {
		draw_bar(out, out->rows - 1, status, width);
		draw_right(out, out->rows - 1, way_out, width);
	}
	return 0;
}

void zb_screen_done(struct zb_screen *s)
{
	free(s->cell);
	memset(s, 0, sizeof(*s));
}
