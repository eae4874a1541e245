/* recorder.h - refusals on their way to the ledger. Effects.
 *
 * The caller has its errno before anything here happens. A thread of its own
 * asks the host what must be asked (hidden, or absent?), since the host's
 * disk may be slow, and hands over what is a denial. */
#ifndef ZB_RECORDER_H
#define ZB_RECORDER_H

#include "denial.h"
#include "evaluator.h"

/* What the host must say for a refusal to be one. */
enum zb_ask {
	ZB_ASK_NOTHING,
	ZB_ASK_EXISTS,	 /* the path leads to something */
	ZB_ASK_NAME,	 /* the name is there, be it a dangling link */
	ZB_ASK_PROGRAM,	 /* an executable file */
	ZB_ASK_WRITE,	 /* it is there and may be written */
	ZB_ASK_CREATE,	 /* its directory is there and may be changed */
	ZB_ASK_REMOVE,	 /* both: the name is there, in such a directory */
	ZB_ASK_OPEN,	 /* there: then it is fs.write; else ZB_ASK_CREATE */
	ZB_ASK_OWNER,	 /* it is the user's own */
	ZB_ASK_ABSTRACT, /* an abstract socket "@name" of the host */
};

struct zb_note {
	struct zb_note *next;
	struct zb_denial d; /* complete, but for time */
	enum zb_ask ask;
	bool is_dir;
};
void zb_note_free(struct zb_note *n);

/* Fill what the evaluator's answer says; moves its strings into @d. */
void zb_note_answer(struct zb_denial *d, struct zb_answer *a);

struct zb_recorder_config {
	const struct zb_plan *plan; /* borrowed until stop */
	void (*on_denial)(void *ctx, struct zb_denial *d);
	void *ctx;
};

struct zb_recorder;

/* Return: 0, ZB_ELIMIT or ZB_ESYS. The caller starts the thread:
 * zb_recorder_run(). */
int zb_recorder_new(struct zb_recorder **out,
		    const struct zb_recorder_config *cfg, struct zb_error *err);
/* The body of the thread: returns after zb_recorder_finish() and the last
 * note. Call it once. */
void zb_recorder_run(struct zb_recorder *r);
/* Takes @n. When notes come faster than they can be looked at, waits a
 * moment; then counts it into one record that says how many were folded. */
void zb_recorder_add(struct zb_recorder *r, struct zb_note *n);
/* No more notes will come. */
void zb_recorder_finish(struct zb_recorder *r);
/* From the return on, neither plan nor callback is used any more, also by a
 * thread that still waits for the host's disk. */
void zb_recorder_mute(struct zb_recorder *r);
void zb_recorder_free(struct zb_recorder *r);

#endif
