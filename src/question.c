/* question.c - from a word on the command line to a plan, without a start. */
#include "config.h"

#include "question.h"

#include "cleanup.h"
#include "discover.h"
#include "json_scan.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int find_installed(struct zb_question *q, const char *word,
			  struct zb_error *err)
{
	struct zb_found_list list = {0};
	const struct zb_found *f = NULL;
	int rc = zb_discover(&list, &q->store, NULL, err);

	if (!rc)
		rc = zb_discover_installed(&list, word, &f, err);
	if (!rc && !(q->name = zb_strdup(f->name)))
		rc = zb_fail(err, ZB_ELIMIT, "out of memory");
	zb_found_list_done(&list);
	return rc;
}

int zb_question_open(struct zb_question *q, const char *word,
		     struct zb_error *err)
{
	zb_auto(free) char *cwd = getcwd(NULL, 0);
	int rc;

	*q = (struct zb_question){.prep = {.lock_fds = {-1, -1}}};
	rc = zb_store_open(&q->store, err);
	if (rc)
		return rc;
	q->project = cwd ? realpath(cwd, NULL) : NULL;
	if (!strchr(word, '/'))
		return find_installed(q, word, err);
	q->path = realpath(word, NULL);
	if (!q->path)
		return zb_fail(err, ZB_EUSAGE,
			       "there is no extension at %s: a path is the "
			       "directory of an extension.json",
			       word);
	return 0;
}

int zb_question_prepare(struct zb_question *q, const char *policy,
			const char *scope, struct zb_error *err)
{
	struct zb_target t = {
		.name = q->name,
		.path = q->path,
		.project = q->project,
		.policy = policy,
		.scope = scope,
		.still = true,
		.passing = true,
	};

	int rc = zb_prepare(&q->prep, &q->store, &t, err);

	/* Nothing is started: nobody is to wait for it. */
	if (!rc)
		zb_prepared_started(&q->prep);
	return rc;
}

void zb_question_done(struct zb_question *q)
{
	zb_prepared_done(&q->prep);
	zb_store_done(&q->store);
	free(q->name);
	free(q->path);
	free(q->project);
	*q = (struct zb_question){.prep = {.lock_fds = {-1, -1}}};
}

char *zb_question_path(const struct zb_question *q, const char *word)
{
	const struct zb_plan *p = &q->prep.plan;
	const struct {
		const char *name, *value;
	} vars[] = {
		{"~", p->home},
		{"${home}", p->home},
		{"${project}", p->project},
		{"${extension_dir}", p->extension_dir},
		{"${data_dir}", p->data_dir},
		{"${zot_home}", p->zot_home},
		{"${tmp}", "/tmp"},
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(vars); i++) {
		size_t n = strlen(vars[i].name);

		if (!strncmp(word, vars[i].name, n) && vars[i].value &&
		    (!word[n] || word[n] == '/'))
			return zb_strf("%s%s", vars[i].value, word + n);
	}
	if (word[0] == '/')
		return zb_strdup(word);
	return q->project ? zb_strf("%s/%s", q->project, word) : NULL;
}

int zb_origin_line(const struct zb_origin *o, struct zb_buf *out)
{
	if (!o || !o->file)
		return zb_buf_adds(out, "built in");
	zb_text_escape(out, o->file, strlen(o->file), 0);
	if (o->line)
		zb_buf_addf(out, ":%u", o->line);
	if (o->key) {
		zb_buf_adds(out, ": ");
		zb_text_escape(out, o->key, strlen(o->key), 0);
	}
	return out->failed ? ZB_ELIMIT : 0;
}

int zb_origin_json(const struct zb_origin *o, struct zb_buf *out)
{
	if (!o || !o->file)
		return zb_buf_adds(out, "null");
	zb_buf_adds(out, "{\"file\":");
	zb_json_quote(out, o->file, strlen(o->file));
	if (o->line)
		zb_buf_addf(out, ",\"line\":%u", o->line);
	if (o->key) {
		zb_buf_adds(out, ",\"key\":");
		zb_json_quote(out, o->key, strlen(o->key));
	}
	return zb_buf_addc(out, '}');
}
