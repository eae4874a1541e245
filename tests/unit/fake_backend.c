/* fake_backend.c - see fake_backend.h. */
#define _GNU_SOURCE
#include "fake_backend.h"

#include "host_frames.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_PROGRAMS 16

struct fake {
	int in, out, err, stop[2];
	struct zb_buf input;
	char *line;
	size_t line_len;
	fake_main *program;
	struct zb_spawn_options opt;
	pthread_t thread;
	bool told;
};

static struct {
	const char *name;
	fake_main *program;
} programs[MAX_PROGRAMS];
static unsigned n_programs, started;
static atomic_uint alive; /* reaped on other threads */
static int last_signal;

void fake_program(const char *name, fake_main *program)
{
	for (unsigned i = 0; i < n_programs; i++)
		if (!strcmp(programs[i].name, name)) {
			programs[i].program = program;
			return;
		}
	programs[n_programs].name = name;
	programs[n_programs++].program = program;
}

void fake_forget(void)
{
	n_programs = started = 0;
	last_signal = 0;
}

unsigned fake_started(void)
{
	return started;
}

unsigned fake_alive(void)
{
	return alive;
}

int fake_last_signal(void)
{
	return last_signal;
}

/* Wait for @fd or the stop. Return: false for stop. */
static bool wait_for(struct fake *f, int fd, short events, int ms)
{
	struct pollfd p[2] = {{.fd = fd, .events = events},
			      {.fd = f->stop[0], .events = POLLIN}};

	while (poll(p, 2, ms) < 0 && errno == EINTR)
		;
	return !(p[1].revents & POLLIN);
}

const char *fake_read(struct fake *f)
{
	char buf[65536];

	free(f->line);
	f->line = NULL;
	for (;;) {
		const char *p = zb_buf_str(&f->input);
		const char *nl = memchr(p, '\n', f->input.len);
		ssize_t n;

		if (nl) {
			f->line_len = (size_t)(nl - p);
			f->line = zb_strndup(p, f->line_len);
			zb_buf_consume(&f->input, f->line_len + 1);
			return f->line;
		}
		if (!wait_for(f, f->in, POLLIN, -1))
			return NULL;
		n = read(f->in, buf, sizeof(buf));
		if (n <= 0)
			return NULL;
		zb_buf_add(&f->input, buf, (size_t)n);
	}
}

void fake_write(struct fake *f, const void *p, size_t n)
{
	const char *s = p;

	while (n && wait_for(f, f->out, POLLOUT, -1)) {
		ssize_t done = write(f->out, s, n < 4096 ? n : 4096);

		if (done <= 0)
			return;
		s += done;
		n -= (size_t)done;
	}
}

void fake_say(struct fake *f, const char *fmt, ...)
{
	struct zb_buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	zb_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	zb_buf_addc(&b, '\n');
	fake_write(f, zb_buf_str(&b), b.len);
	zb_buf_done(&b);
}

void fake_stderr(struct fake *f, const char *text)
{
	if (write(f->err, text, strlen(text)) < 0)
		abort();
}

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void fake_close_stdin(struct fake *f)
{
	shut(&f->in);
}

void fake_close_stdout(struct fake *f)
{
	shut(&f->out);
}

bool fake_sleep(struct fake *f, unsigned ms)
{
	return wait_for(f, -1, 0, (int)ms);
}

static void tell_exit(struct fake *f, int status)
{
	struct zb_exit x = {.signalled = status > 255,
			    .code = status > 255 ? status - 256 : status};

	if (!f->told)
		f->opt.on_exit(f->opt.ctx, &x);
	f->told = true;
}

void fake_exit_early(struct fake *f, int status)
{
	tell_exit(f, status);
}

void fake_deny(struct fake *f, enum zb_op op, const char *target)
{
	struct zb_denial d = {.op = op,
			      .target = zb_strdup(target),
			      .rule = zb_strdup("fake: nothing is granted"),
			      .by = ZB_BY_BROKER,
			      .err_no = ENOENT};

	f->opt.on_denial(f->opt.ctx, &d);
}

char *fake_member(struct fake *f, const char *key)
{
	return zb_frame_string(f->line, f->line_len, key);
}

bool fake_hello(struct fake *f, const char *name)
{
	fake_say(f, "{\"type\":\"hello\",\"name\":\"%s\",\"version\":\"1\"}",
		 name);
	return fake_read(f) != NULL;
}

int fake_serve(struct fake *f)
{
	const char *line;

	while ((line = fake_read(f)))
		if (strstr(line, "\"shutdown\"")) {
			fake_say(f, "{\"type\":\"shutdown_ack\"}");
			return 0;
		}
	return 0;
}

static void *run(void *arg)
{
	struct fake *f = arg;
	int status = f->program(f);
	bool stopped = !wait_for(f, -1, 0, 0);

	shut(&f->in);
	shut(&f->out);
	shut(&f->err);
	tell_exit(f, stopped ? 256 + SIGKILL : status);
	return NULL;
}

/* ---- the backend ---- */

static int look(struct zb_host *out, struct zb_error *err)
{
	(void)err;
	memset(out, 0, sizeof(*out));
	out->ok = true;
	return 0;
}

static int spawn(const struct zb_plan *plan, const struct zb_host *host,
		 const int stdio[3], const struct zb_spawn_options *opt,
		 struct zb_proc **out, struct zb_error *err)
{
	fake_main *program = NULL;
	struct fake *f;

	(void)host;
	for (unsigned i = 0; i < n_programs; i++)
		if (!strcmp(programs[i].name, plan->name))
			program = programs[i].program;
	if (!program)
		return zb_fail(err, ZB_EUNSUPPORTED, "no program for %s",
			       plan->name);
	f = calloc(1, sizeof(*f));
	if (!f || pipe2(f->stop, O_CLOEXEC))
		abort();
	f->in = fcntl(stdio[0], F_DUPFD_CLOEXEC, 3);
	f->out = fcntl(stdio[1], F_DUPFD_CLOEXEC, 3);
	f->err = fcntl(stdio[2], F_DUPFD_CLOEXEC, 3);
	f->program = program;
	f->opt = *opt;
	started++;
	alive++;
	if (pthread_create(&f->thread, NULL, run, f))
		abort();
	*out = (struct zb_proc *)f;
	return 0;
}

static void stop(struct zb_proc *p)
{
	struct fake *f = (struct fake *)p;

	if (write(f->stop[1], "", 1) < 0)
		abort();
}

static int pid(const struct zb_proc *p)
{
	(void)p;
	return 4242;
}

static int send_signal(struct zb_proc *p, int signo, struct zb_error *err)
{
	(void)err;
	last_signal = signo;
	stop(p);
	return 0;
}

static void reap(struct zb_proc *p, struct zb_exit *out)
{
	struct fake *f = (struct fake *)p;

	pthread_join(f->thread, NULL);
	if (out)
		memset(out, 0, sizeof(*out));
	close(f->stop[0]);
	close(f->stop[1]);
	free(f->line);
	zb_buf_done(&f->input);
	free(f);
	alive--;
}

const struct zb_backend fake_backend = {
	.name = "fake",
	.look = look,
	.probe = look,
	.spawn = spawn,
	.stop = stop,
	.pid = pid,
	.signal = send_signal,
	.reap = reap,
};
