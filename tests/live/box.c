/* box.c - a sandbox for tests of the Linux floor. */
#include "config.h"

#include "box.h"

#include "cleanup.h"
#include "path_match.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 3000
#define ALARM_S	    240 /* a broker that hangs is a test that fails */

static unsigned n_points, n_failed;
static char dir[64];

void tap_ok(bool ok, const char *fmt, ...)
{
	va_list ap;

	n_points++;
	n_failed += !ok;
	printf("%sok %u - ", ok ? "" : "not ", n_points);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

void tap_note(const char *fmt, ...)
{
	va_list ap;

	printf("# ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

int tap_done(void)
{
	printf("1..%u\n", n_points);
	return n_failed ? 1 : 0;
}

_Noreturn void tap_skip_all(const char *why)
{
	const char *must = getenv("ZOTBOX_MUST_SANDBOX");

	if (must && *must && strcmp(must, "0") != 0) {
		printf("1..1\nnot ok 1 - this host must be able to sandbox: "
		       "%s\n",
		       why);
		exit(1);
	}
	printf("1..0 # SKIP %s\n", why);
	exit(0);
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

static void clean_up(void)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *box_dir(void)
{
	if (!dir[0]) {
		strcpy(dir, "/var/tmp/zotbox-test-XXXXXX");
		if (!mkdtemp(dir)) {
			perror("mkdtemp");
			exit(99);
		}
		chmod(dir, 0755);
		atexit(clean_up);
	}
	return dir;
}

const char *box_text(const char *fmt, ...)
{
	static char ring[256][256];
	static unsigned at;
	char *p = ring[at++ % 256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p, sizeof(ring[0]), fmt, ap);
	va_end(ap);
	return p;
}

const char *box_path(const char *name)
{
	return box_text("%s/%s", box_dir(), name);
}

/* Make the directories above @path. */
static void parents(const char *path)
{
	zb_auto(free) char *p = zb_strdup(path);

	for (char *s = p + 1; (s = strchr(s, '/')); s++) {
		*s = '\0';
		mkdir(p, 0755);
		*s = '/';
	}
}

void box_file(const char *path, const char *text, int mode)
{
	FILE *f;

	parents(path);
	if (!text) {
		mkdir(path, 0755);
		return;
	}
	f = fopen(path, "we");
	if (!f || fputs(text, f) < 0 || fclose(f)) {
		perror(path);
		exit(99);
	}
	chmod(path, (mode_t)mode);
}

struct zb_place *box_place(struct box *b, enum zb_place_kind kind,
			   const char *path, const char *source,
			   unsigned rights, bool is_dir)
{
	struct zb_plan *p = &b->plan;
	struct zb_place *v = realloc(p->places, (p->n_places + 1) * sizeof(*v));

	if (!v)
		abort();
	p->places = v;
	v[p->n_places] = (struct zb_place){
		.kind = kind,
		.path = zb_strdup(path),
		.source = zb_strdup(source),
		.rights = rights,
		.is_dir = is_dir,
		.origin = {.file = zb_strdup("test.json"),
			   .key = zb_strdup("fs.read[0]")},
	};
	return &v[p->n_places++];
}

void box_deny(struct box *b, const char *pattern)
{
	struct zb_plan *p = &b->plan;
	struct zb_deny *v = realloc(p->denies, (p->n_denies + 1) * sizeof(*v));

	if (!v)
		abort();
	p->denies = v;
	v[p->n_denies++] = (struct zb_deny){
		.pattern = zb_strdup(pattern),
		.origin = {.file = zb_strdup("test.json"),
			   .key = zb_strdup("fs.deny[0]")},
	};
}

static void system_place(struct box *b, const char *path)
{
	char link[4096];
	ssize_t n = readlink(path, link, sizeof(link) - 1);
	struct stat st;

	if (n > 0) {
		link[n] = '\0';
		box_place(b, ZB_PLACE_LINK, path, NULL, 0, false)->link_to =
			zb_strdup(link);
	} else if (!stat(path, &st)) {
		box_place(b, ZB_PLACE_SYSTEM, path, path, BOX_CODE,
			  S_ISDIR(st.st_mode));
	}
}

static void env(struct box *b, const char *name, const char *value)
{
	struct zb_plan *p = &b->plan;

	p->env = realloc(p->env, (p->n_env + 1) * sizeof(*p->env));
	if (!p->env)
		abort();
	p->env[p->n_env++] = (struct zb_env_var){.name = zb_strdup(name),
						 .value = zb_strdup(value)};
}

static void copy_probe(void)
{
	const char *build = getenv("ZB_BUILD");
	zb_auto(free) char *from =
		zb_strf("%s/tests/live/probe", build ? build : ".");
	zb_auto(free) char *cmd =
		zb_strf("cp '%s' '%s'", from, box_path("ext/probe"));

	box_file(box_path("ext"), NULL, 0);
	if (system(cmd)) {
		fprintf(stderr, "cannot copy %s\n", from);
		exit(99);
	}
}

static int on_skip(const struct zb_host *h)
{
	return h->ok ? 0 : 1;
}

void box_plan(struct box *b)
{
	static const char *const system_paths[] = {
		"/bin", "/etc/ld.so.cache", "/lib", "/lib64", "/sbin", "/usr"};
	struct zb_error err = {0};

	alarm(ALARM_S);
	memset(b, 0, sizeof(*b));
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->more, NULL);
	if (zb_backend_bubblewrap.probe(&b->host, &err) || on_skip(&b->host))
		tap_skip_all(err.msg);
	copy_probe();
	box_file(box_path("private_home"), NULL, 0);
	box_file(box_path("private_data"), NULL, 0);
	box_file(box_path("home"), NULL, 0);
	for (size_t i = 0; i < ZB_ARRAY_LEN(system_paths); i++)
		system_place(b, system_paths[i]);
	box_place(b, ZB_PLACE_PROC, "/proc", NULL, BOX_READ | ZB_MAY_WRITE,
		  true);
	box_place(b, ZB_PLACE_DEV, "/dev", NULL, BOX_READ | ZB_MAY_WRITE, true);
	box_place(b, ZB_PLACE_TMP, "/tmp", NULL, BOX_ALL, true);
	box_place(b, ZB_PLACE_HOME, box_path("home"), box_path("private_home"),
		  BOX_ALL, true);
	box_place(b, ZB_PLACE_DATA, box_path("data"), box_path("private_data"),
		  BOX_ALL, true);
	box_place(b, ZB_PLACE_EXTENSION, box_path("ext"), box_path("ext"),
		  BOX_CODE, true);
	b->plan.name = zb_strdup("probe");
	b->plan.base = zb_strdup("test");
	b->plan.home = zb_strdup(box_path("home"));
	b->plan.home_real = zb_strdup(box_path("home"));
	b->plan.zot_home = zb_strdup(box_path("zot"));
	b->plan.zot_home_real = zb_strdup(box_path("zot"));
	b->plan.extension_dir = zb_strdup(box_path("ext"));
	b->plan.extension_real = zb_strdup(box_path("ext"));
	b->plan.data_dir = zb_strdup(box_path("data"));
	b->plan.cwd = zb_strdup(box_path("ext"));
	b->plan.exec_path = zb_strdup(box_path("ext/probe"));
	zb_strv_add(&b->plan.argv, box_path("ext/probe"));
	env(b, "PATH", "/usr/bin:/bin");
	env(b, "HOME", b->plan.home);
}

static int by_path(const void *a, const void *b)
{
	const struct zb_place *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* As the resolver does it. */
static void settle(struct zb_plan *p)
{
	qsort(p->places, p->n_places, sizeof(*p->places), by_path);
	for (size_t i = 0; i < p->n_places; i++)
		for (size_t k = 0; k < p->n_places; k++) {
			struct zb_place *out = &p->places[i];
			const struct zb_place *in = &p->places[k];

			if (i == k || !in->carved || out->carved ||
			    !zb_path_below(in->path, out->path))
				continue;
			out->brokered = true;
			out->brokered_writes |=
				(in->rights & ZB_MAY_WRITE) != 0;
		}
}

static void on_denial(void *ctx, struct zb_denial *d)
{
	struct box *b = ctx;

	pthread_mutex_lock(&b->lock);
	if (b->n == b->cap) {
		b->cap = b->cap ? b->cap * 2 : 64;
		b->denials = realloc(b->denials, b->cap * sizeof(*d));
		if (!b->denials)
			abort();
	}
	b->denials[b->n++] = *d;
	*d = (struct zb_denial){0};
	pthread_cond_broadcast(&b->more);
	pthread_mutex_unlock(&b->lock);
}

void box_start(struct box *b)
{
	struct zb_spawn_options opt = {.on_denial = on_denial, .ctx = b};
	struct zb_error err = {0};
	int in[2], out[2];
	int rc;

	settle(&b->plan);
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		abort();
	rc = zb_backend_bubblewrap.spawn(&b->plan, &b->host,
					 (int[3]){in[0], out[1], 2}, &opt,
					 &b->proc, &err);
	close(in[0]);
	close(out[1]);
	if (rc) {
		printf("Bail out! %s\n", err.msg);
		exit(99);
	}
	b->in = fdopen(in[1], "w");
	b->out = fdopen(out[0], "r");
	if (!b->in || !b->out)
		abort();
}

void box_stop(struct box *b)
{
	struct zb_exit e = {0};

	fclose(b->in);
	fclose(b->out);
	zb_backend_bubblewrap.reap(b->proc, &e);
	free(e.reason);
	b->proc = NULL;
	box_forget(b);
	free(b->denials);
	zb_plan_done(&b->plan);
	zb_host_done(&b->host);
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->more);
}

long box_tell(struct box *b, int *err, char *rest, const char *fmt, ...)
{
	char line[65536];
	long r = -1;
	int e = ENODATA, used = 0;
	va_list ap;

	va_start(ap, fmt);
	vfprintf(b->in, fmt, ap);
	va_end(ap);
	putc('\n', b->in);
	fflush(b->in);
	if (fgets(line, sizeof(line), b->out)) {
		line[strcspn(line, "\n")] = '\0';
		sscanf(line, "%ld %d %n", &r, &e, &used);
		if (rest)
			snprintf(rest, 256, "%s", line + used);
	}
	if (err)
		*err = e;
	return r;
}

static void pause_ms(long ms)
{
	struct timespec t = {.tv_sec = ms / 1000,
			     .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

void box_forget(struct box *b)
{
	pause_ms(30);
	pthread_mutex_lock(&b->lock);
	for (size_t i = 0; i < b->n; i++)
		zb_denial_done(&b->denials[i]);
	b->n = 0;
	pthread_mutex_unlock(&b->lock);
}

static unsigned count(const struct box *b, enum zb_op op, const char *target,
		      const struct zb_denial **last)
{
	unsigned n = 0;

	for (size_t i = 0; i < b->n; i++) {
		const struct zb_denial *d = &b->denials[i];

		if (d->op != op ||
		    (target && (!d->target || strcmp(d->target, target) != 0)))
			continue;
		n++;
		if (last)
			*last = d;
	}
	return n;
}

static unsigned wait_for(struct box *b, enum zb_op op, const char *target,
			 const struct zb_denial **last)
{
	struct timespec until;
	unsigned n;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_MS / 1000;
	pthread_mutex_lock(&b->lock);
	while (!(n = count(b, op, target, last)))
		if (pthread_cond_timedwait(&b->more, &b->lock, &until))
			break;
	pthread_mutex_unlock(&b->lock);
	return n;
}

unsigned box_denied(struct box *b, enum zb_op op, const char *target)
{
	return wait_for(b, op, target, NULL);
}

const struct zb_denial *box_last(struct box *b, enum zb_op op,
				 const char *target)
{
	const struct zb_denial *d = NULL;

	wait_for(b, op, target, &d);
	return d;
}

size_t box_total(struct box *b)
{
	size_t n;

	pause_ms(100);
	pthread_mutex_lock(&b->lock);
	n = b->n;
	pthread_mutex_unlock(&b->lock);
	return n;
}
