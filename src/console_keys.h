/* console_keys.h - what a terminal sends for a key, and what an extension is
 * told: up down left right enter esc tab pageup pagedown home end backspace
 * delete, "rune" with the character typed, "unknown" for all else. Pure: bytes
 * in, keys out. Esc and Ctrl-C are both "esc": they close a panel and never
 * reach its extension. */
#ifndef ZB_CONSOLE_KEYS_H
#define ZB_CONSOLE_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#define ZB_KEY_ROOM 256 /* bytes that wait to be read as keys */
#define ZB_KEY_SEQ  32	/* the longest sequence of one key */

/* A sequence that this terminal has for a key, besides the usual ones. */
struct zb_key_seq {
	const char *name;
	char bytes[ZB_KEY_SEQ];
};

/* Zero-initialise; @more (borrowed) may be set. */
struct zb_keys {
	char buf[ZB_KEY_ROOM];
	size_t n;
	const struct zb_key_seq *more;
	size_t n_more;
};

struct zb_key {
	const char *name;
	char text[5]; /* of a rune, UTF-8 */
};

/* Take bytes as they were read; those beyond ZB_KEY_ROOM are dropped: read no
 * more than zb_keys_room(). */
void zb_keys_feed(struct zb_keys *k, const char *bytes, size_t n);
size_t zb_keys_room(const struct zb_keys *k);
/* The next key. Return: false if more bytes are needed. @waited: the rest did
 * not come in a while, so Esc is the key Esc and not the start of another. */
bool zb_keys_next(struct zb_keys *k, bool waited, struct zb_key *out);

/* All names, NULL at the end. */
extern const char *const zb_key_names[];

#endif
