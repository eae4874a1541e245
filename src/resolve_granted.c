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

/* "zotbox ext allow NAME KEY VALUE...": what makes it be so. Not always a
 * command. @before: another value, put first; or NULL. */
static char *remedy(const struct zb_resolver *r, const struct zb_way *way,
		    const char *before)
{
	const char *name = r->facts->command_name;
	struct zb_buf b = {0};

	if (name) {
		zb_buf_addf(&b, "zotbox ext allow %s %s ", name, way->key);
		if (before && !zb_text_shell_quote(&b, before))
			zb_buf_addc(&b, ' ');
		if (!zb_text_shell_quote(&b, way->rule->value))
			return zb_buf_steal(&b);
		zb_buf_done(&b);
	}
	return zb_strdup(before ? "put both places themselves into the scope "
				  "file"
				: "put that place itself into the scope file");
}

/* The real name of the place that a deny was for, as a scope has it; *@same: it
 * is the name that leads elsewhere now. NULL: no scope can name it. */
static char *old_value(const struct zb_way *way, const char *was, bool *same)
{
	zb_auto(free) char *value = way->tail && *way->tail
					    ? zb_strf("%s/%s", was, way->tail)
					    : zb_strdup(was);

	*same = value && !strcmp(value, way->name);
	/* What was escaped is no name any more; a private HOME has none. */
	if (!value || strchr(value, '\\') || !strchr("/~$", *value))
		return NULL;
	return zb_steal(&value);
}

/* A deny that is taken to the new place is gone from the old one. */
static char *deny_remedy(const struct zb_resolver *r, const struct zb_way *way,
			 const char *was)
{
	bool same;
	zb_auto(free) char *old = old_value(way, was, &same);
	zb_auto(free) char *both = old && !same ? remedy(r, way, old) : NULL;
	zb_auto(free) char *one = remedy(r, way, NULL);

	if (!one)
		return NULL;
	if (both)
		return zb_strf("to keep the old place denied, and the new one "
			       "too: %s; to have the new one denied alone, "
			       "which leaves the old one open: %s",
			       both, one);
	return zb_strf("what stood there may have another name now, which "
		       "is not denied: find it, and deny that first (fs.deny "
		       "PLACE); to have the new place denied, which leaves "
		       "what was denied open: %s",
		       one);
}

static char *grant_remedy(const struct zb_resolver *r, const struct zb_way *way)
{
	zb_auto(free) char *one = remedy(r, way, NULL);

	return one ? zb_strf("to have it so: %s", one) : NULL;
}

static char *say_why(const struct zb_resolver *r, const struct zb_way *way,
		     const char *was, const char *now, const char *link)
{
	zb_auto(free) char *at = link ? zb_resolve_real_word(r, link) : NULL;
	zb_auto(free) char *so =
		way->deny ? deny_remedy(r, way, was) : grant_remedy(r, way);

	if (!so || (link && !at))
		return NULL;
	return zb_strf("it led to %s when it was %s, and leads to %s now%s%s; "
		       "if that was not you, it was somebody who may write "
		       "there, like another extension; %s",
		       was, way->deny ? "denied" : "granted", now,
		       link ? ", through the link " : "", link ? at : "", so);
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
	if (was && strcmp(was, now) != 0 && (link || way->deny)) {
		*why = say_why(r, way, was, now, link);
		return *why ? 0 : ZB_ELIMIT;
	}
	return zb_granted_set(&r->plan->granted, way->key, way->name, now);
}
