/* source.h - where an extension comes from: a directory, or a git URL that is
 * cloned by the git program under rules that keep it from running anything.
 * Effects. */
#ifndef ZB_SOURCE_H
#define ZB_SOURCE_H

#include "buf.h"

#include <signal.h>

enum zb_source_kind {
	ZB_SOURCE_PATH,
	ZB_SOURCE_GIT
};

struct zb_source {
	enum zb_source_kind kind;
	char *given;  /* as the user wrote it */
	char *url;    /* of a git source by URL: @given without "#REF" */
	char *ref;    /* the branch or tag REF; NULL: what HEAD is there */
	char *dir;    /* real directory, of a bare repository too; or NULL */
	char *shown;  /* what may be shown and kept: @dir, or the URL without
		       * a password */
	char *commit; /* 40 or 64 hex digits; NULL if it is no checkout */
};

/* Judge what the user wrote, start nothing. A directory with an extension.json
 * is a path, whatever its name; one that is a bare repository is cloned.
 * ZB_EUSAGE: empty, begins with "-", control characters, neither such a
 * directory nor a URL. ZB_EPOLICY: a transport that is not allowed (plain http
 * without @allow_http; ext::, fd:: and the like). https, ssh, user@host:path
 * and file are. A URL may end in "#" and a branch or tag. */
int zb_source_parse(struct zb_source *out, const char *given, bool allow_http,
		    struct zb_error *err);
/* Clone a git source into @dir (must not exist, nor @dir.template), shallow,
 * without submodules, hooks, filters or prompts; at most @seconds. git's own
 * words are in @err. Fills @s->commit. @stop: see tree_copy.h. */
int zb_source_clone(struct zb_source *s, const char *dir, unsigned seconds,
		    const volatile sig_atomic_t *stop, struct zb_error *err);
/* Submodules that .gitmodules in @dir names and whose directories are empty:
 * one warning each. 0 or ZB_ELIMIT. */
int zb_source_submodules(const char *dir, struct zb_strv *warnings);
void zb_source_done(struct zb_source *s);

#endif
