/* cmd_console_start.c - zotbox console: a script is played here, a person's
 * terminal is for zotbox-terminal, which is executed in our place.
 *
 * This program is started once for every extension and lives as long as it;
 * the libraries for a terminal would cost each of them memory and time. The
 * process stays the same one, so terminal, signals, parent and exit status do
 * too. */
#include "cleanup.h"
#include "cmd.h"
#include "cmd_console.h"

#include <errno.h>
#include <unistd.h>

#define PROGRAM "zotbox-terminal"

/* It is called by our path, and takes it for that of the zotbox it is of. */
static int execute(const char *path, char *self, char *const *given,
		   struct zb_error *err)
{
	static char command[] = "console";
	zb_auto(free) char **argv = NULL;
	size_t n = 0;

	while (given[n])
		n++;
	argv = calloc(n + 3, sizeof(*argv));
	if (!argv)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	argv[0] = self;
	argv[1] = command;
	for (size_t i = 0; i < n; i++)
		argv[2 + i] = given[i];
	execv(path, argv);
	return zb_fail_sys(err, errno,
			   "start %s, which has the console for a terminal "
			   "(install zotbox again; a script on standard input "
			   "runs without it)",
			   path);
}

static int start_terminal(char *const *given, struct zb_error *err)
{
	zb_auto(free) char *path = zb_own_file(PROGRAM);
	zb_auto(free) char *self = zb_own_program();

	if (!self)
		return zb_fail(err, ZB_ESYS,
			       "the path of this program cannot be found");
	if (!path)
		return zb_fail(err, ZB_ESYS,
			       "%s, which has the console for a terminal, is "
			       "not at %s: install zotbox again; a script on "
			       "standard input runs without it",
			       PROGRAM, ZB_PKGLIBEXECDIR "/" PROGRAM);
	return execute(path, self, given, err);
}

int zb_cmd_console(const struct zb_args *a)
{
	struct zb_error err = {0};

	if (!zb_cmd_on_terminal())
		return zb_console_play(a, NULL);
	start_terminal(a->given, &err);
	return zb_cmd_fail(&err);
}
