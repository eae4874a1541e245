/* peer.h - reading the process that waits for an answer. Effects.
 *
 * A peer is named by the thread id of its notification. Everything read may
 * change the moment after, and the number may belong to somebody else by
 * then: act only on copies, and only after zb_notify_valid(). Failures are
 * negative errnos, as the kernel would have given for the same argument. */
#ifndef ZB_PEER_H
#define ZB_PEER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Exactly @n bytes at @addr. -EFAULT if not all can be read, -EPERM for a
 * process whose memory nobody may read. */
int zb_peer_read(int tid, uint64_t addr, void *out, size_t n);
/* A NUL-terminated string of less than @cap bytes. Return: its length;
 * -ENAMETOOLONG without a NUL. */
int zb_peer_string(int tid, uint64_t addr, char *out, size_t cap);

/* A handle to write into its memory by. Opened before zb_notify_valid() said
 * yes, it is that of the process which waits, whatever its number is by the
 * time of the write. Initialise to ZB_PEER_MEMORY; zb_peer_memory_done() is
 * fine then, whatever came of it. Return: 0, or a negative errno. */
struct zb_peer_memory {
	int mem;
	FILE *maps;
};
#define ZB_PEER_MEMORY ((struct zb_peer_memory){.mem = -1})
int zb_peer_memory(struct zb_peer_memory *out, int tid);
void zb_peer_memory_done(struct zb_peer_memory *m);
/* As the kernel would write there for the process: where it may not write
 * itself, nothing is. Once a handle. Return: 0, or -EFAULT if not all could be
 * written. */
int zb_peer_write(const struct zb_peer_memory *m, uint64_t addr, const void *p,
		  size_t n);

/* A duplicate of its descriptor @fd, or -EBADF. */
int zb_peer_fd(int tid, int fd);
/* Path inside of the program it runs; "" if unknown. */
void zb_peer_exe(int tid, char *out, size_t cap);

/* The process that @tid is a thread of; @tid itself if it has gone. */
int zb_peer_process(int tid);

struct zb_peer_status {
	int tgid;
	int inside; /* @tgid as it is known there; 0: not to be had */
	mode_t umask;
};
/* From /proc. Return: 0, or -ESRCH. */
int zb_peer_status(int tid, struct zb_peer_status *out);

#endif
