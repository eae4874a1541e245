/* fdutil.h - descriptors that close with their scope. Effects only: pure
 * modules must not include it. */
#ifndef ZB_FDUTIL_H
#define ZB_FDUTIL_H

#include <errno.h>
#include <unistd.h>

/* For zb_auto(fd): closes unless -1, keeps errno. */
static inline void zb_auto_fd(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

static inline int zb_steal_fd(int *fd)
{
	int n = *fd;

	*fd = -1;
	return n;
}

#endif
