/* jail.h - where a path of the sandbox leads. Effects.
 *
 * The quick way is one openat2(2) from the sandbox's own / that stays in it
 * and follows no magic link; what it found is known by its mount. The walk is
 * the slow way, for paths that lead nowhere: component by component, so that
 * a record can name what was meant. Neither depends on memory that the
 * sandbox can still change. */
#ifndef ZB_JAIL_H
#define ZB_JAIL_H

#include "plan.h"

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

/* One of its mounts. What is said of the place holds a copy: nothing here
 * needs the plan any more. */
struct zb_jail_mount {
	uint64_t id;
	int place;  /* -1: several, told apart by path */
	char *path; /* of the place */
	bool carved;
	bool folds;   /* carved, and a name may have several spellings */
	bool uniform; /* the answer is the same for all that exists in it, but
			 for the execution of a zb_jail_file */
	bool steady;  /* uniform, a directory, and not to be changed inside */
};

/* A file that is a place of its own on the mount around it (plan.h: shown). */
struct zb_jail_file {
	uint64_t mnt, dev, ino;
	int place;
};

struct zb_jail {
	int root; /* O_PATH of the sandbox's / */
	struct zb_jail_mount *mounts;
	size_t n_mounts;
	struct zb_jail_file *files; /* few */
	size_t n_files;
	uint64_t proc_dev; /* device of its /proc, 0: it has none */
	bool slow; /* some place lies on a network or user-space file system:
		      looking at a path may block */
};

/* Takes @root, also on failure; @plan is looked at only now. */
int zb_jail_init(struct zb_jail *j, const struct zb_plan *plan, int root,
		 struct zb_error *err);
void zb_jail_done(struct zb_jail *j);
/* The mount with @id, or NULL. */
const struct zb_jail_mount *zb_jail_mount(const struct zb_jail *j, uint64_t id);
/* Place whose mount has @id, or -1. */
int zb_jail_place(const struct zb_jail *j, uint64_t id);
/* Does the carved place on mount @id know several spellings of a name? */
bool zb_jail_folds(const struct zb_jail *j, uint64_t id);
/* openat2(2) with O_PATH. Return: a descriptor or a negative errno. */
int zb_jail_open(int dir, const char *path, uint64_t flags, uint64_t resolve);

/* Make @asked absolute: put the path of @dirfd (a descriptor of thread @tid,
 * AT_FDCWD) before a relative one. "." and ".." stay for the kernel. A
 * directory that was moved or removed meanwhile is -ENOENT.
 * Return: 0 or a negative errno; @out has room for PATH_MAX. */
int zb_spell(const struct zb_jail *j, int tid, int dirfd, const char *asked,
	     char *out);

/* An object inside. */
struct zb_spot {
	int fd;	 /* O_PATH; -1: not there, @err says why */
	int err; /* errno, positive */
	mode_t mode;
	uint64_t mnt, dev, ino;
	int place;	     /* by mount and file, or -1 */
	bool proc;	     /* on the sandbox's /proc: left to the kernel */
	char path[PATH_MAX]; /* canonical, after zb_spot_name(); "" before, if
				not known by then */
};

/* Absolute, and no ".", "..", "//" or slash at the end; not "/". */
bool zb_is_plain(const char *path);
/* Resolve absolute @path. Always fills @out; its path only if that took no
 * look: also that of what is not there, when no link was on the way. */
void zb_find(const struct zb_jail *j, const char *path, bool follow,
	     struct zb_spot *out);
/* Fill @f from an O_PATH or other descriptor; takes @fd. */
void zb_spot_fd(const struct zb_jail *j, int fd, struct zb_spot *f);
/* Set @f->path to its name now. Return: 0, -ENOENT if it has none any more,
 * -EACCES if that is no name that patterns can judge: not where its place
 * should be, or not as on disk. */
int zb_spot_name(const struct zb_jail *j, struct zb_spot *f);
void zb_spot_done(struct zb_spot *f);
/* Do both hold the same object, in the same mount? */
bool zb_spot_same(const struct zb_spot *a, const struct zb_spot *b);
/* "/proc/self/fd/N" of @fd, for calls that take no descriptor. */
#define ZB_FD_LINK 32
void zb_fd_link(int fd, char out[ZB_FD_LINK]);

/* A walk: every link is followed, in the end also the last if @follow. */
struct zb_jail_walk {
	char path[PATH_MAX]; /* canonical, as far as it exists, and the rest;
				with @proc the rest is as it was spelled, but
				for repeated slashes */
	int dir; /* O_PATH of what holds the last name, or would; -1: not
		    there either */
	char name[NAME_MAX + 1];
	bool exists;
	bool proc; /* leads into a /proc: only the caller could follow */
	int err;   /* why it ended: ENOENT, ENOTDIR, EACCES, ELOOP... or 0 */
};

/* Walk absolute @path in the sandbox's root. Always fills @out, whose @dir
 * zb_jail_walk_done() closes. */
void zb_jail_walk(const struct zb_jail *j, const char *path, bool follow,
		  struct zb_jail_walk *out);
void zb_jail_walk_done(struct zb_jail_walk *w);
/* The same on the host, from descriptor @root of its /. Nothing is ever asked
 * of an automounter: a name of the sandbox's choice would reach its server. */
void zb_host_walk(int root, const char *path, bool follow,
		  struct zb_jail_walk *out);

#endif
