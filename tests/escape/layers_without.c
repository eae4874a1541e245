/* layers_without.c - one layer taken out (-DWITHOUT_netns=1...): linked into a
 * program of the suite in place of src/layers.c, to show that an
 * attempt then succeeds. Never part of what is installed. */
#include "config.h"

#include "layers.h"

#ifndef WITHOUT_mounts
#define WITHOUT_mounts 0
#endif
#ifndef WITHOUT_landlock
#define WITHOUT_landlock 0
#endif
#ifndef WITHOUT_seccomp
#define WITHOUT_seccomp 0
#endif
#ifndef WITHOUT_netns
#define WITHOUT_netns 0
#endif
#ifndef WITHOUT_caps
#define WITHOUT_caps 0
#endif
#ifndef WITHOUT_mediator
#define WITHOUT_mediator 0
#endif

const struct zb_layers zb_layers = {
	.mounts = !WITHOUT_mounts,
	.landlock = !WITHOUT_landlock,
	.seccomp = !WITHOUT_seccomp,
	.netns = !WITHOUT_netns,
	.caps = !WITHOUT_caps,
	.mediator = !WITHOUT_mediator,
};
