/* greeter.c - two slash commands: /greet hands the model a prompt, /bell says
 * something to the user alone. */
#include "../wire.h"

static void command(const char *line)
{
	char id[128], name[64], args[1024];

	field(line, "id", id, sizeof(id));
	field(line, "name", name, sizeof(name));
	field(line, "args", args, sizeof(args));
	if (!strcmp(name, "greet"))
		emit("{\"type\":\"command_response\",\"id\":\"%s\","
		     "\"action\":\"prompt\",\"prompt\":\"Welcome %s aboard in "
		     "at most ten words.\"}",
		     id, args[0] ? args : "me");
	else if (!strcmp(name, "bell")) {
		emit("{\"type\":\"notify\",\"level\":\"info\","
		     "\"message\":\"the bell was struck\"}");
		emit("{\"type\":\"command_response\",\"id\":\"%s\","
		     "\"action\":\"display\",\"display\":\"ding, "
		     "says the bell\"}",
		     id);
	} else
		emit("{\"type\":\"command_response\",\"id\":\"%s\","
		     "\"action\":\"noop\",\"error\":\"greeter knows no /%s\"}",
		     id, name);
}

int main(void)
{
	static char line[1 << 16];

	emit("{\"type\":\"hello\",\"name\":\"greeter\",\"version\":\"2.1.0\","
	     "\"capabilities\":[\"commands\",\"tools\",\"events\","
	     "\"panels\"]}");
	while (fgets(line, sizeof(line), stdin)) {
		if (is(line, "hello_ack")) {
			emit("{\"type\":\"register_command\",\"name\":"
			     "\"greet\",\"description\":\"welcome somebody "
			     "aboard\"}");
			emit("{\"type\":\"register_command\",\"name\":"
			     "\"bell\",\"description\":\"strike the ship's "
			     "bell\"}");
			emit("{\"type\":\"ready\"}");
		} else if (is(line, "command_invoked")) {
			command(line);
		} else if (is(line, "shutdown")) {
			emit("{\"type\":\"shutdown_ack\"}");
			return 0;
		}
	}
	return 0;
}
