/* scope_parse.c - scope files: text to struct, or findings.
 *
 * A scope file is what somebody trusts. So nothing in it is ignored: a key
 * that is not known, a value of another type, a pattern that would match
 * nothing are errors, each with file, line and column and what to write
 * instead. All of a file's findings are found in one pass; the first is the
 * error. Keys are tables: one line each says what it is called, how it is
 * read and where it goes. */
#include "scope_internal.h"

#include "cleanup.h"
#include "text.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES    ((size_t)256 << 10)
#define MAX_ENTRIES  1000
#define MAX_VALUE    ZB_SCOPE_VALUE_MAX
#define MAX_FINDINGS 100

struct parser {
	struct zb_json j;
	const char *file;
	struct zb_scope *s;
	struct zb_strv *all;
	struct zb_error *err;
	unsigned n_findings;
	bool no_memory;
	/* Where the last line was counted: tokens come in order. */
	size_t at;
	unsigned line;
};

struct key {
	const char *name;
	void (*take)(struct parser *p, const struct key *k, uint32_t tok,
		     const char *path);
	size_t offset;		/* in struct zb_scope */
	unsigned how;		/* what @take makes of it */
	zb_check_fn *check;	/* lists: each value */
	const struct key *keys; /* objects: their members */
	uint64_t least, most;	/* numbers */
};

/* Findings */

static void finding(struct parser *p, size_t offset, const char *fmt, ...)
	ZB_PRINTF(3, 4);
static void finding(struct parser *p, size_t offset, const char *fmt, ...)
{
	struct zb_buf b = {0};
	unsigned line, column;
	va_list ap;

	if (++p->n_findings > MAX_FINDINGS)
		return;
	zb_json_position(p->j.text, p->j.len, offset, &line, &column);
	zb_text_escape(&b, p->file, strlen(p->file), 0);
	zb_buf_addf(&b, ":%u:%u: ", line, column);
	va_start(ap, fmt);
	zb_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	if (p->n_findings == 1)
		zb_fail(p->err, ZB_EUSAGE, "%s", zb_buf_str(&b));
	if (p->all && zb_strv_add(p->all, zb_buf_str(&b)))
		p->no_memory = true;
	zb_buf_done(&b);
}

/* Text from the file, fit for a message. The caller frees. */
static char *shown(const char *s)
{
	struct zb_buf b = {0};

	zb_text_escape(&b, s, strlen(s), 120);
	return zb_buf_steal(&b);
}

static const struct zb_json_tok *tok_at(const struct parser *p, uint32_t i)
{
	return &p->j.tok[i];
}

static const char *type_word(enum zb_json_type t)
{
	static const char *const words[] = {"an object", "a list", "a string",
					    "a number",	 "true",   "false",
					    "null"};

	return words[t];
}

static void wrong_type(struct parser *p, uint32_t tok, const char *path,
		       const char *want)
{
	finding(p, tok_at(p, tok)->start, "%s must be %s, not %s", path, want,
		type_word(tok_at(p, tok)->type));
}

static unsigned line_of(struct parser *p, size_t offset)
{
	if (offset < p->at || !p->line) {
		p->at = 0;
		p->line = 1;
	}
	for (; p->at < offset; p->at++)
		p->line += p->j.text[p->at] == '\n';
	return p->line;
}

static void set_origin(struct parser *p, struct zb_origin *o, uint32_t tok,
		       const char *path)
{
	o->file = zb_strdup(p->file);
	o->key = zb_strdup(path);
	o->line = line_of(p, tok_at(p, tok)->start);
	if (!o->file || !o->key)
		p->no_memory = true;
}

/* Objects */

static void unknown_key(struct parser *p, uint32_t tok, const char *path,
			const struct key *keys)
{
	const char *names[40] = {NULL};
	zb_auto(free) char *key = zb_json_dup_key(&p->j, tok);
	zb_auto(free) char *show = key ? shown(key) : NULL;
	const char *near;
	size_t n = 0;

	if (!show) {
		p->no_memory = true;
		return;
	}
	for (; n < ZB_ARRAY_LEN(names) - 1 && keys[n].name; n++)
		names[n] = keys[n].name;
	near = zb_nearest(key, names);
	if (near)
		finding(p, tok_at(p, tok)->key_start,
			"unknown key \"%s\"%s%s; did you mean \"%s\"?", show,
			*path ? " in " : "", path, near);
	else
		finding(p, tok_at(p, tok)->key_start,
			"unknown key \"%s\"%s%s; remove it", show,
			*path ? " in " : "", path);
}

static void take_members(struct parser *p, const struct key *keys, uint32_t obj,
			 const char *path)
{
	for (uint32_t m = zb_json_first(&p->j, obj); m != ZB_JSON_NONE;
	     m = zb_json_next(&p->j, m)) {
		const struct key *k = keys;
		zb_auto(free) char *sub = NULL;

		while (k->name && !zb_json_key_is(&p->j, m, k->name))
			k++;
		if (!k->name) {
			unknown_key(p, m, path, keys);
			continue;
		}
		sub = *path ? zb_strf("%s.%s", path, k->name)
			    : zb_strdup(k->name);
		if (!sub)
			p->no_memory = true;
		else
			k->take(p, k, m, sub);
	}
}

static void take_object(struct parser *p, const struct key *k, uint32_t tok,
			const char *path)
{
	if (tok_at(p, tok)->type != ZB_JSON_OBJECT)
		wrong_type(p, tok, path, "an object");
	else
		take_members(p, k->keys, tok, path);
}

/* Scalars */

static char *string_at(struct parser *p, uint32_t tok, const char *path)
{
	char *s;

	if (tok_at(p, tok)->type != ZB_JSON_STRING) {
		wrong_type(p, tok, path, "a string");
		return NULL;
	}
	s = zb_json_dup_string(&p->j, tok);
	if (!s)
		p->no_memory = true;
	return s;
}

static void take_string(struct parser *p, const struct key *k, uint32_t tok,
			const char *path)
{
	char *s = string_at(p, tok, path);

	if (s && (!*s || strlen(s) > MAX_VALUE))
		finding(p, tok_at(p, tok)->start,
			*s ? "%s is longer than 4096 bytes; shorten it"
			   : "%s is empty; remove it or write something",
			path);
	if (!k->offset) { /* $schema: read by editors only */
		free(s);
		return;
	}
	*(char **)((char *)p->s + k->offset) = s;
}

static void take_version(struct parser *p, const struct key *k, uint32_t tok,
			 const char *path)
{
	int64_t n;

	(void)k;
	if (tok_at(p, tok)->type != ZB_JSON_NUMBER)
		wrong_type(p, tok, path, "the number 1");
	else if (!zb_json_int(&p->j, tok, &n) || n != 1)
		finding(p, tok_at(p, tok)->start,
			"zotbox must be 1, the version of the scope language "
			"that this program reads");
}

/* One of two or three words: @extra lists them; the index goes to @how. */
static int word_at(struct parser *p, uint32_t tok, const char *path,
		   const char *const *words)
{
	zb_auto(free) char *s = string_at(p, tok, path);
	struct zb_buf b = {0};
	const char *near;
	int i = 0;

	if (!s)
		return -1;
	for (; words[i]; i++)
		if (!strcmp(s, words[i]))
			return i;
	for (i = 0; words[i]; i++)
		zb_buf_addf(&b, "%s\"%s\"", i ? " or " : "", words[i]);
	near = zb_nearest(s, words);
	if (near)
		finding(p, tok_at(p, tok)->start,
			"%s must be %s; did you mean \"%s\"?", path,
			zb_buf_str(&b), near);
	else
		finding(p, tok_at(p, tok)->start, "%s must be %s", path,
			zb_buf_str(&b));
	zb_buf_done(&b);
	return -1;
}

static void take_state(struct parser *p, const struct key *k, uint32_t tok,
		       const char *path)
{
	static const char *const words[] = {"apart", "beside", NULL};
	int i = word_at(p, tok, path, words);

	(void)k;
	if (i < 0)
		return;
	p->s->state_set = true;
	p->s->state_beside = i == 1;
	set_origin(p, &p->s->state_origin, tok, path);
}

static void take_on_failure(struct parser *p, const struct key *k, uint32_t tok,
			    const char *path)
{
	static const char *const words[] = {"allow", "block", NULL};
	int i = word_at(p, tok, path, words);

	(void)k;
	if (i < 0)
		return;
	p->s->on_failure_set = true;
	p->s->on_failure_block = i == 1;
	set_origin(p, &p->s->on_failure_origin, tok, path);
}

static void take_ledger(struct parser *p, const struct key *k, uint32_t tok,
			const char *path)
{
	static const char *const words[] = {"open", "writes", "full", NULL};
	int i = word_at(p, tok, path, words);

	(void)k;
	if (i < 0)
		return;
	p->s->ledger_set = true;
	p->s->ledger = (enum zb_ledger_mode)i;
	set_origin(p, &p->s->ledger_origin, tok, path);
}

/* Lists */

static void add_value(struct parser *p, struct zb_rules *out, uint32_t tok,
		      const char *path, zb_check_fn *check)
{
	zb_auto(free) char *v = string_at(p, tok, path);
	zb_auto(free) char *show = NULL;
	struct zb_origin origin = {0};
	char why[200] = "is empty; remove it";
	const char *bad;

	if (!v)
		return;
	bad = !*v		      ? why
	      : strlen(v) > MAX_VALUE ? "is longer than 4096 bytes"
				      : check(v, why);
	if (bad) {
		show = shown(v);
		finding(p, tok_at(p, tok)->start, "%s \"%s\": %s", path,
			show ? show : "", bad);
		return;
	}
	set_origin(p, &origin, tok, path);
	if (zb_rules_add(out, v, &origin))
		p->no_memory = true;
	zb_origin_done(&origin);
}

static void fill_rules(struct parser *p, struct zb_rules *out, uint32_t tok,
		       const char *path, zb_check_fn *check)
{
	size_t i = 0;

	out->set = true;
	if (tok_at(p, tok)->size > MAX_ENTRIES) {
		finding(p, tok_at(p, tok)->start,
			"%s has more than 1000 entries; grant directories "
			"instead",
			path);
		return;
	}
	for (uint32_t e = zb_json_first(&p->j, tok); e != ZB_JSON_NONE;
	     e = zb_json_next(&p->j, e), i++) {
		zb_auto(free) char *sub = zb_strf("%s[%zu]", path, i);

		if (!sub) {
			p->no_memory = true;
		} else if (tok_at(p, e)->type == ZB_JSON_STRING &&
			   zb_json_is(&p->j, e, "!reset")) {
			if (i)
				finding(p, tok_at(p, e)->start,
					"%s: \"!reset\" must be the first "
					"element",
					sub);
			out->reset = true;
		} else {
			add_value(p, out, e, sub, check);
		}
	}
}

static void take_rules(struct parser *p, const struct key *k, uint32_t tok,
		       const char *path)
{
	if (tok_at(p, tok)->type != ZB_JSON_ARRAY)
		wrong_type(p, tok, path, "a list of strings");
	else
		fill_rules(p, (struct zb_rules *)((char *)p->s + k->offset),
			   tok, path, k->check);
}

/* Switches: @how says what forms there are. */

enum {
	MAY_BOOL = 1,
	MAY_LIST = 2,
	MAY_ANY = 4,
	NO_TRUE = 8
};

static const char *forms(unsigned how)
{
	if (how & NO_TRUE)
		return "false or a list of names";
	if (how & MAY_LIST)
		return "true, false or a list of names";
	return how & MAY_ANY ? "true, false or \"any\"" : "true or false";
}

static void take_switch(struct parser *p, const struct key *k, uint32_t tok,
			const char *path)
{
	struct zb_switch *s = (struct zb_switch *)((char *)p->s + k->offset);
	enum zb_json_type type = tok_at(p, tok)->type;

	if (type == ZB_JSON_TRUE && !(k->how & NO_TRUE)) {
		s->on = true;
	} else if (type == ZB_JSON_ARRAY && (k->how & MAY_LIST)) {
		s->is_list = true;
		fill_rules(p, &s->names, tok, path, k->check);
	} else if (type == ZB_JSON_STRING && (k->how & MAY_ANY) &&
		   zb_json_is(&p->j, tok, "any")) {
		s->on = s->any = true;
	} else if (type != ZB_JSON_FALSE) {
		wrong_type(p, tok, path, forms(k->how));
		return;
	}
	s->set = true;
	set_origin(p, &s->origin, tok, path);
}

static void take_intercept(struct parser *p, const struct key *k, uint32_t tok,
			   const char *path)
{
	(void)k;
	if (tok_at(p, tok)->type != ZB_JSON_OBJECT) {
		wrong_type(p, tok, path, "an object of lists, one an event");
		return;
	}
	p->s->intercept_set = true;
	for (uint32_t m = zb_json_first(&p->j, tok); m != ZB_JSON_NONE;
	     m = zb_json_next(&p->j, m)) {
		zb_auto(free) char *event = zb_json_dup_key(&p->j, m);
		zb_auto(free) char *show = event ? shown(event) : NULL;
		zb_auto(free) char *sub =
			show ? zb_strf("%s.%s", path, show) : NULL;
		struct zb_intercept *v;
		char why[200];

		if (!sub) {
			p->no_memory = true;
			return;
		}
		if (zb_check_event(event, why)) {
			finding(p, tok_at(p, m)->key_start, "%s: %s", sub, why);
			continue;
		}
		if (tok_at(p, m)->type != ZB_JSON_ARRAY) {
			wrong_type(p, m, sub, "a list of strings");
			continue;
		}
		v = realloc(p->s->intercepts,
			    (p->s->n_intercepts + 1) * sizeof(*v));
		if (!v) {
			p->no_memory = true;
			return;
		}
		p->s->intercepts = v;
		v += p->s->n_intercepts++;
		*v = (struct zb_intercept){.event = zb_steal(&event)};
		fill_rules(p, &v->may, m, sub, zb_check_part);
	}
}

/* env.set */

static void take_env_set(struct parser *p, const struct key *k, uint32_t tok,
			 const char *path)
{
	(void)k;
	if (tok_at(p, tok)->type != ZB_JSON_OBJECT) {
		wrong_type(p, tok, path, "an object of strings");
		return;
	}
	for (uint32_t m = zb_json_first(&p->j, tok); m != ZB_JSON_NONE;
	     m = zb_json_next(&p->j, m)) {
		zb_auto(free) char *name = zb_json_dup_key(&p->j, m);
		zb_auto(free) char *show = name ? shown(name) : NULL;
		zb_auto(free) char *sub =
			show ? zb_strf("%s.%s", path, show) : NULL;
		zb_auto(free) char *value = sub ? string_at(p, m, sub) : NULL;
		struct zb_env_set *v;
		char why[200];

		if (!sub) {
			p->no_memory = true;
			return;
		}
		if (zb_check_env(name, why) || strchr(name, '*')) {
			finding(p, tok_at(p, m)->key_start,
				"%s: not the name of a variable", sub);
			continue;
		}
		if (!value)
			continue;
		v = realloc(p->s->env_set, (p->s->n_env_set + 1) * sizeof(*v));
		if (!v) {
			p->no_memory = true;
			return;
		}
		p->s->env_set = v;
		v += p->s->n_env_set++;
		*v = (struct zb_env_set){.name = zb_steal(&name),
					 .value = zb_steal(&value)};
		set_origin(p, &v->origin, m, sub);
	}
}

/* Limits */

enum {
	IS_SIZE = 1,
	MAY_BE_NULL = 2
};

static bool size_at(struct parser *p, uint32_t tok, uint64_t *out)
{
	zb_auto(free) char *s = NULL;
	int64_t n;

	if (tok_at(p, tok)->type == ZB_JSON_NUMBER) {
		if (!zb_json_int(&p->j, tok, &n) || n < 0)
			return false;
		*out = (uint64_t)n;
		return true;
	}
	s = zb_json_dup_string(&p->j, tok);
	if (!s)
		p->no_memory = true;
	return s && zb_parse_size(s, out);
}

static void take_limit(struct parser *p, const struct key *k, uint32_t tok,
		       const char *path)
{
	struct zb_limit_value *v =
		(struct zb_limit_value *)((char *)p->s + k->offset);
	enum zb_json_type type = tok_at(p, tok)->type;
	bool size = k->how & IS_SIZE;
	uint64_t n = 0;

	if (type == ZB_JSON_NULL && (k->how & MAY_BE_NULL)) {
		v->none = true;
	} else if (type != ZB_JSON_NUMBER &&
		   !(size && type == ZB_JSON_STRING)) {
		wrong_type(p, tok, path,
			   size ? "a size: a number of bytes or \"512M\""
			   : k->how & MAY_BE_NULL ? "a number or null"
						  : "a number");
		return;
	} else if (!size_at(p, tok, &n)) {
		finding(p, tok_at(p, tok)->start,
			size ? "%s is no size; write a number of bytes, or "
			       "512K, 512M, 2G"
			     : "%s must be a whole number",
			path);
		return;
	} else if (n < k->least || n > k->most) {
		finding(p, tok_at(p, tok)->start,
			"%s must be from %llu to %llu", path,
			(unsigned long long)k->least,
			(unsigned long long)k->most);
		return;
	}
	v->set = true;
	v->value = n;
	set_origin(p, &v->origin, tok, path);
}

/* The tables */

#define AT(field)	 offsetof(struct zb_scope, field)
#define RULES(field, fn) .take = take_rules, .offset = AT(field), .check = fn
#define SWITCH(verb, forms, fn)                                                \
	.take = take_switch, .how = forms, .check = fn,                        \
	.offset = AT(verbs) + (verb) * sizeof(struct zb_switch)
#define LIMIT(limit, flags, lo, hi)                                            \
	.take = take_limit, .how = flags, .least = lo, .most = hi,             \
	.offset = AT(limits) + (limit) * sizeof(struct zb_limit_value)

static const struct key fs_keys[] = {
	{"read", RULES(fs_read, zb_check_read)},
	{"write", RULES(fs_write, zb_check_read)},
	{"exec", RULES(fs_exec, zb_check_exec)},
	{"deny", RULES(fs_deny, zb_check_deny)},
	{"state", .take = take_state},
	{0},
};

static const struct key net_keys[] = {
	{"connect", RULES(net_connect, zb_check_connect)},
	{"listen", RULES(net_listen, zb_check_listen)},
	{"unix", RULES(net_unix, zb_check_socket)},
	{0},
};

static const struct key env_keys[] = {
	{"pass", RULES(env_pass, zb_check_env)},
	{"set", .take = take_env_set},
	{0},
};

enum {
	BOOL_OR_LIST = MAY_BOOL | MAY_LIST,
	ONLY_LIST = MAY_LIST | NO_TRUE
};

static const struct key protocol_keys[] = {
	{"commands", SWITCH(ZB_VERB_COMMANDS, BOOL_OR_LIST, zb_check_command)},
	{"tools", SWITCH(ZB_VERB_TOOLS, BOOL_OR_LIST, zb_check_tool)},
	{"deferred", SWITCH(ZB_VERB_DEFERRED, MAY_BOOL, NULL)},
	{"panels", SWITCH(ZB_VERB_PANELS, MAY_BOOL | MAY_ANY, NULL)},
	{"notify", SWITCH(ZB_VERB_NOTIFY, MAY_BOOL, NULL)},
	{"prompt", SWITCH(ZB_VERB_PROMPT, MAY_BOOL, NULL)},
	{"insert", SWITCH(ZB_VERB_INSERT, MAY_BOOL, NULL)},
	{"submit", SWITCH(ZB_VERB_SUBMIT, MAY_BOOL, NULL)},
	{"slash", SWITCH(ZB_VERB_SLASH, ONLY_LIST, zb_check_command)},
	{"call_tool", SWITCH(ZB_VERB_CALL_TOOL, ONLY_LIST, zb_check_tool)},
	{"events", SWITCH(ZB_VERB_EVENTS, BOOL_OR_LIST, zb_check_event)},
	{"event_content", SWITCH(ZB_VERB_EVENT_CONTENT, MAY_BOOL, NULL)},
	{"intercept", .take = take_intercept},
	{"on_failure", .take = take_on_failure},
	{0},
};

#define SIZE_MAX_LIMIT ((uint64_t)1 << 50)
#define A_DAY	       86400

static const struct key limit_keys[] = {
	{"memory", LIMIT(ZB_LIMIT_MEMORY, IS_SIZE | MAY_BE_NULL, 1 << 20,
			 SIZE_MAX_LIMIT)},
	{"processes", LIMIT(ZB_LIMIT_PROCESSES, MAY_BE_NULL, 1, 100000)},
	{"open_files", LIMIT(ZB_LIMIT_OPEN_FILES, MAY_BE_NULL, 16, 1048576)},
	{"file_size",
	 LIMIT(ZB_LIMIT_FILE_SIZE, IS_SIZE | MAY_BE_NULL, 0, SIZE_MAX_LIMIT)},
	{"cpu_seconds", LIMIT(ZB_LIMIT_CPU_SECONDS, MAY_BE_NULL, 1, 31536000)},
	{"hello_seconds", LIMIT(ZB_LIMIT_HELLO_SECONDS, 0, 1, 3600)},
	{"tool_seconds", LIMIT(ZB_LIMIT_TOOL_SECONDS, MAY_BE_NULL, 1, A_DAY)},
	{"command_seconds",
	 LIMIT(ZB_LIMIT_COMMAND_SECONDS, MAY_BE_NULL, 1, A_DAY)},
	{"intercept_seconds", LIMIT(ZB_LIMIT_INTERCEPT_SECONDS, 0, 1, 60)},
	{"frame_bytes", LIMIT(ZB_LIMIT_FRAME_BYTES, 0, 1024, 4194303)},
	{"frames_per_second",
	 LIMIT(ZB_LIMIT_FRAMES_PER_SECOND, MAY_BE_NULL, 1, 100000)},
	{"submits", LIMIT(ZB_LIMIT_SUBMITS, MAY_BE_NULL, 0, 10000)},
	{"log_bytes", LIMIT(ZB_LIMIT_LOG_BYTES, IS_SIZE | MAY_BE_NULL, 4096,
			    SIZE_MAX_LIMIT)},
	{0},
};

static const struct key top_keys[] = {
	{"$schema", .take = take_string},
	{"zotbox", .take = take_version},
	{"extends", .take = take_string, .offset = AT(extends)},
	{"why", .take = take_string, .offset = AT(why)},
	{"fs", .take = take_object, .keys = fs_keys},
	{"net", .take = take_object, .keys = net_keys},
	{"env", .take = take_object, .keys = env_keys},
	{"protocol", .take = take_object, .keys = protocol_keys},
	{"limits", .take = take_object, .keys = limit_keys},
	{"ledger", .take = take_ledger},
	{0},
};

static void parse(struct parser *p, const char *text, size_t len)
{
	struct zb_json_fault fault;
	int rc;

	if (len > MAX_BYTES) {
		finding(p, 0, "larger than 256 KiB: this is no scope file");
		return;
	}
	rc = zb_json_scan(&p->j, text, len, NULL, &fault);
	p->j.text = text;
	p->j.len = len;
	if (rc == ZB_ELIMIT)
		p->no_memory = true;
	else if (rc)
		finding(p, fault.offset, "%s", fault.what);
	else if (tok_at(p, 0)->type != ZB_JSON_OBJECT)
		finding(p, tok_at(p, 0)->start,
			"a scope file is an object, { ... }, not %s",
			type_word(tok_at(p, 0)->type));
	else
		take_members(p, top_keys, 0, "");
}

int zb_scope_parse(struct zb_scope *out, const char *file, const char *text,
		   size_t len, struct zb_strv *all, struct zb_error *err)
{
	struct zb_scope s = {.file = zb_strdup(file)};
	struct parser p = {.file = file, .s = &s, .all = all, .err = err};
	int rc = 0;

	p.j.text = text;
	p.j.len = len;
	parse(&p, text, len);
	zb_json_done(&p.j);
	if (p.no_memory || !s.file)
		rc = zb_fail(err, ZB_ELIMIT, "out of memory reading %s", file);
	else if (p.n_findings)
		rc = ZB_EUSAGE;
	if (rc)
		zb_scope_done(&s);
	*out = s;
	return rc;
}
