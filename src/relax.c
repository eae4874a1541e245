/* relax.c - see relax.h. */
#include "relax.h"

#define RELAX_MS 2000

static void on_relax(uv_timer_t *t)
{
	struct zb_relax *r = (struct zb_relax *)t;

	if (!*r->busy)
		zb_framer_relax(r->framer);
}

void zb_relax_init(struct zb_relax *r, uv_loop_t *loop,
		   struct zb_framer *framer, const bool *busy)
{
	uv_timer_init(loop, &r->timer);
	uv_unref((uv_handle_t *)&r->timer);
	r->framer = framer;
	r->busy = busy;
}

void zb_relax_after_read(struct zb_relax *r)
{
	uv_handle_t *h = (uv_handle_t *)&r->timer;

	if (!zb_framer_is_large(r->framer) || uv_is_closing(h))
		return;
	if (zb_framer_is_past_large(r->framer) && !*r->busy) {
		zb_framer_relax(r->framer);
		uv_timer_stop(&r->timer);
	} else if (!uv_is_active(h)) {
		uv_timer_start(&r->timer, on_relax, RELAX_MS, 0);
	}
}
