/* test_lock.c - the lock of an installed tree: what counts as the same. */
#include "config.h"

#include "cleanup.h"
#include "lock.h"
#include "tmphome.h"

#include <sys/stat.h>

/* sha256sum of "abc\n" and of nothing. */
#define ABC   "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct tree {
	struct tmphome *t;
	char *dir, *shipped, *lock;
};

static struct tree plant(struct tmphome *t)
{
	struct tree tree = {.t = t,
			    .dir = put_dir(t, "ext"),
			    .shipped = put(t, "box/manifest.json", 0600, "{}"),
			    .lock = in(t, "box/lock.json")};

	free(put(t, "ext/main.py", 0755, "abc\n"));
	free(put(t, "ext/h.py", 0644, ""));
	free(put(t, "ext/sub/deep/x", 0600, "x"));
	free(put(t, "ext/sub/extension.json", 0600, "counts here"));
	free(put(t, "ext/extension.json", 0644, "wrapped"));
	free(put(t, "ext/.git/config", 0644, "x"));
	free(put_link(t, "ext/link", "sub/deep"));
	free(put_link(t, "ext/out", "/"));
	return tree;
}

static void uproot(struct tree *t)
{
	free(t->dir);
	free(t->shipped);
	free(t->lock);
}

static void compare(const struct tree *t, const struct zb_lock *l,
		    const char *expected)
{
	struct zb_strv diff = {0};
	struct zb_error err = {0};
	struct zb_buf b = {0};

	assert_int_equal(zb_lock_compare(l, t->dir, t->shipped, &diff, &err),
			 0);
	for (size_t i = 0; i < diff.n; i++)
		zb_buf_addf(&b, "%s%s", i ? "; " : "", diff.v[i]);
	assert_string_equal(zb_buf_str(&b), expected);
	zb_buf_done(&b);
	zb_strv_done(&diff);
}

static void lists_what_counts(void **state)
{
	static const struct {
		const char *path, *hash;
		char kind;
	} rows[] = {
		{"extension.json", NULL, 'f'}, /* the shipped one */
		{"h.py", EMPTY, 'f'},
		{"link", NULL, 'l'},
		{"main.py", ABC, 'x'},
		{"out", NULL, 'l'},
		{"sub/deep/x", NULL, 'f'},
		{"sub/extension.json", NULL, 'f'},
	};
	struct tree t = plant(*state);
	struct zb_lock l = {0};
	struct zb_error err = {0};

	assert_int_equal(zb_lock_make(&l, t.dir, t.shipped, &err), 0);
	assert_int_equal(l.n_files, ZB_ARRAY_LEN(rows));
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		assert_string_equal(l.files[i].path, rows[i].path);
		assert_int_equal(l.files[i].kind, rows[i].kind);
		if (rows[i].hash)
			assert_string_equal(l.files[i].sha256, rows[i].hash);
	}
	assert_int_equal(strlen(l.tree), 64);
	zb_lock_done(&l);
	uproot(&t);
}

static void survives_writing_and_reading(void **state)
{
	struct tree t = plant(*state);
	struct zb_lock l = {0}, back = {0};
	struct zb_error err = {0};
	struct stat st;

	/* Names that JSON cannot carry, and that lines cannot. */
	free(put(t.t, "ext/\xff\xfe", 0644, "x"));
	free(put(t.t, "ext/new\nline \"q\"", 0644, "x"));
	assert_int_equal(zb_lock_make(&l, t.dir, t.shipped, &err), 0);
	l.source = zb_strdup("/src/\"q\"");
	l.policy = zb_strdup("strict");
	l.installed = zb_strdup("2026-12-01T10:00:00Z");
	assert_int_equal(zb_lock_write(&l, t.lock, &err), 0);
	assert_int_equal(stat(t.lock, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(zb_lock_read(&back, t.lock, &err), 0);
	assert_string_equal(back.source, l.source);
	assert_null(back.commit);
	assert_string_equal(back.policy, "strict");
	assert_string_equal(back.installed, l.installed);
	assert_string_equal(back.tree, l.tree);
	assert_int_equal(back.n_files, l.n_files);
	for (size_t i = 0; i < l.n_files; i++)
		assert_string_equal(back.files[i].path, l.files[i].path);
	compare(&t, &back, "");
	zb_lock_done(&l);
	zb_lock_done(&back);
	uproot(&t);
}

/* Things that are no change of the code. */
static void what_does_not_count(void **state)
{
	struct tree t = plant(*state);
	struct zb_lock l = {0};
	struct zb_error err = {0};
	zb_auto(free) char *h = in(t.t, "ext/h.py");
	zb_auto(free) char *empty = in(t.t, "ext/empty");

	assert_int_equal(zb_lock_make(&l, t.dir, t.shipped, &err), 0);
	free(put(t.t, "ext/extension.json", 0600, "enabled by zot"));
	free(put(t.t, "ext/.git/config", 0755, "changed"));
	free(put(t.t, "ext/.git/hooks/new", 0755, "x"));
	assert_int_equal(chmod(h, 0600), 0);
	assert_int_equal(mkdir(empty, 0755), 0);
	compare(&t, &l, "");
	zb_lock_done(&l);
	uproot(&t);
}

static void names_every_change(void **state)
{
	struct tree t = plant(*state);
	struct zb_lock l = {0};
	struct zb_error err = {0};
	zb_auto(free) char *main_py = in(t.t, "ext/main.py");
	zb_auto(free) char *link = in(t.t, "ext/link");
	zb_auto(free) char *out = in(t.t, "ext/out");

	assert_int_equal(zb_lock_make(&l, t.dir, t.shipped, &err), 0);
	free(put(t.t, "ext/h.py", 0644, "import os"));
	compare(&t, &l, "changed h.py");
	free(put(t.t, "ext/h.py", 0755, ""));
	compare(&t, &l, "changed h.py"); /* may be executed now */
	free(put(t.t, "ext/h.py", 0644, ""));
	compare(&t, &l, "");
	free(put(t.t, "box/manifest.json", 0600, "{\"exec\":\"x\"}"));
	compare(&t, &l, "changed extension.json");
	free(put(t.t, "box/manifest.json", 0600, "{}"));
	assert_int_equal(unlink(main_py), 0);
	free(put(t.t, "ext/sub/\x1b[31mevil", 0644, ""));
	assert_int_equal(unlink(link), 0);
	free(put_link(t.t, "ext/link", "sub"));
	assert_int_equal(unlink(out), 0);
	free(put(t.t, "ext/out", 0644, "/")); /* same text, no link */
	compare(&t, &l,
		"changed link; removed main.py; changed out; "
		"added sub/\\x1b[31mevil");
	zb_lock_done(&l);
	uproot(&t);
}

static void many_changes_are_counted(void **state)
{
	struct tree t = plant(*state);
	struct zb_lock l = {0};
	struct zb_error err = {0};
	struct zb_strv diff = {0};

	assert_int_equal(zb_lock_make(&l, t.dir, t.shipped, &err), 0);
	for (int i = 0; i < 130; i++) {
		char name[32];

		snprintf(name, sizeof(name), "ext/n%03d", i);
		free(put(t.t, name, 0644, ""));
	}
	assert_int_equal(zb_lock_compare(&l, t.dir, t.shipped, &diff, &err), 0);
	assert_int_equal(diff.n, 101);
	assert_string_equal(diff.v[100], "and 30 more");
	zb_strv_done(&diff);
	zb_lock_done(&l);
	uproot(&t);
}

/* A FIFO would stop a reader; sockets and devices are no code either. */
static void other_kinds_are_refused(void **state)
{
	struct tree t = plant(*state);
	struct zb_lock l = {0};
	struct zb_error err = {0};
	zb_auto(free) char *fifo = in(t.t, "ext/sub/fifo");

	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(zb_lock_make(&l, t.dir, t.shipped, &err), ZB_EPOLICY);
	assert_non_null(strstr(err.msg, "sub/fifo"));
	uproot(&t);
}

static void depth_is_bounded(void **state)
{
	struct tree t = plant(*state);
	struct zb_lock l = {0};
	struct zb_error err = {0};
	struct zb_buf b = {0};

	zb_buf_adds(&b, "ext");
	for (int i = 0; i < 70; i++)
		zb_buf_adds(&b, "/d");
	free(put_dir(t.t, zb_buf_str(&b)));
	assert_int_equal(zb_lock_make(&l, t.dir, t.shipped, &err), ZB_ELIMIT);
	zb_buf_done(&b);
	uproot(&t);
}

static void damaged_locks(void **state)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{}",
		"{\"zotbox_lock\":2,\"files\":[]}",
		"{\"zotbox_lock\":1,\"tree\":\"x\",\"files\":[]}",
		"{\"zotbox_lock\":1,\"files\":{}}",
		"{\"zotbox_lock\":1,\"files\":[1]}",
		"{\"zotbox_lock\":1,\"files\":[{\"path\":\"a\"}]}",
		"{\"zotbox_lock\":1,\"files\":[{\"path_hex\":\"6\","
		"\"kind\":\"f\",\"sha256\":\"" ABC "\"}]}",
	};
	struct tmphome *t = *state;
	struct zb_lock l = {0};
	struct zb_error err = {0};

	for (size_t i = 0; i < ZB_ARRAY_LEN(texts); i++) {
		zb_auto(free) char *path = put(t, "lock.json", 0600, texts[i]);

		assert_int_equal(zb_lock_read(&l, path, &err), ZB_EUSAGE);
	}
}

/* One digit of one file's hash: the tree's hash does not fit any more. */
static void an_edited_lock_is_no_lock(void **state)
{
	struct tree t = plant(*state);
	struct zb_lock l = {0};
	struct zb_error err = {0};
	struct zb_buf b = {0};
	char *digit;

	assert_int_equal(zb_lock_make(&l, t.dir, t.shipped, &err), 0);
	assert_int_equal(zb_lock_write(&l, t.lock, &err), 0);
	zb_lock_done(&l);
	assert_int_equal(zb_read_file(t.lock, 1 << 20, &b, &err), 0);
	digit = strstr(b.data, ABC);
	assert_non_null(digit);
	*digit = '0';
	assert_int_equal(
		zb_write_file_atomic(t.lock, b.data, b.len, 0600, &err), 0);
	assert_int_equal(zb_lock_read(&l, t.lock, &err), ZB_EUSAGE);
	zb_buf_done(&b);
	uproot(&t);
}

/* Enough for several threads: each file gets the hash that is its own, and of
 * two that cannot be hashed the first is named, each time. */
static void many_files_at_once(void **state)
{
	struct tree t = plant(*state);
	struct zb_lock l = {0}, again = {0};
	struct zb_error err = {0};

	for (int i = 0; i < 1000; i++) {
		zb_auto(free) char *name = zb_strf("ext/m/%04d", i);

		free(put(t.t, name, 0644, i % 2 ? "abc\n" : ""));
	}
	assert_int_equal(zb_lock_make(&l, t.dir, t.shipped, &err), 0);
	assert_int_equal(zb_lock_make(&again, t.dir, t.shipped, &err), 0);
	assert_string_equal(l.tree, again.tree);
	for (size_t i = 0; i < l.n_files; i++) {
		const char *n = l.files[i].path;

		if (!strncmp(n, "m/", 2))
			assert_string_equal(l.files[i].sha256,
					    (n[5] - '0') % 2 ? ABC : EMPTY);
	}
	zb_lock_done(&l);
	zb_lock_done(&again);
	for (int i = 0; i < 5; i++) {
		zb_auto(free) char *a = in(t.t, "ext/m/0000x");
		zb_auto(free) char *b = in(t.t, "ext/m/0001x");

		mkfifo(a, 0600);
		mkfifo(b, 0600);
		assert_int_equal(zb_lock_make(&l, t.dir, t.shipped, &err),
				 ZB_EPOLICY);
		assert_non_null(strstr(err.msg, "m/0000x is neither"));
	}
	uproot(&t);
}

/* Everything counts of what was not installed. */
static void a_whole_tree(void **state)
{
	struct tree t = plant(*state);
	struct zb_lock l = {0}, now = {0};
	struct zb_error err = {0};
	struct zb_strv diff = {0};

	assert_int_equal(zb_lock_make_whole(&l, t.dir, &err), 0);
	assert_int_equal(l.n_files, 8);
	assert_string_equal(l.files[0].path, ".git/config");
	assert_string_equal(l.files[1].path, "extension.json");
	free(put(t.t, "ext/.git/hooks/x", 0755, "x"));
	free(put(t.t, "ext/extension.json", 0755, "wrapped"));
	assert_int_equal(zb_lock_make_whole(&now, t.dir, &err), 0);
	assert_int_equal(zb_lock_diff(&l, &now, &diff), 0);
	assert_int_equal(diff.n, 2);
	assert_string_equal(diff.v[0], "added .git/hooks/x");
	assert_string_equal(diff.v[1], "changed extension.json");
	zb_strv_done(&diff);
	assert_int_equal(zb_lock_diff(&l, &l, &diff), 0);
	assert_int_equal(diff.n, 0);
	zb_lock_done(&l);
	zb_lock_done(&now);
	uproot(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_tmp(lists_what_counts),
		with_tmp(survives_writing_and_reading),
		with_tmp(what_does_not_count),
		with_tmp(names_every_change),
		with_tmp(many_changes_are_counted),
		with_tmp(other_kinds_are_refused),
		with_tmp(depth_is_bounded),
		with_tmp(damaged_locks),
		with_tmp(an_edited_lock_is_no_lock),
		with_tmp(many_files_at_once),
		with_tmp(a_whole_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
