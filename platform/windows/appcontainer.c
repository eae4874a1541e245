/* appcontainer.c - the plan as a description of an AppContainer.
 *
 * Theory. A process in an AppContainer may open an object only if the user may
 * and if the object's list has an entry for the AppContainer's SID, one of its
 * capabilities, or all (restricted) packages. As a less privileged AppContainer
 * (LPAC) it gets nothing from the entries for all packages. So what is granted
 * is an entry for its own SID, and nothing more exists for it but what Windows
 * opens to every restricted package.
 *
 * Entries are inherited, and are read in this order: the object's own denies,
 * its own allows, then those of the directory above, and so on; the first that
 * names a right decides it. Hence a place with fewer rights than the one around
 * it gets a deny for the difference.
 *
 * An entry belongs to a file, not to a name. A pattern that is to hold for
 * files made later cannot be said, nor a host name, nor anything that takes a
 * mount. None of these is weakened: the place gets no entry, the plan is not
 * started.
 */
#include "appcontainer.h"

#include "cleanup.h"
#include "enforce.h"
#include "path_match.h"
#include "regions.h"
#include "text.h"

#include <string.h>

#define FILE_READ    0x00120089u /* FILE_GENERIC_READ */
#define FILE_WRITE   0x00120116u /* FILE_GENERIC_WRITE */
#define FILE_EXECUTE 0x001200a0u /* FILE_GENERIC_EXECUTE */
#define DELETE	     0x00010000u
/* Content, creation and change; attributes and the list stay readable. */
#define FILE_CONTENT 0x0001013fu

struct description {
	const struct zb_plan *plan;
	struct zb_buf *out;
	struct zb_regions regions;
	struct zb_error *err;
	int rc;
};

static void fail(struct description *d, const char *path, const char *why)
{
	struct zb_buf b = {0};

	if (d->rc)
		return;
	zb_text_escape(&b, path, strlen(path), 200);
	d->rc = zb_fail(d->err, ZB_EUNSUPPORTED,
			"Windows cannot have %s: %s; grant another path",
			zb_buf_str(&b), why);
	zb_buf_done(&b);
}

/* Does @path begin with a drive, /C:? */
static bool has_drive(const char *path)
{
	return path[0] == '/' &&
	       ((path[1] >= 'a' && path[1] <= 'z') ||
		(path[1] >= 'A' && path[1] <= 'Z')) &&
	       path[2] == ':' && (!path[3] || path[3] == '/');
}

/* What Windows would read otherwise than it is written: another file would
 * get the entry. NULL: nothing. */
static const char *misread(const char *path)
{
	const char *name = path + 3;

	while (has_drive(path) && *name == '/') {
		size_t n = strcspn(name + 1, "/");

		if (n && strchr(". ", name[n]))
			return "a name cannot end in a dot or a blank";
		for (size_t i = 1; i <= n; i++)
			if (strchr("<>:\"|?*\\", name[i]))
				return "it has a character that no name has";
		name += n + 1;
	}
	return NULL;
}

/* @s between quotation marks. A path with a drive gets Windows' slashes. */
static void quote(struct description *d, const char *s)
{
	const char *c = has_drive(s) ? s + 1 : s;

	if (zb_utf8_check(s, strlen(s)) != strlen(s))
		fail(d, s, "it is not UTF-8");
	if (misread(s))
		fail(d, s, misread(s));
	zb_buf_addc(d->out, '"');
	for (; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			fail(d, s, "it has a control character");
		if (*c == '/' && has_drive(s))
			zb_buf_adds(d->out, "\\\\");
		else if (*c == '"' || *c == '\\')
			zb_buf_addf(d->out, "\\%c", *c);
		else
			zb_buf_addc(d->out, *c);
	}
	zb_buf_addc(d->out, '"');
}

static void line(struct description *d, const char *what, const char *path)
{
	zb_buf_addf(d->out, "%s ", what);
	quote(d, path);
	zb_buf_addc(d->out, '\n');
}

/* Names are what they are on Windows: no link has to be looked through. */
static char *real_path(const char *path)
{
	return zb_strdup(path);
}

/* What cannot be said */

static bool is_root(const char *path)
{
	return !strcmp(path, "/") ||
	       (has_drive(path) && !path[3 + (path[3] == '/')]);
}

/* Why @p cannot be granted by entries, or NULL. */
static const char *why_not(const struct zb_plan *plan, const struct zb_place *p)
{
	if (p->kind == ZB_PLACE_LINK)
		return NULL;
	if (zb_where(plan, p) == ZB_NOWHERE)
		return "it would have to be mounted there, and Windows has no "
		       "mounts of one's own; grant the real path";
	if (p->kind != ZB_PLACE_GRANT)
		return NULL;
	if (is_root(p->path))
		return "the list of a drive is never changed; grant a "
		       "directory";
	if (p->only.n || p->only_changes.n)
		return "an entry belongs to a file, and files made later would "
		       "have none; grant the directory";
	for (size_t i = 0; i < plan->n_denies; i++) {
		const struct zb_deny *d = &plan->denies[i];

		if (zb_deny_applies(d, p) && zb_pattern_is_glob(d->pattern))
			return "a pattern is denied in it, and files made "
			       "later would not have the entry; grant single "
			       "files or directories that hold nothing to deny";
	}
	return NULL;
}

static enum zb_enforced judge_place(const struct zb_plan *plan,
				    const struct zb_rule_view *r,
				    struct zb_buf *by)
{
	const char *why = r->place ? why_not(plan, r->place) : NULL;

	if (why) {
		zb_buf_adds(by, why);
		return ZB_NOT_ENFORCEABLE;
	}
	zb_buf_adds(by, r->place ? "access list"
				 : "access list (nothing is there now)");
	return ZB_ENFORCED_FLOOR;
}

static enum zb_enforced judge_deny(const struct zb_plan *plan,
				   const struct zb_rule_view *r,
				   struct zb_buf *by)
{
	bool any = false;

	for (size_t i = 0; i < plan->n_places; i++)
		any |= zb_deny_applies(r->deny, &plan->places[i]);
	if (any && zb_pattern_is_glob(r->value)) {
		zb_buf_adds(by, "an entry belongs to a file, and files made "
				"later would not have it; deny single files, "
				"or grant less");
		return ZB_NOT_ENFORCEABLE;
	}
	zb_buf_adds(by, any ? "access list (the file has to be there at start)"
			    : "access list (nothing it covers is granted)");
	return ZB_ENFORCED_FLOOR;
}

/* internetClient opens the internet, all of it; nothing opens less. */
static bool is_whole_internet(const char *rule)
{
	return !strcmp(rule, "*:*");
}

static enum zb_enforced judge_network(const struct zb_rule_view *r,
				      struct zb_buf *by)
{
	if (r->kind == ZB_RULE_CONNECT && is_whole_internet(r->value)) {
		zb_buf_adds(by, "capability internetClient (not the local "
				"network, not this machine)");
		return ZB_ENFORCED_FLOOR;
	}
	zb_buf_adds(by, r->kind == ZB_RULE_CONNECT
				? "a capability opens the whole internet, and "
				  "loopback is closed to AppContainers; only "
				  "*:* can be said"
				: "AppContainers are closed to connections "
				  "from outside; there is nothing to write "
				  "instead");
	return ZB_NOT_ENFORCEABLE;
}

static enum zb_enforced judge_limit(enum zb_limit limit, struct zb_buf *by)
{
	switch ((int)limit) {
	case ZB_LIMIT_MEMORY:
	case ZB_LIMIT_PROCESSES:
	case ZB_LIMIT_CPU_SECONDS:
		zb_buf_adds(by, "job object");
		return ZB_ENFORCED_FLOOR;
	case ZB_LIMIT_OPEN_FILES:
		zb_buf_adds(by, "handles are counted");
		return ZB_ENFORCED_SUPERVISOR;
	case ZB_LIMIT_FILE_SIZE:
		zb_buf_adds(by, "measured in the private places");
		return ZB_ENFORCED_SUPERVISOR;
	default:
		return zb_enforce_limit(limit, by);
	}
}

static enum zb_enforced judge(const struct zb_plan *plan,
			      const struct zb_rule_view *r, struct zb_buf *by)
{
	switch (r->kind) {
	case ZB_RULE_READ:
	case ZB_RULE_WRITE:
	case ZB_RULE_EXEC:
		return judge_place(plan, r, by);
	case ZB_RULE_DENY:
		return judge_deny(plan, r, by);
	case ZB_RULE_STATE:
		zb_buf_adds(by, "data/ would have to be mounted on top of the "
				"code, and Windows has no mounts of one's own; "
				"set fs.state to \"apart\"");
		return ZB_NOT_ENFORCEABLE;
	case ZB_RULE_CONNECT:
	case ZB_RULE_LISTEN:
	case ZB_RULE_UNIX:
		return judge_network(r, by);
	case ZB_RULE_LIMIT:
		return judge_limit(r->limit, by);
	case ZB_RULE_ENV:
	case ZB_RULE_PROTOCOL: /* not asked for */
	case ZB_RULE_REST:
		break;
	}
	zb_buf_adds(by, "AppContainer (LPAC), job object");
	return ZB_ENFORCED_FLOOR;
}

int zb_appcontainer_rules(const struct zb_plan *plan,
			  struct zb_rule_status **out, size_t *n,
			  struct zb_error *err)
{
	return zb_enforce_walk(plan, "on Windows", judge, out, n, err);
}

static void unsupported(struct description *d)
{
	struct zb_rule_status *v = NULL;
	struct zb_error ignored = {0};
	size_t n = 0;

	if (zb_appcontainer_rules(d->plan, &v, &n, &ignored) == ZB_ELIMIT)
		d->rc = zb_fail(d->err, ZB_ELIMIT,
				"description: out of memory");
	for (size_t i = 0; i < n; i++)
		if (v[i].how == ZB_NOT_ENFORCEABLE)
			zb_buf_addf(d->out, "unsupported %s: %s\n", v[i].rule,
				    v[i].by);
	zb_rule_statuses_done(v, n);
	/* What a rule did not ask for, but the plan has: by its path. */
	for (size_t i = 0; i < d->plan->n_places; i++) {
		const struct zb_place *p = &d->plan->places[i];

		if (p->kind == ZB_PLACE_GRANT && why_not(d->plan, p))
			line(d, "closed", p->path);
	}
}

/* Access lists */

/* The rights of files in @r, and those of its directories. */
static unsigned file_mask(unsigned may)
{
	unsigned mask = 0;

	if (may & (ZB_MAY_READ | ZB_MAY_EXEC))
		mask |= FILE_READ;
	if (may & ZB_MAY_EXEC)
		mask |= FILE_EXECUTE;
	if (may & ZB_MAY_WRITE)
		mask |= FILE_WRITE;
	if (may & ZB_MAY_CREATE)
		mask |= DELETE;
	return mask;
}

static unsigned dir_mask(unsigned may)
{
	unsigned mask = 0;

	if (may)
		mask |= FILE_READ | FILE_EXECUTE; /* list, pass through */
	if (may & ZB_MAY_CREATE)
		mask |= FILE_WRITE;
	return mask;
}

static void ace(struct description *d, const char *kind, unsigned mask,
		const char *flags, const char *path)
{
	if (!mask)
		return;
	zb_buf_addf(d->out, "ace %s 0x%08x %s ", kind, mask, flags);
	quote(d, path);
	zb_buf_addc(d->out, '\n');
}

static unsigned rights_of(const struct description *d,
			  const struct zb_region *r)
{
	if (!r || (zb_where(d->plan, r->place) == ZB_HERE &&
		   why_not(d->plan, r->place)))
		return 0;
	/* Windows' own entries: nothing is changed there. */
	if (r->place->kind == ZB_PLACE_SYSTEM)
		return 0;
	return r->rights;
}

static void grant(struct description *d, size_t i)
{
	const struct zb_region *r = &d->regions.v[i];
	const struct zb_region *in = zb_region_around(&d->regions, i);
	unsigned had = rights_of(d, in), have = rights_of(d, r);
	unsigned file_off = file_mask(had) & ~file_mask(have);
	unsigned dir_off = dir_mask(had) & ~dir_mask(have);

	if (!r->path)
		return; /* the AppContainer's own folder */
	if (!r->place->is_dir) {
		ace(d, "deny", file_off, "-", r->path);
		ace(d, "allow", file_mask(have & ~(unsigned)ZB_MAY_CREATE), "-",
		    r->path);
		return;
	}
	ace(d, "deny", file_off, "OI,IO", r->path);
	ace(d, "deny", dir_off, "CI", r->path);
	if ((had & ~have) & ZB_MAY_CREATE)
		ace(d, "deny", DELETE, "CI", r->path);
	ace(d, "allow", dir_mask(have), "CI", r->path);
	ace(d, "allow", file_mask(have), "OI,IO", r->path);
	/* Never of the place itself, and never FILE_DELETE_CHILD: with it a
	 * denied file could be removed through the directory above it. */
	if (have & ZB_MAY_CREATE)
		ace(d, "allow", DELETE, "CI,IO", r->path);
}

/* Denies of single names in places that have no pattern. */
static void deny_names(struct description *d)
{
	for (size_t i = 0; i < d->plan->n_denies; i++) {
		const struct zb_deny *deny = &d->plan->denies[i];
		bool any = false;

		for (size_t k = 0; k < d->plan->n_places; k++) {
			const struct zb_place *p = &d->plan->places[k];

			any |= zb_deny_applies(deny, p) && !why_not(d->plan, p);
		}
		if (!any || zb_pattern_is_glob(deny->pattern))
			continue;
		line(d, "exists", deny->pattern);
		ace(d, "deny", FILE_CONTENT, "OI,CI", deny->pattern);
	}
}

static void access_lists(struct description *d)
{
	zb_buf_adds(d->out, "\n# access\n");
	for (size_t i = 0; i < d->regions.n; i++) {
		const struct zb_region *r = &d->regions.v[i];
		enum zb_where where = zb_where(d->plan, r->place);

		if (where == ZB_MOVED && r->rights) {
			zb_buf_adds(d->out, "moved ");
			quote(d, r->place->path);
			zb_buf_addc(d->out, ' ');
			quote(d, r->path);
			zb_buf_addc(d->out, '\n');
		} else if (where == ZB_MADE && !r->path) {
			zb_buf_adds(d->out, "moved ");
			quote(d, r->place->path);
			zb_buf_adds(d->out, " container-temp\n");
		} else if (where == ZB_NOWHERE &&
			   r->place->kind != ZB_PLACE_DIR) {
			line(d, "hidden", r->place->path);
		} else if (zb_place_stays(d->plan, r->place)) {
			line(d, "stays", r->place->path);
		}
	}
	for (size_t i = 0; i < d->regions.n; i++) {
		const struct zb_region *r = &d->regions.v[i];

		if (r->place->kind == ZB_PLACE_SYSTEM && r->path && r->rights)
			line(d, "system", r->path);
	}
	for (size_t i = 0; i < d->regions.n; i++)
		grant(d, i);
	deny_names(d);
}

/* The process */

static void container(struct description *d)
{
	/* What a less privileged AppContainer needs to start at all. */
	static const char *const always[] = {"lpacCom", "registryRead"};
	const struct zb_rules *connect = &d->plan->scope.net_connect;
	char name[ZB_AC_NAME_MAX + 1], sid[ZB_SID_MAX];
	bool internet = false;

	zb_appcontainer_name(d->plan, name);
	zb_appcontainer_sid(name, sid);
	zb_buf_addf(d->out, "name %s\nsid %s\nlpac 1\n", name, sid);
	for (size_t i = 0; i < ZB_ARRAY_LEN(always); i++) {
		zb_capability_sid(always[i], sid);
		zb_buf_addf(d->out, "capability %s %s\n", always[i], sid);
	}
	for (size_t i = 0; i < connect->n; i++)
		internet |= is_whole_internet(connect->v[i].value);
	if (internet) {
		zb_capability_sid("internetClient", sid);
		zb_buf_addf(d->out, "capability internetClient %s\n", sid);
	}
}

static int by_name(const void *a, const void *b)
{
	const char *x = (*(const struct zb_env_var *const *)a)->name;
	const char *y = (*(const struct zb_env_var *const *)b)->name;

	for (; *x && *y; x++, y++) {
		int cx = *x >= 'a' && *x <= 'z' ? *x - 32 : *x;
		int cy = *y >= 'a' && *y <= 'z' ? *y - 32 : *y;

		if (cx != cy)
			return cx - cy;
	}
	return (*x != '\0') - (*y != '\0');
}

/* Names alone: a value may be a secret. But where a moved place is named, its
 * new name takes its stead. */
static void environment(struct description *d)
{
	size_t n = d->plan->n_env;
	const struct zb_env_var **v = calloc(n + 1, sizeof(*v));

	if (!v) {
		d->rc = zb_fail(d->err, ZB_ELIMIT,
				"description: out of memory");
		return;
	}
	for (size_t i = 0; i < n; i++)
		v[i] = &d->plan->env[i];
	/* Windows wants the block sorted, without regard to case. */
	qsort(v, n, sizeof(*v), by_name);
	for (size_t i = 0; i < n; i++) {
		zb_buf_addf(d->out, "env %s", v[i]->name);
		for (size_t k = 0; k < d->regions.n; k++) {
			const struct zb_region *r = &d->regions.v[k];
			enum zb_where w = zb_where(d->plan, r->place);

			if (strcmp(v[i]->value, r->place->path) != 0)
				continue;
			if (w == ZB_MADE && !r->path) {
				zb_buf_adds(d->out, " = container-temp");
			} else if (w == ZB_MOVED && r->rights) {
				zb_buf_adds(d->out, " = ");
				quote(d, r->path);
			}
		}
		zb_buf_addc(d->out, '\n');
	}
	free(v);
}

static void job(struct description *d)
{
	const struct zb_plan *p = d->plan;
	const struct {
		enum zb_limit limit;
		const char *name;
	} limits[] = {
		{ZB_LIMIT_PROCESSES, "active-process"},
		{ZB_LIMIT_MEMORY, "job-memory"},
		{ZB_LIMIT_CPU_SECONDS, "job-seconds"},
	};

	zb_buf_adds(d->out, "job kill-on-close die-on-unhandled-exception");
	for (size_t i = 0; i < ZB_ARRAY_LEN(limits); i++) {
		const struct zb_limit_value *v =
			&p->scope.limits[limits[i].limit];

		if (v->set && !v->none)
			zb_buf_addf(d->out, " %s=%llu", limits[i].name,
				    (unsigned long long)v->value);
	}
	zb_buf_addc(d->out, '\n');
}

/* PROCESS_CREATION_MITIGATION_POLICY_*: what neither a JIT compiler nor a
 * shell minds. */
static const struct {
	const char *name;
	unsigned shift;
} mitigations[] = {
	{"dep", 0},
	{"heap-terminate", 12},
	{"bottom-up-aslr", 16},
	{"high-entropy-aslr", 20},
	{"no-extension-points", 32},
	{"no-fonts-of-its-own", 48},
	{"no-remote-images", 52},
	{"no-low-label-images", 56},
	{"prefer-system32-images", 60},
};

static void process(struct description *d)
{
	struct zb_buf cmd = {0};
	unsigned long long bits = 0;

	zb_buf_adds(d->out, "\n# process\n");
	line(d, "program", d->plan->exec_path ? d->plan->exec_path : "");
	line(d, "cwd", d->plan->cwd ? d->plan->cwd : "");
	if (zb_windows_command_line(&d->plan->argv, &cmd, d->err))
		d->rc = d->rc ? d->rc : ZB_EUNSUPPORTED;
	zb_buf_adds(d->out, "command-line ");
	zb_text_escape(d->out, zb_buf_str(&cmd), cmd.len, 0);
	zb_buf_addc(d->out, '\n');
	zb_buf_done(&cmd);
	environment(d);
	zb_buf_adds(d->out, "handles stdin stdout stderr\n");
	job(d);
	/* More of them, and PowerShell does not start. */
	zb_buf_adds(d->out, "ui-limits display exit-windows read-clipboard "
			    "system-parameters write-clipboard\n");
	for (size_t i = 0; i < ZB_ARRAY_LEN(mitigations); i++)
		bits |= 1ULL << mitigations[i].shift;
	zb_buf_addf(d->out, "mitigation 0x%016llx", bits);
	for (size_t i = 0; i < ZB_ARRAY_LEN(mitigations); i++)
		zb_buf_addf(d->out, " %s", mitigations[i].name);
	zb_buf_adds(d->out,
		    "\nflags suspended no-window unicode-environment "
		    "extended-startupinfo\n"
		    "verify is-appcontainer sid capabilities job-limits "
		    "mitigation, while suspended, else terminate\n");
}

int zb_appcontainer_render(const struct zb_plan *plan, struct zb_buf *out,
			   struct zb_error *err)
{
	struct description d = {.plan = plan, .out = out, .err = err};
	size_t at = out->len;
	int rc = zb_regions_find(&d.regions, plan, real_path, err);

	if (rc)
		return rc;
	zb_buf_addf(out, "# zotbox description for Windows: extension %s\n",
		    plan->name);
	container(&d);
	unsupported(&d);
	access_lists(&d);
	process(&d);
	zb_regions_done(&d.regions);
	if (!d.rc && out->failed)
		d.rc = zb_fail(err, ZB_ELIMIT, "description: out of memory");
	if (d.rc && !out->failed) {
		out->len = at; /* nobody gets half a description */
		if (out->data)
			out->data[at] = '\0';
	}
	return d.rc;
}
