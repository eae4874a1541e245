/* evaluator.c - the one answer to "may it?".
 *
 * Two halves. judge() finds the verdict, why, and what the floor would say,
 * without memory of its own: that is the broker's hot path. explain() then
 * puts the why into words and looks for the least grant that would help.
 *
 * The floor that is modelled here is what the renderers build from the same
 * plan: a place that may not be written is a read-only mount (EROFS); what no
 * place shows does not exist (ENOENT); inside a mount Landlock knows rights
 * (EACCES); a mount's own root can be neither renamed nor removed (EBUSY).
 * Directories above places are made read-only by the launcher. */
#include "evaluator.h"

#include "cleanup.h"
#include "path_match.h"
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum reason {
	R_ALLOWED,
	R_HIDDEN,   /* no place shows it */
	R_SKELETON, /* a directory made only for what lies below */
	R_READONLY, /* its place is read-only */
	R_DENIED,   /* a deny covers it */
	R_ONLY,	    /* its grant has a pattern, and this does not match */
	R_NO_EXEC,  /* visible, not executable */
	R_PARTLY,   /* executable, were it not for a deny nearby */
	R_MOUNT,    /* the root of a mount */
	R_NO_RIGHT, /* its place has no such right */
	R_NET,
	R_SOCKET,
	R_SYSCALL,
	R_ENV,
	R_VERB,
	R_OTHER,
};

struct finding {
	enum zb_verdict verdict;
	enum reason reason;
	int place;
	int err_no;
	enum zb_floor floor;
	const struct zb_deny *deny;
};

static struct finding allow(int place)
{
	return (struct finding){.verdict = ZB_ALLOW, .place = place};
}

static struct finding deny(enum reason why, int place, int err_no,
			   enum zb_floor floor)
{
	return (struct finding){.verdict = ZB_DENY,
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

/* Of /dev only these may be opened: there is a terminal among the rest. */
static bool is_device(const char *path)
{
	static const char *const open[] = {
		"/dev/null",	"/dev/zero", "/dev/full", "/dev/random",
		"/dev/urandom", "/dev/pts",  "/dev/shm"};

	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		if (zb_path_below(path, open[i]))
			return true;
	return false;
}

static bool proc_is_readonly(const char *path)
{
	static const char *const closed[] = {
		"/proc/sys",  "/proc/sysrq-trigger", "/proc/irq", "/proc/bus",
		"/proc/acpi", "/proc/scsi",	     "/proc/fs"};

	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
		if (zb_path_below(path, closed[i]))
			return true;
	return false;
}

/* What a change without the right gets: the mount says it first. */
static struct finding readonly(const struct zb_plan *plan, int place)
{
	if (plan->places[place].kind == ZB_PLACE_PROC)
		return deny(R_NO_RIGHT, place, EACCES, ZB_FLOOR_LANDLOCK);
	return deny(R_READONLY, place, EROFS, ZB_FLOOR_MOUNT);
}

/* The deny that covers @path, or NULL. What is built in covers changes. */
static const struct zb_deny *denied(const struct zb_plan *plan,
				    const struct zb_place *p, const char *path,
				    bool change)
{
	if (!p->carved)
		return NULL;
	for (size_t i = 0; i < plan->n_denies; i++)
		if ((change || !plan->denies[i].built_in) &&
		    zb_pattern_match(plan->denies[i].pattern, path))
			return &plan->denies[i];
	return NULL;
}

/* Is @path outside the pattern of its grant? */
static bool beside_pattern(const struct zb_place *p, const char *path)
{
	for (size_t i = 0; i < p->only.n; i++)
		if (zb_pattern_match(p->only.v[i], path))
			return false;
	return p->only.n > 0;
}

/* Inside a carved place: is @q closed there? */
static bool carved_out(const struct zb_plan *plan, const struct zb_query *q,
		       int place, bool change, struct finding *out)
{
	const struct zb_place *p = &plan->places[place];
	const struct zb_deny *d = denied(plan, p, q->target, change);
	enum reason why = d ? R_DENIED : R_ONLY;
	bool absent = !q->exists && q->op != ZB_OP_FS_CREATE &&
		      q->op != ZB_OP_FS_RENAME;

	if (!d && !beside_pattern(p, q->target))
		return false;
	/* Names stay visible, so an absent one is simply absent. */
	*out = deny(why, place, absent ? ENOENT : EACCES,
		    absent ? ZB_FLOOR_MOUNT : ZB_FLOOR_LANDLOCK);
	out->deny = d;
	return true;
}

static struct finding nowhere(const struct zb_plan *plan,
			      const struct zb_query *q)
{
	bool above = is_skeleton(plan, q->target, strlen(q->target));

	if (!above)
		return deny(R_HIDDEN, -1, ENOENT, ZB_FLOOR_MOUNT);
	/* A directory: to open it for writing or to execute it fails by
	 * itself; only its own metadata could change. */
	if (q->op == ZB_OP_FS_META)
		return deny(R_SKELETON, -1, EROFS, ZB_FLOOR_MOUNT);
	return allow(-1);
}

static int place_of(const struct zb_plan *plan, const struct zb_query *q)
{
	if (q->place >= 0 && (size_t)q->place < plan->n_places)
		return q->place;
	return zb_plan_place(plan, q->target);
}

/* A verdict of allow, by who may carry it out. */
static struct finding allowed(const struct zb_place *p, int i, bool reads)
{
	struct finding f = allow(i);

	if (p->carved || (p->brokered && reads))
		f.verdict = ZB_ALLOW_BROKERED;
	return f;
}

static struct finding judge_read(const struct zb_plan *plan,
				 const struct zb_query *q)
{
	int i = place_of(plan, q);
	const struct zb_place *p = place_at(plan, i);
	struct finding f;

	if (!p)
		return nowhere(plan, q);
	if (p->kind == ZB_PLACE_LINK)
		return allow(i);
	if (!q->exists && hides(p))
		return deny(R_HIDDEN, i, ENOENT, ZB_FLOOR_MOUNT);
	/* Whatever is there may be listed: names are no secret of a deny. */
	if (q->is_dir && q->exists)
		return allow(i);
	if (carved_out(plan, q, i, false, &f))
		return f;
	if (!(p->rights & ZB_MAY_READ) ||
	    (p->kind == ZB_PLACE_DEV && !is_device(q->target)))
		return deny(R_NO_RIGHT, i, EACCES, ZB_FLOOR_LANDLOCK);
	return allowed(p, i, true);
}

static struct finding judge_exec(const struct zb_plan *plan,
				 const struct zb_query *q)
{
	int i = place_of(plan, q);
	const struct zb_place *p = place_at(plan, i);
	struct finding f;

	if (!p)
		return nowhere(plan, q);
	if (!q->exists && hides(p))
		return deny(R_HIDDEN, i, ENOENT, ZB_FLOOR_MOUNT);
	if (carved_out(plan, q, i, false, &f))
		return f;
	if (q->is_dir || !q->exists)
		return allow(i); /* fails by itself */
	if (!(p->rights & ZB_MAY_EXEC))
		return deny(R_NO_EXEC, i, EACCES, ZB_FLOOR_LANDLOCK);
	if (p->carved || p->brokered)
		return deny(R_PARTLY, i, EACCES, ZB_FLOOR_LANDLOCK);
	return allow(i);
}

/* Content or metadata of what is there. */
static struct finding judge_write(const struct zb_plan *plan,
				  const struct zb_query *q)
{
	int i = place_of(plan, q);
	const struct zb_place *p = place_at(plan, i);
	struct finding f;

	if (p && p->kind == ZB_PLACE_LINK) {
		i = zb_plan_place_n(plan, q->target, dir_len(q->target));
		p = place_at(plan, i);
		if (!p)
			return deny(R_SKELETON, -1, EROFS, ZB_FLOOR_MOUNT);
	}
	if (!p)
		return nowhere(plan, q);
	if (!q->exists && hides(p))
		return deny(R_HIDDEN, i, ENOENT, ZB_FLOOR_MOUNT);
	if (!q->exists && !p->carved)
		return allow(i); /* fails by itself */
	if (!(p->rights & ZB_MAY_WRITE))
		return readonly(plan, i);
	if (p->kind == ZB_PLACE_DEV && q->op == ZB_OP_FS_META &&
	    !is_own_node(q->target))
		return deny(R_READONLY, i, EROFS, ZB_FLOOR_MOUNT);
	if (p->kind == ZB_PLACE_DEV && !is_device(q->target))
		return deny(R_NO_RIGHT, i, EACCES, ZB_FLOOR_LANDLOCK);
	if (p->kind == ZB_PLACE_PROC && proc_is_readonly(q->target))
		return deny(R_READONLY, i, EROFS, ZB_FLOOR_MOUNT);
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
static struct finding judge_name(const struct zb_plan *plan,
				 const struct zb_query *q)
{
	size_t n = dir_len(q->target);
	bool mount = is_mount(plan, q->target);
	bool goes = q->op == ZB_OP_FS_DELETE ||
		    (q->op == ZB_OP_FS_RENAME && q->exists);
	int i = zb_plan_place_n(plan, q->target, n);
	const struct zb_place *p;
	struct finding f;

	if (q->place >= 0 && (size_t)q->place < plan->n_places && !mount &&
	    plan->places[q->place].kind != ZB_PLACE_LINK)
		i = q->place;
	p = place_at(plan, i);
	if (q->op == ZB_OP_FS_CREATE && q->exists)
		return allow(i); /* EEXIST by itself */
	if (!p || (p->kind == ZB_PLACE_DIR && strlen(p->path) != n))
		return is_skeleton(plan, q->target, n)
			       ? deny(R_SKELETON, -1, EROFS, ZB_FLOOR_MOUNT)
			       : deny(R_HIDDEN, -1, ENOENT, ZB_FLOOR_MOUNT);
	if (q->op == ZB_OP_FS_DELETE && !q->exists && hides(p))
		return deny(R_HIDDEN, i, ENOENT, ZB_FLOOR_MOUNT);
	if (!(rights_at(p, q->target) & ZB_MAY_CREATE))
		return readonly(plan, i);
	if (mount && goes)
		return deny(R_MOUNT, i, EBUSY, ZB_FLOOR_MOUNT);
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

static struct finding brokered(int place)
{
	struct finding f = allow(place);

	f.verdict = ZB_ALLOW_BROKERED;
	return f;
}

static struct finding judge_connect(const struct zb_query *q)
{
	if (!is_loopback(q->target))
		return deny(R_NET, -1, ENETUNREACH, ZB_FLOOR_NETNS);
	if (q->exists)
		return brokered(-1);
	return deny(R_NET, -1, ECONNREFUSED, ZB_FLOOR_NETNS);
}

static struct finding judge_listen(const struct zb_query *q)
{
	if (is_loopback(q->target))
		return brokered(-1);
	return deny(R_NET, -1, EADDRNOTAVAIL, ZB_FLOOR_NETNS);
}

/* Sockets with a path: the extension's own lie where it may create. */
static struct finding judge_unix(const struct zb_plan *plan,
				 const struct zb_query *q)
{
	const struct zb_place *p;
	int i;

	if (q->target[0] == '@')
		return q->exists ? brokered(-1)
				 : deny(R_SOCKET, -1, ECONNREFUSED,
					ZB_FLOOR_NETNS);
	i = place_of(plan, q);
	p = place_at(plan, i);
	if (!p || (!q->exists && hides(p)))
		return deny(R_SOCKET, i, ENOENT, ZB_FLOOR_MOUNT);
	if ((rights_at(p, q->target) & ZB_MAY_CREATE) && hides(p))
		return brokered(i);
	if (p->kind == ZB_PLACE_DATA)
		return brokered(i);
	return deny(R_SOCKET, i, EACCES, ZB_FLOOR_SECCOMP);
}

/* "VERB", "VERB:NAME", "intercept:EVENT:PART", cut apart. */
struct asked {
	enum zb_verb verb; /* ZB_VERB_COUNT: none of them */
	char name[160];
	const char *part; /* into the target */
	bool has_name;
};

static struct asked parse_verb(const char *target)
{
	struct asked a = {.verb = ZB_VERB_COUNT};
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

static struct finding judge_proto(const struct zb_plan *plan,
				  const struct zb_query *q)
{
	struct asked a = parse_verb(q->target);
	bool ok = false;

	if (a.verb == ZB_VERB_INTERCEPT && a.has_name)
		ok = zb_plan_intercept(plan, a.name, a.part);
	else if (a.verb != ZB_VERB_COUNT)
		ok = zb_plan_verb(plan, a.verb, a.has_name ? a.name : NULL);
	return ok ? allow(-1) : deny(R_VERB, -1, 0, ZB_FLOOR_NONE);
}

static struct finding judge_env(const struct zb_plan *plan,
				const struct zb_query *q)
{
	for (size_t i = 0; i < plan->n_env; i++)
		if (!strcmp(plan->env[i].name, q->target))
			return allow(-1);
	return deny(R_ENV, -1, 0, ZB_FLOOR_NONE);
}

static struct finding judge(const struct zb_plan *plan,
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
		return deny(R_NET, -1, ENETUNREACH, ZB_FLOOR_NETNS);
	case ZB_OP_NET_UNIX:
		return judge_unix(plan, q);
	case ZB_OP_SYSCALL:
		return deny(R_SYSCALL, -1, EPERM, ZB_FLOOR_SECCOMP);
	case ZB_OP_ENV:
		return judge_env(plan, q);
	case ZB_OP_PROTO:
		return judge_proto(plan, q);
	case ZB_OP_LIMIT:
	case ZB_OP_INTEGRITY:
	case ZB_OP_HELLO:
	case ZB_OP_COUNT:
		break;
	}
	return deny(R_OTHER, -1, 0, ZB_FLOOR_NONE);
}

enum zb_verdict zb_evaluate_fast(const struct zb_plan *plan,
				 const struct zb_query *q)
{
	return judge(plan, q).verdict;
}

/* Words */

/* The key of fs.* that an operation would need. */
static const char *key_of(enum zb_op op)
{
	if (op == ZB_OP_FS_READ)
		return "fs.read";
	return op == ZB_OP_FS_EXEC ? "fs.exec" : "fs.write";
}

static const char *files_of(const struct zb_plan *plan)
{
	return plan->scope.file ? plan->scope.file : "the scope";
}

/* The widest directory around @path of which it is true that no grant reaches
 * into it, but no wider than HOME, the project, or one name below /. */
static char *ungranted(const struct zb_plan *plan, const char *path)
{
	const char *from = NULL;
	const char *slash;

	if (plan->home_real && zb_path_below(path, plan->home_real))
		from = plan->home_real;
	if (plan->project && zb_path_below(path, plan->project) &&
	    (!from || zb_path_below(plan->project, from)))
		from = plan->project;
	slash = from ? path + strlen(from) : strchr(path + 1, '/');
	while (slash && *slash) {
		size_t n = (size_t)(slash - path);
		bool reached = false;

		for (size_t i = 0; i < plan->n_places && !reached; i++) {
			const struct zb_place *p = &plan->places[i];

			reached = p->kind == ZB_PLACE_GRANT &&
				  !strncmp(p->path, path, n) &&
				  (p->path[n] == '/' || !p->path[n]);
		}
		if (!reached)
			return zb_strndup(path, n);
		slash = strchr(slash + 1, '/');
	}
	return zb_strdup(path);
}

static const char *place_words(const struct zb_plan *plan,
			       const struct zb_place *p)
{
	switch (p->kind) {
	case ZB_PLACE_SYSTEM:
	case ZB_PLACE_RUNTIME:
		return "is shown read-only, as what the program needs to run";
	case ZB_PLACE_EXTENSION:
		return plan->state_beside
			       ? "is the extension's installed code"
			       : "is the extension's code, read-only under "
				 "fs.state \"apart\"";
	case ZB_PLACE_GRANT:
		return p->rights & ZB_MAY_WRITE ? "is granted"
		       : p->rights & ZB_MAY_EXEC
			       ? "is granted for reading and executing"
			       : "is granted for reading only";
	case ZB_PLACE_TEXT:
	case ZB_PLACE_DIR:
	case ZB_PLACE_PROC:
	case ZB_PLACE_DEV:
	case ZB_PLACE_LINK:
		return "is made by the sandbox";
	case ZB_PLACE_DATA:
	case ZB_PLACE_HOME:
	case ZB_PLACE_TMP:
	case ZB_PLACE_PIN:
		return "is the extension's own";
	}
	return "";
}

static void add_origin(struct zb_buf *b, const struct zb_origin *o)
{
	zb_buf_addf(b, "%s: ", o->file ? o->file : "built in");
}

static void verb_rule(const struct zb_plan *plan, const struct zb_query *q,
		      struct zb_buf *b)
{
	struct asked a = parse_verb(q->target);
	const struct zb_switch *s;

	if (a.verb == ZB_VERB_COUNT) {
		zb_buf_addf(b, "built in: nothing grants %s", q->target);
		return;
	}
	s = &plan->scope.verbs[a.verb];
	if (a.verb == ZB_VERB_INTERCEPT)
		zb_buf_addf(b, "%s: protocol.intercept does not grant %s",
			    files_of(plan), q->target + strlen("intercept:"));
	else if (!s->set)
		zb_buf_addf(b, "%s: nothing grants protocol.%s", files_of(plan),
			    zb_verb_name(a.verb));
	else if (s->is_list && a.has_name)
		zb_buf_addf(b, "%s: protocol.%s does not name %s",
			    s->origin.file ? s->origin.file : files_of(plan),
			    zb_verb_name(a.verb), a.name);
	else
		zb_buf_addf(b, "%s: protocol.%s is %s",
			    s->origin.file ? s->origin.file : files_of(plan),
			    zb_verb_name(a.verb), s->is_list ? "[]" : "false");
}

static void place_rule(const struct zb_plan *plan, const struct finding *f,
		       struct zb_buf *b)
{
	const struct zb_place *p = place_at(plan, f->place);

	if (!p)
		return;
	add_origin(b, &p->origin);
	if (f->reason == R_ONLY)
		zb_buf_addf(b, "%s grants only %s", p->origin.key,
			    p->only.v[0]);
	else if (f->reason == R_PARTLY)
		zb_buf_addf(b,
			    "nothing can be executed in %s, into which a deny "
			    "or a pattern reaches",
			    p->path);
	else
		zb_buf_addf(b, "%s %s", p->path, place_words(plan, p));
}

static void hidden_rule(const struct zb_plan *plan, const struct zb_query *q,
			struct zb_buf *b)
{
	zb_auto(free) char *dir = q->op == ZB_OP_FS_EXEC
					  ? zb_strdup(q->target)
					  : ungranted(plan, q->target);
	bool itself = dir && !strcmp(dir, q->target);

	zb_buf_addf(b, "%s: nothing grants %s %s %s", files_of(plan),
		    key_of(q->op), itself ? "of" : "below",
		    dir ? dir : q->target);
}

static void add_rule(const struct zb_plan *plan, const struct zb_query *q,
		     const struct finding *f, struct zb_buf *b)
{

	switch (f->reason) {
	case R_ALLOWED:
		if (f->place >= 0)
			place_rule(plan, f, b);
		else
			zb_buf_adds(b, "built in");
		break;
	case R_HIDDEN:
		hidden_rule(plan, q, b);
		break;
	case R_SKELETON:
		zb_buf_adds(b, "built in: the directory exists inside only "
			       "for what lies below it, read-only");
		break;
	case R_DENIED:
		add_origin(b, &f->deny->origin);
		zb_buf_addf(b, "fs.deny %s", f->deny->pattern);
		break;
	case R_NO_EXEC:
		zb_buf_addf(b, "%s: nothing grants fs.exec of %s",
			    files_of(plan), q->target);
		break;
	case R_MOUNT:
		zb_buf_addf(b,
			    "built in: %s is a mount of its own, it can be "
			    "neither renamed nor removed",
			    q->target);
		break;
	case R_READONLY:
	case R_ONLY:
	case R_PARTLY:
	case R_NO_RIGHT:
		place_rule(plan, f, b);
		break;
	case R_NET:
		zb_buf_addf(b, "%s: the sandbox's network is empty",
			    files_of(plan));
		break;
	case R_SOCKET:
		zb_buf_addf(b, "%s: nothing grants net.unix %s", files_of(plan),
			    q->target);
		break;
	case R_SYSCALL:
		zb_buf_addf(b, "built in: the system call %s is closed",
			    q->target);
		break;
	case R_ENV:
		zb_buf_addf(b, "%s: env.pass does not name %s", files_of(plan),
			    q->target);
		break;
	case R_VERB:
		verb_rule(plan, q, b);
		break;
	case R_OTHER:
		zb_buf_addf(b, "built in: %s", zb_op_name(q->op));
		break;
	}
}

/* A rule is shown as it is, and names in it are a stranger's. */
static char *rule_text(const struct zb_plan *plan, const struct zb_query *q,
		       const struct finding *f)
{
	struct zb_buf raw = {0}, b = {0};

	add_rule(plan, q, f, &raw);
	zb_text_escape(&b, zb_buf_str(&raw), raw.len, 0);
	zb_buf_done(&raw);
	return zb_buf_steal(&b);
}

/* Grants */

struct grant {
	const char *key;
	char *value;
	const char *why_not;
};

/* As a user would write it, and as it will be the same elsewhere. */
static char *pretty(const struct zb_plan *plan, const char *path)
{
	const struct {
		const char *dir, *name;
	} shorter[] = {
		{plan->extension_real, "${extension_dir}"},
		{plan->project, "${project}"},
		{plan->home_real, "~"},
	};

	for (size_t i = 0; i < sizeof(shorter) / sizeof(shorter[0]); i++) {
		const char *dir = shorter[i].dir;

		if (dir && strcmp(dir, "/") != 0 && zb_path_below(path, dir))
			return zb_strf("%s%s", shorter[i].name,
				       path + strlen(dir));
	}
	return zb_strdup(path);
}

/* Reasons that no scope can change, by where the target lies. */
static const char *never(const struct zb_plan *plan, const struct zb_query *q)
{
	const char *t = q->target;
	const char *zot = plan->zot_home_real ? plan->zot_home_real : "/\001";
	size_t n = strlen(zot);
	const char *rest = zb_path_below(t, zot) ? t + n : "";

	if (zb_path_below(rest, "/zotbox") || zb_path_below(rest, "/logs"))
		return "the supervisor's own directories cannot be granted";
	if (zb_path_below(t, "/proc") || zb_path_below(t, "/dev"))
		return "the sandbox has its own /proc and /dev";
	if (!strcmp(t, "/tmp"))
		return "/tmp inside is the extension's own";
	if (zb_pattern_is_glob(t))
		return "its name has * or ? in it; grant the directory";
	if (!zb_text_is_plain(t, strlen(t)))
		return "its name is not plain text; grant the directory";
	if ((plan->home_real && zb_path_below(plan->home_real, t)) ||
	    zb_path_below(zot, t))
		return "it is or holds HOME or zot's own directory, which "
		       "needs --yes-i-mean-it";
	if (!strcmp(rest, "/auth.json"))
		return "it holds zot's credentials, which needs "
		       "--yes-i-mean-it";
	return NULL;
}

static bool on_path(const struct zb_plan *plan, const char *path)
{
	size_t n = dir_len(path);
	const char *s = "";

	for (size_t i = 0; i < plan->n_env; i++)
		if (!strcmp(plan->env[i].name, "PATH"))
			s = plan->env[i].value;
	while (*s) {
		size_t k = strcspn(s, ":");

		if (k == n && !strncmp(s, path, n))
			return true;
		s += k + (s[k] == ':');
	}
	return false;
}

static const char no_directories[] =
	"writing below a directory is not built in this version; the extension "
	"can keep its files in its data directory";

static void grant_change(const struct zb_plan *plan, const struct zb_query *q,
			 const struct finding *f, struct grant *g)
{
	const struct zb_place *p = place_at(plan, f->place);

	if (f->reason == R_SKELETON) {
		g->why_not = no_directories;
	} else if (p && p->kind == ZB_PLACE_TEXT) {
		g->why_not = "the file is made by the sandbox";
	} else if (p && (p->kind == ZB_PLACE_SYSTEM ||
			 p->kind == ZB_PLACE_RUNTIME)) {
		g->why_not = "what the program runs from stays read-only";
	} else if (p && p->kind == ZB_PLACE_EXTENSION && !plan->state_beside) {
		g->why_not = "the extension's code is read-only; it can keep "
			     "its files in its data directory";
	} else if (p && p->kind == ZB_PLACE_EXTENSION &&
		   !strcmp(zb_path_name(q->target), "extension.json")) {
		g->why_not = "the manifest cannot be granted for writing";
	} else if ((q->op != ZB_OP_FS_WRITE && q->op != ZB_OP_FS_META) ||
		   q->is_dir) {
		g->why_not = no_directories;
	} else {
		g->key = "fs.write";
		g->value = pretty(plan, q->target);
	}
}

/* A deny stands above every grant, whatever else is missing. */
static bool is_denied(const struct zb_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n_denies; i++)
		if (!plan->denies[i].built_in &&
		    zb_pattern_match(plan->denies[i].pattern, path))
			return true;
	return false;
}

static void grant_fs(const struct zb_plan *plan, const struct zb_query *q,
		     const struct finding *f, struct grant *g)
{
	const struct zb_place *p = place_at(plan, f->place);

	if (f->reason == R_DENIED || is_denied(plan, q->target)) {
		g->why_not = "fs.deny wins over every grant: edit the scope";
		return;
	}
	g->why_not = f->reason == R_MOUNT ? "it is a mount of the sandbox"
					  : never(plan, q);
	if (g->why_not)
		return;
	if (f->reason == R_PARTLY) {
		g->why_not = "the kernel cannot execute from a directory into "
			     "which a deny or a pattern reaches";
	} else if (q->op == ZB_OP_FS_READ) {
		g->key = "fs.read";
		g->value = pretty(plan, q->target);
	} else if (q->op == ZB_OP_FS_EXEC && p && p->kind == ZB_PLACE_TEXT) {
		g->why_not = "the file is made by the sandbox";
	} else if (q->op == ZB_OP_FS_EXEC) {
		g->key = "fs.exec";
		g->value = on_path(plan, q->target)
				   ? zb_strdup(zb_path_name(q->target))
				   : pretty(plan, q->target);
	} else {
		grant_change(plan, q, f, g);
	}
}

static void grant_verb(const struct zb_plan *plan, const struct zb_query *q,
		       struct grant *g, char **key)
{
	struct asked a = parse_verb(q->target);

	if (a.verb == ZB_VERB_COUNT ||
	    !zb_text_is_plain(q->target, strlen(q->target))) {
		g->why_not = "no scope grants it";
		return;
	}
	if (a.verb == ZB_VERB_SLASH && a.has_name &&
	    zb_slash_forbidden(a.name)) {
		g->why_not = "this command cannot be granted to an extension";
		return;
	}
	if (a.verb == ZB_VERB_INTERCEPT) {
		if (!a.has_name || !a.part) {
			g->why_not = "name what the answer may do: block, "
				     "replace or modify:TOOL";
			return;
		}
		*key = zb_strf("protocol.intercept.%s", a.name);
		g->value = zb_strdup(a.part);
	} else {
		const struct zb_switch *s = &plan->scope.verbs[a.verb];
		bool lists = s->is_list || a.verb == ZB_VERB_EVENTS ||
			     a.verb == ZB_VERB_SLASH ||
			     a.verb == ZB_VERB_CALL_TOOL;

		if (lists && !a.has_name) {
			g->why_not = "it is granted by name";
			return;
		}
		*key = zb_strf("protocol.%s", zb_verb_name(a.verb));
		g->value = zb_strdup(lists ? a.name : "true");
	}
	g->key = *key;
}

static void find_grant(const struct zb_plan *plan, const struct zb_query *q,
		       const struct finding *f, struct grant *g, char **key)
{
	switch (f->reason) {
	case R_NET:
	case R_SOCKET:
		g->why_not = "this version grants no network";
		break;
	case R_SYSCALL:
		g->why_not = "no scope grants system calls";
		break;
	case R_OTHER:
		g->why_not = "no scope grants it";
		break;
	case R_ENV:
		g->key = "env.pass";
		g->value = zb_strdup(q->target);
		break;
	case R_VERB:
		grant_verb(plan, q, g, key);
		break;
	case R_ALLOWED:
		break;
	case R_HIDDEN:
	case R_SKELETON:
	case R_READONLY:
	case R_DENIED:
	case R_ONLY:
	case R_NO_EXEC:
	case R_PARTLY:
	case R_MOUNT:
	case R_NO_RIGHT:
		grant_fs(plan, q, f, g);
		break;
	}
}

void zb_evaluate(const struct zb_plan *plan, const struct zb_query *q,
		 struct zb_answer *out)
{
	struct finding f = judge(plan, q);
	struct grant g = {0};
	char *key = NULL;

	*out = (struct zb_answer){.verdict = f.verdict,
				  .place = f.place,
				  .err_no = f.err_no,
				  .floor = f.floor,
				  .rule = rule_text(plan, q, &f)};
	if (f.verdict != ZB_DENY)
		return;
	find_grant(plan, q, &f, &g, &key);
	if (g.key && g.value) {
		out->grant_key = key ? key : zb_strdup(g.key);
		out->grant_value = g.value;
		return;
	}
	free(key);
	free(g.value);
	out->why_not = zb_strdup(g.why_not ? g.why_not : "out of memory");
}

void zb_answer_done(struct zb_answer *a)
{
	free(a->rule);
	free(a->grant_key);
	free(a->grant_value);
	free(a->why_not);
	*a = (struct zb_answer){0};
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
