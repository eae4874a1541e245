/* cmd_ext_remove.c - zotbox ext remove, and ext unwrap: back to plain zot. */
#include "cleanup.h"
#include "cmd.h"
#include "discover.h"
#include "install.h"
#include "path_match.h"
#include "staging.h"
#include "stubs.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	OPT_YES
};
enum {
	OPT_ALL
};

#define LOCK_WAIT_MS 10000

/* May it be deleted? Without a terminal only --yes says so. */
static int confirm(const struct zb_args *a, const char *what, const char *with,
		   struct zb_error *err)
{
	char answer[16] = "";

	if (a->opt[OPT_YES])
		return 0;
	if (!isatty(STDIN_FILENO))
		return zb_fail(err, ZB_EUSAGE,
			       "remove %s: no terminal to ask on; say --yes",
			       a->arg[0]);
	zb_cmd_say("remove %s%s? [y/N]", what, with);
	if (fgets(answer, sizeof(answer), stdin) &&
	    (answer[0] == 'y' || answer[0] == 'Y'))
		return 0;
	return zb_fail(err, ZB_EPOLICY, "%s stays", what);
}

/* The name of the box that belongs to @f: an installed one has the name of its
 * directory, also if its manifest has gone bad. NULL: none. */
static const char *box_of(const struct zb_store *store,
			  const struct zb_found *f)
{
	const char *base = strrchr(f->dir, '/');
	zb_auto(free) char *box = NULL;
	struct stat st;

	if (!base || !zb_name_valid(base + 1))
		return NULL;
	box = zb_store_box(store, base + 1, "");
	return box && !lstat(box, &st) ? base + 1 : NULL;
}

/* @dir NULL: only the box. */
static int remove_both(const struct zb_store *store, const char *dir,
		       const char *box, struct zb_error *err)
{
	int fd = -1, rc = 0;

	if (box)
		rc = zb_store_lock(store, box, true, LOCK_WAIT_MS, &fd, err);
	if (!rc)
		rc = zb_uninstall(store, dir, box, err);
	if (box)
		zb_forget_lock(store, box, fd);
	return rc;
}

static int remove_one(const struct zb_args *a, const struct zb_store *store,
		      const struct zb_found *f, struct zb_error *err)
{
	const char *box = box_of(store, f);
	int rc = confirm(a, f->dir, box ? " with its scope, home and data" : "",
			 err);

	if (!rc)
		rc = remove_both(store, f->dir, box, err);
	if (!rc)
		zb_cmd_say("removed %s; its logs stay in %s", f->dir,
			   store->logs);
	return rc;
}

/* Its files are gone, its box is not: that can be removed as well. Return:
 * whether there was one; @err says how it went. */
static bool remove_left_over(const struct zb_args *a,
			     const struct zb_store *store, const char *name,
			     struct zb_error *err)
{
	zb_auto(free) char *box =
		zb_name_valid(name) ? zb_store_box(store, name, "") : NULL;
	struct stat st;

	if (!box || lstat(box, &st))
		return false;
	*err = (struct zb_error){0};
	if (!confirm(a, box, " (scope, home and data of an earlier one)",
		     err) &&
	    !remove_both(store, NULL, name, err))
		zb_cmd_say("removed %s, which an earlier \"%s\" had left", box,
			   name);
	return true;
}

/* Nothing may run in what goes. */
static int discard_idle(const struct zb_store *store, const char *box,
			struct zb_error *err)
{
	int locks[2] = {-1, -1};
	int rc = zb_stubs_own(box, locks, err);

	if (!rc)
		rc = zb_discard(store, box, err);
	for (size_t i = 0; i < ZB_ARRAY_LEN(locks); i++)
		if (locks[i] >= 0)
			close(locks[i]);
	return rc;
}

/* The real path of what may be gone; heap. */
static char *real_path(const char *path)
{
	zb_auto(free) char *cwd = getcwd(NULL, 0);
	char *real = realpath(path, NULL);

	return real ? real : zb_path_join(cwd ? cwd : "/", path);
}

static int discard_box(const struct zb_store *store, const char *name,
		       const char *box, struct zb_error *err)
{
	int fd = -1;
	int rc = zb_store_lock(store, name, true, LOCK_WAIT_MS, &fd, err);

	if (!rc)
		rc = discard_idle(store, box, err);
	zb_forget_lock(store, name, fd);
	return rc;
}

/* What zotbox keeps of one that is run by its path. Its files are none of ours,
 * and may be gone. */
static int remove_of_path(const struct zb_args *a, const struct zb_store *store,
			  struct zb_error *err)
{
	zb_auto(free) char *real = real_path(a->arg[0]);
	zb_auto(free) char *name = real ? zb_store_path_box_name(real) : NULL;
	zb_auto(free) char *box = name ? zb_store_box(store, name, "") : NULL;
	struct zb_buf path = {0};
	struct stat st;
	int rc;

	if (!box || zb_text_escape(&path, real, strlen(real), 300))
		rc = zb_fail(err, ZB_ELIMIT, "out of memory");
	else if (lstat(box, &st))
		rc = zb_fail(err, ZB_EPOLICY,
			     "zotbox keeps nothing of %s; what is installed is "
			     "removed by its NAME",
			     zb_buf_str(&path));
	else
		rc = confirm(a, box, " (scope, trust, home and data)", err);
	if (!rc)
		rc = discard_box(store, name, box, err);
	if (!rc)
		zb_cmd_say("removed %s: scope, trust, home and data of %s, "
			   "whose own files stay; its logs stay in %s",
			   box, zb_buf_str(&path), store->logs);
	zb_buf_done(&path);
	return rc;
}

int zb_cmd_ext_remove(const struct zb_args *a)
{
	struct zb_error err = {0};
	struct zb_store store = {0};
	struct zb_found_list list = {0};
	const struct zb_found *f;

	if (!zb_store_open(&store, &err)) {
		zb_recover(&store);
		if (strchr(a->arg[0], '/'))
			remove_of_path(a, &store, &err);
		else if (zb_discover(&list, &store, NULL, &err))
			;
		else if (!zb_discover_installed(&list, a->arg[0], &f, &err))
			remove_one(a, &store, f, &err);
		else if (err.code == ZB_EPOLICY)
			remove_left_over(a, &store, a->arg[0], &err);
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

/* All that can be; one that cannot does not keep the others wrapped. */
static int unwrap_all(const struct zb_store *store,
		      const struct zb_found_list *list, struct zb_error *err)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		struct zb_error one = {0};

		if (!zb_found_is_wrapping(&list->v[i]))
			continue;
		n++;
		if (!unwrap_one(store, &list->v[i], &one))
			continue;
		if (err->code)
			zb_cmd_fail(&one);
		else
			*err = one;
	}
	if (!n)
		zb_cmd_say("nothing is wrapped");
	return err->code;
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
	if (!zb_store_open(&store, &err))
		zb_recover(&store);
	if (err.code || zb_discover(&list, &store, NULL, &err))
		;
	else if (a->opt[OPT_ALL])
		unwrap_all(&store, &list, &err);
	else if (zb_discover_installed(&list, a->arg[0], &f, &err))
		;
	else if (!zb_found_is_wrapping(f))
		zb_fail(&err, ZB_EPOLICY, "%s is not wrapped%s%s", f->name,
			f->problem ? ": " : "", f->problem ? f->problem : "");
	else
		unwrap_one(&store, f, &err);
	zb_found_list_done(&list);
	zb_store_done(&store);
	return err.code ? zb_cmd_fail(&err) : 0;
}
