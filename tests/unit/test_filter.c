/* test_filter.c - the seccomp programs, run in an interpreter for every
 * architecture they exist for: the rows of tests/sim, completeness over all
 * numbers, and that the kernel takes them. */
#include "config.h"

#include "platform/linux/filter.h"
#include "tests/sim/bpf.h"

#include <errno.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NOSYS	(SECCOMP_RET_ERRNO | ENOSYS)
#define X32_BIT 0x40000000u

static const struct abi {
	const char *name;
	uint32_t scmp, audit, bit;
} abis[] = {
	{"x86_64", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64, 0},
	{"aarch64", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64, 0},
	{"x32", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64, X32_BIT},
	{"i386", SCMP_ARCH_X86, AUDIT_ARCH_I386, 0},
	{"arm", SCMP_ARCH_ARM, AUDIT_ARCH_ARM, 0},
};
#define N_NATIVE 2

static const struct {
	const char *name;
	enum zb_ledger_mode mode;
} modes[] = {{"open", ZB_LEDGER_OPEN},
	     {"writes", ZB_LEDGER_WRITES},
	     {"full", ZB_LEDGER_FULL}};

static const struct {
	const char *name;
	uint32_t action;
} results[] = {
	{"ALLOW", SECCOMP_RET_ALLOW},
	{"NOTIFY", SECCOMP_RET_USER_NOTIF},
	{"NOSYS", NOSYS},
	{"EPROTONOSUPPORT", SECCOMP_RET_ERRNO | EPROTONOSUPPORT},
	{"ENOTTY", SECCOMP_RET_ERRNO | ENOTTY},
};

static const struct abi *abi_named(const char *name)
{
	for (size_t i = 0; i < sizeof(abis) / sizeof(abis[0]); i++)
		if (strcmp(abis[i].name, name) == 0)
			return &abis[i];
	return NULL;
}

static uint32_t run(const char *program, enum zb_ledger_mode mode,
		    const struct abi *abi, uint32_t nr, const uint64_t args[6])
{
	struct zb_filter f = zb_filter_for(program, mode);
	struct seccomp_data d = {.nr = (int)(nr | abi->bit),
				 .arch = abi->audit};

	assert_true(f.n > 0);
	memcpy(d.args, args, sizeof(d.args));
	return zb_sim_run(f.insn, f.n, &d, NULL);
}

/* ---- rows of tests/sim --------------------------------------------------*/

struct row {
	const char *file;
	int line;
	const char *program, *mode, *call;
	uint64_t args[6];
	bool any; /* "~": also with all bits set */
	uint32_t want;
};

/* Number of the row's call, or -1 if this architecture has none. */
static int64_t number(const struct abi *abi, const char *name)
{
	char *end;
	unsigned long n = strtoul(name, &end, 0);
	int nr;

	if (!*end)
		return (int64_t)n;
	nr = seccomp_syscall_resolve_name_arch(abi->scmp, name);
	return nr < 0 ? -1 : nr;
}

/* Run one row against one program and mode. Return: did it run? */
static bool check(const struct row *row, const char *program,
		  enum zb_ledger_mode mode)
{
	const char *slash = strchr(row->call, '/');
	char via[16] = "";
	uint64_t args[6];
	int64_t nr;
	uint32_t got;

	snprintf(via, sizeof(via), "%.*s",
		 slash ? (int)(slash - row->call) : 15,
		 slash ? row->call : program);
	if (!abi_named(via))
		fail_msg("%s:%d: unknown ABI %s", row->file, row->line, via);
	nr = number(abi_named(via), slash ? slash + 1 : row->call);
	if (nr < 0)
		return false;
	memcpy(args, row->args, sizeof(args));
	for (int turn = 0; turn <= row->any; turn++) {
		got = run(program, mode, abi_named(via), (uint32_t)nr, args);
		if (got != row->want)
			fail_msg("%s:%d: %s %s %s: 0x%08x, not 0x%08x",
				 row->file, row->line, program,
				 zb_ledger_mode_name(mode), row->call, got,
				 row->want);
		memset(args, 0xff, sizeof(args));
	}
	return true;
}

static void parse(struct row *row, char *text)
{
	char *save, *word = strtok_r(text, " \t\n", &save), *last = NULL;
	const char **fields[] = {&row->program, &row->mode, &row->call};
	bool known = false;

	for (int n = 0; word; word = strtok_r(NULL, " \t\n", &save), n++) {
		char *colon = strchr(word, ':');

		if (n < 3)
			*fields[n] = word;
		else if (strcmp(word, "~") == 0)
			row->any = true;
		else if (colon)
			row->args[strtoul(word, NULL, 10) % 6] =
				strtoull(colon + 1, NULL, 0);
		last = word;
	}
	for (size_t r = 0; last && r < sizeof(results) / sizeof(results[0]);
	     r++) {
		if (strcmp(results[r].name, last) == 0) {
			row->want = results[r].action;
			known = true;
		}
	}
	if (!known)
		fail_msg("%s:%d: unknown result", row->file, row->line);
}

static int run_row(struct row *row, char *text)
{
	int ran = 0;

	parse(row, text);
	for (size_t p = 0; p < N_NATIVE; p++) {
		if (strcmp(row->program, "*") &&
		    strcmp(row->program, abis[p].name))
			continue;
		for (size_t m = 0; m < 3; m++)
			if (!strcmp(row->mode, "*") ||
			    !strcmp(row->mode, modes[m].name))
				ran += check(row, abis[p].name, modes[m].mode);
	}
	return ran;
}

static void rows(const char *name)
{
	const char *src = getenv("ZB_SRC");
	char path[4096], line[512], text[512];
	int at = 0, ran = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/sim/%s.tests", src ? src : ".",
		 name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		struct row row = {.file = path, .line = ++at};

		if (line[0] == '#' || line[0] == '\n')
			continue;
		memcpy(text, line, sizeof(text));
		if (run_row(&row, text) == 0)
			fail_msg("%s:%d: ran nowhere", path, at);
		ran++;
	}
	fclose(f);
	assert_true(ran > 20);
}

static void plain_rows(void **state)
{
	(void)state;
	rows("plain");
}

static void argument_rows(void **state)
{
	(void)state;
	rows("arguments");
}

static void foreign_rows(void **state)
{
	(void)state;
	rows("foreign");
}

/* ---- all numbers --------------------------------------------------------*/

static const char *const listed[] = {
#define ZB_ALLOW(name) #name,
#include "platform/linux/allowed.def"
#define ZB_WATCH(name, when) #name,
#define ZB_REFUSE(name)	     #name,
#include "platform/linux/watched.def"
};

static const char *const refused[] = {
#undef ZB_WATCH
#undef ZB_REFUSE
#define ZB_WATCH(name, when)
#define ZB_REFUSE(name) #name,
#include "platform/linux/watched.def"
};

static bool is_listed(const struct abi *abi, uint32_t nr)
{
	/* Newer than libseccomp may be: the same everywhere. */
	static const uint32_t newer[] = {450, 451, 453, 454, 455, 456, 462};

	for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++)
		if (newer[i] == nr)
			return true;
	for (size_t i = 0; i < sizeof(listed) / sizeof(listed[0]); i++)
		if (seccomp_syscall_resolve_name_arch(abi->scmp, listed[i]) ==
		    (int)nr)
			return true;
	return false;
}

/* What no list names is ENOSYS; what one names is not, for some argument. */
static void the_lists_are_all(void **state)
{
	const uint64_t none[6] = {0},
		       all[6] = {~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull};

	(void)state;
	for (size_t p = 0; p < N_NATIVE; p++) {
		for (uint32_t nr = 0; nr < 1024; nr++) {
			uint32_t a = run(abis[p].name, ZB_LEDGER_OPEN, &abis[p],
					 nr, none);
			uint32_t b = run(abis[p].name, ZB_LEDGER_OPEN, &abis[p],
					 nr, all);
			bool in = is_listed(&abis[p], nr);

			if (in ? a == NOSYS && b == NOSYS
			       : a != NOSYS || b != NOSYS)
				fail_msg("%s %u: 0x%x 0x%x", abis[p].name, nr,
					 a, b);
		}
	}
}

/* A refused call is noticed: always, or for some argument. */
static void nothing_refused_passes(void **state)
{
	static const char *const partly[] = {"clone", "unshare", "fcntl",
					     "ioctl", "prctl",	 "personality"};
	const uint64_t none[6] = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		bool some = false;
		int nr = seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64,
							   refused[i]);

		for (size_t j = 0; j < sizeof(partly) / sizeof(partly[0]); j++)
			some |= !strcmp(partly[j], refused[i]);
		if (nr >= 0 && !some &&
		    run("x86_64", ZB_LEDGER_WRITES, &abis[0], (uint32_t)nr,
			none) != SECCOMP_RET_USER_NOTIF)
			fail_msg("%s passes", refused[i]);
	}
}

static void carve_outs_see_every_open(void **state)
{
	struct zb_filter open = zb_filter(ZB_LEDGER_OPEN, false);
	struct zb_filter full = zb_filter(ZB_LEDGER_FULL, false);
	struct zb_filter writes = zb_filter(ZB_LEDGER_WRITES, false);

	(void)state;
	assert_ptr_equal(zb_filter(ZB_LEDGER_WRITES, true).insn, open.insn);
	assert_ptr_equal(zb_filter(ZB_LEDGER_FULL, true).insn, full.insn);
	assert_ptr_not_equal(writes.insn, open.insn);
}

static const char *const watched[] = {
#undef ZB_WATCH
#undef ZB_REFUSE
#define ZB_WATCH(name, when) #name,
#define ZB_REFUSE(name)	     #name,
#include "platform/linux/watched.def"
};

/* The numbers of this machine, from two sources; the library may be older than
 * a call. */
static void watched_numbers(void **state)
{
	size_t known = 0, n = sizeof(watched) / sizeof(watched[0]);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		int nr = seccomp_syscall_resolve_name(watched[i]);

		if (nr >= 0)
			assert_int_equal(zb_watched_number(i), nr);
		known += zb_watched_number(i) >= 0;
	}
	assert_int_equal(zb_watched_number(n), -1);
	assert_true(known > n / 2);
}

/* Random calls: every program ends, in few steps, with an answer we know. */
static void always_ends(void **state)
{
	uint64_t seed = 88172645463325252ull;
	unsigned most = 0, steps = 0;

	(void)state;
	for (int i = 0; i < 300000; i++) {
		size_t p = (size_t)i % N_NATIVE;
		struct zb_filter f =
			zb_filter_for(abis[p].name, modes[i % 3].mode);
		struct seccomp_data d = {.arch = abis[p].audit};
		bool known = false;
		uint32_t got;

		for (int a = 0; a < 7; a++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			if (a < 6)
				d.args[a] = seed % 3 ? seed % 64 : seed;
			else
				d.nr = (int)(seed % 600);
		}
		got = zb_sim_run(f.insn, f.n, &d, &steps);
		most = steps > most ? steps : most;
		for (size_t r = 0; r < sizeof(results) / sizeof(results[0]);
		     r++)
			known |= results[r].action == got;
		assert_true(known);
	}
	assert_in_range(most, 5, 40);
}

static void the_interpreter_finds_faults(void **state)
{
	const struct seccomp_data d = {.nr = 1};
	const struct sock_filter end[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}};
	const struct sock_filter wild[] = {{BPF_JMP | BPF_JA, 0, 0, 9}};
	const struct sock_filter far[] = {
		{BPF_LD | BPF_W | BPF_ABS, 0, 0, sizeof(d)}};

	(void)state;
	assert_int_equal(zb_sim_run(end, 1, &d, NULL), ZB_SIM_BROKEN);
	assert_int_equal(zb_sim_run(wild, 1, &d, NULL), ZB_SIM_BROKEN);
	assert_int_equal(zb_sim_run(far, 1, &d, NULL), ZB_SIM_BROKEN);
}

/* ---- the kernel ---------------------------------------------------------*/

/* In a child: load, then see three of the answers come true. */
static _Noreturn void load_and_try(struct zb_filter f)
{
	struct sock_fprog prog = {
		.len = (unsigned short)f.n,
		.filter = (struct sock_filter *)(uintptr_t)f.insn};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		_exit(1);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
		_exit(2);
	if (syscall(SYS_io_uring_setup, 0, NULL) != -1 || errno != ENOSYS)
		_exit(3);
	/* Without a listener a notification is ENOSYS too. */
	if (syscall(SYS_mount, NULL, NULL, NULL, 0, NULL) != -1 ||
	    errno != ENOSYS)
		_exit(4);
	_exit(getppid() > 0 ? 0 : 5);
}

static void the_kernel_takes_them(void **state)
{
	(void)state;
	for (int m = 0; m < 3; m++) {
		int status = -1;
		pid_t pid = fork();

		if (pid == 0)
			load_and_try(zb_filter(modes[m].mode, false));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_rows),
		cmocka_unit_test(argument_rows),
		cmocka_unit_test(foreign_rows),
		cmocka_unit_test(the_lists_are_all),
		cmocka_unit_test(nothing_refused_passes),
		cmocka_unit_test(carve_outs_see_every_open),
		cmocka_unit_test(watched_numbers),
		cmocka_unit_test(always_ends),
		cmocka_unit_test(the_interpreter_finds_faults),
		cmocka_unit_test(the_kernel_takes_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
