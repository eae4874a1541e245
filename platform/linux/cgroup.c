/* cgroup.c - a control group of version 2 beside our own.
 *
 * Only in a part of the tree that was delegated to us: our parent group
 * belongs to this user (systemd gives a user's services to the user), or says
 * so in an attribute, and has the controllers switched on for its children.
 * Nothing is switched on, and no process is moved: a move waits for every CPU
 * (tens of milliseconds), so bwrap is born in the group (launch.c). */
#include "config.h"

#include "cleanup.h"
#include "fdutil.h"
#include "platform/linux/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#define CGROUP_ROOT "/sys/fs/cgroup"
#define CGROUP_TYPE 0x63677270
#define PREFIX	    "zotbox-"
#define REMOVE_MS   100

static ssize_t read_at(int dir, const char *name, char *buf, size_t room)
{
	zb_auto(fd) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, buf, room - 1) : -1;

	buf[n > 0 ? n : 0] = '\0';
	return n;
}

static bool write_at(int dir, const char *name, const char *text)
{
	zb_auto(fd) int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

	return fd >= 0 &&
	       write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Path of our own group, below the mount. */
static bool own_path(char *out, size_t room)
{
	char text[4096], *at, *end;

	if (read_at(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) <= 0)
		return false;
	at = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	if (!at)
		return false;
	at = strchr(at, '/');
	end = at ? strchr(at, '\n') : NULL;
	if (!end)
		return false;
	*end = '\0';
	return (size_t)snprintf(out, room, "%s%s", CGROUP_ROOT, at) < room;
}

/* Was the group @dir handed to us? */
static bool is_ours(int dir)
{
	char mark[2] = "";
	struct statfs fs;
	struct stat sb;

	if (fstatfs(dir, &fs) < 0 || fs.f_type != CGROUP_TYPE ||
	    fstat(dir, &sb) < 0)
		return false;
	if (sb.st_uid == geteuid() && sb.st_uid != 0)
		return true;
	return faccessat(dir, "cgroup.procs", W_OK, AT_EACCESS) == 0 &&
	       (fgetxattr(dir, "user.delegate", mark, 1) == 1 ||
		fgetxattr(dir, "trusted.delegate", mark, 1) == 1) &&
	       mark[0] == '1';
}

/* Is @word one of the blank-separated words in the file? */
static bool lists(int dir, const char *name, const char *word)
{
	char text[256], *save, *w;

	read_at(dir, name, text, sizeof(text));
	for (w = strtok_r(text, " \n", &save); w;
	     w = strtok_r(NULL, " \n", &save))
		if (strcmp(w, word) == 0)
			return true;
	return false;
}

/* The group to make ours in, or -1. */
static int open_parent(void)
{
	char path[4096 + sizeof(CGROUP_ROOT)];
	zb_auto(fd) int fd = -1;

	if (!own_path(path, sizeof(path)))
		return -1;
	*strrchr(path, '/') = '\0';
	if (strlen(path) < strlen(CGROUP_ROOT)) /* we are in the root group */
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || !is_ours(fd) ||
	    !lists(fd, "cgroup.subtree_control", "memory"))
		return -1;
	return zb_steal_fd(&fd);
}

/* Groups of supervisors that are no more; the kernel keeps those in use. */
static void sweep(int parent)
{
	int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!d && fd >= 0)
		close(fd);
	while (d && (e = readdir(d))) {
		long pid;

		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)))
			continue;
		pid = strtol(e->d_name + strlen(PREFIX), NULL, 10);
		if (pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH)
			unlinkat(parent, e->d_name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
}

static bool set_limits(int dir, uint64_t memory, uint64_t processes)
{
	char text[32];

	if (memory != UINT64_MAX) {
		snprintf(text, sizeof(text), "%llu",
			 (unsigned long long)memory);
		if (!write_at(dir, "memory.max", text))
			return false;
		/* Swapped is used as well; without swap there is no file. */
		write_at(dir, "memory.swap.max", "0");
		write_at(dir, "memory.oom.group", "1");
	}
	if (processes < UINT64_MAX / 16) {
		/* It counts threads; we count processes ourselves. */
		snprintf(text, sizeof(text), "%llu",
			 (unsigned long long)processes * 16);
		write_at(dir, "pids.max", text);
	}
	return true;
}

bool zb_cgroup_delegated(void)
{
	zb_auto(fd) int fd = open_parent();

	return fd >= 0;
}

void zb_cgroup_make(struct zb_cgroup *out, const struct zb_plan *plan)
{
	static unsigned serial;
	uint64_t memory = zb_plan_limit(plan, ZB_LIMIT_MEMORY);
	uint64_t processes = zb_plan_limit(plan, ZB_LIMIT_PROCESSES);
	struct zb_cgroup c = ZB_CGROUP_NONE;

	*out = c;
	if (memory == UINT64_MAX && processes == UINT64_MAX)
		return;
	c.parent = open_parent();
	if (c.parent < 0)
		return;
	sweep(c.parent);
	snprintf(c.name, sizeof(c.name), PREFIX "%d-%u", (int)getpid(),
		 serial++);
	if (mkdirat(c.parent, c.name, 0755) == 0)
		c.dir = openat(c.parent, c.name,
			       O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c.dir < 0 || !set_limits(c.dir, memory, processes))
		zb_cgroup_done(&c);
	*out = c;
}

bool zb_cgroup_out_of_memory(const struct zb_cgroup *c)
{
	unsigned long long kills = 0;
	char text[512], *at;

	if (c->dir < 0 ||
	    read_at(c->dir, "memory.events", text, sizeof(text)) <= 0)
		return false;
	at = strstr(text, "oom_kill ");
	return at && sscanf(at, "oom_kill %llu", &kills) == 1 && kills > 0;
}

void zb_cgroup_done(struct zb_cgroup *c)
{
	/* The last process may be on its way out of the books. */
	for (int ms = 0; c->name[0] && ms < REMOVE_MS; ms += 5) {
		if (unlinkat(c->parent, c->name, AT_REMOVEDIR) == 0 ||
		    errno != EBUSY)
			break;
		usleep(5000);
	}
	if (c->dir >= 0)
		close(c->dir);
	if (c->parent >= 0)
		close(c->parent);
	*c = ZB_CGROUP_NONE;
}
