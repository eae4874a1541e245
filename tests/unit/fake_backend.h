/* fake_backend.h - a backend in memory: the "extension" is a function that
 * runs on a thread with the child's ends of real pipes. No sandbox, no root,
 * no process. */
#ifndef FAKE_BACKEND_H
#define FAKE_BACKEND_H

#include "backend.h"

struct fake;

/* What plays the extension called @name. Its return value is the exit status;
 * 256 + N: it dies of signal N. */
typedef int fake_main(struct fake *f);
void fake_program(const char *name, fake_main *program);
void fake_forget(void);

/* For use in programs. The next line of stdin (valid until the next call), or
 * NULL at its end and when the backend's stop() was called. */
const char *fake_read(struct fake *f);
/* Lines to stdout: text and a newline; bytes as they are. */
void fake_say(struct fake *f, const char *fmt, ...) ZB_PRINTF(2, 3);
void fake_write(struct fake *f, const void *p, size_t n);
void fake_stderr(struct fake *f, const char *text);
void fake_close_stdin(struct fake *f);
void fake_close_stdout(struct fake *f);
/* The first process ends now; the program goes on as a child of it. */
void fake_exit_early(struct fake *f, int status);
/* Sleep, cut short by stop(). Return: false if it was. */
bool fake_sleep(struct fake *f, unsigned ms);
void fake_deny(struct fake *f, enum zb_op op, const char *target);
/* Value of string member @key of the last line read: heap. */
char *fake_member(struct fake *f, const char *key);
/* hello, then wait for hello_ack. Return: false at the end of stdin. */
bool fake_hello(struct fake *f, const char *name);
/* Answer shutdown, ignore the rest, until the end. */
int fake_serve(struct fake *f);

/* How many were started, and how many were not reaped. */
unsigned fake_started(void), fake_alive(void);
/* Signals that the last one was sent. */
int fake_last_signal(void);

extern const struct zb_backend fake_backend;

#endif
