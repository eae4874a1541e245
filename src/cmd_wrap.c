/* cmd_wrap.c - zotbox wrap NAME: the shim between a stock zot and one
 * sandboxed extension.
 *
 *	zot --stdin--> wrap --(mediator)--> extension
 *	zot <-stdout-- wrap <-(mediator)--  extension
 *	ext-NAME.log <-stderr- wrap (ledger) <- extension's stderr
 *
 * Which project it is. It is known for certain only from hello_ack.cwd, and
 * that comes after hello, when zot's clock for registrations already runs. So
 * the project is taken from zot itself (its --cwd, else its current directory)
 * before the start. Should hello_ack name another one, and the plan use it,
 * the extension is ended and started again under the right plan. Meanwhile a
 * shutdown_ack now and then, which zot ignores, keeps it from taking silence
 * for readiness. The second instance's hello, and what both registered in the
 * same words, is passed once.
 *
 * How it ends. zot sends shutdown, closes stdin at once, waits 2 s and then
 * signals only us. So the extension gets GRACE_MS from shutdown; without a
 * shutdown (zot died, or a signal came) nothing. LEAVE_MS after the kill we
 * are gone whatever happens: what is left in the sandbox dies with us.
 *
 * on_failure "block" (guard.h): wrap outlives the extension and goes on to
 * block what it guarded. */
#define _GNU_SOURCE
#include "cleanup.h"
#include "cmd.h"
#include "extension.h"
#include "guard.h"
#include "host_frames.h"
#include "loop.h"
#include "memory.h"
#include "text.h"
#include "wrap_pipe.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define GRACE_MS    1500
#define LEAVE_MS    300
#define FLUSH_MS    2000 /* for zot to take what an extension said last */
#define BEAT_MS	    100
#define BEATS	    30
#define SILENCE_MS  250	 /* zot takes it for readiness */
#define SETTLE_MS   200	 /* after the extension's word that it is ready */
#define SETTLED_MS  2000 /* after hello, if that word never comes */
#define HELD_MAX    ((size_t)4 << 20)
#define EARLY_MAX   256
#define CMDLINE_MAX ((size_t)1 << 20)

struct wrap {
	uv_loop_t loop;
	struct zb_store store;
	struct zb_host host;
	const char *name;
	char *project; /* real path; NULL: unknown */
	struct zb_extension *ext;
	struct zb_wrap_in in;
	struct zb_wrap_out out;
	struct zb_guard guard;

	bool hello;	 /* one was passed to zot */
	bool ack;	 /* hello_ack came */
	bool ready;	 /* the extension's word passed */
	bool restarting; /* a second instance, until its hello */
	bool replacing;	 /* the first one is being ended for it */
	bool shutdown;	 /* zot said so */
	bool leaving;
	char *ack_line;
	size_t ack_len;
	struct zb_buf held;   /* zot's lines that wait, each with newline */
	struct zb_strv early; /* what the first instance said before ack */
	size_t early_bytes;
	uint64_t last_frame;
	unsigned beats;

	uv_timer_t beat, grace, leave, due, settle;
	uv_signal_t signals[3];
	int signo; /* that ended us */
	struct zb_exit exit;
	int code; /* to exit with when nothing is mirrored */
	bool mirror;
};

/* ---- messages ---- */

/* To the log that zot opened for us, while there is no ledger: with the prefix
 * that no line of the extension can have. */
static void log_plain(const char *name, const char *text)
{
	struct zb_buf out = {0};

	for (const char *p = text; *p;) {
		size_t n = strcspn(p, "\n");

		zb_buf_adds(&out, "[zotbox] ");
		if (p == text) {
			zb_text_escape(&out, name, strlen(name), 100);
			zb_buf_adds(&out, ": ");
		}
		zb_cmd_visible(&out, p, n);
		zb_buf_addc(&out, '\n');
		p += n + (p[n] == '\n');
	}
	/* There is nobody left to tell if this fails. */
	if (write(STDERR_FILENO, zb_buf_str(&out), out.len) < 0)
		errno = 0;
	zb_buf_done(&out);
}

static int refuse(const char *name, const struct zb_error *err)
{
	log_plain(name, err->msg);
	return zb_exit_code(err->code);
}

static void say(struct wrap *w, const char *fmt, ...) ZB_PRINTF(2, 3);
static void say(struct wrap *w, const char *fmt, ...)
{
	struct zb_buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	zb_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	if (w->ext)
		zb_ledger_say(zb_extension_ledger(w->ext), "%s",
			      zb_buf_str(&text));
	else
		log_plain(w->name, zb_buf_str(&text));
	zb_buf_done(&text);
}

/* ---- leaving ---- */

/* End as the extension ended. */
static void __attribute__((noreturn)) leave_as(const struct wrap *w)
{
	struct rlimit none = {0, 0};
	int signo = w->signo;

	if (!signo && w->mirror && w->exit.signalled)
		signo = w->exit.code;
	if (signo) {
		sigset_t set;

		/* Its core, if any, is not ours to dump. */
		setrlimit(RLIMIT_CORE, &none);
		signal(signo, SIG_DFL);
		sigemptyset(&set);
		sigaddset(&set, signo);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		raise(signo);
		_exit(128 + signo);
	}
	_exit(w->mirror ? w->exit.code : w->code);
}

static void on_leave(uv_timer_t *t)
{
	struct wrap *w = t->data;

	if (w->ext)
		zb_ledger_flush(zb_extension_ledger(w->ext));
	leave_as(w);
}

/* Everything is over: let zot have the last bytes, then go. */
static void leave(struct wrap *w)
{
	if (!w->leaving)
		uv_timer_start(&w->leave, on_leave, FLUSH_MS, 0);
	w->leaving = true;
	zb_wrap_in_close(&w->in);
	if (zb_wrap_out_idle(&w->out))
		uv_stop(&w->loop);
	else
		w->out.full = true; /* so that drained() comes */
}

/* Kill what there is and go, soon in any case. */
static void end_now(struct wrap *w, const char *reason)
{
	uv_timer_stop(&w->grace);
	uv_timer_start(&w->leave, on_leave, LEAVE_MS, 0);
	w->leaving = true;
	if (w->ext)
		zb_extension_stop(w->ext, reason);
	else
		uv_stop(&w->loop);
}

static void on_grace(uv_timer_t *t)
{
	struct wrap *w = t->data;

	w->mirror = true;
	w->exit = (struct zb_exit){.signalled = true, .code = SIGKILL};
	end_now(w, "did not end within 1.5 s of shutdown and was killed");
}

static void on_signal(uv_signal_t *h, int signo)
{
	struct wrap *w = h->data;

	w->signo = signo;
	end_now(w, "was ended by a signal to zotbox wrap");
}

/* ---- to zot ---- */

static void up(struct wrap *w, const char *line, size_t len)
{
	zb_wrap_out_line(&w->out, line, len);
	if (w->ext && zb_wrap_out_full(&w->out))
		zb_extension_pause(w->ext, true);
}

static void on_out_drained(void *ctx)
{
	struct wrap *w = ctx;

	if (w->leaving && !w->ext)
		uv_stop(&w->loop);
	else if (w->ext)
		zb_extension_pause(w->ext, false);
}

static void on_out_broke(void *ctx)
{
	struct wrap *w = ctx;

	if (!w->leaving)
		end_now(w, "was ended: zot reads no more");
}

/* ---- the guard ---- */

static void arm_guard(struct wrap *w);

static void block(struct wrap *w, struct zb_guard_call *c, const char *reason)
{
	struct zb_buf b = {0};

	zb_guard_block(&w->guard, c, reason, &b);
	up(w, zb_buf_str(&b), b.len);
	say(w, "guard \"%s\" %s for %s%s%s; blocked", w->name, reason, c->event,
	    c->tool ? " " : "", c->tool ? c->tool : "");
	zb_buf_done(&b);
	zb_guard_call_done(c);
}

static void on_due(uv_timer_t *t)
{
	struct wrap *w = t->data;
	int64_t now = (int64_t)uv_now(&w->loop);
	struct zb_guard_call c;
	char reason[48];

	snprintf(reason, sizeof(reason), "gave no answer in %lld.%lld s",
		 (long long)w->guard.wait_ms / 1000,
		 (long long)w->guard.wait_ms % 1000 / 100);
	while (zb_guard_due(&w->guard, now, &c)) {
		if (w->ext)
			zb_extension_expire(w->ext, c.id);
		block(w, &c, reason);
	}
	arm_guard(w);
}

static void arm_guard(struct wrap *w)
{
	int64_t wait = zb_guard_wait(&w->guard, (int64_t)uv_now(&w->loop));

	if (wait < 0)
		uv_timer_stop(&w->due);
	else
		uv_timer_start(&w->due, on_due, (uint64_t)wait, 0);
}

static void guard_subscribe(struct wrap *w, const struct zb_strv *events)
{
	struct zb_buf b = {0};

	zb_guard_subscribe(&w->guard, events, &b);
	up(w, zb_buf_str(&b), b.len);
	zb_buf_done(&b);
}

/* zot asks about something that is guarded. Return: true if it was dealt
 * with, false: the extension is to be asked. */
static bool guard_takes(struct wrap *w, struct zb_guard_call *c)
{
	struct zb_mediator *med = w->ext ? zb_extension_mediator(w->ext) : NULL;
	bool settled =
		w->ready || uv_now(&w->loop) - w->last_frame > SILENCE_MS;
	struct zb_buf b = {0};

	if (!w->ext) {
		block(w, c, "is not running");
		return true;
	}
	if (!zb_strv_has(zb_mediator_intercepts(med), c->event)) {
		if (!settled) {
			block(w, c, "is not ready yet");
			return true;
		}
		/* It runs and does not care: as if nobody had subscribed. */
		zb_guard_allow(c, &b);
		up(w, zb_buf_str(&b), b.len);
		zb_buf_done(&b);
		zb_guard_call_done(c);
		return true;
	}
	if (zb_guard_ask(&w->guard, (int64_t)uv_now(&w->loop), c)) {
		block(w, c, "has too many open questions");
		return true;
	}
	arm_guard(w);
	return false;
}

static void guard_lost(struct wrap *w, const char *reason)
{
	struct zb_guard_call c;

	while (zb_guard_due(&w->guard, INT64_MAX, &c))
		block(w, &c, reason);
	arm_guard(w);
}

/* ---- from zot ---- */

static void hold(struct wrap *w, const char *line, size_t len)
{
	zb_buf_add(&w->held, line, len);
	zb_buf_addc(&w->held, '\n');
	if (!w->restarting || w->held.len > HELD_MAX)
		zb_wrap_in_pause(&w->in, true);
}

/* To the extension, or kept until it takes it. */
static void down(struct wrap *w, const char *line, size_t len)
{
	struct zb_guard_call c;

	if (w->restarting || w->held.len) {
		hold(w, line, len);
		return;
	}
	if (zb_guard_question(&w->guard, line, len, &c) && guard_takes(w, &c))
		return;
	if (!w->ext || w->leaving)
		return;
	if (zb_extension_send(w->ext, line, len) == ZB_ELIMIT)
		hold(w, line, len);
}

static void flush_held(struct wrap *w)
{
	struct zb_buf lines = w->held;
	const char *p = zb_buf_str(&lines), *nl;

	memset(&w->held, 0, sizeof(w->held));
	for (; (nl = memchr(p, '\n',
			    (size_t)(zb_buf_str(&lines) + lines.len - p)));
	     p = nl + 1)
		down(w, p, (size_t)(nl - p));
	zb_buf_done(&lines);
	if (!w->held.len)
		zb_wrap_in_pause(&w->in, false);
}

static int start(struct wrap *w, struct zb_error *err);

static void on_beat(uv_timer_t *t)
{
	static const char frame[] = "{\"type\":\"shutdown_ack\"}";
	struct wrap *w = t->data;

	if (++w->beats > BEATS)
		uv_timer_stop(t);
	else
		up(w, frame, strlen(frame));
}

/* Is hello_ack about another project than the plan was made for? */
static char *other_project(const struct wrap *w, const char *line, size_t len)
{
	const struct zb_plan *plan = &zb_extension_prepared(w->ext)->plan;
	zb_auto(free) char *cwd = zb_frame_string(line, len, "cwd");
	zb_auto(free) char *real = NULL;

	if (!plan->uses_project || !cwd || cwd[0] != '/')
		return NULL;
	real = realpath(cwd, NULL);
	if (!real || (w->project && !strcmp(real, w->project)))
		return NULL;
	return zb_steal(&real);
}

static void on_ack(struct wrap *w, const char *line, size_t len)
{
	char *real = other_project(w, line, len);

	w->ack = true;
	w->last_frame = uv_now(&w->loop);
	if (w->guard.on)
		guard_subscribe(w, NULL);
	if (!real) {
		down(w, line, len);
		return;
	}
	free(w->project);
	w->project = real;
	w->ack_line = zb_strndup(line, len);
	w->ack_len = len;
	w->restarting = w->replacing = true;
	w->ready = false;
	uv_timer_start(&w->beat, on_beat, BEAT_MS, BEAT_MS);
	zb_extension_stop(w->ext, "is started again for the project that "
				  "hello_ack names");
}

/* Is it this frame? Asked of every line, so a look at how zot writes it comes
 * first; another spelling is recognised if the line is short, as it would be.
 */
static bool is_type(const char *line, size_t len, const char *type)
{
	static const char start[] = "{\"type\":\"";
	size_t n = sizeof(start) - 1, m = strlen(type);
	zb_auto(free) char *t = NULL;

	if (len > n + m && !memcmp(line, start, n))
		return !memcmp(line + n, type, m) && line[n + m] == '"';
	if (len > 4096 || !memmem(line, len, type, m))
		return false;
	t = zb_frame_string(line, len, "type");
	return t && !strcmp(t, type);
}

static void on_shutdown(struct wrap *w, const char *line, size_t len)
{
	static const char ack[] = "{\"type\":\"shutdown_ack\"}";

	w->shutdown = true;
	if (!w->ext || w->restarting) {
		/* It is gone, or not there yet: nobody to wait for. */
		up(w, ack, strlen(ack));
		if (!w->ext)
			leave(w);
		else
			end_now(w, "was ended by shutdown");
		return;
	}
	zb_extension_send(w->ext, line, len);
	zb_extension_close_stdin(w->ext);
	uv_timer_start(&w->grace, on_grace, GRACE_MS, 0);
}

static void on_line(void *ctx, const char *line, size_t len)
{
	struct wrap *w = ctx;

	if (!w->shutdown && is_type(line, len, "shutdown"))
		on_shutdown(w, line, len);
	else if (!w->ack && w->ext && is_type(line, len, "hello_ack"))
		on_ack(w, line, len);
	else
		down(w, line, len);
}

static void on_too_long(void *ctx, uint64_t total)
{
	struct wrap *w = ctx;

	say(w, "a line of %llu bytes from zot is too long; dropped",
	    (unsigned long long)total);
}

static void on_in_end(void *ctx)
{
	struct wrap *w = ctx;

	if (!w->shutdown && !w->leaving)
		end_now(w, "was ended: zot is gone");
}

/* ---- from the extension ---- */

/* Said by the first instance in the same words? */
static bool repeated(struct wrap *w, const char *line, size_t len)
{
	for (size_t i = 0; i < w->early.n; i++)
		if (strlen(w->early.v[i]) == len &&
		    !memcmp(w->early.v[i], line, len)) {
			free(w->early.v[i]);
			w->early.n--;
			memmove(&w->early.v[i], &w->early.v[i + 1],
				(w->early.n - i + 1) * sizeof(char *));
			return true;
		}
	return false;
}

static void remember_early(struct wrap *w, const char *line, size_t len)
{
	if (w->early.n >= EARLY_MAX || w->early_bytes + len > HELD_MAX)
		return;
	w->early_bytes += len;
	zb_strv_take(&w->early, zb_strndup(line, len));
}

static void on_settle(uv_timer_t *t)
{
	(void)t;
	zb_memory_settle();
}

static void on_hello(struct wrap *w, const char *line, size_t len)
{
	uv_timer_start(&w->settle, on_settle, SETTLED_MS, 0);
	if (!w->restarting) {
		w->hello = true;
		up(w, line, len);
		return;
	}
	/* The second instance: zot has greeted it already. */
	uv_timer_stop(&w->beat);
	w->restarting = false;
	if (w->ack_line)
		zb_extension_send(w->ext, w->ack_line, w->ack_len);
	flush_held(w);
}

/* What the guard needs to know of a line. Return: true if it was replaced. */
static bool guard_sees(struct wrap *w, const struct zb_med_out *info,
		       const char *line, size_t len)
{
	zb_auto(free) char *type = NULL;
	zb_auto(free) char *id = NULL;

	if (info && !strcmp(info->type, "subscribe")) {
		guard_subscribe(
			w, zb_mediator_events(zb_extension_mediator(w->ext)));
		return true;
	}
	if (info && !info->is_reply)
		return false;
	type = zb_frame_string(line, len, "type");
	if (!type || strcmp(type, "event_intercept_response"))
		return false;
	id = zb_frame_string(line, len, "id");
	if (id) {
		zb_guard_answered(&w->guard, id);
		arm_guard(w);
	}
	return false;
}

static void on_frame(void *ctx, struct zb_extension *e, const char *line,
		     size_t len, const struct zb_med_out *info)
{
	struct wrap *w = ctx;

	(void)e;
	if (w->replacing)
		return;
	w->last_frame = uv_now(&w->loop);
	if (info && info->is_hello) {
		on_hello(w, line, len);
		return;
	}
	if (info && info->is_ready) {
		w->ready = true;
		uv_timer_start(&w->settle, on_settle, SETTLE_MS, 0);
	}
	if (w->guard.on && guard_sees(w, info, line, len))
		return;
	if (w->early.n && w->ack && repeated(w, line, len))
		return;
	if (!w->ack)
		remember_early(w, line, len);
	up(w, line, len);
}

static void on_drained(void *ctx, struct zb_extension *e)
{
	struct wrap *w = ctx;

	(void)e;
	if (!w->restarting)
		flush_held(w);
}

/* The first instance is gone. A guard that cannot be had again is one that
 * died: what it guards is blocked. */
static void start_again(struct wrap *w)
{
	struct zb_error err = {0};

	if (!start(w, &err))
		return;
	w->code = refuse(w->name, &err);
	w->restarting = false;
	uv_timer_stop(&w->beat);
	if (w->guard.on)
		flush_held(w);
	else
		leave(w);
}

/* It ended before hello, or because of what it wrote: the log has the reason
 * from the ledger; its first words on stderr are there as well. */
static void on_ended(void *ctx, struct zb_extension *e,
		     const struct zb_exit *exit, const char *reason)
{
	struct wrap *w = ctx;
	bool broke = zb_extension_broke_protocol(e);
	char why[700];

	w->ext = NULL;
	if (w->replacing && !w->leaving) {
		w->replacing = false;
		zb_extension_free(e);
		start_again(w);
		return;
	}
	if (!w->mirror && !w->signo && !w->leaving) {
		w->mirror = !broke;
		w->code = 1;
		w->exit = *exit;
	}
	if (w->guard.on && w->hello && !w->shutdown && !w->leaving) {
		snprintf(why, sizeof(why), "is not running (%s)", reason);
		w->ext = e; /* for the log */
		guard_lost(w, why);
		say(w,
		    "guard \"%s\" is on_failure \"block\": what it guards "
		    "is blocked until zot ends",
		    w->name);
		w->ext = NULL;
		zb_extension_free(e);
		return;
	}
	zb_extension_free(e);
	leave(w);
}

static const struct zb_extension_ops extension_ops = {
	.frame = on_frame,
	.ended = on_ended,
	.drained = on_drained,
};

/* ---- start ---- */

static int start(struct wrap *w, struct zb_error *err)
{
	/* The second instance of a restart is the same run. */
	struct zb_target target = {
		.name = w->name, .project = w->project, .run = !w->restarting};
	struct zb_prepared p = {0};
	struct zb_extension_config cfg = {.loop = &w->loop,
					  .backend = zb_backend_native(),
					  .host = &w->host,
					  .store = &w->store,
					  .prepared = &p,
					  .ops = &extension_ops,
					  .ctx = w,
					  .log_fd = STDERR_FILENO};
	int rc = zb_prepare(&p, &w->store, &target, err);

	if (!rc) {
		zb_guard_done(&w->guard);
		rc = zb_guard_init(&w->guard, &p.plan);
	}
	if (!rc)
		rc = zb_extension_start(&w->ext, &cfg, err);
	if (rc)
		zb_prepared_done(&p);
	return rc;
}

/* zot starts an extension in its own directory, and a manifest elsewhere that
 * says `wrap NAME` (a project's) must not run under NAME's grants. */
static int check_place(const struct wrap *w, struct zb_error *err)
{
	zb_auto(free) char *want =
		zb_strf("%s/%s", w->store.extensions, w->name);
	zb_auto(free) char *real = want ? realpath(want, NULL) : NULL;
	zb_auto(free) char *here = realpath(".", NULL);

	if (!zb_name_valid(w->name))
		return zb_fail(err, ZB_EUSAGE,
			       "wrap takes the name of an installed extension");
	if (!real)
		return zb_fail(err, ZB_EPOLICY,
			       "no extension \"%s\" is installed: %s: %s; see "
			       "zotbox ext list",
			       w->name, want ? want : "?", strerror(errno));
	if (!here || strcmp(here, real))
		return zb_fail(err, ZB_EPOLICY,
			       "wrap %s was started in %s, but the installed "
			       "extension is in %s: another directory's "
			       "manifest must not use its name",
			       w->name, here ? here : "an unknown directory",
			       real);
	return 0;
}

/* The value of zot's --cwd among its arguments, or NULL. The last one counts.
 */
static const char *cwd_argument(const char *args, size_t len)
{
	static const char option[] = "--cwd";
	const char *found = NULL, *end = args + len;

	for (const char *p = args; p < end; p += strlen(p) + 1) {
		const char *next = p + strlen(p) + 1;

		if (!strcmp(p, "--"))
			break;
		if (!strcmp(p, option) && next < end)
			found = next;
		else if (!strncmp(p, "--cwd=", sizeof(option)))
			found = p + sizeof(option);
	}
	return found;
}

/* Where zot works, as a real path; NULL if it cannot be told. */
static char *project_of_parent(void)
{
	zb_auto(free) char *cmdline = zb_strf("/proc/%d/cmdline", getppid());
	zb_auto(free) char *cwd = zb_strf("/proc/%d/cwd", getppid());
	zb_auto(free) char *joined = NULL;
	struct zb_buf args = {0};
	struct zb_error err = {0};
	const char *value = NULL;
	char *real;

	if (!cmdline || !cwd)
		return NULL;
	if (!zb_read_file(cmdline, CMDLINE_MAX, &args, &err))
		value = cwd_argument(zb_buf_str(&args), args.len);
	if (value && *value)
		joined = *value == '/' ? zb_strdup(value)
				       : zb_strf("%s/%s", cwd, value);
	zb_buf_done(&args);
	real = joined ? realpath(joined, NULL) : NULL;
	return real ? real : realpath(cwd, NULL);
}

static int init_handles(struct wrap *w, struct zb_error *err)
{
	static const int list[] = {SIGTERM, SIGINT, SIGHUP};
	uv_timer_t *const timers[] = {&w->beat, &w->grace, &w->leave, &w->due,
				      &w->settle};
	int rc = zb_loop_open(&w->loop, err);

	if (!rc)
		rc = zb_loop_signals(&w->loop, w->signals, list,
				     ZB_ARRAY_LEN(list), on_signal, w, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < ZB_ARRAY_LEN(timers); i++) {
		uv_timer_init(&w->loop, timers[i]);
		timers[i]->data = w;
	}
	w->in.ctx = w->out.ctx = w;
	w->in.line = on_line;
	w->in.too_long = on_too_long;
	w->in.end = on_in_end;
	w->out.drained = on_out_drained;
	w->out.broke = on_out_broke;
	return 0;
}

static int prepare(struct wrap *w, struct zb_error *err)
{
	int rc = zb_store_open(&w->store, err);

	if (!rc)
		rc = check_place(w, err);
	if (!rc)
		rc = zb_backend_native()->look(&w->host, err);
	if (rc)
		return rc;
	w->project = project_of_parent();
	return start(w, err);
}

int zb_cmd_wrap(const struct zb_args *a)
{
	static struct wrap w;
	struct zb_error err = {0};
	int rc;

	zb_memory_begin();
	w.name = a->arg[0];
	rc = init_handles(&w, &err);
	if (!rc)
		rc = prepare(&w, &err);
	if (!rc)
		rc = zb_wrap_out_open(&w.out, &w.loop, STDOUT_FILENO, &err);
	if (!rc)
		rc = zb_wrap_in_open(&w.in, &w.loop, STDIN_FILENO, &err);
	if (rc) {
		rc = refuse(w.name, &err);
		/* The sandbox, if it was started already, ends with us. */
		_exit(rc);
	}
	uv_run(&w.loop, UV_RUN_DEFAULT);
	/* Close callbacks: the ledger's last lines are written in one. */
	while (!w.ext && uv_run(&w.loop, UV_RUN_NOWAIT))
		if (zb_wrap_out_idle(&w.out))
			break;
	leave_as(&w);
}
