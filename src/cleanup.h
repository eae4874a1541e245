/* cleanup.h - resources that end with their scope (GCC, clang, MinGW).
 *
 *	zb_auto(free) char *p = NULL;      zb_auto(fd) int fd = -1;
 *	*out = zb_steal(&p);               return zb_steal_fd(&fd);
 *
 * Initialise at declaration, one resource a variable. */
#ifndef ZB_CLEANUP_H
#define ZB_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>

#define zb_auto(kind) __attribute__((cleanup(zb_auto_##kind)))

static inline void zb_auto_free(void *p)
{
	free(*(void **)p);
}

static inline void zb_auto_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

/* Take the pointer out of a zb_auto variable: the caller owns it now. */
#define zb_steal(pp)                                                           \
	__extension__({                                                        \
		__typeof__(*(pp)) zb_stolen = *(pp);                           \
		*(pp) = NULL;                                                  \
		zb_stolen;                                                     \
	})

#define ZB_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
