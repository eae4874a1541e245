/* starts.c - from the decision to start to the first byte of output: bare,
 * plain bwrap with the same mounts and namespaces, and ours with every layer.
 * One interleaved run; ratios round by round. */
#include "config.h"

#include "bench/box.h"
#include "bench/util.h"
#include "cleanup.h"

#include <signal.h>

static void measure(struct subject *s, const struct zb_host *host, int rounds)
{
	static struct variant v[3];
	zb_auto(free) char *title =
		zb_strf("start of %s, to its first byte", s->name);

	memset(v, 0, sizeof(v));
	v[0].name = "bare posix_spawn";
	v[1].name = "plain bwrap, same mounts and namespaces";
	v[2].name = "zotbox: every layer, every open watched";
	for (int r = -2; r < rounds; r++)
		for (int i = 0; i < 3; i++) {
			struct running run;
			double us;

			if (i == 0)
				start_bare(s, &run);
			else if (i == 1)
				start_bwrap(s, host->bwrap, &run);
			else
				start_ours(s, host, &run);
			us = first_byte(&run);
			finish(&run);
			if (r >= 0)
				v[i].us[v[i].n++] = us;
		}
	print_variants(title, v, 3, 0, "us");
	print_variants("  the same against plain bwrap", v + 1, 2, 0, "us");
}

int main(int argc, char **argv)
{
	struct zb_store store = {0};
	struct zb_host host = {0};
	struct zb_error err = {0};
	int rounds = argc > 1 ? atoi(argv[1]) : 30;

	signal(SIGPIPE, SIG_IGN);
	if (zb_store_open(&store, &err) ||
	    zb_backend_native()->look(&host, &err))
		die("host", &err);
	for (int i = 2; i + 1 < argc; i += 2) {
		struct subject s = {.name = argv[i]};

		prepare(&s, &store, argv[i + 1]);
		measure(&s, &host, rounds);
		zb_bwrap_args_done(&s.args);
		zb_prepared_done(&s.p);
	}
	zb_host_done(&host);
	zb_store_done(&store);
	return 0;
}
