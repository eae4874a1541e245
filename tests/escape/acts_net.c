/* acts_net.c - sockets: of the host's network, of its file system, and of
 * families that are not to be had. */
#include "config.h"

#include "escapist.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef MSG_FASTOPEN
#define MSG_FASTOPEN 0x20000000
#endif
#define ANSWER_MS 1000

static socklen_t inet(const char *ip, const char *port,
		      struct sockaddr_storage *out)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (strchr(ip, ':')) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)number(port));
		inet_pton(AF_INET6, ip, &v6->sin6_addr);
		return sizeof(*v6);
	}
	v4->sin_family = AF_INET;
	v4->sin_port = htons((uint16_t)number(port));
	inet_pton(AF_INET, ip, &v4->sin_addr);
	return sizeof(*v4);
}

/* PATH or @ABSTRACT */
static socklen_t local(const char *name, struct sockaddr_un *out)
{
	size_t n = strlen(name);

	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	if (n >= sizeof(out->sun_path))
		n = sizeof(out->sun_path) - 1;
	memcpy(out->sun_path, name, n);
	if (name[0] != '@')
		return sizeof(*out);
	out->sun_path[0] = '\0';
	return (socklen_t)(sizeof(sa_family_t) + n);
}

/* What the other side says within a while. */
static int listen_to(int fd, struct say *s)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (poll(&p, 1, ANSWER_MS) <= 0)
		return ETIMEDOUT;
	return secret_in(fd, EBADF, s);
}

/* IP PORT */
static int tcp(char **a, struct say *s)
{
	struct sockaddr_storage to;
	socklen_t len = inet(a[0], a[1], &to);
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, len))
		return errno;
	return listen_to(fd, s);
}

/* IP PORT, not waiting */
static int tcp_async(char **a, struct say *s)
{
	struct sockaddr_storage to;
	socklen_t len = inet(a[0], a[1], &to), n = sizeof(int);
	int fd = socket(to.ss_family,
			SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int e = 0;

	if (fd < 0)
		return errno;
	if (connect(fd, (struct sockaddr *)&to, len) && errno != EINPROGRESS)
		return errno;
	if (poll(&p, 1, ANSWER_MS) <= 0)
		return ETIMEDOUT;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &n);
	return e ? e : listen_to(fd, s);
}

/* IP PORT: data with the first packet, and no connect(2) at all. */
static int tcp_fast_open(char **a, struct say *s)
{
	struct sockaddr_storage to;
	socklen_t len = inet(a[0], a[1], &to);
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL,
			     (struct sockaddr *)&to, len) < 0)
		return errno;
	return listen_to(fd, s);
}

/* IP PORT: an address where no filter can look. */
static int tcp_sendmsg(char **a, struct say *s)
{
	struct sockaddr_storage to;
	struct iovec v = {(void *)(size_t) "x", 1};
	struct msghdr m = {.msg_name = &to,
			   .msg_namelen = inet(a[0], a[1], &to),
			   .msg_iov = &v,
			   .msg_iovlen = 1};
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || sendmsg(fd, &m, MSG_FASTOPEN | MSG_NOSIGNAL) < 0)
		return errno;
	return listen_to(fd, s);
}

static int udp_socket(const struct sockaddr_storage *to)
{
	return socket(to->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static int udp_sendto(char **a, struct say *s)
{
	struct sockaddr_storage to;
	socklen_t len = inet(a[0], a[1], &to);
	int fd = udp_socket(&to);

	if (fd < 0 || sendto(fd, "x", 1, 0, (struct sockaddr *)&to, len) < 0)
		return errno;
	return listen_to(fd, s);
}

static int udp_sendmsg(char **a, struct say *s)
{
	struct sockaddr_storage to;
	struct iovec v = {(void *)(size_t) "x", 1};
	struct mmsghdr m = {.msg_hdr = {.msg_name = &to,
					.msg_namelen = inet(a[0], a[1], &to),
					.msg_iov = &v,
					.msg_iovlen = 1}};
	int fd = udp_socket(&to);

	if (fd < 0 ||
	    (sendmsg(fd, &m.msg_hdr, 0) < 0 && sendmmsg(fd, &m, 1, 0) < 0))
		return errno;
	return listen_to(fd, s);
}

/* IP PORT: ask a name server. */
static int dns(char **a, struct say *s)
{
	static const char query[] = "\0\1\1\0\0\1\0\0\0\0\0\0\7example\3com"
				    "\0\0\1\0\1";
	struct sockaddr_storage to;
	socklen_t len = inet(a[0], a[1], &to);
	int fd = udp_socket(&to);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, len) ||
	    send(fd, query, sizeof(query) - 1, 0) < 0)
		return errno;
	return listen_to(fd, s);
}

/* PATH or @ABSTRACT: a server of the host's says a secret. */
static int unix_stream(char **a, struct say *s)
{
	struct sockaddr_un to;
	socklen_t len = local(a[0], &to);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, len))
		return errno;
	return listen_to(fd, s);
}

/* PATH: a server of the host's sends a descriptor. */
static int unix_descriptor(char **a, struct say *s)
{
	struct sockaddr_un to;
	socklen_t len = local(a[0], &to);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u;
	char c[64];
	struct iovec v = {c, sizeof(c)};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = &u,
			   .msg_controllen = sizeof(u)};
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, len))
		return errno;
	if (poll(&p, 1, ANSWER_MS) <= 0 || recvmsg(fd, &m, 0) < 0 ||
	    !CMSG_FIRSTHDR(&m))
		return ENODATA;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return secret_in(fd, EBADF, s);
}

/* TYPE PATH: tell a host's socket something, without any connection. */
static int unix_datagram(char **a, struct say *s)
{
	struct sockaddr_un to;
	struct iovec v = {(void *)(size_t) "intruder", 8};
	struct msghdr m = {.msg_name = &to,
			   .msg_namelen = local(a[1], &to),
			   .msg_iov = &v,
			   .msg_iovlen = 1};
	int pair[2] = {-1, -1}, fd;

	(void)s;
	if (!strcmp(a[0], "pair")) {
		if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair))
			return errno;
		fd = pair[0];
	} else {
		fd = socket(AF_UNIX, number(a[0]) | SOCK_CLOEXEC, 0);
	}
	return fd < 0 || sendmsg(fd, &m, 0) < 0 ? errno : 0;
}

/* FAMILY TYPE PROTOCOL HOW */
static int any_socket(char **a, struct say *s)
{
	(void)s;
	prepare(a[3]);
	return socket(number(a[0]), number(a[1]) | SOCK_CLOEXEC, number(a[2])) <
			       0
		       ? errno
		       : 0;
}

/* ---- an address that changes --------------------------------------------*/

struct swap {
	struct sockaddr_un now, good, bad;
	_Atomic int stop;
};

static void *swap(void *arg)
{
	struct swap *w = arg;

	while (!atomic_load(&w->stop)) {
		memcpy(&w->now, &w->bad, sizeof(w->now));
		atomic_signal_fence(memory_order_seq_cst);
		memcpy(&w->now, &w->good, sizeof(w->now));
		atomic_signal_fence(memory_order_seq_cst);
	}
	return NULL;
}

static void *serve(void *arg)
{
	int fd = *(int *)arg, c;

	while ((c = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		if (write(c, "own", 3) < 0)
			break;
		close(c);
	}
	return NULL;
}

/* N GOOD BAD: connect N times while the address changes between a socket of
 * our own at GOOD and the host's at BAD, which tells secrets. */
static int rewritten_address(char **a, struct say *s)
{
	static struct swap w;
	int own = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), n, got = 0,
	    good = 0, failed = 0;
	pthread_t other, server;
	char buf[64];

	local(a[1], &w.good);
	local(a[2], &w.bad);
	w.now = w.good;
	unlink(a[1]);
	if (bind(own, (struct sockaddr *)&w.good, sizeof(w.good)) ||
	    listen(own, 128))
		return errno;
	if (pthread_create(&server, NULL, serve, &own) ||
	    pthread_create(&other, NULL, swap, &w))
		return EAGAIN;
	for (n = number(a[0]); n > 0 && !got; n--) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		ssize_t len = -1;

		if (!connect(fd, (struct sockaddr *)&w.now, sizeof(w.now)))
			len = read(fd, buf, sizeof(buf));
		close(fd);
		if (len >= 6 && !memcmp(buf, SECRET, 6))
			got++;
		else if (len > 0)
			good++;
		else
			failed++;
	}
	atomic_store(&w.stop, 1);
	pthread_join(other, NULL);
	say(s, "secret=%d good=%d failed=%d", got, good, failed);
	return got ? 0 : EACCES;
}

/* ---- System V and POSIX IPC --------------------------------------------*/

static int semaphore(char **a, struct say *s)
{
	(void)s;
	return semget(number(a[0]), 0, 0) < 0 ? errno : 0;
}

static int shared_memory(char **a, struct say *s)
{
	int id = shmget(number(a[0]), 0, 0);
	const char *p;

	if (id < 0)
		return errno;
	p = shmat(id, NULL, SHM_RDONLY);
	say(s, "%.20s", p == (const char *)-1 ? "" : p);
	return p == (const char *)-1 ? errno : 0;
}

static int message_queue(char **a, struct say *s)
{
	(void)s;
	return mq_open(a[0], O_RDONLY) < 0 ? errno : 0;
}

const struct act acts_net[] = {
	{"tcp", 2, tcp},
	{"tcp-async", 2, tcp_async},
	{"tcp-fast-open", 2, tcp_fast_open},
	{"tcp-sendmsg", 2, tcp_sendmsg},
	{"udp-sendto", 2, udp_sendto},
	{"udp-sendmsg", 2, udp_sendmsg},
	{"dns", 2, dns},
	{"unix-stream", 1, unix_stream},
	{"unix-descriptor", 1, unix_descriptor},
	{"unix-datagram", 2, unix_datagram},
	{"socket", 4, any_socket},
	{"rewritten-address", 3, rewritten_address},
	{"semaphore", 1, semaphore},
	{"shared-memory", 1, shared_memory},
	{"message-queue", 1, message_queue},
	{NULL, 0, NULL},
};
