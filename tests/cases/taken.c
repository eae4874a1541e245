/* taken.c - run a program under a seccomp filter that has a listener already.
 *
 *	taken PROGRAM ARGUMENT...
 *
 * A process may have one listener: a second filter that asks for one gets
 * EBUSY, as in some containers and under WSL. The listener stays open in the
 * program, and no call is sent to it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog prog = {.len = 1, .filter = code};
	int listener = -1;

	if (argc > 1 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		listener =
			(int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				     SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
	/* It comes with close-on-exec, and closed it would be nobody's. */
	if (listener < 0 || fcntl(listener, F_SETFD, 0) < 0) {
		fprintf(stderr, "taken: %s\n", strerror(errno));
		return 9;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "taken: %s: %s\n", argv[1], strerror(errno));
	return 8;
}
