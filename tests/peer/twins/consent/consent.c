/* consent.c - a tool that opens a panel by itself and answers when the user
 * did. Calls are kept apart, each has its own panel. */
#include "../wire.h"

#define TITLE  "May it go ahead?"
#define FOOTER "\u25b8 y allows it, n forbids it, esc gives up"

struct ask {
	char id[128], step[1024], why[1024];
};
static struct ask asks[64]; /* a panel's number is its place here */
static unsigned n_asks;

/* What stands in the panel; @what is "panel_render" or the way it opens. */
static void show(unsigned n, const char *head, const char *hint)
{
	const struct ask *a = &asks[n - 1];

	emit("%s\"title\":\"" TITLE "\",\"lines\":[\"Step: %s\",\"Why:  "
	     "%s\",\"\",\"%s\"],\"footer\":\"" FOOTER "\"}%s",
	     head, a->step, a->why[0] ? a->why : "not said", hint,
	     strstr(head, "open_panel") ? "}" : "");
}

static void call(const char *line)
{
	char head[128];
	struct ask *a;

	if (n_asks == sizeof(asks) / sizeof(asks[0]))
		return;
	a = &asks[n_asks++];
	field(line, "id", a->id, sizeof(a->id));
	field(line, "step", a->step, sizeof(a->step));
	field(line, "why", a->why, sizeof(a->why));
	snprintf(head, sizeof(head),
		 "{\"type\":\"open_panel\",\"panel\":{\"id\":\"consent-%u\",",
		 n_asks);
	show(n_asks, head, "waiting for y or n");
}

static void answer(unsigned n, bool close, bool yes)
{
	struct ask *a = &asks[n - 1];

	if (!a->id[0])
		return;
	if (close)
		emit("{\"type\":\"panel_close\",\"panel_id\":\"consent-%u\"}",
		     n);
	if (yes)
		emit("{\"type\":\"tool_result\",\"id\":\"%s\",\"content\":[{"
		     "\"type\":\"text\",\"text\":\"go ahead\"}]}",
		     a->id);
	else
		emit("{\"type\":\"tool_result\",\"id\":\"%s\",\"content\":[{"
		     "\"type\":\"text\",\"text\":\"the user said no\"}],"
		     "\"is_error\":true}",
		     a->id);
	a->id[0] = 0;
}

static void key(const char *line)
{
	char panel[64], k[32], text[32], head[128];
	unsigned n;

	field(line, "panel_id", panel, sizeof(panel));
	field(line, "key", k, sizeof(k));
	field(line, "text", text, sizeof(text));
	if (sscanf(panel, "consent-%u", &n) != 1 || !n || n > n_asks)
		return;
	if (is(line, "panel_close")) {
		answer(n, false, false);
	} else if (!strcmp(text, "y") || !strcmp(text, "n")) {
		answer(n, true, text[0] == 'y');
	} else {
		snprintf(head, sizeof(head),
			 "{\"type\":\"panel_render\",\"panel_id\":\"%s\",",
			 panel);
		show(n, head, "only y and n are answers");
	}
}

int main(void)
{
	static char line[1 << 16];

	emit("{\"type\":\"hello\",\"name\":\"consent\",\"version\":\"1.2.0\","
	     "\"capabilities\":[\"commands\",\"tools\",\"events\","
	     "\"panels\"]}");
	while (fgets(line, sizeof(line), stdin)) {
		if (is(line, "hello_ack")) {
			emit("{\"type\":\"register_tool\",\"name\":"
			     "\"ask_consent\",\"description\":\"Let the user "
			     "decide about a step.\",\"schema\":{\"type\":"
			     "\"object\",\"properties\":{\"step\":{\"type\":"
			     "\"string\"},\"why\":{\"type\":\"string\"}},"
			     "\"required\":[\"step\"]}}");
			emit("{\"type\":\"ready\"}");
		} else if (is(line, "tool_call")) {
			call(line);
		} else if (is(line, "panel_key") || is(line, "panel_close")) {
			key(line);
		} else if (is(line, "shutdown")) {
			emit("{\"type\":\"shutdown_ack\"}");
			return 0;
		}
	}
	return 0;
}
