/* proto.c - the table of frames.
 *
 * Why an allow-list of fields, and not only of types: hosts grow. A field that
 * today's zot ignores may be one that tomorrow's acts on (tool_prompt and
 * system_prompt came so), and an extension installed today would then hold a
 * power nobody granted. So from the extension's side only what stands here
 * passes; the rest is cut out of the frame. From the host's side frames pass
 * whole: the table only says what the mediator itself must read or rewrite.
 *
 * Keys are compared as the host does it (Go's encoding/json): exactly, else
 * under Unicode case folding. An honest program writes a key as it is written
 * here, so one that only folds to it is refused, never interpreted. */
#include "proto.h"

#include "cleanup.h"
#include "text.h"

#include <string.h>

#define KIB 1024u
#define MIB (1024u * 1024u)

/* Bounds of text. What people see is cut short, what the model or the host
 * acts on is refused: half a prompt is another prompt. */
#define TITLE_MAX    (2 * KIB)
#define LINE_MAX_    (8 * KIB)
#define NOTE_MAX     (64 * KIB)
#define ABOUT_MAX    (4 * KIB)
#define PROMPT_MAX   (256 * KIB)
#define REPLACE_MAX  (1 * MIB)
#define PANEL_ID_MAX 256

static const char *const levels[] = {"info",  "success", "warn", "warning",
				     "error", "",	 NULL};
static const char *const exposures[] = {"direct",     "codemode", "deferred",
					"model-only", "",	  NULL};
static const char *const actions[] = {"prompt",	    "insert", "display",
				      "open_panel", "noop",   "tool_prompt",
				      "",	    NULL};
static const char *const formats[] = {"markdown", "", NULL};
static const char *const block_types[] = {"text", "image", NULL};
static const char *const mime_types[] = {
	"image/png", "image/jpeg", "image/gif", "image/webp", "", NULL};

/* A name and its length, which is asked more often. */
#define NAMED(n) .name = (n), .len = sizeof(n) - 1
#define STR(n, m)                                                              \
	{                                                                      \
		NAMED(n), .type = ZB_FIELD_STRING, .max = (m)                  \
	}
#define ONE_OF(n, v)                                                           \
	{                                                                      \
		NAMED(n), .type = ZB_FIELD_STRING, .values = (v)               \
	}
#define ONE_OF_OR_CUT(n, v)                                                    \
	{                                                                      \
		NAMED(n), .type = ZB_FIELD_STRING, .values = (v),              \
			  .flags = ZB_FIELD_LOOSE                              \
	}
#define TEXT(n, m)                                                             \
	{                                                                      \
		NAMED(n), .type = ZB_FIELD_STRING, .max = (m),                 \
			  .flags = ZB_FIELD_TEXT                               \
	}
#define SHOWN(n, m)                                                            \
	{                                                                      \
		NAMED(n), .type = ZB_FIELD_STRING, .max = (m),                 \
			  .flags = ZB_FIELD_TEXT | ZB_FIELD_TRIM               \
	}
#define LINES(n)                                                               \
	{                                                                      \
		NAMED(n), .type = ZB_FIELD_LINES, .max = LINE_MAX_,            \
			  .flags = ZB_FIELD_TEXT | ZB_FIELD_TRIM               \
	}
#define BOOL(n)                                                                \
	{                                                                      \
		NAMED(n), .type = ZB_FIELD_BOOL                                \
	}
#define OBJECT(n, m)                                                           \
	{                                                                      \
		NAMED(n), .type = ZB_FIELD_OBJECT, .max = (m)                  \
	}
#define ANY(n)                                                                 \
	{                                                                      \
		NAMED(n), .type = ZB_FIELD_ANY                                 \
	}
#define NAMES(n)                                                               \
	{                                                                      \
		NAMED(n), .type = ZB_FIELD_NAMES, .max = 128                   \
	}
#define SHAPE(n, s)                                                            \
	{                                                                      \
		NAMED(n), .type = ZB_FIELD_SHAPE, .shape = &(s)                \
	}
#define BLOCKS(n, s)                                                           \
	{                                                                      \
		NAMED(n), .type = ZB_FIELD_BLOCKS, .shape = &(s)               \
	}

/* Every frame has these two; where a type has no use for an id it is cut. */
#define TYPE STR("type", 0)
#define ID                                                                     \
	{                                                                      \
		NAMED("id"), .type = ZB_FIELD_ID                               \
	}

static const struct zb_field panel_fields[] = {
	STR("id", PANEL_ID_MAX), SHOWN("title", TITLE_MAX), LINES("lines"),
	SHOWN("footer", TITLE_MAX)};
static const struct zb_shape panel_shape = {"panel", panel_fields,
					    ZB_ARRAY_LEN(panel_fields)};

static const struct zb_field block_fields[] = {
	ONE_OF("type", block_types), TEXT("text", 0),
	ONE_OF("mime_type", mime_types), STR("data", 0),
	ONE_OF_OR_CUT("format", formats)};
static const struct zb_shape block_shape = {"content block", block_fields,
					    ZB_ARRAY_LEN(block_fields)};

static const struct zb_field hello[] = {
	TYPE, TEXT("name", 256), TEXT("version", 128), NAMES("capabilities")};
static const struct zb_field register_command[] = {
	TYPE, STR("name", 256), SHOWN("description", ABOUT_MAX)};
static const struct zb_field register_tool[] = {
	TYPE,
	STR("name", 256),
	TEXT("description", 16 * KIB),
	OBJECT("schema", ZB_PROTO_SCHEMA),
	BOOL("deferred"),
	OBJECT("output_schema", ZB_PROTO_SCHEMA),
	STR("namespace", 64),
	TEXT("namespace_description", ABOUT_MAX),
	TEXT("namespace_instructions", 16 * KIB),
	ONE_OF("exposure", exposures),
	BOOL("interactive")};
static const struct zb_field type_only[] = {TYPE};
static const struct zb_field subscribe[] = {TYPE, NAMES("events"),
					    NAMES("intercept")};
static const struct zb_field tool_result[] = {TYPE,
					      ID,
					      BLOCKS("content", block_shape),
					      BOOL("is_error"),
					      NAMES("activate_tools"),
					      ANY("structured_content")};
static const struct zb_field command_response[] = {
	TYPE,
	ID,
	ONE_OF("action", actions),
	TEXT("prompt", PROMPT_MAX),
	TEXT("insert", PROMPT_MAX),
	SHOWN("display", NOTE_MAX),
	SHAPE("open_panel", panel_shape),
	SHOWN("error", NOTE_MAX),
	STR("tool_name", 64),
	OBJECT("tool_args", 0)};
static const struct zb_field intercept_response[] = {
	TYPE,
	ID,
	BOOL("block"),
	SHOWN("reason", NOTE_MAX),
	OBJECT("modified_args", 0),
	TEXT("replace_text", REPLACE_MAX),
	TEXT("system_prompt", REPLACE_MAX)};
static const struct zb_field notify[] = {TYPE, ONE_OF_OR_CUT("level", levels),
					 SHOWN("message", NOTE_MAX)};
static const struct zb_field display[] = {TYPE, SHOWN("text", NOTE_MAX)};
static const struct zb_field submit[] = {TYPE, TEXT("text", PROMPT_MAX)};
static const struct zb_field call_tool[] = {
	TYPE, ID, STR("name", 64), OBJECT("args", 0), STR("parent_id", 256)};
static const struct zb_field call_tool_cancel[] = {TYPE, ID};
static const struct zb_field open_panel[] = {TYPE, SHAPE("panel", panel_shape)};
static const struct zb_field panel_render[] = {
	TYPE, STR("panel_id", PANEL_ID_MAX), SHOWN("title", TITLE_MAX),
	LINES("lines"), SHOWN("footer", TITLE_MAX)};
static const struct zb_field panel_close[] = {TYPE,
					      STR("panel_id", PANEL_ID_MAX)};

/* Host to extension: what the mediator reads. */
static const struct zb_field hello_ack[] = {TYPE, STR("extension_dir", 0),
					    STR("data_dir", 0)};
static const struct zb_field named_call[] = {TYPE, ID, STR("name", 0)};
static const struct zb_field id_only[] = {TYPE, ID};
static const struct zb_field event[] = {TYPE, STR("event", 0)};
static const struct zb_field event_intercept[] = {TYPE, ID, STR("event", 0),
						  STR("tool_name", 0)};
static const struct zb_field host_panel[] = {TYPE, STR("panel_id", 0)};

#define ROW(i, t, v, r, f)                                                     \
	[ZB_FRAME_##i] = {ZB_FRAME_##i,                                        \
			  (t),                                                 \
			  sizeof(t) - 1,                                       \
			  ZB_FROM_EXT,                                         \
			  ZB_VERB_##v,                                         \
			  (r),                                                 \
			  {(t), (f), ZB_ARRAY_LEN(f)}}
#define HOST(i, t, f)                                                          \
	[ZB_FRAME_##i] = {ZB_FRAME_##i,                                        \
			  (t),                                                 \
			  sizeof(t) - 1,                                       \
			  ZB_FROM_HOST,                                        \
			  ZB_VERB_COUNT,                                       \
			  false,                                               \
			  {(t), (f), ZB_ARRAY_LEN(f)}}

static const struct zb_frame_row rows[ZB_FRAME_COUNT] = {
	ROW(HELLO, "hello", COUNT, false, hello),
	ROW(REGISTER_COMMAND, "register_command", COMMANDS, false,
	    register_command),
	ROW(REGISTER_TOOL, "register_tool", TOOLS, false, register_tool),
	ROW(READY, "ready", COUNT, false, type_only),
	ROW(SUBSCRIBE, "subscribe", COUNT, false, subscribe),
	ROW(TOOL_RESULT, "tool_result", TOOLS, true, tool_result),
	ROW(COMMAND_RESPONSE, "command_response", COMMANDS, true,
	    command_response),
	ROW(INTERCEPT_RESPONSE, "event_intercept_response", COUNT, true,
	    intercept_response),
	ROW(NOTIFY, "notify", NOTIFY, false, notify),
	ROW(DISPLAY, "display", NOTIFY, false, display),
	ROW(CLEAR_NOTES, "clear_notes", NOTIFY, false, type_only),
	ROW(SUBMIT, "submit", SUBMIT, false, submit),
	ROW(SUBMIT_SLASH, "submit_slash", SLASH, false, submit),
	ROW(CALL_TOOL, "call_tool", CALL_TOOL, false, call_tool),
	ROW(CALL_TOOL_CANCEL, "call_tool_cancel", CALL_TOOL, false,
	    call_tool_cancel),
	ROW(OPEN_PANEL, "open_panel", PANELS, false, open_panel),
	ROW(PANEL_RENDER, "panel_render", PANELS, false, panel_render),
	ROW(PANEL_CLOSE, "panel_close", PANELS, false, panel_close),
	ROW(SHUTDOWN_ACK, "shutdown_ack", COUNT, false, type_only),
	HOST(HELLO_ACK, "hello_ack", hello_ack),
	HOST(COMMAND_INVOKED, "command_invoked", named_call),
	HOST(TOOL_CALL, "tool_call", named_call),
	HOST(TOOL_CANCEL, "tool_cancel", id_only),
	HOST(CALL_RESULT, "tool_result", id_only),
	HOST(EVENT, "event", event),
	HOST(EVENT_INTERCEPT, "event_intercept", event_intercept),
	HOST(PANEL_KEY, "panel_key", host_panel),
	HOST(PANEL_RESIZE, "panel_resize", host_panel),
	HOST(HOST_PANEL_CLOSE, "panel_close", host_panel),
	HOST(SHUTDOWN, "shutdown", type_only),
};

static bool equal(const char *a, size_t an, const char *b)
{
	return strlen(b) == an && memcmp(a, b, an) == 0;
}

const struct zb_frame_row *zb_proto_row(enum zb_frame_dir dir, const char *type,
					size_t len)
{
	for (size_t i = 0; i < ZB_FRAME_COUNT; i++)
		if (rows[i].type_len == len && rows[i].dir == dir &&
		    !memcmp(type, rows[i].type, len))
			return &rows[i];
	return NULL;
}

const struct zb_frame_row *zb_proto_row_of(enum zb_frame_id id)
{
	return &rows[id];
}

int zb_proto_field(const struct zb_shape *shape, const char *key, size_t len)
{
	for (unsigned i = 0; i < shape->n; i++) {
		const struct zb_field *f = &shape->fields[i];

		/* Asked for each key of each frame: few get to memcmp(3). */
		if (f->len == len && f->name[0] == key[0] &&
		    !memcmp(key, f->name, len))
			return (int)i;
	}
	return -1;
}

int zb_proto_field_folded(const struct zb_shape *shape, const char *key,
			  size_t len)
{
	for (unsigned i = 0; i < shape->n; i++) {
		const char *name = shape->fields[i].name;

		if (zb_fold_equal(key, len, name, strlen(name)))
			return (int)i;
	}
	return -1;
}

static bool tool_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool zb_tool_name_valid(const char *s, size_t len)
{
	if (len < 1 || len > 64)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!tool_char(s[i]))
			return false;
	return true;
}

static bool folds_to_one_of(const char *s, size_t len, const char *const *list)
{
	for (; *list; list++)
		if (zb_fold_equal(s, len, *list, strlen(*list)))
			return true;
	return false;
}

bool zb_tool_is_builtin(const char *s, size_t len)
{
	static const char *const names[] = {"read",
					    "write",
					    "edit",
					    "bash",
					    "skill",
					    "swarm_spawn",
					    "telegram_send_image",
					    "telegram_send_file",
					    "codemode",
					    NULL};

	return folds_to_one_of(s, len, names);
}

bool zb_command_name_valid(const char *s, size_t len)
{
	size_t i = 0;

	if (len < 1 || len > 64)
		return false;
	while (i < len) {
		uint32_t cp;
		unsigned used = zb_utf8_next(s + i, len - i, &cp);

		if (!used || zb_is_blank(cp) || zb_is_hazard(cp) || cp == '/')
			return false;
		i += used;
	}
	return true;
}

bool zb_command_is_builtin(const char *s, size_t len)
{
	static const char *const names[] = {
		"help",	 "login",      "logout",   "model",    "reasoning",
		"llama", "sessions",   "session",  "jump",     "compact",
		"study", "btw",	       "jail",	   "unjail",   "skills",
		"swarm", "reload-ext", "telegram", "settings", "clear",
		"exit",	 "cd",	       NULL};

	return folds_to_one_of(s, len, names);
}

enum zb_text_kind zb_text_kind(const char *s, size_t len)
{
	size_t i = zb_skip_blanks(s, len);

	if (i >= len)
		return ZB_TEXT_BLANK;
	if (s[i] == '!')
		return ZB_TEXT_SHELL;
	return s[i] == '/' ? ZB_TEXT_SLASH : ZB_TEXT_PLAIN;
}

/* Lowering as Go's strings.ToLower does it reaches ASCII from two characters
 * outside it: U+212A, which folding knows, and U+0130, which it does not. */
static uint32_t lower(uint32_t cp)
{
	if (cp == 0x130 || cp == 0x131)
		return 'i';
	return zb_fold(cp);
}

int zb_slash_name(const char *s, size_t len, struct zb_buf *out)
{
	size_t i = zb_skip_blanks(s, len) + 1;

	while (i < len) {
		uint32_t cp;
		unsigned used = zb_utf8_next(s + i, len - i, &cp);

		if (!used || zb_is_blank(cp))
			break;
		if (zb_utf8_add(out, lower(cp)))
			return ZB_ELIMIT;
		i += used;
	}
	return 0;
}

static bool base64_char(unsigned char c)
{
	return (unsigned)((c | 0x20) - 'a') < 26 || (unsigned)(c - '0') < 10 ||
	       c == '+' || c == '/';
}

bool zb_base64_valid(const char *s, size_t len)
{
	size_t body = len;

	if (len == 0 || len % 4)
		return false;
	if (s[len - 1] == '=')
		body -= s[len - 2] == '=' ? 2 : 1;
	for (size_t i = 0; i < body; i++)
		if (!base64_char((unsigned char)s[i]))
			return false;
	return true;
}

static bool ends_with(const char *s, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && memcmp(s + len - n, end, n) == 0;
}

bool zb_event_field_plain(const char *key, size_t len)
{
	static const char *const plain[] = {"type", "event",	       "id",
					    "name", "sequence",	       "step",
					    "stop", "origin_extension"};

	for (size_t i = 0; i < ZB_ARRAY_LEN(plain); i++)
		if (equal(key, len, plain[i]))
			return true;
	return ends_with(key, len, "_id") || ends_with(key, len, "_name");
}
