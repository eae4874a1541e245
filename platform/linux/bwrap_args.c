/* bwrap_args.c - the plan as a command line for bubblewrap.
 *
 * Theory. bwrap starts from an empty tmpfs and obeys its arguments in order,
 * so a mount must come after the one it lies in: the plan's order. A bind is
 * made at its destination even if that has to be created first; below a bind
 * that would be a file on the host, so whatever lies in a bound place must be
 * there already (bwrap_args.h). Read-only is made last, since nothing can be
 * created below afterwards: directories of ours, /proc, /dev, and the root.
 *
 * What bwrap leaves open and is closed here:
 *	- /proc: of it bwrap closes some names, and those only where access(2)
 *	  says that they could be written. For root that looks at the directory
 *	  /proc/sys; the files in it, such as core_pattern, belong to uid 0 and
 *	  need no capability, and what else drivers put into /proc nobody can
 *	  list. So all of it is read-only. (What is opened through a link in
 *	  /proc/PID/fd is asked of the mount that it leads to.)
 *	- /dev/shm: a plain directory on the tmpfs of /dev, so it would become
 *	  read-only with it. It gets a tmpfs of its own.
 *
 * Binds are what takes the time: after each, bwrap reads the list of all mounts
 * there are, the host's included. So small files of the system are copied, what
 * the mount around it shows anyway gets none of its own, and the mounts that
 * are no binds come last (turn_of).
 */
#include "bwrap_args.h"

#include "cleanup.h"
#include "landlock_rules.h"
#include "path_match.h"
#include "text.h"

#include <string.h>

#define LAST_TURN 2

/* Additions after a failure are ignored; it is looked at once, at the end. */
struct list {
	struct zb_bwrap_args *out;
	bool failed;
};

#define ADD(l, ...) add((l), (const char *const[]){__VA_ARGS__, NULL})

static void add(struct list *l, const char *const *args)
{
	for (; *args && !l->failed; args++)
		if (zb_strv_add(&l->out->args, *args))
			l->failed = true;
}

/* The descriptor's number is known later: note where it goes. */
static void add_file(struct list *l, const struct zb_place *p)
{
	struct zb_bwrap_args *out = l->out;
	struct zb_bwrap_data *v;

	v = realloc(out->data, (out->n_data + 1) * sizeof(*v));
	if (!v) {
		l->failed = true;
		return;
	}
	out->data = v;
	ADD(l, "--perms", "0444", p->copied ? "--file" : "--ro-bind-data", "FD",
	    p->path);
	if (l->failed)
		return;
	v[out->n_data] = (struct zb_bwrap_data){
		.arg = out->args.n - 2,
		.content = zb_strdup(p->content),
		.len = p->content ? strlen(p->content) : 0,
		.source = p->content ? NULL : zb_strdup(p->source),
	};
	if (!v[out->n_data].content && !v[out->n_data].source)
		l->failed = true;
	out->n_data++;
}

static void add_namespaces(struct list *l, const struct zb_bwrap_layers *layers)
{
	ADD(l, "--unshare-user", "--unshare-pid", "--unshare-ipc",
	    "--unshare-uts", "--unshare-cgroup");
	if (layers->netns)
		ADD(l, "--unshare-net");
	ADD(l, "--die-with-parent", "--new-session", "--as-pid-1");
	/* As root the payload would have every capability in its namespace.
	 * (An ordinary user's would have none even so: a program of the escape
	 * suite, without this layer, keeps them.) */
	ADD(l, layers->caps ? "--cap-drop" : "--cap-add", "ALL");
	ADD(l, "--hostname", "sandbox");
}

static void add_dev(struct list *l, const char *dev)
{
	zb_auto(free) char *shm = zb_path_join(dev, "shm");

	if (!shm) {
		l->failed = true;
		return;
	}
	ADD(l, "--dev", dev, "--perms", "1777", "--tmpfs", shm);
}

/* The nearest place that @p lies in, NULL: bwrap's root. With @mounts only
 * what is a mount for certain: no link, no directory of ours. */
static const struct zb_place *place_above(const struct zb_plan *plan,
					  const struct zb_place *p, bool mounts)
{
	const struct zb_place *best = NULL;

	for (size_t i = 0; i < plan->n_places; i++) {
		const struct zb_place *q = &plan->places[i];

		if (q == p || q->kind == ZB_PLACE_LINK ||
		    (mounts && q->kind == ZB_PLACE_DIR) ||
		    !zb_path_below(p->path, q->path))
			continue;
		if (!best || strlen(q->path) > strlen(best->path))
			best = q;
	}
	return best;
}

/* Is what @p is made in bwrap's own, and not the host's? */
static bool is_fresh(const struct zb_plan *plan, const struct zb_place *p)
{
	const struct zb_place *above = place_above(plan, p, false);

	return !above || above->kind == ZB_PLACE_TMP ||
	       above->kind == ZB_PLACE_DIR;
}

/* In the root a directory becomes read-only with the root; inside a place
 * that may be written it needs a mount, or it could be renamed and filled. */
static bool dir_is_mount(const struct zb_plan *plan, const struct zb_place *p)
{
	return p->kind == ZB_PLACE_DIR && place_above(plan, p, true);
}

static bool is_writable(const struct zb_place *p)
{
	switch ((int)p->kind) {
	case ZB_PLACE_HOME:
	case ZB_PLACE_DATA:
	case ZB_PLACE_PIN:
		return true;
	default:
		return p->rights & (ZB_MAY_WRITE | ZB_MAY_CREATE);
	}
}

static void add_place(struct list *l, const struct zb_plan *plan,
		      const struct zb_place *p)
{
	if (p->copied)
		add_file(l, p);
	if (p->copied || p->shown)
		return;
	switch (p->kind) {
	case ZB_PLACE_PROC:
		ADD(l, "--proc", p->path);
		break;
	case ZB_PLACE_DEV:
		add_dev(l, p->path);
		break;
	case ZB_PLACE_TMP:
		ADD(l, "--perms", "1777", "--tmpfs", p->path);
		break;
	case ZB_PLACE_LINK:
		if (is_fresh(plan, p))
			ADD(l, "--symlink", p->link_to, p->path);
		break;
	case ZB_PLACE_TEXT:
		add_file(l, p);
		break;
	case ZB_PLACE_DIR:
		ADD(l, dir_is_mount(plan, p) ? "--tmpfs" : "--dir", p->path);
		break;
	case ZB_PLACE_PIN:
	case ZB_PLACE_SYSTEM:
	case ZB_PLACE_RUNTIME:
	case ZB_PLACE_EXTENSION:
	case ZB_PLACE_DATA:
	case ZB_PLACE_HOME:
	case ZB_PLACE_GRANT:
		ADD(l, is_writable(p) ? "--bind" : "--ro-bind", p->source,
		    p->path);
		break;
	}
}

/* When a place is mounted: those that bring file systems of their own, which
 * bwrap makes without a look at the list, come after those that are binds. What
 * lies in a place is never before it. */
static int turn_of(const struct zb_plan *plan, const struct zb_place *p)
{
	int turn = 0;

	for (size_t i = 0; i < plan->n_places; i++) {
		const struct zb_place *q = &plan->places[i];
		bool fresh = q->kind == ZB_PLACE_PROC ||
			     q->kind == ZB_PLACE_DEV || q->kind == ZB_PLACE_TMP;

		if ((!fresh && q->kind != ZB_PLACE_HOME) ||
		    !zb_path_below(p->path, q->path))
			continue;
		if (fresh)
			return LAST_TURN;
		turn = 1;
	}
	return turn;
}

static void add_places(struct list *l, const struct zb_plan *plan)
{
	for (int turn = 0; turn <= LAST_TURN; turn++)
		for (size_t i = 0; i < plan->n_places; i++)
			if (turn_of(plan, &plan->places[i]) == turn)
				add_place(l, plan, &plan->places[i]);
}

/* Parents last: a remount must not stand in the way of one below it. */
static void add_read_only(struct list *l, const struct zb_plan *plan)
{
	bool own_root = true;

	for (size_t i = plan->n_places; i-- > 0;) {
		const struct zb_place *p = &plan->places[i];

		if (p->kind == ZB_PLACE_DEV || p->kind == ZB_PLACE_PROC ||
		    dir_is_mount(plan, p))
			ADD(l, "--remount-ro", p->path);
		if (!strcmp(p->path, "/"))
			own_root = false; /* a bind, read-only if so planned */
	}
	if (own_root)
		ADD(l, "--remount-ro", "/");
}

/* What is wrong with @p by itself, or NULL. */
static const char *fault_of(const struct zb_place *p)
{
	zb_auto(free) char *canonical = NULL;

	if (!p->path || p->path[0] != '/')
		return "its path is not absolute";
	canonical = zb_path_join(NULL, p->path);
	if (canonical && strcmp(canonical, p->path) != 0)
		return "its path is not canonical";
	switch (p->kind) {
	case ZB_PLACE_LINK:
		return p->link_to ? NULL : "a link without a target";
	case ZB_PLACE_TEXT:
		return p->content ? NULL : "a text without content";
	case ZB_PLACE_TMP:
	case ZB_PLACE_DIR:
	case ZB_PLACE_PROC:
	case ZB_PLACE_DEV:
		return NULL;
	case ZB_PLACE_SYSTEM:
	case ZB_PLACE_RUNTIME:
		if (is_writable(p))
			return "programs and libraries cannot be writable";
		break;
	case ZB_PLACE_EXTENSION:
	case ZB_PLACE_DATA:
	case ZB_PLACE_HOME:
	case ZB_PLACE_GRANT:
	case ZB_PLACE_PIN:
		break;
	}
	return p->source && p->source[0] == '/' ? NULL : "it has no source";
}

/* Does a read-only bind of @out show @in as it is? */
static bool shows(const struct zb_place *out, const struct zb_place *in)
{
	size_t n = out && out->source ? strlen(out->source) : 0;

	return n && out->is_dir && !is_writable(out) && !in->is_dir &&
	       !is_writable(in) && !strncmp(out->source, in->source, n) &&
	       !strcmp(in->source + n, in->path + strlen(out->path));
}

/* ... or with where it stands: after what it lies in, alone, below no link
 * (bwrap 0.12 refuses a destination with a link in it, older ones follow). */
static const char *fault_among(const struct zb_plan *plan, size_t i)
{
	const struct zb_place *p = &plan->places[i];

	for (size_t j = 0; j < plan->n_places; j++) {
		const struct zb_place *q = &plan->places[j];

		if (i == j || !zb_path_below(p->path, q->path))
			continue;
		if (!strcmp(p->path, q->path))
			return "two places have this path";
		if (q->kind == ZB_PLACE_LINK)
			return "it lies below a link";
		if (p->copied && q->kind != ZB_PLACE_DIR)
			return "a copy would be made in another place";
		if (j > i)
			return "it comes before the place it lies in";
	}
	return p->shown && !shows(place_above(plan, p, false), p)
		       ? "what is around it does not show it"
		       : NULL;
}

static int check(const struct zb_plan *plan, struct zb_error *err)
{
	if (!plan->cwd || plan->cwd[0] != '/')
		return zb_fail(err, ZB_EUNSUPPORTED,
			       "bubblewrap: the plan names no working "
			       "directory");
	for (size_t i = 0; i < plan->n_places; i++) {
		const struct zb_place *p = &plan->places[i];
		const char *why = fault_of(p);
		struct zb_buf b = {0};

		if (!why)
			why = fault_among(plan, i);
		if (!why)
			continue;
		if (p->path)
			zb_text_escape(&b, p->path, strlen(p->path), 256);
		zb_fail(err, ZB_EUNSUPPORTED, "bubblewrap cannot show %s: %s",
			zb_buf_str(&b), why);
		zb_buf_done(&b);
		return ZB_EUNSUPPORTED;
	}
	return 0;
}

int zb_bwrap_args_layered(struct zb_bwrap_args *out, const struct zb_plan *plan,
			  const struct zb_bwrap_layers *layers,
			  struct zb_error *err)
{
	struct zb_bwrap_args args = {0};
	struct list l = {.out = &args};
	int rc = check(plan, err);

	if (rc)
		return rc;
	add_namespaces(&l, layers);
	if (layers->mounts) {
		add_places(&l, plan);
		add_read_only(&l, plan);
	} else {
		ADD(&l, "--dev-bind", "/", "/", "--proc", "/proc");
	}
	ADD(&l, "--chdir", plan->cwd);
	if (l.failed)
		rc = zb_fail(err, ZB_ELIMIT,
			     "bubblewrap arguments: out of memory");
	else if (args.args.n > ZB_BWRAP_ARGS_MAX)
		rc = zb_fail(err, ZB_ELIMIT,
			     "bubblewrap arguments: %zu of them for %zu "
			     "places, and %d is the limit: grant a directory "
			     "instead of the files in it",
			     args.args.n, plan->n_places, ZB_BWRAP_ARGS_MAX);
	if (rc) {
		zb_bwrap_args_done(&args);
		return rc;
	}
	*out = args;
	return 0;
}

int zb_bwrap_args(struct zb_bwrap_args *out, const struct zb_plan *plan,
		  struct zb_error *err)
{
	static const struct zb_bwrap_layers all = {true, true, true};

	return zb_bwrap_args_layered(out, plan, &all, err);
}

void zb_bwrap_args_done(struct zb_bwrap_args *a)
{
	if (!a)
		return;
	zb_strv_done(&a->args);
	for (size_t i = 0; i < a->n_data; i++) {
		free(a->data[i].content);
		free(a->data[i].source);
	}
	free(a->data);
	*a = (struct zb_bwrap_args){0};
}

/* Readable, and one word however it is called. */
static void print_word(struct zb_buf *out, const char *s)
{
	zb_buf_addc(out, ' ');
	if (zb_text_shell_quote(out, s) != ZB_EUSAGE)
		return;
	zb_buf_addc(out, '"');
	zb_text_escape(out, s, strlen(s), 0);
	zb_buf_addc(out, '"');
}

/* One option and its operands a line: "--" begins the next line, but for the
 * operands of an option, which may be called anything. */
static void print_args(const struct zb_bwrap_args *a, struct zb_buf *out)
{
	static const struct {
		const char *option;
		unsigned operands;
	} arity[] = {
		{"--ro-bind", 2},  {"--bind", 2},     {"--symlink", 2},
		{"--dev-bind", 2}, {"--file", 2},     {"--ro-bind-data", 2},
		{"--cap-drop", 1}, {"--hostname", 1}, {"--proc", 1},
		{"--dev", 1},	   {"--perms", 1},    {"--tmpfs", 1},
		{"--dir", 1},	   {"--chdir", 1},    {"--remount-ro", 1},
	};

	for (size_t i = 0; i < a->args.n;) {
		unsigned n = 0;

		for (size_t k = 0; k < ZB_ARRAY_LEN(arity); k++)
			if (!strcmp(a->args.v[i], arity[k].option))
				n = arity[k].operands;
		zb_buf_adds(out, a->args.v[i++]);
		for (; n && i < a->args.n; n--)
			print_word(out, a->args.v[i++]);
		zb_buf_addc(out, '\n');
	}
}

static int print_landlock(const struct zb_plan *plan, struct zb_buf *out,
			  struct zb_error *err)
{
	struct zb_landlock_rule *rules;
	size_t n;
	/* All that we know; a kernel with less loses the later names. */
	int rc = zb_landlock_rules(plan, 7, &rules, &n, err);

	if (rc)
		return rc;
	zb_buf_adds(out, "\n# Landlock\n");
	for (size_t i = 0; i < n; i++) {
		zb_text_escape(out, rules[i].path, strlen(rules[i].path), 0);
		zb_buf_adds(out, rules[i].is_dir ? "/**" : "");
		zb_buf_adds(out, ": ");
		zb_landlock_names(rules[i].access, out);
		zb_buf_adds(out, rules[i].optional ? " (if there)\n" : "\n");
	}
	zb_landlock_rules_done(rules, n);
	zb_buf_adds(out, "TCP bind, TCP connect: none\n"
			 "signals and abstract sockets: inside only\n");
	return 0;
}

int zb_bwrap_render(const struct zb_plan *plan, struct zb_buf *out,
		    struct zb_error *err)
{
	struct zb_bwrap_args args = {0};
	int rc = zb_bwrap_args(&args, plan, err);

	if (rc)
		return rc;
	zb_buf_adds(out, "# bubblewrap\n");
	print_args(&args, out);
	zb_bwrap_args_done(&args);
	rc = print_landlock(plan, out, err);
	if (rc)
		return rc;
	zb_buf_addf(out, "\n# seccomp\nallow-list, listener, ledger mode %s\n",
		    zb_ledger_mode_name(plan->ledger));
	if (out->failed)
		return zb_fail(err, ZB_ELIMIT, "render: out of memory");
	return 0;
}
