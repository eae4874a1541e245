/* granted.h - where the paths of a scope led when they were granted. Pure.
 *
 * A grant is a name, and what the name leads to is found out at each start.
 * Between two starts somebody may put a link there: so each name is kept
 * together with the place that it led to when the user gave it, and the
 * resolver (resolve_granted.c) holds the one against the other. Kept as
 * granted.json in the extension's box, which no sandbox can see. */
#ifndef ZB_GRANTED_H
#define ZB_GRANTED_H

#include "buf.h"

/* Paths of one extension. More than a scope file has, and a bound for what is
 * read. */
#define ZB_GRANTED_MAX	    4000
#define ZB_GRANTED_TEXT_MAX ((size_t)16 << 20)

/* Both as zb_text_escape() writes them, HOME as "~": so they are UTF-8, safe
 * to show, and outlive a HOME that is moved. */
struct zb_granted_path {
	char *key;  /* "fs.read" */
	char *path; /* the name, as spelled */
	char *real; /* the place */
};
struct zb_granted {
	struct zb_granted_path *v;
	size_t n, cap;
};
void zb_granted_done(struct zb_granted *g);

/* Read granted.json, known as @file. ZB_EUSAGE for what is no such file. */
int zb_granted_parse(struct zb_granted *out, const char *file, const char *text,
		     size_t len, struct zb_error *err);
/* Append it as text. 0 or ZB_ELIMIT. */
int zb_granted_text(const struct zb_granted *g, struct zb_buf *out);

/* Where @path of @key led; NULL: it is not known. */
const char *zb_granted_real(const struct zb_granted *g, const char *key,
			    const char *path);
/* Copies. What was known of the same is replaced. 0, or ZB_ELIMIT: memory, or
 * ZB_GRANTED_MAX of them. */
int zb_granted_set(struct zb_granted *g, const char *key, const char *path,
		   const char *real);
/* Lay @over over @base, into @base; *@changed: it says something else than
 * before. Over ZB_GRANTED_MAX only @over stays. 0 or ZB_ELIMIT. */
int zb_granted_merge(struct zb_granted *base, const struct zb_granted *over,
		     bool *changed);

#endif
