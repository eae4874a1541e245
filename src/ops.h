/* ops.h - the closed lists that policy, broker, mediator, ledger and doctor
 * share: operations, who decided, what floor stood behind, how sure it is. */
#ifndef ZB_OPS_H
#define ZB_OPS_H

#include <stdbool.h>

/* What an extension tried. zb_op_name() gives the ledger's spelling. */
enum zb_op {
	ZB_OP_FS_READ,
	ZB_OP_FS_WRITE,
	ZB_OP_FS_CREATE,
	ZB_OP_FS_DELETE,
	ZB_OP_FS_RENAME,
	ZB_OP_FS_EXEC,
	ZB_OP_FS_META, /* chmod, chown, utime, xattr */
	ZB_OP_NET_CONNECT,
	ZB_OP_NET_LISTEN,
	ZB_OP_NET_DNS,
	ZB_OP_NET_UNIX,
	ZB_OP_SYSCALL,
	ZB_OP_ENV,
	ZB_OP_PROTO, /* shown as proto.VERB */
	ZB_OP_LIMIT, /* shown as limit.NAME */
	ZB_OP_INTEGRITY,
	ZB_OP_HELLO,
	ZB_OP_COUNT
};

enum zb_decider {
	ZB_BY_BROKER,
	ZB_BY_SECCOMP,
	ZB_BY_MEDIATOR,
	ZB_BY_LIMIT,
	ZB_BY_LOCK,
	ZB_BY_PLAN,
	ZB_BY_COUNT
};

/* What would have refused, had the decider not. */
enum zb_floor {
	ZB_FLOOR_NONE,
	ZB_FLOOR_MOUNT,
	ZB_FLOOR_LANDLOCK,
	ZB_FLOOR_SECCOMP,
	ZB_FLOOR_NETNS,
	ZB_FLOOR_COUNT
};

enum zb_evidence {
	ZB_EV_DECIDED,
	ZB_EV_OBSERVED,
	ZB_EV_INFERRED,
	ZB_EV_COUNT
};

/* Which watched calls leave a record. */
enum zb_ledger_mode {
	ZB_LEDGER_OPEN,
	ZB_LEDGER_WRITES,
	ZB_LEDGER_FULL
};

/* Static strings: "fs.read", "broker", "mount", "decided", "open". */
const char *zb_op_name(enum zb_op op);
const char *zb_decider_name(enum zb_decider by);
const char *zb_floor_name(enum zb_floor floor);
const char *zb_evidence_name(enum zb_evidence ev);
const char *zb_ledger_mode_name(enum zb_ledger_mode mode);
/* Exact spelling to value. Return: false for an unknown one. */
bool zb_op_from_name(const char *name, enum zb_op *out);

#endif
