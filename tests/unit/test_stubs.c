/* test_stubs.c - mount points inside home/ and data/: made, kept, removed, and
 * never through what an extension planted. */
#include "config.h"

#include "cleanup.h"
#include "stubs.h"
#include "tmphome.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

struct fixture {
	struct tmphome *t;
	char *box, *home, *data;
	struct zb_place *places;
	struct zb_plan plan;
};

/* Places of a plan in which HOME is /h and the extension's directory /e. */
static struct fixture plant(struct tmphome *t)
{
	struct fixture f = {.t = t,
			    .box = put_dir(t, "box"),
			    .home = put_dir(t, "box/home"),
			    .data = put_dir(t, "box/data")};

	f.places = calloc(32, sizeof(*f.places));
	assert_non_null(f.places);
	f.plan.places = f.places;
	f.plan.extension_real = in(t, "ext");
	return f;
}

static void add(struct fixture *f, enum zb_place_kind kind, const char *path,
		char *source, const char *link, bool is_dir)
{
	f->places[f->plan.n_places++] = (struct zb_place){
		.kind = kind,
		.path = zb_strdup(path),
		.source = source,
		.link_to = zb_strdup(link),
		.is_dir = is_dir,
	};
}

/* The plan again from nothing: HOME and the extension's directory. */
static void roots(struct fixture *f)
{
	for (size_t i = 0; i < f->plan.n_places; i++) {
		free(f->places[i].path);
		free(f->places[i].source);
		free(f->places[i].link_to);
	}
	f->plan.n_places = 0;
	add(f, ZB_PLACE_DATA, "/e", zb_strdup(f->data), NULL, true);
	add(f, ZB_PLACE_HOME, "/h", zb_strdup(f->home), NULL, true);
}

static void uproot(struct fixture *f)
{
	roots(f);
	for (size_t i = 0; i < f->plan.n_places; i++) {
		free(f->places[i].path);
		free(f->places[i].source);
	}
	zb_strv_done(&f->plan.data_copies);
	free(f->plan.extension_real);
	free(f->places);
	free(f->box);
	free(f->home);
	free(f->data);
}

static void add_all(struct fixture *f)
{
	roots(f);
	add(f, ZB_PLACE_PIN, "/h/.vm", zb_strf("%s/.vm", f->home), NULL, true);
	add(f, ZB_PLACE_PIN, "/h/.vm/bin", zb_strf("%s/.vm/bin", f->home), NULL,
	    true);
	add(f, ZB_PLACE_LINK, "/h/.vm/bin/py", NULL, "py3", false);
	add(f, ZB_PLACE_RUNTIME, "/h/.vm/bin/py3", zb_strdup("/x/py3"), NULL,
	    false);
	add(f, ZB_PLACE_RUNTIME, "/h/.vm/lib", zb_strdup("/x/lib"), NULL, true);
	/* Inside what the host shows: nothing of ours. */
	add(f, ZB_PLACE_GRANT, "/h/.vm/lib/sub", zb_strdup("/x/y"), NULL, true);
}

static int start(struct fixture *f, int locks[2], struct zb_error *err)
{
	struct zb_stubs_state state;
	int rc = zb_stubs_lock(f->box, locks, &state, err);

	if (!rc)
		rc = zb_stubs_make(&f->plan, f->box, locks, &state, err);
	for (int i = 0; rc && i < 2; i++) {
		if (locks[i] >= 0)
			close(locks[i]);
		locks[i] = -1;
	}
	return rc;
}

/* As if the mounts were made at once. */
static int make(struct fixture *f, int *fd, struct zb_error *err)
{
	int locks[2] = {-1, -1};
	int rc;

	*err = (struct zb_error){0};
	rc = start(f, locks, err);
	*fd = locks[0];
	if (!rc)
		close(locks[1]);
	return rc;
}

/* Type of @name in the box: 'd', 'f', 'l', '-' absent. */
static char kind(struct fixture *f, const char *name)
{
	zb_auto(free) char *path = zb_strf("%s/%s", f->box, name);
	struct stat st;

	if (lstat(path, &st))
		return '-';
	return S_ISDIR(st.st_mode) ? 'd' : S_ISLNK(st.st_mode) ? 'l' : 'f';
}

static void makes_what_the_plan_needs(void **state)
{
	struct fixture f = plant(*state);
	struct zb_error err;
	int fd;

	add_all(&f);
	assert_int_equal(make(&f, &fd, &err), 0);
	assert_true(fd > 2);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(kind(&f, "home/.vm/bin"), 'd');
	assert_int_equal(kind(&f, "home/.vm/bin/py"), 'l');
	assert_int_equal(kind(&f, "home/.vm/bin/py3"), 'f');
	assert_int_equal(kind(&f, "home/.vm/lib"), 'd');
	assert_int_equal(kind(&f, "home/.vm/lib/sub"), '-');
	close(fd);
	/* A second start finds everything in place. */
	assert_int_equal(make(&f, &fd, &err), 0);
	close(fd);
	uproot(&f);
}

/* Until the mounts are made nobody gives a name to a link. */
static void holds_the_names(void **state)
{
	struct fixture f = plant(*state);
	zb_auto(free) char *path = zb_strf("%s/edit.lock", f.box);
	int locks[2] = {-1, -1}, fd;
	struct zb_error err;

	add_all(&f);
	assert_int_equal(start(&f, locks, &err), 0);
	assert_true(locks[1] > 2);
	assert_int_equal(fcntl(locks[1], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), -1);
	close(locks[1]);
	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), 0);
	close(fd);
	close(locks[0]);
	uproot(&f);
}

static void removes_what_is_needed_no_more(void **state)
{
	struct fixture f = plant(*state);
	struct zb_error err;
	int fd;

	/* The extension's own, of the same kind as a stub would be. */
	free(put_dir(f.t, "box/home/own"));
	add_all(&f);
	add(&f, ZB_PLACE_GRANT, "/h/own", zb_strdup("/x/own"), NULL, true);
	assert_int_equal(make(&f, &fd, &err), 0);
	close(fd);
	free(put(f.t, "box/home/.vm/kept", 0600, "written by the extension"));
	roots(&f);
	assert_int_equal(make(&f, &fd, &err), 0);
	close(fd);
	assert_int_equal(kind(&f, "home/.vm/bin"), '-');
	assert_int_equal(kind(&f, "home/.vm/lib"), '-');
	assert_int_equal(kind(&f, "home/.vm"), 'd'); /* holds its file */
	assert_int_equal(kind(&f, "home/.vm/kept"), 'f');
	assert_int_equal(kind(&f, "home/own"), 'd');
	uproot(&f);
}

static void a_filled_file_is_not_removed(void **state)
{
	struct fixture f = plant(*state);
	struct zb_error err;
	int fd;

	roots(&f);
	add(&f, ZB_PLACE_GRANT, "/h/.rc", zb_strdup("/x/rc"), NULL, false);
	assert_int_equal(make(&f, &fd, &err), 0);
	close(fd);
	free(put(f.t, "box/home/.rc", 0600, "its own"));
	roots(&f);
	assert_int_equal(make(&f, &fd, &err), 0);
	close(fd);
	assert_int_equal(kind(&f, "home/.rc"), 'f');
	uproot(&f);
}

/* Removing a stub detaches the mount of a sandbox that runs. */
static void a_running_instance_keeps_its_stubs(void **state)
{
	struct fixture f = plant(*state);
	struct zb_error err;
	int running, fd;

	add_all(&f);
	assert_int_equal(make(&f, &running, &err), 0);
	roots(&f);
	add(&f, ZB_PLACE_GRANT, "/h/more", zb_strdup("/x"), NULL, true);
	assert_int_equal(make(&f, &fd, &err), 0);
	assert_int_equal(kind(&f, "home/.vm/lib"), 'd');
	assert_int_equal(kind(&f, "home/more"), 'd');
	close(running);
	/* Now the one without them runs alone: it may not remove its own. */
	roots(&f);
	assert_int_equal(make(&f, &running, &err), 0);
	assert_int_equal(kind(&f, "home/.vm/lib"), 'd');
	close(running);
	close(fd);
	assert_int_equal(make(&f, &fd, &err), 0);
	close(fd);
	assert_int_equal(kind(&f, "home/.vm"), '-');
	assert_int_equal(kind(&f, "home/more"), '-');
	uproot(&f);
}

/* A start of an instance with a plan of that sort, in the way of no other.
 * Return: its lock, or the error. */
static int start_as(struct fixture *f, bool loose, bool carved,
		    struct zb_error *err)
{
	int fd, rc;

	roots(f);
	f->plan.loose_home = loose;
	for (size_t i = 0; i < f->plan.n_places; i++)
		if (f->places[i].kind == ZB_PLACE_HOME)
			f->places[i].brokered = carved;
	rc = make(f, &fd, err);
	return rc ? rc : fd;
}

/* One that could move mounts never runs beside one that has any to lose. */
static void a_loose_home_excludes_a_carved_one(void **state)
{
	struct fixture f = plant(*state);
	struct zb_stubs_state known;
	struct zb_error err;
	int locks[2], first, second;

	first = start_as(&f, true, false, &err);
	assert_true(first > 2);
	assert_int_equal(start_as(&f, false, true, &err), ZB_EPOLICY);
	assert_non_null(strstr(err.msg, "another instance of box"));
	/* Another loose one may, and one that has rooms it does not need. */
	second = start_as(&f, true, false, &err);
	assert_true(second > 2);
	close(first);
	first = start_as(&f, false, false, &err);
	assert_true(first > 2);
	assert_int_equal(start_as(&f, false, true, &err), ZB_EPOLICY);
	close(second);
	/* What it is now is chosen by who is alone. */
	assert_int_equal(start_as(&f, false, true, &err), ZB_EPOLICY);
	close(first);
	first = start_as(&f, false, true, &err);
	assert_true(first > 2);
	assert_int_equal(start_as(&f, true, false, &err), ZB_EPOLICY);
	assert_int_equal(zb_stubs_lock(f.box, locks, &known, &err), 0);
	assert_true(known.held_home && !known.alone);
	close(locks[0]);
	close(locks[1]);
	second = start_as(&f, false, false, &err);
	assert_true(second > 2);
	close(first);
	assert_int_equal(start_as(&f, true, false, &err), ZB_EPOLICY);
	close(second);
	assert_int_equal(zb_stubs_lock(f.box, locks, &known, &err), 0);
	assert_true(!known.held_home && known.alone);
	close(locks[0]);
	close(locks[1]);
	first = start_as(&f, true, false, &err);
	assert_true(first > 2);
	close(first);
	uproot(&f);
}

/* What an extension may plant between two starts. */
static void nothing_is_made_through_a_link(void **state)
{
	struct fixture f = plant(*state);
	zb_auto(free) char *victim = put_dir(f.t, "victim");
	zb_auto(free) char *made = in(f.t, "victim/bin");
	zb_auto(free) char *vm = in(f.t, "box/home/.vm");
	struct zb_error err;
	int fd;

	assert_int_equal(symlink(victim, vm), 0);
	add_all(&f);
	assert_int_equal(make(&f, &fd, &err), ZB_EPOLICY);
	assert_int_equal(fd, -1);
	assert_non_null(strstr(err.msg, "home/.vm is in the way"));
	assert_int_equal(access(made, F_OK), -1);
	uproot(&f);
}

static void wrong_kinds_are_in_the_way(void **state)
{
	static const struct {
		const char *path, *word;
		char planted;
	} rows[] = {
		{"box/home/.vm", "a directory", 'f'},
		{"box/home/.vm/lib", "a directory", 'l'},
		{"box/home/.vm/bin/py3", "a file", 'd'},
		{"box/home/.vm/bin/py3", "a file", 'l'},
		{"box/home/.vm/bin/py", "a link", 'f'},
	};
	struct tmphome *t = *state;

	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct fixture f = plant(t);
		struct zb_error err;
		int fd;

		if (rows[i].planted == 'd')
			free(put_dir(t, rows[i].path));
		else if (rows[i].planted == 'l')
			free(put_link(t, rows[i].path, "/etc"));
		else
			free(put(t, rows[i].path, 0600, "x"));
		add_all(&f);
		assert_int_equal(make(&f, &fd, &err), ZB_EPOLICY);
		assert_non_null(strstr(err.msg, "in the way"));
		assert_non_null(strstr(err.msg, rows[i].word));
		uproot(&f);
		assert_int_equal(system("rm -rf \"$ZB_TEST_BOX\""), 0);
	}
}

/* A stub list that says ../../x, or is cut off, removes nothing outside. */
static void a_damaged_list_reaches_nothing(void **state)
{
	static const char list[] = "d\0../victim\0\0"
				   "d\0/etc\0\0"
				   "f\0home";
	struct fixture f = plant(*state);
	zb_auto(free) char *victim = put_dir(f.t, "victim");
	zb_auto(free) char *path = in(f.t, "box/stubs");
	FILE *out = fopen(path, "we");
	struct zb_error err;
	int fd;

	assert_non_null(out);
	assert_int_equal(fwrite(list, 1, sizeof(list), out), sizeof(list));
	fclose(out);
	roots(&f);
	assert_int_equal(make(&f, &fd, &err), 0);
	close(fd);
	assert_int_equal(access(victim, F_OK), 0);
	uproot(&f);
}

static void shipped_files_are_copied_once(void **state)
{
	struct fixture f = plant(*state);
	struct zb_buf b = {0};
	struct zb_error err;
	zb_auto(free) char *copy = in(f.t, "box/data/conf/a.json");
	FILE *file;
	char text[16] = "";
	int fd;

	free(put(f.t, "ext/conf/a.json", 0644, "shipped"));
	roots(&f);
	assert_int_equal(zb_strv_add(&f.plan.data_copies, "conf/a.json"), 0);
	assert_int_equal(make(&f, &fd, &err), 0);
	close(fd);
	file = fopen(copy, "re");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_string_equal(text, "shipped");
	/* What the extension wrote stays. */
	free(put(f.t, "box/data/conf/a.json", 0600, "its own"));
	assert_int_equal(make(&f, &fd, &err), 0);
	close(fd);
	file = fopen(copy, "re");
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_string_equal(text, "its own");
	/* A link planted there is not written through. */
	assert_int_equal(unlink(copy), 0);
	assert_int_equal(symlink("/nowhere/x", copy), 0);
	assert_int_equal(make(&f, &fd, &err), ZB_EPOLICY);
	zb_buf_done(&b);
	uproot(&f);
}

static int box_setup(void **state)
{
	int rc = tmp_setup(state);
	struct tmphome *t = *state;
	zb_auto(free) char *box = rc ? NULL : in(t, "box");

	return rc ? rc : setenv("ZB_TEST_BOX", box, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_tmp(makes_what_the_plan_needs),
		with_tmp(holds_the_names),
		with_tmp(removes_what_is_needed_no_more),
		with_tmp(a_filled_file_is_not_removed),
		with_tmp(a_running_instance_keeps_its_stubs),
		with_tmp(a_loose_home_excludes_a_carved_one),
		with_tmp(nothing_is_made_through_a_link),
		cmocka_unit_test_setup_teardown(wrong_kinds_are_in_the_way,
						box_setup, tmp_teardown),
		with_tmp(a_damaged_list_reaches_nothing),
		with_tmp(shipped_files_are_copied_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
