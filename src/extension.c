/* extension.c - one running extension.
 *
 * Data flow, all on the loop's thread:
 *
 *   stdout -> framer -> mediator -> ops->frame        (pump)
 *   stderr -> ledger                                  (never waits for anyone)
 *   zb_extension_send -> mediator -> stdin, or queue  (bounded)
 *
 * Only two things come from elsewhere: refusals (the broker's thread) and the
 * end of the first process (any thread). Both are left under a mutex and the
 * loop is woken.
 *
 * How it ends. The exit of the first process is not the end: what it wrote
 * just before is still in the pipe, and a child of it may hold stdout and go
 * on writing. So stdout is read to its end; if other processes keep it open,
 * a pipe that stays quiet for QUIET_MS is let go, and a busy one after
 * LINGER_MS. The other way round, one that closes stdout everywhere and lives
 * on can serve nobody and is ended. Then the rest of the tree is killed, and a
 * thread of its own waits for it: the loop serves other extensions meanwhile.
 *
 *   running --exit--> lingering --EOF, quiet, cap--> reaping --> ended
 *      \----EOF-----> deserted ---exit, QUIET_MS--->/
 *       \---zb_extension_stop-------------------->/            */
#define _GNU_SOURCE
#include "extension.h"
#include "cleanup.h"
#include "evaluator.h"
#include "fdutil.h"
#include "frame.h"
#include "layers.h"
#include "loop.h"
#include "relax.h"
#include "text.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define PIPE_SIZE  (1 << 20)
#define QUIET_MS   1000
#define LINGER_MS  30000
#define FLUSH_MS   2000
#define FLUSHES	   3 /* after the last thing worth one: see touch() */
#define READ_SIZE  ((size_t)64 << 10)
#define READ_MAX   (1u << 20) /* at once */
#define KEEP_QUEUE ((size_t)256 << 10)
#define MAX_NEWS   1024 /* refusals waiting to be shown */
#define LAST_WORDS ((size_t)4 << 20)
#define MAX_TOLD   100 /* lines about its frames that the user is shown */

enum phase {
	RUNNING,
	LINGERING, /* first process gone, stdout still open */
	DESERTED,  /* stdout gone, first process alive */
	REAPING,
	ENDED,
};

struct news {
	struct zb_denial denial;
	struct news *next;
};

struct zb_extension {
	uv_loop_t *loop;
	const struct zb_backend *backend;
	const struct zb_extension_ops *ops;
	void *ctx;
	struct zb_prepared prepared;
	struct zb_mediator *med;
	struct zb_ledger *ledger;
	struct zb_proc *proc;
	char session[96];

	enum phase phase;
	bool hello, broke, bom_said, paused, held, stdin_gone, starved, freed;
	bool reading, pumping, out_eof, tail_taken, starting;
	unsigned told;
	struct zb_framer framer;
	struct zb_med_out from_ext, from_host;
	unsigned flushes;  /* still to come */
	atomic_bool dirty; /* records since the last flush */
	uint64_t exit_time, heard;
	struct zb_exit exit;
	char reason[640];

	uv_pipe_t in, out, err;
	uv_timer_t hello_timer, hold_timer, flush_timer, end_timer;
	struct zb_relax relax;
	uv_async_t wake;
	pthread_t reaper;
	bool has_reaper;
	atomic_bool reap_done;
	unsigned handles; /* open ones */

	/* What stdin did not take: @queue grows while @writing is written. */
	struct zb_buf queue, writing;
	uv_write_t write;
	bool write_busy, close_wanted;
	size_t bound;

	uv_mutex_t lock; /* of what follows */
	struct news *news, **news_end;
	unsigned n_news;
	bool exit_news;
	struct zb_exit exit_copy;
};

/* For what is on stderr. One for all: it is used within one callback only. */
static char read_room[READ_SIZE];

static void pump(struct zb_extension *e);
static void finish(struct zb_extension *e, const char *reason);

/* ---- telling ---- */

void zb_extension_tell(struct zb_extension *e, const char *fmt, ...)
{
	struct zb_buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	zb_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	zb_ledger_say(e->ledger, "%s", zb_buf_str(&text));
	if (e->ops->say)
		e->ops->say(e->ctx, e, zb_buf_str(&text));
	zb_buf_done(&text);
}

static uint64_t limit(const struct zb_extension *e, enum zb_limit l)
{
	return zb_plan_limit(&e->prepared.plan, l);
}

/* ---- flushing ---- */

static void on_flush(uv_timer_t *t)
{
	struct zb_extension *e = t->data;

	if (atomic_exchange(&e->dirty, false))
		e->flushes = FLUSHES;
	zb_ledger_flush(e->ledger);
	if (!--e->flushes)
		uv_timer_stop(t);
}

/* Something was recorded or logged: flush for a while. The timer does not run
 * for nothing, as any timer makes every wait of the loop dearer. */
static void touch(struct zb_extension *e)
{
	e->flushes = FLUSHES;
	if (!uv_is_active((uv_handle_t *)&e->flush_timer) && e->phase < ENDED)
		uv_timer_start(&e->flush_timer, on_flush, FLUSH_MS, FLUSH_MS);
}

/* ---- news from other threads ---- */

static void free_news(struct news *n)
{
	while (n) {
		struct news *next = n->next;

		zb_denial_done(&n->denial);
		free(n);
		n = next;
	}
}

/* The ledger's: first hit of a kind, in the recording thread. */
static void on_first(void *ctx, const struct zb_denial *d)
{
	struct zb_extension *e = ctx;
	struct news *n;

	if (!e->ops->denied)
		return;
	n = calloc(1, sizeof(*n));
	if (!n || zb_denial_copy(&n->denial, d)) {
		free_news(n);
		return;
	}
	uv_mutex_lock(&e->lock);
	if (e->n_news < MAX_NEWS) {
		e->n_news++;
		*e->news_end = n;
		e->news_end = &n->next;
		n = NULL;
	}
	uv_mutex_unlock(&e->lock);
	free_news(n);
	uv_async_send(&e->wake);
}

/* The broker's thread. */
static void on_denial(void *ctx, struct zb_denial *d)
{
	struct zb_extension *e = ctx;

	zb_ledger_record(e->ledger, d);
	if (!atomic_exchange(&e->dirty, true))
		uv_async_send(&e->wake);
}

static void on_exit_news(void *ctx, const struct zb_exit *exit)
{
	struct zb_extension *e = ctx;

	uv_mutex_lock(&e->lock);
	if (!e->exit_news) {
		e->exit_copy = *exit;
		e->exit_copy.reason = zb_strdup(exit->reason);
		e->exit_news = true;
	}
	uv_mutex_unlock(&e->lock);
	uv_async_send(&e->wake);
}

static void show_news(struct zb_extension *e)
{
	struct news *list;

	uv_mutex_lock(&e->lock);
	list = e->news;
	e->news = NULL;
	e->news_end = &e->news;
	e->n_news = 0;
	uv_mutex_unlock(&e->lock);
	for (struct news *n = list; n && !e->freed; n = n->next)
		e->ops->denied(e->ctx, e, &n->denial);
	free_news(list);
}

bool zb_extension_exited(struct zb_extension *e)
{
	bool yes;

	uv_mutex_lock(&e->lock);
	yes = e->exit_news;
	uv_mutex_unlock(&e->lock);
	return yes;
}

/* ---- the end ---- */

static const char *before_hello(const struct zb_extension *e)
{
	return e->hello ? "" : " before hello";
}

/* How the first process ended, for people. */
static void describe_exit(struct zb_extension *e, const struct zb_exit *x)
{
	if (x->reason)
		snprintf(e->reason, sizeof(e->reason), "%s", x->reason);
	else if (x->signalled)
		snprintf(e->reason, sizeof(e->reason),
			 "ended by signal %d (%s)%s", x->code,
			 strsignal(x->code), before_hello(e));
	else
		snprintf(e->reason, sizeof(e->reason),
			 "exited with status %d%s", x->code, before_hello(e));
}

/* Everything that could write is gone: what is in the pipe is all. */
static void last_words(struct zb_extension *e)
{
	size_t total = 0;
	uv_os_fd_t fd;
	ssize_t n;

	if (uv_is_closing((uv_handle_t *)&e->err) ||
	    uv_fileno((uv_handle_t *)&e->err, &fd))
		return;
	uv_read_stop((uv_stream_t *)&e->err);
	while (total < LAST_WORDS &&
	       (n = read(fd, read_room, sizeof(read_room))) > 0) {
		zb_ledger_stderr(e->ledger, read_room, (size_t)n);
		total += (size_t)n;
	}
}

/* The box of one that is run by its path: "@HASH"; NULL: it is installed. */
static char *box_of_path(const struct zb_prepared *p)
{
	const char *at = p->box ? strstr(p->box, "/@") : NULL;

	return at ? zb_strndup(at + 1, strcspn(at + 1, "/")) : NULL;
}

/* How `ext logs` is told which one it was. */
static void add_operand(const struct zb_prepared *p, struct zb_buf *out)
{
	zb_auto(free) char *box = box_of_path(p);

	if (!box || !p->dir || zb_text_shell_quote(out, p->dir))
		zb_buf_adds(out, box ? box : p->plan.name);
}

static void summarise(struct zb_extension *e)
{
	struct zb_buf parts = {0}, operand = {0};
	unsigned long long total = 0;

	zb_ledger_say(e->ledger, "%s%s %s", e->prepared.plan.name,
		      e->broke ? ":" : "", e->reason);
	zb_ledger_summary(e->ledger, &parts);
	for (const char *p = zb_buf_str(&parts); *p;) {
		total += strtoull(p, NULL, 10);
		p += strcspn(p, ",");
		p += strspn(p, ", ");
	}
	add_operand(&e->prepared, &operand);
	if (total)
		zb_extension_tell(
			e,
			"%llu denial%s (%s); see zotbox ext logs %s --denials",
			total, total == 1 ? "" : "s", zb_buf_str(&parts),
			zb_buf_str(&operand));
	zb_buf_done(&operand);
	zb_buf_done(&parts);
}

static void close_all(struct zb_extension *e);

/* A thread of its own. */
static void *reap(void *ctx)
{
	struct zb_extension *e = ctx;
	struct zb_exit x = {0};

	e->backend->reap(e->proc, &x);
	/* The callee of on_exit copied it already, unless it never came. */
	on_exit_news(e, &x);
	free(x.reason);
	atomic_store(&e->reap_done, true);
	uv_async_send(&e->wake);
	return NULL;
}

static void reaped(struct zb_extension *e)
{
	if (e->has_reaper)
		pthread_join(e->reaper, NULL);
	e->proc = NULL;
	e->exit = e->exit_copy;
	last_words(e);
	show_news(e);
	if (!e->reason[0])
		describe_exit(e, &e->exit);
	e->phase = ENDED;
	if (e->freed) {
		close_all(e);
		return;
	}
	summarise(e);
	zb_ledger_flush(e->ledger);
	show_news(e);
	if (!e->freed)
		e->ops->ended(e->ctx, e, &e->exit, e->reason);
	if (e->freed)
		close_all(e);
}

/* Kill what is left and collect it. @reason NULL: as it exited. */
static void finish(struct zb_extension *e, const char *reason)
{
	if (e->phase >= REAPING)
		return;
	if (reason && !e->reason[0])
		snprintf(e->reason, sizeof(e->reason), "%s", reason);
	e->phase = REAPING;
	uv_timer_stop(&e->hello_timer);
	uv_timer_stop(&e->hold_timer);
	uv_timer_stop(&e->end_timer);
	if (e->reading)
		uv_read_stop((uv_stream_t *)&e->out);
	e->reading = false;
	e->backend->stop(e->proc);
	/* Where no thread can be had, all others wait as well: it is killed
	 * already, so not for long. */
	e->has_reaper = !zb_loop_thread(&e->reaper, reap, e);
	if (!e->has_reaper)
		reap(e);
}

static void on_end_timer(uv_timer_t *t)
{
	struct zb_extension *e = t->data;

	if (e->paused || e->held) {
		/* Not its silence but ours. */
		uv_timer_start(t, on_end_timer, QUIET_MS, 0);
		return;
	}
	if (e->phase == DESERTED)
		finish(e, e->hello ? "closed stdout without exiting"
				   : "closed stdout before hello without "
				     "exiting");
	else
		finish(e, NULL);
}

/* First process gone, or stdout gone: is it all over? */
static void check_end(struct zb_extension *e)
{
	bool gone = zb_extension_exited(e);

	if (e->phase >= REAPING || (!gone && !e->out_eof))
		return;
	if (gone && e->out_eof && e->tail_taken) {
		finish(e, NULL);
		return;
	}
	if (gone && e->phase == RUNNING) {
		e->phase = LINGERING;
		e->exit_time = uv_now(e->loop);
	} else if (!gone && e->tail_taken) {
		e->phase = DESERTED;
	}
	if (e->phase == LINGERING &&
	    uv_now(e->loop) - e->exit_time > LINGER_MS && !e->paused)
		finish(e, NULL);
	else
		uv_timer_start(&e->end_timer, on_end_timer, QUIET_MS, 0);
}

static void on_wake(uv_async_t *h)
{
	struct zb_extension *e = h->data;

	if (atomic_exchange(&e->reap_done, false)) {
		reaped(e);
		return;
	}
	if (atomic_load(&e->dirty))
		touch(e);
	if (e->ops->denied)
		show_news(e);
	if (!e->freed)
		check_end(e);
}

void zb_extension_stop(struct zb_extension *e, const char *reason)
{
	finish(e, reason);
}

/* ---- stdin ---- */

static void close_stdin_now(struct zb_extension *e);

static void stdin_broke(struct zb_extension *e)
{
	if (e->stdin_gone)
		return;
	if (e->phase == RUNNING)
		zb_ledger_say(e->ledger, "%s closed its stdin",
			      e->prepared.plan.name);
	close_stdin_now(e);
}

static void drop_if_large(struct zb_buf *b)
{
	if (b->cap > KEEP_QUEUE)
		zb_buf_done(b);
	else
		zb_buf_clear(b);
}

static void write_queue(struct zb_extension *e);

static void on_written(uv_write_t *req, int status)
{
	struct zb_extension *e = req->data;

	e->write_busy = false;
	drop_if_large(&e->writing);
	if (e->stdin_gone || uv_is_closing((uv_handle_t *)&e->in))
		return;
	if (status) {
		stdin_broke(e);
		return;
	}
	write_queue(e);
	if (!e->write_busy && e->starved) {
		e->starved = false;
		if (e->ops->drained)
			e->ops->drained(e->ctx, e);
	}
}

static void write_queue(struct zb_extension *e)
{
	struct zb_buf other = e->writing;
	uv_buf_t b;

	if (e->write_busy || e->stdin_gone)
		return;
	if (!e->queue.len) {
		if (e->close_wanted)
			close_stdin_now(e);
		return;
	}
	e->writing = e->queue;
	e->queue = other;
	e->write.data = e;
	b = uv_buf_init(e->writing.data, (unsigned)e->writing.len);
	if (uv_write(&e->write, (uv_stream_t *)&e->in, &b, 1, on_written))
		stdin_broke(e);
	else
		e->write_busy = true;
}

/* @line and a newline, at once if the pipe takes them. A line that still has
 * its own newline behind it is one piece. */
static int write_line(struct zb_extension *e, const char *line, size_t len)
{
	bool whole = line[len] == '\n';
	uv_buf_t b[2] = {
		uv_buf_init((char *)(uintptr_t)line, (unsigned)(len + whole)),
		uv_buf_init((char[]){'\n'}, 1)};
	size_t done = 0;

	if (e->stdin_gone || e->close_wanted)
		return ZB_ESYS;
	if (!e->write_busy && !e->queue.len) {
		int n = uv_try_write((uv_stream_t *)&e->in, b, whole ? 1 : 2);

		if (n < 0 && n != UV_EAGAIN) {
			stdin_broke(e);
			return ZB_ESYS;
		}
		done = n > 0 ? (size_t)n : 0;
		if (done == len + 1)
			return 0;
	}
	if (done < len)
		zb_buf_add(&e->queue, line + done, len - done);
	zb_buf_addc(&e->queue, '\n');
	if (e->queue.failed) {
		/* Half a frame may be out: the stream is useless now. */
		stdin_broke(e);
		return ZB_ESYS;
	}
	write_queue(e);
	return 0;
}

uint64_t zb_extension_heard(const struct zb_extension *e)
{
	return e->heard;
}

size_t zb_extension_queued(const struct zb_extension *e)
{
	size_t n = e->queue.len;

	/* What libuv wrote of @writing it tells by its own count. */
	if (e->write_busy)
		n += uv_stream_get_write_queue_size(
			(const uv_stream_t *)&e->in);
	return n;
}

/* The shipped program has every layer (layers.h). Without this one the line
 * passes as it is: the state is kept, the verdict is not. */
static void without_mediator(struct zb_med_out *o)
{
	if (zb_layers.mediator)
		return;
	o->verdict = ZB_MED_PASS;
	zb_buf_clear(&o->also_upstream);
}

/* What the mediator has to say about a frame of the extension is for its
 * author: what was skipped, cut out, refused. A flood of it is in the log. */
static void tell_fault(struct zb_extension *e, const char *text)
{
	zb_ledger_say(e->ledger, "%s", text);
	if (!e->ops->say || e->freed || e->told > MAX_TOLD)
		return;
	if (e->told++ == MAX_TOLD)
		text = "more is wrong with its frames; the rest is in its log";
	e->ops->say(e->ctx, e, text);
}

static void record(struct zb_extension *e, struct zb_med_out *o,
		   void (*log)(struct zb_extension *e, const char *text))
{
	without_mediator(o);
	if (o->n_denials || o->log.n)
		touch(e);
	for (size_t i = 0; i < o->n_denials; i++)
		zb_ledger_record(e->ledger, &o->denials[i]);
	for (size_t i = 0; i < o->log.n; i++)
		log(e, o->log.v[i]);
}

static void log_only(struct zb_extension *e, const char *text)
{
	zb_ledger_say(e->ledger, "%s", text);
}

int zb_extension_send(struct zb_extension *e, const char *line, size_t len)
{
	struct zb_med_out *o = &e->from_host;
	size_t queued = zb_extension_queued(e);

	if (e->stdin_gone || e->close_wanted || e->phase >= REAPING)
		return ZB_ESYS;
	/* Once it was full it stays so until it is empty: a small frame must
	 * not overtake, nor wait behind what nobody reads. */
	if (e->starved || (queued && queued + len + 1 > e->bound)) {
		e->starved = true;
		return ZB_ELIMIT;
	}
	if (zb_mediator_from_host(e->med, (int64_t)uv_now(e->loop), line, len,
				  o))
		return ZB_ELIMIT;
	record(e, o, log_only);
	switch (o->verdict) {
	case ZB_MED_PASS:
		return write_line(e, line, len);
	case ZB_MED_CUT:
		return write_line(e, zb_buf_str(&o->bytes), o->bytes.len);
	case ZB_MED_REPLY:
		e->ops->frame(e->ctx, e, zb_buf_str(&o->bytes), o->bytes.len,
			      NULL);
		return 0;
	case ZB_MED_DROP:
	case ZB_MED_KILL:
		break;
	}
	return 0;
}

static void on_closed(uv_handle_t *h);

static void close_handle(struct zb_extension *e, uv_handle_t *h)
{
	(void)e;
	if (!uv_is_closing(h))
		uv_close(h, on_closed);
}

static void close_stdin_now(struct zb_extension *e)
{
	e->stdin_gone = true;
	zb_buf_done(&e->queue);
	close_handle(e, (uv_handle_t *)&e->in);
}

void zb_extension_close_stdin(struct zb_extension *e)
{
	if (e->stdin_gone || e->close_wanted)
		return;
	e->close_wanted = true;
	write_queue(e);
}

/* ---- stdout ---- */

static void alloc_room(uv_handle_t *h, size_t hint, uv_buf_t *b)
{
	(void)h;
	(void)hint;
	*b = uv_buf_init(read_room, sizeof(read_room));
}

static void alloc_line(uv_handle_t *h, size_t hint, uv_buf_t *b)
{
	struct zb_extension *e = h->data;
	char *room;
	size_t n = zb_framer_room(&e->framer, &room);

	(void)hint;
	*b = uv_buf_init(room, n < READ_MAX ? (unsigned)n : READ_MAX);
}

static void on_out(uv_stream_t *s, ssize_t n, const uv_buf_t *b);

static void set_reading(struct zb_extension *e)
{
	bool want = !e->paused && !e->held && !e->out_eof && e->phase < REAPING;

	if (want == e->reading)
		return;
	e->reading = want;
	if (want)
		uv_read_start((uv_stream_t *)&e->out, alloc_line, on_out);
	else
		uv_read_stop((uv_stream_t *)&e->out);
}

static void on_hold_over(uv_timer_t *t)
{
	struct zb_extension *e = t->data;

	e->held = false;
	pump(e);
}

static void deliver(struct zb_extension *e, struct zb_med_out *o,
		    const char *line, size_t len)
{
	switch (o->verdict) {
	case ZB_MED_PASS:
		e->ops->frame(e->ctx, e, line, len, o);
		break;
	case ZB_MED_CUT:
		e->ops->frame(e->ctx, e, zb_buf_str(&o->bytes), o->bytes.len,
			      o);
		break;
	case ZB_MED_REPLY:
		write_line(e, zb_buf_str(&o->bytes), o->bytes.len);
		break;
	case ZB_MED_KILL:
		e->broke = e->phase < REAPING;
		finish(e, o->reason);
		break;
	case ZB_MED_DROP:
		break;
	}
	if (o->also_upstream.len && e->phase < REAPING)
		e->ops->frame(e->ctx, e, zb_buf_str(&o->also_upstream),
			      o->also_upstream.len, NULL);
}

static void take_line(struct zb_extension *e, const struct zb_line *l)
{
	struct zb_med_out *o = &e->from_ext;
	int64_t now = (int64_t)uv_now(e->loop), hold;
	int rc;

	if (l->kind == ZB_LINE_TOO_LONG)
		rc = zb_mediator_too_long(e->med, now, l->text, l->len,
					  l->total, o);
	else
		rc = zb_mediator_from_ext(e->med, now, l->text, l->len, o);
	if (rc) {
		finish(e, "out of memory");
		return;
	}
	/* The reason of an end has it all. */
	record(e, o, o->verdict == ZB_MED_KILL ? log_only : tell_fault);
	if (o->is_hello && !e->hello && o->verdict != ZB_MED_KILL) {
		e->hello = true;
		uv_timer_stop(&e->hello_timer);
	}
	deliver(e, o, l->text, l->len);
	hold = zb_mediator_hold_ms(e->med, now);
	if (hold > 0 && e->phase < REAPING) {
		e->held = true;
		uv_timer_start(&e->hold_timer, on_hold_over, (uint64_t)hold, 0);
	}
}

/* Hand out whole lines for as long as somebody wants them. */
static void pump(struct zb_extension *e)
{
	struct zb_line l;

	if (e->pumping) /* the loop below goes on by itself */
		return;
	e->pumping = true;
	while (!e->paused && !e->held && e->phase < REAPING) {
		if (e->out_eof)
			zb_framer_end(&e->framer, &l);
		else
			zb_framer_next(&e->framer, &l);
		if (l.kind == ZB_LINE_NONE) {
			e->tail_taken = e->out_eof;
			break;
		}
		take_line(e, &l);
	}
	e->pumping = false;
	if (e->phase >= REAPING)
		return;
	set_reading(e);
	if (e->phase != RUNNING || e->out_eof)
		check_end(e);
}

static void on_out(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
	struct zb_extension *e = s->data;

	(void)b;
	if (n == 0)
		return;
	if (n == UV_ENOBUFS) {
		finish(e, "out of memory");
		return;
	}
	if (n < 0) {
		e->out_eof = true;
		e->reading = false;
		uv_read_stop(s);
	} else {
		e->heard = uv_now(e->loop);
		zb_framer_came(&e->framer, (size_t)n);
	}
	if (e->framer.bom && !e->bom_said) {
		e->bom_said = true;
		tell_fault(e, "BOM dropped: the first frame was preceded by a "
			      "UTF-8 byte-order mark");
	}
	pump(e);
	zb_relax_after_read(&e->relax);
}

void zb_extension_pause(struct zb_extension *e, bool paused)
{
	if (e->paused == paused)
		return;
	e->paused = paused;
	if (paused)
		set_reading(e);
	else
		pump(e);
}

/* ---- stderr, timers ---- */

static void on_err(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
	struct zb_extension *e = s->data;

	if (n > 0) {
		zb_ledger_stderr(e->ledger, b->base, (size_t)n);
		touch(e);
	} else if (n < 0) {
		close_handle(e, (uv_handle_t *)s);
	}
}

static void on_no_hello(uv_timer_t *t)
{
	struct zb_extension *e = t->data;
	unsigned long long s = limit(e, ZB_LIMIT_HELLO_SECONDS);
	struct zb_denial d = {.op = ZB_OP_LIMIT,
			      .by = ZB_BY_LIMIT,
			      .evidence = ZB_EV_DECIDED,
			      .detail = zb_strdup("hello_seconds"),
			      .rule = zb_strf("limits.hello_seconds: %llu", s),
			      .grant_key = zb_strdup("limits.hello_seconds"),
			      .grant_value = zb_strf("%llu", s * 2)};
	char reason[64];

	zb_ledger_record(e->ledger, &d);
	snprintf(reason, sizeof(reason), "sent no hello within %llu s", s);
	finish(e, reason);
}

/* ---- start ---- */

static void on_closed(uv_handle_t *h)
{
	struct zb_extension *e = h->data;

	if (--e->handles)
		return;
	free_news(e->news);
	zb_framer_done(&e->framer);
	zb_med_out_done(&e->from_ext);
	zb_med_out_done(&e->from_host);
	zb_mediator_free(e->med);
	zb_ledger_close(e->ledger);
	if (!e->starting)
		zb_prepared_done(&e->prepared);
	zb_buf_done(&e->queue);
	zb_buf_done(&e->writing);
	free(e->exit_copy.reason);
	uv_mutex_destroy(&e->lock);
	free(e);
}

static void close_all(struct zb_extension *e)
{
	uv_handle_t *all[] = {
		(uv_handle_t *)&e->in,	       (uv_handle_t *)&e->out,
		(uv_handle_t *)&e->err,	       (uv_handle_t *)&e->hello_timer,
		(uv_handle_t *)&e->hold_timer, (uv_handle_t *)&e->flush_timer,
		(uv_handle_t *)&e->end_timer,  (uv_handle_t *)&e->relax.timer,
	};

	if (e->wake.data)
		close_handle(e, (uv_handle_t *)&e->wake);
	for (size_t i = 0; i < ZB_ARRAY_LEN(all); i++)
		close_handle(e, all[i]);
}

void zb_extension_free(struct zb_extension *e)
{
	if (!e || e->freed)
		return;
	e->freed = true;
	if (e->phase < REAPING)
		finish(e, "given up");
	else if (e->phase == ENDED)
		close_all(e);
}

/* Of these only the last can fail; the others are to be closed in any case. */
static int init_handles(struct zb_extension *e, struct zb_error *err)
{
	uv_timer_t *const timers[] = {&e->hello_timer, &e->hold_timer,
				      &e->flush_timer, &e->end_timer};
	uv_pipe_t *const pipes[] = {&e->in, &e->out, &e->err};
	int rc;

	for (size_t i = 0; i < ZB_ARRAY_LEN(timers); i++) {
		uv_timer_init(e->loop, timers[i]);
		timers[i]->data = e;
		e->handles++;
	}
	for (size_t i = 0; i < ZB_ARRAY_LEN(pipes); i++) {
		uv_pipe_init(e->loop, pipes[i], 0);
		pipes[i]->data = e;
		e->handles++;
	}
	zb_relax_init(&e->relax, e->loop, &e->framer, &e->pumping);
	e->relax.timer.data = e;
	e->handles++;
	rc = uv_async_init(e->loop, &e->wake, on_wake);
	if (rc)
		return zb_fail_sys(err, -rc, "make an event");
	e->wake.data = e;
	e->handles++;
	return 0;
}

/* A pipe whose end @ours is given to @h (non-blocking); *@theirs is the
 * child's. The larger size is wished for: past an unprivileged user's total
 * the kernel refuses, and the usual 64 KiB do. */
static int make_pipe(uv_pipe_t *h, bool we_write, int *theirs,
		     struct zb_error *err)
{
	int fds[2], ours;

	if (pipe2(fds, O_CLOEXEC))
		return zb_fail_sys(err, errno, "make a pipe");
	fcntl(fds[0], F_SETPIPE_SZ, PIPE_SIZE);
	ours = fds[we_write];
	*theirs = fds[!we_write];
	if (uv_pipe_open(h, ours)) {
		close(ours);
		return zb_fail(err, ZB_ESYS, "open a pipe");
	}
	return 0;
}

static void name_session(struct zb_extension *e, const char *prefix)
{
	static unsigned count;
	struct timespec now;
	struct tm tm;
	char day[32];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(day, sizeof(day), "%Y%m%dT%H%M%S", &tm);
	snprintf(e->session, sizeof(e->session), "%.32s%s.%03ld-%d-%u",
		 prefix ? prefix : "", day, now.tv_nsec / 1000000,
		 (int)getpid(), ++count);
}

static int open_parts(struct zb_extension *e,
		      const struct zb_extension_config *cfg,
		      const struct zb_prepared *p, struct zb_error *err)
{
	struct zb_mediator_config med = {.plan = &e->prepared.plan,
					 .data_dir = p->plan.data_dir,
					 .extension_dir =
						 p->plan.extension_dir};
	zb_auto(free) char *box = box_of_path(p);
	struct zb_ledger_config ledger = {.logs_dir = cfg->store->logs,
					  .ext = p->plan.name,
					  .file = box,
					  .session = e->session,
					  .home = p->plan.home,
					  .log_fd = cfg->log_fd,
					  .on_first = on_first,
					  .ctx = e};
	uint64_t frame;
	int rc;

	ledger.log_bytes = zb_plan_limit(&p->plan, ZB_LIMIT_LOG_BYTES);
	rc = zb_ledger_open(&e->ledger, &ledger, err);
	if (!rc)
		rc = zb_mediator_new(&e->med, &med, err);
	frame = zb_plan_limit(&p->plan, ZB_LIMIT_FRAME_BYTES);
	zb_framer_init(&e->framer,
		       frame < ZB_FRAME_MAX ? (size_t)frame : ZB_FRAME_MAX);
	return rc;
}

static int spawn(struct zb_extension *e, const struct zb_host *host,
		 struct zb_error *err)
{
	struct zb_spawn_options opt = {
		.on_denial = on_denial, .ctx = e, .on_exit = on_exit_news};
	zb_auto(fd) int in = -1;
	zb_auto(fd) int out = -1;
	zb_auto(fd) int errors = -1;
	int rc;

	rc = make_pipe(&e->in, true, &in, err);
	if (!rc)
		rc = make_pipe(&e->out, false, &out, err);
	if (!rc)
		rc = make_pipe(&e->err, false, &errors, err);
	if (!rc)
		rc = e->backend->spawn(&e->prepared.plan, host,
				       (const int[3]){in, out, errors}, &opt,
				       &e->proc, err);
	if (!rc)
		zb_prepared_started(&e->prepared);
	return rc;
}

/* What the environment of this start withholds, in one record: reads of an
 * environment cannot be seen. The grant names the first, the rule all. */
static void record_env(struct zb_extension *e)
{
	const struct zb_strv *names = &e->prepared.plan.env_withheld;
	struct zb_query q = {.op = ZB_OP_ENV, .place = -1};
	struct zb_denial d = {
		.op = ZB_OP_ENV, .by = ZB_BY_PLAN, .evidence = ZB_EV_DECIDED};
	struct zb_buf list = {0};
	struct zb_answer a;

	if (!names->n)
		return;
	for (size_t i = 0; i < names->n; i++)
		zb_buf_addf(&list, "%s%s", i ? " " : "", names->v[i]);
	q.target = names->v[0];
	zb_evaluate(&e->prepared.plan, &q, &a);
	d.target = zb_buf_steal(&list);
	d.rule = names->n == 1 || !a.rule
			 ? zb_steal(&a.rule)
			 : zb_strf("%s; %zu names are withheld", a.rule,
				   names->n);
	d.grant_key = zb_steal(&a.grant_key);
	d.grant_value = zb_steal(&a.grant_value);
	d.why_not = zb_steal(&a.why_not);
	zb_answer_done(&a);
	zb_ledger_record(e->ledger, &d);
}

/* A ${project} too broad to grant: the user is told, and it is found later. */
static void record_project(struct zb_extension *e)
{
	const char *refused = e->prepared.plan.project_refused;
	struct zb_denial d = {.op = ZB_OP_FS_READ,
			      .by = ZB_BY_PLAN,
			      .evidence = ZB_EV_DECIDED};

	if (!refused)
		return;
	d.asked = zb_strdup("${project}");
	d.target = zb_strdup(refused);
	d.rule = zb_strf("${project} %s", e->prepared.plan.project_why);
	d.why_not = zb_strdup("a project is a directory of its own: start zot "
			      "in one");
	zb_ledger_record(e->ledger, &d);
}

static void begin(struct zb_extension *e)
{
	const struct zb_prepared *p = &e->prepared;
	uint64_t hello = limit(e, ZB_LIMIT_HELLO_SECONDS);

	zb_ledger_say(e->ledger, "starting %s%s%s under %s (session %s)",
		      p->plan.name, p->manifest.version ? "/" : "",
		      p->manifest.version ? p->manifest.version : "",
		      p->policy ? p->policy : "?", e->session);
	for (size_t i = 0; i < p->story.n; i++)
		zb_ledger_say(e->ledger, "program: %s", p->story.v[i]);
	for (size_t i = 0; i < p->plan.notices.n; i++)
		zb_extension_tell(e, "%s", p->plan.notices.v[i]);
	record_env(e);
	record_project(e);
	/* The loop's clock stood still since its last turn, and many others
	 * may have been started since. */
	uv_update_time(e->loop);
	if (hello < UINT64_MAX / 1000)
		uv_timer_start(&e->hello_timer, on_no_hello, hello * 1000, 0);
	uv_unref((uv_handle_t *)&e->flush_timer);
	set_reading(e);
	uv_read_start((uv_stream_t *)&e->err, alloc_room, on_err);
}

int zb_extension_start(struct zb_extension **out,
		       const struct zb_extension_config *cfg,
		       struct zb_error *err)
{
	struct zb_extension *e = calloc(1, sizeof(*e));
	int rc;

	if (!e)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	e->loop = cfg->loop;
	e->backend = cfg->backend;
	e->ops = cfg->ops;
	e->ctx = cfg->ctx;
	e->bound = cfg->stdin_bound ? cfg->stdin_bound : ZB_STDIN_BOUND;
	e->news_end = &e->news;
	e->starting = true;
	if (uv_mutex_init(&e->lock)) {
		free(e);
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	}
	rc = init_handles(e, err);
	name_session(e, cfg->session);
	/* A copy of the struct: its pointers have one owner at any time, the
	 * caller until all went well. */
	e->prepared = *cfg->prepared;
	if (!rc)
		rc = open_parts(e, cfg, cfg->prepared, err);
	if (!rc)
		rc = spawn(e, cfg->host, err);
	if (rc) {
		/* Where descriptor 2 is the log, the caller's word is there. */
		if (e->ledger && cfg->log_fd < 0)
			zb_ledger_say(e->ledger, "%s not started: %s",
				      cfg->prepared->plan.name,
				      err ? err->msg : "");
		e->phase = ENDED;
		e->freed = true;
		close_all(e);
		return rc;
	}
	e->starting = false;
	memset(cfg->prepared, 0, sizeof(*cfg->prepared));
	begin(e);
	*out = e;
	return 0;
}

/* ---- small answers ---- */

int zb_extension_signal(struct zb_extension *e, int signo, struct zb_error *err)
{
	if (e->phase >= REAPING)
		return zb_fail(err, ZB_ESYS, "%s is not running",
			       e->prepared.plan.name);
	return e->backend->signal(e->proc, signo, err);
}

void zb_extension_expire(struct zb_extension *e, const char *id)
{
	zb_mediator_expire(e->med, (int64_t)uv_now(e->loop), id);
}

struct zb_mediator *zb_extension_mediator(struct zb_extension *e)
{
	return e->med;
}

struct zb_ledger *zb_extension_ledger(struct zb_extension *e)
{
	return e->ledger;
}

const struct zb_prepared *zb_extension_prepared(const struct zb_extension *e)
{
	return &e->prepared;
}

const char *zb_extension_session(const struct zb_extension *e)
{
	return e->session;
}

bool zb_extension_broke_protocol(const struct zb_extension *e)
{
	return e->broke;
}

int zb_extension_pid(const struct zb_extension *e)
{
	return e->phase < REAPING ? e->backend->pid(e->proc) : 0;
}
