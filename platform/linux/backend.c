/* backend.c - the Linux backend: bubblewrap, Landlock, seccomp, a broker. */
#include "config.h"

#include "platform/linux/bwrap_args.h"
#include "platform/linux/driver.h"
#include "platform/linux/probe.h"

const struct zb_backend zb_backend_bubblewrap = {
	.name = "bubblewrap",
	.render = zb_bwrap_render,
	.rules = zb_bwrap_rules,
	.call = zb_bwrap_call,
	.look = zb_probe_look,
	.probe = zb_probe,
	.spawn = zb_driver_spawn,
	.stop = zb_driver_stop,
	.pid = zb_driver_pid,
	.signal = zb_driver_signal,
	.reap = zb_driver_reap,
};
