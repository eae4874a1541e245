/* cmd_ext_enable.c - zotbox ext enable and ext disable: one value of one
 * manifest; every other byte of the file stays. */
#include "cleanup.h"
#include "cmd.h"
#include "discover.h"
#include "json_edit.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_WAIT_MS 10000

static int set_enabled(const struct zb_found *f, bool on, struct zb_error *err)
{
	zb_auto(free) char *path = zb_strf("%s/extension.json", f->dir);
	struct zb_buf text = {0}, out = {0};
	struct stat st;
	int rc;

	if (!path)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	rc = zb_read_file(path, (size_t)1 << 20, &text, err);
	if (!rc)
		rc = zb_json_set(&out, zb_buf_str(&text), text.len, "enabled",
				 on ? "true" : "false", err);
	if (!rc && (out.len != text.len ||
		    memcmp(zb_buf_str(&out), zb_buf_str(&text), out.len)))
		rc = zb_write_file_atomic(
			path, out.data, out.len,
			stat(path, &st) ? 0644 : st.st_mode & 0777, err);
	zb_buf_done(&text);
	zb_buf_done(&out);
	return rc;
}

static int toggle(const char *name, bool on)
{
	struct zb_error err = {0};
	struct zb_store store = {0};
	struct zb_found_list list = {0};
	const struct zb_found *f;
	int fd = -1;

	if (zb_store_open(&store, &err) ||
	    zb_discover(&list, &store, NULL, &err) ||
	    zb_discover_installed(&list, name, &f, &err))
		;
	else if (!f->has_manifest)
		zb_fail(&err, ZB_EUSAGE, "%s: %s", f->dir, f->problem);
	else if (zb_store_lock(&store, f->name, true, LOCK_WAIT_MS, &fd, &err))
		;
	else if (f->manifest.enabled == on)
		zb_cmd_say("%s is %s already", f->name,
			   on ? "enabled" : "disabled");
	else if (!set_enabled(f, on, &err))
		zb_cmd_say("%s is %s from the next start of zot", f->name,
			   on ? "enabled" : "disabled");
	if (fd >= 0)
		close(fd);
	zb_found_list_done(&list);
	zb_store_done(&store);
	return err.code ? zb_cmd_fail(&err) : 0;
}

int zb_cmd_ext_enable(const struct zb_args *a)
{
	return toggle(a->arg[0], true);
}

int zb_cmd_ext_disable(const struct zb_args *a)
{
	return toggle(a->arg[0], false);
}
