/* watched.c - what one watched open costs: the program `opens` prints the
 * nanoseconds of each of its rounds; bare and inside, in turn.
 *
 *	watched KEY WHAT DIRECTORY */
#include "config.h"

#include "bench/box.h"
#include "bench/util.h"
#include "cleanup.h"

#include <signal.h>
#include <unistd.h>

#define RUNS 10

/* Every number the program prints, as microseconds. */
static void collect(struct running *r, struct variant *v)
{
	FILE *f = fdopen(dup(r->fds[1]), "r");
	long long ns;

	while (f && fscanf(f, "%lld", &ns) == 1)
		if (v->n < ROUNDS_MAX)
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
	zb_auto(free) char *title = NULL;

	signal(SIGPIPE, SIG_IGN);
	if (argc != 4 || zb_store_open(&store, &err) ||
	    zb_backend_native()->look(&host, &err))
		die("host", &err);
	title = zb_strf("open and close of %s", argv[2]);
	prepare(&s, &store, argv[3]);
	for (int i = 0; i < RUNS; i++) {
		struct running run;

		start_bare(&s, &run);
		collect(&run, &v[0]);
		start_ours(&s, &host, &run);
		collect(&run, &v[1]);
	}
	print_variants(title, v, 2, 0);
	printf("  added by watching %44.1f us\n", added(&v[1], &v[0]));
	result(argv[1], ratio(&v[1], &v[0]));
	unprepare(&s);
	zb_host_done(&host);
	zb_store_done(&store);
	return 0;
}
