/* scope_edit.c - changing one line of a scope file, and nothing else.
 *
 * The file is the user's: its order, indentation and line breaks stay, since
 * the change is spliced into the text where the scanner says that the value
 * stands. A new member looks like its neighbours. What comes out is parsed
 * again before anybody may write it.
 *
 * To grant adds to a list or sets a value; to revoke takes it out of the list,
 * or says false. What a preset grants in a list cannot be revoked here: that
 * takes a "!reset", which is for an editor. */
#include "scope_internal.h"

#include "cleanup.h"
#include "path_match.h"
#include "resolve.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

enum kind {
	K_LIST,	   /* a list of strings */
	K_SWITCH,  /* true, false, "any" */
	K_NAMES,   /* true, false or a list */
	K_LISTED,  /* false or a list */
	K_LIMIT,   /* a number, a size, null */
	K_WORD,	   /* a string out of few */
	K_ENV,	   /* a member of env.set */
	K_NOT_HERE /* not for these commands */
};

static const struct {
	const char *key; /* as zb_scope_keys() has it */
	enum kind kind;
} kinds[] = {
	{"fs.state", K_WORD},
	{"env.set.*", K_ENV},
	{"protocol.commands", K_NAMES},
	{"protocol.tools", K_NAMES},
	{"protocol.events", K_NAMES},
	{"protocol.slash", K_LISTED},
	{"protocol.call_tool", K_LISTED},
	{"protocol.intercept.*", K_LIST},
	{"protocol.on_failure", K_WORD},
	{"ledger", K_WORD},
	{"why", K_WORD},
	{"extends", K_NOT_HERE},
	{"$schema", K_NOT_HERE},
	{"zotbox", K_NOT_HERE},
};

#define MAX_STEPS 3

struct edit {
	const char *file;
	enum kind kind;
	char *path[MAX_STEPS]; /* "protocol" "intercept" "tool_call" */
	unsigned n;
	char *value; /* of the list or the member, not yet JSON */
	bool remove;
	bool changed;
	struct zb_error *err;
};

static void edit_done(struct edit *e)
{
	for (unsigned i = 0; i < MAX_STEPS; i++)
		free(e->path[i]);
	free(e->value);
}

static int no_memory(struct edit *e)
{
	return zb_fail(e->err, ZB_ELIMIT, "out of memory editing %s", e->file);
}

/* What is to be changed? */

static bool key_fits(const char *known, const char *key)
{
	size_t n = strlen(known);

	if (n > 2 && !strcmp(known + n - 2, ".*"))
		return !strncmp(known, key, n - 1) && key[n - 1] &&
		       !strchr(key + n - 1, '.');
	return !strcmp(known, key);
}

/* Words that stand in records and in other languages. */
static const struct {
	const char *word, *key;
} meant[] = {
	{"fs.create", "fs.write"},
	{"fs.delete", "fs.write"},
	{"fs.rename", "fs.write"},
	{"fs.meta", "fs.write"},
	{"net.dns", "net.connect"},
	{"env", "env.pass"},
	{"env.set.*", "env.set.NAME"},
	{"protocol.intercept", "protocol.intercept.EVENT (as in "
			       "protocol.intercept.tool_call block)"},
	{"proto.intercept", "protocol.intercept.EVENT (as in "
			    "protocol.intercept.tool_call block)"},
};

/* The key that @key is another word for, or is near to; heap or NULL. */
static char *meant_key(const char *key)
{
	const char *near = NULL;

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ZB_ARRAY_LEN(meant); i++)
			if (!strcmp(meant[i].word, near ? near : key))
				return zb_strdup(meant[i].key);
		if (!strncmp(key, "proto.", 6))
			return zb_strf("protocol.%s", key + 6);
		near = zb_nearest(key, zb_scope_keys());
		if (near && !strcmp(near, "protocol.intercept.*"))
			near = "protocol.intercept";
		if (!near)
			break;
	}
	return zb_strdup(near);
}

static int unknown_key(struct edit *e, const char *key)
{
	zb_auto(free) char *near = meant_key(key);
	struct zb_buf b = {0};

	zb_text_escape(&b, key, strlen(key), 100);
	if (near)
		zb_fail(e->err, ZB_EUSAGE,
			"unknown key \"%s\"; did you mean %s?", zb_buf_str(&b),
			near);
	else
		zb_fail(e->err, ZB_EUSAGE,
			"unknown key \"%s\"; keys are dotted, like fs.read or "
			"protocol.events (zotbox ext allow --help has them)",
			zb_buf_str(&b));
	zb_buf_done(&b);
	return ZB_EUSAGE;
}

static int find_kind(struct edit *e, const char *key)
{
	const char *const *known = zb_scope_keys();

	while (*known && !key_fits(*known, key))
		known++;
	if (!*known)
		return unknown_key(e, key);
	e->kind = !strncmp(key, "limits.", 7)	  ? K_LIMIT
		  : !strncmp(key, "protocol.", 9) ? K_SWITCH
						  : K_LIST;
	for (size_t i = 0; i < ZB_ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i].key, *known))
			e->kind = kinds[i].kind;
	if (e->kind == K_NOT_HERE)
		return zb_fail(e->err, ZB_EUSAGE,
			       "%s is chosen when the extension is installed "
			       "(--policy, --scope)",
			       key);
	return 0;
}

static int split_key(struct edit *e, const char *key)
{
	while (e->n < MAX_STEPS) {
		size_t n =
			e->n == MAX_STEPS - 1 ? strlen(key) : strcspn(key, ".");

		e->path[e->n] = zb_strndup(key, n);
		if (!e->path[e->n++])
			return no_memory(e);
		if (!key[n])
			break;
		key += n + 1;
	}
	return 0;
}

/* "env.set" with NAME=VALUE is "env.set.NAME" with VALUE. */
static int target(struct edit *e, const char *key, const char *value)
{
	zb_auto(free) char *full = NULL;
	const char *eq = strchr(value, '=');
	int rc;

	if (!strcmp(key, "env.set")) {
		if (!eq || eq == value)
			return zb_fail(e->err, ZB_EUSAGE,
				       "env.set takes NAME=VALUE");
		full = zb_strf("env.set.%.*s", (int)(eq - value), value);
		value = eq + 1;
		key = full;
	}
	e->value = zb_strdup(value);
	if (!key || !e->value)
		return no_memory(e);
	rc = find_kind(e, key);
	if (!rc && !e->remove && !strcmp(e->value, "!reset"))
		rc = zb_fail(e->err, ZB_EUSAGE,
			     "\"!reset\" grants nothing, it drops what is "
			     "inherited: put it first in the list with an "
			     "editor");
	return rc ? rc : split_key(e, key);
}

/* Splicing */

struct text {
	const char *s;
	size_t len;
	struct zb_json j;
};

/* The text with [from, to) replaced by @with. */
static int splice(struct zb_buf *out, const struct text *t, size_t from,
		  size_t to, const char *with)
{
	zb_buf_add(out, t->s, from);
	zb_buf_adds(out, with);
	zb_buf_add(out, t->s + to, t->len - to);
	return out->failed ? ZB_ELIMIT : 0;
}

/* Blanks at the start of the line that holds @offset. */
static void add_indent(struct zb_buf *b, const struct text *t, size_t offset)
{
	size_t line = offset, n = 0;

	while (line && t->s[line - 1] != '\n')
		line--;
	while (line + n < t->len &&
	       (t->s[line + n] == ' ' || t->s[line + n] == '\t'))
		n++;
	zb_buf_add(b, t->s + line, n);
}

static bool has_newline(const struct text *t, size_t from, size_t to)
{
	return memchr(t->s + from, '\n', to - from) != NULL;
}

static size_t start_of(const struct text *t, uint32_t tok)
{
	const struct zb_json_tok *k = &t->j.tok[tok];

	return k->key_end ? k->key_start : k->start;
}

/* One step of indentation in this file. */
static void add_step(struct zb_buf *b, const struct text *t)
{
	uint32_t first = zb_json_first(&t->j, 0);

	if (first != ZB_JSON_NONE &&
	    has_newline(t, t->j.tok[0].start, start_of(t, first)))
		add_indent(b, t, start_of(t, first));
	else
		zb_buf_adds(b, "  ");
}

/* Is the file laid out in lines? An empty one will be. */
static bool is_spread(const struct text *t)
{
	uint32_t first = zb_json_first(&t->j, 0);

	return first == ZB_JSON_NONE ||
	       has_newline(t, t->j.tok[0].start, start_of(t, first));
}

static const char *colon(const struct text *t)
{
	uint32_t first = zb_json_first(&t->j, 0);

	if (first == ZB_JSON_NONE)
		return ": ";
	return t->j.tok[first].start == t->j.tok[first].key_end + 1 ? ":"
								    : ": ";
}

static uint32_t last_child(const struct text *t, uint32_t tok)
{
	uint32_t last = ZB_JSON_NONE;

	for (uint32_t c = zb_json_first(&t->j, tok); c != ZB_JSON_NONE;
	     c = zb_json_next(&t->j, c))
		last = c;
	return last;
}

/* @item as a new child at the end of object or list @tok. */
static int append(struct zb_buf *out, const struct text *t, uint32_t tok,
		  const char *item)
{
	const struct zb_json_tok *box = &t->j.tok[tok];
	uint32_t first = zb_json_first(&t->j, tok);
	uint32_t last = last_child(t, tok);
	struct zb_buf b = {0};
	int rc;

	if (last != ZB_JSON_NONE) {
		zb_buf_addc(&b, ',');
		if (has_newline(t, box->start, start_of(t, first))) {
			zb_buf_addc(&b, '\n');
			add_indent(&b, t, start_of(t, first));
		} else if (t->j.tok[tok].size < 2 ||
			   t->s[start_of(t, last) - 1] == ' ') {
			zb_buf_adds(&b, strcmp(colon(t), ":") ? " " : "");
		}
		zb_buf_adds(&b, item);
		rc = splice(out, t, t->j.tok[last].end, t->j.tok[last].end,
			    zb_buf_str(&b));
	} else if (box->type == ZB_JSON_ARRAY || !is_spread(t)) {
		rc = splice(out, t, box->start + 1, box->end - 1, item);
	} else {
		zb_buf_addc(&b, '\n');
		add_indent(&b, t, box->start);
		add_step(&b, t);
		zb_buf_addf(&b, "%s\n", item);
		add_indent(&b, t, box->start);
		rc = splice(out, t, box->start + 1, box->end - 1,
			    zb_buf_str(&b));
	}
	zb_buf_done(&b);
	return rc;
}

/* Child @tok of its list or object goes, with one comma. */
static int cut(struct zb_buf *out, const struct text *t, uint32_t tok)
{
	uint32_t parent = t->j.tok[tok].parent, before = ZB_JSON_NONE;
	uint32_t next = zb_json_next(&t->j, tok);

	for (uint32_t c = zb_json_first(&t->j, parent); c != tok;
	     c = zb_json_next(&t->j, c))
		before = c;
	if (next != ZB_JSON_NONE)
		return splice(out, t, start_of(t, tok), start_of(t, next), "");
	if (before != ZB_JSON_NONE)
		return splice(out, t, t->j.tok[before].end, t->j.tok[tok].end,
			      "");
	return splice(out, t, t->j.tok[parent].start + 1,
		      t->j.tok[parent].end - 1, "");
}

/* A member at path[i], holding the objects of the rest of the path and at
 * their end @value; laid out to stand at the end of an object at @tok. */
static char *nested(const struct edit *e, const struct text *t, uint32_t tok,
		    unsigned i, const char *value)
{
	struct zb_buf b = {0}, indent = {0};
	bool spread = is_spread(t);
	unsigned depth = 0;

	add_indent(&indent, t, t->j.tok[tok].start);
	add_step(&indent, t);
	for (unsigned k = i; k < e->n; k++) {
		zb_json_quote(&b, e->path[k], strlen(e->path[k]));
		zb_buf_adds(&b, colon(t));
		if (k == e->n - 1)
			break;
		zb_buf_addc(&b, '{');
		depth++;
		if (!spread)
			continue;
		zb_buf_addf(&b, "\n%s", zb_buf_str(&indent));
		for (unsigned d = 0; d < depth; d++)
			add_step(&b, t);
	}
	zb_buf_adds(&b, value);
	while (depth--) {
		if (spread) {
			zb_buf_addf(&b, "\n%s", zb_buf_str(&indent));
			for (unsigned d = 0; d < depth; d++)
				add_step(&b, t);
		}
		zb_buf_addc(&b, '}');
	}
	zb_buf_done(&indent);
	return zb_buf_steal(&b);
}

/* Put @value at the edit's path, whether or not something stands there. */
static int put(struct edit *e, const struct text *t, const char *value,
	       struct zb_buf *out)
{
	uint32_t tok = 0;

	e->changed = true;
	for (unsigned i = 0; i < e->n; i++) {
		uint32_t child = zb_json_get(&t->j, tok, e->path[i]);
		zb_auto(free) char *item = NULL;

		if (child != ZB_JSON_NONE) {
			tok = child;
			continue;
		}
		item = nested(e, t, tok, i, value);
		if (!item || append(out, t, tok, item))
			return no_memory(e);
		return 0;
	}
	if (splice(out, t, t->j.tok[tok].start, t->j.tok[tok].end, value))
		return no_memory(e);
	return 0;
}

/* The token at the edit's path, or ZB_JSON_NONE. */
static uint32_t current(const struct edit *e, const struct text *t)
{
	uint32_t tok = 0;

	for (unsigned i = 0; i < e->n && tok != ZB_JSON_NONE; i++)
		tok = zb_json_get(&t->j, tok, e->path[i]);
	return tok;
}

static int keep(struct edit *e, const struct text *t, struct zb_buf *out)
{
	return zb_buf_add(out, t->s, t->len) ? no_memory(e) : 0;
}

/* Each kind's change */

static char *quoted(const char *s)
{
	struct zb_buf b = {0};

	zb_json_quote(&b, s, strlen(s));
	return zb_buf_steal(&b);
}

static char *quoted_list(const char *s)
{
	struct zb_buf b = {0};

	zb_buf_addc(&b, '[');
	zb_json_quote(&b, s, strlen(s));
	zb_buf_addc(&b, ']');
	return zb_buf_steal(&b);
}

/* Is element @c what is to be changed? A slash command has two spellings. */
static bool is_value(const struct edit *e, const struct text *t, uint32_t c)
{
	zb_auto(free) char *is = NULL;

	if (zb_json_is(&t->j, c, e->value))
		return true;
	if (e->n < 2 || strcmp(e->path[1], "slash") != 0)
		return false;
	is = zb_json_dup_string(&t->j, c);
	return is && zb_slash_same(is, e->value);
}

static int change_list(struct edit *e, const struct text *t, uint32_t tok,
		       struct zb_buf *out)
{
	zb_auto(free) char *item = quoted(e->value);
	uint32_t c;
	int rc;

	if (!item)
		return no_memory(e);
	c = zb_json_first(&t->j, tok);
	while (c != ZB_JSON_NONE && !is_value(e, t, c))
		c = zb_json_next(&t->j, c);
	if ((c != ZB_JSON_NONE) != e->remove)
		return keep(e, t, out);
	e->changed = true;
	rc = e->remove ? cut(out, t, c) : append(out, t, tok, item);
	return rc ? no_memory(e) : 0;
}

static int edit_list(struct edit *e, const struct text *t, struct zb_buf *out)
{
	uint32_t tok = current(e, t);
	zb_auto(free) char *list = quoted_list(e->value);

	if (!list)
		return no_memory(e);
	if (tok != ZB_JSON_NONE && t->j.tok[tok].type == ZB_JSON_ARRAY)
		return change_list(e, t, tok, out);
	return e->remove ? keep(e, t, out) : put(e, t, list, out);
}

/* true, false, "any": to revoke is to say false. */
static int edit_switch(struct edit *e, const struct text *t, struct zb_buf *out)
{
	uint32_t tok = current(e, t);
	const char *want = e->remove ? "false" : e->value;
	bool any = !strcmp(want, "any");
	zb_auto(free) char *text = any ? quoted(want) : zb_strdup(want);

	if (!text)
		return no_memory(e);
	if (!any && strcmp(want, "true") != 0 && strcmp(want, "false") != 0)
		return zb_fail(e->err, ZB_EUSAGE,
			       "protocol.%s takes true or false, not \"%s\"",
			       e->path[1], e->value);
	if (tok != ZB_JSON_NONE &&
	    t->j.tok[tok].end - t->j.tok[tok].start == strlen(text) &&
	    !memcmp(t->s + t->j.tok[tok].start, text, strlen(text)))
		return keep(e, t, out);
	return put(e, t, text, out);
}

static int edit_names(struct edit *e, const struct text *t, struct zb_buf *out)
{
	uint32_t tok = current(e, t);
	enum zb_json_type type =
		tok == ZB_JSON_NONE ? ZB_JSON_FALSE : t->j.tok[tok].type;

	if (!strcmp(e->value, "true") || !strcmp(e->value, "false"))
		return edit_switch(e, t, out);
	if (type != ZB_JSON_TRUE)
		return edit_list(e, t, out);
	if (!e->remove)
		return keep(e, t, out);
	return zb_fail(e->err, ZB_EUSAGE,
		       "protocol.%s is true, for all names; set it to false, "
		       "then allow those that stay",
		       e->path[1]);
}

static int set_or_cut(struct edit *e, const struct text *t, const char *value,
		      struct zb_buf *out)
{
	uint32_t tok = current(e, t);
	bool same = tok != ZB_JSON_NONE &&
		    t->j.tok[tok].end - t->j.tok[tok].start == strlen(value) &&
		    !memcmp(t->s + t->j.tok[tok].start, value, strlen(value));

	if (!e->remove)
		return same ? keep(e, t, out) : put(e, t, value, out);
	if (!same && (tok == ZB_JSON_NONE || *e->value))
		return keep(e, t, out);
	e->changed = true;
	return cut(out, t, tok) ? no_memory(e) : 0;
}

static int edit_scalar(struct edit *e, const struct text *t, struct zb_buf *out)
{
	zb_auto(free) char *value = NULL;
	bool number = *e->value && !e->value[strspn(e->value, "0123456789")];

	if (e->kind == K_LIMIT &&
	    (!strcmp(e->value, "null") || !strcmp(e->value, "none")))
		value = zb_strdup("null");
	else if (e->kind == K_LIMIT && number)
		value = zb_strdup(e->value);
	else
		value = quoted(e->value);
	return value ? set_or_cut(e, t, value, out) : no_memory(e);
}

static int apply(struct edit *e, const struct text *t, struct zb_buf *out)
{
	switch (e->kind) {
	case K_LIST:
		return edit_list(e, t, out);
	case K_SWITCH:
		return edit_switch(e, t, out);
	case K_NAMES:
	case K_LISTED:
		return edit_names(e, t, out);
	case K_LIMIT:
	case K_WORD:
	case K_ENV:
		return edit_scalar(e, t, out);
	case K_NOT_HERE:
		break;
	}
	return ZB_EUSAGE;
}

/* May it be granted? Asked of a scope that holds nothing else. */

static bool names_wide(const char *v)
{
	static const char *const wide[] = {"~",
					   "/",
					   "${home}",
					   "${zot_home}",
					   "~/*",
					   "~/**",
					   "${home}/*",
					   "${home}/**",
					   "/*",
					   "/**",
					   "${zot_home}/*",
					   "${zot_home}/**",
					   "${zot_home}/auth.json"};
	size_t n = strlen(v);

	while (n > 1 && v[n - 1] == '/')
		n--;
	for (size_t i = 0; i < ZB_ARRAY_LEN(wide); i++)
		if (strlen(wide[i]) == n && !strncmp(wide[i], v, n))
			return true;
	return false;
}

static bool names_run(const char *v)
{
	zb_auto(free) char *path = zb_path_join(
		"/x", v[0] == '/' ? v : v + strcspn(v, "/") + !!strchr(v, '/'));

	for (size_t i = 0; path && zb_carve_outs[i]; i++)
		if (zb_pattern_match(zb_carve_outs[i], path))
			return true;
	return false;
}

static int judge_paths(struct edit *e, const struct zb_scope *s)
{
	const struct zb_rules *lists[] = {&s->fs_read, &s->fs_write,
					  &s->fs_exec};

	for (size_t i = 0; i < ZB_ARRAY_LEN(lists); i++)
		if (lists[i]->n && names_wide(lists[i]->v[0].value))
			return zb_fail(e->err, ZB_EPOLICY,
				       "%s.%s \"%s\" opens nearly everything "
				       "you have; grant what is needed below "
				       "it, or say --yes-i-mean-it",
				       e->path[0], e->path[1], e->value);
	if (s->fs_write.n && names_run(s->fs_write.v[0].value))
		return zb_fail(e->err, ZB_EPOLICY,
			       "fs.write \"%s\": zot, git or an editor runs "
			       "what stands there; do without, or say "
			       "--yes-i-mean-it",
			       e->value);
	return 0;
}

/* A name that nobody sends grants nothing: a slip of the finger is told, and
 * what is like no name of today may be one of tomorrow. */
static int judge_event(struct edit *e)
{
	bool intercept = e->n == 3 && !strcmp(e->path[1], "intercept");
	const char *const *known =
		intercept ? zb_known_intercepts : zb_known_events;
	const char *name = intercept ? e->path[2] : e->value;
	const char *near;

	if (strcmp(e->path[0], "protocol") != 0 ||
	    (!intercept && strcmp(e->path[1], "events") != 0) ||
	    !strcmp(name, "true") || !strcmp(name, "false"))
		return 0;
	for (size_t i = 0; known[i]; i++)
		if (!strcmp(known[i], name))
			return 0;
	near = zb_nearest(name, known);
	return near ? zb_fail(e->err, ZB_EUSAGE,
			      "there is no event \"%s\" to %s; did you mean %s?",
			      name, intercept ? "intercept" : "listen to", near)
		    : 0;
}

/* The first finding without its place: it is in no file yet. */
static void drop_position(struct zb_error *err)
{
	const char *s = err ? strstr(err->msg, ": ") : NULL;

	if (s)
		memmove(err->msg, s + 2, strlen(s + 2) + 1);
}

static int judge(struct edit *e, bool mean_it)
{
	struct text t = {.s = "{}", .len = 2};
	struct zb_buf out = {0};
	struct zb_scope s = {0};
	bool changed = e->changed;
	int rc;

	if (zb_json_scan(&t.j, t.s, t.len, NULL, NULL))
		return no_memory(e);
	rc = apply(e, &t, &out);
	e->changed = changed;
	if (!rc) {
		rc = zb_scope_parse(&s, "new", zb_buf_str(&out), out.len, NULL,
				    e->err);
		if (!rc)
			rc = zb_scope_judge(&s, mean_it, e->err);
		if (rc)
			drop_position(e->err);
	}
	if (!rc && !mean_it)
		rc = judge_paths(e, &s);
	if (!rc)
		rc = judge_event(e);
	zb_scope_done(&s);
	zb_buf_done(&out);
	zb_json_done(&t.j);
	return rc;
}

static int check(struct edit *e, const char *text, size_t len, bool before)
{
	struct zb_scope s;
	int rc = zb_scope_parse(&s, e->file, text, len, NULL, e->err);

	zb_scope_done(&s);
	if (rc && !before)
		zb_wrap(e->err, "the change was not made");
	return rc;
}

int zb_scope_edit(struct zb_buf *out, const char *file, const char *text,
		  size_t len, const char *key, const char *value, bool remove,
		  bool mean_it, bool *changed, struct zb_error *err)
{
	struct edit e = {.file = file, .remove = remove, .err = err};
	struct text t = {.s = text, .len = len};
	int rc = target(&e, key, value ? value : "");

	*changed = false;
	if (!rc)
		rc = check(&e, text, len, true);
	if (!rc && !remove)
		rc = judge(&e, mean_it);
	if (!rc && zb_json_scan(&t.j, text, len, NULL, NULL))
		rc = no_memory(&e);
	if (!rc)
		rc = apply(&e, &t, out);
	if (!rc)
		rc = check(&e, zb_buf_str(out), out->len, false);
	if (!rc)
		*changed = e.changed;
	else
		zb_buf_clear(out);
	zb_json_done(&t.j);
	edit_done(&e);
	return rc;
}
