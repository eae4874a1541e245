/* test_broker_net.c - sockets: what stays inside works, what would lead out
 * is refused and named. Real listeners stand outside; each refusal has its
 * control: the same connection from outside is accepted. */
#include "config.h"

#include "box.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static struct box box;

/* Bytes of an address as probe takes them. */
static const char *hex(const void *raw, size_t n)
{
	static char ring[8][300];
	static unsigned at;
	char *out = ring[at++ % 8];
	const unsigned char *p = raw;

	strcpy(out, "b:");
	for (size_t i = 0; i < n; i++)
		sprintf(out + 2 + 2 * i, "%02x", p[i]);
	return out;
}

static struct sockaddr_in v4(const char *host, unsigned port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons((uint16_t)port)};

	inet_pton(AF_INET, host, &a.sin_addr);
	return a;
}

static struct sockaddr_in6 v6(const char *host, unsigned port)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6,
				 .sin6_port = htons((uint16_t)port)};

	inet_pton(AF_INET6, host, &a.sin6_addr);
	return a;
}

/* A path, or "@name". */
static socklen_t un(const char *name, struct sockaddr_un *a)
{
	size_t n = strlen(name);

	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(a->sun_path, name, n);
	if (name[0] != '@')
		return sizeof(*a);
	a->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
}

static int listener(const void *a, socklen_t n)
{
	const struct sockaddr *sa = a;
	int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, sa, n) || listen(fd, 4)) {
		perror("listener");
		exit(99);
	}
	return fd;
}

static bool host_connects(const void *a, socklen_t n)
{
	const struct sockaddr *sa = a;
	int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = connect(fd, sa, n);

	close(fd);
	return !rc;
}

static long in_socket(int family, int type)
{
	return box_tell(&box, NULL, NULL, "call %d %d %d 0", (int)SYS_socket,
			family, type);
}

static int on_fd(int nr, long fd, const void *a, size_t n)
{
	int err;

	box_tell(&box, &err, NULL, "call %d %ld %s %zu", nr, fd, hex(a, n), n);
	return err;
}

static void close_in(long fd)
{
	box_tell(&box, NULL, NULL, "call %d %ld", (int)SYS_close, fd);
}

static int connects(int type, const void *a, size_t n)
{
	const struct sockaddr *sa = a;
	long fd = in_socket(sa->sa_family, type);
	int err = on_fd(SYS_connect, fd, a, n);

	close_in(fd);
	return err;
}

static void tcp(unsigned port)
{
	struct sockaddr_in here = v4("127.0.0.1", port);
	struct sockaddr_in there = v4("10.1.2.3", 443);
	struct sockaddr_in any = v4("0.0.0.0", port);
	struct sockaddr_in6 six = v6("2001:db8::7", 80);
	struct sockaddr_in6 mapped = v6("::ffff:10.1.2.4", 81);
	const struct zb_denial *d;
	char name[64];
	int e, e2;

	snprintf(name, sizeof(name), "127.0.0.1:%u", port);
	tap_ok(host_connects(&here, sizeof(here)),
	       "control: outside the listener answers");
	e = connects(SOCK_STREAM, &here, sizeof(here));
	tap_ok(e == ECONNREFUSED, "inside nobody listens at that address (%d)",
	       e);
	d = box_last(&box, ZB_OP_NET_CONNECT, name);
	tap_ok(d && d->floor == ZB_FLOOR_NETNS &&
		       !strcmp(d->syscall, "connect"),
	       "which is recorded");
	e = connects(SOCK_STREAM, &any, sizeof(any));
	tap_ok(e == ECONNREFUSED, "0.0.0.0 is loopback as well (%d)", e);
	e = connects(SOCK_STREAM, &there, sizeof(there));
	tap_ok(e == ENETUNREACH &&
		       box_denied(&box, ZB_OP_NET_CONNECT, "10.1.2.3:443"),
	       "another host is ENETUNREACH and recorded (%d)", e);
	e = connects(SOCK_STREAM, &six, sizeof(six));
	tap_ok(e == ENETUNREACH &&
		       box_denied(&box, ZB_OP_NET_CONNECT, "[2001:db8::7]:80"),
	       "also by IPv6 (%d)", e);
	e = connects(SOCK_STREAM, &mapped, sizeof(mapped));
	tap_ok(e == ENETUNREACH &&
		       box_denied(&box, ZB_OP_NET_CONNECT, "10.1.2.4:81"),
	       "a mapped address is the v4 one (%d)", e);
	box_forget(&box);
	e = (int)box_tell(&box, &e2, NULL, "refused %u", port);
	d = box_last(&box, ZB_OP_NET_CONNECT, name);
	tap_ok(e == EINPROGRESS && e2 == ECONNREFUSED,
	       "without blocking it fails later, as it should (%d, %d)", e, e2);
	tap_ok(d && d->evidence == ZB_EV_OBSERVED, "and that is recorded too");
	box_forget(&box);
}

/* The extension's own server and client. */
static void own_tcp(void)
{
	struct sockaddr_in a = v4("127.0.0.1", 40123);
	struct sockaddr_in low = v4("127.0.0.1", 80);
	long s = in_socket(AF_INET, SOCK_STREAM), c;
	int e;

	e = on_fd(SYS_bind, s, &a, sizeof(a));
	box_tell(&box, NULL, NULL, "call %d %ld 1", (int)SYS_listen, s);
	tap_ok(!e, "inside: bind (%d)", e);
	c = in_socket(AF_INET, SOCK_STREAM);
	e = on_fd(SYS_connect, c, &a, sizeof(a));
	tap_ok(!e, "connect (%d)", e);
	e = on_fd(SYS_connect, c, &a, sizeof(a));
	tap_ok(e == EISCONN, "twice is EISCONN (%d)", e);
	tap_ok(box_tell(&box, &e, NULL, "call %d %ld 0 0", (int)SYS_accept,
			s) >= 0,
	       "accept (%d)", e);
	close_in(c);
	close_in(s);
	s = in_socket(AF_INET, SOCK_STREAM);
	e = on_fd(SYS_bind, s, &low, sizeof(low));
	tap_ok(e == EACCES, "a reserved port wants a capability (%d)", e);
	close_in(s);
	tap_ok(box_total(&box) == 0, "none of it is a denial");
}

static void udp(void)
{
	struct sockaddr_in dns = v4("192.0.2.53", 53);
	struct sockaddr_in stub = v4("127.0.0.53", 53);
	struct sockaddr_in other = v4("192.0.2.1", 9);
	struct sockaddr_in own = v4("127.0.0.1", 40124);
	long fd;
	int e;

	e = connects(SOCK_DGRAM, &dns, sizeof(dns));
	tap_ok(e == ENETUNREACH &&
		       box_denied(&box, ZB_OP_NET_DNS, "192.0.2.53:53"),
	       "a name server is net.dns (%d)", e);
	e = connects(SOCK_DGRAM, &stub, sizeof(stub));
	tap_ok(e == ENETUNREACH &&
		       box_denied(&box, ZB_OP_NET_DNS, "127.0.0.53:53"),
	       "a local one, that is not there, too (%d)", e);
	fd = in_socket(AF_INET, SOCK_DGRAM);
	box_tell(&box, &e, NULL, "call %d %ld s:x 1 0 %s %zu", (int)SYS_sendto,
		 fd, hex(&other, sizeof(other)), sizeof(other));
	tap_ok(e == ENETUNREACH &&
		       box_denied(&box, ZB_OP_NET_CONNECT, "192.0.2.1:9"),
	       "sendto elsewhere (%d)", e);
	box_forget(&box);
	box_tell(&box, &e, NULL, "call %d %ld s:x 1 0 %s %zu", (int)SYS_sendto,
		 fd, hex(&dns, sizeof(dns)), sizeof(dns));
	tap_ok(e == ENETUNREACH &&
		       box_denied(&box, ZB_OP_NET_DNS, "192.0.2.53:53"),
	       "sendto a name server (%d)", e);
	box_forget(&box);
	box_tell(&box, &e, NULL, "call %d %ld s:x 1 0 %s %zu", (int)SYS_sendto,
		 fd, hex(&own, sizeof(own)), sizeof(own));
	tap_ok(!e && box_total(&box) == 0, "sendto inside goes through (%d)",
	       e);
	close_in(fd);
}

static void unix_paths(const char *granted, const char *hidden)
{
	struct sockaddr_un g, h, own;
	socklen_t ng = un(granted, &g), nh = un(hidden, &h);
	socklen_t no = un("/tmp/own.sock", &own);
	char name[256];
	long s, c;
	int e;

	tap_ok(host_connects(&g, ng) && host_connects(&h, nh),
	       "control: outside both socket files answer");
	e = connects(SOCK_STREAM, &g, ng);
	tap_ok(e == EACCES && box_denied(&box, ZB_OP_NET_UNIX, granted),
	       "one in a granted directory is EACCES and recorded (%d)", e);
	e = connects(SOCK_STREAM, &h, nh);
	tap_ok(e == ENOENT && box_denied(&box, ZB_OP_NET_UNIX, hidden),
	       "a hidden one is ENOENT and recorded (%d)", e);
	box_forget(&box);
	un("/tmp/none.sock", &h);
	e = connects(SOCK_STREAM, &h, nh);
	tap_ok(e == ENOENT && box_total(&box) == 0,
	       "one that nobody has is no denial (%d)", e);
	s = in_socket(AF_UNIX, SOCK_STREAM);
	e = on_fd(SYS_bind, s, &own, no);
	box_tell(&box, NULL, NULL, "call %d %ld 1", (int)SYS_listen, s);
	tap_ok(!e, "its own: bind (%d)", e);
	c = in_socket(AF_UNIX, SOCK_STREAM);
	e = on_fd(SYS_connect, c, &own, no);
	tap_ok(!e, "connect (%d)", e);
	e = on_fd(SYS_bind, c, &g, ng);
	tap_ok(e == EINVAL || e == EADDRINUSE || e == EROFS,
	       "bind twice fails (%d)", e);
	close_in(c);
	close_in(s);
	snprintf(name, sizeof(name), "%s2", granted);
	un(name, &g);
	s = in_socket(AF_UNIX, SOCK_STREAM);
	box_forget(&box);
	e = on_fd(SYS_bind, s, &g, ng);
	tap_ok(e == EROFS && box_denied(&box, ZB_OP_FS_CREATE, name),
	       "no socket file is made in a granted directory (%d)", e);
	close_in(s);
	un("/proc/self/cwd/s", &g);
	e = connects(SOCK_STREAM, &g, ng);
	tap_ok(e == EACCES, "nor is one reached through /proc (%d)", e);
	box_forget(&box);
}

static void abstract(const char *there)
{
	struct sockaddr_un a, own, none;
	socklen_t n = un(there, &a), no = un("@zotbox-own", &own);
	socklen_t nn = un("@zotbox-nobody-has-this", &none);
	long s, c;
	int e;

	tap_ok(host_connects(&a, n), "control: outside the name answers");
	e = connects(SOCK_STREAM, &a, n);
	tap_ok(e == ECONNREFUSED && box_denied(&box, ZB_OP_NET_UNIX, there),
	       "an abstract name of the host is refused and recorded (%d)", e);
	box_forget(&box);
	e = connects(SOCK_STREAM, &none, nn);
	tap_ok(e == ECONNREFUSED && box_total(&box) == 0,
	       "one that nobody has is no denial (%d)", e);
	s = in_socket(AF_UNIX, SOCK_STREAM);
	on_fd(SYS_bind, s, &own, no);
	box_tell(&box, NULL, NULL, "call %d %ld 1", (int)SYS_listen, s);
	c = in_socket(AF_UNIX, SOCK_STREAM);
	e = on_fd(SYS_connect, c, &own, no);
	tap_ok(!e, "its own works (%d)", e);
	close_in(c);
	close_in(s);
}

static void kinds(void)
{
	int e;

	box_tell(&box, &e, NULL, "call %d %d %d 0", (int)SYS_socket, AF_UNIX,
		 SOCK_DGRAM);
	tap_ok(e == EPERM && box_denied(&box, ZB_OP_NET_UNIX, NULL),
	       "AF_UNIX datagrams are EPERM (%d)", e);
	box_tell(&box, &e, NULL, "call %d %d %d 0 b:0000000000000000",
		 (int)SYS_socketpair, AF_UNIX, SOCK_DGRAM);
	tap_ok(e == EPERM, "pairs of them too (%d)", e);
	box_tell(&box, &e, NULL, "call %d %d %d 0 b:0000000000000000",
		 (int)SYS_socketpair, AF_UNIX, SOCK_STREAM);
	tap_ok(!e, "stream pairs work (%d)", e);
	box_tell(&box, &e, NULL, "call %d %d %d 0", (int)SYS_socket, AF_VSOCK,
		 SOCK_STREAM);
	tap_ok(e == EPERM && box_denied(&box, ZB_OP_SYSCALL, "socket AF_VSOCK"),
	       "other families are EPERM and named (%d)", e);
	box_forget(&box);
}

static void nonsense(void)
{
	struct sockaddr_in a = v4("127.0.0.1", 1);
	long fd = in_socket(AF_INET, SOCK_STREAM);
	int e;

	e = on_fd(SYS_connect, 99, &a, sizeof(a));
	tap_ok(e == EBADF, "a bad descriptor is EBADF (%d)", e);
	e = on_fd(SYS_connect, 0, &a, sizeof(a));
	tap_ok(e == ENOTSOCK, "a pipe is ENOTSOCK (%d)", e);
	box_tell(&box, &e, NULL, "call %d %ld 1 16", (int)SYS_connect, fd);
	tap_ok(e == EFAULT, "a bad pointer is EFAULT (%d)", e);
	box_tell(&box, &e, NULL, "call %d %ld b:0200 999", (int)SYS_connect,
		 fd);
	tap_ok(e == EINVAL, "a long address is EINVAL (%d)", e);
	box_tell(&box, &e, NULL, "call %d %ld b:0200 -1", (int)SYS_connect, fd);
	tap_ok(e == EINVAL, "a negative length too (%d)", e);
	for (int n = 0; n < 128; n++)
		box_tell(&box, &e, NULL, "call %d %ld b:01002f746d70 %d",
			 (int)(n % 2 ? SYS_bind : SYS_connect), fd, n);
	close_in(fd);
	box_forget(&box);
}

/* A second thread rewrites the address of a connect to its own socket. */
static void rewritten(const char *granted, int host)
{
	struct sockaddr_un own;
	socklen_t no = un("/tmp/race.sock", &own);
	long s = in_socket(AF_UNIX, SOCK_STREAM), n;
	int through = 0, fd;

	on_fd(SYS_bind, s, &own, no);
	box_tell(&box, NULL, NULL, "call %d %ld 4000", (int)SYS_listen, s);
	fcntl(host, F_SETFL, O_NONBLOCK);
	while ((fd = accept4(host, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		close(fd);
	n = box_tell(&box, NULL, NULL, "knock 5000 /tmp/race.sock %s", granted);
	while ((fd = accept4(host, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		close(fd);
		through++;
	}
	tap_ok(n > 0 && !through,
	       "a rewritten address reaches nobody outside (%ld inside, %d "
	       "outside)",
	       n, through);
	close_in(s);
	box_forget(&box);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Connects that wait for a full server must stop neither the broker nor its
 * end. */
static void waiting(void)
{
	double t;
	int e;

	box_tell(&box, &e, NULL, "clog 6");
	t = seconds();
	tap_ok(box_tell(&box, &e, NULL, "run /usr/bin/true") == 0 &&
		       seconds() - t < 2,
	       "connects that wait do not hold up the rest");
	t = seconds();
	box_stop(&box);
	tap_ok(seconds() - t < 5, "nor the end (%.1f s)", seconds() - t);
}

int main(void)
{
	struct sockaddr_un g, h, ab;
	struct sockaddr_in tcp_addr = v4("127.0.0.1", 0);
	char granted[108], hidden[108], name[64];
	socklen_t n = sizeof(tcp_addr);
	int fds[4];

	box_file(box_path("open/f"), "open\n", 0644);
	box_file(box_path("hidden/k"), "SECRET\n", 0644);
	snprintf(granted, sizeof(granted), "%s", box_path("open/s.sock"));
	snprintf(hidden, sizeof(hidden), "%s", box_path("hidden/s.sock"));
	snprintf(name, sizeof(name), "@zotbox-test-%d", (int)getpid());
	fds[0] = listener(&g, un(granted, &g));
	fds[1] = listener(&h, un(hidden, &h));
	fds[2] = listener(&ab, un(name, &ab));
	fds[3] = listener(&tcp_addr, n);
	getsockname(fds[3], (struct sockaddr *)&tcp_addr, &n);
	box_plan(&box);
	box_place(&box, ZB_PLACE_GRANT, box_path("open"), box_path("open"),
		  BOX_READ, true);
	box_start(&box);
	tcp(ntohs(tcp_addr.sin_port));
	own_tcp();
	udp();
	unix_paths(granted, hidden);
	abstract(name);
	kinds();
	nonsense();
	rewritten(granted, fds[0]);
	waiting();
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	return tap_done();
}
