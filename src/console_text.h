/* console_text.h - what reached the agent or the user, told to a person. Pure.
 *
 * Every line begins with [EXT], so that nothing an extension says can pass for
 * a line of the console or of another extension. */
#ifndef ZB_CONSOLE_TEXT_H
#define ZB_CONSOLE_TEXT_H

#include "buf.h"
#include "console_panel.h"

#define ZB_CONSOLE_TEXT_MAX (64u << 10) /* bytes of one thing; then cut */

/* Append whole lines for @json, an object as `H: EXT TYPE JSON` has it. No
 * character of it acts on a terminal; colours are the console's own, and only
 * if @colour. Return: 0 or ZB_ELIMIT. */
int zb_console_text(struct zb_buf *out, const char *ext, const char *type,
		    const char *json, size_t len, bool colour);
/* Append lines of text that is no frame, likewise: [@ext] @text. */
int zb_console_lines(struct zb_buf *out, const char *ext, const char *text,
		     size_t n, bool colour);
/* Append @lines, what one of these made for @ext, so that no row of a terminal
 * of @cols columns begins with what follows a full one: each begins with [EXT],
 * or, where there is no room for that, with blanks. */
int zb_console_rows(struct zb_buf *out, const char *ext, const char *lines,
		    size_t n, unsigned cols, zb_width *width);

#endif
