/* layers.h - which layers of the floor are built in: all of them. A constant
 * in an object file of its own, so that the escape suite can link programs
 * with one layer taken out and show that an attempt then succeeds. The
 * shipped program has no variable or option that changes it. */
#ifndef ZB_LAYERS_H
#define ZB_LAYERS_H

#include <stdbool.h>

struct zb_layers {
	bool mounts; /* only planned places exist */
	bool landlock;
	bool seccomp; /* filter, listener and broker */
	bool netns;
	bool caps; /* --cap-drop ALL */
	bool mediator;
};

extern const struct zb_layers zb_layers;

#endif
