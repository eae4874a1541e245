/* host_api.h - what `zotbox host` and its client say to each other, as text:
 * requests read strictly, replies and events written. No state, no effects;
 * cmd_host*.c acts. zotbox-host(5) explains the API to its users,
 * policies/host-api.schema.json is its schema. Pure.
 *
 *	{"id":1,"type":"tool_call","name":"weather","args":{"city":"Oslo"}}
 *	{"type":"response","id":1,"command":"tool_call","success":true,
 *	 "data":{...}}
 *	{"type":"ext_notify","extension":"weather","level":"info",...} */
#ifndef ZB_HOST_API_H
#define ZB_HOST_API_H

#include "json_scan.h"

#define ZB_API_VERSION 1
#define ZB_API_ID_MAX  256 /* bytes of an id's JSON text */
#define ZB_API_NAMES   256 /* elements of a list of names */

enum zb_api_type {
	ZB_API_HELLO,
	ZB_API_LIST_EXTENSIONS,
	ZB_API_LIST_COMMANDS,
	ZB_API_LIST_TOOLS,
	ZB_API_INVOKE,
	ZB_API_TOOL_CALL,
	ZB_API_EVENT,
	ZB_API_INTERCEPT,
	ZB_API_PANEL_KEY,
	ZB_API_PANEL_CLOSE,
	ZB_API_PANEL_RESIZE,
	ZB_API_RELOAD,
	ZB_API_DENIALS,
	ZB_API_STATE,
	ZB_API_PING,
	ZB_API_SHUTDOWN,
	ZB_API_TYPES
};

/* Where the value of a field goes. */
enum zb_api_field {
	ZB_API_TOKEN,
	ZB_API_BUILTIN_COMMANDS,
	ZB_API_BUILTIN_TOOLS,
	ZB_API_FORMAT,
	ZB_API_NAME,
	ZB_API_ARGS,
	ZB_API_TIMEOUT_MS,
	ZB_API_EVENT_NAME,
	ZB_API_PANEL_ID,
	ZB_API_EXTENSION,
	ZB_API_KEY,
	ZB_API_TEXT,
	ZB_API_COLUMNS,
	ZB_API_ROWS,
	ZB_API_SINCE,
	ZB_API_FIELDS
};

/* A failure in one word. */
enum zb_api_code {
	ZB_API_OK,
	ZB_API_USAGE,	    /* malformed, or not what the request takes */
	ZB_API_UNKNOWN,	    /* no such tool, command, extension, panel */
	ZB_API_TIMEOUT,	    /* no answer in time */
	ZB_API_EXITED,	    /* it is not running, or ended meanwhile */
	ZB_API_DENIED,	    /* a rule forbids it; the token is wrong */
	ZB_API_LIMIT,	    /* a stated bound is reached */
	ZB_API_UNSUPPORTED, /* not something that extensions do here */
};

/* @text: of a string, unescaped; of an object, its JSON text. NULL, 0 and an
 * empty list where the field is absent (or null). */
struct zb_api_request {
	enum zb_api_type type;
	char *id;      /* JSON text; "null" if there is none to echo */
	char *command; /* what it calls itself; NULL if it does not */
	char *text[ZB_API_FIELDS];
	int64_t number[ZB_API_FIELDS];
	struct zb_strv list[ZB_API_FIELDS];
	/* event, intercept: a JSON object of the members that are not the
	 * request's own (id, type, event). */
	char *fields;
};

/* Read one line. Return: 0, or ZB_EUSAGE with what is wrong; @out->id and
 * @out->command are then filled as far as they could be read. In any case
 * zb_api_request_done(). */
int zb_api_read(struct zb_api_request *out, const char *line, size_t len,
		struct zb_error *err);
void zb_api_request_done(struct zb_api_request *q);
/* The name of a request type, static. */
const char *zb_api_type_name(enum zb_api_type t);

/* Each appends one line without its newline. Return: 0 or ZB_ELIMIT. */

/* @data: JSON text of an object. */
int zb_api_success(struct zb_buf *out, const char *id, const char *command,
		   const char *data);
/* @command NULL: null. @text need not be clean. */
int zb_api_failure(struct zb_buf *out, const char *id, const char *command,
		   enum zb_api_code code, const char *text);
const char *zb_api_code_name(enum zb_api_code code);

/* An event: @type as it is called ("ext_notify"), @rest: JSON text of an
 * object whose members follow (none of them type or extension). */
int zb_api_event(struct zb_buf *out, const char *type, const char *extension,
		 const char *rest);

/* What an extension's frame becomes for the client. Return: NULL for one that
 * is no event (a reply, a registration); else the event's type, with the
 * object for zb_api_event() appended to @rest. A command_response is taken
 * for what it asks the agent to do: prompt, insert, display, open_panel,
 * tool_prompt. */
const char *zb_api_frame_event(const char *type, const char *line, size_t len,
			       struct zb_buf *rest);

#endif
