/* command_table.c - every command: one row here, one file cmd_*.c. Rows are in
 * the order in which help shows them. */
#include "cmd.h"

#include <stdint.h>

static const struct zb_option no_options[] = {{0}};

const struct zb_command zb_commands[] = {
	{
		.name = "version",
		.synopsis = "",
		.help = "print the version",
		.options = no_options,
		.run = zb_cmd_version,
	},
	{
		.name = "help",
		.synopsis = "[COMMAND]",
		.help = "print what the commands are, or explain one",
		.options = no_options,
		.max_args = 2,
		.run = zb_cmd_help,
	},
	{0},
};
