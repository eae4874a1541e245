/* fuzz_render.c - any plan, as macOS and Windows get it: what is written reads
 * back as the same grants and nothing else, whatever the names hold.
 *
 * Each line of the input is a letter and a path:
 *	g w x f	  a grant: read, write, execute, a single file to write
 *	h d t e	  HOME, data/, /tmp, the extension's code
 *	l m	  a link, a made-up file
 *	o c	  a pattern for the grant before it: to read, to change
 *	D b	  a deny, a built-in deny
 *	a	  an argument of the program */
#include "check.h"

#include "../golden/appcontainer_reader.h"
#include "../golden/plans.h"
#include "../golden/sbpl_reader.h"

#include "cleanup.h"
#include "evaluator.h"
#include "path_match.h"
#include "platform/linux/bwrap_args.h"
#include "platform/macos/sbpl.h"
#include "platform/windows/appcontainer.h"

#include <string.h>

#define RO  (ZB_MAY_READ | ZB_MAY_LIST)
#define RW  (RO | ZB_MAY_WRITE | ZB_MAY_CREATE)
#define TMP "/private/var/folders/zz/T/x"

enum {
	MAX_PLACES = 40
};

static const struct {
	char letter;
	enum zb_place_kind kind;
	unsigned rights;
	bool is_dir;
	const char *source; /* NULL: the path itself */
} kinds[] = {
	{'g', ZB_PLACE_GRANT, RO, true, NULL},
	{'w', ZB_PLACE_GRANT, RW, true, NULL},
	{'x', ZB_PLACE_GRANT, RO | ZB_MAY_EXEC, true, NULL},
	{'f', ZB_PLACE_GRANT, ZB_MAY_READ | ZB_MAY_WRITE, false, NULL},
	{'h', ZB_PLACE_HOME, RW | ZB_MAY_EXEC, true, "/box/home"},
	{'d', ZB_PLACE_DATA, RW | ZB_MAY_EXEC, true, NULL},
	{'t', ZB_PLACE_TMP, RW | ZB_MAY_EXEC, true, NULL},
	{'e', ZB_PLACE_EXTENSION, RO | ZB_MAY_EXEC, true, NULL},
	{'l', ZB_PLACE_LINK, 0, false, "/elsewhere"},
	{'m', ZB_PLACE_TEXT, ZB_MAY_READ, false, "made up"},
};

static bool has(const struct zb_plan *p, const char *path)
{
	for (size_t i = 0; i < p->n_places; i++)
		if (!strcmp(p->places[i].path, path))
			return true;
	return false;
}

/* The evaluator refuses changes also where a careless file system would take
 * the name for a denied one: invisible characters, dots and blanks at the end.
 * A profile cannot say that; such denies are no question of this test. */
static bool loses_characters(const char *path)
{
	char folded[ZB_PATH_FOLD_MAX];

	return !zb_path_fold(path, folded) || strlen(folded) != strlen(path);
}

static void add_line(struct zb_plan *p, char letter, const char *rest)
{
	zb_auto(free) char *path = zb_path_join("/", rest);

	CHECK(path);
	if (letter != 'a' && loses_characters(path))
		return;
	if (letter == 'a')
		CHECK(!zb_strv_add(&p->argv, rest));
	if (letter == 'D' || letter == 'b')
		CHECK(zb_test_deny(p, path, letter == 'b', "fs.deny[0]"));
	if (letter == 'o' && p->n_places &&
	    p->places[p->n_places - 1].kind == ZB_PLACE_GRANT &&
	    zb_path_below(path, p->places[p->n_places - 1].path))
		CHECK(!zb_strv_add(&p->places[p->n_places - 1].only, path));
	if (letter == 'c' && p->n_places &&
	    p->places[p->n_places - 1].kind == ZB_PLACE_GRANT &&
	    zb_path_below(path, p->places[p->n_places - 1].path))
		CHECK(!zb_strv_add(&p->places[p->n_places - 1].only_changes,
				   path));
	for (size_t i = 0; i < ZB_ARRAY_LEN(kinds); i++) {
		const char *source = kinds[i].source;

		if (kinds[i].letter != letter || has(p, path) ||
		    p->n_places == MAX_PLACES)
			continue;
		if (kinds[i].kind == ZB_PLACE_TMP)
			source = NULL;
		else if (!source)
			source = "";
		CHECK(zb_test_place(p, kinds[i].kind, path, source,
				    kinds[i].rights, kinds[i].is_dir));
	}
}

static int by_path(const void *a, const void *b)
{
	const char *x = ((const struct zb_place *)a)->path;
	const char *y = ((const struct zb_place *)b)->path;

	for (; *x && *x == *y; x++, y++)
		;
	return (*x == '/' ? 1 : (unsigned char)*x) -
	       (*y == '/' ? 1 : (unsigned char)*y);
}

/* A grant as the resolver leaves it: gone when a deny covers it, carved when
 * one reaches into it. */
static void settle(struct zb_plan *p, size_t k)
{
	struct zb_place *pl = &p->places[k];
	bool covered = false;

	if (pl->kind != ZB_PLACE_GRANT)
		return;
	pl->carved = pl->only.n || pl->only_changes.n;
	for (size_t d = 0; d < p->n_denies; d++) {
		covered |= zb_pattern_match(p->denies[d].pattern, pl->path);
		pl->carved |=
			zb_pattern_touches(p->denies[d].pattern, pl->path);
	}
	if (!covered)
		return;
	free(pl->path);
	free(pl->source);
	zb_strv_done(&pl->only);
	zb_strv_done(&pl->only_changes);
	memmove(pl, pl + 1, (p->n_places - k - 1) * sizeof(*pl));
	p->n_places--;
}

static void make_plan(struct zb_plan *p, const uint8_t *data, size_t size)
{
	size_t i = 0;

	CHECK(zb_test_plan_minimal(p));
	CHECK(!zb_strv_add(&p->argv, "program"));
	while (i < size) {
		const uint8_t *end = memchr(data + i, '\n', size - i);
		size_t n = end ? (size_t)(end - data) - i : size - i;

		if (n > 1) {
			zb_auto(free) char *rest =
				zb_strndup((const char *)data + i + 1, n - 1);

			CHECK(rest);
			add_line(p, (char)data[i], rest);
		}
		i += n + 1;
	}
	if (p->n_places)
		qsort(p->places, p->n_places, sizeof(*p->places), by_path);
	for (size_t k = p->n_places; k-- > 0;)
		settle(p, k);
}

/* Is @path (as the kernel sees it) what some place of @plan is at? */
static bool is_planned(const struct sbpl *profile, const struct zb_plan *plan,
		       const char *path)
{
	char at[8192];

	if (sbpl_is_base(profile, path) || !strcmp(path, "/") ||
	    !strncmp(path, "/dev/", 5) || !strcmp(path, TMP))
		return true;
	for (size_t i = 0; i < plan->n_places; i++) {
		const struct zb_place *p = &plan->places[i];

		if (sbpl_locate(profile, p->path, at, sizeof(at)) &&
		    !strcmp(at, path))
			return true;
		if (p->source &&
		    sbpl_locate(profile, p->source, at, sizeof(at)) &&
		    !strcmp(at, path))
			return true;
	}
	return false;
}

static void ask(const struct sbpl *profile, const struct zb_plan *plan,
		const char *path)
{
	static const struct {
		enum zb_op op;
		const char *name;
	} ops[] = {
		{ZB_OP_FS_READ, "file-read-data"},
		{ZB_OP_FS_WRITE, "file-write-data"},
		{ZB_OP_FS_CREATE, "file-write-create"},
		{ZB_OP_FS_EXEC, "process-exec*"},
	};
	char at[8192];
	bool there = sbpl_locate(profile, path, at, sizeof(at));

	for (size_t i = 0; there && i < ZB_ARRAY_LEN(ops); i++) {
		const struct zb_query q = {
			.op = ops[i].op,
			.target = path,
			.place = -1,
			.exists = ops[i].op != ZB_OP_FS_CREATE,
		};
		enum sbpl_answer a = sbpl_decide(profile, ops[i].name, at);

		CHECK(a == SBPL_ALLOW || a == SBPL_DENY);
		CHECK(a == SBPL_DENY || sbpl_is_base(profile, at) ||
		      zb_evaluate_fast(plan, &q) != ZB_DENY);
	}
}

static void check_profile(const struct zb_plan *plan)
{
	struct zb_buf b = {0};
	struct zb_error err = {0};
	struct sbpl *profile;
	const char *path;
	char why[200];
	int rc = zb_sbpl_render(plan, &b, &err);

	if (rc) {
		CHECK(b.len == 0 && shows(err.msg, strlen(err.msg)));
		zb_buf_done(&b);
		return;
	}
	profile = sbpl_read(zb_buf_str(&b), TMP, why, sizeof(why));
	CHECK(profile);
	for (size_t i = 0; (path = sbpl_nth(profile, "file-read*", i)); i++)
		CHECK(is_planned(profile, plan, path));
	for (size_t i = 0; (path = sbpl_nth(profile, "file-write*", i)); i++)
		CHECK(is_planned(profile, plan, path));
	for (size_t i = 0; i < plan->n_places; i++) {
		const struct zb_place *p = &plan->places[i];
		zb_auto(free) char *in = zb_path_join(p->path, ".env");

		CHECK(in);
		if (p->kind == ZB_PLACE_LINK)
			continue;
		if (p->is_dir)
			ask(profile, plan, in);
		else
			ask(profile, plan, p->path);
	}
	sbpl_free(profile);
	zb_buf_done(&b);
}

static void ask_container(const struct ac *container,
			  const struct zb_plan *plan, const char *path)
{
	static const struct {
		enum zb_op op;
		enum ac_act act;
	} ops[] = {
		{ZB_OP_FS_READ, AC_READ},
		{ZB_OP_FS_WRITE, AC_WRITE},
		{ZB_OP_FS_CREATE, AC_CREATE},
		{ZB_OP_FS_EXEC, AC_EXEC},
	};
	char at[8192];

	/* What is made in the container's own folder is Windows' to judge. */
	if (!ac_locate(container, path, at, sizeof(at)) || at[0] != '/')
		return;
	for (size_t i = 0; i < ZB_ARRAY_LEN(ops); i++) {
		const struct zb_query q = {
			.op = ops[i].op,
			.target = path,
			.place = -1,
			.exists = ops[i].op != ZB_OP_FS_CREATE,
		};

		CHECK(!ac_decide(container, ops[i].act, at, false) ||
		      zb_evaluate_fast(plan, &q) != ZB_DENY);
	}
}

static void check_description(const struct zb_plan *plan)
{
	struct zb_buf b = {0};
	struct zb_error err = {0};
	struct ac *container;
	char why[200];

	if (zb_appcontainer_render(plan, &b, &err)) {
		CHECK(b.len == 0 && shows(err.msg, strlen(err.msg)));
		zb_buf_done(&b);
		return;
	}
	container = ac_read(zb_buf_str(&b), why, sizeof(why));
	CHECK(container);
	for (size_t i = 0; i < plan->n_places; i++) {
		const struct zb_place *p = &plan->places[i];
		zb_auto(free) char *in = zb_path_join(p->path, ".env");

		CHECK(in);
		if (p->kind != ZB_PLACE_LINK)
			ask_container(container, plan,
				      p->is_dir ? in : p->path);
	}
	ac_free(container);
	zb_buf_done(&b);
}

static void check_command_line(const struct zb_plan *plan)
{
	struct zb_buf cmd = {0};
	struct zb_error err = {0};
	char *out[64];
	size_t n;

	if (plan->argv.n < ZB_ARRAY_LEN(out) &&
	    !zb_windows_command_line(&plan->argv, &cmd, &err)) {
		n = ac_split(zb_buf_str(&cmd), out, ZB_ARRAY_LEN(out));
		CHECK(n == plan->argv.n);
		for (size_t i = 0; i < n; i++) {
			CHECK(!strcmp(out[i], plan->argv.v[i]));
			free(out[i]);
		}
	}
	zb_buf_done(&cmd);
}

/* Every line of the Linux text can be shown. */
static void check_arguments(const struct zb_plan *plan)
{
	struct zb_buf b = {0};
	struct zb_error err = {0};

	if (zb_bwrap_render(plan, &b, &err)) {
		CHECK(shows(err.msg, strlen(err.msg)));
	} else {
		for (const char *s = zb_buf_str(&b); *s;) {
			size_t n = strcspn(s, "\n");

			CHECK(shows(s, n));
			s += n + (s[n] == '\n');
		}
	}
	zb_buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct zb_plan plan;

	if (size > 8192 || memchr(data, '\0', size))
		return 0;
	make_plan(&plan, data, size);
	check_profile(&plan);
	check_description(&plan);
	check_command_line(&plan);
	check_arguments(&plan);
	zb_test_plan_done(&plan);
	return 0;
}
