/* memory.h - what a supervisor that lives as long as its extension keeps of
 * the memory that its start needed. Effects. */
#ifndef ZB_MEMORY_H
#define ZB_MEMORY_H

/* Before the first thread: one heap for all of them. Each has little to
 * allocate, and none waits long for another. */
void zb_memory_share(void);
/* A start begins, until zb_memory_settle(): what takes more than two pages is
 * mapped alone. Of a table that lives on, what is never used is no memory then;
 * what is needed for a moment leaves no hole in the heap. For lines that pass
 * it would cost too much. */
void zb_memory_begin(void);
/* Once the start is over, on the main thread, give back free heap, stack, and
 * the pages of code and constants that were needed so far. Those still needed
 * come back from the page cache by themselves, at the cost of some microseconds
 * once. */
void zb_memory_settle(void);

#endif
