/* cmd_ext_update.c - zotbox ext update: what is new where it came from, in code
 * and in what it asks for; and then, or not. */
#include "cleanup.h"
#include "cmd.h"
#include "cmd_ask.h"
#include "cmd_long.h"
#include "discover.h"
#include "path_match.h"
#include "text.h"
#include "update.h"

#include <string.h>
#include <unistd.h>

enum {
	OPT_YES,
	OPT_ALLOW_HTTP
};

#define MAX_SHOWN 40

struct talk {
	struct zb_cmd_progress progress; /* first: it is their context */
	const struct zb_store *store;
};

/* "abc123 -> def456", of which a person compares the beginning. */
static void add_commits(struct zb_buf *b, const struct zb_updated *u)
{
	if (u->commit)
		zb_buf_addf(b, ", commit %.12s", u->commit);
	if (u->commit && u->commit_was && strcmp(u->commit, u->commit_was))
		zb_buf_addf(b, " (was %.12s)", u->commit_was);
}

static void show_code(const struct zb_updated *u)
{
	const struct zb_code_diff *d = &u->diff;
	struct zb_buf b = {0};

	zb_text_escape(&b, u->source, strlen(u->source), 300);
	add_commits(&b, u);
	zb_cmd_say("%s, from %s: %zu file%s changed, %zu added, %zu removed",
		   u->name, zb_buf_str(&b), d->changed,
		   d->changed == 1 ? "" : "s", d->added, d->removed);
	zb_buf_done(&b);
	for (size_t i = 0; i < d->lines.n && i < MAX_SHOWN; i++)
		zb_cmd_say("  %s", d->lines.v[i]);
	if (d->lines.n > MAX_SHOWN)
		zb_cmd_say("  and %zu more",
			   d->changed + d->added + d->removed - MAX_SHOWN);
	if (u->tampered)
		zb_cmd_say("warning: its files were changed after they were "
			   "installed; those changes go");
}

/* @wish, "KEY VALUE", is not asked for any more, and stays granted. */
static void show_kept(const struct zb_updated *u, const char *wish)
{
	const char *value = strchr(wish, ' ');
	struct zb_buf b = {0}, quoted = {0};

	zb_text_escape(&b, wish, strlen(wish), 100);
	if (value && !zb_text_shell_quote(&quoted, value + 1))
		zb_cmd_say("it does not ask any more for %s, which stays "
			   "granted; to take it back: zotbox ext revoke %s "
			   "%.*s %s",
			   zb_buf_str(&b), u->name, (int)(value - wish), wish,
			   zb_buf_str(&quoted));
	else
		zb_cmd_say("it does not ask any more for %s, which stays "
			   "granted",
			   zb_buf_str(&b));
	zb_buf_done(&b);
	zb_buf_done(&quoted);
}

static void show_asked(const struct talk *t, const struct zb_updated *u)
{
	struct zb_buf b = {0};

	for (size_t i = 0; i < u->no_longer.n && b.len < 500; i++) {
		zb_buf_adds(&b, i ? ", " : "");
		zb_text_escape(&b, u->no_longer.v[i], strlen(u->no_longer.v[i]),
			       100);
	}
	if (b.len)
		zb_cmd_say("it does not ask any more for: %s", zb_buf_str(&b));
	zb_buf_done(&b);
	for (size_t i = 0; i < u->kept.n && i < MAX_SHOWN; i++)
		show_kept(u, u->kept.v[i]);
	if (!u->wishes.n)
		return;
	zb_cmd_say("it asks for what it did not ask for before:");
	zb_cmd_wishes(t->store, NULL, &u->wishes);
}

static void show(void *ctx, const struct zb_updated *u)
{
	struct talk *t = ctx;

	zb_cmd_progress_end(&t->progress);
	for (size_t i = 0; i < u->warnings.n; i++)
		zb_cmd_say("warning: %s", u->warnings.v[i]);
	show_code(u);
	show_asked(t, u);
}

static bool approve(void *ctx, const struct zb_updated *u, bool *grant)
{
	bool any = false;

	(void)ctx;
	for (size_t i = 0; i < u->wishes.n; i++)
		any = any || !u->wishes.v[i].why_not;
	if (!zb_cmd_yes("take the new code? what was granted stays granted"))
		return false;
	*grant = any && zb_cmd_yes("and grant what it asks for now?");
	return true;
}

static void report(const struct talk *t, const struct zb_updated *u)
{
	struct zb_buf b = {0};

	add_commits(&b, u);
	if (u->unchanged) {
		zb_cmd_say("%s is unchanged where it came from%s", u->name,
			   zb_buf_str(&b));
	} else {
		zb_cmd_say("updated %s; its scope, home and data are kept, and "
			   "the new code runs from its next start on",
			   u->name);
		if (u->wishes.n && !u->wishes.v[0].granted)
			zb_cmd_say("to grant what it asks for now:");
		zb_cmd_wishes(t->store, u->name, &u->wishes);
	}
	zb_buf_done(&b);
}

static int update_one(const struct zb_args *a, struct talk *t, const char *name,
		      struct zb_error *err)
{
	const struct zb_update_request req = {
		.name = name,
		.yes = a->opt[OPT_YES],
		.allow_http = a->opt[OPT_ALLOW_HTTP],
		.stop = &zb_cmd_stopped,
		.progress = zb_cmd_progress,
		.approve = isatty(STDIN_FILENO) ? approve : NULL,
		.show = show,
		.ctx = t,
	};
	struct zb_updated u = {0};
	int rc;

	t->progress = (struct zb_cmd_progress){.started = time(NULL)};
	rc = zb_update(&u, t->store, &req, err);
	zb_cmd_progress_end(&t->progress);
	if (!rc)
		report(t, &u);
	zb_updated_done(&u);
	return rc;
}

/* Everything that was installed by zotbox. */
static int all_names(struct zb_strv *out, const struct zb_store *store,
		     struct zb_error *err)
{
	struct zb_found_list l = {0};
	int rc = zb_discover(&l, store, NULL, err);

	for (size_t i = 0; !rc && i < l.n; i++) {
		/* The box has the directory's name. */
		const char *base = zb_path_name(l.v[i].dir);
		zb_auto(free) char *lock = NULL;

		if (zb_name_valid(base))
			lock = zb_store_box(store, base, "lock.json");
		if (lock && !access(lock, F_OK) && zb_strv_add(out, base))
			rc = zb_fail(err, ZB_ELIMIT, "out of memory");
	}
	zb_found_list_done(&l);
	if (!rc && !out->n)
		zb_cmd_say("nothing was installed by zotbox");
	return rc;
}

/* One that fails does not keep the others from it. Return: exit code. */
static int update_all(const struct zb_args *a, struct talk *t,
		      const struct zb_strv *names)
{
	int worst = 0;

	for (size_t i = 0; i < names->n && !zb_cmd_stopped; i++) {
		struct zb_error err = {0};
		int rc;

		if (!update_one(a, t, names->v[i], &err))
			continue;
		zb_wrap(&err, "%s was not updated", names->v[i]);
		rc = zb_cmd_fail(&err);
		worst = worst ? worst : rc;
	}
	return zb_cmd_stopped ? 128 + zb_cmd_stopped : worst;
}

int zb_cmd_ext_update(const struct zb_args *a)
{
	struct zb_error err = {0};
	struct zb_store store = {0};
	struct zb_strv names = {0};
	struct talk t = {.store = &store};
	int rc = zb_store_open(&store, &err);

	for (size_t i = 0; !rc && i < a->n_args; i++)
		if (!zb_strv_has(&names, a->arg[i]) &&
		    zb_strv_add(&names, a->arg[i]))
			rc = zb_fail(&err, ZB_ELIMIT, "out of memory");
	if (!rc && !a->n_args)
		rc = all_names(&names, &store, &err);
	if (rc) {
		rc = zb_cmd_fail(&err);
	} else {
		zb_cmd_stop_on_signals();
		rc = update_all(a, &t, &names);
	}
	zb_strv_done(&names);
	zb_store_done(&store);
	return rc;
}
