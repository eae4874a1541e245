/* resolve_links.c - links that the extension could have made.
 *
 * What is granted, and what is closed, is found out anew at each start by
 * following links. One that stands in a directory which is granted for writing
 * is the extension's to replace: at its next start a narrow name would lead to
 * the user's keys, or a name that is closed to a place that is not. So a grant
 * must not depend on such a link, unless it stays in what may be written to
 * anyway; and one on the way to what is closed is closed itself.
 *
 * A project may be a stranger's, cloned a minute ago: a link in it that leads
 * out of it is as little the user's word as one that the extension made. */
#include "resolve.h"

#include "path_match.h"

#include <string.h>

static bool is_open(const struct zb_place *p, const char *path)
{
	for (size_t i = 0; i < p->only_changes.n; i++)
		if (zb_pattern_match(p->only_changes.v[i], path))
			return true;
	return !p->only_changes.n;
}

/* May the extension make the name @path? */
static bool is_in_its_hands(const struct zb_resolver *r, const char *path)
{
	for (size_t i = 0; i < r->plan->n_places; i++) {
		const struct zb_place *p = &r->plan->places[i];

		if (p->kind == ZB_PLACE_GRANT && (p->rights & ZB_MAY_CREATE) &&
		    strcmp(path, p->path) != 0 &&
		    zb_path_below(path, p->path) && is_open(p, path))
			return true;
	}
	return false;
}

/* A grant's, not one that a program needs in order to run. */
static bool is_granted(const struct zb_place *link)
{
	return link->origin.key && !strncmp(link->origin.key, "fs.", 3);
}

static bool is_in_project(const struct zb_resolver *r, const char *path)
{
	return r->plan->project && zb_path_below(path, r->plan->project);
}

static int refuse(struct zb_resolver *r, const struct zb_place *link,
		  const char *to, const char *why)
{
	const struct zb_rule rule = {.value = link->path,
				     .origin = link->origin};

	return zb_resolve_fail(r, ZB_EPOLICY, &rule,
			       "is a symbolic link to %s, %s; grant what is "
			       "meant by its real name, or remove the link",
			       to, why);
}

static int judge_link(struct zb_resolver *r, const struct zb_place *link)
{
	bool its = is_in_its_hands(r, link->path);
	bool projects = is_granted(link) && is_in_project(r, link->path);
	struct zb_walk w;
	int rc;

	if (!its && !projects)
		return 0;
	rc = zb_resolve_walk(r, link->path, false, &w);
	if (!rc && its && !is_in_its_hands(r, w.path))
		rc = refuse(r, link, w.path,
			    "which the extension may replace, since it may "
			    "write where the link stands");
	else if (!rc && projects && !is_in_project(r, w.path))
		rc = refuse(r, link, w.path,
			    "outside the project, which may hold links of "
			    "others' making");
	zb_walk_done(&w);
	return rc;
}

int zb_resolve_judge_links(struct zb_resolver *r)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < r->plan->n_places; i++)
		if (r->plan->places[i].kind == ZB_PLACE_LINK)
			rc = judge_link(r, &r->plan->places[i]);
	return rc;
}

int zb_resolve_close_links(struct zb_resolver *r, const struct zb_walk *w,
			   const struct zb_origin *origin)
{
	int rc = 0;

	for (size_t i = 0; !rc && i + 1 < w->links.n; i += 2)
		rc = zb_resolve_close(r, w->links.v[i], origin);
	return rc;
}
