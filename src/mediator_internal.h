/* mediator_internal.h - what the parts of the mediator share: mediator.c (state
 * and entry points), mediator_frame.c (a frame taken apart and put together
 * again), and the handlers of frame types in mediator_ext.c,
 * mediator_register.c, mediator_reply.c and mediator_host.c. */
#ifndef ZB_MEDIATOR_INTERNAL_H
#define ZB_MEDIATOR_INTERNAL_H

#include "calls.h"
#include "json_scan.h"
#include "mediator.h"
#include "proto.h"
#include "splice.h"

#define ZB_MED_INNER   3    /* nested values of one frame that are read */
#define ZB_MED_SEEN    256  /* kinds recorded once */
#define ZB_MED_BUCKET  4000 /* unsolicited frames at once */
#define ZB_MED_SUBMITS 4096 /* unasked submits remembered, at most */

struct zb_mediator {
	const struct zb_plan *plan;
	char *data_dir, *extension_dir;
	struct zb_strv builtin_tools;
	size_t frame_bytes;

	bool hello, ready;
	uint64_t lines, not_frames;
	struct zb_calls calls;
	struct zb_strv commands, tools, events, intercepts;
	uint64_t tool_hash[ZB_PROTO_TOOLS];
	/* Panels it opened, newest last; only that one can be open. */
	struct zb_strv panels;
	bool panel_open;
	struct zb_strv seen; /* keys of what was said once */

	/* Unsolicited frames, in thousandths, down to a debt. */
	int64_t tokens, tokens_ms;
	uint64_t frames_per_second;
	bool holding; /* limit.frames was recorded for this episode */
	/* When the last unasked submits were, a ring of @n_submits. */
	int64_t *submits;
	size_t n_submits, next_submit;

	/* The line at work. */
	struct zb_med_out *out;
	int64_t now_ms;
	const char *line;
	size_t len;
	bool oom;
	struct zb_json json, inner[ZB_MED_INNER];
	bool inner_used[ZB_MED_INNER];
	struct zb_json_fault fault; /* of the last scan that failed */
	struct zb_splice splice;
	struct zb_buf raw, clean, key, quoted;
	struct zb_buf id; /* of the frame, if it has one of use; or empty */
	struct zb_buf name, event; /* of a frame of the host */
};

/* One object of a frame, taken apart by its shape. What a key came to is noted
 * at its token: nobody has to compare it again. */
struct zb_part {
	const struct zb_shape *shape;
	struct zb_json *json;
	uint32_t obj;
	size_t base;		       /* where json->text is in the line */
	uint32_t tok[ZB_SHAPE_FIELDS]; /* ZB_JSON_NONE: absent, or null */
	uint32_t cut;		       /* bit i: field i goes */
	/* A nested value's own index (its root is the value); NULL: the value
	 * is in @json. */
	struct zb_json *inner[ZB_SHAPE_FIELDS];
};

/* One frame of the extension, taken apart by zb_med_view(). @bad: the first
 * thing that is wrong with it, a clause, or "". */
struct zb_view {
	const struct zb_frame_row *row;
	struct zb_part top;
	char bad[200];
};

/* What was refused, for a record. NULL where absent. @key and @value: what to
 * grant; without a key @why_not says why none helps. */
struct zb_med_refusal {
	enum zb_op op;
	const char *detail;
	const char *asked;
	size_t asked_len;
	const char *target;
	const char *rule;
	const char *key, *value;
	const char *why_not;
};

/* ---- mediator.c ---- */

/* Add a record to the output. */
void zb_med_refuse(struct zb_mediator *m, const struct zb_med_refusal *r);
/* A line for the log. */
void zb_med_log(struct zb_mediator *m, const char *fmt, ...) ZB_PRINTF(2, 3);
/* True the first time that this text comes (of at most ZB_MED_SEEN; then
 * always: rather too often than never). */
bool zb_med_once(struct zb_mediator *m, const char *fmt, ...) ZB_PRINTF(2, 3);
/* Count one unsolicited frame. */
void zb_med_spend(struct zb_mediator *m);
/* May an unasked submit pass now? Counts it if so. */
bool zb_med_submit_budget(struct zb_mediator *m);
/* Is verb @v granted (for @name)? */
bool zb_med_granted(const struct zb_mediator *m, enum zb_verb v,
		    const char *name);
/* The same; if not, a record with @asked. */
bool zb_med_verb(struct zb_mediator *m, enum zb_verb v, const char *name,
		 const char *asked, size_t asked_len);
/* Append the answer that says no to a call: an error result, a noop with an
 * error, an allow (or a block, if the scope says so for failures). */
void zb_med_answer(struct zb_mediator *m, struct zb_buf *out,
		   enum zb_call_kind kind, const char *id, const char *why);
/* The reply to @call is refused: it is answered in its place, and closed. */
void zb_med_refuse_reply(struct zb_mediator *m, struct zb_call *call,
			 const char *why);
/* @s escaped for a message, at most @max bytes of it, into @t. Return: @t->s.
 */
struct zb_med_text {
	char s[300];
};
const char *zb_med_show(struct zb_med_text *t, const char *s, size_t n,
			size_t max);

/* ---- mediator_frame.c ---- */

enum zb_view_result {
	ZB_VIEW_OK,	 /* @v->bad may still be set */
	ZB_VIEW_SMUGGLED /* refused whole; it is recorded */
};
/* Take the frame in m->json apart. */
enum zb_view_result zb_med_view(struct zb_mediator *m, struct zb_view *v,
				const struct zb_frame_row *row);
/* A smuggled key in a frame of @row (NULL: unknown): record it. */
void zb_med_smuggled(struct zb_mediator *m, const struct zb_frame_row *row,
		     const char *what);
/* One object inside that was read already, with the frame: only its fields are
 * found again. */
void zb_med_part(struct zb_part *p, const struct zb_shape *shape,
		 struct zb_json *json, uint32_t obj, size_t base);
/* The object that field @name of the frame is. Return: false if the field is
 * absent. */
bool zb_med_nested(const struct zb_view *v, const char *name,
		   struct zb_part *p);
/* Token of field @name, or ZB_JSON_NONE. @name must be in the shape. */
uint32_t zb_med_field(const struct zb_part *p, const char *name);
bool zb_med_has(const struct zb_view *v, const char *name);
bool zb_med_true(const struct zb_view *v, const char *name);
/* Mark field @name to be cut. */
void zb_med_cut(struct zb_view *v, const char *name);
/* Text of field @name as it would reach the host (cleaned if it is for
 * people), in m->clean. Return: false if absent. */
bool zb_med_text(struct zb_mediator *m, const struct zb_part *p,
		 const char *name);
/* The frame's id in m->id. */
void zb_med_take_id(struct zb_mediator *m, const struct zb_view *v);
/* Unescaped, uncleaned, in m->raw; false if absent, no string, or if it holds
 * a NUL. */
bool zb_med_name(struct zb_mediator *m, const struct zb_part *p,
		 const char *name);
/* Set the verdict: pass, or pass with fields cut and text cleaned. Return:
 * false if the result would be too long for the host (nothing passes). */
bool zb_med_pass(struct zb_mediator *m, struct zb_view *v);
/* Member @key of the object that @head starts with, though it may be cut off:
 * if it is a plain string without escapes, copy it into @out. The first one
 * wins; nothing else of the object is checked. */
bool zb_med_peek_string(const char *head, size_t n, const char *key, char *out,
			size_t size);

/* ---- mediator_ext.c ---- */

void zb_med_from_ext(struct zb_mediator *m, struct zb_view *v);
/* A frame that is of no use: logged, dropped. */
void zb_med_drop(struct zb_mediator *m, const char *why);
/* Pass a frame that nobody waits for, unless something is wrong with it. */
bool zb_med_pass_plain(struct zb_mediator *m, struct zb_view *v);
/* The panel @id is the open one now. */
void zb_med_open_panel(struct zb_mediator *m, const char *id);
/* String @field as an id, copied; false if there is none of use. It may be
 * shown: nothing in it that a terminal acts on. */
bool zb_med_plain_id(struct zb_mediator *m, const struct zb_part *p,
		     const char *field, char **out);

/* ---- mediator_register.c ---- */

void zb_med_on_hello(struct zb_mediator *m, struct zb_view *v);
void zb_med_on_ready(struct zb_mediator *m, struct zb_view *v);
void zb_med_on_shutdown_ack(struct zb_mediator *m, struct zb_view *v);
void zb_med_on_register_command(struct zb_mediator *m, struct zb_view *v);
void zb_med_on_register_tool(struct zb_mediator *m, struct zb_view *v);
void zb_med_on_subscribe(struct zb_mediator *m, struct zb_view *v);
/* Does this element of a list of names stay? Said once if not. */
bool zb_med_keep_name(struct zb_mediator *m, const struct zb_frame_row *row,
		      const struct zb_field *field, const char *name,
		      size_t len);
/* The record of something an intercept may not do. @part: "block"... */
void zb_med_refuse_intercept(struct zb_mediator *m, const char *event,
			     const char *part);

/* ---- mediator_reply.c ---- */

/* Note what is wrong with a frame, unless something was before. */
void zb_med_note_bad(struct zb_view *v, const char *why);
void zb_med_on_tool_result(struct zb_mediator *m, struct zb_view *v);
void zb_med_on_command_response(struct zb_mediator *m, struct zb_view *v);
void zb_med_on_intercept_response(struct zb_mediator *m, struct zb_view *v);
/* May this text reach the editor or the prompt queue, where a leading `!` or
 * `/` acts? Asked of what the extension wrote (m->raw) and of what the host
 * would get (m->clean); @verb is asked too. Records it if not. */
bool zb_med_text_allowed(struct zb_mediator *m, enum zb_verb verb);

/* ---- mediator_host.c ---- */

void zb_med_from_host(struct zb_mediator *m);

#endif
