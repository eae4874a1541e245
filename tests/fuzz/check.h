/* check.h - what a fuzz target says when a promise does not hold. */
#ifndef ZB_FUZZ_CHECK_H
#define ZB_FUZZ_CHECK_H

#include "text.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(what)                                                            \
	do {                                                                   \
		if (!(what)) {                                                 \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__,       \
				__LINE__, #what);                              \
			abort();                                               \
		}                                                              \
	} while (0)

/* May this text be shown on a terminal? One line of it. */
static inline bool shows(const char *s, size_t n)
{
	size_t i = 0;
	uint32_t cp;

	while (i < n) {
		unsigned used = zb_utf8_next(s + i, n - i, &cp);

		if (!used || cp == '\n' || cp == '\t' || zb_is_hazard(cp))
			return false;
		i += used;
	}
	return true;
}

#endif
