/* install.c - the staged install and its undoing; see install.h for the order
 * of steps that makes a kill harmless. Nothing of the extension is run. */
#include "config.h"

#include "bring.h"
#include "chain.h"
#include "cleanup.h"
#include "discover.h"
#include "fdutil.h"
#include "install.h"
#include "json_edit.h"
#include "json_scan.h"
#include "lock.h"
#include "path_match.h"
#include "prepare.h"
#include "reach.h"
#include "scope.h"
#include "source.h"
#include "staging.h"
#include "text.h"
#include "tree_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define FILE_MAX      ((size_t)1 << 20)
#define CLONE_SECONDS 600u
#define LOCK_WAIT_MS  10000
#define LOCK_STEP_MS  100

/* What describes the files of a box: replaced in one that is adopted. */
static const char *const described[] = {"manifest.json", "lock.json",
					"granted.json",	 "scope.json",
					"meant.json",	 "program"};
#define N_DESCRIBED ZB_ARRAY_LEN(described)

/* One install under way. Paths are heap. */
struct job {
	const struct zb_store *store;
	const struct zb_install_request *req;
	struct zb_brought in;
	struct zb_staging stage;
	char *stage_ext, *stage_box;
	char *box, *ext; /* where they go */
	int name_lock;
	struct zb_buf scope;
	char *policy;		 /* what the scope extends */
	bool left_over, adopted; /* there was a box; it is kept */
	bool placed;		 /* the box is, with the mark in it */
	bool made_home, made_boxes, made_ext; /* directories of them all */
	struct zb_buf was[N_DESCRIBED];	      /* of an adopted box */
	bool had[N_DESCRIBED];
};

void zb_installed_done(struct zb_installed *i)
{
	free(i->name);
	free(i->dir);
	free(i->policy);
	free(i->commit);
	zb_strv_done(&i->warnings);
	zb_wishes_done(&i->wishes);
	*i = (struct zb_installed){0};
}

static void job_done(struct job *j)
{
	zb_brought_done(&j->in);
	zb_buf_done(&j->scope);
	for (size_t i = 0; i < N_DESCRIBED; i++)
		zb_buf_done(&j->was[i]);
	free(j->stage_ext);
	free(j->stage_box);
	free(j->box);
	free(j->ext);
	free(j->policy);
}

static int no_memory(struct zb_error *err)
{
	return zb_fail(err, ZB_ELIMIT, "out of memory");
}

static int check_stop(const struct job *j, struct zb_error *err)
{
	return j->req->stop && *j->req->stop
		       ? zb_fail(err, ZB_ESYS, "interrupted")
		       : 0;
}

/* ---- the files ----------------------------------------------------------- */

/* A copy would copy itself. */
static int check_source(const struct job *j, struct zb_error *err)
{
	zb_auto(free) char *boxes =
		zb_strf("%s/zotbox", j->store->zot_home_real);

	if (!boxes)
		return no_memory(err);
	if (j->in.source.kind == ZB_SOURCE_PATH &&
	    zb_path_below(boxes, j->in.source.dir))
		return zb_fail(err, ZB_EPOLICY,
			       "%s holds the place where extensions are "
			       "installed, %s",
			       j->in.source.shown, boxes);
	return 0;
}

static int make_stage(struct job *j, struct zb_error *err)
{
	int rc;

	j->made_home = access(j->store->zot_home, F_OK) != 0;
	j->made_boxes = access(j->store->boxes, F_OK) != 0;
	j->made_ext = access(j->store->extensions, F_OK) != 0;
	rc = zb_staging_make(&j->stage, j->store, err);
	if (!rc)
		rc = zb_make_dirs(j->store->extensions, 0755, err);
	if (rc)
		return rc;
	j->stage_ext = zb_strf("%s/ext", j->stage.dir);
	j->stage_box = zb_strf("%s/box", j->stage.dir);
	if (!j->stage_ext || !j->stage_box)
		return no_memory(err);
	if (mkdir(j->stage_ext, 0700) || mkdir(j->stage_box, 0700))
		return zb_fail_sys(err, errno, "mkdir in %s", j->stage.dir);
	return 0;
}

/* Bring the files into the stage. */
static int fetch(struct job *j, struct zb_installed *out, struct zb_error *err)
{
	const struct zb_bringing how = {.stop = j->req->stop,
					.progress = j->req->progress,
					.ctx = j->req->ctx};
	int rc = zb_bring(&j->in, j->stage_ext, j->stage.dir, &how,
			  &out->warnings, err);

	if (rc)
		return rc;
	j->box = zb_store_box(j->store, j->in.manifest.name, "");
	j->ext = zb_strf("%s/%s", j->store->extensions, j->in.manifest.name);
	return j->box && j->ext ? 0 : no_memory(err);
}

/* ---- the name ------------------------------------------------------------ */

static int lock_name(struct job *j, struct zb_error *err)
{
	int rc = ZB_EPOLICY;

	for (int ms = 0; rc == ZB_EPOLICY && ms < LOCK_WAIT_MS;
	     ms += LOCK_STEP_MS) {
		rc = check_stop(j, err);
		if (!rc)
			rc = zb_store_lock(j->store, j->in.manifest.name, true,
					   LOCK_STEP_MS, &j->name_lock, err);
	}
	/* Somebody may have been killed since we looked. */
	return rc ? rc : zb_undo_marked(j->store, j->in.manifest.name, err);
}

static int is_installed(const struct job *j, struct zb_error *err)
{
	const char *name = j->in.manifest.name;
	zb_auto(free) char *lock = zb_store_box(j->store, name, "lock.json");
	struct zb_found f = {0};
	struct zb_lock l = {0};

	if (zb_discover_one(&f, j->store, name, err))
		return err->code;
	if (lock && !zb_lock_read(&l, lock, NULL) && l.source)
		zb_fail(err, ZB_EPOLICY,
			"\"%s\" is installed already, from %s under policy "
			"%s; remove it first: zotbox ext remove %s",
			name, l.source, f.policy, name);
	else
		zb_fail(err, ZB_EPOLICY,
			"\"%s\" is there already in %s (%s), not installed "
			"by zotbox; move it elsewhere first, or remove it: "
			"zotbox ext remove %s",
			name, j->ext, f.problem ? f.problem : f.policy, name);
	zb_lock_done(&l);
	zb_found_clear(&f);
	return ZB_EPOLICY;
}

/* NAME must be free; a box that was left needs a word of the user. */
static int check_free(struct job *j, struct zb_error *err)
{
	struct stat st;

	if (!lstat(j->ext, &st))
		return is_installed(j, err);
	j->left_over = !lstat(j->box, &st);
	j->adopted = j->left_over && j->req->adopt;
	if (!j->left_over || j->adopted || j->req->fresh)
		return 0;
	return zb_fail(err, ZB_EPOLICY,
		       "an earlier \"%s\" left its scope, home and data in %s; "
		       "say --fresh to delete them or --adopt to keep them",
		       j->in.manifest.name, j->box);
}

/* ---- the scope ----------------------------------------------------------- */

/* What @word, written in @dir, extends: a preset's name or a real path. */
static char *policy_of(const struct job *j, const char *word, const char *dir)
{
	zb_auto(free) char *path = NULL;

	if (zb_is_preset(word))
		return zb_strdup(word);
	if (!strncmp(word, "~/", 2))
		path = zb_path_join(j->store->home, word + 2);
	else
		path = zb_path_join(dir, word);
	return path ? realpath(path, NULL) : NULL;
}

/* --policy as `extends` will have it. */
static int policy_word(struct job *j, struct zb_error *err)
{
	const char *given = j->req->policy ? j->req->policy : "strict";
	zb_auto(free) char *cwd = realpath(".", NULL);

	j->policy = policy_of(j, given, cwd ? cwd : "/");
	if (!j->policy)
		return zb_fail(err, ZB_EUSAGE,
			       "--policy %s: no preset of that name (strict, "
			       "standard) and no such file",
			       given);
	if (zb_utf8_check(j->policy, strlen(j->policy)) != strlen(j->policy))
		return zb_fail(err, ZB_EUSAGE,
			       "--policy %s: its path is not UTF-8, and a "
			       "scope file cannot name it",
			       given);
	return 0;
}

/* @text with its "extends" set to @policy. */
static int set_extends(struct zb_buf *out, const struct zb_buf *text,
		       const char *policy, struct zb_error *err)
{
	struct zb_buf value = {0};
	int rc;

	zb_json_quote(&value, policy, strlen(policy));
	rc = zb_json_set(out, zb_buf_str(text), text->len, "extends",
			 zb_buf_str(&value), err);
	zb_buf_done(&value);
	return rc;
}

/* The FILE of --scope agrees with --policy, or tells what it extends. */
static int settle_extends(struct job *j, const struct zb_scope *s,
			  struct zb_error *err)
{
	const char *file = j->req->scope_file;
	zb_auto(free) char *real = realpath(file, NULL);
	zb_auto(free) char *dir = real ? zb_path_dir(real) : NULL;
	zb_auto(free) char *word = NULL;

	if (!s->extends)
		return 0;
	word = dir ? policy_of(j, s->extends, dir) : NULL;
	if (!word)
		return zb_fail(err, ZB_EUSAGE,
			       "%s extends \"%s\": no preset of that name "
			       "(strict, standard) and no such file",
			       file, s->extends);
	if (j->req->policy && strcmp(word, j->policy) != 0)
		return zb_fail(err, ZB_EUSAGE,
			       "%s extends \"%s\" and --policy says \"%s\"; "
			       "say one of them",
			       file, s->extends, j->req->policy);
	free(j->policy);
	j->policy = zb_steal(&word);
	return 0;
}

static int scope_from_file(struct job *j, struct zb_error *err)
{
	const char *file = j->req->scope_file;
	struct zb_buf text = {0};
	struct zb_scope s = {0};
	int rc = zb_read_file(file, FILE_MAX, &text, err);

	if (rc)
		rc = err->code = ZB_EUSAGE;
	else
		rc = zb_scope_parse(&s, file, zb_buf_str(&text), text.len, NULL,
				    err);
	if (!rc)
		rc = settle_extends(j, &s, err);
	if (!rc)
		rc = set_extends(&j->scope, &text, j->policy, err);
	zb_scope_done(&s);
	zb_buf_done(&text);
	return rc;
}

/* The scope of an adopted box stays: --policy may only say what it is. */
static int scope_adopted(struct job *j, struct zb_error *err)
{
	struct zb_scope s = {0};
	bool found;
	int rc = zb_slurp(j->box, "scope.json", &j->scope, &found, err);

	if (rc || !found)
		return rc;
	rc = zb_scope_parse(&s, "scope.json", zb_buf_str(&j->scope),
			    j->scope.len, NULL, err);
	if (rc)
		return rc;
	if (j->req->scope_file ||
	    (j->req->policy &&
	     strcmp(j->policy, s.extends ? s.extends : "strict") != 0)) {
		rc = zb_fail(err, ZB_EUSAGE,
			     "--adopt keeps the scope of the earlier \"%s\", "
			     "which extends \"%s\"; leave %s out, or say "
			     "--fresh",
			     j->in.manifest.name,
			     s.extends ? s.extends : "strict",
			     j->req->scope_file ? "--scope" : "--policy");
	} else {
		free(j->policy);
		j->policy = zb_strdup(s.extends ? s.extends : "strict");
		rc = j->policy ? 0 : no_memory(err);
	}
	zb_scope_done(&s);
	return rc;
}

static int scope_of(struct job *j, struct zb_error *err)
{
	static char bare[] = "{\n  \"zotbox\": 1\n}\n";
	const struct zb_buf text = {.data = bare, .len = sizeof(bare) - 1};
	int rc = j->adopted ? scope_adopted(j, err) : 0;

	if (rc || j->scope.len)
		return rc;
	if (j->req->scope_file)
		return scope_from_file(j, err);
	return set_extends(&j->scope, &text, j->policy, err);
}

/* observe grants nearly everything: not by default, and not silently. */
static int check_observe(const struct job *j, struct zb_error *err)
{
	struct zb_chain c = {0};
	int rc = zb_chain_add(&c, j->policy, "/", err);

	if (!rc && c.preset && !strcmp(c.preset, "observe") && !j->req->yes)
		rc = zb_fail(
			err, ZB_EPOLICY,
			"observe enforces little: it is for watching an "
			"extension that you trust enough to run, and takes "
			"a --yes; but it wants the network, which this "
			"version grants to nobody: use strict or "
			"standard");
	zb_chain_done(&c);
	return rc;
}

/* Which scope.json it starts with. */
static int make_scope(struct job *j, struct zb_error *err)
{
	int rc = policy_word(j, err);

	if (!rc)
		rc = scope_of(j, err);
	return rc ? rc : check_observe(j, err);
}

/* ---- into place ---------------------------------------------------------- */

/* Everything the box holds, and the wrapped manifest, in the stage. */
static int fill_stage(struct job *j, struct zb_error *err)
{
	zb_auto(free) char *data = zb_strf("%s/data", j->stage_box);
	zb_auto(free) char *home = zb_strf("%s/home", j->stage_box);
	int rc;

	if (!data || !home)
		return no_memory(err);
	rc = zb_put(j->stage_box, "manifest.json", &j->in.shipped, 0600, err);
	if (!rc)
		rc = zb_put(j->stage_box, "scope.json", &j->scope, 0600, err);
	if (!rc)
		rc = zb_write_lock(&j->in, j->stage_ext, j->stage_box,
				   j->policy, NULL, err);
	if (!rc && (mkdir(data, 0700) || mkdir(home, 0700)))
		rc = zb_fail_sys(err, errno, "mkdir in %s", j->stage_box);
	if (!rc)
		rc = zb_put_wrapped(&j->in.manifest, j->stage_ext, err);
	if (!rc)
		rc = zb_mark(j->stage_box, j->stage_ext, false, err);
	return rc;
}

/* Describe the new files in the old box, and keep in mind what was there. */
static int adopt_box(struct job *j, struct zb_error *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < N_DESCRIBED; i++)
		rc = zb_slurp_large(j->box, described[i], &j->was[i],
				    &j->had[i], err);
	if (!rc)
		rc = zb_mark(j->box, j->stage_ext, true, err);
	j->placed = !rc;
	for (size_t i = 0; !rc && i < N_DESCRIBED; i++) {
		struct zb_buf b = {0};
		bool found;

		rc = zb_slurp_large(j->stage_box, described[i], &b, &found,
				    err);
		if (!rc && found)
			rc = zb_put(j->box, described[i], &b, 0600, err);
		zb_buf_done(&b);
	}
	return rc;
}

static void restore_adopted(struct job *j)
{
	for (size_t i = 0; i < N_DESCRIBED; i++) {
		zb_auto(free) char *path =
			zb_strf("%s/%s", j->box, described[i]);

		if (j->had[i])
			zb_put(j->box, described[i], &j->was[i], 0600, NULL);
		else if (path)
			unlink(path);
	}
}

static int place_box(struct job *j, struct zb_error *err)
{
	int rc = 0;

	if (j->adopted)
		return adopt_box(j, err);
	if (j->left_over)
		rc = zb_staging_put_aside(&j->stage, j->store,
					  j->in.manifest.name, err);
	if (!rc && rename(j->stage_box, j->box))
		rc = zb_fail_sys(err, errno, "rename to %s", j->box);
	j->placed = !rc;
	return rc;
}

static int place(struct job *j, struct zb_error *err)
{
	int rc = check_stop(j, err);

	if (!rc)
		rc = place_box(j, err);
	if (rc || !rename(j->stage_ext, j->ext))
		return rc;
	if (errno == EXDEV)
		return zb_fail(err, ZB_ESYS,
			       "%s is on another file system than %s: an "
			       "extension cannot be moved there at once",
			       j->store->extensions, j->store->boxes);
	return zb_fail_sys(err, errno, "rename to %s", j->ext);
}

static void take_back(struct job *j)
{
	if (j->placed)
		zb_undo_marked(j->store, j->in.manifest.name, NULL);
	if (j->placed && j->adopted)
		restore_adopted(j);
}

/* ---- would it start? ----------------------------------------------------- */

/* What there is to say of the project is for the start in one. */
static int take_notices(struct zb_installed *out, const struct zb_strv *l)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < l->n; i++)
		if (!strstr(l->v[i], "${project}"))
			rc = zb_strv_add(&out->warnings, l->v[i]);
	return rc;
}

/* The same resolution that a start does, of what is now in place: malformed,
 * too broad or unenforceable scopes end the install. */
static int rehearse(struct job *j, struct zb_installed *out,
		    struct zb_strv *requested, struct zb_error *err)
{
	struct zb_prepared p = {0};
	struct zb_target t = {
		.name = j->in.manifest.name,
		.mean_it = j->req->mean_it,
		.held = true,
		.still = true,
	};
	int rc = zb_prepare(&p, j->store, &t, err);

	if (!rc && (zb_strv_copy(requested, &p.requested) ||
		    take_notices(out, &p.plan.notices)))
		rc = no_memory(err);
	zb_prepared_done(&p);
	/* Which project it will be is not known; that there is one is. */
	return rc ? rc
		  : zb_grant_try(j->store, j->in.manifest.name, &j->scope, NULL,
				 j->req->mean_it, true, err);
}

/* Granting would be against what the user said otherwise. */
static bool may_grant(const struct job *j)
{
	return !j->adopted && !j->req->scope_file &&
	       !(j->req->policy && !strcmp(j->req->policy, "strict"));
}

static bool asks(const struct job *j, const struct zb_installed *out)
{
	bool any = false;

	for (size_t i = 0; i < out->wishes.n; i++)
		any = any || !out->wishes.v[i].why_not;
	return any && j->req->approve && strcmp(j->policy, "strict") != 0;
}

/* Part @requested: what one yes to everything does not mean goes to @grave. */
static int part(struct job *j, const struct zb_strv *requested,
		struct zb_strv *plain, struct zb_strv *grave,
		struct zb_error *err)
{
	struct zb_wishes w = {0};
	int rc = zb_wishes_list(&w, requested, NULL, err);

	for (size_t i = 0; !rc && i < w.n; i++) {
		struct zb_ask ask = {0};

		rc = zb_reach_ask(&ask, j->store, w.v[i].key, w.v[i].value);
		if (!rc)
			rc = zb_strv_add(ask.risk == ZB_RISK_GRAVE ? grave
								   : plain,
					 requested->v[i]);
		zb_ask_done(&ask);
	}
	zb_wishes_done(&w);
	return rc ? no_memory(err) : 0;
}

/* @more, which is then empty, behind @w. */
static int append(struct zb_wishes *w, struct zb_wishes *more,
		  struct zb_error *err)
{
	struct zb_wish *v = reallocarray(w->v, w->n + more->n + 1, sizeof(*v));

	if (!v)
		return no_memory(err);
	w->v = v;
	if (more->n)
		memcpy(v + w->n, more->v, more->n * sizeof(*v));
	w->n += more->n;
	more->n = 0;
	return 0;
}

/* With --yes: all that is asked for and is not grave. */
static int grant_at_once(struct job *j, struct zb_installed *out,
			 const struct zb_strv *requested, struct zb_error *err)
{
	const char *name = j->in.manifest.name;
	struct zb_strv plain = {0}, grave = {0};
	struct zb_wishes rest = {0};
	struct zb_buf all = {0};
	int rc = part(j, requested, &plain, &grave, err);

	if (!rc)
		rc = zb_wishes_judge(&out->wishes, &all, j->store, name,
				     &j->scope, &plain, false, true, err);
	if (!rc)
		rc = zb_wishes_judge(&rest, NULL, j->store, name, &j->scope,
				     &grave, false, true, err);
	if (!rc && out->wishes.n)
		rc = zb_grant_keep(j->store, name, &all, &plain, false, NULL,
				   err);
	for (size_t i = 0; !rc && i < out->wishes.n; i++)
		out->wishes.v[i].granted = !out->wishes.v[i].why_not;
	if (!rc)
		rc = append(&out->wishes, &rest, err);
	zb_wishes_done(&rest);
	zb_buf_done(&all);
	zb_strv_done(&plain);
	zb_strv_done(&grave);
	return rc;
}

/* What is asked for: judged, and granted if that is wanted. */
static int grant(struct job *j, struct zb_installed *out,
		 const struct zb_strv *requested, struct zb_error *err)
{
	bool yes = j->req->yes && may_grant(j);
	struct zb_buf all = {0};
	int rc;

	if (yes && !j->req->mean_it)
		return grant_at_once(j, out, requested, err);
	rc = zb_wishes_judge(&out->wishes, &all, j->store, j->in.manifest.name,
			     &j->scope, requested, yes, true, err);

	if (!rc && !j->req->yes && may_grant(j) && asks(j, out))
		yes = j->req->approve(j->req->ctx, out);
	if (!rc && yes && out->wishes.n)
		rc = zb_grant_keep(j->store, j->in.manifest.name, &all,
				   requested, j->req->mean_it, NULL, err);
	for (size_t i = 0; !rc && yes && i < out->wishes.n; i++)
		out->wishes.v[i].granted = !out->wishes.v[i].why_not;
	zb_buf_done(&all);
	return rc;
}

static int try_out(struct job *j, struct zb_installed *out,
		   struct zb_error *err)
{
	struct zb_strv requested = {0};
	int rc = 0;

	if (j->in.manifest.exec)
		rc = rehearse(j, out, &requested, err);
	if (!rc && requested.n)
		rc = grant(j, out, &requested, err);
	zb_strv_done(&requested);
	return rc;
}

/* ---- all of it ----------------------------------------------------------- */

static int describe(struct job *j, struct zb_installed *out,
		    struct zb_error *err)
{
	out->name = zb_strdup(j->in.manifest.name);
	out->dir = zb_strdup(j->ext);
	out->policy = zb_box_policy(j->store, j->in.manifest.name);
	out->commit = zb_strdup(j->in.source.commit);
	out->theme_only = !j->in.manifest.exec;
	return out->name && out->dir && out->policy ? 0 : no_memory(err);
}

static int steps(struct job *j, struct zb_installed *out, struct zb_error *err)
{
	int rc = zb_source_parse(&j->in.source, j->req->source,
				 j->req->allow_http, err);

	if (!rc)
		rc = check_source(j, err);
	if (!rc)
		rc = make_stage(j, err);
	if (!rc)
		rc = fetch(j, out, err);
	if (!rc)
		rc = lock_name(j, err);
	if (!rc)
		rc = check_free(j, err);
	if (!rc)
		rc = make_scope(j, err);
	if (!rc)
		rc = fill_stage(j, err);
	if (!rc)
		rc = place(j, err);
	if (!rc)
		rc = try_out(j, out, err);
	if (!rc)
		rc = describe(j, out, err);
	if (!rc)
		rc = check_stop(j, err);
	if (!rc)
		rc = zb_unmark(j->store, j->in.manifest.name, err);
	return rc;
}

/* "scope.json:6: ..." is the copy of the user's @file. */
static void name_scope(const char *file, struct zb_error *err)
{
	static const char copy[] = "scope.json:";
	struct zb_error e;

	if (!err || strncmp(err->msg, copy, sizeof(copy) - 1) != 0)
		return;
	e = *err;
	zb_fail(err, e.code, "%s:%s", file, e.msg + sizeof(copy) - 1);
	err->sys = e.sys;
}

int zb_install(struct zb_installed *out, const struct zb_store *store,
	       const struct zb_install_request *req, struct zb_error *err)
{
	struct job j = {
		.store = store,
		.req = req,
		.stage = {.hold = -1},
		.name_lock = -1,
	};
	/* What the owner may do is not for the umask to say. */
	mode_t mask = umask(0);
	int rc;

	umask(mask & 077);
	*out = (struct zb_installed){0};
	zb_recover(store);
	rc = steps(&j, out, err);
	if (rc)
		take_back(&j);
	if (rc && req->scope_file)
		name_scope(req->scope_file, err);
	zb_staging_end(&j.stage, store, j.in.manifest.name);
	if (rc) {
		zb_forget_lock(store, j.in.manifest.name, j.name_lock);
		/* Only if they are empty, as they were not there before. */
		if (j.made_ext)
			rmdir(store->extensions);
		if (j.made_boxes)
			rmdir(store->boxes);
		if (j.made_home)
			rmdir(store->zot_home);
		zb_installed_done(out);
	} else if (j.name_lock >= 0) {
		close(j.name_lock);
	}
	job_done(&j);
	umask(mask);
	return rc;
}

/* ---- away, in and out of the wrapping ------------------------------------ */

int zb_uninstall(const struct zb_store *store, const char *dir,
		 const char *name, struct zb_error *err)
{
	zb_auto(free) char *box = name ? zb_store_box(store, name, "") : NULL;
	int rc = 0;

	if (name && !box)
		return no_memory(err);
	/* A full disk has no room for the mark: then without. */
	if (box && dir && !zb_mark(box, dir, false, NULL))
		return zb_undo_marked(store, name, err);
	if (dir)
		rc = zb_discard(store, dir, err);
	if (!rc && box)
		rc = zb_discard(store, box, err);
	return rc;
}

static int shipped_manifest(const struct zb_store *store, const char *name,
			    struct zb_buf *text, struct zb_manifest *m,
			    struct zb_error *err)
{
	zb_auto(free) char *path = zb_store_box(store, name, "manifest.json");

	if (!path)
		return no_memory(err);
	if (zb_read_file(path, FILE_MAX, text, err))
		return err->code;
	return zb_manifest_parse(m, zb_buf_str(text), text->len, true, err);
}

/* Never through a link that stands in the place of what was installed. */
static int put_installed(const struct zb_store *store, const char *name,
			 const struct zb_buf *b, struct zb_error *err)
{
	zb_auto(free) char *dir = zb_strf("%s/%s", store->extensions, name);
	zb_auto(free) char *path =
		dir ? zb_strf("%s/extension.json", dir) : NULL;
	struct stat st;

	if (!path)
		return no_memory(err);
	if (lstat(dir, &st))
		return zb_fail_sys(err, errno, "%s", dir);
	if (!S_ISDIR(st.st_mode))
		return zb_fail(err, ZB_EPOLICY,
			       "%s is no directory of its own: it is not what "
			       "was installed",
			       dir);
	return zb_replace_file(store, path, b, zb_manifest_mode(path), err);
}

int zb_rewrap(const struct zb_store *store, const char *name, bool enabled,
	      struct zb_error *err)
{
	struct zb_buf text = {0}, out = {0};
	struct zb_manifest m = {0};
	int rc = shipped_manifest(store, name, &text, &m, err);

	if (!rc) {
		m.enabled = enabled;
		rc = zb_wrapped_text(&m, &out, err);
	}
	if (!rc)
		rc = put_installed(store, name, &out, err);
	zb_manifest_done(&m);
	zb_buf_done(&text);
	zb_buf_done(&out);
	return rc;
}

int zb_unwrap(const struct zb_store *store, const char *name, bool enabled,
	      struct zb_error *err)
{
	struct zb_buf text = {0}, out = {0};
	struct zb_manifest m = {0};
	int rc = shipped_manifest(store, name, &text, &m, err);

	if (!rc && m.enabled != enabled)
		rc = zb_json_toggle(&out, zb_buf_str(&text), text.len,
				    "enabled", enabled, err);
	else if (!rc)
		zb_buf_add(&out, zb_buf_str(&text), text.len);
	if (!rc)
		rc = put_installed(store, name, &out, err);
	zb_manifest_done(&m);
	zb_buf_done(&text);
	zb_buf_done(&out);
	return rc;
}
