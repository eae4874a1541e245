/* ext_kit.h - what the tests of running extensions share: a prepared start
 * without any file, and looks at the logs. ext_kit.c has zb_prepare() and
 * zb_prepared_done() of its own: what the wishes say is what is prepared. */
#ifndef EXT_KIT_H
#define EXT_KIT_H

#include "prepare.h"
#include "tmphome.h"

/* The protocol and limits of policy strict, less the waits. */
#define KIT_STRICT                                                             \
	"\"protocol\":{\"commands\":true,\"tools\":true,\"deferred\":true,"    \
	"\"panels\":true,\"notify\":true,\"prompt\":true,\"insert\":true,"     \
	"\"submit\":false,\"slash\":false,\"call_tool\":[],"                   \
	"\"events\":[\"turn_end\",\"session_start\",\"tool_call\"],"           \
	"\"event_content\":true,\"intercept\":{\"tool_call\":[\"block\","      \
	"\"modify:x\"],\"assistant_message\":[\"replace\",\"block\"]},"        \
	"\"on_failure\":\"%s\"},"                                              \
	"\"limits\":{\"hello_seconds\":%u,\"tool_seconds\":%u,"                \
	"\"command_seconds\":1,\"intercept_seconds\":1,"                       \
	"\"frames_per_second\":100000}"

struct kit_wish {
	const char *name;
	bool block;			      /* on_failure */
	unsigned hello_seconds, tool_seconds; /* 0: 30 */
};

/* Fill @out for a start under the fake backend. */
void kit_prepare(struct zb_prepared *out, const char *dir,
		 const struct kit_wish *wish);
/* What zb_prepare() gives for that name from now on; the wish is borrowed.
 * Any other name is refused with ZB_EPOLICY. */
void kit_wish(const char *dir, const struct kit_wish *wish);
void kit_forget(void);

/* Text of logs/ext-NAME.log (or the ledger, with @suffix). Heap. */
static inline char *kit_log(const char *dir, const char *name,
			    const char *suffix)
{
	char *path = zb_strf("%s/logs/ext-%s.%s", dir, name, suffix);
	struct zb_buf b = {0};
	FILE *f = fopen(path, "r");
	char buf[4096];
	size_t n;

	while (f && (n = fread(buf, 1, sizeof(buf), f)) > 0)
		zb_buf_add(&b, buf, n);
	if (f)
		fclose(f);
	free(path);
	if (!b.len)
		zb_buf_adds(&b, "");
	return zb_buf_steal(&b);
}

static inline void kit_expect_log(const char *dir, const char *name,
				  const char *suffix, const char *part)
{
	char *text = kit_log(dir, name, suffix);

	if (!strstr(text, part))
		fail_msg("log of %s lacks \"%s\":\n%s", name, part, text);
	free(text);
}

#endif
