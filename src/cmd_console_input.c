/* cmd_console_input.c - lines, one at a time. Descriptor 0 is read with a plain
 * read(2) when there is something: it may be a file, or a pipe shared with
 * others, and must not be made non-blocking. On a terminal lines come from
 * readline. */
#include "cmd.h"
#include "cmd_console.h"
#include "console_script.h"
#include "loop.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES ((size_t)16 << 20)

/* ---- input ---- */

static void run_line(struct console *c, const char *line, size_t len)
{
	struct zb_script_line l;
	struct zb_error err = {0};

	c->line++;
	if (zb_script_parse(&l, line, len, &err)) {
		if (c->screen) { /* a person can type it again */
			zb_console_say(c, "%s", err.msg);
			return;
		}
		zb_wrap(&err, "line %lu", c->line);
		zb_cmd_fail(&err);
		c->failed = 2;
		zb_console_shut_down(c);
		return;
	}
	zb_console_run(c, &l);
	zb_script_line_done(&l);
}

static void read_input(struct console *c)
{
	ssize_t n = read(STDIN_FILENO, c->room, ZB_CONSOLE_READ);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return; /* another of its readers has it */
	c->reading = false;
	if (c->polled)
		uv_poll_stop(&c->poll);
	uv_idle_stop(&c->idle);
	if (n > 0)
		zb_buf_add(&c->input, c->room, (size_t)n);
	else
		c->eof = true;
	zb_console_next_lines(c);
}

static void on_readable(uv_poll_t *h, int status, int events)
{
	(void)status; /* read(2) has the error */
	(void)events;
	read_input(h->data);
}

static void on_idle(uv_idle_t *h)
{
	read_input(h->data);
}

int zb_console_open_input(struct console *c, struct zb_error *err)
{
	int rc = zb_loop_watch(&c->loop, &c->poll, STDIN_FILENO);

	if (rc && rc != UV_EPERM)
		return zb_fail_sys(err, -rc, "read standard input");
	c->polled = !rc;
	c->poll.data = c->idle.data = c;
	return 0;
}

static void read_more(struct console *c)
{
	if (c->reading || c->eof || c->screen)
		return;
	if (!c->taken && c->input.len > LINE_MAX_BYTES) {
		zb_cmd_say("line %lu is longer than %zu bytes", c->line + 1,
			   LINE_MAX_BYTES);
		c->failed = 2;
		zb_console_shut_down(c);
		return;
	}
	zb_buf_consume(&c->input, c->taken);
	c->taken = 0;
	c->reading = true;
	if (c->polled)
		uv_poll_start(&c->poll, UV_READABLE, on_readable);
	else
		uv_idle_start(&c->idle, on_idle);
}

/* The next whole line of what was read; at the end also one without newline. */
static bool take_line(struct console *c, const char **line, size_t *len)
{
	size_t left = c->input.len - c->taken;
	const char *p = zb_buf_str(&c->input) + c->taken;
	const char *nl = left ? memchr(p, '\n', left) : NULL;

	if (!nl && !(c->eof && left))
		return false;
	*line = p;
	*len = nl ? (size_t)(nl - p) : left;
	c->taken += *len + (nl != NULL);
	return true;
}

void zb_console_next_lines(struct console *c)
{
	const char *line;
	size_t len;

	if (c->pumping)
		return;
	c->pumping = true;
	while (c->settled && !c->busy && !c->closing) {
		if (take_line(c, &line, &len)) {
			run_line(c, line, len);
			continue;
		}
		if (c->eof && !c->detached)
			zb_console_shut_down(c);
		else if (!c->eof)
			read_more(c);
		break;
	}
	c->pumping = false;
	if (c->screen)
		c->screen->state(c);
}

void zb_console_typed(struct console *c, const char *line)
{
	if (c->input.len - c->taken + strlen(line) > LINE_MAX_BYTES) {
		zb_console_say(c, "too much waits to be run; this line is not "
				  "taken");
		return;
	}
	zb_buf_consume(&c->input, c->taken);
	c->taken = 0;
	zb_buf_addf(&c->input, "%s\n", line);
	zb_console_next_lines(c);
}
