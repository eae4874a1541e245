/* measure.h - the memory of a sandbox measured exactly, on a thread of its own:
 * the kernel reads a process's mappings under a lock that the process can hold
 * as long as it likes. Whoever waits here waits a bounded time. */
#ifndef ZB_MEASURE_H
#define ZB_MEASURE_H

#include "error.h"

#include <stdbool.h>
#include <stdint.h>

#define ZB_MEASURE_TMPFS 3

struct zb_measure;

/* @proc and @tmpfs (O_PATH, or -1) are borrowed until zb_measure_free().
 * @limit: near it more is looked at. Return: 0 or ZB_ELIMIT. */
int zb_measure_new(struct zb_measure **out, int proc,
		   const int tmpfs[ZB_MEASURE_TMPFS], uint64_t limit,
		   struct zb_error *err);
/* The sandbox must be dead: what holds the thread up is gone then. */
void zb_measure_free(struct zb_measure *m);

/* Measure now, or go on waiting for what was begun, at most @wait_ms. Return:
 * true and *@bytes; false, and *@since_ms how long it has taken so far. */
bool zb_measure_take(struct zb_measure *m, int wait_ms, uint64_t *bytes,
		     int64_t *since_ms);

/* Bytes in the tmpfs mounts. */
uint64_t zb_measure_tmpfs(const int tmpfs[ZB_MEASURE_TMPFS]);

#endif
