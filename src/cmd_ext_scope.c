/* cmd_ext_scope.c - zotbox ext scope: what the user granted, or with
 * --effective what comes of it: each rule with the file and line that it is
 * from and with what keeps it on this host, and each place that exists
 * inside. */
#include "cleanup.h"
#include "cmd.h"
#include "enforce.h"
#include "json_scan.h"
#include "path_match.h"
#include "question.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	OPT_EFFECTIVE,
	OPT_POLICY,
	OPT_SCOPE,
	OPT_JSON
};

#define SCOPE_MAX ((size_t)1 << 20)

struct view {
	struct zb_question q;
	struct zb_rule_status *rules;
	size_t n_rules;
	char *refused; /* why nothing could start under it, or NULL */
};

static void view_done(struct view *v)
{
	zb_rule_statuses_done(v->rules, v->n_rules);
	free(v->refused);
	zb_question_done(&v->q);
}

static void member(struct zb_buf *out, const char *key, const char *value)
{
	zb_buf_addf(out, ",\"%s\":", key);
	zb_json_quote_or_null(out, value);
}

/* ---- the file ------------------------------------------------------------ */

static int print_file(const struct view *v, bool json, struct zb_buf *out,
		      struct zb_error *err)
{
	zb_auto(free) char *path = NULL;
	struct zb_buf text = {0};
	int rc;

	if (!v->q.name)
		return zb_fail(
			err, ZB_EPOLICY,
			"%s is not installed and has no scope file of "
			"its own: it runs under strict, or what --policy "
			"and --scope say (see --effective)",
			v->q.path);
	path = zb_store_box(&v->q.store, v->q.name, "scope.json");
	if (!path)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	rc = zb_read_file(path, SCOPE_MAX, &text, err);
	if (rc == ZB_ESYS)
		rc = zb_fail(err, ZB_EPOLICY,
			     "%s has no scope (%s): it was not installed by "
			     "zotbox",
			     v->q.name, path);
	if (!rc && json) {
		struct zb_scope s;

		rc = zb_scope_parse(&s, "scope.json", zb_buf_str(&text),
				    text.len, NULL, err);
		zb_scope_done(&s);
		zb_buf_adds(out, "{\"v\":1,\"name\":");
		zb_json_quote_or_null(out, v->q.name);
		member(out, "file", path);
		zb_buf_adds(out, ",\"scope\":");
		zb_buf_add(out, zb_buf_str(&text), text.len);
		zb_buf_adds(out, "}\n");
	} else if (!rc && isatty(STDOUT_FILENO)) {
		zb_cmd_visible(out, zb_buf_str(&text), text.len);
	} else if (!rc) {
		zb_buf_add(out, zb_buf_str(&text), text.len);
	}
	zb_buf_done(&text);
	return rc;
}

/* ---- the plan ------------------------------------------------------------ */

/* A grant so wide that it was asked for twice. */
static const char *red_place(const struct zb_plan *p, const struct zb_origin *o)
{
	zb_auto(free) char *auth = zb_path_join(p->zot_home_real, "auth.json");

	for (size_t i = 0; o->file && i < p->n_places; i++) {
		const struct zb_place *place = &p->places[i];

		if (place->kind != ZB_PLACE_GRANT || !place->origin.file ||
		    !place->origin.key || !o->key ||
		    place->origin.line != o->line ||
		    strcmp(place->origin.file, o->file) != 0 ||
		    strcmp(place->origin.key, o->key) != 0)
			continue;
		if (zb_path_below(p->home_real, place->path))
			return "your whole HOME";
		if (zb_path_below(p->zot_home_real, place->path))
			return "zot's own directory";
		if (auth && zb_path_below(auth, place->path))
			return "zot's credentials";
	}
	return NULL;
}

static bool is_protocol(const struct zb_rule_status *r)
{
	return !strncmp(r->rule, "protocol.", 9);
}

static const char *red(const struct view *v, const struct zb_rule_status *r)
{
	return is_protocol(r) ? zb_scope_red(r->rule)
			      : red_place(&v->q.prep.plan, &r->origin);
}

static void print_rules(const struct view *v, bool colour, struct zb_buf *out)
{
	zb_buf_adds(out, "rules\n");
	for (size_t i = 0; i < v->n_rules; i++) {
		const struct zb_rule_status *r = &v->rules[i];
		const char *why = red(v, r);

		zb_buf_adds(out, why && colour ? "  \033[31m" : "  ");
		zb_cmd_visible(out, r->rule, strlen(r->rule));
		if (why)
			zb_buf_addf(out, "  (opens %s)", why);
		zb_buf_adds(out, why && colour ? "\033[0m\n" : "\n");
		zb_buf_adds(out, "      from ");
		zb_origin_line(&r->origin, out);
		if (r->how == ZB_NOT_ENFORCEABLE)
			zb_buf_adds(out, "; NOT ENFORCEABLE here: ");
		else
			zb_buf_adds(out, "; enforced by ");
		zb_cmd_visible(out, r->by, strlen(r->by));
		zb_buf_addc(out, '\n');
	}
}

static void print_word(struct zb_buf *out, const char *key, const char *value,
		       const struct zb_origin *o, const char *by)
{
	zb_buf_addf(out, "  %s %s\n      from ", key, value);
	zb_origin_line(o, out);
	zb_buf_addf(out, "; enforced by %s\n", by);
}

static void print_text(const struct view *v, struct zb_buf *out)
{
	const struct zb_plan *p = &v->q.prep.plan;
	bool colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");

	zb_plan_print_head(p, out);
	print_rules(v, colour, out);
	print_word(out, "protocol.on_failure",
		   p->scope.on_failure_block ? "block" : "allow",
		   &p->scope.on_failure_origin, "mediator");
	if (!p->state_beside) /* else it is a rule, above */
		print_word(out, "fs.state", "apart", &p->scope.state_origin,
			   "mount, Landlock");
	print_word(out, "ledger",
		   zb_ledger_mode_name(p->scope.ledger_set ? p->scope.ledger
							   : ZB_LEDGER_OPEN),
		   &p->scope.ledger_origin,
		   "broker, which records all in the first three runs");
	zb_plan_print_inside(&v->q.prep.plan, out);
	if (v->refused) {
		zb_buf_adds(out, "refused ");
		zb_cmd_visible(out, v->refused, strlen(v->refused));
		zb_buf_addc(out, '\n');
	}
}

static void json_rules(const struct view *v, struct zb_buf *out)
{
	zb_buf_adds(out, ",\"rules\":[");
	for (size_t i = 0; i < v->n_rules; i++) {
		const struct zb_rule_status *r = &v->rules[i];

		zb_buf_adds(out, i ? ",{\"rule\":" : "{\"rule\":");
		zb_json_quote_or_null(out, r->rule);
		member(out, "how", zb_enforced_name(r->how));
		member(out, "by", r->by);
		zb_buf_adds(out, ",\"origin\":");
		zb_origin_json(&r->origin, out);
		member(out, "opens", red(v, r));
		zb_buf_addc(out, '}');
	}
	zb_buf_addc(out, ']');
}

static void json_list(struct zb_buf *out, const char *key,
		      const struct zb_strv *l)
{
	zb_buf_addf(out, ",\"%s\":[", key);
	for (size_t i = 0; i < l->n; i++) {
		zb_buf_adds(out, i ? "," : "");
		zb_json_quote_or_null(out, l->v[i]);
	}
	zb_buf_addc(out, ']');
}

static void json_places(const struct zb_plan *p, struct zb_buf *out)
{
	zb_buf_adds(out, ",\"places\":[");
	for (size_t i = 0; i < p->n_places; i++) {
		const struct zb_place *place = &p->places[i];
		char rights[ZB_RIGHTS_TEXT];

		zb_buf_adds(out, i ? ",{\"path\":" : "{\"path\":");
		zb_json_quote_or_null(out, place->path);
		member(out, "kind", zb_place_kind_name(place->kind));
		member(out, "rights", zb_rights_text(place->rights, rights));
		if (place->source && strcmp(place->source, place->path) != 0)
			member(out, "source", place->source);
		if (place->link_to)
			member(out, "link_to", place->link_to);
		zb_buf_addf(out, ",\"carved\":%s,\"brokered\":%s",
			    place->carved ? "true" : "false",
			    place->brokered ? "true" : "false");
		if (place->only.n)
			json_list(out, "only", &place->only);
		if (place->only_changes.n)
			json_list(out, "only_changes", &place->only_changes);
		zb_buf_adds(out, ",\"origin\":");
		zb_origin_json(&place->origin, out);
		zb_buf_addc(out, '}');
	}
	zb_buf_addc(out, ']');
}

/* Names, and values only of what a scope sets: the others may be secrets. */
static void json_env(const struct zb_plan *p, struct zb_buf *out)
{
	zb_buf_adds(out, ",\"env\":[");
	for (size_t i = 0; i < p->n_env; i++) {
		zb_buf_adds(out, i ? ",{\"name\":" : "{\"name\":");
		zb_json_quote_or_null(out, p->env[i].name);
		if (zb_env_is_set(&p->env[i]))
			member(out, "value", p->env[i].value);
		zb_buf_adds(out, ",\"origin\":");
		zb_origin_json(&p->env[i].origin, out);
		zb_buf_addc(out, '}');
	}
	zb_buf_addc(out, ']');
}

static void print_json(const struct view *v, struct zb_buf *out)
{
	const struct zb_plan *p = &v->q.prep.plan;

	zb_buf_adds(out, "{\"v\":1,\"name\":");
	zb_json_quote_or_null(out, p->name);
	member(out, "policy", v->q.prep.policy);
	member(out, "project", p->project);
	member(out, "state", p->state_beside ? "beside" : "apart");
	member(out, "ledger", zb_ledger_mode_name(p->ledger));
	member(out, "on_failure",
	       p->scope.on_failure_block ? "block" : "allow");
	json_rules(v, out);
	json_places(p, out);
	json_env(p, out);
	json_list(out, "withheld", &p->env_withheld);
	json_list(out, "quiet", &p->quiet);
	json_list(out, "notices", &p->notices);
	member(out, "refused", v->refused);
	zb_buf_adds(out, "}\n");
}

/* A plan that cannot be enforced here is shown all the same. */
static int judge(struct view *v, struct zb_error *err)
{
	const struct zb_backend *b = zb_backend_native();
	struct zb_error why = {0};
	int rc = b->rules ? b->rules(&v->q.prep.plan, &v->rules, &v->n_rules,
				     &why)
			  : 0;

	if (rc == ZB_EUNSUPPORTED && (v->refused = zb_strdup(why.msg)))
		return 0;
	if (rc && err)
		*err = why;
	return rc;
}

int zb_cmd_ext_scope(const struct zb_args *a)
{
	struct view v = {0};
	struct zb_error err = {0};
	struct zb_buf out = {0};
	bool json = a->opt[OPT_JSON];
	int rc = 0;

	if ((a->opt[OPT_POLICY] || a->opt[OPT_SCOPE]) && !a->opt[OPT_EFFECTIVE])
		rc = zb_fail(&err, ZB_EUSAGE,
			     "--policy and --scope ask what would come of "
			     "them: give --effective as well");
	if (!rc)
		rc = zb_question_open(&v.q, a->arg[0], &err);
	if (!rc && !a->opt[OPT_EFFECTIVE]) {
		rc = print_file(&v, json, &out, &err);
	} else if (!rc) {
		rc = zb_question_prepare(&v.q, a->opt[OPT_POLICY],
					 a->opt[OPT_SCOPE], &err);
		if (!rc)
			rc = judge(&v, &err);
		if (!rc && json)
			print_json(&v, &out);
		else if (!rc)
			print_text(&v, &out);
	}
	if (!rc && (out.failed || zb_cmd_out(zb_buf_str(&out), out.len)))
		rc = 1;
	else if (!rc)
		rc = v.refused ? zb_exit_code(ZB_EUNSUPPORTED) : 0;
	zb_buf_done(&out);
	view_done(&v);
	return err.code ? zb_cmd_fail(&err) : rc;
}
