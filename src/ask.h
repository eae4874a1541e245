/* ask.h - what an extension asks for, in people's words, by risk. Pure: what a
 * path holds on this machine is looked up by reach.h.
 *
 * Four groups, the worst first. Grave is what amounts to everything that the
 * user can do, or makes the user believe what is not so; it is shown in red,
 * and never granted without a word that it is meant. */
#ifndef ZB_ASK_H
#define ZB_ASK_H

#include "buf.h"

enum zb_risk {
	ZB_RISK_GRAVE,
	ZB_RISK_HIGH, /* reads or changes what is the user's; acts for him */
	ZB_RISK_SOME, /* sees or does more; what exactly is bounded */
	ZB_RISK_LOW,  /* room and comfort */
	ZB_RISK_COUNT
};
/* The heading of a group, static. */
const char *zb_risk_heading(enum zb_risk r);

/* What a path of a grant holds, as far as somebody looked. */
enum zb_reach_kind {
	ZB_REACH_UNKNOWN, /* not looked at: ${project}, a pattern */
	ZB_REACH_ABSENT,
	ZB_REACH_FILE,
	ZB_REACH_DIR,
	ZB_REACH_OTHER, /* device, socket */
};
struct zb_reach {
	enum zb_reach_kind kind;
	bool all;	  /* it is or contains HOME, or / */
	bool keeper;	  /* it is or contains zot's own directory */
	uint64_t files;	  /* in it and below */
	bool more;	  /* there are more: counting was given up */
	uint64_t secrets; /* of those, names that look like credentials */
	char *example;	  /* one of them, relative to it; or NULL */
	char *leads_to;	  /* it goes through a link: the real path; or NULL */
	/* What is run from it later, outside the sandbox: it lies in or is a
	 * place like that (""), or holds one (its name); or NULL */
	char *runs;
};
void zb_reach_done(struct zb_reach *r);

/* Is the last component of a path the name of what usually holds keys or
 * passwords (".env", "id_rsa", "*.pem", "credentials"...)? */
bool zb_looks_like_credentials(const char *name);

/* Is canonical @path, or does it lie in or hold, what shells, desktops, editors
 * or other programs run later? @home: canonical HOME; @dirs: directories of
 * PATH, canonical. "": it is or lies in such a place. "~/.local/bin": it holds
 * that one, static or of @dirs. NULL: no. With @only, a pattern, of what @path
 * holds just what matches it. */
const char *zb_run_later(const char *path, const char *only, const char *home,
			 const struct zb_strv *dirs);

/* One thing asked for. Text is one line, safe to show. */
struct zb_ask {
	enum zb_risk risk;
	char *does;    /* "read ~/notes: 214 files, 2 of them ..." */
	char *without; /* "what it does not get": what fails without it */
};
/* @key and @value as `ext allow` has them; @reach for keys whose value is a
 * path, NULL otherwise. Unknown keys are told as they are, and HIGH. 0 or
 * ZB_ELIMIT. */
int zb_ask_say(struct zb_ask *out, const char *key, const char *value,
	       const struct zb_reach *reach);
void zb_ask_done(struct zb_ask *a);

#endif
