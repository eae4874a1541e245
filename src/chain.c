/* chain.c - reading a chain of scope files. */
#include "config.h"

#include "chain.h"

#include "cleanup.h"
#include "hostfs.h"
#include "path_match.h"
#include "store.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SCOPE ((size_t)1 << 20)
#define MAX_CHAIN 8

void zb_chain_done(struct zb_chain *c)
{
	zb_scope_done(&c->scope);
	zb_strv_done(&c->files);
	zb_buf_done(&c->texts);
	free(c->preset);
	*c = (struct zb_chain){0};
}

bool zb_is_preset(const char *name)
{
	static const char *const names[] = {"strict", "standard", "observe"};

	for (size_t i = 0; i < ZB_ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

bool zb_scope_says_more(const struct zb_scope *s)
{
	const struct zb_rules *lists[] = {
		&s->fs_read,	 &s->fs_write,	 &s->fs_exec,  &s->fs_deny,
		&s->net_connect, &s->net_listen, &s->net_unix, &s->env_pass,
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(lists); i++)
		if (lists[i]->set)
			return true;
	for (size_t i = 0; i < ZB_VERB_COUNT; i++)
		if (s->verbs[i].set)
			return true;
	for (size_t i = 0; i < ZB_LIMIT_COUNT; i++)
		if (s->limits[i].set)
			return true;
	return s->state_set || s->n_env_set || s->intercept_set ||
	       s->on_failure_set || s->ledger_set;
}

static int out_of_memory(struct zb_error *err)
{
	return zb_fail(err, ZB_ELIMIT, "out of memory reading scope files");
}

/* Parse @text as @as, and lay it over the chain. */
static int lay(struct zb_chain *c, struct zb_scope *s, struct zb_error *err)
{
	/* One that only extends adds no word to the policy's name. */
	if (!zb_scope_says_more(s) && c->scope.file) {
		free(s->file);
		s->file = NULL;
	} else {
		c->more = true;
	}
	return zb_scope_merge(&c->scope, s, err);
}

static int remember(struct zb_chain *c, const struct zb_buf *text,
		    struct zb_error *err)
{
	return zb_buf_add(&c->texts, zb_buf_str(text), text->len) ||
			       zb_buf_addc(&c->texts, '\0')
		       ? out_of_memory(err)
		       : 0;
}

static int add(struct zb_chain *c, const char *name, const char *dir,
	       unsigned depth, struct zb_error *err);

static int add_preset(struct zb_chain *c, const char *name, unsigned depth,
		      struct zb_error *err)
{
	zb_auto(free) char *as = zb_strf("%s.json", name);
	struct zb_buf text = {0};
	struct zb_scope s = {0};
	int rc = as ? zb_policy_text(name, &text, err) : out_of_memory(err);

	if (!rc)
		rc = zb_scope_parse(&s, as, zb_buf_str(&text), text.len, NULL,
				    err);
	if (!rc && s.extends)
		rc = add(c, s.extends, "/", depth + 1, err);
	if (!rc)
		rc = remember(c, &text, err);
	if (!rc) {
		free(c->preset);
		c->preset = zb_strdup(name);
		rc = c->preset ? zb_scope_merge(&c->scope, &s, err)
			       : out_of_memory(err);
	}
	zb_scope_done(&s);
	zb_buf_done(&text);
	return rc;
}

/* The file at @path, parsed; @dir gets its directory. */
static int parse_file(struct zb_chain *c, const char *path, const char *as,
		      struct zb_scope *out, struct zb_error *err)
{
	zb_auto(free) char *real = zb_host_resolve("", path, NULL);
	struct zb_buf text = {0};
	int rc = zb_read_file(path, MAX_SCOPE, &text, err);

	if (rc == ZB_ESYS) {
		/* A word about the command line, not about the machine. */
		if (err)
			err->code = ZB_EUSAGE;
		rc = ZB_EUSAGE;
	}
	if (!rc)
		rc = zb_scope_parse(out, as, zb_buf_str(&text), text.len, NULL,
				    err);
	if (!rc)
		rc = remember(c, &text, err);
	if (!rc && (!real || zb_strv_add(&c->files, real)))
		rc = out_of_memory(err);
	if (rc)
		zb_scope_done(out);
	zb_buf_done(&text);
	return rc;
}

/* A name that is a path: where it is. */
static char *locate(const char *name, const char *dir)
{
	const char *home = getenv("HOME");

	if (!strncmp(name, "~/", 2) && home)
		return zb_path_join(home, name + 2);
	return zb_path_join(dir, name);
}

static int add(struct zb_chain *c, const char *name, const char *dir,
	       unsigned depth, struct zb_error *err)
{
	zb_auto(free) char *path = NULL;
	zb_auto(free) char *at = NULL;
	struct zb_scope s = {0};
	int rc;

	if (depth > MAX_CHAIN)
		return zb_fail(err, ZB_EUSAGE,
			       "scope files extend each other in a circle, or "
			       "more than %d deep, at %s",
			       MAX_CHAIN, name);
	if (zb_is_preset(name))
		return add_preset(c, name, depth, err);
	if (!strchr(name, '/') && !strstr(name, ".json"))
		return zb_fail(err, ZB_EUSAGE,
			       "no such policy: %s; there are strict and "
			       "standard, or the path of a scope file",
			       name);
	path = locate(name, dir);
	at = path ? zb_path_dir(path) : NULL;
	if (!at)
		return out_of_memory(err);
	rc = parse_file(c, path, path, &s, err);
	if (!rc)
		rc = add(c, s.extends ? s.extends : "strict", at, depth + 1,
			 err);
	if (!rc)
		rc = lay(c, &s, err);
	zb_scope_done(&s);
	return rc;
}

int zb_chain_add(struct zb_chain *c, const char *name, const char *dir,
		 struct zb_error *err)
{
	return add(c, name, dir, 0, err);
}

int zb_chain_add_file(struct zb_chain *c, const char *path, const char *as,
		      const char *base, struct zb_error *err)
{
	zb_auto(free) char *dir = zb_path_dir(path);
	struct zb_scope s = {0};
	int rc = dir ? parse_file(c, path, as, &s, err) : out_of_memory(err);

	if (rc)
		return rc;
	if (base && s.extends && strcmp(base, s.extends) != 0)
		rc = zb_fail(err, ZB_EUSAGE,
			     "%s extends \"%s\", and --policy says \"%s\": "
			     "leave one of them out",
			     as, s.extends, base);
	else if (!base)
		rc = zb_chain_add(c, s.extends ? s.extends : "strict", dir,
				  err);
	if (!rc)
		rc = lay(c, &s, err);
	zb_scope_done(&s);
	return rc;
}
