/* evaluator.c - the one answer to "may it?".
 *
 * Here is the verdict, with its reason and what the floor would say, found
 * without memory: that is the broker's hot path. evaluator_words.c puts the
 * reason into words.
 *
 * The floor that is modelled here is what the renderers build from the same
 * plan: a place that may not be written is a read-only mount (EROFS); what no
 * place shows does not exist (ENOENT); inside a mount Landlock knows rights
 * (EACCES); a mount's own root can be neither renamed nor removed (EBUSY).
 * Directories above places are made read-only by the launcher. */
#include "evaluator_internal.h"

#include "path_match.h"

#include <errno.h>
#include <string.h>

static struct zb_finding allow(int place)
{
	return (struct zb_finding){.verdict = ZB_ALLOW, .place = place};
}

static struct zb_finding deny(enum zb_reason why, int place, int err_no,
			      enum zb_floor floor)
{
	return (struct zb_finding){.verdict = ZB_DENY,
				   .reason = why,
				   .place = place,
				   .err_no = err_no,
				   .floor = floor};
}

static const struct zb_place *place_at(const struct zb_plan *plan, int i)
{
	return i < 0 ? NULL : &plan->places[i];
}

/* Length of the directory part: "/a/b" -> 2, "/a" -> 1 ("/"). */
static size_t dir_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !slash || slash == path ? 1 : (size_t)(slash - path);
}

/* Does a place lie strictly below the first @n bytes of @path? Then that
 * directory exists inside. */
static bool is_skeleton(const struct zb_plan *plan, const char *path, size_t n)
{
	if (n == 1)
		return true;
	for (size_t i = 0; i < plan->n_places; i++) {
		const char *p = plan->places[i].path;

		if (!strncmp(p, path, n) && p[n] == '/')
			return true;
	}
	return false;
}

static bool in_shm(const char *path)
{
	return zb_path_below(path, "/dev/shm");
}

/* Nodes of /dev are the host's own: nobody changes their modes. */
static bool is_own_node(const char *path)
{
	return in_shm(path) || zb_path_below(path, "/dev/pts");
}

/* Made for the sandbox: what the host has under the same name is not there. */
static bool hides(const struct zb_place *p)
{
	return p->kind == ZB_PLACE_HOME || p->kind == ZB_PLACE_TMP ||
	       p->kind == ZB_PLACE_PIN || p->kind == ZB_PLACE_DIR ||
	       p->kind == ZB_PLACE_DEV;
}

static unsigned rights_at(const struct zb_place *p, const char *target)
{
	if (p->kind == ZB_PLACE_DEV && in_shm(target))
		return p->rights | ZB_MAY_CREATE;
	return p->rights;
}

/* Is @path at or below one of @tops (NULL-terminated)? */
static bool below_any(const char *path, const char *const *tops)
{
	while (*tops && !zb_path_below(path, *tops))
		tops++;
	return *tops;
}

/* Of /dev only these may be opened: there is a terminal among the rest. */
static const char *const devices[] = {
	"/dev/null",	"/dev/zero", "/dev/full", "/dev/random",
	"/dev/urandom", "/dev/pts",  "/dev/shm",  NULL};

/* What a change without the right gets: the mount says it first. */
static struct zb_finding readonly(int place)
{
	return deny(ZB_R_READONLY, place, EROFS, ZB_FLOOR_MOUNT);
}

/* A path, and how a careless file system may take it. */
struct spelled {
	const char *path;
	char folded[ZB_PATH_FOLD_MAX];
};

static bool spell(struct spelled *s, const char *path)
{
	s->path = path;
	return zb_path_fold(path, s->folded);
}

/* Does @d have a say in @p? */
static bool counts(const struct zb_deny *d, const struct zb_place *p)
{
	return !d->built_in || !zb_pattern_match(d->pattern, p->path);
}

static const struct zb_deny *denied_read(const struct zb_plan *plan,
					 const char *path)
{
	for (size_t i = 0; i < plan->n_denies; i++)
		if (!plan->denies[i].built_in &&
		    zb_pattern_match(plan->denies[i].pattern, path))
			return &plan->denies[i];
	return NULL;
}

/* Is @s, or what will be found below it if it @leads on, closed by @d? @folded
 * is room for a pattern. */
static bool closes(const struct zb_deny *d, const struct spelled *s, bool leads,
		   char *folded)
{
	if (zb_pattern_match(d->pattern, s->path) ||
	    (leads && zb_pattern_leads(d->pattern, s->path)))
		return true;
	/* A pattern that is too long for it is longer than any path. */
	return zb_path_fold(d->pattern, folded) &&
	       (zb_pattern_match(folded, s->folded) ||
		(leads && zb_pattern_leads(folded, s->folded)));
}

static const struct zb_deny *denied_change(const struct zb_plan *plan,
					   const struct zb_place *p,
					   const struct zb_query *q)
{
	char room[ZB_PATH_FOLD_MAX];
	struct spelled s;
	bool sure = spell(&s, q->target);

	for (size_t i = 0; i < plan->n_denies; i++) {
		const struct zb_deny *d = &plan->denies[i];

		if ((!sure || closes(d, &s, q->is_link, room)) && counts(d, p))
			return d;
	}
	return NULL;
}

/* The deny that covers it, or NULL. */
static const struct zb_deny *denied(const struct zb_plan *plan,
				    const struct zb_place *p,
				    const struct zb_query *q, bool change)
{
	if (!p->carved)
		return NULL;
	return change ? denied_change(plan, p, q)
		      : denied_read(plan, q->target);
}

/* Is @path outside the patterns of its grant? */
static bool is_beside(const struct zb_strv *only, const char *path)
{
	for (size_t i = 0; i < only->n; i++)
		if (zb_pattern_match(only->v[i], path))
			return false;
	return only->n > 0;
}

/* Inside a carved place: is @q closed there? */
static bool carved_out(const struct zb_plan *plan, const struct zb_query *q,
		       int place, bool change, struct zb_finding *out)
{
	const struct zb_place *p = &plan->places[place];
	const struct zb_deny *d = denied(plan, p, q, change);
	enum zb_reason why = d ? ZB_R_DENIED : ZB_R_ONLY;
	bool absent = !q->exists && q->op != ZB_OP_FS_CREATE &&
		      q->op != ZB_OP_FS_RENAME;

	if (!d && !is_beside(change ? &p->only_changes : &p->only, q->target))
		return false;
	/* Names stay visible, so an absent one is simply absent. */
	*out = deny(why, place, absent ? ENOENT : EACCES,
		    absent ? ZB_FLOOR_MOUNT : ZB_FLOOR_LANDLOCK);
	out->deny = d;
	return true;
}

static struct zb_finding nowhere(const struct zb_plan *plan,
				 const struct zb_query *q)
{
	bool above = is_skeleton(plan, q->target, strlen(q->target));

	if (!above)
		return deny(ZB_R_HIDDEN, -1, ENOENT, ZB_FLOOR_MOUNT);
	/* A directory: to open it for writing or to execute it fails by
	 * itself; only its own metadata could change. */
	if (q->op == ZB_OP_FS_META)
		return deny(ZB_R_SKELETON, -1, EROFS, ZB_FLOOR_MOUNT);
	return allow(-1);
}

static int place_of(const struct zb_plan *plan, const struct zb_query *q)
{
	if (q->place >= 0 && (size_t)q->place < plan->n_places)
		return q->place;
	return zb_plan_place(plan, q->target);
}

/* A verdict of allow, by who may carry it out. */
static struct zb_finding allowed(const struct zb_place *p, int i, bool reads)
{
	struct zb_finding f = allow(i);

	if (p->carved || (reads ? p->brokered : p->brokered_writes))
		f.verdict = ZB_ALLOW_BROKERED;
	return f;
}

static struct zb_finding judge_read(const struct zb_plan *plan,
				    const struct zb_query *q)
{
	int i = place_of(plan, q);
	const struct zb_place *p = place_at(plan, i);
	struct zb_finding f;

	if (!p)
		return nowhere(plan, q);
	if (p->kind == ZB_PLACE_LINK)
		return allow(i);
	if (!q->exists && hides(p))
		return deny(ZB_R_HIDDEN, i, ENOENT, ZB_FLOOR_MOUNT);
	/* Whatever is there may be listed: names are no secret of a deny. */
	if (q->is_dir && q->exists)
		return allow(i);
	if (carved_out(plan, q, i, false, &f))
		return f;
	if (!(p->rights & ZB_MAY_READ) ||
	    (p->kind == ZB_PLACE_DEV && !below_any(q->target, devices)))
		return deny(ZB_R_NO_RIGHT, i, EACCES, ZB_FLOOR_LANDLOCK);
	return allowed(p, i, true);
}

/* Landlock looks upward across mounts: below a place from which anything can
 * be executed, such as HOME, it stops nobody. */
static enum zb_floor exec_floor(const struct zb_plan *plan,
				const struct zb_place *p)
{
	for (size_t i = 0; i < plan->n_places; i++) {
		const struct zb_place *q = &plan->places[i];

		if (q != p && (q->rights & ZB_MAY_EXEC) && !q->carved &&
		    !q->brokered && zb_path_below(p->path, q->path))
			return ZB_FLOOR_NONE;
	}
	return ZB_FLOOR_LANDLOCK;
}

static struct zb_finding judge_exec(const struct zb_plan *plan,
				    const struct zb_query *q)
{
	int i = place_of(plan, q);
	const struct zb_place *p = place_at(plan, i);
	struct zb_finding f;

	if (!p)
		return nowhere(plan, q);
	if (!q->exists && hides(p))
		return deny(ZB_R_HIDDEN, i, ENOENT, ZB_FLOOR_MOUNT);
	if (carved_out(plan, q, i, false, &f))
		return f;
	if (q->is_dir || !q->exists)
		return allow(i); /* fails by itself */
	if (!(p->rights & ZB_MAY_EXEC))
		return deny(ZB_R_NO_EXEC, i, EACCES, exec_floor(plan, p));
	if (p->carved || p->brokered)
		return deny(ZB_R_PARTLY, i, EACCES, ZB_FLOOR_LANDLOCK);
	return allow(i);
}

/* Content or metadata of what is there. */
static struct zb_finding judge_write(const struct zb_plan *plan,
				     const struct zb_query *q)
{
	int i = place_of(plan, q);
	const struct zb_place *p = place_at(plan, i);
	struct zb_finding f;

	if (p && p->kind == ZB_PLACE_LINK) {
		i = zb_plan_place_n(plan, q->target, dir_len(q->target));
		p = place_at(plan, i);
		if (!p)
			return deny(ZB_R_SKELETON, -1, EROFS, ZB_FLOOR_MOUNT);
	}
	if (!p)
		return nowhere(plan, q);
	if (!q->exists && hides(p))
		return deny(ZB_R_HIDDEN, i, ENOENT, ZB_FLOOR_MOUNT);
	if (!q->exists && !p->carved)
		return allow(i); /* fails by itself */
	if (!(p->rights & ZB_MAY_WRITE))
		return readonly(i);
	if (p->kind == ZB_PLACE_DEV && q->op == ZB_OP_FS_META &&
	    !is_own_node(q->target))
		return deny(ZB_R_READONLY, i, EROFS, ZB_FLOOR_MOUNT);
	if (p->kind == ZB_PLACE_DEV && !below_any(q->target, devices))
		return deny(ZB_R_NO_RIGHT, i, EACCES, ZB_FLOOR_LANDLOCK);
	if (carved_out(plan, q, i, true, &f))
		return f;
	return allowed(p, i, false);
}

/* Is @path the root of a mount? */
static bool is_mount(const struct zb_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n_places; i++)
		if (plan->places[i].kind != ZB_PLACE_LINK &&
		    !strcmp(plan->places[i].path, path))
			return true;
	return false;
}

/* Names that come or go: the directory's place decides. */
static struct zb_finding judge_name(const struct zb_plan *plan,
				    const struct zb_query *q)
{
	size_t n = dir_len(q->target);
	bool mount = is_mount(plan, q->target);
	bool goes = q->op == ZB_OP_FS_DELETE ||
		    (q->op == ZB_OP_FS_RENAME && q->exists);
	int i = zb_plan_place_n(plan, q->target, n);
	const struct zb_place *p;
	struct zb_finding f;

	if (q->place >= 0 && (size_t)q->place < plan->n_places && !mount &&
	    plan->places[q->place].kind != ZB_PLACE_LINK)
		i = q->place;
	p = place_at(plan, i);
	if (q->op == ZB_OP_FS_CREATE && q->exists)
		return allow(i); /* EEXIST by itself */
	if (!p || (p->kind == ZB_PLACE_DIR && strlen(p->path) != n))
		return is_skeleton(plan, q->target, n)
			       ? deny(ZB_R_SKELETON, -1, EROFS, ZB_FLOOR_MOUNT)
			       : deny(ZB_R_HIDDEN, -1, ENOENT, ZB_FLOOR_MOUNT);
	if (q->op == ZB_OP_FS_DELETE && !q->exists && hides(p))
		return deny(ZB_R_HIDDEN, i, ENOENT, ZB_FLOOR_MOUNT);
	if (!(rights_at(p, q->target) & ZB_MAY_CREATE))
		return readonly(i);
	if (mount && goes)
		return deny(ZB_R_MOUNT, i, EBUSY, ZB_FLOOR_MOUNT);
	if (carved_out(plan, q, i, true, &f))
		return f;
	return allowed(p, i, false);
}

/* Network. Nothing is granted in this version; what stays inside is the
 * extension's own business, carried out by the broker. */

static size_t host_len(const char *target)
{
	const char *colon = strrchr(target, ':');

	return colon ? (size_t)(colon - target) : strlen(target);
}

static bool host_is(const char *target, const char *host)
{
	size_t n = host_len(target);

	return n == strlen(host) && !strncmp(target, host, n);
}

static bool is_loopback(const char *target)
{
	static const char *const names[] = {"localhost", "[::1]", "::1",
					    "0.0.0.0", "[::]"};
	static const char mapped[] = "[::ffff:127.";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (host_is(target, names[i]))
			return true;
	return !strncmp(target, "127.", 4) ||
	       !strncmp(target, mapped, sizeof(mapped) - 1);
}

static struct zb_finding brokered(int place)
{
	struct zb_finding f = allow(place);

	f.verdict = ZB_ALLOW_BROKERED;
	return f;
}

static struct zb_finding judge_connect(const struct zb_query *q)
{
	if (!is_loopback(q->target))
		return deny(ZB_R_NET, -1, ENETUNREACH, ZB_FLOOR_NETNS);
	if (q->exists)
		return brokered(-1);
	return deny(ZB_R_NET, -1, ECONNREFUSED, ZB_FLOOR_NETNS);
}

static struct zb_finding judge_listen(const struct zb_query *q)
{
	if (is_loopback(q->target))
		return brokered(-1);
	return deny(ZB_R_NET, -1, EADDRNOTAVAIL, ZB_FLOOR_NETNS);
}

/* Sockets with a path: the extension's own lie where it may create. */
static struct zb_finding judge_unix(const struct zb_plan *plan,
				    const struct zb_query *q)
{
	const struct zb_place *p;
	int i;

	if (q->target[0] == '@')
		return q->exists ? brokered(-1)
				 : deny(ZB_R_SOCKET, -1, ECONNREFUSED,
					ZB_FLOOR_NETNS);
	i = place_of(plan, q);
	p = place_at(plan, i);
	if (!p || (!q->exists && hides(p)))
		return deny(ZB_R_SOCKET, i, ENOENT, ZB_FLOOR_MOUNT);
	if ((rights_at(p, q->target) & ZB_MAY_CREATE) && hides(p))
		return brokered(i);
	if (p->kind == ZB_PLACE_DATA)
		return brokered(i);
	return deny(ZB_R_SOCKET, i, EACCES, ZB_FLOOR_SECCOMP);
}

struct zb_asked zb_parse_verb(const char *target)
{
	struct zb_asked a = {.verb = ZB_VERB_COUNT};
	size_t n = strcspn(target, ":");
	const char *name = target[n] ? target + n + 1 : NULL;
	size_t len = name ? strlen(name) : 0;

	for (unsigned v = 0; v < ZB_VERB_COUNT; v++) {
		const char *word = zb_verb_name((enum zb_verb)v);

		if (strlen(word) == n && !strncmp(word, target, n))
			a.verb = (enum zb_verb)v;
	}
	if (a.verb == ZB_VERB_INTERCEPT && name && strchr(name, ':')) {
		len = strcspn(name, ":");
		a.part = name + len + 1;
	}
	if (name && len < sizeof(a.name)) {
		memcpy(a.name, name, len);
		a.has_name = true;
	} else if (name) {
		a.verb = ZB_VERB_COUNT; /* no such name can be granted */
	}
	return a;
}

static struct zb_finding judge_proto(const struct zb_plan *plan,
				     const struct zb_query *q)
{
	struct zb_asked a = zb_parse_verb(q->target);
	bool ok = false;

	if (a.verb == ZB_VERB_INTERCEPT && a.has_name)
		ok = zb_plan_intercept(plan, a.name, a.part);
	else if (a.verb != ZB_VERB_COUNT)
		ok = zb_plan_verb(plan, a.verb, a.has_name ? a.name : NULL);
	return ok ? allow(-1) : deny(ZB_R_VERB, -1, 0, ZB_FLOOR_NONE);
}

static struct zb_finding judge_env(const struct zb_plan *plan,
				   const struct zb_query *q)
{
	for (size_t i = 0; i < plan->n_env; i++)
		if (!strcmp(plan->env[i].name, q->target))
			return allow(-1);
	if (zb_env_rule(&plan->scope, q->target))
		return allow(-1); /* it is not set, today */
	return deny(ZB_R_ENV, -1, 0, ZB_FLOOR_NONE);
}

bool zb_parse_limit(const char *target, enum zb_limit *limit, uint64_t *amount)
{
	size_t n = strcspn(target, ":");

	for (unsigned l = 0; l < ZB_LIMIT_COUNT; l++) {
		const char *name = zb_limit_name((enum zb_limit)l);

		*limit = (enum zb_limit)l;
		if (strlen(name) == n && !strncmp(name, target, n))
			return target[n] &&
			       zb_parse_size(target + n + 1, amount);
	}
	return false;
}

static struct zb_finding judge_limit(const struct zb_plan *plan,
				     const struct zb_query *q)
{
	enum zb_limit limit;
	uint64_t amount;

	if (!zb_parse_limit(q->target, &limit, &amount))
		return deny(ZB_R_OTHER, -1, 0, ZB_FLOOR_NONE);
	return amount <= zb_plan_limit(plan, limit)
		       ? allow(-1)
		       : deny(ZB_R_LIMIT, -1, 0, ZB_FLOOR_NONE);
}

struct zb_finding zb_judge_query(const struct zb_plan *plan,
				 const struct zb_query *q)
{
	switch (q->op) {
	case ZB_OP_FS_READ:
		return judge_read(plan, q);
	case ZB_OP_FS_WRITE:
	case ZB_OP_FS_META:
		return judge_write(plan, q);
	case ZB_OP_FS_CREATE:
	case ZB_OP_FS_DELETE:
	case ZB_OP_FS_RENAME:
		return judge_name(plan, q);
	case ZB_OP_FS_EXEC:
		return judge_exec(plan, q);
	case ZB_OP_NET_CONNECT:
		return judge_connect(q);
	case ZB_OP_NET_LISTEN:
		return judge_listen(q);
	case ZB_OP_NET_DNS:
		return deny(ZB_R_NET, -1, ENETUNREACH, ZB_FLOOR_NETNS);
	case ZB_OP_NET_UNIX:
		return judge_unix(plan, q);
	case ZB_OP_SYSCALL:
		return deny(ZB_R_SYSCALL, -1, EPERM, ZB_FLOOR_SECCOMP);
	case ZB_OP_ENV:
		return judge_env(plan, q);
	case ZB_OP_PROTO:
		return judge_proto(plan, q);
	case ZB_OP_LIMIT:
		return judge_limit(plan, q);
	case ZB_OP_INTEGRITY:
	case ZB_OP_HELLO:
	case ZB_OP_COUNT:
		break;
	}
	return deny(ZB_R_OTHER, -1, 0, ZB_FLOOR_NONE);
}

bool zb_plan_is_built_in(const struct zb_plan *plan, int place,
			 const char *path)
{
	struct zb_query q = {.target = path, .place = place};
	const struct zb_place *p = place_at(plan, place_of(plan, &q));
	char room[ZB_PATH_FOLD_MAX];
	struct spelled s;

	if (!p || !p->carved)
		return false;
	if (!spell(&s, path))
		return true;
	for (size_t i = 0; i < plan->n_denies; i++) {
		const struct zb_deny *d = &plan->denies[i];

		if (d->built_in && closes(d, &s, false, room) && counts(d, p))
			return true;
	}
	return false;
}

static bool is_alike(const char *pattern, const struct spelled *a,
		     const struct spelled *b, char *folded)
{
	return zb_pattern_alike(pattern, a->path, b->path) &&
	       (!zb_path_fold(pattern, folded) ||
		zb_pattern_alike(folded, a->folded, b->folded));
}

/* All below what a pattern matches it matches as well, so it does not matter
 * which of them. */
static bool is_only_alike(const struct zb_strv *only, const char *a,
			  const char *b)
{
	if (!is_beside(only, a) && !is_beside(only, b))
		return true;
	for (size_t i = 0; i < only->n; i++)
		if (!zb_pattern_alike(only->v[i], a, b))
			return false;
	return true;
}

static bool holds_place(const struct zb_plan *plan, const char *dir)
{
	for (size_t i = 0; i < plan->n_places; i++)
		if (zb_path_below(plan->places[i].path, dir))
			return true;
	return false;
}

bool zb_plan_may_move(const struct zb_plan *plan, int place, const char *from,
		      const char *to, const struct zb_deny **why)
{
	struct zb_query q = {.target = from, .place = place};
	const struct zb_place *p = place_at(plan, place_of(plan, &q));
	char room[ZB_PATH_FOLD_MAX];
	struct spelled a, b;

	*why = NULL;
	if (!p || holds_place(plan, from) || holds_place(plan, to))
		return false;
	if (!p->carved)
		return true;
	if (!spell(&a, from) || !spell(&b, to))
		return false;
	if (!is_only_alike(&p->only, from, to) ||
	    !is_only_alike(&p->only_changes, from, to))
		return false;
	for (size_t i = 0; i < plan->n_denies; i++) {
		*why = &plan->denies[i];
		if (!is_alike((*why)->pattern, &a, &b, room) && counts(*why, p))
			return false;
	}
	*why = NULL;
	return true;
}

enum zb_verdict zb_evaluate_fast(const struct zb_plan *plan,
				 const struct zb_query *q)
{
	return zb_judge_query(plan, q).verdict;
}

bool zb_plan_is_quiet(const struct zb_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->quiet.n; i++) {
		const char *q = plan->quiet.v[i];

		if (zb_pattern_is_glob(q) ? zb_pattern_match(q, path)
					  : !strcmp(q, path))
			return true;
	}
	return false;
}
