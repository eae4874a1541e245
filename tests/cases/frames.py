#!/usr/bin/env python3
"""Faults that hosts of stdio extensions are known for, in what is said over the
pipes: each test bears the id of its case and says what must hold here."""
import json
import os
import re
import resource
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *

TOOL = '''
hello("%s", "tools"); tool("t"); ready()
%s
serve(tool_call=call)
'''


def lone(name, call):
    """An extension whose tool t is @call, the body of a function of f."""
    import textwrap
    return TOOL % (name, "def call(f):\n" + textwrap.indent(
        textwrap.dedent(call).strip("\n"), "    "))


def submits(w, name):
    return w.scope(name, {"protocol": {"submit": True}})


def clean(w, c, *names):
    """What people are shown holds nothing that a terminal acts on."""
    text = c.out + c.err + "".join(w.log(n) for n in names)
    return not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


@test("A02 a byte-order mark before hello is dropped, one inside a text stays",
      needs="sandbox")
def a02(w):
    w.mkext("bom", r'''
        raw(b"\xef\xbb\xbf"); hello("bom", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: (note("a\ufeffb"), text(f["id"], "ok")))
    ''')
    c = w.console("./bom", "call t")
    w.equal((c.rc, c.result()), (0, "ok"), "it loads", c)
    # Characters of no width are shown, not passed: text for people is cleaned.
    w.equal(c.of("notify")[0].json["message"], "a\\u{feff}b",
            "three characters are still there")
    w.equal(w.log("bom").count("BOM dropped"), 1, "the log says it once")
    w.contains(c.err, "BOM dropped: the first frame was preceded by a UTF-8 "
               "byte-order mark", "and the user is told")


@test("A03 log text on stdout: before hello it fails that one, after it costs "
      "a line", needs="sandbox")
def a03(w):
    w.mkext("noisy", r'''
        raw("[db] Connected to 10.0.0.1\x1b[0m\n"); hello("noisy", "tools")
        ready(); serve()
    ''')
    w.mkext("chatty", lone("chatty", r'''
        raw("DEBUG about \x1b[1mto work\n"); text(f["id"], "ok")
    '''))
    c = w.console(["./noisy", "./chatty"], "call t")
    want = ('noisy: first stdout line is not a hello frame: "[db] Connected '
            'to 10.0.0.1\\x1b[0m" (stdout carries frames only; write logs to '
            'stderr)')
    # An extension that did not load is 1, whatever else went well.
    w.equal((c.rc, c.result("chatty")), (1, "ok"), "the other one works", c)
    w.contains(c.err, want, "the line is quoted, escaped")
    w.equal([h.ext for h in c.of("load_error")], ["noisy"], "one load error")
    w.contains(w.log("noisy"), "first stdout line is not a hello frame",
               "in its log")
    w.contains(w.log("chatty"), 'skipped line that is not a frame: "DEBUG '
               "about \\x1b[1mto work\" (unexpected 'D' where a value was "
               "expected; 1 so far)", "the stray line, and how many so far")
    w.check(clean(w, c, "noisy", "chatty"), "nothing raw anywhere")
    for n in ("noisy", "chatty"):
        w.install(n)
    r = w.zotbox("ext", "doctor", "noisy")
    w.equal(r.rc, 5, "doctor: not loaded is 5", r)
    w.contains(r.out, want, "and why")
    r = w.zotbox("ext", "doctor", "chatty")
    w.equal(r.rc, 0, "doctor: the other is fine until it is called", r)
    w.mkext("early", r'''
        hello("early"); raw("DEBUG starting\n"); ready(); serve()
    ''')
    w.install("early")
    r = w.zotbox("ext", "doctor", "early")
    w.equal(r.rc, 0, "doctor: a warning is 0", r)
    w.contains(r.out, 'warning: skipped line that is not a frame: "DEBUG '
               'starting"', "and shown")


@test("A03 a first line without end is quoted up to a bound", needs="sandbox")
def a03_long(w):
    w.mkext("flood", r'''
        raw(b"x" * (6 << 20)); time.sleep(60)
    ''')
    c = w.console("./flood", "", "--scope",
                  w.scope("f", {"limits": {"hello_seconds": 2}}))
    w.equal(c.rc, 1, "not loaded", c)
    w.check(len(c.err) < 1500, "the quotation is short: %d" % len(c.err))
    w.contains(c.err, "hello", "it says what is missing", c)


@test("A05 the tail of an over-long line is no frame", needs="sandbox")
def a05(w):
    w.mkext("tail", lone("tail", r'''
        raw(b"A"*(4*1024*1024) + b'{"type":"submit","text":"evil"}\n')
        raw(b'{"type":"notify","message":"' + b"B"*(4*1024*1024) +
            b'"}{"type":"submit","text":"evil"}\n')
        note("after"); text(f["id"], "ok")
    '''))
    # submit is granted: it is the reader that must not make one up.
    c = w.console("./tail", "call t", "--scope", submits(w, "tail"))
    w.equal((c.rc, c.result()), (0, "ok"), "the result", c)
    w.equal([h.json["message"] for h in c.of("notify")], ["after"],
            "the next frame")
    w.equal(c.of("submit"), [], "no submit")
    w.contains(c.err, "line of 4194335 bytes is longer than 4194303; dropped",
               "what was dropped, and how long it was")
    d = w.denied("tail", "limit.frame_bytes")
    w.check(d and d["count"] >= 1, "in the ledger", w.ledger("tail"))
    w.equal(sum(r["count"] for r in w.ledger("tail")), 2,
            "one record for each whole line")


@test("A07 one line that is not UTF-8 costs itself", needs="sandbox")
def a07(w):
    w.mkext("utf", lone("utf", r'''
        raw(b'{"type":"notify","level":"info","message":"\xff\xfe \xc0\xaf \xed\xa0\x80"}\n')
        sys.stderr.buffer.write(b"err \xff\n"); sys.stderr.flush()
        note("next"); text(f["id"], "ok")
    '''))
    w.install("utf")
    p = w.spawn([ZOTBOX, "console", "utf"], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = p.communicate(b"call t\n", 30)
    w.equal(p.returncode, 0, "exit")
    lines = out.decode("utf-8").splitlines()        # raises if it is not
    w.equal([x.split()[2] for x in lines], ["notify", "result"],
            "the next frame and the result", lines)
    # By the byte of the line where it begins.
    w.contains(err.decode("utf-8"), "utf: invalid UTF-8 at byte 44 of line 4; "
               'line dropped: "\\xff\\xfe', "offset, line, bytes")
    logs = subprocess.run([ZOTBOX, "ext", "logs", "utf"], env=w.env,
                          stdout=subprocess.PIPE).stdout
    w.contains(logs.decode("utf-8"), "err \\xff", "stderr is shown escaped")
    with open(os.path.join(w.zot_home, "logs/ext-utf.log"), "rb") as f:
        w.check(f.read().decode("utf-8"), "the file is UTF-8 itself")


@test("A08 only a line feed ends a line", needs="sandbox")
def a08(w):
    w.mkext("seps", lone("seps", r'''
        s = "a\u2028b\u2029c\u0085d\u000be"
        raw(json.dumps({"type":"notify","level":"info","message":s},
                       ensure_ascii=False).encode() + b"\r\n")
        raw(b'{"type":"notify",\r"level":"info","message":"cr"}\n')
        text(f["id"], s)
    '''))
    c = w.console("./seps", "call t")
    # Text for people and for the model is cleaned: the separators are shown,
    # the control characters U+0085 and U+000B go.
    shown = "a\\u{2028}b\\u{2029}cde"
    w.equal([h.json["message"] for h in c.of("notify")], [shown, "cr"],
            "two notes, each one frame", c)
    w.equal((c.rc, c.result()), (0, shown), "result")
    w.equal(len([h for h in c.lines if h.type != "denied"]), 3,
            "a line of ours each", c)
    # What was taken out is on record; of the lines nothing is.
    w.equal({r["target"] for r in w.ledger("seps")},
            {"notify.message", "tool_result.text"}, "no other record")
    w.check("skipped" not in w.log("seps") and "skipped" not in c.err,
            "each is a frame", c)


DUP = (
    # two readers: one takes the first copy, the other the last
    r'{"type":"notify","level":"info","message":"m","text":"evil","type":"submit"}',
    r'{"type":"submit","text":"evil","level":"info","message":"m","type":"notify"}',
    r'{"type":"notify","message":"m","\u0074ype":"submit","text":"evil"}',
    r'{"type":"notify","message":"m","TYPE":"submit","text":"evil"}',
    r'{"type":"submit","text":"fine","Text":"!evil"}',
)


@test("A11 a key that is there twice: the frame is refused whole",
      needs="sandbox")
def a11(w):
    w.mkext("dup", lone("dup", "for line in %r: raw(line + '\\n')\n"
                        "text(f['id'], 'ok')" % (DUP,)))
    c = w.console("./dup", "call t", "--scope", submits(w, "dup"))
    w.equal((c.rc, [h.type for h in c.lines if h.type != "denied"]),
            (0, ["result"]), "the result only, though submit is granted", c)
    w.contains(c.err, 'dup: duplicate key "type" in a frame; refused',
               "said so")
    # The record has the start of the line, and so both copies.
    asked = [r["asked"] for r in w.ledger("dup") if r["op"] == "proto.frame"]
    w.check(asked and '"notify"' in asked[0] and "submit" in asked[0],
            "in the ledger, with the bytes", w.ledger("dup"))
    w.equal(sum(r["count"] for r in w.ledger("dup")), len(DUP), "each of them")
    w.check(all(r["decided_by"] == "mediator" and r["grant"] is None and
                "key" in r["rule"] for r in w.ledger("dup")),
            "the reason is the key, and no grant would help",
            w.ledger("dup"))


@test("A11 inside modified_args: the rewrite is refused, not half of it",
      needs="sandbox")
def a11_args(w):
    w.mkext("dup", r'''
        hello("dup"); emit(type="subscribe", events=[],
                           intercept=["tool_call"]); ready()
        serve(event_intercept=lambda f: raw(
            '{"type":"event_intercept_response","id":"%s","modified_args":'
            '{"command":"ls","command":"evil"}}\n' % f["id"]))
    ''')
    ask = intercept("tool_call", tool_name="look", tool_args={"command": "a"})
    rules = {"protocol": {"intercept": {"tool_call": ["modify:look"]}}}
    c = w.console("./dup", ask, "--scope", w.scope("dup", rules))
    w.equal([(h.type, h.json.get("modified_args")) for h in c.of("allow")],
            [("allow", None)], "allowed unchanged", c)
    w.contains(c.err, "duplicate key", "and said")


@test("A13 deep nesting is refused early, also on a small stack",
      needs="sandbox")
def a13(w):
    w.mkext("deep", lone("deep", r'''
        for n in (10_000, 100_000, 1_000_000):
            raw(b'{"type":"notify","level":"info","message":"x","z":' + b"["*n
                + b"]"*n + b"}\n")
        raw(b'{"a":'*100_000 + b"\n"); text(f["id"], "ok")
    '''))

    def small():
        resource.setrlimit(resource.RLIMIT_STACK, (256 << 10, 256 << 10))
    r = w.zotbox("console", w.path("deep"), input="call t\n",
                 preexec_fn=small)
    c = Console(r)
    w.equal((c.rc, c.result()), (0, "ok"), "it lives", c)
    w.equal(c.of("notify"), [], "no note")
    w.equal(len(re.findall(r"deep: JSON nesting deeper than \d+ at byte \d+ "
                           r"of line \d+; line dropped", c.err)), 4,
            "one line each", c.err[:2000])


@test("A13 a manifest and a scope that are too deep are malformed",
      needs="sandbox")
def a13_files(w):
    w.mkext("mani", "serve()")
    w.write("mani/extension.json", '{"name":"mani","exec":"./main.py","z":' +
            "[" * 5000 + "]" * 5000 + "}")
    r = w.zotbox("ext", "install", w.path("mani"), "--yes")
    w.equal(r.rc, 2, "install of the manifest", r)
    w.contains(r.err, "nested more than 256 deep", "says why")
    w.mkext("fine", "serve()")
    w.write("deep.json", '{"zotbox":1,"fs":' + "[" * 5000 + "]" * 5000 + "}")
    r = w.zotbox("ext", "install", w.path("fine"), "--scope",
                 w.path("deep.json"), "--yes")
    w.equal(r.rc, 2, "install with the scope", r)
    w.contains(r.err, "nested more than 256 deep", "says why")
    there = os.path.join(w.zot_home, "extensions")
    w.check(not os.path.exists(there) or not os.listdir(there),
            "nothing is left")


@test("A14 numbers keep their digits, both ways", needs="sandbox")
def a14(w):
    w.mkext("num", r'''
        hello("num", "tools"); tool("t"); ready()
        for l in sys.stdin.buffer:
            if b'"tool_call"' in l:
                f = json.loads(l)
                note(l.decode())
                raw('{"type":"tool_result","id":%s,"content":[{"type":"text",'
                    '"text":"ok"}],"structured_content":{"n":'
                    '12345678901234567890,"e":1e400,"z":-0.0}}\n' %
                    json.dumps(f["id"]))
            if b'"shutdown"' in l: emit(type="shutdown_ack"); break
    ''')
    args = '{"a":9007199254740993,"b":12345678901234567890,"c":1e400,' \
           '"d":-0.0,"e":1.10}'
    c = w.console("./num", "call t " + args)
    w.equal(c.rc, 0, "exit", c)
    w.contains(c.of("notify")[0].json["message"], args,
               "to the extension, byte for byte")
    w.contains(c.out, '{"n":12345678901234567890,"e":1e400,"z":-0.0}',
               "from it")
    w.equal(c.err, "", "and nothing is said of it")


@test("A14 modified_args keep their digits", needs="sandbox")
def a14_args(w):
    w.mkext("num", r'''
        hello("num"); emit(type="subscribe", events=[],
                           intercept=["tool_call"]); ready()
        serve(event_intercept=lambda f: raw(
            '{"type":"event_intercept_response","id":"%s","modified_args":'
            '{"n":9007199254740993,"e":1.10}}\n' % f["id"]))
    ''')
    rules = {"protocol": {"intercept": {"tool_call": ["modify:look"]}}}
    c = w.console("./num", intercept("tool_call", tool_name="look",
                                     tool_args={}), "--scope",
                  w.scope("num", rules))
    w.contains(c.out, '"modified_args":{"n":9007199254740993,"e":1.10}', "",
               c)


@test("A15 only the very id of an open call is an answer", needs="sandbox")
def a15(w):
    w.mkext("ids", lone("ids", r'''
        i = f["id"]
        for j in (0, 1, None, True, [i], {"id": i}, i + " ", i.upper() + "x",
                  "", 0):
            emit(type="tool_result", id=j,
                 content=[{"type":"text","text":"wrong"}])
        emit(type="tool_result", meta={"id": i},
             content=[{"type":"text","text":"nested"}])
        emit(type="command_response", id=i, action="noop")
        text(i, "right")
    '''))
    c = w.console("./ids", 'call t {"id":"x","type":"shutdown"}')
    w.equal((c.rc, [h.text() for h in c.of("result")]), (0, ["right"]),
            "one result", c)
    w.equal([h.type for h in c.lines if h.type != "denied"], ["result"],
            "and nothing else is resolved", c)
    w.equal(c.err.count("ids: tool_result for unknown id 0; dropped"), 1,
            "each wrong one is said once", c)
    for shown in ("1", "true", "["):
        w.contains(c.err, "tool_result for unknown id " + shown)
    w.contains(c.err, "command_response for unknown id", "of another kind")


@test("A16 a late reply answers no other call", needs="sandbox")
def a16(w):
    w.mkext("late", '''
        hello("late", "tools"); tool("t"); ready(); n = [0]
        def call(f):
            n[0] += 1
            if n[0] == 1: time.sleep(2.5)
            text(f["id"], "FIRST" if n[0] == 1 else "SECOND")
        serve(tool_call=call)
    ''')
    # The second call waits 1.5 s in the extension's queue: the limit of the
    # case, 1 s, would end it as well; so it is asked for again.
    c = w.console("./late", ["call t", "sleep 1.6", "call t", "sleep 0.2"],
                  "--scope", w.scope("late", {"limits": {"tool_seconds": 1}}))
    w.equal([h.type for h in c.lines], ["error", "result"], "", c)
    w.equal(c.lines[0].json["error"], "t timed out after 1 s (extension late)",
            "the first call")
    w.equal(c.result(), "SECOND", "the second call")
    # A call that timed out is 1.
    w.equal(c.rc, 1, "exit")
    w.check(re.search(r"late tool_result for \S+ \(1\.\d s overdue\); dropped",
                      w.log("late")), "how late it was", w.log("late"))
    w.contains(w.log("late"), "t timed out after 1 s", "both are in the log")


@test("A17 ten megabytes on stderr stop nobody", needs="sandbox")
def a17(w):
    w.mkext("loud", '''
        sys.stderr.write("h" * 300_000 + "\\n"); hello("loud", "tools")
        tool("t"); ready()
        def call(f):
            for _ in range(160): sys.stderr.write("x" * 65535 + "\\n")
            sys.stderr.write("LAST\\n"); sys.stderr.flush()
            text(f["id"], "ok")
        serve(tool_call=call)
        sys.stderr.write("y" * 300_000 + "\\nEND\\n")
    ''')
    c = w.console("./loud", ["call t", "sleep 0.2"], "--scope",
                  w.scope("loud", {"limits": {"log_bytes": "1M"}}))
    w.equal((c.rc, c.result()), (0, "ok"), "the result", c)
    w.check(c.of("result")[0].at < 5, "soon: %.1f s" % c.of("result")[0].at)
    log = w.log("loud")
    w.check(len(log) < 3 << 20, "about a megabyte of log: %d" % len(log))
    w.contains(log, "\nLAST\n", "the newest is there")
    w.contains(log, "\nEND\n", "also what came during shutdown")
    w.check(re.search(r"\d+ bytes dropped", log), "and how much went")


@test("A18 one that does not read its stdin is marked, others go on",
      needs="sandbox")
def a18(w):
    w.mkext("deaf", '''
        hello("deaf", "tools"); tool("d")
        emit(type="subscribe", events=["assistant_message"], intercept=[])
        ready()
        while True: note("x"*60_000); time.sleep(0.05)
    ''')
    w.mkext("other", '''
        hello("other", "tools"); tool("o"); ready()
        serve(tool_call=lambda f: text(f["id"], "ok"))
    ''')
    big = event("assistant_message", text="y" * 600_000)
    c = w.console(["./deaf", "./other"], [big] * 8 + ["call o", "call d",
                                                      "shutdown"], "--scope",
                  w.scope("deaf", {"protocol": {
                      "events": ["assistant_message"],
                      "event_content": True}}))
    said = "deaf is not reading its stdin (1048576 bytes queued)"
    w.contains(c.err, said, "said", c)
    w.equal(c.result("other"), "ok", "the other one answers")
    w.equal(c.of("error", "deaf")[0].json["error"], said,
            "its own calls fail at once")
    gap = c.of("error")[0].at - c.of("result")[0].at
    w.check(abs(gap) < 0.1, "both within 100 ms: %.3f" % gap)
    w.check(c.secs < 7, "shutdown ends: %.1f s" % c.secs)
    w.contains(w.log("deaf"), "not delivered, its queue is full: "
               "assistant_message", "what was lost is in its log")


@test("A20 what is written just before the exit arrives", needs="sandbox")
def a20(w):
    w.mkext("burst", '''
        hello("burst", "tools"); tool("t"); ready()
        def call(f):
            if os.fork() == 0:
                for i in range(2000):
                    note("n%d" % i)
                    if i % 200 == 0: time.sleep(0.04)
                text(f["id"], "end"); os._exit(0)
            os._exit(0)
        serve(tool_call=call)
    ''')
    c = w.console("./burst", "call t")
    w.equal([h.json["message"] for h in c.of("notify")],
            ["n%d" % i for i in range(2000)], "every note, in order", c)
    w.equal(c.result(), "end", "and the result")
    # An extension that died is 1, though its answer came.
    w.equal((c.rc, c.lines[-1].type, c.lines[-1].json["status"]),
            (1, "exit", 0), "the exit comes after the last frame", c)
    w.contains(w.log("burst"), "burst exited with status 0", "in the log")


@test("A26 CRLF in the first line of the program", needs="sandbox")
def a26(w):
    w.mkext("crlf", 'hello("crlf"); ready(); serve()')
    main = w.path("crlf/main.py")
    with open(main, "rb") as f:
        body = f.read().replace(b"\n", b"\r\n")
    with open(main, "wb") as f:
        f.write(body)
    want = 'main.py line 1 ends in CRLF: interpreter "%s\\r" does not exist ' \
           "(convert the file to LF)" % PYTHON
    # Such a program cannot start anywhere: malformed, not installed.
    r = w.zotbox("ext", "install", w.path("crlf"), "--yes")
    w.equal(r.rc, 2, "install", r)
    w.contains(r.err, "crlf: " + want, "says what to do")
    # One that got its line ends later, as an editor leaves it.
    with open(main, "wb") as f:
        f.write(body.replace(b"\r\n", b"\n"))
    w.install("crlf")
    installed = os.path.join(w.zot_home, "extensions/crlf/main.py")
    with open(installed, "wb") as f:
        f.write(body)
    r = w.zotbox("ext", "doctor", "crlf")
    w.equal(r.rc, 5, "doctor", r)
    w.contains(r.out, "main.py", "names the file")
    # Unwrapped: zot would start it and say "no such file".
    w.zotbox("ext", "unwrap", "crlf")
    r = w.zotbox("ext", "doctor", "crlf")
    w.equal(r.rc, 5, "doctor of the bare one", r)
    w.contains(r.out, want, "the same text")
    c = w.console(installed[:-len("main.py")], "")
    w.equal(c.rc, 2, "console", c)
    w.contains(c.err, "crlf: " + want, "the same text")
    with open(installed, "rb") as f:
        w.equal(f.read(), body, "the file is as it was")


main()
