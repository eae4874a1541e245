/* swap.c - the journal of an update; see swap.h.
 *
 *	zotbox/NAME/swap/id       which directory is the new one
 *	zotbox/NAME/swap/ext      the new one, until it changes places with the
 *				  old one
 *	zotbox/NAME/swap/lock.json and the like: files of the box as they were
 *
 * Undoing asks the directory in place what it is, not a note of how far the
 * swap had come: so it can itself be killed and begun again. */
#include "config.h"

#include "swap.h"

#include "bring.h"
#include "cleanup.h"
#include "fdutil.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define LOCK_WAIT_MS 10000

static const char *const described[] = {"manifest.json", "lock.json",
					"granted.json", "scope.json"};

static int no_memory(struct zb_error *err)
{
	return zb_fail(err, ZB_ELIMIT, "out of memory");
}

/* The two directories change places at once. */
static int exchange(const char *a, const char *b, struct zb_error *err)
{
	if (!syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE))
		return 0;
	if (errno == EXDEV)
		return zb_fail(err, ZB_ESYS,
			       "%s and %s are on different file systems: they "
			       "cannot change places at once",
			       a, b);
	if (errno == EINVAL || errno == ENOSYS)
		return zb_fail(err, ZB_EUNSUPPORTED,
			       "the file system of %s cannot let two "
			       "directories change places; remove the "
			       "extension and install it again",
			       b);
	return zb_fail_sys(err, errno, "exchange %s and %s", a, b);
}

/* Files of @from that are there, into @to. */
static int copy_described(const char *from, const char *to,
			  struct zb_error *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < ZB_ARRAY_LEN(described); i++) {
		struct zb_buf b = {0};
		bool found;

		rc = zb_slurp_large(from, described[i], &b, &found, err);
		if (!rc && found)
			rc = zb_put(to, described[i], &b, 0600, err);
		zb_buf_done(&b);
	}
	return rc;
}

/* ---- the journal --------------------------------------------------------- */

struct paths {
	char *box, *journal, *old, *id, *ext;
};

static void paths_done(struct paths *p)
{
	free(p->box);
	free(p->journal);
	free(p->old);
	free(p->id);
	free(p->ext);
}

static int paths_of(struct paths *p, const struct zb_store *s, const char *name,
		    struct zb_error *err)
{
	p->box = zb_store_box(s, name, "");
	p->journal = zb_store_box(s, name, "swap");
	p->old = zb_store_box(s, name, "swap/ext");
	p->id = zb_store_box(s, name, "swap/id");
	p->ext = zb_strf("%s/%s", s->extensions, name);
	return p->box && p->journal && p->old && p->id && p->ext
		       ? 0
		       : no_memory(err);
}

/* Everything that undoing needs, in the stage, then at once in the box. */
static int begin(const struct paths *p, const struct zb_staging *st,
		 const char *new_ext, struct zb_error *err)
{
	zb_auto(free) char *made = zb_strf("%s/journal", st->dir);
	zb_auto(free) char *ext = made ? zb_strf("%s/ext", made) : NULL;
	struct zb_buf id = {0};
	char text[ZB_IDENTITY_MAX];
	int rc;

	if (!ext)
		return no_memory(err);
	if (!zb_identity(new_ext, text))
		return zb_fail_sys(err, errno, "look at %s", new_ext);
	if (mkdir(made, 0700))
		return zb_fail_sys(err, errno, "mkdir %s", made);
	zb_buf_adds(&id, text);
	rc = copy_described(p->box, made, err);
	if (!rc)
		rc = zb_put(made, "id", &id, 0600, err);
	zb_buf_done(&id);
	if (!rc && (rename(new_ext, ext) || rename(made, p->journal)))
		rc = zb_fail_sys(err, errno, "rename to %s", p->journal);
	return rc;
}

/* The old state goes out of the box: from here on the new one counts. */
static int commit(const struct paths *p, const struct zb_store *s,
		  const struct zb_staging *st, struct zb_error *err)
{
	zb_auto(free) char *to = zb_strf("%s/old", st->dir);
	int rc = to ? zb_sync_dir(s->extensions, err) : no_memory(err);

	if (!rc)
		rc = zb_sync_dir(p->box, err);
	if (!rc && rename(p->journal, to))
		rc = zb_fail_sys(err, errno, "rename %s", p->journal);
	if (!rc)
		(void)zb_sync_dir(p->box, NULL);
	return rc;
}

int zb_swap(const struct zb_store *s, const struct zb_staging *st,
	    const char *name, const char *new_ext, const char *new_box,
	    struct zb_error *err)
{
	struct paths p = {0};
	int rc = paths_of(&p, s, name, err);

	if (!rc)
		rc = begin(&p, st, new_ext, err);
	if (!rc)
		rc = exchange(p.old, p.ext, err);
	if (!rc)
		rc = copy_described(new_box, p.box, err);
	if (!rc)
		rc = commit(&p, s, st, err);
	if (rc)
		zb_undo_swap(s, name, NULL);
	paths_done(&p);
	return rc;
}

/* ---- undoing ------------------------------------------------------------- */

bool zb_is_swapping(const struct zb_store *s, const char *name)
{
	zb_auto(free) char *journal = zb_store_box(s, name, "swap");

	return journal && !access(journal, F_OK);
}

/* Is what is in place the new directory? */
static bool is_new(const struct paths *p)
{
	struct zb_buf id = {0};
	char now[ZB_IDENTITY_MAX];
	bool same = !zb_read_file(p->id, sizeof(now), &id, NULL) &&
		    zb_identity(p->ext, now) && !strcmp(zb_buf_str(&id), now);

	zb_buf_done(&id);
	return same;
}

int zb_undo_swap(const struct zb_store *s, const char *name,
		 struct zb_error *err)
{
	struct paths p = {0};
	int rc = paths_of(&p, s, name, err);

	if (!rc && !access(p.journal, F_OK)) {
		if (is_new(&p))
			rc = exchange(p.old, p.ext, err);
		if (!rc)
			rc = copy_described(p.journal, p.box, err);
		if (!rc)
			rc = zb_sync_dir(p.box, err);
		if (!rc)
			rc = zb_discard(s, p.journal, err);
	}
	paths_done(&p);
	return rc;
}

int zb_settle_swap(const struct zb_store *s, const char *name,
		   struct zb_error *err)
{
	zb_auto(fd) int fd = -1;
	int rc;

	if (!zb_is_swapping(s, name))
		return 0;
	rc = zb_store_lock(s, name, true, LOCK_WAIT_MS, &fd, err);
	return rc ? rc : zb_undo_swap(s, name, err);
}
