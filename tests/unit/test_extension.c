/* test_extension.c - one running extension, over a backend in memory. */
#include "cleanup.h"
#include "ext_kit.h"
#include "extension.h"
#include "fake_backend.h"

#include <signal.h>

#define HELLO_ACK "{\"type\":\"hello_ack\",\"protocol_version\":1}"
#define NOTE	  "{\"type\":\"notify\",\"level\":\"info\",\"message\":\"%u\"}"

/* What the callbacks saw. */
struct seen {
	uv_loop_t loop;
	struct zb_extension *e;
	struct zb_strv frames, types, said, denied;
	unsigned notes;
	bool ended, exited_before_last, pause_at_hello, no_ack;
	struct zb_exit exit;
	char reason[700];
	bool drained;
	const char *send_on_ready;
	struct zb_store store;
	struct zb_host host;
	size_t bound;
};

static void on_frame(void *ctx, struct zb_extension *e, const char *line,
		     size_t len, const struct zb_med_out *info)
{
	struct seen *s = ctx;
	char *copy = zb_strndup(line, len);

	if (s->ended)
		s->exited_before_last = true;
	zb_strv_take(&s->frames, copy);
	zb_strv_add(&s->types, info ? info->type : "-");
	s->notes += info && !strcmp(info->type, "notify");
	if (info && info->is_hello && !s->no_ack)
		assert_int_equal(
			zb_extension_send(e, HELLO_ACK, strlen(HELLO_ACK)), 0);
	if (info && info->is_hello && s->pause_at_hello)
		zb_extension_pause(e, true);
}

static void on_denied(void *ctx, struct zb_extension *e,
		      const struct zb_denial *d)
{
	struct seen *s = ctx;

	(void)e;
	zb_strv_addf(&s->denied, "%s %s", zb_op_name(d->op),
		     d->target ? d->target : "");
}

static void on_say(void *ctx, struct zb_extension *e, const char *text)
{
	struct seen *s = ctx;

	(void)e;
	zb_strv_add(&s->said, text);
}

static void on_ended(void *ctx, struct zb_extension *e,
		     const struct zb_exit *exit, const char *reason)
{
	struct seen *s = ctx;

	assert_false(s->ended);
	s->ended = true;
	s->exit = *exit;
	s->exit.reason = NULL;
	snprintf(s->reason, sizeof(s->reason), "%s", reason);
	zb_extension_free(e);
	s->e = NULL;
}

static void on_drained(void *ctx, struct zb_extension *e)
{
	struct seen *s = ctx;

	(void)e;
	s->drained = true;
}

static const struct zb_extension_ops ops = {
	.frame = on_frame,
	.denied = on_denied,
	.say = on_say,
	.ended = on_ended,
	.drained = on_drained,
};

static void start(struct seen *s, const struct tmphome *t,
		  const struct kit_wish *wish)
{
	struct zb_prepared p;
	struct zb_error err = {0};
	struct zb_extension_config cfg = {.loop = &s->loop,
					  .backend = &fake_backend,
					  .host = &s->host,
					  .store = &s->store,
					  .prepared = &p,
					  .ops = &ops,
					  .ctx = s,
					  .log_fd = -1,
					  .stdin_bound = s->bound};

	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&s->loop);
	s->store.logs = in(t, "logs");
	kit_prepare(&p, t->dir, wish);
	if (zb_extension_start(&s->e, &cfg, &err))
		fail_msg("%s", err.msg);
}

static void finish(struct seen *s)
{
	uv_run(&s->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	assert_int_equal(fake_alive(), 0);
	zb_strv_done(&s->frames);
	zb_strv_done(&s->types);
	zb_strv_done(&s->said);
	zb_strv_done(&s->denied);
	free(s->store.logs);
	fake_forget();
}

static void on_tick(uv_timer_t *t)
{
	(void)t;
}

/* Let the loop turn for @ms. */
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

#define WISH(...) (&(const struct kit_wish){.name = "x", __VA_ARGS__})

/* ---- the usual way ---- */

static int polite(struct fake *f)
{
	if (!fake_hello(f, "x"))
		return 1;
	fake_say(f, "{\"type\":\"ready\"}");
	fake_say(f, "{ \"type\":\"notify\" , \"level\":\"info\","
		    "\"message\":\"n\" }");
	return 3;
}

static void frames_then_status(void **state)
{
	struct tmphome *t = *state;
	struct seen s = {0};

	fake_program("x", polite);
	start(&s, t, WISH(0));
	uv_run(&s.loop, UV_RUN_DEFAULT);
	assert_int_equal(s.frames.n, 3);
	/* Original bytes, in order. */
	assert_string_equal(s.frames.v[2], "{ \"type\":\"notify\" , \"level\":"
					   "\"info\",\"message\":\"n\" }");
	assert_true(s.ended);
	assert_false(s.exited_before_last);
	assert_int_equal(s.exit.code, 3);
	assert_string_equal(s.reason, "exited with status 3");
	kit_expect_log(t->dir, "x", "log", "[zotbox] starting x/1.0.0 under");
	kit_expect_log(t->dir, "x", "log", "[zotbox] x exited with status 3");
	finish(&s);
}

/* ---- ends ---- */

static int burst(struct fake *f)
{
	fake_hello(f, "x");
	fake_exit_early(f, 0);
	for (unsigned i = 0; i < 2000; i++) {
		fake_say(f, NOTE, i);
		if (i % 500 == 0)
			fake_sleep(f, 300);
	}
	return 0;
}

/* A child writes on after the first process ended: nothing is lost. */
static void output_after_the_exit(void **state)
{
	struct seen s = {0};

	fake_program("x", burst);
	start(&s, *state, WISH(0));
	uv_run(&s.loop, UV_RUN_DEFAULT);
	assert_int_equal(s.notes, 2000);
	assert_false(s.exited_before_last);
	assert_string_equal(s.reason, "exited with status 0");
	finish(&s);
}

static int leaves_a_holder(struct fake *f)
{
	fake_hello(f, "x");
	fake_say(f, NOTE, 1);
	fake_exit_early(f, 7);
	fake_sleep(f, 60000);
	return 0;
}

/* ... and one that only holds the pipe is let go. */
static void silent_holder(void **state)
{
	struct seen s = {0};
	uint64_t begin = uv_hrtime();

	fake_program("x", leaves_a_holder);
	start(&s, *state, WISH(0));
	uv_run(&s.loop, UV_RUN_DEFAULT);
	assert_int_equal(s.notes, 1);
	assert_int_equal(s.exit.code, 7);
	assert_string_equal(s.reason, "exited with status 7");
	assert_true(uv_hrtime() - begin < 5000000000u);
	finish(&s);
}

static int deserts(struct fake *f)
{
	fake_hello(f, "x");
	fake_close_stdout(f);
	fake_sleep(f, 60000);
	return 0;
}

static void stdout_closed_alive(void **state)
{
	struct seen s = {0};

	fake_program("x", deserts);
	start(&s, *state, WISH(0));
	uv_run(&s.loop, UV_RUN_DEFAULT);
	assert_string_equal(s.reason, "closed stdout without exiting");
	finish(&s);
}

static int dies_early(struct fake *f)
{
	fake_stderr(f, "ImportError: no module\n");
	return 256 + SIGTERM;
}

static void before_hello(void **state)
{
	struct tmphome *t = *state;
	struct seen s = {0};

	fake_program("x", dies_early);
	start(&s, t, WISH(0));
	uv_run(&s.loop, UV_RUN_DEFAULT);
	assert_true(s.exit.signalled);
	assert_string_equal(s.reason,
			    "ended by signal 15 (Terminated) before hello");
	kit_expect_log(t->dir, "x", "log", "ImportError: no module");
	finish(&s);
}

static int never(struct fake *f)
{
	return fake_sleep(f, 60000) ? 0 : 1;
}

static void no_hello(void **state)
{
	struct tmphome *t = *state;
	struct seen s = {0};

	fake_program("x", never);
	start(&s, t, WISH(.hello_seconds = 1));
	uv_run(&s.loop, UV_RUN_DEFAULT);
	assert_string_equal(s.reason, "sent no hello within 1 s");
	kit_expect_log(t->dir, "x", "denials.jsonl",
		       "\"op\":\"limit.hello_seconds\"");
	finish(&s);
}

static int prints_first(struct fake *f)
{
	fake_say(f, "[db] Connected to 10.0.0.1\033[0m");
	fake_hello(f, "x");
	return fake_serve(f);
}

static void text_before_hello(void **state)
{
	struct seen s = {0};

	fake_program("x", prints_first);
	start(&s, *state, WISH(0));
	uv_run(&s.loop, UV_RUN_DEFAULT);
	assert_int_equal(s.frames.n, 0);
	assert_non_null(strstr(s.reason, "first stdout line is not a hello "
					 "frame: \"[db] Connected"));
	finish(&s);
}

static void stopped(void **state)
{
	struct seen s = {0};

	fake_program("x", never);
	start(&s, *state, WISH(0));
	zb_extension_stop(s.e, "was stopped by the test");
	zb_extension_stop(s.e, "twice");
	uv_run(&s.loop, UV_RUN_DEFAULT);
	assert_string_equal(s.reason, "was stopped by the test");
	finish(&s);
}

static void freed_while_running(void **state)
{
	struct seen s = {0};

	fake_program("x", never);
	start(&s, *state, WISH(0));
	zb_extension_free(s.e);
	uv_run(&s.loop, UV_RUN_DEFAULT);
	assert_false(s.ended);
	finish(&s);
}

static void signalled(void **state)
{
	struct seen s = {0};
	struct zb_error err = {0};

	fake_program("x", never);
	start(&s, *state, WISH(0));
	assert_int_equal(zb_extension_pid(s.e), 4242);
	assert_int_equal(zb_extension_signal(s.e, SIGKILL, &err), 0);
	uv_run(&s.loop, UV_RUN_DEFAULT);
	assert_int_equal(fake_last_signal(), SIGKILL);
	finish(&s);
}

/* ---- back-pressure ---- */

static int deaf(struct fake *f)
{
	fake_hello(f, "x");
	fake_sleep(f, 1500);
	return fake_serve(f);
}

/* It does not read: its queue is bounded, and drains when it does. */
static void deaf_extension(void **state)
{
	struct seen s = {.bound = 300000};
	struct zb_buf big = {0};
	unsigned taken = 0;

	fake_program("x", deaf);
	start(&s, *state, WISH(0));
	turn(&s, 200);
	zb_buf_adds(&big, "{\"type\":\"tool_call\",\"id\":\"1\",\"args\":\"");
	for (int i = 0; i < 10000; i++)
		zb_buf_adds(&big, "0123456789");
	zb_buf_adds(&big, "\"}");
	while (taken < 100 && !zb_extension_send(s.e, big.data, big.len))
		taken++;
	/* The pipe takes up to 1 MiB, the queue the rest. */
	assert_in_range(taken, 2, 14);
	assert_true(zb_extension_queued(s.e) <= 300000 + big.len);
	assert_false(s.drained);
	turn(&s, 2000);
	assert_true(s.drained);
	assert_int_equal(zb_extension_queued(s.e), 0);
	assert_int_equal(zb_extension_send(s.e, big.data, big.len), 0);
	zb_extension_close_stdin(s.e);
	assert_int_equal(zb_extension_send(s.e, big.data, big.len), ZB_ESYS);
	uv_run(&s.loop, UV_RUN_DEFAULT);
	assert_true(s.ended);
	zb_buf_done(&big);
	finish(&s);
}

static int closes_stdin(struct fake *f)
{
	fake_hello(f, "x");
	fake_close_stdin(f);
	fake_say(f, NOTE, 1);
	fake_sleep(f, 1000);
	return 0;
}

static void closed_stdin(void **state)
{
	struct seen s = {0};

	fake_program("x", closes_stdin);
	start(&s, *state, WISH(0));
	turn(&s, 300);
	assert_int_equal(s.notes, 1);
	zb_extension_send(s.e, "{\"type\":\"shutdown\"}", 19);
	assert_int_equal(zb_extension_send(s.e, "{\"type\":\"shutdown\"}", 19),
			 ZB_ESYS);
	finish(&s);
}

static int floods(struct fake *f)
{
	static char x[65536];

	fake_hello(f, "x");
	memset(x, 'e', sizeof(x) - 1);
	for (unsigned i = 0; i < 40; i++)
		fake_stderr(f, x);
	for (unsigned i = 0; i < 5000; i++)
		fake_say(f, NOTE, i);
	return 0;
}

/* Paused: no frame comes, yet its stderr is read and it cannot fill us up. */
static void paused(void **state)
{
	struct seen s = {.pause_at_hello = true};

	fake_program("x", floods);
	start(&s, *state, WISH(0));
	turn(&s, 1000);
	assert_int_equal(s.notes, 0);
	assert_int_equal(s.frames.n, 1);
	zb_extension_pause(s.e, false);
	uv_run(&s.loop, UV_RUN_DEFAULT);
	assert_int_equal(s.notes, 5000);
	assert_string_equal(s.reason, "exited with status 0");
	finish(&s);
}

static int long_line(struct fake *f)
{
	char *x = calloc(1, 5000001);

	fake_hello(f, "x");
	memset(x, 'y', 5000000);
	fake_say(f, "%s", x);
	fake_say(f, NOTE, 1);
	free(x);
	return 0;
}

static void over_long_line(void **state)
{
	struct seen s = {0};

	fake_program("x", long_line);
	start(&s, *state, WISH(0));
	uv_run(&s.loop, UV_RUN_DEFAULT);
	assert_int_equal(s.notes, 1);
	finish(&s);
}

/* ---- records ---- */

static int denied(struct fake *f)
{
	for (int i = 0; i < 3; i++)
		fake_deny(f, ZB_OP_FS_READ, "/secret");
	fake_hello(f, "x");
	fake_deny(f, ZB_OP_NET_CONNECT, "127.0.0.1:9");
	return 0;
}

static void denials(void **state)
{
	struct tmphome *t = *state;
	struct seen s = {0};

	fake_program("x", denied);
	start(&s, t, WISH(0));
	uv_run(&s.loop, UV_RUN_DEFAULT);
	/* The first of each kind, on this thread. */
	assert_int_equal(s.denied.n, 2);
	assert_string_equal(s.denied.v[0], "fs.read /secret");
	assert_true(zb_strv_has(&s.said, "4 denials (3 fs.read, 1 net.connect);"
					 " see zotbox ext logs x --denials"));
	kit_expect_log(t->dir, "x", "log", "[zotbox] 4 denials (3 fs.read, ");
	kit_expect_log(t->dir, "x", "denials.jsonl", "127.0.0.1:9");
	finish(&s);
}

static int withheld(struct fake *f)
{
	fake_hello(f, "x");
	return 0;
}

static void environment(void **state)
{
	struct tmphome *t = *state;
	struct seen s = {0};
	struct zb_prepared p;
	struct zb_error err = {0};
	struct zb_extension_config cfg = {.loop = &s.loop,
					  .backend = &fake_backend,
					  .host = &s.host,
					  .store = &s.store,
					  .prepared = &p,
					  .ops = &ops,
					  .ctx = &s,
					  .log_fd = -1,
					  .session = "probe-"};

	uv_loop_init(&s.loop);
	s.store.logs = in(t, "logs");
	kit_prepare(&p, t->dir, WISH(0));
	zb_strv_add(&p.plan.env_withheld, "A_TOKEN");
	zb_strv_add(&p.plan.env_withheld, "B_KEY");
	zb_strv_add(&p.plan.notices, "heed this");
	fake_program("x", withheld);
	assert_int_equal(zb_extension_start(&s.e, &cfg, &err), 0);
	assert_memory_equal(zb_extension_session(s.e), "probe-", 6);
	uv_run(&s.loop, UV_RUN_DEFAULT);
	assert_int_equal(s.denied.n, 1);
	assert_string_equal(s.denied.v[0], "env A_TOKEN B_KEY");
	assert_true(zb_strv_has(&s.said, "heed this"));
	kit_expect_log(t->dir, "x", "denials.jsonl",
		       "\"grant\":{\"key\":\"env.pass\",\"value\":\"A_TOKEN\"");
	finish(&s);
}

static int marked(struct fake *f)
{
	fake_write(f, "\357\273\277", 3);
	fake_hello(f, "x");
	fake_write(f, "{\"type\":\"ready\"}", 16); /* no newline at the end */
	return 0;
}

static void marks_and_tails(void **state)
{
	struct tmphome *t = *state;
	struct seen s = {0};

	fake_program("x", marked);
	start(&s, t, WISH(0));
	uv_run(&s.loop, UV_RUN_DEFAULT);
	assert_int_equal(s.frames.n, 2);
	kit_expect_log(t->dir, "x", "log", "[zotbox] BOM dropped");
	finish(&s);
}

/* A start that fails leaves nothing, and the caller keeps what was his. */
static void refused_start(void **state)
{
	struct tmphome *t = *state;
	struct seen s = {0};
	struct zb_prepared p;
	struct zb_error err = {0};
	struct zb_extension_config cfg = {.loop = &s.loop,
					  .backend = &fake_backend,
					  .host = &s.host,
					  .store = &s.store,
					  .prepared = &p,
					  .ops = &ops,
					  .ctx = &s,
					  .log_fd = -1};

	uv_loop_init(&s.loop);
	s.store.logs = in(t, "logs");
	kit_prepare(&p, t->dir, WISH(0));
	assert_int_equal(zb_extension_start(&s.e, &cfg, &err), ZB_EUNSUPPORTED);
	assert_string_equal(p.plan.name, "x");
	zb_prepared_done(&p);
	finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_tmp(frames_then_status),
		with_tmp(output_after_the_exit),
		with_tmp(silent_holder),
		with_tmp(stdout_closed_alive),
		with_tmp(before_hello),
		with_tmp(no_hello),
		with_tmp(text_before_hello),
		with_tmp(stopped),
		with_tmp(freed_while_running),
		with_tmp(signalled),
		with_tmp(deaf_extension),
		with_tmp(closed_stdin),
		with_tmp(paused),
		with_tmp(over_long_line),
		with_tmp(denials),
		with_tmp(environment),
		with_tmp(marks_and_tails),
		with_tmp(refused_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
