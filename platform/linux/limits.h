/* limits.h - what a sandbox uses, measured from outside: memory and processes.
 *
 * Memory is estimated high and cheaply (resident pages and private tmpfs
 * mounts); when that is over the limit, and now and then anyway, it is
 * measured: proportional pages, swapped ones, and tmpfs files also where nobody
 * has mapped them. */
#ifndef ZB_LIMITS_H
#define ZB_LIMITS_H

#include "plan.h"

#define ZB_LIMITS_TMPFS 3
/* So many threads are as much as a process: the kernel's own limit, which does
 * not hold for root. */
#define ZB_LIMITS_THREADS 16

struct zb_limits {
	struct zb_measure *measure;
	int proc;		       /* the sandbox's /proc, or -1 */
	int tmpfs[ZB_LIMITS_TMPFS];    /* O_PATH of its tmpfs mounts, or -1 */
	uint64_t memory, processes;    /* UINT64_MAX: none */
	uint64_t used, procs, threads; /* at the last look */
	bool exact;		       /* @used was measured */
	uint64_t grown;		       /* since the look before */
	int64_t at, apart;     /* monotonic ms: of it; since the one before */
	unsigned looks, still; /* all; those in a row without change */
};

#define ZB_LIMITS_NONE                                                         \
	(struct zb_limits)                                                     \
	{                                                                      \
		.proc = -1, .tmpfs = {-1, -1, -1}, .memory = UINT64_MAX,       \
		.processes = UINT64_MAX                                        \
	}

/* What was exceeded. */
enum zb_excess {
	ZB_WITHIN,
	ZB_OVER_MEMORY,
	ZB_OVER_PROCESSES,
	ZB_OVER_THREADS
};

/* @root: O_PATH of the sandbox's /, only looked at. Return: 0 or ZB_ESYS. */
int zb_limits_init(struct zb_limits *l, const struct zb_plan *plan, int root,
		   struct zb_error *err);
/* The sandbox must be dead. */
void zb_limits_done(struct zb_limits *l);
/* Look once: some 50 ms at most, whatever the sandbox does. */
enum zb_excess zb_limits_check(struct zb_limits *l);
/* Milliseconds until the next look is due, by how close it is and whether
 * anything moves; -1: nothing to watch. */
int zb_limits_interval(const struct zb_limits *l);

#endif
