/* broker_int.h - what the broker's files share. Not for others.
 *
 * broker.c takes a notification, finds its row by number, runs the row's
 * handler and sends what the handler said. Handlers (broker_*.c) decide one
 * family of calls each; they may run on any of the broker's threads and keep
 * all they need in struct zb_call. */
#ifndef ZB_BROKER_INT_H
#define ZB_BROKER_INT_H

#include "platform/linux/broker.h"
#include "platform/linux/jail.h"
#include "platform/linux/recorder.h"
#include "platform/linux/workers.h"

#include "evaluator.h"

#include <fcntl.h>
#include <stdatomic.h>

#define ZB_ROWS 1024 /* highest syscall number we look at */

struct zb_call;

/* One watched call: where its arguments are (-1: it has none). */
struct zb_row {
	const char *name;
	void (*handle)(struct zb_call *c);
	int8_t dir, path;   /* first name */
	int8_t dir2, path2; /* second name of rename and link */
	int8_t flags, mode;
	uint32_t fixed; /* flags that the call's name implies */
};

struct zb_broker {
	struct zb_broker_config cfg;
	/* Held for reading while the plan is used; NULL once the broker was
	 * given up, whose owner may free it then. */
	pthread_rwlock_t plan_lock;
	const struct zb_plan *plan;
	struct zb_jail jail;
	int listener;
	int wake; /* eventfd: stop */
	int box;  /* O_PATH of the extension's box, or -1 */
	uid_t uid;
	gid_t gid;
	atomic_bool stopping;
	_Atomic uint64_t taken; /* notifications */
	const struct zb_row *rows[ZB_ROWS];
	struct zb_workers workers;
	struct zb_recorder *recorder;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t change;
	unsigned threads; /* notify and workers */
	bool recording;	  /* the recorder's thread runs */
	bool ready;	  /* the notify thread: set up, or setup_error */
	int setup_error;
	bool serving; /* @listener and @jail are there */
	unsigned refs;
};

enum zb_said {
	ZB_SAID_NOTHING,
	ZB_SAID_CONTINUE,
	ZB_SAID_ERRNO,
	ZB_SAID_VALUE,
	ZB_SAID_LATER, /* decide again on a worker */
	ZB_SAID_SENT,  /* answered already, or nobody waits any more */
};

/* A directory without a link on the way, in a read-only place: an open in it
 * was judged before (broker_open.c). */
#define ZB_MEMOS 64
struct zb_memo {
	char *dir;
	size_t len;
	uint64_t mnt;
};

struct zb_call {
	struct zb_broker *b;
	const struct zb_row *row;
	uint64_t id;
	int tid, nr;
	uint64_t args[6];
	uint32_t arch; /* whose numbers (AUDIT_ARCH_*) */
	bool worker;   /* may block */
	bool acts;     /* never CONTINUEd: the broker does it or nobody */
	bool confined; /* this thread has laid down what the sandbox lacks */
	enum zb_said said;
	int64_t value;
	struct zb_note *notes;
	struct zb_memo memos[ZB_MEMOS];
	/* Scratch; descriptors in it are closed when the call is answered. */
	struct zb_spot found, found2;
	struct zb_jail_walk walk;
	char asked[PATH_MAX], asked2[PATH_MAX];
	char full[PATH_MAX], full2[PATH_MAX];
};

/* broker_call.c: what a handler may say. The last word counts. */
void zb_say_continue(struct zb_call *c);
void zb_say_errno(struct zb_call *c, int e);
/* The result of a system call of ours: @rc, or errno if it is negative. */
void zb_say_result(struct zb_call *c, long rc);
/* Return: true if the handler must return and will be called again on a
 * worker, where it may block. */
bool zb_say_later(struct zb_call *c);
/* Before an act on the caller's behalf: is the caller still waiting, and so
 * what was read its own? false ends the handler. */
bool zb_may_act(struct zb_call *c);
/* After EINTR on a worker: go on? */
bool zb_call_again(const struct zb_call *c);

/* broker_call.c: arguments. */
int zb_arg_int(const struct zb_call *c, int index); /* index -1: 0 */
int zb_arg_dir(const struct zb_call *c, int index); /* index -1: AT_FDCWD */
uint32_t zb_arg_flags(const struct zb_call *c);	    /* with the fixed ones */
/* Copy a path argument. Return: false, with its errno said. */
bool zb_arg_path(struct zb_call *c, int index, char out[PATH_MAX]);
/* The N of "/proc/self/fd/N", which is the caller's own; -1 for any other path,
 * also one that leads on from there. */
int zb_own_fd(const char *path);
/* A duplicate of the descriptor that @path, as a walk spelled it, names on the
 * caller's /proc, if that is the caller's own (/proc/PID/fd/N with its own
 * number counts). Return: it, or a negative errno. */
int zb_own_duplicate(const struct zb_call *c, const char *path);
/* Copy and make absolute, into @asked and @full. */
bool zb_arg_spell(struct zb_call *c, int dir, int path, char asked[PATH_MAX],
		  char full[PATH_MAX]);

/* Is it about a descriptor that was opened before (AT_EMPTY_PATH), or is its
 * path not to be had? Then the answer is said. */
bool zb_arg_is_fd(struct zb_call *c);

/* A refusal, as it will be recorded. */
struct zb_refusal {
	enum zb_op op;
	const char *asked;
	const char *target;
	const char *judged; /* what to ask the evaluator; NULL: @target */
	int place;
	bool is_dir, exists, is_link;
	enum zb_ask ask;
	enum zb_evidence evidence;
	int err; /* what the caller gets; 0: what the floor would give */
	const char *why; /* no rule of the plan but a limit of the broker: the
			    rule's text, and nothing can be granted */
};
/* Say the errno and note the denial. */
void zb_refuse(struct zb_call *c, const struct zb_refusal *r);

/* Judging. zb_ask() is the evaluator's fast form: ZB_DENY once the plan has
 * gone. */
enum zb_verdict zb_ask(struct zb_broker *b, const struct zb_query *q);
enum zb_verdict zb_judge(struct zb_call *c, enum zb_op op, struct zb_spot *f);
/* The more careful of two. */
enum zb_verdict zb_stricter(enum zb_verdict a, enum zb_verdict b);
/* Refuse @op on @f, which exists inside. */
void zb_refuse_found(struct zb_call *c, enum zb_op op, struct zb_spot *f,
		     const char *asked, enum zb_ask ask);
/* @full leads nowhere, as @at says (or its directory): find what was meant,
 * answer, and note it if that is because it is hidden. */
void zb_missing(struct zb_call *c, enum zb_op op, const char *asked,
		const char *full, bool follow, const struct zb_spot *at,
		enum zb_ask ask);
/* Resolve @full into @f. Return: false if that was the whole story and the
 * answer is said. A path on /proc is left to the kernel. */
bool zb_locate(struct zb_call *c, enum zb_op op, const char *asked,
	       const char *full, bool follow, enum zb_ask ask,
	       struct zb_spot *f);

/* A name in a directory, for calls that make or remove it. */
struct zb_name {
	struct zb_spot *dir;
	char name[NAME_MAX + 1];
	char path[PATH_MAX]; /* canonical */
	int place;
	bool exists;
	bool mounted; /* something is mounted there */
	bool slash;   /* spelled with one at the end */
	bool is_link; /* a symlink is to come to stand there */
	mode_t mode;
};
/* Resolve all but the last component of @full; @dir lives in the call.
 * Return: false if the answer is said. */
bool zb_locate_name(struct zb_call *c, enum zb_op op, const char *asked,
		    const char *full, enum zb_ask ask, struct zb_spot *dir,
		    struct zb_name *out);
enum zb_verdict zb_judge_name(struct zb_call *c, enum zb_op op,
			      const struct zb_name *n);
void zb_refuse_name(struct zb_call *c, enum zb_op op, const struct zb_name *n,
		    const char *asked, enum zb_ask ask);

/* The name at @full that the caller wants made. Return: true if the broker is
 * to make it, in @out; else the answer is said. */
bool zb_is_to_make(struct zb_call *c, struct zb_name *out);

/* broker_meta.c: is @fd, a duplicate of the caller's, open for writing? Then
 * writing was judged when it was opened. */
bool zb_is_open_to_write(int fd);

/* broker_tree.c: is nothing in the directory at @n, at most 200 000 names deep
 * in it, closed by its name to everybody but the host? True of what is no
 * directory. Takes its time: for a worker. */
bool zb_tree_may_go(struct zb_call *c, const struct zb_name *n);

/* broker_over.c: single files that are granted for writing. Has the host
 * replaced the one at @f? Then @op on it is refused (or put off to a worker),
 * and true is returned. */
bool zb_is_stale(struct zb_call *c, enum zb_op op, struct zb_spot *f);
/* Is @b, onto which the file @a is to be renamed, such a one? Then the call is
 * answered: the content of @a is put into it. */
bool zb_put_over(struct zb_call *c, const struct zb_name *a,
		 const struct zb_name *b);

/* Why set-id bits are refused everywhere. */
#define ZB_NO_SET_ID "no set-id files: they would be the user's outside as well"
/* Refuse to make @full with such a bit. */
void zb_refuse_set_id(struct zb_call *c);

/* The umask of the caller, set for this thread alone. */
void zb_take_umask(struct zb_call *c);
/* Give @fd to the caller as the result of its call. */
void zb_inject(struct zb_call *c, int fd, bool cloexec);

/* The handlers, by file. */
void zb_call_open(struct zb_call *c); /* broker_open.c */
void zb_forget_memos(struct zb_call *c);
void zb_call_exec(struct zb_call *c);	/* broker_exec.c */
void zb_call_remove(struct zb_call *c); /* broker_paths.c */
void zb_call_make(struct zb_call *c);
void zb_call_rename(struct zb_call *c);
void zb_call_link(struct zb_call *c);
void zb_call_look(struct zb_call *c);
void zb_call_truncate(struct zb_call *c); /* broker_meta.c */
void zb_call_chmod(struct zb_call *c);
void zb_call_fchmod(struct zb_call *c);
void zb_call_chown(struct zb_call *c);
void zb_call_fchown(struct zb_call *c);
void zb_call_times(struct zb_call *c);
void zb_call_setxattr(struct zb_call *c);
void zb_call_fsetxattr(struct zb_call *c);
void zb_call_removexattr(struct zb_call *c);
void zb_call_fremovexattr(struct zb_call *c);
void zb_call_getxattr(struct zb_call *c); /* broker_xattr.c */
void zb_call_listxattr(struct zb_call *c);
void zb_call_connect(struct zb_call *c); /* broker_net.c */
void zb_call_bind(struct zb_call *c);
void zb_call_sendto(struct zb_call *c);
void zb_call_socket(struct zb_call *c);
void zb_call_refuse(struct zb_call *c); /* broker_refuse.c */

/* broker_rows.c: the row of a name, or NULL. */
const struct zb_row *zb_row_of(const char *name);
/* All names of watched.def, NULL at the end. */
const char *const *zb_row_names(void);

/* broker_refuse.c: a call of another architecture or ABI (x32, i386). */
bool zb_call_is_foreign(const struct zb_call *c);
void zb_call_foreign(struct zb_call *c);
/* Refuse the call itself, EPERM; @text says what was tried. */
void zb_refuse_call(struct zb_call *c, const char *text);
/* What was tried, in words: "ioctl TIOCSTI". */
void zb_describe(const char *name, const uint64_t args[6], char *out,
		 size_t cap);

#endif
