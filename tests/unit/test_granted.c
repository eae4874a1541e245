/* test_granted.c - a name that leads elsewhere than when it was granted:
 * refused, or not, and in which words. On a host made of a table. */
#include "fake_host.h"

#include "granted.h"

/* What the host is now; what was granted is in the rows. */
static const char *const files[] = {
	"/bin>usr/bin",
	"/lib>usr/lib",
	"/lib64>usr/lib64",
	"/usr/bin/env",
	"/usr/bin/python3>python3.11",
	"/usr/bin/python3.11",
	"/usr/lib/libc.so.6",
	"/usr/lib64>lib",
	"/usr/lib/python3.11/os.py",
	"/etc/hosts",
	"/etc/resolv.conf",
	"/home/u/.ssh/id",
	"/home/u/.config>dots/config",
	"/home/u/dots/config/app/rc",
	"/home/u/notes/planted>../.ssh",
	"/home/u/notes/real/a",
	"/home/u/notes/file",
	"/home/u/notes/evil>../.ssh/id",
	"/home/u/bin/one",
	"/home/u/bin/was>one",
	"/home/u/bin/new>../.ssh/id",
	"/home/u/src/app/main.c",
	"/home/u/src/app/in>main.c",
	EXT "/extension.json",
	EXT "/main.py",
	BOX "/data/",
	BOX "/home/",
	BOX "/manifest.json",
	"/tmp/",
	NULL,
};

/* As fake_look(), on a system where /usr is root's. */
static void look(void *ctx, const char *path, struct zb_path_fact *out)
{
	fake_look(ctx, path, out);
	out->held = out->is_dir &&
		    (!strcmp(path, "/") || zb_path_below(path, "/usr"));
}

static void expand(void *ctx, const char *pattern, struct zb_strv *out)
{
	(void)ctx;
	assert_string_equal(pattern, "/home/u/bin/*");
	zb_strv_add(out, "/home/u/bin/new");
	zb_strv_add(out, "/home/u/bin/one");
	zb_strv_add(out, "/home/u/bin/was");
}

/* Each of them is a program. */
static int program(void *ctx, const char *name, struct zb_program *out,
		   struct zb_error *err)
{
	(void)ctx;
	(void)err;
	out->exec_path =
		*name == '/' ? zb_strdup(name) : zb_strf("/usr/bin/%s", name);
	return 0;
}

#define LED "it led to "
#define NOW " when it was granted, and leads to "

static const struct {
	const char *scope;
	const char *known[3][3]; /* key, path, real */
	const char *given;
	const char *says; /* the refusal; NULL: there is none */
	const char *kept; /* "PATH REAL" that the plan remembers */
} rows[] = {
	/* seen for the first time: granted now, wherever it leads */
	{"'read':['~/notes/planted']",
	 {{0}},
	 NULL,
	 NULL,
	 "~/notes/planted ~/.ssh"},
	{"'read':['~/notes/none']",
	 {{0}},
	 NULL,
	 NULL,
	 "~/notes/none ~/notes/none"},
	{"'read':['~/.config/app/']",
	 {{0}},
	 NULL,
	 NULL,
	 "~/.config/app ~/dots/config/app"},
	/* a link has taken its place */
	{"'read':['~/notes/planted']",
	 {{"fs.read", "~/notes/planted", "~/notes/planted"}},
	 NULL,
	 LED "~/notes/planted" NOW "~/.ssh now, through the link "
	     "~/notes/planted;",
	 NULL},
	{"'read':['/home/u/notes/planted/id']",
	 {{"fs.read", "~/notes/planted/id", "~/notes/planted/id"}},
	 NULL,
	 LED "~/notes/planted/id" NOW "~/.ssh/id now, through the link "
	     "~/notes/planted;",
	 NULL},
	{"'read':['${home}/notes/planted/*']",
	 {{"fs.read", "~/notes/planted/*", "~/notes/planted"}},
	 NULL,
	 LED "~/notes/planted" NOW "~/.ssh now",
	 NULL},
	{"'write':['~/notes/planted/']",
	 {{"fs.write", "~/notes/planted", "~/notes/planted"}},
	 NULL,
	 LED "~/notes/planted" NOW "~/.ssh now",
	 NULL},
	{"'exec':['~/notes/evil']",
	 {{"fs.exec", "~/notes/evil", "~/notes/evil"}},
	 NULL,
	 LED "~/notes/evil" NOW "~/.ssh/id now",
	 NULL},
	/* what was granted of another list says nothing of this one */
	{"'write':['~/notes/planted']",
	 {{"fs.read", "~/notes/planted", "~/.ssh"},
	  {"fs.write", "~/notes/planted", "~/notes/planted"}},
	 NULL,
	 LED "~/notes/planted" NOW "~/.ssh now",
	 NULL},
	/* the user's own link, as it was */
	{"'read':['~/.config/app']",
	 {{"fs.read", "~/.config/app", "~/dots/config/app"}},
	 NULL,
	 NULL,
	 "~/.config/app ~/dots/config/app"},
	/* - and moved: his word is needed, and enough, in any spelling */
	{"'read':['~/.config/app']",
	 {{"fs.read", "~/.config/app", "~/old/config/app"}},
	 NULL,
	 "to have it so: zotbox ext allow weather fs.read ~/.config/app",
	 NULL},
	{"'read':['~/.config/app','/home/u/.config/app']",
	 {{"fs.read", "~/.config/app", "~/old/config/app"}},
	 "fs.read /home/u/.config/app",
	 NULL,
	 "~/.config/app ~/dots/config/app"},
	{"'read':['~/.config/app']",
	 {{"fs.read", "~/.config/app", "~/old/config/app"}},
	 "fs.write ~/.config/app",
	 LED "~/old/config/app",
	 NULL},
	{"'read':['~/.config/app']",
	 {{"fs.read", "~/.config/app", "~/old/config/app"}},
	 "fs.read ~/.config",
	 LED "~/old/config/app",
	 NULL},
	/* no link any more: the name is its own place */
	{"'read':['~/notes/real']",
	 {{"fs.read", "~/notes/real", "~/elsewhere"}},
	 NULL,
	 NULL,
	 "~/notes/real ~/notes/real"},
	/* - but a deny must cover what it covered */
	{"'read':['~/notes'],'deny':['~/notes/real']",
	 {{"fs.deny", "~/notes/real", "~/elsewhere"}},
	 NULL,
	 LED
	 "~/elsewhere when it was denied, and leads to ~/notes/real now; if "
	 "that was not you, it was somebody who may write there, like "
	 "another extension; to keep the old place denied, and the new one "
	 "too: zotbox ext allow weather fs.deny ~/elsewhere ~/notes/real; "
	 "to have the new one denied alone, which leaves the old one open: "
	 "zotbox ext allow weather fs.deny ~/notes/real",
	 NULL},
	{"'read':['~/notes'],'deny':['~/notes/real']",
	 {{"fs.deny", "~/notes/real", "~/elsewhere"}},
	 "fs.deny ~/notes/real",
	 NULL,
	 "~/notes/real ~/notes/real"},
	{"'read':['~/notes'],'deny':['~/notes/planted/**']",
	 {{"fs.deny", "~/notes/planted/**", "~/notes/planted"}},
	 NULL,
	 LED "~/notes/planted when it was denied, and leads to ~/.ssh now, "
	     "through the link ~/notes/planted; if that was not you, it was "
	     "somebody who may write there, like another extension; what stood "
	     "there may have another name now, which is not denied: find it, "
	     "and deny that first (fs.deny PLACE); to have the new place "
	     "denied, which leaves what was denied open: zotbox ext allow "
	     "weather fs.deny ~/'notes/planted/**'",
	 NULL},
	{"'read':['~/notes'],'deny':['~/notes/planted/*.x']",
	 {{"fs.deny", "~/notes/planted/*.x", "~/else where"}},
	 NULL,
	 "too: zotbox ext allow weather fs.deny ~/'else where/*.x' "
	 "~/'notes/planted/*.x';",
	 NULL},
	/* - with the old place denied, too, both are given */
	{"'read':['~/notes'],'deny':['~/elsewhere','~/notes/real']",
	 {{"fs.deny", "~/notes/real", "~/elsewhere"}},
	 "fs.deny ~/notes/real",
	 NULL,
	 "~/elsewhere ~/elsewhere"},
	/* what has no name that a scope could have */
	{"'read':['~/notes'],'deny':['~/notes/real']",
	 {{"fs.deny", "~/notes/real", "~/a\\x0a"}},
	 NULL,
	 "find it, and deny that first",
	 NULL},
	/* a link that only root could have made: an upgrade */
	{"'exec':['/usr/bin/python3']",
	 {{"fs.exec", "/usr/bin/python3", "/usr/bin/python3.10"}},
	 NULL,
	 NULL,
	 "/usr/bin/python3 /usr/bin/python3.11"},
	/* programs that a pattern finds: those that are links are known one by
	 * one, and a new one is left out */
	{"'exec':['~/bin/*']", {{0}}, NULL, NULL, "~/bin/new ~/.ssh/id"},
	{"'exec':['~/bin/*']",
	 {{"fs.exec", "~/bin/*", "~/bin"},
	  {"fs.exec", "~/bin/was", "~/bin/one"}},
	 NULL,
	 NULL,
	 "!~/bin/new"},
	{"'exec':['~/bin/*']",
	 {{"fs.exec", "~/bin/*", "~/bin"},
	  {"fs.exec", "~/bin/was", "~/bin/one"}},
	 "fs.exec ~/bin/*",
	 NULL,
	 "~/bin/new ~/.ssh/id"},
	/* a project is another one each time; a bare name is PATH's matter */
	{"'read':['${project}/in']", {{0}}, NULL, NULL, "!${project}/in"},
	{"'exec':['env']", {{0}}, NULL, NULL, "!env"},
};

static char *with_quotes(const char *s)
{
	char *out = zb_strf("{'zotbox':1,'fs':{%s}}", s);

	for (char *p = out; *p; p++)
		if (*p == '\'')
			*p = '"';
	return out;
}

static const char *real_of(const struct zb_granted *g, const char *path,
			   size_t n)
{
	for (size_t i = 0; i < g->n; i++)
		if (strlen(g->v[i].path) == n &&
		    !strncmp(g->v[i].path, path, n))
			return g->v[i].real;
	return NULL;
}

static void check_kept(const struct zb_plan *plan, const char *want)
{
	size_t n = strcspn(want, " ");
	const char *real;

	if (*want == '!') {
		assert_null(real_of(&plan->granted, want + 1, n - 1));
		return;
	}
	real = real_of(&plan->granted, want, n);
	if (!real || strcmp(real, want + n + 1) != 0)
		fail_msg("%s: kept %s", want, real ? real : "nothing");
}

static void run_row(size_t i)
{
	zb_auto(free) char *scope = with_quotes(rows[i].scope);
	struct zb_granted known = {0};
	struct zb_strv given = {0};
	struct fake_setup s;
	struct zb_plan plan;
	int rc;

	fake_init(&s);
	s.fake.files = files;
	s.facts.look = look;
	s.facts.expand = expand;
	s.facts.find_program = program;
	s.facts.granted = &known;
	s.facts.given = &given;
	s.facts.command_name = "weather";
	s.scopes[0] = "strict";
	s.scopes[1] = scope;
	for (size_t k = 0; k < 3 && rows[i].known[k][0]; k++)
		assert_int_equal(zb_granted_set(&known, rows[i].known[k][0],
						rows[i].known[k][1],
						rows[i].known[k][2]),
				 0);
	if (rows[i].given)
		zb_strv_add(&given, rows[i].given);
	rc = fake_plan(&s, &plan);
	if (rows[i].says) {
		if (rc != ZB_EPOLICY || !strstr(s.err.msg, rows[i].says))
			fail_msg("row %zu: %d, %s", i, rc, s.err.msg);
	} else if (rc) {
		fail_msg("row %zu: %s", i, s.err.msg);
	} else if (rows[i].kept) {
		check_kept(&plan, rows[i].kept);
	}
	if (!rc)
		zb_plan_done(&plan);
	zb_strv_done(&given);
	zb_granted_done(&known);
	fake_done(&s);
}

static void decides(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		run_row(i);
}

/* Who is not installed has no command; and the line that is wrong is named. */
static void without_a_name(void **state)
{
	struct zb_granted known = {0};
	struct fake_setup s;
	struct zb_plan plan;

	(void)state;
	fake_init(&s);
	s.fake.files = files;
	s.facts.granted = &known;
	zb_granted_set(&known, "fs.read", "~/notes/planted", "~/notes/planted");
	s.scopes[0] = "strict";
	s.scopes[1] =
		"{\"zotbox\":1,\n\"fs\":{\"read\":[\"~/notes/planted\"]}}";
	assert_int_equal(fake_plan(&s, &plan), ZB_EPOLICY);
	assert_non_null(strstr(s.err.msg,
			       "scope.json:2: fs.read[0] \"~/notes/planted\": "
			       "it led to ~/notes/planted when it was granted, "
			       "and leads to ~/.ssh now"));
	assert_non_null(strstr(s.err.msg, "put that place itself into the "
					  "scope file"));
	assert_null(strstr(s.err.msg, "ext allow"));
	zb_granted_done(&known);
	fake_done(&s);
}

/* ---- the list and its file ----------------------------------------------- */

static void there_and_back(void **state)
{
	struct zb_granted g = {0}, back;
	struct zb_buf text = {0};
	struct zb_error err = {0};

	(void)state;
	zb_granted_set(&g, "fs.read", "~/a\"b", "/x\\\\y");
	zb_granted_set(&g, "fs.write", "~/a\"b", "/z");
	zb_granted_set(&g, "fs.read", "~/a\"b", "/new");
	assert_int_equal(g.n, 2);
	assert_int_equal(zb_granted_text(&g, &text), 0);
	assert_int_equal(
		zb_granted_parse(&back, "f", text.data, text.len, &err), 0);
	assert_int_equal(back.n, 2);
	assert_string_equal(zb_granted_real(&back, "fs.read", "~/a\"b"),
			    "/new");
	assert_string_equal(zb_granted_real(&back, "fs.write", "~/a\"b"), "/z");
	assert_null(zb_granted_real(&back, "fs.exec", "~/a\"b"));
	zb_granted_done(&back);
	zb_granted_done(&g);
	zb_buf_done(&text);
}

static void no_list(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"zotbox_granted\":2,\"paths\":[]}",
		"{\"zotbox_granted\":1}",
		"{\"zotbox_granted\":1,\"paths\":{}}",
		"{\"zotbox_granted\":1,\"paths\":[1]}",
		"{\"zotbox_granted\":1,\"paths\":[{\"key\":\"a\",\"path\":"
		"\"b\"}]}",
		"{\"zotbox_granted\":1,\"paths\":[{\"key\":\"a\",\"path\":"
		"\"b\",\"real\":1}]}",
		"{\"zotbox_granted\":1,\"paths\":[{\"key\":\"a\",\"path\":"
		"\"b\",\"real\":\"c\"},{\"key\":\"a\",\"path\":\"b\","
		"\"real\":\"d\"}]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct zb_granted g;
		struct zb_error err = {0};

		if (zb_granted_parse(&g, "f", bad[i], strlen(bad[i]), &err) !=
		    ZB_EUSAGE)
			fail_msg("taken: %s", bad[i]);
		assert_int_equal(g.n, 0);
		assert_non_null(strstr(err.msg, "f:"));
	}
}

static void add_many(struct zb_granted *g, const char *key, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		zb_auto(free) char *path = zb_strf("/p%u", i);

		assert_int_equal(zb_granted_set(g, key, path, "/r"), 0);
	}
}

static void merged(void **state)
{
	struct zb_granted base = {0}, over = {0};
	bool changed;

	(void)state;
	add_many(&base, "fs.read", 3);
	add_many(&over, "fs.read", 2);
	assert_int_equal(zb_granted_merge(&base, &over, &changed), 0);
	assert_false(changed);
	zb_granted_set(&over, "fs.read", "/p1", "/other");
	zb_granted_set(&over, "fs.deny", "/p1", "/r");
	assert_int_equal(zb_granted_merge(&base, &over, &changed), 0);
	assert_true(changed);
	assert_int_equal(base.n, 4);
	assert_string_equal(zb_granted_real(&base, "fs.read", "/p1"), "/other");
	/* Full: what is granted today stays, what was long ago goes. */
	add_many(&base, "fs.exec", ZB_GRANTED_MAX - 4);
	assert_int_equal(zb_granted_set(&base, "fs.exec", "/more", "/r"),
			 ZB_ELIMIT);
	zb_granted_set(&over, "fs.write", "/p1", "/r");
	assert_int_equal(zb_granted_merge(&base, &over, &changed), 0);
	assert_true(changed);
	assert_int_equal(base.n, over.n);
	for (size_t i = 0; i < over.n; i++)
		assert_string_equal(
			zb_granted_real(&base, over.v[i].key, over.v[i].path),
			over.v[i].real);
	zb_granted_done(&base);
	zb_granted_done(&over);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decides),
		cmocka_unit_test(without_a_name),
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(no_list),
		cmocka_unit_test(merged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
