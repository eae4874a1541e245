/* manifest.c - extension.json, read strictly and written afresh.
 *
 * zot reads this file with Go's encoding/json, which matches keys without
 * regard to case and lets the last of two equal keys win. So a file that we
 * understand in one way can mean another thing to zot: {"exec":"/safe",
 * "Exec":"evil"} starts evil. Hence a key that zot would take for a known one
 * must be spelled exactly so, and what is written back holds nothing but known
 * keys.
 */
#include "manifest.h"

#include "cleanup.h"
#include "json_scan.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

#define MANIFEST_MAX ((size_t)1 << 20)
#define ARGS_MAX     1024

enum field_kind {
	FIELD_EXACT, /* a string that must stay what it is */
	FIELD_SHOWN, /* text for people: cleaned, one line */
	FIELD_THEME, /* a string, or ignored */
	FIELD_ARGS,
	FIELD_BOOL
};

#define AT(member) offsetof(struct zb_manifest, member)

/* The keys that zot reads. */
static const struct field {
	const char *key;
	enum field_kind kind;
	size_t at;
} fields[] = {
	{"name", FIELD_EXACT, AT(name)},
	{"version", FIELD_SHOWN, AT(version)},
	{"exec", FIELD_EXACT, AT(exec)},
	{"args", FIELD_ARGS, AT(args)},
	{"language", FIELD_SHOWN, AT(language)},
	{"description", FIELD_SHOWN, AT(description)},
	{"enabled", FIELD_BOOL, AT(enabled)},
	{"theme", FIELD_THEME, AT(theme)},
};

bool zb_name_valid(const char *name)
{
	size_t n = strlen(name);

	if (!n || n > ZB_NAME_MAX || name[n - 1] == '.')
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = name[i];
		bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9');

		if (!alnum && (!i || !strchr("._-", c)))
			return false;
	}
	return true;
}

void zb_manifest_done(struct zb_manifest *m)
{
	if (!m)
		return;
	free(m->name);
	free(m->version);
	free(m->exec);
	zb_strv_done(&m->args);
	free(m->language);
	free(m->description);
	free(m->theme);
	*m = (struct zb_manifest){0};
}

static int no_memory(struct zb_error *err)
{
	return zb_fail(err, ZB_ELIMIT, "manifest: out of memory");
}

/* "manifest: LINE:COL: ..." for token @i. */
ZB_PRINTF(4, 5)
static int fail_at(struct zb_error *err, const struct zb_json *j, size_t offset,
		   const char *fmt, ...)
{
	struct zb_buf b = {0};
	unsigned line, column;
	va_list ap;

	va_start(ap, fmt);
	zb_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	zb_json_position(j->text, j->len, offset, &line, &column);
	zb_fail(err, ZB_EUSAGE, "manifest: %u:%u: %s", line, column,
		zb_buf_str(&b));
	zb_buf_done(&b);
	return ZB_EUSAGE;
}

static const char *type_name(enum zb_json_type type)
{
	static const char *const names[] = {
		[ZB_JSON_OBJECT] = "an object", [ZB_JSON_ARRAY] = "a list",
		[ZB_JSON_STRING] = "a string",	[ZB_JSON_NUMBER] = "a number",
		[ZB_JSON_TRUE] = "true",	[ZB_JSON_FALSE] = "false",
		[ZB_JSON_NULL] = "null",
	};

	return names[type];
}

/* The text of string token @i on one line, without what a terminal acts on. */
static char *dup_shown(const struct zb_json *j, uint32_t i)
{
	struct zb_buf raw = {0}, out = {0};

	zb_json_string(j, i, &raw);
	zb_text_clean(&out, zb_buf_str(&raw), raw.len, false, NULL);
	zb_buf_done(&raw);
	for (size_t k = 0; k < out.len; k++)
		if (out.data[k] == '\n' || out.data[k] == '\t')
			out.data[k] = ' ';
	return zb_buf_steal(&out);
}

static int read_string(struct zb_manifest *m, const struct field *f,
		       const struct zb_json *j, uint32_t i,
		       struct zb_error *err)
{
	char **to = (char **)((char *)m + f->at);
	enum zb_json_type type = j->tok[i].type;

	if (type != ZB_JSON_STRING) {
		if (f->kind == FIELD_THEME)
			return 0;
		return fail_at(err, j, j->tok[i].start,
			       "\"%s\" must be a string, not %s", f->key,
			       type_name(type));
	}
	*to = f->kind == FIELD_SHOWN ? dup_shown(j, i)
				     : zb_json_dup_string(j, i);
	return *to ? 0 : no_memory(err);
}

static int read_args(struct zb_manifest *m, const struct zb_json *j, uint32_t i,
		     struct zb_error *err)
{
	if (j->tok[i].type != ZB_JSON_ARRAY)
		return fail_at(err, j, j->tok[i].start,
			       "\"args\" must be a list of strings, not %s",
			       type_name(j->tok[i].type));
	if (j->tok[i].size > ARGS_MAX)
		return fail_at(err, j, j->tok[i].start,
			       "\"args\" has more than %d entries", ARGS_MAX);
	for (uint32_t k = zb_json_first(j, i); k != ZB_JSON_NONE;
	     k = zb_json_next(j, k)) {
		if (j->tok[k].type != ZB_JSON_STRING)
			return fail_at(err, j, j->tok[k].start,
				       "\"args\" must hold strings, not %s",
				       type_name(j->tok[k].type));
		if (zb_strv_take(&m->args, zb_json_dup_string(j, k)))
			return no_memory(err);
	}
	return 0;
}

static int read_field(struct zb_manifest *m, const struct field *f,
		      const struct zb_json *j, uint32_t i, struct zb_error *err)
{
	enum zb_json_type type = j->tok[i].type;

	/* null leaves the default, as it does for zot. */
	if (type == ZB_JSON_NULL)
		return 0;
	switch (f->kind) {
	case FIELD_ARGS:
		return read_args(m, j, i, err);
	case FIELD_BOOL:
		if (type != ZB_JSON_TRUE && type != ZB_JSON_FALSE)
			return fail_at(err, j, j->tok[i].start,
				       "\"%s\" must be true or false, not %s",
				       f->key, type_name(type));
		*(bool *)((char *)m + f->at) = type == ZB_JSON_TRUE;
		return 0;
	case FIELD_EXACT:
	case FIELD_SHOWN:
	case FIELD_THEME:
	default:
		return read_string(m, f, j, i, err);
	}
}

/* The known key that zot would take the key of @i for; NULL: none. */
static const struct field *field_of(const struct zb_json *j, uint32_t i)
{
	struct zb_buf key = {0};
	const struct field *found = NULL;

	zb_json_key(j, i, &key);
	for (size_t k = 0; k < ZB_ARRAY_LEN(fields) && !found; k++)
		if (zb_fold_equal(zb_buf_str(&key), key.len, fields[k].key,
				  strlen(fields[k].key)))
			found = &fields[k];
	zb_buf_done(&key);
	return found;
}

static int read_members(struct zb_manifest *m, const struct zb_json *j,
			struct zb_error *err)
{
	for (uint32_t i = zb_json_first(j, 0); i != ZB_JSON_NONE;
	     i = zb_json_next(j, i)) {
		const struct field *f = field_of(j, i);
		const struct zb_json_tok *t = &j->tok[i];
		int rc;

		if (!f)
			continue;
		if (!zb_json_key_is(j, i, f->key)) {
			struct zb_buf key = {0};

			zb_text_escape(&key, j->text + t->key_start + 1,
				       t->key_end - t->key_start - 2, 60);
			rc = fail_at(err, j, t->key_start,
				     "key \"%s\" would be read as \"%s\"; "
				     "spell it so",
				     zb_buf_str(&key), f->key);
			zb_buf_done(&key);
			return rc;
		}
		rc = read_field(m, f, j, i, err);
		if (rc)
			return rc;
	}
	return 0;
}

static bool is_wrapped(const struct zb_manifest *m)
{
	const char *base = m->exec ? strrchr(m->exec, '/') : NULL;

	return m->exec && m->exec[0] == '/' && !strcmp(base, "/zotbox") &&
	       m->args.n == 2 && !strcmp(m->args.v[0], "wrap") &&
	       !strcmp(m->args.v[1], m->name);
}

static int check_name(const struct zb_manifest *m, struct zb_error *err)
{
	struct zb_buf shown = {0};

	if (!m->name || !*m->name)
		return zb_fail(err, ZB_EUSAGE, "manifest: name is required");
	if (zb_name_valid(m->name))
		return 0;
	zb_text_escape(&shown, m->name, strlen(m->name), 100);
	zb_fail(err, ZB_EUSAGE,
		"manifest: name \"%s\" cannot be used: it must be 1 to %d of "
		"A-Z a-z 0-9 . _ -, start with a letter or a digit, and not "
		"end with a dot",
		zb_buf_str(&shown), ZB_NAME_MAX);
	zb_buf_done(&shown);
	return ZB_EUSAGE;
}

static int read_all(struct zb_manifest *m, const struct zb_json *j, bool theme,
		    struct zb_error *err)
{
	int rc;

	if (j->tok[0].type != ZB_JSON_OBJECT)
		return fail_at(err, j, j->tok[0].start,
			       "it must be an object, not %s",
			       type_name(j->tok[0].type));
	rc = read_members(m, j, err);
	if (!rc)
		rc = check_name(m, err);
	if (rc)
		return rc;
	if (m->exec && !*m->exec) {
		free(m->exec);
		m->exec = NULL;
	}
	if (!m->exec && !theme)
		return zb_fail(err, ZB_EUSAGE, "manifest: exec is required");
	m->wrapped = is_wrapped(m);
	return 0;
}

int zb_manifest_parse(struct zb_manifest *out, const char *text, size_t len,
		      bool theme, struct zb_error *err)
{
	/* The object, its members, the entries of args. */
	struct zb_json_limits limits = {.index_depth = 2};
	struct zb_json_fault fault;
	struct zb_json j = {0};
	int rc;

	*out = (struct zb_manifest){.enabled = true};
	if (len > MANIFEST_MAX)
		return zb_fail(err, ZB_EUSAGE,
			       "manifest: larger than %zu bytes", MANIFEST_MAX);
	rc = zb_json_scan(&j, text, len, &limits, &fault);
	if (rc == ZB_EUSAGE)
		zb_fail(err, rc, "parse manifest: %u:%u: %s", fault.line,
			fault.column, fault.what);
	else if (rc)
		no_memory(err);
	else
		rc = read_all(out, &j, theme, err);
	zb_json_done(&j);
	return rc;
}

/* ---- writing ---- */

/* Start a member: "KEY": */
static void add_key(struct zb_buf *out, const char *key)
{
	zb_buf_addf(out, "%s  \"%s\": ", out->len > 2 ? ",\n" : "", key);
}

static void add_string(struct zb_buf *out, const char *key, const char *value)
{
	if (!value)
		return;
	add_key(out, key);
	zb_json_quote(out, value, strlen(value));
}

int zb_manifest_wrap(struct zb_buf *out, const struct zb_manifest *m,
		     const char *zotbox)
{
	struct zb_buf b = {0};
	int rc;

	if (zotbox[0] != '/' ||
	    zb_utf8_check(zotbox, strlen(zotbox)) != strlen(zotbox) ||
	    !m->name || !zb_name_valid(m->name))
		return ZB_EUSAGE;
	zb_buf_adds(&b, "{\n");
	if (m->exec) {
		add_key(&b, "args");
		zb_buf_addf(&b, "[\n    \"wrap\",\n    \"%s\"\n  ]", m->name);
	}
	add_string(&b, "description", m->description);
	add_key(&b, "enabled");
	zb_buf_adds(&b, m->enabled ? "true" : "false");
	if (m->exec)
		add_string(&b, "exec", zotbox);
	add_string(&b, "language", m->language);
	add_string(&b, "name", m->name);
	add_string(&b, "theme", m->theme);
	add_string(&b, "version", m->version);
	zb_buf_adds(&b, "\n}\n");
	rc = b.failed ? ZB_ELIMIT : zb_buf_add(out, b.data, b.len);
	zb_buf_done(&b);
	return rc;
}
