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
	size_t n = strlen(dir);

	if (n == 1 && dir[0] == '/')
		return path[0] == '/';
	return !strncmp(path, dir, n) && (path[n] == '\0' || path[n] == '/');
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

bool zb_pattern_is_glob(const char *s)
{
	return strpbrk(s, "*?") != NULL;
}
