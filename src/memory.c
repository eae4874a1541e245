/* memory.c - giving memory back.
 *
 * A start reads scopes, resolves a plan, hashes files: most of the code that
 * was mapped for it, of the heap and of the stack, is of no use afterwards.
 * Code is shared only with those who run the same at the same time, so a single
 * extension would pay for all of it.
 *
 * Only segments that nobody can have written to are given back: what a
 * writable one holds exists nowhere else. */
#define _GNU_SOURCE
#include "memory.h"

#include <stdlib.h> /* says whose C library it is */

#ifdef __GLIBC__
#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEGMENTS       8 /* that nobody writes; a library has three */
#define LARGE	       (128 << 10)
#define LARGE_AT_START (8 << 10)
#define SPENT	       ((uintptr_t)96 << 10)

void zb_memory_share(void)
{
	mallopt(M_ARENA_MAX, 1);
	/* What is large goes back as it is freed, however often. */
	mallopt(M_MMAP_THRESHOLD, LARGE);
	/* Free room at the end of the heap would be taken before anything is
	 * mapped alone. */
	mallopt(M_TOP_PAD, 0);
}

void zb_memory_begin(void)
{
	mallopt(M_MMAP_THRESHOLD, LARGE_AT_START);
}

/* The table that says where they are lies in one of them: read it first. */
static int give_back(struct dl_phdr_info *o, size_t size, void *ctx)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct {
		uintptr_t start, end;
	} part[SEGMENTS];
	unsigned n = 0;

	(void)size;
	(void)ctx;
	if (o->dlpi_addr == getauxval(AT_SYSINFO_EHDR))
		return 0; /* the kernel's own, no file */
	for (unsigned i = 0; i < o->dlpi_phnum && n < SEGMENTS; i++) {
		const ElfW(Phdr) *p = &o->dlpi_phdr[i];
		uintptr_t start = o->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || p->p_flags & PF_W)
			continue;
		part[n].start = (start + page - 1) & ~(page - 1);
		part[n++].end = (start + p->p_filesz) & ~(page - 1);
	}
	while (n--)
		if (part[n].start < part[n].end)
			madvise((void *)part[n].start,
				part[n].end - part[n].start, MADV_DONTNEED);
	return 0;
}

/* What lies below the present frame is of calls that have returned, and read by
 * nobody. The kernel maps more than SPENT of it with the program, and keeps
 * everything else far away. */
static void __attribute__((noinline)) give_back_stack(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t top = (uintptr_t)__builtin_frame_address(0);

	/* One page for this call and those that it makes. */
	top = (top & ~(page - 1)) - page;
	madvise((void *)(top - SPENT), SPENT, MADV_DONTNEED);
}

void zb_memory_settle(void)
{
	mallopt(M_MMAP_THRESHOLD, LARGE);
	malloc_trim(0);
	give_back_stack();
	dl_iterate_phdr(give_back, NULL);
}

#else

void zb_memory_share(void)
{
}

void zb_memory_begin(void)
{
}

void zb_memory_settle(void)
{
}

#endif
