/* runtime.h - find what really starts an extension: `exec` as zot resolves it
 * (absolute; with a slash: in the extension's directory; bare: PATH), then
 * through shebangs, env, symlinks, venv and shims (pyenv, nvm, asdf, plain
 * scripts that exec one absolute path) to the interpreter and its
 * installation prefix. Effects; the fragments in policies/runtimes/ are data:
 *
 *	{"zotbox_runtime":1, "kind":"python", "match":["python","python3*"],
 *	 "needs":[{"path":"${prefix}/lib/python3*","rights":"read"}, ...],
 *	 "quiet":["/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"]}
 *
 * ${program} is the real interpreter, ${prefix} its installation prefix,
 * ${libdir} the system's library directories. */
#ifndef ZB_RUNTIME_H
#define ZB_RUNTIME_H

#include "plan.h"

/* Resolve @manifest->exec for an extension in @dir. @path is the PATH that
 * bare names are looked up in. Errors name each step: "crlf: main.py line 1
 * ends in CRLF...", "exec ./nope: not found"... (ZB_EUSAGE); a program that
 * is there but cannot be started is ZB_ESYS. */
int zb_runtime_resolve(struct zb_program *out, const char *dir,
		       const struct zb_manifest *manifest, const char *path,
		       struct zb_error *err);

/* A bare program name or absolute path for an fs.exec grant: where it is and
 * what it needs to run (its interpreter, libraries). */
int zb_runtime_program(struct zb_program *out, const char *name,
		       const char *path, struct zb_error *err);

/* What every sandbox needs: loader, libraries, /etc files (base.json),
 * expanded for this host. The caller frees with zb_needs_done(). */
int zb_runtime_base(struct zb_need **out, size_t *n, struct zb_strv *quiet,
		    struct zb_error *err);
void zb_needs_done(struct zb_need *needs, size_t n);

#endif
