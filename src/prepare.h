/* prepare.h - from a name or a path to a plan that can be started: reads
 * manifest, scope chain, lock and host, makes the private directories and
 * their stubs, resolves. Effects; everything that decides is in plan.c. */
#ifndef ZB_PREPARE_H
#define ZB_PREPARE_H

#include "backend.h"
#include "store.h"

struct zb_target {
	const char *name; /* installed NAME, or NULL */
	const char *path; /* directory of one that is not installed, or NULL */
	const char *project; /* real path, NULL unknown */
	const char *policy;  /* --policy, NULL: stored (or strict for a path) */
	const char *scope;   /* --scope FILE, NULL: stored */
	bool full_ledger;    /* console: mode full */
	bool mean_it;
};

/* Everything one start needs; free with zb_prepared_done() after the sandbox
 * is gone (it holds the home/ and data/ locks shared). */
struct zb_prepared {
	struct zb_manifest manifest; /* as shipped */
	struct zb_plan plan;
	char *dir;    /* extension directory as spelled */
	char *box;    /* $ZOT_HOME/zotbox/NAME or @HASH */
	char *policy; /* what list shows: "strict", "strict+scope" */
	struct zb_strv
		changed; /* integrity: differing files (then ZB_EPOLICY) */
	struct zb_strv
		requested; /* permissions.json: "KEY VALUE" not granted */
	int lock_fds[3];
};

/* ZB_EPOLICY: unknown NAME, no manifest or scope, changed code, stub in the
 * way; ZB_EUNSUPPORTED: a rule this host cannot enforce; ZB_EUSAGE: malformed
 * files. Nothing is started. */
int zb_prepare(struct zb_prepared *out, const struct zb_store *store,
	       const struct zb_target *target, struct zb_error *err);
void zb_prepared_done(struct zb_prepared *p);

#endif
