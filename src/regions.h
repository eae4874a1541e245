/* regions.h - where the places of a plan are on a system that has no mounts
 * of one's own (macOS, Windows). Pure.
 *
 * Such a system shows everything under its own name or not at all. So what the
 * plan shows under another name is moved (the private HOME is used where it
 * stands on the host), made at start (/tmp), or nowhere; and what a mount would
 * have covered has to be closed instead. */
#ifndef ZB_REGIONS_H
#define ZB_REGIONS_H

#include "plan.h"

enum zb_where {
	ZB_HERE,   /* under its own name */
	ZB_MOVED,  /* at its source */
	ZB_MADE,   /* in a directory made at start */
	ZB_NOWHERE /* it takes a mount or a made-up file */
};
enum zb_where zb_where(const struct zb_plan *plan,
		       const struct zb_place *place);

/* Does @d take something from what @p grants? */
bool zb_deny_applies(const struct zb_deny *d, const struct zb_place *p);

/* A piece of the disk with what may be done there, by its real name. Nested:
 * the deepest counts. */
struct zb_region {
	char *path;	 /* NULL: the directory made at start */
	unsigned rights; /* ZB_MAY_*; 0: closed */
	const struct zb_place *place;
};

struct zb_regions {
	const struct zb_plan *plan;
	struct zb_region *v; /* sorted: what contains comes first */
	size_t n;
};

/* Every place but links, pins, /proc and /dev, at its own name (closed unless
 * it is ZB_HERE), and what is moved or made where it is instead. @real turns a
 * path of the plan into the name that this system knows (heap, NULL: out of
 * memory). Return: 0; ZB_EUNSUPPORTED for a plan with holes; ZB_ELIMIT. */
int zb_regions_find(struct zb_regions *out, const struct zb_plan *plan,
		    char *(*real)(const char *path), struct zb_error *err);
void zb_regions_done(struct zb_regions *r);
/* The deepest region that region @i lies in, or NULL. */
const struct zb_region *zb_region_around(const struct zb_regions *r, size_t i);
/* Is @p under its own name, but below the plan's name of one that is not? */
bool zb_place_stays(const struct zb_plan *plan, const struct zb_place *p);

#endif
