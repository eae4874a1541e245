/* cmd_ext_allow.c - zotbox ext allow and ext revoke: edit scope.json, after the
 * whole chain was resolved with the edit in it. Running extensions keep their
 * plan; the grant counts from the next start. */
#include "chain.h"
#include "cleanup.h"
#include "cmd.h"
#include "cmd_ask.h"
#include "discover.h"
#include "evaluator.h"
#include "grant.h"
#include "path_match.h"
#include "question.h"
#include "scope.h"
#include "staging.h"
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	OPT_MEAN_IT
};

#define LOCK_WAIT_MS 10000
#define SCOPE_MAX    ((size_t)1 << 20)

/* One edit under way, under the lock of the NAME. */
struct edit {
	const struct zb_store *store;
	const struct zb_args *args;
	const char *name;
	bool remove, mean_it, changed;
	bool anew; /* some of it leads where it was not known to lead */
	char *path;
	struct zb_buf text; /* of scope.json, then with the edits in it */
};

static int read_scope(struct edit *e, struct zb_error *err)
{
	struct zb_error why = {0};

	if (!zb_read_file(e->path, SCOPE_MAX, &e->text, &why))
		return 0;
	return zb_fail(err, ZB_EPOLICY,
		       "%s has no scope (%s): it was not installed by zotbox",
		       e->name, why.msg);
}

/* One VALUE, as it is spelled. */
static int apply_one(struct edit *e, const char *value, struct zb_error *err)
{
	struct zb_buf next = {0};
	bool changed = false;
	int rc = zb_scope_edit(&next, e->path, zb_buf_str(&e->text),
			       e->text.len, e->args->arg[1], value, e->remove,
			       e->mean_it, &changed, err);

	e->changed = e->changed || changed;
	if (rc) {
		zb_buf_done(&next);
	} else {
		zb_buf_done(&e->text);
		e->text = next;
	}
	return rc;
}

/* What of @value is behind HOME, in whichever of its spellings; or NULL. */
static const char *behind_home(const char *value)
{
	const char *home = getenv("HOME");
	const char *const names[] = {"~", "${home}", home ? home : "~"};

	for (size_t i = 0; i < ZB_ARRAY_LEN(names); i++) {
		size_t n = strlen(names[i]);

		while (n > 1 && names[i][n - 1] == '/')
			n--;
		if (n && strcmp(names[i], "/") != 0 &&
		    !strncmp(value, names[i], n) &&
		    (!value[n] || value[n] == '/'))
			return value + n;
	}
	return NULL;
}

/* A path below HOME has three spellings, and a shell turns one into another and
 * puts a slash behind a directory: what is taken back as "~/x" must not stay
 * granted as "/home/u/x". Adds all to @out. */
static int spellings(const char *key, const char *value, struct zb_strv *out)
{
	zb_auto(free) char *bare = zb_strdup(value);
	size_t n = strlen(value);
	const char *home = getenv("HOME"), *rest;

	if (!bare || zb_strv_add(out, value))
		return ZB_ELIMIT;
	if (strncmp(key, "fs.", 3) != 0)
		return 0;
	while (n > 1 && bare[n - 1] == '/')
		bare[--n] = '\0';
	rest = behind_home(bare);
	for (int slash = 0; slash < 2; slash++) {
		const char *end = slash ? "/" : "";

		if (zb_strv_addf(out, "%s%s", bare, end))
			return ZB_ELIMIT;
		if (rest &&
		    (zb_strv_addf(out, "~%s%s", rest, end) ||
		     zb_strv_addf(out, "${home}%s%s", rest, end) ||
		     (home && zb_strv_addf(out, "%s%s%s", home, rest, end))))
			return ZB_ELIMIT;
	}
	return 0;
}

static int take_back(struct edit *e, const char *value, struct zb_error *err)
{
	struct zb_strv all = {0};
	int rc = spellings(e->args->arg[1], value, &all)
			 ? zb_fail(err, ZB_ELIMIT, "out of memory")
			 : 0;

	for (size_t i = 0; !rc && i < all.n; i++)
		rc = apply_one(e, all.v[i], err);
	zb_strv_done(&all);
	return rc;
}

/* Apply every VALUE of the command line, one after the other. */
static int apply(struct edit *e, struct zb_error *err)
{
	int rc = 0;

	for (size_t i = 2; !rc && i < e->args->n_args; i++)
		rc = e->remove ? take_back(e, e->args->arg[i], err)
			       : apply_one(e, e->args->arg[i], err);
	return rc;
}

static int keep(const struct edit *e, struct zb_error *err)
{
	return zb_write_file_atomic(e->path, zb_buf_str(&e->text), e->text.len,
				    0600, err);
}

/* To take something back must work whatever else is wrong. */
static int keep_revoked(const struct edit *e, struct zb_error *err)
{
	struct zb_error why = {0};
	int rc = keep(e, err);

	if (!rc &&
	    zb_grant_try(e->store, e->name, &e->text, NULL, false, true, &why))
		zb_cmd_say("as it is now, %s would not start: %s", e->name,
			   why.msg);
	return rc;
}

static int keep_allowed(struct edit *e, struct zb_error *err)
{
	struct zb_strv given = {0};
	int rc = 0;

	for (size_t i = 2; !rc && i < e->args->n_args; i++)
		if (zb_strv_addf(&given, "%s %s", e->args->arg[1],
				 e->args->arg[i]))
			rc = zb_fail(err, ZB_ELIMIT, "out of memory");
	if (!rc)
		rc = zb_grant_keep(e->store, e->name, &e->text, &given,
				   e->mean_it, &e->anew, err);
	zb_strv_done(&given);
	return rc;
}

static int perform(struct edit *e, struct zb_error *err)
{
	int fd = -1;
	int rc = zb_store_lock(e->store, e->name, true, LOCK_WAIT_MS, &fd, err);

	if (!rc)
		rc = read_scope(e, err);
	if (!rc && zb_is_marked(e->store, e->name))
		rc = zb_fail(err, ZB_EPOLICY,
			     "%s was not installed to the end, or is half "
			     "removed",
			     e->name);
	if (!rc)
		rc = apply(e, err);
	/* What is granted already may lead elsewhere by now. */
	if (!rc && !e->remove &&
	    (e->changed || !strncmp(e->args->arg[1], "fs.", 3)))
		rc = keep_allowed(e, err);
	else if (!rc && e->changed)
		rc = keep_revoked(e, err);
	zb_forget_lock(e->store, e->name, fd);
	return rc;
}

/* The values of the command line, for a message. */
static void add_values(const struct edit *e, struct zb_buf *out)
{
	for (size_t i = 2; i < e->args->n_args; i++) {
		const char *v = e->args->arg[i];

		zb_buf_addc(out, ' ');
		if (zb_text_shell_quote(out, v))
			zb_text_escape(out, v, strlen(v), 200);
	}
}

/* A directory for writing: its slash asks for that. */
static bool is_made_at_start(const struct edit *e, const char *value)
{
	size_t n = strlen(value);

	return !strcmp(e->args->arg[1], "fs.write") && n > 1 &&
	       value[n - 1] == '/';
}

/* A path that is really another one, or is not there. */
static void tell_path(const struct edit *e, const char *value)
{
	const char *home = value[0] == '~' ? getenv("HOME") : "";
	zb_auto(free) char *full =
		home ? zb_strf("%s%s", home, value + (value[0] == '~')) : NULL;
	zb_auto(free) char *plain =
		full && full[0] == '/' ? zb_path_join("/", full) : NULL;
	zb_auto(free) char *real = plain ? realpath(plain, NULL) : NULL;

	if (!plain || zb_pattern_is_glob(plain))
		return;
	if (!real && errno == ENOENT && is_made_at_start(e, value))
		zb_cmd_say("there is no %s now: it is made when %s starts, and "
			   "goes with it if it is empty then",
			   value, e->name);
	else if (!real && (errno == ENOENT || errno == ENOTDIR))
		zb_cmd_say("there is no %s now: what is not there when %s "
			   "starts is not granted",
			   value, e->name);
	else if (real && strcmp(real, plain) != 0)
		zb_cmd_say("%s leads to %s: what is granted is that, as long "
			   "as it leads there",
			   value, real);
}

static bool is_known(const char *const *list, const char *name)
{
	while (*list && strcmp(*list, name) != 0)
		list++;
	return *list;
}

/* A deny beats every grant, and closes to all operations alike: what is granted
 * in vain is told. Return: was it so? */
static bool tell_denied(const struct edit *e, const char *value)
{
	struct zb_question q;
	struct zb_query ask = {
		.op = ZB_OP_FS_READ, .place = -1, .exists = true};
	struct zb_answer a = {0};
	struct zb_error why = {0};
	struct zb_buf from = {0};
	char *path = NULL;
	bool vain;

	if (!zb_question_open(&q, e->name, &why) &&
	    !zb_question_prepare(&q, NULL, NULL, &why) &&
	    (path = zb_question_path(&q, value))) {
		ask.target = path;
		zb_evaluate(&q.prep.plan, &ask, &a);
	}
	vain = a.verdict == ZB_DENY && a.origin && a.origin->key &&
	       !strncmp(a.origin->key, "fs.deny", 7);
	if (vain) {
		zb_origin_line(a.origin, &from);
		zb_cmd_say("%s stays denied, whatever is granted: %s", value,
			   zb_buf_str(&from));
	}
	zb_buf_done(&from);
	zb_answer_done(&a);
	free(path);
	zb_question_done(&q);
	return vain;
}

/* What was done to the key: not every value is a grant. */
static const char *deed(const struct edit *e)
{
	const char *key = e->args->arg[1], *value = e->args->arg[2];

	if (e->remove)
		return "revoked";
	if (!strcmp(key, "fs.deny"))
		return "added";
	if (!strncmp(key, "limits.", 7) || !strcmp(value, "false"))
		return "set";
	return "allowed";
}

/* What a grant is worth on this machine and with the hosts of today. */
static void tell_worth(const struct edit *e, const char *value)
{
	static const char intercept[] = "protocol.intercept.";
	const char *key = e->args->arg[1], *event = NULL;
	bool vain = false;

	if (!strcmp(key, "fs.read") || !strcmp(key, "fs.write") ||
	    (!strcmp(key, "fs.exec") && strchr(value, '/'))) {
		tell_path(e, value);
		vain = !zb_pattern_is_glob(value) && tell_denied(e, value);
	}
	if (!vain && e->changed && !strcmp(deed(e), "allowed"))
		zb_cmd_may(e->store, e->name, key, value);
	if (!strcmp(key, "protocol.events") && strcmp(value, "true") != 0 &&
	    strcmp(value, "false") != 0 && !is_known(zb_known_events, value))
		event = value;
	else if (!strncmp(key, intercept, sizeof(intercept) - 1) &&
		 !is_known(zb_known_intercepts, key + sizeof(intercept) - 1))
		event = key + sizeof(intercept) - 1;
	if (event)
		zb_cmd_say("%s is not an event that zot sends today", event);
}

/* The list of @s that is called @key; NULL: it is none. */
static const struct zb_rules *list_called(const struct zb_scope *s,
					  const char *key)
{
	const struct {
		const char *key;
		const struct zb_rules *rules;
	} lists[] = {
		{"fs.read", &s->fs_read},   {"fs.write", &s->fs_write},
		{"fs.exec", &s->fs_exec},   {"fs.deny", &s->fs_deny},
		{"env.pass", &s->env_pass},
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(lists); i++)
		if (!strcmp(lists[i].key, key))
			return lists[i].rules;
	for (unsigned v = 0; v < ZB_VERB_COUNT; v++)
		if (!strncmp(key, "protocol.", 9) &&
		    !strcmp(key + 9, zb_verb_name((enum zb_verb)v)))
			return &s->verbs[v].names;
	return NULL;
}

/* What is not in scope.json may come from what it extends, where this command
 * changes nothing. Return: was it so? */
static bool tell_inherited(const struct edit *e, const char *value)
{
	const char *key = e->args->arg[1];
	struct zb_chain c = {0};
	const struct zb_rules *l = NULL;
	const struct zb_origin *from = NULL;
	bool path = !strcmp(key, "fs.read") || !strcmp(key, "fs.write");
	struct zb_buf quoted = {0};

	if (!zb_chain_add_file(&c, e->path, "scope.json", NULL, NULL))
		l = list_called(&c.scope, key);
	for (size_t i = 0; l && i < l->n && !from; i++)
		if (!strcmp(l->v[i].value, value))
			from = &l->v[i].origin;
	if (from && path && !zb_text_shell_quote(&quoted, value))
		zb_cmd_say("%s %s comes from %s, not from scope.json; to close "
			   "it: zotbox ext allow %s fs.deny %s",
			   key, value, from->file, e->name,
			   zb_buf_str(&quoted));
	else if (from)
		zb_cmd_say("%s %s comes from %s, not from scope.json; to drop "
			   "what is inherited, edit scope.json: \"!reset\" as "
			   "the first element of the list",
			   key, value, from->file);
	zb_buf_done(&quoted);
	zb_chain_done(&c);
	return from;
}

static void report_unchanged(const struct edit *e)
{
	bool inherited = false;

	for (size_t i = 2; e->remove && i < e->args->n_args; i++)
		inherited = tell_inherited(e, e->args->arg[i]) || inherited;
	if (!e->remove)
		zb_cmd_say("%s: nothing to change: it %s already", e->path,
			   strcmp(deed(e), "allowed") ? "stands there"
						      : "is granted");
	else if (!inherited)
		zb_cmd_say("%s: nothing to change: %s does not have that "
			   "value in this spelling (see zotbox ext scope %s)",
			   e->path, e->args->arg[1], e->name);
}

static void report(const struct edit *e)
{
	struct zb_buf values = {0};

	add_values(e, &values);
	if (!e->changed && e->anew && !strcmp(e->args->arg[1], "fs.deny"))
		zb_cmd_say("%s: fs.deny%s stood there already, and denies now "
			   "where it leads today, no more where it led before; "
			   "it counts from the next start of %s",
			   e->path, zb_buf_str(&values), e->name);
	else if (!e->changed && e->anew)
		zb_cmd_say("%s: %s%s was granted already, and is now granted "
			   "where it leads today; it counts from the next "
			   "start of %s",
			   e->path, e->args->arg[1], zb_buf_str(&values),
			   e->name);
	else if (!e->changed)
		report_unchanged(e);
	else
		zb_cmd_say("%s: %s %s%s; it counts from the next start of %s",
			   e->path, deed(e), e->args->arg[1],
			   zb_buf_str(&values), e->name);
	for (size_t i = 2; !e->remove && i < e->args->n_args; i++)
		tell_worth(e, e->args->arg[i]);
	zb_buf_done(&values);
}

static int edit(const struct zb_args *a, bool remove)
{
	struct zb_error err = {0};
	struct zb_store store = {0};
	struct zb_found_list list = {0};
	const struct zb_found *f = NULL;
	struct edit e = {
		.store = &store,
		.args = a,
		.remove = remove,
		.mean_it = !remove && a->opt[OPT_MEAN_IT],
	};

	if (!zb_store_open(&store, &err)) {
		zb_recover(&store);
		if (!zb_discover(&list, &store, NULL, &err))
			zb_discover_installed(&list, a->arg[0], &f, &err);
	}
	if (!err.code) {
		e.name = f->name;
		e.path = zb_store_box(&store, f->name, "scope.json");
		if (!e.path)
			zb_fail(&err, ZB_ELIMIT, "out of memory");
		else if (!perform(&e, &err))
			report(&e);
		else
			zb_wrap(&err, "nothing was %s",
				remove ? "revoked" : "allowed");
	}
	zb_buf_done(&e.text);
	free(e.path);
	zb_found_list_done(&list);
	zb_store_done(&store);
	return err.code ? zb_cmd_fail(&err) : 0;
}

int zb_cmd_ext_allow(const struct zb_args *a)
{
	return edit(a, false);
}

int zb_cmd_ext_revoke(const struct zb_args *a)
{
	return edit(a, true);
}
