/* trust.h - approval of extensions that belong to a project, by content.
 * Effects.
 *
 * Whoever can change a project can put an extension into its .zot/extensions,
 * and an agent that is started there would start it. So one of those starts
 * only after the user approved the very files that are there. The approval is
 * a lock (lock.h) in the box of its real path, zotbox/@HASH/lock.json, over
 * everything below the directory; each start compares it. */
#ifndef ZB_TRUST_H
#define ZB_TRUST_H

#include "lock.h"
#include "store.h"

/* Is @dir, as spelled or as it really is, an entry of some .zot/extensions
 * that is not $ZOT_HOME/extensions? Only such a one needs trust. */
bool zb_is_project_local(const struct zb_store *s, const char *dir);

/* May the project-local @dir start? Return: 0; ZB_EPOLICY: it was never
 * trusted, or is not what was (then @changed, which may be NULL, has the
 * files, "changed PATH"...), with the command in the message; other codes: it
 * cannot be known, so no. */
int zb_trust_check(const struct zb_store *s, const char *dir,
		   struct zb_strv *changed, struct zb_error *err);

/* What @dir is now, to be looked at and then approved: refuses (ZB_EPOLICY)
 * what needs no trust, what cannot be judged by its files (links that leave
 * the directory, devices), and what starts nothing. */
struct zb_trust_offer {
	char *real;	/* real path of the directory */
	char *box_name; /* @HASH */
	struct zb_manifest manifest;
	struct zb_lock lock; /* of what is there */
	bool again;	     /* it was trusted before: */
	/* - and what is different since, "changed PATH" */
	struct zb_strv changed;
	struct zb_strv warnings; /* safe to show */
};
int zb_trust_look(struct zb_trust_offer *out, const struct zb_store *s,
		  const char *dir, struct zb_error *err);
void zb_trust_offer_done(struct zb_trust_offer *o);
/* Approve exactly what @o describes, whatever is there by now. @policy: a
 * preset or the path of a scope file, which its scope.json will extend; NULL:
 * the scope that it has stays, else strict. */
int zb_trust_give(const struct zb_store *s, const struct zb_trust_offer *o,
		  const char *policy, struct zb_error *err);
/* Take the approval of @dir (which may be gone) back, and with it what was
 * granted; home and data stay. ZB_EPOLICY: there is none. */
int zb_trust_take(const struct zb_store *s, const char *dir,
		  struct zb_error *err);

#endif
