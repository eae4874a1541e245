/* json_scan.h - a strict JSON reader (RFC 8259) that keeps offsets.
 *
 * It stands before anything that decides. Refused: a byte-order mark, invalid
 * UTF-8, anything after the one value, control characters in strings, lone
 * surrogate escapes, \u0000 in a key or in a string at an indexed level,
 * nesting over the limit, and two keys of one object that are equal under
 * Unicode case folding (Go matches keys so and lets the last win). The text
 * is never copied: tokens are offsets into it, so original bytes can be
 * forwarded, or spliced. Pure; no recursion. */
#ifndef ZB_JSON_SCAN_H
#define ZB_JSON_SCAN_H

#include "buf.h"

enum zb_json_type {
	ZB_JSON_OBJECT,
	ZB_JSON_ARRAY,
	ZB_JSON_STRING,
	ZB_JSON_NUMBER,
	ZB_JSON_TRUE,
	ZB_JSON_FALSE,
	ZB_JSON_NULL
};

#define ZB_JSON_NONE	  UINT32_MAX
#define ZB_JSON_DEPTH_CAP 4096u

/* One value. Offsets are bytes in the text, end exclusive; a string's include
 * its quotes. A member's key likewise; key_end 0: not a member. Children of
 * token i are i+1 and then each one's @next, until ZB_JSON_NONE. */
struct zb_json_tok {
	enum zb_json_type type;
	uint32_t start, end;
	uint32_t key_start, key_end;
	uint32_t parent; /* ZB_JSON_NONE for the root */
	uint32_t next;	 /* next sibling or ZB_JSON_NONE */
	uint32_t size;	 /* indexed children */
	uint32_t hash;	 /* of the folded key; the scanner's own */
	uint16_t depth;	 /* root 0 */
	uint16_t note;	 /* the reader's own; 0 at first */
	bool escaped;	 /* a string with a backslash in it */
	bool key_escaped;
};

/* Workspace of the scanner. */
struct zb_json_level;
struct zb_json_key;

/* @text is borrowed and must outlive it. tok[0] is the root. Zero-initialise;
 * may be reused for the next text (its memory is kept). */
struct zb_json {
	const char *text;
	size_t len;
	struct zb_json_tok *tok;
	size_t n, cap;
	struct zb_json_level *level;
	size_t level_cap;
	struct zb_json_key *sort;
	size_t sort_cap;
	uint32_t *slots;
	size_t slot_cap;
};

/* Zero means the default. Values deeper than @index_depth are checked (syntax
 * and UTF-8), not indexed, and their keys are not compared. */
struct zb_json_limits {
	unsigned max_depth;   /* brackets open at once; default 256, at most
				 ZB_JSON_DEPTH_CAP */
	unsigned index_depth; /* default: max_depth. Root is depth 0 */
	size_t max_tokens;    /* default 1 << 20 */
	bool nul_ok;	      /* \u0000 may stand in strings (never in keys):
				 the caller compares with lengths */
};

enum zb_json_fault_kind {
	ZB_JSON_SYNTAX,
	ZB_JSON_BOM,
	ZB_JSON_UTF8,
	ZB_JSON_DEPTH,
	ZB_JSON_DUPLICATE, /* equal or fold-equal keys */
	ZB_JSON_NUL,
	ZB_JSON_TRAILING,
	ZB_JSON_TOO_MANY,
	ZB_JSON_EMPTY
};

/* Where (byte offset, and line and column from 1, columns in bytes) and why.
 * @what is a clause without position ("duplicate key \"type\""), escaped. */
struct zb_json_fault {
	enum zb_json_fault_kind kind;
	size_t offset;
	unsigned line, column;
	char what[256];
};

/* Scan @len bytes, in time linear in @len (n log n in the keys of an object
 * that has many). Return: 0, or ZB_EUSAGE with @fault filled (may be NULL), or
 * ZB_ELIMIT when out of memory. @out holds no tokens then. */
int zb_json_scan(struct zb_json *out, const char *text, size_t len,
		 const struct zb_json_limits *limits,
		 struct zb_json_fault *fault);
void zb_json_done(struct zb_json *j);

/* Line and column (from 1) of a byte offset. */
void zb_json_position(const char *text, size_t len, size_t offset,
		      unsigned *line, unsigned *column);

/* Index of member @key (exact bytes after unescaping) of object @obj, or
 * ZB_JSON_NONE. */
uint32_t zb_json_get(const struct zb_json *j, uint32_t obj, const char *key);
/* First child / next sibling, or ZB_JSON_NONE. */
static inline uint32_t zb_json_first(const struct zb_json *j, uint32_t i)
{
	return i < j->n && j->tok[i].size ? i + 1 : ZB_JSON_NONE;
}

static inline uint32_t zb_json_next(const struct zb_json *j, uint32_t i)
{
	return i < j->n ? j->tok[i].next : ZB_JSON_NONE;
}

/* Append the unescaped text of string token @i, or of its key. */
int zb_json_string(const struct zb_json *j, uint32_t i, struct zb_buf *out);
int zb_json_key(const struct zb_json *j, uint32_t i, struct zb_buf *out);
/* Heap copies; NULL when not a string / out of memory. */
char *zb_json_dup_string(const struct zb_json *j, uint32_t i);
char *zb_json_dup_key(const struct zb_json *j, uint32_t i);
/* Does string token @i / its key equal @s, after unescaping? */
bool zb_json_is(const struct zb_json *j, uint32_t i, const char *s);
bool zb_json_key_is(const struct zb_json *j, uint32_t i, const char *s);
/* Number token as an integer without loss (2, 2.0, 20e-1). Return: false if
 * it is none. */
bool zb_json_int(const struct zb_json *j, uint32_t i, int64_t *out);
/* Append @s as a JSON string with quotes. Invalid UTF-8 becomes U+FFFD; what
 * zb_is_hazard() names is written as \u, so that the text is safe to show. */
int zb_json_quote(struct zb_buf *out, const char *s, size_t n);
/* The same of a string of C, or null for NULL. */
int zb_json_quote_or_null(struct zb_buf *out, const char *s);

#endif
