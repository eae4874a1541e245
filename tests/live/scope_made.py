#!/usr/bin/env python3
"""A directory that a grant has made: "fs.write": ["${project}/out/"]. It is
there from the start on, holds what is written, and goes again if it is
empty and nobody else has it."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *

BODY = '''
    hello("m", "tools"); tool("t"); tool("wait"); ready()
    def t(f):
        try:
            if f["name"] == "wait":
                while not os.path.exists(os.path.expanduser("~/release")):
                    time.sleep(0.02)
                return text(f["id"], "waited")
            if "w" in f["args"]:
                with open(f["args"]["w"], "w") as o: o.write("made")
            text(f["id"], str(os.path.isdir(f["args"]["d"])))
        except OSError as e: text(f["id"], "errno %d" % e.errno)
    serve(tool_call=t)
'''
SCOPE = {"fs": {"write": ["${project}/out/"]}}


@test("made, used, kept if used", needs="sandbox", seconds=60)
def made(w):
    w.mkext("m", BODY)
    w.install("m", policy=None, scope=SCOPE)
    out = w.path("project/out")
    w.check(not os.path.exists(out), "an install makes nothing")
    for args in (["why", "m", "fs.create", out + "/x"],
                 ["scope", "m", "--effective"]):
        w.equal(w.zotbox("ext", *args).rc, 0, " ".join(args[:2]))
    w.check(not os.path.exists(out), "nor does a question")
    c = w.console("m", call("t", d=out))
    w.equal(c.result(), "True", "it is there inside", c)
    w.check(not os.path.exists(out), "and gone, since it was empty")
    c = w.console("m", call("t", d=out, w=out + "/f"))
    w.equal(c.result(), "True", "a file in it", c)
    with open(out + "/f") as f:
        w.equal(f.read(), "made", "is a file of the host, and stays")
    c = w.console("m", call("t", d=out, w=w.project + "/g"))
    w.equal(c.result(), "errno 30", "nothing beside it", c)
    c = w.console("m", call("t", d=out, w=out + "/.envrc"))
    w.equal(c.result(), "errno 13", "carve-outs hold in it", c)


@test("what was there stays", needs="sandbox", seconds=60)
def kept(w):
    w.mkext("m", BODY)
    w.install("m", policy=None, scope=SCOPE)
    out = w.path("project/out")
    os.mkdir(out)
    w.equal(w.console("m", call("t", d=out)).result(), "True", "used")
    w.check(os.path.isdir(out), "the user's own empty directory stays")
    os.rmdir(out)
    os.symlink(w.home, out)
    c = w.console("m", call("t", d=out))
    w.check(os.path.islink(out) and os.listdir(w.home) is not None,
            "a link is left alone")
    os.unlink(out)
    w.write("project/out", "x")
    c = w.console("m", call("t", d=out))
    w.check(os.path.isfile(out), "and so is a file", c)


@test("two at once", needs="sandbox", seconds=60)
def two(w):
    w.mkext("m", BODY)
    w.install("m", policy=None, scope=SCOPE)
    out = w.path("project/out")
    go = os.path.join(w.zot_home, "zotbox/m/home/release")
    p = w.spawn([ZOTBOX, "console", "m"], stdin=-1, stdout=-1, stderr=-2)
    p.stdin.write(b"call wait {}\ncall t {\"d\":\"%s\",\"w\":\"%s/late\"}\n" %
                  (out.encode(), out.encode()))
    p.stdin.flush()
    end = time.time() + 20
    while not os.path.exists(out) and time.time() < end:
        time.sleep(0.02)
    time.sleep(0.3)
    w.equal(w.console("m", call("t", d=out)).result(), "True", "the second")
    w.check(os.path.isdir(out), "its end leaves it to the first")
    open(go, "w").close()
    said = p.communicate(timeout=30)[0].decode()
    w.contains(said, "True", "which can still make files in it")
    w.check(os.path.exists(out + "/late"), "seen on the host", said)


@test("denied, or without a parent: nothing is made", needs="sandbox",
      seconds=60)
def none(w):
    w.mkext("m", BODY)
    w.install("m", policy=None, scope={"fs": {
        "write": ["${project}/out/", "${project}/a/b/"],
        "deny": ["${project}/out"]}})
    c = w.console("m", call("t", d=w.project + "/out"))
    w.equal(c.result(), "False", "a deny beats it", c)
    w.equal(os.listdir(w.project), [], "nothing on the host", c)


main()
