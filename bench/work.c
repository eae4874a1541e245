/* work.c - what programs do with files, in each of the directories in turn, and
 * how long it took: a line "WHAT DIRECTORY NANOSECONDS" for each, directories
 * by number.
 *
 *	work ROUNDS DIRECTORY...
 *
 * A directory "~" is a new one in HOME: no other run's, so that none stands on
 * the host that the private HOME would hide. */
#include "config.h"

#include "bench/util.h"

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static const char *file(const char *dir, const char *kind, int i)
{
	static char ring[4][PATH_MAX];
	static unsigned at;
	char *p = ring[at++ % 4];

	snprintf(p, PATH_MAX, "%s/%s%d", dir, kind, i);
	return p;
}

static void put(const char *path, int flags)
{
	static const char text[2000] = "text";
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);

	check(fd >= 0 && write(fd, text, sizeof(text)) == sizeof(text), path);
	close(fd);
}

/* 500 files: made, written, another renamed over each, removed. */
static void files(const char *dir)
{
	for (int i = 0; i < 500; i++)
		put(file(dir, "f", i), O_EXCL);
	for (int i = 0; i < 500; i++) {
		put(file(dir, "new", i), O_EXCL);
		check(!rename(file(dir, "new", i), file(dir, "f", i)),
		      "rename");
	}
	for (int i = 0; i < 500; i++)
		check(!unlink(file(dir, "f", i)), "unlink");
}

/* As a build: 1000 files are read, and for each another is made, looked at, and
 * read again; then all of those are removed. */
static void build(const char *dir)
{
	char buf[4096];
	struct stat st;

	for (int i = 0; i < 1000; i++)
		put(file(dir, "in", i), O_TRUNC);
	for (int i = 0; i < 1000; i++) {
		int fd = open(file(dir, "in", i), O_RDONLY | O_CLOEXEC);

		check(fd >= 0 && read(fd, buf, sizeof(buf)) > 0, "in");
		close(fd);
		put(file(dir, "out", i), O_TRUNC);
		check(!stat(file(dir, "out", i), &st), "stat");
	}
	for (int i = 0; i < 1000; i++) {
		int fd = open(file(dir, "out", i), O_RDONLY | O_CLOEXEC);

		check(fd >= 0 && read(fd, buf, sizeof(buf)) > 0, "out");
		close(fd);
		check(!unlink(file(dir, "out", i)), "unlink");
	}
}

static int git(const char *dir, const char *const *args)
{
	const char *argv[16] = {"git",
				"-C",
				dir,
				"-c",
				"user.name=u",
				"-c",
				"user.email=u@example.org"};
	posix_spawn_file_actions_t fa;
	size_t n = 7;
	int status = 1;
	pid_t pid;

	while (*args && n < 15)
		argv[n++] = *args++;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
	if (!posix_spawnp(&pid, "git", &fa, NULL,
			  (char *const *)(uintptr_t)argv, environ))
		waitpid(pid, &status, 0);
	posix_spawn_file_actions_destroy(&fa);
	return status;
}

/* 50 files, changed each time, committed. */
static void commit(const char *dir)
{
	long long now = (long long)now_ns(); /* in no commit so far */

	mkdir(file(dir, "c", 0), 0755);
	for (int i = 0; i < 50; i++) {
		int fd = open(file(dir, "c0/", i),
			      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

		check(fd >= 0 && dprintf(fd, "%lld %d\n", now, i) > 0, "c");
		close(fd);
	}
	check(!git(dir, (const char *[]){"add", "c0", NULL}), "git add");
	check(!git(dir, (const char *[]){"commit", "-q", "-m", "x", NULL}),
	      "git commit");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const char *dir);
	} kinds[] = {{"files", files}, {"build", build}, {"commit", commit}};
	int rounds = argc > 2 ? atoi(argv[1]) : 0;
	char own[PATH_MAX];

	for (int d = 2; d < argc; d++) {
		char at[PATH_MAX];

		if (!strcmp(argv[d], "~") && getenv("HOME")) {
			snprintf(own, sizeof(own), "%s/work-%d", getenv("HOME"),
				 (int)getpid());
			argv[d] = own;
		}
		if (mkdir(argv[d], 0755) && access(argv[d], W_OK))
			check(0, argv[d]);
		snprintf(at, sizeof(at), "%.4000s/.git", argv[d]);
		if (access(at, F_OK))
			check(!git(argv[d],
				   (const char *[]){"init", "-q", NULL}),
			      "git init");
	}
	for (int r = 0; r < rounds; r++)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			for (int d = 2; d < argc; d++) {
				int64_t start = now_ns();

				kinds[k].run(argv[d]);
				printf("%s %d %lld\n", kinds[k].name, d - 2,
				       (long long)(now_ns() - start));
				fflush(stdout);
			}
	return 0;
}
