/* frame.c - bytes to lines.
 *
 * Invariants, between two calls:
 *	buf[0 .. read)		handed out already, to be dropped
 *	buf[read .. scanned)	the start of a line: holds no \n
 *	buf[scanned .. len)	not looked at yet
 *	skipping		buf[read .. scanned) is the head (@max bytes) of
 *				an over-long line; the rest of it is thrown
 *				away as it comes, counted in @skipped
 *
 * Every byte is searched once, and bytes move to the front only when at least
 * as many were handed out as have to move, so the work is linear in the
 * stream, however it is cut into pieces.
 */
#include "frame.h"

#include <string.h>

#define ROOM ((size_t)64 << 10)	 /* for a read, at least */
#define KEEP ((size_t)256 << 10) /* capacity that is usual */

void zb_framer_init(struct zb_framer *f, size_t max)
{
	/* What bounds the buffer is that over-long lines are not kept. */
	*f = (struct zb_framer){
		.buf.max = SIZE_MAX / 4,
		.max = max ? max : ZB_FRAME_MAX,
	};
}

void zb_framer_done(struct zb_framer *f)
{
	if (!f)
		return;
	zb_buf_done(&f->buf);
	zb_framer_init(f, f->max);
}

/* Drop what was handed out, if that is cheap. */
static void compact(struct zb_framer *f)
{
	if (!f->read || f->read < f->buf.len - f->read)
		return;
	zb_buf_consume(&f->buf, f->read);
	f->scanned -= f->read;
	f->read = 0;
}

int zb_framer_feed(struct zb_framer *f, const char *p, size_t n)
{
	compact(f);
	return zb_buf_add(&f->buf, p, n);
}

size_t zb_framer_room(struct zb_framer *f, char **p)
{
	compact(f);
	*p = zb_buf_room(&f->buf, ROOM);
	return *p ? f->buf.cap - f->buf.len - 1 : 0;
}

void zb_framer_came(struct zb_framer *f, size_t n)
{
	f->small = f->read == f->buf.len && n < ROOM;
	zb_buf_grow(&f->buf, n);
}

bool zb_framer_is_large(const struct zb_framer *f)
{
	return f->buf.cap > KEEP;
}

bool zb_framer_is_past_large(const struct zb_framer *f)
{
	return zb_framer_is_large(f) && f->small && f->read == f->buf.len;
}

void zb_framer_relax(struct zb_framer *f)
{
	compact(f);
	if (!f->buf.len && zb_framer_is_large(f)) {
		size_t max = f->buf.max;

		zb_buf_done(&f->buf);
		f->buf.max = max;
	}
}

/* The byte-order mark at the very start. Return: false while too few bytes are
 * there to tell. */
static bool start(struct zb_framer *f, bool at_end)
{
	static const char bom[] = "\xef\xbb\xbf";
	size_t n = f->buf.len < 3 ? f->buf.len : 3;

	if (f->started)
		return true;
	if (!n)
		return at_end;
	if (!memcmp(f->buf.data, bom, n)) {
		if (n < 3 && !at_end)
			return false;
		if (n == 3) {
			f->bom = true;
			f->read = f->scanned = 3;
		}
	}
	f->started = true;
	return true;
}

/* The line is longer than may be: keep its head, forget the rest of what is
 * there. */
static void skip(struct zb_framer *f)
{
	size_t keep = f->read + f->max;

	if (f->buf.len <= keep)
		return;
	f->skipping = true;
	f->skipped += f->buf.len - keep;
	f->buf.len = keep;
	f->buf.data[keep] = '\0';
	f->scanned = keep;
}

/* buf[read .. end) is a line, followed by @tail bytes of line end. */
static void hand_out(struct zb_framer *f, size_t end, size_t tail,
		     struct zb_line *out)
{
	size_t len = end - f->read;

	*out = (struct zb_line){
		.kind = ZB_LINE_FRAME,
		.text = f->buf.data + f->read,
		.len = len,
		.total = len + f->skipped,
		.number = ++f->lines,
	};
	if (f->skipping || len > f->max) {
		out->kind = ZB_LINE_TOO_LONG;
		if (len > f->max)
			out->len = f->max;
	}
	f->read = f->scanned = end + tail;
	f->skipping = false;
	f->skipped = 0;
}

void zb_framer_next(struct zb_framer *f, struct zb_line *out)
{
	const char *nl;
	size_t end;

	*out = (struct zb_line){.kind = ZB_LINE_NONE};
	if (!start(f, false) || f->scanned >= f->buf.len)
		return;
	nl = memchr(f->buf.data + f->scanned, '\n', f->buf.len - f->scanned);
	if (!nl) {
		f->scanned = f->buf.len;
		if (f->skipping || f->scanned - f->read > f->max)
			skip(f);
		return;
	}
	end = (size_t)(nl - f->buf.data);
	if (f->skipping) {
		/* The head lies in front; what came since counts only. */
		size_t keep = f->read + f->max;

		f->skipped += end - keep;
		hand_out(f, keep, end + 1 - keep, out);
		return;
	}
	hand_out(f, end, 1, out);
}

void zb_framer_end(struct zb_framer *f, struct zb_line *out)
{
	zb_framer_next(f, out);
	if (out->kind != ZB_LINE_NONE)
		return;
	start(f, true);
	if (f->read >= f->buf.len && !f->skipping)
		return;
	hand_out(f, f->buf.len, 0, out);
}
