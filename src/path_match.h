/* path_match.h - paths as text, and the patterns of scope files. Pure. */
#ifndef ZB_PATH_MATCH_H
#define ZB_PATH_MATCH_H

#include "buf.h"

/* Lexically canonical: absolute, no ".", "..", "//", trailing "/". ".." at
 * the root stays at the root. @base (absolute) is put before a relative
 * @path. Return: heap string or NULL (out of memory, @base missing). */
char *zb_path_join(const char *base, const char *path);
/* Is @path @dir itself or below it (component boundary)? Both canonical. */
bool zb_path_below(const char *path, const char *dir);
/* Last component, pointer into @path; "/" for the root. */
const char *zb_path_name(const char *path);
/* Heap copy of all but the last component. */
char *zb_path_dir(const char *path);

/* Match canonical @path against @pattern: absolute, `*` and `?` inside one
 * component, `**` as a whole component for any number of components (also
 * none). A pattern also matches everything below what it matches. */
bool zb_pattern_match(const char *pattern, const char *path);
/* Could @pattern match something at or below @dir? */
bool zb_pattern_touches(const char *pattern, const char *dir);
/* Is what lies below @a and what lies below @b matched alike: for every name
 * DEEPER, "@a/DEEPER" exactly when "@b/DEEPER"? Then a directory may go from
 * the one name to the other without any name in it gaining or losing the
 * match. False also where that is too much work to tell. */
bool zb_pattern_alike(const char *pattern, const char *a, const char *b);
/* Does the last name of @path count in some match of @pattern at or below
 * @path, be it not as one of many under `**`? Whoever makes a link of that name
 * makes names below it mean others. */
bool zb_pattern_leads(const char *pattern, const char *path);
/* @path or pattern as a file system that is careless about names may take it:
 * letters in one case, invisible characters gone, dots and blanks at the end of
 * a component too. @out has room for ZB_PATH_FOLD_MAX bytes, enough for any
 * path. Return: false if it is not, or memory ran out. */
#define ZB_PATH_FOLD_MAX 8192
bool zb_path_fold(const char *path, char *out);
/* Has it * or ? ? */
bool zb_pattern_is_glob(const char *s);

#endif
