/* error.c - filling and wrapping errors. */
#include "error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void set(struct zb_error *err, enum zb_code code, int sys)
{
	err->code = code;
	err->sys = sys;
}

int zb_fail(struct zb_error *err, enum zb_code code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	set(err, code, 0);
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return code;
}

bool zb_is_short(int sys)
{
	return sys == EMFILE || sys == ENFILE || sys == ENOMEM ||
	       sys == EAGAIN || sys == EFBIG;
}

/* What to do about something of the host's that is used up, whatever it was
 * wanted for. */
static const char *remedy(int sys)
{
	switch (sys) {
	case EMFILE:
		return " (more are allowed by ulimit -n)";
	case ENFILE:
		return " (of all processes; more are allowed by fs.file-max)";
	case EFBIG:
		return " (a larger one is allowed by ulimit -f)";
	default:
		return "";
	}
}

int zb_fail_sys(struct zb_error *err, int sys, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	if (!err)
		return ZB_ESYS;
	set(err, ZB_ESYS, sys);
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	n = strlen(err->msg);
	snprintf(err->msg + n, sizeof(err->msg) - n, ": %s%s", strerror(sys),
		 remedy(sys));
	return ZB_ESYS;
}

int zb_wrap(struct zb_error *err, const char *fmt, ...)
{
	char rest[ZB_ERROR_MAX];
	va_list ap;
	size_t n;

	if (!err)
		return ZB_ESYS;
	memcpy(rest, err->msg, sizeof(rest));
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	n = strlen(err->msg);
	/* Cutting a message at the end is what its maximum means. */
	if (n + 3 < sizeof(err->msg)) {
		size_t room = sizeof(err->msg) - n - 3, len = strlen(rest);

		if (len > room)
			len = room;
		memcpy(err->msg + n, ": ", 2);
		memcpy(err->msg + n + 2, rest, len);
		err->msg[n + 2 + len] = '\0';
	}
	return err->code;
}

int zb_exit_code(enum zb_code code)
{
	switch (code) {
	case ZB_OK:
		return 0;
	case ZB_EUSAGE:
		return 2;
	case ZB_EPOLICY:
		return 3;
	case ZB_EUNSUPPORTED:
		return 4;
	case ZB_ESYS:
	case ZB_EPROTO:
	case ZB_ELIMIT:
		break;
	}
	return 1;
}
