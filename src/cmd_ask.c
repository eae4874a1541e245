/* cmd_ask.c - questions to people; the words are ask.c's. */
#include "cmd_ask.h"

#include "cleanup.h"
#include "cmd.h"
#include "cmd_long.h"
#include "reach.h"
#include "scope.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

/* One thing asked for, with its words. */
struct line {
	const struct zb_wish *wish;
	struct zb_ask ask;
	size_t at; /* its place as asked */
};

static int by_risk(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->ask.risk != y->ask.risk)
		return x->ask.risk < y->ask.risk ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

static int find_words(struct line *l, const struct zb_store *store)
{
	return zb_reach_ask(&l->ask, store, l->wish->key, l->wish->value);
}

/* "fs.read ~/notes", as a scope file has it. */
static void add_wish(struct zb_buf *out, const struct zb_wish *w)
{
	zb_buf_addf(out, "%s ", w->key);
	zb_text_escape(out, w->value, strlen(w->value), 200);
}

/* The command that grants it, or why there is none. */
static void offer(const char *name, const struct zb_wish *w)
{
	struct zb_buf b = {0};

	if (!w->why_not && !zb_wish_command(name, w, &b)) {
		zb_cmd_say("      %s", zb_buf_str(&b));
	} else {
		const char *why =
			w->why_not ? w->why_not : "it holds control characters";

		add_wish(&b, w);
		zb_cmd_say("      (no command for %s; %s: %s)", zb_buf_str(&b),
			   zb_no_command_label(why), why);
	}
	zb_buf_done(&b);
}

static void show(const struct line *l, const char *name)
{
	struct zb_buf what = {0};

	if (name) {
		zb_cmd_say("    %s (without it: %s)", l->ask.does,
			   l->ask.without);
		offer(name, l->wish);
		return;
	}
	add_wish(&what, l->wish);
	zb_cmd_say("    %s [%s]%s%s", l->ask.does, zb_buf_str(&what),
		   l->wish->why_not ? " - " : "",
		   l->wish->why_not ? zb_no_command_label(l->wish->why_not)
				    : "");
	zb_buf_done(&what);
}

static void show_all(struct line *v, size_t n, const char *name)
{
	qsort(v, n, sizeof(*v), by_risk);
	for (size_t i = 0; i < n && i < ZB_ASK_SHOWN; i++) {
		const enum zb_risk risk = v[i].ask.risk;

		if (i && v[i - 1].ask.risk == risk)
			;
		else if (risk == ZB_RISK_GRAVE)
			zb_cmd_alarm("  %s:", zb_risk_heading(risk));
		else
			zb_cmd_say("  %s:", zb_risk_heading(risk));
		show(&v[i], name);
	}
	if (n > ZB_ASK_SHOWN && name)
		zb_cmd_say("  and %zu more: zotbox ext doctor %s",
			   n - ZB_ASK_SHOWN, name);
	else if (n > ZB_ASK_SHOWN)
		zb_cmd_say("  and %zu more", n - ZB_ASK_SHOWN);
}

size_t zb_cmd_wishes(const struct zb_store *store, const char *name,
		     const struct zb_wishes *w)
{
	zb_auto(free) struct line *v = calloc(w->n + 1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return 0;
	for (size_t i = 0; i < w->n; i++) {
		if (w->v[i].granted)
			continue;
		v[n] = (struct line){.wish = &w->v[i], .at = i};
		if (!find_words(&v[n], store))
			n++;
	}
	if (n)
		show_all(v, n, name);
	for (size_t i = 0; i < n; i++)
		zb_ask_done(&v[i].ask);
	return n;
}

void zb_cmd_may(const struct zb_store *store, const char *name, const char *key,
		const char *value)
{
	zb_auto(free) char *k = zb_strdup(key);
	zb_auto(free) char *v = zb_strdup(value);
	const struct zb_wish wish = {.key = k, .value = v};
	struct line l = {.wish = &wish};

	if (k && v && !find_words(&l, store))
		zb_cmd_say("with it, %s may %s", name, l.ask.does);
	zb_ask_done(&l.ask);
}

bool zb_cmd_yes(const char *question)
{
	zb_auto(free) char *answer = NULL;
	size_t size = 0;

	zb_cmd_say("%s [y/N]", question);
	return zb_cmd_await_input() && getline(&answer, &size, stdin) > 0 &&
	       (answer[0] == 'y' || answer[0] == 'Y');
}
