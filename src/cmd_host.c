/* cmd_host.c - zotbox host: an agent in any language drives any number of
 * sandboxed extensions through JSON lines on our stdin and stdout.
 *
 *   client --requests--> cmd_host_requests.c --> agent.h --> extensions
 *   client <-replies, events-- cmd_host_events.c <---'
 *
 * Making a sandbox takes some milliseconds, so one is made a turn of the loop
 * and the client is served between them. A reload of all is a new agent: the
 * old one is shut down, what there is is looked at again, and started. */
#include "cmd_host.h"
#include "cleanup.h"
#include "cmd.h"
#include "config.h"
#include "loop.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define TOKEN_NAME  "ZOTBOX_HOST_TOKEN"
#define PATIENCE_MS 50	/* between looks whether the client took all */
#define PATIENCE    40u /* looks, at the end */

enum {
	O_EXT,
	O_NO_EXT,
	O_CWD,
	O_PROVIDER,
	O_MODEL,
	O_POLICY,
	O_MEAN_IT,
};
const struct zb_option zb_host_options[] = {
	[O_EXT] = {"ext", 'e', ZB_ARG_VALUE, "PATH",
		   "an extension to start from its directory, before all "
		   "others; may be repeated",
		   true},
	[O_NO_EXT] = {"no-ext", 0, ZB_ARG_NONE, NULL,
		      "only those given with --ext", false},
	[O_CWD] = {"cwd", 0, ZB_ARG_VALUE, "DIR",
		   "the project directory; default: the current one", false},
	[O_PROVIDER] = {"provider", 0, ZB_ARG_VALUE, "NAME",
			"what hello_ack says; default: zotbox", false},
	[O_MODEL] = {"model", 0, ZB_ARG_VALUE, "NAME",
		     "what hello_ack says; default: host", false},
	[O_POLICY] = {"policy", 0, ZB_ARG_VALUE, "NAME|FILE",
		      "base policy of extensions that were not installed by "
		      "zotbox; default: strict",
		      false},
	[O_MEAN_IT] = {"yes-i-mean-it", 0, ZB_ARG_NONE, NULL,
		       "accept what that policy grants, however broad", false},
	{0},
};

const char zb_host_more[] =
	"One JSON object a line: requests {\"id\":1,\"type\":\"ping\"} on "
	"stdin; replies and events on stdout. zotbox-host(5) has them all, "
	"policies/host-api.schema.json is their schema.\n"
	"Started are those given with --ext, then the project's trusted ones, "
	"then the installed ones; of one name the first. What zotbox did not "
	"install runs under --policy.\n"
	"With " TOKEN_NAME " set the first line must be hello with that "
	"token; nothing starts before it.\n"
	"End of input, shutdown, SIGTERM, SIGINT and SIGHUP end all "
	"extensions. Exit: 0; 1 if the client stopped reading; 3 a wrong "
	"token; 4 this host cannot build the sandbox; 128+N by signal N.";

/* ---- which extensions ---- */

static void free_entries(struct zb_host_server *h)
{
	for (size_t i = 0; i < h->n_entries; i++) {
		zb_found_clear(&h->entries[i].found);
		free(h->entries[i].path);
		free(h->entries[i].off);
	}
	free(h->entries);
	h->entries = NULL;
	h->n_entries = 0;
}

struct zb_host_entry *zb_host_entry(struct zb_host_server *h, const char *name)
{
	struct zb_host_entry *off = NULL;

	for (size_t i = 0; i < h->n_entries; i++) {
		struct zb_host_entry *e = &h->entries[i];

		if (strcmp(e->found.name, name) != 0)
			continue;
		if (!e->off)
			return e;
		off = off ? off : e;
	}
	return off;
}

/* What was not installed by us is started from where it lies. */
static void aim(const struct zb_host_server *h, struct zb_host_entry *e)
{
	const struct zb_found *f = &e->found;

	e->target = (struct zb_target){.project = h->project, .run = true};
	if (f->scope == ZB_FOUND_GLOBAL && (f->wrapped || f->problem)) {
		e->target.name = f->name;
		return;
	}
	/* A bare word is a path, too, as zot has it. */
	e->path = zb_strf("%s%s", strchr(f->dir, '/') ? "" : "./", f->dir);
	e->target.path = e->path ? e->path : f->dir;
	e->target.policy = h->args->opt[O_POLICY];
	e->target.mean_it = h->args->opt[O_MEAN_IT] != NULL;
}

/* Something that was installed, and is in trouble now. To start it will fail,
 * but only who is asked to start is missed: its scope may say that what it
 * guards is blocked without it. */
static bool has_scope(const struct zb_host_server *h, const struct zb_found *f)
{
	zb_auto(free) char *path = NULL;

	if (f->scope != ZB_FOUND_GLOBAL || !zb_name_valid(f->name))
		return false;
	path = zb_store_box(&h->store, f->name, "scope.json");
	return path && !access(path, F_OK);
}

/* Why an entry is not started; heap, or NULL. */
static char *why_not(struct zb_host_server *h, const struct zb_found *f)
{
	const struct zb_host_entry *first;

	if (f->problem && f->scope != ZB_FOUND_PATH && !has_scope(h, f))
		return zb_strdup(f->problem);
	if (f->theme_only)
		return zb_strdup("it has a theme and nothing to start");
	if (f->scope == ZB_FOUND_PATH)
		return NULL;
	if (f->has_manifest && !f->manifest.enabled)
		return zb_strdup("disabled in extension.json");
	if (f->untrusted)
		return zb_strdup(f->untrusted);
	first = zb_host_entry(h, f->name);
	if (first && !first->off)
		return zb_strf("another extension called %s comes first: %s",
			       f->name, first->found.dir);
	return NULL;
}

/* Takes @f's contents. */
static void add_entry(struct zb_host_server *h, struct zb_found *f)
{
	struct zb_host_entry *e = &h->entries[h->n_entries];

	*e = (struct zb_host_entry){.found = *f, .member = ZB_NOBODY};
	*f = (struct zb_found){0};
	e->off = why_not(h, &e->found);
	aim(h, e);
	h->n_entries++;
}

/* In the order of precedence: --ext, the project's, the installed ones. */
static int look(struct zb_host_server *h, struct zb_error *err)
{
	const struct zb_args *a = h->args;
	struct zb_found_list l = {0};
	int rc = 0;

	if (!a->opt[O_NO_EXT])
		rc = zb_discover(&l, &h->store, h->project, err);
	if (!rc)
		h->entries =
			calloc(l.n + a->n_many[O_EXT] + 1, sizeof(*h->entries));
	if (!rc && !h->entries)
		rc = zb_fail(err, ZB_ELIMIT, "out of memory");
	for (size_t i = 0; !rc && i < a->n_many[O_EXT]; i++) {
		struct zb_found f;

		rc = zb_discover_path(&f, &h->store, a->many[O_EXT][i], err);
		if (!rc)
			add_entry(h, &f);
	}
	for (size_t i = 0; !rc && i < l.n; i++)
		add_entry(h, &l.v[i]);
	zb_found_list_done(&l);
	return rc;
}

/* ---- start ---- */

static int new_agent(struct zb_host_server *h, bool resumed,
		     struct zb_error *err)
{
	const char *provider = h->args->opt[O_PROVIDER];
	const char *model = h->args->opt[O_MODEL];
	struct zb_agent_config cfg = {.loop = &h->loop,
				      .backend = zb_backend_native(),
				      .host = &h->host,
				      .store = &h->store,
				      .project = h->project,
				      .zot_version = PACKAGE_VERSION,
				      .provider =
					      provider ? provider : "zotbox",
				      .model = model ? model : "host",
				      .resumed = resumed,
				      .ops = &zb_host_agent_ops,
				      .ctx = h};
	int rc = zb_agent_new(&h->agent, &cfg, err);

	if (rc)
		return rc;
	zb_agent_pause(h->agent, h->paused);
	return zb_agent_reserve(h->agent, &h->builtin_commands,
				&h->builtin_tools);
}

static void start_set(struct zb_host_server *h, bool resumed)
{
	struct zb_error err = {0};

	h->settled = false;
	h->next_entry = 0;
	if (new_agent(h, resumed, &err) || look(h, &err)) {
		h->failed = zb_cmd_fail(&err);
		zb_host_close(h);
		return;
	}
	zb_host_wake(h);
}

void zb_host_start(struct zb_host_server *h)
{
	if (h->started)
		return;
	h->started = true;
	start_set(h, false);
}

static void start_next(struct zb_host_server *h)
{
	struct zb_host_entry *e = &h->entries[h->next_entry++];
	const struct zb_found *f = &e->found;
	struct zb_error err = {0};
	size_t at = zb_agent_count(h->agent);

	if (e->off)
		return;
	e->member = at;
	if (zb_agent_add(h->agent, f->name, &e->target, &err)) {
		e->member = zb_agent_count(h->agent) > at ? at : ZB_NOBODY;
		e->off = zb_strdup(err.msg);
	}
}

/* ---- end ---- */

void zb_host_close(struct zb_host_server *h)
{
	if (h->closing)
		return;
	h->closing = true;
	h->all_again = false;
	uv_timer_stop(&h->later);
	/* Nobody waits for the client any more. */
	zb_wrap_in_pause(&h->in, true);
	if (!h->agent) {
		h->closed = true;
		zb_host_wake(h);
		return;
	}
	zb_agent_pause(h->agent, false);
	zb_agent_shutdown(h->agent);
}

void zb_host_start_again(struct zb_host_server *h)
{
	for (struct zb_host_question *k = h->reloads.first; k; k = k->next)
		k->member = ZB_NOBODY;
	if (h->all_again || !h->agent)
		return;
	h->all_again = true;
	/* Those not started yet are looked at again. */
	h->next_entry = h->n_entries;
	zb_agent_shutdown(h->agent);
}

static void forget_places(struct zb_host_server *h)
{
	for (size_t i = 0; i < h->n_places; i++) {
		free(h->places[i].ours);
		free(h->places[i].theirs);
	}
	free(h->places);
	h->places = NULL;
	h->n_places = 0;
}

static void on_patience(uv_timer_t *t)
{
	struct zb_host_server *h = t->data;
	bool idle = zb_wrap_out_idle(&h->out);

	if (!idle && ++h->waited < PATIENCE)
		return;
	if (!idle && !h->failed)
		h->failed = 1;
	uv_timer_stop(t);
	h->ended = true;
	uv_stop(&h->loop);
}

/* The agent has nobody left. */
static void bury(struct zb_host_server *h)
{
	h->closed = false;
	zb_agent_free(h->agent);
	h->agent = NULL;
	forget_places(h);
	if (h->all_again && !h->closing) {
		h->all_again = false;
		free_entries(h);
		start_set(h, true);
		return;
	}
	zb_host_answer_all(h);
	uv_timer_start(&h->patience, on_patience, 0, PATIENCE_MS);
}

static void on_starter(uv_idle_t *i)
{
	struct zb_host_server *h = i->data;

	if (h->closed) {
		uv_idle_stop(i);
		bury(h);
	} else if (h->closing || h->all_again) {
		uv_idle_stop(i);
	} else if (h->next_entry < h->n_entries) {
		start_next(h);
	} else {
		uv_idle_stop(i);
		zb_agent_begin(h->agent);
	}
}

void zb_host_wake(struct zb_host_server *h)
{
	uv_idle_start(&h->starter, on_starter);
}

/* ---- the client ---- */

static void on_line(void *ctx, const char *line, size_t len)
{
	zb_host_take_line(ctx, line, len);
}

static void on_too_long(void *ctx, uint64_t total)
{
	zb_host_take_long_line(ctx, total);
}

static void on_eof(void *ctx)
{
	zb_host_close(ctx);
}

static void on_broke(void *ctx)
{
	struct zb_host_server *h = ctx;

	if (!h->failed)
		h->failed = 1;
	zb_host_close(h);
}

static void on_signal(uv_signal_t *s, int signo)
{
	struct zb_host_server *h = s->data;

	if (h->signo) /* asked twice: no manners any more */
		_exit(128 + signo);
	h->signo = signo;
	zb_host_close(h);
}

/* ---- all of it ---- */

static int init_handles(struct zb_host_server *h, struct zb_error *err)
{
	static const int list[] = {SIGINT, SIGTERM, SIGHUP};
	int rc = zb_loop_open(&h->loop, err);

	if (!rc)
		rc = zb_loop_signals(&h->loop, h->signals, list,
				     ZB_ARRAY_LEN(list), on_signal, h, err);
	if (rc)
		return rc;
	uv_idle_init(&h->loop, &h->starter);
	h->starter.data = h;
	uv_timer_init(&h->loop, &h->later);
	h->later.data = h;
	uv_timer_init(&h->loop, &h->patience);
	h->patience.data = h;
	h->in.line = on_line;
	h->in.too_long = on_too_long;
	h->in.end = on_eof;
	h->in.ctx = h;
	h->out.drained = zb_host_on_drained;
	h->out.broke = on_broke;
	h->out.ctx = h;
	return 0;
}

/* Out of the environment, which others inherit, and out of its memory. */
static int take_token(struct zb_host_server *h, struct zb_error *err)
{
	char *given = getenv(TOKEN_NAME);

	if (!given || !*given) {
		h->greeted = true;
		return 0;
	}
	h->token = zb_strdup(given);
	explicit_bzero(given, strlen(given));
	unsetenv(TOKEN_NAME);
	return h->token ? 0 : zb_fail(err, ZB_ELIMIT, "out of memory");
}

static int open_all(struct zb_host_server *h, struct zb_error *err)
{
	const char *cwd = h->args->opt[O_CWD];
	const char *dir = cwd ? cwd : ".";
	int rc = take_token(h, err);

	if (rc)
		return rc;
	h->project = realpath(dir, NULL);
	if (!h->project)
		return zb_fail(err, ZB_EUSAGE, "--cwd %s: %s", dir,
			       strerror(errno));
	rc = zb_store_open(&h->store, err);
	if (!rc)
		rc = zb_backend_native()->look(&h->host, err);
	if (!rc)
		rc = zb_wrap_out_open(&h->out, &h->loop, STDOUT_FILENO, err);
	if (!rc)
		rc = zb_wrap_in_open(&h->in, &h->loop, STDIN_FILENO, err);
	return rc;
}

static void free_all(struct zb_host_server *h)
{
	for (size_t i = 0; i < ZB_ARRAY_LEN(h->signals); i++)
		uv_close((uv_handle_t *)&h->signals[i], NULL);
	uv_close((uv_handle_t *)&h->starter, NULL);
	uv_close((uv_handle_t *)&h->later, NULL);
	uv_close((uv_handle_t *)&h->patience, NULL);
	zb_wrap_in_close(&h->in);
	zb_wrap_out_close(&h->out);
	zb_loop_close(&h->loop);
	zb_framer_done(&h->in.framer);
	zb_buf_done(&h->out.queue);
	zb_buf_done(&h->out.writing);
	free_entries(h);
	zb_turns_done(&h->turns);
	zb_strv_done(&h->noted);
	zb_strv_done(&h->builtin_commands);
	zb_strv_done(&h->builtin_tools);
	zb_host_done(&h->host);
	zb_store_done(&h->store);
	free(h->project);
	free(h->token);
}

int zb_cmd_host(const struct zb_args *a)
{
	struct zb_host_server *h = calloc(1, sizeof(*h));
	struct zb_error err = {0};
	int rc;

	if (!h) {
		zb_fail(&err, ZB_ELIMIT, "out of memory");
		return zb_cmd_fail(&err);
	}
	h->args = a;
	rc = init_handles(h, &err);
	if (!rc)
		rc = open_all(h, &err);
	if (rc) {
		/* Handles may be half open: what is left goes with us. */
		free(h->token);
		return zb_cmd_fail(&err);
	}
	if (h->greeted)
		zb_host_start(h);
	while (!h->ended)
		if (!uv_run(&h->loop, UV_RUN_DEFAULT))
			zb_host_close(h);
	rc = h->signo ? 128 + h->signo : h->failed;
	free_all(h);
	free(h);
	return rc;
}
