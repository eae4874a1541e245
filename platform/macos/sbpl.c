/* sbpl.c - the plan as a profile for the macOS sandbox.
 *
 * Theory. A profile is a list of (allow OP FILTER...) and (deny OP FILTER...),
 * and two models of who wins are about: the popular one, in which the last
 * rule that matches decides, and the measured one, in which rules that name
 * exactly the operation come first, then those without a filter, then the
 * operation's parent (file-read-data, file-read*, file*, default). The profile
 * is written so that both give the same answers:
 *
 *	1. (deny default), and at once a deny for each operation that is open
 *	   although the default is closed.
 *	2. Grants name file-read*, file-write*, process-exec* and nothing finer,
 *	   parents before what lies in them, so that the last match is the
 *	   deepest place. A place with fewer rights than the one around it gets
 *	   a deny of the same name.
 *	3. Then denies. They name finer operations too (file-read-data: a name
 *	   and its stat stay visible), and no allow of those ever follows.
 *	4. Last the ancestors of all that was granted, for file-read-metadata
 *	   alone, which no deny names.
 *
 * The kernel matches resolved paths and resolves no filter, so a filter below
 * /tmp, /var, /etc or /home is dead, and a dead deny fails open: real_path().
 * Names are compared without case by most volumes, so what a deny adds to the
 * path it stands under is matched without case.
 *
 * There are no mounts. What the plan shows under a name that is not its own is
 * moved, or left out with the reason (sbpl.h). There is no broker either: a
 * carve-out is a regular expression that the kernel matches, also for files
 * made later.
 */
#include "sbpl.h"

#include "cleanup.h"
#include "enforce.h"
#include "path_match.h"
#include "regions.h"
#include "sbpl_internal.h"
#include "text.h"

#include <string.h>

/* What a profile can say about a place. */
enum {
	R = 1,
	W = 2,
	X = 4
};

struct profile {
	const struct zb_plan *plan;
	struct zb_buf *out;
	struct zb_regions regions;
	struct zb_strv metadata; /* names that may be looked up */
	struct zb_error *err;
	int rc; /* the first failure; later additions are ignored */
};

static const char *const base_dirs[] = {
	"/System/Cryptexes/OS",
	"/System/Library",
	"/System/Volumes/Preboot/Cryptexes/OS",
	"/private/var/db/dyld",
	"/usr/lib",
};

/* Operations that stay open under (deny default) come first. */
static const char prologue[] =
	"(deny file-link file-clone nvram* iokit-get-properties "
	"process-info*)\n"
	"(allow process-info* (target self))\n"
	"(allow process-fork)\n"
	"(allow signal (target same-sandbox))\n"
	"(allow sysctl-read\n"
	"\t(sysctl-name \"kern.argmax\")\n"
	"\t(sysctl-name \"kern.bootargs\")\n"
	"\t(sysctl-name \"kern.hostname\")\n"
	"\t(sysctl-name \"kern.maxfilesperproc\")\n"
	"\t(sysctl-name \"kern.osproductversion\")\n"
	"\t(sysctl-name \"kern.osrelease\")\n"
	"\t(sysctl-name \"kern.ostype\")\n"
	"\t(sysctl-name \"kern.osversion\")\n"
	"\t(sysctl-name \"kern.usrstack64\")\n"
	"\t(sysctl-name \"kern.version\")\n"
	"\t(sysctl-name \"security.mac.lockdown_mode_state\")\n"
	"\t(sysctl-name \"vm.loadavg\")\n"
	"\t(sysctl-name-prefix \"hw.\")\n"
	"\t(sysctl-name-prefix \"kern.tcsm_\"))\n"
	"(allow mach-lookup\n"
	"\t(global-name \"com.apple.system.logger\")\n"
	"\t(global-name \"com.apple.system.notification_center\")\n"
	"\t(global-name \"com.apple.system.opendirectoryd.libinfo\"))\n";

static void out_of_memory(struct profile *p)
{
	if (!p->rc)
		p->rc = zb_fail(p->err, ZB_ELIMIT, "profile: out of memory");
}

static void fail(struct profile *p, const char *path, const char *why)
{
	struct zb_buf b = {0};

	if (p->rc)
		return;
	zb_text_escape(&b, path, strlen(path), 200);
	p->rc = zb_fail(p->err, ZB_EUNSUPPORTED,
			"a macOS sandbox profile cannot name %s: %s; grant "
			"another path",
			zb_buf_str(&b), why);
	zb_buf_done(&b);
}

/* @s as a string literal. Nothing that could end it, or that a reader might
 * take for something else, gets in: the rest is refused. */
static void quote(struct profile *p, const char *s)
{
	struct zb_buf b = {0};

	for (const char *c = s; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f) {
			fail(p, s, "it has a control character");
			break;
		}
		if (*c == '"' || *c == '\\')
			zb_buf_addc(&b, '\\');
		zb_buf_addc(&b, *c);
	}
	if (zb_utf8_check(s, strlen(s)) != strlen(s))
		fail(p, s, "it is not UTF-8");
	if (b.len > ZB_SBPL_STRING_MAX)
		fail(p, s, "it is longer than 1025 bytes");
	zb_buf_addf(p->out, "\"%s\"", zb_buf_str(&b));
	zb_buf_done(&b);
}

/* Links on every Mac. */
static const struct {
	const char *link, *target;
} links[] = {
	{"/etc", "/private/etc"},
	{"/tmp", "/private/tmp"},
	{"/var", "/private/var"},
	{"/home", "/System/Volumes/Data/home"},
};

/* The name that the kernel sees. Heap. */
static char *real_path(const char *path)
{
	for (size_t i = 0; i < ZB_ARRAY_LEN(links); i++)
		if (zb_path_below(path, links[i].link))
			return zb_strf("%s%s", links[i].target,
				       path + strlen(links[i].link));
	return zb_strdup(path);
}

/* @pattern as the kernel sees what it matches: itself, and once more for each
 * link that a wildcard at its very beginning can stand for. (`**` needs none:
 * it takes the longer way as well.) */
static int real_patterns(const char *pattern, struct zb_strv *out)
{
	size_t n = 1 + strcspn(pattern + 1, "/");
	zb_auto(free) char *first = zb_strndup(pattern, n);
	int rc = zb_strv_take(out, real_path(pattern));

	if (!first)
		return ZB_ELIMIT;
	if (!zb_pattern_is_glob(first) || !strcmp(first, "/**"))
		return rc;
	for (size_t i = 0; !rc && i < ZB_ARRAY_LEN(links); i++)
		if (zb_pattern_match(first, links[i].link))
			rc = zb_strv_addf(out, "%s%s", links[i].target,
					  pattern + n);
	return rc;
}

/* quote() of the real path of @path. */
static void quote_real(struct profile *p, const char *path)
{
	zb_auto(free) char *real = real_path(path);

	if (real)
		quote(p, real);
	else
		out_of_memory(p);
}

static unsigned rights_of(const struct zb_region *r)
{
	unsigned may = r->rights, have = 0;

	if (may & (ZB_MAY_READ | ZB_MAY_LIST | ZB_MAY_EXEC))
		have |= R; /* a program that is started is mapped */
	if (may & ZB_MAY_EXEC)
		have |= X;
	/* In a directory file-write* creates as well. */
	if ((may & ZB_MAY_WRITE) &&
	    ((may & ZB_MAY_CREATE) || !r->place->is_dir))
		have |= W;
	return have;
}

/* Regular expressions */

/* One character of a file name as POSIX has it. */
static void add_char(struct zb_buf *b, char c, bool fold)
{
	bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

	if (letter && fold)
		zb_buf_addf(b, "[%c%c]", c | 0x20, c & ~0x20);
	else if (strchr(".[]{}()*+?^$|\\", c))
		zb_buf_addf(b, "\\%c", c);
	else
		zb_buf_addc(b, c);
}

/* One component; `?` is one character, so it takes the bytes beyond ASCII
 * that may belong to it. */
static void add_component(struct zb_buf *b, const char *s, size_t n, bool fold)
{
	if (n == 2 && !memcmp(s, "**", 2)) {
		zb_buf_adds(b, "(/[^/]+)*");
		return;
	}
	zb_buf_addc(b, '/');
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '*')
			zb_buf_adds(b, "[^/]*");
		else if (s[i] == '?')
			zb_buf_adds(b, "[^/][^ -~]*");
		else
			add_char(b, s[i], fold);
	}
}

/* The first @n bytes of @pattern (real path, whole components) as a regular
 * expression, without case from @fold on. @below: also what is below it. */
static char *regex_of(const char *pattern, size_t n, size_t fold, bool below)
{
	struct zb_buf b = {0};
	size_t i = 0;

	zb_buf_addc(&b, '^');
	while (i < n) {
		size_t len = strcspn(pattern + i + 1, "/");

		if (len) /* "/" has none */
			add_component(&b, pattern + i + 1, len, i >= fold);
		i += len + 1;
	}
	zb_buf_adds(&b, below ? "(/.*)?$" : "$");
	return zb_buf_steal(&b);
}

/* Grants */

/* (KIND "PATH") */
static void filter_as(struct profile *p, const char *kind,
		      const struct zb_region *r)
{
	zb_buf_addf(p->out, "(%s ", kind);
	if (r->path)
		quote(p, r->path);
	else
		zb_buf_adds(p->out, "(param \"TMP\")");
	zb_buf_addc(p->out, ')');
}

static void filter(struct profile *p, const struct zb_region *r)
{
	filter_as(p, r->place->is_dir ? "subpath" : "literal", r);
}

/* Of what is in @r, to which names does the right @bit hold? */
static const struct zb_strv *only_of(const struct zb_region *r, unsigned bit)
{
	return bit == W ? &r->place->only_changes : &r->place->only;
}

/* A grant with a pattern: what matches, and to read the list of its directory.
 */
static void filter_only(struct profile *p, const struct zb_region *r,
			unsigned bit)
{
	const struct zb_strv *only = only_of(r, bit);

	if (bit != W)
		filter_as(p, "literal", r);
	for (size_t i = 0; i < only->n; i++) {
		zb_auto(free) char *real = real_path(only->v[i]);
		zb_auto(free) char *re = NULL;

		if (real)
			re = regex_of(real, strlen(real), SIZE_MAX, true);
		if (!re) {
			out_of_memory(p);
			return;
		}
		zb_buf_adds(p->out, "\n\t(regex ");
		quote(p, re);
		zb_buf_addc(p->out, ')');
	}
}

static const struct {
	unsigned bit;
	const char *operation;
} operations[] = {
	{R, "file-read*"},
	{W, "file-write*"},
	{X, "process-exec*"},
};

static void grant(struct profile *p, size_t i)
{
	const struct zb_region *r = &p->regions.v[i],
			       *in = zb_region_around(&p->regions, i);
	unsigned had = in ? rights_of(in) : 0, have = rights_of(r);
	unsigned off = had & ~have, on = have & ~had;

	for (size_t k = 0; k < ZB_ARRAY_LEN(operations); k++) {
		unsigned bit = operations[k].bit;

		if (only_of(r, bit)->n) {
			off |= had & bit;
			on |= have & bit;
		} else if (in && only_of(in, bit)->n) {
			on |= have & bit;
		}
	}
	for (size_t k = 0; k < ZB_ARRAY_LEN(operations); k++) {
		if (!(off & operations[k].bit))
			continue;
		zb_buf_addf(p->out, "(deny %s ", operations[k].operation);
		filter(p, r);
		zb_buf_adds(p->out, ")\n");
	}
	for (size_t k = 0; k < ZB_ARRAY_LEN(operations); k++) {
		if (!(on & operations[k].bit))
			continue;
		zb_buf_addf(p->out, "(allow %s ", operations[k].operation);
		if (only_of(r, operations[k].bit)->n)
			filter_only(p, r, operations[k].bit);
		else
			filter(p, r);
		zb_buf_adds(p->out, ")\n");
	}
}

/* Nodes of /dev that any program wants; no terminal is among them. */
static void grant_devices(struct profile *p)
{
	bool has_dev = false;

	for (size_t i = 0; i < p->plan->n_places; i++)
		has_dev |= p->plan->places[i].kind == ZB_PLACE_DEV;
	if (!has_dev)
		return;
	zb_buf_adds(p->out,
		    "(allow file-read* file-write-data file-ioctl\n"
		    "\t(literal \"/dev/null\") (literal \"/dev/zero\")\n"
		    "\t(literal \"/dev/random\") "
		    "(literal \"/dev/urandom\")\n"
		    "\t(subpath \"/dev/fd\"))\n");
}

static void grants(struct profile *p)
{
	zb_buf_adds(p->out, "\n; what exists for it\n"
			    "(allow file-read*\n\t(literal \"/\")");
	for (size_t i = 0; i < ZB_ARRAY_LEN(base_dirs); i++)
		zb_buf_addf(p->out, "\n\t(subpath \"%s\")", base_dirs[i]);
	zb_buf_adds(p->out, ")\n");
	grant_devices(p);
	for (size_t i = 0; i < p->regions.n; i++)
		grant(p, i);
}

/* Denies */

static bool applies(const struct zb_deny *d, const struct zb_region *r)
{
	return r->path && r->rights && zb_deny_applies(d, r->place);
}

/* A deny in one grant: its pattern as the kernel sees it, and from where on
 * case does not matter. */
struct hold {
	const struct zb_deny *deny;
	const struct zb_region *in;
	const char *real;
	size_t fold;
};

/* What @re matches in @h's grant, less what no deny reaches into: private
 * places and what the extension runs from. Grants inside those have a deny of
 * their own. */
static void deny_filter(struct profile *p, const struct hold *h, const char *re)
{
	size_t at = p->out->len, n = 0;

	zb_buf_adds(p->out, "(require-all (regex ");
	quote(p, re);
	zb_buf_addc(p->out, ')');
	if (!zb_path_below(h->real, h->in->path)) {
		zb_buf_addc(p->out, ' ');
		filter(p, h->in);
		n++;
	}
	for (size_t i = 0; i < p->regions.n; i++) {
		const struct zb_region *r = &p->regions.v[i];
		unsigned rights =
			rights_of(r) & (h->deny->built_in ? W : R | W | X);

		if (!rights || !r->path || r == h->in ||
		    r->place->kind == ZB_PLACE_GRANT ||
		    !zb_path_below(r->path, h->in->path) ||
		    !zb_pattern_touches(h->real, r->path))
			continue;
		zb_buf_adds(p->out, " (require-not ");
		filter(p, r);
		zb_buf_addc(p->out, ')');
		n++;
	}
	if (n) {
		zb_buf_addc(p->out, ')');
		return;
	}
	p->out->len = at;
	zb_buf_adds(p->out, "(regex ");
	quote(p, re);
	zb_buf_addc(p->out, ')');
}

/* A directory on the way to what is denied must not be moved away, nor another
 * be moved there: the path would match no more, or too late. What follows a
 * `**` matches wherever it is moved to. */
static void guard_ancestors(struct profile *p, const struct hold *h)
{
	for (size_t i = h->fold; h->real[i] == '/';) {
		size_t n = strcspn(h->real + i + 1, "/");
		bool any = n == 2 && !memcmp(h->real + i + 1, "**", 2);
		zb_auto(free) char *re = NULL;

		i += n + 1;
		if (!h->real[i] || !strcmp(h->real + i, "/**"))
			return;
		if (any)
			continue;
		re = regex_of(h->real, i, h->fold, false);
		if (!re) {
			out_of_memory(p);
			return;
		}
		zb_buf_adds(p->out,
			    "(deny file-write-create file-write-unlink ");
		deny_filter(p, h, re);
		zb_buf_adds(p->out, ")\n");
	}
}

static void deny_in(struct profile *p, const struct zb_deny *d,
		    const struct zb_region *in, const char *real)
{
	struct hold h = {.deny = d, .in = in, .real = real};
	zb_auto(free) char *re = NULL;

	if (in->path[1] && zb_path_below(real, in->path))
		h.fold = strlen(in->path);
	re = regex_of(real, strlen(real), h.fold, true);
	if (!re) {
		out_of_memory(p);
		return;
	}
	zb_buf_addf(p->out, "(deny %s ",
		    d->built_in ? "file-write*"
				: "file-read-data file-read-xattr "
				  "file-write* process-exec*");
	deny_filter(p, &h, re);
	zb_buf_adds(p->out, ")\n");
	if (rights_of(in) & W)
		guard_ancestors(p, &h);
}

static void deny(struct profile *p, const struct zb_deny *d)
{
	struct zb_strv real = {0};

	if (real_patterns(d->pattern, &real))
		out_of_memory(p);
	for (size_t i = 0; i < p->regions.n && !p->rc; i++) {
		const struct zb_region *r = &p->regions.v[i];

		for (size_t k = 0; applies(d, r) && k < real.n; k++)
			if (zb_pattern_touches(real.v[k], r->path))
				deny_in(p, d, r, real.v[k]);
	}
	zb_strv_done(&real);
}

static void denies(struct profile *p)
{
	zb_buf_adds(p->out, "\n; what is kept from it\n");
	/* What may be changed may not come and go itself. */
	for (size_t i = 0; i < p->regions.n; i++) {
		if (!(rights_of(&p->regions.v[i]) & W))
			continue;
		zb_buf_adds(p->out,
			    "(deny file-write-create file-write-unlink ");
		filter_as(p, "literal", &p->regions.v[i]);
		zb_buf_adds(p->out, ")\n");
	}

	for (size_t i = 0; i < p->plan->n_denies; i++)
		deny(p, &p->plan->denies[i]);
}

/* Network */

static void network(struct profile *p)
{
	const struct zb_scope *s = &p->plan->scope;

	for (size_t i = 0; i < s->net_connect.n; i++) {
		zb_auto(free) char *to =
			zb_sbpl_endpoint(s->net_connect.v[i].value);

		if (to)
			zb_buf_addf(p->out,
				    "(allow network-outbound (remote ip "
				    "\"%s\"))\n",
				    to);
	}
	for (size_t i = 0; i < s->net_listen.n; i++) {
		zb_auto(free) char *at =
			zb_sbpl_endpoint(s->net_listen.v[i].value);

		if (at && at[0] != '*')
			zb_buf_addf(p->out,
				    "(allow network-bind network-inbound "
				    "(local ip \"%s\"))\n",
				    at);
	}
	for (size_t i = 0; i < s->net_unix.n; i++) {
		if (!zb_sbpl_plain_path(s->net_unix.v[i].value))
			continue;
		zb_buf_adds(p->out, "(allow network-outbound (literal ");
		quote_real(p, s->net_unix.v[i].value);
		zb_buf_adds(p->out, "))\n");
	}
}

/* Looking names up */

static void add_name(struct profile *p, const char *path)
{
	if (!strcmp(path, "/") || zb_strv_has(&p->metadata, path))
		return;
	if (zb_strv_add(&p->metadata, path))
		out_of_memory(p);
}

/* @path is found by looking up every directory above it. */
static void add_ancestors(struct profile *p, const char *path)
{
	zb_auto(free) char *dir = zb_path_dir(path);

	while (dir && strcmp(dir, "/") != 0 && !p->rc) {
		char *up = zb_path_dir(dir);

		add_name(p, dir);
		free(dir);
		dir = up;
	}
	if (!dir)
		out_of_memory(p);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void metadata(struct profile *p)
{
	for (size_t i = 0; i < p->regions.n && !p->rc; i++) {
		const struct zb_region *r = &p->regions.v[i];

		if (!r->path || !r->rights)
			continue;
		add_ancestors(p, r->path);
		/* ... as spelled, when that goes through a link */
		if (strcmp(r->path, r->place->path) != 0)
			add_ancestors(p, r->place->path);
	}
	for (size_t i = 0; i < p->regions.n; i++) {
		const struct zb_region *r = &p->regions.v[i];

		if (!r->rights || !r->place->only.n)
			continue;
		zb_buf_adds(p->out, "(allow file-read-metadata ");
		filter(p, r);
		zb_buf_adds(p->out, ")\n");
	}
	for (size_t i = 0; i < p->plan->n_places && !p->rc; i++) {
		const struct zb_place *pl = &p->plan->places[i];

		if (pl->kind != ZB_PLACE_LINK)
			continue;
		add_name(p, pl->path);
		add_ancestors(p, pl->path);
	}
	if (!p->metadata.n)
		return;
	qsort(p->metadata.v, p->metadata.n, sizeof(char *), by_name);
	zb_buf_adds(p->out, "\n; the way there: names and stat, no content\n");
	for (size_t i = 0; i < p->metadata.n; i++) {
		/* The compiler stops at 64 Ki of one rule. */
		bool first = i % 64 == 0;
		bool last = i % 64 == 63 || i + 1 == p->metadata.n;

		zb_buf_adds(p->out, first ? "(allow file-read-metadata\n" : "");
		zb_buf_adds(p->out, "\t(literal ");
		quote(p, p->metadata.v[i]);
		zb_buf_adds(p->out, last ? "))\n" : ")\n");
	}
}

/* The whole */

static void note(struct profile *p, const char *what, const char *path)
{
	zb_buf_addf(p->out, ";; %s ", what);
	quote(p, path);
}

static void notes(struct profile *p)
{
	for (size_t i = 0; i < ZB_ARRAY_LEN(base_dirs); i++) {
		note(p, "base", base_dirs[i]);
		zb_buf_addc(p->out, '\n');
	}
	for (size_t i = 0; i < p->regions.n; i++) {
		const struct zb_region *r = &p->regions.v[i];
		enum zb_where where = zb_where(p->plan, r->place);

		if (where == ZB_MOVED && r->rights) {
			note(p, "moved", r->place->path);
			zb_buf_addc(p->out, ' ');
			quote(p, r->path);
		} else if (where == ZB_MADE && !r->path) {
			note(p, "moved", r->place->path);
			zb_buf_adds(p->out, " (param \"TMP\")");
		} else if (zb_place_stays(p->plan, r->place)) {
			note(p, "stays", r->place->path);
		} else if (where == ZB_NOWHERE &&
			   r->place->kind != ZB_PLACE_DIR) {
			note(p, "hidden", r->place->path);
		} else {
			continue;
		}
		zb_buf_addc(p->out, '\n');
	}
}

static void unsupported(struct profile *p)
{
	struct zb_rule_status *v = NULL;
	struct zb_error ignored = {0};
	size_t n = 0;

	if (zb_sbpl_rules(p->plan, &v, &n, &ignored) == ZB_ELIMIT)
		out_of_memory(p);
	for (size_t i = 0; i < n; i++)
		if (v[i].how == ZB_NOT_ENFORCEABLE)
			zb_buf_addf(p->out, ";; unsupported %s: %s\n",
				    v[i].rule, v[i].by);
	zb_rule_statuses_done(v, n);
}

int zb_sbpl_render(const struct zb_plan *plan, struct zb_buf *out,
		   struct zb_error *err)
{
	struct profile p = {.plan = plan, .out = out, .err = err};
	size_t at = out->len;
	int rc = zb_regions_find(&p.regions, plan, real_path, err);

	if (rc)
		return rc;
	zb_buf_addf(out, ";; zotbox profile for macOS: extension %s\n",
		    plan->name);
	notes(&p);
	unsupported(&p);
	zb_buf_addf(out,
		    "(version 1)\n"
		    "(deny default (with message \"zotbox %s\"))\n%s",
		    plan->name, prologue);
	grants(&p);
	denies(&p);
	network(&p);
	metadata(&p);
	zb_regions_done(&p.regions);
	zb_strv_done(&p.metadata);
	if (!p.rc && out->failed)
		p.rc = zb_fail(err, ZB_ELIMIT, "profile: out of memory");
	if (p.rc && !out->failed) {
		out->len = at; /* nobody gets half a profile */
		if (out->data)
			out->data[at] = '\0';
	}
	return p.rc;
}
