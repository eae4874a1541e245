/* util.h - time, medians and results for the benchmarks. */
#ifndef ZB_BENCH_UTIL_H
#define ZB_BENCH_UTIL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS_MAX 512

static inline int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts @v. */
static inline double median(double *v, size_t n)
{
	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), by_size);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* One way of doing something, measured in rounds with the others. */
struct variant {
	const char *name;
	double us[ROUNDS_MAX];
	size_t n;
};

static inline size_t rounds_of(const struct variant *a, const struct variant *b)
{
	return a->n < b->n ? a->n : b->n;
}

/* Taken round by round, then the median: a slow moment of the machine hits
 * both sides. */
static inline double ratio(const struct variant *v, const struct variant *base)
{
	size_t n = rounds_of(v, base);
	double r[ROUNDS_MAX];

	for (size_t i = 0; i < n; i++)
		r[i] = v->us[i] / base->us[i];
	return median(r, n);
}

static inline double added(const struct variant *v, const struct variant *base)
{
	size_t n = rounds_of(v, base);
	double d[ROUNDS_MAX];

	for (size_t i = 0; i < n; i++)
		d[i] = v->us[i] - base->us[i];
	return median(d, n);
}

static inline void print_variants(const char *title, const struct variant *v,
				  size_t n, size_t base)
{
	printf("\n%s\n  %-44s %11s %11s %8s\n", title, "", "min", "median",
	       "x");
	for (size_t i = 0; i < n; i++) {
		double us[ROUNDS_MAX], mid;

		if (!v[i].n)
			continue;
		memcpy(us, v[i].us, sizeof(double) * v[i].n);
		mid = median(us, v[i].n);
		printf("  %-44s %8.1f us %8.1f us %7.2f\n", v[i].name, us[0],
		       mid, ratio(&v[i], &v[base]));
	}
}

/* A figure for the summary at the end (run.sh). */
static inline void result(const char *key, double value)
{
	const char *path = getenv("ZB_BENCH_RESULTS");
	FILE *f = path ? fopen(path, "a") : NULL;

	if (f) {
		fprintf(f, "%s %.4f\n", key, value);
		fclose(f);
	}
}

#endif
