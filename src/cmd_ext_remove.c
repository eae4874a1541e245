/* cmd_ext_remove.c - zotbox ext remove, and ext unwrap: back to plain zot. */
#include "cleanup.h"
#include "cmd.h"
#include "discover.h"
#include "install.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	OPT_YES
};
enum {
	OPT_ALL
};

#define LOCK_WAIT_MS 10000

static bool asked_yes(const struct zb_found *f)
{
	char answer[16] = "";

	zb_cmd_say("remove %s with its scope, home and data? [y/N]", f->dir);
	return fgets(answer, sizeof(answer), stdin) &&
	       (answer[0] == 'y' || answer[0] == 'Y');
}

/* The box that belongs to @f: one of its name, if it is wrapped or its files
 * were installed by us. */
static const char *box_of(const struct zb_store *store,
			  const struct zb_found *f, char **lock)
{
	const char *base = strrchr(f->dir, '/');

	if (!zb_name_valid(f->name) || !base || strcmp(base + 1, f->name))
		return NULL;
	*lock = zb_store_box(store, f->name, "lock.json");
	return *lock && !access(*lock, F_OK) ? f->name : NULL;
}

static int remove_one(const struct zb_args *a, const struct zb_store *store,
		      const struct zb_found *f, struct zb_error *err)
{
	zb_auto(free) char *lock = NULL;
	const char *box = box_of(store, f, &lock);
	int fd = -1, rc = 0;

	if (!a->opt[OPT_YES] && !isatty(STDIN_FILENO))
		return zb_fail(err, ZB_EUSAGE,
			       "remove %s: no terminal to ask on; say --yes",
			       f->name);
	if (!a->opt[OPT_YES] && !asked_yes(f))
		return zb_fail(err, ZB_EPOLICY, "%s stays", f->dir);
	if (box)
		rc = zb_store_lock(store, box, true, LOCK_WAIT_MS, &fd, err);
	if (!rc)
		rc = zb_uninstall(store, f->dir, box, err);
	if (fd >= 0)
		close(fd);
	if (!rc)
		zb_cmd_say("removed %s; its logs stay in %s", f->dir,
			   store->logs);
	return rc;
}

int zb_cmd_ext_remove(const struct zb_args *a)
{
	struct zb_error err = {0};
	struct zb_store store = {0};
	struct zb_found_list list = {0};
	const struct zb_found *f;

	if (!zb_store_open(&store, &err)) {
		zb_install_recover(&store);
		if (!zb_discover(&list, &store, NULL, &err) &&
		    !zb_discover_installed(&list, a->arg[0], &f, &err))
			remove_one(a, &store, f, &err);
	}
	zb_found_list_done(&list);
	zb_store_done(&store);
	return err.code ? zb_cmd_fail(&err) : 0;
}

static int unwrap_one(const struct zb_store *store, const struct zb_found *f,
		      struct zb_error *err)
{
	int fd = -1;
	int rc = zb_store_lock(store, f->name, true, LOCK_WAIT_MS, &fd, err);

	if (!rc)
		rc = zb_unwrap(store, f->name, f->manifest.enabled, err);
	if (fd >= 0)
		close(fd);
	if (!rc)
		zb_cmd_say("WARNING: %s is no longer confined: zot will start "
			   "it with all of your rights. Its scope is kept; "
			   "confine it again with: zotbox ext doctor %s "
			   "--repair",
			   f->name, f->name);
	return rc;
}

static int unwrap_all(const struct zb_store *store,
		      const struct zb_found_list *list, struct zb_error *err)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		if (!list->v[i].wrapped || list->v[i].scope != ZB_FOUND_GLOBAL)
			continue;
		if (unwrap_one(store, &list->v[i], err))
			return err->code;
		n++;
	}
	if (!n)
		zb_cmd_say("nothing is wrapped");
	return 0;
}

int zb_cmd_ext_unwrap(const struct zb_args *a)
{
	struct zb_error err = {0};
	struct zb_store store = {0};
	struct zb_found_list list = {0};
	const struct zb_found *f;

	if (!a->opt[OPT_ALL] == !a->n_args) {
		zb_fail(&err, ZB_EUSAGE,
			"unwrap needs one NAME, or --all alone");
		return zb_cmd_fail(&err);
	}
	if (zb_store_open(&store, &err) ||
	    zb_discover(&list, &store, NULL, &err))
		;
	else if (a->opt[OPT_ALL])
		unwrap_all(&store, &list, &err);
	else if (zb_discover_installed(&list, a->arg[0], &f, &err))
		;
	else if (!f->wrapped)
		zb_fail(&err, ZB_EPOLICY, "%s is not wrapped", f->name);
	else
		unwrap_one(&store, f, &err);
	zb_found_list_done(&list);
	zb_store_done(&store);
	return err.code ? zb_cmd_fail(&err) : 0;
}
