/* test_reach.c - what a path of a grant holds, counted. */
#include "config.h"

#include "cleanup.h"
#include "reach.h"
#include "tmphome.h"

struct place {
	struct tmphome *t;
	struct zb_store store;
};

static struct place plant(void **state)
{
	struct tmphome *t = *state;
	struct place p = {.t = t};

	p.store.home = put_dir(t, "home");
	p.store.zot_home = put_dir(t, "home/.local/zot");
	free(put(t, "home/a/one", 0644, ""));
	free(put(t, "home/a/b/id_rsa", 0600, ""));
	free(put(t, "home/a/b/.env", 0600, ""));
	free(put(t, "elsewhere/f", 0644, ""));
	free(put_link(t, "home/a/out", "../../elsewhere"));
	free(put_link(t, "home/link", "a"));
	return p;
}

static void uproot(struct place *p)
{
	free(p->store.home);
	free(p->store.zot_home);
}

static void counts_without_following(void **state)
{
	struct place p = plant(state);
	struct zb_reach r = {0};

	assert_int_equal(zb_reach_look(&r, &p.store, "~/a"), 0);
	assert_int_equal(r.kind, ZB_REACH_DIR);
	/* one, id_rsa, .env and the link, but not what it leads to. */
	assert_int_equal(r.files, 4);
	assert_int_equal(r.secrets, 2);
	assert_non_null(r.example);
	assert_memory_equal(r.example, "b/", 2);
	assert_false(r.more || r.all || r.keeper);
	assert_null(r.leads_to);
	zb_reach_done(&r);
	uproot(&p);
}

/* A pattern is no way to ask for keys without saying so. */
static void counts_what_a_pattern_matches(void **state)
{
	const struct {
		const char *value;
		unsigned files, secrets;
	} rows[] = {
		{"~/a/on*", 1, 0},
		{"~/a/b*", 2, 2},
		{"~/./a//*", 4, 2},
	};
	struct place p = plant(state);

	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_reach r = {0};

		assert_int_equal(zb_reach_look(&r, &p.store, rows[i].value), 0);
		assert_int_equal(r.files, rows[i].files);
		assert_int_equal(r.secrets, rows[i].secrets);
		zb_reach_done(&r);
	}
	uproot(&p);
}

static void what_it_is(void **state)
{
	struct place p = plant(state);
	const struct {
		const char *value;
		enum zb_reach_kind kind;
		bool all, keeper, link;
	} rows[] = {
		{"~", ZB_REACH_DIR, true, true, false},
		{"${home}", ZB_REACH_DIR, true, true, false},
		{p.t->dir, ZB_REACH_DIR, true, true, false},
		{"${zot_home}", ZB_REACH_DIR, false, true, false},
		{"~/.local", ZB_REACH_DIR, false, true, false},
		{"~/link", ZB_REACH_DIR, false, false, true},
		{"~/a/one", ZB_REACH_FILE, false, false, false},
		{"~/nothing", ZB_REACH_ABSENT, false, false, false},
		{"/dev/null", ZB_REACH_OTHER, false, false, false},
		{"~/*.txt", ZB_REACH_DIR, false, false, false},
		{"~/.l*", ZB_REACH_DIR, false, true, false},
		{"~/n*/x", ZB_REACH_UNKNOWN, false, false, false},
		{"${project}", ZB_REACH_UNKNOWN, false, false, false},
		{"relative", ZB_REACH_UNKNOWN, false, false, false},
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_reach r = {0};

		assert_int_equal(zb_reach_look(&r, &p.store, rows[i].value), 0);
		assert_int_equal(r.kind, rows[i].kind);
		assert_int_equal(r.all, rows[i].all);
		assert_int_equal(r.keeper, rows[i].keeper);
		assert_int_equal(r.leads_to != NULL, rows[i].link);
		zb_reach_done(&r);
	}
	uproot(&p);
}

/* Directories of PATH, by their real names, also those still to be made. */
static void what_runs(void **state)
{
	struct place p = plant(state);
	zb_auto(free) char *path =
		zb_strf("relative:%s/home/t:%s/home/later", p.t->dir, p.t->dir);
	const char *was = getenv("PATH");
	const struct {
		const char *value, *runs;
	} rows[] = {
		{"~/tools", ""},
		{"~/tools/x", ""},
		{"~/later", ""},
		{"~/later/x", ""},
		{"~/.config", "~/.config/autostart"},
		{"~/.config/autostart/", ""},
		{"~/.config/x", NULL},
		{"~/a", NULL},
		{"~/b*", "~/bin"},
		{"~", NULL},
		{"${project}", NULL},
	};

	free(put_dir(p.t, "home/tools"));
	free(put_link(p.t, "home/t", "tools"));
	assert_int_equal(setenv("PATH", path, 1), 0);
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_reach r = {0};

		assert_int_equal(zb_reach_look(&r, &p.store, rows[i].value), 0);
		if (!r.runs != !rows[i].runs ||
		    (r.runs && strcmp(r.runs, rows[i].runs) != 0))
			fail_msg("%s: %s", rows[i].value,
				 r.runs ? r.runs : "no");
		zb_reach_done(&r);
	}
	setenv("PATH", was ? was : "", 1);
	uproot(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_tmp(counts_without_following),
		with_tmp(counts_what_a_pattern_matches),
		with_tmp(what_it_is),
		with_tmp(what_runs),
	};

	return cmocka_run_group_tests_name("reach", tests, NULL, NULL);
}
