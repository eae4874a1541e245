/* question.h - what commands that ask about an extension, and start nothing,
 * have in common: from the word on the command line to its plan. Effects. */
#ifndef ZB_QUESTION_H
#define ZB_QUESTION_H

#include "prepare.h"

struct zb_question {
	struct zb_store store;
	struct zb_prepared prep;
	char *name;    /* an installed one's, or NULL */
	char *path;    /* of one that is not, or NULL */
	char *project; /* real path of the working directory */
};

/* @word is the NAME of an installed extension or, with a slash in it, the path
 * of one. Fills @name or @path, @store and @project. Failures are those of
 * zb_store_open() and zb_discover_installed(). @q needs zb_question_done() in
 * any case. */
int zb_question_open(struct zb_question *q, const char *word,
		     struct zb_error *err);
/* Its plan, as the next start would have it, into @q->prep. @policy and @scope
 * as in struct zb_target. */
int zb_question_prepare(struct zb_question *q, const char *policy,
			const char *scope, struct zb_error *err);
/* A path as people write it: ~, a variable of its plan, or relative to the
 * project. Heap; NULL without a project, or memory. */
char *zb_question_path(const struct zb_question *q, const char *word);
void zb_question_done(struct zb_question *q);

/* "FILE:LINE: KEY", as far as known, safe to show; "built in" without. */
int zb_origin_line(const struct zb_origin *o, struct zb_buf *out);
/* The same as a JSON value: {"file","line","key"}, or null. */
int zb_origin_json(const struct zb_origin *o, struct zb_buf *out);

#endif
