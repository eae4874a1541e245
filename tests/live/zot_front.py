#!/usr/bin/env python3
"""zotbox under the name zot, earlier in PATH than the real one: `zot ext` is
ours, anything else is the real zot with nothing changed. And zotbox itself:
usage, help, descriptors that are closed."""
import os
import pty
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *

# Stands for the real one: says what it got, then does what it is told.
REAL = r'''#!/usr/bin/python3
import json, os, signal, sys
print(json.dumps({
    "argv": sys.argv, "pid": os.getpid(), "ppid": os.getppid(),
    "tty": [os.isatty(n) for n in (0, 1, 2)], "env": dict(os.environ),
    "pipe": signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN,
    "in": "" if os.isatty(0) else sys.stdin.read()}), flush=True)
if sys.argv[-1].startswith("exit"): sys.exit(int(sys.argv[-1][4:]))
if sys.argv[-1] == "die": os.kill(os.getpid(), signal.SIGTERM)
'''.replace("/usr/bin/python3", PYTHON)


def front(w):
    os.makedirs(w.path("first"), exist_ok=True)
    os.makedirs(w.path("second"), exist_ok=True)
    os.symlink(ZOTBOX, w.path("first/zot"))
    os.symlink(w.path("first/zot"), w.path("second/zot"))
    w.write("third/zot", "not executable")
    w.write("real/zot", REAL, 0o755)
    w.env["PATH"] = ":".join([w.path("first"), w.path("second"), "",
                              w.path("third"), w.path("real"),
                              w.env["PATH"]])


def run(w, *args, input="", **kw):
    p = subprocess.run([w.path("first/zot"), *args], input=input.encode(),
                       stdout=-1, stderr=-1, env=dict(w.env, **kw),
                       cwd=w.project)
    return Run(p.returncode, p.stdout.decode(), p.stderr.decode(), 0)


@test("anything else is the real zot")
def passed_on(w):
    front(w)
    r = run(w, "-p", "a  b", "", "exit7", input="typed")
    w.equal(r.rc, 7, "exit status", r)
    d = json_of(r.out)
    w.equal(d["argv"][1:], ["-p", "a  b", "", "exit7"], "arguments")
    w.equal(d["in"], "typed", "standard input")
    w.equal(d["env"].get("PATH"), w.env["PATH"], "environment")
    w.equal(sorted(set(d["env"]) - set(w.env) - {"LC_CTYPE"}), [],
            "nothing is added")
    w.equal(run(w, "die").rc, -signal.SIGTERM, "a signal")
    w.equal(json_of(run(w).out)["argv"][1:], [], "no argument at all")
    w.equal(json_of(run(w, "--version").out)["argv"][1:], ["--version"],
            "options are not ours")
    d = json_of(run(w, "help").out)
    w.equal(d["ppid"], os.getpid(), "no process stays in between")


def json_of(text):
    import json
    try:
        return json.loads(text)
    except ValueError:
        return {"argv": [text], "env": {}, "in": None, "ppid": None}


@test("the terminal is untouched")
def terminal(w):
    front(w)
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(w.path("first/zot"), ["zot", "exit3"], w.env)
    out = b""
    while True:
        try:
            more = os.read(fd, 65536)
        except OSError:
            break
        if not more:
            break
        out += more
    _, status = os.waitpid(pid, 0)
    w.equal(os.waitstatus_to_exitcode(status), 3, "exit status")
    w.equal(json_of(out.decode())["tty"], [True] * 3, "a terminal on 0-2",
            out)


@test("zot ext is ours")
def ours(w):
    front(w)
    r = run(w, "ext")
    w.equal(r.rc, 2, "a verb is needed", r)
    w.contains(r.err, '"ext" needs a command after it:')
    r = run(w, "ext", "list")
    w.equal((r.rc, "argv" in r.out), (0, False), "ext list", r)
    r = run(w, "ext", "frobnicate")
    w.equal((r.rc, "argv" in r.out), (2, False), "an unknown one", r)


@test("which zot it is")
def which(w):
    front(w)
    w.write("other/zot", REAL, 0o755)
    r = run(w, "x", ZOTBOX_ZOT=w.path("other/zot"))
    w.contains(r.out, "other/zot", "ZOTBOX_ZOT names it", r)
    r = run(w, "x", ZOTBOX_ZOT=w.path("second/zot"))
    w.equal(r.rc, 2, "but it cannot be us", r)
    r = run(w, "x", PATH=w.path("first") + ":" + w.path("second"))
    w.equal((r.rc, r.out), (2, ""), "there is none", r)
    w.contains(r.err, "there is no other zot in PATH")
    os.chdir(w.path("real"))
    r = run(w, "x", PATH=w.path("first") + "::.")
    w.equal(r.rc, 2, "relative entries are passed over", r)
    os.chdir("/")


@test("usage and help")
def usage(w):
    r = w.zotbox()
    w.equal((r.rc, r.out), (2, ""), "nothing", r)
    r = w.zotbox("help")
    w.equal((r.rc, r.err), (0, ""), "help", r)
    names = [x[2:].split("  ")[0] for x in r.out.splitlines()
             if x[:2] == "  " and x[2] != " "]
    w.check("ext install" in names and "console" in names, "the commands",
            names)
    for name in names:
        h = w.zotbox(*name.split(), "--help")
        w.check(h.rc == 0 and h.out.startswith("usage: zotbox " + name),
                name + " --help", h)
        u = w.zotbox(*name.split(), "--frobnicate")
        w.check(u.rc == 2 and u.out == "" and
                "unknown option --frobnicate" in u.err,
                name + " --frobnicate", u)
    w.equal(w.zotbox("--version").out, w.zotbox("version").out, "--version")
    r = w.zotbox("ext", "instal")
    w.contains(r.err, 'did you mean "ext install"?', "nearest", r)


@test("descriptors that are closed at the start", needs="sandbox")
def closed(w):
    w.mkext("e", '''
        hello("e", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: text(f["id"], "ok"))
    ''')
    for fds, want in (("<&-", 0), ("2>&-", 0), ("<&- 2>&-", 0)):
        p = w.spawn(["/bin/sh", "-c", '"$0" console "$1" ' + fds, ZOTBOX,
                     w.path("e")], stdout=-1, stderr=-1, stdin=-1)
        out, err = p.communicate(b"call t\n", 20)
        w.equal(p.returncode, want, fds, err)
        w.equal(b"ok" in out, "<" not in fds, "with what it could read", out)
    p = w.spawn(["/bin/sh", "-c", '"$0" console "$1" >&-', ZOTBOX,
                 w.path("e")], stdin=-1, stderr=-1)
    p.communicate(b"call t\n", 20)
    w.equal(p.returncode, 0, ">&-: results go nowhere, as asked")
    with open("/dev/full", "w") as full:
        p = w.spawn([ZOTBOX, "console", w.path("e")], stdin=-1, stdout=full,
                    stderr=-1)
        p.communicate(b"call t\n", 20)
    w.equal(p.returncode, 1, "results that cannot be written are a failure")


main()
