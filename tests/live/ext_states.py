#!/usr/bin/env python3
"""What happens to an installed extension: killed installs and removals, two at
once, remove, unwrap and repair, enable and disable, and code that is not what
was installed."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *
from zbverbs import *
from zbkill import *


def box(w, name, rel=""):
    return os.path.join(w.zot_home, "zotbox", name, rel)


def ext(w, name, rel=""):
    return os.path.join(w.zot_home, "extensions", name, rel)


@test("kill -9 while installing and removing", seconds=120)
def kill_random(w):
    d = hello(w, "k", files={"d%d/f%d" % (i, i): "x" * 5000
                             for i in range(40)})
    other = hello(w, "other")
    w.zotbox("ext", "install", other)
    bare = snapshot(w)
    args = ["ext", "install", d]
    secs = duration(w, args)
    full = snapshot(w)
    states = {"old": bare, "new": full}
    killed(w, args, secs, lambda: w.zotbox("ext", "remove", "k", "-y"),
           states, 1, 30)
    w.equal(w.zotbox("ext", "remove", "other", "-y").rc, 0, "others work on")
    w.zotbox("ext", "install", other)
    w.zotbox(*args)
    args = ["ext", "remove", "k", "-y"]
    secs = duration(w, args)
    killed(w, args, secs, lambda: w.zotbox("ext", "install", d), states, 2,
           30)


@test("kill -9 at each step", needs="strace", seconds=240)
def kill_each(w):
    if not strace_works(w):
        w.skip("", "strace does not work here")
        return
    d = hello(w, "k", files={"permissions.json": json.dumps(
        {"zotbox": 1, "env": {"pass": ["A"]}}), "sub/f": "x"})
    bare = snapshot(w)
    args = ["ext", "install", d, "--yes"]
    w.zotbox(*args)
    states = {"old": bare, "new": snapshot(w)}
    states["old"].update({k: v for k, v in states["new"].items()
                          if k in ("extensions", "zotbox")})
    for calls in CALLS:
        sweep(w, args, lambda: w.zotbox("ext", "remove", "k", "-y"), states,
              calls)
    for calls in CALLS[:2]:
        sweep(w, ["ext", "remove", "k", "-y"], lambda: w.zotbox(*args),
              states, calls)


@test("kill -9 while changing", needs=("strace", "sandbox"), seconds=120)
def kill_changes(w):
    if not strace_works(w):
        w.skip("", "strace does not work here")
        return
    hello(w, "k")
    w.install("k")
    on = snapshot(w)
    w.zotbox("ext", "disable", "k")
    off = snapshot(w)
    sweep(w, ["ext", "disable", "k"], lambda: w.zotbox("ext", "enable", "k"),
          {"old": on, "new": off}, CALLS[0])
    w.zotbox("ext", "enable", "k")
    w.zotbox("ext", "unwrap", "k")
    bare = snapshot(w)
    repair = ["ext", "doctor", "k", "--repair"]
    sweep(w, repair, lambda: w.zotbox("ext", "unwrap", "k"),
          {"old": bare, "new": on}, CALLS[0])
    w.zotbox("ext", "allow", "k", "env.pass", "X")
    more = snapshot(w)
    sweep(w, ["ext", "allow", "k", "env.pass", "X"],
          lambda: w.zotbox("ext", "revoke", "k", "env.pass", "X"),
          {"old": on, "new": more, "emptied": emptied(w)}, CALLS[0])
    w.equal(w.console("k", call("t")).result(), "pong", "it still starts")


def emptied(w):
    w.zotbox("ext", "revoke", "k", "env.pass", "X")
    return snapshot(w)


@test("kill -9 with left-overs at stake", needs="strace", seconds=240)
def kill_fresh(w):
    if not strace_works(w):
        w.skip("", "strace does not work here")
        return
    d = hello(w, "k")
    w.zotbox("ext", "install", d, "--policy", "standard")
    w.write("zot/zotbox/k/data/state", "kept")
    shutil.rmtree(ext(w, "k"))
    old = snapshot(w)
    shutil.copytree(box(w, "k"), w.path("saved"), symlinks=True)

    def make():
        for p in (ext(w, "k"), box(w, "k")):
            shutil.rmtree(p, ignore_errors=True)
        shutil.copytree(w.path("saved"), box(w, "k"), symlinks=True)
    w.zotbox("ext", "install", d, "--fresh")
    fresh = snapshot(w)
    for calls in CALLS[:2]:
        sweep(w, ["ext", "install", d, "--fresh"], make,
              {"old": old, "new": fresh}, calls)
    make()
    w.zotbox("ext", "install", d, "--adopt")
    adopted = snapshot(w)
    for calls in CALLS[:2]:
        sweep(w, ["ext", "install", d, "--adopt"], make,
              {"old": old, "new": adopted}, calls)


@test("signals while installing", seconds=60)
def signals(w):
    d = hello(w, "big")
    for i in range(60):
        w.write("big/f%d" % i, os.urandom(1 << 20))
    w.zotbox("ext", "install", hello(w, "other"))
    before = snapshot(w)
    secs = duration(w, ["ext", "install", d])
    w.zotbox("ext", "remove", "big", "-y")
    caught = {}
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) * 3:
        p = w.spawn([ZOTBOX, "ext", "install", d], stdin=subprocess.DEVNULL,
                    stderr=subprocess.PIPE)
        time.sleep(secs * random.Random(sig + len(caught)).uniform(0.1, 0.5))
        p.send_signal(sig)
        err = p.communicate(timeout=20)[1].decode()
        if p.returncode == 0:               # too late: it is installed
            w.zotbox("ext", "remove", "big", "-y")
            continue
        # Before the first line of main() nobody is there to catch it.
        caught[sig] = p.returncode
        ok = p.returncode in (128 + sig, -sig)
        if not ok or left(snapshot(w)) != left(before):
            w.equal(p.returncode, 128 + sig, "exit", err)
            same(w, left(before), left(snapshot(w)), "nothing is left", err)
    w.equal({s: rc for s, rc in caught.items() if rc != -s},
            {s: 128 + s for s, rc in caught.items() if rc != -s},
            "128 + the signal's number")
    w.check(caught, "at least one was caught")
    p = w.spawn(["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", ZOTBOX, "ext",
                 "install", d], stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
    time.sleep(secs * 0.3)
    p.send_signal(signal.SIGHUP)
    w.equal(p.wait(30), 0, "an ignored one stays ignored")


@test("two of one name at once", seconds=60)
def two(w):
    a, b = hello(w, "a", manifest={"name": "same"}), \
        hello(w, "b", manifest={"name": "same"})
    for i in range(8):
        ps = [w.spawn([ZOTBOX, "ext", "install", d], stderr=subprocess.PIPE,
                      stdin=subprocess.DEVNULL) for d in (a, b, a)]
        errs = [p.communicate(timeout=30)[1].decode() for p in ps]
        w.equal(sorted(p.returncode for p in ps), [0, 3, 3],
                "one wins, round %d" % i, *errs)
        w.equal(sum("installed already" in e for e in errs), 2,
                "the others are told", *errs)
        r = rows(w)["same"]
        w.equal((r["wrapped"], r["problem"]), (True, None), "it is whole")
        ps = [w.spawn([ZOTBOX, "ext", *c], stderr=subprocess.PIPE,
                      stdin=subprocess.DEVNULL)
              for c in (("remove", "same", "-y"), ("remove", "same", "-y"),
                        ("allow", "same", "env.pass", "X"))]
        for p in ps:
            p.communicate(timeout=30)
        w.check(all(p.returncode in (0, 3) for p in ps), "removed at once",
                [p.returncode for p in ps])
        w.equal([k for k in snapshot(w) if "same" in k], [],
                "nothing is left, round %d" % i)
    ds = [hello(w, "m%d" % i) for i in range(6)]
    ps = [w.spawn([ZOTBOX, "ext", "install", d], stderr=subprocess.PIPE,
                  stdin=subprocess.DEVNULL) for d in ds]
    for p in ps:
        err = p.communicate(timeout=30)[1].decode()
        w.equal(p.returncode, 0, "many at once", err)
    w.equal(sorted(os.listdir(box(w, ""))),
            sorted([".lock-m%d" % i for i in range(6)] +
                   ["m%d" % i for i in range(6)]), "no stage is left")


@test("remove", seconds=30)
def remove(w):
    hello(w, "rm")
    w.install("rm")
    w.write("zot/logs/ext-rm.log", "log\n")
    w.write("zot/logs/ext-rm.denials.jsonl", "")
    r = w.zotbox("ext", "remove", "rm")
    w.equal(r.rc, 2, "no terminal: exit 2", r)
    w.contains(r.err, "--yes")
    w.equal(list(rows(w)), ["rm"], "nothing was removed")
    os.chmod(ext(w, "rm"), 0o500)
    deep = w.path("zot/zotbox/rm/data" + "/d" * 100)
    os.makedirs(deep)
    os.chmod(deep, 0)
    os.symlink(w.home, w.path("zot/zotbox/rm/home/link"))
    w.write("home/precious", "x")
    r = w.zotbox("ext", "remove", "rm", "--yes")
    w.equal((r.rc, r.out), (0, ""), "removed", r)
    w.equal(sorted(snapshot(w)), ["extensions", "zotbox"], "all of it")
    w.check(os.path.exists(w.path("home/precious")), "no link is followed")
    w.equal(sorted(os.listdir(w.path("zot/logs"))),
            ["ext-rm.denials.jsonl", "ext-rm.log"], "the logs stay")
    w.equal(w.zotbox("ext", "remove", "rm", "-y").rc, 3, "not installed")
    for bad in (".", "..", "", "x."):
        w.equal(w.zotbox("ext", "remove", "-y", "--", bad).rc, 2,
                "name %r" % bad)
    for bad in ("../logs", "a/b", w.path("zot/logs"), w.path("zot"), "/", "./"):
        w.equal(w.zotbox("ext", "remove", "-y", "--", bad).rc, 3,
                "path %r: nothing is kept of it" % bad)
    w.equal(sorted(os.listdir(w.path("zot/logs"))),
            ["ext-rm.denials.jsonl", "ext-rm.log"], "and nothing goes")
    # By the manifest's name, also where the directory has another.
    hello(w, "nm2")
    shutil.copytree(w.path("nm2"), ext(w, "dirx"))
    hello(w, "lk")
    os.symlink(w.path("lk"), ext(w, "lk")[:-1])
    row = rows(w)["nm2"]
    w.equal((row["dir"], row["policy"]), (ext(w, "dirx")[:-1], "unconfined"),
            "a hand-made one is listed")
    w.equal(w.zotbox("ext", "remove", "nm2", "-y").rc, 0, "by its name")
    w.equal(w.zotbox("ext", "remove", "lk", "-y").rc, 0, "a link")
    w.equal(os.listdir(ext(w, "")), [], "both are gone")
    w.check(os.path.exists(w.path("lk/main.py")), "what it led to stays")


def boxes(w):
    top = os.path.join(w.zot_home, "zotbox")
    return sorted(os.listdir(top)) if os.path.isdir(top) else []


ASKED = (["why", 0, "fs.read", "/etc/passwd"],
         ["why", 3, "fs.read", "/nothing", "--policy", "standard"],
         ["scope", 0, "--effective", "--policy", "standard"],
         ["scope", 0, "--effective", "--json"])


@test("who asks about a path leaves nothing", needs="sandbox", seconds=120)
def asking(w):
    d = hello(w, "k")
    os.rmdir(w.zot_home)
    w.env["ZOT_HOME"] = w.path("none/zot")
    for verb, rc, *rest in ASKED:
        r = w.zotbox("ext", verb, d, *rest)
        w.equal(r.rc, rc, "ext %s %s" % (verb, " ".join(rest)), r)
        w.check(".stage-" not in r.out, "in the words of a start")
        w.check(not os.path.exists(w.path("none")), "leaves nothing")
    w.env["ZOT_HOME"] = w.zot_home
    shutil.copytree(d, os.path.join(w.zot_home, "extensions/k"))
    r = w.zotbox("ext", "doctor")
    w.contains(r.out, "start: ", "doctor starts an unwrapped one")
    w.equal(boxes(w), [], "and leaves no box")
    many = [w.spawn([ZOTBOX, "ext", "why", d, "fs.read", "/etc/passwd"],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    env=w.env) for _ in range(12)]
    w.equal({p.wait(60) for p in many}, {0}, "many at once")
    w.equal(boxes(w), [], "leave nothing")
    # Those that start it meanwhile keep what they have.
    askers = [w.spawn(["sh", "-c", 'i=0; while [ $i -lt 15 ]; do "$0" ext why '
                       '"$1" fs.read /etc/passwd || exit; i=$((i+1)); done',
                       ZOTBOX, d], stdout=subprocess.DEVNULL, env=w.env)
              for _ in range(2)]
    for _ in range(4):
        r = w.console(d, ["call t {}"])
        w.equal(r.rc, 0, "a start beside them", r)
    w.equal({p.wait(60) for p in askers}, {0}, "all had their answer")
    w.equal(len(boxes(w)), 1, "the box of what was run stays")
    w.zotbox("ext", "why", d, "fs.read", "/etc/passwd")
    w.equal(len(boxes(w)), 1, "and is not taken away by a question")


@test("remove what is run by its path", needs="sandbox", seconds=60)
def remove_path(w):
    d = hello(w, "k")
    r = w.zotbox("ext", "remove", d, "-y")
    w.equal(r.rc, 3, "nothing is kept of it", r)
    w.contains(r.err, "keeps nothing of " + d)
    w.console(d, ["call t {}"])
    top = os.path.join(w.zot_home, "zotbox")
    kept = boxes(w)
    w.equal(len(kept), 1, "a box")
    r = w.zotbox("ext", "remove", d)
    w.equal((r.rc, boxes(w)), (2, kept), "not without --yes")
    p = w.spawn([ZOTBOX, "console", d], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=w.env)
    p.stdin.write(b"call t {}\n")
    p.stdin.flush()
    p.stdout.readline()
    r = w.zotbox("ext", "remove", d, "-y")
    w.equal((r.rc, [b for b in boxes(w) if b[0] == "@"]), (3, kept),
            "nor while it runs", r)
    w.contains(r.err, "something runs in ")
    p.communicate(None, 20)
    r = w.zotbox("ext", "remove", d, "-y")
    w.equal((r.rc, os.listdir(top)), (0, []), "then it goes", r)
    w.contains(r.err, "removed %s/%s" % (top, kept[0]))
    w.check(os.path.exists(d + "/main.py"), "its files stay")
    w.console(d, ["call t {}"])
    r = w.zotbox("ext", "list")
    w.check("that is gone" not in r.err, "list: it is there", r)
    os.rename(d, d + "2")
    r = w.zotbox("ext", "list")
    w.contains(r.err, "run by a path that is gone, with home and data left "
               "here (zotbox ext remove PATH): " + d)
    r = w.zotbox("ext", "remove", d, "-y")
    w.equal((r.rc, os.listdir(top)), (0, []), "the path may be gone", r)


@test("a stranger in the place of what was installed")
def stranger(w):
    """A mark never deletes what only has the same name."""
    d = hello(w, "st")
    w.install("st")
    with open(box(w, "st", "staged"), "w") as f:
        f.write("12345 1.1\n")
    r = rows(w)["st"]
    w.equal((r["policy"], "not installed to the end" in r["problem"]),
            ("-", True), "listed with its reason", r)
    recover(w)
    w.check(not os.path.exists(box(w, "st")), "tidied up")
    w.check(os.path.exists(ext(w, "st", "main.py")),
            "but not a directory that was not meant")
    w.contains(rows(w)["st"]["problem"], "is gone", "which is said")
    w.equal(w.zotbox("ext", "install", d).rc, 3, "it is in the way")


@test("unwrap", seconds=30)
def unwrap(w):
    hello(w, "uw")
    with open(w.path("uw/extension.json"), "rb") as f:
        shipped = f.read()
    w.install("uw", "strict", {"env": {"pass": ["MINE"]}})
    hello(w, "uw2")
    w.install("uw2")
    r = w.zotbox("ext", "unwrap", "uw")
    w.equal((r.rc, r.out), (0, ""), "exit", r)
    w.contains(r.err, "WARNING: uw is no longer confined")
    with open(ext(w, "uw", "extension.json"), "rb") as f:
        w.equal(f.read(), shipped, "the shipped manifest, byte by byte")
    r = w.zotbox("ext", "list")
    w.contains(r.err, "unconfined, with all of your rights, outside zotbox: "
               "uw\n", "list says it", r)
    w.equal(rows(w)["uw"]["policy"], "unconfined", "in its row")
    w.equal(w.zotbox("ext", "unwrap", "uw").rc, 3, "once")
    os.chdir(ext(w, "uw"))
    r = w.zotbox("wrap", "uw", cwd=ext(w, "uw"))
    w.equal((r.rc, r.out), (3, ""), "wrap does not start it", r)
    w.contains(r.err, "unconfined")
    r = w.zotbox("ext", "doctor", "--repair", cwd=w.home)
    w.equal(rows(w)["uw"]["policy"], "unconfined",
            "repair without a name leaves it", r)
    r = w.zotbox("ext", "doctor", "uw", "--repair", cwd=w.home)
    w.contains(r.err, "repaired: uw", "with its name it does not", r)
    w.equal(rows(w)["uw"]["policy"], "strict+scope", "under its old scope")
    w.zotbox("ext", "disable", "uw")
    r = w.zotbox("ext", "unwrap", "--all")
    w.equal((r.rc, r.err.count("WARNING")), (0, 2), "--all", r)
    w.equal({n: (x["policy"], x["enabled"]) for n, x in rows(w).items()},
            {"uw": ("unconfined", False), "uw2": ("unconfined", True)},
            "and what was disabled stays so")
    w.equal(w.zotbox("ext", "unwrap", "--all").rc, 0, "nothing to do")
    for args in ([], ["uw", "--all"], ["uw", "uw2"]):
        w.equal(w.zotbox("ext", "unwrap", *args).rc, 2, repr(args))
    w.equal(w.zotbox("ext", "unwrap", "nobody").rc, 3, "nobody")


@test("zotbox has moved", seconds=60)
def moved(w):
    hello(w, "mv")
    hello(w, "mv2")
    w.install("mv")
    w.install("mv2")
    m = json.load(open(ext(w, "mv", "extension.json")))
    here = m["exec"]

    def point(name, to):
        with open(ext(w, name, "extension.json")) as f:
            text = f.read().replace(json.dumps(here), json.dumps(to))
        with open(ext(w, name, "extension.json"), "w") as f:
            f.write(text)
    point("mv", "/gone/zotbox")
    other = w.write("elsewhere/zotbox", "#!/bin/sh\n", 0o755)
    point("mv2", other)
    r = rows(w)
    w.contains(r["mv"]["problem"], "zotbox is no longer at /gone/zotbox")
    w.contains(r["mv2"]["problem"], other + " is not this zotbox")
    w.equal((r["mv"]["wrapped"], r["mv2"]["wrapped"], r["mv2"]["policy"]),
            (True, False, "unconfined"), "what is known of them")
    w.equal(w.zotbox("ext", "doctor").rc, 5, "doctor says 5")
    w.zotbox("ext", "disable", "mv2")
    r = w.zotbox("ext", "doctor", "--repair")
    w.equal(r.err.count("repaired:"), 2, "both are mended", r)
    r = rows(w)
    w.equal([(r[n]["problem"], r[n]["policy"], r[n]["enabled"])
             for n in ("mv", "mv2")],
            [(None, "strict", True), (None, "strict", False)], "both")
    point("mv", "/gone/zotbox")
    w.equal(w.zotbox("ext", "unwrap", "mv").rc, 0, "unwrap works on it too")


def wrap_refuses(w, name, *parts):
    r = w.zotbox("wrap", name, cwd=ext(w, name))
    w.equal((r.rc, r.out), (3, ""), "wrap: exit 3, nothing on stdout", r)
    for p in parts:
        w.contains(r.err, p, "wrap says: " + p)
    d = w.zotbox("ext", "doctor", name, "--json")
    w.equal(d.rc, 5, "doctor: exit 5", d)
    e = json.loads(d.out)["extensions"][0]
    w.equal(e["status"], "changed", "doctor: changed")
    for p in parts:
        w.contains("\n".join(e["errors"]), p, "doctor says: " + p)


@test("code that is not what was installed", needs="sandbox", seconds=120)
def integrity(w):
    d = hello(w, "in", files={"lib/a.py": "1", "lib/b.py": "2",
                              "data.txt": "x"})
    os.symlink("lib/a.py", w.path("in/link.py"))

    def fresh():
        w.zotbox("ext", "remove", "in", "-y")
        w.equal(w.zotbox("ext", "install", d).rc, 0, "installed anew")
        c = w.console("in", call("t"))
        w.equal(c.result(), "pong", "control: it starts", c)
    fresh()
    with open(ext(w, "in", "lib/a.py"), "a") as f:
        f.write("evil")
    w.write("zot/extensions/in/lib/c.py", "")
    os.unlink(ext(w, "in", "data.txt"))
    wrap_refuses(w, "in", "changed lib/a.py", "added lib/c.py",
                 "removed data.txt", "zotbox ext update in")
    fresh()
    os.unlink(ext(w, "in", "link.py"))
    os.symlink("lib/b.py", ext(w, "in", "link.py"))
    wrap_refuses(w, "in", "changed link.py")
    fresh()
    os.chmod(ext(w, "in", "lib/a.py"), 0o755)
    wrap_refuses(w, "in", "changed lib/a.py")
    fresh()
    w.write("zot/extensions/in/x\x1b[31m\ny", "")
    wrap_refuses(w, "in", "added x\\x1b[31m\\x0ay")
    fresh()
    with open(box(w, "in", "manifest.json"), "a") as f:
        f.write(" ")
    wrap_refuses(w, "in", "changed extension.json")
    fresh()
    for i in range(30):
        w.write("zot/extensions/in/%s%d" % ("n" * 200, i), "")
    wrap_refuses(w, "in", "added nnn", " more", "zotbox ext update in")
    fresh()
    # Times, and what zot's own enable and disable make of the manifest.
    for base, _, files in os.walk(ext(w, "in")):
        for n in files:
            os.utime(os.path.join(base, n), (1, 1), follow_symlinks=False)
    m = json.load(open(ext(w, "in", "extension.json")))
    for enabled in False, True:
        m["enabled"] = enabled
        with open(ext(w, "in", "extension.json"), "w") as f:
            f.write(json.dumps(dict(sorted(m.items(), reverse=True)),
                               indent=4))
        os.chmod(ext(w, "in", "extension.json"), 0o644)
    w.equal(w.console("in", call("t")).result(), "pong",
            "zot's own rewriting is fine")
    os.unlink(box(w, "in", "lock.json"))
    r = w.zotbox("wrap", "in", cwd=ext(w, "in"))
    w.equal((r.rc, r.out), (3, ""), "no lock: not started", r)


@test("who may be wrapped", seconds=60)
def who(w):
    hello(w, "wh")
    w.install("wh")
    here = ext(w, "wh").rstrip("/")
    for what, cwd in (("another directory", w.home), ("the project",
                                                      w.project)):
        r = w.zotbox("wrap", "wh", cwd=cwd)
        w.equal((r.rc, r.out), (3, ""), what + ": refused", r)
    local = w.path("project/.zot/extensions/wh")
    shutil.copytree(here, local)
    r = w.zotbox("wrap", "wh", cwd=local)
    w.equal((r.rc, r.out), (3, ""), "a project that says wrap: refused", r)
    got = {(e["scope"], e["wrapped"], e["policy"]) for e in json.loads(
        w.zotbox("ext", "list", "--json").out)["extensions"]}
    w.equal(got, {("project", False, "-"), ("global", True, "strict")},
            "nor does list take it for confined")
    w.write("project/.zot/extensions/wh/zotbox", "#!/bin/sh\n", 0o755)
    m = json.load(open(local + "/extension.json"))
    m["exec"] = local + "/zotbox"
    w.write("project/.zot/extensions/wh/extension.json", json.dumps(m))
    got = [e for e in json.loads(w.zotbox("ext", "list", "--json").out)
           ["extensions"] if e["scope"] == "project"]
    w.equal((got[0]["wrapped"], got[0]["policy"]), (False, "unconfined"),
            "nor a program that is only called zotbox", got)
    shutil.rmtree(w.path("project/.zot"))
    for name, rc in (("nobody", 3), ("../wh", 2), ("", 2), ("wh.", 2)):
        r = w.zotbox("wrap", "--", name, cwd=here)
        w.equal((r.rc, r.out), (rc, ""), "wrap %r" % name, r)
    os.rename(box(w, "wh", "scope.json"), w.path("scope"))
    r = w.zotbox("wrap", "wh", cwd=here)
    w.equal((r.rc, r.out), (3, ""), "no scope", r)
    w.contains(rows(w)["wh"]["problem"], "does not start")
    os.rename(w.path("scope"), box(w, "wh", "scope.json"))
    os.rename(here, here + "2")
    r = w.zotbox("wrap", "wh", cwd=here + "2")
    w.equal((r.rc, r.out), (3, ""), "moved away", r)
    w.contains(rows(w)["wh"]["problem"], "another name")
    os.symlink(here + "2", here)
    r = w.zotbox("wrap", "wh", cwd=here)
    w.equal((r.rc, r.out), (3, ""), "a link in its place", r)


@test("enable and disable", seconds=30)
def toggle(w):
    d = w.path("tg")
    hello(w, "tg")
    w.write("tg/extension.json", '{\r\n\t"zzz": 9007199254740993,  '
            '"name":"tg",\r\n "exec" : "./main.py", "enabled": true }', 0o600)
    w.equal(w.zotbox("ext", "install", d).rc, 0, "installed")
    forms = {"wrapped": None,
             "by hand": b'{\r\n\t"zzz": 9007199254740993,  "name":"%s",\r\n '
             b'"exec" : "./main.py", "x": {"b":1.10,"a":"\\u00e9"},\r\n '
             b'"enabled": true }',
             "without it": b'{\n  "name": "%s",\n  "exec": "./m"\n}\n',
             "short": b'{"name":"%s","exec":"./m"}',
             "first": b'{"enabled": true, "name": "%s", "exec": "./m"}',
             "tight": b'{"enabled":true,"name":"%s","exec":"./m"}',
             "null": b'{ "name": "%s", "exec": "./m" }'}
    for i, (what, text) in enumerate(forms.items()):
        name = "f%d" % i if text else "tg"
        path = ext(w, name, "extension.json")
        if text:
            w.write("zot/extensions/%s/extension.json" % name,
                    text % name.encode(), 0o600)
        with open(path, "rb") as f:
            before = f.read()
        for verb, on in (("enable", True), ("disable", False),
                         ("disable", False), ("enable", True)):
            r = w.zotbox("ext", verb, name)
            w.equal((r.rc, r.out), (0, ""), "%s: %s" % (what, verb), r)
            w.equal(rows(w)[name]["enabled"], on, "%s: is %s" % (what, on))
            with open(path, "rb") as f:
                w.check(before.count(b"9007199254740993") ==
                        f.read().count(b"9007199254740993"),
                        what + ": numbers are kept")
        with open(path, "rb") as f:
            w.equal(f.read(), before, what + ": back to the same bytes")
        w.equal(oct(os.stat(path).st_mode & 0o777), "0o600",
                what + ": and mode")
    for name, rc in (("nobody", 3), ("../x", 2)):
        w.equal(w.zotbox("ext", "enable", name).rc, rc, name)
    w.write("zot/extensions/bad/extension.json", "{")
    w.equal(w.zotbox("ext", "disable", "bad").rc, 2, "a broken manifest")
    w.equal([k for k in snapshot(w) if ".lock-f" in k], [],
            "no lock file is left where there is no box")


@test("a disabled one does not start", needs="sandbox")
def disabled(w):
    hello(w, "dis")
    w.install("dis")
    w.zotbox("ext", "disable", "dis")
    c = w.console([], "exts")
    w.check("dis" not in c.out, "not by console without names", c)
    d = json.loads(w.zotbox("ext", "doctor", "dis", "--json").out)
    w.equal(d["extensions"][0]["status"], "disabled", "doctor")


main()
