/* utf8.h - the one UTF-8 decoder, inline for the two loops that are hot:
 * text.c and json_scan.c. Others call zb_utf8_next(). */
#ifndef ZB_UTF8_H
#define ZB_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool zb_utf8_cont(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* The second byte carries the restrictions of RFC 3629 section 4: after E0 no
 * overlong form, after ED no surrogate, after F0 no overlong form, after F4
 * nothing above U+10FFFF. */
static inline bool zb_utf8_second(unsigned char a, unsigned char b)
{
	switch (a) {
	case 0xe0:
		return b >= 0xa0 && b <= 0xbf;
	case 0xed:
		return b >= 0x80 && b <= 0x9f;
	case 0xf0:
		return b >= 0x90 && b <= 0xbf;
	case 0xf4:
		return b >= 0x80 && b <= 0x8f;
	default:
		return zb_utf8_cont(b);
	}
}

/* See zb_utf8_next(). */
static inline unsigned zb_utf8_step(const char *s, size_t n, uint32_t *cp)
{
	const unsigned char *p = (const unsigned char *)s;
	unsigned char a = p[0];

	if (a < 0x80) {
		*cp = a;
		return 1;
	}
	if (a < 0xc2 || a > 0xf4 || n < 2 || !zb_utf8_second(a, p[1]))
		return 0;
	if (a < 0xe0) {
		*cp = (uint32_t)(a & 0x1f) << 6 | (p[1] & 0x3f);
		return 2;
	}
	if (n < 3 || !zb_utf8_cont(p[2]))
		return 0;
	if (a < 0xf0) {
		*cp = (uint32_t)(a & 0x0f) << 12 |
		      (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
		return 3;
	}
	if (n < 4 || !zb_utf8_cont(p[3]))
		return 0;
	*cp = (uint32_t)(a & 0x07) << 18 | (uint32_t)(p[1] & 0x3f) << 12 |
	      (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3f);
	return 4;
}

#endif
