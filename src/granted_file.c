/* granted_file.c - reading and writing granted.json. */
#include "config.h"

#include "granted_file.h"

#include "cleanup.h"
#include "store.h"

#include <errno.h>

int zb_granted_read(struct zb_granted *out, const char *box,
		    struct zb_error *err)
{
	zb_auto(free) char *path = zb_strf("%s/" ZB_GRANTED_FILE, box);
	struct zb_buf text = {0};
	struct zb_error why = {0};
	int rc;

	*out = (struct zb_granted){0};
	if (!path)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	rc = zb_read_file(path, ZB_GRANTED_TEXT_MAX, &text, &why);
	if (rc && why.sys == ENOENT)
		rc = 0;
	else if (!rc)
		rc = zb_granted_parse(out, path, zb_buf_str(&text), text.len,
				      &why);
	zb_buf_done(&text);
	return rc ? zb_fail(err, ZB_EPOLICY,
			    "where the grants led when they were given cannot "
			    "be read: %s; look where they lead now, and remove "
			    "that file",
			    why.msg)
		  : 0;
}

int zb_granted_write(const struct zb_granted *g, const char *box,
		     struct zb_error *err)
{
	zb_auto(free) char *path = zb_strf("%s/" ZB_GRANTED_FILE, box);
	struct zb_buf text = {.max = ZB_GRANTED_TEXT_MAX};
	int rc = path && !zb_granted_text(g, &text)
			 ? zb_write_file_atomic(path, zb_buf_str(&text),
						text.len, 0600, err)
			 : zb_fail(err, ZB_ELIMIT,
				   "too much was granted to keep in mind");

	zb_buf_done(&text);
	return rc;
}
