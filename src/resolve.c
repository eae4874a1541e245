/* resolve.c - from a scope and the host's facts to a plan.
 *
 * The order matters, since later steps judge by what earlier ones found:
 *
 *	roots	  real names of HOME, ZOT_HOME, the extension, its boxes, and
 *		  of what the supervisor runs itself
 *	refusals  what no host can change (protocol), what is not built (net)
 *	project	  known, unknown, or too broad to be granted
 *	needs	  loader, libraries, interpreter; passwd; /proc /dev /tmp
 *	private	  HOME, the extension's directory, data/
 *	denies	  as patterns over real names
 *	grants	  fs.read, fs.exec, fs.write
 *	settle	  places merged, carve-outs marked, ancestors pinned
 *	the rest  environment, arguments, quiet probes
 *	check	  can the program be started at all under this?
 *
 * Everything is decided here and on real names, before anything is mounted.
 * Two runs over the same facts give the same plan, byte for byte. */
#include "resolve.h"

#include "cleanup.h"
#include "path_match.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *dup_real(struct zb_resolver *r, const char *path)
{
	struct zb_walk w;
	char *real;

	if (!path || zb_resolve_walk(r, path, false, &w))
		return NULL;
	real = zb_steal(&w.path);
	zb_walk_done(&w);
	return real;
}

static int no_memory(struct zb_resolver *r)
{
	return zb_fail(r->err, ZB_ELIMIT, "out of memory making the plan");
}

/* Every path the host gives must be absolute, or nothing below holds. */
static int check_facts(struct zb_resolver *r)
{
	const struct zb_facts *f = r->facts;
	const struct {
		const char *name, *path;
	} need[] = {
		{"HOME", f->home},
		{"ZOT_HOME", f->zot_home},
		{"the extension's directory", f->extension_dir},
		{"the private data directory", f->private_data},
		{"the private home", f->private_home},
	};

	for (size_t i = 0; i < sizeof(need) / sizeof(need[0]); i++)
		if (!need[i].path || need[i].path[0] != '/')
			return zb_fail(
				r->err, ZB_EUSAGE,
				"%s must be an absolute path, not \"%s\"",
				need[i].name, need[i].path ? need[i].path : "");
	return 0;
}

static int find_roots(struct zb_resolver *r)
{
	const struct zb_facts *f = r->facts;
	struct zb_plan *p = r->plan;
	zb_auto(free) char *auth = NULL;

	p->home = zb_path_join(NULL, f->home);
	p->zot_home = zb_path_join(NULL, f->zot_home);
	p->extension_dir = zb_path_join(NULL, f->extension_dir);
	p->home_real = dup_real(r, f->home);
	p->zot_home_real = dup_real(r, f->zot_home);
	p->extension_real = dup_real(r, f->extension_dir);
	r->data = dup_real(r, f->private_data);
	r->home_box = dup_real(r, f->private_home);
	p->data_dir = zb_path_join(NULL, p->state_beside ? f->extension_dir
							 : f->private_data);
	if (!p->home || !p->data_dir || !p->zot_home || !p->extension_dir ||
	    !p->home_real || !p->zot_home_real || !p->extension_real ||
	    !r->data || !r->home_box)
		return no_memory(r);
	r->boxes = zb_path_join(p->zot_home_real, "zotbox");
	r->logs = zb_path_join(p->zot_home_real, "logs");
	r->extensions = zb_path_join(p->zot_home_real, "extensions");
	auth = zb_path_join(p->zot_home_real, "auth.json");
	r->auth = auth ? dup_real(r, auth) : NULL;
	if (!r->boxes || !r->logs || !r->extensions || !r->auth)
		return no_memory(r);
	if (zb_path_below("/tmp", p->home_real))
		return zb_fail(r->err, ZB_EUSAGE,
			       "HOME is %s: a sandbox needs a HOME that is a "
			       "directory of its own",
			       p->home);
	return 0;
}

/* Lists whose grants this version cannot enforce. */
static int refuse_network(struct zb_resolver *r)
{
	const struct {
		const struct zb_rules *rules;
		const char *key;
	} lists[] = {
		{&r->scope->net_connect, "net.connect"},
		{&r->scope->net_listen, "net.listen"},
		{&r->scope->net_unix, "net.unix"},
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const struct zb_rule *first = lists[i].rules->v;

		if (!lists[i].rules->n)
			continue;
		if (first->origin.file &&
		    !strcmp(first->origin.file, "observe.json"))
			return zb_resolve_fail(
				r, ZB_EUNSUPPORTED, first,
				"the policy observe is not available in this "
				"version, which has no network grants; use "
				"strict or standard: what the extension "
				"reaches for is then in zotbox ext logs NAME "
				"--denials");
		return zb_resolve_fail(
			r, ZB_EUNSUPPORTED, first,
			"this version has no network grants, the sandbox's "
			"network is empty; leave %s out",
			lists[i].key);
	}
	return 0;
}

static int judge_protocol(struct zb_resolver *r)
{
	return zb_scope_judge(r->scope, r->facts->mean_it, r->err);
}

static bool list_names(const struct zb_rules *l, const char *prefix)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strncmp(l->v[i].value, prefix, strlen(prefix)))
			return true;
	return false;
}

static bool uses_project(const struct zb_scope *s)
{
	static const char var[] = "${project}";

	return list_names(&s->fs_read, var) || list_names(&s->fs_write, var) ||
	       list_names(&s->fs_exec, var) || list_names(&s->fs_deny, var) ||
	       list_names(&s->net_unix, var);
}

/* Why @dir is a directory that nobody can mean when they say "my project";
 * NULL: it is none. */
static const char *too_broad(const struct zb_resolver *r, const char *dir)
{
	const struct zb_plan *p = r->plan;
	const struct {
		const char *held, *holder, *words;
	} rows[] = {
		{p->home_real, dir, "is or contains HOME"},
		{p->zot_home_real, dir, "is or contains ZOT_HOME"},
		{"/tmp", dir, "is or contains /tmp"},
		{dir, r->boxes, "lies in the supervisor's own directories"},
		{dir, r->logs, "lies in the supervisor's own directories"},
		{dir, "/proc", "is or lies in /proc"},
		{dir, "/dev", "is or lies in /dev"},
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++)
		if (zb_path_below(rows[i].held, rows[i].holder))
			return rows[i].words;
	return NULL;
}

static int add_own_path(struct zb_strv *own, const char *path)
{
	return zb_strv_has(own, path) ? 0 : zb_strv_add(own, path);
}

/* The supervisor's own, and each link that leads there: who may put another in
 * its place decides what runs outside. */
static int find_own(struct zb_resolver *r)
{
	const struct zb_strv *l = r->facts->own;
	struct zb_strv *own = &r->plan->own;
	int rc = 0;

	for (size_t i = 0; l && !rc && i < l->n; i++) {
		struct zb_walk w;

		if (zb_resolve_walk(r, l->v[i], false, &w))
			return ZB_ELIMIT;
		rc = add_own_path(own, w.path);
		for (size_t k = 0; !rc && k + 1 < w.links.n; k += 2)
			rc = add_own_path(own, w.links.v[k]);
		zb_walk_done(&w);
	}
	return rc;
}

static int find_project(struct zb_resolver *r)
{
	struct zb_plan *p = r->plan;
	struct zb_walk w;
	int rc = 0;

	p->uses_project = uses_project(r->scope);
	if (!r->facts->project) {
		if (!p->uses_project)
			return 0;
		return zb_resolve_notice(
			r, NULL,
			"the project is not known: what the "
			"scope says of ${project} is left out");
	}
	if (zb_resolve_walk(r, r->facts->project, false, &w))
		return ZB_ELIMIT;
	p->project_why = too_broad(r, w.path);
	if (p->project_why) {
		if (p->uses_project) {
			p->project_refused = zb_steal(&w.path);
			rc = zb_resolve_notice(
				r, NULL,
				"the project is %s, which %s: ${project} is "
				"not granted; start zot in a project directory",
				p->project_refused, p->project_why);
		}
	} else if (!w.is_dir) {
		if (p->uses_project)
			rc = zb_resolve_notice(r, NULL,
					       "the project %s is not there: "
					       "${project} is left out",
					       w.path);
	} else {
		p->project = zb_steal(&w.path);
	}
	zb_walk_done(&w);
	return rc;
}

/* One user, as the extension's own. What would break the format is left out:
 * the file is for getpwuid(3), HOME is in the environment. */
static int add_accounts(struct zb_resolver *r)
{
	const struct zb_facts *f = r->facts;
	const char *name = f->user_name, *home = r->plan->home;
	char number[16];
	char *passwd, *group;
	struct zb_place place = {
		.kind = ZB_PLACE_TEXT, .rights = ZB_MAY_READ, .copied = true};
	int rc = ZB_ELIMIT;

	if (!name || !*name || strpbrk(name, ":\n")) {
		snprintf(number, sizeof(number), "%u", f->uid);
		name = number;
	}
	if (strpbrk(home, ":\n"))
		home = "/";
	passwd = zb_strf("%s:x:%u:%u:%s:%s:/bin/sh\n", name, f->uid, f->gid,
			 name, home);
	group = zb_strf("%s:x:%u:\n", name, f->gid);
	if (passwd && group) {
		place.path = (char[]){"/etc/passwd"};
		place.content = passwd;
		rc = zb_resolve_add(r, &place);
		place.path = (char[]){"/etc/group"};
		place.content = group;
		if (!rc)
			rc = zb_resolve_add(r, &place);
	}
	free(passwd);
	free(group);
	return rc;
}

static int add_system(struct zb_resolver *r)
{
	const struct zb_facts *f = r->facts;
	const struct zb_place made[] = {
		{.kind = ZB_PLACE_PROC,
		 .path = (char[]){"/proc"},
		 .rights = ZB_MAY_READ | ZB_MAY_LIST,
		 .is_dir = true},
		{.kind = ZB_PLACE_DEV,
		 .path = (char[]){"/dev"},
		 .rights = ZB_MAY_READ | ZB_MAY_WRITE | ZB_MAY_LIST,
		 .is_dir = true},
		{.kind = ZB_PLACE_TMP,
		 .path = (char[]){"/tmp"},
		 .rights = ZB_ALL_RIGHTS,
		 .is_dir = true},
	};
	int rc = zb_resolve_needs(r, ZB_PLACE_SYSTEM, f->base_needs,
				  f->n_base_needs, "needs");

	if (!rc && f->program)
		rc = zb_resolve_needs(r, ZB_PLACE_RUNTIME, f->program->needs,
				      f->program->n_needs, "needs");
	for (size_t i = 0; !rc && i < sizeof(made) / sizeof(made[0]); i++)
		rc = zb_resolve_add(r, &made[i]);
	return rc ? rc : add_accounts(r);
}

/* Debian's links to the one chosen of several programs lead through this
 * directory. A program that is granted by name brings its own along, as any
 * link, and base.json those of libraries; in a granted directory it may be any.
 */
static int add_alternatives(struct zb_resolver *r)
{
	const struct zb_need need = {.path = (char[]){"/etc/alternatives"},
				     .rights = ZB_MAY_READ | ZB_MAY_LIST,
				     .optional = true};

	for (size_t i = 0; i < r->plan->n_places; i++) {
		const struct zb_place *p = &r->plan->places[i];

		if (p->kind == ZB_PLACE_GRANT && p->is_dir &&
		    (zb_path_below(p->path, "/usr") ||
		     zb_path_below("/usr", p->path)))
			return zb_resolve_needs(r, ZB_PLACE_SYSTEM, &need, 1,
						"needs");
	}
	return 0;
}

/* A private place: @source stands at the real name of @path, and the links
 * that lead to @path are shown. */
static int add_private(struct zb_resolver *r, enum zb_place_kind kind,
		       const char *path, char *source, unsigned rights)
{
	struct zb_walk w;
	size_t first = r->plan->n_places;
	int rc;

	if (zb_resolve_walk(r, path, false, &w))
		return ZB_ELIMIT;
	w.is_dir = true;
	rc = zb_resolve_add_walked(r, kind, &w, rights, &(struct zb_origin){0});
	for (size_t i = first; !rc && i < r->plan->n_places; i++) {
		struct zb_place *p = &r->plan->places[i];

		if (p->kind != kind)
			continue;
		free(p->source);
		p->source = zb_strdup(source);
		rc = p->source ? 0 : ZB_ELIMIT;
	}
	zb_walk_done(&w);
	return rc;
}

#define ZB_CODE_RIGHTS ((unsigned)(ZB_MAY_READ | ZB_MAY_EXEC | ZB_MAY_LIST))

/* extension.json shows the manifest as shipped, not the wrapped one. */
static int add_manifest(struct zb_resolver *r)
{
	struct zb_place place = {.kind = ZB_PLACE_EXTENSION,
				 .rights = ZB_MAY_READ};
	int rc = ZB_ELIMIT;

	if (!r->facts->shipped_manifest)
		return 0;
	place.path = zb_path_join(r->plan->extension_real, "extension.json");
	place.source = dup_real(r, r->facts->shipped_manifest);
	if (place.path && place.source)
		rc = zb_resolve_add(r, &place);
	free(place.path);
	free(place.source);
	return rc;
}

/* One installed entry on top of data/. A link stands as what it points to:
 * as a link it would lie in data/, where the extension could change it. */
static int add_entry(struct zb_resolver *r, const char *name)
{
	struct zb_place place = {.kind = ZB_PLACE_EXTENSION};
	struct zb_walk w = {0};
	int rc = ZB_ELIMIT;

	if (zb_strv_has(&r->open, name))
		return 0;
	if (!strcmp(name, "extension.json") && r->facts->shipped_manifest)
		return add_manifest(r);
	place.path = zb_path_join(r->plan->extension_real, name);
	if (!place.path || zb_resolve_walk(r, place.path, false, &w))
		goto out;
	rc = 0;
	if (!zb_path_below(w.path, r->plan->extension_real) ||
	    (!w.is_dir && !w.is_file)) {
		rc = zb_resolve_notice(r, NULL,
				       "%s is left out: it leads to nothing "
				       "inside the extension's directory",
				       place.path);
		goto out;
	}
	place.source = w.path;
	place.is_dir = w.is_dir;
	place.rights = w.is_dir ? ZB_CODE_RIGHTS
				: (unsigned)(ZB_MAY_READ | ZB_MAY_EXEC);
	rc = zb_resolve_add(r, &place);
out:
	free(place.path);
	zb_walk_done(&w);
	return rc;
}

/* The copy in data/ of a shipped file deeper down, on top of its directory. */
static int add_open(struct zb_resolver *r, const char *name)
{
	struct zb_place place = {.kind = ZB_PLACE_DATA,
				 .rights = ZB_MAY_READ | ZB_MAY_WRITE |
					   ZB_MAY_EXEC};
	int rc = ZB_ELIMIT;

	if (!strchr(name, '/'))
		return 0;
	place.path = zb_path_join(r->plan->extension_real, name);
	place.source = zb_path_join(r->data, name);
	if (place.path && place.source)
		rc = zb_resolve_add(r, &place);
	free(place.path);
	free(place.source);
	return rc;
}

static int add_beside(struct zb_resolver *r)
{
	const struct zb_strv *names = r->facts->extension_entries;
	int rc = add_private(r, ZB_PLACE_DATA, r->facts->extension_dir, r->data,
			     ZB_ALL_RIGHTS);

	for (size_t i = 0; !rc && names && i < names->n; i++)
		rc = add_entry(r, names->v[i]);
	for (size_t i = 0; !rc && i < r->open.n; i++)
		rc = add_open(r, r->open.v[i]);
	return rc;
}

static int add_apart(struct zb_resolver *r)
{
	int rc = add_private(r, ZB_PLACE_EXTENSION, r->facts->extension_dir,
			     r->plan->extension_real, ZB_CODE_RIGHTS);

	if (!rc)
		rc = add_manifest(r);
	if (!rc)
		rc = add_private(r, ZB_PLACE_DATA, r->facts->private_data,
				 r->data, ZB_ALL_RIGHTS);
	return rc;
}

static int add_own(struct zb_resolver *r)
{
	struct zb_plan *p = r->plan;
	int rc;

	p->cwd = zb_strdup(p->extension_dir);
	if (!p->cwd)
		return ZB_ELIMIT;
	rc = add_private(r, ZB_PLACE_HOME, r->facts->home, r->home_box,
			 ZB_ALL_RIGHTS);
	if (rc)
		return rc;
	return p->state_beside ? add_beside(r) : add_apart(r);
}

static int add_program(struct zb_resolver *r)
{
	const struct zb_facts *f = r->facts;
	struct zb_plan *p = r->plan;

	if (f->base_quiet && zb_strv_copy(&p->quiet, f->base_quiet))
		return ZB_ELIMIT;
	if (!f->program)
		return 0;
	p->exec_path = zb_strdup(f->program->exec_path);
	if ((f->program->exec_path && !p->exec_path) ||
	    zb_strv_copy(&p->argv, &f->program->argv) ||
	    zb_strv_copy(&p->quiet, &f->program->quiet))
		return ZB_ELIMIT;
	return 0;
}

/* Better said here than by execve(2) inside. */
static int check_program(struct zb_resolver *r)
{
	const struct zb_plan *p = r->plan;
	const struct zb_place *place;
	struct zb_walk w;
	int i;

	if (!p->exec_path)
		return 0;
	if (zb_resolve_walk(r, p->exec_path, false, &w))
		return ZB_ELIMIT;
	i = zb_plan_place(p, w.path);
	zb_walk_done(&w);
	if (i < 0)
		return zb_fail(r->err, ZB_EPOLICY,
			       "cannot run %s: it is not visible in the "
			       "sandbox",
			       p->exec_path);
	place = &p->places[i];
	if (!(place->rights & ZB_MAY_EXEC))
		return zb_fail(r->err, ZB_EPOLICY,
			       "cannot run %s: %s is visible in the sandbox, "
			       "but may not execute",
			       p->exec_path, place->path);
	if (place->carved || place->brokered)
		return zb_fail(
			r->err, ZB_EUNSUPPORTED,
			"cannot run %s: a deny or a pattern reaches into "
			"%s, and the kernel cannot execute from a "
			"directory that is only partly granted",
			p->exec_path, place->path);
	return 0;
}

/* "strict.json" and "scope.json" are "strict+scope". */
static char *policy_word(const char *files)
{
	struct zb_buf b = {0};

	for (const char *s = files; s && *s;) {
		size_t n = strcspn(s, ",");
		const char *end = s + n, *name = s;

		for (const char *p = s; p < end; p++)
			if (*p == '/')
				name = p + 1;
		n = (size_t)(end - name);
		if (n > 5 && !memcmp(end - 5, ".json", 5))
			n -= 5;
		if (b.len)
			zb_buf_addc(&b, '+');
		zb_buf_add(&b, name, n);
		s = end + strspn(end, ", ");
	}
	return zb_buf_steal(&b);
}

/* Only what is granted after all is made. */
static int check_made(struct zb_resolver *r)
{
	struct zb_plan *p = r->plan;
	size_t n = 0;

	for (size_t i = 0; i < p->made.n; i++) {
		int k = zb_plan_place(p, p->made.v[i]);

		if (k >= 0 && p->places[k].kind == ZB_PLACE_GRANT &&
		    (p->places[k].rights & ZB_MAY_CREATE))
			p->made.v[n++] = p->made.v[i];
		else
			free(p->made.v[i]);
	}
	for (size_t i = n; i < p->made.n; i++)
		p->made.v[i] = NULL;
	p->made.n = n;
	return 0;
}

static int resolve(struct zb_resolver *r, const struct zb_manifest *manifest)
{
	static int (*const steps[])(struct zb_resolver *) = {
		check_facts,
		find_roots,
		find_own,
		refuse_network,
		judge_protocol,
		find_project,
		add_system,
		zb_resolve_shipped,
		add_own,
		zb_resolve_denies,
		zb_resolve_grants,
		add_alternatives,
		zb_resolve_judge_links,
		zb_resolve_settle,
		check_made,
		add_program,
		zb_resolve_env,
		check_program};
	struct zb_plan *p = r->plan;
	int rc = 0;

	p->state_beside = r->scope->state_beside;
	p->ledger = r->scope->ledger_set ? r->scope->ledger : ZB_LEDGER_OPEN;
	p->name = zb_strdup(manifest->name);
	p->base = policy_word(r->scope->file);
	if (!p->base || (manifest->name && !p->name))
		rc = no_memory(r);
	for (size_t i = 0; !rc && i < sizeof(steps) / sizeof(steps[0]); i++)
		rc = steps[i](r);
	if (rc == ZB_ELIMIT && r->err && !r->err->msg[0])
		no_memory(r);
	return rc;
}

int zb_plan_resolve(struct zb_plan *out, struct zb_scope *scope,
		    const struct zb_manifest *manifest,
		    const struct zb_facts *facts, struct zb_error *err)
{
	struct zb_plan plan = {0};
	struct zb_resolver r = {
		.plan = &plan, .scope = scope, .facts = facts, .err = err};
	int rc;

	if (err)
		*err = (struct zb_error){0};
	rc = resolve(&r, manifest);
	for (size_t i = 0; i < r.n_looked; i++) {
		free(r.looked[i].path);
		free(r.looked[i].fact.real);
		free(r.looked[i].fact.link);
	}
	free(r.looked);
	zb_strv_done(&r.open);
	free(r.data);
	free(r.home_box);
	free(r.boxes);
	free(r.logs);
	free(r.extensions);
	free(r.auth);
	if (rc) {
		zb_plan_done(&plan);
		return rc;
	}
	plan.scope = *scope;
	*scope = (struct zb_scope){0};
	*out = plan;
	return 0;
}
