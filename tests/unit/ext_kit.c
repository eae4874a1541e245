/* ext_kit.c - see ext_kit.h. */
#include "ext_kit.h"

#include "cleanup.h"

#define MAX_WISHES 16

static const struct kit_wish *wishes[MAX_WISHES];
static const char *where;
static size_t n_wishes;

void kit_prepare(struct zb_prepared *out, const char *dir,
		 const struct kit_wish *wish)
{
	struct zb_error err = {0};
	char *text = zb_strf("{\"zotbox\":1," KIT_STRICT "}",
			     wish->block ? "block" : "allow",
			     wish->hello_seconds ? wish->hello_seconds : 30,
			     wish->tool_seconds ? wish->tool_seconds : 30);

	memset(out, 0, sizeof(*out));
	if (zb_scope_parse(&out->plan.scope, "test.json", text, strlen(text),
			   NULL, &err))
		fail_msg("%s", err.msg);
	free(text);
	out->manifest.name = zb_strdup(wish->name);
	out->manifest.version = zb_strdup("1.0.0");
	out->plan.name = zb_strdup(wish->name);
	out->plan.base = zb_strdup("test");
	out->plan.home = zb_strdup(dir);
	out->plan.extension_dir = zb_strf("%s/%s", dir, wish->name);
	out->plan.data_dir = zb_strf("%s/data-%s", dir, wish->name);
	out->dir = zb_strdup(out->plan.extension_dir);
	out->policy = zb_strdup("test");
	for (size_t i = 0; i < ZB_ARRAY_LEN(out->lock_fds); i++)
		out->lock_fds[i] = -1;
}

void kit_wish(const char *dir, const struct kit_wish *wish)
{
	where = dir;
	wishes[n_wishes++] = wish;
}

void kit_forget(void)
{
	n_wishes = 0;
}

char *zb_target_log(const struct zb_target *t)
{
	const char *slash = t->path ? strrchr(t->path, '/') : NULL;

	return zb_strdup(t->name ? t->name : slash ? slash + 1 : t->path);
}

int zb_prepare(struct zb_prepared *out, const struct zb_store *store,
	       const struct zb_target *target, struct zb_error *err)
{
	(void)store;
	for (size_t i = 0; i < n_wishes; i++)
		if (!strcmp(wishes[i]->name, target->name)) {
			kit_prepare(out, where, wishes[i]);
			return 0;
		}
	return zb_fail(err, ZB_EPOLICY, "no extension \"%s\" is installed",
		       target->name);
}

void zb_prepared_started(struct zb_prepared *p)
{
	(void)p;
}

void zb_prepared_done(struct zb_prepared *p)
{
	zb_manifest_done(&p->manifest);
	zb_plan_done(&p->plan);
	free(p->dir);
	free(p->box);
	free(p->policy);
	zb_strv_done(&p->changed);
	zb_strv_done(&p->requested);
	memset(p, 0, sizeof(*p));
}
