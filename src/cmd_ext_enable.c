/* cmd_ext_enable.c - zotbox ext enable and ext disable: one value of one
 * manifest; every other byte of the file stays. */
#include "cleanup.h"
#include "cmd.h"
#include "discover.h"
#include "json_edit.h"
#include "staging.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_WAIT_MS 10000

/* The file itself, where a link leads to it; with its mode and owner. */
static int replace(const struct zb_store *store, const char *path,
		   const struct zb_buf *text, struct zb_error *err)
{
	struct stat st, now;
	int rc;

	if (stat(path, &st))
		return zb_fail_sys(err, errno, "%s", path);
	rc = zb_replace_file(store, path, text, st.st_mode & 0777, err);
	if (!rc && !stat(path, &now) &&
	    (now.st_uid != st.st_uid || now.st_gid != st.st_gid) &&
	    lchown(path, st.st_uid, st.st_gid))
		zb_cmd_say("warning: the owner of %s changed: %s", path,
			   strerror(errno));
	return rc;
}

/* *@was: it was so already. */
static int set_enabled(const struct zb_store *store, const struct zb_found *f,
		       bool on, bool *was, struct zb_error *err)
{
	zb_auto(free) char *name = zb_strf("%s/extension.json", f->dir);
	zb_auto(free) char *path = name ? realpath(name, NULL) : NULL;
	struct zb_buf text = {0}, out = {0};
	int rc;

	if (!path)
		return zb_fail_sys(err, errno, "%s/extension.json", f->dir);
	rc = zb_read_file(path, (size_t)1 << 20, &text, err);
	if (!rc)
		rc = zb_json_toggle(&out, zb_buf_str(&text), text.len,
				    "enabled", on, err);
	*was = !rc && out.len == text.len &&
	       !memcmp(zb_buf_str(&out), zb_buf_str(&text), out.len);
	if (!rc && !*was)
		rc = replace(store, path, &out, err);
	zb_buf_done(&text);
	zb_buf_done(&out);
	return rc;
}

static int toggle_found(const struct zb_store *store, const struct zb_found *f,
			bool on, struct zb_error *err)
{
	bool was = false;
	int fd = -1, rc;

	if (!f->has_manifest)
		return zb_fail(err, ZB_EUSAGE, "%s: %s", f->dir,
			       f->problem ? f->problem : "no manifest");
	rc = zb_store_lock(store, f->name, true, LOCK_WAIT_MS, &fd, err);
	if (!rc)
		rc = set_enabled(store, f, on, &was, err);
	zb_forget_lock(store, f->name, fd);
	if (!rc && was)
		zb_cmd_say("%s is %s already", f->name,
			   on ? "enabled" : "disabled");
	else if (!rc)
		zb_cmd_say("%s is %s from the next start of zot", f->name,
			   on ? "enabled" : "disabled");
	return rc;
}

static int toggle(const char *name, bool on)
{
	struct zb_error err = {0};
	struct zb_store store = {0};
	struct zb_found_list list = {0};
	const struct zb_found *f;

	if (!zb_store_open(&store, &err)) {
		zb_recover(&store);
		if (!zb_discover(&list, &store, NULL, &err) &&
		    !zb_discover_installed(&list, name, &f, &err))
			toggle_found(&store, f, on, &err);
	}
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
