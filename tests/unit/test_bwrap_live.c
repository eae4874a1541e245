/* test_bwrap_live.c - the real bubblewrap with what bwrap_args.c makes of a
 * plan for this machine: a shell looks around inside and says what it finds.
 * As root it is done twice, the second time as an ordinary user. */
#include "config.h"

#include "../golden/plans.h"

#include "cleanup.h"
#include "platform/linux/bwrap_args.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define RO     (ZB_MAY_READ | ZB_MAY_LIST)
#define RX     (RO | ZB_MAY_EXEC)
#define RW     (RO | ZB_MAY_WRITE | ZB_MAY_CREATE)
#define NOBODY 65534

struct world {
	char dir[64]; /* /tmp/zb-bwrap-XXXXXX */
	struct zb_plan plan;
};

static char *in(const struct world *w, const char *name)
{
	char *path = zb_strf("%s/%s", w->dir, name);

	assert_non_null(path);
	return path;
}

static void make_dir(const struct world *w, const char *name)
{
	zb_auto(free) char *path = in(w, name);

	assert_int_equal(mkdir(path, 0755), 0);
}

static void make_file(const struct world *w, const char *name, const char *text)
{
	zb_auto(free) char *path = in(w, name);
	zb_auto(file) FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
}

static void place(struct world *w, enum zb_place_kind kind, const char *path,
		  const char *source, unsigned rights, bool is_dir)
{
	assert_non_null(
		zb_test_place(&w->plan, kind, path, source, rights, is_dir));
}

/* /bin and its like: a link or a directory, as this machine has it. */
static void system_dir(struct world *w, const char *path)
{
	char to[256];
	ssize_t n = readlink(path, to, sizeof(to) - 1);

	if (n > 0) {
		to[n] = '\0';
		place(w, ZB_PLACE_LINK, path, to, 0, false);
	} else if (access(path, F_OK) == 0) {
		place(w, ZB_PLACE_SYSTEM, path, "", RX, true);
	}
}

static void build(struct world *w)
{
	static const char *const dirs[] = {"home", "home/src", "home/src/app",
					   "grant", "stage"};
	zb_auto(free) char *home = NULL, *home_in = NULL, *pin = NULL,
			   *pin_in = NULL, *app = NULL, *grant = NULL,
			   *file = NULL, *file_in = NULL;

	strcpy(w->dir, "/tmp/zb-bwrap-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	assert_int_equal(chmod(w->dir, 0755), 0);
	for (size_t i = 0; i < ZB_ARRAY_LEN(dirs); i++)
		make_dir(w, dirs[i]);
	make_file(w, "grant/f", "granted\n");
	make_file(w, "one", "before\n");
	home = in(w, "home");
	home_in = in(w, "h");
	pin = in(w, "home/src");
	pin_in = in(w, "h/src");
	app = in(w, "h/src/app");
	grant = in(w, "grant");
	file = in(w, "one");
	file_in = in(w, "one");
	assert_true(zb_test_plan_minimal(&w->plan));
	free(w->plan.cwd);
	w->plan.cwd = zb_strdup(home_in);
	system_dir(w, "/bin");
	place(w, ZB_PLACE_DEV, "/dev", NULL, RW, true);
	place(w, ZB_PLACE_TEXT, "/etc/passwd", "u:x:1:1::/:/bin/sh\n",
	      ZB_MAY_READ, false);
	system_dir(w, "/lib");
	system_dir(w, "/lib64");
	place(w, ZB_PLACE_PROC, "/proc", NULL, RW, true);
	place(w, ZB_PLACE_TMP, "/tmp", NULL, RW, true);
	place(w, ZB_PLACE_DIR, w->dir, NULL, RO, true);
	place(w, ZB_PLACE_HOME, home_in, home, RW, true);
	place(w, ZB_PLACE_PIN, pin_in, pin, RW, true);
	place(w, ZB_PLACE_GRANT, app, grant, RO, true);
	place(w, ZB_PLACE_GRANT, file_in, file, ZB_MAY_READ | ZB_MAY_WRITE,
	      false);
	place(w, ZB_PLACE_RUNTIME, "/usr", "", RX, true);
}

static void own(const struct world *w, uid_t uid)
{
	static const char *const names[] = {
		"",	 "home",    "home/src", "home/src/app",
		"grant", "grant/f", "one"};

	for (size_t i = 0; i < ZB_ARRAY_LEN(names); i++) {
		zb_auto(free) char *path = in(w, names[i]);

		assert_int_equal(chown(path, uid, uid), 0);
	}
}

static void destroy(struct world *w)
{
	static const char *const files[] = {
		"home/new", "home/src/app", "home/src", "home",
		"grant/f",  "grant",	    "one",	"stage"};

	for (size_t i = 0; i < ZB_ARRAY_LEN(files); i++) {
		zb_auto(free) char *path = in(w, files[i]);

		if (unlink(path) && errno == EISDIR)
			assert_int_equal(rmdir(path), 0);
	}
	assert_int_equal(rmdir(w->dir), 0);
	zb_test_plan_done(&w->plan);
}

static int memory(const char *data, size_t len)
{
	int fd = memfd_create("zb-test", 0);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* The arguments on a descriptor, as the driver does it. */
static int args_fd(struct zb_bwrap_args *a)
{
	struct zb_buf b = {0};
	int fd;

	for (size_t i = 0; i < a->n_data; i++) {
		char **slot = &a->args.v[a->data[i].arg];

		free(*slot);
		*slot = zb_strf("%d",
				memory(a->data[i].content, a->data[i].len));
		assert_non_null(*slot);
	}
	for (size_t i = 0; i < a->args.n; i++)
		zb_buf_add(&b, a->args.v[i], strlen(a->args.v[i]) + 1);
	assert_false(b.failed);
	fd = memory(b.data, b.len);
	zb_buf_done(&b);
	return fd;
}

static void become(uid_t uid)
{
	if (uid == getuid())
		return;
	if (setgroups(0, NULL) || setgid(uid) || setuid(uid))
		_exit(99);
}

/* Run bwrap as @uid and collect what it prints. Returns its exit status. */
static int run(char *const argv[], uid_t uid, struct zb_buf *out)
{
	char *const env[] = {(char[]){"PATH=/usr/bin:/bin:/usr/sbin"},
			     (char[]){"PLANNED=yes"}, NULL};
	int pipes[2], status;
	char chunk[4096];
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		become(uid);
		dup2(pipes[1], 1);
		dup2(pipes[1], 2);
		close(pipes[0]);
		close(pipes[1]);
		alarm(60);
		execvpe("bwrap", argv, env);
		dprintf(2, "bwrap: %s", strerror(errno));
		_exit(98);
	}
	close(pipes[1]);
	while ((n = read(pipes[0], chunk, sizeof(chunk))) > 0)
		zb_buf_add(out, chunk, (size_t)n);
	close(pipes[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run_plan(const struct world *w, uid_t uid, bool seal_proc,
		    const char *script, struct zb_buf *out)
{
	struct zb_bwrap_args a;
	struct zb_error err = {0};
	zb_auto(free) char *number = NULL, *text = zb_strdup(script);
	int fd, rc;

	if (zb_bwrap_args(&a, &w->plan, &err))
		fail_msg("%s", err.msg);
	for (size_t i = 0; !seal_proc && i + 2 < a.args.n; i++)
		if (!strcmp(a.args.v[i], "--remount-ro") &&
		    !strcmp(a.args.v[i + 1], "/proc"))
			strcpy(a.args.v[i + 1], "/dev"); /* again */
	fd = args_fd(&a);
	number = zb_strf("%d", fd);
	rc = run((char *[]){(char[]){"bwrap"}, (char[]){"--args"}, number,
			    (char[]){"--"}, (char[]){"/bin/sh"}, (char[]){"-c"},
			    text, NULL},
		 uid, out);
	close(fd);
	for (size_t i = 0; i < a.n_data; i++)
		close(atoi(a.args.v[a.data[i].arg]));
	zb_bwrap_args_done(&a);
	return rc;
}

/* Does any sandbox start on this machine? */
static bool can_sandbox(uid_t uid, struct zb_buf *why)
{
	char *const argv[] = {(char[]){"bwrap"},
			      (char[]){"--unshare-user"},
			      (char[]){"--unshare-net"},
			      (char[]){"--ro-bind"},
			      (char[]){"/"},
			      (char[]){"/"},
			      (char[]){"true"},
			      NULL};

	return run(argv, uid, why) == 0;
}

/* Never writes to a file of the host's kernel: test -w asks. */
static const char look[] =
	"can() { if ( \"$@\" ) 2>/dev/null >&2; then echo \"can: $*\"; "
	"else echo \"cannot: $*\"; fi; }\n"
	"can touch /new\n"
	"can touch /dev/new\n"
	"can touch /dev/shm/new\n"
	"can touch /tmp/new\n"
	"can touch \"$PWD/../new\"\n"
	"can touch new\n"
	"can touch src/new\n"
	"can touch src/app/new\n"
	"can touch src/app/f\n"
	"can mv src moved\n"
	"can rm ../one\n"
	"can test -w /proc/sys/kernel/core_pattern\n"
	"can test -w /proc/sys/kernel/hostname\n"
	"can test -w /proc/irq/default_smp_affinity\n"
	"can test -w /proc/self/comm\n"
	"can test -w /etc/passwd\n"
	"can test -e /root\n"
	"can test -e /sys\n"
	"can test -e /home\n"
	"can sh -c ': </dev/tty'\n"
	"can sh -c ': </dev/null >/dev/full'\n"
	"cat src/app/f /etc/passwd\n"
	"echo after >../one\n"
	"echo \"pid $$\"\n"
	"echo \"env $(env | grep -v -e ^PWD= -e ^OLDPWD= -e ^_= -e ^SHLVL= | "
	"sort | tr '\\n' ' ')\"\n"
	"ls -ld /tmp | cut -c1-10\n"
	"sed -n 's/^CapEff:[^0-9a-f]*/eff /p;s/^CapBnd:[^0-9a-f]*/bnd /p' "
	"/proc/self/status\n"
	"echo \"net $(sed -n 's/^ *\\([a-z0-9]*\\):.*/\\1/p' /proc/net/dev | "
	"tr '\\n' ' ')\"\n"
	"echo \"host $(cat /proc/sys/kernel/hostname)\"\n"
	"rm new src/new\n"
	"true\n";

static void expect(const struct zb_buf *out, const char *line)
{
	zb_auto(free) char *whole = zb_strf("\n%s\n", line);

	if (!strstr(zb_buf_str(out), whole))
		fail_msg("no \"%s\" in:%s", line, zb_buf_str(out));
}

static void look_around(uid_t uid)
{
	static const char *const lines[] = {
		"cannot: touch /new",
		"cannot: touch /dev/new",
		"can: touch /dev/shm/new",
		"can: touch /tmp/new",
		"can: touch new",
		"can: touch src/new",
		"cannot: touch src/app/new",
		"cannot: touch src/app/f",
		"cannot: mv src moved",
		"cannot: rm ../one",
		"cannot: test -w /proc/sys/kernel/core_pattern",
		"cannot: test -w /proc/sys/kernel/hostname",
		"cannot: test -w /proc/irq/default_smp_affinity",
		"cannot: test -w /proc/self/comm",
		"cannot: test -w /etc/passwd",
		"cannot: test -e /root",
		"cannot: test -e /sys",
		"cannot: test -e /home",
		"cannot: sh -c : </dev/tty",
		"can: sh -c : </dev/null >/dev/full",
		"granted",
		"u:x:1:1::/:/bin/sh",
		"pid 1",
		"env PATH=/usr/bin:/bin:/usr/sbin PLANNED=yes ",
		"drwxrwxrwt",
		"eff 0000000000000000",
		"bnd 0000000000000000",
		"net lo ",
		"host sandbox",
	};
	struct zb_buf out = {0};
	struct world w;
	zb_auto(free) char *path = NULL, *above = NULL;
	char text[16] = "";
	int rc, fd;

	build(&w);
	own(&w, uid);
	zb_buf_addc(&out, '\n');
	rc = run_plan(&w, uid, true, look, &out);
	if (rc)
		fail_msg("status %d:%s", rc, zb_buf_str(&out));
	for (size_t i = 0; i < ZB_ARRAY_LEN(lines); i++)
		expect(&out, lines[i]);
	above = zb_strf("cannot: touch %s/h/../new", w.dir);
	expect(&out, above);
	/* The file that was granted for writing is the host's. */
	path = in(&w, "one");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	assert_string_equal(text, "after\n");
	destroy(&w);
	zb_buf_done(&out);
}

static void as_oneself(void **state)
{
	(void)state;
	look_around(getuid());
}

static void as_an_ordinary_user(void **state)
{
	(void)state;
	look_around(NOBODY);
}

/* Were /proc not read-only, root could write there: what the negative answers
 * above rest on. */
static void proc_needs_closing(void **state)
{
	struct zb_buf out = {0};
	struct world w;

	(void)state;
	build(&w);
	zb_buf_addc(&out, '\n');
	assert_int_equal(run_plan(&w, 0, false, look, &out), 0);
	expect(&out, "can: test -w /proc/sys/kernel/core_pattern");
	expect(&out, "can: test -w /proc/self/comm");
	destroy(&w);
	zb_buf_done(&out);
}

/* An interpreter starts from what a plan names. */
static void python_starts(void **state)
{
	struct zb_buf out = {0};
	struct world w;

	(void)state;
	build(&w);
	assert_int_equal(run_plan(&w, getuid(), true,
				  "exec /usr/bin/python3 -I -c 'print(6 * 7)'",
				  &out),
			 0);
	assert_string_equal(zb_buf_str(&out), "42\n");
	destroy(&w);
	zb_buf_done(&out);
}

/* A machine that cannot is a skip, or a failure where it must. */
static int cannot(const char *why)
{
	const char *must = getenv("ZOTBOX_MUST_SANDBOX");

	if (must && !strcmp(must, "1")) {
		printf("1..1\nnot ok 1 - bubblewrap starts\n# %s\n", why);
		return 1;
	}
	printf("1..0 # SKIP bubblewrap cannot start here: %s\n", why);
	return 0;
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(as_oneself),
		cmocka_unit_test(python_starts),
		cmocka_unit_test(as_an_ordinary_user),
		cmocka_unit_test(proc_needs_closing),
	};
	struct CMUnitTest tests[ZB_ARRAY_LEN(all)];
	struct zb_buf why = {0};
	size_t n = 0;
	int rc = 0;

	tests[n++] = all[0];
	if (access("/usr/bin/python3", X_OK) == 0)
		tests[n++] = all[1];
	if (getuid() == 0) {
		tests[n++] = all[2];
		tests[n++] = all[3];
	}
	if (can_sandbox(getuid(), &why))
		rc = _cmocka_run_group_tests("bwrap_live", tests, n, NULL,
					     NULL);
	else
		rc = cannot(zb_buf_str(&why));
	zb_buf_done(&why);
	return rc;
}
