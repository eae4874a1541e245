/* plans.c - eight plans as tables. Each has what every sandbox has (common[])
 * and its own rows; rows are sorted as the resolver sorts them. */
#include "plans.h"

#include "cleanup.h"
#include "path_match.h"

#include <string.h>

#define RO  (ZB_MAY_READ | ZB_MAY_LIST)
#define RX  (RO | ZB_MAY_EXEC)
#define FX  (ZB_MAY_READ | ZB_MAY_EXEC)
#define RW  (RO | ZB_MAY_WRITE | ZB_MAY_CREATE)
#define ALL (RW | ZB_MAY_EXEC)
#define ZOT "/home/u/.zot"
#define EXT ZOT "/extensions/weather"
#define BOX ZOT "/zotbox/weather"
#define END                                                                    \
	{                                                                      \
		0                                                              \
	}

enum {
	DIR_ = 1,
	CARVED = 2,
	BROKERED = 4
};

struct row {
	enum zb_place_kind kind;
	const char *path;
	const char *source; /* "": the path itself; LINK, TEXT: what it says */
	unsigned rights;
	unsigned flags;
	const char *file, *key; /* origin */
	const char *only;
};

struct deny_row {
	const char *pattern;
	bool built_in;
	const char *file, *key;
};

struct rule_row {
	const char *list, *value, *file, *key;
};

struct plan_row {
	const char *name, *base, *project, *exec_path;
	const char *argv[5];
	bool beside;
	const struct row *rows;
	const struct deny_row *denies;
	const struct rule_row *rules;
};

static const struct row common[] = {
	{ZB_PLACE_LINK, "/bin", "usr/bin", 0, 0, "base.json", "needs", NULL},
	{ZB_PLACE_DEV, "/dev", NULL, RW, DIR_, NULL, NULL, NULL},
	{ZB_PLACE_TEXT, "/etc/group", "u:x:1000:\n", ZB_MAY_READ, 0, NULL, NULL,
	 NULL},
	{ZB_PLACE_SYSTEM, "/etc/ld.so.cache", "", ZB_MAY_READ, 0, "base.json",
	 "needs", NULL},
	{ZB_PLACE_TEXT, "/etc/passwd", "u:x:1000:1000:u:/home/u:/bin/sh\n",
	 ZB_MAY_READ, 0, NULL, NULL, NULL},
	{ZB_PLACE_SYSTEM, "/etc/ssl/certs", "", RO, DIR_, "base.json", "needs",
	 NULL},
	{ZB_PLACE_LINK, "/lib", "usr/lib", 0, 0, "base.json", "needs", NULL},
	{ZB_PLACE_LINK, "/lib64", "usr/lib64", 0, 0, "base.json", "needs",
	 NULL},
	{ZB_PLACE_PROC, "/proc", NULL, RO, DIR_, NULL, NULL, NULL},
	{ZB_PLACE_SYSTEM, "/usr/lib/x86_64-linux-gnu", "", RX, DIR_,
	 "base.json", "needs", NULL},
	{ZB_PLACE_SYSTEM, "/usr/lib64", "", RX, DIR_, "base.json", "needs",
	 NULL},
	END,
};

/* HOME and the extension's directory as strict has them. */
#define PRIVATE_HOME(flags)                                                    \
	{                                                                      \
		ZB_PLACE_HOME, "/home/u", BOX "/home", ALL, DIR_ | (flags),    \
			NULL, NULL, NULL                                       \
	}
#define PRIVATE_TMP(flags)                                                     \
	{                                                                      \
		ZB_PLACE_TMP, "/tmp", NULL, ALL, DIR_ | (flags), NULL, NULL,   \
			NULL                                                   \
	}
#define PIN_AS(path, source, flags)                                            \
	{                                                                      \
		ZB_PLACE_PIN, path, source, ALL, DIR_ | (flags), NULL, NULL,   \
			NULL                                                   \
	}
#define PIN(path, source) PIN_AS(path, source, 0)
#define APART                                                                  \
	PIN(ZOT, BOX "/home/.zot"),                                            \
		PIN(ZOT "/extensions", BOX "/home/.zot/extensions"),           \
		{ZB_PLACE_EXTENSION, EXT, "", RX, DIR_, NULL, NULL, NULL},     \
		{ZB_PLACE_EXTENSION,                                           \
		 EXT "/extension.json",                                        \
		 BOX "/manifest.json",                                         \
		 ZB_MAY_READ,                                                  \
		 0,                                                            \
		 NULL,                                                         \
		 NULL,                                                         \
		 NULL},                                                        \
		PIN(ZOT "/zotbox", BOX "/home/.zot/zotbox"),                   \
		PIN(BOX, BOX "/home/.zot/zotbox/weather"),                     \
	{                                                                      \
		ZB_PLACE_DATA, BOX "/data", "", ALL, DIR_, NULL, NULL, NULL    \
	}
#define BESIDE                                                                  \
	PIN(ZOT, BOX "/home/.zot"),                                             \
		PIN(ZOT "/extensions", BOX "/home/.zot/extensions"),            \
		{ZB_PLACE_DATA, EXT, BOX "/data", ALL, DIR_, NULL, NULL, NULL}, \
		{ZB_PLACE_EXTENSION,                                            \
		 EXT "/extension.json",                                         \
		 BOX "/manifest.json",                                          \
		 ZB_MAY_READ,                                                   \
		 0,                                                             \
		 NULL,                                                          \
		 NULL,                                                          \
		 NULL},                                                         \
	{                                                                       \
		ZB_PLACE_EXTENSION, EXT "/main.py", EXT "/main.py", FX, 0,      \
			NULL, NULL, NULL                                        \
	}
#define PYTHON                                                                 \
	{ZB_PLACE_RUNTIME,                                                     \
	 "/usr/bin/python3.11",                                                \
	 "",                                                                   \
	 FX,                                                                   \
	 0,                                                                    \
	 "runtimes/python.json",                                               \
	 "needs",                                                              \
	 NULL},                                                                \
	{                                                                      \
		ZB_PLACE_RUNTIME, "/usr/lib/python3.11", "", RX, DIR_,         \
			"runtimes/python.json", "needs", NULL                  \
	}

static const struct row strict_python[] = {
	PRIVATE_HOME(0), APART, PRIVATE_TMP(0), PYTHON, END,
};

static const struct row standard_home[] = {
	PRIVATE_HOME(BROKERED),
	BESIDE,
	PIN_AS("/home/u/src", BOX "/home/src", BROKERED),
	{ZB_PLACE_GRANT, "/home/u/src/app", "", RO, DIR_ | CARVED,
	 "standard.json", "fs.read[0]", NULL},
	PRIVATE_TMP(0),
	PYTHON,
	END,
};

static const struct row standard_tmp[] = {
	PRIVATE_HOME(0),
	BESIDE,
	PRIVATE_TMP(BROKERED),
	{ZB_PLACE_DIR, "/tmp/w", NULL, RO, DIR_ | BROKERED, NULL, NULL, NULL},
	{ZB_PLACE_GRANT, "/tmp/w/app", "", RO, DIR_ | CARVED, "standard.json",
	 "fs.read[0]", NULL},
	PYTHON,
	END,
};

static const struct row strict_native[] = {
	PRIVATE_HOME(0),
	APART,
	PRIVATE_TMP(0),
	END,
};

static const struct row sh_exec[] = {
	PRIVATE_HOME(0),
	APART,
	PRIVATE_TMP(0),
	{ZB_PLACE_RUNTIME, "/usr/bin/cat", "", FX, 0, "runtimes/sh.json",
	 "needs", NULL},
	{ZB_PLACE_RUNTIME, "/usr/bin/dash", "", FX, 0, "runtimes/sh.json",
	 "needs", NULL},
	{ZB_PLACE_GRANT, "/usr/bin/git", "", FX, 0, "scope.json", "fs.exec[0]",
	 NULL},
	{ZB_PLACE_LINK, "/usr/bin/sh", "dash", 0, 0, "runtimes/sh.json",
	 "needs", NULL},
	{ZB_PLACE_GRANT, "/usr/lib/git-core", "", RX, DIR_, "scope.json",
	 "fs.exec[0]", NULL},
	END,
};

static const struct row file_write[] = {
	PRIVATE_HOME(0),
	APART,
	PIN("/home/u/notes", BOX "/home/notes"),
	{ZB_PLACE_GRANT, "/home/u/notes/todo.txt", "",
	 ZB_MAY_READ | ZB_MAY_WRITE, 0, "scope.json", "fs.write[0]", NULL},
	{ZB_PLACE_GRANT, "/srv/feed", "", RO, DIR_, "scope.json", "fs.read[0]",
	 NULL},
	PRIVATE_TMP(0),
	PYTHON,
	END,
};

/* Links, a deny of one name, an unmerged /usr, a glob in a grant. */
static const struct row links[] = {
	PRIVATE_HOME(BROKERED),
	APART,
	PIN_AS("/home/u/logs", BOX "/home/logs", BROKERED),
	{ZB_PLACE_GRANT, "/home/u/logs/app", "", RO, DIR_ | CARVED,
	 "scope.json", "fs.read[1]", "/home/u/logs/app/*.log"},
	{ZB_PLACE_LINK, "/home/u/work", "/srv/w", 0, 0, "scope.json",
	 "fs.read[0]", NULL},
	{ZB_PLACE_SYSTEM, "/sbin", "", RX, DIR_, "base.json", "needs", NULL},
	{ZB_PLACE_GRANT, "/srv/w", "", RO, DIR_ | CARVED, "scope.json",
	 "fs.read[0]", NULL},
	PRIVATE_TMP(0),
	PYTHON,
	END,
};

/* Names with every character that some quoting minds, and a write grant. */
static const struct row awkward[] = {
	PRIVATE_HOME(BROKERED),
	APART,
	PIN("/home/u/My Files (old)", BOX "/home/My Files (old)"),
	{ZB_PLACE_GRANT, "/home/u/My Files (old)/\"quoted\" ; \\n ) $HOME", "",
	 RO, DIR_, "scope.json", "fs.read[0]", NULL},
	{ZB_PLACE_GRANT, "/home/u/My Files (old)/sch\303\266n 'x'", "",
	 ZB_MAY_READ, 0, "scope.json", "fs.read[1]", NULL},
	{ZB_PLACE_GRANT, "/home/u/out", "", RW, DIR_ | CARVED, "scope.json",
	 "fs.write[0]", NULL},
	PRIVATE_TMP(0),
	PYTHON,
	END,
};

#define STANDARD_DENIES(root)                                                  \
	{root "/**/.env*", false, "standard.json", "fs.deny[0]"},              \
		{root "/**/*.pem", false, "standard.json", "fs.deny[1]"},      \
		{root "/**/id_rsa*", false, "standard.json", "fs.deny[2]"},    \
		{root "/**/.ssh/**", false, "standard.json", "fs.deny[3]"},    \
	{                                                                      \
		root "/**/credentials*", false, "standard.json", "fs.deny[4]"  \
	}

static const struct deny_row standard_home_denies[] = {
	STANDARD_DENIES("/home/u/src/app"),
	END,
};

static const struct deny_row standard_tmp_denies[] = {
	STANDARD_DENIES("/tmp/w/app"),
	END,
};

static const struct deny_row links_denies[] = {
	{"/srv/w/secret.txt", false, "scope.json", "fs.deny[0]"},
	END,
};

static const struct deny_row awkward_denies[] = {
	{"/home/u/out/cfg/tok?n (1).txt", false, "scope.json", "fs.deny[0]"},
	{"/home/u/out/keys/prod", false, "scope.json", "fs.deny[1]"},
	{"/**/.git", true, NULL, NULL},
	{"/**/.zot/extensions", true, NULL, NULL},
	{"/**/.envrc", true, NULL, NULL},
	END,
};

static const struct rule_row standard_rules[] = {
	{"fs.read", "${project}", "standard.json", "fs.read[0]"},
	END,
};

static const struct rule_row exec_rules[] = {
	{"fs.exec", "git", "scope.json", "fs.exec[0]"},
	END,
};

static const struct rule_row file_rules[] = {
	{"fs.read", "/srv/feed", "scope.json", "fs.read[0]"},
	{"fs.read", "/nope/xyz", "scope.json", "fs.read[1]"},
	{"fs.write", "~/notes/todo.txt", "scope.json", "fs.write[0]"},
	END,
};

static const struct rule_row links_rules[] = {
	{"fs.read", "~/work", "scope.json", "fs.read[0]"},
	{"fs.read", "~/logs/app/*.log", "scope.json", "fs.read[1]"},
	END,
};

static const struct rule_row awkward_rules[] = {
	{"fs.read", "~/My Files (old)/\"quoted\" ; \\n ) $HOME", "scope.json",
	 "fs.read[0]"},
	{"fs.read", "~/My Files (old)/sch\303\266n 'x'", "scope.json",
	 "fs.read[1]"},
	{"fs.write", "~/out", "scope.json", "fs.write[0]"},
	END,
};

static const struct plan_row plans[] = {
	{"strict-python",
	 "strict",
	 NULL,
	 EXT "/main.py",
	 {"python3", EXT "/main.py"},
	 false,
	 strict_python,
	 NULL,
	 NULL},
	{"standard-home",
	 "standard",
	 "/home/u/src/app",
	 EXT "/main.py",
	 {"python3", EXT "/main.py"},
	 true,
	 standard_home,
	 standard_home_denies,
	 standard_rules},
	{"standard-tmp",
	 "standard",
	 "/tmp/w/app",
	 EXT "/main.py",
	 {"python3", EXT "/main.py"},
	 true,
	 standard_tmp,
	 standard_tmp_denies,
	 standard_rules},
	{"strict-native",
	 "strict",
	 NULL,
	 EXT "/weather",
	 {EXT "/weather", "--say", "a \"b\" \\"},
	 false,
	 strict_native,
	 NULL,
	 NULL},
	{"sh-exec",
	 "strict+scope",
	 NULL,
	 EXT "/run.sh",
	 {"/bin/sh", EXT "/run.sh"},
	 false,
	 sh_exec,
	 NULL,
	 exec_rules},
	{"file-write",
	 "strict+scope",
	 NULL,
	 EXT "/main.py",
	 {"python3", EXT "/main.py"},
	 false,
	 file_write,
	 NULL,
	 file_rules},
	{"links",
	 "strict+scope",
	 NULL,
	 EXT "/main.py",
	 {"python3", EXT "/main.py"},
	 false,
	 links,
	 links_denies,
	 links_rules},
	{"awkward",
	 "strict+scope",
	 NULL,
	 EXT "/main.py",
	 {"python3", EXT "/main.py"},
	 false,
	 awkward,
	 awkward_denies,
	 awkward_rules},
};

const char *const zb_test_plan_names[] = {
	"strict-python", "standard-home", "standard-tmp",
	"strict-native", "sh-exec",	  "file-write",
	"links",	 "awkward",	  NULL,
};

static struct zb_origin origin(const char *file, const char *key)
{
	return (struct zb_origin){.file = zb_strdup(file),
				  .key = zb_strdup(key)};
}

struct zb_place *zb_test_place(struct zb_plan *p, enum zb_place_kind kind,
			       const char *path, const char *source,
			       unsigned rights, bool is_dir)
{
	struct zb_place *v = realloc(p->places, (p->n_places + 1) * sizeof(*v));

	if (!v)
		return NULL;
	p->places = v;
	v += p->n_places++;
	*v = (struct zb_place){
		.kind = kind,
		.path = zb_strdup(path),
		.rights = rights,
		.is_dir = is_dir,
	};
	if (kind == ZB_PLACE_LINK)
		v->link_to = zb_strdup(source);
	else if (kind == ZB_PLACE_TEXT)
		v->content = zb_strdup(source);
	else if (source)
		v->source = zb_strdup(*source ? source : path);
	return v;
}

bool zb_test_deny(struct zb_plan *p, const char *pattern, bool built_in,
		  const char *key)
{
	struct zb_deny *v = realloc(p->denies, (p->n_denies + 1) * sizeof(*v));

	if (!v)
		return false;
	p->denies = v;
	v[p->n_denies++] = (struct zb_deny){
		.pattern = zb_strdup(pattern),
		.built_in = built_in,
		.origin = built_in ? (struct zb_origin){0}
				   : origin("scope.json", key),
	};
	return true;
}

static bool add_env(struct zb_plan *p, const char *name, const char *value)
{
	struct zb_env_var *v = realloc(p->env, (p->n_env + 1) * sizeof(*v));

	if (!v)
		return false;
	p->env = v;
	v[p->n_env++] = (struct zb_env_var){
		.name = zb_strdup(name),
		.value = zb_strdup(value),
		.origin = origin("strict.json", "env.pass")};
	return true;
}

static void set_limit(struct zb_plan *p, enum zb_limit l, uint64_t value)
{
	p->scope.limits[l] = (struct zb_limit_value){
		.set = true,
		.value = value,
		.origin = origin("strict.json", "limits"),
	};
}

bool zb_test_plan_minimal(struct zb_plan *p)
{
	*p = (struct zb_plan){
		.name = zb_strdup("weather"),
		.base = zb_strdup("strict"),
		.home = zb_strdup("/home/u"),
		.home_real = zb_strdup("/home/u"),
		.zot_home = zb_strdup(ZOT),
		.zot_home_real = zb_strdup(ZOT),
		.extension_dir = zb_strdup(EXT),
		.extension_real = zb_strdup(EXT),
		.cwd = zb_strdup(EXT),
		.exec_path = zb_strdup(EXT "/main.py"),
	};
	set_limit(p, ZB_LIMIT_MEMORY, 512u << 20);
	set_limit(p, ZB_LIMIT_PROCESSES, 64);
	set_limit(p, ZB_LIMIT_OPEN_FILES, 256);
	return add_env(p, "PATH", "/usr/bin:/bin") &&
	       add_env(p, "HOME", "/home/u") && add_env(p, "TMPDIR", "/tmp") &&
	       add_env(p, "API_KEY", "s3cret-value");
}

static void add_row(struct zb_plan *p, const struct row *r)
{
	struct zb_place *pl = zb_test_place(p, r->kind, r->path, r->source,
					    r->rights, r->flags & DIR_);

	if (!pl)
		return;
	pl->carved = r->flags & CARVED;
	pl->brokered = r->flags & BROKERED;
	pl->origin = origin(r->file, r->key);
	if (r->only)
		zb_strv_add(&pl->only, r->only);
	if (r->only && (r->rights & (ZB_MAY_WRITE | ZB_MAY_CREATE)))
		zb_strv_add(&pl->only_changes, r->only);
}

/* "/" before any other byte: what lies in a directory follows it at once. */
static int by_path(const void *a, const void *b)
{
	const char *x = ((const struct zb_place *)a)->path;
	const char *y = ((const struct zb_place *)b)->path;

	for (; *x && *x == *y; x++, y++)
		;
	return (*x == '/' ? 1 : (unsigned char)*x) -
	       (*y == '/' ? 1 : (unsigned char)*y);
}

static void add_rule(struct zb_plan *p, const struct rule_row *r)
{
	struct zb_rules *l = &p->scope.fs_read;
	struct zb_rule *v;

	if (!strcmp(r->list, "fs.write"))
		l = &p->scope.fs_write;
	else if (!strcmp(r->list, "fs.exec"))
		l = &p->scope.fs_exec;
	v = realloc(l->v, (l->n + 1) * sizeof(*v));
	if (!v)
		return;
	l->v = v;
	v[l->n++] = (struct zb_rule){.value = zb_strdup(r->value),
				     .origin = origin(r->file, r->key)};
	l->cap = l->n;
}

bool zb_test_plan(const char *name, struct zb_plan *out)
{
	const struct plan_row *row = NULL;

	for (size_t i = 0; i < ZB_ARRAY_LEN(plans); i++)
		if (!strcmp(plans[i].name, name))
			row = &plans[i];
	if (!row || !zb_test_plan_minimal(out))
		return false;
	free(out->base);
	free(out->exec_path);
	out->base = zb_strdup(row->base);
	out->exec_path = zb_strdup(row->exec_path);
	out->project = zb_strdup(row->project);
	out->state_beside = row->beside;
	out->data_dir = zb_strdup(row->beside ? EXT : BOX "/data");
	for (size_t i = 0; row->argv[i]; i++)
		zb_strv_add(&out->argv, row->argv[i]);
	for (const struct row *r = common; r->path; r++)
		add_row(out, r);
	for (const struct row *r = row->rows; r->path; r++)
		add_row(out, r);
	qsort(out->places, out->n_places, sizeof(*out->places), by_path);
	for (const struct deny_row *d = row->denies; d && d->pattern; d++) {
		zb_test_deny(out, d->pattern, d->built_in, d->key);
		if (!d->built_in) {
			free(out->denies[out->n_denies - 1].origin.file);
			out->denies[out->n_denies - 1].origin.file =
				zb_strdup(d->file);
		}
	}
	for (const struct rule_row *r = row->rules; r && r->list; r++)
		add_rule(out, r);
	return true;
}

void zb_test_plan_done(struct zb_plan *p)
{
	zb_plan_done(p);
}
