/* grant.h - what a change of scope.json would lead to, found out by resolving
 * the whole plan with it, as the next start will. Effects. */
#ifndef ZB_GRANT_H
#define ZB_GRANT_H

#include "store.h"

/* Would the installed @name start with @text for its scope.json? Nothing of it
 * stays, but that @mean_it is remembered as zb_prepare() does. Messages speak
 * of scope.json. @given: "KEY VALUE" of what the user gives now, wherever it
 * may have led before (granted.h); NULL: nothing. @held: see prepare.h. Returns
 * what zb_prepare() does. */
int zb_grant_try(const struct zb_store *s, const char *name,
		 const struct zb_buf *text, const struct zb_strv *given,
		 bool mean_it, bool held, struct zb_error *err);
/* The same, with @name's lock held; then it is its scope.json, and where @given
 * leads is kept with it. *@anew (may be NULL): that was not known before, or it
 * was somewhere else. */
int zb_grant_keep(const struct zb_store *s, const char *name,
		  const struct zb_buf *text, const struct zb_strv *given,
		  bool mean_it, bool *anew, struct zb_error *err);

/* One thing that permissions.json asks for and that is not granted. */
struct zb_wish {
	char *key, *value;
	char *why_not; /* `ext allow` would refuse it, in its words; or NULL */
	bool granted;
};
struct zb_wishes {
	struct zb_wish *v;
	size_t n;
};
void zb_wishes_done(struct zb_wishes *w);
/* Take the "KEY VALUE" of @requested apart; each has @why_not (NULL: none). */
int zb_wishes_list(struct zb_wishes *out, const struct zb_strv *requested,
		   const char *why_not, struct zb_error *err);

/* Judge the "KEY VALUE" of @requested (zb_prepared.requested) over @scope, the
 * text of scope.json: which of them `ext allow` would grant, @mean_it given or
 * not. @all: @scope with all those in it. */
int zb_wishes_judge(struct zb_wishes *out, struct zb_buf *all,
		    const struct zb_store *s, const char *name,
		    const struct zb_buf *scope, const struct zb_strv *requested,
		    bool mean_it, bool held, struct zb_error *err);

/* Append "zotbox ext allow NAME KEY VALUE", quoted for a shell. ZB_EUSAGE: it
 * cannot be shown as a command (control characters), nothing was added. */
int zb_wish_command(const char *name, const struct zb_wish *w,
		    struct zb_buf *out);

#endif
