/* manifest.h - extension.json, read strictly and written afresh. Pure. */
#ifndef ZB_MANIFEST_H
#define ZB_MANIFEST_H

#include "buf.h"

#define ZB_NAME_MAX 64

struct zb_manifest {
	char *name;
	char *version; /* NULL: absent, as below */
	char *exec;    /* NULL for a theme-only extension */
	struct zb_strv args;
	char *language;
	char *description;
	char *theme;  /* the key `theme` as zot reads it, if a string */
	bool enabled; /* default true */
	bool wrapped; /* exec is a zotbox path and args are wrap NAME */
};

/* NAME rule: [A-Za-z0-9][A-Za-z0-9._-]{0,63}, no dot at the end. */
bool zb_name_valid(const char *name);

/* Parse @len bytes. Errors are worded for people ("parse manifest: LINE:COL:
 * ...", "manifest: name is required", "manifest: exec is required" unless
 * @theme says that a theme file is there). Refused (ZB_EUSAGE): two keys equal
 * under case folding, a key that folds to a known one without being it, a
 * name that breaks the NAME rule, wrong types. null is as good as absent.
 * Unknown keys are fine, so is a `theme` that is no string. One leading
 * byte-order mark is not (named). version, language and description come
 * cleaned and on one line (zb_text_clean).
 *
 * @out is filled as far as it could be read, also on failure (for doctor):
 * zb_manifest_done() it in any case. */
int zb_manifest_parse(struct zb_manifest *out, const char *text, size_t len,
		      bool theme, struct zb_error *err);
void zb_manifest_done(struct zb_manifest *m);

/* The wrapped manifest: only name version description language enabled theme,
 * exec = @zotbox (absolute path) and args = ["wrap", name]; zot's two-space
 * form with sorted keys. Theme-only manifests get no exec. ZB_EUSAGE: @zotbox
 * is not absolute, or not UTF-8, which JSON cannot hold. */
int zb_manifest_wrap(struct zb_buf *out, const struct zb_manifest *m,
		     const char *zotbox);

#endif
