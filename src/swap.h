/* swap.h - putting new files into the place of an installed extension: whole
 * or not at all, whenever it is killed. Effects.
 *
 * An extension is a directory and three files of its box that describe it. They
 * cannot be replaced by one system call, so first a journal, zotbox/NAME/swap,
 * appears by one rename, with what was there; while it is there, whatever else
 * is there, the old state is the one that counts, and whoever comes next (a
 * command, a start) restores it. It goes by one rename: that is the update. */
#ifndef ZB_SWAP_H
#define ZB_SWAP_H

#include "staging.h"

/* The lock of @name is held exclusively. @new_ext takes the place of
 * extensions/@name, and of the files in @new_box each that is there the place
 * of the one in the box: manifest.json, lock.json, scope.json. Both lie in the
 * stage @st, which has the old directory afterwards. On failure the old state
 * is there again. */
int zb_swap(const struct zb_store *s, const struct zb_staging *st,
	    const char *name, const char *new_ext, const char *new_box,
	    struct zb_error *err);

/* Is there a journal? */
bool zb_is_swapping(const struct zb_store *s, const char *name);
/* Restore the old state, if there is a journal; the lock is held as above. */
int zb_undo_swap(const struct zb_store *s, const char *name,
		 struct zb_error *err);
/* The same for a start, which holds no lock: takes it, waits for an update
 * that is under way. Quick if there is no journal. */
int zb_settle_swap(const struct zb_store *s, const char *name,
		   struct zb_error *err);

#endif
