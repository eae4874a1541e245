/* extension.h - one running extension on a libuv loop: sandbox + pipes +
 * mediator + ledger. wrap, console, doctor (and host) differ only in what
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

struct zb_extension_ops {
	/* A line that may go to the agent's side (no \n). */
	void (*frame)(void *ctx, struct zb_extension *e, const char *line,
		      size_t len, const struct zb_med_out *info);
	/* A refusal, first of its kind, on the loop's thread. */
	void (*denied)(void *ctx, struct zb_extension *e,
		       const struct zb_denial *d);
	/* A line for the user (start errors, warnings). */
	void (*say)(void *ctx, struct zb_extension *e, const char *text);
	/* First process ended (@exit) and stdout is closed everywhere, or the
	 * extension was killed (@reason says why: protocol, limit, stop). Last
	 * callback; free it from here or later. */
	void (*ended)(void *ctx, struct zb_extension *e,
		      const struct zb_exit *exit, const char *reason);
	/* stdin drained after zb_extension_send() returned ZB_ELIMIT. */
	void (*drained)(void *ctx, struct zb_extension *e);
};

struct zb_extension_config {
	uv_loop_t *loop;
	const struct zb_backend *backend;
	const struct zb_host *host;
	const struct zb_store *store;
	struct zb_prepared *prepared; /* contents taken on success */
	const struct zb_extension_ops *ops;
	void *ctx;
	int log_fd;	    /* see ledger.h */
	size_t stdin_bound; /* queued bytes to a deaf extension */
};

int zb_extension_start(struct zb_extension **out,
		       const struct zb_extension_config *cfg,
		       struct zb_error *err);
/* A host-side line for the extension (no \n): mediated, then queued.
 * Return: 0; ZB_ELIMIT when the bound is reached (nothing queued). */
int zb_extension_send(struct zb_extension *e, const char *line, size_t len);
/* Stop / go on reading its stdout (downstream is full). */
void zb_extension_pause(struct zb_extension *e, bool paused);
/* Close its stdin after what is queued. */
void zb_extension_close_stdin(struct zb_extension *e);
/* End the whole sandbox now; ended() follows. */
void zb_extension_stop(struct zb_extension *e, const char *reason);
int zb_extension_signal(struct zb_extension *e, int signo,
			struct zb_error *err);
struct zb_mediator *zb_extension_mediator(struct zb_extension *e);
struct zb_ledger *zb_extension_ledger(struct zb_extension *e);
const struct zb_prepared *zb_extension_prepared(const struct zb_extension *e);
int zb_extension_pid(const struct zb_extension *e);
void zb_extension_free(struct zb_extension *e);

#endif
