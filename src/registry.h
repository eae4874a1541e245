/* registry.h - what a host knows of all its extensions together: commands and
 * tools, who has which name, which tools the model may see. Pure.
 *
 * Precedence is load order (the order of zb_registry_add), not arrival: an
 * extension that is quick gains nothing. Command names are compared under
 * case folding, built-in names of the host come first. Members that ended
 * have no names; what they shadowed comes back. */
#ifndef ZB_REGISTRY_H
#define ZB_REGISTRY_H

#include "buf.h"

struct zb_reg_command {
	char *name, *description;
};

struct zb_reg_tool {
	char *name, *description;
	char *schema; /* JSON text; "{}" if absent */
	bool deferred;
	bool active;	    /* a deferred one was activated */
	char *activated_by; /* id of the result that did so first, or NULL */
	bool late; /* registered after ready: waits for the next turn */
};

struct zb_reg_member {
	char *name;
	struct zb_reg_command *commands;
	struct zb_reg_tool *tools;
	size_t n_commands, n_tools;
	bool gone;
};

struct zb_registry {
	struct zb_reg_member *members;
	size_t n;
	/* Of the host, besides those that zot has: folded, as zot's are. */
	struct zb_strv builtin_commands, builtin_tools;
};

enum zb_reg_state {
	ZB_REG_ACTIVE,
	ZB_REG_SHADOWED, /* by an extension before it: *by */
	ZB_REG_BUILTIN,	 /* the host's own name */
	ZB_REG_DEFERRED, /* tools: not activated yet */
	ZB_REG_LATE,	 /* tools: from the next turn on */
};

/* Append a member; its index is n - 1. Return: 0 or ZB_ELIMIT. */
int zb_registry_add(struct zb_registry *r, const char *name);
/* Names that the host has for itself; they replace those given before. */
int zb_registry_reserve(struct zb_registry *r, const struct zb_strv *commands,
			const struct zb_strv *tools);
/* It starts (again): forget its registrations. */
void zb_registry_clear(struct zb_registry *r, size_t member);
/* It ended. */
void zb_registry_end(struct zb_registry *r, size_t member);
void zb_registry_done(struct zb_registry *r);

/* A frame of @member that passed its mediator. register_command,
 * register_tool and the activate_tools of a tool_result are taken, others
 * ignored. @late: it is ready already. Lines for its log go to @log; who
 * shadows whom is not among them before it is ready: others may yet come. */
int zb_registry_take(struct zb_registry *r, size_t member, const char *line,
		     size_t len, bool late, struct zb_strv *log);
/* Lines for the log of @member: what of its names others have. */
void zb_registry_shadows(const struct zb_registry *r, size_t member,
			 struct zb_strv *log);
/* A turn ended: late tools are seen from now on. */
void zb_registry_turn(struct zb_registry *r);
void zb_registry_turn_of(struct zb_registry *r, size_t member);
/* How many tools of @member the model may call now. */
size_t zb_registry_active_tools(const struct zb_registry *r, size_t member);

enum zb_reg_state zb_registry_command_state(const struct zb_registry *r,
					    size_t member, size_t i,
					    size_t *by);
enum zb_reg_state zb_registry_tool_state(const struct zb_registry *r,
					 size_t member, size_t i, size_t *by);
/* Who answers to command / tool @name: index of the member and of its entry.
 * Return: false with *@state saying why: ZB_REG_BUILTIN, ZB_REG_DEFERRED,
 * ZB_REG_LATE, or ZB_REG_SHADOWED for "nobody has it". */
bool zb_registry_command(const struct zb_registry *r, const char *name,
			 size_t *member, size_t *i, enum zb_reg_state *state);
bool zb_registry_tool(const struct zb_registry *r, const char *name,
		      size_t *member, size_t *i, enum zb_reg_state *state);
/* Who had the name and ended? */
bool zb_registry_lost(const struct zb_registry *r, bool tool, const char *name,
		      size_t *member);

#endif
