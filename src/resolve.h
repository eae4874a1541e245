/* resolve.h - inside the resolver only: plan.h is what others use.
 *
 *	resolve.c	 the order of work, the host's roots, what every
 *			 sandbox has
 *	resolve_walk.c	 links, and adding places
 *	resolve_grant.c	 the scope's fs lists
 *	resolve_granted.c where their names led when they were granted
 *	resolve_links.c	 links that the extension could have made
 *	resolve_env.c	 the environment
 *	resolve_settle.c merging, carve-outs, pins: from many to a plan */
#ifndef ZB_RESOLVE_H
#define ZB_RESOLVE_H

#include "plan.h"

#define ZB_ALL_RIGHTS                                                          \
	(ZB_MAY_READ | ZB_MAY_WRITE | ZB_MAY_CREATE | ZB_MAY_EXEC | ZB_MAY_LIST)

/* More than a sandbox of this kind ever needs; each is a mount. */
#define ZB_PLACES_MAX 2000

/* A file of the system that is no larger is copied. (Its pages are memory that
 * every sandbox has for itself.) The loader's cache, the list of MIME types and
 * env(1) are below it. */
#define ZB_COPY_MAX (80u << 10)
/* A directory of the system with no more in it, and below it, is shown as
 * links and copies. */
#define ZB_COPY_NAMES 12
#define ZB_COPY_BYTES (32u << 10)

struct zb_looked {
	char *path;
	struct zb_path_fact fact;
};

struct zb_resolver {
	struct zb_plan *plan; /* under construction */
	const struct zb_scope *scope;
	const struct zb_facts *facts;
	struct zb_error *err;
	/* Canonical host paths: of what plan->*_real does not have. */
	char *data;	     /* private_data */
	char *home_box;	     /* private_home */
	char *boxes, *logs;  /* the supervisor's own */
	char *extensions;    /* all installed ones */
	char *auth;	     /* zot's credentials, wherever they really are */
	struct zb_strv open; /* shipped files of "beside" made writable */
	size_t n_room;	     /* places allocated */
	/* What facts->look said, sorted by path: each is asked once. */
	struct zb_looked *looked;
	size_t n_looked, n_looked_room;
};

/* A host path followed through its links. */
struct zb_walk {
	char *path; /* canonical, as far as it exists; the rest as written */
	bool exists, is_dir, is_file;
	uint64_t size;
	struct zb_strv links; /* where a link stands, then what it says */
};
void zb_walk_done(struct zb_walk *w);

/* Follow @path (absolute). With @keep_last a link in the last component is
 * the result itself (exists, neither directory nor file). Too many links are
 * a path that does not exist. Return: 0 or ZB_ELIMIT. */
int zb_resolve_walk(struct zb_resolver *r, const char *path, bool keep_last,
		    struct zb_walk *out);

/* A place to be: strings are copied. Return: 0 or ZB_ELIMIT. */
int zb_resolve_add(struct zb_resolver *r, const struct zb_place *place);
/* A host path at its own real name, with the links that led there. */
int zb_resolve_add_walked(struct zb_resolver *r, enum zb_place_kind kind,
			  const struct zb_walk *w, unsigned rights,
			  const struct zb_origin *origin);
/* Everything @needs asks for. */
int zb_resolve_needs(struct zb_resolver *r, enum zb_place_kind kind,
		     const struct zb_need *needs, size_t n, const char *key);

/* "FILE:LINE: KEY "VALUE": " and the text. Return: @code. */
int zb_resolve_fail(struct zb_resolver *r, enum zb_code code,
		    const struct zb_rule *rule, const char *fmt, ...)
	ZB_PRINTF(4, 5);
/* "scope fs.read "VALUE" TEXT (FILE: KEY)", said once. Return: 0 or ZB_ELIMIT.
 */
int zb_resolve_notice(struct zb_resolver *r, const struct zb_rule *rule,
		      const char *fmt, ...) ZB_PRINTF(3, 4);

/* Which shipped files does fs.write make writable (state "beside")? Before
 * the extension's entries are placed. */
int zb_resolve_shipped(struct zb_resolver *r);
int zb_resolve_denies(struct zb_resolver *r);
int zb_resolve_grants(struct zb_resolver *r);
/* Close the name @path to changes where it lies in what is granted for writing;
 * @origin: {0} if it is built in. Return: 0 or ZB_ELIMIT. */
int zb_resolve_close(struct zb_resolver *r, const char *path,
		     const struct zb_origin *origin);
/* The same for the links of @w. (resolve_links.c) */
int zb_resolve_close_links(struct zb_resolver *r, const struct zb_walk *w,
			   const struct zb_origin *origin);
/* After the grants: none of them depends on a link that the extension could
 * have made. */
int zb_resolve_judge_links(struct zb_resolver *r);

/* One name of a scope, as resolve_granted.c holds it against what was known. */
struct zb_way {
	const struct zb_rule *rule;
	const char *key;  /* "fs.read" */
	const char *name; /* as zb_resolve_spelled() has it */
	/* Where it led if granted.json does not say; NULL: it is granted now.
	 */
	const char *else_was;
	bool given; /* it is granted now in any case */
	bool deny;  /* it must not change without a link either */
	/* What of it is a pattern, behind what is followed: "*.pem"; or NULL */
	const char *tail;
};
/* Does the name lead where it led when it was granted? *@why (heap): no, how it
 * is different, and what to do; NULL: yes, and the plan remembers it. Return: 0
 * or ZB_ELIMIT. */
int zb_resolve_judge_way(struct zb_resolver *r, const struct zb_way *way,
			 const struct zb_walk *w, char **why);
/* How a path as spelled, and how a place, is kept: HOME as "~", escaped. Heap
 * or NULL. */
char *zb_resolve_spelled(const struct zb_resolver *r, const char *path);
char *zb_resolve_real_word(const struct zb_resolver *r, const char *path);
/* What the host says of @path; its strings are the resolver's. Return: 0 or
 * ZB_ELIMIT. */
int zb_resolve_look(struct zb_resolver *r, const char *path,
		    struct zb_path_fact *out);

int zb_resolve_env(struct zb_resolver *r);
/* Has the variable @name a word like TOKEN or KEY in it? */
bool zb_env_looks_secret(const char *name);
int zb_resolve_settle(struct zb_resolver *r);

/* Paths of @plan in the order of zb_place: "/" before any other byte, so
 * that what lies in a directory follows it at once. */
int zb_place_order(const char *a, const char *b);
void zb_place_done(struct zb_place *p);

/* Names whose content is run by zot, git, editors or shells: below no write
 * grant, and by their own name only with --yes-i-mean-it. NULL-terminated
 * patterns over canonical paths. */
extern const char *const zb_carve_outs[];

#endif
