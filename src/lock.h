/* lock.h - lock.json: what was installed, and whether it still is. Effects. */
#ifndef ZB_LOCK_H
#define ZB_LOCK_H

#include "store.h"

struct zb_lock {
	char *source;	 /* path or URL as given */
	char *commit;	 /* git commit or NULL */
	char *tree;	 /* hash over all files */
	char *policy;	 /* "strict", "standard", a path */
	char *installed; /* RFC 3339 */
	/* In the byte order of their paths: relative path, mode (exec bit),
	 * kind, SHA-256 hex. */
	struct zb_lock_file {
		char *path;
		char kind; /* 'f' file, 'x' executable file, 'l' symlink */
		/* Of the content; of a link its text. */
		char sha256[65];
	} * files;
	size_t n_files;
};

/* Hash the tree below @dir. extension.json itself is left out, since zot's own
 * enable and disable rewrite it: the shipped manifest @shipped is hashed in its
 * place. A .git directory at the top is none of it. Links are not followed.
 * Bounded: 100 000 files, 8 GiB, 64 directories deep. ZB_EPOLICY for what is
 * neither file, directory nor link. Fills files and tree, and nothing else. */
int zb_lock_make(struct zb_lock *out, const char *dir, const char *shipped,
		 struct zb_error *err);
/* The same for a directory that was not installed: everything below it counts,
 * extension.json as it is, and .git too. */
int zb_lock_make_whole(struct zb_lock *out, const char *dir,
		       struct zb_error *err);
int zb_lock_write(const struct zb_lock *l, const char *path,
		  struct zb_error *err);
/* ZB_EUSAGE for a file that is no lock, or whose tree hash is not that of its
 * files. */
int zb_lock_read(struct zb_lock *out, const char *path, struct zb_error *err);
/* Compare: names that were changed, added, removed (with that word before
 * each) go to @diff, escaped, at most 100 and then "and N more". Return 0 also
 * when they differ; errors are read errors. */
int zb_lock_compare(const struct zb_lock *l, const char *dir,
		    const char *shipped, struct zb_strv *diff,
		    struct zb_error *err);
/* The same of two lists; nothing is added if they are equal. 0 or ZB_ELIMIT. */
int zb_lock_diff(const struct zb_lock *was, const struct zb_lock *now,
		 struct zb_strv *diff);
void zb_lock_done(struct zb_lock *l);

#endif
