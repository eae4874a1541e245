/* source.c - judging sources and running git.
 *
 * git is told everything on its command line and in its environment: only the
 * transports that were judged, no prompt (terminal, askpass, ssh), no hook, no
 * template, no fsmonitor, no submodule. It runs in a process group of its own
 * that is killed as a whole. */
#include "config.h"

#include "source.h"
#include "cleanup.h"
#include "fdutil.h"
#include "store.h"
#include "text.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define GIT_WORDS_MAX ((size_t)64 << 10)

void zb_source_done(struct zb_source *s)
{
	free(s->given);
	free(s->dir);
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

static int transport(const char *s, bool allow_http, struct zb_error *err)
{
	static const char *const fine[] = {"https://", "ssh://", "file://"};

	for (size_t i = 0; i < ZB_ARRAY_LEN(fine); i++)
		if (starts(s, fine[i]))
			return 0;
	if (is_scp_like(s) && !strstr(s, "::"))
		return 0;
	if (starts(s, "http://") && allow_http)
		return 0;
	if (starts(s, "http://"))
		return zb_fail(err, ZB_EPOLICY,
			       "%s: plain http can be changed on the way; use "
			       "https, or --allow-http",
			       s);
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

static int parse_path(struct zb_source *out, struct zb_error *err)
{
	struct stat st;

	if (stat(out->given, &st)) {
		if (looks_like_url(out->given) || errno != ENOENT)
			return zb_fail_sys(err, errno, "%s", out->given);
		return zb_fail(err, ZB_EUSAGE,
			       "\"%s\" is not a path or git URL", out->given);
	}
	if (!S_ISDIR(st.st_mode))
		return zb_fail(err, ZB_EUSAGE, "not a directory: %s",
			       out->given);
	out->dir = realpath(out->given, NULL);
	if (!out->dir)
		return zb_fail_sys(err, errno, "%s", out->given);
	out->commit = head_commit(out->dir);
	return 0;
}

int zb_source_parse(struct zb_source *out, const char *given, bool allow_http,
		    struct zb_error *err)
{
	struct stat st;
	struct zb_buf shown = {0};
	bool plain = zb_text_is_plain(given, strlen(given));
	int rc = 0;

	*out = (struct zb_source){.given = zb_strdup(given)};
	zb_text_escape(&shown, given, strlen(given), 200);
	if (!*given || *given == '-')
		rc = zb_fail(err, ZB_EUSAGE, "\"%s\" is not a path or git URL",
			     zb_buf_str(&shown));
	else if (!stat(given, &st) || !looks_like_url(given))
		rc = parse_path(out, err);
	else if (!plain)
		rc = zb_fail(err, ZB_EUSAGE,
			     "\"%s\": a URL has no control characters",
			     zb_buf_str(&shown));
	else if (hides_option(given))
		rc = zb_fail(err, ZB_EUSAGE,
			     "\"%s\": a host does not begin with -",
			     zb_buf_str(&shown));
	else if (!(rc = transport(given, allow_http, err)))
		out->kind = ZB_SOURCE_GIT;
	zb_buf_done(&shown);
	if (rc)
		zb_source_done(out);
	return rc;
}

/* In the child: only what is set here differs from the user's environment. */
static void git_environment(const char *protocols)
{
	static const char *const vars[][2] = {
		{"GIT_TERMINAL_PROMPT", "0"}, {"GIT_ASKPASS", "true"},
		{"SSH_ASKPASS", "true"},      {"GIT_LFS_SKIP_SMUDGE", "1"},
		{"GIT_CONFIG_NOSYSTEM", "1"},
	};
	static const char *const unset[] = {
		"GIT_DIR",	    "GIT_WORK_TREE", "GIT_INDEX_FILE",
		"GIT_TEMPLATE_DIR", "GIT_EXEC_PATH", "DISPLAY",
	};

	for (size_t i = 0; i < ZB_ARRAY_LEN(vars); i++)
		setenv(vars[i][0], vars[i][1], 1);
	for (size_t i = 0; i < ZB_ARRAY_LEN(unset); i++)
		unsetenv(unset[i]);
	setenv("GIT_ALLOW_PROTOCOL", protocols, 1);
	setenv("GIT_SSH_COMMAND", "ssh -oBatchMode=yes -oConnectTimeout=20", 0);
}

static void become_git(const char *const *argv, const char *protocols, int err)
{
	int null = open("/dev/null", O_RDWR);

	setpgid(0, 0);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	git_environment(protocols);
	/* execvp takes the strings as they are and changes none. */
	execvp("git", (char *const *)(uintptr_t)argv);
	dprintf(STDERR_FILENO, "git: %s\n", strerror(errno));
	_exit(127);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Read git's words until it closes them. Return: why it must be killed, or
 * NULL. */
static const char *listen_to(int fd, struct zb_buf *words, int64_t deadline,
			     const volatile sig_atomic_t *stop)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char block[4096];

	for (;;) {
		ssize_t n;

		if (stop && *stop)
			return "interrupted";
		if (now_ms() > deadline)
			return "took too long";
		if (poll(&p, 1, 200) <= 0)
			continue;
		n = read(fd, block, sizeof(block));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return NULL;
		if (words->len + (size_t)n < GIT_WORDS_MAX)
			zb_buf_add(words, block, (size_t)n);
	}
}

static int run_git(const char *const *argv, const char *protocols,
		   unsigned seconds, const volatile sig_atomic_t *stop,
		   struct zb_error *err)
{
	struct zb_buf words = {0};
	int p[2], status = 0, rc = 0;
	const char *why;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC))
		return zb_fail_sys(err, errno, "pipe");
	pid = fork();
	if (!pid)
		become_git(argv, protocols, p[1]);
	close(p[1]);
	if (pid < 0) {
		close(p[0]);
		return zb_fail_sys(err, errno, "start git");
	}
	why = listen_to(p[0], &words, now_ms() + (int64_t)seconds * 1000, stop);
	close(p[0]);
	if (why)
		kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (why && stop && *stop)
		rc = zb_fail_sys(err, EINTR, "git clone");
	else if (why || !WIFEXITED(status) || WEXITSTATUS(status)) {
		struct zb_buf shown = {0};

		zb_text_escape(&shown, zb_buf_str(&words), words.len, 900);
		rc = zb_fail(err, ZB_ESYS, "git clone failed%s%s: %s",
			     why ? ": " : "", why ? why : "",
			     words.len ? zb_buf_str(&shown) : "no message");
		zb_buf_done(&shown);
	}
	zb_buf_done(&words);
	return rc;
}

int zb_source_clone(struct zb_source *s, const char *dir, unsigned seconds,
		    const volatile sig_atomic_t *stop, struct zb_error *err)
{
	const char *protocols = starts(s->given, "http://")
					? "https:ssh:file:http"
					: "https:ssh:file";
	const char *const argv[] = {
		"git",
		"-c",
		"core.hooksPath=/dev/null",
		"-c",
		"core.fsmonitor=false",
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
		"clone",
		"--quiet",
		"--depth",
		"1",
		"--template=",
		"--no-recurse-submodules",
		"--no-hardlinks",
		"--no-local",
		"--",
		s->given,
		dir,
		NULL,
	};
	int rc = run_git(argv, protocols, seconds, stop, err);

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

int zb_source_submodules(const char *dir, struct zb_strv *warnings)
{
	zb_auto(free) char *path = zb_strf("%s/.gitmodules", dir);
	zb_auto(free) char *sub = NULL;
	struct zb_buf b = {0};
	const char *p;

	if (!path || zb_read_file(path, (size_t)1 << 20, &b, NULL)) {
		zb_buf_done(&b);
		return 0;
	}
	for (p = zb_buf_str(&b); *p; p += strcspn(p, "\n"), p += *p == '\n') {
		size_t n = strcspn(p, "\n");
		char *value = config_value(p, n, "path");
		zb_auto(free) char *url = NULL;

		if (value) {
			free(sub);
			sub = value;
			continue;
		}
		url = config_value(p, n, "url");
		if (url && sub && is_empty_dir(dir, sub))
			zb_strv_addf(warnings,
				     "submodule %s (%s) was not fetched; the "
				     "extension may lack files",
				     sub, url);
	}
	zb_buf_done(&b);
	return 0;
}
