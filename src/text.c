/* text.c - text that strangers wrote.
 *
 * Everything here walks bytes once, from left to right, and never trusts that
 * they are text: zb_utf8_next() is the only decoder, and what it does not
 * accept is shown as bytes. Three ways of showing are kept apart:
 *
 *	escape	for our own messages: one line, reversible, nothing is lost
 *	clean	for text that goes on to a person or a model: what a terminal
 *		would act on is gone, what it would hide is made visible
 *	quote	for commands that may be copied: plain text only, or none at
 *		all, since an escaped name is another name
 */
#include "text.h"

#include "cleanup.h"
#include "fold_table.h"
#include "utf8.h"

#include <string.h>

#define ONES  UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

struct range {
	uint32_t lo, hi;
};

static bool in_ranges(uint32_t cp, const struct range *r, size_t n)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (cp > r[mid].hi)
			lo = mid + 1;
		else if (cp < r[mid].lo)
			hi = mid;
		else
			return true;
	}
	return false;
}

unsigned zb_utf8_next(const char *s, size_t n, uint32_t *cp)
{
	return zb_utf8_step(s, n, cp);
}

/* Bytes of ASCII at the start of @s, eight at a time; may stop early. */
static size_t ascii_run(const char *s, size_t n)
{
	size_t i = 0;
	uint64_t w;

	while (n - i >= sizeof(w)) {
		memcpy(&w, s + i, sizeof(w));
		if (w & HIGHS)
			break;
		i += sizeof(w);
	}
	return i;
}

size_t zb_utf8_check(const char *s, size_t n)
{
	size_t i = 0;
	uint32_t cp;

	while (i < n) {
		unsigned used;

		i += ascii_run(s + i, n - i);
		if (i >= n)
			break;
		used = zb_utf8_step(s + i, n - i, &cp);
		if (!used)
			return i;
		i += used;
	}
	return n;
}

int zb_utf8_add(struct zb_buf *out, uint32_t cp)
{
	char b[4];
	size_t n;

	if (cp < 0x80) {
		b[0] = (char)cp;
		n = 1;
	} else if (cp < 0x800) {
		b[0] = (char)(0xc0 | cp >> 6);
		b[1] = (char)(0x80 | (cp & 0x3f));
		n = 2;
	} else if (cp < 0x10000) {
		b[0] = (char)(0xe0 | cp >> 12);
		b[1] = (char)(0x80 | (cp >> 6 & 0x3f));
		b[2] = (char)(0x80 | (cp & 0x3f));
		n = 3;
	} else {
		b[0] = (char)(0xf0 | cp >> 18);
		b[1] = (char)(0x80 | (cp >> 12 & 0x3f));
		b[2] = (char)(0x80 | (cp >> 6 & 0x3f));
		b[3] = (char)(0x80 | (cp & 0x3f));
		n = 4;
	}
	return zb_buf_add(out, b, n);
}

bool zb_is_blank(uint32_t cp)
{
	static const struct range blanks[] = {
		{0x09, 0x0d},	  {0x20, 0x20},	    {0x85, 0x85},
		{0xa0, 0xa0},	  {0x1680, 0x1680}, {0x2000, 0x200a},
		{0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
		{0x3000, 0x3000},
	};

	return in_ranges(cp, blanks, ZB_ARRAY_LEN(blanks));
}

size_t zb_skip_blanks(const char *s, size_t n)
{
	size_t i = 0;
	uint32_t cp;

	while (i < n) {
		unsigned used = zb_utf8_next(s + i, n - i, &cp);

		if (!used || !zb_is_blank(cp))
			break;
		i += used;
	}
	return i;
}

bool zb_is_hazard(uint32_t cp)
{
	static const struct range hazards[] = {
		{0x00, 0x08},	  {0x0b, 0x1f},	      {0x7f, 0x9f},
		{0xad, 0xad},	  {0x34f, 0x34f},     {0x61c, 0x61c},
		{0x115f, 0x1160}, {0x17b4, 0x17b5},   {0x180b, 0x180f},
		{0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
		{0x3164, 0x3164}, {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
		{0xfff0, 0xfffb}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
	};

	if (cp >= 0x20 && cp < 0x7f)
		return false;
	return in_ranges(cp, hazards, ZB_ARRAY_LEN(hazards));
}

/* One unit of @s as zb_text_escape() shows it: *@piece is either the unit
 * itself or @tmp, *@plen its length. Return: bytes of @s used. */
static unsigned escape_unit(const char *s, size_t n, char tmp[16],
			    const char **piece, size_t *plen)
{
	static const char hex[] = "0123456789abcdef";
	unsigned char c = (unsigned char)s[0];
	uint32_t cp = 0;
	unsigned used = zb_utf8_next(s, n, &cp);

	*piece = tmp;
	if (!used || cp < 0x20 || cp == 0x7f) {
		memcpy(tmp, "\\x", 2);
		tmp[2] = hex[c >> 4];
		tmp[3] = hex[c & 15];
		*plen = 4;
		return 1;
	}
	if (cp == '\\') {
		memcpy(tmp, "\\\\", 2);
		*plen = 2;
	} else if (zb_is_hazard(cp)) {
		size_t len = 3, digits = cp > 0xffff ? 5 : cp > 0xff ? 4 : 2;

		if (digits == 4 && cp <= 0xfff)
			digits = 3;
		memcpy(tmp, "\\u{", 3);
		while (digits--)
			tmp[len++] = hex[cp >> 4 * digits & 15];
		tmp[len++] = '}';
		*plen = len;
	} else {
		*piece = s;
		*plen = used;
	}
	return used;
}

/* Bytes at the start of @s that are printable ASCII, eight at a time. */
static size_t printable_run(const char *s, size_t n)
{
	size_t i = 0;
	uint64_t w;

	while (n - i >= sizeof(w)) {
		memcpy(&w, s + i, sizeof(w));
		/* A byte over 7E, or below 20: either shows in its top bit. */
		if ((w | (w + ONES) | (w - ONES * 0x20)) & HIGHS)
			break;
		i += sizeof(w);
	}
	return i;
}

int zb_text_escape(struct zb_buf *out, const char *s, size_t n, size_t max)
{
	size_t i = 0, added = 0;

	while (i < n) {
		size_t run = printable_run(s + i, n - i), plen;
		char tmp[16];
		const char *piece;

		if (run && (!max || added + run <= max)) {
			const char *slash = memchr(s + i, '\\', run);

			run = slash ? (size_t)(slash - (s + i)) : run;
			added += run;
			zb_buf_add(out, s + i, run);
			i += run;
			if (i >= n)
				break;
		}
		i += escape_unit(s + i, n - i, tmp, &piece, &plen);
		if (max && added + plen > max)
			return zb_buf_adds(out, "...");
		added += plen;
		if (zb_buf_add(out, piece, plen))
			return ZB_ELIMIT;
	}
	return 0;
}

bool zb_text_is_plain(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n) {
		char tmp[16];
		const char *piece;
		size_t plen;

		i += escape_unit(s + i, n - i, tmp, &piece, &plen);
		if (piece == tmp)
			return false;
	}
	return true;
}

/*
 * Cleaning. A terminal's grammar (ECMA-48, and what terminals make of it):
 *
 *	CSI	ESC [ or U+009B, parameters 30-3F, intermediates 20-2F, then
 *		one final byte 40-7E
 *	strings	OSC DCS SOS PM APC: ESC ] P X ^ _ or their C1 forms, then
 *		anything up to ST (ESC \ or U+009C) or BEL
 *	nF	ESC, intermediates 20-2F, final 30-7E
 *	others	ESC and one byte 30-7E
 *
 * A sequence that breaks off is removed as far as it went. A string that no ST
 * ends is cut at the end of its line, so that it hides no more than that.
 */

/* Length of the rest of a CSI sequence, after its introducer; *@sgr: it is a
 * plain colour sequence. */
static size_t csi_len(const char *s, size_t n, bool *sgr)
{
	size_t i = 0, params;

	*sgr = false;
	while (i < n && s[i] >= 0x30 && s[i] <= 0x3f)
		i++;
	params = i;
	while (i < n && s[i] >= 0x20 && s[i] <= 0x2f)
		i++;
	if (i >= n || s[i] < 0x40 || s[i] > 0x7e)
		return i;
	*sgr = s[i] == 'm' && i == params && params <= 64;
	return i + 1;
}

/* Only digits and separators, and nothing but colours and weights: 8 conceals
 * text, which no colour does. 38, 48 and 58 take 5;N or 2;R;G;B after them. */
static bool sgr_is_colour(const char *s, size_t n)
{
	unsigned value = 0, skip = 0;
	bool selector = false;

	for (size_t i = 0; i <= n; i++) {
		if (i < n && s[i] >= '0' && s[i] <= '9') {
			value = value * 10 + (unsigned)(s[i] - '0');
			if (value > 65535)
				return false;
			continue;
		}
		if (i < n && s[i] != ';' && s[i] != ':')
			return false;
		if (selector) {
			skip = value == 2 ? 3 : value == 5 ? 1 : 0;
			selector = false;
		} else if (skip) {
			skip--;
		} else if (value == 8) {
			return false;
		} else {
			selector = value == 38 || value == 48 || value == 58;
		}
		value = 0;
	}
	return true;
}

/* Length of a control string after its introducer, with its terminator. */
static size_t string_len(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		switch (s[i]) {
		case '\a':
		case 0x18: /* CAN and SUB abort it */
		case 0x1a:
			return i + 1;
		case '\n':
			return i;
		case 0x1b:
			return i + 1 < n && s[i + 1] == '\\' ? i + 2 : i;
		case '\xc2':
			if (i + 1 < n && s[i + 1] == '\x9c')
				return i + 2;
			break;
		default:
			break;
		}
	}
	return n;
}

/* Length of what follows ESC and belongs to it. */
static size_t esc_len(const char *s, size_t n, bool *sgr)
{
	size_t i = 0;

	*sgr = false;
	if (!n)
		return 0;
	if (s[0] == '[') {
		size_t len = csi_len(s + 1, n - 1, sgr);

		*sgr = *sgr && sgr_is_colour(s + 1, len - 1);
		return 1 + len;
	}
	if (strchr("]PX^_", s[0]) && s[0])
		return 1 + string_len(s + 1, n - 1);
	while (i < n && s[i] >= 0x20 && s[i] <= 0x2f)
		i++;
	if (i < n && s[i] >= 0x30 && s[i] <= 0x7e)
		i++;
	return i;
}

/* Bytes that the control at @s takes with it, @used being its own. */
static size_t control_len(const char *s, size_t n, uint32_t cp, unsigned used,
			  bool *sgr)
{
	bool ignored;

	*sgr = false;
	switch (cp) {
	case 0x1b:
		return used + esc_len(s + used, n - used, sgr);
	case 0x9b:
		return used + csi_len(s + used, n - used, &ignored);
	case 0x90:
	case 0x98:
	case 0x9d:
	case 0x9e:
	case 0x9f:
		return used + string_len(s + used, n - used);
	default:
		return used;
	}
}

static bool passes(uint32_t cp)
{
	return cp == '\n' || cp == '\t' || !zb_is_hazard(cp);
}

int zb_text_clean(struct zb_buf *out, const char *s, size_t n, bool keep_sgr,
		  bool *changed)
{
	size_t i = 0, from = 0;
	bool any = false;

	while (i < n) {
		uint32_t cp = 0;
		unsigned used;
		size_t len;
		bool sgr;

		i += printable_run(s + i, n - i);
		if (i >= n)
			break;
		used = zb_utf8_next(s + i, n - i, &cp);
		if (used && passes(cp)) {
			i += used;
			continue;
		}
		used = used ? used : 1;
		len = control_len(s + i, n - i, cp, used, &sgr);
		if (sgr && keep_sgr) {
			i += len;
			continue;
		}
		any = true;
		zb_buf_add(out, s + from, i - from);
		if (cp > 0x9f)
			zb_buf_addf(out, "\\u{%x}", cp);
		i += len;
		from = i;
	}
	if (changed)
		*changed = any;
	return zb_buf_add(out, s + from, n - from);
}

static bool shell_safe(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || (c && strchr("@%+=:,./_-", c));
}

int zb_text_shell_quote(struct zb_buf *out, const char *s)
{
	bool quote = false;

	if (!zb_text_is_plain(s, strlen(s)))
		return ZB_EUSAGE;
	if (!strncmp(s, "~/", 2)) {
		zb_buf_adds(out, "~/");
		s += 2;
		if (!*s)
			return out->failed ? ZB_ELIMIT : 0;
	}
	/* zsh replaces a word =NAME by the path of the program NAME. */
	if (!*s || *s == '=')
		quote = true;
	for (const char *p = s; *p; p++)
		quote = quote || !shell_safe(*p);
	if (!quote)
		return zb_buf_adds(out, s);
	zb_buf_addc(out, '\'');
	for (const char *p = s; *p; p++) {
		if (*p == '\'')
			zb_buf_adds(out, "'\\''");
		else
			zb_buf_addc(out, *p);
	}
	return zb_buf_addc(out, '\'');
}

uint32_t zb_fold(uint32_t cp)
{
	size_t lo = 0, hi = ZB_ARRAY_LEN(zb_fold_ranges);

	if (cp < 0x80)
		return cp >= 'A' && cp <= 'Z' ? cp + 32 : cp;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct zb_fold_range *r = &zb_fold_ranges[mid];

		if (cp > r->hi)
			lo = mid + 1;
		else if (cp < r->lo)
			hi = mid;
		else
			return (cp - r->lo) % r->step
				       ? cp
				       : (uint32_t)((int64_t)cp + r->delta);
	}
	return cp;
}

bool zb_fold_equal(const char *a, size_t an, const char *b, size_t bn)
{
	size_t i = 0, j = 0;

	while (i < an && j < bn) {
		uint32_t ca = 0, cb = 0;
		unsigned ua = zb_utf8_next(a + i, an - i, &ca);
		unsigned ub = zb_utf8_next(b + j, bn - j, &cb);

		if (!ua || !ub || zb_fold(ca) != zb_fold(cb))
			return false;
		i += ua;
		j += ub;
	}
	return i == an && j == bn;
}

/* Longer words than this are near nothing. */
#define DISTANCE_MAX 64

unsigned zb_edit_distance(const char *a, const char *b)
{
	size_t an = strlen(a), bn = strlen(b);
	unsigned row[DISTANCE_MAX + 1];

	if (an > DISTANCE_MAX || bn > DISTANCE_MAX)
		return an == bn && !memcmp(a, b, an)
			       ? 0
			       : (unsigned)(an > bn ? an : bn);
	for (size_t j = 0; j <= bn; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= an; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= bn; j++) {
			unsigned up = row[j], best = diagonal;

			best += a[i - 1] != b[j - 1];
			if (up + 1 < best)
				best = up + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = up;
			row[j] = best;
		}
	}
	return row[bn];
}

const char *zb_nearest(const char *word, const char *const *words)
{
	const char *best = NULL;
	unsigned limit = (unsigned)(strlen(word) / 2);

	if (limit > 3)
		limit = 3;
	for (; *words; words++) {
		unsigned d = zb_edit_distance(word, *words);

		if (d > limit || (best && d == limit))
			continue;
		best = *words;
		limit = d;
	}
	return best;
}
