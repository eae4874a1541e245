/* denial.h - one refusal: the record, its merging, its two printed forms.
 * Pure. Writing them to files is ledger.h. */
#ifndef ZB_DENIAL_H
#define ZB_DENIAL_H

#include "buf.h"
#include "ops.h"

/* Strings are heap and may be NULL where absent. Byte strings from the
 * extension (@asked, @target) may be invalid UTF-8: printing handles it. */
struct zb_denial {
	enum zb_op op;
	char *detail;  /* for proto.VERB and limit.NAME: VERB, NAME */
	char *ext;     /* extension's name */
	char *session; /* one start of it */
	int pid;       /* inside the host's pid namespace; 0 unknown */
	char *exe;
	char *syscall; /* NULL for protocol and limit records */
	char *asked;   /* as the extension spelled it */
	char *target;  /* as resolved */
	int err_no;    /* what it got, 0: not an errno */
	enum zb_decider by;
	enum zb_floor floor;
	enum zb_evidence evidence;
	char *rule;
	char *grant_key, *grant_value; /* NULL: cannot be granted... */
	char *why_not;		       /* ...and why */
	struct zb_strv exposes; /* what the grant opens as well: where links
				   on the host lead */
	bool by_path; /* of one that is run by its path: @ext may be the name
			 of another that is installed. Not in JSON */
	uint64_t count;
	int64_t first_ms, last_ms; /* Unix time, milliseconds */
};

void zb_denial_done(struct zb_denial *d);
int zb_denial_copy(struct zb_denial *out, const struct zb_denial *in);

/* Same kind for merging: ext, session, op, detail, target, exe, err_no. */
bool zb_denial_same(const struct zb_denial *a, const struct zb_denial *b);
uint64_t zb_denial_hash(const struct zb_denial *d);

/* One JSON object (no newline) as the ledger has it: "v":1, "time" = last,
 * RFC 3339 UTC with milliseconds; bytes that are not UTF-8 as U+FFFD with
 * target_hex (asked_hex) beside; "grant":null with "cannot":WHY. Absent
 * strings, pid 0 and errno 0 are left out. There is no grant either when the
 * evidence is inferred or the value is not UTF-8. Safe to show on a terminal
 * (zb_json_quote). */
int zb_denial_json(const struct zb_denial *d, struct zb_buf *out);
/* Read one back (zb_denial_json's form). ZB_EUSAGE if it is none. */
int zb_denial_parse(struct zb_denial *out, const char *line, size_t len,
		    struct zb_error *err);
/* One line for people, without newline, safe to show:
 * "denied fs.read ~/.ssh/id (python3.11, openat, x3): RULE; to allow: zotbox
 * ext allow weather fs.read ~/.ssh/id" or "...; cannot be granted: WHY" or
 * "...; granted only if you mean it: WHY"; before
 * the command "a grant opens ~/x; " for what it exposes.
 * For one that is run by its path: "to allow: fs.read ~/.ssh/id in its scope
 * file (--scope)", since `ext allow` is about installed ones.
 * No command is shown for a target that is not plain text, but "cannot be
 * granted by a copied command: the name holds control characters". @home
 * shortens paths below it to ~ (NULL: never). */
int zb_denial_text(const struct zb_denial *d, const char *home,
		   struct zb_buf *out);

/* RFC 3339 UTC with milliseconds, e.g. 2026-12-01T10:00:00.123Z. */
int zb_time_rfc3339(int64_t unix_ms, struct zb_buf *out);
/* "2026-12-01T10:00:00Z" (also fractions and zones), "10m", "2h", "3d" (that
 * long before @now_ms) -> Unix ms. false: malformed. */
bool zb_time_parse(const char *s, int64_t now_ms, int64_t *out);

/* "ENOENT" for an errno value; NULL for one without a name here. */
const char *zb_errno_name(int value);

#endif
