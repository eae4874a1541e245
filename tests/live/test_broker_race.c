/* test_broker_race.c - a second thread changes the path of an open while it
 * is decided; and what deciding costs.
 *
 * The control is a supervisor that looks at the path and lets the call go on:
 * with it, some opens of the denied file get through. */
#include "config.h"

#include "box.h"
#include "race.h"

#include "cleanup.h"
#include "fdutil.h"
#include "platform/linux/notify.h"
#include "platform/linux/peer.h"

#include <poll.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define CONTROL_OPENS 20000
#define OPENS	      100000
#define ROUNDS	      15
#define PER_ROUND     400

static struct box box;

/* In the child: hand out a listener for openat, wait, race. */
static _Noreturn void racer(int sock, const char *good, const char *bad)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	struct race_result r = {0};
	int fd;
	char go;

	if (!ctx ||
	    seccomp_rule_add(ctx, SCMP_ACT_NOTIFY, SCMP_SYS(openat), 0) ||
	    seccomp_load(ctx))
		_exit(2);
	fd = seccomp_notify_fd(ctx);
	if (write(sock, &fd, sizeof(fd)) != sizeof(fd) ||
	    read(sock, &go, 1) != 1)
		_exit(2);
	race_swap(CONTROL_OPENS, good, bad, &r);
	if (write(sock, &r, sizeof(r)) != sizeof(r))
		_exit(2);
	_exit(0);
}

static void naive(int listener)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};
	struct seccomp_notif n;
	char path[4096];

	while (poll(&p, 1, 5000) > 0 && p.revents & POLLIN) {
		if (zb_notify_recv(listener, &n))
			continue;
		if (zb_peer_string((int)n.pid, n.data.args[1], path,
				   sizeof(path)) < 0 ||
		    strstr(path, ".env"))
			zb_notify_errno(listener, n.id, EACCES);
		else
			zb_notify_continue(listener, n.id);
	}
}

static void control(const char *good, const char *bad)
{
	struct race_result r = {0};
	zb_auto(fd) int listener = -1;
	int pair[2], fd = -1;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return;
	pid = fork();
	if (!pid)
		racer(pair[1], good, bad);
	close(pair[1]);
	if (read(pair[0], &fd, sizeof(fd)) == sizeof(fd))
		listener = zb_peer_fd(pid, fd);
	if (listener >= 0 && write(pair[0], "g", 1) == 1) {
		zb_notify_sync_wake_up(listener);
		naive(listener);
	}
	if (read(pair[0], &r, sizeof(r)) != sizeof(r))
		r.bad = 0;
	close(pair[0]);
	waitpid(pid, NULL, 0);
	tap_ok(r.bad > 0,
	       "control: looking and letting go on lets %d of %d through",
	       r.bad, CONTROL_OPENS);
}

/* Without a sandbox the number is what it is when the kernel looks. */
static void control_of_numbers(const char *good, const char *bad)
{
	struct race_result r = {0};

	race_fds(CONTROL_OPENS, good, bad, &r);
	tap_ok(r.bad > 0 && r.good > 0,
	       "control: of descriptors that change places %d of %d are the "
	       "other file",
	       r.bad, CONTROL_OPENS);
}

static void attempts(const char *good, const char *bad)
{
	int seen, n;

	n = (int)box_tell(&box, &seen, NULL, "swap %d %s %s", OPENS, good, bad);
	tap_ok(!n && seen > 0,
	       "a path rewritten in memory: %d of %d opens through, %d of the "
	       "other file",
	       n, OPENS, seen);
	n = (int)box_tell(&box, &seen, NULL, "links %d %s %s %s", 3000,
			  box_path("data/l"), good, bad);
	tap_ok(!n && seen > 0,
	       "links that change places: %d of 3000 opens through, %d of the "
	       "other file",
	       n, seen);
	tap_ok(box_denied(&box, ZB_OP_FS_READ, bad),
	       "and those that were seen are recorded");
	box_forget(&box);
	n = (int)box_tell(&box, &seen, NULL, "numbers %d %s %s", CONTROL_OPENS,
			  good, bad);
	tap_ok(!n && seen > 0,
	       "descriptors that change places: %d of %d opens through, %d of "
	       "the other file",
	       n, CONTROL_OPENS, seen);
	tap_ok(box_denied(&box, ZB_OP_FS_READ, bad),
	       "and those that were seen are recorded");
	box_forget(&box);
}

/* The same probe outside, for the price without any sandbox. */
struct outside {
	FILE *in, *out;
	pid_t pid;
};

static void start_outside(struct outside *o)
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		exit(99);
	o->pid = fork();
	if (!o->pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(box_path("ext/probe"), "probe", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	o->in = fdopen(in[1], "w");
	o->out = fdopen(out[0], "r");
}

static double ns_outside(struct outside *o, const char *path)
{
	unsigned long long ns = 0;
	int n = 0;

	fprintf(o->in, "opens %d %s\n", PER_ROUND, path);
	fflush(o->in);
	if (fscanf(o->out, "%d 0 %llu", &n, &ns) != 2 || n != PER_ROUND)
		return 0;
	return (double)ns / PER_ROUND;
}

static double ns_inside(const char *verb, const char *path)
{
	char rest[256];

	box_tell(&box, NULL, rest, "%s %d %s", verb, PER_ROUND, path);
	return strtod(rest, NULL) / PER_ROUND;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof(*v), by_value);
	return v[ROUNDS / 2];
}

static void price(const char *brokered, const char *left)
{
	double bare[ROUNDS], cont[ROUNDS], inj[ROUNDS], deny[ROUNDS];
	double x_cont[ROUNDS], x_inj[ROUNDS];
	struct outside o;
	double x;

	start_outside(&o);
	for (int i = 0; i < ROUNDS; i++) {
		bare[i] = ns_outside(&o, left);
		cont[i] = ns_inside("opens", left);
		inj[i] = ns_inside("opens", brokered);
		deny[i] = ns_inside("opens", box_path("hidden/none"));
		x_cont[i] = cont[i] / bare[i];
		x_inj[i] = inj[i] / bare[i];
	}
	fclose(o.in);
	fclose(o.out);
	waitpid(o.pid, NULL, 0);
	tap_note("open and close: bare %.1f us, watched %.1f us, by the broker "
		 "%.1f us, absent %.1f us",
		 median(bare) / 1000, median(cont) / 1000, median(inj) / 1000,
		 median(deny) / 1000);
	x = median(x_cont);
	tap_note("ratios: watched %.1fx, by the broker %.1fx", x,
		 median(x_inj));
	if (getenv("ZB_SANITIZED"))
		tap_ok(true, "price # SKIP sanitized");
	else
		/* the best round: the others say how busy the machine is */
		tap_ok(x_cont[0] < 15,
		       "a watched open costs less than 15 bare ones (%.1f)",
		       x_cont[0]);
}

int main(void)
{
	char good[256], bad[256];

	box_file(box_path("proj/good"), "hello\n", 0644);
	box_file(box_path("proj/.env"), "SECRET\n", 0644);
	box_file(box_path("open/f"), "open\n", 0644);
	box_file(box_path("hidden/k"), "SECRET\n", 0644);
	/* Of one length, so that they can overlay each other. */
	snprintf(good, sizeof(good), "%s", box_path("proj/good"));
	snprintf(bad, sizeof(bad), "%s", box_path("proj/.env"));
	box_plan(&box);
	box_place(&box, ZB_PLACE_GRANT, box_path("proj"), box_path("proj"),
		  BOX_READ, true)
		->carved = true;
	box_place(&box, ZB_PLACE_GRANT, box_path("open"), box_path("open"),
		  BOX_READ, true);
	box_deny(&box, box_path("proj/**/.env"));
	control(good, bad);
	control_of_numbers(good, bad);
	box_start(&box);
	attempts(good, bad);
	price(good, box_path("open/f"));
	box_stop(&box);
	return tap_done();
}
