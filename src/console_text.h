/* console_text.h - what reached the agent or the user, told to a person. Pure.
 *
 * Every line begins with [EXT], so that nothing an extension says can pass for
 * a line of the console or of another extension. */
#ifndef ZB_CONSOLE_TEXT_H
#define ZB_CONSOLE_TEXT_H

#include "buf.h"

#define ZB_CONSOLE_TEXT_MAX (64u << 10) /* bytes of one thing; then cut */

/* Append whole lines for @json, an object as `H: EXT TYPE JSON` has it. No
 * character of it acts on a terminal; colours are the console's own, and only
 * if @colour. Return: 0 or ZB_ELIMIT. */
int zb_console_text(struct zb_buf *out, const char *ext, const char *type,
		    const char *json, size_t len, bool colour);
/* Append lines of text that is no frame, likewise: [@ext] @text. */
int zb_console_lines(struct zb_buf *out, const char *ext, const char *text,
		     size_t n, bool colour);

#endif
