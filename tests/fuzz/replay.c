/* replay.c - a fuzz target as an ordinary test: every file of its committed
 * corpus, and mutations of them from a fixed seed. What a fuzzer once found
 * stays found, on every machine and without libFuzzer.
 *
 * libFuzzer itself writes into the first folder it is given: never run it on
 * the committed corpus, but on a copy. */
#include "buf.h"
#include "cleanup.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MUTATIONS 3000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t rnd(uint32_t *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 8;
}

/* The target gets a block of exactly the right size, so that a sanitizer or
 * valgrind sees a read behind it. */
static void run(const struct zb_buf *b)
{
	uint8_t *p = malloc(b->len ? b->len : 1);

	if (!p)
		abort();
	if (b->len)
		memcpy(p, b->data, b->len);
	LLVMFuzzerTestOneInput(p, b->len);
	free(p);
}

static void mutate(const struct zb_buf *in, struct zb_buf *out, uint32_t *seed)
{
	static const char *const bits[] = {
		"\"",	   "\\",   "{",
		"}",	   "[",	   "]",
		",",	   ":",	   "\n",
		"\\u0000", "\xff", "\xe2\x80\xae",
		"\x1b[",   "0",	   "\xef\xbb\xbf",
		"\\ud83d",
	};
	size_t n = in->len, at = n ? rnd(seed) % (n + 1) : 0;
	const char *bit = bits[rnd(seed) % ZB_ARRAY_LEN(bits)];
	size_t cut = rnd(seed) % 4, rest = at + cut < n ? at + cut : n;

	zb_buf_clear(out);
	zb_buf_add(out, zb_buf_str(in), at);
	switch (rnd(seed) % 3) {
	case 0:
		zb_buf_adds(out, bit);
		break;
	case 1:
		zb_buf_addc(out, (char)rnd(seed));
		break;
	default: /* a piece of itself */
		zb_buf_add(out, zb_buf_str(in), at < 40 ? at : 40);
		break;
	}
	zb_buf_add(out, zb_buf_str(in) + rest, n - rest);
}

static bool load(const char *dir, const char *name, struct zb_buf *out)
{
	zb_auto(free) char *path = zb_strf("%s/%s", dir, name);
	zb_auto(file) FILE *f = path ? fopen(path, "rb") : NULL;
	char chunk[4096];
	size_t n;

	zb_buf_clear(out);
	if (!f)
		return false;
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		zb_buf_add(out, chunk, n);
	return true;
}

static void replay(const char *dir, const char *name, uint32_t seed, int number)
{
	struct zb_buf b = {0}, m = {0}, again = {0};

	if (!load(dir, name, &b)) {
		printf("not ok %d - %s cannot be read\n", number, name);
		return;
	}
	run(&b);
	for (int i = 0; i < MUTATIONS; i++) {
		mutate(&b, &m, &seed);
		run(&m);
		mutate(&m, &again, &seed);
		run(&again);
	}
	printf("ok %d - %s\n", number, name);
	fflush(stdout);
	zb_buf_done(&b);
	zb_buf_done(&m);
	zb_buf_done(&again);
}

int main(void)
{
	const char *src = getenv("ZB_SRC");
	zb_auto(free) char *dir =
		zb_strf("%s/tests/fuzz/corpus/%s", src ? src : ".", ZB_CORPUS);
	struct dirent **list;
	int n = scandir(dir, &list, NULL, alphasort), number = 0;

	alarm(300);
	for (int i = 0; i < n; i++) {
		if (list[i]->d_name[0] != '.')
			replay(dir, list[i]->d_name, (uint32_t)i, ++number);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	if (!number)
		printf("not ok 1 - no corpus in %s\n", dir);
	printf("1..%d\n", number ? number : 1);
	return !number;
}
