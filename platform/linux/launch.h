/* launch.h - one confined start: bwrap, zotbox-stage, their handshake. What
 * the driver runs an extension with, and the probe a self test: one path. */
#ifndef ZB_LAUNCH_H
#define ZB_LAUNCH_H

#include "backend.h"
#include "platform/linux/cgroup.h"
#include "platform/linux/stage.h"

#include <stdint.h>

/* How long bwrap and the stage may take, all in all. */
#define ZB_LAUNCH_MS 10000

/* -1 (descriptors) and 0 (processes) where absent. The handshake's phases:
 * zb_launch_begin() returns when bwrap is at work, which takes the longest;
 * zb_launch_ready() with the stage confined and waiting; zb_launch_go() lets
 * it start the program, so somebody must answer the listener by then. */
struct zb_launch {
	int ctrl;     /* our end of the control socket */
	int listener; /* -1 without the seccomp layer */
	int root;     /* O_PATH of the sandbox's / */
	int messages; /* what bwrap says on stderr */
	int bwrap;    /* our child */
	int stage;    /* process 1 inside, as we see it */
	int first;    /* the program's first process; 0 before go */
	int stage_pidfd, first_pidfd;
	int64_t deadline; /* monotonic ms */
	struct zb_cgroup cgroup;
};

#define ZB_LAUNCH_NONE                                                         \
	(struct zb_launch)                                                     \
	{                                                                      \
		.ctrl = -1, .listener = -1, .root = -1, .messages = -1,        \
		.stage_pidfd = -1, .first_pidfd = -1, .cgroup = {              \
			.parent = -1,                                          \
			.dir = -1                                              \
		}                                                              \
	}

/* Return: 0; ZB_EUNSUPPORTED when bwrap could not be started; ZB_EPOLICY when
 * a place was swapped; ZB_ESYS. Nothing is left behind on failure. Main thread
 * only (--die-with-parent is about the thread). @stdio NULL: self test. */
int zb_launch_begin(struct zb_launch *out, const struct zb_plan *plan,
		    const struct zb_host *host, const int stdio[3],
		    struct zb_error *err);
/* Return: 0; ZB_EUNSUPPORTED when bwrap, Landlock or the listener did not
 * work (their words in @err); ZB_EPOLICY when a place was swapped; ZB_ESYS.
 * On failure the caller still owns @l. */
int zb_launch_ready(struct zb_launch *l, struct zb_error *err);
/* Start the program and wait until execve worked. On failure the caller
 * still owns @l. */
int zb_launch_go(struct zb_launch *l, struct zb_error *err);
/* Next message: 0 and *@msg, or an error (also: closed, too late). */
int zb_launch_receive(struct zb_launch *l, struct zb_stage_msg *msg,
		      struct zb_error *err);
/* End everything now; does not wait. Callable from any thread, twice. */
void zb_launch_kill(const struct zb_launch *l);
/* Wait (a bounded time after a kill) until process 1, the last of its
 * namespace, is gone, and collect bwrap. */
void zb_launch_wait(struct zb_launch *l);
/* Kill, wait, close what is still open. */
void zb_launch_done(struct zb_launch *l);

/* The embedded program. */
extern const unsigned char zb_stage_image[], zb_stage_image_end[];

/* CLOCK_MONOTONIC in milliseconds. */
int64_t zb_monotonic_ms(void);

#endif
