/* fdutil.h - descriptors that close with their scope, and whole writes. Effects
 * only: pure modules must not include it. */
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

/* write(2) until all of it is written. Return: 0, or -1 with errno. */
static inline int zb_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

#endif
