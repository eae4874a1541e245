/* bwrap_args.h - plan to bubblewrap arguments. Pure; built everywhere. */
#ifndef ZB_BWRAP_ARGS_H
#define ZB_BWRAP_ARGS_H

#include "backend.h"

/* bwrap itself stops at 9000 arguments; we stop before it, with a reason. */
#define ZB_BWRAP_ARGS_MAX 8000

/* A file whose content goes to bwrap on a descriptor: argument @arg of the
 * list is the place for the descriptor's number ("FD" until it is known), the
 * one two before it is the file's mode. What is read from the descriptor is
 * @content, or the host's file @source. */
struct zb_bwrap_data {
	size_t arg;
	char *content;
	size_t len;
	char *source;
};

/* Arguments in order, for `bwrap --args FD` (each NUL-terminated there); no
 * environment values among them. Namespaces, mounts, capability drop, cwd;
 * not the command. */
struct zb_bwrap_args {
	struct zb_strv args;
	struct zb_bwrap_data *data;
	size_t n_data;
};

/* Which parts of the floor the arguments build. For programs of the escape
 * suite that have one taken out (layers.h); shipped code uses all. Without
 * @mounts the host's own tree stands there, writable. */
struct zb_bwrap_layers {
	bool mounts, netns, caps;
};

/* Every layer. Options are those that bwrap 0.6 knows.
 *
 * Sources must exist when bwrap runs, and mount points inside a bound place
 * (HOME, data/, a grant) must have been made by the caller: bwrap would make
 * them on the host. The same holds for a ZB_PLACE_LINK inside a bound place,
 * for which nothing is emitted.
 *
 * Return: 0, ZB_EUNSUPPORTED for a place bwrap cannot express (named),
 * ZB_ELIMIT for a plan of too many places, or out of memory. */
int zb_bwrap_args(struct zb_bwrap_args *out, const struct zb_plan *plan,
		  struct zb_error *err);
int zb_bwrap_args_layered(struct zb_bwrap_args *out, const struct zb_plan *plan,
			  const struct zb_bwrap_layers *layers,
			  struct zb_error *err);
void zb_bwrap_args_done(struct zb_bwrap_args *a);

/* The backend's render: arguments one a line, then Landlock rules, then which
 * seccomp mode; what the golden files show. */
int zb_bwrap_render(const struct zb_plan *plan, struct zb_buf *out,
		    struct zb_error *err);

/* The backend's rules: see enforce.h. */
int zb_bwrap_rules(const struct zb_plan *plan, struct zb_rule_status **out,
		   size_t *n, struct zb_error *err);

/* What the filter makes of the system call @name. */
enum zb_call_fate zb_bwrap_call(const char *name);

#endif
