/* probe.c - what this host can do, found by doing it.
 *
 * A start pays for zb_probe_look() only: a few system calls that say which
 * features to use. Whether the sandbox can be made is shown by making it; the
 * full probe makes one with nothing in it (the stage's self test) and, where
 * that fails, takes the steps apart, so that "bwrap is missing", "bwrap is too
 * old", "user namespaces are refused" and "/proc is masked" are told apart and
 * each has its own remedy. No decision hangs on another program's wording. */
#include "config.h"

#include "cleanup.h"
#include "fdutil.h"
#include "platform/linux/diagnose.h"
#include "platform/linux/launch.h"
#include "platform/linux/probe.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif
#define LANDLOCK_VERSION_FLAG 1
#define VERSION_MS	      5000
#define MIN_KERNEL_MAJOR      5
#define MIN_KERNEL_MINOR      14
#define MIN_BWRAP                                                              \
	{                                                                      \
		0, 5, 0                                                        \
	} /* for --perms */

/* ---- gaps ---------------------------------------------------------------*/

static void gap(struct zb_host *h, const char *what, char *why, char *remedy)
{
	struct zb_host_gap *v =
		reallocarray(h->missing, h->n_missing + 1, sizeof(*v));

	if (!v) {
		free(why);
		free(remedy);
		return;
	}
	h->missing = v;
	v[h->n_missing++] = (struct zb_host_gap){zb_strdup(what), why, remedy};
}

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

static const char not_examined[] = "the host could not be examined";

/* Not the host's fault, and no word about it. */
static void short_gap(struct zb_host *h, const char *why)
{
	gap(h, not_examined, zb_strdup(why),
	    zb_strdup("allow this user or this shell more: ulimit -n (open "
		      "files), ulimit -u (processes), ulimit -f (file size)"));
}

/* Append every gap of @h to @err's message, what it says already only with its
 * remedy. */
static void tell_gaps(const struct zb_host *h, struct zb_error *err)
{
	struct zb_buf b = {0};

	if (!err)
		return;
	zb_buf_adds(&b, err->msg);
	for (size_t i = 0; i < h->n_missing; i++) {
		const struct zb_host_gap *g = &h->missing[i];

		if (!strstr(err->msg, or_empty(g->why)))
			zb_buf_addf(&b, "%s%s: %s", b.len ? "\n" : "",
				    or_empty(g->what), or_empty(g->why));
		zb_buf_addf(&b, "\n  remedy: %s", or_empty(g->remedy));
	}
	zb_fail(err, ZB_EUNSUPPORTED, "%s", zb_buf_str(&b));
	zb_buf_done(&b);
}

/* A number in a file below /proc/sys, or @absent. */
static long sysctl_value(const char *path, long absent)
{
	zb_auto(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[32] = "";

	if (fd < 0 || read(fd, buf, sizeof(buf) - 1) <= 0)
		return absent;
	return strtol(buf, NULL, 10);
}

/* ---- bwrap --------------------------------------------------------------*/

static bool is_program(const char *path)
{
	struct stat sb;

	return stat(path, &sb) == 0 && S_ISREG(sb.st_mode) &&
	       access(path, X_OK) == 0;
}

/* In the supervisor's PATH; entries that are not absolute do not count. */
static char *find_bwrap(void)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t n = strcspn(path, ":");
		char *at = *path == '/' ? zb_strf("%.*s/bwrap", (int)n, path)
					: NULL;

		if (at && is_program(at))
			return at;
		free(at);
		path += n + (path[n] == ':');
	}
	return NULL;
}

/* How this system's package manager is asked. */
static const char *install_command(void)
{
	static const struct {
		const char *file, *command;
	} managers[] = {
		{"/usr/bin/apt-get", "sudo apt install bubblewrap"},
		{"/usr/bin/dnf", "sudo dnf install bubblewrap"},
		{"/usr/bin/pacman", "sudo pacman -S bubblewrap"},
		{"/sbin/apk", "sudo apk add bubblewrap"},
		{"/usr/bin/zypper", "sudo zypper install bubblewrap"},
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(managers); i++)
		if (access(managers[i].file, X_OK) == 0)
			return managers[i].command;
	return "install the package bubblewrap";
}

static void no_bwrap(struct zb_host *h)
{
	gap(h, "bubblewrap is not installed",
	    zb_strf("there is no program bwrap in PATH (%s)",
		    or_empty(getenv("PATH"))),
	    zb_strdup(install_command()));
}

/* "bubblewrap 0.8.0" somewhere in the file: enough to name it in a log
 * without running it. Heap string or NULL. */
static char *version_in_file(const char *path)
{
	static const char word[] = "bubblewrap 0.";
	zb_auto(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat sb;
	const char *map, *at, *end;
	char *out = NULL;
	size_t len, n;

	if (fd < 0 || fstat(fd, &sb) < 0 || sb.st_size <= 0 ||
	    sb.st_size > 16 << 20)
		return NULL;
	len = (size_t)sb.st_size;
	map = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return NULL;
	at = memmem(map, len, word, sizeof(word) - 1);
	if (at) {
		end = map + len;
		at += strlen("bubblewrap ");
		for (n = 0; at + n < end && n < 16 &&
			    strchr("0123456789.", at[n]) && at[n];)
			n++;
		out = zb_strndup(at, n);
	}
	munmap((void *)(uintptr_t)map, len);
	return out;
}

/* Run @path --version, read what it says (both outputs), bounded in time.
 * Return: wait status, or -1 and, if it could not be started, *@sys. */
static int run_version(const char *path, char *buf, size_t room, int *sys)
{
	const char *const argv[] = {"bwrap", "--version", NULL};
	int64_t until = zb_monotonic_ms() + VERSION_MS;
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	struct pollfd p = {.events = POLLIN};
	size_t len = 0;
	int fds[2], status = -1, rc;
	ssize_t n = 1;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0) {
		*sys = errno;
		return -1;
	}
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&fa, fds[1], 1);
	posix_spawn_file_actions_adddup2(&fa, fds[1], 2);
	posix_spawnattr_init(&at);
	posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSID);
	rc = posix_spawn(&pid, path, &fa, &at, (char *const *)(uintptr_t)argv,
			 environ);
	posix_spawnattr_destroy(&at);
	posix_spawn_file_actions_destroy(&fa);
	close(fds[1]);
	p.fd = fds[0];
	while (rc == 0 && n > 0 && len + 1 < room &&
	       poll(&p, 1,
		    (int)(until - zb_monotonic_ms() > 0
				  ? until - zb_monotonic_ms()
				  : 0)) > 0) {
		n = read(fds[0], buf + len, room - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	buf[len] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	close(fds[0]);
	if (rc == 0 && n > 0)
		kill(-pid, SIGKILL); /* too slow, or it talks without end */
	if (rc == 0 && waitpid(pid, &status, 0) < 0)
		status = -1;
	*sys = rc;
	return rc == 0 ? status : -1;
}

static void check_version(struct zb_host *h)
{
	const int min[3] = MIN_BWRAP;
	char said[256];
	int v[3] = {0}, i = 0, sys = 0,
	    status = run_version(h->bwrap, said, sizeof(said), &sys);

	if (zb_is_short(sys)) {
		zb_auto(free) char *why =
			zb_strf("start %s: %s", h->bwrap, strerror(sys));

		short_gap(h, or_empty(why));
		return;
	}
	if (status != 0 ||
	    sscanf(said, "bubblewrap %d.%d.%d", &v[0], &v[1], &v[2]) < 2) {
		gap(h, "bubblewrap does not work",
		    zb_strf("%s --version failed or is not bubblewrap's%s%s",
			    h->bwrap, said[0] ? ": " : "", said),
		    zb_strdup("put a working bwrap first in PATH"));
		return;
	}
	zb_strv_addf(&h->facts, "%s at %s", said, h->bwrap);
	while (i < 2 && v[i] == min[i])
		i++;
	if (v[i] < min[i])
		gap(h, "bubblewrap is too old",
		    zb_strf("bwrap %d.%d.%d at %s is too old: need %d.%d.%d "
			    "for --perms",
			    v[0], v[1], v[2], h->bwrap, min[0], min[1], min[2]),
		    zb_strdup("install a newer bubblewrap and put it first in "
			      "PATH"));
}

/* ---- the kernel ---------------------------------------------------------*/

static void check_kernel(struct zb_host *h)
{
	struct utsname u;
	int major = 0, minor = 0;

	if (uname(&u) < 0 || sscanf(u.release, "%d.%d", &major, &minor) != 2)
		return;
	zb_strv_addf(&h->facts, "Linux %s %s", u.release, u.machine);
	h->sync_wake_up = major > 6 || (major == 6 && minor >= 6);
	if (major < MIN_KERNEL_MAJOR ||
	    (major == MIN_KERNEL_MAJOR && minor < MIN_KERNEL_MINOR))
		gap(h, "the kernel is too old",
		    zb_strf("Linux %s; 5.14 is the first whose seccomp can "
			    "inject a descriptor and answer in one step",
			    u.release),
		    zb_strdup("start a kernel of 5.14 or newer"));
}

static void check_landlock(struct zb_host *h)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
			   LANDLOCK_VERSION_FLAG);

	if (abi >= 1) {
		h->landlock_abi = (int)abi;
		zb_strv_addf(&h->facts, "Landlock ABI %ld", abi);
		return;
	}
	if (errno == EOPNOTSUPP)
		gap(h, "Landlock is off",
		    zb_strdup("the kernel has it but did not enable it at "
			      "boot"),
		    zb_strdup("add landlock to the lsm= boot parameter (the "
			      "list now is in /sys/kernel/security/lsm)"));
	else
		gap(h, "Landlock is missing",
		    zb_strf("landlock_create_ruleset: %s (not built into this "
			    "kernel, or hidden by a container's seccomp "
			    "profile)",
			    strerror(errno)),
		    zb_strdup("use a kernel with CONFIG_SECURITY_LANDLOCK, or "
			      "allow the call in the container's profile"));
}

/* A flag is known if the kernel goes on to look at the (absent) program. */
static bool filter_flag(unsigned long flags)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, NULL) < 0 &&
	       errno == EFAULT;
}

static void check_seccomp(struct zb_host *h)
{
	uint32_t action = SECCOMP_RET_USER_NOTIF;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0) {
		gap(h, "seccomp user-notification unavailable",
		    zb_strf("seccomp: %s", strerror(errno)),
		    zb_strdup("use a kernel with CONFIG_SECCOMP_FILTER, or "
			      "allow seccomp(2) in the container's profile"));
		return;
	}
	h->wait_killable = filter_flag(SECCOMP_FILTER_FLAG_NEW_LISTENER |
				       SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
	zb_strv_addf(&h->facts, "seccomp user notification%s%s",
		     h->wait_killable ? ", WAIT_KILLABLE_RECV" : "",
		     h->sync_wake_up ? ", SYNC_WAKE_UP" : "");
}

static long yama_scope(void)
{
	return sysctl_value("/proc/sys/kernel/yama/ptrace_scope", 0);
}

static void yama_gap(struct zb_host *h, const char *said)
{
	gap(h, "no process may look at another",
	    zb_strf("%s%skernel.yama.ptrace_scope=%ld", said,
		    said[0] ? ": " : "", yama_scope()),
	    zb_strdup("boot with kernel.yama.ptrace_scope at 2 or less (3 "
		      "stays until the next boot)"));
}

/* ---- causes that bwrap's words only hint at -----------------------------*/

#define USERNS_MAX    "/proc/sys/user/max_user_namespaces"
#define USERNS_CLONE  "/proc/sys/kernel/unprivileged_userns_clone"
#define APPARMOR_RULE "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"

static void userns_gap(struct zb_host *h, int sys)
{
	static const char what[] = "user namespaces are refused";

	if (sys == ENOSPC)
		gap(h, what,
		    zb_strf("the limit is reached or zero "
			    "(user.max_user_namespaces=%ld)",
			    sysctl_value(USERNS_MAX, -1)),
		    zb_strdup("sudo sysctl user.max_user_namespaces=15000"));
	else if (sysctl_value(USERNS_CLONE, 1) == 0)
		gap(h, what, zb_strdup("kernel.unprivileged_userns_clone=0"),
		    zb_strdup("sudo sysctl kernel.unprivileged_userns_clone="
			      "1"));
	else if (sys == EINVAL || sys == ENOSYS)
		gap(h, what,
		    zb_strf("unshare: %s: the kernel has none", strerror(sys)),
		    zb_strdup("use a kernel with CONFIG_USER_NS"));
	else
		gap(h, what,
		    zb_strf("unshare: %s (a container's or service's seccomp "
			    "profile, or namespaces nested too deep)",
			    strerror(sys)),
		    zb_strdup("run zotbox outside the container, or let the "
			      "container create user namespaces (Docker: "
			      "--security-opt seccomp=PROFILE that allows "
			      "clone, unshare and mount)"));
}

static void apparmor_gap(struct zb_host *h, const char *step, int sys)
{
	gap(h, "AppArmor restricts user namespaces",
	    zb_strf("%s: %s (kernel.apparmor_restrict_unprivileged_userns=1: "
		    "a new user namespace comes without its capabilities)",
		    step, strerror(sys)),
	    zb_strdup(
		    "load the AppArmor profile shipped for zotbox: sudo cp " ZB_PKGDATADIR
		    "/zotbox.apparmor "
		    "/etc/apparmor.d/zotbox && sudo apparmor_parser -r "
		    "/etc/apparmor.d/zotbox (it is for zotbox alone; one "
		    "for /usr/bin/bwrap would free everybody)"));
}

/* What fails when the steps are done without bwrap. Return: was it found? */
static bool diagnose(struct zb_host *h)
{
	static const char *const names[] = {
		[ZB_STEP_IDMAP] = "setting up the uid map",
		[ZB_STEP_NAMESPACES] = "making the other namespaces",
		[ZB_STEP_MOUNT] = "mounting",
		[ZB_STEP_LOOPBACK] = "bringing up the loopback device",
	};
	int sys;
	enum zb_step step = zb_diagnose(&sys);

	if (zb_is_short(sys)) {
		zb_auto(free) char *why =
			zb_strf("a step of it: %s", strerror(sys));

		short_gap(h, or_empty(why));
		return true;
	}
	switch (step) {
	case ZB_STEP_NONE:
	case ZB_STEP_UNKNOWN:
		return false;
	case ZB_STEP_USERNS:
		userns_gap(h, sys);
		return true;
	case ZB_STEP_PROC:
		gap(h, "a fresh /proc is refused",
		    zb_strf("cannot mount /proc in the sandbox (masked /proc: "
			    "nested container?): %s",
			    strerror(sys)),
		    zb_strdup("run zotbox outside the container, or start the "
			      "container without masked paths (Docker: "
			      "--security-opt systempaths=unconfined)"));
		return true;
	case ZB_STEP_IDMAP:
	case ZB_STEP_NAMESPACES:
	case ZB_STEP_MOUNT:
	case ZB_STEP_LOOPBACK:
		break;
	}
	if (sys != ENOSPC && sysctl_value(APPARMOR_RULE, 0) == 1)
		apparmor_gap(h, names[step], sys);
	else if (sys == ENOSPC)
		gap(h, "a kind of namespace is used up",
		    zb_strf("%s: %s (see /proc/sys/user/max_*_namespaces)",
			    names[step], strerror(sys)),
		    zb_strdup("raise the limit in /proc/sys/user that is "
			      "zero"));
	else
		gap(h, "a new user namespace has no rights",
		    zb_strf("%s: %s", names[step], strerror(sys)),
		    zb_strdup("run zotbox outside the container or service "
			      "that confines it"));
	return true;
}

/* ---- the self test ------------------------------------------------------*/

static int answer_with_token(int listener, const struct seccomp_notif *req,
			     const char *token, struct zb_error *err)
{
	zb_auto(fd) int fd = memfd_create("zotbox-token", MFD_CLOEXEC);
	struct seccomp_notif_addfd add = {.id = req->id,
					  .flags = SECCOMP_ADDFD_FLAG_SEND};
	ssize_t len = (ssize_t)strlen(token);

	if (fd < 0 || pwrite(fd, token, (size_t)len, 0) != len)
		return zb_fail_sys(err, errno, "make a memory file");
	add.srcfd = (uint32_t)fd;
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0)
		return zb_fail_sys(err, errno,
				   "inject a descriptor into a sandboxed "
				   "process");
	return 0;
}

/* Receive the self test's open, read its path, answer with a descriptor. */
static int serve_one(const struct zb_launch *l, const char *token,
		     struct zb_error *err)
{
	char path[sizeof(ZB_STAGE_TEST_PATH)] = "";
	struct pollfd p = {.fd = l->listener, .events = POLLIN};
	struct seccomp_notif req = {0};
	struct iovec to = {path, sizeof(path)}, from;

	if (poll(&p, 1, ZB_LAUNCH_MS) <= 0 ||
	    ioctl(l->listener, SECCOMP_IOCTL_NOTIF_RECV, &req) < 0)
		return zb_fail_sys(err, errno,
				   "receive a call of a sandboxed process");
	from = (struct iovec){(void *)(uintptr_t)req.data.args[1],
			      sizeof(path)};
	if (process_vm_readv((pid_t)req.pid, &to, 1, &from, 1, 0) < 0)
		return zb_fail_sys(err, errno,
				   "read the memory of a sandboxed process");
	if (memcmp(path, ZB_STAGE_TEST_PATH, sizeof(path)) != 0)
		return zb_fail(err, ZB_ESYS,
			       "read the wrong memory of a sandboxed process");
	return answer_with_token(l->listener, &req, token, err);
}

static int try_launch(struct zb_launch *l, struct zb_error *err)
{
	static const char token[] = "zotbox self test";
	const char go = ZB_STAGE_GO;
	struct zb_stage_msg msg = {0};
	int rc;

	if (write(l->ctrl, &go, 1) != 1)
		return zb_fail_sys(err, errno, "start the self test");
	rc = serve_one(l, token, err);
	while (rc == 0 && msg.type != ZB_STAGE_TESTED)
		rc = zb_launch_receive(l, &msg, err);
	if (rc == 0 &&
	    (msg.value != (int)strlen(token) || strcmp(msg.text, token) != 0))
		rc = zb_fail(err, ZB_ESYS,
			     "a sandboxed process did not get the injected "
			     "descriptor (result %d)",
			     msg.value);
	return rc;
}

/* The least sandbox there is. */
static int self_test(const struct zb_host *h, struct zb_error *err)
{
	char proc[] = "/proc", tmp[] = "/tmp", root[] = "/",
	     name[] = "self-test";
	struct zb_place places[] = {
		{.kind = ZB_PLACE_PROC,
		 .path = proc,
		 .is_dir = true,
		 .rights = ZB_MAY_READ | ZB_MAY_LIST},
		{.kind = ZB_PLACE_TMP,
		 .path = tmp,
		 .is_dir = true,
		 .rights = ZB_MAY_READ | ZB_MAY_WRITE | ZB_MAY_CREATE |
			   ZB_MAY_LIST},
	};
	struct zb_plan plan = {.name = name,
			       .cwd = root,
			       .places = places,
			       .n_places = ZB_ARRAY_LEN(places)};
	struct zb_launch l;
	int rc = zb_launch_begin(&l, &plan, h, NULL, err);

	if (rc)
		return rc;
	rc = zb_launch_ready(&l, err);
	if (rc == 0 && l.listener >= 0)
		rc = try_launch(&l, err);
	zb_launch_done(&l);
	return rc;
}

static void explain_self_test(struct zb_host *h, const struct zb_error *said)
{
	if (said->code == ZB_EUNSUPPORTED && said->sys == EBUSY) {
		gap(h, "calls are listened to already", zb_strdup(said->msg),
		    zb_strdup("run zotbox outside of what listens; under WSL2 "
			      "that is mirrored networking: set "
			      "networkingMode=nat in .wslconfig, then wsl "
			      "--shutdown"));
		return;
	}
	if (zb_is_short(said->sys)) {
		short_gap(h, said->msg);
		return;
	}
	if (said->code == ZB_EUNSUPPORTED && diagnose(h))
		return;
	if (said->sys == EPERM && yama_scope() >= 3)
		yama_gap(h, said->msg);
	else if (said->sys == EACCES &&
		 sysctl_value("/proc/sys/vm/memfd_noexec", 0) >= 2)
		gap(h, "memory files may not be executed",
		    zb_strf("%s (vm.memfd_noexec=2)", said->msg),
		    zb_strdup("sudo sysctl vm.memfd_noexec=1"));
	else
		gap(h, "the sandbox does not work", zb_strdup(said->msg),
		    zb_strdup("the kernel allows each step, so something "
			      "holds back bwrap itself: a wrapper in PATH, or "
			      "an AppArmor or SELinux profile of its own; try "
			      "bwrap --unshare-all --ro-bind / / true"));
}

/* ---- the module's face --------------------------------------------------*/

/* What no record shows, here. */
static void list_blind_spots(struct zb_host *h)
{
	static const char *const everywhere[] = {
		"existence checks (stat, access, readlink), but in ledger "
		"mode full",
		"calls on descriptors already open, but fchmod and fsetxattr",
		"addresses inside sendmsg and sendmmsg (nothing is behind "
		"them)",
		"limits that the kernel keeps: EMFILE, EFBIG",
		"lists of the private HOME, data and /tmp",
		"paths through /proc, but one's own descriptors opened again",
		"reads of the environment (only what is withheld is told)",
		"a call whose path a second thread rewrites meanwhile is "
		"refused by the kernel, and may leave no record",
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(everywhere); i++)
		zb_strv_add(&h->blind_spots, everywhere[i]);
	if (h->landlock_abi && h->landlock_abi < 6)
		zb_strv_addf(&h->blind_spots,
			     "Landlock ABI %d has no scoped signals and "
			     "abstract sockets: the namespaces alone hold them",
			     h->landlock_abi);
}

static int finish(struct zb_host *h, struct zb_error *err)
{
	h->ok = h->n_missing == 0;
	list_blind_spots(h);
	if (h->ok)
		return 0;
	if (err)
		err->msg[0] = '\0';
	tell_gaps(h, err);
	return ZB_EUNSUPPORTED;
}

static void look_at_kernel(struct zb_host *h)
{
	check_kernel(h);
	check_landlock(h);
	check_seccomp(h);
}

int zb_probe_look(struct zb_host *out, struct zb_error *err)
{
	char *version;

	*out = (struct zb_host){.bwrap = find_bwrap()};
	if (!out->bwrap)
		no_bwrap(out);
	look_at_kernel(out);
	if (yama_scope() >= 3)
		yama_gap(out, "");
	version = out->bwrap ? version_in_file(out->bwrap) : NULL;
	if (out->bwrap)
		zb_strv_addf(&out->facts, "bubblewrap %s at %s",
			     version ? version : "(version unknown)",
			     out->bwrap);
	free(version);
	return finish(out, err);
}

static void probe_host(struct zb_host *h)
{
	struct zb_error said = {0};

	if (h->bwrap)
		check_version(h);
	else
		no_bwrap(h);
	look_at_kernel(h);
	/* A test with what is known to be missing would only repeat it. */
	if (h->n_missing == 0 && self_test(h, &said))
		explain_self_test(h, &said);
	zb_strv_add(&h->facts,
		    zb_cgroup_delegated()
			    ? "memory limit: control group, and measured"
			    : "memory limit: measured (no delegated control "
			      "group, so buffers of sockets and pipes are not "
			      "counted)");
}

int zb_probe(struct zb_host *out, struct zb_error *err)
{
	*out = (struct zb_host){.bwrap = find_bwrap()};
	probe_host(out);
	return finish(out, err);
}

int zb_probe_explain(const struct zb_host *host, struct zb_error *err)
{
	struct zb_host h = {.bwrap = zb_strdup(host->bwrap)};

	probe_host(&h);
	if (h.n_missing)
		tell_gaps(&h, err);
	if (!h.n_missing ||
	    (h.n_missing == 1 &&
	     !strcmp(or_empty(h.missing[0].what), not_examined)))
		err->code = ZB_ESYS;
	zb_host_done(&h);
	return err->code;
}
