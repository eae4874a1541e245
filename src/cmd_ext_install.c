/* cmd_ext_install.c - zotbox ext install: say what was installed, under what
 * policy, what it asks for, and how to grant it. */
#include "cleanup.h"
#include "cmd.h"
#include "cmd_ask.h"
#include "cmd_long.h"
#include "install.h"
#include "text.h"

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

/* For the callbacks. */
struct talk {
	struct zb_cmd_progress progress; /* first: it is their context */
	const struct zb_store *store;
};

/* "KEY VALUE" of a wish, for people. */
static void add_wish(struct zb_buf *out, const struct zb_wish *w)
{
	zb_buf_addf(out, "%s ", w->key);
	zb_text_escape(out, w->value, strlen(w->value), 200);
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
		if (!i->wishes.v[k].granted || n++ >= ZB_ASK_SHOWN)
			continue;
		zb_buf_adds(&b, b.len ? ", " : "");
		add_wish(&b, &i->wishes.v[k]);
	}
	if (b.len)
		zb_cmd_say("granted what it asks for: %s%s", zb_buf_str(&b),
			   n > ZB_ASK_SHOWN ? ", and more" : "");
	zb_buf_done(&b);
}

static void report_missing(const struct zb_installed *i,
			   const struct zb_store *store)
{
	size_t missing = count(&i->wishes, false);

	if (!missing)
		return;
	zb_cmd_say("%s asks for %zu thing%s that the policy does not grant; "
		   "it will miss them until you say:",
		   i->name, missing, missing == 1 ? "" : "s");
	zb_cmd_wishes(store, i->name, &i->wishes);
}

static void report(const struct zb_installed *i, const struct zb_store *store)
{
	struct zb_buf dir = {0};

	zb_text_escape(&dir, i->dir, strlen(i->dir), 0);
	for (size_t k = 0; k < i->warnings.n; k++)
		zb_cmd_say("warning: %s", i->warnings.v[k]);
	if (i->theme_only) {
		zb_cmd_say("installed %s: a theme, it starts nothing",
			   zb_buf_str(&dir));
	} else {
		zb_cmd_say("installed %s; it starts under policy %s",
			   zb_buf_str(&dir), i->policy);
		report_granted(i);
		report_missing(i, store);
	}
	zb_buf_done(&dir);
}

/* The one question: all that can be granted, or nothing. */
static bool approve(void *ctx, const struct zb_installed *i)
{
	struct talk *t = ctx;

	zb_cmd_progress_end(&t->progress);
	zb_cmd_say("this extension asks for more than the policy grants:");
	zb_cmd_wishes(t->store, NULL, &i->wishes);
	return zb_cmd_yes("grant that?");
}

int zb_cmd_ext_install(const struct zb_args *a)
{
	struct talk t = {.progress.started = time(NULL)};
	struct zb_install_request req = {
		.source = a->arg[0],
		.policy = a->opt[OPT_POLICY],
		.scope_file = a->opt[OPT_SCOPE],
		.yes = a->opt[OPT_YES],
		.mean_it = a->opt[OPT_MEAN_IT],
		.fresh = a->opt[OPT_FRESH],
		.adopt = a->opt[OPT_ADOPT],
		.allow_http = a->opt[OPT_ALLOW_HTTP],
		.stop = &zb_cmd_stopped,
		.progress = zb_cmd_progress,
		.approve = isatty(STDIN_FILENO) ? approve : NULL,
		.ctx = &t,
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
	t.store = &store;
	zb_cmd_stop_on_signals();
	if (zb_install(&out, &store, &req, &err)) {
		zb_cmd_progress_end(&t.progress);
		zb_wrap(&err, "install failed, nothing was installed");
		rc = zb_cmd_fail(&err);
		if (zb_cmd_stopped)
			rc = 128 + zb_cmd_stopped;
	} else {
		zb_cmd_progress_end(&t.progress);
		report(&out, &store);
	}
	zb_installed_done(&out);
	zb_store_done(&store);
	return rc;
}
