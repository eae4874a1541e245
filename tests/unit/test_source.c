/* test_source.c - what may be a source, and clones that run nothing. */
#include "config.h"

#include "cleanup.h"
#include "source.h"
#include "tmphome.h"

static void words_that_are_no_source(void **state)
{
	static const struct {
		const char *given;
		int code;
	} rows[] = {
		{"", ZB_EUSAGE},
		{"--upload-pack=touch /tmp/m;", ZB_EUSAGE},
		{"-cprotocol.ext.allow=always", ZB_EUSAGE},
		{"-oProxyCommand=x@h:y", ZB_EUSAGE},
		{"ext::sh -c touch% /tmp/m", ZB_EPOLICY},
		{"fd::17/x", ZB_EPOLICY},
		{"ssh://-oProxyCommand=touch%20/tmp/m/x", ZB_EUSAGE},
		{"ssh://u@-oProxyCommand=x/y", ZB_EUSAGE},
		{"u@-oProxyCommand=x:y", ZB_EUSAGE},
		{"https://h/a\nb", ZB_EUSAGE},
		{"http://127.0.0.1:1/x", ZB_EPOLICY},
		{"git://h/x", ZB_EPOLICY},
		{"ftp://h/x", ZB_EPOLICY},
		{"./surely-not-here", ZB_EUSAGE},
		{"/etc/passwd", ZB_EUSAGE},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_source s = {0};
		struct zb_error err = {0};

		assert_int_equal(
			zb_source_parse(&s, rows[i].given, false, &err),
			rows[i].code);
		assert_true(*err.msg != '\0');
	}
}

static void urls_that_are(void **state)
{
	static const char *const rows[] = {
		"https://example.org/a.git",
		"ssh://git@example.org/a",
		"git@example.org:a/b.git",
		"file:///tmp/x",
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct zb_source s = {0};
		struct zb_error err = {0};

		assert_int_equal(zb_source_parse(&s, rows[i], false, &err), 0);
		assert_int_equal(s.kind, ZB_SOURCE_GIT);
		zb_source_done(&s);
	}
}

/* A repository with hooks, a filter, a submodule and fsmonitor, cloned. */
static void clones_run_nothing(void **state)
{
	const char *top = ((struct tmphome *)*state)->dir;
	zb_auto(free) char *script = zb_strf(
		"cd %s && HOME=%s && export HOME && git init -q r && cd r && "
		"echo 1 >a && printf '#!/bin/sh\\ntouch %s/ran\\n' >evil && "
		"chmod +x evil && mkdir v && "
		"printf '[submodule \"v\"]\\n\\tpath = v\\n\\turl = ext::x\\n' "
		">.gitmodules && echo 'a filter=evil' >.gitattributes && "
		"git add -A && "
		"git -c user.name=a -c user.email=a@b commit -qm x && "
		"cp evil .git/hooks/post-checkout && "
		"git config core.fsmonitor %s/r/evil && "
		/* The control: in the repository itself it does run. */
		"git status >/dev/null 2>&1; test -e %s/ran && rm %s/ran",
		top, top, top, top, top, top);
	zb_auto(free) char *url = zb_strf("file://%s/r", top);
	zb_auto(free) char *dir = zb_strf("%s/c", top);
	zb_auto(free) char *marker = zb_strf("%s/ran", top);
	struct zb_source s = {0};
	struct zb_error err = {0};
	struct zb_strv warnings = {0};

	assert_int_equal(system(script), 0);
	assert_int_equal(zb_source_parse(&s, url, false, &err), 0);
	assert_int_equal(zb_source_clone(&s, dir, 60, NULL, &err), 0);
	assert_int_not_equal(access(marker, F_OK), 0);
	assert_int_equal(strlen(s.commit), 40);
	assert_int_equal(zb_source_submodules(dir, &warnings), 0);
	assert_int_equal(warnings.n, 1);
	assert_non_null(strstr(warnings.v[0], "submodule v (ext::x)"));
	zb_strv_done(&warnings);
	zb_source_done(&s);
}

static void a_failed_clone_says_why(void **state)
{
	struct zb_source s = {0};
	struct zb_error err = {0};

	(void)state;
	assert_int_equal(
		zb_source_parse(&s, "file:///tmp/zb-not-here", false, &err), 0);
	assert_int_equal(
		zb_source_clone(&s, "/tmp/zb-not-here-either", 60, NULL, &err),
		ZB_ESYS);
	assert_non_null(strstr(err.msg, "git clone failed"));
	zb_source_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_that_are_no_source),
		cmocka_unit_test(urls_that_are),
		with_tmp(clones_run_nothing),
		cmocka_unit_test(a_failed_clone_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
