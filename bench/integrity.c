/* integrity.c - what it costs to find out, at each start, that an extension is
 * what was installed: integrity FILES BYTES ROUNDS. A tree like node_modules is
 * made in a throw-away directory; the lock is read and compared as a start
 * does it. Warm: the files are in memory, as at any but the first start. */
#include "config.h"

#include "cleanup.h"
#include "lock.h"
#include "util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PER_DIR 40

static void die(const char *what, const struct zb_error *err)
{
	fprintf(stderr, "integrity: %s: %s\n", what, err->msg);
	exit(1);
}

static void make_tree(const char *dir, size_t files, size_t bytes)
{
	zb_auto(free) char *text = calloc(bytes + 32, 1);
	struct zb_error err = {0};

	for (size_t i = 0; text && i < files; i++) {
		zb_auto(free) char *sub =
			zb_strf("%s/p%zu/lib", dir, i / PER_DIR);
		zb_auto(free) char *path = zb_strf("%s/f%zu.js", sub, i);
		zb_auto(file) FILE *f = NULL;

		if (!sub || !path ||
		    (i % PER_DIR == 0 && zb_make_dirs(sub, 0755, &err)))
			die("make the tree", &err);
		memset(text, (int)('a' + i % 26), bytes);
		snprintf(text, 32, "%zu", i);
		f = fopen(path, "w");
		if (!f || fwrite(text, 1, bytes, f) != bytes)
			die(path, &err);
	}
}

static double once(const char *lock, const char *dir, double *reading)
{
	struct zb_error err = {0};
	struct zb_strv diff = {0};
	struct zb_lock l = {0};
	int64_t start = now_ns(), middle;

	if (zb_lock_read(&l, lock, &err))
		die("read the lock", &err);
	middle = now_ns();
	if (zb_lock_compare(&l, dir, NULL, &diff, &err))
		die("compare", &err);
	if (diff.n)
		die(diff.v[0], &err);
	zb_lock_done(&l);
	*reading = (double)(middle - start) / 1e6;
	return (double)(now_ns() - start) / 1e6;
}

int main(int argc, char **argv)
{
	size_t files = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
	size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 4000;
	size_t rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 10;
	const char *base = getenv("TMPDIR");
	zb_auto(free) char *dir =
		zb_strf("%s/zotbox-integrity-XXXXXX", base ? base : "/tmp");
	zb_auto(free) char *tree = NULL;
	zb_auto(free) char *lock = NULL;
	struct zb_error err = {0};
	struct zb_lock l = {0};
	double best = 1e9, read = 0;

	if (!dir || !mkdtemp(dir) || !(tree = zb_strf("%s/tree", dir)) ||
	    !(lock = zb_strf("%s/lock.json", dir)) || mkdir(tree, 0755))
		die("make a directory", &err);
	make_tree(tree, files, bytes);
	if (zb_lock_make(&l, tree, NULL, &err) || zb_lock_write(&l, lock, &err))
		die("make the lock", &err);
	zb_lock_done(&l);
	for (size_t i = 0; i < rounds; i++) {
		double reading, all = once(lock, tree, &reading);

		if (all < best) {
			best = all;
			read = reading;
		}
	}
	printf("integrity of %zu files, %zu bytes each: %.0f ms (%.0f ms of "
	       "them to read the lock), best of %zu\n",
	       files, bytes, best, read, rounds);
	zb_remove_tree(dir, NULL);
	return 0;
}
