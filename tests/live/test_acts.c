/* test_acts.c - changes in a place that the broker serves alone: what it does
 * for the caller is to be seen on the host, as the caller's own; what is closed
 * stays as it was, by every verb, and is recorded; the mounts' own flags hold.
 * The control of each refusal is the same act on a name beside it. */
#include "config.h"

#include "box.h"

#include "cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define TRIES 100000

static struct box box;

/* One call inside. Return: its errno, 0 with *@out (may be NULL) its value. */
static int tell(long *out, const char *fmt, ...) ZB_PRINTF(2, 3);
static int tell(long *out, const char *fmt, ...)
{
	char line[2048];
	va_list ap;
	long r;
	int e;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	r = box_tell(&box, &e, NULL, "call %s", line);
	if (out)
		*out = r;
	return r < 0 ? e : 0;
}

static long open_in(const char *path, int flags, int mode)
{
	long fd = -1;

	tell(&fd, "%d -100 s:%s %d %d", (int)SYS_openat, path, flags, mode);
	return fd;
}

static void close_in(long fd)
{
	if (fd >= 0)
		tell(NULL, "%d %ld", (int)SYS_close, fd);
}

static bool exists(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

static bool holds(const char *path, const char *want)
{
	zb_auto(file) FILE *f = fopen(path, "re");
	char text[256] = "";

	return f && fgets(text, sizeof(text), f) && !strcmp(text, want);
}

/* Two trees alike: the grant, and one that a probe outside may change. */
static void plant(const char *top)
{
	const char *const files[] = {
		"ok.txt",     "other.txt",	    "dir/file",
		"full/in/it", "secret.pem",	    ".git/config",
		".envrc",     ".vscode/tasks.json", "sub/.git/HEAD",
		"held/ro/f",  "own/.git/HEAD",	    "stale/.claude/x",
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(files); i++)
		box_file(box_text("%s/%s", box_path(top), files[i]),
			 "as it was\n", 0644);
	box_file(box_text("%s/.git/hooks", box_path(top)), NULL, 0);
	box_file(box_text("%s/empty", box_path(top)), NULL, 0);
	box_file(box_text("%s/locked", box_path(top)), "x\n", 0);
	if (symlink("sub", box_text("%s/link", box_path(top))) ||
	    symlink("ok.txt", box_text("%s/soft", box_path(top))) ||
	    symlink(".agents", box_text("%s/dangling", box_path(top))) ||
	    symlink("fresh.txt", box_text("%s/hanging", box_path(top))))
		tap_ok(false, "fixtures");
}

static void deny(const char *pattern, bool built_in)
{
	box_deny(&box, pattern);
	box.plan.denies[box.plan.n_denies - 1].built_in = built_in;
}

static void plan(void)
{
	const unsigned all = BOX_READ | ZB_MAY_WRITE | ZB_MAY_CREATE;
	static const char *const names[] = {
		"/**/.git",    "/**/.zot/extensions", "/**/.zot/mcp.json",
		"/**/.claude", "/**/.agents",	      "/**/.envrc",
		"/**/.vscode",
	};

	box_plan(&box);
	box_place(&box, ZB_PLACE_GRANT, box_path("proj"), box_path("proj"), all,
		  true)
		->carved = true;
	box_place(&box, ZB_PLACE_GRANT, box_path("proj/held/ro"),
		  box_path("proj/held/ro"), BOX_READ, true);
	box_place(&box, ZB_PLACE_GRANT, box_path("proj/own/.git"),
		  box_path("proj/own/.git"), all, true)
		->carved = true;
	box_place(&box, ZB_PLACE_GRANT, box_path("home/w"), box_path("home/w"),
		  all, true)
		->carved = true;
	for (size_t i = 0; i < ZB_ARRAY_LEN(names); i++)
		deny(names[i], true);
	deny(box_path("proj/**/*.pem"), false);
}

/* ---- the same as a kernel's ---------------------------------------------- */

/* Calls that are made inside on one tree and outside on its twin, in order.
 * %s: the tree; each answer must be the same. */
static const struct {
	long nr;
	const char *args;
} twins[] = {
	{SYS_umask, "027"},
	{SYS_openat, "-100 s:%s/new 0102 0666"},
	{SYS_openat, "-100 s:%s/new 0302 0666"},
	{SYS_openat, "-100 s:%s/made/ 0102 0666"},
	{SYS_openat, "-100 s:%s/dir 01 0"},
	{SYS_openat, "-100 s:%s/dir 0102 0666"},
	{SYS_openat, "-100 s:%s/dir/ 0 0"},
	{SYS_openat, "-100 s:%s/ok.txt/ 0 0"},
	{SYS_openat, "-100 s:%s/ok.txt 0200000 0"},
	{SYS_openat, "-100 s:%s/ok.txt/x 0102 0666"},
	{SYS_openat, "-100 s:%s/none/x 0102 0666"},
	{SYS_openat, "-100 s:%s/soft 0400002 0"},
	{SYS_openat, "-100 s:%s/soft 02 0"},
	{SYS_openat, "-100 s:%s/hanging 0102 0600"},
	{SYS_openat, "-100 s:%s/hanging 0302 0600"},
	{SYS_openat, "-100 s:%s/locked 02 0"},
	{SYS_openat, "-100 s:%s/locked 0 0"},
	{SYS_openat, "-100 s:%s/dir 020200002 0600"}, /* O_TMPFILE */
	{SYS_openat, "-100 s:%s/ok.txt 020200002 0600"},
	{SYS_openat, "-100 s:%s/dir 020200000 0600"},
	{SYS_mkdirat, "-100 s:%s/m 0777"},
	{SYS_mkdirat, "-100 s:%s/m 0777"},
	{SYS_mkdirat, "-100 s:%s/m/ 0777"},
	{SYS_mkdirat, "-100 s:%s/m2/ 01777"},
	{SYS_mkdirat, "-100 s:%s/none/m 0777"},
	{SYS_mkdirat, "-100 s:%s/ok.txt/m 0777"},
	{SYS_mkdirat, "-100 s:%s/soft 0777"},
	{SYS_mknodat, "-100 s:%s/p 010666 0"},
	{SYS_mknodat, "-100 s:%s/p 010666 0"},
	{SYS_mknodat, "-100 s:%s/r 0 0"},
	{SYS_symlinkat, "s:nowhere -100 s:%s/sl"},
	{SYS_symlinkat, "s:nowhere -100 s:%s/sl"},
	{SYS_symlinkat, "b:00 -100 s:%s/sl2"},
	{SYS_symlinkat, "s:x -100 s:%s/sl3/"},
	{SYS_linkat, "-100 s:%s/ok.txt -100 s:%s/hard 0"},
	{SYS_linkat, "-100 s:%s/ok.txt -100 s:%s/hard 0"},
	{SYS_linkat, "-100 s:%s/soft -100 s:%s/soft2 0"},
	{SYS_linkat, "-100 s:%s/soft -100 s:%s/hard2 0x400"},
	{SYS_linkat, "-100 s:%s/none -100 s:%s/hard3 0"},
	{SYS_linkat, "-100 s:%s/dir -100 s:%s/hard3 0"},
	{SYS_linkat, "-100 s:%s/hard -100 s:%s/none/x 0"},
	{SYS_renameat2, "-100 s:%s/hard -100 s:%s/hard4 0"},
	{SYS_renameat2, "-100 s:%s/hard -100 s:%s/hard4 0"},
	{SYS_renameat2, "-100 s:%s/hard4 -100 s:%s/new 1"},
	{SYS_renameat2, "-100 s:%s/hard4 -100 s:%s/new 0"},
	{SYS_renameat2, "-100 s:%s/new -100 s:%s/absent 2"},
	{SYS_renameat2, "-100 s:%s/new -100 s:%s/other.txt 2"},
	{SYS_renameat2, "-100 s:%s/new -100 s:%s/other.txt 3"},
	{SYS_renameat2, "-100 s:%s/dir -100 s:%s/dir/below 0"},
	{SYS_renameat2, "-100 s:%s/dir -100 s:%s/full 0"},
	{SYS_renameat2, "-100 s:%s/dir -100 s:%s/new 0"},
	{SYS_renameat2, "-100 s:%s/new -100 s:%s/dir 0"},
	{SYS_renameat2, "-100 s:%s/dir -100 s:%s/empty 0"},
	{SYS_renameat2, "-100 s:%s/empty -100 s:%s/dir 0"},
	{SYS_renameat2, "-100 s:%s/dir -100 s:%s/full 2"},
	{SYS_renameat2, "-100 s:%s/dir -100 s:%s/full 2"},
	{SYS_renameat2, "-100 s:%s/m/ -100 s:%s/m3/ 0"},
	{SYS_renameat2, "-100 s:%s/new/ -100 s:%s/m4 0"},
	{SYS_unlinkat, "-100 s:%s/dir 0"},
	{SYS_unlinkat, "-100 s:%s/dir 0x200"},
	{SYS_unlinkat, "-100 s:%s/new 0x200"},
	{SYS_unlinkat, "-100 s:%s/new/ 0"},
	{SYS_unlinkat, "-100 s:%s/new 0"},
	{SYS_unlinkat, "-100 s:%s/new 0"},
	{SYS_unlinkat, "-100 s:%s/new 0x80"},
	{SYS_unlinkat, "-100 s:%s/soft2 0"},
	{SYS_unlinkat, "-100 s:%s/m3 0x200"},
	{SYS_truncate, "s:%s/other.txt 3"},
	{SYS_truncate, "s:%s/full 3"},
	{SYS_truncate, "s:%s/none 3"},
	{SYS_truncate, "s:%s/other.txt -1"},
	{SYS_truncate, "s:%s/locked 0"},
	{SYS_fchmodat, "-100 s:%s/other.txt 0640"},
	{SYS_fchmodat, "-100 s:%s/soft 0600"},
	{SYS_fchmodat, "-100 s:%s/none 0600"},
	{SYS_fchmodat, "-100 s:%s/full 01755"},
	{SYS_fchownat, "-100 s:%s/soft -1 -1 0x100"},
	{SYS_utimensat, "-100 s:%s/other.txt "
			"b:0100000000000000000000000000000002000000000000000000"
			"000000000000 0"},
	{SYS_utimensat, "-100 s:%s/none 0 0"},
	{SYS_setxattr, "s:%s/other.txt s:user.zb s:v 1 1"},
	{SYS_setxattr, "s:%s/other.txt s:user.zb s:v 1 1"},
	{SYS_setxattr, "s:%s/other.txt s:user.zb s:w 1 2"},
	{SYS_removexattr, "s:%s/other.txt s:user.zb"},
	{SYS_removexattr, "s:%s/other.txt s:user.zb"},
	{SYS_setxattr, "s:%s/other.txt s:user.kept s:v 1 0"},
	{SYS_umask, "022"},
};

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

static void stop_outside(struct outside *o)
{
	fclose(o->in);
	fclose(o->out);
	waitpid(o->pid, NULL, 0);
}

/* @args with @top for each %s. */
static void fill(char *out, size_t cap, const char *args, const char *top)
{
	size_t n = 0;

	out[0] = '\0';
	for (const char *s = args; *s && n + 1 < cap; s++) {
		if (s[0] == '%' && s[1] == 's') {
			n += (size_t)snprintf(out + n, cap - n, "%s", top);
			s++;
		} else {
			out[n++] = *s;
			out[n] = '\0';
		}
	}
}

/* A root outside may what nobody may inside. */
static bool needs_no_root(size_t i)
{
	return geteuid() || !strstr(twins[i].args, "locked");
}

static void like_a_kernel(void)
{
	struct outside o;
	unsigned bad = 0;

	start_outside(&o);
	for (size_t i = 0; i < ZB_ARRAY_LEN(twins); i++) {
		char line[1024];
		long in, out = -1;
		int e_in, e_out = -1;

		if (!needs_no_root(i))
			continue;
		fill(line, sizeof(line), twins[i].args, box_path("proj"));
		e_in = tell(&in, "%ld %s", twins[i].nr, line);
		fill(line, sizeof(line), twins[i].args, box_path("twin"));
		fprintf(o.in, "call %ld %s\n", twins[i].nr, line);
		fflush(o.in);
		if (fscanf(o.out, "%ld %d", &out, &e_out) != 2)
			break;
		if (e_in != e_out || (in < 0) != (out < 0)) {
			bad++;
			tap_note("%ld %s: inside %d, outside %d", twins[i].nr,
				 twins[i].args, e_in, e_out);
		}
	}
	stop_outside(&o);
	tap_ok(!bad, "%zu calls end as the kernel ends them (%u do not)",
	       ZB_ARRAY_LEN(twins), bad);
	tap_ok(box_total(&box) == 0, "and none of them is a denial");
}

/* One line for each thing below @top, but for times. */
static void list(const char *top, char *out, size_t cap)
{
	zb_auto(free) char *cmd = zb_strf(
		"cd '%s' && find . -not -name locked -printf '%%p %%m %%y %%l "
		"%%n %%U %%G\\n' | sort; find . -type f -not -name locked -exec cat {} + 2>/dev/null; "
		"stat -c %%Y "
		"other.txt; getfattr -d other.txt 2>/dev/null || true",
		box_path(top));
	FILE *p = popen(cmd, "r");
	size_t n = p ? fread(out, 1, cap - 1, p) : 0;

	out[n] = '\0';
	if (p)
		pclose(p);
}

static void both_trees_alike(void)
{
	static char a[65536], b[65536];

	list("proj", a, sizeof(a));
	list("twin", b, sizeof(b));
	tap_ok(a[0] && !strcmp(a, b), "the host has what it would have: modes "
				      "under the umask, owners, links, times, "
				      "content");
	if (strcmp(a, b) != 0)
		fprintf(stderr, "inside:\n%s\noutside:\n%s\n", a, b);
}

static void own_descriptors(void)
{
	const char *f = box_path("proj/desc");
	long fd = open_in(f, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	long flags = 0, cloexec = 0;
	struct stat st;
	int e;

	tell(&flags, "%d %ld %d", (int)SYS_fcntl, fd, F_GETFL);
	tell(&cloexec, "%d %ld %d", (int)SYS_fcntl, fd, F_GETFD);
	tap_ok((flags & (O_ACCMODE | O_APPEND | O_NONBLOCK)) ==
			       (O_WRONLY | O_APPEND) &&
		       cloexec == FD_CLOEXEC,
	       "a descriptor has the flags that were asked for (%lo)", flags);
	tell(NULL, "%d %ld s:one 3", (int)SYS_write, fd);
	tell(NULL, "%d %ld 0 0", (int)SYS_lseek, fd);
	tell(NULL, "%d %ld s:two 3", (int)SYS_write, fd);
	tap_ok(holds(f, "onetwo"), "it appends");
	e = tell(NULL, "%d %ld 2", (int)SYS_ftruncate, fd);
	tap_ok(!e && holds(f, "on"), "ftruncate is the kernel's");
	tap_ok(!tell(NULL, "%d %ld 0640", (int)SYS_fchmod, fd) &&
		       !tell(NULL, "%d %ld %u %u", (int)SYS_fchown, fd,
			     geteuid(), getegid()) &&
		       !tell(NULL, "%d %ld 0 0 0", (int)SYS_utimensat, fd) &&
		       !stat(f, &st) && (st.st_mode & 0777) == 0640,
	       "fchmod, fchown and futimens work on it");
	close_in(fd);
	fd = open_in(f, O_RDONLY | O_TRUNC, 0);
	tap_ok(fd >= 0 && !stat(f, &st) && !st.st_size,
	       "O_TRUNC empties the file");
	close_in(fd);
	tap_ok(box_total(&box) == 0, "and nothing is recorded");
}

static void nameless(void)
{
	long fd = open_in(box_path("proj/full"), O_TMPFILE | O_RDWR, 0600);
	int e;

	tell(NULL, "%d %ld s:later 5", (int)SYS_write, fd);
	e = tell(NULL, "%d -100 s:/proc/self/fd/%ld -100 s:%s 0x400",
		 (int)SYS_linkat, fd, box_path("proj/.envrc2"));
	tap_ok(!e && holds(box_path("proj/.envrc2"), "later"),
	       "a file made without a name gets one (%d)", e);
	e = tell(NULL, "%d %ld b:00 -100 s:%s 0x1000", (int)SYS_linkat, fd,
		 box_path("proj/twice"));
	tap_ok(!e && holds(box_path("proj/twice"), "later"),
	       "by its descriptor, too (%d)", e);
	e = tell(NULL, "%d -100 s:/proc/self/fd/%ld/../x -100 s:%s 0x400",
		 (int)SYS_linkat, fd, box_path("proj/onward"));
	tap_ok(e && !exists(box_path("proj/onward")),
	       "a path that leads on from it is another (%d)", e);
	e = tell(NULL, "%d -100 s:/proc/1/fd/%ld -100 s:%s 0x400",
		 (int)SYS_linkat, fd, box_path("proj/onward"));
	tap_ok(e && !exists(box_path("proj/onward")),
	       "and so is one of another process (%d)", e);
	close_in(fd);
	box_forget(&box);
	fd = open_in(box_path("proj/full"), O_TMPFILE | O_RDWR, 0600);
	e = tell(NULL, "%d %ld b:00 -100 s:%s 0x1000", (int)SYS_linkat, fd,
		 box_path("proj/.claude"));
	tap_ok(e == EACCES && !exists(box_path("proj/.claude")) &&
		       box_denied(&box, ZB_OP_FS_CREATE,
				  box_path("proj/.claude")),
	       "but not a closed one (%d)", e);
	close_in(fd);
	fd = open_in(box_path("proj/.git"), O_TMPFILE | O_RDWR, 0600);
	tap_ok(fd < 0, "nor is one made below a closed name");
	close_in(fd);
	box_forget(&box);
}

/* ---- closed names -------------------------------------------------------- */

/* Verbs that make a name, @before and @after it. */
static const struct {
	const char *what;
	long nr;
	const char *before, *after;
} makers[] = {
	{"open", SYS_openat, "-100", "0101 0644"},
	{"open, exclusively", SYS_openat, "-100", "0301 0644"},
	{"open, to read", SYS_openat, "-100", "0100 0644"},
	{"mkdir", SYS_mkdirat, "-100", "0755"},
	{"mknod of a file", SYS_mknodat, "-100", "0100644 0"},
	{"mknod of a FIFO", SYS_mknodat, "-100", "010644 0"},
	{"mknod of a socket", SYS_mknodat, "-100", "0140644 0"},
	{"symlink", SYS_symlinkat, "s:ok.txt -100", ""},
	{"rename of a file", SYS_renameat2, "-100 s:%s/w/file -100", "0"},
	{"rename of a directory", SYS_renameat2, "-100 s:%s/w/dir -100", "0"},
	{"rename of a link", SYS_renameat2, "-100 s:%s/w/soft -100", "0"},
	{"exchange", SYS_renameat2, "-100 s:%s/w/file -100", "2"},
	{"link", SYS_linkat, "-100 s:%s/w/file -100", "0"},
	{"link of a link", SYS_linkat, "-100 s:%s/w/soft -100", "0"},
};

/* Where, and the name that is meant. */
static const struct {
	const char *path, *real;
} closed[] = {
	{".claude", NULL},
	{"sub/.agents", NULL},
	{"sub/../.claude", ".claude"},
	{"link/.claude", "sub/.claude"},
	{".git/hooks/post-commit", NULL},
	{".git/config.lock", NULL},
	{"dir/.git", NULL},
	{".zot/extensions", NULL},
	{".zot/mcp.json", NULL},
	{".vscode/settings.json", NULL},
	{"full/.envrc", NULL},
	{"new.pem", NULL},
	/* as a careless file system may take them */
	{".CLAUDE", NULL},
	{"dir/.Git", NULL},
	{"dir/.git.", NULL},
	{".zot/Extensions", NULL},
	{"NEW.PEM", NULL},
	{"dir/.g\xe2\x80\x8dit", NULL},
	{"full/.v\xc5\xbf"
	 "code",
	 NULL},
};

/* What the verbs work with, made anew inside. */
static void tools(void)
{
	const char *w = box_path("proj/w");

	tell(NULL, "%d -100 s:%s 0755", (int)SYS_mkdirat, w);
	close_in(open_in(box_text("%s/file", w), O_CREAT | O_WRONLY, 0644));
	tell(NULL, "%d -100 s:%s/dir 0755", (int)SYS_mkdirat, w);
	tell(NULL, "%d s:nowhere -100 s:%s/soft", (int)SYS_symlinkat, w);
}

static int make(size_t verb, const char *path)
{
	char before[512];
	long fd = -1;
	int e;

	fill(before, sizeof(before), makers[verb].before, box_path("proj"));
	e = tell(&fd, "%ld %s s:%s %s", makers[verb].nr, before, path,
		 makers[verb].after);
	if (!e && makers[verb].nr == SYS_openat)
		close_in(fd);
	return e;
}

static void open_to_all(size_t verb)
{
	const char *path = box_path("proj/dir2/beside");
	bool swaps = !strcmp(makers[verb].what, "exchange");
	int e;

	tools();
	if (swaps)
		close_in(open_in(path, O_CREAT | O_WRONLY, 0600));
	e = make(verb, path);
	tap_ok(!e && exists(path), "control: %s of a name that is open (%d)",
	       makers[verb].what, e);
	tell(NULL, "%d -100 s:%s 0", (int)SYS_unlinkat, path);
	tell(NULL, "%d -100 s:%s 0x200", (int)SYS_unlinkat, path);
	tap_ok(!exists(path), "and removed");
}

static void nothing_is_planted(void)
{
	tell(NULL, "%d -100 s:%s 0755", (int)SYS_mkdirat,
	     box_path("proj/.zot"));
	tell(NULL, "%d -100 s:%s 0755", (int)SYS_mkdirat,
	     box_path("proj/dir2"));
	for (size_t v = 0; v < ZB_ARRAY_LEN(makers); v++)
		open_to_all(v);
	box_forget(&box);
	for (size_t n = 0; n < ZB_ARRAY_LEN(closed); n++) {
		const char *asked = box_text("proj/%s", closed[n].path);
		const char *real = box_path(
			box_text("proj/%s", closed[n].real ? closed[n].real
							   : closed[n].path));
		unsigned through = 0, made = 0;

		asked = box_path(asked);
		for (size_t v = 0; v < ZB_ARRAY_LEN(makers); v++) {
			int e;

			tools();
			e = make(v, asked);
			made += makers[v].nr != SYS_renameat2;
			if (e == EACCES && !exists(real))
				continue;
			through++;
			tap_note("%s of %s: %d", makers[v].what, asked, e);
		}
		tap_ok(!through, "%s is made by no verb", closed[n].path);
		box_total(&box);
		tap_ok(box_denied(&box, ZB_OP_FS_CREATE, real) == made &&
			       box_denied(&box, ZB_OP_FS_RENAME, real) ==
				       ZB_ARRAY_LEN(makers) - made,
		       "and each is recorded");
		box_forget(&box);
	}
}

/* The same name by other ways to it. */
static void by_another_way(void)
{
	const char *p = box_path("proj");
	const char *const ways[] = {
		box_text("%s/.claude/", p),
		box_text("%s//.claude", p),
		box_text("%s/./.claude", p),
		box_text("%s/sub/../.claude", p),
		box_text("%s/link/../.claude", p),
		box_text("/../../%s/.claude", p),
		box_text("/proc/self/root%s/.claude", p),
		box_text("/proc/thread-self/root%s/.claude", p),
		"/proc/self/cwd/.claude",
		".claude",
		"./link/../.claude",
		"sub/../.claude",
	};
	unsigned through = 0;
	long dir = open_in(p, O_RDONLY | O_DIRECTORY, 0);
	int e;

	tell(NULL, "%d s:%s", (int)SYS_chdir, p);
	for (size_t i = 0; i < ZB_ARRAY_LEN(ways); i++) {
		e = tell(NULL, "%d -100 s:%s 0755", (int)SYS_mkdirat, ways[i]);
		if (e != EACCES || exists(box_path("proj/.claude"))) {
			through++;
			tap_note("%s: %d", ways[i], e);
		}
	}
	tap_ok(!through, "a closed name is closed by %zu ways to it",
	       ZB_ARRAY_LEN(ways));
	e = tell(NULL, "%d %ld s:.claude 0755", (int)SYS_mkdirat, dir);
	tap_ok(e == EACCES, "and relative to a descriptor (%d)", e);
	e = tell(NULL, "%d -100 s:/proc/self/fd/%ld/.claude 0755",
		 (int)SYS_mkdirat, dir);
	tap_ok(e == EACCES && !exists(box_path("proj/.claude")),
	       "also by its name in /proc (%d)", e);
	e = tell(NULL, "%d %ld s:open 0755", (int)SYS_mkdirat, dir);
	tap_ok(!e && exists(box_path("proj/open")),
	       "control: an open one is made so (%d)", e);
	e = tell(NULL, "%d -100 s:open 0x200", (int)SYS_unlinkat);
	tap_ok(!e, "and removed relative to the working directory (%d)", e);
	close_in(dir);
	tell(NULL, "%d s:/", (int)SYS_chdir);
	box_forget(&box);
}

static void through_a_link(void)
{
	int e;
	long fd;

	fd = open_in(box_path("proj/dangling"), O_CREAT | O_WRONLY, 0644);
	tap_ok(fd < 0 && !exists(box_path("proj/.agents")) &&
		       box_denied(&box, ZB_OP_FS_CREATE,
				  box_path("proj/.agents")),
	       "a link that leads to a closed name makes nothing");
	box_forget(&box);
	e = tell(NULL, "%d s:dir -100 s:%s", (int)SYS_symlinkat,
		 box_path("proj/full/.zot"));
	tap_ok(e == EACCES && !exists(box_path("proj/full/.zot")) &&
		       box_denied(&box, ZB_OP_FS_CREATE,
				  box_path("proj/full/.zot")),
	       "nor does a link that would make one below it (%d)", e);
	tools();
	e = tell(NULL, "%d -100 s:%s -100 s:%s 0", (int)SYS_linkat,
		 box_path("proj/w/soft"), box_path("proj/full/.zot"));
	tap_ok(e == EACCES && !exists(box_path("proj/full/.zot")),
	       "also as a hard link of a link (%d)", e);
	e = tell(NULL, "%d -100 s:%s -100 s:%s 0", (int)SYS_renameat2,
		 box_path("proj/w/soft"), box_path("proj/full/.ZOT"));
	tap_ok(e == EXDEV && !exists(box_path("proj/full/.ZOT")),
	       "or renamed (%d)", e);
	box_forget(&box);
}

/* A socket of the caller's. */
static void sockets(void)
{
	char hex[256] = "0100";
	const char *path = box_path("proj/.claude");
	int e;
	long fd;

	for (const char *s = path; *s; s++)
		snprintf(hex + strlen(hex), 3, "%02x", (unsigned char)*s);
	tell(&fd, "%d 1 1 0", (int)SYS_socket);
	e = tell(NULL, "%d %ld b:%s00 %zu", (int)SYS_bind, fd, hex,
		 2 + strlen(path) + 1);
	tap_ok(e == EACCES && !exists(path) &&
		       box_denied(&box, ZB_OP_FS_CREATE, path),
	       "bind makes no closed name (%d)", e);
	close_in(fd);
	box_forget(&box);
}

/* Verbs that change what is there. */
static const struct {
	const char *what;
	long nr;
	const char *before, *after;
	enum zb_op op;
} changers[] = {
	{"open to write", SYS_openat, "-100", "01 0", ZB_OP_FS_WRITE},
	{"open to read and write", SYS_openat, "-100", "02 0", ZB_OP_FS_WRITE},
	{"open to read, emptying it", SYS_openat, "-100", "01000 0",
	 ZB_OP_FS_WRITE},
	{"truncate", SYS_truncate, "", "0", ZB_OP_FS_WRITE},
	{"unlink", SYS_unlinkat, "-100", "0", ZB_OP_FS_DELETE},
	{"rename from it", SYS_renameat2, "-100", "-100 s:%s/w/x 0",
	 ZB_OP_FS_RENAME},
	{"rename over it", SYS_renameat2, "-100 s:%s/w/file -100", "0",
	 ZB_OP_FS_RENAME},
	{"exchange", SYS_renameat2, "-100", "-100 s:%s/w/file 2",
	 ZB_OP_FS_RENAME},
	{"link from it", SYS_linkat, "-100", "-100 s:%s/w/x 0", ZB_OP_COUNT},
	{"chmod", SYS_fchmodat, "-100", "0600", ZB_OP_FS_META},
	{"utimensat", SYS_utimensat, "-100", "0 0", ZB_OP_FS_META},
	{"chown", SYS_fchownat, "-100", "-1 -1 0", ZB_OP_FS_META},
	{"setxattr", SYS_setxattr, "", "s:user.a s:v 1 0", ZB_OP_FS_META},
	{"removexattr", SYS_removexattr, "", "s:user.a", ZB_OP_FS_META},
};

static void nothing_is_changed(const char *name, enum zb_op link_op)
{
	const char *path = box_path(box_text("proj/%s", name));
	struct stat was, is;
	unsigned through = 0;

	stat(path, &was);
	for (size_t i = 0; i < ZB_ARRAY_LEN(changers); i++) {
		enum zb_op op = changers[i].op == ZB_OP_COUNT ? link_op
							      : changers[i].op;
		char before[512], after[512];
		int e;

		tools();
		fill(before, sizeof(before), changers[i].before,
		     box_path("proj"));
		fill(after, sizeof(after), changers[i].after, box_path("proj"));
		e = tell(NULL, "%ld %s s:%s %s", changers[i].nr, before, path,
			 after);
		if (e != EACCES || !box_denied(&box, op, path)) {
			through++;
			tap_note("%s of %s: %d", changers[i].what, name, e);
		}
		box_forget(&box);
	}
	tap_ok(!through, "%s is changed by no verb, and each is recorded",
	       name);
	tap_ok(!stat(path, &is) && holds(path, "as it was\n") &&
		       is.st_mode == was.st_mode && is.st_ino == was.st_ino &&
		       is.st_nlink == 1 &&
		       is.st_ctim.tv_nsec == was.st_ctim.tv_nsec &&
		       is.st_ctim.tv_sec == was.st_ctim.tv_sec,
	       "on the host it is what it was");
}

/* Of what may only be read a descriptor can be had. */
static void by_descriptor(void)
{
	static const struct {
		long nr;
		const char *args;
	} calls[] = {
		{SYS_fchmod, "0600"},
		{SYS_fchown, "-1 -1"},
		{SYS_utimensat, "0 0 0"},
		{SYS_fsetxattr, "s:user.a s:v 1 0"},
		{SYS_fremovexattr, "s:user.a"},
	};
	const char *path = box_path("proj/.git/config");
	long fd = open_in(path, O_RDONLY, 0), ok;

	tap_ok(fd >= 0, "what is only closed to changes can be read");
	for (size_t i = 0; i < ZB_ARRAY_LEN(calls); i++) {
		int e = tell(NULL, "%ld %ld %s", calls[i].nr, fd,
			     calls[i].args);

		tap_ok(e == EACCES && box_denied(&box, ZB_OP_FS_META, path),
		       "not changed by its descriptor: call %ld (%d)",
		       calls[i].nr, e);
		box_forget(&box);
	}
	close_in(fd);
	fd = open_in(path, O_PATH, 0);
	tap_ok(tell(NULL, "%d -100 s:/proc/self/fd/%ld 0600", (int)SYS_fchmodat,
		    fd) == EACCES &&
		       box_denied(&box, ZB_OP_FS_META, path),
	       "nor by the descriptor's name in /proc");
	close_in(fd);
	box_forget(&box);
	ok = open_in(box_path("proj/ok.txt"), O_PATH, 0);
	tap_ok(!tell(NULL, "%d -100 s:/proc/self/fd/%ld 0644",
		     (int)SYS_fchmodat, ok),
	       "control: as the C library does it for others");
	close_in(ok);
	ok = open_in(box_path("proj/ok.txt"), O_RDONLY, 0);
	tap_ok(!tell(NULL, "%d %ld 0644", (int)SYS_fchmod, ok),
	       "control: another is");
	close_in(ok);
	tap_ok(open_in(box_path("proj/secret.pem"), O_RDONLY, 0) < 0 &&
		       box_denied(&box, ZB_OP_FS_READ,
				  box_path("proj/secret.pem")),
	       "what the scope denies cannot be read either");
	box_forget(&box);
}

/* ---- directories --------------------------------------------------------- */

static int move(const char *from, const char *to, int flags)
{
	return tell(NULL, "%d -100 s:%s -100 s:%s %d", (int)SYS_renameat2,
		    box_path(box_text("proj/%s", from)),
		    box_path(box_text("proj/%s", to)), flags);
}

static bool moved_not(const char *named)
{
	bool yes = box_denied(&box, ZB_OP_FS_RENAME,
			      box_path(box_text("proj/%s", named)));

	box_forget(&box);
	return yes;
}

static void directories(void)
{
	int e;

	tell(NULL, "%d -100 s:%s 0755", (int)SYS_mkdirat,
	     box_path("proj/nest"));
	tell(NULL, "%d -100 s:%s 0755", (int)SYS_mkdirat,
	     box_path("proj/nest/extensions"));
	box_forget(&box);
	e = move("nest", "nest2", 0);
	tap_ok(!e && exists(box_path("proj/nest2/extensions")),
	       "a directory moves as a whole (%d)", e);
	e = move("nest2", "full/.zot", 0);
	tap_ok(e == EXDEV && !exists(box_path("proj/full/.zot")) &&
		       moved_not("full/.zot"),
	       "not to where a name in it is closed (%d)", e);
	e = move("nest2", "full/.zOT", 0);
	tap_ok(e == EXDEV && moved_not("full/.zOT"), "in no spelling (%d)", e);
	e = move("nest2", ".zot", 2);
	tap_ok(e == EXDEV && !exists(box_path("proj/.zot/extensions")) &&
		       moved_not(".zot"),
	       "nor by changing places (%d)", e);
	e = move("sub", "sub2", 0);
	tap_ok(e == EXDEV && exists(box_path("proj/sub/.git/HEAD")) &&
		       moved_not("sub"),
	       "one that has a closed name in it stays (%d)", e);
	e = move("nest2", "sub", 2);
	tap_ok(e == EXDEV && exists(box_path("proj/sub/.git/HEAD")) &&
		       moved_not("sub"),
	       "also if the other is asked to change places (%d)", e);
	e = move("held", "held2", 0);
	tap_ok(e == EXDEV && moved_not("held2"),
	       "and one with a mount in it (%d)", e);
	e = move("nest2", "nest3/../nest4", 0);
	tap_ok(e == ENOENT, "a way that is not there is none (%d)", e);
}

/* ---- mounts -------------------------------------------------------------- */

/* What rename leaves behind for overlays is a device node. */
static void whiteout(void)
{
	struct stat st;
	int e = tell(NULL, "%d -100 s:%s -100 s:%s 4", (int)SYS_renameat2,
		     box_path("proj/ok.txt"), box_path("proj/ok2.txt"));

	tap_ok(e == EINVAL && !lstat(box_path("proj/ok.txt"), &st) &&
		       S_ISREG(st.st_mode),
	       "no rename leaves a device behind (%d)", e);
	box_forget(&box);
}

static void mounts(void)
{
	int e;

	e = tell(NULL, "%d -100 s:%s 0755", (int)SYS_mkdirat,
		 box_path("proj/held/ro/d"));
	tap_ok(e == EROFS, "a read-only place in it is EROFS (%d)", e);
	e = move("ok.txt", "held/ro/x", 0);
	tap_ok(e == EXDEV, "another mount is EXDEV (%d)", e);
	e = move("held/ro", "held/rw", 0);
	tap_ok(e == EBUSY, "a mount does not move (%d)", e);
	e = tell(NULL, "%d -100 s:%s 0x200", (int)SYS_unlinkat,
		 box_path("proj/held/ro"));
	tap_ok(e == EBUSY, "nor go (%d)", e);
	e = tell(NULL, "%d -100 s:%s 0644", (int)SYS_fchmodat,
		 box_path("proj/held/ro/f"));
	tap_ok(e == EROFS, "nor is what is in it changed (%d)", e);
	box_forget(&box);
	close_in(open_in(box_path("proj/own/.git/hooks"), O_CREAT | O_WRONLY,
			 0644));
	tap_ok(exists(box_path("proj/own/.git/hooks")),
	       "what was granted by its closed name is open");
	e = tell(NULL, "%d -100 s:%s 0755", (int)SYS_mkdirat,
		 box_path("proj/own/.git/.vscode"));
	tap_ok(e == EACCES && box_denied(&box, ZB_OP_FS_CREATE,
					 box_path("proj/own/.git/.vscode")),
	       "but for other closed names in it (%d)", e);
	e = move("own/.git", "own/git", 0);
	tap_ok(e == EBUSY, "and it stays where it is (%d)", e);
	e = tell(NULL, "%d -100 s:%s 0755", (int)SYS_mkdirat,
		 box_path("proj/.git/x"));
	tap_ok(e == EACCES, "another .git is as closed as before (%d)", e);
	box_forget(&box);
}

/* The private HOME has a carved place below it, so the floor cannot let it be
 * changed: the broker does, and whatever is asked. */
static void home(void)
{
	int e;
	long fd;

	fd = open_in(box_path("home/f"), O_CREAT | O_RDWR, 0600);
	tap_ok(fd >= 0 && exists(box_path("private_home/f")),
	       "a file in HOME is made");
	close_in(fd);
	e = tell(NULL, "%d -100 s:%s 0700", (int)SYS_mkdirat,
		 box_path("home/.git"));
	tap_ok(!e && exists(box_path("private_home/.git")),
	       "under any name: it is the extension's own (%d)", e);
	e = tell(NULL, "%d -100 s:%s -100 s:%s 0", (int)SYS_renameat2,
		 box_path("home/.git"), box_path("home/git"));
	tap_ok(!e, "renamed (%d)", e);
	e = tell(NULL, "%d -100 s:%s 0x200", (int)SYS_unlinkat,
		 box_path("home/git"));
	tap_ok(!e, "and removed (%d)", e);
	e = tell(NULL, "%d -100 s:%s -100 s:%s 0", (int)SYS_renameat2,
		 box_path("home/w"), box_path("home/v"));
	tap_ok(e == EBUSY, "but not what is mounted there (%d)", e);
	e = tell(NULL, "%d -100 s:%s/.git 0700", (int)SYS_mkdirat,
		 box_path("home/w"));
	tap_ok(e == EACCES, "nor is a closed name made in that (%d)", e);
	box_forget(&box);
}

/* ---- races --------------------------------------------------------------- */

static void races(void)
{
	long n;

	tell(NULL, "%d -100 s:%s 0755", (int)SYS_mkdirat,
	     box_path("proj/race"));
	n = box_tell(&box, NULL, NULL, "makes %d %s %s", TRIES,
		     box_path("proj/race/.envrx"),
		     box_path("proj/race/.envrc"));
	tap_ok(n > 0 && !exists(box_path("proj/race/.envrc")),
	       "a path rewritten in memory: of %d files, %ld made, none under "
	       "the closed name",
	       TRIES, n);
	n = box_tell(&box, NULL, NULL, "below %d %s %s %s extensions",
		     TRIES / 5, box_path("data/l"), box_path("proj/race"),
		     box_path("proj/.zot"));
	tap_ok(n > 0 && !exists(box_path("proj/.zot/extensions")),
	       "links that change places: %ld directories made, none under "
	       "the closed name",
	       n);
	box_forget(&box);
}

int main(void)
{
	plant("proj");
	plant("twin");
	box_file(box_path("home/w/x"), "x\n", 0644);
	box_file(box_path("private_home/w"), NULL, 0);
	plan();
	box_start(&box);
	like_a_kernel();
	both_trees_alike();
	own_descriptors();
	nameless();
	nothing_is_planted();
	by_another_way();
	through_a_link();
	sockets();
	nothing_is_changed(".git/config", ZB_OP_FS_WRITE);
	nothing_is_changed(".vscode/tasks.json", ZB_OP_FS_WRITE);
	nothing_is_changed(".envrc", ZB_OP_FS_WRITE);
	nothing_is_changed("secret.pem", ZB_OP_FS_READ);
	by_descriptor();
	directories();
	whiteout();
	mounts();
	home();
	races();
	box_stop(&box);
	return tap_done();
}
