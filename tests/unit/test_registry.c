/* test_registry.c - names over many extensions. */
#include "registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct zb_registry r;
static struct zb_strv logged;

static int start(void **state)
{
	(void)state;
	zb_registry_add(&r, "k1");
	zb_registry_add(&r, "k2");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	zb_registry_done(&r);
	zb_strv_done(&logged);
	return 0;
}

static void take(size_t member, const char *line, bool late)
{
	assert_int_equal(
		zb_registry_take(&r, member, line, strlen(line), late, &logged),
		0);
}

static void command(size_t member, const char *name)
{
	char line[200];

	snprintf(line, sizeof(line),
		 "{\"type\":\"register_command\",\"name\":\"%s\"}", name);
	take(member, line, false);
}

static void tool(size_t member, const char *name, const char *rest, bool late)
{
	char line[200];

	snprintf(line, sizeof(line),
		 "{\"type\":\"register_tool\",\"name\":\"%s\"%s}", name, rest);
	take(member, line, late);
}

/* The one that loads first has the name, though it arrives last. */
static void load_order_not_arrival(void **state)
{
	enum zb_reg_state s;
	size_t m, i;

	(void)state;
	command(1, "DEPLOY");
	assert_true(zb_registry_command(&r, "deploy", &m, &i, &s));
	assert_int_equal(m, 1);
	command(0, "Deploy");
	assert_true(zb_registry_command(&r, "dEPLOY", &m, &i, &s));
	assert_int_equal(m, 0);
	assert_string_equal(r.members[m].commands[i].name, "Deploy");
	/* An end gives the name back, and is remembered. */
	assert_false(zb_registry_lost(&r, false, "deploy", &m));
	zb_registry_end(&r, 0);
	assert_true(zb_registry_lost(&r, false, "deploy", &m));
	assert_int_equal(m, 0);
	assert_true(zb_registry_command(&r, "deploy", &m, &i, &s));
	assert_int_equal(m, 1);
	assert_false(zb_registry_command(&r, "none", &m, &i, &s));
	assert_int_equal(s, ZB_REG_SHADOWED);
}

static void conflicts_are_logged(void **state)
{
	(void)state;
	command(0, "Deploy");
	command(0, "deploy");
	assert_int_equal(r.members[0].n_commands, 1);
	command(1, "DEPLOY");
	command(1, "EXIT"); /* the mediator tells */
	assert_int_equal(logged.n, 0);
	zb_registry_shadows(&r, 0, &logged);
	assert_int_equal(logged.n, 0);
	zb_registry_shadows(&r, 1, &logged);
	assert_int_equal(logged.n, 1);
	assert_string_equal(logged.v[0],
			    "command \"DEPLOY\" already registered "
			    "by k1 as \"Deploy\"; ignored");
}

static void builtins_win(void **state)
{
	enum zb_reg_state s;
	size_t m, i;

	(void)state;
	command(0, "exit");
	tool(0, "bash", "", false);
	assert_false(zb_registry_command(&r, "exit", &m, &i, &s));
	assert_int_equal(s, ZB_REG_BUILTIN);
	assert_false(zb_registry_tool(&r, "bash", &m, &i, &s));
	assert_int_equal(s, ZB_REG_BUILTIN);
}

static void tools_keep_their_schema(void **state)
{
	enum zb_reg_state s;
	size_t m, i, by;

	(void)state;
	tool(0, "t", ",\"description\":\"d\",\"schema\":{\"type\": \"object\"}",
	     false);
	tool(1, "t", "", false);
	assert_true(zb_registry_tool(&r, "t", &m, &i, &s));
	assert_int_equal(m, 0);
	assert_string_equal(r.members[0].tools[0].schema,
			    "{\"type\": \"object\"}");
	assert_string_equal(r.members[0].tools[0].description, "d");
	assert_int_equal(zb_registry_tool_state(&r, 1, 0, &by),
			 ZB_REG_SHADOWED);
	assert_int_equal(by, 0);
	/* Tool names are exact. */
	assert_false(zb_registry_tool(&r, "T", &m, &i, &s));
	zb_registry_end(&r, 0);
	assert_true(zb_registry_lost(&r, true, "t", &m));
	assert_true(zb_registry_tool(&r, "t", &m, &i, &s));
	assert_int_equal(m, 1);
	zb_registry_clear(&r, 0);
	assert_false(zb_registry_lost(&r, true, "t", &m));
}

static void deferred_until_activated(void **state)
{
	enum zb_reg_state s;
	size_t m, i;

	(void)state;
	tool(0, "t", ",\"deferred\":true", false);
	tool(0, "u", ",\"exposure\":\"deferred\"", false);
	assert_false(zb_registry_tool(&r, "t", &m, &i, &s));
	assert_int_equal(s, ZB_REG_DEFERRED);
	assert_false(zb_registry_tool(&r, "u", &m, &i, &s));
	take(1, "{\"type\":\"tool_result\",\"activate_tools\":[\"t\"]}", false);
	assert_false(zb_registry_tool(&r, "t", &m, &i, &s));
	take(0, "{\"type\":\"tool_result\",\"activate_tools\":[\"t\",\"x\"]}",
	     false);
	assert_true(zb_registry_tool(&r, "t", &m, &i, &s));
}

static void late_ones_wait_for_a_turn(void **state)
{
	enum zb_reg_state s;
	size_t m, i;

	(void)state;
	tool(0, "late", "", true);
	assert_string_equal(logged.v[0], "register_tool \"late\" after ready; "
					 "takes effect with the next turn");
	assert_false(zb_registry_tool(&r, "late", &m, &i, &s));
	assert_int_equal(s, ZB_REG_LATE);
	zb_registry_turn(&r);
	assert_true(zb_registry_tool(&r, "late", &m, &i, &s));
}

static void rubbish_is_ignored(void **state)
{
	(void)state;
	take(0, "{", false);
	take(0, "{\"type\":\"notify\",\"name\":\"x\"}", false);
	take(0, "{\"name\":\"x\"}", false);
	take(0, "{\"type\":\"register_command\"}", false);
	take(0, "{\"type\":\"register_tool\",\"name\":5}", false);
	assert_int_equal(r.members[0].n_commands + r.members[0].n_tools, 0);
}

static void the_hosts_own_names(void **state)
{
	struct zb_strv commands = {0}, tools = {0}, none = {0};
	enum zb_reg_state s;
	size_t m, i;

	(void)state;
	command(0, "Plan");
	tool(1, "search", "", false);
	zb_strv_add(&commands, "pLAN");
	zb_strv_add(&tools, "SEARCH");
	assert_int_equal(zb_registry_active_tools(&r, 1), 1);
	assert_int_equal(zb_registry_reserve(&r, &commands, &tools), 0);
	assert_false(zb_registry_command(&r, "plan", &m, &i, &s));
	assert_int_equal(s, ZB_REG_BUILTIN);
	assert_false(zb_registry_tool(&r, "search", &m, &i, &s));
	assert_int_equal(s, ZB_REG_BUILTIN);
	assert_int_equal(zb_registry_active_tools(&r, 1), 0);
	zb_registry_shadows(&r, 0, &logged);
	zb_registry_shadows(&r, 1, &logged);
	assert_int_equal(logged.n, 2);
	assert_string_equal(logged.v[0],
			    "command \"Plan\" is the host's own; ignored");
	/* zot's own stay what they are. */
	assert_int_equal(zb_registry_reserve(&r, &none, &none), 0);
	assert_true(zb_registry_command(&r, "plan", &m, &i, &s));
	assert_false(zb_registry_command(&r, "exit", &m, &i, &s));
	zb_strv_done(&commands);
	zb_strv_done(&tools);
}

static void who_activated_it(void **state)
{
	(void)state;
	tool(0, "a", ",\"deferred\":true", false);
	tool(0, "b", ",\"deferred\":true", false);
	assert_int_equal(zb_registry_active_tools(&r, 0), 0);
	take(0,
	     "{\"type\":\"tool_result\",\"id\":\"z1\","
	     "\"activate_tools\":[\"a\"]}",
	     true);
	take(0,
	     "{\"type\":\"tool_result\",\"id\":\"z2\","
	     "\"activate_tools\":[\"a\",\"b\"]}",
	     true);
	assert_string_equal(r.members[0].tools[0].activated_by, "z1");
	assert_string_equal(r.members[0].tools[1].activated_by, "z2");
	assert_int_equal(zb_registry_active_tools(&r, 0), 2);
	zb_registry_end(&r, 0);
	assert_int_equal(zb_registry_active_tools(&r, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(load_order_not_arrival, start,
						stop),
		cmocka_unit_test_setup_teardown(conflicts_are_logged, start,
						stop),
		cmocka_unit_test_setup_teardown(builtins_win, start, stop),
		cmocka_unit_test_setup_teardown(tools_keep_their_schema, start,
						stop),
		cmocka_unit_test_setup_teardown(deferred_until_activated, start,
						stop),
		cmocka_unit_test_setup_teardown(late_ones_wait_for_a_turn,
						start, stop),
		cmocka_unit_test_setup_teardown(rubbish_is_ignored, start,
						stop),
		cmocka_unit_test_setup_teardown(the_hosts_own_names, start,
						stop),
		cmocka_unit_test_setup_teardown(who_activated_it, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
