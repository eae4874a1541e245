/* error.c - filling, wrapping and naming errors. */
#include "error.h"

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
	snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", strerror(sys));
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

static const struct {
	enum zb_code code;
	int exit_code;
	const char *name;
} codes[] = {
	{ZB_OK, 0, "ok"},
	{ZB_ESYS, 1, "system"},
	{ZB_EUSAGE, 2, "usage"},
	{ZB_EPOLICY, 3, "policy"},
	{ZB_EUNSUPPORTED, 4, "unsupported"},
	{ZB_EPROTO, 1, "protocol"},
	{ZB_ELIMIT, 1, "limit"},
};

int zb_exit_code(enum zb_code code)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].code == code)
			return codes[i].exit_code;
	return 1;
}

const char *zb_code_name(enum zb_code code)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].code == code)
			return codes[i].name;
	return "unknown";
}
