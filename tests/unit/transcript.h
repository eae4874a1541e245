/* transcript.h - conversations as text files, for the mediator's tests.
 *
 *	# a comment, or a blank line
 *	scope {"zotbox":1,...}   what is granted (laid over nothing)
 *	dirs DATA EXTENSION      directories for hello_ack
 *	at MS                    the clock
 *	expire ID                the caller gave that call up
 *	< LINE                   the extension writes it
 *	> LINE                   the host writes it
 *	long LEN LINE            the extension writes an over-long line
 *
 * After a line follows what must come of it, all of it:
 *
 *	= pass | drop | kill REASON | cut LINE | reply LINE
 *	^ LINE                   the host is told besides
 *	! OP KEY VALUE           a record with that grant
 *	! OP - WHY               a record that cannot be granted
 *	~ TEXT                   a log line that holds TEXT
 *
 * `= pass` may be left out. Bytes are written as they are. */
#ifndef ZB_TRANSCRIPT_H
#define ZB_TRANSCRIPT_H

#include "mediator.h"

/* Run one file; a fault is a failed cmocka assertion that names file and
 * line. */
void zb_transcript_run(const char *path);

/* A plan with nothing but a protocol: @scope is the JSON text. */
struct zb_plan zb_transcript_plan(const char *scope);

#endif
