/* tmphome.h - a throw-away directory for one test, and short ways to put
 * things into it. Its real path is used, so that comparisons hold where /tmp
 * is a link. Removed by rm(1), not by the code under test. */
#ifndef ZB_TMPHOME_H
#define ZB_TMPHOME_H

#include "buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct tmphome {
	char *dir;
};

static inline int tmp_setup(void **state)
{
	struct tmphome *t = calloc(1, sizeof(*t));
	const char *base = getenv("TMPDIR");
	char *made = zb_strf("%s/zb-unit-XXXXXX", base ? base : "/tmp");

	if (!t || !made || !mkdtemp(made))
		return -1;
	t->dir = realpath(made, NULL);
	free(made);
	*state = t;
	return t->dir ? 0 : -1;
}

static inline int tmp_teardown(void **state)
{
	struct tmphome *t = *state;
	char *cmd = zb_strf("chmod -R u+rwx '%s' 2>/dev/null; rm -rf '%s'",
			    t->dir, t->dir);
	int rc = cmd ? system(cmd) : -1;

	free(cmd);
	free(t->dir);
	free(t);
	return rc;
}

#define with_tmp(test)                                                         \
	cmocka_unit_test_setup_teardown(test, tmp_setup, tmp_teardown)

/* Heap path of @name in it. */
static inline char *in(const struct tmphome *t, const char *name)
{
	return zb_strf("%s/%s", t->dir, name);
}

static inline void put_parents(const char *path)
{
	char *p = zb_strdup(path);

	for (char *s = p + 1; (s = strchr(s, '/')); s++) {
		*s = '\0';
		mkdir(p, 0755);
		*s = '/';
	}
	free(p);
}

/* A directory, a file with @text, a link: made with their parents. Heap path.
 */
static inline char *put_dir(const struct tmphome *t, const char *name)
{
	char *path = in(t, name);

	put_parents(path);
	if (mkdir(path, 0755))
		assert_int_equal(access(path, F_OK), 0);
	return path;
}

static inline char *put(const struct tmphome *t, const char *name,
			unsigned mode, const char *text)
{
	char *path = in(t, name);
	FILE *f;

	put_parents(path);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
	return path;
}

static inline char *put_link(const struct tmphome *t, const char *name,
			     const char *text)
{
	char *path = in(t, name);

	put_parents(path);
	assert_int_equal(symlink(text, path), 0);
	return path;
}

#endif
