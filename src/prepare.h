/* prepare.h - from a name or a path to a plan that can be started: reads
 * manifest, scope chain, lock and host, makes the private directories and
 * their stubs, resolves. Effects; everything that decides is in resolve.c. */
#ifndef ZB_PREPARE_H
#define ZB_PREPARE_H

#include "backend.h"
#include "made.h"
#include "store.h"

struct zb_target {
	const char *name; /* installed NAME, or NULL */
	const char *path; /* directory of one that is not installed, or NULL */
	const char *project; /* real path, NULL unknown */
	const char *policy;  /* --policy, NULL: stored (or strict for a path) */
	const char *scope;   /* --scope FILE, NULL: stored */
	bool full_ledger;    /* console: mode full */
	/* The broad grants are meant. By NAME this is remembered, line by
	 * line, so that later starts and edits need not say it again. */
	bool mean_it;
	/* A start by the agent: it counts for the first three after an install
	 * or a change of scope, whose ledger is full. A rehearsal does not. */
	bool run;
	/* The caller holds NAME's lock exclusively and knows of the mark that
	 * keeps others from starting it: an install that tries itself. */
	bool held;
	/* Nothing will be started under the plan: nothing is made outside the
	 * box. */
	bool still;
	/* The scope is one that may never be kept: where its names lead is not
	 * kept either. @given: "KEY VALUE" of what it would grant now. */
	bool trial;
	const struct zb_strv *given;
	/* Nobody runs it, somebody wants to know something: the box of a path
	 * that nobody ran yet goes with the preparation. */
	bool passing;
};

/* What stands for @t in the names of its log and ledger, ext-WORD.log: the NAME
 * of an installed one, the @HASH of one that is run by its path, whose
 * manifest may say any name. Heap; NULL: no memory, or no such directory. */
char *zb_target_log(const struct zb_target *t);

/* Everything one start needs; free with zb_prepared_done() after the sandbox
 * is gone (it holds the box's run lock shared). */
struct zb_prepared {
	struct zb_manifest manifest; /* as shipped */
	struct zb_plan plan;
	char *dir; /* extension directory as spelled */
	char *box; /* $ZOT_HOME/zotbox/NAME or @HASH */
	/* A passing one of a path: its store, which must outlive it, and what
	 * was there of the way to its boxes. */
	const struct zb_store *passing;
	char *above;
	char *policy; /* what list shows: "strict", "strict+scope" */
	/* Integrity: "changed PATH", "added PATH", "removed PATH" */
	struct zb_strv changed;
	/* What permissions.json asks for and is not granted: "KEY VALUE" */
	struct zb_strv requested;
	/* Where the names in its scopes led when they were granted, those of
	 * this one too; @led_anew: it was not known before. */
	struct zb_granted granted;
	bool led_anew;
	struct zb_strv story; /* how the program was found, a step a line */
	struct zb_made made;  /* directories that were made for it */
	/* Above 2, or none: as zb_stubs_make() gives them. */
	int lock_fds[2];
};

/* ZB_EPOLICY: unknown NAME, no manifest or scope, changed code, one of a
 * project that is not trusted (trust.h), stub in the way, an installed manifest
 * that would start it unconfined, nothing to start (theme only);
 * ZB_EUNSUPPORTED: a rule this host cannot enforce; ZB_EUSAGE: malformed files.
 * Nothing is started. On failure only @out->changed may be filled. */
int zb_prepare(struct zb_prepared *out, const struct zb_store *store,
	       const struct zb_target *target, struct zb_error *err);
/* The sandbox has its mounts: other instances may go on. */
void zb_prepared_started(struct zb_prepared *p);
void zb_prepared_done(struct zb_prepared *p);

/* zb_facts.look and .expand (plan.h) as this host answers them; @ctx is not
 * used. For who resolves, or asks a plan, without starting anything. */
void zb_facts_look(void *ctx, const char *path, struct zb_path_fact *out);
void zb_facts_expand(void *ctx, const char *pattern, struct zb_strv *out);

#endif
