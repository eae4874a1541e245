/* test_floor.c - the Linux floor by itself: hand-made plans, and a broker that
 * allows everything (yes_broker.c), so that whatever is refused here is
 * refused by the kernel. Speaks TAP. As root all of it runs a second time as
 * an ordinary user.
 *
 * Every "cannot" has its control: the same program outside can. */
#include "config.h"

#include "cleanup.h"
#include "fdutil.h"
#include "platform/linux/cgroup.h"
#include "platform/linux/driver.h"
#include "platform/linux/launch.h"
#include "platform/linux/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define OTHER_USER 23456
#define MAX_PLACES 48

/* ---- TAP ----------------------------------------------------------------*/

static struct {
	int points, failed;
} * tally; /* shared with children */
static const char *who = "";

static bool ok(bool good, const char *fmt, ...) ZB_PRINTF(2, 3);
static bool ok(bool good, const char *fmt, ...)
{
	va_list ap;

	tally->points++;
	tally->failed += !good;
	printf("%sok - %s", good ? "" : "not ", who);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	return good;
}

static void note(const char *what, const char *text)
{
	char line[4096];

	snprintf(line, sizeof(line), "%s", text);
	for (char *p = line; *p; p++)
		if (*p == '\n')
			*p = '|';
	printf("# %s: %s\n", what, line);
}

static bool same(const char *got, const char *want, const char *what)
{
	bool good = got && strcmp(got, want) == 0;

	ok(good, "%s", what);
	if (!good) {
		note("got", got ? got : "(nothing)");
		note("not", want);
	}
	return good;
}

static bool has(const char *text, const char *part, const char *what)
{
	bool good = text && strstr(text, part);

	ok(good, "%s", what);
	if (!good) {
		note("in", text ? text : "(nothing)");
		note("not found", part);
	}
	return good;
}

/* ---- a throw-away directory ---------------------------------------------*/

static char dir[64];	/* everything of this run */
static char inside[96]; /* the payload, copied there */
static const char *payload;

static char *at(const char *name)
{
	return zb_strf("%s/%s", dir, name);
}

static void put_file(const char *path, const char *text, int mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		ok(false, "write %s: %s", path, strerror(errno));
	if (fd >= 0) {
		fchmod(fd, (mode_t)mode);
		close(fd);
	}
}

static void copy_payload(void)
{
	int in = open(payload, O_RDONLY | O_CLOEXEC);
	int out = open(inside, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	char buf[65536];
	ssize_t n;

	while (in >= 0 && out >= 0 && (n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, (size_t)n) != n)
			break;
	if (in < 0 || out < 0 || n != 0)
		ok(false, "copy %s: %s", payload, strerror(errno));
	close(in);
	fchmod(out, 0755);
	close(out);
}

static void make_dir(void)
{
	char *sub;

	snprintf(dir, sizeof(dir), "/tmp/zb-floor-XXXXXX");
	if (!mkdtemp(dir))
		ok(false, "mkdtemp: %s", strerror(errno));
	chmod(dir, 0755);
	sub = at("ext");
	mkdir(sub, 0755);
	snprintf(inside, sizeof(inside), "%s/inside", sub);
	free(sub);
	copy_payload();
}

/* Below our own directory only, links not followed. */
static void remove_all(int parent, const char *name)
{
	int fd = openat(parent, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			remove_all(dirfd(d), e->d_name);
	if (d)
		closedir(d);
	unlinkat(parent, name, d ? AT_REMOVEDIR : 0);
}

/* ---- plans by hand ------------------------------------------------------*/

struct made {
	struct zb_plan plan;
	struct zb_place places[MAX_PLACES];
	struct zb_env_var env[4];
};

#define READ_ONLY (ZB_MAY_READ | ZB_MAY_LIST | ZB_MAY_EXEC)
#define EVERY	  (READ_ONLY | ZB_MAY_WRITE | ZB_MAY_CREATE)

static struct zb_place *add(struct made *m, enum zb_place_kind kind,
			    const char *path, const char *source,
			    unsigned rights)
{
	struct zb_place *p = &m->places[m->plan.n_places++];

	*p = (struct zb_place){.kind = kind,
			       .path = zb_strdup(path),
			       .source = zb_strdup(source),
			       .rights = rights,
			       .is_dir = true};
	return p;
}

/* What the loader and the C library need, as this host has it. */
static void add_system(struct made *m)
{
	static const char *const tops[] = {"/bin", "/lib", "/lib32", "/lib64",
					   "/sbin"};
	char link[128];

	for (size_t i = 0; i < ZB_ARRAY_LEN(tops); i++) {
		ssize_t n = readlink(tops[i], link, sizeof(link) - 1);

		if (n > 0) {
			link[n] = '\0';
			add(m, ZB_PLACE_LINK, tops[i], NULL, 0)->link_to =
				zb_strdup(link);
		} else if (access(tops[i], F_OK) == 0) {
			add(m, ZB_PLACE_SYSTEM, tops[i], tops[i], READ_ONLY);
		}
	}
	add(m, ZB_PLACE_SYSTEM, "/usr", "/usr", READ_ONLY);
}

static void set_env(struct made *m, const char *name, const char *value)
{
	m->env[m->plan.n_env++] = (struct zb_env_var){
		.name = zb_strdup(name), .value = zb_strdup(value)};
}

static void limit(struct made *m, enum zb_limit l, uint64_t value)
{
	m->plan.scope.limits[l].set = true;
	m->plan.scope.limits[l].value = value;
}

static int by_path(const void *a, const void *b)
{
	const struct zb_place *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static void make(struct made *m)
{
	char *ext = at("ext");

	*m = (struct made){0};
	m->plan.name = zb_strdup("floor");
	m->plan.cwd = zb_strdup("/ext");
	m->plan.exec_path = zb_strdup("/ext/inside");
	m->plan.places = m->places;
	m->plan.env = m->env;
	add(m, ZB_PLACE_DEV, "/dev", NULL, READ_ONLY | ZB_MAY_WRITE);
	add(m, ZB_PLACE_EXTENSION, "/ext", ext, READ_ONLY);
	add(m, ZB_PLACE_PROC, "/proc", NULL, ZB_MAY_READ | ZB_MAY_LIST);
	add(m, ZB_PLACE_TMP, "/tmp", NULL, EVERY);
	add_system(m);
	set_env(m, "PLANNED", "yes");
	free(ext);
}

static void unmake(struct made *m)
{
	free(m->plan.name);
	free(m->plan.cwd);
	free(m->plan.exec_path);
	zb_strv_done(&m->plan.argv);
	for (size_t i = 0; i < m->plan.n_places; i++) {
		free(m->places[i].path);
		free(m->places[i].source);
		free(m->places[i].link_to);
	}
	for (size_t i = 0; i < m->plan.n_env; i++) {
		free(m->env[i].name);
		free(m->env[i].value);
	}
}

/* ---- running one --------------------------------------------------------*/

struct box {
	struct zb_proc *proc;
	int in, out;		 /* our ends */
	int told[2];		 /* on_exit and on_denial write here */
	struct zb_exit exit;	 /* of on_exit; reason copied */
	struct zb_denial denial; /* the last */
	int denials;
};

static void on_exit_told(void *ctx, const struct zb_exit *e)
{
	struct box *b = ctx;

	b->exit = *e;
	b->exit.reason = zb_strdup(e->reason);
	if (write(b->told[1], "e", 1) != 1)
		abort();
}

static void on_denial_told(void *ctx, struct zb_denial *d)
{
	struct box *b = ctx;

	zb_denial_done(&b->denial);
	b->denial = *d;
	b->denials++;
	if (write(b->told[1], "d", 1) != 1)
		abort();
}

static struct zb_host host;

static int start(struct box *b, struct made *m, struct zb_error *err,
		 const char *act, const char *arg)
{
	const struct zb_spawn_options opt = {
		.on_denial = on_denial_told, .on_exit = on_exit_told, .ctx = b};
	int in[2], out[2], rc;

	*b = (struct box){0};
	qsort(m->places, m->plan.n_places, sizeof(m->places[0]), by_path);
	zb_strv_add(&m->plan.argv, "inside");
	zb_strv_add(&m->plan.argv, act);
	if (arg)
		zb_strv_add(&m->plan.argv, arg);
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) ||
	    pipe2(b->told, O_CLOEXEC))
		return zb_fail_sys(err, errno, "pipe");
	rc = zb_driver_spawn(&m->plan, &host, (int[3]){in[0], out[1], 2}, &opt,
			     &b->proc, err);
	close(in[0]);
	close(out[1]);
	b->in = in[1];
	b->out = out[0];
	return rc;
}

static void finish(struct box *b)
{
	struct zb_exit e = {0};

	zb_driver_reap(b->proc, b->proc ? &e : NULL);
	free(e.reason);
	free(b->exit.reason);
	zb_denial_done(&b->denial);
	close(b->in);
	close(b->out);
	close(b->told[0]);
	close(b->told[1]);
}

/* Wait at most @ms for a letter of a callback: @what. */
static bool told(struct box *b, char what, int ms)
{
	int64_t until = zb_monotonic_ms() + ms;
	struct pollfd p = {.fd = b->told[0], .events = POLLIN};
	char c;

	for (;;) {
		int64_t left = until - zb_monotonic_ms();

		if (left <= 0 || poll(&p, 1, (int)left) <= 0)
			return false;
		if (read(b->told[0], &c, 1) == 1 && c == what)
			return true;
	}
}

/* Read until end of file, or (with @stop) until that is there, or @ms.
 * Return: heap text; *@eof whether it ended. */
static char *read_text(int fd, const char *stop, int ms, bool *eof)
{
	int64_t until = zb_monotonic_ms() + ms;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct zb_buf b = {0};
	char buf[4096];

	*eof = false;
	for (;;) {
		int64_t left = until - zb_monotonic_ms();
		ssize_t n;

		if (left <= 0 || poll(&p, 1, (int)left) <= 0)
			break;
		n = read(fd, buf, sizeof(buf));
		if (n <= 0) {
			*eof = n == 0;
			break;
		}
		zb_buf_add(&b, buf, (size_t)n);
		if (stop && strstr(zb_buf_str(&b), stop))
			break;
	}
	zb_buf_addc(&b, '\n');
	return zb_buf_steal(&b);
}

/* Start with plan @m, read all it says, end. NULL: did not start. */
static char *run(struct made *m, const char *act, const char *arg)
{
	struct zb_error err = {0};
	struct box b;
	char *text = NULL;
	bool eof;

	if (start(&b, m, &err, act, arg))
		ok(false, "start %s: %s", act, err.msg);
	else
		text = read_text(b.out, NULL, 20000, &eof);
	finish(&b);
	return text;
}

/* The same program without any sandbox: the control. */
static char *run_outside(const char *act, const char *arg)
{
	const char *const argv[] = {inside, act, arg, NULL};
	posix_spawn_file_actions_t fa;
	int out[2];
	char *text;
	bool eof;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC))
		return NULL;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, out[1], 1);
	if (posix_spawn(&pid, inside, &fa, NULL, (char *const *)(uintptr_t)argv,
			environ))
		pid = 0;
	posix_spawn_file_actions_destroy(&fa);
	close(out[1]);
	text = read_text(out[0], NULL, 10000, &eof);
	close(out[0]);
	if (pid)
		waitpid(pid, NULL, 0);
	return text;
}

/* The rest of the line that begins with @name and a blank (or a tab after a
 * colon). Heap; NULL if there is none. */
static char *fact(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = text; p && *p; p = strchr(p, '\n'), p += !!p) {
		if (!strncmp(p, name, n) && strchr(" :\n", p[n])) {
			p += n;
			p += strspn(p, ": \t");
			return zb_strndup(p, strcspn(p, "\n"));
		}
	}
	return NULL;
}

static void fact_is(const char *text, const char *name, const char *want)
{
	char *got = fact(text, name), *what = zb_strf("%s: %s", name, want);

	same(got, want, what);
	free(got);
	free(what);
}

/* It could not be opened, whatever the errno. */
static void refused(const char *text, const char *name)
{
	char *got = fact(text, name);

	ok(got && strcmp(got, "opened") != 0, "%s is refused: %s", name,
	   got ? got : "?");
	free(got);
}

static int wait_child(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* ---- what is and is not there -------------------------------------------*/

static void check_namespaces(const char *in, const char *out)
{
	static const char *const kinds[] = {"user",   "pid", "ipc", "uts",
					    "cgroup", "net", "mnt"};

	for (size_t i = 0; i < ZB_ARRAY_LEN(kinds); i++) {
		char *name = zb_strf("ns-%s", kinds[i]);
		char *a = fact(in, name), *b = fact(out, name);

		ok(a && b && *a && *b && strcmp(a, b) != 0,
		   "a fresh %s namespace (%s, outside %s)", kinds[i],
		   a ? a : "?", b ? b : "?");
		free(name);
		free(a);
		free(b);
	}
}

static void check_root(const char *in)
{
	char *got = fact(in, "root"), *save = NULL;
	bool good = got && strstr(got, "ext") && strstr(got, "usr");

	for (char *w = got ? strtok_r(got, " ", &save) : NULL; w;
	     w = strtok_r(NULL, " ", &save)) {
		static const char *const planned[] = {
			"bin",	 "dev",	 "ext",	 "lib", "lib32",
			"lib64", "proc", "sbin", "tmp", "usr"};
		bool found = false;

		for (size_t i = 0; i < ZB_ARRAY_LEN(planned); i++)
			found |= !strcmp(planned[i], w);
		if (!found)
			note("unplanned", w);
		good &= found;
	}
	ok(good, "only planned places exist in /");
	free(got);
}

static void what_is_inside(void)
{
	int leak = open("/etc/passwd", O_RDONLY); /* inherited by children */
	char *out, *in, *out_env, *fds;
	struct made m;

	dup2(leak, 77);
	setenv("CANARY", "outside", 1);
	make(&m);
	in = run(&m, "facts", NULL);
	out = run_outside("facts", NULL);
	unmake(&m);
	close(77);
	close(leak);
	unsetenv("CANARY");
	check_namespaces(in, out);
	check_root(in);
	fact_is(in, "CapInh", "0000000000000000");
	fact_is(in, "CapPrm", "0000000000000000");
	fact_is(in, "CapEff", "0000000000000000");
	fact_is(in, "CapBnd", "0000000000000000");
	fact_is(in, "CapAmb", "0000000000000000");
	fact_is(in, "NoNewPrivs", "1");
	fact_is(in, "Seccomp", "2");
	fact_is(out, "NoNewPrivs", "0");
	fact_is(in, "interfaces", "lo");
	fact_is(in, "ppid", "1");
	fact_is(in, "pids", "1 2");
	fact_is(in, "session", "own");
	fact_is(in, "pts", "ptmx");
	refused(in, "core_pattern");
	fact_is(out, "core_pattern", geteuid() ? "EACCES" : "opened");
	fact_is(in, "descriptors", "0 1 2");
	fds = fact(out, "descriptors");
	has(fds, "77", "control: outside the descriptor is inherited");
	out_env = strstr(out ? out : "", "env CANARY=outside") ? out : NULL;
	ok(out_env, "control: outside the variable is inherited");
	ok(in && !strstr(in, "CANARY"), "no unplanned variable");
	fact_is(in, "env", "PLANNED=yes");
	fact_is(in, "environ-of-1", "EACCES");
	fact_is(in, "memory-of-1", "EACCES");
	fact_is(in, "program-of-1", "EACCES");
	fact_is(in, "root-of-1", "EACCES");
	free(fds);
	free(in);
	free(out);
}

/* In a child whose controlling terminal is a fresh one: the sandbox has no
 * way to it. */
static void terminal_of_ours(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	char name[64] = "";
	char *in, *out;
	struct made m;
	int tty;

	if (master < 0 || grantpt(master) || unlockpt(master) ||
	    ptsname_r(master, name, sizeof(name)) || setsid() < 0)
		ok(false, "make a terminal: %s", strerror(errno));
	tty = open(name, O_RDWR | O_CLOEXEC);
	ioctl(tty, TIOCSCTTY, 0);
	out = run_outside("facts", NULL);
	fact_is(out, "tty", "opened");
	make(&m);
	in = run(&m, "facts", NULL);
	unmake(&m);
	refused(in, "tty");
	free(in);
	free(out);
}

static void no_terminal(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		terminal_of_ours();
		fflush(stdout);
		_exit(0);
	}
	ok(wait_child(pid) == 0, "the terminal test ran through");
}

/* The kernel refuses, although the broker said yes to everything. */
static void floor_alone(void)
{
	char *secret = at("secret"), *grant = at("grant"), *key;
	char *text;
	struct made m;

	mkdir(grant, 0755);
	key = zb_strf("%s/key", grant);
	put_file(secret, "S", 0644);
	put_file(key, "K", 0644);
	text = run_outside("read", secret);
	fact_is(text, "read", "S");
	free(text);
	make(&m);
	text = run(&m, "read", secret);
	unmake(&m);
	fact_is(text, "read", "ENOENT");
	free(text);

	make(&m);
	add(&m, ZB_PLACE_GRANT, "/grant", grant, ZB_MAY_READ | ZB_MAY_LIST);
	text = run(&m, "read", "/grant/key");
	fact_is(text, "read", "K");
	free(text);
	unmake(&m);
	make(&m);
	add(&m, ZB_PLACE_GRANT, "/grant", grant, ZB_MAY_READ | ZB_MAY_LIST)
		->carved = true;
	text = run(&m, "read", "/grant/key");
	fact_is(text, "stat", "there");
	fact_is(text, "read", "EACCES");
	free(text);
	unmake(&m);

	make(&m);
	text = run(&m, "write", "/ext/new");
	fact_is(text, "write", "EROFS");
	free(text);
	unmake(&m);
	make(&m);
	text = run(&m, "write", "/tmp/new");
	fact_is(text, "write", "opened");
	free(text);
	unmake(&m);
	free(secret);
	free(grant);
	free(key);
}

static void limits_inside(void)
{
	struct made m;
	char *text;

	make(&m);
	limit(&m, ZB_LIMIT_OPEN_FILES, 123);
	limit(&m, ZB_LIMIT_FILE_SIZE, 1 << 20);
	limit(&m, ZB_LIMIT_CPU_SECONDS, 77);
	limit(&m, ZB_LIMIT_PROCESSES, 10);
	text = run(&m, "limits", NULL);
	fact_is(text, "nofile", "123 123");
	fact_is(text, "fsize", "1048576 1048576");
	fact_is(text, "cpu", "77 78");
	fact_is(text, "core", "0 0");
	fact_is(text, "nproc", "160 160");
	fact_is(text, "as", "-1 -1");
	free(text);
	unmake(&m);
}

/* ---- ends ---------------------------------------------------------------*/

static void how_it_ends(const char *act, const char *arg, bool signalled,
			int code, const char *reason)
{
	struct zb_error err = {0};
	struct made m;
	struct box b;

	make(&m);
	limit(&m, ZB_LIMIT_CPU_SECONDS, 1);
	if (start(&b, &m, &err, act, arg)) {
		ok(false, "start: %s", err.msg);
	} else {
		ok(told(&b, 'e', 10000), "the end of %s %s is told", act, arg);
		ok(b.exit.signalled == signalled && b.exit.code == code,
		   "%s %s: %s %d", act, arg, signalled ? "signal" : "status",
		   code);
		if (reason)
			has(b.exit.reason, reason, "with its reason");
		else
			ok(!b.exit.reason, "with no reason of ours");
	}
	finish(&b);
	unmake(&m);
}

static void cannot_start(void)
{
	struct zb_error err = {0};
	struct made m;
	struct box b;
	int rc;

	make(&m);
	free(m.plan.exec_path);
	m.plan.exec_path = zb_strdup("/ext/absent");
	rc = start(&b, &m, &err, "facts", NULL);
	ok(rc == ZB_ESYS && err.sys == ENOENT, "an absent program: %d", rc);
	has(err.msg, "/ext/absent: No such file", "and which it was");
	ok(!b.proc, "nothing is left");
	finish(&b);
	unmake(&m);
}

/* Its stdout ends when it lets go of it, not when the sandbox ends. */
static void end_of_output(void)
{
	struct zb_error err = {0};
	struct made m;
	struct box b;
	bool eof = false;
	char *text = NULL;

	make(&m);
	if (ok(!start(&b, &m, &err, "deaf", NULL), "start %s", err.msg)) {
		text = read_text(b.out, NULL, 3000, &eof);
		ok(eof, "nobody else holds its stdout");
		ok(!told(&b, 'e', 200), "and it still runs");
		ok(write(b.in, "x", 1) < 0 && errno == EPIPE,
		   "nobody else holds its stdin");
	}
	free(text);
	finish(&b);
	unmake(&m);
}

static void children_go_on(void)
{
	struct zb_error err = {0};
	int64_t began;
	struct made m;
	struct box b;
	bool eof = false;
	char *text = NULL;

	make(&m);
	if (ok(!start(&b, &m, &err, "orphan", NULL), "start %s", err.msg)) {
		ok(told(&b, 'e', 3000) && b.exit.code == 7,
		   "the first process ended");
		text = read_text(b.out, "still here", 5000, &eof);
		has(text, "still here", "its child goes on");
		began = zb_monotonic_ms();
		zb_driver_stop(b.proc);
		zb_driver_stop(b.proc);
		free(text);
		text = read_text(b.out, NULL, 3000, &eof);
		ok(eof, "stop ends it (%d ms)",
		   (int)(zb_monotonic_ms() - began));
	}
	free(text);
	finish(&b);
	unmake(&m);
}

static void a_signal_for_it(void)
{
	struct zb_error err = {0};
	struct made m;
	struct box b;

	make(&m);
	if (ok(!start(&b, &m, &err, "deaf", NULL), "start %s", err.msg)) {
		ok(kill(zb_driver_pid(b.proc), 0) == 0, "its process is known");
		ok(!zb_driver_signal(b.proc, SIGTERM, &err), "signal");
		ok(told(&b, 'e', 3000) && b.exit.signalled &&
			   b.exit.code == SIGTERM,
		   "it ended by that signal");
		ok(zb_driver_signal(b.proc, SIGTERM, &err) == ZB_ESYS,
		   "then there is nobody to signal");
	}
	finish(&b);
	unmake(&m);
}

static void killed_from_outside(void)
{
	struct zb_error err = {0};
	char line[256] = "", path[64];
	struct made m;
	struct box b;
	int ppid = 0;
	FILE *f;

	make(&m);
	if (ok(!start(&b, &m, &err, "deaf", NULL), "start %s", err.msg)) {
		snprintf(path, sizeof(path), "/proc/%d/status",
			 zb_driver_pid(b.proc));
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "PPid: %d", &ppid) == 1)
				break;
		if (f)
			fclose(f);
		ok(ppid > 1 && kill(ppid, SIGKILL) == 0, "kill process 1");
		ok(told(&b, 'e', 3000), "that is noticed");
		has(b.exit.reason, "killed from outside", "and named");
	}
	finish(&b);
	unmake(&m);
}

/* ---- limits that the supervisor keeps -----------------------------------*/

/* The memory that is advised: the limit doubled until it holds what was seen
 * (nothing is said of it where the kernel's group ended it). */
static void holds_used(const struct box *b, uint64_t limit)
{
	const char *said =
		b->exit.reason ? strstr(b->exit.reason, "used ") : NULL;
	uint64_t used = said ? strtoull(said + 5, NULL, 10) : 0;
	zb_auto(free) char *want = NULL;

	do
		limit *= 2;
	while (limit <= used);
	want = zb_strf("%lluM", (unsigned long long)limit);
	same(b->denial.grant_value, want, "and what would allow it");
}

/* @grant NULL: see holds_used(). */
static void over_limit(const char *act, const char *arg, enum zb_limit which,
		       uint64_t value, const char *reason, const char *detail,
		       const char *grant)
{
	struct zb_error err = {0};
	struct made m;
	struct box b;

	make(&m);
	limit(&m, which, value);
	if (start(&b, &m, &err, act, arg)) {
		ok(false, "start: %s", err.msg);
	} else {
		ok(told(&b, 'e', 15000), "%s %s is ended", act, arg);
		has(b.exit.reason, reason, "with the limit named");
		note("reason", b.exit.reason ? b.exit.reason : "");
		ok(b.denials > 0 || told(&b, 'd', 1000), "and recorded");
		ok(b.denial.op == ZB_OP_LIMIT && b.denial.by == ZB_BY_LIMIT,
		   "as a limit");
		same(b.denial.detail, detail, "which one");
		if (grant)
			same(b.denial.grant_value, grant,
			     "and what would allow it");
		else
			holds_used(&b, value >> 20);
	}
	finish(&b);
	unmake(&m);
}

static void within_limit(const char *act, const char *arg, const char *says,
			 enum zb_limit which, uint64_t value)
{
	struct zb_error err = {0};
	struct made m;
	struct box b;
	bool eof;
	char *text = NULL;

	make(&m);
	limit(&m, which, value);
	if (start(&b, &m, &err, act, arg)) {
		ok(false, "start: %s", err.msg);
	} else {
		text = read_text(b.out, says, 15000, &eof);
		has(text, says, act);
		ok(!told(&b, 'd', 400), "%s %s is within its limit", act, arg);
	}
	free(text);
	finish(&b);
	unmake(&m);
}

/* Where a control group is delegated, the sandbox is born in one of its own,
 * which is gone afterwards. */
static void control_group(void)
{
	struct zb_error err = {0};
	char path[64], text[512] = "", *name;
	struct made m;
	struct box b;
	int fd;

	if (!zb_cgroup_delegated()) {
		ok(true, "a control group of its own # SKIP none is delegated");
		return;
	}
	make(&m);
	limit(&m, ZB_LIMIT_MEMORY, 64 << 20);
	if (ok(!start(&b, &m, &err, "deaf", NULL), "start %s", err.msg)) {
		snprintf(path, sizeof(path), "/proc/%d/cgroup",
			 zb_driver_pid(b.proc));
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
			ok(false, "read %s", path);
		close(fd);
	}
	finish(&b);
	unmake(&m);
	has(text, "/zotbox-", "it is in a control group of its own");
	text[strcspn(text, "\n")] = '\0';
	name = zb_strf("/sys/fs/cgroup%s", text[0] ? strchr(text, '/') : "/x");
	ok(access(name, F_OK) < 0, "which is gone afterwards");
	free(name);
}

static void limits_kept(void)
{
	over_limit("pages", "200", ZB_LIMIT_MEMORY, 64 << 20,
		   "exceeded memory limit 64 MiB and was killed", "memory",
		   NULL);
	over_limit("tmpfile", "200", ZB_LIMIT_MEMORY, 64 << 20,
		   "exceeded memory limit 64 MiB", "memory", NULL);
	over_limit("behind", "200", ZB_LIMIT_MEMORY, 64 << 20,
		   "exceeded memory limit 64 MiB", "memory", NULL);
	over_limit("both", "100", ZB_LIMIT_MEMORY, 64 << 20,
		   "exceeded memory limit 64 MiB", "memory", NULL);
	over_limit("forks", "60", ZB_LIMIT_PROCESSES, 20,
		   "exceeded the limit of 20 processes", "processes", "40");
	/* An ordinary user's threads are the kernel's to limit. */
	if (!geteuid())
		over_limit("threads", "400", ZB_LIMIT_PROCESSES, 20,
			   "20 processes, each of up to 16 threads",
			   "processes", "40");
	within_limit("threads", "200", "threaded", ZB_LIMIT_PROCESSES, 20);
	within_limit("both", "50", "filled", ZB_LIMIT_MEMORY, 64 << 20);
	within_limit("pages", "30", "filled", ZB_LIMIT_MEMORY, 64 << 20);
	within_limit("share", "30", "shared", ZB_LIMIT_MEMORY, 64 << 20);
	within_limit("forks", "18", "forked", ZB_LIMIT_PROCESSES, 20);
}

/* ---- the supervisor dies ------------------------------------------------*/

/* In a child: start a stubborn program whose stdout is @out, and wait. */
static _Noreturn void supervise(int out)
{
	const struct zb_spawn_options opt = {0};
	struct zb_error err = {0};
	struct zb_proc *p;
	struct made m;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	make(&m);
	qsort(m.places, m.plan.n_places, sizeof(m.places[0]), by_path);
	zb_strv_add(&m.plan.argv, "inside");
	zb_strv_add(&m.plan.argv, "stubborn");
	if (zb_driver_spawn(&m.plan, &host, (int[3]){null, out, null}, &opt, &p,
			    &err))
		_exit(1);
	for (;;)
		pause();
}

/* Kill the supervisor after @delay_ms, or (-1) once all is up. Return: ms
 * until nobody holds its stdout any more; -1: too long. */
static int die_after(int delay_ms)
{
	int out[2], ms = -1;
	int64_t began;
	bool eof = false;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC))
		return -1;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		close(out[0]);
		supervise(out[1]);
	}
	close(out[1]);
	if (delay_ms < 0)
		free(read_text(out[0], "up", 10000, &eof));
	else
		usleep((useconds_t)delay_ms * 1000);
	kill(pid, SIGKILL);
	began = zb_monotonic_ms();
	waitpid(pid, NULL, 0);
	free(read_text(out[0], NULL, 5000, &eof));
	if (eof)
		ms = (int)(zb_monotonic_ms() - began);
	close(out[0]);
	return ms;
}

static void supervisor_killed(void)
{
	int worst = 0, lost = 0, ms = die_after(-1);

	ok(ms >= 0 && ms < 2000,
	   "kill -9 of the supervisor ends all, daemons too (%d ms)", ms);
	for (int delay = 0; delay < 30; delay++) {
		ms = die_after(delay);
		worst = ms > worst ? ms : worst;
		lost += ms < 0;
	}
	ok(lost == 0 && worst < 2000,
	   "also while the sandbox is being made (worst %d ms)", worst);
}

/* ---- many ---------------------------------------------------------------*/

static int open_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void many(int rounds)
{
	int fds = open_descriptors(), tasks = threads(), bad = 0;

	for (int i = 0; i < rounds; i++) {
		struct zb_error err = {0};
		struct made m;
		struct box b;

		make(&m);
		if (i % 4 == 3) { /* one in four fails to start */
			free(m.plan.exec_path);
			m.plan.exec_path = zb_strdup("/ext/absent");
			bad += !start(&b, &m, &err, "exit", "5");
		} else {
			bad += !!start(&b, &m, &err, "exit", "5");
			bad += !told(&b, 'e', 5000) || b.exit.code != 5;
		}
		finish(&b);
		unmake(&m);
	}
	ok(bad == 0, "%d starts in a row (%d went wrong)", rounds, bad);
	ok(open_descriptors() == fds, "no descriptor is left (%d, before %d)",
	   open_descriptors(), fds);
	ok(threads() == tasks, "no thread is left");
	ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD,
	   "no child is left");
}

static void *start_elsewhere(void *arg)
{
	struct made *m = arg;
	struct zb_error err = {0};
	struct box b;
	int rc = start(&b, m, &err, "exit", "0");

	finish(&b);
	return (void *)(intptr_t)rc;
}

static void main_thread_only(void)
{
	struct made m;
	pthread_t t;
	void *rc = NULL;

	make(&m);
	if (pthread_create(&t, NULL, start_elsewhere, &m) == 0)
		pthread_join(t, &rc);
	ok((intptr_t)rc == ZB_EUSAGE, "only the main thread may start one");
	unmake(&m);
}

/* ---- swapped paths, and what bwrap gets ---------------------------------*/

/* Put a shell script in bwrap's place for one start. Return: the code. */
static int start_through(const char *script, struct made *m,
			 struct zb_error *err)
{
	char *shim = at("bwrap"), *saved = host.bwrap;
	struct box b;
	int rc;

	put_file(shim, script, 0755);
	host.bwrap = shim;
	rc = start(&b, m, err, "exit", "0");
	host.bwrap = saved;
	finish(&b);
	free(shim);
	return rc;
}

static void swapped_paths(void)
{
	char *grant = at("swap"), *moved = at("swap.old"), *script;
	struct zb_error err = {0};
	struct made m;
	int rc;

	mkdir(grant, 0755);
	script = zb_strf("#!/bin/sh\nmv %s %s && mkdir %s\nexec %s \"$@\"\n",
			 grant, moved, grant, host.bwrap);
	make(&m);
	add(&m, ZB_PLACE_GRANT, "/grant", grant, ZB_MAY_READ | ZB_MAY_LIST);
	rc = start_through(script, &m, &err);
	unmake(&m);
	ok(rc == ZB_EPOLICY, "a directory swapped before the mount: %d", rc);
	has(err.msg, "swapped while starting: /grant", "and which");

	rmdir(moved);
	rmdir(grant);
	if (symlink("/etc", grant))
		ok(false, "symlink: %s", strerror(errno));
	make(&m);
	add(&m, ZB_PLACE_GRANT, "/grant", grant, ZB_MAY_READ | ZB_MAY_LIST);
	rc = start_through("#!/bin/sh\nexit 1\n", &m, &err);
	unmake(&m);
	ok(rc == ZB_EPOLICY, "a place that became a link: %d", rc);
	has(err.msg, "has become a symbolic link", "and why");
	unlink(grant);
	free(grant);
	free(moved);
	free(script);
}

/* ---- copies -------------------------------------------------------------*/

static void make_copied(struct made *m, const char *source)
{
	struct zb_place *p;

	make(m);
	p = add(m, ZB_PLACE_SYSTEM, "/etc/small", source, ZB_MAY_READ);
	p->is_dir = false;
	p->copied = true;
}

/* Start with it as a copied place, do @act to it. */
static char *with_copied(const char *source, const char *act)
{
	struct made m;
	char *text;

	make_copied(&m, source);
	text = run(&m, act, "/etc/small");
	unmake(&m);
	return text;
}

static void no_longer_copied(const char *source, const char *says)
{
	struct zb_error err = {0};
	struct made m;
	int rc;

	make_copied(&m, source);
	rc = start_through("#!/bin/sh\nexit 1\n", &m, &err);
	unmake(&m);
	ok(rc == ZB_EPOLICY, "no copy of what it has become: %d", rc);
	has(err.msg, says, "and why");
}

static void copied_files(void)
{
	char *small = at("small"), *text;

	put_file(small, "as it is", 0644);
	text = with_copied(small, "read");
	has(text, "read as it is\n", "a copy has what the file has");
	free(text);
	text = with_copied(small, "write");
	has(text, "write EROFS\n", "and cannot be changed");
	free(text);
	text = run_outside("write", small);
	has(text, "write opened\n", "control: the file can");
	free(text);
	if (geteuid()) {
		chmod(small, 0);
		text = with_copied(small, "read");
		has(text, "read EACCES\n", "what the user may not read");
		free(text);
		chmod(small, 0644);
	}
	if (truncate(small, 2 << 20))
		ok(false, "truncate: %s", strerror(errno));
	no_longer_copied(small, "has become another file");
	unlink(small);
	if (symlink("/etc/passwd", small))
		ok(false, "symlink: %s", strerror(errno));
	no_longer_copied(small, "has become a symbolic link");
	unlink(small);
	free(small);
}

static void nothing_for_bwrap(void)
{
	char *seen = at("seen"), *script, buf[4096] = "";
	struct zb_error err = {0};
	struct made m;
	int fd, rc;

	script = zb_strf("#!/bin/sh\nenv >%s\nexec %s \"$@\"\n", seen,
			 host.bwrap);
	make(&m);
	set_env(&m, "LD_PRELOAD", "/ext/evil.so");
	rc = start_through(script, &m, &err);
	unmake(&m);
	ok(rc == 0, "start through a wrapper: %s", err.msg);
	fd = open(seen, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, buf, sizeof(buf) - 1) < 0)
		ok(false, "read %s", seen);
	close(fd);
	has(buf, "PWD=", "control: its environment was seen");
	ok(!strstr(buf, "LD_PRELOAD") && !strstr(buf, "PLANNED"),
	   "no planned variable reaches bwrap");
	unlink(seen);
	free(seen);
	free(script);
}

/* ---- hosts that cannot --------------------------------------------------*/

static void shim_fails(const char *name, const char *script, const char *says)
{
	struct zb_error err = {0};
	struct made m;
	int rc;

	make(&m);
	rc = start_through(script, &m, &err);
	unmake(&m);
	ok(rc == ZB_EUNSUPPORTED, "%s: code %d", name, rc);
	has(err.msg, says, name);
	has(err.msg, "remedy: ", "with a remedy");
}

/* Probe with another PATH. */
static void probe_with(const char *path, const char *name, const char *says,
		       bool full)
{
	char *saved = zb_strdup(getenv("PATH"));
	struct zb_error err = {0};
	struct zb_host h;
	int rc;

	setenv("PATH", path, 1);
	rc = full ? zb_probe(&h, &err) : zb_probe_look(&h, &err);
	setenv("PATH", saved ? saved : "", 1);
	free(saved);
	ok(rc == ZB_EUNSUPPORTED && !h.ok && h.n_missing > 0, "%s: code %d",
	   name, rc);
	has(err.msg, says, name);
	zb_host_done(&h);
}

static void other_bwraps(void)
{
	char *path = at("shim"), *shim = at("shim/bwrap"), *script;

	mkdir(path, 0755);
	probe_with("/nonexistent", "no bwrap in PATH",
		   "bubblewrap is not installed", true);
	probe_with("/nonexistent", "no bwrap in PATH, at a look",
		   "bubblewrap is not installed", false);
	shim_fails("bwrap refuses",
		   "#!/bin/sh\ncase $1 in --version) echo \"bubblewrap "
		   "0.9.0\";; *) echo \"bwrap: setting up uid map: Permission "
		   "denied\" >&2; exit 1;; esac\n",
		   "bwrap: setting up uid map: Permission denied");
	shim_fails("bwrap says nothing", "#!/bin/sh\nexit 1\n",
		   "does not work");
	put_file(shim, "#!/bin/sh\nexit 1\n", 0755);
	probe_with(path, "bwrap is no bwrap", "bubblewrap does not work", true);
	script = zb_strf("#!/bin/sh\ncase $1 in --version) echo bubblewrap "
			 "0.4.0;; *) exec %s \"$@\";; esac\n",
			 host.bwrap);
	put_file(shim, script, 0755);
	probe_with(path, "an old bwrap", "is too old: need 0.5.0", true);
	unlink(shim);
	rmdir(path);
	free(script);
	free(path);
	free(shim);
}

/* In a child: probe, and leave with what was found. */
static _Noreturn void probe_and_leave(const char *says)
{
	struct zb_error err = {0};
	struct zb_host h;
	int rc = zb_probe(&h, &err);

	if (rc != ZB_EUNSUPPORTED || !strstr(err.msg, says))
		note("probe", err.msg[0] ? err.msg : "found nothing");
	fflush(stdout);
	_exit(rc == ZB_EUNSUPPORTED && strstr(err.msg, says) ? 0 : 1);
}

/* A listener sits on this process already, as WSL2's init has one. */
static void taken_listener(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct sock_filter all[] = {
			{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
		struct sock_fprog prog = {.len = 1, .filter = all};

		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog) < 0)
			_exit(9);
		probe_and_leave("a listener already sits on this process");
	}
	ok(wait_child(pid) == 0, "a taken listener is recognised");
}

static bool write_text(const char *path, const char *text)
{
	zb_auto(fd) int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) > 0;
}

/* Become root of a user namespace of our own. */
static bool own_namespace(unsigned long more)
{
	char map[2][48];

	snprintf(map[0], sizeof(map[0]), "0 %u 1", geteuid());
	snprintf(map[1], sizeof(map[1]), "0 %u 1", getegid());
	return unshare((int)(CLONE_NEWUSER | more)) == 0 &&
	       write_text("/proc/self/setgroups", "deny") &&
	       write_text("/proc/self/uid_map", map[0]) &&
	       write_text("/proc/self/gid_map", map[1]);
}

static void no_namespaces_left(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (!own_namespace(0) ||
		    !write_text("/proc/sys/user/max_user_namespaces", "0"))
			_exit(9);
		probe_and_leave("user.max_user_namespaces=0");
	}
	ok(wait_child(pid) == 0, "no user namespace left is recognised");
}

/* As in a container: parts of /proc are covered. */
static void masked_proc(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (!own_namespace(CLONE_NEWNS | CLONE_NEWPID))
			_exit(9);
		pid = fork();
		if (pid == 0) {
			if (mount("proc", "/proc", "proc", 0, NULL) ||
			    mount("/dev/null", "/proc/version", NULL, MS_BIND,
				  NULL) ||
			    !own_namespace(0))
				_exit(8);
			probe_and_leave("masked /proc");
		}
		_exit(wait_child(pid));
	}
	ok(wait_child(pid) == 0, "a masked /proc is recognised");
}

static void not_enforceable(void)
{
	char value[] = "example.org:443", file[] = "a scope";
	struct zb_rule rule = {.value = value, .origin = {.file = file}};
	struct zb_error err = {0};
	struct made m;
	struct box b;
	int rc;

	make(&m);
	m.plan.scope.net_connect =
		(struct zb_rules){.v = &rule, .n = 1, .set = true};
	rc = start(&b, &m, &err, "exit", "0");
	ok(rc == ZB_EUNSUPPORTED && !b.proc,
	   "a rule that nothing enforces: nothing starts");
	has(err.msg, value, "and it is named");
	finish(&b);
	unmake(&m);
}

/* A kernel before 5.19, as far as the driver is told. */
static void not_killable(void)
{
	bool saved = host.wait_killable;
	struct zb_error err = {0};
	struct made m;
	struct box b;
	int rc;

	host.wait_killable = false;
	make(&m);
	rc = start(&b, &m, &err, "exit", "0");
	ok(rc == 0, "without WAIT_KILLABLE_RECV a plain plan starts: %s",
	   err.msg);
	finish(&b);
	unmake(&m);
	make(&m);
	add(&m, ZB_PLACE_GRANT, "/grant", dir, EVERY)->carved = true;
	rc = start(&b, &m, &err, "exit", "0");
	ok(rc == ZB_EUNSUPPORTED, "one with exceptions in a grant does not");
	has(err.msg, "/grant", "and says which");
	finish(&b);
	unmake(&m);
	host.wait_killable = saved;
}

static void this_host(void)
{
	struct zb_error err = {0};
	struct zb_host h;
	int64_t began = zb_monotonic_ms();
	int rc = zb_probe(&h, &err);

	ok(rc == 0 && h.ok && h.n_missing == 0, "the full probe (%d ms): %s",
	   (int)(zb_monotonic_ms() - began), err.msg);
	ok(h.facts.n >= 4 && h.blind_spots.n > 3, "facts and blind spots");
	zb_host_done(&h);
	began = zb_monotonic_ms();
	for (int i = 0; i < 10; i++) {
		rc = zb_probe_look(&h, &err);
		zb_host_done(&h);
	}
	ok(rc == 0 && zb_monotonic_ms() - began < 100, "ten looks take %d ms",
	   (int)(zb_monotonic_ms() - began));
}

/* ---- all ----------------------------------------------------------------*/

static void all(void)
{
	make_dir();
	this_host();
	what_is_inside();
	no_terminal();
	floor_alone();
	limits_inside();
	how_it_ends("exit", "0", false, 0, NULL);
	how_it_ends("exit", "41", false, 41, NULL);
	how_it_ends("raise", "15", true, 15, NULL);
	how_it_ends("spin", "1", true, SIGXCPU, "limits.cpu_seconds");
	cannot_start();
	end_of_output();
	children_go_on();
	a_signal_for_it();
	killed_from_outside();
	limits_kept();
	control_group();
	supervisor_killed();
	many(who[0] ? 40 : 200);
	main_thread_only();
	swapped_paths();
	copied_files();
	nothing_for_bwrap();
	not_killable();
	not_enforceable();
	other_bwraps();
	taken_listener();
	no_namespaces_left();
	masked_proc();
	remove_all(AT_FDCWD, dir);
}

static void all_as_user(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		who = "as a user: ";
		if (setgroups(0, NULL) ||
		    setresgid(OTHER_USER, OTHER_USER, OTHER_USER) ||
		    setresuid(OTHER_USER, OTHER_USER, OTHER_USER))
			_exit(1);
		prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
		all();
		_exit(0);
	}
	ok(wait_child(pid) == 0, "the same as an ordinary user ran through");
}

int main(int argc, char **argv)
{
	const char *build = getenv("ZB_BUILD");
	struct zb_error err = {0};

	payload = argc > 1 ? argv[1]
			   : zb_strf("%s/tests/live/floor_inside",
				     build ? build : ".");
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	signal(SIGPIPE, SIG_IGN);
	if (zb_probe(&host, &err) && !getenv("ZOTBOX_MUST_SANDBOX")) {
		printf("1..0 # SKIP this host cannot: %s\n",
		       host.n_missing ? host.missing[0].what : err.msg);
		return 0;
	}
	all();
	if (geteuid() == 0)
		all_as_user();
	zb_host_done(&host);
	printf("1..%d\n", tally->points);
	return tally->failed ? 1 : 0;
}
