/* call_names.c - what the filter makes of a system call, by its name; from the
 * lists that the filter itself is made from. */
#include "platform/linux/bwrap_args.h"

#include <string.h>

#define ZB_WATCH(name, when)
#define ZB_REFUSE(name) #name,
static const char *const refused[] = {
#include "platform/linux/watched.def"
};
#undef ZB_WATCH
#undef ZB_REFUSE
#define ZB_WATCH(name, when) #name,
#define ZB_REFUSE(name)
static const char *const watched[] = {
#include "platform/linux/watched.def"
};
#undef ZB_WATCH
#undef ZB_REFUSE
#define ZB_ALLOW(name) #name,
static const char *const allowed[] = {
#include "platform/linux/allowed.def"
};
#undef ZB_ALLOW

static bool has(const char *const *list, size_t n, const char *name)
{
	while (n--)
		if (!strcmp(list[n], name))
			return true;
	return false;
}

enum zb_call_fate zb_bwrap_call(const char *name)
{
#define HAS(list) has(list, sizeof(list) / sizeof(list[0]), name)
	if (HAS(refused))
		return ZB_CALL_REFUSED;
	if (HAS(watched))
		return ZB_CALL_JUDGED;
	return HAS(allowed) ? ZB_CALL_PASSES : ZB_CALL_ABSENT;
#undef HAS
}
