/* test_appcontainer.c - SIDs against ones that Windows made, command lines
 * against the rule they are split by, entries, and what is refused. */
#include "../golden/appcontainer_reader.h"
#include "../golden/plans.h"

#include "cleanup.h"
#include "enforce.h"
#include "platform/windows/appcontainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void sids_are_those_of_windows(void **state)
{
	char sid[ZB_SID_MAX];

	(void)state;
	zb_appcontainer_sid("microsoft.microsoftedge_8wekyb3d8bbwe", sid);
	assert_string_equal(sid, "S-1-15-2-3624051433-2125758914-1423191267-"
				 "1740899205-1073925389-3782572162-737981194");
	zb_appcontainer_sid("Microsoft.MicrosoftEdge_8wekyb3d8bbwe", sid);
	assert_string_equal(sid, "S-1-15-2-3624051433-2125758914-1423191267-"
				 "1740899205-1073925389-3782572162-737981194");
	zb_capability_sid("lpacCom", sid);
	assert_string_equal(sid,
			    "S-1-15-3-1024-2405443489-874036122-4286035555-"
			    "1823921565-1746547431-2453885448-3625952902-"
			    "991631256");
	zb_capability_sid("registryRead", sid);
	assert_string_equal(sid,
			    "S-1-15-3-1024-1065365936-1281604716-3511738428-"
			    "1654721687-432734479-3232135806-4053264122-"
			    "3456934681");
	zb_capability_sid("learningModeLogging", sid);
	assert_string_equal(sid,
			    "S-1-15-3-1024-939581409-4123554796-2762201853-"
			    "271528396-2311584609-2766616413-1118554881-"
			    "639435480");
	zb_capability_sid("internetClient", sid);
	assert_string_equal(sid, "S-1-15-3-1");
	zb_capability_sid("privateNetworkClientServer", sid);
	assert_string_equal(sid, "S-1-15-3-3");
}

static void set(char **field, const char *value)
{
	free(*field);
	*field = zb_strdup(value);
	assert_non_null(*field);
}

/* Two extensions never share a SID: not by case, length or home. */
static void names_are_apart(void **state)
{
	static const char *const names[][2] = {
		{"weather", "/home/u/.zot"},
		{"Weather", "/home/u/.zot"},
		{"weather", "/home/v/.zot"},
		{"w-000000000000000000000000000000000000000000000000000000000001",
		 "/home/u/.zot"},
		{"w-000000000000000000000000000000000000000000000000000000000002",
		 "/home/u/.zot"},
	};
	char name[ZB_ARRAY_LEN(names)][ZB_AC_NAME_MAX + 1];
	char sid[ZB_ARRAY_LEN(names)][ZB_SID_MAX];
	struct zb_plan plan;

	(void)state;
	assert_true(zb_test_plan_minimal(&plan));
	for (size_t i = 0; i < ZB_ARRAY_LEN(names); i++) {
		set(&plan.name, names[i][0]);
		set(&plan.zot_home, names[i][1]);
		zb_appcontainer_name(&plan, name[i]);
		assert_true(strlen(name[i]) <= ZB_AC_NAME_MAX);
		zb_appcontainer_sid(name[i], sid[i]);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(sid[k], sid[i]);
	}
	zb_test_plan_done(&plan);
}

static void command_lines_split_again(void **state)
{
	static const char *const rows[][6] = {
		{"prog"},
		{"C:\\Program Files\\x.exe", "a b"},
		{"p", ""},
		{"p", "\"", "\\", "\\\""},
		{"p", "a\\\\b", "a\\\\\"b", "a b\\\\"},
		{"p", "c:\\dir\\", "c:\\my dir\\"},
		{"p", "\t", "\n", "a\vb"},
		{"p", "\303\251\344\270\255", "--x=\"y z\""},
		{"p", "^&|<>()%PATH%!", "'single'"},
		{"p", "\\\\server\\share", "\\\\\\\\"},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_strv argv = {0};
		struct zb_buf cmd = {0};
		struct zb_error err = {0};
		char *out[8];
		size_t n = 0, got;

		for (; n < ZB_ARRAY_LEN(rows[i]) && rows[i][n]; n++)
			assert_int_equal(zb_strv_add(&argv, rows[i][n]), 0);
		assert_int_equal(zb_windows_command_line(&argv, &cmd, &err), 0);
		got = ac_split(zb_buf_str(&cmd), out, ZB_ARRAY_LEN(out));
		assert_int_equal(got, n);
		for (size_t k = 0; k < n; k++) {
			assert_string_equal(out[k], rows[i][k]);
			free(out[k]);
		}
		zb_buf_done(&cmd);
		zb_strv_done(&argv);
	}
}

/* Every short string over the characters that matter. */
static void command_lines_hold_in_general(void **state)
{
	static const char letters[] = "a\\\" \t";
	const size_t n = sizeof(letters) - 1;

	(void)state;
	for (size_t code = 0; code < n * n * n * n * n; code++) {
		struct zb_strv argv = {0};
		struct zb_buf cmd = {0};
		struct zb_error err = {0};
		char arg[6] = "", *out[8];
		size_t rest = code;

		for (size_t i = 0; i < 5; i++, rest /= n)
			arg[i] = letters[rest % n];
		assert_int_equal(zb_strv_add(&argv, "p"), 0);
		assert_int_equal(zb_strv_add(&argv, arg), 0);
		assert_int_equal(zb_strv_add(&argv, "end"), 0);
		assert_int_equal(zb_windows_command_line(&argv, &cmd, &err), 0);
		assert_int_equal(
			ac_split(zb_buf_str(&cmd), out, ZB_ARRAY_LEN(out)), 3);
		assert_string_equal(out[1], arg);
		assert_string_equal(out[2], "end");
		for (size_t i = 0; i < 3; i++)
			free(out[i]);
		zb_buf_done(&cmd);
		zb_strv_done(&argv);
	}
}

static void command_lines_refused(void **state)
{
	struct zb_strv argv = {0};
	struct zb_buf cmd = {0};
	struct zb_error err = {0};

	(void)state;
	assert_int_equal(zb_windows_command_line(&argv, &cmd, &err),
			 ZB_EUNSUPPORTED);
	assert_int_equal(zb_strv_add(&argv, "a\"b"), 0);
	assert_int_equal(zb_windows_command_line(&argv, &cmd, &err),
			 ZB_EUNSUPPORTED);
	zb_strv_done(&argv);
	zb_buf_done(&cmd);
}

/* The reader: order of denies and allows, inheritance. */
static void reader_decides_as_windows(void **state)
{
	static const char text[] =
		"ace allow 0x001200a9 CI \"/d\"\n"
		"ace allow 0x00120089 OI,IO \"/d\"\n"
		"ace deny 0x00000001 - \"/d/secret\"\n"
		"ace deny 0x0012019f CI,OI \"/d/closed\"\n"
		"ace allow 0x00120089 OI,IO \"/d/closed/open\"\n"
		"ace allow 0x001201bf CI \"/w\"\n"
		"ace allow 0x001301bf OI,IO \"/w\"\n";
	static const struct {
		enum ac_act act;
		const char *path;
		bool is_dir, yes;
	} rows[] = {
		{AC_READ, "/d", true, true},
		{AC_READ, "/d/f", false, true},
		{AC_READ, "/d/e/f", false, true},
		{AC_EXEC, "/d/f", false, false},
		{AC_WRITE, "/d/f", false, false},
		{AC_CREATE, "/d/f", false, false},
		{AC_READ, "/d/secret", false, false},
		{AC_READ, "/d/secrets", false, true},
		{AC_READ, "/d/closed/f", false, false},
		{AC_READ, "/d/closed", true, false},
		{AC_READ, "/d/closed/open/f", false, true},
		{AC_READ, "/elsewhere", false, false},
		{AC_CREATE, "/w/new", false, true},
		{AC_DELETE, "/w/f", false, true},
		{AC_DELETE, "/w", true, false},
		{AC_EXEC, "/w/f", false, true},
	};
	char why[200];
	struct ac *a = ac_read(text, why, sizeof(why));

	(void)state;
	if (!a)
		fail_msg("%s", why);
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++)
		if (ac_decide(a, rows[i].act, rows[i].path, rows[i].is_dir) !=
		    rows[i].yes)
			fail_msg("row %zu: %s", i, rows[i].path);
	ac_free(a);
	assert_null(ac_read("ace allow 0x1 CI /x\n", why, sizeof(why)));
	assert_null(ac_read("ace maybe 0x1 CI \"/x\"\n", why, sizeof(why)));
	assert_null(ac_read("who knows\n", why, sizeof(why)));
}

static struct ac *describe(const struct zb_plan *plan)
{
	struct zb_buf b = {0};
	struct zb_error err = {0};
	char why[200];
	struct ac *a;

	if (zb_appcontainer_render(plan, &b, &err))
		fail_msg("%s", err.msg);
	a = ac_read(zb_buf_str(&b), why, sizeof(why));
	if (!a)
		fail_msg("%s", why);
	zb_buf_done(&b);
	return a;
}

/* No entry gives FILE_DELETE_CHILD, and none the owner's rights. */
static void never_too_much(void **state)
{
	(void)state;
	for (size_t i = 0; zb_test_plan_names[i]; i++) {
		struct zb_buf b = {0};
		struct zb_error err = {0};
		struct zb_plan plan;
		unsigned seen = 0;

		assert_true(zb_test_plan(zb_test_plan_names[i], &plan));
		assert_int_equal(zb_appcontainer_render(&plan, &b, &err), 0);
		for (char *s = b.data; (s = strstr(s, "ace allow ")); s++) {
			unsigned long mask = strtoul(s + 10, NULL, 16);

			/* DELETE_CHILD; WRITE_DAC, WRITE_OWNER; GENERIC_* */
			assert_int_equal(mask & 0xf00c0040, 0);
			seen++;
		}
		assert_true(seen > 3);
		zb_buf_done(&b);
		zb_test_plan_done(&plan);
	}
}

static void process_is_described(void **state)
{
	static const char *const lines[] = {
		"lpac 1",
		"handles stdin stdout stderr",
		"job kill-on-close die-on-unhandled-exception active-process=64",
		"mitigation 0x1111000100111001 ",
		"verify is-appcontainer sid capabilities job-limits mitigation",
		"env HOME = \"/home/u/.zot/zotbox/weather/home\"",
		"env TMPDIR = container-temp",
		"env API_KEY",
		"program \"/home/u/.zot/extensions/weather/weather\"",
	};
	struct zb_plan plan;
	struct ac *a;

	(void)state;
	assert_true(zb_test_plan("strict-native", &plan));
	a = describe(&plan);
	for (size_t i = 0; i < ZB_ARRAY_LEN(lines); i++)
		if (!ac_has_line(a, lines[i]))
			fail_msg("no line %s", lines[i]);
	/* the network is closed by giving no capability for it */
	assert_null(ac_capability(a, "internetClient"));
	assert_non_null(ac_capability(a, "lpacCom"));
	ac_free(a);
	zb_test_plan_done(&plan);
}

static void add_net(struct zb_rules *l, const char *value)
{
	const struct zb_origin o = {.file = (char[]){"scope.json"},
				    .key = (char[]){"net[0]"}};

	assert_int_equal(zb_rules_add(l, value, &o), 0);
}

static void network_is_honest(void **state)
{
	static const struct {
		const char *connect;
		bool ok;
	} rows[] = {
		{"*:*", true},
		{"*:443", false},
		{"localhost:80", false},
		{"api.example.org:443", false},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_rule_status *v = NULL;
		struct zb_error err = {0};
		struct zb_plan plan;
		struct ac *a;
		size_t n = 0;

		assert_true(zb_test_plan_minimal(&plan));
		assert_int_equal(zb_strv_add(&plan.argv, "p"), 0);
		add_net(&plan.scope.net_connect, rows[i].connect);
		assert_int_equal(zb_appcontainer_rules(&plan, &v, &n, &err),
				 rows[i].ok ? 0 : ZB_EUNSUPPORTED);
		zb_rule_statuses_done(v, n);
		a = describe(&plan);
		assert_int_equal(ac_capability(a, "internetClient") != NULL,
				 rows[i].ok);
		assert_int_equal(ac_has_line(a, "unsupported net.connect"),
				 !rows[i].ok);
		ac_free(a);
		zb_test_plan_done(&plan);
	}
}

/* Drives are spelled as Windows does, and read back. */
static void drives(void **state)
{
	struct zb_plan plan;
	struct ac *a;
	char at[100];

	(void)state;
	assert_true(zb_test_plan_minimal(&plan));
	assert_int_equal(zb_strv_add(&plan.argv, "p"), 0);
	assert_non_null(zb_test_place(&plan, ZB_PLACE_GRANT, "/C:/Users/u/src",
				      "", ZB_MAY_READ | ZB_MAY_LIST, true));
	a = describe(&plan);
	assert_true(ac_decide(a, AC_READ, "/C:/Users/u/src/f", false));
	assert_false(ac_decide(a, AC_READ, "/C:/Users/u/f", false));
	assert_true(ac_locate(a, "/C:/Users/u/src/f", at, sizeof(at)));
	ac_free(a);
	zb_test_plan_done(&plan);
}

/* Files that are made later would have no entry: neither for reading nor for
 * writing is a pattern anything that can be granted. */
static void patterns_are_refused(void **state)
{
	(void)state;
	for (int writes = 0; writes < 2; writes++) {
		const struct zb_origin o = {.file = (char[]){"scope.json"},
					    .key = (char[]){"fs.write[0]"}};
		struct zb_rule_status *v = NULL;
		struct zb_error err = {0};
		struct zb_plan plan;
		struct zb_place *p;
		size_t n = 0;

		assert_true(zb_test_plan_minimal(&plan));
		assert_int_equal(zb_strv_add(&plan.argv, "p"), 0);
		p = zb_test_place(&plan, ZB_PLACE_GRANT, "/d", "",
				  ZB_MAY_READ | ZB_MAY_LIST | ZB_MAY_WRITE |
					  ZB_MAY_CREATE,
				  true);
		assert_non_null(p);
		p->origin.file = zb_strdup(o.file);
		p->origin.key = zb_strdup(o.key);
		p->carved = true;
		assert_int_equal(
			zb_strv_add(writes ? &p->only_changes : &p->only,
				    "/d/x*"),
			0);
		assert_int_equal(
			zb_rules_add(&plan.scope.fs_write, "/d/x*", &o), 0);
		assert_int_equal(zb_appcontainer_rules(&plan, &v, &n, &err),
				 ZB_EUNSUPPORTED);
		assert_non_null(strstr(err.msg, "files made later"));
		zb_rule_statuses_done(v, n);
		zb_test_plan_done(&plan);
	}
}

static void whole_drives_are_refused(void **state)
{
	static const char *const roots[] = {"/", "/C:", "/d:"};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(roots); i++) {
		const struct zb_origin o = {.file = (char[]){"scope.json"},
					    .key = (char[]){"fs.read[0]"}};
		struct zb_rule_status *v = NULL;
		struct zb_error err = {0};
		struct zb_plan plan;
		struct zb_place *p;
		struct ac *a;
		size_t n = 0;

		assert_true(zb_test_plan_minimal(&plan));
		assert_int_equal(zb_strv_add(&plan.argv, "p"), 0);
		p = zb_test_place(&plan, ZB_PLACE_GRANT, roots[i], "",
				  ZB_MAY_READ | ZB_MAY_LIST, true);
		assert_non_null(p);
		p->origin.file = zb_strdup(o.file);
		p->origin.key = zb_strdup(o.key);
		assert_int_equal(
			zb_rules_add(&plan.scope.fs_read, roots[i], &o), 0);
		assert_int_equal(zb_appcontainer_rules(&plan, &v, &n, &err),
				 ZB_EUNSUPPORTED);
		zb_rule_statuses_done(v, n);
		a = describe(&plan);
		assert_true(ac_has_line(a, "closed "));
		assert_false(ac_decide(a, AC_READ, "/C:/x", false));
		ac_free(a);
		zb_test_plan_done(&plan);
	}
}

static void refuses_names_that_windows_changes(void **state)
{
	static const char *const bad[] = {
		"/C:/a.",	"/C:/a ",    "/C:/a./b", "/C:/a\\b",
		"/C:/a:stream", "/C:/a?b",   "/C:/x\ny", "/C:/a\"b",
		"/srv/\377",	"/srv/a\nb", "/C:/a/..",
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(bad); i++) {
		struct zb_buf b = {0};
		struct zb_error err = {0};
		struct zb_plan plan;

		assert_true(zb_test_plan_minimal(&plan));
		assert_int_equal(zb_strv_add(&plan.argv, "p"), 0);
		assert_non_null(zb_test_place(&plan, ZB_PLACE_GRANT, bad[i], "",
					      ZB_MAY_READ, false));
		if (zb_appcontainer_render(&plan, &b, &err) != ZB_EUNSUPPORTED)
			fail_msg("%s", bad[i]);
		assert_int_equal(b.len, 0);
		zb_buf_done(&b);
		zb_test_plan_done(&plan);
	}
}

/* What a missing entry would change is noticed. */
static void a_missing_deny_is_noticed(void **state)
{
	struct zb_buf b = {0};
	struct zb_error err = {0};
	struct zb_plan plan;
	char why[200];
	struct ac *a;
	char *deny;

	(void)state;
	assert_true(zb_test_plan("links", &plan));
	assert_int_equal(zb_appcontainer_render(&plan, &b, &err), 0);
	a = ac_read(zb_buf_str(&b), why, sizeof(why));
	assert_non_null(a);
	assert_false(ac_decide(a, AC_READ, "/srv/w/secret.txt", false));
	assert_true(ac_has_line(a, "exists \"/srv/w/secret.txt\""));
	ac_free(a);
	deny = strstr(b.data, "ace deny 0x0001013f");
	assert_non_null(deny);
	*deny = '#';
	a = ac_read(zb_buf_str(&b), why, sizeof(why));
	assert_non_null(a);
	assert_true(ac_decide(a, AC_READ, "/srv/w/secret.txt", false));
	ac_free(a);
	zb_buf_done(&b);
	zb_test_plan_done(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sids_are_those_of_windows),
		cmocka_unit_test(names_are_apart),
		cmocka_unit_test(command_lines_split_again),
		cmocka_unit_test(command_lines_hold_in_general),
		cmocka_unit_test(command_lines_refused),
		cmocka_unit_test(reader_decides_as_windows),
		cmocka_unit_test(never_too_much),
		cmocka_unit_test(process_is_described),
		cmocka_unit_test(network_is_honest),
		cmocka_unit_test(drives),
		cmocka_unit_test(patterns_are_refused),
		cmocka_unit_test(whole_drives_are_refused),
		cmocka_unit_test(refuses_names_that_windows_changes),
		cmocka_unit_test(a_missing_deny_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
