/* backend.c - AppContainer, the sandbox of Windows: explains plans. It cannot
 * run them: there is no launcher, and no Windows has seen one. */
#include "platform/windows/appcontainer.h"

const struct zb_backend zb_backend_appcontainer = {
	.name = "appcontainer",
	.render = zb_appcontainer_render,
	.rules = zb_appcontainer_rules,
};
