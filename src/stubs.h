/* stubs.h - mount points inside the private directories. Effects.
 *
 * What is mounted below HOME or on top of data/ needs a name there to be
 * mounted on, and the sandbox's own home/ and data/ are directories of the
 * host that the extension fills as it likes. So the names are made here,
 * beforehand, by a walk that follows nothing; bubblewrap then finds them. */
#ifndef ZB_STUBS_H
#define ZB_STUBS_H

#include "plan.h"

/* What is known of a box once its locks are held. */
struct zb_stubs_state {
	bool alone;	/* no other instance runs */
	bool held_home; /* another does, and has no loose HOME */
};

/* Lock @box (a canonical path) for a start, before its plan is made.
 * @locks: descriptors above 2. The first holds the box, shared with other
 * instances after zb_stubs_make(), until it is closed, when the sandbox is
 * gone; the second lets no instance that runs put a link into home/ or data/,
 * and no other start, until it is closed, when the mounts are made. Return: 0;
 * ZB_EPOLICY: the box is busy. */
int zb_stubs_lock(const char *box, int locks[2], struct zb_stubs_state *out,
		  struct zb_error *err);

/* Hold both exclusively, without waiting for long: nothing runs in @box, and
 * nothing is about to. ZB_EPOLICY: something does. */
int zb_stubs_own(const char *box, int locks[2], struct zb_error *err);

/* Make what @plan mounts inside home/ and data/ of @box, and copy
 * plan->data_copies into data/. Empty stubs of earlier starts that @plan does
 * not need are removed, unless another instance runs: removing one would
 * detach its mount. @locks and @state as zb_stubs_lock() gave them.
 *
 * Instances with a loose HOME (plan.h) and such as have carved places in it
 * exclude each other: with @state->held_home @plan may not have the one, and
 * beside instances that have it not the other.
 * Return: 0; ZB_EPOLICY naming what is in the way (a link or a file where a
 * directory must be, and so on), or what instance. */
int zb_stubs_make(const struct zb_plan *plan, const char *box,
		  const int locks[2], const struct zb_stubs_state *state,
		  struct zb_error *err);

#endif
