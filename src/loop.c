/* loop.c - an event loop whose making fails in words. */
#define _GNU_SOURCE
#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#define LEAST 26 /* descriptors: a loop with signals takes six of them */
#define STACK ((size_t)128 << 10)

static void allow_many(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= l.rlim_max)
		return;
	l.rlim_cur = l.rlim_max;
	setrlimit(RLIMIT_NOFILE, &l);
}

/* Can a loop be had? Afterwards it is too late to ask. New files are asked for
 * and not copies: the host has a limit of its own for these. */
static int try_room(void)
{
	int fds[LEAST], n = 0, sys = 0;

	for (; n < LEAST && !sys; n += sys ? 0 : 2)
		if (pipe2(&fds[n], O_CLOEXEC))
			sys = errno;
	while (n--)
		close(fds[n]);
	return sys;
}

int zb_loop_open(uv_loop_t *loop, struct zb_error *err)
{
	int sys;

	allow_many();
	sys = try_room();
	if (sys)
		return zb_fail_sys(err, sys,
				   "make room for an extension (it takes %d "
				   "descriptors or more)",
				   LEAST);
	sys = -uv_loop_init(loop);
	return sys ? zb_fail_sys(err, sys, "make an event loop") : 0;
}

int zb_loop_signals(uv_loop_t *loop, uv_signal_t *v, const int *list, size_t n,
		    uv_signal_cb cb, void *data, struct zb_error *err)
{
	size_t made = 0;
	int rc = 0;

	while (made < n && !rc) {
		rc = uv_signal_init(loop, &v[made]);
		if (rc)
			break;
		v[made].data = data;
		rc = uv_signal_start(&v[made], cb, list[made]);
		made++;
	}
	if (!rc)
		return 0;
	while (made--)
		uv_close((uv_handle_t *)&v[made], NULL);
	return zb_fail_sys(err, -rc, "watch for signals");
}

void zb_loop_close(uv_loop_t *loop)
{
	/* Again if a uv_stop() from before is what ended the first. */
	while (uv_run(loop, UV_RUN_DEFAULT))
		;
	uv_loop_close(loop);
}

int zb_loop_watch(uv_loop_t *loop, uv_poll_t *poll, int fd)
{
	int flags = fcntl(fd, F_GETFL);
	int rc = uv_poll_init(loop, poll, fd);

	if (flags >= 0)
		fcntl(fd, F_SETFL, flags);
	return rc;
}

int zb_loop_thread(pthread_t *out, void *(*fn)(void *ctx), void *ctx)
{
	pthread_attr_t at;
	sigset_t all, old;
	int rc = pthread_attr_init(&at);

	if (rc)
		return rc;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_setstacksize(&at, STACK);
	rc = pthread_create(out, &at, fn, ctx);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&at);
	return rc;
}
