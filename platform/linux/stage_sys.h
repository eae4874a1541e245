/* stage_sys.h - system calls for zotbox-stage, which has no libc: one more
 * exec of even a static glibc program costs as much as the extension's own.
 * Results are the kernel's: negative errno on failure. */
#ifndef ZB_STAGE_SYS_H
#define ZB_STAGE_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
			   "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}
/* The kernel enters with argc at the top of an aligned stack. */
__asm__(".text\n.globl _start\n.type _start,@function\n_start:\n"
	"\txorl %ebp, %ebp\n\tmovq %rsp, %rdi\n\tandq $-16, %rsp\n"
	"\tcall stage_main\n\thlt\n");
#elif defined(__aarch64__)
static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
__asm__(".text\n.globl _start\n.type _start,%function\n_start:\n"
	"\tmov x29, #0\n\tmov x0, sp\n\tbl stage_main\n\tbrk #1\n");
#else
#error "zotbox-stage knows x86_64 and aarch64 only"
#endif

#define SYS_ARG(x)	  ((long)(x))
#define sys0(nr)	  sys6(nr, 0, 0, 0, 0, 0, 0)
#define sys1(nr, a)	  sys6(nr, SYS_ARG(a), 0, 0, 0, 0, 0)
#define sys2(nr, a, b)	  sys6(nr, SYS_ARG(a), SYS_ARG(b), 0, 0, 0, 0)
#define sys3(nr, a, b, c) sys6(nr, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), 0, 0, 0)
#define sys4(nr, a, b, c, d)                                                   \
	sys6(nr, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), 0, 0)
#define sys5(nr, a, b, c, d, e)                                                \
	sys6(nr, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), SYS_ARG(e), 0)
#define sys6p(nr, a, b, c, d, e, f)                                            \
	sys6(nr, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), SYS_ARG(e),   \
	     SYS_ARG(f))

/* Compilers call these two by name also in freestanding code. The barrier
 * keeps them from recognising the loops as calls to themselves. */
void *memset(void *p, int c, size_t n);
void *memcpy(void *restrict to, const void *restrict from, size_t n);

void *memset(void *p, int c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		((unsigned char *)p)[i] = (unsigned char)c;
		__asm__ volatile("" ::: "memory");
	}
	return p;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
		__asm__ volatile("" ::: "memory");
	}
	return to;
}

#endif
