/* cmd_long.c - signals and the line of progress. */
#include "cmd_long.h"

#include "cleanup.h"

#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

volatile sig_atomic_t zb_cmd_stopped;

static void stop(int signo)
{
	zb_cmd_stopped = signo;
}

void zb_cmd_stop_on_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction sa = {.sa_handler = stop}, old;

	for (size_t i = 0; i < ZB_ARRAY_LEN(signals); i++)
		if (!sigaction(signals[i], NULL, &old) &&
		    old.sa_handler != SIG_IGN)
			sigaction(signals[i], &sa, NULL);
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
