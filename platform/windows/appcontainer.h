/* appcontainer.h - plan to a description of a Windows AppContainer. Pure;
 * built everywhere. A plan for Windows spells C:\Users as /C:/Users. */
#ifndef ZB_APPCONTAINER_H
#define ZB_APPCONTAINER_H

#include "backend.h"

#define ZB_AC_NAME_MAX 64
#define ZB_SID_MAX     128 /* "S-1-15-3-1024-" and eight numbers */

/* The profile's name: unique for an extension of one ZOT_HOME, at most 64
 * characters (what CreateAppContainerProfile takes). */
void zb_appcontainer_name(const struct zb_plan *plan,
			  char out[ZB_AC_NAME_MAX + 1]);
/* S-1-15-2- and seven numbers, as Windows derives it from @name (ASCII). */
void zb_appcontainer_sid(const char *name, char out[ZB_SID_MAX]);
/* The SID of a capability: S-1-15-3-1024- and eight numbers, or the short one
 * of the three that are older than the rule. */
void zb_capability_sid(const char *name, char out[ZB_SID_MAX]);

/* Append one command line that CommandLineToArgvW and the C run-time split
 * into @argv again. argv[0] must have no quotation mark (a file name cannot)
 * and is quoted by its own rule. Return: 0, ZB_EUNSUPPORTED, ZB_ELIMIT. */
int zb_windows_command_line(const struct zb_strv *argv, struct zb_buf *out,
			    struct zb_error *err);

/* Append the description, a line a fact:
 *
 *	name sid lpac capability  the AppContainer
 *	moved stays hidden        as in sbpl.h: Windows does not mount either
 *	system "A"                readable through Windows' own entries
 *	ace KIND MASK FLAGS "A"   an entry for the SID: KIND allow or deny;
 *	                          FLAGS OI CI IO, or - ; deny comes first
 *	exists "A"                the start is refused if it is not there
 *	env program cwd command-line handles job ui-limits mitigation verify
 *	unsupported RULE: WHY
 *
 * A place that has an unsupported rule in it gets no entry at all. A plan with
 * such a line is explained and never started (zb_appcontainer_rules()).
 * Values of the environment are not shown.
 *
 * Return: 0, ZB_EUNSUPPORTED for a path that cannot be on Windows, ZB_ELIMIT.
 */
int zb_appcontainer_render(const struct zb_plan *plan, struct zb_buf *out,
			   struct zb_error *err);

/* The backend's rules: see enforce.h. */
int zb_appcontainer_rules(const struct zb_plan *plan,
			  struct zb_rule_status **out, size_t *n,
			  struct zb_error *err);

#endif
