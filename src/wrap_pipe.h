/* wrap_pipe.h - wrap's two descriptors towards zot, on the loop: lines in from
 * one, lines out to the other. Effects. */
#ifndef ZB_WRAP_PIPE_H
#define ZB_WRAP_PIPE_H

#include "error.h"
#include "frame.h"
#include "relax.h"

#include <uv.h>

/* zot's frames carry what a model or a user wrote; a line longer than this is
 * no honest one. */
#define ZB_WRAP_LINE_MAX ((size_t)32 << 20)

/* ---- in ---- */

/* The caller sets the callbacks and @ctx. */
struct zb_wrap_in {
	void (*line)(void *ctx, const char *line, size_t len);
	void (*too_long)(void *ctx, uint64_t total);
	void (*end)(void *ctx); /* once, after the last line */
	void *ctx;

	uv_pipe_t pipe;
	uv_timer_t stalled;
	struct zb_relax relax;
	struct zb_framer framer;
	bool reading, paused, eof, ended, pumping, closed;
};
/* Start reading @fd, which is taken. */
int zb_wrap_in_open(struct zb_wrap_in *in, uv_loop_t *loop, int fd,
		    struct zb_error *err);
/* No further line until it is undone; the end is still noticed. */
void zb_wrap_in_pause(struct zb_wrap_in *in, bool paused);
void zb_wrap_in_close(struct zb_wrap_in *in);

/* ---- out ---- */

struct zb_wrap_out {
	void (*drained)(void *ctx); /* room again after zb_wrap_out_full() */
	void (*broke)(void *ctx);   /* once: zot reads no more */
	void *ctx;

	int fd;
	uv_pipe_t pipe;
	uv_write_t write;
	struct zb_buf queue, writing;
	bool plain; /* no pipe: written with blocking calls */
	bool busy, gone, full, closed;
};
int zb_wrap_out_open(struct zb_wrap_out *out, uv_loop_t *loop, int fd,
		     struct zb_error *err);
/* Write @line and a newline, at once if the pipe takes it, else later.
 * line[@len] must be readable; if it is the newline, so much the better. */
void zb_wrap_out_line(struct zb_wrap_out *out, const char *line, size_t len);
/* Is so much waiting that the writer should stop? Then drained() follows. */
bool zb_wrap_out_full(struct zb_wrap_out *out);
/* Is nothing waiting? */
bool zb_wrap_out_idle(const struct zb_wrap_out *out);
void zb_wrap_out_close(struct zb_wrap_out *out);

#endif
