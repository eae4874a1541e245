/* broker_exec.c - execve, execveat, and what a program needs to start.
 *
 * The kernel starts the program (CONTINUE) and Landlock limits which. What
 * the broker adds is the name of what is missing: a script whose interpreter
 * is hidden, or a program whose loader is, fails with ENOENT for a file that
 * is plainly there. So both are judged as programs of their own.
 *
 * A program that is named by a descriptor (fexecve) is judged by what that is
 * on; one without a name on any disk is Landlock's alone. */
#include "config.h"

#include "platform/linux/broker_int.h"
#include "platform/linux/peer.h"

#include "cleanup.h"
#include "fdutil.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define MAX_DEPTH 5   /* interpreters of interpreters, as the kernel has it */
#define HEAD	  256 /* how far the kernel looks for a shebang's end */

/* "#! /bin/sh -e" -> "/bin/sh". Return: false if there is none. */
static bool shebang(const char *head, size_t n, char *out, size_t cap)
{
	size_t i = 2, len = 0;

	if (n < 3 || head[0] != '#' || head[1] != '!')
		return false;
	while (i < n && (head[i] == ' ' || head[i] == '\t'))
		i++;
	while (i + len < n && !strchr(" \t\n", head[i + len]))
		len++;
	if (!len || len >= cap)
		return false;
	memcpy(out, head + i, len);
	out[len] = '\0';
	return true;
}

static bool read_at(int fd, void *out, size_t n, uint64_t at)
{
	return at <= INT64_MAX && pread(fd, out, n, (off_t)at) == (ssize_t)n;
}

/* The string at @at of @n bytes, which a NUL should end. */
static bool loader_name(int fd, uint64_t at, uint64_t n, char *out, size_t cap)
{
	if (n < 2 || n > cap || !read_at(fd, out, n, at))
		return false;
	out[n - 1] = '\0';
	return out[0];
}

/* A program of the other word size has another loader, and system calls that
 * the filter refuses: only our own class matters. */
static bool loader(int fd, const char *head, size_t n, char *out, size_t cap)
{
	Elf64_Ehdr e;
	Elf64_Phdr p;

	if (n < sizeof(e))
		return false;
	memcpy(&e, head, sizeof(e));
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof(p))
		return false;
	for (unsigned i = 0; i < e.e_phnum && i < 64; i++) {
		if (!read_at(fd, &p, sizeof(p), e.e_phoff + i * sizeof(p)))
			return false;
		if (p.p_type == PT_INTERP)
			return loader_name(fd, p.p_offset, p.p_filesz, out,
					   cap);
	}
	return false;
}

/* What the program in @f needs to start. Return: false: nothing, or it cannot
 * be read. */
static bool needs(const struct zb_spot *f, char *out, size_t cap)
{
	char link[ZB_FD_LINK], head[HEAD];
	zb_auto(fd) int fd = -1;
	ssize_t n;

	zb_fd_link(f->fd, link);
	fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	n = pread(fd, head, sizeof(head), 0);
	if (n <= 0)
		return false;
	return shebang(head, (size_t)n, out, cap) ||
	       loader(fd, head, (size_t)n, out, cap);
}

static bool is_executable(const struct zb_spot *f)
{
	return !syscall(SYS_faccessat2, f->fd, "", X_OK,
			AT_EACCESS | AT_EMPTY_PATH);
}

/* May @c->found be started? Return: false if the answer is said. */
static bool may_start(struct zb_call *c, const char *asked)
{
	struct zb_spot *f = &c->found;

	if (!S_ISREG(f->mode)) {
		zb_say_continue(c); /* the kernel's own EACCES */
		return false;
	}
	if (zb_judge(c, ZB_OP_FS_EXEC, f) != ZB_DENY)
		return true;
	/* Asked of the file that was found, not of the host: it may be one
	 * that the extension made. */
	if (!is_executable(f))
		zb_say_errno(c, EACCES);
	else
		zb_refuse_found(c, ZB_OP_FS_EXEC, f, asked, ZB_ASK_NOTHING);
	return false;
}

static const char own_fds[] = "/proc/self/fd/";

/* A program named by its descriptor, into @c->found. Return: false if the
 * answer is said. */
static bool by_descriptor(struct zb_call *c, int fd)
{
	struct zb_spot *f = &c->found;
	struct stat st;

	zb_spot_done(f);
	zb_spot_fd(&c->b->jail, zb_peer_fd(c->tid, fd), f);
	if (f->fd < 0) {
		zb_say_errno(c, f->err);
		return false;
	}
	if (f->proc || fstat(f->fd, &st) || !st.st_nlink) {
		zb_say_continue(c);
		return false;
	}
	return may_start(c, f->path);
}

/* A program named by its path; the interpreters behind one are too. */
static bool by_path(struct zb_call *c, const char *asked, bool follow)
{
	return zb_locate(c, ZB_OP_FS_EXEC, asked, c->full, follow,
			 ZB_ASK_PROGRAM, &c->found) &&
	       may_start(c, asked);
}

/* The descriptor by which the call names its program; -1: none. */
static int descriptor(const struct zb_call *c)
{
	const char *fd = c->asked + sizeof(own_fds) - 1;
	size_t n;

	if (!c->asked[0] && (zb_arg_flags(c) & AT_EMPTY_PATH))
		return zb_arg_dir(c, c->row->dir);
	if (strncmp(c->asked, own_fds, sizeof(own_fds) - 1) != 0)
		return -1;
	n = strspn(fd, "0123456789");
	return n && n < 9 && !fd[n] ? atoi(fd) : -1;
}

void zb_call_exec(struct zb_call *c)
{
	bool follow = !(zb_arg_flags(c) & AT_SYMLINK_NOFOLLOW), ok;
	int fd;

	if (!zb_arg_path(c, c->row->path, c->asked))
		return;
	fd = descriptor(c);
	if (fd >= 0)
		ok = by_descriptor(c, fd);
	else
		ok = zb_arg_spell(c, c->row->dir, c->row->path, c->asked,
				  c->full) &&
		     by_path(c, c->asked, follow);
	for (int i = 1; ok && i < MAX_DEPTH; i++) {
		if (!needs(&c->found, c->asked2, sizeof(c->asked2)) ||
		    zb_spell(&c->b->jail, c->tid, AT_FDCWD, c->asked2, c->full))
			break;
		ok = by_path(c, c->asked2, true);
	}
	if (ok)
		zb_say_continue(c);
}
