/* ledger_file.h - ext-NAME.denials.jsonl as a file: appending, merging,
 * rotating. Effects; what ledger.c and ledger_read.c share.
 *
 * Each line is a record (zb_denial_json) or a note:
 *	{"v":1,"note":"start","session":S}
 *	{"v":1,"note":"rotated","session":LAST,"oldest":T,"dropped":N}
 */
#ifndef ZB_LEDGER_FILE_H
#define ZB_LEDGER_FILE_H

#include "ledger.h"

#include <sys/types.h>

/* Heap path of the ledger of @ext; with @suffix "" or ".1". */
char *zb_ledger_path(const char *logs_dir, const char *ext, const char *suffix);

/* Records summed per kind, in the order of their first lines. */
struct zb_ledger_sum {
	int64_t since_ms; /* skip what ended before; 0: nothing */
	struct zb_denial *v;
	size_t n, cap;
	uint32_t *index; /* hash table over v; power of two, or NULL */
	size_t index_size;
	uint64_t lines; /* records read */
	char *session;	/* the last one, NULL: none known */
	int64_t oldest_ms;
	uint64_t dropped;
};
void zb_ledger_sum_done(struct zb_ledger_sum *s);
/* Add what is in the file @path; absent is fine. */
int zb_ledger_sum_file(struct zb_ledger_sum *s, const char *path,
		       struct zb_error *err);

/* flock(2) with a little patience. Return: false: done without. */
bool zb_ledger_lock(int fd, int how);
/* Is @fd still the file @path? Its size then. */
bool zb_ledger_current(int fd, const char *path, off_t *size);

/* The open file. */
struct zb_ledger_file {
	char *path, *older;
	int fd;	   /* -1: not open now */
	bool torn; /* the last line may lack its end */
};
/* Append one line (@p ends with \n). Return: 0 or a negative errno. */
int zb_ledger_file_append(struct zb_ledger_file *f, const char *p, size_t n);
void zb_ledger_file_done(struct zb_ledger_file *f);

#endif
