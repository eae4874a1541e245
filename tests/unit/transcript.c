/* transcript.c - plays conversations to the mediator; see transcript.h. */
#include "transcript.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct player {
	const char *path;
	unsigned line;	    /* at work */
	unsigned said_line; /* the line that @out is of */
	struct zb_plan plan;
	char *data_dir, *extension_dir;
	struct zb_mediator *m;
	int64_t now_ms;
	struct zb_med_out out;
	bool pending, verdict_seen, also_seen;
	size_t denials_seen, log_seen;
	struct zb_strv told; /* rules of refusals that had a log line */
};

ZB_PRINTF(2, 3)
static void fault(const struct player *p, const char *fmt, ...)
{
	char text[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fail_msg("%s:%u: %s", p->path, p->line, text);
}

struct zb_plan zb_transcript_plan(const char *scope)
{
	struct zb_plan plan = {0};
	struct zb_error err = {0};

	if (zb_scope_parse(&plan.scope, "scope.json", scope, strlen(scope),
			   NULL, &err))
		fail_msg("scope: %s", err.msg);
	plan.name = zb_strdup("weather");
	return plan;
}

/* Whom no grant would help must hear of it, the first time. */
static void check_told(struct player *p, const struct zb_denial *d)
{
	if (d->grant_key || zb_strv_has(&p->told, d->rule) ||
	    (d->why_not && strstr(d->why_not, "--yes-i-mean-it")))
		return;
	if (!p->out.log.n)
		fault(p, "refused for good, and nobody is told: %s", d->rule);
	zb_strv_add(&p->told, d->rule);
}

static void done_plan(struct player *p)
{
	zb_mediator_free(p->m);
	p->m = NULL;
	zb_scope_done(&p->plan.scope);
	free(p->plan.name);
	p->plan.name = NULL;
}

static const char *verdict_name(enum zb_med_verdict v)
{
	static const char *const names[] = {"pass", "cut", "drop", "reply",
					    "kill"};

	return names[v];
}

/* Nothing of the last line may be left unsaid. */
static void settled(struct player *p)
{
	unsigned here = p->line;

	if (!p->pending)
		return;
	p->line = p->said_line;
	if (!p->verdict_seen && p->out.verdict != ZB_MED_PASS)
		fault(p, "verdict is %s %s%s", verdict_name(p->out.verdict),
		      zb_buf_str(&p->out.bytes), p->out.reason);
	if (p->denials_seen != p->out.n_denials) {
		struct zb_buf b = {0};

		zb_denial_text(&p->out.denials[p->denials_seen], NULL, &b);
		fault(p, "a record more: %s", zb_buf_str(&b));
	}
	if (p->log_seen != p->out.log.n)
		fault(p, "a log line more: %s", p->out.log.v[p->log_seen]);
	for (size_t i = 0; i < p->out.n_denials; i++)
		check_told(p, &p->out.denials[i]);
	if (!p->also_seen && p->out.also_upstream.len)
		fault(p, "the host was told: %s",
		      zb_buf_str(&p->out.also_upstream));
	p->line = here;
	p->pending = false;
}

static struct zb_mediator *machine(struct player *p)
{
	struct zb_mediator_config cfg = {.plan = &p->plan,
					 .data_dir = p->data_dir,
					 .extension_dir = p->extension_dir};
	struct zb_error err = {0};

	if (!p->m && zb_mediator_new(&p->m, &cfg, &err))
		fault(p, "%s", err.msg);
	return p->m;
}

static void said(struct player *p, int rc)
{
	if (rc)
		fault(p, "out of memory");
	p->pending = true;
	p->verdict_seen = p->also_seen = false;
	p->denials_seen = p->log_seen = 0;
	p->said_line = p->line;
}

/* The line in memory of just its size, so that a sanitizer sees a byte too
 * many. */
static void say(struct player *p, const char *line, bool from_ext)
{
	size_t len = strlen(line);
	char *exact = malloc(len ? len : 1);
	int rc;

	assert_non_null(exact);
	memcpy(exact, line, len);
	rc = from_ext ? zb_mediator_from_ext(machine(p), p->now_ms, exact, len,
					     &p->out)
		      : zb_mediator_from_host(machine(p), p->now_ms, exact, len,
					      &p->out);
	free(exact);
	said(p, rc);
}

static void say_long(struct player *p, const char *text)
{
	char *end;
	unsigned long long total = strtoull(text, &end, 10);

	end += *end == ' ';
	said(p, zb_mediator_too_long(machine(p), p->now_ms, end, strlen(end),
				     total, &p->out));
}

/* The verdict's word, then the line it forwards. */
static void check_verdict(struct player *p, const char *text)
{
	const char *word = verdict_name(p->out.verdict);
	size_t n = strlen(word);
	const char *rest;

	if (strncmp(text, word, n) != 0 || (text[n] && text[n] != ' '))
		fault(p, "verdict is %s %s%s", word, zb_buf_str(&p->out.bytes),
		      p->out.reason);
	rest = text + n + (text[n] == ' ');
	if (p->out.verdict == ZB_MED_KILL) {
		if (!strstr(p->out.reason, rest))
			fault(p, "reason is %s", p->out.reason);
	} else if (p->out.verdict != ZB_MED_PASS &&
		   p->out.verdict != ZB_MED_DROP) {
		if (strcmp(rest, zb_buf_str(&p->out.bytes)) != 0)
			fault(p, "the line is %s", zb_buf_str(&p->out.bytes));
	}
	p->verdict_seen = true;
}

static void check_record(struct player *p, char *text)
{
	const struct zb_denial *d;
	struct zb_buf op = {0};
	char *key, *value;
	size_t n;

	if (p->denials_seen >= p->out.n_denials)
		fault(p, "no such record");
	d = &p->out.denials[p->denials_seen++];
	zb_buf_addf(&op, "%s.%s", zb_op_name(d->op), d->detail);
	n = op.len;
	if (strncmp(text, zb_buf_str(&op), n) != 0 || text[n] != ' ')
		fault(p, "the record is %s", zb_buf_str(&op));
	zb_buf_done(&op);
	key = text + n + 1;
	value = strchr(key, ' ');
	if (!value) {
		fault(p, "! OP KEY VALUE");
		return;
	}
	*value++ = '\0';
	if (!d->rule || !d->rule[0])
		fault(p, "the record has no rule");
	if (strcmp(key, "-") == 0) {
		if (d->grant_key || !d->why_not || !strstr(d->why_not, value))
			fault(p, "grant is %s, why not: %s",
			      d->grant_key ? d->grant_key : "none",
			      d->why_not ? d->why_not : "unsaid");
		return;
	}
	if (!d->grant_key || strcmp(d->grant_key, key) != 0 ||
	    strcmp(d->grant_value, value) != 0 || d->why_not)
		fault(p, "grant is %s %s", d->grant_key ? d->grant_key : "none",
		      d->grant_value ? d->grant_value : "");
}

static void check_log(struct player *p, const char *text)
{
	if (p->log_seen >= p->out.log.n)
		fault(p, "no such log line");
	if (!strstr(p->out.log.v[p->log_seen], text))
		fault(p, "the log line is %s", p->out.log.v[p->log_seen]);
	p->log_seen++;
}

static void check_also(struct player *p, const char *text)
{
	p->also_seen = true;
	if (strcmp(text, zb_buf_str(&p->out.also_upstream)) != 0)
		fault(p, "the host was told: %s",
		      zb_buf_str(&p->out.also_upstream));
}

static void set_dirs(struct player *p, char *text)
{
	char *second = strchr(text, ' ');

	if (!second) {
		fault(p, "dirs DATA EXTENSION");
		return;
	}
	*second++ = '\0';
	p->data_dir = zb_strdup(text);
	p->extension_dir = zb_strdup(second);
}

static bool command(struct player *p, char *line)
{
	static const char *const words[] = {
		"scope ", "dirs ", "at ", "expire ", "< ", "> ", "long "};
	size_t i = 0;
	char *rest;

	while (i < 7 && strncmp(line, words[i], strlen(words[i])) != 0)
		i++;
	if (i == 7)
		return false;
	settled(p);
	rest = line + strlen(words[i]);
	if (i == 0) {
		done_plan(p);
		p->plan = zb_transcript_plan(rest);
	} else if (i == 1) {
		set_dirs(p, rest);
	} else if (i == 2) {
		p->now_ms = strtoll(rest, NULL, 10);
	} else if (i == 3) {
		zb_mediator_expire(machine(p), p->now_ms, rest);
	} else if (i == 6) {
		say_long(p, rest);
	} else {
		say(p, rest, i == 4);
	}
	return true;
}

static void play(struct player *p, char *line)
{
	if (!line[0] || line[0] == '#' || command(p, line))
		return;
	if (line[1] != ' ' || !p->pending)
		fault(p, "not understood: %s", line);
	switch (line[0]) {
	case '=':
		check_verdict(p, line + 2);
		return;
	case '!':
		check_record(p, line + 2);
		return;
	case '~':
		check_log(p, line + 2);
		return;
	case '^':
		check_also(p, line + 2);
		return;
	default:
		fault(p, "not understood: %s", line);
	}
}

void zb_transcript_run(const char *path)
{
	struct player p = {.path = path};
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	ssize_t n;

	assert_non_null(f);
	while ((n = getline(&line, &size, f)) >= 0) {
		p.line++;
		if (n && line[n - 1] == '\n')
			line[n - 1] = '\0';
		play(&p, line);
	}
	settled(&p);
	free(line);
	fclose(f);
	done_plan(&p);
	free(p.data_dir);
	free(p.extension_dir);
	zb_med_out_done(&p.out);
	zb_strv_done(&p.told);
}
