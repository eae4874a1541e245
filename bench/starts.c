/* starts.c - from the decision to start to the first byte of output: bare,
 * plain bwrap with the same mounts and namespaces, and ours with every layer.
 * One interleaved run; ratios round by round.
 *
 *	starts ROUNDS [KEY NAME DIRECTORY]... */
#include "config.h"

#include "bench/box.h"
#include "bench/util.h"
#include "cleanup.h"
#include "platform/linux/driver.h"

#include <signal.h>
#include <unistd.h>

#define PREPARES 10

static struct variant v[3] = {
	{.name = "bare posix_spawn"},
	{.name = "plain bwrap, same mounts and namespaces"},
	{.name = "zotbox: every layer, every open watched"}};

/* Until everybody has closed it. */
static void read_to_end(const struct running *r)
{
	char buf[4096];

	while (read(r->fds[1], buf, sizeof(buf)) > 0)
		;
}

/* Return: notifications that the broker took. */
static uint64_t once(const struct subject *s, const struct zb_host *host, int i,
		     double *us)
{
	struct running run;
	uint64_t seen = 0;

	if (i == 0)
		start_bare(s, &run);
	else if (i == 1)
		start_bwrap(s, host->bwrap, &run);
	else
		start_ours(s, host, &run);
	*us = first_byte(&run);
	read_to_end(&run);
	if (run.proc)
		seen = zb_driver_notifications(run.proc);
	finish(&run);
	return seen;
}

static void report(const char *key, const struct subject *s, uint64_t seen,
		   double prepared)
{
	zb_auto(free) char *title =
		zb_strf("start of %s, to its first byte", s->name);
	zb_auto(free) char *to_bare = zb_strf("%s_to_bare", key);
	zb_auto(free) char *to_bwrap = zb_strf("%s_to_bwrap", key);

	print_variants(title, v, 3, 0);
	printf("  zotbox against plain bwrap %38.2f\n", ratio(&v[2], &v[1]));
	printf("  notifications in one start %36llu\n",
	       (unsigned long long)seen);
	printf("  before it: scope, program, plan (zb_prepare) %15.1f us\n",
	       prepared);
	result(to_bare, ratio(&v[2], &v[0]));
	result(to_bwrap, ratio(&v[2], &v[1]));
}

static void measure(const char *key, struct subject *s,
		    const struct zb_host *host, int rounds, double prepared)
{
	uint64_t seen = 0;

	for (int i = 0; i < 3; i++)
		v[i].n = 0;
	for (int r = -2; r < rounds; r++)
		for (int i = 0; i < 3; i++) {
			double us;
			uint64_t n = once(s, host, i, &us);

			seen = n ? n : seen;
			if (r >= 0)
				v[i].us[v[i].n++] = us;
		}
	report(key, s, seen, prepared);
}

/* The median of some; @s keeps the last. */
static double prepared_in(struct subject *s, const struct zb_store *store,
			  const char *dir)
{
	double us[PREPARES];

	for (int i = 0; i < PREPARES; i++) {
		int64_t begin = now_ns();

		if (i)
			unprepare(s);
		prepare(s, store, dir);
		us[i] = (double)(now_ns() - begin) / 1e3;
	}
	return median(us, PREPARES);
}

int main(int argc, char **argv)
{
	struct zb_store store = {0};
	struct zb_host host = {0};
	struct zb_error err = {0};
	int rounds = argc > 1 ? atoi(argv[1]) : 30;

	signal(SIGPIPE, SIG_IGN);
	if (rounds < 1 || rounds > ROUNDS_MAX)
		die("rounds", NULL);
	if (zb_store_open(&store, &err) ||
	    zb_backend_native()->look(&host, &err))
		die("host", &err);
	for (int i = 2; i + 2 < argc; i += 3) {
		struct subject s = {.name = argv[i + 1]};
		double us = prepared_in(&s, &store, argv[i + 2]);

		measure(argv[i], &s, &host, rounds, us);
		unprepare(&s);
	}
	zb_host_done(&host);
	zb_store_done(&store);
	return 0;
}
