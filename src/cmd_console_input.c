/* cmd_console_input.c - lines, one at a time. Descriptor 0 is read on a worker
 * thread with a plain read(2): it may be a file, or a pipe shared with others,
 * and must not be made non-blocking. On a terminal lines come from readline. */
#include "cmd.h"
#include "cmd_console.h"
#include "console_script.h"

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

static void on_input(uv_fs_t *req);

static void read_more(struct console *c)
{
	uv_buf_t b = uv_buf_init(c->room, ZB_CONSOLE_READ);

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
	c->read.data = c;
	c->reading = !uv_fs_read(&c->loop, &c->read, STDIN_FILENO, &b, 1, -1,
				 on_input);
}

static void on_input(uv_fs_t *req)
{
	struct console *c = req->data;
	ssize_t n = req->result;

	c->reading = false;
	uv_fs_req_cleanup(req);
	if (n > 0)
		zb_buf_add(&c->input, c->room, (size_t)n);
	else
		c->eof = true;
	zb_console_next_lines(c);
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
