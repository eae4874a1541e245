/* cgroup.h - a control group for one sandbox, where this process may make one:
 * a hard stop for memory and a brake for processes, beside the measuring of
 * limits.c. Where none is delegated there is none, and measuring is all. */
#ifndef ZB_CGROUP_H
#define ZB_CGROUP_H

#include "plan.h"

struct zb_cgroup {
	int parent, dir; /* -1: none */
	char name[48];
};

#define ZB_CGROUP_NONE                                                         \
	(struct zb_cgroup)                                                     \
	{                                                                      \
		.parent = -1, .dir = -1                                        \
	}

/* Make one with @plan's limits. @out is ZB_CGROUP_NONE where that is not
 * possible or nothing is limited. Removes empty ones that a killed supervisor
 * left. Main thread only. */
void zb_cgroup_make(struct zb_cgroup *out, const struct zb_plan *plan);
/* Could zb_cgroup_make() make one? */
bool zb_cgroup_delegated(void);
/* Did the kernel kill for want of memory in it? */
bool zb_cgroup_out_of_memory(const struct zb_cgroup *c);
/* Remove it; its processes are gone. */
void zb_cgroup_done(struct zb_cgroup *c);

#endif
