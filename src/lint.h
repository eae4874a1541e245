/* lint.h - what is wrong with a scope file, or looks as if it were not meant.
 * Effects: reads the file, those that it extends, and looks at the paths that
 * it names. What a rule comes to is asked of the resolver, as a start would. */
#ifndef ZB_LINT_H
#define ZB_LINT_H

#include "store.h"

/* Rules of one file whose effect is tried; the rest is only parsed. */
#define ZB_LINT_RULES_MAX 200

struct zb_lint_finding {
	bool warning; /* else: the file is malformed, nothing starts under it */
	unsigned line, column; /* from 1; 0: not known */
	char *key;	       /* "fs.read[0]", or NULL */
	char *text;	       /* one line, safe to show, without position */
};

struct zb_lint {
	struct zb_lint_finding *v;
	size_t n;
	bool malformed; /* some finding is no warning */
};

/* Examine the file @path. @project: real path of the directory that ${project}
 * is tried with; NULL: none. A file that cannot be read is a finding.
 * The scope.json of an installed extension is held against where its grants led
 * before (granted.h).
 * Return: 0, or ZB_ELIMIT, ZB_ESYS or (granted.json cannot be read) ZB_EPOLICY
 * with @err: nothing is said then. */
int zb_lint_file(struct zb_lint *out, const struct zb_store *store,
		 const char *path, const char *project, struct zb_error *err);
void zb_lint_done(struct zb_lint *l);

#endif
