/* console_tty.h - the terminal of a person: a line being edited (readline), or
 * a panel over the whole screen (ncurses), on one loop. Effects; one at a time,
 * since both libraries keep their state in the process.
 *
 * Whatever is written goes through here: zb_tty_say() does not wreck the line
 * that is being edited, and waits while a panel is on the screen. The modes of
 * the terminal are as they were found from zb_tty_end() on. No history is
 * written to a file: lines hold what was passed to tools. */
#ifndef ZB_CONSOLE_TTY_H
#define ZB_CONSOLE_TTY_H

#include "console_panel.h"
#include "error.h"

#include <uv.h>

#define ZB_TTY_HISTORY 500		   /* lines */
#define ZB_TTY_HELD    ((size_t)256 << 10) /* bytes that wait for a panel */

struct zb_tty;

struct zb_tty_ops {
	/* A line was entered. */
	void (*line)(void *ctx, const char *line);
	/* Ctrl-D on an empty line, or the terminal is gone. */
	void (*end)(void *ctx);
	/* Ctrl-C while a line is edited or nothing is (SIGINT). */
	void (*interrupt)(void *ctx);
	/* The terminal has another size. */
	void (*resized)(void *ctx);
	/* A key while a panel is shown; "esc" closes it. @text: of a rune, else
	 * NULL. */
	void (*key)(void *ctx, const char *key, const char *text);
	/* Add what may stand for the word that begins at byte @at of @line and
	 * begins as it does; only text that is plain (text.h). */
	void (*complete)(void *ctx, const char *line, size_t at,
			 const char *word, struct zb_strv *out);
};

/* Take the terminal of standard input and output; signals INT, WINCH, TSTP and
 * CONT are handled from here on. @prompt as in zb_tty_prompt(). Return: 0 or
 * ZB_ESYS, ZB_ELIMIT. */
int zb_tty_open(struct zb_tty **out, uv_loop_t *loop, const char *prompt,
		const struct zb_tty_ops *ops, void *ctx, struct zb_error *err);
/* The terminal as it was; no input any more. What is said later is written as
 * it comes. Twice is once; NULL is fine. */
void zb_tty_end(struct zb_tty *t);
/* After zb_tty_end(); the loop must run until the handles are closed. */
void zb_tty_free(struct zb_tty *t);

/* Show whole lines; @text must be safe to show. */
void zb_tty_say(struct zb_tty *t, const char *text, size_t n);
void zb_tty_prompt(struct zb_tty *t, const char *prompt);
/* Drop the line that is being edited. Return: there was one. */
bool zb_tty_drop_line(struct zb_tty *t);
/* Drop what was typed and not read yet. */
void zb_tty_drop_typed(struct zb_tty *t);
/* May colours be used? (NO_COLOR, TERM) */
bool zb_tty_colour(const struct zb_tty *t);
unsigned zb_tty_columns(const struct zb_tty *t);
/* Columns of a character there, as wcwidth(3). */
int zb_tty_width(uint32_t cp);

/* NULL if panels can be drawn here, else why not, as a clause. */
const char *zb_tty_no_panels(struct zb_tty *t);
/* Show @p, borrowed until the next call with another or NULL (no panel: back
 * to the prompt). @ext and @status as in zb_panel_draw(), copied. Called again
 * when @p changed. */
void zb_tty_panel(struct zb_tty *t, const struct zb_panel *p, const char *ext,
		  const char *status);

#endif
