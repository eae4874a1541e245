/* stage.h - what the driver and zotbox-stage say to each other.
 *
 * The driver writes one configuration (a memfd) before it starts bwrap; the
 * stage maps it privately. Everything in it is an offset from its start, so it
 * is checked once and then used in place. After that the two talk over one
 * SOCK_SEQPACKET pair: struct zb_stage_msg one way, single bytes the other.
 *
 * Both ends come from the same build (the stage is embedded in the program),
 * so there is no version to negotiate; @magic only catches a mix-up. */
#ifndef ZB_STAGE_H
#define ZB_STAGE_H

#include <stdint.h>

#define ZB_STAGE_MAGIC	  0x7a625347u
#define ZB_STAGE_RLIMITS  8
#define ZB_STAGE_CONF_MAX (64u << 20)

enum {
	ZB_STAGE_LANDLOCK = 1,	 /* restrict by @rules; else left out */
	ZB_STAGE_SECCOMP = 2,	 /* load @filter with a listener */
	ZB_STAGE_KILLABLE = 4,	 /* ... with WAIT_KILLABLE_RECV */
	ZB_STAGE_NO_CAPS = 8,	 /* refuse to go on with any capability */
	ZB_STAGE_SELF_TEST = 16, /* no program: see zb_stage_self_test */
};

/* A mount that must be the planned one: @dev and @ino are the source's as the
 * driver saw them. */
struct zb_stage_mount {
	uint32_t path;
	uint32_t read_only; /* must the mount refuse writes? */
	uint64_t dev, ino;
};

enum {
	ZB_STAGE_RULE_DIR = 1,	    /* on nothing but a directory */
	ZB_STAGE_RULE_OPTIONAL = 2, /* absent, a link, of another kind: skip */
};

struct zb_stage_rule {
	uint32_t path;
	uint32_t flags;
	uint64_t access;
};

struct zb_stage_rlimit {
	uint64_t resource, soft, hard;
};

struct zb_stage_config {
	uint32_t magic, size;
	uint32_t flags;
	int32_t stdio[3]; /* descriptor numbers of the program's 0, 1, 2 */
	uint32_t n_rlimits, n_mounts, n_rules, n_filter;
	uint32_t mounts, rules, filter; /* arrays; filter: struct sock_filter */
	uint32_t exec;			/* path handed to execve */
	uint32_t argv, envp; /* arrays of uint64_t offsets, ended by 0,
				made into pointers in place */
	uint64_t ll_fs, ll_net, ll_scoped;
	struct zb_stage_rlimit rlimits[ZB_STAGE_RLIMITS];
};

enum zb_stage_type {
	ZB_STAGE_READY = 1, /* carries listener (if any) and O_PATH of / */
	ZB_STAGE_CHILD,	    /* sent by the program's process, which waits */
	ZB_STAGE_STARTED,   /* execve worked */
	ZB_STAGE_EXITED,    /* @value: wait status of the first process */
	ZB_STAGE_FAILED,    /* @text: what, @value: errno or 0, @code */
	ZB_STAGE_TESTED,    /* self test: @text is what was read */
};

struct zb_stage_msg {
	uint32_t type;
	int32_t code; /* FAILED: enum zb_code */
	int32_t value;
	char text[500];
};

/* Self test: instead of the program, the child opens this path, reads what
 * the driver injected, and sends it back. */
#define ZB_STAGE_TEST_PATH "/zotbox/self-test"

/* Driver to stage. */
#define ZB_STAGE_GO 'g'

#endif
