/* cmd_ext_why.c - zotbox ext why: may it, by which rule, and what would change
 * that.
 *
 * The plan is the one of the next start, the answer that of the evaluator which
 * enforcement asks as well. A path is followed first as it would be inside
 * (inside.h). A command is shown only if it was tried and would be taken. */
#include "cleanup.h"
#include "cmd.h"
#include "enforce.h"
#include "evaluator.h"
#include "grant.h"
#include "hostfs.h"
#include "inside.h"
#include "json_scan.h"
#include "path_match.h"
#include "proto.h"
#include "question.h"
#include "scope.h"
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	OPT_POLICY,
	OPT_SCOPE,
	OPT_JSON
};

#define SCOPE_MAX ((size_t)1 << 20)

struct why {
	struct zb_question q;
	const struct zb_args *args;
	enum zb_op op;
	const char *word; /* of the command line, for the target */
	char *detail;	  /* proto.VERB, limit.NAME: what is behind the dot */
	char *target;	  /* as the evaluator wants it */
	struct zb_inside in; /* fs.*, and net.unix with a path */
	bool is_path, is_shell;
	struct zb_answer a;
	char *command; /* that would allow it */
	char *cannot;  /* why there is none */
	struct zb_strv notes;
};

static void why_done(struct why *w)
{
	zb_answer_done(&w->a);
	zb_inside_done(&w->in);
	zb_strv_done(&w->notes);
	free(w->detail);
	free(w->target);
	free(w->command);
	free(w->cannot);
	zb_question_done(&w->q);
}

static int no_memory(struct zb_error *err)
{
	return zb_fail(err, ZB_ELIMIT, "out of memory");
}

/* ---- what is asked ------------------------------------------------------- */

/* Every operation that has an answer; a word to the others. */
static int find_op(struct why *w, const char *word, struct zb_error *err)
{
	static const char *const names[] = {
		"fs.read",    "fs.write", "fs.create", "fs.delete",
		"fs.rename",  "fs.exec",  "fs.meta",   "net.connect",
		"net.listen", "net.dns",  "net.unix",  "syscall",
		"env",	      "proto",	  "limit",     "integrity",
		NULL};
	zb_auto(free) char *head = NULL;
	size_t n = 0;
	const char *near;

	if (!strncmp(word, "proto.", 6) || !strncmp(word, "limit.", 6)) {
		n = 5;
		w->detail = zb_strdup(word + 6);
	} else {
		n = strlen(word);
	}
	head = zb_strndup(word, n);
	if (!head || (word[n] && !w->detail))
		return no_memory(err);
	if (!strcmp(head, "hello"))
		return zb_fail(err, ZB_EUSAGE,
			       "no policy decides about hello: a start that "
			       "does not say it within limits.hello_seconds "
			       "is ended; ask for limit.hello_seconds");
	if (zb_op_from_name(head, &w->op))
		return 0;
	near = zb_nearest(word, names);
	return zb_fail(err, ZB_EUSAGE, "unknown operation \"%s\"; %s%s%s", word,
		       near ? "did you mean "
			    : "there are fs.read fs.write "
			      "fs.create fs.delete fs.rename "
			      "fs.exec fs.meta net.connect "
			      "net.listen net.dns net.unix "
			      "syscall env proto.VERB "
			      "limit.NAME integrity",
		       near ? near : "", near ? "?" : "");
}

/* Operations on a name, not on what it leads to. */
static bool is_name_op(enum zb_op op)
{
	return op == ZB_OP_FS_CREATE || op == ZB_OP_FS_DELETE ||
	       op == ZB_OP_FS_RENAME;
}

/* PATH as it is inside; without one, as it is here. */
static const char *path_variable(const struct why *w)
{
	const struct zb_plan *p = &w->q.prep.plan;
	const char *path = getenv("PATH");

	for (size_t i = 0; i < p->n_env; i++)
		if (!strcmp(p->env[i].name, "PATH"))
			path = p->env[i].value;
	return path ? path : "";
}

/* A bare program is looked up in PATH, as it would be when it is started and as
 * fs.exec names it; anything else is a path from where the user is. */
static int find_path(struct why *w, struct zb_error *err)
{
	zb_auto(free) char *path = NULL;
	bool follow = !is_name_op(w->op);

	if (!*w->word)
		return zb_fail(err, ZB_EUSAGE, "an empty path leads nowhere");
	if (w->op == ZB_OP_FS_EXEC && !strchr(w->word, '/'))
		path = zb_host_which(w->word, path_variable(w), NULL);
	if (!path)
		path = zb_question_path(&w->q, w->word);
	if (!path || path[0] != '/')
		return zb_fail(err, ZB_EUSAGE,
			       "not an absolute path: %s; start it with /, ~/ "
			       "or a variable like ${project}",
			       w->word);
	w->is_path = true;
	if (zb_inside(&w->q.prep.plan, path, follow, zb_facts_look, NULL,
		      &w->in) ||
	    !(w->target = zb_strdup(w->in.path)))
		return no_memory(err);
	return 0;
}

/* "HOST:PORT", the port a number. */
static int find_address(struct why *w, struct zb_error *err)
{
	const char *colon = strrchr(w->word, ':');

	if (!colon || colon == w->word || !colon[1] ||
	    colon[1 + strspn(colon + 1, "0123456789")])
		return zb_fail(err, ZB_EUSAGE,
			       "write HOST:PORT, an IPv6 address in brackets, "
			       "not \"%s\"",
			       w->word);
	w->target = zb_strdup(w->word);
	return w->target ? 0 : no_memory(err);
}

/* proto.VERB NAME and limit.NAME AMOUNT, joined as records have them. */
static int join(struct why *w, struct zb_error *err)
{
	size_t n = w->detail ? strlen(w->detail) : 0;

	if (!w->detail)
		w->target = zb_strdup(w->word);
	else if (!*w->word || !strcmp(w->word, w->detail))
		w->target = zb_strdup(w->detail);
	else if (!strncmp(w->word, w->detail, n) && w->word[n] == ':')
		w->target = zb_strdup(w->word);
	else
		w->target = zb_strf("%s:%s", w->detail, w->word);
	return w->target ? 0 : no_memory(err);
}

static int find_limit(struct why *w, struct zb_error *err)
{
	const char *names[ZB_LIMIT_COUNT + 1] = {NULL};
	zb_auto(free) char *name = NULL;
	const char *colon, *near;
	uint64_t amount;
	int rc = join(w, err);

	if (rc)
		return rc;
	colon = strchr(w->target, ':');
	name = zb_strndup(w->target, strcspn(w->target, ":"));
	for (unsigned l = 0; l < ZB_LIMIT_COUNT; l++)
		names[l] = zb_limit_name((enum zb_limit)l);
	for (unsigned l = 0; name && l < ZB_LIMIT_COUNT; l++)
		if (!strcmp(names[l], name))
			return colon && zb_parse_size(colon + 1, &amount)
				       ? 0
				       : zb_fail(err, ZB_EUSAGE,
						 "ask with an amount: limit.%s "
						 "100, or a size like 512M",
						 name);
	near = name ? zb_nearest(name, names) : NULL;
	return zb_fail(err, ZB_EUSAGE, "no such limit: %s%s%s%s",
		       name ? name : "", near ? "; did you mean " : "",
		       near ? near : "", near ? "?" : "");
}

/* Verbs that hand the user's host a text: what the text says decides first. A
 * slash command has a verb of its own. */
static int check_text(struct why *w, enum zb_verb verb, struct zb_error *err)
{
	const char *text = strchr(w->target, ':');
	enum zb_text_kind kind =
		text ? zb_text_kind(text + 1, strlen(text + 1)) : ZB_TEXT_PLAIN;

	if (verb != ZB_VERB_PROMPT && verb != ZB_VERB_INSERT &&
	    verb != ZB_VERB_SUBMIT)
		return 0;
	w->is_shell = kind == ZB_TEXT_SHELL;
	if (kind == ZB_TEXT_SLASH)
		return zb_fail(err, ZB_EUSAGE,
			       "text that is a slash command needs the grant "
			       "of that as well: ask for proto.slash NAME");
	return 0;
}

static int find_verb(struct why *w, struct zb_error *err)
{
	const char *names[ZB_VERB_COUNT + 1] = {NULL};
	zb_auto(free) char *verb = NULL;
	const char *near;
	int rc = join(w, err);

	if (rc)
		return rc;
	verb = zb_strndup(w->target, strcspn(w->target, ":"));
	for (unsigned v = 0; v < ZB_VERB_COUNT; v++) {
		names[v] = zb_verb_name((enum zb_verb)v);
		if (verb && !strcmp(verb, names[v]))
			return check_text(w, (enum zb_verb)v, err);
	}
	near = verb ? zb_nearest(verb, names) : NULL;
	return zb_fail(err, ZB_EUSAGE, "no such verb: %s%s%s%s",
		       verb ? verb : "", near ? "; did you mean " : "",
		       near ? near : "", near ? "?" : "");
}

static int find_target(struct why *w, struct zb_error *err)
{
	switch (w->op) {
	case ZB_OP_NET_CONNECT:
	case ZB_OP_NET_LISTEN:
		return find_address(w, err);
	case ZB_OP_NET_UNIX:
		if (w->word[0] != '@')
			return find_path(w, err);
		break;
	case ZB_OP_PROTO:
		return find_verb(w, err);
	case ZB_OP_LIMIT:
		return find_limit(w, err);
	case ZB_OP_FS_READ:
	case ZB_OP_FS_WRITE:
	case ZB_OP_FS_CREATE:
	case ZB_OP_FS_DELETE:
	case ZB_OP_FS_RENAME:
	case ZB_OP_FS_EXEC:
	case ZB_OP_FS_META:
		return find_path(w, err);
	case ZB_OP_NET_DNS:
	case ZB_OP_SYSCALL:
	case ZB_OP_ENV:
	case ZB_OP_INTEGRITY:
	case ZB_OP_HELLO:
	case ZB_OP_COUNT:
		break;
	}
	if (!*w->word && w->op != ZB_OP_INTEGRITY)
		return zb_fail(err, ZB_EUSAGE, "%s of what? Name a target",
			       zb_op_name(w->op));
	w->target = zb_strdup(w->word);
	return w->target ? 0 : no_memory(err);
}

/* ---- the answer ---------------------------------------------------------- */

static void note(struct why *w, const char *text)
{
	zb_strv_add(&w->notes, text);
}

/* What the broker asks the host: hidden, or not there at all? */
static bool host_has(const char *path)
{
	struct zb_path_fact fact;

	zb_facts_look(NULL, path, &fact);
	free(fact.link);
	return fact.exists || fact.is_link;
}

static bool parent_is_there(const struct why *w)
{
	zb_auto(free) char *dir = zb_path_dir(w->in.path);
	struct zb_inside in = {0};
	bool there = !dir ||
		     zb_inside(&w->q.prep.plan, dir, true, zb_facts_look, NULL,
			       &in) ||
		     in.is_dir;

	zb_inside_done(&in);
	return there;
}

static void note_path(struct why *w)
{
	bool denied = w->a.verdict == ZB_DENY;

	if (w->in.no_dir) {
		w->a.err_no = denied ? ENOTDIR : 0;
		note(w, "a slash behind what is no directory: the attempt "
			"fails by itself, and leaves no record");
	}
	if (w->in.magic)
		note(w, "a path through /proc: what it leads to decides, which "
			"only a process inside could tell; a refusal leaves a "
			"record only if it is the process's own descriptor "
			"that is opened again");
	if (denied && zb_plan_is_quiet(&w->q.prep.plan, w->target))
		note(w, "programs of this kind look for it: it leaves no "
			"record");
	else if (denied && w->op != ZB_OP_FS_CREATE && !w->in.exists &&
		 !host_has(w->target))
		note(w, "this host has nothing there either: an attempt fails "
			"and leaves no record");
	if (!denied && !w->in.exists && !is_name_op(w->op))
		note(w, "there is nothing there: the attempt fails by itself");
	if (!denied && !w->in.exists && is_name_op(w->op) &&
	    !parent_is_there(w))
		note(w, "its directory is not there: the attempt fails by "
			"itself");
	if (!denied && w->in.exists && w->op == ZB_OP_FS_CREATE)
		note(w, "it is there already: the attempt fails by itself");
	if (!denied && w->in.exists && w->op == ZB_OP_FS_WRITE && w->in.is_dir)
		note(w, "it is a directory: what is made in it is asked for "
			"as fs.create");
}

/* System calls are the filter's, not the scope's. */
static void judge_call(struct why *w)
{
	const struct zb_backend *b = zb_backend_native();
	enum zb_call_fate fate = b->call ? b->call(w->target) : ZB_CALL_ABSENT;

	if (fate == ZB_CALL_REFUSED)
		return;
	w->a.verdict = fate == ZB_CALL_ABSENT ? ZB_DENY : ZB_ALLOW;
	w->a.err_no = fate == ZB_CALL_ABSENT ? ENOSYS : 0;
	free(w->a.rule);
	if (fate == ZB_CALL_ABSENT) {
		w->a.rule = zb_strdup("built in: the filter knows no such "
				      "call, or closes it to all");
		note(w, "what is not in the filter's list leaves no record");
		return;
	}
	w->a.rule = zb_strdup(fate == ZB_CALL_PASSES
				      ? "built in: the filter lets it pass"
				      : "built in: its arguments decide");
	if (fate == ZB_CALL_JUDGED)
		note(w, "ask for what it does: fs.*, net.*");
}

/* The plan was made, so the code is what was installed. */
static void judge_integrity(struct why *w)
{
	w->a = (struct zb_answer){
		.verdict = ZB_ALLOW,
		.place = -1,
		.rule = zb_strdup(w->q.name
					  ? "lock.json: the code is what was "
					    "installed"
					  : "built in: what is run by its path "
					    "has no lock"),
	};
}

/* The mediator's, whatever a scope says. */
static void judge_shell(struct why *w)
{
	w->a = (struct zb_answer){
		.verdict = ZB_DENY,
		.place = -1,
		.rule = zb_strdup("built in: text that starts with `!` runs in "
				  "the user's shell"),
		.why_not = zb_strdup("`!` commands have no grant: they are "
				     "your shell"),
	};
}

static bool has_variable(const struct zb_plan *p, const char *name)
{
	for (size_t i = 0; i < p->n_env; i++)
		if (!strcmp(p->env[i].name, name))
			return true;
	return false;
}

static void judge(struct why *w)
{
	struct zb_query q = {
		.op = w->op,
		.target = w->target,
		.place = -1,
		.is_dir = w->in.is_dir,
		.exists = w->in.exists,
	};

	if (w->op == ZB_OP_INTEGRITY || w->is_shell) {
		if (w->is_shell)
			judge_shell(w);
		else
			judge_integrity(w);
		return;
	}
	zb_evaluate(&w->q.prep.plan, &q, &w->a);
	if (w->op == ZB_OP_SYSCALL)
		judge_call(w);
	if (w->is_path)
		note_path(w);
	if (w->op == ZB_OP_ENV && w->a.verdict != ZB_DENY &&
	    !has_variable(&w->q.prep.plan, w->target))
		note(w, "it is not set where this was asked: where it is, it "
			"passes");
	if (w->op == ZB_OP_NET_UNIX && w->target[0] == '@')
		note(w, "where the host has no socket of this name, an attempt "
			"leaves no record");
	if (w->op == ZB_OP_NET_CONNECT && w->a.err_no == ECONNREFUSED)
		note(w, "what the extension itself listens on inside can be "
			"reached");
}

/* Would `ext allow` take it? It is asked as that asks. */
static int try_grant(struct why *w, const struct zb_wish *wish,
		     struct zb_error *why)
{
	zb_auto(free) char *path =
		zb_store_box(&w->q.store, w->q.name, "scope.json");
	struct zb_buf now = {0}, then = {0};
	bool changed = false;
	int rc = path ? zb_read_file(path, SCOPE_MAX, &now, why)
		      : no_memory(why);

	if (!rc)
		rc = zb_scope_edit(&then, "scope.json", zb_buf_str(&now),
				   now.len, wish->key, wish->value, false,
				   false, &changed, why);
	if (!rc)
		rc = zb_grant_try(&w->q.store, w->q.name, &then, NULL, false,
				  false, why);
	zb_buf_done(&now);
	zb_buf_done(&then);
	return rc;
}

static void find_command(struct why *w)
{
	struct zb_wish wish = {.key = w->a.grant_key,
			       .value = w->a.grant_value};
	struct zb_error why = {0};
	struct zb_buf b = {0};

	if (w->a.verdict != ZB_DENY)
		return;
	if (!wish.key) {
		w->cannot = zb_strdup(w->a.why_not ? w->a.why_not
						   : "no scope grants it");
	} else if (!w->q.name) {
		zb_buf_addf(&b,
			    "it is not installed: name %s in a scope file "
			    "(--scope)",
			    wish.key);
		w->cannot = zb_buf_steal(&b);
	} else if (try_grant(w, &wish, &why)) {
		w->cannot = zb_strdup(why.msg);
	} else if (zb_wish_command(w->q.name, &wish, &b)) {
		w->cannot = zb_strdup("its name cannot be shown in a command");
	} else {
		w->command = zb_buf_steal(&b);
	}
	zb_buf_done(&b);
}

/* ---- said ---------------------------------------------------------------- */

/* Who carries an allowed one out, or who refuses it. */
static const char *by_whom(const struct why *w)
{
	if (w->op == ZB_OP_PROTO)
		return "mediator";
	if (w->op == ZB_OP_LIMIT || w->op == ZB_OP_ENV)
		return "supervisor";
	if (w->op == ZB_OP_INTEGRITY)
		return "lock";
	if (w->op == ZB_OP_SYSCALL)
		return "seccomp";
	if (w->a.verdict == ZB_ALLOW)
		return "floor (mount, Landlock)";
	return "broker";
}

static void add(struct zb_buf *out, const char *label, const char *text)
{
	zb_buf_addf(out, "  %s: ", label);
	zb_cmd_visible(out, text, strlen(text));
	zb_buf_addc(out, '\n');
}

static void add_path(const struct why *w, struct zb_buf *out)
{
	struct zb_buf b = {0};

	zb_text_escape(&b, w->in.path, strlen(w->in.path), 0);
	add(out, "path", zb_buf_str(&b));
	zb_buf_done(&b);
}

static void print_text(const struct why *w, struct zb_buf *out)
{
	const char *e = w->a.err_no ? zb_errno_name(w->a.err_no) : NULL;
	struct zb_buf origin = {0};

	zb_buf_addf(out, "%s %s%s%s",
		    w->a.verdict == ZB_DENY ? "denied" : "allowed",
		    zb_op_name(w->op), w->detail ? "." : "",
		    w->detail ? w->detail : "");
	if (*w->word)
		zb_buf_addc(out, ' ');
	zb_text_escape(out, w->word, strlen(w->word), 0);
	zb_buf_addc(out, '\n');
	if (w->is_path && strcmp(w->in.path, w->word) != 0)
		add_path(w, out);
	add(out, "rule", w->a.rule ? w->a.rule : "");
	zb_origin_line(w->a.origin, &origin);
	if (w->a.origin)
		add(out, "from", zb_buf_str(&origin));
	zb_buf_done(&origin);
	if (w->a.verdict == ZB_DENY && e)
		add(out, "the program gets", e);
	add(out, w->a.verdict == ZB_DENY ? "refused by" : "enforced by",
	    by_whom(w));
	if (w->a.verdict == ZB_DENY && w->a.floor != ZB_FLOOR_NONE)
		add(out, "behind it", zb_floor_name(w->a.floor));
	for (size_t i = 0; i < w->notes.n; i++)
		add(out, "note", w->notes.v[i]);
	if (w->command)
		add(out, "to allow", w->command);
	if (w->cannot && w->a.grant_key && !w->q.name) {
		zb_buf_addf(out, "  to allow: \"%s\": ", w->a.grant_key);
		zb_json_quote(out, w->a.grant_value, strlen(w->a.grant_value));
		zb_buf_adds(out, " in a scope file, with --scope\n");
	} else if (w->cannot) {
		add(out, zb_no_command_label(w->cannot), w->cannot);
	}
}

static void member(struct zb_buf *out, const char *key, const char *value)
{
	zb_buf_addf(out, ",\"%s\":", key);
	zb_json_quote_or_null(out, value);
}

static void print_json(const struct why *w, struct zb_buf *out)
{
	bool denied = w->a.verdict == ZB_DENY;

	zb_buf_addf(out, "{\"v\":1,\"allowed\":%s", denied ? "false" : "true");
	member(out, "ext", w->q.prep.plan.name);
	zb_buf_addf(out, ",\"op\":\"%s%s", zb_op_name(w->op),
		    w->detail ? "." : "");
	if (w->detail)
		zb_buf_adds(out, w->detail); /* one of a closed list */
	zb_buf_addc(out, '"');
	member(out, "asked", w->word);
	member(out, "target", w->target);
	if (w->is_path)
		zb_buf_addf(out, ",\"exists\":%s",
			    w->in.exists ? "true" : "false");
	member(out, "rule", w->a.rule);
	zb_buf_adds(out, ",\"origin\":");
	zb_origin_json(w->a.origin, out);
	member(out, "by", by_whom(w));
	if (denied) {
		member(out, "errno",
		       w->a.err_no ? zb_errno_name(w->a.err_no) : NULL);
		member(out, "floor", zb_floor_name(w->a.floor));
		zb_buf_adds(out, ",\"grant\":");
		if (w->a.grant_key && (w->command || !w->q.name)) {
			zb_buf_adds(out, "{\"key\":");
			zb_json_quote(out, w->a.grant_key,
				      strlen(w->a.grant_key));
			member(out, "value", w->a.grant_value);
			zb_buf_addc(out, '}');
		} else {
			zb_buf_adds(out, "null");
		}
		member(out, "command", w->command);
		member(out, "cannot", w->cannot);
	}
	zb_buf_adds(out, ",\"notes\":[");
	for (size_t i = 0; i < w->notes.n; i++) {
		zb_buf_adds(out, i ? "," : "");
		zb_json_quote(out, w->notes.v[i], strlen(w->notes.v[i]));
	}
	zb_buf_adds(out, "]}\n");
}

int zb_cmd_ext_why(const struct zb_args *a)
{
	struct why w = {.args = a, .word = a->n_args > 2 ? a->arg[2] : ""};
	struct zb_error err = {0};
	struct zb_buf out = {0};
	int rc = 0;

	if (!find_op(&w, a->arg[1], &err) &&
	    !zb_question_open(&w.q, a->arg[0], &err) &&
	    !zb_question_prepare(&w.q, a->opt[OPT_POLICY], a->opt[OPT_SCOPE],
				 &err) &&
	    !find_target(&w, &err)) {
		judge(&w);
		find_command(&w);
		if (a->opt[OPT_JSON])
			print_json(&w, &out);
		else
			print_text(&w, &out);
		rc = out.failed || zb_cmd_out(zb_buf_str(&out), out.len) ? 1
		     : w.a.verdict == ZB_DENY				 ? 3
									 : 0;
	}
	zb_buf_done(&out);
	why_done(&w);
	return err.code ? zb_cmd_fail(&err) : rc;
}
