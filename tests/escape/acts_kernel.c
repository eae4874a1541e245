/* acts_kernel.c - the kernel's doors: mounts, tracing, programs in the
 * kernel, keys, other ABIs.
 *
 * Where an act needs a capability, its control gets one the way anybody can,
 * in a user namespace of its own ("own" as last argument): nothing of the
 * host's is touched. */
#include "config.h"

#include "escapist.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PR_SET_MM_ARG_START
#define PR_SET_MM_ARG_START 8
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#define KEY_PROCESS_RING   (-2)
#define KEYCTL_GET_RING_ID 0
#define UFFD_USER_MODE	   1

/* "own": become root of new namespaces. "-": stay what we are. */
void prepare(const char *how)
{
	if (!strcmp(how, "own") &&
	    !unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWNET))
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* WHERE HOW: an empty file system over a directory. */
static int mount_tmpfs(char **a, struct say *s)
{
	(void)s;
	prepare(a[1]);
	return mount("tmpfs", a[0], "tmpfs", 0, NULL) ? errno : 0;
}

/* WHAT WHERE HOW */
static int mount_bind(char **a, struct say *s)
{
	(void)s;
	prepare(a[2]);
	return mount(a[0], a[1], NULL, MS_BIND | MS_REC, NULL) ? errno : 0;
}

/* WHERE HOW: make a read-only mount writable. */
static int remount(char **a, struct say *s)
{
	(void)s;
	prepare(a[1]);
	if (!strcmp(a[1], "own") &&
	    mount("tmpfs", a[0], "tmpfs", MS_RDONLY, NULL))
		return errno;
	return mount(NULL, a[0], NULL, MS_REMOUNT | MS_BIND, NULL) ? errno : 0;
}

/* WHERE HOW: what is below a mount. */
static int unmount(char **a, struct say *s)
{
	(void)s;
	prepare(a[1]);
	if (!strcmp(a[1], "own") && mount("tmpfs", a[0], "tmpfs", 0, NULL))
		return errno;
	return umount2(a[0], MNT_DETACH) ? errno : 0;
}

static int mount_object(char **a, struct say *s)
{
	int fd;

	(void)s;
	prepare(a[0]);
	fd = (int)syscall(SYS_fsopen, "tmpfs", 0);
	return fd >= 0 ? 0 : errno;
}

static int copy_tree(char **a, struct say *s)
{
	int fd;

	(void)s;
	prepare(a[0]);
	fd = (int)syscall(SYS_open_tree, AT_FDCWD, "/",
			  1 /* OPEN_TREE_CLONE */ | AT_RECURSIVE);
	return fd >= 0 ? 0 : errno;
}

/* WHERE HOW */
static int change_root(char **a, struct say *s)
{
	(void)s;
	prepare(a[1]);
	return chroot(a[0]) ? errno : 0;
}

/* WHERE HOW: pivot_root onto a mount of ours. */
static int pivot(char **a, struct say *s)
{
	(void)s;
	prepare(a[1]);
	if (!strcmp(a[1], "own") && mount("tmpfs", a[0], "tmpfs", 0, NULL))
		return errno;
	if (chdir(a[0]))
		return errno;
	return syscall(SYS_pivot_root, ".", ".") ? errno : 0;
}

static int host_name(char **a, struct say *s)
{
	(void)s;
	prepare(a[0]);
	return sethostname("escaped", 7) ? errno : 0;
}

/* ---- programs and events in the kernel ----------------------------------*/

static int load_map(char **a, struct say *s)
{
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY,
			       .key_size = 4,
			       .value_size = 4,
			       .max_entries = 1};

	(void)a;
	(void)s;
	return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)) < 0 ? errno
									 : 0;
}

static int perf(char **a, struct say *s)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_TASK_CLOCK,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};

	(void)a;
	(void)s;
	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0 ? errno
								     : 0;
}

static int fault_handler(char **a, struct say *s)
{
	(void)a;
	(void)s;
	return syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE) < 0 ? errno
									: 0;
}

/* A ring opens and connects without a system call of its own. */
static int ring(char **a, struct say *s)
{
	char params[256] = {0};

	(void)a;
	(void)s;
	return syscall(SYS_io_uring_setup, 1, params) < 0 ? errno : 0;
}

static int add_key(char **a, struct say *s)
{
	(void)a;
	(void)s;
	return syscall(SYS_add_key, "user", "zb-escape", "x", 1,
		       KEY_PROCESS_RING) < 0
		       ? errno
		       : 0;
}

static int key_ring(char **a, struct say *s)
{
	(void)a;
	(void)s;
	return syscall(SYS_keyctl, KEYCTL_GET_RING_ID, KEY_PROCESS_RING, 1) < 0
		       ? errno
		       : 0;
}

static int request_key(char **a, struct say *s)
{
	long rc = syscall(SYS_request_key, "user", "zb-no-such-key", NULL, 0);

	(void)a;
	(void)s;
	/* It was looked for: that is all there is to get. */
	return rc >= 0 || errno == ENOKEY ? 0 : errno;
}

/* A second listener would decide the calls of our own children, and might
 * let them go on where the first one was asked. */
static int listener(char **a, struct say *s)
{
	struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
	struct sock_fprog prog = {1, &allow};

	(void)a;
	(void)s;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog) < 0
		       ? errno
		       : 0;
}

static int persona(char **a, struct say *s)
{
	(void)a;
	(void)s;
	return personality(ADDR_NO_RANDOMIZE) < 0 ? errno : 0;
}

/* ---- other ABIs ---------------------------------------------------------*/

/* getpid(2) by way of x32. */
static int x32_call(char **a, struct say *s)
{
	(void)a;
	(void)s;
#ifdef __x86_64__
	return syscall(0x40000000 | SYS_getpid) < 0 ? errno : 0;
#else
	return ENOSYS;
#endif
}

/* getpid(2) by way of i386. A kernel without it answers with a signal. */
static int i386_call(char **a, struct say *s)
{
	(void)a;
	(void)s;
#ifdef __x86_64__
	int rc = 20;

	__asm__ volatile("int $0x80"
			 : "+a"(rc)
			 :
			 : "r8", "r9", "r10", "r11", "memory");
	return rc < 0 ? -rc : 0;
#else
	return ENOSYS;
#endif
}

/* openat(2) by way of i386, on a path below 4 GiB. */
static int i386_open(char **a, struct say *s)
{
#ifdef __x86_64__
	char *path = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int rc = 295;

	if (path == MAP_FAILED)
		return errno;
	snprintf(path, 4096, "%s", a[0]);
	__asm__ volatile("int $0x80"
			 : "+a"(rc)
			 : "b"(AT_FDCWD), "c"(path), "d"(O_RDONLY), "S"(0)
			 : "r8", "r9", "r10", "r11", "memory");
	return secret_in(rc < 0 ? -1 : rc, -rc, s);
#else
	(void)a;
	(void)s;
	return ENOSYS;
#endif
}

const struct act acts_kernel[] = {
	{"mount-tmpfs", 2, mount_tmpfs},
	{"mount-bind", 3, mount_bind},
	{"remount", 2, remount},
	{"unmount", 2, unmount},
	{"mount-object", 1, mount_object},
	{"copy-tree", 1, copy_tree},
	{"change-root", 2, change_root},
	{"pivot", 2, pivot},
	{"host-name", 1, host_name},
	{"load-map", 0, load_map},
	{"perf", 0, perf},
	{"fault-handler", 0, fault_handler},
	{"ring", 0, ring},
	{"add-key", 0, add_key},
	{"key-ring", 0, key_ring},
	{"request-key", 0, request_key},
	{"listener", 0, listener},
	{"persona", 0, persona},
	{"x32-call", 0, x32_call},
	{"i386-call", 0, i386_call},
	{"i386-open", 1, i386_open},
	{NULL, 0, NULL},
};
