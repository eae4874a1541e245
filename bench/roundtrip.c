/* roundtrip.c - one frame out, its answer back, one pending: directly, through
 * a byte proxy, through `zotbox wrap` (mediated, sandboxed).
 *
 * The three take turns, so that a slow moment hits all of them. The sizes do
 * not, small ones come first: a megabyte leaves every cache cold and every
 * buffer grown behind it, and that is not what most frames come after.
 *
 * The proxy is started as it would be in the place of wrap. That the sandboxed
 * extension has a session of its own, which the scheduler may treat as a group
 * of its own, is part of what wrap adds.
 *
 * Which CPU each of three processes is woken on is the scheduler's choice, and
 * costs more than all that is measured here; with "one-cpu" there is no choice,
 * and what remains is the work that each variant does. */
#include "config.h"

#include "bench/util.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZES	 3
#define ROUNDS	 40
#define SETTLE_S 8 /* what a start recorded is flushed, by a timer, for 6 s */

struct peer {
	const char *name;
	pid_t pid;
	int in, out;
	unsigned id;
	struct variant v[SIZES];
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

static void start(struct peer *p, char *const *argv)
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		die("pipe");
	fcntl(in[0], F_SETPIPE_SZ, 1 << 20);
	fcntl(out[0], F_SETPIPE_SZ, 1 << 20);
	p->pid = fork();
	if (!p->pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execv(argv[0], argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	p->in = in[1];
	p->out = out[0];
}

static void put(int fd, const char *s, size_t n)
{
	while (n) {
		ssize_t done = write(fd, s, n);

		if (done <= 0)
			die("a peer stopped reading");
		s += done;
		n -= (size_t)done;
	}
}

/* Read one line; its length. */
static size_t line(int fd, char *buf, size_t max)
{
	size_t n = 0;

	do {
		ssize_t k = read(fd, buf + n, max - n);

		if (k <= 0)
			die("a peer ended");
		n += (size_t)k;
	} while (buf[n - 1] != '\n');
	return n;
}

static void handshake(struct peer *p)
{
	static const char ack[] =
		"{\"type\":\"hello_ack\",\"protocol_version\":1,"
		"\"zot_version\":\"0\",\"provider\":\"p\",\"model\":\"m\","
		"\"cwd\":\"/\",\"extension_dir\":\"/\",\"data_dir\":\"/\"}\n";
	static char buf[1 << 16];
	size_t n = line(p->out, buf, sizeof(buf) - 1);

	put(p->in, ack, strlen(ack));
	for (n = 0; !memmem(buf, n, "\"ready\"", 7);)
		n = line(p->out, buf, sizeof(buf) - 1);
}

/* Microseconds for one frame of about @size bytes and its answer. */
static double once(struct peer *p, size_t size, int times)
{
	static char frame[2 << 20], buf[4 << 20];
	int64_t begin = now_ns();

	for (int i = 0; i < times; i++) {
		int n = snprintf(frame, sizeof(frame),
				 "{\"type\":\"tool_call\",\"id\":\"%s%u\","
				 "\"name\":\"t\",\"args\":{\"pad\":\"",
				 "c", ++p->id);
		size_t pad = size > (size_t)n + 4 ? size - (size_t)n - 4 : 1;

		memset(frame + n, 'y', pad);
		memcpy(frame + n + pad, "\"}}\n", 4);
		put(p->in, frame, (size_t)n + pad + 4);
		line(p->out, buf, sizeof(buf));
	}
	return (double)(now_ns() - begin) / 1e3 / times;
}

/* All rounds of one size; the first ones do not count. */
static void measure(struct peer p[3], int s, size_t size, int times)
{
	for (int r = -2; r < ROUNDS; r++)
		for (int i = 0; i < 3; i++) {
			double us = once(&p[i], size, times);

			if (r >= 0)
				p[i].v[s].us[p[i].v[s].n++] = us;
		}
}

/* What stands between is compared with the least that could. */
static void report(const struct peer *p, int s, size_t size, bool one_cpu)
{
	const char *where = one_cpu ? ", all on one CPU" : "";
	const char *suffix = one_cpu ? "_one_cpu" : "";
	static struct variant v[3];
	char title[80], key[40];
	double us;

	for (int i = 0; i < 3; i++) {
		v[i] = p[i].v[s];
		v[i].name = p[i].name;
	}
	us = added(&v[2], &v[1]);
	snprintf(title, sizeof(title), "round trip of %zu bytes%s", size,
		 where);
	print_variants(title, v, 3, 0);
	printf("  zotbox wrap against the byte proxy %30.2f, %+.1f us\n",
	       ratio(&v[2], &v[1]), us);
	snprintf(key, sizeof(key), "trip_%zu%s", size, suffix);
	result(key, ratio(&v[2], &v[1]));
	snprintf(key, sizeof(key), "added_%zu%s", size, suffix);
	result(key, us);
}

/* The last CPU that this process may use; children inherit it. */
static void stay_on_one_cpu(void)
{
	cpu_set_t set, one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(set), &set))
		die("sched_getaffinity");
	for (int i = CPU_SETSIZE - 1; i >= 0 && !CPU_COUNT(&one); i--)
		if (CPU_ISSET(i, &set))
			CPU_SET(i, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		die("sched_setaffinity");
}

int main(int argc, char **argv)
{
	static const size_t sizes[SIZES] = {200, 10000, 1000000};
	static const int times[SIZES] = {400, 200, 10};
	static struct peer p[3];
	char *bare[] = {argv[1], NULL};
	char *proxy[] = {argv[2], argv[1], NULL};
	char *wrap[] = {argv[3], argv[4], argv[5], NULL};
	bool one_cpu = argc > 6 && strcmp(argv[6], "one-cpu") == 0;

	if (argc < 6)
		die("usage: roundtrip ECHO PROXY ZOTBOX wrap NAME [one-cpu]");
	if (one_cpu)
		stay_on_one_cpu();
	signal(SIGPIPE, SIG_IGN);
	p[0].name = "directly";
	p[1].name = "byte proxy";
	p[2].name = "zotbox wrap";
	start(&p[0], bare);
	start(&p[1], proxy);
	start(&p[2], wrap);
	for (int i = 0; i < 3; i++)
		handshake(&p[i]);
	sleep(SETTLE_S);
	for (int s = 0; s < SIZES; s++) {
		measure(p, s, sizes[s], times[s]);
		report(p, s, sizes[s], one_cpu);
	}
	for (int i = 0; i < 3; i++) {
		close(p[i].in);
		close(p[i].out);
		kill(p[i].pid, SIGTERM);
		waitpid(p[i].pid, NULL, 0);
	}
	return 0;
}
