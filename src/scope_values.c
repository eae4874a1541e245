/* scope_values.c - may this string stand in that list?
 *
 * Each check gives NULL, or a clause that says what to write instead. What
 * would be taken as plain text although its writer meant a pattern ({a,b},
 * [ab], a**b) is refused: as a deny it would silently match nothing. */
#include "scope_internal.h"

#include "path_match.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

static const char *say(char why[ZB_WHY_MAX], const char *fmt, ...)
	ZB_PRINTF(2, 3);
static const char *say(char why[ZB_WHY_MAX], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, ZB_WHY_MAX, fmt, ap);
	va_end(ap);
	return why;
}

enum {
	GLOB_NONE,
	GLOB_LAST,
	GLOB_ANY
};

/* "${name}" at @v: what follows it, or NULL with @why. */
static const char *skip_variable(const char *v, char why[ZB_WHY_MAX])
{
	static const char *const names[] = {
		"extension_dir", "data_dir", "project",		"home",
		"zot_home",	 "tmp",	     "xdg_runtime_dir", NULL,
	};
	size_t n = strcspn(v, "}");
	char name[40];
	const char *near;

	if (v[1] != '{' || !v[n]) {
		say(why, "variables are written ${name}; ~/ is ${home}");
		return NULL;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(n - 2 > 30 ? 30 : n - 2),
		 v + 2);
	for (size_t i = 0; names[i]; i++)
		if (!strcmp(name, names[i]))
			return v + n + 1;
	near = zb_nearest(name, names);
	if (near)
		say(why, "unknown variable; did you mean ${%s}?", near);
	else
		say(why, "unknown variable; known are ${extension_dir} "
			 "${data_dir} ${project} ${home} ${zot_home} ${tmp} "
			 "${xdg_runtime_dir}");
	return NULL;
}

static const char *check_glob(const char *s, size_t n, bool last, int globs,
			      char why[ZB_WHY_MAX])
{
	if (globs == GLOB_NONE)
		return say(why, "no patterns here; name the path");
	if (globs == GLOB_LAST && !last)
		return say(why, "a pattern may stand only in the last "
				"component of a grant");
	if (memchr(s, '[', n) && memchr(s, ']', n))
		return say(why, "[...] is no pattern here, only * ? and **");
	for (size_t i = 0; i + 1 < n; i++)
		if (s[i] == '*' && s[i + 1] == '*' && n != 2)
			return say(why, "** must be a whole component, as in "
					"dir/**/name");
	return NULL;
}

/* What people write who know other pattern languages: it would be taken as
 * plain text, and a deny would silently match nothing. */
static const char *check_piece(const char *s, size_t n, bool last, int globs,
			       char why[ZB_WHY_MAX])
{
	bool star = memchr(s, '*', n) || memchr(s, '?', n);
	const char *open = memchr(s, '{', n);

	if (n == 2 && !memcmp(s, "..", 2))
		return say(why, "\"..\" is not allowed; name the directory "
				"that is meant");
	if (open && open > s && open[-1] == '$')
		return say(why, "a variable may stand only at the start");
	if (open && memchr(open, '}', n - (size_t)(open - s)) &&
	    memchr(open, ',', n - (size_t)(open - s)))
		return say(why, "{a,b} is no pattern here; write one entry "
				"for each");
	return star ? check_glob(s, n, last, globs, why) : NULL;
}

static const char *check_pieces(const char *s, int globs, char why[ZB_WHY_MAX])
{
	while (*s) {
		size_t n;
		const char *bad;

		s += strspn(s, "/");
		n = strcspn(s, "/");
		bad = check_piece(s, n, s[n] == '\0', globs, why);
		if (bad)
			return bad;
		s += n;
	}
	return NULL;
}

static const char *check_path(const char *v, int globs, char why[ZB_WHY_MAX])
{
	const char *rest = v;

	if (v[0] == '~') {
		rest = v + 1;
		if (*rest && *rest != '/')
			return say(why, "~name is not known here; write the "
					"absolute path");
	} else if (v[0] == '$') {
		rest = skip_variable(v, why);
		if (!rest)
			return why;
		if (*rest && *rest != '/')
			return say(why, "put a / after the variable");
	} else if (v[0] != '/') {
		return say(why, "not an absolute path; start it with /, ~/ or "
				"a variable like ${project}");
	}
	return check_pieces(rest, globs, why);
}

const char *zb_check_read(const char *v, char why[ZB_WHY_MAX])
{
	return check_path(v, GLOB_LAST, why);
}

const char *zb_check_deny(const char *v, char why[ZB_WHY_MAX])
{
	return check_path(v, GLOB_ANY, why);
}

const char *zb_check_socket(const char *v, char why[ZB_WHY_MAX])
{
	return check_path(v, GLOB_NONE, why);
}

const char *zb_check_exec(const char *v, char why[ZB_WHY_MAX])
{
	if (strchr(v, '/') || v[0] == '~' || v[0] == '$')
		return check_path(v, GLOB_LAST, why);
	if (zb_pattern_is_glob(v))
		return say(why, "a pattern needs its directory, as in "
				"/usr/bin/git*");
	if (v[strcspn(v, " \t")])
		return say(why, "a program, not a command line: name the "
				"program alone");
	if (!strcmp(v, ".") || !strcmp(v, ".."))
		return say(why, "not the name of a program");
	return NULL;
}

static bool is_word(const char *s, size_t n, const char *also)
{
	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    !(c >= '0' && c <= '9') && !(c && strchr(also, c)))
			return false;
	}
	return n > 0;
}

const char *zb_check_env(const char *v, char why[ZB_WHY_MAX])
{
	size_t n = strlen(v);

	if (!strcmp(v, "*"))
		return say(why, "this would pass every variable; name those "
				"that are needed");
	if (n && v[n - 1] == '*')
		n--;
	if (!is_word(v, n, "_") || (v[0] >= '0' && v[0] <= '9'))
		return say(why, "not the name of a variable; a * may stand "
				"only at the end");
	return NULL;
}

static bool is_port(const char *s, size_t n, unsigned *out)
{
	unsigned v = 0;

	if (!n || n > 5)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		v = v * 10 + (unsigned)(s[i] - '0');
	}
	*out = v;
	return v >= 1 && v <= 65535;
}

/* "443", "80,443", "8000-8010", "*". */
static bool is_ports(const char *s)
{
	if (!strcmp(s, "*"))
		return true;
	for (;;) {
		size_t n = strcspn(s, ",");
		size_t first = strcspn(s, ",-");
		unsigned lo = 0, hi = 0;

		if (!is_port(s, first, &lo))
			return false;
		if (first < n &&
		    (!is_port(s + first + 1, n - first - 1, &hi) || hi < lo))
			return false;
		if (!s[n])
			return true;
		s += n + 1;
	}
}

static bool is_v4(const char *s, size_t n)
{
	unsigned dots = 0, value = 0, digits = 0;

	for (size_t i = 0; i <= n; i++) {
		if (i == n || s[i] == '.') {
			if (!digits || value > 255)
				return false;
			dots += i < n;
			value = digits = 0;
		} else if (s[i] >= '0' && s[i] <= '9' && digits < 3) {
			value = value * 10 + (unsigned)(s[i] - '0');
			digits++;
		} else {
			return false;
		}
	}
	return dots == 3;
}

static bool is_v6(const char *s, size_t n)
{
	size_t colons = 0;

	for (size_t i = 0; i < n; i++)
		colons += s[i] == ':';
	return colons >= 2 && colons <= 7 && is_word(s, n, ":.") &&
	       strspn(s, "0123456789abcdefABCDEF:.") >= n;
}

/* "/24" behind an address. */
static bool is_prefix(const char *s, size_t n, unsigned most)
{
	unsigned v = 0;

	if (!n)
		return true;
	if (s[0] != '/' || n < 2 || n > 4)
		return false;
	for (size_t i = 1; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		v = v * 10 + (unsigned)(s[i] - '0');
	}
	return v <= most;
}

/* A name; other alphabets are compared in their IDN spelling. */
static bool is_host_name(const char *s, size_t n)
{
	if (!n || n > 253 || s[0] == '.' || s[0] == '-')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!((unsigned char)s[i] & 0x80) && !is_word(s + i, 1, ".-_"))
			return false;
	return true;
}

static bool is_host(const char *s, size_t n)
{
	size_t slash = 0;

	if (n == 1 && *s == '*')
		return true;
	if (n && *s == '[') {
		const char *close = memchr(s, ']', n);
		size_t k = close ? (size_t)(close - s) : 0;

		return close && is_v6(s + 1, k - 1) &&
		       is_prefix(close + 1, n - k - 1, 128);
	}
	while (slash < n && s[slash] != '/')
		slash++;
	if (is_v4(s, slash))
		return is_prefix(s + slash, n - slash, 32);
	if (n > 2 && s[0] == '*' && s[1] == '.')
		return is_host_name(s + 2, n - 2);
	return is_host_name(s, n);
}

const char *zb_check_connect(const char *v, char why[ZB_WHY_MAX])
{
	const char *colon = strrchr(v, ':');

	if (!colon || !is_ports(colon + 1))
		return say(why, "write HOST:PORT, the port a number, a list "
				"80,443, a range 8000-8010 or *");
	if (!is_host(v, (size_t)(colon - v)))
		return say(why, "the host must be a name, *.name, an address, "
				"[IPv6], an address/BITS or localhost");
	return NULL;
}

const char *zb_check_listen(const char *v, char why[ZB_WHY_MAX])
{
	const char *colon = strrchr(v, ':');
	size_t n = colon ? (size_t)(colon - v) : 0;
	unsigned port;

	if (!colon || !is_port(colon + 1, strlen(colon + 1), &port))
		return say(why, "write ADDRESS:PORT with one port, as in "
				"127.0.0.1:38451");
	if (is_v4(v, n) || (n == 9 && !memcmp(v, "localhost", 9)) ||
	    (n > 2 && *v == '[' && v[n - 1] == ']' && is_v6(v + 1, n - 2)))
		return NULL;
	return say(why, "the address must be an IP address or localhost");
}

const char *zb_check_tool(const char *v, char why[ZB_WHY_MAX])
{
	if (strlen(v) > 64 || !is_word(v, strlen(v), "_-"))
		return say(why, "not the name of a tool (letters, digits, _ "
				"and -, at most 64)");
	return NULL;
}

const char *zb_check_command(const char *v, char why[ZB_WHY_MAX])
{
	size_t skip = v[0] == '/';

	if (!v[skip] || strlen(v) > 64 || v[skip + strcspn(v + skip, " \t/")])
		return say(why, "not the name of a slash command");
	return NULL;
}

const char *const zb_known_events[] = {
	"session_start",
	"session_end",
	"user_prompt_submit",
	"turn_start",
	"turn_end",
	"tool_call",
	"tool_result",
	"tool_confirmation_requested",
	"permission_decision",
	"assistant_message",
	"pre_compact",
	"post_compact",
	"subagent_start",
	"subagent_stop",
	NULL,
};

const char *const zb_known_intercepts[] = {
	"tool_call",	      "turn_start", "assistant_message",
	"before_agent_start", NULL,
};

const char *zb_check_event(const char *v, char why[ZB_WHY_MAX])
{
	if (strlen(v) > 64 || !is_word(v, strlen(v), "_"))
		return say(why, "not the name of an event");
	return NULL;
}

const char *zb_check_part(const char *v, char why[ZB_WHY_MAX])
{
	if (!strcmp(v, "block") || !strcmp(v, "replace"))
		return NULL;
	if (!strncmp(v, "modify:", 7))
		return zb_check_tool(v + 7, why);
	return say(why, "must be \"block\", \"replace\" or \"modify:TOOL\"");
}
