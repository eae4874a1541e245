/* evaluator.h - the one answer to "may it?". Enforcement, `why`, doctor and
 * the tests ask here. Pure. */
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
 * "@name" for an abstract socket; for env a name; for proto "VERB" or
 * "VERB:NAME"; for fs.rename ask once for each of the two names.
 * @place: index in plan->places when the caller knows it for certain (by
 * mount id), or -1: then it is found by path. */
struct zb_query {
	enum zb_op op;
	const char *target;
	int place;
	bool is_dir; /* the target is a directory */
	bool exists; /* it exists inside */
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
};

void zb_evaluate(const struct zb_plan *plan, const struct zb_query *q,
		 struct zb_answer *out);
void zb_answer_done(struct zb_answer *a);

/* Cheap form for the broker's hot path: no strings. */
enum zb_verdict zb_evaluate_fast(const struct zb_plan *plan,
				 const struct zb_query *q);

/* Is @path to be answered ENOENT without a record (runtime probes)? */
bool zb_plan_is_quiet(const struct zb_plan *plan, const char *path);

#endif
