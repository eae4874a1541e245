/* store.h - where things are kept under $ZOT_HOME, and safe writes. Effects.
 *
 *	extensions/NAME/           files; extension.json is the wrapped one
 *	zotbox/NAME/manifest.json  as shipped       scope.json  lock.json
 *	zotbox/NAME/granted.json   where the names in scope.json led
 *	zotbox/NAME/data/  home/   private directories
 *	zotbox/@HASH/              the same for an extension at a path
 *	zotbox/.stage-*            installs under way
 *	logs/ext-NAME.log  ext-NAME.denials.jsonl */
#ifndef ZB_STORE_H
#define ZB_STORE_H

#include "buf.h"
#include "manifest.h"

/* All heap strings. @home as the environment has it; @zot_home as spelled by
 * the user ($ZOT_HOME, else $XDG_STATE_HOME/zot, else ~/.local/state/zot on
 * Linux, ~/Library/Application Support/zot, %LOCALAPPDATA%\zot). */
struct zb_store {
	char *home;
	char *zot_home;
	char *zot_home_real; /* canonical, as far as it is there yet */
	char *extensions, *boxes, *logs;
};
/* Read the environment. ZB_EUSAGE if HOME or the like is unset or relative, or
 * ZOT_HOME is not UTF-8. */
int zb_store_open(struct zb_store *out, struct zb_error *err);
void zb_store_done(struct zb_store *s);

/* Heap path of a file in the box of an installed NAME: "manifest.json",
 * "scope.json", "lock.json", "data", "home"; "" for the box itself. */
char *zb_store_box(const struct zb_store *s, const char *name,
		   const char *file);
/* "@" and 16 hex digits of SHA-256 of the real path: box of a path. */
char *zb_store_path_box_name(const char *real_path);

/* Whole file as bytes, at most @max. ENOENT etc. as ZB_ESYS with .sys. */
int zb_read_file(const char *path, size_t max, struct zb_buf *out,
		 struct zb_error *err);
/* Temporary file in the same directory, fsync, rename, fsync directory. */
int zb_write_file_atomic(const char *path, const void *p, size_t n,
			 unsigned mode, struct zb_error *err);
/* mkdir -p, private (0700) where it makes one below boxes. */
int zb_make_dirs(const char *path, unsigned mode, struct zb_error *err);
/* rm -r without following links; a path that is absent is fine. */
int zb_remove_tree(const char *path, struct zb_error *err);

/* flock(2) on @path, which is made if absent and never removed. Waits at most
 * @wait_ms. ZB_EPOLICY when somebody else holds it. */
int zb_lock_file(const char *path, bool exclusive, int wait_ms, int *fd,
		 struct zb_error *err);
/* Lock per NAME (zotbox/.lock-NAME, flock): exclusive for install, update,
 * remove, allow; shared while wrap reads. Waits at most @wait_ms.
 * Return: descriptor in @fd (close to unlock); ZB_EPOLICY when busy. */
int zb_store_lock(const struct zb_store *s, const char *name, bool exclusive,
		  int wait_ms, int *fd, struct zb_error *err);

/* A file that belongs to the program: "zotbox-terminal",
 * "policies/strict.json". Of a program that runs where it was built: in that
 * build tree, and nowhere else. Otherwise in the installed directories,
 * relative to its real path (../libexec/zotbox, ../share/zotbox), then as
 * configured; never beside it. Heap; NULL if it is nowhere. No variable changes
 * this. */
char *zb_own_file(const char *name);
/* Are the program's files where it looks for them? ZB_ESYS says where they are
 * not, and what to do. */
int zb_own_check(struct zb_error *err);
/* The build tree that the program runs from; NULL: it is installed. */
const char *zb_own_tree(void);
/* Append what nobody confined may change, absolute paths as spelled: the
 * program, the names it is started by (the one it was started by now, and
 * "zotbox" and "zot" in PATH that lead to it), what it starts itself from PATH
 * (bwrap, git), with the names earlier in PATH that would be taken for one of
 * these, and each directory where its files would be looked for, be it there or
 * not; the files themselves where they are links; of a build tree all of it. 0
 * or ZB_ELIMIT. */
int zb_own_places(struct zb_strv *out);
/* What the program was started as (borrowed): argv[0]. */
void zb_own_started_as(const char *argv0);
/* Absolute, stable path of the running zotbox, for wrapped manifests. Heap. */
char *zb_own_program(void);
/* What runs is a part of the zotbox at @program (borrowed): the two above
 * answer as they would there. Before any of them. */
void zb_own_program_is(const char *program);

/* Policies: text of "strict", "standard", "observe" or of a runtime fragment
 * "runtimes/python.json". Searched in the installed data directory. */
int zb_policy_text(const char *name, struct zb_buf *out, struct zb_error *err);

#endif
