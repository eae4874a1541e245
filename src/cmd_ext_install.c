/* cmd_ext_install.c - zotbox ext install: say what was installed, under what
 * policy, what it asks for, and how to grant it. */
#include "cleanup.h"
#include "cmd.h"
#include "install.h"
#include "text.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	OPT_POLICY,
	OPT_SCOPE,
	OPT_YES,
	OPT_MEAN_IT,
	OPT_FRESH,
	OPT_ADOPT,
	OPT_ALLOW_HTTP
};

/* Things asked for that are shown one by one. */
#define MAX_SHOWN 100

static volatile sig_atomic_t stopped;

static void stop(int signo)
{
	stopped = signo;
}

/* One that is ignored stays so: nohup, and jobs of a script. */
static void stop_on_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction sa = {.sa_handler = stop}, old;

	for (size_t i = 0; i < ZB_ARRAY_LEN(signals); i++)
		if (!sigaction(signals[i], NULL, &old) &&
		    old.sa_handler != SIG_IGN)
			sigaction(signals[i], &sa, NULL);
}

/* What goes on while it takes long: a line that overwrites itself. */
struct progress {
	time_t started;
	bool shown;
};

static void progress(void *ctx, uint64_t files, uint64_t bytes)
{
	struct progress *p = ctx;

	if (!isatty(STDERR_FILENO) || time(NULL) <= p->started + 1)
		return;
	dprintf(STDERR_FILENO, "\r%llu files, %llu MB copied ",
		(unsigned long long)files, (unsigned long long)(bytes >> 20));
	p->shown = true;
}

static void end_progress(struct progress *p)
{
	if (p->shown)
		dprintf(STDERR_FILENO, "\r%*s\r", 60, "");
	p->shown = false;
}

/* "KEY VALUE" of a wish, for people. */
static void add_wish(struct zb_buf *out, const struct zb_wish *w)
{
	zb_buf_addf(out, "%s ", w->key);
	zb_text_escape(out, w->value, strlen(w->value), 200);
}

/* The command that grants it, or why there is none. */
static void offer(const char *name, const struct zb_wish *w)
{
	struct zb_buf b = {0};

	if (!w->why_not && !zb_wish_command(name, w, &b)) {
		zb_cmd_say("  %s", zb_buf_str(&b));
	} else {
		add_wish(&b, w);
		zb_cmd_say("  (no command for %s: %s)", zb_buf_str(&b),
			   w->why_not ? w->why_not
				      : "it holds control characters");
	}
	zb_buf_done(&b);
}

static size_t count(const struct zb_wishes *w, bool granted)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++)
		n += w->v[i].granted == granted;
	return n;
}

static void report_granted(const struct zb_installed *i)
{
	struct zb_buf b = {0};
	size_t n = 0;

	for (size_t k = 0; k < i->wishes.n; k++) {
		if (!i->wishes.v[k].granted || n++ >= MAX_SHOWN)
			continue;
		zb_buf_adds(&b, b.len ? ", " : "");
		add_wish(&b, &i->wishes.v[k]);
	}
	if (b.len)
		zb_cmd_say("granted what it asks for: %s%s", zb_buf_str(&b),
			   n > MAX_SHOWN ? ", and more" : "");
	zb_buf_done(&b);
}

static void report_missing(const struct zb_installed *i, const char *until)
{
	size_t missing = count(&i->wishes, false), n = 0;

	if (!missing)
		return;
	zb_cmd_say("%s asks for %zu thing%s that the policy does not grant%s",
		   i->name, missing, missing == 1 ? "" : "s", until);
	for (size_t k = 0; k < i->wishes.n; k++)
		if (!i->wishes.v[k].granted && n++ < MAX_SHOWN)
			offer(i->name, &i->wishes.v[k]);
	if (n > MAX_SHOWN)
		zb_cmd_say("  and %zu more: zotbox ext doctor %s",
			   n - MAX_SHOWN, i->name);
}

static void report(const struct zb_installed *i)
{
	for (size_t k = 0; k < i->warnings.n; k++)
		zb_cmd_say("warning: %s", i->warnings.v[k]);
	if (i->theme_only) {
		zb_cmd_say("installed %s: a theme, it starts nothing", i->dir);
		return;
	}
	zb_cmd_say("installed %s; it starts under policy %s", i->dir,
		   i->policy);
	report_granted(i);
	report_missing(i, "; it will miss them until you say:");
}

/* The one question: all that can be granted, or nothing. */
static bool approve(void *ctx, const struct zb_installed *i)
{
	struct zb_buf b = {0};
	char answer[16] = "";

	end_progress(ctx);
	zb_cmd_say("this extension asks for more than the policy grants:");
	for (size_t k = 0; k < i->wishes.n && k < MAX_SHOWN; k++) {
		const struct zb_wish *w = &i->wishes.v[k];

		zb_buf_clear(&b);
		add_wish(&b, w);
		zb_cmd_say("  %s%s", zb_buf_str(&b),
			   w->why_not ? " (not to be had here)" : "");
	}
	if (i->wishes.n > MAX_SHOWN)
		zb_cmd_say("  and %zu more", i->wishes.n - MAX_SHOWN);
	zb_buf_done(&b);
	zb_cmd_say("grant that? [y/N]");
	return fgets(answer, sizeof(answer), stdin) &&
	       (answer[0] == 'y' || answer[0] == 'Y');
}

int zb_cmd_ext_install(const struct zb_args *a)
{
	struct progress p = {.started = time(NULL)};
	struct zb_install_request req = {
		.source = a->arg[0],
		.policy = a->opt[OPT_POLICY],
		.scope_file = a->opt[OPT_SCOPE],
		.yes = a->opt[OPT_YES],
		.mean_it = a->opt[OPT_MEAN_IT],
		.fresh = a->opt[OPT_FRESH],
		.adopt = a->opt[OPT_ADOPT],
		.allow_http = a->opt[OPT_ALLOW_HTTP],
		.stop = &stopped,
		.progress = progress,
		.approve = isatty(STDIN_FILENO) ? approve : NULL,
		.ctx = &p,
	};
	struct zb_error err = {0};
	struct zb_store store = {0};
	struct zb_installed out = {0};
	int rc = 0;

	if (req.fresh && req.adopt)
		zb_fail(&err, ZB_EUSAGE,
			"--fresh and --adopt exclude each other");
	else
		zb_store_open(&store, &err);
	if (err.code)
		return zb_cmd_fail(&err);
	stop_on_signals();
	if (zb_install(&out, &store, &req, &err)) {
		end_progress(&p);
		zb_wrap(&err, "install failed, nothing was installed");
		rc = zb_cmd_fail(&err);
		if (stopped)
			rc = 128 + stopped;
	} else {
		end_progress(&p);
		report(&out);
	}
	zb_installed_done(&out);
	zb_store_done(&store);
	return rc;
}
