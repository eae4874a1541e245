/* regions.c - a plan without its mounts. */
#include "regions.h"

#include "cleanup.h"
#include "path_match.h"

#include <string.h>

#define ALL                                                                    \
	(ZB_MAY_READ | ZB_MAY_WRITE | ZB_MAY_CREATE | ZB_MAY_EXEC | ZB_MAY_LIST)

enum zb_where zb_where(const struct zb_plan *plan, const struct zb_place *p)
{
	switch (p->kind) {
	case ZB_PLACE_TMP:
		return ZB_MADE;
	case ZB_PLACE_HOME:
		return ZB_MOVED;
	case ZB_PLACE_DATA:
		/* On top of the extension's code: only a mount does that. */
		if (plan->state_beside)
			return ZB_NOWHERE;
		return strcmp(p->path, p->source) != 0 ? ZB_MOVED : ZB_HERE;
	case ZB_PLACE_SYSTEM:
	case ZB_PLACE_RUNTIME:
	case ZB_PLACE_EXTENSION:
	case ZB_PLACE_GRANT:
		return strcmp(p->path, p->source) != 0 ? ZB_NOWHERE : ZB_HERE;
	case ZB_PLACE_LINK:
	case ZB_PLACE_TEXT:
	case ZB_PLACE_PIN:
	case ZB_PLACE_DIR:
	case ZB_PLACE_PROC:
	case ZB_PLACE_DEV:
		break;
	}
	return ZB_NOWHERE;
}

/* HOME, data/ and /tmp are the extension's: no deny reaches into them. */
static bool is_private(const struct zb_place *p)
{
	return p->kind == ZB_PLACE_HOME || p->kind == ZB_PLACE_DATA ||
	       p->kind == ZB_PLACE_TMP;
}

bool zb_deny_applies(const struct zb_deny *d, const struct zb_place *p)
{
	if (p->kind != ZB_PLACE_GRANT)
		return false;
	if (d->built_in && (!(p->rights & (ZB_MAY_WRITE | ZB_MAY_CREATE)) ||
			    zb_pattern_match(d->pattern, p->path)))
		return false;
	return zb_pattern_touches(d->pattern, p->path);
}

static int by_path(const void *a, const void *b)
{
	const struct zb_region *x = a, *y = b;

	return strcmp(x->path ? x->path : "", y->path ? y->path : "");
}

/* Takes @path, NULL with @made. */
static int add(struct zb_regions *r, char *path, bool made, unsigned rights,
	       const struct zb_place *place)
{
	struct zb_region *v;

	if (!path && !made)
		return ZB_ELIMIT;
	v = realloc(r->v, (r->n + 1) * sizeof(*v));
	if (!v) {
		free(path);
		return ZB_ELIMIT;
	}
	r->v = v;
	v[r->n++] = (struct zb_region){path, rights, place};
	return 0;
}

/* Does it stand for a piece of the disk? */
static bool is_region(const struct zb_place *p)
{
	return p->kind != ZB_PLACE_LINK && p->kind != ZB_PLACE_PIN &&
	       p->kind != ZB_PLACE_PROC && p->kind != ZB_PLACE_DEV;
}

/* What the evaluator says of @p, whatever other systems could do: nothing is
 * executed where a deny reaches into. */
static unsigned rights_of(const struct zb_place *p)
{
	unsigned rights = is_private(p) ? ALL : p->rights;

	if (p->carved || p->brokered)
		rights &= ~(unsigned)ZB_MAY_EXEC;
	return rights;
}

static int add_place(struct zb_regions *r, const struct zb_place *p,
		     char *(*real)(const char *path))
{
	enum zb_where where = zb_where(r->plan, p);
	unsigned rights = rights_of(p);
	int rc;

	if (!is_region(p))
		return 0;
	rc = add(r, real(p->path), false, where == ZB_HERE ? rights : 0, p);
	if (!rc && where == ZB_MOVED)
		rc = add(r, real(p->source), false, rights, p);
	if (!rc && where == ZB_MADE)
		rc = add(r, NULL, true, rights, p);
	return rc;
}

static bool has_holes(const struct zb_place *p)
{
	bool bound = p->kind <= ZB_PLACE_HOME || p->kind == ZB_PLACE_GRANT;

	return !p->path || p->path[0] != '/' ||
	       (bound && (!p->source || p->source[0] != '/'));
}

int zb_regions_find(struct zb_regions *out, const struct zb_plan *plan,
		    char *(*real)(const char *path), struct zb_error *err)
{
	struct zb_regions r = {.plan = plan};
	int rc = 0;

	for (size_t i = 0; !rc && i < plan->n_places; i++) {
		if (has_holes(&plan->places[i]))
			rc = zb_fail(err, ZB_EUNSUPPORTED,
				     "a place of the plan has no absolute "
				     "path");
		else if (add_place(&r, &plan->places[i], real))
			rc = zb_fail(err, ZB_ELIMIT,
				     "places of the plan: out of memory");
	}
	if (rc) {
		zb_regions_done(&r);
		return rc;
	}
	if (r.n)
		qsort(r.v, r.n, sizeof(*r.v), by_path);
	*out = r;
	return 0;
}

void zb_regions_done(struct zb_regions *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->v[i].path);
	free(r->v);
	*r = (struct zb_regions){0};
}

const struct zb_region *zb_region_around(const struct zb_regions *r, size_t i)
{
	const struct zb_region *best = NULL;

	for (size_t j = 0; r->v[i].path && j < i; j++) {
		const struct zb_region *q = &r->v[j];

		/* Nothing lies in a file, whatever a plan says. */
		if (q->path && zb_path_below(r->v[i].path, q->path) &&
		    (q->place->is_dir || !strcmp(q->path, r->v[i].path)))
			best = q;
	}
	return best;
}

bool zb_place_stays(const struct zb_plan *plan, const struct zb_place *p)
{
	if (zb_where(plan, p) != ZB_HERE)
		return false;
	for (size_t i = 0; i < plan->n_places; i++) {
		const struct zb_place *q = &plan->places[i];

		if (q != p && is_region(q) && zb_where(plan, q) != ZB_HERE &&
		    zb_path_below(p->path, q->path))
			return true;
	}
	return false;
}
