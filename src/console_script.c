/* console_script.c - verbs of the console, from a table. */
#include "console_script.h"
#include "cleanup.h"
#include "json_scan.h"
#include "text.h"

#include <string.h>

#define MAX_SLEEP_S 86400u

/* What may follow a verb, in this order. */
enum {
	HAS_NAME = 1,
	MAY_NAME = 2,
	HAS_KEY = 4,
	HAS_JSON = 8,
	HAS_FIELDS = 16, /* JSON whose members join a frame of ours */
	HAS_ARGS = 32,
	HAS_TEXT = 64,
	HAS_SECONDS = 128,
	HAS_SIGNAL = 256,
};

static const struct row {
	const char *word;
	enum zb_script_verb verb;
	unsigned form;
	const char *usage;
	enum zb_script_slot slot[2]; /* of the words that follow */
} rows[] = {
	{"call",
	 ZB_SCRIPT_CALL,
	 HAS_NAME | HAS_JSON,
	 "call TOOL [JSON]",
	 {ZB_SLOT_TOOL}},
	{"cmd",
	 ZB_SCRIPT_COMMAND,
	 HAS_NAME | HAS_ARGS,
	 "cmd NAME [ARGS]",
	 {ZB_SLOT_COMMAND}},
	{"intercept",
	 ZB_SCRIPT_INTERCEPT,
	 HAS_NAME | HAS_FIELDS,
	 "intercept EVENT [JSON]",
	 {ZB_SLOT_EVENT}},
	{"event",
	 ZB_SCRIPT_EVENT,
	 HAS_NAME | HAS_FIELDS,
	 "event EVENT [JSON]",
	 {ZB_SLOT_EVENT}},
	{"key",
	 ZB_SCRIPT_KEY,
	 HAS_NAME | HAS_KEY | HAS_TEXT,
	 "key PANEL KEY [TEXT]",
	 {ZB_SLOT_PANEL, ZB_SLOT_KEY}},
	{"panel_close",
	 ZB_SCRIPT_PANEL_CLOSE,
	 HAS_NAME,
	 "panel_close PANEL",
	 {ZB_SLOT_PANEL}},
	{"reload", ZB_SCRIPT_RELOAD, MAY_NAME, "reload [NAME]", {ZB_SLOT_EXT}},
	{"kill",
	 ZB_SCRIPT_KILL,
	 HAS_NAME | HAS_SIGNAL,
	 "kill NAME SIG",
	 {ZB_SLOT_EXT}},
	{"sleep", ZB_SCRIPT_SLEEP, HAS_SECONDS, "sleep S", {0}},
	{"idle", ZB_SCRIPT_IDLE, 0, "idle", {0}},
	{"tools", ZB_SCRIPT_TOOLS, 0, "tools", {0}},
	{"commands", ZB_SCRIPT_COMMANDS, 0, "commands", {0}},
	{"exts", ZB_SCRIPT_EXTS, 0, "exts", {0}},
	{"denials",
	 ZB_SCRIPT_DENIALS,
	 MAY_NAME,
	 "denials [NAME]",
	 {ZB_SLOT_EXT}},
	{"shutdown", ZB_SCRIPT_SHUTDOWN, 0, "shutdown", {0}},
};
static const struct row slash = {
	"/", ZB_SCRIPT_COMMAND, HAS_NAME | HAS_ARGS, "/NAME [ARGS]", {0}};

/* The rest of the line while it is taken apart. */
struct cursor {
	const char *at, *end;
	const struct row *row;
	struct zb_error *err;
};

static int bad(const struct cursor *c, const char *what)
{
	return zb_fail(c->err, ZB_EUSAGE, "%s %s: %s", c->row->word, what,
		       c->row->usage);
}

static bool blank(char ch)
{
	return ch == ' ' || ch == '\t';
}

static void skip(struct cursor *c)
{
	while (c->at < c->end && blank(*c->at))
		c->at++;
}

/* "..." with JSON's escapes. */
static int quoted(struct cursor *c, char **out)
{
	const char *start = c->at, *p = start + 1;
	struct zb_json j = {0};

	while (p < c->end && *p != '"')
		p += *p == '\\' ? 2 : 1;
	if (p >= c->end)
		return bad(c, "has a string without an end");
	c->at = p + 1;
	if (!zb_json_scan(&j, start, (size_t)(c->at - start), NULL, NULL))
		*out = zb_json_dup_string(&j, 0);
	zb_json_done(&j);
	if (!*out)
		return bad(c, "has a string that is no JSON string");
	return 0;
}

static int take_word(struct cursor *c, char **out)
{
	const char *start;

	skip(c);
	if (c->at < c->end && *c->at == '"')
		return quoted(c, out);
	start = c->at;
	while (c->at < c->end && !blank(*c->at))
		c->at++;
	if (start == c->at)
		return bad(c, "needs more");
	*out = zb_strndup(start, (size_t)(c->at - start));
	return *out ? 0 : zb_fail(c->err, ZB_ELIMIT, "out of memory");
}

/* Members that would take the place of ours in the frame. */
static const char *reserved(const struct zb_json *j, uint32_t obj)
{
	static const char *const ours[] = {"type", "id", "event"};
	const char *found = NULL;

	for (uint32_t i = zb_json_first(j, obj); i != ZB_JSON_NONE && !found;
	     i = zb_json_next(j, i)) {
		struct zb_buf key = {0};

		zb_json_key(j, i, &key);
		for (size_t k = 0; k < ZB_ARRAY_LEN(ours); k++)
			if (zb_fold_equal(zb_buf_str(&key), key.len, ours[k],
					  strlen(ours[k])))
				found = ours[k];
		zb_buf_done(&key);
	}
	return found;
}

/* The rest as one JSON object. It is scanned as a member, two levels deep, so
 * that only @fields' own keys are compared: what an argument of a tool holds
 * is not ours to judge. */
static int take_json(struct cursor *c, bool fields, char **out)
{
	struct zb_json_limits limits = {.index_depth = fields ? 2 : 1};
	struct zb_json_fault fault;
	struct zb_json j = {0};
	struct zb_buf text = {0};
	const char *taken;
	uint32_t obj;
	int rc = 0;

	skip(c);
	zb_buf_adds(&text, "{\"a\":");
	if (c->at == c->end)
		zb_buf_adds(&text, "{}");
	zb_buf_add(&text, c->at, (size_t)(c->end - c->at));
	zb_buf_addc(&text, '}');
	if (zb_json_scan(&j, zb_buf_str(&text), text.len, &limits, &fault)) {
		rc = zb_fail(c->err, ZB_EUSAGE, "%s: not JSON: %s",
			     c->row->word, fault.what);
		goto out;
	}
	obj = zb_json_first(&j, 0);
	if (j.tok[obj].type != ZB_JSON_OBJECT ||
	    zb_json_next(&j, obj) != ZB_JSON_NONE) {
		rc = bad(c, "takes one JSON object");
		goto out;
	}
	taken = fields ? reserved(&j, obj) : NULL;
	if (taken) {
		rc = zb_fail(c->err, ZB_EUSAGE,
			     "%s: \"%s\" is set by the console", c->row->word,
			     taken);
		goto out;
	}
	*out = zb_strndup(j.text + j.tok[obj].start,
			  j.tok[obj].end - j.tok[obj].start);
	if (!*out)
		rc = zb_fail(c->err, ZB_ELIMIT, "out of memory");
out:
	zb_json_done(&j);
	zb_buf_done(&text);
	return rc;
}

/* ARGS as the agent hands them on: trimmed. TEXT: all after one blank. */
static int take_rest(struct cursor *c, bool trim, char **out)
{
	if (trim)
		skip(c);
	else if (c->at < c->end)
		c->at++;
	if (!trim && c->at == c->end)
		return 0;
	*out = zb_strndup(c->at, (size_t)(c->end - c->at));
	c->at = c->end;
	return *out ? 0 : zb_fail(c->err, ZB_ELIMIT, "out of memory");
}

/* Decimal seconds to milliseconds, without a locale's idea of a point. */
static int take_seconds(struct cursor *c, unsigned *ms)
{
	zb_auto(free) char *word = NULL;
	unsigned long whole, frac = 0, unit = 100;
	char *end;
	int rc = take_word(c, &word);

	if (rc)
		return bad(c, "needs a number of seconds");
	whole = word[0] >= '0' && word[0] <= '9' ? strtoul(word, &end, 10)
						 : (end = word, 0ul);
	if (*end == '.')
		for (end++; *end >= '0' && *end <= '9'; end++, unit /= 10)
			frac += (unsigned long)(*end - '0') * unit;
	if (*end || end == word || !strcmp(word, ".") || whole > MAX_SLEEP_S)
		return bad(c, "needs a number of seconds, at most a day");
	*ms = (unsigned)(whole * 1000 + frac);
	return 0;
}

static int take_signal(struct cursor *c, unsigned *signo)
{
	static const struct {
		const char *name;
		unsigned number;
	} names[] = {
		{"HUP", 1},   {"INT", 2},   {"QUIT", 3},  {"ABRT", 6},
		{"KILL", 9},  {"USR1", 10}, {"SEGV", 11}, {"USR2", 12},
		{"PIPE", 13}, {"ALRM", 14}, {"TERM", 15}, {"CONT", 18},
		{"STOP", 19},
	};
	zb_auto(free) char *word = NULL;
	const char *s;
	char *end;

	if (take_word(c, &word))
		return bad(c, "needs a signal");
	s = !strncmp(word, "SIG", 3) ? word + 3 : word;
	for (size_t i = 0; i < ZB_ARRAY_LEN(names); i++)
		if (!strcmp(names[i].name, s)) {
			*signo = names[i].number;
			return 0;
		}
	*signo = word[0] >= '1' && word[0] <= '9'
			 ? (unsigned)strtoul(word, &end, 10)
			 : (end = word, 0u);
	if (*end || !*signo || *signo > 64)
		return bad(c, "needs a signal's name or number");
	return 0;
}

static int take_parts(struct zb_script_line *out, struct cursor *c)
{
	unsigned form = c->row->form;
	int rc = 0;

	skip(c);
	if (form & HAS_NAME || (form & MAY_NAME && c->at < c->end))
		rc = take_word(c, &out->name);
	if (!rc && form & HAS_KEY)
		rc = take_word(c, &out->key);
	if (!rc && form & (HAS_JSON | HAS_FIELDS))
		return take_json(c, form & HAS_FIELDS, &out->json);
	if (!rc && form & (HAS_ARGS | HAS_TEXT))
		rc = take_rest(c, form & HAS_ARGS, &out->text);
	if (!rc && form & HAS_SECONDS)
		rc = take_seconds(c, &out->number);
	if (!rc && form & HAS_SIGNAL)
		rc = take_signal(c, &out->number);
	skip(c);
	if (!rc && c->at < c->end)
		rc = bad(c, "takes no more than that");
	return rc;
}

/* " &" at the end is a mark of ours, "\&" stands for the character. Blanks
 * after it do not count, but for TEXT, where they are typed. */
static char *without_mark(const char *line, size_t len, bool keep_blanks,
			  bool *detached)
{
	char *s;

	while (len && !keep_blanks && blank(line[len - 1]))
		len--;
	s = zb_strndup(line, len);
	if (!s)
		return NULL;
	if (len >= 2 && s[len - 1] == '&' && blank(s[len - 2])) {
		*detached = true;
		s[len - 2] = '\0';
	} else if (len >= 2 && s[len - 1] == '&' && s[len - 2] == '\\') {
		s[len - 2] = '&';
		s[len - 1] = '\0';
	}
	return s;
}

static const struct row *find_row(const char *word, size_t n,
				  struct zb_error *err)
{
	const char *words[ZB_ARRAY_LEN(rows) + 1] = {NULL}, *near;
	zb_auto(free) char *typed = zb_strndup(word, n);
	struct zb_buf shown = {0};

	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		if (strlen(rows[i].word) == n && !memcmp(rows[i].word, word, n))
			return &rows[i];
		words[i] = rows[i].word;
	}
	near = typed ? zb_nearest(typed, words) : NULL;
	zb_text_escape(&shown, word, n, 60);
	zb_fail(err, ZB_EUSAGE, "unknown verb \"%s\"; %s%s%s",
		zb_buf_str(&shown),
		near ? "did you mean \"" : "zotbox console --help has them",
		near ? near : "", near ? "\"?" : "");
	zb_buf_done(&shown);
	return NULL;
}

int zb_script_parse(struct zb_script_line *out, const char *line, size_t len,
		    struct zb_error *err)
{
	struct cursor c = {.err = err};
	zb_auto(free) char *text = NULL;
	size_t n;
	int rc;

	memset(out, 0, sizeof(*out));
	while (len && blank(*line)) {
		line++;
		len--;
	}
	if (len && line[len - 1] == '\r')
		len--;
	if (!len || *line == '#')
		return 0;
	if (memchr(line, '\0', len) || zb_utf8_check(line, len) < len)
		return zb_fail(err, ZB_EUSAGE,
			       "a line must be valid UTF-8 "
			       "without NUL");
	for (n = 0; n < len && !blank(line[n]); n++)
		;
	c.row = *line == '/' ? &slash : find_row(line, n, err);
	if (!c.row)
		return ZB_EUSAGE;
	text = without_mark(line, len, c.row->form & HAS_TEXT, &out->detached);
	if (!text)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	c.at = text + strlen(c.row->word);
	c.end = text + strlen(text);
	out->verb = c.row->verb;
	rc = take_parts(out, &c);
	if (rc)
		zb_script_line_done(out);
	return rc;
}

void zb_script_line_done(struct zb_script_line *l)
{
	free(l->name);
	free(l->text);
	free(l->key);
	free(l->json);
	memset(l, 0, sizeof(*l));
}

const char *zb_script_verb_word(size_t i)
{
	return i < ZB_ARRAY_LEN(rows) ? rows[i].word : NULL;
}

enum zb_script_slot zb_script_slot(const char *line, size_t at)
{
	size_t first = strspn(line, " \t");
	size_t verb = strcspn(line + first, " \t");
	size_t words = 0;

	if (at <= first)
		return ZB_SLOT_VERB;
	for (size_t i = first; i < at; i++)
		words += !blank(line[i]) && (i == first || blank(line[i - 1]));
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++)
		if (strlen(rows[i].word) == verb &&
		    !memcmp(rows[i].word, line + first, verb))
			return words <= ZB_ARRAY_LEN(rows[i].slot)
				       ? rows[i].slot[words - 1]
				       : ZB_SLOT_NONE;
	return ZB_SLOT_NONE;
}
