/* sbpl_internal.h - inside the macOS renderer only: what a profile can say and
 * what not (sbpl_rules.c), asked by what writes it (sbpl.c). */
#ifndef ZB_SBPL_INTERNAL_H
#define ZB_SBPL_INTERNAL_H

#include <stdbool.h>

/* A rule of net.connect or net.listen as a filter says it ("localhost:9224",
 * "*:443"), heap; NULL for names, other addresses, and more than one port. */
char *zb_sbpl_endpoint(const char *rule);
/* Can a filter name the socket of this net.unix rule? */
bool zb_sbpl_plain_path(const char *rule);

#endif
