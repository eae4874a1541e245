#!/usr/bin/env python3
"""zotbox ext trust and untrust: what a project brings along starts only as it
was approved, wherever it is started from."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *
from zbverbs import *

MARK = '''
    hello(%r, "tools"); tool("t"); ready()
    serve(tool_call=lambda f: text(f["id"], %r))
'''


def local(w, name, answer="one", **kw):
    """An extension of the project; its directory."""
    src = w.mkext(name, MARK % (name, answer), **kw)
    d = w.path("project/.zot/extensions/" + name)
    os.makedirs(os.path.dirname(d), exist_ok=True)
    shutil.move(src, d)
    return d


def starts(w, d, want="one", what="it starts", **kw):
    c = w.console(d, call("t"), **kw)
    return w.equal((c.rc, c.result()), (0, want), what, c)


def refused(w, d, *words, what="", **kw):
    c = w.console(d, call("t"), **kw)
    w.equal((c.rc, c.result(), c.of("hello")), (3, None, []),
            what + ": does not start", c)
    for word in words:
        w.contains(c.err, word, what + ": says " + word, c)
    return c


@test("not before it is trusted, and only as it was", needs="sandbox",
      seconds=120)
def as_it_was(w):
    d = local(w, "pl", files={"sub/lib.py": "x = 1\n"})
    plain = w.path("elsewhere")
    shutil.copytree(d, plain)
    starts(w, plain, what="control: the same files outside a .zot/extensions")
    command = "zotbox ext trust " + d
    for spelled, cwd in ((d, None), (".zot/extensions/pl", None),
                         ("../extensions/pl", os.path.dirname(d)), ("../pl/", d),
                         (d + "/../pl", None)):
        refused(w, spelled, "is not trusted", "zotbox ext trust ",
                what="untrusted, as " + spelled, cwd=cwd)
    c = refused(w, d, command, what="with the command")
    row = rows(w, cwd=w.project)["pl"]
    w.equal((row["scope"], row["policy"]), ("project", "unconfined"),
            "list: zot would still run it")
    w.contains(row["problem"], command, "list names the command")
    r = w.zotbox("ext", "doctor", "--json", cwd=w.project)
    e = {x["name"]: x for x in json.loads(r.out)["extensions"]}["pl"]
    w.equal((r.rc, e["status"], e["tools"], e["start_ms"]),
            (0, "unconfined", [], None), "doctor does not start it", r)
    w.contains("\n".join(e["warnings"]), command, "and says why")

    r = w.zotbox("ext", "trust", d)
    w.equal(r.rc, 2, "no terminal, no --yes", r)
    w.contains(r.err, "--yes", "says what to say")
    refused(w, d, what="asked and not answered")
    r = w.zotbox("ext", "trust", d, "--yes")
    w.equal((r.rc, r.out), (0, ""), "trusted", r)
    w.contains(r.err, "4 files", "says how much that is", r)
    w.contains(r.err, "starts ./main.py", "and what it starts", r)
    for spelled, cwd in ((d, None), (".zot/extensions/pl", None),
                         ("../extensions/pl", os.path.dirname(d))):
        starts(w, spelled, what="trusted, as " + spelled, cwd=cwd)
    w.equal(rows(w, cwd=w.project)["pl"]["problem"], None, "no problem")
    r = w.zotbox("ext", "doctor", "--json", cwd=w.project)
    e = {x["name"]: x for x in json.loads(r.out)["extensions"]}["pl"]
    w.equal([t["name"] for t in e["tools"]], ["t"], "doctor starts it now", r)
    r = w.zotbox("ext", "trust", d)
    w.equal(r.rc, 0, "again: nothing to ask", r)
    w.contains(r.err, "is trusted as it is")

    def change(path, text=None, mode=None):
        p = os.path.join(d, path)
        os.makedirs(os.path.dirname(p), exist_ok=True)
        if text is not None:
            with open(p, "a") as f:
                f.write(text)
        if mode is not None:
            os.chmod(p, mode)
    keep = w.path("keep")
    shutil.copytree(d, keep, symlinks=True)
    for what, word, act in (
            ("one byte", "changed main.py",
             lambda: change("main.py", "\n")),
            ("a library", "changed sub/lib.py",
             lambda: change("sub/lib.py", "x = 2\n")),
            ("the manifest", "changed extension.json",
             lambda: change("extension.json", " ")),
            ("a new file", "added sub/json.py",
             lambda: change("sub/json.py", "")),
            ("below .git", "added .git/hooks/x",
             lambda: change(".git/hooks/x", "x")),
            ("what it asks for", "added permissions.json",
             lambda: change("permissions.json", '{"zotbox":1}')),
            ("what may be executed", "changed sub/lib.py",
             lambda: change("sub/lib.py", mode=0o755)),
            ("one less", "removed h.py",
             lambda: os.unlink(os.path.join(d, "h.py"))),
            ("a link for a file", "changed h.py",
             lambda: (os.rename(os.path.join(d, "h.py"), w.path("h2")),
                      os.symlink(w.path("h2"), os.path.join(d, "h.py"))))):
        act()
        refused(w, d, "was changed since it was trusted", word, command,
                what=what)
        w.contains(rows(w, cwd=w.project)["pl"]["problem"],
                   "was changed since it was trusted", what + ": list")
        shutil.rmtree(d)
        shutil.copytree(keep, d, symlinks=True)
    starts(w, d, what="as it was again: trusted again")
    change("main.py", "# two\n")
    r = w.zotbox("ext", "trust", d, "--yes")
    w.equal(r.rc, 0, "the change is trusted", r)
    w.contains(r.err, "changed main.py", "and was named")
    starts(w, d, what="and starts")
    r = w.zotbox("ext", "untrust", d)
    w.equal(r.rc, 0, "untrust", r)
    refused(w, d, "is not trusted", what="untrusted again")
    w.equal(w.zotbox("ext", "untrust", d).rc, 3, "once")


@test("trust is for one path, and goes with it", needs="sandbox", seconds=60)
def one_path(w):
    d = local(w, "mv")
    w.equal(w.zotbox("ext", "trust", d, "--yes").rc, 0, "trusted")
    other = w.path("other/.zot/extensions/mv")
    os.makedirs(os.path.dirname(other))
    shutil.copytree(d, other)
    refused(w, other, "is not trusted", what="a copy in another project")
    link = w.path("third/.zot/extensions/mv")
    os.makedirs(os.path.dirname(link))
    os.symlink(d, link)
    starts(w, link, what="a link to it is what it leads to")
    os.unlink(link)
    os.symlink(w.mkext("away", MARK % ("away", "one")), link)
    refused(w, link, "is not trusted", what="a link to somewhere else")
    shutil.rmtree(d)
    w.equal(w.zotbox("ext", "untrust", d).rc, 0,
            "trust can be taken from what is gone")
    # $ZOT_HOME may itself be called .zot
    home = {"ZOT_HOME": w.path("home/.zot")}
    w.mkext("in", MARK % ("in", "one"))
    w.equal(w.zotbox("ext", "install", w.path("in"), env=home).rc, 0,
            "installed below a .zot")
    starts(w, "in", what="what is installed needs no trust", env=home)


@test("what cannot be trusted", seconds=60)
def cannot(w):
    d = local(w, "no")
    for what, rc, act, word in (
            ("a link that leaves it", 3, lambda: os.symlink(
                "../../../evil.py", d + "/l"), "points outside"),
            ("an absolute one", 3, lambda: os.symlink(
                w.path("project/x"), d + "/l"), "points outside"),
            ("a FIFO", 3, lambda: os.mkfifo(d + "/l"), "neither a file"),
            ("a socket", 3, lambda: os.mknod(d + "/l", 0o140600),
             "neither a file"),
            ("a file of 9 GiB without content", 1, lambda: os.truncate(
                d + "/l" if not open(d + "/l", "w").close() else "", 9 << 30),
             "has more than"),
            ("a bad manifest", 2, lambda: open(
                d + "/extension.json", "w").write("{"), "extension.json"),
            ("no manifest", 2, lambda: os.unlink(d + "/extension.json"),
             "is missing"),
            ("one that starts zotbox", 3, lambda: open(
                d + "/extension.json", "w").write(json.dumps({
                    "name": "no", "exec": ZOTBOX, "args": ["wrap", "no"]})),
             "starts zotbox itself")):
        shutil.copytree(d, w.path("keep"))
        before = snapshot(w)
        act()
        r = w.zotbox("ext", "trust", d, "--yes")
        w.equal(r.rc, rc, what, r)
        w.contains(r.err, word, what + ": says so", r)
        same(w, before, snapshot(w), what + ": nothing is left")
        shutil.rmtree(d)
        shutil.move(w.path("keep"), d)
    r = w.zotbox("ext", "trust", w.mkext("out", MARK % ("out", "")), "-y")
    w.equal(r.rc, 3, "what lies in no project", r)
    w.contains(r.err, "zotbox ext install", "says what to do instead")
    w.equal(w.zotbox("ext", "trust", w.path("none"), "-y").rc, 2, "no such")
    w.equal(w.zotbox("ext", "trust", d, "-y", "--policy", "strictt").rc, 2,
            "no such policy")
    w.equal(w.zotbox("ext", "untrust", d).rc, 3, "none of that trusted it")


@test("what trusted ones may do", needs="sandbox", seconds=60)
def scopes(w):
    d = local(w, "sc")
    with open(d + "/main.py", "w") as f:
        f.write('#!%s\nfrom h import *\nhello("sc", "tools"); tool("t")\n'
                'ready()\nserve(tool_call=lambda f: text(f["id"], '
                'os.environ.get("MINE", "withheld")))\n' % PYTHON)
    w.env["MINE"] = "given"
    w.equal(w.zotbox("ext", "trust", d, "-y").rc, 0, "trusted")
    starts(w, d, "withheld", "strict, if nothing is said")
    base = w.write("own.json", json.dumps(
        {"zotbox": 1, "extends": "strict", "env": {"pass": ["MINE"]}}))
    r = w.zotbox("ext", "trust", d, "-y", "--policy", base)
    w.equal(r.rc, 0, "another policy", r)
    starts(w, d, "given", "is what it starts with")
    with open(d + "/note", "w") as f:
        f.write("x")
    w.equal(w.zotbox("ext", "trust", d, "-y").rc, 0, "a change is trusted")
    starts(w, d, "given", "the scope stays")
    w.zotbox("ext", "untrust", d)
    w.equal(w.zotbox("ext", "trust", d, "-y").rc, 0, "once more")
    starts(w, d, "withheld", "untrust took what was granted")


@test("what it asks for, and whether it would start", seconds=60)
def ahead(w):
    d = local(w, "ah", files={"permissions.json": json.dumps(
        {"zotbox": 1, "fs": {"read": ["~"]}, "env": {"pass": ["A"]}})})
    r = w.zotbox("ext", "trust", d, "-y")
    w.equal(r.rc, 0, "trusted", r)
    w.contains(r.err, "asks for 2 things that its policy does not grant")
    w.contains(r.err, "your whole home directory", "in words")
    w.contains(r.err, "--policy FILE", "and how to grant")
    os.unlink(d + "/main.py")
    r = w.zotbox("ext", "trust", d, "-y")
    w.equal(r.rc, 0, "one without its program", r)
    w.contains(r.err, "as it is, it does not start: ", "says so")


@test("the question", seconds=60)
def question(w):
    d = local(w, "qu", manifest={"args": ["\x1b[31mx"]})
    for answer, rc in ((b"n\n", 3), (b"\n", 3), (b"y\n", 0)):
        got, out = on_terminal(w, ["ext", "trust", d], answer)
        w.equal(got, rc, "%r" % answer, out)
        w.check("\x1b" not in out, "what the manifest says is escaped")


@test("the files are changed while they are looked at", needs="sandbox",
      seconds=60)
def meanwhile(w):
    """What was shown is what is approved, not what is there by then."""
    d = local(w, "mw")

    def change():
        with open(d + "/main.py", "a") as f:
            f.write("# evil\n")
    rc, out = on_terminal(w, ["ext", "trust", d], b"y\n", meanwhile=change)
    w.equal(rc, 0, "trusted", out)
    refused(w, d, "changed main.py", what="the other file")


@test("links on the way to it", needs="sandbox", seconds=120)
def linked(w):
    for name, link, to, real in (
            ("inner", ".zot/extensions", "../tools", "project/tools"),
            ("outer", ".zot", "conf", "project/conf/extensions")):
        src = w.mkext(name, MARK % (name, "one"))
        os.makedirs(w.path(real))
        shutil.move(src, w.path(real))
        zot = os.path.join(w.project, ".zot")
        if link != ".zot":
            os.mkdir(zot)
        os.symlink(to, os.path.join(w.project, link))
        for spelled in (zot + "/extensions/" + name,
                        ".zot/extensions/%s/" % name):
            refused(w, spelled, "is not trusted", what=link + ": " + spelled,
                    cwd=w.project)
        r = w.zotbox("ext", "trust", ".zot/extensions/" + name, "--yes")
        w.equal(r.rc, 0, link + ": it can be trusted", r)
        starts(w, zot + "/extensions/" + name, what=link + ": and starts then")
        if link == ".zot":
            os.unlink(zot)
        else:
            shutil.rmtree(zot)


main()
