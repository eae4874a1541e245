/* test_agent.c - the agent's side of the protocol, over a backend in memory. */
#include "agent.h"
#include "cleanup.h"
#include "ext_kit.h"
#include "fake_backend.h"

#include <signal.h>
#include <time.h>

/* What the agent reported, as lines of text. */
struct seen {
	uv_loop_t loop;
	struct zb_agent *a;
	struct zb_store store;
	struct zb_host host;
	struct zb_strv lines, said, states;
	unsigned settled;
	bool closed;
	uint64_t begin;
};

static void on_frame(void *ctx, size_t member, const char *type,
		     const char *line, size_t len)
{
	struct seen *s = ctx;

	zb_strv_addf(&s->lines, "%s %s %.*s",
		     zb_agent_member(s->a, member)->name, type, (int)len, line);
}

static void on_denied(void *ctx, size_t member, const struct zb_denial *d)
{
	struct seen *s = ctx;

	zb_strv_addf(&s->lines, "%s denied %s",
		     zb_agent_member(s->a, member)->name, d->target);
}

static void on_say(void *ctx, size_t member, const char *text)
{
	struct seen *s = ctx;

	(void)member;
	zb_strv_add(&s->said, text);
}

static void on_tools(void *ctx, size_t member)
{
	struct seen *s = ctx;

	zb_strv_addf(&s->lines, "%s tools",
		     zb_agent_member(s->a, member)->name);
}

static void on_changed(void *ctx, size_t member)
{
	struct seen *s = ctx;
	const struct zb_member *m = zb_agent_member(s->a, member);

	zb_strv_addf(&s->states, "%s %s %d", m->name,
		     zb_member_state_name(m->state), m->exit.code);
}

static void on_panel_gone(void *ctx, size_t member, const char *id)
{
	struct seen *s = ctx;

	zb_strv_addf(&s->lines, "%s gone %s",
		     zb_agent_member(s->a, member)->name, id);
}

static void on_settled(void *ctx)
{
	struct seen *s = ctx;

	s->settled++;
}

static void on_closed(void *ctx)
{
	struct seen *s = ctx;

	s->closed = true;
}

static const struct zb_agent_ops ops = {.frame = on_frame,
					.denied = on_denied,
					.say = on_say,
					.settled = on_settled,
					.tools = on_tools,
					.changed = on_changed,
					.panel_gone = on_panel_gone,
					.closed = on_closed};

static void open_agent(struct seen *s, const struct tmphome *t)
{
	struct zb_error err = {0};
	struct zb_agent_config cfg = {.loop = &s->loop,
				      .backend = &fake_backend,
				      .host = &s->host,
				      .store = &s->store,
				      .project = "/project",
				      .zot_version = "1",
				      .provider = "p",
				      .model = "m",
				      .ops = &ops,
				      .ctx = s};

	kit_forget(); /* of a test that failed half-way */
	fake_forget();
	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&s->loop);
	s->store.logs = in(t, "logs");
	s->begin = uv_hrtime();
	assert_int_equal(zb_agent_new(&s->a, &cfg, &err), 0);
}

static void add(struct seen *s, const struct tmphome *t,
		const struct kit_wish *wish, fake_main *program)
{
	struct zb_target target = {.name = wish->name};
	struct zb_error err = {0};

	kit_wish(t->dir, wish);
	fake_program(wish->name, program);
	assert_int_equal(zb_agent_add(s->a, wish->name, &target, &err), 0);
}

static void settle(struct seen *s, unsigned times)
{
	zb_agent_begin(s->a);
	while (s->settled < times)
		uv_run(&s->loop, UV_RUN_ONCE);
}

static void on_tick(uv_timer_t *t)
{
	(void)t;
}

static void turn(struct seen *s, unsigned ms)
{
	uint64_t end = uv_hrtime() + (uint64_t)ms * 1000000;
	uv_timer_t t;

	uv_timer_init(&s->loop, &t);
	uv_timer_start(&t, on_tick, 1, 1);
	while (uv_hrtime() < end)
		uv_run(&s->loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&t, NULL);
	uv_run(&s->loop, UV_RUN_NOWAIT);
}

static void close_agent(struct seen *s)
{
	zb_agent_shutdown(s->a);
	while (!s->closed)
		uv_run(&s->loop, UV_RUN_ONCE);
	zb_agent_free(s->a);
	zb_strv_done(&s->states);
	uv_run(&s->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	assert_int_equal(fake_alive(), 0);
	zb_strv_done(&s->lines);
	zb_strv_done(&s->said);
	free(s->store.logs);
	fake_forget();
	kit_forget();
}

static const struct zb_member *member(const struct seen *s, const char *name)
{
	return zb_agent_member(s->a, zb_agent_find(s->a, name));
}

/* ---- answers to questions ---- */

struct answer {
	bool done;
	enum zb_reply how;
	size_t member;
	char text[600];
	bool block;
	char rewrite[200];
	size_t n_opinions;
	const char *outcomes[4];
};

static void on_reply(void *ctx, const struct zb_agent_reply *r)
{
	struct answer *a = ctx;

	assert_false(a->done);
	a->done = true;
	a->how = r->how;
	a->member = r->member;
	if (r->line)
		snprintf(a->text, sizeof(a->text), "%.*s", (int)r->len,
			 r->line);
	else
		snprintf(a->text, sizeof(a->text), "%s", r->why);
}

static void on_verdict(void *ctx, const struct zb_agent_verdict *v)
{
	struct answer *a = ctx;

	assert_false(a->done);
	a->done = true;
	a->block = v->block;
	a->member = v->by;
	a->n_opinions = v->n_opinions;
	for (size_t i = 0; i < v->n_opinions && i < 4; i++)
		a->outcomes[i] = v->opinions[i].outcome;
	snprintf(a->text, sizeof(a->text), "%s", v->reason ? v->reason : "");
	snprintf(a->rewrite, sizeof(a->rewrite), "%s",
		 v->rewrite ? v->rewrite : "");
}

static void wait_for(struct seen *s, struct answer *a)
{
	while (!a->done)
		uv_run(&s->loop, UV_RUN_ONCE);
}

static struct answer call(struct seen *s, const char *tool)
{
	struct answer a = {0};

	zb_agent_call(s->a, tool, "{}", on_reply, &a);
	wait_for(s, &a);
	return a;
}

static struct answer run(struct seen *s, const char *name)
{
	struct answer a = {0};

	zb_agent_command(s->a, name, "", on_reply, &a);
	wait_for(s, &a);
	return a;
}

static struct answer intercept(struct seen *s, const char *event,
			       const char *fields)
{
	struct answer a = {0};

	zb_agent_intercept(s->a, event, fields, on_verdict, &a);
	wait_for(s, &a);
	return a;
}

#define WISH(n, ...) ((const struct kit_wish){.name = n, __VA_ARGS__})

/* ---- programs ---- */

#define RESULT                                                                 \
	"{\"type\":\"tool_result\",\"id\":\"%s\",\"content\":[{\"type\":"      \
	"\"text\",\"text\":\"%s\"}]}"

/* Registers tool and command of its own name; answers with its name. */
static int serve_name(struct fake *f, const char *name, const char *cmd)
{
	const char *line;

	if (!fake_hello(f, name))
		return 1;
	fake_say(f,
		 "{\"type\":\"register_tool\",\"name\":\"%s\","
		 "\"description\":\"d\",\"schema\":{\"type\":\"object\"}}",
		 name);
	fake_say(f,
		 "{\"type\":\"register_command\",\"name\":\"%s\","
		 "\"description\":\"d\"}",
		 cmd);
	fake_say(f, "{\"type\":\"subscribe\",\"events\":[\"session_start\","
		    "\"turn_end\"],\"intercept\":[]}");
	fake_say(f, "{\"type\":\"ready\"}");
	while ((line = fake_read(f))) {
		zb_auto(free) char *id = fake_member(f, "id");
		zb_auto(free) char *called = fake_member(f, "name");

		if (strstr(line, "\"shutdown\""))
			return 0;
		if (strstr(line, "\"tool_call\""))
			fake_say(f, RESULT, id, name);
		else if (strstr(line, "\"command_invoked\""))
			fake_say(f,
				 "{\"type\":\"command_response\",\"id\":"
				 "\"%s\",\"action\":\"display\","
				 "\"display\":\"%s %s\"}",
				 id, name, called);
		else if (strstr(line, "\"event\""))
			fake_say(f, "{\"type\":\"notify\",\"level\":\"info\","
				    "\"message\":\"event\"}");
	}
	return 0;
}

static int one(struct fake *f)
{
	fake_sleep(f, 300); /* it arrives last */
	return serve_name(f, "one", "Deploy");
}

static int two(struct fake *f)
{
	return serve_name(f, "two", "DEPLOY");
}

static void handshake_and_names(void **state)
{
	struct tmphome *t = *state;
	const struct kit_wish w1 = WISH("one", 0), w2 = WISH("two", 0);
	struct seen s = {0};
	struct answer a;

	open_agent(&s, t);
	add(&s, t, &w1, one);
	add(&s, t, &w2, two);
	settle(&s, 1);
	assert_int_equal(member(&s, "one")->state, ZB_MEMBER_READY);
	assert_false(member(&s, "one")->auto_ready);
	turn(&s, 100);
	/* session_start reached both. */
	assert_int_equal(s.lines.n, 2);
	a = call(&s, "two");
	assert_int_equal(a.how, ZB_REPLY_OK);
	assert_non_null(strstr(a.text, "\"text\":\"two\""));
	/* Load order decides, the registered spelling is sent. */
	a = run(&s, "dEPLOY");
	assert_non_null(strstr(a.text, "one Deploy"));
	kit_expect_log(t->dir, "two", "log",
		       "command \"DEPLOY\" already "
		       "registered by one as \"Deploy\"");
	close_agent(&s);
}

static void unknown_names(void **state)
{
	struct tmphome *t = *state;
	const struct kit_wish w = WISH("two", 0);
	struct seen s = {0};
	struct answer a;

	open_agent(&s, t);
	add(&s, t, &w, two);
	settle(&s, 1);
	a = call(&s, "none");
	assert_int_equal(a.how, ZB_REPLY_UNKNOWN);
	assert_string_equal(a.text, "unknown tool \"none\"");
	a = run(&s, "none");
	assert_int_equal(a.how, ZB_REPLY_UNKNOWN);
	a = run(&s, "EXIT");
	assert_int_equal(a.how, ZB_REPLY_BUILTIN);
	assert_int_equal(zb_agent_panel_key(s.a, "p", "up", NULL), ZB_NOBODY);
	assert_int_equal(zb_agent_panel_close(s.a, "p"), ZB_NOBODY);
	close_agent(&s);
}

/* ---- readiness ---- */

static int silent(struct fake *f)
{
	fake_hello(f, "silent");
	fake_say(f, "{\"type\":\"register_tool\",\"name\":\"early\","
		    "\"description\":\"d\",\"schema\":{}}");
	fake_sleep(f, 600);
	fake_say(f, "{\"type\":\"register_tool\",\"name\":\"late\","
		    "\"description\":\"d\",\"schema\":{}}");
	return fake_serve(f);
}

static int chatty(struct fake *f)
{
	fake_hello(f, "chatty");
	for (int i = 0; i < 50 && fake_sleep(f, 100); i++)
		fake_say(f, "{\"type\":\"clear_notes\"}");
	return fake_serve(f);
}

static void ready_without_a_word(void **state)
{
	struct tmphome *t = *state;
	const struct kit_wish w1 = WISH("silent", 0), w2 = WISH("chatty", 0);
	struct seen s = {0};
	struct answer a;

	open_agent(&s, t);
	add(&s, t, &w1, silent);
	add(&s, t, &w2, chatty);
	settle(&s, 1);
	assert_true(member(&s, "silent")->auto_ready);
	assert_in_range(member(&s, "silent")->start_ms, 240, 590);
	assert_true(member(&s, "chatty")->ready_timeout);
	assert_in_range(member(&s, "chatty")->start_ms, 2900, 4500);
	/* What it registered after that waits for the next turn. */
	a = call(&s, "late");
	assert_int_equal(a.how, ZB_REPLY_UNKNOWN);
	zb_agent_turn(s.a);
	a = (struct answer){0};
	zb_agent_call(s.a, "late", "{}", on_reply, &a);
	assert_false(a.done);
	close_agent(&s);
	assert_int_equal(a.how, ZB_REPLY_CANCELLED);
}

/* ---- time ---- */

static int late(struct fake *f)
{
	unsigned n = 0;
	const char *line;

	fake_hello(f, "late");
	fake_say(f, "{\"type\":\"register_tool\",\"name\":\"t\","
		    "\"description\":\"d\",\"schema\":{}}");
	fake_say(f, "{\"type\":\"ready\"}");
	while ((line = fake_read(f))) {
		zb_auto(free) char *id = fake_member(f, "id");

		if (strstr(line, "\"shutdown\""))
			return 0;
		if (!strstr(line, "\"tool_call\""))
			continue;
		if (!n++)
			fake_sleep(f, 1500);
		fake_say(f, RESULT, id, n == 1 ? "FIRST" : "SECOND");
	}
	return 0;
}

static void late_reply_answers_nobody_else(void **state)
{
	struct tmphome *t = *state;
	const struct kit_wish w = WISH("late", .tool_seconds = 1);
	struct seen s = {0};
	struct answer a;

	open_agent(&s, t);
	add(&s, t, &w, late);
	settle(&s, 1);
	a = call(&s, "t");
	assert_int_equal(a.how, ZB_REPLY_TIMEOUT);
	assert_string_equal(a.text, "t timed out after 1 s (extension late)");
	a = call(&s, "t");
	assert_int_equal(a.how, ZB_REPLY_OK);
	assert_non_null(strstr(a.text, "SECOND"));
	kit_expect_log(t->dir, "late", "log", "late tool_result for");
	kit_expect_log(t->dir, "late", "log", "t timed out after 1 s");
	close_agent(&s);
}

/* A tool's clock stands still while its panel is open. */
static int asker(struct fake *f)
{
	const char *line;

	fake_hello(f, "asker");
	fake_say(f, "{\"type\":\"register_tool\",\"name\":\"t\","
		    "\"description\":\"d\",\"schema\":{}}");
	fake_say(f, "{\"type\":\"ready\"}");
	while ((line = fake_read(f))) {
		zb_auto(free) char *id = fake_member(f, "id");

		if (strstr(line, "\"shutdown\""))
			return 0;
		if (!strstr(line, "\"tool_call\""))
			continue;
		fake_say(f, "{\"type\":\"open_panel\",\"panel\":{\"id\":\"p\","
			    "\"title\":\"t\",\"lines\":[]}}");
		while ((line = fake_read(f)) && !strstr(line, "panel_key"))
			;
		fake_say(f, "{\"type\":\"panel_close\",\"panel_id\":\"p\"}");
		fake_say(f, RESULT, id, "yes");
	}
	return 0;
}

static void open_panel_stops_the_clock(void **state)
{
	struct tmphome *t = *state;
	const struct kit_wish w = WISH("asker", .tool_seconds = 1);
	struct seen s = {0};
	struct answer a = {0};

	open_agent(&s, t);
	add(&s, t, &w, asker);
	settle(&s, 1);
	zb_agent_call(s.a, "t", "{}", on_reply, &a);
	turn(&s, 2500);
	assert_false(a.done);
	assert_int_equal(zb_agent_panel_key(s.a, "p", "rune", "y"), 0);
	wait_for(&s, &a);
	assert_int_equal(a.how, ZB_REPLY_OK);
	assert_int_equal(zb_agent_panel_key(s.a, "p", "rune", "y"), ZB_NOBODY);
	close_agent(&s);
}

/* Opens panel "p" at /NAME and "q" at its tool NAME; tells its keys and what is
 * closed; exits at key x. */
static int paneled(struct fake *f, const char *name)
{
	const char *line;

	fake_hello(f, name);
	fake_say(f,
		 "{\"type\":\"register_command\",\"name\":\"%s\","
		 "\"description\":\"d\"}",
		 name);
	fake_say(f,
		 "{\"type\":\"register_tool\",\"name\":\"%s\","
		 "\"description\":\"d\",\"schema\":{}}",
		 name);
	fake_say(f, "{\"type\":\"ready\"}");
	while ((line = fake_read(f))) {
		zb_auto(free) char *type = fake_member(f, "type");
		zb_auto(free) char *id = fake_member(f, "id");
		zb_auto(free) char *key = fake_member(f, "key");

		if (!strcmp(type, "shutdown"))
			return 0;
		if (!strcmp(type, "command_invoked"))
			fake_say(f,
				 "{\"type\":\"command_response\",\"id\":\"%s\","
				 "\"action\":\"open_panel\",\"open_panel\":{"
				 "\"id\":\"p\",\"title\":\"t\",\"lines\":[]}}",
				 id);
		if (!strcmp(type, "tool_call")) {
			fake_say(f, "{\"type\":\"open_panel\",\"panel\":{"
				    "\"id\":\"q\",\"lines\":[]}}");
			fake_say(f, RESULT, id, "yes");
		}
		if (key && !strcmp(key, "x"))
			return 0;
		if (key && !strcmp(key, "c"))
			fake_say(f, "{\"type\":\"panel_close\","
				    "\"panel_id\":\"p\"}");
		if (key || !strcmp(type, "panel_close"))
			fake_say(f,
				 "{\"type\":\"notify\",\"level\":\"info\","
				 "\"message\":\"%s\"}",
				 key ? key : "closed");
	}
	return 0;
}

static int left(struct fake *f)
{
	return paneled(f, "left");
}

static int right(struct fake *f)
{
	return paneled(f, "right");
}

/* What was reported since the last time, in this order. */
static void expect_lines(struct seen *s, const char *const *want)
{
	turn(s, 60);
	for (size_t i = 0; want[i]; i++) {
		assert_true(i < s->lines.n);
		if (!strstr(s->lines.v[i], want[i]))
			fail_msg("%s, not %s", s->lines.v[i], want[i]);
		assert_true(want[i + 1] || i + 1 == s->lines.n);
	}
	if (!want[0])
		assert_int_equal(s->lines.n, 0);
	zb_strv_done(&s->lines);
}
#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void one_panel_at_a_time(void **state)
{
	const struct kit_wish l = WISH("left", 0), r = WISH("right", 0);
	const char *id = NULL;
	struct seen s = {0};

	open_agent(&s, *state);
	add(&s, *state, &l, left);
	add(&s, *state, &r, right);
	settle(&s, 1);
	expect_lines(&s, LINES(NULL));
	assert_int_equal(zb_agent_panel(s.a, &id), ZB_NOBODY);
	run(&s, "left");
	assert_int_equal(zb_agent_panel(s.a, &id), 0);
	assert_string_equal(id, "p");
	/* Another's of the same id: the first is told, keys are the other's. */
	run(&s, "right");
	expect_lines(&s,
		     LINES("left gone p", "left notify {\"type\":\"notify\""));
	assert_int_equal(zb_agent_panel(s.a, &id), 1);
	assert_int_equal(zb_agent_member_key(s.a, 0, "p", "a", NULL),
			 ZB_NOBODY);
	assert_int_equal(zb_agent_member_close(s.a, 0, "p"), ZB_NOBODY);
	assert_int_equal(zb_agent_panel_resize(s.a, 0, "p", 1, 1), ZB_NOBODY);
	assert_int_equal(zb_agent_panel_key(s.a, "q", "a", NULL), ZB_NOBODY);
	assert_int_equal(zb_agent_panel_key(s.a, "p", "b", NULL), 1);
	expect_lines(&s, LINES("right notify"));
	/* Opened again by the same one: nothing happens. */
	run(&s, "right");
	expect_lines(&s, LINES(NULL));
	/* Another of its own: it knows. */
	assert_int_equal(call(&s, "right").how, ZB_REPLY_OK);
	expect_lines(&s, LINES("right gone p", "right open_panel"));
	assert_int_equal(zb_agent_panel(s.a, &id), 1);
	assert_string_equal(id, "q");
	/* To close one that gave way is no news; to close its own is. */
	run(&s, "left");
	expect_lines(&s, LINES("right gone q", "right notify"));
	assert_int_equal(zb_agent_panel_key(s.a, "p", "c", NULL), 0);
	expect_lines(&s, LINES("left panel_close", "left notify"));
	assert_int_equal(zb_agent_panel(s.a, &id), ZB_NOBODY);
	/* It ends with its extension. */
	run(&s, "left");
	assert_int_equal(zb_agent_panel_key(s.a, "p", "x", NULL), 0);
	expect_lines(&s, LINES("left gone p"));
	assert_int_equal(zb_agent_panel(s.a, &id), ZB_NOBODY);
	run(&s, "right");
	close_agent(&s);
}

/* ---- ends ---- */

static int mortal(struct fake *f)
{
	const char *line;

	fake_hello(f, "mortal");
	fake_say(f, "{\"type\":\"register_tool\",\"name\":\"t\","
		    "\"description\":\"d\",\"schema\":{}}");
	fake_say(f, "{\"type\":\"ready\"}");
	while ((line = fake_read(f)))
		if (strstr(line, "\"tool_call\""))
			return 5;
		else if (strstr(line, "\"shutdown\""))
			return 0;
	return 0;
}

static void death(void **state)
{
	struct tmphome *t = *state;
	const struct kit_wish w = WISH("mortal", 0), w2 = WISH("two", 0);
	struct seen s = {0};
	struct answer a;

	open_agent(&s, t);
	add(&s, t, &w, mortal);
	add(&s, t, &w2, two);
	settle(&s, 1);
	a = call(&s, "t");
	assert_int_equal(a.how, ZB_REPLY_GONE);
	assert_string_equal(a.text, "mortal exited with status 5");
	assert_int_equal(member(&s, "mortal")->state, ZB_MEMBER_GONE);
	assert_int_equal(member(&s, "mortal")->exit.code, 5);
	/* Later ones fail at once, with the reason. */
	a = call(&s, "t");
	assert_int_equal(a.how, ZB_REPLY_GONE);
	assert_string_equal(a.text, "tool \"t\": mortal exited with status 5");
	a = call(&s, "two");
	assert_int_equal(a.how, ZB_REPLY_OK);
	close_agent(&s);
}

static int broken(struct fake *f)
{
	fake_stderr(f, "Traceback\nImportError: shared\n");
	return 1;
}

static void load_failures(void **state)
{
	struct tmphome *t = *state;
	const struct kit_wish w = WISH("broken", 0), w2 = WISH("two", 0);
	struct zb_target none = {.name = "none"};
	struct zb_error err = {0};
	struct seen s = {0};

	open_agent(&s, t);
	assert_int_equal(zb_agent_add(s.a, "none", &none, &err), 0);
	add(&s, t, &w, broken);
	add(&s, t, &w2, two);
	settle(&s, 1);
	assert_int_equal(member(&s, "none")->code, ZB_EPOLICY);
	assert_string_equal(member(&s, "none")->problem,
			    "none: no extension \"none\" is installed");
	assert_int_equal(member(&s, "broken")->code, ZB_OK);
	assert_string_equal(member(&s, "broken")->reason,
			    "exited with status 1 before hello");
	assert_non_null(strstr(member(&s, "broken")->problem,
			       "broken exited with status 1 before hello; its "
			       "standard error begins: Traceback|ImportError: "
			       "shared (log: "));
	assert_int_equal(member(&s, "two")->state, ZB_MEMBER_READY);
	close_agent(&s);
}

static int stubborn(struct fake *f)
{
	fake_hello(f, "stubborn");
	fake_say(f, "{\"type\":\"ready\"}");
	fake_sleep(f, 60000);
	return 0;
}

static void shutdown_is_bounded(void **state)
{
	struct tmphome *t = *state;
	const struct kit_wish w = WISH("stubborn", 0), w2 = WISH("two", 0);
	struct seen s = {0};
	uint64_t begin;

	open_agent(&s, t);
	add(&s, t, &w, stubborn);
	add(&s, t, &w2, two);
	settle(&s, 1);
	begin = uv_hrtime();
	close_agent(&s);
	assert_in_range((uv_hrtime() - begin) / 1000000, 1900, 3000);
	kit_expect_log(t->dir, "stubborn", "log", "did not end within 2 s");
}

/* ---- back-pressure ---- */

static int deaf(struct fake *f)
{
	fake_hello(f, "deaf");
	fake_say(f, "{\"type\":\"register_tool\",\"name\":\"d\","
		    "\"description\":\"d\",\"schema\":{}}");
	fake_say(f, "{\"type\":\"ready\"}");
	while (fake_sleep(f, 50))
		fake_say(f, "{\"type\":\"notify\",\"level\":\"info\","
			    "\"message\":\"still here\"}");
	return 0;
}

/* One that never reads costs its own calls only. */
static void deaf_does_not_disturb(void **state)
{
	struct tmphome *t = *state;
	const struct kit_wish w = WISH("deaf", 0), w2 = WISH("two", 0);
	struct answer calls[8] = {0}, a;
	unsigned stuck = 0;
	struct seen s = {0};
	struct zb_buf big = {0};
	uint64_t begin;

	open_agent(&s, t);
	add(&s, t, &w, deaf);
	add(&s, t, &w2, two);
	settle(&s, 1);
	zb_buf_adds(&big, "{\"x\":\"");
	for (int i = 0; i < 60000; i++)
		zb_buf_adds(&big, "0123456789");
	zb_buf_adds(&big, "\"}");
	for (int i = 0; i < 8; i++)
		zb_agent_call(s.a, "d", zb_buf_str(&big), on_reply, &calls[i]);
	for (int i = 0; i < 8; i++)
		stuck += calls[i].done && calls[i].how == ZB_REPLY_STUCK;
	assert_in_range(stuck, 3, 7);
	assert_string_equal(calls[7].text, "deaf is not reading its stdin "
					   "(1048576 bytes queued)");
	assert_true(zb_strv_has(&s.said, calls[7].text));
	assert_int_equal(s.said.n, 1);
	begin = uv_hrtime();
	a = call(&s, "two");
	assert_int_equal(a.how, ZB_REPLY_OK);
	assert_true(uv_hrtime() - begin < 100000000);
	zb_buf_done(&big);
	begin = uv_hrtime();
	close_agent(&s);
	assert_true(uv_hrtime() - begin < 3000000000);
	assert_int_equal(calls[0].how, ZB_REPLY_CANCELLED);
}

/* ---- intercepts ---- */

/* Answers intercepts: @rest follows the id. */
static int judge(struct fake *f, const char *name, const char *rest)
{
	const char *line;

	fake_hello(f, name);
	fake_say(f, "{\"type\":\"subscribe\",\"events\":[],\"intercept\":"
		    "[\"tool_call\",\"assistant_message\"]}");
	fake_say(f, "{\"type\":\"ready\"}");
	while ((line = fake_read(f))) {
		zb_auto(free) char *id = fake_member(f, "id");

		if (strstr(line, "\"shutdown\""))
			return 0;
		if (!strstr(line, "event_intercept"))
			continue;
		if (!strcmp(name, "watch"))
			fake_say(f,
				 "{\"type\":\"notify\",\"level\":\"info\","
				 "\"message\":\"saw %s\"}",
				 strstr(line, "NEW") ? "NEW" : "OLD");
		if (rest)
			fake_say(f,
				 "{\"type\":\"event_intercept_response\","
				 "\"id\":\"%s\"%s}",
				 id, rest);
		else
			fake_sleep(f, 1500);
	}
	return 0;
}

static int rewriter(struct fake *f)
{
	return judge(f, "rewriter", ",\"replace_text\":\"NEW\"");
}

static int watch(struct fake *f)
{
	return judge(f, "watch", ",\"replace_text\":null,\"reason\":\"fine\"");
}

static int blocker(struct fake *f)
{
	return judge(f, "blocker", ",\"block\":true,\"reason\":\"no\"");
}

static int sleeper(struct fake *f)
{
	return judge(f, "sleeper", NULL);
}

static void chain(void **state)
{
	struct tmphome *t = *state;
	const struct kit_wish w1 = WISH("rewriter", 0), w2 = WISH("watch", 0),
			      w3 = WISH("two", 0);
	struct seen s = {0};
	struct answer a;

	open_agent(&s, t);
	add(&s, t, &w1, rewriter);
	add(&s, t, &w3, two);
	add(&s, t, &w2, watch);
	settle(&s, 1);
	a = intercept(&s, "assistant_message", "{\"text\":\"OLD\"}");
	assert_false(a.block);
	assert_string_equal(a.rewrite, "\"NEW\"");
	assert_int_equal(a.member, 0);
	assert_string_equal(a.text, "fine");
	assert_int_equal(a.n_opinions, 2);
	assert_string_equal(a.outcomes[0], "rewrite");
	assert_string_equal(a.outcomes[1], "allow");
	/* The second saw what the first made of it. */
	assert_true(zb_strv_has(&s.lines,
				"watch notify {\"type\":\"notify\",\"level\":"
				"\"info\",\"message\":\"saw NEW\"}"));
	/* Nobody is subscribed: allowed. */
	a = intercept(&s, "turn_start", "{}");
	assert_false(a.block);
	assert_int_equal(a.n_opinions, 0);
	close_agent(&s);
}

static void first_block_ends_it(void **state)
{
	struct tmphome *t = *state;
	const struct kit_wish w1 = WISH("blocker", 0), w2 = WISH("watch", 0);
	struct seen s = {0};
	struct answer a;

	open_agent(&s, t);
	add(&s, t, &w1, blocker);
	add(&s, t, &w2, watch);
	settle(&s, 1);
	a = intercept(&s, "tool_call", "{\"tool_name\":\"bash\"}");
	assert_true(a.block);
	assert_int_equal(a.member, 0);
	assert_string_equal(a.text, "no");
	assert_int_equal(a.n_opinions, 1);
	assert_int_equal(s.lines.n, 0);
	close_agent(&s);
}

static void no_answer(void **state)
{
	struct tmphome *t = *state;
	const struct kit_wish w1 = WISH("sleeper", 0);
	struct seen s = {0};
	struct answer a;

	open_agent(&s, t);
	add(&s, t, &w1, sleeper);
	settle(&s, 1);
	a = intercept(&s, "tool_call", "{\"tool_name\":\"bash\"}");
	assert_false(a.block);
	assert_string_equal(a.outcomes[0], "timeout");
	assert_true(zb_strv_has(&s.said, "guard \"sleeper\" gave no answer in "
					 "1 s for tool_call bash; allowed"));
	close_agent(&s);
}

static void no_answer_blocks(void **state)
{
	struct tmphome *t = *state;
	const struct kit_wish w1 = WISH("sleeper", .block = true);
	struct seen s = {0};
	struct answer a;

	open_agent(&s, t);
	add(&s, t, &w1, sleeper);
	settle(&s, 1);
	a = intercept(&s, "tool_call", "{\"tool_name\":\"bash\"}");
	assert_true(a.block);
	assert_string_equal(a.text, "guard \"sleeper\" gave no answer in 1 s "
				    "for tool_call bash; blocked");
	close_agent(&s);
}

static void missing_guard_blocks(void **state)
{
	struct tmphome *t = *state;
	const struct kit_wish w = WISH("broken", .block = true);
	struct seen s = {0};
	struct answer a;

	open_agent(&s, t);
	add(&s, t, &w, broken);
	settle(&s, 1);
	assert_true(zb_agent_has_guard(s.a));
	a = intercept(&s, "tool_call", "{\"tool_name\":\"bash\"}");
	assert_true(a.block);
	assert_string_equal(a.text,
			    "required guard \"broken\" is not running (exited "
			    "with status 1 before hello); tool calls are "
			    "blocked");
	/* What it does not guard is not blocked. */
	a = intercept(&s, "turn_start", "{}");
	assert_false(a.block);
	close_agent(&s);
}

/* ---- reload ---- */

static int slow_goodbye(struct fake *f)
{
	const char *line;

	fake_hello(f, "slow");
	fake_say(f, "{\"type\":\"register_command\",\"name\":\"pause\","
		    "\"description\":\"d\"}");
	fake_say(f, "{\"type\":\"ready\"}");
	while ((line = fake_read(f)))
		if (strstr(line, "\"shutdown\"")) {
			fake_say(f, "{\"type\":\"notify\",\"level\":\"info\","
				    "\"message\":\"late\"}");
			fake_sleep(f, 200);
			return 0;
		}
	return 0;
}

static void reload_drops_the_old(void **state)
{
	struct tmphome *t = *state;
	const struct kit_wish w = WISH("slow", 0), w2 = WISH("two", 0);
	struct seen s = {0};
	struct answer a = {0};
	size_t gone = 0;

	open_agent(&s, t);
	add(&s, t, &w, slow_goodbye);
	add(&s, t, &w2, two);
	settle(&s, 1);
	zb_agent_command(s.a, "pause", "", on_reply, &a);
	zb_agent_reload(s.a, zb_agent_find(s.a, "slow"));
	/* Nobody is told of it as a failure. */
	assert_true(a.done);
	assert_int_equal(a.how, ZB_REPLY_CANCELLED);
	settle(&s, 2);
	assert_int_equal(member(&s, "slow")->state, ZB_MEMBER_READY);
	assert_int_equal(fake_started(), 3);
	for (size_t i = 0; i < s.lines.n; i++)
		assert_null(strstr(s.lines.v[i], "late"));
	kit_expect_log(t->dir, "slow", "log",
		       "slow: notify from the previous instance; dropped");
	/* The run before is over before the next begins. */
	assert_int_equal(s.states.n >= 4, 1);
	for (size_t i = 0; i < s.states.n; i++)
		if (!strcmp(s.states.v[i], "slow gone 0"))
			gone = i;
	assert_string_equal(s.states.v[gone], "slow gone 0");
	assert_string_equal(s.states.v[gone - 1], "slow stopping 0");
	assert_string_equal(s.states.v[gone + 1], "slow starting 0");
	/* session_start was sent once: to "two" at the first start. */
	assert_int_equal(s.lines.n, 1);
	close_agent(&s);
}

/* ---- for a host of many ---- */

static int loader(struct fake *f)
{
	const char *line;

	if (!fake_hello(f, "loader"))
		return 1;
	fake_say(f, "{\"type\":\"register_tool\",\"name\":\"load\","
		    "\"schema\":{}}");
	fake_say(f, "{\"type\":\"register_tool\",\"name\":\"more\","
		    "\"schema\":{},\"deferred\":true}");
	fake_say(f, "{\"type\":\"ready\"}");
	while ((line = fake_read(f))) {
		zb_auto(free) char *id = fake_member(f, "id");

		if (strstr(line, "\"shutdown\""))
			return 0;
		if (!strstr(line, "\"tool_call\""))
			continue;
		fake_say(f, "{\"type\":\"register_tool\",\"name\":\"late\","
			    "\"schema\":{}}");
		fake_say(f,
			 "{\"type\":\"tool_result\",\"id\":\"%s\","
			 "\"content\":[],\"activate_tools\":[\"more\"]}",
			 id);
	}
	return 0;
}

static void tools_that_come_are_told(void **state)
{
	const struct kit_wish w = WISH("loader", 0);
	struct zb_strv names = {0};
	struct seen s = {0};

	open_agent(&s, *state);
	add(&s, *state, &w, loader);
	settle(&s, 1);
	assert_int_equal(s.lines.n, 0);
	assert_int_equal(call(&s, "load").how, ZB_REPLY_OK);
	turn(&s, 20);
	assert_int_equal(s.lines.n, 1);
	assert_string_equal(s.lines.v[0], "loader tools");
	assert_int_equal(call(&s, "late").how, ZB_REPLY_UNKNOWN);
	assert_int_equal(zb_agent_event_to(s.a, "turn_start", "{}", &names), 0);
	assert_int_equal(s.lines.n, 2);
	assert_int_equal(call(&s, "late").how, ZB_REPLY_OK);
	zb_strv_done(&names);
	close_agent(&s);
}

static void events_tell_who_got_them(void **state)
{
	const struct kit_wish w1 = WISH("one", 0), w2 = WISH("two", 0);
	struct zb_strv names = {0};
	struct seen s = {0};

	open_agent(&s, *state);
	add(&s, *state, &w1, one);
	add(&s, *state, &w2, two);
	settle(&s, 1);
	assert_int_equal(zb_agent_event_to(s.a, "turn_end", "{}", &names), 2);
	assert_string_equal(names.v[0], "one");
	assert_string_equal(names.v[1], "two");
	zb_strv_done(&names);
	close_agent(&s);
}

static int sluggish(struct fake *f)
{
	const char *line;

	if (!fake_hello(f, "sluggish"))
		return 1;
	fake_say(f, "{\"type\":\"register_tool\",\"name\":\"t\","
		    "\"schema\":{}}");
	fake_say(f, "{\"type\":\"ready\"}");
	while ((line = fake_read(f)))
		if (strstr(line, "\"shutdown\""))
			return 0;
	return 0;
}

static void a_caller_has_a_limit_of_its_own(void **state)
{
	const struct kit_wish w = WISH("sluggish", 0);
	struct answer a = {0};
	struct seen s = {0};
	uint64_t begin;

	open_agent(&s, *state);
	add(&s, *state, &w, sluggish);
	settle(&s, 1);
	begin = uv_hrtime();
	zb_agent_call_within(s.a, "t", "{}", 150, on_reply, &a);
	wait_for(&s, &a);
	assert_int_equal(a.how, ZB_REPLY_TIMEOUT);
	assert_string_equal(a.text,
			    "t timed out after 150 ms (extension sluggish)");
	assert_true(uv_hrtime() - begin < UINT64_C(2000000000));
	close_agent(&s);
}

static int talkative(struct fake *f)
{
	if (!fake_hello(f, "talkative"))
		return 1;
	fake_say(f, "{\"type\":\"ready\"}");
	fake_sleep(f, 100);
	for (int i = 0; i < 20; i++)
		fake_say(f, "{\"type\":\"notify\",\"level\":\"info\","
			    "\"message\":\"m\"}");
	return fake_serve(f);
}

static void a_pause_stops_what_comes(void **state)
{
	const struct kit_wish w = WISH("talkative", 0);
	struct seen s = {0};

	open_agent(&s, *state);
	add(&s, *state, &w, talkative);
	settle(&s, 1);
	zb_agent_pause(s.a, true);
	turn(&s, 250);
	assert_int_equal(s.lines.n, 0);
	zb_agent_pause(s.a, false);
	turn(&s, 50);
	assert_int_equal(s.lines.n, 20);
	close_agent(&s);
}

/* Who makes sandboxes meanwhile does not read: that is not its silence. */
static void our_own_delay_is_no_silence(void **state)
{
	const struct timespec busy = {.tv_nsec = 400000000};
	const struct kit_wish w = WISH("two", 0);
	struct seen s = {0};

	open_agent(&s, *state);
	add(&s, *state, &w, two);
	while (member(&s, "two")->state == ZB_MEMBER_STARTING)
		uv_run(&s.loop, UV_RUN_ONCE);
	assert_int_equal(member(&s, "two")->state, ZB_MEMBER_REGISTERING);
	nanosleep(&busy, NULL);
	settle(&s, 1);
	assert_false(member(&s, "two")->auto_ready);
	assert_int_equal(call(&s, "two").how, ZB_REPLY_OK);
	close_agent(&s);
}

/* Writes one line for a second, without a pause that is long. */
static int long_winded(struct fake *f)
{
	if (!fake_hello(f, "long"))
		return 1;
	fake_write(f, "{\"type\":\"notify\",\"level\":\"info\",\"message\":\"",
		   43);
	for (int i = 0; i < 10; i++) {
		fake_sleep(f, 100);
		fake_write(f, "more ", 5);
	}
	fake_write(f, "\"}\n", 3);
	fake_say(f, "{\"type\":\"register_tool\",\"name\":\"t\","
		    "\"schema\":{}}");
	fake_say(f, "{\"type\":\"ready\"}");
	return fake_serve(f);
}

/* Begins a line, and says no more. */
static int stops_short(struct fake *f)
{
	if (!fake_hello(f, "short"))
		return 1;
	fake_write(f, "{\"type\":", 8);
	return fake_serve(f);
}

static void part_of_a_line_is_no_silence(void **state)
{
	const struct kit_wish w = WISH("long", 0), w2 = WISH("short", 0);
	struct seen s = {0};

	open_agent(&s, *state);
	add(&s, *state, &w, long_winded);
	add(&s, *state, &w2, stops_short);
	settle(&s, 1);
	assert_false(member(&s, "long")->auto_ready);
	assert_true(member(&s, "long")->start_ms >= 1000);
	assert_int_equal(s.lines.n, 1);
	/* Control: one that does stop. */
	assert_true(member(&s, "short")->auto_ready);
	assert_true(member(&s, "short")->start_ms < 1000);
	close_agent(&s);
}

static int cancellable(struct fake *f, const char *name, const char *caps)
{
	zb_auto(free) char *call = NULL;
	const char *line;

	fake_say(f,
		 "{\"type\":\"hello\",\"name\":\"%s\",\"version\":\"1\","
		 "\"capabilities\":[\"tools\"%s]}",
		 name, caps);
	fake_read(f);
	fake_say(f,
		 "{\"type\":\"register_tool\",\"name\":\"%s\",\"schema\":{}}",
		 name);
	fake_say(f, "{\"type\":\"ready\"}");
	while ((line = fake_read(f))) {
		zb_auto(free) char *id = fake_member(f, "id");

		if (strstr(line, "\"shutdown\""))
			return 0;
		if (strstr(line, "\"tool_call\"")) {
			free(call);
			call = zb_steal(&id);
		} else if (strstr(line, "\"tool_cancel\"")) {
			fake_say(f, RESULT, id,
				 call && !strcmp(call, id) ? "cancelled"
							   : "whose?");
		}
	}
	return 0;
}

static int gives_up(struct fake *f)
{
	return cancellable(f, "gives_up", ",\"tool_cancel\"");
}

static int goes_on(struct fake *f)
{
	return cancellable(f, "goes_on", "");
}

static void a_call_may_be_cancelled(void **state)
{
	const struct kit_wish w = WISH("gives_up", 0), w2 = WISH("goes_on", 0);
	struct answer a = {0}, b = {0}, other = {0};
	struct seen s = {0};

	open_agent(&s, *state);
	add(&s, *state, &w, gives_up);
	add(&s, *state, &w2, goes_on);
	settle(&s, 1);
	zb_agent_call(s.a, "gives_up", "{}", on_reply, &a);
	zb_agent_call_within(s.a, "goes_on", "{}", 400, on_reply, &b);
	turn(&s, 100);
	assert_false(zb_agent_cancel(s.a, on_reply, &other));
	assert_false(zb_agent_cancel(s.a, on_reply, &b));
	assert_false(a.done);
	assert_true(zb_agent_cancel(s.a, on_reply, &a));
	wait_for(&s, &a);
	assert_int_equal(a.how, ZB_REPLY_OK);
	assert_non_null(strstr(a.text, "\"cancelled\""));
	assert_false(zb_agent_cancel(s.a, on_reply, &a));
	wait_for(&s, &b);
	assert_int_equal(b.how, ZB_REPLY_TIMEOUT);
	/* One whose time is up is cancelled, and too late all the same. */
	a = (struct answer){0};
	zb_agent_call_within(s.a, "gives_up", "{}", 100, on_reply, &a);
	wait_for(&s, &a);
	assert_int_equal(a.how, ZB_REPLY_TIMEOUT);
	turn(&s, 100);
	kit_expect_log(((struct tmphome *)*state)->dir, "gives_up", "log",
		       "late tool_result for ");
	close_agent(&s);
}

static int denied_early(struct fake *f)
{
	fake_stderr(f, "first\nsecond\n");
	fake_deny(f, ZB_OP_FS_READ, "/secret");
	fake_sleep(f, 20);
	return 3;
}

static void why_it_ended_is_kept(void **state)
{
	const struct kit_wish w = WISH("early", 0);
	const struct zb_member *m;
	struct seen s = {0};

	open_agent(&s, *state);
	add(&s, *state, &w, denied_early);
	settle(&s, 1);
	m = member(&s, "early");
	assert_int_equal(m->state, ZB_MEMBER_GONE);
	assert_int_equal(m->exit.code, 3);
	assert_int_equal(m->head.n, 2);
	assert_string_equal(m->head.v[1], "second");
	assert_int_equal(m->n_denials, 1);
	assert_string_equal(m->denials[0].target, "/secret");
	assert_non_null(strstr(m->problem, "begins: first|second"));
	assert_non_null(strstr(m->problem, "it was denied fs.read /secret"));
	assert_non_null(strstr(m->problem, m->log));
	/* The next one that cannot even begin is not explained by it. */
	kit_forget();
	zb_agent_reload(s.a, zb_agent_find(s.a, "early"));
	assert_int_equal(m->state, ZB_MEMBER_GONE);
	assert_int_equal(m->head.n + m->n_denials, 0);
	assert_string_equal(m->session, "");
	close_agent(&s);
}

static void empty(void **state)
{
	struct seen s = {0};

	open_agent(&s, *state);
	settle(&s, 1);
	assert_int_equal(zb_agent_event(s.a, "turn_end", "{}"), 0);
	close_agent(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_tmp(handshake_and_names),
		with_tmp(unknown_names),
		with_tmp(ready_without_a_word),
		with_tmp(late_reply_answers_nobody_else),
		with_tmp(open_panel_stops_the_clock),
		with_tmp(one_panel_at_a_time),
		with_tmp(death),
		with_tmp(load_failures),
		with_tmp(shutdown_is_bounded),
		with_tmp(deaf_does_not_disturb),
		with_tmp(chain),
		with_tmp(first_block_ends_it),
		with_tmp(no_answer),
		with_tmp(no_answer_blocks),
		with_tmp(missing_guard_blocks),
		with_tmp(reload_drops_the_old),
		with_tmp(tools_that_come_are_told),
		with_tmp(events_tell_who_got_them),
		with_tmp(a_caller_has_a_limit_of_its_own),
		with_tmp(a_pause_stops_what_comes),
		with_tmp(our_own_delay_is_no_silence),
		with_tmp(part_of_a_line_is_no_silence),
		with_tmp(a_call_may_be_cancelled),
		with_tmp(why_it_ended_is_kept),
		with_tmp(empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
