/* cmd_console.c - zotbox console: a script, or a person, plays the agent. */
#include "cmd_console.h"
#include "cleanup.h"
#include "cmd.h"
#include "config.h"
#include "discover.h"
#include "loop.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum {
	O_POLICY,
	O_SCOPE,
	O_CWD,
	O_JSON,
	O_YES,
	O_MEAN_IT,
};
const struct zb_option zb_console_options[] = {
	[O_POLICY] = {"policy", 0, ZB_ARG_VALUE, "NAME|FILE",
		      "base policy; strict for paths, what is stored for "
		      "installed names",
		      false},
	[O_SCOPE] = {"scope", 0, ZB_ARG_VALUE, "FILE",
		     "scope file laid over the policy", false},
	[O_CWD] = {"cwd", 0, ZB_ARG_VALUE, "DIR",
		   "the project directory; default: the current one", false},
	[O_JSON] = {"json", 0, ZB_ARG_NONE, NULL,
		    "print the JSON objects alone", false},
	[O_YES] = {"yes", 'y', ZB_ARG_NONE, NULL, "answer yes to questions",
		   false},
	[O_MEAN_IT] = {"yes-i-mean-it", 0, ZB_ARG_NONE, NULL,
		       "accept grants that open very much", false},
	{0},
};

const char zb_console_more[] =
	"An EXT with a slash is a path, else an installed name; without any, "
	"every installed extension that is enabled.\n"
	"On a terminal: a prompt with history and completion (Tab); a panel "
	"takes the whole screen, its keys go to its extension, Esc or Ctrl-C "
	"closes it; the last one opened is there. Ctrl-C stops waiting, and "
	"cancels a call where the extension announced tool_cancel; a second "
	"one or Ctrl-D ends. No history is kept in a file. Otherwise a script "
	"is read.\n"
	"Verbs, one a line on stdin: /NAME ARGS, cmd NAME ARGS, call TOOL "
	"JSON, intercept EVENT JSON, event EVENT JSON, key PANEL KEY [TEXT], "
	"panel_close PANEL, reload [NAME], kill NAME SIG, sleep S, idle, "
	"tools, commands, exts, denials [NAME], shutdown. \" &\" at the end of "
	"a line does not wait for it. End of input waits for what was "
	"detached, then shuts down.\n"
	"Out comes a line for each thing that happens: H: EXTENSION WHAT JSON "
	"@SECONDS, with - for none in particular, and WHAT display, prompt, "
	"result, open_panel, denied...; --json leaves the JSON alone.\n"
	"Exit: 2 a bad line; 3 or 4 if nothing could start; 1 an unknown tool "
	"or command, a timeout, an extension that died or failed to load; an "
	"error result, a block and a denial are 0. On a terminal 3 or 4 if "
	"nothing could start, else 0.";

/* A person has seen what went wrong, and perhaps put it right. */
void zb_console_fail(struct console *c, int code)
{
	if (!c->failed && !c->screen)
		c->failed = code;
}

/* The terminal goes back first: what is still to come takes a moment. */
void zb_console_shut_down(struct console *c)
{
	if (c->closing)
		return;
	c->closing = true;
	uv_timer_stop(&c->sleep);
	if (c->screen)
		c->screen->close(c);
	zb_agent_shutdown(c->agent);
}

static void on_signal(uv_signal_t *h, int signo)
{
	struct console *c = h->data;

	if (c->signo) /* asked twice: no manners any more */
		_exit(128 + signo);
	c->signo = signo;
	zb_console_shut_down(c);
}

/* ---- start ---- */

static const char *label_of(const char *arg)
{
	size_t n = strlen(arg);
	const char *base;

	while (n > 1 && arg[n - 1] == '/')
		n--;
	base = arg + n;
	while (base > arg && base[-1] != '/')
		base--;
	return base;
}

static int add_ext(struct console *c, const char *arg, struct zb_error *err)
{
	const struct zb_args *a = c->args;
	struct zb_target t = {.project = c->project,
			      .policy = a->opt[O_POLICY],
			      .scope = a->opt[O_SCOPE],
			      .full_ledger = true,
			      .mean_it = a->opt[O_MEAN_IT] != NULL};
	zb_auto(free) char *label = zb_strdup(label_of(arg));
	int rc;

	if (!label)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	if (strchr(arg, '/'))
		t.path = arg;
	else
		t.name = arg;
	label[strcspn(label, "/")] = '\0';
	rc = zb_agent_add(c->agent, label, &t, err);
	uv_run(&c->loop, UV_RUN_NOWAIT);
	return rc;
}

/* Every installed one that zot would start, and that is wrapped. */
static int installed(struct console *c, struct zb_error *err)
{
	struct zb_found_list l = {0};
	int rc = zb_discover(&l, &c->store, NULL, err);

	for (size_t i = 0; !rc && i < l.n; i++) {
		const struct zb_found *f = &l.v[i];

		if (f->problem || f->theme_only || !f->manifest.enabled)
			continue;
		if (f->wrapped)
			rc = zb_strv_add(&c->names, f->name);
		else
			zb_console_say(c,
				       "%s runs unconfined in zot; not "
				       "started here (zotbox ext list)",
				       f->name);
	}
	zb_found_list_done(&l);
	for (size_t i = 0; !rc && !c->closing && i < c->names.n; i++)
		rc = add_ext(c, c->names.v[i], err);
	return rc;
}

static int open_console(struct console *c, struct zb_error *err)
{
	const char *dir = c->args->opt[O_CWD] ? c->args->opt[O_CWD] : ".";
	const struct zb_backend *backend = zb_backend_native();
	struct zb_agent_config cfg = {.loop = &c->loop,
				      .backend = backend,
				      .host = &c->host,
				      .store = &c->store,
				      .zot_version = PACKAGE_VERSION,
				      .provider = "zotbox",
				      .model = "console",
				      .ops = &zb_console_agent_ops,
				      .ctx = c};
	int rc;

	c->project = realpath(dir, NULL);
	if (!c->project)
		return zb_fail(err, ZB_EUSAGE, "--cwd %s: %s", dir,
			       strerror(errno));
	rc = zb_store_open(&c->store, err);
	if (!rc)
		rc = backend->look(&c->host, err);
	cfg.project = c->project;
	if (!rc)
		rc = zb_agent_new(&c->agent, &cfg, err);
	return rc;
}

static int start_all(struct console *c, struct zb_error *err)
{
	int rc = 0;

	if (!c->args->n_args)
		return installed(c, err);
	for (size_t i = 0; !rc && !c->closing && i < c->args->n_args; i++)
		rc = add_ext(c, c->args->arg[i], err);
	return rc;
}

static int open_loop(struct console *c, struct zb_error *err)
{
	static const int list[] = {SIGINT, SIGTERM, SIGHUP};
	int rc = zb_loop_open(&c->loop, err);

	if (rc)
		return rc;
	rc = zb_loop_signals(&c->loop, c->signals, list, ZB_ARRAY_LEN(list),
			     on_signal, c, err);
	if (rc) {
		zb_loop_close(&c->loop);
		return rc;
	}
	for (size_t i = 0; i < ZB_ARRAY_LEN(list); i++)
		uv_unref((uv_handle_t *)&c->signals[i]);
	uv_timer_init(&c->loop, &c->sleep);
	c->sleep.data = c;
	uv_idle_init(&c->loop, &c->idle);
	return 0;
}

/* SIGINT is a key then; SIGQUIT, another, must not leave its modes behind. */
static int open_lines(struct console *c, const struct console_screen *screen,
		      struct zb_error *err)
{
	int rc;

	if (!screen)
		return zb_console_open_input(c, err);
	rc = screen->open(c, err);
	if (rc)
		return rc;
	c->screen = screen;
	uv_signal_start(&c->signals[0], on_signal, SIGQUIT);
	return 0;
}

static void close_console(struct console *c)
{
	zb_agent_free(c->agent);
	if (c->screen)
		c->screen->free(c);
	uv_close((uv_handle_t *)&c->sleep, NULL);
	uv_close((uv_handle_t *)&c->idle, NULL);
	if (c->polled)
		uv_close((uv_handle_t *)&c->poll, NULL);
	for (size_t i = 0; i < ZB_ARRAY_LEN(c->signals); i++)
		uv_close((uv_handle_t *)&c->signals[i], NULL);
	zb_loop_close(&c->loop);
	zb_host_done(&c->host);
	zb_store_done(&c->store);
	zb_strv_done(&c->names);
	zb_buf_done(&c->input);
	free(c->project);
	free(c->room);
}

int zb_console_play(const struct zb_args *a,
		    const struct console_screen *screen)
{
	struct console c = {.args = a,
			    .start_ns = uv_hrtime(),
			    .json = a->opt[O_JSON] != NULL};
	struct zb_error err = {0};
	int rc;

	if (open_loop(&c, &err))
		return zb_cmd_fail(&err);
	c.room = malloc(ZB_CONSOLE_READ);
	rc = c.room ? open_console(&c, &err)
		    : zb_fail(&err, ZB_ELIMIT, "out of memory");
	if (!rc)
		rc = open_lines(&c, screen, &err);
	if (!rc) {
		rc = start_all(&c, &err);
		if (!rc)
			zb_agent_begin(c.agent);
		else
			zb_console_shut_down(&c);
	}
	if (rc)
		c.failed = zb_cmd_fail(&err);
	while (c.agent && !c.closed)
		if (!uv_run(&c.loop, UV_RUN_DEFAULT))
			zb_console_shut_down(&c);
	close_console(&c);
	return c.signo ? 128 + c.signo : c.failed;
}
