/* notify.h - the raw ioctls of a seccomp listener. Effects.
 *
 * Every function that answers returns 0 or a negative errno; -ENOENT means
 * that the caller has gone meanwhile, which is nobody's fault. EINTR is
 * retried inside. */
#ifndef ZB_NOTIFY_H
#define ZB_NOTIFY_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

/* Does the kernel speak our size of the structures? */
bool zb_notify_usable(void);
/* Ask that waking the other side stays on the CPU (since 6.6). */
bool zb_notify_sync_wake_up(int listener);
/* Take one notification; call it only when poll() says POLLIN. Return: 0,
 * -ENOENT (its caller was killed), -EINTR, or an error that ends the
 * listener. */
int zb_notify_recv(int listener, struct seccomp_notif *out);
/* Does the caller of @id still wait? True also proves that what was read from
 * its memory before belonged to it and not to a later owner of its number. */
bool zb_notify_valid(int listener, uint64_t id);
/* Let the call return -1 with errno @e (positive), or value @v, or run. */
int zb_notify_errno(int listener, uint64_t id, int e);
int zb_notify_value(int listener, uint64_t id, int64_t v);
int zb_notify_continue(int listener, uint64_t id);
/* Put a copy of @fd into the caller and return its number there from the
 * call, in one step. @fd stays ours. */
int zb_notify_inject(int listener, uint64_t id, int fd, bool cloexec);

#endif
