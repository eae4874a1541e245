/* diagnose.h - why a sandbox cannot be made here: its steps, done one by one
 * by a child of ours, without bwrap. */
#ifndef ZB_DIAGNOSE_H
#define ZB_DIAGNOSE_H

#include <stdbool.h>

/* In the order in which they are done. */
enum zb_step {
	ZB_STEP_NONE, /* all of them work */
	ZB_STEP_USERNS,
	ZB_STEP_IDMAP,
	ZB_STEP_NAMESPACES, /* needs the capability just gained */
	ZB_STEP_MOUNT,
	ZB_STEP_LOOPBACK,
	ZB_STEP_PROC,
	ZB_STEP_UNKNOWN, /* the child could not be started or ended early */
};

/* Return: the first step that fails, with its errno in *@sys. Takes a few
 * milliseconds, changes nothing outside the child. */
enum zb_step zb_diagnose(int *sys);

#endif
