/* install.h - put an extension under zotbox: staged, checked, renamed into
 * place, undone on any failure. Effects.
 *
 * Everything is made in $ZOT_HOME/zotbox/.stage-XXXXXX, under a lock that tells
 * a stage in use from a left-over. Then zotbox/NAME is renamed into place,
 * carrying a mark `staged`, then extensions/NAME, then the mark goes: killed
 * at any point, the next run finds the old state or the new one. */
#ifndef ZB_INSTALL_H
#define ZB_INSTALL_H

#include "store.h"

#include <signal.h>

struct zb_install_request {
	const char *source;	/* PATH or GIT-URL as given */
	const char *policy;	/* --policy NAME|FILE; NULL: not given */
	const char *scope_file; /* --scope FILE; NULL: not given */
	bool yes;		/* grant what permissions.json asks for */
	bool mean_it;
	bool fresh, adopt; /* left-over scope, home, data of the NAME */
	bool allow_http;
	const volatile sig_atomic_t *stop;
	void (*progress)(void *ctx, uint64_t files, uint64_t bytes);
	void *ctx;
};

struct zb_installed {
	char *name, *dir, *policy, *commit;
	bool theme_only;
	struct zb_strv warnings;
	struct zb_strv requested; /* "KEY VALUE" asked for and not granted */
};

/* Return: 0; ZB_EUSAGE malformed; ZB_EPOLICY refused (already installed,
 * left-overs, links that leave, too broad); ZB_EUNSUPPORTED a rule that this
 * host cannot enforce; ZB_ESYS (EINTR when stopped). Nothing is installed
 * unless 0. */
int zb_install(struct zb_installed *out, const struct zb_store *store,
	       const struct zb_install_request *req, struct zb_error *err);
void zb_installed_done(struct zb_installed *i);

/* Remove stages nobody uses and boxes whose extension never came. Called at
 * the start of every changing command; quiet. */
void zb_install_recover(const struct zb_store *store);

/* Delete extension, scope, data and home of the extension in @dir; logs stay.
 * @name: its box, NULL if it has none (not wrapped). */
int zb_uninstall(const struct zb_store *store, const char *dir,
		 const char *name, struct zb_error *err);

/* Write the wrapped / the shipped manifest into extensions/NAME. */
int zb_rewrap(const struct zb_store *store, const char *name, bool enabled,
	      struct zb_error *err);
int zb_unwrap(const struct zb_store *store, const char *name, bool enabled,
	      struct zb_error *err);

#endif
