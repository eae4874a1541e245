/* notify.c - the raw ioctls of a seccomp listener.
 *
 * libseccomp has wrappers for most of them; it lacks ADDFD and the flags, and
 * hides which errno it got. */
#include "config.h"

#include "platform/linux/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

/* Room for a kernel whose notification is longer than the one we know. */
union notif {
	struct seccomp_notif n;
	char room[512];
};

static int request(int listener, unsigned long cmd, void *arg)
{
	int n;

	do
		n = ioctl(listener, cmd, arg);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

bool zb_notify_usable(void)
{
	struct seccomp_notif_sizes s = {0};

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &s))
		return false;
	return s.seccomp_notif >= sizeof(struct seccomp_notif) &&
	       s.seccomp_notif <= sizeof(union notif) &&
	       s.seccomp_notif_resp == sizeof(struct seccomp_notif_resp);
}

bool zb_notify_sync_wake_up(int listener)
{
	return !ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS,
		      SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

int zb_notify_recv(int listener, struct seccomp_notif *out)
{
	union notif u;

	/* The kernel insists on zeroes. */
	memset(&u, 0, sizeof(u));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &u))
		return -errno;
	*out = u.n;
	return 0;
}

bool zb_notify_valid(int listener, uint64_t id)
{
	return request(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

static int answer(int listener, struct seccomp_notif_resp *r)
{
	return request(listener, SECCOMP_IOCTL_NOTIF_SEND, r);
}

int zb_notify_errno(int listener, uint64_t id, int e)
{
	struct seccomp_notif_resp r = {.id = id, .error = -e};

	return answer(listener, &r);
}

int zb_notify_value(int listener, uint64_t id, int64_t v)
{
	struct seccomp_notif_resp r = {.id = id, .val = v};

	return answer(listener, &r);
}

int zb_notify_continue(int listener, uint64_t id)
{
	struct seccomp_notif_resp r = {
		.id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};

	return answer(listener, &r);
}

int zb_notify_inject(int listener, uint64_t id, int fd, bool cloexec)
{
	struct seccomp_notif_addfd a = {
		.id = id,
		.flags = SECCOMP_ADDFD_FLAG_SEND,
		.srcfd = (unsigned)fd,
		.newfd_flags = cloexec ? O_CLOEXEC : 0,
	};
	int n = request(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &a);

	return n < 0 ? n : 0;
}
