/* text.h - text that strangers wrote: decoding, showing, cleaning, quoting.
 * Pure. All lengths are bytes; input need not be NUL-terminated. */
#ifndef ZB_TEXT_H
#define ZB_TEXT_H

#include "buf.h"

/* Decode one code point of UTF-8 at @s (at most @n bytes, @n > 0), strict:
 * no overlong forms, no surrogates, at most U+10FFFF (RFC 3629).
 * Return: bytes used (1-4) with *@cp set, or 0 for an invalid sequence. */
unsigned zb_utf8_next(const char *s, size_t n, uint32_t *cp);
/* Offset of the first invalid byte in @s, or @n if all of it is valid. */
size_t zb_utf8_check(const char *s, size_t n);
/* Append @cp (must be a scalar value) as UTF-8. */
int zb_utf8_add(struct zb_buf *out, uint32_t cp);

/* Blank as Go's unicode.IsSpace has it: \t \n \v \f \r space U+0085 U+00A0
 * and category Z (U+1680, U+2000-200A, U+2028, U+2029, U+202F, U+205F,
 * U+3000). The one function for submit, submit_slash and insert. */
bool zb_is_blank(uint32_t cp);
/* Bytes of leading blanks in valid UTF-8 @s. */
size_t zb_skip_blanks(const char *s, size_t n);

/* Would a terminal act on @cp, or hide it? C0 but \n and \t, DEL, C1, bidi
 * controls (U+061C U+200E U+200F U+202A-E U+2066-9), zero-width and invisible
 * ones (U+00AD U+034F U+115F-1160 U+17B4-5 U+180B-F U+200B-D U+2060-6F U+3164
 * U+FEFF U+FFA0 U+FFF0-B U+1D173-A), line separators U+2028 U+2029, tags and
 * the variation selectors with no use in text (U+E0000-E0FFF). */
bool zb_is_hazard(uint32_t cp);

/* Append @s for showing to a person on one line: hazards (and \n, \t, \r) as
 * \xNN or \u{N}, invalid bytes as \xNN, a backslash as \\. At most @max bytes
 * of output (0: no limit), then "...". */
int zb_text_escape(struct zb_buf *out, const char *s, size_t n, size_t max);
/* True if zb_text_escape() would change nothing. Only then may a command
 * with @s in it be shown for copying. */
bool zb_text_is_plain(const char *s, size_t n);

/* Append @s cleaned for people and models, as the protocol boundary does it:
 * terminal control sequences (ESC, C1 CSI/OSC/DCS... whole sequences, also
 * ones that break off; a string without end goes to the end of its line)
 * removed, plain SGR (ESC [ digits;:... m, but none that conceals text) kept
 * if @keep_sgr, \n and \t kept, other C0/DEL/C1 removed, bidi and zero-width
 * hazards shown as \u{N}. Cleaning twice is cleaning once.
 * @s must be valid UTF-8. *@changed (may be NULL) tells whether anything was.
 */
int zb_text_clean(struct zb_buf *out, const char *s, size_t n, bool keep_sgr,
		  bool *changed);

/* Append @s quoted for a POSIX shell, only if needed (safe set: letters,
 * digits, @%+=:,./_- and a leading ~/ kept unquoted). Return: 0, or ZB_EUSAGE
 * if @s is not plain (see zb_text_is_plain): then nothing was added. */
int zb_text_shell_quote(struct zb_buf *out, const char *s);

/* Fold @cp as Go's encoding/json compares keys: simple Unicode case folding,
 * so that K (U+212A) = k and U+017F = s. */
uint32_t zb_fold(uint32_t cp);
/* Equal under folding? Both valid UTF-8. */
bool zb_fold_equal(const char *a, size_t an, const char *b, size_t bn);

/* Edit distance, bounded: for "nearest known key" messages. */
unsigned zb_edit_distance(const char *a, const char *b);
/* The nearest of @words (NULL-terminated) to @word, or NULL if none is near
 * (distance over 3, or over half the length). */
const char *zb_nearest(const char *word, const char *const *words);

#endif
