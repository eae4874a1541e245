/* json_scan.c - a strict JSON reader that keeps offsets.
 *
 * One pass over the text with an explicit stack, so that depth costs heap and
 * not stack. Three things make it fast enough to stand in the way of each
 * frame: bodies of strings are skipped a word at a time; nothing is copied;
 * and the memory of one scan serves the next.
 *
 * Equal keys. Each member's key gets a hash of its folded code points, made
 * while it is read. An object keeps a 64-bit set of hashes seen: only a key
 * that hits the set is compared with its older siblings. An object of more
 * than FEW_KEYS keys is left until it closes and then sorted by hash and
 * folded key, where equal ones are neighbours. So neither many keys nor keys
 * made to collide take quadratic time.
 */
#include "json_scan.h"

#include "cleanup.h"
#include "text.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH  256u
#define MAX_TOKENS ((size_t)1 << 20)
#define FEW_KEYS   24u

#define ONES  UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

/* One open bracket. */
struct zb_json_level {
	uint64_t seen; /* set of key hashes, by their top six bits */
	uint32_t tok;  /* ZB_JSON_NONE below the index */
	uint32_t last; /* newest indexed child, or ZB_JSON_NONE */
	uint32_t keys; /* indexed ones */
	bool object;
};

/* One key of a large object while it is sorted. */
struct zb_json_key {
	const struct zb_json *j;
	uint32_t tok;
};

struct scan {
	struct zb_json *j;
	const char *s;
	size_t n, i;
	size_t max_depth, index_depth, max_tokens;
	size_t depth;		/* open brackets = depth of the next value */
	bool nul_ok;
	struct zb_json_tok key; /* key fields of the member being read */
	struct zb_json_fault *fault;
	int rc;
};

static size_t size_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

void zb_json_position(const char *text, size_t len, size_t offset,
		      unsigned *line, unsigned *column)
{
	size_t begin = 0, lines = 1;

	if (offset > len)
		offset = len;
	for (;;) {
		const char *nl = memchr(text + begin, '\n', offset - begin);

		if (!nl)
			break;
		begin = (size_t)(nl - text) + 1;
		lines++;
	}
	*line = (unsigned)lines;
	*column = (unsigned)(offset - begin + 1);
}

/* Note the fault. Return: false, for `return bad(...)`. */
ZB_PRINTF(4, 5)
static bool bad(struct scan *sc, enum zb_json_fault_kind kind, size_t offset,
		const char *fmt, ...)
{
	struct zb_json_fault *f = sc->fault;
	va_list ap;

	sc->rc = ZB_EUSAGE;
	if (!f)
		return false;
	f->kind = kind;
	f->offset = offset;
	zb_json_position(sc->s, sc->n, offset, &f->line, &f->column);
	va_start(ap, fmt);
	vsnprintf(f->what, sizeof(f->what), fmt, ap);
	va_end(ap);
	return false;
}

static bool no_memory(struct scan *sc)
{
	sc->rc = ZB_ELIMIT;
	return false;
}

/* "unexpected X WHERE" for the byte at the cursor. */
static bool unexpected(struct scan *sc, const char *where)
{
	struct zb_buf b = {0};
	uint32_t cp;
	unsigned used;

	if (sc->i >= sc->n)
		return bad(sc, ZB_JSON_SYNTAX, sc->i, "the text ends %s",
			   where);
	used = zb_utf8_step(sc->s + sc->i, sc->n - sc->i, &cp);
	zb_text_escape(&b, sc->s + sc->i, used ? used : 1, 0);
	bad(sc, ZB_JSON_SYNTAX, sc->i, "unexpected '%s' %s", zb_buf_str(&b),
	    where);
	zb_buf_done(&b);
	return false;
}

/* Double *@p to hold more than @need items of @size bytes. */
static bool grow(void **p, size_t *cap, size_t need, size_t size)
{
	size_t want = *cap ? *cap : 32;
	void *q;

	if (need < *cap)
		return true;
	while (want <= need)
		want *= 2;
	q = realloc(*p, want * size);
	if (!q)
		return false;
	*p = q;
	*cap = want;
	return true;
}

/* ---- strings ---- */

/* Walks the code points of a string's body (without quotes), unescaping. The
 * body was scanned before: it is well formed. */
struct body {
	const char *p, *end;
};

static unsigned hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	if (c >= 'A' && c <= 'F')
		return (unsigned)(c - 'A') + 10;
	return 16;
}

/* Four hex digits at @p, or 0x10000 if they are not. */
static uint32_t hex4(const char *p)
{
	unsigned a = hex_digit(p[0]), b = hex_digit(p[1]);
	unsigned c = hex_digit(p[2]), d = hex_digit(p[3]);

	if ((a | b | c | d) & 16)
		return 0x10000;
	return a << 12 | b << 8 | c << 4 | d;
}

static char simple_escape(char c)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *p = c ? strchr(from, c) : NULL;

	return p ? to[p - from] : '\0';
}

static bool next_cp(struct body *b, uint32_t *cp)
{
	if (b->p >= b->end)
		return false;
	if (*b->p != '\\') {
		unsigned used = zb_utf8_step(b->p, (size_t)(b->end - b->p), cp);

		b->p += used ? used : 1;
		return true;
	}
	if (b->p[1] != 'u') {
		*cp = (unsigned char)simple_escape(b->p[1]);
		b->p += 2;
		return true;
	}
	*cp = hex4(b->p + 2);
	b->p += 6;
	if (*cp >= 0xd800 && *cp < 0xdc00) {
		*cp = 0x10000 + ((*cp - 0xd800) << 10) +
		      (hex4(b->p + 2) - 0xdc00);
		b->p += 6;
	}
	return true;
}

/* Offset of the first byte from @i on that ends a run of plain ASCII in a
 * string: a quote, a backslash, a control character or a byte over 7F. */
static size_t skip_plain(const char *s, size_t i, size_t n)
{
	while (n - i >= sizeof(uint64_t)) {
		uint64_t w, quote, slash, special;

		memcpy(&w, s + i, sizeof(w));
		quote = w ^ (ONES * '"');
		slash = w ^ (ONES * '\\');
		/* A byte under 20 or over 7F, a quote, a backslash: its top bit
		 * is set here. Bytes after one such may be wrongly marked, none
		 * before it, and the loop below finds the first. */
		special =
			w | (w - ONES * 0x20) | (quote - ONES) | (slash - ONES);
		if (special & HIGHS)
			break;
		i += sizeof(w);
	}
	while (i < n) {
		unsigned char c = (unsigned char)s[i];

		if (c == '"' || c == '\\' || c < 0x20 || c >= 0x80)
			break;
		i++;
	}
	return i;
}

/* The cursor is on a backslash. */
static bool scan_escape(struct scan *sc, bool indexed)
{
	const char *s = sc->s;
	size_t at = sc->i, left = sc->n - at;
	uint32_t cp;

	if (left < 2)
		return bad(sc, ZB_JSON_SYNTAX, sc->n,
			   "the text ends inside a string");
	if (s[at + 1] != 'u') {
		if (!simple_escape(s[at + 1]))
			return bad(sc, ZB_JSON_SYNTAX, at,
				   "unknown escape in a string");
		sc->i += 2;
		return true;
	}
	cp = left < 6 ? 0x10000 : hex4(s + at + 2);
	if (cp > 0xffff)
		return bad(sc, ZB_JSON_SYNTAX, at,
			   "\\u needs four hexadecimal digits");
	if (!cp && indexed)
		return bad(sc, ZB_JSON_NUL, at, "\\u0000 in a string");
	sc->i += 6;
	if (cp < 0xd800 || cp > 0xdfff)
		return true;
	if (cp < 0xdc00 && left >= 12 && s[at + 6] == '\\' &&
	    s[at + 7] == 'u') {
		uint32_t low = hex4(s + at + 8);

		sc->i += 6;
		if (low >= 0xdc00 && low <= 0xdfff)
			return true;
	}
	return bad(sc, ZB_JSON_UTF8, at, "half of a surrogate pair");
}

/* The cursor is on the opening quote; it ends after the closing one. */
static bool scan_string(struct scan *sc, bool indexed, bool *escaped)
{
	const char *s = sc->s;
	size_t start = sc->i++, n = sc->n;

	*escaped = false;
	for (;;) {
		unsigned char c;

		sc->i = skip_plain(s, sc->i, n);
		if (sc->i >= n)
			return bad(sc, ZB_JSON_SYNTAX, start,
				   "a string is not closed");
		c = (unsigned char)s[sc->i];
		if (c == '"') {
			sc->i++;
			return true;
		}
		if (c == '\\') {
			*escaped = true;
			if (!scan_escape(sc, indexed))
				return false;
		} else if (c < 0x20) {
			return bad(
				sc, ZB_JSON_SYNTAX, sc->i,
				"a raw control character \\x%02x in a string",
				c);
		}
		while (sc->i < n && (unsigned char)s[sc->i] >= 0x80) {
			uint32_t cp;
			unsigned used = zb_utf8_step(s + sc->i, n - sc->i, &cp);

			if (!used)
				return bad(sc, ZB_JSON_UTF8, sc->i,
					   "byte \\x%02x is not UTF-8",
					   (unsigned char)s[sc->i]);
			sc->i += used;
		}
	}
}

/* ---- keys ---- */

static struct body key_body(const struct zb_json *j, uint32_t i)
{
	const struct zb_json_tok *t = &j->tok[i];

	return (struct body){j->text + t->key_start + 1,
			     j->text + t->key_end - 1};
}

static uint32_t hash_step(uint32_t h, uint32_t cp)
{
	return (h ^ cp) * UINT32_C(0x9e3779b1);
}

#define HASH_START UINT32_C(0x811c9dc5)

static uint32_t hash_body(struct body b)
{
	uint32_t h = HASH_START, cp;

	while (next_cp(&b, &cp))
		h = hash_step(h, zb_fold(cp));
	return h;
}

/* Order of two keys after folding. */
static int compare_keys(struct body a, struct body b)
{
	for (;;) {
		uint32_t ca = 0, cb = 0;
		bool more_a = next_cp(&a, &ca), more_b = next_cp(&b, &cb);

		if (!more_a || !more_b)
			return (int)more_a - (int)more_b;
		ca = zb_fold(ca);
		cb = zb_fold(cb);
		if (ca != cb)
			return ca < cb ? -1 : 1;
	}
}

/* Order for qsort(3): by hash, then by key. */
static int order_keys(const void *pa, const void *pb)
{
	const struct zb_json_key *a = pa, *b = pb;
	uint32_t ha = a->j->tok[a->tok].hash, hb = b->j->tok[b->tok].hash;

	if (ha != hb)
		return ha < hb ? -1 : 1;
	return compare_keys(key_body(a->j, a->tok), key_body(b->j, b->tok));
}

static void show_key(struct zb_buf *out, struct body b)
{
	zb_text_escape(out, b.p, (size_t)(b.end - b.p), 60);
}

/* The key at sc->key equals that of the older member @old. */
static bool duplicate(struct scan *sc, uint32_t old, struct body key,
		      size_t offset)
{
	struct body older = key_body(sc->j, old);
	struct zb_buf a = {0}, b = {0};
	bool same = older.end - older.p == key.end - key.p &&
		    !memcmp(older.p, key.p, (size_t)(key.end - key.p));

	show_key(&a, older);
	show_key(&b, key);
	if (same)
		bad(sc, ZB_JSON_DUPLICATE, offset, "duplicate key \"%s\"",
		    zb_buf_str(&b));
	else
		bad(sc, ZB_JSON_DUPLICATE, offset,
		    "duplicate key: \"%s\" and \"%s\" are the same to a reader "
		    "that ignores case",
		    zb_buf_str(&a), zb_buf_str(&b));
	zb_buf_done(&a);
	zb_buf_done(&b);
	return false;
}

/* Is the key just read new to its object? Only for objects with few keys. */
static bool check_new_key(struct scan *sc, const struct zb_json_level *l)
{
	struct body key = {sc->s + sc->key.key_start + 1,
			   sc->s + sc->key.key_end - 1};
	const struct zb_json_tok *tok = sc->j->tok;

	for (uint32_t i = tok[l->tok].size ? l->tok + 1 : ZB_JSON_NONE;
	     i != ZB_JSON_NONE; i = tok[i].next)
		if (tok[i].hash == sc->key.hash &&
		    !compare_keys(key_body(sc->j, i), key))
			return duplicate(sc, i, key, sc->key.key_start);
	return true;
}

/* A large object closes: are all its keys different? */
static bool check_all_keys(struct scan *sc, const struct zb_json_level *l)
{
	struct zb_json *j = sc->j;
	uint32_t n = 0, first = ZB_JSON_NONE, older = 0;

	if (!grow((void **)&j->sort, &j->sort_cap, l->keys, sizeof(*j->sort)))
		return no_memory(sc);
	for (uint32_t i = l->tok + 1; i != ZB_JSON_NONE; i = j->tok[i].next)
		j->sort[n++] = (struct zb_json_key){j, i};
	qsort(j->sort, n, sizeof(*j->sort), order_keys);
	for (uint32_t i = 1; i < n; i++) {
		uint32_t a = j->sort[i - 1].tok, b = j->sort[i].tok;
		uint32_t later = a > b ? a : b;

		if (later < first &&
		    !order_keys(&j->sort[i - 1], &j->sort[i])) {
			first = later;
			older = a < b ? a : b;
		}
	}
	if (first == ZB_JSON_NONE)
		return true;
	return duplicate(sc, older, key_body(j, first),
			 j->tok[first].key_start);
}

/* The cursor is on a key's opening quote. Short keys of plain ASCII, which is
 * nearly all of them, are read and hashed in one go. */
static bool scan_key_text(struct scan *sc, bool indexed)
{
	const char *s = sc->s;
	size_t i = sc->i + 1, n = sc->n;
	uint32_t h = HASH_START;

	sc->key.key_start = (uint32_t)sc->i;
	sc->key.key_escaped = false;
	for (; i < n; i++) {
		unsigned c = (unsigned char)s[i];

		if (c == '"') {
			sc->i = i + 1;
			sc->key.key_end = (uint32_t)sc->i;
			sc->key.hash = h;
			return true;
		}
		if (c == '\\' || c < 0x20 || c >= 0x80)
			break;
		h = hash_step(h, c + ((c - 'A' < 26u) << 5));
	}
	if (!scan_string(sc, indexed, &sc->key.key_escaped))
		return false;
	sc->key.key_end = (uint32_t)sc->i;
	sc->key.hash =
		indexed ? hash_body((struct body){s + sc->key.key_start + 1,
						  s + sc->i - 1})
			: 0;
	return true;
}

static void skip_blanks(struct scan *sc)
{
	while (sc->i < sc->n) {
		char c = sc->s[sc->i];

		if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
			break;
		sc->i++;
	}
}

/* Key and colon; ends on the value's first byte. */
static bool scan_key(struct scan *sc)
{
	struct zb_json_level *l = &sc->j->level[sc->depth - 1];
	bool indexed = sc->depth <= sc->index_depth;
	uint64_t bit;

	if (sc->i >= sc->n || sc->s[sc->i] != '"')
		return unexpected(sc, "where a key was expected");
	if (!scan_key_text(sc, indexed))
		return false;
	if (indexed) {
		bit = UINT64_C(1) << (sc->key.hash >> 26);
		if (l->keys++ < FEW_KEYS && (l->seen & bit) &&
		    !check_new_key(sc, l))
			return false;
		l->seen |= bit;
	}
	skip_blanks(sc);
	if (sc->i >= sc->n || sc->s[sc->i] != ':')
		return unexpected(sc, "where a colon was expected");
	sc->i++;
	skip_blanks(sc);
	return true;
}

/* ---- values ---- */

/* Index the value that starts at the cursor. *@tok: ZB_JSON_NONE if it lies
 * below the index. */
static bool add_token(struct scan *sc, enum zb_json_type type, uint32_t *tok)
{
	struct zb_json *j = sc->j;
	struct zb_json_level *l = sc->depth ? &j->level[sc->depth - 1] : NULL;
	struct zb_json_tok *t;

	*tok = ZB_JSON_NONE;
	if (sc->depth > sc->index_depth)
		return true;
	if (j->n >= sc->max_tokens)
		return bad(sc, ZB_JSON_TOO_MANY, sc->i,
			   "more than %zu values in one text", sc->max_tokens);
	if (!grow((void **)&j->tok, &j->cap, j->n, sizeof(*j->tok)))
		return no_memory(sc);
	t = &j->tok[j->n];
	*t = sc->key;
	t->type = type;
	t->start = (uint32_t)sc->i;
	t->end = 0;
	t->parent = l ? l->tok : ZB_JSON_NONE;
	t->next = ZB_JSON_NONE;
	t->size = 0;
	t->depth = (uint16_t)sc->depth;
	t->escaped = false;
	*tok = (uint32_t)j->n++;
	if (l) {
		if (l->last != ZB_JSON_NONE)
			j->tok[l->last].next = *tok;
		l->last = *tok;
		j->tok[l->tok].size++;
	}
	return true;
}

static void end_token(struct scan *sc, uint32_t tok)
{
	if (tok != ZB_JSON_NONE)
		sc->j->tok[tok].end = (uint32_t)sc->i;
}

static bool digits(struct scan *sc)
{
	size_t start = sc->i;

	while (sc->i < sc->n && sc->s[sc->i] >= '0' && sc->s[sc->i] <= '9')
		sc->i++;
	return sc->i > start || unexpected(sc, "where a digit was expected");
}

static bool scan_number(struct scan *sc)
{
	const char *s = sc->s;
	uint32_t tok;

	if (!add_token(sc, ZB_JSON_NUMBER, &tok))
		return false;
	if (s[sc->i] == '-')
		sc->i++;
	if (sc->i < sc->n && s[sc->i] == '0')
		sc->i++;
	else if (!digits(sc))
		return false;
	if (sc->i < sc->n && s[sc->i] == '.') {
		sc->i++;
		if (!digits(sc))
			return false;
	}
	if (sc->i < sc->n && (s[sc->i] | 0x20) == 'e') {
		sc->i++;
		if (sc->i < sc->n && (s[sc->i] == '+' || s[sc->i] == '-'))
			sc->i++;
		if (!digits(sc))
			return false;
	}
	end_token(sc, tok);
	return true;
}

static bool scan_word(struct scan *sc, enum zb_json_type type, const char *word,
		      size_t len)
{
	uint32_t tok;

	if (sc->n - sc->i < len || memcmp(sc->s + sc->i, word, len))
		return unexpected(sc, "where a value was expected");
	if (!add_token(sc, type, &tok))
		return false;
	sc->i += len;
	end_token(sc, tok);
	return true;
}

static bool scan_text(struct scan *sc)
{
	bool escaped;
	uint32_t tok;

	if (!add_token(sc, ZB_JSON_STRING, &tok) ||
	    !scan_string(sc, tok != ZB_JSON_NONE && !sc->nul_ok, &escaped))
		return false;
	if (tok != ZB_JSON_NONE)
		sc->j->tok[tok].escaped = escaped;
	end_token(sc, tok);
	return true;
}

static bool open_bracket(struct scan *sc, bool object)
{
	struct zb_json *j = sc->j;
	uint32_t tok;

	if (sc->depth >= sc->max_depth)
		return bad(sc, ZB_JSON_DEPTH, sc->i,
			   "nested more than %zu deep", sc->max_depth);
	if (!grow((void **)&j->level, &j->level_cap, sc->depth,
		  sizeof(*j->level)))
		return no_memory(sc);
	if (!add_token(sc, object ? ZB_JSON_OBJECT : ZB_JSON_ARRAY, &tok))
		return false;
	j->level[sc->depth++] = (struct zb_json_level){
		.tok = tok,
		.last = ZB_JSON_NONE,
		.object = object,
	};
	sc->key = (struct zb_json_tok){0};
	sc->i++;
	skip_blanks(sc);
	return true;
}

static bool close_bracket(struct scan *sc)
{
	const struct zb_json_level *l = &sc->j->level[sc->depth - 1];

	if (l->keys > FEW_KEYS && !check_all_keys(sc, l))
		return false;
	sc->i++;
	end_token(sc, l->tok);
	sc->depth--;
	sc->key = (struct zb_json_tok){0};
	return true;
}

static bool scan_scalar(struct scan *sc, char c)
{
	switch (c) {
	case '"':
		return scan_text(sc);
	case 't':
		return scan_word(sc, ZB_JSON_TRUE, "true", 4);
	case 'f':
		return scan_word(sc, ZB_JSON_FALSE, "false", 5);
	case 'n':
		return scan_word(sc, ZB_JSON_NULL, "null", 4);
	default:
		if (c == '-' || (c >= '0' && c <= '9'))
			return scan_number(sc);
		return unexpected(sc, "where a value was expected");
	}
}

/* A value is complete. Close what closes; *@more: another value follows, the
 * cursor is on it. */
static bool after_value(struct scan *sc, bool *more)
{
	*more = false;
	while (sc->depth) {
		const struct zb_json_level *l = &sc->j->level[sc->depth - 1];
		char c;

		skip_blanks(sc);
		c = sc->i < sc->n ? sc->s[sc->i] : '\0';
		if (c == (l->object ? '}' : ']')) {
			if (!close_bracket(sc))
				return false;
			continue;
		}
		if (c != ',')
			return unexpected(sc, l->object ? "inside an object"
							: "inside an array");
		sc->i++;
		skip_blanks(sc);
		*more = true;
		return !l->object || scan_key(sc);
	}
	return true;
}

static bool scan_value(struct scan *sc)
{
	bool more = true;

	while (more) {
		char c = sc->i < sc->n ? sc->s[sc->i] : '\0';
		bool object = c == '{';

		if (object || c == '[') {
			char closing = object ? '}' : ']';

			if (!open_bracket(sc, object))
				return false;
			if (sc->i >= sc->n || sc->s[sc->i] != closing) {
				if (object && !scan_key(sc))
					return false;
				continue;
			}
			if (!close_bracket(sc))
				return false;
		} else if (!scan_scalar(sc, c)) {
			return false;
		}
		if (!after_value(sc, &more))
			return false;
	}
	return true;
}

static bool scan_all(struct scan *sc)
{
	if (sc->n >= ZB_JSON_NONE)
		return bad(sc, ZB_JSON_TOO_MANY, 0, "the text is too long");
	if (sc->n >= 3 && !memcmp(sc->s, "\xef\xbb\xbf", 3))
		return bad(sc, ZB_JSON_BOM, 0,
			   "the text starts with a byte-order mark");
	skip_blanks(sc);
	if (sc->i >= sc->n)
		return bad(sc, ZB_JSON_EMPTY, sc->i, "the text is empty");
	if (!scan_value(sc))
		return false;
	skip_blanks(sc);
	if (sc->i < sc->n)
		return bad(sc, ZB_JSON_TRAILING, sc->i,
			   "more text after the end of the value");
	return true;
}

int zb_json_scan(struct zb_json *out, const char *text, size_t len,
		 const struct zb_json_limits *limits,
		 struct zb_json_fault *fault)
{
	static const struct zb_json_limits none;
	const struct zb_json_limits *lim = limits ? limits : &none;
	struct scan sc = {
		.j = out,
		.s = text,
		.n = len,
		.max_depth =
			size_min(lim->max_depth ? lim->max_depth : MAX_DEPTH,
				 ZB_JSON_DEPTH_CAP),
		.max_tokens = lim->max_tokens ? lim->max_tokens : MAX_TOKENS,
		.nul_ok = lim->nul_ok,
		.fault = fault,
	};

	sc.index_depth = lim->index_depth ? lim->index_depth : sc.max_depth;
	out->text = text;
	out->len = len;
	out->n = 0;
	if (scan_all(&sc))
		return 0;
	out->n = 0;
	return sc.rc;
}

void zb_json_done(struct zb_json *j)
{
	if (!j)
		return;
	free(j->tok);
	free(j->level);
	free(j->sort);
	*j = (struct zb_json){0};
}

/* ---- reading the index ---- */

uint32_t zb_json_first(const struct zb_json *j, uint32_t i)
{
	return i < j->n && j->tok[i].size ? i + 1 : ZB_JSON_NONE;
}

uint32_t zb_json_next(const struct zb_json *j, uint32_t i)
{
	return i < j->n ? j->tok[i].next : ZB_JSON_NONE;
}

static bool body_is(struct body b, bool escaped, const char *s)
{
	size_t n = strlen(s);
	uint32_t ca, cb;

	if (!escaped)
		return (size_t)(b.end - b.p) == n && !memcmp(b.p, s, n);
	while (next_cp(&b, &ca)) {
		unsigned used = n ? zb_utf8_step(s, n, &cb) : 0;

		if (!used || ca != cb)
			return false;
		s += used;
		n -= used;
	}
	return !n;
}

static bool string_body(const struct zb_json *j, uint32_t i, struct body *b)
{
	if (i >= j->n || j->tok[i].type != ZB_JSON_STRING)
		return false;
	*b = (struct body){j->text + j->tok[i].start + 1,
			   j->text + j->tok[i].end - 1};
	return true;
}

bool zb_json_is(const struct zb_json *j, uint32_t i, const char *s)
{
	struct body b;

	return string_body(j, i, &b) && body_is(b, j->tok[i].escaped, s);
}

bool zb_json_key_is(const struct zb_json *j, uint32_t i, const char *s)
{
	return i < j->n && j->tok[i].key_end &&
	       body_is(key_body(j, i), j->tok[i].key_escaped, s);
}

uint32_t zb_json_get(const struct zb_json *j, uint32_t obj, const char *key)
{
	if (obj >= j->n || j->tok[obj].type != ZB_JSON_OBJECT)
		return ZB_JSON_NONE;
	for (uint32_t i = zb_json_first(j, obj); i != ZB_JSON_NONE;
	     i = j->tok[i].next)
		if (zb_json_key_is(j, i, key))
			return i;
	return ZB_JSON_NONE;
}

static int unescape(struct body b, bool escaped, struct zb_buf *out)
{
	if (!escaped)
		return zb_buf_add(out, b.p, (size_t)(b.end - b.p));
	while (b.p < b.end) {
		const char *slash = memchr(b.p, '\\', (size_t)(b.end - b.p));
		uint32_t cp;

		if (!slash)
			return zb_buf_add(out, b.p, (size_t)(b.end - b.p));
		zb_buf_add(out, b.p, (size_t)(slash - b.p));
		b.p = slash;
		next_cp(&b, &cp);
		zb_utf8_add(out, cp);
	}
	return out->failed ? ZB_ELIMIT : 0;
}

int zb_json_string(const struct zb_json *j, uint32_t i, struct zb_buf *out)
{
	struct body b;

	if (!string_body(j, i, &b))
		return ZB_EUSAGE;
	return unescape(b, j->tok[i].escaped, out);
}

int zb_json_key(const struct zb_json *j, uint32_t i, struct zb_buf *out)
{
	if (i >= j->n || !j->tok[i].key_end)
		return ZB_EUSAGE;
	return unescape(key_body(j, i), j->tok[i].key_escaped, out);
}

char *zb_json_dup_string(const struct zb_json *j, uint32_t i)
{
	struct zb_buf b = {0};

	if (zb_json_string(j, i, &b)) {
		zb_buf_done(&b);
		return NULL;
	}
	return zb_buf_steal(&b);
}

char *zb_json_dup_key(const struct zb_json *j, uint32_t i)
{
	struct zb_buf b = {0};

	if (zb_json_key(j, i, &b)) {
		zb_buf_done(&b);
		return NULL;
	}
	return zb_buf_steal(&b);
}

/* A number token as digits (without leading and trailing zeros) and the power
 * of ten they are to be multiplied with. */
struct decimal {
	uint64_t digits;
	int64_t power;
	bool negative, overflow;
};

/* @digits * 10 + @value, noting overflow. */
static void append_digit(struct decimal *d, unsigned value)
{
	if (__builtin_mul_overflow(d->digits, 10, &d->digits) ||
	    __builtin_add_overflow(d->digits, value, &d->digits))
		d->overflow = true;
}

static struct decimal read_decimal(const char *p, const char *end)
{
	struct decimal d = {.negative = *p == '-'};
	int64_t zeros = 0, fraction = 0, e = 0;
	bool point = false, minus = false;

	for (p += d.negative; p < end && (*p | 0x20) != 'e'; p++) {
		if (*p == '.') {
			point = true;
			continue;
		}
		fraction += point;
		if (*p == '0') {
			zeros += d.digits != 0;
			continue;
		}
		for (; zeros && !d.overflow; zeros--)
			append_digit(&d, 0);
		append_digit(&d, (unsigned)(*p - '0'));
	}
	for (p += p < end; p < end; p++) {
		if (*p == '-')
			minus = true;
		else if (*p != '+' && e < INT32_MAX)
			e = e * 10 + (*p - '0');
	}
	d.power = (minus ? -e : e) - fraction + zeros;
	return d;
}

bool zb_json_int(const struct zb_json *j, uint32_t i, int64_t *out)
{
	struct decimal d;
	uint64_t limit = INT64_MAX;

	if (i >= j->n || j->tok[i].type != ZB_JSON_NUMBER)
		return false;
	d = read_decimal(j->text + j->tok[i].start, j->text + j->tok[i].end);
	if (!d.digits && !d.overflow) {
		*out = 0;
		return true;
	}
	if (d.overflow || d.power < 0 || d.power > 19)
		return false;
	while (d.power--)
		if (__builtin_mul_overflow(d.digits, 10, &d.digits))
			return false;
	limit += d.negative;
	if (d.digits > limit)
		return false;
	*out = d.negative ? (int64_t)(0 - d.digits) : (int64_t)d.digits;
	return true;
}

/* ---- writing ---- */

static void quote_cp(struct zb_buf *out, uint32_t cp)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *p = cp && cp < 0x80 ? strchr(from, (int)cp) : NULL;

	if (p) {
		zb_buf_addc(out, '\\');
		zb_buf_addc(out, to[p - from]);
	} else if (cp > 0xffff) {
		zb_buf_addf(out, "\\u%04x\\u%04x", 0xd7c0 + (cp >> 10),
			    0xdc00 | (cp & 0x3ff));
	} else {
		zb_buf_addf(out, "\\u%04x", cp);
	}
}

int zb_json_quote(struct zb_buf *out, const char *s, size_t n)
{
	size_t i = 0, from = 0;

	zb_buf_addc(out, '"');
	while (i < n) {
		size_t end = skip_plain(s, i, n);
		const char *del = memchr(s + i, 0x7f, end - i);
		uint32_t cp = 0;
		unsigned used;

		i = del ? (size_t)(del - s) : end;
		if (i >= n)
			break;
		used = zb_utf8_step(s + i, n - i, &cp);
		if (used && cp >= 0x80 && !zb_is_hazard(cp)) {
			i += used;
			continue;
		}
		zb_buf_add(out, s + from, i - from);
		if (used)
			quote_cp(out, cp);
		else
			zb_buf_adds(out, "\xef\xbf\xbd");
		i += used ? used : 1;
		from = i;
	}
	if (n > from)
		zb_buf_add(out, s + from, n - from);
	return zb_buf_addc(out, '"');
}
