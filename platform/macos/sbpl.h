/* sbpl.h - plan to a macOS sandbox profile (SBPL). Pure; built everywhere. */
#ifndef ZB_SBPL_H
#define ZB_SBPL_H

#include "backend.h"

/* The compiler of profiles takes no longer string. */
#define ZB_SBPL_STRING_MAX 1025

/* Append the profile of @plan. macOS cannot mount, so what the plan shows
 * under another name stays where it is, or is not there at all; comment lines
 * in front of the profile say so, one a line:
 *
 *	;; moved "A" "B"	what the plan has at A is at B instead
 *	;; moved "A" (param "TMP")	likewise; the directory is made at start
 *	;; stays "A"		below a moved or hidden place, but itself there
 *	;; hidden "A"		the plan shows a made-up file there: nothing is
 *	;; base "A"		macOS' own, readable in every profile
 *	;; unsupported RULE: WHY
 *
 * What is unsupported is left out of the profile, or denied: a plan with such
 * a line is explained and never started (zb_sbpl_rules()).
 *
 * Return: 0; ZB_EUNSUPPORTED for a path that no profile can name (control
 * characters, invalid UTF-8, over ZB_SBPL_STRING_MAX bytes as written);
 * ZB_ELIMIT. */
int zb_sbpl_render(const struct zb_plan *plan, struct zb_buf *out,
		   struct zb_error *err);

/* The backend's rules: see enforce.h. */
int zb_sbpl_rules(const struct zb_plan *plan, struct zb_rule_status **out,
		  size_t *n, struct zb_error *err);

#endif
