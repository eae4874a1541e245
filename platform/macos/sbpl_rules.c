/* sbpl_rules.c - how macOS enforces each rule of a plan: with a profile alone.
 * There are no mounts and there is no broker, so what needs either is not
 * enforceable, and says what to write instead. */
#include "sbpl.h"

#include "cleanup.h"
#include "enforce.h"
#include "path_match.h"
#include "regions.h"
#include "sbpl_internal.h"

#include <string.h>

/* "localhost:9224", "127.0.0.1:80", "*:443": what a filter can say, as its
 * text, or NULL for names, other addresses and lists of ports. */
char *zb_sbpl_endpoint(const char *rule)
{
	static const struct {
		const char *written, *said;
	} hosts[] = {
		{"localhost", "localhost"},
		{"127.0.0.1", "localhost"},
		{"[::1]", "localhost"},
		{"*", "*"},
	};
	const char *colon = strrchr(rule, ':');
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;

	if (!colon || (strcmp(colon + 1, "*") != 0 &&
		       (!digits || colon[1 + digits] || digits > 5)))
		return NULL;
	for (size_t i = 0; i < ZB_ARRAY_LEN(hosts); i++)
		if (strlen(hosts[i].written) == (size_t)(colon - rule) &&
		    !strncmp(rule, hosts[i].written, (size_t)(colon - rule)))
			return zb_strf("%s%s", hosts[i].said, colon);
	return NULL;
}

/* A path that a profile can name, of those that net.unix may hold. */
bool zb_sbpl_plain_path(const char *s)
{
	return s[0] == '/' && !zb_pattern_is_glob(s);
}

static bool is_ascii(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s >= 0x80)
			return false;
	return true;
}

/* Is a directory above what @pattern matches named by a wildcard? Then it
 * cannot be kept from being moved without keeping every name from it. */
static bool has_loose_ancestor(const char *pattern)
{
	size_t i = 0;

	while (pattern[i]) {
		size_t n = strcspn(pattern + i + 1, "/");
		const char *name = pattern + i + 1;

		i += n + 1;
		if (!pattern[i] || !strcmp(pattern + i, "/**"))
			return false;
		if (n == 2 && !memcmp(name, "**", 2))
			continue;
		if (memchr(name, '*', n) || memchr(name, '?', n))
			return true;
	}
	return false;
}

static enum zb_enforced judge_place(const struct zb_plan *plan,
				    const struct zb_rule_view *r,
				    struct zb_buf *by)
{
	if (!r->place) {
		zb_buf_adds(by, "sandbox profile (nothing is there now)");
		return ZB_ENFORCED_FLOOR;
	}
	if (r->place->kind != ZB_PLACE_LINK &&
	    zb_where(plan, r->place) == ZB_NOWHERE) {
		zb_buf_adds(by, "it would have to be mounted there, and macOS "
				"has no mounts of one's own; grant the real "
				"path");
		return ZB_NOT_ENFORCEABLE;
	}
	zb_buf_adds(by, "sandbox profile");
	return ZB_ENFORCED_FLOOR;
}

/* Why @pattern cannot be kept in @p, or NULL. */
static const char *why_not(const char *pattern, const struct zb_place *p)
{
	/* What the pattern adds to the name of the place itself. */
	const char *rest = zb_path_below(pattern, p->path) && p->path[1]
				   ? pattern + strlen(p->path)
				   : pattern;

	if (!is_ascii(rest))
		return "a name with letters beyond ASCII has several spellings "
		       "on a Mac's disk, and a profile knows one; put a "
		       "wildcard in its place";
	if ((p->rights & (ZB_MAY_WRITE | ZB_MAY_CREATE)) &&
	    has_loose_ancestor(rest))
		return "what is denied could be moved with the directory above "
		       "it, which the pattern does not name; begin it with **/";
	return NULL;
}

static enum zb_enforced judge_deny(const struct zb_plan *plan,
				   const struct zb_rule_view *r,
				   struct zb_buf *by)
{
	bool any = false;

	for (size_t i = 0; i < plan->n_places; i++) {
		const struct zb_place *p = &plan->places[i];
		const char *why;

		if (!zb_deny_applies(r->deny, p))
			continue;
		any = true;
		why = why_not(r->value, p);
		if (!why)
			continue;
		zb_buf_adds(by, why);
		return ZB_NOT_ENFORCEABLE;
	}
	zb_buf_adds(by, any ? "sandbox profile (regular expression)"
			    : "sandbox profile (nothing it covers is granted)");
	return ZB_ENFORCED_FLOOR;
}

static enum zb_enforced judge_network(const struct zb_rule_view *r,
				      struct zb_buf *by)
{
	zb_auto(free) char *end = zb_sbpl_endpoint(r->value);
	bool known = end;

	if (r->kind == ZB_RULE_UNIX)
		known = zb_sbpl_plain_path(r->value);
	if (r->kind == ZB_RULE_LISTEN && end && end[0] == '*')
		known = false;
	if (known) {
		zb_buf_adds(by, "sandbox profile");
		return ZB_ENFORCED_FLOOR;
	}
	zb_buf_adds(by,
		    r->kind == ZB_RULE_UNIX
			    ? "a profile names sockets by their full path"
			    : "a profile tells localhost from everything, "
			      "and knows single ports; name localhost:PORT");
	return ZB_NOT_ENFORCEABLE;
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
				"code, and macOS has no mounts of one's own; "
				"set fs.state to \"apart\"");
		return ZB_NOT_ENFORCEABLE;
	case ZB_RULE_CONNECT:
	case ZB_RULE_LISTEN:
	case ZB_RULE_UNIX:
		return judge_network(r, by);
	case ZB_RULE_LIMIT:
		return zb_enforce_limit(r->limit, by);
	case ZB_RULE_ENV:
	case ZB_RULE_PROTOCOL: /* not asked for */
	case ZB_RULE_REST:
		break;
	}
	zb_buf_adds(by, "sandbox profile (deny default)");
	return ZB_ENFORCED_FLOOR;
}

int zb_sbpl_rules(const struct zb_plan *plan, struct zb_rule_status **out,
		  size_t *n, struct zb_error *err)
{
	return zb_enforce_walk(plan, "on macOS", judge, out, n, err);
}
