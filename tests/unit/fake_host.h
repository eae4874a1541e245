/* fake_host.h - a host made of a table, for tests of the resolver and the
 * evaluator: no disk is looked at but for the presets themselves. */
#ifndef ZB_FAKE_HOST_H
#define ZB_FAKE_HOST_H

#include "cleanup.h"
#include "evaluator.h"
#include "path_match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ZOT "/home/u/.local/state/zot"
#define EXT ZOT "/extensions/weather"
#define BOX ZOT "/zotbox/weather"

/* "PATH" is a file, "PATH/" a directory, "PATH>TARGET" a link, "PATH|" a
 * socket. Ancestors are directories by themselves. */
static const char *const fake_files[] = {
	"/bin>usr/bin",
	"/lib>usr/lib",
	"/lib64>usr/lib64",
	"/usr/bin/git",
	"/usr/bin/curl",
	"/usr/bin/env",
	"/usr/bin/python3>python3.11",
	"/usr/bin/python3.11",
	"/usr/lib/libc.so.6",
	"/usr/lib/git-core/",
	"/usr/lib/python3.11/os.py",
	"/usr/lib64>lib",
	"/usr/share/doc/x",
	"/usr/share/pylib/x.py",
	"/usr/share/few/a",
	"/usr/share/few/l>a",
	"/usr/share/few/sub/b",
	"/usr/share/none/",
	"/usr/local/bin/tool",
	"/etc/alternatives/awk>/usr/bin/mawk",
	"/etc/hosts",
	"/etc/passwd",
	"/etc/shadow",
	"/etc/resolv.conf>../run/systemd/resolve/stub-resolv.conf",
	"/run/systemd/resolve/stub-resolv.conf",
	"/proc/",
	"/dev/",
	"/sys/kernel/x",
	"/home/u/.bashrc",
	"/home/u/.ssh/id_ed25519",
	"/home/u/.config>dotfiles/config",
	"/home/u/dotfiles/config/weather/key",
	"/home/u/link>src/app",
	"/home/u/loop>loop",
	"/home/u/nowhere>/not/there",
	"/home/u/src/app/main.c",
	"/home/u/src/app/notes.txt",
	"/home/u/src/app/run.sh",
	"/home/u/src/app/.env",
	"/home/u/src/app/.envrc",
	"/home/u/src/app/.git/config",
	"/home/u/src/app/sub/.env.local",
	"/home/u/src/app/sub/deep/server.pem",
	"/home/u/src/app/.ssh/known_hosts",
	"/home/u/src/app/linked>secrets/token",
	"/home/u/src/app/secrets/token",
	"/home/u/src/app/dangling>/not/there",
	"/home/u/src/app/out>/home/u/.ssh/id_ed25519",
	"/home/u/src/app/sock|",
	"/home/u/src/linky/.zot>inner",
	"/home/u/src/linky/inner/notes",
	"/home/u/src/other/x.txt",
	"/home/u/bin/mine",
	"/home/u/.pyenv/versions/3.11/bin/python3",
	"/home/u/.pyenv/versions/3.11/lib/x.py",
	EXT "/extension.json",
	EXT "/main.py",
	EXT "/state.json",
	EXT "/lib/util.py",
	EXT "/lib/cache.json",
	EXT "/current>lib",
	EXT "/away>/etc/shadow",
	BOX "/data/",
	BOX "/data/planted>/home/u/.ssh",
	BOX "/home/",
	BOX "/manifest.json",
	BOX "/scope.json",
	ZOT "/zotbox/other/data/",
	ZOT "/logs/ext-weather.log",
	ZOT "/auth.json",
	ZOT "/mcp.json",
	"/tmp/",
	"/tmp/work/p/a.c",
	"/tmp/work/p/.env",
	"/tmp/one.txt",
	"/opt/many/",
	"/opt/few/a",
	"/opt/few/b",
	"/srv/a*b/x.txt",
	"/srv/a*b/.env",
	"/srv/aZb/.env",
	"/data/home2/u/",
	"/home2>data/home2",
	NULL,
};

struct fake {
	unsigned looks;
	const char *const *files;
	uint64_t size;	/* of each */
	unsigned many;	/* programs in /opt/many */
	unsigned names; /* that each listed directory has besides */
};

static void fake_look(void *ctx, const char *path, struct zb_path_fact *out)
{
	struct fake *f = ctx;
	size_t n = strlen(path);

	f->looks++;
	if (!strcmp(path, "/")) {
		out->exists = out->is_dir = true;
		return;
	}
	for (size_t i = 0; f->files[i]; i++) {
		const char *s = f->files[i];

		if (strncmp(s, path, n) != 0)
			continue;
		if (s[n] == '/') {
			out->exists = out->is_dir = true;
		} else if (s[n] == '>') {
			out->is_link = out->exists = true;
			out->link = zb_strdup(s + n + 1);
		} else if (!s[n]) {
			out->exists = out->is_file = true;
			out->size = f->size;
		} else if (s[n] == '|') {
			out->exists = true;
		} else {
			continue;
		}
		return;
	}
}

static void fake_expand(void *ctx, const char *pattern, struct zb_strv *out)
{
	struct fake *f = ctx;
	zb_auto(free) char *dir = zb_path_dir(pattern);

	if (!strcmp(dir, "/opt/many"))
		for (unsigned i = 0; i < f->many; i++)
			zb_strv_addf(out, "/opt/many/p%u", i);
	for (size_t i = 0; f->files[i]; i++) {
		zb_auto(free) char *own = zb_path_dir(f->files[i]);

		if (!strcmp(own, dir) && zb_pattern_match(pattern, f->files[i]))
			zb_strv_add(out, f->files[i]);
	}
}

/* Only names of files and links, and of what holds them. */
static __attribute__((unused)) bool fake_list(void *ctx, const char *dir,
					      size_t max, struct zb_strv *out)
{
	struct fake *f = ctx;
	size_t n = strlen(dir), first = out->n;

	for (size_t i = 0; f->files[i]; i++) {
		const char *s = f->files[i] + n + 1;
		zb_auto(free) char *name = NULL;

		if (strncmp(f->files[i], dir, n) || s[-1] != '/')
			continue;
		name = zb_strndup(s, strcspn(s, "/>|"));
		if (*name && !zb_strv_has(out, name))
			zb_strv_add(out, name);
	}
	return out->n - first + f->names <= max;
}

static void fake_need(struct zb_program *p, const char *path, unsigned rights)
{
	p->needs = realloc(p->needs, (p->n_needs + 1) * sizeof(*p->needs));
	p->needs[p->n_needs++] =
		(struct zb_need){.path = zb_strdup(path),
				 .rights = rights,
				 .from = zb_strdup("runtimes/native.json")};
}

static int fake_program(void *ctx, const char *name, struct zb_program *out,
			struct zb_error *err)
{
	static const char *const dirs[] = {"", "/usr/local/bin/", "/usr/bin/",
					   "/bin/"};
	struct fake *f = ctx;

	for (size_t d = strchr(name, '/') ? 0 : 1; d < 4; d++) {
		char *path = zb_strf("%s%s", dirs[d], name);
		struct zb_path_fact fact = {0};

		fake_look(f, path, &fact);
		free(fact.link);
		if (fact.exists || !strncmp(path, "/opt/many/", 10)) {
			out->exec_path = path;
			if (!strcmp(name, "git"))
				fake_need(out, "/usr/lib/git-core",
					  ZB_MAY_READ | ZB_MAY_EXEC |
						  ZB_MAY_LIST);
			return 0;
		}
		free(path);
		if (strchr(name, '/'))
			break;
	}
	return zb_fail(err, ZB_EUSAGE, "%s: not found in PATH", name);
}

#define READ_EXEC (ZB_MAY_READ | ZB_MAY_EXEC | ZB_MAY_LIST)

static char *unconst(const char *s)
{
	return (char *)(uintptr_t)s;
}

/* Everything a plan is made from; change it before fake_plan(). */
struct fake_setup {
	struct fake fake;
	struct zb_facts facts;
	struct zb_program program;
	struct zb_need needs[16], base[16];
	struct zb_strv entries;
	struct zb_error err;
	const char *scopes[6]; /* JSON texts, or names of presets */
};

static struct zb_need need(const char *path, unsigned rights, const char *from)
{
	return (struct zb_need){
		.path = unconst(path), .rights = rights, .from = unconst(from)};
}

static const char *const fake_environ[] = {
	"PATH=/home/u/bin:/usr/local/bin:/usr/bin:/bin",
	"HOME=/home/u",
	"USER=u",
	"LANG=C.UTF-8",
	"LC_TIME=de_DE",
	"LD_PRELOAD=/tmp/evil.so",
	"NODE_OPTIONS=--require /tmp/evil.js",
	"WEATHER_API_KEY=k",
	"github_token=t",
	"HARMLESS=1",
	"TERM=xterm",
	"=strange",
	"alsostrange",
	NULL,
};

static void fake_init(struct fake_setup *s)
{
	static const char base[] = "runtimes/base.json";
	static const char python[] = "runtimes/python.json";

	*s = (struct fake_setup){.fake = {.files = fake_files}};
	s->base[0] = need("/lib64", 0, base);
	s->base[1] = need("/lib", READ_EXEC, base);
	s->base[2] = need("/etc/hosts", ZB_MAY_READ, base);
	s->base[3] = need("/etc/resolv.conf", ZB_MAY_READ, base);
	s->base[4] = need("/etc/none", ZB_MAY_READ, base);
	s->base[4].optional = true;
	s->base[5] = need("/bin/env", READ_EXEC, base);
	s->needs[0] = need("/usr/bin/python3", READ_EXEC, python);
	s->needs[1] = need("/usr/lib/python3.11", READ_EXEC, python);
	s->program = (struct zb_program){.exec_path = unconst(EXT "/main.py"),
					 .needs = s->needs,
					 .n_needs = 2};
	zb_strv_add(&s->program.argv, EXT "/main.py");
	zb_strv_add(&s->program.quiet, "/sys/kernel/x");
	zb_strv_add(&s->program.quiet, "/sys/fs/**");
	for (const char *const *n =
		     (const char *const[]){"extension.json", "main.py",
					   "state.json", "lib", "current",
					   "away", NULL};
	     *n; n++)
		zb_strv_add(&s->entries, *n);
	s->facts = (struct zb_facts){
		.home = "/home/u",
		.zot_home = ZOT,
		.zot_home_real = ZOT,
		.extension_dir = EXT,
		.extension_real = EXT,
		.project = "/home/u/src/app",
		.private_data = BOX "/data",
		.private_home = BOX "/home",
		.shipped_manifest = BOX "/manifest.json",
		.user_name = "u",
		.uid = 1000,
		.gid = 1000,
		.environ_ = fake_environ,
		.extension_entries = &s->entries,
		.program = &s->program,
		.base_needs = s->base,
		.n_base_needs = 6,
		.look = fake_look,
		.expand = fake_expand,
		.find_program = fake_program,
		.ctx = &s->fake,
	};
}

static __attribute__((unused)) void fake_done(struct fake_setup *s)
{
	zb_strv_done(&s->program.argv);
	zb_strv_done(&s->program.quiet);
	zb_strv_done(&s->program.path_prefix);
	zb_strv_done(&s->entries);
}

/* A preset by name, from the source tree. The caller frees. */
static char *preset_text(const char *name)
{
	const char *src = getenv("ZB_SRC");
	char path[4096];
	FILE *f;
	char *text;
	size_t n;

	snprintf(path, sizeof(path), "%s/policies/%s", src ? src : ".", name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("no %s", path);
	text = calloc(1, 1 << 18);
	n = fread(text, 1, (1 << 18) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

/* The chain of @s->scopes, laid over each other. */
static void fake_scope(struct fake_setup *s, struct zb_scope *out)
{
	*out = (struct zb_scope){0};
	for (size_t i = 0; i < 6 && s->scopes[i]; i++) {
		bool inline_ = s->scopes[i][0] == '{';
		char *file = inline_ ? zb_strdup("scope.json")
				     : zb_strf("%s.json", s->scopes[i]);
		char *text =
			inline_ ? zb_strdup(s->scopes[i]) : preset_text(file);
		struct zb_scope one;
		struct zb_error err = {0};

		if (zb_scope_parse(&one, file, text, strlen(text), NULL, &err))
			fail_msg("%s", err.msg);
		if (zb_scope_merge(out, &one, &err))
			fail_msg("%s", err.msg);
		zb_scope_done(&one);
		free(file);
		free(text);
	}
}

static int fake_plan(struct fake_setup *s, struct zb_plan *out)
{
	struct zb_manifest m = {.name = unconst("weather")};
	struct zb_scope scope;
	int rc;

	fake_scope(s, &scope);
	rc = zb_plan_resolve(out, &scope, &m, &s->facts, &s->err);
	zb_scope_done(&scope);
	return rc;
}

#endif
