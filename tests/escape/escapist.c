/* escapist.c - the extension of the escape suite, in C: what it does is one
 * system call after the other, and nothing else shows up in the ledger.
 *
 * Inside a sandbox it is an extension with one tool, `act`, whose argument
 * {"argv":["NAME","ARG",...]} names an act and what to do it on. Outside,
 * `escapist NAME ARG...` does the very same: the control. Each act runs in a
 * process of its own for a bounded time, and its outcome is one line:
 *
 *	ok TEXT		it got out
 *	no ERRNO TEXT	it did not
 *	died SIGNAL	it was killed
 *	hung		it was given up
 */
#include "config.h"

#include "escapist.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 45000
#define LINE_MAX_IN 65536

static const struct act *const tables[] = {
	acts_files, acts_meta,	acts_process, acts_kernel,
	acts_net,   acts_facts, acts_plant,
};

void say(struct say *s, const char *fmt, ...)
{
	size_t n = strlen(s->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->text + n, sizeof(s->text) - n, fmt, ap);
	va_end(ap);
}

int number(const char *text)
{
	return (int)strtoul(text, NULL, 0);
}

const char *fd_path(int fd)
{
	static char path[2][40];
	static int i;

	i = !i;
	snprintf(path[i], sizeof(path[i]), "/proc/self/fd/%d", fd);
	return path[i];
}

int secret_in(int fd, int err, struct say *s)
{
	char buf[256];
	ssize_t n;

	if (fd < 0)
		return err ? err : EBADF;
	n = read(fd, buf, sizeof(buf) - 1);
	err = errno;
	close(fd);
	if (n < 0)
		return err;
	buf[n] = '\0';
	say(s, "%.60s", buf);
	return strstr(buf, SECRET) ? 0 : ENODATA;
}

static const struct act *find(const char *name)
{
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
		for (const struct act *a = tables[t]; a->name; a++)
			if (!strcmp(a->name, name))
				return a;
	return NULL;
}

/* In a process of its own: do it, and write the outcome to @fd. */
static _Noreturn void perform(const struct act *a, char **argv, int fd)
{
	static struct say s;
	char line[SAY_MAX + 64];
	int e, n;

	setpgid(0, 0);
	e = a->run(argv, &s);
	if (e)
		n = snprintf(line, sizeof(line), "no %s %s",
			     strerrorname_np(e) ? strerrorname_np(e) : "?",
			     s.text);
	else
		n = snprintf(line, sizeof(line), "ok %s", s.text);
	while (n > 0 && line[n - 1] == ' ')
		n--;
	if (write(fd, line, (size_t)n) < 0)
		_exit(2);
	_exit(0);
}

/* Collect the outcome. */
static void outcome(pid_t pid, int fd, char *out, size_t cap)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int status = 0;
	ssize_t n = 0;

	if (poll(&p, 1, PATIENCE_MS) > 0)
		n = read(fd, out, cap - 1);
	else
		snprintf(out, cap, "hung");
	close(fd);
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (n > 0)
		out[n] = '\0';
	else if (strcmp(out, "hung"))
		snprintf(out, cap, "died %d", WTERMSIG(status));
}

static void do_act(int argc, char **argv, char *out, size_t cap)
{
	const struct act *a = argc ? find(argv[0]) : NULL;
	int p[2];
	pid_t pid;

	out[0] = '\0';
	if (!a || a->args != argc - 1 || pipe2(p, O_CLOEXEC)) {
		snprintf(out, cap, "bad act");
		return;
	}
	pid = fork();
	if (pid < 0) {
		snprintf(out, cap, "bad fork");
		close(p[0]);
		close(p[1]);
		return;
	}
	if (!pid) {
		close(p[0]);
		perform(a, argv + 1, p[1]);
	}
	close(p[1]);
	outcome(pid, p[0], out, cap);
}

/* ---- the extension --------------------------------------------------------*/

/* Take the JSON string at *@p apart in place. Return: it, or NULL. */
static char *string(char **p)
{
	char *s = *p, *out, *start;

	while (*s == ' ' || *s == ',')
		s++;
	if (*s++ != '"')
		return NULL;
	start = out = s;
	for (; *s && *s != '"'; s++) {
		if (*s == '\\' && s[1])
			s++;
		*out++ = *s;
	}
	*p = s + 1;
	*out = '\0';
	return start;
}

static void quote(const char *text, char *out, size_t cap)
{
	size_t n = 0;

	for (; *text && n + 8 < cap; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c > 0x7e) {
			n += (size_t)snprintf(out + n, cap - n, "\\u%04x", c);
			continue;
		}
		if (c == '"' || c == '\\')
			out[n++] = '\\';
		out[n++] = (char)c;
	}
	out[n] = '\0';
}

static void answer(char *line)
{
	static char out[SAY_MAX + 64], quoted[6 * sizeof(out)];
	char *argv[MAX_ARGS + 1], *id = strstr(line, "\"id\":"),
				  *args = strstr(line, "\"argv\":");
	int argc = 0;

	if (!id || !args)
		return;
	args = strchr(args, '[');
	id += strlen("\"id\":");
	id = string(&id);
	if (!id || !args++)
		return;
	while (argc < MAX_ARGS && (argv[argc] = string(&args)))
		argc++;
	do_act(argc, argv, out, sizeof(out));
	quote(out, quoted, sizeof(quoted));
	printf("{\"type\":\"tool_result\",\"id\":\"%s\",\"content\":[{\"type\":"
	       "\"text\",\"text\":\"%s\"}],\"is_error\":false}\n",
	       id, quoted);
	fflush(stdout);
}

static int serve(void)
{
	static char line[LINE_MAX_IN];

	printf("{\"type\":\"hello\",\"name\":\"esc\",\"version\":\"1.0.0\""
	       ",\"capabilities\":[\"tools\"]}\n"
	       "{\"type\":\"register_tool\",\"name\":\"act\",\"description\":"
	       "\"act\",\"schema\":{\"type\":\"object\"}}\n"
	       "{\"type\":\"ready\"}\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		if (strstr(line, "\"tool_call\""))
			answer(line);
		else if (strstr(line, "\"shutdown\""))
			return 0;
	return 0;
}

/* Somebody to look at: holds a secret in its memory, and lets everybody look
 * who may at all. Says where, and which signals reached it. */
static char hidden[] = SECRET "-MEMORY";
static volatile sig_atomic_t signals;

static void count(int sig)
{
	(void)sig;
	signals++;
}

static int victim(void)
{
	struct sigaction sa = {.sa_handler = count};
	char c;

#ifdef PR_SET_PTRACER
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
	sigaction(SIGURG, &sa, NULL);
	printf("%lu\n", (unsigned long)(size_t)hidden);
	fflush(stdout);
	/* A line in: how many signals came. */
	for (;;) {
		ssize_t n = read(0, &c, 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		printf("%d\n", (int)signals);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	static char out[SAY_MAX + 64];

	if (argc < 2)
		return serve();
	if (!strcmp(argv[1], "victim"))
		return victim();
	/* For set-id tests: who am I? */
	if (!strcmp(argv[1], "whoami"))
		return (int)(geteuid() != getuid());
	do_act(argc - 1, argv + 1, out, sizeof(out));
	puts(out);
	return 0;
}
