/* code_diff.h - what is different between two trees, for a person to read.
 * Effects: reads the files that differ. */
#ifndef ZB_CODE_DIFF_H
#define ZB_CODE_DIFF_H

#include "lock.h"

/* One of the two: its list, where its files are, and the file that stands for
 * its extension.json. */
struct zb_code_side {
	const struct zb_lock *lock;
	const char *dir, *manifest;
};

struct zb_code_diff {
	/* One line a file, escaped, sorted by path: "changed main.py: 12 lines
	 * new, 3 gone; may be executed now". At most ZB_DIFF_LINES, then
	 * "and N more". */
	struct zb_strv lines;
	size_t added, removed, changed;
};
#define ZB_DIFF_LINES 200
/* Larger files are told by their size. */
#define ZB_DIFF_BYTES_MAX ((size_t)1 << 20)

/* Lines are compared without their order. A file that cannot be read any more
 * is told without numbers. 0 or ZB_ELIMIT. */
int zb_code_diff(struct zb_code_diff *out, const struct zb_code_side *was,
		 const struct zb_code_side *now, struct zb_error *err);
void zb_code_diff_done(struct zb_code_diff *d);

#endif
