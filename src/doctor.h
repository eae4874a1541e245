/* doctor.h - examine extensions: what zot would find, whether each would
 * start confined, what it registers, what it was denied. Effects: starts each
 * one under its own policy (an unwrapped one under strict, never bare), in a
 * session of its own that never counts as "the last session". */
#ifndef ZB_DOCTOR_H
#define ZB_DOCTOR_H

#include "backend.h"
#include "discover.h"
#include "grant.h"

struct zb_doctor_name {
	char *name;
	const char *state; /* "active" "shadowed" "deferred" "late" */
	char *by;	   /* who shadows it: an extension, or "zot" */
};

/* One extension. @found is borrowed from the list that was examined. */
struct zb_patient {
	const struct zb_found *found;
	const char *status; /* zot's words, "changed", "unconfined" */
	bool bad;	    /* error, not loaded or changed: exit 5 */
	char *exec;	    /* the manifest's, and what it really starts */
	char *log;	    /* path of its log */
	struct zb_doctor_name *commands, *tools;
	size_t n_commands, n_tools;
	struct zb_strv warnings, errors, notes;
	struct zb_wishes wishes;   /* asked for, not granted */
	struct zb_denial *denials; /* of the last session */
	size_t n_denials;
	size_t n_refused; /* while it was examined */
	struct zb_rule_status *rules;
	size_t n_rules;
	bool started;
	uint64_t start_ms;
};

struct zb_diagnosis {
	struct zb_host host;
	char *host_error; /* NULL: the host can */
	struct zb_patient *v;
	size_t n;
};

/* Examine @list (all of it). @project: real path of the working directory. */
int zb_doctor(struct zb_diagnosis *out, const struct zb_store *store,
	      const struct zb_found_list *list, const char *project,
	      struct zb_error *err);
void zb_diagnosis_done(struct zb_diagnosis *d);

#endif
