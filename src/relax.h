/* relax.h - when the memory of a large line goes. Effects; one loop.
 *
 * It is kept for a while, since large lines come in series, and given back when
 * a small one has come and gone, or after two seconds. No timer runs beside
 * small lines: it would make every wait of the loop dearer. */
#ifndef ZB_RELAX_H
#define ZB_RELAX_H

#include "frame.h"

#include <uv.h>

struct zb_relax {
	uv_timer_t timer; /* first; its data is the owner's */
	struct zb_framer *framer;
	const bool *busy; /* a line is in use: not now */
};

/* The timer does not keep the loop alive. @framer and @busy are borrowed. The
 * owner closes the timer. */
void zb_relax_init(struct zb_relax *r, uv_loop_t *loop,
		   struct zb_framer *framer, const bool *busy);
/* After each read, when the lines were taken. */
void zb_relax_after_read(struct zb_relax *r);

#endif
