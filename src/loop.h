/* loop.h - an event loop and what else of a start needs descriptors or
 * processes: where these are short, it is an error that is told. (libuv ends
 * the program by abort() when it cannot make the pipe of its own that signals
 * need, or start a thread of its pool: zotbox asks first, and has no pool.) */
#ifndef ZB_LOOP_H
#define ZB_LOOP_H

#include "error.h"

#include <pthread.h>
#include <stddef.h>
#include <uv.h>

/* Before any other thread runs. As many descriptors are allowed as this process
 * may allow itself: an extension takes some twenty, and the usual limit is
 * 1024. (What an extension itself may open is in its scope.) Return: 0, or
 * ZB_ESYS, and there is no loop: also where there is no room for a single
 * extension, as a start that fails halfway tells less. */
int zb_loop_open(uv_loop_t *loop, struct zb_error *err);

/* @cb for each of the @n signals @list; the data of the handles @v is @data.
 * Return: 0, or ZB_ESYS, and none is left: those that were made are closing.
 */
int zb_loop_signals(uv_loop_t *loop, uv_signal_t *v, const int *list, size_t n,
		    uv_signal_cb cb, void *data, struct zb_error *err);

/* Run @loop until all its handles, which the caller closed, are gone. */
void zb_loop_close(uv_loop_t *loop);

/* Like uv_poll_init(), which makes the descriptor non-blocking, and with it
 * those of the shell and of everybody who shares it: that is taken back at
 * once, a poll does not need it. Return: 0 or what libuv says: UV_EPERM, and
 * no handle, for a file, which never has to be waited for. */
int zb_loop_watch(uv_loop_t *loop, uv_poll_t *poll, int fd);

/* A thread with a small stack and all signals blocked; to be joined. Return:
 * 0 or an errno. */
int zb_loop_thread(pthread_t *out, void *(*fn)(void *ctx), void *ctx);

#endif
