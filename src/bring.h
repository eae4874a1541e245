/* bring.h - a source's files, brought to where they can be judged: copied from
 * a directory or cloned, links checked, manifest read. Effects; shared by
 * install and update. Nothing of the extension is run. */
#ifndef ZB_BRING_H
#define ZB_BRING_H

#include "lock.h"
#include "manifest.h"
#include "source.h"
#include "store.h"

struct zb_bringing {
	const volatile sig_atomic_t *stop;
	void (*progress)(void *ctx, uint64_t files, uint64_t bytes);
	void *ctx;
};

struct zb_brought {
	struct zb_source source; /* parsed by the caller */
	struct zb_manifest manifest;
	struct zb_buf shipped; /* the bytes of extension.json */
};

/* Copy or clone @b->source into the empty directory @to, with @scratch (a
 * directory, which is the caller's to remove) for a clone; read the manifest.
 * ZB_EPOLICY: links that leave, a theme outside, a wrapped copy; ZB_EUSAGE: no
 * manifest or a bad one. @warnings are safe to show. */
int zb_bring(struct zb_brought *b, const char *to, const char *scratch,
	     const struct zb_bringing *how, struct zb_strv *warnings,
	     struct zb_error *err);
void zb_brought_done(struct zb_brought *b);

/* The wrapped form of @m, for this zotbox. */
int zb_wrapped_text(const struct zb_manifest *m, struct zb_buf *out,
		    struct zb_error *err);
/* Write it into @dir, where the shipped one is; a theme stays as it is. */
int zb_put_wrapped(const struct zb_manifest *m, const char *dir,
		   struct zb_error *err);
/* The mode of a manifest that takes the place of @path. */
unsigned zb_manifest_mode(const char *path);

/* A file of at most @max bytes below @dir; absent is empty. */
int zb_slurp(const char *dir, const char *name, struct zb_buf *out, bool *found,
	     struct zb_error *err);
/* The same for a lock, which may be large. */
int zb_slurp_large(const char *dir, const char *name, struct zb_buf *out,
		   bool *found, struct zb_error *err);
int zb_put(const char *dir, const char *name, const struct zb_buf *b,
	   unsigned mode, struct zb_error *err);

/* Lock of @dir with the shipped manifest in @box, written to @box/lock.json;
 * @out, if not NULL, has it as well. */
int zb_write_lock(const struct zb_brought *b, const char *dir, const char *box,
		  const char *policy, struct zb_lock *out,
		  struct zb_error *err);

#endif
