/* test_scope.c - reading, laying over, changing scope files; every message
 * whole, since people and scripts read them. */
#include "cleanup.h"
#include "scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int parse(const char *text, struct zb_scope *s, struct zb_strv *all,
		 struct zb_error *err)
{
	*err = (struct zb_error){0};
	return zb_scope_parse(s, "f.json", text, strlen(text), all, err);
}

/* Wrong files, and the first thing said about each. */
static const struct {
	const char *text, *message;
} wrong[] = {
	/* not JSON, or not one object */
	{"", "f.json:1:1: the text is empty"},
	{"[]", "f.json:1:1: a scope file is an object, { ... }, not a list"},
	{"null", "f.json:1:1: a scope file is an object, { ... }, not null"},
	{"{} x", "f.json:1:4: more text after the end of the value"},
	{"{\n  \"why\": \"a\",\n  \"why\": \"b\"\n}",
	 "f.json:3:3: duplicate key \"why\""},
	{"{\"why\":\"a\",\"WHY\":\"b\"}",
	 "f.json:1:12: duplicate key: \"why\" and \"WHY\" are the same to a "
	 "reader that ignores case"},
	{"{\"why\":\"\\ud800\"}", "f.json:1:9: half of a surrogate pair"},
	{"{ // no\n}", "f.json:1:3: unexpected '/' where a key was expected"},
	{"{\"why\":\"a\",}",
	 "f.json:1:12: unexpected '}' where a key was expected"},
	{"\xef\xbb\xbf{}",
	 "f.json:1:1: the text starts with a byte-order mark"},
	{"{\"why\":\"\xff\"}", "f.json:1:9: byte \\xff is not UTF-8"},
	{"{\"why\":\"a\\u0000b\"}", "f.json:1:10: \\u0000 in a string"},
	/* keys */
	{"{\"fs\":{\"raed\":[]}}",
	 "f.json:1:8: unknown key \"raed\" in fs; did you mean \"read\"?"},
	{"{\n\t\"limit\": {}\n}",
	 "f.json:2:2: unknown key \"limit\"; did you mean \"limits\"?"},
	{"{\"xyzzyx\":1}", "f.json:1:2: unknown key \"xyzzyx\"; remove it"},
	{"{\"protocol\":{\"zzzzzzzz\":1}}",
	 "f.json:1:14: unknown key \"zzzzzzzz\" in protocol; remove it"},
	{"{\"\\u001b[31m\":1}",
	 "f.json:1:2: unknown key \"\\x1b[31m\"; remove it"},
	{"{\"Fs\":{}}", "f.json:1:2: unknown key \"Fs\"; did you mean \"fs\"?"},
	/* types */
	{"{\"fs\":[]}", "f.json:1:7: fs must be an object, not a list"},
	{"{\"fs\":{\"read\":\"~\"}}",
	 "f.json:1:15: fs.read must be a list of strings, not a string"},
	{"{\"fs\":{\"read\":[1]}}",
	 "f.json:1:16: fs.read[0] must be a string, not a number"},
	{"{\"fs\":{\"read\":null}}",
	 "f.json:1:15: fs.read must be a list of strings, not null"},
	{"{\"why\":1}", "f.json:1:8: why must be a string, not a number"},
	{"{\"why\":\"\"}",
	 "f.json:1:8: why is empty; remove it or write something"},
	{"{\"zotbox\":2}",
	 "f.json:1:11: zotbox must be 1, the version of the scope language "
	 "that this program reads"},
	{"{\"zotbox\":\"1\"}",
	 "f.json:1:11: zotbox must be the number 1, not a string"},
	{"{\"ledger\":\"all\"}",
	 "f.json:1:11: ledger must be \"open\" or \"writes\" or \"full\""},
	{"{\"ledger\":\"write\"}",
	 "f.json:1:11: ledger must be \"open\" or \"writes\" or \"full\"; did "
	 "you mean \"writes\"?"},
	{"{\"fs\":{\"state\":\"here\"}}",
	 "f.json:1:16: fs.state must be \"apart\" or \"beside\""},
	{"{\"protocol\":{\"on_failure\":\"deny\"}}",
	 "f.json:1:27: protocol.on_failure must be \"allow\" or \"block\""},
	{"{\"protocol\":{\"submit\":[]}}",
	 "f.json:1:23: protocol.submit must be true or false, not a list"},
	{"{\"protocol\":{\"slash\":true}}",
	 "f.json:1:22: protocol.slash must be false or a list of names, not "
	 "true"},
	{"{\"protocol\":{\"call_tool\":true}}",
	 "f.json:1:26: protocol.call_tool must be false or a list of names, "
	 "not true"},
	{"{\"protocol\":{\"events\":\"any\"}}",
	 "f.json:1:23: protocol.events must be true, false or a list of names, "
	 "not a string"},
	{"{\"protocol\":{\"panels\":\"all\"}}",
	 "f.json:1:23: protocol.panels must be true, false or \"any\", not a "
	 "string"},
	{"{\"protocol\":{\"intercept\":[]}}",
	 "f.json:1:26: protocol.intercept must be an object of lists, one an "
	 "event, not a list"},
	{"{\"protocol\":{\"intercept\":{\"tool_call\":true}}}",
	 "f.json:1:39: protocol.intercept.tool_call must be a list of strings, "
	 "not true"},
	{"{\"env\":{\"set\":{\"A\":1}}}",
	 "f.json:1:20: env.set.A must be a string, not a number"},
	/* paths */
	{"{\"fs\":{\"read\":[\"src\"]}}",
	 "f.json:1:16: fs.read[0] \"src\": not an absolute path; start it with "
	 "/, ~/ or a variable like ${project}"},
	{"{\"fs\":{\"read\":[\"~root/x\"]}}",
	 "f.json:1:16: fs.read[0] \"~root/x\": ~name is not known here; write "
	 "the absolute path"},
	{"{\"fs\":{\"read\":[\"$HOME/x\"]}}",
	 "f.json:1:16: fs.read[0] \"$HOME/x\": variables are written ${name}; "
	 "~/ is ${home}"},
	{"{\"fs\":{\"read\":[\"${projekt}/x\"]}}",
	 "f.json:1:16: fs.read[0] \"${projekt}/x\": unknown variable; did you "
	 "mean ${project}?"},
	{"{\"fs\":{\"read\":[\"${HOME}\"]}}",
	 "f.json:1:16: fs.read[0] \"${HOME}\": unknown variable; known are "
	 "${extension_dir} ${data_dir} ${project} ${home} ${zot_home} ${tmp} "
	 "${xdg_runtime_dir}"},
	{"{\"fs\":{\"read\":[\"${project}x\"]}}",
	 "f.json:1:16: fs.read[0] \"${project}x\": put a / after the variable"},
	{"{\"fs\":{\"read\":[\"/a/${project}\"]}}",
	 "f.json:1:16: fs.read[0] \"/a/${project}\": a variable may stand only "
	 "at the start"},
	{"{\"fs\":{\"read\":[\"${project}/../x\"]}}",
	 "f.json:1:16: fs.read[0] \"${project}/../x\": \"..\" is not allowed; "
	 "name the directory that is meant"},
	{"{\"fs\":{\"read\":[\"\"]}}",
	 "f.json:1:16: fs.read[0] \"\": is empty; remove it"},
	{"{\"fs\":{\"read\":[\"/a/*/b\"]}}",
	 "f.json:1:16: fs.read[0] \"/a/*/b\": a pattern may stand only in the "
	 "last component of a grant"},
	{"{\"fs\":{\"deny\":[\"/a/x**y\"]}}",
	 "f.json:1:16: fs.deny[0] \"/a/x**y\": ** must be a whole component, "
	 "as in dir/**/name"},
	{"{\"fs\":{\"deny\":[\"${project}/*.{pem,key}\"]}}",
	 "f.json:1:16: fs.deny[0] \"${project}/*.{pem,key}\": {a,b} is no "
	 "pattern here; write one entry for each"},
	{"{\"fs\":{\"deny\":[\"${project}/*.p[eq]m\"]}}",
	 "f.json:1:16: fs.deny[0] \"${project}/*.p[eq]m\": [...] is no pattern "
	 "here, only * ? and **"},
	{"{\"fs\":{\"deny\":[\"*.pem\"]}}",
	 "f.json:1:16: fs.deny[0] \"*.pem\": not an absolute path; start it "
	 "with /, ~/ or a variable like ${project}"},
	{"{\"fs\":{\"read\":[\"/a\",\"!reset\"]}}",
	 "f.json:1:21: fs.read[1]: \"!reset\" must be the first element"},
	{"{\"fs\":{\"exec\":[\"git status\"]}}",
	 "f.json:1:16: fs.exec[0] \"git status\": a program, not a command "
	 "line: name the program alone"},
	{"{\"fs\":{\"exec\":[\"git*\"]}}",
	 "f.json:1:16: fs.exec[0] \"git*\": a pattern needs its directory, as "
	 "in /usr/bin/git*"},
	{"{\"fs\":{\"exec\":[\"./run\"]}}",
	 "f.json:1:16: fs.exec[0] \"./run\": not an absolute path; start it "
	 "with /, ~/ or a variable like ${project}"},
	{"{\"net\":{\"unix\":[\"/run/*.sock\"]}}",
	 "f.json:1:17: net.unix[0] \"/run/*.sock\": no patterns here; name the "
	 "path"},
	/* network */
	{"{\"net\":{\"connect\":[\"example.org\"]}}",
	 "f.json:1:20: net.connect[0] \"example.org\": write HOST:PORT, the "
	 "port a number, a list 80,443, a range 8000-8010 or *"},
	{"{\"net\":{\"connect\":[\"example.org:0\"]}}",
	 "f.json:1:20: net.connect[0] \"example.org:0\": write HOST:PORT, the "
	 "port a number, a list 80,443, a range 8000-8010 or *"},
	{"{\"net\":{\"connect\":[\"https://example.org:443\"]}}",
	 "f.json:1:20: net.connect[0] \"https://example.org:443\": the host "
	 "must be a name, *.name, an address, [IPv6], an address/BITS or "
	 "localhost"},
	{"{\"net\":{\"connect\":[\"a.*.org:443\"]}}",
	 "f.json:1:20: net.connect[0] \"a.*.org:443\": the host must be a name, "
	 "*.name, an address, [IPv6], an address/BITS or localhost"},
	{"{\"net\":{\"connect\":[\"10.0.0.0/33:80\"]}}",
	 "f.json:1:20: net.connect[0] \"10.0.0.0/33:80\": the host must be a "
	 "name, *.name, an address, [IPv6], an address/BITS or localhost"},
	{"{\"net\":{\"listen\":[\"127.0.0.1:*\"]}}",
	 "f.json:1:19: net.listen[0] \"127.0.0.1:*\": write ADDRESS:PORT with "
	 "one port, as in 127.0.0.1:38451"},
	{"{\"net\":{\"listen\":[\"example.org:80\"]}}",
	 "f.json:1:19: net.listen[0] \"example.org:80\": the address must be an "
	 "IP address or localhost"},
	/* environment */
	{"{\"env\":{\"pass\":[\"*\"]}}",
	 "f.json:1:17: env.pass[0] \"*\": this would pass every variable; name "
	 "those that are needed"},
	{"{\"env\":{\"pass\":[\"A-B\"]}}",
	 "f.json:1:17: env.pass[0] \"A-B\": not the name of a variable; a * may "
	 "stand only at the end"},
	{"{\"env\":{\"pass\":[\"*_KEY\"]}}",
	 "f.json:1:17: env.pass[0] \"*_KEY\": not the name of a variable; a * "
	 "may stand only at the end"},
	{"{\"env\":{\"set\":{\"A B\":\"\"}}}",
	 "f.json:1:16: env.set.A B: not the name of a variable"},
	/* protocol */
	{"{\"protocol\":{\"tools\":[\"a b\"]}}",
	 "f.json:1:23: protocol.tools[0] \"a b\": not the name of a tool "
	 "(letters, digits, _ and -, at most 64)"},
	{"{\"protocol\":{\"slash\":[\"/a/b\"]}}",
	 "f.json:1:23: protocol.slash[0] \"/a/b\": not the name of a slash "
	 "command"},
	{"{\"protocol\":{\"events\":[\"turn-end\"]}}",
	 "f.json:1:24: protocol.events[0] \"turn-end\": not the name of an "
	 "event"},
	{"{\"protocol\":{\"intercept\":{\"tool_call\":[\"modify\"]}}}",
	 "f.json:1:40: protocol.intercept.tool_call[0] \"modify\": must be "
	 "\"block\", \"replace\" or \"modify:TOOL\""},
	{"{\"protocol\":{\"intercept\":{\"a b\":[]}}}",
	 "f.json:1:27: protocol.intercept.a b: not the name of an event"},
	/* limits */
	{"{\"limits\":{\"memory\":\"512 MB\"}}",
	 "f.json:1:21: limits.memory is no size; write a number of bytes, or "
	 "512K, 512M, 2G"},
	{"{\"limits\":{\"memory\":true}}",
	 "f.json:1:21: limits.memory must be a size: a number of bytes or "
	 "\"512M\", not true"},
	{"{\"limits\":{\"processes\":\"64\"}}",
	 "f.json:1:24: limits.processes must be a number or null, not a "
	 "string"},
	{"{\"limits\":{\"processes\":1.5}}",
	 "f.json:1:24: limits.processes must be a whole number"},
	{"{\"limits\":{\"processes\":0}}",
	 "f.json:1:24: limits.processes must be from 1 to 100000"},
	{"{\"limits\":{\"frame_bytes\":4194304}}",
	 "f.json:1:26: limits.frame_bytes must be from 1024 to 4194303"},
	{"{\"limits\":{\"frame_bytes\":null}}",
	 "f.json:1:26: limits.frame_bytes must be a number, not null"},
	{"{\"limits\":{\"memory\":99999999999999999999}}",
	 "f.json:1:21: limits.memory is no size; write a number of bytes, or "
	 "512K, 512M, 2G"},
	{"{\"limits\":{\"memory\":-1}}",
	 "f.json:1:21: limits.memory is no size; write a number of bytes, or "
	 "512K, 512M, 2G"},
};

static void wrong_files(void **state)
{
	_Static_assert(sizeof(wrong) / sizeof(wrong[0]) >= 70, "enough");
	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(wrong); i++) {
		struct zb_scope s;
		struct zb_error err;
		struct zb_strv all = {0};
		int rc = parse(wrong[i].text, &s, &all, &err);

		if (rc != ZB_EUSAGE)
			fail_msg("%s: %d", wrong[i].text, rc);
		assert_string_equal(err.msg, wrong[i].message);
		assert_true(all.n >= 1);
		assert_string_equal(all.v[0], err.msg);
		assert_null(s.file);
		zb_strv_done(&all);
		/* The same without a place for all of them. */
		assert_int_equal(parse(wrong[i].text, &s, NULL, &err),
				 ZB_EUSAGE);
	}
}

static void all_findings(void **state)
{
	static const char text[] =
		"{\n"
		"  \"fs\": { \"read\": [\"a\", \"/b\", 1] },\n"
		"  \"limits\": { \"memory\": 1, \"x\": 2 },\n"
		"  \"whi\": \"\"\n"
		"}\n";
	static const char *const want[] = {
		"f.json:2:20: fs.read[0] \"a\": not an absolute path; start it "
		"with /, ~/ or a variable like ${project}",
		"f.json:2:31: fs.read[2] must be a string, not a number",
		"f.json:3:25: limits.memory must be from 1048576 to "
		"1125899906842624",
		"f.json:3:28: unknown key \"x\" in limits; remove it",
		"f.json:4:3: unknown key \"whi\"; did you mean \"why\"?",
	};
	struct zb_scope s;
	struct zb_error err;
	struct zb_strv all = {0};

	(void)state;
	assert_int_equal(parse(text, &s, &all, &err), ZB_EUSAGE);
	assert_int_equal(all.n, ZB_ARRAY_LEN(want));
	for (size_t i = 0; i < all.n; i++)
		assert_string_equal(all.v[i], want[i]);
	zb_strv_done(&all);
}

/* A file is bounded, and so is what is said about it. */
static void bounds(void **state)
{
	struct zb_buf b = {0};
	struct zb_scope s;
	struct zb_error err;
	struct zb_strv all = {0};

	(void)state;
	zb_buf_adds(&b, "{\"fs\":{\"read\":[1");
	for (int i = 0; i < 900; i++)
		zb_buf_adds(&b, ",1");
	zb_buf_adds(&b, "]}}");
	assert_int_equal(parse(zb_buf_str(&b), &s, &all, &err), ZB_EUSAGE);
	assert_int_equal(all.n, 100);
	zb_strv_done(&all);
	zb_buf_clear(&b);
	zb_buf_adds(&b, "{\"fs\":{\"read\":[\"/\"");
	for (int i = 0; i < 1000; i++)
		zb_buf_adds(&b, ",\"/\"");
	zb_buf_adds(&b, "]}}");
	assert_int_equal(parse(zb_buf_str(&b), &s, NULL, &err), ZB_EUSAGE);
	assert_string_equal(err.msg, "f.json:1:15: fs.read has more than 1000 "
				     "entries; grant directories instead");
	zb_buf_clear(&b);
	zb_buf_adds(&b, "{\"why\":\"");
	for (int i = 0; i < 5000; i++)
		zb_buf_addc(&b, 'x');
	zb_buf_adds(&b, "\"}");
	assert_int_equal(parse(zb_buf_str(&b), &s, NULL, &err), ZB_EUSAGE);
	assert_string_equal(err.msg, "f.json:1:8: why is longer than 4096 "
				     "bytes; shorten it");
	for (int i = 0; i < 300000; i++)
		zb_buf_addc(&b, ' ');
	assert_int_equal(parse(zb_buf_str(&b), &s, NULL, &err), ZB_EUSAGE);
	assert_string_equal(err.msg, "f.json:1:1: larger than 256 KiB: this is "
				     "no scope file");
	zb_buf_done(&b);
}

/* Everything the language has, once. */
static const char whole[] =
	"{\"$schema\":\"scope.schema.json\",\"zotbox\":1,\"extends\":\"strict\","
	"\"why\":\"w\","
	"\"fs\":{\"read\":[\"${project}\",\"~/.config/weather\"],"
	"\"write\":[\"${project}/.weather/\"],\"exec\":[\"git\",\"/bin/*\"],"
	"\"deny\":[\"${project}/.env*\",\"${project}/**/*.pem\"],"
	"\"state\":\"apart\"},"
	"\"net\":{\"connect\":[\"api.open-meteo.com:443\",\"*.example.org:80,443\","
	"\"10.1.0.0/16:5432\",\"localhost:9224\",\"[::1]:80-90\","
	"\"[2001:db8::]/32:*\",\"b\xc3\xbc"
	"cher.example:443\",\"*:*\"],"
	"\"listen\":[\"127.0.0.1:38451\",\"[::1]:80\"],"
	"\"unix\":[\"${xdg_runtime_dir}/foo.sock\"]},"
	"\"env\":{\"pass\":[\"WEATHER_API_KEY\",\"LC_*\"],"
	"\"set\":{\"NODE_ENV\":\"production\"}},"
	"\"protocol\":{\"commands\":true,\"tools\":[\"a\"],\"deferred\":true,"
	"\"panels\":\"any\",\"notify\":true,\"prompt\":true,\"insert\":true,"
	"\"submit\":false,\"slash\":false,\"call_tool\":[],"
	"\"events\":[\"turn_start\",\"turn_end\"],\"event_content\":false,"
	"\"intercept\":{\"tool_call\":[\"block\",\"modify:weather\"],"
	"\"assistant_message\":[\"replace\"]},\"on_failure\":\"block\"},"
	"\"limits\":{\"memory\":\"512M\",\"processes\":64,\"open_files\":256,"
	"\"file_size\":104857600,\"cpu_seconds\":null,\"hello_seconds\":30,"
	"\"tool_seconds\":60,\"command_seconds\":30,\"intercept_seconds\":5,"
	"\"frame_bytes\":4194303,\"frames_per_second\":200,\"submits\":20,"
	"\"log_bytes\":\"16m\"},\"ledger\":\"writes\"}";

static void a_whole_file(void **state)
{
	struct zb_scope s;
	struct zb_error err;

	(void)state;
	if (parse(whole, &s, NULL, &err))
		fail_msg("%s", err.msg);
	assert_string_equal(s.extends, "strict");
	assert_string_equal(s.why, "w");
	assert_int_equal(s.fs_read.n, 2);
	assert_string_equal(s.fs_read.v[1].value, "~/.config/weather");
	assert_string_equal(s.fs_read.v[1].origin.key, "fs.read[1]");
	assert_string_equal(s.fs_read.v[1].origin.file, "f.json");
	assert_int_equal(s.fs_read.v[1].origin.line, 1);
	assert_true(s.state_set && !s.state_beside);
	assert_int_equal(s.net_connect.n, 8);
	assert_string_equal(s.env_set[0].value, "production");
	assert_true(s.verbs[ZB_VERB_COMMANDS].set);
	assert_true(s.verbs[ZB_VERB_COMMANDS].on);
	assert_true(s.verbs[ZB_VERB_TOOLS].is_list);
	assert_true(s.verbs[ZB_VERB_PANELS].any);
	assert_true(s.verbs[ZB_VERB_SLASH].set);
	assert_false(s.verbs[ZB_VERB_SLASH].on);
	assert_int_equal(s.n_intercepts, 2);
	assert_string_equal(s.intercepts[1].event, "assistant_message");
	assert_true(s.on_failure_block);
	assert_int_equal(s.limits[ZB_LIMIT_MEMORY].value, 512 << 20);
	assert_int_equal(s.limits[ZB_LIMIT_LOG_BYTES].value, 16 << 20);
	assert_true(s.limits[ZB_LIMIT_CPU_SECONDS].none);
	assert_int_equal(s.ledger, ZB_LEDGER_WRITES);
	zb_scope_done(&s);
	/* And nothing. */
	assert_int_equal(parse("{}", &s, NULL, &err), 0);
	assert_false(s.fs_read.set || s.state_set || s.ledger_set ||
		     s.verbs[ZB_VERB_TOOLS].set || s.intercept_set);
	zb_scope_done(&s);
}

static void lines_of_origins(void **state)
{
	struct zb_scope s;
	struct zb_error err;

	(void)state;
	assert_int_equal(parse("{\"limits\":{\n\"memory\":\"1G\"},\n\n\"fs\":{"
			       "\"read\":[\n\"/a\",\n\"/b\"]}}",
			       &s, NULL, &err),
			 0);
	assert_int_equal(s.limits[ZB_LIMIT_MEMORY].origin.line, 2);
	assert_int_equal(s.fs_read.v[0].origin.line, 5);
	assert_int_equal(s.fs_read.v[1].origin.line, 6);
	zb_scope_done(&s);
}

/* Laying over. What comes out is written as JSON by a little printer, so that
 * a row is three texts. */

static void print_rules(struct zb_buf *b, const char *name,
			const struct zb_rules *l)
{
	if (!l->set)
		return;
	zb_buf_addf(b, "%s[", name);
	for (size_t i = 0; i < l->n; i++)
		zb_buf_addf(b, "%s%s", i ? " " : "", l->v[i].value);
	zb_buf_adds(b, "] ");
}

static char *summary(const struct zb_scope *s)
{
	struct zb_buf b = {0};

	print_rules(&b, "read", &s->fs_read);
	print_rules(&b, "deny", &s->fs_deny);
	print_rules(&b, "pass", &s->env_pass);
	for (size_t i = 0; i < s->n_env_set; i++)
		zb_buf_addf(&b, "%s=%s ", s->env_set[i].name,
			    s->env_set[i].value);
	for (unsigned v = 0; v < ZB_VERB_COUNT; v++) {
		const struct zb_switch *w = &s->verbs[v];

		if (w->is_list)
			print_rules(&b, zb_verb_name((enum zb_verb)v),
				    &w->names);
		else if (w->set)
			zb_buf_addf(&b, "%s:%s ", zb_verb_name((enum zb_verb)v),
				    w->any  ? "any"
				    : w->on ? "yes"
					    : "no");
	}
	for (size_t i = 0; i < s->n_intercepts; i++)
		print_rules(&b, s->intercepts[i].event, &s->intercepts[i].may);
	for (unsigned l = 0; l < ZB_LIMIT_COUNT; l++)
		if (s->limits[l].set)
			zb_buf_addf(&b, "%s:%llu%s ",
				    zb_limit_name((enum zb_limit)l),
				    (unsigned long long)s->limits[l].value,
				    s->limits[l].none ? "none" : "");
	if (s->state_set)
		zb_buf_addf(&b, "%s ", s->state_beside ? "beside" : "apart");
	if (s->on_failure_set)
		zb_buf_addf(&b, "%s ", s->on_failure_block ? "block" : "allow");
	if (s->ledger_set)
		zb_buf_addf(&b, "%s ", zb_ledger_mode_name(s->ledger));
	return zb_buf_steal(&b);
}

static void merges(void **state)
{
	static const struct {
		const char *base, *over, *want;
	} rows[] = {
		{"{}", "{}", ""},
		{"{\"fs\":{\"read\":[\"/a\"]}}", "{}", "read[/a] "},
		{"{\"fs\":{\"read\":[\"/a\"]}}", "{\"fs\":{\"read\":[\"/b\"]}}",
		 "read[/a /b] "},
		{"{\"fs\":{\"read\":[\"/a\"]}}",
		 "{\"fs\":{\"read\":[\"/b\",\"/a\"]}}", "read[/a /b] "},
		{"{\"fs\":{\"read\":[\"/a\"]}}",
		 "{\"fs\":{\"read\":[\"!reset\",\"/b\"]}}", "read[/b] "},
		{"{\"fs\":{\"read\":[\"/a\"]}}",
		 "{\"fs\":{\"read\":[\"!reset\"]}}", "read[] "},
		{"{\"fs\":{\"read\":[\"/a\"],\"deny\":[\"/a/x\"]}}",
		 "{\"fs\":{\"deny\":[\"/a/y\"]}}", "read[/a] deny[/a/x /a/y] "},
		{"{\"protocol\":{\"events\":true}}",
		 "{\"protocol\":{\"events\":[\"a\"]}}", "events[a] "},
		{"{\"protocol\":{\"events\":[\"a\"]}}",
		 "{\"protocol\":{\"events\":true}}", "events:yes "},
		{"{\"protocol\":{\"events\":[\"a\"]}}",
		 "{\"protocol\":{\"events\":false}}", "events:no "},
		{"{\"protocol\":{\"events\":[\"a\"]}}",
		 "{\"protocol\":{\"events\":[\"b\"]}}", "events[a b] "},
		{"{\"protocol\":{\"events\":[\"a\"]}}",
		 "{\"protocol\":{\"events\":[\"!reset\",\"b\"]}}",
		 "events[b] "},
		{"{\"protocol\":{\"panels\":true}}",
		 "{\"protocol\":{\"panels\":\"any\"}}", "panels:any "},
		{"{\"protocol\":{\"panels\":\"any\"}}",
		 "{\"protocol\":{\"panels\":true}}", "panels:yes "},
		{"{\"protocol\":{\"submit\":false}}",
		 "{\"protocol\":{\"submit\":true}}", "submit:yes "},
		{"{\"protocol\":{\"intercept\":{\"a\":[\"block\"]}}}",
		 "{\"protocol\":{\"intercept\":{\"a\":[\"replace\"],"
		 "\"b\":[\"block\"]}}}",
		 "a[block replace] b[block] "},
		{"{\"protocol\":{\"intercept\":{\"a\":[\"block\"]}}}",
		 "{\"protocol\":{\"intercept\":{\"a\":[\"!reset\"]}}}", "a[] "},
		{"{\"protocol\":{\"intercept\":{\"a\":[\"block\"]}}}",
		 "{\"protocol\":{\"intercept\":{}}}", "a[block] "},
		{"{\"env\":{\"set\":{\"A\":\"1\",\"B\":\"2\"}}}",
		 "{\"env\":{\"set\":{\"B\":\"3\",\"C\":\"4\"}}}",
		 "A=1 B=3 C=4 "},
		{"{\"limits\":{\"processes\":5,\"submits\":1}}",
		 "{\"limits\":{\"processes\":6}}", "processes:6 submits:1 "},
		{"{\"limits\":{\"processes\":5}}",
		 "{\"limits\":{\"processes\":null}}", "processes:0none "},
		{"{\"fs\":{\"state\":\"apart\"},\"ledger\":\"full\","
		 "\"protocol\":{\"on_failure\":\"block\"}}",
		 "{\"fs\":{\"state\":\"beside\"}}", "beside block full "},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_scope base, over;
		struct zb_error err;
		zb_auto(free) char *got = NULL;

		assert_int_equal(parse(rows[i].base, &base, NULL, &err), 0);
		assert_int_equal(parse(rows[i].over, &over, NULL, &err), 0);
		assert_int_equal(zb_scope_merge(&base, &over, &err), 0);
		got = summary(&base);
		assert_string_equal(got, rows[i].want);
		zb_scope_done(&base);
		zb_scope_done(&over);
	}
}

/* Three files: it does not matter which two are laid over each other first. */
static void merge_is_associative(void **state)
{
	static const char *const texts[] = {
		"{\"fs\":{\"read\":[\"/a\"]},\"protocol\":{\"events\":true,"
		"\"intercept\":{\"x\":[\"block\"]}},\"ledger\":\"full\"}",
		"{\"fs\":{\"read\":[\"!reset\",\"/b\"]},\"protocol\":"
		"{\"events\":[\"e\"],\"intercept\":{\"x\":[\"!reset\","
		"\"replace\"]}}}",
		"{\"fs\":{\"read\":[\"/c\"]},\"protocol\":{\"events\":[\"f\"]},"
		"\"limits\":{\"submits\":3}}",
		"{\"protocol\":{\"events\":false},\"env\":{\"set\":"
		"{\"A\":\"1\"}}}",
	};

	(void)state;
	for (unsigned n = 0; n < 64; n++) {
		const char *t[3] = {texts[n % 4], texts[n / 4 % 4],
				    texts[n / 16]};
		struct zb_scope l[3], r[3];
		struct zb_error err;
		zb_auto(free) char *left = NULL, *right = NULL;

		for (int i = 0; i < 3; i++) {
			assert_int_equal(parse(t[i], &l[i], NULL, &err), 0);
			assert_int_equal(parse(t[i], &r[i], NULL, &err), 0);
		}
		zb_scope_merge(&l[0], &l[1], &err);
		zb_scope_merge(&l[0], &l[2], &err);
		zb_scope_merge(&r[1], &r[2], &err);
		zb_scope_merge(&r[0], &r[1], &err);
		left = summary(&l[0]);
		right = summary(&r[0]);
		assert_string_equal(left, right);
		for (int i = 0; i < 3; i++) {
			zb_scope_done(&l[i]);
			zb_scope_done(&r[i]);
		}
	}
}

static void names_of_chains(void **state)
{
	struct zb_scope a = {0}, b = {0}, c = {0};
	struct zb_error err;

	(void)state;
	assert_int_equal(zb_scope_parse(&a, "strict.json", "{}", 2, NULL, &err),
			 0);
	assert_int_equal(
		zb_scope_parse(&b, "standard.json", "{}", 2, NULL, &err), 0);
	assert_int_equal(zb_scope_parse(&c, "scope.json", "{}", 2, NULL, &err),
			 0);
	zb_scope_merge(&a, &b, &err);
	assert_string_equal(a.file, "standard.json");
	zb_scope_merge(&a, &c, &err);
	assert_string_equal(a.file, "standard.json, scope.json");
	zb_scope_done(&a);
	zb_scope_done(&b);
	zb_scope_done(&c);
}

static void sizes(void **state)
{
	static const struct {
		const char *s;
		bool ok;
		uint64_t value;
	} rows[] = {
		{"0", true, 0},
		{"1k", true, 1024},
		{"1K", true, 1024},
		{"512M", true, 536870912},
		{"2g", true, 1u << 31},
		{"1T", true, 1ull << 40},
		{"", false, 0},
		{"M", false, 0},
		{"1MB", false, 0},
		{"1 M", false, 0},
		{"-1", false, 0},
		{"+1", false, 0},
		{"0x10", false, 0},
		{"1.5M", false, 0},
		{" 1", false, 0},
		{"99999999999999999999", false, 0},
		{"9000000000G", false, 0},
		{"18446744073709551615", false, 0},
		{"9223372036854775807", true, INT64_MAX},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		uint64_t n = 77;

		if (zb_parse_size(rows[i].s, &n) != rows[i].ok ||
		    (rows[i].ok && n != rows[i].value))
			fail_msg("%s", rows[i].s);
	}
}

static void slashes(void **state)
{
	(void)state;
	assert_true(zb_slash_same("/clear", "Clear"));
	assert_true(zb_slash_same("c\xe2\x84\xaa", "ck")); /* Kelvin sign */
	assert_false(zb_slash_same("clear", "cleared"));
	assert_true(zb_slash_forbidden("/UNJAIL"));
	assert_true(zb_slash_forbidden("\xc5\xbf"
				       "ettings")); /* long s */
	assert_false(zb_slash_forbidden("clear"));
}

/* Changing text */

static const struct {
	const char *text, *key, *value;
	bool remove;
	const char *want; /* NULL: unchanged */
} edits[] = {
	/* an empty file is laid out in lines */
	{"{}", "fs.read", "/a", false,
	 "{\n  \"fs\": {\n    \"read\": [\"/a\"]\n  }\n}"},
	{"{}\n", "limits.memory", "1G", false,
	 "{\n  \"limits\": {\n    \"memory\": \"1G\"\n  }\n}\n"},
	{"{}", "ledger", "full", false, "{\n  \"ledger\": \"full\"\n}"},
	{"{}", "protocol.intercept.tool_call", "block", false,
	 "{\n  \"protocol\": {\n    \"intercept\": {\n      \"tool_call\": "
	 "[\"block\"]\n    }\n  }\n}"},
	/* one line stays one line */
	{"{\"zotbox\":1}", "fs.read", "/a", false,
	 "{\"zotbox\":1,\"fs\":{\"read\":[\"/a\"]}}"},
	{"{ \"zotbox\": 1 }", "fs.read", "/a", false,
	 "{ \"zotbox\": 1, \"fs\": {\"read\": [\"/a\"]} }"},
	{"{\"fs\":{\"read\":[\"/a\"]}}", "fs.read", "/b", false,
	 "{\"fs\":{\"read\":[\"/a\",\"/b\"]}}"},
	{"{\"fs\": {\"read\": [\"/a\", \"/b\"]}}", "fs.read", "/c", false,
	 "{\"fs\": {\"read\": [\"/a\", \"/b\", \"/c\"]}}"},
	{"{\"fs\":{\"read\":[]}}", "fs.read", "/a", false,
	 "{\"fs\":{\"read\":[\"/a\"]}}"},
	/* lines and tabs stay; the rest is not touched */
	{"{\n\t\"zotbox\": 1,\n\t\"fs\": {\n\t\t\"read\": [\n\t\t\t\"/a\"\n\t\t"
	 "]\n\t}\n}\n",
	 "fs.read", "/b", false,
	 "{\n\t\"zotbox\": 1,\n\t\"fs\": {\n\t\t\"read\": [\n\t\t\t\"/a\",\n"
	 "\t\t\t\"/b\"\n\t\t]\n\t}\n}\n"},
	{"{\n\t\"zotbox\":   1,\n\t\"fs\": {\n\t\t\"read\": [\"/a\"]\n\t}\n}\n",
	 "fs.write", "/b", false,
	 "{\n\t\"zotbox\":   1,\n\t\"fs\": {\n\t\t\"read\": [\"/a\"],\n\t\t"
	 "\"write\": [\"/b\"]\n\t}\n}\n"},
	{"{\n    \"fs\": {}\n}", "fs.read", "/a", false,
	 "{\n    \"fs\": {\n        \"read\": [\"/a\"]\n    }\n}"},
	{"{\n  \"zotbox\": 1\n}", "env.set", "A=b=c", false,
	 "{\n  \"zotbox\": 1,\n  \"env\": {\n    \"set\": {\n      \"A\": "
	 "\"b=c\"\n    }\n  }\n}"},
	/* already so */
	{"{\"fs\":{\"read\":[\"/a\"]}}", "fs.read", "/a", false, NULL},
	{"{\"fs\":{\"read\":[\"\\u002fa\"]}}", "fs.read", "/a", false, NULL},
	{"{\"protocol\":{\"submit\":true}}", "protocol.submit", "true", false,
	 NULL},
	{"{\"protocol\":{\"events\":true}}", "protocol.events", "turn_end",
	 false, NULL},
	{"{\"ledger\":\"full\"}", "ledger", "full", false, NULL},
	{"{}", "fs.read", "/a", true, NULL},
	{"{\"fs\":{\"read\":[\"/b\"]}}", "fs.read", "/a", true, NULL},
	/* switches */
	{"{\"protocol\":{\"submit\":false}}", "protocol.submit", "true", false,
	 "{\"protocol\":{\"submit\":true}}"},
	{"{\"protocol\":{\"submit\":true}}", "protocol.submit", "true", true,
	 "{\"protocol\":{\"submit\":false}}"},
	{"{\"zotbox\":1}", "protocol.panels", "true", true,
	 "{\"zotbox\":1,\"protocol\":{\"panels\":false}}"},
	{"{\"protocol\":{\"panels\":true}}", "protocol.panels", "any", false,
	 "{\"protocol\":{\"panels\":\"any\"}}"},
	{"{\"protocol\":{\"events\":false}}", "protocol.events", "turn_end",
	 false, "{\"protocol\":{\"events\":[\"turn_end\"]}}"},
	{"{\"protocol\":{\"events\":[\"a\"]}}", "protocol.events", "true",
	 false, "{\"protocol\":{\"events\":true}}"},
	{"{\"protocol\":{\"slash\":false}}", "protocol.slash", "clear", false,
	 "{\"protocol\":{\"slash\":[\"clear\"]}}"},
	/* limits and words */
	{"{\"limits\":{\"memory\":\"1G\"}}", "limits.memory", "2G", false,
	 "{\"limits\":{\"memory\":\"2G\"}}"},
	{"{\"limits\":{\"processes\":5}}", "limits.processes", "6", false,
	 "{\"limits\":{\"processes\":6}}"},
	{"{\"limits\":{\"processes\":5}}", "limits.processes", "null", false,
	 "{\"limits\":{\"processes\":null}}"},
	{"{\"limits\":{\"processes\":5,\"submits\":1}}", "limits.processes",
	 "5", true, "{\"limits\":{\"submits\":1}}"},
	{"{\"limits\":{\"processes\":5}}", "limits.processes", "6", true, NULL},
	{"{\"limits\":{\"submits\":1,\"processes\":5}}", "limits.processes", "",
	 true, "{\"limits\":{\"submits\":1}}"},
	/* taking out of lists: one comma goes along */
	{"{\"fs\":{\"read\":[\"/a\",\"/b\",\"/c\"]}}", "fs.read", "/a", true,
	 "{\"fs\":{\"read\":[\"/b\",\"/c\"]}}"},
	{"{\"fs\":{\"read\":[\"/a\", \"/b\", \"/c\"]}}", "fs.read", "/b", true,
	 "{\"fs\":{\"read\":[\"/a\", \"/c\"]}}"},
	{"{\"fs\":{\"read\":[\"/a\",\"/b\",\"/c\"]}}", "fs.read", "/c", true,
	 "{\"fs\":{\"read\":[\"/a\",\"/b\"]}}"},
	{"{\"fs\":{\"read\":[ \"/a\" ]}}", "fs.read", "/a", true,
	 "{\"fs\":{\"read\":[]}}"},
	{"{\n  \"fs\": {\n    \"read\": [\n      \"/a\",\n      \"/b\"\n    ]\n"
	 "  }\n}",
	 "fs.read", "/b", true,
	 "{\n  \"fs\": {\n    \"read\": [\n      \"/a\"\n    ]\n  }\n}"},
	{"{\"protocol\":{\"intercept\":{\"tool_call\":[\"block\"]}}}",
	 "protocol.intercept.tool_call", "block", true,
	 "{\"protocol\":{\"intercept\":{\"tool_call\":[]}}}"},
	/* what JSON must escape */
	{"{\"zotbox\":1}", "fs.read", "/a \"q\" \\ \xc3\xa9", false,
	 "{\"zotbox\":1,\"fs\":{\"read\":[\"/a \\\"q\\\" \\\\ \xc3\xa9\"]}}"},
};

static void edit_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(edits); i++) {
		struct zb_buf out = {0};
		struct zb_error err = {0};
		bool changed = !edits[i].want;
		int rc = zb_scope_edit(&out, "scope.json", edits[i].text,
				       strlen(edits[i].text), edits[i].key,
				       edits[i].value, edits[i].remove, false,
				       &changed, &err);

		if (rc)
			fail_msg("edit %zu: %s", i, err.msg);
		assert_int_equal(changed, edits[i].want != NULL);
		assert_string_equal(zb_buf_str(&out), edits[i].want
							      ? edits[i].want
							      : edits[i].text);
		zb_buf_done(&out);
	}
}

static void edit_refusals(void **state)
{
	static const struct {
		const char *text, *key, *value;
		bool remove;
		enum zb_code code;
		const char *message;
	} rows[] = {
		{"{}", "fs.raed", "/a", false, ZB_EUSAGE,
		 "unknown key \"fs.raed\"; did you mean fs.read?"},
		/* words of the records */
		{"{}", "fs.create", "/a", false, ZB_EUSAGE,
		 "unknown key \"fs.create\"; did you mean fs.write?"},
		{"{}", "fs.delete", "/a", false, ZB_EUSAGE,
		 "unknown key \"fs.delete\"; did you mean fs.write?"},
		{"{}", "net.dns", "a", false, ZB_EUSAGE,
		 "unknown key \"net.dns\"; did you mean net.connect?"},
		{"{}", "proto.events", "turn_end", false, ZB_EUSAGE,
		 "unknown key \"proto.events\"; did you mean "
		 "protocol.events?"},
		{"{}", "protocol.intercept", "tool_call", false, ZB_EUSAGE,
		 "unknown key \"protocol.intercept\"; did you mean "
		 "protocol.intercept.EVENT (as in "
		 "protocol.intercept.tool_call block)?"},
		{"{}", "envv.set", "A=b", false, ZB_EUSAGE,
		 "unknown key \"envv.set\"; did you mean env.set.NAME?"},
		{"{}", "protocol.events", "turn_edn", false, ZB_EUSAGE,
		 "there is no event \"turn_edn\" to listen to; did you mean "
		 "turn_end?"},
		{"{}", "protocol.intercept.tool_cal", "block", false, ZB_EUSAGE,
		 "there is no event \"tool_cal\" to intercept; did you mean "
		 "tool_call?"},
		{"{}", "nothing", "x", false, ZB_EUSAGE,
		 "unknown key \"nothing\"; keys are dotted, like fs.read or "
		 "protocol.events (zotbox ext allow --help has them)"},
		{"{}", "fs", "x", false, ZB_EUSAGE, NULL},
		{"{}", "protocol.intercept.", "block", false, ZB_EUSAGE, NULL},
		{"{}", "protocol.intercept.a.b", "block", false, ZB_EUSAGE,
		 NULL},
		{"{}", "extends", "observe", false, ZB_EUSAGE,
		 "extends is chosen when the extension is installed (--policy, "
		 "--scope)"},
		{"{}", "env.set", "A", false, ZB_EUSAGE,
		 "env.set takes NAME=VALUE"},
		{"{}", "fs.read", "a", false, ZB_EUSAGE,
		 "fs.read[0] \"a\": not an absolute path; start it with /, ~/ "
		 "or a variable like ${project}"},
		{"{}", "fs.read", "", false, ZB_EUSAGE,
		 "fs.read[0] \"\": is empty; remove it"},
		{"{}", "limits.memory", "lots", false, ZB_EUSAGE,
		 "limits.memory is no size; write a number of bytes, or 512K, "
		 "512M, 2G"},
		{"{}", "protocol.submit", "yes", false, ZB_EUSAGE,
		 "protocol.submit takes true or false, not \"yes\""},
		{"{}", "protocol.slash", "unjail", false, ZB_EPOLICY,
		 "protocol.slash[0] \"unjail\": this command cannot be "
		 "granted to an extension; remove it"},
		{"{\"protocol\":{\"events\":true}}", "protocol.events", "a",
		 true, ZB_EUSAGE,
		 "protocol.events is true, for all names; set it to false, "
		 "then allow those that stay"},
		{"{\"fs\":{\"raed\":1}}", "fs.read", "/a", false, ZB_EUSAGE,
		 "scope.json:1:8: unknown key \"raed\" in fs; did you mean "
		 "\"read\"?"},
	};
	static const struct {
		const char *key, *value;
	} wide[] = {
		{"fs.read", "~"},
		{"fs.read", "/"},
		{"fs.read", "~/"},
		{"fs.read", "/**"},
		{"fs.read", "${home}"},
		{"fs.read", "${zot_home}/"},
		{"fs.read", "${zot_home}/auth.json"},
		{"fs.write", "~"},
		{"fs.exec", "/"},
		{"fs.write", "${project}/.git"},
		{"fs.write", "${project}/sub/.git/hooks/x"},
		{"fs.write", "/w/.envrc"},
		{"fs.write", "~/.claude"},
		{"protocol.call_tool", "bash"},
		{"protocol.call_tool", "WRITE"},
		{"protocol.intercept.tool_call", "modify:edit"},
		{"protocol.intercept.before_agent_start", "replace"},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_buf out = {0};
		struct zb_error err = {0};
		bool changed = true;
		int rc = zb_scope_edit(&out, "scope.json", rows[i].text,
				       strlen(rows[i].text), rows[i].key,
				       rows[i].value, rows[i].remove, false,
				       &changed, &err);

		if (rc != rows[i].code)
			fail_msg("row %zu: %d %s", i, rc, err.msg);
		if (rows[i].message)
			assert_string_equal(err.msg, rows[i].message);
		assert_false(changed);
		assert_string_equal(zb_buf_str(&out), "");
		zb_buf_done(&out);
	}
	/* What needs to be meant is refused, and with the word it is not. */
	for (size_t i = 0; i < ZB_ARRAY_LEN(wide); i++)
		for (int mean = 0; mean < 2; mean++) {
			struct zb_buf out = {0};
			struct zb_error err = {0};
			bool changed;
			int rc = zb_scope_edit(&out, "scope.json", "{}", 2,
					       wide[i].key, wide[i].value,
					       false, mean, &changed, &err);

			if (rc != (mean ? ZB_OK : ZB_EPOLICY))
				fail_msg("%s %s: %d %s", wide[i].key,
					 wide[i].value, rc, err.msg);
			assert_int_equal(changed, mean);
			if (!mean)
				assert_non_null(
					strstr(err.msg, "--yes-i-mean-it"));
			zb_buf_done(&out);
		}
}

/* To grant and to revoke again gives the scope that was there. */
static void there_and_back(void **state)
{
	static const struct {
		const char *key, *value;
	} adds[] = {
		{"fs.read", "/new"},
		{"fs.write", "/new"},
		{"fs.exec", "new"},
		{"fs.deny", "/new/**"},
		{"env.pass", "NEW"},
		{"protocol.events", "new"},
		{"protocol.intercept.tool_call", "replace"},
		{"protocol.intercept.new", "block"},
		{"protocol.call_tool", "new"},
		{"net.connect", "new:1"},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(adds); i++) {
		struct zb_buf more = {0}, back = {0};
		struct zb_scope before, after;
		struct zb_error err = {0};
		zb_auto(free) char *a = NULL, *b = NULL;
		bool changed;

		if (zb_scope_edit(&more, "f.json", whole, strlen(whole),
				  adds[i].key, adds[i].value, false, false,
				  &changed, &err) ||
		    !changed)
			fail_msg("%s: %s", adds[i].key, err.msg);
		assert_true(more.len > strlen(whole));
		if (zb_scope_edit(&back, "f.json", more.data, more.len,
				  adds[i].key, adds[i].value, true, false,
				  &changed, &err) ||
		    !changed)
			fail_msg("%s: %s", adds[i].key, err.msg);
		assert_int_equal(parse(whole, &before, NULL, &err), 0);
		assert_int_equal(parse(zb_buf_str(&back), &after, NULL, &err),
				 0);
		a = summary(&before);
		b = summary(&after);
		/* A new event stays behind, as an empty list. */
		if (strcmp(adds[i].key, "protocol.intercept.new") != 0)
			assert_string_equal(a, b);
		zb_scope_done(&before);
		zb_scope_done(&after);
		zb_buf_done(&more);
		zb_buf_done(&back);
	}
}

/* The schema and the parser know the same keys. */

static char *read_policy(const char *name)
{
	const char *src = getenv("ZB_SRC");
	zb_auto(free) char *path =
		zb_strf("%s/policies/%s", src ? src : ".", name);
	zb_auto(file) FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 18);

	if (!f || !text)
		fail_msg("no %s", path);
	text[fread(text, 1, (1 << 18) - 1, f)] = '\0';
	return text;
}

static void collect(const struct zb_json *j, uint32_t schema,
		    const char *prefix, struct zb_strv *out)
{
	uint32_t props = zb_json_get(j, schema, "properties");

	for (uint32_t p = props == ZB_JSON_NONE ? props
						: zb_json_first(j, props);
	     p != ZB_JSON_NONE; p = zb_json_next(j, p)) {
		zb_auto(free) char *key = zb_json_dup_key(j, p);
		zb_auto(free) char *path =
			*prefix ? zb_strf("%s.%s", prefix, key)
				: zb_strdup(key);
		uint32_t open = zb_json_get(j, p, "additionalProperties");

		if (zb_json_get(j, p, "properties") != ZB_JSON_NONE) {
			/* Closed, as the parser is. */
			assert_int_equal(j->tok[open].type, ZB_JSON_FALSE);
			collect(j, p, path, out);
		} else if (open != ZB_JSON_NONE) {
			zb_strv_addf(out, "%s.*", path);
		} else {
			zb_strv_add(out, path);
		}
	}
}

/* Does the parser take @key? One it knows is refused for its value only. */
static bool parser_knows(const char *key)
{
	struct zb_buf b = {0};
	struct zb_scope s;
	struct zb_error err;
	char name[64];
	char *dot;
	bool known;

	snprintf(name, sizeof(name), "%s", key);
	if (strlen(name) > 2 && !strcmp(name + strlen(name) - 2, ".*"))
		name[strlen(name) - 2] = '\0';
	dot = strchr(name, '.');
	if (dot) {
		*dot = '\0';
		zb_buf_addf(&b, "{\"%s\":{\"%s\":[[]]}}", name, dot + 1);
	} else {
		zb_buf_addf(&b, "{\"%s\":[[]]}", name);
	}
	assert_int_equal(parse(zb_buf_str(&b), &s, NULL, &err), ZB_EUSAGE);
	known = !strstr(err.msg, "unknown key");
	zb_buf_done(&b);
	return known;
}

static void schema_and_parser_agree(void **state)
{
	zb_auto(free) char *text = read_policy("scope.schema.json");
	struct zb_json j = {0};
	struct zb_strv keys = {0};
	const char *const *own = zb_scope_keys();
	size_t n = 0;

	(void)state;
	assert_int_equal(zb_json_scan(&j, text, strlen(text), NULL, NULL), 0);
	collect(&j, 0, "", &keys);
	for (; own[n]; n++) {
		if (!zb_strv_has(&keys, own[n]))
			fail_msg("the schema lacks %s", own[n]);
		if (!parser_knows(own[n]))
			fail_msg("the parser lacks %s", own[n]);
	}
	for (size_t i = 0; i < keys.n; i++)
		if (!parser_knows(keys.v[i]))
			fail_msg("the parser lacks %s", keys.v[i]);
	assert_int_equal(keys.n, n);
	assert_false(parser_knows("fs.nothing"));
	for (unsigned v = 0; v < ZB_VERB_COUNT; v++) {
		zb_auto(free) char *key =
			zb_strf("protocol.%s%s", zb_verb_name((enum zb_verb)v),
				v == ZB_VERB_INTERCEPT ? ".*" : "");

		assert_true(zb_strv_has(&keys, key));
	}
	for (unsigned l = 0; l < ZB_LIMIT_COUNT; l++) {
		zb_auto(free) char *key =
			zb_strf("limits.%s", zb_limit_name((enum zb_limit)l));

		assert_true(zb_strv_has(&keys, key));
	}
	zb_strv_done(&keys);
	zb_json_done(&j);
}

static void presets(void **state)
{
	static const char *const names[] = {"strict.json", "standard.json",
					    "observe.json"};
	struct zb_scope s[3];
	struct zb_error err = {0};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		zb_auto(free) char *text = read_policy(names[i]);
		struct zb_strv all = {0};

		if (zb_scope_parse(&s[i], names[i], text, strlen(text), &all,
				   &err))
			fail_msg("%s", err.msg);
		assert_int_equal(all.n, 0);
	}
	assert_null(s[0].extends);
	assert_string_equal(s[1].extends, "strict");
	assert_string_equal(s[2].extends, "standard");
	/* strict says everything, so that nothing is left to a default. */
	for (unsigned v = 0; v < ZB_VERB_INTERCEPT; v++)
		assert_true(s[0].verbs[v].set);
	for (unsigned l = 0; l < ZB_LIMIT_COUNT; l++)
		assert_true(s[0].limits[l].set);
	assert_true(s[0].state_set && s[0].ledger_set && s[0].on_failure_set &&
		    s[0].intercept_set);
	assert_int_equal(s[0].fs_read.n + s[0].fs_write.n + s[0].fs_exec.n +
				 s[0].net_connect.n + s[0].net_listen.n +
				 s[0].net_unix.n,
			 0);
	/* standard: secrets of the project denied, limits doubled */
	assert_int_equal(s[1].fs_deny.n, 17);
	for (unsigned l = 0; l < ZB_LIMIT_COUNT; l++)
		if (s[1].limits[l].set)
			assert_int_equal(s[1].limits[l].value,
					 2 * s[0].limits[l].value);
	assert_true(s[1].state_beside);
	for (size_t i = 0; i < 3; i++)
		zb_scope_done(&s[i]);
}

static void judged(void **state)
{
	static const struct {
		const char *text;
		bool refused, meant;
	} rows[] = {
		{"{}", false, false},
		{"{\"protocol\":{\"slash\":[\"clear\"]}}", false, false},
		{"{\"protocol\":{\"slash\":[\"/jail\"]}}", true, true},
		{"{\"protocol\":{\"slash\":[\"SETTINGS\"]}}", true, true},
		{"{\"protocol\":{\"call_tool\":[\"read\"]}}", false, false},
		{"{\"protocol\":{\"call_tool\":[\"Bash\"]}}", true, false},
		{"{\"protocol\":{\"intercept\":{\"tool_call\":"
		 "[\"modify:read\"]}}}",
		 false, false},
		{"{\"protocol\":{\"intercept\":{\"tool_call\":"
		 "[\"modify:write\"]}}}",
		 true, false},
		{"{\"protocol\":{\"intercept\":{\"assistant_message\":"
		 "[\"replace\"]}}}",
		 false, false},
		{"{\"protocol\":{\"intercept\":{\"before_agent_start\":"
		 "[\"replace\"]}}}",
		 true, false},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_scope s;
		struct zb_error err;

		assert_int_equal(parse(rows[i].text, &s, NULL, &err), 0);
		assert_int_equal(zb_scope_judge(&s, false, &err),
				 rows[i].refused ? ZB_EPOLICY : ZB_OK);
		assert_int_equal(zb_scope_judge(&s, true, &err),
				 rows[i].meant ? ZB_EPOLICY : ZB_OK);
		zb_scope_done(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_files),
		cmocka_unit_test(all_findings),
		cmocka_unit_test(bounds),
		cmocka_unit_test(a_whole_file),
		cmocka_unit_test(lines_of_origins),
		cmocka_unit_test(merges),
		cmocka_unit_test(merge_is_associative),
		cmocka_unit_test(names_of_chains),
		cmocka_unit_test(sizes),
		cmocka_unit_test(slashes),
		cmocka_unit_test(edit_rows),
		cmocka_unit_test(edit_refusals),
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(schema_and_parser_agree),
		cmocka_unit_test(presets),
		cmocka_unit_test(judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
