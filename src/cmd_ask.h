/* cmd_ask.h - showing a person what an extension asks for: grouped by risk,
 * the worst first, with what it opens on this machine. Effects. */
#ifndef ZB_CMD_ASK_H
#define ZB_CMD_ASK_H

#include "grant.h"
#include "store.h"

/* Things that are shown one by one; of the rest only how many. */
#define ZB_ASK_SHOWN 100

/* Print those of @w that are not granted. With @name: each with the command
 * that grants it, and what it has to do without; NULL: as a question is put.
 * Return: how many there are. */
size_t zb_cmd_wishes(const struct zb_store *store, const char *name,
		     const struct zb_wishes *w);
/* Print what @name can do once it has @value of @key, with what that opens on
 * this machine. */
void zb_cmd_may(const struct zb_store *store, const char *name, const char *key,
		const char *value);
/* Ask @question on the terminal of stdin: yes? */
bool zb_cmd_yes(const char *question);

#endif
