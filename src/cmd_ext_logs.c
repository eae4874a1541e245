/* cmd_ext_logs.c - zotbox ext logs: the text log, or the denials. */
#include "backend.h"
#include "cleanup.h"
#include "cmd.h"
#include "discover.h"
#include "fdutil.h"
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
	OPT_FOLLOW,
	OPT_DENIALS,
	OPT_SINCE,
	OPT_JSON
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void nap(void)
{
	struct timespec t = {.tv_nsec = 200 * 1000 * 1000};

	nanosleep(&t, NULL);
}

/* What cannot be seen on this host, so that nothing reads as "none". */
static void say_blind_spots(void)
{
	const struct zb_backend *b = zb_backend_native();
	struct zb_host host = {0};

	zb_cmd_say("no denials are recorded; what could not be seen here:");
	if (b->look)
		b->look(&host, NULL);
	for (size_t i = 0; i < host.blind_spots.n; i++)
		zb_cmd_say("  %s", host.blind_spots.v[i]);
	zb_host_done(&host);
}

static int print_record(const struct zb_denial *d, const struct zb_store *store,
			bool json)
{
	struct zb_buf line = {0};
	int rc;

	if (json) {
		zb_denial_json(d, &line);
	} else {
		zb_time_rfc3339(d->last_ms, &line);
		zb_buf_addc(&line, ' ');
		zb_denial_text(d, store->home, &line);
	}
	zb_buf_addc(&line, '\n');
	rc = line.failed ? ZB_ELIMIT : zb_cmd_out(line.data, line.len);
	zb_buf_done(&line);
	return rc;
}

/* Print the records whose last hit is after *@shown, which moves on: a record
 * that grew is printed again with its new count. */
static int print_new(const struct zb_store *store, const char *name, bool json,
		     int64_t *shown, size_t *total, struct zb_error *err)
{
	struct zb_denial *v = NULL;
	size_t n = 0;
	int64_t newest = *shown;
	int rc = zb_ledger_read(store->logs, name, 0, NULL, &v, &n, err);

	for (size_t i = 0; !rc && i < n; i++) {
		if (v[i].last_ms <= *shown)
			continue;
		if (v[i].last_ms > newest)
			newest = v[i].last_ms;
		++*total;
		if (print_record(&v[i], store, json))
			rc = ZB_ESYS;
	}
	for (size_t i = 0; i < n; i++)
		zb_denial_done(&v[i]);
	free(v);
	*shown = newest;
	return rc;
}

static int denials(const struct zb_store *store, const char *name,
		   const struct zb_args *a, struct zb_error *err)
{
	int64_t shown = -1;
	size_t total = 0;
	int rc;

	if (a->opt[OPT_SINCE] &&
	    !zb_time_parse(a->opt[OPT_SINCE], now_ms(), &shown))
		return zb_fail(err, ZB_EUSAGE,
			       "--since %s: not a time (2026-12-01T10:00:00Z, "
			       "10m, 2h, 3d)",
			       a->opt[OPT_SINCE]);
	rc = print_new(store, name, a->opt[OPT_JSON], &shown, &total, err);
	if (!rc && !total)
		say_blind_spots();
	while (!rc && a->opt[OPT_FOLLOW]) {
		nap();
		rc = print_new(store, name, a->opt[OPT_JSON], &shown, &total,
			       err);
	}
	return rc;
}

/* Whole lines, with what a terminal would act on made visible. The file has
 * our escapes already; plain zot writes it raw. */
static int show(const char *p, size_t n)
{
	struct zb_buf out = {0};
	int rc;

	zb_cmd_visible(&out, p, n);
	rc = out.failed ? ZB_ELIMIT : zb_cmd_out(zb_buf_str(&out), out.len);
	zb_buf_done(&out);
	return rc;
}

/* Copy from @fd to its end, keeping an unfinished character for the next
 * call. */
static int drain(int fd, struct zb_buf *rest, struct zb_error *err)
{
	char block[1 << 15];

	for (;;) {
		ssize_t n = read(fd, block, sizeof(block));
		size_t whole;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return zb_fail_sys(err, errno, "read the log");
		if (!n)
			return 0;
		zb_buf_add(rest, block, (size_t)n);
		whole = rest->len;
		while (whole && rest->data[whole - 1] != '\n')
			whole--;
		if (whole && show(rest->data, whole))
			return ZB_ESYS;
		zb_buf_consume(rest, whole);
	}
}

/* Was the file replaced, or cut shorter than where we stand? */
static bool started_over(int fd, const char *path)
{
	struct stat here, there;

	if (fstat(fd, &here) || stat(path, &there))
		return false;
	return here.st_ino != there.st_ino ||
	       lseek(fd, 0, SEEK_CUR) > there.st_size;
}

static int text(const struct zb_store *store, const char *name, bool follow,
		struct zb_error *err)
{
	zb_auto(free) char *path = zb_strf("%s/ext-%s.log", store->logs, name);
	zb_auto(fd) int fd = -1;
	struct zb_buf rest = {0};
	int rc = 0;

	if (!path)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return zb_fail_sys(err, errno, "no log for \"%s\": %s", name,
				   path);
	do {
		rc = drain(fd, &rest, err);
		if (rc || !follow)
			break;
		nap();
		if (started_over(fd, path)) {
			close(fd);
			fd = open(path, O_RDONLY | O_CLOEXEC);
		}
	} while (fd >= 0);
	if (!rc && rest.len && show(rest.data, rest.len))
		rc = ZB_ESYS;
	zb_buf_done(&rest);
	return rc;
}

int zb_cmd_ext_logs(const struct zb_args *a)
{
	struct zb_error err = {0};
	struct zb_store store = {0};
	const char *name = a->arg[0];
	int rc;

	if (!zb_name_valid(name)) {
		zb_fail(&err, ZB_EUSAGE, "\"%s\" is not an extension's name",
			name);
		return zb_cmd_fail(&err);
	}
	if (zb_store_open(&store, &err))
		return zb_cmd_fail(&err);
	/* Logs outlive their extension, so its name need not be installed. */
	if (a->opt[OPT_DENIALS] || a->opt[OPT_JSON] || a->opt[OPT_SINCE])
		rc = denials(&store, name, a, &err);
	else
		rc = text(&store, name, a->opt[OPT_FOLLOW], &err);
	zb_store_done(&store);
	if (err.code)
		return zb_cmd_fail(&err);
	return rc ? 1 : 0;
}
