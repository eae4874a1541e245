/* fuzz_json.c - the strict JSON reader: its index is a tree over the text, and
 * what it takes it takes at every index depth. */
#include "check.h"
#include "cleanup.h"
#include "json_scan.h"

#include <string.h>

/* A string read, quoted and read again is the same string. */
static void check_string(const struct zb_json *j, uint32_t i)
{
	struct zb_buf s = {0}, q = {0}, back = {0};
	struct zb_json one = {0};

	CHECK(!zb_json_string(j, i, &s));
	CHECK(zb_utf8_check(zb_buf_str(&s), s.len) == s.len);
	CHECK(!zb_json_quote(&q, zb_buf_str(&s), s.len));
	CHECK(shows(q.data, q.len));
	CHECK(!zb_json_scan(&one, q.data, q.len, NULL, NULL));
	CHECK(!zb_json_string(&one, 0, &back));
	CHECK(back.len == s.len &&
	      !memcmp(zb_buf_str(&back), zb_buf_str(&s), s.len));
	zb_json_done(&one);
	zb_buf_done(&s);
	zb_buf_done(&q);
	zb_buf_done(&back);
}

static void check_token(const struct zb_json *j, uint32_t i)
{
	const struct zb_json_tok *t = &j->tok[i], *p;

	CHECK(t->start < t->end && t->end <= j->len);
	if (t->parent == ZB_JSON_NONE) {
		CHECK(!i);
	} else {
		p = &j->tok[t->parent];
		CHECK(t->parent < i && p->start < t->start && t->end < p->end);
		CHECK(t->depth == p->depth + 1);
		CHECK((p->type == ZB_JSON_OBJECT) == (t->key_end != 0));
	}
	if (t->key_end) {
		zb_auto(free) char *key = zb_json_dup_key(j, i);

		CHECK(key && zb_json_key_is(j, i, key));
		CHECK(zb_json_get(j, t->parent, key) == i);
		CHECK(j->text[t->key_start] == '"' &&
		      j->text[t->key_end - 1] == '"' && t->key_end < t->start);
	}
	if (t->type == ZB_JSON_STRING)
		check_string(j, i);
}

static void check_children(const struct zb_json *j, uint32_t i)
{
	uint32_t n = 0;

	for (uint32_t k = zb_json_first(j, i); k != ZB_JSON_NONE;
	     k = zb_json_next(j, k)) {
		CHECK(k < j->n && j->tok[k].parent == i);
		CHECK(j->tok[k].next == ZB_JSON_NONE ||
		      j->tok[k].end < j->tok[j->tok[k].next].start);
		n++;
	}
	CHECK(n == j->tok[i].size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct zb_json_limits some = {.index_depth = 1};
	struct zb_json_fault f = {0};
	struct zb_json j = {0};
	int rc = zb_json_scan(&j, text, size, NULL, &f);

	if (rc) {
		CHECK(rc == ZB_EUSAGE && !j.n);
		CHECK(f.offset <= size && f.line >= 1 && f.column >= 1);
		CHECK(shows(f.what, strlen(f.what)) && f.what[0]);
	}
	for (uint32_t i = 0; i < j.n && i < 1000; i++) {
		int64_t v;

		check_token(&j, i);
		check_children(&j, i);
		CHECK(!zb_json_int(&j, i, &v) ||
		      j.tok[i].type == ZB_JSON_NUMBER);
	}
	/* Less is asked of what lies below the index. */
	if (!rc) {
		CHECK(!zb_json_scan(&j, text, size, &some, &f));
		for (uint32_t i = 0; i < j.n && i < 1000; i++)
			CHECK(j.tok[i].depth <= 1);
	}
	some = (struct zb_json_limits){.max_depth = 3, .max_tokens = 5};
	if (!zb_json_scan(&j, text, size, &some, &f))
		CHECK(!rc && j.n <= 5);
	zb_json_done(&j);
	return 0;
}
