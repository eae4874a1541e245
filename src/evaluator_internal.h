/* evaluator_internal.h - between evaluator.c (the verdict) and
 * evaluator_words.c (why, and what would help); evaluator.h is what others
 * use. */
#ifndef ZB_EVALUATOR_INTERNAL_H
#define ZB_EVALUATOR_INTERNAL_H

#include "evaluator.h"

enum zb_reason {
	ZB_R_ALLOWED,
	ZB_R_HIDDEN,   /* no place shows it */
	ZB_R_SKELETON, /* a directory made only for what lies below */
	ZB_R_READONLY, /* its place is read-only */
	ZB_R_DENIED,   /* a deny covers it */
	ZB_R_ONLY,     /* its grant has a pattern, and this does not match */
	ZB_R_NO_EXEC,  /* visible, not executable */
	ZB_R_PARTLY,   /* executable, were it not for a deny nearby */
	ZB_R_MOUNT,    /* the root of a mount */
	ZB_R_NO_RIGHT, /* its place has no such right */
	ZB_R_NET,
	ZB_R_SOCKET,
	ZB_R_SYSCALL,
	ZB_R_ENV,
	ZB_R_VERB,
	ZB_R_LIMIT,
	ZB_R_OTHER,
};

struct zb_finding {
	enum zb_verdict verdict;
	enum zb_reason reason;
	int place;
	int err_no;
	enum zb_floor floor;
	const struct zb_deny *deny;
};

/* The verdict with its reason, without memory of its own. */
struct zb_finding zb_judge_query(const struct zb_plan *plan,
				 const struct zb_query *q);

/* "VERB", "VERB:NAME", "intercept:EVENT:PART", cut apart. */
struct zb_asked {
	enum zb_verb verb; /* ZB_VERB_COUNT: none of them */
	char name[160];
	const char *part; /* into the target */
	bool has_name;
};
struct zb_asked zb_parse_verb(const char *target);

/* "NAME:AMOUNT". Return: false for an unknown name or no amount. */
bool zb_parse_limit(const char *target, enum zb_limit *limit, uint64_t *amount);

#endif
