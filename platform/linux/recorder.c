/* recorder.c - refusals on their way to the ledger.
 *
 * "Hidden is not absent": a path that does not exist inside is a denial only
 * if the host has it, and a creation only if the host would have allowed it.
 * Probes for files that nobody has leave no record. The question is asked as
 * the user, by path, without following into an automounter and without
 * opening anything.
 *
 * The queue is bounded. An extension that refuses faster than the disk
 * answers is slowed down, then folded into a count; never silently dropped. */
#include "config.h"

#include "platform/linux/recorder.h"

#include "cleanup.h"
#include "fdutil.h"
#include "platform/linux/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define MAX_NOTES 2048
#define PATIENCE  50 /* ms that an answer may wait for room */

struct zb_recorder {
	struct zb_recorder_config cfg;
	int host;	      /* O_PATH of the host's / */
	pthread_mutex_t lock; /* of the queue */
	pthread_cond_t more, room;
	struct zb_note *first, **last;
	size_t n;
	uint64_t folded;
	bool finish;
	pthread_mutex_t voice; /* held while plan and callback are used */
	bool muted;
};

void zb_note_free(struct zb_note *n)
{
	if (!n)
		return;
	zb_denial_done(&n->d);
	free(n);
}

void zb_note_answer(struct zb_denial *d, struct zb_answer *a)
{
	free(d->rule);
	free(d->grant_key);
	free(d->grant_value);
	free(d->why_not);
	d->rule = zb_steal(&a->rule);
	d->grant_key = zb_steal(&a->grant_key);
	d->grant_value = zb_steal(&a->grant_value);
	d->why_not = zb_steal(&a->why_not);
	d->floor = a->floor;
	zb_answer_done(a);
}

int zb_recorder_new(struct zb_recorder **out,
		    const struct zb_recorder_config *cfg, struct zb_error *err)
{
	struct zb_recorder *r = calloc(1, sizeof(*r));
	pthread_condattr_t attr;

	if (!r)
		return zb_fail(err, ZB_ELIMIT, "recorder: out of memory");
	r->cfg = *cfg;
	r->last = &r->first;
	r->host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r->host < 0) {
		free(r);
		return zb_fail_sys(err, errno, "open /");
	}
	pthread_mutex_init(&r->lock, NULL);
	pthread_mutex_init(&r->voice, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->more, &attr);
	pthread_cond_init(&r->room, &attr);
	pthread_condattr_destroy(&attr);
	*out = r;
	return 0;
}

void zb_recorder_free(struct zb_recorder *r)
{
	struct zb_note *n, *next;

	if (!r)
		return;
	for (n = r->first; n; n = next) {
		next = n->next;
		zb_note_free(n);
	}
	close(r->host);
	pthread_mutex_destroy(&r->lock);
	pthread_mutex_destroy(&r->voice);
	pthread_cond_destroy(&r->more);
	pthread_cond_destroy(&r->room);
	free(r);
}

static bool wait_for_room(struct zb_recorder *r)
{
	struct timespec until;

	if (r->n < MAX_NOTES)
		return true;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += PATIENCE * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	while (r->n >= MAX_NOTES && !r->finish)
		if (pthread_cond_timedwait(&r->room, &r->lock, &until))
			break;
	return r->n < MAX_NOTES;
}

void zb_recorder_add(struct zb_recorder *r, struct zb_note *n)
{
	if (!n)
		return;
	n->next = NULL;
	pthread_mutex_lock(&r->lock);
	if (!wait_for_room(r)) {
		r->folded++;
	} else {
		*r->last = n;
		r->last = &n->next;
		r->n++;
		n = NULL;
	}
	pthread_cond_signal(&r->more);
	pthread_mutex_unlock(&r->lock);
	zb_note_free(n);
}

void zb_recorder_finish(struct zb_recorder *r)
{
	pthread_mutex_lock(&r->lock);
	r->finish = true;
	pthread_cond_signal(&r->more);
	pthread_cond_broadcast(&r->room);
	pthread_mutex_unlock(&r->lock);
}

void zb_recorder_mute(struct zb_recorder *r)
{
	pthread_mutex_lock(&r->voice);
	r->muted = true;
	pthread_mutex_unlock(&r->voice);
	zb_recorder_finish(r);
}

static bool may(int dir, const char *name, int mode, int flags)
{
	return !syscall(SYS_faccessat2, dir, name, mode, AT_EACCESS | flags);
}

/* May the user make and remove names in the directory of @w? */
static bool may_change(const struct zb_jail_walk *w)
{
	return w->dir >= 0 && may(w->dir, "", W_OK | X_OK, AT_EMPTY_PATH);
}

static bool is_program(const struct zb_jail_walk *w)
{
	struct stat st;

	return w->exists && w->dir >= 0 &&
	       !fstatat(w->dir, w->name, &st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISREG(st.st_mode) && may(w->dir, w->name, X_OK, 0);
}

static bool is_owner(const struct zb_jail_walk *w)
{
	struct stat st;

	if (!w->exists || w->dir < 0 ||
	    fstatat(w->dir, w->name, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	return !geteuid() || st.st_uid == geteuid();
}

/* The host's list of sockets shows a NUL in a name as '@'. */
static bool has_abstract(const char *name)
{
	zb_auto(file) FILE *f = fopen("/proc/self/net/unix", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		const char *at = strchr(line, '@');

		line[strcspn(line, "\n")] = '\0';
		if (at && !strcmp(at, name))
			return true;
	}
	return false;
}

static bool may_write(const struct zb_jail_walk *w)
{
	return w->exists && w->dir >= 0 && may(w->dir, w->name, W_OK, 0);
}

/* What the host has at @w, as question @ask wants to know it. */
static bool host_says(enum zb_ask ask, const struct zb_jail_walk *w)
{
	switch (ask) {
	case ZB_ASK_EXISTS:
	case ZB_ASK_NAME:
		return w->exists;
	case ZB_ASK_PROGRAM:
		return is_program(w);
	case ZB_ASK_WRITE:
		return may_write(w);
	case ZB_ASK_OPEN:
		return w->exists || may_change(w);
	case ZB_ASK_CREATE:
		return may_change(w);
	case ZB_ASK_REMOVE:
		return w->exists && may_change(w);
	case ZB_ASK_OWNER:
		return is_owner(w);
	case ZB_ASK_NOTHING:
	case ZB_ASK_ABSTRACT:
		break;
	}
	return false;
}

/* Is @n a denial, after the host was asked? *@changed: it is one of
 * fs.write. */
static bool ask(const struct zb_recorder *r, struct zb_note *n, bool *changed)
{
	bool follow = n->ask != ZB_ASK_NAME && n->ask != ZB_ASK_REMOVE;
	struct zb_jail_walk w;
	bool yes;

	*changed = false;
	if (n->ask == ZB_ASK_NOTHING)
		return true;
	if (n->ask == ZB_ASK_ABSTRACT)
		return has_abstract(n->d.target);
	if (!n->d.target)
		return false;
	zb_host_walk(r->host, n->d.target, follow, &w);
	yes = host_says(n->ask, &w);
	*changed = n->ask == ZB_ASK_OPEN && w.exists;
	/* A stranger's tree may hold a link that makes ~/.ssh/id look like
	 * one of its own files. */
	if (yes && w.exists && strcmp(w.path, n->d.target) != 0)
		zb_strv_add(&n->d.exposes, w.path);
	zb_jail_walk_done(&w);
	return yes;
}

/* It was there after all: what was refused is the writing. */
static void turn_into_write(const struct zb_recorder *r, struct zb_note *n)
{
	struct zb_query q = {
		.op = ZB_OP_FS_WRITE,
		.target = n->d.target,
		.place = -1,
		.is_dir = n->is_dir,
	};
	struct zb_answer a;

	zb_evaluate(r->cfg.plan, &q, &a);
	n->d.op = ZB_OP_FS_WRITE;
	zb_note_answer(&n->d, &a);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void deliver(struct zb_recorder *r, struct zb_denial *d)
{
	if (!d->count)
		d->count = 1;
	d->last_ms = now_ms();
	if (!d->first_ms)
		d->first_ms = d->last_ms;
	if (r->cfg.on_denial)
		r->cfg.on_denial(r->cfg.ctx, d);
	zb_denial_done(d);
}

static void deliver_folded(struct zb_recorder *r, uint64_t n)
{
	struct zb_denial d = {
		.op = ZB_OP_LIMIT,
		.detail = zb_strdup("records"),
		.by = ZB_BY_BROKER,
		.evidence = ZB_EV_DECIDED,
		.rule = zb_strdup("refused faster than it can be recorded"),
		.why_not = zb_strdup("these refusals are counted, not named"),
		.count = n,
	};

	deliver(r, &d);
}

/* Take the next note, or how many were folded since. Return: false when all
 * is done. */
static bool take(struct zb_recorder *r, struct zb_note **n, uint64_t *folded)
{
	pthread_mutex_lock(&r->lock);
	while (!r->first && !r->folded && !r->finish)
		pthread_cond_wait(&r->more, &r->lock);
	*n = r->first;
	*folded = 0;
	if (*n) {
		r->first = (*n)->next;
		if (!r->first)
			r->last = &r->first;
		r->n--;
		pthread_cond_signal(&r->room);
	} else {
		*folded = r->folded;
		r->folded = 0;
	}
	pthread_mutex_unlock(&r->lock);
	return *n || *folded;
}

void zb_recorder_run(struct zb_recorder *r)
{
	struct zb_note *n;
	uint64_t folded;

	while (take(r, &n, &folded)) {
		bool changed = false, yes = n && ask(r, n, &changed);

		pthread_mutex_lock(&r->voice);
		if (yes && changed && !r->muted)
			turn_into_write(r, n);
		if (yes && !r->muted)
			deliver(r, &n->d);
		if (folded && !r->muted)
			deliver_folded(r, folded);
		pthread_mutex_unlock(&r->voice);
		zb_note_free(n);
	}
}
