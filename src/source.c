/* source.c - judging sources and running git.
 *
 * git is told everything on its command line and in its environment: only the
 * transports that were judged, no prompt (it has no terminal), no hook, no
 * fsmonitor, no submodule. What a repository brings along could still choose
 * filters of the user's own configuration by its .gitattributes; the template
 * puts attributes into the clone that have the last word: files are the bytes
 * that were committed. git runs in a session of its own, which is killed as a
 * whole and does not outlive us. */
#include "config.h"

#include "cleanup.h"
#include "fdutil.h"
#include "source.h"
#include "store.h"
#include "text.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define GIT_WORDS_MAX ((size_t)64 << 10)
/* Most that one file of a clone may have: packs are files too. */
#define GIT_FILE_MAX ((rlim_t)8 << 30)
/* How long what git left behind may keep its words open. */
#define GIT_LINGER_MS 300

extern char **environ;

void zb_source_done(struct zb_source *s)
{
	free(s->given);
	free(s->url);
	free(s->ref);
	free(s->dir);
	free(s->shown);
	free(s->commit);
	*s = (struct zb_source){0};
}

static bool starts(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* user@host:path, without a scheme and without a slash before the colon. */
static bool is_scp_like(const char *s)
{
	const char *colon = strchr(s, ':'), *at = strchr(s, '@');

	return colon && at && at < colon && at != s &&
	       !memchr(s, '/', (size_t)(colon - s)) && colon[1];
}

/* The host part must not be an option for ssh. */
static bool hides_option(const char *s)
{
	const char *host = strstr(s, "://");
	const char *at;

	host = host ? host + 3 : s;
	at = strchr(host, '@');
	return *host == '-' || (at && at[1] == '-');
}

/* Which transports git may use for a URL: the one that was judged, and the
 * secure ones that a user's own insteadOf may turn it into. */
static const struct {
	const char *prefix, *allow;
} transports[] = {
	{"https://", "https:ssh"},
	{"ssh://", "ssh:https"},
	{"file://", "file"},
	{"http://", "http:https:ssh"},
};

static const char *allowed_for(const char *s)
{
	for (size_t i = 0; i < ZB_ARRAY_LEN(transports); i++)
		if (starts(s, transports[i].prefix))
			return transports[i].allow;
	/* A directory that is a bare repository, or user@host:path. */
	return s[0] == '/' ? "file" : "ssh:https";
}

static int transport(const char *s, bool allow_http, struct zb_error *err)
{
	if (starts(s, "http://") && !allow_http)
		return zb_fail(err, ZB_EPOLICY,
			       "%s: plain http can be changed on the way; use "
			       "https, or --allow-http",
			       s);
	for (size_t i = 0; i < ZB_ARRAY_LEN(transports); i++)
		if (starts(s, transports[i].prefix))
			return 0;
	if (is_scp_like(s) && !strstr(s, "::"))
		return 0;
	return zb_fail(err, ZB_EPOLICY,
		       "%s: this transport is not allowed (https, ssh, "
		       "user@host:path and file are)",
		       s);
}

static bool looks_like_url(const char *s)
{
	return strstr(s, "://") || strstr(s, "::") || is_scp_like(s);
}

/* One line of a small file, without the newline. */
static char *first_line(const char *dir, const char *name)
{
	zb_auto(free) char *path = zb_strf("%s/%s", dir, name);
	struct zb_buf b = {0};
	char *line = NULL;

	if (path && !zb_read_file(path, 4096, &b, NULL) && b.len)
		line = zb_strndup(b.data, strcspn(b.data, "\r\n"));
	zb_buf_done(&b);
	return line;
}

static bool is_hash(const char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		if (!isxdigit((unsigned char)s[i]))
			return false;
	return n == 40 || n == 64;
}

/* The commit of @ref in packed-refs: lines "HASH REF". */
static char *packed_commit(const char *git, const char *ref)
{
	zb_auto(free) char *path = zb_strf("%s/packed-refs", git);
	struct zb_buf b = {0};
	char *commit = NULL;
	const char *line;

	if (!path || zb_read_file(path, (size_t)4 << 20, &b, NULL)) {
		zb_buf_done(&b);
		return NULL;
	}
	for (line = zb_buf_str(&b); *line && !commit;) {
		size_t n = strcspn(line, "\n"), h = strcspn(line, " \n");

		if (n - h == strlen(ref) + 1 &&
		    !strncmp(line + h + 1, ref, strlen(ref)))
			commit = zb_strndup(line, h);
		line += n + (line[n] == '\n');
	}
	zb_buf_done(&b);
	if (commit && is_hash(commit))
		return commit;
	free(commit);
	return NULL;
}

/* The commit that a checkout's HEAD names, read without running git in it:
 * its configuration would be a stranger's code. NULL if unclear. */
static char *head_commit(const char *dir)
{
	zb_auto(free) char *git = zb_strf("%s/.git", dir);
	zb_auto(free) char *head = git ? first_line(git, "HEAD") : NULL;
	char *commit;

	if (!head)
		return NULL;
	if (is_hash(head))
		return zb_steal(&head);
	if (!starts(head, "ref: refs/") || strstr(head, ".."))
		return NULL;
	commit = first_line(git, head + 5);
	if (commit && is_hash(commit))
		return commit;
	free(commit);
	return packed_commit(git, head + 5);
}

static bool has(const char *dir, const char *name, mode_t kind)
{
	zb_auto(free) char *path = zb_strf("%s/%s", dir, name);
	struct stat st;

	return path && !lstat(path, &st) && (st.st_mode & S_IFMT) == kind;
}

/* A repository without a work tree, as git itself recognises one. */
static bool is_bare(const char *dir)
{
	return has(dir, "HEAD", S_IFREG) && has(dir, "objects", S_IFDIR) &&
	       has(dir, "refs", S_IFDIR);
}

static int no_source(const char *given, struct zb_error *err)
{
	struct zb_buf shown = {0};

	zb_text_escape(&shown, given, strlen(given), 200);
	if (*given == '/' || *given == '.' || *given == '~')
		zb_fail(err, ZB_EUSAGE, "%s: no such directory",
			zb_buf_str(&shown));
	else
		zb_fail(err, ZB_EUSAGE,
			"\"%s\" is not a path or git URL: there is no such "
			"directory here, and a URL begins with https://, "
			"ssh:// or user@host:",
			zb_buf_str(&shown));
	zb_buf_done(&shown);
	return ZB_EUSAGE;
}

static int parse_path(struct zb_source *out, struct zb_error *err)
{
	zb_auto(free) char *manifest = zb_strf("%s/extension.json", out->given);
	struct stat st;

	if (stat(out->given, &st)) {
		if (errno == ENOENT || errno == ENAMETOOLONG)
			return no_source(out->given, err);
		return zb_fail_sys(err, errno, "%s", out->given);
	}
	if (!S_ISDIR(st.st_mode))
		return zb_fail(err, ZB_EUSAGE, "not a directory: %s",
			       out->given);
	out->dir = realpath(out->given, NULL);
	if (!out->dir || !manifest)
		return zb_fail_sys(err, errno, "%s", out->given);
	if (!lstat(manifest, &st)) {
		out->commit = head_commit(out->dir);
		return 0;
	}
	if (errno != ENOENT)
		return zb_fail_sys(err, errno, "%s", manifest);
	if (!is_bare(out->dir))
		return zb_fail(err, ZB_EUSAGE,
			       "%s: source lacks extension.json", out->given);
	out->kind = ZB_SOURCE_GIT;
	return 0;
}

/* @given without the password that a URL may hold. */
static char *without_secret(const char *given)
{
	const char *host = strstr(given, "://");
	const char *at = host ? strchr(host + 3, '@') : NULL;
	const char *colon =
		at ? memchr(host + 3, ':', (size_t)(at - host - 3)) : NULL;

	if (!colon || (size_t)(at - host - 3) > strcspn(host + 3, "/?#"))
		return zb_strdup(given);
	return zb_strf("%.*s%s", (int)(colon - given), given, at);
}

/* A branch or tag as git allows them, or less. */
static bool is_ref(const char *s)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRS"
				 "TUVWXYZ0123456789._/+@-";
	size_t n = strlen(s);

	return n && n <= 200 && s[0] != '-' && s[0] != '/' && s[n - 1] != '/' &&
	       strspn(s, ok) == n && !strstr(s, "..") && !strstr(s, "//") &&
	       !strstr(s, "@{");
}

/* "URL#REF" taken apart. */
static int split_ref(struct zb_source *out, struct zb_error *err)
{
	const char *at = strrchr(out->given, '#');
	struct zb_buf shown = {0};

	out->url = at ? zb_strndup(out->given, (size_t)(at - out->given))
		      : zb_strdup(out->given);
	out->ref = at ? zb_strdup(at + 1) : NULL;
	if (!out->url || (at && !out->ref))
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	if (!at || is_ref(out->ref))
		return 0;
	zb_text_escape(&shown, out->ref, strlen(out->ref), 100);
	zb_fail(err, ZB_EUSAGE, "\"%s\", after the #, is no branch or tag",
		zb_buf_str(&shown));
	zb_buf_done(&shown);
	return ZB_EUSAGE;
}

int zb_source_parse(struct zb_source *out, const char *given, bool allow_http,
		    struct zb_error *err)
{
	struct stat st;
	int rc = 0;

	*out = (struct zb_source){.given = zb_strdup(given)};
	if (!out->given)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	if (!*given || *given == '-')
		rc = no_source(given, err);
	else if (!stat(given, &st) || !looks_like_url(given))
		rc = parse_path(out, err);
	else if (!zb_text_is_plain(given, strlen(given)))
		rc = zb_fail(err, ZB_EUSAGE, "a URL has no control characters");
	else if (hides_option(given))
		rc = zb_fail(err, ZB_EUSAGE, "%s: a host does not begin with -",
			     given);
	else if (!(rc = transport(given, allow_http, err)) &&
		 !(rc = split_ref(out, err)))
		out->kind = ZB_SOURCE_GIT;
	if (!rc) {
		out->shown =
			out->dir ? zb_strdup(out->dir) : without_secret(given);
		if (!out->shown)
			rc = zb_fail(err, ZB_ELIMIT, "out of memory");
	}
	if (rc)
		zb_source_done(out);
	return rc;
}

/* Of git's variables only those that say how to reach a host, and what the
 * user's configuration is; the rest would be about another repository. */
static bool is_kept(const char *name)
{
	static const char *const kept[] = {
		"GIT_SSH",    "GIT_SSL_",	   "GIT_HTTP_",
		"GIT_PROXY_", "GIT_CONFIG_GLOBAL",
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(kept); i++)
		if (starts(name, kept[i]))
			return true;
	return false;
}

static void forget_git_variables(void)
{
	for (char **e = environ; *e;) {
		zb_auto(free) char *name = zb_strndup(*e, strcspn(*e, "="));

		if (name && starts(name, "GIT_") && !is_kept(name))
			unsetenv(name); /* the next one is here now */
		else
			e++;
	}
}

/* In the child: only what is set here differs from the user's environment. */
static void git_environment(const char *protocols)
{
	const char *const vars[][2] = {
		{"GIT_TERMINAL_PROMPT", "0"},
		{"GIT_ASKPASS", "true"},
		{"SSH_ASKPASS", "true"},
		{"SSH_ASKPASS_REQUIRE", "never"},
		{"GCM_INTERACTIVE", "never"},
		{"GIT_LFS_SKIP_SMUDGE", "1"},
		{"GIT_CONFIG_NOSYSTEM", "1"},
		{"GIT_ATTR_NOSYSTEM", "1"},
		{"GIT_NO_LAZY_FETCH", "1"},
		{"GIT_ALLOW_PROTOCOL", protocols},
		{"LC_ALL", "C"},
	};

	forget_git_variables();
	for (size_t i = 0; i < ZB_ARRAY_LEN(vars); i++)
		setenv(vars[i][0], vars[i][1], 1);
	unsetenv("DISPLAY");
	unsetenv("WAYLAND_DISPLAY");
}

static void become_git(const char *const *argv, const char *protocols, int err)
{
	const struct rlimit most = {GIT_FILE_MAX, GIT_FILE_MAX};
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	/* No controlling terminal: whoever wants to ask has nobody to. */
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_FSIZE, &most);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	git_environment(protocols);
	/* execvp takes the strings as they are and changes none. */
	execvp("git", (char *const *)(uintptr_t)argv);
	dprintf(STDERR_FILENO, "the program git cannot be started: %s\n",
		strerror(errno));
	_exit(127);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* One run of git. */
struct run {
	pid_t pid;
	int words_fd;
	struct zb_buf words;
	bool ended;
	int status;
};

/* What git said, as far as it is there. Return: false at the end. */
static bool read_words(struct run *r, int wait_ms)
{
	struct pollfd p = {.fd = r->words_fd, .events = POLLIN};
	char block[4096];
	ssize_t n;

	if (poll(&p, 1, wait_ms) <= 0)
		return true;
	n = read(r->words_fd, block, sizeof(block));
	if (n < 0)
		return errno == EINTR;
	if (r->words.len + (size_t)n < GIT_WORDS_MAX)
		zb_buf_add(&r->words, block, (size_t)n);
	return n > 0;
}

/* It is not collected yet: its number stays its own until end_git(). */
static bool has_ended(pid_t pid)
{
	siginfo_t info = {0};

	return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
	       info.si_pid == pid;
}

/* Listen until git has ended; what it started may keep its words open for
 * ever (a shared ssh connection does). Return: why it must be killed, or
 * NULL. */
static const char *attend(struct run *r, int64_t deadline,
			  const volatile sig_atomic_t *stop)
{
	bool more = true;
	int64_t end = 0;

	while (!r->ended || (more && now_ms() < end)) {
		if (stop && *stop)
			return "interrupted";
		if (now_ms() > deadline)
			return "it took too long";
		if (more)
			more = read_words(r, r->ended ? 20 : 100);
		else
			nanosleep(&(struct timespec){.tv_nsec = 10000000},
				  NULL);
		if (!r->ended && has_ended(r->pid)) {
			r->ended = true;
			end = now_ms() + GIT_LINGER_MS;
		}
	}
	return NULL;
}

static void end_git(struct run *r)
{
	kill(-r->pid, SIGKILL);
	while (waitpid(r->pid, &r->status, 0) < 0 && errno == EINTR)
		;
	close(r->words_fd);
}

/* One message out of the reason and git's own words. */
static int git_failed(const struct run *r, const char *url, const char *why,
		      struct zb_error *err)
{
	/* What git says, by its version and transport, when it wants to know
	 * who we are and nobody can be asked. */
	static const char *const asks[] = {
		"terminal prompts disabled", "could not read Username",
		"could not read Password",   "unable to get password from user",
		"Authentication failed",
	};
	struct zb_buf words = {0};
	const char *s = zb_buf_str(&r->words);
	bool asked = false;

	for (size_t i = 0; i < ZB_ARRAY_LEN(asks) && !asked; i++)
		asked = strstr(s, asks[i]);
	if (asked)
		zb_buf_addf(&words,
			    "authentication needed for %s (prompts "
			    "are off): ",
			    url);
	for (; *s; s += strcspn(s, "\n"), s += *s == '\n') {
		size_t n = strcspn(s, "\n");

		if (words.len > 1200)
			break;
		if (n) /* ssh ends its lines with a CR as well */
			zb_text_escape(&words, s, n - (s[n - 1] == '\r'), 400);
		if (n && s[n] && s[n + 1])
			zb_buf_adds(&words, "; ");
	}
	zb_fail(err, ZB_ESYS, "git clone failed%s%s: %s", why ? ": " : "",
		why ? why : "",
		words.len ? zb_buf_str(&words) : "it failed without a word");
	zb_buf_done(&words);
	return ZB_ESYS;
}

static int run_git(const char *const *argv, const char *url,
		   const char *protocols, unsigned seconds,
		   const volatile sig_atomic_t *stop, struct zb_error *err)
{
	struct run r = {0};
	const char *why;
	int p[2], rc = 0;

	if (pipe2(p, O_CLOEXEC))
		return zb_fail_sys(err, errno, "pipe");
	r.pid = fork();
	if (!r.pid)
		become_git(argv, protocols, p[1]);
	close(p[1]);
	r.words_fd = p[0];
	if (r.pid < 0) {
		close(p[0]);
		return zb_fail_sys(err, errno, "start git");
	}
	why = attend(&r, now_ms() + (int64_t)seconds * 1000, stop);
	end_git(&r);
	if (why && stop && *stop)
		rc = zb_fail(err, ZB_ESYS, "interrupted");
	else if (why || !WIFEXITED(r.status) || WEXITSTATUS(r.status))
		rc = git_failed(&r, url, why, err);
	zb_buf_done(&r.words);
	return rc;
}

/* A template whose attributes have the last word over the repository's own:
 * no filter, no conversion. */
static int make_template(const char *dir, struct zb_error *err)
{
	static const char text[] =
		"* -filter -text -eol -crlf -ident -working-tree-encoding\n";
	zb_auto(free) char *info = zb_strf("%s/info", dir);
	zb_auto(free) char *path = zb_strf("%s/info/attributes", dir);

	if (!info || !path)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	if (mkdir(dir, 0700) || mkdir(info, 0700))
		return zb_fail_sys(err, errno, "mkdir %s", info);
	return zb_write_file_atomic(path, text, sizeof(text) - 1, 0600, err);
}

int zb_source_clone(struct zb_source *s, const char *dir, unsigned seconds,
		    const volatile sig_atomic_t *stop, struct zb_error *err)
{
	const char *url = s->dir ? s->dir : s->url;
	zb_auto(free) char *template = zb_strf("%s.template", dir);
	zb_auto(free) char *option =
		template ? zb_strf("--template=%s", template) : NULL;
	const char *const argv[] = {
		"git",
		"-c",
		"core.hooksPath=/dev/null",
		"-c",
		"core.fsmonitor=false",
		"-c",
		"core.autocrlf=false",
		"-c",
		"core.symlinks=true",
		"-c",
		"protocol.ext.allow=never",
		"-c",
		"submodule.recurse=false",
		"-c",
		"http.lowSpeedLimit=100",
		"-c",
		"http.lowSpeedTime=30",
		"-c",
		"credential.interactive=false",
		"-c",
		"gc.auto=0",
		"-c",
		"maintenance.auto=false",
		"clone",
		"--quiet",
		"--depth",
		"1",
		"--no-tags",
		option,
		"--no-recurse-submodules",
		"--no-hardlinks",
		"--no-local",
		s->ref ? "--branch" : "--no-local",
		s->ref ? s->ref : "--no-local",
		"--",
		url,
		dir,
		NULL,
	};
	int rc;

	if (!option)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	rc = make_template(template, err);
	if (!rc)
		rc = run_git(argv, s->shown, allowed_for(url), seconds, stop,
			     err);
	zb_remove_tree(template, NULL);
	if (rc)
		return rc;
	s->commit = head_commit(dir);
	return 0;
}

/* Value of "KEY = VALUE" in a line of .gitmodules, or NULL. */
static char *config_value(const char *line, size_t n, const char *key)
{
	size_t k = strlen(key), i = 0;

	while (i < n && (line[i] == ' ' || line[i] == '\t'))
		i++;
	if (n - i <= k || strncmp(line + i, key, k))
		return NULL;
	i += k;
	while (i < n && (line[i] == ' ' || line[i] == '\t' || line[i] == '='))
		i++;
	while (n > i && (line[n - 1] == '\r' || line[n - 1] == ' '))
		n--;
	return zb_strndup(line + i, n - i);
}

static bool is_empty_dir(const char *dir, const char *sub)
{
	zb_auto(free) char *path = zb_strf("%s/%s", dir, sub);
	DIR *d = path ? opendir(path) : NULL;
	struct dirent *e;
	bool empty = true;

	if (!d)
		return true;
	while (empty && (e = readdir(d)))
		empty = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	closedir(d);
	return empty;
}

/* A section of .gitmodules is read. */
static int judge_submodule(const char *dir, char **path, char **url,
			   struct zb_strv *warnings)
{
	struct zb_buf p = {0}, u = {0};
	int rc = 0;

	if (*path && is_empty_dir(dir, *path)) {
		zb_text_escape(&p, *path, strlen(*path), 200);
		if (*url)
			zb_text_escape(&u, *url, strlen(*url), 200);
		rc = zb_strv_addf(warnings,
				  "submodule %s (%s) was not fetched; the "
				  "extension may lack files",
				  zb_buf_str(&p),
				  *url ? zb_buf_str(&u) : "no URL");
		zb_buf_done(&p);
		zb_buf_done(&u);
	}
	free(*path);
	free(*url);
	*path = *url = NULL;
	return rc;
}

int zb_source_submodules(const char *dir, struct zb_strv *warnings)
{
	zb_auto(free) char *file = zb_strf("%s/.gitmodules", dir);
	char *path = NULL, *url = NULL;
	struct zb_buf b = {0};
	int rc = 0;

	if (!file || zb_read_file(file, (size_t)1 << 20, &b, NULL)) {
		zb_buf_done(&b);
		return 0;
	}
	for (const char *p = zb_buf_str(&b); !rc && *p;) {
		size_t n = strcspn(p, "\n");
		char *value;

		if (p[strspn(p, " \t")] == '[')
			rc = judge_submodule(dir, &path, &url, warnings);
		else if ((value = config_value(p, n, "path")))
			free(path), path = value;
		else if ((value = config_value(p, n, "url")))
			free(url), url = value;
		p += n + (p[n] == '\n');
	}
	if (!rc)
		rc = judge_submodule(dir, &path, &url, warnings);
	free(path);
	free(url);
	zb_buf_done(&b);
	return rc;
}
