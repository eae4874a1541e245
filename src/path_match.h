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
/* Has it * or ? ? */
bool zb_pattern_is_glob(const char *s);

#endif
