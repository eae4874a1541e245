/* backend.h - one way to confine a process tree, one struct per system.
 *
 * render is pure and is built and tested everywhere. The others touch the
 * system and are NULL on a foreign one: such a backend explains, it cannot
 * run. There is no backend that does not confine. */
#ifndef ZB_BACKEND_H
#define ZB_BACKEND_H

#include "denial.h"
#include "plan.h"

/* What this machine can do, found by doing it. */
struct zb_host_gap {
	char *what, *why, *remedy;
};
struct zb_host {
	bool ok;
	struct zb_host_gap *missing;
	size_t n_missing;
	struct zb_strv blind_spots;
	struct zb_strv facts; /* "bubblewrap 0.8.0 at /usr/bin/bwrap"... */
	int landlock_abi;     /* Linux */
	bool wait_killable;   /* seccomp WAIT_KILLABLE_RECV */
	bool sync_wake_up;
	char *bwrap; /* path */
};
void zb_host_done(struct zb_host *h);

/* How one rule of a plan is enforced, for people. */
struct zb_rule_status {
	char *rule; /* "fs.read ~/src/app" */
	enum zb_enforced how;
	char *by; /* "mount, Landlock", "broker", "not enforceable: ..." */
	struct zb_origin origin; /* zeroed: built in */
};

/* What becomes of a system call inside. */
enum zb_call_fate {
	ZB_CALL_ABSENT,	 /* ENOSYS, as if this kernel had none */
	ZB_CALL_PASSES,	 /* nobody is asked */
	ZB_CALL_JUDGED,	 /* by its arguments: a path, an address, flags */
	ZB_CALL_REFUSED, /* EPERM and a record, whatever its arguments */
};

/* A running sandbox. The three descriptors are the parent's ends. */
struct zb_proc;

struct zb_exit {
	bool signalled;
	int code; /* exit status or signal number */
	/* Why it was killed, a clause for people: "exceeded memory limit 256
	 * MiB and was killed (it used 260 MiB)"; NULL: it ended by itself. */
	char *reason;
};

struct zb_spawn_options {
	/* Called for each refusal, from a thread of the backend's (the broker,
	 * the watch on limits). */
	void (*on_denial)(void *ctx, struct zb_denial *d); /* takes contents */
	void *ctx;
	/* Called once, any thread, when the first process ended (@exit is
	 * copied by the callee) - the loop is woken by the owner's own means.
	 */
	void (*on_exit)(void *ctx, const struct zb_exit *exit);
};

struct zb_backend {
	const char *name; /* "bubblewrap" "seatbelt" "appcontainer" */
	int (*render)(const struct zb_plan *plan, struct zb_buf *out,
		      struct zb_error *err);
	/* Which rules would be enforced how; ZB_EUNSUPPORTED if any cannot. */
	int (*rules)(const struct zb_plan *plan, struct zb_rule_status **out,
		     size_t *n, struct zb_error *err);
	/* By the name of a system call; pure. NULL: nothing is known. */
	enum zb_call_fate (*call)(const char *name);
	/* What every start needs to know, found without starting anything: for
	 * wrap, console and whoever spawns. The launch itself is the proof, and
	 * a spawn that fails explains itself as probe would. Contract as of
	 * probe. */
	int (*look)(struct zb_host *out, struct zb_error *err);
	/* All of it, for doctor: makes a sandbox and tries it (some 20 ms).
	 * Never changes anything. Always fills @out; the return value is 0 or
	 * ZB_EUNSUPPORTED with every gap and its remedy in @err. Main thread
	 * only, like spawn. */
	int (*probe)(struct zb_host *out, struct zb_error *err);
	/* Start @plan's program with stdio[0..2] (the child's ends, owned by
	 * the caller, close after return). Whole or not at all, never
	 * unconfined. Must be called from the main thread. */
	int (*spawn)(const struct zb_plan *plan, const struct zb_host *host,
		     const int stdio[3], const struct zb_spawn_options *opt,
		     struct zb_proc **out, struct zb_error *err);
	/* End the whole tree now; on_exit follows if it was not called yet.
	 * Safe to call twice. */
	void (*stop)(struct zb_proc *p);
	/* Host pid of the extension's first process, for people; 0 unknown. */
	int (*pid)(const struct zb_proc *p);
	/* Send a signal to the first process. */
	int (*signal)(struct zb_proc *p, int signo, struct zb_error *err);
	/* Stop, wait until all is gone (a bounded time), free it. @out may be
	 * NULL; its reason is the caller's to free. Not from a callback. */
	void (*reap)(struct zb_proc *p, struct zb_exit *out);
};

extern const struct zb_backend zb_backend_bubblewrap;
extern const struct zb_backend zb_backend_seatbelt;
extern const struct zb_backend zb_backend_appcontainer;

/* The one this program was built for. */
const struct zb_backend *zb_backend_native(void);

#endif
