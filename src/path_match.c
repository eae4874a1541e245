/* path_match.c - paths as text, and the patterns of scope files.
 *
 * Nothing here looks at a disk: a path is a list of components, and links are
 * somebody else's business. That is what makes the answers repeatable.
 *
 * Patterns are matched component by component. One place to go back to is
 * enough, both for `**` over components and for `*` inside one: what stands
 * between two stars may always take the leftmost fit, since nothing later can
 * need it further left. So a pattern costs at most its length times that of
 * the path, whatever a stranger wrote. */
#include "path_match.h"

#include "cleanup.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

/* One component: the bytes up to the next slash. */
struct piece {
	const char *s;
	size_t n;
};

/* Take the next component off *@p, or return false at the end. */
static bool next_piece(const char **p, struct piece *out)
{
	const char *s = *p;

	while (*s == '/')
		s++;
	if (!*s)
		return false;
	out->s = s;
	while (*s && *s != '/')
		s++;
	out->n = (size_t)(s - out->s);
	*p = s;
	return true;
}

static bool piece_is(const struct piece *c, const char *s)
{
	return c->n == strlen(s) && !memcmp(c->s, s, c->n);
}

static bool is_any_depth(const struct piece *c)
{
	return c->n == 2 && c->s[0] == '*' && c->s[1] == '*';
}

/* Append the components of @path to canonical @out ("" is the root here). */
static void add_pieces(struct zb_buf *out, const char *path)
{
	struct piece c;

	while (next_piece(&path, &c)) {
		if (piece_is(&c, "."))
			continue;
		if (piece_is(&c, "..")) {
			while (out->len && out->data[--out->len] != '/')
				;
			continue;
		}
		zb_buf_addc(out, '/');
		zb_buf_add(out, c.s, c.n);
	}
}

char *zb_path_join(const char *base, const char *path)
{
	struct zb_buf b = {0};

	if (path[0] != '/') {
		if (!base || base[0] != '/')
			return NULL;
		add_pieces(&b, base);
	}
	add_pieces(&b, path);
	if (!b.len && !b.failed) {
		zb_buf_clear(&b);
		zb_buf_addc(&b, '/');
	} else if (b.data) {
		b.data[b.len] = '\0';
	}
	return zb_buf_steal(&b);
}

bool zb_path_below(const char *path, const char *dir)
{
	const char *d = dir;

	/* Asked of all pairs of places: most differ within a few bytes. */
	for (; *d && *path == *d; d++)
		path++;
	if (*d)
		return false;
	return *path == '\0' || *path == '/' || (d == dir + 1 && *dir == '/');
}

const char *zb_path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash || !slash[1])
		return path;
	return slash + 1;
}

char *zb_path_dir(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return zb_strdup("/");
	return zb_strndup(path, (size_t)(slash - path));
}

/* Bytes of one character: `?` must not stop in the middle of one. */
static size_t one_char(const char *s, size_t n)
{
	size_t i = 1;

	while (i < n && ((unsigned char)s[i] & 0xC0) == 0x80)
		i++;
	return i;
}

/* Does one component fit @pat, with `*` and `?`? */
static bool piece_fits(const struct piece *pat, const struct piece *c)
{
	size_t p = 0, s = 0, star = SIZE_MAX, back = 0;

	/* Nearly always decided by the first byte. */
	if (pat->s[0] != '*' && pat->s[0] != '?' && pat->s[0] != c->s[0])
		return false;

	while (s < c->n) {
		if (p < pat->n && pat->s[p] == '*') {
			star = p++;
			back = s;
		} else if (p < pat->n && pat->s[p] == '?') {
			p++;
			s += one_char(c->s + s, c->n - s);
		} else if (p < pat->n && pat->s[p] == c->s[s]) {
			p++;
			s++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			s = ++back;
		} else {
			return false;
		}
	}
	while (p < pat->n && pat->s[p] == '*')
		p++;
	return p == pat->n;
}

/* Components that @pattern and @path begin with alike, as bytes. Patterns of
 * one scope mostly share a long one, and most paths are asked about all. */
static size_t common(const char *pattern, const char *path)
{
	size_t n = 0, i = 0;

	while (pattern[i] && pattern[i] == path[i] && pattern[i] != '*' &&
	       pattern[i] != '?') {
		if (pattern[i] == '/')
			n = i;
		i++;
	}
	return n;
}

bool zb_pattern_match(const char *pattern, const char *path)
{
	size_t skip = common(pattern, path);
	const char *p = pattern + skip, *s = path + skip;
	const char *star = NULL, *back = NULL; /* behind the last `**` */
	struct piece pat, c;

	for (;;) {
		if (!next_piece(&p, &pat))
			return true; /* all of it fitted: this or an ancestor */
		if (is_any_depth(&pat)) {
			star = p;
			back = s;
			continue;
		}
		if (!next_piece(&s, &c))
			return false;
		if (piece_fits(&pat, &c))
			continue;
		if (!star || !next_piece(&back, &c))
			return false;
		p = star;
		s = back;
	}
}

bool zb_pattern_touches(const char *pattern, const char *dir)
{
	struct piece pat, c;

	for (;;) {
		if (!next_piece(&pattern, &pat))
			return true;
		if (is_any_depth(&pat) || !next_piece(&dir, &c))
			return true;
		if (!piece_fits(&pat, &c))
			return false;
	}
}

/* All the ways to be in the middle of a match, as a set: bit i says that the
 * first i components of the pattern have been used up. The bit behind the last
 * says that all has matched, and stays. */

#define MAX_PIECES 62

struct steps {
	struct piece v[MAX_PIECES];
	unsigned n;
};

static bool read_steps(const char *pattern, struct steps *out)
{
	struct piece c;

	out->n = 0;
	while (next_piece(&pattern, &c)) {
		if (out->n == MAX_PIECES)
			return false;
		out->v[out->n++] = c;
	}
	/* What stands for "and all below" says nothing new. */
	while (out->n && is_any_depth(&out->v[out->n - 1]))
		out->n--;
	return true;
}

/* `**` may also stand for nothing. */
static uint64_t widen(const struct steps *s, uint64_t set)
{
	for (unsigned i = 0; i < s->n; i++)
		if (set >> i & 1 && is_any_depth(&s->v[i]))
			set |= 2ull << i;
	return set;
}

/* What @c does to the set; without @any, only by components that name it. */
static uint64_t advance(const struct steps *s, uint64_t set,
			const struct piece *c, bool any)
{
	uint64_t next = set & 1ull << s->n;

	for (unsigned i = 0; i < s->n; i++) {
		if (!(set >> i & 1))
			continue;
		if (!is_any_depth(&s->v[i]))
			next |= (uint64_t)piece_fits(&s->v[i], c) << (i + 1);
		else if (any)
			next |= 1ull << i;
	}
	return widen(s, next);
}

static uint64_t state_at(const struct steps *s, const char *path)
{
	uint64_t set = widen(s, 1);
	struct piece c;

	while (set && next_piece(&path, &c))
		set = advance(s, set, &c, true);
	return set;
}

bool zb_pattern_alike(const char *pattern, const char *a, const char *b)
{
	struct steps s;

	return read_steps(pattern, &s) && state_at(&s, a) == state_at(&s, b);
}

bool zb_pattern_leads(const char *pattern, const char *path)
{
	uint64_t set;
	struct piece c = {0}, after;
	struct steps s;

	if (!read_steps(pattern, &s))
		return true;
	set = widen(&s, 1);
	if (!next_piece(&path, &c))
		return false;
	while (next_piece(&path, &after)) {
		set = advance(&s, set, &c, true);
		c = after;
	}
	return advance(&s, set, &c, false);
}

/* Cut what some file systems do not see at the end of a component. */
static size_t trim(const char *out, size_t start, size_t end)
{
	size_t n = end;

	while (n > start && (out[n - 1] == '.' || out[n - 1] == ' '))
		n--;
	return n == start ? end : n;
}

/* Letters that full case folding takes for several. */
static const struct {
	uint32_t cp;
	const char *text;
} several[] = {
	{0xdf, "ss"},	 {0x1e9e, "ss"}, {0xfb00, "ff"},
	{0xfb01, "fi"},	 {0xfb02, "fl"}, {0xfb03, "ffi"},
	{0xfb04, "ffl"}, {0xfb05, "st"}, {0xfb06, "st"},
};

/* One character that is not ASCII. Return: bytes written, or -1. */
static int fold_one(const char *s, size_t n, unsigned *used, char *out)
{
	struct zb_buf b = {0};
	uint32_t cp;
	int len;

	*used = zb_utf8_next(s, n, &cp);
	if (!*used) {
		*used = 1;
		*out = *s;
		return 1;
	}
	if (zb_is_hazard(cp))
		return 0;
	for (size_t i = 0; i < ZB_ARRAY_LEN(several); i++)
		if (several[i].cp == cp) {
			len = (int)strlen(several[i].text);
			memcpy(out, several[i].text, (size_t)len);
			return len;
		}
	if (zb_utf8_add(&b, zb_fold(cp)))
		return -1;
	len = (int)b.len;
	memcpy(out, b.data, b.len);
	zb_buf_done(&b);
	return len;
}

/* One component of @n bytes, added to @out at *@o. One of which nothing would
 * be left stays as it is: it is a name, and not none. */
static bool fold_name(const char *s, size_t n, char *out, size_t *o)
{
	size_t start = *o;
	unsigned used;

	for (size_t i = 0; i < n; i += used) {
		unsigned char ch = (unsigned char)s[i];
		int len = 1;

		used = 1;
		if (*o + 8 >= ZB_PATH_FOLD_MAX)
			return false;
		if (ch < 0x80)
			out[*o] =
				(char)(ch >= 'A' && ch <= 'Z' ? ch | 0x20 : ch);
		else
			len = fold_one(s + i, n - i, &used, out + *o);
		if (len < 0)
			return false;
		*o += (size_t)len;
	}
	*o = trim(out, start, *o);
	if (*o > start || !n)
		return true;
	if (start + n + 8 >= ZB_PATH_FOLD_MAX)
		return false;
	memcpy(out + start, s, n);
	*o = start + n;
	return true;
}

bool zb_path_fold(const char *path, char *out)
{
	size_t o = 0;

	for (;; path++) {
		size_t n = strcspn(path, "/");

		if (!fold_name(path, n, out, &o) || o + 2 > ZB_PATH_FOLD_MAX)
			return false;
		path += n;
		if (!*path)
			break;
		out[o++] = '/';
	}
	out[o] = '\0';
	return true;
}

bool zb_pattern_is_glob(const char *s)
{
	return strpbrk(s, "*?") != NULL;
}
