/* splice.h - edits of one line of JSON that leave every other byte alone.
 *
 * Edits are added from left to right and never overlap; replacement bytes are
 * copied. Members of objects and elements of arrays are cut together with the
 * comma that goes with them: tell zb_cutter about every one in order, kept or
 * cut. Pure. */
#ifndef ZB_SPLICE_H
#define ZB_SPLICE_H

#include "buf.h"

struct zb_edit {
	size_t start, end; /* bytes that go */
	size_t at, len;	   /* what comes instead, in zb_splice.bytes */
};

/* Zero-initialise; zb_splice_clear() for the next line keeps the memory. */
struct zb_splice {
	struct zb_edit *v;
	size_t n, cap;
	struct zb_buf bytes;
	bool failed; /* out of memory: nothing it says may be used */
};

void zb_splice_clear(struct zb_splice *s);
void zb_splice_done(struct zb_splice *s);
/* Cut [@start, @end), put @len bytes of @p there. */
void zb_splice_add(struct zb_splice *s, size_t start, size_t end, const void *p,
		   size_t len);
/* Append @text with the edits applied to @out. Return: 0 or ZB_ELIMIT. */
int zb_splice_apply(const struct zb_splice *s, const char *text, size_t len,
		    struct zb_buf *out);

/* One object or array being cut. Zero-initialise. */
struct zb_cutter {
	bool cutting;	  /* in a run of cut ones */
	bool kept;	  /* one was kept before the run */
	size_t run, last; /* start of the run, end of what it saw last */
	size_t kept_end;  /* end of the one kept before the run */
};

/* The next member or element, [@start, @end) with its key. Call keep before
 * adding edits inside of it. */
void zb_cutter_keep(struct zb_cutter *c, struct zb_splice *s, size_t start,
		    size_t end);
void zb_cutter_cut(struct zb_cutter *c, size_t start, size_t end);
/* After the last one. */
void zb_cutter_end(struct zb_cutter *c, struct zb_splice *s);

#endif
