/* registry.c - one name space over many extensions.
 *
 * Nothing is decided when a name arrives; who has it is worked out when it is
 * asked for, from load order and who is there. So the order in which parallel
 * starts happen to finish cannot matter, and an end needs no repair. */
#include "registry.h"
#include "cleanup.h"
#include "json_scan.h"
#include "proto.h"
#include "text.h"

#include <string.h>

#define MAX_ENTRIES 1024 /* the mediator's own bounds are lower */

int zb_registry_add(struct zb_registry *r, const char *name)
{
	struct zb_reg_member *v = realloc(r->members, (r->n + 1) * sizeof(*v));

	if (!v)
		return ZB_ELIMIT;
	r->members = v;
	v[r->n] = (struct zb_reg_member){.name = zb_strdup(name)};
	if (!v[r->n].name)
		return ZB_ELIMIT;
	r->n++;
	return 0;
}

void zb_registry_clear(struct zb_registry *r, size_t member)
{
	struct zb_reg_member *m = &r->members[member];

	for (size_t i = 0; i < m->n_commands; i++) {
		free(m->commands[i].name);
		free(m->commands[i].description);
	}
	for (size_t i = 0; i < m->n_tools; i++) {
		free(m->tools[i].name);
		free(m->tools[i].description);
		free(m->tools[i].schema);
		free(m->tools[i].activated_by);
	}
	free(m->commands);
	free(m->tools);
	*m = (struct zb_reg_member){.name = m->name};
}

void zb_registry_end(struct zb_registry *r, size_t member)
{
	r->members[member].gone = true;
}

void zb_registry_done(struct zb_registry *r)
{
	for (size_t i = 0; i < r->n; i++) {
		zb_registry_clear(r, i);
		free(r->members[i].name);
	}
	free(r->members);
	zb_strv_done(&r->builtin_commands);
	zb_strv_done(&r->builtin_tools);
	memset(r, 0, sizeof(*r));
}

int zb_registry_reserve(struct zb_registry *r, const struct zb_strv *commands,
			const struct zb_strv *tools)
{
	zb_strv_done(&r->builtin_commands);
	zb_strv_done(&r->builtin_tools);
	if (zb_strv_copy(&r->builtin_commands, commands) ||
	    zb_strv_copy(&r->builtin_tools, tools))
		return ZB_ELIMIT;
	return 0;
}

/* ---- taking frames ---- */

/* One frame at work. */
struct take {
	struct zb_registry *r;
	struct zb_reg_member *m;
	size_t member;
	const struct zb_json *j;
	bool late;
	struct zb_strv *log;
};

static char *string_of(const struct take *t, const char *key)
{
	uint32_t i = zb_json_get(t->j, 0, key);

	return i == ZB_JSON_NONE ? NULL : zb_json_dup_string(t->j, i);
}

static bool true_of(const struct take *t, const char *key)
{
	uint32_t i = zb_json_get(t->j, 0, key);

	return i != ZB_JSON_NONE && t->j->tok[i].type == ZB_JSON_TRUE;
}

static bool same_name(const char *a, const char *b)
{
	return zb_fold_equal(a, strlen(a), b, strlen(b));
}

static bool is_given(const struct zb_strv *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (same_name(list->v[i], name))
			return true;
	return false;
}

static bool builtin_command(const struct zb_registry *r, const char *name)
{
	return zb_command_is_builtin(name, strlen(name)) ||
	       is_given(&r->builtin_commands, name);
}

static bool builtin_tool(const struct zb_registry *r, const char *name)
{
	return zb_tool_is_builtin(name, strlen(name)) ||
	       is_given(&r->builtin_tools, name);
}

/* The spelling under which member @by has it. */
static const char *spelling(const struct zb_reg_member *by, const char *name)
{
	for (size_t i = 0; i < by->n_commands; i++)
		if (same_name(by->commands[i].name, name))
			return by->commands[i].name;
	return name;
}

static void log_state(const struct zb_registry *r, struct zb_strv *log,
		      const char *what, const char *name,
		      enum zb_reg_state state, size_t by)
{
	const struct zb_reg_member *first = &r->members[by];
	struct zb_buf shown = {0}, other = {0};

	zb_text_escape(&shown, name, strlen(name), 100);
	if (state == ZB_REG_BUILTIN) {
		zb_strv_addf(log, "%s \"%s\" is the host's own; ignored", what,
			     zb_buf_str(&shown));
	} else if (state == ZB_REG_SHADOWED) {
		name = spelling(first, name);
		zb_text_escape(&other, name, strlen(name), 100);
		zb_strv_addf(log,
			     "%s \"%s\" already registered by %s as \"%s\"; "
			     "ignored",
			     what, zb_buf_str(&shown), first->name,
			     zb_buf_str(&other));
	} else if (state == ZB_REG_LATE) {
		zb_strv_addf(log,
			     "register_%s \"%s\" after ready; takes effect "
			     "with the next turn",
			     what, zb_buf_str(&shown));
	}
	zb_buf_done(&shown);
	zb_buf_done(&other);
}

static void log_new(const struct take *t, const char *what, const char *name,
		    enum zb_reg_state state, size_t by)
{
	/* Of zot's own names the mediator has told. */
	if (state == ZB_REG_LATE || (state == ZB_REG_SHADOWED && t->late))
		log_state(t->r, t->log, what, name, state, by);
}

/* Worth a line once all are there? */
static bool is_lost(const struct zb_strv *given, const char *name,
		    enum zb_reg_state state)
{
	return state == ZB_REG_SHADOWED ||
	       (state == ZB_REG_BUILTIN && is_given(given, name));
}

void zb_registry_shadows(const struct zb_registry *r, size_t member,
			 struct zb_strv *log)
{
	const struct zb_reg_member *m = &r->members[member];
	enum zb_reg_state s;
	size_t by = 0;

	for (size_t i = 0; i < m->n_commands; i++) {
		const char *name = m->commands[i].name;

		s = zb_registry_command_state(r, member, i, &by);
		if (is_lost(&r->builtin_commands, name, s))
			log_state(r, log, "command", name, s, by);
	}
	for (size_t i = 0; i < m->n_tools; i++) {
		const char *name = m->tools[i].name;

		s = zb_registry_tool_state(r, member, i, &by);
		if (is_lost(&r->builtin_tools, name, s))
			log_state(r, log, "tool", name, s, by);
	}
}

static int take_command(const struct take *t)
{
	struct zb_reg_member *m = t->m;
	struct zb_reg_command *v, *c;
	zb_auto(free) char *name = string_of(t, "name");
	size_t by = 0;

	if (!name || m->n_commands >= MAX_ENTRIES)
		return 0;
	for (size_t i = 0; i < m->n_commands; i++)
		if (same_name(m->commands[i].name, name))
			return 0;
	v = realloc(m->commands, (m->n_commands + 1) * sizeof(*v));
	if (!v)
		return ZB_ELIMIT;
	m->commands = v;
	c = &v[m->n_commands++];
	c->name = zb_steal(&name);
	c->description = string_of(t, "description");
	log_new(t, "command", c->name,
		zb_registry_command_state(t->r, t->member, m->n_commands - 1,
					  &by),
		by);
	return 0;
}

static struct zb_reg_tool *own_tool(struct zb_reg_member *m, const char *name)
{
	for (size_t i = 0; i < m->n_tools; i++)
		if (!strcmp(m->tools[i].name, name))
			return &m->tools[i];
	return NULL;
}

static int take_tool(const struct take *t)
{
	struct zb_reg_member *m = t->m;
	struct zb_reg_tool *v, *tool;
	zb_auto(free) char *name = string_of(t, "name");
	uint32_t schema = zb_json_get(t->j, 0, "schema");
	uint32_t exposure = zb_json_get(t->j, 0, "exposure");
	size_t by = 0;

	if (!name || own_tool(m, name) || m->n_tools >= MAX_ENTRIES)
		return 0;
	v = realloc(m->tools, (m->n_tools + 1) * sizeof(*v));
	if (!v)
		return ZB_ELIMIT;
	m->tools = v;
	tool = &v[m->n_tools++];
	*tool = (struct zb_reg_tool){.name = zb_steal(&name), .late = t->late};
	tool->description = string_of(t, "description");
	tool->schema =
		schema == ZB_JSON_NONE
			? zb_strdup("{}")
			: zb_strndup(t->j->text + t->j->tok[schema].start,
				     t->j->tok[schema].end -
					     t->j->tok[schema].start);
	tool->deferred = true_of(t, "deferred") ||
			 (exposure != ZB_JSON_NONE &&
			  zb_json_is(t->j, exposure, "deferred"));
	log_new(t, "tool", tool->name,
		zb_registry_tool_state(t->r, t->member, m->n_tools - 1, &by),
		by);
	return 0;
}

/* Unknown names are ignored, as the protocol says. */
static void take_activation(const struct take *t)
{
	uint32_t list = zb_json_get(t->j, 0, "activate_tools");
	uint32_t i = list == ZB_JSON_NONE ? list : zb_json_first(t->j, list);

	for (; i != ZB_JSON_NONE; i = zb_json_next(t->j, i)) {
		zb_auto(free) char *name = zb_json_dup_string(t->j, i);
		struct zb_reg_tool *tool = name ? own_tool(t->m, name) : NULL;

		if (!tool || tool->active)
			continue;
		tool->active = true;
		tool->activated_by = string_of(t, "id");
	}
}

int zb_registry_take(struct zb_registry *r, size_t member, const char *line,
		     size_t len, bool late, struct zb_strv *log)
{
	static const struct zb_json_limits limits = {.index_depth = 2};
	struct zb_json j = {0};
	struct take t = {.r = r,
			 .m = &r->members[member],
			 .member = member,
			 .j = &j,
			 .late = late,
			 .log = log};
	uint32_t type;
	int rc = 0;

	if (zb_json_scan(&j, line, len, &limits, NULL))
		goto out;
	type = zb_json_get(&j, 0, "type");
	if (type == ZB_JSON_NONE)
		goto out;
	if (zb_json_is(&j, type, "register_command"))
		rc = take_command(&t);
	else if (zb_json_is(&j, type, "register_tool"))
		rc = take_tool(&t);
	else if (zb_json_is(&j, type, "tool_result"))
		take_activation(&t);
out:
	zb_json_done(&j);
	return rc;
}

void zb_registry_turn_of(struct zb_registry *r, size_t member)
{
	for (size_t i = 0; i < r->members[member].n_tools; i++)
		r->members[member].tools[i].late = false;
}

void zb_registry_turn(struct zb_registry *r)
{
	for (size_t m = 0; m < r->n; m++)
		zb_registry_turn_of(r, m);
}

size_t zb_registry_active_tools(const struct zb_registry *r, size_t member)
{
	size_t n = 0, by;

	if (r->members[member].gone)
		return 0;
	for (size_t i = 0; i < r->members[member].n_tools; i++)
		n += zb_registry_tool_state(r, member, i, &by) == ZB_REG_ACTIVE;
	return n;
}

/* ---- who has a name ---- */

enum zb_reg_state zb_registry_command_state(const struct zb_registry *r,
					    size_t member, size_t i, size_t *by)
{
	const char *name = r->members[member].commands[i].name;

	if (builtin_command(r, name))
		return ZB_REG_BUILTIN;
	for (size_t m = 0; m < member; m++)
		for (size_t k = 0; k < r->members[m].n_commands; k++)
			if (!r->members[m].gone &&
			    same_name(r->members[m].commands[k].name, name)) {
				*by = m;
				return ZB_REG_SHADOWED;
			}
	return ZB_REG_ACTIVE;
}

enum zb_reg_state zb_registry_tool_state(const struct zb_registry *r,
					 size_t member, size_t i, size_t *by)
{
	const struct zb_reg_tool *tool = &r->members[member].tools[i];

	if (builtin_tool(r, tool->name))
		return ZB_REG_BUILTIN;
	for (size_t m = 0; m < member; m++)
		if (!r->members[m].gone &&
		    own_tool(&r->members[m], tool->name)) {
			*by = m;
			return ZB_REG_SHADOWED;
		}
	if (tool->late)
		return ZB_REG_LATE;
	return tool->deferred && !tool->active ? ZB_REG_DEFERRED
					       : ZB_REG_ACTIVE;
}

bool zb_registry_command(const struct zb_registry *r, const char *name,
			 size_t *member, size_t *i, enum zb_reg_state *state)
{
	size_t by;

	*state = ZB_REG_SHADOWED;
	if (builtin_command(r, name))
		*state = ZB_REG_BUILTIN;
	for (size_t m = 0; m < r->n; m++)
		for (size_t k = 0; k < r->members[m].n_commands; k++) {
			if (r->members[m].gone ||
			    !same_name(r->members[m].commands[k].name, name) ||
			    zb_registry_command_state(r, m, k, &by) !=
				    ZB_REG_ACTIVE)
				continue;
			*member = m;
			*i = k;
			*state = ZB_REG_ACTIVE;
			return true;
		}
	return false;
}

bool zb_registry_tool(const struct zb_registry *r, const char *name,
		      size_t *member, size_t *i, enum zb_reg_state *state)
{
	size_t by;

	*state = ZB_REG_SHADOWED;
	if (builtin_tool(r, name))
		*state = ZB_REG_BUILTIN;
	for (size_t m = 0; m < r->n; m++)
		for (size_t k = 0; k < r->members[m].n_tools; k++) {
			enum zb_reg_state s;

			if (r->members[m].gone ||
			    strcmp(r->members[m].tools[k].name, name))
				continue;
			s = zb_registry_tool_state(r, m, k, &by);
			if (s == ZB_REG_SHADOWED)
				continue;
			*member = m;
			*i = k;
			*state = s;
			return s == ZB_REG_ACTIVE;
		}
	return false;
}

bool zb_registry_lost(const struct zb_registry *r, bool tool, const char *name,
		      size_t *member)
{
	for (size_t m = 0; m < r->n; m++) {
		struct zb_reg_member *mem = &r->members[m];
		bool had = tool && own_tool(mem, name);

		for (size_t k = 0; !tool && k < mem->n_commands; k++)
			had = had || same_name(mem->commands[k].name, name);
		if (!mem->gone || !had)
			continue;
		*member = m;
		return true;
	}
	return false;
}
