/* test_options.c - command lines against tables, and the help from them. */
#include "options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	O_POLICY,
	O_YES,
	O_FOLLOW,
	O_ADD
};
static const struct zb_option options[] = {
	[O_POLICY] = {"policy", 'p', ZB_ARG_VALUE, "NAME", "base policy",
		      false},
	[O_YES] = {"yes", 'y', ZB_ARG_NONE, NULL, "answer yes", false},
	[O_FOLLOW] = {"follow", 'f', ZB_ARG_OPTIONAL, "N", "go on", false},
	[O_ADD] = {"add", 0, ZB_ARG_VALUE, "X", "one more", true},
	{0},
};
static const struct zb_command table[] = {
	{.name = "ext install",
	 .synopsis = "PATH [--policy NAME]",
	 .help = "install an extension",
	 .options = options,
	 .min_args = 1,
	 .max_args = 1},
	{.name = "ext list", .synopsis = "", .help = "list"},
	{.name = "wrap",
	 .synopsis = "NAME",
	 .help = "wrap",
	 .min_args = 1,
	 .max_args = SIZE_MAX},
	{0},
};

#define ARGV(...)                                                              \
	char *argv[] = {__VA_ARGS__, NULL};                                    \
	int argc = (int)(sizeof(argv) / sizeof(argv[0])) - 1
#define W(s)                                                                   \
	(char[])                                                               \
	{                                                                      \
		s                                                              \
	}

static void finds_the_longest_name(void **state)
{
	struct zb_error err = {0};
	int used;
	ARGV(W("ext"), W("install"), W("x"));

	(void)state;
	assert_ptr_equal(zb_command_find(table, argc, argv, &used, &err),
			 &table[0]);
	assert_int_equal(used, 2);
	assert_ptr_equal(zb_command_find(table, argc - 2, argv, &used, &err),
			 NULL);
	assert_string_equal(err.msg,
			    "\"ext\" needs a command after it: install, list "
			    "(see zotbox help)");
	assert_int_equal(err.code, ZB_EUSAGE);
}

static void unknown_command_names_the_nearest(void **state)
{
	struct zb_error err = {0};
	int used;
	ARGV(W("ext"), W("instal\033"));

	(void)state;
	assert_null(zb_command_find(table, argc, argv, &used, &err));
	assert_non_null(strstr(err.msg, "did you mean \"ext install\"?"));
	/* What was typed is shown, never sent to the terminal. */
	assert_null(strchr(err.msg, '\033'));
	argv[0] = W("zzzzzzzz");
	assert_null(zb_command_find(table, 1, argv, &used, &err));
	assert_null(strstr(err.msg, "did you mean"));
	assert_null(zb_command_find(table, 0, argv, &used, &err));
}

/* A word that only begins like a command is not that command. */
static void prefixes_are_not_commands(void **state)
{
	struct zb_error err = {0};
	int used;
	ARGV(W("wra"));

	(void)state;
	assert_null(zb_command_find(table, argc, argv, &used, &err));
	argv[0] = W("wrapp");
	assert_null(zb_command_find(table, argc, argv, &used, &err));
}

static void values_flags_and_operands(void **state)
{
	struct zb_error err = {0};
	struct zb_args a;
	ARGV(W("--policy=strict"), W("."), W("-yf"), W("--add"), W("1"),
	     W("--add=2"));

	(void)state;
	assert_int_equal(zb_options_parse(&a, &table[0], argc, argv, &err), 0);
	assert_string_equal(a.opt[O_POLICY], "strict");
	assert_string_equal(a.opt[O_YES], "");
	assert_string_equal(a.opt[O_FOLLOW], "");
	assert_int_equal(a.n_many[O_ADD], 2);
	assert_string_equal(a.many[O_ADD][0], "1");
	assert_string_equal(a.many[O_ADD][1], "2");
	assert_int_equal(a.n_args, 1);
	assert_string_equal(a.arg[0], ".");
	assert_ptr_equal(a.given, argv);
	zb_args_done(&a);
}

static void short_values_and_end_of_options(void **state)
{
	struct zb_error err = {0};
	struct zb_args a;
	ARGV(W("-ypstrict"), W("--"), W("--policy"));

	(void)state;
	assert_int_equal(zb_options_parse(&a, &table[0], argc, argv, &err), 0);
	assert_string_equal(a.opt[O_POLICY], "strict");
	assert_string_equal(a.arg[0], "--policy");
	zb_args_done(&a);
	argv[0] = W("-p");
	argv[1] = W("x");
	argv[2] = W("-");
	assert_int_equal(zb_options_parse(&a, &table[0], argc, argv, &err), 0);
	assert_string_equal(a.opt[O_POLICY], "x");
	assert_string_equal(a.arg[0], "-");
	zb_args_done(&a);
}

static void expect_usage(char *word, char *second, const char *text)
{
	struct zb_error err = {0};
	struct zb_args a;
	char *argv[] = {word, second, NULL};

	assert_int_equal(
		zb_options_parse(&a, &table[0], second ? 2 : 1, argv, &err),
		ZB_EUSAGE);
	if (!strstr(err.msg, text))
		fail_msg("\"%s\" lacks \"%s\"", err.msg, text);
	assert_null(a.arg);
}

static void faults_are_named(void **state)
{
	(void)state;
	expect_usage(W("--polcy=x"), W("."), "did you mean --policy?");
	expect_usage(W("--yes=1"), W("."), "--yes takes no value");
	expect_usage(W("."), W("--policy"), "--policy needs a value: NAME");
	expect_usage(W("."), W("-p"), "-p needs a value: NAME");
	expect_usage(W("."), W("-z"), "unknown option -z");
	expect_usage(W("."), W("more"), "unexpected argument \"more\"");
	expect_usage(W("-y"), NULL, "too few arguments");
}

static void help_comes_from_the_table(void **state)
{
	struct zb_buf b = {0};
	struct zb_args a;
	struct zb_error err = {0};
	ARGV(W("-h"));

	(void)state;
	assert_int_equal(zb_options_parse(&a, &table[0], argc, argv, &err), 0);
	assert_true(a.help);
	zb_args_done(&a);
	assert_int_equal(zb_command_help(&table[0], &b), 0);
	for (const struct zb_option *o = options; o->name; o++)
		assert_non_null(strstr(zb_buf_str(&b), o->name));
	assert_non_null(strstr(zb_buf_str(&b), "usage: zotbox ext install "
					       "PATH [--policy NAME]\n"));
	assert_non_null(strstr(zb_buf_str(&b), "  -p, --policy NAME"));
	assert_non_null(strstr(zb_buf_str(&b), "      --add X"));
	zb_buf_clear(&b);
	assert_int_equal(zb_command_list(table, "ext ", &b), 0);
	assert_non_null(strstr(zb_buf_str(&b), "ext list"));
	assert_null(strstr(zb_buf_str(&b), "wrap"));
	zb_buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_longest_name),
		cmocka_unit_test(unknown_command_names_the_nearest),
		cmocka_unit_test(prefixes_are_not_commands),
		cmocka_unit_test(values_flags_and_operands),
		cmocka_unit_test(short_values_and_end_of_options),
		cmocka_unit_test(faults_are_named),
		cmocka_unit_test(help_comes_from_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
