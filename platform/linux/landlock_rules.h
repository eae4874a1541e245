/* landlock_rules.h - plan to Landlock rules. Pure: own constants for the
 * access bits (linux/landlock.h values), so it builds everywhere.
 *
 * Landlock follows mounts upward: a rule on a directory holds for whatever is
 * mounted below it. So a place that has a carved place below it (brokered)
 * gets no READ_FILE, and a carved place none either; if the carved one may be
 * written to, the place above it loses its write rights as well.
 *
 * execve(2) needs EXECUTE *and* READ_FILE, and no broker can hand out an
 * execve. Nothing starts, then, from a carved or brokered place, however its
 * rights read, but from places of their own inside it (a granted program, a
 * runtime, a private directory that is mounted once more).
 */
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

/* What a rule on something that is no directory may carry: the kernel answers
 * EINVAL to more. */
#define ZB_LL_FILE                                                             \
	(ZB_LL_EXECUTE | ZB_LL_WRITE_FILE | ZB_LL_READ_FILE | ZB_LL_TRUNCATE | \
	 ZB_LL_IOCTL_DEV)

/* @path must be opened (O_PATH) without following any symlink in it
 * (RESOLVE_NO_SYMLINKS): places have real names, and a link that an extension
 * left in its HOME must not lend a rule to what it points to. */
struct zb_landlock_rule {
	char *path;
	uint64_t access;
	bool is_dir;   /* open with O_DIRECTORY */
	bool optional; /* skip if the path is not there inside, or no such
			  kind of file, or a symlink is in the way */
};

/* Filesystem rights the ruleset handles at @abi (all that ABI knows); 0 for
 * an @abi below 1. */
uint64_t zb_landlock_handled(int abi);
/* Rules for @plan at @abi, in plan order; the caller frees with
 * zb_landlock_rules_done(). Return: 0, ZB_EUNSUPPORTED without Landlock,
 * ZB_ELIMIT. */
int zb_landlock_rules(const struct zb_plan *plan, int abi,
		      struct zb_landlock_rule **out, size_t *n,
		      struct zb_error *err);
void zb_landlock_rules_done(struct zb_landlock_rule *rules, size_t n);
/* Append the names of @access ("execute read_file"...), separated by blanks. */
int zb_landlock_names(uint64_t access, struct zb_buf *out);

#endif
