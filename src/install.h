/* install.h - put an extension under zotbox: staged, checked, tried, renamed
 * into place, undone on any failure; and take it away again. Effects.
 *
 * Everything is made in a stage. Then zotbox/NAME is put into place, carrying
 * the mark that says "not installed" (staging.h), then extensions/NAME; what a
 * start would do is tried; and with the mark taken away NAME is installed.
 * Killed at any point, the next command finds the old state or the new one. */
#ifndef ZB_INSTALL_H
#define ZB_INSTALL_H

#include "grant.h"
#include "store.h"

#include <signal.h>

struct zb_installed {
	char *name, *dir, *policy, *commit;
	bool theme_only;
	struct zb_strv warnings; /* safe to show */
	/* What permissions.json asks for beyond the policy. */
	struct zb_wishes wishes;
};

struct zb_install_request {
	const char *source;	/* PATH or GIT-URL as given */
	const char *policy;	/* --policy NAME|FILE; NULL: not given */
	const char *scope_file; /* --scope FILE; NULL: not given */
	bool yes;		/* --yes: no question is asked */
	bool mean_it;
	bool fresh, adopt; /* left-over scope, home, data of the NAME */
	bool allow_http;
	const volatile sig_atomic_t *stop;
	void (*progress)(void *ctx, uint64_t files, uint64_t bytes);
	/* Asked about @so_far->wishes unless @yes, under a policy that asks;
	 * NULL: nobody to ask, grant nothing. */
	bool (*approve)(void *ctx, const struct zb_installed *so_far);
	void *ctx;
};

/* What is asked for is granted when approved or with @yes, as far as `ext
 * allow` would; with @yes and not @mean_it nothing that is grave (ask.h); never
 * under an explicit --policy strict, over a --scope FILE, or into an adopted
 * scope.
 *
 * Return: 0; ZB_EUSAGE malformed; ZB_EPOLICY refused (already installed,
 * left-overs, links that leave, too broad); ZB_EUNSUPPORTED a rule that this
 * host cannot enforce; ZB_ESYS (EINTR when stopped). Nothing is installed, and
 * left-overs are what they were, unless 0. */
int zb_install(struct zb_installed *out, const struct zb_store *store,
	       const struct zb_install_request *req, struct zb_error *err);
void zb_installed_done(struct zb_installed *i);

/* Delete extension, scope, data and home of the extension in @dir; logs stay.
 * @name: its box, whose lock is held; NULL if it has none (not wrapped).
 * @dir NULL: only the box. */
int zb_uninstall(const struct zb_store *store, const char *dir,
		 const char *name, struct zb_error *err);

/* Write the wrapped / the shipped manifest into extensions/NAME. */
int zb_rewrap(const struct zb_store *store, const char *name, bool enabled,
	      struct zb_error *err);
int zb_unwrap(const struct zb_store *store, const char *name, bool enabled,
	      struct zb_error *err);

#endif
