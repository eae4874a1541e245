/* splice.c - edits of one line of JSON that leave every other byte alone. */
#include "splice.h"

#include <stdlib.h>

void zb_splice_clear(struct zb_splice *s)
{
	s->n = 0;
	s->failed = false;
	zb_buf_clear(&s->bytes);
}

void zb_splice_done(struct zb_splice *s)
{
	free(s->v);
	zb_buf_done(&s->bytes);
	*s = (struct zb_splice){0};
}

static bool grow(struct zb_splice *s)
{
	size_t cap = s->cap ? s->cap * 2 : 16;
	struct zb_edit *v;

	if (s->n < s->cap)
		return true;
	v = realloc(s->v, cap * sizeof(*v));
	if (!v)
		return false;
	s->v = v;
	s->cap = cap;
	return true;
}

void zb_splice_add(struct zb_splice *s, size_t start, size_t end, const void *p,
		   size_t len)
{
	struct zb_edit *e;
	size_t at = s->bytes.len;

	if (s->failed)
		return;
	/* Out of order would splice garbage: refuse the whole instead. */
	if (end < start || (s->n && start < s->v[s->n - 1].end) || !grow(s) ||
	    zb_buf_add(&s->bytes, p, len)) {
		s->failed = true;
		return;
	}
	e = &s->v[s->n++];
	*e = (struct zb_edit){start, end, at, len};
}

int zb_splice_apply(const struct zb_splice *s, const char *text, size_t len,
		    struct zb_buf *out)
{
	size_t from = 0;

	if (s->failed)
		return ZB_ELIMIT;
	for (size_t i = 0; i < s->n; i++) {
		const struct zb_edit *e = &s->v[i];

		zb_buf_add(out, text + from, e->start - from);
		if (e->len)
			zb_buf_add(out, s->bytes.data + e->at, e->len);
		from = e->end;
	}
	return zb_buf_add(out, text + from, len - from);
}

void zb_cutter_keep(struct zb_cutter *c, struct zb_splice *s, size_t start,
		    size_t end)
{
	if (c->cutting)
		zb_splice_add(s, c->run, start, NULL, 0);
	c->cutting = false;
	c->kept = true;
	c->kept_end = end;
}

void zb_cutter_cut(struct zb_cutter *c, size_t start, size_t end)
{
	if (!c->cutting)
		c->run = start;
	c->cutting = true;
	c->last = end;
}

void zb_cutter_end(struct zb_cutter *c, struct zb_splice *s)
{
	if (c->cutting)
		zb_splice_add(s, c->kept ? c->kept_end : c->run, c->last, NULL,
			      0);
	c->cutting = false;
}
