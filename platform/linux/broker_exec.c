/* broker_exec.c - execve, execveat, and what a program needs to start.
 *
 * The kernel starts the program (CONTINUE) and Landlock limits which. What
 * the broker adds is the name of what is missing: a script whose interpreter
 * is hidden, or a program whose loader is, fails with ENOENT for a file that
 * is plainly there. So both are judged as programs of their own.
 *
 * A program without a path (fexecve of a memfd) is Landlock's alone. */
#include "config.h"

#include "platform/linux/broker_int.h"

#include "cleanup.h"
#include "fdutil.h"

#include <elf.h>
#include <errno.h>
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

void zb_call_exec(struct zb_call *c)
{
	uint32_t flags = zb_arg_flags(c);
	char *asked = c->asked;

	if (zb_arg_is_fd(c))
		return;
	if (!zb_arg_spell(c, c->row->dir, c->row->path, asked, c->full))
		return;
	for (int i = 0; i < MAX_DEPTH; i++) {
		bool follow = i || !(flags & AT_SYMLINK_NOFOLLOW);

		if (!zb_locate(c, ZB_OP_FS_EXEC, asked, c->full, follow,
			       ZB_ASK_PROGRAM, &c->found) ||
		    !may_start(c, asked))
			return;
		asked = c->asked2;
		if (!needs(&c->found, asked, sizeof(c->asked2)))
			break;
		if (zb_spell(&c->b->jail, c->tid, AT_FDCWD, asked, c->full))
			break;
	}
	zb_say_continue(c);
}
