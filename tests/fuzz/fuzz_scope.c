/* fuzz_scope.c - scope files: whatever is taken survives being laid over
 * itself and being changed, becomes a plan on some host or is refused with a
 * text that may be shown, and no plan allows what a deny covers. */
#include "check.h"
#include "cleanup.h"
#include "evaluator.h"
#include "path_match.h"

#include <string.h>

/* A host in which the last letter of a name says what it is, so that every
 * path leads somewhere and links go anywhere. */
static void look(void *ctx, const char *path, struct zb_path_fact *out)
{
	size_t n = strlen(path);

	(void)ctx;
	switch (n ? path[n - 1] : 0) {
	case 'x':
		return;
	case 'l':
		out->is_link = out->exists = true;
		out->link = zb_strdup(n % 2 ? "/home/u/src" : "../h/l");
		return;
	case 't':
	case 'v':
		out->exists = out->is_file = true;
		return;
	default:
		out->exists = out->is_dir = true;
	}
}

static void expand(void *ctx, const char *pattern, struct zb_strv *out)
{
	(void)ctx;
	zb_strv_addf(out, "%s.t", pattern);
}

static int find_program(void *ctx, const char *name, struct zb_program *out,
			struct zb_error *err)
{
	(void)ctx;
	if (strlen(name) % 5 == 0)
		return zb_fail(err, ZB_EUSAGE, "not found in PATH");
	out->exec_path =
		name[0] == '/' ? zb_strdup(name) : zb_strf("/bin/%s", name);
	return out->exec_path ? 0 : ZB_ELIMIT;
}

static const char *const env[] = {"PATH=/bin", "HOME=/home/u", "A_KEY=1", NULL};

static const struct zb_facts facts = {
	.home = "/home/u",
	.zot_home = "/home/u/zot",
	.extension_dir = "/home/u/zot/extensions/e",
	.project = "/home/u/src",
	.private_data = "/home/u/zot/zotbox/e/data",
	.private_home = "/home/u/zot/zotbox/e/home",
	.user_name = "u",
	.environ_ = env,
	.look = look,
	.expand = expand,
	.find_program = find_program,
};

static bool shows_lines(const struct zb_buf *b)
{
	for (size_t at = 0, n; at < b->len; at += n + 1) {
		n = strcspn(b->data + at, "\n");
		if (!shows(b->data + at, n))
			return false;
	}
	return true;
}

static void check_answers(const struct zb_plan *plan)
{
	static const char *const paths[] = {
		"/home/u/src/.env", "/home/u/src/a.pem", "/home/u/src/d/e",
		"/home/u/.ssh/id",  "/etc/shadow",	 "/",
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(paths); i++)
		for (unsigned op = 0; op < ZB_OP_COUNT; op++) {
			struct zb_query q = {.op = (enum zb_op)op,
					     .target = paths[i],
					     .place = -1,
					     .exists = true};
			struct zb_answer a;
			int p = zb_plan_place(plan, paths[i]);

			zb_evaluate(plan, &q, &a);
			CHECK(a.verdict == zb_evaluate_fast(plan, &q));
			CHECK(a.rule);
			CHECK(a.verdict != ZB_DENY ||
			      !a.grant_key != !a.why_not);
			for (size_t d = 0; d < plan->n_denies; d++)
				CHECK(op > ZB_OP_FS_META || p < 0 ||
				      plan->places[p].kind != ZB_PLACE_GRANT ||
				      !zb_pattern_match(plan->denies[d].pattern,
							paths[i]) ||
				      op == ZB_OP_FS_CREATE ||
				      a.verdict == ZB_DENY);
			zb_answer_done(&a);
		}
}

static void check_order(const struct zb_plan *p)
{
	for (size_t i = 1; i < p->n_places; i++)
		for (size_t k = 0; k < i; k++)
			CHECK(!zb_path_below(p->places[k].path,
					     p->places[i].path));
}

/* Takes the scope, as the resolver does. */
static void check_plan(struct zb_scope *s, bool mean_it)
{
	struct zb_facts f = facts;
	struct zb_manifest m = {0};
	struct zb_error e = {0};
	struct zb_plan plan;
	struct zb_buf b = {0};
	char name[] = "e";
	int rc;

	f.mean_it = mean_it;
	m.name = name;
	rc = zb_plan_resolve(&plan, s, &m, &f, &e);
	if (rc) {
		CHECK(e.msg[0] && shows(e.msg, strlen(e.msg)));
		return;
	}
	check_order(&plan);
	check_answers(&plan);
	CHECK(!zb_plan_print(&plan, &b));
	CHECK(shows_lines(&b));
	for (size_t i = 0; i < plan.notices.n; i++)
		CHECK(shows(plan.notices.v[i], strlen(plan.notices.v[i])));
	zb_buf_done(&b);
	zb_plan_done(&plan);
}

/* Add, add again, take away: the second changes nothing, the third undoes the
 * first. */
static void check_edit(const char *text, size_t len, const char *key,
		       const char *value)
{
	struct zb_buf one = {0}, two = {0}, three = {0};
	struct zb_error e = {0};
	bool changed = false;

	if (zb_scope_edit(&one, "f", text, len, key, value, false, false,
			  &changed, &e)) {
		CHECK(e.msg[0] && !changed && !one.len);
		return;
	}
	CHECK(!zb_scope_edit(&two, "f", one.data, one.len, key, value, false,
			     false, &changed, &e));
	CHECK(!changed && two.len == one.len &&
	      !memcmp(one.data, two.data, one.len));
	if (!zb_scope_edit(&three, "f", one.data, one.len, key, value, true,
			   false, &changed, &e)) {
		zb_buf_clear(&two);
		CHECK(!zb_scope_edit(&two, "f", three.data, three.len, key,
				     value, true, false, &changed, &e));
		CHECK(!changed);
	}
	zb_buf_done(&one);
	zb_buf_done(&two);
	zb_buf_done(&three);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct zb_scope s, again;
	struct zb_error e = {0};
	struct zb_strv all = {0};
	int rc = zb_scope_parse(&s, "f", text, size, &all, &e);

	if (rc) {
		CHECK(rc == ZB_EUSAGE && all.n && e.msg[0]);
		for (size_t i = 0; i < all.n; i++)
			CHECK(shows(all.v[i], strlen(all.v[i])));
		zb_strv_done(&all);
		return 0;
	}
	CHECK(!all.n);
	CHECK(!zb_scope_parse(&again, "f", text, size, NULL, &e));
	CHECK(!zb_scope_merge(&again, &s, &e));
	check_plan(&again, false);
	check_plan(&s, true);
	zb_scope_done(&again);
	zb_scope_done(&s);
	check_edit(text, size, "fs.read", "/new/t");
	check_edit(text, size, "fs.deny", "${project}/**/t");
	check_edit(text, size, "protocol.events", "turn_end");
	check_edit(text, size, "protocol.submit", "true");
	check_edit(text, size, "protocol.intercept.tool_call", "block");
	check_edit(text, size, "env.set", "A=b");
	check_edit(text, size, "limits.memory", "1G");
	return 0;
}
