/* resolve_walk.c - following links, and adding places.
 *
 * No mount may stand on a symlink: newer bubblewrap refuses it, older ones
 * follow it inside the new root and cover another place than was meant. So
 * each path is walked component by component on the host's own facts; what
 * is there at the end is the place, and each link met on the way is shown as
 * the link that it is. The walk never asks the disk itself. */
#include "path_match.h"
#include "resolve.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LINKS 40 /* as the kernel has it */

void zb_walk_done(struct zb_walk *w)
{
	free(w->path);
	zb_strv_done(&w->links);
	*w = (struct zb_walk){0};
}

/* Index of @path in what was looked at, or where it belongs (*@found). */
static size_t find(const struct zb_resolver *r, const char *path, bool *found)
{
	size_t lo = 0, hi = r->n_looked;

	*found = false;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = strcmp(r->looked[mid].path, path);

		if (!c) {
			*found = true;
			return mid;
		}
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int look(struct zb_resolver *r, const char *path,
		const struct zb_path_fact **out)
{
	struct zb_looked *l;
	bool found;
	size_t i = find(r, path, &found);

	if (!found) {
		char *copy = zb_strdup(path);

		if (r->n_looked == r->n_looked_room) {
			size_t room =
				r->n_looked_room ? r->n_looked_room * 2 : 64;

			l = realloc(r->looked, room * sizeof(*l));
			if (!l) {
				free(copy);
				return ZB_ELIMIT;
			}
			r->looked = l;
			r->n_looked_room = room;
		}
		if (!copy)
			return ZB_ELIMIT;
		l = r->looked + i;
		memmove(l + 1, l, (r->n_looked - i) * sizeof(*l));
		*l = (struct zb_looked){.path = copy};
		r->n_looked++;
		r->facts->look(r->facts->ctx, path, &l->fact);
	}
	*out = &r->looked[i].fact;
	return 0;
}

int zb_resolve_look(struct zb_resolver *r, const char *path,
		    struct zb_path_fact *out)
{
	const struct zb_path_fact *fact;
	int rc = look(r, path, &fact);

	if (!rc)
		*out = *fact;
	return rc;
}

/* The walk's own state: @done is canonical, @rest is still to come. */
struct trail {
	struct zb_buf done;
	char *rest;
	unsigned n_links;
};

/* Cut the first component off @t->rest into @name (heap); NULL at the end. */
static char *next_name(struct trail *t)
{
	char *s = t->rest + strspn(t->rest, "/");
	size_t n = strcspn(s, "/");
	char *name;

	if (!n)
		return NULL;
	name = zb_strndup(s, n);
	memmove(t->rest, s + n, strlen(s + n) + 1);
	return name;
}

static bool is_last(const struct trail *t)
{
	return t->rest[strspn(t->rest, "/")] == '\0';
}

static void go_up(struct zb_buf *b)
{
	while (b->len && b->data[--b->len] != '/')
		;
	if (b->data)
		b->data[b->len] = '\0';
}

/* The rest cannot be looked at: take it as it is written. */
static int end_absent(struct trail *t, struct zb_walk *out)
{
	struct zb_buf b = {0};

	zb_buf_addf(&b, "%s/%s", zb_buf_str(&t->done), t->rest);
	out->path = zb_path_join(NULL, zb_buf_str(&b));
	zb_buf_done(&b);
	return out->path ? 0 : ZB_ELIMIT;
}

static int follow(struct trail *t, const char *at, const char *to,
		  struct zb_walk *out)
{
	char *rest = zb_strf("%s/%s", to, t->rest);

	if (!rest)
		return ZB_ELIMIT;
	free(t->rest);
	t->rest = rest;
	if (zb_strv_add(&out->links, at) || zb_strv_add(&out->links, to))
		return ZB_ELIMIT;
	if (to[0] == '/')
		zb_buf_clear(&t->done);
	else
		go_up(&t->done);
	return 0;
}

/* One component. *@end: the walk is over. */
static int step(struct zb_resolver *r, struct trail *t, const char *name,
		bool keep_last, struct zb_walk *out, bool *end)
{
	const struct zb_path_fact *fact;

	*end = false;
	if (!strcmp(name, "."))
		return 0;
	if (!strcmp(name, "..")) {
		go_up(&t->done);
		return 0;
	}
	if (zb_buf_addf(&t->done, "/%s", name) ||
	    look(r, zb_buf_str(&t->done), &fact))
		return ZB_ELIMIT;
	if (fact->is_link && fact->link && !(keep_last && is_last(t))) {
		char *at;
		int rc;

		if (++t->n_links > MAX_LINKS) {
			*end = true;
			return end_absent(t, out);
		}
		at = zb_strdup(zb_buf_str(&t->done));
		rc = at ? follow(t, at, fact->link, out) : ZB_ELIMIT;
		free(at);
		return rc;
	}
	if (!fact->exists && !fact->is_link) {
		*end = true;
		return end_absent(t, out);
	}
	return 0;
}

/* What stands at the end, now that all links are followed. */
static int arrive(struct zb_resolver *r, struct trail *t, struct zb_walk *out)
{
	const struct zb_path_fact *fact;

	if (!t->done.len) {
		out->path = zb_strdup("/");
		out->exists = out->is_dir = true;
		return out->path ? 0 : ZB_ELIMIT;
	}
	if (look(r, zb_buf_str(&t->done), &fact))
		return ZB_ELIMIT;
	out->exists = fact->exists || fact->is_link;
	out->is_dir = fact->is_dir && !fact->is_link;
	out->is_file = fact->is_file && !fact->is_link;
	out->size = fact->size;
	out->path = zb_strdup(zb_buf_str(&t->done));
	return out->path && !t->done.failed ? 0 : ZB_ELIMIT;
}

int zb_resolve_walk(struct zb_resolver *r, const char *path, bool keep_last,
		    struct zb_walk *out)
{
	struct trail t = {.rest = zb_strdup(path)};
	bool end = false;
	char *name;
	int rc = t.rest ? 0 : ZB_ELIMIT;

	*out = (struct zb_walk){0};
	while (!rc && !end && (name = next_name(&t))) {
		rc = step(r, &t, name, keep_last, out, &end);
		free(name);
	}
	if (!rc && !end)
		rc = arrive(r, &t, out);
	zb_buf_done(&t.done);
	free(t.rest);
	if (rc)
		zb_walk_done(out);
	return rc;
}

/* Places */

void zb_place_done(struct zb_place *p)
{
	free(p->path);
	free(p->source);
	free(p->link_to);
	free(p->content);
	zb_strv_done(&p->only);
	zb_strv_done(&p->only_changes);
	zb_origin_done(&p->origin);
	zb_origin_done(&p->changed_by);
	*p = (struct zb_place){0};
}

static bool copied(char **out, const char *in)
{
	*out = zb_strdup(in);
	return *out || !in;
}

int zb_resolve_add(struct zb_resolver *r, const struct zb_place *place)
{
	struct zb_plan *plan = r->plan;
	struct zb_place p = {.kind = place->kind,
			     .rights = place->rights,
			     .is_dir = place->is_dir,
			     .copied = place->copied};

	if (plan->n_places == ZB_PLACES_MAX)
		return zb_fail(r->err, ZB_ELIMIT,
			       "the plan needs more than %d places; grant "
			       "directories instead of single files",
			       ZB_PLACES_MAX);
	if (plan->n_places == r->n_room) {
		size_t room = r->n_room ? r->n_room * 2 : 64;
		struct zb_place *v = realloc(plan->places, room * sizeof(*v));

		if (!v)
			return ZB_ELIMIT;
		plan->places = v;
		r->n_room = room;
	}
	if (!copied(&p.path, place->path) ||
	    !copied(&p.source, place->source) ||
	    !copied(&p.link_to, place->link_to) ||
	    !copied(&p.content, place->content) ||
	    zb_strv_copy(&p.only, &place->only) ||
	    zb_strv_copy(&p.only_changes, &place->only_changes) ||
	    zb_origin_copy(&p.origin, &place->origin)) {
		zb_place_done(&p);
		return ZB_ELIMIT;
	}
	plan->places[plan->n_places++] = p;
	return 0;
}

static int add_links(struct zb_resolver *r, const struct zb_walk *w,
		     const struct zb_origin *origin)
{
	int rc = 0;

	for (size_t i = 0; !rc && i + 1 < w->links.n; i += 2) {
		struct zb_place link = {.kind = ZB_PLACE_LINK,
					.path = w->links.v[i],
					.link_to = w->links.v[i + 1],
					.rights = ZB_MAY_READ,
					.origin = *origin};

		rc = zb_resolve_add(r, &link);
	}
	return rc;
}

int zb_resolve_add_walked(struct zb_resolver *r, enum zb_place_kind kind,
			  const struct zb_walk *w, unsigned rights,
			  const struct zb_origin *origin)
{
	struct zb_place place = {.kind = kind,
				 .path = w->path,
				 .source = w->path,
				 .rights = rights,
				 .is_dir = w->is_dir,
				 .copied = kind == ZB_PLACE_SYSTEM &&
					   w->is_file && w->size <= ZB_COPY_MAX,
				 .origin = *origin};
	int rc = add_links(r, w, origin);

	if (!w->is_dir)
		place.rights &= ~(unsigned)(ZB_MAY_LIST | ZB_MAY_CREATE);
	return rc ? rc : zb_resolve_add(r, &place);
}

/* Does the way to @w lead through what sandboxes write, or the logs? Then it
 * is an extension that chose where it ends. */
static bool is_own(const struct zb_resolver *r, const struct zb_walk *w)
{
	if (zb_path_below(w->path, r->boxes) || zb_path_below(w->path, r->logs))
		return true;
	for (size_t i = 0; i < w->links.n; i += 2)
		if (zb_path_below(w->links.v[i], r->boxes))
			return true;
	return false;
}

int zb_resolve_needs(struct zb_resolver *r, enum zb_place_kind kind,
		     const struct zb_need *needs, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++) {
		const struct zb_need *need = &needs[i];
		struct zb_walk w;
		struct zb_origin origin = {0};
		int rc;

		if (zb_resolve_walk(r, need->path, false, &w))
			return ZB_ELIMIT;
		origin.file = need->from;
		origin.key = zb_strdup(key);
		if (is_own(r, &w)) {
			rc = zb_fail(
				r->err, ZB_EPOLICY,
				"%s needs %s, which lies in or leads "
				"through zotbox's own directories; nothing "
				"can run from there",
				need->from ? need->from : "the program",
				need->path);
		} else if (!need->rights) {
			rc = add_links(r, &w, &origin);
		} else if (w.is_dir || w.is_file) {
			rc = zb_resolve_add_walked(r, kind, &w, need->rights,
						   &origin);
		} else if (need->optional) {
			rc = 0;
		} else {
			rc = zb_fail(r->err, ZB_EPOLICY,
				     "%s needs %s, which is not there",
				     need->from ? need->from : "the program",
				     need->path);
		}
		free(origin.key);
		zb_walk_done(&w);
		if (rc)
			return rc;
	}
	return 0;
}

/* Messages. @text is one line without what a terminal would act on. */

static char *one_line(const char *fmt, va_list ap) ZB_PRINTF(1, 0);
static char *one_line(const char *fmt, va_list ap)
{
	struct zb_buf raw = {0}, b = {0};

	zb_buf_vaddf(&raw, fmt, ap);
	zb_text_escape(&b, zb_buf_str(&raw), raw.len, 0);
	zb_buf_done(&raw);
	return zb_buf_steal(&b);
}

int zb_resolve_fail(struct zb_resolver *r, enum zb_code code,
		    const struct zb_rule *rule, const char *fmt, ...)
{
	struct zb_buf b = {0};
	char *text;
	va_list ap;

	va_start(ap, fmt);
	text = one_line(fmt, ap);
	va_end(ap);
	if (!text)
		return ZB_ELIMIT;
	if (rule) {
		zb_origin_text(&(struct zb_origin){.file = rule->origin.file},
			       &b);
		if (rule->origin.line)
			zb_buf_addf(&b, ":%u", rule->origin.line);
		zb_buf_addf(&b, ": %s \"", rule->origin.key);
		zb_text_escape(&b, rule->value, strlen(rule->value), 300);
		zb_buf_adds(&b, "\": ");
	}
	zb_buf_adds(&b, text);
	free(text);
	zb_fail(r->err, code, "%s", zb_buf_str(&b));
	zb_buf_done(&b);
	return code;
}

int zb_resolve_notice(struct zb_resolver *r, const struct zb_rule *rule,
		      const char *fmt, ...)
{
	struct zb_buf b = {0};
	char *text;
	va_list ap;
	int rc = 0;

	va_start(ap, fmt);
	text = one_line(fmt, ap);
	va_end(ap);
	if (!text)
		return ZB_ELIMIT;
	if (rule) {
		const char *key = rule->origin.key;

		zb_buf_addf(&b, "scope %.*s \"", (int)strcspn(key, "["), key);
		zb_text_escape(&b, rule->value, strlen(rule->value), 300);
		zb_buf_addf(&b, "\" %s (", text);
		zb_origin_text(&rule->origin, &b);
		zb_buf_addc(&b, ')');
	} else {
		zb_buf_adds(&b, text);
	}
	free(text);
	text = zb_buf_steal(&b);
	if (!text)
		return ZB_ELIMIT;
	if (!zb_strv_has(&r->plan->notices, text))
		rc = zb_strv_add(&r->plan->notices, text);
	free(text);
	return rc;
}
