/* command_line.c - argv as the one string that Windows starts programs with.
 *
 * CommandLineToArgvW and the C run-time agree on this: backslashes are plain
 * unless a quotation mark follows; then 2n of them are n and the mark ends or
 * begins a quoted part, 2n+1 are n and the mark is plain. argv[0] is split by
 * a simpler rule without backslashes. Not for cmd.exe, which has rules of its
 * own and must not be started with strangers' arguments. */
#include "appcontainer.h"

#include <string.h>

static void add_argument(struct zb_buf *out, const char *s)
{
	if (*s && !strpbrk(s, " \t\n\v\"")) {
		zb_buf_adds(out, s);
		return;
	}
	zb_buf_addc(out, '"');
	while (*s) {
		size_t n = strspn(s, "\\");

		s += n;
		if (!*s || *s == '"')
			n *= 2; /* a mark follows: ours or its own */
		if (*s == '"')
			n++;
		while (n--)
			zb_buf_addc(out, '\\');
		if (*s)
			zb_buf_addc(out, *s++);
	}
	zb_buf_addc(out, '"');
}

int zb_windows_command_line(const struct zb_strv *argv, struct zb_buf *out,
			    struct zb_error *err)
{
	if (!argv->n || strchr(argv->v[0], '"'))
		return zb_fail(err, ZB_EUNSUPPORTED,
			       "a command line needs a program's name without "
			       "quotation marks");
	zb_buf_addf(out, "\"%s\"", argv->v[0]);
	for (size_t i = 1; i < argv->n; i++) {
		zb_buf_addc(out, ' ');
		add_argument(out, argv->v[i]);
	}
	if (out->failed)
		return zb_fail(err, ZB_ELIMIT, "command line: out of memory");
	return 0;
}
