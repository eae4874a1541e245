/* escapist.h - what the acts of the escape suite share.
 *
 * An act tries one thing that a sandbox must prevent, and says "ok" only if
 * it got what it came for: a secret, a descriptor, a changed file. */
#ifndef ZB_TEST_ESCAPIST_H
#define ZB_TEST_ESCAPIST_H

#include <stdbool.h>
#include <stddef.h>

#define MAX_ARGS 8
#define SAY_MAX	 4096

/* What an act says besides its outcome. */
struct say {
	char text[SAY_MAX];
};
void say(struct say *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

struct act {
	const char *name;
	int args;
	/* Return: 0 if it got out, else an errno (positive). */
	int (*run)(char **a, struct say *s);
};

extern const struct act acts_files[], acts_meta[], acts_process[],
	acts_kernel[], acts_net[], acts_facts[], acts_plant[];

/* What every planted secret starts with. */
#define SECRET "S3CRET"
/* Read @fd (and close it): 0 if a secret is in it. A negative @fd is @err. */
int secret_in(int fd, int err, struct say *s);
int number(const char *text);
/* "own": become root of new namespaces, as anybody may who is not in a
 * sandbox. "-": stay what we are. */
void prepare(const char *how);
/* "/proc/self/fd/N" */
const char *fd_path(int fd);

#endif
