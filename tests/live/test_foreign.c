/* test_foreign.c - calls of another ABI and calls that do not exist here, on
 * the whole floor with the real broker: what they get and what is recorded.
 *
 * That the x32 entry is refused on kernels that have it is shown by the rows of
 * tests/sim; here the number reaches the filter, whatever the kernel has. */
#include "config.h"

#include "box.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define X32_BIT 0x40000000L

static struct box box;

static bool is_native_x86(void)
{
#ifdef __x86_64__
	return true;
#else
	return false;
#endif
}

static void x32(void)
{
	long nr = X32_BIT | SYS_openat, rc;
	const struct zb_denial *d;
	char want[64];
	int err;

	snprintf(want, sizeof(want), "x32 syscall 0x%lx (foreign ABI)", nr);
	box_forget(&box);
	rc = box_tell(&box, &err, NULL, "call %ld %d s:%s %d %d", nr, AT_FDCWD,
		      "/usr", O_RDONLY, 0);
	tap_ok(rc == -1 && err == ENOSYS, "x32 open: %ld, errno %d", rc, err);
	rc = box_tell(&box, &err, NULL, "call %d %d s:%s %d %d",
		      (int)SYS_openat, AT_FDCWD, "/usr", O_RDONLY, 0);
	tap_ok(rc >= 0, "control: natively it opens");
	d = box_last(&box, ZB_OP_SYSCALL, want);
	tap_ok(d != NULL, "a record names it: %s", want);
	tap_ok(d && d->err_no == ENOSYS && !d->grant_key,
	       "with what it got, and no grant");
	box_tell(&box, &err, NULL, "call %ld %d s:%s %d %d", nr, AT_FDCWD,
		 "/usr", O_RDONLY, 0);
	tap_ok(box_denied(&box, ZB_OP_SYSCALL, want) > 0 &&
		       !box_denied(&box, ZB_OP_FS_READ, NULL),
	       "it is no open that was denied");
}

static void not_here(void)
{
	static const struct {
		const char *name;
		int nr;
	} calls[] = {{"io_uring_setup", 425},
		     {"io_uring_enter", 426},
		     {"io_uring_register", 427},
		     {"clone3", 435},
		     {"openat2", 437},
		     {"memfd_secret", 447},
		     {"memfd_create", SYS_memfd_create},
		     {"vmsplice", SYS_vmsplice}};
	int err;

	box_forget(&box);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		long rc = box_tell(&box, &err, NULL, "call %d 0 0 0 0",
				   calls[i].nr);

		tap_ok(rc == -1 && err == ENOSYS, "%s: %ld, errno %d",
		       calls[i].name, rc, err);
	}
	tap_ok(box_total(&box) == 0, "programs that fall back make no noise");
}

/* A refused call that has rubbish above its 32 bits is the same call. */
static void masked(void)
{
	int err;
	long rc;

	box_forget(&box);
	rc = box_tell(&box, &err, NULL, "call %d 0 %ld s:x", (int)SYS_ioctl,
		      0x5412L | 1L << 32);
	tap_ok(rc == -1 && err == EPERM, "TIOCSTI with a high bit: errno %d",
	       err);
	tap_ok(box_denied(&box, ZB_OP_SYSCALL, "ioctl TIOCSTI") > 0,
	       "and its record");
	rc = box_tell(&box, &err, NULL, "call %d 0 %ld s:x", (int)SYS_ioctl,
		      0x5401L);
	tap_ok(rc == -1 && err == ENOTTY, "control: another ioctl: errno %d",
	       err);
}

int main(void)
{
	box_plan(&box);
	box_start(&box);
	if (is_native_x86())
		x32();
	not_here();
	masked();
	box_stop(&box);
	return tap_done();
}
