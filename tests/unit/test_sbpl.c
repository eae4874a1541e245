/* test_sbpl.c - profiles: nothing a path holds can get out of its quotes, what
 * cannot be said is refused, and the reader that judges them can say no. */
#include "../golden/plans.h"
#include "../golden/sbpl_reader.h"

#include "cleanup.h"
#include "enforce.h"
#include "platform/macos/sbpl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct sbpl *read_ok(const char *text)
{
	char why[200];
	struct sbpl *p = sbpl_read(text, "/private/tmp/t", why, sizeof(why));

	if (!p)
		fail_msg("%s", why);
	return p;
}

static void render_ok(const struct zb_plan *plan, struct zb_buf *out)
{
	struct zb_error err = {0};

	if (zb_sbpl_render(plan, out, &err))
		fail_msg("%s", err.msg);
}

/* A plan with one grant at @path. */
static void one_grant(struct zb_plan *p, const char *path)
{
	assert_true(zb_test_plan_minimal(p));
	assert_non_null(zb_test_place(p, ZB_PLACE_GRANT, path, "",
				      ZB_MAY_READ | ZB_MAY_LIST, true));
}

/* The reader is the judge of everything else, so it is tried first. */

static enum sbpl_answer ask(const char *text, const char *op, const char *path)
{
	struct sbpl *p = read_ok(text);
	enum sbpl_answer a = sbpl_decide(p, op, path);

	sbpl_free(p);
	return a;
}

#define HEAD "(version 1)(deny default)"

static void reader_knows_both_models(void **state)
{
	static const struct {
		const char *text, *op, *path;
		enum sbpl_answer answer;
	} rows[] = {
		{HEAD, "file-read-data", "/a", SBPL_DENY},
		{HEAD "(allow file-read* (subpath \"/a\"))", "file-read-data",
		 "/a/b", SBPL_ALLOW},
		{HEAD "(allow file-read* (subpath \"/a\"))", "file-read-data",
		 "/ab", SBPL_DENY},
		{HEAD "(allow file-read* (literal \"/a\"))", "file-read-data",
		 "/a/b", SBPL_DENY},
		{HEAD "(allow file-read* (subpath \"/a\"))"
		      "(deny file-read* (subpath \"/a/b\"))"
		      "(allow file-read* (subpath \"/a/b/c\"))",
		 "file-read-data", "/a/b/c/d", SBPL_ALLOW},
		/* a finer deny is not undone by a wider allow behind it */
		{HEAD "(deny file-write-unlink (literal \"/a\"))"
		      "(allow file-write* (subpath \"/a\"))",
		 "file-write-unlink", "/a", SBPL_SPLIT},
		/* nor a filtered one by an unfiltered one, in either order */
		{HEAD "(deny network-outbound (literal \"/s\"))"
		      "(allow network-outbound)",
		 "network-outbound", "/s", SBPL_SPLIT},
		/* open although the default is closed */
		{HEAD, "file-link", "/a", SBPL_SPLIT},
		{HEAD "(deny file-link)", "file-link", "/a", SBPL_DENY},
		{HEAD "(allow file-read* (regex \"^/a/[^/]+$\"))",
		 "file-read-data", "/a/b", SBPL_ALLOW},
		{HEAD "(allow file-read* (regex \"^/a/[^/]+$\"))",
		 "file-read-data", "/a/b/c", SBPL_DENY},
		{HEAD "(allow file-read* (require-all (subpath \"/a\") "
		      "(require-not (literal \"/a/b\"))))",
		 "file-read-data", "/a/b", SBPL_DENY},
		{HEAD "(allow network-outbound (remote ip \"localhost:80\"))",
		 "network-outbound", "127.0.0.1:80", SBPL_ALLOW},
		{HEAD "(allow network-outbound (remote ip \"localhost:80\"))",
		 "network-outbound", "127.0.0.1:81", SBPL_DENY},
		{HEAD "(allow network-outbound (remote ip \"a.org:80\"))",
		 "network-outbound", "a.org:80", SBPL_BAD},
		{HEAD "(allow file-read* (color \"red\"))", "file-read-data",
		 "/a", SBPL_BAD},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++)
		if (ask(rows[i].text, rows[i].op, rows[i].path) !=
		    rows[i].answer)
			fail_msg("row %zu: %s", i, rows[i].text);
}

static void reader_refuses(void **state)
{
	static const char *const bad[] = {
		"",
		"(allow default",
		"(allow file-read* (literal \"/a\")",
		"(allow file-read* (literal \"/a))",
		"(allow file-reed* (literal \"/a\"))",
		"(permit file-read*)",
		"(allow)",
		HEAD "(allow process-exec* (literal \"/a\") (with no-sandbox))",
		HEAD "(allow file-read* \"/a\")",
		HEAD "(allow file-read* (literal \"\\q\"))",
	};
	char why[200];

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(bad); i++)
		assert_null(sbpl_read(bad[i], "/t", why, sizeof(why)));
}

/* Open in spite of (deny default): a rule of their own closes them. */
static void closes_what_default_leaves_open(void **state)
{
	static const char *const ops[] = {"file-link", "file-clone", "nvram*",
					  "iokit-get-properties",
					  "process-info*"};
	struct zb_plan plan;
	struct zb_buf b = {0};
	struct sbpl *p;

	(void)state;
	assert_true(zb_test_plan("strict-python", &plan));
	render_ok(&plan, &b);
	p = read_ok(zb_buf_str(&b));
	for (size_t i = 0; i < ZB_ARRAY_LEN(ops); i++)
		assert_int_equal(sbpl_decide(p, ops[i], "/home/u/x"),
				 SBPL_DENY);
	assert_null(strstr(zb_buf_str(&b), "no-sandbox"));
	sbpl_free(p);
	zb_buf_done(&b);
	zb_test_plan_done(&plan);
}

/* Names and stat of what is above a grant, or denied in it, stay visible. */
static void names_stay_visible(void **state)
{
	static const struct {
		const char *path;
		enum sbpl_answer metadata, content;
	} rows[] = {
		{"/System/Volumes/Data/home/u", SBPL_ALLOW, SBPL_DENY},
		{"/System/Volumes/Data/home/u/src", SBPL_ALLOW, SBPL_DENY},
		{"/System/Volumes/Data/home/u/src/app", SBPL_ALLOW, SBPL_ALLOW},
		{"/System/Volumes/Data/home/u/src/app/.env", SBPL_ALLOW,
		 SBPL_DENY},
		{"/System/Volumes/Data/home/u/src/other", SBPL_DENY, SBPL_DENY},
		{"/etc", SBPL_ALLOW, SBPL_DENY},
		{"/private/etc", SBPL_ALLOW, SBPL_DENY},
		{"/bin", SBPL_ALLOW, SBPL_DENY}, /* a link */
		{"/", SBPL_ALLOW, SBPL_ALLOW},	 /* or nothing starts */
	};
	struct zb_plan plan;
	struct zb_buf b = {0};
	struct sbpl *p;

	(void)state;
	assert_true(zb_test_plan("standard-home", &plan));
	render_ok(&plan, &b);
	p = read_ok(zb_buf_str(&b));
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		if (sbpl_decide(p, "file-read-metadata", rows[i].path) !=
		    rows[i].metadata)
			fail_msg("metadata of %s", rows[i].path);
		if (sbpl_decide(p, "file-read-data", rows[i].path) !=
		    rows[i].content)
			fail_msg("content of %s", rows[i].path);
	}
	sbpl_free(p);
	zb_buf_done(&b);
	zb_test_plan_done(&plan);
}

/* Strange names are granted as themselves, and add no rule. */
static void no_path_leaves_its_quotes(void **state)
{
	static const char *const parts[] = {
		"\"",	    "\\",
		"\\\"",	    "(",
		")",	    "\"))",
		";",	    "\")(allow default)(x \"",
		"#\"",	    "'",
		" ",	    "$HOME",
		"\303\251", "\360\237\230\200",
		"|",	    "\\n",
		"`id`",	    "%s%n",
		"\\\\",	    "{}[]^$.*+?",
	};
	struct zb_plan tame;
	struct zb_buf base = {0};
	struct sbpl *p;
	size_t rules;

	(void)state;
	one_grant(&tame, "/srv/tame/x");
	render_ok(&tame, &base);
	p = read_ok(zb_buf_str(&base));
	rules = sbpl_count(p);
	sbpl_free(p);
	for (size_t i = 0; i < ZB_ARRAY_LEN(parts) * ZB_ARRAY_LEN(parts); i++) {
		zb_auto(free) char *path =
			zb_strf("/srv/%s%s/x", parts[i % ZB_ARRAY_LEN(parts)],
				parts[i / ZB_ARRAY_LEN(parts)]);
		struct zb_plan plan;
		struct zb_buf b = {0};

		assert_non_null(path);
		one_grant(&plan, path);
		render_ok(&plan, &b);
		p = read_ok(zb_buf_str(&b));
		assert_int_equal(sbpl_count(p), rules);
		assert_true(sbpl_names(p, "file-read*", path));
		assert_int_equal(sbpl_decide(p, "file-read-data", path),
				 SBPL_ALLOW);
		assert_int_equal(sbpl_decide(p, "file-read-data", "/srv/other"),
				 SBPL_DENY);
		sbpl_free(p);
		zb_buf_done(&b);
		zb_test_plan_done(&plan);
	}
	zb_buf_done(&base);
	zb_test_plan_done(&tame);
}

/* The same for patterns, which become regular expressions. */
static void no_pattern_leaves_its_quotes(void **state)
{
	static const struct {
		const char *pattern, *denied, *allowed;
	} rows[] = {
		{"/srv/p/**/a\"b", "/srv/p/x/a\"b", "/srv/p/x/ab"},
		{"/srv/p/**/a.b", "/srv/p/a.b", "/srv/p/axb"},
		{"/srv/p/**/a(b)|c", "/srv/p/q/a(b)|c", "/srv/p/q/c"},
		{"/srv/p/**/[x]", "/srv/p/[x]", "/srv/p/x"},
		{"/srv/p/**/a\\b", "/srv/p/a\\b", "/srv/p/ab"},
		{"/srv/p/**/a+", "/srv/p/a+", "/srv/p/aa"},
		{"/srv/p/**/^a$", "/srv/p/^a$", "/srv/p/a"},
		{"/srv/p/a?c", "/srv/p/abc", "/srv/p/ac"},
		{"/srv/p/a?c", "/srv/p/a\303\251c", "/srv/p/abbc"},
		{"/srv/p/a*c", "/srv/p/abbc", "/srv/p/a/c"},
		{"/srv/p/x/**", "/srv/p/x/y/z", "/srv/p/xy"},
		{"/srv/p/x/**", "/srv/p/x", "/srv/p/y"},
		{"/srv/p/**/x/**/y", "/srv/p/x/y", "/srv/p/y/x"},
		{"/srv/p/**/.env*", "/srv/p/.Env.d/below", "/srv/p/env"},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_plan plan;
		struct zb_buf b = {0};
		struct sbpl *p;

		one_grant(&plan, "/srv/p");
		plan.places[plan.n_places - 1].carved = true;
		assert_true(zb_test_deny(&plan, rows[i].pattern, false,
					 "fs.deny[0]"));
		render_ok(&plan, &b);
		p = read_ok(zb_buf_str(&b));
		if (sbpl_decide(p, "file-read-data", rows[i].denied) !=
		    SBPL_DENY)
			fail_msg("%s: %s", rows[i].pattern, rows[i].denied);
		if (sbpl_decide(p, "file-read-data", rows[i].allowed) !=
		    SBPL_ALLOW)
			fail_msg("%s: %s", rows[i].pattern, rows[i].allowed);
		sbpl_free(p);
		zb_buf_done(&b);
		zb_test_plan_done(&plan);
	}
}

/* A pattern holds for its right only. */
static void patterns_hold_each_for_its_right(void **state)
{
	static const struct {
		const char *read, *change, *path;
		enum sbpl_answer reading, changing;
	} rows[] = {
		{NULL, "/srv/p/x*", "/srv/p/y", SBPL_ALLOW, SBPL_DENY},
		{NULL, "/srv/p/x*", "/srv/p/x1/deep", SBPL_ALLOW, SBPL_ALLOW},
		{NULL, "/srv/p/x*", "/srv/p", SBPL_ALLOW, SBPL_DENY},
		{"/srv/p/*", "/srv/p/x*", "/srv/p/y", SBPL_ALLOW, SBPL_DENY},
		{"/srv/p/x*", "/srv/p/x*", "/srv/p/y", SBPL_DENY, SBPL_DENY},
		{"/srv/p/x*", "/srv/p/x*", "/srv/p/x", SBPL_ALLOW, SBPL_ALLOW},
		{"/srv/p/x*", "/srv/p/x*", "/srv/p", SBPL_ALLOW, SBPL_DENY},
		{NULL, NULL, "/srv/p/y", SBPL_ALLOW, SBPL_ALLOW},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_place *g;
		struct zb_plan plan;
		struct zb_buf b = {0};
		struct sbpl *p;

		one_grant(&plan, "/srv/p");
		g = &plan.places[plan.n_places - 1];
		g->rights |= ZB_MAY_WRITE | ZB_MAY_CREATE;
		g->carved = rows[i].change;
		if (rows[i].read)
			assert_false(zb_strv_add(&g->only, rows[i].read));
		if (rows[i].change)
			assert_false(
				zb_strv_add(&g->only_changes, rows[i].change));
		render_ok(&plan, &b);
		p = read_ok(zb_buf_str(&b));
		if (sbpl_decide(p, "file-read-data", rows[i].path) !=
			    rows[i].reading ||
		    sbpl_decide(p, "file-write-data", rows[i].path) !=
			    rows[i].changing ||
		    sbpl_decide(p, "file-write-unlink", rows[i].path) !=
			    rows[i].changing)
			fail_msg("row %zu: %s", i, zb_buf_str(&b));
		sbpl_free(p);
		zb_buf_done(&b);
		zb_test_plan_done(&plan);
	}
}

static void refused(struct zb_plan *plan, const char *word)
{
	struct zb_buf b = {0};
	struct zb_error err = {0};

	assert_int_equal(zb_sbpl_render(plan, &b, &err), ZB_EUNSUPPORTED);
	if (!strstr(err.msg, word))
		fail_msg("\"%s\" does not say %s", err.msg, word);
	assert_int_equal(b.len, 0);
	zb_buf_done(&b);
	zb_test_plan_done(plan);
}

static void refuses_what_no_profile_can_name(void **state)
{
	static const struct {
		const char *path, *word;
	} rows[] = {
		{"/srv/a\nb", "control character"},
		{"/srv/a\tb", "control character"},
		{"/srv/a\177b", "control character"},
		{"/srv/a\033[2Jb", "control character"},
		{"/srv/a\377b", "UTF-8"},
		{"/srv/\300\257b", "UTF-8"},
		{"/srv/\355\240\200", "UTF-8"},
	};
	struct zb_plan plan;

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		one_grant(&plan, rows[i].path);
		refused(&plan, rows[i].word);
		one_grant(&plan, "/srv");
		plan.places[0].carved = true;
		assert_true(
			zb_test_deny(&plan, rows[i].path, false, "fs.deny[0]"));
		refused(&plan, rows[i].word);
	}
}

/* 1025 bytes are a string, 1026 are none; counted as they are written. */
static void keeps_to_the_length_of_a_string(void **state)
{
	char path[1030];
	struct zb_plan plan;
	struct zb_buf b = {0};
	struct sbpl *p;

	(void)state;
	memset(path, 'a', sizeof(path));
	memcpy(path, "/opt/", 5);
	path[1025] = '\0';
	one_grant(&plan, path);
	render_ok(&plan, &b);
	p = read_ok(zb_buf_str(&b));
	assert_true(sbpl_names(p, "file-read*", path));
	sbpl_free(p);
	zb_buf_done(&b);
	zb_test_plan_done(&plan);
	path[1025] = 'a';
	path[1026] = '\0';
	one_grant(&plan, path);
	refused(&plan, "1025");
	path[1025] = '\0';
	path[700] = '"'; /* one byte more when escaped */
	one_grant(&plan, path);
	refused(&plan, "1025");
}

/* Below /tmp, /var, /etc and /home no filter works on a Mac. */
static void resolves_the_links_of_every_mac(void **state)
{
	static const char *const rows[][2] = {
		{"/etc/x", "/private/etc/x"},
		{"/var/lib/x", "/private/var/lib/x"},
		{"/home/v/x", "/System/Volumes/Data/home/v/x"},
		{"/etcetera", "/etcetera"},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_plan plan;
		struct zb_buf b = {0};
		struct sbpl *p;
		zb_auto(free) char *secret = zb_strf("%s/s", rows[i][0]);
		zb_auto(free) char *real = zb_strf("%s/s", rows[i][1]);

		one_grant(&plan, rows[i][0]);
		plan.places[0].carved = true;
		assert_true(zb_test_deny(&plan, secret, false, "fs.deny[0]"));
		render_ok(&plan, &b);
		p = read_ok(zb_buf_str(&b));
		assert_true(sbpl_names(p, "file-read*", rows[i][1]));
		assert_int_equal(sbpl_decide(p, "file-read-data", rows[i][1]),
				 SBPL_ALLOW);
		assert_int_equal(sbpl_decide(p, "file-read-data", real),
				 SBPL_DENY);
		sbpl_free(p);
		zb_buf_done(&b);
		zb_test_plan_done(&plan);
	}
}

/* A wide grant does not show what other mounts would have covered. */
static void wide_grants_stay_closed_inside(void **state)
{
	struct zb_plan plan;
	struct zb_buf b = {0};
	struct sbpl *p;

	(void)state;
	assert_true(zb_test_plan_minimal(&plan));
	assert_non_null(zb_test_place(&plan, ZB_PLACE_GRANT, "/", "",
				      ZB_MAY_READ | ZB_MAY_LIST | ZB_MAY_WRITE |
					      ZB_MAY_CREATE,
				      true));
	assert_non_null(zb_test_place(&plan, ZB_PLACE_DIR, "/data/zotbox", NULL,
				      ZB_MAY_READ | ZB_MAY_LIST, true));
	assert_non_null(zb_test_place(&plan, ZB_PLACE_DATA,
				      "/data/zotbox/w/data", "",
				      ZB_MAY_READ | ZB_MAY_WRITE, true));
	assert_non_null(zb_test_place(&plan, ZB_PLACE_TEXT, "/data/made", "x",
				      ZB_MAY_READ, false));
	assert_non_null(zb_test_place(&plan, ZB_PLACE_EXTENSION, "/data/code",
				      "", ZB_MAY_READ | ZB_MAY_LIST, true));
	render_ok(&plan, &b);
	p = read_ok(zb_buf_str(&b));
	assert_int_equal(sbpl_decide(p, "file-write-data", "/srv/x"),
			 SBPL_ALLOW);
	assert_int_equal(
		sbpl_decide(p, "file-read-data", "/data/zotbox/w/scope.json"),
		SBPL_DENY);
	assert_int_equal(
		sbpl_decide(p, "file-write-data", "/data/zotbox/w/data/x"),
		SBPL_ALLOW);
	assert_int_equal(sbpl_decide(p, "file-read-data", "/data/made"),
			 SBPL_DENY);
	assert_int_equal(sbpl_decide(p, "file-read-data", "/data/code/x"),
			 SBPL_ALLOW);
	assert_int_equal(sbpl_decide(p, "file-write-data", "/data/code/x"),
			 SBPL_DENY);
	sbpl_free(p);
	zb_buf_done(&b);
	zb_test_plan_done(&plan);
}

/* What an extension runs from is spared by denies, what is granted inside it
 * is not; and a wildcard that stands for a link of the Mac reaches behind it.
 */
static void denies_reach_where_they_should(void **state)
{
	static const struct {
		const char *grant, *deny, *path;
		enum sbpl_answer answer;
	} rows[] = {
		{"/opt/rt/share/app", "/opt/rt/share/app/**/.env",
		 "/opt/rt/share/app/x/.env", SBPL_DENY},
		{"/opt/rt/share/app", "/**/.env", "/opt/rt/share/app/.env",
		 SBPL_DENY},
		{"/opt/rt/share/app", "/**/.env", "/opt/rt/lib/.env",
		 SBPL_ALLOW},
		{"/opt", "/**/.env", "/opt/rt/lib/.env", SBPL_ALLOW},
		{"/opt", "/**/.env", "/opt/other/.env", SBPL_DENY},
		{"/etc/app", "/*c/app/key", "/private/etc/app/key", SBPL_DENY},
		{"/etc/app", "/*c/app/key", "/private/etc/app/kex", SBPL_ALLOW},
		{"/srv", "/", "/srv/x", SBPL_DENY},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_plan plan;
		struct zb_buf b = {0};
		struct sbpl *p;

		one_grant(&plan, rows[i].grant);
		plan.places[0].carved = true;
		assert_non_null(zb_test_place(&plan, ZB_PLACE_RUNTIME,
					      "/opt/rt", "",
					      ZB_MAY_READ | ZB_MAY_LIST, true));
		assert_true(
			zb_test_deny(&plan, rows[i].deny, false, "fs.deny[0]"));
		render_ok(&plan, &b);
		p = read_ok(zb_buf_str(&b));
		if (sbpl_decide(p, "file-read-data", rows[i].path) !=
		    rows[i].answer)
			fail_msg("%s: %s", rows[i].deny, rows[i].path);
		sbpl_free(p);
		zb_buf_done(&b);
		zb_test_plan_done(&plan);
	}
}

static void add_net(struct zb_rules *l, const char *value)
{
	const struct zb_origin o = {.file = (char[]){"scope.json"},
				    .key = (char[]){"net.connect[0]"}};

	assert_int_equal(zb_rules_add(l, value, &o), 0);
}

/* localhost and everything can be said; a host cannot, and says so. */
static void network_is_honest(void **state)
{
	static const struct {
		const char *connect;
		bool ok;
	} rows[] = {
		{"localhost:9224", true},
		{"127.0.0.1:80", true},
		{"[::1]:80", true},
		{"*:443", true},
		{"api.example.org:443", false},
		{"*.example.org:443", false},
		{"10.1.0.0/16:5432", false},
		{"localhost:80,443", false},
		{"localhost:80-90", false},
		{"localhost:", false},
		{"localhost:123456", false},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_rule_status *v = NULL;
		struct zb_error err = {0};
		struct zb_plan plan;
		struct zb_buf b = {0};
		struct sbpl *p;
		size_t n = 0;

		assert_true(zb_test_plan_minimal(&plan));
		add_net(&plan.scope.net_connect, rows[i].connect);
		assert_int_equal(zb_sbpl_rules(&plan, &v, &n, &err),
				 rows[i].ok ? 0 : ZB_EUNSUPPORTED);
		zb_rule_statuses_done(v, n);
		if (!rows[i].ok)
			assert_non_null(strstr(err.msg, rows[i].connect));
		render_ok(&plan, &b);
		p = read_ok(zb_buf_str(&b));
		assert_int_equal(sbpl_has_note(p, "unsupported", "net.connect"),
				 !rows[i].ok);
		assert_int_equal(
			sbpl_decide(p, "network-outbound", "192.0.2.1:25"),
			SBPL_DENY);
		assert_int_equal(
			sbpl_decide(p, "network-outbound", "192.0.2.1:443"),
			!strcmp(rows[i].connect, "*:443") ? SBPL_ALLOW
							  : SBPL_DENY);
		sbpl_free(p);
		zb_buf_done(&b);
		zb_test_plan_done(&plan);
	}
}

/* What a Mac's disk would take for the same name, or could be moved with. */
static void denies_that_cannot_hold_are_refused(void **state)
{
	static const struct {
		const char *pattern;
		bool writable, ok;
	} rows[] = {
		{"/srv/p/**/.env", true, true},
		{"/srv/p/**/\303\251", false, false},
		{"/srv/p/*/secret", false, true},
		{"/srv/p/*/secret", true, false},
		{"/srv/p/a/secret", true, true},
		{"/srv/p/*/**", true, true},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_rule_status *v = NULL;
		struct zb_error err = {0};
		struct zb_plan plan;
		size_t n = 0;

		one_grant(&plan, "/srv/p");
		plan.places[0].carved = true;
		if (rows[i].writable)
			plan.places[0].rights |= ZB_MAY_WRITE | ZB_MAY_CREATE;
		assert_true(zb_test_deny(&plan, rows[i].pattern, false,
					 "fs.deny[0]"));
		if (zb_sbpl_rules(&plan, &v, &n, &err) !=
		    (rows[i].ok ? 0 : ZB_EUNSUPPORTED))
			fail_msg("%s: %s", rows[i].pattern, err.msg);
		zb_rule_statuses_done(v, n);
		zb_test_plan_done(&plan);
	}
}

/* The whole test is only as good as its judge: a profile with a rule taken out
 * is found to differ. */
static void a_missing_deny_is_noticed(void **state)
{
	struct zb_plan plan;
	struct zb_buf b = {0};
	struct sbpl *p;
	char *deny;

	(void)state;
	assert_true(zb_test_plan("standard-home", &plan));
	render_ok(&plan, &b);
	deny = strstr(b.data, "(deny file-read-data");
	assert_non_null(deny);
	memset(deny, ' ', strcspn(deny, "\n"));
	p = read_ok(zb_buf_str(&b));
	assert_int_equal(
		sbpl_decide(p, "file-read-data",
			    "/System/Volumes/Data/home/u/src/app/.env"),
		SBPL_ALLOW);
	sbpl_free(p);
	zb_buf_done(&b);
	zb_test_plan_done(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reader_knows_both_models),
		cmocka_unit_test(reader_refuses),
		cmocka_unit_test(closes_what_default_leaves_open),
		cmocka_unit_test(names_stay_visible),
		cmocka_unit_test(no_path_leaves_its_quotes),
		cmocka_unit_test(no_pattern_leaves_its_quotes),
		cmocka_unit_test(patterns_hold_each_for_its_right),
		cmocka_unit_test(refuses_what_no_profile_can_name),
		cmocka_unit_test(keeps_to_the_length_of_a_string),
		cmocka_unit_test(resolves_the_links_of_every_mac),
		cmocka_unit_test(wide_grants_stay_closed_inside),
		cmocka_unit_test(denies_reach_where_they_should),
		cmocka_unit_test(network_is_honest),
		cmocka_unit_test(denies_that_cannot_hold_are_refused),
		cmocka_unit_test(a_missing_deny_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
