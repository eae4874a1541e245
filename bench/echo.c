/* echo.c - an extension that answers every tool_call at once: the id is copied
 * by searching, so that what is measured is what stands between. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void put(const char *p, size_t n)
{
	while (n) {
		ssize_t done = write(1, p, n);

		if (done <= 0)
			exit(1);
		p += done;
		n -= (size_t)done;
	}
}

static void say(const char *s)
{
	put(s, strlen(s));
}

/* Answer as long as the question: its "pad" comes back as the text. */
static void answer(char *line, size_t len)
{
	static char out[8 << 20];
	char *id = memmem(line, len, "\"id\":\"", 6);
	char *pad = memmem(line, len, "\"pad\":\"", 7);
	char *end;
	int n;

	if (!id || !pad)
		return;
	id += 6;
	*strchr(id, '"') = '\0';
	pad += 7;
	end = strchr(pad, '"');
	n = snprintf(out, sizeof(out),
		     "{\"type\":\"tool_result\",\"id\":\"%s\",\"content\":[{"
		     "\"type\":\"text\",\"text\":\"%.*s\"}]}\n",
		     id, (int)(end - pad), pad);
	put(out, (size_t)n);
}

int main(void)
{
	static char line[8 << 20];
	size_t have = 0;

	say("{\"type\":\"hello\",\"name\":\"echo\",\"version\":\"1\","
	    "\"capabilities\":[\"tools\"]}\n");
	for (;;) {
		ssize_t n = read(0, line + have, sizeof(line) - 1 - have);
		char *nl;

		if (n <= 0)
			return 0;
		have += (size_t)n;
		while ((nl = memchr(line, '\n', have))) {
			size_t len = (size_t)(nl - line);

			*nl = '\0';
			if (strstr(line, "hello_ack"))
				say("{\"type\":\"register_tool\",\"name\":\"t\","
				    "\"description\":\"t\",\"schema\":{\"type\":"
				    "\"object\"}}\n{\"type\":\"ready\"}\n");
			else
				answer(line, len);
			have -= len + 1;
			memmove(line, nl + 1, have);
		}
	}
}
