/* hostfs.h - looking at the host's files by path. Effects, read-only. */
#ifndef ZB_HOSTFS_H
#define ZB_HOSTFS_H

#include "buf.h"

/* Canonical form of absolute @path, link by link, below @root ("" for the
 * real one; tests build small ones). @links (may be NULL) gets the canonical
 * place of each link met. Return: heap path without @root, or NULL with errno
 * set (ENOENT, ELOOP, ENOTDIR, EACCES). */
char *zb_host_resolve(const char *root, const char *path,
		      struct zb_strv *links);

/* Does @path exist (links followed) below @root? */
bool zb_host_exists(const char *root, const char *path);
/* An executable regular file (links followed). */
bool zb_host_is_program(const char *path);

/* Bare @name along @path, a PATH: only absolute entries count. @skip (may be
 * NULL) is a directory to leave out. Heap path as spelled, or NULL. */
char *zb_host_which(const char *name, const char *path, const char *skip);

/* First @max bytes of a regular file. Return: false with errno set. */
bool zb_host_head(const char *path, size_t max, struct zb_buf *out);

#endif
