/* cmd_ext_trust.c - zotbox ext trust and untrust: show what a project brings
 * along, ask, and keep in mind exactly what was shown. */
#include "cleanup.h"
#include "cmd.h"
#include "cmd_ask.h"
#include "prepare.h"
#include "staging.h"
#include "text.h"
#include "trust.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	OPT_POLICY,
	OPT_YES
};

#define MAX_SHOWN 20

/* A path on one line: what it is called is not ours. */
static char *shown(const char *path)
{
	struct zb_buf b = {0};

	zb_text_escape(&b, path, strlen(path), 300);
	return zb_buf_steal(&b);
}

static void say_changes(const struct zb_trust_offer *o)
{
	for (size_t i = 0; i < o->changed.n && i < MAX_SHOWN; i++)
		zb_cmd_say("  %s", o->changed.v[i]);
	if (o->changed.n > MAX_SHOWN)
		zb_cmd_say("  and %zu more", o->changed.n - MAX_SHOWN);
}

/* What is about to be approved. */
static void show(const struct zb_trust_offer *o)
{
	const struct zb_manifest *m = &o->manifest;
	zb_auto(free) char *dir = shown(o->real);
	struct zb_buf exec = {0};

	zb_text_escape(&exec, m->exec, strlen(m->exec), 200);
	for (size_t i = 0; i < m->args.n && exec.len < 400; i++) {
		zb_buf_addc(&exec, ' ');
		zb_text_escape(&exec, m->args.v[i], strlen(m->args.v[i]), 100);
	}
	zb_cmd_say("%s: extension \"%s\", %zu file%s, starts %s", dir, m->name,
		   o->lock.n_files, o->lock.n_files == 1 ? "" : "s",
		   zb_buf_str(&exec));
	zb_buf_done(&exec);
	for (size_t i = 0; i < o->warnings.n; i++)
		zb_cmd_say("warning: %s", o->warnings.v[i]);
	if (o->again)
		zb_cmd_say("changed since it was trusted:");
	say_changes(o);
}

static int confirm(const struct zb_args *a, struct zb_error *err)
{
	char answer[16] = "";

	if (a->opt[OPT_YES])
		return 0;
	if (!isatty(STDIN_FILENO))
		return zb_fail(err, ZB_EUSAGE,
			       "trust %s: no terminal to ask on; say --yes",
			       a->arg[0]);
	zb_cmd_say("let zotbox start these files, confined? [y/N]");
	if (fgets(answer, sizeof(answer), stdin) &&
	    (answer[0] == 'y' || answer[0] == 'Y'))
		return 0;
	return zb_fail(err, ZB_EPOLICY, "%s stays untrusted", a->arg[0]);
}

/* What the next start would resolve to: does it start, what does it miss? */
static void look_ahead(const struct zb_store *store, const char *dir)
{
	const struct zb_target t = {.path = dir};
	struct zb_prepared p = {0};
	struct zb_wishes w = {0};
	struct zb_error err = {0};
	int rc = zb_prepare(&p, store, &t, &err);

	if (!rc)
		rc = zb_wishes_list(&w, &p.requested, NULL, &err);
	if (rc) {
		zb_cmd_say("warning: as it is, it does not start: %s", err.msg);
	} else if (w.n) {
		zb_cmd_say("it asks for %zu thing%s that its policy does not "
			   "grant; to grant some, write a scope file and say "
			   "--policy FILE:",
			   w.n, w.n == 1 ? "" : "s");
		zb_cmd_wishes(store, NULL, &w);
	}
	zb_wishes_done(&w);
	zb_prepared_done(&p);
}

static int trust(const struct zb_args *a, const struct zb_store *store,
		 struct zb_error *err)
{
	const char *policy = a->opt[OPT_POLICY];
	zb_auto(free) char *dir = NULL;
	struct zb_trust_offer o = {0};
	int rc = zb_trust_look(&o, store, a->arg[0], err);

	if (rc)
		return rc;
	dir = shown(o.real);
	if (o.again && !o.changed.n && !policy) {
		zb_cmd_say("%s is trusted as it is", dir);
	} else {
		show(&o);
		rc = confirm(a, err);
		if (!rc)
			rc = zb_trust_give(store, &o, policy, err);
		if (!rc)
			zb_cmd_say("trusted %s, as it is now; plain zot starts "
				   "it unconfined, trusted or not",
				   dir);
		if (!rc)
			look_ahead(store, o.real);
	}
	zb_trust_offer_done(&o);
	return rc;
}

int zb_cmd_ext_trust(const struct zb_args *a)
{
	struct zb_error err = {0};
	struct zb_store store = {0};

	if (!zb_store_open(&store, &err)) {
		zb_recover(&store);
		trust(a, &store, &err);
	}
	zb_store_done(&store);
	return err.code ? zb_cmd_fail(&err) : 0;
}

int zb_cmd_ext_untrust(const struct zb_args *a)
{
	zb_auto(free) char *dir = shown(a->arg[0]);
	struct zb_error err = {0};
	struct zb_store store = {0};

	if (!zb_store_open(&store, &err)) {
		zb_recover(&store);
		if (!zb_trust_take(&store, a->arg[0], &err))
			zb_cmd_say("%s is not trusted any more, and what was "
				   "granted to it is gone; its data and home "
				   "stay (zotbox ext remove deletes them)",
				   dir);
	}
	zb_store_done(&store);
	return err.code ? zb_cmd_fail(&err) : 0;
}
