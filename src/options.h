/* options.h - a command line against the tables of cmd.h, and the help text
 * that is generated from the same tables. Pure: nothing is printed here. */
#ifndef ZB_OPTIONS_H
#define ZB_OPTIONS_H

#include "cmd.h"

/* The command that argv[0..] names: the longest match over its words ("ext
 * install" before "ext"). *@used: how many words it took.
 * Return: NULL with @err (ZB_EUSAGE) naming the nearest command, or listing
 * the commands of the group when only its first word was given. */
const struct zb_command *zb_command_find(const struct zb_command *table,
					 int argc, char *const *argv, int *used,
					 struct zb_error *err);

/* Parse what follows the command's name. --name VALUE, --name=VALUE, -x VALUE,
 * -xVALUE, flags together (-fy), -- ends options; options may stand after
 * operands. An optional value only with "=". Unknown options and a wrong
 * number of operands are ZB_EUSAGE, with the nearest name.
 * @out is zeroed on failure. */
int zb_options_parse(struct zb_args *out, const struct zb_command *cmd,
		     int argc, char *const *argv, struct zb_error *err);
void zb_args_done(struct zb_args *a);

/* The help page of one command / the list of all whose name starts with
 * @prefix ("" for every one). */
int zb_command_help(const struct zb_command *cmd, struct zb_buf *out);
int zb_command_list(const struct zb_command *table, const char *prefix,
		    struct zb_buf *out);

#endif
