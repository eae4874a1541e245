/* code_diff.c - two lists of files against each other.
 *
 * Lines are counted as a bag: how many are there now that were not there, and
 * the other way round. That needs no search for the shortest edit, which a
 * stranger's file could make as long as he likes. */
#include "config.h"

#include "code_diff.h"

#include "cleanup.h"
#include "text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void zb_code_diff_done(struct zb_code_diff *d)
{
	zb_strv_done(&d->lines);
	*d = (struct zb_code_diff){0};
}

/* ---- lines --------------------------------------------------------------- */

struct bag {
	uint64_t *v; /* a hash for each line, sorted */
	size_t n;
};

static uint64_t hash_line(const char *s, size_t n)
{
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 1099511628211u;
	return h;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int fill(struct bag *out, const struct zb_buf *text)
{
	const char *s = zb_buf_str(text), *end = s + text->len;
	size_t n = 0;

	for (const char *p = s; p < end; p++)
		n += *p == '\n';
	out->v = calloc(n + 1, sizeof(*out->v));
	if (!out->v)
		return ZB_ELIMIT;
	while (s < end) {
		const char *nl = memchr(s, '\n', (size_t)(end - s));
		const char *stop = nl ? nl : end;

		out->v[out->n++] = hash_line(s, (size_t)(stop - s));
		s = stop + 1;
	}
	qsort(out->v, out->n, sizeof(*out->v), by_value);
	return 0;
}

static void compare_bags(const struct bag *was, const struct bag *now,
			 size_t *in, size_t *out)
{
	size_t a = 0, b = 0;

	*in = *out = 0;
	while (a < was->n || b < now->n) {
		if (b == now->n || (a < was->n && was->v[a] < now->v[b]))
			a++, ++*out;
		else if (a == was->n || now->v[b] < was->v[a])
			b++, ++*in;
		else
			a++, b++;
	}
}

/* ---- files --------------------------------------------------------------- */

/* Never through a link, nor from what is no file. */
static bool read_text(const struct zb_code_side *c, const char *path,
		      struct zb_buf *out, uint64_t *size)
{
	bool manifest = c->manifest && !strcmp(path, "extension.json");
	zb_auto(free) char *full =
		zb_strf("%s/%s", c->dir, manifest ? "" : path);
	const char *at = manifest ? c->manifest : full;
	struct stat st;

	*size = 0;
	if (!at || lstat(at, &st) || !S_ISREG(st.st_mode))
		return false;
	*size = (uint64_t)st.st_size;
	return !zb_read_file(at, ZB_DIFF_BYTES_MAX, out, NULL) &&
	       !memchr(zb_buf_str(out), '\0', out->len);
}

/* ": 12 lines new, 3 gone" of what is in both, ": 12 lines" of what is new. */
static int add_numbers(struct zb_buf *b, const struct zb_code_side *was,
		       const struct zb_code_side *now, const char *path)
{
	struct zb_buf x = {0}, y = {0};
	struct bag then = {0}, here = {0};
	uint64_t size_was = 0, size_now = 0;
	bool old_text = !was || read_text(was, path, &x, &size_was);
	bool text = read_text(now, path, &y, &size_now) && old_text;
	size_t in, out;
	int rc = 0;

	if (text)
		rc = fill(&then, &x) || fill(&here, &y) ? ZB_ELIMIT : 0;
	if (!rc && text) {
		compare_bags(&then, &here, &in, &out);
		zb_buf_addf(b, ": %zu line%s", in, in == 1 ? "" : "s");
		if (was)
			zb_buf_addf(b, " new, %zu gone", out);
	} else if (!rc && was) {
		zb_buf_addf(b, ": %llu bytes, before %llu",
			    (unsigned long long)size_now,
			    (unsigned long long)size_was);
	} else if (!rc) {
		zb_buf_addf(b, ": %llu bytes", (unsigned long long)size_now);
	}
	free(then.v);
	free(here.v);
	zb_buf_done(&x);
	zb_buf_done(&y);
	return rc;
}

static const char *kind_words(char was, char now)
{
	if (was == now)
		return "";
	if (now == 'l')
		return "; is a link now";
	if (now == 'x')
		return "; may be executed now";
	return was == 'x' ? "; may not be executed any more"
			  : "; was a link before";
}

static int tell(struct zb_code_diff *d, const struct zb_code_side *was,
		const struct zb_code_side *now, const char *path,
		const struct zb_lock_file *x, const struct zb_lock_file *y)
{
	struct zb_buf b = {0};
	int rc = 0;

	zb_buf_adds(&b, !x ? "added " : !y ? "removed " : "changed ");
	zb_text_escape(&b, path, strlen(path), 300);
	if (y && y->kind != 'l' && (!x || strcmp(x->sha256, y->sha256) != 0))
		rc = add_numbers(&b, x && x->kind != 'l' ? was : NULL, now,
				 path);
	if (y)
		zb_buf_adds(&b, kind_words(x ? x->kind : 'f', y->kind));
	if (rc)
		zb_buf_done(&b);
	return rc ? rc : zb_strv_take(&d->lines, zb_buf_steal(&b));
}

/* @x, @y: the file at @path as it was and as it is, NULL: not there. */
static int take(struct zb_code_diff *d, const struct zb_code_side *was,
		const struct zb_code_side *now, const char *path,
		const struct zb_lock_file *x, const struct zb_lock_file *y)
{
	if (x && y && x->kind == y->kind && !strcmp(x->sha256, y->sha256))
		return 0;
	d->added += !x;
	d->removed += !y;
	d->changed += x && y;
	return d->lines.n < ZB_DIFF_LINES ? tell(d, was, now, path, x, y) : 0;
}

int zb_code_diff(struct zb_code_diff *out, const struct zb_code_side *was,
		 const struct zb_code_side *now, struct zb_error *err)
{
	const struct zb_lock *x = was->lock, *y = now->lock;
	size_t a = 0, b = 0, all;
	int rc = 0;

	*out = (struct zb_code_diff){0};
	while (!rc && (a < x->n_files || b < y->n_files)) {
		int order = a == x->n_files   ? 1
			    : b == y->n_files ? -1
					      : strcmp(x->files[a].path,
						       y->files[b].path);

		rc = take(out, was, now,
			  order <= 0 ? x->files[a].path : y->files[b].path,
			  order <= 0 ? &x->files[a] : NULL,
			  order >= 0 ? &y->files[b] : NULL);
		a += order <= 0;
		b += order >= 0;
	}
	all = out->added + out->removed + out->changed;
	if (!rc && all > out->lines.n)
		rc = zb_strv_addf(&out->lines, "and %zu more",
				  all - out->lines.n);
	if (rc) {
		zb_code_diff_done(out);
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	}
	return 0;
}
