#!/usr/bin/env python3
"""What zotbox shows: list, doctor and logs, as text and as JSON; help and
usage."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *
from zbverbs import *

ROW = ["name", "scope", "version", "enabled", "language", "description",
       "dir", "wrapped", "policy", "problem"]
HELP = ("ext list", "ext install", "ext remove", "ext unwrap", "ext enable",
        "ext disable", "ext logs", "ext doctor", "ext allow", "ext revoke",
        "wrap", "console", "version", "help")


def strange(w):
    """Every kind of entry that is no good extension."""
    top = os.path.join(w.zot_home, "extensions")
    hello(w, "src")
    for d in "empty", "bad", "noread":
        os.makedirs(os.path.join(top, d))
    os.symlink(w.path("src"), os.path.join(top, "lk"))
    os.symlink("/none", os.path.join(top, "broken"))
    os.symlink("self", os.path.join(top, "self"))
    w.write("zot/extensions/file", "x")
    w.write("zot/extensions/bad/extension.json", "{")
    w.write("zot/extensions/folds/extension.json",
            '{"name":"folds","exec":"./a","Exec":"./b"}')
    os.mkfifo(os.path.join(top, "fifo"))
    os.makedirs(os.path.join(top, "dirman/extension.json"))
    os.chmod(os.path.join(top, "noread"), 0)
    w.write("zot/extensions/x\x1b[31m\ny/z", "")
    w.write("zot/extensions/dirx/extension.json",
            '{"name":"nm2","exec":"./a","version":"1\\u001b[2J"}')
    w.write("zot/extensions/th/extension.json", '{"name":"th"}')
    w.write("zot/extensions/th/theme.json", '{}')
    w.write("project/.zot/extensions/dirx/extension.json",
            '{"name":"nm2","exec":"./a"}')
    w.write("project/.zot/extensions/loose/extension.json",
            '{"name":"loose","exec":"./a"}')


REASONS = {"empty": "missing extension.json", "bad": "parse manifest: 1:2:",
           "broken": "broken link", "self": "broken link",
           "file": "not a directory", "fifo": "not a directory",
           "dirman": "read manifest: ", "folds": "", "noread": "not readable",
           "x\x1b[31m\ny": "missing extension.json"}


@test("list: an empty one")
def empty(w):
    r = w.zotbox("ext", "list")
    w.equal((r.rc, r.out), (0, ""), "nothing on stdout", r)
    w.contains(r.err, "no extensions installed")
    w.equal(json.loads(w.zotbox("ext", "list", "--json").out),
            {"v": 1, "extensions": []}, "JSON")
    w.equal(os.listdir(w.zot_home), [], "and nothing is made by it")
    w.write("project/.zot", "a file")
    w.equal(w.zotbox("ext", "list").rc, 0, "a project with a file .zot")


@test("list: the columns")
def columns(w):
    hello(w, "one", manifest={"language": "python", "description": "d"})
    w.install("one", "strict", {"env": {"pass": ["X"]}})
    w.zotbox("ext", "disable", "one")
    w.write("zot/extensions/two/extension.json",
            '{"name":"two","exec":"./a"}')
    r = w.zotbox("ext", "list")
    form = "%-12s  %-20s  %-10s  %-8s  %-10s  %-14s  %s"
    top = w.zot_home + "/extensions/"
    w.equal(r.out.splitlines(), [
        form % ("scope", "name", "version", "enabled", "language", "policy",
                "dir"),
        form % ("global", "one", "1.0.0", "no", "python", "strict+scope",
                top + "one"),
        form % ("global", "two", "-", "yes", "-", "unconfined",
                top + "two")], "zot's, with the policy before the directory")
    w.equal(r.err, "zotbox: unconfined, with all of your rights, outside "
            "zotbox: two\n", "what is unconfined is said")
    d = json.loads(w.zotbox("ext", "list", "--json").out)
    w.equal((list(d), d["v"]), (["v", "extensions"], 1), "JSON")
    w.equal(d["extensions"][0], {
        "name": "one", "scope": "global", "version": "1.0.0",
        "enabled": False, "language": "python", "description": "d",
        "dir": top + "one", "wrapped": True, "policy": "strict+scope",
        "problem": None}, "a row")
    w.equal(d["extensions"][1]["description"], None, "absent is null")
    w.equal([list(e) for e in d["extensions"]], [ROW] * 2, "the keys")


@test("list: what does not start, since it is not what it was")
def not_what_it_was(w):
    hello(w, "one")
    w.install("one")
    hello(w, "two")
    w.install("two")
    w.write("zot/extensions/one/main.py", "other")
    os.remove(os.path.join(w.zot_home, "zotbox/two/lock.json"))
    local = w.path("project/.zot/extensions/")
    for name in "new", "mine", "was":
        w.write(local + name + "/extension.json",
                '{"name":"%s","exec":"./a"}' % name)
        w.write(local + name + "/a", "x", 0o755)
    for name in "mine", "was":
        r = w.zotbox("ext", "trust", local + name, "--yes")
        w.equal(r.rc, 0, "trust " + name, r)
    w.write(local + "was/a", "y", 0o755)
    r = w.zotbox("ext", "list")
    w.equal(r.rc, 0, "works", r)
    line = {x.split()[1]: x for x in r.out.splitlines()}
    for name, words in (
            ("one", "(changed since it was installed, does not start: "
             "zotbox ext update one)"),
            ("two", "(does not start: open "),
            ("new", "(not trusted, does not start in zotbox)"),
            ("mine", "(trusted in zotbox)"),
            ("was", "(changed since it was trusted, does not start in "
             "zotbox)")):
        w.contains(line[name], words, name)
    d = json.loads(w.zotbox("ext", "list", "--json").out)
    by = {e["name"]: e["problem"] for e in d["extensions"]}
    w.equal({n: bool(p) for n, p in by.items()},
            {"one": True, "two": True, "new": True, "mine": False,
             "was": True}, "JSON")


@test("list: nothing is skipped", needs="linux")
def skipped(w):
    strange(w)
    r = w.zotbox("ext", "list")
    w.equal(r.rc, 0, "exit", r)
    w.check("\x1b" not in r.out + r.err, "no raw escape")
    d = json.loads(w.zotbox("ext", "list", "--json").out)
    by = {(e["scope"], os.path.basename(e["dir"])): e for e in
          d["extensions"]}
    names = os.listdir(os.path.join(w.zot_home, "extensions"))
    w.equal(sorted(n for s, n in by if s == "global"), sorted(names),
            "a row for each entry")
    w.equal(len(r.out.splitlines()), 1 + len(by), "and a line")
    for name, reason in REASONS.items():
        e = by["global", name]
        if name == "noread" and os.geteuid() == 0:
            reason = "missing extension.json"
        w.contains(e["problem"], reason, repr(name) + ": " + reason)
        w.equal(e["wrapped"], False, repr(name) + ": not wrapped")
    w.equal(by["global", "folds"]["policy"], "unconfined",
            "zot would start what we refuse to read")
    w.contains(r.out, "(link -> %s)" % w.path("src"), "a link is shown")
    w.equal(by["global", "lk"]["name"], "src", "and followed")
    w.contains(r.out, "dirx (another of this name comes first)",
               "shadowed by the project's")
    w.equal(by["global", "th"]["policy"], "-", "a theme starts nothing")
    m = re.search("outside zotbox: (.*)", r.err)
    w.equal(set(m[1].split(", ")), {"nm2", "loose", "bad", "folds", "src",
                                    "dirman"},
            "all that may start unconfined is named")
    os.chmod(os.path.join(w.zot_home, "extensions/noread"), 0o755)
    os.chmod(w.path("project/.zot/extensions"), 0)
    r = w.zotbox("ext", "list")
    os.chmod(w.path("project/.zot/extensions"), 0o755)
    w.equal(r.rc, 0, "a project's that cannot be read is no end of it", r)
    if os.geteuid():
        w.contains(r.out, "(not readable: ", "but a row")


EXT_KEYS = ROW + ["status", "exec", "log", "commands", "tools", "warnings",
                  "errors", "requested_not_granted", "denials", "enforced_by",
                  "start_ms"]


@test("doctor: JSON as it is written down", needs="sandbox", seconds=60)
def doctor_json(w):
    w.mkext("doc", '''
        hello("doc", "tools", "commands"); tool("t"); tool("read"); cmd("c")
        cmd("help"); ready()
        serve(tool_call=lambda f: text(f["id"], str(os.path.exists(
            os.path.expanduser("~/.ssh/id")))))
    ''', files={"permissions.json": json.dumps(
        {"zotbox": 1, "fs": {"read": ["~/.ssh/id"]}})},
        manifest={"version": "2"})
    w.write("home/.ssh/id", "KEY")
    w.install("doc")
    w.mkext("second", '''
        hello("second", "commands"); cmd("C"); ready(); serve()
    ''')
    w.install("second")
    w.console("doc", call("t"))
    r = w.zotbox("ext", "doctor", "--json")
    w.equal(r.rc, 0, "denials and warnings are no problem", r)
    d = json.loads(r.out)
    w.equal(list(d), ["v", "host", "extensions"], "the top")
    w.equal((list(d["host"]), d["host"]["ok"], d["host"]["missing"]),
            (["ok", "missing", "blind_spots"], True, []), "the host")
    w.check(all(isinstance(s, str) for s in d["host"]["blind_spots"]) and
            d["host"]["blind_spots"], "its blind spots")
    e, second = d["extensions"]
    w.equal([list(x) for x in d["extensions"]], [EXT_KEYS] * 2,
            "the keys of an extension")
    w.equal([e[k] for k in ("name", "version", "wrapped", "policy", "status")],
            ["doc", "2", True, "strict", e["status"]], "its row")
    w.contains(e["exec"], "./main.py -> ", "what it really starts")
    w.equal(e["log"], w.zot_home + "/logs/ext-doc.log", "its log")
    w.equal(e["commands"], [{"name": "c", "state": "active", "by": None},
                            {"name": "help", "state": "shadowed",
                             "by": "zot"}], "commands")
    w.equal([t["name"] for t in e["tools"] if t["state"] == "active"], ["t"],
            "tools")
    w.equal(second["commands"], [{"name": "C", "state": "shadowed",
                                  "by": "doc"}], "who shadows it")
    w.equal(e["requested_not_granted"], [{"key": "fs.read",
                                          "value": "~/.ssh/id"}], "requests")
    w.check(e["denials"] and all(
        x["v"] == 1 and x["ext"] == "doc" for x in e["denials"]),
        "denials of the last session", e["denials"])
    w.check(e["enforced_by"] and all(list(x) == ["rule", "by"] for x in
                                     e["enforced_by"]), "enforced by")
    w.check(isinstance(e["start_ms"], int), "how long the start took")
    again = json.loads(w.zotbox("ext", "doctor", "doc", "--json").out)
    w.equal([x["session"] for x in again["extensions"][0]["denials"]],
            [x["session"] for x in e["denials"]],
            "its own start is no session")
    r = w.zotbox("ext", "doctor", "doc")
    for part in ("zotbox extension doctor\n\nhost: ok\n",
                 "doc [global] ", "  version: 2\n", "  exec: ./main.py -> ",
                 "  log: ", "  commands:\n    /c (active)\n"
                 "    /help (shadowed by zot)\n", "  tools:\n",
                 "  enforced by:\n", "to allow: zotbox ext allow doc fs.read "
                 "~/.ssh/id\n", "denied in the last session"):
        w.contains(r.out, part, repr(part))
    w.check("second [" not in r.out, "only the one that is named")


@test("doctor: states and exit codes", needs="sandbox", seconds=60)
def doctor_states(w):
    w.equal(w.zotbox("ext", "doctor").rc, 0, "nothing installed")
    hello(w, "ok")
    w.install("ok")
    w.equal(w.zotbox("ext", "doctor").rc, 0, "one that is fine")
    w.zotbox("ext", "disable", "ok")
    w.write("th/extension.json", '{"name":"th"}')
    w.write("th/theme.json", '{}')
    w.zotbox("ext", "install", w.path("th"))
    hello(w, "bare")
    subprocess.run(["cp", "-r", w.path("bare"), w.zot_home + "/extensions"],
                   check=True)
    subprocess.run(["mkdir", "-p", w.path("project/.zot")], check=True)
    subprocess.run(["cp", "-r", w.zot_home + "/extensions",
                    w.path("project/.zot/extensions")], check=True)
    subprocess.run(["rm", "-r", w.path("project/.zot/extensions/th"),
                    w.path("project/.zot/extensions/ok")], check=True)
    r = w.zotbox("ext", "doctor", "--json")
    got = {(e["scope"], e["name"]): e["status"]
           for e in json.loads(r.out)["extensions"]}
    w.equal((r.rc, got), (0, {
        ("project", "bare"): "unconfined", ("global", "bare"): "shadowed",
        ("global", "ok"): "disabled", ("global", "th"): "theme-only"}),
        "unconfined, shadowed, disabled, theme-only", r)
    r = w.zotbox("ext", "doctor")
    for part in ("note: disabled in extension.json",
                 "note: skipped because a higher-priority extension directory "
                 "with this name wins", "type: theme-only",
                 "warning: unconfined: zot starts it with all of your rights"):
        w.contains(r.out, part)
    r = w.zotbox("ext", "doctor", "bare", "--json")
    w.equal(len(json.loads(r.out)["extensions"]), 2,
            "a name means all that have it", r)
    w.mkext("dead", "sys.exit(23)")
    w.install("dead")
    r = w.zotbox("ext", "doctor", "--json")
    e = {e["name"]: e for e in json.loads(r.out)["extensions"]}["dead"]
    w.equal((r.rc, e["status"], e["start_ms"]), (5, "not loaded", None),
            "one that ends", r)
    w.contains("\n".join(e["errors"]), "23", "says how")
    w.zotbox("ext", "remove", "dead", "-y")
    for name in ("nobody",), ("ok", "nobody"):
        w.equal(w.zotbox("ext", "doctor", *name).rc, 3, repr(name))
        r = w.zotbox("ext", "doctor", *name, "--repair")
        w.equal((r.rc, r.out), (3, ""), "repair of %r" % (name,), r)
    r = w.zotbox("ext", "doctor", "bare", "--repair")
    w.equal((r.rc, r.out), (3, ""), "repair of what zotbox did not install",
            r)
    w.contains(r.err, "bare was not installed by zotbox")
    w.equal(w.zotbox("ext", "doctor", "../x").rc, 2, "no name")
    w.equal(w.zotbox("ext", "doctor", "ok", "ok").rc, 0, "twice the same")


@test("doctor: nothing is said twice", needs="sandbox")
def doctor_once(w):
    hello(w, "k")
    w.install("k", "standard")
    w.zotbox("ext", "allow", "k", "fs.read", "~/none")
    for cwd in w.project, w.home:
        r = w.zotbox("ext", "doctor", "k", cwd=cwd)
        said = [line.split(": ", 1)[1] for line in r.out.splitlines()
                if line.startswith(("  note: ", "  warning: "))]
        w.check(any("does not exist" in s for s in said), "it is said", r)
        w.equal(len(said), len(set(said)), "once")
        j = json.loads(w.zotbox("ext", "doctor", "k", "--json", cwd=cwd).out)
        warnings = j["extensions"][0]["warnings"]
        w.equal(len(warnings), len(set(warnings)), "in JSON too")
    r = w.zotbox("ext", "install", w.path("k"), "--policy", "standard")
    w.check("${project}" not in r.err, "an install has no project", r)


@test("doctor: every strange entry", needs="sandbox", seconds=60)
def doctor_strange(w):
    strange(w)
    subprocess.run(["rm", "-r", w.path("project/.zot")], check=True)
    r = w.zotbox("ext", "doctor", "--json")
    w.equal(r.rc, 5, "exit 5", r)
    by = {os.path.basename(e["dir"]): e for e in
          json.loads(r.out)["extensions"]}
    w.equal(sorted(by), sorted(os.listdir(w.zot_home + "/extensions")),
            "a row for each")
    for name in REASONS:
        w.equal((by[name]["status"], by[name]["errors"]),
                ("error", [by[name]["problem"]]), repr(name))
    t = w.zotbox("ext", "doctor")
    w.check("\x1b" not in t.out + t.err, "no raw escape in the text")


@test("logs: the text", seconds=60)
def logs_text(w):
    r = w.zotbox("ext", "logs", "nobody")
    w.equal((r.rc, r.out), (3, ""), "of nobody", r)
    w.contains(r.err, "zotbox ext list")
    hello(w, "new")
    w.install("new")
    r = w.zotbox("ext", "logs", "new")
    w.equal((r.rc, r.out), (0, ""), "of one that never ran", r)
    w.contains(r.err, "new has no log yet: it was never started")
    r = w.zotbox("ext", "logs", "new", "--since", "10s")
    w.equal((r.rc, r.out), (2, ""), "a time that is none", r)
    w.contains(r.err, "10m, 2h, 3d")
    w.equal(w.zotbox("ext", "logs", "../x").rc, 2, "no name")
    path = w.write("zot/logs/ext-x.log", b"plain\n\x1b[31mred\x07\n"
                   b"\xff\xe2\x80\xae|\t\xc3\xa4\nno end")
    r = w.zotbox("ext", "logs", "x")
    w.equal((r.rc, r.out), (0, "plain\n\\u{1b}[31mred\\u{7}\n"
                            "\\xff\\u{202e}|\tä\nno end"),
            "all of it, and nothing acts on a terminal", r)
    w.write("zot/logs/ext-x.log", b"a" * 3000000)
    w.equal(len(w.zotbox("ext", "logs", "x").out), 3000000, "one long line")
    os.unlink(path)
    os.mkfifo(path)
    w.check(w.zotbox("ext", "logs", "x", timeout=10).rc is not None,
            "a FIFO does not stop it")


class Follow:
    """A command that goes on printing."""
    def __init__(self, w, *args):
        self.p = w.spawn([ZOTBOX, *args], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.text = ""

    def until(self, part, timeout=10):
        end = time.time() + timeout
        while part not in self.text and time.time() < end:
            if select.select([self.p.stdout], [], [], 0.1)[0]:
                more = os.read(self.p.stdout.fileno(), 65536)
                if not more:
                    break
                self.text += more.decode("utf-8", "backslashreplace")
        return part in self.text

    def stop(self):
        self.p.send_signal(signal.SIGINT)
        return self.p.wait(10)


@test("logs -f", seconds=60)
def logs_follow(w):
    path = w.write("zot/logs/ext-x.log", "one\n")

    def add(text, mode="a"):
        with open(path, mode) as f:
            f.write(text)
    f = Follow(w, "ext", "logs", "x", "-f")
    w.check(f.until("one\n"), "what is there")
    add("two\nthr")
    w.check(f.until("two\n"), "what comes")
    w.check("thr" not in f.text, "whole lines")
    add("ee\n")
    w.check(f.until("three\n"), "when they are whole")
    add("new\n", "w")
    w.check(f.until("new\n"), "after it was cut")
    os.rename(path, path + ".1")
    time.sleep(0.5)
    add("next\n", "w")
    w.check(f.until("next\n"), "after it was replaced, and not there a while")
    add("last\n")
    w.check(f.until("last\n"), "and on")
    w.equal(f.text, "one\ntwo\nthree\nnew\nnext\nlast\n", "each once")
    w.equal(f.stop(), -signal.SIGINT, "until Ctrl-C")


def record(w, name, target, ms, count=1, session="s1"):
    t = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms / 1000)) + \
        ".%03dZ" % (ms % 1000)
    with open(w.zot_home + "/logs/ext-%s.denials.jsonl" % name, "a") as f:
        f.write(json.dumps({
            "v": 1, "time": t, "ext": name, "session": session, "pid": 7,
            "exe": "/bin/x", "op": "fs.read", "syscall": "openat",
            "asked": target, "target": target, "errno": "ENOENT",
            "decided_by": "broker", "floor": "mount", "rule": "strict.json",
            "evidence": "decided", "count": count, "first": t, "last": t,
            "grant": {"key": "fs.read", "value": target},
            "exposes": []}) + "\n")


@test("logs --denials", seconds=60)
def logs_denials(w):
    r = w.zotbox("ext", "logs", "nobody", "--denials")
    w.equal((r.rc, r.out), (3, ""), "one that never was", r)
    hello(w, "x")
    w.install("x")
    for args in (["--denials"], ["--json"], ["--denials", "--json"],
                 ["--since", "1h"]):
        r = w.zotbox("ext", "logs", "x", *args)
        w.equal((r.rc, r.out), (0, ""), "none: %r" % args, r)
        w.contains(r.err, "no denials are recorded", "says so")
        w.check(r.err.count("\n") > 3, "and what cannot be seen", r)
    now = int(time.time() * 1000)
    os.makedirs(w.zot_home + "/logs", exist_ok=True)
    record(w, "x", "/old", now - 3 * 3600 * 1000)
    record(w, "x", "/new", now - 60 * 1000)
    record(w, "x", "/new", now - 50 * 1000, 2)
    with open(w.zot_home + "/logs/ext-x.denials.jsonl", "a") as f:
        f.write('{"v":1,"time":"torn')
    r = w.zotbox("ext", "logs", "x", "--denials")
    w.equal((r.rc, len(r.out.splitlines()), r.err), (0, 2, ""), "text", r)
    w.contains(r.out, " denied fs.read /old (x, openat): strict.json; to "
               "allow: zotbox ext allow x fs.read /old\n")
    w.contains(r.out, "denied fs.read /new (x, openat, x3)", "summed")
    lines = w.zotbox("ext", "logs", "x", "--json").out.splitlines()
    got = [json.loads(line) for line in lines]
    w.equal([(d["target"], d["count"]) for d in got],
            [("/old", 1), ("/new", 3)], "JSON, one a line")
    for since, want in (("10m", ["/new"]), ("2h", ["/new"]), ("1d", ["/old",
                                                              "/new"]),
                        ("2000-01-01T00:00:00Z", ["/old", "/new"]),
                        ("2000-01-01T00:00:00.5+02:00", ["/old", "/new"])):
        r = w.zotbox("ext", "logs", "x", "--json", "--since", since)
        w.equal([json.loads(x)["target"] for x in r.out.splitlines()], want,
                "--since " + since, r)
    r = w.zotbox("ext", "logs", "x", "--since", "1m", "--json")
    r = w.zotbox("ext", "logs", "x", "--since=2999-01-01T00:00:00Z")
    w.equal((r.rc, r.out), (0, ""), "none since", r)
    w.contains(r.err, "no denials are recorded since 2999-01-01T00:00:00Z")
    for bad in ("yesterday", "", "10", "-1m", "10x", "1h1m"):
        w.equal(w.zotbox("ext", "logs", "x", "--since=" + bad).rc, 2,
                "--since " + repr(bad))
    w.zotbox("ext", "remove", "x", "-y")
    w.equal(len(w.zotbox("ext", "logs", "x", "--denials").out.splitlines()),
            2, "logs outlive the extension")


@test("logs --denials -f", seconds=60)
def denials_follow(w):
    now = int(time.time() * 1000)
    os.makedirs(w.zot_home + "/logs")
    record(w, "x", "/a", now)
    f = Follow(w, "ext", "logs", "x", "--json", "-f")
    w.check(f.until('"target":"/a"'), "what is there")
    record(w, "x", "/b", now + 1000)
    w.check(f.until('"target":"/b"'), "what comes")
    # Written late: its last hit was before that of /b.
    record(w, "x", "/a", now + 500, 4)
    w.check(f.until('"count":5'), "what grows, though it is older", f.text)
    path = w.zot_home + "/logs/ext-x.denials.jsonl"
    os.rename(path, path + ".1")
    record(w, "x", "/c", now + 2000)
    w.check(f.until('"target":"/c"'), "after a rotation")
    time.sleep(0.6)
    f.until("never", 0.1)
    got = [(d["target"], d["count"]) for d in map(
        json.loads, f.text.splitlines())]
    w.equal(got, [("/a", 1), ("/b", 1), ("/a", 5), ("/c", 1)],
            "each piece of news once")
    w.equal(f.stop(), -signal.SIGINT, "until Ctrl-C")
    f = Follow(w, "ext", "logs", "y", "--denials", "-f")
    w.equal(f.p.wait(10), 3, "of nobody there is nothing to follow")


@test("help and usage", seconds=60)
def usage(w):
    r = w.zotbox("help")
    w.equal(r.rc, 0, "help", r)
    for name in HELP:
        words = name.split()
        w.contains(r.out, name, "help names " + name)
        for args in (words + ["--help"], words + ["-h"], ["help"] + words):
            h = w.zotbox(*args)
            w.equal((h.rc, h.err), (0, ""), " ".join(args), h)
            w.contains(h.out, name, " ".join(args) + " is about it")
        for bad in ("--no-such-option", "-Q", "--jso", "--yes=no"):
            b = w.zotbox(*words, bad)
            w.equal((b.rc, b.out), (2, ""), "%s %s" % (name, bad), b)
    for args in ([], ["ext"], ["frob"], ["ext", "lst"], ["ext", "install"],
                 ["ext", "remove"], ["ext", "allow", "x"], ["wrap"],
                 ["ext", "allow", "x", "fs.read"], ["ext", "logs"],
                 ["ext", "install", "a", "b"], ["ext", "enable", "a", "b"],
                 ["ext", "install", "--policy"], ["ext", "list", "x"],
                 ["ext", "install", "x", "--build"],
                 ["ext", "doctor", "--prove"]):
        r = w.zotbox(*args)
        w.equal((r.rc, r.out), (2, ""), "usage: " + " ".join(args), r)
        w.check(r.err.startswith("zotbox: "), "says why", r)
    w.contains(w.zotbox("ext", "lst").err, "list", "the nearest")
    for args in (["ext", "--help"], ["ext", "-h"], ["help", "ext"]):
        r = w.zotbox(*args)
        w.equal((r.rc, r.err), (0, ""), " ".join(args), r)
        w.contains(r.out, "ext doctor", " ".join(args))
    r = w.zotbox("ext", "install", "--help")
    w.contains(" ".join(r.out.split()),
               "observe is not available in this version",
               "what cannot be had is not offered")
    w.equal(w.zotbox("--version").rc, 0, "--version")


@test("through a link named zot", seconds=60)
def through_zot(w):
    os.mkdir(w.path("bin"))
    os.symlink(ZOTBOX, w.path("bin/zot"))
    hello(w, "zt")

    def zot(*args):
        p = subprocess.run([w.path("bin/zot"), "ext", *args], env=w.env,
                           cwd=w.project, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return Run(p.returncode, p.stdout.decode(), p.stderr.decode(), 0)
    r = zot("install", "--policy", "strict", w.path("zt"))
    w.equal(r.rc, 0, "install", r)
    m = json.load(open(w.zot_home + "/extensions/zt/extension.json"))
    w.equal(m["exec"], os.path.realpath(ZOTBOX),
            "what starts it is zotbox, not the link")
    for args in (["list"], ["disable", "zt"], ["enable", "zt"],
                 ["allow", "zt", "env.pass", "X"],
                 ["revoke", "zt", "env.pass", "X"],
                 ["logs", "zt", "--denials"], ["unwrap", "zt"],
                 ["remove", "zt", "--yes"]):
        r = zot(*args)
        w.equal(r.rc, 0, " ".join(args), r)


main()
