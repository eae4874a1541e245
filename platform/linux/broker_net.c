/* broker_net.c - connect, bind, sendto with an address, and the sockets that
 * are not to be had.
 *
 * The network namespace is empty but for its own loopback. A connection is
 * never left to the kernel (CONTINUE): it would read the address again, from
 * memory that a second thread may rewrite, and a socket file of the host in a
 * readable directory would answer. The broker connects a duplicate of the
 * caller's socket, which is in the caller's network namespace wherever the
 * thread is, to its own copy of the address; a socket file it reaches through
 * its own descriptor of what it has judged.
 *
 * A server inside sees the broker in SO_PEERCRED: the same user, and pid 0. */
#include "config.h"

#include "platform/linux/broker_int.h"
#include "platform/linux/peer.h"
#include "platform/linux/sockaddr.h"

#include "cleanup.h"
#include "fdutil.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DNS_PORT 53
#define RESERVED 1024 /* ports below need a capability nobody inside has */

/* The caller's socket and the address it gave, both ours by now. */
struct request {
	int fd; /* duplicate */
	int domain, type;
	struct sockaddr_storage raw;
	socklen_t len;
	struct zb_addr addr;
};

static int socket_option(int fd, int name)
{
	int v = -1;
	socklen_t n = sizeof(v);

	return getsockopt(fd, SOL_SOCKET, name, &v, &n) ? -1 : v;
}

static bool get_socket(struct zb_call *c, struct request *q)
{
	q->fd = zb_peer_fd(c->tid, zb_arg_int(c, 0));
	if (q->fd < 0) {
		zb_say_errno(c, EBADF);
		return false;
	}
	q->domain = socket_option(q->fd, SO_DOMAIN);
	q->type = socket_option(q->fd, SO_TYPE);
	if (q->domain >= 0)
		return true;
	zb_say_errno(c, ENOTSOCK);
	return false;
}

/* Copy the address in arguments @at and @at + 1. */
static bool get_address(struct zb_call *c, struct request *q, int at)
{
	int len = zb_arg_int(c, at + 1);
	int rc = -EINVAL;

	if (len >= 0 && (size_t)len <= sizeof(q->raw)) {
		q->len = (socklen_t)len;
		rc = zb_peer_read(c->tid, c->args[at], &q->raw, q->len);
	}
	if (!rc && !zb_addr_decode(&q->raw, q->len, &q->addr))
		rc = -EINVAL;
	if (rc)
		zb_say_errno(c, -rc);
	return !rc;
}

/* Is a UDP socket bound to @port in the caller's network namespace? */
static bool has_udp_port(int tid, unsigned port)
{
	static const char *const lists[] = {"udp", "udp6"};

	for (size_t i = 0; i < ZB_ARRAY_LEN(lists); i++) {
		char path[64], line[512];
		zb_auto(file) FILE *f = NULL;

		snprintf(path, sizeof(path), "/proc/%d/net/%s", tid, lists[i]);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f)) {
			unsigned p;

			if (sscanf(line, "%*s %*[0-9A-Fa-f]:%x", &p) == 1 &&
			    p == port)
				return true;
		}
	}
	return false;
}

static bool is_dns(const struct request *q)
{
	return q->addr.port == DNS_PORT && q->type == SOCK_DGRAM;
}

/* May the kernel try? Only loopback leads anywhere, and a question to a name
 * server only if the extension runs one. */
static bool is_inside(const struct zb_call *c, const struct request *q)
{
	return q->addr.loopback &&
	       (!is_dns(q) || has_udp_port(c->tid, DNS_PORT));
}

static void refuse(struct zb_call *c, const struct request *q, enum zb_op op,
		   int err, enum zb_ask ask, enum zb_evidence ev)
{
	struct zb_query query = {.op = op, .target = q->addr.text, .place = -1};

	zb_refuse(c, &(struct zb_refusal){
			     .op = op,
			     .asked = q->addr.text,
			     .target = q->addr.text,
			     .place = -1,
			     .ask = ask,
			     .err = err,
			     .evidence = ev,
			     .why = zb_ask(c->b, &query) == ZB_DENY
					    ? NULL
					    : "nothing leads out of this "
					      "sandbox's network",
		     });
}

static void refuse_outside(struct zb_call *c, const struct request *q)
{
	refuse(c, q, is_dns(q) ? ZB_OP_NET_DNS : ZB_OP_NET_CONNECT, ENETUNREACH,
	       ZB_ASK_NOTHING, ZB_EV_DECIDED);
}

/* Connect the duplicate. Return: 0, an errno, or -1 if nothing is to be said
 * now. A stream may wait for its server to accept, and whether it does can be
 * changed by a second thread at any time: so never on the notify thread. */
static int attempt(struct zb_call *c, const struct request *q,
		   const struct sockaddr *to, socklen_t len)
{
	if (q->type != SOCK_DGRAM && zb_say_later(c))
		return -1;
	if (!zb_may_act(c))
		return -1;
	for (;;) {
		if (!connect(q->fd, to, len))
			return 0;
		if (errno != EINTR)
			return errno;
		/* The signal that ends a wait nobody waits for. */
		if (!zb_call_again(c)) {
			c->said = ZB_SAID_SENT;
			return -1;
		}
	}
}

static void say(struct zb_call *c, int e)
{
	if (e > 0)
		zb_say_errno(c, e);
	else if (!e)
		c->said = ZB_SAID_VALUE, c->value = 0;
}

/* A connection that does not block fails later, where the caller looks for
 * it; on loopback it has failed already. */
static bool has_failed(const struct request *q)
{
	struct pollfd p = {.fd = q->fd, .events = POLLOUT};

	return poll(&p, 1, 0) == 1 && p.revents & POLLERR;
}

static void connect_inet(struct zb_call *c, const struct request *q)
{
	int e;

	if (q->addr.kind == ZB_ADDR_INET && !is_inside(c, q)) {
		refuse_outside(c, q);
		return;
	}
	e = attempt(c, q, (const struct sockaddr *)&q->raw, q->len);
	say(c, e);
	if (q->type == SOCK_DGRAM || q->addr.kind != ZB_ADDR_INET)
		return;
	if (e == ECONNREFUSED)
		refuse(c, q, ZB_OP_NET_CONNECT, e, ZB_ASK_NOTHING,
		       ZB_EV_DECIDED);
	else if (e == EINPROGRESS && has_failed(q))
		refuse(c, q, ZB_OP_NET_CONNECT, ECONNREFUSED, ZB_ASK_NOTHING,
		       ZB_EV_OBSERVED);
	say(c, e);
}

static void connect_path(struct zb_call *c, const struct request *q)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct zb_spot *f = &c->found;
	int rc;

	c->acts = true;
	strcpy(c->asked, q->addr.text);
	rc = zb_spell(&c->b->jail, c->tid, AT_FDCWD, c->asked, c->full);
	if (rc) {
		zb_say_errno(c, -rc);
		return;
	}
	if (!zb_locate(c, ZB_OP_NET_UNIX, c->asked, c->full, true,
		       ZB_ASK_EXISTS, f))
		return;
	if (!S_ISSOCK(f->mode)) {
		zb_say_errno(c, ECONNREFUSED);
		return;
	}
	if (zb_judge(c, ZB_OP_NET_UNIX, f) == ZB_DENY) {
		zb_refuse_found(c, ZB_OP_NET_UNIX, f, c->asked, ZB_ASK_NOTHING);
		return;
	}
	zb_fd_link(f->fd, to.sun_path);
	say(c, attempt(c, q, (const struct sockaddr *)&to, sizeof(to)));
}

static void connect_unix(struct zb_call *c, const struct request *q)
{
	int e;

	if (q->addr.kind == ZB_ADDR_PATH) {
		connect_path(c, q);
		return;
	}
	e = attempt(c, q, (const struct sockaddr *)&q->raw, q->len);
	say(c, e);
	/* Abstract names belong to the network namespace. The host's own list
	 * tells whether somebody was meant. */
	if (e == ECONNREFUSED && q->addr.kind == ZB_ADDR_ABSTRACT)
		refuse(c, q, ZB_OP_NET_UNIX, e, ZB_ASK_ABSTRACT, ZB_EV_DECIDED);
}

void zb_call_connect(struct zb_call *c)
{
	struct request q = {.fd = -1};

	if (get_socket(c, &q) && get_address(c, &q, 1)) {
		if (q.domain == AF_INET || q.domain == AF_INET6)
			connect_inet(c, &q);
		else if (q.domain == AF_UNIX)
			connect_unix(c, &q);
		else
			say(c,
			    attempt(c, &q, (struct sockaddr *)&q.raw, q.len));
	}
	if (q.fd >= 0)
		close(q.fd);
}

/* Bind the duplicate to @to. */
static void bind_here(struct zb_call *c, const struct request *q,
		      const struct sockaddr *to, socklen_t len)
{
	if (zb_may_act(c))
		zb_say_result(c, bind(q->fd, to, len));
}

static void bind_name(struct zb_call *c, const struct request *q,
		      const struct zb_name *n)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	char link[ZB_FD_LINK];

	zb_fd_link(n->dir->fd, link);
	if (snprintf(to.sun_path, sizeof(to.sun_path), "%s/%s", link,
		     n->name) >= (int)sizeof(to.sun_path)) {
		zb_say_errno(c, ENAMETOOLONG);
		return;
	}
	zb_take_umask(c);
	bind_here(c, q, (const struct sockaddr *)&to, sizeof(to));
}

/* In a private place the kernel binds, so that getsockname(2) gives the path
 * as the caller spelled it. An address rewritten meanwhile gains nothing:
 * mounts and Landlock say where socket files can be made, and a network
 * address is one of the empty namespace. */
static void bind_path(struct zb_call *c, const struct request *q)
{
	struct zb_name n;
	int rc;

	strcpy(c->asked, q->addr.text);
	rc = zb_spell(&c->b->jail, c->tid, AT_FDCWD, c->asked, c->full);
	if (rc) {
		zb_say_errno(c, -rc);
		return;
	}
	if (zb_is_to_make(c, &n))
		bind_name(c, q, &n);
}

void zb_call_bind(struct zb_call *c)
{
	struct request q = {.fd = -1};

	if (get_socket(c, &q) && get_address(c, &q, 1)) {
		if (q.domain == AF_UNIX && q.addr.kind == ZB_ADDR_PATH)
			bind_path(c, &q);
		/* Owning the namespace, the broker could; its caller not. */
		else if (q.addr.kind == ZB_ADDR_INET && q.addr.port &&
			 q.addr.port < RESERVED)
			zb_say_errno(c, EACCES);
		else
			bind_here(c, &q, (struct sockaddr *)&q.raw, q.len);
	}
	if (q.fd >= 0)
		close(q.fd);
}

/* sendto with an address. What stays inside goes on in the kernel: no address
 * leads out, whatever it is by then. What would not is named. */
void zb_call_sendto(struct zb_call *c)
{
	struct request q = {.fd = -1};

	if (!get_address(c, &q, 4))
		return;
	if (q.addr.kind != ZB_ADDR_INET) {
		zb_say_continue(c);
		return;
	}
	if (!get_socket(c, &q))
		return;
	if (is_inside(c, &q))
		zb_say_continue(c);
	else
		refuse_outside(c, &q);
	close(q.fd);
}

/* Only sockets that are not to be had are seen here. */
void zb_call_socket(struct zb_call *c)
{
	int domain = zb_arg_int(c, 0);
	char room[24], text[64];

	snprintf(text, sizeof(text), "%s %s", c->row->name,
		 zb_family_name(domain, room));
	if (domain == AF_UNIX) {
		zb_refuse(c, &(struct zb_refusal){
				     .op = ZB_OP_NET_UNIX,
				     .asked = text,
				     .target = "AF_UNIX datagram socket",
				     .place = -1,
				     .err = EPERM,
				     .why = "a datagram could be sent to any "
					    "socket file in sight",
			     });
		return;
	}
	zb_refuse_call(c, text);
}
