/* cmd_help.c - zotbox help [COMMAND...]: pages generated from the tables. */
#include "cmd.h"
#include "options.h"

static const char intro[] =
	"usage: zotbox COMMAND [ARGUMENT...]\n\n"
	"Runs the extensions of zot inside a sandbox, each under a permission\n"
	"scope file, and says exactly what was denied and how to allow it.\n\n"
	"commands:\n";

static const char outro[] =
	"\nzotbox COMMAND --help explains one of them.\n"
	"Exit codes: 0 ok, 1 failed at run time, 2 usage or malformed input,\n"
	"3 refused by policy or a safety check, 4 this host or this version\n"
	"cannot enforce it, 5 doctor found a problem, 128+N ended by signal N.\n";

static int everything(struct zb_buf *out)
{
	zb_buf_adds(out, intro);
	zb_command_list(zb_commands, "", out);
	return zb_buf_adds(out, outro);
}

/* "zotbox help ext": all its commands; "zotbox help ext list": that page. */
static int one(const struct zb_args *a, struct zb_buf *out,
	       struct zb_error *err)
{
	char *words[4] = {NULL};
	const struct zb_command *cmd;
	int used, n = 0;
	struct zb_buf group = {0};

	for (; n < 3 && (size_t)n < a->n_args; n++)
		words[n] = (char *)(uintptr_t)a->arg[n];
	zb_buf_addf(&group, "%s ", words[0]);
	if (n == 1)
		zb_command_list(zb_commands, zb_buf_str(&group), out);
	zb_buf_done(&group);
	if (out->len)
		return 0;
	cmd = zb_command_find(zb_commands, n, words, &used, err);
	return cmd ? zb_command_help(cmd, out) : ZB_EUSAGE;
}

int zb_cmd_help(const struct zb_args *a)
{
	struct zb_buf out = {0};
	struct zb_error err = {0};
	int rc = a->n_args ? one(a, &out, &err) : everything(&out);

	if (rc)
		rc = zb_cmd_fail(&err);
	else if (zb_cmd_out(zb_buf_str(&out), out.len))
		rc = 1;
	zb_buf_done(&out);
	return rc;
}
