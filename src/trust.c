/* trust.c - what a project brings along starts only as it was approved.
 *
 * The approval is bound to the real path and to every byte below it: .git too,
 * since an extension may read it, and no link may lead out, since what it
 * leads to is not in the list. A start compares before anything of the
 * directory is parsed. Whoever can write to the project between that and the
 * start is the user, as far as files can tell: sandboxes cannot, the carve-out
 * for .zot/extensions below every grant sees to that. */
#include "config.h"

#include "trust.h"

#include "chain.h"
#include "cleanup.h"
#include "denial.h"
#include "fdutil.h"
#include "path_match.h"
#include "text.h"
#include "tree_copy.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define MANIFEST_MAX ((size_t)1 << 20)
#define LOCK_WAIT_MS 5000
#define MAX_NAMED    10

static int no_memory(struct zb_error *err)
{
	return zb_fail(err, ZB_ELIMIT, "out of memory");
}

/* ---- which one ----------------------------------------------------------- */

static bool is_named(const char *dir)
{
	static const char tail[] = "/.zot/extensions";
	const size_t n = sizeof(tail) - 1, len = strlen(dir);

	return len >= n && !strcmp(dir + len - n, tail);
}

/* Does @path stand in a directory .zot/extensions, by its name or really? Where
 * a project has a link there, both count. */
static bool parent_is(const struct zb_store *s, const char *path)
{
	char cwd[PATH_MAX];
	zb_auto(free) char *full =
		zb_path_join(getcwd(cwd, sizeof(cwd)) ? cwd : "/", path);
	zb_auto(free) char *dir = full ? zb_path_dir(full) : NULL;
	zb_auto(free) char *real = dir ? realpath(dir, NULL) : NULL;
	zb_auto(free) char *own = realpath(s->extensions, NULL);

	return real && (is_named(dir) || is_named(real)) &&
	       !(own && !strcmp(own, real));
}

bool zb_is_project_local(const struct zb_store *s, const char *dir)
{
	zb_auto(free) char *real = realpath(dir, NULL);

	return parent_is(s, dir) || (real && parent_is(s, real));
}

/* The path as a command can have it, or NULL. */
static char *quoted(const char *dir)
{
	struct zb_buf b = {0};

	if (*dir == '-')
		zb_buf_adds(&b, "-- ");
	if (zb_text_shell_quote(&b, dir)) {
		zb_buf_done(&b);
		return NULL;
	}
	return zb_buf_steal(&b);
}

static char *shown(const char *dir)
{
	struct zb_buf b = {0};

	zb_text_escape(&b, dir, strlen(dir), 300);
	return zb_buf_steal(&b);
}

/* ---- may it start -------------------------------------------------------- */

static int refuse(const char *dir, const struct zb_strv *changed,
		  struct zb_error *err)
{
	zb_auto(free) char *name = shown(dir);
	zb_auto(free) char *word = quoted(dir);
	struct zb_buf b = {0};
	size_t i = 0;

	for (; i < changed->n && i < MAX_NAMED && b.len < 900; i++)
		zb_buf_addf(&b, "\n  %s", changed->v[i]);
	if (changed->n > i)
		zb_buf_addf(&b, "\n  and %zu more", changed->n - i);
	zb_fail(err, ZB_EPOLICY, "%s %s. Read it, then: %s%s%s",
		name ? name : "it",
		changed->n
			? "was changed since it was trusted, and does not start"
			: "belongs to a project and is not trusted: it does "
			  "not start",
		word ? "zotbox ext trust "
		     : "rename it (no command can name it)",
		word ? word : "", zb_buf_str(&b));
	zb_buf_done(&b);
	return ZB_EPOLICY;
}

/* A lock that is there and cannot be read is no approval. */
static int read_lock(struct zb_lock *out, const struct zb_store *s,
		     const char *box_name, bool *found, struct zb_error *err)
{
	zb_auto(free) char *path = zb_store_box(s, box_name, "lock.json");
	struct zb_error e = {0};
	int rc;

	*found = false;
	if (!path)
		return no_memory(err);
	rc = zb_lock_read(out, path, &e);
	if (rc == ZB_ESYS && e.sys == ENOENT)
		return 0;
	if (rc == ZB_EUSAGE)
		rc = e.code = ZB_EPOLICY;
	if (rc && err)
		*err = e;
	*found = !rc;
	return rc;
}

int zb_trust_check(const struct zb_store *s, const char *dir,
		   struct zb_strv *changed, struct zb_error *err)
{
	zb_auto(free) char *real = realpath(dir, NULL);
	zb_auto(free) char *name = real ? zb_store_path_box_name(real) : NULL;
	struct zb_strv diff = {0};
	struct zb_lock was = {0}, now = {0};
	bool found = false;
	int rc;

	if (!real)
		return zb_fail_sys(err, errno, "%s", dir);
	rc = name ? read_lock(&was, s, name, &found, err) : no_memory(err);
	if (!rc && !found)
		rc = refuse(dir, &diff, err);
	if (!rc)
		rc = zb_lock_make_whole(&now, real, err);
	if (!rc && zb_lock_diff(&was, &now, &diff))
		rc = no_memory(err);
	if (!rc && diff.n)
		rc = refuse(dir, &diff, err);
	if (changed && diff.n) {
		*changed = diff;
		diff = (struct zb_strv){0};
	}
	zb_strv_done(&diff);
	zb_lock_done(&was);
	zb_lock_done(&now);
	return rc;
}

/* ---- looking and approving ----------------------------------------------- */

void zb_trust_offer_done(struct zb_trust_offer *o)
{
	free(o->real);
	free(o->box_name);
	zb_manifest_done(&o->manifest);
	zb_lock_done(&o->lock);
	zb_strv_done(&o->changed);
	zb_strv_done(&o->warnings);
	*o = (struct zb_trust_offer){0};
}

static int find(struct zb_trust_offer *o, const struct zb_store *s,
		const char *dir, struct zb_error *err)
{
	zb_auto(free) char *name = shown(dir);
	struct stat st;

	o->real = realpath(dir, NULL);
	if (!name)
		return no_memory(err);
	if (!o->real || stat(o->real, &st))
		return zb_fail(err, ZB_EUSAGE, "%s: %s", name, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return zb_fail(err, ZB_EUSAGE, "%s: is no directory", name);
	if (!zb_is_project_local(s, dir))
		return zb_fail(err, ZB_EPOLICY,
			       "%s lies in no .zot/extensions: only what a "
			       "project brings along needs trust. To install "
			       "it: zotbox ext install PATH; to try it: zotbox "
			       "console PATH",
			       name);
	o->box_name = zb_store_path_box_name(o->real);
	return o->box_name ? 0 : no_memory(err);
}

static int read_manifest(struct zb_trust_offer *o, struct zb_error *err)
{
	zb_auto(free) char *path = zb_strf("%s/extension.json", o->real);
	struct zb_buf text = {0};
	int rc = path ? zb_read_file(path, MANIFEST_MAX, &text, err)
		      : no_memory(err);

	if (rc == ZB_ESYS && err && err->sys == ENOENT)
		rc = zb_fail(err, ZB_EUSAGE, "extension.json is missing");
	else if (!rc && (rc = zb_manifest_parse(&o->manifest, zb_buf_str(&text),
						text.len, true, err)))
		zb_wrap(err, "extension.json");
	zb_buf_done(&text);
	if (!rc && !o->manifest.exec)
		rc = zb_fail(err, ZB_EPOLICY,
			     "\"%s\" is theme-only: it starts nothing and "
			     "needs no trust",
			     o->manifest.name);
	else if (!rc && o->manifest.wrapped)
		rc = zb_fail(err, ZB_EPOLICY,
			     "\"%s\" starts zotbox itself, and zotbox starts "
			     "by name only what was installed",
			     o->manifest.name);
	return rc;
}

static int judge_links(struct zb_trust_offer *o, struct zb_error *err)
{
	struct zb_strv links = {0};
	int rc = 0;

	for (size_t i = 0; !rc && i < o->lock.n_files; i++)
		if (o->lock.files[i].kind == 'l' &&
		    zb_strv_add(&links, o->lock.files[i].path))
			rc = no_memory(err);
	if (!rc)
		rc = zb_tree_judge_links(o->real, &links, &o->warnings, err);
	zb_strv_done(&links);
	return rc;
}

/* A lock that cannot be read is no approval, and may be replaced by one. */
static int compare(struct zb_trust_offer *o, const struct zb_store *s,
		   struct zb_error *err)
{
	struct zb_lock was = {0};
	struct zb_error e = {0};
	int rc = read_lock(&was, s, o->box_name, &o->again, &e);

	if (rc && rc != ZB_EPOLICY) {
		if (err)
			*err = e;
		return rc;
	}
	rc = o->again ? zb_lock_diff(&was, &o->lock, &o->changed) : 0;
	zb_lock_done(&was);
	return rc ? no_memory(err) : 0;
}

int zb_trust_look(struct zb_trust_offer *out, const struct zb_store *s,
		  const char *dir, struct zb_error *err)
{
	int rc;

	*out = (struct zb_trust_offer){0};
	rc = find(out, s, dir, err);
	/* First what counts, then what is read: not the other way round. */
	if (!rc)
		rc = zb_lock_make_whole(&out->lock, out->real, err);
	if (!rc)
		rc = read_manifest(out, err);
	if (!rc)
		rc = judge_links(out, err);
	if (!rc)
		rc = compare(out, s, err);
	if (rc)
		zb_trust_offer_done(out);
	return rc;
}

/* @policy as `extends` will have it. */
static char *policy_word(const char *policy, struct zb_error *err)
{
	zb_auto(free) char *word = zb_is_preset(policy)
					   ? zb_strdup(policy)
					   : realpath(policy, NULL);
	struct zb_chain c = {0};

	if (!word || zb_utf8_check(word, strlen(word)) != strlen(word)) {
		zb_fail(err, ZB_EUSAGE,
			"--policy %s: no preset of that name (strict, "
			"standard) and no such file",
			policy);
		return NULL;
	}
	if (zb_chain_add(&c, word, "/", err))
		zb_auto_free(&word), word = NULL;
	zb_chain_done(&c);
	return zb_steal(&word);
}

static int take_away(const struct zb_store *s, const char *box_name,
		     const char *const *files, size_t n, struct zb_error *err)
{
	for (size_t i = 0; i < n; i++) {
		zb_auto(free) char *path = zb_store_box(s, box_name, files[i]);

		if (!path)
			return no_memory(err);
		if (unlink(path) && errno != ENOENT)
			return zb_fail_sys(err, errno, "remove %s", path);
	}
	return 0;
}

static int write_scope(const struct zb_store *s, const char *box_name,
		       const char *policy, char **word, struct zb_error *err)
{
	static const char *const granted = "granted.json";
	zb_auto(free) char *path = zb_store_box(s, box_name, "scope.json");
	zb_auto(free) char *lock = zb_store_box(s, box_name, "lock.json");
	struct zb_buf text = {0};
	int rc = 0;

	if (!path || !lock)
		return no_memory(err);
	/* One without an approval is of a trust that was killed before. */
	if (!policy && !access(path, F_OK) && !access(lock, F_OK))
		return 0;
	*word = policy_word(policy ? policy : "strict", err);
	if (!*word)
		return err ? err->code : ZB_EUSAGE;
	/* What it names is granted now, wherever it led before. */
	rc = take_away(s, box_name, &granted, 1, err);
	if (rc)
		return rc;
	zb_buf_adds(&text, "{\n  \"zotbox\": 1,\n  \"extends\": ");
	zb_json_quote(&text, *word, strlen(*word));
	zb_buf_adds(&text, "\n}\n");
	rc = text.failed ? no_memory(err)
			 : zb_write_file_atomic(path, text.data, text.len, 0600,
						err);
	zb_buf_done(&text);
	return rc;
}

static char *now_rfc3339(void)
{
	struct timespec t;
	struct zb_buf b = {0};

	clock_gettime(CLOCK_REALTIME, &t);
	zb_time_rfc3339((int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000, &b);
	return zb_buf_steal(&b);
}

/* The lock is written last: it is the approval. */
static int write_lock(const struct zb_store *s, const struct zb_trust_offer *o,
		      const char *policy, struct zb_error *err)
{
	zb_auto(free) char *path = zb_store_box(s, o->box_name, "lock.json");
	zb_auto(free) char *now = now_rfc3339();
	zb_auto(free) char *word = zb_strdup(policy);
	struct zb_lock l = o->lock;

	if (!path || !now)
		return no_memory(err);
	l.source = o->real;
	l.commit = NULL;
	l.policy = word;
	l.installed = now;
	return zb_lock_write(&l, path, err);
}

int zb_trust_give(const struct zb_store *s, const struct zb_trust_offer *o,
		  const char *policy, struct zb_error *err)
{
	zb_auto(free) char *box = zb_store_box(s, o->box_name, "");
	zb_auto(free) char *path = zb_store_box(s, o->box_name, "path");
	zb_auto(free) char *line = zb_strf("%s\n", o->real);
	zb_auto(free) char *word = NULL;
	zb_auto(fd) int lock = -1;
	int rc;

	if (!box || !path || !line)
		return no_memory(err);
	/* First the lock: nobody takes an empty box for a left-over. */
	rc = zb_store_lock(s, o->box_name, true, LOCK_WAIT_MS, &lock, err);
	if (!rc)
		rc = zb_make_dirs(box, 0700, err);
	if (!rc)
		rc = zb_write_file_atomic(path, line, strlen(line), 0600, err);
	if (!rc)
		rc = write_scope(s, o->box_name, policy, &word, err);
	if (!rc)
		rc = write_lock(s, o, word, err);
	return rc;
}

int zb_trust_take(const struct zb_store *s, const char *dir,
		  struct zb_error *err)
{
	/* The approval first: a kill leaves no trust without it. */
	static const char *const files[] = {"lock.json", "scope.json",
					    "granted.json", "meant.json"};
	char cwd[PATH_MAX];
	zb_auto(free) char *real = realpath(dir, NULL);
	zb_auto(free) char *name = NULL;
	zb_auto(free) char *lock = NULL;
	zb_auto(fd) int fd = -1;
	int rc;

	if (!real)
		real = zb_path_join(getcwd(cwd, sizeof(cwd)) ? cwd : "/", dir);
	name = real ? zb_store_path_box_name(real) : NULL;
	lock = name ? zb_store_box(s, name, "lock.json") : NULL;
	if (!lock)
		return no_memory(err);
	if (access(lock, F_OK)) {
		zb_auto(free) char *what = shown(dir);

		return zb_fail(err, ZB_EPOLICY, "%s is not trusted",
			       what ? what : "it");
	}
	rc = zb_store_lock(s, name, true, LOCK_WAIT_MS, &fd, err);
	return rc ? rc : take_away(s, name, files, ZB_ARRAY_LEN(files), err);
}
