#!/usr/bin/env python3
"""One extension that misbehaves costs itself: deaths, stubbornness, guards that
are late or lost, reloads. (Noise, floods, deafness, late answers: tests/cases.)
"""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *

OTHER = '''
    hello("other", "tools"); tool("o"); ready()
    serve(tool_call=lambda f: text(f["id"], "ok"))
'''


@test("deaths are named and reported", needs="sandbox")
def deaths(w):
    w.mkext("dies", '''
        hello("dies", "tools"); tool("d"); ready()
        def call(f):
            if f["args"].get("signal"): os.kill(os.getpid(), 11)
            os._exit(7)
        serve(tool_call=call)
    ''')
    w.mkext("other", OTHER)
    c = w.console(["./dies", "./other"], ["call d", "call d", "call o"])
    w.equal(c.rc, 1, "exit", c)
    w.equal([(h.ext, h.type) for h in c.lines],
            [("dies", "exit"), ("dies", "error"), ("dies", "error"),
             ("other", "result")], "lines", c)
    w.equal(c.lines[1].json["error"], "dies exited with status 7")
    w.contains(c.lines[2].json["error"], "dies exited with status 7",
               "later calls fail at once, with the reason")
    c = w.console("./dies", 'call d {"signal": 1}')
    w.contains(c.lines[1].json["error"], "dies ended by signal 11")
    w.equal(c.of("exit")[0].json["signal"], 11)
    w.mkext("early", 'print("no module", file=sys.stderr); sys.exit(23)')
    c = w.console("./early", "")
    w.equal(c.rc, 1, "failed to load", c)
    w.contains(c.err, "early exited with status 23 before hello; its standard "
               "error begins: no module (log: ")
    w.mkext("closes", "os.close(1); time.sleep(60)")
    c = w.console("./closes", "")
    w.contains(c.err, "closes closed stdout before hello without exiting")
    w.mkext("never", "time.sleep(60)")
    c = w.console("./never", "", "--scope",
                  w.scope("never", {"limits": {"hello_seconds": 1}}))
    w.contains(c.err, "never sent no hello within 1 s", "", c)
    w.check(w.denied("never", "limit.hello_seconds"), "in the ledger")


@test("kill, and shutdown that is ignored", needs="sandbox")
def ends(w):
    w.mkext("stub", '''
        hello("stub", "tools"); tool("t"); ready()
        while True: time.sleep(1)
    ''')
    c = w.console("./stub", "shutdown")
    w.check(1.8 < c.secs < 5, "killed after 2 s: %.1f" % c.secs, c)
    w.equal(c.rc, 0, "which is no fault of the script", c)
    w.contains(c.err, "stub did not end within 2 s of shutdown")
    w.mkext("other", OTHER)
    c = w.console("./other", ["kill other 9", "sleep 0.5", "call o"])
    w.equal([h.type for h in c.lines], ["exit", "error"], "kill", c)
    w.equal(c.lines[0].json["signal"], 9)


@test("noticed at once when everything ends", needs="sandbox", seconds=120)
def quick(w):
    w.mkext("qx", '''
        hello("qx", "tools"); tool("t"); ready()
        def call(f):
            for i in range(50):
                if os.fork() == 0:
                    try: open("/etc/shadow")
                    except OSError: pass
                    os._exit(0)
            os._exit(0)
        serve(tool_call=call)
    ''')
    slow = 0
    for i in range(10):
        c = w.console("./qx", "call t", timeout=20)
        slow += c.secs > 3 or c.rc != 1
    w.equal(slow, 0, "ten times", c)


@test("repeats are counted while they go on", needs="sandbox")
def counting(w):
    w.mkext("dd", '''
        hello("dd"); ready()
        for i in range(16):
            try: open("/etc/shadow")
            except OSError: pass
            time.sleep(0.5)
        serve()
    ''')
    p = w.spawn([ZOTBOX, "console", w.path("dd")], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    p.stdin.write(b"sleep 12\n")
    p.stdin.flush()
    counts = []
    for wait in (4, 3):
        time.sleep(wait)
        r = w.denied("dd", "fs.read", "/etc/shadow")
        counts.append(r["count"] if r else 0)
    p.stdin.close()
    p.wait(20)
    counts.append(w.denied("dd", "fs.read", "/etc/shadow")["count"])
    w.check(2 <= counts[0] < counts[1] < counts[2], "it grows: %s" % counts)
    w.equal(counts[2], 16, "and the total is exact")


@test("a guard that is too slow", needs="sandbox")
def slow_guard(w):
    w.mkext("g", '''
        hello("g"); emit(type="subscribe", events=[], intercept=["tool_call"])
        ready(); n = [0]
        def ic(f):
            n[0] += 1; time.sleep(2.5 if n[0] == 1 else 0)
            emit(type="event_intercept_response", id=f["id"],
                 block=n[0] == 1, reason="late")
        serve(event_intercept=ic)
    ''')
    rules = {"protocol": {"intercept": {"tool_call": ["block"]}},
             "limits": {"intercept_seconds": 1}}
    ask = intercept("tool_call", tool_name="bash", tool_args={"command": "a"})
    c = w.console("./g", [ask, "sleep 2", ask], "--scope", w.scope("a", rules))
    w.equal([h.type for h in c.lines], ["allow", "allow"], "allowed", c)
    w.equal(c.lines[0].json["by"], [{"extension": "g", "outcome": "timeout"}],
            "and reported")
    w.equal(c.rc, 0, "exit")
    w.contains(c.err, 'guard "g" gave no answer in 1 s for tool_call bash; '
               'allowed', "said to the user")
    w.contains(w.log("g"), "late event_intercept_response", "the late block")
    rules["protocol"]["on_failure"] = "block"
    c = w.console("./g", [ask, "sleep 2", ask], "--scope", w.scope("b", rules))
    w.equal([h.type for h in c.lines], ["block", "allow"], "on_failure", c)
    w.contains(c.lines[0].json["reason"], 'guard "g" gave no answer in 1 s '
               "for tool_call bash; blocked")


@test("a guard that did not load, and one that died", needs="sandbox")
def lost_guard(w):
    w.mkext("fw", '''
        if os.path.exists(os.path.join(os.path.dirname(
                os.path.abspath(__file__)), "broken")):
            raise ImportError("no module named shared")
        hello("fw"); emit(type="subscribe", events=[], intercept=["tool_call"])
        ready()
        serve(event_intercept=lambda f: emit(type="event_intercept_response",
            id=f["id"], block="rm" in f["tool_args"]["command"], reason="fw"))
    ''')
    scope = w.scope("fw", {"protocol": {
        "intercept": {"tool_call": ["block"]}, "on_failure": "block"}})
    ask = intercept("tool_call", tool_name="bash", tool_args={"command": "ls"})
    c = w.console("./fw", ask, "--scope", scope)
    w.equal([h.type for h in c.lines], ["allow"], "while it works", c)
    w.write("fw/broken", "")
    c = w.console("./fw", [ask, intercept("turn_start")], "--scope", scope)
    w.equal([h.type for h in c.lines], ["load_error", "block", "allow"],
            "not loaded", c)
    w.equal(c.lines[1].json["reason"],
            'required guard "fw" is not running (exited with status 1 before '
            'hello); tool calls are blocked')
    os.unlink(w.path("fw/broken"))
    c = w.console("./fw", [ask, "kill fw 9", "sleep 0.5", ask], "--scope",
                  scope)
    w.equal([h.type for h in c.lines], ["allow", "exit", "block"], "died", c)


@test("reload drops what the old instance says", needs="sandbox")
def old_frames(w):
    w.mkext("co", '''
        import threading
        hello("co", "commands", "panels"); cmd("pause"); ready()
        def late(f):
            note("late"); emit(type="command_response", id=f["id"],
                               action="prompt", prompt="late")
        while True:
            f = recv()
            if f["type"] == "command_invoked":
                threading.Timer(0.5, late, [f]).start()
            if f["type"] == "shutdown":
                time.sleep(1); emit(type="shutdown_ack"); os._exit(0)
    ''')
    c = w.console("./co", ["cmd pause &", "sleep 0.2", "reload co",
                           "sleep 1"])
    w.equal([h.type for h in c.lines], ["reload"], "nothing late", c)
    w.equal(c.lines[0].json, {"stopped": 1, "loaded": 1, "ready": 1,
                              "errors": []}, "what reload says")
    w.equal(c.rc, 0, "no error", c)
    w.contains(w.log("co"), "from the previous instance; dropped")


@test("signals end it in good order", needs="sandbox")
def signals(w):
    w.mkext("s", '''
        hello("s"); ready(); serve(); print("bye", file=sys.stderr)
    ''')
    p = w.spawn([ZOTBOX, "console", w.path("s")], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE)
    p.stdin.write(b"exts\nsleep 30\n")
    p.stdin.flush()
    p.stdout.readline()
    p.send_signal(signal.SIGTERM)
    w.equal(p.wait(10), 128 + 15, "exit status")
    w.contains(w.log("s"), "bye", "the extension said goodbye")


main()
