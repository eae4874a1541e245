/* test_mediator_bounds.c - what strangers could make large, deep, many or
 * fast; and rules over the whole table of frames. */
#include "transcript.h"

#include "cleanup.h"
#include "frame.h"
#include "json_scan.h"
#include "proto.h"
#include "text.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ALL                                                                    \
	"\"commands\":true,\"tools\":true,\"deferred\":true,"                  \
	"\"panels\":\"any\",\"notify\":true,\"prompt\":true,\"insert\":true,"  \
	"\"submit\":true,\"slash\":[\"help\"],\"call_tool\":[\"read\"],"       \
	"\"events\":[\"turn_end\"],\"event_content\":true,"                    \
	"\"intercept\":{\"tool_call\":[\"block\",\"modify:t\"],"               \
	"\"turn_start\":[\"block\"]}"

struct rig {
	struct zb_plan plan;
	struct zb_mediator *m;
	struct zb_med_out out;
};

static void start(struct rig *r, const char *limits, bool hello)
{
	zb_auto(free) char *scope =
		zb_strf("{\"zotbox\":1,\"protocol\":{" ALL "},\"limits\":{%s}}",
			limits);
	struct zb_mediator_config cfg = {.plan = &r->plan};

	*r = (struct rig){0};
	r->plan = zb_transcript_plan(scope);
	assert_int_equal(zb_mediator_new(&r->m, &cfg, NULL), 0);
	if (hello)
		assert_int_equal(zb_mediator_from_ext(r->m, 0,
						      "{\"type\":\"hello\"}",
						      16, &r->out),
				 0);
}

static void stop(struct rig *r)
{
	zb_mediator_free(r->m);
	zb_med_out_done(&r->out);
	zb_scope_done(&r->plan.scope);
	free(r->plan.name);
}

/* @line in memory of its own size: a byte too many is seen. */
static void ext_bytes(struct rig *r, int64_t now, const char *line, size_t len)
{
	char *exact = malloc(len ? len : 1);

	assert_non_null(exact);
	memcpy(exact, line, len);
	assert_int_equal(zb_mediator_from_ext(r->m, now, exact, len, &r->out),
			 0);
	free(exact);
}

static void ext(struct rig *r, const char *line)
{
	ext_bytes(r, 0, line, strlen(line));
}

static void host(struct rig *r, const char *line)
{
	assert_int_equal(
		zb_mediator_from_host(r->m, 0, line, strlen(line), &r->out), 0);
	assert_int_equal(r->out.verdict, ZB_MED_PASS);
}

static void repeat(struct zb_buf *b, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		zb_buf_adds(b, s);
}

static void logged(const struct rig *r, const char *text)
{
	assert_int_equal(r->out.log.n, 1);
	if (!strstr(r->out.log.v[0], text))
		fail_msg("\"%s\" is not in \"%s\"", text, r->out.log.v[0]);
}

/* ---- length ---- */

static void frame_bytes_is_a_limit(void **state)
{
	struct rig r;
	struct zb_buf b = {0};

	(void)state;
	start(&r, "\"frame_bytes\":1024", true);
	zb_buf_adds(&b, "{\"type\":\"notify\",\"message\":\"");
	repeat(&b, "x", 1024 - b.len - 2);
	zb_buf_adds(&b, "\"}");
	assert_int_equal(b.len, 1024);
	ext(&r, b.data);
	assert_int_equal(r.out.verdict, ZB_MED_PASS);
	zb_buf_addc(&b, ' ');
	ext(&r, b.data);
	assert_int_equal(r.out.verdict, ZB_MED_DROP);
	assert_int_equal(r.out.n_denials, 1);
	assert_int_equal(r.out.denials[0].op, ZB_OP_LIMIT);
	assert_string_equal(r.out.denials[0].detail, "frame_bytes");
	assert_string_equal(r.out.denials[0].target, "notify");
	assert_string_equal(r.out.denials[0].grant_key, "limits.frame_bytes");
	assert_string_equal(r.out.denials[0].grant_value, "4194303");
	logged(&r, "line of 1025 bytes is longer than 1024; dropped");
	zb_buf_done(&b);
	stop(&r);
}

/* Nobody can grant more than the host's reader takes. */
static void the_hosts_reader_is_a_limit(void **state)
{
	struct rig r;
	struct zb_buf b = {0};

	(void)state;
	start(&r, "", true);
	zb_buf_adds(&b, "{\"type\":\"notify\",\"message\":\"");
	repeat(&b, "x", ZB_FRAME_MAX - b.len - 1);
	zb_buf_adds(&b, "\"}");
	assert_int_equal(b.len, ZB_FRAME_MAX + 1);
	ext(&r, b.data);
	assert_int_equal(r.out.verdict, ZB_MED_DROP);
	assert_int_equal(r.out.n_denials, 1);
	assert_null(r.out.denials[0].grant_key);
	assert_non_null(r.out.denials[0].why_not);
	zb_buf_done(&b);
	stop(&r);
}

static void too_long(struct rig *r, const char *head, uint64_t total)
{
	assert_int_equal(zb_mediator_too_long(r->m, 0, head, strlen(head),
					      total, &r->out),
			 0);
	assert_int_equal(r->out.n_denials, 1);
}

static void an_over_long_reply_is_answered(void **state)
{
	struct rig r;

	(void)state;
	start(&r, "", true);
	host(&r, "{\"type\":\"tool_call\",\"id\":\"a\",\"name\":\"t\"}");
	host(&r, "{\"type\":\"tool_call\",\"id\":\"b\",\"name\":\"t\"}");
	/* the id stands before the text */
	too_long(&r,
		 "{ \"x\" : [ {\"id\":\"b\"}, \"\\\"}\" ] , \"id\" : \"a\","
		 "\"type\":\"tool_result\",\"content\":[{\"text\":\"xxxx",
		 5000000);
	assert_string_equal(r.out.id, "a");
	assert_true(r.out.is_reply);
	assert_string_equal(
		zb_buf_str(&r.out.also_upstream),
		"{\"type\":\"tool_result\",\"id\":\"a\",\"content\":[{"
		"\"type\":\"text\",\"text\":\"zotbox: extension weather: line "
		"of 5000000 bytes is longer than 4194303\"}],\"is_error\":"
		"true}");
	/* once */
	too_long(&r, "{\"id\":\"a\",\"type\":\"tool_result\",\"c", 5000000);
	assert_int_equal(r.out.also_upstream.len, 0);
	/* the id stands behind: the only open one is meant */
	too_long(&r, "{\"type\":\"tool_result\",\"content\":[{\"te", 5000000);
	assert_string_equal(r.out.id, "b");
	assert_true(r.out.also_upstream.len > 0);
	/* nothing is open any more */
	too_long(&r, "{\"type\":\"tool_result\",\"content\":[{\"te", 5000000);
	assert_int_equal(r.out.also_upstream.len, 0);
	stop(&r);
}

static void an_over_long_reply_with_two_open(void **state)
{
	struct rig r;

	(void)state;
	start(&r, "", true);
	host(&r, "{\"type\":\"command_invoked\",\"id\":\"a\",\"name\":\"t\"}");
	host(&r, "{\"type\":\"command_invoked\",\"id\":\"b\",\"name\":\"t\"}");
	host(&r, "{\"type\":\"tool_call\",\"id\":\"c\",\"name\":\"t\"}");
	too_long(&r, "{\"type\":\"command_response\",\"prompt\":\"x", 5000000);
	assert_int_equal(r.out.also_upstream.len, 0);
	too_long(&r, "{\"type\":\"command_response\",\"id\":7,\"prompt\":\"x",
		 5000000);
	assert_int_equal(r.out.also_upstream.len, 0);
	too_long(&r,
		 "{\"type\":\"command_response\",\"id\":\"c\",\"prompt\":\"x",
		 5000000);
	assert_int_equal(r.out.also_upstream.len, 0);
	too_long(&r,
		 "{\"type\":\"command_response\",\"id\":\"b\",\"prompt\":\"x",
		 5000000);
	assert_true(strstr(zb_buf_str(&r.out.also_upstream),
			   "\"id\":\"b\",\"action\":\"noop\",\"error\":") !=
		    NULL);
	/* the extension's own call is refused to the extension */
	too_long(&r, "{\"type\":\"call_tool\",\"id\":\"o\",\"args\":{\"x",
		 5000000);
	assert_int_equal(r.out.verdict, ZB_MED_REPLY);
	assert_int_equal(r.out.also_upstream.len, 0);
	stop(&r);
}

static void heads_that_are_no_frames(void **state)
{
	static const char *const heads[] = {
		"",
		"{",
		"{\"",
		"{\"type",
		"{\"type\"",
		"{\"type\":",
		"[[[[",
		"{\"type\":\"x\\",
		"{\"a\":{\"b\":[\"",
		"{\"a\":1,,",
		"{}}}}",
		"{\"type\":tool_result,\"id\":\"a\"",
		"\"",
		"{\"a\":]]]]",
		"{\"type\":\"tool_result\"\"id\":\"a\"",
		"{:::",
		"}{",
		"AAAA",
	};
	struct rig r;

	(void)state;
	start(&r, "", true);
	for (size_t i = 0; i < ZB_ARRAY_LEN(heads); i++) {
		size_t n = strlen(heads[i]);
		char *exact = malloc(n + 1);

		memcpy(exact, heads[i], n);
		assert_int_equal(zb_mediator_too_long(r.m, 0, exact, n,
						      1u << 23, &r.out),
				 0);
		assert_int_equal(r.out.verdict, ZB_MED_DROP);
		assert_int_equal(r.out.also_upstream.len, 0);
		free(exact);
	}
	stop(&r);
	/* and as the very first line */
	start(&r, "", false);
	assert_int_equal(
		zb_mediator_too_long(r.m, 0, "AAA", 3, 1u << 23, &r.out), 0);
	assert_int_equal(r.out.verdict, ZB_MED_KILL);
	stop(&r);
}

/* Through the framer, as bytes come: the tail of a line that was too long is
 * no frame, and what follows is heard. */
static void the_tail_of_a_dropped_line(void **state)
{
	struct rig r;
	struct zb_buf b = {.max = 8u << 20};
	struct zb_framer f;
	struct zb_line line;
	unsigned notes = 0, long_lines = 0;

	(void)state;
	start(&r, "", true);
	repeat(&b, "A", 4u << 20);
	zb_buf_adds(&b, "{\"type\":\"submit\",\"text\":\"do evil\"}\n"
			"{\"type\":\"notify\",\"message\":\"after\"}\n");
	zb_framer_init(&f, ZB_FRAME_MAX);
	for (size_t i = 0; i < b.len; i += 60000) {
		size_t n = b.len - i < 60000 ? b.len - i : 60000;

		zb_framer_feed(&f, b.data + i, n);
		for (;;) {
			zb_framer_next(&f, &line);
			if (line.kind == ZB_LINE_NONE)
				break;
			if (line.kind == ZB_LINE_TOO_LONG) {
				zb_mediator_too_long(r.m, 0, line.text,
						     line.len, line.total,
						     &r.out);
				assert_int_equal(r.out.n_denials, 1);
				assert_int_equal(r.out.verdict, ZB_MED_DROP);
				long_lines++;
				continue;
			}
			ext_bytes(&r, 0, line.text, line.len);
			assert_string_equal(r.out.type, "notify");
			notes += r.out.verdict == ZB_MED_PASS;
		}
	}
	assert_int_equal(long_lines, 1);
	assert_int_equal(notes, 1);
	zb_framer_done(&f);
	zb_buf_done(&b);
	stop(&r);
}

/* Cleaning makes hidden characters visible, and so the line longer. */
static void cleaning_does_not_outgrow_the_host(void **state)
{
	struct rig r;
	struct zb_buf b = {.max = 8u << 20};

	(void)state;
	start(&r, "", true);
	host(&r, "{\"type\":\"tool_call\",\"id\":\"a\",\"name\":\"t\"}");
	zb_buf_adds(&b, "{\"type\":\"tool_result\",\"id\":\"a\",\"content\":[{"
			"\"type\":\"text\",\"text\":\"");
	repeat(&b, "\xe2\x80\x8b", 1000000);
	zb_buf_adds(&b, "\"}]}");
	ext(&r, b.data);
	assert_int_equal(r.out.verdict, ZB_MED_DROP);
	assert_int_equal(r.out.bytes.len, 0);
	assert_non_null(
		strstr(zb_buf_str(&r.out.also_upstream), "after cleaning"));
	zb_buf_done(&b);
	stop(&r);
}

/* What people see is cut short, at a whole character and a whole colour. */
static void shown_text_is_trimmed(void **state)
{
	struct rig r;
	struct zb_buf b = {0};
	struct zb_json j = {0};
	uint32_t text;

	(void)state;
	start(&r, "", true);
	zb_buf_adds(&b, "{\"type\":\"notify\",\"message\":\"");
	repeat(&b, "\xe6\xbc\xa2", 30000);
	zb_buf_adds(&b, "\"}");
	ext(&r, b.data);
	assert_int_equal(r.out.verdict, ZB_MED_CUT);
	assert_int_equal(
		zb_json_scan(&j, r.out.bytes.data, r.out.bytes.len, NULL, NULL),
		0);
	text = zb_json_get(&j, 0, "message");
	assert_in_range(j.tok[text].end - j.tok[text].start, 65000, 65545);

	zb_buf_clear(&b);
	zb_buf_adds(&b, "{\"type\":\"panel_render\",\"panel_id\":\"p\","
			"\"title\":\"");
	repeat(&b, "x", 2045);
	zb_buf_adds(&b, "\\u001b[31mred\"}");
	ext(&r, "{\"type\":\"open_panel\",\"panel\":{\"id\":\"p\"}}");
	ext(&r, b.data);
	assert_int_equal(r.out.verdict, ZB_MED_CUT);
	/* half a colour would swallow what comes after it */
	assert_null(strstr(r.out.bytes.data, "u001b"));
	assert_non_null(strstr(r.out.bytes.data, "xxx\xe2\x80\xa6\"}"));
	zb_json_done(&j);
	zb_buf_done(&b);
	stop(&r);
}

/* Wherever it stands in a text, what a terminal acts on is taken out; and what
 * looks like it only at a glance is left. */
static void hazards_at_every_offset(void **state)
{
	static const struct {
		const char *text;
		enum zb_med_verdict verdict;
	} rows[] = {
		{"\x7f", ZB_MED_CUT},	   {"\\u001bc", ZB_MED_CUT},
		{"\xc2\x9b", ZB_MED_CUT},  {"\xe2\x80\xae", ZB_MED_CUT},
		{"~", ZB_MED_PASS},	   {"\\n", ZB_MED_PASS},
		{"\xc3\xa9", ZB_MED_PASS},
	};
	struct zb_buf b = {0};
	struct rig r;

	(void)state;
	start(&r, "\"frames_per_second\":null", true);
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++)
		for (size_t at = 0; at < 200; at++) {
			zb_buf_clear(&b);
			zb_buf_adds(&b, "{\"type\":\"notify\","
					"\"message\":\"");
			repeat(&b, "x", at);
			zb_buf_adds(&b, rows[i].text);
			repeat(&b, "y", 200 - at);
			zb_buf_adds(&b, "\"}");
			ext(&r, b.data);
			assert_int_equal(r.out.verdict, rows[i].verdict);
			if (r.out.verdict == ZB_MED_CUT)
				assert_null(
					strstr(r.out.bytes.data, rows[i].text));
		}
	zb_buf_done(&b);
	stop(&r);
}

/* What the host acts on is refused instead: half a prompt is another prompt. */
static void acting_text_is_refused(void **state)
{
	struct rig r;
	struct zb_buf b = {.max = 8u << 20};

	(void)state;
	start(&r, "", true);
	zb_buf_adds(&b, "{\"type\":\"submit\",\"text\":\"");
	repeat(&b, "x", 2000000);
	zb_buf_adds(&b, "\"}");
	ext(&r, b.data);
	assert_int_equal(r.out.verdict, ZB_MED_DROP);
	logged(&r, "\"text\" is longer than 262144 bytes");
	zb_buf_clear(&b);
	zb_buf_adds(&b, "{\"type\":\"register_tool\",\"name\":\"t\",\"schema\":"
			"{\"type\":\"object\",\"description\":\"");
	repeat(&b, "x", 2000000);
	zb_buf_adds(&b, "\"}}");
	ext(&r, b.data);
	assert_int_equal(r.out.verdict, ZB_MED_DROP);
	logged(&r, "\"schema\" is longer than 65536 bytes");
	/* six bytes of escape are one byte of text */
	zb_buf_clear(&b);
	zb_buf_adds(&b, "{\"type\":\"submit\",\"text\":\"");
	repeat(&b, "\\u0078", 262144);
	zb_buf_adds(&b, "\"}");
	ext(&r, b.data);
	assert_int_equal(r.out.verdict, ZB_MED_PASS);
	zb_buf_done(&b);
	stop(&r);
}

static void panels_have_a_thousand_lines(void **state)
{
	struct rig r;
	struct zb_buf b = {0};
	struct zb_json j = {0};

	(void)state;
	start(&r, "", true);
	ext(&r, "{\"type\":\"open_panel\",\"panel\":{\"id\":\"p\"}}");
	zb_buf_adds(&b, "{\"type\":\"panel_render\",\"lines\":[\"l\"");
	repeat(&b, ", \"l\"", 5000);
	zb_buf_adds(&b, "],\"panel_id\":\"p\"}");
	ext(&r, b.data);
	assert_int_equal(r.out.verdict, ZB_MED_CUT);
	logged(&r, "5001 lines in a panel; those after 1000 are cut");
	assert_int_equal(
		zb_json_scan(&j, r.out.bytes.data, r.out.bytes.len, NULL, NULL),
		0);
	assert_int_equal(j.tok[zb_json_get(&j, 0, "lines")].size, 1000);
	zb_buf_clear(&b);
	zb_buf_adds(&b, "{\"type\":\"panel_render\",\"panel_id\":\"p\","
			"\"lines\":[\"l\"");
	repeat(&b, ",\"l\"", 20000);
	zb_buf_adds(&b, "]}");
	ext(&r, b.data);
	assert_int_equal(r.out.verdict, ZB_MED_DROP);
	zb_json_done(&j);
	zb_buf_done(&b);
	stop(&r);
}

/* ---- depth, bytes ---- */

static void depth_is_bounded(void **state)
{
	static const size_t depths[] = {300, 10000, 1000000};
	struct rig r;
	struct zb_buf b = {.max = 8u << 20};

	(void)state;
	start(&r, "", true);
	for (size_t i = 0; i < ZB_ARRAY_LEN(depths); i++) {
		zb_buf_clear(&b);
		zb_buf_adds(&b,
			    "{\"type\":\"notify\",\"message\":\"x\",\"z\":");
		repeat(&b, "[", depths[i]);
		repeat(&b, "]", depths[i]);
		zb_buf_addc(&b, '}');
		ext(&r, b.data);
		assert_int_equal(r.out.verdict, ZB_MED_DROP);
		logged(&r, "JSON nesting deeper than 256 at byte");
	}
	zb_buf_clear(&b);
	repeat(&b, "{\"a\":", 100000);
	ext(&r, b.data);
	assert_int_equal(r.out.verdict, ZB_MED_DROP);
	logged(&r, "nesting deeper than 256");
	ext(&r, "{\"type\":\"notify\",\"message\":\"x\"}");
	assert_int_equal(r.out.verdict, ZB_MED_PASS);
	zb_buf_done(&b);
	stop(&r);
}

static void bytes_that_are_no_text(void **state)
{
	static const struct {
		const char *message;
		size_t len, at;
	} bad[] = {
		{"\xff\xfe", 2, 0},	{"a\xc0\xaf", 3, 1},
		{"\xed\xa0\x80", 3, 0}, {"ab\xf4\x90\x80\x80", 6, 2},
		{"\xe2\x80", 2, 0},
	};
	struct rig r;
	struct zb_buf b = {0};
	char want[80];

	(void)state;
	start(&r, "", true);
	for (size_t i = 0; i < ZB_ARRAY_LEN(bad); i++) {
		zb_buf_clear(&b);
		zb_buf_adds(&b, "{\"type\":\"notify\",\"message\":\"");
		snprintf(want, sizeof(want),
			 "invalid UTF-8 at byte %zu of line %zu; line dropped",
			 b.len + bad[i].at + 1, i + 2);
		zb_buf_add(&b, bad[i].message, bad[i].len);
		zb_buf_adds(&b, "\"}");
		ext_bytes(&r, 0, b.data, b.len);
		assert_int_equal(r.out.verdict, ZB_MED_DROP);
		assert_true(r.out.malformed);
		logged(&r, want);
		assert_int_equal(
			zb_utf8_check(r.out.log.v[0], strlen(r.out.log.v[0])),
			strlen(r.out.log.v[0]));
	}
	/* raw control characters */
	ext_bytes(&r, 0, "{\"type\":\"notify\",\"message\":\"a\0b\"}", 33);
	assert_int_equal(r.out.verdict, ZB_MED_DROP);
	logged(&r, "skipped line that is not a frame");
	ext_bytes(&r, 0, "\0", 1);
	assert_int_equal(r.out.verdict, ZB_MED_DROP);
	zb_buf_done(&b);
	stop(&r);
}

static void many_members_and_elements(void **state)
{
	struct rig r;
	struct zb_buf b = {.max = 8u << 20};

	(void)state;
	start(&r, "", true);
	zb_buf_adds(&b, "{\"type\":\"notify\"");
	for (int i = 0; i < 10000; i++)
		zb_buf_addf(&b, ",\"k%d\":0", i);
	zb_buf_addc(&b, '}');
	ext(&r, b.data);
	assert_int_equal(r.out.verdict, ZB_MED_DROP);
	logged(&r, "more than 4096 values");
	zb_buf_clear(&b);
	zb_buf_adds(&b, "{\"type\":\"subscribe\",\"events\":[\"turn_end\"");
	repeat(&b, ",\"turn_end\"", 256);
	zb_buf_adds(&b, "]}");
	ext(&r, b.data);
	assert_int_equal(r.out.verdict, ZB_MED_DROP);
	logged(&r, "more than 256 elements");
	host(&r, "{\"type\":\"tool_call\",\"id\":\"a\",\"name\":\"t\"}");
	zb_buf_clear(&b);
	zb_buf_adds(&b, "{\"type\":\"tool_result\",\"id\":\"a\",\"content\":[{"
			"\"type\":\"text\"}");
	repeat(&b, ",{\"type\":\"text\"}", 1024);
	zb_buf_adds(&b, "]}");
	ext(&r, b.data);
	assert_int_equal(r.out.verdict, ZB_MED_DROP);
	assert_non_null(strstr(r.out.also_upstream.data, "1024 elements"));
	zb_buf_done(&b);
	stop(&r);
}

/* ---- numbers of things ---- */

static void registrations_are_bounded(void **state)
{
	struct rig r;
	char line[128];

	(void)state;
	start(&r, "", true);
	for (int i = 0; i <= ZB_PROTO_TOOLS; i++) {
		snprintf(line, sizeof(line),
			 "{\"type\":\"register_tool\",\"name\":\"t%d\"}", i);
		ext(&r, line);
		assert_int_equal(r.out.verdict, i < ZB_PROTO_TOOLS
							? ZB_MED_PASS
							: ZB_MED_DROP);
	}
	logged(&r, "128 tools are the limit");
	assert_int_equal(r.out.n_denials, 1);
	ext(&r, "{\"type\":\"register_tool\",\"name\":\"t5\"}");
	assert_int_equal(r.out.verdict, ZB_MED_PASS);
	assert_int_equal(zb_mediator_tools(r.m)->n, ZB_PROTO_TOOLS);
	for (int i = 0; i <= ZB_PROTO_COMMANDS; i++) {
		snprintf(line, sizeof(line),
			 "{\"type\":\"register_command\",\"name\":\"c%d\"}", i);
		ext(&r, line);
		assert_int_equal(r.out.verdict, i < ZB_PROTO_COMMANDS
							? ZB_MED_PASS
							: ZB_MED_DROP);
	}
	logged(&r, "512 are the limit");
	assert_int_equal(zb_mediator_commands(r.m)->n, ZB_PROTO_COMMANDS);
	stop(&r);
}

static void panels_are_forgotten_at_last(void **state)
{
	struct rig r;
	char line[128];

	(void)state;
	start(&r, "", true);
	for (int i = 0; i < 200; i++) {
		snprintf(line, sizeof(line),
			 "{\"type\":\"open_panel\",\"panel\":{\"id\":\"%d\"}}",
			 i);
		ext(&r, line);
		assert_int_equal(r.out.verdict, ZB_MED_PASS);
		snprintf(line, sizeof(line),
			 "{\"type\":\"panel_render\",\"panel_id\":\"%d\"}", i);
		ext(&r, line);
		assert_int_equal(r.out.verdict, ZB_MED_PASS);
	}
	assert_true(zb_mediator_panel_open(r.m));
	ext(&r, "{\"type\":\"panel_close\",\"panel_id\":\"150\"}");
	assert_int_equal(r.out.verdict, ZB_MED_PASS);
	assert_true(zb_mediator_panel_open(r.m));
	ext(&r, "{\"type\":\"panel_close\",\"panel_id\":\"1\"}");
	assert_int_equal(r.out.verdict, ZB_MED_DROP);
	ext(&r, "{\"type\":\"panel_close\",\"panel_id\":\"199\"}");
	assert_int_equal(r.out.verdict, ZB_MED_PASS);
	assert_false(zb_mediator_panel_open(r.m));
	stop(&r);
}

static void open_calls_are_told_and_bounded(void **state)
{
	struct rig r;
	static const char *const open[][2] = {{"a", "tool_call"},
					      {"b", "command_invoked"},
					      {"c", "event_intercept"}};
	struct zb_med_call c;
	char line[128];

	(void)state;
	start(&r, "", true);
	host(&r, "{\"type\":\"tool_call\",\"id\":\"a\",\"name\":\"t\"}");
	ext(&r, "{\"type\":\"call_tool\",\"id\":\"o\",\"name\":\"read\"}");
	assert_int_equal(r.out.verdict, ZB_MED_PASS);
	host(&r, "{\"type\":\"command_invoked\",\"id\":\"b\",\"name\":\"x\"}");
	host(&r, "{\"type\":\"event_intercept\",\"id\":\"c\",\"event\":"
		 "\"tool_call\",\"tool_name\":\"bash\"}");
	for (size_t i = 0; i < ZB_ARRAY_LEN(open); i++) {
		assert_true(zb_mediator_open_call(r.m, i, &c));
		assert_string_equal(c.id, open[i][0]);
		assert_string_equal(c.type, open[i][1]);
	}
	assert_string_equal(c.event, "tool_call");
	assert_string_equal(c.name, "bash");
	assert_false(zb_mediator_open_call(r.m, 3, &c));
	zb_mediator_expire(r.m, 0, "b");
	assert_true(zb_mediator_open_call(r.m, 1, &c));
	assert_string_equal(c.id, "c");
	for (int i = 0; i < 4093; i++) {
		snprintf(line, sizeof(line),
			 "{\"type\":\"tool_call\",\"id\":\"n%d\"}", i);
		host(&r, line);
	}
	assert_int_equal(
		zb_mediator_from_host(r.m, 0,
				      "{\"type\":\"tool_call\",\"id\":\"z\"}",
				      31, &r.out),
		0);
	assert_int_equal(r.out.verdict, ZB_MED_REPLY);
	stop(&r);
}

static void own_calls_are_bounded(void **state)
{
	struct rig r;
	char line[80];

	(void)state;
	start(&r, "", true);
	for (int i = 0; i <= 64; i++) {
		snprintf(
			line, sizeof(line),
			"{\"type\":\"call_tool\",\"id\":\"%d\",\"name\":\"read\"}",
			i);
		ext(&r, line);
		assert_int_equal(r.out.verdict,
				 i < 64 ? ZB_MED_PASS : ZB_MED_REPLY);
	}
	assert_non_null(strstr(r.out.bytes.data, "too many calls are open"));
	stop(&r);
}

static void subscriptions_are_told(void **state)
{
	struct rig r;

	(void)state;
	start(&r, "", true);
	ext(&r, "{\"type\":\"subscribe\",\"events\":[\"turn_end\",\"x\","
		"\"turn_end\"],\"intercept\":[\"tool_call\",\"y\"]}");
	assert_int_equal(r.out.verdict, ZB_MED_CUT);
	assert_int_equal(zb_mediator_events(r.m)->n, 1);
	assert_true(zb_strv_has(zb_mediator_events(r.m), "turn_end"));
	assert_int_equal(zb_mediator_intercepts(r.m)->n, 1);
	assert_true(zb_strv_has(zb_mediator_intercepts(r.m), "tool_call"));
	stop(&r);
}

/* ---- rate ---- */

static const char note[] = "{\"type\":\"notify\",\"message\":\"x\"}";

static void a_flood_is_held_and_nothing_dropped(void **state)
{
	struct rig r;
	unsigned records = 0;

	(void)state;
	start(&r, "\"frames_per_second\":200", true);
	for (int i = 0; i < 4000; i++) {
		assert_int_equal(zb_mediator_hold_ms(r.m, 0), 0);
		ext(&r, note);
		assert_int_equal(r.out.verdict, ZB_MED_PASS);
		records += (unsigned)r.out.n_denials;
	}
	assert_int_equal(records, 1);
	assert_int_equal(zb_mediator_hold_ms(r.m, 0), 5);
	assert_int_equal(zb_mediator_hold_ms(r.m, 3), 2);
	assert_int_equal(zb_mediator_hold_ms(r.m, 5), 0);
	/* what was read already still passes, as a debt */
	for (int i = 0; i < 100; i++) {
		ext_bytes(&r, 5, note, sizeof(note) - 1);
		assert_int_equal(r.out.verdict, ZB_MED_PASS);
		assert_int_equal(r.out.n_denials, 0);
	}
	assert_int_equal(zb_mediator_hold_ms(r.m, 5), 500);
	assert_int_equal(zb_mediator_hold_ms(r.m, 505), 0);
	stop(&r);
}

static void the_limit_of_a_flood_is_recorded(void **state)
{
	struct rig r;
	const struct zb_denial *d = NULL;

	(void)state;
	start(&r, "\"frames_per_second\":1", true);
	for (int i = 0; i < 4000 && !d; i++) {
		/* junk and refused frames count as well */
		ext(&r, i % 3 ? i % 2 ? "junk" : "{\"type\":\"nope\"}" : " ");
		for (size_t k = 0; k < r.out.n_denials; k++)
			if (r.out.denials[k].op == ZB_OP_LIMIT)
				d = &r.out.denials[k];
	}
	assert_non_null(d);
	assert_string_equal(d->detail, "frames");
	assert_string_equal(d->grant_key, "limits.frames_per_second");
	assert_string_equal(d->grant_value, "2");
	assert_int_equal(d->by, ZB_BY_LIMIT);
	assert_int_equal(zb_mediator_hold_ms(r.m, 0), 1000);
	stop(&r);
}

static void replies_are_not_counted(void **state)
{
	struct rig r;
	char line[128];

	(void)state;
	start(&r, "\"frames_per_second\":200", true);
	for (int i = 0; i < 5000; i++) {
		snprintf(line, sizeof(line),
			 "{\"type\":\"tool_call\",\"id\":\"%d\"}", i);
		host(&r, line);
		snprintf(line, sizeof(line),
			 "{\"type\":\"tool_result\",\"id\":\"%d\"}", i);
		ext(&r, line);
		assert_int_equal(r.out.verdict, ZB_MED_PASS);
		assert_int_equal(r.out.n_denials, 0);
	}
	assert_int_equal(zb_mediator_hold_ms(r.m, 0), 0);
	stop(&r);
}

/* What only looks like a part of the protocol is. */
static void sham_replies_are_counted(void **state)
{
	static const char *const lines[] = {
		"{\"type\":\"tool_result\",\"id\":\"?\"}",
		"{\"type\":\"event_intercept_response\"}",
		"{\"type\":\"hello\"}",
		"{\"type\":\"ready\"}",
		"{\"type\":\"shutdown_ack\"}",
		"{\"type\":\"tool_result\",\"ID\":\"?\"}",
		"{\"type\":\"tool_result\",\"id\":\"?\",\"id\":1}",
		"{}",
		"",
	};
	struct rig r;

	(void)state;
	for (size_t k = 0; k < ZB_ARRAY_LEN(lines); k++) {
		start(&r, "\"frames_per_second\":200", true);
		for (int i = 0; i < 4010; i++)
			ext(&r, lines[k]);
		assert_true(zb_mediator_hold_ms(r.m, 0) > 0);
		stop(&r);
	}
}

static void refused_replies_are_counted(void **state)
{
	struct zb_plan plan = zb_transcript_plan(
		"{\"zotbox\":1,\"protocol\":{\"tools\":false},"
		"\"limits\":{\"frames_per_second\":200}}");
	struct zb_mediator_config cfg = {.plan = &plan};
	struct zb_mediator *m = NULL;
	struct zb_med_out out = {0};
	static const char line[] = "{\"type\":\"tool_result\",\"id\":\"?\"}";

	(void)state;
	assert_int_equal(zb_mediator_new(&m, &cfg, NULL), 0);
	zb_mediator_from_ext(m, 0, "{\"type\":\"hello\"}", 16, &out);
	for (int i = 0; i < 4010; i++)
		zb_mediator_from_ext(m, 0, line, sizeof(line) - 1, &out);
	assert_true(zb_mediator_hold_ms(m, 0) > 0);
	zb_mediator_free(m);
	zb_med_out_done(&out);
	zb_scope_done(&plan.scope);
	free(plan.name);
}

/* ---- over the whole table ---- */

/* A frame of @row that has nothing but @key. */
static void one_key(struct zb_buf *b, const struct zb_frame_row *row,
		    const char *key)
{
	zb_buf_clear(b);
	zb_buf_addf(b, "{\"type\":\"%s\",", row->type);
	zb_json_quote(b, key, strlen(key));
	zb_buf_adds(b, ":true}");
}

/* Every other way to write a name that Go takes for it. */
static void other_spelling(struct zb_buf *out, const char *name, size_t at)
{
	for (size_t i = 0; name[i]; i++) {
		if (i != at)
			zb_buf_addc(out, name[i]);
		else if (name[i] == 's')
			zb_buf_adds(out, "\xc5\xbf");
		else if (name[i] == 'k')
			zb_buf_adds(out, "\xe2\x84\xaa");
		else
			zb_buf_addc(out, (char)(name[i] & ~0x20));
	}
}

static void refused_whole(struct rig *r, const char *line)
{
	ext(r, line);
	if (r->out.verdict != ZB_MED_DROP || r->out.n_denials < 1 ||
	    r->out.also_upstream.len)
		fail_msg("passed: %s", line);
	assert_null(r->out.denials[0].grant_key);
}

static void no_key_is_folded(void **state)
{
	struct rig r;
	struct zb_buf b = {0}, key = {0};
	unsigned tried = 0;

	(void)state;
	start(&r, "\"frames_per_second\":100000", true);
	host(&r, "{\"type\":\"tool_call\",\"id\":\"a\",\"name\":\"t\"}");
	for (int id = 0; id < ZB_FRAME_COUNT; id++) {
		const struct zb_frame_row *row =
			zb_proto_row_of((enum zb_frame_id)id);

		for (unsigned f = 0;
		     row->dir == ZB_FROM_EXT && f < row->shape.n; f++) {
			const char *name = row->shape.fields[f].name;

			for (size_t at = 0; name[at]; at++) {
				if (name[at] == '_')
					continue;
				zb_buf_clear(&key);
				other_spelling(&key, name, at);
				one_key(&b, row, key.data);
				refused_whole(&r, b.data);
				tried++;
			}
		}
	}
	assert_true(tried > 300);
	zb_buf_done(&b);
	zb_buf_done(&key);
	stop(&r);
}

/* Whatever an unknown key brings along, it does not reach the host. */
static void no_unknown_key_passes(void **state)
{
	struct rig r;
	struct zb_buf b = {0};

	(void)state;
	start(&r, "", true);
	for (int id = 0; id < ZB_FRAME_COUNT; id++) {
		const struct zb_frame_row *row =
			zb_proto_row_of((enum zb_frame_id)id);

		if (row->dir != ZB_FROM_EXT)
			continue;
		one_key(&b, row, "tomorrow");
		ext(&r, b.data);
		assert_int_not_equal(r.out.verdict, ZB_MED_PASS);
		if (r.out.verdict == ZB_MED_CUT)
			assert_null(strstr(r.out.bytes.data, "tomorrow"));
	}
	zb_buf_done(&b);
	stop(&r);
}

/* Before hello nothing passes, whatever its type. */
static void nothing_before_hello(void **state)
{
	struct rig r;
	char line[80];

	(void)state;
	for (int id = 0; id < ZB_FRAME_COUNT; id++) {
		const struct zb_frame_row *row =
			zb_proto_row_of((enum zb_frame_id)id);

		if (id == ZB_FRAME_HELLO)
			continue;
		start(&r, "", false);
		snprintf(line, sizeof(line), "{\"type\":\"%s\",\"name\":\"x\"}",
			 row->type);
		ext(&r, line);
		assert_int_equal(r.out.verdict, ZB_MED_KILL);
		assert_int_equal(zb_mediator_commands(r.m)->n, 0);
		assert_int_equal(zb_mediator_tools(r.m)->n, 0);
		stop(&r);
	}
}

/* The reason quotes the line, escaped, and not more than is good to read. */
static void the_reason_is_bounded(void **state)
{
	struct rig r;
	struct zb_buf b = {0};

	(void)state;
	start(&r, "", false);
	repeat(&b, "\x1b", 5000);
	ext(&r, b.data);
	assert_int_equal(r.out.verdict, ZB_MED_KILL);
	assert_null(strchr(r.out.reason, 0x1b));
	assert_true(strlen(r.out.reason) < 300);
	assert_non_null(strstr(r.out.reason, "write logs to stderr"));
	zb_buf_done(&b);
	stop(&r);
}

/* A host may say which tools of its own there are besides the known ones. */
static void more_builtin_tools(void **state)
{
	struct zb_plan plan = zb_transcript_plan(
		"{\"zotbox\":1,\"protocol\":{\"tools\":true}}");
	struct zb_strv tools = {0};
	struct zb_mediator_config cfg = {.plan = &plan,
					 .builtin_tools = &tools};
	struct zb_mediator *m = NULL;
	struct zb_med_out out = {0};
	static const char tool[] =
		"{\"type\":\"register_tool\",\"name\":\"GREP\"}";

	(void)state;
	zb_strv_add(&tools, "grep");
	assert_int_equal(zb_mediator_new(&m, &cfg, NULL), 0);
	zb_mediator_from_ext(m, 0, "{\"type\":\"hello\"}", 16, &out);
	zb_mediator_from_ext(m, 0, tool, sizeof(tool) - 1, &out);
	assert_int_equal(out.verdict, ZB_MED_DROP);
	assert_int_equal(out.n_denials, 1);
	zb_mediator_free(m);
	zb_med_out_done(&out);
	zb_scope_done(&plan.scope);
	free(plan.name);
	zb_strv_done(&tools);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_bytes_is_a_limit),
		cmocka_unit_test(the_hosts_reader_is_a_limit),
		cmocka_unit_test(an_over_long_reply_is_answered),
		cmocka_unit_test(an_over_long_reply_with_two_open),
		cmocka_unit_test(heads_that_are_no_frames),
		cmocka_unit_test(the_tail_of_a_dropped_line),
		cmocka_unit_test(cleaning_does_not_outgrow_the_host),
		cmocka_unit_test(shown_text_is_trimmed),
		cmocka_unit_test(hazards_at_every_offset),
		cmocka_unit_test(acting_text_is_refused),
		cmocka_unit_test(panels_have_a_thousand_lines),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(bytes_that_are_no_text),
		cmocka_unit_test(many_members_and_elements),
		cmocka_unit_test(registrations_are_bounded),
		cmocka_unit_test(panels_are_forgotten_at_last),
		cmocka_unit_test(open_calls_are_told_and_bounded),
		cmocka_unit_test(own_calls_are_bounded),
		cmocka_unit_test(subscriptions_are_told),
		cmocka_unit_test(a_flood_is_held_and_nothing_dropped),
		cmocka_unit_test(the_limit_of_a_flood_is_recorded),
		cmocka_unit_test(replies_are_not_counted),
		cmocka_unit_test(sham_replies_are_counted),
		cmocka_unit_test(refused_replies_are_counted),
		cmocka_unit_test(no_key_is_folded),
		cmocka_unit_test(no_unknown_key_passes),
		cmocka_unit_test(nothing_before_hello),
		cmocka_unit_test(the_reason_is_bounded),
		cmocka_unit_test(more_builtin_tools),
	};

	return cmocka_run_group_tests_name("mediator bounds", tests, NULL,
					   NULL);
}
