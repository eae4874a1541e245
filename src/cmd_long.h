/* cmd_long.h - commands that take long: they can be interrupted, and on a
 * terminal they show how far they are. Effects. */
#ifndef ZB_CMD_LONG_H
#define ZB_CMD_LONG_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* The number of the signal that asked for the end, or 0. */
extern volatile sig_atomic_t zb_cmd_stopped;
/* From now on. One that is ignored stays so: nohup, and jobs of a script. */
void zb_cmd_stop_on_signals(void);
/* Wait until standard input can be read, or has ended. Return: false if a
 * signal asked for the end, be it just before: plain read(2) would then wait
 * for ever. */
bool zb_cmd_await_input(void);

/* A line on stderr that overwrites itself, once it takes over a second. */
struct zb_cmd_progress {
	time_t started;
	bool shown;
};
/* @ctx: a struct zb_cmd_progress; fits zb_tree_copy.progress. */
void zb_cmd_progress(void *ctx, uint64_t files, uint64_t bytes);
void zb_cmd_progress_end(struct zb_cmd_progress *p);

#endif
