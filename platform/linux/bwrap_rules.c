/* bwrap_rules.c - how Linux enforces each rule of a plan. */
#include "bwrap_args.h"

#include "enforce.h"
#include "path_match.h"

static enum zb_enforced judge_place(const struct zb_rule_view *r,
				    struct zb_buf *by)
{
	const struct zb_place *p = r->place;

	if (!p) {
		zb_buf_adds(by, "mount (absent now, or shown by another rule)");
		return ZB_ENFORCED_FLOOR;
	}
	if (r->kind == ZB_RULE_EXEC && (p->carved || p->brokered)) {
		zb_buf_adds(by, "nothing can be executed from a place with "
				"carve-outs in it; name the programs");
		return ZB_NOT_ENFORCEABLE;
	}
	if (r->kind == ZB_RULE_WRITE && p->carved) {
		zb_buf_adds(by, "broker (it alone opens and changes names "
				"here), mount");
		return ZB_ENFORCED_BROKER;
	}
	if (p->carved) {
		zb_buf_adds(by, "broker (it alone opens here), mount");
		return ZB_ENFORCED_BROKER;
	}
	zb_buf_adds(by, "mount, Landlock");
	return ZB_ENFORCED_FLOOR;
}

/* A deny matters where something is granted. */
static enum zb_enforced judge_deny(const struct zb_plan *plan,
				   const struct zb_rule_view *r,
				   struct zb_buf *by)
{
	for (size_t i = 0; i < plan->n_places; i++) {
		const struct zb_place *p = &plan->places[i];

		if (!p->carved || !zb_pattern_touches(r->value, p->path))
			continue;
		zb_buf_adds(by, "broker (it alone opens there)");
		return ZB_ENFORCED_BROKER;
	}
	zb_buf_adds(by, "mount (nothing it covers is granted)");
	return ZB_ENFORCED_FLOOR;
}

static enum zb_enforced judge(const struct zb_plan *plan,
			      const struct zb_rule_view *r, struct zb_buf *by)
{
	switch (r->kind) {
	case ZB_RULE_READ:
	case ZB_RULE_WRITE:
	case ZB_RULE_EXEC:
		return judge_place(r, by);
	case ZB_RULE_DENY:
		return judge_deny(plan, r, by);
	case ZB_RULE_STATE:
		zb_buf_adds(by, "mount, Landlock");
		return ZB_ENFORCED_FLOOR;
	case ZB_RULE_CONNECT:
	case ZB_RULE_LISTEN:
	case ZB_RULE_UNIX:
		zb_buf_adds(by, "this version makes no connections for an "
				"extension: remove the rule");
		return ZB_NOT_ENFORCEABLE;
	case ZB_RULE_LIMIT:
		return zb_enforce_limit(r->limit, by);
	case ZB_RULE_ENV:
	case ZB_RULE_PROTOCOL: /* not asked for */
	case ZB_RULE_REST:
		break;
	}
	zb_buf_adds(by, "mount, Landlock, seccomp, empty network namespace");
	return ZB_ENFORCED_FLOOR;
}

int zb_bwrap_rules(const struct zb_plan *plan, struct zb_rule_status **out,
		   size_t *n, struct zb_error *err)
{
	return zb_enforce_walk(plan, "on Linux", judge, out, n, err);
}
