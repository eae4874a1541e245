/* cmd_console.c - zotbox console: a script plays the agent.
 *
 * One line at a time: a verb that waits (call, cmd, intercept, reload, sleep)
 * keeps the next line back until it is done, unless its line ended in " &".
 * What reaches the agent or the user becomes one line on stdout each:
 *
 *	H: EXT TYPE JSON @seconds
 *
 * where JSON is the frame without type and id. Descriptor 0 is read on a
 * worker thread with a plain read(2): it may be a terminal, a file, or a pipe
 * shared with others, and must not be made non-blocking. On a terminal the
 * same verbs are read as lines. */
#include "agent.h"
#include "cleanup.h"
#include "cmd.h"
#include "config.h"
#include "console_script.h"
#include "discover.h"
#include "host_frames.h"
#include "text.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES ((size_t)16 << 20)
#define READ_BYTES     65536
#define RECORDS_MS     100

enum {
	O_POLICY,
	O_SCOPE,
	O_CWD,
	O_JSON,
	O_YES,
	O_MEAN_IT,
};
const struct zb_option zb_console_options[] = {
	[O_POLICY] = {"policy", 0, ZB_ARG_VALUE, "NAME|FILE",
		      "base policy; strict for paths, what is stored for "
		      "installed names",
		      false},
	[O_SCOPE] = {"scope", 0, ZB_ARG_VALUE, "FILE",
		     "scope file laid over the policy", false},
	[O_CWD] = {"cwd", 0, ZB_ARG_VALUE, "DIR",
		   "the project directory; default: the current one", false},
	[O_JSON] = {"json", 0, ZB_ARG_NONE, NULL,
		    "print the JSON objects alone", false},
	[O_YES] = {"yes", 'y', ZB_ARG_NONE, NULL, "answer yes to questions",
		   false},
	[O_MEAN_IT] = {"yes-i-mean-it", 0, ZB_ARG_NONE, NULL,
		       "accept grants that open very much", false},
	{0},
};

const char zb_console_more[] =
	"An EXT with a slash is a path, else an installed name; without any, "
	"every installed extension that is enabled.\n"
	"Verbs, one a line on stdin: /NAME ARGS, cmd NAME ARGS, call TOOL "
	"JSON, intercept EVENT JSON, event EVENT JSON, key PANEL KEY [TEXT], "
	"panel_close PANEL, reload [NAME], kill NAME SIG, sleep S, idle, "
	"tools, commands, exts, denials [NAME], shutdown. \" &\" at the end of "
	"a line does not wait for it. End of input waits for what was "
	"detached, then shuts down.\n"
	"Exit: 2 a bad line; 3 or 4 if nothing could start; 1 an unknown tool "
	"or command, a timeout, an extension that died or failed to load; an "
	"error result, a block and a denial are 0.";

struct console {
	uv_loop_t loop;
	struct zb_store store;
	struct zb_host host;
	struct zb_agent *agent;
	char *project;
	const struct zb_args *args;
	struct zb_strv names; /* of installed ones, when none was given */
	uint64_t start_ns;
	bool json;

	/* Input. */
	uv_fs_t read;
	char *room;
	struct zb_buf input;
	size_t taken; /* of @input */
	unsigned long line;
	bool eof, reading;

	/* Progress. */
	bool settled, busy, pumping, closing, closed, out_failed;
	unsigned detached;
	uv_timer_t sleep;
	size_t show_from, show_to; /* members whose denials are wanted */
	uv_signal_t signals[3];
	int signo;	  /* that ended us */
	int failed;	  /* exit code so far */
	size_t reloading; /* member, or ZB_NOBODY for all */
	bool reload_busy, reload_waits;
	size_t stopped;
};

static void next_lines(struct console *c);

/* ---- output ---- */

static void put(struct console *c, const char *ext, const char *type,
		const char *json)
{
	uint64_t ms = (uv_hrtime() - c->start_ns) / 1000000;
	struct zb_buf line = {0};

	if (c->out_failed)
		return;
	if (c->json)
		zb_buf_addf(&line, "%s\n", json);
	else
		zb_buf_addf(&line, "H: %s %s %s @%llu.%03llu\n", ext, type,
			    json, (unsigned long long)ms / 1000,
			    (unsigned long long)ms % 1000);
	if (zb_cmd_out(zb_buf_str(&line), line.len)) {
		c->out_failed = true;
		c->failed = 1;
		c->closing = true;
		zb_agent_shutdown(c->agent);
	}
	zb_buf_done(&line);
}

static const char *name_of(const struct console *c, size_t member)
{
	const char *name;

	if (member == ZB_NOBODY)
		return "-";
	name = zb_agent_member(c->agent, member)->name;
	/* An extension whose manifest was not read may be called anything. */
	return zb_name_valid(name) ? name : "-";
}

/* A line without type and id, from a frame. */
static void put_frame(struct console *c, size_t member, const char *type,
		      const char *line, size_t len)
{
	struct zb_buf rest = {0};

	if (!zb_frame_rest(&rest, line, len))
		put(c, name_of(c, member), type, zb_buf_str(&rest));
	zb_buf_done(&rest);
}

/* {"error":"..."} */
static void put_error(struct console *c, size_t member, const char *type,
		      const char *text)
{
	struct zb_buf json = {0}, line = {0};

	zb_buf_adds(&line, "{\"error\":");
	zb_json_quote(&line, text, strlen(text));
	zb_buf_addc(&line, '}');
	if (!zb_frame_rest(&json, zb_buf_str(&line), line.len))
		put(c, name_of(c, member), type, zb_buf_str(&json));
	zb_buf_done(&json);
	zb_buf_done(&line);
}

static void fail(struct console *c, int code)
{
	if (!c->failed)
		c->failed = code;
}

/* To stderr, named once. */
static void tell(struct console *c, size_t member, const char *text)
{
	const char *name = zb_agent_member(c->agent, member)->name;
	size_t n = strlen(name);

	if (!strncmp(text, name, n) && (text[n] == ' ' || text[n] == ':'))
		zb_cmd_say("%s", text);
	else
		zb_cmd_say("%s: %s", name, text);
}

/* ---- what the agent reports ---- */

static void on_frame(void *ctx, size_t member, const char *type,
		     const char *line, size_t len)
{
	put_frame(ctx, member, type, line, len);
}

static void on_denied(void *ctx, size_t member, const struct zb_denial *d)
{
	struct zb_buf json = {0};

	if (!zb_denial_json(d, &json))
		put_frame(ctx, member, "denied", zb_buf_str(&json), json.len);
	zb_buf_done(&json);
}

static void on_say(void *ctx, size_t member, const char *text)
{
	tell(ctx, member, text);
}

static void put_exit(struct console *c, size_t member,
		     const struct zb_member *m)
{
	struct zb_buf json = {0}, line = {0};

	zb_buf_addf(&line, "{\"%s\":%d,\"error\":",
		    m->exit.signalled ? "signal" : "status", m->exit.code);
	zb_json_quote(&line, m->problem, strlen(m->problem));
	zb_buf_addc(&line, '}');
	if (!zb_frame_rest(&json, zb_buf_str(&line), line.len))
		put(c, name_of(c, member), "exit", zb_buf_str(&json));
	zb_buf_done(&json);
	zb_buf_done(&line);
}

static void on_changed(void *ctx, size_t member)
{
	struct console *c = ctx;
	const struct zb_member *m = zb_agent_member(c->agent, member);

	if (m->state != ZB_MEMBER_GONE || !m->problem)
		return;
	tell(c, member, m->problem);
	/* Why it could not start at all is the exit code only if nothing did:
	 * on_settled() decides. */
	if (m->code == ZB_OK || c->settled)
		fail(c, 1);
	if (m->said_hello)
		put_exit(c, member, m);
	else
		put_error(c, member, "load_error", m->problem);
}

/* Nothing at all could be started: no use in going on. */
static bool nothing_started(struct console *c)
{
	size_t n = zb_agent_count(c->agent);

	for (size_t i = 0; i < n; i++)
		if (zb_agent_member(c->agent, i)->code == ZB_OK)
			return false;
	if (n)
		fail(c, zb_exit_code(zb_agent_member(c->agent, 0)->code));
	return n > 0;
}

static void put_reload(struct console *c);

static void on_settled(void *ctx)
{
	struct console *c = ctx;
	bool first = !c->settled;

	c->settled = true;
	if (first && nothing_started(c) && !zb_agent_has_guard(c->agent)) {
		c->closing = true;
		zb_agent_shutdown(c->agent);
		return;
	}
	for (size_t i = 0; first && i < zb_agent_count(c->agent); i++)
		if (zb_agent_member(c->agent, i)->code != ZB_OK)
			fail(c, 1);
	if (c->reload_busy)
		put_reload(c);
	next_lines(c);
}

static void on_closed(void *ctx)
{
	struct console *c = ctx;

	c->closed = true;
	uv_stop(&c->loop);
}

static const struct zb_agent_ops agent_ops = {
	.frame = on_frame,
	.denied = on_denied,
	.say = on_say,
	.changed = on_changed,
	.settled = on_settled,
	.closed = on_closed,
};

/* ---- verbs that wait ---- */

/* One question under way. */
struct question {
	struct console *c;
	bool detached;
};

static struct question *begin(struct console *c, const struct zb_script_line *l)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->c = c;
	q->detached = l->detached;
	if (l->detached)
		c->detached++;
	else
		c->busy = true;
	return q;
}

static void done(struct question *q)
{
	struct console *c = q->c;

	if (q->detached)
		c->detached--;
	else
		c->busy = false;
	free(q);
	next_lines(c);
}

static void put_failure(struct console *c, const struct zb_agent_reply *r)
{
	if (r->how == ZB_REPLY_CANCELLED)
		return;
	if (r->how != ZB_REPLY_BUILTIN) {
		fail(c, 1);
		put_error(c, r->member, "error", r->why);
		return;
	}
	put_error(c, ZB_NOBODY, "builtin", r->why);
}

static void on_result(void *ctx, const struct zb_agent_reply *r)
{
	struct question *q = ctx;

	if (r->how == ZB_REPLY_OK)
		put_frame(q->c, r->member, "result", r->line, r->len);
	else
		put_failure(q->c, r);
	done(q);
}

static void on_response(void *ctx, const struct zb_agent_reply *r)
{
	struct question *q = ctx;
	zb_auto(free) char *action = NULL;

	if (r->how == ZB_REPLY_OK) {
		action = zb_frame_string(r->line, r->len, "action");
		put_frame(q->c, r->member, action && *action ? action : "noop",
			  r->line, r->len);
	} else {
		put_failure(q->c, r);
	}
	done(q);
}

static void on_verdict(void *ctx, const struct zb_agent_verdict *v)
{
	struct question *q = ctx;
	struct zb_buf line = {0}, json = {0};
	const char *comma = "";
	bool tell_all = v->n_opinions > 1;

	zb_buf_addc(&line, '{');
	if (v->block) {
		zb_buf_adds(&line, "\"block\":true");
		comma = ",";
	}
	if (v->reason) {
		zb_buf_addf(&line, "%s\"reason\":", comma);
		zb_json_quote(&line, v->reason, strlen(v->reason));
		comma = ",";
	}
	if (v->rewrite) {
		zb_buf_addf(&line, "%s\"%s\":", comma, v->key);
		zb_buf_adds(&line, v->rewrite);
		comma = ",";
	}
	for (size_t i = 0; i < v->n_opinions; i++)
		if (strcmp(v->opinions[i].outcome, "allow") &&
		    strcmp(v->opinions[i].outcome, "block") &&
		    strcmp(v->opinions[i].outcome, "rewrite"))
			tell_all = true;
	for (size_t i = 0; tell_all && i < v->n_opinions; i++)
		zb_buf_addf(&line,
			    "%s{\"extension\":\"%s\",\"outcome\":\"%s\"}",
			    i	       ? ","
			    : comma[0] ? ",\"by\":["
				       : "\"by\":[",
			    name_of(q->c, v->opinions[i].member),
			    v->opinions[i].outcome);
	zb_buf_adds(&line, tell_all ? "]}" : "}");
	if (!zb_frame_rest(&json, zb_buf_str(&line), line.len))
		put(q->c, name_of(q->c, v->by), v->block ? "block" : "allow",
		    zb_buf_str(&json));
	zb_buf_done(&line);
	zb_buf_done(&json);
	done(q);
}

static void on_slept(uv_timer_t *t)
{
	struct console *c = t->data;

	c->busy = false;
	next_lines(c);
}

/* ---- verbs ---- */

static void unknown_name(struct console *c, const char *what, const char *name)
{
	struct zb_buf text = {0};

	zb_buf_addf(&text, "%s \"%s\"", what, name);
	put_error(c, ZB_NOBODY, "error", zb_buf_str(&text));
	zb_buf_done(&text);
	fail(c, 1);
}

/* The members that @name means (NULL: all): a range. */
static bool range_of(struct console *c, const char *name, size_t *from,
		     size_t *to)
{
	*from = 0;
	*to = zb_agent_count(c->agent);
	if (!name)
		return true;
	*from = zb_agent_find(c->agent, name);
	*to = *from + 1;
	if (*from != ZB_NOBODY)
		return true;
	unknown_name(c, "no extension", name);
	return false;
}

static void do_call(struct console *c, const struct zb_script_line *l)
{
	struct question *q = begin(c, l);

	if (q)
		zb_agent_call(c->agent, l->name, l->json, on_result, q);
}

static void do_command(struct console *c, const struct zb_script_line *l)
{
	struct question *q = begin(c, l);

	if (q)
		zb_agent_command(c->agent, l->name, l->text, on_response, q);
}

static void do_intercept(struct console *c, const struct zb_script_line *l)
{
	struct question *q = begin(c, l);

	if (q)
		zb_agent_intercept(c->agent, l->name, l->json, on_verdict, q);
}

static void do_event(struct console *c, const struct zb_script_line *l)
{
	zb_agent_event(c->agent, l->name, l->json);
}

static void do_key(struct console *c, const struct zb_script_line *l)
{
	if (zb_agent_panel_key(c->agent, l->name, l->key, l->text) == ZB_NOBODY)
		unknown_name(c, "no open panel", l->name);
}

static void do_panel_close(struct console *c, const struct zb_script_line *l)
{
	if (zb_agent_panel_close(c->agent, l->name) == ZB_NOBODY)
		unknown_name(c, "no open panel", l->name);
}

static void do_reload(struct console *c, const struct zb_script_line *l)
{
	size_t from, to;

	if (!range_of(c, l->name, &from, &to))
		return;
	c->reloading = l->name ? from : ZB_NOBODY;
	c->stopped = 0;
	for (size_t i = from; i < to; i++)
		c->stopped += zb_agent_member(c->agent, i)->ext != NULL;
	c->reload_busy = true;
	c->reload_waits = !l->detached;
	c->busy = c->reload_waits;
	if (l->detached)
		c->detached++;
	zb_agent_reload(c->agent, c->reloading);
}

static void put_reload(struct console *c)
{
	bool one = c->reloading != ZB_NOBODY;
	size_t from = one ? c->reloading : 0;
	size_t to = one ? from + 1 : zb_agent_count(c->agent);
	size_t loaded = 0, ready = 0;
	struct zb_buf errors = {0}, line = {0}, json = {0};

	for (size_t i = from; i < to; i++) {
		const struct zb_member *m = zb_agent_member(c->agent, i);

		loaded += m->ext != NULL;
		ready += m->ext && !m->ready_timeout;
		if (!m->problem)
			continue;
		zb_buf_adds(&errors, errors.len ? "," : "");
		zb_json_quote(&errors, m->problem, strlen(m->problem));
	}
	zb_buf_addf(&line,
		    "{\"stopped\":%zu,\"loaded\":%zu,\"ready\":%zu,"
		    "\"errors\":[",
		    c->stopped, loaded, ready);
	zb_buf_adds(&line, zb_buf_str(&errors));
	zb_buf_adds(&line, "]}");
	if (!zb_frame_rest(&json, zb_buf_str(&line), line.len))
		put(c, name_of(c, c->reloading), "reload", zb_buf_str(&json));
	zb_buf_done(&errors);
	zb_buf_done(&line);
	zb_buf_done(&json);
	c->reload_busy = false;
	if (c->reload_waits)
		c->busy = false;
	else
		c->detached--;
}

static void do_kill(struct console *c, const struct zb_script_line *l)
{
	struct zb_error err = {0};
	const struct zb_member *m;
	size_t i, to;

	if (!range_of(c, l->name, &i, &to))
		return;
	m = zb_agent_member(c->agent, i);
	if (!m->ext) {
		unknown_name(c, "not running:", l->name);
		return;
	}
	if (zb_extension_signal(m->ext, (int)l->number, &err)) {
		put_error(c, i, "error", err.msg);
		fail(c, 1);
	}
}

static void do_sleep(struct console *c, const struct zb_script_line *l)
{
	if (l->detached)
		return;
	c->busy = true;
	uv_timer_start(&c->sleep, on_slept, l->number, 0);
}

static void do_idle(struct console *c, const struct zb_script_line *l)
{
	(void)l;
	zb_agent_turn(c->agent);
}

static const char *state_word(enum zb_reg_state s)
{
	static const char *const words[] = {"active", "shadowed", "builtin",
					    "deferred", "late"};

	return words[s];
}

static void member(struct zb_buf *out, const char *key, const char *value)
{
	zb_buf_addf(out, "%s\"%s\":", out->len > 1 ? "," : "", key);
	if (value)
		zb_json_quote(out, value, strlen(value));
	else
		zb_buf_adds(out, "null");
}

static void put_object(struct console *c, size_t m, const char *type,
		       struct zb_buf *object)
{
	struct zb_buf json = {0};

	zb_buf_addc(object, '}');
	if (!zb_frame_rest(&json, zb_buf_str(object), object->len))
		put(c, name_of(c, m), type, zb_buf_str(&json));
	zb_buf_done(&json);
	zb_buf_clear(object);
}

static void do_tools(struct console *c, const struct zb_script_line *l)
{
	const struct zb_registry *r = zb_agent_registry(c->agent);
	struct zb_buf b = {0};
	size_t by = 0;

	(void)l;
	for (size_t m = 0; m < r->n; m++) {
		for (size_t i = 0; i < r->members[m].n_tools; i++) {
			const struct zb_reg_tool *t = &r->members[m].tools[i];
			enum zb_reg_state s =
				zb_registry_tool_state(r, m, i, &by);

			if (r->members[m].gone)
				continue;
			zb_buf_addc(&b, '{');
			member(&b, "name", t->name);
			member(&b, "description", t->description);
			zb_buf_addf(&b, ",\"schema\":%s", t->schema);
			zb_buf_addf(&b, ",\"deferred\":%s,\"active\":%s",
				    t->deferred ? "true" : "false",
				    s == ZB_REG_ACTIVE ? "true" : "false");
			member(&b, "state", state_word(s));
			if (s == ZB_REG_SHADOWED)
				member(&b, "by", r->members[by].name);
			put_object(c, m, "tool", &b);
		}
	}
	zb_buf_done(&b);
}

static void do_commands(struct console *c, const struct zb_script_line *l)
{
	const struct zb_registry *r = zb_agent_registry(c->agent);
	struct zb_buf b = {0};
	size_t by = 0;

	(void)l;
	for (size_t m = 0; m < r->n; m++) {
		for (size_t i = 0; i < r->members[m].n_commands; i++) {
			const struct zb_reg_command *cmd =
				&r->members[m].commands[i];
			enum zb_reg_state s =
				zb_registry_command_state(r, m, i, &by);

			if (r->members[m].gone)
				continue;
			zb_buf_addc(&b, '{');
			member(&b, "name", cmd->name);
			member(&b, "description", cmd->description);
			zb_buf_addf(&b, ",\"shadowed\":%s",
				    s == ZB_REG_ACTIVE ? "false" : "true");
			if (s == ZB_REG_SHADOWED)
				member(&b, "by", r->members[by].name);
			put_object(c, m, "command", &b);
		}
	}
	zb_buf_done(&b);
}

static void do_exts(struct console *c, const struct zb_script_line *l)
{
	struct zb_buf b = {0};

	(void)l;
	for (size_t i = 0; i < zb_agent_count(c->agent); i++) {
		const struct zb_member *m = zb_agent_member(c->agent, i);
		const struct zb_prepared *p =
			m->ext ? zb_extension_prepared(m->ext) : NULL;

		zb_buf_addc(&b, '{');
		member(&b, "name", m->name);
		member(&b, "version", p ? p->manifest.version : NULL);
		member(&b, "dir", p ? p->dir : NULL);
		member(&b, "policy", p ? p->policy : NULL);
		member(&b, "state", zb_member_state_name(m->state));
		if (m->ext)
			zb_buf_addf(&b, ",\"pid\":%d",
				    zb_extension_pid(m->ext));
		member(&b, "problem", m->problem);
		put_object(c, i, "ext", &b);
	}
	zb_buf_done(&b);
}

static void put_denials(struct console *c, size_t i)
{
	const struct zb_member *m = zb_agent_member(c->agent, i);
	struct zb_denial *d = NULL;
	struct zb_error err = {0};
	struct zb_buf json = {0};
	size_t n = 0;

	if (m->ext)
		zb_ledger_flush(zb_extension_ledger(m->ext));
	if (!m->session[0])
		return;
	if (zb_ledger_read(c->store.logs, m->name, 0, m->session, &d, &n,
			   &err)) {
		put_error(c, i, "error", err.msg);
		fail(c, 1);
		return;
	}
	for (size_t k = 0; k < n; k++) {
		zb_buf_clear(&json);
		if (!zb_denial_json(&d[k], &json))
			put_frame(c, i, "denial", zb_buf_str(&json), json.len);
		zb_denial_done(&d[k]);
	}
	free(d);
	zb_buf_done(&json);
}

static void on_records_in(uv_timer_t *t)
{
	struct console *c = t->data;

	for (size_t i = c->show_from; i < c->show_to; i++)
		put_denials(c, i);
	c->busy = false;
	next_lines(c);
}

/* A refusal is recorded a moment after the extension got it (whether the host
 * has the path is asked meanwhile), so those of the last call are waited for.
 */
static void do_denials(struct console *c, const struct zb_script_line *l)
{
	if (!range_of(c, l->name, &c->show_from, &c->show_to))
		return;
	c->busy = true;
	uv_timer_start(&c->sleep, on_records_in, RECORDS_MS, 0);
}

static void shut_down(struct console *c)
{
	if (c->closing)
		return;
	c->closing = true;
	uv_timer_stop(&c->sleep);
	zb_agent_shutdown(c->agent);
}

static void do_shutdown(struct console *c, const struct zb_script_line *l)
{
	(void)l;
	shut_down(c);
}

static void do_nothing(struct console *c, const struct zb_script_line *l)
{
	(void)c;
	(void)l;
}

static void (*const verbs[])(struct console *,
			     const struct zb_script_line *) = {
	[ZB_SCRIPT_NOTHING] = do_nothing,
	[ZB_SCRIPT_COMMAND] = do_command,
	[ZB_SCRIPT_CALL] = do_call,
	[ZB_SCRIPT_INTERCEPT] = do_intercept,
	[ZB_SCRIPT_EVENT] = do_event,
	[ZB_SCRIPT_KEY] = do_key,
	[ZB_SCRIPT_PANEL_CLOSE] = do_panel_close,
	[ZB_SCRIPT_RELOAD] = do_reload,
	[ZB_SCRIPT_KILL] = do_kill,
	[ZB_SCRIPT_SLEEP] = do_sleep,
	[ZB_SCRIPT_IDLE] = do_idle,
	[ZB_SCRIPT_TOOLS] = do_tools,
	[ZB_SCRIPT_COMMANDS] = do_commands,
	[ZB_SCRIPT_EXTS] = do_exts,
	[ZB_SCRIPT_DENIALS] = do_denials,
	[ZB_SCRIPT_SHUTDOWN] = do_shutdown,
};

/* ---- input ---- */

static void run_line(struct console *c, const char *line, size_t len)
{
	struct zb_script_line l;
	struct zb_error err = {0};

	c->line++;
	if (zb_script_parse(&l, line, len, &err)) {
		zb_wrap(&err, "line %lu", c->line);
		zb_cmd_fail(&err);
		c->failed = 2;
		shut_down(c);
		return;
	}
	verbs[l.verb](c, &l);
	zb_script_line_done(&l);
}

static void on_input(uv_fs_t *req);

static void read_more(struct console *c)
{
	uv_buf_t b = uv_buf_init(c->room, READ_BYTES);

	if (c->reading || c->eof)
		return;
	if (!c->taken && c->input.len > LINE_MAX_BYTES) {
		zb_cmd_say("line %lu is longer than %zu bytes", c->line + 1,
			   LINE_MAX_BYTES);
		c->failed = 2;
		shut_down(c);
		return;
	}
	zb_buf_consume(&c->input, c->taken);
	c->taken = 0;
	c->read.data = c;
	c->reading = !uv_fs_read(&c->loop, &c->read, STDIN_FILENO, &b, 1, -1,
				 on_input);
}

static void on_input(uv_fs_t *req)
{
	struct console *c = req->data;
	ssize_t n = req->result;

	c->reading = false;
	uv_fs_req_cleanup(req);
	if (n > 0)
		zb_buf_add(&c->input, c->room, (size_t)n);
	else
		c->eof = true;
	next_lines(c);
}

/* The next whole line of what was read; at the end also one without newline. */
static bool take_line(struct console *c, const char **line, size_t *len)
{
	size_t left = c->input.len - c->taken;
	const char *p = zb_buf_str(&c->input) + c->taken;
	const char *nl = left ? memchr(p, '\n', left) : NULL;

	if (!nl && !(c->eof && left))
		return false;
	*line = p;
	*len = nl ? (size_t)(nl - p) : left;
	c->taken += *len + (nl != NULL);
	return true;
}

/* Run what may run now. Called again whenever something finished. */
static void next_lines(struct console *c)
{
	const char *line;
	size_t len;

	if (c->pumping)
		return;
	c->pumping = true;
	while (c->settled && !c->busy && !c->closing) {
		if (take_line(c, &line, &len)) {
			run_line(c, line, len);
			continue;
		}
		if (c->eof && !c->detached)
			shut_down(c);
		else if (!c->eof)
			read_more(c);
		break;
	}
	c->pumping = false;
}

static void on_signal(uv_signal_t *h, int signo)
{
	struct console *c = h->data;

	if (c->signo) /* asked twice: no manners any more */
		_exit(128 + signo);
	c->signo = signo;
	shut_down(c);
}

/* ---- start ---- */

static const char *label_of(const char *arg)
{
	size_t n = strlen(arg);
	const char *base;

	while (n > 1 && arg[n - 1] == '/')
		n--;
	base = arg + n;
	while (base > arg && base[-1] != '/')
		base--;
	return base;
}

static int add_ext(struct console *c, const char *arg, struct zb_error *err)
{
	const struct zb_args *a = c->args;
	struct zb_target t = {.project = c->project,
			      .policy = a->opt[O_POLICY],
			      .scope = a->opt[O_SCOPE],
			      .full_ledger = true,
			      .mean_it = a->opt[O_MEAN_IT] != NULL};
	zb_auto(free) char *label = zb_strdup(label_of(arg));
	int rc;

	if (!label)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	if (strchr(arg, '/'))
		t.path = arg;
	else
		t.name = arg;
	label[strcspn(label, "/")] = '\0';
	rc = zb_agent_add(c->agent, label, &t, err);
	uv_run(&c->loop, UV_RUN_NOWAIT);
	return rc;
}

/* Every installed one that zot would start, and that is wrapped. */
static int installed(struct console *c, struct zb_error *err)
{
	struct zb_found_list l = {0};
	int rc = zb_discover(&l, &c->store, NULL, err);

	for (size_t i = 0; !rc && i < l.n; i++) {
		const struct zb_found *f = &l.v[i];

		if (f->problem || f->theme_only || !f->manifest.enabled)
			continue;
		if (f->wrapped)
			rc = zb_strv_add(&c->names, f->name);
		else
			zb_cmd_say("%s runs unconfined in zot; not started "
				   "here (zotbox ext list)",
				   f->name);
	}
	zb_found_list_done(&l);
	for (size_t i = 0; !rc && !c->closing && i < c->names.n; i++)
		rc = add_ext(c, c->names.v[i], err);
	return rc;
}

static int open_console(struct console *c, struct zb_error *err)
{
	const char *dir = c->args->opt[O_CWD] ? c->args->opt[O_CWD] : ".";
	const struct zb_backend *backend = zb_backend_native();
	struct zb_agent_config cfg = {.loop = &c->loop,
				      .backend = backend,
				      .host = &c->host,
				      .store = &c->store,
				      .zot_version = PACKAGE_VERSION,
				      .provider = "zotbox",
				      .model = "console",
				      .ops = &agent_ops,
				      .ctx = c};
	int rc;

	c->project = realpath(dir, NULL);
	if (!c->project)
		return zb_fail(err, ZB_EUSAGE, "--cwd %s: %s", dir,
			       strerror(errno));
	rc = zb_store_open(&c->store, err);
	if (!rc)
		rc = backend->look(&c->host, err);
	cfg.project = c->project;
	if (!rc)
		rc = zb_agent_new(&c->agent, &cfg, err);
	return rc;
}

static int start_all(struct console *c, struct zb_error *err)
{
	int rc = 0;

	if (!c->args->n_args)
		return installed(c, err);
	for (size_t i = 0; !rc && !c->closing && i < c->args->n_args; i++)
		rc = add_ext(c, c->args->arg[i], err);
	return rc;
}

static void watch_signals(struct console *c)
{
	static const int list[] = {SIGINT, SIGTERM, SIGHUP};

	for (size_t i = 0; i < ZB_ARRAY_LEN(list); i++) {
		uv_signal_init(&c->loop, &c->signals[i]);
		c->signals[i].data = c;
		uv_signal_start(&c->signals[i], on_signal, list[i]);
		uv_unref((uv_handle_t *)&c->signals[i]);
	}
	uv_timer_init(&c->loop, &c->sleep);
	c->sleep.data = c;
}

/* A read of a terminal or of a pipe that stays open cannot be called back:
 * then the process ends with it, and what it holds is the system's. */
static void close_console(struct console *c)
{
	zb_agent_free(c->agent);
	uv_close((uv_handle_t *)&c->sleep, NULL);
	for (size_t i = 0; i < ZB_ARRAY_LEN(c->signals); i++)
		uv_close((uv_handle_t *)&c->signals[i], NULL);
	/* Again if a uv_stop() from before is what ended the first. */
	while (uv_run(&c->loop, c->reading ? UV_RUN_NOWAIT : UV_RUN_DEFAULT))
		if (c->reading)
			break;
	if (c->reading)
		_exit(c->signo ? 128 + c->signo : c->failed);
	uv_loop_close(&c->loop);
	zb_host_done(&c->host);
	zb_store_done(&c->store);
	zb_strv_done(&c->names);
	zb_buf_done(&c->input);
	free(c->project);
	free(c->room);
}

int zb_cmd_console(const struct zb_args *a)
{
	struct console c = {.args = a,
			    .start_ns = uv_hrtime(),
			    .json = a->opt[O_JSON] != NULL};
	struct zb_error err = {0};
	int rc;

	c.room = malloc(READ_BYTES);
	uv_loop_init(&c.loop);
	watch_signals(&c);
	rc = c.room ? open_console(&c, &err)
		    : zb_fail(&err, ZB_ELIMIT, "out of memory");
	if (!rc) {
		rc = start_all(&c, &err);
		if (!rc)
			zb_agent_begin(c.agent);
		else
			shut_down(&c);
	}
	if (rc)
		c.failed = zb_cmd_fail(&err);
	while (c.agent && !c.closed)
		if (!uv_run(&c.loop, UV_RUN_DEFAULT))
			shut_down(&c);
	close_console(&c);
	return c.signo ? 128 + c.signo : c.failed;
}
