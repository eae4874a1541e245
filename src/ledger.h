/* ledger.h - the denials of one extension on disk (ext-NAME.denials.jsonl)
 * and the text log (ext-NAME.log). Effects. Thread-safe: the broker's thread
 * and the loop both record.
 *
 * Append-only: one O_APPEND write a record. The first hit of a kind at once;
 * repeats are merged and written as delta counts (readers sum) every two
 * seconds and at the end. Kinds beyond a cap are folded into one record that
 * says how many. Rotation by size under flock(2), inode checked again. */
#ifndef ZB_LEDGER_H
#define ZB_LEDGER_H

#include "denial.h"

/* Kinds that are written one by one; what comes on top is counted into one
 * record an operation, which has no target. A kind takes part of the bytes of
 * its record too, so that long names do not push out what was there. */
#define ZB_LEDGER_KINDS_SESSION 1000u
#define ZB_LEDGER_KINDS_WINDOW	256u
#define ZB_LEDGER_WINDOW_MS	2000
#define ZB_LEDGER_BYTES_SESSION ((size_t)768 << 10)
/* So many of each operation, and again below HOME, are written in any case: a
 * flood of one thing must not hide the others. */
#define ZB_LEDGER_KINDS_RESERVED 32u
/* Size of ext-NAME.denials.jsonl at which repeats in it are summed up; if that
 * leaves more than half, it becomes ext-NAME.denials.jsonl.1. */
#define ZB_LEDGER_FILE_MAX ((size_t)1 << 20)
/* A session whose name starts so (doctor's own starts) is never "the last
 * session" of zb_ledger_read(). */
#define ZB_LEDGER_PROBE "probe-"

struct zb_ledger;

struct zb_ledger_config {
	const char *logs_dir; /* $ZOT_HOME/logs, made if absent (0755) */
	const char *ext;      /* extension's name (valid NAME) */
	const char *file;     /* what stands for NAME in the files' names; NULL:
				 @ext. See zb_target_log() */
	const char *session;  /* unique to this start */
	const char *home;     /* for ~ in text lines */
	uint64_t log_bytes;   /* cap of ext-NAME.log; UINT64_MAX: none */
	int log_fd;	      /* -1: open ext-NAME.log; else write there (wrap:
				 zot's descriptor 2), borrowed */
	/* Called for the first hit of each kind, in the recording thread. */
	void (*on_first)(void *ctx, const struct zb_denial *d);
	void *ctx;
};

/* Strings of @cfg are copied. ZB_EUSAGE: @ext is no NAME; ZB_ESYS: a directory
 * or file cannot be made, but a full disk is no error; ZB_ELIMIT. */
int zb_ledger_open(struct zb_ledger **out, const struct zb_ledger_config *cfg,
		   struct zb_error *err);
/* Record one refusal. Takes @d's contents (zeroed on return); fills ext,
 * session, count 1 and times if unset. Never blocks on the disk for long;
 * never fails towards the caller: trouble is counted and said in the log. */
void zb_ledger_record(struct zb_ledger *l, struct zb_denial *d);
/* Into ext-NAME.log, each line of it after "[zotbox] ", control characters
 * escaped, backslashes kept (so that escaped text may stand in it). A text
 * that starts with "starting " is the line about this start: it survives when
 * the log is cut to its limit. */
void zb_ledger_say(struct zb_ledger *l, const char *fmt, ...) ZB_PRINTF(2, 3);
/* Bytes the extension wrote to its stderr: escaped line by line; a line that
 * starts with [zotbox] or [zot] is prefixed with "| ". */
void zb_ledger_stderr(struct zb_ledger *l, const char *p, size_t n);
/* First lines of the extension's stderr, for start errors: appends up to
 * @lines that are not empty, escaped, with \n between them. */
int zb_ledger_stderr_head(struct zb_ledger *l, unsigned lines,
			  struct zb_buf *out);
/* Write what is pending (called by a timer about every two seconds). */
void zb_ledger_flush(struct zb_ledger *l);
/* Totals of this session by op, "3 fs.read, 1 net.connect"; "" if none. */
int zb_ledger_summary(struct zb_ledger *l, struct zb_buf *out);
void zb_ledger_close(struct zb_ledger *l); /* flushes; NULL is fine */

/* Reading. Records of all rotations, merged per kind (deltas summed), oldest
 * first; @since_ms 0: all, else what went on at that time or later (repeats
 * that were summed up at rotation keep their first and last time only);
 * @session NULL: all, "": only the last session, which may have none. The
 * caller does zb_denial_done() to each and frees the array. A torn line is
 * skipped. No file is as good as an empty one. */
int zb_ledger_read(const char *logs_dir, const char *ext, int64_t since_ms,
		   const char *session, struct zb_denial **out, size_t *n,
		   struct zb_error *err);

/* What the ledger no longer has. */
struct zb_ledger_past {
	int64_t oldest_ms; /* of the first record ever; 0: there was none */
	uint64_t dropped;  /* records that rotations took away */
};
int zb_ledger_past(const char *logs_dir, const char *ext,
		   struct zb_ledger_past *out, struct zb_error *err);

#endif
