/* cmd_check.c - zotbox check: what is wrong with scope files. Findings are the
 * result: one a line, "FILE:LINE:COLUMN: error: what", or as JSON. */
#include "cleanup.h"
#include "cmd.h"
#include "json_scan.h"
#include "lint.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	OPT_JSON
};

static void text_finding(struct zb_buf *out, const char *file,
			 const struct zb_lint_finding *f)
{
	zb_text_escape(out, file, strlen(file), 0);
	if (f->line)
		zb_buf_addf(out, ":%u", f->line);
	if (f->column)
		zb_buf_addf(out, ":%u", f->column);
	zb_buf_addf(out, ": %s: ", f->warning ? "warning" : "error");
	zb_cmd_visible(out, f->text, strlen(f->text));
	zb_buf_addc(out, '\n');
}

static void json_finding(struct zb_buf *out, const struct zb_lint_finding *f)
{
	zb_buf_addf(out, "{\"severity\":\"%s\"",
		    f->warning ? "warning" : "error");
	if (f->line)
		zb_buf_addf(out, ",\"line\":%u", f->line);
	if (f->column)
		zb_buf_addf(out, ",\"column\":%u", f->column);
	if (f->key) {
		zb_buf_adds(out, ",\"key\":");
		zb_json_quote(out, f->key, strlen(f->key));
	}
	zb_buf_adds(out, ",\"text\":");
	zb_json_quote(out, f->text, strlen(f->text));
	zb_buf_addc(out, '}');
}

static void json_file(struct zb_buf *out, const char *file,
		      const struct zb_lint *l)
{
	zb_buf_adds(out, "{\"file\":");
	zb_json_quote(out, file, strlen(file));
	zb_buf_addf(out, ",\"ok\":%s,\"findings\":[",
		    l->malformed ? "false" : "true");
	for (size_t i = 0; i < l->n; i++) {
		zb_buf_adds(out, i ? "," : "");
		json_finding(out, &l->v[i]);
	}
	zb_buf_adds(out, "]}");
}

/* Every file, also behind one that is malformed. Return: exit code. */
static int check(const struct zb_args *a, const struct zb_store *store,
		 const char *project, struct zb_buf *out, struct zb_error *err)
{
	bool json = a->opt[OPT_JSON], bad = false;

	zb_buf_adds(out, json ? "{\"v\":1,\"files\":[" : "");
	for (size_t i = 0; i < a->n_args; i++) {
		struct zb_lint l;

		if (zb_lint_file(&l, store, a->arg[i], project, err))
			return zb_exit_code(err->code);
		zb_buf_adds(out, json && i ? "," : "");
		if (json)
			json_file(out, a->arg[i], &l);
		for (size_t k = 0; !json && k < l.n; k++)
			text_finding(out, a->arg[i], &l.v[k]);
		bad = bad || l.malformed;
		zb_lint_done(&l);
	}
	zb_buf_adds(out, json ? "]}\n" : "");
	return bad ? zb_exit_code(ZB_EUSAGE) : 0;
}

int zb_cmd_check(const struct zb_args *a)
{
	zb_auto(free) char *cwd = getcwd(NULL, 0);
	zb_auto(free) char *project = cwd ? realpath(cwd, NULL) : NULL;
	struct zb_store store = {0};
	struct zb_error err = {0};
	struct zb_buf out = {0};
	int rc = 0;

	if (!zb_store_open(&store, &err))
		rc = check(a, &store, project, &out, &err);
	if (!err.code && (out.failed || zb_cmd_out(zb_buf_str(&out), out.len)))
		rc = 1;
	zb_buf_done(&out);
	zb_store_done(&store);
	return err.code ? zb_cmd_fail(&err) : rc;
}
