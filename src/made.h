/* made.h - directories of the user's that a grant has made at the start
 * ("fs.write": "${project}/out/") and that go at the end if they are still
 * empty. Effects. */
#ifndef ZB_MADE_H
#define ZB_MADE_H

#include "buf.h"

/* One of them: held from the start to the end, shared, by every instance. */
struct zb_made_dir {
	char *path;
	int fd;
	bool ours; /* it was not there before */
};
struct zb_made {
	struct zb_made_dir *v;
	size_t n;
};

/* Make each of @paths (canonical; its parent exists) that is not there yet, or
 * join in where another instance made it. No link is followed on the way.
 * Return: 0, ZB_ESYS, ZB_ELIMIT, or ZB_EPOLICY where something else stands
 * there; what was made is gone again then. */
int zb_made_make(struct zb_made *out, const struct zb_strv *paths,
		 struct zb_error *err);
/* Remove those that we made, are empty, and nobody else holds. */
void zb_made_done(struct zb_made *m);

#endif
