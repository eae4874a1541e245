/* golden.h - plans as each system gets them, kept in files beside this one:
 * NAME.linux, NAME.macos, NAME.windows, with what the rules come to there.
 * ZB_UPDATE=1 writes the files anew. Fails the test by itself. */
#ifndef ZB_TEST_GOLDEN_H
#define ZB_TEST_GOLDEN_H

#include "plan.h"

enum {
	GOLDEN_SYSTEMS = 3
};

void golden_compare(const struct zb_plan *plan, const char *name);
/* The text for system @s (below GOLDEN_SYSTEMS): rendered, then each rule. */
void golden_text(const struct zb_plan *plan, size_t s, struct zb_buf *out);
int golden_render(const struct zb_plan *plan, size_t s, struct zb_buf *out,
		  struct zb_error *err);

#endif
