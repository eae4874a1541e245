/* install.c - the staged install and its undoing; see install.h for the order
 * of steps that makes a kill harmless. */
#include "config.h"

#include "chain.h"
#include "cleanup.h"
#include "discover.h"
#include "fdutil.h"
#include "install.h"
#include "json_edit.h"
#include "json_scan.h"
#include "lock.h"
#include "prepare.h"
#include "scope.h"
#include "source.h"
#include "text.h"
#include "tree_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define FILE_MAX      ((size_t)1 << 20)
#define CLONE_SECONDS 600u
#define LOCK_WAIT_MS  10000

/* One install under way. Paths are heap; @hold locks the stage. */
struct job {
	const struct zb_store *store;
	const struct zb_install_request *req;
	struct zb_source source;
	char *stage, *stage_ext, *stage_box;
	char *box, *ext; /* where they go */
	int hold, name_lock;
	struct zb_manifest manifest;
	struct zb_buf shipped, permissions, scope;
	char *policy; /* what the scope extends */
	bool adopted, box_placed, ext_placed;
};

void zb_installed_done(struct zb_installed *i)
{
	free(i->name);
	free(i->dir);
	free(i->policy);
	free(i->commit);
	zb_strv_done(&i->warnings);
	zb_strv_done(&i->requested);
	*i = (struct zb_installed){0};
}

static void job_done(struct job *j)
{
	if (j->stage)
		zb_remove_tree(j->stage, NULL);
	if (j->hold >= 0)
		close(j->hold);
	if (j->name_lock >= 0)
		close(j->name_lock);
	zb_source_done(&j->source);
	zb_manifest_done(&j->manifest);
	zb_buf_done(&j->shipped);
	zb_buf_done(&j->permissions);
	zb_buf_done(&j->scope);
	free(j->stage);
	free(j->stage_ext);
	free(j->stage_box);
	free(j->box);
	free(j->ext);
	free(j->policy);
}

/* A file of a small known size below @dir; absent is empty. */
static int slurp(const char *dir, const char *name, struct zb_buf *out,
		 bool *found, struct zb_error *err)
{
	zb_auto(free) char *path = zb_strf("%s/%s", dir, name);
	struct zb_error e = {0};

	*found = false;
	if (!path)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	if (zb_read_file(path, FILE_MAX, out, &e)) {
		if (e.sys == ENOENT)
			return 0;
		if (err)
			*err = e;
		return e.code;
	}
	*found = true;
	return 0;
}

static int make_stage(struct job *j, struct zb_error *err)
{
	zb_auto(free) char *root = zb_strf("%s/.stage-XXXXXX", j->store->boxes);
	zb_auto(free) char *lock = NULL;

	if (zb_make_dirs(j->store->boxes, 0700, err) ||
	    zb_make_dirs(j->store->extensions, 0755, err))
		return err->code;
	if (!root || !mkdtemp(root))
		return zb_fail_sys(err, errno, "make a stage below %s",
				   j->store->boxes);
	j->stage = zb_steal(&root);
	lock = zb_strf("%s/.hold", j->stage);
	j->stage_ext = zb_strf("%s/ext", j->stage);
	j->stage_box = zb_strf("%s/box", j->stage);
	if (!lock || !j->stage_ext || !j->stage_box)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	if (zb_lock_file(lock, true, 0, &j->hold, err))
		return err->code;
	if (mkdir(j->stage_ext, 0755) || mkdir(j->stage_box, 0700))
		return zb_fail_sys(err, errno, "mkdir in %s", j->stage);
	return 0;
}

/* Bring the files into the stage. */
static int fetch(struct job *j, struct zb_installed *out, struct zb_error *err)
{
	struct zb_tree_copy c = {
		.stop = j->req->stop,
		.progress = j->req->progress,
		.ctx = j->req->ctx,
	};
	zb_auto(free) char *clone = zb_strf("%s/clone", j->stage);
	const char *from = j->source.dir;
	int rc;

	if (!clone)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	if (j->source.kind == ZB_SOURCE_GIT) {
		rc = zb_source_clone(&j->source, clone, CLONE_SECONDS,
				     j->req->stop, err);
		if (rc)
			return rc;
		from = clone;
	}
	rc = zb_tree_copy(from, j->stage_ext, &c, err);
	zb_strv_copy(&out->warnings, &c.warnings);
	if (!rc && c.git_left_out && j->source.kind == ZB_SOURCE_PATH)
		zb_strv_addf(&out->warnings, ".git left out%s%s%s",
			     j->source.commit ? " (source commit " : "",
			     j->source.commit ? j->source.commit : "",
			     j->source.commit ? " recorded)" : "");
	if (!rc)
		zb_source_submodules(j->stage_ext, &out->warnings);
	zb_strv_done(&c.warnings);
	return rc;
}

static bool has_theme(const char *dir)
{
	static const char *const names[] = {"theme.json", "themes/theme.json"};
	struct stat st;

	for (size_t i = 0; i < ZB_ARRAY_LEN(names); i++) {
		zb_auto(free) char *path = zb_strf("%s/%s", dir, names[i]);

		if (path && !lstat(path, &st) && S_ISREG(st.st_mode))
			return true;
	}
	return false;
}

/* The manifest as shipped: its bytes and what they mean. */
static int read_manifest(struct job *j, struct zb_error *err)
{
	bool found;
	int rc =
		slurp(j->stage_ext, "extension.json", &j->shipped, &found, err);

	if (rc)
		return rc;
	if (!found)
		return zb_fail(err, ZB_EUSAGE,
			       "%s: source lacks extension.json",
			       j->source.given);
	rc = zb_manifest_parse(&j->manifest, zb_buf_str(&j->shipped),
			       j->shipped.len, has_theme(j->stage_ext), err);
	if (rc)
		return zb_wrap(err, "extension.json"), rc;
	j->box = zb_store_box(j->store, j->manifest.name, "");
	j->ext = zb_strf("%s/%s", j->store->extensions, j->manifest.name);
	return j->box && j->ext ? 0 : zb_fail(err, ZB_ELIMIT, "out of memory");
}

/* NAME must be free; a box that was left needs a word of the user. */
static int check_free(struct job *j, struct zb_error *err)
{
	zb_auto(free) char *lock =
		zb_store_box(j->store, j->manifest.name, "lock.json");
	zb_auto(free) char *policy = NULL;
	struct zb_lock l = {0};
	struct stat st;

	if (!lstat(j->ext, &st)) {
		policy = zb_box_policy(j->store, j->manifest.name);
		if (lock && !zb_lock_read(&l, lock, NULL))
			zb_fail(err, ZB_EPOLICY,
				"\"%s\" is installed already, from %s under "
				"policy %s; remove it first: zotbox ext remove "
				"%s",
				j->manifest.name, l.source, policy,
				j->manifest.name);
		else
			zb_fail(err, ZB_EPOLICY,
				"\"%s\" is installed already in %s, unconfined; "
				"remove it first: zotbox ext remove %s",
				j->manifest.name, j->ext, j->manifest.name);
		zb_lock_done(&l);
		return ZB_EPOLICY;
	}
	if (lstat(j->box, &st))
		return 0;
	if (j->req->fresh)
		return zb_remove_tree(j->box, err);
	if (j->req->adopt) {
		j->adopted = true;
		return 0;
	}
	return zb_fail(err, ZB_EPOLICY,
		       "an earlier \"%s\" left its scope, home and data in %s; "
		       "say --fresh to delete them or --adopt to keep them",
		       j->manifest.name, j->box);
}

/* --policy as `extends` has it: a preset's name or a real path. */
static int policy_word(struct job *j, struct zb_error *err)
{
	const char *given = j->req->policy ? j->req->policy : "strict";

	if (zb_is_preset(given)) {
		j->policy = zb_strdup(given);
		return j->policy ? 0 : zb_fail(err, ZB_ELIMIT, "out of memory");
	}
	j->policy = realpath(given, NULL);
	if (!j->policy)
		return zb_fail(err, ZB_EUSAGE,
			       "--policy %s: no preset of that name (strict, "
			       "standard, observe) and no such file",
			       given);
	return 0;
}

/* @text with its "extends" set to @policy. */
static int set_extends(struct zb_buf *out, const char *text, size_t len,
		       const char *policy, struct zb_error *err)
{
	struct zb_buf value = {0};
	int rc;

	zb_json_quote(&value, policy, strlen(policy));
	rc = zb_json_set(out, text, len, "extends", zb_buf_str(&value), err);
	zb_buf_done(&value);
	return rc;
}

/* Lay @text over the policy: what scope.json will be. */
static int scope_from(struct job *j, const char *file, const char *text,
		      size_t len, bool own_extends, struct zb_error *err)
{
	struct zb_scope s = {0};
	int rc = zb_scope_parse(&s, file, text, len, NULL, err);
	bool differs;

	if (rc)
		return rc;
	differs = s.extends && strcmp(s.extends, j->policy);
	if (own_extends && differs && j->req->policy) {
		rc = zb_fail(err, ZB_EUSAGE,
			     "%s extends \"%s\" and --policy says \"%s\"; say "
			     "one of them",
			     file, s.extends, j->req->policy);
	} else if (own_extends && differs) {
		free(j->policy);
		j->policy = zb_steal(&s.extends);
	}
	zb_scope_done(&s);
	return rc ? rc : set_extends(&j->scope, text, len, j->policy, err);
}

/* Which scope.json: the file given, else what is asked for with --yes, else
 * the bare preset. An adopted one stays as it is. */
static int make_scope(struct job *j, struct zb_error *err)
{
	static const char bare[] = "{\n  \"zotbox\": 1\n}\n";
	struct zb_buf file = {0};
	bool asked;
	int rc = policy_word(j, err);

	if (!rc)
		rc = slurp(j->stage_ext, "permissions.json", &j->permissions,
			   &asked, err);
	if (rc)
		return rc;
	if (j->req->scope_file) {
		rc = zb_read_file(j->req->scope_file, FILE_MAX, &file, err);
		if (!rc)
			rc = scope_from(j, j->req->scope_file,
					zb_buf_str(&file), file.len, true, err);
		else
			rc = err->code = ZB_EUSAGE;
		zb_buf_done(&file);
		return rc;
	}
	if (asked && j->req->yes)
		return scope_from(j, "permissions.json",
				  zb_buf_str(&j->permissions),
				  j->permissions.len, false, err);
	return scope_from(j, "scope.json", bare, sizeof(bare) - 1, false, err);
}

static int put(const char *dir, const char *name, const struct zb_buf *b,
	       unsigned mode, struct zb_error *err)
{
	zb_auto(free) char *path = zb_strf("%s/%s", dir, name);

	if (!path)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	return zb_write_file_atomic(path, zb_buf_str(b), b->len, mode, err);
}

static char *now_rfc3339(void)
{
	struct timespec t;
	struct zb_buf b = {0};

	clock_gettime(CLOCK_REALTIME, &t);
	zb_time_rfc3339((int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000, &b);
	return zb_buf_steal(&b);
}

static int write_lock(struct job *j, struct zb_error *err)
{
	zb_auto(free) char *path = zb_strf("%s/lock.json", j->stage_box);
	zb_auto(free) char *shipped = zb_strf("%s/manifest.json", j->stage_box);
	struct zb_lock l = {0};
	int rc;

	if (!path || !shipped)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	rc = zb_lock_make(&l, j->stage_ext, shipped, err);
	if (rc)
		return rc;
	l.source = zb_strdup(j->source.dir ? j->source.dir : j->source.given);
	l.commit = zb_strdup(j->source.commit);
	l.policy = zb_strdup(j->policy);
	l.installed = now_rfc3339();
	rc = zb_lock_write(&l, path, err);
	zb_lock_done(&l);
	return rc;
}

static int wrapped_text(const struct zb_manifest *m, struct zb_buf *out,
			struct zb_error *err)
{
	zb_auto(free) char *self = zb_own_program();

	if (!self)
		return zb_fail(err, ZB_ESYS,
			       "the path of this program cannot be found");
	return zb_manifest_wrap(out, m, self)
		       ? zb_fail(err, ZB_ELIMIT, "out of memory")
		       : 0;
}

/* Everything the box holds, and the wrapped manifest, in the stage. */
static int fill_stage(struct job *j, struct zb_error *err)
{
	struct zb_buf wrapped = {0}, mark = {0};
	zb_auto(free) char *data = zb_strf("%s/data", j->stage_box);
	zb_auto(free) char *home = zb_strf("%s/home", j->stage_box);
	int rc;

	if (!data || !home)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	rc = put(j->stage_box, "manifest.json", &j->shipped, 0600, err);
	if (!rc)
		rc = put(j->stage_box, "scope.json", &j->scope, 0600, err);
	if (!rc)
		rc = write_lock(j, err);
	if (!rc && (mkdir(data, 0700) || mkdir(home, 0700)))
		rc = zb_fail_sys(err, errno, "mkdir in %s", j->stage_box);
	if (!rc)
		rc = put(j->stage_box, "staged", &mark, 0600, err);
	if (!rc && j->manifest.exec)
		rc = wrapped_text(&j->manifest, &wrapped, err);
	if (!rc && j->manifest.exec)
		rc = put(j->stage_ext, "extension.json", &wrapped, 0644, err);
	zb_buf_done(&wrapped);
	return rc;
}

/* Keep an adopted box; only what describes the new files is replaced. */
static int adopt_box(struct job *j, struct zb_error *err)
{
	static const char *const names[] = {"manifest.json", "lock.json"};
	int rc = 0;

	for (size_t i = 0; !rc && i < ZB_ARRAY_LEN(names); i++) {
		struct zb_buf b = {0};
		bool found;

		rc = slurp(j->stage_box, names[i], &b, &found, err);
		if (!rc)
			rc = put(j->box, names[i], &b, 0600, err);
		zb_buf_done(&b);
	}
	return rc;
}

static int place(struct job *j, struct zb_error *err)
{
	zb_auto(free) char *mark = zb_strf("%s/staged", j->box);

	if (j->adopted) {
		int rc = adopt_box(j, err);

		if (rc)
			return rc;
	} else if (rename(j->stage_box, j->box)) {
		return zb_fail_sys(err, errno, "rename to %s", j->box);
	} else {
		j->box_placed = true;
	}
	if (rename(j->stage_ext, j->ext))
		return zb_fail_sys(err, errno, "rename to %s", j->ext);
	j->ext_placed = true;
	if (mark)
		unlink(mark);
	return 0;
}

static void take_back(struct job *j)
{
	if (j->ext_placed)
		zb_remove_tree(j->ext, NULL);
	if (j->box_placed)
		zb_remove_tree(j->box, NULL);
}

/* Would it start? The same resolution that a start does, of what is now in
 * place: malformed, too broad or unenforceable scopes end the install. */
static int rehearse(struct job *j, struct zb_installed *out,
		    struct zb_error *err)
{
	struct zb_prepared p = {0};
	struct zb_target t = {
		.name = j->manifest.name,
		.mean_it = j->req->mean_it,
	};
	int rc;

	if (!j->manifest.exec)
		return 0;
	/* prepare takes the lock of the NAME shared. */
	close(j->name_lock);
	j->name_lock = -1;
	rc = zb_prepare(&p, j->store, &t, err);
	if (rc)
		return rc;
	zb_strv_copy(&out->requested, &p.requested);
	zb_strv_copy(&out->warnings, &p.plan.notices);
	zb_prepared_done(&p);
	return 0;
}

static int steps(struct job *j, struct zb_installed *out, struct zb_error *err)
{
	int rc = zb_source_parse(&j->source, j->req->source, j->req->allow_http,
				 err);

	if (!rc)
		rc = make_stage(j, err);
	if (!rc)
		rc = fetch(j, out, err);
	if (!rc)
		rc = read_manifest(j, err);
	if (!rc)
		rc = zb_store_lock(j->store, j->manifest.name, true,
				   LOCK_WAIT_MS, &j->name_lock, err);
	if (!rc)
		rc = check_free(j, err);
	if (!rc)
		rc = make_scope(j, err);
	if (!rc)
		rc = fill_stage(j, err);
	if (!rc)
		rc = place(j, err);
	if (!rc)
		rc = rehearse(j, out, err);
	return rc;
}

int zb_install(struct zb_installed *out, const struct zb_store *store,
	       const struct zb_install_request *req, struct zb_error *err)
{
	struct job j = {
		.store = store, .req = req, .hold = -1, .name_lock = -1};
	int rc;

	*out = (struct zb_installed){0};
	zb_install_recover(store);
	rc = steps(&j, out, err);
	if (rc) {
		take_back(&j);
		zb_installed_done(out);
	} else {
		out->name = zb_strdup(j.manifest.name);
		out->dir = zb_strdup(j.ext);
		out->policy = zb_box_policy(store, j.manifest.name);
		out->commit = zb_strdup(j.source.commit);
		out->theme_only = !j.manifest.exec;
	}
	job_done(&j);
	return rc;
}

/* A stage that can be locked is nobody's any more. */
static void drop_stage(const char *path)
{
	zb_auto(free) char *lock = zb_strf("%s/.hold", path);
	zb_auto(fd) int fd = -1;

	if (lock && !access(lock, F_OK) &&
	    zb_lock_file(lock, true, 0, &fd, NULL))
		return;
	zb_remove_tree(path, NULL);
}

static void finish_box(const struct zb_store *store, const char *name)
{
	zb_auto(free) char *mark = zb_store_box(store, name, "staged");
	zb_auto(free) char *box = zb_store_box(store, name, "");
	zb_auto(free) char *ext = zb_strf("%s/%s", store->extensions, name);
	zb_auto(fd) int fd = -1;

	if (!mark || !box || !ext || access(mark, F_OK) ||
	    zb_store_lock(store, name, true, 0, &fd, NULL))
		return;
	if (access(ext, F_OK))
		zb_remove_tree(box, NULL);
	else
		unlink(mark);
}

void zb_install_recover(const struct zb_store *store)
{
	DIR *d = opendir(store->boxes);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		zb_auto(free) char *path =
			zb_strf("%s/%s", store->boxes, e->d_name);

		if (path && !strncmp(e->d_name, ".stage-", 7))
			drop_stage(path);
		else if (zb_name_valid(e->d_name))
			finish_box(store, e->d_name);
	}
	if (d)
		closedir(d);
}

/* Out of sight by one rename, then deleted at leisure. */
static int discard(const struct zb_store *store, const char *path,
		   struct zb_error *err)
{
	zb_auto(free) char *trash = zb_strf("%s/.stage-XXXXXX", store->boxes);
	zb_auto(free) char *to = NULL;

	if (zb_make_dirs(store->boxes, 0700, err))
		return err->code;
	if (!trash || !mkdtemp(trash))
		return zb_fail_sys(err, errno, "make a stage below %s",
				   store->boxes);
	to = zb_strf("%s/old", trash);
	if (!to || rename(path, to)) {
		int saved = errno;

		rmdir(trash);
		if (saved == ENOENT)
			return 0;
		return zb_fail_sys(err, saved, "remove %s", path);
	}
	return zb_remove_tree(trash, err);
}

int zb_uninstall(const struct zb_store *store, const char *dir,
		 const char *name, struct zb_error *err)
{
	zb_auto(free) char *box = name ? zb_store_box(store, name, "") : NULL;
	int rc = discard(store, dir, err);

	if (!rc && box)
		rc = discard(store, box, err);
	return rc;
}

static int shipped_manifest(const struct zb_store *store, const char *name,
			    struct zb_buf *text, struct zb_manifest *m,
			    struct zb_error *err)
{
	zb_auto(free) char *path = zb_store_box(store, name, "manifest.json");

	if (!path)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	if (zb_read_file(path, FILE_MAX, text, err))
		return err->code;
	return zb_manifest_parse(m, zb_buf_str(text), text->len, true, err);
}

static int put_installed(const struct zb_store *store, const char *name,
			 const struct zb_buf *b, struct zb_error *err)
{
	zb_auto(free) char *dir = zb_strf("%s/%s", store->extensions, name);

	if (!dir)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	return put(dir, "extension.json", b, 0644, err);
}

int zb_rewrap(const struct zb_store *store, const char *name, bool enabled,
	      struct zb_error *err)
{
	struct zb_buf text = {0}, out = {0};
	struct zb_manifest m = {0};
	int rc = shipped_manifest(store, name, &text, &m, err);

	if (!rc) {
		m.enabled = enabled;
		rc = wrapped_text(&m, &out, err);
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
		rc = zb_json_set(&out, zb_buf_str(&text), text.len, "enabled",
				 enabled ? "true" : "false", err);
	else if (!rc)
		zb_buf_add(&out, zb_buf_str(&text), text.len);
	if (!rc)
		rc = put_installed(store, name, &out, err);
	zb_manifest_done(&m);
	zb_buf_done(&text);
	zb_buf_done(&out);
	return rc;
}
