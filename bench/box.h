/* box.h - one program, started bare, by plain bwrap, and by the product. */
#ifndef ZB_BENCH_BOX_H
#define ZB_BENCH_BOX_H

#include "platform/linux/bwrap_args.h"
#include "prepare.h"

#include <sys/types.h>

/* One program, prepared as an extension of its own. */
struct subject {
	const char *name;
	struct zb_prepared p;
	struct zb_bwrap_args args;
};

/* A started one: read its output from @out, then finish() it. */
struct running {
	pid_t pid;
	struct zb_proc *proc;
	int fds[3];
	int64_t started;
};

_Noreturn void die(const char *what, const struct zb_error *err);
void prepare(struct subject *s, const struct zb_store *store, const char *dir);
/* The same as @t says. */
void prepare_as(struct subject *s, const struct zb_store *store,
		const struct zb_target *t);
void unprepare(struct subject *s);
void start_bare(const struct subject *s, struct running *r);
void start_bwrap(const struct subject *s, const char *bwrap, struct running *r);
void start_ours(const struct subject *s, const struct zb_host *host,
		struct running *r);
/* Microseconds from the start to the first byte of output. */
double first_byte(const struct running *r);
void finish(struct running *r);

#endif
