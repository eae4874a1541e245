/* scope.c - a scope in memory: its parts, laying one over another, and what
 * no host can change about it. Reading text is scope_parse.c, changing text
 * scope_edit.c.
 *
 * Laying over is the whole of inheritance. A chain (preset, what it extends,
 * scope.json) is folded from the farthest file to the nearest:
 *
 *	scalar		the nearer one wins
 *	list		adds up; "!reset" first drops what was inherited
 *	map		merges by key, each value as its kind says
 *	true/false	against a list: the nearer replaces the farther
 *
 * Nothing is taken away by a nearer file but through "!reset" or false, and
 * denies have no "!reset" against what is built in (resolve.c). */
#include "scope.h"

#include "cleanup.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

static const char *const verb_names[] = {
	[ZB_VERB_COMMANDS] = "commands",
	[ZB_VERB_TOOLS] = "tools",
	[ZB_VERB_DEFERRED] = "deferred",
	[ZB_VERB_PANELS] = "panels",
	[ZB_VERB_NOTIFY] = "notify",
	[ZB_VERB_PROMPT] = "prompt",
	[ZB_VERB_INSERT] = "insert",
	[ZB_VERB_SUBMIT] = "submit",
	[ZB_VERB_SLASH] = "slash",
	[ZB_VERB_CALL_TOOL] = "call_tool",
	[ZB_VERB_EVENTS] = "events",
	[ZB_VERB_EVENT_CONTENT] = "event_content",
	[ZB_VERB_INTERCEPT] = "intercept",
};
_Static_assert(sizeof(verb_names) / sizeof(verb_names[0]) == ZB_VERB_COUNT,
	       "a name for every verb");

static const char *const limit_names[] = {
	[ZB_LIMIT_MEMORY] = "memory",
	[ZB_LIMIT_PROCESSES] = "processes",
	[ZB_LIMIT_OPEN_FILES] = "open_files",
	[ZB_LIMIT_FILE_SIZE] = "file_size",
	[ZB_LIMIT_CPU_SECONDS] = "cpu_seconds",
	[ZB_LIMIT_HELLO_SECONDS] = "hello_seconds",
	[ZB_LIMIT_TOOL_SECONDS] = "tool_seconds",
	[ZB_LIMIT_COMMAND_SECONDS] = "command_seconds",
	[ZB_LIMIT_INTERCEPT_SECONDS] = "intercept_seconds",
	[ZB_LIMIT_FRAME_BYTES] = "frame_bytes",
	[ZB_LIMIT_FRAMES_PER_SECOND] = "frames_per_second",
	[ZB_LIMIT_SUBMITS] = "submits",
	[ZB_LIMIT_LOG_BYTES] = "log_bytes",
};
_Static_assert(sizeof(limit_names) / sizeof(limit_names[0]) == ZB_LIMIT_COUNT,
	       "a name for every limit");

const char *zb_verb_name(enum zb_verb v)
{
	return (unsigned)v < ZB_VERB_COUNT ? verb_names[v] : "unknown";
}

const char *zb_limit_name(enum zb_limit l)
{
	return (unsigned)l < ZB_LIMIT_COUNT ? limit_names[l] : "unknown";
}

/* Origins and lists */

void zb_origin_done(struct zb_origin *o)
{
	free(o->file);
	free(o->key);
	*o = (struct zb_origin){0};
}

int zb_origin_copy(struct zb_origin *out, const struct zb_origin *in)
{
	struct zb_origin o = {.file = zb_strdup(in->file),
			      .key = zb_strdup(in->key),
			      .line = in->line};

	if ((in->file && !o.file) || (in->key && !o.key)) {
		zb_origin_done(&o);
		return ZB_ELIMIT;
	}
	zb_origin_done(out);
	*out = o;
	return 0;
}

int zb_origin_text(const struct zb_origin *o, struct zb_buf *out)
{
	if (o->file)
		zb_text_escape(out, o->file, strlen(o->file), 0);
	else
		zb_buf_adds(out, "built in");
	if (o->key) {
		zb_buf_adds(out, ": ");
		zb_text_escape(out, o->key, strlen(o->key), 0);
	}
	return out->failed ? ZB_ELIMIT : 0;
}

static void drop_rules(struct zb_rules *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].value);
		zb_origin_done(&l->v[i].origin);
	}
	free(l->v);
	*l = (struct zb_rules){0};
}

int zb_rules_add(struct zb_rules *l, const char *value,
		 const struct zb_origin *origin)
{
	struct zb_rule rule = {.value = zb_strdup(value)};

	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 8;
		struct zb_rule *v = realloc(l->v, cap * sizeof(*v));

		if (!v)
			goto out;
		l->v = v;
		l->cap = cap;
	}
	if (!rule.value || zb_origin_copy(&rule.origin, origin))
		goto out;
	l->v[l->n++] = rule;
	return 0;
out:
	free(rule.value);
	return ZB_ELIMIT;
}

bool zb_rules_has(const struct zb_rules *l, const char *value)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->v[i].value, value))
			return true;
	return false;
}

void zb_scope_done(struct zb_scope *s)
{
	struct zb_rules *lists[] = {
		&s->fs_read,	 &s->fs_write,	 &s->fs_exec,  &s->fs_deny,
		&s->net_connect, &s->net_listen, &s->net_unix, &s->env_pass};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		drop_rules(lists[i]);
	for (size_t i = 0; i < s->n_env_set; i++) {
		free(s->env_set[i].name);
		free(s->env_set[i].value);
		zb_origin_done(&s->env_set[i].origin);
	}
	free(s->env_set);
	for (size_t i = 0; i < ZB_VERB_COUNT; i++) {
		drop_rules(&s->verbs[i].names);
		zb_origin_done(&s->verbs[i].origin);
	}
	for (size_t i = 0; i < s->n_intercepts; i++) {
		free(s->intercepts[i].event);
		drop_rules(&s->intercepts[i].may);
	}
	free(s->intercepts);
	for (size_t i = 0; i < ZB_LIMIT_COUNT; i++)
		zb_origin_done(&s->limits[i].origin);
	zb_origin_done(&s->state_origin);
	zb_origin_done(&s->on_failure_origin);
	zb_origin_done(&s->ledger_origin);
	free(s->file);
	free(s->extends);
	free(s->why);
	*s = (struct zb_scope){0};
}

/* Laying one over another */

static int merge_rules(struct zb_rules *base, const struct zb_rules *over)
{
	if (!over->set)
		return 0;
	if (over->reset) {
		drop_rules(base);
		base->reset = true;
	}
	base->set = true;
	for (size_t i = 0; i < over->n; i++) {
		if (zb_rules_has(base, over->v[i].value))
			continue;
		if (zb_rules_add(base, over->v[i].value, &over->v[i].origin))
			return ZB_ELIMIT;
	}
	return 0;
}

static int merge_switch(struct zb_switch *base, const struct zb_switch *over)
{
	bool replaces = over->is_list && base->set && !base->is_list;

	if (!over->set)
		return 0;
	if (!over->is_list || !base->is_list)
		drop_rules(&base->names);
	base->set = true;
	base->on = over->on;
	base->any = over->any;
	base->is_list = over->is_list;
	/* It did not add to true or false, so it adds to nothing farther. */
	base->names.reset = base->names.reset || replaces;
	if (zb_origin_copy(&base->origin, &over->origin))
		return ZB_ELIMIT;
	return over->is_list ? merge_rules(&base->names, &over->names) : 0;
}

static int merge_intercept(struct zb_scope *base, const struct zb_intercept *in)
{
	struct zb_intercept *v;

	for (size_t i = 0; i < base->n_intercepts; i++)
		if (!strcmp(base->intercepts[i].event, in->event))
			return merge_rules(&base->intercepts[i].may, &in->may);
	v = realloc(base->intercepts, (base->n_intercepts + 1) * sizeof(*v));
	if (!v)
		return ZB_ELIMIT;
	base->intercepts = v;
	v += base->n_intercepts;
	*v = (struct zb_intercept){.event = zb_strdup(in->event)};
	if (!v->event)
		return ZB_ELIMIT;
	base->n_intercepts++;
	return merge_rules(&v->may, &in->may);
}

static int merge_env_set(struct zb_scope *base, const struct zb_env_set *in)
{
	struct zb_env_set *v;
	size_t i = 0;

	while (i < base->n_env_set &&
	       strcmp(base->env_set[i].name, in->name) != 0)
		i++;
	if (i == base->n_env_set) {
		v = realloc(base->env_set, (i + 1) * sizeof(*v));
		if (!v)
			return ZB_ELIMIT;
		base->env_set = v;
		v[i] = (struct zb_env_set){.name = zb_strdup(in->name)};
		if (!v[i].name)
			return ZB_ELIMIT;
		base->n_env_set++;
	}
	v = &base->env_set[i];
	free(v->value);
	v->value = zb_strdup(in->value);
	if (!v->value)
		return ZB_ELIMIT;
	return zb_origin_copy(&v->origin, &in->origin);
}

static int merge_limit(struct zb_limit_value *base,
		       const struct zb_limit_value *over)
{
	if (!over->set)
		return 0;
	base->set = true;
	base->none = over->none;
	base->value = over->value;
	return zb_origin_copy(&base->origin, &over->origin);
}

static int replace_string(char **base, const char *over)
{
	char *copy;

	if (!over)
		return 0;
	copy = zb_strdup(over);
	if (!copy)
		return ZB_ELIMIT;
	free(*base);
	*base = copy;
	return 0;
}

/* A preset that is laid over another one stands for both. */
static bool stands_for_both(const struct zb_scope *over)
{
	static const char *const presets[] = {"strict.json", "standard.json",
					      "observe.json"};

	for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++)
		if (!strcmp(over->file, presets[i]))
			return true;
	return false;
}

/* A chain is known by the names of its files, farthest first. */
static int merge_file(struct zb_scope *base, const struct zb_scope *over)
{
	char *both;

	if (!base->file || !over->file || stands_for_both(over))
		return replace_string(&base->file, over->file);
	both = zb_strf("%s, %s", base->file, over->file);
	if (!both)
		return ZB_ELIMIT;
	free(base->file);
	base->file = both;
	return 0;
}

static int merge_scalars(struct zb_scope *base, const struct zb_scope *over)
{
	if (over->state_set) {
		base->state_set = true;
		base->state_beside = over->state_beside;
		if (zb_origin_copy(&base->state_origin, &over->state_origin))
			return ZB_ELIMIT;
	}
	if (over->on_failure_set) {
		base->on_failure_set = true;
		base->on_failure_block = over->on_failure_block;
		if (zb_origin_copy(&base->on_failure_origin,
				   &over->on_failure_origin))
			return ZB_ELIMIT;
	}
	if (over->ledger_set) {
		base->ledger_set = true;
		base->ledger = over->ledger;
		if (zb_origin_copy(&base->ledger_origin, &over->ledger_origin))
			return ZB_ELIMIT;
	}
	if (replace_string(&base->extends, over->extends) ||
	    replace_string(&base->why, over->why))
		return ZB_ELIMIT;
	return merge_file(base, over);
}

static int merge_maps(struct zb_scope *base, const struct zb_scope *over)
{
	for (size_t i = 0; i < over->n_env_set; i++)
		if (merge_env_set(base, &over->env_set[i]))
			return ZB_ELIMIT;
	for (size_t i = 0; i < ZB_VERB_COUNT; i++)
		if (merge_switch(&base->verbs[i], &over->verbs[i]))
			return ZB_ELIMIT;
	base->intercept_set = base->intercept_set || over->intercept_set;
	for (size_t i = 0; i < over->n_intercepts; i++)
		if (merge_intercept(base, &over->intercepts[i]))
			return ZB_ELIMIT;
	for (size_t i = 0; i < ZB_LIMIT_COUNT; i++)
		if (merge_limit(&base->limits[i], &over->limits[i]))
			return ZB_ELIMIT;
	return 0;
}

int zb_scope_merge(struct zb_scope *base, const struct zb_scope *over,
		   struct zb_error *err)
{
	const struct {
		struct zb_rules *base;
		const struct zb_rules *over;
	} lists[] = {
		{&base->fs_read, &over->fs_read},
		{&base->fs_write, &over->fs_write},
		{&base->fs_exec, &over->fs_exec},
		{&base->fs_deny, &over->fs_deny},
		{&base->net_connect, &over->net_connect},
		{&base->net_listen, &over->net_listen},
		{&base->net_unix, &over->net_unix},
		{&base->env_pass, &over->env_pass},
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (merge_rules(lists[i].base, lists[i].over))
			goto no_memory;
	if (merge_maps(base, over) || merge_scalars(base, over))
		goto no_memory;
	return 0;
no_memory:
	return zb_fail(err, ZB_ELIMIT, "out of memory laying %s over %s",
		       over->file ? over->file : "a scope",
		       base->file ? base->file : "another");
}

/* Values */

bool zb_parse_size(const char *s, uint64_t *out)
{
	static const char units[] = "KMGT";
	uint64_t n = 0;
	const char *unit;

	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(n, 10u, &n) ||
		    __builtin_add_overflow(n, (unsigned)(*s - '0'), &n))
			return false;
	if (*s) {
		char u = *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s;

		unit = strchr(units, u);
		if (!unit || s[1])
			return false;
		for (const char *p = units; p <= unit; p++)
			if (__builtin_mul_overflow(n, 1024u, &n))
				return false;
	}
	if (n > INT64_MAX)
		return false;
	*out = n;
	return true;
}

static const char *bare_slash(const char *s)
{
	return *s == '/' ? s + 1 : s;
}

bool zb_slash_same(const char *a, const char *b)
{
	a = bare_slash(a);
	b = bare_slash(b);
	return zb_fold_equal(a, strlen(a), b, strlen(b));
}

bool zb_slash_forbidden(const char *name)
{
	static const char *const forbidden[] = {"jail", "unjail", "cd",
						"exit", "logout", "settings"};

	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
		if (zb_slash_same(name, forbidden[i]))
			return true;
	return false;
}

/* Grants that are as good as the user's own shell, or worse hidden. */
static bool is_shell_tool(const char *name)
{
	static const char *const tools[] = {"bash", "write", "edit"};

	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
		if (zb_fold_equal(name, strlen(name), tools[i],
				  strlen(tools[i])))
			return true;
	return false;
}

static bool is_red_intercept(const char *event, const char *part)
{
	if (!strncmp(part, "modify:", 7))
		return is_shell_tool(part + 7);
	return !strcmp(part, "replace") && !strcmp(event, "before_agent_start");
}

static const char prompt[] = "the system prompt";
static const char not_said[] = "what you read: the model did not say it";

const char *zb_scope_red(const char *rule)
{
	static const char call[] = "protocol.call_tool ";
	static const char intercept[] = "protocol.intercept.";
	const char *part = strchr(rule, ' ');
	zb_auto(free) char *event = NULL;

	if (!part)
		return NULL;
	if (!strncmp(rule, call, sizeof(call) - 1))
		return is_shell_tool(part + 1) ? "a shell on this host" : NULL;
	if (strncmp(rule, intercept, sizeof(intercept) - 1) != 0)
		return NULL;
	event = zb_strndup(rule + sizeof(intercept) - 1,
			   (size_t)(part - rule) - sizeof(intercept) + 1);
	if (!event || !is_red_intercept(event, part + 1))
		return event && !strcmp(event, "assistant_message") &&
				       !strcmp(part + 1, "replace")
			       ? not_said
			       : NULL;
	return part[1] == 'm' ? "a shell on this host" : prompt;
}

const char *zb_scope_flag_why(const char *key, const char *value)
{
	zb_auto(free) char *rule =
		key && value ? zb_strf("%s %s", key, value) : NULL;
	const char *red = rule ? zb_scope_red(rule) : NULL;

	if (!red || red == not_said)
		return NULL;
	return red == prompt ? "the model is told what it says; it takes "
			       "--yes-i-mean-it"
			     : "it is as good as a shell on this host; it "
			       "takes --yes-i-mean-it";
}

const char *zb_no_command_label(const char *why)
{
	return strstr(why, "--yes-i-mean-it") ? "granted only if you mean it"
					      : "cannot be granted";
}

static int refuse(const struct zb_rule *rule, const char *why,
		  struct zb_error *err)
{
	struct zb_buf b = {0};

	zb_origin_text(&rule->origin, &b);
	zb_buf_adds(&b, " \"");
	zb_text_escape(&b, rule->value, strlen(rule->value), 200);
	zb_buf_addf(&b, "\": %s", why);
	zb_fail(err, ZB_EPOLICY, "%s", zb_buf_str(&b));
	zb_buf_done(&b);
	return ZB_EPOLICY;
}

int zb_scope_judge(const struct zb_scope *s, bool mean_it, struct zb_error *err)
{
	const struct zb_rules *slash = &s->verbs[ZB_VERB_SLASH].names;
	const struct zb_rules *call = &s->verbs[ZB_VERB_CALL_TOOL].names;

	for (size_t i = 0; i < slash->n; i++)
		if (zb_slash_forbidden(slash->v[i].value))
			return refuse(&slash->v[i],
				      "this command cannot be granted to an "
				      "extension; remove it",
				      err);
	if (mean_it)
		return 0;
	for (size_t i = 0; i < call->n; i++)
		if (is_shell_tool(call->v[i].value))
			return refuse(&call->v[i],
				      "as good as a shell on this host; "
				      "remove it, or grant it with "
				      "--yes-i-mean-it",
				      err);
	for (size_t e = 0; e < s->n_intercepts; e++) {
		const struct zb_intercept *in = &s->intercepts[e];

		for (size_t i = 0; i < in->may.n; i++)
			if (is_red_intercept(in->event, in->may.v[i].value))
				return refuse(&in->may.v[i],
					      "lets the extension put its own "
					      "words into what the host runs; "
					      "remove it, or grant it with "
					      "--yes-i-mean-it",
					      err);
	}
	return 0;
}

const char *const *zb_scope_keys(void)
{
	static const char *const keys[] = {
		"$schema",
		"zotbox",
		"extends",
		"why",
		"fs.read",
		"fs.write",
		"fs.exec",
		"fs.deny",
		"fs.state",
		"net.connect",
		"net.listen",
		"net.unix",
		"env.pass",
		"env.set.*",
		"protocol.commands",
		"protocol.tools",
		"protocol.deferred",
		"protocol.panels",
		"protocol.notify",
		"protocol.prompt",
		"protocol.insert",
		"protocol.submit",
		"protocol.slash",
		"protocol.call_tool",
		"protocol.events",
		"protocol.event_content",
		"protocol.intercept.*",
		"protocol.on_failure",
		"limits.memory",
		"limits.processes",
		"limits.open_files",
		"limits.file_size",
		"limits.cpu_seconds",
		"limits.hello_seconds",
		"limits.tool_seconds",
		"limits.command_seconds",
		"limits.intercept_seconds",
		"limits.frame_bytes",
		"limits.frames_per_second",
		"limits.submits",
		"limits.log_bytes",
		"ledger",
		NULL,
	};

	return keys;
}
