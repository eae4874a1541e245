/* bwrap_rules.c - how Linux enforces each rule of a plan. */
#include "bwrap_args.h"

#include "cleanup.h"
#include "enforce.h"
#include "path_match.h"

#include <stdlib.h>
#include <string.h>

/* A grant that has a place of its own. */
static enum zb_enforced judge_place(enum zb_rule_kind kind,
				    const struct zb_place *p, struct zb_buf *by)
{
	if (kind == ZB_RULE_EXEC && (p->carved || p->brokered)) {
		zb_buf_adds(by, "nothing can be executed from a place with "
				"carve-outs in it; name the programs");
		return ZB_NOT_ENFORCEABLE;
	}
	if (kind == ZB_RULE_WRITE && p->carved) {
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

/* What the resolver had to say of the rule from @o: of
 * 'scope fs.read "/x" WORDS (FILE: KEY)' the WORDS, heap; NULL: nothing. */
static char *words_on(const struct zb_plan *plan, const struct zb_origin *o)
{
	struct zb_buf end = {0};
	char *words = NULL;

	zb_buf_adds(&end, " (");
	zb_origin_text(o, &end);
	zb_buf_addc(&end, ')');
	for (size_t i = 0; o->key && !words && i < plan->notices.n; i++) {
		const char *s = plan->notices.v[i];
		const char *from = strstr(s, "\" ");
		size_t n = strlen(s);

		if (from && n > end.len &&
		    !strcmp(s + n - end.len, zb_buf_str(&end)) &&
		    from + 2 < s + n - end.len)
			words = zb_strndup(
				from + 2, n - end.len - (size_t)(from + 2 - s));
	}
	zb_buf_done(&end);
	return words;
}

/* Where @value leads, but for links and patterns; heap, NULL: it names no
 * path, or one that is not known. */
static char *path_of(const struct zb_plan *plan, const char *value)
{
	const struct {
		const char *name, *dir;
	} vars[] = {
		{"~", plan->home},
		{"${home}", plan->home},
		{"${project}", plan->project},
		{"${extension_dir}", plan->extension_real},
		{"${data_dir}", plan->data_dir},
		{"${zot_home}", plan->zot_home_real},
		{"${tmp}", "/tmp"},
		{"", ""},
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(vars); i++) {
		size_t n = strlen(vars[i].name);
		const char *rest = value + n;

		if (strncmp(value, vars[i].name, n) != 0 ||
		    (*rest && *rest != '/') || (!n && !*rest))
			continue;
		return vars[i].dir ? zb_strf("%s%.*s", vars[i].dir,
					     (int)strcspn(rest, "*?"), rest)
				   : NULL;
	}
	return NULL;
}

/* A grant without a place of its own: why, and what holds then. */
static enum zb_enforced judge_placeless(const struct zb_plan *plan,
					const struct zb_rule_view *r,
					struct zb_buf *by)
{
	zb_auto(free) char *words = words_on(plan, r->origin);
	zb_auto(free) char *path = path_of(plan, r->value);
	enum zb_enforced how = ZB_ENFORCED_FLOOR;
	int i = path ? zb_plan_place(plan, path) : -1;
	const struct zb_place *p = i < 0 ? NULL : &plan->places[i];

	if (words) {
		zb_buf_addf(by, "mount (no place of its own: it %s)", words);
	} else if (!strncmp(r->value, "${project}", 10) && !plan->project) {
		zb_buf_adds(by, "mount (nothing: there is no project that "
				"could be granted)");
	} else if (path && !p) {
		zb_buf_adds(by, "mount (nothing is shown there)");
	} else if (!p) {
		zb_buf_adds(by, "mount, Landlock (another rule, or what the "
				"program needs, shows it)");
	} else if (p->kind == ZB_PLACE_GRANT) {
		how = judge_place(r->kind, p, by);
		zb_buf_adds(by, " (shown by ");
		zb_origin_text(&p->origin, by);
		zb_buf_addc(by, ')');
	} else if (p->kind == ZB_PLACE_SYSTEM || p->kind == ZB_PLACE_RUNTIME) {
		zb_buf_adds(by, "mount, Landlock (shown as what the program "
				"needs)");
	} else if (p->kind == ZB_PLACE_EXTENSION) {
		zb_buf_adds(by, "mount, Landlock (it is the extension's "
				"installed code)");
	} else {
		zb_buf_adds(by, "mount, Landlock (it is the extension's own)");
	}
	return how;
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
		return r->place ? judge_place(r->kind, r->place, by)
				: judge_placeless(plan, r, by);
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
