/* golden.c - a plan as each system gets it, against a file in this folder. */
#include "golden.h"

#include "cleanup.h"
#include "enforce.h"
#include "platform/linux/bwrap_args.h"
#include "platform/macos/sbpl.h"
#include "platform/windows/appcontainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *name;
	int (*render)(const struct zb_plan *plan, struct zb_buf *out,
		      struct zb_error *err);
	int (*rules)(const struct zb_plan *plan, struct zb_rule_status **out,
		     size_t *n, struct zb_error *err);
} systems[] = {
	{"linux", zb_bwrap_render, zb_bwrap_rules},
	{"macos", zb_sbpl_render, zb_sbpl_rules},
	{"windows", zb_appcontainer_render, zb_appcontainer_rules},
};

static char *golden_path(const char *plan, const char *system)
{
	const char *src = getenv("ZB_SRC");

	return zb_strf("%s/tests/golden/%s.%s", src ? src : ".", plan, system);
}

static void read_file(const char *path, struct zb_buf *out)
{
	zb_auto(file) FILE *f = fopen(path, "r");
	char chunk[4096];
	size_t n;

	while (f && (n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		zb_buf_add(out, chunk, n);
}

static void write_file(const char *path, const struct zb_buf *b)
{
	zb_auto(file) FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(b->data, 1, b->len, f), b->len);
}

/* The text that is compared: what is rendered, then each rule with how. */
void golden_text(const struct zb_plan *plan, size_t s, struct zb_buf *out)
{
	struct zb_rule_status *v = NULL;
	struct zb_error err = {0};
	size_t n = 0;
	bool any = false;
	int rc = systems[s].render(plan, out, &err);

	if (rc)
		fail_msg("%s: %s", systems[s].name, err.msg);
	rc = systems[s].rules(plan, &v, &n, &err);
	zb_buf_adds(out, "\n==== rules\n");
	for (size_t i = 0; i < n; i++) {
		zb_buf_addf(out, "%s: %s: %s\n", v[i].rule,
			    zb_enforced_name(v[i].how), v[i].by);
		any |= v[i].how == ZB_NOT_ENFORCEABLE;
	}
	zb_rule_statuses_done(v, n);
	if (rc)
		zb_buf_addf(out, "==== refused\n%s\n", err.msg);
	/* One rule that cannot be enforced refuses the start, none does not. */
	assert_int_equal(rc, any ? ZB_EUNSUPPORTED : 0);
	assert_false(out->failed);
}

static void first_difference(const char *name, const char *is,
			     const char *should)
{
	size_t line = 1;

	while (*is && *is == *should) {
		line += *is == '\n';
		is++;
		should++;
	}
	fail_msg("%s: line %zu differs: \"%.60s\", not \"%.60s\" (ZB_UPDATE=1 "
		 "writes the file anew)",
		 name, line, is, should);
}

int golden_render(const struct zb_plan *plan, size_t s, struct zb_buf *out,
		  struct zb_error *err)
{
	return systems[s].render(plan, out, err);
}

void golden_compare(const struct zb_plan *plan, const char *name)
{
	const char *update = getenv("ZB_UPDATE");

	for (size_t s = 0; s < GOLDEN_SYSTEMS; s++) {
		zb_auto(free) char *path = golden_path(name, systems[s].name);
		struct zb_buf is = {0}, should = {0};

		golden_text(plan, s, &is);
		if (update && *update)
			write_file(path, &is);
		read_file(path, &should);
		if (strcmp(zb_buf_str(&is), zb_buf_str(&should)) != 0)
			first_difference(path, zb_buf_str(&is),
					 zb_buf_str(&should));
		zb_buf_done(&is);
		zb_buf_done(&should);
	}
}
