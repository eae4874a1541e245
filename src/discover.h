/* discover.h - which extensions zot would find, and what is true of each.
 * Effects. Nothing is skipped: every entry of the two directories is a row,
 * with its problem if it has one. */
#ifndef ZB_DISCOVER_H
#define ZB_DISCOVER_H

#include "manifest.h"
#include "store.h"

enum zb_found_scope {
	ZB_FOUND_PROJECT,
	ZB_FOUND_GLOBAL,
	ZB_FOUND_PATH
};

/* One directory entry. Strings are heap. */
struct zb_found {
	enum zb_found_scope scope;
	char *name; /* the manifest's; the directory's if there is none */
	char *dir;  /* as spelled */
	char *link; /* the entry is a symbolic link: its text; else NULL */
	struct zb_manifest manifest; /* as installed; zeroed if @problem */
	bool has_manifest;
	bool theme_only;
	/* exec is this zotbox, args wrap NAME, and `wrap` takes it for the one
	 * that was installed: runs confined, or not at all. */
	bool wrapped;
	bool shadowed; /* one of a higher precedence has the same name */
	/* "strict", "strict+scope", "unconfined"; "-": starts nothing */
	char *policy;
	char *problem; /* in zot's words where zot has some; else NULL */
	/* A project's that starts in no zotbox, because it is not trusted as it
	 * is (trust.h): why, and what to do. Else NULL. */
	char *untrusted;
	bool changed; /* it was trusted, or installed, as something else */
};

struct zb_found_list {
	struct zb_found *v;
	size_t n, cap;
};

/* Project-local ones below @cwd (NULL: none), then the global ones, each in
 * byte order of the directory names. A missing directory is an empty one. */
int zb_discover(struct zb_found_list *out, const struct zb_store *store,
		const char *cwd, struct zb_error *err);
/* The entry @dir of extensions/, which may hold another NAME. */
int zb_discover_one(struct zb_found *out, const struct zb_store *store,
		    const char *dir, struct zb_error *err);
/* The one at @path, wherever that is. ZB_ELIMIT. */
int zb_discover_path(struct zb_found *out, const struct zb_store *store,
		     const char *path, struct zb_error *err);
/* Compare the files of an installed one with what was installed: reads them
 * all, so only for who shows it. Another content, or a lock that cannot be
 * read, is its problem: it does not start. */
void zb_found_compare(struct zb_found *f, const struct zb_store *store);
void zb_found_clear(struct zb_found *f);
void zb_found_list_done(struct zb_found_list *l);

/* The global extension called @name: by the manifest's name, else by the
 * directory's. ZB_EPOLICY if there is none ("no extension "x" is
 * installed..."), ZB_EUSAGE if @name breaks the NAME rule or two match. */
int zb_discover_installed(const struct zb_found_list *l, const char *name,
			  const struct zb_found **out, struct zb_error *err);

/* The paths of those that were run by their path, are gone, and have left a
 * box: at most 100, in byte order. ZB_ELIMIT. */
int zb_discover_left(const struct zb_store *store, struct zb_strv *out);

/* Is its manifest one that an install wrote, for some zotbox, in its place? It
 * can be unwrapped, or mended if it is not this one. */
bool zb_found_is_wrapping(const struct zb_found *f);
/* "project", "global", "path". Static. */
const char *zb_found_scope_name(enum zb_found_scope s);
/* Policy in a word of the box @name: the preset that its scope rests on, and
 * "+scope" if some file says more. Heap; "unknown" if it cannot be read. */
char *zb_box_policy(const struct zb_store *store, const char *box);
/* Append one row as a JSON object without the braces: the members name scope
 * version enabled language description dir wrapped policy problem. */
int zb_found_json(const struct zb_found *f, struct zb_buf *out);

#endif
