/* extension.h - one running extension on a libuv loop: sandbox + pipes +
 * mediator + ledger. wrap, console and doctor differ only in what
 * stands behind the callbacks. Effects; main thread only.
 *
 * Back-pressure both ways: zb_extension_pause() stops reading stdout; bytes to
 * a full stdin are queued up to a bound, then zb_extension_send() says so. */
#ifndef ZB_EXTENSION_H
#define ZB_EXTENSION_H

#include "ledger.h"
#include "mediator.h"
#include "prepare.h"

#include <uv.h>

struct zb_extension;

/* None may be NULL but @say, @denied and @drained. Any of them may call any
 * function below; zb_extension_free() takes effect after it returned. */
struct zb_extension_ops {
	/* A line that may go to the agent's side (no \n; line[len] can be
	 * read, and often is the \n that it had). @info says what the
	 * extension's line was; NULL for a line that the mediator itself has
	 * to say (an error result in place of a refused reply). */
	void (*frame)(void *ctx, struct zb_extension *e, const char *line,
		      size_t len, const struct zb_med_out *info);
	/* A refusal, first of its kind, on the loop's thread. */
	void (*denied)(void *ctx, struct zb_extension *e,
		       const struct zb_denial *d);
	/* A line for the user (notices, warnings); it is in the log already. */
	void (*say)(void *ctx, struct zb_extension *e, const char *text);
	/* First process ended (@exit) and stdout is closed everywhere, or the
	 * extension was killed. @reason is a clause for people: "exited with
	 * status 3 before hello", "sent no hello within 30 s", what was given
	 * to zb_extension_stop(). Everything is gone by then. Last callback;
	 * free it from here or later. */
	void (*ended)(void *ctx, struct zb_extension *e,
		      const struct zb_exit *exit, const char *reason);
	/* stdin drained after zb_extension_send() returned ZB_ELIMIT. */
	void (*drained)(void *ctx, struct zb_extension *e);
};

#define ZB_STDIN_BOUND ((size_t)1 << 20)

struct zb_extension_config {
	uv_loop_t *loop;
	const struct zb_backend *backend;
	const struct zb_host *host;
	const struct zb_store *store;
	struct zb_prepared *prepared; /* contents taken on success */
	const struct zb_extension_ops *ops;
	void *ctx;
	int log_fd;	     /* see ledger.h */
	size_t stdin_bound;  /* queued bytes to a deaf extension; 0:
				ZB_STDIN_BOUND. One frame always fits. */
	const char *session; /* prefix of the session's name, or NULL */
};

/* Start it. A hello that does not come within limits.hello_seconds ends it.
 * The ledger gets its `env` record, the user the plan's notices.
 * Return: 0; or what prevented it, with nothing running. */
int zb_extension_start(struct zb_extension **out,
		       const struct zb_extension_config *cfg,
		       struct zb_error *err);
/* A host-side line for the extension (no \n, but line[len] must be readable:
 * it may be one): mediated, then queued.
 * Return: 0 (also when the mediator withheld it); ZB_ELIMIT when the bound is
 * reached (and until drained()), ZB_ESYS when its stdin is closed: nothing was
 * queued. */
int zb_extension_send(struct zb_extension *e, const char *line, size_t len);
/* The loop's time when something was last read from its stdout, be it part of
 * a line; 0: nothing yet. */
uint64_t zb_extension_heard(const struct zb_extension *e);
/* Bytes that wait for the extension to read them. */
size_t zb_extension_queued(const struct zb_extension *e);
/* Stop / go on reading its stdout (downstream is full). */
void zb_extension_pause(struct zb_extension *e, bool paused);
/* Close its stdin after what is queued. */
void zb_extension_close_stdin(struct zb_extension *e);
/* End the whole sandbox now; ended() follows. */
void zb_extension_stop(struct zb_extension *e, const char *reason);
/* Send a signal to the first process. ZB_ESYS if that cannot be done. */
int zb_extension_signal(struct zb_extension *e, int signo,
			struct zb_error *err);
/* The caller gave up on call @id: see zb_mediator_expire(). */
void zb_extension_expire(struct zb_extension *e, const char *id);
/* One line to the log and to the user. */
void zb_extension_tell(struct zb_extension *e, const char *fmt, ...)
	ZB_PRINTF(2, 3);

/* What belongs to it, for as long as it does. */
struct zb_mediator *zb_extension_mediator(struct zb_extension *e);
struct zb_ledger *zb_extension_ledger(struct zb_extension *e);
const struct zb_prepared *zb_extension_prepared(const struct zb_extension *e);
const char *zb_extension_session(const struct zb_extension *e);
/* Was it ended because of what it wrote? Then the reason is a sentence of its
 * own ("first stdout line is not a hello frame..."), else its predicate. */
bool zb_extension_broke_protocol(const struct zb_extension *e);
/* Has the first process ended (while others may still write)? */
bool zb_extension_exited(struct zb_extension *e);
/* Host pid of its first process, for people; 0 unknown. */
int zb_extension_pid(const struct zb_extension *e);
/* Ends it if it still runs (then without ended()). NULL is fine. The memory
 * goes when the loop has run its close callbacks. */
void zb_extension_free(struct zb_extension *e);

#endif
