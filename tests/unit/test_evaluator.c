/* test_evaluator.c - scope in, answer out: rows through the whole of resolve
 * and evaluate, on a host made of a table. */
#include "fake_host.h"

#include <errno.h>

/* Scopes of the rows, laid over strict (S) or standard (T). */
static const struct {
	const char *base, *over;
} chains[] = {
	[0] = {"strict", NULL},
	[1] = {"standard", NULL},
	[2] = {"strict", "{\"fs\":{\"read\":[\"~/src\",\"~/.config/weather\"],"
			 "\"write\":[\"~/src/app/notes.txt\"],"
			 "\"exec\":[\"git\"],"
			 "\"deny\":[\"~/src/other/**\",\"~/src/app/.env*\"]}}"},
	[3] = {"strict", "{\"fs\":{\"read\":[\"${project}/*.c\"],"
			 "\"exec\":[\"/opt/few/*\"]},"
			 "\"env\":{\"pass\":[\"WEATHER_API_KEY\"]},"
			 "\"protocol\":{\"events\":[\"turn_start\"],"
			 "\"slash\":[\"clear\"],\"call_tool\":[\"read\"],"
			 "\"commands\":[\"hi\"],\"submit\":true,"
			 "\"intercept\":{\"tool_call\":"
			 "[\"block\",\"modify:weather\"]}}}"},
	[4] = {"standard",
	       "{\"fs\":{\"write\":[\"${extension_dir}/state.json\","
	       "\"${extension_dir}/lib/cache.json\"]}}"},
	[5] = {"strict", "{\"fs\":{\"deny\":[\"${project}/linked\"],"
			 "\"read\":[\"${project}\"]}}"},
	[6] = {"strict", "{\"fs\":{\"read\":[\"/tmp/work/p\"]}}"},
	[7] = {"standard", "{\"fs\":{\"write\":[\"${project}\"]}}"},
	[8] = {"strict", "{\"fs\":{\"write\":[\"~/src/linky\"]}}"},
	[9] = {"strict", "{\"fs\":{\"read\":[\"${project}/*.c\"],"
			 "\"write\":[\"${project}/*.log\",\"${project}/.e*\"],"
			 "\"deny\":[\"${project}/no.log\"]}}"},
	[10] = {"strict", "{\"fs\":{\"read\":[\"${project}\"],"
			  "\"write\":[\"${project}/*.log\"]}}"},
};

#define A	ZB_ALLOW
#define B	ZB_ALLOW_BROKERED
#define D	ZB_DENY
#define MOUNT	ZB_FLOOR_MOUNT
#define LL	ZB_FLOOR_LANDLOCK
#define NETNS	ZB_FLOOR_NETNS
#define SECCOMP ZB_FLOOR_SECCOMP
#define NONE	ZB_FLOOR_NONE
#define P	"/home/u/src/app"

struct row {
	int chain;
	const char *op, *target;
	const char *is; /* "e" exists, "d" a directory */
	enum zb_verdict verdict;
	int err_no;
	enum zb_floor floor;
	/* "KEY VALUE", or "-WORDS" of why not, for a denial */
	const char *grant;
};

static const struct row rows[] = {
	/* strict: what is there */
	{0, "fs.read", "/usr/lib/libc.so.6", "e", A, 0, 0, NULL},
	{0, "fs.read", "/usr/lib/none.so", "", A, 0, 0, NULL},
	{0, "fs.read", "/usr/lib", "ed", A, 0, 0, NULL},
	{0, "fs.read", "/etc/hosts", "e", A, 0, 0, NULL},
	{0, "fs.read", "/etc/passwd", "e", A, 0, 0, NULL},
	{0, "fs.read", "/bin", "e", A, 0, 0, NULL},
	{0, "fs.read", "/", "ed", A, 0, 0, NULL},
	{0, "fs.read", "/home", "ed", A, 0, 0, NULL},
	{0, "fs.read", "/home/u", "ed", A, 0, 0, NULL},
	{0, "fs.read", "/usr", "ed", A, 0, 0, NULL},
	{0, "fs.read", EXT "/main.py", "e", A, 0, 0, NULL},
	{0, "fs.read", EXT "/extension.json", "e", A, 0, 0, NULL},
	{0, "fs.read", "/proc/self/status", "e", A, 0, 0, NULL},
	{0, "fs.read", "/dev/urandom", "e", A, 0, 0, NULL},
	{0, "fs.read", "/dev", "ed", A, 0, 0, NULL},
	{0, "fs.read", BOX "/data/x", "e", A, 0, 0, NULL},
	{0, "fs.read", BOX "/data/x", "", A, 0, 0, NULL},
	{0, "fs.read", "/home/u/own.txt", "e", A, 0, 0, NULL},
	{0, "fs.read", "/tmp/own.txt", "e", A, 0, 0, NULL},
	{0, "fs.exec", "/usr/bin/python3.11", "e", A, 0, 0, NULL},
	{0, "fs.exec", EXT "/main.py", "e", A, 0, 0, NULL},
	{0, "fs.exec", "/home/u/.cache/esbuild", "e", A, 0, 0, NULL},
	{0, "fs.exec", "/tmp/go-build1/x", "e", A, 0, 0, NULL},
	{0, "fs.exec", "/usr/lib", "ed", A, 0, 0, NULL},
	/* strict: what is not */
	{0, "fs.read", "/home/u/.ssh/id_ed25519", "", D, ENOENT, MOUNT,
	 "fs.read ~/.ssh/id_ed25519"},
	{0, "fs.read", "/home/u/.bashrc", "", D, ENOENT, MOUNT,
	 "fs.read ~/.bashrc"},
	{0, "fs.read", P "/main.c", "", D, ENOENT, MOUNT,
	 "fs.read ${project}/main.c"},
	{0, "fs.read", P, "", D, ENOENT, MOUNT, "fs.read ${project}"},
	{0, "fs.read", "/etc/shadow", "", D, ENOENT, MOUNT,
	 "fs.read /etc/shadow"},
	{0, "fs.read", "/tmp/one.txt", "", D, ENOENT, MOUNT,
	 "fs.read /tmp/one.txt"},
	{0, "fs.read", "/home/v", "", D, ENOENT, MOUNT, "fs.read /home/v"},
	{0, "fs.read", ZOT "/auth.json", "", D, ENOENT, MOUNT, "-credentials"},
	{0, "fs.read", BOX "/scope.json", "", D, ENOENT, MOUNT, "-supervisor"},
	{0, "fs.read", ZOT "/logs/ext-weather.log", "", D, ENOENT, MOUNT,
	 "-supervisor"},
	{0, "fs.read", ZOT "/zotbox/other/data/x", "", D, ENOENT, MOUNT,
	 "-supervisor"},
	{0, "fs.read", "/dev/sda", "", D, ENOENT, MOUNT, "-/dev"},
	{0, "fs.read", "/dev/tty", "e", D, EACCES, LL, "-/dev"},
	{0, "fs.read", "/home/u/what*", "", D, ENOENT, MOUNT, "-* or ?"},
	{0, "fs.write", "/home/u/.bashrc", "", D, ENOENT, MOUNT,
	 "fs.write ~/.bashrc"},
	{0, "fs.write", "/etc/hosts", "e", D, EROFS, MOUNT, "-read-only"},
	{0, "fs.write", "/etc/passwd", "e", D, EROFS, MOUNT, "-made by"},
	{0, "fs.write", "/usr/lib/libc.so.6", "e", D, EROFS, MOUNT,
	 "-read-only"},
	{0, "fs.write", EXT "/main.py", "e", D, EROFS, MOUNT,
	 "-data directory"},
	{0, "fs.write", "/proc/sys/kernel/core_pattern", "e", D, EROFS, MOUNT,
	 "-/proc"},
	{0, "fs.write", "/proc/self/oom_score_adj", "e", D, EROFS, MOUNT,
	 "-/proc"},
	{0, "fs.write", "/dev/null", "e", A, 0, 0, NULL},
	{0, "fs.write", "/dev/tty", "e", D, EACCES, LL, "-/dev"},
	{0, "fs.meta", "/dev/null", "e", D, EROFS, MOUNT, "-/dev"},
	{0, "fs.meta", "/usr", "ed", D, EROFS, MOUNT, "-directory"},
	{0, "fs.meta", "/home/u/x", "e", A, 0, 0, NULL},
	{0, "fs.meta", "/etc/hosts", "e", D, EROFS, MOUNT, "-read-only"},
	{0, "fs.create", "/home/u/new", "", A, 0, 0, NULL},
	{0, "fs.create", "/home/u/.local/new", "", A, 0, 0, NULL},
	{0, "fs.create", "/tmp/new", "", A, 0, 0, NULL},
	{0, "fs.create", "/dev/shm/new", "", A, 0, 0, NULL},
	{0, "fs.create", BOX "/data/new", "", A, 0, 0, NULL},
	{0, "fs.create", "/tmp/new", "e", A, 0, 0, NULL}, /* EEXIST */
	{0, "fs.create", "/new", "", D, EROFS, MOUNT, "-directory"},
	{0, "fs.create", "/home/v", "", D, EROFS, MOUNT, "-directory"},
	{0, "fs.create", "/home/v/x", "", D, ENOENT, MOUNT, "fs.write /home/v"},
	{0, "fs.create", "/etc/cron.d", "", D, EROFS, MOUNT, "-of the system"},
	{0, "fs.create", "/usr/lib/x.so", "", D, EROFS, MOUNT, "-read-only"},
	{0, "fs.create", EXT "/new.py", "", D, EROFS, MOUNT, "-data directory"},
	{0, "fs.create", "/dev/new", "", D, EROFS, MOUNT, "-/dev"},
	{0, "fs.create", "/proc/new", "", D, EROFS, MOUNT, "-/proc"},
	{0, "fs.delete", "/home/u/own", "e", A, 0, 0, NULL},
	{0, "fs.delete", "/home/u/.bashrc", "", D, ENOENT, MOUNT, "-directory"},
	{0, "fs.delete", EXT "/main.py", "e", D, EROFS, MOUNT,
	 "-data directory"},
	{0, "fs.delete", EXT, "ed", D, EROFS, MOUNT, "-runs what stands"},
	{0, "fs.create", ZOT "/extensions/new", "d", D, EROFS, MOUNT,
	 "-runs what stands"},
	{0, "fs.delete", "/home/u/.local", "ed", D, EBUSY, MOUNT, "-mount"},
	{0, "fs.delete", "/tmp", "ed", D, EROFS, MOUNT, "-/tmp"},
	{0, "fs.rename", "/home/u/.local", "ed", D, EBUSY, MOUNT, "-mount"},
	{0, "fs.rename", "/home/u/a", "e", A, 0, 0, NULL},
	{0, "fs.rename", "/home/u/b", "", A, 0, 0, NULL},
	{0, "fs.rename", "/usr/lib/libc.so.6", "e", D, EROFS, MOUNT,
	 "-read-only"},
	{0, "fs.exec", "/usr/bin/curl", "", D, ENOENT, MOUNT, "fs.exec curl"},
	{0, "fs.exec", "/usr/sbin/mkfs", "", D, ENOENT, MOUNT,
	 "fs.exec /usr/sbin/mkfs"},
	{0, "fs.exec", "/home/u/bin/mine", "", D, ENOENT, MOUNT,
	 "fs.exec mine"},
	{0, "fs.exec", "/etc/hosts", "e", D, EACCES, LL, "fs.exec /etc/hosts"},
	{0, "fs.exec", "/etc/passwd", "e", D, EACCES, LL, "-made by"},
	{0, "fs.exec", "/dev/shm/x", "e", D, EACCES, LL, "-/dev"},
	/* strict: network, sockets, calls, environment, protocol */
	{0, "net.connect", "example.org:443", "", D, ENETUNREACH, NETNS,
	 "-no network"},
	{0, "net.connect", "169.254.169.254:80", "", D, ENETUNREACH, NETNS,
	 "-no network"},
	{0, "net.connect", "[2001:db8::1]:80", "", D, ENETUNREACH, NETNS,
	 "-no network"},
	{0, "net.connect", "127.0.0.1:5432", "", D, ECONNREFUSED, NETNS,
	 "-no network"},
	{0, "net.connect", "127.0.0.1:5432", "e", B, 0, 0, NULL},
	{0, "net.connect", "[::1]:80", "e", B, 0, 0, NULL},
	{0, "net.connect", "[::ffff:127.0.0.1]:80", "e", B, 0, 0, NULL},
	{0, "net.connect", "127x.example.org:80", "e", D, ENETUNREACH, NETNS,
	 "-no network"},
	{0, "net.listen", "127.0.0.1:8080", "", B, 0, 0, NULL},
	{0, "net.listen", "0.0.0.0:8080", "", B, 0, 0, NULL},
	{0, "net.listen", "192.168.1.2:80", "", D, EADDRNOTAVAIL, NETNS,
	 "-no network"},
	{0, "net.dns", "example.org", "", D, ENETUNREACH, NETNS, "-no network"},
	{0, "net.unix", "/run/docker.sock", "", D, ENOENT, MOUNT,
	 "-no network"},
	{0, "net.unix", "/tmp/own.sock", "e", B, 0, 0, NULL},
	{0, "net.unix", BOX "/data/own.sock", "e", B, 0, 0, NULL},
	{0, "net.unix", "/usr/lib/a.sock", "e", D, EACCES, SECCOMP,
	 "-no network"},
	{0, "net.unix", "@host", "", D, ECONNREFUSED, NETNS, "-no network"},
	{0, "net.unix", "@own", "e", B, 0, 0, NULL},
	{0, "syscall", "ptrace", "", D, EPERM, SECCOMP, "-system calls"},
	{0, "env", "HOME", "", A, 0, 0, NULL},
	{0, "env", "WEATHER_API_KEY", "", D, 0, NONE,
	 "env.pass WEATHER_API_KEY"},
	{0, "env", "LD_PRELOAD", "", D, 0, NONE, "env.pass LD_PRELOAD"},
	{0, "proto", "tools", "", A, 0, 0, NULL},
	{0, "proto", "submit", "", D, 0, NONE, "protocol.submit true"},
	{0, "proto", "slash:clear", "", D, 0, NONE, "protocol.slash clear"},
	{0, "proto", "slash:unjail", "", D, 0, NONE, "-cannot be granted"},
	{0, "proto", "slash:/UnJail", "", D, 0, NONE, "-cannot be granted"},
	{0, "proto", "events:turn_end", "", D, 0, NONE,
	 "protocol.events turn_end"},
	{0, "proto", "event_content", "", D, 0, NONE,
	 "protocol.event_content true"},
	{0, "proto", "call_tool:bash", "", D, 0, NONE,
	 "-takes --yes-i-mean-it"},
	{0, "proto", "intercept:tool_call:block", "", D, 0, NONE,
	 "protocol.intercept.tool_call block"},
	{0, "proto", "intercept:tool_call", "", D, 0, NONE, "-name what"},
	{0, "proto", "shell", "", D, 0, NONE, "-no scope"},
	/* standard: the project without its secrets */
	{1, "fs.read", P "/main.c", "e", B, 0, 0, NULL},
	{1, "fs.read", P, "ed", A, 0, 0, NULL},
	{1, "fs.read", P "/none.c", "", B, 0, 0, NULL},
	{1, "fs.read", P "/.env", "e", D, EACCES, LL, "-fs.deny"},
	{1, "fs.read", P "/.env", "", D, ENOENT, MOUNT, "-fs.deny"},
	{1, "fs.read", P "/sub/.env.local", "e", D, EACCES, LL, "-fs.deny"},
	{1, "fs.read", P "/sub/deep/server.pem", "e", D, EACCES, LL,
	 "-fs.deny"},
	{1, "fs.read", P "/.ssh/known_hosts", "e", D, EACCES, LL, "-fs.deny"},
	{1, "fs.read", P "/.ssh", "ed", A, 0, 0, NULL}, /* names show */
	{1, "fs.write", P "/main.c", "e", D, EROFS, MOUNT,
	 "fs.write ${project}/main.c"},
	{1, "fs.write", P "/.env", "e", D, EROFS, MOUNT, "-fs.deny"},
	{1, "fs.create", P "/new.c", "", D, EROFS, MOUNT,
	 "fs.write ${project}"},
	{1, "fs.create", P "/.git", "", D, EROFS, MOUNT, "-runs what stands"},
	{1, "fs.create", P "/sub/new.pem", "", D, EROFS, MOUNT, "-fs.deny"},
	{1, "fs.create", "/etc/new", "", D, EROFS, MOUNT, "-of the system"},
	{1, "fs.delete", P "/main.c", "e", D, EROFS, MOUNT,
	 "fs.write ${project}"},
	{1, "fs.rename", P "/main.c", "e", D, EROFS, MOUNT,
	 "fs.write ${project}"},
	{1, "fs.delete", P, "ed", D, EBUSY, MOUNT, "-mount"},
	{1, "fs.exec", P "/run.sh", "e", D, EACCES, LL,
	 "fs.exec ${project}/run.sh"},
	{1, "fs.read", "/home/u/src/other/x.txt", "", D, ENOENT, MOUNT,
	 "fs.read ~/src/other/x.txt"},
	{1, "fs.read", "/home/u/own", "e", B, 0, 0, NULL}, /* brokered */
	{1, "fs.read", "/home/u", "ed", A, 0, 0, NULL},
	{1, "fs.write", "/home/u/own", "e", A, 0, 0, NULL},
	{1, "fs.create", "/home/u/own", "", A, 0, 0, NULL},
	{1, "fs.exec", "/home/u/.npm/esbuild", "e", A, 0, 0, NULL},
	{1, "fs.exec", "/home/u/prog", "e", D, EACCES, LL, "-cannot execute"},
	{1, "fs.exec", "/tmp/go-build1/x", "e", A, 0, 0, NULL},
	{1, "fs.create", EXT "/todos.json", "", A, 0, 0, NULL},
	{1, "fs.write", EXT "/todos.json", "e", A, 0, 0, NULL},
	/* code is not suggested for writing, a file that keeps state is */
	{1, "fs.write", EXT "/main.py", "e", D, EROFS, MOUNT,
	 "-installed code"},
	{1, "fs.write", EXT "/lib/util.py", "e", D, EROFS, MOUNT,
	 "-installed code"},
	{1, "fs.write", EXT "/state.json", "e", D, EROFS, MOUNT,
	 "fs.write ${extension_dir}/state.json"},
	{1, "fs.write", EXT "/extension.json", "e", D, EROFS, MOUNT,
	 "-manifest"},
	{1, "fs.delete", EXT "/main.py", "e", D, EBUSY, MOUNT, "-mount"},
	{1, "fs.create", EXT "/lib/new.py", "", D, EROFS, MOUNT, "-directory"},
	/* a chain with grants of each kind */
	{2, "fs.read", "/home/u/src/app/main.c", "e", B, 0, 0, NULL},
	{2, "fs.read", "/home/u/src/other/x.txt", "e", D, EACCES, LL,
	 "-fs.deny"},
	{2, "fs.read", "/home/u/src/app/notes.txt", "e", A, 0, 0, NULL},
	{2, "fs.write", "/home/u/src/app/notes.txt", "e", A, 0, 0, NULL},
	{2, "fs.write", "/home/u/src/app/main.c", "e", D, EROFS, MOUNT,
	 "fs.write ${project}/main.c"},
	{2, "fs.delete", "/home/u/src/app/notes.txt", "e", D, EROFS, MOUNT,
	 "fs.write ${project}"},
	{2, "fs.read", "/home/u/dotfiles/config/weather/key", "e", A, 0, 0,
	 NULL},
	{2, "fs.read", "/home/u/dotfiles/other", "", D, ENOENT, MOUNT,
	 "fs.read ~/dotfiles/other"},
	{2, "fs.exec", "/usr/bin/git", "e", A, 0, 0, NULL},
	{2, "fs.exec", "/usr/lib/git-core/git-log", "e", A, 0, 0, NULL},
	{2, "fs.exec", "/usr/bin/curl", "", D, ENOENT, MOUNT, "fs.exec curl"},
	/* patterns, lists, verbs */
	{3, "fs.read", P "/main.c", "e", B, 0, 0, NULL},
	{3, "fs.read", P "/later.c", "", B, 0, 0, NULL},
	{3, "fs.read", P "/notes.txt", "e", D, EACCES, LL,
	 "fs.read ${project}/notes.txt"},
	{3, "fs.read", P "/sub/x.c", "e", D, EACCES, LL,
	 "fs.read ${project}/sub/x.c"},
	{3, "fs.read", P, "ed", A, 0, 0, NULL},
	{3, "fs.exec", "/opt/few/a", "e", A, 0, 0, NULL},
	{3, "fs.exec", "/opt/few/c", "", D, ENOENT, MOUNT,
	 "fs.exec /opt/few/c"},
	{3, "env", "WEATHER_API_KEY", "", A, 0, 0, NULL},
	{3, "proto", "events:turn_start", "", A, 0, 0, NULL},
	{3, "proto", "events:turn_end", "", D, 0, NONE,
	 "protocol.events turn_end"},
	{3, "proto", "slash:/Clear", "", A, 0, 0, NULL},
	{3, "proto", "slash:model", "", D, 0, NONE, "protocol.slash model"},
	{3, "proto", "submit", "", A, 0, 0, NULL},
	{3, "proto", "commands:hi", "", A, 0, 0, NULL},
	{3, "proto", "commands:ho", "", D, 0, NONE, "protocol.commands ho"},
	{3, "proto", "call_tool:read", "", A, 0, 0, NULL},
	{3, "proto", "call_tool:bash", "", D, 0, NONE,
	 "-takes --yes-i-mean-it"},
	{3, "proto", "intercept:tool_call:block", "", A, 0, 0, NULL},
	{3, "proto", "intercept:tool_call:modify:weather", "", A, 0, 0, NULL},
	{3, "proto", "intercept:tool_call:modify:bash", "", D, 0, NONE,
	 "-takes --yes-i-mean-it"},
	{3, "proto", "intercept:before_agent_start:replace", "", D, 0, NONE,
	 "-takes --yes-i-mean-it"},
	{3, "proto", "intercept:assistant_message:replace", "", D, 0, NONE,
	 "protocol.intercept.assistant_message replace"},
	{3, "proto", "intercept:turn_start:block", "", D, 0, NONE,
	 "protocol.intercept.turn_start block"},
	/* shipped files made writable */
	{4, "fs.write", EXT "/state.json", "e", A, 0, 0, NULL},
	{4, "fs.rename", EXT "/state.json", "e", A, 0, 0, NULL},
	{4, "fs.write", EXT "/lib/cache.json", "e", A, 0, 0, NULL},
	{4, "fs.write", EXT "/lib/util.py", "e", D, EROFS, MOUNT,
	 "-installed code"},
	/* a denied link denies what it leads to */
	{5, "fs.read", P "/secrets/token", "e", D, EACCES, LL, "-fs.deny"},
	{5, "fs.read", P "/main.c", "e", B, 0, 0, NULL},
	/* the way below /tmp */
	{6, "fs.read", "/tmp/work", "ed", A, 0, 0, NULL},
	{6, "fs.read", "/tmp/work/q", "", D, ENOENT, MOUNT,
	 "fs.read /tmp/work/q"},
	{6, "fs.create", "/tmp/work/q", "", D, EROFS, MOUNT,
	 "fs.write /tmp/work"},
	{6, "fs.create", "/tmp/work/q/x", "", D, ENOENT, MOUNT,
	 "fs.write /tmp/work/q"},
	{6, "fs.create", "/tmp/work/p/x", "", D, EROFS, MOUNT,
	 "fs.write /tmp/work/p"},
	{6, "fs.rename", "/tmp/work", "ed", D, EBUSY, MOUNT, "-mount"},
	{6, "fs.delete", "/tmp/work/p", "ed", D, EROFS, MOUNT,
	 "fs.write /tmp/work"},
	{6, "fs.create", "/tmp/other", "", A, 0, 0, NULL},
	/* patterns, each right its own */
	{9, "fs.read", P "/main.c", "e", B, 0, 0, NULL},
	{9, "fs.write", P "/main.c", "e", D, EACCES, LL,
	 "fs.write ${project}/main.c"},
	{9, "fs.meta", P "/main.c", "e", D, EACCES, LL,
	 "fs.write ${project}/main.c"},
	{9, "fs.delete", P "/main.c", "e", D, EACCES, LL,
	 "fs.write ${project}"},
	{9, "fs.rename", P "/main.c", "e", D, EACCES, LL,
	 "fs.write ${project}"},
	{9, "fs.create", P "/new.c", "", D, EACCES, LL, "fs.write ${project}"},
	{9, "fs.read", P "/a.log", "e", B, 0, 0, NULL},
	{9, "fs.write", P "/a.log", "e", B, 0, 0, NULL},
	{9, "fs.meta", P "/a.log", "e", B, 0, 0, NULL},
	{9, "fs.delete", P "/a.log", "e", B, 0, 0, NULL},
	{9, "fs.rename", P "/a.log", "e", B, 0, 0, NULL},
	{9, "fs.create", P "/b.log", "", B, 0, 0, NULL},
	{9, "fs.create", P "/dir.log/deep", "", B, 0, 0, NULL},
	{9, "fs.create", P "/dir/b.log", "", D, EACCES, LL,
	 "fs.write ${project}/dir"},
	{9, "fs.create", P "/B.LOG", "", D, EACCES, LL, "fs.write ${project}"},
	{9, "fs.create", P "/no.log", "", D, EACCES, LL, "-fs.deny"},
	{9, "fs.create", P "/.envrc", "", D, EACCES, LL, "-by its own name"},
	{9, "fs.create", P "/.else", "", B, 0, 0, NULL},
	{9, "fs.meta", P, "ed", D, EACCES, LL, "fs.write ${project}"},
	{9, "fs.delete", P, "ed", D, EBUSY, MOUNT, "-mount"},
	{9, "fs.read", P "/notes.txt", "e", D, EACCES, LL,
	 "fs.read ${project}/notes.txt"},
	{9, "fs.read", P, "ed", A, 0, 0, NULL},
	{10, "fs.read", P "/notes.txt", "e", B, 0, 0, NULL},
	{10, "fs.write", P "/notes.txt", "e", D, EACCES, LL,
	 "fs.write ${project}/notes.txt"},
	{10, "fs.write", P "/a.log", "e", B, 0, 0, NULL},
	/* writing below a directory: the broker's, but for what is run */
	{7, "fs.create", P "/new.c", "", B, 0, 0, NULL},
	{7, "fs.create", P "/main.c", "e", A, 0, 0, NULL}, /* EEXIST */
	{7, "fs.write", P "/main.c", "e", B, 0, 0, NULL},
	{7, "fs.meta", P "/main.c", "e", B, 0, 0, NULL},
	{7, "fs.meta", P, "ed", B, 0, 0, NULL},
	{7, "fs.delete", P "/main.c", "e", B, 0, 0, NULL},
	{7, "fs.rename", P "/sub", "ed", B, 0, 0, NULL},
	{7, "fs.delete", P, "ed", D, EBUSY, MOUNT, "-mount"},
	{7, "fs.create", P "/.git", "", D, EACCES, LL, "-by its own name"},
	{7, "fs.write", P "/.git/config", "e", D, EACCES, LL,
	 "-by its own name"},
	{7, "fs.read", P "/.git/config", "e", B, 0, 0, NULL},
	{7, "fs.create", P "/sub/.zot/extensions/x", "", D, EACCES, LL,
	 "-by its own name"},
	{7, "fs.create", P "/.zot/x", "", B, 0, 0, NULL},
	{7, "fs.create", ZOT "/extensions/x", "", D, EROFS, MOUNT,
	 "-cannot be granted for writing"},
	{7, "fs.rename", P "/.vscode", "", D, EACCES, LL, "-by its own name"},
	{7, "fs.create", P "/.GIT", "", D, EACCES, LL, "-by its own name"},
	{7, "fs.create", P "/.g\xe2\x80\x8dit", "", D, EACCES, LL,
	 "-by its own name"},
	{7, "fs.create", P "/.env.local", "", D, EACCES, LL, "-fs.deny"},
	/* run by a shell, and denied: granted by its name it stays denied */
	{7, "fs.create", P "/.envrc", "", D, EACCES, LL, "-fs.deny"},
	{7, "fs.create", P "/X.PEM", "", D, EACCES, LL, "-fs.deny"},
	{7, "fs.read", P "/X.PEM", "e", B, 0, 0, NULL}, /* another file */
	{7, "fs.exec", P "/run.sh", "e", D, EACCES, LL,
	 "fs.exec ${project}/run.sh"},
	/* above it the floor cannot let anything be changed */
	{7, "fs.create", "/home/u/own", "", B, 0, 0, NULL},
	{7, "fs.write", "/home/u/own", "e", B, 0, 0, NULL},
	{7, "fs.create", "/home/u/.git", "", B, 0, 0, NULL},
	{7, "fs.create", "/home/u/.cache/x", "", A, 0, 0, NULL},
	{7, "fs.create", "/tmp/x", "", A, 0, 0, NULL},
	/* a name that is run, and is a link in what is granted */
	{8, "fs.create", "/home/u/src/linky/inner/extensions", "", D, EACCES,
	 LL, "-by its own name"},
	{8, "fs.create", "/home/u/src/linky/inner/more", "", B, 0, 0, NULL},
};

static void make_plan(int chain, struct fake_setup *s, struct zb_plan *plan)
{
	fake_init(s);
	s->scopes[0] = chains[chain].base;
	s->scopes[1] = chains[chain].over;
	if (!strcmp(s->scopes[0], "standard")) {
		s->scopes[0] = "strict";
		s->scopes[1] = "standard";
		s->scopes[2] = chains[chain].over;
	}
	if (fake_plan(s, plan))
		fail_msg("chain %d: %s", chain, s->err.msg);
}

static struct zb_query query_of(const struct row *row)
{
	struct zb_query q = {.target = row->target,
			     .place = -1,
			     .exists = strchr(row->is, 'e'),
			     .is_dir = strchr(row->is, 'd')};

	assert_true(zb_op_from_name(row->op, &q.op));
	return q;
}

static void check_grant(const struct row *row, const struct zb_answer *a,
			size_t i)
{
	zb_auto(free) char *got =
		a->grant_key ? zb_strf("%s %s", a->grant_key, a->grant_value)
			     : zb_strf("-%s", a->why_not);

	if (row->grant[0] == '-') {
		if (got[0] != '-' || !strstr(got, row->grant + 1))
			fail_msg("row %zu (%s %s): %s, want %s", i, row->op,
				 row->target, got, row->grant);
	} else if (strcmp(got, row->grant) != 0) {
		fail_msg("row %zu (%s %s): %s, want %s", i, row->op,
			 row->target, got, row->grant);
	}
}

static void check_row(const struct zb_plan *plan, size_t i)
{
	const struct row *row = &rows[i];
	struct zb_query q = query_of(row);
	struct zb_answer a;

	zb_evaluate(plan, &q, &a);
	if (a.verdict != row->verdict || a.err_no != row->err_no ||
	    a.floor != row->floor)
		fail_msg("row %zu (%s %s): verdict %d errno %d floor %s (%s)",
			 i, row->op, row->target, a.verdict, a.err_no,
			 zb_floor_name(a.floor), a.rule);
	assert_int_equal(zb_evaluate_fast(plan, &q), a.verdict);
	assert_non_null(a.rule);
	if (a.verdict == D)
		check_grant(row, &a, i);
	else
		assert_true(!a.grant_key && !a.why_not);
	zb_answer_done(&a);
}

static void every_row(void **state)
{
	(void)state;
	for (size_t c = 0; c < ZB_ARRAY_LEN(chains); c++) {
		struct fake_setup s;
		struct zb_plan plan;

		make_plan((int)c, &s, &plan);
		for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++)
			if (rows[i].chain == (int)c)
				check_row(&plan, i);
		zb_plan_done(&plan);
		fake_done(&s);
	}
}

/* What is suggested helps: the grant laid over the chain gives an allow. For
 * every denied row that has one and whose target the host has. */
static void suggestions_help(void **state)
{
	unsigned tried = 0;

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		struct zb_path_fact fact = {0};
		struct zb_query q = query_of(row);
		struct fake_setup s;
		struct zb_plan plan;
		char key[64], text[512];
		const char *value;

		if (row->verdict != D || row->grant[0] == '-' ||
		    strncmp(row->op, "fs.", 3) != 0)
			continue;
		make_plan(row->chain, &s, &plan);
		zb_plan_done(&plan);
		fake_look(&s.fake, row->target, &fact);
		free(fact.link);
		if (!fact.exists) {
			fake_done(&s);
			continue;
		}
		value = strchr(row->grant, ' ') + 1;
		snprintf(key, sizeof(key), "%.*s",
			 (int)(value - row->grant - 4), row->grant + 3);
		snprintf(text, sizeof(text), "{\"fs\":{\"%s\":[\"%s\"]}}", key,
			 value);
		s.scopes[3] = text;
		for (size_t k = 0; k < 3; k++)
			if (!s.scopes[k])
				s.scopes[k] = "{}";
		if (fake_plan(&s, &plan)) {
			/* PATH of the fake host has no /home/u/bin. */
			assert_non_null(strstr(s.err.msg, "not found"));
		} else {
			q.exists = true;
			q.is_dir = fact.is_dir;
			if (zb_evaluate_fast(&plan, &q) == D)
				fail_msg("row %zu: %s does not help", i, text);
			tried++;
			zb_plan_done(&plan);
		}
		fake_done(&s);
	}
	assert_true(tried >= 15);
}

static void rule_texts(void **state)
{
	static const struct {
		int chain;
		enum zb_op op;
		const char *target;
		bool exists;
		const char *rule;
	} texts[] = {
		{0, ZB_OP_FS_READ, "/home/u/.ssh/id_ed25519", false,
		 "strict.json: nothing grants fs.read below /home/u"},
		{0, ZB_OP_FS_READ, P "/main.c", false,
		 "strict.json: nothing grants fs.read below " P},
		{0, ZB_OP_FS_READ, "/etc/shadow", false,
		 "strict.json: nothing grants fs.read below /etc"},
		{0, ZB_OP_FS_READ, "/vault", false,
		 "strict.json: nothing grants fs.read of /vault"},
		{2, ZB_OP_FS_READ, "/home/u/.ssh/id_ed25519", false,
		 "strict.json, scope.json: nothing grants fs.read below "
		 "/home/u/.ssh"},
		{1, ZB_OP_FS_READ, P "/.env", true,
		 "standard.json: fs.deny " P "/**/.env*"},
		{1, ZB_OP_FS_WRITE, P "/main.c", true,
		 "standard.json: " P " is granted for reading only"},
		{0, ZB_OP_FS_WRITE, EXT "/main.py", true,
		 "built in: " EXT " is the extension's code, read-only under "
		 "fs.state \"apart\""},
		{0, ZB_OP_FS_WRITE, "/usr/lib/x", true,
		 "runtimes/base.json: /usr/lib is shown read-only, as what the "
		 "program needs to run"},
		{3, ZB_OP_FS_READ, P "/notes.txt", true,
		 "scope.json: fs.read[0] grants only " P "/*.c"},
		{9, ZB_OP_FS_WRITE, P "/main.c", true,
		 "scope.json: fs.write[0] grants only " P "/*.log, " P "/.e*"},
		{10, ZB_OP_FS_CREATE, P "/main.c", false,
		 "scope.json: fs.write[0] grants only " P "/*.log"},
		{10, ZB_OP_FS_WRITE, P "/a.log", true,
		 "scope.json: " P " is granted"},
		{1, ZB_OP_FS_EXEC, P "/run.sh", true,
		 "standard.json: nothing grants fs.exec of " P "/run.sh"},
		{0, ZB_OP_FS_EXEC, "/usr/bin/curl", false,
		 "strict.json: nothing grants fs.exec of /usr/bin/curl"},
		{6, ZB_OP_FS_CREATE, "/tmp/work/q/x", false,
		 "strict.json, scope.json: nothing grants fs.write below "
		 "/tmp/work/q"},
		{0, ZB_OP_NET_CONNECT, "example.org:443", false,
		 "strict.json: the sandbox's network is empty"},
		{0, ZB_OP_SYSCALL, "ptrace", false,
		 "built in: the system call ptrace is closed"},
		{0, ZB_OP_ENV, "GITHUB_TOKEN", false,
		 "strict.json: env.pass does not name GITHUB_TOKEN"},
		{0, ZB_OP_PROTO, "submit", false,
		 "strict.json: protocol.submit is false"},
		{3, ZB_OP_PROTO, "events:turn_end", false,
		 "scope.json: protocol.events does not name turn_end"},
		{0, ZB_OP_PROTO, "intercept:tool_call:block", false,
		 "strict.json: protocol.intercept does not grant "
		 "tool_call:block"},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(texts); i++) {
		struct zb_query q = {.op = texts[i].op,
				     .target = texts[i].target,
				     .place = -1,
				     .exists = texts[i].exists};
		struct fake_setup s;
		struct zb_plan plan;
		struct zb_answer a;

		make_plan(texts[i].chain, &s, &plan);
		zb_evaluate(&plan, &q, &a);
		assert_string_equal(a.rule, texts[i].rule);
		zb_answer_done(&a);
		zb_plan_done(&plan);
		fake_done(&s);
	}
}

/* Names are a stranger's: what is said of them may be shown. */
static void strange_names(void **state)
{
	static const char *const names[] = {
		"/home/u/a\nb", "/home/u/\x1b[31m", "/home/u/\xff\xfe",
		"/home/u/\xe2\x80\xaegpj", "/etc/\\"};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(names); i++)
		for (unsigned op = 0; op < ZB_OP_COUNT; op++) {
			struct zb_query q = {.op = (enum zb_op)op,
					     .target = names[i],
					     .place = -1};
			struct fake_setup s;
			struct zb_plan plan;
			struct zb_answer a;

			make_plan(1, &s, &plan);
			zb_evaluate(&plan, &q, &a);
			for (const char *c = a.rule; *c; c++)
				assert_true(*c >= ' ' && *c < 127);
			if (a.verdict == D && op <= ZB_OP_FS_META && i < 4)
				assert_null(a.grant_key);
			zb_answer_done(&a);
			zb_plan_done(&plan);
			fake_done(&s);
		}
}

/* A place known by its mount counts, whatever the path says. */
static void place_by_mount(void **state)
{
	struct fake_setup s;
	struct zb_plan plan;
	struct zb_query q = {
		.op = ZB_OP_FS_WRITE, .target = "/home/u/x", .exists = true};

	(void)state;
	make_plan(0, &s, &plan);
	q.place = zb_plan_place(&plan, EXT "/main.py");
	assert_int_equal(zb_evaluate_fast(&plan, &q), D);
	q.place = zb_plan_place(&plan, BOX "/data");
	assert_int_equal(zb_evaluate_fast(&plan, &q), A);
	q.place = 100000; /* no such place: by path */
	assert_int_equal(zb_evaluate_fast(&plan, &q), A);
	assert_true(zb_plan_is_quiet(&plan, "/sys/kernel/x"));
	assert_true(zb_plan_is_quiet(&plan, "/sys/fs/cgroup/cpu.max"));
	assert_false(zb_plan_is_quiet(&plan, "/sys/kernel/xy"));
	assert_false(zb_plan_is_quiet(&plan, "/etc/shadow"));
	zb_plan_done(&plan);
	fake_done(&s);
}

/* Deny beats grant: random lists in random orders, no allow where a deny
 * matches, and the same plan from the same lists. */
static unsigned long seed = 4711;

static unsigned pick(unsigned n)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)(seed >> 33) % n;
}

static void add_some(struct zb_buf *b, const char *key, const char *const *from,
		     unsigned n)
{
	unsigned k = 1 + pick(4);

	zb_buf_addf(b, "\"%s\":[", key);
	for (unsigned i = 0; i < k; i++)
		zb_buf_addf(b, "%s\"%s\"", i ? "," : "", from[pick(n)]);
	zb_buf_adds(b, "]");
}

static void deny_beats_grant(void **state)
{
	static const char *const grants[] = {
		"~/src",
		"${project}",
		"${project}/sub",
		"${project}/*.c",
		"~/link",
		"/tmp/work/p",
		"${project}/.env",
		"${project}/sub/deep",
		"/tmp/work",
		"~/src/app/linked",
		"${project}/secrets",
		"/srv/a*b",
	};
	static const char *const denies[] = {
		"${project}/**/.env*", "~/src/**/*.pem", "~/link/secrets/**",
		"${project}/linked",   "/tmp/**/.env",	 "${project}/sub",
		"~/src/app/main.c",    "/srv/**/.env",	 "~/**/token",
	};
	unsigned allowed = 0, refused = 0;

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct zb_buf b = {0}, first = {0}, again = {0};
		struct fake_setup s;
		struct zb_plan plan, twin;

		zb_buf_adds(&b, "{\"fs\":{");
		add_some(&b, "read", grants, ZB_ARRAY_LEN(grants) - 1);
		zb_buf_addc(&b, ',');
		add_some(&b, "deny", denies, ZB_ARRAY_LEN(denies));
		zb_buf_adds(&b, "}}");
		fake_init(&s);
		s.scopes[0] = pick(2) ? "strict" : zb_buf_str(&b);
		s.scopes[1] = s.scopes[0] == zb_buf_str(&b) ? "strict"
							    : zb_buf_str(&b);
		if (fake_plan(&s, &plan) || fake_plan(&s, &twin))
			fail_msg("%s: %s", zb_buf_str(&b), s.err.msg);
		zb_plan_print(&plan, &first);
		zb_plan_print(&twin, &again);
		assert_string_equal(zb_buf_str(&first), zb_buf_str(&again));
		for (size_t f = 0; fake_files[f]; f++) {
			struct zb_query q = {.op = ZB_OP_FS_READ,
					     .target = fake_files[f],
					     .place = -1,
					     .exists = true};
			int i = zb_plan_place(&plan, q.target);
			bool deny = false;

			if (strpbrk(q.target, ">|") || i < 0 ||
			    plan.places[i].kind != ZB_PLACE_GRANT)
				continue;
			for (size_t d = 0; d < plan.n_denies; d++)
				deny = deny ||
				       zb_pattern_match(plan.denies[d].pattern,
							q.target);
			if (zb_evaluate_fast(&plan, &q) == D)
				refused += deny;
			else if (deny)
				fail_msg("%s: %s allowed", zb_buf_str(&b),
					 q.target);
			else
				allowed++;
			/* Nobody writes through a read grant. */
			q.op = ZB_OP_FS_WRITE;
			assert_int_equal(zb_evaluate_fast(&plan, &q), D);
		}
		zb_plan_done(&plan);
		zb_plan_done(&twin);
		zb_buf_done(&b);
		zb_buf_done(&first);
		zb_buf_done(&again);
		fake_done(&s);
	}
	assert_true(allowed > 500 && refused > 500);
}

/* Grants add up, whatever lies in what, each right for itself. */
static const struct {
	const char *value, *means;
} sums[] = {
	{"~/src", "/home/u/src"},	  {"~/src/a*", "/home/u/src/a*"},
	{"~/src/o*", "/home/u/src/o*"},	  {"${project}", P},
	{"${project}/*.c", P "/*.c"},	  {"${project}/s*", P "/s*"},
	{"${project}/?ub", P "/?ub"},	  {"${project}/sub", P "/sub"},
	{"${project}/sub/*", P "/sub/*"},
};

static void add_up(struct zb_buf *b, const char *key, unsigned set)
{
	const char *sep = "";

	zb_buf_addf(b, "\"%s\":[", key);
	for (unsigned i = 0; i < ZB_ARRAY_LEN(sums); i++) {
		if (!(set & 1u << i))
			continue;
		zb_buf_addf(b, "%s\"%s\"", sep, sums[i].value);
		sep = ",";
	}
	zb_buf_addc(b, ']');
}

static bool is_in(unsigned set, const char *path)
{
	for (unsigned i = 0; i < ZB_ARRAY_LEN(sums); i++)
		if (set & 1u << i && zb_pattern_match(sums[i].means, path))
			return true;
	return false;
}

static bool answer(const struct zb_plan *plan, enum zb_op op, const char *path)
{
	struct zb_query q = {
		.op = op, .target = path, .place = -1, .exists = true};

	return zb_evaluate_fast(plan, &q) != D;
}

static void patterns_add_up(void **state)
{
	static const char *const files[] = {
		P "/main.c",	 P "/x.txt",	    P "/sub/deep/x",
		P "/sub/x.c",	 P "/sum",	    "/home/u/src/other/x.txt",
		P "/sub/.x",	 "/home/u/src/a.c", P "/dir/main.c",
		"/home/u/src/x", P "/subway/x",	    "/home/u/src/appx/y",
	};

	(void)state;
	for (int round = 0; round < 600; round++) {
		unsigned reads = pick(1u << ZB_ARRAY_LEN(sums)) &
				 pick(1u << ZB_ARRAY_LEN(sums));
		unsigned writes = pick(1u << ZB_ARRAY_LEN(sums)) &
				  pick(1u << ZB_ARRAY_LEN(sums));
		struct zb_buf b = {0};
		struct fake_setup s;
		struct zb_plan plan;

		zb_buf_adds(&b, "{\"fs\":{");
		add_up(&b, "read", reads);
		zb_buf_addc(&b, ',');
		add_up(&b, "write", writes);
		zb_buf_adds(&b, "}}");
		fake_init(&s);
		s.scopes[0] = "strict";
		s.scopes[1] = zb_buf_str(&b);
		if (fake_plan(&s, &plan))
			fail_msg("%s: %s", zb_buf_str(&b), s.err.msg);
		for (size_t i = 0; i < ZB_ARRAY_LEN(files); i++) {
			/* What is hidden is the private HOME's. */
			if (zb_plan_place(&plan, files[i]) < 0 ||
			    plan.places[zb_plan_place(&plan, files[i])].kind !=
				    ZB_PLACE_GRANT) {
				assert_false(is_in(reads | writes, files[i]));
				continue;
			}
			if (answer(&plan, ZB_OP_FS_READ, files[i]) !=
			    is_in(reads | writes, files[i]))
				fail_msg("%s: reading %s", zb_buf_str(&b),
					 files[i]);
			if (answer(&plan, ZB_OP_FS_WRITE, files[i]) !=
			    is_in(writes, files[i]))
				fail_msg("%s: writing %s", zb_buf_str(&b),
					 files[i]);
		}
		zb_plan_done(&plan);
		zb_buf_done(&b);
		fake_done(&s);
	}
}

/* Only what keeps on both sides the match of each right moves. */
static void patterns_hold_names(void **state)
{
	static const struct {
		int chain;
		const char *from, *to;
		bool may;
	} moves[] = {
		{9, P "/a.log", P "/b.log", true},
		{9, P "/a.log", P "/.else", true},
		{9, P "/a.log", P "/a.c", false},
		{9, P "/main.c", P "/a.log", false},
		{9, P "/a.log", P "/no.log", false},
		{9, P "/a.log", P "/sub", false},
		{9, P "/x", P "/y", true},
		{10, P "/a.log", P "/a.txt", false},
		{10, P "/a.txt", P "/a.log", false},
		{10, P "/a.log", P "/d.log/x", true},
	};

	(void)state;
	for (size_t i = 0; i < ZB_ARRAY_LEN(moves); i++) {
		const struct zb_deny *why;
		struct fake_setup s;
		struct zb_plan plan;

		make_plan(moves[i].chain, &s, &plan);
		if (zb_plan_may_move(&plan, -1, moves[i].from, moves[i].to,
				     &why) != moves[i].may ||
		    zb_plan_may_move(&plan, -1, moves[i].to, moves[i].from,
				     &why) != moves[i].may)
			fail_msg("%s %s", moves[i].from, moves[i].to);
		zb_plan_done(&plan);
		fake_done(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row),
		cmocka_unit_test(suggestions_help),
		cmocka_unit_test(rule_texts),
		cmocka_unit_test(strange_names),
		cmocka_unit_test(place_by_mount),
		cmocka_unit_test(deny_beats_grant),
		cmocka_unit_test(patterns_add_up),
		cmocka_unit_test(patterns_hold_names),
	};

	_Static_assert(sizeof(rows) / sizeof(rows[0]) >= 150,
		       "rows for every operation");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
