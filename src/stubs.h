/* stubs.h - mount points inside the private directories. Effects.
 *
 * What is mounted below HOME or on top of data/ needs a name there to be
 * mounted on, and the sandbox's own home/ and data/ are directories of the
 * host that the extension fills as it likes. So the names are made here,
 * beforehand, by a walk that follows nothing; bubblewrap then finds them. */
#ifndef ZB_STUBS_H
#define ZB_STUBS_H

#include "plan.h"

/* Make what @plan mounts inside home/ and data/ of @box (a canonical path),
 * and copy plan->data_copies into data/. Empty stubs of earlier starts that
 * @plan does not need are removed, unless another instance runs: removing one
 * would detach its mount.
 * @locks: descriptors above 2. The first holds the box shared until it is
 * closed, when the sandbox is gone; the second lets no instance that runs put
 * a link into home/ or data/, until it is closed, when the mounts are made.
 * Return: 0; ZB_EPOLICY naming what is in the way
 * (a link or a file where a directory must be, and so on), or that the box is
 * busy. */
int zb_stubs_make(const struct zb_plan *plan, const char *box, int locks[2],
		  struct zb_error *err);

#endif
