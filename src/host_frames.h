/* host_frames.h - the frames that a host writes, and what it reads out of an
 * extension's. Pure. Every function appends one line without its newline;
 * parameters called *_json are JSON text and go in as they are. Those that
 * return int: 0 or ZB_ELIMIT. */
#ifndef ZB_HOST_FRAMES_H
#define ZB_HOST_FRAMES_H

#include "json_scan.h"

struct zb_hello_info {
	const char *zot_version, *provider, *model;
	const char *cwd, *extension_dir, *data_dir;
};

int zb_host_hello_ack(struct zb_buf *out, const struct zb_hello_info *info);
int zb_host_tool_call(struct zb_buf *out, const char *id, const char *name,
		      const char *args_json);
/* To an extension that announced it: nobody waits for that answer. */
int zb_host_tool_cancel(struct zb_buf *out, const char *id);
int zb_host_command(struct zb_buf *out, const char *id, const char *name,
		    const char *args);
/* @fields_json: an object whose members follow type and event (no "type",
 * "id", "event" among them). */
int zb_host_event(struct zb_buf *out, const char *event,
		  const char *fields_json);
/* Likewise with @id; member @key (NULL: none) has @value_json instead of what
 * @fields_json says, whether it is there or not. */
int zb_host_intercept(struct zb_buf *out, const char *id, const char *event,
		      const char *fields_json, const char *key,
		      const char *value_json);
/* @text NULL: none. */
int zb_host_panel_key(struct zb_buf *out, const char *panel, const char *key,
		      const char *text);
int zb_host_panel_close(struct zb_buf *out, const char *panel);
/* No host was seen to send it: the members columns and rows are our words. 0:
 * left out. */
int zb_host_panel_resize(struct zb_buf *out, const char *panel,
			 unsigned columns, unsigned rows);
/* The answer to a call_tool of the extension: an error. */
int zb_host_refuse_tool(struct zb_buf *out, const char *id, const char *why);

/* The member by which a rewrite of @event replaces part of the frame, and
 * where an answer carries it: "tool_args" <- "modified_args" for tool_call,
 * "text" <- "replace_text" for assistant_message, "system_prompt" <- the same
 * for before_agent_start. Return: false if @event knows no rewrite. */
bool zb_host_rewrite_of(const char *event, const char **member,
			const char **answer);

/* An event_intercept_response. @rewrite: JSON text of the answer's rewrite
 * for @event, NULL: none (absent, null, or empty text, which the protocol
 * cannot tell from none). Strings are heap; zb_intercept_answer_done(). */
struct zb_intercept_answer {
	bool block;
	char *reason; /* NULL: none */
	char *rewrite;
};
/* Return: 0, or ZB_EUSAGE if @line is no such frame. */
int zb_host_read_answer(struct zb_intercept_answer *out, const char *line,
			size_t len, const char *event);
void zb_intercept_answer_done(struct zb_intercept_answer *a);

/* The frame without its members "type" and "id", without blanks between
 * tokens, and with every character that a terminal would act on or hide
 * written as \uXXXX: the same JSON value, safe to print. */
int zb_frame_rest(struct zb_buf *out, const char *line, size_t len);

/* String member @key of the frame, heap; NULL if absent or no string. */
char *zb_frame_string(const char *line, size_t len, const char *key);

#endif
