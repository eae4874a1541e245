/* See keeper.py: the same in C. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char line[1 << 16], data[PATH_MAX];

static char *field(const char *key, char *out, size_t size)
{
	char want[64], *p;

	snprintf(want, sizeof(want), "\"%s\"", key);
	p = strstr(line, want);
	out[0] = 0;
	if (p && (p = strchr(p + strlen(want), '"')))
		snprintf(out, size, "%.*s", (int)strcspn(p + 1, "\""), p + 1);
	return out;
}

static int put(const char *path, const char *how, const char *text)
{
	FILE *f = fopen(path, how);

	return !f || fputs(text, f) < 0 || fclose(f) ? -1 : 0;
}

static const char *work(const char *program)
{
	static char text[64];
	char op[16], base[16], dir[PATH_MAX], at[PATH_MAX + 16],
		new[PATH_MAX + 32];
	FILE *f;
	int rc;

	field("op", op, sizeof(op));
	if (!getcwd(dir, sizeof(dir)))
		return "refused";
	snprintf(at, sizeof(at), "%s/state",
		 strcmp(field("base", base, sizeof(base)), "data") ? dir
								   : data);
	snprintf(new, sizeof(new), "%s.new", at);
	if (!strcmp(op, "put"))
		return put(new, "w", "kept") || rename(new, at) ? "refused"
								: "ok";
	if (!strcmp(op, "take")) {
		f = fopen(at, "r");
		if (!f || !fgets(text, sizeof(text), f))
			return "refused";
		fclose(f);
		return text;
	}
	if (strcmp(op, "spoil")) {
		snprintf(new, sizeof(new), "%s/added", dir);
		return put(new, "a", "\n") ? "refused" : "done";
	}
	/* A program that runs cannot be written: in its place, another. */
	snprintf(new, sizeof(new), "%s.new", program);
	rc = put(new, "w", "x");
	rc = rename(new, program) || rc;
	unlink(new);
	return rc ? "refused" : "done";
}

int main(int argc, char **argv)
{
	char type[32], id[128];

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("{\"type\":\"hello\",\"name\":\"%s\",\"version\":\"1\","
	       "\"capabilities\":[\"tools\"]}\n",
	       argc > 1 ? argv[1] : "");
	while (fgets(line, sizeof(line), stdin)) {
		field("type", type, sizeof(type));
		if (!strcmp(type, "hello_ack")) {
			field("data_dir", data, sizeof(data));
			puts("{\"type\":\"register_tool\",\"name\":\"t\","
			     "\"description\":\"t\",\"schema\":{\"type\":"
			     "\"object\"}}\n{\"type\":\"ready\"}");
		} else if (!strcmp(type, "tool_call")) {
			printf("{\"type\":\"tool_result\",\"id\":\"%s\","
			       "\"content\":[{\"type\":\"text\",\"text\":"
			       "\"%s\"}]}\n",
			       field("id", id, sizeof(id)), work(argv[0]));
		} else if (!strcmp(type, "shutdown")) {
			puts("{\"type\":\"shutdown_ack\"}");
			return 0;
		}
	}
	return 0;
}
