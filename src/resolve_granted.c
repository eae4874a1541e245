/* resolve_granted.c - a grant leads where it led when it was given.
 *
 * Extensions share what was granted to both. Where one of them may write, it
 * may also put a link into the place of a directory or file that the other was
 * granted by name; the other would be shown whatever the link leads to. So the
 * place that a name led to when the user gave it is kept (granted.h), and a
 * name that leads elsewhere through a link is refused until the user says it
 * again. A name never seen before counts as given now.
 *
 * What this does not stop is what the user or the system does:
 *
 *	- no link on the way today: the name is its own place
 *	- every link on the way stands where nobody with the user's rights can
 *	  make one: an upgrade has led /usr/bin/python3 elsewhere
 *	- HOME, the extension's directory and its data were moved as a whole:
 *	  places are kept relative to them
 *
 * A deny is held to it more strictly. What it covered must stay covered, so it
 * is refused as well where there is no link any more. Of ${project}, which is
 * another one at each start, nothing is kept; its links are judged by
 * resolve_links.c. */
#include "cleanup.h"
#include "path_match.h"
#include "resolve.h"
#include "text.h"

#include <string.h>

/* @path relative to @dir, which is called @word; else NULL. */
static char *relative_to(const char *path, const char *dir, const char *word)
{
	if (!strcmp(dir, "/") || !zb_path_below(path, dir))
		return NULL;
	return zb_strf("%s%s", word, path + strlen(dir));
}

static char *escaped(const char *path)
{
	struct zb_buf b = {0};

	zb_text_escape(&b, path, strlen(path), 0);
	return zb_buf_steal(&b);
}

char *zb_resolve_spelled(const struct zb_resolver *r, const char *path)
{
	zb_auto(free) char *shorter = relative_to(path, r->plan->home, "~");

	return escaped(shorter ? shorter : path);
}

char *zb_resolve_real_word(const struct zb_resolver *r, const char *path)
{
	const struct {
		const char *dir, *word;
	} bases[] = {
		{r->plan->extension_real, "${extension_dir}"},
		{r->data, "${data_dir}"},
		{r->home_box, "HOME"},
		{r->plan->zot_home_real, "${zot_home}"},
		{r->plan->home_real, "~"},
	};
	zb_auto(free) char *shorter = NULL;

	for (size_t i = 0; !shorter && i < ZB_ARRAY_LEN(bases); i++)
		shorter = relative_to(path, bases[i].dir, bases[i].word);
	return escaped(shorter ? shorter : path);
}

/* Can nobody with the user's rights put another link into the place of the one
 * at @link? *@held is the answer. */
static int is_held(struct zb_resolver *r, const char *link, bool *held)
{
	zb_auto(free) char *at = zb_path_dir(link);

	*held = true;
	while (at && *held) {
		struct zb_path_fact fact;
		char *up;

		if (zb_resolve_look(r, at, &fact))
			return ZB_ELIMIT;
		*held = fact.held;
		if (!strcmp(at, "/"))
			return 0;
		up = zb_path_dir(at);
		free(at);
		at = up;
	}
	return at ? 0 : ZB_ELIMIT;
}

/* The last link on the way of @w that is not held; NULL: all are. */
static int loose_link(struct zb_resolver *r, const struct zb_walk *w,
		      const char **link)
{
	*link = NULL;
	for (size_t i = 0; i + 1 < w->links.n; i += 2) {
		bool held;

		if (is_held(r, w->links.v[i], &held))
			return ZB_ELIMIT;
		if (!held)
			*link = w->links.v[i];
	}
	return 0;
}

/* What makes it be so. Not always a command. */
static char *remedy(const struct zb_resolver *r, const struct zb_way *way)
{
	const char *name = r->facts->command_name;
	struct zb_buf quoted = {0};
	char *out;

	if (name && !zb_text_shell_quote(&quoted, way->rule->value))
		out = zb_strf("zotbox ext allow %s %s %s", name, way->key,
			      zb_buf_str(&quoted));
	else
		out = zb_strdup("put that place itself into the scope file");
	zb_buf_done(&quoted);
	return out;
}

static char *say_why(const struct zb_resolver *r, const struct zb_way *way,
		     const char *was, const char *now, const char *link)
{
	zb_auto(free) char *at = link ? zb_resolve_real_word(r, link) : NULL;
	zb_auto(free) char *so = remedy(r, way);

	if (!so || (link && !at))
		return NULL;
	return zb_strf("it led to %s when it was granted, and leads to %s now%s"
		       "%s; if that was not you, it was somebody who may write "
		       "there, like another extension; to have it so: %s",
		       was, now, link ? ", through the link " : "",
		       link ? at : "", so);
}

int zb_resolve_judge_way(struct zb_resolver *r, const struct zb_way *way,
			 const struct zb_walk *w, char **why)
{
	zb_auto(free) char *now = zb_resolve_real_word(r, w->path);
	const struct zb_granted *g = r->facts->granted;
	const char *was = NULL, *link;

	*why = NULL;
	if (!now || loose_link(r, w, &link))
		return ZB_ELIMIT;
	if (g && !way->given)
		was = zb_granted_real(g, way->key, way->name);
	if (!was && !way->given)
		was = way->else_was;
	if (was && strcmp(was, now) != 0 && (link || way->strict)) {
		*why = say_why(r, way, was, now, link);
		return *why ? 0 : ZB_ELIMIT;
	}
	return zb_granted_set(&r->plan->granted, way->key, way->name, now);
}
