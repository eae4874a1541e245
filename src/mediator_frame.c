/* mediator_frame.c - a frame of the extension taken apart by its row, and put
 * together again without what may not pass.
 *
 * The line itself is indexed one level deep. A nested value whose inside
 * matters (lists, panels, content blocks) is scanned once more on its own, to
 * its own depth: so keys are compared exactly at the levels that are read, and
 * the inside of schemas, arguments and structured results, which may well hold
 * "a" and "A", is left alone.
 *
 * Taking apart never changes anything; zb_med_pass() walks the frame once from
 * left to right and notes edits. No edit: the original line passes. */
#include "mediator_internal.h"

#include "blocks.h"
#include "cleanup.h"
#include "frame.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

/* A value that is read, the index it is in, and where that index's text
 * begins in the line. */
struct place {
	struct zb_json *json;
	uint32_t tok;
	size_t base;
};

/* The note at the token of a member that map_fields() saw. A key that it never
 * saw has none, and is cut as one that is not known. */
enum {
	NOTE_FIELD = 0x7f, /* index of its field, and 1 */
	NOTE_CUT = 0x80,   /* the field goes */
};

static int noted_field(const struct zb_json_tok *t)
{
	return (t->note & NOTE_FIELD) - 1;
}

static struct place place_of(const struct zb_part *p, unsigned field)
{
	uint32_t tok = p->tok[field];

	if (!p->inner[field])
		return (struct place){p->json, tok, p->base};
	return (struct place){p->inner[field], 0,
			      p->base + p->json->tok[tok].start};
}

/* ---- taking apart ---- */

void zb_med_smuggled(struct zb_mediator *m, const struct zb_frame_row *row,
		     const char *what)
{
	bool two = strncmp(what, "duplicate key:", 14) == 0;
	zb_auto(free) char *rule = zb_strf(
		"%s%s", what, two ? "; frame refused" : " in a frame; refused");
	bool verb = row && row->verb != ZB_VERB_COUNT;

	if (!rule) {
		m->oom = true;
		return;
	}
	zb_med_log(m, "%s", rule);
	zb_med_refuse(
		m, &(struct zb_med_refusal){
			   .op = ZB_OP_PROTO,
			   .detail = verb ? zb_verb_name(row->verb) : "frame",
			   .asked = m->line,
			   .asked_len = m->len,
			   .target = m->out->type[0] ? m->out->type : NULL,
			   .rule = rule,
			   .why_not = "zot matches keys without case and lets "
				      "the last one win, so it would read "
				      "another frame than this one",
		   });
}

/* The bytes of a member's key, unescaped; valid until the next call. */
static const char *key_of(struct zb_mediator *m, const struct zb_json *j,
			  uint32_t i, size_t *len)
{
	const struct zb_json_tok *t = &j->tok[i];

	if (!t->key_escaped) {
		*len = t->key_end - t->key_start - 2;
		return j->text + t->key_start + 1;
	}
	zb_buf_clear(&m->key);
	m->oom |= zb_json_key(j, i, &m->key) != 0;
	*len = m->key.len;
	return zb_buf_str(&m->key);
}

static const char *type_name(enum zb_json_type t)
{
	static const char *const names[] = {
		"object", "array", "string", "number", "true", "false", "null"};

	return names[t];
}

/* Note the first thing that is wrong. Return: false. */
ZB_PRINTF(2, 3)
static bool wrong(char bad[200], const char *fmt, ...)
{
	va_list ap;

	if (bad[0])
		return false;
	va_start(ap, fmt);
	vsnprintf(bad, 200, fmt, ap);
	va_end(ap);
	return false;
}

static bool want(char bad[200], const struct zb_field *f,
		 const struct zb_json_tok *t, enum zb_json_type type,
		 const char *name)
{
	if (t->type == type)
		return true;
	return wrong(bad, "\"%s\" must be %s (got %s)", f->name, name,
		     type_name(t->type));
}

/* Is string token @i longer than @max bytes when unescaped? */
static bool too_big(struct zb_mediator *m, const struct zb_json *j, uint32_t i,
		    uint32_t max)
{
	const struct zb_json_tok *t = &j->tok[i];

	if (!max || t->end - t->start - 2 <= max)
		return false;
	if (!t->escaped)
		return true;
	zb_buf_clear(&m->raw);
	m->oom |= zb_json_string(j, i, &m->raw) != 0;
	return m->raw.len > max;
}

static bool one_of(const struct zb_json *j, uint32_t i,
		   const char *const *values)
{
	for (; *values; values++)
		if (zb_json_is(j, i, *values))
			return true;
	return false;
}

static void cut_field(struct zb_part *p, unsigned field)
{
	p->cut |= 1u << field;
	p->json->tok[p->tok[field]].note |= NOTE_CUT;
}

/* A value outside a field's enumeration: the field goes; said once. */
static void loose_value(struct zb_mediator *m, struct zb_part *p,
			unsigned field)
{
	const struct zb_json_tok *t = &p->json->tok[p->tok[field]];
	const char *name = p->shape->fields[field].name;
	struct zb_med_text show;
	const char *value = zb_med_show(&show, p->json->text + t->start,
					t->end - t->start, 60);

	cut_field(p, field);
	if (zb_med_once(m, "value %s.%s %s", p->shape->what, name, value))
		zb_med_log(m, "%s: %s is no value of \"%s\"; cut out",
			   p->shape->what, value, name);
}

static void check_string(struct zb_mediator *m, struct zb_part *p,
			 unsigned field, char bad[200])
{
	const struct zb_field *f = &p->shape->fields[field];
	uint32_t i = p->tok[field];

	if (!want(bad, f, &p->json->tok[i], ZB_JSON_STRING, "a string"))
		return;
	if (!(f->flags & ZB_FIELD_TRIM) && too_big(m, p->json, i, f->max))
		wrong(bad, "\"%s\" is longer than %u bytes", f->name, f->max);
	else if (!f->values || one_of(p->json, i, f->values))
		return;
	else if (f->flags & ZB_FIELD_LOOSE)
		loose_value(m, p, field);
	else
		wrong(bad, "\"%s\" has a value that is not known", f->name);
}

/* Elements of an array of strings; a null among them is an empty one. */
static void check_list(const struct zb_field *f, struct place at, char bad[200])
{
	const struct zb_json *j = at.json;
	unsigned n = 0;

	for (uint32_t i = zb_json_first(j, at.tok); i != ZB_JSON_NONE;
	     i = zb_json_next(j, i), n++)
		if (j->tok[i].type != ZB_JSON_STRING &&
		    j->tok[i].type != ZB_JSON_NULL) {
			wrong(bad, "\"%s\"[%u] must be a string (got %s)",
			      f->name, n, type_name(j->tok[i].type));
			return;
		}
	if (f->type == ZB_FIELD_NAMES && n > ZB_PROTO_NAMES)
		wrong(bad, "\"%s\" has more than %d elements", f->name,
		      ZB_PROTO_NAMES);
}

static bool read_part(struct zb_mediator *m, const struct zb_frame_row *row,
		      struct zb_part *p, char bad[200]);

/* Which object it is. Its fields are for the caller to find. */
static void set_part(struct zb_part *p, const struct zb_shape *shape,
		     struct place at)
{
	p->shape = shape;
	p->json = at.json;
	p->obj = at.tok;
	p->base = at.base;
}

static bool check_blocks(struct zb_mediator *m, const struct zb_frame_row *row,
			 const struct zb_field *f, struct place at,
			 char bad[200])
{
	struct zb_part block;
	unsigned n = 0;

	for (uint32_t i = zb_json_first(at.json, at.tok); i != ZB_JSON_NONE;
	     i = zb_json_next(at.json, i), n++) {
		if (at.json->tok[i].type != ZB_JSON_OBJECT) {
			wrong(bad, "\"%s\"[%u] must be an object (got %s)",
			      f->name, n, type_name(at.json->tok[i].type));
			return true;
		}
		set_part(&block, f->shape, (struct place){at.json, i, at.base});
		if (!read_part(m, row, &block, bad))
			return false;
	}
	if (n > ZB_PROTO_BLOCKS)
		wrong(bad, "\"%s\" has more than %d elements", f->name,
		      ZB_PROTO_BLOCKS);
	return true;
}

/* Give nested field @field of the frame an index of its own. Return: false if
 * a key in it is smuggled. */
static bool open_inner(struct zb_mediator *m, const struct zb_frame_row *row,
		       struct zb_part *p, unsigned field, char bad[200])
{
	const struct zb_field *f = &p->shape->fields[field];
	const struct zb_json_tok *t = &p->json->tok[p->tok[field]];
	const struct zb_json_limits limits = {
		.max_depth = ZB_PROTO_DEPTH,
		.index_depth = f->shape ? 2 : 1,
		.max_tokens = 8192,
		.nul_ok = true,
	};
	struct zb_json *inner = NULL;
	int rc;

	for (size_t i = 0; i < ZB_MED_INNER && !inner; i++)
		if (!m->inner_used[i]) {
			m->inner_used[i] = true;
			inner = &m->inner[i];
		}
	if (!inner) /* the table has no such frame; a test says so */
		return wrong(bad, "too many nested fields");
	rc = zb_json_scan(inner, p->json->text + t->start, t->end - t->start,
			  &limits, &m->fault);
	p->inner[field] = inner;
	if (rc == ZB_ELIMIT) {
		m->oom = true;
		return false;
	}
	if (rc && m->fault.kind == ZB_JSON_DUPLICATE) {
		zb_med_smuggled(m, row, m->fault.what);
		return false;
	}
	if (rc)
		wrong(bad, "\"%s\": %s", f->name, m->fault.what);
	return true;
}

static bool check_shape(struct zb_mediator *m, const struct zb_frame_row *row,
			const struct zb_shape *shape, struct place at,
			char bad[200])
{
	struct zb_part inside;

	set_part(&inside, shape, at);
	return read_part(m, row, &inside, bad);
}

/* The inside of a nested field. Return: false if a key is smuggled. */
static bool check_nested(struct zb_mediator *m, const struct zb_frame_row *row,
			 struct zb_part *p, unsigned field, char bad[200])
{
	const struct zb_field *f = &p->shape->fields[field];
	const struct zb_json_tok *t = &p->json->tok[p->tok[field]];
	struct place at;

	if (f->type == ZB_FIELD_SHAPE
		    ? !want(bad, f, t, ZB_JSON_OBJECT, "an object")
		    : !want(bad, f, t, ZB_JSON_ARRAY, "an array"))
		return true;
	if (p->json == &m->json && !open_inner(m, row, p, field, bad))
		return false;
	at = place_of(p, field);
	if (!at.json->n)
		return true; /* a fault of its syntax's limits: in @bad */
	if (f->type == ZB_FIELD_BLOCKS)
		return check_blocks(m, row, f, at, bad);
	if (f->type == ZB_FIELD_SHAPE)
		return check_shape(m, row, f->shape, at, bad);
	check_list(f, at, bad);
	return true;
}

static bool check_field(struct zb_mediator *m, const struct zb_frame_row *row,
			struct zb_part *p, unsigned field, char bad[200])
{
	const struct zb_field *f = &p->shape->fields[field];
	const struct zb_json_tok *t = &p->json->tok[p->tok[field]];

	switch (f->type) {
	case ZB_FIELD_STRING:
		check_string(m, p, field, bad);
		break;
	case ZB_FIELD_BOOL:
		if (t->type != ZB_JSON_TRUE && t->type != ZB_JSON_FALSE)
			wrong(bad, "\"%s\" must be true or false (got %s)",
			      f->name, type_name(t->type));
		break;
	case ZB_FIELD_OBJECT:
		if (want(bad, f, t, ZB_JSON_OBJECT, "an object") && f->max &&
		    t->end - t->start > f->max)
			wrong(bad, "\"%s\" is longer than %u bytes", f->name,
			      f->max);
		break;
	case ZB_FIELD_LINES:
	case ZB_FIELD_NAMES:
	case ZB_FIELD_SHAPE:
	case ZB_FIELD_BLOCKS:
		return check_nested(m, row, p, field, bad);
	case ZB_FIELD_ID:
	case ZB_FIELD_ANY:
		break;
	}
	return true;
}

/* A key that is no field's: is it one in disguise? Then it is recorded. */
static bool is_disguised(struct zb_mediator *m, const struct zb_frame_row *row,
			 const struct zb_shape *shape, const char *key,
			 size_t len)
{
	int f = zb_proto_field_folded(shape, key, len);
	char what[100];

	if (f < 0)
		return false;
	snprintf(what, sizeof(what), "a key that only folds to \"%s\"",
		 shape->fields[f].name);
	zb_med_smuggled(m, row, what);
	return true;
}

static void no_fields(struct zb_part *p)
{
	for (unsigned f = 0; f < ZB_SHAPE_FIELDS; f++) {
		p->tok[f] = ZB_JSON_NONE;
		p->inner[f] = NULL;
	}
	p->cut = 0;
}

/* Find the fields of an object. Return: false if a key is smuggled. */
static bool map_fields(struct zb_mediator *m, const struct zb_frame_row *row,
		       struct zb_part *p)
{
	no_fields(p);
	for (uint32_t i = zb_json_first(p->json, p->obj); i != ZB_JSON_NONE;
	     i = zb_json_next(p->json, i)) {
		size_t len;
		const char *key = key_of(m, p->json, i, &len);
		int f = zb_proto_field(p->shape, key, len);

		if (f >= 0) {
			p->tok[f] = i;
			p->json->tok[i].note = (uint16_t)(f + 1);
		} else if (is_disguised(m, row, p->shape, key, len)) {
			return false;
		}
	}
	return true;
}

static bool read_part(struct zb_mediator *m, const struct zb_frame_row *row,
		      struct zb_part *p, char bad[200])
{
	if (!map_fields(m, row, p))
		return false;
	for (unsigned f = 0; f < p->shape->n; f++) {
		enum zb_field_type type = p->shape->fields[f].type;

		if (p->tok[f] == ZB_JSON_NONE || type == ZB_FIELD_ID)
			continue;
		if (p->json->tok[p->tok[f]].type != ZB_JSON_NULL) {
			if (!check_field(m, row, p, f, bad))
				return false;
			continue;
		}
		/* What the host keeps raw would be the text "null". */
		if (type == ZB_FIELD_OBJECT || type == ZB_FIELD_ANY)
			cut_field(p, f);
		p->tok[f] = ZB_JSON_NONE;
	}
	return true;
}

void zb_med_part(struct zb_part *p, const struct zb_shape *shape,
		 struct zb_json *json, uint32_t obj, size_t base)
{
	set_part(p, shape, (struct place){json, obj, base});
	no_fields(p);
	for (uint32_t i = zb_json_first(json, obj); i != ZB_JSON_NONE;
	     i = zb_json_next(json, i)) {
		const struct zb_json_tok *t = &json->tok[i];
		int f = noted_field(t);

		if (f >= 0 && t->type != ZB_JSON_NULL)
			p->tok[f] = i;
		if (f >= 0 && t->note & NOTE_CUT)
			p->cut |= 1u << f;
	}
}

enum zb_view_result zb_med_view(struct zb_mediator *m, struct zb_view *v,
				const struct zb_frame_row *row)
{
	memset(m->inner_used, 0, sizeof(m->inner_used));
	v->row = row;
	v->bad[0] = '\0';
	v->top.shape = &row->shape;
	v->top.json = &m->json;
	v->top.obj = 0;
	v->top.base = 0;
	return read_part(m, row, &v->top, v->bad) ? ZB_VIEW_OK
						  : ZB_VIEW_SMUGGLED;
}

/* ---- reading ---- */

static unsigned index_of(const struct zb_shape *shape, const char *name)
{
	int f = zb_proto_field(shape, name, strlen(name));

	return f < 0 ? 0 : (unsigned)f;
}

uint32_t zb_med_field(const struct zb_part *p, const char *name)
{
	return p->tok[index_of(p->shape, name)];
}

bool zb_med_has(const struct zb_view *v, const char *name)
{
	return zb_med_field(&v->top, name) != ZB_JSON_NONE;
}

bool zb_med_true(const struct zb_view *v, const char *name)
{
	uint32_t tok = zb_med_field(&v->top, name);

	return tok != ZB_JSON_NONE &&
	       v->top.json->tok[tok].type == ZB_JSON_TRUE;
}

void zb_med_cut(struct zb_view *v, const char *name)
{
	v->top.cut |= 1u << index_of(v->top.shape, name);
}

bool zb_med_nested(const struct zb_view *v, const char *name, struct zb_part *p)
{
	unsigned f = index_of(v->top.shape, name);
	struct place at;

	if (v->top.tok[f] == ZB_JSON_NONE || !v->top.inner[f] ||
	    !v->top.inner[f]->n)
		return false;
	at = place_of(&v->top, f);
	zb_med_part(p, v->top.shape->fields[f].shape, at.json, at.tok, at.base);
	return true;
}

static bool read_name(struct zb_mediator *m, const struct zb_part *p,
		      uint32_t tok, struct zb_buf *out)
{
	zb_buf_clear(out);
	if (tok == ZB_JSON_NONE || p->json->tok[tok].type != ZB_JSON_STRING)
		return false;
	m->oom |= zb_json_string(p->json, tok, out) != 0;
	return !memchr(zb_buf_str(out), '\0', out->len);
}

bool zb_med_name(struct zb_mediator *m, const struct zb_part *p,
		 const char *name)
{
	return read_name(m, p, zb_med_field(p, name), &m->raw);
}

void zb_med_take_id(struct zb_mediator *m, const struct zb_view *v)
{
	int f = zb_proto_field(v->top.shape, "id", 2);

	if (f < 0 || !read_name(m, &v->top, v->top.tok[f], &m->id))
		zb_buf_clear(&m->id);
}

#define ONES  UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

/* Bytes of plain ASCII at the start of @s, many at a time; may stop early at
 * a word with a backslash, a DEL or a byte over it. */
static size_t plain_run(const char *s, size_t n)
{
	size_t i = (size_t)(zb_skip_blocks(s, s + n, false, true) - s);

	while (n - i >= sizeof(uint64_t)) {
		uint64_t w, slash, del;

		memcpy(&w, s + i, sizeof(w));
		slash = (w ^ ONES * '\\') - ONES;
		del = (w ^ ONES * 0x7f) - ONES;
		if ((w | slash | del) & HIGHS)
			break;
		i += sizeof(w);
	}
	return i;
}

/* Would unescaping and cleaning surely change nothing? True for plain ASCII
 * with the escapes that stand for themselves. */
static bool surely_clean(const char *s, size_t n)
{
	for (size_t i = plain_run(s, n); i < n; i += plain_run(s + i, n - i)) {
		size_t stop = n - i < 8 ? n : i + 8;

		/* This word has one; or it is the rest. */
		for (; i < stop; i++) {
			unsigned char c = (unsigned char)s[i];

			if (c >= 0x7f)
				return false;
			if (c != '\\')
				continue;
			if (++i >= n || !strchr("\"\\/nt", s[i]))
				return false;
		}
	}
	return true;
}

/* Cut cleaned text at @max bytes: at the end of a character, and not inside a
 * colour sequence, which would swallow what follows. */
static void trim(struct zb_buf *b, size_t max)
{
	size_t n = max;

	while (n && ((unsigned char)b->data[n] & 0xc0) == 0x80)
		n--;
	for (size_t k = n; k && n - k < 70; k--) {
		if (b->data[k - 1] == 'm')
			break;
		if (b->data[k - 1] == 0x1b) {
			n = k - 1;
			break;
		}
	}
	b->len = n;
	b->data[n] = '\0';
	zb_buf_adds(b, "\xe2\x80\xa6");
}

/* Is m->clean not just m->raw without the carriage returns of line ends? */
static bool lost_controls(const struct zb_mediator *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->raw.len; i++) {
		if (m->raw.data[i] == '\r')
			continue;
		if (n >= m->clean.len || m->raw.data[i] != m->clean.data[n])
			return true;
		n++;
	}
	return n != m->clean.len;
}

/* Said once a field: an attempt on the user's terminal, or text that was meant
 * to look like other text. */
static void note_controls(struct zb_mediator *m, const struct zb_frame_row *row,
			  const struct zb_field *f)
{
	char target[100];

	if (!lost_controls(m) ||
	    !zb_med_once(m, "controls %s %s", row->type, f->name))
		return;
	snprintf(target, sizeof(target), "%s.%s", row->type, f->name);
	zb_med_log(m, "%s: control characters taken out", target);
	zb_med_refuse(m,
		      &(struct zb_med_refusal){
			      .op = ZB_OP_PROTO,
			      .detail = row->verb == ZB_VERB_COUNT
						? "frame"
						: zb_verb_name(row->verb),
			      .asked = zb_buf_str(&m->raw),
			      .asked_len = m->raw.len,
			      .target = target,
			      .rule = "text may not steer a terminal or hide "
				      "what it says; its control characters "
				      "were taken out",
			      .why_not = "only line ends, tabs and colours "
					 "pass in text; the rest of the "
					 "frame did",
		      });
}

/* String token @i as field @f lets it pass, in m->clean. Return: does it
 * differ from the original? *@controls (may be NULL): by what is no text. */
static bool clean(struct zb_mediator *m, const struct zb_field *f,
		  const struct zb_json *j, uint32_t i, bool *controls)
{
	bool changed = false;

	zb_buf_clear(&m->raw);
	zb_buf_clear(&m->clean);
	zb_json_string(j, i, &m->raw);
	if (f->flags & ZB_FIELD_TEXT)
		zb_text_clean(&m->clean, zb_buf_str(&m->raw), m->raw.len, true,
			      &changed);
	else
		zb_buf_add(&m->clean, zb_buf_str(&m->raw), m->raw.len);
	if (controls)
		*controls = changed;
	if ((f->flags & ZB_FIELD_TRIM) && f->max && m->clean.len > f->max) {
		trim(&m->clean, f->max);
		changed = true;
	}
	m->oom |= m->raw.failed || m->clean.failed;
	return changed;
}

bool zb_med_text(struct zb_mediator *m, const struct zb_part *p,
		 const char *name)
{
	unsigned f = index_of(p->shape, name);

	if (p->tok[f] == ZB_JSON_NONE)
		return false;
	clean(m, &p->shape->fields[f], p->json, p->tok[f], NULL);
	return true;
}

/* ---- putting together ---- */

static void emit_text(struct zb_mediator *m, const struct zb_frame_row *row,
		      const struct zb_field *f, struct place at)
{
	const struct zb_json_tok *t = &at.json->tok[at.tok];
	size_t n = t->end - t->start - 2;
	bool controls;

	if (t->type != ZB_JSON_STRING || !(f->flags & ZB_FIELD_TEXT))
		return;
	if ((!(f->flags & ZB_FIELD_TRIM) || !f->max || n <= f->max) &&
	    surely_clean(at.json->text + t->start + 1, n))
		return;
	if (!clean(m, f, at.json, at.tok, &controls))
		return;
	if (controls)
		note_controls(m, row, f);
	zb_buf_clear(&m->quoted);
	m->oom |= zb_json_quote(&m->quoted, zb_buf_str(&m->clean),
				m->clean.len) != 0;
	zb_splice_add(&m->splice, at.base + t->start, at.base + t->end,
		      m->quoted.data, m->quoted.len);
}

static void emit_lines(struct zb_mediator *m, const struct zb_frame_row *row,
		       const struct zb_field *f, struct place at)
{
	const struct zb_json *j = at.json;
	struct zb_cutter c = {0};
	unsigned n = 0;

	for (uint32_t i = zb_json_first(j, at.tok); i != ZB_JSON_NONE;
	     i = zb_json_next(j, i)) {
		size_t start = at.base + j->tok[i].start;
		size_t end = at.base + j->tok[i].end;

		if (n++ >= ZB_PROTO_LINES) {
			zb_cutter_cut(&c, start, end);
			continue;
		}
		zb_cutter_keep(&c, &m->splice, start, end);
		emit_text(m, row, f, (struct place){at.json, i, at.base});
	}
	zb_cutter_end(&c, &m->splice);
	if (n > ZB_PROTO_LINES && zb_med_once(m, "lines"))
		zb_med_log(m, "%u lines in a panel; those after %d are cut", n,
			   ZB_PROTO_LINES);
}

static void emit_names(struct zb_mediator *m, const struct zb_frame_row *row,
		       const struct zb_field *f, struct place at)
{
	const struct zb_json *j = at.json;
	struct zb_cutter c = {0};

	for (uint32_t i = zb_json_first(j, at.tok); i != ZB_JSON_NONE;
	     i = zb_json_next(j, i)) {
		size_t start = at.base + j->tok[i].start;
		size_t end = at.base + j->tok[i].end;
		bool keep = j->tok[i].type == ZB_JSON_STRING;

		zb_buf_clear(&m->raw);
		if (keep)
			m->oom |= zb_json_string(j, i, &m->raw) != 0;
		keep = keep && zb_med_keep_name(m, row, f, zb_buf_str(&m->raw),
						m->raw.len);
		if (keep)
			zb_cutter_keep(&c, &m->splice, start, end);
		else
			zb_cutter_cut(&c, start, end);
	}
	zb_cutter_end(&c, &m->splice);
}

static void emit_part(struct zb_mediator *m, const struct zb_frame_row *row,
		      const struct zb_part *p);

static void emit_inside(struct zb_mediator *m, const struct zb_frame_row *row,
			const struct zb_shape *shape, struct place at)
{
	struct zb_part p;

	zb_med_part(&p, shape, at.json, at.tok, at.base);
	emit_part(m, row, &p);
}

static void emit_field(struct zb_mediator *m, const struct zb_frame_row *row,
		       const struct zb_part *p, unsigned field)
{
	const struct zb_field *f = &p->shape->fields[field];
	struct place at = place_of(p, field);

	switch (f->type) {
	case ZB_FIELD_STRING:
		emit_text(m, row, f, at);
		break;
	case ZB_FIELD_LINES:
		emit_lines(m, row, f, at);
		break;
	case ZB_FIELD_NAMES:
		emit_names(m, row, f, at);
		break;
	case ZB_FIELD_SHAPE:
		emit_inside(m, row, f->shape, at);
		break;
	case ZB_FIELD_BLOCKS:
		for (uint32_t i = zb_json_first(at.json, at.tok);
		     i != ZB_JSON_NONE; i = zb_json_next(at.json, i))
			emit_inside(m, row, f->shape,
				    (struct place){at.json, i, at.base});
		break;
	case ZB_FIELD_ID:
	case ZB_FIELD_BOOL:
	case ZB_FIELD_OBJECT:
	case ZB_FIELD_ANY:
		break;
	}
}

/* A member that the table does not have: one record and one line a kind. */
static void unknown_field(struct zb_mediator *m, const struct zb_frame_row *row,
			  const struct zb_shape *shape, const struct zb_json *j,
			  uint32_t i)
{
	struct zb_med_text t;
	size_t len;
	const char *key = key_of(m, j, i, &len);
	const char *shown = zb_med_show(&t, key, len, 80);
	char target[200], rule[300];

	if (!zb_med_once(m, "field %s %s %s", row->type, shape->what, shown))
		return;
	snprintf(target, sizeof(target), "%s.%s", shape->what, shown);
	snprintf(rule, sizeof(rule), "a %s has no field \"%s\"; cut out",
		 shape->what, shown);
	zb_med_log(m, "%s: unknown field \"%s\" cut out", shape->what, shown);
	zb_med_refuse(m, &(struct zb_med_refusal){
				 .op = ZB_OP_PROTO,
				 .detail = row->verb == ZB_VERB_COUNT
						   ? "frame"
						   : zb_verb_name(row->verb),
				 .asked = key,
				 .asked_len = len,
				 .target = target,
				 .rule = rule,
				 .why_not = "only known fields pass; the rest "
					    "of the frame did",
			 });
}

static void emit_part(struct zb_mediator *m, const struct zb_frame_row *row,
		      const struct zb_part *p)
{
	const struct zb_json *j = p->json;
	struct zb_cutter c = {0};

	for (uint32_t i = zb_json_first(j, p->obj); i != ZB_JSON_NONE;
	     i = zb_json_next(j, i)) {
		size_t start = p->base + j->tok[i].key_start;
		size_t end = p->base + j->tok[i].end;
		int f = noted_field(&j->tok[i]);

		if (f < 0)
			unknown_field(m, row, p->shape, j, i);
		if (f < 0 || p->cut >> f & 1) {
			zb_cutter_cut(&c, start, end);
			continue;
		}
		zb_cutter_keep(&c, &m->splice, start, end);
		if (p->tok[f] != ZB_JSON_NONE)
			emit_field(m, row, p, (unsigned)f);
	}
	zb_cutter_end(&c, &m->splice);
}

bool zb_med_pass(struct zb_mediator *m, struct zb_view *v)
{
	struct zb_med_out *o = m->out;

	o->verdict = ZB_MED_DROP;
	zb_splice_clear(&m->splice);
	emit_part(m, v->row, &v->top);
	if (!m->splice.failed && !m->splice.n) {
		o->verdict = ZB_MED_PASS;
		return true;
	}
	if (zb_splice_apply(&m->splice, m->line, m->len, &o->bytes)) {
		m->oom = true;
		return false;
	}
	if (o->bytes.len > ZB_FRAME_MAX) {
		zb_buf_clear(&o->bytes);
		return wrong(v->bad, "longer than %u bytes after cleaning",
			     ZB_FRAME_MAX);
	}
	o->verdict = ZB_MED_CUT;
	return true;
}

/* ---- a line that may be cut off ---- */

static size_t skip_ws(const char *s, size_t i, size_t n)
{
	while (i < n && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r'))
		i++;
	return i;
}

/* End of the string that starts at @i, or 0 if it is cut off. */
static size_t string_end(const char *s, size_t i, size_t n)
{
	for (i++; i < n; i++) {
		if (s[i] == '"')
			return i + 1;
		if (s[i] == '\\')
			i++;
	}
	return 0;
}

/* End of the value at @i, or 0. Brackets are counted, not matched. */
static size_t value_end(const char *s, size_t i, size_t n)
{
	size_t depth = 0;

	while (i < n) {
		char c = s[i];

		if (c == '"') {
			i = string_end(s, i, n);
			if (!i || !depth)
				return i;
			continue;
		}
		if (!depth && strchr(",]} \t\r", c) && c)
			return i;
		if (c == '{' || c == '[')
			depth++;
		if ((c == '}' || c == ']') && !--depth)
			return i + 1;
		i++;
	}
	return 0;
}

/* *@at and *@len get the raw value of member @key. */
static bool peek(const char *head, size_t n, const char *key, size_t *at,
		 size_t *len)
{
	size_t i = skip_ws(head, 0, n), want_len = strlen(key);

	if (i >= n || head[i] != '{')
		return false;
	for (i++;;) {
		size_t start = skip_ws(head, i, n), end, value;

		if (start >= n || head[start] != '"')
			return false;
		end = string_end(head, start, n);
		value = end ? skip_ws(head, end, n) : n;
		if (value >= n || head[value] != ':')
			return false;
		value = skip_ws(head, value + 1, n);
		i = value_end(head, value, n);
		if (!i)
			return false;
		if (end - start - 2 == want_len &&
		    memcmp(head + start + 1, key, want_len) == 0) {
			*at = value;
			*len = i - value;
			return true;
		}
		i = skip_ws(head, i, n);
		if (i >= n || head[i] != ',')
			return false;
		i++;
	}
}

bool zb_med_peek_string(const char *head, size_t n, const char *key, char *out,
			size_t size)
{
	size_t at, len;

	if (!peek(head, n, key, &at, &len) || len < 2 || head[at] != '"' ||
	    len - 2 >= size || memchr(head + at, '\\', len) ||
	    memchr(head + at, '\0', len) ||
	    zb_utf8_check(head + at, len) != len)
		return false;
	memcpy(out, head + at + 1, len - 2);
	out[len - 2] = '\0';
	return true;
}
