/* plans.h - plans written down by hand, for the renderers' tests: what they
 * get does not depend on the resolver, nor on this machine. */
#ifndef ZB_TEST_PLANS_H
#define ZB_TEST_PLANS_H

#include "plan.h"

/* NULL-terminated. */
extern const char *const zb_test_plan_names[];
/* Fill @out with the plan of that name; zb_test_plan_done() frees it. Returns
 * false for an unknown name, or out of memory. */
bool zb_test_plan(const char *name, struct zb_plan *out);
void zb_test_plan_done(struct zb_plan *p);

/* For plans that a test makes up: all copied. */
struct zb_place *zb_test_place(struct zb_plan *p, enum zb_place_kind kind,
			       const char *path, const char *source,
			       unsigned rights, bool is_dir);
bool zb_test_deny(struct zb_plan *p, const char *pattern, bool built_in,
		  const char *key);
/* The least that any plan has: a name, HOME, a working directory, argv. */
bool zb_test_plan_minimal(struct zb_plan *p);

#endif
