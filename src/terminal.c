/* terminal.c - zotbox-terminal: `zotbox console` where a person sits. Started
 * by it, in its place, with its arguments and by its path; a program of its own
 * for the libraries that a terminal needs (cmd_console_start.c). */
#include "cmd.h"
#include "cmd_console.h"

#include <stdint.h>
#include <string.h>

static const struct zb_command console = {
	.name = "console",
	.options = zb_console_options,
	.max_args = SIZE_MAX,
};

static int play(int argc, char *const *argv, struct zb_error *err)
{
	struct zb_args args;
	int rc;

	if (argc < 2 || argv[0][0] != '/' || strcmp(argv[1], "console") != 0)
		return zb_fail(err, ZB_EUSAGE,
			       "zotbox-terminal is started by: zotbox console, "
			       "on a terminal");
	zb_own_program_is(argv[0]);
	rc = zb_options_parse(&args, &console, argc - 2, argv + 2, err);
	if (rc)
		return rc;
	rc = zb_console_play(&args,
			     zb_cmd_on_terminal() ? &zb_console_screen : NULL);
	zb_args_done(&args);
	return rc;
}

int main(int argc, char **argv)
{
	struct zb_error err = {0};
	int rc;

	zb_cmd_begin();
	rc = play(argc, argv, &err);
	return err.code ? zb_cmd_fail(&err) : rc;
}
