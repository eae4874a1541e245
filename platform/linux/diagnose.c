/* diagnose.c - the steps of a sandbox, one by one.
 *
 * Creating a user namespace is not enough: Ubuntu's AppArmor lets it be made
 * and takes its capabilities away, a container may mask /proc so that no other
 * can be mounted. So each step uses what the one before it gave. */
#include "config.h"

#include "cleanup.h"
#include "fdutil.h"
#include "platform/linux/diagnose.h"

#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIAGNOSE_MS 5000

struct finding {
	int step, sys;
};

/* In the child: tell and end. */
static _Noreturn void found(int fd, enum zb_step step, int sys)
{
	struct finding f = {step, sys};

	_exit(write(fd, &f, sizeof(f)) == sizeof(f) ? 0 : 1);
}

static bool put(const char *path, const char *text)
{
	zb_auto(fd) int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) > 0;
}

static bool map_ids(unsigned uid, unsigned gid)
{
	char u[48], g[48];

	snprintf(u, sizeof(u), "%u %u 1\n", uid, uid);
	snprintf(g, sizeof(g), "%u %u 1\n", gid, gid);
	put("/proc/self/setgroups", "deny");
	return put("/proc/self/uid_map", u) && put("/proc/self/gid_map", g);
}

static bool raise_loopback(void)
{
	zb_auto(fd) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = {.ifr_flags = IFF_UP};

	strcpy(r.ifr_name, "lo");
	return fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &r) == 0;
}

static _Noreturn void last_step(int fd)
{
	if (mount("proc", "/tmp", "proc", MS_NOSUID | MS_NOEXEC | MS_NODEV,
		  NULL) < 0)
		found(fd, ZB_STEP_PROC, errno);
	found(fd, ZB_STEP_NONE, 0);
}

static _Noreturn void steps(int fd)
{
	unsigned uid = geteuid(), gid = getegid();
	const unsigned long slave = MS_SLAVE | MS_REC;
	pid_t pid;

	if (unshare(CLONE_NEWUSER) < 0)
		found(fd, ZB_STEP_USERNS, errno);
	if (!map_ids(uid, gid))
		found(fd, ZB_STEP_IDMAP, errno);
	if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
		    CLONE_NEWUTS | CLONE_NEWCGROUP) < 0)
		found(fd, ZB_STEP_NAMESPACES, errno);
	if (mount("none", "/", NULL, slave, NULL) < 0 ||
	    mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, NULL) < 0)
		found(fd, ZB_STEP_MOUNT, errno);
	if (!raise_loopback())
		found(fd, ZB_STEP_LOOPBACK, errno);
	pid = fork();
	if (pid < 0)
		found(fd, ZB_STEP_NAMESPACES, errno);
	if (pid == 0)
		last_step(fd);
	waitpid(pid, NULL, 0);
	_exit(0);
}

enum zb_step zb_diagnose(int *sys)
{
	struct finding f = {ZB_STEP_UNKNOWN, 0};
	struct pollfd p = {.events = POLLIN};
	int fds[2];
	pid_t pid;

	*sys = 0;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return ZB_STEP_UNKNOWN;
	pid = fork();
	if (pid == 0)
		steps(fds[1]);
	close(fds[1]);
	p.fd = fds[0];
	if (pid > 0 && poll(&p, 1, DIAGNOSE_MS) > 0 &&
	    read(fds[0], &f, sizeof(f)) != sizeof(f))
		f = (struct finding){ZB_STEP_UNKNOWN, 0};
	close(fds[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	*sys = f.sys;
	return (enum zb_step)f.step;
}
