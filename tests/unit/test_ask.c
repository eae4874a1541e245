/* test_ask.c - each kind of thing asked for has its words and its risk. */
#include "config.h"

#include "ask.h"
#include "cleanup.h"
#include "scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define GRAVE ZB_RISK_GRAVE
#define HIGH  ZB_RISK_HIGH
#define SOME  ZB_RISK_SOME
#define LOW   ZB_RISK_LOW

static char rsa[] = ".ssh/id_rsa", other[] = "/mnt/x";
static const struct zb_reach home = {.kind = ZB_REACH_DIR,
				     .all = true,
				     .keeper = true,
				     .files = 214,
				     .secrets = 2,
				     .example = rsa};
static const struct zb_reach many = {
	.kind = ZB_REACH_DIR, .files = 200000, .more = true, .secrets = 1};
static const struct zb_reach link_one = {
	.kind = ZB_REACH_DIR, .files = 1, .leads_to = other};
static const struct zb_reach one_file = {.kind = ZB_REACH_FILE, .files = 1};
static const struct zb_reach key_file = {
	.kind = ZB_REACH_FILE, .files = 1, .secrets = 1};
static const struct zb_reach absent = {.kind = ZB_REACH_ABSENT};
static const struct zb_reach zots = {
	.kind = ZB_REACH_DIR, .keeper = true, .files = 9};

static char there[] = "", autostart[] = "~/.config/autostart";
static const struct zb_reach programs = {
	.kind = ZB_REACH_DIR, .files = 3, .runs = there};
static const struct zb_reach holder = {
	.kind = ZB_REACH_DIR, .files = 9, .runs = autostart};

static const struct {
	const char *key, *value;
	const struct zb_reach *reach;
	enum zb_risk risk;
	const char *does;
} rows[] = {
	{"fs.read", "~", &home, GRAVE,
	 "read ~: your whole home directory, and zot's own files, with its "
	 "credentials; 214 files, 2 of them with names of keys or passwords "
	 "(.ssh/id_rsa...)"},
	{"fs.read", "/srv", &many, HIGH,
	 "read /srv: more than 200000 files, at least 1 of them with names of "
	 "keys or passwords"},
	{"fs.read", "~/n", &link_one, SOME,
	 "read ~/n, which is a link to /mnt/x: 1 file"},
	{"fs.read", "/z", &zots, GRAVE,
	 "read /z: zot's own files, with its credentials; 9 files"},
	{"fs.read", "/etc/hosts", &one_file, SOME, "read /etc/hosts"},
	{"fs.read", "~/.aws/credentials", &key_file, HIGH,
	 "read ~/.aws/credentials: its name is one of keys or passwords"},
	{"fs.read", "~/x", &absent, SOME,
	 "read ~/x: not there now, but what is put there later"},
	{"fs.read", "${project}", NULL, SOME,
	 "read ${project}: everything in each project that you start zot in"},
	{"fs.read", "${project}/.env", NULL, HIGH,
	 "read ${project}/.env, in each project that you start zot in"},
	{"fs.read", "~/\033[31m\n", &one_file, SOME, "read ~/\\x1b[31m\\x0a"},
	{"fs.write", "~/.bashrc", &one_file, GRAVE,
	 "change, replace and delete ~/.bashrc; what stands there is run later, "
	 "outside the sandbox"},
	{"fs.write", "~/a", &one_file, HIGH, "change, replace and delete ~/a"},
	{"fs.write", "~/bin", &programs, GRAVE,
	 "change, replace and delete ~/bin: 3 files; what stands there is run "
	 "later, outside the sandbox"},
	{"fs.write", "~/.config", &holder, GRAVE,
	 "change, replace and delete ~/.config: 9 files; what stands in "
	 "~/.config/autostart is run later, outside the sandbox"},
	{"fs.read", "~/bin", &programs, SOME, "read ~/bin: 3 files"},
	{"fs.write", "${project}/.git", NULL, GRAVE,
	 "change, replace and delete ${project}/.git, in each project that you "
	 "start zot in; what stands there is run later, outside the sandbox"},
	{"fs.write", "~/x/.claude/hooks", NULL, GRAVE,
	 "change, replace and delete ~/x/.claude/hooks; what stands there is run "
	 "later, outside the sandbox"},
	{"fs.exec", "git", NULL, SOME,
	 "start the program git, inside the same sandbox"},
	{"fs.deny", "~/x", NULL, LOW, "be kept from ~/x"},
	{"fs.state", "beside", NULL, LOW,
	 "keep its own files beside its code (in a private copy)"},
	{"net.connect", "a.org:443", NULL, HIGH,
	 "talk to a.org:443, and send there whatever it can read"},
	{"net.connect", "*:443", NULL, GRAVE,
	 "talk to any host: what it can read can be anywhere"},
	{"net.listen", "127.0.0.1:1", NULL, HIGH,
	 "be reached from outside at 127.0.0.1:1"},
	{"net.unix", "/run/x", NULL, HIGH,
	 "talk to the program behind /run/x, which runs outside the sandbox"},
	{"env.pass", "LANG2", NULL, SOME,
	 "read the variable LANG2 of your environment"},
	{"env.pass", "MY_API_KEY", NULL, HIGH,
	 "read the variable MY_API_KEY of your environment, which looks like a "
	 "key or password"},
	{"env.pass", "AWS_*", NULL, HIGH,
	 "read every variable AWS_* of your environment"},
	{"env.pass", "*", NULL, GRAVE,
	 "read your whole environment, with every key and token in it"},
	{"env.set", "A=1", NULL, LOW, "set the variable A=1 for itself"},
	{"protocol.commands", "true", NULL, LOW, "use the agent's commands"},
	{"protocol.panels", "any", NULL, SOME,
	 "open a panel unasked: it takes the keyboard while it is open"},
	{"protocol.prompt", "true", NULL, SOME,
	 "answer its commands with a prompt to the model"},
	{"protocol.insert", "true", NULL, SOME,
	 "put text into your input line"},
	{"protocol.submit", "true", NULL, HIGH,
	 "write to the agent in your name, and so have it use its tools"},
	{"protocol.slash", "/x", NULL, HIGH, "run your slash command /x"},
	{"protocol.event_content", "true", NULL, HIGH,
	 "read what you and the model say and what tools return, in the events "
	 "that it gets"},
	{"protocol.events", "turn_end", NULL, SOME,
	 "be told of each turn_end (without what is said)"},
	{"protocol.call_tool", "bash", NULL, GRAVE,
	 "have the agent run any command, outside the sandbox, with all of "
	 "your rights: as good as a shell"},
	{"protocol.call_tool", "bash2", NULL, HIGH,
	 "have the agent run its tool bash2, outside the sandbox"},
	{"protocol.intercept.tool_call", "block", NULL, SOME,
	 "see every tool call with its arguments, and stop it"},
	{"protocol.intercept.tool_call", "modify:edit", NULL, GRAVE,
	 "put its own change in the place of any that the agent makes, outside "
	 "the sandbox, with all of your rights: as good as a shell"},
	{"protocol.intercept.tool_call", "modify:weather", NULL, HIGH,
	 "see each call of the tool weather and rewrite it"},
	{"protocol.intercept.before_agent_start", "replace", NULL, GRAVE,
	 "rewrite the system prompt: what the model takes itself and you for"},
	{"protocol.intercept.assistant_message", "replace", NULL, GRAVE,
	 "rewrite the model's answers: you read what the model did not say"},
	{"protocol.intercept.turn_start", "block", NULL, SOME,
	 "see everything about turn_start, and stop it"},
	{"protocol.intercept.turn_start", "replace", NULL, HIGH,
	 "see and rewrite what goes on at turn_start"},
	{"protocol.on_failure", "block", NULL, SOME,
	 "stop what it watches whenever it fails itself"},
	{"limits.memory", "2G", NULL, LOW,
	 "use more of the machine: memory 2G"},
	{"ledger", "writes", NULL, SOME,
	 "have less of what it is refused written down"},
	{"later.version", "x", NULL, HIGH,
	 "something this version has no words for"},
};

static void words_and_risk(void **state)
{
	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_ask a = {0};

		assert_int_equal(zb_ask_say(&a, rows[i].key, rows[i].value,
					    rows[i].reach),
				 0);
		assert_string_equal(a.does, rows[i].does);
		assert_int_equal(a.risk, rows[i].risk);
		assert_non_null(a.without);
		assert_null(strchr(a.without, '%'));
		assert_null(strchr(a.without, '\033'));
		zb_ask_done(&a);
	}
}

/* What makes a path longer neither hides what it is nor where it ends. */
static void long_paths(void **state)
{
	struct zb_buf v = {0};
	struct zb_ask a = {0};

	(void)state;
	zb_buf_adds(&v, "~/");
	for (int i = 0; i < 200; i++)
		zb_buf_adds(&v, "./");
	zb_buf_adds(&v, "/.ssh/");
	assert_int_equal(zb_ask_say(&a, "fs.write", zb_buf_str(&v), NULL), 0);
	assert_non_null(strstr(a.does, "delete ~/.ssh;"));
	assert_int_equal(a.risk, GRAVE);
	zb_ask_done(&a);
	zb_buf_done(&v);
	zb_buf_adds(&v, "~/");
	for (int i = 0; i < 300; i++)
		zb_buf_adds(&v, " ");
	zb_buf_adds(&v, "/id_rsa.key");
	assert_int_equal(zb_ask_say(&a, "fs.read", zb_buf_str(&v), NULL), 0);
	assert_non_null(strstr(a.does, "..."));
	assert_non_null(strstr(a.does, "/id_rsa.key"));
	assert_non_null(strstr(a.without, "/id_rsa.key"));
	zb_ask_done(&a);
	zb_buf_done(&v);
}

/* A key of the language that nobody has words for would be told as one. */
static void every_key_has_words(void **state)
{
	static const char *const values[] = {"true",   "block", "any",
					     "beside", "x",	NULL};
	const char *const *keys = zb_scope_keys();

	(void)state;
	for (; *keys; keys++) {
		zb_auto(free) char *key = strdup(*keys);
		bool known = false;
		char *star = strstr(key, ".*");

		if (!strchr(key, '.') && strcmp(key, "ledger") != 0)
			continue; /* "zotbox", "extends", "why", sections */
		if (star)
			*star = '\0';
		for (size_t i = 0; !known && values[i]; i++) {
			struct zb_ask a = {0};

			assert_int_equal(zb_ask_say(&a, key, values[i], NULL),
					 0);
			known = !strstr(a.does, "no words for");
			zb_ask_done(&a);
		}
		if (!known && strcmp(key, "protocol.intercept") != 0)
			fail_msg("no words for %s", key);
	}
}

static void names_of_credentials(void **state)
{
	static const char *const yes[] = {".env",	 ".env.local",
					  "id_rsa",	 "x.pem",
					  "credentials", "credentials.json",
					  ".netrc"},
				 *const no[] = {"env", "main.py",   "id",
						"pem", "README.md", "a.keys2"};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(yes); i++)
		assert_true(zb_looks_like_credentials(yes[i]));
	for (size_t i = 0; i < ZB_ARRAY_LEN(no); i++)
		assert_false(zb_looks_like_credentials(no[i]));
}

/* Is, lies in, holds; and what is only like it. */
static void what_is_run_later(void **state)
{
	static const struct {
		const char *path, *only, *want;
	} paths[] = {
		{"/home/u/bin", NULL, ""},
		{"/home/u/bin/x", NULL, ""},
		{"/home/u/binary", NULL, NULL},
		{"/home/u/.local", NULL, "~/.local/bin"},
		{"/home/u/.local/state", NULL, NULL},
		{"/home/u/.local/bin", NULL, ""},
		{"/home/u/.config", NULL, "~/.config/autostart"},
		{"/home/u/.config/autostart", NULL, ""},
		{"/home/u/.config/systemd/user/x.d", NULL, ""},
		{"/home/u/.config/weather", NULL, NULL},
		{"/home/u/.bashrc", NULL, ""},
		{"/home/u/.config/fish", NULL, ""},
		{"/usr/local/bin", NULL, ""},
		{"/usr/local", NULL, "/usr/local/bin"},
		{"/usr/local/share", NULL, NULL},
		{"/etc/profile.d", NULL, ""},
		{"/home/u", "/home/u/b*", "~/bin"},
		{"/home/u", "/home/u/n*", NULL},
		{"/home/u/bin", "/home/u/bin/n*", ""},
		{"/opt/tools", NULL, ""},
		{"/opt", NULL, "/opt/tools"},
		{"/home/u/notes", NULL, NULL},
		{"/srv", NULL, NULL},
	};
	char *dirs[] = {(char[]){"/opt/tools"}};
	const struct zb_strv path = {.v = dirs, .n = 1};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(paths); i++) {
		const char *got = zb_run_later(paths[i].path, paths[i].only,
					       "/home/u", &path);
		const char *want = paths[i].want;

		if (!got != !want || (got && strcmp(got, want) != 0))
			fail_msg("%s: %s", paths[i].path, got ? got : "no");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_run_later),
		cmocka_unit_test(words_and_risk),
		cmocka_unit_test(long_paths),
		cmocka_unit_test(every_key_has_words),
		cmocka_unit_test(names_of_credentials),
	};

	return cmocka_run_group_tests_name("ask", tests, NULL, NULL);
}
