/* cmd_ext_install.c - zotbox ext install: say what was installed, under what
 * policy, what it asks for, and how to grant it. */
#include "cleanup.h"
#include "cmd.h"
#include "install.h"
#include "text.h"

#include <signal.h>
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

static volatile sig_atomic_t stopped;

static void stop(int signo)
{
	stopped = signo;
}

static void stop_on_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction sa = {.sa_handler = stop};

	for (size_t i = 0; i < ZB_ARRAY_LEN(signals); i++)
		sigaction(signals[i], &sa, NULL);
}

/* A line that overwrites itself, from the second second on. */
static void progress(void *ctx, uint64_t files, uint64_t bytes)
{
	time_t *started = ctx;

	if (isatty(STDERR_FILENO) && time(NULL) > *started + 1)
		dprintf(STDERR_FILENO, "\r%llu files, %llu MB copied ",
			(unsigned long long)files,
			(unsigned long long)(bytes >> 20));
}

/* "KEY VALUE" as the command that grants it, or why there is none. */
static void offer(const char *name, const char *request)
{
	const char *space = strchr(request, ' ');
	struct zb_buf b = {0};

	if (!space)
		return;
	zb_buf_addf(&b, "zotbox ext allow %s %.*s ", name,
		    (int)(space - request), request);
	if (zb_text_shell_quote(&b, space + 1))
		zb_cmd_say("  (asks for %.*s with control characters in it: "
			   "not shown as a command)",
			   (int)(space - request), request);
	else
		zb_cmd_say("  %s", zb_buf_str(&b));
	zb_buf_done(&b);
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
	if (!i->requested.n)
		return;
	zb_cmd_say("%s asks for %zu thing%s that the policy does not grant; it "
		   "will miss them until you say:",
		   i->name, i->requested.n, i->requested.n == 1 ? "" : "s");
	for (size_t k = 0; k < i->requested.n; k++)
		offer(i->name, i->requested.v[k]);
}

/* observe grants nearly everything: not by default, and not silently. */
static int check_observe(const struct zb_args *a, struct zb_error *err)
{
	if (!a->opt[OPT_POLICY] || strcmp(a->opt[OPT_POLICY], "observe") ||
	    a->opt[OPT_YES])
		return 0;
	return zb_fail(err, ZB_EPOLICY,
		       "observe enforces little: it is for watching an "
		       "extension that you trust enough to run; say --yes to "
		       "install one under it");
}

int zb_cmd_ext_install(const struct zb_args *a)
{
	time_t started = time(NULL);
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
		.ctx = &started,
	};
	struct zb_error err = {0};
	struct zb_store store = {0};
	struct zb_installed out = {0};
	int rc = 0;

	if (req.fresh && req.adopt)
		zb_fail(&err, ZB_EUSAGE,
			"--fresh and --adopt exclude each "
			"other");
	else if (!check_observe(a, &err))
		zb_store_open(&store, &err);
	if (err.code)
		return zb_cmd_fail(&err);
	stop_on_signals();
	if (zb_install(&out, &store, &req, &err)) {
		zb_wrap(&err, "install failed, nothing was installed");
		rc = zb_cmd_fail(&err);
		if (stopped)
			rc = 128 + stopped;
	} else {
		report(&out);
	}
	zb_installed_done(&out);
	zb_store_done(&store);
	return rc;
}
