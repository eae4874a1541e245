/* json_scan.c - a strict JSON reader that keeps offsets.
 *
 * One pass over the text with an explicit stack, so that depth costs heap and
 * not stack. What makes it fast enough to stand in the way of each frame:
 * bodies of strings are skipped in vectors and blocks; nothing is copied; the
 * memory of one scan serves the next; and the cursor goes from function to
 * function by value, so that it stays in a register. A scanning function takes
 * it and returns it behind what it read, or NULL when that is not JSON.
 *
 * Equal keys. Each member's key gets a hash of its folded text. An object
 * keeps a 64-bit set of hashes seen: only a key that hits the set is compared
 * with its older siblings. An object of more than FEW_KEYS keys is left until
 * it closes; then its keys go through a hash table, and if somebody made them
 * collide, they are sorted instead, where equal ones are neighbours. So
 * neither many keys nor chosen keys take quadratic time.
 */
#include "json_scan.h"

#include "blocks.h"
#include "cleanup.h"
#include "text.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH   256u
#define MAX_TOKENS  ((size_t)1 << 20)
#define FEW_KEYS    24u
#define PROBES_MAX  32u /* a longer search means chosen keys */
#define SLOTS_START 64u

#define ONES UINT64_C(0x0101010101010101)

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

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
	const char *s, *end;
	size_t max_depth, index_depth, max_tokens;
	size_t depth; /* open brackets = depth of the next value */
	bool nul_ok;
	/* The key of the member being read; key_end 0: no member. */
	uint32_t key_start, key_end, key_hash;
	bool key_plain, key_escaped;
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

/* Note the fault at @at. Return: NULL, for `return bad(...)`. */
ZB_PRINTF(4, 5)
__attribute__((cold)) static const char *bad(struct scan *sc,
					     enum zb_json_fault_kind kind,
					     const char *at, const char *fmt,
					     ...)
{
	struct zb_json_fault *f = sc->fault;
	va_list ap;

	sc->rc = ZB_EUSAGE;
	if (!f)
		return NULL;
	f->kind = kind;
	f->offset = (size_t)(at - sc->s);
	zb_json_position(sc->s, (size_t)(sc->end - sc->s), f->offset, &f->line,
			 &f->column);
	va_start(ap, fmt);
	vsnprintf(f->what, sizeof(f->what), fmt, ap);
	va_end(ap);
	return NULL;
}

__attribute__((cold)) static const char *no_memory(struct scan *sc)
{
	sc->rc = ZB_ELIMIT;
	return NULL;
}

/* "unexpected X WHERE" for the byte at the cursor. */
__attribute__((cold)) static const char *
unexpected(struct scan *sc, const char *p, const char *where)
{
	struct zb_buf b = {0};
	uint32_t cp;
	unsigned used;

	if (p >= sc->end)
		return bad(sc, ZB_JSON_SYNTAX, p, "the text ends %s", where);
	used = zb_utf8_step(p, (size_t)(sc->end - p), &cp);
	zb_text_escape(&b, p, used ? used : 1, 0);
	bad(sc, ZB_JSON_SYNTAX, p, "unexpected '%s' %s", zb_buf_str(&b), where);
	zb_buf_done(&b);
	return NULL;
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

/* The byte at the cursor; \0, which is nowhere right, at the end. */
static inline char peek(const struct scan *sc, const char *p)
{
	return likely(p < sc->end) ? *p : '\0';
}

static inline const char *skip_blanks(const struct scan *sc, const char *p)
{
	while (p < sc->end && (unsigned char)*p <= ' ' &&
	       (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
		p++;
	return p;
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

/* Eight bytes at @s, the first one lowest. */
static inline uint64_t load_word(const char *s)
{
	uint64_t w;

	memcpy(&w, s, sizeof(w));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	w = __builtin_bswap64(w);
#endif
	return w;
}

static inline bool is_plain(unsigned char c)
{
	return c != '"' && c != '\\' && c >= 0x20 && c < 0x80;
}

/* The first byte from @p on that ends a run of plain ASCII in a string: a
 * quote, a backslash, a control character or a byte over 7F; or @end. Most
 * strings are short, so a long one has to show itself. */
static inline const char *skip_plain(const char *p, const char *end)
{
	for (unsigned i = 0; end - p >= ZB_VECTOR; i++) {
		unsigned n = zb_first_mark(zb_marks(p, true, false));

		p += n;
		if (likely(n < ZB_VECTOR))
			return p;
		if (i == 2)
			p = zb_skip_blocks(p, end, true, false);
	}
	while (p < end && is_plain((unsigned char)*p))
		p++;
	return p;
}

/* The cursor is on a backslash. */
static const char *scan_escape(struct scan *sc, const char *p, bool indexed)
{
	size_t left = (size_t)(sc->end - p);
	uint32_t cp, low;

	if (left < 2)
		return bad(sc, ZB_JSON_SYNTAX, sc->end,
			   "the text ends inside a string");
	if (p[1] != 'u') {
		if (simple_escape(p[1]))
			return p + 2;
		return bad(sc, ZB_JSON_SYNTAX, p, "unknown escape in a string");
	}
	cp = left < 6 ? 0x10000 : hex4(p + 2);
	if (cp > 0xffff)
		return bad(sc, ZB_JSON_SYNTAX, p,
			   "\\u needs four hexadecimal digits");
	if (!cp && indexed)
		return bad(sc, ZB_JSON_NUL, p, "\\u0000 in a string");
	if (cp < 0xd800 || cp > 0xdfff)
		return p + 6;
	if (cp < 0xdc00 && left >= 12 && p[6] == '\\' && p[7] == 'u') {
		low = hex4(p + 8);
		if (low >= 0xdc00 && low <= 0xdfff)
			return p + 12;
	}
	return bad(sc, ZB_JSON_UTF8, p, "half of a surrogate pair");
}

/* Bytes over 7F: they must be UTF-8. */
static const char *scan_utf8(struct scan *sc, const char *p)
{
	while (p < sc->end && (unsigned char)*p >= 0x80) {
		uint32_t cp;
		unsigned used = zb_utf8_step(p, (size_t)(sc->end - p), &cp);

		if (!used)
			return bad(sc, ZB_JSON_UTF8, p,
				   "byte \\x%02x is not UTF-8",
				   (unsigned char)*p);
		p += used;
	}
	return p;
}

/* A string from its opening quote on, of which the part up to @p is plain. */
static const char *scan_rest(struct scan *sc, const char *start, const char *p,
			     bool indexed, bool *escaped)
{
	while (p < sc->end && *p != '"') {
		unsigned char c = (unsigned char)*p;

		if (c < 0x20)
			return bad(sc, ZB_JSON_SYNTAX, p,
				   "a raw control character \\x%02x in a "
				   "string",
				   c);
		if (c == '\\') {
			*escaped = true;
			p = scan_escape(sc, p, indexed);
		} else {
			p = scan_utf8(sc, p);
		}
		if (!p)
			return NULL;
		p = skip_plain(p, sc->end);
	}
	if (p < sc->end)
		return p + 1;
	return bad(sc, ZB_JSON_SYNTAX, start, "a string is not closed");
}

/* The cursor is on the opening quote; it ends after the closing one. *@plain:
 * all of it is plain ASCII, and nothing escaped. */
static inline const char *scan_string(struct scan *sc, const char *p,
				      bool indexed, bool *plain, bool *escaped)
{
	const char *q = skip_plain(p + 1, sc->end);

	*escaped = false;
	*plain = q < sc->end && *q == '"';
	return likely(*plain) ? q + 1 : scan_rest(sc, p, q, indexed, escaped);
}

/* ---- keys ---- */

static struct body key_body(const struct zb_json *j, uint32_t i)
{
	const struct zb_json_tok *t = &j->tok[i];

	return (struct body){j->text + t->key_start + 1,
			     j->text + t->key_end - 1};
}

/* The hash of a key: its folded UTF-8, eight bytes at a time, each with bit 5
 * set. That bit is all that folding changes in ASCII, so that keys of plain
 * ASCII, which is nearly all, are hashed without folding them. */
#define FOLD_BIT (ONES * 0x20)

static inline uint64_t hash_word(uint64_t h, uint64_t w)
{
	h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 32;
}

/* Both its low and its high bits are used. */
static inline uint32_t hash_end(uint64_t h)
{
	return (uint32_t)(h * UINT64_C(0xd6e8feb86659fd93) >> 32);
}

/* @end: of what may be read. */
static inline uint32_t hash_ascii(const char *s, size_t n, const char *end)
{
	uint64_t h = 0, w = 0;

	for (; n >= 8; s += 8, n -= 8)
		h = hash_word(h, load_word(s) | FOLD_BIT);
	if (!n)
		return hash_end(h);
	if (likely(end - s >= 8))
		w = (load_word(s) | FOLD_BIT) & ~UINT64_C(0) >> (64 - 8 * n);
	else
		for (size_t i = 0; i < n; i++)
			w |= (uint64_t)(unsigned char)(s[i] | 0x20) << 8 * i;
	return hash_end(hash_word(h, w));
}

static uint32_t hash_body(struct body b)
{
	struct zb_buf one = {0};
	uint64_t h = 0, w = 0;
	unsigned bits = 0;
	uint32_t cp;

	while (next_cp(&b, &cp)) {
		zb_buf_clear(&one);
		zb_utf8_add(&one, zb_fold(cp));
		for (size_t i = 0; i < one.len; i++) {
			uint64_t c = (unsigned char)one.data[i] | 0x20;

			w |= c << bits;
			bits += 8;
			if (bits < 64)
				continue;
			h = hash_word(h, w);
			w = 0;
			bits = 0;
		}
	}
	zb_buf_done(&one);
	return hash_end(bits ? hash_word(h, w) : h);
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

/* @key equals that of the older member @old. Return: false: noted. */
static bool duplicate(struct scan *sc, uint32_t old, struct body key)
{
	struct body older = key_body(sc->j, old);
	struct zb_buf a = {0}, b = {0};
	bool same = older.end - older.p == key.end - key.p &&
		    !memcmp(older.p, key.p, (size_t)(key.end - key.p));

	show_key(&a, older);
	show_key(&b, key);
	if (same)
		bad(sc, ZB_JSON_DUPLICATE, key.p - 1, "duplicate key \"%s\"",
		    zb_buf_str(&b));
	else
		bad(sc, ZB_JSON_DUPLICATE, key.p - 1,
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
	struct body key = {sc->s + sc->key_start + 1, sc->s + sc->key_end - 1};
	const struct zb_json_tok *tok = sc->j->tok;

	for (uint32_t i = zb_json_first(sc->j, l->tok); i != ZB_JSON_NONE;
	     i = tok[i].next)
		if (tok[i].hash == sc->key_hash &&
		    !compare_keys(key_body(sc->j, i), key))
			return duplicate(sc, i, key);
	return true;
}

/* Are all keys of a large object different? By sorting them: always in time,
 * but slow. */
static bool sort_keys(struct scan *sc, const struct zb_json_level *l)
{
	struct zb_json *j = sc->j;
	uint32_t n = 0, first = ZB_JSON_NONE, older = 0;

	if (!grow((void **)&j->sort, &j->sort_cap, l->keys, sizeof(*j->sort)))
		return no_memory(sc) != NULL;
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
	return first == ZB_JSON_NONE ||
	       duplicate(sc, older, key_body(j, first));
}

/* The slot of key @i in the table of @mask + 1 slots: where an equal key is, or
 * a free one. NULL: the search was too long. */
static uint32_t *find_slot(const struct zb_json *j, uint32_t i, size_t mask)
{
	size_t at = j->tok[i].hash;

	for (unsigned n = 0; n < PROBES_MAX; n++, at++) {
		uint32_t *slot = &j->slots[at & mask];

		if (*slot == ZB_JSON_NONE)
			return slot;
		if (j->tok[*slot].hash == j->tok[i].hash &&
		    !compare_keys(key_body(j, *slot), key_body(j, i)))
			return slot;
	}
	return NULL;
}

/* A large object closes. */
static bool check_all_keys(struct scan *sc, const struct zb_json_level *l)
{
	struct zb_json *j = sc->j;
	size_t want = SLOTS_START;

	while (want < (size_t)l->keys * 4)
		want *= 2;
	if (!grow((void **)&j->slots, &j->slot_cap, want - 1,
		  sizeof(*j->slots)))
		return no_memory(sc) != NULL;
	memset(j->slots, 0xff, want * sizeof(*j->slots));
	for (uint32_t i = l->tok + 1; i != ZB_JSON_NONE; i = j->tok[i].next) {
		uint32_t *slot = find_slot(j, i, want - 1);

		if (!slot)
			return sort_keys(sc, l);
		if (*slot != ZB_JSON_NONE)
			return duplicate(sc, *slot, key_body(j, i));
		*slot = i;
	}
	return true;
}

/* The cursor is where a key should be. */
static inline const char *scan_key_text(struct scan *sc, const char *p,
					bool indexed)
{
	const char *q;

	if (unlikely(peek(sc, p) != '"'))
		return unexpected(sc, p, "where a key was expected");
	q = scan_string(sc, p, indexed, &sc->key_plain, &sc->key_escaped);
	if (unlikely(!q))
		return NULL;
	sc->key_start = (uint32_t)(p - sc->s);
	sc->key_end = (uint32_t)(q - sc->s);
	return q;
}

static inline uint32_t hash_key(const struct scan *sc, const char *p,
				const char *q)
{
	if (likely(sc->key_plain))
		return hash_ascii(p + 1, (size_t)(q - p) - 2, sc->end);
	return hash_body((struct body){p + 1, q - 1});
}

/* Key and colon; ends on the value's first byte. */
static inline const char *scan_key(struct scan *sc, const char *p)
{
	struct zb_json_level *l = &sc->j->level[sc->depth - 1];
	bool indexed = sc->depth <= sc->index_depth;
	const char *q = scan_key_text(sc, p, indexed);

	if (unlikely(!q))
		return NULL;
	if (indexed) {
		uint64_t bit;

		sc->key_hash = hash_key(sc, p, q);
		bit = UINT64_C(1) << (sc->key_hash >> 26);
		if (l->keys++ < FEW_KEYS && (l->seen & bit) &&
		    !check_new_key(sc, l))
			return NULL;
		l->seen |= bit;
	}
	q = skip_blanks(sc, q);
	if (unlikely(peek(sc, q) != ':'))
		return unexpected(sc, q, "where a colon was expected");
	return skip_blanks(sc, q + 1);
}

/* ---- values ---- */

/* Make room for one more token, of the value at @p; rarely needed, so it stays
 * out of the way. Return: false: noted. */
static __attribute__((noinline)) bool more_tokens(struct scan *sc,
						  const char *p)
{
	struct zb_json *j = sc->j;

	if (j->n >= sc->max_tokens)
		return bad(sc, ZB_JSON_TOO_MANY, p,
			   "more than %zu values in one text",
			   sc->max_tokens) != NULL;
	return grow((void **)&j->tok, &j->cap, j->n, sizeof(*j->tok)) ||
	       no_memory(sc) != NULL;
}

/* Index the value that lies from @p to @q (NULL: not known yet), as *@tok. It
 * must not lie below the index. Return: false: noted. */
static inline bool add_token(struct scan *sc, enum zb_json_type type,
			     const char *p, const char *q, uint32_t *tok)
{
	struct zb_json *j = sc->j;
	struct zb_json_level *l = sc->depth ? &j->level[sc->depth - 1] : NULL;
	struct zb_json_tok *t;

	if (unlikely(j->n >= size_min(sc->max_tokens, j->cap)) &&
	    !more_tokens(sc, p))
		return false;
	*tok = (uint32_t)j->n++;
	t = &j->tok[*tok];
	t->type = type;
	t->start = (uint32_t)(p - sc->s);
	t->end = q ? (uint32_t)(q - sc->s) : 0;
	t->key_start = sc->key_start;
	t->key_end = sc->key_end;
	t->parent = l ? l->tok : ZB_JSON_NONE;
	t->next = ZB_JSON_NONE;
	t->size = 0;
	t->hash = sc->key_hash;
	t->depth = (uint16_t)sc->depth;
	t->note = 0;
	t->escaped = false;
	t->key_escaped = sc->key_escaped;
	if (l) {
		if (l->last != ZB_JSON_NONE)
			j->tok[l->last].next = *tok;
		l->last = *tok;
		j->tok[l->tok].size++;
	}
	return true;
}

static inline void no_key(struct scan *sc)
{
	sc->key_start = 0;
	sc->key_end = 0;
	sc->key_hash = 0;
	sc->key_escaped = false;
}

static inline const char *digits(struct scan *sc, const char *p)
{
	const char *start = p;

	while (p < sc->end && *p >= '0' && *p <= '9')
		p++;
	if (likely(p > start))
		return p;
	return unexpected(sc, p, "where a digit was expected");
}

static inline const char *number_end(struct scan *sc, const char *p)
{
	if (*p == '-')
		p++;
	p = peek(sc, p) == '0' ? p + 1 : digits(sc, p);
	if (p && peek(sc, p) == '.')
		p = digits(sc, p + 1);
	if (p && (peek(sc, p) | 0x20) == 'e') {
		p++;
		if (peek(sc, p) == '+' || peek(sc, p) == '-')
			p++;
		p = digits(sc, p);
	}
	return p;
}

static inline const char *word_end(struct scan *sc, const char *p,
				   const char *word, size_t len)
{
	if (likely((size_t)(sc->end - p) >= len) && !memcmp(p, word, len))
		return p + len;
	return unexpected(sc, p, "where a value was expected");
}

static const char *scan_scalar(struct scan *sc, const char *p, char c)
{
	enum zb_json_type type = ZB_JSON_NUMBER;
	bool indexed = sc->depth <= sc->index_depth;
	bool escaped = false, plain;
	uint32_t tok;
	const char *q;

	if (c == '"') {
		type = ZB_JSON_STRING;
		q = scan_string(sc, p, indexed && !sc->nul_ok, &plain,
				&escaped);
	} else if (c == '-' || (c >= '0' && c <= '9')) {
		q = number_end(sc, p);
	} else if (c == 't') {
		type = ZB_JSON_TRUE;
		q = word_end(sc, p, "true", 4);
	} else if (c == 'f') {
		type = ZB_JSON_FALSE;
		q = word_end(sc, p, "false", 5);
	} else {
		type = ZB_JSON_NULL;
		q = word_end(sc, p, "null", 4);
	}
	if (!indexed || unlikely(!q))
		return q;
	if (unlikely(!add_token(sc, type, p, q, &tok)))
		return NULL;
	sc->j->tok[tok].escaped = escaped;
	return q;
}

static const char *open_bracket(struct scan *sc, const char *p, bool object)
{
	struct zb_json *j = sc->j;
	uint32_t tok = ZB_JSON_NONE;

	if (sc->depth >= sc->max_depth)
		return bad(sc, ZB_JSON_DEPTH, p, "nested more than %zu deep",
			   sc->max_depth);
	if (unlikely(sc->depth >= j->level_cap) &&
	    !grow((void **)&j->level, &j->level_cap, sc->depth,
		  sizeof(*j->level)))
		return no_memory(sc);
	if (sc->depth <= sc->index_depth &&
	    !add_token(sc, object ? ZB_JSON_OBJECT : ZB_JSON_ARRAY, p, NULL,
		       &tok))
		return NULL;
	j->level[sc->depth++] = (struct zb_json_level){
		.tok = tok,
		.last = ZB_JSON_NONE,
		.object = object,
	};
	no_key(sc);
	return skip_blanks(sc, p + 1);
}

static inline const char *close_bracket(struct scan *sc, const char *p)
{
	const struct zb_json_level *l = &sc->j->level[sc->depth - 1];

	if (unlikely(l->keys > FEW_KEYS) && !check_all_keys(sc, l))
		return NULL;
	p++;
	if (l->tok != ZB_JSON_NONE)
		sc->j->tok[l->tok].end = (uint32_t)(p - sc->s);
	sc->depth--;
	no_key(sc);
	return p;
}

/* A value is complete. Close what closes; *@more: another value follows, the
 * cursor is on it. */
static const char *after_value(struct scan *sc, const char *p, bool *more)
{
	*more = false;
	while (sc->depth) {
		bool object = sc->j->level[sc->depth - 1].object;
		char c;

		p = skip_blanks(sc, p);
		c = peek(sc, p);
		if (c == ',') {
			p = skip_blanks(sc, p + 1);
			*more = true;
			return object ? scan_key(sc, p) : p;
		}
		if (unlikely(c != (object ? '}' : ']')))
			return unexpected(sc, p,
					  object ? "inside an object"
						 : "inside an array");
		p = close_bracket(sc, p);
		if (unlikely(!p))
			return NULL;
	}
	return p;
}

static const char *scan_value(struct scan *sc, const char *p)
{
	bool more = true;

	while (p && more) {
		char c = peek(sc, p);
		bool object = c == '{';

		if (object || c == '[') {
			p = open_bracket(sc, p, object);
			if (!p)
				return NULL;
			if (peek(sc, p) != (object ? '}' : ']')) {
				if (object)
					p = scan_key(sc, p);
				continue;
			}
			p = close_bracket(sc, p);
		} else {
			p = scan_scalar(sc, p, c);
		}
		if (p)
			p = after_value(sc, p, &more);
	}
	return p;
}

static const char *scan_all(struct scan *sc)
{
	const char *p = sc->s;

	if ((size_t)(sc->end - p) >= ZB_JSON_NONE)
		return bad(sc, ZB_JSON_TOO_MANY, p, "the text is too long");
	if (sc->end - p >= 3 && !memcmp(p, "\xef\xbb\xbf", 3))
		return bad(sc, ZB_JSON_BOM, p,
			   "the text starts with a byte-order mark");
	p = skip_blanks(sc, p);
	if (p >= sc->end)
		return bad(sc, ZB_JSON_EMPTY, p, "the text is empty");
	p = scan_value(sc, p);
	if (!p)
		return NULL;
	p = skip_blanks(sc, p);
	if (p < sc->end)
		return bad(sc, ZB_JSON_TRAILING, p,
			   "more text after the end of the value");
	return p;
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
		.end = text + len,
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
	free(j->slots);
	*j = (struct zb_json){0};
}

/* ---- reading the index ---- */

static bool escaped_is(struct body b, const char *s, size_t n)
{
	uint32_t ca, cb;

	while (next_cp(&b, &ca)) {
		unsigned used = n ? zb_utf8_step(s, n, &cb) : 0;

		if (!used || ca != cb)
			return false;
		s += used;
		n -= used;
	}
	return !n;
}

static inline bool body_is(struct body b, bool escaped, const char *s, size_t n)
{
	if (unlikely(escaped))
		return escaped_is(b, s, n);
	return (size_t)(b.end - b.p) == n && !memcmp(b.p, s, n);
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

	return string_body(j, i, &b) &&
	       body_is(b, j->tok[i].escaped, s, strlen(s));
}

bool zb_json_key_is(const struct zb_json *j, uint32_t i, const char *s)
{
	return i < j->n && j->tok[i].key_end &&
	       body_is(key_body(j, i), j->tok[i].key_escaped, s, strlen(s));
}

uint32_t zb_json_get(const struct zb_json *j, uint32_t obj, const char *key)
{
	size_t n = strlen(key);

	if (obj >= j->n || j->tok[obj].type != ZB_JSON_OBJECT)
		return ZB_JSON_NONE;
	for (uint32_t i = zb_json_first(j, obj); i != ZB_JSON_NONE;
	     i = j->tok[i].next)
		if (body_is(key_body(j, i), j->tok[i].key_escaped, key, n))
			return i;
	return ZB_JSON_NONE;
}

static int unescape(struct body b, bool escaped, struct zb_buf *out)
{
	if (!escaped)
		return zb_buf_add(out, b.p, (size_t)(b.end - b.p));
	while (b.p < b.end) {
		const char *slash = memchr(b.p, '\\', (size_t)(b.end - b.p));
		uint32_t cp = 0;

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

/* \uXXXX */
static void add_unit(struct zb_buf *out, uint32_t unit)
{
	static const char hex[] = "0123456789abcdef";
	char b[6] = {'\\', 'u'};

	for (int i = 0; i < 4; i++)
		b[2 + i] = hex[unit >> (12 - 4 * i) & 15];
	zb_buf_add(out, b, sizeof(b));
}

static void quote_cp(struct zb_buf *out, uint32_t cp)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *p = cp && cp < 0x80 ? strchr(from, (int)cp) : NULL;

	if (p) {
		zb_buf_addc(out, '\\');
		zb_buf_addc(out, to[p - from]);
	} else if (cp > 0xffff) {
		add_unit(out, 0xd7c0 + (cp >> 10));
		add_unit(out, 0xdc00 | (cp & 0x3ff));
	} else {
		add_unit(out, cp);
	}
}

int zb_json_quote(struct zb_buf *out, const char *s, size_t n)
{
	size_t i = 0, from = 0;

	zb_buf_addc(out, '"');
	while (i < n) {
		size_t end = (size_t)(skip_plain(s + i, s + n) - s);
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

int zb_json_quote_or_null(struct zb_buf *out, const char *s)
{
	return s ? zb_json_quote(out, s, strlen(s)) : zb_buf_adds(out, "null");
}
