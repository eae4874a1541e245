/* zot_front.h - started under the name `zot` (a link to zotbox earlier in
 * PATH than the real one): `zot ext ...` is ours, anything else is the real
 * zot with arguments, terminal, signals and exit status untouched. Effects. */
#ifndef ZB_ZOT_FRONT_H
#define ZB_ZOT_FRONT_H

#include "error.h"

#include <stdbool.h>

/* Was this program started as zot, and not for `zot ext`? */
bool zb_zot_front_wanted(int argc, char *const *argv);
/* Become the real zot: $ZOTBOX_ZOT, else the next `zot` in PATH that is not
 * this very file. Must be called before anything of the process was changed.
 * Returns only on failure, with @err. */
int zb_zot_front_exec(char *const *argv, struct zb_error *err);

#endif
