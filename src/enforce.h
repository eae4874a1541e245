/* enforce.h - walk the rules of a plan and have each system say how it
 * enforces them: what `ext doctor` shows, and what refuses a start.
 * Pure. The walk is one for all systems, the judgement is the backend's. */
#ifndef ZB_ENFORCE_H
#define ZB_ENFORCE_H

#include "backend.h"

enum zb_rule_kind {
	ZB_RULE_READ,
	ZB_RULE_WRITE,
	ZB_RULE_EXEC,
	ZB_RULE_DENY,
	ZB_RULE_STATE, /* fs.state "beside" */
	ZB_RULE_CONNECT,
	ZB_RULE_LISTEN,
	ZB_RULE_UNIX,
	ZB_RULE_ENV,
	ZB_RULE_PROTOCOL,
	ZB_RULE_LIMIT,
	ZB_RULE_REST, /* whatever no rule names */
};

/* One rule as a judge sees it. */
struct zb_rule_view {
	enum zb_rule_kind kind;
	const char *value; /* as written; a deny as resolved */
	const struct zb_origin *origin;
	const struct zb_place *place; /* READ WRITE EXEC: one of the places it
					 made; NULL: nothing is there */
	const struct zb_deny *deny;
	enum zb_limit limit;
};

/* Say how, and append by what (or why not, and what to do instead) to @by.
 * Not asked for ENV and PROTOCOL, which the supervisor enforces everywhere. */
typedef enum zb_enforced zb_judge(const struct zb_plan *plan,
				  const struct zb_rule_view *rule,
				  struct zb_buf *by);

/* Judge every rule of @plan. A rule that made several places is as strong as
 * the weakest of them. @system names it in the message ("on macOS").
 *
 * Return: 0; ZB_EUNSUPPORTED if some rule cannot be enforced, the first of
 * them named, and @out is filled all the same; ZB_ELIMIT, @out untouched. */
int zb_enforce_walk(const struct zb_plan *plan, const char *system,
		    zb_judge *judge, struct zb_rule_status **out, size_t *n,
		    struct zb_error *err);
void zb_rule_statuses_done(struct zb_rule_status *v, size_t n);

/* How limits are enforced on a system that has rlimits. */
enum zb_enforced zb_enforce_limit(enum zb_limit limit, struct zb_buf *by);

/* "floor" "broker" "mediator" "supervisor" "not enforceable", static. */
const char *zb_enforced_name(enum zb_enforced how);

#endif
