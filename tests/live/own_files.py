#!/usr/bin/env python3
"""What zotbox itself runs and reads: nothing beside the program is taken for
its own, and no grant lets an extension change it or put it there."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *
from screen import Terminal

BODY = '''
    hello("NAME", "tools"); tool("put"); tool("show"); ready()
    def put(f):
        said = []
        for p, content in f["args"]["files"]:
            try:
                os.makedirs(os.path.dirname(p), exist_ok=True)
                with open(p, "w") as o: o.write(content)
                os.chmod(p, 0o755)
                said.append("wrote")
            except OSError as e: said.append("errno %d" % e.errno)
        text(f["id"], " ".join(said))
    def show(f):
        try: text(f["id"], open(f["args"]["p"]).read())
        except OSError as e: text(f["id"], "errno %d" % e.errno)
    tools = {"put": put, "show": show}
    serve(tool_call=lambda f: tools[f["name"]](f))
'''


def layout(w, *dirs):
    """A HOME with zotbox in ~/bin as `make install --prefix=~` has it, and
    two extensions that are granted nothing."""
    for source, to in ((BUILD + "/zotbox", "bin/zotbox"),
                       (BUILD + "/zotbox-terminal",
                        "libexec/zotbox/zotbox-terminal")):
        to = w.path("home/" + to)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(source, to)
    shutil.copytree(os.path.join(SRC, "policies"),
                    w.path("home/share/zotbox/policies"))
    for d in dirs:
        os.makedirs(w.path("home/" + d))
    w.program = w.path("home/bin/zotbox")
    w.secret = w.write("home/.ssh/id", "KEY")
    for n in ("x", "y"):
        w.mkext(n, BODY.replace("NAME", n))
        own(w, "ext", "install", w.path(n), "--policy", "strict")


def own(w, *args, **kw):
    return w.zotbox(*args, executable=w.program, **kw)


def play(w, name, *script, **kw):
    return w.console(name, script, executable=w.program, **kw)


def put(*files):
    return call("put", files=list(files))


def loose_strict():
    with open(os.path.join(SRC, "policies/strict.json")) as f:
        policy = json.load(f)
    policy["fs"]["read"] = ["~/.ssh"]
    return json.dumps(policy)


@test("what stands beside the program is not its own",
      needs=["sandbox", "linux"], seconds=180)
def beside(w):
    layout(w)
    sign = w.path("PWNED")
    evil = "#!/bin/sh\nid -un >%s\n" % sign
    for rel in ("policies/strict.json", "tests/policies/strict.json",
                "pkgdata/policies/strict.json"):
        w.write("home/bin/" + rel, loose_strict())
    w.write("home/bin/config.status", "")
    shutil.copytree(os.path.join(SRC, "policies/runtimes"),
                    w.path("home/bin/policies/runtimes"))
    planted = w.write("home/bin/zotbox-terminal", evil, 0o755)
    # Control: what was planted does what it says, where it counts.
    subprocess.run([planted], timeout=10, check=True)
    w.check(os.path.exists(sign), "control: the planted program works")
    os.unlink(sign)
    shown = call("show", p=w.secret)
    w.equal(play(w, "y", shown).result(), "errno 2",
            "a policy beside it is not read")
    real = w.path("home/share/zotbox/policies/strict.json")
    with open(real) as f:
        was = f.read()
    with open(real, "w") as f:
        f.write(loose_strict())
    w.equal(play(w, "y", shown).result(), "KEY",
            "control: in its place it would be")
    with open(real, "w") as f:
        f.write(was)
    t = Terminal(w, ["console", "y"], executable=w.program)
    t.see("1 of 1 extensions are ready", "the console starts", 30)
    w.equal(os.readlink("/proc/%d/exe" % t.p.pid),
            w.path("home/libexec/zotbox/zotbox-terminal"), "which program")
    t.type("\x04")
    w.equal(t.wait(15), 0, "exit")
    w.check(not os.path.exists(sign), "what was planted did not run")


@test("the act that was granted before is refused, and told",
      needs=["sandbox", "linux"], seconds=180)
def attack(w):
    layout(w)
    bin_ = w.path("home/bin")
    files = [[bin_ + "/policies/strict.json", loose_strict()],
             [bin_ + "/zotbox-terminal", "#!/bin/sh\n"],
             [bin_ + "/zotbox", "#!/bin/sh\n"]]
    # Control: from a program that stands elsewhere the same grant is made,
    # and the extension can write there.
    away = w.path("home/away")
    os.mkdir(away)
    w.equal(own(w, "ext", "allow", "x", "fs.write", "~/away").rc, 0,
            "control: a directory that is not zotbox's")
    w.equal(play(w, "x", put([away + "/policies/x", "1"])).result(), "wrote",
            "control: it can be written to")
    own(w, "ext", "revoke", "x", "fs.write", "~/away")
    r = own(w, "ext", "allow", "x", "fs.write", "~/bin")
    w.equal(r.rc, 3, "the grant is refused", r)
    w.contains(r.err, bin_ + "/zotbox, which zotbox itself runs or reads",
               "and says why", r)
    c = play(w, "x", put(*files))
    w.check("wrote" in (c.result() or ""), "it writes to its private HOME", c)
    w.equal(sorted(os.listdir(bin_)), ["zotbox"], "and not to the host's")
    # A line by hand, or from before: it does not start, and each says why.
    at = os.path.join(w.zot_home, "zotbox/x/scope.json")
    with open(at, "w") as f:
        json.dump({"zotbox": 1, "extends": "strict",
                   "fs": {"write": ["~/bin"]}}, f)
    c = play(w, "x", put(*files))
    w.equal((c.rc, c.result()), (3, None), "a line by hand: no start", c)
    w.contains(c.err, "fs.write", "names the line", c)
    for args in (["ext", "scope", "x", "--effective"], ["check", at],
                 ["ext", "doctor", "x"]):
        r = own(w, *args)
        w.contains(r.out + r.err, "which zotbox itself runs or reads",
                   " ".join(args[:2]) + " says it", r)
    with open(bin_ + "/zotbox", "rb") as f, open(BUILD + "/zotbox", "rb") as g:
        w.check(f.read() == g.read(), "the program is as it was")


@test("grants of what is its own", needs=["sandbox", "linux"], seconds=240)
def grants(w):
    layout(w, "names", "first", "data")
    os.symlink("../bin/zotbox", w.path("home/names/zotbox"))
    w.env["PATH"] = "%s:%s:%s" % (w.path("home/first"), w.path("home/names"),
                                  w.env["PATH"])
    refuse = ("~/bin", "~/bin/", "~/bin/zotbox", "~/bin/*", "~/libexec",
              "~/libexec/zotbox", "~/libexec/zotbox/zotbox-terminal",
              "~/share", "~/share/zotbox/policies",
              "~/share/zotbox/policies/strict.json", "~/share/zotbox/new/",
              "~/names", "~/n*", "~/first", "~", "/")
    for value in refuse:
        r = own(w, "ext", "allow", "--yes-i-mean-it", "x", "fs.write", value)
        w.equal(r.rc, 3, "write " + value, r)
        w.contains(r.err, "which zotbox itself runs or reads",
                   "why: " + value, r)
    for key, value in (("fs.read", "~/bin"), ("fs.read", "~/share/zotbox"),
                       ("fs.exec", "~/bin/zotbox"), ("fs.write", "~/bin/n*"),
                       ("fs.write", "~/data"), ("fs.write", "~/share/mine/")):
        r = own(w, "ext", "allow", "x", key, value)
        w.equal(r.rc, 0, "%s %s is harmless" % (key, value), r)
        own(w, "ext", "revoke", "x", key, value)
    r = own(w, "ext", "allow", "y", "fs.read", "~/bin")
    with open(w.program, "rb") as f:
        want = len(f.read())
    c = play(w, "y", call("show", p=w.path("home/share/zotbox/x")))
    w.equal((r.rc, c.rc, want > 0), (0, 0, True), "and it starts with one", c)
    # One of its files is a link into what is granted.
    real = w.path("home/share/zotbox/policies/runtimes/python.json")
    shutil.move(real, w.path("home/data/python.json"))
    os.symlink("../../../../data/python.json", real)
    r = own(w, "ext", "allow", "x", "fs.write", "~/data")
    w.equal(r.rc, 3, "where a file of its own leads", r)
    w.contains(r.err, "data/python.json, which zotbox itself", "which one", r)
    os.rename(w.path("home/data/python.json"), real)
    # By another name it is the name that counts.
    os.symlink("../bin/zotbox", w.path("home/data/zb"))
    r = w.zotbox("ext", "allow", "x", "fs.write", "~/data",
                 executable=w.path("home/data/zb"))
    w.equal(r.rc, 0, "control: its name is not what it is called by", r)
    own(w, "ext", "revoke", "x", "fs.write", "~/data")
    p = w.spawn([w.path("home/data/zb"), "ext", "allow", "x", "fs.write",
                 "~/data"], stderr=subprocess.PIPE, text=True)
    err = p.communicate(timeout=30)[1]
    w.equal(p.returncode, 3, "started by that name", err)
    w.contains(err, "data/zb, which zotbox itself", "which one", err)


@test("a project that is its own is read, and not written to",
      needs=["sandbox", "linux"], seconds=120)
def project(w):
    layout(w)
    r = own(w, "ext", "allow", "x", "fs.write", "${project}")
    w.equal(r.rc, 0, "the project is granted", r)
    plain = w.path("project/new")
    w.equal(play(w, "x", put([plain, "1"])).result(), "wrote",
            "control: another project is written to")
    w.check(os.path.exists(plain), "control: on the host")
    for rel in ("bin", "libexec", "libexec/zotbox", "share",
                "share/zotbox/policies"):
        at = w.path("home/" + rel)
        w.write("home/%s/seen" % rel, "seen")
        before = sorted(os.listdir(at))
        c = play(w, "x", put([at + "/planted", "1"]),
                 call("show", p=at + "/seen"), cwd=at)
        w.equal((c.rc, c.result(n=0)), (0, "errno 30"),
                rel + ": not written to", c)
        w.equal(c.result(n=1), "seen", rel + ": read", c)
        w.contains(c.err, "is granted for reading only", rel + ": told", c)
        w.equal(sorted(os.listdir(at)), before, rel + ": is as it was")
    r = own(w, "ext", "logs", "x", "--denials")
    w.contains(r.out, "denied fs.create ~/bin/planted", "the ledger has it", r)
    w.contains(r.out, "cannot be granted: zotbox itself runs or reads what "
               "stands there\n", "and offers no command", r)


@test("a build tree", needs=["sandbox", "linux"], seconds=120)
def tree(w):
    w.mkext("x", BODY.replace("NAME", "x"))
    w.install("x")
    for value in (BUILD, os.path.join(BUILD, "tests"),
                  os.path.realpath(SRC + "/policies")):
        r = w.zotbox("ext", "allow", "x", "fs.write", value)
        w.equal(r.rc, 3, "not " + os.path.basename(value), r)
        w.contains(r.err, "install zotbox, and use the installed one",
                   "and what to do", r)


@test("a moved build tree says what to do", needs="linux")
def moved(w):
    at = w.path("moved/zotbox")
    os.makedirs(w.path("moved/pkgdata"))
    shutil.copy(BUILD + "/zotbox", at)
    shutil.copy(BUILD + "/config.status", w.path("moved/config.status"))
    shutil.copytree(os.path.join(SRC, "policies"),
                    w.path("moved/pkgdata/policies"))
    w.mkext("x", BODY.replace("NAME", "x"))
    r = w.zotbox("ext", "install", w.path("x"), executable=at)
    if r.rc == 0:
        w.skip("moved", "one is installed where this build looks")
        return
    w.equal(r.rc, 1, "it fails", r)
    for part in ("make install", BUILD, w.path("share/zotbox")):
        w.contains(r.err, part, "what is told", r)


main()
