/* mkfilter.c - writes filter_data.h at build time: one seccomp program for
 * each architecture and ledger mode.
 *
 * libseccomp knows the numbers of system calls; the code is assembled here,
 * since its rules cannot say what we need ("socket: these combinations pass,
 * every other one is *notified*, while unknown calls are ENOSYS" has two
 * defaults). The shape of a program:
 *
 *	another architecture's call?     notify: the broker says ENOSYS and
 *	number >= 0x40000000 (x32)?      records it
 *	binary search over ranges of numbers that share an answer
 *	  leaf: one return, or a few instructions that look at arguments
 *
 * Arguments are compared as the kernel reads them: the low 32 bits where it
 * takes an int (an ioctl number with rubbish above them is still TIOCSTI),
 * both halves of pointers. All our architectures are little endian. */
#include "config.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CODE   4096
#define MAX_NUMBER 512

/* Arguments as on x86-64 and aarch64; values from the kernel's headers, which
 * a build machine's libc may lack or rename. */
enum {
	K_F_SETLEASE = 1024,
	K_TIOCSTI = 0x5412,
	K_TIOCLINUX = 0x541c,
	K_TIOCSETD = 0x5423,
	K_IOC_TYPE = 0xff00, /* the letter of an ioctl's family */
	K_IOC_TTY = 0x5400,
	K_IOC_SOCKET = 0x8900,
	K_IOC_BTRFS = 0x9400,
	K_AF_UNIX = 1,
	K_AF_INET = 2,
	K_AF_INET6 = 10,
	K_AF_NETLINK = 16,
	K_STREAM = 1,
	K_DGRAM = 2,
	K_RAW = 3,
	K_SEQPACKET = 5,
	K_TYPE_MASK = 0xf,
	K_TCP = 6,
	K_UDP = 17,
	K_MPTCP = 262,
	K_PR_SET_MM = 35,
	K_X32_BIT = 0x40000000,
	K_NO_ABI = (int)0x80000000, /* from here on nobody's numbers */
	/* O_WRONLY O_RDWR O_CREAT O_TRUNC __O_TMPFILE: any intent to write */
	K_WRITE_FLAGS = 01 | 02 | 0100 | 01000 | 020000000,
};
#define K_NEW_NAMESPACE                                                        \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |         \
	 CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#define K_CLONE_NEWTIME 0x80u

enum answer {
	NOSYS, /* zero: what no list names */
	ALLOW,
	NOTIFY,
	LOOK_OPEN, /* from here on: depends on arguments */
	LOOK_OPENAT,
	LOOK_FCNTL,
	LOOK_IOCTL,
	LOOK_CLONE,
	LOOK_UNSHARE,
	LOOK_SOCKET,
	LOOK_SOCKETPAIR,
	LOOK_SENDTO,
	LOOK_PERSONALITY,
	LOOK_PRCTL,
};

/* Calls of watched.def whose answer depends on arguments in every mode. */
static const struct {
	const char *name;
	enum answer answer;
} looks[] = {
	{"fcntl", LOOK_FCNTL},	 {"ioctl", LOOK_IOCTL},
	{"clone", LOOK_CLONE},	 {"unshare", LOOK_UNSHARE},
	{"socket", LOOK_SOCKET}, {"socketpair", LOOK_SOCKETPAIR},
	{"sendto", LOOK_SENDTO}, {"personality", LOOK_PERSONALITY},
	{"prctl", LOOK_PRCTL},
};

enum mode {
	OPEN,
	WRITES,
	FULL
};
static const char *const mode_names[] = {"open", "writes", "full"};

static const struct arch {
	const char *name;
	uint32_t scmp, audit;
	bool x32;
} archs[] = {
	{"x86_64", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64, true},
	{"aarch64", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64, false},
};

/* Newer than the oldest libseccomp we build with; the same everywhere. */
static const struct {
	const char *name;
	int nr;
} newer[] = {
	{"set_mempolicy_home_node", 450},
	{"cachestat", 451},
	{"map_shadow_stack", 453},
	{"futex_wake", 454},
	{"futex_wait", 455},
	{"futex_requeue", 456},
	{"mseal", 462},
};

static const struct {
	const char *name;
	enum {
		ALWAYS_WATCHED,
		WHEN_FULL,
		WHEN_OPEN,
		REFUSED
	} when;
} watched[] = {
#define ZB_WATCH(name, when) {#name, W_##when},
#define W_ALWAYS	     ALWAYS_WATCHED
#define W_FULL		     WHEN_FULL
#define W_OPEN		     WHEN_OPEN
#define ZB_REFUSE(name)	     {#name, REFUSED},
#include "platform/linux/watched.def"
};

static const char *const allowed[] = {
#define ZB_ALLOW(name) #name,
#include "platform/linux/allowed.def"
};

/* ---- assembling ---------------------------------------------------------*/

/* Labels inside one leaf, resolved when it ends. */
enum label {
	NEXT,
	TO_ALLOW,
	TO_NOTIFY,
	TO_NOPROTO,
	TO_NOTTY,
	L1,
	L2,
	L3,
	L4,
	N_LABELS
};

static struct {
	struct sock_filter insn[MAX_CODE];
	uint8_t jt[MAX_CODE], jf[MAX_CODE]; /* labels of the current leaf */
	unsigned n;
	unsigned place[N_LABELS];
} code;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "mkfilter: %s\n", what);
	exit(1);
}

static unsigned emit(unsigned op, uint32_t k)
{
	if (code.n == MAX_CODE)
		die("program too long");
	code.insn[code.n] = (struct sock_filter){.code = (uint16_t)op, .k = k};
	code.jt[code.n] = code.jf[code.n] = NEXT;
	return code.n++;
}

static void jump(unsigned op, uint32_t k, enum label yes, enum label no)
{
	unsigned at = emit(BPF_JMP | op | BPF_K, k);

	code.jt[at] = (uint8_t)yes;
	code.jf[at] = (uint8_t)no;
}

static void give(uint32_t action)
{
	emit(BPF_RET | BPF_K, action);
}

/* The low half of argument @i; the high half with @high. */
static void load(unsigned i, bool high)
{
	emit(BPF_LD | BPF_W | BPF_ABS,
	     (uint32_t)(offsetof(struct seccomp_data, args) + 8 * i +
			(high ? 4 : 0)));
}

static void place(enum label l)
{
	code.place[l] = code.n;
}

static uint8_t distance(unsigned from, enum label l)
{
	unsigned d = l == NEXT ? 0 : code.place[l] - from - 1;

	if (l != NEXT && (!code.place[l] || d > 255))
		die("bad label");
	return (uint8_t)d;
}

/* End a leaf that started at @start: the shared returns, then the labels. */
static void finish(unsigned start)
{
	static const struct {
		enum label label;
		uint32_t action;
	} ends[] = {
		{TO_ALLOW, SECCOMP_RET_ALLOW},
		{TO_NOTIFY, SECCOMP_RET_USER_NOTIF},
		{TO_NOPROTO, SECCOMP_RET_ERRNO | EPROTONOSUPPORT},
		{TO_NOTTY, SECCOMP_RET_ERRNO | ENOTTY},
	};

	for (size_t e = 0; e < sizeof(ends) / sizeof(ends[0]); e++) {
		bool used = false;

		for (unsigned i = start; i < code.n; i++)
			used |= code.jt[i] == ends[e].label ||
				code.jf[i] == ends[e].label;
		if (!used)
			continue;
		place(ends[e].label);
		give(ends[e].action);
	}
	for (unsigned i = start; i < code.n; i++) {
		if (BPF_CLASS(code.insn[i].code) != BPF_JMP)
			continue;
		code.insn[i].jt = distance(i, (enum label)code.jt[i]);
		code.insn[i].jf = distance(i, (enum label)code.jf[i]);
	}
	memset(code.place, 0, sizeof(code.place));
}

/* ---- leaves -------------------------------------------------------------*/

static void notify_if_any_bit(unsigned arg, uint32_t bits)
{
	load(arg, false);
	jump(BPF_JSET, bits, TO_NOTIFY, TO_ALLOW);
}

/* A lease on a file of the user's that may be read stops who writes it outside,
 * for 45 seconds a time. */
static void look_fcntl(void)
{
	load(1, false);
	jump(BPF_JEQ, K_F_SETLEASE, TO_NOTIFY, TO_ALLOW);
}

/* What terminals and sockets know, less what types for the user or loads code
 * into the kernel; sharing of blocks between open files; and questions. The
 * rest is the file systems' own, where no mount and no Landlock looks: btrfs
 * copies a whole subvolume by an ioctl, with what is denied in it. */
static void look_ioctl(void)
{
	static const uint32_t fine[] = {
		2,	    /* FIGETBSZ */
		0x40049409, /* FICLONE */
		0x4020940d, /* FICLONERANGE */
		0xc0189436, /* FIDEDUPERANGE */
		0x80086601, /* FS_IOC_GETFLAGS */
		0x80087601, /* FS_IOC_GETVERSION */
		0x801c581f, /* FS_IOC_FSGETXATTR */
		0xc020660b, /* FS_IOC_FIEMAP */
		0x80045200, /* RNDGETENTCNT */
	};

	load(1, false);
	jump(BPF_JEQ, K_TIOCSTI, TO_NOTIFY, NEXT);
	jump(BPF_JEQ, K_TIOCLINUX, TO_NOTIFY, NEXT);
	jump(BPF_JEQ, K_TIOCSETD, TO_NOTIFY, NEXT);
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		jump(BPF_JEQ, fine[i], TO_ALLOW, NEXT);
	emit(BPF_ALU | BPF_AND | BPF_K, K_IOC_TYPE);
	jump(BPF_JEQ, K_IOC_TTY, TO_ALLOW, NEXT);
	jump(BPF_JEQ, K_IOC_SOCKET, TO_ALLOW, NEXT);
	jump(BPF_JEQ, K_IOC_BTRFS, TO_NOTIFY, TO_NOTTY);
}

/* Streams of both internet families (TCP), their datagrams (UDP; nothing is
 * behind them but the sandbox's own loopback), unix streams and packets, and
 * routing netlink (getifaddrs). MPTCP says what a kernel without it says, so
 * that programs fall back. A unix datagram socket could write to a host's
 * socket in a readable directory by sendmsg, which nothing may watch; and raw
 * ones on that family are datagram ones. */
static void look_socket(void)
{
	load(0, false);
	jump(BPF_JEQ, K_AF_UNIX, L1, NEXT);
	jump(BPF_JEQ, K_AF_NETLINK, L2, NEXT);
	jump(BPF_JEQ, K_AF_INET, L3, NEXT);
	jump(BPF_JEQ, K_AF_INET6, L3, TO_NOTIFY);
	place(L3);
	load(1, false);
	emit(BPF_ALU | BPF_AND | BPF_K, K_TYPE_MASK);
	jump(BPF_JEQ, K_DGRAM, L4, NEXT);
	jump(BPF_JEQ, K_STREAM, NEXT, TO_NOTIFY);
	load(2, false);
	jump(BPF_JEQ, 0, TO_ALLOW, NEXT);
	jump(BPF_JEQ, K_TCP, TO_ALLOW, NEXT);
	jump(BPF_JEQ, K_MPTCP, TO_NOPROTO, TO_NOTIFY);
	place(L4);
	load(2, false);
	jump(BPF_JEQ, 0, TO_ALLOW, NEXT);
	jump(BPF_JEQ, K_UDP, TO_ALLOW, TO_NOTIFY);
	place(L1);
	load(1, false);
	emit(BPF_ALU | BPF_AND | BPF_K, K_TYPE_MASK);
	jump(BPF_JEQ, K_STREAM, TO_ALLOW, NEXT);
	jump(BPF_JEQ, K_SEQPACKET, TO_ALLOW, TO_NOTIFY);
	place(L2);
	load(2, false);
	jump(BPF_JEQ, 0 /* NETLINK_ROUTE */, NEXT, TO_NOTIFY);
	load(1, false);
	emit(BPF_ALU | BPF_AND | BPF_K, K_TYPE_MASK);
	jump(BPF_JEQ, K_RAW, TO_ALLOW, NEXT);
	jump(BPF_JEQ, K_DGRAM, TO_ALLOW, TO_NOTIFY);
}

static void look_socketpair(void)
{
	load(0, false);
	jump(BPF_JEQ, K_AF_UNIX, NEXT, TO_NOTIFY);
	load(1, false);
	emit(BPF_ALU | BPF_AND | BPF_K, K_TYPE_MASK);
	jump(BPF_JEQ, K_STREAM, TO_ALLOW, NEXT);
	jump(BPF_JEQ, K_SEQPACKET, TO_ALLOW, TO_NOTIFY);
}

/* An address at all? */
static void look_sendto(void)
{
	load(4, false);
	jump(BPF_JEQ, 0, NEXT, TO_NOTIFY);
	load(4, true);
	jump(BPF_JEQ, 0, TO_ALLOW, TO_NOTIFY);
}

static void look_personality(void)
{
	load(0, false);
	jump(BPF_JEQ, 0, TO_ALLOW, NEXT);
	jump(BPF_JEQ, 0xffffffff /* query */, TO_ALLOW, TO_NOTIFY);
}

/* PR_SET_MM would let it name another program as its own in /proc/PID/exe,
 * which records show. The other options tighten, or touch only the caller. A
 * filter of its own (PR_SET_SECCOMP) can only refuse more, and a second
 * listener is EBUSY. */
static void look_prctl(void)
{
	load(0, false);
	jump(BPF_JEQ, K_PR_SET_MM, TO_NOTIFY, TO_ALLOW);
}

static void leaf(enum answer answer)
{
	unsigned start = code.n;

	switch (answer) {
	case NOSYS:
		give(SECCOMP_RET_ERRNO | ENOSYS);
		return;
	case ALLOW:
		give(SECCOMP_RET_ALLOW);
		return;
	case NOTIFY:
		give(SECCOMP_RET_USER_NOTIF);
		return;
	case LOOK_OPEN:
		notify_if_any_bit(1, K_WRITE_FLAGS);
		break;
	case LOOK_OPENAT:
		notify_if_any_bit(2, K_WRITE_FLAGS);
		break;
	case LOOK_CLONE:
		notify_if_any_bit(0, K_NEW_NAMESPACE);
		break;
	case LOOK_UNSHARE:
		notify_if_any_bit(0, K_NEW_NAMESPACE | K_CLONE_NEWTIME);
		break;
	case LOOK_FCNTL:
		look_fcntl();
		break;
	case LOOK_IOCTL:
		look_ioctl();
		break;
	case LOOK_SOCKET:
		look_socket();
		break;
	case LOOK_SOCKETPAIR:
		look_socketpair();
		break;
	case LOOK_SENDTO:
		look_sendto();
		break;
	case LOOK_PERSONALITY:
		look_personality();
		break;
	case LOOK_PRCTL:
		look_prctl();
		break;
	}
	finish(start);
}

/* ---- programs -----------------------------------------------------------*/

static enum answer answers[MAX_NUMBER];

/* Number of @name on @arch, or -1 if it has none there. */
static int number(const struct arch *arch, const char *name)
{
	int nr = seccomp_syscall_resolve_name_arch(arch->scmp, name);

	for (size_t i = 0; nr < 0 && i < sizeof(newer) / sizeof(newer[0]); i++)
		if (strcmp(newer[i].name, name) == 0)
			nr = newer[i].nr;
	if (nr >= MAX_NUMBER)
		die("number out of range");
	return nr < 0 ? -1 : nr;
}

static enum answer watch_answer(size_t i, enum mode mode)
{
	const char *name = watched[i].name;

	for (size_t l = 0; l < sizeof(looks) / sizeof(looks[0]); l++)
		if (strcmp(looks[l].name, name) == 0)
			return looks[l].answer;
	if (watched[i].when == WHEN_FULL)
		return mode == FULL ? NOTIFY : ALLOW;
	if (watched[i].when == WHEN_OPEN && mode == WRITES)
		return strcmp(name, "open") == 0 ? LOOK_OPEN : LOOK_OPENAT;
	return NOTIFY;
}

static void set(const struct arch *arch, const char *name, enum answer answer)
{
	int nr = number(arch, name);

	if (nr < 0)
		return;
	if (answers[nr] != NOSYS) {
		fprintf(stderr, "mkfilter: %s: ", name);
		die("listed twice");
	}
	answers[nr] = answer;
}

static void collect(const struct arch *arch, enum mode mode)
{
	memset(answers, 0, sizeof(answers));
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		set(arch, allowed[i], ALLOW);
	for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
		set(arch, watched[i].name, watch_answer(i, mode));
}

/* Search among @n ranges, the first of which starts at or below the number. */
static void search(const int *first, size_t n)
{
	size_t half = n / 2;
	unsigned at, size;

	if (n == 1) {
		leaf(answers[first[0]]);
		return;
	}
	at = emit(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)first[half]);
	emit(BPF_JMP | BPF_JA, 0);
	search(first, half);
	size = code.n - at - 2;
	if (size > 255) { /* too far for a conditional jump: by way of ja */
		code.insn[at].jf = 1;
		code.insn[at + 1].k = size;
	} else {
		code.insn[at].jt = (uint8_t)size;
		memmove(&code.insn[at + 1], &code.insn[at + 2],
			size * sizeof(code.insn[0]));
		code.n--;
	}
	search(first + half, n - half);
}

static void assemble(const struct arch *arch, enum mode mode)
{
	int first[MAX_NUMBER] = {0};
	size_t n = 0;

	collect(arch, mode);
	if (answers[MAX_NUMBER - 1] != NOSYS)
		die("numbers beyond the table would not be ENOSYS");
	for (int nr = 0; nr < MAX_NUMBER; nr++)
		if (nr == 0 || answers[nr] != answers[nr - 1])
			first[n++] = nr;
	memset(&code, 0, sizeof(code));
	emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	emit(BPF_JMP | BPF_JEQ | BPF_K, arch->audit);
	code.insn[code.n - 1].jt = 1;
	give(SECCOMP_RET_USER_NOTIF);
	emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	if (arch->x32) {
		emit(BPF_JMP | BPF_JGE | BPF_K, K_X32_BIT);
		code.insn[code.n - 1].jf = 3;
		emit(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)K_NO_ABI);
		code.insn[code.n - 1].jf = 1;
		give(SECCOMP_RET_ERRNO | ENOSYS);
		give(SECCOMP_RET_USER_NOTIF);
	}
	search(first, n);
}

static void print(const struct arch *arch, enum mode mode)
{
	printf("static const struct sock_filter %s_%s[] = {\n", arch->name,
	       mode_names[mode]);
	for (unsigned i = 0; i < code.n; i++)
		printf("\t{0x%02x, %u, %u, 0x%08x},\n", code.insn[i].code,
		       code.insn[i].jt, code.insn[i].jf, code.insn[i].k);
	printf("};\n");
}

/* The watched calls' numbers, in the order of watched.def: the program itself
 * needs no libseccomp then. */
static void print_numbers(const struct arch *arch)
{
	printf("static const short %s_watched[] = {\n", arch->name);
	for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
		printf("\t%d, /* %s */\n", number(arch, watched[i].name),
		       watched[i].name);
	printf("};\n");
}

int main(void)
{
	printf("/* Generated by mkfilter; see there. */\n");
	for (size_t a = 0; a < sizeof(archs) / sizeof(archs[0]); a++) {
		for (int mode = OPEN; mode <= FULL; mode++) {
			assemble(&archs[a], (enum mode)mode);
			print(&archs[a], (enum mode)mode);
		}
		print_numbers(&archs[a]);
	}
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
