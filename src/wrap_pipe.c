/* wrap_pipe.c - lines from and to zot.
 *
 * In the usual case a line costs no copy on its way out: it is written from
 * where it lies, together with its newline. Only what the pipe does not take
 * is copied.
 *
 * While zot's lines cannot be passed on (the extension does not read), its
 * pipe is not read either. Its end would then go unnoticed, so that is asked
 * for from time to time: POLLHUP comes without reading. */
#define _GNU_SOURCE
#include "wrap_pipe.h"
#include "cleanup.h"
#include "cmd.h"
#include "fdutil.h"
#include "loop.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>

#define STALLED_MS 250
#define QUEUE_HIGH ((size_t)1 << 20)
#define QUEUE_KEEP ((size_t)256 << 10)
#define READ_MAX   (1u << 20)

/* ---- in ---- */

static void end(struct zb_wrap_in *in)
{
	if (in->ended)
		return;
	in->ended = true;
	uv_timer_stop(&in->stalled);
	uv_timer_stop(&in->relax.timer);
	in->end(in->ctx);
}

static void on_stalled(uv_timer_t *t)
{
	struct zb_wrap_in *in = t->data;
	struct pollfd p = {0};
	uv_os_fd_t fd;

	if (uv_fileno((uv_handle_t *)&in->pipe, &fd))
		return;
	p.fd = fd;
	if (poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR))
		end(in);
}

static void alloc_room(uv_handle_t *h, size_t hint, uv_buf_t *b)
{
	struct zb_wrap_in *in = h->data;
	char *room;
	size_t n = zb_framer_room(&in->framer, &room);

	(void)hint;
	*b = uv_buf_init(room, n < READ_MAX ? (unsigned)n : READ_MAX);
}

static void pump(struct zb_wrap_in *in);

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
	struct zb_wrap_in *in = s->data;

	(void)b;
	if (n == 0)
		return;
	if (n < 0) { /* also: out of memory */
		in->eof = true;
		in->reading = false;
		uv_read_stop(s);
	} else {
		zb_framer_came(&in->framer, (size_t)n);
	}
	pump(in);
	zb_relax_after_read(&in->relax);
}

static void set_reading(struct zb_wrap_in *in)
{
	bool want = !in->paused && !in->eof;

	if (in->closed || want == in->reading)
		return;
	in->reading = want;
	if (want) {
		uv_timer_stop(&in->stalled);
		uv_read_start((uv_stream_t *)&in->pipe, alloc_room, on_read);
	} else {
		uv_read_stop((uv_stream_t *)&in->pipe);
		uv_timer_start(&in->stalled, on_stalled, STALLED_MS,
			       STALLED_MS);
	}
}

static void pump(struct zb_wrap_in *in)
{
	struct zb_line l = {.kind = ZB_LINE_FRAME};

	if (in->pumping)
		return;
	in->pumping = true;
	while (!in->paused && !in->closed) {
		if (in->eof)
			zb_framer_end(&in->framer, &l);
		else
			zb_framer_next(&in->framer, &l);
		if (l.kind == ZB_LINE_NONE)
			break;
		if (l.kind == ZB_LINE_TOO_LONG)
			in->too_long(in->ctx, l.total);
		else
			in->line(in->ctx, l.text, l.len);
	}
	in->pumping = false;
	set_reading(in);
	if (in->eof && l.kind == ZB_LINE_NONE)
		end(in);
}

/* A thread that reads what cannot be polled or must not be made non-blocking
 * (a file, a terminal) into a pipe. It ends with the process. */
struct copy {
	int from, to;
};

static void *copy_main(void *arg)
{
	struct copy c = *(struct copy *)arg;
	char buf[4096];
	ssize_t n, done;

	free(arg);
	while ((n = read(c.from, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n; at += done) {
			done = write(c.to, buf + at, (size_t)(n - at));
			if (done <= 0)
				break;
		}
	close(c.to);
	return NULL;
}

static int copied(int *fd, struct zb_error *err)
{
	struct copy *c = malloc(sizeof(*c));
	pthread_t thread;
	int fds[2], rc;

	if (!c)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	if (pipe2(fds, O_CLOEXEC)) {
		rc = errno;
		free(c);
		return zb_fail_sys(err, rc, "read standard input");
	}
	*c = (struct copy){*fd, fds[1]};
	rc = zb_loop_thread(&thread, copy_main, c);
	if (!rc) {
		pthread_detach(thread);
		*fd = fds[0];
		return 0;
	}
	close(fds[0]);
	close(fds[1]);
	free(c);
	return zb_fail_sys(
		err, rc,
		"start a thread to read standard input" ZB_PROCESSES_HINT);
}

int zb_wrap_in_open(struct zb_wrap_in *in, uv_loop_t *loop, int fd,
		    struct zb_error *err)
{
	int rc = 0;

	zb_framer_init(&in->framer, ZB_WRAP_LINE_MAX);
	uv_pipe_init(loop, &in->pipe, 0);
	uv_timer_init(loop, &in->stalled);
	zb_relax_init(&in->relax, loop, &in->framer, &in->pumping);
	in->pipe.data = in;
	in->stalled.data = in;
	if (uv_guess_handle(fd) != UV_NAMED_PIPE)
		rc = copied(&fd, err);
	if (rc)
		return rc;
	rc = uv_pipe_open(&in->pipe, fd);
	if (rc)
		return zb_fail_sys(err, -rc, "read standard input");
	set_reading(in);
	return 0;
}

void zb_wrap_in_pause(struct zb_wrap_in *in, bool paused)
{
	if (in->paused == paused)
		return;
	in->paused = paused;
	if (paused)
		set_reading(in);
	else
		pump(in);
}

void zb_wrap_in_close(struct zb_wrap_in *in)
{
	if (in->closed)
		return;
	in->closed = true;
	uv_close((uv_handle_t *)&in->pipe, NULL);
	uv_close((uv_handle_t *)&in->stalled, NULL);
	uv_close((uv_handle_t *)&in->relax.timer, NULL);
}

/* ---- out ---- */

static void broke(struct zb_wrap_out *out)
{
	if (out->gone)
		return;
	out->gone = true;
	zb_buf_done(&out->queue);
	out->broke(out->ctx);
}

static void write_queue(struct zb_wrap_out *out);

static void on_written(uv_write_t *req, int status)
{
	struct zb_wrap_out *out = req->data;

	out->busy = false;
	if (out->writing.cap > QUEUE_KEEP)
		zb_buf_done(&out->writing);
	else
		zb_buf_clear(&out->writing);
	if (out->closed)
		return;
	if (status) {
		broke(out);
		return;
	}
	write_queue(out);
	if (!out->busy && out->full) {
		out->full = false;
		out->drained(out->ctx);
	}
}

static void write_queue(struct zb_wrap_out *out)
{
	struct zb_buf other = out->writing;
	uv_buf_t b;

	if (out->busy || out->gone || !out->queue.len)
		return;
	out->writing = out->queue;
	out->queue = other;
	out->write.data = out;
	b = uv_buf_init(out->writing.data, (unsigned)out->writing.len);
	if (uv_write(&out->write, (uv_stream_t *)&out->pipe, &b, 1, on_written))
		broke(out);
	else
		out->busy = true;
}

void zb_wrap_out_line(struct zb_wrap_out *out, const char *line, size_t len)
{
	bool whole = line[len] == '\n';
	uv_buf_t b[2] = {
		uv_buf_init((char *)(uintptr_t)line, (unsigned)(len + whole)),
		uv_buf_init((char[]){'\n'}, 1)};
	size_t done = 0;

	if (out->gone || out->closed)
		return;
	if (out->plain) {
		if (zb_cmd_out(line, len) || zb_cmd_out("\n", 1))
			broke(out);
		return;
	}
	if (!out->busy && !out->queue.len) {
		int n = uv_try_write((uv_stream_t *)&out->pipe, b,
				     whole ? 1 : 2);

		if (n < 0 && n != UV_EAGAIN) {
			broke(out);
			return;
		}
		done = n > 0 ? (size_t)n : 0;
		if (done == len + 1)
			return;
	}
	if (done < len)
		zb_buf_add(&out->queue, line + done, len - done);
	if (zb_buf_addc(&out->queue, '\n'))
		broke(out); /* half a line may be out: no use in going on */
	else
		write_queue(out);
}

bool zb_wrap_out_full(struct zb_wrap_out *out)
{
	if (out->queue.len + out->writing.len > QUEUE_HIGH)
		out->full = true;
	return out->full;
}

bool zb_wrap_out_idle(const struct zb_wrap_out *out)
{
	return out->gone || out->closed || (!out->busy && !out->queue.len);
}

int zb_wrap_out_open(struct zb_wrap_out *out, uv_loop_t *loop, int fd,
		     struct zb_error *err)
{
	int rc = 0;

	out->fd = fd;
	uv_pipe_init(loop, &out->pipe, 0);
	out->pipe.data = out;
	out->plain = uv_guess_handle(fd) != UV_NAMED_PIPE;
	if (!out->plain)
		rc = uv_pipe_open(&out->pipe, fd);
	return rc ? zb_fail_sys(err, -rc, "write standard output") : 0;
}

void zb_wrap_out_close(struct zb_wrap_out *out)
{
	if (out->closed)
		return;
	out->closed = true;
	uv_close((uv_handle_t *)&out->pipe, NULL);
}
