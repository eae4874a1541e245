#!/usr/bin/env python3
"""ext scope and ext why: what is granted, where it is from, and what would
change an answer. That the answers are true is scope_table.py."""
import json
import os
import shlex
import sys

SRC = os.environ.get("ZB_SRC", ".")
sys.path.insert(0, os.path.join(SRC, "tests/lib"))
from zbtest import *
from zbverbs import *


def why(w, name, op, *target, rc=None, **kw):
    r = w.zotbox("ext", "why", name, op, *target, "--json", **kw)
    if rc is not None:
        w.equal(r.rc, rc, "why %s %s" % (op, " ".join(target)), r)
    return json.loads(r.out) if r.out else r


@test("ext scope: the file as it is")
def file(w):
    hello(w, "k")
    w.install("k")
    path = os.path.join(w.zot_home, "zotbox/k/scope.json")
    odd = '{"zotbox":1,\n\t"extends" : "strict", "why":"mine \u00e9"}\n'
    with open(path, "w", encoding="utf-8") as f:
        f.write(odd)
    r = w.zotbox("ext", "scope", "k")
    w.equal((r.rc, r.out, r.err), (0, odd, ""), "byte by byte")
    j = json.loads(w.zotbox("ext", "scope", "k", "--json").out)
    w.equal((j["name"], j["file"], j["scope"]["why"]),
            ("k", path, "mine \u00e9"), "JSON")
    for rc, args in ((3, ["nobody"]), (3, [w.path("k")]),
                     (2, [w.path("nothere")]), (2, ["k", "--scope", path]),
                     (2, [])):
        w.equal(w.zotbox("ext", "scope", *args).rc, rc, " ".join(args))


@test("ext scope --effective: every line has an origin")
def effective(w):
    hello(w, "k")
    w.write("project/f", "x")
    os.makedirs(w.path("project/d"))
    base = w.write("base.json", json.dumps(
        {"zotbox": 1, "extends": "strict", "fs": {"read": ["${project}/d"]}}))
    w.install("k", policy=None, scope={
        "extends": base, "fs": {"read": ["${project}/f"],
                                "deny": ["${project}/d/*.pem"]},
        "env": {"set": {"MINE": "1"}}, "limits": {"memory": "256M"},
        "protocol": {"events": ["turn_end"]}})
    w.env["LC_SECRET"] = "hush"
    r = w.zotbox("ext", "scope", "k", "--effective")
    w.equal(r.rc, 0, "works", r)
    w.check("hush" not in r.out, "no value of the user's environment", r)
    w.contains(r.out, "MINE=1", "but what a scope sets")
    r = w.zotbox("ext", "scope", "k", "--effective", "--json")
    j = json.loads(r.out)
    rules = {x["rule"]: x for x in j["rules"]}

    def line(rule, file, by):
        x = rules.get(rule, {"origin": None, "by": ""})
        got = x["origin"]
        w.check(got and os.path.basename(got["file"]) == file and
                got["line"] > 0 and by in x["by"], "%s from %s by %s" %
                (rule, file, by), x, sorted(rules))
    line("fs.read ${project}/f", "scope.json", "mount, Landlock")
    line("fs.read ${project}/d", "base.json", "broker")
    line("fs.deny %s/d/*.pem" % w.project, "scope.json", "broker")
    line("env.pass PATH", "strict.json", "environment")
    line("env.set MINE", "scope.json", "environment")
    line("protocol.submit false", "strict.json", "mediator")
    line("protocol.events turn_end", "scope.json", "mediator")
    line("limits.memory 268435456", "scope.json", "measured")
    line("limits.open_files 256", "strict.json", "rlimit")
    for x in j["rules"]:
        w.check(x["origin"] or x["rule"] == "anything else",
                "origin of " + x["rule"])
        w.check(x["by"], "enforced: " + x["rule"])
    places = {p["path"]: p for p in j["places"]}
    w.equal((places[w.project + "/d"]["carved"],
             places[w.project + "/f"]["carved"]), (True, False), "carved")
    w.check(any((p["origin"] or {}).get("file", "").startswith("runtimes/")
                for p in j["places"]), "runtime fragments are named")
    names = {e["name"]: e for e in j["env"]}
    w.check("value" not in names["PATH"] and names["MINE"]["value"] == "1",
            "values", names)


@test("ext scope --effective of a path, and of what cannot be")
def by_path(w):
    hello(w, "k")
    r = w.zotbox("ext", "scope", w.path("k"), "--effective")
    w.contains(r.out, "policy strict\n", "strict", r)
    r = w.zotbox("ext", "scope", w.path("k"), "--effective", "--policy",
                 "standard")
    w.contains(r.out, "fs.read ${project}", "another policy", r)
    bad = w.scope("k", {"protocol": {"call_tool": ["bash"]}})
    r = w.zotbox("ext", "scope", w.path("k"), "--effective", "--scope", bad)
    w.equal((r.rc, r.out), (3, ""), "refused as a start would be", r)


@test("ext scope marks what opens very much")
def red(w):
    hello(w, "k")
    w.install("k")
    for args in (["fs.read", "~"], ["protocol.call_tool", "bash"]):
        w.equal(w.zotbox("ext", "allow", "k", *args, "--yes-i-mean-it").rc, 0,
                " ".join(args))
    r = w.zotbox("ext", "scope", "k", "--effective")
    w.contains(r.out, "fs.read ~  (opens your whole HOME)")
    w.contains(r.out, "protocol.call_tool bash  (opens a shell on this host)")
    w.check("\033" not in r.out, "no colour but on a terminal", r)


@test("ext why: the command that is shown works", seconds=120)
def commands(w):
    hello(w, "k")
    w.install("k")
    w.write("home/notes", "x")
    w.write("home/it's $HOME", "x")
    w.write("project/f", "x")
    for op, target in (("fs.read", "~/notes"), ("fs.read", "~/it's $HOME"),
                       ("fs.write", "~/notes"), ("fs.read", "f"),
                       ("fs.exec", "/usr/bin/expr"), ("env", "MY_TOKEN"),
                       ("proto.submit", ""), ("proto.slash", "help"),
                       ("proto.events", "turn_end"),
                       ("proto.intercept", "tool_call:block"),
                       ("limit.memory", "1G"), ("limit.tool_seconds", "90")):
        a = why(w, "k", op, target, rc=3)
        w.check(a["command"] and a["cannot"] is None, "a command", a)
        args = shlex.split(a["command"] or "false")[1:]
        r = w.zotbox(*args)
        w.equal(r.rc, 0, a["command"], r)
        a = why(w, "k", op, target, rc=0)
        w.equal((a["origin"] or {}).get("file"), "scope.json" if
                op != "fs.exec" else (a["origin"] or {}).get("file"),
                "and the rule is the user's", a)


@test("ext why: where no command helps")
def never(w):
    hello(w, "k")
    w.install("k", policy="standard")
    w.write("project/.env", "x")
    w.write("zot/auth.json", "x")
    os.mkfifo(w.path("home/fifo"))
    for op, target, part in (
            ("fs.read", "${project}/.env", "fs.deny wins"),
            ("fs.read", "${zot_home}/auth.json", "--yes-i-mean-it"),
            ("fs.read", "${zot_home}/zotbox/k/scope.json", "supervisor"),
            ("fs.write", "${extension_dir}/main.py", "installed code"),
            ("net.connect", "example.org:443", "no network"),
            ("net.dns", "example.org", "no network"),
            ("syscall", "mount", "system calls"),
            ("syscall", "io_uring_setup", ""),
            ("proto.slash", "unjail", "cannot be granted"),
            ("proto.call_tool", "bash", "--yes-i-mean-it"),
            ("proto.intercept", "tool_call:modify:bash", "--yes-i-mean-it"),
            ("fs.write", "${project}/.git", "by its own name"),
            ("limit.frame_bytes", "9999999999", "")):
        a = why(w, "k", op, target, rc=3)
        w.equal(a["command"], None, "no command", a)
        w.contains(a["cannot"] or "", part, "%s %s" % (op, target))
        text = w.zotbox("ext", "why", "k", op, target).out
        meant = "--yes-i-mean-it" in a["cannot"]
        w.equal(("granted only if you mean it: " in text,
                 "cannot be granted: " in text), (meant, not meant),
                "the label says which", text)


@test("ext why: what is asked wrongly")
def wrong(w):
    hello(w, "k")
    w.install("k")
    for args, part in (
            (["k", "fs.raed", "/x"], "did you mean fs.read?"),
            (["k", "nonsense", "/x"], "there are fs.read"),
            (["k", "fs.read", ""], "empty"),
            (["k", "fs.read", "${projekt}/x"], ""),
            (["k", "net.connect", "example.org"], "HOST:PORT"),
            (["k", "proto.submt"], "did you mean submit?"),
            (["k", "limit.memry", "1G"], "did you mean memory?"),
            (["k", "limit.memory"], "amount"),
            (["k", "limit.memory", "lots"], "amount"),
            (["k", "hello", "x"], "no policy decides"),
            (["k", "env", ""], "Name a target"),
            (["./nothere", "fs.read", "/x"], "there is no extension")):
        r = w.zotbox("ext", "why", *args)
        w.equal((r.rc, r.out), (2 if args[2:] != ["${projekt}/x"] else r.rc,
                                "" if args[2:] != ["${projekt}/x"] else
                                r.out), " ".join(args), r)
        w.contains(r.err + r.out, part)
    w.equal(w.zotbox("ext", "why", "nobody", "env", "X").rc, 3, "no such")
    w.equal(w.zotbox("ext", "why", "k").rc, 2, "no operation")


@test("ext why: a program by its name; text that is a command")
def words(w):
    hello(w, "k")
    w.install("k")
    why(w, "k", "fs.exec", "git", rc=3)
    w.equal(w.zotbox("ext", "allow", "k", "fs.exec", "git").rc, 0, "granted")
    j = why(w, "k", "fs.exec", "git", rc=0)
    w.equal((j["asked"], os.path.basename(j["target"])), ("git", "git"),
            "as fs.exec names it")
    w.check(j["target"].startswith("/"), "the program in PATH")
    why(w, "k", "fs.exec", "./git", rc=3)
    w.equal(w.zotbox("ext", "allow", "k", "protocol.submit", "true").rc, 0,
            "granted")
    why(w, "k", "proto.submit", "hello", rc=0)
    for verb in "submit", "prompt", "insert":
        j = why(w, "k", "proto." + verb, " !ls", rc=3)
        w.equal((j["grant"], j["command"]), (None, None), "no grant helps")
        w.contains(j["cannot"], "your shell")
        r = w.zotbox("ext", "why", "k", "proto." + verb, "/model x")
        w.equal(r.rc, 2, "a slash command has a verb of its own", r)
        w.contains(r.err, "proto.slash")


@test("ext why: changed code has no answer; nothing is started or kept")
def integrity(w):
    hello(w, "k")
    w.install("k")
    before = snapshot(w)
    why(w, "k", "integrity", rc=0)
    why(w, "k", "fs.read", "~/x", rc=3)
    after = snapshot(w)
    same(w, {k: v for k, v in before.items() if "/k/" not in k or
             k.endswith("scope.json")},
         {k: v for k, v in after.items() if "/k/" not in k or
          k.endswith("scope.json")}, "the scope is as it was")
    with open(os.path.join(w.zot_home, "extensions/k/new"), "w") as f:
        f.write("x")
    r = w.zotbox("ext", "why", "k", "integrity")
    w.equal((r.rc, r.out), (3, ""), "changed", r)
    w.contains(r.err, "new", "the file is named")


@test("ext why: names are shown, not sent to the terminal")
def strange(w):
    hello(w, "k")
    w.install("k")
    r = w.zotbox("ext", "why", "k", "fs.read", "/x/\x1b[2J\u202ey")
    w.equal(r.rc, 3, "denied", r)
    w.check("\x1b" not in r.out and "\u202e" not in r.out, "as text", r)
    w.check("zotbox ext allow" not in r.out, "and in no command", r)


main()
