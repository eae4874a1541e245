/* test_prepare.c - from a name or a path to a plan that can be started: what
 * is refused before anything starts, and what is not. The extension is a
 * shell script in a throw-away ZOT_HOME; nothing is run. */
#include "config.h"

#include "cleanup.h"
#include "lock.h"
#include "prepare.h"
#include "tmphome.h"

#include <fcntl.h>

/* HOME is TMP/home, ZOT_HOME TMP/zot; extension "w" is installed there. */
struct fixture {
	struct tmphome *t;
	struct zb_store store;
	struct zb_prepared p;
	struct zb_error err;
};

static const char shipped[] =
	"{\"name\":\"w\",\"version\":\"1.0\",\"exec\":\"./main.sh\","
	"\"args\":[\"--x\"]}";
static const char wrapped[] =
	"{\"name\":\"w\",\"exec\":\"/opt/zotbox\",\"args\":[\"wrap\",\"w\"]}";

static void lock(struct fixture *f)
{
	zb_auto(free) char *dir = in(f->t, "zot/extensions/w");
	zb_auto(free) char *manifest = in(f->t, "zot/zotbox/w/manifest.json");
	zb_auto(free) char *path = in(f->t, "zot/zotbox/w/lock.json");
	struct zb_lock l = {0};

	assert_int_equal(zb_lock_make(&l, dir, manifest, &f->err), 0);
	assert_int_equal(zb_lock_write(&l, path, &f->err), 0);
	zb_lock_done(&l);
}

static struct fixture plant(struct tmphome *t)
{
	struct fixture f = {.t = t};
	zb_auto(free) char *home = put_dir(t, "home");
	zb_auto(free) char *zot = put_dir(t, "zot");

	setenv("HOME", home, 1);
	setenv("ZOT_HOME", zot, 1);
	setenv("PATH", "/usr/bin:/bin", 1);
	unsetenv("XDG_STATE_HOME");
	free(put(t, "zot/extensions/w/main.sh", 0755, "#!/bin/sh\n"));
	free(put(t, "zot/extensions/w/extension.json", 0644, wrapped));
	free(put(t, "zot/zotbox/w/manifest.json", 0600, shipped));
	free(put(t, "zot/zotbox/w/scope.json", 0600,
		 "{\"zotbox\":1,\"extends\":\"strict\"}"));
	assert_int_equal(zb_store_open(&f.store, &f.err), 0);
	lock(&f);
	return f;
}

static void uproot(struct fixture *f)
{
	zb_prepared_done(&f->p);
	zb_store_done(&f->store);
}

static int prepare(struct fixture *f, struct zb_target target)
{
	zb_prepared_done(&f->p);
	f->err = (struct zb_error){0};
	return zb_prepare(&f->p, &f->store, &target, &f->err);
}

#define PREPARE(f, ...) prepare(f, (struct zb_target){__VA_ARGS__})

static void ok(struct fixture *f, int rc)
{
	if (rc)
		fail_msg("%s", f->err.msg);
}

static void refused(struct fixture *f, int rc, int code, const char *words)
{
	assert_int_equal(rc, code);
	if (!strstr(f->err.msg, words))
		fail_msg("\"%s\" is not in \"%s\"", words, f->err.msg);
	assert_null(f->p.plan.exec_path);
	assert_null(f->p.dir);
}

static const struct zb_place *place_at(const struct fixture *f,
				       const char *path)
{
	for (size_t i = 0; i < f->p.plan.n_places; i++)
		if (!strcmp(f->p.plan.places[i].path, path))
			return &f->p.plan.places[i];
	return NULL;
}

static void an_installed_extension(void **state)
{
	struct fixture f = plant(*state);
	zb_auto(free) char *dir = in(f.t, "zot/extensions/w");
	zb_auto(free) char *box = in(f.t, "zot/zotbox/w");
	zb_auto(free) char *script = in(f.t, "zot/extensions/w/main.sh");
	zb_auto(free) char *manifest =
		in(f.t, "zot/extensions/w/extension.json");
	zb_auto(free) char *real = in(f.t, "zot/zotbox/w/manifest.json");
	zb_auto(free) char *home = in(f.t, "home");
	const struct zb_place *p;

	ok(&f, PREPARE(&f, .name = "w"));
	assert_string_equal(f.p.manifest.name, "w");
	assert_string_equal(f.p.manifest.exec, "./main.sh");
	assert_string_equal(f.p.dir, dir);
	assert_string_equal(f.p.box, box);
	assert_string_equal(f.p.policy, "strict");
	assert_string_equal(f.p.plan.base, "strict");
	assert_int_equal(f.p.plan.argv.n, 3);
	assert_string_equal(f.p.plan.argv.v[1], script);
	assert_string_equal(f.p.plan.argv.v[2], "--x");
	assert_string_equal(f.p.plan.cwd, dir);
	/* Inside, extension.json shows the shipped manifest. */
	p = place_at(&f, manifest);
	assert_non_null(p);
	assert_string_equal(p->source, real);
	p = place_at(&f, home);
	assert_non_null(p);
	assert_int_equal(p->kind, ZB_PLACE_HOME);
	assert_true(f.p.story.n > 0);
	uproot(&f);
}

static void private_directories_are_private(void **state)
{
	static const char *const names[] = {"zot/zotbox/w/data",
					    "zot/zotbox/w/home"};
	struct fixture f = plant(*state);
	struct stat st;

	ok(&f, PREPARE(&f, .name = "w"));
	for (size_t i = 0; i < ZB_ARRAY_LEN(names); i++) {
		zb_auto(free) char *path = in(f.t, names[i]);

		assert_int_equal(lstat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0700);
	}
	{
		zb_auto(free) char *home = in(f.t, "zot/zotbox/w/home");
		zb_auto(free) char *cmd = zb_strf("rm -r '%s'", home);

		zb_prepared_done(&f.p);
		assert_int_equal(system(cmd), 0);
		assert_int_equal(symlink("/etc", home), 0);
		refused(&f, PREPARE(&f, .name = "w"), ZB_EPOLICY,
			"no directory of its own");
	}
	uproot(&f);
}

static void unknown_and_wrong_names(void **state)
{
	static const char *const wrong[] = {
		"",	  "..", "a/b", "../w",
		"w.",	  "-x", "w\n", "@0123456789abcdef",
		".lock-w"};
	struct fixture f = plant(*state);
	zb_auto(free) char *link = in(f.t, "zot/extensions/l");
	zb_auto(free) char *path = in(f.t, "zot/extensions/w");

	refused(&f, PREPARE(&f, .name = "nope"), ZB_EPOLICY,
		"\"nope\" is not installed");
	for (size_t i = 0; i < ZB_ARRAY_LEN(wrong); i++)
		refused(&f, PREPARE(&f, .name = wrong[i]), ZB_EUSAGE,
			"is no name of an extension");
	assert_int_equal(symlink("w", link), 0);
	refused(&f, PREPARE(&f, .name = "l"), ZB_EPOLICY, "a symbolic link");
	refused(&f, PREPARE(&f, .name = "w", .path = path), ZB_EUSAGE,
		"by its name or its path");
	refused(&f, PREPARE(&f, .name = NULL), ZB_EUSAGE, "by its name");
	uproot(&f);
}

static void what_zotbox_did_not_install(void **state)
{
	struct fixture f = plant(*state);
	zb_auto(free) char *manifest = in(f.t, "zot/zotbox/w/manifest.json");
	zb_auto(free) char *scope = in(f.t, "zot/zotbox/w/scope.json");
	zb_auto(free) char *lockfile = in(f.t, "zot/zotbox/w/lock.json");

	assert_int_equal(unlink(lockfile), 0);
	refused(&f, PREPARE(&f, .name = "w"), ZB_EPOLICY,
		"its lock cannot be read");
	lock(&f);
	assert_int_equal(unlink(scope), 0);
	refused(&f, PREPARE(&f, .name = "w"), ZB_EPOLICY, "no scope.json");
	assert_int_equal(unlink(manifest), 0);
	refused(&f, PREPARE(&f, .name = "w"), ZB_EPOLICY,
		"was not installed by zotbox");
	uproot(&f);
}

/* The installed manifest is checked by meaning. */
static void the_installed_manifest(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *words;
	} rows[] = {
		{"{\"name\":\"w\",\"exec\":\"./main.sh\"}", ZB_EPOLICY,
		 "is unconfined"},
		{"{\"name\":\"w\",\"exec\":\"/opt/zotbox\",\"args\":"
		 "[\"wrap\",\"other\"]}",
		 ZB_EPOLICY, "is unconfined"},
		{"{\"name\":\"v\",\"exec\":\"/opt/zotbox\",\"args\":"
		 "[\"wrap\",\"v\"]}",
		 ZB_EPOLICY, "names the extension \"v\""},
		{"{\"name\":\"w\",\"exec\":\"/opt/zotbox\",\"args\":"
		 "[\"wrap\",\"w\"],\"Exec\":\"./main.sh\"}",
		 ZB_EUSAGE, "Exec"},
		/* zot's own disable sorts keys and indents. */
		{"{\n  \"args\": [\n    \"wrap\",\n    \"w\"\n  ],\n"
		 "  \"enabled\": false,\n  \"exec\": \"/opt/zotbox\",\n"
		 "  \"name\": \"w\"\n}\n",
		 0, NULL},
	};
	struct fixture f = plant(*state);

	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		free(put(f.t, "zot/extensions/w/extension.json", 0644,
			 rows[i].text));
		if (rows[i].code)
			refused(&f, PREPARE(&f, .name = "w"), rows[i].code,
				rows[i].words);
		else
			ok(&f, PREPARE(&f, .name = "w"));
	}
	uproot(&f);
}

static void changed_code_does_not_start(void **state)
{
	struct fixture f = plant(*state);

	free(put(f.t, "zot/extensions/w/main.sh", 0755, "#!/bin/sh\nid\n"));
	free(put(f.t, "zot/extensions/w/evil.py", 0644, "x"));
	refused(&f, PREPARE(&f, .name = "w"), ZB_EPOLICY, "changed main.sh");
	assert_non_null(strstr(f.err.msg, "added evil.py"));
	assert_non_null(strstr(f.err.msg, "zotbox ext update w"));
	assert_int_equal(f.p.changed.n, 2);
	/* The manifest as shipped is code too. */
	lock(&f);
	ok(&f, PREPARE(&f, .name = "w"));
	free(put(f.t, "zot/zotbox/w/manifest.json", 0600,
		 "{\"name\":\"w\",\"exec\":\"/bin/sh\"}"));
	refused(&f, PREPARE(&f, .name = "w"), ZB_EPOLICY,
		"changed extension.json");
	uproot(&f);
}

static void theme_only(void **state)
{
	struct fixture f = plant(*state);
	static const char theme[] = "{\"name\":\"w\"}";

	free(put(f.t, "zot/extensions/w/theme.json", 0644, "{}"));
	free(put(f.t, "zot/zotbox/w/manifest.json", 0600, theme));
	free(put(f.t, "zot/extensions/w/extension.json", 0644, theme));
	lock(&f);
	refused(&f, PREPARE(&f, .name = "w"), ZB_EPOLICY, "theme-only");
	uproot(&f);
}

static void an_extension_at_a_path(void **state)
{
	struct fixture f = plant(*state);
	zb_auto(free) char *dir = put_dir(f.t, "src/my ext");
	zb_auto(free) char *link = put_link(f.t, "link", "src/my ext");
	zb_auto(free) char *installed = in(f.t, "zot/extensions/w");
	zb_auto(free) char *name = zb_store_path_box_name(dir);
	zb_auto(free) char *box =
		zb_strf("%s/zotbox/%s", f.store.zot_home, name);
	zb_auto(free) char *mark = zb_strf("%s/path", box);
	zb_auto(free) char *line = zb_strf("%s\n", dir);
	struct zb_buf b = {0};

	free(put(f.t, "src/my ext/main.sh", 0755, "#!/bin/sh\n"));
	free(put(f.t, "src/my ext/extension.json", 0644,
		 "{\"name\":\"p\",\"exec\":\"./main.sh\"}"));
	ok(&f, PREPARE(&f, .path = dir));
	assert_string_equal(f.p.policy, "strict");
	assert_string_equal(f.p.box, box);
	assert_string_equal(f.p.dir, dir);
	assert_int_equal(zb_read_file(mark, 4096, &b, &f.err), 0);
	assert_string_equal(zb_buf_str(&b), line);
	zb_buf_done(&b);
	/* Another spelling is the same box; the extension sees the spelling. */
	ok(&f, PREPARE(&f, .path = link));
	assert_string_equal(f.p.box, box);
	assert_string_equal(f.p.plan.extension_dir, link);
	ok(&f, PREPARE(&f, .path = dir, .policy = "standard"));
	assert_string_equal(f.p.policy, "standard");
	assert_true(f.p.plan.state_beside);
	refused(&f, PREPARE(&f, .path = installed), ZB_EUSAGE,
		"is the installed extension \"w\"");
	{
		zb_auto(free) char *odd = put_dir(f.t, "src/\xff");

		refused(&f, PREPARE(&f, .path = odd), ZB_EUSAGE, "not UTF-8");
	}
	refused(&f, PREPARE(&f, .path = "/no/such"), ZB_EUSAGE, "/no/such");
	refused(&f, PREPARE(&f, .path = "/etc/hostname"), ZB_EUSAGE,
		"no directory");
	uproot(&f);
}

static void policies_and_scopes(void **state)
{
	struct fixture f = plant(*state);
	zb_auto(free) char *more = put(f.t, "more.json", 0644,
				       "{\"zotbox\":1,\"extends\":\"strict\","
				       "\"protocol\":{\"submit\":true}}");
	zb_auto(free) char *bare =
		put(f.t, "bare.json", 0644, "{\"zotbox\":1,\"why\":\"x\"}");
	zb_auto(free) char *chain =
		put(f.t, "sub/chain.json", 0644,
		    "{\"zotbox\":1,\"extends\":\"../more.json\","
		    "\"protocol\":{\"panels\":false}}");
	zb_auto(free) char *circle =
		put(f.t, "circle.json", 0644,
		    "{\"zotbox\":1,\"extends\":\"./circle.json\"}");
	zb_auto(free) char *bad = put(f.t, "bad.json", 0644,
				      "{\"zotbox\":1,\"fs\":{\"reed\":[]}}");

	ok(&f, PREPARE(&f, .name = "w", .scope = more));
	assert_string_equal(f.p.policy, "strict+scope");
	assert_true(zb_plan_verb(&f.p.plan, ZB_VERB_SUBMIT, NULL));
	ok(&f, PREPARE(&f, .name = "w", .scope = bare));
	assert_string_equal(f.p.policy, "strict");
	ok(&f, PREPARE(&f, .name = "w", .policy = "strict", .scope = more));
	refused(&f,
		PREPARE(&f, .name = "w", .policy = "standard", .scope = more),
		ZB_EUSAGE, "extends \"strict\", and --policy says");
	ok(&f, PREPARE(&f, .name = "w", .policy = "standard", .scope = bare));
	assert_string_equal(f.p.policy, "standard");
	ok(&f, PREPARE(&f, .name = "w", .scope = chain));
	assert_true(zb_plan_verb(&f.p.plan, ZB_VERB_SUBMIT, NULL));
	assert_false(zb_plan_verb(&f.p.plan, ZB_VERB_PANELS, NULL));
	ok(&f, PREPARE(&f, .name = "w", .policy = chain));
	refused(&f, PREPARE(&f, .name = "w", .scope = circle), ZB_EUSAGE,
		"circle");
	refused(&f, PREPARE(&f, .name = "w", .scope = bad), ZB_EUSAGE,
		"bad.json:1:");
	refused(&f, PREPARE(&f, .name = "w", .scope = "/no/such.json"),
		ZB_EUSAGE, "/no/such.json");
	refused(&f, PREPARE(&f, .name = "w", .policy = "lax"), ZB_EUSAGE,
		"no such policy: lax");
	uproot(&f);
}

/* A scope file in a place that a sandbox fills would grant itself more. */
static void scope_files_out_of_reach(void **state)
{
	struct fixture f = plant(*state);
	zb_auto(free) char *inside =
		put(f.t, "zot/zotbox/v/home/s.json", 0644, "{\"zotbox\":1}");
	zb_auto(free) char *data =
		put(f.t, "zot/zotbox/w/data/s.json", 0644, "{\"zotbox\":1}");
	zb_auto(free) char *link =
		put_link(f.t, "fine.json", "zot/zotbox/w/data/s.json");

	refused(&f, PREPARE(&f, .name = "w", .scope = inside), ZB_EPOLICY,
		"where a sandbox may write");
	refused(&f, PREPARE(&f, .name = "w", .scope = data), ZB_EPOLICY,
		"where a sandbox may write");
	refused(&f, PREPARE(&f, .name = "w", .scope = link), ZB_EPOLICY,
		"where a sandbox may write");
	uproot(&f);
}

static void what_is_asked_for(void **state)
{
	struct fixture f = plant(*state);
	struct zb_buf b = {0};

	free(put(f.t, "zot/extensions/w/permissions.json", 0644,
		 "{\"zotbox\":1,\"fs\":{\"read\":[\"/a\",\"/b\"]},"
		 "\"env\":{\"pass\":[\"PATH\",\"W_KEY\"]},"
		 "\"protocol\":{\"tools\":true,\"submit\":true,"
		 "\"events\":[\"turn_end\"],"
		 "\"intercept\":{\"tool_call\":[\"block\"]}},"
		 "\"limits\":{\"memory\":\"1G\",\"processes\":2}}"));
	lock(&f);
	free(put_dir(f.t, "a"));
	ok(&f, PREPARE(&f, .name = "w"));
	for (size_t i = 0; i < f.p.requested.n; i++)
		zb_buf_addf(&b, "%s%s", i ? "; " : "", f.p.requested.v[i]);
	assert_string_equal(zb_buf_str(&b),
			    "fs.read /a; fs.read /b; env.pass W_KEY; "
			    "protocol.submit true; protocol.events turn_end; "
			    "protocol.intercept.tool_call block; "
			    "limits.memory 1073741824");
	/* Asking grants nothing. */
	assert_false(zb_plan_verb(&f.p.plan, ZB_VERB_SUBMIT, NULL));
	assert_null(place_at(&f, "/a"));
	zb_buf_done(&b);
	/* What cannot be understood is said, and stops nothing. */
	free(put(f.t, "zot/extensions/w/permissions.json", 0644,
		 "{\"\x1b[31m\":1}"));
	lock(&f);
	ok(&f, PREPARE(&f, .name = "w"));
	assert_int_equal(f.p.requested.n, 0);
	assert_true(f.p.plan.notices.n > 0);
	assert_null(strchr(f.p.plan.notices.v[0], 0x1b));
	uproot(&f);
}

static void the_first_runs_are_recorded_in_full(void **state)
{
	struct fixture f = plant(*state);

	/* Rehearsals do not count. */
	for (int i = 0; i < 5; i++) {
		ok(&f, PREPARE(&f, .name = "w"));
		assert_int_equal(f.p.plan.ledger, ZB_LEDGER_FULL);
	}
	for (int i = 0; i < 3; i++) {
		ok(&f, PREPARE(&f, .name = "w", .run = true));
		assert_int_equal(f.p.plan.ledger, ZB_LEDGER_FULL);
	}
	ok(&f, PREPARE(&f, .name = "w", .run = true));
	assert_int_equal(f.p.plan.ledger, ZB_LEDGER_OPEN);
	ok(&f, PREPARE(&f, .name = "w", .full_ledger = true));
	assert_int_equal(f.p.plan.ledger, ZB_LEDGER_FULL);
	/* Another scope: from the start. */
	free(put(
		f.t, "zot/zotbox/w/scope.json", 0600,
		"{\"zotbox\":1,\"extends\":\"strict\",\"ledger\":\"writes\"}"));
	for (int i = 0; i < 3; i++) {
		ok(&f, PREPARE(&f, .name = "w", .run = true));
		assert_int_equal(f.p.plan.ledger, ZB_LEDGER_FULL);
	}
	ok(&f, PREPARE(&f, .name = "w", .run = true));
	assert_int_equal(f.p.plan.ledger, ZB_LEDGER_WRITES);
	/* Other code: likewise. */
	free(put(f.t, "zot/extensions/w/new", 0644, ""));
	lock(&f);
	ok(&f, PREPARE(&f, .name = "w", .run = true));
	assert_int_equal(f.p.plan.ledger, ZB_LEDGER_FULL);
	uproot(&f);
}

/* Broad grants need a word, once, and only for themselves. */
static void breadth_is_confirmed_line_by_line(void **state)
{
	static const char one[] = "{\"zotbox\":1,\"fs\":{\"read\":[\"~\"]}}";
	static const char two[] =
		"{\"zotbox\":1,\"fs\":{\"read\":[\"~\",\"${zot_home}\"]}}";
	static const char less[] =
		"{\"zotbox\":1,\"fs\":{\"read\":[\"~\",\"/etc/hostname\"]}}";
	struct fixture f = plant(*state);
	const char *scope = "zot/zotbox/w/scope.json";

	free(put(f.t, scope, 0600, one));
	refused(&f, PREPARE(&f, .name = "w"), ZB_EPOLICY, "--yes-i-mean-it");
	ok(&f, PREPARE(&f, .name = "w", .mean_it = true));
	ok(&f, PREPARE(&f, .name = "w"));
	/* More of what is not broad is fine; another broad line is not. */
	free(put(f.t, scope, 0600, less));
	ok(&f, PREPARE(&f, .name = "w"));
	free(put(f.t, scope, 0600, two));
	refused(&f, PREPARE(&f, .name = "w"), ZB_EPOLICY, "--yes-i-mean-it");
	ok(&f, PREPARE(&f, .name = "w", .mean_it = true));
	ok(&f, PREPARE(&f, .name = "w"));
	uproot(&f);
}

static void a_word_said_in_vain_is_not_kept(void **state)
{
	struct fixture f = plant(*state);
	zb_auto(free) char *meant = in(f.t, "zot/zotbox/w/meant.json");

	ok(&f, PREPARE(&f, .name = "w", .mean_it = true));
	assert_int_equal(access(meant, F_OK), -1);
	uproot(&f);
}

static void a_stub_in_the_way(void **state)
{
	struct fixture f = plant(*state);
	zb_auto(free) char *zot = put_dir(f.t, "home/state");
	zb_auto(free) char *move = zb_strf("mv '%s'/zot/* '%s'", f.t->dir, zot);

	/* ZOT_HOME below HOME: the extension is mounted inside home/. */
	assert_int_equal(system(move), 0);
	zb_store_done(&f.store);
	setenv("ZOT_HOME", zot, 1);
	assert_int_equal(zb_store_open(&f.store, &f.err), 0);
	ok(&f, PREPARE(&f, .name = "w"));
	zb_prepared_done(&f.p);
	{
		zb_auto(free) char *made =
			in(f.t, "home/state/zotbox/w/home/state/extensions");
		zb_auto(free) char *top =
			in(f.t, "home/state/zotbox/w/home/state");
		zb_auto(free) char *rm = zb_strf("rm -r '%s'", top);

		assert_int_equal(access(made, F_OK), 0);
		assert_int_equal(system(rm), 0);
		assert_int_equal(symlink("/tmp", top), 0);
	}
	refused(&f, PREPARE(&f, .name = "w"), ZB_EPOLICY, "in the way");
	uproot(&f);
}

static void locks_are_held_and_given_back(void **state)
{
	struct fixture f = plant(*state);
	struct zb_prepared never = {0};
	int fd = -1, held;

	ok(&f, PREPARE(&f, .name = "w"));
	held = f.p.lock_fds[0];
	assert_true(held > 2);
	/* NAME is free again: it is held only while we read. */
	assert_int_equal(zb_store_lock(&f.store, "w", true, 0, &fd, &f.err), 0);
	refused(&f, PREPARE(&f, .name = "x"), ZB_EPOLICY, "not installed");
	assert_int_equal(fcntl(held, F_GETFD), -1);
	close(fd);
	/* The names in the box are held until the mounts are made. */
	ok(&f, PREPARE(&f, .name = "w"));
	held = f.p.lock_fds[1];
	assert_true(held > 2);
	zb_prepared_started(&f.p);
	assert_int_equal(fcntl(held, F_GETFD), -1);
	zb_prepared_started(&f.p);
	/* One that was never prepared does not close descriptor 0. */
	zb_prepared_started(&never);
	zb_prepared_done(&never);
	assert_int_not_equal(fcntl(0, F_GETFD), -1);
	zb_prepared_done(NULL);
	uproot(&f);
}

static void a_program_that_is_gone(void **state)
{
	struct fixture f = plant(*state);
	zb_auto(free) char *bin = put_dir(f.t, "vm");
	zb_auto(free) char *link = in(f.t, "vm/interp");
	zb_auto(free) char *path = zb_strf("%s:/usr/bin:/bin", bin);
	bool told = false;

	setenv("PATH", path, 1);
	assert_int_equal(symlink("/bin/sh", link), 0);
	free(put(f.t, "zot/extensions/w/main.sh", 0755,
		 "#!/usr/bin/env interp\n"));
	lock(&f);
	ok(&f, PREPARE(&f, .name = "w"));
	assert_string_equal(f.p.plan.exec_path, link);
	assert_int_equal(unlink(link), 0);
	refused(&f, PREPARE(&f, .name = "w"), ZB_EUSAGE,
		"recorded at install is gone");
	assert_non_null(strstr(f.err.msg, link));
	/* Another one is found: it is told once. */
	free(put_link(f.t, "vm2/interp", "/bin/sh"));
	{
		zb_auto(free) char *other =
			zb_strf("%s/vm2:/usr/bin:/bin", f.t->dir);

		setenv("PATH", other, 1);
	}
	ok(&f, PREPARE(&f, .name = "w"));
	for (size_t i = 0; i < f.p.plan.notices.n; i++)
		told |= strstr(f.p.plan.notices.v[i], "the program is now") !=
			NULL;
	assert_true(told);
	ok(&f, PREPARE(&f, .name = "w"));
	assert_int_equal(f.p.plan.notices.n, 0);
	uproot(&f);
}

static void beside_copies_and_entries(void **state)
{
	struct fixture f = plant(*state);
	zb_auto(free) char *stub = in(f.t, "zot/zotbox/w/data/main.sh");
	struct stat st;

	free(put(f.t, "zot/zotbox/w/scope.json", 0600,
		 "{\"zotbox\":1,\"extends\":\"standard\"}"));
	ok(&f, PREPARE(&f, .name = "w"));
	assert_true(f.p.plan.state_beside);
	assert_string_equal(f.p.plan.data_dir, f.p.plan.extension_dir);
	assert_int_equal(lstat(stub, &st), 0);
	assert_int_equal(st.st_size, 0);
	uproot(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_tmp(an_installed_extension),
		with_tmp(private_directories_are_private),
		with_tmp(unknown_and_wrong_names),
		with_tmp(what_zotbox_did_not_install),
		with_tmp(the_installed_manifest),
		with_tmp(changed_code_does_not_start),
		with_tmp(theme_only),
		with_tmp(an_extension_at_a_path),
		with_tmp(policies_and_scopes),
		with_tmp(scope_files_out_of_reach),
		with_tmp(what_is_asked_for),
		with_tmp(the_first_runs_are_recorded_in_full),
		with_tmp(breadth_is_confirmed_line_by_line),
		with_tmp(a_word_said_in_vain_is_not_kept),
		with_tmp(a_stub_in_the_way),
		with_tmp(locks_are_held_and_given_back),
		with_tmp(a_program_that_is_gone),
		with_tmp(beside_copies_and_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
