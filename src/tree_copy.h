/* tree_copy.h - copy an extension's files from a stranger's directory. Effects.
 *
 * Nothing is dereferenced: a link that stays inside is kept as a link, one
 * that leaves (absolute, through "..", through another link) is refused with
 * its name. Devices, sockets and FIFOs are refused. `.git` is left out at
 * every depth. Of the modes, what the owner may do and what others may read
 * and execute is kept, whatever the umask; nobody else may write, and
 * set-user-id and set-group-id bits are dropped. */
#ifndef ZB_TREE_COPY_H
#define ZB_TREE_COPY_H

#include "buf.h"

#include <signal.h>

struct zb_tree_copy {
	/* Not zero: stop at the next file (a signal handler sets it). */
	const volatile sig_atomic_t *stop;
	/* Called now and then with what was copied so far; may be NULL. */
	void (*progress)(void *ctx, uint64_t files, uint64_t bytes);
	void *ctx;
	/* Filled: */
	struct zb_strv warnings; /* dangling links, escaped */
	uint64_t files, bytes;
	bool git_left_out;
};

/* Most files and bytes that one extension may have. */
#define ZB_TREE_FILES_MAX 100000u
#define ZB_TREE_BYTES_MAX (8ull << 30)

/* Copy what is in @from into the empty directory @to. ZB_EPOLICY for what is
 * refused, ZB_ELIMIT over the maximum, ZB_ESYS otherwise (EINTR: stopped);
 * what was copied until then stays for the caller to remove. */
int zb_tree_copy(const char *from, const char *to, struct zb_tree_copy *c,
		 struct zb_error *err);

/* Judge @links, paths of links below @dir, as those of a copy: ZB_EPOLICY for
 * the first one that leaves @dir, a warning for what leads nowhere. */
int zb_tree_judge_links(const char *dir, const struct zb_strv *links,
			struct zb_strv *warnings, struct zb_error *err);

#endif
