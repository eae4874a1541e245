/* granted_file.h - granted.json of a box. Effects. */
#ifndef ZB_GRANTED_FILE_H
#define ZB_GRANTED_FILE_H

#include "granted.h"

#define ZB_GRANTED_FILE "granted.json"

/* What @box, the path of a directory, has; nothing if there is no such file.
 * ZB_EPOLICY: there is one that cannot be read, so nobody knows where a grant
 * should lead. */
int zb_granted_read(struct zb_granted *out, const char *box,
		    struct zb_error *err);
/* Replace it. */
int zb_granted_write(const struct zb_granted *g, const char *box,
		     struct zb_error *err);

#endif
