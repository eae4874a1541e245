/* json_edit.h - change one top-level member of a JSON object's text; every
 * other byte stays. Pure. */
#ifndef ZB_JSON_EDIT_H
#define ZB_JSON_EDIT_H

#include "buf.h"

/* Append @text to @out with member @key set to the JSON @value (raw text):
 * replaced where it stands, else added as the first member, in a line of its
 * own if the object is written in lines. ZB_EUSAGE if @text is not an object.
 */
int zb_json_set(struct zb_buf *out, const char *text, size_t len,
		const char *key, const char *value, struct zb_error *err);

/* Set the boolean member @key, absent meaning true, so that setting it back
 * gives the bytes that were there before. ZB_EUSAGE as above, or if the member
 * is no boolean. */
int zb_json_toggle(struct zb_buf *out, const char *text, size_t len,
		   const char *key, bool on, struct zb_error *err);

#endif
