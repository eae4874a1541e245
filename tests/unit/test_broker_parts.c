/* test_broker_parts.c - what the broker consists of and needs no sandbox:
 * addresses, the table of calls, words for refusals, the recorder. */
#include "config.h"

#include "platform/linux/broker_int.h"
#include "platform/linux/sockaddr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void shows_v4(void **state)
{
	static const struct {
		const char *host;
		unsigned port;
		const char *text;
		bool loopback;
	} rows[] = {
		{"1.2.3.4", 80, "1.2.3.4:80", false},
		{"127.0.0.1", 65535, "127.0.0.1:65535", true},
		{"127.8.9.1", 1, "127.8.9.1:1", true},
		{"0.0.0.0", 0, "0.0.0.0:0", true},
		{"128.0.0.1", 9, "128.0.0.1:9", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sockaddr_in a = {.sin_family = AF_INET,
					.sin_port =
						htons((uint16_t)rows[i].port)};
		struct zb_addr d;

		inet_pton(AF_INET, rows[i].host, &a.sin_addr);
		assert_true(zb_addr_decode(&a, sizeof(a), &d));
		assert_int_equal(d.kind, ZB_ADDR_INET);
		assert_string_equal(d.text, rows[i].text);
		assert_int_equal(d.loopback, rows[i].loopback);
		assert_false(zb_addr_decode(&a, sizeof(a) - 1, &d));
	}
}

static void shows_v6(void **state)
{
	static const struct {
		const char *host;
		const char *text;
		bool loopback;
	} rows[] = {
		{"::1", "[::1]:443", true},
		{"::", "[::]:443", true},
		{"2001:db8::1", "[2001:db8::1]:443", false},
		{"::ffff:10.0.0.1", "10.0.0.1:443", false},
		{"::ffff:127.0.0.1", "127.0.0.1:443", true},
		{"fe80::1", "[fe80::1]:443", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sockaddr_in6 a = {.sin6_family = AF_INET6,
					 .sin6_port = htons(443)};
		struct zb_addr d;

		inet_pton(AF_INET6, rows[i].host, &a.sin6_addr);
		assert_true(zb_addr_decode(&a, sizeof(a), &d));
		assert_string_equal(d.text, rows[i].text);
		assert_int_equal(d.loopback, rows[i].loopback);
		assert_true(zb_addr_decode(&a, 24, &d));
		assert_false(zb_addr_decode(&a, 23, &d));
	}
}

static void shows_unix(void **state)
{
	const size_t head = offsetof(struct sockaddr_un, sun_path);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct zb_addr d;

	(void)state;
	assert_true(zb_addr_decode(&a, head, &d));
	assert_int_equal(d.kind, ZB_ADDR_UNNAMED);
	strcpy(a.sun_path, "/run/s");
	assert_true(zb_addr_decode(&a, sizeof(a), &d));
	assert_int_equal(d.kind, ZB_ADDR_PATH);
	assert_string_equal(d.text, "/run/s");
	assert_true(zb_addr_decode(&a, head + 4, &d)); /* no NUL in it */
	assert_string_equal(d.text, "/run");
	memset(a.sun_path, 'p', sizeof(a.sun_path));
	assert_true(zb_addr_decode(&a, sizeof(a), &d));
	assert_int_equal(strlen(d.text), sizeof(a.sun_path));
	memcpy(a.sun_path, "\0na\0me", 6);
	assert_true(zb_addr_decode(&a, head + 6, &d));
	assert_int_equal(d.kind, ZB_ADDR_ABSTRACT);
	assert_string_equal(d.text, "@na@me");
}

/* Any bytes of any length are decoded or refused, and the text ends. */
static void takes_anything(void **state)
{
	unsigned char raw[128];
	struct zb_addr d;

	(void)state;
	srand(7);
	for (int i = 0; i < 200000; i++) {
		size_t n = (size_t)rand() % (sizeof(raw) + 1);

		for (size_t k = 0; k < n; k++)
			raw[k] = (unsigned char)rand();
		if (n > 1 && i % 2) {
			raw[0] = (unsigned char)("\0\1\2\12"[i / 2 % 4]);
			raw[1] = 0;
		}
		if (zb_addr_decode(raw, n, &d))
			assert_true(strlen(d.text) < ZB_ADDR_TEXT);
	}
}

static void every_watched_call_has_a_row(void **state)
{
	const char *const *name;
	size_t n = 0;

	(void)state;
	for (name = zb_row_names(); *name; name++, n++) {
		const struct zb_row *row = zb_row_of(*name);

		assert_non_null(row);
		assert_string_equal(row->name, *name);
		assert_non_null(row->handle);
	}
	assert_true(n > 100);
	assert_null(zb_row_of("getpid"));
}

static void describes(void **state)
{
	static const struct {
		const char *name;
		uint64_t args[6];
		const char *text;
	} rows[] = {
		{"ioctl", {0, 0x5412}, "ioctl TIOCSTI"},
		{"ioctl", {0, 0x100005412u}, "ioctl TIOCSTI"},
		{"ioctl", {0, 0x541C}, "ioctl TIOCLINUX"},
		{"ioctl", {0, 0x1234}, "ioctl 0x1234"},
		{"clone",
		 {0x10000000 | 0x20000 | 17},
		 "clone CLONE_NEWUSER CLONE_NEWNS"},
		{"unshare", {0x40000000}, "unshare CLONE_NEWNET"},
		{"mount", {1, 2, 3}, "mount"},
		{"personality", {0x40000}, "personality 0x40000"},
	};
	char text[160];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		zb_describe(rows[i].name, rows[i].args, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
}

/* The recorder */

struct heard {
	unsigned n, folded;
	enum zb_op last;
	unsigned ms; /* that each takes */
};

static void hear(void *ctx, struct zb_denial *d)
{
	struct heard *h = ctx;
	struct timespec t = {.tv_nsec = h->ms * 1000000L};

	nanosleep(&t, NULL);
	h->last = d->op;
	if (d->op == ZB_OP_LIMIT)
		h->folded += (unsigned)d->count;
	else
		h->n++;
	zb_denial_done(d);
}

static struct zb_note *note(enum zb_op op, enum zb_ask ask, const char *target)
{
	struct zb_note *n = calloc(1, sizeof(*n));

	assert_non_null(n);
	n->ask = ask;
	n->d.op = op;
	n->d.target = zb_strdup(target);
	return n;
}

static void *run(void *arg)
{
	zb_recorder_run(arg);
	return NULL;
}

static struct zb_plan plan;

/* How many of one note come through? */
static unsigned heard(enum zb_op op, enum zb_ask ask, const char *target,
		      enum zb_op *became)
{
	struct heard h = {.last = ZB_OP_COUNT};
	struct zb_recorder_config cfg = {
		.plan = &plan, .on_denial = hear, .ctx = &h};
	struct zb_recorder *r = NULL;
	struct zb_error err = {0};

	assert_int_equal(zb_recorder_new(&r, &cfg, &err), 0);
	zb_recorder_add(r, note(op, ask, target));
	zb_recorder_finish(r);
	zb_recorder_run(r);
	zb_recorder_free(r);
	if (became)
		*became = h.last;
	return h.n;
}

static void asks_the_host(void **state)
{
	char dir[] = "/tmp/zotbox-test-XXXXXX", file[64], prog[64], dead[64];
	char none[64], deep[64];
	enum zb_op op;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/file", dir);
	snprintf(prog, sizeof(prog), "%s/prog", dir);
	snprintf(dead, sizeof(dead), "%s/dead", dir);
	snprintf(none, sizeof(none), "%s/none", dir);
	snprintf(deep, sizeof(deep), "%s/none/deep", dir);
	fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	close(fd);
	fd = open(prog, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	close(fd);
	assert_int_equal(symlink("nowhere", dead), 0);

	assert_int_equal(heard(ZB_OP_FS_READ, ZB_ASK_EXISTS, file, NULL), 1);
	assert_int_equal(heard(ZB_OP_FS_READ, ZB_ASK_EXISTS, none, NULL), 0);
	assert_int_equal(heard(ZB_OP_FS_READ, ZB_ASK_EXISTS, dead, NULL), 0);
	assert_int_equal(heard(ZB_OP_FS_DELETE, ZB_ASK_REMOVE, dead, NULL), 1);
	assert_int_equal(heard(ZB_OP_FS_DELETE, ZB_ASK_REMOVE, none, NULL), 0);
	assert_int_equal(heard(ZB_OP_FS_EXEC, ZB_ASK_PROGRAM, prog, NULL), 1);
	assert_int_equal(heard(ZB_OP_FS_EXEC, ZB_ASK_PROGRAM, file, NULL), 0);
	assert_int_equal(heard(ZB_OP_FS_EXEC, ZB_ASK_PROGRAM, dir, NULL), 0);
	assert_int_equal(heard(ZB_OP_FS_CREATE, ZB_ASK_CREATE, none, NULL), 1);
	assert_int_equal(heard(ZB_OP_FS_CREATE, ZB_ASK_CREATE, deep, NULL), 0);
	assert_int_equal(heard(ZB_OP_FS_CREATE, ZB_ASK_OPEN, none, &op), 1);
	assert_int_equal(op, ZB_OP_FS_CREATE);
	assert_int_equal(heard(ZB_OP_FS_CREATE, ZB_ASK_OPEN, file, &op), 1);
	assert_int_equal(op, ZB_OP_FS_WRITE);
	assert_int_equal(heard(ZB_OP_FS_META, ZB_ASK_OWNER, file, NULL), 1);
	assert_int_equal(heard(ZB_OP_NET_UNIX, ZB_ASK_ABSTRACT,
			       "@zotbox-nobody-has-this", NULL),
			 0);
	assert_int_equal(
		heard(ZB_OP_NET_DNS, ZB_ASK_NOTHING, "1.1.1.1:53", NULL), 1);
	unlink(file);
	unlink(prog);
	unlink(dead);
	rmdir(dir);
}

/* More than it can take: all are counted, and the rest is said. */
static void counts_a_flood(void **state)
{
	enum {
		NOTES = 2300
	};
	struct heard h = {.ms = 1};
	struct zb_recorder_config cfg = {
		.plan = &plan, .on_denial = hear, .ctx = &h};
	struct zb_recorder *r = NULL;
	struct zb_error err = {0};

	(void)state;
	assert_int_equal(zb_recorder_new(&r, &cfg, &err), 0);
	/* Nobody takes them: after 2048 each waits its moment, then folds. */
	for (int i = 0; i < 2048; i++)
		zb_recorder_add(r, note(ZB_OP_FS_READ, ZB_ASK_NOTHING, "/x"));
	for (int i = 0; i < 4; i++)
		zb_recorder_add(r, note(ZB_OP_FS_READ, ZB_ASK_NOTHING, "/x"));
	h.ms = 0;
	zb_recorder_finish(r);
	zb_recorder_run(r);
	assert_int_equal(h.n, 2048);
	assert_int_equal(h.folded, 4);
	zb_recorder_free(r);
}

static void falls_silent(void **state)
{
	struct heard h = {0};
	struct zb_recorder_config cfg = {
		.plan = &plan, .on_denial = hear, .ctx = &h};
	struct zb_recorder *r = NULL;
	struct zb_error err = {0};
	pthread_t t;

	(void)state;
	assert_int_equal(zb_recorder_new(&r, &cfg, &err), 0);
	zb_recorder_mute(r);
	zb_recorder_add(r, note(ZB_OP_FS_READ, ZB_ASK_NOTHING, "/x"));
	assert_int_equal(pthread_create(&t, NULL, run, r), 0);
	pthread_join(t, NULL);
	assert_int_equal(h.n, 0);
	zb_recorder_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_v4),
		cmocka_unit_test(shows_v6),
		cmocka_unit_test(shows_unix),
		cmocka_unit_test(takes_anything),
		cmocka_unit_test(every_watched_call_has_a_row),
		cmocka_unit_test(describes),
		cmocka_unit_test(asks_the_host),
		cmocka_unit_test(counts_a_flood),
		cmocka_unit_test(falls_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
