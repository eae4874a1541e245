/* backend_native.c - the backend this program was built for, and the one
 * struct that all of them fill. */
#include "config.h"

#include "backend.h"

#include <stdlib.h>
#include <string.h>

const struct zb_backend *zb_backend_native(void)
{
#if defined(__linux__)
	return &zb_backend_bubblewrap;
#elif defined(__APPLE__)
	return &zb_backend_seatbelt;
#else
	return &zb_backend_appcontainer;
#endif
}

void zb_host_done(struct zb_host *h)
{
	for (size_t i = 0; i < h->n_missing; i++) {
		free(h->missing[i].what);
		free(h->missing[i].why);
		free(h->missing[i].remedy);
	}
	free(h->missing);
	zb_strv_done(&h->blind_spots);
	zb_strv_done(&h->facts);
	free(h->bwrap);
	memset(h, 0, sizeof(*h));
}
