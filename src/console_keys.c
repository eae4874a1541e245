/* console_keys.c - keys out of the bytes of a terminal.
 *
 * One byte stands for most keys. The others begin with ESC, which is a key of
 * its own: only time tells the two apart, so the caller says when it has waited
 * long enough. The usual sequences (ECMA-48, DEC) are built in, those of other
 * terminals come from terminfo. A sequence with a modifier is another key than
 * the one without: unknown, as the host has it. */
#include "console_keys.h"

#include "text.h"

#include <string.h>

#define ESC 0x1b

static const char up[] = "up", down[] = "down", left[] = "left",
		  right[] = "right", enter[] = "enter", esc[] = "esc",
		  tab[] = "tab", pageup[] = "pageup", pagedown[] = "pagedown",
		  home[] = "home", end[] = "end", backspace[] = "backspace",
		  delete[] = "delete", rune[] = "rune", unknown[] = "unknown";

const char *const zb_key_names[] = {
	up,	  down, left, right,	 enter,	 esc,  tab,	pageup,
	pagedown, home, end,  backspace, delete, rune, unknown, NULL,
};

/* What may follow ESC. */
static const struct {
	const char *rest, *name;
} usual[] = {
	{"[A", up},	 {"OA", up},	  {"[B", down},	     {"OB", down},
	{"[C", right},	 {"OC", right},	  {"[D", left},	     {"OD", left},
	{"[H", home},	 {"OH", home},	  {"[1~", home},     {"[7~", home},
	{"[F", end},	 {"OF", end},	  {"[4~", end},	     {"[8~", end},
	{"[3~", delete}, {"[5~", pageup}, {"[6~", pagedown}, {"OM", enter},
};

/* How far a sequence goes. */
enum extent {
	MORE, /* it is not all there yet */
	WHOLE,
};

void zb_keys_feed(struct zb_keys *k, const char *bytes, size_t n)
{
	if (n > zb_keys_room(k))
		n = zb_keys_room(k);
	memcpy(k->buf + k->n, bytes, n);
	k->n += n;
}

size_t zb_keys_room(const struct zb_keys *k)
{
	return sizeof(k->buf) - k->n;
}

static bool take(struct zb_keys *k, size_t n, const char *name,
		 struct zb_key *out)
{
	memset(out, 0, sizeof(*out));
	out->name = name;
	if (name == rune)
		memcpy(out->text, k->buf, n);
	k->n -= n;
	memmove(k->buf, k->buf + n, k->n);
	return true;
}

/* A sequence of this terminal's own. @partial: one begins with all there is. */
static const struct zb_key_seq *own(const struct zb_keys *k, bool *partial)
{
	for (size_t i = 0; i < k->n_more; i++) {
		const char *bytes = k->more[i].bytes;
		size_t len = strnlen(bytes, sizeof(k->more[i].bytes));
		size_t n = len < k->n ? len : k->n;

		if (!len || memcmp(bytes, k->buf, n) != 0)
			continue;
		if (n == len)
			return &k->more[i];
		*partial = true;
	}
	return NULL;
}

/* ESC [ parameters intermediates final; a byte that fits nowhere ends it
 * before itself. The Linux console has ESC [ [ and one more for F1 to F5. */
static enum extent csi(const struct zb_keys *k, size_t *n)
{
	size_t i = 2;

	if (k->n > i && k->buf[i] == '[')
		i++;
	else
		while (i < k->n && k->buf[i] >= 0x20 && k->buf[i] < 0x40)
			i++;
	if (i >= ZB_KEY_SEQ) {
		*n = i;
		return WHOLE;
	}
	if (i == k->n)
		return MORE;
	*n = k->buf[i] >= 0x40 && k->buf[i] < 0x7f ? i + 1 : i;
	return WHOLE;
}

/* A character at @at: its length, 0 if it is not all there, 1 if invalid. */
static size_t character(const struct zb_keys *k, size_t at, uint32_t *cp)
{
	unsigned char c = (unsigned char)k->buf[at];
	size_t rest = k->n - at;
	size_t want = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	unsigned used = zb_utf8_next(k->buf + at, rest, cp);

	if (used)
		return used;
	*cp = 0;
	for (size_t i = 1; i < rest && i < want; i++)
		if ((k->buf[at + i] & 0xc0) != 0x80)
			return 1;
	return rest < want ? 0 : 1;
}

static enum extent sequence(const struct zb_keys *k, size_t *n)
{
	uint32_t cp;

	if (k->n == 1)
		return MORE;
	switch (k->buf[1]) {
	case '[':
		return csi(k, n);
	case 'O':
		*n = 3;
		return k->n < 3 ? MORE : WHOLE;
	case ESC: /* Esc, and then something else */
		*n = 1;
		return WHOLE;
	default: /* with Alt */
		*n = 1 + character(k, 1, &cp);
		return *n == 1 ? MORE : WHOLE;
	}
}

static bool escape(struct zb_keys *k, bool waited, struct zb_key *out)
{
	size_t n = 0;

	if (sequence(k, &n) == MORE) {
		if (!waited)
			return false;
		return take(k, k->n, k->n == 1 ? esc : unknown, out);
	}
	if (n == 1)
		return take(k, 1, esc, out);
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (strlen(usual[i].rest) == n - 1 &&
		    !memcmp(usual[i].rest, k->buf + 1, n - 1))
			return take(k, n, usual[i].name, out);
	return take(k, n, unknown, out);
}

static const char *name_of(uint32_t cp)
{
	switch (cp) {
	case '\r':
	case '\n':
		return enter;
	case '\t':
		return tab;
	case 0x7f:
	case '\b':
		return backspace;
	case 3:
		return esc;
	default:
		return cp < 0x20 || (cp >= 0x80 && cp < 0xa0) ? unknown : rune;
	}
}

bool zb_keys_next(struct zb_keys *k, bool waited, struct zb_key *out)
{
	const struct zb_key_seq *s;
	bool partial = false;
	uint32_t cp;
	size_t n;

	if (!k->n)
		return false;
	s = own(k, &partial);
	if (s)
		return take(k, strnlen(s->bytes, sizeof(s->bytes)), s->name,
			    out);
	if (partial && !waited)
		return false;
	if (k->buf[0] == ESC)
		return escape(k, waited, out);
	n = character(k, 0, &cp);
	if (!n && !waited)
		return false;
	/* U+0000 stands for no character at all as well as for Ctrl-Space. */
	return take(k, n ? n : k->n, n && cp ? name_of(cp) : unknown, out);
}
