/* sbpl_reader.c - an evaluator of macOS profiles, for tests. Written from what
 * is known of the language, not from what our renderer emits: whatever else
 * it meets is an error. */
#include "sbpl_reader.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_DEPTH = 16,
	MAX_NODES = 100000
};

/* An expression: a word, a string, or a list. */
struct node {
	enum {
		WORD,
		STRING,
		LIST
	} type;
	char *text;
	struct node **kids;
	size_t n;
	regex_t *regex; /* of (regex "...") */
};

struct note {
	char *what, *rest; /* rest as written */
	char *a, *b;	   /* its strings, if it has any */
	bool b_is_tmp;
};

struct rule {
	bool allow;
	const struct node *list; /* (allow OP... FILTER...) */
	size_t first_filter, end;
};

struct sbpl {
	struct node *root; /* a list of all top expressions */
	struct rule *rules;
	size_t n_rules;
	struct note *notes;
	size_t n_notes;
	char *tmp;
};

/* Reading */

struct reader {
	const char *s;
	size_t nodes;
	const char *why;
};

static void node_free(struct node *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->n; i++)
		node_free(n->kids[i]);
	if (n->regex)
		regfree(n->regex);
	free(n->regex);
	free(n->kids);
	free(n->text);
	free(n);
}

static struct node *node_new(struct reader *r, int type)
{
	struct node *n = calloc(1, sizeof(*n));

	if (++r->nodes > MAX_NODES || !n) {
		free(n);
		r->why = "too many expressions";
		return NULL;
	}
	n->type = type;
	return n;
}

static bool add_kid(struct node *n, struct node *kid)
{
	struct node **v = realloc(n->kids, (n->n + 1) * sizeof(*v));

	if (!v)
		return false;
	n->kids = v;
	v[n->n++] = kid;
	return true;
}

static void skip(struct reader *r)
{
	for (;;) {
		r->s += strspn(r->s, " \t\n");
		if (*r->s != ';')
			return;
		r->s += strcspn(r->s, "\n");
	}
}

/* A string behind its opening mark, unescaped. */
static char *read_string(struct reader *r)
{
	size_t n = 0, cap = strlen(r->s) + 1;
	char *out = malloc(cap);

	while (out && *r->s && *r->s != '"') {
		if (*r->s == '\\') {
			r->s++;
			if (*r->s != '"' && *r->s != '\\')
				break;
		}
		out[n++] = *r->s++;
	}
	if (!out || *r->s != '"') {
		free(out);
		r->why = "a string that does not end, or an unknown escape";
		return NULL;
	}
	r->s++;
	out[n] = '\0';
	return out;
}

static bool is_list_of(const struct node *n, const char *head)
{
	return n->type == LIST && n->n && n->kids[0]->type == WORD &&
	       !strcmp(n->kids[0]->text, head);
}

/* (regex "..."): compiled once. */
static bool compile(struct reader *r, struct node *n)
{
	if (!is_list_of(n, "regex"))
		return true;
	n->regex = calloc(1, sizeof(*n->regex));
	if (n->regex && n->n == 2 && n->kids[1]->type == STRING &&
	    !regcomp(n->regex, n->kids[1]->text, REG_EXTENDED | REG_NOSUB))
		return true;
	free(n->regex);
	n->regex = NULL;
	r->why = "a regular expression that is none";
	return false;
}

static struct node *read_one(struct reader *r, unsigned depth);

static struct node *read_list(struct reader *r, unsigned depth)
{
	struct node *n = node_new(r, LIST), *kid;

	while (n) {
		skip(r);
		if (*r->s == ')') {
			r->s++;
			if (compile(r, n))
				return n;
			break;
		}
		kid = *r->s ? read_one(r, depth + 1) : NULL;
		if (!kid) {
			r->why = r->why ? r->why : "a list that does not end";
			break;
		}
		if (!add_kid(n, kid)) {
			node_free(kid);
			break;
		}
	}
	node_free(n);
	return NULL;
}

static struct node *read_one(struct reader *r, unsigned depth)
{
	struct node *n;
	size_t len;

	skip(r);
	if (depth > MAX_DEPTH) {
		r->why = "too deep";
		return NULL;
	}
	if (*r->s == '(') {
		r->s++;
		return read_list(r, depth);
	}
	if (*r->s == '"') {
		r->s++;
		n = node_new(r, STRING);
		if (n)
			n->text = read_string(r);
	} else {
		len = strspn(r->s, "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789-*_.");
		n = len ? node_new(r, WORD) : NULL;
		if (!len)
			r->why = "a character that no word has";
		if (n)
			n->text = strndup(r->s, len);
		r->s += len;
	}
	if (n && !n->text) {
		node_free(n);
		return NULL;
	}
	return n;
}

/* ";; WHAT REST" lines, before the profile proper. */
static bool read_notes(struct sbpl *p, const char *text)
{
	while (!strncmp(text, ";; ", 3)) {
		size_t len = strcspn(text, "\n");
		size_t word = strcspn(text + 3, " \n");
		struct note *v =
			realloc(p->notes, (p->n_notes + 1) * sizeof(*v));
		struct reader r = {0};
		const char *rest = text + 3 + word;

		if (!v)
			return false;
		p->notes = v;
		v += p->n_notes++;
		*v = (struct note){.what = strndup(text + 3, word)};
		rest += *rest == ' ';
		v->rest = strndup(rest, (size_t)(text + len - rest));
		r.s = v->rest;
		if (*r.s == '"') {
			r.s++;
			v->a = read_string(&r);
			if (!v->a)
				return false;
			r.s += strspn(r.s, " ");
			v->b_is_tmp = !strcmp(r.s, "(param \"TMP\")");
			if (*r.s == '"') {
				r.s++;
				v->b = read_string(&r);
			}
		}
		text += len + (text[len] == '\n');
	}
	return true;
}

/* The operations, each with the one that is asked when no rule names it. NULL:
 * none, and the second column is what holds then. */
static const struct {
	const char *op, *parent;
	bool open;
} operations[] = {
	{"file-read-data", "file-read*", false},
	{"file-read-metadata", "file-read*", false},
	{"file-read-xattr", "file-read*", false},
	{"file-read*", "file*", false},
	{"file-write-create", "file-write*", false},
	{"file-write-data", "file-write*", false},
	{"file-write-unlink", "file-write*", false},
	{"file-write-mode", "file-write*", false},
	{"file-write-owner", "file-write*", false},
	{"file-write-times", "file-write*", false},
	{"file-write-xattr", "file-write*", false},
	{"file-write*", "file*", false},
	{"file-ioctl", "file*", false},
	{"file*", "default", false},
	{"network-bind", "network-inbound", false},
	{"network-inbound", "network*", false},
	{"network-outbound", "network*", false},
	{"network*", "default", false},
	{"process-exec-interpreter", "process-exec*", false},
	{"process-exec*", "process*", false},
	{"process-fork", "process*", false},
	{"process*", "default", false},
	{"mach-lookup", "mach*", false},
	{"mach*", "default", false},
	{"sysctl-read", "sysctl*", false},
	{"sysctl*", "default", false},
	{"ipc-posix-shm*", "ipc-posix*", false},
	{"ipc-posix-sem*", "ipc-posix*", false},
	{"ipc-posix*", "ipc*", false},
	{"ipc*", "default", false},
	{"iokit-open", "iokit*", false},
	{"iokit*", "default", false},
	{"signal", "default", false},
	{"file-link", NULL, true},
	{"file-clone", NULL, true},
	{"file-map-executable", NULL, true},
	{"file-test-existence", NULL, true},
	{"process-info*", NULL, true},
	{"nvram*", NULL, true},
	{"iokit-get-properties", NULL, true},
	{"dynamic-code-generation", NULL, true},
	{"default", NULL, false},
};

static int op_index(const char *op)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (!strcmp(operations[i].op, op))
			return (int)i;
	return -1;
}

/* (with MODIFIER ...): no matter for a decision, but one is forbidden. */
static bool is_modifier(const struct node *n)
{
	static const char *const known[] = {"message", "no-log", "report"};

	if (!is_list_of(n, "with") || n->n < 2 || n->kids[1]->type != WORD)
		return false;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(n->kids[1]->text, known[i]))
			return true;
	return false;
}

static const char *add_rule(struct sbpl *p, const struct node *n)
{
	struct rule r = {.list = n, .end = n->n};
	struct rule *v;

	if (is_list_of(n, "version"))
		return NULL;
	r.allow = is_list_of(n, "allow");
	if (!r.allow && !is_list_of(n, "deny"))
		return "neither allow nor deny";
	for (r.first_filter = 1; r.first_filter < n->n; r.first_filter++) {
		const struct node *op = n->kids[r.first_filter];

		if (op->type != WORD)
			break;
		if (op_index(op->text) < 0)
			return "an unknown operation";
	}
	if (r.first_filter == 1)
		return "a rule without an operation";
	while (r.end > r.first_filter && is_modifier(n->kids[r.end - 1]))
		r.end--;
	for (size_t i = r.first_filter; i < r.end; i++)
		if (n->kids[i]->type != LIST || is_list_of(n->kids[i], "with"))
			return "no filter where one should be";
	v = realloc(p->rules, (p->n_rules + 1) * sizeof(*v));
	if (!v)
		return "out of memory";
	p->rules = v;
	v[p->n_rules++] = r;
	return NULL;
}

struct sbpl *sbpl_read(const char *text, const char *tmp, char *why,
		       size_t why_size)
{
	struct sbpl *p = calloc(1, sizeof(*p));
	struct reader r = {.s = text};

	snprintf(why, why_size, "out of memory");
	if (!p)
		return NULL;
	p->tmp = strdup(tmp);
	p->root = node_new(&r, LIST);
	if (!read_notes(p, text))
		r.why = "a note that cannot be read";
	for (skip(&r); p->root && *r.s && !r.why; skip(&r)) {
		struct node *n = read_one(&r, 0);

		if (n && !add_kid(p->root, n)) {
			node_free(n);
			r.why = "out of memory";
		} else if (n) {
			r.why = add_rule(p, n);
		}
	}
	if (p->root && !r.why && p->n_rules)
		return p;
	snprintf(why, why_size, "%s, near \"%.60s\"",
		 r.why ? r.why : "no rule in it", r.s);
	sbpl_free(p);
	return NULL;
}

void sbpl_free(struct sbpl *p)
{
	if (!p)
		return;
	node_free(p->root);
	free(p->rules);
	for (size_t i = 0; i < p->n_notes; i++) {
		free(p->notes[i].what);
		free(p->notes[i].rest);
		free(p->notes[i].a);
		free(p->notes[i].b);
	}
	free(p->notes);
	free(p->tmp);
	free(p);
}

/* Filters */

enum match {
	NO,
	YES,
	UNKNOWN
};

static bool at_or_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return !strncmp(path, dir, n) &&
	       (!path[n] || path[n] == '/' || (n == 1 && dir[0] == '/'));
}

/* The string of (FILTER "...") or (FILTER (param "TMP")). */
static const char *operand(const struct sbpl *p, const struct node *n)
{
	if (n->n != 2)
		return NULL;
	if (n->kids[1]->type == STRING)
		return n->kids[1]->text;
	if (is_list_of(n->kids[1], "param") && n->kids[1]->n == 2 &&
	    n->kids[1]->kids[1]->type == STRING &&
	    !strcmp(n->kids[1]->kids[1]->text, "TMP"))
		return p->tmp;
	return NULL;
}

/* (remote ip "HOST:PORT"): HOST only localhost or *. */
static enum match match_endpoint(const struct node *n, const char *subject)
{
	const char *want, *want_port, *port = strrchr(subject, ':');
	size_t host;

	if (n->n != 3 || n->kids[1]->type != WORD || n->kids[2]->type != STRING)
		return UNKNOWN;
	want = n->kids[2]->text;
	want_port = strrchr(want, ':');
	if (!want_port)
		return UNKNOWN;
	host = (size_t)(want_port - want);
	if (strncmp(want, "*:", 2) != 0 && strncmp(want, "localhost:", 10) != 0)
		return UNKNOWN; /* the compiler takes no other */
	if (subject[0] == '/' || !port)
		return NO;
	if (strcmp(want_port, ":*") != 0 && strcmp(want_port, port) != 0)
		return NO;
	if (want[0] == '*')
		return YES;
	if ((size_t)(port - subject) == host && !strncmp(subject, want, host))
		return YES;
	return !strncmp(subject, "127.0.0.1:", 10) ? YES : NO;
}

static enum match match(const struct sbpl *p, const struct node *n,
			const char *subject);

static enum match match_group(const struct sbpl *p, const struct node *n,
			      const char *subject, bool all)
{
	enum match result = all ? YES : NO;

	for (size_t i = 1; i < n->n; i++) {
		enum match m = match(p, n->kids[i], subject);

		if (m == UNKNOWN)
			return UNKNOWN;
		if (all && m == NO)
			result = NO;
		if (!all && m == YES)
			result = YES;
	}
	return result;
}

/* Filters that compare the subject with one string. */
static enum match match_text(const char *head, const char *s,
			     const char *subject)
{
	static const struct {
		const char *head;
		enum {
			EXACT,
			BELOW,
			PREFIX
		} how;
	} rows[] = {{"literal", EXACT},	    {"path", EXACT},
		    {"global-name", EXACT}, {"sysctl-name", EXACT},
		    {"subpath", BELOW},	    {"sysctl-name-prefix", PREFIX},
		    {"prefix", PREFIX}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(head, rows[i].head) != 0)
			continue;
		if (rows[i].how == EXACT)
			return !strcmp(subject, s) ? YES : NO;
		if (rows[i].how == BELOW)
			return at_or_below(subject, s) ? YES : NO;
		return !strncmp(subject, s, strlen(s)) ? YES : NO;
	}
	return UNKNOWN;
}

static enum match match(const struct sbpl *p, const struct node *n,
			const char *subject)
{
	const char *head, *s;

	if (n->type != LIST || !n->n || n->kids[0]->type != WORD)
		return UNKNOWN;
	head = n->kids[0]->text;
	if (!strcmp(head, "require-all"))
		return match_group(p, n, subject, true);
	if (!strcmp(head, "require-any"))
		return match_group(p, n, subject, false);
	if (!strcmp(head, "require-not") && n->n == 2) {
		enum match m = match(p, n->kids[1], subject);

		return m == UNKNOWN ? UNKNOWN : m == YES ? NO : YES;
	}
	if (!strcmp(head, "remote") || !strcmp(head, "local"))
		return match_endpoint(n, subject);
	if (!strcmp(head, "target"))
		return NO; /* no subject of ours is a process */
	if (n->regex)
		return regexec(n->regex, subject, 0, NULL, 0) ? NO : YES;
	s = operand(p, n);
	return s ? match_text(head, s, subject) : UNKNOWN;
}

/* Deciding */

static bool names_op(const struct rule *r, const char *op)
{
	for (size_t i = 1; i < r->first_filter; i++)
		if (!strcmp(r->list->kids[i]->text, op))
			return true;
	return false;
}

/* Any of its filters (none: always). */
static enum match matches(const struct sbpl *p, const struct rule *r,
			  const char *subject)
{
	enum match result = r->first_filter == r->end ? YES : NO;

	for (size_t i = r->first_filter; i < r->end; i++) {
		enum match m = match(p, r->list->kids[i], subject);

		if (m == UNKNOWN)
			return UNKNOWN;
		if (m == YES)
			result = YES;
	}
	return result;
}

/* Does the rule name @op or what stands above it? "default" covers all. */
static bool covers(const struct rule *r, const char *op)
{
	int i = op_index(op);

	for (; i >= 0;
	     i = operations[i].parent ? op_index(operations[i].parent) : -1)
		if (names_op(r, operations[i].op))
			return true;
	return names_op(r, "default");
}

static enum sbpl_answer naive(const struct sbpl *p, const char *op,
			      const char *subject)
{
	for (size_t i = p->n_rules; i-- > 0;) {
		const struct rule *r = &p->rules[i];

		if (!covers(r, op))
			continue;
		switch (matches(p, r, subject)) {
		case YES:
			return r->allow ? SBPL_ALLOW : SBPL_DENY;
		case UNKNOWN:
			return SBPL_BAD;
		case NO:
			break;
		}
	}
	return SBPL_DENY;
}

/* Rules that name exactly @op: 1 found, 0 none, -1 unknown filter. */
static int exact(const struct sbpl *p, const char *op, const char *subject,
		 enum sbpl_answer *out)
{
	for (int filtered = 1; filtered >= 0; filtered--)
		for (size_t i = p->n_rules; i-- > 0;) {
			const struct rule *r = &p->rules[i];
			enum match m;

			if (!names_op(r, op) ||
			    (r->first_filter < r->end) != filtered)
				continue;
			m = matches(p, r, subject);
			if (m == UNKNOWN)
				return -1;
			if (m == NO)
				continue;
			*out = r->allow ? SBPL_ALLOW : SBPL_DENY;
			return 1;
		}
	return 0;
}

static enum sbpl_answer graph(const struct sbpl *p, const char *op,
			      const char *subject)
{
	int i = op_index(op);
	enum sbpl_answer a = SBPL_DENY;

	while (i >= 0) {
		int found = exact(p, operations[i].op, subject, &a);

		if (found < 0)
			return SBPL_BAD;
		if (found)
			return a;
		if (!operations[i].parent)
			return operations[i].open ? SBPL_ALLOW : SBPL_DENY;
		i = op_index(operations[i].parent);
	}
	return SBPL_BAD;
}

enum sbpl_answer sbpl_decide(const struct sbpl *p, const char *op,
			     const char *subject)
{
	enum sbpl_answer a = naive(p, op, subject);
	enum sbpl_answer b = graph(p, op, subject);

	if (a == SBPL_BAD || b == SBPL_BAD)
		return SBPL_BAD;
	return a == b ? a : SBPL_SPLIT;
}

/* Notes */

/* Links of every Mac. */
static void follow_links(const char *path, char *out, size_t out_size)
{
	static const char *const links[][2] = {
		{"/etc", "/private/etc"},
		{"/tmp", "/private/tmp"},
		{"/var", "/private/var"},
		{"/home", "/System/Volumes/Data/home"},
	};

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (at_or_below(path, links[i][0])) {
			snprintf(out, out_size, "%s%s", links[i][1],
				 path + strlen(links[i][0]));
			return;
		}
	snprintf(out, out_size, "%s", path);
}

bool sbpl_locate(const struct sbpl *p, const char *path, char *out,
		 size_t out_size)
{
	const struct note *best = NULL;

	for (size_t i = 0; i < p->n_notes; i++) {
		const struct note *n = &p->notes[i];
		bool place = !strcmp(n->what, "moved") ||
			     !strcmp(n->what, "stays") ||
			     !strcmp(n->what, "hidden");

		if (place && n->a && at_or_below(path, n->a) &&
		    (!best || strlen(n->a) > strlen(best->a)))
			best = n;
	}
	if (!best || !strcmp(best->what, "stays")) {
		follow_links(path, out, out_size);
		return true;
	}
	if (!strcmp(best->what, "hidden"))
		return false;
	snprintf(out, out_size, "%s%s", best->b_is_tmp ? p->tmp : best->b,
		 path + strlen(best->a));
	return true;
}

bool sbpl_has_note(const struct sbpl *p, const char *what, const char *rest)
{
	for (size_t i = 0; i < p->n_notes; i++)
		if (!strcmp(p->notes[i].what, what) &&
		    !strncmp(p->notes[i].rest, rest, strlen(rest)))
			return true;
	return false;
}

bool sbpl_is_base(const struct sbpl *p, const char *path)
{
	for (size_t i = 0; i < p->n_notes; i++)
		if (!strcmp(p->notes[i].what, "base") &&
		    at_or_below(path, p->notes[i].a))
			return true;
	return false;
}

size_t sbpl_count(const struct sbpl *p)
{
	return p->n_rules;
}

const char *sbpl_nth(const struct sbpl *p, const char *op, size_t n)
{
	for (size_t i = 0; i < p->n_rules; i++) {
		const struct rule *r = &p->rules[i];

		if (!r->allow || !names_op(r, op))
			continue;
		for (size_t k = r->first_filter; k < r->end; k++) {
			const struct node *f = r->list->kids[k];

			if ((is_list_of(f, "literal") ||
			     is_list_of(f, "subpath")) &&
			    operand(p, f) && !n--)
				return operand(p, f);
		}
	}
	return NULL;
}

bool sbpl_names(const struct sbpl *p, const char *op, const char *path)
{
	const char *s;

	for (size_t i = 0; (s = sbpl_nth(p, op, i)); i++)
		if (!strcmp(s, path))
			return true;
	return false;
}
