/* appcontainer_reader.c - a small model of Windows' access checks, for tests.
 */
#include "appcontainer_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	bool allow;
	unsigned long mask;
	bool files, dirs, inherit_only;
	char *path;
};

/* Any other line: its first word, its strings. */
struct fact {
	char *line, *what, *a, *b;
};

struct ac {
	struct entry *entries;
	size_t n_entries;
	struct fact *facts;
	size_t n_facts;
};

/* "..." at *@s, unescaped; "C:\x" becomes /C:/x as plans have it. Heap. */
static char *take_string(const char **s)
{
	const char *c = *s;
	size_t n = 0;
	char *out = malloc(strlen(c) + 2);
	bool drive = c[0] == '"' && c[1] && c[2] == ':';

	if (!out || *c++ != '"') {
		free(out);
		return NULL;
	}
	if (drive)
		out[n++] = '/';
	for (; *c && *c != '"'; c++) {
		if (*c == '\\' && *++c != '"' && *c != '\\')
			break;
		out[n++] = drive && *c == '\\' ? '/' : *c;
	}
	if (*c != '"') {
		free(out);
		return NULL;
	}
	out[n] = '\0';
	*s = c + 1;
	return out;
}

static bool take_entry(struct ac *a, const char *s)
{
	struct entry *v = realloc(a->entries, (a->n_entries + 1) * sizeof(*v));
	char kind[8], flags[16];
	int used = 0;

	if (!v)
		return false;
	a->entries = v;
	v += a->n_entries;
	*v = (struct entry){0};
	if (sscanf(s, "ace %7s 0x%lx %15s %n", kind, &v->mask, flags, &used) !=
		    3 ||
	    !used)
		return false;
	v->allow = !strcmp(kind, "allow");
	if (!v->allow && strcmp(kind, "deny") != 0)
		return false;
	v->files = strstr(flags, "OI");
	v->dirs = strstr(flags, "CI");
	v->inherit_only = strstr(flags, "IO");
	s += used;
	v->path = take_string(&s);
	if (!v->path || *s)
		return false;
	a->n_entries++;
	return true;
}

static bool take_fact(struct ac *a, const char *s)
{
	static const char *const known[] = {
		"name",	       "sid",	       "lpac",	     "capability",
		"unsupported", "closed",       "moved",	     "stays",
		"hidden",      "system",       "exists",     "program",
		"cwd",	       "command-line", "env",	     "handles",
		"job",	       "ui-limits",    "mitigation", "flags",
		"verify",
	};
	struct fact *v = realloc(a->facts, (a->n_facts + 1) * sizeof(*v));
	size_t n = strcspn(s, " ");
	bool ok = false;

	if (!v)
		return false;
	a->facts = v;
	v += a->n_facts++;
	*v = (struct fact){.line = strdup(s), .what = strndup(s, n)};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		ok |= !strcmp(v->what, known[i]);
	s += n + (s[n] == ' ');
	if (*s == '"' && strcmp(v->what, "command-line") != 0) {
		v->a = take_string(&s);
		if (!v->a)
			return false;
		s += strspn(s, " ");
		if (*s == '"')
			v->b = take_string(&s);
		else if (*s)
			v->b = strdup(s);
	}
	return ok;
}

struct ac *ac_read(const char *text, char *why, size_t why_size)
{
	struct ac *a = calloc(1, sizeof(*a));

	while (a && *text) {
		size_t n = strcspn(text, "\n");
		char *line = strndup(text, n);
		bool ok = line &&
			  (!*line || *line == '#' ||
			   (!strncmp(line, "ace ", 4) ? take_entry(a, line)
						      : take_fact(a, line)));

		if (!ok) {
			snprintf(why, why_size, "not understood: %s",
				 line ? line : "");
			free(line);
			ac_free(a);
			return NULL;
		}
		free(line);
		text += n + (text[n] == '\n');
	}
	return a;
}

void ac_free(struct ac *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n_entries; i++)
		free(a->entries[i].path);
	for (size_t i = 0; i < a->n_facts; i++) {
		free(a->facts[i].line);
		free(a->facts[i].what);
		free(a->facts[i].a);
		free(a->facts[i].b);
	}
	free(a->entries);
	free(a->facts);
	free(a);
}

static bool at_or_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/');
}

/* Entries that stand on the first @n bytes of @path, as they hold for @path.
 * Denies of one object come before its allows. */
static void one_level(const struct ac *a, const char *path, size_t n,
		      bool is_dir, unsigned long *granted,
		      unsigned long *denied)
{
	bool itself = !path[n];

	for (int allow = 0; allow <= 1; allow++)
		for (size_t i = 0; i < a->n_entries; i++) {
			const struct entry *e = &a->entries[i];
			bool holds = itself   ? !e->inherit_only
				     : is_dir ? e->dirs
					      : e->files;

			if (e->allow != allow || !holds ||
			    strlen(e->path) != n || strncmp(e->path, path, n))
				continue;
			if (allow)
				*granted |= e->mask & ~*denied;
			else
				*denied |= e->mask & ~*granted;
		}
}

static bool has_right(const struct ac *a, const char *path, bool is_dir,
		      unsigned long right)
{
	/* What Windows itself gives to restricted packages below a system
	 * directory: FILE_GENERIC_READ | FILE_GENERIC_EXECUTE. */
	const unsigned long windows = 0x001200a9;
	unsigned long granted = 0, denied = 0;

	for (size_t n = strlen(path); n; n--)
		if (!path[n] || path[n] == '/')
			one_level(a, path, n, is_dir, &granted, &denied);
	if (ac_below(a, "system", path))
		granted |= windows & ~denied;
	return (granted & right) == right;
}

bool ac_decide(const struct ac *a, enum ac_act act, const char *path,
	       bool is_dir)
{
	static const unsigned long rights[] = {
		[AC_READ] = 0x1,   [AC_EXEC] = 0x20,	  [AC_WRITE] = 0x2,
		[AC_META] = 0x100, [AC_DELETE] = 0x10000,
	};
	const char *slash = strrchr(path, '/');
	char up[4096];

	if (at_or_below(path, "container-temp"))
		return strchr(path, '/') || act == AC_READ;
	snprintf(up, sizeof(up), "%.*s", (int)(slash - path), path);
	if (act == AC_CREATE)
		return has_right(a, up, true, is_dir ? 0x4 : 0x2);
	if (act == AC_DELETE && has_right(a, up, true, 0x40))
		return true;
	return has_right(a, path, is_dir, rights[act]);
}

bool ac_locate(const struct ac *a, const char *path, char *out, size_t out_size)
{
	const struct fact *best = NULL;

	for (size_t i = 0; i < a->n_facts; i++) {
		const struct fact *f = &a->facts[i];
		bool place = !strcmp(f->what, "moved") ||
			     !strcmp(f->what, "stays") ||
			     !strcmp(f->what, "hidden");

		if (place && at_or_below(path, f->a) &&
		    (!best || strlen(f->a) > strlen(best->a)))
			best = f;
	}
	if (best && !strcmp(best->what, "hidden"))
		return false;
	if (!best || !strcmp(best->what, "stays"))
		snprintf(out, out_size, "%s", path);
	else
		snprintf(out, out_size, "%s%s", best->b,
			 path + strlen(best->a));
	return true;
}

bool ac_below(const struct ac *a, const char *what, const char *path)
{
	for (size_t i = 0; i < a->n_facts; i++)
		if (!strcmp(a->facts[i].what, what) && a->facts[i].a &&
		    at_or_below(path, a->facts[i].a))
			return true;
	return false;
}

bool ac_has_line(const struct ac *a, const char *line)
{
	for (size_t i = 0; i < a->n_facts; i++)
		if (!strncmp(a->facts[i].line, line, strlen(line)))
			return true;
	return false;
}

const char *ac_capability(const struct ac *a, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < a->n_facts; i++) {
		const char *s = a->facts[i].line;

		if (strcmp(a->facts[i].what, "capability") != 0)
			continue;
		s += strlen("capability ");
		if (!strncmp(s, name, n) && s[n] == ' ')
			return s + n + 1;
	}
	return NULL;
}

/* The program's name: up to the next mark, or blank. */
static const char *split_first(const char *s, char *arg, size_t *n)
{
	if (*s == '"') {
		for (s++; *s && *s != '"';)
			arg[(*n)++] = *s++;
		return *s ? s + 1 : s;
	}
	while (*s && *s != ' ' && *s != '\t')
		arg[(*n)++] = *s++;
	return s;
}

static const char *split_next(const char *s, char *arg, size_t *n)
{
	bool quoted = false;

	while (*s && (quoted || (*s != ' ' && *s != '\t'))) {
		size_t slashes = strspn(s, "\\");

		s += slashes;
		if (*s != '"') {
			while (slashes--)
				arg[(*n)++] = '\\';
			if (*s && (quoted || (*s != ' ' && *s != '\t')))
				arg[(*n)++] = *s++;
			continue;
		}
		for (size_t i = 0; i < slashes / 2; i++)
			arg[(*n)++] = '\\';
		if (slashes % 2) {
			arg[(*n)++] = '"';
		} else if (quoted && s[1] == '"') {
			arg[(*n)++] = '"'; /* "" inside a quoted part */
			s++;
		} else {
			quoted = !quoted;
		}
		s++;
	}
	return s;
}

size_t ac_split(const char *cmd, char **out, size_t max)
{
	size_t count = 0;

	while (*cmd && count + 1 < max) {
		size_t n = 0;
		char *arg = malloc(strlen(cmd) + 1);

		if (!arg)
			break;
		cmd = count ? split_next(cmd, arg, &n)
			    : split_first(cmd, arg, &n);
		arg[n] = '\0';
		out[count++] = arg;
		cmd += strspn(cmd, " \t");
	}
	out[count] = NULL;
	return count;
}
