/* test_runtime.c - from a manifest's exec to the real program, and what it
 * needs. Programs here are fake ELF files in a throw-away HOME: found, looked
 * at, never run. */
#include "config.h"

#include "cleanup.h"
#include "runtime.h"
#include "shim.h"
#include "store.h"
#include "tmphome.h"

#include "fake_elf.h"

#include <dirent.h>
#include <sys/stat.h>

static unsigned machine; /* of this program */

/* HOME is TMP/home, the extension TMP/home/zot/extensions/t, PATH is
 * TMP/home/bin:TMP/sys/bin:TMP/sys/sbin. */
struct place {
	struct tmphome *t;
	char *home, *ext, *path;
};

static struct place plant(struct tmphome *t)
{
	struct place p = {.t = t,
			  .home = put_dir(t, "home"),
			  .ext = put_dir(t, "home/zot/extensions/t")};

	free(put_dir(t, "home/bin"));
	free(put_dir(t, "sys/bin"));
	p.path = zb_strf("%s/home/bin:%s/sys/bin:relative::", t->dir, t->dir);
	setenv("HOME", p.home, 1);
	unsetenv("PYENV_VERSION");
	unsetenv("PYENV_ROOT");
	unsetenv("ASDF_DATA_DIR");
	unsetenv("ASDF_NODEJS_VERSION");
	return p;
}

static void uproot(struct place *p)
{
	free(p->home);
	free(p->ext);
	free(p->path);
}

static void put_elf_as(struct tmphome *t, const char *name, unsigned mach,
		       unsigned type, const char *interp, const char *runpath)
{
	unsigned char bytes[FAKE_ELF_SIZE];
	zb_auto(free) char *path = put(t, name, 0755, "");
	FILE *f = fopen(path, "we");

	fake_elf(bytes, mach, type, interp, runpath);
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, sizeof(bytes), f), sizeof(bytes));
	assert_int_equal(fclose(f), 0);
}

static void put_elf(struct tmphome *t, const char *name)
{
	put_elf_as(t, name, machine, 3, NULL, NULL);
}

static void put_script(struct tmphome *t, const char *name, const char *text)
{
	free(put(t, name, 0755, text));
}

static int resolve(struct place *p, struct zb_program *out, const char *exec,
		   const char *const *args, struct zb_error *err)
{
	struct zb_manifest m = {.name = (char[]){"t"}};
	int rc;

	m.exec = zb_strdup(exec);
	for (; args && *args; args++)
		zb_strv_add(&m.args, *args);
	*out = (struct zb_program){0};
	*err = (struct zb_error){0};
	rc = zb_runtime_resolve(out, p->ext, &m, p->path, err);
	zb_strv_done(&m.args);
	free(m.exec);
	return rc;
}

/* All of argv with | between, TMP for the throw-away directory. */
static char *argv_text(struct place *p, const struct zb_program *prog)
{
	struct zb_buf b = {0};
	size_t n = strlen(p->t->dir);

	for (size_t i = 0; i < prog->argv.n; i++) {
		const char *s = prog->argv.v[i];

		zb_buf_adds(&b, i ? "|" : "");
		if (!strncmp(s, p->t->dir, n))
			zb_buf_addf(&b, "TMP%s", s + n);
		else
			zb_buf_adds(&b, s);
	}
	return zb_buf_steal(&b);
}

static unsigned rights_of(struct place *p, const struct zb_program *prog,
			  const char *name)
{
	zb_auto(free) char *path =
		name[0] == '/' ? zb_strdup(name) : in(p->t, name);

	for (size_t i = 0; i < prog->n_needs; i++)
		if (!strcmp(prog->needs[i].path, path))
			return prog->needs[i].rights;
	return 0;
}

#define RX ((unsigned)(ZB_MAY_READ | ZB_MAY_EXEC))
#define RL ((unsigned)(ZB_MAY_READ | ZB_MAY_LIST))

static void expect(struct place *p, const char *exec, const char *argv)
{
	struct zb_program prog;
	struct zb_error err;
	zb_auto(free) char *text = NULL;

	if (resolve(p, &prog, exec, NULL, &err))
		fail_msg("%s: %s", exec, err.msg);
	text = argv_text(p, &prog);
	assert_string_equal(text, argv);
	zb_program_done(&prog);
}

static void refuse(struct place *p, const char *exec, int code,
		   const char *words)
{
	struct zb_program prog;
	struct zb_error err;

	assert_int_equal(resolve(p, &prog, exec, NULL, &err), code);
	if (!strstr(err.msg, words))
		fail_msg("\"%s\" is not in \"%s\"", words, err.msg);
	assert_null(prog.exec_path);
}

static void exec_as_zot_takes_it(void **state)
{
	struct place p = plant(*state);
	zb_auto(free) char *absolute = in(p.t, "sys/bin/tool");

	put_elf(p.t, "home/zot/extensions/t/hello");
	put_elf(p.t, "home/zot/extensions/t/sub/hello");
	put_elf(p.t, "sys/bin/tool");
	put_elf(p.t, "home/bin/tool2");
	free(put(p.t, "home/bin/tool", 0644, "not executable"));
	expect(&p, "./hello", "TMP/home/zot/extensions/t/hello");
	expect(&p, "sub/hello", "TMP/home/zot/extensions/t/sub/hello");
	expect(&p, "sub/../hello", "TMP/home/zot/extensions/t/hello");
	expect(&p, absolute, "TMP/sys/bin/tool");
	expect(&p, "tool", "TMP/sys/bin/tool");
	expect(&p, "tool2", "TMP/home/bin/tool2");
	/* A bare name is never looked for in the extension's directory. */
	refuse(&p, "hello", ZB_EUSAGE, "t: exec hello: not found in PATH");
	refuse(&p, "./nope", ZB_EUSAGE, "t: exec ./nope: not found");
	refuse(&p, "", ZB_EUSAGE, "exec is empty");
	refuse(&p, "./sub", ZB_EUSAGE, "is a directory");
	refuse(&p, "./a\x1b[31mb", ZB_EUSAGE, "a\\x1b[31mb");
	uproot(&p);
}

static void what_cannot_be_started(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *words;
	} rows[] = {
		{"", ZB_EUSAGE, "cannot run x: it is empty"},
		{"import os\n", ZB_EUSAGE, "exec format error: a script needs"},
		{"\xef\xbb\xbf#!/bin/sh\n", ZB_EUSAGE, "byte-order mark"},
		{"\xcf\xfa\xed\xfe", ZB_EUSAGE, "built for macOS"},
		{"MZ", ZB_EUSAGE, "built for Windows"},
		{"#!\n", ZB_EUSAGE, "names no interpreter"},
		{"#!/no/such/interp -x\n", ZB_EUSAGE,
		 "interpreter \"/no/such/interp\" does not exist"},
		{"#!/usr/bin/env no-such-program\n", ZB_EUSAGE,
		 "interpreter no-such-program not found in PATH"},
		{"#!/usr/bin/python3\r\n", ZB_EUSAGE,
		 "t: x line 1 ends in CRLF: interpreter "
		 "\"/usr/bin/python3\\r\" does not exist (convert the file to "
		 "LF)"},
		{"#!/usr/bin/env python3\r\n", ZB_EUSAGE,
		 "interpreter \"python3\\r\" does not exist"},
		{"#!/usr/bin/env -i python3\n", ZB_EUSAGE,
		 "only a program name"},
		{"#!/usr/bin/env -S A=1 python3\n", ZB_EUSAGE,
		 "only a program name"},
		{"#!/usr/bin/env -S $X\n", ZB_EUSAGE, "variable"},
	};
	struct place p = plant(*state);

	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		put_script(p.t, "home/zot/extensions/t/x", rows[i].text);
		refuse(&p, "./x", rows[i].code, rows[i].words);
	}
	free(put(p.t, "home/zot/extensions/t/x", 0644, "#!/bin/sh\n"));
	refuse(&p, "./x", ZB_EUSAGE, "not executable (chmod +x x)");
	put_elf_as(p.t, "home/zot/extensions/t/x", machine == 62 ? 183 : 62, 3,
		   NULL, NULL);
	refuse(&p, "./x", ZB_EUSAGE, "it is built for");
	put_elf_as(p.t, "home/zot/extensions/t/x", machine, 1, NULL, NULL);
	refuse(&p, "./x", ZB_EUSAGE, "object file");
	put_elf_as(p.t, "home/zot/extensions/t/x", machine, 3, "/no/ld.so",
		   NULL);
	refuse(&p, "./x", ZB_EUSAGE,
	       "cannot run x: its loader /no/ld.so is not on this host");
	/* A circle of scripts. */
	{
		zb_auto(free) char *line =
			zb_strf("#!%s/sys/bin/loop\n", p.t->dir);

		put_script(p.t, "sys/bin/loop", line);
		refuse(&p, "loop", ZB_EUSAGE, "interpreters one behind");
	}
	uproot(&p);
}

/* INTERP [ARG] SCRIPT ARGS, as execve(2) builds it; env is seen through. */
static void argv_as_the_kernel_builds_it(void **state)
{
	static const char *const args[] = {"--mode", "a b", NULL};
	struct place p = plant(*state);
	zb_auto(free) char *line =
		zb_strf("#!%s/sys/bin/interp  -x -y \n", p.t->dir);
	zb_auto(free) char *nested = zb_strf("#!%s/sys/bin/outer\n", p.t->dir);
	zb_auto(free) char *text = NULL;
	struct zb_program prog;
	struct zb_error err;

	put_elf(p.t, "sys/bin/interp");
	put_script(p.t, "home/zot/extensions/t/x", line);
	assert_int_equal(resolve(&p, &prog, "./x", args, &err), 0);
	text = argv_text(&p, &prog);
	assert_string_equal(text, "TMP/sys/bin/interp|-x -y|"
				  "TMP/home/zot/extensions/t/x|--mode|a b");
	assert_string_equal(prog.exec_path, prog.argv.v[0]);
	assert_string_equal(prog.kind, "native");
	assert_int_equal(rights_of(&p, &prog, "sys/bin/interp"), RX);
	/* The extension's own files are shown with its directory. */
	assert_int_equal(rights_of(&p, &prog, "home/zot/extensions/t/x"), 0);
	zb_program_done(&prog);

	put_script(p.t, "home/zot/extensions/t/x",
		   "#!/usr/bin/env -S interp --yes 'a b'\n");
	expect(&p, "./x",
	       "TMP/sys/bin/interp|--yes|a b|TMP/home/zot/extensions/t/x");
	/* An interpreter that is a script itself. */
	put_script(p.t, "sys/bin/outer", line);
	put_script(p.t, "home/zot/extensions/t/x", nested);
	expect(&p, "./x",
	       "TMP/sys/bin/interp|-x -y|TMP/sys/bin/outer|"
	       "TMP/home/zot/extensions/t/x");
	uproot(&p);
}

static void env_in_a_manifest(void **state)
{
	static const char *const args[] = {"interp", "-u", "main.py", NULL};
	struct place p = plant(*state);
	struct zb_program prog;
	struct zb_error err;
	zb_auto(free) char *text = NULL;

	put_elf(p.t, "sys/bin/interp");
	put_elf(p.t, "sys/bin/env");
	assert_int_equal(resolve(&p, &prog, "env", args, &err), 0);
	text = argv_text(&p, &prog);
	assert_string_equal(text, "TMP/sys/bin/interp|-u|main.py");
	zb_program_done(&prog);
	uproot(&p);
}

/* ---- version managers ---------------------------------------------------- */

#define PYENV_SHIM                                                             \
	"#!/usr/bin/env bash\nset -e\nprogram=\"${0##*/}\"\n"                  \
	"export PYENV_ROOT=\"%s/home/.vm\"\n"                                  \
	"exec \"%s/home/.vm/libexec/pyenv\" exec \"$program\" \"$@\"\n"

static void put_pyenv(struct place *p)
{
	static const char *const versions[] = {"3.9.2", "3.11.7", "3.11.10",
					       "3.11-dev", "env"};
	zb_auto(free) char *shim = zb_strf(PYENV_SHIM, p->t->dir, p->t->dir);

	for (size_t i = 0; i < ZB_ARRAY_LEN(versions); i++) {
		char name[64];

		snprintf(name, sizeof(name), "home/.vm/versions/%s/bin/python3",
			 versions[i]);
		put_elf(p->t, name);
		snprintf(name, sizeof(name), "home/.vm/versions/%s/lib",
			 versions[i]);
		free(put_dir(p->t, name));
	}
	put_script(p->t, "home/.vm/shims/python3", shim);
	free(put(p->t, "home/.vm/credentials", 0600, "TOKEN"));
	put_script(p->t, "home/zot/extensions/t/x", "#!/usr/bin/env python3\n");
	free(p->path);
	p->path = zb_strf("%s/home/.vm/shims:%s/sys/bin", p->t->dir, p->t->dir);
}

#define VM(v) "TMP/home/.vm/versions/" v "/bin/python3"
#define X     "TMP/home/zot/extensions/t/x"

static void pyenv_chooses_as_pyenv_does(void **state)
{
	struct place p = plant(*state);

	put_pyenv(&p);
	/* No choice at all: the system's, which is not there. */
	refuse(&p, "./x", ZB_EUSAGE, "version system (set by default) has no");
	put_elf(p.t, "sys/bin/python3");
	expect(&p, "./x", "TMP/sys/bin/python3|" X);
	/* The global choice; nearer ones win. */
	free(put(p.t, "home/.vm/version", 0644, "3.9.2\n"));
	expect(&p, "./x", VM("3.9.2") "|" X);
	free(put(p.t, "home/.python-version", 0644, "# c\n3.11.7\n"));
	expect(&p, "./x", VM("3.11.7") "|" X);
	free(put(p.t, "home/zot/extensions/t/.python-version", 0644,
		 "nope:env"));
	expect(&p, "./x", VM("env") "|" X);
	setenv("PYENV_VERSION", "3.9.2", 1);
	expect(&p, "./x", VM("3.9.2") "|" X);
	/* A prefix is the newest that has it, by number. */
	setenv("PYENV_VERSION", "3.11", 1);
	expect(&p, "./x", VM("3.11.10") "|" X);
	setenv("PYENV_VERSION", "4.0", 1);
	refuse(&p, "./x", ZB_EUSAGE,
	       "version 4.0 (set by PYENV_VERSION) has no python3");
	setenv("PYENV_VERSION", "system", 1);
	expect(&p, "./x", "TMP/sys/bin/python3|" X);
	unsetenv("PYENV_VERSION");
	uproot(&p);
}

/* The version file is the extension author's: it chooses among what is
 * installed, and leads nowhere else. */
static void a_version_is_no_path(void **state)
{
	static const char *const versions[] = {
		"../../secret",	       "..", "/etc",
		"env/../../../secret", "-x", "\x1b[31mred",
	};
	struct place p = plant(*state);

	put_pyenv(&p);
	put_elf(p.t, "home/secret/bin/python3");
	put_elf(p.t, "home/.vm/bin/python3"); /* versions/../bin */
	for (size_t i = 0; i < ZB_ARRAY_LEN(versions); i++) {
		free(put(p.t, "home/zot/extensions/t/.python-version", 0644,
			 versions[i]));
		refuse(&p, "./x", ZB_EUSAGE, "has no python3");
	}
	refuse(&p, "./x", ZB_EUSAGE, "\\x1b[31mred");
	uproot(&p);
}

static void only_the_prefix_is_opened(void **state)
{
	struct place p = plant(*state);
	struct zb_program prog;
	struct zb_error err;
	zb_auto(free) char *bin = in(p.t, "home/.vm/versions/3.9.2/bin");
	zb_auto(free) char *credentials = in(p.t, "home/.vm/credentials");
	bool told = false;

	put_pyenv(&p);
	free(put(p.t, "home/.vm/version", 0644, "3.9.2\n"));
	assert_int_equal(resolve(&p, &prog, "./x", NULL, &err), 0);
	assert_string_equal(prog.kind, "python");
	assert_int_equal(
		rights_of(&p, &prog, "home/.vm/versions/3.9.2/bin/python3"),
		RX);
	assert_int_equal(rights_of(&p, &prog, "home/.vm/versions/3.9.2/lib"),
			 RL);
	/* Nothing that holds the credentials, nor all of HOME. */
	for (size_t i = 0; i < prog.n_needs; i++)
		assert_int_not_equal(strncmp(credentials, prog.needs[i].path,
					     strlen(prog.needs[i].path)),
				     0);
	/* Inside, python3 is found without the shim. */
	assert_int_equal(prog.path_prefix.n, 1);
	assert_string_equal(prog.path_prefix.v[0], bin);
	for (size_t i = 0; i < prog.story.n; i++)
		told |= strstr(prog.story.v[i], "(pyenv shim, version 3.9.2") !=
			NULL;
	assert_true(told);
	zb_program_done(&prog);
	uproot(&p);
}

static void plain_shims(void **state)
{
	static const struct {
		const char *body; /* %s: TMP */
		const char *argv;
	} rows[] = {
		{"#!/usr/bin/env bash\nexec \"%s/home/v/py\" \"$@\"\n",
		 "TMP/home/v/py|" X},
		{"#!/bin/sh\n# c\n\n  exec %s/home/v/py -E 'a b' \"$@\"\n",
		 "TMP/home/v/py|-E|a b|" X},
	};
	static const char *const others[] = {
		"#!%s/sys/bin/sh\nexec \"$HOME/v/py\" \"$@\"\n",
		"#!%s/sys/bin/sh\necho hi\nexec /home/v/py \"$@\"\n",
		"#!%s/sys/bin/sh\nexec relative/py \"$@\"\n",
		"#!%s/sys/bin/sh\nexec /bin/sh -c 'x' $@\n",
		"#!%s/sys/bin/sh\n",
	};
	struct place p = plant(*state);

	put_elf(p.t, "home/v/py");
	put_elf(p.t, "sys/bin/sh");
	put_script(p.t, "home/zot/extensions/t/x", "#!/usr/bin/env prog\n");
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		zb_auto(free) char *text = zb_strf(
			i ? "#!/bin/sh\n# c\n\n  exec %s/home/v/py -E 'a b' "
			    "\"$@\"\n"
			  : "#!/usr/bin/env bash\nexec \"%s/home/v/py\" "
			    "\"$@\"\n",
			p.t->dir);

		put_script(p.t, "home/bin/prog", text);
		expect(&p, "./x", rows[i].argv);
	}
	/* Anything more is a script like others, and runs as one. */
	for (size_t i = 0; i < ZB_ARRAY_LEN(others); i++) {
		const char *rest = strchr(others[i], '\n');
		zb_auto(free) char *text =
			zb_strf("#!%s/sys/bin/sh%s", p.t->dir, rest);

		put_script(p.t, "home/bin/prog", text);
		expect(&p, "./x", "TMP/sys/bin/sh|TMP/home/bin/prog|" X);
	}
	uproot(&p);
}

static void asdf_shims(void **state)
{
	struct place p = plant(*state);

	put_script(p.t, "home/.asdf/shims/node",
		   "#!/usr/bin/env bash\n# asdf-plugin: nodejs 18.1.0\n"
		   "# asdf-plugin: nodejs 20.2.0\n"
		   "exec /x/asdf exec \"node\" \"$@\"\n");
	put_elf(p.t, "home/.asdf/installs/nodejs/18.1.0/bin/node");
	put_elf(p.t, "home/.asdf/installs/nodejs/20.2.0/bin/node");
	put_script(p.t, "home/zot/extensions/t/x", "#!/usr/bin/env node\n");
	free(p.path);
	p.path = zb_strf("%s/home/.asdf/shims:%s/sys/bin", p.t->dir, p.t->dir);
	refuse(&p, "./x", ZB_EUSAGE, "shim of asdf, and no installed version");
	free(put(p.t, "home/.tool-versions", 0644,
		 "python 3.9\nnodejs 99 18.1.0\n"));
	expect(&p, "./x", "TMP/home/.asdf/installs/nodejs/18.1.0/bin/node|" X);
	free(put(p.t, "home/zot/extensions/t/.tool-versions", 0644,
		 "nodejs 20.2.0"));
	expect(&p, "./x", "TMP/home/.asdf/installs/nodejs/20.2.0/bin/node|" X);
	setenv("ASDF_NODEJS_VERSION", "18.1.0", 1);
	expect(&p, "./x", "TMP/home/.asdf/installs/nodejs/18.1.0/bin/node|" X);
	setenv("ASDF_NODEJS_VERSION", "../../../secret", 1);
	put_elf(p.t, "home/secret/bin/node");
	refuse(&p, "./x", ZB_EUSAGE, "no installed version");
	unsetenv("ASDF_NODEJS_VERSION");
	uproot(&p);
}

static void managers_that_go_by_name(void **state)
{
	struct place p = plant(*state);
	zb_auto(free) char *mise = in(p.t, "sys/bin/mise");

	put_elf(p.t, "sys/bin/mise");
	free(put_link(p.t, "home/bin/node", mise));
	refuse(&p, "node", ZB_EUSAGE, "is a link to mise");
	expect(&p, "mise", "TMP/sys/bin/mise");
	uproot(&p);
}

/* nvm puts a real directory into PATH. */
static void nvm_is_a_plain_directory(void **state)
{
	struct place p = plant(*state);
	struct zb_program prog;
	struct zb_error err;

	put_elf(p.t, "home/.nvm/versions/node/v20/bin/node");
	free(put_dir(p.t, "home/.nvm/versions/node/v20/lib/node_modules"));
	free(p.path);
	p.path = zb_strf("%s/home/.nvm/versions/node/v20/bin", p.t->dir);
	assert_int_equal(resolve(&p, &prog, "node", NULL, &err), 0);
	assert_string_equal(prog.kind, "node");
	assert_int_equal(prog.path_prefix.n, 0);
	assert_int_equal(
		rights_of(&p, &prog, "home/.nvm/versions/node/v20/lib"), RL);
	zb_program_done(&prog);
	uproot(&p);
}

/* A venv runs its base's program by its own name. */
static void venvs(void **state)
{
	struct place p = plant(*state);
	zb_auto(free) char *cfg = zb_strf(
		"include-system-site-packages = false\nhome = %s/opt/py/bin\n"
		"version = 3.11.2\n",
		p.t->dir);
	zb_auto(free) char *line =
		zb_strf("#!%s/home/v/bin/python\n", p.t->dir);
	struct zb_program prog;
	struct zb_error err;
	zb_auto(free) char *text = NULL;

	put_elf(p.t, "opt/py/bin/python3.11");
	free(put(p.t, "opt/py/lib/python3.11/os.py", 0644, ""));
	free(put(p.t, "home/v/lib/python3.11/site-packages/x.py", 0644, ""));
	free(put_link(p.t, "home/v/bin/python", "python3"));
	free(put_link(p.t, "home/v/bin/python3",
		      "../../../opt/py/bin/python3.11"));
	free(put(p.t, "home/v/pyvenv.cfg", 0644, cfg));
	put_script(p.t, "home/zot/extensions/t/x", line);
	assert_int_equal(resolve(&p, &prog, "./x", NULL, &err), 0);
	text = argv_text(&p, &prog);
	assert_string_equal(text, "TMP/home/v/bin/python|" X);
	assert_int_equal(rights_of(&p, &prog, "home/v/bin/python"), RX);
	assert_int_equal(rights_of(&p, &prog, "home/v/pyvenv.cfg"),
			 ZB_MAY_READ);
	assert_int_equal(rights_of(&p, &prog, "home/v/lib/python3.11"), RL);
	assert_int_equal(rights_of(&p, &prog, "opt/py/lib/python3.11"), RL);
	/* Named by a path only: not all that lies around it. */
	assert_int_equal(rights_of(&p, &prog, "home/v/lib"), 0);
	zb_program_done(&prog);
	free(p.path);
	p.path = zb_strf("%s/home/v/bin", p.t->dir);
	assert_int_equal(resolve(&p, &prog, "python", NULL, &err), 0);
	assert_int_equal(rights_of(&p, &prog, "home/v/lib"), RL);
	zb_program_done(&prog);
	uproot(&p);
}

/* ---- what a stranger's manifest may not have shown ----------------------- */

static void other_peoples_scripts(void **state)
{
	struct place p = plant(*state);
	zb_auto(free) char *mine = in(p.t, "home/deploy.sh");
	zb_auto(free) char *line = zb_strf("#!%s/sys/bin/sh\n", p.t->dir);
	zb_auto(free) char *by = zb_strf("#!%s/home/deploy.sh\n", p.t->dir);
	zb_auto(free) char *served = in(p.t, "srv/deploy.sh");
	zb_auto(free) char *by_served = zb_strf("#!%s\n", served);
	struct zb_program prog;
	struct zb_error err;

	put_elf(p.t, "sys/bin/sh");
	put_script(p.t, "home/deploy.sh", line);
	put_script(p.t, "home/zot/extensions/other/main.sh", line);
	refuse(&p, mine, ZB_EPOLICY, "outside the extension's directory");
	refuse(&p, "../other/main.sh", ZB_EPOLICY, "outside");
	put_script(p.t, "home/zot/extensions/t/x", by);
	refuse(&p, "./x", ZB_EPOLICY, "outside");
	free(put_link(p.t, "home/zot/extensions/t/l", "../../../deploy.sh"));
	refuse(&p, "./l", ZB_EPOLICY, "outside");
	/* Nor is one that lies where no programs are, whoever's it is. */
	put_script(p.t, "srv/deploy.sh", line);
	refuse(&p, served, ZB_EPOLICY, "outside the extension's directory");
	put_script(p.t, "home/zot/extensions/t/x", by_served);
	refuse(&p, "./x", ZB_EPOLICY, "outside");
	free(put_link(p.t, "home/zot/extensions/t/m",
		      "../../../../srv/"
		      "deploy.sh"));
	refuse(&p, "./m", ZB_EPOLICY, "outside");
	/* What the user grants by its path is meant. */
	assert_int_equal(zb_runtime_program(&prog, mine, p.path, &err), 0);
	assert_int_equal(rights_of(&p, &prog, "home/deploy.sh"), RX);
	zb_program_done(&prog);
	/* Its place in PATH makes it a program. */
	put_script(p.t, "home/bin/deploy", line);
	expect(&p, "deploy", "TMP/sys/bin/sh|TMP/home/bin/deploy");
	uproot(&p);
}

/* A program of the extension may name any file as its loader, and any
 * directory as its library path. */
static void a_strangers_elf_opens_nothing(void **state)
{
	struct place p = plant(*state);
	zb_auto(free) char *key = put(p.t, "home/.ssh/id", 0700, "SECRET");
	zb_auto(free) char *ssh = in(p.t, "home/.ssh");
	zb_auto(free) char *tool = in(p.t, "home/tool");
	struct zb_program prog;
	struct zb_error err;

	put_elf_as(p.t, "home/zot/extensions/t/x", machine, 3, key, NULL);
	refuse(&p, "./x", ZB_EUSAGE, "is no loader");
	put_elf(p.t, "home/tool");
	put_elf_as(p.t, "home/zot/extensions/t/x", machine, 3, tool, NULL);
	refuse(&p, "./x", ZB_EUSAGE, "is no loader");
	put_elf_as(p.t, "home/zot/extensions/t/x", machine, 3, NULL, ssh);
	assert_int_equal(resolve(&p, &prog, "./x", NULL, &err), 0);
	assert_int_equal(rights_of(&p, &prog, "home/.ssh"), 0);
	zb_program_done(&prog);
	/* The same path in the user's own program counts. */
	put_elf_as(p.t, "home/bin/own", machine, 3, NULL,
		   "$ORIGIN/../.ssh:$ORIGIN/..:/");
	assert_int_equal(resolve(&p, &prog, "own", NULL, &err), 0);
	assert_int_equal(rights_of(&p, &prog, "home/.ssh"), RL);
	assert_int_equal(rights_of(&p, &prog, "home"), 0);
	assert_int_equal(rights_of(&p, &prog, "/"), 0);
	zb_program_done(&prog);
	uproot(&p);
}

static void a_strangers_venv_opens_nothing(void **state)
{
	struct place p = plant(*state);
	zb_auto(free) char *cfg =
		zb_strf("home = %s/home/private/bin\n", p.t->dir);
	struct zb_program prog;
	struct zb_error err;

	free(put(p.t, "home/private/lib/secret", 0600, "x"));
	put_elf(p.t, "home/private/bin/python3");
	put_elf(p.t, "home/zot/extensions/t/v/bin/python3");
	free(put(p.t, "home/zot/extensions/t/v/pyvenv.cfg", 0644, cfg));
	assert_int_equal(resolve(&p, &prog, "v/bin/python3", NULL, &err), 0);
	assert_int_equal(rights_of(&p, &prog, "home/private/lib"), 0);
	zb_program_done(&prog);
	/* A real Python there is what `home` is for. */
	free(put(p.t, "home/private/lib/python3.11/os.py", 0644, ""));
	assert_int_equal(resolve(&p, &prog, "v/bin/python3", NULL, &err), 0);
	assert_int_equal(rights_of(&p, &prog, "home/private/lib"), 0);
	assert_int_equal(rights_of(&p, &prog, "home/private/lib/python3.11"),
			 RL);
	zb_program_done(&prog);
	uproot(&p);
}

/* What a fragment looks for may be a link in a stranger's own tree, which is
 * made to look like a Python's prefix, or like Homebrew's. */
static void a_strangers_links_open_nothing(void **state)
{
	struct place p = plant(*state);
	zb_auto(free) char *fake = in(p.t, "home/zot/extensions/t/fake");
	zb_auto(free) char *cfg = zb_strf("home = %s/bin\n", fake);
	zb_auto(free) char *up = zb_strf("home = %s/../fake/bin\n", fake);
	struct zb_program prog;
	struct zb_error err;

	free(put(p.t, "home/.ssh/id", 0600, "SECRET"));
	put_elf(p.t, "home/zot/extensions/t/v/bin/python3");
	free(put(p.t, "home/zot/extensions/t/v/pyvenv.cfg", 0644, cfg));
	free(put(p.t, "home/zot/extensions/t/fake/lib/python3.11/os.py", 0644,
		 ""));
	free(put_link(p.t, "home/zot/extensions/t/fake/lib/python3",
		      "../../../../../.ssh"));
	assert_int_equal(resolve(&p, &prog, "v/bin/python3", NULL, &err), 0);
	assert_int_equal(rights_of(&p, &prog, "home/.ssh"), 0);
	assert_int_equal(
		rights_of(&p, &prog, "home/zot/extensions/t/fake/lib/python3"),
		0);
	zb_program_done(&prog);
	free(put(p.t, "home/zot/extensions/t/v/pyvenv.cfg", 0644, up));
	assert_int_equal(resolve(&p, &prog, "v/bin/python3", NULL, &err), 0);
	for (size_t i = 0; i < prog.n_needs; i++)
		assert_null(strstr(prog.needs[i].path, "/fake/"));
	zb_program_done(&prog);

	put_elf(p.t, "home/zot/extensions/t/Cellar/x/1/bin/tool");
	put_script(p.t, "home/zot/extensions/t/bin/brew", "#!/bin/sh\n");
	free(put_link(p.t, "home/zot/extensions/t/lib", "../../../.ssh"));
	assert_int_equal(resolve(&p, &prog, "Cellar/x/1/bin/tool", NULL, &err),
			 0);
	assert_int_equal(rights_of(&p, &prog, "home/zot/extensions/t/lib"), 0);
	assert_int_equal(rights_of(&p, &prog, "home/.ssh"), 0);
	zb_program_done(&prog);
	uproot(&p);
}

/* A project of the user's with a program in it: the program runs, what lies
 * beside it is not shown. */
static void what_lies_around_a_program(void **state)
{
	struct place p = plant(*state);
	zb_auto(free) char *line =
		zb_strf("#!%s/home/work/bin/tool\n", p.t->dir);
	zb_auto(free) char *there =
		zb_strf("#!%s/srv/work/bin/tool\n", p.t->dir);
	struct zb_program prog;
	struct zb_error err;

	put_elf(p.t, "home/work/bin/tool");
	free(put(p.t, "home/work/lib/secret.rb", 0600, "x"));
	put_script(p.t, "home/zot/extensions/t/x", line);
	assert_int_equal(resolve(&p, &prog, "./x", NULL, &err), 0);
	assert_int_equal(rights_of(&p, &prog, "home/work/bin/tool"), RX);
	assert_int_equal(rights_of(&p, &prog, "home/work/lib"), 0);
	zb_program_done(&prog);
	/* Nor in a repository elsewhere, which may be a stranger's whole. */
	put_elf(p.t, "srv/work/bin/tool");
	free(put(p.t, "srv/work/lib/secret.rb", 0600, "x"));
	put_script(p.t, "home/zot/extensions/t/x", there);
	assert_int_equal(resolve(&p, &prog, "./x", NULL, &err), 0);
	assert_int_equal(rights_of(&p, &prog, "srv/work/bin/tool"), RX);
	assert_int_equal(rights_of(&p, &prog, "srv/work/lib"), 0);
	zb_program_done(&prog);
	uproot(&p);
}

/* HOME is known by its real name, however it is spelled. */
static void a_linked_home(void **state)
{
	struct place p = plant(*state);
	zb_auto(free) char *link = put_link(p.t, "linked", "home");
	struct zb_program prog;
	struct zb_error err;

	setenv("HOME", link, 1);
	put_elf_as(p.t, "home/bin/tool", machine, 3, NULL, "$ORIGIN/..");
	free(put_dir(p.t, "home/lib"));
	free(p.path);
	p.path = zb_strf("%s/linked/bin", p.t->dir);
	assert_int_equal(resolve(&p, &prog, "tool", NULL, &err), 0);
	assert_int_equal(rights_of(&p, &prog, "linked/bin/tool"), RX);
	assert_int_equal(rights_of(&p, &prog, "home"), 0);
	assert_int_equal(rights_of(&p, &prog, "home/lib"), 0);
	zb_program_done(&prog);
	uproot(&p);
}

/* A copy of a distribution's python has its library where it was built for. */
static void a_python_out_of_its_prefix(void **state)
{
	struct place p = plant(*state);
	struct zb_program prog;
	struct zb_error err;
	bool found = false;

	if (access("/usr/lib/python3", F_OK)) {
		uproot(&p);
		skip();
		return;
	}
	put_elf(p.t, "home/.vm/versions/9/bin/python3");
	free(p.path);
	p.path = zb_strf("%s/home/.vm/versions/9/bin", p.t->dir);
	assert_int_equal(resolve(&p, &prog, "python3", NULL, &err), 0);
	for (size_t i = 0; i < prog.n_needs; i++)
		found |= !strncmp(prog.needs[i].path, "/usr/lib/python3.", 17);
	assert_true(found);
	zb_program_done(&prog);
	/* One that has its own does not look there. */
	free(put(p.t, "home/.vm/versions/9/lib/python3.9/os.py", 0644, ""));
	assert_int_equal(resolve(&p, &prog, "python3", NULL, &err), 0);
	for (size_t i = 0; i < prog.n_needs; i++)
		assert_int_not_equal(
			strncmp(prog.needs[i].path, "/usr/lib/python", 15), 0);
	zb_program_done(&prog);
	uproot(&p);
}

static void prefixes_that_many_share(void **state)
{
	struct place p = plant(*state);
	struct zb_program prog;
	struct zb_error err;

	put_elf(p.t, "home/.local/bin/tool");
	free(put_dir(p.t, "home/.local/lib"));
	free(put_dir(p.t, "home/lib"));
	free(p.path);
	p.path = zb_strf("%s/home/.local/bin:%s/home/bin", p.t->dir, p.t->dir);
	assert_int_equal(resolve(&p, &prog, "tool", NULL, &err), 0);
	assert_int_equal(rights_of(&p, &prog, "home/.local/lib"), 0);
	zb_program_done(&prog);
	put_elf(p.t, "home/bin/tool2");
	assert_int_equal(resolve(&p, &prog, "tool2", NULL, &err), 0);
	assert_int_equal(rights_of(&p, &prog, "home/lib"), 0);
	zb_program_done(&prog);
	uproot(&p);
}

/* A Homebrew program finds its libraries through opt and lib; a directory
 * that only is called Cellar opens nothing. */
static void homebrew(void **state)
{
	struct place p = plant(*state);
	struct zb_program prog;
	struct zb_error err;

	put_elf(p.t, "brew/Cellar/tool/1.0/bin/tool");
	free(put_dir(p.t, "brew/lib"));
	free(put_dir(p.t, "brew/opt"));
	free(put_link(p.t, "brew/bin/tool", "../Cellar/tool/1.0/bin/tool"));
	free(p.path);
	p.path = zb_strf("%s/brew/bin", p.t->dir);
	assert_int_equal(resolve(&p, &prog, "tool", NULL, &err), 0);
	assert_int_equal(rights_of(&p, &prog, "brew/lib"), 0);
	zb_program_done(&prog);
	put_script(p.t, "brew/bin/brew", "#!/bin/sh\n");
	assert_int_equal(resolve(&p, &prog, "tool", NULL, &err), 0);
	assert_int_equal(rights_of(&p, &prog, "brew/lib"), RL);
	assert_int_equal(rights_of(&p, &prog, "brew/opt"), RL);
	assert_int_equal(rights_of(&p, &prog, "brew/Cellar"), RL);
	zb_program_done(&prog);
	uproot(&p);
}

/* Odd characters in the path of the extension and of the program. */
static void odd_paths(void **state)
{
	static const char *const names[] = {
		"a b",	    "it's",	 "q\"q",   "$HOME",	"`id`",
		";id",	    "-n",	 "--",	   "new\nline", "tab\t",
		"\xc3\xbc", "\xff\xfe",	 "a\\b",   "%s%n",	"#h",
		"~",	    "[x]",	 "trail ", "*",		"?",
		"{a,b}",    "${prefix}",
	};
	struct place p = plant(*state);

	for (size_t i = 0; i < ZB_ARRAY_LEN(names); i++) {
		zb_auto(free) char *bin =
			zb_strf("odd/%s/bin/python3.11", names[i]);
		zb_auto(free) char *lib =
			zb_strf("odd/%s/lib/python3.11", names[i]);
		zb_auto(free) char *prog = in(p.t, bin);
		struct zb_program out;
		struct zb_error err;

		put_elf(p.t, bin);
		free(put_dir(p.t, lib));
		free(p.ext);
		p.ext = zb_strf("%s/exts/%s", p.t->dir, names[i]);
		put_elf(p.t, bin);
		if (resolve(&p, &out, prog, NULL, &err))
			fail_msg("%s: %s", names[i], err.msg);
		assert_string_equal(out.exec_path, prog);
		assert_int_equal(rights_of(&p, &out, bin), RX);
		assert_int_equal(rights_of(&p, &out, lib), RL);
		zb_program_done(&out);
	}
	uproot(&p);
}

static void programs_by_name(void **state)
{
	struct place p = plant(*state);
	struct zb_program prog = {0};
	struct zb_error err = {0};
	zb_auto(free) char *script = in(p.t, "sys/bin/script");
	zb_auto(free) char *line = zb_strf("#!%s/sys/bin/interp\n", p.t->dir);

	put_elf(p.t, "sys/bin/interp");
	put_script(p.t, "sys/bin/script", line);
	assert_int_equal(zb_runtime_program(&prog, "script", p.path, &err), 0);
	assert_int_equal(rights_of(&p, &prog, "sys/bin/script"), RX);
	assert_int_equal(rights_of(&p, &prog, "sys/bin/interp"), RX);
	zb_program_done(&prog);
	assert_int_equal(zb_runtime_program(&prog, script, p.path, &err), 0);
	zb_program_done(&prog);
	assert_int_equal(zb_runtime_program(&prog, "nope", p.path, &err),
			 ZB_EUSAGE);
	assert_int_equal(zb_runtime_program(&prog, "./script", p.path, &err),
			 ZB_EUSAGE);
	uproot(&p);
}

/* ---- base.json on small systems ------------------------------------------ */

struct system {
	const char *name;
	const char *dirs[12];
	const char *files[24];
	const char *links[24]; /* pairs: where, text */
	const char *shown[16]; /* "RIGHTS PATH": r, x, l(ink) */
	const char *hidden[8];
};

static const struct system systems[] = {
	{
		.name = "debian with a merged usr",
		.dirs = {"usr/bin", "usr/sbin", "usr/lib64",
			 "usr/lib/x86_64-linux-gnu", "etc/ssl/private"},
		.files = {"usr/lib/x86_64-linux-gnu/libc.so.6",
			  "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
			  "usr/bin/env", "etc/hosts", "etc/ssl/private/key",
			  "etc/shadow", "opt/ca/b.pem", "usr/lib/os-release",
			  "etc/machine-id"},
		.links = {"bin", "usr/bin", "sbin", "usr/sbin", "lib",
			  "usr/lib", "lib64", "usr/lib64",
			  "usr/lib64/ld-linux-x86-64.so.2",
			  "../../lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
			  "etc/os-release", "../usr/lib/os-release",
			  "etc/ssl/certs/ca-certificates.crt",
			  "../../../opt/ca/b.pem"},
		.shown = {"l /bin", "l /lib64", "r /usr/lib/x86_64-linux-gnu",
			  "x /lib64/ld-linux-x86-64.so.2", "x /usr/bin/env",
			  "r /etc/hosts", "r /etc/os-release",
			  "r /etc/ssl/certs",
			  "r /etc/ssl/certs/ca-certificates.crt"},
		.hidden = {"/etc/ssl/private", "/etc/shadow", "/etc/ssl",
			   "/usr/lib", "/usr/bin", "/etc/machine-id", "/etc"},
	},
	{
		.name = "debian before the merge",
		.dirs = {"usr/bin", "bin", "sbin", "lib64"},
		.files = {"lib/x86_64-linux-gnu/libc.so.6",
			  "lib/x86_64-linux-gnu/ld-2.so",
			  "usr/lib/x86_64-linux-gnu/libx.so", "usr/bin/env",
			  "etc/ld.so.cache"},
		.links = {"lib64/ld-linux-x86-64.so.2",
			  "../lib/x86_64-linux-gnu/ld-2.so"},
		.shown = {"r /lib/x86_64-linux-gnu",
			  "r /usr/lib/x86_64-linux-gnu",
			  "x /lib64/ld-linux-x86-64.so.2", "x /usr/bin/env",
			  "r /etc/ld.so.cache"},
		.hidden = {"/bin", "/lib", "/lib64"},
	},
	{
		.name = "fedora",
		.files = {"usr/lib64/libc.so.6",
			  "usr/lib64/ld-linux-x86-64.so.2", "usr/bin/env",
			  "etc/pki/ca-trust/extracted/pem/tls.pem",
			  "etc/pki/tls/private/key", "etc/pki/tls/openssl.cnf",
			  "usr/share/crypto-policies/x"},
		.links = {"bin", "usr/bin", "lib64", "usr/lib64", "lib",
			  "usr/lib", "etc/ssl/certs", "../pki/tls/certs",
			  "etc/pki/tls/certs/ca-bundle.crt",
			  "../../ca-trust/extracted/pem/tls.pem",
			  "etc/pki/tls/cert.pem", "certs/ca-bundle.crt"},
		.shown = {"r /usr/lib64", "l /lib64",
			  "x /lib64/ld-linux-x86-64.so.2", "r /etc/ssl/certs",
			  "r /etc/pki/ca-trust", "r /etc/pki/tls/openssl.cnf",
			  "r /usr/share/crypto-policies"},
		.hidden = {"/etc/pki", "/etc/pki/tls", "/etc/pki/tls/private",
			   "/usr/lib"},
	},
	{
		.name = "alpine",
		.dirs = {"usr/lib"},
		.files = {"lib/ld-musl-x86_64.so.1", "bin/busybox",
			  "etc/ssl/certs/ca-certificates.crt"},
		.links = {"usr/bin/env", "/bin/busybox", "etc/ssl/cert.pem",
			  "certs/ca-certificates.crt"},
		.shown = {"r /lib", "r /usr/lib", "x /lib/ld-musl-x86_64.so.1",
			  "x /usr/bin/env", "r /etc/ssl/cert.pem"},
	},
	{
		.name = "arch",
		.files = {"usr/lib/libc.so.6", "usr/lib/ld-linux-x86-64.so.2",
			  "usr/bin/env",
			  "etc/ca-certificates/extracted/tls.pem",
			  "etc/ca-certificates/trust-source/private"},
		.links = {"bin", "usr/bin", "sbin", "usr/bin", "lib", "usr/lib",
			  "lib64", "usr/lib", "usr/lib64", "lib", "usr/sbin",
			  "bin", "etc/ssl/certs/ca.crt",
			  "../../ca-certificates/extracted/tls.pem"},
		.shown = {"r /usr/lib", "l /lib64", "l /usr/lib64",
			  "r /etc/ca-certificates/extracted"},
		.hidden = {"/etc/ca-certificates"},
	},
	{.name = "nearly nothing",
	 .files = {"etc/hosts"},
	 .shown = {"r /etc/hosts"}},
};

static void build(struct tmphome *t, const struct system *s)
{
	char name[256];

	for (size_t i = 0; i < 12 && s->dirs[i]; i++) {
		snprintf(name, sizeof(name), "root/%s", s->dirs[i]);
		free(put_dir(t, name));
	}
	for (size_t i = 0; i < 24 && s->files[i]; i++) {
		snprintf(name, sizeof(name), "root/%s", s->files[i]);
		free(put(t, name, 0755, ""));
	}
	for (size_t i = 0; i + 1 < 24 && s->links[i]; i += 2) {
		snprintf(name, sizeof(name), "root/%s", s->links[i]);
		free(put_link(t, name, s->links[i + 1]));
	}
}

/* The rights of @path among the needs; -1 if it is not there. */
static int need_of(const struct zb_need *needs, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(needs[i].path, path))
			return (int)needs[i].rights;
	return -1;
}

static void base_on_many_systems(void **state)
{
	struct tmphome *t = *state;
	zb_auto(free) char *root = in(t, "root");

	for (size_t k = 0; k < ZB_ARRAY_LEN(systems); k++) {
		const struct system *s = &systems[k];
		struct zb_need *needs = NULL;
		struct zb_strv quiet = {0};
		struct zb_error err = {0};
		size_t n = 0;

		build(t, s);
		assert_int_equal(
			zb_runtime_base_at(root, &needs, &n, &quiet, &err), 0);
		assert_true(quiet.n > 0);
		for (size_t i = 0; i < 16 && s->shown[i]; i++) {
			int want = s->shown[i][0] == 'l'   ? 0
				   : s->shown[i][0] == 'r' ? (int)RL
							   : (int)(RX | RL);

			if (need_of(needs, n, s->shown[i] + 2) != want)
				fail_msg("%s: %s is not shown", s->name,
					 s->shown[i]);
		}
		for (size_t i = 0; i < 8 && s->hidden[i]; i++)
			if (need_of(needs, n, s->hidden[i]) >= 0)
				fail_msg("%s: %s is shown", s->name,
					 s->hidden[i]);
		zb_needs_done(needs, n);
		zb_strv_done(&quiet);
		assert_int_equal(zb_remove_tree(root, &err), 0);
	}
}

/* Whatever the system: no private key, no account file, no whole /etc. */
static void base_never_shows_keys(void **state)
{
	static const char *const never[] = {
		"/etc/ssl/private/key",
		"/etc/pki/tls/private/key",
		"/etc/shadow",
		"/etc/passwd",
		"/etc/sudoers",
		"/root/.ssh/id",
		"/home/u/x",
		"/var/lib/x",
		"/run/x",
	};
	struct zb_need *needs = NULL;
	struct zb_strv quiet = {0};
	struct zb_error err = {0};
	size_t n = 0;

	(void)state;
	assert_int_equal(zb_runtime_base(&needs, &n, &quiet, &err), 0);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < ZB_ARRAY_LEN(never); k++) {
			size_t len = strlen(needs[i].path);

			if (needs[i].rights &&
			    !strncmp(never[k], needs[i].path, len) &&
			    (never[k][len] == '/' || !never[k][len]))
				fail_msg("%s would show %s", needs[i].path,
					 never[k]);
		}
	zb_needs_done(needs, n);
	zb_strv_done(&quiet);
}

static void a_ca_bundle_by_variable(void **state)
{
	struct tmphome *t = *state;
	zb_auto(free) char *bundle =
		put(t, "b.pem", 0644, "-----BEGIN CERTIFICATE-----\n");
	zb_auto(free) char *key =
		put(t, "k.pem", 0600,
		    "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY---");
	const char *paths[] = {bundle, key, "/etc/hostname", "relative"};

	for (size_t i = 0; i < ZB_ARRAY_LEN(paths); i++) {
		struct zb_need *needs = NULL;
		struct zb_strv quiet = {0};
		struct zb_error err = {0};
		size_t n = 0;

		setenv("SSL_CERT_FILE", paths[i], 1);
		assert_int_equal(zb_runtime_base(&needs, &n, &quiet, &err), 0);
		assert_int_equal(need_of(needs, n, paths[i]),
				 i ? -1 : ZB_MAY_READ);
		zb_needs_done(needs, n);
		zb_strv_done(&quiet);
	}
	unsetenv("SSL_CERT_FILE");
}

/* Every fragment is loaded by each resolution: this is the lint of all. */
static void the_hosts_own_programs(void **state)
{
	static const struct {
		const char *program, *kind;
	} rows[] = {
		{"/bin/sh", "sh"},
		{"/usr/bin/python3", "python"},
		{"/usr/bin/node", "node"},
		{"/usr/bin/git", "git"},
		{"/usr/bin/openssl", "openssl"},
		{"/usr/bin/perl", "perl"},
		{"/usr/bin/gcc", "gcc"},
		{"/usr/bin/clang", "clang"},
		{"/usr/bin/env", "native"},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_program prog = {0};
		struct zb_error err = {0};

		if (access(rows[i].program, X_OK))
			continue;
		if (zb_runtime_program(&prog, rows[i].program, "/usr/bin:/bin",
				       &err))
			fail_msg("%s", err.msg);
		assert_string_equal(prog.kind, rows[i].kind);
		for (size_t k = 0; k < prog.n_needs; k++)
			assert_int_equal(prog.needs[k].path[0], '/');
		zb_program_done(&prog);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_tmp(exec_as_zot_takes_it),
		with_tmp(what_cannot_be_started),
		with_tmp(argv_as_the_kernel_builds_it),
		with_tmp(env_in_a_manifest),
		with_tmp(pyenv_chooses_as_pyenv_does),
		with_tmp(a_version_is_no_path),
		with_tmp(only_the_prefix_is_opened),
		with_tmp(plain_shims),
		with_tmp(asdf_shims),
		with_tmp(managers_that_go_by_name),
		with_tmp(nvm_is_a_plain_directory),
		with_tmp(venvs),
		with_tmp(other_peoples_scripts),
		with_tmp(a_strangers_elf_opens_nothing),
		with_tmp(a_strangers_venv_opens_nothing),
		with_tmp(a_strangers_links_open_nothing),
		with_tmp(what_lies_around_a_program),
		with_tmp(a_linked_home),
		with_tmp(a_python_out_of_its_prefix),
		with_tmp(prefixes_that_many_share),
		with_tmp(homebrew),
		with_tmp(odd_paths),
		with_tmp(programs_by_name),
		with_tmp(base_on_many_systems),
		with_tmp(base_never_shows_keys),
		with_tmp(a_ca_bundle_by_variable),
		cmocka_unit_test(the_hosts_own_programs),
	};
	machine = own_machine();
	if (!machine) {
		printf("1..0 # SKIP the fake programs are 64-bit "
		       "little-endian\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
