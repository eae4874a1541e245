/* driver.h - the acts of the Linux backend; backend.c is their table. */
#ifndef ZB_DRIVER_H
#define ZB_DRIVER_H

#include "backend.h"

/* Contracts as of the members of struct zb_backend (backend.h). */
int zb_driver_spawn(const struct zb_plan *plan, const struct zb_host *host,
		    const int stdio[3], const struct zb_spawn_options *opt,
		    struct zb_proc **out, struct zb_error *err);
void zb_driver_stop(struct zb_proc *p);
int zb_driver_pid(const struct zb_proc *p);
int zb_driver_signal(struct zb_proc *p, int signo, struct zb_error *err);
void zb_driver_reap(struct zb_proc *p, struct zb_exit *out);
/* How many calls the broker was asked about so far: for the benchmarks. */
uint64_t zb_driver_notifications(const struct zb_proc *p);

#endif
