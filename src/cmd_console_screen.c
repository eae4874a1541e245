/* cmd_console_screen.c - the console for a person: prompt, completion, panels.
 *
 * Keys go to whose panel is on the screen, so two things must not happen. What
 * was typed for one thing must not reach another that came up in between: typed
 * but unread input is dropped whenever an extension, and not the user, changes
 * what is shown. And nobody may be kept in panels: an extension that opens the
 * next one as soon as the last is closed is held back, after three of them,
 * until the user has entered a line. */
#include "cleanup.h"
#include "cmd_console.h"
#include "console_keys.h"
#include "console_text.h"
#include "console_tty.h"
#include "host_frames.h"
#include "text.h"

#include <string.h>
#include <unistd.h>

#define CLOSES	  3
#define CLOSES_MS 5000
#define NARROW	  30 /* columns below which the prompt is short */

/* ---- the panel ---- */

static bool is_shown(const struct console *c, size_t member, const char *id)
{
	return c->shown.member == member && id &&
	       !strcmp(c->shown.panel.id, id);
}

static void draw(struct console *c)
{
	const char *news = c->shown.news;

	zb_tty_panel(c->tty, &c->shown.panel,
		     zb_console_name(c, c->shown.member), news ? news : "");
}

static void hide(struct console *c)
{
	c->shown.member = ZB_NOBODY;
	zb_tty_panel(c->tty, NULL, NULL, NULL);
	zb_panel_done(&c->shown.panel);
	free(c->shown.news);
	c->shown.news = NULL;
}

static void hide_unasked(struct console *c)
{
	if (c->shown.member == ZB_NOBODY)
		return;
	zb_tty_drop_typed(c->tty);
	hide(c);
}

static void close_by_user(struct console *c)
{
	uint64_t now = uv_now(&c->loop);

	zb_agent_member_close(c->agent, c->shown.member, c->shown.panel.id);
	hide(c);
	if (now - c->shown.closed_ms > CLOSES_MS)
		c->shown.n_closed = 0;
	c->shown.closed_ms = now;
	c->shown.held = ++c->shown.n_closed >= CLOSES;
}

/* Where no panel can be drawn, its lines are printed. */
static void print_panel(struct console *c, size_t member)
{
	const struct zb_panel *p = &c->shown.panel;
	struct zb_buf text = {0}, line = {0};

	if (!c->shown.said_why)
		zb_console_say(c,
			       "panels need a better terminal (%s); their "
			       "lines are printed, keys are sent by: key %s "
			       "KEY [TEXT]",
			       zb_tty_no_panels(c->tty),
			       zb_text_is_plain(p->id, strlen(p->id))
				       ? p->id
				       : "PANEL");
	c->shown.said_why = true;
	zb_buf_addf(&text, "panel %s\n", p->title);
	for (size_t i = 0; i < p->lines.n; i++)
		zb_buf_addf(&text, "%s\n", p->lines.v[i]);
	zb_buf_adds(&text, p->footer);
	if (!zb_console_lines(&line, zb_console_name(c, member),
			      zb_buf_str(&text), text.len,
			      zb_tty_colour(c->tty)))
		c->screen->rows(c, zb_console_name(c, member), &line);
	zb_buf_done(&text);
	zb_buf_done(&line);
}

static void show_panel(struct console *c, bool unasked)
{
	if (zb_tty_no_panels(c->tty)) {
		print_panel(c, c->shown.member);
		return;
	}
	if (unasked)
		zb_tty_drop_typed(c->tty);
	draw(c);
}

/* The last one opened; who had the one before knows. */
static void open_panel(struct console *c, size_t member, struct zb_panel *p,
		       bool unasked)
{
	bool same = is_shown(c, member, p->id);

	if (c->shown.held && unasked) {
		zb_agent_member_close(c->agent, member, p->id);
		zb_console_say(c,
			       "%s opens a panel again; it is closed until you "
			       "enter a line",
			       zb_console_name(c, member));
		zb_panel_done(p);
		return;
	}
	zb_panel_done(&c->shown.panel);
	c->shown.panel = *p;
	c->shown.member = member;
	show_panel(c, unasked && !same);
}

static bool take_open(struct console *c, size_t member, const char *line,
		      size_t len)
{
	struct zb_panel p = {0};

	if (!zb_panel_read(&p, line, len, "panel"))
		open_panel(c, member, &p, true);
	return true;
}

static bool take_response(struct console *c, size_t member, const char *line,
			  size_t len)
{
	zb_auto(free) char *action = zb_frame_string(line, len, "action");
	zb_auto(free) char *error = zb_frame_string(line, len, "error");
	struct zb_panel p = {0};

	if (!action || strcmp(action, "open_panel") || (error && *error) ||
	    zb_panel_read(&p, line, len, "open_panel"))
		return false;
	open_panel(c, member, &p, false);
	return true;
}

static bool take_render(struct console *c, size_t member, const char *line,
			size_t len)
{
	zb_auto(free) char *id = zb_frame_string(line, len, "panel_id");

	if (is_shown(c, member, id) &&
	    !zb_panel_read(&c->shown.panel, line, len, NULL))
		show_panel(c, false);
	return true;
}

static void panel_closed(struct console *c, size_t member, const char *id)
{
	if (is_shown(c, member, id))
		hide_unasked(c);
}

static void panel_gone(struct console *c, size_t member)
{
	if (c->shown.member == member)
		hide_unasked(c);
}

static bool take_close(struct console *c, size_t member, const char *line,
		       size_t len)
{
	zb_auto(free) char *id = zb_frame_string(line, len, "panel_id");

	panel_closed(c, member, id);
	return true;
}

static const struct {
	const char *type;
	bool (*take)(struct console *c, size_t member, const char *line,
		     size_t len);
} takers[] = {
	{"open_panel", take_open},
	{"command_response", take_response},
	{"panel_render", take_render},
	{"panel_close", take_close},
};

static bool panel_frame(struct console *c, size_t member, const char *type,
			const char *line, size_t len)
{
	if (c->closing)
		return false;
	for (size_t i = 0; i < ZB_ARRAY_LEN(takers); i++)
		if (!strcmp(takers[i].type, type))
			return takers[i].take(c, member, line, len) && !c->json;
	return false;
}

/* ---- what is said ---- */

/* The last line of what was said while a panel is shown is its last row. */
static void set_news(struct console *c, const char *text, size_t n)
{
	size_t end = n && text[n - 1] == '\n' ? n - 1 : n, from = end;
	char *news;

	if (c->shown.member == ZB_NOBODY || !end)
		return;
	while (from && text[from - 1] != '\n')
		from--;
	news = zb_strf(" %.*s", (int)(end - from), text + from);
	if (!news)
		return;
	free(c->shown.news);
	c->shown.news = news;
	if (!zb_tty_no_panels(c->tty))
		draw(c);
}

static void show(struct console *c, const char *text, size_t n)
{
	zb_tty_say(c->tty, text, n);
	set_news(c, text, n);
}

static void show_rows(struct console *c, const char *ext,
		      const struct zb_buf *lines)
{
	struct zb_buf rows = {0};

	if (!zb_console_rows(&rows, ext, zb_buf_str(lines), lines->len,
			     zb_tty_columns(c->tty), zb_tty_width)) {
		zb_tty_say(c->tty, zb_buf_str(&rows), rows.len);
		/* Below a panel there is one row: the beginning. */
		set_news(c, zb_buf_str(lines), lines->len);
	}
	zb_buf_done(&rows);
}

static void show_state(struct console *c)
{
	bool narrow;

	if (c->closing)
		return;
	narrow = zb_tty_columns(c->tty) < NARROW;
	if (!c->settled)
		zb_tty_prompt(c->tty, narrow ? "..> " : "starting> ");
	else if (c->busy)
		zb_tty_prompt(c->tty, narrow ? "..> " : "waiting> ");
	else
		zb_tty_prompt(c->tty, narrow ? "> " : "zotbox> ");
}

/* ---- keys ---- */

static void on_line(void *ctx, const char *line)
{
	struct console *c = ctx;

	c->interrupted = false;
	c->shown.held = false;
	c->shown.n_closed = 0;
	zb_console_typed(c, line);
}

static void on_end(void *ctx)
{
	zb_console_shut_down(ctx);
}

static void on_interrupt(void *ctx)
{
	struct console *c = ctx;
	bool told;

	if (c->closing) /* asked twice: no manners any more */
		_exit(128 + 2);
	if (c->shown.member != ZB_NOBODY && !zb_tty_no_panels(c->tty)) {
		close_by_user(c);
		return;
	}
	if (zb_tty_drop_line(c->tty))
		return;
	if (c->interrupted) {
		zb_console_shut_down(c);
		return;
	}
	c->interrupted = true;
	if (zb_console_stop_waiting(c, &told)) {
		zb_buf_clear(&c->input);
		c->taken = 0;
		zb_console_say(c, "%s; what comes of it is shown when it comes",
			       told ? "its extension was told to cancel it"
				    : "not waited for any longer");
		zb_console_next_lines(c);
	} else {
		zb_console_say(c, "Ctrl-C again, or Ctrl-D, ends");
	}
}

static void on_resized(void *ctx)
{
	show_state(ctx);
}

static void on_key(void *ctx, const char *key, const char *text)
{
	struct console *c = ctx;

	if (!strcmp(key, "esc"))
		close_by_user(c);
	else if (zb_agent_member_key(c->agent, c->shown.member,
				     c->shown.panel.id, key, text) == ZB_NOBODY)
		hide_unasked(c);
}

/* ---- completion ---- */

/* A candidate for the word so far: it begins so, is one word, and safe. */
static void offer(struct zb_strv *out, const char *word, const char *prefix,
		  const char *name)
{
	size_t n = strlen(name);

	if (!n || !zb_text_is_plain(name, n) || strpbrk(name, " \t\"\\"))
		return;
	if (!strncmp(word, prefix, strlen(prefix)) &&
	    !strncmp(word + strlen(prefix), name,
		     strlen(word) - strlen(prefix)))
		zb_strv_take(out, zb_strf("%s%s", prefix, name));
}

static void offer_verbs(const struct console *c, const char *word,
			struct zb_strv *out)
{
	(void)c;
	for (size_t i = 0; zb_script_verb_word(i); i++)
		offer(out, word, "", zb_script_verb_word(i));
}

static void offer_commands_after(const struct console *c, const char *word,
				 const char *prefix, struct zb_strv *out)
{
	const struct zb_registry *r = zb_agent_registry(c->agent);

	for (size_t m = 0; m < r->n; m++)
		for (size_t i = 0;
		     !r->members[m].gone && i < r->members[m].n_commands; i++)
			offer(out, word, prefix,
			      r->members[m].commands[i].name);
}

static void offer_commands(const struct console *c, const char *word,
			   struct zb_strv *out)
{
	offer_commands_after(c, word, "", out);
}

static void offer_tools(const struct console *c, const char *word,
			struct zb_strv *out)
{
	const struct zb_registry *r = zb_agent_registry(c->agent);

	for (size_t m = 0; m < r->n; m++)
		for (size_t i = 0;
		     !r->members[m].gone && i < r->members[m].n_tools; i++)
			offer(out, word, "", r->members[m].tools[i].name);
}

static void offer_exts(const struct console *c, const char *word,
		       struct zb_strv *out)
{
	for (size_t i = 0; i < zb_agent_count(c->agent); i++)
		offer(out, word, "", zb_agent_member(c->agent, i)->name);
}

static void offer_panels(const struct console *c, const char *word,
			 struct zb_strv *out)
{
	if (c->shown.member != ZB_NOBODY)
		offer(out, word, "", c->shown.panel.id);
}

static void offer_list(const char *const *list, const char *word,
		       struct zb_strv *out)
{
	for (size_t i = 0; list[i]; i++)
		offer(out, word, "", list[i]);
}

static void offer_keys(const struct console *c, const char *word,
		       struct zb_strv *out)
{
	(void)c;
	offer_list(zb_key_names, word, out);
}

static void offer_events(const struct console *c, const char *word,
			 struct zb_strv *out)
{
	static const char *const events[] = {"session_start",
					     "turn_start",
					     "turn_end",
					     "tool_call",
					     "assistant_message",
					     "before_agent_start",
					     NULL};

	(void)c;
	offer_list(events, word, out);
}

static void (*const offers[])(const struct console *c, const char *word,
			      struct zb_strv *out) = {
	[ZB_SLOT_VERB] = offer_verbs,	    [ZB_SLOT_TOOL] = offer_tools,
	[ZB_SLOT_COMMAND] = offer_commands, [ZB_SLOT_EXT] = offer_exts,
	[ZB_SLOT_PANEL] = offer_panels,	    [ZB_SLOT_KEY] = offer_keys,
	[ZB_SLOT_EVENT] = offer_events,
};

static void on_complete(void *ctx, const char *line, size_t at,
			const char *word, struct zb_strv *out)
{
	const struct console *c = ctx;
	enum zb_script_slot slot = zb_script_slot(line, at);

	if (slot == ZB_SLOT_VERB && (!*word || *word == '/'))
		offer_commands_after(c, *word ? word : "/", "/", out);
	if (slot != ZB_SLOT_NONE)
		offers[slot](c, word, out);
}

static const struct zb_tty_ops tty_ops = {
	.line = on_line,
	.end = on_end,
	.interrupt = on_interrupt,
	.resized = on_resized,
	.key = on_key,
	.complete = on_complete,
};

static bool colour(const struct console *c)
{
	return zb_tty_colour(c->tty);
}

static int open_screen(struct console *c, struct zb_error *err)
{
	c->shown.member = ZB_NOBODY;
	return zb_tty_open(&c->tty, &c->loop, "starting> ", &tty_ops, c, err);
}

static void close_screen(struct console *c)
{
	zb_tty_end(c->tty);
	c->shown.member = ZB_NOBODY;
	zb_panel_done(&c->shown.panel);
	free(c->shown.news);
	c->shown.news = NULL;
}

static void free_screen(struct console *c)
{
	zb_tty_free(c->tty);
}

const struct console_screen zb_console_screen = {
	.open = open_screen,
	.close = close_screen,
	.free = free_screen,
	.state = show_state,
	.colour = colour,
	.show = show,
	.rows = show_rows,
	.panel_frame = panel_frame,
	.panel_closed = panel_closed,
	.panel_gone = panel_gone,
};
