/* blocks.h - stepping over plain text many bytes at a time. Low-level; inline,
 * for the two loops that see every byte of a frame. Vectors of the compiler's:
 * every machine we build for has them, and the others get words. */
#ifndef ZB_BLOCKS_H
#define ZB_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ZB_VECTOR 16
#define ZB_BLOCK  64

typedef signed char zb_vector __attribute__((vector_size(ZB_VECTOR)));

/* Of sixteen bytes, all bits of those that are no plain ASCII (a signed byte
 * over 7F is negative), a backslash, and with @quote also a quote, with @del
 * also a DEL. */
static inline zb_vector zb_marks(const char *s, bool quote, bool del)
{
	zb_vector v, m;

	memcpy(&v, s, sizeof(v));
	m = (v < 0x20) | (v == '\\');
	if (quote)
		m |= v == '"';
	if (del)
		m |= v == 0x7f;
	return m;
}

/* Where the first marked one of sixteen bytes is; 16: none is. */
static inline unsigned zb_first_mark(zb_vector m)
{
	uint64_t half[2];

	memcpy(half, &m, sizeof(half));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	half[0] = __builtin_bswap64(half[0]);
	half[1] = __builtin_bswap64(half[1]);
#endif
	if (half[0])
		return (unsigned)__builtin_ctzll(half[0]) >> 3;
	return half[1] ? 8 + ((unsigned)__builtin_ctzll(half[1]) >> 3) : 16;
}

/* @p, moved on by whole blocks that have no such byte. */
static inline const char *zb_skip_blocks(const char *p, const char *end,
					 bool quote, bool del)
{
	for (; end - p >= ZB_BLOCK; p += ZB_BLOCK) {
		zb_vector m = zb_marks(p, quote, del) |
			      zb_marks(p + 16, quote, del) |
			      zb_marks(p + 32, quote, del) |
			      zb_marks(p + 48, quote, del);
		uint64_t half[2];

		memcpy(half, &m, sizeof(half));
		if (half[0] | half[1])
			break;
	}
	return p;
}

#endif
