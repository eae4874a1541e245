/* test_ledger.c - denials and the log on disk. */
#include "cleanup.h"
#include "fdutil.h"
#include "ledger.h"
#include "store.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/zb-ledger-XXXXXX";
static char logs[64];

static int set_up(void **state)
{
	(void)state;
	strcpy(strrchr(dir, '-'), "-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(logs, sizeof(logs), "%s/logs", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return zb_remove_tree(dir, NULL);
}

static struct zb_ledger_config config(const char *session)
{
	return (struct zb_ledger_config){
		.logs_dir = logs,
		.ext = "w",
		.session = session,
		.home = "/home/u",
		.log_bytes = UINT64_MAX,
		.log_fd = -1,
	};
}

static struct zb_ledger *open_ledger(const char *session)
{
	struct zb_ledger_config cfg = config(session);
	struct zb_error e = {0};
	struct zb_ledger *l = NULL;

	if (zb_ledger_open(&l, &cfg, &e))
		fail_msg("%s", e.msg);
	return l;
}

static void deny(struct zb_ledger *l, enum zb_op op, const char *target)
{
	struct zb_denial d = {
		.op = op,
		.exe = zb_strdup("/usr/bin/python3"),
		.syscall = zb_strdup("openat"),
		.asked = zb_strdup(target),
		.target = zb_strdup(target),
		.err_no = EACCES,
		.floor = ZB_FLOOR_MOUNT,
		.rule = zb_strdup("nothing grants it"),
		.grant_key = zb_strdup("fs.read"),
		.grant_value = zb_strdup(target),
	};

	zb_ledger_record(l, &d);
	assert_null(d.target);
	assert_null(d.exe);
}

static void slurp(const char *name, struct zb_buf *out)
{
	char path[128];
	struct zb_error e = {0};

	snprintf(path, sizeof(path), "%s/%s", logs, name);
	if (zb_read_file(path, 64u << 20, out, &e))
		fail_msg("%s", e.msg);
}

static size_t size_of(const char *name)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", logs, name);
	return stat(path, &st) ? 0 : (size_t)st.st_size;
}

struct records {
	struct zb_denial *v;
	size_t n;
};

static struct records read_back(int64_t since, const char *session)
{
	struct records r = {0};
	struct zb_error e = {0};

	if (zb_ledger_read(logs, "w", since, session, &r.v, &r.n, &e))
		fail_msg("%s", e.msg);
	return r;
}

static void drop(struct records *r)
{
	for (size_t i = 0; i < r->n; i++)
		zb_denial_done(&r->v[i]);
	free(r->v);
}

static uint64_t sum(const struct records *r)
{
	uint64_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->v[i].count;
	return n;
}

static size_t count_of(const struct zb_buf *b, const char *what)
{
	size_t n = 0;

	for (const char *p = zb_buf_str(b); (p = strstr(p, what)); p++)
		n++;
	return n;
}

static void first_hit_at_once(void **state)
{
	struct zb_ledger *l = open_ledger("s1");
	struct zb_buf b = {0};
	struct records r;

	(void)state;
	deny(l, ZB_OP_FS_READ, "/home/u/.ssh/id");
	r = read_back(0, NULL);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.v[0].count, 1);
	assert_string_equal(r.v[0].ext, "w");
	assert_string_equal(r.v[0].session, "s1");
	assert_string_equal(r.v[0].target, "/home/u/.ssh/id");
	assert_true(r.v[0].first_ms > INT64_C(1500000000000));
	drop(&r);
	slurp("ext-w.log", &b);
	assert_string_equal(
		zb_buf_str(&b),
		"[zotbox] denied fs.read ~/.ssh/id (python3, openat): nothing "
		"grants it; to allow: zotbox ext allow w fs.read "
		"/home/u/.ssh/id\n");
	zb_ledger_close(l);
	zb_ledger_close(NULL);
	zb_buf_done(&b);
}

static void repeats_are_deltas(void **state)
{
	struct zb_ledger *l = open_ledger("s1");
	struct zb_buf b = {0};
	struct records r;

	(void)state;
	for (int i = 0; i < 1000; i++)
		deny(l, ZB_OP_FS_WRITE, "/etc/shadow");
	/* the first hit is there, the others are pending */
	r = read_back(0, NULL);
	assert_int_equal(sum(&r), 1);
	drop(&r);
	zb_ledger_flush(l);
	r = read_back(0, NULL);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.v[0].count, 1000);
	drop(&r);
	/* nothing new, nothing written */
	slurp("ext-w.denials.jsonl", &b);
	zb_ledger_flush(l);
	assert_int_equal(size_of("ext-w.denials.jsonl"), b.len);
	assert_int_equal(count_of(&b, "\n"), 3);
	deny(l, ZB_OP_FS_WRITE, "/etc/shadow");
	zb_ledger_close(l);
	r = read_back(0, NULL);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.v[0].count, 1001);
	drop(&r);
	slurp("ext-w.log", &b);
	assert_int_equal(count_of(&b, "denied fs.write /etc/shadow"), 3);
	assert_non_null(strstr(zb_buf_str(&b), ", x1000)"));
	assert_non_null(strstr(zb_buf_str(&b), ", x1001)"));
	zb_buf_done(&b);
}

static void it_goes_on_is_seen(void **state)
{
	struct timespec pause = {.tv_nsec = 20000000};
	struct zb_ledger *l = open_ledger("s1");
	int64_t last = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct records r;

		deny(l, ZB_OP_FS_READ, "/etc/shadow");
		zb_ledger_flush(l);
		r = read_back(0, NULL);
		assert_int_equal(sum(&r), i + 1);
		assert_true(r.v[0].last_ms > last);
		last = r.v[0].last_ms;
		drop(&r);
		nanosleep(&pause, NULL);
	}
	zb_ledger_close(l);
}

/* One name a thousand times, then twenty thousand names: exact counts, a
 * bounded file, and fast. */
static void a_flood_is_folded(void **state)
{
	struct zb_ledger *l = open_ledger("s1");
	struct records r;
	struct zb_buf b = {0};
	bool named = false;
	uint64_t folded = 0;
	char name[64];

	(void)state;
	for (int i = 0; i < 1000; i++)
		deny(l, ZB_OP_FS_WRITE, "/etc/shadow");
	for (int i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "/root/zz%d", i);
		deny(l, ZB_OP_FS_WRITE, name);
	}
	deny(l, ZB_OP_FS_WRITE, "/etc/shadow");
	assert_int_equal(zb_ledger_summary(l, &b), 0);
	assert_string_equal(zb_buf_str(&b), "21001 fs.write");
	zb_ledger_close(l);
	r = read_back(0, NULL);
	assert_int_equal(sum(&r), 21001);
	assert_true(r.n >= ZB_LEDGER_KINDS_WINDOW + 1);
	assert_true(r.n <= ZB_LEDGER_KINDS_SESSION + 1);
	for (size_t i = 0; i < r.n; i++) {
		if (!r.v[i].target) {
			folded += r.v[i].count;
			assert_null(r.v[i].grant_key);
		} else if (!strcmp(r.v[i].target, "/etc/shadow")) {
			named = true;
			assert_int_equal(r.v[i].count, 1001);
		}
	}
	assert_true(named);
	assert_int_equal(folded, 21001 - 1001 - (r.n - 2));
	assert_true(size_of("ext-w.denials.jsonl") < 1000000);
	drop(&r);
	slurp("ext-w.log", &b);
	assert_non_null(strstr(zb_buf_str(&b), "more different ones"));
	zb_buf_done(&b);
}

/* Names of 4 KB do not push out what was there. */
static void long_names_are_bounded(void **state)
{
	struct zb_ledger *l = open_ledger("s1");
	struct records r;
	char name[6000];

	(void)state;
	deny(l, ZB_OP_FS_READ, "/etc/shadow");
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < 1000; i++) {
		name[0] = '/';
		name[1] = (char)('a' + i % 26);
		name[2] = (char)('a' + i / 26 % 26);
		name[3] = (char)('a' + i / 676);
		deny(l, ZB_OP_FS_READ, name);
	}
	zb_ledger_close(l);
	r = read_back(0, NULL);
	assert_int_equal(sum(&r), 1001);
	assert_string_equal(r.v[0].target, "/etc/shadow");
	for (size_t i = 1; i < r.n; i++) {
		assert_null(r.v[i].grant_key);
		if (r.v[i].target)
			assert_true(strlen(r.v[i].target) <= 4096);
	}
	assert_true(size_of("ext-w.denials.jsonl") <= ZB_LEDGER_FILE_MAX);
	assert_int_equal(size_of("ext-w.denials.jsonl.1"), 0);
	drop(&r);
}

/* Repeats alone never push anything out: they are summed up. */
static void repeats_are_squeezed(void **state)
{
	struct zb_ledger *l = open_ledger("s1");
	struct records r;
	struct zb_ledger_past past;
	char name[64];
	uint64_t hits = 0;

	(void)state;
	deny(l, ZB_OP_FS_READ, "/first");
	hits++;
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 60; i++, hits++) {
			snprintf(name, sizeof(name), "/some/name/%d", i);
			deny(l, ZB_OP_FS_READ, name);
		}
		zb_ledger_flush(l);
		assert_true(size_of("ext-w.denials.jsonl") <=
			    ZB_LEDGER_FILE_MAX);
	}
	zb_ledger_close(l);
	/* 6000 lines of some 400 bytes were written */
	assert_int_equal(size_of("ext-w.denials.jsonl.1"), 0);
	r = read_back(0, "");
	assert_int_equal(sum(&r), hits);
	assert_int_equal(r.n, 61);
	assert_string_equal(r.v[0].target, "/first");
	assert_int_equal(zb_ledger_past(logs, "w", &past, NULL), 0);
	assert_int_equal(past.dropped, 0);
	assert_int_equal(past.oldest_ms, r.v[0].first_ms);
	drop(&r);
}

/* What a flood of one thing is for: nobody would see the other. */
static void a_flood_hides_nothing_else(void **state)
{
	static const struct {
		enum zb_op op;
		const char *target;
	} rows[] = {{ZB_OP_FS_READ, "/home/u/.ssh/id"},
		    {ZB_OP_FS_READ, "/etc/shadow"},
		    {ZB_OP_NET_CONNECT, "192.0.2.1:443"},
		    {ZB_OP_SYSCALL, "bpf"}};
	struct zb_ledger *l = open_ledger("s1");
	struct records r;
	char name[64];

	(void)state;
	/* Files of every system's /usr, and calls that cost nothing. */
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "socket family %d", i);
		if (i % 5)
			deny(l, ZB_OP_SYSCALL, name);
		else
			deny(l, ZB_OP_FS_META, name);
	}
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++)
		deny(l, rows[i].op, rows[i].target);
	zb_ledger_close(l);
	r = read_back(0, NULL);
	for (size_t i = 0; i + 1 < ZB_ARRAY_LEN(rows); i++) {
		bool found = false;

		for (size_t k = 0; k < r.n; k++)
			found |= r.v[k].op == rows[i].op && r.v[k].target &&
				 !strcmp(r.v[k].target, rows[i].target);
		assert_true(found);
	}
	drop(&r);
}

static void fill_session(unsigned s, uint64_t *hits)
{
	char name[64];
	struct zb_ledger *l;

	snprintf(name, sizeof(name), "s%u", s);
	l = open_ledger(name);
	for (unsigned i = 0; i < ZB_LEDGER_KINDS_WINDOW; i++, ++*hits) {
		snprintf(name, sizeof(name), "/session/%u/name/%u", s, i);
		deny(l, ZB_OP_FS_READ, name);
	}
	zb_ledger_close(l);
}

/* Different kinds rotate: newest kept, the oldest time kept, what went away
 * counted. */
static void kinds_rotate(void **state)
{
	struct zb_ledger_past past;
	struct records r;
	int64_t oldest;
	uint64_t hits = 0;

	(void)state;
	assert_int_equal(zb_ledger_past(logs, "w", &past, NULL), 0);
	assert_int_equal(past.oldest_ms, 0);
	fill_session(0, &hits);
	r = read_back(0, NULL);
	oldest = r.v[0].first_ms;
	drop(&r);
	for (unsigned s = 1; s < 40; s++) {
		fill_session(s, &hits);
		assert_true(size_of("ext-w.denials.jsonl") <=
			    ZB_LEDGER_FILE_MAX);
		assert_true(size_of("ext-w.denials.jsonl.1") <=
			    ZB_LEDGER_FILE_MAX);
	}
	assert_true(size_of("ext-w.denials.jsonl.1") > 0);
	r = read_back(0, "");
	assert_int_equal(r.n, ZB_LEDGER_KINDS_WINDOW);
	assert_string_equal(r.v[0].session, "s39");
	drop(&r);
	r = read_back(0, NULL);
	assert_int_equal(zb_ledger_past(logs, "w", &past, NULL), 0);
	assert_int_equal(past.oldest_ms, oldest);
	assert_true(past.dropped > 0);
	assert_int_equal(sum(&r) + past.dropped, hits);
	drop(&r);
}

#define WRITERS	    2
#define ROUNDS	    12
#define PER_PROCESS 256

/* Two processes at once over several rotations: nothing lost, nothing torn. */
static void two_processes_at_once(void **state)
{
	pid_t pids[WRITERS];
	struct zb_ledger_past past;
	struct records r;
	uint64_t hits = 0;

	(void)state;
	for (int w = 0; w < WRITERS; w++) {
		pids[w] = fork();
		assert_true(pids[w] >= 0);
		if (pids[w])
			continue;
		for (unsigned i = 0; i < ROUNDS; i++)
			fill_session((unsigned)w * 100 + i, &hits);
		_exit(hits != (uint64_t)ROUNDS * PER_PROCESS);
	}
	for (int w = 0; w < WRITERS; w++) {
		int status;

		assert_int_equal(waitpid(pids[w], &status, 0), pids[w]);
		assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	}
	assert_true(size_of("ext-w.denials.jsonl.1") > 0);
	r = read_back(0, NULL);
	assert_int_equal(zb_ledger_past(logs, "w", &past, NULL), 0);
	assert_int_equal(sum(&r) + past.dropped,
			 (uint64_t)WRITERS * ROUNDS * PER_PROCESS);
	drop(&r);
}

struct many {
	struct zb_ledger *l;
	int id;
};

static int firsts;

static void on_first(void *ctx, const struct zb_denial *d)
{
	struct zb_ledger **l = ctx;

	assert_non_null(d->target);
	__atomic_fetch_add(&firsts, 1, __ATOMIC_RELAXED);
	/* it may use the ledger */
	zb_ledger_say(*l, "first of its kind");
}

static void *record_many(void *arg)
{
	const struct many *m = arg;
	char name[64];

	for (int i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "/thread/%d/%d", m->id, i % 20);
		deny(m->l, ZB_OP_FS_READ, name);
		deny(m->l, ZB_OP_FS_READ, "/shared");
	}
	return NULL;
}

static void threads_at_once(void **state)
{
	struct zb_ledger_config cfg = config("s1");
	struct zb_ledger *l = NULL;
	struct many m[4];
	pthread_t t[4];
	struct records r;

	(void)state;
	cfg.on_first = on_first;
	cfg.ctx = &l;
	firsts = 0;
	assert_int_equal(zb_ledger_open(&l, &cfg, NULL), 0);
	for (int i = 0; i < 4; i++) {
		m[i] = (struct many){l, i};
		assert_int_equal(
			pthread_create(&t[i], NULL, record_many, &m[i]), 0);
	}
	for (int i = 0; i < 20; i++)
		zb_ledger_flush(l);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	zb_ledger_close(l);
	assert_int_equal(firsts, 81);
	r = read_back(0, NULL);
	assert_int_equal(r.n, 81);
	assert_int_equal(sum(&r), 160000);
	drop(&r);
}

static void sessions_and_times(void **state)
{
	struct zb_ledger *l;
	struct records r;
	struct zb_denial old = {
		.op = ZB_OP_ENV,
		.target = zb_strdup("TOKEN"),
		.first_ms = 1000,
		.last_ms = 2000,
	};

	(void)state;
	r = read_back(0, "");
	assert_int_equal(r.n, 0);
	l = open_ledger("s1");
	deny(l, ZB_OP_FS_READ, "/a");
	zb_ledger_record(l, &old);
	zb_ledger_close(l);
	l = open_ledger("s2");
	deny(l, ZB_OP_FS_READ, "/b");
	zb_ledger_close(l);
	r = read_back(0, NULL);
	assert_int_equal(r.n, 3);
	assert_string_equal(r.v[0].target, "TOKEN");
	drop(&r);
	r = read_back(0, "s1");
	assert_int_equal(r.n, 2);
	drop(&r);
	r = read_back(2001, "s1");
	assert_int_equal(r.n, 1);
	assert_string_equal(r.v[0].target, "/a");
	drop(&r);
	r = read_back(0, "");
	assert_int_equal(r.n, 1);
	assert_string_equal(r.v[0].target, "/b");
	drop(&r);
	/* doctor's own start is not a session */
	l = open_ledger(ZB_LEDGER_PROBE "1");
	deny(l, ZB_OP_FS_READ, "/c");
	zb_ledger_close(l);
	r = read_back(0, "");
	assert_int_equal(r.n, 1);
	assert_string_equal(r.v[0].target, "/b");
	drop(&r);
	/* a session without denials is the last one all the same */
	zb_ledger_close(open_ledger("s3"));
	r = read_back(0, "");
	assert_int_equal(r.n, 0);
	drop(&r);
}

static void torn_lines_cost_themselves(void **state)
{
	struct zb_ledger *l = open_ledger("s1");
	struct records r;
	char path[128];
	int fd;

	(void)state;
	deny(l, ZB_OP_FS_READ, "/a");
	zb_ledger_close(l);
	snprintf(path, sizeof(path), "%s/ext-w.denials.jsonl", logs);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "{\"v\":1,\"time\":\"20", 17), 17);
	close(fd);
	l = open_ledger("s2");
	deny(l, ZB_OP_FS_READ, "/b");
	zb_ledger_close(l);
	r = read_back(0, NULL);
	assert_int_equal(r.n, 2);
	drop(&r);
	r = read_back(0, "");
	assert_int_equal(r.n, 1);
	assert_string_equal(r.v[0].target, "/b");
	drop(&r);
}

/* No byte of room (as a full disk would have it): the extension goes on, the
 * counts are kept, and written when there is room again. */
static void no_room_is_waited_out(void **state)
{
	struct zb_ledger *l = open_ledger("s1");
	struct rlimit full, was;
	struct records r;
	struct zb_buf b = {0};

	(void)state;
	deny(l, ZB_OP_FS_READ, "/a");
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	full = was;
	full.rlim_cur = 100; /* less than the files have, more than nothing */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
	deny(l, ZB_OP_FS_READ, "/b");
	deny(l, ZB_OP_FS_READ, "/a");
	zb_ledger_stderr(l, "said meanwhile\n", 15);
	zb_ledger_flush(l);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	signal(SIGXFSZ, SIG_DFL);
	r = read_back(0, NULL);
	assert_int_equal(sum(&r), 1);
	drop(&r);
	zb_ledger_flush(l);
	r = read_back(0, NULL);
	assert_int_equal(r.n, 2);
	assert_int_equal(sum(&r), 3);
	drop(&r);
	zb_ledger_close(l);
	slurp("ext-w.log", &b);
	assert_non_null(strstr(zb_buf_str(&b), "bytes of this log were not "
					       "written: File too large"));
	assert_non_null(strstr(zb_buf_str(&b), "is written again"));
	zb_buf_done(&b);
}

static void a_full_device_is_no_error(void **state)
{
	struct zb_ledger_config cfg = config("s1");
	struct zb_ledger *l = NULL;
	struct records r;

	(void)state;
	cfg.log_fd = open("/dev/full", O_WRONLY | O_APPEND | O_CLOEXEC);
	if (cfg.log_fd < 0)
		skip();
	assert_int_equal(zb_ledger_open(&l, &cfg, NULL), 0);
	zb_ledger_say(l, "lost");
	deny(l, ZB_OP_FS_READ, "/a");
	zb_ledger_close(l);
	r = read_back(0, NULL);
	assert_int_equal(r.n, 1);
	drop(&r);
	close(cfg.log_fd);
}

static void modes_and_names(void **state)
{
	struct zb_ledger_config cfg = config("s1");
	struct zb_ledger *l = NULL;
	struct zb_error e = {0};
	char path[128];
	struct stat st;

	(void)state;
	umask(022);
	zb_ledger_close(open_ledger("s1"));
	snprintf(path, sizeof(path), "%s/ext-w.denials.jsonl", logs);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	snprintf(path, sizeof(path), "%s/ext-w.log", logs);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(stat(logs, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	cfg.ext = "../x";
	assert_int_equal(zb_ledger_open(&l, &cfg, &e), ZB_EUSAGE);
	/* not a directory: an error, said */
	cfg = config("s1");
	cfg.logs_dir = path;
	assert_int_equal(zb_ledger_open(&l, &cfg, &e), ZB_ESYS);
	assert_non_null(strstr(e.msg, path));
}

/* ---- the log ---- */

static void stderr_cannot_look_like_ours(void **state)
{
	static const char theirs[] =
		"hello\n"
		"[zotbox] denied fs.read /etc/shadow: to allow: zotbox ...\n"
		"[zot] starting x\n"
		"  [ZotBox] denied\n"
		"\xc2\xa0[zotbox] x\n"
		"| [zotbox] was theirs\n"
		"zotbox: plain\n"
		"\x1b[2Jcleared\x1b]52;c;ZXZpbA==\x07\n"
		"over\r[zotbox] denied\n"
		"tab\there \\ back\n"
		"bad \xff byte, \xe2\x80\xae, \xc3\xa4\n"
		"\n"
		"no end";
	static const char want[] =
		"[zotbox] starting w/1 under strict\n"
		"hello\n"
		"| [zotbox] denied fs.read /etc/shadow: to allow: zotbox ...\n"
		"| [zot] starting x\n"
		"|   [ZotBox] denied\n"
		"| \xc2\xa0[zotbox] x\n"
		"| [zotbox] was theirs\n"
		"zotbox: plain\n"
		"\\x1b[2Jcleared\\x1b]52;c;ZXZpbA==\\x07\n"
		"over\\x0d[zotbox] denied\n"
		"tab\there \\\\ back\n"
		"bad \\xff byte, \\u{202e}, \xc3\xa4\n"
		"\n"
		"no end\n"
		"[zotbox] two \\x1b[31m\n"
		"[zotbox] lines \\x41\n"
		"| [zotbox] split\n";
	struct zb_ledger *l = open_ledger("s1");
	struct zb_buf b = {0};

	(void)state;
	zb_ledger_say(l, "starting %s/%d under strict", "w", 1);
	/* in pieces of one byte: no piece is a line of its own */
	for (size_t i = 0; i < sizeof(theirs) - 1; i++)
		zb_ledger_stderr(l, theirs + i, 1);
	zb_ledger_say(l, "two \x1b[31m\nlines \\x41");
	zb_ledger_stderr(l, "[zot", 4);
	zb_ledger_stderr(l, "box] split\n", 11);
	zb_ledger_close(l);
	slurp("ext-w.log", &b);
	assert_string_equal(zb_buf_str(&b), want);
	zb_buf_done(&b);
}

static void long_lines_are_broken(void **state)
{
	struct zb_ledger *l = open_ledger("s1");
	struct zb_buf b = {0}, text = {0};

	(void)state;
	/* an odd first byte, so that a break would fall inside a character */
	zb_buf_addc(&text, 'x');
	for (int i = 0; i < 20000; i++)
		zb_buf_adds(&text, "\xc3\xa4");
	zb_ledger_stderr(l, text.data, text.len);
	for (int i = 0; i < 20000; i++)
		zb_ledger_stderr(l, "y", 1);
	zb_ledger_close(l);
	slurp("ext-w.log", &b);
	assert_null(strchr(zb_buf_str(&b), '\\'));
	assert_int_equal(zb_utf8_check(b.data, b.len), b.len);
	assert_int_equal(count_of(&b, "\xc3\xa4"), 20000);
	assert_int_equal(count_of(&b, "y"), 20000);
	for (const char *p = b.data; *p;) {
		size_t n = strcspn(p, "\n");

		assert_true(n <= 8192);
		p += n + 1;
	}
	zb_buf_done(&b);
	zb_buf_done(&text);
}

static void unfinished_lines_are_not_kept_for_ever(void **state)
{
	struct zb_ledger *l = open_ledger("s1");
	struct zb_buf b = {0};

	(void)state;
	zb_ledger_stderr(l, "Password:", 9);
	zb_ledger_flush(l);
	slurp("ext-w.log", &b);
	assert_string_equal(zb_buf_str(&b), "");
	zb_ledger_flush(l);
	slurp("ext-w.log", &b);
	assert_string_equal(zb_buf_str(&b), "Password:\n");
	zb_ledger_close(l);
	zb_buf_done(&b);
}

static void head_of_stderr(void **state)
{
	struct zb_ledger *l = open_ledger("s1");
	struct zb_buf b = {0};

	(void)state;
	zb_ledger_stderr_head(l, 3, &b);
	assert_string_equal(zb_buf_str(&b), "");
	zb_ledger_stderr(l, "\nTraceback:\n\n\tx\x1b", 16);
	zb_ledger_say(l, "not theirs");
	zb_ledger_stderr(l, "[0m\nthree\nfour\n", 15);
	zb_ledger_stderr_head(l, 3, &b);
	assert_string_equal(zb_buf_str(&b), "Traceback:\n\tx\\x1b[0m\nthree");
	for (int i = 0; i < 10000; i++)
		zb_ledger_stderr(l, "more\n", 5);
	zb_buf_clear(&b);
	zb_ledger_stderr_head(l, 100000, &b);
	assert_true(b.len <= 4096);
	zb_ledger_close(l);
	zb_buf_done(&b);
}

static void chatter(struct zb_ledger *l, unsigned lines)
{
	char line[64];

	for (unsigned i = 0; i < lines; i++) {
		int n = snprintf(line, sizeof(line),
				 "line %07u xxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
				 i);

		zb_ledger_stderr(l, line, (size_t)n);
	}
}

/* Start line and last lines survive, one line says how much is gone, and
 * denials are not pushed out. */
static void the_log_has_a_limit(void **state)
{
	struct zb_ledger_config cfg = config("s1");
	struct zb_ledger *l = NULL;
	struct zb_buf b = {0};
	struct records r;
	const char *p;

	(void)state;
	cfg.log_bytes = 1 << 20;
	assert_int_equal(zb_ledger_open(&l, &cfg, NULL), 0);
	zb_ledger_say(l, "starting w/1 under strict");
	deny(l, ZB_OP_FS_READ, "/etc/shadow");
	for (int i = 0; i < 5; i++) {
		chatter(l, 40000);
		assert_true(size_of("ext-w.log") <= (1 << 20) + 65536);
	}
	zb_ledger_close(l);
	slurp("ext-w.log", &b);
	assert_true(b.len <= 1 << 20 && b.len >= 1 << 19);
	p = b.data;
	assert_memory_equal(p, "[zotbox] starting w/1 under strict\n", 35);
	p += 35;
	assert_memory_equal(p, "[zotbox] log limit 1 MiB reached; ", 34);
	/* what is there and what was dropped is what was written: lines, the
	 * denial's line, and the two in front */
	{
		uint64_t dropped = strtoull(p + 34, NULL, 10);
		const char *rest = strchr(p, '\n') + 1;
		size_t kept = b.len - (size_t)(rest - b.data);

		assert_memory_equal(rest, "line ", 5);
		assert_true(dropped + kept > 5 * 40000 * 43);
		assert_true(dropped + kept < 5 * 40000 * 43 + 500);
	}
	assert_string_equal(b.data + b.len - 43,
			    "line 0039999 xxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n");
	assert_int_equal(count_of(&b, "log limit"), 1);
	r = read_back(0, NULL);
	assert_int_equal(r.n, 1);
	drop(&r);
	zb_buf_done(&b);
}

/* zot's descriptor: the same file, held by another process too. Both go on at
 * the new end after a cut. */
static void a_borrowed_descriptor_is_cut_by_copy(void **state)
{
	struct zb_ledger_config cfg = config("s1");
	struct zb_ledger *l = NULL;
	struct zb_buf b = {0};
	char path[128];
	int fd;

	(void)state;
	assert_int_equal(mkdir(logs, 0755), 0);
	snprintf(path, sizeof(path), "%s/ext-w.log", logs);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "[zot] starting w\n", 17), 17);
	cfg.log_fd = fd;
	cfg.log_bytes = 100000;
	assert_int_equal(zb_ledger_open(&l, &cfg, NULL), 0);
	zb_ledger_say(l, "starting w/1 under strict");
	chatter(l, 5000);
	assert_int_equal(write(fd, "[zot] still here\n", 17), 17);
	zb_ledger_stderr(l, "the end\n", 8);
	zb_ledger_close(l);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	slurp("ext-w.log", &b);
	assert_true(b.len <= 100000);
	assert_null(memchr(b.data, '\0', b.len));
	assert_string_equal(b.data + b.len - 25, "[zot] still here\nthe end\n");
	assert_non_null(strstr(b.data, "log limit 100000 bytes reached; "));
	close(fd);
	zb_buf_done(&b);
}

/* A descriptor on another file cannot be cut: then it stops, and says so. */
static void what_cannot_be_cut_stops(void **state)
{
	struct zb_ledger_config cfg = config("s1");
	struct zb_ledger *l = NULL;
	struct zb_buf b = {0};
	char path[128];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/elsewhere", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	cfg.log_fd = fd;
	cfg.log_bytes = 100000;
	assert_int_equal(zb_ledger_open(&l, &cfg, NULL), 0);
	chatter(l, 5000);
	zb_ledger_say(l, "ours still comes");
	zb_ledger_close(l);
	close(fd);
	assert_int_equal(zb_read_file(path, 1 << 20, &b, NULL), 0);
	assert_true(b.len < 101000);
	assert_non_null(strstr(b.data, "[zotbox] ours still comes\n"));
	assert_non_null(strstr(b.data, "is dropped from here on\n"));
	assert_non_null(strstr(b.data, " bytes dropped\n"));
	zb_buf_done(&b);
}

static void a_removed_log_is_made_anew(void **state)
{
	struct zb_ledger *l = open_ledger("s1");
	struct zb_buf b = {0};
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/ext-w.log", logs);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/ext-w.denials.jsonl", logs);
	assert_int_equal(unlink(path), 0);
	zb_ledger_flush(l);
	zb_ledger_say(l, "here");
	deny(l, ZB_OP_FS_READ, "/a");
	zb_ledger_close(l);
	slurp("ext-w.log", &b);
	assert_memory_equal(zb_buf_str(&b), "[zotbox] here\n", 14);
	assert_true(size_of("ext-w.denials.jsonl") > 0);
	zb_buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(first_hit_at_once, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(repeats_are_deltas, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(it_goes_on_is_seen, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_flood_is_folded, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_flood_hides_nothing_else,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(long_names_are_bounded, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(repeats_are_squeezed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(kinds_rotate, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(two_processes_at_once, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(threads_at_once, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(sessions_and_times, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(torn_lines_cost_themselves,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_room_is_waited_out, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_full_device_is_no_error,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(modes_and_names, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(stderr_cannot_look_like_ours,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(long_lines_are_broken, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			unfinished_lines_are_not_kept_for_ever, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(head_of_stderr, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_log_has_a_limit, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			a_borrowed_descriptor_is_cut_by_copy, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_cut_stops,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_removed_log_is_made_anew,
						set_up, tear_down),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
