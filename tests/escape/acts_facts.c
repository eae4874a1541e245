/* acts_facts.c - what is the case, for attempts that nobody decides at run
 * time: then the cause is a fact that can be looked at. "ok FACT". */
#include "config.h"

#include "escapist.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* FIELD of /proc/self/status. */
static int status(char **a, struct say *s)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	size_t n = strlen(a[0]);

	if (!f)
		return errno;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, a[0], n) && line[n] == ':') {
			line[strcspn(line, "\n")] = '\0';
			say(s, "%s",
			    line + n + 1 + strspn(line + n + 1, " \t"));
			break;
		}
	fclose(f);
	return 0;
}

/* Is the mount at PATH read-only? */
static int read_only(char **a, struct say *s)
{
	struct statvfs fs;

	if (statvfs(a[0], &fs))
		return errno;
	say(s, "%s", fs.f_flag & ST_RDONLY ? "yes" : "no");
	return 0;
}

/* Does PATH lead nowhere? */
static int absent(char **a, struct say *s)
{
	struct stat st;

	say(s, "%s", lstat(a[0], &st) && errno == ENOENT ? "yes" : "no");
	return 0;
}

/* Is PATH a mount point? */
static int mount_point(char **a, struct say *s)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096], at[4096];
	const char *found = "no";

	if (!f)
		return errno;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %*s %*s %*s %4095s", at) == 1 &&
		    !strcmp(at, a[0]))
			found = "yes";
	fclose(f);
	say(s, "%s", found);
	return 0;
}

/* KIND: user, pid, net... */
static int namespace(char **a, struct say *s)
{
	char path[64], link[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", a[0]);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return errno;
	say(s, "%.*s", (int)n, link);
	return 0;
}

static int interfaces(char **a, struct say *s)
{
	struct if_nameindex *list = if_nameindex();

	(void)a;
	if (!list)
		return errno;
	for (struct if_nameindex *i = list; i->if_name; i++)
		say(s, "%s%s", i == list ? "" : " ", i->if_name);
	if_freenameindex(list);
	return 0;
}

/* Numbers of our descriptors but the pipe for our outcome, with what they
 * are. */
static int descriptors(char **a, struct say *s)
{
	int n = 0;

	(void)a;
	for (int i = 0; i < 1024; i++) {
		struct stat st;

		if (fstat(i, &st))
			continue;
		say(s, "%s%d:%s", n++ ? " " : "", i,
		    S_ISFIFO(st.st_mode)   ? "pipe"
		    : S_ISSOCK(st.st_mode) ? "socket"
		    : S_ISREG(st.st_mode)  ? "file"
		    : S_ISDIR(st.st_mode)  ? "dir"
					   : "other");
	}
	return 0;
}

/* Has our session a terminal? */
static int terminal(char **a, struct say *s)
{
	FILE *f = fopen("/proc/self/stat", "re");
	int tty = -1;

	(void)a;
	if (!f)
		return errno;
	if (fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %d", &tty) != 1)
		tty = -1;
	fclose(f);
	say(s, "%d", tty);
	return 0;
}

/* COMMAND name of process 1. */
static int first_process(char **a, struct say *s)
{
	FILE *f = fopen("/proc/1/comm", "re");
	char name[64] = "";

	(void)a;
	if (!f)
		return errno;
	if (fgets(name, sizeof(name), f))
		name[strcspn(name, "\n")] = '\0';
	fclose(f);
	say(s, "%s", name);
	return 0;
}

const struct act acts_facts[] = {
	{"status", 1, status},
	{"read-only", 1, read_only},
	{"absent", 1, absent},
	{"mount-point", 1, mount_point},
	{"namespace", 1, namespace},
	{"interfaces", 0, interfaces},
	{"descriptors", 0, descriptors},
	{"terminal", 0, terminal},
	{"first-process", 0, first_process},
	{NULL, 0, NULL},
};
