/* opens.c - how long one open and close takes: prints nanoseconds for each of
 * a number of rounds, then ends. */
#include "config.h"

#include "bench/util.h"

#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "/etc/passwd";
	int rounds = argc > 2 ? atoi(argv[2]) : 20, each = 2000;

	for (int r = 0; r < rounds; r++) {
		int64_t start = now_ns();

		for (int i = 0; i < each; i++) {
			int fd = open(path, O_RDONLY | O_CLOEXEC);

			if (fd < 0)
				return 1;
			close(fd);
		}
		printf("%lld\n", (long long)((now_ns() - start) / each));
	}
	return 0;
}
