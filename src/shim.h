/* shim.h - version managers put small scripts into PATH that choose the real
 * program when they start. Inside a sandbox they would need all of the
 * manager; so the choice is made here, as they would make it. Effects. */
#ifndef ZB_SHIM_H
#define ZB_SHIM_H

#include "buf.h"

/* What stands behind a shim. */
struct zb_shim {
	char *target;	     /* heap; NULL: this is no shim */
	struct zb_strv args; /* words to put before the caller's arguments */
	const char *manager; /* static: "pyenv", "asdf", "plain" */
	char *why;	     /* "3.11.7, set by /x/.python-version"; or NULL */
};

/* Is the program at @path, found as @name, a shim: of pyenv, rbenv, nodenv,
 * goenv, asdf, or a plain script whose one command is `exec "/ABSOLUTE/PATH"
 * "$@"`? @head is the beginning of the file (all of it, if it is a shim).
 * @dir is where the extension starts: version files are looked for there and
 * upwards. @path_env is PATH, for the version "system".
 * Return: 0 (@out->target tells), or an error that says what the manager
 * would have said. */
int zb_shim_resolve(struct zb_shim *out, const char *path, const char *name,
		    const char *head, const char *dir, const char *path_env,
		    struct zb_error *err);
/* A link to a program that acts by the name it is called (mise, volta): the
 * manager's name, or NULL. @real is where the link ends. */
const char *zb_shim_by_name(const char *real, const char *name);
void zb_shim_done(struct zb_shim *s);

#endif
