/* bpf.c - the part of classic BPF that seccomp programs use. */
#include "tests/sim/bpf.h"

#include <stdbool.h>
#include <string.h>

static bool load(const struct seccomp_data *data, uint32_t at, uint32_t *a)
{
	if (at % 4 || at > sizeof(*data) - 4)
		return false;
	memcpy(a, (const char *)data + at, 4);
	return true;
}

static bool compare(uint16_t code, uint32_t a, uint32_t k, bool *yes)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		*yes = a == k;
		return true;
	case BPF_JGE:
		*yes = a >= k;
		return true;
	case BPF_JGT:
		*yes = a > k;
		return true;
	case BPF_JSET:
		*yes = (a & k) != 0;
		return true;
	default:
		return false;
	}
}

uint32_t zb_sim_run(const struct sock_filter *insn, size_t n,
		    const struct seccomp_data *data, unsigned *steps)
{
	uint32_t a = 0;
	unsigned ran = 0;

	for (size_t pc = 0; pc < n; pc++) {
		const struct sock_filter *i = &insn[pc];
		bool yes;

		if (steps)
			*steps = ++ran;
		if (i->code == (BPF_RET | BPF_K))
			return i->k;
		if (i->code == (BPF_LD | BPF_W | BPF_ABS)) {
			if (!load(data, i->k, &a))
				break;
		} else if (i->code == (BPF_ALU | BPF_AND | BPF_K)) {
			a &= i->k;
		} else if (i->code == (BPF_JMP | BPF_JA)) {
			pc += i->k;
		} else if (BPF_CLASS(i->code) == BPF_JMP &&
			   BPF_SRC(i->code) == BPF_K &&
			   compare(i->code, a, i->k, &yes)) {
			pc += yes ? i->jt : i->jf;
		} else {
			break;
		}
	}
	return ZB_SIM_BROKEN;
}
