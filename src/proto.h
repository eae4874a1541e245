/* proto.h - the table of frames: what each type may carry, which way it goes,
 * and which verb of the scope it needs. Data and look-ups, no state; the
 * mediator (mediator.h) is what acts on it. Pure.
 *
 * To add a frame type: a row in proto.c, a transcript under tests/unit, and,
 * if more than its fields matter, a handler in mediator_ext.c. */
#ifndef ZB_PROTO_H
#define ZB_PROTO_H

#include "scope.h"

enum zb_frame_dir {
	ZB_FROM_EXT,
	ZB_FROM_HOST
};

enum zb_frame_id {
	/* extension to host */
	ZB_FRAME_HELLO,
	ZB_FRAME_REGISTER_COMMAND,
	ZB_FRAME_REGISTER_TOOL,
	ZB_FRAME_READY,
	ZB_FRAME_SUBSCRIBE,
	ZB_FRAME_TOOL_RESULT,
	ZB_FRAME_COMMAND_RESPONSE,
	ZB_FRAME_INTERCEPT_RESPONSE,
	ZB_FRAME_NOTIFY,
	ZB_FRAME_DISPLAY,
	ZB_FRAME_CLEAR_NOTES,
	ZB_FRAME_SUBMIT,
	ZB_FRAME_SUBMIT_SLASH,
	ZB_FRAME_CALL_TOOL,
	ZB_FRAME_CALL_TOOL_CANCEL,
	ZB_FRAME_OPEN_PANEL,
	ZB_FRAME_PANEL_RENDER,
	ZB_FRAME_PANEL_CLOSE,
	ZB_FRAME_SHUTDOWN_ACK,
	/* host to extension */
	ZB_FRAME_HELLO_ACK,
	ZB_FRAME_COMMAND_INVOKED,
	ZB_FRAME_TOOL_CALL,
	ZB_FRAME_TOOL_CANCEL,
	ZB_FRAME_CALL_RESULT, /* tool_result, the answer to call_tool */
	ZB_FRAME_EVENT,
	ZB_FRAME_EVENT_INTERCEPT,
	ZB_FRAME_PANEL_KEY,
	ZB_FRAME_PANEL_RESIZE,
	ZB_FRAME_HOST_PANEL_CLOSE,
	ZB_FRAME_SHUTDOWN,
	ZB_FRAME_COUNT
};

/* What JSON a field must be. null counts as absent; where the host keeps the
 * raw value (OBJECT, ANY) a null is cut out, silently. */
enum zb_field_type {
	ZB_FIELD_STRING,
	ZB_FIELD_ID, /* read by the handler, whatever it is */
	ZB_FIELD_BOOL,
	ZB_FIELD_OBJECT, /* passes whole; no level below it is read */
	ZB_FIELD_ANY,	 /* any value, passes whole */
	ZB_FIELD_LINES,	 /* array of strings, each one text */
	ZB_FIELD_NAMES,	 /* array of strings, filtered by what is granted */
	ZB_FIELD_SHAPE,	 /* object with fields of its own */
	ZB_FIELD_BLOCKS, /* array of objects with fields of their own */
};

enum {
	ZB_FIELD_TEXT = 1, /* for people or the model: cleaned */
	ZB_FIELD_TRIM = 2, /* over @max: cut short; else the frame is refused */
	ZB_FIELD_LOOSE = 4, /* a value outside @values cuts the field only */
};

struct zb_shape;

/* @max: bytes of a string after unescaping, or of the JSON text of an OBJECT;
 * of each element for LINES and NAMES; 0: what fits a frame. @values:
 * NULL-terminated enumeration, or NULL. */
struct zb_field {
	const char *name;
	size_t len; /* of @name */
	enum zb_field_type type;
	unsigned flags;
	uint32_t max;
	const char *const *values;
	const struct zb_shape *shape; /* SHAPE and BLOCKS */
};

#define ZB_SHAPE_FIELDS 16 /* most fields a shape has */

struct zb_shape {
	const char *what; /* for messages: "panel", "content block" */
	const struct zb_field *fields;
	unsigned n;
};

/* @verb: what must be granted before it is looked at, ZB_VERB_COUNT: nothing.
 * @reply: answers a frame of the other side, so it must have its id. */
struct zb_frame_row {
	enum zb_frame_id id;
	const char *type;
	size_t type_len;
	enum zb_frame_dir dir;
	enum zb_verb verb;
	bool reply;
	struct zb_shape shape;
};

/* Bounds that are no field's. */
enum {
	ZB_PROTO_DEPTH = 256,	     /* nesting of a frame */
	ZB_PROTO_TOOLS = 128,	     /* registered tools */
	ZB_PROTO_COMMANDS = 512,     /* registered commands */
	ZB_PROTO_NAMES = 256,	     /* elements of a list of names */
	ZB_PROTO_LINES = 1000,	     /* lines of a panel; the rest is cut */
	ZB_PROTO_BLOCKS = 1024,	     /* content blocks of a result */
	ZB_PROTO_SCHEMA = 64 * 1024, /* bytes of a tool's schema */
	ZB_PROTO_ID = 1024,	     /* bytes of an id of the host */
};

/* The row of a type, or NULL for an unknown one. */
const struct zb_frame_row *zb_proto_row(enum zb_frame_dir dir, const char *type,
					size_t len);
const struct zb_frame_row *zb_proto_row_of(enum zb_frame_id id);
/* Index of the field called exactly @key, or -1. */
int zb_proto_field(const struct zb_shape *shape, const char *key, size_t len);
/* Index of a field that @key (valid UTF-8) equals under Unicode case folding,
 * or -1. Exact equality counts too. */
int zb_proto_field_folded(const struct zb_shape *shape, const char *key,
			  size_t len);

/* [A-Za-z0-9_-]{1,64}: what every model's API takes. */
bool zb_tool_name_valid(const char *s, size_t len);
/* Does it fold to a tool of the host (read, write, edit, bash, skill...)?
 * Another tool of that name would take its calls, or confuse the model. */
bool zb_tool_is_builtin(const char *s, size_t len);
/* 1 to 64 bytes, no blank, no slash, nothing a terminal acts on or hides. */
bool zb_command_name_valid(const char *s, size_t len);
bool zb_command_is_builtin(const char *s, size_t len);

/* Where text starts a slash command or a shell escape of the host. */
enum zb_text_kind {
	ZB_TEXT_PLAIN,
	ZB_TEXT_SHELL, /* ! after blanks: runs in the user's shell */
	ZB_TEXT_SLASH, /* / after blanks: a command of the host */
	ZB_TEXT_BLANK, /* nothing but blanks */
};
enum zb_text_kind zb_text_kind(const char *s, size_t len);
/* For ZB_TEXT_SLASH: append the command's name as the host compares it (no
 * slash, up to the first blank, lower case; also those characters that only
 * become ASCII by lowering, like U+0130). */
int zb_slash_name(const char *s, size_t len, struct zb_buf *out);
/* Standard base64 (RFC 4648) with its padding, nothing else. */
bool zb_base64_valid(const char *s, size_t len);

/* Fields of an event that pass without event_content: type, event, ids, names,
 * step, stop, sequence. Their values must be scalars. */
bool zb_event_field_plain(const char *key, size_t len);

#endif
