/* zot_front.c - stand in front of the real zot.
 *
 * A plain execv: no parent stays behind that would have to pass on signals,
 * the terminal or the exit status. "Not this very file" is decided by device
 * and inode of what a name leads to, so any number of links to us in PATH is
 * passed over. */
#include "zot_front.h"
#include "buf.h"
#include "cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool zb_zot_front_wanted(int argc, char *const *argv)
{
	const char *base;

	if (argc < 1 || !argv[0])
		return false;
	base = strrchr(argv[0], '/');
	base = base ? base + 1 : argv[0];
	return !strcmp(base, "zot") && !(argc > 1 && !strcmp(argv[1], "ext"));
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* A program that can be started and is not us. */
static bool is_other(const char *path, const struct stat *self)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) &&
	       !same_file(&st, self) && !access(path, X_OK);
}

/* Relative entries of PATH would make what runs depend on the directory one
 * stands in; they are passed over. */
static char *search_path(const struct stat *self)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t n = strcspn(path, ":");
		zb_auto(free) char *name = zb_strf("%.*s/zot", (int)n, path);

		if (*path == '/' && name && is_other(name, self))
			return zb_steal(&name);
		path += n;
		path += *path == ':';
	}
	return NULL;
}

int zb_zot_front_exec(char *const *argv, struct zb_error *err)
{
	const char *named = getenv("ZOTBOX_ZOT");
	zb_auto(free) char *found = NULL;
	struct stat self;

	if (stat("/proc/self/exe", &self))
		return zb_fail_sys(err, errno, "look at /proc/self/exe");
	if (named && *named) {
		if (!is_other(named, &self))
			return zb_fail(err, ZB_EUSAGE,
				       "ZOTBOX_ZOT is %s, which is not another "
				       "program that can be started; set it to "
				       "the real zot",
				       named);
		found = zb_strdup(named);
	} else {
		found = search_path(&self);
	}
	if (!found)
		return zb_fail(err, ZB_EUSAGE,
			       "started as zot, but there is no other zot in "
			       "PATH; install it, or set ZOTBOX_ZOT to it");
	execv(found, argv);
	return zb_fail_sys(err, errno, "start %s", found);
}
