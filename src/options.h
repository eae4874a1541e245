/* options.h - commands and options as tables, a command line against them, and
 * the help text that is generated from them. Pure: nothing is printed here. */
#ifndef ZB_OPTIONS_H
#define ZB_OPTIONS_H

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
	char *const *given; /* what was parsed, a NULL at its end; borrowed */
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

/* The command that argv[0..] names: the longest match over its words ("ext
 * install" before "ext"). *@used: how many words it took.
 * Return: NULL with @err (ZB_EUSAGE) naming the nearest command, or listing
 * the commands of the group when only its first word was given. */
const struct zb_command *zb_command_find(const struct zb_command *table,
					 int argc, char *const *argv, int *used,
					 struct zb_error *err);

/* Is @word the first one of several commands ("ext")? */
bool zb_command_is_group(const struct zb_command *table, const char *word);

/* Parse what follows the command's name. --name VALUE, --name=VALUE, -x VALUE,
 * -xVALUE, flags together (-fy), -- ends options; options may stand after
 * operands. An optional value only with "=". Unknown options and a wrong
 * number of operands are ZB_EUSAGE, with the nearest name.
 * @out is zeroed on failure. */
int zb_options_parse(struct zb_args *out, const struct zb_command *cmd,
		     int argc, char *const *argv, struct zb_error *err);
void zb_args_done(struct zb_args *a);

/* Append the help page of one command / the list of all whose name starts with
 * @prefix ("" for every one). */
int zb_command_help(const struct zb_command *cmd, struct zb_buf *out);
int zb_command_list(const struct zb_command *table, const char *prefix,
		    struct zb_buf *out);

#endif
