/* frame.h - bytes to lines. Only \n ends a line; one \r before it is part of
 * the line (a JSON blank). An over-long line costs only itself: everything up
 * to its \n is thrown away. Pure. */
#ifndef ZB_FRAME_H
#define ZB_FRAME_H

#include "buf.h"

/* zot's reader fails at 4 194 304 bytes, so this is the longest line that
 * may reach it (without the newline). */
#define ZB_FRAME_MAX 4194303u

struct zb_framer {
	struct zb_buf buf;
	size_t max;	  /* longest line, bytes without \n */
	size_t read;	  /* bytes of buf handed out already */
	size_t scanned;	  /* where the search for \n goes on */
	bool skipping;	  /* inside an over-long line */
	uint64_t skipped; /* bytes of it thrown away so far */
	uint64_t lines;	  /* lines handed out or skipped, for messages */
	bool started;	  /* first bytes seen (byte-order mark handling) */
	bool bom;	  /* one was dropped at the very start */
	bool small; /* the last read was, and nothing was held before it */
};

enum zb_line_kind {
	ZB_LINE_NONE,	 /* need more bytes */
	ZB_LINE_FRAME,	 /* @text/@len: one line, without \n */
	ZB_LINE_TOO_LONG /* an over-long line ended; @text/@len: its first bytes
			    (up to @max), @total: its whole length */
};

struct zb_line {
	enum zb_line_kind kind;
	const char *text; /* valid until the next feed or next */
	size_t len;
	uint64_t total;
	uint64_t number; /* from 1 */
};

/* @max 0: ZB_FRAME_MAX. */
void zb_framer_init(struct zb_framer *f, size_t max);
void zb_framer_done(struct zb_framer *f);
/* Add bytes from the stream. Take all lines after each feed: what is held is
 * then at most @max bytes and the last piece. Return: 0 or ZB_ELIMIT (out of
 * memory). */
int zb_framer_feed(struct zb_framer *f, const char *p, size_t n);
/* The same without a copy: *@p is room for the next bytes of the stream, which
 * zb_framer_came() counts. Return: how many there is room for; 0: out of
 * memory. */
size_t zb_framer_room(struct zb_framer *f, char **p);
void zb_framer_came(struct zb_framer *f, size_t n);
/* Take the next line. */
void zb_framer_next(struct zb_framer *f, struct zb_line *out);
/* At end of stream, after the last feed: the next line, the bytes after the
 * last \n as the last one; ZB_LINE_NONE when there is no more. */
void zb_framer_end(struct zb_framer *f, struct zb_line *out);
/* Does it hold much more memory than usual? zb_framer_relax() gives it back,
 * if no bytes are held. No line may be in use. */
bool zb_framer_is_large(const struct zb_framer *f);
void zb_framer_relax(struct zb_framer *f);
/* Is that memory held for nothing: did a small read, by zb_framer_room(), come
 * and go as a whole since? */
bool zb_framer_is_past_large(const struct zb_framer *f);

#endif
