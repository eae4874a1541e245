/* evaluator.h - the one answer to "may it?". Enforcement, the records of
 * refusals and the tests ask here. Pure. */
#ifndef ZB_EVALUATOR_H
#define ZB_EVALUATOR_H

#include "plan.h"

enum zb_verdict {
	ZB_DENY,
	ZB_ALLOW,	   /* the floor allows no more than this */
	ZB_ALLOW_BROKERED, /* only the broker's own act or descriptor */
};

/* @target: for fs.* the canonical path inside (resolved as far as it exists);
 * for net.connect/listen "HOST:PORT" or "[v6]:PORT"; for net.unix a path, or
 * "@name" for an abstract socket; for env a name; for proto "VERB",
 * "VERB:NAME" or "intercept:EVENT:PART"; for syscall its name; for limit
 * "NAME:AMOUNT" (sizes as in a scope file): is that much within it?
 * @place: index in plan->places when the caller knows it for certain (by
 * mount id), or -1: then it is found by path.
 *
 * fs.read of a directory asks for its list. An open for reading and writing
 * asks twice; of two allows the brokered one counts. fs.write is the content
 * of what exists; one that makes a file asks fs.create. fs.create of what
 * exists is allowed: the kernel says EEXIST. fs.rename asks once for each of
 * the two names; an absent name is judged as a creation, so ask fs.delete for
 * an old name that is not there. What is absent inside HOME, /tmp and the
 * directories made for the sandbox is denied with ENOENT for all but
 * creation: whether that is a refusal, the host's own disk says.
 *
 * A change is denied under every spelling that some file system takes for the
 * denied name (zb_path_fold()), since the directory may be looked at from
 * another system, or be one that folds. What is built in covers changes only,
 * and has no say in a place that was granted by the name that it closes.
 *
 * What exists inside may be listed, also where a deny covers it: names are
 * visible. Directories that exist inside only because something lies below them
 * show nothing else and are read-only. */
struct zb_query {
	enum zb_op op;
	const char *target;
	int place;
	bool is_dir;  /* the target is a directory */
	bool exists;  /* it exists inside. net.connect to loopback and net.unix:
		       something inside listens there */
	bool is_link; /* what comes to stand there is a symlink: names below it
			 will lead elsewhere */
};

/* Strings are heap; zb_answer_done() frees them. */
struct zb_answer {
	enum zb_verdict verdict;
	int place;  /* or -1 */
	char *rule; /* "strict.json: nothing grants fs.read below
		       /home/u", "standard.json: fs.deny **" */
	int err_no; /* what the floor would give (ENOENT, EACCES,
		       EROFS, EPERM, ENETUNREACH...) */
	enum zb_floor floor;
	char *grant_key;   /* NULL: cannot be granted */
	char *grant_value; /* as the user would write it (~/x) */
	char *why_not;	   /* why no grant would help, if none does */
	/* The line of policy that decided, the plan's; NULL: none did (nothing
	 * grants it, or it is built in). */
	const struct zb_origin *origin;
};

/* Always fills @out; when memory ran out, strings may be missing, the verdict
 * is right. */
void zb_evaluate(const struct zb_plan *plan, const struct zb_query *q,
		 struct zb_answer *out);
void zb_answer_done(struct zb_answer *a);

/* Cheap form for the broker's hot path: no strings. */
enum zb_verdict zb_evaluate_fast(const struct zb_plan *plan,
				 const struct zb_query *q);

/* May what stands at @from be called @to, be it a directory, and all in it stay
 * what it was? Not if a place of the plan stands in either, nor if a deny or a
 * pattern (of the place with index @place, -1: found by path) tells names below
 * the one from names below the other: then one that is denied could come to be
 * where it is not, or the other way round. The answer is the same both ways,
 * and asks nothing of the disk: whatever is made in the directory meanwhile,
 * and whatever it is that stands there, makes no difference.
 * Return: true, or false with *@why the deny, or NULL if it is none. */
bool zb_plan_may_move(const struct zb_plan *plan, int place, const char *from,
		      const char *to, const struct zb_deny **why);

/* Is the name @path, of the place with index @place, closed to changes by what
 * is built in? */
bool zb_plan_is_built_in(const struct zb_plan *plan, int place,
			 const char *path);

/* Is a refusal of @path to leave no record (runtime probes)? */
bool zb_plan_is_quiet(const struct zb_plan *plan, const char *path);

#endif
