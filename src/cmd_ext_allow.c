/* cmd_ext_allow.c - zotbox ext allow and ext revoke: edit scope.json, after the
 * whole chain was resolved with the edit in it. Running extensions keep their
 * plan; the grant counts from the next start. */
#include "cleanup.h"
#include "cmd.h"
#include "discover.h"
#include "prepare.h"
#include "scope.h"

#include <string.h>
#include <unistd.h>

enum {
	OPT_MEAN_IT
};

#define LOCK_WAIT_MS 10000
#define SCOPE_MAX    ((size_t)1 << 20)

/* One edit under way. */
struct edit {
	const struct zb_store *store;
	const struct zb_args *args;
	const char *name;
	bool remove, mean_it, changed;
	char *path, *trial;
	struct zb_buf before, after;
};

static int read_scope(const struct edit *e, struct zb_buf *out,
		      struct zb_error *err)
{
	if (zb_read_file(e->path, SCOPE_MAX, out, err))
		return zb_fail(err, ZB_EPOLICY,
			       "%s has no scope (%s): it was not installed by "
			       "zotbox",
			       e->name, e->path);
	return 0;
}

/* Apply every VALUE of the command line, one after the other. */
static int apply(struct edit *e, struct zb_error *err)
{
	const char *key = e->args->arg[1];
	struct zb_buf text = {0};
	int rc = zb_buf_add(&text, zb_buf_str(&e->before), e->before.len);

	for (size_t i = 2; !rc && i < e->args->n_args; i++) {
		struct zb_buf next = {0};
		bool changed = false;

		rc = zb_scope_edit(&next, e->path, zb_buf_str(&text), text.len,
				   key, e->args->arg[i], e->remove, e->mean_it,
				   &changed, err);
		e->changed = e->changed || changed;
		zb_buf_done(&text);
		text = next;
	}
	if (!rc)
		e->after = text;
	else
		zb_buf_done(&text);
	return rc;
}

/* Resolve the plan with the edited scope, as a start would. */
static int rehearse(const struct edit *e, struct zb_error *err)
{
	struct zb_prepared p = {0};
	struct zb_target t = {
		.name = e->name,
		.scope = e->trial,
		.mean_it = e->mean_it,
	};
	int rc = zb_write_file_atomic(e->trial, e->after.data, e->after.len,
				      0600, err);

	if (!rc)
		rc = zb_prepare(&p, e->store, &t, err);
	if (!rc)
		zb_prepared_done(&p);
	unlink(e->trial);
	return rc;
}

/* Write, unless somebody else wrote meanwhile. */
static int commit(const struct edit *e, struct zb_error *err)
{
	struct zb_buf now = {0};
	int fd = -1;
	int rc = zb_store_lock(e->store, e->name, true, LOCK_WAIT_MS, &fd, err);

	if (!rc)
		rc = read_scope(e, &now, err);
	if (!rc && (now.len != e->before.len ||
		    memcmp(now.data, zb_buf_str(&e->before), now.len)))
		rc = zb_fail(err, ZB_ESYS,
			     "%s was changed meanwhile; nothing was written, "
			     "try again",
			     e->path);
	if (!rc)
		rc = zb_write_file_atomic(e->path, e->after.data, e->after.len,
					  0600, err);
	zb_buf_done(&now);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int perform(struct edit *e, struct zb_error *err)
{
	int rc = read_scope(e, &e->before, err);

	if (!rc)
		rc = apply(e, err);
	if (rc || !e->changed)
		return rc;
	rc = rehearse(e, err);
	return rc ? rc : commit(e, err);
}

static void report(const struct edit *e)
{
	if (!e->changed)
		zb_cmd_say("%s: nothing to change", e->path);
	else
		zb_cmd_say("%s: %s %s; it counts from the next start of %s",
			   e->path, e->remove ? "revoked" : "allowed",
			   e->args->arg[1], e->name);
}

static int edit(const struct zb_args *a, bool remove)
{
	struct zb_error err = {0};
	struct zb_store store = {0};
	struct zb_found_list list = {0};
	const struct zb_found *f = NULL;
	struct edit e = {
		.store = &store,
		.args = a,
		.remove = remove,
		.mean_it = !remove && a->opt[OPT_MEAN_IT],
	};

	if (!zb_store_open(&store, &err) &&
	    !zb_discover(&list, &store, NULL, &err) &&
	    !zb_discover_installed(&list, a->arg[0], &f, &err)) {
		e.name = f->name;
		e.path = zb_store_box(&store, f->name, "scope.json");
		e.trial = zb_store_box(&store, f->name, ".scope-trial.json");
		if (!e.path || !e.trial)
			zb_fail(&err, ZB_ELIMIT, "out of memory");
		else if (!perform(&e, &err))
			report(&e);
	}
	zb_buf_done(&e.before);
	zb_buf_done(&e.after);
	free(e.path);
	free(e.trial);
	zb_found_list_done(&list);
	zb_store_done(&store);
	return err.code ? zb_cmd_fail(&err) : 0;
}

int zb_cmd_ext_allow(const struct zb_args *a)
{
	return edit(a, false);
}

int zb_cmd_ext_revoke(const struct zb_args *a)
{
	return edit(a, true);
}
