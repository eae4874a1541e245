/* cmd_long.c - signals and the line of progress. */
#define _GNU_SOURCE
#include "cmd_long.h"

#include "cleanup.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

volatile sig_atomic_t zb_cmd_stopped;

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

static void stop(int signo)
{
	zb_cmd_stopped = signo;
}

void zb_cmd_stop_on_signals(void)
{
	struct sigaction sa = {.sa_handler = stop}, old;

	for (size_t i = 0; i < ZB_ARRAY_LEN(signals); i++)
		if (!sigaction(signals[i], NULL, &old) &&
		    old.sa_handler != SIG_IGN)
			sigaction(signals[i], &sa, NULL);
}

bool zb_cmd_await_input(void)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	sigset_t ours, before;
	int n = -1;

	sigemptyset(&ours);
	for (size_t i = 0; i < ZB_ARRAY_LEN(signals); i++)
		sigaddset(&ours, signals[i]);
	sigprocmask(SIG_BLOCK, &ours, &before);
	do
		if (!zb_cmd_stopped)
			n = ppoll(&p, 1, NULL, &before);
	while (n < 0 && errno == EINTR && !zb_cmd_stopped);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return !zb_cmd_stopped;
}

void zb_cmd_progress(void *ctx, uint64_t files, uint64_t bytes)
{
	struct zb_cmd_progress *p = ctx;

	if (!isatty(STDERR_FILENO) || time(NULL) <= p->started + 1)
		return;
	dprintf(STDERR_FILENO, "\r%llu files, %llu MB copied ",
		(unsigned long long)files, (unsigned long long)(bytes >> 20));
	p->shown = true;
}

void zb_cmd_progress_end(struct zb_cmd_progress *p)
{
	if (p->shown)
		dprintf(STDERR_FILENO, "\r%*s\r", 60, "");
	p->shown = false;
}
