/* options.c - argv against tables.
 *
 * A hand-written option parser is where programs of this kind grow their worst
 * function, so nothing here knows a single option: one loop classifies a word,
 * one function looks it up, one stores it. Help is printed from the same rows,
 * so the two cannot disagree. */
#include "options.h"
#include "cleanup.h"
#include "text.h"

#include <string.h>

#define HELP_WIDTH  78
#define SHOWN_WIDTH 80

/* What the user typed, safe to show; @room holds SHOWN_WIDTH bytes. */
static const char *shown(const char *word, char *room)
{
	struct zb_buf b = {0};

	zb_text_escape(&b, word, strlen(word), SHOWN_WIDTH - 8);
	memcpy(room, zb_buf_str(&b), b.len + 1);
	zb_buf_done(&b);
	return room;
}

/* ---- finding the command ---- */

/* Does @name, word by word, equal the first words of argv? Return: how many
 * words, 0 if not. */
static int names_words(const char *name, int argc, char *const *argv)
{
	for (int i = 0; i < argc; i++) {
		size_t n = strlen(argv[i]);

		if (strncmp(name, argv[i], n) || (name[n] && name[n] != ' '))
			return 0;
		if (!name[n])
			return i + 1;
		name += n + 1;
	}
	return 0;
}

/* Is @name "@word something"? Return: the something, or NULL. */
static const char *in_group(const char *name, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(name, word, n) && name[n] == ' ' ? name + n + 1 : NULL;
}

bool zb_command_is_group(const struct zb_command *table, const char *word)
{
	for (; table->name; table++)
		if (in_group(table->name, word))
			return true;
	return false;
}

static void incomplete(const struct zb_command *table, const char *group,
		       struct zb_error *err)
{
	struct zb_buf list = {0};
	const char *verb;

	for (; table->name; table++) {
		verb = in_group(table->name, group);
		if (verb)
			zb_buf_addf(&list, "%s%s", list.len ? ", " : "", verb);
	}
	zb_fail(err, ZB_EUSAGE,
		"\"%s\" needs a command after it: %s (see zotbox help)", group,
		zb_buf_str(&list));
	zb_buf_done(&list);
}

static void unknown(const struct zb_command *table, const char *typed,
		    struct zb_error *err)
{
	const char *names[64], *near;
	char room[SHOWN_WIDTH];
	size_t n = 0;

	for (; table->name && n + 1 < ZB_ARRAY_LEN(names); table++)
		names[n++] = table->name;
	names[n] = NULL;
	near = zb_nearest(typed, names);
	shown(typed, room);
	if (near)
		zb_fail(err, ZB_EUSAGE,
			"unknown command \"%s\"; did you mean \"%s\"? (see "
			"zotbox help)",
			room, near);
	else
		zb_fail(err, ZB_EUSAGE,
			"unknown command \"%s\" (see zotbox help)", room);
}

const struct zb_command *zb_command_find(const struct zb_command *table,
					 int argc, char *const *argv, int *used,
					 struct zb_error *err)
{
	const struct zb_command *best = NULL;
	zb_auto(free) char *typed = NULL;
	bool group;

	*used = 0;
	for (const struct zb_command *c = table; c->name; c++) {
		int n = names_words(c->name, argc, argv);

		if (n > *used) {
			best = c;
			*used = n;
		}
	}
	if (best)
		return best;
	group = argc > 0 && zb_command_is_group(table, argv[0]);
	if (group && (argc < 2 || argv[1][0] == '-')) {
		incomplete(table, argv[0], err);
		return NULL;
	}
	typed = group ? zb_strf("%s %s", argv[0], argv[1])
		      : zb_strdup(argc > 0 ? argv[0] : "");
	unknown(table, typed ? typed : "", err);
	return NULL;
}

/* ---- one command's words ---- */

struct parser {
	const struct zb_command *cmd;
	struct zb_args *out;
	struct zb_error *err;
	int argc, at;
	char *const *argv;
};

static int usage(const struct parser *p, const char *fmt, ...) ZB_PRINTF(2, 3);
static int usage(const struct parser *p, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return zb_fail(p->err, ZB_EUSAGE, "%s: %s (see zotbox %s --help)",
		       p->cmd->name, text, p->cmd->name);
}

static int find_long(const struct parser *p, const char *name, size_t n)
{
	const struct zb_option *o = p->cmd->options;

	for (int i = 0; o && o[i].name; i++)
		if (strlen(o[i].name) == n && !memcmp(o[i].name, name, n))
			return i;
	return -1;
}

static int find_short(const struct parser *p, char letter)
{
	const struct zb_option *o = p->cmd->options;

	for (int i = 0; o && o[i].name; i++)
		if (o[i].letter && o[i].letter == letter)
			return i;
	return -1;
}

static int unknown_option(const struct parser *p, const char *word)
{
	const char *names[ZB_MAX_OPTIONS + 2], *near;
	const struct zb_option *o = p->cmd->options;
	char room[SHOWN_WIDTH];
	size_t n = 0;

	for (; o && o[n].name && n < ZB_MAX_OPTIONS; n++)
		names[n] = o[n].name;
	names[n++] = "help";
	names[n] = NULL;
	near = word[0] == '-' && word[1] == '-' ? zb_nearest(word + 2, names)
						: NULL;
	shown(word, room);
	if (near)
		return usage(p, "unknown option %s; did you mean --%s?", room,
			     near);
	return usage(p, "unknown option %s", room);
}

static int store(struct parser *p, int i, const char *value)
{
	const struct zb_option *o = &p->cmd->options[i];
	struct zb_args *a = p->out;
	const char **more;

	a->opt[i] = value;
	if (!o->many)
		return 0;
	more = realloc(a->many[i], (a->n_many[i] + 1) * sizeof(*more));
	if (!more)
		return zb_fail(p->err, ZB_ELIMIT, "out of memory");
	a->many[i] = more;
	more[a->n_many[i]++] = value;
	return 0;
}

/* --name, --name=value, --name value. */
static int long_option(struct parser *p, const char *word)
{
	const char *name = word + 2, *eq = strchr(name, '=');
	size_t n = eq ? (size_t)(eq - name) : strlen(name);
	int i = find_long(p, name, n);
	const struct zb_option *o;

	if (i < 0 && n == 4 && !memcmp(name, "help", 4) && !eq) {
		p->out->help = true;
		return 0;
	}
	if (i < 0)
		return unknown_option(p, word);
	o = &p->cmd->options[i];
	if (eq && o->arg == ZB_ARG_NONE)
		return usage(p, "--%s takes no value", o->name);
	if (eq)
		return store(p, i, eq + 1);
	if (o->arg != ZB_ARG_VALUE)
		return store(p, i, "");
	if (p->at >= p->argc)
		return usage(p, "--%s needs a value: %s", o->name,
			     o->value_name ? o->value_name : "VALUE");
	return store(p, i, p->argv[p->at++]);
}

/* -f, -fy, -n VALUE, -nVALUE. */
static int short_options(struct parser *p, const char *word)
{
	for (const char *l = word + 1; *l; l++) {
		int i = find_short(p, *l), rc;
		const struct zb_option *o;

		if (i < 0 && *l == 'h') {
			p->out->help = true;
			continue;
		}
		if (i < 0)
			return unknown_option(p, word);
		o = &p->cmd->options[i];
		if (o->arg != ZB_ARG_VALUE) {
			rc = store(p, i, "");
			if (rc)
				return rc;
			continue;
		}
		if (l[1])
			return store(p, i, l + 1);
		if (p->at >= p->argc)
			return usage(p, "-%c needs a value: %s", *l,
				     o->value_name ? o->value_name : "VALUE");
		return store(p, i, p->argv[p->at++]);
	}
	return 0;
}

static int count_operands(const struct parser *p)
{
	const struct zb_command *c = p->cmd;
	const char *what = c->synopsis ? c->synopsis : "";
	char room[SHOWN_WIDTH];

	if (p->out->n_args < c->min_args)
		return usage(p, "too few arguments; usage: zotbox %s %s",
			     c->name, what);
	if (p->out->n_args > c->max_args)
		return usage(p,
			     "unexpected argument \"%s\"; usage: zotbox %s%s%s",
			     shown(p->out->arg[c->max_args], room), c->name,
			     *what ? " " : "", what);
	return 0;
}

static int parse(struct parser *p)
{
	struct zb_args *a = p->out;
	bool only_operands = false;
	int rc = 0;

	a->arg = calloc((size_t)p->argc + 1, sizeof(*a->arg));
	if (!a->arg)
		return zb_fail(p->err, ZB_ELIMIT, "out of memory");
	while (!rc && p->at < p->argc) {
		const char *word = p->argv[p->at++];

		if (only_operands || word[0] != '-' || !word[1])
			a->arg[a->n_args++] = word;
		else if (!strcmp(word, "--"))
			only_operands = true;
		else if (word[1] == '-')
			rc = long_option(p, word);
		else
			rc = short_options(p, word);
	}
	if (rc || a->help)
		return rc;
	return count_operands(p);
}

int zb_options_parse(struct zb_args *out, const struct zb_command *cmd,
		     int argc, char *const *argv, struct zb_error *err)
{
	struct parser p = {
		.cmd = cmd, .out = out, .err = err, .argc = argc, .argv = argv};
	int rc;

	memset(out, 0, sizeof(*out));
	out->given = argv;
	rc = parse(&p);
	if (rc)
		zb_args_done(out);
	return rc;
}

void zb_args_done(struct zb_args *a)
{
	for (size_t i = 0; i < ZB_MAX_OPTIONS; i++)
		free(a->many[i]);
	free(a->arg);
	memset(a, 0, sizeof(*a));
}

/* ---- help ---- */

/* @text after @indent blanks, broken at blanks before HELP_WIDTH; the caller
 * already wrote @at columns of the first line. */
static void wrap(struct zb_buf *out, const char *text, size_t at, size_t indent)
{
	while (*text) {
		size_t n = strcspn(text, " \n");

		if (at > indent && at + 1 + n > HELP_WIDTH) {
			zb_buf_addf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (at > indent) {
			zb_buf_addc(out, ' ');
			at++;
		}
		zb_buf_add(out, text, n);
		at += n;
		text += n;
		if (*text == '\n') {
			zb_buf_addf(out, "\n%*s", (int)indent, "");
			at = indent;
		}
		if (*text)
			text++;
	}
	zb_buf_addc(out, '\n');
}

static void option_label(const struct zb_option *o, struct zb_buf *out)
{
	const char *value = o->value_name ? o->value_name : "VALUE";

	if (o->letter)
		zb_buf_addf(out, "  -%c, --%s", o->letter, o->name);
	else
		zb_buf_addf(out, "      --%s", o->name);
	if (o->arg == ZB_ARG_VALUE)
		zb_buf_addf(out, " %s", value);
	else if (o->arg == ZB_ARG_OPTIONAL)
		zb_buf_addf(out, "[=%s]", value);
}

static void option_help(const struct zb_option *o, size_t column,
			struct zb_buf *out)
{
	size_t start = out->len, width;

	option_label(o, out);
	width = out->len - start;
	if (width + 2 > column) {
		zb_buf_addc(out, '\n');
		width = 0;
	}
	zb_buf_addf(out, "%*s", (int)(column - width), "");
	wrap(out, o->help, column, column);
}

int zb_command_help(const struct zb_command *cmd, struct zb_buf *out)
{
	static const struct zb_option help = {
		.name = "help", .letter = 'h', .help = "print this and end"};
	const char *synopsis = cmd->synopsis ? cmd->synopsis : "";
	size_t start = out->len;

	zb_buf_addf(out, "usage: zotbox %s", cmd->name);
	wrap(out, synopsis, out->len - start, 14);
	zb_buf_addc(out, '\n');
	wrap(out, cmd->help, 0, 0);
	zb_buf_adds(out, "\noptions:\n");
	for (const struct zb_option *o = cmd->options; o && o->name; o++)
		option_help(o, 26, out);
	option_help(&help, 26, out);
	if (cmd->more) {
		zb_buf_addc(out, '\n');
		wrap(out, cmd->more, 0, 0);
	}
	return out->failed ? ZB_ELIMIT : 0;
}

int zb_command_list(const struct zb_command *table, const char *prefix,
		    struct zb_buf *out)
{
	size_t n = strlen(prefix), column = 0;

	for (const struct zb_command *c = table; c->name; c++)
		if (!strncmp(c->name, prefix, n) && strlen(c->name) > column)
			column = strlen(c->name);
	column += 4;
	for (const struct zb_command *c = table; c->name; c++) {
		if (strncmp(c->name, prefix, n))
			continue;
		zb_buf_addf(out, "  %-*s", (int)column - 2, c->name);
		wrap(out, c->help, column, column);
	}
	return out->failed ? ZB_ELIMIT : 0;
}
