/* reach.h - looking at what a path of a grant holds on this machine. Effects:
 * reads directories, opens no file, follows no link below the path, crosses
 * no mount. */
#ifndef ZB_REACH_H
#define ZB_REACH_H

#include "ask.h"
#include "store.h"

/* Where counting is given up. */
#define ZB_REACH_FILES_MAX 200000u
#define ZB_REACH_MS_MAX	   1500

/* @value as a scope file has it ("~/x", "${home}/x", absolute); what depends on
 * the start (${project}) or is a pattern is ZB_REACH_UNKNOWN. What cannot be
 * read counts as far as it was read. 0 or ZB_ELIMIT. */
int zb_reach_look(struct zb_reach *out, const struct zb_store *store,
		  const char *value);

/* zb_ask_say() of @key and @value, with a look where it is a path. */
int zb_reach_ask(struct zb_ask *out, const struct zb_store *store,
		 const char *key, const char *value);

#endif
