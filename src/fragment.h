/* fragment.h - policies/runtimes/NAME.json: what a program needs beside itself,
 * as data. Effects: reads the fragments and looks for what they name.
 *
 *	{"zotbox_runtime":1, "kind":"python",
 *	 "match":["python","python[0-9]*"],
 *	 "needs":[{"path":"${prefix}/lib/python${version}","rights":"read"}],
 *	 "programs":["cat"], "with":["sh"], "quiet":["/sys/fs/cgroup"]}
 *
 * match: basenames of the program or of a link to it, as shell patterns.
 * below: instead, a directory that its real path is in; within: a directory
 * name in its real path (${within} is the path before it) if ${within}/MARKER
 * exists, but not for a program that a stranger chose. needs: what to show, if
 * it is there; a path may be a shell pattern; one with "prefix" counts only for
 * programs of that prefix.
 * rights: "read", "exec" (and read), "link" (the link itself, if it is one).
 * programs: names looked up in the system's own directories, exec. with: other
 * fragments whose needs are needed too. quiet: probes and changes that are
 * refused without a record: a path, exactly, or a pattern of path_match.h.
 *
 * Variables: ${prefix} the installation prefixes of the program (/usr for
 * /usr/bin/x), ${own_prefix} the same without /usr, /usr/local, HOME and
 * ~/.local, which hold more than one program; ${version} what follows the
 * letters in its real name, else *; ${libdir} the system's library
 * directories; ${triplet} as in x86_64-linux-gnu; ${home}; ${extension_dir}
 * and its ${ancestors}. One with several values stands for each of them, one
 * without value drops the line. */
#ifndef ZB_FRAGMENT_H
#define ZB_FRAGMENT_H

#include "plan.h"

/* What a fragment is expanded for. */
struct zb_fragment_vars {
	const char *root; /* "" but in tests */
	/* Real paths: what happens inside is judged by those. */
	const char *home; /* NULL: none */
	const char *ext_dir;
	const char *real;      /* of the program */
	struct zb_strv names;  /* basenames it goes by */
	struct zb_strv prefix; /* installation prefixes */
	/* A stranger chose it: no ${own_prefix}, no `within`, and of a prefix
	 * only what no link leads out of. */
	bool strange;
};

/* Add what every fragment that matches the program asks for. *@kind (heap) is
 * the kind of the first that names one but "native"; untouched if none does.
 */
int zb_fragments_apply(const struct zb_fragment_vars *v, struct zb_program *out,
		       struct zb_error *err);
/* Add what the fragment @name ("base") asks for. */
int zb_fragment_add(const char *name, const struct zb_fragment_vars *v,
		    struct zb_program *out, struct zb_error *err);

/* Append a need (copies @path, @from). Return: 0 or ZB_ELIMIT. */
int zb_need_add(struct zb_program *out, const char *path, unsigned rights,
		const char *from);
/* Leave out what another need shows already. */
void zb_needs_tidy(const char *root, struct zb_need *needs, size_t *n);

#endif
