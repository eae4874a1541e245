/* cmd_host_requests.c - what the client asks for, a function a request.
 *
 * While extensions are still starting, what depends on who is there waits:
 * an event, an intercept (a guard must not be missed because it is slow), and
 * a tool or command that nobody has yet. Everything else is answered at once,
 * in any order: a reply carries its request's id. */
#include "cleanup.h"
#include "cmd.h"
#include "cmd_host.h"
#include "config.h"
#include "host_frames.h"
#include "text.h"
#include "tool_list.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RECORDS_MS    100 /* a refusal is recorded a moment after it */
#define DENIALS_BYTES ((size_t)8 << 20) /* of records in one reply */

/* ---- answers ---- */

static void finish(struct zb_host_question *k)
{
	k->h->n_open--;
	zb_api_request_done(&k->q);
	free(k);
}

/* The last word on @k. */
static void succeed(struct zb_host_question *k, const char *data)
{
	struct zb_buf line = {0};

	if (!zb_api_success(&line, k->q.id, k->q.command, data))
		zb_host_send(k->h, &line);
	zb_buf_done(&line);
	finish(k);
}

static void fail(struct zb_host_question *k, enum zb_api_code code,
		 const char *text)
{
	struct zb_buf line = {0};

	if (!zb_api_failure(&line, k->q.id, k->q.command, code, text))
		zb_host_send(k->h, &line);
	zb_buf_done(&line);
	finish(k);
}

/* "no extension "x"" */
static void fail_unknown(struct zb_host_question *k, const char *what,
			 const char *name)
{
	zb_auto(free) char *text = zb_strf("no %s \"%s\"", what, name);

	fail(k, ZB_API_UNKNOWN, text ? text : what);
}

static void succeed_buf(struct zb_host_question *k, struct zb_buf *data)
{
	if (data->failed)
		fail(k, ZB_API_LIMIT, "the answer is too long");
	else
		succeed(k, zb_buf_str(data));
	zb_buf_done(data);
}

static void push(struct zb_host_queue *l, struct zb_host_question *k)
{
	k->next = NULL;
	if (!l->first)
		l->end = &l->first;
	*l->end = k;
	l->end = &k->next;
	l->n++;
}

/* All of them; the queue is empty afterwards. */
static struct zb_host_question *take_all(struct zb_host_queue *l)
{
	struct zb_host_question *first = l->first;

	*l = (struct zb_host_queue){0};
	return first;
}

/* ---- who is there ---- */

static void do_hello(struct zb_host_question *k)
{
	struct zb_host_server *h = k->h;

	zb_strv_done(&h->builtin_commands);
	zb_strv_done(&h->builtin_tools);
	zb_strv_copy(&h->builtin_commands, &k->q.list[ZB_API_BUILTIN_COMMANDS]);
	zb_strv_copy(&h->builtin_tools, &k->q.list[ZB_API_BUILTIN_TOOLS]);
	if (h->agent &&
	    zb_agent_reserve(h->agent, &h->builtin_commands, &h->builtin_tools))
		fail(k, ZB_API_LIMIT, "out of memory");
	else
		succeed(k, "{\"protocol_version\":1,\"version\":"
			   "\"" PACKAGE_VERSION "\"}");
	zb_host_start(h);
}

static const char *state_of(const struct zb_host_entry *e,
			    const struct zb_member *m)
{
	if (m)
		return zb_member_state_name(m->state);
	return e->off ? "off" : "starting";
}

static void add_string(struct zb_buf *out, const char *key, const char *value)
{
	zb_buf_addf(out, "\"%s\":", key);
	zb_json_quote_or_null(out, value);
}

/* Under what @e will start, while nothing of it is prepared: what a project
 * brings along has the scope that it was trusted with. Heap, or NULL. */
static char *policy_to_be(const struct zb_host_server *h,
			  const struct zb_host_entry *e)
{
	zb_auto(free) char *real = NULL, *box = NULL;

	if (e->target.policy)
		return zb_strdup(e->target.policy);
	if (e->found.scope != ZB_FOUND_PROJECT)
		return zb_strdup("strict");
	real = realpath(e->found.dir, NULL);
	box = real ? zb_store_path_box_name(real) : NULL;
	return box ? zb_box_policy(&h->store, box) : NULL;
}

/* The row that `ext list` has, with what is true of it here and now. */
static void add_row(struct zb_buf *out, const struct zb_host_server *h,
		    const struct zb_host_entry *e)
{
	const struct zb_member *m =
		h->agent && e->member != ZB_NOBODY
			? zb_agent_member(h->agent, e->member)
			: NULL;
	const struct zb_prepared *p =
		m && m->ext ? zb_extension_prepared(m->ext) : NULL;
	zb_auto(free) char *later = NULL;
	struct zb_found f = e->found;

	if (p)
		f.policy = p->policy;
	else if (!e->off && !f.wrapped)
		f.policy = later = policy_to_be(h, e);
	if (m && m->problem)
		f.problem = m->problem;
	else if (e->off)
		f.problem = e->off;
	zb_buf_addc(out, '{');
	zb_found_json(&f, out);
	zb_buf_addc(out, ',');
	add_string(out, "state", state_of(e, m));
	if (m && m->ext)
		zb_buf_addf(out, ",\"pid\":%d}", zb_extension_pid(m->ext));
	else
		zb_buf_adds(out, ",\"pid\":null}");
}

static void do_list_extensions(struct zb_host_question *k)
{
	struct zb_host_server *h = k->h;
	struct zb_buf data = {0};

	zb_buf_adds(&data, "{\"extensions\":[");
	for (size_t i = 0; i < h->n_entries; i++) {
		zb_buf_adds(&data, i ? "," : "");
		add_row(&data, h, &h->entries[i]);
	}
	zb_buf_adds(&data, "]}");
	succeed_buf(k, &data);
}

static void do_list_commands(struct zb_host_question *k)
{
	static const struct zb_registry none;
	const struct zb_registry *r =
		k->h->agent ? zb_agent_registry(k->h->agent) : &none;
	struct zb_buf data = {0};
	const char *comma = "";
	size_t by = 0;

	zb_buf_adds(&data, "{\"commands\":[");
	for (size_t m = 0; m < r->n; m++) {
		const struct zb_reg_member *mem = &r->members[m];

		for (size_t i = 0; !mem->gone && i < mem->n_commands; i++) {
			enum zb_reg_state s =
				zb_registry_command_state(r, m, i, &by);
			const char *d = mem->commands[i].description;

			zb_buf_addf(&data, "%s{", comma);
			add_string(&data, "name", mem->commands[i].name);
			zb_buf_addc(&data, ',');
			add_string(&data, "description", d ? d : "");
			zb_buf_addc(&data, ',');
			add_string(&data, "extension", mem->name);
			zb_buf_addf(&data, ",\"shadowed\":%s}",
				    s == ZB_REG_ACTIVE ? "false" : "true");
			comma = ",";
		}
	}
	zb_buf_adds(&data, "]}");
	succeed_buf(k, &data);
}

/* The request whose result activated it, if it was one of this client's. */
static const char *their_id(const struct zb_host_server *h, const char *ours)
{
	for (size_t i = 0; ours && i < h->n_places; i++)
		if (!strcmp(h->places[i].ours, ours))
			return h->places[i].theirs;
	return NULL;
}

/* A tool that another one of the same name keeps away is not the model's. */
static size_t collect_tools(const struct zb_host_server *h,
			    const struct zb_registry *r,
			    struct zb_tool_row *rows)
{
	size_t n = 0, by = 0;

	for (size_t m = 0; m < r->n; m++) {
		const struct zb_reg_member *mem = &r->members[m];

		for (size_t i = 0; !mem->gone && i < mem->n_tools; i++) {
			const struct zb_reg_tool *t = &mem->tools[i];
			enum zb_reg_state s =
				zb_registry_tool_state(r, m, i, &by);

			if (s == ZB_REG_SHADOWED || s == ZB_REG_BUILTIN)
				continue;
			if (rows)
				rows[n] = (struct zb_tool_row){
					.name = t->name,
					.description = t->description,
					.schema = t->schema,
					.extension = mem->name,
					.deferred = t->deferred,
					.active = s == ZB_REG_ACTIVE,
					.activated_by =
						their_id(h, t->activated_by)};
			n++;
		}
	}
	return n;
}

static void do_list_tools(struct zb_host_question *k)
{
	static const struct zb_registry none;
	const char *name = k->q.text[ZB_API_FORMAT];
	const struct zb_registry *r =
		k->h->agent ? zb_agent_registry(k->h->agent) : &none;
	enum zb_tool_format format = ZB_TOOLS_ZOT;
	zb_auto(free) struct zb_tool_row *rows = NULL;
	struct zb_buf data = {0};
	size_t n;

	if (name && !zb_tool_format(name, &format)) {
		fail(k, ZB_API_USAGE,
		     "list_tools: format must be zot, anthropic, openai or "
		     "kimi");
		return;
	}
	n = collect_tools(k->h, r, NULL);
	rows = calloc(n + 1, sizeof(*rows));
	if (!rows) {
		fail(k, ZB_API_LIMIT, "out of memory");
		return;
	}
	collect_tools(k->h, r, rows);
	zb_tool_list(&data, format, rows, n);
	succeed_buf(k, &data);
}

/* ---- calls ---- */

static enum zb_api_code code_of(enum zb_reply how)
{
	static const enum zb_api_code codes[] = {
		[ZB_REPLY_OK] = ZB_API_OK,
		[ZB_REPLY_UNKNOWN] = ZB_API_UNKNOWN,
		[ZB_REPLY_BUILTIN] = ZB_API_UNSUPPORTED,
		[ZB_REPLY_TIMEOUT] = ZB_API_TIMEOUT,
		[ZB_REPLY_GONE] = ZB_API_EXITED,
		[ZB_REPLY_STUCK] = ZB_API_LIMIT,
		[ZB_REPLY_CANCELLED] = ZB_API_EXITED,
	};

	return codes[how];
}

static void answer(struct zb_host_question *k, const struct zb_agent_reply *r)
{
	struct zb_buf data = {0};

	if (r->how != ZB_REPLY_OK) {
		fail(k, code_of(r->how), r->why);
		return;
	}
	if (zb_frame_rest(&data, r->line, r->len))
		fail(k, ZB_API_LIMIT, "the answer cannot be shown");
	else
		succeed_buf(k, &data);
	zb_buf_done(&data);
}

/* The event first, so that the reply of a command says: it was acted on. */
static void on_response(void *ctx, const struct zb_agent_reply *r)
{
	struct zb_host_question *k = ctx;

	if (r->how == ZB_REPLY_OK)
		zb_host_agent_ops.frame(k->h, r->member, "command_response",
					r->line, r->len);
	answer(k, r);
}

static void do_invoke(struct zb_host_question *k)
{
	const char *name = k->q.text[ZB_API_NAME];
	/* Ours, so that what is under way does not keep them; @k may be gone
	 * when the call returns. */
	zb_auto(free) char *own = zb_steal(&k->q.text[ZB_API_ARGS]);
	char *args = own;
	size_t n = args ? strlen(args) : 0;

	if (*name == '/')
		name++;
	while (n && strchr(" \t\r\n", args[n - 1]))
		args[--n] = '\0';
	if (args)
		args += zb_skip_blanks(args, n);
	zb_agent_command(k->h->agent, name, args ? args : "", on_response, k);
}

/* Remember whose result it was that activated tools. */
static void note_place(struct zb_host_question *k,
		       const struct zb_agent_reply *r)
{
	struct zb_host_server *h = k->h;
	const struct zb_registry *reg = zb_agent_registry(h->agent);
	const struct zb_reg_member *m = &reg->members[r->member];
	zb_auto(free) char *ours = NULL;
	struct zb_host_place *v;
	bool any = false;

	if (!strcmp(k->q.id, "null") || h->n_places >= ZB_HOST_PLACE)
		return;
	ours = zb_frame_string(r->line, r->len, "id");
	for (size_t i = 0; ours && i < m->n_tools; i++)
		any = any || (m->tools[i].activated_by &&
			      !strcmp(m->tools[i].activated_by, ours));
	if (!any)
		return;
	v = realloc(h->places, (h->n_places + 1) * sizeof(*v));
	if (!v)
		return;
	h->places = v;
	v[h->n_places++] =
		(struct zb_host_place){zb_steal(&ours), zb_strdup(k->q.id)};
	if (!v[h->n_places - 1].theirs)
		free(v[--h->n_places].ours);
}

static void on_result(void *ctx, const struct zb_agent_reply *r)
{
	struct zb_host_question *k = ctx;

	if (r->how == ZB_REPLY_OK &&
	    zb_agent_registry(k->h->agent)->members[r->member].n_tools)
		note_place(k, r);
	answer(k, r);
}

static void do_tool_call(struct zb_host_question *k)
{
	zb_auto(free) char *args = zb_steal(&k->q.text[ZB_API_ARGS]);

	zb_agent_call_within(
		k->h->agent, k->q.text[ZB_API_NAME], args ? args : "{}",
		(uint64_t)k->q.number[ZB_API_TIMEOUT_MS], on_result, k);
}

/* ---- events, intercepts ---- */

static int64_t step_of(const char *fields)
{
	static const struct zb_json_limits limits = {.index_depth = 1};
	struct zb_json j = {0};
	uint32_t i = ZB_JSON_NONE;
	int64_t n = 0;

	if (!zb_json_scan(&j, fields, strlen(fields), &limits, NULL))
		i = zb_json_get(&j, 0, "step");
	if (i == ZB_JSON_NONE || j.tok[i].type != ZB_JSON_NUMBER ||
	    !zb_json_int(&j, i, &n))
		n = 0;
	zb_json_done(&j);
	return n;
}

static void do_event(struct zb_host_question *k)
{
	struct zb_host_server *h = k->h;
	const char *event = k->q.text[ZB_API_EVENT_NAME];
	const char *fields = k->q.fields;
	zb_auto(free) char *stop =
		zb_frame_string(fields, strlen(fields), "stop");
	struct zb_strv names = {0};
	struct zb_buf data = {0};

	if (zb_turns_event(&h->turns, event, stop, step_of(fields)))
		zb_host_end_notes(h);
	zb_agent_event_to(h->agent, event, fields, &names);
	zb_buf_adds(&data, "{\"delivered\":[");
	for (size_t i = 0; i < names.n; i++) {
		zb_buf_adds(&data, i ? "," : "");
		zb_json_quote(&data, names.v[i], strlen(names.v[i]));
	}
	zb_buf_adds(&data, "]}");
	zb_strv_done(&names);
	succeed_buf(k, &data);
	zb_host_next_prompt(h);
}

static void on_verdict(void *ctx, const struct zb_agent_verdict *v)
{
	struct zb_host_question *k = ctx;
	struct zb_buf line = {0}, data = {0};

	zb_buf_addf(&line, "{\"block\":%s", v->block ? "true" : "false");
	if (v->reason) {
		zb_buf_adds(&line, ",\"reason\":");
		zb_json_quote(&line, v->reason, strlen(v->reason));
	}
	if (v->rewrite) {
		zb_buf_addf(&line, ",\"%s\":", v->key);
		zb_buf_adds(&line, v->rewrite);
	}
	zb_buf_adds(&line, ",\"by\":[");
	for (size_t i = 0; i < v->n_opinions; i++)
		zb_buf_addf(&line,
			    "%s{\"extension\":\"%s\",\"outcome\":\"%s\"}",
			    i ? "," : "",
			    zb_host_name_of(k->h, v->opinions[i].member),
			    v->opinions[i].outcome);
	zb_buf_adds(&line, "]}");
	if (zb_frame_rest(&data, zb_buf_str(&line), line.len))
		fail(k, ZB_API_LIMIT, "the answer cannot be shown");
	else
		succeed_buf(k, &data);
	zb_buf_done(&line);
	zb_buf_done(&data);
}

static void do_intercept(struct zb_host_question *k)
{
	zb_auto(free) char *fields = zb_steal(&k->q.fields);

	zb_agent_intercept(k->h->agent, k->q.text[ZB_API_EVENT_NAME], fields,
			   on_verdict, k);
}

/* ---- panels ---- */

/* Whose panel is meant; false: it was answered that there is none. */
static bool panel_owner(struct zb_host_question *k, size_t *member)
{
	struct zb_host_server *h = k->h;
	const char *id = k->q.text[ZB_API_PANEL_ID];
	const char *name = k->q.text[ZB_API_EXTENSION];
	const char *open = NULL;

	*member = h->agent ? zb_agent_panel(h->agent, &open) : ZB_NOBODY;
	if (*member != ZB_NOBODY && !strcmp(open, id) &&
	    (!name || !strcmp(zb_host_name_of(h, *member), name)))
		return true;
	fail_unknown(k, "open panel", id);
	return false;
}

static void panel_done(struct zb_host_question *k, size_t sent)
{
	if (sent == ZB_NOBODY)
		fail_unknown(k, "open panel", k->q.text[ZB_API_PANEL_ID]);
	else
		succeed(k, "{}");
}

static void do_panel_key(struct zb_host_question *k)
{
	const char *id = k->q.text[ZB_API_PANEL_ID];
	size_t m;

	if (panel_owner(k, &m))
		panel_done(k, zb_agent_member_key(k->h->agent, m, id,
						  k->q.text[ZB_API_KEY],
						  k->q.text[ZB_API_TEXT]));
}

static void do_panel_close(struct zb_host_question *k)
{
	const char *id = k->q.text[ZB_API_PANEL_ID];
	size_t m;

	if (panel_owner(k, &m))
		panel_done(k, zb_agent_member_close(k->h->agent, m, id));
}

static void do_panel_resize(struct zb_host_question *k)
{
	size_t m;

	if (panel_owner(k, &m))
		panel_done(k,
			   zb_agent_panel_resize(
				   k->h->agent, m, k->q.text[ZB_API_PANEL_ID],
				   (unsigned)k->q.number[ZB_API_COLUMNS],
				   (unsigned)k->q.number[ZB_API_ROWS]));
}

/* ---- reload ---- */

static void do_reload(struct zb_host_question *k)
{
	struct zb_host_server *h = k->h;
	const char *name = k->q.text[ZB_API_NAME];
	struct zb_host_entry *e = name ? zb_host_entry(h, name) : NULL;

	if (name && !e) {
		fail_unknown(k, "extension", name);
		return;
	}
	if (e && e->member == ZB_NOBODY) {
		fail(k, ZB_API_UNKNOWN,
		     e->off ? e->off : "it is about to be started");
		return;
	}
	k->member = e && !h->all_again ? e->member : ZB_NOBODY;
	k->stopped = 0;
	for (size_t i = 0; h->agent && i < zb_agent_count(h->agent); i++)
		if (k->member == ZB_NOBODY || k->member == i)
			k->stopped += zb_agent_member(h->agent, i)->ext != NULL;
	push(&h->reloads, k);
	h->settled = false;
	if (k->member != ZB_NOBODY)
		zb_agent_reload(h->agent, k->member);
	else
		zb_host_start_again(h);
}

static void add_error(struct zb_buf *errors, const char *text)
{
	zb_buf_adds(errors, errors->len ? "," : "");
	zb_json_quote(errors, text, strlen(text));
}

static void answer_reload(struct zb_host_question *k)
{
	struct zb_host_server *h = k->h;
	bool one = k->member != ZB_NOBODY;
	size_t from = one ? k->member : 0;
	size_t to = one ? from + 1 : zb_agent_count(h->agent);
	size_t loaded = 0, ready = 0;
	struct zb_buf errors = {0}, data = {0};

	for (size_t i = from; i < to; i++) {
		const struct zb_member *m = zb_agent_member(h->agent, i);

		loaded += m->ext != NULL;
		ready += m->ext && !m->ready_timeout;
		if (m->problem)
			add_error(&errors, m->problem);
	}
	for (size_t i = 0; !one && i < h->n_entries; i++)
		if (h->entries[i].member == ZB_NOBODY &&
		    h->entries[i].found.problem)
			add_error(&errors, h->entries[i].found.problem);
	zb_buf_addf(&data,
		    "{\"stopped\":%zu,\"loaded\":%zu,\"ready\":%zu,"
		    "\"errors\":[",
		    k->stopped, loaded, ready);
	zb_buf_adds(&data, zb_buf_str(&errors));
	zb_buf_adds(&data, "]}");
	zb_buf_done(&errors);
	succeed_buf(k, &data);
}

/* ---- records ---- */

static bool since_of(struct zb_host_question *k, int64_t *since)
{
	const char *s = k->q.text[ZB_API_SINCE];
	struct timespec now;

	*since = 0;
	if (!s)
		return true;
	clock_gettime(CLOCK_REALTIME, &now);
	return zb_time_parse(s, now.tv_sec * 1000 + now.tv_nsec / 1000000,
			     since);
}

static void do_denials(struct zb_host_question *k)
{
	const char *name = k->q.text[ZB_API_NAME];
	int64_t since;

	if (name && !zb_host_entry(k->h, name)) {
		fail_unknown(k, "extension", name);
		return;
	}
	if (!since_of(k, &since)) {
		fail(k, ZB_API_USAGE,
		     "denials: since must be a time as in RFC 3339, or 10m, "
		     "2h, 3d");
		return;
	}
	push(&k->h->denials, k);
	if (!uv_is_active((uv_handle_t *)&k->h->later))
		uv_timer_start(&k->h->later, zb_host_on_records, RECORDS_MS, 0);
}

/* Those of @e: of its last run here, or since a time. False: no more room. */
static bool add_records(struct zb_host_server *h, const struct zb_host_entry *e,
			const char *since, int64_t since_ms, struct zb_buf *out)
{
	const struct zb_member *m =
		e->member != ZB_NOBODY ? zb_agent_member(h->agent, e->member)
				       : NULL;
	zb_auto(free) char *own =
		m ? zb_strdup(m->records) : zb_target_log(&e->target);
	const char *name = own ? own : e->found.name;
	struct zb_denial *d = NULL;
	size_t n = 0;
	bool room = true;

	if ((!own && !zb_name_valid(name)) ||
	    (!since && (!m || !m->session[0])))
		return true;
	if (m && m->ext)
		zb_ledger_flush(zb_extension_ledger(m->ext));
	if (zb_ledger_read(h->store.logs, name, since_ms,
			   since ? NULL : m->session, &d, &n, NULL))
		return true;
	for (size_t i = 0; i < n; i++) {
		room = room && out->len < DENIALS_BYTES;
		if (room) {
			zb_buf_adds(out, out->len ? "," : "");
			zb_denial_json(&d[i], out);
		}
		zb_denial_done(&d[i]);
	}
	free(d);
	return room;
}

static void answer_denials(struct zb_host_question *k)
{
	struct zb_host_server *h = k->h;
	const char *name = k->q.text[ZB_API_NAME];
	struct zb_buf records = {0}, data = {0};
	bool room = true;
	int64_t since;

	since_of(k, &since);
	for (size_t i = 0; h->agent && i < h->n_entries && room; i++)
		if (!name || !strcmp(h->entries[i].found.name, name))
			room = add_records(h, &h->entries[i],
					   k->q.text[ZB_API_SINCE], since,
					   &records);
	zb_buf_adds(&data, "{\"denials\":[");
	zb_buf_adds(&data, zb_buf_str(&records));
	zb_buf_adds(&data, "],\"blind_spots\":[");
	for (size_t i = 0; i < h->host.blind_spots.n; i++) {
		const char *s = h->host.blind_spots.v[i];

		zb_buf_adds(&data, i ? "," : "");
		zb_json_quote(&data, s, strlen(s));
	}
	zb_buf_addf(&data, "],\"complete\":%s}", room ? "true" : "false");
	zb_buf_done(&records);
	succeed_buf(k, &data);
}

void zb_host_on_records(uv_timer_t *t)
{
	struct zb_host_server *h = t->data;
	struct zb_host_question *k = take_all(&h->denials), *next;

	for (; k; k = next) {
		next = k->next;
		answer_denials(k);
	}
}

/* ---- the rest ---- */

static void do_state(struct zb_host_question *k)
{
	struct zb_host_server *h = k->h;
	struct zb_buf data = {0};
	const char *panel = NULL;
	size_t owner = h->agent ? zb_agent_panel(h->agent, &panel) : ZB_NOBODY;

	zb_buf_addf(&data, "{\"idle\":%s,\"queued\":%zu,\"settled\":%s,",
		    h->turns.busy ? "false" : "true", h->turns.n,
		    h->settled ? "true" : "false");
	zb_buf_adds(&data, "\"panel\":");
	if (owner != ZB_NOBODY) {
		zb_buf_addc(&data, '{');
		add_string(&data, "extension", zb_host_name_of(h, owner));
		zb_buf_addc(&data, ',');
		add_string(&data, "panel_id", panel);
		zb_buf_addc(&data, '}');
	} else {
		zb_buf_adds(&data, "null");
	}
	zb_buf_addc(&data, '}');
	succeed_buf(k, &data);
}

static void do_ping(struct zb_host_question *k)
{
	succeed(k, "{}");
}

static void do_shutdown(struct zb_host_question *k)
{
	struct zb_host_server *h = k->h;

	/* Answered when all are gone. */
	h->goodbye = k;
	zb_host_close(h);
}

/* @waits: not before all extensions are there; for a name, only if nobody has
 * it yet. */
enum wait {
	AT_ONCE,
	SETTLED,
	COMMAND_KNOWN,
	TOOL_KNOWN,
};

static const struct {
	void (*run)(struct zb_host_question *);
	enum wait wait;
} handlers[] = {
	[ZB_API_HELLO] = {do_hello, AT_ONCE},
	[ZB_API_LIST_EXTENSIONS] = {do_list_extensions, AT_ONCE},
	[ZB_API_LIST_COMMANDS] = {do_list_commands, AT_ONCE},
	[ZB_API_LIST_TOOLS] = {do_list_tools, AT_ONCE},
	[ZB_API_INVOKE] = {do_invoke, COMMAND_KNOWN},
	[ZB_API_TOOL_CALL] = {do_tool_call, TOOL_KNOWN},
	[ZB_API_EVENT] = {do_event, SETTLED},
	[ZB_API_INTERCEPT] = {do_intercept, SETTLED},
	[ZB_API_PANEL_KEY] = {do_panel_key, AT_ONCE},
	[ZB_API_PANEL_CLOSE] = {do_panel_close, AT_ONCE},
	[ZB_API_PANEL_RESIZE] = {do_panel_resize, AT_ONCE},
	[ZB_API_RELOAD] = {do_reload, AT_ONCE},
	[ZB_API_DENIALS] = {do_denials, AT_ONCE},
	[ZB_API_STATE] = {do_state, AT_ONCE},
	[ZB_API_PING] = {do_ping, AT_ONCE},
	[ZB_API_SHUTDOWN] = {do_shutdown, AT_ONCE},
};

/* ---- one line ---- */

/* Is somebody there who answers to the name? One that is being stopped for a
 * reload is not. */
static bool name_known(const struct zb_host_question *k, enum wait wait)
{
	const struct zb_registry *r = zb_agent_registry(k->h->agent);
	const char *name = k->q.text[ZB_API_NAME];
	enum zb_member_state there;
	enum zb_reg_state s;
	size_t m, i;
	bool found;

	if (wait == TOOL_KNOWN)
		found = zb_registry_tool(r, name, &m, &i, &s);
	else
		found = zb_registry_command(r, name + (*name == '/'), &m, &i,
					    &s);
	if (!found)
		return false;
	there = zb_agent_member(k->h->agent, m)->state;
	return there == ZB_MEMBER_READY || there == ZB_MEMBER_REGISTERING;
}

static bool must_wait(const struct zb_host_question *k)
{
	enum wait wait = handlers[k->q.type].wait;

	if (k->h->settled || wait == AT_ONCE)
		return false;
	return wait == SETTLED || !k->h->agent || !name_known(k, wait);
}

static void run(struct zb_host_question *k)
{
	struct zb_host_server *h = k->h;

	if (!must_wait(k)) {
		handlers[k->q.type].run(k);
		return;
	}
	if (h->held.n < ZB_HOST_HELD &&
	    h->held_bytes + k->bytes <= ZB_HOST_HELD_BYTES) {
		h->held_bytes += k->bytes;
		push(&h->held, k);
		return;
	}
	fail(k, ZB_API_LIMIT, "too many requests wait for extensions to start");
}

/* The token, if one is asked for, in the first line. False: it is over. */
static bool admit(struct zb_host_question *k)
{
	struct zb_host_server *h = k->h;
	const char *given = k->q.text[ZB_API_TOKEN];
	size_t n;
	unsigned char diff = 0;

	if (h->greeted)
		return true;
	n = strlen(h->token);
	if (k->q.type == ZB_API_HELLO && given && strlen(given) == n)
		for (size_t i = 0; i < n; i++)
			diff |= (unsigned char)(given[i] ^ h->token[i]);
	else
		diff = 1;
	h->greeted = !diff;
	if (h->greeted)
		return true;
	fail(k, ZB_API_DENIED,
	     "the first line must be hello with the token that "
	     "ZOTBOX_HOST_TOKEN names");
	h->failed = zb_exit_code(ZB_EPOLICY);
	zb_host_close(h);
	return false;
}

void zb_host_take_line(struct zb_host_server *h, const char *line, size_t len)
{
	struct zb_host_question *k;
	struct zb_error err = {0};

	if (h->closing || !len || (len == 1 && *line == '\r'))
		return;
	k = calloc(1, sizeof(*k));
	if (!k)
		return;
	k->h = h;
	k->bytes = len;
	h->n_open++;
	if (zb_api_read(&k->q, line, len, &err)) {
		bool stranger = !h->greeted;

		fail(k, err.code == ZB_EUSAGE ? ZB_API_USAGE : ZB_API_LIMIT,
		     err.msg);
		if (stranger) {
			h->failed = zb_exit_code(ZB_EPOLICY);
			zb_host_close(h);
		}
		return;
	}
	if (!admit(k))
		return;
	if (h->n_open > ZB_HOST_OPEN && k->q.type != ZB_API_SHUTDOWN)
		fail(k, ZB_API_LIMIT, "too many requests are unanswered");
	else
		run(k);
}

void zb_host_take_long_line(struct zb_host_server *h, uint64_t total)
{
	zb_auto(free) char *text =
		zb_strf("a line of %llu bytes is longer than %zu",
			(unsigned long long)total, ZB_WRAP_LINE_MAX);
	struct zb_buf line = {0};

	if (!h->greeted) {
		h->failed = zb_exit_code(ZB_EPOLICY);
		zb_host_close(h);
		return;
	}
	if (!zb_api_failure(&line, NULL, NULL, ZB_API_USAGE, text))
		zb_host_send(h, &line);
	zb_buf_done(&line);
}

void zb_host_go_on(struct zb_host_server *h)
{
	struct zb_host_question *k = take_all(&h->reloads), *next;

	for (; k; k = next) {
		next = k->next;
		answer_reload(k);
	}
	/* One of them may be a reload of its own: then the others wait on. */
	h->held_bytes = 0;
	for (k = take_all(&h->held); k; k = next) {
		next = k->next;
		run(k);
	}
}

static void fail_all(struct zb_host_queue *l)
{
	struct zb_host_question *k = take_all(l), *next;

	for (; k; k = next) {
		next = k->next;
		fail(k, ZB_API_EXITED, "the host was shut down");
	}
}

void zb_host_answer_all(struct zb_host_server *h)
{
	fail_all(&h->held);
	fail_all(&h->reloads);
	fail_all(&h->denials);
	if (h->goodbye)
		succeed(h->goodbye, "{}");
	h->goodbye = NULL;
}
