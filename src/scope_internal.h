/* scope_internal.h - between scope_parse.c, scope_values.c and scope_edit.c;
 * scope.h is what others use. */
#ifndef ZB_SCOPE_INTERNAL_H
#define ZB_SCOPE_INTERNAL_H

#include "scope.h"

#define ZB_SCOPE_VALUE_MAX 4096
#define ZB_WHY_MAX	   200

/* May @value (not empty) stand in this list? Return: NULL, or @why filled with
 * a clause for the user ("must be ..."). */
typedef const char *zb_check_fn(const char *value, char why[ZB_WHY_MAX]);

zb_check_fn zb_check_read; /* and fs.write */
zb_check_fn zb_check_deny;
zb_check_fn zb_check_exec;
zb_check_fn zb_check_env;
zb_check_fn zb_check_connect;
zb_check_fn zb_check_listen;
zb_check_fn zb_check_socket;
zb_check_fn zb_check_tool;
zb_check_fn zb_check_command;
zb_check_fn zb_check_event;
zb_check_fn zb_check_part;

#endif
