/* buf.c - growable bytes with a hard maximum, and lists of strings. */
#include "buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void zb_buf_done(struct zb_buf *b)
{
	if (!b)
		return;
	free(b->data);
	*b = (struct zb_buf){0};
}

static inline size_t most(const struct zb_buf *b)
{
	return b->max ? b->max : ZB_BUF_DEFAULT_MAX;
}

static int grow(struct zb_buf *b, size_t n)
{
	size_t max = most(b);
	size_t cap;
	char *p;

	if (b->failed)
		return ZB_ELIMIT;
	if (n > max || b->len > max - n) {
		b->failed = true;
		return ZB_ELIMIT;
	}
	cap = b->cap ? b->cap : 64;
	while (cap <= b->len + n)
		cap *= 2;
	p = realloc(b->data, cap);
	if (!p) {
		b->failed = true;
		return ZB_ELIMIT;
	}
	b->data = p;
	b->cap = cap;
	return 0;
}

/* Make room for @n more bytes and the NUL behind them. */
static inline int reserve(struct zb_buf *b, size_t n)
{
	if (!b->failed && n < b->cap - b->len && b->len + n <= most(b))
		return 0;
	return grow(b, n);
}

int zb_buf_add(struct zb_buf *b, const void *p, size_t n)
{
	if (reserve(b, n))
		return ZB_ELIMIT;
	if (n)
		memcpy(b->data + b->len, p, n);
	b->len += n;
	b->data[b->len] = '\0';
	return 0;
}

int zb_buf_adds(struct zb_buf *b, const char *s)
{
	return zb_buf_add(b, s, strlen(s));
}

int zb_buf_addc(struct zb_buf *b, char c)
{
	return zb_buf_add(b, &c, 1);
}

int zb_buf_vaddf(struct zb_buf *b, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0 || reserve(b, (size_t)n)) {
		b->failed = true;
		return ZB_ELIMIT;
	}
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	b->len += (size_t)n;
	return 0;
}

int zb_buf_addf(struct zb_buf *b, const char *fmt, ...)
{
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = zb_buf_vaddf(b, fmt, ap);
	va_end(ap);
	return rc;
}

char *zb_buf_room(struct zb_buf *b, size_t n)
{
	return reserve(b, n) ? NULL : b->data + b->len;
}

void zb_buf_grow(struct zb_buf *b, size_t n)
{
	b->len += n;
	b->data[b->len] = '\0';
}

void zb_buf_consume(struct zb_buf *b, size_t n)
{
	if (n > b->len)
		n = b->len;
	if (!n)
		return;
	b->len -= n;
	if (b->len)
		memmove(b->data, b->data + n, b->len);
	b->data[b->len] = '\0';
}

char *zb_buf_steal(struct zb_buf *b)
{
	char *p;

	if (b->failed) {
		zb_buf_done(b);
		return NULL;
	}
	p = b->data ? b->data : zb_strdup("");
	b->data = NULL;
	zb_buf_done(b);
	return p;
}

void zb_strv_done(struct zb_strv *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	*l = (struct zb_strv){0};
}

int zb_strv_take(struct zb_strv *l, char *s)
{
	if (!s)
		return ZB_ELIMIT;
	if (l->n + 1 >= l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 8;
		char **v = realloc(l->v, cap * sizeof(*v));

		if (!v) {
			free(s);
			return ZB_ELIMIT;
		}
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n++] = s;
	l->v[l->n] = NULL;
	return 0;
}

int zb_strv_add(struct zb_strv *l, const char *s)
{
	return zb_strv_take(l, zb_strdup(s));
}

int zb_strv_addf(struct zb_strv *l, const char *fmt, ...)
{
	struct zb_buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	zb_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	return zb_strv_take(l, zb_buf_steal(&b));
}

bool zb_strv_has(const struct zb_strv *l, const char *s)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->v[i], s))
			return true;
	return false;
}

int zb_strv_copy(struct zb_strv *out, const struct zb_strv *in)
{
	for (size_t i = 0; i < in->n; i++)
		if (zb_strv_add(out, in->v[i]))
			return ZB_ELIMIT;
	return 0;
}

char *zb_strf(const char *fmt, ...)
{
	struct zb_buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	zb_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	return zb_buf_steal(&b);
}

char *zb_strdup(const char *s)
{
	return s ? zb_strndup(s, strlen(s)) : NULL;
}

char *zb_strndup(const char *s, size_t n)
{
	char *p = malloc(n + 1);

	if (!p)
		return NULL;
	memcpy(p, s, n);
	p[n] = '\0';
	return p;
}
