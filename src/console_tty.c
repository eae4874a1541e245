/* console_tty.c - readline and ncurses on one terminal and one loop.
 *
 * Three modes: EDITING (readline has the terminal), PANEL (ncurses has it),
 * ENDED (nobody has). Readline is driven by its callback interface, a byte at a
 * time as poll says; ncurses only draws, keys are read here (console_keys.h),
 * because its own getch() would wait for the rest of a sequence and keep the
 * loop from everything else.
 *
 * An entered line is handled after readline has let go of the terminal, so that
 * what the line causes is written in order and finds no prompt in its way; the
 * next prompt comes after. What is said at other times collects and is written
 * once a turn of the loop: the visible line is wiped, the text written, the
 * line drawn again below it. */
#define _GNU_SOURCE	   /* wcwidth */
#define NCURSES_WIDECHAR 1 /* whatever its .pc file says */
#include "console_tty.h"

#include "cleanup.h"
#include "console_keys.h"
#include "loop.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include <readline/history.h>
#include <readline/readline.h>

#define ESC_MS	 50 /* after it, Esc is the key and no beginning */
#define SIGNALS	 4
#define OWN_KEYS 16

enum mode {
	EDITING,
	PANEL,
	ENDED,
};

struct zb_tty {
	const struct zb_tty_ops *ops;
	void *ctx;
	struct termios found; /* as it was */
	enum mode mode;
	char *prompt;
	bool installed; /* readline's handler */
	bool prompt_new, colour;
	char *entered;
	bool eof;

	struct zb_buf out; /* said, not written */
	size_t dropped;	   /* bytes, of what waited for a panel */

	SCREEN *screen; /* ncurses, once it was needed */
	bool no_colours;
	const struct zb_panel *panel;
	char *ext, *status;
	bool redraw;
	struct zb_screen cells;
	struct zb_keys keys;
	struct zb_key_seq own[OWN_KEYS];
	char no_panels[80];

	struct zb_strv found_words; /* of a completion */
	size_t next_word;

	uv_poll_t poll;
	uv_timer_t esc;
	uv_prepare_t flush;
	uv_signal_t signals[SIGNALS];
	unsigned handles;
};

/* Readline calls back without a context. */
static struct zb_tty *tty;

/* ---- writing ---- */

static void write_out(const char *p, size_t n)
{
	fflush(stdout);
	while (n) {
		ssize_t done = write(STDOUT_FILENO, p, n);

		if (done < 0 && errno == EAGAIN) {
			struct pollfd pfd = {.fd = STDOUT_FILENO,
					     .events = POLLOUT};

			poll(&pfd, 1, -1);
			continue;
		}
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return; /* the terminal is gone: SIGHUP says so */
		p += done;
		n -= (size_t)done;
	}
}

static void write_said(struct zb_tty *t)
{
	if (t->dropped) {
		char note[80];
		int n = snprintf(note, sizeof(note),
				 "(%zu bytes that came meanwhile are not "
				 "shown; the logs have them)\n",
				 t->dropped);

		write_out(note, (size_t)n);
	}
	write_out(zb_buf_str(&t->out), t->out.len);
	zb_buf_clear(&t->out);
	t->dropped = 0;
}

/* Draw prompt and line anew, on a row of their own. */
static void draw_line(void)
{
	rl_on_new_line();
	rl_redisplay();
	fflush(stdout);
}

static void flush_said(struct zb_tty *t)
{
	if (t->mode == PANEL || (!t->out.len && !t->prompt_new))
		return;
	if (t->mode == EDITING && t->installed) {
		rl_clear_visible_line();
		write_said(t);
		rl_set_prompt(t->prompt);
		draw_line();
	} else {
		write_said(t);
	}
	t->prompt_new = false;
}

void zb_tty_say(struct zb_tty *t, const char *text, size_t n)
{
	if (t->mode == PANEL && t->out.len + n > ZB_TTY_HELD) {
		t->dropped += n;
		return;
	}
	zb_buf_add(&t->out, text, n);
	if (t->mode == ENDED || t->out.len > ZB_TTY_HELD || t->out.failed)
		flush_said(t);
}

/* ---- the line ---- */

static void on_entered(char *line)
{
	rl_callback_handler_remove();
	tty->installed = false;
	tty->entered = line;
	tty->eof = !line;
}

static void install(struct zb_tty *t)
{
	if (t->mode != EDITING || t->installed)
		return;
	if (t->out.len)
		write_said(t);
	t->prompt_new = false;
	t->installed = true;
	rl_callback_handler_install(t->prompt, on_entered);
}

static void remember(const char *line)
{
	HIST_ENTRY *last =
		history_length ? history_get(history_base + history_length - 1)
			       : NULL;

	if (line[strspn(line, " \t")] && (!last || strcmp(last->line, line)))
		add_history(line);
}

static void take_entered(struct zb_tty *t)
{
	char *line = t->entered;

	t->entered = NULL;
	if (t->eof) {
		t->eof = false;
		write_out("\n", 1);
		t->ops->end(t->ctx);
	} else if (line) {
		remember(line);
		t->ops->line(t->ctx, line);
	}
	free(line);
	install(t);
}

static bool more_input(void)
{
	struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLIN);
}

static void edit(struct zb_tty *t)
{
	do {
		rl_callback_read_char();
		if (t->entered || t->eof)
			take_entered(t);
	} while (t->mode == EDITING && t->installed && more_input());
	fflush(stdout);
}

void zb_tty_prompt(struct zb_tty *t, const char *prompt)
{
	char *copy;

	if (!strcmp(t->prompt, prompt))
		return;
	copy = zb_strdup(prompt);
	if (!copy)
		return;
	free(t->prompt);
	t->prompt = copy;
	t->prompt_new = true;
}

bool zb_tty_drop_line(struct zb_tty *t)
{
	bool some = rl_end > 0;

	if (t->mode != EDITING || !t->installed)
		return false;
	rl_callback_sigcleanup();
	rl_free_line_state();
	rl_point = rl_end;
	rl_redisplay();
	fflush(stdout);
	write_out("^C\n", 3);
	rl_replace_line("", 1);
	draw_line();
	return some;
}

void zb_tty_drop_typed(struct zb_tty *t)
{
	tcflush(STDIN_FILENO, TCIFLUSH);
	t->keys.n = 0;
}

static char *next_word(const char *text, int state)
{
	struct zb_tty *t = tty;

	(void)text;
	if (!state)
		t->next_word = 0;
	return t->next_word < t->found_words.n
		       ? strdup(t->found_words.v[t->next_word++])
		       : NULL;
}

static char **complete(const char *text, int start, int end)
{
	struct zb_tty *t = tty;
	char **list;

	(void)end;
	rl_attempted_completion_over = 1; /* no names of files */
	t->ops->complete(t->ctx, rl_line_buffer, (size_t)start, text,
			 &t->found_words);
	list = rl_completion_matches(text, next_word);
	zb_strv_done(&t->found_words);
	return list;
}

static void set_up_readline(void)
{
	static char name[] = "zotbox", breaks[] = " \t", none[] = "";

	rl_readline_name = name;
	rl_instream = stdin;
	rl_outstream = stdout;
	rl_catch_signals = 0;
	rl_catch_sigwinch = 0;
	rl_change_environment = 0;
	rl_attempted_completion_function = complete;
	rl_completer_word_break_characters = breaks;
	rl_basic_word_break_characters = breaks;
	rl_completer_quote_characters = none;
	using_history();
	stifle_history(ZB_TTY_HISTORY);
	rl_initialize();
	/* Nothing may wait for a key outside the loop. */
	rl_completion_query_items = 0;
	rl_variable_bind("page-completions", "off");
	rl_variable_bind("keyseq-timeout", "50");
}

/* ---- the panel ---- */

int zb_tty_width(uint32_t cp)
{
	return wcwidth((wchar_t)cp);
}

static void learn_keys(struct zb_tty *t)
{
	static const struct {
		const char *cap, *name;
	} caps[] = {
		{"kcuu1", "up"},    {"kcud1", "down"},	  {"kcub1", "left"},
		{"kcuf1", "right"}, {"khome", "home"},	  {"kend", "end"},
		{"kpp", "pageup"},  {"knp", "pagedown"},  {"kdch1", "delete"},
		{"kent", "enter"},  {"kbs", "backspace"},
	};
	_Static_assert(ZB_ARRAY_LEN(caps) <= OWN_KEYS, "room for all");

	for (size_t i = 0; i < ZB_ARRAY_LEN(caps); i++) {
		const char *s = tigetstr(caps[i].cap);

		if (!s || s == (const char *)-1 || !*s ||
		    strlen(s) >= ZB_KEY_SEQ)
			continue;
		t->own[t->keys.n_more].name = caps[i].name;
		memcpy(t->own[t->keys.n_more++].bytes, s, strlen(s) + 1);
	}
	t->keys.more = t->own;
}

/* Ncurses takes the modes it finds for those to go back to: they must be the
 * shell's and not readline's. */
static SCREEN *make_screen(const struct zb_tty *t)
{
	bool editing = t->mode == EDITING && t->installed;
	SCREEN *s;

	if (editing)
		(*rl_deprep_term_function)();
	use_env(FALSE);
	use_tioctl(TRUE);
	s = newterm(NULL, stdout, stdin);
	if (s)
		endwin();
	if (editing)
		(*rl_prep_term_function)(1);
	return s;
}

const char *zb_tty_no_panels(struct zb_tty *t)
{
	const char *term = getenv("TERM"), *move = NULL;

	if (t->screen || t->no_panels[0])
		return t->screen ? NULL : t->no_panels;
	if (!term || !*term || !strcmp(term, "dumb")) {
		snprintf(t->no_panels, sizeof(t->no_panels), "TERM is %s",
			 term && *term ? term : "not set");
		return t->no_panels;
	}
	/* Readline has looked it up, and what newterm() does with one that is
	 * not known leaves memory behind. */
	move = tigetstr("cup");
	if (move && move != (const char *)-1)
		t->screen = make_screen(t);
	if (t->screen) {
		learn_keys(t);
		return NULL;
	}
	snprintf(t->no_panels, sizeof(t->no_panels),
		 "this terminal cannot move its cursor, or is not known");
	return t->no_panels;
}

static void set_up_screen(struct zb_tty *t)
{
	raw();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	scrollok(stdscr, FALSE);
	curs_set(0);
	t->no_colours = !t->colour || !has_colors() || start_color() == ERR ||
			use_default_colors() == ERR;
}

/* Of 256 colours what this terminal has. */
static int colour_here(int c, attr_t *attrs)
{
	if (c < 0 || c < COLORS)
		return c;
	if (c < 16 && COLORS >= 8) {
		*attrs |= A_BOLD;
		return c - 8;
	}
	return -1;
}

static const struct {
	uint8_t flag;
	attr_t attr;
} attributes[] = {
	{ZB_STYLE_BOLD, A_BOLD},       {ZB_STYLE_DIM, A_DIM},
	{ZB_STYLE_ITALIC, A_ITALIC},   {ZB_STYLE_UNDERLINE, A_UNDERLINE},
	{ZB_STYLE_REVERSE, A_REVERSE}, {ZB_STYLE_BLINK, A_BLINK},
};

static void put_cell(struct zb_tty *t, unsigned row, unsigned col,
		     const struct zb_cell *c)
{
	wchar_t text[ZB_CELL_CHARACTERS + 1] = {0};
	attr_t attrs = A_NORMAL;
	int pair = 0;
	cchar_t cc;

	for (unsigned i = 0; i < c->n; i++)
		text[i] = (wchar_t)c->cp[i];
	for (size_t i = 0; i < ZB_ARRAY_LEN(attributes); i++)
		if (c->style.flags & attributes[i].flag)
			attrs |= attributes[i].attr;
	if (!t->no_colours && (c->style.fg >= 0 || c->style.bg >= 0)) {
		attr_t none = 0;
		int fg = colour_here(c->style.fg, &attrs);
		int bg = colour_here(c->style.bg, &none);

		pair = alloc_pair(fg, bg);
		if (pair < 0)
			pair = 0;
	}
	setcchar(&cc, text, attrs, 0, &pair);
	mvadd_wch((int)row, (int)col, &cc);
}

static void fit_screen(void)
{
	struct winsize ws = {0};

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) && ws.ws_row && ws.ws_col &&
	    (ws.ws_row != LINES || ws.ws_col != COLS))
		resizeterm(ws.ws_row, ws.ws_col);
}

static void draw_panel(struct zb_tty *t)
{
	t->redraw = false;
	fit_screen();
	if (zb_panel_draw(t->panel, t->ext, t->status, (unsigned)LINES,
			  (unsigned)COLS, zb_tty_width, &t->cells))
		return;
	erase();
	for (unsigned r = 0; r < t->cells.rows; r++)
		for (unsigned c = 0; c < t->cells.cols; c++) {
			const struct zb_cell *cell =
				&t->cells.cell[r * t->cells.cols + c];

			if (cell->n)
				put_cell(t, r, c, cell);
		}
	refresh();
}

/* Where there is no screen of its own to go back from, the panel is wiped. */
static void leave_screen(void)
{
	const char *back = tigetstr("rmcup");

	if (!back || back == (const char *)-1) {
		erase();
		refresh();
	}
	curs_set(1);
	endwin();
}

static void enter_panel(struct zb_tty *t)
{
	if (t->installed) {
		rl_clear_visible_line();
		fflush(stdout);
		(*rl_deprep_term_function)();
	}
	flush_said(t);
	t->mode = PANEL;
	t->keys.n = 0;
	set_term(t->screen);
	set_up_screen(t);
	clearok(stdscr, TRUE);
}

/* Readline's view of the terminal is older than ncurses'. */
static void leave_panel(struct zb_tty *t)
{
	uv_timer_stop(&t->esc);
	leave_screen();
	t->mode = EDITING;
	t->panel = NULL;
	rl_reset_screen_size();
	if (!t->installed) {
		install(t);
		return;
	}
	(*rl_prep_term_function)(1);
	write_said(t);
	rl_set_prompt(t->prompt);
	t->prompt_new = false;
	draw_line();
}

static char *replaced(char *old, const char *s)
{
	char *copy = zb_strdup(s);

	if (!copy)
		return old;
	free(old);
	return copy;
}

void zb_tty_panel(struct zb_tty *t, const struct zb_panel *p, const char *ext,
		  const char *status)
{
	if (t->mode == ENDED)
		return;
	if (!p) {
		if (t->mode == PANEL)
			leave_panel(t);
		return;
	}
	if (zb_tty_no_panels(t))
		return;
	t->ext = replaced(t->ext, ext);
	t->status = replaced(t->status, status);
	if (!t->ext || !t->status)
		return;
	t->panel = p;
	if (t->mode == EDITING)
		enter_panel(t);
	t->redraw = true;
}

/* A key may close the panel, or end the program: then the rest of what was
 * typed is not for it. */
static void take_keys(struct zb_tty *t, bool waited)
{
	struct zb_key key;

	while (t->mode == PANEL && zb_keys_next(&t->keys, waited, &key))
		t->ops->key(t->ctx, key.name, key.text[0] ? key.text : NULL);
	if (t->mode != PANEL)
		t->keys.n = 0;
}

static void on_waited(uv_timer_t *h)
{
	take_keys(h->data, true);
}

static void read_keys(struct zb_tty *t)
{
	char bytes[ZB_KEY_ROOM];
	ssize_t n = read(STDIN_FILENO, bytes, zb_keys_room(&t->keys));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		t->ops->end(t->ctx);
		return;
	}
	zb_keys_feed(&t->keys, bytes, (size_t)n);
	take_keys(t, false);
	if (t->mode == PANEL && t->keys.n)
		uv_timer_start(&t->esc, on_waited, ESC_MS, 0);
	else
		uv_timer_stop(&t->esc);
}

/* ---- the loop ---- */

static void on_readable(uv_poll_t *h, int status, int events)
{
	struct zb_tty *t = h->data;

	(void)events;
	if (status < 0) {
		uv_poll_stop(h);
		t->ops->end(t->ctx);
		return;
	}
	if (t->mode == PANEL)
		read_keys(t);
	else if (t->mode == EDITING)
		edit(t);
}

static void on_prepare(uv_prepare_t *h)
{
	struct zb_tty *t = h->data;

	if (t->mode == PANEL && t->redraw)
		draw_panel(t);
	flush_said(t);
}

/* Stopped from the keyboard or by kill(1): the shell gets its terminal as it
 * was; SIGCONT brings ours back. */
static void on_stop(struct zb_tty *t)
{
	if (t->mode == PANEL)
		leave_screen();
	else if (t->installed)
		(*rl_deprep_term_function)();
	kill(getpid(), SIGSTOP);
}

static void on_continue(struct zb_tty *t)
{
	if (t->mode == PANEL) {
		set_up_screen(t);
		clearok(stdscr, TRUE);
		t->redraw = true;
	} else if (t->installed) {
		(*rl_prep_term_function)(1);
		draw_line();
	}
}

static void on_resize(struct zb_tty *t)
{
	if (t->mode == PANEL) {
		t->redraw = true;
	} else if (t->installed) {
		rl_resize_terminal();
		fflush(stdout);
	}
	t->ops->resized(t->ctx);
}

static void on_interrupt(struct zb_tty *t)
{
	t->ops->interrupt(t->ctx);
}

static const struct {
	int signo;
	void (*act)(struct zb_tty *t);
} handled[SIGNALS] = {
	{SIGINT, on_interrupt},
	{SIGWINCH, on_resize},
	{SIGTSTP, on_stop},
	{SIGCONT, on_continue},
};

static void on_signal(uv_signal_t *h, int signo)
{
	for (size_t i = 0; i < ZB_ARRAY_LEN(handled); i++)
		if (handled[i].signo == signo)
			handled[i].act(h->data);
}

/* Names of a character set: UTF-8, as all that is written here is. A user whose
 * locale says nothing (a container) has a UTF-8 terminal all the same. */
static void set_locale(void)
{
	if (setlocale(LC_CTYPE, "") && !strcmp(nl_langinfo(CODESET), "UTF-8"))
		return;
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		setlocale(LC_CTYPE, "en_US.UTF-8");
}

/* After readline has looked the terminal up. */
static bool wants_colour(void)
{
	const char *no = getenv("NO_COLOR");

	return !(no && *no) && tigetnum("colors") >= 8;
}

/* uv_signal_init() cannot fail here: that of the console's own did not. */
static void start_handles(struct zb_tty *t, uv_loop_t *loop)
{
	uv_timer_init(loop, &t->esc);
	uv_prepare_init(loop, &t->flush);
	t->poll.data = t->esc.data = t->flush.data = t;
	t->handles = 3 + SIGNALS;
	for (size_t i = 0; i < SIGNALS; i++) {
		uv_signal_init(loop, &t->signals[i]);
		t->signals[i].data = t;
		uv_signal_start(&t->signals[i], on_signal, handled[i].signo);
		uv_unref((uv_handle_t *)&t->signals[i]);
	}
	uv_prepare_start(&t->flush, on_prepare);
	uv_unref((uv_handle_t *)&t->flush);
	uv_poll_start(&t->poll, UV_READABLE, on_readable);
}

int zb_tty_open(struct zb_tty **out, uv_loop_t *loop, const char *prompt,
		const struct zb_tty_ops *ops, void *ctx, struct zb_error *err)
{
	struct zb_tty *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	t->ops = ops;
	t->ctx = ctx;
	t->prompt = zb_strdup(prompt);
	if (!t->prompt || tcgetattr(STDIN_FILENO, &t->found)) {
		rc = zb_fail_sys(err, errno, "the terminal");
		free(t->prompt);
		free(t);
		return rc;
	}
	rc = zb_loop_watch(loop, &t->poll, STDIN_FILENO);
	if (rc) {
		free(t->prompt);
		free(t);
		return zb_fail(err, ZB_ESYS, "the terminal: %s",
			       uv_strerror(rc));
	}
	start_handles(t, loop);
	tty = t;
	set_locale();
	set_up_readline();
	t->colour = wants_colour();
	*out = t;
	install(t);
	return 0;
}

void zb_tty_end(struct zb_tty *t)
{
	if (!t || t->mode == ENDED)
		return;
	if (t->mode == PANEL) {
		leave_screen();
	} else if (t->installed) {
		rl_clear_visible_line();
		fflush(stdout);
	}
	if (t->installed)
		rl_callback_handler_remove();
	t->installed = false;
	t->mode = ENDED;
	t->panel = NULL;
	flush_said(t);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &t->found);
	uv_poll_stop(&t->poll);
	uv_timer_stop(&t->esc);
	for (size_t i = 1; i < SIGNALS; i++) /* not SIGINT */
		uv_signal_stop(&t->signals[i]);
}

static void on_closed(uv_handle_t *h)
{
	struct zb_tty *t = h->data;

	if (--t->handles)
		return;
	if (t->screen)
		delscreen(t->screen);
	clear_history();
	free(t->prompt);
	free(t->entered);
	free(t->ext);
	free(t->status);
	zb_buf_done(&t->out);
	zb_screen_done(&t->cells);
	free(t);
	tty = NULL;
}

void zb_tty_free(struct zb_tty *t)
{
	if (!t)
		return;
	zb_tty_end(t);
	uv_close((uv_handle_t *)&t->poll, on_closed);
	uv_close((uv_handle_t *)&t->esc, on_closed);
	uv_close((uv_handle_t *)&t->flush, on_closed);
	for (size_t i = 0; i < SIGNALS; i++)
		uv_close((uv_handle_t *)&t->signals[i], on_closed);
}

bool zb_tty_colour(const struct zb_tty *t)
{
	return t->colour;
}

unsigned zb_tty_columns(const struct zb_tty *t)
{
	struct winsize ws = {0};

	(void)t;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) || !ws.ws_col)
		return 80;
	return ws.ws_col;
}
