/* cmd_console_calls.c - the verbs of the console. One that waits (call, cmd,
 * intercept, reload, sleep, denials) keeps the next line back until it is done,
 * unless its line ended in " &". */
#include "cleanup.h"
#include "cmd_console.h"
#include "console_script.h"
#include "host_frames.h"

#include <string.h>

#define RECORDS_MS 100

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
	if (l->detached) {
		c->detached++;
	} else {
		c->busy = true;
		c->awaited = q;
	}
	return q;
}

static void done(struct question *q)
{
	struct console *c = q->c;

	if (q->detached) {
		c->detached--;
	} else {
		c->busy = false;
		c->awaited = NULL;
	}
	free(q);
	zb_console_next_lines(c);
}

static void put_failure(struct console *c, const struct zb_agent_reply *r)
{
	if (r->how == ZB_REPLY_CANCELLED)
		return;
	if (r->how != ZB_REPLY_BUILTIN) {
		zb_console_fail(c, 1);
		zb_console_put_error(c, r->member, "error", r->why);
		return;
	}
	zb_console_put_error(c, ZB_NOBODY, "builtin", r->why);
}

static void on_result(void *ctx, const struct zb_agent_reply *r)
{
	struct question *q = ctx;

	if (r->how == ZB_REPLY_OK)
		zb_console_put_frame(q->c, r->member, "result", r->line,
				     r->len);
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
		zb_console_take_frame(q->c, r->member, "command_response",
				      action && *action ? action : "noop",
				      r->line, r->len);
	} else {
		put_failure(q->c, r);
	}
	done(q);
}

static void on_verdict(void *ctx, const struct zb_agent_verdict *v)
{
	struct question *q = ctx;
	struct zb_buf line = {0};
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
			    zb_console_name(q->c, v->opinions[i].member),
			    v->opinions[i].outcome);
	zb_buf_adds(&line, tell_all ? "]}" : "}");
	zb_console_put_frame(q->c, v->by, v->block ? "block" : "allow",
			     zb_buf_str(&line), line.len);
	zb_buf_done(&line);
	done(q);
}

static void on_slept(uv_timer_t *t)
{
	struct console *c = t->data;

	c->busy = false;
	zb_console_next_lines(c);
}

/* ---- verbs ---- */

static void unknown_name(struct console *c, const char *what, const char *name)
{
	struct zb_buf text = {0};

	zb_buf_addf(&text, "%s \"%s\"", what, name);
	zb_console_put_error(c, ZB_NOBODY, "error", zb_buf_str(&text));
	zb_buf_done(&text);
	zb_console_fail(c, 1);
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
	size_t member = zb_agent_panel_close(c->agent, l->name);

	if (member == ZB_NOBODY)
		unknown_name(c, "no open panel", l->name);
	else if (c->screen)
		c->screen->panel_closed(c, member, l->name);
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

void zb_console_put_reload(struct console *c)
{
	bool one = c->reloading != ZB_NOBODY;
	size_t from = one ? c->reloading : 0;
	size_t to = one ? from + 1 : zb_agent_count(c->agent);
	size_t loaded = 0, ready = 0;
	struct zb_buf errors = {0}, line = {0};

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
	zb_console_put_frame(c, c->reloading, "reload", zb_buf_str(&line),
			     line.len);
	zb_buf_done(&errors);
	zb_buf_done(&line);
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
		zb_console_put_error(c, i, "error", err.msg);
		zb_console_fail(c, 1);
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
	zb_json_quote_or_null(out, value);
}

static void put_object(struct console *c, size_t m, const char *type,
		       struct zb_buf *object)
{
	zb_buf_addc(object, '}');
	zb_console_put_frame(c, m, type, zb_buf_str(object), object->len);
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
	if (zb_ledger_read(c->store.logs, m->records, 0, m->session, &d, &n,
			   &err)) {
		zb_console_put_error(c, i, "error", err.msg);
		zb_console_fail(c, 1);
		return;
	}
	for (size_t k = 0; k < n; k++) {
		zb_buf_clear(&json);
		if (!zb_denial_json(&d[k], &json))
			zb_console_put_frame(c, i, "denial", zb_buf_str(&json),
					     json.len);
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
	zb_console_next_lines(c);
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

static void do_shutdown(struct console *c, const struct zb_script_line *l)
{
	(void)l;
	zb_console_shut_down(c);
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

void zb_console_run(struct console *c, const struct zb_script_line *l)
{
	verbs[l->verb](c, l);
}

bool zb_console_stop_waiting(struct console *c, bool *told)
{
	*told = false;
	if (!c->busy)
		return false;
	c->busy = false;
	if (c->awaited) {
		*told = zb_agent_cancel(c->agent, on_result, c->awaited);
		c->awaited->detached = true;
		c->awaited = NULL;
		c->detached++;
	} else if (c->reload_busy && c->reload_waits) {
		c->reload_waits = false;
		c->detached++;
	} else {
		uv_timer_stop(&c->sleep);
	}
	return true;
}
