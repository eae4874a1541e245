/* staging.h - work in progress below zotbox/, and the mark that decides
 * whether a NAME is installed. Effects.
 *
 * A NAME is two directories that no system call can make or remove at once, so
 * one small file decides: while zotbox/NAME/staged is there, NAME is not
 * installed, whatever else is there. Install puts everything into place with
 * the mark in it, tries it, and takes the mark away: that is the install.
 * Remove sets the mark: that is the removal. What comes after a mark, at once
 * or by the next command that changes something, is the same tidying up.
 *
 * Whatever takes time is made or deleted in a stage, zotbox/.stage-XXXXXX,
 * whose lock tells one in use from a left-over. */
#ifndef ZB_STAGING_H
#define ZB_STAGING_H

#include "store.h"

struct zb_staging {
	char *dir; /* NULL: none */
	int hold;
};

/* Make one, and zotbox/ before it if need be. */
int zb_staging_make(struct zb_staging *out, const struct zb_store *s,
		    struct zb_error *err);
/* The box of @name goes into the stage, until there is another. */
int zb_staging_put_aside(const struct zb_staging *st, const struct zb_store *s,
			 const char *name, struct zb_error *err);
/* What was put aside and has no successor goes back; the rest is deleted.
 * @name: the NAME whose lock is held, NULL: none. An empty one is fine. */
void zb_staging_end(struct zb_staging *st, const struct zb_store *s,
		    const char *name);

/* Put the mark into @box (a path): NAME consists of it and of the directory
 * @ext, which is recognised later by what it is, not by its name. @keep_box:
 * tidying up takes only @ext. */
int zb_mark(const char *box, const char *ext, bool keep_box,
	    struct zb_error *err);
bool zb_is_marked(const struct zb_store *s, const char *name);
/* Make durable what was put into place, then take the mark away. */
int zb_unmark(const struct zb_store *s, const char *name, struct zb_error *err);
/* Tidy up a NAME, whose lock is held: one that is marked, or whose update was
 * cut short (swap.h). Else nothing. */
int zb_undo_marked(const struct zb_store *s, const char *name,
		   struct zb_error *err);
/* Finish what others left: marked NAMEs, stages that nobody holds, temporary
 * files, boxes of paths that nobody runs. Called
 * first by every command that changes something; quiet, and waits for nobody.
 */
void zb_recover(const struct zb_store *s);

/* What tells the file or directory @path from another that has its name later.
 * false: it is not there. */
#define ZB_IDENTITY_MAX 64
bool zb_identity(const char *path, char out[ZB_IDENTITY_MAX]);
int zb_sync_dir(const char *dir, struct zb_error *err);

/* Delete @path: out of sight by one rename, then at leisure. */
int zb_discard(const struct zb_store *s, const char *path,
	       struct zb_error *err);
/* Replace the file @path, which lies in what belongs to an extension: unlike
 * zb_write_file_atomic() a kill leaves nothing beside it, where it would be a
 * part of the extension. */
int zb_replace_file(const struct zb_store *s, const char *path,
		    const struct zb_buf *text, unsigned mode,
		    struct zb_error *err);
/* Give back the lock of @name, held exclusively; its file goes as well if
 * NAME has no box. */
void zb_forget_lock(const struct zb_store *s, const char *name, int fd);

#endif
