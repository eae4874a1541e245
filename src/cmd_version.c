/* cmd_version.c - zotbox version. */
#include "cmd.h"
#include "config.h"

#include <string.h>

int zb_cmd_version(const struct zb_args *a)
{
	static const char text[] = PACKAGE_NAME " " PACKAGE_VERSION "\n";

	(void)a;
	return zb_cmd_out(text, strlen(text)) ? 1 : 0;
}
