/* runtime.h - find what really starts an extension: `exec` as zot resolves it
 * (absolute; with a slash: in the extension's directory; bare: PATH), then
 * through shebangs, env, symlinks, venv and shims (pyenv, nvm, asdf, plain
 * scripts that exec one absolute path) to the interpreter and its
 * installation prefix. Effects; what each interpreter needs is data, in
 * policies/runtimes/ (fragment.h). */
#ifndef ZB_RUNTIME_H
#define ZB_RUNTIME_H

#include "plan.h"

/* Resolve @manifest->exec for an extension in @dir. @path is the PATH that
 * bare names are looked up in (NULL: the system's default). Errors name the
 * extension and the step: "NAME: main.py line 1 ends in CRLF...", "NAME: exec
 * ./nope: not found", "NAME: main.py is not executable"... (ZB_EUSAGE);
 * somebody else's script in HOME is ZB_EPOLICY.
 * argv[0] is the program's path, as the kernel gives it for a shebang and not
 * the bare name: inside, a lookup in PATH could find another one. */
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
/* The same for a host whose files are below @root ("" is the real one): tests
 * build small ones, with a merged /usr and without. */
int zb_runtime_base_at(const char *root, struct zb_need **out, size_t *n,
		       struct zb_strv *quiet, struct zb_error *err);
void zb_needs_done(struct zb_need *needs, size_t n);

#endif
