/* wire.h - as much JSON as the twins in C need. A string is kept as it is
 * written, escapes and all, so that it goes out as it came in. */
#ifndef WIRE_H
#define WIRE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The first "KEY":"..." of @line; "" if there is none. */
static inline const char *field(const char *line, const char *key, char *out,
				size_t size)
{
	char want[64];
	const char *p, *end;

	out[0] = 0;
	snprintf(want, sizeof(want), "\"%s\":\"", key);
	p = strstr(line, want);
	if (!p)
		return out;
	p += strlen(want);
	for (end = p; *end && *end != '"'; end++)
		if (*end == '\\' && end[1])
			end++;
	if ((size_t)(end - p) >= size)
		return out;
	memcpy(out, p, end - p);
	out[end - p] = 0;
	return out;
}

/* The frame's type; keys of the host's frames begin with it. */
static inline bool is(const char *line, const char *type)
{
	char got[64];

	return !strcmp(field(line, "type", got, sizeof(got)), type);
}

__attribute__((format(printf, 1, 2))) static inline void emit(const char *fmt,
							      ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

#endif
