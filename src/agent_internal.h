/* agent_internal.h - what agent.c (members), agent_calls.c (calls) and
 * agent_panel.c (the panel) share. */
#ifndef ZB_AGENT_INTERNAL_H
#define ZB_AGENT_INTERNAL_H

#include "agent.h"

struct member {
	struct zb_member pub;
	struct zb_agent *a;
	size_t index;
	struct zb_target target;
	char *name;
	struct zb_strv guarded; /* events it must not be missing for */
	uv_timer_t quiet, ready, stop;
	uint64_t spawned;
	bool reload; /* start again when it has stopped */
	bool died;   /* before it was asked to stop */
	bool stuck, silence_said;
	bool cancels; /* wants to be told of calls that are given up */
	/* That time is up, but for one more look at what it wrote. */
	bool quiet_looked, ready_looked;
	unsigned long long dropped;
};

struct call;

struct zb_agent {
	struct zb_agent_config cfg;
	struct member **members;
	size_t n;
	struct zb_registry registry;
	struct call *calls;
	struct member *panel_of; /* whose panel is open, NULL: none is */
	char *panel_id;
	unsigned timers; /* handles whose close is awaited */
	bool begun, settled, started, closing, freed, paused;
};

/* Text to the log of @m and to the user. */
void zb_agent_tell(struct member *m, const char *fmt, ...) ZB_PRINTF(2, 3);
/* Send; a full queue is said once and what it costs is counted. Return: as
 * zb_extension_send(). @what names the loss. */
int zb_agent_send(struct member *m, const struct zb_buf *frame,
		  const char *what);
bool zb_agent_running(const struct member *m);
/* Late tools are in sight from now on. */
void zb_agent_bring_late(struct zb_agent *a);

/* ---- agent_calls.c ---- */

/* A reply of @m. */
void zb_agent_take_reply(struct member *m, const char *line, size_t len);
/* @m ended or is being replaced: what waits for it gets @how. */
void zb_agent_end_calls(struct member *m, enum zb_reply how);

/* ---- agent_panel.c ---- */

/* @m opened it (or again). */
void zb_agent_open_panel(struct member *m, const char *id);
/* @m closed it. Return: it was the one that is open. */
bool zb_agent_panel_closed(struct member *m, const char *id);
/* @m is over; so is its panel. */
void zb_agent_end_panel(struct member *m);

#endif
