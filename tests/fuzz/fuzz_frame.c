/* fuzz_frame.c - bytes to lines: in pieces as in one, as the definition says.
 * The first two bytes of the input choose the longest line and the pieces. */
#include "check.h"
#include "frame.h"

#include <string.h>

struct reference {
	const char *s;
	size_t n, at, max;
	uint64_t number;
};

static void check_line(struct reference *r, const struct zb_line *l)
{
	const char *nl = memchr(r->s + r->at, '\n', r->n - r->at);
	size_t end = nl ? (size_t)(nl - r->s) : r->n, len = end - r->at;

	CHECK(l->kind == (len > r->max ? ZB_LINE_TOO_LONG : ZB_LINE_FRAME));
	CHECK(l->total == len && l->number == ++r->number);
	CHECK(l->len == (len > r->max ? r->max : len));
	CHECK(!memcmp(l->text, r->s + r->at, l->len));
	r->at = nl ? end + 1 : r->n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = (const char *)data + 2;
	struct reference r = {0};
	struct zb_framer f;
	struct zb_line l;
	size_t fed = 0, n = size - 2, piece;

	if (size < 2)
		return 0;
	zb_framer_init(&f, 1 + data[0]);
	r = (struct reference){.s = s, .n = n, .max = 1 + (size_t)data[0]};
	piece = 1 + (size_t)data[1] % 64;
	if (n >= 3 && !memcmp(s, "\xef\xbb\xbf", 3))
		r.at = 3;
	while (fed < n) {
		size_t k = n - fed < piece ? n - fed : piece;

		CHECK(!zb_framer_feed(&f, s + fed, k));
		fed += k;
		for (;;) {
			zb_framer_next(&f, &l);
			if (l.kind == ZB_LINE_NONE)
				break;
			check_line(&r, &l);
		}
		CHECK(f.buf.len - f.read <= f.max || !f.started);
	}
	zb_framer_end(&f, &l);
	if (r.at < n)
		check_line(&r, &l);
	else
		CHECK(l.kind == ZB_LINE_NONE);
	CHECK(r.at == n);
	zb_framer_end(&f, &l);
	CHECK(l.kind == ZB_LINE_NONE);
	zb_framer_done(&f);
	return 0;
}
