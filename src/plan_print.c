/* plan_print.c - a plan for people: every line with the file and key that it
 * came from. Names of files are data: escaped. */
#include "plan.h"
#include "text.h"

#include <string.h>

static void add(struct zb_buf *b, const char *s)
{
	zb_text_escape(b, s ? s : "", s ? strlen(s) : 0, 0);
}

static void add_origin(struct zb_buf *b, const struct zb_origin *o)
{
	zb_buf_adds(b, "  [");
	zb_origin_text(o, b);
	zb_buf_adds(b, "]\n");
}

static void line(struct zb_buf *b, const char *name, const char *value)
{
	if (!value)
		return;
	zb_buf_addf(b, "%s ", name);
	add(b, value);
	zb_buf_addc(b, '\n');
}

static const char *const kinds[] = {
	[ZB_PLACE_SYSTEM] = "system",  [ZB_PLACE_RUNTIME] = "runtime",
	[ZB_PLACE_EXTENSION] = "code", [ZB_PLACE_DATA] = "data",
	[ZB_PLACE_HOME] = "home",      [ZB_PLACE_TMP] = "tmp",
	[ZB_PLACE_GRANT] = "grant",    [ZB_PLACE_LINK] = "link",
	[ZB_PLACE_TEXT] = "text",      [ZB_PLACE_PIN] = "pin",
	[ZB_PLACE_DIR] = "dir",	       [ZB_PLACE_PROC] = "proc",
	[ZB_PLACE_DEV] = "dev",
};

const char *zb_place_kind_name(enum zb_place_kind kind)
{
	return (unsigned)kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[kind]
								 : "unknown";
}

const char *zb_rights_text(unsigned rights, char out[ZB_RIGHTS_TEXT])
{
	static const struct {
		unsigned right;
		char letter;
	} letters[] = {
		{ZB_MAY_READ, 'r'}, {ZB_MAY_WRITE, 'w'}, {ZB_MAY_CREATE, 'c'},
		{ZB_MAY_EXEC, 'x'}, {ZB_MAY_LIST, 'l'},
	};

	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		out[i] = (char)(rights & letters[i].right ? letters[i].letter
							  : '-');
	out[sizeof(letters) / sizeof(letters[0])] = '\0';
	return out;
}

bool zb_env_is_set(const struct zb_env_var *v)
{
	return v->origin.key && !strncmp(v->origin.key, "env.set", 7);
}

static void add_only(struct zb_buf *b, const char *words,
		     const struct zb_strv *only)
{
	for (size_t i = 0; i < only->n; i++) {
		zb_buf_adds(b, i ? ", " : words);
		add(b, only->v[i]);
	}
}

static void add_place(struct zb_buf *b, const struct zb_place *p)
{
	char rights[ZB_RIGHTS_TEXT];

	zb_buf_addf(b, "  %-7s %s ", kinds[p->kind],
		    zb_rights_text(p->rights, rights));
	add(b, p->path);
	if (p->link_to) {
		zb_buf_adds(b, " -> ");
		add(b, p->link_to);
	} else if (p->source && strcmp(p->source, p->path) != 0) {
		zb_buf_adds(b, " = ");
		add(b, p->source);
	}
	add_only(b, " only ", &p->only);
	add_only(b, "; to change only ", &p->only_changes);
	if (p->carved && p->rights & (ZB_MAY_WRITE | ZB_MAY_CREATE))
		zb_buf_adds(b, " (carved: the broker serves)");
	else if (p->carved)
		zb_buf_adds(b, " (carved: the broker opens)");
	else if (p->brokered_writes && p->rights & ZB_MAY_CREATE)
		zb_buf_adds(b, " (the broker reads and writes)");
	else if (p->brokered)
		zb_buf_adds(b, " (the broker reads)");
	add_origin(b, &p->origin);
}

static void add_words(struct zb_buf *b, const struct zb_rules *l)
{
	for (size_t i = 0; i < l->n; i++) {
		zb_buf_adds(b, i ? " " : "");
		add(b, l->v[i].value);
	}
}

static void add_switch(struct zb_buf *b, enum zb_verb v,
		       const struct zb_switch *s)
{
	if (!s->set)
		return;
	zb_buf_addf(b, "  %s ", zb_verb_name(v));
	if (s->is_list && s->names.n)
		add_words(b, &s->names);
	else if (s->any)
		zb_buf_adds(b, "any");
	else
		zb_buf_adds(b, s->is_list ? "none" : s->on ? "yes" : "no");
	add_origin(b, &s->origin);
}

static void add_protocol(struct zb_buf *b, const struct zb_scope *s)
{
	zb_buf_adds(b, "protocol\n");
	for (unsigned v = 0; v < ZB_VERB_COUNT; v++)
		add_switch(b, (enum zb_verb)v, &s->verbs[v]);
	for (size_t i = 0; i < s->n_intercepts; i++) {
		const struct zb_intercept *in = &s->intercepts[i];

		if (!in->may.n)
			continue;
		zb_buf_addf(b, "  intercept %s: ", in->event);
		add_words(b, &in->may);
		add_origin(b, &in->may.v[0].origin);
	}
	zb_buf_addf(b, "  on_failure %s\n",
		    s->on_failure_block ? "block" : "allow");
}

static void add_limits(struct zb_buf *b, const struct zb_scope *s)
{
	zb_buf_adds(b, "limits\n");
	for (unsigned l = 0; l < ZB_LIMIT_COUNT; l++) {
		const struct zb_limit_value *v = &s->limits[l];

		if (!v->set)
			continue;
		zb_buf_addf(b, "  %s ", zb_limit_name((enum zb_limit)l));
		if (v->none)
			zb_buf_adds(b, "none");
		else
			zb_buf_addf(b, "%llu", (unsigned long long)v->value);
		add_origin(b, &v->origin);
	}
}

static void add_list(struct zb_buf *b, const char *name,
		     const struct zb_strv *l)
{
	for (size_t i = 0; i < l->n; i++) {
		zb_buf_addf(b, "%s ", name);
		add(b, l->v[i]);
		zb_buf_addc(b, '\n');
	}
}

int zb_plan_print_head(const struct zb_plan *p, struct zb_buf *b)
{
	line(b, "extension", p->name);
	line(b, "policy", p->base);
	line(b, "project", p->project);
	line(b, "home", p->home);
	line(b, "extension_dir", p->extension_dir);
	line(b, "data_dir", p->data_dir);
	line(b, "cwd", p->cwd);
	line(b, "exec", p->exec_path);
	for (size_t i = 0; i < p->argv.n; i++)
		line(b, "arg", p->argv.v[i]);
	zb_buf_addf(b, "state %s\n", p->state_beside ? "beside" : "apart");
	zb_buf_addf(b, "ledger %s\n", zb_ledger_mode_name(p->ledger));
	return b->failed ? ZB_ELIMIT : 0;
}

static void add_env(struct zb_buf *b, const struct zb_plan *p, bool all)
{
	zb_buf_adds(b, "environment\n");
	for (size_t i = 0; i < p->n_env; i++) {
		zb_buf_adds(b, "  ");
		add(b, p->env[i].name);
		if (all || zb_env_is_set(&p->env[i])) {
			zb_buf_addc(b, '=');
			add(b, p->env[i].value);
		}
		add_origin(b, &p->env[i].origin);
	}
	add_list(b, "withheld", &p->env_withheld);
}

static void add_places(struct zb_buf *b, const struct zb_plan *p)
{
	zb_buf_adds(b, "places\n");
	for (size_t i = 0; i < p->n_places; i++)
		add_place(b, &p->places[i]);
}

static void add_rest(struct zb_buf *b, const struct zb_plan *p)
{
	add_list(b, "quiet", &p->quiet);
	add_list(b, "copied", &p->data_copies);
	add_list(b, "made", &p->made);
	add_list(b, "notice", &p->notices);
}

int zb_plan_print_inside(const struct zb_plan *p, struct zb_buf *out)
{
	add_places(out, p);
	add_env(out, p, false);
	add_rest(out, p);
	return out->failed ? ZB_ELIMIT : 0;
}

int zb_plan_print(const struct zb_plan *p, struct zb_buf *out)
{
	zb_plan_print_head(p, out);
	add_places(out, p);
	if (p->n_denies)
		zb_buf_adds(out, "denies\n");
	for (size_t i = 0; i < p->n_denies; i++) {
		zb_buf_adds(out, "  ");
		add(out, p->denies[i].pattern);
		add_origin(out, &p->denies[i].origin);
	}
	add_env(out, p, true);
	add_protocol(out, &p->scope);
	add_limits(out, &p->scope);
	add_rest(out, p);
	return out->failed ? ZB_ELIMIT : 0;
}
