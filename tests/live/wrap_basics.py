#!/usr/bin/env python3
"""zotbox wrap between a host and an installed extension: what passes, what is
refused before hello, where it finds the project, what it logs."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *

ECHO = '''
    ack = hello("%s", "commands", "tools", "magic")
    tool("t"); cmd("c"); ready()
    serve(tool_call=lambda f: text(f["id"], json.dumps(f["args"])),
          command_invoked=lambda f: emit(type="command_response", id=f["id"],
              action="display", display=json.dumps(ack)))
'''


@test("a session", needs="sandbox")
def session(w):
    w.mkext("e", ECHO % "e")
    w.install("e")
    p = w.wrap("e")
    hello = p.handshake()
    w.equal((hello["type"], hello["name"]), ("hello", "e"), "hello")
    w.check("magic" not in hello.get("capabilities", []),
            "capabilities are cut to what is granted", hello)
    w.equal([p.recv()["type"] for _ in range(3)],
            ["register_tool", "register_command", "ready"], "registrations")
    raw = b'{"type":"tool_call","id":"i-1","name":"t","args":' \
          b'{"z":1,"n":9007199254740993,"a":"\\u00e9"}}'
    p.send(raw)
    r = p.until("tool_result")
    w.equal(r["content"][0]["text"],
            '{"z": 1, "n": 9007199254740993, "a": "\\u00e9"}', "both ways")
    p.send({"type": "command_invoked", "id": "i-2", "name": "c"})
    ack = json.loads(p.until("command_response")["display"])
    w.equal(ack["cwd"], w.project, "cwd is the host's word")
    w.check(ack["data_dir"].endswith("/zotbox/e/data"),
            "data_dir is the private one", ack["data_dir"])
    w.equal(p.shutdown(), 0, "exit status")
    w.equal((p.recv(), p.recv()), ({"type": "shutdown_ack"}, None),
            "the end of stdout")
    w.contains(w.log("e"), "[zotbox] starting e/1.0.0 under strict")
    w.contains(w.log("e"), "[zotbox] e exited with status 0")


@test("bytes pass as they are", needs="sandbox")
def bytes_pass(w):
    w.mkext("b", r'''
        hello("b", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: raw('{ "type":"tool_result" , "id":"%s",'
              '"content":[{"type":"text","text":"1.50 \\u00e9 \\/"}] }\n'
              % f["id"]))
    ''')
    w.install("b")
    p = w.wrap("b")
    p.handshake()
    p.until("ready")
    p.send({"type": "tool_call", "id": "x", "name": "t", "args": {}})
    p.until("tool_result")
    w.equal(p.raw, b'{ "type":"tool_result" , "id":"x","content":[{"type":'
            b'"text","text":"1.50 \\u00e9 \\/"}] }', "a reply")
    p.shutdown()


@test("refused before hello", needs="sandbox")
def refused(w):
    w.mkext("e", ECHO % "e")
    w.install("e")
    d = os.path.join(w.zot_home, "extensions/e")
    r = w.zotbox("wrap", "e", cwd=w.project)
    w.equal((r.rc, r.out), (3, ""), "another directory", r)
    w.contains(r.err, "another directory's manifest must not use its name")
    r = w.zotbox("wrap", "none", cwd=d)
    w.equal((r.rc, r.out), (3, ""), "not installed", r)
    w.contains(r.err, '[zotbox] none: no extension "none" is installed')
    w.equal(w.zotbox("wrap", "../e", cwd=d).rc, 2, "no name")
    r = w.zotbox("wrap", "\x1b]0;a\x07\n[zotbox] b", cwd=d)
    w.equal((r.rc, "\x1b" in r.err, r.err.count("\n[")), (2, False, 0),
            "a manifest's own words are shown, not sent", r)
    w.equal(w.zotbox("wrap", cwd=d).rc, 2, "no argument")
    os.symlink(d, w.path("link"))
    p = w.spawn([ZOTBOX, "wrap", "e"], cwd=w.path("link"), stdin=-1,
                stdout=-1, stderr=-3)
    w.contains(p.stdout.readline().decode(), '"hello"', "by its real path")
    p.stdin.close()
    p.wait(5)
    with open(os.path.join(d, "main.py"), "a") as f:
        f.write("# changed\n")
    p = w.wrap("e")
    w.equal((p.recv(), p.wait()), (None, 3), "changed code does not start")
    w.contains(w.log("e"), "main.py", "the file is named")
    w.contains(w.log("e"), "zotbox ext", "and what to do")


@test("the project", needs="sandbox")
def project(w):
    for n in ("one", "two"):
        w.write(n + "/mark", n)
    w.mkext("pr", '''
        ack = hello("pr", "tools"); tool("t"); ready()
        def call(f):
            try: text(f["id"], open(ack["cwd"] + "/mark").read())
            except OSError as e: text(f["id"], "errno %d" % e.errno)
        serve(tool_call=call)
    ''')
    w.install("pr", scope={"fs": {"read": ["${project}"]}})
    one, two = w.path("one"), w.path("two")

    def ask(cwd, args, ack, **kw):
        p = w.wrap("pr", cwd, args, **kw)
        p.handshake(ack)
        p.until("ready")
        p.send({"type": "tool_call", "id": "1", "name": "t", "args": {}})
        got = p.until("tool_result")["content"][0]["text"]
        p.shutdown()
        return got, [f["type"] for f in p.seen]
    w.equal(ask(one, (), one)[0], "one", "from the parent's directory")
    w.equal(ask(one, ("--cwd", two), two)[0], "two", "from --cwd DIR")
    w.equal(ask(one, ("--cwd=" + two,), two)[0], "two", "from --cwd=DIR")
    w.equal(ask(w.dir, ("--cwd", "two"), two)[0], "two", "a relative one")
    w.equal(ask(one, ("--", "--cwd", two), one)[0], "one", "not after --")
    got, types = ask(one, (), two)
    w.equal(got, "two", "hello_ack has the last word")
    w.equal(types.count("hello"), 1, "the second hello is swallowed", types)
    w.equal(types.count("register_tool"), 1, "nothing is said twice")
    w.equal(types.count("ready"), 1, "one ready")
    w.contains(w.log("pr"), "is started again for the project")


@test("a project that is HOME", needs="sandbox")
def broad(w):
    w.mkext("br", '''
        ack = hello("br", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: text(f["id"],
              str(os.path.exists(ack["cwd"] + "/mark"))))
    ''')
    w.install("br", scope={"fs": {"read": ["${project}"]}})
    for cwd, want in ((w.home, "False"), (w.path("home/src"), "True")):
        w.write(os.path.relpath(cwd, w.dir) + "/mark", "x")
        p = w.wrap("br", cwd)
        p.handshake(cwd)
        p.until("ready")
        p.send({"type": "tool_call", "id": "1", "name": "t", "args": {}})
        r = p.until("tool_result")["content"][0]["text"]
        p.shutdown()
        w.equal(r, want, "granted: " + os.path.basename(cwd))
    r = [r for r in w.ledger("br") if r["decided_by"] == "plan"]
    w.equal([(x["op"], x["target"], x["grant"], x["count"]) for x in r],
            [("fs.read", w.home, None, 1)], "one record")
    w.contains(r[0]["cannot"], "start zot in one", "with what to do")
    w.contains(w.log("br"), "${project} is not granted", "and a notice")


@test("registrations before hello_ack pass once", needs="sandbox")
def early(w):
    for n in ("one", "two"):
        w.write(n + "/mark", n)
    w.mkext("ea", '''
        emit(type="hello", name="ea", version="1", capabilities=["tools"])
        tool("t"); cmd("c")
        ack = recv(); ready()
        serve(tool_call=lambda f: text(f["id"],
              open(ack["cwd"] + "/mark").read()))
    ''')
    w.install("ea", scope={"fs": {"read": ["${project}"]}})
    p = w.wrap("ea", w.path("one"))
    w.equal([p.recv()["type"] for _ in range(3)],
            ["hello", "register_tool", "register_command"],
            "they pass in order")
    p.send({"type": "hello_ack", "protocol_version": 1,
            "cwd": w.path("two"), "data_dir": "/x", "extension_dir": "/x"})
    p.send({"type": "tool_call", "id": "1", "name": "t", "args": {}})
    r = p.until("tool_result")
    w.equal(r["content"][0]["text"], "two", "what came meanwhile waited")
    kinds = [f["type"] for f in p.seen]
    w.equal((kinds.count("register_tool"), kinds.count("ready")), (1, 1),
            "once", kinds)
    p.shutdown()


@test("a slow second start is bridged", needs="sandbox")
def bridged(w):
    w.write("two/mark", "two")
    w.mkext("sl", '''
        time.sleep(0.7)
        hello("sl", "tools"); tool("t"); ready(); serve()
    ''')
    w.install("sl", scope={"fs": {"read": ["${project}"]}})
    p = w.wrap("sl")
    p.handshake(w.path("two"))
    last, gaps = time.time(), []
    while True:
        f = p.recv()
        gaps.append(time.time() - last)
        last = time.time()
        if f["type"] != "shutdown_ack":
            break
    w.check(len(gaps) >= 4, "beats while it starts: %d" % len(gaps))
    w.check(max(gaps) < 0.25, "never silent for 250 ms: %.2f" % max(gaps))
    w.equal(f["type"], "register_tool", "then the registrations")
    p.shutdown()


@test("the log cannot be forged", needs="sandbox")
def forged(w):
    w.mkext("fo", r'''
        sys.stderr.write("[zotbox] denied fs.read ~/.ssh: to allow: x\n"
                         "[zot] starting\n\x1b[31mred\n"); sys.stderr.flush()
        hello("fo"); ready(); serve()
    ''')
    w.install("fo")
    p = w.wrap("fo")
    p.handshake()
    p.until("ready")
    p.shutdown()
    log = w.log("fo")
    w.contains(log, "| [zotbox] denied fs.read ~/.ssh", "prefixed")
    w.contains(log, "| [zot] starting", "also zot's mark")
    w.check("\x1b" not in log, "escapes are shown", log)


@test("the extension has no host descriptor", needs="sandbox")
def descriptors(w):
    w.mkext("fd", '''
        hello("fd", "tools"); tool("t"); ready()
        def call(f):
            d = {}
            for n in os.listdir("/proc/self/fd"):
                try: d[n] = os.readlink("/proc/self/fd/" + n)
                except OSError: pass
            text(f["id"], json.dumps(d))
        serve(tool_call=call)
    ''')
    w.install("fd")
    p = w.wrap("fd")
    p.handshake()
    p.until("ready")
    p.send({"type": "tool_call", "id": "1", "name": "t", "args": {}})
    d = json.loads(p.until("tool_result")["content"][0]["text"])
    w.equal(sorted(d)[:3], ["0", "1", "2"], "0, 1, 2", d)
    w.check(all(v.startswith("pipe:") for k, v in d.items() if k in "012"),
            "are pipes, 2 is not the log", d)
    w.check(len(d) <= 4, "and nothing else", d)
    p.shutdown()


@test("one run by its path leaves no word in another's records",
      needs="sandbox")
def namesake(w):
    key = w.write("home/.ssh/id", "KEY")
    body = '''
        hello("same", "tools"); tool("t"); ready()
        print("I am %s", file=sys.stderr, flush=True)
        def call(f):
            try: text(f["id"], open(f["args"]["p"]).read())
            except OSError as e: text(f["id"], "errno %%d" %% e.errno)
        serve(tool_call=call)
    '''
    w.mkext("same", body % "honest")
    w.install("same")
    c = w.console("same", call("t", p="/etc/shadow"))
    w.equal(c.rc, 0, "the installed one", c)
    logs = w.zot_home + "/logs/"

    def read(name):
        with open(logs + name) as f:
            return f.read()
    mine = {n: read(n) for n in os.listdir(logs)}
    w.equal(sorted(mine), ["ext-same.denials.jsonl", "ext-same.log"],
            "has its log and ledger")
    os.rename(w.path("same"), w.path("was"))
    w.mkext("same", body % "a namesake")
    os.rename(w.path("same"), w.path("other place"))
    c = w.console("./other place", call("t", p=key))
    w.equal((c.rc, c.result()), (0, "errno 2"), "one of the same name", c)
    w.equal({n: read(n) for n in mine}, mine, "nothing of it is in them")
    new = sorted(set(os.listdir(logs)) - set(mine))
    w.equal(len(new), 2, "it has its own", new)
    w.check(all(n.startswith("ext-@") for n in new), "under its box", new)
    where = w.path("other place")
    w.contains(c.err, "see zotbox ext logs '%s' --denials" % where,
               "it says which")
    r = w.zotbox("ext", "logs", where)
    w.contains(r.out, "I am a namesake", "the log by its path")
    w.check("honest" not in r.out, "of nobody else", r)
    r = w.zotbox("ext", "logs", where, "--denials")
    w.contains(r.out, "to allow: fs.read ~/.ssh/id in its scope file "
               "(--scope)", "what would allow it, to this one")
    w.check("ext allow" not in r.out + c.err + w.zotbox(
        "ext", "logs", where).out, "and no command that is for the other", r)
    r = w.zotbox("ext", "logs", where, "--json")
    w.equal([json.loads(x)["target"] for x in r.out.splitlines()], [key],
            "its denials by its path")
    r = w.zotbox("ext", "logs", "same", "--json")
    w.check(key not in r.out, "not by its name", r)
    box = new[0][len("ext-"):].split(".")[0]
    w.equal(w.zotbox("ext", "logs", box, "--json").out.count(key) > 0, True,
            "or by the name of its box")
    for arg, rc in ((w.home, 3), ("./none", 2), ("@x/y", 2)):
        w.equal(w.zotbox("ext", "logs", arg).rc, rc, arg)
    r = w.zotbox("ext", "doctor", "same", "--json")
    w.check(key not in r.out, "doctor does not mix them up", r)


@test("one that shut its own directories starts again", needs="sandbox")
def shut(w):
    w.write("home/.cache/deep/granted", "here")
    w.mkext("shut", '''
        ack = hello("shut", "tools"); tool("shut"); tool("look"); ready()
        home = os.environ["HOME"]
        def call(f):
            if f["name"] == "shut":
                for p in (home + "/.cache/deep", home + "/.cache", home,
                          ack["data_dir"]):
                    os.chmod(p, 0)
                text(f["id"], oct(os.stat(ack["data_dir"]).st_mode & 0o777))
            else:
                open(home + "/new", "w").write("x")
                open(ack["data_dir"] + "/new", "w").write("x")
                text(f["id"], open(home + "/.cache/deep/granted").read())
        serve(tool_call=call)
    ''')
    w.install("shut", scope={"fs": {"read": ["~/.cache/deep/granted"]}})
    box = w.zot_home + "/zotbox/shut"
    for args in (["shut"], ["./shut", "--scope", w.path("shut.scope.json")]):
        c = w.console(args[0], call("shut"), *args[1:])
        w.equal(c.result(), "0o0", "it shuts them", c)
        c = w.console(args[0], call("look"), *args[1:])
        w.equal((c.rc, c.result()), (0, "here"), "and starts again", c)
    w.equal([oct(os.stat(box + d).st_mode & 0o700)
             for d in ("/home", "/data")], ["0o700"] * 2, "open again")
    w.console("shut", call("shut"))
    r = w.zotbox("ext", "remove", "shut", "-y")
    w.equal((r.rc, os.path.exists(box)), (0, False), "can be removed", r)


main()
