/* members.h - the processes of a sandbox, as its own /proc lists them. Nothing
 * here waits for one of them: no lock of their memory is taken. */
#ifndef ZB_MEMBERS_H
#define ZB_MEMBERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ZB_SEAT_MAX 64 /* "PID" or "PID/task/TID" */

/* Visit each member but process 1, which is ours. @visit gets the name of its
 * directory in @proc. Return: how many there are. */
uint64_t zb_members_each(int proc,
			 void (*visit)(int proc, const char *pid, void *ctx),
			 void *ctx);
/* How many threads @pid has: at least one. */
uint64_t zb_member_threads(int proc, const char *pid);
/* Where @pid's memory is listed: at itself, or, when its first thread has
 * ended, at a thread that goes on. Return: its resident bytes; 0: it has no
 * memory (any more). */
uint64_t zb_member_seat(int proc, const char *pid, uint64_t threads,
			char seat[ZB_SEAT_MAX]);
/* Read the beginning of SEAT/@file, NUL-ended. Return: bytes, or -1. */
ssize_t zb_member_read(int proc, const char *seat, const char *file, char *buf,
		       size_t room);

#endif
