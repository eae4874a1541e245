/* filter.h - the seccomp programs that mkfilter assembled, as data.
 *
 * What is watched is watched.def; what passes allowed.def; everything else is
 * ENOSYS. One program a mode: which opens and existence checks are seen. */
#ifndef ZB_FILTER_H
#define ZB_FILTER_H

#include "ops.h"

#include <linux/filter.h>
#include <stddef.h>

struct zb_filter {
	const struct sock_filter *insn;
	size_t n;
};

/* The program of this machine for @mode; with @every_open `writes` is as
 * `open` (some place is carved or brokered: every open must be decided). */
struct zb_filter zb_filter(enum zb_ledger_mode mode, bool every_open);

/* By architecture's name ("x86_64", "aarch64"); @n is 0 for another. */
struct zb_filter zb_filter_for(const char *arch, enum zb_ledger_mode mode);

/* The number here of the call that stands at @i in watched.def; -1: this
 * architecture has none. */
int zb_watched_number(size_t i);

#endif
