/* util.h - time, medians and child processes for the benchmarks. */
#ifndef ZB_BENCH_UTIL_H
#define ZB_BENCH_UTIL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
	double us[512];
	size_t n;
};

/* Ratios are taken round by round against variant @base, then the median:
 * a slow moment of the machine hits both sides of a ratio. */
static inline void print_variants(const char *title, struct variant *v,
				  size_t n, size_t base, const char *unit)
{
	printf("\n%s\n  %-44s %10s %10s %8s\n", title, "", "min", "median",
	       "x");
	for (size_t i = 0; i < n; i++) {
		double ratio[512], us[512];
		size_t k = v[i].n < v[base].n ? v[i].n : v[base].n;

		if (!k)
			continue;
		for (size_t r = 0; r < k; r++)
			ratio[r] = v[i].us[r] / v[base].us[r];
		memcpy(us, v[i].us, sizeof(double) * v[i].n);
		double mid = median(us, v[i].n);

		printf("  %-44s %8.1f %s %8.1f %s %7.2f\n", v[i].name, us[0],
		       unit, mid, unit, median(ratio, k));
	}
}

#endif
