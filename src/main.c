/* main.c - argv to a row of the command table to an exit code. */
#include "cmd.h"
#include "memory.h"
#include "options.h"
#include "zot_front.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* A program started with 0, 1 or 2 closed would get them for its own files,
 * and then write messages into them. */
static void fill_standard_fds(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
		    open("/dev/null", fd ? O_WRONLY : O_RDONLY) != fd)
			_exit(1);
}

static void ignore(int signo)
{
	(void)signo;
}

/* A reader that went away is an error of write(2), not a death. A handler and
 * not SIG_IGN: that would be inherited by every program we start, where
 * pipelines rely on SIGPIPE. */
static void survive_broken_pipes(void)
{
	struct sigaction sa = {.sa_handler = ignore, .sa_flags = SA_RESTART};

	sigaction(SIGPIPE, &sa, NULL);
}

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
	fill_standard_fds();
	survive_broken_pipes();
	zb_memory_share();
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
