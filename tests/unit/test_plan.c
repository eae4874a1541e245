/* test_plan.c - what a scope becomes on a host made of a table: places,
 * refusals with their whole text, notices, environment. */
#include "fake_host.h"

#include "resolve.h"

#define STRICT "strict"
#define P      "/home/u/src/app"

/* The plan printed, from a chain of up to three. */
static char *printed(struct fake_setup *s)
{
	struct zb_buf b = {0};
	struct zb_plan plan;

	if (fake_plan(s, &plan))
		fail_msg("%s", s->err.msg);
	zb_plan_print(&plan, &b);
	zb_plan_done(&plan);
	return zb_buf_steal(&b);
}

static bool has_line(const char *text, const char *line)
{
	size_t n = strlen(line);

	for (const char *p = text; (p = strstr(p, line)); p++)
		if ((p == text || p[-1] == '\n') &&
		    (p[n] == '\n' || !p[n] || !strncmp(p + n, "  [", 3)))
			return true;
	return false;
}

/* One scope and what its plan must (or, with "!", must not) say. */
static const struct {
	const char *base, *over, *project, *home;
	bool mean_it;
	const char *lines[9];
} plans[] = {
	/* base needs: links are links, the target is the place */
	{STRICT,
	 NULL,
	 NULL,
	 NULL,
	 false,
	 {"  link    r---- /bin -> usr/bin",
	  "  link    r---- /lib64 -> usr/lib64", "  system  r--xl /usr/lib",
	  "  system  r--x- /usr/bin/env",
	  "  link    r---- /etc/resolv.conf -> "
	  "../run/systemd/resolve/stub-resolv.conf",
	  "  system  r---- /run/systemd/resolve/stub-resolv.conf",
	  "  link    r---- /usr/bin/python3 -> python3.11",
	  "  runtime r--x- /usr/bin/python3.11",
	  "!  runtime r--xl /usr/lib/python3.11"}},
	/* strict: code read-only, data apart, HOME private, all pinned */
	{STRICT,
	 NULL,
	 NULL,
	 NULL,
	 false,
	 {"  home    rwcxl /home/u = " BOX "/home", "  code    r--xl " EXT,
	  "  code    r---- " EXT "/extension.json = " BOX "/manifest.json",
	  "  data    rwcxl " BOX "/data",
	  "  pin     rwcxl /home/u/.local = " BOX "/home/.local",
	  "  pin     rwcxl " ZOT " = " BOX "/home/.local/state/zot",
	  "  dir     r---l " ZOT "/extensions", "data_dir " BOX "/data",
	  "state apart"}},
	{STRICT,
	 NULL,
	 NULL,
	 NULL,
	 false,
	 {"  tmp     rwcxl /tmp", "  proc    r---l /proc",
	  "  dev     rw--l /dev", "  text    r---- /etc/passwd",
	  "  text    r---- /etc/group", "  PWD=" EXT, "cwd " EXT,
	  "policy strict", "project " P}},
	/* standard: data at the extension's directory, entries on top */
	{"standard",
	 NULL,
	 NULL,
	 NULL,
	 false,
	 {"  data    rwcxl " EXT " = " BOX "/data",
	  "  code    r--x- " EXT "/main.py", "  code    r--xl " EXT "/lib",
	  "  code    r--xl " EXT "/current = " EXT "/lib",
	  "  code    r---- " EXT "/extension.json = " BOX "/manifest.json",
	  "!  code    r--x- " EXT "/away",
	  "  grant   r---l " P " (carved: the broker opens)",
	  "  home    rwcxl /home/u = " BOX "/home (the broker reads)",
	  "data_dir " EXT}},
	/* nothing executes in a brokered HOME but in places of their own, which
	 * are mounts in every instance */
	{"standard",
	 NULL,
	 NULL,
	 NULL,
	 false,
	 {"  pin     rwcxl /home/u/.npm = " BOX "/home/.npm",
	  "  pin     rwcxl /home/u/.cache = " BOX "/home/.cache",
	  "  pin     rwcxl /home/u/bin = " BOX "/home/bin",
	  "  pin     rwcxl /home/u/.local = " BOX "/home/.local", NULL}},
	/* ... also of a project of which nothing is carved */
	{"standard",
	 NULL,
	 "/home/u",
	 NULL,
	 false,
	 {"  home    rwcxl /home/u = " BOX "/home",
	  "  pin     rwcxl /home/u/.npm = " BOX "/home/.npm", NULL}},
	{STRICT,
	 "{\"fs\":{\"deny\":[\"${project}/.env\"]}}",
	 "/home/u",
	 NULL,
	 false,
	 {"  pin     rwcxl /home/u/.npm = " BOX "/home/.npm", NULL}},
	{STRICT,
	 "{\"fs\":{\"read\":[\"${project}/*.c\"]}}",
	 "/home/u",
	 NULL,
	 false,
	 {"  pin     rwcxl /home/u/.npm = " BOX "/home/.npm", NULL}},
	{STRICT,
	 "{\"fs\":{\"write\":[\"${project}/notes.txt\"]}}",
	 "/home/u",
	 NULL,
	 false,
	 {"  pin     rwcxl /home/u/.npm = " BOX "/home/.npm", NULL}},
	/* a scope under which nothing is ever carved needs none */
	{STRICT,
	 "{\"fs\":{\"read\":[\"${project}\"],\"exec\":[\"git\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  grant   r---l " P,
	  "  pin     rwcxl /home/u/src = " BOX "/home/src",
	  "!  pin     rwcxl /home/u/.npm = " BOX "/home/.npm",
	  "!  pin     rwcxl /home/u/.cache = " BOX "/home/.cache",
	  "  pin     rwcxl /home/u/.local = " BOX "/home/.local", NULL}},
	/* no other directory in it may be read by the kernel's leave */
	{"standard",
	 "{\"fs\":{\"read\":[\"~/dotfiles/config\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  pin     rwcxl /home/u/dotfiles = " BOX
	  "/home/dotfiles (the broker reads)",
	  "  pin     rwcxl /home/u/.local/state = " BOX "/home/.local/state",
	  NULL}},
	/* a grant that is a link grants its target and shows the link */
	{STRICT,
	 "{\"fs\":{\"read\":[\"~/.config/weather\",\"~/link\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  link    r---- /home/u/.config -> dotfiles/config",
	  "  grant   r---l /home/u/dotfiles/config/weather",
	  "  pin     rwcxl /home/u/dotfiles = " BOX "/home/dotfiles",
	  "  pin     rwcxl /home/u/dotfiles/config = " BOX
	  "/home/dotfiles/config",
	  "  link    r---- /home/u/link -> src/app", "  grant   r---l " P,
	  "!  pin     rwcxl /home/u/.config = " BOX "/home/.config", NULL}},
	/* HOME behind a link */
	{STRICT,
	 NULL,
	 NULL,
	 "/home2/u",
	 false,
	 {"  link    r---- /home2 -> data/home2",
	  "  home    rwcxl /data/home2/u = " BOX "/home", "  HOME=/home2/u",
	  "home /home2/u", NULL}},
	/* below /tmp one read-only directory holds the way */
	{"standard",
	 NULL,
	 "/tmp/work/p",
	 NULL,
	 false,
	 {"  dir     r---l /tmp/work (the broker reads)",
	  "  grant   r---l /tmp/work/p (carved: the broker opens)",
	  "  tmp     rwcxl /tmp (the broker reads)",
	  "  home    rwcxl /home/u = " BOX "/home", NULL}},
	{STRICT,
	 "{\"fs\":{\"read\":[\"/tmp/one.txt\",\"/tmp/work/p/a.c\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  grant   r---- /tmp/one.txt", "  grant   r---- /tmp/work/p/a.c",
	  "  dir     r---l /tmp/work", "!  dir     r---l /tmp/work/p", NULL}},
	/* merging: what a place around it shows anyway is dropped */
	{STRICT,
	 "{\"fs\":{\"read\":[\"~/src\",\"${project}\",\"/usr/lib/git-core\","
	 "\"${extension_dir}/lib\",\"${data_dir}\",\"${tmp}/x\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  grant   r---l /home/u/src", "!  grant   r---l " P,
	  "!  grant   r---l /usr/lib/git-core", "!  grant   r---l " EXT "/lib",
	  "!  grant   r---l " BOX "/data", NULL}},
	/* more rights are a place of their own */
	{STRICT,
	 "{\"fs\":{\"read\":[\"~/src\"],\"write\":[\"${project}/notes.txt\"],"
	 "\"exec\":[\"${project}/run.sh\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  grant   r---l /home/u/src", "  grant   rw--- " P "/notes.txt",
	  "  grant   r--x- " P "/run.sh", NULL}},
	/* programs with what they need */
	{STRICT,
	 "{\"fs\":{\"exec\":[\"git\",\"/opt/few/*\",\"/usr/bin/git\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  grant   r--x- /usr/bin/git", "  grant   r--x- /opt/few/a",
	  "  grant   r--x- /opt/few/b", NULL}},
	/* patterns in the last component */
	{STRICT,
	 "{\"fs\":{\"read\":[\"${project}/*.c\",\"${project}/*.txt\","
	 "\"~/src/other/**\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  grant   r---l " P " only " P "/*.c, " P
	  "/*.txt (carved: the broker opens)",
	  "  grant   r---l /home/u/src/other", NULL}},
	/* a whole grant takes a pattern's place */
	{STRICT,
	 "{\"fs\":{\"read\":[\"${project}/*.c\",\"${project}\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  grant   r---l " P, NULL}},
	/* denies: real names, links and what they lead to */
	{STRICT,
	 "{\"fs\":{\"read\":[\"${project}\"],\"deny\":[\"~/link/.env\","
	 "\"${project}/linked\",\"~/link/**/*.pem\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  " P "/.env", "  " P "/linked", "  " P "/secrets/token",
	  "  " P "/**/*.pem",
	  "  grant   r---l " P " (carved: the broker opens)", NULL}},
	/* a deny that reaches no grant carves nothing */
	{STRICT,
	 "{\"fs\":{\"read\":[\"${project}\"],\"deny\":[\"~/src/other/**\","
	 "\"~/.ssh\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  grant   r---l " P, NULL}},
	/* a name with * in it is a name */
	{STRICT,
	 "{\"fs\":{\"read\":[\"${project}\"]}}",
	 "/srv/a*b",
	 NULL,
	 false,
	 {"  grant   r---l /srv/a*b", "project /srv/a*b", NULL}},
	/* the whole of HOME, meant: own directories stay hidden */
	{STRICT,
	 "{\"fs\":{\"read\":[\"~\"]}}",
	 NULL,
	 NULL,
	 true,
	 {"  grant   r---l /home/u", "  dir     r---l " ZOT "/zotbox",
	  "  dir     r---l " ZOT "/logs", "  data    rwcxl " BOX "/data",
	  "!  home    rwcxl /home/u = " BOX "/home", NULL}},
	/* the project is HOME: not granted, the rest stands */
	{"standard",
	 NULL,
	 "/home/u",
	 NULL,
	 false,
	 {"!  grant   r---l /home/u (carved: the broker opens)",
	  "  home    rwcxl /home/u = " BOX "/home",
	  "notice the project is /home/u, which is or contains HOME: ${project} "
	  "is not granted; start zot in a project directory",
	  NULL}},
	/* writing below a directory: carved, and all above it the broker's */
	{STRICT,
	 "{\"fs\":{\"write\":[\"${project}\"],\"read\":[\"${project}/sub\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  grant   rwc-l " P " (carved: the broker serves)",
	  "!  grant   r---l " P "/sub",
	  "  home    rwcxl /home/u = " BOX
	  "/home (the broker reads and writes)",
	  "  pin     rwcxl /home/u/src = " BOX
	  "/home/src (the broker reads and writes)",
	  "  pin     rwcxl /home/u/.cache = " BOX "/home/.cache", NULL}},
	/* patterns for writing, alone and with others at the same directory:
	 * each right has its own */
	{STRICT,
	 "{\"fs\":{\"write\":[\"${project}/*.log\",\"${project}/x?\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  grant   rwc-l " P " only " P "/*.log, " P "/x?; to change only " P
	  "/*.log, " P "/x? (carved: the broker serves)",
	  NULL}},
	{STRICT,
	 "{\"fs\":{\"read\":[\"${project}/*.c\"],"
	 "\"write\":[\"${project}/*.log\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  grant   rwc-l " P " only " P "/*.c, " P "/*.log; to change only " P
	  "/*.log (carved: the broker serves)",
	  NULL}},
	{STRICT,
	 "{\"fs\":{\"read\":[\"${project}\"],"
	 "\"write\":[\"${project}/*.log\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  grant   rwc-l " P "; to change only " P
	  "/*.log (carved: the broker serves)",
	  NULL}},
	{STRICT,
	 "{\"fs\":{\"read\":[\"${project}/*.c\"],"
	 "\"write\":[\"${project}/*.log\",\"${project}\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  grant   rwc-l " P " (carved: the broker serves)", NULL}},
	/* ... and with those around it: a pattern takes nothing away */
	{STRICT,
	 "{\"fs\":{\"read\":[\"~/src\",\"${project}/*.c\"],"
	 "\"write\":[\"${project}/*.log\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  grant   r---l /home/u/src (the broker reads)",
	  "  grant   rwc-l " P "; to change only " P
	  "/*.log (carved: the broker serves)",
	  NULL}},
	{STRICT,
	 "{\"fs\":{\"read\":[\"~/src\",\"${project}/*.c\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  grant   r---l /home/u/src", "!  grant   r---l " P, NULL}},
	{STRICT,
	 "{\"fs\":{\"write\":[\"~/src/a*\",\"${project}\","
	 "\"~/src/other\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"  grant   rwc-l /home/u/src only /home/u/src/a*; to change only "
	  "/home/u/src/a* (carved: the broker serves)",
	  "!  grant   rwc-l " P " (carved: the broker serves)",
	  "  grant   rwc-l /home/u/src/other (carved: the broker serves)",
	  NULL}},
	/* by its own name a closed one is open, and a place of its own */
	{STRICT,
	 "{\"fs\":{\"write\":[\"${project}\",\"${project}/.git\"]}}",
	 NULL,
	 NULL,
	 true,
	 {"  grant   rwc-l " P " (carved: the broker serves)",
	  "  grant   rwc-l " P "/.git (carved: the broker serves)", NULL}},
	/* shipped files made writable are copies */
	{"standard",
	 "{\"fs\":{\"write\":[\"${extension_dir}/state.json\","
	 "\"${extension_dir}/lib/cache.json\"]}}",
	 NULL,
	 NULL,
	 false,
	 {"!  code    r--x- " EXT "/state.json", "copied state.json",
	  "copied lib/cache.json",
	  "  data    rw-x- " EXT "/lib/cache.json = " BOX
	  "/data/lib/cache.json",
	  NULL}},
};

static void setup(struct fake_setup *s, const char *base, const char *over)
{
	size_t n = 0;

	fake_init(s);
	s->scopes[n++] = "strict";
	if (strcmp(base, "strict") != 0)
		s->scopes[n++] = base;
	s->scopes[n] = over;
}

static void places(void **state)
{
	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(plans); i++) {
		zb_auto(free) char *text = NULL;
		struct fake_setup s;

		setup(&s, plans[i].base, plans[i].over);
		s.facts.mean_it = plans[i].mean_it;
		if (plans[i].project)
			s.facts.project = plans[i].project;
		if (plans[i].home)
			s.facts.home = plans[i].home;
		text = printed(&s);
		for (size_t k = 0; k < 9 && plans[i].lines[k]; k++) {
			const char *line = plans[i].lines[k];
			bool not = line[0] == '!';

			if (has_line(text, line + not ) == not )
				fail_msg("plan %zu: %s\n%s", i, line, text);
		}
		fake_done(&s);
	}
}

/* Refusals: kind and whole text. */
static const struct {
	const char *base, *over;
	enum zb_code code;
	const char *text;
} refusals[] = {
	{STRICT, "{\"fs\":{\"read\":[\"~\"]}}", ZB_EPOLICY,
	 "scope.json:1: fs.read[0] \"~\": it is or holds your whole HOME; grant "
	 "what is needed below it, or grant this with --yes-i-mean-it"},
	{STRICT, "{\"fs\":{\"read\":[\"/\"]}}", ZB_EPOLICY,
	 "scope.json:1: fs.read[0] \"/\": it is or holds your whole HOME; grant "
	 "what is needed below it, or grant this with --yes-i-mean-it"},
	{STRICT, "{\"fs\":{\"read\":[\"/home\"]}}", ZB_EPOLICY,
	 "scope.json:1: fs.read[0] \"/home\": it is or holds your whole HOME; "
	 "grant what is needed below it, or grant this with --yes-i-mean-it"},
	{STRICT, "{\"fs\":{\"read\":[\"~/.local\"]}}", ZB_EPOLICY,
	 "scope.json:1: fs.read[0] \"~/.local\": it is or holds zot's own "
	 "directory; grant what is needed below it, or grant this with "
	 "--yes-i-mean-it"},
	{STRICT, "{\"fs\":{\"read\":[\"${zot_home}\"]}}", ZB_EPOLICY,
	 "scope.json:1: fs.read[0] \"${zot_home}\": it is or holds zot's own "
	 "directory; grant what is needed below it, or grant this with "
	 "--yes-i-mean-it"},
	{STRICT, "{\"fs\":{\"read\":[\"${zot_home}/auth.json\"]}}", ZB_EPOLICY,
	 "scope.json:1: fs.read[0] \"${zot_home}/auth.json\": it holds zot's "
	 "credentials; grant what is needed below it, or grant this with "
	 "--yes-i-mean-it"},
	{STRICT, "{\"fs\":{\"read\":[\"${zot_home}/a*\"]}}", ZB_EPOLICY,
	 "scope.json:1: fs.read[0] \"${zot_home}/a*\": it holds zot's "
	 "credentials; grant what is needed below it, or grant this with "
	 "--yes-i-mean-it"},
	{STRICT, "{\"fs\":{\"read\":[\"~/.l*\"]}}", ZB_EPOLICY,
	 "scope.json:1: fs.read[0] \"~/.l*\": it is or holds zot's own "
	 "directory; grant what is needed below it, or grant this with "
	 "--yes-i-mean-it"},
	{STRICT, "{\"fs\":{\"read\":[\"~/*.txt\"]}}", ZB_EUNSUPPORTED,
	 "scope.json:1: fs.read[0] \"~/*.txt\": a pattern directly in /home/u: "
	 "the extension's own directory stands there; name the files"},
	{STRICT, "{\"fs\":{\"read\":[\"${zot_home}/zotbox/other\"]}}",
	 ZB_EPOLICY,
	 "scope.json:1: fs.read[0] \"${zot_home}/zotbox/other\": the "
	 "supervisor's own directories cannot be granted; remove it"},
	{STRICT, "{\"fs\":{\"read\":[\"${zot_home}/logs\"]}}", ZB_EPOLICY,
	 "scope.json:1: fs.read[0] \"${zot_home}/logs\": the supervisor's own "
	 "directories cannot be granted; remove it"},
	{STRICT, "{\"fs\":{\"read\":[\"/proc\"]}}", ZB_EPOLICY,
	 "scope.json:1: fs.read[0] \"/proc\": the host's /proc and /dev cannot "
	 "be granted, the sandbox has its own; remove it"},
	{STRICT, "{\"fs\":{\"write\":[\"~/*.txt\"]}}", ZB_EUNSUPPORTED,
	 "scope.json:1: fs.write[0] \"~/*.txt\": a pattern directly in "
	 "/home/u: the extension's own directory stands there; name the "
	 "files"},
	{STRICT, "{\"fs\":{\"write\":[\"${zot_home}/a*\"]}}", ZB_EPOLICY,
	 "scope.json:1: fs.write[0] \"${zot_home}/a*\": it holds zot's "
	 "credentials; grant what is needed below it, or grant this with "
	 "--yes-i-mean-it"},
	{STRICT, "{\"fs\":{\"write\":[\"${project}/.git/x*\"]}}", ZB_EPOLICY,
	 "scope.json:1: fs.write[0] \"${project}/.git/x*\": zot, git or an "
	 "editor runs what stands there; remove it, or grant it with "
	 "--yes-i-mean-it"},
	{STRICT, "{\"fs\":{\"write\":[\"~/src\"],\"exec\":[\"~/src\"]}}",
	 ZB_EUNSUPPORTED,
	 "scope.json:1: fs.exec[0] \"/home/u/src\": a deny or a pattern reaches "
	 "into it, and the kernel cannot execute from a directory that is only "
	 "partly granted; name single programs in fs.exec"},
	{STRICT, "{\"fs\":{\"write\":[\"${project}/.git/config\"]}}",
	 ZB_EPOLICY,
	 "scope.json:1: fs.write[0] \"${project}/.git/config\": zot, git or an "
	 "editor runs what stands there; remove it, or grant it with "
	 "--yes-i-mean-it"},
	{STRICT, "{\"fs\":{\"write\":[\"~/link/.envrc\"]}}", ZB_EPOLICY,
	 "scope.json:1: fs.write[0] \"~/link/.envrc\": zot, git or an editor "
	 "runs what stands there; remove it, or grant it with "
	 "--yes-i-mean-it"},
	{STRICT, "{\"fs\":{\"write\":[\"${zot_home}/mcp.json\"]}}", ZB_EPOLICY,
	 "scope.json:1: fs.write[0] \"${zot_home}/mcp.json\": zot, git or an "
	 "editor runs what stands there; remove it, or grant it with "
	 "--yes-i-mean-it"},
	{STRICT, "{\"fs\":{\"write\":[\"${zot_home}/extensions/other/x\"]}}",
	 ZB_EPOLICY,
	 "scope.json:1: fs.write[0] \"${zot_home}/extensions/other/x\": zot "
	 "starts what stands there; it cannot be granted for writing"},
	{STRICT, "{\"fs\":{\"write\":[\"/usr/lib/libc.so.6\"]}}", ZB_EPOLICY,
	 "scope.json:1: fs.write[0] \"/usr/lib/libc.so.6\": it lies in "
	 "/usr/lib, which the extension runs from; it cannot be granted for "
	 "writing"},
	{STRICT, "{\"fs\":{\"write\":[\"${extension_dir}/main.py\"]}}",
	 ZB_EPOLICY,
	 "scope.json:1: fs.write[0] \"${extension_dir}/main.py\": the "
	 "extension's code is read-only under fs.state \"apart\"; let it write "
	 "in ${data_dir}, or set fs.state to \"beside\""},
	{"standard", "{\"fs\":{\"write\":[\"${extension_dir}/main.py\"]}}",
	 ZB_EPOLICY,
	 "scope.json:1: fs.write[0] \"${extension_dir}/main.py\": this is the "
	 "program that starts: what writes it is another extension at its next "
	 "start; remove it"},
	{"standard", "{\"fs\":{\"write\":[\"${extension_dir}/lib\"]}}",
	 ZB_EUNSUPPORTED,
	 "scope.json:1: fs.write[0] \"${extension_dir}/lib\": a shipped "
	 "directory cannot be made writable; name its files"},
	{"standard",
	 "{\"fs\":{\"write\":[\"${extension_dir}/extension.json\"]}}",
	 ZB_EPOLICY,
	 "scope.json:1: fs.write[0] \"${extension_dir}/extension.json\": the "
	 "manifest cannot be granted for writing; remove it"},
	{STRICT, "{\"fs\":{\"exec\":[\"nosuch\"]}}", ZB_EUSAGE,
	 "scope.json:1: fs.exec[0] \"nosuch\": nosuch: not found in PATH"},
	{STRICT, "{\"fs\":{\"exec\":[\"/usr/bin/nosuch\"]}}", ZB_EUSAGE,
	 "scope.json:1: fs.exec[0] \"/usr/bin/nosuch\": there is no such "
	 "program; remove it or install the program"},
	{STRICT, "{\"fs\":{\"exec\":[\"/opt/few/z*\"]}}", ZB_EUSAGE,
	 "scope.json:1: fs.exec[0] \"/opt/few/z*\": nothing matches it"},
	{STRICT, "{\"fs\":{\"exec\":[\"/opt/many/p*\"]}}", ZB_EUSAGE,
	 "scope.json:1: fs.exec[0] \"/opt/many/p*\": it matches 65 programs, at "
	 "most 64 can be granted by one pattern; narrow it, or grant the "
	 "directory"},
	{STRICT,
	 "{\"fs\":{\"exec\":[\"/opt/many/*\"],\"deny\":[\"/opt/**/x\"]}}",
	 ZB_EUNSUPPORTED,
	 "scope.json:1: fs.exec[0] \"/opt/many\": a deny or a pattern reaches "
	 "into it, and the kernel cannot execute from a directory that is only "
	 "partly granted; name single programs in fs.exec"},
	{STRICT, "{\"fs\":{\"deny\":[\"/usr/lib/git-core\"]}}", ZB_EUNSUPPORTED,
	 "scope.json:1: fs.deny[0] \"/usr/lib/git-core\": it lies in /usr/lib, "
	 "which the extension needs to run; remove it"},
	{STRICT, "{\"fs\":{\"deny\":[\"${data_dir}/x\"]}}", ZB_EUNSUPPORTED,
	 "scope.json:1: fs.deny[0] \"${data_dir}/x\": it lies in a directory "
	 "that is the extension's own; remove it"},
	{STRICT, "{\"fs\":{\"deny\":[\"${tmp}/x\"]}}", ZB_EUNSUPPORTED,
	 "scope.json:1: fs.deny[0] \"${tmp}/x\": it lies in a directory that is "
	 "the extension's own; remove it"},
	{STRICT, "{\"net\":{\"connect\":[\"example.org:443\"]}}",
	 ZB_EUNSUPPORTED,
	 "scope.json:1: net.connect[0] \"example.org:443\": this version has no "
	 "network grants, the sandbox's network is empty; leave net.connect out"},
	{STRICT, "{\"net\":{\"listen\":[\"127.0.0.1:80\"]}}", ZB_EUNSUPPORTED,
	 "scope.json:1: net.listen[0] \"127.0.0.1:80\": this version has no "
	 "network grants, the sandbox's network is empty; leave net.listen out"},
	{STRICT, "{\"net\":{\"unix\":[\"/run/x.sock\"]}}", ZB_EUNSUPPORTED,
	 "scope.json:1: net.unix[0] \"/run/x.sock\": this version has no "
	 "network grants, the sandbox's network is empty; leave net.unix out"},
	{STRICT, "{\"protocol\":{\"slash\":[\"clear\",\"/Unjail\"]}}",
	 ZB_EPOLICY,
	 "scope.json: protocol.slash[1] \"/Unjail\": this command cannot be "
	 "granted to an extension; remove it"},
	{STRICT, "{\"protocol\":{\"call_tool\":[\"bash\"]}}", ZB_EPOLICY,
	 "scope.json: protocol.call_tool[0] \"bash\": as good as a shell on "
	 "this host; remove it, or grant it with --yes-i-mean-it"},
	{STRICT,
	 "{\"protocol\":{\"intercept\":{\"tool_call\":[\"modify:bash\"]}}}",
	 ZB_EPOLICY,
	 "scope.json: protocol.intercept.tool_call[0] \"modify:bash\": lets the "
	 "extension put its own words into what the host runs; remove it, or "
	 "grant it with --yes-i-mean-it"},
	{"observe", NULL, ZB_EUNSUPPORTED,
	 "observe.json:13: net.connect[0] \"*:*\": the policy observe is not "
	 "available in this version, which has no network grants; use strict or "
	 "standard: what the extension reaches for is then in zotbox ext logs "
	 "NAME --denials"},
};

static void refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(refusals); i++) {
		struct fake_setup s;
		struct zb_plan plan;
		int rc;

		setup(&s, refusals[i].base, refusals[i].over);
		s.fake.many = 65;
		rc = fake_plan(&s, &plan);
		if (rc != refusals[i].code)
			fail_msg("refusal %zu: %d %s", i, rc, s.err.msg);
		assert_string_equal(s.err.msg, refusals[i].text);
		fake_done(&s);
	}
}

/* What --yes-i-mean-it opens, and what it does not. */
static void meant(void **state)
{
	static const struct {
		const char *over;
		enum zb_code code;
	} rows[] = {
		{"{\"fs\":{\"read\":[\"~\"]}}", ZB_OK},
		{"{\"fs\":{\"read\":[\"/\"]}}", ZB_OK},
		{"{\"fs\":{\"read\":[\"${zot_home}/auth.json\"]}}", ZB_OK},
		{"{\"fs\":{\"write\":[\"${project}/.git/config\"]}}", ZB_OK},
		{"{\"protocol\":{\"call_tool\":[\"bash\"]}}", ZB_OK},
		{"{\"protocol\":{\"slash\":[\"cd\"]}}", ZB_EPOLICY},
		{"{\"fs\":{\"read\":[\"${zot_home}/zotbox\"]}}", ZB_EPOLICY},
		{"{\"fs\":{\"read\":[\"/proc/1/root\"]}}", ZB_EPOLICY},
		{"{\"fs\":{\"write\":[\"${zot_home}/extensions/o/x\"]}}",
		 ZB_EPOLICY},
		{"{\"fs\":{\"write\":[\"~\"]}}", ZB_OK},
		{"{\"fs\":{\"write\":[\"${project}/.git\"]}}", ZB_OK},
		{"{\"fs\":{\"write\":[\"${zot_home}/extensions\"]}}",
		 ZB_EPOLICY},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct fake_setup s;
		struct zb_plan plan;
		int rc;

		setup(&s, STRICT, rows[i].over);
		s.facts.mean_it = true;
		rc = fake_plan(&s, &plan);
		if (rc != rows[i].code)
			fail_msg("row %zu: %d %s", i, rc, s.err.msg);
		if (!rc)
			zb_plan_done(&plan);
		fake_done(&s);
	}
}

static void notices(void **state)
{
	static const struct {
		const char *base, *over, *notice;
	} rows[] = {
		{STRICT, "{\"fs\":{\"read\":[\"/nope/xyz\"]}}",
		 "scope fs.read \"/nope/xyz\" does not exist; skipped "
		 "(scope.json: fs.read[0])"},
		{STRICT, "{\"fs\":{\"read\":[\"~/nowhere\"]}}",
		 "scope fs.read \"~/nowhere\" does not exist; skipped "
		 "(scope.json: fs.read[0])"},
		{STRICT, "{\"fs\":{\"read\":[\"~/loop\"]}}",
		 "scope fs.read \"~/loop\" does not exist; skipped "
		 "(scope.json: fs.read[0])"},
		{STRICT, "{\"fs\":{\"read\":[\"${project}/sock\"]}}",
		 "scope fs.read \"${project}/sock\" is neither a file nor a "
		 "directory; skipped (scope.json: fs.read[0])"},
		{STRICT, "{\"fs\":{\"read\":[\"/tmp\"]}}",
		 "scope fs.read \"/tmp\" is the extension's own /tmp inside; "
		 "grant what is below it; skipped (scope.json: fs.read[0])"},
		{STRICT, "{\"fs\":{\"write\":[\"${tmp}/x\"]}}",
		 "scope fs.write \"${tmp}/x\" needs no grant: it is the "
		 "extension's own (scope.json: fs.write[0])"},
		{STRICT, "{\"fs\":{\"write\":[\"${project}/new.txt\"]}}",
		 "scope fs.write \"${project}/new.txt\" does not exist; "
		 "skipped: a file that is to be made needs its directory "
		 "granted; a directory that is to be made ends in / "
		 "(scope.json: fs.write[0])"},
		{STRICT, "{\"fs\":{\"write\":[\"${project}/no/dir/\"]}}",
		 "scope fs.write \"${project}/no/dir/\" does not exist; "
		 "skipped: it is made where its parent exists "
		 "(scope.json: fs.write[0])"},
		{STRICT, "{\"fs\":{\"write\":[\"/tmp\"]}}",
		 "scope fs.write \"/tmp\" is the extension's own /tmp inside; "
		 "grant what is below it; skipped (scope.json: fs.write[0])"},
		{STRICT,
		 "{\"fs\":{\"read\":[\"${project}/.env\"],"
		 "\"deny\":[\"${project}/.env*\"]}}",
		 "scope fs.read \"" P "/.env\" is denied by scope.json "
		 "fs.deny[0]; skipped (scope.json: fs.read[0])"},
		{STRICT, "{\"fs\":{\"deny\":[\"${project}/dangling\"]}}",
		 "scope fs.deny \"${project}/dangling\" is a dangling symlink "
		 "to /not/there (scope.json: fs.deny[0])"},
		{STRICT, "{\"fs\":{\"read\":[\"${xdg_runtime_dir}/x\"]}}",
		 "scope fs.read \"${xdg_runtime_dir}/x\" is left out: it is "
		 "not set (scope.json: fs.read[0])"},
		{STRICT, "{\"fs\":{\"deny\":[\"/usr\"]}}",
		 "scope fs.deny \"/usr\" does not hold for "
		 "/run/systemd/resolve/stub-resolv.conf"},
		{"standard", NULL,
		 EXT "/away is left out: it leads to nothing inside the "
		     "extension's directory"},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct fake_setup s;
		struct zb_plan plan;
		bool usr = rows[i].over && strstr(rows[i].over, "/usr\"");

		setup(&s, rows[i].base, rows[i].over);
		if (fake_plan(&s, &plan))
			fail_msg("row %zu: %s", i, s.err.msg);
		assert_int_equal(plan.notices.n, 1);
		if (usr)
			assert_non_null(
				strstr(plan.notices.v[0], "does not hold for"));
		else
			assert_string_equal(plan.notices.v[0], rows[i].notice);
		zb_plan_done(&plan);
		fake_done(&s);
	}
}

static void project_states(void **state)
{
	static const struct {
		const char *base, *project;
		bool uses, refused, known;
		size_t notices;
	} rows[] = {
		{STRICT, P, false, false, true, 0},
		{STRICT, "/home/u", false, false, false, 0},
		{STRICT, NULL, false, false, false, 0},
		{"standard", P, true, false, true, 1}, /* the entry "away" */
		{"standard", NULL, true, false, false, 2},
		{"standard", "/nope", true, false, false, 2},
		{"standard", "/", true, true, false, 2},
		{"standard", "/home", true, true, false, 2},
		{"standard", "/home/u", true, true, false, 2},
		{"standard", ZOT, true, true, false, 2},
		{"standard", ZOT "/zotbox/other", true, true, false, 2},
		{"standard", "/tmp", true, true, false, 2},
		{"standard", "/proc", true, true, false, 2},
		{"standard", "/home/u/link", true, false, true, 1},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct fake_setup s;
		struct zb_plan plan;

		setup(&s, rows[i].base, NULL);
		s.facts.project = rows[i].project;
		if (fake_plan(&s, &plan))
			fail_msg("row %zu: %s", i, s.err.msg);
		assert_int_equal(plan.uses_project, rows[i].uses);
		assert_int_equal(!!plan.project_refused, rows[i].refused);
		assert_int_equal(!!plan.project, rows[i].known);
		assert_int_equal(plan.notices.n, rows[i].notices);
		if (rows[i].known)
			assert_string_equal(plan.project, P);
		zb_plan_done(&plan);
		fake_done(&s);
	}
}

static void project_words(void **state)
{
	static const struct {
		const char *project, *why;
	} rows[] = {
		{"/", "is or contains HOME"},
		{ZOT, "is or contains ZOT_HOME"},
		{"/tmp", "is or contains /tmp"},
		{ZOT "/zotbox/other",
		 "lies in the supervisor's own directories"},
		{ZOT "/logs", "lies in the supervisor's own directories"},
		{"/proc", "is or lies in /proc"},
		{"/dev/shm/p", "is or lies in /dev"},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		zb_auto(free) char *want =
			zb_strf("the project is %s, which %s: ${project} is "
				"not granted; start zot in a project directory",
				rows[i].project, rows[i].why);
		struct fake_setup s;
		struct zb_plan plan;

		setup(&s, "standard", NULL);
		s.facts.project = rows[i].project;
		assert_int_equal(fake_plan(&s, &plan), 0);
		assert_string_equal(plan.project_why, rows[i].why);
		assert_true(zb_strv_has(&plan.notices, want));
		zb_plan_done(&plan);
		fake_done(&s);
	}
}

/* What the supervisor runs and reads, some of it not there, some by a link. */
static const struct {
	const char *list, *value, *project;
	const char
		*own; /* it is refused, and names that one; NULL: it is not */
} own_rows[] = {
	{"write", "~/bin", NULL, "/home/u/bin/mine"},
	{"write", "~/bin/", NULL, "/home/u/bin/mine"},
	{"write", "~/bin/mine", NULL, "/home/u/bin/mine"},
	{"write", "~/bin/*", NULL, "/home/u/bin/mine"},
	{"write", "~/bin/m*", NULL, "/home/u/bin/mine"},
	{"write", "~/bin/*.log", NULL, NULL},
	{"write", "~/bin/other", NULL, NULL},
	{"write", "~/libexec", NULL, "/home/u/libexec/zotbox"},
	{"write", "~/libexec/", NULL, "/home/u/libexec/zotbox"},
	{"write", "~/libexec/zotbox/x/", NULL, "/home/u/libexec/zotbox"},
	{"write", "~/libexec/other/", NULL, NULL},
	{"write", "~/l*", NULL, "/home/u/libexec/zotbox"},
	{"write", "~", NULL, "/home/u/bin/mine"},
	{"write", "/", NULL, "/home/u/bin/mine"},
	{"write", "~/.config", NULL, "/home/u/dotfiles/config/zb"},
	{"write", "~/dotfiles", NULL, "/home/u/.config"},
	{"write", "~/dotfiles/config/weather", NULL, NULL},
	{"write", "~/src/other", NULL, "/home/u/src/other"},
	{"write", "~/src/other/x.txt", NULL, "/home/u/src/other"},
	{"write", "~/src", NULL, "/home/u/src/other"},
	{"write", "~/src/app", NULL, NULL},
	{"read", "~/bin", NULL, NULL},
	{"read", "~/src/other", NULL, NULL},
	{"exec", "~/bin", NULL, NULL},
	/* a project stays readable */
	{"write", "${project}", "/home/u/bin", NULL},
	{"write", "${project}", "/home/u/src/other", NULL},
	{"write", "${project}/other", "/home/u/src", NULL},
	{"write", "${project}/app", "/home/u/src", NULL},
};

static void own_row(size_t i, bool mean_it)
{
	char *places[] = {(char[]){"/home/u/bin/mine"},
			  (char[]){"/home/u/libexec/zotbox"},
			  (char[]){"/home/u/.config/zb"},
			  (char[]){"/home/u/src/other"}};
	const struct zb_strv own = {.v = places, .n = 4};
	zb_auto(free) char *over = zb_strf("{\"fs\":{\"%s\":[\"%s\"]}}",
					   own_rows[i].list, own_rows[i].value);
	struct fake_setup s;
	struct zb_plan plan;
	int rc;

	setup(&s, STRICT, over);
	s.facts.own = &own;
	s.facts.own_tree = "/home/u/src/other";
	s.facts.mean_it = mean_it;
	if (own_rows[i].project)
		s.facts.project = own_rows[i].project;
	rc = fake_plan(&s, &plan);
	if (own_rows[i].own) {
		zb_auto(free) char *want =
			zb_strf("it is, holds or lies in %s", own_rows[i].own);
		bool tree = !strcmp(own_rows[i].own, "/home/u/src/other");

		/* A link of ours named the first that is met. */
		if (rc != ZB_EPOLICY ||
		    (!strstr(s.err.msg, want) &&
		     !strstr(s.err.msg, "/home/u/dotfiles/config/zb")) ||
		    tree != !!strstr(s.err.msg, "install zotbox"))
			fail_msg("own %zu: %d %s", i, rc, s.err.msg);
	} else if (rc) {
		fail_msg("own %zu: %s", i, s.err.msg);
	}
	if (!rc)
		zb_plan_done(&plan);
	fake_done(&s);
}

static void own_is_not_written(void **state)
{
	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(own_rows); i++) {
		own_row(i, true);
		if (strcmp(own_rows[i].value, "~") != 0 &&
		    strcmp(own_rows[i].value, "/") != 0)
			own_row(i, false);
	}
}

/* Of a project that is ours nothing is writable, the rest is read; and no
 * command is offered that would be refused. */
static void own_project_is_read(void **state)
{
	char *places[] = {(char[]){"/home/u/src/other"}};
	const struct zb_strv own = {.v = places, .n = 1};
	struct zb_query q = {.op = ZB_OP_FS_WRITE,
			     .target = "/home/u/src/other/x.txt",
			     .place = -1,
			     .exists = true};
	struct zb_answer a;
	struct fake_setup s;
	struct zb_plan plan;
	int at;

	(void)state;
	setup(&s, STRICT, "{\"fs\":{\"write\":[\"${project}\"]}}");
	s.facts.own = &own;
	s.facts.own_tree = "/home/u/src/other";
	s.facts.project = "/home/u/src/other";
	assert_int_equal(fake_plan(&s, &plan), 0);
	at = zb_plan_place(&plan, "/home/u/src/other/x.txt");
	assert_true(at >= 0);
	assert_int_equal(plan.places[at].rights, ZB_MAY_READ | ZB_MAY_LIST);
	assert_string_equal(
		plan.notices.v[plan.notices.n - 1],
		"scope fs.write \"${project}\" is granted for reading only: it "
		"is, holds or lies in /home/u/src/other, which zotbox itself "
		"runs or reads where it is there; to have it written to, "
		"install zotbox, and use the installed one (scope.json: fs.write[0])");
	zb_evaluate(&plan, &q, &a);
	assert_int_equal(a.verdict, ZB_DENY);
	assert_null(a.grant_key);
	assert_non_null(strstr(a.why_not, "zotbox itself runs or reads"));
	zb_answer_done(&a);
	q.op = ZB_OP_FS_CREATE;
	q.target = "/home/u/src/other/new";
	q.exists = false;
	zb_evaluate(&plan, &q, &a);
	assert_int_equal(a.verdict, ZB_DENY);
	assert_null(a.grant_key);
	zb_answer_done(&a);
	zb_plan_done(&plan);
	fake_done(&s);
}

/* The extension's own project: its code is not subject to the denies. */
static void project_is_extension(void **state)
{
	struct fake_setup s;
	zb_auto(free) char *text = NULL;

	(void)state;
	setup(&s, "standard", NULL);
	s.facts.project = EXT;
	text = printed(&s);
	assert_true(has_line(text, "  data    rwcxl " EXT " = " BOX "/data"));
	assert_false(has_line(text, "  grant   r---l " EXT));
	assert_non_null(strstr(text, "notice denies below ${project} do not "
				     "hold for "));
	fake_done(&s);
}

static const char *env_of(const struct zb_plan *p, const char *name)
{
	for (size_t i = 0; i < p->n_env; i++)
		if (!strcmp(p->env[i].name, name))
			return p->env[i].value;
	return NULL;
}

static void environment(void **state)
{
	struct fake_setup s;
	struct zb_plan p;
	struct zb_strv asked = {0};

	(void)state;
	setup(&s, STRICT,
	      "{\"env\":{\"pass\":[\"N*\",\"L*\",\"HARMLESS\"],"
	      "\"set\":{\"NODE_ENV\":\"production\",\"TERM\":\"dumb\"}}}");
	zb_strv_add(&asked, "WEATHER_*");
	zb_strv_add(&asked, "NOT_SET");
	s.facts.requested_env = &asked;
	zb_strv_add(&s.program.path_prefix, "/home/u/.pyenv/versions/3.11/bin");
	assert_int_equal(fake_plan(&s, &p), 0);
	assert_string_equal(env_of(&p, "PATH"),
			    "/home/u/.pyenv/versions/3.11/bin:/home/u/bin:"
			    "/usr/local/bin:/usr/bin:/bin");
	assert_string_equal(env_of(&p, "HOME"), "/home/u");
	assert_string_equal(env_of(&p, "TMPDIR"), "/tmp");
	assert_string_equal(env_of(&p, "PWD"), EXT);
	assert_string_equal(env_of(&p, "LC_TIME"), "de_DE");
	assert_string_equal(env_of(&p, "HARMLESS"), "1");
	assert_string_equal(env_of(&p, "NODE_ENV"), "production");
	assert_string_equal(env_of(&p, "TERM"), "dumb");
	/* A pattern does not bring what makes programs load code. */
	assert_null(env_of(&p, "LD_PRELOAD"));
	assert_null(env_of(&p, "NODE_OPTIONS"));
	assert_null(env_of(&p, "WEATHER_API_KEY"));
	assert_int_equal(p.env_withheld.n, 2);
	assert_string_equal(p.env_withheld.v[0], "WEATHER_API_KEY");
	assert_string_equal(p.env_withheld.v[1], "github_token");
	zb_plan_done(&p);
	/* Its whole name does. */
	s.scopes[1] = "{\"env\":{\"pass\":[\"NODE_OPTIONS\",\"LD_PRELOAD\"]}}";
	assert_int_equal(fake_plan(&s, &p), 0);
	assert_non_null(env_of(&p, "NODE_OPTIONS"));
	assert_non_null(env_of(&p, "LD_PRELOAD"));
	zb_plan_done(&p);
	/* Nothing inherited, nothing passed but what the launcher sets. */
	s.scopes[1] = "{\"env\":{\"pass\":[\"!reset\"],\"set\":{}}}";
	assert_int_equal(fake_plan(&s, &p), 0);
	assert_null(env_of(&p, "PATH"));
	assert_null(env_of(&p, "HOME"));
	assert_int_equal(p.n_env, 2); /* PWD, TMPDIR */
	zb_plan_done(&p);
	zb_strv_done(&asked);
	fake_done(&s);
}

static void verbs_and_limits(void **state)
{
	struct fake_setup s;
	struct zb_plan p;

	(void)state;
	setup(&s, STRICT,
	      "{\"protocol\":{\"panels\":\"any\",\"events\":[\"turn_end\"],"
	      "\"tools\":[\"a\"],\"commands\":false,"
	      "\"intercept\":{\"tool_call\":[\"block\"],\"turn_start\":[]}},"
	      "\"limits\":{\"memory\":\"1G\",\"tool_seconds\":null}}");
	assert_int_equal(fake_plan(&s, &p), 0);
	assert_true(zb_plan_verb(&p, ZB_VERB_PANELS, NULL));
	assert_true(p.scope.verbs[ZB_VERB_PANELS].any);
	assert_true(zb_plan_verb(&p, ZB_VERB_EVENTS, NULL));
	assert_true(zb_plan_verb(&p, ZB_VERB_EVENTS, "turn_end"));
	assert_false(zb_plan_verb(&p, ZB_VERB_EVENTS, "turn_start"));
	assert_true(zb_plan_verb(&p, ZB_VERB_TOOLS, "a"));
	assert_false(zb_plan_verb(&p, ZB_VERB_TOOLS, "b"));
	assert_false(zb_plan_verb(&p, ZB_VERB_COMMANDS, "a"));
	assert_false(zb_plan_verb(&p, ZB_VERB_COMMANDS, NULL));
	assert_false(zb_plan_verb(&p, ZB_VERB_SUBMIT, NULL));
	assert_false(zb_plan_verb(&p, ZB_VERB_SLASH, NULL));
	assert_true(zb_plan_verb(&p, ZB_VERB_INTERCEPT, NULL));
	assert_true(zb_plan_verb(&p, ZB_VERB_INTERCEPT, "tool_call"));
	assert_false(zb_plan_verb(&p, ZB_VERB_INTERCEPT, "turn_start"));
	assert_true(zb_plan_intercept(&p, "tool_call", "block"));
	assert_false(zb_plan_intercept(&p, "tool_call", "replace"));
	assert_false(zb_plan_intercept(&p, "assistant_message", NULL));
	assert_int_equal(zb_plan_limit(&p, ZB_LIMIT_MEMORY), 1 << 30);
	assert_true(zb_plan_limit(&p, ZB_LIMIT_TOOL_SECONDS) == UINT64_MAX);
	assert_true(zb_plan_limit(&p, ZB_LIMIT_CPU_SECONDS) == UINT64_MAX);
	assert_int_equal(zb_plan_limit(&p, ZB_LIMIT_PROCESSES), 64);
	zb_plan_done(&p);
	fake_done(&s);
}

static void bad_facts(void **state)
{
	static const struct {
		size_t field;
		const char *value, *text;
	} rows[] = {
		{offsetof(struct zb_facts, home), "u",
		 "HOME must be an absolute path, not \"u\""},
		{offsetof(struct zb_facts, home), NULL,
		 "HOME must be an absolute path, not \"\""},
		{offsetof(struct zb_facts, home), "/",
		 "HOME is /: a sandbox needs a HOME that is a directory of its "
		 "own"},
		{offsetof(struct zb_facts, home), "/tmp",
		 "HOME is /tmp: a sandbox needs a HOME that is a directory of "
		 "its own"},
		{offsetof(struct zb_facts, zot_home), "",
		 "ZOT_HOME must be an absolute path, not \"\""},
		{offsetof(struct zb_facts, private_home), NULL,
		 "the private home must be an absolute path, not \"\""},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct fake_setup s;
		struct zb_plan p;

		setup(&s, STRICT, NULL);
		*(const char **)((char *)&s.facts + rows[i].field) =
			rows[i].value;
		assert_int_equal(fake_plan(&s, &p), ZB_EUSAGE);
		assert_string_equal(s.err.msg, rows[i].text);
		fake_done(&s);
	}
}

static void program_must_be_there(void **state)
{
	static const struct {
		const char *exec, *over, *text;
		enum zb_code code;
	} rows[] = {
		{"/opt/few/a", NULL,
		 "cannot run /opt/few/a: it is not visible in the sandbox",
		 ZB_EPOLICY},
		{"/etc/hosts", NULL,
		 "cannot run /etc/hosts: /etc/hosts is visible in the sandbox, "
		 "but may not execute",
		 ZB_EPOLICY},
		{"/opt/few/a", "{\"fs\":{\"exec\":[\"/opt/few/a\"]}}", "",
		 ZB_OK},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct fake_setup s;
		struct zb_plan p;

		setup(&s, STRICT, rows[i].over);
		s.program.exec_path = unconst(rows[i].exec);
		assert_int_equal(fake_plan(&s, &p), rows[i].code);
		assert_string_equal(s.err.msg, rows[i].text);
		if (!rows[i].code)
			zb_plan_done(&p);
		fake_done(&s);
	}
	{
		struct fake_setup s;
		struct zb_plan p;

		setup(&s, STRICT, NULL);
		s.needs[1].path = unconst("/usr/lib/none");
		assert_int_equal(fake_plan(&s, &p), ZB_EPOLICY);
		assert_string_equal(s.err.msg,
				    "runtimes/python.json needs /usr/lib/none, "
				    "which is not there");
		fake_done(&s);
	}
}

/* What a program needs is never found by way of what a sandbox writes. */
static void needs_through_a_box(void **state)
{
	static const char *const paths[] = {
		BOX "/data/planted",
		BOX "/data/planted/id_ed25519",
		BOX "/data",
		ZOT "/logs/ext-weather.log",
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(paths); i++) {
		struct fake_setup s;
		struct zb_plan p;

		setup(&s, STRICT, NULL);
		s.needs[1].path = unconst(paths[i]);
		assert_int_equal(fake_plan(&s, &p), ZB_EPOLICY);
		assert_non_null(strstr(s.err.msg, "zotbox's own directories"));
		fake_done(&s);
	}
}

/* One user, whatever it is called. */
static void accounts(void **state)
{
	static const struct {
		const char *name, *passwd;
	} rows[] = {
		{"u", "u:x:1000:1000:u:/home/u:/bin/sh\n"},
		{"a:b", "1000:x:1000:1000:1000:/home/u:/bin/sh\n"},
		{"a\nroot", "1000:x:1000:1000:1000:/home/u:/bin/sh\n"},
		{NULL, "1000:x:1000:1000:1000:/home/u:/bin/sh\n"},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct fake_setup s;
		struct zb_plan p;

		setup(&s, STRICT, NULL);
		s.facts.user_name = rows[i].name;
		assert_int_equal(fake_plan(&s, &p), 0);
		assert_string_equal(
			p.places[zb_plan_place(&p, "/etc/passwd")].content,
			rows[i].passwd);
		zb_plan_done(&p);
		fake_done(&s);
	}
}

/* What the renderers rely on, for whatever is granted. */

static unsigned long seed = 99;

static unsigned pick(unsigned n)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)(seed >> 33) % n;
}

static bool keeps_order(const struct zb_plan *p)
{
	for (size_t i = 0; i < p->n_places; i++)
		for (size_t k = i + 1; k < p->n_places; k++)
			if (zb_path_below(p->places[i].path, p->places[k].path))
				return false; /* also: twice the same */
	return true;
}

static void check_place(const struct zb_plan *p, size_t i)
{
	const struct zb_place *q = &p->places[i];
	zb_auto(free) char *canon = zb_path_join(NULL, q->path);
	bool carved_below = false, writable_below = false;

	assert_string_equal(canon, q->path);
	for (size_t k = 0; k < p->n_places; k++) {
		const struct zb_place *o = &p->places[k];

		if (k == i || !zb_path_below(o->path, q->path))
			continue;
		/* Nothing is mounted below a link or a file. */
		assert_int_not_equal(q->kind, ZB_PLACE_LINK);
		assert_true(q->is_dir);
		carved_below = carved_below || o->carved;
		writable_below = writable_below ||
				 (o->carved && o->rights & ZB_MAY_WRITE);
	}
	if (carved_below || q->kind != ZB_PLACE_PIN)
		assert_int_equal(q->brokered, carved_below && !q->carved);
	if (!q->carved && (writable_below || q->kind != ZB_PLACE_PIN))
		assert_int_equal(q->brokered_writes, writable_below);
	/* Every directory between HOME and a place in it is held. */
	if (q->kind != ZB_PLACE_HOME && zb_path_below(q->path, p->home_real)) {
		zb_auto(free) char *dir = zb_path_dir(q->path);

		while (strcmp(dir, p->home_real) != 0) {
			int k = zb_plan_place(p, dir);
			char *up = zb_path_dir(dir);

			assert_int_not_equal(p->places[k].kind, ZB_PLACE_HOME);
			free(dir);
			dir = up;
		}
	}
	if (q->source)
		assert_int_equal(q->source[0], '/');
}

static void invariants(void **state)
{
	static const char *const values[] = {
		"~/src",
		"${project}",
		"${project}/sub",
		"~/.config/weather",
		"~/link",
		"/tmp/work/p",
		"/tmp/work",
		"/tmp/one.txt",
		"${project}/*.c",
		"~/.pyenv",
		"/opt/few",
		"/usr/share/doc",
		"/etc",
		"~/src/other/x.txt",
		"${project}/secrets",
		"/usr",
		"/bin",
		"/lib64",
	};
	static const char *const writes[] = {
		"~/src",
		"${project}",
		"${project}/sub",
		"~/.config/weather",
		"/tmp/work",
		"~/src/linky",
		"${project}/notes.txt",
	};
	static const char *const denies[] = {
		"${project}/**/.env*", "~/src/**/*.pem", "/tmp/**/.env",
		"${project}/linked",   "${project}/sub", "~/**/token",
	};

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct zb_buf b = {0};
		struct fake_setup s;
		struct zb_plan p;
		bool standard = pick(2);

		zb_buf_adds(&b, "{\"fs\":{\"read\":[");
		for (unsigned i = 0, n = pick(6); i < n; i++)
			zb_buf_addf(&b, "%s\"%s\"", i ? "," : "",
				    values[pick(ZB_ARRAY_LEN(values))]);
		zb_buf_adds(&b, "],\"deny\":[");
		for (unsigned i = 0, n = pick(3); i < n; i++)
			zb_buf_addf(&b, "%s\"%s\"", i ? "," : "",
				    denies[pick(ZB_ARRAY_LEN(denies))]);
		zb_buf_adds(&b, "],\"write\":[");
		for (unsigned i = 0, n = pick(3); i < n; i++)
			zb_buf_addf(&b, "%s\"%s\"", i ? "," : "",
				    writes[pick(ZB_ARRAY_LEN(writes))]);
		zb_buf_adds(&b, "],\"exec\":[\"git\"]}}");
		setup(&s, standard ? "standard" : STRICT, zb_buf_str(&b));
		if (fake_plan(&s, &p))
			fail_msg("%s: %s", zb_buf_str(&b), s.err.msg);
		if (!keeps_order(&p))
			fail_msg("%s: out of order", zb_buf_str(&b));
		for (size_t i = 0; i < p.n_places; i++)
			check_place(&p, i);
		zb_plan_done(&p);
		zb_buf_done(&b);
		fake_done(&s);
	}
}

/* ... unless it may be written, or another place is around. */
static void small_files_are_copied(void **state)
{
	static const struct {
		const char *over, *path;
		uint64_t size;
		bool copied;
	} rows[] = {
		{NULL, "/etc/hosts", 0, true},
		{NULL, "/etc/hosts", ZB_COPY_MAX, true},
		{NULL, "/etc/hosts", ZB_COPY_MAX + 1, false},
		{NULL, "/etc/passwd", ZB_COPY_MAX + 1, true},
		{NULL, "/usr/bin/env", 0, true},
		{NULL, "/usr/bin/env", ZB_COPY_MAX + 1, false},
		{NULL, "/usr/bin/python3.11", 0, false},
		{"{\"fs\":{\"read\":[\"/etc/hosts\"]}}", "/etc/hosts", 0, true},
		{"{\"fs\":{\"read\":[\"/etc\"]}}", "/etc/passwd", 0, false},
		{"{\"fs\":{\"read\":[\"~/link\"]}}", P, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct fake_setup s;
		struct zb_plan p;
		int place;

		setup(&s, STRICT, rows[i].over);
		s.fake.size = rows[i].size;
		assert_int_equal(fake_plan(&s, &p), 0);
		place = zb_plan_place(&p, rows[i].path);
		assert_true(place >= 0);
		assert_string_equal(p.places[place].path, rows[i].path);
		assert_int_equal(p.places[place].copied, rows[i].copied);
		zb_plan_done(&p);
		fake_done(&s);
	}
}

/* An instance that is not loose runs: so this one is not, whatever its scope.
 */
static void a_held_home_stays_held(void **state)
{
	(void)state;
	for (int held = 0; held < 2; held++) {
		struct fake_setup s;
		struct zb_plan p;
		int i;

		setup(&s, STRICT, NULL);
		s.facts.held_home = held;
		assert_int_equal(fake_plan(&s, &p), 0);
		assert_int_equal(p.loose_home, !held);
		i = zb_plan_place(&p, "/home/u/.cache");
		assert_int_equal(p.places[i].kind,
				 held ? ZB_PLACE_PIN : ZB_PLACE_HOME);
		zb_plan_done(&p);
		fake_done(&s);
	}
}

/* A file with more rights than what is around it has a mount of its own only
 * where it, or that, may be changed, or the broker has a say. */
static void what_is_shown_anyway_is_no_mount(void **state)
{
	static const struct {
		const char *over, *path;
		bool shown;
	} rows[] = {
		{NULL, "/usr/share/few/a", true},
		{"{\"fs\":{\"read\":[\"~/src\"],\"exec\":[\"~/src/app/run.sh\"]}}",
		 P "/run.sh", true},
		{"{\"fs\":{\"read\":[\"~/src\"],"
		 "\"write\":[\"~/src/app/notes.txt\"]}}",
		 P "/notes.txt", false},
		{"{\"fs\":{\"read\":[\"~/src\"],\"exec\":[\"~/src/app/run.sh\"],"
		 "\"deny\":[\"~/src/other/x.txt\"]}}",
		 P "/run.sh", false},
		{"{\"fs\":{\"read\":[\"~/src\"],\"exec\":[\"~/src/app/sub\"]}}",
		 P "/sub", false},
		{NULL, EXT "/extension.json", false},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct fake_setup s;
		struct zb_plan p;
		int place;

		setup(&s, STRICT, rows[i].over);
		s.base[6] = need("/usr/share/few", ZB_MAY_READ | ZB_MAY_LIST,
				 "runtimes/base.json");
		s.base[7] = need("/usr/share/few/a", READ_EXEC,
				 "runtimes/base.json");
		s.facts.n_base_needs = 8;
		assert_int_equal(fake_plan(&s, &p), 0);
		place = zb_plan_place(&p, rows[i].path);
		assert_string_equal(p.places[place].path, rows[i].path);
		assert_int_equal(p.places[place].shown, rows[i].shown);
		zb_plan_done(&p);
		fake_done(&s);
	}
}

/* A small directory of the system is made of copies and links. */
static void small_directories_are_unfolded(void **state)
{
	static const char dir[] = "/usr/share/few";
	static const struct {
		const char *over;
		uint64_t size;
		bool list, more, unfolded;
	} rows[] = {
		{NULL, 5, true, false, true},
		{NULL, 5, false, false, false},
		{NULL, 5, true, true, false}, /* a thirteenth name */
		{NULL, ZB_COPY_BYTES / 2, true, false, true},
		{NULL, ZB_COPY_BYTES / 2 + 1, true, false, false},
		{"{\"fs\":{\"read\":[\"/usr/share\"]}}", 5, true, false, false},
		{"{\"fs\":{\"exec\":[\"/usr/share/few/a\"]}}", 5, true, false,
		 false},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		zb_auto(free) char *text = NULL;
		struct zb_buf b = {0};
		struct fake_setup s;
		struct zb_plan p;

		setup(&s, STRICT, rows[i].over);
		s.fake.size = rows[i].size;
		s.fake.names = rows[i].more ? 9 : 0;
		s.facts.list = rows[i].list ? fake_list : NULL;
		s.base[6] = need(dir, ZB_MAY_READ | ZB_MAY_LIST,
				 "runtimes/base.json");
		s.facts.n_base_needs = 7;
		s.needs[2] = need("/usr/share/doc", ZB_MAY_READ | ZB_MAY_LIST,
				  "runtimes/python.json");
		s.needs[3] = need("/usr/share/none", ZB_MAY_READ | ZB_MAY_LIST,
				  "runtimes/python.json");
		s.needs[4] = need("/usr/share/pylib", ZB_MAY_READ | ZB_MAY_LIST,
				  "runtimes/python.json");
		s.program.n_needs = 5;
		assert_int_equal(fake_plan(&s, &p), 0);
		assert_true(keeps_order(&p));
		zb_plan_print(&p, &b);
		text = zb_buf_steal(&b);
		assert_int_equal(
			has_line(text, "  dir     r---l /usr/share/few"),
			rows[i].unfolded);
		if (rows[i].unfolded) {
			int a = zb_plan_place(&p, "/usr/share/few/a");

			assert_true(p.places[a].copied);
			assert_true(has_line(
				text, "  system  r---- /usr/share/few/a"));
			assert_true(has_line(
				text, "  system  r---- /usr/share/few/sub/b"));
			assert_true(has_line(
				text, "  dir     r---l /usr/share/few/sub"));
			assert_true(has_line(
				text, "  link    r---- /usr/share/few/l -> a"));
		}
		/* Of a runtime no source is copied: its time counts. */
		if (rows[i].unfolded) {
			assert_true(has_line(
				text, "  runtime r---l /usr/share/pylib"));
			assert_true(has_line(text,
					     "  dir     r---l /usr/share/doc"));
			assert_true(has_line(
				text, "  runtime r---- /usr/share/doc/x"));
			assert_true(has_line(
				text, "  dir     r---l /usr/share/none"));
		}
		zb_plan_done(&p);
		fake_done(&s);
	}
}

/* The links to one of several programs are there for a directory of programs.
 */
static void alternatives_of_a_directory(void **state)
{
	static const struct {
		const char *over;
		bool there;
	} rows[] = {
		{NULL, false},
		{"{\"fs\":{\"exec\":[\"/usr/bin/env\"]}}", false},
		{"{\"fs\":{\"read\":[\"~/src\"]}}", false},
		{"{\"fs\":{\"exec\":[\"/usr/bin\"]}}", true},
		{"{\"fs\":{\"read\":[\"/usr/share\"]}}", true},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		struct fake_setup s;
		struct zb_plan p;
		struct zb_buf b = {0};

		setup(&s, STRICT, rows[i].over);
		assert_int_equal(fake_plan(&s, &p), 0);
		zb_plan_print(&p, &b);
		assert_int_equal(has_line(zb_buf_str(&b),
					  "  system  r---l /etc/alternatives"),
				 rows[i].there);
		zb_buf_done(&b);
		zb_plan_done(&p);
		fake_done(&s);
	}
}

static void each_path_is_looked_at_once(void **state)
{
	struct fake_setup s;
	struct zb_plan p;

	(void)state;
	setup(&s, "standard", NULL);
	assert_int_equal(fake_plan(&s, &p), 0);
	assert_true(s.fake.looks < 60);
	zb_plan_done(&p);
	fake_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places),
		cmocka_unit_test(refused),
		cmocka_unit_test(meant),
		cmocka_unit_test(notices),
		cmocka_unit_test(project_states),
		cmocka_unit_test(project_words),
		cmocka_unit_test(own_is_not_written),
		cmocka_unit_test(own_project_is_read),
		cmocka_unit_test(project_is_extension),
		cmocka_unit_test(environment),
		cmocka_unit_test(verbs_and_limits),
		cmocka_unit_test(bad_facts),
		cmocka_unit_test(program_must_be_there),
		cmocka_unit_test(needs_through_a_box),
		cmocka_unit_test(accounts),
		cmocka_unit_test(invariants),
		cmocka_unit_test(small_files_are_copied),
		cmocka_unit_test(a_held_home_stays_held),
		cmocka_unit_test(what_is_shown_anyway_is_no_mount),
		cmocka_unit_test(small_directories_are_unfolded),
		cmocka_unit_test(alternatives_of_a_directory),
		cmocka_unit_test(each_path_is_looked_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
