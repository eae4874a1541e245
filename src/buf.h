/* buf.h - growable bytes with a hard maximum, and lists of strings.
 *
 * Low-level: interacts only with libc. Bytes may hold NULs; there is always a
 * NUL after the last one, so @data can be used as a string when it has none. */
#ifndef ZB_BUF_H
#define ZB_BUF_H

#include "error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZB_BUF_DEFAULT_MAX ((size_t)64 << 20)

/* Zero-initialised is an empty buffer with ZB_BUF_DEFAULT_MAX. Once an
 * addition failed (maximum or memory) @failed stays set, later additions are
 * ignored, so a chain of additions is checked once at its end. */
struct zb_buf {
	char *data; /* NULL while empty and never grown */
	size_t len;
	size_t cap;
	size_t max; /* 0: ZB_BUF_DEFAULT_MAX */
	bool failed;
};

/* Free what @b holds and zero it; NULL and never-used are fine. */
void zb_buf_done(struct zb_buf *b);
/* Empty it, keep its memory and maximum, clear @failed. */
static inline void zb_buf_clear(struct zb_buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = '\0';
}

/* Append @n bytes of @p / a string / one byte / formatted text.
 * Return: 0, or ZB_ELIMIT (then @failed is set). */
int zb_buf_add(struct zb_buf *b, const void *p, size_t n);
int zb_buf_adds(struct zb_buf *b, const char *s);
int zb_buf_addc(struct zb_buf *b, char c);
int zb_buf_addf(struct zb_buf *b, const char *fmt, ...) ZB_PRINTF(2, 3);
int zb_buf_vaddf(struct zb_buf *b, const char *fmt, va_list ap) ZB_PRINTF(2, 0);
/* At least @n writable bytes behind what @b holds; NULL: there are none (then
 * @failed is set). What was written there becomes part of @b by zb_buf_grow().
 */
char *zb_buf_room(struct zb_buf *b, size_t n);
void zb_buf_grow(struct zb_buf *b, size_t n);
/* Drop the first @n bytes (at most @len). */
void zb_buf_consume(struct zb_buf *b, size_t n);
/* The text, never NULL ("" when empty). Valid until the next change. */
static inline const char *zb_buf_str(const struct zb_buf *b)
{
	return b->data ? b->data : "";
}

/* Hand the text over as a heap string (never NULL unless out of memory or
 * @failed); @b is empty afterwards. */
char *zb_buf_steal(struct zb_buf *b);

/* A list of heap strings, NULL-terminated in @v when not empty. */
struct zb_strv {
	char **v;
	size_t n;
	size_t cap;
};

void zb_strv_done(struct zb_strv *l);
/* Copies @s. Return: 0 or ZB_ELIMIT. */
int zb_strv_add(struct zb_strv *l, const char *s);
int zb_strv_addf(struct zb_strv *l, const char *fmt, ...) ZB_PRINTF(2, 3);
/* Takes heap string @s, also on failure (NULL counts as failure). */
int zb_strv_take(struct zb_strv *l, char *s);
bool zb_strv_has(const struct zb_strv *l, const char *s);
int zb_strv_copy(struct zb_strv *out, const struct zb_strv *in);

/* Formatted heap string, NULL when out of memory. The caller frees. */
char *zb_strf(const char *fmt, ...) ZB_PRINTF(1, 2);
/* Copy, NULL for NULL. */
char *zb_strdup(const char *s);
/* Copy of the first @n bytes. */
char *zb_strndup(const char *s, size_t n);

#endif
