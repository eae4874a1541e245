/* main.c - argv to a row of the command table to an exit code. */
#include "cmd.h"
#include "options.h"
#include "store.h"
#include "zot_front.h"

#include <string.h>

static int print_help(const struct zb_command *cmd)
{
	struct zb_buf page = {0};
	int rc = zb_command_help(cmd, &page);

	if (!rc)
		rc = zb_cmd_out(zb_buf_str(&page), page.len);
	zb_buf_done(&page);
	return rc ? 1 : 0;
}

static int run(int argc, char *const *argv)
{
	struct zb_error err = {0};
	const struct zb_command *cmd;
	struct zb_args args;
	int used, rc;

	/* "zotbox ext --help" is "zotbox help ext". */
	if (argc > 1 && zb_command_is_group(zb_commands, argv[0]) &&
	    (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		const char *group = argv[0];

		return zb_cmd_help(
			&(struct zb_args){.arg = &group, .n_args = 1});
	}
	cmd = zb_command_find(zb_commands, argc, argv, &used, &err);
	if (!cmd)
		return zb_cmd_fail(&err);
	if (zb_options_parse(&args, cmd, argc - used, argv + used, &err))
		return zb_cmd_fail(&err);
	rc = args.help ? print_help(cmd) : cmd->run(&args);
	zb_args_done(&args);
	return rc;
}

int main(int argc, char **argv)
{
	/* "zotbox --help" and the like are these commands. */
	static const char *const words[][2] = {
		{"--help", "help"},
		{"-h", "help"},
		{"--version", "version"},
		{"-V", "version"},
	};
	struct zb_error err = {0};
	static char help[] = "help", version[] = "version";

	if (zb_zot_front_wanted(argc, argv)) {
		zb_zot_front_exec(argv, &err);
		return zb_cmd_fail(&err);
	}
	zb_own_started_as(argv[0]);
	zb_cmd_begin();
	if (argc < 2) {
		zb_fail(&err, ZB_EUSAGE,
			"a command is needed (see zotbox help)");
		return zb_cmd_fail(&err);
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(argv[1], words[i][0]))
			argv[1] = words[i][1][0] == 'h' ? help : version;
	return run(argc - 1, argv + 1);
}
