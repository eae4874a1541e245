/* cmd_host.h - the parts of `zotbox host`: cmd_host.c (which extensions, start
 * and end), cmd_host_requests.c (what the client asks), cmd_host_events.c
 * (what it is told). Effects. */
#ifndef ZB_CMD_HOST_H
#define ZB_CMD_HOST_H

#include "agent.h"
#include "discover.h"
#include "host_api.h"
#include "turns.h"
#include "wrap_pipe.h"

#define ZB_HOST_OPEN	   16384u /* requests that wait for an answer */
#define ZB_HOST_HELD	   1024u  /* of them: until all extensions are there */
#define ZB_HOST_HELD_BYTES ((size_t)64 << 20) /* of these */
#define ZB_HOST_PLACE	   4096u	      /* results that activated tools */

/* An extension that was found, whether it is started or not. */
struct zb_host_entry {
	struct zb_found found;
	struct zb_target target;
	char *path;    /* its target's */
	char *off;     /* why it is not started; NULL: it is */
	size_t member; /* in the agent; ZB_NOBODY: not (yet) */
};

/* Which request's result (its id, JSON text) an id of ours stood for. */
struct zb_host_place {
	char *ours, *theirs;
};

/* A request that is under way; of a reload, what it stopped. */
struct zb_host_question {
	struct zb_host_question *next;
	struct zb_host_server *h;
	struct zb_api_request q;
	size_t bytes; /* of its line */
	size_t member, stopped;
};

struct zb_host_queue {
	struct zb_host_question *first, **end;
	size_t n;
};

struct zb_host_server {
	const struct zb_args *args;
	uv_loop_t loop;
	struct zb_store store;
	struct zb_host host;
	struct zb_wrap_in in;
	struct zb_wrap_out out;
	uv_signal_t signals[3];
	uv_idle_t starter;
	uv_timer_t later, patience;
	char *project, *token;

	struct zb_agent *agent; /* NULL between two of them */
	struct zb_host_entry *entries;
	size_t n_entries, next_entry;
	struct zb_strv builtin_commands, builtin_tools;

	struct zb_turns turns;
	struct zb_strv noted; /* who has notes on the screen */
	struct zb_host_place *places;
	size_t n_places;

	/* Requests. */
	struct zb_host_queue held;    /* until all extensions are there */
	struct zb_host_queue reloads; /* likewise: answered then */
	struct zb_host_queue denials; /* until the records are in */
	size_t n_open, held_bytes;
	struct zb_host_question *goodbye; /* the shutdown request */

	bool greeted; /* a token was asked for and given, or none is needed */
	bool started, settled, all_again, closing, closed, ended;
	bool paused;
	unsigned long long untold; /* events that found no room */
	unsigned waited;
	int signo, failed;
};

/* ---- cmd_host.c ---- */

/* Go on with what is to be started, or is over, from the loop. */
void zb_host_wake(struct zb_host_server *h);
/* Begin to end; once is enough. */
void zb_host_close(struct zb_host_server *h);
/* Stop all, look again at what there is, start that. */
void zb_host_start_again(struct zb_host_server *h);
/* The first start, once the client may ask for it. */
void zb_host_start(struct zb_host_server *h);
/* By name, of those in the agent first; NULL. */
struct zb_host_entry *zb_host_entry(struct zb_host_server *h, const char *name);

/* ---- cmd_host_requests.c ---- */

void zb_host_take_line(struct zb_host_server *h, const char *line, size_t len);
void zb_host_take_long_line(struct zb_host_server *h, uint64_t total);
/* All extensions are ready or gone: what waited for that. */
void zb_host_go_on(struct zb_host_server *h);
/* All are gone, for good: whoever still waits is told so. */
void zb_host_answer_all(struct zb_host_server *h);
void zb_host_on_records(uv_timer_t *t);

/* ---- cmd_host_events.c ---- */

extern const struct zb_agent_ops zb_host_agent_ops;

/* A whole line for the client (without newline). */
void zb_host_send(struct zb_host_server *h, const struct zb_buf *line);
/* May be left out, and counted, while the client is behind. */
void zb_host_emit(struct zb_host_server *h, const char *type,
		  const char *extension, const char *rest);
void zb_host_on_drained(void *ctx);
/* Hand over what was submitted, if the agent is idle. */
void zb_host_next_prompt(struct zb_host_server *h);
/* The user's next prompt: notes have had their time. */
void zb_host_end_notes(struct zb_host_server *h);
/* The name for the client; "-" for one that has none. */
const char *zb_host_name_of(const struct zb_host_server *h, size_t member);
/* Append ,"KEY":[...] of the denials / of strings. */
void zb_host_add_denials(struct zb_buf *out, const struct zb_denial *d,
			 size_t n);

#endif
