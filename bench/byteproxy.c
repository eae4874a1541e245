/* byteproxy.c - the least that can stand between a host and a program: bytes
 * copied both ways by poll, nothing looked at. */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

static int pump(int from, int to)
{
	static char block[1 << 20];
	ssize_t n = read(from, block, sizeof(block)), done = 0;

	while (done < n) {
		ssize_t k = write(to, block + done, (size_t)(n - done));

		if (k <= 0)
			return 0;
		done += k;
	}
	return n > 0;
}

int main(int argc, char **argv)
{
	int in[2], out[2];
	struct pollfd p[2];

	if (argc < 2 || pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return 2;
	fcntl(in[0], F_SETPIPE_SZ, 1 << 20);
	fcntl(out[0], F_SETPIPE_SZ, 1 << 20);
	if (!fork()) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execv(argv[1], argv + 1);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	p[0] = (struct pollfd){.fd = 0, .events = POLLIN};
	p[1] = (struct pollfd){.fd = out[0], .events = POLLIN};
	while (poll(p, 2, -1) > 0) {
		if (p[1].revents && !pump(out[0], 1))
			return 0;
		if (p[0].revents && !pump(0, in[1])) {
			p[0].fd = -1;
			close(in[1]);
		}
	}
	return 0;
}
