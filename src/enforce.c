/* enforce.c - the walk over a plan's rules, in the order of a scope file. */
#include "enforce.h"

#include "cleanup.h"
#include "text.h"

#include <string.h>

struct walk {
	const struct zb_plan *plan;
	zb_judge *judge;
	struct zb_rule_status *v;
	size_t n, cap;
	const struct zb_origin *bad_origin; /* of the first that cannot be */
	size_t bad, n_bad;
	bool failed;
};

const char *zb_enforced_name(enum zb_enforced how)
{
	static const char *const names[] = {
		[ZB_ENFORCED_FLOOR] = "floor",
		[ZB_ENFORCED_BROKER] = "broker",
		[ZB_ENFORCED_MEDIATOR] = "mediator",
		[ZB_ENFORCED_SUPERVISOR] = "supervisor",
		[ZB_NOT_ENFORCEABLE] = "not enforceable",
	};

	return (unsigned)how < ZB_ARRAY_LEN(names) ? names[how] : "unknown";
}

enum zb_enforced zb_enforce_limit(enum zb_limit limit, struct zb_buf *by)
{
	static const struct {
		enum zb_enforced how;
		const char *by;
	} rows[ZB_LIMIT_COUNT] = {
		[ZB_LIMIT_MEMORY] = {ZB_ENFORCED_SUPERVISOR, "measured"},
		[ZB_LIMIT_PROCESSES] = {ZB_ENFORCED_SUPERVISOR, "counted"},
		[ZB_LIMIT_OPEN_FILES] = {ZB_ENFORCED_FLOOR, "rlimit"},
		[ZB_LIMIT_FILE_SIZE] = {ZB_ENFORCED_FLOOR, "rlimit"},
		[ZB_LIMIT_CPU_SECONDS] = {ZB_ENFORCED_FLOOR, "rlimit"},
		[ZB_LIMIT_HELLO_SECONDS] = {ZB_ENFORCED_SUPERVISOR, "timer"},
		[ZB_LIMIT_TOOL_SECONDS] = {ZB_ENFORCED_SUPERVISOR, "timer"},
		[ZB_LIMIT_COMMAND_SECONDS] = {ZB_ENFORCED_SUPERVISOR, "timer"},
		[ZB_LIMIT_INTERCEPT_SECONDS] = {ZB_ENFORCED_SUPERVISOR,
						"timer"},
		[ZB_LIMIT_FRAME_BYTES] = {ZB_ENFORCED_MEDIATOR, "mediator"},
		[ZB_LIMIT_FRAMES_PER_SECOND] = {ZB_ENFORCED_MEDIATOR,
						"mediator"},
		[ZB_LIMIT_SUBMITS] = {ZB_ENFORCED_MEDIATOR, "mediator"},
		[ZB_LIMIT_LOG_BYTES] = {ZB_ENFORCED_SUPERVISOR, "log"},
	};

	zb_buf_adds(by, rows[limit].by);
	return rows[limit].how;
}

void zb_rule_statuses_done(struct zb_rule_status *v, size_t n)
{
	for (size_t i = 0; v && i < n; i++) {
		free(v[i].rule);
		free(v[i].by);
		zb_origin_done(&v[i].origin);
	}
	free(v);
}

/* Take @rule and @by (both heap) as the next line. */
static void append(struct walk *w, char *rule, enum zb_enforced how, char *by,
		   const struct zb_origin *origin)
{
	zb_auto(free) char *own_rule = rule, *own_by = by;
	struct zb_origin from = {0};

	if (!rule || !by) {
		w->failed = true;
		return;
	}
	if (w->n == w->cap) {
		size_t cap = w->cap ? w->cap * 2 : 64;
		struct zb_rule_status *v = realloc(w->v, cap * sizeof(*v));

		if (!v) {
			w->failed = true;
			return;
		}
		w->v = v;
		w->cap = cap;
	}
	if (origin && zb_origin_copy(&from, origin)) {
		w->failed = true;
		return;
	}
	if (how == ZB_NOT_ENFORCEABLE && !w->n_bad++) {
		w->bad = w->n;
		w->bad_origin = origin;
	}
	w->v[w->n++] = (struct zb_rule_status){.rule = zb_steal(&own_rule),
					       .how = how,
					       .by = zb_steal(&own_by),
					       .origin = from};
}

/* What the supervisor does itself is the same on every system. */
static enum zb_enforced ask(const struct walk *w,
			    const struct zb_rule_view *view, struct zb_buf *by)
{
	if (view->kind == ZB_RULE_ENV) {
		zb_buf_adds(by, "planned environment");
		return ZB_ENFORCED_SUPERVISOR;
	}
	if (view->kind == ZB_RULE_PROTOCOL) {
		zb_buf_adds(by, "mediator");
		return ZB_ENFORCED_MEDIATOR;
	}
	return w->judge(w->plan, view, by);
}

/* "KEY VALUE", safe to show. */
static char *name_rule(const char *key, const char *value)
{
	struct zb_buf b = {0};

	zb_buf_adds(&b, key);
	if (value) {
		zb_buf_addc(&b, ' ');
		zb_text_escape(&b, value, strlen(value), 0);
	}
	return zb_buf_steal(&b);
}

static void judge_one(struct walk *w, const char *key,
		      const struct zb_rule_view *view)
{
	struct zb_buf by = {0};
	enum zb_enforced how = ask(w, view, &by);

	append(w, name_rule(key, view->value), how, zb_buf_steal(&by),
	       view->origin);
}

static bool same_line(const struct zb_origin *a, const struct zb_origin *b)
{
	return a->file && b->file && a->key && b->key && a->line == b->line &&
	       !strcmp(a->file, b->file) && !strcmp(a->key, b->key);
}

static bool made_by(const struct zb_place *p, const struct zb_origin *o)
{
	return same_line(&p->origin, o) || same_line(&p->changed_by, o);
}

/* A grant: ask for each place it made, and keep the weakest answer. */
static void judge_grant(struct walk *w, const char *key,
			struct zb_rule_view *view)
{
	struct zb_buf worst_by = {0};
	enum zb_enforced worst = ZB_ENFORCED_FLOOR;
	bool any = false;

	for (size_t i = 0; i < w->plan->n_places; i++) {
		struct zb_buf by = {0};
		enum zb_enforced how;

		if (!made_by(&w->plan->places[i], view->origin))
			continue;
		view->place = &w->plan->places[i];
		how = ask(w, view, &by);
		if (any && how <= worst) {
			zb_buf_done(&by);
			continue;
		}
		any = true;
		zb_buf_done(&worst_by);
		worst_by = by;
		worst = how;
	}
	view->place = NULL;
	if (!any)
		worst = ask(w, view, &worst_by);
	append(w, name_rule(key, view->value), worst, zb_buf_steal(&worst_by),
	       view->origin);
}

static void walk_list(struct walk *w, enum zb_rule_kind kind, const char *key,
		      const struct zb_rules *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct zb_rule_view view = {.kind = kind,
					    .value = l->v[i].value,
					    .origin = &l->v[i].origin};

		if (kind <= ZB_RULE_EXEC)
			judge_grant(w, key, &view);
		else
			judge_one(w, key, &view);
	}
}

static void walk_denies(struct walk *w)
{
	for (size_t i = 0; i < w->plan->n_denies; i++) {
		const struct zb_deny *d = &w->plan->denies[i];
		struct zb_rule_view view = {.kind = ZB_RULE_DENY,
					    .value = d->pattern,
					    .origin = &d->origin,
					    .deny = d};

		judge_one(w, d->built_in ? "built-in deny" : "fs.deny", &view);
	}
}

static void walk_env(struct walk *w)
{
	const struct zb_scope *s = &w->plan->scope;

	walk_list(w, ZB_RULE_ENV, "env.pass", &s->env_pass);
	for (size_t i = 0; i < s->n_env_set; i++) {
		struct zb_rule_view view = {.kind = ZB_RULE_ENV,
					    .value = s->env_set[i].name,
					    .origin = &s->env_set[i].origin};

		judge_one(w, "env.set", &view);
	}
}

/* "true", "false", "any"; [] for a list, whose names are rules each. */
static char *switch_text(const struct zb_switch *s)
{
	struct zb_buf b = {0};

	if (!s->is_list)
		zb_buf_adds(&b, s->any ? "any" : s->on ? "true" : "false");
	else
		zb_buf_adds(&b, "[]");
	return zb_buf_steal(&b);
}

static void walk_protocol(struct walk *w)
{
	const struct zb_scope *s = &w->plan->scope;

	for (int v = 0; v < ZB_VERB_COUNT; v++) {
		zb_auto(free) char *key =
			zb_strf("protocol.%s", zb_verb_name(v));
		zb_auto(free) char *value = switch_text(&s->verbs[v]);
		struct zb_rule_view view = {.kind = ZB_RULE_PROTOCOL,
					    .value = value,
					    .origin = &s->verbs[v].origin};

		if (!key || !value)
			w->failed = true;
		else if (s->verbs[v].is_list && s->verbs[v].names.n)
			walk_list(w, ZB_RULE_PROTOCOL, key, &s->verbs[v].names);
		else if (s->verbs[v].set)
			judge_one(w, key, &view);
	}
	for (size_t i = 0; i < s->n_intercepts; i++) {
		zb_auto(free) char *key = zb_strf("protocol.intercept.%s",
						  s->intercepts[i].event);

		if (key)
			walk_list(w, ZB_RULE_PROTOCOL, key,
				  &s->intercepts[i].may);
		else
			w->failed = true;
	}
}

static void walk_limits(struct walk *w)
{
	for (int l = 0; l < ZB_LIMIT_COUNT; l++) {
		const struct zb_limit_value *v = &w->plan->scope.limits[l];
		zb_auto(free) char *key =
			zb_strf("limits.%s", zb_limit_name(l));
		zb_auto(free) char *value =
			zb_strf("%llu", (unsigned long long)v->value);
		struct zb_rule_view view = {.kind = ZB_RULE_LIMIT,
					    .value = value,
					    .origin = &v->origin,
					    .limit = l};

		if (!key || !value)
			w->failed = true;
		else if (v->set && !v->none)
			judge_one(w, key, &view);
	}
}

static int complain(const struct walk *w, const char *system,
		    struct zb_error *err)
{
	const struct zb_origin *o = w->bad_origin;
	zb_auto(free) char *more = zb_strf(" (and %zu more)", w->n_bad - 1);
	struct zb_buf from = {0};

	if (o && o->file)
		zb_text_escape(&from, o->file, strlen(o->file), 256);
	zb_fail(err, ZB_EUNSUPPORTED, "%s%s%s cannot be enforced %s: %s%s",
		zb_buf_str(&from), from.len ? ": " : "", w->v[w->bad].rule,
		system, w->v[w->bad].by, w->n_bad > 1 && more ? more : "");
	zb_buf_done(&from);
	return ZB_EUNSUPPORTED;
}

int zb_enforce_walk(const struct zb_plan *plan, const char *system,
		    zb_judge *judge, struct zb_rule_status **out, size_t *n,
		    struct zb_error *err)
{
	const struct zb_scope *s = &plan->scope;
	struct walk w = {.plan = plan, .judge = judge};
	const struct zb_rule_view rest = {.kind = ZB_RULE_REST};

	walk_list(&w, ZB_RULE_READ, "fs.read", &s->fs_read);
	walk_list(&w, ZB_RULE_WRITE, "fs.write", &s->fs_write);
	walk_list(&w, ZB_RULE_EXEC, "fs.exec", &s->fs_exec);
	walk_denies(&w);
	if (plan->state_beside) {
		struct zb_rule_view view = {.kind = ZB_RULE_STATE,
					    .value = "beside",
					    .origin = &s->state_origin};

		judge_one(&w, "fs.state", &view);
	}
	walk_list(&w, ZB_RULE_CONNECT, "net.connect", &s->net_connect);
	walk_list(&w, ZB_RULE_LISTEN, "net.listen", &s->net_listen);
	walk_list(&w, ZB_RULE_UNIX, "net.unix", &s->net_unix);
	walk_env(&w);
	walk_protocol(&w);
	walk_limits(&w);
	judge_one(&w, "anything else", &rest);
	if (w.failed) {
		zb_rule_statuses_done(w.v, w.n);
		return zb_fail(err, ZB_ELIMIT,
			       "rules of the plan: out of memory");
	}
	*out = w.v;
	*n = w.n;
	return w.n_bad ? complain(&w, system, err) : 0;
}
