/* inside.h - where a path leads inside a sandbox that nobody started: the plan
 * says what is mounted where, the host what lies in it. Pure; it is how a
 * question about tomorrow's start is put to the evaluator in its own terms. */
#ifndef ZB_INSIDE_H
#define ZB_INSIDE_H

#include "plan.h"

/* @path is canonical as far as it exists, with the rest as written. Heap. */
struct zb_inside {
	char *path;
	bool exists, is_dir;
	bool is_link; /* the last component is one, and was not followed */
	bool no_dir;  /* "NAME/", and NAME is no directory: ENOTDIR */
	bool magic;   /* through /proc: only a process inside could tell */
};

/* Follow absolute @path ("." and ".." may stand in it) through the links that
 * the sandbox would have, the last one only with @follow. @look as in struct
 * zb_facts. What only a running process has (its descriptors) is not there.
 * Return: 0 or ZB_ELIMIT. */
int zb_inside(const struct zb_plan *plan, const char *path, bool follow,
	      void (*look)(void *ctx, const char *path,
			   struct zb_path_fact *out),
	      void *ctx, struct zb_inside *out);
void zb_inside_done(struct zb_inside *in);

#endif
