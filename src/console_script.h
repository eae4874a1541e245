/* console_script.h - the verbs of `zotbox console`, one a line. Pure: a line
 * in, a struct out.
 *
 *	/NAME ARGS             cmd NAME ARGS          call TOOL [JSON]
 *	intercept EVENT [JSON] event EVENT [JSON]     key PANEL KEY [TEXT]
 *	panel_close PANEL      reload [NAME]          kill NAME SIG
 *	sleep S                idle                   tools  commands  exts
 *	denials [NAME]         shutdown
 *
 * Blank lines and # lines say nothing. ARGS, TEXT and JSON are the rest of the
 * line, without quoting; absent JSON is {}. NAME, TOOL, PANEL are a word or a
 * JSON string. " &" at the end: do not wait; "\&" at the end is a plain "&". */
#ifndef ZB_CONSOLE_SCRIPT_H
#define ZB_CONSOLE_SCRIPT_H

#include "buf.h"

enum zb_script_verb {
	ZB_SCRIPT_NOTHING, /* blank or comment */
	ZB_SCRIPT_COMMAND, /* @name, @text: its arguments, trimmed */
	ZB_SCRIPT_CALL,	   /* @name, @json: the arguments */
	ZB_SCRIPT_INTERCEPT,
	ZB_SCRIPT_EVENT, /* @name, @json: further members of the frame */
	ZB_SCRIPT_KEY,	 /* @name: the panel, @key, @text or NULL */
	ZB_SCRIPT_PANEL_CLOSE,
	ZB_SCRIPT_RELOAD, /* @name or NULL: all */
	ZB_SCRIPT_KILL,	  /* @name, @number: the signal */
	ZB_SCRIPT_SLEEP,  /* @number: milliseconds */
	ZB_SCRIPT_IDLE,
	ZB_SCRIPT_TOOLS,
	ZB_SCRIPT_COMMANDS,
	ZB_SCRIPT_EXTS,
	ZB_SCRIPT_DENIALS, /* @name or NULL */
	ZB_SCRIPT_SHUTDOWN,
};

/* Heap strings, NULL where the verb has none. */
struct zb_script_line {
	enum zb_script_verb verb;
	char *name, *text, *key, *json;
	unsigned number;
	bool detached;
};

/* @line without its newline. Return: 0 or ZB_EUSAGE with what is wrong and
 * how it should be ("sleep needs a number of seconds: sleep S"). */
int zb_script_parse(struct zb_script_line *out, const char *line, size_t len,
		    struct zb_error *err);
void zb_script_line_done(struct zb_script_line *l);

/* For completion: the verbs, by number; NULL after the last. */
const char *zb_script_verb_word(size_t i);

enum zb_script_slot {
	ZB_SLOT_NONE, /* free text, or too much */
	ZB_SLOT_VERB,
	ZB_SLOT_COMMAND,
	ZB_SLOT_TOOL,
	ZB_SLOT_EXT,
	ZB_SLOT_PANEL,
	ZB_SLOT_KEY,
	ZB_SLOT_EVENT,
};
/* What the word that begins at byte @at of @line is. */
enum zb_script_slot zb_script_slot(const char *line, size_t at);

#endif
