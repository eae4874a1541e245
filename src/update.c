/* update.c - fetch again, compare, try, ask, swap.
 *
 * The trial wants no special case anywhere: the stage has directories "e" and
 * "b", and a copy of the store in which they are the extensions and the boxes.
 * In it the extension is resolved as the next start would do it, with the scope
 * that it has. No lock is held while people read; so before the swap the files
 * that were compared are looked at again. */
#include "config.h"

#include "update.h"

#include "bring.h"
#include "cleanup.h"
#include "discover.h"
#include "fdutil.h"
#include "prepare.h"
#include "scope.h"
#include "staging.h"
#include "swap.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LOCK_WAIT_MS 10000

struct job {
	const struct zb_store *store;
	const struct zb_update_request *req;
	struct zb_updated *out;
	struct zb_error *err;
	struct zb_brought in;
	struct zb_staging stage;
	struct zb_store own; /* that of the stage: borrows but two strings */
	char *box, *ext;     /* as installed */
	char *new_box, *new_ext;
	char *manifest; /* box/manifest.json */
	bool enabled;
	struct zb_lock lock, there, now;
	struct zb_buf lock_text, scope; /* as they were compared */
	struct zb_buf granted;		/* the scope with what was approved */
};

void zb_updated_done(struct zb_updated *u)
{
	free(u->name);
	free(u->source);
	free(u->commit_was);
	free(u->commit);
	zb_code_diff_done(&u->diff);
	zb_wishes_done(&u->wishes);
	zb_strv_done(&u->no_longer);
	zb_strv_done(&u->kept);
	zb_strv_done(&u->warnings);
	*u = (struct zb_updated){0};
}

static void job_done(struct job *j)
{
	zb_brought_done(&j->in);
	free(j->own.extensions);
	free(j->own.boxes);
	free(j->box);
	free(j->ext);
	free(j->new_box);
	free(j->new_ext);
	free(j->manifest);
	zb_lock_done(&j->lock);
	zb_lock_done(&j->there);
	zb_lock_done(&j->now);
	zb_buf_done(&j->lock_text);
	zb_buf_done(&j->scope);
	zb_buf_done(&j->granted);
}

static int no_memory(struct job *j)
{
	return zb_fail(j->err, ZB_ELIMIT, "out of memory");
}

static int check_stop(struct job *j)
{
	return j->req->stop && *j->req->stop
		       ? zb_fail(j->err, ZB_ESYS, "interrupted")
		       : 0;
}

/* ---- what is installed --------------------------------------------------- */

/* One that zot starts through us, or a theme that was installed by us. */
static int check_wrapped(struct job *j)
{
	struct zb_found f = {0};
	int rc = zb_discover_one(&f, j->store, j->req->name, j->err);

	if (rc)
		return rc;
	j->enabled = !f.has_manifest || f.manifest.enabled;
	if (f.link || (f.has_manifest && !f.wrapped && !f.theme_only))
		rc = zb_fail(j->err, ZB_EPOLICY,
			     "\"%s\" is not confined as it is (%s), and an "
			     "update would not change that. First: zotbox ext "
			     "doctor %s --repair",
			     f.name, f.problem ? f.problem : f.policy, f.name);
	zb_found_clear(&f);
	return rc;
}

static int find(struct job *j)
{
	const char *name = j->req->name;
	struct stat st;

	if (!zb_name_valid(name))
		return zb_fail(j->err, ZB_EUSAGE,
			       "\"%s\" is not an extension's name", name);
	j->box = zb_store_box(j->store, name, "");
	j->manifest = zb_store_box(j->store, name, "manifest.json");
	j->ext = zb_strf("%s/%s", j->store->extensions, name);
	j->out->name = zb_strdup(name);
	if (!j->box || !j->manifest || !j->ext || !j->out->name)
		return no_memory(j);
	if (lstat(j->ext, &st))
		return zb_fail(j->err, ZB_EPOLICY,
			       "no extension \"%s\" is installed (see zotbox "
			       "ext list)",
			       name);
	if (access(j->manifest, F_OK) || zb_is_marked(j->store, name))
		return zb_fail(j->err, ZB_EPOLICY,
			       "\"%s\" was not installed by zotbox: nothing "
			       "says where it came from. Install it: zotbox "
			       "ext install PATH|GIT-URL",
			       name);
	return check_wrapped(j);
}

/* Where it came from, and what it was and is. */
static int read_old(struct job *j)
{
	zb_auto(free) char *path = zb_strf("%s/lock.json", j->box);
	bool found;
	int rc = path ? zb_slurp_large(j->box, "lock.json", &j->lock_text,
				       &found, j->err)
		      : no_memory(j);

	if (!rc)
		rc = zb_slurp(j->box, "scope.json", &j->scope, &found, j->err);
	if (!rc && zb_lock_read(&j->lock, path, j->err)) {
		zb_wrap(j->err, "where \"%s\" came from cannot be read",
			j->req->name);
		rc = j->err->code = ZB_EPOLICY;
	}
	if (!rc && !j->lock.source)
		rc = zb_fail(j->err, ZB_EPOLICY,
			     "%s does not say where it came from", path);
	if (!rc)
		rc = zb_lock_make(&j->there, j->ext, j->manifest, j->err);
	if (rc)
		return rc;
	j->out->source = zb_strdup(j->lock.source);
	j->out->commit_was = zb_strdup(j->lock.commit);
	j->out->tampered = strcmp(j->there.tree, j->lock.tree) != 0;
	return j->out->source ? 0 : no_memory(j);
}

/* ---- what would be ------------------------------------------------------- */

static int make_stage(struct job *j)
{
	const char *name = j->req->name;
	int rc = zb_staging_make(&j->stage, j->store, j->err);

	if (rc)
		return rc;
	j->own = *j->store;
	j->own.extensions = zb_strf("%s/e", j->stage.dir);
	j->own.boxes = zb_strf("%s/b", j->stage.dir);
	j->new_ext = zb_strf("%s/e/%s", j->stage.dir, name);
	j->new_box = zb_strf("%s/b/%s", j->stage.dir, name);
	if (!j->own.extensions || !j->own.boxes || !j->new_ext || !j->new_box)
		return no_memory(j);
	if (mkdir(j->own.extensions, 0700) || mkdir(j->own.boxes, 0700) ||
	    mkdir(j->new_ext, 0700) || mkdir(j->new_box, 0700))
		return zb_fail_sys(j->err, errno, "mkdir in %s", j->stage.dir);
	return 0;
}

static int fetch(struct job *j)
{
	const struct zb_bringing how = {.stop = j->req->stop,
					.progress = j->req->progress,
					.ctx = j->req->ctx};
	int rc = zb_source_parse(&j->in.source, j->lock.source,
				 j->req->allow_http, j->err);

	if (!rc)
		rc = zb_bring(&j->in, j->new_ext, j->stage.dir, &how,
			      &j->out->warnings, j->err);
	if (rc)
		return zb_wrap(j->err, "%s, from where it was installed",
			       j->req->name);
	if (strcmp(j->in.manifest.name, j->req->name) != 0)
		return zb_fail(j->err, ZB_EPOLICY,
			       "%s has the extension \"%s\" now, not \"%s\"",
			       j->lock.source, j->in.manifest.name,
			       j->req->name);
	j->out->commit = zb_strdup(j->in.source.commit);
	return 0;
}

/* The box of the stage: the new manifest and lock, the scope that it has. */
static int fill_box(struct job *j)
{
	static const char *const kept[] = {"scope.json", "granted.json",
					   "meant.json", "program"};
	int rc = zb_put(j->new_box, "manifest.json", &j->in.shipped, 0600,
			j->err);

	for (size_t i = 0; !rc && i < ZB_ARRAY_LEN(kept); i++) {
		struct zb_buf b = {0};
		bool found;

		rc = zb_slurp(j->box, kept[i], &b, &found, j->err);
		if (!rc && found)
			rc = zb_put(j->new_box, kept[i], &b, 0600, j->err);
		zb_buf_done(&b);
	}
	if (!rc)
		rc = zb_write_lock(&j->in, j->new_ext, j->new_box,
				   j->lock.policy, &j->now, j->err);
	j->in.manifest.enabled = j->enabled;
	return rc ? rc : zb_put_wrapped(&j->in.manifest, j->new_ext, j->err);
}

static int compare(struct job *j)
{
	zb_auto(free) char *manifest = zb_strf("%s/manifest.json", j->new_box);
	const struct zb_code_side was = {&j->there, j->ext, j->manifest};
	const struct zb_code_side now = {&j->now, j->new_ext, manifest};

	j->out->unchanged =
		!j->out->tampered && !strcmp(j->now.tree, j->there.tree);
	return manifest ? zb_code_diff(&j->out->diff, &was, &now, j->err)
			: no_memory(j);
}

/* ---- would it start, and what does it ask for ---------------------------- */

/* @policy: as if only that were granted; NULL: beyond what is. */
static int requested(struct job *j, const char *policy, struct zb_strv *out)
{
	struct zb_prepared p = {0};
	const struct zb_target t = {.name = j->req->name,
				    .policy = policy,
				    .held = true,
				    .still = true};
	int rc = zb_prepare(&p, &j->own, &t, j->err);

	if (!rc) {
		*out = p.requested;
		p.requested = (struct zb_strv){0};
	}
	zb_prepared_done(&p);
	return rc;
}

/* What it asked for before: the same question, with its old permissions.json
 * for a moment. If that has no answer, everything is new. */
static int requested_before(struct job *j, const char *policy,
			    struct zb_strv *out)
{
	zb_auto(free) char *now = zb_strf("%s/permissions.json", j->new_ext);
	zb_auto(free) char *aside = zb_strf("%s/permissions", j->stage.dir);
	zb_auto(free) char *lock = zb_strf("%s/lock.json", j->new_box);
	zb_auto(free) char *lock_aside = zb_strf("%s/lock", j->stage.dir);
	struct zb_error ignored = {0}, *err = j->err;
	struct zb_buf old = {0};
	struct zb_lock l = {0};
	bool found, had;
	int rc;

	if (!now || !aside || !lock || !lock_aside)
		return no_memory(j);
	had = !rename(now, aside);
	if (rename(lock, lock_aside))
		return zb_fail_sys(err, errno, "rename %s", lock);
	rc = zb_slurp(j->ext, "permissions.json", &old, &found, err);
	if (!rc && found)
		rc = zb_put(j->new_ext, "permissions.json", &old, 0600, err);
	if (!rc)
		rc = zb_write_lock(&j->in, j->new_ext, j->new_box, NULL, &l,
				   err);
	j->err = &ignored;
	if (!rc && requested(j, policy, out))
		zb_strv_done(out);
	j->err = err;
	zb_lock_done(&l);
	zb_buf_done(&old);
	unlink(now);
	if (!rc && had && rename(aside, now))
		rc = zb_fail_sys(err, errno, "rename %s", now);
	if (!rc && rename(lock_aside, lock))
		rc = zb_fail_sys(err, errno, "rename %s", lock);
	return rc;
}

static const char *hash_of(const struct zb_lock *l, const char *path)
{
	for (size_t i = 0; i < l->n_files; i++)
		if (!strcmp(l->files[i].path, path))
			return l->files[i].sha256;
	return "";
}

static bool asks_the_same(const struct job *j)
{
	return !strcmp(hash_of(&j->there, "permissions.json"),
		       hash_of(&j->now, "permissions.json"));
}

/* Those of @a that are not in @b. */
static int subtract(struct job *j, const struct zb_strv *a,
		    const struct zb_strv *b, struct zb_strv *out)
{
	for (size_t i = 0; i < a->n; i++)
		if (!zb_strv_has(b, a->v[i]) && zb_strv_add(out, a->v[i]))
			return no_memory(j);
	return 0;
}

/* Does the user's own scope grant @wish, "KEY VALUE"? */
static bool is_own_grant(struct job *j, const char *wish)
{
	zb_auto(free) char *key = zb_strndup(wish, strcspn(wish, " "));
	const char *value = strchr(wish, ' ');
	struct zb_error ignored = {0};
	struct zb_buf without = {0};
	bool granted = false;

	if (key && value &&
	    zb_scope_edit(&without, "scope.json", zb_buf_str(&j->scope),
			  j->scope.len, key, value + 1, true, false, &granted,
			  &ignored))
		granted = false;
	zb_buf_done(&without);
	return granted;
}

/* What was granted because it asked, and is not asked for any more: it stays,
 * and that is told. */
static int find_kept(struct job *j)
{
	struct zb_strv asks = {0}, asked = {0}, gone = {0};
	struct zb_error ignored = {0}, *err = j->err;
	bool answered;
	int rc = 0;

	j->err = &ignored;
	answered = !requested(j, "strict", &asks);
	j->err = err;
	if (answered)
		rc = requested_before(j, "strict", &asked);
	if (!rc && answered)
		rc = subtract(j, &asked, &asks, &gone);
	for (size_t i = 0; !rc && i < gone.n; i++)
		if (!zb_strv_has(&j->out->no_longer, gone.v[i]) &&
		    is_own_grant(j, gone.v[i]) &&
		    zb_strv_add(&j->out->kept, gone.v[i]))
			rc = no_memory(j);
	zb_strv_done(&asks);
	zb_strv_done(&asked);
	zb_strv_done(&gone);
	return rc;
}

/* The same resolution that the next start does. */
static int try_out(struct job *j)
{
	struct zb_strv asks = {0}, asked = {0}, more = {0};
	int rc;

	if (!j->in.manifest.exec)
		return 0;
	rc = requested(j, NULL, &asks);
	if (!rc && asks_the_same(j))
		rc = zb_strv_copy(&asked, &asks) ? no_memory(j) : 0;
	else if (!rc)
		rc = requested_before(j, NULL, &asked);
	if (!rc)
		rc = subtract(j, &asks, &asked, &more);
	if (!rc)
		rc = subtract(j, &asked, &asks, &j->out->no_longer);
	if (!rc && !asks_the_same(j))
		rc = find_kept(j);
	if (!rc && more.n)
		rc = zb_wishes_judge(&j->out->wishes, &j->granted, &j->own,
				     j->req->name, &j->scope, &more, false,
				     true, j->err);
	zb_strv_done(&asks);
	zb_strv_done(&asked);
	zb_strv_done(&more);
	return rc;
}

/* ---- asking and swapping ------------------------------------------------- */

static int ask(struct job *j, bool *grant)
{
	const struct zb_update_request *r = j->req;

	*grant = false;
	if (r->show)
		r->show(r->ctx, j->out);
	if (r->yes)
		return 0;
	if (!r->approve)
		return zb_fail(j->err, ZB_EUSAGE,
			       "update %s: no terminal to ask on; say --yes to "
			       "take the new code",
			       r->name);
	if (r->approve(r->ctx, j->out, grant))
		return check_stop(j);
	return check_stop(j) ? j->err->code
			     : zb_fail(j->err, ZB_EPOLICY, "%s stays as it is",
				       r->name);
}

static int grant_it(struct job *j)
{
	struct zb_wishes *w = &j->out->wishes;
	struct zb_strv given = {0};
	int rc = 0;

	for (size_t i = 0; !rc && i < w->n; i++)
		if (!w->v[i].why_not &&
		    zb_strv_addf(&given, "%s %s", w->v[i].key, w->v[i].value))
			rc = no_memory(j);
	if (!rc)
		rc = zb_grant_keep(&j->own, j->req->name, &j->granted, &given,
				   false, NULL, j->err);
	for (size_t i = 0; !rc && i < w->n; i++)
		w->v[i].granted = !w->v[i].why_not;
	zb_strv_done(&given);
	return rc;
}

/* Is @file of the box still what was compared? */
static int same_still(struct job *j, const char *file,
		      const struct zb_buf *then)
{
	struct zb_buf b = {0};
	bool found;
	int rc = zb_slurp_large(j->box, file, &b, &found, j->err);

	if (!rc && (b.len != then->len ||
		    memcmp(zb_buf_str(&b), zb_buf_str(then), b.len) != 0))
		rc = zb_fail(j->err, ZB_EPOLICY,
			     "\"%s\" was changed by somebody else meanwhile; "
			     "say it again",
			     j->req->name);
	zb_buf_done(&b);
	return rc;
}

static int swap(struct job *j)
{
	zb_auto(fd) int fd = -1;
	int rc = zb_store_lock(j->store, j->req->name, true, LOCK_WAIT_MS, &fd,
			       j->err);

	if (!rc)
		rc = zb_undo_marked(j->store, j->req->name, j->err);
	if (!rc)
		rc = same_still(j, "lock.json", &j->lock_text);
	if (!rc)
		rc = same_still(j, "scope.json", &j->scope);
	if (!rc)
		rc = check_stop(j);
	return rc ? rc
		  : zb_swap(j->store, &j->stage, j->req->name, j->new_ext,
			    j->new_box, j->err);
}

static const struct {
	int (*take)(struct job *j);
} steps[] = {{find},	 {read_old}, {make_stage}, {fetch},
	     {fill_box}, {compare},  {check_stop}};

int zb_update(struct zb_updated *out, const struct zb_store *store,
	      const struct zb_update_request *req, struct zb_error *err)
{
	struct zb_error local = {0};
	struct job j = {.store = store,
			.req = req,
			.out = out,
			.err = err ? err : &local,
			.stage.hold = -1};
	mode_t mask = umask(0);
	bool grant;
	int rc = 0;

	umask(mask & 077);
	*out = (struct zb_updated){0};
	zb_recover(store);
	for (size_t i = 0; !rc && i < ZB_ARRAY_LEN(steps); i++)
		rc = steps[i].take(&j);
	if (!rc && !out->unchanged) {
		rc = try_out(&j);
		if (!rc)
			rc = ask(&j, &grant);
		if (!rc && grant)
			rc = grant_it(&j);
		if (!rc)
			rc = swap(&j);
	}
	zb_staging_end(&j.stage, store, NULL);
	job_done(&j);
	if (rc)
		zb_updated_done(out);
	umask(mask);
	return rc;
}
