/* cmd_console.h - what the parts of `zotbox console` share: cmd_console.c
 * (start and end), cmd_console_input.c (lines), cmd_console_calls.c (verbs),
 * cmd_console_out.c (what is printed); and, in a program of its own since
 * nobody else needs the libraries for it, cmd_console_screen.c (a person's
 * terminal). */
#ifndef ZB_CMD_CONSOLE_H
#define ZB_CMD_CONSOLE_H

#include "agent.h"
#include "console_panel.h"
#include "console_script.h"
#include "options.h"

#define ZB_CONSOLE_READ 65536 /* bytes of a script at a time */

/* A verb that waits. */
struct question;
struct console;
struct zb_tty;

/* A person's terminal (cmd_console_screen.c). */
struct console_screen {
	/* Take the terminal. Return: 0, or why not. */
	int (*open)(struct console *c, struct zb_error *err);
	/* The terminal is as it was; what is shown later is written as it
	 * comes. Twice is once. */
	void (*close)(struct console *c);
	/* After the last; the loop must run until the handles are closed. */
	void (*free)(struct console *c);
	/* The prompt that fits what is going on. */
	void (*state)(struct console *c);
	/* May colours be used? */
	bool (*colour)(const struct console *c);
	/* Something for a person to read: whole lines, safe to show. */
	void (*show)(struct console *c, const char *text, size_t n);
	/* Likewise what an extension said, in rows of the terminal. */
	void (*rows)(struct console *c, const char *ext,
		     const struct zb_buf *lines);
	/* Does the frame concern the panel on the screen? Draws it. Return:
	 * there is nothing more to print. */
	bool (*panel_frame)(struct console *c, size_t member, const char *type,
			    const char *line, size_t len);
	/* It was closed by its extension, or by a verb. */
	void (*panel_closed)(struct console *c, size_t member, const char *id);
	/* @member ended or starts again. */
	void (*panel_gone)(struct console *c, size_t member);
};

/* The one panel that is on the screen, and what happened to those before. */
struct shown_panel {
	struct zb_panel panel;
	size_t member; /* ZB_NOBODY: none is shown */
	char *news;    /* the last line that was said; for its last row */
	/* Panels that come as fast as the user closes them are held back. */
	unsigned n_closed;
	uint64_t closed_ms;
	bool held, said_why;
};

struct console {
	uv_loop_t loop;
	struct zb_store store;
	struct zb_host host;
	struct zb_agent *agent;
	char *project;
	const struct zb_args *args;
	struct zb_strv names; /* of installed ones, when none was given */
	uint64_t start_ns;
	bool json;

	/* Input. */
	uv_poll_t poll;
	uv_idle_t idle; /* in its place where there is nothing to wait for */
	char *room;
	struct zb_buf input;
	size_t taken; /* of @input */
	unsigned long line;
	bool eof, reading, polled;

	/* Progress. */
	bool settled, busy, pumping, closing, closed, out_failed;
	unsigned detached;
	struct question *awaited; /* that @busy is for, if it is one */
	uv_timer_t sleep;
	size_t show_from, show_to; /* members whose denials are wanted */
	uv_signal_t signals[3];
	int signo;	  /* that ended us */
	int failed;	  /* exit code so far */
	size_t reloading; /* member, or ZB_NOBODY for all */
	bool reload_busy, reload_waits;
	size_t stopped;

	/* A person's terminal; NULL: a script. */
	const struct console_screen *screen;
	struct zb_tty *tty;
	struct shown_panel shown;
	bool interrupted; /* once already, and nothing was typed since */
};

/* ---- cmd_console.c ---- */

/* From start to end, on @screen; NULL: a script on standard input. Return:
 * exit code. */
int zb_console_play(const struct zb_args *a,
		    const struct console_screen *screen);
void zb_console_shut_down(struct console *c);
/* The exit code, unless there is one already. */
void zb_console_fail(struct console *c, int code);

/* ---- cmd_console_input.c ---- */

/* Standard input is read from now on, when it is wanted. */
int zb_console_open_input(struct console *c, struct zb_error *err);
/* Run what may run now. Called again whenever something finished. */
void zb_console_next_lines(struct console *c);
/* A line that was typed; it waits for its turn. */
void zb_console_typed(struct console *c, const char *line);

/* ---- cmd_console_calls.c ---- */

void zb_console_run(struct console *c, const struct zb_script_line *l);
void zb_console_put_reload(struct console *c);
/* What is awaited is not any longer; it goes on. @told: its extension was told
 * to give it up. Return: there was something. */
bool zb_console_stop_waiting(struct console *c, bool *told);

/* ---- cmd_console_out.c ---- */

extern const struct zb_agent_ops zb_console_agent_ops;

/* An extension's name, "-" for nobody. */
const char *zb_console_name(const struct console *c, size_t member);
/* A line without type and id, from a frame. */
void zb_console_put_frame(struct console *c, size_t member, const char *type,
			  const char *line, size_t len);
/* A frame of @type: drawn where it is of a panel on the screen, else put as
 * @what. */
void zb_console_take_frame(struct console *c, size_t member, const char *type,
			   const char *what, const char *line, size_t len);
/* {"error":"..."} */
void zb_console_put_error(struct console *c, size_t member, const char *type,
			  const char *text);
/* "zotbox: ..." to standard error, or above the prompt. */
void zb_console_say(struct console *c, const char *fmt, ...) ZB_PRINTF(2, 3);

/* ---- cmd_console_screen.c ---- */

extern const struct console_screen zb_console_screen;

#endif
