#!/usr/bin/env python3
"""A grant leads where it led when it was given: a link that another extension
puts in its place is refused at the next start, one that the user has there
works, and one command accepts a new place."""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *

READER = '''
    hello("reader", "tools"); tool("show"); ready()
    def show(f):
        try: text(f["id"], open(f["args"]["p"]).read())
        except OSError as e: text(f["id"], "errno %d" % e.errno)
    serve(tool_call=show)
'''
PLANTER = '''
    import shutil
    hello("planter", "tools"); tool("plant"); ready()
    def plant(f):
        p, to = f["args"]["p"], f["args"]["to"]
        try:
            if os.path.isdir(p) and not os.path.islink(p): shutil.rmtree(p)
            elif os.path.lexists(p): os.unlink(p)
            if to: os.symlink(to, p)
            text(f["id"], "planted")
        except OSError as e: text(f["id"], "errno %d" % e.errno)
    serve(tool_call=plant)
'''


def granted(w, name="reader"):
    at = os.path.join(w.zot_home, "zotbox", name, "granted.json")
    if not os.path.exists(at):
        return None
    with open(at) as f:
        return {p["path"]: p["real"] for p in json.load(f)["paths"]}


def world(w, **fs):
    """HOME with a secret and notes; reader has @fs, planter may write ~/notes
    and nothing else."""
    w.secret = w.write("home/.ssh/id", "KEY")
    w.today = w.write("home/notes/today/a.txt", "milk")
    w.mkext("reader", READER)
    w.mkext("planter", PLANTER)
    w.install("planter", scope={"fs": {"write": ["~/notes"]}})
    if fs:
        w.install("reader", scope={"fs": fs})
    return os.path.join(w.home, "notes", "today")


def reads(w, path):
    c = w.console("reader", call("show", p=path))
    return c.rc, c.result(), c


def plant(w, path, to):
    c = w.console("planter", call("plant", p=path, to=to))
    w.equal(c.result(), "planted", "planted in the planter's own sandbox", c)


def refused(w, path, secret, what, *words):
    rc, got, c = reads(w, path)
    w.equal((rc, got, c.of("hello")), (3, None, []), what, c)
    for word in words:
        w.contains(c.err, word, "%s: says %s" % (what, word), c)
    w.check(secret not in c.out, what + ": nothing of it is shown", c)


@test("a directory that was granted becomes a link", needs="sandbox",
      seconds=120)
def redirected(w):
    today = world(w, read=["~/notes/today"])
    w.equal(granted(w), {"~/notes/today": "~/notes/today"},
            "the install keeps where it leads")
    w.equal(reads(w, today + "/a.txt")[:2], (0, "milk"),
            "control: what was granted is read")
    w.equal(reads(w, w.secret)[:2], (0, "errno 2"),
            "control: the secret is hidden")
    # Without what is kept, the link would be followed: it is that which stops
    # it, and the sandbox can show the secret.
    at = os.path.join(w.zot_home, "zotbox/reader/granted.json")
    os.rename(at, at + ".aside")
    plant(w, today, "../.ssh")
    w.equal(reads(w, today + "/id")[:2], (0, "KEY"),
            "control: granted as it is now, it would be read")
    os.rename(at + ".aside", at)
    refused(w, today + "/id", "KEY", "the attempt",
            "fs.read", "~/notes/today", "~/.ssh", "through the link",
            "another extension",
            "zotbox ext allow reader fs.read ~/notes/today")
    p = w.wrap("reader")
    p.p.stdin.close()
    w.equal(p.wait(), 3, "wrap does not start it either")

    r = w.zotbox("ext", "scope", "reader", "--effective")
    w.equal(r.rc, 3, "ext scope --effective: refused", r)
    w.contains(r.err, "led to ~/notes/today", "and says why", r)
    r = w.zotbox("ext", "doctor", "reader", "--json")
    row = [e for e in json.loads(r.out)["extensions"]
           if e["name"] == "reader"][0]
    w.equal((r.rc, row["status"]), (5, "error"), "doctor has a problem", r)
    w.contains("\n".join(row["errors"]), "led to ~/notes/today",
               "and says which", r)
    r = w.zotbox("check", os.path.join(w.zot_home,
                                       "zotbox/reader/scope.json"))
    w.contains(r.out + r.err, "led to ~/notes/today", "check says it", r)
    r = w.zotbox("ext", "allow", "reader", "fs.read", "~/.config")
    w.equal(r.rc, 3, "another grant does not accept it", r)
    w.contains(r.err, "~/notes/today", "and says which one is wrong", r)
    refused(w, today + "/id", "KEY", "still")

    r = w.zotbox("ext", "allow", "reader", "fs.read", today)
    w.equal(r.rc, 0, "the user says it again, as a shell spells it", r)
    w.equal(reads(w, today + "/id")[:2], (0, "KEY"), "then it is read")
    os.unlink(today)
    os.mkdir(today)
    w.write("home/notes/today/a.txt", "tea")
    w.equal(reads(w, today + "/a.txt")[:2], (0, "tea"),
            "a directory of that name needs no word")


@test("what was not there when it was granted", needs="sandbox", seconds=120)
def later(w):
    today = world(w, read=["~/notes/later", "~/notes/file", "~/notes/planted"])
    w.zotbox("ext", "list")
    later, file = (os.path.join(w.home, "notes", n) for n in ("later", "file"))
    w.equal(reads(w, later + "/x")[:2], (0, "errno 2"), "nothing is there")
    w.write("home/notes/later/x", "now")
    w.write("home/notes/file", "one")
    w.equal(reads(w, later + "/x")[:2], (0, "now"), "a directory made later")
    w.equal(reads(w, file)[:2], (0, "one"), "a file made later")
    planted = os.path.join(w.home, "notes", "planted")
    plant(w, planted, "../.ssh")
    refused(w, planted + "/id", "KEY", "a link made later", "~/notes/planted")


@test("for writing, executing and denying too", needs="sandbox", seconds=180)
def others(w):
    today = world(w)
    tool = w.write("home/notes/tool", "#!/bin/sh\necho notes\n", 0o755)
    w.write("home/private/tool", "#!/bin/sh\necho private\n", 0o755)
    w.write("home/vault/key", "VAULT")
    w.write("home/notes/vault/x", "x")
    for key, value, to in (("write", "~/notes/today", "../.ssh"),
                           ("exec", "~/notes/tool", "../private/tool"),
                           ("read", "~/notes/today/*.txt", "../.ssh")):
        w.install("reader", scope={"fs": {key: [value]}})
        path = os.path.expanduser(value).replace(os.path.expanduser("~"),
                                                 w.home).replace("/*.txt", "")
        w.equal(reads(w, today + "/a.txt")[0], 0, "control: starts, " + key)
        kept = path + ".kept"
        shutil.move(path, kept)
        plant(w, path, to)
        refused(w, w.secret, "KEY", "fs.%s %s" % (key, value), value)
        os.unlink(path)
        shutil.move(kept, path)
        w.equal(reads(w, today + "/a.txt")[0], 0, "as it was: starts, " + key)
        w.zotbox("ext", "remove", "reader", "--yes")
    # What a deny covered must stay covered, however its name is redirected.
    os.rename(today + "/../vault", today + "/../vault.own")
    os.symlink("../vault", os.path.join(w.home, "notes/vault"))
    w.install("reader", scope={"fs": {"read": ["~/notes", "~/vault"],
                                      "deny": ["~/notes/vault"]}})
    key = os.path.join(w.home, "vault/key")
    w.equal(reads(w, key)[:2], (0, "errno 2"), "control: denied by the link")
    plant(w, os.path.join(w.home, "notes/vault"), None)
    both = "zotbox ext allow reader fs.deny ~/vault ~/notes/vault"
    refused(w, key, "VAULT", "the link of a deny is gone", "fs.deny",
            "led to ~/vault when it was denied", both,
            "leaves the old one open: zotbox ext allow reader fs.deny "
            "~/notes/vault\n")
    r = w.zotbox(*both.split()[1:])
    w.equal(r.rc, 0, "the first that is offered", r)
    w.equal(reads(w, key)[:2], (0, "errno 2"), "keeps the old place denied")
    w.zotbox("ext", "revoke", "reader", "fs.deny", "~/vault")
    os.symlink("../vault", os.path.join(w.home, "notes/vault"))
    r = w.zotbox("ext", "allow", "reader", "fs.deny", "~/notes/vault")
    w.equal(reads(w, key)[:2], (0, "errno 2"), "control: by the link again", r)
    plant(w, os.path.join(w.home, "notes/vault"), None)
    r = w.zotbox("ext", "allow", "reader", "fs.deny", "~/notes/vault")
    w.equal(r.rc, 0, "the user says it again", r)
    w.contains(r.err, "denies now where it leads today, no more where it led "
               "before", "and is told", r)
    w.equal(reads(w, key)[:2], (0, "VAULT"), "then it is as he says")


@test("programs that a pattern finds", needs="sandbox", seconds=120)
def programs(w):
    world(w)
    w.write("home/notes/bin/one", "#!/bin/sh\necho one\n", 0o755)
    w.write("home/private/tool", "#!/bin/sh\necho SECRET\n", 0o755)
    tool = os.path.join(w.home, "notes/bin/two")
    os.symlink("one", tool)
    w.install("reader", scope={"fs": {"exec": ["~/notes/bin/*"]}})
    w.equal(reads(w, tool)[:2], (0, "#!/bin/sh\necho one\n"),
            "control: a link that was there")
    new = os.path.join(w.home, "notes/bin/new")
    plant(w, new, "../../private/tool")
    rc, got, c = reads(w, new)
    w.equal((rc, got), (0, "errno 2"), "a new link is left out", c)
    w.equal(reads(w, os.path.join(w.home, "private/tool"))[:2],
            (0, "errno 2"), "what it leads to too")
    w.contains(c.err, "~/notes/bin/new", "and that is said", c)
    w.equal(reads(w, tool)[1], "#!/bin/sh\necho one\n", "the others stay")
    r = w.zotbox("ext", "allow", "reader", "fs.exec", "~/notes/bin/*")
    w.equal(r.rc, 0, "the user says it again", r)
    w.equal(reads(w, new)[:2], (0, "#!/bin/sh\necho SECRET\n"),
            "then it is granted")


@test("links that the user has", needs="sandbox", seconds=120)
def dotfiles(w):
    w.write("home/dotfiles/config/app/rc", "rc")
    os.symlink("dotfiles/config", os.path.join(w.home, ".config"))
    world(w, read=["~/.config/app"])
    rc = os.path.join(w.home, ".config/app/rc")
    for i in range(2):
        w.equal(reads(w, rc)[:2], (0, "rc"), "start %d through it" % (i + 1))
    w.equal(granted(w), {"~/.config/app": "~/dotfiles/config/app"},
            "where it leads is kept")
    # He moves them: one message, one command.
    os.rename(os.path.join(w.home, "dotfiles"), os.path.join(w.home, "dots"))
    os.unlink(os.path.join(w.home, ".config"))
    os.symlink("dots/config", os.path.join(w.home, ".config"))
    refused(w, rc, "rc", "moved", "zotbox ext allow reader fs.read "
            "~/.config/app")
    r = w.zotbox("ext", "allow", "reader", "fs.read", "~/.config/app")
    w.equal(r.rc, 0, "said again", r)
    w.contains(r.err, "where it leads today", "and answered", r)
    w.equal(reads(w, rc)[:2], (0, "rc"), "starts")
    # HOME is moved as a whole: nobody is asked.
    old = w.home
    w.home = w.path("home2")
    os.rename(old, w.home)
    w.env["HOME"] = w.home
    w.equal(reads(w, os.path.join(w.home, ".config/app/rc"))[:2], (0, "rc"),
            "another HOME")


@test("a scope written by hand", needs="sandbox", seconds=120)
def by_hand(w):
    today = world(w, read=[])
    w.equal(granted(w), None, "nothing granted, nothing kept")
    at = os.path.join(w.zot_home, "zotbox/reader/scope.json")
    with open(at, "w") as f:
        json.dump({"zotbox": 1, "fs": {"read": [
            "~/notes/today", "${project}"]}}, f)
    w.equal(reads(w, today + "/a.txt")[:2], (0, "milk"), "the first start")
    w.equal(granted(w), {"~/notes/today": "~/notes/today"},
            "keeps where it leads, and nothing of the project")
    w.write("p2/x", "second")
    c = w.console("reader", call("show", p=w.path("p2/x")), cwd=w.path("p2"))
    w.equal((c.rc, c.result()), (0, "second"), "another project", c)
    plant(w, today, "../.ssh")
    refused(w, today + "/id", "KEY", "a later link")
    r = w.zotbox("ext", "revoke", "reader", "fs.read", "~/notes/today")
    w.equal(r.rc, 0, "taking it back works", r)
    w.equal(reads(w, w.secret)[:2], (0, "errno 2"), "and it starts")
    with open(os.path.join(w.zot_home, "zotbox/reader/granted.json"),
              "w") as f:
        f.write("{")
    refused(w, w.secret, "KEY", "a record that cannot be read",
            "granted.json", "remove that file")


@test("asked for, and granted by an update", needs="sandbox", seconds=120)
def update(w):
    today = world(w)
    w.install("reader")
    w.write("reader/permissions.json", json.dumps(
        {"zotbox": 1, "fs": {"read": ["~/notes/today"]}}))
    r = w.zotbox("ext", "update", "reader", "--yes")
    w.equal(r.rc, 0, "updated", r)
    w.equal(granted(w), None, "an update alone grants nothing")
    r = w.zotbox("ext", "allow", "reader", "fs.read", "~/notes/today")
    w.equal((r.rc, granted(w)), (0, {"~/notes/today": "~/notes/today"}),
            "allow keeps where it leads", r)
    w.write("reader/more", "more")
    r = w.zotbox("ext", "update", "reader", "--yes")
    w.equal((r.rc, granted(w)), (0, {"~/notes/today": "~/notes/today"}),
            "and an update keeps that", r)
    plant(w, today, "../.ssh")
    refused(w, today + "/id", "KEY", "after it")
    w.write("reader/more", "yet more")
    r = w.zotbox("ext", "update", "reader", "--yes")
    refused(w, today + "/id", "KEY", "no update accepts it")
    w.zotbox("ext", "remove", "reader", "--yes")
    os.unlink(today)
    w.write("home/notes/today/a.txt", "milk")
    r = w.zotbox("ext", "install", w.path("reader"), "--policy", "standard",
                 "--yes")
    w.equal((r.rc, granted(w)), (0, {"~/notes/today": "~/notes/today"}),
            "an install that grants what is asked for keeps it", r)


main()
