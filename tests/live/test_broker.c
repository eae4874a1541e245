/* test_broker.c - files: what the broker opens, refuses, records, and what it
 * leaves alone. Each refusal has its control: the same act outside works. */
#include "config.h"

#include "box.h"

#include "cleanup.h"
#include "fdutil.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define CWD AT_FDCWD

static struct box box;

static long open_in(const char *path, int flags, int mode, int *err)
{
	return box_tell(&box, err, NULL, "call %d %d s:%s %d %d",
			(int)SYS_openat, CWD, path, flags, mode);
}

static void close_in(long fd)
{
	if (fd >= 0)
		box_tell(&box, NULL, NULL, "call %d %ld", (int)SYS_close, fd);
}

/* Open, read, close. Return: errno of the open, 0 with @text set. */
static int content(const char *path, char text[256])
{
	int err;
	long fd = open_in(path, O_RDONLY, 0, &err);

	text[0] = '\0';
	if (fd < 0)
		return err;
	box_tell(&box, &err, text, "read %ld", fd);
	close_in(fd);
	return 0;
}

static bool reads(const char *path, const char *want)
{
	char text[256];

	return !content(path, text) && !strcmp(text, want);
}

static int error_of(const char *path)
{
	char text[256];

	return content(path, text);
}

/* Outside, as the user who runs the test. */
static bool host_reads(const char *path)
{
	zb_auto(file) FILE *f = fopen(path, "re");

	return f && fgetc(f) != EOF;
}

static void fixtures(void)
{
	box_file(box_path("proj/ok.txt"), "hello\n", 0644);
	box_file(box_path("proj/.env"), "SECRET\n", 0644);
	box_file(box_path("proj/sub/key.pem"), "SECRET\n", 0644);
	box_file(box_path("proj/tool"), "#!/bin/sh\nexit 0\n", 0755);
	box_file(box_path("proj/closed"), "x\n", 0000);
	box_file(box_path("open/f"), "open\n", 0644);
	box_file(box_path("open/run"), "#!/usr/bin/env true\n", 0755);
	box_file(box_path("open/other"), "#!/usr/bin/env true\n", 0755);
	box_file(box_path("hidden/k"), "SECRET\n", 0644);
	box_file(box_path("elsewhere"), NULL, 0);
	box_file(box_path("beside"), "SECRET\n", 0644);
	box_file(box_path("hidden/prog"), "#!/bin/sh\nexit 0\n", 0755);
	box_file(box_path("home/.ssh/id"), "SECRET\n", 0600);
	box_file(box_path("private_data/d"), "data\n", 0644);
	box_file(box_path("ext/script"), "#!/usr/bin/env true\n", 0755);
	if (symlink(".env", box_path("proj/link")) ||
	    symlink("../hidden/k", box_path("proj/out")) ||
	    symlink("../nowhere", box_path("proj/dangling")) ||
	    mkfifo(box_path("proj/fifo"), 0644))
		tap_ok(false, "fixtures");
}

static void plan(enum zb_ledger_mode mode)
{
	box_plan(&box);
	box_place(&box, ZB_PLACE_GRANT, box_path("proj"), box_path("proj"),
		  BOX_READ, true)
		->carved = true;
	box_place(&box, ZB_PLACE_GRANT, box_path("open"), box_path("open"),
		  BOX_READ, true);
	box_place(&box, ZB_PLACE_GRANT, box_path("open/run"),
		  box_path("open/run"), ZB_MAY_READ | ZB_MAY_EXEC, false)
		->shown = true;
	box_deny(&box, box_path("proj/**/.env*"));
	box_deny(&box, box_path("proj/**/*.pem"));
	box.plan.ledger = mode;
}

static bool has(const char *s, const char *part)
{
	return s && strstr(s, part);
}

static void a_hidden_file(void)
{
	const char *k = box_path("hidden/k");
	const struct zb_denial *d;
	int err;

	tap_ok(host_reads(k), "control: outside the hidden file is read");
	tap_ok(reads(box_path("open/f"), "open"), "a granted file opens");
	tap_ok(reads(box_path("data/d"), "data"), "so does one of its data");
	tap_ok(box_total(&box) == 0, "neither leaves a record");
	open_in(k, O_RDONLY, 0, &err);
	tap_ok(err == ENOENT, "a hidden file is ENOENT (%d)", err);
	d = box_last(&box, ZB_OP_FS_READ, k);
	tap_ok(d != NULL, "and recorded, since the host has it");
	tap_ok(d && has(d->syscall, "openat") && d->err_no == ENOENT &&
		       d->by == ZB_BY_BROKER && d->floor == ZB_FLOOR_MOUNT &&
		       d->evidence == ZB_EV_DECIDED && d->pid > 1,
	       "the record has syscall, errno, decider, floor, pid");
	tap_ok(d && has(d->exe, "/ext/probe") && has(d->grant_key, "fs.read") &&
		       d->grant_value && d->rule,
	       "and program, rule, grant");
	box_forget(&box);
	open_in(box_path("hidden/none"), O_RDONLY, 0, &err);
	tap_ok(err == ENOENT && box_total(&box) == 0,
	       "what nobody has is ENOENT and no record");
	open_in(box_path("home/.ssh/id"), O_RDONLY, 0, &err);
	tap_ok(err == ENOENT && box_denied(&box, ZB_OP_FS_READ,
					   box_path("home/.ssh/id")) == 1,
	       "a file of the real HOME is hidden by the private one");
	box_forget(&box);
	if (symlink("../hidden", box_path("elsewhere/docs")))
		tap_ok(false, "make a link");
	open_in(box_path("elsewhere/docs/k"), O_RDONLY, 0, &err);
	d = box_last(&box, ZB_OP_FS_READ, box_path("elsewhere/docs/k"));
	tap_ok(d && d->grant_key && d->exposes.n == 1 &&
		       !strcmp(d->exposes.v[0], k),
	       "a record says where links on the host lead");
	box_forget(&box);
	close_in(open_in(box_path("open"), O_RDONLY | O_DIRECTORY, 0, &err));
	close_in(open_in(box_path("ext"), O_RDONLY | O_DIRECTORY, 0, &err));
	open_in(box_path("beside"), O_RDONLY, 0, &err);
	tap_ok(err == ENOENT &&
		       box_denied(&box, ZB_OP_FS_READ, box_path("beside")) == 1,
	       "so is one beside a granted directory that was opened");
	box_forget(&box);
}

static void spellings(void)
{
	const char *k = box_path("hidden/k");
	const struct zb_denial *d;
	char text[256];
	int err;
	long dir;

	open_in("../hidden/k", O_RDONLY, 0, &err);
	d = box_last(&box, ZB_OP_FS_READ, k);
	tap_ok(err == ENOENT && d && !strcmp(d->asked, "../hidden/k"),
	       "a relative path is recorded as asked and as resolved");
	box_forget(&box);
	open_in(box_path("proj/out"), O_RDONLY, 0, &err);
	d = box_last(&box, ZB_OP_FS_READ, k);
	tap_ok(err == ENOENT && d && has(d->asked, "proj/out"),
	       "a link that leads to a hidden file names the file");
	box_forget(&box);
	open_in(box_path("proj/dangling"), O_RDONLY, 0, &err);
	tap_ok(err == ENOENT && box_total(&box) == 0,
	       "a dangling link is no denial");
	dir = open_in(box_path("proj"), O_RDONLY | O_DIRECTORY, 0, &err);
	tap_ok(dir >= 0, "the project's directory opens");
	box_tell(&box, &err, NULL, "call %d %ld s:.env 0 0", (int)SYS_openat,
		 dir);
	tap_ok(err == EACCES, "a denied name below it is EACCES (%d)", err);
	box_tell(&box, &err, NULL, "call %d %ld s:../hidden/k 0 0",
		 (int)SYS_openat, dir);
	tap_ok(err == ENOENT && box_denied(&box, ZB_OP_FS_READ, k),
	       "going up from it stays inside");
	dir = box_tell(&box, &err, NULL, "call %d %ld s:ok.txt 0 0",
		       (int)SYS_openat, dir);
	box_tell(&box, &err, text, "read %ld", dir);
	tap_ok(!strcmp(text, "hello"), "an allowed name below it opens");
	box_tell(&box, NULL, NULL, "call %d s:%s", (int)SYS_chdir,
		 box_path("proj"));
	tap_ok(error_of(".env") == EACCES && reads("ok.txt", "hello"),
	       "the same from the working directory");
	box_tell(&box, NULL, NULL, "call %d s:%s", (int)SYS_chdir,
		 box_path("ext"));
	box_forget(&box);
}

/* Arguments that make no sense get what the kernel would give. */
static void nonsense(void)
{
	static char longest[900];
	int err, e2;
	long fd;

	memset(longest, 'x', sizeof(longest) - 1);
	box_tell(&box, &err, NULL, "call %d 99 s:x 0 0", (int)SYS_openat);
	tap_ok(err == EBADF, "a bad directory descriptor is EBADF (%d)", err);
	box_tell(&box, &err, NULL, "call %d %d 1 0 0", (int)SYS_openat, CWD);
	box_tell(&box, &e2, NULL, "call %d %d 0 0 0", (int)SYS_openat, CWD);
	tap_ok(err == EFAULT && e2 == EFAULT, "bad pointers are EFAULT");
	fd = open_in(box_path("open/f"), O_RDONLY, 0, &err);
	box_tell(&box, &err, NULL, "call %d %ld s:x 0 0", (int)SYS_openat, fd);
	tap_ok(err == ENOTDIR, "a file as directory is ENOTDIR (%d)", err);
	close_in(fd);
	box_tell(&box, &err, NULL, "call %d %d b:00 0 0", (int)SYS_openat, CWD);
	tap_ok(err == ENOENT, "an empty path is ENOENT");
	box_tell(&box, &err, NULL, "call %d %d s:/%s 0 0", (int)SYS_openat, CWD,
		 longest);
	tap_ok(err == ENAMETOOLONG, "a long name is ENAMETOOLONG (%d)", err);
	for (unsigned f = 1; f; f <<= 1)
		box_tell(&box, &err, NULL, "call %d %d s:%s 0x%x 0777",
			 (int)SYS_openat, CWD, box_path("proj/.env"), f);
	tap_ok(reads(box_path("open/f"), "open"),
	       "no flag confuses it for long");
	for (int nr = 0; nr < 40; nr++)
		box_tell(&box, &err, NULL, "call %d -1 -1 -1 -1 -1 -1",
			 (int)(nr % 2 ? SYS_renameat2 : SYS_connect));
	box_tell(&box, &err, NULL, "call %d -1 -1 -1 -1 -1 -1",
		 (int)SYS_execve);
	tap_ok(err == EFAULT && reads(box_path("open/f"), "open"),
	       "nor does any argument");
	box_forget(&box);
}

static void carve_outs(void)
{
	const char *env = box_path("proj/.env");
	const struct zb_denial *d;
	char fd_path[64];
	int err;
	long fd;

	tap_ok(host_reads(env), "control: outside .env is read");
	tap_ok(reads(box_path("proj/ok.txt"), "hello"),
	       "a file beside a carve-out opens");
	tap_ok(error_of(env) == EACCES, ".env is EACCES");
	d = box_last(&box, ZB_OP_FS_READ, env);
	tap_ok(d && d->floor == ZB_FLOOR_LANDLOCK && has(d->rule, "fs.deny") &&
		       !d->grant_key && d->why_not,
	       "recorded under its deny, which no grant lifts");
	tap_ok(error_of(box_path("proj/sub/key.pem")) == EACCES,
	       "so is a pattern further down");
	box_file(box_path("proj/deep/er/.env.local"), "SECRET\n", 0644);
	box_file(box_path("proj/deep/er/new.txt"), "new\n", 0644);
	tap_ok(error_of(box_path("proj/deep/er/.env.local")) == EACCES &&
		       reads(box_path("proj/deep/er/new.txt"), "new"),
	       "files made later are judged alike");
	box_forget(&box);
	tap_ok(error_of(box_path("proj/link")) == EACCES &&
		       box_denied(&box, ZB_OP_FS_READ, env),
	       "through a link in the grant");
	box_tell(&box, &err, NULL, "call %d s:%s %d s:%s", (int)SYS_symlinkat,
		 env, CWD, box_path("data/mine"));
	tap_ok(!err && error_of(box_path("data/mine")) == EACCES,
	       "through a link of its own");
	box_tell(&box, &err, NULL, "call %d %d s:%s %d s:%s 0", (int)SYS_linkat,
		 CWD, env, CWD, box_path("data/hard"));
	tap_ok(err == EXDEV || err == EACCES, "a hard link is not made (%d)",
	       err);
	tap_ok(error_of(box_path("proj//./sub/../.env")) == EACCES,
	       "through another spelling");
	tap_ok(error_of(box_text("/proc/self/root%s", env)) == EACCES,
	       "through /proc/self/root");
	fd = open_in(env, O_PATH, 0, &err);
	snprintf(fd_path, sizeof(fd_path), "/proc/self/fd/%ld", fd);
	tap_ok(fd >= 0 && error_of(fd_path) == EACCES,
	       "an O_PATH descriptor cannot be reopened");
	close_in(fd);
	fd = open_in(box_path("proj"), O_PATH, 0, &err);
	snprintf(fd_path, sizeof(fd_path), "/proc/self/fd/%ld/.env", fd);
	tap_ok(error_of(fd_path) == EACCES,
	       "nor the file through its directory");
	close_in(fd);
	box_forget(&box);
}

static void injected(void)
{
	const char *ok = box_path("proj/ok.txt");
	struct timespec a, b;
	int err, flags;
	long fd;

	fd = open_in(ok, O_RDONLY | O_CLOEXEC, 0, &err);
	tap_ok(box_tell(&box, &err, NULL, "call %d %ld %d", (int)SYS_fcntl, fd,
			F_GETFD) == FD_CLOEXEC,
	       "an injected descriptor closes on exec if asked");
	close_in(fd);
	fd = open_in(ok, O_RDONLY, 0, &err);
	flags = (int)box_tell(&box, &err, NULL, "call %d %ld %d",
			      (int)SYS_fcntl, fd, F_GETFL);
	tap_ok(box_tell(&box, &err, NULL, "call %d %ld %d", (int)SYS_fcntl, fd,
			F_GETFD) == 0 &&
		       !(flags & (O_NONBLOCK | O_ACCMODE)),
	       "else not; its flags are those asked for");
	box_tell(&box, &err, NULL, "call %d %ld s:x 1", (int)SYS_write, fd);
	tap_ok(err == EBADF, "nothing is written through it");
	close_in(fd);
	clock_gettime(CLOCK_MONOTONIC, &a);
	open_in(box_path("proj/fifo"), O_RDONLY, 0, &err);
	clock_gettime(CLOCK_MONOTONIC, &b);
	tap_ok(err == EACCES && b.tv_sec - a.tv_sec < 2,
	       "a FIFO is refused at once (%d)", err);
	tap_ok(reads(ok, "hello"), "and the broker goes on");
	tap_ok(box_denied(&box, ZB_OP_FS_READ, box_path("proj/fifo")),
	       "with a record");
	box_forget(&box);
	open_in(ok, O_RDONLY | O_DIRECTORY, 0, &err);
	tap_ok(err == ENOTDIR, "a file is no directory");
	open_in(box_path("proj/link"), O_RDONLY | O_NOFOLLOW, 0, &err);
	tap_ok(err == ELOOP, "O_NOFOLLOW on a link is ELOOP");
	open_in(ok, O_RDONLY | O_CREAT | O_EXCL, 0600, &err);
	tap_ok(err == EEXIST, "O_EXCL on a file is EEXIST (%d)", err);
	tap_ok(error_of(box_path("proj/nothing")) == ENOENT &&
		       box_total(&box) == 0,
	       "a name the project does not have is ENOENT, no record");
	tap_ok(error_of(box_path("proj/closed")) == EACCES &&
		       box_total(&box) == 0,
	       "what its own mode closes is no denial");
	box_forget(&box);
}

/* Is what descriptor @fd holds opened again by the path @form, and read from
 * its start? */
static bool reads_by(const char *form, long fd, const char *want)
{
	char path[64];

	snprintf(path, sizeof(path), "%s%ld", form, fd);
	return reads(path, want);
}

static long again(long fd, int flags, int *err)
{
	return open_in(box_text("/proc/self/fd/%ld", fd), flags, 0, err);
}

/* Every path to a descriptor of its own. */
static void paths_to_a_descriptor(void)
{
	static const char *const forms[] = {
		"/proc/self/fd/",
		"/proc/thread-self/fd/",
		"/dev/fd/",
		"/dev//fd//",
	};
	char text[256];
	int err;
	long fd = open_in(box_path("proj/ok.txt"), O_RDONLY, 0, &err), fd2;
	long pid = box_tell(&box, &err, NULL, "call %d", (int)SYS_getpid);

	box_tell(&box, &err, text, "read %ld", fd); /* it is at its end */
	for (size_t i = 0; i < ZB_ARRAY_LEN(forms); i++)
		tap_ok(reads_by(forms[i], fd, "hello"), "%sN is opened again",
		       forms[i]);
	tap_ok(reads_by(box_text("/proc/%ld/fd/", pid), fd, "hello"),
	       "by its own number too");
	tap_ok(!box_tell(&box, &err, NULL, "run cat /dev/stdin <%s | grep -q h",
			 box_path("proj/ok.txt")),
	       "cat /dev/stdin <FILE");
	tap_ok(!box_tell(&box, &err, NULL,
			 "run echo x | cat /dev/stdin | grep -q x"),
	       "a pipe is left to the kernel");
	tap_ok(error_of("/proc/self/fd/99") == ENOENT,
	       "what is none is ENOENT");
	again(fd, O_RDONLY | O_NOFOLLOW, &err);
	tap_ok(err == ELOOP, "O_NOFOLLOW is ELOOP (%d)", err);
	again(fd, O_RDONLY | O_DIRECTORY, &err);
	tap_ok(err == ENOTDIR, "a file is no directory (%d)", err);
	fd2 = again(fd, O_RDONLY | O_CREAT | O_CLOEXEC, &err);
	tap_ok(fd2 >= 0 && box_tell(&box, &err, NULL, "call %d %ld %d",
				    (int)SYS_fcntl, fd2, F_GETFD) == FD_CLOEXEC,
	       "O_CREAT has no effect; it closes on exec if asked");
	close_in(fd2);
	close_in(fd);
	fd = open_in(box_path("proj"), O_RDONLY | O_DIRECTORY, 0, &err);
	fd2 = again(fd, O_RDONLY | O_DIRECTORY, &err);
	tap_ok(fd2 >= 0, "a directory is opened again (%d)", err);
	close_in(fd2);
	close_in(fd);
	tap_ok(box_total(&box) == 0, "nothing of that is a denial");
	box_forget(&box);
}

/* What a descriptor opened again does not become. */
static void reopened(void)
{
	const char *ok = box_path("proj/ok.txt");
	const char *moved = box_path("proj/.env.moved");
	char text[256];
	int err;
	long fd = open_in(ok, O_RDONLY, 0, &err);

	again(fd, O_RDWR, &err);
	tap_ok(err == EROFS && box_denied(&box, ZB_OP_FS_WRITE, ok),
	       "one to read does not become one to write: recorded (%d)", err);
	box_forget(&box);
	again(fd, O_RDONLY | O_TRUNC, &err);
	tap_ok(err == EROFS && box_denied(&box, ZB_OP_FS_WRITE, ok) &&
		       host_reads(ok),
	       "nor is it cut (%d)", err);
	close_in(fd);
	box_forget(&box);
	fd = open_in(box_path("proj/.env"), O_PATH, 0, &err);
	again(fd, O_RDONLY, &err);
	tap_ok(fd >= 0 && err == EACCES &&
		       box_denied(&box, ZB_OP_FS_READ, box_path("proj/.env")),
	       "an O_PATH one of a denied file is refused by its name (%d)",
	       err);
	tap_ok(has(box_last(&box, ZB_OP_FS_READ, box_path("proj/.env"))->asked,
		   "/proc/self/fd/"),
	       "and the record has what was asked for");
	close_in(fd);
	box_forget(&box);
	fd = open_in(ok, O_PATH, 0, &err);
	tap_ok(reads_by("/proc/self/fd/", fd, "hello"),
	       "one of a file that may be read is not");
	close_in(fd);

	box_file(box_path("proj/stay"), "stay\n", 0644);
	fd = open_in(box_path("proj/stay"), O_RDONLY, 0, &err);
	tap_ok(reads_by("/proc/self/fd/", fd, "stay"), "a file, before");
	tap_ok(!rename(box_path("proj/stay"), moved) && host_reads(moved),
	       "the host gives it a denied name");
	again(fd, O_RDONLY, &err);
	tap_ok(err == EACCES && box_denied(&box, ZB_OP_FS_READ, moved),
	       "and it is refused by that (%d)", err);
	box_tell(&box, &err, text, "read %ld", fd);
	tap_ok(!strcmp(text, "stay"), "what is open stays open");
	close_in(fd);
	unlink(moved);
	box_forget(&box);
	box_file(box_path("proj/old"), "old\n", 0644);
	box_file(box_path("proj/new"), "new\n", 0644);
	fd = open_in(box_path("proj/old"), O_RDONLY, 0, &err);
	tap_ok(!rename(box_path("proj/new"), box_path("proj/old")) &&
		       reads_by("/proc/self/fd/", fd, "old"),
	       "replaced by the host, it is the old one that is opened again");
	again(fd, O_RDWR, &err);
	tap_ok(err == EACCES || err == EROFS,
	       "to read, as it was, and not to write (%d)", err);
	close_in(fd);
	unlink(box_path("proj/old"));
	fd = open_in(box_path("proj/.env"), O_PATH, 0, &err);
	tap_ok(!rename(box_path("proj/.env"), box_path("gone")) &&
		       again(fd, O_RDONLY, &err) < 0,
	       "what has left the project is not opened (%d)", err);
	tap_ok(!unlink(box_path("gone")) && again(fd, O_RDONLY, &err) < 0,
	       "nor an O_PATH one without a name (%d)", err);
	close_in(fd);
	box_file(box_path("proj/.env"), "SECRET\n", 0644);
	fd = open_in(box_path("proj/fifo"), O_PATH, 0, &err);
	again(fd, O_RDONLY, &err);
	tap_ok(err == EACCES &&
		       box_denied(&box, ZB_OP_FS_READ, box_path("proj/fifo")),
	       "a FIFO is refused at once, with a record (%d)", err);
	close_in(fd);
	box_forget(&box);
}

static void writing(void)
{
	char text[256];
	struct stat st;
	int err;
	long fd;

	open_in(box_path("proj/ok.txt"), O_WRONLY | O_TRUNC, 0, &err);
	tap_ok(err == EROFS && box_denied(&box, ZB_OP_FS_WRITE,
					  box_path("proj/ok.txt")),
	       "writing a read grant is EROFS and recorded (%d)", err);
	tap_ok(!stat(box_path("proj/ok.txt"), &st) && st.st_size == 6,
	       "and changes nothing");
	open_in(box_path("proj/new"), O_WRONLY | O_CREAT, 0600, &err);
	tap_ok(err == EROFS &&
		       box_denied(&box, ZB_OP_FS_CREATE, box_path("proj/new")),
	       "nor is a file made there (%d)", err);
	open_in(box_path("hidden/new"), O_WRONLY | O_CREAT, 0600, &err);
	tap_ok(err == ENOENT && box_denied(&box, ZB_OP_FS_CREATE,
					   box_path("hidden/new")),
	       "nor in a hidden directory (%d)", err);
	box_forget(&box);
	open_in(box_path("hidden/k"), O_WRONLY | O_CREAT, 0600, &err);
	tap_ok(err == ENOENT &&
		       box_denied(&box, ZB_OP_FS_WRITE, box_path("hidden/k")),
	       "of a hidden file it is the writing that is refused");
	box_forget(&box);
	open_in(box_path("hidden/no/where"), O_WRONLY | O_CREAT, 0600, &err);
	tap_ok(err == ENOENT && box_total(&box) == 0,
	       "what the host would refuse as well is no record");
	open_in("/usr/zotbox-test-new", O_WRONLY | O_CREAT, 0600, &err);
	tap_ok(err == EROFS && (box_total(&box) > 0) == !access("/usr", W_OK),
	       "a record only if the host would have allowed it");
	box_forget(&box);
	fd = open_in(box_path("data/made"), O_RDWR | O_CREAT, 0640, &err);
	box_tell(&box, &err, NULL, "call %d %ld s:mine 4", (int)SYS_write, fd);
	close_in(fd);
	tap_ok(reads(box_path("data/made"), "mine"), "its data can be written");
	fd = open_in("/tmp/t", O_RDWR | O_CREAT, 0600, &err);
	tap_ok(fd >= 0, "and /tmp");
	close_in(fd);
	fd = open_in("/dev/shm/t", O_RDWR | O_CREAT, 0600, &err);
	tap_ok(fd >= 0, "and /dev/shm (%d)", err);
	close_in(fd);
	fd = open_in("/dev/null", O_WRONLY, 0, &err);
	tap_ok(fd >= 0 && content("/proc/self/comm", text) == 0 &&
		       !strcmp(text, "probe"),
	       "/dev/null opens, /proc/self is its own");
	close_in(fd);
	open_in(box_path("data/set"), O_WRONLY | O_CREAT, 04755, &err);
	tap_ok(err == EPERM && box_denied(&box, ZB_OP_FS_META, NULL),
	       "no set-id file is made");
	tap_ok(access(box_path("private_data/set"), F_OK) != 0,
	       "not even an empty one");
	box_forget(&box);
}

static int call_at(int nr, const char *path, const char *more)
{
	int err;

	box_tell(&box, &err, NULL, "call %d %d s:%s %s", nr, CWD, path, more);
	return err;
}

static int call_at2(int nr, const char *a, const char *b)
{
	int err;

	box_tell(&box, &err, NULL, "call %d %d s:%s %d s:%s 0", nr, CWD, a, CWD,
		 b);
	return err;
}

static void names(void)
{
	char text[256];
	int e;

	tap_ok(!call_at(SYS_mkdirat, box_path("data/dir"), "0755") &&
		       !call_at2(SYS_renameat2, box_path("data/made"),
				 box_path("data/dir/m")) &&
		       !call_at2(SYS_linkat, box_path("data/dir/m"),
				 box_path("data/n")) &&
		       !call_at(SYS_unlinkat, box_path("data/dir/m"), "0") &&
		       !call_at(SYS_unlinkat, box_path("data/dir"), "0x200"),
	       "its data: mkdir, rename, link, unlink, rmdir");
	tap_ok(box_total(&box) == 0, "without a record");
	e = call_at(SYS_unlinkat, box_path("proj/ok.txt"), "0");
	tap_ok(e == EROFS && box_denied(&box, ZB_OP_FS_DELETE,
					box_path("proj/ok.txt")),
	       "a read grant: unlink is EROFS and recorded (%d)", e);
	e = call_at(SYS_mkdirat, box_path("proj/d"), "0755");
	tap_ok(e == EROFS &&
		       box_denied(&box, ZB_OP_FS_CREATE, box_path("proj/d")),
	       "mkdir (%d)", e);
	e = call_at2(SYS_renameat2, box_path("proj/ok.txt"),
		     box_path("proj/ko"));
	tap_ok(e == EROFS && box_denied(&box, ZB_OP_FS_RENAME,
					box_path("proj/ok.txt")),
	       "rename (%d)", e);
	box_tell(&box, &e, NULL, "call %d s:x %d s:%s", (int)SYS_symlinkat, CWD,
		 box_path("proj/s"));
	tap_ok(e == EROFS &&
		       box_denied(&box, ZB_OP_FS_CREATE, box_path("proj/s")),
	       "symlink (%d)", e);
	e = call_at(SYS_mknodat, box_path("proj/p"), "010644 0");
	tap_ok(e == EROFS &&
		       box_denied(&box, ZB_OP_FS_CREATE, box_path("proj/p")),
	       "mknod (%d)", e);
	box_forget(&box);
	tap_ok(call_at(SYS_mkdirat, box_path("proj/sub"), "0755") == EEXIST,
	       "what is there already is EEXIST");
	tap_ok(call_at2(SYS_renameat2, box_path("proj/ok.txt"),
			box_path("data/x")) == EXDEV,
	       "from one mount to another is EXDEV, as everywhere");
	tap_ok(box_total(&box) == 0, "neither is a denial");
	tap_ok(call_at(SYS_unlinkat, box_path("hidden/k"), "0") == ENOENT &&
		       box_denied(&box, ZB_OP_FS_DELETE, box_path("hidden/k")),
	       "unlink of a hidden file is recorded");
	tap_ok(host_reads(box_path("hidden/k")), "and does nothing");
	tap_ok(call_at(SYS_mkdirat, box_path("hidden/d"), "0755") == ENOENT &&
		       box_denied(&box, ZB_OP_FS_CREATE, box_path("hidden/d")),
	       "so is mkdir in a hidden directory");
	box_forget(&box);
	call_at(SYS_mkdirat, "/", "0");
	call_at(SYS_mkdirat, ".", "0");
	call_at(SYS_unlinkat, "..", "0x200");
	tap_ok(box_total(&box) == 0 && !content("/proc/self/comm", text),
	       "names that are none are left alone");
}

static void *let_go(void *fd)
{
	nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
	close(*(int *)fd);
	return NULL;
}

/* While another instance starts, no name becomes a link. */
static void links_wait(void)
{
	const char *home = box_path("home"), *lock = box_path("edit.lock");
	const struct {
		const char *name;
		bool waits;
		const char *line;
	} rows[] = {
		{"symlink", true,
		 box_text("call %d s:x %d s:%s/w1", (int)SYS_symlinkat, CWD,
			  home)},
		{"link", true,
		 box_text("call %d %d s:%s/w1 %d s:%s/w2 0", (int)SYS_linkat,
			  CWD, home, CWD, home)},
		{"rename", true,
		 box_text("call %d %d s:%s/w2 %d s:%s/w3 0", (int)SYS_renameat2,
			  CWD, home, CWD, home)},
		{"mkdir", false,
		 box_text("call %d %d s:%s/w4 0700", (int)SYS_mkdirat, CWD,
			  home)},
	};

	box_file(lock, "", 0600);
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		int fd = open(lock, O_RDWR | O_CLOEXEC), err;
		struct timespec a, b;
		pthread_t t;
		long ms;

		if (fd < 0 || flock(fd, LOCK_EX) ||
		    pthread_create(&t, NULL, let_go, &fd)) {
			tap_ok(false, "%s: lock", rows[i].name);
			continue;
		}
		clock_gettime(CLOCK_MONOTONIC, &a);
		box_tell(&box, &err, NULL, "%s", rows[i].line);
		clock_gettime(CLOCK_MONOTONIC, &b);
		pthread_join(t, NULL);
		ms = (b.tv_sec - a.tv_sec) * 1000 +
		     (b.tv_nsec - a.tv_nsec) / 1000000;
		tap_ok(!err && (ms > 300) == rows[i].waits,
		       "%s %s for an instance that starts (%ld ms, errno %d)",
		       rows[i].name, rows[i].waits ? "waits" : "does not wait",
		       ms, err);
	}
	unlink(lock);
}

/* A page of the caller's, as it is protected: first its last bytes, then how a
 * next one is. */
static const struct {
	const char *name;
	int mode, next;
	unsigned at;
	int want;
} pages[] = {
	{"may be written", PROT_READ | PROT_WRITE, PROT_READ, 0, 0},
	{"may be written, to its end", PROT_READ | PROT_WRITE, PROT_READ,
	 4096 - 8, 0},
	{"may only be read", PROT_READ, PROT_READ, 0, EFAULT},
	{"may not even be read", PROT_NONE, PROT_READ, 0, EFAULT},
	{"goes on in one that may not be written", PROT_READ | PROT_WRITE,
	 PROT_READ, 4096 - 4, EFAULT},
	{"goes on in one that may be written", PROT_READ | PROT_WRITE,
	 PROT_READ | PROT_WRITE, 4096 - 4, 0},
};

/* What the kernel says, with no broker. */
static int bare_page(const char *file, size_t i)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int e;

	mprotect(p, 4096, pages[i].mode);
	mprotect(p + 4096, 4096, pages[i].next);
	e = getxattr(file, "user.eight", p + pages[i].at, 64) < 0 ? errno : 0;
	munmap(p, 8192);
	return e;
}

/* The same inside; @seen gets what is in the page then. */
static int broker_page(const char *n, size_t i, char seen[8])
{
	int e, last;
	long fd, map = box_tell(&box, &e, NULL, "call %d 0 8192 3 %d -1 0",
				(int)SYS_mmap, MAP_PRIVATE | MAP_ANONYMOUS);
	zb_auto(fd) int page = -1;

	box_tell(&box, &e, NULL, "call %d %ld 4096 %d", (int)SYS_mprotect, map,
		 pages[i].mode);
	box_tell(&box, &e, NULL, "call %d %ld 4096 %d", (int)SYS_mprotect,
		 map + 4096, pages[i].next);
	box_tell(&box, &last, NULL, "call %d s:%s s:user.eight %ld 64",
		 (int)SYS_getxattr, n, map + (long)pages[i].at);
	box_tell(&box, &e, NULL, "call %d %ld 8192 %d", (int)SYS_mprotect, map,
		 PROT_READ);
	fd = open_in(box_path("data/page"), O_WRONLY | O_CREAT, 0600, &e);
	box_tell(&box, &e, NULL, "call %d %ld %ld 8 0", (int)SYS_pwrite64, fd,
		 map + (long)pages[i].at);
	close_in(fd);
	page = open(box_path("private_data/page"), O_RDONLY | O_CLOEXEC);
	if (page < 0 || read(page, seen, 8) != 8)
		memset(seen, '?', 8);
	return last;
}

/* An answer goes where the caller may write, and nowhere else. */
static void answer_pages(const char *n)
{
	const char *file = box_path("private_data/n");
	int e;

	box_tell(&box, &e, NULL, "call %d s:%s s:user.eight s:12345678 8 0",
		 (int)SYS_setxattr, n);
	for (size_t i = 0; i < ZB_ARRAY_LEN(pages); i++) {
		int bare = bare_page(file, i);
		char seen[8];
		int got = broker_page(n, i, seen);

		tap_ok(bare == pages[i].want && got == bare,
		       "a page that %s: as the kernel (%d, %d)", pages[i].name,
		       got, bare);
		tap_ok(!memcmp(seen, bare ? "\0\0\0\0\0\0\0\0" : "12345678", 8),
		       "and %s is in it", bare ? "nothing" : "the answer");
	}
}

/* Of data that is its own; @kept: one was set there. */
static void read_attributes(const char *n, bool kept)
{
	int e;
	long got;

	got = box_tell(&box, &e, NULL, "call %d s:%s s:user.zb 0 0",
		       (int)SYS_getxattr, n);
	tap_ok(kept ? !e && got == 1 : e == ENODATA || e == EOPNOTSUPP,
	       "getxattr says how much there is (%ld, %d)", got, e);
	box_tell(&box, &e, NULL, "call %d s:%s s:user.none 0 0",
		 (int)SYS_getxattr, n);
	tap_ok(e == ENODATA || e == EOPNOTSUPP, "or that there is none (%d)",
	       e);
	box_tell(&box, &e, NULL, "call %d s:%s s:trusted.zb 0 0",
		 (int)SYS_getxattr, n);
	tap_ok(e == ENODATA || e == EOPNOTSUPP,
	       "none of those for a capability (%d)", e);
	got = box_tell(&box, &e, NULL, "call %d s:%s 0 0", (int)SYS_listxattr,
		       n);
	tap_ok(kept ? !e && got >= 8 : !e || e == EOPNOTSUPP,
	       "listxattr too (%ld, %d)", got, e);
	box_tell(&box, &e, NULL, "call %d s:%s s:user.zb 1 64",
		 (int)SYS_getxattr, n);
	tap_ok(kept ? e == EFAULT : e == ENODATA || e == EOPNOTSUPP,
	       "a buffer that is none is EFAULT (%d)", e);
	if (kept)
		answer_pages(n);
	box_tell(&box, &e, NULL, "call %d s:%s s: 0 0", (int)SYS_getxattr, n);
	tap_ok(e == ERANGE, "an attribute without a name is ERANGE (%d)", e);
	box_tell(&box, &e, NULL, "call %d s:/proc/self/status s:user.zb 0 0",
		 (int)SYS_getxattr);
	tap_ok(e == EOPNOTSUPP, "what is in /proc has none (%d)", e);
	box_forget(&box);
	box_tell(&box, &e, NULL, "call %d s:%s s:user.zb 0 0",
		 (int)SYS_getxattr, box_path("proj/.env"));
	tap_ok(e == EACCES &&
		       box_denied(&box, ZB_OP_FS_READ, box_path("proj/.env")),
	       "nor is one of a denied file told (%d)", e);
	box_tell(&box, &e, NULL, "call %d s:%s s:system.posix_acl_access 0 0",
		 (int)SYS_getxattr, box_path("proj/.env"));
	tap_ok(e == ENODATA || e == EOPNOTSUPP,
	       "who may do what is no secret (%d)", e);
	box_forget(&box);
}

static void metadata(void)
{
	const char *n = box_path("data/n");
	char fd_path[64];
	struct stat st;
	int e;
	long fd;

	tap_ok(!call_at(SYS_fchmodat, n, "0600") &&
		       !stat(box_path("private_data/n"), &st) &&
		       (st.st_mode & 0777) == 0600,
	       "chmod of its data works");
	e = call_at(SYS_fchmodat, n, "04755");
	tap_ok(e == EPERM && box_denied(&box, ZB_OP_FS_META, n),
	       "but not set-id (%d)", e);
	tap_ok(!call_at(SYS_utimensat, n,
			"b:01000000000000000000000000000000"
			"02000000000000000000000000000000 0") &&
		       !stat(box_path("private_data/n"), &st) &&
		       st.st_mtime == 2 && st.st_atime == 1,
	       "utimensat likewise");
	tap_ok(!call_at(SYS_fchownat, n,
			box_text("%u %u 0", geteuid(), getegid())),
	       "chown to itself");
	tap_ok(call_at(SYS_fchownat, n, "12345 -1 0") == EPERM,
	       "to nobody else");
	box_tell(&box, &e, NULL, "call %d s:%s 2", (int)SYS_truncate, n);
	tap_ok(!e && !stat(box_path("private_data/n"), &st) && st.st_size == 2,
	       "truncate");
	box_tell(&box, &e, NULL, "call %d s:%s s:user.zb s:v 1 0",
		 (int)SYS_setxattr, n);
	tap_ok(!e || e == EOPNOTSUPP, "setxattr (%d)", e);
	read_attributes(n, !e);
	box_tell(&box, &e, NULL, "call %d s:%s s:security.capability s:v 1 0",
		 (int)SYS_setxattr, n);
	tap_ok(e == EPERM, "no security attribute (%d)", e);
	box_forget(&box);
	e = call_at(SYS_fchmodat, box_path("ext/probe"), "0600");
	tap_ok(e == EROFS &&
		       box_denied(&box, ZB_OP_FS_META, box_path("ext/probe")),
	       "its code: chmod is EROFS and recorded (%d)", e);
	box_tell(&box, &e, NULL, "call %d s:%s 0", (int)SYS_truncate,
		 box_path("ext/probe"));
	tap_ok(e == EROFS &&
		       box_denied(&box, ZB_OP_FS_WRITE, box_path("ext/probe")),
	       "truncate (%d)", e);
	fd = open_in(box_path("ext/probe"), O_RDONLY, 0, &e);
	box_tell(&box, &e, NULL, "call %d %ld 0600", (int)SYS_fchmod, fd);
	tap_ok(e == EROFS, "fchmod (%d)", e);
	close_in(fd);
	fd = open_in(box_path("proj/.env"), O_PATH, 0, &e);
	box_tell(&box, &e, NULL, "call %d %ld 0600", (int)SYS_fchmod, fd);
	tap_ok(e == EBADF, "fchmod on an O_PATH descriptor is EBADF (%d)", e);
	snprintf(fd_path, sizeof(fd_path), "/proc/self/fd/%ld", fd);
	e = call_at(SYS_fchmodat, fd_path, "0600");
	tap_ok(e == EROFS, "nor through /proc/self/fd (%d)", e);
	box_tell(&box, &e, NULL, "call %d %ld b:00 %u %u 0x1000",
		 (int)SYS_fchownat, fd, geteuid(), getegid());
	tap_ok(e == EROFS || e == EACCES, "chown by descriptor too (%d)", e);
	close_in(fd);
	tap_ok(!stat(box_path("proj/.env"), &st) && (st.st_mode & 0777) == 0644,
	       "nothing was changed outside");
	box_forget(&box);
}

/* Calls that name their object by a descriptor. */
static void by_descriptor(void)
{
	int e;
	long fd;

	fd = open_in(box_path("data/gone"), O_RDWR | O_CREAT, 0600, &e);
	call_at(SYS_unlinkat, box_path("data/gone"), "0");
	box_tell(&box, &e, NULL, "call %d %ld 0 0 0", (int)SYS_utimensat, fd);
	tap_ok(!e, "utimensat on a file that has no name any more (%d)", e);
	box_tell(&box, &e, NULL, "call %d %ld 0644", (int)SYS_fchmod, fd);
	tap_ok(!e, "fchmod too (%d)", e);
	box_tell(&box, &e, NULL, "call %d %ld 04755", (int)SYS_fchmod, fd);
	tap_ok(e == EPERM, "but not set-id (%d)", e);
	close_in(fd);
	box_forget(&box);
	fd = open_in(box_path("ext/probe"), O_RDONLY, 0, &e);
	box_tell(&box, &e, NULL, "call %d %ld 0 0 0", (int)SYS_utimensat, fd);
	tap_ok(e == EROFS &&
		       box_denied(&box, ZB_OP_FS_META, box_path("ext/probe")),
	       "on its code it is EROFS and recorded (%d)", e);
	box_tell(&box, &e, NULL, "call %d %ld b:757365722e7800 s:v 1 0",
		 (int)SYS_fsetxattr, fd);
	tap_ok(e == EROFS, "so is fsetxattr (%d)", e);
	close_in(fd);
	box_tell(&box, &e, NULL, "call %d 99 0 0 0", (int)SYS_utimensat);
	tap_ok(e == EBADF, "on nothing it is EBADF (%d)", e);
	box_forget(&box);
}

/* A process that nobody may look at, except its supervisor. */
static void undumpable(void)
{
	long dir;
	int e;

	box_tell(&box, &e, NULL, "call %d 4 0 0 0 0", (int)SYS_prctl);
	dir = open_in(box_path("proj"), O_RDONLY | O_DIRECTORY, 0, &e);
	box_tell(&box, &e, NULL, "call %d %ld s:.env 0 0", (int)SYS_openat,
		 dir);
	tap_ok(e == EACCES &&
		       box_denied(&box, ZB_OP_FS_READ, box_path("proj/.env")),
	       "a process that is not dumpable is judged like any (%d)", e);
	box_tell(&box, &e, NULL, "call %d %ld s:ok.txt 0 0", (int)SYS_openat,
		 dir);
	tap_ok(!e, "and served (%d)", e);
	box_forget(&box);
}

static int exec_error(const char *path)
{
	int err;

	box_tell(&box, &err, NULL, "call %d s:%s 0 0", (int)SYS_execve, path);
	return err;
}

static void programs(void)
{
	const char *prog = box_path("hidden/prog");
	long fd;
	int e;

	tap_ok(box_tell(&box, NULL, NULL, "run /usr/bin/true") == 0,
	       "a visible program runs");
	tap_ok(box_tell(&box, NULL, NULL, "run %s", box_path("ext/script")) ==
		       0,
	       "so does a script of its own");
	box_forget(&box); /* libc looks for what it can do without */
	e = exec_error(prog);
	tap_ok(e == ENOENT && box_denied(&box, ZB_OP_FS_EXEC, prog),
	       "a hidden one is ENOENT and recorded (%d)", e);
	box_forget(&box);
	e = exec_error(box_path("hidden/k"));
	tap_ok(e == ENOENT && box_total(&box) == 0,
	       "what is no program is no denial of one");
	e = exec_error(box_path("hidden/none"));
	tap_ok(e == ENOENT && box_total(&box) == 0, "nor what nobody has");
	e = exec_error(box_path("proj/tool"));
	tap_ok(e == EACCES &&
		       box_denied(&box, ZB_OP_FS_EXEC, box_path("proj/tool")),
	       "one that may only be read is EACCES (%d)", e);
	box_forget(&box);
	fd = open_in(box_path("proj/tool"), O_PATH, 0, &e);
	box_tell(&box, &e, NULL, "call %d %ld s: 0 0 0x1000", (int)SYS_execveat,
		 fd);
	tap_ok(e == EACCES &&
		       box_denied(&box, ZB_OP_FS_EXEC, box_path("proj/tool")),
	       "by a descriptor too (%d)", e);
	close_in(fd);
	box_forget(&box);
	box_tell(&box, &e, NULL, "call %d 99 s: 0 0 0x1000", (int)SYS_execveat);
	tap_ok(e == EBADF && box_total(&box) == 0, "nothing is EBADF (%d)", e);
	box_file(box_path("ext/lost"), box_text("#! %s -x\n", prog), 0755);
	e = exec_error(box_path("ext/lost"));
	tap_ok(e == ENOENT && box_denied(&box, ZB_OP_FS_EXEC, prog),
	       "a script names the interpreter it misses (%d)", e);
	box_forget(&box);
}

/* It has no mount of its own, and is told from what is beside it. */
static void a_program_in_a_place_for_reading(void)
{
	const char *other = box_path("open/other");
	int e;

	tap_ok(!access(other, X_OK), "control: outside both may be executed");
	tap_ok(box_tell(&box, NULL, NULL, "run %s", box_path("open/run")) == 0,
	       "a program granted in a place for reading runs");
	box_forget(&box);
	e = exec_error(other);
	tap_ok(e == EACCES && box_denied(&box, ZB_OP_FS_EXEC, other),
	       "the one beside it does not, and is recorded (%d)", e);
	box_forget(&box);
	tap_ok(reads(box_path("open/run"), "#!/usr/bin/env true") &&
		       reads(other, "#!/usr/bin/env true") &&
		       box_total(&box) == 0,
	       "both are read, without a record");
	open_in(box_path("open/run"), O_WRONLY, 0, &e);
	tap_ok(e == EROFS, "neither is written (%d)", e);
	open_in(other, O_WRONLY, 0, &e);
	tap_ok(e == EROFS, "nor the other (%d)", e);
	box_forget(&box);
}

static void dangerous(void)
{
	int e;

	box_tell(&box, &e, NULL, "call %d 0 0x5412 s:x", (int)SYS_ioctl);
	tap_ok(e == EPERM && box_denied(&box, ZB_OP_SYSCALL, "ioctl TIOCSTI"),
	       "TIOCSTI is EPERM and named (%d)", e);
	box_tell(&box, &e, NULL, "call %d 0x10000000", (int)SYS_unshare);
	tap_ok(e == EPERM &&
		       box_denied(&box, ZB_OP_SYSCALL, "unshare CLONE_NEWUSER"),
	       "a user namespace (%d)", e);
	box_tell(&box, &e, NULL, "call %d 0 s:/mnt 0 0 0", (int)SYS_mount);
	tap_ok(e == EPERM && box_denied(&box, ZB_OP_SYSCALL, "mount"),
	       "mount (%d)", e);
	box_forget(&box);
}

static unsigned count_fds(void)
{
	zb_auto(file) FILE *f = popen("ls /proc/$PPID/fd | wc -l", "r");
	unsigned n = 0;

	if (f && fscanf(f, "%u", &n) != 1)
		n = 0;
	if (f)
		pclose(zb_steal(&f));
	return n;
}

/* The least of some counts: other threads open one for a moment. */
static unsigned open_fds(void)
{
	unsigned least = count_fds();

	for (int i = 0; i < 5; i++) {
		unsigned n;

		box_total(&box); /* a pause */
		n = count_fds();
		least = n < least ? n : least;
	}
	return least;
}

static void endurance(void)
{
	unsigned before, after;
	char rest[256];
	long n;

	box_forget(&box);
	before = open_fds();
	n = box_tell(&box, NULL, rest, "opens 5000 %s",
		     box_path("proj/ok.txt"));
	after = open_fds();
	tap_ok(n == 5000 && before == after,
	       "5000 injected files leave no descriptor behind (%u, %u)",
	       before, after);
	n = box_tell(&box, NULL, rest, "quick 100 %s", box_path("hidden/k"));
	tap_ok(n == 100 && reads(box_path("proj/ok.txt"), "hello"),
	       "a hundred processes that end at once do not stop it");
	n = box_tell(
		&box, NULL, rest,
		"run for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 "
		"18 19 20; do ( while :; do true <%s; done 2>/dev/null ) & "
		"p=$!; kill -9 $p 2>/dev/null; wait $p 2>/dev/null; done; true",
		box_path("hidden/k"));
	tap_ok(n == 0 && reads(box_path("proj/ok.txt"), "hello"),
	       "nor do callers killed while they wait");
	n = box_tell(&box, NULL, rest,
		     "run ( while :; do true <%s; done ) 2>/dev/null & p=$!; "
		     "n=0; i=0; while [ $i -lt 100 ]; do i=$((i+1)); "
		     "[ \"$(echo abc | cat | cat)\" = abc ] && n=$((n+1)); "
		     "done; kill -9 $p; exit $((100-n))",
		     box_path("hidden/k"));
	tap_ok(n == 0, "100 of 100 pipelines while denials go on (%ld lost)",
	       n);
	box_forget(&box);
}

static unsigned entries(const char *dir)
{
	DIR *d = opendir(dir);
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Sandboxes that end at once, in the middle of refusals. */
static void comes_and_goes(void)
{
	unsigned threads = entries("/proc/self/task");
	unsigned fds = entries("/proc/self/fd");
	double slowest = 0;

	for (int i = 0; i < 10; i++) {
		struct timespec a, b;
		double t;

		plan(ZB_LEDGER_OPEN);
		box_start(&box);
		fprintf(box.in, "quick 20 %s\n", box_path("hidden/k"));
		fflush(box.in);
		if (i % 2)
			box_tell(&box, NULL, NULL, "run true");
		clock_gettime(CLOCK_MONOTONIC, &a);
		box_stop(&box);
		clock_gettime(CLOCK_MONOTONIC, &b);
		t = (double)(b.tv_sec - a.tv_sec) +
		    (double)(b.tv_nsec - a.tv_nsec) / 1e9;
		slowest = t > slowest ? t : slowest;
	}
	usleep(50000);
	tap_ok(slowest < 2, "the end is noticed at once (%.2f s)", slowest);
	tap_ok(entries("/proc/self/task") == threads &&
		       entries("/proc/self/fd") == fds,
	       "no thread and no descriptor is left");
}

static void mode_full(void)
{
	const char *k = box_path("hidden/k");
	int e;

	plan(ZB_LEDGER_FULL);
	box_start(&box);
	e = call_at(SYS_newfstatat, k, "b:00 0");
	tap_ok(e == ENOENT && box_denied(&box, ZB_OP_FS_READ, k),
	       "full: stat of a hidden file is recorded (%d)", e);
	e = call_at(SYS_faccessat, box_path("home/.ssh/id"), "4");
	tap_ok(e == ENOENT && box_denied(&box, ZB_OP_FS_READ,
					 box_path("home/.ssh/id")),
	       "so is access");
	box_forget(&box);
	call_at(SYS_newfstatat, "/var", "b:00 0x100");
	call_at(SYS_newfstatat, "/var/tmp", "b:00 0x100");
	call_at(SYS_newfstatat, box_dir(), "b:00 0x100");
	call_at(SYS_newfstatat, box_path("proj/.env"), "b:00 0x100");
	call_at(SYS_newfstatat, box_path("hidden/none"), "b:00 0x100");
	call_at(SYS_newfstatat, "/usr/none", "b:00 0x100");
	tap_ok(box_total(&box) == 0,
	       "what is above a place, denied content, or absent is not");
	box_stop(&box);
}

static void mode_writes(void)
{
	int e;

	plan(ZB_LEDGER_WRITES);
	box_start(&box);
	tap_ok(error_of(box_path("proj/.env")) == EACCES &&
		       reads(box_path("proj/ok.txt"), "hello"),
	       "writes: carve-outs are still decided");
	tap_ok(box_total(&box) == 0, "reads are not recorded");
	open_in(box_path("proj/new"), O_WRONLY | O_CREAT, 0600, &e);
	tap_ok(e == EROFS && box_denied(&box, ZB_OP_FS_CREATE, NULL),
	       "writes are");
	box_stop(&box);
}

/* A carved grant below HOME: the floor cannot let the private HOME be read
 * any more, so the broker does. */
/* In a place that may be written to it is the file that counts. */
static void reopened_to_write(void)
{
	const char *path = box_path("home/again");
	struct stat st;
	int e;
	long fd, fd2;

	box_file(box_path("private_home/again"), "some text\n", 0644);
	fd = open_in(path, O_RDONLY, 0, &e);
	fd2 = again(fd, O_WRONLY | O_CREAT | O_TRUNC, &e);
	tap_ok(fd2 >= 0 && !stat(box_path("private_home/again"), &st) &&
		       st.st_size == 0,
	       "a file that may be written is opened again to write (%d)", e);
	box_tell(&box, &e, NULL, "call %d %ld s:ab 2", (int)SYS_write, fd2);
	close_in(fd2);
	fd2 = again(fd, O_WRONLY | O_APPEND, &e);
	box_tell(&box, &e, NULL, "call %d %ld s:cd 2", (int)SYS_write, fd2);
	close_in(fd2);
	tap_ok(reads(path, "abcd"), "and to append");
	tap_ok(!call_at(SYS_unlinkat, path, "0") &&
		       reads_by("/proc/self/fd/", fd, "abcd"),
	       "without a name it is read again");
	again(fd, O_RDWR, &e);
	tap_ok(e == EACCES, "but not written by one to read (%d)", e);
	close_in(fd);
	fd = open_in(box_path("home"), O_RDWR | O_TMPFILE, 0600, &e);
	fd2 = again(fd, O_RDWR, &e);
	tap_ok(fd >= 0 && fd2 >= 0, "one that never had a name is (%d)", e);
	close_in(fd2);
	close_in(fd);
	tap_ok(!box_tell(&box, &e, NULL, "run echo hi >/dev/stdout >%s",
			 path) &&
		       !box_tell(&box, &e, NULL,
				 "run sh -c 'echo hi >/dev/stdout' >%s",
				 path) &&
		       reads(path, "hi"),
	       "echo >/dev/stdout, which is a file");
	tap_ok(box_total(&box) == 0, "nothing of that is a denial");
	box_forget(&box);
}

static void brokered_home(void)
{
	const char *proj = box_path("home/code/proj");
	const char *mine = box_path("home/mine");
	char text[256];
	struct stat st;
	int e;
	long fd;

	box_file(box_path("home/code/proj/ok.txt"), "hello\n", 0644);
	box_file(box_path("home/code/proj/.env"), "SECRET\n", 0644);
	box_file(box_path("private_home/code/proj"), NULL, 0);
	box_file(box_path("private_home/own"), "#!/bin/true\n", 0755);
	box_file(box_path("private_home/text"), "#!/bin/true\n", 0644);
	box_plan(&box);
	box_place(&box, ZB_PLACE_PIN, box_path("home/code"),
		  box_path("private_home/code"), BOX_ALL, true);
	box_place(&box, ZB_PLACE_GRANT, proj, proj, BOX_READ, true)->carved =
		true;
	box_deny(&box, box_path("home/code/proj/**/.env*"));
	box_start(&box);
	tap_ok(reads(box_path("home/code/proj/ok.txt"), "hello") &&
		       error_of(box_path("home/code/proj/.env")) == EACCES,
	       "HOME: a carved grant below it works");
	box_tell(&box, &e, NULL, "call %d 027", (int)SYS_umask);
	fd = open_in(mine, O_RDWR | O_CREAT, 0666, &e);
	tap_ok(fd >= 0, "a file is made in HOME (%d)", e);
	box_tell(&box, &e, NULL, "call %d %ld s:mine 4", (int)SYS_write, fd);
	close_in(fd);
	tap_ok(!e && reads(mine, "mine"), "written and read");
	tap_ok(!stat(box_path("private_home/mine"), &st) &&
		       (st.st_mode & 0777) == 0640,
	       "with the mode its umask leaves");
	fd = open_in(box_path("home"), O_RDWR | O_TMPFILE, 0600, &e);
	tap_ok(fd >= 0, "one without a name too (%d)", e);
	close_in(fd);
	fd = open_in(box_path("home/lnk2"), O_RDWR | O_CREAT | O_EXCL, 0600,
		     &e);
	close_in(fd);
	open_in(box_path("home/lnk2"), O_RDWR | O_CREAT | O_EXCL, 0600, &e);
	tap_ok(e == EEXIST, "O_EXCL holds (%d)", e);
	box_tell(&box, &e, NULL, "call %d s:fresh %d s:%s", (int)SYS_symlinkat,
		 CWD, box_path("home/dangling"));
	fd = open_in(box_path("home/dangling"), O_RDWR | O_CREAT, 0600, &e);
	tap_ok(fd >= 0 && !stat(box_path("private_home/fresh"), &st),
	       "a file is made through a dangling link (%d)", e);
	close_in(fd);
	tap_ok(call_at2(SYS_renameat2, box_path("home/code"),
			box_path("home/play")) == EBUSY,
	       "what the grant hangs on cannot be moved");
	tap_ok(!call_at2(SYS_renameat2, mine, box_path("home/mine2")) &&
		       reads(box_path("home/mine2"), "mine"),
	       "other names can");
	box_forget(&box);
	e = exec_error(box_path("home/own"));
	tap_ok(e == EACCES &&
		       box_denied(&box, ZB_OP_FS_EXEC, box_path("home/own")),
	       "a program of its own does not start there: recorded (%d)", e);
	box_forget(&box);
	e = exec_error(box_path("home/text"));
	tap_ok(e == EACCES && box_total(&box) == 0,
	       "what is no program would not anywhere: no record (%d)", e);
	tap_ok(error_of(box_path("home/.ssh/id")) == ENOENT &&
		       box_denied(&box, ZB_OP_FS_READ,
				  box_path("home/.ssh/id")),
	       "the real HOME stays hidden, and that is recorded");
	tap_ok(content("/proc/self/comm", text) == 0, "/proc is its own");
	box_forget(&box);
	reopened_to_write();
	box_stop(&box);
}

int main(void)
{
	fixtures();
	plan(ZB_LEDGER_OPEN);
	box_start(&box);
	a_hidden_file();
	spellings();
	nonsense();
	carve_outs();
	injected();
	paths_to_a_descriptor();
	reopened();
	writing();
	names();
	links_wait();
	metadata();
	by_descriptor();
	programs();
	a_program_in_a_place_for_reading();
	dangerous();
	endurance();
	undumpable();
	box_stop(&box);
	comes_and_goes();
	mode_full();
	mode_writes();
	brokered_home();
	return tap_done();
}
