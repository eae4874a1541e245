/* box.h - a sandbox for tests of the Linux floor: a plan made by hand, the
 * real backend, and probe (probe.c) running inside. */
#ifndef ZB_TEST_BOX_H
#define ZB_TEST_BOX_H

#include "backend.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

/* TAP */
void tap_ok(bool ok, const char *fmt, ...) ZB_PRINTF(2, 3);
void tap_note(const char *fmt, ...) ZB_PRINTF(1, 2);
/* Prints the plan line. Return: exit status. */
int tap_done(void);
/* One line for a program whose tests cannot run here; ends it. With
 * ZOTBOX_MUST_SANDBOX that is a failure. */
_Noreturn void tap_skip_all(const char *why);

struct box {
	struct zb_plan plan;
	struct zb_host host;
	struct zb_proc *proc;
	FILE *in, *out; /* of probe */
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct zb_denial *denials;
	size_t n, cap;
};

/* A throw-away directory below /var/tmp, removed at exit. */
const char *box_dir(void);
/* Text, and "DIR/name": valid for the next 255 calls. */
const char *box_text(const char *fmt, ...) ZB_PRINTF(1, 2);
const char *box_path(const char *name);
void box_file(const char *path, const char *text, int mode);

/* A plan with system, /proc, /dev, /tmp, HOME (box_dir()/home, private
 * private_home), data, ext. */
void box_plan(struct box *b);
struct zb_place *box_place(struct box *b, enum zb_place_kind kind,
			   const char *path, const char *source,
			   unsigned rights, bool is_dir);
void box_deny(struct box *b, const char *pattern);
/* Sort places, then mark what is brokered; start probe. */
void box_start(struct box *b);
void box_stop(struct box *b);

#define BOX_READ ((unsigned)(ZB_MAY_READ | ZB_MAY_LIST))
#define BOX_CODE (BOX_READ | (unsigned)ZB_MAY_EXEC)
#define BOX_ALL	 (BOX_CODE | (unsigned)(ZB_MAY_WRITE | ZB_MAY_CREATE))

/* Tell probe a line. Return: the first number of its answer, the second in
 * *@err, the rest of the line in @rest (may be NULL, 256 bytes). */
long box_tell(struct box *b, int *err, char *rest, const char *fmt, ...)
	ZB_PRINTF(4, 5);

/* Forget the denials so far (waits until those under way are in). */
void box_forget(struct box *b);
/* How many denials of @op have @target for their target (NULL: any)? Waits a
 * bounded time for the first. */
unsigned box_denied(struct box *b, enum zb_op op, const char *target);
/* Copy of the newest such denial's pointer; valid until box_forget(). */
const struct zb_denial *box_last(struct box *b, enum zb_op op,
				 const char *target);
/* Total now, after a pause long enough for the recorder. */
size_t box_total(struct box *b);

#endif
