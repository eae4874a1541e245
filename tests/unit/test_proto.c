/* test_proto.c - the table of frames, its look-ups, and the small rules. */
#include "proto.h"

#include "calls.h"
#include "cleanup.h"
#include "splice.h"
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- the table ---- */

static void check_shape(const struct zb_shape *s)
{
	assert_true(s->n >= 1 && s->n <= ZB_SHAPE_FIELDS);
	for (unsigned i = 0; i < s->n; i++) {
		const struct zb_field *f = &s->fields[i];
		bool nested =
			f->type == ZB_FIELD_SHAPE || f->type == ZB_FIELD_BLOCKS;

		assert_int_equal(nested, f->shape != NULL);
		if (f->shape)
			check_shape(f->shape);
		/* Names are lower-case ASCII, so that any other spelling of a
		 * key is another key. */
		for (const char *c = f->name; *c; c++)
			assert_true((*c >= 'a' && *c <= 'z') || *c == '_');
		for (unsigned k = i + 1; k < s->n; k++)
			assert_false(zb_fold_equal(f->name, strlen(f->name),
						   s->fields[k].name,
						   strlen(s->fields[k].name)));
	}
}

static bool is_indexed(const struct zb_field *f)
{
	return f->type == ZB_FIELD_LINES || f->type == ZB_FIELD_NAMES ||
	       f->type == ZB_FIELD_SHAPE || f->type == ZB_FIELD_BLOCKS;
}

static void table_is_sound(void **state)
{
	(void)state;
	for (int id = 0; id < ZB_FRAME_COUNT; id++) {
		const struct zb_frame_row *row =
			zb_proto_row_of((enum zb_frame_id)id);
		unsigned nested = 0;

		assert_int_equal(row->id, id);
		assert_ptr_equal(
			zb_proto_row(row->dir, row->type, strlen(row->type)),
			row);
		assert_string_equal(row->shape.fields[0].name, "type");
		check_shape(&row->shape);
		for (unsigned i = 0; i < row->shape.n; i++)
			nested += is_indexed(&row->shape.fields[i]);
		assert_true(nested <= 3); /* ZB_MED_INNER */
		if (row->reply)
			assert_true(zb_proto_field(&row->shape, "id", 2) > 0);
	}
}

static void types_are_exact(void **state)
{
	(void)state;
	assert_null(zb_proto_row(ZB_FROM_EXT, "Hello", 5));
	assert_null(zb_proto_row(ZB_FROM_EXT, "hello\0", 6));
	assert_null(zb_proto_row(ZB_FROM_EXT, "hell", 4));
	assert_null(zb_proto_row(ZB_FROM_EXT, "", 0));
	assert_null(zb_proto_row(ZB_FROM_EXT, "shutdown", 8));
	assert_null(zb_proto_row(ZB_FROM_HOST, "submit", 6));
}

static void keys_fold_as_go_does(void **state)
{
	const struct zb_shape *s = &zb_proto_row_of(ZB_FRAME_HELLO)->shape;
	const struct zb_shape *i =
		&zb_proto_row_of(ZB_FRAME_INTERCEPT_RESPONSE)->shape;

	(void)state;
	assert_int_equal(zb_proto_field(s, "name", 4), 1);
	assert_int_equal(zb_proto_field(s, "Name", 4), -1);
	assert_int_equal(zb_proto_field(s, "nam", 3), -1);
	assert_int_equal(zb_proto_field_folded(s, "NAME", 4), 1);
	assert_int_equal(zb_proto_field_folded(s, "ver\xc5\xbfion", 8), 2);
	assert_int_equal(zb_proto_field_folded(i, "bloc\xe2\x84\xaa", 7), 2);
	assert_int_equal(zb_proto_field_folded(s, "nam\xc3\xa9", 5), -1);
}

/* ---- names ---- */

#define S(text) (text), sizeof(text) - 1

static void names(void **state)
{
	(void)state;
	assert_true(zb_tool_name_valid(S("Get_time-2")));
	assert_false(zb_tool_name_valid(S("")));
	assert_false(zb_tool_name_valid(S("a.b")));
	assert_false(zb_tool_name_valid(S("a\0b")));
	assert_false(zb_tool_name_valid(S("\xc3\xa9")));
	assert_true(zb_tool_is_builtin(S("bash")));
	assert_true(zb_tool_is_builtin(S("Swarm_Spawn")));
	assert_true(zb_tool_is_builtin(S("ba\xc5\xbfh")));
	assert_true(zb_tool_is_builtin(S("\xc5\xbf\xe2\x84\xaaill")));
	assert_false(zb_tool_is_builtin(S("bash2")));
	assert_true(zb_command_name_valid(S("uni\xc3\xa9")));
	assert_false(zb_command_name_valid(S("a\xc2\xa0"
					     "b")));
	assert_false(zb_command_name_valid(S("a\xe3\x80\x80"
					     "b")));
	assert_false(zb_command_name_valid(S("a\x1b"
					     "b")));
	assert_false(zb_command_name_valid(S("a\xe2\x80\xae"
					     "b")));
	assert_false(zb_command_name_valid(S("a/b")));
	assert_false(zb_command_name_valid(S("a\xff")));
	assert_true(zb_command_is_builtin(S("EXIT")));
	assert_false(zb_command_is_builtin(S("greet")));
}

static void slash_is(const char *text, size_t n, const char *name)
{
	struct zb_buf b = {0};

	assert_int_equal(zb_text_kind(text, n), ZB_TEXT_SLASH);
	assert_int_equal(zb_slash_name(text, n, &b), 0);
	assert_string_equal(zb_buf_str(&b), name);
	zb_buf_done(&b);
}

static void leading_marks(void **state)
{
	(void)state;
	assert_int_equal(zb_text_kind(S("")), ZB_TEXT_BLANK);
	assert_int_equal(zb_text_kind(S(" \n\xc2\x85\xe2\x80\xa8\xe3\x80\x80")),
			 ZB_TEXT_BLANK);
	assert_int_equal(zb_text_kind(S("\xc2\xa0!x")), ZB_TEXT_SHELL);
	assert_int_equal(zb_text_kind(S("x !y /z")), ZB_TEXT_PLAIN);
	slash_is(S("/Help me"), "help");
	slash_is(S("\t/skill:Deploy\xc2\xa0now"), "skill:deploy");
	slash_is(S("/ex\xc4\xb0t"), "exit"); /* U+0130 lowers to i */
	slash_is(S("/\xc5\xbf"
		   "ettings"),
		 "settings"); /* U+017F folds to s */
	slash_is(S("/"), "");
}

static void base64(void **state)
{
	(void)state;
	assert_true(zb_base64_valid(S("aGk=")));
	assert_true(zb_base64_valid(S("aA==")));
	assert_true(zb_base64_valid(S("+/+/AAAA")));
	assert_false(zb_base64_valid(S("")));
	assert_false(zb_base64_valid(S("aGk")));
	assert_false(zb_base64_valid(S("a===")));
	assert_false(zb_base64_valid(S("aG=k")));
	assert_false(zb_base64_valid(S("aG k")));
	assert_false(zb_base64_valid(S("aG\n=")));
	assert_false(zb_base64_valid(S("-_-_")));
	assert_false(zb_base64_valid(S("\xc3\xa9"
				       "aa")));
}

static void plain_event_fields(void **state)
{
	(void)state;
	assert_true(zb_event_field_plain(S("tool_id")));
	assert_true(zb_event_field_plain(S("name")));
	assert_true(zb_event_field_plain(S("stop")));
	assert_false(zb_event_field_plain(S("text")));
	assert_false(zb_event_field_plain(S("tool_args")));
	assert_false(zb_event_field_plain(S("idle")));
	assert_false(zb_event_field_plain(S("Id")));
}

/* ---- splicing: all ways to cut up to six members ---- */

static void build(struct zb_buf *out, unsigned n, unsigned keep, bool only)
{
	bool first = true;

	zb_buf_addc(out, '{');
	for (unsigned i = 0; i < n; i++) {
		if (only && !(keep >> i & 1))
			continue;
		zb_buf_addf(out, "%s\"%c\":%u", first ? "" : ",", 'a' + i, i);
		first = false;
	}
	zb_buf_addc(out, '}');
}

static void cut_members(unsigned n, unsigned keep)
{
	struct zb_buf whole = {0}, want = {0}, got = {0};
	struct zb_splice s = {0};
	struct zb_cutter c = {0};

	build(&whole, n, keep, false);
	build(&want, n, keep, true);
	for (unsigned i = 0; i < n; i++) {
		size_t start = 1 + (size_t)i * 6, end = start + 5;

		if (keep >> i & 1)
			zb_cutter_keep(&c, &s, start, end);
		else
			zb_cutter_cut(&c, start, end);
	}
	zb_cutter_end(&c, &s);
	assert_int_equal(zb_splice_apply(&s, whole.data, whole.len, &got), 0);
	assert_string_equal(zb_buf_str(&got), zb_buf_str(&want));
	zb_splice_done(&s);
	zb_buf_done(&whole);
	zb_buf_done(&want);
	zb_buf_done(&got);
}

static void cuts_leave_the_rest(void **state)
{
	(void)state;
	for (unsigned n = 0; n <= 6; n++)
		for (unsigned keep = 0; keep < 1u << n; keep++)
			cut_members(n, keep);
}

static void edits_out_of_order_fail(void **state)
{
	struct zb_splice s = {0};
	struct zb_buf out = {0};

	(void)state;
	zb_splice_add(&s, 2, 4, "xyz", 3);
	zb_splice_add(&s, 4, 4, "w", 1);
	assert_int_equal(zb_splice_apply(&s, "012345", 6, &out), 0);
	assert_string_equal(zb_buf_str(&out), "01xyzw45");
	zb_splice_add(&s, 3, 5, "", 0);
	assert_int_equal(zb_splice_apply(&s, "012345", 6, &out), ZB_ELIMIT);
	zb_splice_done(&s);
	zb_buf_done(&out);
}

/* ---- open calls ---- */

static void calls_open_and_close(void **state)
{
	struct zb_calls c = {0};
	char id[24];

	(void)state;
	assert_int_equal(zb_calls_open(&c, ZB_CALL_TOOL, "a", "", "t", 5), 0);
	assert_int_equal(zb_calls_open(&c, ZB_CALL_TOOL, "a", "", "t", 5),
			 ZB_EUSAGE);
	assert_int_equal(zb_calls_open(&c, ZB_CALL_COMMAND, "a", "", "u", 6),
			 0);
	assert_string_equal(zb_calls_find(&c, ZB_CALL_COMMAND, "a")->name, "u");
	zb_calls_close(&c, zb_calls_find(&c, ZB_CALL_TOOL, "a"),
		       ZB_CALL_ANSWERED, 9);
	assert_null(zb_calls_find(&c, ZB_CALL_TOOL, "a"));
	assert_int_equal(zb_calls_past(&c, ZB_CALL_TOOL, "a")->closed_ms, 9);
	assert_int_equal(c.count[ZB_CALL_TOOL], 0);
	assert_int_equal(c.count[ZB_CALL_COMMAND], 1);
	for (int i = 0; i < ZB_CALLS_OPEN - 1; i++) {
		snprintf(id, sizeof(id), "n%d", i);
		assert_int_equal(zb_calls_open(&c, ZB_CALL_TOOL, id, "", "", i),
				 0);
	}
	assert_int_equal(zb_calls_open(&c, ZB_CALL_TOOL, "more", "", "", 0),
			 ZB_ELIMIT);
	/* Only so many closed ones are remembered. */
	for (int i = 0; i < ZB_CALLS_CLOSED; i++) {
		snprintf(id, sizeof(id), "n%d", i);
		zb_calls_close(&c, zb_calls_find(&c, ZB_CALL_TOOL, id),
			       ZB_CALL_EXPIRED, 10);
	}
	assert_null(zb_calls_past(&c, ZB_CALL_TOOL, "a"));
	assert_non_null(zb_calls_past(&c, ZB_CALL_TOOL, "n0"));
	assert_string_equal(c.open[0].id, "a");
	assert_string_equal(c.open[1].id, "n256");
	zb_calls_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_sound),
		cmocka_unit_test(types_are_exact),
		cmocka_unit_test(keys_fold_as_go_does),
		cmocka_unit_test(names),
		cmocka_unit_test(leading_marks),
		cmocka_unit_test(base64),
		cmocka_unit_test(plain_event_fields),
		cmocka_unit_test(cuts_leave_the_rest),
		cmocka_unit_test(edits_out_of_order_fail),
		cmocka_unit_test(calls_open_and_close),
	};

	return cmocka_run_group_tests_name("proto", tests, NULL, NULL);
}
