/* broker_refuse.c - the dangerous calls: EPERM and one record that says what
 * was tried, since "ioctl" alone tells nobody anything. */
#include "config.h"

#include "platform/linux/broker_int.h"

#include "buf.h"
#include "cleanup.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>

struct word {
	uint64_t value;
	const char *text;
};

/* As in linux/btrfs.h, which needs other headers of its own. */
#define BTRFS_SUBVOL_CREATE  0x5000940e
#define BTRFS_SNAP_CREATE    0x50009401
#define BTRFS_SNAP_CREATE_V2 0x50009417

static const struct word ioctls[] = {
	{TIOCSTI, "TIOCSTI"},
	{TIOCLINUX, "TIOCLINUX"},
	{TIOCSETD, "TIOCSETD"},
	{BTRFS_SUBVOL_CREATE, "BTRFS_IOC_SUBVOL_CREATE"},
	{BTRFS_SNAP_CREATE, "BTRFS_IOC_SNAP_CREATE"},
	{BTRFS_SNAP_CREATE_V2, "BTRFS_IOC_SNAP_CREATE_V2"},
};

static const struct word fcntls[] = {{1024, "F_SETLEASE"}};

static const struct word clone_flags[] = {
	{CLONE_NEWUSER, "CLONE_NEWUSER"},     {CLONE_NEWNS, "CLONE_NEWNS"},
	{CLONE_NEWPID, "CLONE_NEWPID"},	      {CLONE_NEWNET, "CLONE_NEWNET"},
	{CLONE_NEWIPC, "CLONE_NEWIPC"},	      {CLONE_NEWUTS, "CLONE_NEWUTS"},
	{CLONE_NEWCGROUP, "CLONE_NEWCGROUP"},
};

static const struct word prctls[] = {
	{PR_SET_SECCOMP, "PR_SET_SECCOMP"},
	{PR_SET_MM, "PR_SET_MM"},
	{PR_SET_PTRACER, "PR_SET_PTRACER"},
	{PR_CAPBSET_DROP, "PR_CAPBSET_DROP"},
	{PR_CAP_AMBIENT, "PR_CAP_AMBIENT"},
	{PR_SET_SECUREBITS, "PR_SET_SECUREBITS"},
	{PR_SET_TSC, "PR_SET_TSC"},
};

static const struct word ptraces[] = {
	{PTRACE_TRACEME, "PTRACE_TRACEME"},
	{PTRACE_ATTACH, "PTRACE_ATTACH"},
	{PTRACE_SEIZE, "PTRACE_SEIZE"},
};

/* How to put the argument @arg of a call into words. */
static const struct {
	const char *name;
	int arg;
	bool flags;
	const struct word *words;
	size_t n;
} details[] = {
	{"fcntl", 1, false, fcntls, ZB_ARRAY_LEN(fcntls)},
	{"ioctl", 1, false, ioctls, ZB_ARRAY_LEN(ioctls)},
	{"clone", 0, true, clone_flags, ZB_ARRAY_LEN(clone_flags)},
	{"unshare", 0, true, clone_flags, ZB_ARRAY_LEN(clone_flags)},
	{"setns", 1, true, clone_flags, ZB_ARRAY_LEN(clone_flags)},
	{"prctl", 0, false, prctls, ZB_ARRAY_LEN(prctls)},
	{"ptrace", 0, false, ptraces, ZB_ARRAY_LEN(ptraces)},
	{"personality", 0, false, NULL, 0},
};

static void put(char *out, size_t cap, const char *text)
{
	size_t n = strlen(out);

	if (n < cap)
		snprintf(out + n, cap - n, " %s", text);
}

static void words(char *out, size_t cap, size_t row, uint64_t value)
{
	const struct word *w = details[row].words;
	bool any = false;
	char number[24];

	for (size_t i = 0; i < details[row].n; i++) {
		if (details[row].flags ? !(value & w[i].value)
				       : value != w[i].value)
			continue;
		put(out, cap, w[i].text);
		any = true;
	}
	if (any)
		return;
	snprintf(number, sizeof(number), "0x%llx", (unsigned long long)value);
	put(out, cap, number);
}

void zb_describe(const char *name, const uint64_t args[6], char *out,
		 size_t cap)
{
	snprintf(out, cap, "%s", name);
	for (size_t i = 0; i < ZB_ARRAY_LEN(details); i++)
		if (!strcmp(name, details[i].name))
			words(out, cap, i, args[details[i].arg] & UINT32_MAX);
}

void zb_refuse_call(struct zb_call *c, const char *text)
{
	zb_refuse(c, &(struct zb_refusal){
			     .op = ZB_OP_SYSCALL,
			     .asked = text,
			     .target = text,
			     .judged = c->row->name,
			     .place = -1,
			     .err = EPERM,
		     });
}

void zb_call_refuse(struct zb_call *c)
{
	char text[160];

	zb_describe(c->row->name, c->args, text, sizeof(text));
	zb_refuse_call(c, text);
}

#if defined(__x86_64__)
#define NATIVE	AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000
#else
#define NATIVE	AUDIT_ARCH_AARCH64
#define X32_BIT 0
#endif

bool zb_call_is_foreign(const struct zb_call *c)
{
	return c->arch != NATIVE || c->nr & X32_BIT;
}

static const char *abi_name(uint32_t arch)
{
	switch (arch) {
	case NATIVE:
		return "x32";
	case AUDIT_ARCH_I386:
		return "i386";
	case AUDIT_ARCH_ARM:
		return "arm";
	default:
		return "foreign";
	}
}

/* A call of another ABI: its number and arguments mean something else, so it
 * is not looked at. */
void zb_call_foreign(struct zb_call *c)
{
	char text[64];

	snprintf(text, sizeof(text), "%s syscall 0x%x (foreign ABI)",
		 abi_name(c->arch), (unsigned)c->nr);
	zb_refuse(c, &(struct zb_refusal){
			     .op = ZB_OP_SYSCALL,
			     .asked = text,
			     .target = text,
			     .judged = "foreign ABI",
			     .place = -1,
			     .err = ENOSYS,
		     });
}
