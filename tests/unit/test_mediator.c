/* test_mediator.c - the protocol boundary as conversations: one test a file of
 * tests/unit/transcripts (transcript.h has the language). What a text file
 * cannot say is in test_mediator_bounds.c. */
#include "transcript.h"

#include "cleanup.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void plays(void **state)
{
	zb_transcript_run(*state);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All files of the folder, sorted. */
static void find_transcripts(struct zb_strv *out)
{
	const char *src = getenv("ZB_SRC");
	zb_auto(free) char *path =
		zb_strf("%s/tests/unit/transcripts", src ? src : ".");
	DIR *dir = opendir(path);
	struct dirent *e;

	if (!dir) {
		fprintf(stderr, "no transcripts in %s (ZB_SRC)\n", path);
		exit(1);
	}
	while ((e = readdir(dir))) {
		size_t n = strlen(e->d_name);

		if (n > 4 && strcmp(e->d_name + n - 4, ".txt") == 0)
			zb_strv_addf(out, "%s/%s", path, e->d_name);
	}
	closedir(dir);
	qsort(out->v, out->n, sizeof(*out->v), by_name);
}

int main(void)
{
	struct zb_strv files = {0};
	struct CMUnitTest *tests;
	size_t n = 0;
	int failed;

	find_transcripts(&files);
	tests = calloc(files.n + 1, sizeof(*tests));
	if (!tests || !files.n)
		return 1;
	for (; n < files.n; n++)
		tests[n] = (struct CMUnitTest){
			.name = strrchr(files.v[n], '/') + 1,
			.test_func = plays,
			.initial_state = files.v[n]};
	failed = _cmocka_run_group_tests("mediator", tests, n, NULL, NULL);
	free(tests);
	zb_strv_done(&files);
	return failed != 0;
}
