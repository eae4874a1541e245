#!/usr/bin/env python3
"""Each runtime starts under strict and leaves no record: whatever it looks at
on its way is granted, or known to be a probe. Version managers, venvs and
programs granted by name are seen through."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *
from gobuild import go_build

SHELL = r'''
echo '{"type":"hello","name":"%(name)s","version":"1","capabilities":["tools"]}'
while read -r line; do
  case $line in
  *'"hello_ack"'*)
    echo '{"type":"register_tool","name":"t","description":"t","schema":{"type":"object"}}'
    echo '{"type":"ready"}' ;;
  *'"tool_call"'*)
    id=$(echo "$line" | sed 's/.*"id":"\([^"]*\)".*/\1/')
    out=$(%(body)s)
    out=$(echo $out)
    echo "{\"type\":\"tool_result\",\"id\":\"$id\",\"content\":[{\"type\":\"text\",\"text\":\"$out\"}]}" ;;
  *'"shutdown"'*) echo '{"type":"shutdown_ack"}'; exit 0 ;;
  esac
done
'''

NODE = r'''
const emit = o => process.stdout.write(JSON.stringify(o) + "\n");
emit({type: "hello", name: "%(name)s", version: "1", capabilities: ["tools"]});
require("readline").createInterface({input: process.stdin}).on("line", async l => {
  const f = JSON.parse(l);
  if (f.type == "hello_ack") {
    emit({type: "register_tool", name: "t", description: "t", schema: {type: "object"}});
    emit({type: "ready"});
  } else if (f.type == "tool_call") {
    const out = await (async () => { %(body)s })();
    emit({type: "tool_result", id: f.id, content: [{type: "text", text: JSON.stringify(out)}]});
  } else if (f.type == "shutdown") {
    emit({type: "shutdown_ack"});
    process.exit(0);
  }
});
'''

C = r'''
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
int main(void)
{
	char l[65536];
	time_t t = 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("{\"type\":\"hello\",\"name\":\"" NAME "\",\"version\":\"1\",\"capabilities\":[\"tools\"]}");
	while (fgets(l, sizeof(l), stdin)) {
		if (strstr(l, "\"hello_ack\"")) {
			puts("{\"type\":\"register_tool\",\"name\":\"t\",\"description\":\"t\",\"schema\":{\"type\":\"object\"}}");
			puts("{\"type\":\"ready\"}");
		} else if (strstr(l, "\"tool_call\"")) {
			char *id = strstr(l, "\"id\":\"") + 6;
			*strchr(id, '"') = 0;
			printf("{\"type\":\"tool_result\",\"id\":\"%s\",\"content\":[{\"type\":\"text\",\"text\":\"%d %d\"}]}\n",
			       id, localtime(&t)->tm_year, USER);
		} else if (strstr(l, "\"shutdown\"")) {
			puts("{\"type\":\"shutdown_ack\"}");
			return 0;
		}
	}
	return 0;
}
'''

GO = r'''
package main

import (
	"bufio"
	"os"
	"strings"
	"time"
)

func say(s string) { os.Stdout.WriteString(s + "\n") }

func main() {
	say(`{"type":"hello","name":"gox","version":"1","capabilities":["tools"]}`)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		l := in.Text()
		switch {
		case strings.Contains(l, `"hello_ack"`):
			say(`{"type":"register_tool","name":"t","description":"t","schema":{"type":"object"}}`)
			say(`{"type":"ready"}`)
		case strings.Contains(l, `"tool_call"`):
			id := strings.SplitN(strings.SplitN(l, `"id":"`, 2)[1], `"`, 2)[0]
			say(`{"type":"tool_result","id":"` + id + `","content":[{"type":"text","text":"` + time.Unix(0, 0).UTC().Format("2006") + `"}]}`)
		case strings.Contains(l, `"shutdown"`):
			say(`{"type":"shutdown_ack"}`)
			return
		}
	}
}
'''


def script(w, name, line1, text, program="main"):
    d = w.path(name)
    w.write(name + "/" + program, line1 + text, 0o755)
    w.write(name + "/extension.json",
            '{"name":"%s","exec":"./%s"}\n' % (name, program))
    return d


def no_records(w, name):
    records = w.ledger(name)
    return w.equal([(r["op"], r.get("syscall"), r.get("target"))
                    for r in records], [], name + ": no record")


def answers(w, name, want, *options):
    """The console records looks as well as opens (ledger mode full)."""
    c = w.console("./" + name, call("t"), *options)
    w.equal(c.result(name), want, name + " answers", c)
    w.equal(c.rc, 0, name + ": exit", c)
    no_records(w, name)
    return c


@test("a record would be seen", needs="sandbox")
def control(w):
    w.mkext("probe", '''
        hello("probe", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: text(f["id"], str(os.path.exists("/etc/shadow"))))
    ''')
    c = w.console("./probe", call("t"))
    w.equal(c.result("probe"), "False", "it looks for /etc/shadow", c)
    w.check(w.denied("probe", "fs.read", "/etc/shadow"),
            "one look is one record")
    w.equal(len(w.ledger("probe")), 1, "and the only one")


@test("sh and bash", needs="sandbox")
def shells(w):
    body = "echo a b | awk '{print $2}'; find . -name main | xargs grep -c sh" \
           " >/dev/null && echo found; mktemp /tmp/x.XXXXXX | cut -c1-7;" \
           " date -u -d @0 +%Y; ls /etc/ssl/private 2>/dev/null || echo hidden"
    script(w, "shx", "#!/bin/sh\n", SHELL % {"name": "shx", "body":
           body.replace("ls /etc/ssl/private 2>/dev/null ||", "")})
    answers(w, "shx", "b found /tmp/x. 1970 hidden")
    if shutil.which("bash", path=os.defpath):
        script(w, "bashx", "#!/usr/bin/env bash\n", SHELL % {
            "name": "bashx", "body": "cat <(echo sub) <(echo stitution);"
            " cat <<< here; printf '%(%Y)T' 0"})
        answers(w, "bashx", "sub stitution here 1970")


@test("python and what its library asks for", needs="sandbox")
def python(w):
    w.mkext("pyx", '''
        import multiprocessing, pty, ssl, subprocess, tempfile
        def work(f):
            with multiprocessing.Pool(2) as p: a = p.map(abs, [-1, -2])
            b = subprocess.run([sys.executable, "-c", "print(7)"],
                               capture_output=True, text=True).stdout.strip()
            ssl.create_default_context().get_ca_certs()
            with tempfile.NamedTemporaryFile() as t: c = t.name.startswith("/tmp/")
            m, s = pty.openpty()
            d = os.ttyname(s).startswith("/dev/pts/")
            import locale, sqlite3, asyncio, curses, readline, zoneinfo, uuid
            os.cpu_count()
            text(f["id"], repr((a, b, c, d)))
        if __name__ == "__main__":
            hello("pyx", "tools"); tool("t"); ready(); serve(tool_call=work)
    ''')
    answers(w, "pyx", "([1, 2], '7', True, True)")
    answers(w, "pyx", "([1, 2], '7', True, True)", "--policy", "standard")


@test("node: workers, children, modules, words and times",
      needs=["sandbox", "node"])
def node(w):
    script(w, "nodex", "#!/usr/bin/env node\n", NODE % {
        "name": "nodex", "body": r'''
        const cp = require("child_process"), fs = require("fs");
        const {Worker} = require("worker_threads");
        const w = await new Promise(r => new Worker(
            'require("worker_threads").parentPort.postMessage(1)',
            {eval: true}).on("message", r));
        return [w, cp.execFileSync(process.execPath, ["-p", "1+1"]).toString().trim(),
            new Intl.DateTimeFormat("de", {timeZone: "Europe/Berlin"}).format(0),
            fs.realpathSync(__filename) == __filename, require("./m.js"),
            (await import("node:https")).default.Agent.name];'''}, "main.js")
    w.write("nodex/m.js", "module.exports = 'm';\n")
    # What node finds on its way up is a probe, not a wish.
    w.write("package.json", "{}\n")
    answers(w, "nodex", '[1,"2","1.1.1970",true,"m","Agent"]')


@test("programs in C, linked both ways", needs="sandbox")
def native(w):
    cc = os.environ.get("ZB_CC", "cc").split()
    w.write("x.c", C)
    for name, extra, user in (("cdyn", [], "getpwuid(getuid()) != NULL"),
                              ("cstat", ["-static"], "1")):
        script(w, name, "", "")
        r = subprocess.run(cc + extra + ["-w", '-DNAME="%s"' % name,
                                         "-DUSER=(%s)" % user, "-o",
                                         w.path(name + "/main"),
                                         w.path("x.c")],
                           capture_output=True, text=True)
        if r.returncode:
            w.skip(name, "no compiler, or no static C library")
            continue
        answers(w, name, "70 1")


@test("a program in Go", needs=["sandbox", "go"], seconds=300)
def go(w):
    script(w, "gox", "", "")
    w.write("gosrc/main.go", GO)
    w.write("gosrc/go.mod", "module x\n")
    why = go_build(w.path("gosrc"), w.path("gox/main"))
    if why:
        w.skip("gox", "cannot be built: " + why)
        return
    answers(w, "gox", "1970")


WHO = '''
    hello("%s", "tools"); tool("t"); ready()
    serve(tool_call=lambda f: text(f["id"], repr((sys.executable,
        os.path.exists(f["args"].get("hidden", "/x")), sys.prefix))))
'''


def put_python(w, at):
    os.makedirs(os.path.dirname(w.path(at)), exist_ok=True)
    shutil.copy(os.path.realpath(PYTHON), w.path(at))
    return w.path(at)


@test("a shim that only starts one program", needs="sandbox")
def plain_shim(w):
    real = put_python(w, "home/.vm/versions/9/bin/python3")
    token = w.write("home/.vm/credentials", "TOKEN")
    w.write("home/.vm/shims/python3",
            '#!/usr/bin/env bash\nexec "%s" "$@"\n' % real, 0o755)
    w.env["PATH"] = w.path("home/.vm/shims") + ":" + os.defpath
    w.mkext("vm", WHO % "vm", line1="#!/usr/bin/env python3")
    w.contains(w.bare("vm", "t", {"hidden": token}), "True",
               "control: the credentials are there")
    c = w.console("./vm", call("t", hidden=token))
    w.contains(c.result("vm") or "", real, "started by its own name", c)
    w.contains(c.result("vm") or "", "False", "the credentials are hidden", c)
    w.check(w.denied("vm", "fs.read", token), "and the look is recorded")
    w.contains(w.log("vm"), "(shim) -> " + real, "the log says the way")


@test("pyenv's shim: the version of the nearest file", needs="sandbox")
def pyenv(w):
    root = w.path("home/.pyenv")
    for v in ("3.1.0", "3.2.0"):
        put_python(w, "home/.pyenv/versions/%s/bin/python3" % v)
    w.write("home/.pyenv/shims/python3", '#!/usr/bin/env bash\nset -e\n'
            'program="${0##*/}"\nexport PYENV_ROOT="%s"\n'
            'exec "%s/libexec/pyenv" exec "$program" "$@"\n' % (root, root),
            0o755)
    w.write("home/.pyenv/version", "3.1.0\n")
    w.env["PATH"] = root + "/shims:" + os.defpath
    for k in list(w.env):
        if k.startswith("PYENV"):
            del w.env[k]
    w.mkext("pe", WHO % "pe", line1="#!/usr/bin/env python3")
    c = w.console("./pe", call("t"))
    w.contains(c.result("pe") or "", root + "/versions/3.1.0/bin/python3",
               "the global choice", c)
    w.write("pe/.python-version", "3.2.0\n")
    c = w.console("./pe", call("t"))
    w.contains(c.result("pe") or "", root + "/versions/3.2.0/bin/python3",
               "the extension's own", c)
    no_records(w, "pe")


@test("a venv", needs="sandbox")
def venv(w):
    r = subprocess.run([PYTHON, "-m", "venv", "--without-pip",
                        w.path("home/v")], capture_output=True, text=True)
    if r.returncode:
        w.skip("venv", r.stderr.strip()[:200])
        return
    site = [os.path.join(p, "site-packages") for p, d, f in
            os.walk(w.path("home/v/lib")) if "site-packages" in d][0]
    with open(os.path.join(site, "only_here.py"), "w") as f:
        f.write("x = 5\n")
    w.mkext("ve", '''
        import only_here
        hello("ve", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: text(f["id"], repr((sys.prefix, only_here.x))))
    ''', line1="#!" + w.path("home/v/bin/python3"))
    answers(w, "ve", repr((w.path("home/v"), 5)))


@test("node of a version manager below HOME", needs=["sandbox", "node"])
def nvm(w):
    real = os.path.realpath(shutil.which("node"))
    at = w.path("home/.nvm/versions/node/v1/bin/node")
    os.makedirs(os.path.dirname(at))
    os.makedirs(w.path("home/.nvm/versions/node/v1/lib/node_modules"))
    try:
        os.link(real, at)
    except OSError:
        shutil.copy(real, at)
    w.write("home/.nvm/.npmrc", "TOKEN")
    w.env["PATH"] = os.path.dirname(at) + ":" + os.defpath
    script(w, "nv", "#!/usr/bin/env node\n", NODE % {
        "name": "nv", "body": 'return process.execPath;'}, "main.js")
    # A distribution's node keeps part of its library in files beside it, and
    # does not start elsewhere without them; a version manager's has it inside.
    beside = "/usr/share/nodejs"
    options = ["--scope", w.scope("nv", {"fs": {"read": [beside]}})] if (
        os.path.isdir(beside)) else []
    answers(w, "nv", '"%s"' % at, *options)


@test("programs granted by name", needs="sandbox")
def granted(w):
    w.mkext("gr", '''
        import subprocess
        def run(*a):
            try: return subprocess.run(a, capture_output=True, timeout=30).returncode
            except OSError as e: return e.strerror
        hello("gr", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: text(f["id"], repr([run(*c) for c in f["args"]["c"]])))
    ''')
    rows = [
        ("openssl", ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
                     "-subj", "/CN=x", "-keyout", "/tmp/k", "-out", "/tmp/c"]),
        ("git", ["git", "init", "-q", "/tmp/g"]),
        ("git", ["git", "-C", "/tmp/g", "-c", "user.name=a", "-c",
                 "user.email=b", "commit", "-q", "--allow-empty", "-m", "x"]),
        ("perl", ["perl", "-MPOSIX", "-e", "exit floor(0.5)"]),
        ("awk", ["awk", "BEGIN{exit 0}"]),
    ]
    rows = [(n, c) for n, c in rows if shutil.which(n, path=os.defpath)]
    w.env["PATH"] = os.defpath
    scope = w.scope("gr", {"fs": {"exec": sorted({n for n, c in rows})}})
    c = w.console("./gr", call("t", c=[c for n, c in rows]), "--scope", scope)
    w.equal(c.result("gr"), repr([0] * len(rows)), "all work", c)
    no_records(w, "gr")
    c = w.console("./gr", call("t", c=[c for n, c in rows]))
    w.equal(c.result("gr"),
            repr(["No such file or directory"] * len(rows)),
            "none without the grant", c)
    w.check(w.denied("gr", "fs.exec"), "and that is recorded")


@test("a compiler granted by name", needs="sandbox", seconds=120)
def compiler(w):
    w.mkext("co", '''
        import subprocess
        def run(f):
            open("/tmp/a.c", "w").write("#include <stdio.h>\\nint main(void)"
                                        "{return puts(\\"it runs\\") < 0;}")
            try:
                p = subprocess.run([f["args"]["c"], "-o", "/tmp/a", "/tmp/a.c"],
                                   capture_output=True, text=True, timeout=60)
                if p.returncode: return p.stderr
                return subprocess.run(["/tmp/a"], capture_output=True,
                                      text=True).stdout.strip()
            except OSError as e: return e.strerror
        hello("co", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: text(f["id"], run(f)))
    ''')
    w.env["PATH"] = os.defpath
    found = [c for c in ("cc", "gcc", "g++", "clang")
             if shutil.which(c, path=os.defpath) and w.spawn(
                 [c, "-x", "c", "-o", w.path("a.out"), "-"],
                 stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
                 env=w.env).communicate(b"int main(void){return 0;}")
             and os.path.exists(w.path("a.out"))]
    if not found:
        w.skip("compilers", "none works here")
    for c in found:
        scope = w.scope("co", {"fs": {"exec": [c]}})
        run = w.console("./co", call("t", c=c), "--scope", scope)
        w.equal(run.result("co"), "it runs", c + " alone is enough", run)
        no_records(w, "co")
    for c in found[:1]:
        run = w.console("./co", call("t", c=c))
        w.equal(run.result("co"), "No such file or directory",
                "not without the grant", run)


@test("three starts by the agent are recorded in full", needs="sandbox")
def first_runs(w):
    w.mkext("fr", '''
        hello("fr", "tools"); tool("t"); ready()
        os.path.exists("/etc/shadow")
        serve()
    ''')
    w.install("fr")
    seen = []
    for i in range(5):
        x = w.wrap("fr")
        x.handshake()
        x.until("ready")
        x.shutdown()
        seen.append(sum(r["count"] for r in w.ledger("fr")))
    w.equal(seen, [1, 2, 3, 3, 3], "looks recorded after each start")


@test("the first line ends in CR LF", needs="sandbox")
def crlf(w):
    w.mkext("cr", WHO % "cr", line1="#!/usr/bin/python3\r")
    c = w.console("./cr", call("t"))
    w.equal(c.rc, 2, "exit", c)
    w.contains(c.err, 'cr: main.py line 1 ends in CRLF: interpreter '
               '"/usr/bin/python3\\r" does not exist (convert the file to LF)',
               "said", c)


main()
