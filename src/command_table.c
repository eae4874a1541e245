/* command_table.c - every command: one row here, one file cmd_*.c. Rows are in
 * the order in which help shows them. */
#include "cmd.h"

#include <stdint.h>

static const struct zb_option no_options[] = {{0}};

/* The order in a table is the index in zb_args.opt: each cmd_*.c has an enum
 * of the same order. */
static const struct zb_option list_options[] = {
	{.name = "json", .help = "one JSON object"},
	{0},
};
static const struct zb_option install_options[] = {
	{
		.name = "policy",
		.arg = ZB_ARG_VALUE,
		.value_name = "NAME|FILE",
		.help = "the base: strict (default), standard, a file; observe "
			"is not available in this version",
	},
	{
		.name = "scope",
		.arg = ZB_ARG_VALUE,
		.value_name = "FILE",
		.help = "a scope file to lay over it",
	},
	{
		.name = "yes",
		.letter = 'y',
		.help = "grant what it asks for; not what is too broad or as "
			"good as a shell, and nothing under --policy strict, "
			"with --scope or --adopt",
	},
	{.name = "yes-i-mean-it", .help = "grant that as well"},
	{.name = "fresh", .help = "delete what an earlier one left"},
	{.name = "adopt", .help = "keep what an earlier one left"},
	{.name = "allow-http", .help = "clone over plain http"},
	{0},
};
static const struct zb_option update_options[] = {
	{
		.name = "yes",
		.letter = 'y',
		.help = "take the new code; what it may do stays as it is",
	},
	{.name = "allow-http", .help = "clone over plain http"},
	{0},
};
static const struct zb_option remove_options[] = {
	{.name = "yes", .letter = 'y', .help = "do not ask"},
	{0},
};
static const struct zb_option unwrap_options[] = {
	{.name = "all", .help = "every wrapped extension"},
	{0},
};
static const struct zb_option logs_options[] = {
	{.name = "follow", .letter = 'f', .help = "go on as it grows"},
	{.name = "denials", .help = "what was denied, and how to allow it"},
	{
		.name = "since",
		.arg = ZB_ARG_VALUE,
		.value_name = "WHEN",
		.help = "denials since 2026-12-01T10:00:00Z, or 10m, 2h, 3d",
	},
	{.name = "json", .help = "denials as JSON, one a line"},
	{0},
};
static const struct zb_option doctor_options[] = {
	{.name = "json", .help = "one JSON object"},
	{.name = "repair",
	 .help = "confine NAME again, after ext unwrap too; without NAME "
		 "mend those that another zotbox would start"},
	{0},
};
static const struct zb_option check_options[] = {
	{.name = "json", .help = "one JSON object"},
	{0},
};
static const struct zb_option scope_options[] = {
	{
		.name = "effective",
		.help = "what comes of it: each rule with where it is from and "
			"what keeps it, each place that exists inside",
	},
	{
		.name = "policy",
		.arg = ZB_ARG_VALUE,
		.value_name = "NAME|FILE",
		.help = "with --effective: under this base, not the stored one",
	},
	{
		.name = "scope",
		.arg = ZB_ARG_VALUE,
		.value_name = "FILE",
		.help = "with --effective: this scope file, not the stored one",
	},
	{.name = "json", .help = "one JSON object"},
	{0},
};
static const struct zb_option why_options[] = {
	{
		.name = "policy",
		.arg = ZB_ARG_VALUE,
		.value_name = "NAME|FILE",
		.help = "ask under this base, not the stored one",
	},
	{
		.name = "scope",
		.arg = ZB_ARG_VALUE,
		.value_name = "FILE",
		.help = "ask with this scope file, not the stored one",
	},
	{.name = "json", .help = "one JSON object"},
	{0},
};
static const struct zb_option allow_options[] = {
	{.name = "yes-i-mean-it", .help = "also what is too broad"},
	{0},
};

static const struct zb_option trust_options[] = {
	{
		.name = "policy",
		.arg = ZB_ARG_VALUE,
		.value_name = "NAME|FILE",
		.help = "what it may do: strict (default), standard, a file",
	},
	{.name = "yes", .letter = 'y', .help = "do not ask"},
	{0},
};

static const char trust_more[] =
	"PATH is a directory below .zot/extensions of a project. What a project "
	"brings along does not start in zotbox until it is trusted; whatever "
	"changes below PATH, also in a .git there, ends the trust.";

static const char install_more[] =
	"A PATH is a directory with an extension.json. observe wants the "
	"network, which this version grants to nobody; to see what an extension "
	"reaches for, install it under strict: zotbox ext logs NAME --denials.";

static const char update_more[] =
	"From the PATH or GIT-URL that it was installed from; without NAME, "
	"everything that zotbox installed. Scope, home and data are kept, and "
	"nothing more is granted without a question on a terminal.";

static const char doctor_more[] =
	"Each extension is started once, confined, to see that it loads. Exit: "
	"5 if one is in trouble, 4 if this host cannot build the sandbox.";

static const char allow_more[] =
	"KEY and VALUE as in a scope file:\n"
	"fs.read PATH, fs.write PATH, fs.exec PROGRAM, fs.deny PATTERN; "
	"absolute, ~/..., or with ${project}\n"
	"env.pass VARIABLE\n"
	"protocol.events EVENT, protocol.intercept.EVENT block, "
	"protocol.submit true, protocol.slash COMMAND, protocol.call_tool TOOL\n"
	"limits.memory 256M, limits.tool_seconds 120\n"
	"zotbox ext logs NAME --denials shows what was refused, each with the "
	"line that allows it.";

static const char check_more[] =
	"Errors: the file is malformed (exit 2), nothing starts under it. "
	"Warnings: what a start would refuse or leave out on this machine, what "
	"opens very much, what has no effect; ${project} is the present "
	"directory. All findings of all files are printed.";

static const char why_more[] =
	"NAME: an installed extension, or the path of one. OP as the records of "
	"denials have it, with its TARGET:\n"
	"fs.read fs.write fs.create fs.delete fs.rename fs.exec fs.meta PATH "
	"(fs.write: the content of what is there, fs.create: a new name)\n"
	"(fs.exec takes a name as well, and looks it up in PATH)\n"
	"net.connect net.listen HOST:PORT, net.dns HOST, net.unix PATH or "
	"@NAME\n"
	"env VARIABLE, syscall NAME, integrity\n"
	"proto.VERB [NAME]: proto.events turn_end, proto.intercept "
	"tool_call:block, proto.submit\n"
	"limit.NAME AMOUNT: limit.memory 1G\n"
	"A path is followed as it would be inside, from the present directory "
	"as the project. File modes are the kernel's and not asked for. Exit: "
	"0 allowed, 3 denied.";

const struct zb_command zb_commands[] = {
	{
		.name = "ext list",
		.synopsis = "[--json]",
		.help = "list extensions and the policy of each",
		.options = list_options,
		.run = zb_cmd_ext_list,
	},
	{
		.name = "ext install",
		.synopsis = "PATH|GIT-URL [--policy NAME|FILE] [--scope FILE] "
			    "[--yes]",
		.help = "install an extension so that zot starts it confined",
		.more = install_more,
		.options = install_options,
		.min_args = 1,
		.max_args = 1,
		.run = zb_cmd_ext_install,
	},
	{
		.name = "ext update",
		.synopsis = "[NAME...] [--yes]",
		.help = "fetch again; show what is new in code and in what it "
			"asks for, and ask",
		.more = update_more,
		.options = update_options,
		.max_args = SIZE_MAX,
		.run = zb_cmd_ext_update,
	},
	{
		.name = "ext remove",
		.synopsis = "NAME|PATH [--yes]",
		.help = "delete an extension, its scope, home and data; of one "
			"that is run by its PATH all but its own files",
		.options = remove_options,
		.min_args = 1,
		.max_args = 1,
		.run = zb_cmd_ext_remove,
	},
	{
		.name = "ext unwrap",
		.synopsis = "NAME | --all",
		.help = "give an extension back to plain zot, unconfined",
		.options = unwrap_options,
		.max_args = 1,
		.run = zb_cmd_ext_unwrap,
	},
	{
		.name = "ext enable",
		.synopsis = "NAME",
		.help = "let it start again",
		.options = no_options,
		.min_args = 1,
		.max_args = 1,
		.run = zb_cmd_ext_enable,
	},
	{
		.name = "ext disable",
		.synopsis = "NAME",
		.help = "keep it from starting",
		.options = no_options,
		.min_args = 1,
		.max_args = 1,
		.run = zb_cmd_ext_disable,
	},
	{
		.name = "ext logs",
		.synopsis =
			"NAME|PATH [-f] [--denials] [--since WHEN] [--json]",
		.help = "show its log, or what it was denied",
		.options = logs_options,
		.min_args = 1,
		.max_args = 1,
		.run = zb_cmd_ext_logs,
	},
	{
		.name = "ext doctor",
		.synopsis = "[NAME...] [--json] [--repair]",
		.help = "examine this host and the extensions",
		.more = doctor_more,
		.options = doctor_options,
		.max_args = SIZE_MAX,
		.run = zb_cmd_ext_doctor,
	},
	{
		.name = "ext allow",
		.synopsis = "NAME KEY VALUE...",
		.help = "grant something from its next start on",
		.more = allow_more,
		.options = allow_options,
		.min_args = 3,
		.max_args = SIZE_MAX,
		.run = zb_cmd_ext_allow,
	},
	{
		.name = "ext revoke",
		.synopsis = "NAME KEY VALUE...",
		.help = "take a grant back",
		.more = allow_more,
		.options = no_options,
		.min_args = 3,
		.max_args = SIZE_MAX,
		.run = zb_cmd_ext_revoke,
	},
	{
		.name = "ext trust",
		.synopsis = "PATH [--policy NAME|FILE] [--yes]",
		.help = "let an extension of a project start, as it is now",
		.more = trust_more,
		.options = trust_options,
		.min_args = 1,
		.max_args = 1,
		.run = zb_cmd_ext_trust,
	},
	{
		.name = "ext untrust",
		.synopsis = "PATH",
		.help = "end the trust in an extension of a project",
		.more = trust_more,
		.options = no_options,
		.min_args = 1,
		.max_args = 1,
		.run = zb_cmd_ext_untrust,
	},
	{
		.name = "ext scope",
		.synopsis = "NAME|PATH [--effective] [--json]",
		.help = "show its scope file, or the rules that come of it",
		.options = scope_options,
		.min_args = 1,
		.max_args = 1,
		.run = zb_cmd_ext_scope,
	},
	{
		.name = "ext why",
		.synopsis = "NAME|PATH OP TARGET [--json]",
		.help = "may it, by which rule, and what would change that",
		.more = why_more,
		.options = why_options,
		.min_args = 2,
		.max_args = 3,
		.run = zb_cmd_ext_why,
	},
	{
		.name = "check",
		.synopsis = "FILE... [--json]",
		.help = "say what is wrong with scope files",
		.more = check_more,
		.options = check_options,
		.min_args = 1,
		.max_args = SIZE_MAX,
		.run = zb_cmd_check,
	},
	{
		.name = "wrap",
		.synopsis = "NAME",
		.help = "stand between zot and an installed extension; zot "
			"starts this",
		.options = no_options,
		.min_args = 1,
		.max_args = 1,
		.run = zb_cmd_wrap,
	},
	{
		.name = "console",
		.synopsis = "[EXT...] [--policy NAME|FILE] [--scope FILE] "
			    "[--cwd DIR] [--json]",
		.help = "play the agent to extensions: verbs on stdin, what "
			"reaches the agent or the user on stdout",
		.more = zb_console_more,
		.options = zb_console_options,
		.max_args = SIZE_MAX,
		.run = zb_cmd_console,
	},
	{
		.name = "host",
		.synopsis = "[--ext PATH]... [--no-ext] [--cwd DIR] "
			    "[--provider NAME] [--model NAME] "
			    "[--policy NAME|FILE]",
		.help = "drive extensions for a program: requests and events "
			"as JSON lines",
		.more = zb_host_more,
		.options = zb_host_options,
		.run = zb_cmd_host,
	},
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
