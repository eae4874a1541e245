/* cmd_console_out.c - what reached the agent or the user, printed. A script's
 * output is one line on stdout each:
 *
 *	H: EXT TYPE JSON @seconds
 *
 * where JSON is the frame without type and id. */
#include "cleanup.h"
#include "cmd.h"
#include "cmd_console.h"
#include "console_text.h"
#include "host_frames.h"
#include "text.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* ---- output ---- */

/* A person reads lines, a program the JSON. */
static void put(struct console *c, const char *ext, const char *type,
		const char *json)
{
	uint64_t ms = (uv_hrtime() - c->start_ns) / 1000000;
	struct zb_buf line = {0};

	if (c->out_failed)
		return;
	if (c->json)
		zb_buf_addf(&line, "%s\n", json);
	else if (c->screen)
		zb_console_text(&line, ext, type, json, strlen(json),
				c->screen->colour(c));
	else
		zb_buf_addf(&line, "H: %s %s %s @%llu.%03llu\n", ext, type,
			    json, (unsigned long long)ms / 1000,
			    (unsigned long long)ms % 1000);
	if (c->screen) {
		c->screen->rows(c, ext, &line);
	} else if (zb_cmd_out(zb_buf_str(&line), line.len)) {
		c->out_failed = true;
		c->failed = 1;
		c->closing = true;
		zb_agent_shutdown(c->agent);
	}
	zb_buf_done(&line);
}

const char *zb_console_name(const struct console *c, size_t member)
{
	const char *name;

	if (member == ZB_NOBODY)
		return "-";
	name = zb_agent_member(c->agent, member)->name;
	/* An extension whose manifest was not read may be called anything. */
	return zb_name_valid(name) ? name : "-";
}

void zb_console_put_frame(struct console *c, size_t member, const char *type,
			  const char *line, size_t len)
{
	struct zb_buf rest = {0};

	if (!zb_frame_rest(&rest, line, len))
		put(c, zb_console_name(c, member), type, zb_buf_str(&rest));
	zb_buf_done(&rest);
}

void zb_console_take_frame(struct console *c, size_t member, const char *type,
			   const char *what, const char *line, size_t len)
{
	if (!c->screen || !c->screen->panel_frame(c, member, type, line, len))
		zb_console_put_frame(c, member, what, line, len);
}

void zb_console_put_error(struct console *c, size_t member, const char *type,
			  const char *text)
{
	struct zb_buf json = {0}, line = {0};

	zb_buf_adds(&line, "{\"error\":");
	zb_json_quote(&line, text, strlen(text));
	zb_buf_addc(&line, '}');
	if (!zb_frame_rest(&json, zb_buf_str(&line), line.len))
		put(c, zb_console_name(c, member), type, zb_buf_str(&json));
	zb_buf_done(&json);
	zb_buf_done(&line);
}

void zb_console_say(struct console *c, const char *fmt, ...)
{
	struct zb_buf text = {0}, line = {0};
	va_list ap;

	va_start(ap, fmt);
	zb_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	if (c->screen && isatty(STDERR_FILENO)) {
		zb_buf_adds(&line, "zotbox: ");
		zb_cmd_visible(&line, zb_buf_str(&text), text.len);
		zb_buf_addc(&line, '\n');
		c->screen->show(c, zb_buf_str(&line), line.len);
	} else {
		zb_cmd_say("%s", zb_buf_str(&text));
	}
	zb_buf_done(&text);
	zb_buf_done(&line);
}

/* To stderr, named once. */
static void tell(struct console *c, size_t member, const char *text)
{
	const char *name = zb_agent_member(c->agent, member)->name;
	size_t n = strlen(name);

	if (!strncmp(text, name, n) && (text[n] == ' ' || text[n] == ':'))
		zb_console_say(c, "%s", text);
	else
		zb_console_say(c, "%s: %s", name, text);
}

/* ---- what the agent reports ---- */

static void on_frame(void *ctx, size_t member, const char *type,
		     const char *line, size_t len)
{
	zb_console_take_frame(ctx, member, type, type, line, len);
}

static void show_denial(struct console *c, size_t member, const char *text,
			size_t n)
{
	const char *ext = zb_console_name(c, member);
	struct zb_buf line = {0};

	/* What was asked for is the extension's to choose. */
	if (!zb_console_lines(&line, ext, text, n, c->screen->colour(c)))
		c->screen->rows(c, ext, &line);
	zb_buf_done(&line);
}

static void on_denied(void *ctx, size_t member, const struct zb_denial *d)
{
	struct console *c = ctx;
	struct zb_buf text = {0};

	if (c->screen && !c->json) {
		if (!zb_denial_text(d, getenv("HOME"), &text))
			show_denial(c, member, zb_buf_str(&text), text.len);
	} else if (!zb_denial_json(d, &text)) {
		zb_console_put_frame(c, member, "denied", zb_buf_str(&text),
				     text.len);
	}
	zb_buf_done(&text);
}

static void on_say(void *ctx, size_t member, const char *text)
{
	tell(ctx, member, text);
}

static void put_exit(struct console *c, size_t member,
		     const struct zb_member *m)
{
	struct zb_buf json = {0}, line = {0};

	zb_buf_addf(&line, "{\"%s\":%d,\"error\":",
		    m->exit.signalled ? "signal" : "status", m->exit.code);
	zb_json_quote(&line, m->problem, strlen(m->problem));
	zb_buf_addc(&line, '}');
	if (!zb_frame_rest(&json, zb_buf_str(&line), line.len))
		put(c, zb_console_name(c, member), "exit", zb_buf_str(&json));
	zb_buf_done(&json);
	zb_buf_done(&line);
}

static void on_changed(void *ctx, size_t member)
{
	struct console *c = ctx;
	const struct zb_member *m = zb_agent_member(c->agent, member);

	if (c->screen && (!m->ext || m->state == ZB_MEMBER_STOPPING))
		c->screen->panel_gone(c, member);
	if (m->state != ZB_MEMBER_GONE || !m->problem)
		return;
	if (!c->screen || c->json) /* else below */
		tell(c, member, m->problem);
	/* Why it could not start at all is the exit code only if nothing did:
	 * on_settled() decides. */
	if (m->code == ZB_OK || c->settled)
		zb_console_fail(c, 1);
	if (m->said_hello)
		put_exit(c, member, m);
	else
		zb_console_put_error(c, member, "load_error", m->problem);
}

/* Nothing at all could be started: no use in going on. */
static bool nothing_started(struct console *c)
{
	size_t n = zb_agent_count(c->agent);

	for (size_t i = 0; i < n; i++)
		if (zb_agent_member(c->agent, i)->code == ZB_OK)
			return false;
	if (n && !c->failed)
		c->failed = zb_exit_code(zb_agent_member(c->agent, 0)->code);
	return n > 0;
}

static void welcome(struct console *c)
{
	size_t n = zb_agent_count(c->agent), ready = 0;

	for (size_t i = 0; i < n; i++)
		ready += zb_agent_member(c->agent, i)->state == ZB_MEMBER_READY;
	zb_console_say(c,
		       "%zu of %zu extensions are ready; Tab completes, Ctrl-D "
		       "ends, %s --help has the verbs",
		       ready, n, "zotbox console");
}

static void on_settled(void *ctx)
{
	struct console *c = ctx;
	bool first = !c->settled;

	c->settled = true;
	if (first && nothing_started(c) && !zb_agent_has_guard(c->agent)) {
		zb_console_shut_down(c);
		return;
	}
	if (first && !zb_agent_count(c->agent))
		zb_console_say(c,
			       "no extension is installed and enabled here: "
			       "zotbox ext list shows what there is, zotbox "
			       "ext install PATH|GIT-URL installs one, "
			       "zotbox console PATH runs one where it lies%s",
			       c->screen ? "; Ctrl-D ends" : "");
	else if (first && c->screen)
		welcome(c);
	for (size_t i = 0; first && i < zb_agent_count(c->agent); i++)
		if (zb_agent_member(c->agent, i)->code != ZB_OK)
			zb_console_fail(c, 1);
	if (c->reload_busy)
		zb_console_put_reload(c);
	zb_console_next_lines(c);
}

/* One that is stopped or has ended says so itself. */
static void on_panel_gone(void *ctx, size_t member, const char *id)
{
	struct console *c = ctx;
	const struct zb_member *m = zb_agent_member(c->agent, member);
	struct zb_buf line = {0};

	if (c->screen) {
		c->screen->panel_closed(c, member, id);
		return;
	}
	if (!m->ext || m->state == ZB_MEMBER_STOPPING)
		return;
	zb_buf_adds(&line, "{\"panel_id\":");
	zb_json_quote(&line, id, strlen(id));
	zb_buf_addc(&line, '}');
	zb_console_put_frame(c, member, "panel_close", zb_buf_str(&line),
			     line.len);
	zb_buf_done(&line);
}

static void on_closed(void *ctx)
{
	struct console *c = ctx;

	c->closed = true;
	uv_stop(&c->loop);
}

const struct zb_agent_ops zb_console_agent_ops = {
	.frame = on_frame,
	.denied = on_denied,
	.say = on_say,
	.changed = on_changed,
	.settled = on_settled,
	.panel_gone = on_panel_gone,
	.closed = on_closed,
};
