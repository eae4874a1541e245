/* ledger_file.c - ext-NAME.denials.jsonl as a file.
 *
 * Several processes may have it open. Each line is one write(2) to an O_APPEND
 * descriptor, made under a shared flock(2) on the file; whoever rotates holds
 * it exclusively. A writer that got its lock looks whether the file it locked
 * is still the one of that name, and opens it again if not. So no line goes
 * to a file that was thrown away, and none is written twice.
 *
 * Nobody waits for long: a lock that cannot be had within some milliseconds is
 * done without. Then a line may go to the older file, where readers find it
 * too; and rotation waits for the next line.
 */
#include "ledger_file.h"

#include "cleanup.h"
#include "fdutil.h"
#include "json_scan.h"
#include "store.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#define LOCK_TRIES 50
#define OPEN_TRIES 5

bool zb_ledger_lock(int fd, int how)
{
	struct timespec pause = {.tv_nsec = 200000};

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (!flock(fd, how | LOCK_NB))
			return true;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return false;
		nanosleep(&pause, NULL);
	}
	return false;
}

bool zb_ledger_current(int fd, const char *path, off_t *size)
{
	struct stat a, b;

	if (fstat(fd, &a) || stat(path, &b) || a.st_ino != b.st_ino ||
	    a.st_dev != b.st_dev)
		return false;
	*size = a.st_size;
	return true;
}

static void close_file(struct zb_ledger_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

static int open_file(struct zb_ledger_file *f)
{
	struct stat st;
	char last;

	if (f->fd >= 0)
		return 0;
	f->fd = open(f->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (f->fd < 0)
		return -errno;
	/* Somebody may have ended, or the disk been full, inside a line. */
	f->torn = !fstat(f->fd, &st) && st.st_size > 0 &&
		  pread(f->fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
	return 0;
}

static int write_line(struct zb_ledger_file *f, const char *p, size_t n)
{
	char newline[] = "\n";
	struct iovec v[2] = {
		{.iov_base = newline, .iov_len = f->torn},
		{.iov_base = (void *)(uintptr_t)p, .iov_len = n},
	};
	ssize_t w;

	do
		w = writev(f->fd, v, 2);
	while (w < 0 && errno == EINTR);
	if (w < 0)
		return -errno;
	f->torn = (size_t)w < n + v[0].iov_len && w > 0;
	return (size_t)w == n + v[0].iov_len ? 0 : -ENOSPC;
}

/* ---- rotation ---- */

static void add_note(struct zb_buf *out, const struct zb_ledger_sum *s)
{
	zb_buf_adds(out, "{\"v\":1,\"note\":\"rotated\"");
	if (s->session) {
		zb_buf_adds(out, ",\"session\":");
		zb_json_quote(out, s->session, strlen(s->session));
	}
	if (s->oldest_ms) {
		zb_buf_adds(out, ",\"oldest\":\"");
		zb_time_rfc3339(s->oldest_ms, out);
		zb_buf_addc(out, '"');
	}
	zb_buf_addf(out, ",\"dropped\":%llu}\n",
		    (unsigned long long)s->dropped);
}

/* Write the file again with repeats summed up, if that frees half of it. */
static bool squeeze(struct zb_ledger_file *f, const struct zb_ledger_sum *s)
{
	struct zb_buf b = {.max = ZB_LEDGER_FILE_MAX / 2};
	bool ok;

	add_note(&b, s);
	for (size_t i = 0; i < s->n && !b.failed; i++) {
		zb_denial_json(&s->v[i], &b);
		zb_buf_addc(&b, '\n');
	}
	ok = !b.failed &&
	     !zb_write_file_atomic(f->path, b.data, b.len, 0600, NULL);
	zb_buf_done(&b);
	return ok;
}

/* Make it the older file. What the older one had is gone: the note in the new
 * one says how much, and since when there were records. */
static void push(struct zb_ledger_file *f, struct zb_ledger_sum *s)
{
	struct zb_ledger_sum gone = {.since_ms = INT64_MAX};
	struct zb_buf b = {0};
	bool ok = !zb_ledger_sum_file(&gone, f->older, NULL) &&
		  !rename(f->path, f->older);

	if (ok) {
		if (gone.oldest_ms &&
		    (!s->oldest_ms || gone.oldest_ms < s->oldest_ms))
			s->oldest_ms = gone.oldest_ms;
		if (gone.dropped > s->dropped)
			s->dropped = gone.dropped;
		s->dropped += gone.lines;
		add_note(&b, s);
		close_file(f);
		if (!open_file(f))
			write_line(f, zb_buf_str(&b), b.len);
	}
	zb_buf_done(&b);
	zb_ledger_sum_done(&gone);
}

static void rotate(struct zb_ledger_file *f)
{
	struct zb_ledger_sum s = {0};
	off_t size;

	if (!zb_ledger_lock(f->fd, LOCK_EX))
		return;
	/* Somebody else did it meanwhile: the caller opens the new one. */
	if (zb_ledger_current(f->fd, f->path, &size) &&
	    !zb_ledger_sum_file(&s, f->path, NULL)) {
		if (squeeze(f, &s))
			close_file(f);
		else
			push(f, &s);
	}
	zb_ledger_sum_done(&s);
	if (f->fd >= 0)
		flock(f->fd, LOCK_UN);
}

int zb_ledger_file_append(struct zb_ledger_file *f, const char *p, size_t n)
{
	bool rotated = false;
	int rc = -EAGAIN;

	for (int i = 0; i < OPEN_TRIES; i++) {
		off_t size = 0;
		bool locked, last = i == OPEN_TRIES - 1;

		rc = open_file(f);
		if (rc)
			return rc;
		locked = zb_ledger_lock(f->fd, LOCK_SH);
		if (!zb_ledger_current(f->fd, f->path, &size) && !last) {
			close_file(f);
			continue;
		}
		if (locked && !rotated && size > 0 &&
		    (size_t)size + n > ZB_LEDGER_FILE_MAX) {
			rotated = true;
			flock(f->fd, LOCK_UN);
			rotate(f);
			continue;
		}
		rc = write_line(f, p, n);
		flock(f->fd, LOCK_UN);
		return rc;
	}
	return rc;
}

void zb_ledger_file_done(struct zb_ledger_file *f)
{
	close_file(f);
	free(f->path);
	free(f->older);
	*f = (struct zb_ledger_file){.fd = -1};
}
