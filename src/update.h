/* update.h - new files for an installed extension, from where it came. Effects.
 *
 * Everything is fetched, judged and tried in a stage, in which the extension
 * has a store of its own; then it is asked about, and only then what is
 * installed is touched, by one swap (swap.h). Its scope, home and data stay;
 * nothing more is granted unless somebody says so. */
#ifndef ZB_UPDATE_H
#define ZB_UPDATE_H

#include "code_diff.h"
#include "grant.h"

#include <signal.h>

struct zb_updated {
	char *name, *source;
	char *commit_was, *commit; /* NULL: no checkout */
	bool unchanged;		   /* nothing was done */
	/* What is installed is not what was: that goes as well. */
	bool tampered;
	struct zb_code_diff diff;
	/* What it did not ask for before, and does not have. */
	struct zb_wishes wishes;
	struct zb_strv no_longer; /* asked for before, "KEY VALUE" */
	/* The same, of what scope.json grants: it stays. */
	struct zb_strv kept;
	struct zb_strv warnings; /* safe to show */
};
void zb_updated_done(struct zb_updated *u);

struct zb_update_request {
	const char *name;
	bool yes; /* take the code without a question; grants nothing */
	bool allow_http;
	const volatile sig_atomic_t *stop;
	void (*progress)(void *ctx, uint64_t files, uint64_t bytes);
	/* Take it? NULL: nobody to ask; then ZB_EUSAGE unless @yes. With
	 * @so_far->wishes that can be had, *@grant says whether to grant
	 * them. */
	bool (*approve)(void *ctx, const struct zb_updated *so_far,
			bool *grant);
	/* What is told before that, also with @yes; may be NULL. */
	void (*show)(void *ctx, const struct zb_updated *so_far);
	void *ctx;
};

/* Return: 0 (updated, or @out->unchanged); ZB_EPOLICY: not installed by
 * zotbox, unwrapped, its source has another extension now, refused by who was
 * asked, or by a check of the new files as zb_install() has them; else as
 * there. Unless 0, what was installed is as it was. */
int zb_update(struct zb_updated *out, const struct zb_store *store,
	      const struct zb_update_request *req, struct zb_error *err);

#endif
