/* landlock_rules.h - plan to Landlock rules. Pure: own constants for the
 * access bits (linux/landlock.h values), so it builds everywhere.
 *
 * Landlock follows mounts upward: a rule on a directory holds for whatever is
 * mounted below it. So a place that has a carved place below it (brokered)
 * gets no READ_FILE, and a carved place none either. */
#ifndef ZB_LANDLOCK_RULES_H
#define ZB_LANDLOCK_RULES_H

#include "plan.h"

#define ZB_LL_EXECUTE	  (1ULL << 0)
#define ZB_LL_WRITE_FILE  (1ULL << 1)
#define ZB_LL_READ_FILE	  (1ULL << 2)
#define ZB_LL_READ_DIR	  (1ULL << 3)
#define ZB_LL_REMOVE_DIR  (1ULL << 4)
#define ZB_LL_REMOVE_FILE (1ULL << 5)
#define ZB_LL_MAKE_CHAR	  (1ULL << 6)
#define ZB_LL_MAKE_DIR	  (1ULL << 7)
#define ZB_LL_MAKE_REG	  (1ULL << 8)
#define ZB_LL_MAKE_SOCK	  (1ULL << 9)
#define ZB_LL_MAKE_FIFO	  (1ULL << 10)
#define ZB_LL_MAKE_BLOCK  (1ULL << 11)
#define ZB_LL_MAKE_SYM	  (1ULL << 12)
#define ZB_LL_REFER	  (1ULL << 13) /* ABI 2 */
#define ZB_LL_TRUNCATE	  (1ULL << 14) /* ABI 3 */
#define ZB_LL_IOCTL_DEV	  (1ULL << 15) /* ABI 5 */

struct zb_landlock_rule {
	char *path;
	uint64_t access;
	bool optional; /* skip if the path is not there inside */
};

/* Filesystem rights the ruleset handles at @abi (all that ABI knows). */
uint64_t zb_landlock_handled(int abi);
/* Rules for @plan at @abi; the caller frees with zb_landlock_rules_done(). */
int zb_landlock_rules(const struct zb_plan *plan, int abi,
		      struct zb_landlock_rule **out, size_t *n,
		      struct zb_error *err);
void zb_landlock_rules_done(struct zb_landlock_rule *rules, size_t n);

#endif
