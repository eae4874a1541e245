/* cmd_ext_list.c - zotbox ext list: zot's columns, and under which policy each
 * extension starts. What is `unconfined` runs with all of the user's rights. */
#include "cleanup.h"
#include "cmd.h"
#include "discover.h"
#include "text.h"

#include <string.h>
#include <unistd.h>

enum {
	OPT_JSON
};

/* A cell for a terminal: escaped, "-" when empty, padded to @width. */
static void cell(struct zb_buf *out, const char *text, unsigned width)
{
	struct zb_buf shown = {0};

	if (text && *text)
		zb_text_escape(&shown, text, strlen(text), 200);
	else
		zb_buf_adds(&shown, "-");
	zb_buf_addf(out, "%-*s  ", (int)width, zb_buf_str(&shown));
	zb_buf_done(&shown);
}

static void last_cell(struct zb_buf *out, const struct zb_found *f)
{
	struct zb_buf b = {0};

	zb_text_escape(&b, f->dir, strlen(f->dir), 0);
	if (f->link) {
		zb_buf_adds(&b, " (link -> ");
		zb_text_escape(&b, f->link, strlen(f->link), 200);
		zb_buf_addc(&b, ')');
	}
	if (f->shadowed)
		zb_buf_adds(&b, " (another of this name comes first)");
	if (f->untrusted && f->changed)
		zb_buf_adds(&b, " (changed since it was trusted, does not "
				"start in zotbox)");
	else if (f->untrusted)
		zb_buf_adds(&b, " (not trusted, does not start in zotbox)");
	else if (f->scope == ZB_FOUND_PROJECT && f->has_manifest &&
		 !f->theme_only && !f->problem)
		zb_buf_adds(&b, " (trusted in zotbox)");
	if (f->problem) {
		zb_buf_adds(&b, " (");
		zb_text_escape(&b, f->problem, strlen(f->problem), 300);
		zb_buf_addc(&b, ')');
	}
	zb_buf_addf(out, "%s\n", zb_buf_str(&b));
	zb_buf_done(&b);
}

static void row(struct zb_buf *out, const struct zb_found *f)
{
	const struct zb_manifest *m = &f->manifest;

	cell(out, zb_found_scope_name(f->scope), 12);
	cell(out, f->name, 20);
	cell(out, m->version, 10);
	cell(out, !f->has_manifest ? "-" : m->enabled ? "yes" : "no", 8);
	cell(out, m->language, 10);
	cell(out, f->policy, 14);
	last_cell(out, f);
}

static void table(struct zb_buf *out, const struct zb_found_list *l)
{
	static const struct {
		const char *title;
		unsigned width;
	} columns[] = {
		{"scope", 12},	{"name", 20},	  {"version", 10},
		{"enabled", 8}, {"language", 10}, {"policy", 14},
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(columns); i++)
		cell(out, columns[i].title, columns[i].width);
	zb_buf_adds(out, "dir\n");
	for (size_t i = 0; i < l->n; i++)
		row(out, &l->v[i]);
}

static void json(struct zb_buf *out, const struct zb_found_list *l)
{
	zb_buf_adds(out, "{\"v\":1,\"extensions\":[");
	for (size_t i = 0; i < l->n; i++) {
		zb_buf_adds(out, i ? ",{" : "{");
		zb_found_json(&l->v[i], out);
		zb_buf_addc(out, '}');
	}
	zb_buf_adds(out, "]}\n");
}

/* Those that zot starts, or may start, with all of the user's rights. */
static bool is_unconfined(const struct zb_found *f)
{
	return f->policy && !strcmp(f->policy, "unconfined") && !f->shadowed &&
	       (!f->has_manifest || f->manifest.enabled);
}

static void warn_unconfined(const struct zb_found_list *l)
{
	struct zb_buf names = {0};

	for (size_t i = 0; i < l->n; i++) {
		if (!is_unconfined(&l->v[i]))
			continue;
		zb_buf_adds(&names, names.len ? ", " : "");
		zb_text_escape(&names, l->v[i].name, strlen(l->v[i].name), 80);
		if (names.len > 1000) {
			zb_buf_adds(&names, " and more");
			break;
		}
	}
	if (names.len)
		zb_cmd_say("unconfined, with all of your rights, outside "
			   "zotbox: %s",
			   zb_buf_str(&names));
	zb_buf_done(&names);
}

/* Boxes whose path is gone show in no row. */
static void tell_left(const struct zb_store *store)
{
	struct zb_strv left = {0};
	struct zb_buf names = {0};
	size_t i = 0;

	zb_discover_left(store, &left);
	for (; i < left.n && names.len < 1000; i++) {
		const char *s = left.v[i];

		zb_buf_adds(&names, i ? ", " : "");
		if (zb_text_shell_quote(&names, s))
			zb_text_escape(&names, s, strlen(s), 200);
	}
	if (i)
		zb_cmd_say("run by a path that is gone, with home and data "
			   "left here (zotbox ext remove PATH): %s%s",
			   zb_buf_str(&names), i < left.n ? " and more" : "");
	zb_buf_done(&names);
	zb_strv_done(&left);
}

int zb_cmd_ext_list(const struct zb_args *a)
{
	struct zb_error err = {0};
	struct zb_store store = {0};
	struct zb_found_list list = {0};
	struct zb_buf out = {0};
	zb_auto(free) char *cwd = NULL;
	int rc = 0;

	if (zb_store_open(&store, &err))
		return zb_cmd_fail(&err);
	cwd = getcwd(NULL, 0);
	rc = zb_discover(&list, &store, cwd, &err);
	for (size_t i = 0; !rc && i < list.n; i++)
		zb_found_compare(&list.v[i], &store);
	if (rc) {
		rc = zb_cmd_fail(&err);
	} else if (a->opt[OPT_JSON]) {
		json(&out, &list);
	} else if (!list.n) {
		zb_cmd_say("no extensions installed (zotbox ext install "
			   "PATH|GIT-URL)");
	} else {
		table(&out, &list);
	}
	if (out.failed)
		rc = 1;
	else if (out.len && zb_cmd_out(out.data, out.len))
		rc = 1;
	if (!rc && !a->opt[OPT_JSON])
		warn_unconfined(&list);
	if (!rc && !a->opt[OPT_JSON])
		tell_left(&store);
	zb_buf_done(&out);
	zb_found_list_done(&list);
	zb_store_done(&store);
	return rc;
}
