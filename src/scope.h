/* scope.h - the permission scope file: parsed, checked, merged, edited.
 * Pure: text in, struct out. Reading files is the caller's (chain.h).
 *
 * A scope as parsed says only what its file says: absent keys stay absent.
 * zb_scope_merge() lays one over another; what comes out of a whole chain
 * feeds zb_plan_resolve(). Every list entry and scalar keeps its origin. */
#ifndef ZB_SCOPE_H
#define ZB_SCOPE_H

#include "json_scan.h"
#include "ops.h"

/* Where a line of policy came from: a file as the user knows it
 * ("strict.json", a path, "built in") and a key ("fs.read[0]"). */
struct zb_origin {
	char *file;
	char *key;
	unsigned line;
};

struct zb_rule {
	char *value;
	struct zb_origin origin;
};

/* A list of values as written. @reset: its first element was "!reset".
 * @set: the key was present. */
struct zb_rules {
	struct zb_rule *v;
	size_t n, cap;
	bool set, reset;
};

/* true, false, or a list of names. @any: the string "any" (panels). */
struct zb_switch {
	bool set;
	bool on; /* meaningful when !is_list */
	bool is_list;
	bool any;
	struct zb_rules names;
	struct zb_origin origin;
};

/* The verbs of protocol.*, an index into zb_scope.verbs. */
enum zb_verb {
	ZB_VERB_COMMANDS,
	ZB_VERB_TOOLS,
	ZB_VERB_DEFERRED,
	ZB_VERB_PANELS,
	ZB_VERB_NOTIFY,
	ZB_VERB_PROMPT,
	ZB_VERB_INSERT,
	ZB_VERB_SUBMIT,
	ZB_VERB_SLASH,
	ZB_VERB_CALL_TOOL,
	ZB_VERB_EVENTS,
	ZB_VERB_EVENT_CONTENT,
	ZB_VERB_INTERCEPT, /* has no switch: see zb_scope.intercepts */
	ZB_VERB_COUNT
};
const char *zb_verb_name(enum zb_verb v); /* "commands"... static */

/* protocol.intercept: event -> what an answer may contain ("block",
 * "modify:TOOL", "replace"). */
struct zb_intercept {
	char *event;
	struct zb_rules may;
};

enum zb_limit {
	ZB_LIMIT_MEMORY, /* bytes */
	ZB_LIMIT_PROCESSES,
	ZB_LIMIT_OPEN_FILES,
	ZB_LIMIT_FILE_SIZE, /* bytes */
	ZB_LIMIT_CPU_SECONDS,
	ZB_LIMIT_HELLO_SECONDS,
	ZB_LIMIT_TOOL_SECONDS,
	ZB_LIMIT_COMMAND_SECONDS,
	ZB_LIMIT_INTERCEPT_SECONDS,
	ZB_LIMIT_FRAME_BYTES,
	ZB_LIMIT_FRAMES_PER_SECOND,
	ZB_LIMIT_SUBMITS, /* a minute, unasked */
	ZB_LIMIT_LOG_BYTES,
	ZB_LIMIT_COUNT
};
const char *zb_limit_name(enum zb_limit l); /* "memory"... static */

struct zb_limit_value {
	bool set;
	bool none; /* null: no limit */
	uint64_t value;
	struct zb_origin origin;
};

struct zb_env_set {
	char *name, *value;
	struct zb_origin origin;
};

struct zb_scope {
	char *file;    /* its origin name */
	char *extends; /* NULL: absent */
	char *why;
	struct zb_rules fs_read, fs_write, fs_exec, fs_deny;
	bool state_set, state_beside; /* fs.state: "apart" | "beside" */
	struct zb_origin state_origin;
	struct zb_rules net_connect, net_listen, net_unix;
	struct zb_rules env_pass;
	struct zb_env_set *env_set;
	size_t n_env_set;
	struct zb_switch verbs[ZB_VERB_COUNT];
	struct zb_intercept *intercepts;
	size_t n_intercepts;
	bool intercept_set;
	bool on_failure_set, on_failure_block;
	struct zb_origin on_failure_origin, ledger_origin;
	struct zb_limit_value limits[ZB_LIMIT_COUNT];
	bool ledger_set;
	enum zb_ledger_mode ledger;
};

/* Parse @len bytes of a scope file that the user knows as @file. The first
 * fault is reported as "FILE:LINE:COLUMN: what; what to do", unknown keys with
 * the nearest known one. permissions.json has the same language.
 * @all (may be NULL): every finding, one string each, not only the first.
 * Return: 0, ZB_EUSAGE, ZB_ELIMIT. @out is zeroed on failure. */
int zb_scope_parse(struct zb_scope *out, const char *file, const char *text,
		   size_t len, struct zb_strv *all, struct zb_error *err);
void zb_scope_done(struct zb_scope *s);

/* Lay @over over @base, into @base: scalars of the nearer file win, lists add
 * up (or replace after "!reset"), maps merge by key, a list laid over
 * true/false replaces it and the other way round. @over is unchanged. */
int zb_scope_merge(struct zb_scope *base, const struct zb_scope *over,
		   struct zb_error *err);

/* What no host can change about @s: grants that are refused to everybody (the
 * slash commands /jail /unjail /cd /exit /logout /settings), and those that
 * need --yes-i-mean-it (modify:bash and its like, call_tool of them, the
 * system prompt). Breadth of paths is judged by the resolver, which knows
 * where they lead. Return: 0 or ZB_EPOLICY naming the line and the remedy. */
int zb_scope_judge(const struct zb_scope *s, bool mean_it,
		   struct zb_error *err);

/* A protocol rule "protocol.KEY VALUE" that opens more than it seems to: what,
 * for people ("your shell"); else NULL. Static. */
const char *zb_scope_red(const char *rule);
/* Why nothing but --yes-i-mean-it grants @value of @key; NULL: something else
 * does. Static. */
const char *zb_scope_flag_why(const char *key, const char *value);
/* What stands before @why there is no command that grants something: "cannot
 * be granted", or that it is if it is meant. For that no command is offered:
 * nobody is to hand over the machine by copying a line. Static. */
const char *zb_no_command_label(const char *why);

/* Append a copy of @value with a copy of @origin. */
int zb_rules_add(struct zb_rules *l, const char *value,
		 const struct zb_origin *origin);
bool zb_rules_has(const struct zb_rules *l, const char *value);
int zb_origin_copy(struct zb_origin *out, const struct zb_origin *in);
void zb_origin_done(struct zb_origin *o);
/* "FILE: KEY" for messages, appended. */
int zb_origin_text(const struct zb_origin *o, struct zb_buf *out);

/* A slash command as people write it, "/name" or "name": do two mean the
 * same? zot compares without case. */
bool zb_slash_same(const char *a, const char *b);
/* Is it one that cannot be granted? */
bool zb_slash_forbidden(const char *name);

/* The events that the hosts known today send, NULL-terminated: for whoever
 * listens, and for whoever may answer. A scope may name others, for a host to
 * come; who types one is told. */
extern const char *const zb_known_events[];
extern const char *const zb_known_intercepts[];

/* Every key of the language, dotted, NULL-terminated ("fs.read"); maps whose
 * keys are the user's end in ".*" ("env.set.*"). For the schema's test. */
const char *const *zb_scope_keys(void);

/* Edit the text of a scope file: add (or remove) @value under dotted @key
 * ("fs.read", "protocol.events", "limits.memory"). Formatting and order of
 * the rest stay. The result is parsed again before it is returned. Refuses
 * (ZB_EPOLICY) what needs --yes-i-mean-it unless @mean_it; ZB_EUSAGE for an
 * unknown key or value. *@changed: false if it already was so. */
int zb_scope_edit(struct zb_buf *out, const char *file, const char *text,
		  size_t len, const char *key, const char *value, bool remove,
		  bool mean_it, bool *changed, struct zb_error *err);

/* "512M", "4194303", 1k=1024. Return: false if malformed or too large. */
bool zb_parse_size(const char *s, uint64_t *out);

#endif
