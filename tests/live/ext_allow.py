#!/usr/bin/env python3
"""zotbox ext allow and ext revoke: one line of the scope file, tried before it
is kept; and the way there: what was denied, the command that is shown, the
command as it is copied, the act that works at the next start."""
import json
import os
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *
from zbverbs import *


def scope_path(w, name):
    return os.path.join(w.zot_home, "zotbox", name, "scope.json")


def text(w, name):
    with open(scope_path(w, name)) as f:
        return f.read()


def allow(w, *args, verb="allow", rc=0, what=None):
    r = w.zotbox("ext", verb, *args)
    w.equal((r.rc, r.out), (rc, ""), what or "%s %s" % (verb, " ".join(args)),
            r)
    return r


@test("every kind of key", seconds=60)
def keys(w):
    hello(w, "k")
    w.install("k")
    w.write("home/notes", "x")
    w.write("project/f", "x")
    bare = text(w, "k")
    for key, values, after in (
            ("fs.read", ["~/notes"], {"fs": {"read": ["~/notes"]}}),
            ("fs.read", ["~/notes", "${project}/f"],
             {"fs": {"read": ["~/notes", "${project}/f"]}}),
            ("fs.deny", ["~/notes"], {"fs": {"deny": ["~/notes"]}}),
            ("fs.exec", ["sh"], {"fs": {"exec": ["sh"]}}),
            ("fs.state", ["beside"], {"fs": {"state": "beside"}}),
            ("env.pass", ["A", "B_*"], {"env": {"pass": ["A", "B_*"]}}),
            ("env.set", ["A=x=y"], {"env": {"set": {"A": "x=y"}}}),
            ("env.set.B", ["z"], {"env": {"set": {"B": "z"}}}),
            ("protocol.submit", ["true"], {"protocol": {"submit": True}}),
            ("protocol.panels", ["any"], {"protocol": {"panels": "any"}}),
            ("protocol.tools", ["false"], {"protocol": {"tools": False}}),
            ("protocol.events", ["turn_start", "turn_end"],
             {"protocol": {"events": ["turn_start", "turn_end"]}}),
            ("protocol.slash", ["/help"], {"protocol": {"slash": ["/help"]}}),
            ("protocol.intercept.tool_call", ["block"],
             {"protocol": {"intercept": {"tool_call": ["block"]}}}),
            ("protocol.on_failure", ["block"],
             {"protocol": {"on_failure": "block"}}),
            ("limits.memory", ["1G"], {"limits": {"memory": "1G"}}),
            ("limits.processes", ["9"], {"limits": {"processes": 9}}),
            ("limits.cpu_seconds", ["null"],
             {"limits": {"cpu_seconds": None}}),
            ("ledger", ["full"], {"ledger": "full"})):
        what = "%s %s" % (key, " ".join(values))
        allow(w, "k", key, *values)
        w.equal(json.loads(text(w, "k")),
                dict({"extends": "strict", "zotbox": 1}, **after), what)
        once = text(w, "k")
        r = allow(w, "k", key, *values)
        w.contains(r.err, "nothing to change", what + ": again")
        w.equal(text(w, "k"), once, what + ": is the same file")
        allow(w, "k", key, *values, verb="revoke")
        left = json.loads(text(w, "k"))
        for k in after:
            left.pop(k, None)
        w.equal(left, {"extends": "strict", "zotbox": 1},
                what + ": revoked, the rest is as it was")
        with open(scope_path(w, "k"), "w") as f:
            f.write(bare)


@test("formatting and order stay")
def formatting(w):
    hello(w, "k")
    w.install("k")
    odd = '''{"zotbox":1, "why" : "mine \\u00e9",

\t"env": {"pass":[ "B",\r\n\t\t"A" ]},   "extends": "strict",
  "limits": { "memory":"1G" } }
'''
    with open(scope_path(w, "k"), "w") as f:
        f.write(odd)
    os.chmod(scope_path(w, "k"), 0o600)
    with open(scope_path(w, "k"), newline="") as f:
        odd = f.read()
    allow(w, "k", "env.pass", "C")
    with open(scope_path(w, "k"), newline="") as f:
        now = f.read()
    w.equal(now.replace(',"C"', ""), odd,
            "but for the new value nothing changed")
    allow(w, "k", "env.pass", "C", verb="revoke")
    with open(scope_path(w, "k"), newline="") as f:
        w.equal(f.read(), odd, "and back, byte by byte")
    w.equal(oct(os.stat(scope_path(w, "k")).st_mode & 0o777), "0o600",
            "its mode")


@test("what is refused", seconds=60)
def refused(w):
    hello(w, "k")
    w.install("k")
    before = snapshot(w)
    for rc, args, part in (
            (2, ["fs.raed", "~/x"], "did you mean fs.read?"),
            (2, ["fsread", "~/x"], "unknown key"),
            (2, ["", "x"], "unknown key"),
            (2, ["extends", "standard"], "--policy"),
            (2, ["zotbox", "2"], ""), (2, ["$schema", "x"], ""),
            (2, ["fs.read", "relative"], "absolute"),
            (2, ["fs.read", "~/a/../../b"], ".."),
            (2, ["fs.read", ""], ""), (2, ["fs.read", "~/x", ""], ""),
            (2, ["env.pass", "A B"], ""), (2, ["env.set", "A"], "NAME=VALUE"),
            (2, ["protocol.tools", "maybe y"], ""),
            (2, ["protocol.submit", "maybe"], "true or false"),
            (2, ["protocol.intercept.tool_call", "blok"], ""),
            (2, ["limits.memory", "lots"], ""), (2, ["ledger", "off"], ""),
            (3, ["fs.read", "~"], "--yes-i-mean-it"),
            (3, ["fs.read", "/"], "--yes-i-mean-it"),
            (3, ["fs.read", w.home], "--yes-i-mean-it"),
            (3, ["fs.read", w.dir], "--yes-i-mean-it"),
            (3, ["fs.read", "${zot_home}"], "--yes-i-mean-it"),
            (3, ["fs.read", "${zot_home}/auth.json"], "--yes-i-mean-it"),
            (3, ["protocol.intercept.tool_call", "modify:bash"],
             "--yes-i-mean-it"),
            (3, ["protocol.call_tool", "bash"], "--yes-i-mean-it"),
            (3, ["protocol.slash", "/unjail"], "cannot be granted"),
            (3, ["fs.read", "${zot_home}/zotbox"], ""),
            (4, ["net.connect", "example.org:443"],
             "this version has no network grants"),
            (2, ["fs.create", "~/x"], "did you mean fs.write?"),
            (2, ["protocol.events", "turn_edn"], "did you mean turn_end?"),
            (4, ["fs.write", "~/*.log"], "own directory stands there")):
        r = allow(w, "k", *args, rc=rc)
        w.contains(r.err, part)
        w.check("trial" not in r.err, "no file is named that is gone", r)
        same(w, before, snapshot(w), " ".join(args) + ": nothing changed")
    for rc, args in ((3, ["nobody", "env.pass", "X"]),
                     (2, ["../k", "env.pass", "X"])):
        for verb in "allow", "revoke":
            allow(w, *args, rc=rc, verb=verb)
    w.equal(w.zotbox("ext", "revoke", "k", "env.pass", "X",
                     "--yes-i-mean-it").rc, 2, "revoke has no such option")
    same(w, before, snapshot(w), "nothing changed")
    r = allow(w, "k", "fs.read", "~/x", "~", "~/y", rc=3,
              what="one bad value of three")
    same(w, before, snapshot(w), "none of them counts")


@test("what is said of a grant", seconds=60)
def said(w):
    hello(w, "k")
    w.install("k")
    w.write("home/data/f", "x")
    os.symlink("data", w.path("home/link"))
    for args, parts, not_there in (
            (["fs.read", "~/data", "~/data/f"],
             ["allowed fs.read ~/data ~/data/f; it counts"],
             ["leads to", "there is no"]),
            (["fs.read", "~/link/f"],
             ["~/link/f leads to %s/data/f: what is granted is that" %
              os.path.realpath(w.home)], ["there is no"]),
            (["fs.read", w.home + "/link"],
             ["/link leads to %s/data:" % os.path.realpath(w.home)], []),
            (["fs.read", "~/none", "~/data/no*"],
             ["there is no ~/none now"], ["no* now"]),
            (["fs.write", "~/made/"],
             ["there is no ~/made/ now: it is made when k starts"],
             ["is not granted"]),
            (["fs.deny", "~/none"], ["added fs.deny ~/none; it counts"],
             ["there is no", "allowed"]),
            (["fs.deny", "~/none"], ["it stands there already"], ["granted"]),
            (["protocol.tools", "false"], ["set protocol.tools false;"], []),
            (["limits.memory", "1G"], ["set limits.memory 1G;"], []),
            (["protocol.events", "turn_end", "of_tomorrow"],
             ["allowed protocol.events turn_end of_tomorrow",
              "of_tomorrow is not an event that zot sends today"],
             ["turn_end is not"]),
            (["protocol.intercept.of_tomorrow", "block"],
             ["of_tomorrow is not an event"], []),
            (["protocol.intercept.before_agent_start", "block"], [],
             ["is not an event"])):
        r = allow(w, "k", *args)
        for part in parts:
            w.contains(r.err, part)
        for part in not_there:
            w.check(part not in r.err, "nothing of " + part, r)
    r = allow(w, "k", "protocol.events", "turn_end", verb="revoke")
    w.contains(r.err, "revoked protocol.events turn_end;")
    for verb in "allow", "revoke":
        r = allow(w, "k", "fs.red", "/x", verb=verb, rc=2)
        w.contains(r.err, "nothing was %s: " %
                   ("allowed" if verb == "allow" else "revoked"))


@test("what a grant opens is told")
def opens(w):
    hello(w, "k")
    w.install("k")
    for f in "a", "b", "c", "id_rsa":
        w.write("home/keys/" + f, "x")
    for key, value, words in (
            ("fs.read", "~/keys", "read ~/keys: 4 files, 1 of them with names "
             "of keys or passwords (id_rsa)"),
            ("fs.write", "~/keys", "change, replace and delete ~/keys: 4 "
             "files, 1 of them"),
            ("fs.exec", "git", "start the program git, inside the same "
             "sandbox"),
            ("env.pass", "X_TOKEN", "read the variable X_TOKEN"),
            ("protocol.intercept.tool_call", "block",
             "see every tool call with its arguments, and stop it")):
        r = allow(w, "k", key, value)
        w.contains(r.err, "zotbox: with it, k may " + words, key, r)
        again = allow(w, "k", key, value)
        w.check("with it," not in again.err, key + ": not twice", again)
    for args in (("fs.deny", "~/keys/a"), ("limits.memory", "256M"),
                 ("protocol.submit", "false")):
        r = allow(w, "k", *args)
        w.check(r.rc == 0 and "with it," not in r.err, "no grant", r)


@test("a grant that a deny beats is told to be in vain")
def in_vain(w):
    hello(w, "k")
    w.install("k", policy="standard")
    for f in ".env", "x.pem", "ok", "mine":
        w.write("project/" + f, "x")
    for key in "fs.read", "fs.write":
        for f in ".env", "x.pem":
            r = allow(w, "k", key, "${project}/" + f)
            w.contains(r.err, "${project}/%s stays denied, whatever is "
                       "granted: standard.json:" % f)
            w.check("with it," not in r.err, "and not what it opens", r)
        r = allow(w, "k", key, "${project}/ok")
        w.check("stays denied" not in r.err, "a control", r)
    r = allow(w, "k", "fs.write", "${project}/.envrc", "--yes-i-mean-it")
    w.contains(r.err, "${project}/.envrc stays denied")
    allow(w, "k", "fs.deny", "${project}/mine")
    r = allow(w, "k", "fs.read", "${project}/mine")
    w.contains(r.err, "${project}/mine stays denied, whatever is granted: "
               "scope.json:")


@test("what is meant", needs="sandbox", seconds=60)
def meant(w):
    w.mkext("k", '''
        hello("k", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: text(f["id"], str(os.path.exists(
            os.path.expanduser("~/secret")))))
    ''')
    w.install("k")
    w.write("home/secret", "x")
    r = allow(w, "k", "fs.read", "~", "--yes-i-mean-it")
    c = w.console("k", call("t"))
    w.equal(c.result(), "True", "it counts, and need not be said again", c)
    allow(w, "k", "env.pass", "X")
    allow(w, "k", "fs.read", "/", rc=3, what="but it opens no other door")
    allow(w, "k", "fs.read", "~", verb="revoke")
    w.equal(w.console("k", call("t")).result(), "False", "revoked")


@test("taking back works whatever else is wrong", seconds=30)
def revoke(w):
    d = hello(w, "k")
    w.install("k")
    with open(scope_path(w, "k"), "w") as f:
        json.dump({"zotbox": 1, "extends": "strict",
                   "net": {"connect": ["a.org:1", "b.org:2"]},
                   "env": {"pass": ["X"]}}, f)
    r = allow(w, "k", "env.pass", "Y", rc=4, what="allow is refused then")
    r = allow(w, "k", "net.connect", "a.org:1", verb="revoke")
    w.contains(r.err, "would not start", "says what is still wrong")
    r = allow(w, "k", "net.connect", "b.org:2", verb="revoke")
    w.check("would not start" not in r.err, "and when nothing is", r)
    w.write("zot/extensions/k/new", "x")
    r = allow(w, "k", "env.pass", "X", verb="revoke",
              what="of code that was changed")
    w.equal(json.loads(text(w, "k"))["env"]["pass"], [], "it is out")
    allow(w, "k", "env.pass", "X", rc=3, what="which is allowed nothing")
    with open(scope_path(w, "k"), "w") as f:
        f.write("{")
    allow(w, "k", "env.pass", "X", verb="revoke", rc=2, what="a broken file")
    w.zotbox("ext", "unwrap", "k")
    subprocess.run(["cp", "-r", d, w.zot_home + "/extensions/plain"],
                   check=True)
    m = json.load(open(w.zot_home + "/extensions/plain/extension.json"))
    m["name"] = "plain"
    w.write("zot/extensions/plain/extension.json", json.dumps(m))
    r = allow(w, "plain", "env.pass", "X", rc=3, what="one without a scope")
    w.contains(r.err, "was not installed by zotbox")


@test("two at once")
def two(w):
    hello(w, "k")
    w.install("k")
    ps = [w.spawn([ZOTBOX, "ext", "allow", "k", "env.pass", "V%d" % i],
                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
          for i in range(8)]
    for p in ps:
        err = p.communicate(timeout=30)[1].decode()
        w.equal(p.returncode, 0, "each works", err)
    w.equal(sorted(json.loads(text(w, "k"))["env"]["pass"]),
            ["V%d" % i for i in range(8)], "and counts")


def commands(w, name):
    """The commands of logs --denials; its log must say the same, and doctor
    the last of them."""
    def found(t):
        return {tuple(o) for o in offers(t)}
    shown = found(w.zotbox("ext", "logs", name, "--denials").out)
    w.check(shown <= found(w.log(name)), "the same commands in the log",
            shown, w.log(name))
    d = found(w.zotbox("ext", "doctor", name).out)
    w.check(d and d <= shown, "and in doctor", shown, d)
    return list(shown)


def granted(w, name, script, before, after, result, *want):
    """Denied; the command is shown; copied and run by a shell; works."""
    c = w.console(name, script)
    w.equal(result(c), before, "denied", c)
    shown = commands(w, name)
    for o in want:
        w.check(tuple(["ext", "allow", name] + list(o)) in shown,
                "shown: " + " ".join(o), shown)
    os.makedirs(w.path("bin"), exist_ok=True)
    if not os.path.exists(w.path("bin/zotbox")):
        os.symlink(ZOTBOX, w.path("bin/zotbox"))
    text = w.zotbox("ext", "logs", name, "--denials").out
    lines = {line[line.index("zotbox ext allow"):] for line in
             text.splitlines() if "zotbox ext allow" in line}
    for line in sorted(lines):
        if not any(list(o) == shlex.split(line)[4:] for o in want):
            continue
        p = subprocess.run(["sh", "-c", line], cwd=w.project,
                           env=dict(w.env, PATH=w.path("bin") + ":" +
                                    w.env["PATH"]),
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
        w.equal(p.returncode, 0, "runs: " + line, p.stdout.decode())
    c = w.console(name, script)
    w.equal(result(c), after, "works", c)


@test("denied, shown, copied, works: reading a file", needs="sandbox",
      seconds=60)
def grant_read(w):
    w.mkext("r", '''
        hello("r", "tools"); tool("t"); ready()
        def t(f):
            try: text(f["id"], open(f["args"]["p"]).read())
            except OSError as e: text(f["id"], "errno %d" % e.errno)
        serve(tool_call=t)
    ''')
    w.install("r")
    for n in ("plain", "it's $HOME `id`", "-dash"):
        p = w.write("home/" + n, "content of " + n)
        granted(w, "r", call("t", p=p), "errno 2", "content of " + n,
                lambda c: c.result(), ["fs.read", "~/" + n])


@test("denied, shown, copied, works: a program", needs="sandbox", seconds=60)
def grant_exec(w):
    w.mkext("e", '''
        import subprocess
        hello("e", "tools"); tool("t"); ready()
        def t(f):
            try:
                out = subprocess.run(["expr", "6", "*", "7"], stdout=-1).stdout
                text(f["id"], out.decode().strip())
            except OSError as e: text(f["id"], "errno %d" % e.errno)
        serve(tool_call=t)
    ''')
    w.install("e")
    script = call("t")
    c = w.console("e", script)
    w.check(c.result().startswith("errno"), "denied", c)
    want = [o[3:] for o in commands(w, "e") if o[3] == "fs.exec"]
    w.check(want, "a command is shown", w.ledger("e"))
    granted(w, "e", script, c.result(), "42", lambda c: c.result(), *want)


@test("denied, shown, copied, works: events and submit", needs="sandbox",
      seconds=60)
def grant_protocol(w):
    w.mkext("p", '''
        hello("p", "tools")
        emit(type="subscribe", events=["turn_start"]); tool("t"); ready()
        def t(f):
            emit(type="submit", text="go on")
            text(f["id"], "ok")
        serve(tool_call=t, event=lambda f: note("saw " + f["event"]))
    ''')
    w.install("p")
    script = [event("turn_start"), call("t"), "sleep 0.3"]

    def seen(c):
        return (["saw turn_start"] == [h.json["message"] for h in
                                       c.of("notify")],
                len(c.of("submit")))
    granted(w, "p", script, (False, 0), (True, 1), seen,
            ["protocol.events", "turn_start"], ["protocol.submit", "true"])


@test("denied, shown, copied, works: the environment", needs="sandbox",
      seconds=60)
def grant_env(w):
    w.mkext("v", '''
        hello("v", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: text(f["id"], os.environ.get(
            "MY_TOKEN", "none")))
    ''')
    w.install("v")
    w.env["MY_TOKEN"] = "geheim"
    granted(w, "v", call("t"), "none", "geheim", lambda c: c.result(),
            ["env.pass", "MY_TOKEN"])


main()
