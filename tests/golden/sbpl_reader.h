/* sbpl_reader.h - reads a macOS profile and decides by it, knowing nothing of
 * plans or of how the profile was written. Two models of which rule wins are
 * asked, and have to agree:
 *
 *	naive	the last rule whose operation covers the asked one, and one of
 *		whose filters matches
 *	graph	rules that name exactly this operation: the last filtered one
 *		that matches, else the last unfiltered one; else the same for
 *		the operation's parent, and so on up to default. Some operations
 *		have no parent and are open. */
#ifndef ZB_SBPL_READER_H
#define ZB_SBPL_READER_H

#include <stdbool.h>
#include <stddef.h>

struct sbpl;

enum sbpl_answer {
	SBPL_DENY,
	SBPL_ALLOW,
	SBPL_SPLIT, /* the models differ */
	SBPL_BAD    /* an operation or a filter that nobody knows */
};

/* Read @text. @tmp stands for (param "TMP"). NULL if it is malformed or
 * forbidden ((with no-sandbox)); @why says it. */
struct sbpl *sbpl_read(const char *text, const char *tmp, char *why,
		       size_t why_size);
void sbpl_free(struct sbpl *p);

/* Decide on @op ("file-read-data") for @subject: a path as the kernel sees it;
 * for network-* "HOST:PORT", or a path. */
enum sbpl_answer sbpl_decide(const struct sbpl *p, const char *op,
			     const char *subject);

/* Where is what a plan has at @path? By the notes ";; moved", ";; stays",
 * and by the links that every Mac has. false: nowhere (";; hidden"). */
bool sbpl_locate(const struct sbpl *p, const char *path, char *out,
		 size_t out_size);
/* Is there a note ";; WHAT ..." whose rest begins with @rest? */
bool sbpl_has_note(const struct sbpl *p, const char *what, const char *rest);
/* Is @path in one of ";; base"? */
bool sbpl_is_base(const struct sbpl *p, const char *path);

/* Rules in the profile, and those that allow @op for exactly @path, as
 * (literal) or (subpath): for tests that nothing got lost. */
size_t sbpl_count(const struct sbpl *p);
bool sbpl_names(const struct sbpl *p, const char *op, const char *path);
/* The path of the @n-th such (literal) or (subpath), or NULL behind the last.
 */
const char *sbpl_nth(const struct sbpl *p, const char *op, size_t n);

#endif
