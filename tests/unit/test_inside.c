/* test_inside.c - where a path leads inside, by plan and host: links, places
 * that hide, mount points that no disk has, and what ends a walk. */
#include "inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* The host: path, "d" directory, "f" file, else the text of a link. */
static const struct {
	const char *path, *what;
} host[] = {
	{"/home/u/box", "d"},
	{"/home/u/box/own", "f"},
	{"/home/u/box/out", "/srv/x"},
	{"/srv/x", "f"},
	{"/srv/p", "d"},
	{"/srv/p/f", "f"},
	{"/srv/p/sub", "d"},
	{"/srv/p/sub/g", "f"},
	{"/srv/p/up", ".."},
	{"/srv/p/to", "sub/g"},
	{"/srv/p/again", "again"},
	{"/srv/p/dangling", "nothing"},
	{"/srv/p/home", "../../home/u"},
	{"/home/u/.ssh", "d"},
};

static void look(void *ctx, const char *path, struct zb_path_fact *out)
{
	(void)ctx;
	*out = (struct zb_path_fact){0};
	for (size_t i = 0; i < sizeof(host) / sizeof(host[0]); i++) {
		if (strcmp(host[i].path, path) != 0)
			continue;
		out->exists = true;
		out->is_dir = !strcmp(host[i].what, "d");
		out->is_file = !strcmp(host[i].what, "f");
		out->is_link = !out->is_dir && !out->is_file;
		if (out->is_link)
			out->link = zb_strdup(host[i].what);
	}
}

static struct zb_place places[] = {
	{.kind = ZB_PLACE_LINK,
	 .path = (char[]){"/bin"},
	 .link_to = (char[]){"srv/p"}},
	{.kind = ZB_PLACE_DEV, .path = (char[]){"/dev"}, .is_dir = true},
	{.kind = ZB_PLACE_TEXT, .path = (char[]){"/etc/passwd"}},
	{.kind = ZB_PLACE_HOME,
	 .path = (char[]){"/home/u"},
	 .source = (char[]){"/home/u/box"},
	 .is_dir = true},
	{.kind = ZB_PLACE_GRANT,
	 .path = (char[]){"/home/u/deep/er"},
	 .source = (char[]){"/srv/p"},
	 .is_dir = true},
	{.kind = ZB_PLACE_PROC, .path = (char[]){"/proc"}, .is_dir = true},
	{.kind = ZB_PLACE_GRANT,
	 .path = (char[]){"/srv/p"},
	 .source = (char[]){"/srv/p"},
	 .is_dir = true},
	{.kind = ZB_PLACE_TMP, .path = (char[]){"/tmp"}, .is_dir = true},
};

static const struct row {
	const char *asked, *path;
	const char *is; /* "d" "f" "l" (a link, not followed), "-" */
	bool name;	/* the last component is not followed */
} rows[] = {
	{"/", "/", "d", false},
	{"/srv/p/f", "/srv/p/f", "f", false},
	{"//srv/./p//f", "/srv/p/f", "f", false},
	{"/srv/p/sub/../f", "/srv/p/f", "f", false},
	{"/srv/p/to", "/srv/p/sub/g", "f", false},
	{"/srv/p/to", "/srv/p/to", "l", true},
	{"/srv/p/up/p/f", "/srv/p/f", "f", false},
	{"/bin/f", "/srv/p/f", "f", false},
	{"/bin/to", "/srv/p/sub/g", "f", false},
	{"/srv/p/dangling", "/srv/p/nothing", "-", false},
	{"/srv/p/dangling", "/srv/p/dangling", "l", true},
	{"/srv/p/f/below", "/srv/p/f/below", "-", false},
	{"/srv/p/none/../f", "/srv/p/f", "-", false},
	/* what no place shows is not there, whatever the host has */
	{"/srv/x", "/srv/x", "-", false},
	{"/srv", "/srv", "d", false},
	{"/etc", "/etc", "d", false},
	{"/etc/passwd", "/etc/passwd", "f", false},
	{"/etc/shadow", "/etc/shadow", "-", false},
	/* a private HOME: its own disk, and the mount points in it */
	{"/home/u/own", "/home/u/own", "f", false},
	{"/home/u/.ssh", "/home/u/.ssh", "-", false},
	{"/home/u/deep", "/home/u/deep", "d", false},
	{"/home/u/deep/er/f", "/home/u/deep/er/f", "f", false},
	{"/home/u/out", "/srv/x", "-", false},
	{"/srv/p/home/own", "/home/u/own", "f", false},
	{"/srv/p/home/.ssh/id", "/home/u/.ssh/id", "-", false},
	{"/tmp", "/tmp", "d", false},
	{"/tmp/x", "/tmp/x", "-", false},
	{"/dev/null", "/dev/null", "f", false},
	{"/dev/sda", "/dev/sda", "-", false},
	{"/proc/self/root/srv/p/f", "/srv/p/f", "f", false},
	{"/proc/self/cwd/own", "/home/u/own", "f", false},
	{"/proc/self/fd/3", "/proc/self/fd/3", "-", false},
};

static void every_row(void **state)
{
	struct zb_plan plan = {.places = places,
			       .n_places = sizeof(places) / sizeof(places[0]),
			       .cwd = (char[]){"/home/u"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct zb_inside in;
		const char *is;

		assert_int_equal(
			zb_inside(&plan, r->asked, !r->name, look, NULL, &in),
			0);
		is = in.is_link ? "l" : in.is_dir ? "d" : in.exists ? "f" : "-";
		if (strcmp(in.path, r->path) != 0 || strcmp(is, r->is) != 0)
			fail_msg("%s: %s %s, want %s %s", r->asked, in.path, is,
				 r->path, r->is);
		zb_inside_done(&in);
	}
}

static void marks(void **state)
{
	struct zb_plan plan = {.places = places,
			       .n_places = sizeof(places) / sizeof(places[0]),
			       .cwd = (char[]){"/home/u"}};
	struct zb_inside in;

	(void)state;
	assert_int_equal(zb_inside(&plan, "/srv/p/f/", true, look, NULL, &in),
			 0);
	assert_true(in.no_dir);
	zb_inside_done(&in);
	assert_int_equal(zb_inside(&plan, "/srv/p/", true, look, NULL, &in), 0);
	assert_false(in.no_dir);
	assert_false(in.magic);
	zb_inside_done(&in);
	assert_int_equal(
		zb_inside(&plan, "/proc/self/root/srv", true, look, NULL, &in),
		0);
	assert_true(in.magic);
	zb_inside_done(&in);
	/* A link to itself ends. */
	assert_int_equal(
		zb_inside(&plan, "/srv/p/again", true, look, NULL, &in), 0);
	zb_inside_done(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row),
		cmocka_unit_test(marks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
