/* inside.c - a walk through the sandbox as its plan describes it.
 *
 * The same rules as inside: component by component, ".." after links, a place
 * hides what the host has under its name, and what is mounted below a private
 * directory exists although its own disk does not have it yet. The broker asks
 * the kernel instead; the tests hold the two against each other. */
#include "inside.h"

#include "cleanup.h"
#include "path_match.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LINKS 40 /* as the kernel has it */

struct walk {
	const struct zb_plan *plan;
	void (*look)(void *ctx, const char *path, struct zb_path_fact *out);
	void *ctx;
	char *done; /* canonical; "" is the root */
	char *todo;
	unsigned links;
	bool ended; /* something on the way is not there */
	bool magic;
	struct zb_path_fact fact; /* of @done, without its strings */
};

void zb_inside_done(struct zb_inside *in)
{
	free(in->path);
	*in = (struct zb_inside){0};
}

static bool below_is_something(const struct zb_plan *plan, const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; i < plan->n_places; i++)
		if (!strncmp(plan->places[i].path, path, n) &&
		    plan->places[i].path[n] == '/')
			return true;
	return false;
}

static void directory(struct zb_path_fact *out)
{
	*out = (struct zb_path_fact){.exists = true, .is_dir = true};
}

/* The links that every process finds in its own /proc. */
static bool look_self(const struct walk *w, const char *path,
		      struct zb_path_fact *out)
{
	static const char *const selves[] = {"/proc/self", "/proc/thread-self"};

	for (size_t i = 0; i < ZB_ARRAY_LEN(selves); i++) {
		const char *rest = path + strlen(selves[i]);

		if (!zb_path_below(path, selves[i]))
			continue;
		if (!strcmp(rest, "/root") || !strcmp(rest, "/cwd")) {
			out->exists = out->is_link = true;
			out->link =
				zb_strdup(rest[1] == 'r' ? "/" : w->plan->cwd);
			return true;
		}
		if (!*rest || !strcmp(rest, "/fd"))
			directory(out);
		return true;
	}
	return false;
}

static void look_device(const struct walk *w, const char *path,
			struct zb_path_fact *out)
{
	static const char *const dirs[] = {"/dev", "/dev/shm", "/dev/pts"};
	static const char *const nodes[] = {"/dev/null", "/dev/zero",
					    "/dev/full", "/dev/random",
					    "/dev/urandom"};

	(void)w;
	for (size_t i = 0; i < ZB_ARRAY_LEN(dirs); i++)
		if (!strcmp(path, dirs[i]))
			directory(out);
	for (size_t i = 0; i < ZB_ARRAY_LEN(nodes); i++)
		if (!strcmp(path, nodes[i]))
			out->exists = true;
	if (!strcmp(path, "/dev/fd")) {
		out->exists = out->is_link = true;
		out->link = zb_strdup("/proc/self/fd");
	}
}

/* What stands in place @p at canonical @path, by the host's own disk. */
static void look_source(const struct walk *w, const struct zb_place *p,
			const char *path, struct zb_path_fact *out)
{
	const char *rest = path + (strcmp(p->path, "/") ? strlen(p->path) : 0);
	zb_auto(free) char *at =
		zb_strf("%s%s", strcmp(p->source, "/") ? p->source : "", rest);

	if (at)
		w->look(w->ctx, *at ? at : "/", out);
	free(out->real);
	out->real = NULL;
}

static void look_place(struct walk *w, const struct zb_place *p,
		       const char *path, struct zb_path_fact *out)
{
	bool itself = !strcmp(p->path, path);

	switch (p->kind) {
	case ZB_PLACE_LINK:
		out->exists = out->is_link = true;
		out->link = zb_strdup(p->link_to);
		return;
	case ZB_PLACE_TEXT:
		out->exists = out->is_file = itself;
		return;
	case ZB_PLACE_DIR:
	case ZB_PLACE_TMP:
		if (itself)
			directory(out);
		return;
	case ZB_PLACE_DEV:
		look_device(w, path, out);
		return;
	case ZB_PLACE_PROC:
		w->magic = true;
		if (itself)
			directory(out);
		else if (!look_self(w, path, out))
			w->look(w->ctx, path, out);
		return;
	case ZB_PLACE_SYSTEM:
	case ZB_PLACE_RUNTIME:
	case ZB_PLACE_EXTENSION:
	case ZB_PLACE_DATA:
	case ZB_PLACE_HOME:
	case ZB_PLACE_GRANT:
	case ZB_PLACE_PIN:
		if (p->source)
			look_source(w, p, path, out);
		if (itself && p->is_dir)
			directory(out);
	}
}

static void look_at(struct walk *w, const char *path, struct zb_path_fact *out)
{
	int i = zb_plan_place(w->plan, path);

	*out = (struct zb_path_fact){0};
	if (i >= 0)
		look_place(w, &w->plan->places[i], path, out);
	if (!out->exists && !out->is_link && below_is_something(w->plan, path))
		directory(out);
}

static int set(char **s, char *value)
{
	if (!value)
		return ZB_ELIMIT;
	free(*s);
	*s = value;
	return 0;
}

/* @link stands at @w->done + one component: what is left is behind it. */
static int follow(struct walk *w, const char *link)
{
	if (link[0] == '/' && set(&w->done, zb_strdup("")))
		return ZB_ELIMIT;
	directory(&w->fact); /* where the link stands, or the root */
	return set(&w->todo, zb_strf("%s/%s", link, w->todo));
}

static void up(struct walk *w)
{
	char *slash = strrchr(w->done, '/');

	if (slash)
		*slash = '\0';
	directory(&w->fact);
}

/* One component, of @n bytes at the start of @w->todo. */
static int step(struct walk *w, bool last, bool follow_last)
{
	size_t n = strcspn(w->todo, "/");
	zb_auto(free) char *name = zb_strndup(w->todo, n);
	zb_auto(free) char *at = NULL;
	struct zb_path_fact fact = {0};
	int rc = 0;

	if (!name || set(&w->todo, zb_strdup(w->todo + n)))
		return ZB_ELIMIT;
	if (!strcmp(name, "."))
		return 0;
	if (!strcmp(name, "..")) {
		up(w);
		return 0;
	}
	at = zb_strf("%s/%s", w->done, name);
	if (!at)
		return ZB_ELIMIT;
	/* Nothing is below what is not there, or is no directory. */
	if (!w->ended && (!*w->done || w->fact.is_dir))
		look_at(w, at, &fact);
	if (fact.is_link && fact.link && (!last || follow_last) &&
	    w->links < MAX_LINKS) {
		w->links++;
		rc = follow(w, fact.link);
		free(fact.link);
		return rc;
	}
	free(fact.link);
	fact.link = NULL;
	w->ended = w->ended || (!fact.exists && !fact.is_link);
	w->fact = fact;
	return set(&w->done, zb_steal(&at));
}

int zb_inside(const struct zb_plan *plan, const char *path, bool follow_last,
	      void (*look)(void *ctx, const char *path,
			   struct zb_path_fact *out),
	      void *ctx, struct zb_inside *out)
{
	struct walk w = {.plan = plan,
			 .look = look,
			 .ctx = ctx,
			 .done = zb_strdup(""),
			 .todo = zb_strdup(path)};
	int rc = w.done && w.todo ? 0 : ZB_ELIMIT;

	directory(&w.fact);
	while (!rc) {
		size_t blank = strspn(w.todo, "/"), n;

		memmove(w.todo, w.todo + blank, strlen(w.todo + blank) + 1);
		if (!*w.todo)
			break;
		n = strcspn(w.todo, "/");
		rc = step(&w, !w.todo[n + strspn(w.todo + n, "/")],
			  follow_last || w.todo[n]);
	}
	w.fact.exists = w.fact.exists || w.fact.is_link;
	*out = (struct zb_inside){.exists = !w.ended && w.fact.exists,
				  .is_dir = !w.ended && w.fact.is_dir,
				  .is_link = !w.ended && w.fact.is_link,
				  .magic = w.magic};
	out->no_dir =
		path[strlen(path) - 1] == '/' && out->exists && !out->is_dir;
	free(w.todo);
	if (!rc && !*w.done)
		rc = set(&w.done, zb_strdup("/"));
	if (rc) {
		free(w.done);
		return rc;
	}
	out->path = w.done;
	return 0;
}
