/* test_landlock_rules.c - rules by plan, and where this kernel has Landlock,
 * the same rules tried on real files by a child that enters them. */
#include "config.h"

#include "../golden/plans.h"

#include "cleanup.h"
#include "platform/linux/landlock_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <cmocka.h>

#define RO (ZB_MAY_READ | ZB_MAY_LIST)
#define RX (RO | ZB_MAY_EXEC)
#define RW (RO | ZB_MAY_WRITE | ZB_MAY_CREATE)
#define ALTER                                                                  \
	(ZB_LL_REMOVE_DIR | ZB_LL_REMOVE_FILE | ZB_LL_MAKE_DIR |               \
	 ZB_LL_MAKE_REG | ZB_LL_MAKE_SOCK | ZB_LL_MAKE_FIFO | ZB_LL_MAKE_SYM | \
	 ZB_LL_REFER)
#define WRITE (ZB_LL_WRITE_FILE | ZB_LL_TRUNCATE)
#define READ  (ZB_LL_READ_FILE | ZB_LL_READ_DIR)

struct rules {
	struct zb_landlock_rule *v;
	size_t n;
};

static struct rules make(const struct zb_plan *plan, int abi)
{
	struct rules r = {0};
	struct zb_error err = {0};

	if (zb_landlock_rules(plan, abi, &r.v, &r.n, &err))
		fail_msg("%s", err.msg);
	return r;
}

static const struct zb_landlock_rule *rule(const struct rules *r,
					   const char *path)
{
	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->v[i].path, path))
			return &r->v[i];
	return NULL;
}

static void handles_what_the_kernel_knows(void **state)
{
	(void)state;
	assert_int_equal(zb_landlock_handled(0), 0);
	assert_int_equal(zb_landlock_handled(-1), 0);
	assert_int_equal(zb_landlock_handled(1), (1ULL << 13) - 1);
	assert_int_equal(zb_landlock_handled(2), (1ULL << 14) - 1);
	assert_int_equal(zb_landlock_handled(3), (1ULL << 15) - 1);
	assert_int_equal(zb_landlock_handled(4), (1ULL << 15) - 1);
	assert_int_equal(zb_landlock_handled(5), (1ULL << 16) - 1);
	assert_int_equal(zb_landlock_handled(99), (1ULL << 16) - 1);
}

static void needs_landlock(void **state)
{
	struct zb_landlock_rule *v = NULL;
	struct zb_error err = {0};
	struct zb_plan plan;
	size_t n;

	(void)state;
	assert_true(zb_test_plan("strict-native", &plan));
	assert_int_equal(zb_landlock_rules(&plan, 0, &v, &n, &err),
			 ZB_EUNSUPPORTED);
	assert_non_null(strstr(err.msg, "Landlock"));
	assert_null(v);
	zb_test_plan_done(&plan);
}

static void rights_by_plan(void **state)
{
	static const struct {
		const char *plan, *path;
		uint64_t access; /* 0: no rule */
	} rows[] = {
		{"strict-python", "/", ZB_LL_READ_DIR},
		{"strict-python", "/usr/bin/python3.11",
		 ZB_LL_EXECUTE | ZB_LL_READ_FILE},
		{"strict-python", "/usr/lib/python3.11", ZB_LL_EXECUTE | READ},
		{"strict-python", "/etc/ld.so.cache", ZB_LL_READ_FILE},
		{"strict-python", "/etc/ssl/certs", READ},
		{"strict-python", "/etc/passwd", ZB_LL_READ_FILE},
		{"strict-python", "/home/u",
		 ZB_LL_EXECUTE | READ | WRITE | ALTER},
		{"strict-python", "/home/u/.zot", 0},
		{"strict-python", "/home/u/.zot/extensions/weather",
		 ZB_LL_EXECUTE | READ},
		{"strict-python", "/home/u/.zot/zotbox/weather/data",
		 ZB_LL_EXECUTE | READ | WRITE | ALTER},
		{"strict-python", "/tmp", ZB_LL_EXECUTE | READ | WRITE | ALTER},
		{"strict-python", "/proc", READ},
		{"strict-python", "/dev", 0},
		{"strict-python", "/dev/tty", 0},
		{"strict-python", "/dev/null",
		 ZB_LL_READ_FILE | ZB_LL_WRITE_FILE | ZB_LL_IOCTL_DEV},
		{"strict-python", "/dev/pts",
		 READ | ZB_LL_WRITE_FILE | ZB_LL_IOCTL_DEV},
		{"strict-python", "/dev/shm", READ | WRITE | ALTER},
		{"strict-python", "/bin", 0},
		/* carved: listed, and nothing more */
		{"standard-home", "/home/u/src/app", ZB_LL_READ_DIR},
		/* above it: no reading, no executing */
		{"standard-home", "/home/u", ZB_LL_READ_DIR | WRITE | ALTER},
		{"standard-home", "/home/u/src",
		 ZB_LL_READ_DIR | WRITE | ALTER},
		/* beside it: as ever, though HOME lost it */
		{"standard-home", "/home/u/.zot",
		 ZB_LL_EXECUTE | READ | WRITE | ALTER},
		{"standard-home", "/home/u/.zot/extensions/weather",
		 ZB_LL_EXECUTE | READ | WRITE | ALTER},
		{"standard-home", "/home/u/.zot/extensions/weather/main.py",
		 ZB_LL_EXECUTE | ZB_LL_READ_FILE},
		{"standard-home", "/tmp", ZB_LL_EXECUTE | READ | WRITE | ALTER},
		{"standard-tmp", "/tmp", ZB_LL_READ_DIR | WRITE | ALTER},
		{"standard-tmp", "/tmp/w", 0},
		{"standard-tmp", "/home/u",
		 ZB_LL_EXECUTE | READ | WRITE | ALTER},
		{"file-write", "/home/u/notes/todo.txt",
		 ZB_LL_READ_FILE | WRITE},
		{"file-write", "/srv/feed", READ},
		{"sh-exec", "/usr/bin/git", ZB_LL_EXECUTE | ZB_LL_READ_FILE},
		{"sh-exec", "/usr/bin/sh", 0},
		/* a pattern in a grant */
		{"links", "/home/u/logs/app", ZB_LL_READ_DIR},
		{"links", "/srv/w", ZB_LL_READ_DIR},
		/* above a carved place that may be written to */
		{"awkward", "/home/u", ZB_LL_READ_DIR},
		{"awkward", "/home/u/out", ZB_LL_READ_DIR},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		const struct zb_landlock_rule *r;
		struct zb_plan plan;
		struct rules rules;

		assert_true(zb_test_plan(rows[i].plan, &plan));
		rules = make(&plan, 7);
		r = rule(&rules, rows[i].path);
		if ((r ? r->access : 0) != rows[i].access)
			fail_msg("%s %s: %llx", rows[i].plan, rows[i].path,
				 r ? (unsigned long long)r->access : 0ULL);
		zb_landlock_rules_done(rules.v, rules.n);
		zb_test_plan_done(&plan);
	}
}

/* For every plan and every ABI: only rights the kernel knows, never none,
 * only file rights on files, never a device node, and reading never under a
 * carved place. */
static void rules_are_sound(void **state)
{
	(void)state;
	for (size_t i = 0; zb_test_plan_names[i]; i++) {
		struct zb_plan plan;

		assert_true(zb_test_plan(zb_test_plan_names[i], &plan));
		for (int abi = 1; abi <= 8; abi++) {
			struct rules r = make(&plan, abi);

			for (size_t k = 0; k < r.n; k++) {
				uint64_t a = r.v[k].access;

				assert_true(a != 0);
				assert_int_equal(a & ~zb_landlock_handled(abi),
						 0);
				assert_int_equal(a & (ZB_LL_MAKE_CHAR |
						      ZB_LL_MAKE_BLOCK),
						 0);
				if (!r.v[k].is_dir)
					assert_int_equal(a & ~ZB_LL_FILE, 0);
			}
			zb_landlock_rules_done(r.v, r.n);
		}
		zb_test_plan_done(&plan);
	}
}

static bool at_or_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/' || n == 1);
}

/* The one that everything carved rests on: no rule above or at a carved place
 * lends it READ_FILE, nor a right to change anything if it may be changed. */
static void nothing_reads_into_a_carved_place(void **state)
{
	const unsigned change = ZB_MAY_WRITE | ZB_MAY_CREATE;
	size_t seen = 0, writable = 0;

	(void)state;
	for (size_t i = 0; zb_test_plan_names[i]; i++) {
		struct zb_plan plan;
		struct rules r;

		assert_true(zb_test_plan(zb_test_plan_names[i], &plan));
		r = make(&plan, 7);
		for (size_t p = 0; p < plan.n_places; p++) {
			uint64_t none = ZB_LL_READ_FILE | ZB_LL_EXECUTE;

			if (!plan.places[p].carved)
				continue;
			seen++;
			if (plan.places[p].rights & change) {
				writable++;
				none |= WRITE | ALTER;
			}
			for (size_t k = 0; k < r.n; k++)
				if (at_or_below(plan.places[p].path,
						r.v[k].path))
					assert_int_equal(r.v[k].access & none,
							 0);
		}
		zb_landlock_rules_done(r.v, r.n);
		zb_test_plan_done(&plan);
	}
	assert_true(seen > 3);
	assert_true(writable > 0);
}

static void names(void **state)
{
	struct zb_buf b = {0};

	(void)state;
	assert_int_equal(zb_landlock_names(ZB_LL_EXECUTE | ZB_LL_READ_FILE |
						   ZB_LL_IOCTL_DEV,
					   &b),
			 0);
	assert_string_equal(zb_buf_str(&b), "execute read_file ioctl_dev");
	zb_buf_done(&b);
}

#ifdef __linux__

static int kernel_abi(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0,
			    LANDLOCK_CREATE_RULESET_VERSION);
}

/* As the stage does it. Returns false if the kernel refuses anything. */
static bool enter(const struct rules *r, int abi)
{
	const uint64_t attr = zb_landlock_handled(abi);
	int set = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr),
			       0);

	if (set < 0)
		return false;
	for (size_t i = 0; i < r->n; i++) {
		struct landlock_path_beneath_attr at = {
			.allowed_access = r->v[i].access,
			.parent_fd = open(r->v[i].path,
					  O_PATH | O_CLOEXEC | O_NOFOLLOW),
		};

		if (at.parent_fd < 0 && r->v[i].optional)
			continue;
		if (at.parent_fd < 0 ||
		    syscall(SYS_landlock_add_rule, set,
			    LANDLOCK_RULE_PATH_BENEATH, &at, 0))
			return false;
		close(at.parent_fd);
	}
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_landlock_restrict_self, set, 0);
}

struct tree {
	char dir[64];
	struct zb_plan plan;
};

static void grow(struct tree *t)
{
	static const char *const dirs[] = {"home", "home/src", "home/src/app",
					   "ro", "data"};
	static const char *const files[] = {"home/f", "home/src/app/.env",
					    "ro/f",   "data/f",
					    "one",    "other"};
	static const struct {
		enum zb_place_kind kind;
		const char *name;
		unsigned rights;
		bool is_dir, carved;
	} places[] = {
		{ZB_PLACE_DATA, "data", RW, true, false},
		{ZB_PLACE_HOME, "home", RW, true, false},
		{ZB_PLACE_GRANT, "home/src/app", RO, true, true},
		{ZB_PLACE_GRANT, "one", ZB_MAY_READ | ZB_MAY_WRITE, false,
		 false},
		{ZB_PLACE_GRANT, "ro", RO, true, false},
	};

	strcpy(t->dir, "/tmp/zb-landlock-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	for (size_t i = 0; i < ZB_ARRAY_LEN(dirs); i++) {
		zb_auto(free) char *p = zb_strf("%s/%s", t->dir, dirs[i]);

		assert_int_equal(mkdir(p, 0755), 0);
	}
	for (size_t i = 0; i < ZB_ARRAY_LEN(files); i++) {
		zb_auto(free) char *p = zb_strf("%s/%s", t->dir, files[i]);
		int fd = open(p, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);

		assert_true(fd >= 0);
		assert_int_equal(write(fd, "#!/bin/true\n", 12), 12);
		close(fd);
	}
	assert_true(zb_test_plan_minimal(&t->plan));
	for (size_t i = 0; i < ZB_ARRAY_LEN(places); i++) {
		zb_auto(free) char *p =
			zb_strf("%s/%s", t->dir, places[i].name);
		struct zb_place *pl =
			zb_test_place(&t->plan, places[i].kind, p, "",
				      places[i].rights, places[i].is_dir);

		assert_non_null(pl);
		pl->carved = places[i].carved;
	}
	assert_non_null(
		zb_test_place(&t->plan, ZB_PLACE_DEV, "/dev", NULL, RW, true));
	assert_non_null(zb_test_place(&t->plan, ZB_PLACE_RUNTIME, "/usr", "",
				      RX, true));
}

static void fell(struct tree *t)
{
	static const char *const names[] = {
		"home/moved",	"home/f",   "home/src/app/.env",
		"home/src/app", "home/src", "home",
		"ro/f",		"ro",	    "data/made",
		"data/f",	"data",	    "one",
		"other",	"",
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(names); i++) {
		zb_auto(free) char *p = zb_strf("%s/%s", t->dir, names[i]);

		if (unlink(p))
			rmdir(p);
	}
	zb_test_plan_done(&t->plan);
}

enum act {
	OPEN_R,
	OPEN_W,
	TRUNC,
	LIST,
	MAKE,
	REMOVE,
	RENAME,
	EXEC
};

static int try(const char *dir, enum act act, const char *name)
{
	char path[256], to[300];
	int fd = -1;

	snprintf(path, sizeof(path), "%s%s", dir, name);
	snprintf(to, sizeof(to), "%s/data/made", dir);
	switch (act) {
	case OPEN_R:
		fd = open(path, O_RDONLY | O_CLOEXEC);
		break;
	case OPEN_W:
		fd = open(path, O_WRONLY | O_CLOEXEC);
		break;
	case TRUNC:
		fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
		break;
	case LIST:
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		break;
	case MAKE:
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		break;
	case REMOVE:
		return unlink(path) ? errno : 0;
	case RENAME:
		return rename(path, to) ? errno : 0;
	case EXEC:
		execl(path, path, (char *)NULL);
		return errno;
	}
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static const struct {
	enum act act;
	const char *name; /* below the tree */
	int errno_;
} acts[] = {
	{OPEN_R, "/home/src/app/.env", EACCES},
	{LIST, "/home/src/app", 0},
	{OPEN_R, "/home/f", EACCES}, /* the carved place lies below HOME */
	{OPEN_W, "/home/f", 0},
	{LIST, "/home", 0},
	{EXEC, "/home/f", EACCES},
	{EXEC, "/ro/f", EACCES},
	{OPEN_R, "/ro/f", 0},
	{OPEN_W, "/ro/f", EACCES},
	{REMOVE, "/ro/f", EACCES},
	{MAKE, "/ro/new", EACCES},
	{MAKE, "/data/made", 0},
	{REMOVE, "/data/made", 0},
	{OPEN_R, "/data/f", 0},
	{OPEN_R, "/one", 0},
	{TRUNC, "/one", 0},
	{REMOVE, "/one", EACCES},
	{OPEN_R, "/other", EACCES},
	{LIST, "/", 0},
};

/* In a child: exit status 0, or the number of the row that differs. */
static int act_inside(const struct tree *t)
{
	struct rules r = make(&t->plan, kernel_abi());
	pid_t pid = fork();
	int status;

	if (!pid) {
		alarm(30);
		if (!enter(&r, kernel_abi()))
			_exit(200);
		for (size_t i = 0; i < ZB_ARRAY_LEN(acts); i++)
			if (try(t->dir, acts[i].act, acts[i].name) !=
			    acts[i].errno_)
				_exit((int)i + 1);
		if (open("/dev/tty", O_RDWR) >= 0 || errno != EACCES)
			_exit(201);
		if (open("/dev/null", O_RDWR) < 0)
			_exit(202);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	zb_landlock_rules_done(r.v, r.n);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void kernel_agrees(void **state)
{
	struct tree t;
	int rc;

	(void)state;
	grow(&t);
	/* Control: outside, as this user, each act works. */
	for (size_t i = 0; i < ZB_ARRAY_LEN(acts); i++)
		if (acts[i].act == OPEN_R || acts[i].act == LIST ||
		    acts[i].act == OPEN_W)
			assert_int_equal(try(t.dir, acts[i].act, acts[i].name),
					 0);
	rc = act_inside(&t);
	if (rc > 0 && rc <= (int)ZB_ARRAY_LEN(acts))
		fail_msg("%s, act %d", acts[rc - 1].name, acts[rc - 1].act);
	assert_int_equal(rc, 0);
	fell(&t);
}

/* The judge can say no: with READ_FILE on HOME the secret can be read. */
static void one_right_too_many_is_noticed(void **state)
{
	struct tree t;
	struct rules r;
	pid_t pid;
	int status;

	(void)state;
	grow(&t);
	r = make(&t.plan, kernel_abi());
	for (size_t i = 0; i < r.n; i++)
		if (strstr(r.v[i].path, "/home"))
			r.v[i].access |= ZB_LL_READ_FILE;
	pid = fork();
	if (!pid) {
		alarm(30);
		if (!enter(&r, kernel_abi()))
			_exit(200);
		_exit(try(t.dir, OPEN_R, "/home/src/app/.env") ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	zb_landlock_rules_done(r.v, r.n);
	fell(&t);
}

/* The kernel takes every rule of every plan (no EINVAL): on stand-ins. */
static void kernel_takes_every_right(void **state)
{
	(void)state;
	for (size_t i = 0; zb_test_plan_names[i]; i++) {
		struct zb_plan plan;
		struct rules r;
		pid_t pid;
		int status;

		assert_true(zb_test_plan(zb_test_plan_names[i], &plan));
		r = make(&plan, kernel_abi());
		for (size_t k = 0; k < r.n; k++) {
			free(r.v[k].path);
			r.v[k].path =
				zb_strdup(r.v[k].is_dir ? "/" : "/dev/null");
		}
		pid = fork();
		if (!pid)
			_exit(!enter(&r, kernel_abi()));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		zb_landlock_rules_done(r.v, r.n);
		zb_test_plan_done(&plan);
	}
}

#endif

int main(void)
{
	const struct CMUnitTest pure[] = {
		cmocka_unit_test(handles_what_the_kernel_knows),
		cmocka_unit_test(needs_landlock),
		cmocka_unit_test(rights_by_plan),
		cmocka_unit_test(rules_are_sound),
		cmocka_unit_test(nothing_reads_into_a_carved_place),
		cmocka_unit_test(names),
#ifdef __linux__
		cmocka_unit_test(kernel_takes_every_right),
		cmocka_unit_test(kernel_agrees),
		cmocka_unit_test(one_right_too_many_is_noticed),
#endif
	};
	size_t n = ZB_ARRAY_LEN(pure);

#ifdef __linux__
	const char *must = getenv("ZOTBOX_MUST_SANDBOX");

	/* Without Landlock the last three cannot be tried. */
	if (kernel_abi() < 1 && !(must && !strcmp(must, "1"))) {
		printf("# no Landlock in this kernel: rules not tried\n");
		n -= 3;
	}
#endif
	return _cmocka_run_group_tests("landlock_rules", pure, n, NULL, NULL);
}
