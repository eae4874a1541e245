/* landlock_rules.c - the plan once more, as what the kernel checks at each
 * open, exec, create, remove, rename and truncate.
 *
 * Theory. Mounts decide what is there; Landlock says again what may be done
 * with it, and is the only floor for EXECUTE. It knows no deny: rights add up
 * along the way from a file to the root, through mount points. Three things
 * follow:
 *
 *	1. A place where some files are denied (carved) cannot be given
 *	   READ_FILE at all: the broker opens for the extension.
 *	2. Nor can a place above it, since its rule would reach down into it:
 *	   a private HOME with a carved project mounted below is brokered. If
 *	   the carved one may be written to, the same holds for all changes.
 *	3. Nothing can be executed from either: execve(2) asks for READ_FILE
 *	   as well, and nobody can answer it on the extension's behalf.
 *
 * Whatever is there may be listed, since every directory inside either belongs
 * to a place that may, or shows nothing but the way to one.
 */
#include "landlock_rules.h"

#include "cleanup.h"
#include "path_match.h"

#include <string.h>

#define ALTER                                                                  \
	(ZB_LL_REMOVE_DIR | ZB_LL_REMOVE_FILE | ZB_LL_MAKE_DIR |               \
	 ZB_LL_MAKE_REG | ZB_LL_MAKE_SOCK | ZB_LL_MAKE_FIFO | ZB_LL_MAKE_SYM | \
	 ZB_LL_REFER)
#define WRITE (ZB_LL_WRITE_FILE | ZB_LL_TRUNCATE)
/* A private place: anything but device nodes. */
#define PRIVATE                                                                \
	(ZB_LL_EXECUTE | ZB_LL_READ_FILE | ZB_LL_READ_DIR | WRITE | ALTER)
/* A device node: ioctl, so that isatty(3) and ttys work. */
#define NODE (ZB_LL_READ_FILE | ZB_LL_WRITE_FILE | ZB_LL_IOCTL_DEV)

static const struct {
	uint64_t bit;
	int abi;
	const char *name;
} known[] = {
	{ZB_LL_EXECUTE, 1, "execute"},
	{ZB_LL_WRITE_FILE, 1, "write_file"},
	{ZB_LL_READ_FILE, 1, "read_file"},
	{ZB_LL_READ_DIR, 1, "read_dir"},
	{ZB_LL_REMOVE_DIR, 1, "remove_dir"},
	{ZB_LL_REMOVE_FILE, 1, "remove_file"},
	{ZB_LL_MAKE_CHAR, 1, "make_char"},
	{ZB_LL_MAKE_DIR, 1, "make_dir"},
	{ZB_LL_MAKE_REG, 1, "make_reg"},
	{ZB_LL_MAKE_SOCK, 1, "make_sock"},
	{ZB_LL_MAKE_FIFO, 1, "make_fifo"},
	{ZB_LL_MAKE_BLOCK, 1, "make_block"},
	{ZB_LL_MAKE_SYM, 1, "make_sym"},
	{ZB_LL_REFER, 2, "refer"},
	{ZB_LL_TRUNCATE, 3, "truncate"},
	{ZB_LL_IOCTL_DEV, 5, "ioctl_dev"},
};

/* Below a place of kind DEV. No rule for the terminal, /dev/tty: bwrap shows
 * it, and nobody may open it. */
static const struct {
	const char *name;
	bool is_dir;
	uint64_t access;
} devices[] = {
	{"null", false, NODE},
	{"zero", false, NODE},
	{"full", false, NODE},
	{"random", false, NODE},
	{"urandom", false, NODE},
	/* /dev/ptmx is a link to pts/ptmx */
	{"pts", true, NODE | ZB_LL_READ_DIR},
	{"shm", true, PRIVATE & ~ZB_LL_EXECUTE},
};

struct rules {
	uint64_t handled;
	struct zb_landlock_rule *v;
	size_t n, cap;
};

uint64_t zb_landlock_handled(int abi)
{
	uint64_t all = 0;

	for (size_t i = 0; i < ZB_ARRAY_LEN(known); i++)
		if (abi >= known[i].abi)
			all |= known[i].bit;
	return all;
}

int zb_landlock_names(uint64_t access, struct zb_buf *out)
{
	const char *sep = "";

	for (size_t i = 0; i < ZB_ARRAY_LEN(known); i++) {
		if (!(access & known[i].bit))
			continue;
		zb_buf_adds(out, sep);
		zb_buf_adds(out, known[i].name);
		sep = " ";
	}
	return out->failed ? ZB_ELIMIT : 0;
}

/* Append a rule, unless nothing of @access is left. Takes @path. */
static int add(struct rules *r, char *path, uint64_t access, bool is_dir,
	       bool optional)
{
	zb_auto(free) char *owned = path;
	struct zb_landlock_rule *v;

	if (!owned)
		return ZB_ELIMIT;
	access &= r->handled;
	if (!is_dir)
		access &= ZB_LL_FILE;
	if (!access)
		return 0;
	if (r->n == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : 32;

		v = realloc(r->v, cap * sizeof(*v));
		if (!v)
			return ZB_ELIMIT;
		r->v = v;
		r->cap = cap;
	}
	r->v[r->n++] = (struct zb_landlock_rule){
		.path = zb_steal(&owned),
		.access = access,
		.is_dir = is_dir,
		.optional = optional,
	};
	return 0;
}

static bool below(const struct zb_place *in, const struct zb_place *p)
{
	return in != p && zb_path_below(in->path, p->path);
}

/* What a carved place below @p takes from it. */
static uint64_t lost_to_carved(const struct zb_plan *plan,
			       const struct zb_place *p)
{
	uint64_t lost = p->brokered ? ZB_LL_READ_FILE | ZB_LL_EXECUTE : 0;

	if (p->brokered_writes)
		lost |= WRITE | ALTER;
	for (size_t i = 0; i < plan->n_places; i++) {
		const struct zb_place *q = &plan->places[i];

		if (!q->carved || !below(q, p))
			continue;
		lost |= ZB_LL_READ_FILE | ZB_LL_EXECUTE;
		if (q->rights & (ZB_MAY_WRITE | ZB_MAY_CREATE))
			lost |= WRITE | ALTER;
	}
	return lost;
}

static uint64_t from_rights(unsigned rights)
{
	uint64_t access = 0;

	if (rights & ZB_MAY_READ)
		access |= ZB_LL_READ_FILE;
	if (rights & ZB_MAY_LIST)
		access |= ZB_LL_READ_DIR;
	/* Without READ_FILE nothing starts (landlock_rules.h). */
	if (rights & ZB_MAY_EXEC)
		access |= ZB_LL_EXECUTE | ZB_LL_READ_FILE;
	if (rights & ZB_MAY_WRITE)
		access |= WRITE;
	if (rights & ZB_MAY_CREATE)
		access |= ALTER;
	return access;
}

static uint64_t place_access(const struct zb_place *p)
{
	switch (p->kind) {
	case ZB_PLACE_SYSTEM:
	case ZB_PLACE_RUNTIME:
	case ZB_PLACE_EXTENSION:
	case ZB_PLACE_GRANT:
		return from_rights(p->rights);
	case ZB_PLACE_DATA:
	case ZB_PLACE_HOME:
	case ZB_PLACE_TMP:
	case ZB_PLACE_PIN: /* a directory of one of them, bound onto itself */
		return PRIVATE;
	case ZB_PLACE_TEXT:
		return ZB_LL_READ_FILE;
	case ZB_PLACE_PROC:
		return ZB_LL_READ_FILE | ZB_LL_READ_DIR;
	case ZB_PLACE_DEV:  /* see devices[] */
	case ZB_PLACE_LINK: /* reading a link needs no right */
	case ZB_PLACE_DIR:  /* only leads somewhere, listed as all is */
		break;
	}
	return 0;
}

static int add_devices(struct rules *r, const struct zb_place *p)
{
	for (size_t i = 0; i < ZB_ARRAY_LEN(devices); i++)
		if (add(r, zb_path_join(p->path, devices[i].name),
			devices[i].access, devices[i].is_dir, true))
			return ZB_ELIMIT;
	return 0;
}

/* A pin lies in a private place, and has its rights from there. But when that
 * one lost some to a carved place, a pin on the way to another place need not
 * lose them, and the evaluator says so. */
static bool needs_rule(const struct zb_plan *plan, const struct zb_place *p)
{
	if (p->kind != ZB_PLACE_PIN)
		return true;
	for (size_t i = 0; i < plan->n_places; i++)
		if (below(p, &plan->places[i]) &&
		    lost_to_carved(plan, &plan->places[i]))
			return true;
	return false;
}

static int add_place(struct rules *r, const struct zb_plan *plan,
		     const struct zb_place *p)
{
	uint64_t access = place_access(p), lost;
	bool is_dir = p->is_dir;

	if (p->kind == ZB_PLACE_TMP || p->kind == ZB_PLACE_PROC ||
	    p->kind == ZB_PLACE_DEV)
		is_dir = true;
	if (!needs_rule(plan, p))
		return 0;
	/* Names of a carved place stay visible, so it may be listed. */
	lost = p->carved ? ~ZB_LL_READ_DIR : lost_to_carved(plan, p);
	if (add(r, zb_strdup(p->path), access & ~lost, is_dir, false))
		return ZB_ELIMIT;
	if (p->kind == ZB_PLACE_DEV)
		return add_devices(r, p);
	return 0;
}

int zb_landlock_rules(const struct zb_plan *plan, int abi,
		      struct zb_landlock_rule **out, size_t *n,
		      struct zb_error *err)
{
	struct rules r = {.handled = zb_landlock_handled(abi)};
	int rc;

	if (!r.handled)
		return zb_fail(err, ZB_EUNSUPPORTED,
			       "this kernel has no Landlock: a kernel of 5.13 "
			       "or later with landlock in its list of security "
			       "modules (lsm=...) is needed");
	rc = add(&r, zb_strdup("/"), ZB_LL_READ_DIR, true, false);
	for (size_t i = 0; !rc && i < plan->n_places; i++)
		rc = add_place(&r, plan, &plan->places[i]);
	if (rc) {
		zb_landlock_rules_done(r.v, r.n);
		return zb_fail(err, ZB_ELIMIT, "Landlock rules: out of memory");
	}
	*out = r.v;
	*n = r.n;
	return 0;
}

void zb_landlock_rules_done(struct zb_landlock_rule *rules, size_t n)
{
	for (size_t i = 0; rules && i < n; i++)
		free(rules[i].path);
	free(rules);
}
