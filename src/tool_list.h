/* tool_list.h - the same tools as different models' APIs want them. Pure. */
#ifndef ZB_TOOL_LIST_H
#define ZB_TOOL_LIST_H

#include "buf.h"

/* A tool that an extension has under its own name. */
struct zb_tool_row {
	const char *name, *description; /* description may be NULL */
	const char *schema;		/* JSON text */
	const char *extension;
	bool deferred; /* not shown at first */
	bool active;   /* the model may call it */
	/* Of a deferred one that is active: the id (JSON text) of the request
	 * whose result activated it; NULL: not known. */
	const char *activated_by;
};

/* ZOT: every row. The others: what the model may call. ANTHROPIC and OPENAI
 * give the whole list for the next request. KIMI keeps the list of the
 * beginning as it is, and what was activated later comes as messages, each to
 * be put behind the tool result that activated it. */
enum zb_tool_format {
	ZB_TOOLS_ZOT,
	ZB_TOOLS_ANTHROPIC,
	ZB_TOOLS_OPENAI,
	ZB_TOOLS_KIMI,
};

/* "zot" "anthropic" "openai" "kimi". Return: false for any other. */
bool zb_tool_format(const char *name, enum zb_tool_format *out);
/* Append a JSON object: {"tools":[...]}, for KIMI also
 * "placed":[{"after":ID,"message":{"role":"system","tools":[...]}}] in order
 * of @rows, one element an ID. Return: 0 or ZB_ELIMIT. */
int zb_tool_list(struct zb_buf *out, enum zb_tool_format format,
		 const struct zb_tool_row *rows, size_t n);

#endif
