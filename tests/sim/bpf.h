/* bpf.h - runs a seccomp program as the kernel would, for any architecture. */
#ifndef ZB_SIM_BPF_H
#define ZB_SIM_BPF_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

/* What no program returns: a bad instruction, a jump out of the program, a
 * load outside the data, no return. */
#define ZB_SIM_BROKEN 0xdeadu

/* The action @insn (of @n) gives for @data. *@steps (may be NULL): how many
 * instructions ran. */
uint32_t zb_sim_run(const struct sock_filter *insn, size_t n,
		    const struct seccomp_data *data, unsigned *steps);

#endif
