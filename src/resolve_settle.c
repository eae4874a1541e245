/* resolve_settle.c - from everything that was asked for to what is mounted.
 *
 *	wide	a grant that holds HOME replaces the private one
 *	merge	one place a path: the private one wins, rights add up, and so do
 *		patterns, those for reading and those for changes apart
 *	widen	a pattern does not narrow what a place around it gives
 *	carve	a grant into which a deny reaches, or which has a pattern; into
 *		one for writing some always reach
 *	drop	what a place around it shows anyway, with the same rights
 *	unfold	a small directory of the system becomes one of ours, with links
 *		and copies in it; one of a runtime only if no source is in it,
 *		since a copy is new, and a runtime looks at that (Python
 *		compiles again what is newer than its bytecode)
 *	pin	ancestors inside HOME and data/ (a directory that is renamed
 *		would take the mount below it to another name); below /tmp, and
 *		where zot's extensions and our boxes are, one read-only
 *		directory of ours holds all that is in it
 *	broker	places that have a carved one mounted below them: the kernel's
 *		rules follow mounts upward, so none of them may be a rule that
 *		grants reading
 *	room	nothing executes in a brokered HOME, so the directories where
 *		programs keep programs (npx, go, pip) are places of their own,
 *		the only ones in it that the kernel lets be read
 *	show	a file in a place that has less rights, if neither may be
 *		changed: what it has more is the kernel's rule, not a mount
 *	copy	a small file of the system is copied only where no other place
 *		is around it but a directory of ours, and nothing can be
 *		written
 *
 * Two instances of one extension share its HOME, and may have other projects in
 * it. What one has as a mount is a plain directory to the other, which can move
 * it, and all that is mounted in it, to below another directory: had that one a
 * rule that grants reading, a carved project would have it then. So there are
 * no such directories but the rooms, and those are mounts in every instance,
 * whatever its project: nothing can be moved into them. But under a scope
 * without a deny, a pattern or a grant for writing nothing is carved for any
 * project, and no instance needs rooms (a loose HOME); that none runs under an
 * older scope which is of the other sort is seen to at the start (stubs.h). */
#include "cleanup.h"
#include "path_match.h"
#include "resolve.h"

#include <stdlib.h>
#include <string.h>

static int out_of_order(const void *a, const void *b)
{
	const struct zb_place *x = a, *y = b;
	int c = zb_place_order(x->path, y->path);

	if (!c)
		c = (int)x->kind - (int)y->kind;
	if (!c && x->origin.key && y->origin.key)
		c = strcmp(x->origin.key, y->origin.key);
	return c;
}

static void sort(struct zb_plan *p)
{
	if (p->n_places)
		qsort(p->places, p->n_places, sizeof(*p->places), out_of_order);
}

static void remove_at(struct zb_plan *p, size_t i)
{
	zb_place_done(&p->places[i]);
	memmove(&p->places[i], &p->places[i + 1],
		(p->n_places - i - 1) * sizeof(*p->places));
	p->n_places--;
}

/* Does the host's own tree stand there, as it is? */
static bool is_host(const struct zb_place *p)
{
	return (p->kind == ZB_PLACE_SYSTEM || p->kind == ZB_PLACE_RUNTIME ||
		p->kind == ZB_PLACE_EXTENSION || p->kind == ZB_PLACE_GRANT) &&
	       p->source && !strcmp(p->source, p->path);
}

/* wide */

static void replace_home(struct zb_plan *p)
{
	bool wide = false;

	for (size_t i = 0; i < p->n_places; i++)
		wide = wide || (p->places[i].kind == ZB_PLACE_GRANT &&
				zb_path_below(p->home_real, p->places[i].path));
	for (size_t i = p->n_places; wide && i-- > 0;)
		if (p->places[i].kind == ZB_PLACE_HOME)
			remove_at(p, i);
}

/* merge */

/* Of two places at one path, which stands? Higher is stronger. */
static int strength(const struct zb_place *p)
{
	switch (p->kind) {
	case ZB_PLACE_TEXT:
	case ZB_PLACE_PROC:
	case ZB_PLACE_DEV:
		return 9;
	case ZB_PLACE_DIR:
		return 8;
	case ZB_PLACE_DATA:
		return 7;
	case ZB_PLACE_TMP:
		return 6;
	case ZB_PLACE_HOME:
		return 5;
	case ZB_PLACE_EXTENSION:
		return 4;
	case ZB_PLACE_SYSTEM:
		return 3;
	case ZB_PLACE_RUNTIME:
		return 2;
	case ZB_PLACE_GRANT:
		return 1;
	case ZB_PLACE_LINK:
	case ZB_PLACE_PIN:
		return 0;
	}
	return 0;
}

#define CHANGES (ZB_MAY_WRITE | ZB_MAY_CREATE)

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* No pattern is no limit, so that stays. */
static void join_only(struct zb_strv *into, struct zb_strv *from)
{
	if (!into->n || !from->n) {
		zb_strv_done(into);
		return;
	}
	for (size_t i = 0; i < from->n; i++)
		if (!zb_strv_has(into, from->v[i])) {
			(void)zb_strv_take(into, from->v[i]);
			from->v[i] = NULL;
		}
}

/* A place that lets nothing be changed says nothing of what may be. */
static void join_changes(struct zb_place *into, struct zb_place *from)
{
	if (!(from->rights & CHANGES))
		return;
	if (into->rights & CHANGES) {
		join_only(&into->only_changes, &from->only_changes);
		return;
	}
	into->only_changes = from->only_changes;
	into->changed_by = from->origin;
	from->only_changes = (struct zb_strv){0};
	from->origin = (struct zb_origin){0};
}

/* @from is at the same path as @into and goes away. */
static void join(struct zb_place *into, struct zb_place *from)
{
	if (strength(from) > strength(into)) {
		struct zb_place p = *into;

		*into = *from;
		*from = p;
	}
	if (!is_host(into) || !is_host(from) ||
	    !same_text(into->source, from->source))
		return;
	join_only(&into->only, &from->only);
	join_changes(into, from);
	into->rights |= from->rights;
}

static void merge(struct zb_plan *p)
{
	size_t n = 0;

	sort(p);
	for (size_t i = 0; i < p->n_places; i++) {
		if (n && !strcmp(p->places[n - 1].path, p->places[i].path)) {
			join(&p->places[n - 1], &p->places[i]);
			zb_place_done(&p->places[i]);
		} else {
			p->places[n++] = p->places[i];
		}
	}
	p->n_places = n;
}

/* widen */

/* The nearest place around place @i that is no link, or -1. Those around a
 * place stand before it; among them the last is the nearest. */
static int around(const struct zb_plan *p, size_t i)
{
	for (size_t k = i; k-- > 0;)
		if (p->places[k].kind != ZB_PLACE_LINK &&
		    zb_path_below(p->places[i].path, p->places[k].path))
			return (int)k;
	return -1;
}

static bool has_all(const struct zb_strv *only, const char *path)
{
	for (size_t i = 0; i < only->n; i++)
		if (zb_pattern_match(only->v[i], path))
			return true;
	return !only->n;
}

/* What a place around may be read of all may be read of all in one whose
 * grant has a pattern. */
static void widen(struct zb_plan *p)
{
	for (size_t i = 0; i < p->n_places; i++) {
		struct zb_place *in = &p->places[i];
		int k = around(p, i);

		if (k >= 0 && in->only.n && is_host(&p->places[k]) &&
		    (p->places[k].rights & ZB_MAY_READ) &&
		    has_all(&p->places[k].only, in->path))
			zb_strv_done(&in->only);
	}
}

/* carve */

/* Does @d have a say in @place? What is built in closes names to changes, and
 * not those that were granted by that very name. */
static bool counts(const struct zb_deny *d, const struct zb_place *place)
{
	return !d->built_in || ((place->rights & CHANGES) &&
				!zb_pattern_match(d->pattern, place->path));
}

static bool reaches_into(const struct zb_plan *p, const struct zb_place *place)
{
	for (size_t i = 0; i < p->n_denies; i++) {
		const char *pattern = p->denies[i].pattern;

		if (counts(&p->denies[i], place) &&
		    (place->is_dir ? zb_pattern_touches(pattern, place->path)
				   : zb_pattern_match(pattern, place->path)))
			return true;
	}
	return false;
}

static const struct zb_deny *covering(const struct zb_plan *p,
				      const struct zb_place *place)
{
	for (size_t i = 0; i < p->n_denies; i++)
		if (!p->denies[i].built_in &&
		    zb_pattern_match(p->denies[i].pattern, place->path))
			return &p->denies[i];
	return NULL;
}

/* May @place be changed although something built in covers it? */
static bool is_exempt(const struct zb_plan *p, const struct zb_place *place)
{
	for (size_t i = 0; i < p->n_denies; i++)
		if (p->denies[i].built_in && (place->rights & CHANGES) &&
		    zb_pattern_match(p->denies[i].pattern, place->path))
			return true;
	return false;
}

/* The rule that a place came from, for messages. */
static struct zb_rule rule_of(const struct zb_place *place)
{
	return (struct zb_rule){.value = place->path, .origin = place->origin};
}

static int carve(struct zb_resolver *r)
{
	struct zb_plan *p = r->plan;

	for (size_t i = p->n_places; i-- > 0;) {
		struct zb_place *place = &p->places[i];
		struct zb_rule rule = rule_of(place);
		const struct zb_deny *deny;

		if (place->kind != ZB_PLACE_GRANT)
			continue;
		deny = covering(p, place);
		if (deny) {
			int rc = zb_resolve_notice(r, &rule,
						   "is denied by %s %s; "
						   "skipped",
						   deny->origin.file,
						   deny->origin.key);

			if (rc)
				return rc;
			remove_at(p, i);
			continue;
		}
		place->carved = reaches_into(p, place) || place->only.n ||
				place->only_changes.n;
	}
	return 0;
}

/* drop */

/* Does @outer give on everything below @p what it gives on anything? */
static bool gives_all(const struct zb_place *outer, const struct zb_place *p)
{
	return has_all(&outer->only, p->path) &&
	       (!(p->rights & CHANGES) ||
		has_all(&outer->only_changes, p->path));
}

static bool adds_nothing(const struct zb_plan *plan,
			 const struct zb_place *outer, const struct zb_place *p)
{
	if (!is_host(outer))
		return false;
	if (p->kind == ZB_PLACE_LINK)
		return true;
	if (!is_host(p) || (p->rights & ~outer->rights) || is_exempt(plan, p))
		return false;
	/* Grants add up: one for reading takes nothing from one for writing
	 * around it, and a file is better where it can be renamed over. */
	if (p->kind == ZB_PLACE_GRANT && outer->kind == ZB_PLACE_GRANT &&
	    (outer->rights & CHANGES) && gives_all(outer, p))
		return true;
	/* What a deny reaches into is another kind of place. */
	if (!gives_all(outer, p) || outer->only.n || p->carved != outer->carved)
		return false;
	return p->kind == ZB_PLACE_GRANT || !outer->carved;
}

static void drop(struct zb_plan *p)
{
	for (size_t i = 0; i < p->n_places;) {
		int k = around(p, i);

		if (k >= 0 && adds_nothing(p, &p->places[k], &p->places[i]))
			remove_at(p, i);
		else
			i++;
	}
}

/* unfold */

/* What a small directory has in it: places, and how many more there may be. */
struct unfolded {
	struct zb_strv dirs, files, links; /* links: where, then what it says */
	size_t names, bytes;
	bool no_source; /* may be in it */
};

static void unfolded_done(struct unfolded *u)
{
	zb_strv_done(&u->dirs);
	zb_strv_done(&u->files);
	zb_strv_done(&u->links);
}

static bool is_source(const char *path)
{
	static const char *const compiled[] = {".py", ".pyc"};
	size_t n = strlen(path);

	for (size_t i = 0; i < sizeof(compiled) / sizeof(compiled[0]); i++) {
		size_t len = strlen(compiled[i]);

		if (n > len && !strcmp(path + n - len, compiled[i]))
			return true;
	}
	return false;
}

/* Sort @path, found in one of the directories. Return: 0, ZB_ELIMIT, or 1: the
 * directory is not one that can be unfolded. */
static int sort_name(struct zb_resolver *r, struct unfolded *u,
		     const char *path)
{
	struct zb_walk w = {0};
	int rc = zb_resolve_walk(r, path, false, &w);

	if (rc)
		return rc;
	if (w.links.n && !strcmp(w.links.v[0], path)) {
		if (zb_strv_add(&u->links, path) ||
		    zb_strv_add(&u->links, w.links.v[1]))
			rc = ZB_ELIMIT;
	} else if (w.is_dir) {
		rc = zb_strv_add(&u->dirs, path);
	} else if (w.is_file && !(u->no_source && is_source(path)) &&
		   w.size <= ZB_COPY_BYTES - u->bytes) {
		u->bytes += w.size;
		rc = zb_strv_add(&u->files, path);
	} else {
		rc = 1;
	}
	zb_walk_done(&w);
	return rc;
}

/* Everything in @dir and below. As sort_name(). */
static int read_all(struct zb_resolver *r, const char *dir, struct unfolded *u)
{
	int rc = zb_strv_add(&u->dirs, dir);

	for (size_t d = 0; !rc && d < u->dirs.n; d++) {
		struct zb_strv names = {0};

		if (!r->facts->list(r->facts->ctx, u->dirs.v[d],
				    ZB_COPY_NAMES - u->names, &names))
			rc = 1;
		u->names += names.n;
		for (size_t i = 0; !rc && i < names.n; i++) {
			zb_auto(free) char *path =
				zb_path_join(u->dirs.v[d], names.v[i]);

			rc = path ? sort_name(r, u, path) : ZB_ELIMIT;
		}
		zb_strv_done(&names);
	}
	return rc;
}

/* Add @u's places below place @at, and make that one a directory of ours. */
static int unfold_at(struct zb_resolver *r, size_t at, const struct unfolded *u)
{
	struct zb_place one = r->plan->places[at]; /* its strings only */
	struct zb_place *p = &r->plan->places[at];
	int rc = 0;

	for (size_t i = 0; !rc && i < u->files.n; i++) {
		one.path = one.source = u->files.v[i];
		one.rights = ZB_MAY_READ;
		one.is_dir = false;
		one.copied = true;
		rc = zb_resolve_add(r, &one);
	}
	for (size_t i = 0; !rc && i + 1 < u->links.n; i += 2)
		rc = zb_resolve_add(
			r, &(struct zb_place){.kind = ZB_PLACE_LINK,
					      .path = u->links.v[i],
					      .link_to = u->links.v[i + 1],
					      .rights = ZB_MAY_READ,
					      .origin = one.origin});
	for (size_t i = 1; !rc && i < u->dirs.n; i++)
		rc = zb_resolve_add(
			r,
			&(struct zb_place){.kind = ZB_PLACE_DIR,
					   .path = u->dirs.v[i],
					   .rights = ZB_MAY_READ | ZB_MAY_LIST,
					   .is_dir = true,
					   .origin = one.origin});
	p = &r->plan->places[at]; /* adding may have moved it */
	p->kind = ZB_PLACE_DIR;
	free(p->source);
	p->source = NULL;
	return rc;
}

static bool can_unfold(const struct zb_plan *p, size_t i)
{
	const struct zb_place *d = &p->places[i];

	if ((d->kind != ZB_PLACE_SYSTEM && d->kind != ZB_PLACE_RUNTIME) ||
	    !d->is_dir || !is_host(d) || around(p, i) >= 0 ||
	    d->rights != (ZB_MAY_READ | ZB_MAY_LIST))
		return false;
	/* What lies in it would follow it. */
	return i + 1 == p->n_places ||
	       !zb_path_below(p->places[i + 1].path, d->path);
}

static int unfold(struct zb_resolver *r)
{
	struct zb_plan *p = r->plan;
	size_t n = r->facts->list ? p->n_places : 0;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < n; i++) {
		struct unfolded u = {.no_source = p->places[i].kind ==
						  ZB_PLACE_RUNTIME};

		if (!can_unfold(p, i))
			continue;
		rc = read_all(r, p->places[i].path, &u);
		if (!rc)
			rc = unfold_at(r, i, &u);
		unfolded_done(&u);
	}
	sort(p);
	return rc < 0 ? rc : 0;
}

/* pin */

/* The directory @path in the private place @root, as a place of its own. */
static int add_pin(struct zb_resolver *r, const struct zb_place *root,
		   const char *path)
{
	struct zb_place pin = {.kind = ZB_PLACE_PIN,
			       .path = zb_strdup(path),
			       .rights = root->rights,
			       .is_dir = true};
	int rc = ZB_ELIMIT;

	pin.source = zb_strf("%s%s", root->source, path + strlen(root->path));
	if (pin.path && pin.source)
		rc = zb_resolve_add(r, &pin);
	free(pin.path);
	free(pin.source);
	return rc;
}

static bool has_place(const struct zb_plan *p, const char *path)
{
	for (size_t i = 0; i < p->n_places; i++)
		if (!strcmp(p->places[i].path, path))
			return true;
	return false;
}

/* A read-only directory of ours at @path (taken) unless something stands there:
 * nothing below it can be moved. */
static int hold(struct zb_resolver *r, char *path)
{
	struct zb_place dir = {.kind = ZB_PLACE_DIR,
			       .path = path,
			       .rights = ZB_MAY_READ | ZB_MAY_LIST,
			       .is_dir = true};
	int rc = !path			    ? ZB_ELIMIT
		 : has_place(r->plan, path) ? 0
					    : zb_resolve_add(r, &dir);

	free(path);
	return rc;
}

/* Every directory strictly between @root and @path. Where zot keeps extensions
 * and we keep boxes no extension has anything of its own to write. */
static int pin_ancestors(struct zb_resolver *r, size_t root, const char *path)
{
	size_t n = strlen(r->plan->places[root].path);
	int rc = 0;

	for (const char *s = strchr(path + n + 1, '/'); !rc && s;
	     s = strchr(s + 1, '/')) {
		zb_auto(free) char *dir = zb_strndup(path, (size_t)(s - path));
		struct zb_place copy = r->plan->places[root];

		if (!dir)
			return ZB_ELIMIT;
		if (!strcmp(dir, r->boxes) || !strcmp(dir, r->extensions))
			return hold(r, zb_steal(&dir));
		if (!has_place(r->plan, dir))
			rc = add_pin(r, &copy, dir);
	}
	return rc;
}

/* /tmp is one tmpfs, so its first directory read-only holds all below. */
static int hold_tmp(struct zb_resolver *r, const char *path)
{
	const char *s = strchr(path + strlen("/tmp/"), '/');

	return s ? hold(r, zb_strndup(path, (size_t)(s - path))) : 0;
}

static int pin(struct zb_resolver *r)
{
	struct zb_plan *p = r->plan;
	size_t n = p->n_places; /* new ones go behind, unsorted */

	for (size_t i = 0; i < n; i++) {
		int k = around(p, i);
		int rc = 0;

		if (k < 0)
			continue;
		if (p->places[k].kind == ZB_PLACE_HOME ||
		    p->places[k].kind == ZB_PLACE_DATA)
			rc = pin_ancestors(r, (size_t)k, p->places[i].path);
		else if (p->places[k].kind == ZB_PLACE_TMP)
			rc = hold_tmp(r, p->places[i].path);
		if (rc)
			return rc;
	}
	sort(p);
	return 0;
}

/* broker */

static void mark_brokered(struct zb_plan *p)
{
	for (size_t c = 0; c < p->n_places; c++) {
		if (!p->places[c].carved)
			continue;
		for (size_t i = 0; i < c; i++)
			if (!p->places[i].carved &&
			    p->places[i].kind != ZB_PLACE_LINK &&
			    zb_path_below(p->places[c].path,
					  p->places[i].path)) {
				p->places[i].brokered = true;
				p->places[i].brokered_writes |=
					(p->places[c].rights & CHANGES) != 0;
			}
	}
}

/* room */

static const char *const rooms[] = {".cache", ".npm", ".local", "go", "bin"};

static bool is_room(const struct zb_plan *p, const char *path)
{
	size_t n = strlen(p->home_real);

	if (!zb_path_below(path, p->home_real) || !path[n])
		return false;
	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++)
		if (!strcmp(path + n + 1, rooms[i]))
			return true;
	return false;
}

static bool has_pattern(const struct zb_rules *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (zb_pattern_is_glob(l->v[i].value))
			return true;
	return false;
}

/* Could this scope carve a place, for whatever project? */
static bool can_carve(const struct zb_resolver *r)
{
	const struct zb_scope *s = r->scope;

	return r->plan->n_denies || s->fs_deny.n || s->fs_write.n ||
	       has_pattern(&s->fs_read) || has_pattern(&s->fs_exec);
}

static int make_room(struct zb_resolver *r)
{
	struct zb_plan *p = r->plan;
	int home = zb_plan_place(p, p->home_real);

	if (home < 0 || p->places[home].kind != ZB_PLACE_HOME)
		return 0;
	p->loose_home = !r->facts->held_home && !can_carve(r);
	if (p->loose_home)
		return 0;
	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		struct zb_place root = p->places[home];
		zb_auto(free) char *path = zb_path_join(root.path, rooms[i]);
		int rc;

		if (!path)
			return ZB_ELIMIT;
		if (has_place(p, path))
			continue;
		rc = add_pin(r, &root, path);
		if (rc)
			return rc;
	}
	sort(p);
	return 0;
}

/* In a brokered place no pin is read by the kernel's leave but a room. */
static void broker_pins(struct zb_plan *p)
{
	for (size_t i = 0; i < p->n_places; i++) {
		struct zb_place *pin = &p->places[i];
		int k = around(p, i);

		if (pin->kind == ZB_PLACE_PIN && k >= 0 &&
		    p->places[k].brokered && !is_room(p, pin->path)) {
			pin->brokered = true;
			pin->brokered_writes = p->places[k].brokered_writes;
		}
	}
}

/* A grant that says "execute" and would not. */
static int check_exec(struct zb_resolver *r)
{
	for (size_t i = 0; i < r->plan->n_places; i++) {
		const struct zb_place *p = &r->plan->places[i];
		struct zb_rule rule = rule_of(p);

		if (p->kind == ZB_PLACE_GRANT && (p->rights & ZB_MAY_EXEC) &&
		    (p->carved || p->brokered))
			return zb_resolve_fail(
				r, ZB_EUNSUPPORTED, &rule,
				"a deny or a pattern reaches into it, and the "
				"kernel cannot execute from a directory that "
				"is only partly granted; name single programs "
				"in fs.exec");
	}
	return 0;
}

/* show */

static bool may_change(const struct zb_place *p)
{
	return p->rights & CHANGES;
}

static void show(struct zb_plan *p)
{
	for (size_t i = 0; i < p->n_places; i++) {
		struct zb_place *in = &p->places[i];
		int k = around(p, i);
		const struct zb_place *out = k < 0 ? NULL : &p->places[k];

		in->shown =
			out && is_host(in) && is_host(out) && !in->is_dir &&
			!in->carved && !out->carved && !out->brokered &&
			!may_change(in) && !may_change(out) &&
			!(out->rights & ~in->rights & ~(unsigned)ZB_MAY_LIST);
	}
}

/* copy */

static void check_copied(struct zb_plan *p)
{
	for (size_t i = 0; i < p->n_places; i++) {
		int k = around(p, i);

		/* What is around a directory of ours is asked of that one. */
		while (k >= 0 && p->places[k].kind == ZB_PLACE_DIR)
			k = around(p, (size_t)k);
		if (may_change(&p->places[i]) || k >= 0)
			p->places[i].copied = false;
	}
}

int zb_resolve_settle(struct zb_resolver *r)
{
	int rc;

	replace_home(r->plan);
	merge(r->plan);
	widen(r->plan);
	rc = carve(r);
	if (rc)
		return rc;
	drop(r->plan);
	rc = unfold(r);
	if (!rc)
		rc = pin(r);
	if (rc)
		return rc;
	mark_brokered(r->plan);
	rc = make_room(r);
	if (rc)
		return rc;
	broker_pins(r->plan);
	show(r->plan);
	check_copied(r->plan);
	return check_exec(r);
}
