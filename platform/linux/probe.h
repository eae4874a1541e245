/* probe.h - can this host build the sandbox? Found by doing it. */
#ifndef ZB_PROBE_H
#define ZB_PROBE_H

#include "backend.h"

/* What a start needs to know, without starting anything: where bwrap is,
 * which Landlock ABI and which seccomp features the kernel has. Some
 * microseconds. Return and @out as backend.h's probe. */
int zb_probe_look(struct zb_host *out, struct zb_error *err);

/* All of it: bwrap's version, and a self test through the launch path of
 * extensions - a sandbox is made, a call of a process in it is received, its
 * memory read, a descriptor injected. What fails is taken apart step by step.
 * Main thread only. */
int zb_probe(struct zb_host *out, struct zb_error *err);

/* A launch failed with @err (ZB_EUNSUPPORTED, bwrap's words): probe the host
 * and put causes and remedies behind them. A host that passes leaves the
 * words alone and makes it ZB_ESYS: then it was something about this plan.
 * Return: the code. */
int zb_probe_explain(const struct zb_host *host, struct zb_error *err);

#endif
