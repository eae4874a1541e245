#!/usr/bin/env python3
"""zotbox ext update: what is new is shown, asked about, tried, and takes the
place of the old whole or not at all."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *
from zbverbs import *
from zbkill import *

BODY = 'hello(%r, "tools"); tool("t"); ready(); ' \
       'serve(tool_call=lambda f: text(f["id"], %r))'


def ext(w, name, rel=""):
    return os.path.join(w.zot_home, "extensions", name, rel)


def box(w, name, rel=""):
    return os.path.join(w.zot_home, "zotbox", name, rel)


def read(path):
    with open(path) as f:
        return f.read()


def version(w, name, answer, **kw):
    shutil.rmtree(w.path(name), ignore_errors=True)
    return w.mkext(name, BODY % (name, answer), **kw)


def answers(w, name, want, what):
    c = w.console(name, call("t"))
    return w.equal((c.rc, c.result()), (0, want), what, c)


def refused(w, rc, what, *args, text=(), **kw):
    before = left(snapshot(w))
    r = w.zotbox("ext", "update", *args, **kw)
    w.equal(r.rc, rc, what + ": exit", r)
    for t in [text] if isinstance(text, str) else text:
        w.contains(r.err, t, what + ": says " + t, r)
    same(w, before, left(snapshot(w)), what + ": everything is as it was")
    return r


@test("from a path", needs="sandbox", seconds=120)
def from_path(w):
    asks = {"zotbox": 1, "env": {"pass": ["OLD", "BOTH"]}}
    version(w, "up", "one", files={
        "permissions.json": json.dumps(asks), "gone.txt": "1\n2\n",
        "sub/kept.py": "x\n", "bin": "a\0b"})
    w.install("up", "strict", {"env": {"pass": ["MINE"]}})
    w.write("zot/zotbox/up/data/state", "kept")
    w.write("zot/zotbox/up/home/.cfg", "kept")
    answers(w, "up", "one", "control")
    before = left(snapshot(w))
    r = w.zotbox("ext", "update", "up")
    w.equal(r.rc, 0, "unchanged: exit", r)
    w.contains(r.err, "up is unchanged where it came from", "says so")
    same(w, before, left(snapshot(w)), "unchanged: nothing is touched")

    asks["env"]["pass"] = ["BOTH", "NEW"]
    version(w, "up", "two", files={
        "permissions.json": json.dumps(asks), "sub/kept.py": "x\n",
        "new/x\x1b[31m.py": "1\n2\n3\n", "bin": "a\0bcd"})
    os.chmod(w.path("up/sub/kept.py"), 0o755)
    r = refused(w, 2, "no terminal, no --yes", "up", text=[
        "from %s: 4 files changed, 1 added, 1 removed" % w.path("up"),
        "changed main.py: 1 line new, 1 gone", "removed gone.txt",
        "changed sub/kept.py; may be executed now",
        "changed bin: 5 bytes, before 3",
        "added new/x\\x1b[31m.py: 3 lines", "--yes",
        "does not ask any more for: env.pass OLD",
        "asks for what it did not ask for before", "[env.pass NEW]"])
    w.check("[env.pass BOTH]" not in r.err, "what it asked for already is "
            "no news", r)
    w.check("\x1b" not in r.err, "names are escaped")
    scope = read(box(w, "up", "scope.json"))
    r = w.zotbox("ext", "update", "up", "--yes")
    w.equal((r.rc, r.out), (0, ""), "--yes: exit", r)
    w.equal(read(box(w, "up", "scope.json")), scope,
            "--yes takes the code and grants nothing")
    w.equal([o[3:] for o in offers(r.err)], [["env.pass", "NEW"]],
            "what is new is offered as a command", r)
    answers(w, "up", "two", "the new code runs")
    w.equal((read(box(w, "up", "data/state")), read(box(w, "up",
            "home/.cfg"))), ("kept", "kept"), "data and home are kept")
    w.check(not os.path.exists(ext(w, "up", "gone.txt")), "old files go")
    w.equal(w.zotbox("ext", "list").rc, 0, "and it is listed")
    w.equal([n for n in os.listdir(box(w, "")) if n.startswith(".stage")],
            [], "no stage is left")
    w.check(not os.path.exists(box(w, "up", "swap")), "nor a journal")


@test("what was granted and is not asked for any more is told, and stays",
      needs="sandbox", seconds=60)
def kept(w):
    asks = {"zotbox": 1, "env": {"pass": ["ONE", "TWO", "THREE"]},
            "fs": {"exec": ["sh"]}}
    version(w, "kp", "one", files={"permissions.json": json.dumps(asks)})
    w.equal(w.zotbox("ext", "install", w.path("kp")).rc, 0, "installed")
    for args in (["env.pass", "ONE", "TWO", "MINE"], ["fs.exec", "sh"]):
        w.zotbox("ext", "allow", "kp", *args)
    scope = read(box(w, "kp", "scope.json"))
    asks = {"zotbox": 1, "env": {"pass": ["ONE"]}}
    version(w, "kp", "two", files={"permissions.json": json.dumps(asks)})
    r = w.zotbox("ext", "update", "kp", "--yes")
    w.equal(r.rc, 0, "updated", r)
    w.contains(r.err, "does not ask any more for: env.pass THREE\n")
    for key, value in ("env.pass", "TWO"), ("fs.exec", "sh"):
        w.contains(r.err, "it does not ask any more for %s %s, which stays "
                   "granted; to take it back: zotbox ext revoke kp %s %s\n" %
                   (key, value, key, value))
    w.equal(r.err.count("stays granted"), 2, "nothing else", r)
    w.equal(read(box(w, "kp", "scope.json")), scope, "the scope is kept")
    w.equal(w.zotbox("ext", "revoke", "kp", "env.pass", "TWO").rc, 0,
            "as it is copied")
    w.check("TWO" not in read(box(w, "kp", "scope.json")), "taken back")
    r = w.zotbox("ext", "update", "kp", "--yes")
    w.check("any more" not in r.err, "told once", r)


@test("the question", needs="sandbox", seconds=120)
def question(w):
    asks = {"zotbox": 1, "env": {"pass": ["NEW"]}}
    for answer, rc, code, granted in (
            ([b"n\n"], 3, "one", {}), ([b"\n"], 3, "one", {}),
            ([b"\x03"], 130, "one", {}), ([b"y\n", b"n\n"], 0, "two", {}),
            ([b"y\n", b"y\n"], 0, "two", {"env": {"pass": ["NEW"]}})):
        version(w, "qu", "one")
        w.install("qu")
        before = left(snapshot(w))
        version(w, "qu", "two", files={"permissions.json": json.dumps(asks)})
        got, out = on_terminal(w, ["ext", "update", "qu"], *answer)
        what = repr(answer)
        w.equal(got, rc, what + ": exit", out)
        if rc:
            same(w, before, left(snapshot(w)), what + ": as it was", out)
        w.equal(json.loads(read(box(w, "qu", "scope.json"))),
                dict({"zotbox": 1, "extends": "strict"}, **granted),
                what + ": granted is what was said", out)
        answers(w, "qu", code, what + ": the code")
        w.zotbox("ext", "remove", "qu", "-y")


@test("Ctrl-C at any moment of the question", needs="sandbox", seconds=120)
def heard(w):
    """It may come after the question is shown and before the answer is waited
    for: about one in sixty does."""
    version(w, "qu", "one")
    w.install("qu")
    version(w, "qu", "two", files={"permissions.json": json.dumps(
        {"zotbox": 1, "env": {"pass": ["NEW"]}})})
    got = [on_terminal(w, ["ext", "update", "qu"], b"\x03", seconds=5)[0]
           for _ in range(120)]
    w.equal(got, [130] * 120, "ended each time")


@test("from git, with a ref", needs=("git", "sandbox"), seconds=120)
def from_git(w):
    version(w, "gi", "one")
    first = repo(w, "gi")
    url = "file://" + w.path("gi")
    git(w, "branch", "stable", cwd=w.path("gi"))
    git(w, "tag", "v1", cwd=w.path("gi"))
    for ref in ("", "#stable", "#v1"):
        r = w.zotbox("ext", "install", url + ref)
        w.equal(r.rc, 0, "install " + ref, r)
        lock = json.loads(read(box(w, "gi", "lock.json")))
        w.equal((lock["source"], lock["commit"]), (url + ref, first),
                "the lock has the ref and the commit")
        if ref != "#v1":
            w.zotbox("ext", "remove", "gi", "-y")
    with open(w.path("gi/main.py"), "a") as f:
        f.write("# more\n")
    git(w, "commit", "-q", "-a", "-m", "y", cwd=w.path("gi"))
    second = git(w, "rev-parse", "HEAD", cwd=w.path("gi")).strip()
    r = w.zotbox("ext", "update", "gi", "-y")
    w.equal(r.rc, 0, "a tag", r)
    w.contains(r.err, "unchanged where it came from, commit " + first[:12],
               "stays where it is")
    w.zotbox("ext", "remove", "gi", "-y")
    w.equal(w.zotbox("ext", "install", url + "#stable").rc, 0, "a branch")
    git(w, "branch", "-f", "stable", cwd=w.path("gi"))
    r = w.zotbox("ext", "update", "gi", "-y")
    w.equal(r.rc, 0, "that goes on", r)
    w.contains(r.err, "commit %s (was %s)" % (second[:12], first[:12]))
    w.contains(r.err, "changed main.py: 1 line new, 0 gone")
    w.equal(json.loads(read(box(w, "gi", "lock.json")))["commit"], second,
            "the lock has the new commit")
    answers(w, "gi", "one", "it runs")
    w.zotbox("ext", "remove", "gi", "-y")
    before = left(snapshot(w))
    for ref, rc in (("#none", 1), ("#", 2), ("#-x", 2), ("#a b", 2),
                    ("#a..b", 2), ("#--upload-pack=touch x", 2),
                    ("#a\nb", 2), ("#" + "a" * 300, 2)):
        r = w.zotbox("ext", "install", url + ref)
        w.equal(r.rc, rc, "ref %r" % ref, r)
    same(w, before, left(snapshot(w)), "nothing is left of those")
    shutil.rmtree(w.path("gi/.git"))
    os.rename(w.path("gi"), w.path("gi#1"))
    r = w.zotbox("ext", "install", w.path("gi#1"))
    w.equal(r.rc, 0, "a path with # in it is a path", r)


@test("what is not taken", needs="sandbox", seconds=120)
def not_taken(w):
    version(w, "no", "one")
    w.install("no", "strict", {"env": {"pass": ["MINE"]}})
    for what, rc, text, make in (
            ("another name", 3, 'has the extension "other" now',
             lambda: version(w, "no", "two", manifest={"name": "other"})),
            ("a bad manifest", 2, "extension.json",
             lambda: w.write("no/extension.json", "{")),
            ("no manifest", 2, "lacks extension.json",
             lambda: os.unlink(w.path("no/extension.json"))),
            ("a link that leaves", 3, "points outside the extension",
             lambda: os.symlink("/etc/passwd", w.path("no/k"))),
            ("no program", 2, "./none",
             lambda: version(w, "no", "", manifest={"exec": "./none"})),
            ("its source is gone", 2, w.path("no"),
             lambda: shutil.rmtree(w.path("no")))):
        version(w, "no", "two")
        make()
        refused(w, rc, what, "no", "--yes", text=text)
    answers(w, "no", "one", "the old one runs")
    refused(w, 3, "not installed", "nobody", text="nobody")
    refused(w, 2, "no name", "../x")
    bare = version(w, "bare", "x")
    shutil.copytree(bare, ext(w, "bare"))
    refused(w, 3, "not installed by zotbox", "bare", "-y",
            text="was not installed by zotbox")
    version(w, "un", "one")
    w.install("un")
    w.zotbox("ext", "unwrap", "un")
    version(w, "un", "two")
    refused(w, 3, "unwrapped", "un", "-y", text="--repair")
    version(w, "no", "one")
    r = refused(w, 3, "one of many", "-y", text="un was not updated")
    w.check("bare" not in r.err, "only what zotbox installed", r)


@test("changed by hand, disabled, a theme", needs="sandbox", seconds=120)
def others(w):
    version(w, "ha", "one")
    w.install("ha")
    with open(ext(w, "ha", "main.py"), "a") as f:
        f.write("# by hand\n")
    c = w.console("ha", call("t"))
    w.equal(c.rc, 3, "changed by hand: does not start", c)
    w.contains(c.err, "zotbox ext update ha", "and says the way out")
    r = w.zotbox("ext", "update", "ha", "-y")
    w.equal(r.rc, 0, "which works", r)
    w.contains(r.err, "changed after they were installed; those changes go")
    w.contains(r.err, "changed main.py: 0 lines new, 1 gone")
    answers(w, "ha", "one", "it starts again")
    w.zotbox("ext", "disable", "ha")
    version(w, "ha", "two")
    w.equal(w.zotbox("ext", "update", "ha", "-y").rc, 0, "a disabled one")
    w.equal(rows(w)["ha"]["enabled"], False, "stays disabled")
    w.write("th/extension.json", '{"name":"th"}')
    w.write("th/theme.json", "{}")
    w.zotbox("ext", "install", w.path("th"))
    w.write("th/theme.json", '{"x":1}')
    r = w.zotbox("ext", "update", "--yes")
    w.equal(r.rc, 0, "all", r)
    w.contains(r.err, "updated th", "a theme as well")
    w.contains(r.err, "ha is unchanged", "and the other is named")
    w.equal(read(ext(w, "th", "theme.json")), '{"x":1}', "the theme")


@test("while it runs", needs="sandbox", seconds=60)
def running(w):
    version(w, "ru", "one")
    w.install("ru")
    version(w, "ru", "two")
    host = w.wrap("ru")
    host.handshake()
    host.until("ready")

    def ask(i):
        host.send({"type": "tool_call", "id": i, "name": "t", "args": {}})
        return host.until("tool_result")["content"][0]["text"]
    w.equal(ask("1"), "one", "before")
    r = w.zotbox("ext", "update", "ru", "-y")
    w.equal(r.rc, 0, "updated meanwhile", r)
    w.contains(r.err, "from its next start on", "says from when on")
    w.equal(ask("2"), "one", "what runs goes on")
    w.equal(host.shutdown(), 0, "and ends as it should")
    answers(w, "ru", "two", "the next start has the new code")


@test("killed in the middle: a start alone puts it right", seconds=240,
      needs=("sandbox", "strace"))
def start_settles(w):
    if not strace_works(w):
        w.skip("", "strace does not work here")
        return
    version(w, "st", "one")
    w.install("st")
    version(w, "st", "two", files={"more.py": ""})
    seen = []
    shutil.copytree(w.zot_home, w.path("saved"), symlinks=True)
    for at in range(1, 100):
        p = subprocess.run(
            ["strace", "-qq", "-o", "/dev/null", "-e", "inject=rename,"
             "renameat,renameat2:signal=KILL:when=%d+" % at, ZOTBOX, "ext",
             "update", "st", "-y"], env=w.env, cwd=w.project,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=60)
        if p.returncode == 0:
            break
        if not os.path.exists(box(w, "st", "swap")):
            continue
        c = w.console("st", call("t"))
        w.equal((c.rc, c.result()), (0, "one"),
                "killed at rename %d: starts as it was" % at, c)
        w.check(not os.path.exists(box(w, "st", "swap")), "no journal then")
        seen.append(at)
        shutil.rmtree(w.zot_home)
        shutil.copytree(w.path("saved"), w.zot_home, symlinks=True)
    w.check(len(seen) >= 4, "some were killed with a journal", seen)
    answers(w, "st", "two", "and one got through")


main()
