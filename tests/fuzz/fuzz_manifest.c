/* fuzz_manifest.c - extension.json: whatever is taken, the wrapped manifest
 * starts zotbox and nothing else, and hides nothing. */
#include "check.h"
#include "manifest.h"

#include <string.h>

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static void check_wrapped(const struct zb_manifest *m)
{
	struct zb_buf b = {0};
	struct zb_error e = {0};
	struct zb_manifest back;

	CHECK(!zb_manifest_wrap(&b, m, "/opt/a b/zotbox"));
	CHECK(!zb_manifest_parse(&back, b.data, b.len, !m->exec, &e));
	CHECK(!strcmp(back.name, m->name));
	CHECK(back.wrapped == (m->exec != NULL));
	CHECK(back.enabled == m->enabled);
	CHECK(same(back.version, m->version));
	CHECK(same(back.language, m->language));
	CHECK(same(back.description, m->description));
	CHECK(same(back.theme, m->theme));
	for (size_t at = 0, n; at < b.len; at += n + 1) {
		n = strcspn(b.data + at, "\n");
		CHECK(shows(b.data + at, n));
	}
	zb_manifest_done(&back);
	zb_buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;

	for (int theme = 0; theme < 2; theme++) {
		struct zb_manifest m;
		struct zb_error e = {0};
		int rc = zb_manifest_parse(&m, text, size, theme, &e);

		CHECK(!rc || (rc == ZB_EUSAGE && e.msg[0] &&
			      shows(e.msg, strlen(e.msg))));
		if (!rc) {
			CHECK(zb_name_valid(m.name));
			CHECK(m.exec || theme);
			CHECK(!m.description ||
			      shows(m.description, strlen(m.description)));
			check_wrapped(&m);
		}
		zb_manifest_done(&m);
	}
	return 0;
}
