/* cmd.c - what all commands share: how a program begins, results to stdout,
 * messages to stderr. */
#include "cmd.h"
#include "cleanup.h"
#include "memory.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* A program started with 0, 1 or 2 closed would get them for its own files,
 * and then write messages into them. */
static void fill_standard_fds(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
		    open("/dev/null", fd ? O_WRONLY : O_RDONLY) != fd)
			_exit(1);
}

static void ignore(int signo)
{
	(void)signo;
}

/* A reader that went away, and a file that is as large as ulimit -f allows, are
 * errors of write(2), not a death. A handler and not SIG_IGN: that would be
 * inherited by every program we start, where pipelines rely on SIGPIPE. */
static void survive_failed_writes(void)
{
	struct sigaction sa = {.sa_handler = ignore, .sa_flags = SA_RESTART};

	sigaction(SIGPIPE, &sa, NULL);
	sigaction(SIGXFSZ, &sa, NULL);
}

void zb_cmd_begin(void)
{
	fill_standard_fds();
	survive_failed_writes();
	zb_memory_share();
}

bool zb_cmd_on_terminal(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* write(2) until all is out. A descriptor that somebody made non-blocking is
 * waited for. */
static int write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EAGAIN) {
			struct pollfd pfd = {.fd = fd, .events = POLLOUT};

			poll(&pfd, 1, -1);
			continue;
		}
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return ZB_ESYS;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

int zb_cmd_out(const void *p, size_t n)
{
	return write_all(STDOUT_FILENO, p, n);
}

void zb_cmd_visible(struct zb_buf *out, const char *s, size_t n)
{
	while (n) {
		uint32_t cp;
		unsigned used = zb_utf8_next(s, n, &cp);

		if (!used) {
			zb_buf_addf(out, "\\x%02x", (unsigned char)*s);
			used = 1;
		} else if (zb_is_hazard(cp)) {
			zb_buf_addf(out, "\\u{%x}", cp);
		} else {
			zb_buf_add(out, s, used);
		}
		s += used;
		n -= used;
	}
}

static bool is_red_wanted(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return !(no && *no) && term && strcmp(term, "dumb") != 0 &&
	       isatty(STDERR_FILENO);
}

static void message(const char *text, bool red)
{
	struct zb_buf out = {0};

	red = red && is_red_wanted();
	zb_buf_adds(&out, "zotbox: ");
	zb_buf_adds(&out, red ? "\033[31m" : "");
	zb_cmd_visible(&out, text, strlen(text));
	zb_buf_adds(&out, red ? "\033[0m\n" : "\n");
	/* Nobody is left to tell when stderr itself fails. */
	(void)write_all(STDERR_FILENO, zb_buf_str(&out), out.len);
	zb_buf_done(&out);
}

int zb_cmd_fail(const struct zb_error *err)
{
	message(err->msg, false);
	return zb_exit_code(err->code);
}

void zb_cmd_say(const char *fmt, ...)
{
	struct zb_buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	zb_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	message(zb_buf_str(&text), false);
	zb_buf_done(&text);
}

void zb_cmd_alarm(const char *fmt, ...)
{
	struct zb_buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	zb_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	message(zb_buf_str(&text), true);
	zb_buf_done(&text);
}
