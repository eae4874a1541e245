#!/usr/bin/env python3
"""The console on a terminal is a program of its own: what each of the two
links, where the one is found by the other, and what is said when it is not."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *
from screen import Terminal

ZOTBOX = os.path.join(os.environ.get("ZB_BUILD", "."), "zotbox")
TERMINAL = ZOTBOX + "-terminal"
SERVE = r'''
    hello("pn", "tools"); tool("t"); ready()
    serve(tool_call=lambda f: text(f["id"], "answer"))
'''


def place(w, terminal="libexec/zotbox/zotbox-terminal"):
    """Both programs and the data, laid out as `make install` does."""
    for source, to in (ZOTBOX, "bin/zotbox"), (TERMINAL, terminal):
        if to:
            to = w.path("prefix/" + to)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(source, to)
    os.makedirs(w.path("prefix/share"))
    data = os.path.join(os.path.dirname(ZOTBOX), "pkgdata")
    os.symlink(os.path.realpath(data), w.path("prefix/share/zotbox"))
    return w.path("prefix/bin/zotbox")


def start(w, program, *args):
    return Terminal(w, ["console", *args], executable=program)


def exe(t):
    return os.readlink("/proc/%d/exe" % t.p.pid)


@test("what an extension's supervisor links", needs="ldd")
def links(w):
    def names(program):
        out = subprocess.run(["ldd", program], stdout=subprocess.PIPE,
                             timeout=20, text=True).stdout
        return re.findall(r"^\s*(\S+)", out, re.M)

    def terminals(program):
        return [n for n in names(program)
                if re.match(r"lib(readline|history|n?curses|tinfo|edit)", n)]

    w.check(any("readline" in n for n in terminals(TERMINAL)),
            "control: it is seen where it is linked", names(TERMINAL))
    w.check(any("libuv" in n for n in names(ZOTBOX)),
            "control: zotbox can be looked at", names(ZOTBOX))
    w.equal(terminals(ZOTBOX), [], "nothing for a terminal")


@test("as it is installed", needs=["sandbox", "linux"])
def installed(w):
    zotbox = place(w)
    w.mkext("pn", SERVE)
    os.symlink(zotbox, w.path("linked"))
    r = w.zotbox("ext", "install", w.path("pn"), executable=zotbox)
    w.equal(r.rc, 0, "install", r)
    # Of what is installed, it starts what would start this zotbox.
    t = start(w, w.path("linked"))
    t.see("1 of 1 extensions are ready", "it starts what is installed", 30)
    w.equal(exe(t), os.path.realpath(
        w.path("prefix/libexec/zotbox/zotbox-terminal")), "which program")
    with open("/proc/%d/cmdline" % t.p.pid, "rb") as f:
        w.equal(f.read().split(b"\0")[:-1], [os.path.realpath(zotbox).encode(),
                                             b"console"], "its arguments")
    t.type("call t\n")
    t.see("[pn] result: answer")
    t.type("\x04")
    w.equal(t.wait(15), 0, "exit")
    r = w.zotbox("console", "pn", input="call t\n", executable=zotbox)
    w.check(r.rc == 0 and r.out.startswith("H: pn result "),
            "a script needs none of it", r)


@test("in a build tree, and with its arguments", needs=["sandbox", "linux"])
def built(w):
    w.mkext("pn", SERVE)
    where = w.path("elsewhere")
    os.mkdir(where)
    t = start(w, ZOTBOX, w.path("pn"), "--policy=standard", "--cwd", where)
    t.see("1 of 1 extensions are ready", "it starts", 30)
    w.equal(exe(t), os.path.realpath(TERMINAL), "which program")
    t.type("exts\n")
    t.see("[pn] ready  1.0.0  standard", "the policy")
    os.kill(t.p.pid, 15)
    w.equal(t.wait(15), 128 + 15, "a signal ends it")


@test("what is wrong in the command line is told without it", needs="linux")
def usage(w):
    zotbox = place(w, terminal=None)
    for args, rc, part in ((["--nope"], 2, "--nope"),
                           (["--help"], 0, "No history is")):
        t = start(w, zotbox, *args)
        w.equal(t.wait(15), rc, "exit", t.text())
        w.contains(t.text(), part, "words")


@test("it cannot be started", needs="linux")
def broken(w):
    zotbox = place(w)
    path = os.path.realpath(w.path("prefix/libexec/zotbox/zotbox-terminal"))

    def refused(why, what):
        t = start(w, zotbox)
        w.equal(t.wait(15), 1, what + ": exit", t.text())
        text = t.text().replace("\n", "")
        for part in (path, why, "install zotbox again",
                     "a script on standard input"):
            w.contains(text, part, what)
        w.equal(t.modes(), t.before, what + ": the terminal is as it was")

    os.chmod(path, 0o644)
    refused("Permission denied", "not executable")
    with open(path, "w") as f:
        f.write("#!/nonexistent/program\n")
    os.chmod(path, 0o755)
    refused("No such file", "nothing that runs it")


@test("it is not there", needs="linux")
def missing(w):
    zotbox = place(w, terminal=None)
    t = start(w, zotbox)
    if t.until(lambda: "zotbox>" in t.text() or "Ctrl-D" in t.text(), 2):
        w.skip("not there", "one is installed where this build looks")
        t.type("\x04")
        t.wait(15)
        return
    w.equal(t.wait(15), 1, "exit", t.text())
    text = t.text().replace("\n", "")
    for part in ("zotbox-terminal", "is not at /", "install zotbox again"):
        w.contains(text, part, "what is told")


@test("started by hand")
def by_hand(w):
    for argv in (["zotbox-terminal"], [TERMINAL], [TERMINAL, "ext"],
                 ["zotbox-terminal", "console"]):
        p = w.spawn(argv, executable=TERMINAL, stdin=subprocess.DEVNULL,
                    stderr=subprocess.PIPE)
        err = p.communicate(timeout=15)[1].decode()
        w.equal(p.returncode, 2, " ".join(argv[1:]) or "bare", err)
        w.contains(err, "is started by: zotbox console", "who starts it")


main()
