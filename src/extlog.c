/* extlog.c - ext-NAME.log.
 *
 * The limit. When the file grows over it, its newest half is copied to the
 * front and the rest is cut off ("truncation by copy"). The file must stay the
 * same one, since zot holds a descriptor on it too, as does a second zot that
 * runs the same extension: all of them append, so all go on at the new end.
 * Cuts of several zotboxes exclude each other by flock(2). zot itself takes no
 * lock: a line that it appends between our last read and the ftruncate(2)
 * after it is lost; there is nothing between the two.
 *
 * The line about this start and one that says how much was dropped stand in
 * front of what is kept.
 */
#include "extlog.h"

#include "cleanup.h"
#include "fdutil.h"
#include "text.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>

#define LINE_MAX_BYTES ((size_t)8192)
#define HEAD_MAX       ((size_t)4096)
#define CHUNK	       ((size_t)65536)
#define LIMIT_MIN      UINT64_C(4096)

bool zb_disk_is_full(int sys)
{
	return sys == ENOSPC || sys == EDQUOT || sys == EROFS || sys == EIO ||
	       sys == EFBIG;
}

static int open_own(const char *path)
{
	return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

int zb_extlog_open(struct zb_extlog *l, char *path, int borrowed,
		   uint64_t limit, struct zb_error *err)
{
	struct stat st;

	*l = (struct zb_extlog){
		.fd = borrowed >= 0 ? borrowed : open_own(path),
		.own = borrowed < 0,
		.path = path,
		.limit = limit < LIMIT_MIN ? LIMIT_MIN : limit,
	};
	l->head.max = HEAD_MAX;
	if (l->fd >= 0) {
		l->regular = !fstat(l->fd, &st) && S_ISREG(st.st_mode);
		return 0;
	}
	if (zb_disk_is_full(errno))
		return 0; /* the next tick tries again */
	zb_fail_sys(err, errno, "open %s", path);
	zb_extlog_close(l);
	return ZB_ESYS;
}

/* ---- the limit ---- */

/* Open the file behind @l for reading and writing. -1: it is another one, or
 * our descriptor does not append, so that it cannot be cut. */
static int open_same(const struct zb_extlog *l)
{
	int flags = fcntl(l->fd, F_GETFL);
	zb_auto(fd) int fd = open(l->path, O_RDWR | O_CLOEXEC);
	struct stat a, b;

	if (flags < 0 || !(flags & O_APPEND) || fd < 0 || fstat(fd, &a) ||
	    fstat(l->fd, &b) || a.st_ino != b.st_ino || a.st_dev != b.st_dev)
		return -1;
	return zb_steal_fd(&fd);
}

static void add_size(struct zb_buf *out, uint64_t n)
{
	if (n % (1 << 20) == 0)
		zb_buf_addf(out, "%llu MiB", (unsigned long long)(n >> 20));
	else if (n % 1024 == 0)
		zb_buf_addf(out, "%llu KiB", (unsigned long long)(n >> 10));
	else
		zb_buf_addf(out, "%llu bytes", (unsigned long long)n);
}

static void note_dropped(const struct zb_extlog *l, struct zb_buf *out)
{
	zb_buf_adds(out, "[zotbox] log limit ");
	add_size(out, l->limit);
	zb_buf_addf(out, " reached; %llu bytes dropped\n",
		    (unsigned long long)l->dropped);
}

/* Offset of the first line that starts at @from or later. */
static off_t line_start(int fd, off_t from, char *chunk)
{
	ssize_t n = pread(fd, chunk, CHUNK, from - 1);
	const char *nl = n > 0 ? memchr(chunk, '\n', (size_t)n) : NULL;

	return nl ? from + (nl - chunk) : from;
}

/* Copy everything from @src on to @dst, which lies before it. Return: the new
 * end, or -1. */
static off_t move_down(int fd, off_t src, off_t dst, char *chunk)
{
	for (;;) {
		ssize_t n = pread(fd, chunk, CHUNK, src);

		if (n <= 0)
			return n ? -1 : dst;
		if (pwrite(fd, chunk, (size_t)n, dst) != n)
			return -1;
		src += n;
		dst += n;
	}
}

/* Keep the newest half of the file. */
static bool cut(struct zb_extlog *l)
{
	zb_auto(fd) int fd = open_same(l);
	zb_auto(free) char *chunk = malloc(CHUNK);
	struct zb_buf front = {0};
	struct stat st;
	off_t from, end;
	bool ok = false;

	if (fd < 0 || !chunk)
		return false;
	/* Somebody else is at it: then it is being done. */
	if (flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &st) ||
	    (uint64_t)st.st_size <= l->limit)
		return true;
	from = line_start(fd, st.st_size - (off_t)(l->limit / 2), chunk);
	l->dropped += (uint64_t)from - l->header;
	if (l->start.len)
		zb_buf_add(&front, l->start.data, l->start.len);
	note_dropped(l, &front);
	if (!front.failed && (off_t)front.len < from &&
	    pwrite(fd, front.data, front.len, 0) == (ssize_t)front.len) {
		end = move_down(fd, from, (off_t)front.len, chunk);
		ok = end >= 0 && !ftruncate(fd, end);
		l->header = front.len;
	}
	zb_buf_done(&front);
	return ok;
}

/* ---- writing ---- */

static void put(struct zb_extlog *l, const char *p, size_t n)
{
	while (n) {
		ssize_t w = write(l->fd, p, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			l->lost += n;
			l->lost_errno = errno;
			return;
		}
		p += w;
		n -= (size_t)w;
	}
}

static void limit(struct zb_extlog *l)
{
	struct zb_buf b = {0};
	struct stat st;

	if (!l->regular || l->stopped || l->limit == UINT64_MAX ||
	    fstat(l->fd, &st) || (uint64_t)st.st_size <= l->limit || cut(l))
		return;
	l->stopped = true;
	zb_buf_adds(&b, "[zotbox] log limit ");
	add_size(&b, l->limit);
	zb_buf_adds(&b, " reached; what the extension writes to its standard "
			"error is dropped from here on\n");
	put(l, zb_buf_str(&b), b.len);
	zb_buf_done(&b);
}

/* Say what could not be written, as soon as something can. */
static void say_lost(struct zb_extlog *l)
{
	struct zb_buf b = {0};
	uint64_t lost = l->lost;

	if (!lost)
		return;
	l->lost = 0;
	zb_buf_addf(&b,
		    "[zotbox] %llu bytes of this log were not written: %s\n",
		    (unsigned long long)lost, strerror(l->lost_errno));
	put(l, zb_buf_str(&b), b.len);
	if (l->lost)
		l->lost = lost;
	zb_buf_done(&b);
}

static void write_out(struct zb_extlog *l, struct zb_buf *b)
{
	if (b->len) {
		say_lost(l);
		put(l, b->data, b->len);
		limit(l);
	}
	zb_buf_clear(b);
}

/* @s escaped, but for the bytes in @keep. */
static void escape_but(struct zb_buf *out, const char *s, size_t n, char keep)
{
	while (n) {
		const char *k = memchr(s, keep, n);
		size_t run = k ? (size_t)(k - s) : n;

		zb_text_escape(out, s, run, 0);
		if (k)
			zb_buf_addc(out, keep);
		s += run + (k != NULL);
		n -= run + (k != NULL);
	}
}

/* Would a reader take this line for ours, or for zot's? */
static bool looks_like_ours(const char *s, size_t n)
{
	size_t i = zb_skip_blanks(s, n);

	return n - i >= 4 && !strncasecmp(s + i, "[zot", 4);
}

static void add_line(struct zb_buf *out, const char *s, size_t n)
{
	if (looks_like_ours(s, n))
		zb_buf_adds(out, "| ");
	escape_but(out, s, n, '\t');
	zb_buf_addc(out, '\n');
}

/* Where to break a line that is too long: not inside a character. */
static size_t break_at(const char *s, size_t n)
{
	size_t k = n;

	while (k > n - 4 && ((unsigned char)s[k] & 0xc0) == 0x80)
		k--;
	return k > n - 4 ? k : n;
}

/* Whole lines of @p, and pieces of lines that are too long. Return: bytes
 * used; the rest is the start of a line. */
static size_t add_lines(struct zb_extlog *l, struct zb_buf *out, const char *p,
			size_t n)
{
	size_t used = 0;

	while (used < n) {
		size_t left = n - used;
		const char *s = p + used, *nl = memchr(s, '\n', left);
		size_t len = nl ? (size_t)(nl - s) : left;

		if (len > LINE_MAX_BYTES)
			len = break_at(s, LINE_MAX_BYTES);
		else if (!nl)
			break;
		add_line(out, s, len);
		used += len + (len < left && s[len] == '\n');
		if (out->len >= CHUNK)
			write_out(l, out);
	}
	return used;
}

static void feed(struct zb_extlog *l, const char *p, size_t n)
{
	struct zb_buf out = {0};
	size_t used;

	l->stale = false;
	if (l->partial.len) {
		const char *nl = memchr(p, '\n', n);
		size_t len = nl ? (size_t)(nl - p) + 1 : n;

		zb_buf_add(&l->partial, p, len);
		p += len;
		n -= len;
		used = add_lines(l, &out, l->partial.data, l->partial.len);
		zb_buf_consume(&l->partial, used);
	}
	used = add_lines(l, &out, p, n);
	zb_buf_add(&l->partial, p + used, n - used);
	write_out(l, &out);
	zb_buf_done(&out);
}

/* An unfinished line goes out as it is; what follows is another line. */
static void end_line(struct zb_extlog *l)
{
	if (l->partial.len)
		feed(l, "\n", 1);
}

void zb_extlog_theirs(struct zb_extlog *l, const char *p, size_t n)
{
	if (l->head.len < HEAD_MAX) {
		size_t room = HEAD_MAX - l->head.len;

		zb_buf_add(&l->head, p, n < room ? n : room);
	}
	if (l->stopped)
		l->dropped += n;
	else
		feed(l, p, n);
}

void zb_extlog_ours(struct zb_extlog *l, const char *s, size_t n)
{
	struct zb_buf b = {0};

	end_line(l);
	for (;;) {
		const char *nl = memchr(s, '\n', n);
		size_t len = nl ? (size_t)(nl - s) : n;

		zb_buf_adds(&b, "[zotbox] ");
		escape_but(&b, s, len, '\\');
		zb_buf_addc(&b, '\n');
		if (!nl)
			break;
		s += len + 1;
		n -= len + 1;
	}
	if (b.len < 1024 && !strncmp(b.data, "[zotbox] starting ", 18)) {
		zb_buf_clear(&l->start);
		zb_buf_add(&l->start, b.data, b.len);
	}
	write_out(l, &b);
	zb_buf_done(&b);
}

/* Is our file gone, or was it never there? */
static void reopen(struct zb_extlog *l)
{
	struct stat a, b;
	int fd;

	if (l->fd >= 0 && !fstat(l->fd, &a) && !stat(l->path, &b) &&
	    a.st_ino == b.st_ino && a.st_dev == b.st_dev)
		return;
	fd = open_own(l->path);
	if (fd < 0)
		return;
	if (l->fd >= 0)
		close(l->fd);
	l->fd = fd;
	l->regular = !fstat(fd, &a) && S_ISREG(a.st_mode);
	l->header = 0;
	l->stopped = false;
}

void zb_extlog_tick(struct zb_extlog *l)
{
	if (l->partial.len) {
		if (l->stale)
			end_line(l);
		l->stale = l->partial.len > 0;
	}
	if (l->own)
		reopen(l);
	say_lost(l);
}

int zb_extlog_head(const struct zb_extlog *l, unsigned lines,
		   struct zb_buf *out)
{
	const char *s = zb_buf_str(&l->head);
	size_t n = l->head.len;
	bool first = true;

	while (n && lines) {
		const char *nl = memchr(s, '\n', n);
		size_t len = nl ? (size_t)(nl - s) : n;

		if (len) {
			if (!first)
				zb_buf_addc(out, '\n');
			escape_but(out, s, len, '\t');
			first = false;
			lines--;
		}
		len += nl != NULL;
		s += len;
		n -= len;
	}
	return out->failed ? ZB_ELIMIT : 0;
}

void zb_extlog_close(struct zb_extlog *l)
{
	if (l->path) {
		end_line(l);
		if (l->stopped && l->dropped) {
			struct zb_buf b = {0};

			note_dropped(l, &b);
			put(l, zb_buf_str(&b), b.len);
			zb_buf_done(&b);
		}
		say_lost(l);
	}
	if (l->own && l->fd >= 0)
		close(l->fd);
	free(l->path);
	zb_buf_done(&l->start);
	zb_buf_done(&l->partial);
	zb_buf_done(&l->head);
	*l = (struct zb_extlog){.fd = -1};
}
