/* chain.h - reading a chain of scope files: a preset, what a user's file
 * extends, the file itself. Effects. */
#ifndef ZB_CHAIN_H
#define ZB_CHAIN_H

#include "scope.h"

/* A chain being read, farthest file first. */
struct zb_chain {
	struct zb_scope scope; /* merged */
	struct zb_strv files;  /* real paths of those that are no presets */
	struct zb_buf texts;   /* all of them, for a fingerprint */
	char *preset;	       /* the nearest preset in it */
	bool more;	       /* a file that is no preset says something */
};
void zb_chain_done(struct zb_chain *c);

/* "strict", "standard", "observe"? */
bool zb_is_preset(const char *name);

/* Add what @name stands for, and before it what it extends: a preset, or the
 * path of a file (absolute, with ~/, or relative to @dir). ZB_EUSAGE for what
 * is malformed, absent or runs in a circle. */
int zb_chain_add(struct zb_chain *c, const char *name, const char *dir,
		 struct zb_error *err);
/* Add the file @path, whose `extends` must be @base or absent if @base (the
 * explicit --policy, already added) is not NULL. Without @base what it extends
 * comes first, strict if it says nothing. @as is its name in origins. */
int zb_chain_add_file(struct zb_chain *c, const char *path, const char *as,
		      const char *base, struct zb_error *err);

/* Does a parsed file say anything beside what it extends? */
bool zb_scope_says_more(const struct zb_scope *s);

#endif
