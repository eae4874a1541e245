/* cmd_ext_allow.c - zotbox ext allow and ext revoke: edit scope.json, after the
 * whole chain was resolved with the edit in it. Running extensions keep their
 * plan; the grant counts from the next start. */
#include "cleanup.h"
#include "cmd.h"
#include "discover.h"
#include "grant.h"
#include "scope.h"
#include "staging.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	OPT_MEAN_IT
};

#define LOCK_WAIT_MS 10000
#define SCOPE_MAX    ((size_t)1 << 20)

/* One edit under way, under the lock of the NAME. */
struct edit {
	const struct zb_store *store;
	const struct zb_args *args;
	const char *name;
	bool remove, mean_it, changed;
	char *path;
	struct zb_buf text; /* of scope.json, then with the edits in it */
};

static int read_scope(struct edit *e, struct zb_error *err)
{
	struct zb_error why = {0};

	if (!zb_read_file(e->path, SCOPE_MAX, &e->text, &why))
		return 0;
	return zb_fail(err, ZB_EPOLICY,
		       "%s has no scope (%s): it was not installed by zotbox",
		       e->name, why.msg);
}

/* One VALUE, as it is spelled. */
static int apply_one(struct edit *e, const char *value, struct zb_error *err)
{
	struct zb_buf next = {0};
	bool changed = false;
	int rc = zb_scope_edit(&next, e->path, zb_buf_str(&e->text),
			       e->text.len, e->args->arg[1], value, e->remove,
			       e->mean_it, &changed, err);

	e->changed = e->changed || changed;
	if (rc) {
		zb_buf_done(&next);
	} else {
		zb_buf_done(&e->text);
		e->text = next;
	}
	return rc;
}

/* A path below HOME has two spellings, and a shell turns one into the other:
 * what is taken back as "~/x" must not stay granted as "/home/u/x". Appends
 * the other spelling of @value to @out, or nothing. */
static int other_spelling(const struct edit *e, const char *value,
			  struct zb_buf *out)
{
	const char *home = getenv("HOME");
	size_t n = home ? strlen(home) : 0;

	while (n > 1 && home[n - 1] == '/')
		n--;
	if (n < 2 || strncmp(e->args->arg[1], "fs.", 3))
		return 0;
	if (value[0] == '~' && (!value[1] || value[1] == '/'))
		return zb_buf_add(out, home, n) || zb_buf_adds(out, value + 1);
	if (!strncmp(value, home, n) && (!value[n] || value[n] == '/'))
		return zb_buf_addf(out, "~%s", value + n);
	return 0;
}

/* Apply every VALUE of the command line, one after the other. */
static int apply(struct edit *e, struct zb_error *err)
{
	int rc = 0;

	for (size_t i = 2; !rc && i < e->args->n_args; i++) {
		struct zb_buf other = {0};

		rc = apply_one(e, e->args->arg[i], err);
		if (!rc && e->remove) {
			if (other_spelling(e, e->args->arg[i], &other))
				rc = zb_fail(err, ZB_ELIMIT, "out of memory");
			else if (other.len)
				rc = apply_one(e, zb_buf_str(&other), err);
		}
		zb_buf_done(&other);
	}
	return rc;
}

static int keep(const struct edit *e, struct zb_error *err)
{
	return zb_write_file_atomic(e->path, zb_buf_str(&e->text), e->text.len,
				    0600, err);
}

/* To take something back must work whatever else is wrong. */
static int keep_revoked(const struct edit *e, struct zb_error *err)
{
	struct zb_error why = {0};
	int rc = keep(e, err);

	if (!rc && zb_grant_try(e->store, e->name, &e->text, false, true, &why))
		zb_cmd_say("as it is now, %s would not start: %s", e->name,
			   why.msg);
	return rc;
}

static int keep_allowed(const struct edit *e, struct zb_error *err)
{
	int rc = zb_grant_try(e->store, e->name, &e->text, e->mean_it, true,
			      err);

	return rc ? rc : keep(e, err);
}

static int perform(struct edit *e, struct zb_error *err)
{
	int fd = -1;
	int rc = zb_store_lock(e->store, e->name, true, LOCK_WAIT_MS, &fd, err);

	if (!rc)
		rc = read_scope(e, err);
	if (!rc && zb_is_marked(e->store, e->name))
		rc = zb_fail(err, ZB_EPOLICY,
			     "%s was not installed to the end, or is half "
			     "removed",
			     e->name);
	if (!rc)
		rc = apply(e, err);
	if (!rc && e->changed)
		rc = e->remove ? keep_revoked(e, err) : keep_allowed(e, err);
	zb_forget_lock(e->store, e->name, fd);
	return rc;
}

static void report(const struct edit *e)
{
	if (!e->changed && e->remove)
		zb_cmd_say("%s: nothing to change: %s does not have that "
			   "value in this spelling",
			   e->path, e->args->arg[1]);
	else if (!e->changed)
		zb_cmd_say("%s: nothing to change: it is granted already",
			   e->path);
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

	if (!zb_store_open(&store, &err)) {
		zb_recover(&store);
		if (!zb_discover(&list, &store, NULL, &err))
			zb_discover_installed(&list, a->arg[0], &f, &err);
	}
	if (!err.code) {
		e.name = f->name;
		e.path = zb_store_box(&store, f->name, "scope.json");
		if (!e.path)
			zb_fail(&err, ZB_ELIMIT, "out of memory");
		else if (!perform(&e, &err))
			report(&e);
	}
	zb_buf_done(&e.text);
	free(e.path);
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
