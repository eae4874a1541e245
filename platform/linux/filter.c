/* filter.c - picking one of the generated seccomp programs. */
#include "config.h"

#include "platform/linux/filter.h"

#include <string.h>

#include "platform/linux/filter_data.h"

#define PROGRAM(a)                                                             \
	{                                                                      \
		a, sizeof(a) / sizeof((a)[0])                                  \
	}

#define NUMBERS(a) (a), sizeof(a) / sizeof((a)[0])

static const struct {
	const char *arch;
	struct zb_filter mode[3]; /* by enum zb_ledger_mode */
	const short *watched;
	size_t n_watched;
} programs[] = {
	{"x86_64",
	 {[ZB_LEDGER_OPEN] = PROGRAM(x86_64_open),
	  [ZB_LEDGER_WRITES] = PROGRAM(x86_64_writes),
	  [ZB_LEDGER_FULL] = PROGRAM(x86_64_full)},
	 NUMBERS(x86_64_watched)},
	{"aarch64",
	 {[ZB_LEDGER_OPEN] = PROGRAM(aarch64_open),
	  [ZB_LEDGER_WRITES] = PROGRAM(aarch64_writes),
	  [ZB_LEDGER_FULL] = PROGRAM(aarch64_full)},
	 NUMBERS(aarch64_watched)},
};

#if defined(__x86_64__)
#define NATIVE "x86_64"
#elif defined(__aarch64__)
#define NATIVE "aarch64"
#else
#error "no seccomp program for this architecture"
#endif

struct zb_filter zb_filter_for(const char *arch, enum zb_ledger_mode mode)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (strcmp(programs[i].arch, arch) == 0)
			return programs[i].mode[mode];
	return (struct zb_filter){0};
}

int zb_watched_number(size_t i)
{
	for (size_t k = 0; k < sizeof(programs) / sizeof(programs[0]); k++)
		if (strcmp(programs[k].arch, NATIVE) == 0 &&
		    i < programs[k].n_watched)
			return programs[k].watched[i];
	return -1;
}

struct zb_filter zb_filter(enum zb_ledger_mode mode, bool every_open)
{
	if (mode == ZB_LEDGER_WRITES && every_open)
		mode = ZB_LEDGER_OPEN;
	return zb_filter_for(NATIVE, mode);
}
