/* agent.h - the agent's side of the protocol for any number of extensions on
 * one loop: handshake, readiness, registrations, calls with their timeouts,
 * events, the serial intercept chain, reload, shutdown. host, console and
 * doctor stand on it. Effects; main thread only.
 *
 * What zot gets wrong is right here: ids are unique for the life of the
 * process, events keep their order, one slow extension never blocks another, a
 * late reply never answers another call, a hello deadline exists, an
 * intercept that got no answer is said. */
#ifndef ZB_AGENT_H
#define ZB_AGENT_H

#include "extension.h"
#include "registry.h"

struct zb_agent;

#define ZB_NOBODY SIZE_MAX

enum zb_member_state {
	ZB_MEMBER_STARTING,    /* no hello yet */
	ZB_MEMBER_REGISTERING, /* hello_ack sent, not ready */
	ZB_MEMBER_READY,
	ZB_MEMBER_STOPPING, /* shutdown sent */
	ZB_MEMBER_GONE,	    /* not loaded, or ended */
};
const char *zb_member_state_name(enum zb_member_state s); /* "ready"... */

/* One extension, in load order. To be read only. */
struct zb_member {
	const char *name; /* the manifest's, else taken from the argument */
	enum zb_member_state state;
	struct zb_extension *ext; /* NULL while it does not run */
	/* GONE: why, as a sentence that names it, and as a clause that does
	 * not ("exited with status 1 before hello"); NULL if it was asked to.
	 */
	char *problem, *reason;
	enum zb_code code; /* of a start that was refused; else ZB_OK */
	bool said_hello, auto_ready, ready_timeout;
	struct zb_exit exit; /* GONE after a run; no reason string */
	/* Of a run that ended, unless it was asked to: the first lines of its
	 * standard error, and what it was denied last (the newest last), which
	 * is what most likely made it end. */
	struct zb_strv head;
	struct zb_denial *denials;
	size_t n_denials;
	char *log;	   /* path of its log, NULL before it had one */
	char *records;	   /* its log and ledger, for zb_ledger_read() */
	uint64_t start_ms; /* from spawn to ready */
	char session[96];  /* of the last run, "" if there was none */
};

struct zb_agent_ops {
	/* A frame that reaches the agent or the user: not hello, ready,
	 * registrations and answers. */
	void (*frame)(void *ctx, size_t member, const char *type,
		      const char *line, size_t len);
	void (*denied)(void *ctx, size_t member, const struct zb_denial *d);
	/* For the user: notices, warnings. In the log already. */
	void (*say)(void *ctx, size_t member, const char *text);
	/* zb_member.state is another. Of a reload, too, the run before is GONE
	 * first. */
	void (*changed)(void *ctx, size_t member);
	/* Every member is ready or gone, after start or reload. */
	void (*settled)(void *ctx);
	/* May be NULL. The tools of a ready member that the model may call
	 * are others: activated, or registered late and now in sight. Not
	 * when it becomes ready or ends: that is changed(). */
	void (*tools)(void *ctx, size_t member);
	/* May be NULL. The panel that was open is closed, and neither by its
	 * extension nor by the caller: another one was opened (then an
	 * extension that did not do so itself has been told), or the extension
	 * is stopped or has ended. Not for zb_agent_free(). */
	void (*panel_gone)(void *ctx, size_t member, const char *id);
	/* After zb_agent_shutdown(): all are gone. */
	void (*closed)(void *ctx);
};

struct zb_agent_config {
	uv_loop_t *loop;
	const struct zb_backend *backend;
	const struct zb_host *host;
	const struct zb_store *store;
	const char *project; /* real path; hello_ack.cwd */
	const char *zot_version, *provider, *model;
	const char *session; /* see extension.h */
	bool resumed;	     /* no session_start: it was sent before */
	const struct zb_agent_ops *ops;
	void *ctx;
};

/* @cfg is copied, what it points to borrowed. Raises this process's limit of
 * open files to what it may be. Return: 0 or ZB_ELIMIT. */
int zb_agent_new(struct zb_agent **out, const struct zb_agent_config *cfg,
		 struct zb_error *err);
/* Load one; its start goes on in parallel with the others. @label: what to
 * call it until its manifest is read. A failure makes a member that is GONE.
 * Making a sandbox takes a while: whoever adds many lets the loop turn
 * (UV_RUN_NOWAIT) after each, so that none waits for the last one's.
 * @target's strings must live as long as the agent. */
int zb_agent_add(struct zb_agent *a, const char *label,
		 const struct zb_target *target, struct zb_error *err);
/* After the last zb_agent_add(): settled() follows, at once or later; then
 * session_start goes to its subscribers. */
void zb_agent_begin(struct zb_agent *a);

size_t zb_agent_count(const struct zb_agent *a);
const struct zb_member *zb_agent_member(const struct zb_agent *a, size_t i);
/* By name, or ZB_NOBODY. */
size_t zb_agent_find(const struct zb_agent *a, const char *name);
const struct zb_registry *zb_agent_registry(const struct zb_agent *a);
/* See zb_registry_reserve(). */
int zb_agent_reserve(struct zb_agent *a, const struct zb_strv *commands,
		     const struct zb_strv *tools);
/* Read from no extension until it is undone: whoever takes what they say is
 * behind. */
void zb_agent_pause(struct zb_agent *a, bool paused);
/* Is a member whose scope says on_failure "block" there (running or not)? */
bool zb_agent_has_guard(const struct zb_agent *a);

/* ---- calls ---- */

enum zb_reply {
	ZB_REPLY_OK,	  /* @line: the reply */
	ZB_REPLY_UNKNOWN, /* nobody has that tool or command */
	ZB_REPLY_BUILTIN, /* the host's own command */
	ZB_REPLY_TIMEOUT,
	ZB_REPLY_GONE,	    /* it ended */
	ZB_REPLY_STUCK,	    /* it does not read its stdin */
	ZB_REPLY_CANCELLED, /* reloaded or shut down meanwhile */
};

struct zb_agent_reply {
	enum zb_reply how;
	size_t member; /* or ZB_NOBODY */
	const char *line;
	size_t len;
	const char *why; /* for people, when it is not OK */
};
/* Once per call, perhaps before the calling function returns. */
typedef void zb_agent_done(void *ctx, const struct zb_agent_reply *reply);

/* Call a tool / run a slash command. Limits: tool_seconds (not while a panel
 * of the extension is open), command_seconds. */
void zb_agent_call(struct zb_agent *a, const char *tool, const char *args_json,
		   zb_agent_done *done, void *ctx);
void zb_agent_command(struct zb_agent *a, const char *name, const char *args,
		      zb_agent_done *done, void *ctx);
/* The same as zb_agent_call() with a limit of the caller's own beside
 * tool_seconds (0: none), which an open panel does not stop. */
void zb_agent_call_within(struct zb_agent *a, const char *tool,
			  const char *args_json, uint64_t timeout_ms,
			  zb_agent_done *done, void *ctx);

/* Whoever started a call with @done and @ctx has no use for it any more. An
 * extension that announced tool_cancel is told; the call goes on, and @done
 * gets what comes of it. Calls that time out are cancelled likewise. Return: it
 * was told. */
bool zb_agent_cancel(struct zb_agent *a, zb_agent_done *done, const void *ctx);

/* How one interceptor took part: "allow" "block" "rewrite" "timeout" "gone"
 * "stuck" "not running". */
struct zb_agent_opinion {
	size_t member;
	const char *outcome;
};
struct zb_agent_verdict {
	bool block;
	size_t by;	     /* who blocked; else who rewrote last, or answered
				last; ZB_NOBODY */
	const char *reason;  /* of a block, or the last note; or NULL */
	const char *key;     /* "modified_args"...: how a rewrite is called */
	const char *rewrite; /* JSON text of the last one, or NULL */
	const struct zb_agent_opinion *opinions;
	size_t n_opinions;
};
typedef void zb_agent_judged(void *ctx, const struct zb_agent_verdict *v);
/* Ask the subscribers of @event one after the other in load order; the first
 * block ends it, each sees the rewrites of those before it. */
void zb_agent_intercept(struct zb_agent *a, const char *event,
			const char *fields_json, zb_agent_judged *done,
			void *ctx);

/* Return: how many got it. turn_start and turn_end bring late tools in sight.
 */
size_t zb_agent_event(struct zb_agent *a, const char *event,
		      const char *fields_json);
/* Likewise; @names gets those that got it. */
size_t zb_agent_event_to(struct zb_agent *a, const char *event,
			 const char *fields_json, struct zb_strv *names);

/* ---- the panel ----
 *
 * One is open at a time, the last one opened. */

/* Whose it is, and its id (borrowed until the loop turns); or ZB_NOBODY. */
size_t zb_agent_panel(const struct zb_agent *a, const char **id);
/* For the panel that is open, if that is its id. Return: whose it is, or
 * ZB_NOBODY. @text may be NULL. */
size_t zb_agent_panel_key(struct zb_agent *a, const char *panel,
			  const char *key, const char *text);
size_t zb_agent_panel_close(struct zb_agent *a, const char *panel);
/* The same where the caller knows whose panel it shows: two extensions may use
 * one id, and a key must not reach the other because it has just opened its
 * own. @member ZB_NOBODY: whoever it is. */
size_t zb_agent_member_key(struct zb_agent *a, size_t member, const char *panel,
			   const char *key, const char *text);
size_t zb_agent_member_close(struct zb_agent *a, size_t member,
			     const char *panel);
/* 0: not known. */
size_t zb_agent_panel_resize(struct zb_agent *a, size_t member,
			     const char *panel, unsigned columns,
			     unsigned rows);
/* A turn ends: turn_end {"stop":"end"}, late tools become visible. */
void zb_agent_turn(struct zb_agent *a);

/* Stop @member (ZB_NOBODY: all) and start it again; settled() follows. */
void zb_agent_reload(struct zb_agent *a, size_t member);
/* End all in the host's manner: shutdown, stdin closed, 2 s, killed. */
void zb_agent_shutdown(struct zb_agent *a);
/* After closed(), or before anything was added. */
void zb_agent_free(struct zb_agent *a);

#endif
