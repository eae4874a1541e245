/* bwrap_args.h - plan to bubblewrap arguments. Pure; built everywhere. */
#ifndef ZB_BWRAP_ARGS_H
#define ZB_BWRAP_ARGS_H

#include "plan.h"

/* A file whose content goes to bwrap on a descriptor: argument @arg of the
 * list is the place for the descriptor's number. */
struct zb_bwrap_data {
	size_t arg;
	char *content;
	size_t len;
};

/* Arguments in order, for `bwrap --args FD` (each NUL-terminated there); no
 * environment values among them. Namespaces, mounts, capability drop, cwd;
 * not the command. */
struct zb_bwrap_args {
	struct zb_strv args;
	struct zb_bwrap_data *data;
	size_t n_data;
};

/* Return: 0, ZB_EUNSUPPORTED for a place bwrap cannot express, ZB_ELIMIT. */
int zb_bwrap_args(struct zb_bwrap_args *out, const struct zb_plan *plan,
		  struct zb_error *err);
void zb_bwrap_args_done(struct zb_bwrap_args *a);

/* The backend's render: arguments one a line, then Landlock rules, then which
 * seccomp mode; what `scope --effective` and the golden files show. */
int zb_bwrap_render(const struct zb_plan *plan, struct zb_buf *out,
		    struct zb_error *err);

#endif
