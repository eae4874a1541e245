/* doctor.c - examine each extension: first what can be told without starting
 * it (manifest, integrity, plan, denials of the last session), then all
 * together on one loop, as an agent would have them. */
#include "config.h"

#include "agent.h"
#include "cleanup.h"
#include "doctor.h"
#include "enforce.h"
#include "ledger.h"
#include "loop.h"
#include "prepare.h"
#include "trust.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_REFUSED 50 /* refusals shown of one extension */

/* The examination under way. */
struct round {
	struct zb_diagnosis *d;
	const struct zb_store *store;
	const char *project;
	struct zb_target *targets; /* one a patient; must outlive the agent */
	size_t *patient_of;	   /* member of the agent -> patient */
	size_t n_members;
	struct zb_agent *agent;
};

static void names_done(struct zb_doctor_name *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].name);
		free(v[i].by);
	}
	free(v);
}

static void patient_done(struct zb_patient *p)
{
	free(p->exec);
	free(p->log);
	names_done(p->commands, p->n_commands);
	names_done(p->tools, p->n_tools);
	zb_strv_done(&p->warnings);
	zb_strv_done(&p->errors);
	zb_strv_done(&p->notes);
	zb_wishes_done(&p->wishes);
	for (size_t i = 0; i < p->n_denials; i++)
		zb_denial_done(&p->denials[i]);
	free(p->denials);
	zb_rule_statuses_done(p->rules, p->n_rules);
	*p = (struct zb_patient){0};
}

void zb_diagnosis_done(struct zb_diagnosis *d)
{
	zb_host_done(&d->host);
	free(d->host_error);
	for (size_t i = 0; i < d->n; i++)
		patient_done(&d->v[i]);
	free(d->v);
	*d = (struct zb_diagnosis){0};
}

static void bad(struct zb_patient *p, const char *status)
{
	p->status = status;
	p->bad = true;
}

static void fill_target(struct zb_target *t, const struct zb_patient *p,
			const char *project)
{
	*t = (struct zb_target){.project = project, .passing = true};
	if (p->found->wrapped && p->found->scope == ZB_FOUND_GLOBAL) {
		t->name = p->found->name;
		return;
	}
	t->path = p->found->dir;
	/* What a project brings along has the scope that it was trusted with.
	 */
	if (p->found->scope != ZB_FOUND_PROJECT)
		t->policy = "strict";
}

/* What it asks for, and which of that could be granted. */
static void judge_wishes(struct zb_patient *p, const struct zb_store *store,
			 const struct zb_target *t,
			 const struct zb_strv *requested)
{
	zb_auto(free) char *path = NULL;
	struct zb_buf scope = {0};
	struct zb_error err = {0};
	int rc;

	if (!t->name) {
		zb_wishes_list(&p->wishes, requested,
			       "zotbox does not start it, or did not "
			       "install it",
			       NULL);
		return;
	}
	path = zb_store_box(store, t->name, "scope.json");
	rc = path ? zb_read_file(path, (size_t)1 << 20, &scope, &err)
		  : zb_fail(&err, ZB_ELIMIT, "out of memory");
	if (!rc && requested->n)
		rc = zb_wishes_judge(&p->wishes, NULL, store, t->name, &scope,
				     requested, false, false, &err);
	if (rc)
		zb_strv_addf(&p->warnings,
			     "what it asks for could not be tried: %s",
			     err.msg);
	zb_buf_done(&scope);
}

/* What starting would resolve to: how it is found, what is asked for and not
 * granted, how each rule is enforced. Trouble is this patient's error. */
static void resolve_plan(struct zb_patient *p, const struct zb_store *store,
			 const struct zb_target *t)
{
	const struct zb_backend *b = zb_backend_native();
	struct zb_prepared prep = {0};
	struct zb_strv requested = {0};
	struct zb_error err = {0};
	struct zb_buf exec = {0};

	if (zb_prepare(&prep, store, t, &err)) {
		/* The names of changed files are in the message. */
		bad(p, prep.changed.n ? "changed" : "error");
		zb_strv_add(&p->errors, err.msg);
		zb_prepared_done(&prep);
		return;
	}
	zb_buf_addf(&exec, "%s", prep.manifest.exec);
	if (prep.plan.exec_path &&
	    strcmp(prep.plan.exec_path, prep.manifest.exec))
		zb_buf_addf(&exec, " -> %s", prep.plan.exec_path);
	p->exec = zb_buf_steal(&exec);
	zb_strv_copy(&p->notes, &prep.plan.notices);
	if (b->rules && b->rules(&prep.plan, &p->rules, &p->n_rules, &err)) {
		bad(p, "error");
		zb_strv_add(&p->errors, err.msg);
	}
	requested = prep.requested;
	prep.requested = (struct zb_strv){0};
	zb_prepared_done(&prep);
	judge_wishes(p, store, t, &requested);
	zb_strv_done(&requested);
}

static void last_session(struct zb_patient *p, const struct zb_store *store,
			 const struct zb_target *t)
{
	zb_auto(free) char *records = zb_target_log(t);
	struct zb_error err = {0};

	if (records && zb_ledger_read(store->logs, records, 0, "", &p->denials,
				      &p->n_denials, &err))
		zb_strv_addf(&p->warnings, "the ledger cannot be read: %s",
			     err.msg);
	for (size_t i = 0; i < p->n_denials; i++)
		p->denials[i].by_path = !t->name;
}

/* How what zot starts bare is confined: the way back, if it was installed by
 * zotbox; removing it would delete what may be the only copy. */
static char *remedy(const struct zb_store *store, const struct zb_found *f)
{
	const char *base = strrchr(f->dir, '/');
	zb_auto(free) char *shipped = NULL;

	if (f->scope != ZB_FOUND_GLOBAL)
		return zb_strdup("");
	if (base && zb_name_valid(base + 1))
		shipped = zb_store_box(store, base + 1, "manifest.json");
	if (shipped && !access(shipped, F_OK))
		return zb_strf(" (to confine it again: zotbox ext doctor %s "
			       "--repair)",
			       base + 1);
	return zb_strdup(" (to confine it: move its directory elsewhere, then "
			 "zotbox ext install that)");
}

static void warn_unconfined(struct zb_patient *p, const struct zb_store *store)
{
	const struct zb_found *f = p->found;
	zb_auto(free) char *how = remedy(store, f);

	if (!f->policy || strcmp(f->policy, "unconfined") != 0)
		return;
	if (f->problem)
		zb_strv_add(&p->warnings, "unconfined: if zot starts it, then "
					  "with all of your rights");
	else
		zb_strv_addf(&p->warnings,
			     "unconfined: zot starts it with all of your "
			     "rights%s%s",
			     f->scope == ZB_FOUND_PROJECT
				     ? ""
				     : "; here it is examined under strict",
			     how ? how : "");
}

/* Nothing of it is run, nor read. The message again, with the files. */
static void refuse_untrusted(struct zb_patient *p, const struct zb_store *store)
{
	struct zb_error err = {0};

	p->status = "unconfined";
	if (zb_trust_check(store, p->found->dir, NULL, &err))
		zb_strv_add(&p->warnings, err.msg);
}

/* Everything that is known without starting it. */
static void examine_still(struct round *r, struct zb_patient *p,
			  struct zb_target *t)
{
	const struct zb_found *f = p->found;

	p->status = "ok";
	p->log = zb_strf("%s/ext-%s.log", r->store->logs, f->name);
	fill_target(t, p, r->project);
	warn_unconfined(p, r->store);
	if (f->problem) {
		bad(p, "error");
		zb_strv_add(&p->errors, f->problem);
		return;
	}
	if (zb_name_valid(f->name))
		last_session(p, r->store, t);
	if (f->shadowed)
		p->status = "shadowed";
	else if (!f->manifest.enabled)
		p->status = "disabled";
	else if (f->theme_only)
		p->status = "theme-only";
	else if (f->untrusted)
		refuse_untrusted(p, r->store);
	else
		resolve_plan(p, r->store, t);
}

static bool to_be_started(const struct zb_patient *p)
{
	return !strcmp(p->status, "ok");
}

/* ---- callbacks of the agent ---- */

static struct zb_patient *patient(struct round *r, size_t member)
{
	return &r->d->v[r->patient_of[member]];
}

static void on_frame(void *ctx, size_t member, const char *type,
		     const char *line, size_t len)
{
	(void)ctx;
	(void)member;
	(void)type;
	(void)line;
	(void)len;
}

/* A refusal by the mediator that no grant would lift has been told in its own
 * words. The end of the run counts them all and says where to find them. */
static void on_denied(void *ctx, size_t member, const struct zb_denial *d)
{
	struct round *r = ctx;
	struct zb_patient *p = patient(r, member);
	struct zb_buf b = {0};

	if ((d->by == ZB_BY_MEDIATOR && !d->grant_key) ||
	    p->n_refused++ >= MAX_REFUSED)
		return;
	zb_denial_text(d, r->store->home, &b);
	zb_strv_take(&p->warnings, zb_buf_steal(&b));
}

/* What concerns it names it first, which its heading did. */
static void on_say(void *ctx, size_t member, const char *text)
{
	struct zb_patient *p = patient(ctx, member);
	size_t n = strlen(p->found->name);

	if (!strncmp(text, p->found->name, n) && !strncmp(text + n, ": ", 2))
		text += n + 2;
	/* The start says again what its plan has to say: that is a note. */
	if (!zb_strv_has(&p->notes, text))
		zb_strv_add(&p->warnings, text);
}

static void on_changed(void *ctx, size_t member)
{
	(void)ctx;
	(void)member;
}

static const char *state_word(enum zb_reg_state s)
{
	switch (s) {
	case ZB_REG_ACTIVE:
		return "active";
	case ZB_REG_DEFERRED:
		return "deferred";
	case ZB_REG_LATE:
		return "late";
	case ZB_REG_SHADOWED:
	case ZB_REG_BUILTIN:
		break;
	}
	return "shadowed";
}

static char *state_by(const struct zb_registry *reg, enum zb_reg_state s,
		      size_t by)
{
	if (s == ZB_REG_BUILTIN)
		return zb_strdup("zot");
	if (s == ZB_REG_SHADOWED && by < reg->n)
		return zb_strdup(reg->members[by].name);
	return NULL;
}

static void take_names(struct zb_patient *p, const struct zb_registry *reg,
		       size_t m)
{
	const struct zb_reg_member *rm = &reg->members[m];
	enum zb_reg_state s;
	size_t by = SIZE_MAX;

	p->commands = calloc(rm->n_commands + 1, sizeof(*p->commands));
	p->tools = calloc(rm->n_tools + 1, sizeof(*p->tools));
	for (size_t i = 0; p->commands && i < rm->n_commands; i++) {
		struct zb_doctor_name *n = &p->commands[p->n_commands++];

		s = zb_registry_command_state(reg, m, i, &by);
		n->name = zb_strdup(rm->commands[i].name);
		n->state = state_word(s);
		n->by = state_by(reg, s, by);
	}
	for (size_t i = 0; p->tools && i < rm->n_tools; i++) {
		struct zb_doctor_name *n = &p->tools[p->n_tools++];

		s = zb_registry_tool_state(reg, m, i, &by);
		n->name = zb_strdup(rm->tools[i].name);
		n->state = state_word(s);
		n->by = state_by(reg, s, by);
	}
}

static void judge_member(struct round *r, size_t m)
{
	const struct zb_member *mem = zb_agent_member(r->agent, m);
	struct zb_patient *p = patient(r, m);

	p->started = mem->said_hello;
	p->start_ms = mem->start_ms;
	take_names(p, zb_agent_registry(r->agent), m);
	if (mem->state == ZB_MEMBER_GONE || !mem->said_hello) {
		bad(p, "not loaded");
		zb_strv_add(&p->errors,
			    mem->problem ? mem->problem : "did not start");
	} else if (mem->ready_timeout) {
		p->status = "ready-timeout";
	} else if (mem->auto_ready) {
		p->status = "auto-ready";
	}
}

static void on_settled(void *ctx)
{
	struct round *r = ctx;

	for (size_t m = 0; m < r->n_members; m++)
		judge_member(r, m);
	zb_agent_shutdown(r->agent);
}

static void on_closed(void *ctx)
{
	(void)ctx;
}

static int add_members(struct round *r, uv_loop_t *loop, struct zb_error *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < r->d->n; i++) {
		if (!to_be_started(&r->d->v[i]))
			continue;
		r->patient_of[r->n_members++] = i;
		rc = zb_agent_add(r->agent, r->d->v[i].found->name,
				  &r->targets[i], err);
		uv_run(loop, UV_RUN_NOWAIT);
	}
	return rc;
}

/* Start what can be started, all at once; stop when all have settled. */
static int examine_running(struct round *r, struct zb_error *err)
{
	static const struct zb_agent_ops ops = {
		.frame = on_frame,
		.denied = on_denied,
		.say = on_say,
		.changed = on_changed,
		.settled = on_settled,
		.closed = on_closed,
	};
	char session[64];
	uv_loop_t loop;
	struct zb_agent_config cfg = {
		.loop = &loop,
		.backend = zb_backend_native(),
		.host = &r->d->host,
		.store = r->store,
		.project = r->project,
		.zot_version = "0.0.0",
		.provider = "none",
		.model = "none",
		.session = session,
		.ops = &ops,
		.ctx = r,
	};
	int rc;

	snprintf(session, sizeof(session), "%s%lld-%d", ZB_LEDGER_PROBE,
		 (long long)time(NULL), (int)getpid());
	if (zb_loop_open(&loop, err))
		return ZB_ESYS;
	rc = zb_agent_new(&r->agent, &cfg, err);
	if (!rc)
		rc = add_members(r, &loop, err);
	if (!rc) {
		zb_agent_begin(r->agent);
		uv_run(&loop, UV_RUN_DEFAULT);
	}
	if (r->agent)
		zb_agent_free(r->agent);
	zb_loop_close(&loop);
	return rc;
}

/* The word for one that is fine but for what was said about it. */
static void settle_status(struct zb_patient *p)
{
	if (strcmp(p->status, "ok"))
		return;
	if (!p->found->wrapped)
		p->status = "unconfined";
	else if (p->warnings.n)
		p->status = "warning";
}

static void host_cannot(struct zb_diagnosis *d)
{
	for (size_t i = 0; i < d->n; i++)
		if (to_be_started(&d->v[i])) {
			bad(&d->v[i], "not loaded");
			zb_strv_add(&d->v[i].errors,
				    "this host cannot build the sandbox");
		}
}

int zb_doctor(struct zb_diagnosis *out, const struct zb_store *store,
	      const struct zb_found_list *list, const char *project,
	      struct zb_error *err)
{
	const struct zb_backend *b = zb_backend_native();
	struct round r = {.d = out, .store = store, .project = project};
	struct zb_error host = {0};
	int rc = 0;

	*out = (struct zb_diagnosis){0};
	if (b->probe && b->probe(&out->host, &host))
		out->host_error = zb_strdup(host.msg);
	else if (!b->probe)
		out->host_error = zb_strf("the %s backend starts nothing in "
					  "this version",
					  b->name);
	out->v = calloc(list->n + 1, sizeof(*out->v));
	r.targets = calloc(list->n + 1, sizeof(*r.targets));
	r.patient_of = calloc(list->n + 1, sizeof(*r.patient_of));
	if (!out->v || !r.targets || !r.patient_of)
		rc = zb_fail(err, ZB_ELIMIT, "out of memory");
	for (size_t i = 0; !rc && i < list->n; i++) {
		out->v[out->n++].found = &list->v[i];
		examine_still(&r, &out->v[i], &r.targets[i]);
	}
	if (!rc && out->host_error)
		host_cannot(out);
	else if (!rc)
		rc = examine_running(&r, err);
	for (size_t i = 0; !rc && i < out->n; i++)
		settle_status(&out->v[i]);
	free(r.targets);
	free(r.patient_of);
	if (rc)
		zb_diagnosis_done(out);
	return rc;
}
