/* grant.c - trying a scope before it is kept.
 *
 * What can be granted is not a question of words: a path may be too broad for
 * where it leads on this machine, a rule may be one that nothing here can
 * enforce. So every change is resolved to a plan first, and so is every thing
 * that an extension asks for before a command is shown that grants it. */
#include "config.h"

#include "grant.h"

#include "cleanup.h"
#include "fdutil.h"
#include "granted_file.h"
#include "prepare.h"
#include "scope.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Wishes tried one by one; beyond, they stand or fall together. */
#define MAX_SINGLE 64

#define LOCK_WAIT_MS 5000

/* "PATH:6: ..." reads "scope.json:6: ...": the file of the trial is gone. */
static void rename_file(struct zb_error *err, const char *path)
{
	static const char name[] = "scope.json";
	size_t n = strlen(path);
	char *at;

	while (err && (at = strstr(err->msg, path))) {
		memcpy(at, name, sizeof(name) - 1);
		memmove(at + sizeof(name) - 1, at + n, strlen(at + n) + 1);
	}
}

/* What is granted of a project is tried on a directory that is there and is
 * like any other: where we are may be HOME, of which nothing is granted. */
static char *some_project(void)
{
	static const char some[] = "/var/log";
	zb_auto(free) char *own =
		access(some, F_OK) ? zb_own_file("policies") : NULL;

	return realpath(own ? own : some, NULL);
}

/* The plan of @text, for which @given is granted now. */
static int try_out(struct zb_prepared *p, const struct zb_store *s,
		   const char *name, const struct zb_buf *text,
		   const struct zb_strv *given, bool mean_it, bool held,
		   struct zb_error *err)
{
	zb_auto(free) char *file =
		zb_strf(".scope-trial-%d.json", (int)getpid());
	zb_auto(free) char *trial = file ? zb_store_box(s, name, file) : NULL;
	zb_auto(free) char *project = some_project();
	struct zb_target t = {
		.name = name,
		.project = project,
		.scope = trial,
		.mean_it = mean_it,
		.held = held,
		.still = true,
		.trial = true,
		.given = given,
	};
	zb_auto(fd) int lock = -1;
	int rc;

	if (!trial)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	/* While it is held, nobody takes the file for a left-over. */
	rc = held ? 0 : zb_store_lock(s, name, false, LOCK_WAIT_MS, &lock, err);
	if (!rc)
		rc = zb_write_file_atomic(trial, zb_buf_str(text), text->len,
					  0600, err);
	if (!rc)
		rc = zb_prepare(p, s, &t, err);
	if (rc)
		rename_file(err, trial);
	unlink(trial);
	return rc;
}

int zb_grant_try(const struct zb_store *s, const char *name,
		 const struct zb_buf *text, const struct zb_strv *given,
		 bool mean_it, bool held, struct zb_error *err)
{
	struct zb_prepared p = {0};
	int rc = try_out(&p, s, name, text, given, mean_it, held, err);

	zb_prepared_done(&p);
	return rc;
}

/* Where it leads is kept first: a kill between the two leaves words about what
 * is not granted, never a grant that may lead anywhere. */
int zb_grant_keep(const struct zb_store *s, const char *name,
		  const struct zb_buf *text, const struct zb_strv *given,
		  bool mean_it, bool *anew, struct zb_error *err)
{
	zb_auto(free) char *box = zb_store_box(s, name, "");
	zb_auto(free) char *path = zb_store_box(s, name, "scope.json");
	struct zb_prepared p = {0};
	int rc = box && path
			 ? try_out(&p, s, name, text, given, mean_it, true, err)
			 : zb_fail(err, ZB_ELIMIT, "out of memory");

	if (!rc && p.led_anew)
		rc = zb_granted_write(&p.granted, box, err);
	if (anew)
		*anew = p.led_anew;
	zb_prepared_done(&p);
	return rc ? rc
		  : zb_write_file_atomic(path, zb_buf_str(text), text->len,
					 0600, err);
}

/* ---- wishes -------------------------------------------------------------- */

void zb_wishes_done(struct zb_wishes *w)
{
	for (size_t i = 0; i < w->n; i++) {
		free(w->v[i].key);
		free(w->v[i].value);
		free(w->v[i].why_not);
	}
	free(w->v);
	*w = (struct zb_wishes){0};
}

static int list_one(struct zb_wish *w, const char *request, const char *why_not)
{
	size_t n = strcspn(request, " ");

	w->key = zb_strndup(request, n);
	w->value = zb_strdup(request + n + (request[n] == ' '));
	w->why_not = zb_strdup(why_not);
	return w->key && w->value && (w->why_not || !why_not) ? 0 : ZB_ELIMIT;
}

int zb_wishes_list(struct zb_wishes *out, const struct zb_strv *requested,
		   const char *why_not, struct zb_error *err)
{
	int rc = 0;

	*out = (struct zb_wishes){
		.v = calloc(requested->n + 1, sizeof(*out->v))};
	if (!out->v)
		rc = ZB_ELIMIT;
	for (size_t i = 0; !rc && i < requested->n; i++)
		rc = list_one(&out->v[out->n++], requested->v[i], why_not);
	if (rc)
		zb_wishes_done(out);
	return rc ? zb_fail(err, rc, "out of memory") : 0;
}

/* The machinery failed, as opposed to: said no. */
static bool is_trouble(int rc)
{
	return rc == ZB_ESYS || rc == ZB_ELIMIT;
}

struct judge {
	const struct zb_store *s;
	const char *name;
	const struct zb_strv *given; /* all wishes */
	bool mean_it, held;
	struct zb_buf scope; /* with what was found fit until now */
};

/* @w into the scope as it is now; *@out: the new text. */
static int edit(struct judge *j, struct zb_wish *w, struct zb_buf *out,
		struct zb_error *err)
{
	bool changed;

	return zb_scope_edit(out, "scope.json", zb_buf_str(&j->scope),
			     j->scope.len, w->key, w->value, false, j->mean_it,
			     &changed, err);
}

static void take(struct judge *j, struct zb_buf *text)
{
	zb_buf_done(&j->scope);
	j->scope = *text;
	*text = (struct zb_buf){0};
}

/* Edit @w in, tried at once if @single. */
static int judge_one(struct judge *j, struct zb_wish *w, bool single,
		     struct zb_error *err)
{
	struct zb_buf text = {0};
	struct zb_error why = {0};
	int rc = edit(j, w, &text, &why);

	if (!rc && single)
		rc = zb_grant_try(j->s, j->name, &text, j->given, j->mean_it,
				  j->held, &why);
	if (!rc) {
		take(j, &text);
	} else if (is_trouble(rc)) {
		if (err)
			*err = why;
	} else {
		w->why_not = zb_strdup(why.msg);
		rc = w->why_not ? 0 : zb_fail(err, ZB_ELIMIT, "out of memory");
	}
	zb_buf_done(&text);
	return rc;
}

static int start_over(struct judge *j, struct zb_wishes *w,
		      const struct zb_buf *scope, struct zb_error *err)
{
	for (size_t i = 0; i < w->n; i++) {
		free(w->v[i].why_not);
		w->v[i].why_not = NULL;
	}
	zb_buf_clear(&j->scope);
	return zb_buf_add(&j->scope, zb_buf_str(scope), scope->len)
		       ? zb_fail(err, ZB_ELIMIT, "out of memory")
		       : 0;
}

static int judge_all(struct judge *j, struct zb_wishes *w, bool single,
		     struct zb_error *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < w->n; i++)
		rc = judge_one(j, &w->v[i], single, err);
	return rc;
}

/* Too many to be tried singly, and not good together. */
static int refuse_rest(struct zb_wishes *w, const char *why,
		       struct zb_error *err)
{
	for (size_t i = 0; i < w->n; i++)
		if (!w->v[i].why_not && !(w->v[i].why_not = zb_strdup(why)))
			return zb_fail(err, ZB_ELIMIT, "out of memory");
	return 0;
}

int zb_wishes_judge(struct zb_wishes *out, struct zb_buf *all,
		    const struct zb_store *s, const char *name,
		    const struct zb_buf *scope, const struct zb_strv *requested,
		    bool mean_it, bool held, struct zb_error *err)
{
	struct judge j = {.s = s,
			  .name = name,
			  .given = requested,
			  .mean_it = mean_it,
			  .held = held};
	struct zb_error why = {0};
	int rc = zb_wishes_list(out, requested, NULL, err);

	/* Most often all of them are fine. */
	if (!rc)
		rc = start_over(&j, out, scope, err);
	if (!rc)
		rc = judge_all(&j, out, false, err);
	if (!rc && out->n) {
		rc = zb_grant_try(s, name, &j.scope, requested, mean_it, held,
				  &why);
		if (is_trouble(rc) && err)
			*err = why;
	}
	if (rc && !is_trouble(rc)) {
		bool few = out->n <= MAX_SINGLE;

		rc = few ? start_over(&j, out, scope, err)
			 : refuse_rest(out, why.msg, err);
		if (!rc && few)
			rc = judge_all(&j, out, true, err);
		else if (!rc)
			rc = start_over(&j, &(struct zb_wishes){0}, scope, err);
	}
	if (!rc && all) {
		zb_buf_done(all);
		*all = j.scope;
		j.scope = (struct zb_buf){0};
	}
	zb_buf_done(&j.scope);
	if (rc)
		zb_wishes_done(out);
	return rc;
}

int zb_wish_command(const char *name, const struct zb_wish *w,
		    struct zb_buf *out)
{
	struct zb_buf quoted = {0};
	int rc = zb_text_shell_quote(&quoted, w->value);

	if (!rc)
		zb_buf_addf(out, "zotbox ext allow %s %s%s %s", name,
			    *w->value == '-' ? "-- " : "", w->key,
			    zb_buf_str(&quoted));
	zb_buf_done(&quoted);
	return rc;
}
