/* box.c - starting one program in three ways. */
#include "config.h"

#include "bench/box.h"
#include "bench/util.h"
#include "cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define DATA_MAX 64

_Noreturn void die(const char *what, const struct zb_error *err)
{
	fprintf(stderr, "bench: %s: %s\n", what,
		err ? err->msg : strerror(errno));
	exit(1);
}

void prepare_as(struct subject *s, const struct zb_store *store,
		const struct zb_target *t)
{
	struct zb_error err = {0};

	if (zb_prepare(&s->p, store, t, &err) ||
	    zb_bwrap_args(&s->args, &s->p.plan, &err))
		die(t->path, &err);
	s->p.plan.ledger = ZB_LEDGER_OPEN;
}

void prepare(struct subject *s, const struct zb_store *store, const char *dir)
{
	prepare_as(s, store,
		   &(struct zb_target){.path = dir, .policy = "strict"});
}

void unprepare(struct subject *s)
{
	zb_bwrap_args_done(&s->args);
	zb_prepared_done(&s->p);
}

/* The child's ends of three pipes; the parent's in @ours. */
static void pipes(int child[3], int ours[3])
{
	for (int i = 0; i < 3; i++) {
		int p[2];

		if (pipe2(p, O_CLOEXEC))
			die("pipe", NULL);
		child[i] = p[i == 0 ? 0 : 1];
		ours[i] = p[i == 0 ? 1 : 0];
	}
}

static void close_all(const int fd[3])
{
	for (int i = 0; i < 3; i++)
		close(fd[i]);
}

double first_byte(const struct running *r)
{
	char c;

	if (read(r->fds[1], &c, 1) != 1)
		die("no output", NULL);
	return (double)(now_ns() - r->started) / 1e3;
}

void finish(struct running *r)
{
	close_all(r->fds);
	if (r->proc)
		zb_backend_native()->reap(r->proc, NULL);
	else
		waitpid(r->pid, NULL, 0);
}

static void spawned(const char *path, char *const *argv, char *const *env,
		    struct running *r)
{
	posix_spawn_file_actions_t fa;
	int child[3];

	*r = (struct running){0};
	pipes(child, r->fds);
	posix_spawn_file_actions_init(&fa);
	for (int i = 0; i < 3; i++)
		posix_spawn_file_actions_adddup2(&fa, child[i], i);
	r->started = now_ns();
	if (posix_spawn(&r->pid, path, &fa, NULL, argv, env))
		die(path, NULL);
	close_all(child);
	posix_spawn_file_actions_destroy(&fa);
}

static char **environment(const struct zb_plan *plan)
{
	char **env = calloc(plan->n_env + 1, sizeof(*env));

	for (size_t i = 0; i < plan->n_env; i++)
		env[i] =
			zb_strf("%s=%s", plan->env[i].name, plan->env[i].value);
	return env;
}

static void environment_done(char **env)
{
	for (size_t i = 0; env[i]; i++)
		free(env[i]);
	free(env);
}

void start_bare(const struct subject *s, struct running *r)
{
	char **env = environment(&s->p.plan);

	spawned(s->p.plan.exec_path, s->p.plan.argv.v, env, r);
	environment_done(env);
}

/* bwrap alone, with what our plan renders to, then the program itself. */
void start_bwrap(const struct subject *s, const char *bwrap, struct running *r)
{
	const struct zb_plan *plan = &s->p.plan;
	struct zb_strv argv = {0};
	char **env = environment(plan);
	int data[DATA_MAX];

	zb_strv_add(&argv, "bwrap");
	for (size_t i = 0; i < s->args.args.n; i++)
		zb_strv_add(&argv, s->args.args.v[i]);
	for (size_t i = 0; i < s->args.n_data && i < DATA_MAX; i++) {
		const struct zb_bwrap_data *d = &s->args.data[i];
		int p[2];

		if (d->source) {
			p[0] = open(d->source, O_RDONLY);
		} else {
			if (pipe(p) || write(p[1], d->content, d->len) < 0)
				die("data", NULL);
			close(p[1]);
		}
		if (p[0] < 0)
			die(d->source, NULL);
		data[i] = p[0];
		free(argv.v[s->args.data[i].arg + 1]);
		argv.v[s->args.data[i].arg + 1] = zb_strf("%d", p[0]);
	}
	zb_strv_add(&argv, "--");
	zb_strv_add(&argv, plan->exec_path);
	for (size_t i = 1; i < plan->argv.n; i++)
		zb_strv_add(&argv, plan->argv.v[i]);
	spawned(bwrap, argv.v, env, r);
	for (size_t i = 0; i < s->args.n_data && i < DATA_MAX; i++)
		close(data[i]);
	zb_strv_done(&argv);
	environment_done(env);
}

static void on_denial(void *ctx, struct zb_denial *d)
{
	(void)ctx;
	zb_denial_done(d);
}

static void on_end(void *ctx, const struct zb_exit *e)
{
	(void)ctx;
	(void)e;
}

void start_ours(const struct subject *s, const struct zb_host *host,
		struct running *r)
{
	struct zb_spawn_options opt = {.on_denial = on_denial,
				       .on_exit = on_end};
	struct zb_error err = {0};
	int child[3];

	*r = (struct running){0};
	pipes(child, r->fds);
	r->started = now_ns();
	if (zb_backend_native()->spawn(&s->p.plan, host, child, &opt, &r->proc,
				       &err))
		die("spawn", &err);
	close_all(child);
}
