/* floor_inside.c - what test_floor starts in a sandbox (and outside, as the
 * control): says what it finds, or misbehaves in one named way. One fact a
 * line: NAME VALUE. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void try_open(const char *name, const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	printf("%s %s\n", name, fd >= 0 ? "opened" : strerrorname_np(errno));
	if (fd >= 0)
		close(fd);
}

static void status_lines(void)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "Cap", 3) || !strncmp(line, "NoNew", 5) ||
		    !strncmp(line, "Seccomp:", 8))
			fputs(line, stdout);
	if (f)
		fclose(f);
}

static void namespaces(void)
{
	static const char *const kinds[] = {"user",   "pid", "ipc", "uts",
					    "cgroup", "net", "mnt"};
	char path[64], link[64];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
		n = readlink(path, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = '\0';
		printf("ns-%s %s\n", kinds[i], link);
	}
}

/* Names in @path, sorted, on one line; digits only or all. */
static void list(const char *name, const char *path)
{
	struct dirent **e;
	int n = scandir(path, &e, NULL, alphasort);

	printf("%s", name);
	for (int i = 0; i < n; i++) {
		if (e[i]->d_name[0] != '.')
			printf(" %s", e[i]->d_name);
		free(e[i]);
	}
	if (n >= 0)
		free(e);
	printf("\n");
}

static void pids(void)
{
	struct dirent *e;
	DIR *d = opendir("/proc");

	printf("pids");
	while (d && (e = readdir(d)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			printf(" %s", e->d_name);
	printf("\nppid %d\n", (int)getppid());
	if (d)
		closedir(d);
}

static void interfaces(void)
{
	struct if_nameindex *all = if_nameindex();

	printf("interfaces");
	for (int i = 0; all && all[i].if_index; i++)
		printf(" %s", all[i].if_name);
	printf("\n");
	if (all)
		if_freenameindex(all);
}

static void descriptors(void)
{
	printf("descriptors");
	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf(" %d", fd);
	printf("\n");
}

static void environment(void)
{
	for (char **e = environ; *e; e++)
		printf("env %s\n", *e);
	try_open("environ-of-1", "/proc/1/environ", O_RDONLY);
	try_open("memory-of-1", "/proc/1/mem", O_RDONLY);
	try_open("program-of-1", "/proc/1/exe", O_RDONLY);
	try_open("root-of-1", "/proc/1/root", O_RDONLY);
}

static int facts(void)
{
	descriptors();
	status_lines();
	namespaces();
	list("root", "/");
	list("dev", "/dev");
	list("pts", "/dev/pts");
	pids();
	interfaces();
	environment();
	try_open("core_pattern", "/proc/sys/kernel/core_pattern", O_WRONLY);
	try_open("tty", "/dev/tty", O_RDWR);
	printf("session %s\n", getsid(0) == getpid() ? "own" : "shared");
	return 0;
}

static int limits(void)
{
	static const struct {
		const char *name;
		int resource;
	} all[] = {{"nofile", RLIMIT_NOFILE}, {"fsize", RLIMIT_FSIZE},
		   {"cpu", RLIMIT_CPU},	      {"core", RLIMIT_CORE},
		   {"nproc", RLIMIT_NPROC},   {"as", RLIMIT_AS}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct rlimit r;

		getrlimit(all[i].resource, &r);
		printf("%s %lld %lld\n", all[i].name, (long long)r.rlim_cur,
		       (long long)r.rlim_max);
	}
	return 0;
}

static void touch(volatile char *p, size_t n)
{
	for (size_t i = 0; p && i < n; i += 4096)
		p[i] = 1;
}

static int hog_pages(int mib)
{
	touch(malloc((size_t)mib << 20), (size_t)mib << 20);
	puts("filled");
	fflush(stdout);
	sleep(60);
	return 0;
}

static int hog_file(int fd, int mib)
{
	static char block[1 << 20];

	memset(block, 1, sizeof(block));
	for (int i = 0; fd >= 0 && i < mib; i++)
		if (write(fd, block, sizeof(block)) != sizeof(block))
			break;
	puts("filled");
	fflush(stdout);
	sleep(60);
	return 0;
}

static void *go_on(void *mib)
{
	hog_pages(*(int *)mib);
	exit(0);
}

/* The first thread ends, and its process lists no memory from then on. */
static int hog_behind(int mib)
{
	pthread_t t;

	if (pthread_create(&t, NULL, go_on, &mib))
		return 1;
	syscall(SYS_exit, 0);
	return 0;
}

/* Half in a tmpfs and half in shared memory that no file system has. */
static int hog_both(int mib)
{
	size_t half = (size_t)mib << 19;
	int fd = open("/dev/shm/f", O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, (off_t)half))
		return 1;
	touch(mmap(NULL, half, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
	      half);
	touch(mmap(NULL, half, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0),
	      half);
	puts("filled");
	fflush(stdout);
	sleep(60);
	return 0;
}

static void *rest(void *unused)
{
	sleep(60);
	return unused;
}

static int threads(int n)
{
	pthread_attr_t at;
	pthread_t t;

	pthread_attr_init(&at);
	pthread_attr_setstacksize(&at, 65536);
	while (n-- && !pthread_create(&t, &at, rest, NULL))
		;
	puts("threaded");
	fflush(stdout);
	sleep(60);
	return 0;
}

/* Many that share what one has: no excess. */
static int share(int mib)
{
	size_t n = (size_t)mib << 20;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	touch(p, n);
	for (int i = 0; i < 7; i++) {
		if (fork() == 0) {
			touch(p, n);
			sleep(60);
			_exit(0);
		}
	}
	usleep(1500 * 1000);
	puts("shared");
	return 0;
}

static int forks(int n)
{
	for (int i = 0; i < n; i++) {
		if (fork() == 0) {
			sleep(60);
			_exit(0);
		}
	}
	puts("forked");
	fflush(stdout);
	sleep(60);
	return 0;
}

/* A child that outlives its parent; holds stdout. */
static int orphan(void)
{
	if (fork() == 0) {
		sleep(1);
		puts("still here");
		fflush(stdout);
		sleep(60);
		_exit(0);
	}
	return 7;
}

/* Daemonised as hard as can be, holding stdout; says when it is up. */
static int stubborn(void)
{
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			puts("up");
			fflush(stdout);
			sleep(60);
		}
		_exit(0);
	}
	sleep(60);
	return 0;
}

static int deaf(void)
{
	close(0);
	close(1);
	sleep(60);
	return 0;
}

static int spin(void)
{
	volatile unsigned turns = 1;

	while (turns)
		turns |= 1;
	return 0;
}

static int read_it(const char *path)
{
	struct stat sb;
	char buf[256];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, buf, sizeof(buf)) : -1;

	if (n < 0)
		printf("read %s\n", strerrorname_np(errno));
	else
		printf("read %.*s\n", (int)n, buf);
	printf("stat %s\n",
	       stat(path, &sb) == 0 ? "there" : strerrorname_np(errno));
	return 0;
}

static int write_it(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	printf("write %s\n", fd >= 0 ? "opened" : strerrorname_np(errno));
	return 0;
}

int main(int argc, char **argv)
{
	const char *act = argc > 1 ? argv[1] : "",
		   *arg = argc > 2 ? argv[2] : "0";
	int n = atoi(arg);
	static const struct {
		const char *name;
		int (*run)(void);
	} plain[] = {{"facts", facts},	 {"limits", limits},
		     {"orphan", orphan}, {"stubborn", stubborn},
		     {"deaf", deaf},	 {"spin", spin}};
	static const struct {
		const char *name;
		int (*run)(int);
	} counted[] = {{"pages", hog_pages}, {"share", share},
		       {"forks", forks},     {"behind", hog_behind},
		       {"both", hog_both},   {"threads", threads}};

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (!strcmp(plain[i].name, act))
			return plain[i].run();
	for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++)
		if (!strcmp(counted[i].name, act))
			return counted[i].run(n);
	if (!strcmp(act, "tmpfile"))
		return hog_file(open("/tmp/f", O_WRONLY | O_CREAT, 0600), n);
	if (!strcmp(act, "read"))
		return read_it(arg);
	if (!strcmp(act, "write"))
		return write_it(arg);
	if (!strcmp(act, "raise"))
		return raise(n);
	if (!strcmp(act, "exit"))
		return n;
	fprintf(stderr, "floor_inside: what is %s?\n", act);
	return 99;
}
