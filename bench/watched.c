/* watched.c - what one watched open costs: the program `opens` prints the
 * nanoseconds of each of its rounds; bare and inside, in turn. */
#include "config.h"

#include "bench/box.h"
#include "bench/util.h"

#include <signal.h>
#include <unistd.h>

#define RUNS 10

/* Every number the program prints, as microseconds. */
static void collect(struct running *r, struct variant *v)
{
	FILE *f = fdopen(dup(r->fds[1]), "r");
	long long ns;

	while (f && fscanf(f, "%lld", &ns) == 1)
		if (v->n < 512)
			v->us[v->n++] = (double)ns / 1e3;
	if (f)
		fclose(f);
	finish(r);
}

int main(int argc, char **argv)
{
	static struct variant v[2] = {{.name = "bare"},
				      {.name = "watched, inside the sandbox"}};
	struct subject s = {.name = "opens"};
	struct zb_store store = {0};
	struct zb_host host = {0};
	struct zb_error err = {0};

	signal(SIGPIPE, SIG_IGN);
	if (argc < 2 || zb_store_open(&store, &err) ||
	    zb_backend_native()->look(&host, &err))
		die("host", &err);
	prepare(&s, &store, argv[1]);
	for (int i = 0; i < RUNS; i++) {
		struct running run;

		start_bare(&s, &run);
		collect(&run, &v[0]);
		start_ours(&s, &host, &run);
		collect(&run, &v[1]);
	}
	print_variants("open and close of an existing file", v, 2, 0, "us");
	zb_bwrap_args_done(&s.args);
	zb_prepared_done(&s.p);
	zb_host_done(&host);
	zb_store_done(&store);
	return 0;
}
