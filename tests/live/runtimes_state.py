#!/usr/bin/env python3
"""Each runtime keeps state: in data_dir under strict, beside its code under
standard, also by renaming; over restarts; never among the files that the host
reads; and no code changes. The programs are in keepers/."""
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *
from gobuild import go_build

HERE = os.path.join(SRC, "tests/live/keepers")


def copy(w, name, program, line1=""):
    with open(os.path.join(HERE, program), "rb") as f:
        w.write(name + "/" + program, line1.encode() + f.read(), 0o755)
    return {"exec": "./" + program}


def built(w, name, why):
    if why:
        w.skip(name, "cannot be built: " + why)
        return None
    return {"exec": "./keeper"}


def c(w, name):
    os.makedirs(w.path(name))
    r = subprocess.run(os.environ.get("ZB_CC", "cc").split() + [
        "-O1", "-o", w.path(name + "/keeper"), os.path.join(HERE, "keeper.c")],
        capture_output=True, text=True)
    return built(w, name, r.returncode and r.stderr.strip()[:200])


def go(w, name):
    os.makedirs(w.path(name))
    w.write("source/go.mod", "module keeper\n\ngo 1.18\n")
    shutil.copy(os.path.join(HERE, "keeper.go"), w.path("source"))
    return built(w, name, go_build(w.path("source"), w.path(name + "/keeper")))


def found_python(w, name):
    """The one of the PATH that make check was given: a shim, it may be."""
    w.env["PATH"] = os.environ["PATH"]
    copy(w, name, "keeper.py")
    return {"exec": "python3", "args": ["keeper.py"]}


def node(w, name):
    w.env["PATH"] = os.path.dirname(shutil.which("node")) + ":" + \
        w.env["PATH"]
    copy(w, name, "keeper.js")
    return {"exec": "node", "args": ["keeper.js"]}


def tree(top):
    """Everything below: kind, mode, content."""
    found = {}
    for at, dirs, files in os.walk(top):
        for n in dirs + files:
            p = os.path.join(at, n)
            st = os.lstat(p)
            text = None
            if n in files:
                with open(p, "rb") as f:
                    text = f.read()
            found[os.path.relpath(p, top)] = (st.st_mode, text)
    return found


class Ext:
    """One start of it, as the host starts it."""
    def __init__(self, w, name):
        self.w, self.n = w, 0
        self.p = w.wrap(name)
        self.p.handshake()
        self.p.until("ready", 20)

    def ask(self, op, base):
        self.n += 1
        self.p.send({"type": "tool_call", "id": str(self.n), "name": "t",
                     "args": {"op": op, "base": base}})
        return self.p.until("tool_result")["content"][0]["text"]

    def done(self):
        self.w.equal(self.p.shutdown(), 0, "exit")


def recorded(w, name, installed, op):
    """A record of what op tries there? It is written behind the answer."""
    files = {"put": ("/state.new",), "add": ("/added",),
             "spoil": tuple("/" + n + more for n in os.listdir(installed)
                            for more in ("", ".new"))}[op]
    end = time.time() + 3
    while time.time() < end:
        if [r for r in w.ledger(name) if r["op"][:3] == "fs." and
                r.get("target") in [installed + f for f in files]]:
            return True
        time.sleep(0.05)
    return False


def keeps(w, name, base, refuses):
    """Puts and finds a word in base, over a restart; the rest is refused."""
    installed = os.path.join(w.zot_home, "extensions", name)
    before = tree(installed)
    e = Ext(w, name)
    e.done()
    w.equal([(r["op"], r.get("target")) for r in w.ledger(name)], [],
            "a bare start leaves no record")
    e = Ext(w, name)
    w.equal(e.ask("put", base), "ok", "a file is kept in " + base)
    w.equal(e.ask("take", base), "kept", "and read")
    for op in refuses:
        w.equal(e.ask(op, "code"), "refused", op + " is refused")
        w.check(recorded(w, name, installed, op), op + " is recorded",
                *w.ledger(name))
    e.done()
    e = Ext(w, name)
    w.equal(e.ask("take", base), "kept", "and read after a restart")
    e.done()
    w.equal(tree(installed), before, "the installed files are as they were")
    with open(w.path("zot/zotbox/%s/data/state" % name)) as f:
        w.equal(f.read(), "kept", "it lies in the private data")


def keeper(name, make, needs=()):
    @test(name + " keeps its state", needs=["sandbox", *needs], seconds=120)
    def run(w):
        m = make(w, name)
        if not m:
            return
        m = dict({"name": name, "version": "1"}, **m)
        m["args"] = m.get("args", []) + [name]
        w.write(name + "/extension.json", json.dumps(m))
        w.install(name, "strict")
        keeps(w, name, "data", ["put", "add", "spoil"])
        r = w.zotbox("ext", "remove", name, "--yes")
        w.equal(r.rc, 0, "removed", r)
        for n in os.listdir(os.path.join(w.zot_home, "logs")):
            os.unlink(os.path.join(w.zot_home, "logs", n))
        w.install(name, "standard")
        keeps(w, name, "code", ["spoil"])
        # The control comes last: it spoils the source.
        for op in ("put", "add", "spoil"):
            got = w.bare(name, "t", {"op": op, "base": "code"})
            w.equal(got, "ok" if op == "put" else "done",
                    "control: bare, %s works" % op)


keeper("python", lambda w, n: copy(w, n, "keeper.py", "#!%s\n" % PYTHON))
keeper("found-python", found_python, ["python3"])
keeper("node", node, ["node"])
keeper("sh", lambda w, n: copy(w, n, "keeper.sh", "#!/bin/sh\n"))
keeper("bash", lambda w, n: copy(w, n, "keeper.sh", "#!/usr/bin/env bash\n"),
       ["bash"])
keeper("c", c)
keeper("go", go, ["go"])
main()
