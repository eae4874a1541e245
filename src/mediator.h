/* mediator.h - the protocol boundary of one extension, as a pure machine:
 * a line in, a verdict out. No process, no clock (the caller gives the time),
 * no file. proto.h has the table of frames; this has the state.
 *
 * Frames that pass keep their original bytes; a field that may not pass is
 * cut out by splicing; text for people is cleaned in place. Lines in and out
 * have no newline. A verdict of DROP is what everything else falls back to,
 * also when memory is short. */
#ifndef ZB_MEDIATOR_H
#define ZB_MEDIATOR_H

#include "denial.h"
#include "plan.h"

enum zb_med_verdict {
	ZB_MED_PASS,  /* forward the original line */
	ZB_MED_CUT,   /* forward @bytes instead */
	ZB_MED_DROP,  /* forward nothing (and answer nothing) */
	ZB_MED_REPLY, /* forward nothing; send @bytes back to where it came from
		       */
	ZB_MED_KILL,  /* the extension cannot go on (e.g. no hello first) */
};

/* What the line was, for the owner's own state (console, host, wrap). */
struct zb_med_out {
	enum zb_med_verdict verdict;
	struct zb_buf bytes; /* CUT, REPLY: one line without \n */
	/* Besides, whatever the verdict (it is DROP then): one line for the
	 * host, which waits for an answer that was refused. An error result, a
	 * noop with an error, an allow (or, by protocol.on_failure, a block).
	 * The call is closed. Empty: nothing. */
	struct zb_buf also_upstream;
	char type[40];		   /* frame type, "" if unknown */
	char id[128];		   /* its id, if it has one that fits */
	struct zb_denial *denials; /* to the ledger; ext/session not filled */
	size_t n_denials;
	/* Lines for ext-NAME.log and the user, without prefix. A refusal that
	 * no grant would lift has one, at least the first of its kind. */
	struct zb_strv log;
	/* Events: it passed as the one hello, the first ready, a shutdown_ack;
	 * a call of the host was answered by it (or in its place). */
	bool is_hello, is_ready, is_shutdown_ack, is_reply;
	bool malformed; /* not a frame at all */
	/* For KILL: the reason, one line ("first stdout line is not a hello
	 * frame: ..."). */
	char reason[512];
};
void zb_med_out_done(struct zb_med_out *o);
void zb_med_out_clear(struct zb_med_out *o); /* for reuse */

struct zb_mediator;

struct zb_mediator_config {
	const struct zb_plan *plan; /* borrowed, outlives the mediator */
	const char *data_dir;	    /* for hello_ack; NULL: leave as is */
	const char *extension_dir;  /* likewise */
	/* Lower-cased built-in tool names are known; more may be given. */
	const struct zb_strv *builtin_tools;
};

/* @cfg is copied, @cfg->plan borrowed. Return: 0 or ZB_ELIMIT. */
int zb_mediator_new(struct zb_mediator **out,
		    const struct zb_mediator_config *cfg, struct zb_error *err);
void zb_mediator_free(struct zb_mediator *m);

/* A line the extension wrote (no \n). @now_ms: monotonic milliseconds.
 * Return: 0 with @out filled, ZB_ELIMIT when out of memory. */
int zb_mediator_from_ext(struct zb_mediator *m, int64_t now_ms,
			 const char *line, size_t len, struct zb_med_out *out);
/* An over-long line of the extension: @head holds its first bytes, @total its
 * length. A reply's id is still found: the call gets an error result. */
int zb_mediator_too_long(struct zb_mediator *m, int64_t now_ms,
			 const char *head, size_t len, uint64_t total,
			 struct zb_med_out *out);
/* A line the host wrote. PASS, CUT (the directories in hello_ack, the content
 * of events), DROP (an event that is not granted, no frame at all), or REPLY: a
 * question that is not granted, or one too many, is answered to the host. */
int zb_mediator_from_host(struct zb_mediator *m, int64_t now_ms,
			  const char *line, size_t len, struct zb_med_out *out);
/* Milliseconds for which the owner must not read from the extension (frame
 * rate), 0: read on. */
int64_t zb_mediator_hold_ms(struct zb_mediator *m, int64_t now_ms);
/* The caller gave up on @id (its own timeout, or it answered in the
 * extension's place): a late reply is dropped and logged with how late it was.
 */
void zb_mediator_expire(struct zb_mediator *m, int64_t now_ms, const char *id);
/* A call of the host that is still open. @type: the frame that asked
 * ("tool_call"...); @name: tool or command, "" if none; @event: of an
 * intercept, else "". */
struct zb_med_call {
	const char *id, *type, *name, *event;
	int64_t opened_ms;
};
/* The @i-th, oldest first; false if there are fewer. Strings are borrowed
 * until the mediator is used again. */
bool zb_mediator_open_call(const struct zb_mediator *m, size_t i,
			   struct zb_med_call *out);
/* Is a panel of the extension open? tool_seconds does not run then. */
bool zb_mediator_panel_open(const struct zb_mediator *m);
/* What the extension's subscriptions came to, after cutting: event names. */
const struct zb_strv *zb_mediator_events(const struct zb_mediator *m);
const struct zb_strv *zb_mediator_intercepts(const struct zb_mediator *m);
/* Registrations that passed: names, in order (for doctor and console). */
const struct zb_strv *zb_mediator_commands(const struct zb_mediator *m);
const struct zb_strv *zb_mediator_tools(const struct zb_mediator *m);

#endif
