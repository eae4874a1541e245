/* probe.c - what a test lets run inside a sandbox: it does, one line at a
 * time, exactly the system calls it is told, and says what came of them.
 *
 *	call NR ARG...	 -> RET ERRNO; an ARG is a number, s:TEXT or b:HEX
 *	read FD		 -> RET ERRNO TEXT
 *	swap N GOOD BAD	 -> how often an open of a path that another thread
 *			    keeps rewriting gave the content of BAD, of GOOD
 *	links N LINK A B -> likewise, another thread exchanging two links
 *	numbers N GOOD BAD -> likewise, of a descriptor that is now of GOOD
 *			    and now of BAD, by its path in /proc
 *	makes N GOOD BAD -> how many files were made at such a path
 *	below N LINK A B NAME -> how many directories LINK/NAME, likewise
 *	opens N PATH	 -> how many of N opens worked, nanoseconds for all
 *	names N PATH	 -> likewise stat
 *	quick N PATH	 -> N children that open PATH and end at once
 *	run COMMAND	 -> status of system(3)
 *	refused PORT	 -> errno of a connect that must fail, by poll(2)
 *	knock N GOOD BAD -> how many of N connects worked, another thread
 *			    rewriting the address
 *	clog N		 -> leave N threads waiting for a server that is full
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "race.h"

static char bytes[6][8192];

static uint64_t hex_arg(const char *s, char *out)
{
	size_t n = 0;

	for (; s[0] && s[1] && n < sizeof(bytes[0]); s += 2) {
		char pair[3] = {s[0], s[1], 0};

		out[n++] = (char)strtoul(pair, NULL, 16);
	}
	return (uint64_t)(uintptr_t)out;
}

static uint64_t argument(const char *s, char *room)
{
	if (s[0] == 's' && s[1] == ':') {
		snprintf(room, sizeof(bytes[0]), "%s", s + 2);
		return (uint64_t)(uintptr_t)room;
	}
	if (s[0] == 'b' && s[1] == ':')
		return hex_arg(s + 2, room);
	return strtoull(s, NULL, 0);
}

static void do_call(char *line)
{
	uint64_t a[7] = {0};
	char *save = NULL, *tok = strtok_r(line, " ", &save);
	long r;

	for (int i = 0; tok && i < 7; i++, tok = strtok_r(NULL, " ", &save))
		a[i] = i ? argument(tok, bytes[i - 1]) : strtoull(tok, NULL, 0);
	errno = 0;
	r = syscall((long)a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
	printf("%ld %d\n", r, r < 0 ? errno : 0);
}

static void do_read(const char *line)
{
	char buf[256];
	ssize_t n = read(atoi(line), buf, sizeof(buf) - 1);

	buf[n > 0 ? n : 0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	printf("%zd %d %s\n", n, n < 0 ? errno : 0, buf);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void do_many(const char *line, int look)
{
	char path[4096];
	int n = 0, ok = 0;
	uint64_t t;

	if (sscanf(line, "%d %4095s", &n, path) != 2)
		n = 0;
	t = now_ns();
	for (int i = 0; i < n; i++) {
		struct stat st;
		int fd;

		if (look) {
			ok += !stat(path, &st);
			continue;
		}
		fd = open(path, O_RDONLY);
		ok += fd >= 0;
		if (fd >= 0)
			close(fd);
	}
	printf("%d 0 %llu\n", ok, (unsigned long long)(now_ns() - t));
}

static void do_quick(const char *line)
{
	char path[4096];
	int n = 0, ok = 0;

	if (sscanf(line, "%d %4095s", &n, path) != 2)
		n = 0;
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (!pid) {
			int fd = open(path, O_RDONLY);

			_exit(fd >= 0);
		}
		ok += pid > 0;
	}
	while (wait(NULL) > 0)
		;
	printf("%d 0\n", ok);
}

static void do_swap(const char *line)
{
	char good[4096], bad[4096];
	struct race_result r = {0};
	int n = 0;

	if (sscanf(line, "%d %4095s %4095s", &n, good, bad) == 3)
		race_swap(n, good, bad, &r);
	printf("%d %d\n", r.bad, r.good);
}

static void do_links(const char *line)
{
	char link[4096], a[4096], b[4096];
	struct race_result r = {0};
	int n = 0;

	if (sscanf(line, "%d %4095s %4095s %4095s", &n, link, a, b) == 4)
		race_links(n, link, a, b, &r);
	printf("%d %d\n", r.bad, r.good);
}

static void do_numbers(const char *line)
{
	char good[4096], bad[4096];
	struct race_result r = {0};
	int n = 0;

	if (sscanf(line, "%d %4095s %4095s", &n, good, bad) == 3)
		race_fds(n, good, bad, &r);
	printf("%d %d\n", r.bad, r.good);
}

static void do_makes(const char *line)
{
	char good[4096], bad[4096];
	int n = 0, made = -1;

	if (sscanf(line, "%d %4095s %4095s", &n, good, bad) == 3)
		made = race_make(n, good, bad);
	printf("%d 0\n", made);
}

static void do_below(const char *line)
{
	char link[4096], a[4096], b[4096], name[256];
	int n = 0, made = -1;

	if (sscanf(line, "%d %4095s %4095s %4095s %255s", &n, link, a, b,
		   name) == 5)
		made = race_make_below(n, link, a, b, name);
	printf("%d 0\n", made);
}

static void do_run(const char *line)
{
	int status = system(line);

	printf("%d 0\n", WIFEXITED(status) ? WEXITSTATUS(status) : 255);
}

static void do_refused(const char *line)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)atoi(line)),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), e = 0;
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(e);
	int rc = connect(fd, (struct sockaddr *)&to, sizeof(to));
	int first = rc ? errno : 0;

	poll(&p, 1, 1000);
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len);
	close(fd);
	printf("%d %d\n", first, e);
}

struct knocking {
	struct sockaddr_un a;
	const char *good, *bad;
	atomic_int stop;
};

static void *rewrite(void *arg)
{
	struct knocking *k = arg;

	while (!atomic_load(&k->stop)) {
		strcpy(k->a.sun_path, k->bad);
		atomic_signal_fence(memory_order_seq_cst);
		strcpy(k->a.sun_path, k->good);
		atomic_signal_fence(memory_order_seq_cst);
	}
	return NULL;
}

static void do_knock(const char *line)
{
	static struct knocking k;
	char good[108], bad[108];
	int n = 0, ok = 0;
	pthread_t t;

	if (sscanf(line, "%d %107s %107s", &n, good, bad) != 3)
		n = 0;
	k = (struct knocking){.good = good, .bad = bad};
	k.a.sun_family = AF_UNIX;
	pthread_create(&t, NULL, rewrite, &k);
	for (int i = 0; i < n; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

		ok += !connect(fd, (struct sockaddr *)&k.a, sizeof(k.a));
		close(fd);
	}
	atomic_store(&k.stop, 1);
	pthread_join(t, NULL);
	printf("%d 0\n", ok);
}

static void *wait_in_line(void *arg)
{
	static struct sockaddr_un a = {AF_UNIX, "/tmp/clog.sock"};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	connect(fd, (struct sockaddr *)&a, sizeof(a));
	return arg;
}

static void do_clog(const char *line)
{
	struct sockaddr_un a = {AF_UNIX, "/tmp/clog.sock"};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), n = atoi(line);
	pthread_t t;

	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 0))
		n = 0;
	for (int i = 0; i < n; i++)
		pthread_create(&t, NULL, wait_in_line, NULL);
	usleep(200000);
	printf("%d 0\n", n);
}

static void obey(char *line)
{
	static const struct {
		const char *verb;
		void (*act)(const char *line);
	} verbs[] = {
		{"read ", do_read},   {"quick ", do_quick},
		{"swap ", do_swap},   {"links ", do_links},
		{"run ", do_run},     {"refused ", do_refused},
		{"knock ", do_knock}, {"clog ", do_clog},
		{"makes ", do_makes}, {"numbers ", do_numbers},
		{"below ", do_below},
	};

	if (!strncmp(line, "call ", 5)) {
		do_call(line + 5);
		return;
	}
	if (!strncmp(line, "opens ", 6) || !strncmp(line, "names ", 6)) {
		do_many(line + 6, line[0] == 'n');
		return;
	}
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		size_t n = strlen(verbs[i].verb);

		if (!strncmp(line, verbs[i].verb, n)) {
			verbs[i].act(line + n);
			return;
		}
	}
	printf("-1 %d\n", ENOSYS);
}

int main(void)
{
	static char line[65536];

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		obey(line);
		fflush(stdout);
	}
	_exit(0); /* no leak check: it wants ptrace */
}
