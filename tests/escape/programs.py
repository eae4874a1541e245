#!/usr/bin/env python3
"""What a manifest can name, so that the host would show it: the program that
is started is a stranger's choice, and so is what lies beside it. Each attempt
builds an extension (in a repository that is a stranger's as well) whose
program would have a secret directory shown as its library, its loader, its
environment; the extension then reads the secret by its real name."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from field import *
from zbtest import main, test

REAL_PYTHON = os.path.realpath(zbtest.PYTHON)
VERSION = "python%d.%d" % sys.version_info[:2] if REAL_PYTHON == \
    os.path.realpath(sys.executable) else os.path.basename(REAL_PYTHON)
MAIN = '''
    hello("e", "tools"); tool("t"); ready()
    def t(f):
        try: text(f["id"], open(f["args"]["p"]).read())
        except OSError as e: text(f["id"], "errno %d" % e.errno)
    serve(tool_call=t)
'''


class Place:
    """A repository of a stranger's, in HOME or elsewhere, with an extension
    in it."""
    def __init__(self, w, where, exec="venv/bin/python", args=("main.py",)):
        self.w = w
        self.key = w.write("home/.ssh/id", "S3CRET")
        self.rel = where + "/repo/.zot/extensions/e/"
        depth = "../" * (4 if where == "home" else 5)
        exec = exec.replace("{home}", depth + ("" if where == "home" else
                                               "home"))
        self.ext = w.mkext(self.rel[:-1], MAIN,
                           manifest={"name": "e", "exec": exec,
                                     "args": list(args)})

    def link(self, to, at):
        path = os.path.normpath(self.w.path(self.rel + at))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(to, path)

    def file(self, at, text, mode=0o644):
        return self.w.write(os.path.normpath(self.rel + at), text, mode)

    def copy(self, program, at):
        path = os.path.normpath(self.w.path(self.rel + at))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(program, path)


def attempt(name, exec="venv/bin/python", args=("main.py",), needs=(),
            policy="strict", run=True):
    def add(build):
        for where in ("home", "srv"):
            test("program: %s (%s)" % (name, where), needs=["sandbox", *needs])(
                lambda w, where=where: one(w, where))

        def one(w, where):
            p = Place(w, where, exec, args)
            secret = build(p) or p.key
            got = subprocess.run(["cat", secret], capture_output=True)
            w.check(SECRET.encode() in got.stdout, "control: it is there")
            c = w.console(p.ext, [zbtest.call("t", p=secret)], "--policy",
                          policy)
            got = c.result("e")
            w.check(got is None or SECRET not in got, "attempt", got, c)
            if got is None:
                w.check(c.rc in (1, 2, 3) and c.err, "cause: it is not "
                        "started, and why", c)
            else:
                w.check(w.denied("e", "fs.read", secret), "cause",
                        w.ledger("e"), w.log("e"))
        return build
    return add


@attempt("pyvenv.cfg whose home has a link for its library")
def venv_link(p):
    p.link(REAL_PYTHON, "venv/bin/python")
    p.file("fake/lib/python3.0/os.py", "")
    p.link(p.w.home + "/.ssh", "fake/lib/" + VERSION)
    p.file("venv/pyvenv.cfg", "home = %s/fake/bin\n" % p.ext)


@attempt("pyvenv.cfg whose home is spelled with .. behind a link")
def venv_dots(p):
    secret = p.w.write("home/victim/lib/%s/secret" % VERSION, SECRET)
    p.link(REAL_PYTHON, "venv/bin/python")
    # Followed, it ends in the extension; read as text, in HOME.
    os.makedirs(p.ext + "/1/2/3/4/5/6")
    p.link("1/2/3/4/5/6", "l")
    p.file("home/victim/lib/%s/os.py" % VERSION, "")
    p.file("home/victim/bin/any", "")
    p.file("venv/pyvenv.cfg",
           "home = %s/l/../../../../../../home/victim/bin\n" % p.ext)
    return secret


@attempt("a python of the repository's, with a link for its library",
         exec="../../../fake/bin/" + VERSION)
def own_python(p):
    p.copy(REAL_PYTHON, "../../../fake/bin/" + VERSION)
    p.link(p.w.home + "/.ssh", "../../../fake/lib/" + VERSION)


@attempt("pyvenv.cfg that is a link",
         exec="../../../fake/bin/" + VERSION)
def cfg_link(p):
    p.copy(REAL_PYTHON, "../../../fake/bin/" + VERSION)
    p.link(p.key, "../../../fake/pyvenv.cfg")


@attempt("libpython that is a link",
         exec="../../../fake/bin/" + VERSION)
def libpython(p):
    p.copy(REAL_PYTHON, "../../../fake/bin/" + VERSION)
    p.link(p.key, "../../../fake/lib/libpython3.so")


def compile(p, at, *flags):
    """main.py's work in C is not needed: a program that execs python."""
    src = p.file(at + ".c", '''
        #include <unistd.h>
        int main(int n, char **v) { (void)n;
        v[0] = "python3"; execv("%s", v); return 1; }''' % REAL_PYTHON)
    out = os.path.normpath(p.w.path(p.rel + at))
    subprocess.run(["cc", "-o", out, src, *flags], check=True)
    return out


@attempt("RUNPATH of a program in the extension", exec="./tool",
         args=[os.devnull], needs=["cc"])
def runpath(p):
    compile(p, "tool", "-Wl,-rpath," + p.w.home + "/.ssh")


@attempt("RUNPATH of a program beside the extension",
         exec="../../../tool", args=[os.devnull], needs=["cc"])
def runpath_beside(p):
    compile(p, "../../../tool", "-Wl,-rpath," + p.w.home + "/.ssh")


@attempt("loader of a program", exec="./tool", args=[os.devnull],
         needs=["cc"])
def loader(p):
    os.chmod(p.key, 0o755)
    compile(p, "tool", "-Wl,--dynamic-linker," + p.key)


@attempt("interpreter of a script", exec="./run")
def interpreter(p):
    os.chmod(p.key, 0o755)
    p.file("run", "#!%s\n" % p.key, 0o755)


@attempt("exec that is a secret", exec="{home}/.ssh/id")
def exec_secret(p):
    os.chmod(p.key, 0o755)


@attempt("exec that is a link to a secret", exec="./run")
def exec_link(p):
    os.chmod(p.key, 0o755)
    p.link(p.key, "run")


@attempt("something that looks like Homebrew",
         exec="../../../brew/Cellar/py/1/bin/" + VERSION)
def brew(p):
    p.copy(REAL_PYTHON, "../../../brew/Cellar/py/1/bin/" + VERSION)
    p.file("../../../brew/bin/brew", "", 0o755)
    p.link(p.w.home + "/.ssh", "../../../brew/opt")


for policy in ("strict", "standard"):
    @attempt("a link beside the code, " + policy, exec="./main.py", args=(),
             policy=policy)
    def code_link(p):
        p.link(p.key, "key")
        p.link(p.w.home + "/.ssh", "keys")

    @attempt("a manifest that is a link, " + policy, exec="./main.py",
             args=(), policy=policy)
    def permissions_link(p):
        p.link(p.key, "permissions.json")


@test("program: home of an installed pyvenv.cfg in the private HOME",
      needs="sandbox")
def private_home(w):
    """What the extension makes at one start would be followed by the next."""
    key = w.write("home/.ssh/id", SECRET)
    private = w.zot_home + "/zotbox/e/home"
    lib = w.home + "/fake/lib"
    w.mkext("e", "", manifest={"exec": "venv/bin/" + VERSION})
    os.makedirs(w.path("e/venv/bin"))
    shutil.copy(ESCAPIST, w.path("e/venv/bin/" + VERSION))
    w.write("e/venv/pyvenv.cfg", "home = %s/fake/bin\n" % private)
    w.install("e")
    script = [call("act", argv=a) for a in (
        ["mkdir", w.home + "/fake"], ["mkdir", w.home + "/fake/bin"],
        ["mkdir", lib], ["mkdir", lib + "/python3.0"],
        ["create", lib + "/python3.0/os.py"],
        ["symlink", w.home + "/.ssh", lib + "/" + VERSION])]
    c = w.console("e", script)
    w.equal([h.text() for h in c.of("result")], ["ok"] * 6, "planted", c)
    w.check(os.path.exists(private + "/fake/lib/" + VERSION + "/id"),
            "control: it leads to the secret")
    c = w.console("e", [call("act", argv=["read", key])])
    w.equal(c.result("e"), "no ENOENT", "attempt", c)
    w.check(w.denied("e", "fs.read", key), "cause", w.ledger("e"))


main()
