/* changes.c - the same work in a directory that is granted for writing, where
 * the broker makes each change, and in the private HOME, where the kernel does;
 * in one sandbox, in turn. And bare.
 *
 *	changes EXTENSION PROJECT SCOPE
 *
 * The program of EXTENSION is `work` (work.c), with a directory in HOME and
 * PROJECT as its arguments. */
#include "config.h"

#include "bench/box.h"
#include "bench/util.h"
#include "cleanup.h"

#include <signal.h>
#include <unistd.h>

enum {
	BARE,
	PLAIN,
	CARVED,
	VARIANTS
};

static const struct kind {
	const char *name, *title;
} kinds[] = {
	{"files", "500 files made, written, renamed over, removed"},
	{"build", "as a build: 2000 files written and read"},
	{"commit", "git: 50 changed files added and committed"},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void add(struct variant *v, double us)
{
	if (v->n < ROUNDS_MAX)
		v->us[v->n++] = us;
}

/* Read what one run says; bare counts what was done in the project. */
static void collect(struct running *r, bool bare,
		    struct variant v[KINDS][VARIANTS])
{
	FILE *f = fdopen(dup(r->fds[1]), "r");
	char name[16], text[512];
	ssize_t n;
	int dir;
	long long ns;

	while (f && fscanf(f, "%15s %d %lld", name, &dir, &ns) == 3)
		for (size_t k = 0; k < KINDS; k++) {
			if (strcmp(name, kinds[k].name) != 0)
				continue;
			if (!bare)
				add(&v[k][dir ? CARVED : PLAIN],
				    (double)ns / 1e3);
			else if (dir)
				add(&v[k][BARE], (double)ns / 1e3);
		}
	if (f)
		fclose(f);
	while ((n = read(r->fds[2], text, sizeof(text))) > 0)
		fwrite(text, 1, (size_t)n, stderr);
	finish(r);
}

int main(int argc, char **argv)
{
	static struct variant v[KINDS][VARIANTS];
	struct subject s = {.name = "changes"};
	struct zb_store store = {0};
	struct zb_host host = {0};
	struct zb_error err = {0};

	signal(SIGPIPE, SIG_IGN);
	if (argc != 4 || zb_store_open(&store, &err) ||
	    zb_backend_native()->look(&host, &err))
		die("host", &err);
	prepare_as(&s, &store,
		   &(struct zb_target){.path = argv[1],
				       .project = argv[2],
				       .scope = argv[3],
				       .mean_it = true});
	for (int i = 0; i < 4; i++) {
		struct running run;

		start_bare(&s, &run);
		collect(&run, true, v);
		start_ours(&s, &host, &run);
		zb_prepared_started(&s.p); /* else no name would be changed */
		collect(&run, false, v);
	}
	for (size_t k = 0; k < KINDS; k++) {
		zb_auto(free) char *key = zb_strf("carved_%s", kinds[k].name);

		v[k][BARE].name = "bare";
		v[k][PLAIN].name = "in the private HOME";
		v[k][CARVED].name = "in a directory granted for writing";
		if (!v[k][CARVED].n)
			die("the program said nothing", NULL);
		print_variants(kinds[k].title, v[k], VARIANTS, PLAIN);
		result(key, ratio(&v[k][CARVED], &v[k][PLAIN]));
	}
	unprepare(&s);
	zb_host_done(&host);
	zb_store_done(&store);
	return 0;
}
