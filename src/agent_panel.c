/* agent_panel.c - the one panel that can be open.
 *
 * A panel has the keyboard, so there is one: of whatever extension, the last
 * one opened. The protocol knows no word for "yours is covered", and an
 * extension whose panel is open may wait for a key for as long as it likes (its
 * tool's clock stands still meanwhile). So another one whose panel gives way is
 * told what it would be told if the user had closed it. One that opens a second
 * panel itself knows, and is told nothing. */
#include "agent_internal.h"
#include "host_frames.h"

#include <stdlib.h>
#include <string.h>

static bool is_open(const struct member *m, const char *id)
{
	const struct zb_agent *a = m->a;

	return a->panel_of == m && (!id || !strcmp(a->panel_id, id));
}

/* Nothing is open any more. The id, which the caller frees. */
static char *forget(struct zb_agent *a)
{
	char *id = a->panel_id;

	a->panel_of = NULL;
	a->panel_id = NULL;
	return id;
}

static void send_close(struct member *m, const char *id)
{
	struct zb_buf frame = {0};

	zb_host_panel_close(&frame, id);
	zb_agent_send(m, &frame, "panel_close");
	zb_buf_done(&frame);
}

/* What is open goes without anybody having asked for that. */
static void take_away(struct zb_agent *a, bool tell)
{
	struct member *m = a->panel_of;
	char *id = forget(a);

	if (tell && zb_agent_running(m))
		send_close(m, id);
	if (a->cfg.ops->panel_gone)
		a->cfg.ops->panel_gone(a->cfg.ctx, m->index, id);
	free(id);
}

void zb_agent_open_panel(struct member *m, const char *id)
{
	struct zb_agent *a = m->a;
	char *copy;

	if (is_open(m, id))
		return;
	copy = zb_strdup(id);
	if (!copy)
		return;
	if (a->panel_of)
		take_away(a, a->panel_of != m);
	a->panel_of = m;
	a->panel_id = copy;
}

bool zb_agent_panel_closed(struct member *m, const char *id)
{
	if (!is_open(m, id))
		return false;
	free(forget(m->a));
	return true;
}

void zb_agent_end_panel(struct member *m)
{
	if (is_open(m, NULL))
		take_away(m->a, false);
}

/* ---- the caller's side ---- */

size_t zb_agent_panel(const struct zb_agent *a, const char **id)
{
	if (!a->panel_of)
		return ZB_NOBODY;
	*id = a->panel_id;
	return a->panel_of->index;
}

/* Who has @panel open and can be told so; @member ZB_NOBODY: anybody. */
static struct member *holder(const struct zb_agent *a, size_t member,
			     const char *panel)
{
	struct member *m = a->panel_of;

	if (!m || !is_open(m, panel) || !zb_agent_running(m) ||
	    (member != ZB_NOBODY && member != m->index))
		return NULL;
	return m;
}

size_t zb_agent_member_key(struct zb_agent *a, size_t member, const char *panel,
			   const char *key, const char *text)
{
	struct member *m = holder(a, member, panel);
	struct zb_buf frame = {0};

	if (!m)
		return ZB_NOBODY;
	zb_host_panel_key(&frame, panel, key, text);
	zb_agent_send(m, &frame, "panel_key");
	zb_buf_done(&frame);
	return m->index;
}

size_t zb_agent_member_close(struct zb_agent *a, size_t member,
			     const char *panel)
{
	struct member *m = holder(a, member, panel);
	char *id;

	if (!m)
		return ZB_NOBODY;
	id = forget(a); /* @panel may be this */
	send_close(m, id);
	free(id);
	return m->index;
}

size_t zb_agent_panel_key(struct zb_agent *a, const char *panel,
			  const char *key, const char *text)
{
	return zb_agent_member_key(a, ZB_NOBODY, panel, key, text);
}

size_t zb_agent_panel_close(struct zb_agent *a, const char *panel)
{
	return zb_agent_member_close(a, ZB_NOBODY, panel);
}

size_t zb_agent_panel_resize(struct zb_agent *a, size_t member,
			     const char *panel, unsigned columns, unsigned rows)
{
	struct member *m = holder(a, member, panel);
	struct zb_buf frame = {0};

	if (!m)
		return ZB_NOBODY;
	zb_host_panel_resize(&frame, panel, columns, rows);
	zb_agent_send(m, &frame, "panel_resize");
	zb_buf_done(&frame);
	return m->index;
}
