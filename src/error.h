/* error.h - one error value for the whole project: filled by whoever fails,
 * carried up unchanged, shown once by a command.
 *
 * No heap and no pointers, so that it can be filled after fork(2) and when
 * memory is short, and sent through a pipe as bytes (zotbox-stage does). */
#ifndef ZB_ERROR_H
#define ZB_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* What kind of failure it is. zb_exit_code() maps each to the exit code that
 * people and scripts see. */
enum zb_code {
	ZB_OK = 0,
	ZB_ESYS = -1,	      /* the system refused or failed: exit 1 */
	ZB_EUSAGE = -2,	      /* wrong use or malformed input: exit 2 */
	ZB_EPOLICY = -3,      /* refused by policy or a safety check: exit 3 */
	ZB_EUNSUPPORTED = -4, /* this host cannot enforce it: exit 4 */
	ZB_EPROTO = -5,	      /* an extension broke the protocol: exit 1 */
	ZB_ELIMIT = -6,	      /* a stated limit was reached: exit 1 */
};

#define ZB_ERROR_MAX 2048

/* Owned by the caller; zero-initialise it. @sys is the errno of a ZB_ESYS
 * failure, else 0. @msg is one or more lines of UTF-8, NUL-terminated, cut at
 * ZB_ERROR_MAX: what was tried, on what, why it failed, what to do. */
struct zb_error {
	enum zb_code code;
	int sys;
	char msg[ZB_ERROR_MAX];
};

/* For what failed to start a process or a thread; also memory may be why. */
#define ZB_PROCESSES_HINT " (ulimit -u allows more at a time)"

#define ZB_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Fill @err (may be NULL) with @code and a message. Return: @code, so that
 * `return zb_fail(err, ZB_EUSAGE, ...)` reads well. */
int zb_fail(struct zb_error *err, enum zb_code code, const char *fmt, ...)
	ZB_PRINTF(3, 4);

/* Like zb_fail() with ZB_ESYS, for a failed system call: appends ": " and the
 * text of @sys (an errno value, positive), and what to do where the host's
 * limit of something is what it means. Return: ZB_ESYS. */
int zb_fail_sys(struct zb_error *err, int sys, const char *fmt, ...)
	ZB_PRINTF(3, 4);

/* Is @sys of a failed start about something that is used up for now
 * (descriptors, processes, memory, the size of a file)? Such a failure says
 * nothing about what this host can do. */
bool zb_is_short(int sys);

/* Put "CONTEXT: " before the message that @err already holds; its code stays.
 * Return: the code. */
int zb_wrap(struct zb_error *err, const char *fmt, ...) ZB_PRINTF(2, 3);

/* The process exit code for @code: 0 ok, 1 failed at run time, 2 usage or
 * malformed input, 3 refused by policy, 4 host cannot build the sandbox. */
int zb_exit_code(enum zb_code code);

#endif
