/* extlog.h - ext-NAME.log: what the extension writes to its standard error,
 * and our own lines. Effects. Not thread-safe: ledger.c has the lock.
 *
 * The file is UTF-8 and free of control characters but \n and \t, whatever
 * the extension writes. Lines of ours start with "[zotbox] "; no line of the
 * extension does. */
#ifndef ZB_EXTLOG_H
#define ZB_EXTLOG_H

#include "buf.h"

#include <stdint.h>

struct zb_extlog {
	int fd;
	bool own;	/* fd is ours to close */
	bool regular;	/* a file, so there is something to limit */
	char *path;	/* of ext-NAME.log */
	uint64_t limit; /* UINT64_MAX: none */
	uint64_t dropped;
	uint64_t header; /* bytes that the last cut put in front */
	bool stopped;	 /* over the limit and it cannot be cut */
	uint64_t lost;	 /* bytes that could not be written */
	int lost_errno;
	struct zb_buf start;   /* our line about this start */
	struct zb_buf partial; /* the extension's line so far */
	bool stale;	       /* it waits since the last tick */
	struct zb_buf head;    /* first bytes of its standard error */
};

/* Trouble of the disk that may pass, and must not stop an extension. */
bool zb_disk_is_full(int sys);

/* Open @path (0644, made if absent), or write to @borrowed (not -1), which is
 * thought to be open on it. Takes @path (heap). A full disk is no error: what
 * cannot be written is counted, and said later. */
int zb_extlog_open(struct zb_extlog *l, char *path, int borrowed,
		   uint64_t limit, struct zb_error *err);
/* Lines of ours, without newline at the end: each gets "[zotbox] " in front
 * and its control characters escaped (backslashes stay). */
void zb_extlog_ours(struct zb_extlog *l, const char *s, size_t n);
/* Bytes of the extension. */
void zb_extlog_theirs(struct zb_extlog *l, const char *p, size_t n);
/* About every two seconds: an unfinished line is not kept for ever; a file
 * that somebody removed is made anew. */
void zb_extlog_tick(struct zb_extlog *l);
/* See zb_ledger_stderr_head(). */
int zb_extlog_head(const struct zb_extlog *l, unsigned lines,
		   struct zb_buf *out);
void zb_extlog_close(struct zb_extlog *l);

#endif
