/* yes_broker.c - a broker that lets every watched call go on to the kernel.
 * What is refused then is refused by the floor alone: mounts, Landlock,
 * namespaces, the seccomp answers that need nobody. Linked into test_floor in
 * place of the real one. */
#include "config.h"

#include "platform/linux/broker.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct zb_broker {
	int listener, root;
	bool serving;
	pthread_t thread;
};

static void *say_yes(void *arg)
{
	struct zb_broker *b = arg;
	struct pollfd p = {.fd = b->listener, .events = POLLIN};

	for (;;) {
		struct seccomp_notif req = {0};
		struct seccomp_notif_resp resp = {
			.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};

		poll(&p, 1, -1);
		if (!(p.revents & POLLIN))
			return NULL;
		if (ioctl(b->listener, SECCOMP_IOCTL_NOTIF_RECV, &req) < 0)
			continue;
		resp.id = req.id;
		ioctl(b->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	}
}

int zb_broker_start(struct zb_broker **out, const struct zb_broker_config *cfg,
		    struct zb_error *err)
{
	(void)cfg;
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : zb_fail(err, ZB_ELIMIT, "out of memory");
}

int zb_broker_serve(struct zb_broker *b, int listener, int root,
		    struct zb_error *err)
{
	b->listener = listener;
	b->root = root;
	b->serving = !pthread_create(&b->thread, NULL, say_yes, b);
	return b->serving ? 0 : zb_fail(err, ZB_ESYS, "start a thread");
}

void zb_broker_stop(struct zb_broker *b)
{
	if (!b)
		return;
	if (b->serving) {
		pthread_join(b->thread, NULL);
		close(b->listener);
		close(b->root);
	}
	free(b);
}

uint64_t zb_broker_taken(const struct zb_broker *b)
{
	(void)b;
	return 0;
}
