/* discover.c - reading the extension directories. */
#include "config.h"

#include "chain.h"
#include "cleanup.h"
#include "discover.h"
#include "lock.h"
#include "staging.h"
#include "text.h"
#include "trust.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_MAX ((size_t)1 << 20)

const char *zb_found_scope_name(enum zb_found_scope s)
{
	static const char *const names[] = {"project", "global", "path"};

	return names[s];
}

void zb_found_clear(struct zb_found *f)
{
	if (!f)
		return;
	free(f->name);
	free(f->dir);
	free(f->link);
	free(f->policy);
	free(f->problem);
	free(f->untrusted);
	zb_manifest_done(&f->manifest);
	*f = (struct zb_found){0};
}

void zb_found_list_done(struct zb_found_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		zb_found_clear(&l->v[i]);
	free(l->v);
	*l = (struct zb_found_list){0};
}

char *zb_box_policy(const struct zb_store *store, const char *box)
{
	zb_auto(free) char *path = zb_store_box(store, box, "scope.json");
	struct zb_chain c = {0};
	char *word = NULL;

	if (path && !zb_chain_add_file(&c, path, "scope.json", NULL, NULL) &&
	    c.preset)
		word = zb_strf("%s%s", c.preset, c.more ? "+scope" : "");
	zb_chain_done(&c);
	return word ? word : zb_strdup("unknown");
}

static bool is_file(const char *dir, const char *name)
{
	zb_auto(free) char *path = zb_strf("%s/%s", dir, name);
	struct stat st;

	return path && !stat(path, &st) && S_ISREG(st.st_mode);
}

static bool is_this_program(const char *path)
{
	zb_auto(free) char *self = zb_own_program();
	struct stat a, b;

	return self && !stat(self, &a) && !stat(path, &b) &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool in_box(const struct zb_store *store, const char *name,
		   const char *file)
{
	zb_auto(free) char *path = zb_store_box(store, name, file);

	return path && !access(path, F_OK);
}

bool zb_found_is_wrapping(const struct zb_found *f)
{
	const char *base = strrchr(f->dir, '/');

	return f->scope == ZB_FOUND_GLOBAL && f->has_manifest &&
	       f->manifest.wrapped && !f->link && base &&
	       !strcmp(base + 1, f->name);
}

/* Why `zotbox wrap` would not take @f for what was installed; NULL: it does,
 * as far as can be seen from here. */
static const char *not_ours(const struct zb_found *f,
			    const struct zb_store *store)
{
	const char *base = strrchr(f->dir, '/');

	if (f->scope != ZB_FOUND_GLOBAL)
		return "it says that zotbox starts it, and zotbox starts only "
		       "what was installed: it does not start";
	if (f->link)
		return "a link in the place of what was installed: it does "
		       "not start";
	if (!base || strcmp(base + 1, f->name) != 0)
		return "its directory has another name than it was installed "
		       "under: it does not start";
	if (zb_is_marked(store, f->name))
		return "not installed to the end, or half removed: install "
		       "it again";
	if (!in_box(store, f->name, "manifest.json") ||
	    !in_box(store, f->name, "scope.json"))
		return "its scope or its shipped manifest is gone: it does "
		       "not start; install it again";
	return NULL;
}

/* A manifest that says `zotbox wrap NAME`. */
static void look_at_wrapped(struct zb_found *f, const struct zb_store *store)
{
	const char *why = not_ours(f, store);

	if (access(f->manifest.exec, F_OK)) {
		f->wrapped = !why;
		if (!why)
			f->problem = zb_strf("zotbox is no longer at %s: "
					     "zotbox ext doctor --repair",
					     f->manifest.exec);
	} else if (!is_this_program(f->manifest.exec)) {
		f->problem = zb_strf("%s is not this zotbox, and nothing is "
				     "known of it: zotbox ext doctor %s "
				     "--repair",
				     f->manifest.exec, f->name);
		f->policy = zb_strdup("unconfined");
		return;
	} else {
		f->wrapped = !why;
	}
	if (why)
		f->problem = zb_strdup(why);
	f->policy = f->wrapped ? zb_box_policy(store, f->name) : zb_strdup("-");
	if (!f->problem && f->policy && !strcmp(f->policy, "unknown"))
		f->problem = zb_strdup("its scope cannot be read: it does not "
				       "start");
}

/* The manifest and what follows from it; trouble becomes @f->problem. What we
 * refuse to read may still be good enough for zot to start it. */
static void read_manifest(struct zb_found *f, const struct zb_store *store)
{
	zb_auto(free) char *path = zb_strf("%s/extension.json", f->dir);
	struct zb_buf text = {0};
	struct zb_error err = {0};
	bool theme = is_file(f->dir, "theme.json") ||
		     is_file(f->dir, "themes/theme.json");
	const char *policy = "unconfined";

	if (!path || zb_read_file(path, MANIFEST_MAX, &text, &err)) {
		if (err.sys == ENOENT)
			policy = "-";
		f->problem = err.sys == ENOENT
				     ? zb_strdup("missing extension.json")
				     : zb_strf("read manifest: %s", err.msg);
	} else if (zb_manifest_parse(&f->manifest, zb_buf_str(&text), text.len,
				     theme, &err)) {
		f->problem = zb_strdup(err.msg);
	} else {
		f->has_manifest = true;
		f->theme_only = !f->manifest.exec;
		free(f->name);
		f->name = zb_strdup(f->manifest.name);
	}
	zb_buf_done(&text);
	if (f->has_manifest && f->manifest.wrapped)
		look_at_wrapped(f, store);
	else
		f->policy = zb_strdup(f->theme_only ? "-" : policy);
}

static void look_at_trust(struct zb_found *f, const struct zb_store *store)
{
	struct zb_error err = {0};
	struct zb_strv changed = {0};

	if (zb_trust_check(store, f->dir, &changed, &err)) {
		/* Of a list of files the first line is enough here. */
		err.msg[strcspn(err.msg, "\n")] = '\0';
		f->untrusted = zb_strdup(err.msg);
		f->changed = changed.n;
	}
	zb_strv_done(&changed);
}

void zb_found_compare(struct zb_found *f, const struct zb_store *store)
{
	zb_auto(free) char *path = NULL;
	zb_auto(free) char *shipped = NULL;
	struct zb_lock lock = {0};
	struct zb_strv changed = {0};
	struct zb_error err = {0};

	if (!f->wrapped || f->problem)
		return;
	path = zb_store_box(store, f->name, "lock.json");
	shipped = zb_store_box(store, f->name, "manifest.json");
	if (!path || !shipped)
		return;
	if (zb_lock_read(&lock, path, &err) ||
	    zb_lock_compare(&lock, f->dir, shipped, &changed, &err))
		f->problem = zb_strf("does not start: %s", err.msg);
	else if (changed.n)
		f->problem = zb_strf("changed since it was installed, does not "
				     "start: zotbox ext update %s",
				     f->name);
	f->changed = changed.n;
	zb_strv_done(&changed);
	zb_lock_done(&lock);
}

/* What kind of entry it is; a link is followed and shown as one. */
static void look_at(struct zb_found *f, const struct zb_store *store)
{
	char target[4096];
	ssize_t n = readlink(f->dir, target, sizeof(target) - 1);
	struct stat st;

	if (n > 0) {
		target[n] = '\0';
		f->link = zb_strdup(target);
	}
	if (stat(f->dir, &st))
		f->problem = zb_strf(f->link ? "broken link: %s" : "%s",
				     strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		f->problem = zb_strdup("not a directory");
	else if (access(f->dir, R_OK | X_OK))
		f->problem = zb_strf("not readable: %s", strerror(errno));
	if (f->problem)
		f->policy = zb_strdup("-");
	else
		read_manifest(f, store);
	if (f->scope == ZB_FOUND_PROJECT && f->has_manifest && !f->theme_only)
		look_at_trust(f, store);
}

static struct zb_found *append(struct zb_found_list *l)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 16;
		struct zb_found *v = realloc(l->v, cap * sizeof(*v));

		if (!v)
			return NULL;
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n] = (struct zb_found){0};
	return &l->v[l->n++];
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names in @dir, sorted; *@why: errno if it cannot be read. */
static int entries(const char *dir, struct zb_strv *out, int *why)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int rc = 0;

	*why = d || errno == ENOENT || errno == ENOTDIR ? 0 : errno;
	while (d && !rc && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			rc = zb_strv_add(out, e->d_name);
	if (d)
		closedir(d);
	if (!rc && out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_bytes);
	return rc;
}

static void mark_shadowed(struct zb_found_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		for (size_t j = 0; j < i; j++)
			if (l->v[j].has_manifest && l->v[i].has_manifest &&
			    !strcmp(l->v[i].name, l->v[j].name))
				l->v[i].shadowed = true;
}

static int scan_entry(struct zb_found_list *out, const struct zb_store *store,
		      const char *dir, const char *name,
		      enum zb_found_scope scope)
{
	struct zb_found *f = append(out);

	if (!f)
		return ZB_ELIMIT;
	f->scope = scope;
	f->name = zb_strdup(name);
	f->dir = zb_strf("%s/%s", dir, name);
	if (!f->name || !f->dir)
		return ZB_ELIMIT;
	look_at(f, store);
	return 0;
}

/* A directory that cannot be read is a row itself. */
static int scan_failed(struct zb_found_list *out, const char *dir,
		       enum zb_found_scope scope, int why)
{
	struct zb_found *f = append(out);

	if (!f)
		return ZB_ELIMIT;
	f->scope = scope;
	f->name = zb_strdup("extensions");
	f->dir = zb_strdup(dir);
	f->policy = zb_strdup("-");
	f->problem = zb_strf("not readable: %s", strerror(why));
	return f->name && f->dir && f->policy && f->problem ? 0 : ZB_ELIMIT;
}

static int scan(struct zb_found_list *out, const struct zb_store *store,
		const char *dir, enum zb_found_scope scope,
		struct zb_error *err)
{
	struct zb_strv names = {0};
	int why, rc = entries(dir, &names, &why);

	if (!rc && zb_is_short(why)) {
		zb_strv_done(&names);
		return zb_fail_sys(err, why, "list %s", dir);
	}
	if (!rc && why)
		rc = scan_failed(out, dir, scope, why);
	for (size_t i = 0; !rc && i < names.n; i++)
		rc = scan_entry(out, store, dir, names.v[i], scope);
	zb_strv_done(&names);
	return rc ? zb_fail(err, rc, "list %s: out of memory", dir) : 0;
}

int zb_discover(struct zb_found_list *out, const struct zb_store *store,
		const char *cwd, struct zb_error *err)
{
	zb_auto(free) char *local =
		cwd ? zb_strf("%s/.zot/extensions", cwd) : NULL;
	int rc = 0;

	*out = (struct zb_found_list){0};
	if (local)
		rc = scan(out, store, local, ZB_FOUND_PROJECT, err);
	if (!rc)
		rc = scan(out, store, store->extensions, ZB_FOUND_GLOBAL, err);
	if (rc) {
		zb_found_list_done(out);
		return rc;
	}
	mark_shadowed(out);
	return 0;
}

int zb_discover_one(struct zb_found *out, const struct zb_store *store,
		    const char *dir, struct zb_error *err)
{
	*out = (struct zb_found){.scope = ZB_FOUND_GLOBAL};
	out->name = zb_strdup(dir);
	out->dir = zb_strf("%s/%s", store->extensions, dir);
	if (!out->dir || !out->name) {
		zb_found_clear(out);
		return zb_fail(err, ZB_ELIMIT, "%s: out of memory", dir);
	}
	look_at(out, store);
	return 0;
}

int zb_discover_path(struct zb_found *out, const struct zb_store *store,
		     const char *path, struct zb_error *err)
{
	size_t n = strlen(path), end;

	while (n > 1 && path[n - 1] == '/')
		n--;
	end = n;
	while (n && path[n - 1] != '/')
		n--;
	*out = (struct zb_found){.scope = ZB_FOUND_PATH};
	out->name = zb_strndup(path + n, end - n);
	out->dir = zb_strdup(path);
	if (!out->dir || !out->name) {
		zb_found_clear(out);
		return zb_fail(err, ZB_ELIMIT, "%s: out of memory", path);
	}
	look_at(out, store);
	return 0;
}

int zb_discover_installed(const struct zb_found_list *l, const char *name,
			  const struct zb_found **out, struct zb_error *err)
{
	const struct zb_found *hit = NULL;

	if (!zb_name_valid(name))
		return zb_fail(err, ZB_EUSAGE,
			       "\"%s\" is not an extension's name (letters, "
			       "digits, . _ -, at most 64, starting with a "
			       "letter or digit, no dot at the end)",
			       name);
	for (size_t i = 0; i < l->n; i++) {
		const struct zb_found *f = &l->v[i];
		const char *base = strrchr(f->dir, '/');

		if (f->scope != ZB_FOUND_GLOBAL)
			continue;
		if (!strcmp(f->name, name)) {
			if (hit && !strcmp(hit->name, name))
				return zb_fail(err, ZB_EUSAGE,
					       "two extensions are called "
					       "\"%s\": %s and %s; remove one "
					       "by hand",
					       name, hit->dir, f->dir);
			hit = f;
		} else if (!hit && base && !strcmp(base + 1, name)) {
			hit = f;
		}
	}
	if (!hit)
		return zb_fail(err, ZB_EPOLICY,
			       "no extension \"%s\" is installed (see zotbox "
			       "ext list)",
			       name);
	*out = hit;
	return 0;
}

static void member(struct zb_buf *out, const char *key, const char *value)
{
	zb_buf_addf(out, "\"%s\":", key);
	zb_json_quote_or_null(out, value);
	zb_buf_addc(out, ',');
}

int zb_found_json(const struct zb_found *f, struct zb_buf *out)
{
	const struct zb_manifest *m = &f->manifest;
	const char *problem = f->problem ? f->problem : f->untrusted;

	member(out, "name", f->name);
	member(out, "scope", zb_found_scope_name(f->scope));
	member(out, "version", m->version);
	zb_buf_addf(out, "\"enabled\":%s,",
		    f->has_manifest && m->enabled ? "true" : "false");
	member(out, "language", m->language);
	member(out, "description", m->description);
	member(out, "dir", f->dir);
	zb_buf_addf(out, "\"wrapped\":%s,", f->wrapped ? "true" : "false");
	member(out, "policy", f->policy);
	zb_buf_adds(out, "\"problem\":");
	zb_json_quote_or_null(out, problem);
	return out->failed ? ZB_ELIMIT : 0;
}

/* ---- what paths have left ------------------------------------------------ */

#define MAX_LEFT 100

/* The path that the box @name is for, if nothing is there any more. */
static char *gone_path(const struct zb_store *store, const char *name)
{
	zb_auto(free) char *file = zb_store_box(store, name, "path");
	struct zb_buf text = {0};
	struct stat st;
	char *path = NULL;

	if (file && !zb_read_file(file, PATH_MAX + 1, &text, NULL) &&
	    text.len > 1 && text.data[text.len - 1] == '\n')
		path = zb_strndup(text.data, text.len - 1);
	zb_buf_done(&text);
	if (path &&
	    (!lstat(path, &st) || (errno != ENOENT && errno != ENOTDIR)))
		free(zb_steal(&path));
	return path;
}

int zb_discover_left(const struct zb_store *store, struct zb_strv *out)
{
	DIR *d = opendir(store->boxes);
	struct dirent *e;
	int rc = 0;

	while (!rc && d && out->n < MAX_LEFT && (e = readdir(d))) {
		char *path = e->d_name[0] == '@' ? gone_path(store, e->d_name)
						 : NULL;

		if (path)
			rc = zb_strv_take(out, path);
	}
	if (d)
		closedir(d);
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_bytes);
	return rc;
}
