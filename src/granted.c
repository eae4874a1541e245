/* granted.c - the list of names and places, and its file. */
#include "granted.h"

#include "cleanup.h"
#include "json_scan.h"

#include <stdlib.h>
#include <string.h>

static void path_done(struct zb_granted_path *p)
{
	free(p->key);
	free(p->path);
	free(p->real);
}

void zb_granted_done(struct zb_granted *g)
{
	for (size_t i = 0; i < g->n; i++)
		path_done(&g->v[i]);
	free(g->v);
	*g = (struct zb_granted){0};
}

static struct zb_granted_path *find(const struct zb_granted *g, const char *key,
				    const char *path)
{
	for (size_t i = 0; i < g->n; i++)
		if (!strcmp(g->v[i].path, path) && !strcmp(g->v[i].key, key))
			return &g->v[i];
	return NULL;
}

const char *zb_granted_real(const struct zb_granted *g, const char *key,
			    const char *path)
{
	const struct zb_granted_path *p = find(g, key, path);

	return p ? p->real : NULL;
}

static int make_room(struct zb_granted *g)
{
	size_t cap = g->cap ? g->cap * 2 : 16;
	struct zb_granted_path *v;

	if (g->n >= ZB_GRANTED_MAX)
		return ZB_ELIMIT;
	if (g->n < g->cap)
		return 0;
	v = realloc(g->v, cap * sizeof(*v));
	if (!v)
		return ZB_ELIMIT;
	g->v = v;
	g->cap = cap;
	return 0;
}

int zb_granted_set(struct zb_granted *g, const char *key, const char *path,
		   const char *real)
{
	struct zb_granted_path *was = find(g, key, path);
	struct zb_granted_path one = {
		.key = zb_strdup(key),
		.path = zb_strdup(path),
		.real = zb_strdup(real),
	};

	if (!one.key || !one.path || !one.real || (!was && make_room(g))) {
		path_done(&one);
		return ZB_ELIMIT;
	}
	if (was)
		path_done(was);
	else
		was = &g->v[g->n++];
	*was = one;
	return 0;
}

int zb_granted_merge(struct zb_granted *base, const struct zb_granted *over,
		     bool *changed)
{
	*changed = false;
	for (size_t i = 0; i < over->n; i++) {
		const struct zb_granted_path *p = &over->v[i];
		const char *was = zb_granted_real(base, p->key, p->path);

		if (was && !strcmp(was, p->real))
			continue;
		*changed = true;
		if (!was && base->n >= ZB_GRANTED_MAX) {
			zb_granted_done(base);
			i = (size_t)-1; /* from the first one again */
			continue;
		}
		if (zb_granted_set(base, p->key, p->path, p->real))
			return ZB_ELIMIT;
	}
	return 0;
}

/* ---- the file ------------------------------------------------------------ */

static void add_member(struct zb_buf *b, const char *key, const char *value)
{
	zb_buf_addf(b, "\"%s\":", key);
	zb_json_quote(b, value, strlen(value));
}

int zb_granted_text(const struct zb_granted *g, struct zb_buf *out)
{
	zb_buf_adds(out, "{\n  \"zotbox_granted\": 1,\n  \"paths\": [");
	for (size_t i = 0; i < g->n; i++) {
		zb_buf_adds(out, i ? ",\n    {" : "\n    {");
		add_member(out, "key", g->v[i].key);
		zb_buf_addc(out, ',');
		add_member(out, "path", g->v[i].path);
		zb_buf_addc(out, ',');
		add_member(out, "real", g->v[i].real);
		zb_buf_addc(out, '}');
	}
	zb_buf_adds(out, g->n ? "\n  ]\n}\n" : "]\n}\n");
	return out->failed ? ZB_ELIMIT : 0;
}

static char *member(const struct zb_json *j, uint32_t obj, const char *key)
{
	uint32_t t = zb_json_get(j, obj, key);

	return t == ZB_JSON_NONE ? NULL : zb_json_dup_string(j, t);
}

static bool read_one(struct zb_granted *g, const struct zb_json *j, uint32_t t)
{
	zb_auto(free) char *key = NULL;
	zb_auto(free) char *path = NULL;
	zb_auto(free) char *real = NULL;

	if (j->tok[t].type != ZB_JSON_OBJECT)
		return false;
	key = member(j, t, "key");
	path = member(j, t, "path");
	real = member(j, t, "real");
	/* Said twice, which of them would count? */
	return key && path && real && !find(g, key, path) &&
	       !zb_granted_set(g, key, path, real);
}

static bool read_all(struct zb_granted *g, const struct zb_json *j)
{
	uint32_t version, paths, t;
	int64_t v = 0;

	if (j->tok[0].type != ZB_JSON_OBJECT)
		return false;
	version = zb_json_get(j, 0, "zotbox_granted");
	paths = zb_json_get(j, 0, "paths");
	if (version == ZB_JSON_NONE || !zb_json_int(j, version, &v) || v != 1 ||
	    paths == ZB_JSON_NONE || j->tok[paths].type != ZB_JSON_ARRAY)
		return false;
	for (t = zb_json_first(j, paths); t != ZB_JSON_NONE;
	     t = zb_json_next(j, t))
		if (!read_one(g, j, t))
			return false;
	return true;
}

int zb_granted_parse(struct zb_granted *out, const char *file, const char *text,
		     size_t len, struct zb_error *err)
{
	struct zb_json json = {0};
	struct zb_json_fault fault = {0};
	struct zb_granted g = {0};
	int rc = 0;

	if (zb_json_scan(&json, text, len, NULL, &fault))
		rc = zb_fail(err, ZB_EUSAGE, "%s:%u:%u: %s", file, fault.line,
			     fault.column, fault.what);
	else if (!read_all(&g, &json))
		rc = zb_fail(err, ZB_EUSAGE,
			     "%s: this is no list of what was granted", file);
	zb_json_done(&json);
	if (rc)
		zb_granted_done(&g);
	*out = g;
	return rc;
}
