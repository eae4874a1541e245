/* test_memory.c - what a start leaves is given back, and nothing else. */
#include "config.h"

#include "memory.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define DEEP  (40 << 10)
#define TABLE (32 << 10)

static uintptr_t page_of(const volatile void *p)
{
	return (uintptr_t)p & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

static bool is_resident(uintptr_t page)
{
	unsigned char there = 0;

	assert_int_equal(mincore((void *)page, 1, &there), 0);
	return there & 1;
}

/* A start: deep calls, here one with a large frame. */
static uintptr_t __attribute__((noinline)) go_deep(void)
{
	volatile char room[DEEP];

	for (size_t i = 0; i < sizeof(room); i += 256)
		room[i] = 1;
	return page_of(&room[256]);
}

/* Whose are stack and heap? A sanitizer's are not told here. */
static bool are_ours(void)
{
#ifdef __GLIBC__
	return !getenv("ZB_SANITIZED");
#else
	return false;
#endif
}

static void spent_stack_goes(void **state)
{
	char kept[512];
	uintptr_t deep;

	(void)state;
	memset(kept, 7, sizeof(kept));
	deep = go_deep();
	assert_true(is_resident(deep));
	zb_memory_settle();
	assert_false(is_resident(deep));
	for (size_t i = 0; i < sizeof(kept); i++)
		assert_int_equal(kept[i], 7);
	assert_int_equal(go_deep(), deep); /* and is there again */
}

static void tables_of_a_start_are_sparse(void **state)
{
	char *begun, *settled;

	(void)state;
	zb_memory_share();
	zb_memory_begin();
	begun = calloc(1, TABLE);
	assert_non_null(begun);
	assert_false(is_resident(page_of(begun + TABLE / 2)));
	begun[TABLE - 1] = 7;
	zb_memory_settle();
	assert_int_equal(begun[TABLE - 1], 7);
	/* Lines that pass use the heap again. */
	settled = malloc(TABLE);
	assert_non_null(settled);
	assert_int_equal(mallinfo2().hblks, 1);
	free(settled);
	free(begun);
	assert_int_equal(mallinfo2().hblks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spent_stack_goes),
		cmocka_unit_test(tables_of_a_start_are_sparse),
	};

	if (!are_ours()) {
		puts("1..0 # SKIP stack and heap are another's");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
