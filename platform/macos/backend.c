/* backend.c - seatbelt, the sandbox of macOS: explains plans. It cannot run
 * them: nothing here has ever been loaded on a Mac. */
#include "platform/macos/sbpl.h"

const struct zb_backend zb_backend_seatbelt = {
	.name = "seatbelt",
	.render = zb_sbpl_render,
	.rules = zb_sbpl_rules,
};
