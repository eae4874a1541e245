/* cmd.h - the command table: one file a command (cmd_NAME.c), options as
 * tables that --help reads too. */
#ifndef ZB_CMD_H
#define ZB_CMD_H

#include "buf.h"
#include "error.h"

#include <stdbool.h>
#include <stddef.h>

enum zb_arg {
	ZB_ARG_NONE,
	ZB_ARG_VALUE,
	ZB_ARG_OPTIONAL
};

/* A long option, its one-letter form (0: none), where its value goes (index
 * into zb_args.opt). Tables end with a NULL name. */
struct zb_option {
	const char *name;
	char letter;
	enum zb_arg arg;
	const char *value_name; /* for help, NULL without value */
	const char *help;
	bool many; /* may be repeated */
};

#define ZB_MAX_OPTIONS 16

/* Parsed command line of one command. Strings point into argv; the arrays are
 * heap, zb_args_done() frees them. */
struct zb_args {
	bool help; /* --help or -h was given: nothing else was checked */
	const char *opt[ZB_MAX_OPTIONS];   /* last value, "" for flags, NULL */
	const char **many[ZB_MAX_OPTIONS]; /* all values, for .many */
	size_t n_many[ZB_MAX_OPTIONS];
	const char **arg; /* operands */
	size_t n_args;
};

struct zb_command {
	const char *name;     /* "ext install" */
	const char *synopsis; /* "PATH|GIT-URL [--policy NAME|FILE] ..." */
	const char *help;     /* one line */
	const char *more;     /* paragraphs under the options, or NULL */
	const struct zb_option *options;
	size_t min_args, max_args; /* max SIZE_MAX: any */
	/* Return: exit code. Prints its own errors through zb_cmd_fail(). */
	int (*run)(const struct zb_args *args);
};

/* All commands, NULL name at the end (command_table.c). */
extern const struct zb_command zb_commands[];

/* Print "zotbox: MESSAGE" to stderr (characters that a terminal would act on
 * are shown, not sent), return zb_exit_code(err->code). */
int zb_cmd_fail(const struct zb_error *err);
/* The same prefix and care for a message that is no failure. */
void zb_cmd_say(const char *fmt, ...) ZB_PRINTF(1, 2);
/* Append text that was escaped once by its writer: our own line breaks stay,
 * whatever else a terminal would act on is shown. Not zb_text_escape(), a
 * second pass of that would double the backslashes. */
void zb_cmd_visible(struct zb_buf *out, const char *s, size_t n);
/* Write @n bytes of results to stdout, whole. Return: 0, or ZB_ESYS: the
 * command should end with 1 (a closed pipe is not worth a message). */
int zb_cmd_out(const void *p, size_t n);

/* The commands, as rows of the table. Return: exit code. */
int zb_cmd_ext_list(const struct zb_args *a);
int zb_cmd_ext_install(const struct zb_args *a);
int zb_cmd_ext_remove(const struct zb_args *a);
int zb_cmd_ext_unwrap(const struct zb_args *a);
int zb_cmd_ext_enable(const struct zb_args *a);
int zb_cmd_ext_disable(const struct zb_args *a);
int zb_cmd_ext_logs(const struct zb_args *a);
int zb_cmd_ext_doctor(const struct zb_args *a);
int zb_cmd_ext_allow(const struct zb_args *a);
int zb_cmd_ext_revoke(const struct zb_args *a);
int zb_cmd_wrap(const struct zb_args *a);
/* Beside its code: what its help says. */
extern const struct zb_option zb_console_options[];
extern const char zb_console_more[];
int zb_cmd_console(const struct zb_args *a);
int zb_cmd_version(const struct zb_args *a);
int zb_cmd_help(const struct zb_args *a);

#endif
