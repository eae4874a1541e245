/* agent.c - members: from a target to a running extension and back.
 *
 *   STARTING --hello--> REGISTERING --ready | 250 ms silent | 3 s--> READY
 *       |                    |                                        |
 *       \---- ends ----------+------------------ ends ----------------+--> GONE
 *                            reload, shutdown: STOPPING --ends--> GONE or again
 *
 * Each member has its own timers and its own queue; nothing here waits. */
#define _GNU_SOURCE /* strsep */
#include "agent_internal.h"
#include "cleanup.h"
#include "host_frames.h"

#include <string.h>

#define SILENCE_MS   250  /* after it, one without a ready frame is ready */
#define READY_MS     3000 /* the most it gets from hello_ack to ready */
#define STOP_MS	     2000 /* from shutdown to the kill */
#define HEAD_LINES   3	  /* of its stderr in a start error */
#define DENIALS_MAX  20	  /* kept of a run that ended by itself */
#define DENIALS_SAID 3	  /* of them in a start error */
#define SCOPE_BYTES  ((size_t)1 << 20)

static const struct zb_extension_ops extension_ops;

const char *zb_member_state_name(enum zb_member_state s)
{
	static const char *const names[] = {"starting", "registering", "ready",
					    "stopping", "gone"};

	return (unsigned)s < ZB_ARRAY_LEN(names) ? names[s] : "unknown";
}

bool zb_agent_running(const struct member *m)
{
	return m->pub.ext && (m->pub.state == ZB_MEMBER_REGISTERING ||
			      m->pub.state == ZB_MEMBER_READY);
}

void zb_agent_tell(struct member *m, const char *fmt, ...)
{
	struct zb_buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	zb_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	if (m->pub.ext)
		zb_extension_tell(m->pub.ext, "%s", zb_buf_str(&text));
	else if (m->a->cfg.ops->say)
		m->a->cfg.ops->say(m->a->cfg.ctx, m->index, zb_buf_str(&text));
	zb_buf_done(&text);
}

int zb_agent_send(struct member *m, const struct zb_buf *frame,
		  const char *what)
{
	int rc = zb_extension_send(m->pub.ext, zb_buf_str(frame), frame->len);

	if (rc != ZB_ELIMIT)
		return rc;
	m->dropped++;
	if (!m->stuck)
		zb_agent_tell(m,
			      "%s is not reading its stdin (%zu bytes "
			      "queued)",
			      m->name, ZB_STDIN_BOUND);
	m->stuck = true;
	zb_ledger_say(zb_extension_ledger(m->pub.ext),
		      "not delivered, its queue is full: %s", what);
	return rc;
}

/* ---- states ---- */

static void set_state(struct member *m, enum zb_member_state s)
{
	struct zb_agent *a = m->a;

	m->pub.state = s;
	if (a->cfg.ops->changed)
		a->cfg.ops->changed(a->cfg.ctx, m->index);
}

static bool all_gone(const struct zb_agent *a)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->members[i]->pub.state != ZB_MEMBER_GONE)
			return false;
	return true;
}

/* Each line to the log of @m and to the user; empties @lines. */
static void tell_all(struct member *m, struct zb_strv *lines)
{
	for (size_t i = 0; m->pub.ext && i < lines->n; i++)
		zb_agent_tell(m, "%s: %s", m->name, lines->v[i]);
	zb_strv_done(lines);
}

static void tell_shadows(struct zb_agent *a)
{
	for (size_t i = 0; i < a->n; i++) {
		struct zb_strv log = {0};

		zb_registry_shadows(&a->registry, i, &log);
		tell_all(a->members[i], &log);
	}
}

static void check_settled(struct zb_agent *a)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->members[i]->pub.state != ZB_MEMBER_READY &&
		    a->members[i]->pub.state != ZB_MEMBER_GONE)
			return;
	if (a->closing || !a->begun || a->settled)
		return;
	a->settled = true;
	tell_shadows(a);
	if (!a->started && !a->cfg.resumed)
		zb_agent_event(a, "session_start", "{}");
	a->started = true;
	if (a->cfg.ops->settled)
		a->cfg.ops->settled(a->cfg.ctx);
}

static void set_ready(struct member *m)
{
	if (m->pub.state != ZB_MEMBER_REGISTERING)
		return;
	uv_timer_stop(&m->quiet);
	uv_timer_stop(&m->ready);
	m->pub.start_ms = uv_now(m->a->cfg.loop) - m->spawned;
	set_state(m, ZB_MEMBER_READY);
	check_settled(m->a);
}

/* A timer runs before the loop reads, and while we made somebody else's sandbox
 * nobody read: what this one said meanwhile may be in its pipe. So a time that
 * is up counts only when the loop has read once more. */
static bool read_first(const struct member *m, bool *looked, uv_timer_t *t,
		       uv_timer_cb again)
{
	bool done = *looked && !m->a->paused;

	*looked = !done;
	if (!done)
		uv_timer_start(t, again, m->a->paused ? SILENCE_MS : 1, 0);
	return !done;
}

/* One that is in the middle of a long line has sent no frame, and is not
 * silent. */
static void on_quiet(uv_timer_t *t)
{
	struct member *m = t->data;
	uint64_t silent =
		uv_now(m->a->cfg.loop) - zb_extension_heard(m->pub.ext);

	if (read_first(m, &m->quiet_looked, t, on_quiet))
		return;
	if (silent < SILENCE_MS) {
		m->quiet_looked = false;
		uv_timer_start(t, on_quiet, SILENCE_MS - silent, 0);
		return;
	}
	m->pub.auto_ready = true;
	zb_agent_tell(m,
		      "%s sent no ready frame; taken as ready after %d ms of "
		      "silence",
		      m->name, SILENCE_MS);
	set_ready(m);
}

static void start_quiet(struct member *m)
{
	m->quiet_looked = false;
	uv_timer_start(&m->quiet, on_quiet, SILENCE_MS, 0);
}

static void on_ready_late(uv_timer_t *t)
{
	struct member *m = t->data;

	if (read_first(m, &m->ready_looked, t, on_ready_late))
		return;
	m->pub.ready_timeout = true;
	zb_agent_tell(m, "%s sent no ready frame within %d s; going on",
		      m->name, READY_MS / 1000);
	set_ready(m);
}

/* "hog exceeded memory limit..." but "noisy: first stdout line..." */
static void set_problem(struct member *m, const char *reason, bool predicate)
{
	size_t n = strlen(m->name);

	free(m->pub.problem);
	free(m->pub.reason);
	m->pub.problem = NULL;
	m->pub.reason = zb_strdup(reason);
	if (!reason)
		return;
	/* Who prepared the start may have named it already. */
	if (!predicate && !strncmp(reason, m->name, n) && reason[n] == ':')
		m->pub.problem = zb_strdup(reason);
	else
		m->pub.problem = zb_strf("%s%s %s", m->name,
					 predicate ? "" : ":", reason);
}

static void set_gone(struct member *m)
{
	struct zb_agent *a = m->a;

	zb_registry_end(&a->registry, m->index);
	set_state(m, ZB_MEMBER_GONE);
	check_settled(a);
	if (a->closing && all_gone(a) && a->cfg.ops->closed)
		a->cfg.ops->closed(a->cfg.ctx);
}

static void set_refused(struct member *m, const struct zb_error *err)
{
	m->pub.code = err->code;
	set_problem(m, err->msg, false);
	set_gone(m);
}

/* ---- frames of the extension ---- */

static void answer_hello(struct member *m)
{
	const struct zb_prepared *p = zb_extension_prepared(m->pub.ext);
	struct zb_agent_config *cfg = &m->a->cfg;
	struct zb_hello_info info = {.zot_version = cfg->zot_version,
				     .provider = cfg->provider,
				     .model = cfg->model,
				     .cwd = cfg->project,
				     .extension_dir = p->plan.extension_dir,
				     .data_dir = p->plan.data_dir};
	struct zb_buf ack = {0};

	m->pub.said_hello = true;
	zb_host_hello_ack(&ack, &info);
	zb_agent_send(m, &ack, "hello_ack");
	zb_buf_done(&ack);
	set_state(m, ZB_MEMBER_REGISTERING);
	start_quiet(m);
	m->ready_looked = false;
	uv_timer_start(&m->ready, on_ready_late, READY_MS, 0);
}

static void tell_tools(struct member *m)
{
	if (m->pub.state == ZB_MEMBER_READY && m->a->cfg.ops->tools)
		m->a->cfg.ops->tools(m->a->cfg.ctx, m->index);
}

void zb_agent_bring_late(struct zb_agent *a)
{
	for (size_t i = 0; i < a->n; i++) {
		size_t n = zb_registry_active_tools(&a->registry, i);

		zb_registry_turn_of(&a->registry, i);
		if (zb_registry_active_tools(&a->registry, i) != n)
			tell_tools(a->members[i]);
	}
}

static void take_registration(struct member *m, const char *line, size_t len)
{
	struct zb_strv log = {0};
	bool late = m->pub.state == ZB_MEMBER_READY;

	zb_registry_take(&m->a->registry, m->index, line, len, late, &log);
	tell_all(m, &log);
}

/* Id of the panel in member @key (an object) of the frame. */
static void opened_panel(struct member *m, const char *line, size_t len,
			 const char *key)
{
	static const struct zb_json_limits limits = {.index_depth = 2};
	struct zb_json j = {0};
	uint32_t i = ZB_JSON_NONE;
	char *id = NULL;

	if (!zb_json_scan(&j, line, len, &limits, NULL))
		i = zb_json_get(&j, 0, key);
	if (i != ZB_JSON_NONE)
		i = zb_json_get(&j, i, "id");
	if (i != ZB_JSON_NONE)
		id = zb_json_dup_string(&j, i);
	if (id)
		zb_agent_open_panel(m, id);
	free(id);
	zb_json_done(&j);
}

static void show(struct member *m, const char *type, const char *line,
		 size_t len)
{
	if (m->a->cfg.ops->frame)
		m->a->cfg.ops->frame(m->a->cfg.ctx, m->index, type, line, len);
}

/* Is it among what hello says it is capable of? */
static bool announces(const char *line, size_t len, const char *what)
{
	static const struct zb_json_limits limits = {.index_depth = 2};
	struct zb_json j = {0};
	uint32_t i = ZB_JSON_NONE;
	bool found = false;

	if (!zb_json_scan(&j, line, len, &limits, NULL))
		i = zb_json_get(&j, 0, "capabilities");
	if (i != ZB_JSON_NONE && j.tok[i].type == ZB_JSON_ARRAY)
		for (i = zb_json_first(&j, i); i != ZB_JSON_NONE && !found;
		     i = zb_json_next(&j, i))
			found = zb_json_is(&j, i, what);
	zb_json_done(&j);
	return found;
}

static void take_hello(struct member *m, const char *line, size_t len)
{
	if (m->pub.state != ZB_MEMBER_STARTING)
		return;
	m->cancels = announces(line, len, "tool_cancel");
	answer_hello(m);
}

static void take_ready(struct member *m, const char *line, size_t len)
{
	(void)line;
	(void)len;
	set_ready(m);
}

static void take_nothing(struct member *m, const char *line, size_t len)
{
	(void)m;
	(void)line;
	(void)len;
}

/* What a result activates is told after it. */
static void take_result(struct member *m, const char *line, size_t len)
{
	struct zb_registry *r = &m->a->registry;
	size_t n = zb_registry_active_tools(r, m->index);

	take_registration(m, line, len);
	zb_agent_take_reply(m, line, len);
	if (zb_registry_active_tools(r, m->index) != n)
		tell_tools(m);
}

static void take_response(struct member *m, const char *line, size_t len)
{
	opened_panel(m, line, len, "open_panel");
	zb_agent_take_reply(m, line, len);
}

static void take_open_panel(struct member *m, const char *line, size_t len)
{
	opened_panel(m, line, len, "panel");
	show(m, "open_panel", line, len);
}

static void take_panel_close(struct member *m, const char *line, size_t len)
{
	zb_auto(free) char *id = zb_frame_string(line, len, "panel_id");

	/* Of one that gave way it is no news. */
	if (id && zb_agent_panel_closed(m, id))
		show(m, "panel_close", line, len);
}

/* There is no model here whose tools could be run. */
static void take_call_tool(struct member *m, const char *line, size_t len)
{
	zb_auto(free) char *id = zb_frame_string(line, len, "id");
	struct zb_buf answer = {0};

	show(m, "call_tool", line, len);
	if (!id)
		return;
	zb_host_refuse_tool(&answer, id, "this host runs no tools");
	zb_agent_send(m, &answer, "an answer to call_tool");
	zb_buf_done(&answer);
}

static const struct {
	const char *type;
	void (*take)(struct member *m, const char *line, size_t len);
} takers[] = {
	{"hello", take_hello},
	{"ready", take_ready},
	{"register_command", take_registration},
	{"register_tool", take_registration},
	{"subscribe", take_nothing}, /* the mediator knows */
	{"shutdown_ack", take_nothing},
	{"tool_result", take_result},
	{"command_response", take_response},
	{"event_intercept_response", zb_agent_take_reply},
	{"open_panel", take_open_panel},
	{"panel_close", take_panel_close},
	{"call_tool", take_call_tool},
};

static void on_frame(void *ctx, struct zb_extension *e, const char *line,
		     size_t len, const struct zb_med_out *info)
{
	struct member *m = ctx;
	zb_auto(free) char *own = NULL;
	const char *type = info ? info->type : NULL;

	if (!type)
		type = own = zb_frame_string(line, len, "type");
	if (!type)
		return;
	if (m->pub.state == ZB_MEMBER_STOPPING && m->reload) {
		zb_ledger_say(zb_extension_ledger(e),
			      "%s: %s from the previous instance; dropped",
			      m->name, type);
		return;
	}
	if (m->pub.state == ZB_MEMBER_REGISTERING)
		start_quiet(m);
	for (size_t i = 0; i < ZB_ARRAY_LEN(takers); i++)
		if (!strcmp(takers[i].type, type)) {
			takers[i].take(m, line, len);
			return;
		}
	show(m, type, line, len);
}

static void on_denied(void *ctx, struct zb_extension *e,
		      const struct zb_denial *d)
{
	struct member *m = ctx;

	(void)e;
	if (m->a->cfg.ops->denied)
		m->a->cfg.ops->denied(m->a->cfg.ctx, m->index, d);
}

static void on_say(void *ctx, struct zb_extension *e, const char *text)
{
	struct member *m = ctx;

	(void)e;
	if (m->a->cfg.ops->say)
		m->a->cfg.ops->say(m->a->cfg.ctx, m->index, text);
}

static void on_drained(void *ctx, struct zb_extension *e)
{
	struct member *m = ctx;

	if (m->stuck)
		zb_ledger_say(zb_extension_ledger(e),
			      "%s reads its stdin again; %llu frames were not "
			      "delivered",
			      m->name, m->dropped);
	m->stuck = false;
	m->dropped = 0;
}

/* ---- start and end ---- */

static int load(struct member *m, struct zb_error *err);

/* What a start error needs besides the reason. */
static void explain(const struct member *m, struct zb_buf *out)
{
	size_t said;

	if (m->pub.said_hello)
		return;
	for (size_t i = 0; i < m->pub.head.n; i++)
		zb_buf_addf(out, "%s%s",
			    i ? "|" : "; its standard error begins: ",
			    m->pub.head.v[i]);
	said = m->pub.n_denials < DENIALS_SAID ? m->pub.n_denials
					       : DENIALS_SAID;
	for (size_t i = m->pub.n_denials - said; i < m->pub.n_denials; i++) {
		zb_buf_adds(out, "; it was ");
		zb_denial_text(&m->pub.denials[i], m->a->cfg.store->home, out);
	}
	if (m->pub.log)
		zb_buf_addf(out, " (log: %s)", m->pub.log);
}

static void forget_cause(struct member *m)
{
	zb_strv_done(&m->pub.head);
	for (size_t i = 0; i < m->pub.n_denials; i++)
		zb_denial_done(&m->pub.denials[i]);
	free(m->pub.denials);
	m->pub.denials = NULL;
	m->pub.n_denials = 0;
	free(m->pub.log);
	m->pub.log = NULL;
}

static void keep_head(struct member *m, struct zb_ledger *l)
{
	struct zb_buf head = {0};
	char *line, *rest;

	zb_ledger_stderr_head(l, HEAD_LINES, &head);
	rest = head.data;
	while ((line = strsep(&rest, "\n")))
		zb_strv_add(&m->pub.head, line);
	zb_buf_done(&head);
}

/* What it was denied last: a program that ends does so soon after. */
static void keep_denials(struct member *m, struct zb_ledger *l)
{
	struct zb_denial *d = NULL;
	size_t n = 0, skip;

	zb_ledger_flush(l);
	if (zb_ledger_read(m->a->cfg.store->logs, m->pub.records, 0,
			   m->pub.session, &d, &n, NULL))
		return;
	skip = n > DENIALS_MAX ? n - DENIALS_MAX : 0;
	for (size_t i = 0; i < skip; i++)
		zb_denial_done(&d[i]);
	if (skip)
		memmove(d, d + skip, (n - skip) * sizeof(*d));
	for (size_t i = 0; i < n - skip; i++)
		d[i].by_path = !m->target.name;
	m->pub.denials = d;
	m->pub.n_denials = n - skip;
}

/* Before the run's ledger is gone. */
static void keep_cause(struct member *m, struct zb_extension *e)
{
	struct zb_ledger *l = zb_extension_ledger(e);

	forget_cause(m);
	m->pub.log =
		zb_strf("%s/ext-%s.log", m->a->cfg.store->logs, m->pub.records);
	if (m->pub.state == ZB_MEMBER_STOPPING && !m->died)
		return;
	keep_head(m, l);
	keep_denials(m, l);
}

static void end_run(struct member *m, struct zb_extension *e,
		    const struct zb_exit *exit, const char *reason)
{
	struct zb_buf more = {0};

	uv_timer_stop(&m->quiet);
	uv_timer_stop(&m->ready);
	uv_timer_stop(&m->stop);
	set_problem(m, reason, !zb_extension_broke_protocol(e));
	keep_cause(m, e);
	explain(m, &more);
	if (m->pub.problem && more.len) {
		char *whole =
			zb_strf("%s%s", m->pub.problem, zb_buf_str(&more));

		if (whole) {
			free(m->pub.problem);
			m->pub.problem = whole;
		}
	}
	zb_buf_done(&more);
	m->pub.exit = *exit;
	m->pub.exit.reason = NULL;
	m->pub.ext = NULL;
	m->stuck = false;
	zb_agent_end_panel(m);
	zb_extension_free(e);
}

static void on_ended(void *ctx, struct zb_extension *e,
		     const struct zb_exit *exit, const char *reason)
{
	struct member *m = ctx;
	struct zb_error err = {0};
	bool wanted = m->pub.state == ZB_MEMBER_STOPPING;
	bool again = wanted && m->reload && !m->a->closing;

	end_run(m, e, exit, reason);
	if (wanted && !m->died)
		set_problem(m, NULL, false);
	m->reload = m->died = false;
	if (again) {
		/* That run is over, whatever comes of the next. */
		set_state(m, ZB_MEMBER_GONE);
		if (load(m, &err))
			set_refused(m, &err);
		return;
	}
	set_gone(m);
	zb_agent_end_calls(m, ZB_REPLY_GONE);
}

static const struct zb_extension_ops extension_ops = {
	.frame = on_frame,
	.denied = on_denied,
	.say = on_say,
	.ended = on_ended,
	.drained = on_drained,
};

/* Which events this scope wants blocked when the extension is not there. */
static void note_guard(struct member *m, const struct zb_scope *s)
{
	zb_strv_done(&m->guarded);
	for (size_t i = 0; s->on_failure_block && i < s->n_intercepts; i++)
		zb_strv_add(&m->guarded, s->intercepts[i].event);
}

/* It could not even be prepared: what the user granted still says whether its
 * absence must block. */
static void note_stored_guard(struct member *m)
{
	struct zb_buf text = {0};
	struct zb_scope s = {0};
	struct zb_error err = {0};
	char *path;

	if (!m->target.name)
		return;
	path = zb_store_box(m->a->cfg.store, m->target.name, "scope.json");
	if (path && !zb_read_file(path, SCOPE_BYTES, &text, &err) &&
	    !zb_scope_parse(&s, path, zb_buf_str(&text), text.len, NULL,
			    &err)) {
		note_guard(m, &s);
		zb_scope_done(&s);
	}
	zb_buf_done(&text);
	free(path);
}

static int rename_member(struct member *m, const char *name)
{
	struct zb_reg_member *r = &m->a->registry.members[m->index];
	char *a = zb_strdup(name), *b = zb_strdup(name);

	if (!a || !b) {
		free(a);
		free(b);
		return ZB_ELIMIT;
	}
	free(m->name);
	free(r->name);
	m->name = a;
	m->pub.name = a;
	r->name = b;
	return 0;
}

static int start(struct member *m, struct zb_prepared *p, struct zb_error *err)
{
	struct zb_agent_config *cfg = &m->a->cfg;
	struct zb_extension_config ext = {.loop = cfg->loop,
					  .backend = cfg->backend,
					  .host = cfg->host,
					  .store = cfg->store,
					  .prepared = p,
					  .ops = &extension_ops,
					  .ctx = m,
					  .log_fd = -1,
					  .session = cfg->session};

	uv_update_time(cfg->loop);
	m->spawned = uv_now(cfg->loop);
	return zb_extension_start(&m->pub.ext, &ext, err);
}

/* Two of one name would answer for each other: the first one has it. */
static int check_name(const struct member *m, const char *name,
		      struct zb_error *err)
{
	for (size_t i = 0; i < m->a->n; i++) {
		const struct member *o = m->a->members[i];

		if (o != m && o->pub.ext && !strcmp(o->name, name))
			return zb_fail(err, ZB_EPOLICY,
				       "another extension called %s is loaded "
				       "already, from %s",
				       name,
				       zb_extension_prepared(o->pub.ext)->dir);
	}
	return 0;
}

static int load(struct member *m, struct zb_error *err)
{
	struct zb_prepared p = {0};
	int rc = zb_prepare(&p, m->a->cfg.store, &m->target, err);

	/* Nothing of an earlier run explains this one. */
	forget_cause(m);
	m->pub.session[0] = '\0';
	m->pub.said_hello = false;
	if (rc) {
		zb_prepared_done(&p);
		note_stored_guard(m);
		return rc;
	}
	rc = check_name(m, p.plan.name, err);
	if (rc) {
		zb_prepared_done(&p);
		return rc;
	}
	note_guard(m, &p.plan.scope);
	rc = rename_member(m, p.plan.name);
	if (rc) {
		zb_prepared_done(&p);
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	}
	zb_registry_clear(&m->a->registry, m->index);
	set_problem(m, NULL, false);
	m->pub = (struct zb_member){.name = m->name, .records = m->pub.records};
	rc = start(m, &p, err);
	if (rc) {
		zb_prepared_done(&p);
		return rc;
	}
	snprintf(m->pub.session, sizeof(m->pub.session), "%s",
		 zb_extension_session(m->pub.ext));
	if (m->a->paused)
		zb_extension_pause(m->pub.ext, true);
	set_state(m, ZB_MEMBER_STARTING);
	return 0;
}

static void on_stop_late(uv_timer_t *t)
{
	struct member *m = t->data;

	if (!m->pub.ext)
		return;
	zb_agent_tell(m, "%s did not end within %d s of shutdown; it is killed",
		      m->name, STOP_MS / 1000);
	zb_extension_stop(m->pub.ext, "was killed after shutdown");
}

static void stop(struct member *m)
{
	static const char frame[] = "{\"type\":\"shutdown\"}";

	if (!m->pub.ext || m->pub.state == ZB_MEMBER_STOPPING)
		return;
	uv_timer_stop(&m->quiet);
	uv_timer_stop(&m->ready);
	m->died = zb_extension_exited(m->pub.ext);
	if (m->pub.said_hello)
		zb_extension_send(m->pub.ext, frame, strlen(frame));
	zb_extension_close_stdin(m->pub.ext);
	uv_timer_start(&m->stop, on_stop_late, STOP_MS, 0);
	set_state(m, ZB_MEMBER_STOPPING);
	zb_agent_end_panel(m);
	zb_agent_end_calls(m, ZB_REPLY_CANCELLED);
}

/* ---- the agent ---- */

int zb_agent_new(struct zb_agent **out, const struct zb_agent_config *cfg,
		 struct zb_error *err)
{
	struct zb_agent *a = calloc(1, sizeof(*a));

	if (!a)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	a->cfg = *cfg;
	*out = a;
	return 0;
}

int zb_agent_add(struct zb_agent *a, const char *label,
		 const struct zb_target *target, struct zb_error *err)
{
	struct member **v = realloc(a->members, (a->n + 1) * sizeof(*v));
	struct member *m = calloc(1, sizeof(*m));
	uv_timer_t *timers[3];

	if (v)
		a->members = v;
	if (!v || !m || zb_registry_add(&a->registry, label)) {
		free(m);
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	}
	m->a = a;
	m->index = a->n;
	m->target = *target;
	m->name = zb_strdup(label);
	m->pub.name = m->name;
	m->pub.records = zb_target_log(target);
	if (!m->pub.records) /* not there: the start will say so */
		m->pub.records = zb_strdup(label);
	a->members[a->n++] = m;
	timers[0] = &m->quiet;
	timers[1] = &m->ready;
	timers[2] = &m->stop;
	for (size_t i = 0; i < ZB_ARRAY_LEN(timers); i++) {
		uv_timer_init(a->cfg.loop, timers[i]);
		timers[i]->data = m;
		a->timers++;
	}
	if (!m->name || !m->pub.records)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	if (load(m, err))
		set_refused(m, err);
	return 0;
}

void zb_agent_begin(struct zb_agent *a)
{
	a->begun = true;
	check_settled(a);
}

void zb_agent_reload(struct zb_agent *a, size_t member)
{
	struct zb_error err = {0};

	a->settled = false;
	for (size_t i = 0; i < a->n; i++) {
		struct member *m = a->members[i];

		if (member != ZB_NOBODY && member != i)
			continue;
		if (m->pub.state == ZB_MEMBER_STOPPING)
			continue;
		if (m->pub.ext) {
			m->reload = true;
			stop(m);
		} else if (load(m, &err)) {
			set_refused(m, &err);
		}
	}
	check_settled(a);
}

void zb_agent_shutdown(struct zb_agent *a)
{
	if (a->closing)
		return;
	a->closing = true;
	for (size_t i = 0; i < a->n; i++) {
		a->members[i]->reload = false;
		stop(a->members[i]);
	}
	if (all_gone(a) && a->cfg.ops->closed)
		a->cfg.ops->closed(a->cfg.ctx);
}

static void on_timer_closed(uv_handle_t *h)
{
	struct member *last = h->data;
	struct zb_agent *a = last->a;

	if (--a->timers)
		return;
	for (size_t i = 0; i < a->n; i++) {
		struct member *m = a->members[i];

		free(m->pub.problem);
		free(m->pub.reason);
		forget_cause(m);
		free(m->name);
		free(m->pub.records);
		zb_strv_done(&m->guarded);
		free(m);
	}
	free(a->members);
	free(a->panel_id);
	zb_registry_done(&a->registry);
	free(a);
}

void zb_agent_free(struct zb_agent *a)
{
	if (!a || a->freed)
		return;
	a->freed = true;
	if (!a->n) {
		free(a->members);
		free(a);
		return;
	}
	for (size_t i = 0; i < a->n; i++) {
		struct member *m = a->members[i];

		uv_close((uv_handle_t *)&m->quiet, on_timer_closed);
		uv_close((uv_handle_t *)&m->ready, on_timer_closed);
		uv_close((uv_handle_t *)&m->stop, on_timer_closed);
	}
}

size_t zb_agent_count(const struct zb_agent *a)
{
	return a->n;
}

const struct zb_member *zb_agent_member(const struct zb_agent *a, size_t i)
{
	return &a->members[i]->pub;
}

size_t zb_agent_find(const struct zb_agent *a, const char *name)
{
	for (size_t i = 0; i < a->n; i++)
		if (!strcmp(a->members[i]->name, name))
			return i;
	return ZB_NOBODY;
}

const struct zb_registry *zb_agent_registry(const struct zb_agent *a)
{
	return &a->registry;
}

int zb_agent_reserve(struct zb_agent *a, const struct zb_strv *commands,
		     const struct zb_strv *tools)
{
	int rc = zb_registry_reserve(&a->registry, commands, tools);

	/* Else it is said when all are there. */
	if (!rc && a->settled)
		tell_shadows(a);
	return rc;
}

void zb_agent_pause(struct zb_agent *a, bool paused)
{
	if (a->paused == paused)
		return;
	a->paused = paused;
	for (size_t i = 0; i < a->n; i++)
		if (a->members[i]->pub.ext)
			zb_extension_pause(a->members[i]->pub.ext, paused);
}

bool zb_agent_has_guard(const struct zb_agent *a)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->members[i]->guarded.n)
			return true;
	return false;
}
