/* test_broker_fuse.c - a grant on a file system served by a process: names
 * that answer to several spellings, and opens that somebody else delays.
 *
 * The file system is made here, of three files: ".env", "ok.txt" and "slow",
 * whose open takes until the test says so. Names are looked up without case,
 * as on the disks of Windows and macOS. Mounting it needs root. */
#include "config.h"

#include "box.h"

#include "cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct box box;

static const struct {
	const char *name, *text;
} files[] = {{".env", "SECRET\n"}, {"ok.txt", "hello\n"}, {"slow", "late\n"}};

#define FIRST_NODE 2 /* of files[]; 1 is the directory */
#define SLOW_NODE  4

/* The server: one request at a time, but for what is kept waiting. */

struct server {
	int dev;
	int release; /* readable: let the slow opens go */
	uint64_t waiting[8];
	unsigned n_waiting;
};

static void reply(const struct server *s, uint64_t id, int error,
		  const void *data, size_t n)
{
	char out[8192];
	struct fuse_out_header h = {.len = (uint32_t)(sizeof(h) + n),
				    .error = -error,
				    .unique = id};

	memcpy(out, &h, sizeof(h));
	if (n)
		memcpy(out + sizeof(h), data, n);
	if (write(s->dev, out, sizeof(h) + n) < 0)
		_exit(3);
}

static struct fuse_attr attr_of(uint64_t node)
{
	struct fuse_attr a = {.ino = node, .nlink = 1};

	a.mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0644;
	if (node != 1)
		a.size = strlen(files[node - FIRST_NODE].text);
	return a;
}

static void do_lookup(const struct server *s, uint64_t id, const char *name)
{
	for (size_t i = 0; i < ZB_ARRAY_LEN(files); i++) {
		struct fuse_entry_out e = {.nodeid = FIRST_NODE + i};

		if (strcasecmp(name, files[i].name) != 0)
			continue;
		e.attr = attr_of(e.nodeid);
		reply(s, id, 0, &e, sizeof(e));
		return;
	}
	reply(s, id, ENOENT, NULL, 0);
}

static void do_readdir(const struct server *s, uint64_t id, uint64_t at)
{
	char out[4096];
	size_t n = 0;

	for (size_t i = at; i < ZB_ARRAY_LEN(files); i++) {
		struct fuse_dirent d = {.ino = FIRST_NODE + i,
					.off = i + 1,
					.namelen =
						(uint32_t)strlen(files[i].name),
					.type = DT_REG};

		memset(out + n, 0, FUSE_DIRENT_ALIGN(sizeof(d) + d.namelen));
		memcpy(out + n, &d, FUSE_NAME_OFFSET);
		memcpy(out + n + FUSE_NAME_OFFSET, files[i].name, d.namelen);
		n += FUSE_DIRENT_SIZE(&d);
	}
	reply(s, id, 0, out, n);
}

static void do_open(struct server *s, uint64_t id, uint64_t node)
{
	struct fuse_open_out o = {0};

	if (node == SLOW_NODE && s->n_waiting < ZB_ARRAY_LEN(s->waiting))
		s->waiting[s->n_waiting++] = id;
	else
		reply(s, id, 0, &o, sizeof(o));
}

static void do_init(const struct server *s, uint64_t id,
		    const struct fuse_init_in *in)
{
	struct fuse_init_out o = {.major = FUSE_KERNEL_VERSION,
				  .minor = FUSE_KERNEL_MINOR_VERSION,
				  .max_readahead = in->max_readahead,
				  .max_write = 4096,
				  .time_gran = 1};

	reply(s, id, 0, &o, sizeof(o));
}

static void serve_one(struct server *s, const struct fuse_in_header *h,
		      const void *arg)
{
	const struct fuse_read_in *r = arg;
	struct fuse_attr_out a = {0};
	struct fuse_statfs_out st = {.st = {.bsize = 4096, .namelen = 255}};

	switch (h->opcode) {
	case FUSE_INIT:
		do_init(s, h->unique, arg);
		return;
	case FUSE_LOOKUP:
		do_lookup(s, h->unique, arg);
		return;
	case FUSE_GETATTR:
		a.attr = attr_of(h->nodeid);
		reply(s, h->unique, 0, &a, sizeof(a));
		return;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		do_open(s, h->unique, h->nodeid);
		return;
	case FUSE_READ:
		reply(s, h->unique, 0, files[h->nodeid - FIRST_NODE].text,
		      r->offset ? 0
				: strlen(files[h->nodeid - FIRST_NODE].text));
		return;
	case FUSE_READDIR:
		do_readdir(s, h->unique, r->offset);
		return;
	case FUSE_STATFS:
		reply(s, h->unique, 0, &st, sizeof(st));
		return;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
		reply(s, h->unique, 0, NULL, 0);
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	default:
		reply(s, h->unique, ENOSYS, NULL, 0);
	}
}

static _Noreturn void serve(int dev, int release)
{
	static char in[1 << 17];
	struct server s = {.dev = dev, .release = release};
	struct fuse_open_out o = {0};

	signal(SIGPIPE, SIG_IGN);
	fcntl(release, F_SETFL, O_NONBLOCK);
	fcntl(dev, F_SETFL, O_NONBLOCK);
	for (;;) {
		ssize_t n = read(dev, in, sizeof(in));
		char c;

		if (n >= (ssize_t)sizeof(struct fuse_in_header)) {
			serve_one(&s, (const void *)in,
				  in + sizeof(struct fuse_in_header));
			continue;
		}
		if (n < 0 && errno == ENODEV)
			_exit(0);
		if (read(release, &c, 1) == 1)
			while (s.n_waiting)
				reply(&s, s.waiting[--s.n_waiting], 0, &o,
				      sizeof(o));
		usleep(500);
	}
}

/* Mount it on @dir, in a mount namespace of our own. */
static pid_t start_server(const char *dir, int *release)
{
	char opt[128];
	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	int pair[2];
	pid_t pid;

	if (dev < 0 || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    pipe2(pair, O_CLOEXEC))
		return -1;
	snprintf(opt, sizeof(opt),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", dev);
	if (mount("zotbox-test", dir, "fuse", MS_NOSUID | MS_NODEV, opt))
		return -1;
	pid = fork();
	if (!pid)
		serve(dev, pair[0]);
	close(dev);
	close(pair[0]);
	*release = pair[1];
	return pid;
}

static int content(const char *path, char text[256])
{
	int err;
	long fd = box_tell(&box, &err, NULL, "call %d %d s:%s 0 0",
			   (int)SYS_openat, AT_FDCWD, path);

	text[0] = '\0';
	if (fd < 0)
		return err;
	box_tell(&box, &err, text, "read %ld", fd);
	box_tell(&box, &err, NULL, "call %d %ld", (int)SYS_close, fd);
	return 0;
}

static bool host_reads(const char *path, const char *want)
{
	zb_auto(file) FILE *f = fopen(path, "re");
	char line[64] = "";

	return f && fgets(line, sizeof(line), f) && !strcmp(line, want);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void spellings(void)
{
	char text[256];
	int e;

	tap_ok(host_reads(box_path("proj/.ENV"), "SECRET\n"),
	       "control: outside .ENV is .env");
	e = content(box_path("proj/.env"), text);
	tap_ok(e == EACCES, ".env is denied (%d)", e);
	e = content(box_path("proj/.ENV"), text);
	tap_ok(e == EACCES &&
		       box_denied(&box, ZB_OP_FS_READ, box_path("proj/.ENV")),
	       "so is .ENV, with a record (%d)", e);
	e = content(box_path("proj/.Env"), text);
	tap_ok(e == EACCES, "and .Env (%d)", e);
	e = content(box_path("proj/ok.txt"), text);
	tap_ok(!e && !strcmp(text, "hello"),
	       "a file opens under its own name (%d)", e);
}

/* Names that are to be made: the server, which makes nothing (ENOSYS), is asked
 * only for those that cannot stand for a denied one. */
static void new_names(void)
{
	static const struct {
		const char *name;
		int err;
	} rows[] = {
		{"new-name.txt", ENOSYS}, {".ENV", EEXIST},
		{".Env.local", EACCES},	  {"ENV~1", EACCES},
		{"new.", EACCES},	  {"new:stream", EACCES},
		{"n\xc3\xa9w", EACCES},
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		const char *path =
			box_text("%s/%s", box_path("proj"), rows[i].name);
		int e;

		box_forget(&box);
		box_tell(&box, &e, NULL, "call %d -100 s:%s 0755",
			 (int)SYS_mkdirat, path);
		tap_ok(e == rows[i].err &&
			       (e != EACCES ||
				box_denied(&box, ZB_OP_FS_CREATE, path)),
		       "mkdir %s: %d", rows[i].name, e);
	}
	box_forget(&box);
}

static void delays(int release)
{
	char text[256];
	double t;
	int e;

	box_tell(&box, &e, NULL,
		 "run for i in 1 2 3; do head -1 %s >/tmp/out$i & done; true",
		 box_path("proj/slow"));
	usleep(300000);
	t = seconds();
	e = content(box_path("open/f"), text);
	tap_ok(!e && !strcmp(text, "open") && seconds() - t < 1,
	       "slow opens do not hold up others (%.2f s)", seconds() - t);
	tap_ok(write(release, "g", 1) == 1 &&
		       box_tell(&box, &e, NULL,
				"run i=0; until grep -q late /tmp/out1; do "
				"sleep 0.1; i=$((i+1)); "
				"[ $i -lt 50 ] || exit 1; done") == 0,
	       "they succeed in the end");
	box_tell(&box, &e, NULL, "run head -1 %s >/tmp/out4 & true",
		 box_path("proj/slow"));
	usleep(300000);
	t = seconds();
	box_stop(&box);
	t = seconds() - t;
	tap_ok(t < 6, "one that never ends does not hold up the end (%.1f s)",
	       t);
}

int main(void)
{
	int release = -1;
	pid_t pid;

	box_file(box_path("proj"), NULL, 0);
	box_file(box_path("open/f"), "open\n", 0644);
	pid = geteuid() ? -1 : start_server(box_path("proj"), &release);
	if (pid < 0) {
		printf("1..0 # SKIP no FUSE file system can be mounted\n");
		return 0;
	}
	box_plan(&box);
	box_place(&box, ZB_PLACE_GRANT, box_path("proj"), box_path("proj"),
		  BOX_READ | ZB_MAY_WRITE | ZB_MAY_CREATE, true)
		->carved = true;
	box_place(&box, ZB_PLACE_GRANT, box_path("open"), box_path("open"),
		  BOX_READ, true);
	box_deny(&box, box_path("proj/**/.env*"));
	box_start(&box);
	spellings();
	new_names();
	delays(release);
	if (write(release, "g", 1) != 1)
		tap_note("the server is gone");
	umount2(box_path("proj"), MNT_DETACH);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return tap_done();
}
