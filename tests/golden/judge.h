/* judge.h - asks a profile and a description, which somebody who does not know
 * the plan has read, what the evaluator is asked, and compares. Fails the test
 * by itself. */
#ifndef ZB_TEST_JUDGE_H
#define ZB_TEST_JUDGE_H

#include "appcontainer_reader.h"
#include "plan.h"
#include "sbpl_reader.h"

enum {
	DIR_ = 1,
	ABSENT = 2,
	HOST = 4, /* the host's file under this very name, not what the plan
		     would show there: absent inside, and closed outside */
};

struct texts {
	struct zb_plan plan;
	struct sbpl *profile;
	struct ac *container;
};

/* Render @t->plan and read what came out. judge_done() frees all of it. */
void judge_read(struct texts *t);
void judge_done(struct texts *t);

/* May it? The evaluator (brokered counts), and the two texts. */
bool judge_evaluate(const struct texts *t, enum zb_op op, const char *target,
		    unsigned flags);
bool judge_macos(const struct texts *t, enum zb_op op, const char *target,
		 unsigned flags);
bool judge_windows(const struct texts *t, enum zb_op op, const char *target,
		   unsigned flags);
/* Does the text say that it cannot show what the plan has at @path? */
bool judge_macos_says(const struct texts *t, const char *path);
bool judge_windows_says(const struct texts *t, const char *path);

/* Below every place and source of the plan, with names that denies mind: never
 * yes where the evaluator says no, and never for what the host has under a
 * name that the plan does not grant. Returns how many paths were asked for. */
size_t judge_sweep(const struct texts *t);
/* What @less allows, @more allows as well. */
size_t judge_more(const struct texts *less, const struct texts *more);

#endif
