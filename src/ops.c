/* ops.c - the spellings of the closed lists. */
#include "ops.h"

#include <string.h>

static const char *const op_names[] = {
	[ZB_OP_FS_READ] = "fs.read",
	[ZB_OP_FS_WRITE] = "fs.write",
	[ZB_OP_FS_CREATE] = "fs.create",
	[ZB_OP_FS_DELETE] = "fs.delete",
	[ZB_OP_FS_RENAME] = "fs.rename",
	[ZB_OP_FS_EXEC] = "fs.exec",
	[ZB_OP_FS_META] = "fs.meta",
	[ZB_OP_NET_CONNECT] = "net.connect",
	[ZB_OP_NET_LISTEN] = "net.listen",
	[ZB_OP_NET_DNS] = "net.dns",
	[ZB_OP_NET_UNIX] = "net.unix",
	[ZB_OP_SYSCALL] = "syscall",
	[ZB_OP_ENV] = "env",
	[ZB_OP_PROTO] = "proto",
	[ZB_OP_LIMIT] = "limit",
	[ZB_OP_INTEGRITY] = "integrity",
	[ZB_OP_HELLO] = "hello",
};
_Static_assert(sizeof(op_names) / sizeof(op_names[0]) == ZB_OP_COUNT,
	       "a name for every operation");

static const char *const decider_names[] = {
	"broker", "seccomp", "mediator", "limit", "lock", "plan",
};
_Static_assert(sizeof(decider_names) / sizeof(decider_names[0]) == ZB_BY_COUNT,
	       "a name for every decider");

static const char *const floor_names[] = {
	"none", "mount", "landlock", "seccomp", "netns",
};
_Static_assert(sizeof(floor_names) / sizeof(floor_names[0]) == ZB_FLOOR_COUNT,
	       "a name for every floor");

static const char *const evidence_names[] = {"decided", "observed", "inferred"};
_Static_assert(sizeof(evidence_names) / sizeof(evidence_names[0]) ==
		       ZB_EV_COUNT,
	       "a name for every grade");

const char *zb_op_name(enum zb_op op)
{
	return (unsigned)op < ZB_OP_COUNT ? op_names[op] : "unknown";
}

const char *zb_decider_name(enum zb_decider by)
{
	return (unsigned)by < ZB_BY_COUNT ? decider_names[by] : "unknown";
}

const char *zb_floor_name(enum zb_floor floor)
{
	return (unsigned)floor < ZB_FLOOR_COUNT ? floor_names[floor]
						: "unknown";
}

const char *zb_evidence_name(enum zb_evidence ev)
{
	return (unsigned)ev < ZB_EV_COUNT ? evidence_names[ev] : "unknown";
}

const char *zb_ledger_mode_name(enum zb_ledger_mode mode)
{
	static const char *const names[] = {"open", "writes", "full"};

	return (unsigned)mode < sizeof(names) / sizeof(names[0]) ? names[mode]
								 : "unknown";
}

bool zb_op_from_name(const char *name, enum zb_op *out)
{
	for (unsigned i = 0; i < ZB_OP_COUNT; i++)
		if (!strcmp(op_names[i], name)) {
			*out = (enum zb_op)i;
			return true;
		}
	return false;
}
