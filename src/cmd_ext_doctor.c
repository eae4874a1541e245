/* cmd_ext_doctor.c - zotbox ext doctor: print what doctor.c found, as text or
 * JSON; --repair mends wrapped manifests. */
#include "cleanup.h"
#include "cmd.h"
#include "doctor.h"
#include "enforce.h"
#include "install.h"
#include "json_scan.h"
#include "scope.h"
#include "staging.h"
#include "text.h"

#include <string.h>
#include <unistd.h>

enum {
	OPT_JSON,
	OPT_REPAIR
};

#define LOCK_WAIT_MS 10000

/* ---- text ---- */

static void line(struct zb_buf *out, const char *label, const char *text)
{
	zb_buf_addf(out, "  %s: ", label);
	zb_cmd_visible(out, text, strlen(text));
	zb_buf_addc(out, '\n');
}

static void lines(struct zb_buf *out, const char *label,
		  const struct zb_strv *l)
{
	for (size_t i = 0; i < l->n; i++)
		line(out, label, l->v[i]);
}

static void names(struct zb_buf *out, const char *title, const char *slash,
		  const struct zb_doctor_name *v, size_t n)
{
	if (n)
		zb_buf_addf(out, "  %s:\n", title);
	for (size_t i = 0; i < n; i++) {
		zb_buf_addf(out, "    %s", slash);
		zb_text_escape(out, v[i].name, strlen(v[i].name), 120);
		zb_buf_addf(out, " (%s%s%s)\n", v[i].state,
			    v[i].by ? " by " : "", v[i].by ? v[i].by : "");
	}
}

static void requested(struct zb_buf *out, const struct zb_patient *p)
{
	for (size_t i = 0; i < p->wishes.n; i++) {
		const struct zb_wish *w = &p->wishes.v[i];
		struct zb_buf command = {0};

		zb_buf_addf(out, "  asks for, not granted: %s ", w->key);
		zb_text_escape(out, w->value, strlen(w->value), 400);
		if (w->why_not) {
			zb_buf_addf(out,
				    "; %s: ", zb_no_command_label(w->why_not));
			zb_cmd_visible(out, w->why_not, strlen(w->why_not));
		} else if (!zb_wish_command(p->found->name, w, &command)) {
			zb_buf_addf(out, "; to allow: %s",
				    zb_buf_str(&command));
		}
		zb_buf_addc(out, '\n');
		zb_buf_done(&command);
	}
}

static void rules(struct zb_buf *out, const struct zb_patient *p)
{
	if (p->n_rules)
		zb_buf_adds(out, strcmp(p->status, "unconfined") != 0
					 ? "  enforced by:\n"
					 : "  would be enforced by:\n");
	for (size_t i = 0; i < p->n_rules; i++) {
		zb_buf_adds(out, "    ");
		zb_text_escape(out, p->rules[i].rule, strlen(p->rules[i].rule),
			       200);
		zb_buf_addf(out, ": %s\n", p->rules[i].by);
	}
}

static void denied(struct zb_buf *out, const struct zb_patient *p,
		   const char *home)
{
	if (!p->n_denials)
		return;
	zb_buf_addf(out, "  denied in the last session (%zu):\n", p->n_denials);
	for (size_t i = 0; i < p->n_denials; i++) {
		zb_buf_adds(out, "    ");
		zb_denial_text(&p->denials[i], home, out);
		zb_buf_addc(out, '\n');
	}
}

static void print_patient(struct zb_buf *out, const struct zb_patient *p,
			  const char *home)
{
	const struct zb_found *f = p->found;

	zb_text_escape(out, f->name, strlen(f->name), 120);
	zb_buf_addf(out, " [%s] %s (", zb_found_scope_name(f->scope),
		    p->status);
	zb_text_escape(out, f->dir, strlen(f->dir), 0);
	zb_buf_adds(out, ")\n");
	if (f->manifest.version)
		line(out, "version", f->manifest.version);
	if (f->theme_only)
		line(out, "type", "theme-only");
	else if (f->policy && *f->policy != '-')
		line(out, "policy", f->policy);
	if (p->exec)
		line(out, "exec", p->exec);
	if (f->has_manifest && !f->theme_only)
		line(out, "log", p->log);
	names(out, "commands", "/", p->commands, p->n_commands);
	names(out, "tools", "", p->tools, p->n_tools);
	rules(out, p);
	requested(out, p);
	denied(out, p, home);
	if (p->started)
		zb_buf_addf(out, "  start: %llu ms\n",
			    (unsigned long long)p->start_ms);
	if (!strcmp(p->status, "disabled"))
		line(out, "note", "disabled in extension.json");
	if (!strcmp(p->status, "shadowed"))
		line(out, "note",
		     "skipped because a higher-priority extension directory "
		     "with this name wins");
	lines(out, "note", &p->notes);
	lines(out, "warning", &p->warnings);
	lines(out, "error", &p->errors);
}

static void print_host(struct zb_buf *out, const struct zb_diagnosis *d)
{
	zb_buf_addf(out, "host: %s\n",
		    d->host_error ? "CANNOT build the sandbox" : "ok");
	lines(out, "has", &d->host.facts);
	for (size_t i = 0; i < d->host.n_missing; i++) {
		line(out, "missing", d->host.missing[i].what);
		line(out, "  why", d->host.missing[i].why);
		line(out, "  remedy", d->host.missing[i].remedy);
	}
	lines(out, "not seen here", &d->host.blind_spots);
}

static void print_text(struct zb_buf *out, const struct zb_diagnosis *d,
		       const char *home)
{
	zb_buf_adds(out, "zotbox extension doctor\n\n");
	print_host(out, d);
	zb_buf_addc(out, '\n');
	for (size_t i = 0; i < d->n; i++)
		print_patient(out, &d->v[i], home);
	if (!d->n)
		zb_buf_adds(out, "no extensions installed\n");
}

/* ---- JSON ---- */

static void member(struct zb_buf *out, const char *key, const char *value)
{
	zb_buf_addf(out, ",\"%s\":", key);
	zb_json_quote_or_null(out, value);
}

static void json_items(struct zb_buf *out, const struct zb_strv *l, bool *any)
{
	for (size_t i = 0; i < l->n; i++) {
		zb_buf_adds(out, *any ? "," : "");
		zb_json_quote_or_null(out, l->v[i]);
		*any = true;
	}
}

/* One list, or two after each other (@more may be NULL). */
static void json_list(struct zb_buf *out, const char *key,
		      const struct zb_strv *l, const struct zb_strv *more)
{
	bool any = false;

	zb_buf_addf(out, ",\"%s\":[", key);
	json_items(out, l, &any);
	if (more)
		json_items(out, more, &any);
	zb_buf_addc(out, ']');
}

static void json_names(struct zb_buf *out, const char *key,
		       const struct zb_doctor_name *v, size_t n)
{
	zb_buf_addf(out, ",\"%s\":[", key);
	for (size_t i = 0; i < n; i++) {
		zb_buf_adds(out, i ? ",{\"name\":" : "{\"name\":");
		zb_json_quote_or_null(out, v[i].name);
		member(out, "state", v[i].state);
		member(out, "by", v[i].by);
		zb_buf_addc(out, '}');
	}
	zb_buf_addc(out, ']');
}

static void json_requested(struct zb_buf *out, const struct zb_wishes *w)
{
	zb_buf_adds(out, ",\"requested_not_granted\":[");
	for (size_t i = 0; i < w->n; i++) {
		zb_buf_adds(out, i ? ",{\"key\":" : "{\"key\":");
		zb_json_quote_or_null(out, w->v[i].key);
		member(out, "value", w->v[i].value);
		zb_buf_addc(out, '}');
	}
	zb_buf_addc(out, ']');
}

static void json_rules(struct zb_buf *out, const struct zb_patient *p)
{
	zb_buf_adds(out, ",\"enforced_by\":[");
	for (size_t i = 0; i < p->n_rules; i++) {
		zb_buf_adds(out, i ? ",{\"rule\":" : "{\"rule\":");
		zb_json_quote_or_null(out, p->rules[i].rule);
		member(out, "by", p->rules[i].by);
		zb_buf_addc(out, '}');
	}
	zb_buf_addc(out, ']');
}

static void json_patient(struct zb_buf *out, const struct zb_patient *p)
{
	zb_buf_addc(out, '{');
	zb_found_json(p->found, out);
	member(out, "status", p->status);
	member(out, "exec", p->exec);
	member(out, "log", p->log);
	json_names(out, "commands", p->commands, p->n_commands);
	json_names(out, "tools", p->tools, p->n_tools);
	json_list(out, "warnings", &p->warnings, &p->notes);
	json_list(out, "errors", &p->errors, NULL);
	json_requested(out, &p->wishes);
	zb_buf_adds(out, ",\"denials\":[");
	for (size_t i = 0; i < p->n_denials; i++) {
		zb_buf_adds(out, i ? "," : "");
		zb_denial_json(&p->denials[i], out);
	}
	zb_buf_addc(out, ']');
	json_rules(out, p);
	if (p->started)
		zb_buf_addf(out, ",\"start_ms\":%llu}",
			    (unsigned long long)p->start_ms);
	else
		zb_buf_adds(out, ",\"start_ms\":null}");
}

static void json_host(struct zb_buf *out, const struct zb_diagnosis *d)
{
	zb_buf_addf(out, "{\"ok\":%s,\"missing\":[",
		    d->host_error ? "false" : "true");
	for (size_t i = 0; i < d->host.n_missing; i++) {
		zb_buf_adds(out, i ? ",{\"what\":" : "{\"what\":");
		zb_json_quote_or_null(out, d->host.missing[i].what);
		member(out, "why", d->host.missing[i].why);
		member(out, "remedy", d->host.missing[i].remedy);
		zb_buf_addc(out, '}');
	}
	zb_buf_addc(out, ']');
	json_list(out, "blind_spots", &d->host.blind_spots, NULL);
	zb_buf_addc(out, '}');
}

static void print_json(struct zb_buf *out, const struct zb_diagnosis *d)
{
	zb_buf_adds(out, "{\"v\":1,\"host\":");
	json_host(out, d);
	zb_buf_adds(out, ",\"extensions\":[");
	for (size_t i = 0; i < d->n; i++) {
		zb_buf_adds(out, i ? "," : "");
		json_patient(out, &d->v[i]);
	}
	zb_buf_adds(out, "]}\n");
}

/* ---- the command ---- */

/* The rows that operand @name means: all of that name, so that one which is in
 * the way of another shows; else the one in the directory of that name. */
static int mark_chosen(const struct zb_found_list *all, const char *name,
		       bool *chosen, struct zb_error *err)
{
	const struct zb_found *f;
	bool any = false;

	for (size_t i = 0; i < all->n; i++)
		if (!strcmp(all->v[i].name, name))
			any = chosen[i] = true;
	if (any)
		return 0;
	if (zb_discover_installed(all, name, &f, err))
		return err->code;
	chosen[f - all->v] = true;
	return 0;
}

static int keep_marked(struct zb_found_list *all, const struct zb_args *a,
		       bool *chosen, struct zb_error *err)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n_args; i++)
		if (mark_chosen(all, a->arg[i], chosen, err))
			return err->code;
	for (size_t i = 0; i < all->n; i++)
		if (!chosen[i])
			zb_found_clear(&all->v[i]);
		else if (n++ != i)
			all->v[n - 1] = all->v[i];
	all->n = n;
	return 0;
}

/* Keep of @all what the operands name; an unknown name is an error. */
static int choose(struct zb_found_list *all, const struct zb_args *a,
		  struct zb_error *err)
{
	bool *chosen;
	int rc = 0;

	if (!a->n_args)
		return 0;
	chosen = calloc(all->n + 1, sizeof(*chosen));
	rc = chosen ? keep_marked(all, a, chosen, err)
		    : zb_fail(err, ZB_ELIMIT, "out of memory");
	free(chosen);
	return rc;
}

/* The NAME under which we installed what is in @f's directory, or NULL. */
static const char *installed_name(const struct zb_store *store,
				  const struct zb_found *f)
{
	const char *base = strrchr(f->dir, '/');
	zb_auto(free) char *shipped = NULL;

	if (f->scope != ZB_FOUND_GLOBAL || f->link || f->theme_only || !base ||
	    !zb_name_valid(base + 1))
		return NULL;
	shipped = zb_store_box(store, base + 1, "manifest.json");
	return shipped && !access(shipped, F_OK) ? base + 1 : NULL;
}

static int repair_one(const struct zb_store *store, const struct zb_found *f,
		      const char *name, struct zb_error *err)
{
	bool enabled = !f->has_manifest || f->manifest.enabled;
	int fd = -1;
	int rc = zb_store_lock(store, name, true, LOCK_WAIT_MS, &fd, err);

	if (!rc)
		rc = zb_rewrap(store, name, enabled, err);
	if (fd >= 0)
		close(fd);
	if (!rc)
		zb_cmd_say("repaired: %s starts confined, through this zotbox",
			   name);
	return rc;
}

/* Named ones are confined again whatever they are now; without names only one
 * that another zotbox would start is mended: the user may have unwrapped the
 * others on purpose. */
static bool needs_repair(const struct zb_found *f, bool named, const char *self)
{
	if (zb_found_is_wrapping(f))
		return !self || strcmp(f->manifest.exec, self) != 0;
	return named;
}

/* What was named is ours to mend: else say so, and not silently nothing. */
static int check_named(const struct zb_args *a, const struct zb_store *store,
		       const struct zb_found_list *list, struct zb_error *err)
{
	for (size_t i = 0; i < a->n_args; i++) {
		bool ours = false;

		for (size_t k = 0; k < list->n && !ours; k++) {
			const struct zb_found *f = &list->v[k];
			const char *name = installed_name(store, f);

			ours = name && (!strcmp(name, a->arg[i]) ||
					!strcmp(f->name, a->arg[i]));
		}
		if (!ours)
			return zb_fail(err, ZB_EPOLICY,
				       "%s was not installed by zotbox, or "
				       "starts nothing: there is nothing to "
				       "repair",
				       a->arg[i]);
	}
	return 0;
}

/* The list is read anew, since it has changed. */
static int repair(const struct zb_args *a, const struct zb_store *store,
		  struct zb_found_list *list, const char *cwd,
		  struct zb_error *err)
{
	zb_auto(free) char *self = zb_own_program();

	if (check_named(a, store, list, err))
		return err->code;
	for (size_t i = 0; i < list->n; i++) {
		const struct zb_found *f = &list->v[i];
		const char *name = installed_name(store, f);

		if (name && needs_repair(f, a->n_args, self) &&
		    repair_one(store, f, name, err))
			return err->code;
	}
	zb_found_list_done(list);
	return zb_discover(list, store, cwd, err) ? err->code
						  : choose(list, a, err);
}

static int verdict(const struct zb_diagnosis *d)
{
	if (d->host_error)
		return 4;
	for (size_t i = 0; i < d->n; i++)
		if (d->v[i].bad)
			return 5;
	return 0;
}

static int examine(const struct zb_args *a, const struct zb_store *store,
		   const struct zb_found_list *list, const char *project,
		   struct zb_error *err)
{
	struct zb_diagnosis d = {0};
	struct zb_buf out = {0};
	int rc = zb_doctor(&d, store, list, project, err);

	if (rc)
		return rc;
	if (a->opt[OPT_JSON])
		print_json(&out, &d);
	else
		print_text(&out, &d, store->home);
	rc = out.failed || zb_cmd_out(zb_buf_str(&out), out.len) ? 1
								 : verdict(&d);
	zb_buf_done(&out);
	zb_diagnosis_done(&d);
	return rc;
}

int zb_cmd_ext_doctor(const struct zb_args *a)
{
	zb_auto(free) char *cwd = NULL;
	zb_auto(free) char *project = NULL;
	struct zb_error err = {0};
	struct zb_store store = {0};
	struct zb_found_list list = {0};
	int rc = 0;

	cwd = getcwd(NULL, 0);
	project = cwd ? realpath(cwd, NULL) : NULL;
	if (!zb_store_open(&store, &err) && a->opt[OPT_REPAIR])
		zb_recover(&store);
	if (!err.code && !zb_discover(&list, &store, cwd, &err) &&
	    !choose(&list, a, &err) &&
	    !(a->opt[OPT_REPAIR] && repair(a, &store, &list, cwd, &err)))
		rc = examine(a, &store, &list, project, &err);
	zb_found_list_done(&list);
	zb_store_done(&store);
	return err.code ? zb_cmd_fail(&err) : rc;
}
