#!/usr/bin/env python3
"""How wrap ends, and that everything ends with it; back-pressure; guards."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *


def gone(pid, seconds=2):
    end = time.time() + seconds
    while time.time() < end:
        if not os.path.exists("/proc/%d" % pid):
            return True
        time.sleep(0.02)
    return False


def running(w, name):
    """Host pids of the extension's processes."""
    path = os.path.join(w.zot_home, "extensions", name, "main.py").encode()
    found = []
    for n in os.listdir("/proc"):
        try:
            with open("/proc/%s/cmdline" % n, "rb") as f:
                if path in f.read():
                    found.append(int(n))
        except (OSError, ValueError):
            pass
    return found


@test("exit status and signals are mirrored", needs="sandbox")
def mirrored(w):
    w.mkext("m", '''
        hello("m", "tools"); tool("t"); ready()
        def call(f):
            a = f["args"]
            if "signal" in a: os.kill(os.getpid(), a["signal"])
            os._exit(a["status"])
        serve(tool_call=call)
    ''')
    w.install("m")
    for args, want in (({"status": 0}, 0), ({"status": 7}, 7),
                       ({"signal": 9}, -9), ({"signal": 11}, -11),
                       ({"signal": 15}, -15)):
        p = w.wrap("m")
        p.handshake()
        p.until("ready")
        p.send({"type": "tool_call", "id": "1", "name": "t", "args": args})
        start = time.time()
        w.equal(p.wait(), want, str(args))
        w.check(time.time() - start < 1.5, "at once")
    w.check(not [n for n in os.listdir(w.project) if "core" in n], "no core")


@test("the last frames come before the exit", needs="sandbox")
def burst(w):
    w.mkext("burst", '''
        hello("burst", "tools"); tool("t"); ready()
        def call(f):
            if os.fork() == 0:
                for i in range(500):
                    note("n%d" % i)
                    if i % 100 == 0: time.sleep(0.1)
                text(f["id"], "end"); os._exit(0)
            os._exit(3)
        serve(tool_call=call)
    ''')
    w.install("burst")
    p = w.wrap("burst")
    p.handshake()
    p.until("ready")
    p.send({"type": "tool_call", "id": "1", "name": "t", "args": {}})
    r = p.until("tool_result")
    w.equal(len([f for f in p.seen if f["type"] == "notify"]), 500, "all")
    w.equal(r["content"][0]["text"], "end", "and the result")
    w.equal(p.wait(), 3, "then its status")


STUBBORN = '''
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        while True: time.sleep(1)
    hello("stub"); ready()
    while True: time.sleep(1)
'''


@test("one that ignores shutdown", needs="sandbox")
def stubborn(w):
    w.mkext("stub", STUBBORN)
    w.install("stub")
    p = w.wrap("stub")
    p.handshake()
    p.until("ready")
    w.check(len(running(w, "stub")) >= 2, "control: two processes")
    start = time.time()
    rc = p.shutdown()
    took = time.time() - start
    w.check(1.3 < took < 1.9, "1.5 s from shutdown, then gone: %.2f" % took)
    w.equal(rc, -9, "as killed")
    w.equal(running(w, "stub"), [], "everything")
    w.contains(w.log("stub"), "did not end within 1.5 s of shutdown")


@test("SIGTERM, and end of input without shutdown", needs="sandbox")
def at_once(w):
    w.mkext("stub", STUBBORN)
    w.install("stub")
    p = w.wrap("stub")
    p.handshake()
    p.until("ready")
    start = time.time()
    os.kill(p.pid, signal.SIGTERM)
    w.equal(p.wait(), -15, "SIGTERM")
    w.check(time.time() - start < 0.6, "at once: %.2f" %
            (time.time() - start))
    w.equal(running(w, "stub"), [], "everything")
    p = w.wrap("stub")
    p.handshake()
    p.until("ready")
    start = time.time()
    p.close()
    p.wait()
    w.check(time.time() - start < 0.6, "end of input: %.2f" %
            (time.time() - start))
    w.equal(running(w, "stub"), [], "everything")


@test("killed: nothing is left", needs="sandbox")
def killed(w):
    w.mkext("stub", STUBBORN)
    w.install("stub")
    p = w.wrap("stub")
    p.handshake()
    p.until("ready")
    before = running(w, "stub")
    os.kill(p.pid, signal.SIGKILL)
    p.wait()
    w.check(len(before) >= 2 and all(gone(n) for n in before),
            "within 2 s", before)


@test("ended before hello, and no hello at all", needs="sandbox")
def no_hello(w):
    w.mkext("x23", 'print("no module", file=sys.stderr); sys.exit(23)')
    w.install("x23")
    p = w.wrap("x23")
    w.equal((p.recv(), p.wait()), (None, 23), "nothing on stdout, its status")
    w.contains(w.log("x23"), "no module", "its stderr is in the log")
    w.contains(w.log("x23"), "[zotbox] x23 exited with status 23 before hello")
    w.mkext("noisy", 'raw("Connected\\n"); hello("noisy"); serve()')
    w.install("noisy")
    p = w.wrap("noisy")
    w.equal((p.recv(), p.wait()), (None, 1), "text first")
    w.contains(w.log("noisy"), 'first stdout line is not a hello frame: '
               '"Connected"')
    w.mkext("never", "time.sleep(60)")
    w.install("never", scope={"limits": {"hello_seconds": 1}})
    p = w.wrap("never")
    start = time.time()
    w.equal(p.recv(), None, "no hello")
    w.check(time.time() - start < 3, "not longer than hello_seconds")
    p.wait()
    w.contains(w.log("never"), "sent no hello within 1 s")


@test("a host that does not read", needs="sandbox")
def slow_host(w):
    w.mkext("fl", '''
        hello("fl", "tools"); tool("t"); ready()
        def call(f):
            for i in range(3): emit(type="notify", level="info",
                                    message="%d" % i + "x" * 2000000)
            text(f["id"], "end")
        serve(tool_call=call)
    ''')
    w.install("fl")
    p = w.wrap("fl")
    p.handshake()
    p.until("ready")
    p.send({"type": "tool_call", "id": "1", "name": "t", "args": {}})
    time.sleep(1)
    r = p.until("tool_result", 20)
    notes = [f["message"][0] for f in p.seen if f["type"] == "notify"]
    w.equal((notes, r["content"][0]["text"]), (["0", "1", "2"], "end"),
            "nothing is lost, in order")
    with open("/proc/%d/status" % p.pid) as f:
        rss = [int(x.split()[1]) for x in f if x.startswith("VmRSS")][0]
    w.check(rss < 40000, "and little is kept: %d kB" % rss)
    p.shutdown()


@test("an extension that does not read", needs="sandbox")
def deaf(w):
    w.mkext("deaf", '''
        hello("deaf", "tools"); tool("t"); ready(); time.sleep(2)
        serve(tool_call=lambda f: text(f["id"], str(len(f["args"]["x"]))))
    ''')
    w.install("deaf")
    p = w.wrap("deaf")
    p.handshake()
    p.until("ready")
    os.set_blocking(p.p.stdin.fileno(), False)
    line = b'{"type":"tool_call","id":"%d","name":"t","args":{"x":"' + \
        b"y" * 500000 + b'"}}\n'
    data = b"".join(line.replace(b"%d", b"%d" % i) for i in range(12))
    sent, end = 0, time.time() + 1
    while sent < len(data) and time.time() < end:
        try:
            sent += os.write(p.p.stdin.fileno(), data[sent:sent + 65536])
        except BlockingIOError:
            time.sleep(0.01)
    w.check(sent < len(data), "the host is held back at %d" % sent)
    os.set_blocking(p.p.stdin.fileno(), True)
    p.p.stdin.write(data[sent:])
    p.p.stdin.flush()
    got = [p.until("tool_result")["id"] for _ in range(12)]
    w.equal(got, [str(i) for i in range(12)], "every call arrives, in order")
    w.equal(p.shutdown(), 0, "exit")
    p = w.wrap("deaf")
    p.handshake()
    p.until("ready")
    os.set_blocking(p.p.stdin.fileno(), False)
    try:
        for _ in range(200):
            os.write(p.p.stdin.fileno(), data[:65536])
    except BlockingIOError:
        pass
    start = time.time()
    p.p.stdin.close()
    p.wait()
    w.check(time.time() - start < 1.5, "the host's end is noticed meanwhile: "
            "%.2f" % (time.time() - start))


GUARD = '''
    hello("g"); emit(type="subscribe", events=["turn_end"],
                     intercept=["tool_call"]); ready()
    def ic(f):
        c = f["tool_args"]["command"]
        if c == "die": os._exit(9)
        if c == "slow": time.sleep(6); return
        emit(type="event_intercept_response", id=f["id"], block=c == "rm",
             reason="fw")
    serve(event_intercept=ic)
'''
SCOPE = {"protocol": {"events": ["turn_end"], "on_failure": "block",
                      "intercept": {"tool_call": ["block"],
                                    "turn_start": ["block"]}}}


def ask(p, n, what, event="tool_call"):
    p.send({"type": "event_intercept", "id": "i%d" % n, "event": event,
            "tool_name": "bash", "tool_args": {"command": what}})
    return p.until("event_intercept_response")


@test("a guard whose failure blocks", needs="sandbox")
def guard(w):
    w.mkext("g", GUARD)
    w.install("g", "strict", SCOPE, "--yes-i-mean-it")
    p = w.wrap("g")
    p.handshake()
    subs = [p.until("subscribe") for _ in range(2)]
    w.equal([s["intercept"] for s in subs],
            [["tool_call", "turn_start"]] * 2, "it subscribes what is granted")
    w.equal(subs[1]["events"], ["turn_end"], "and the extension's events")
    p.until("ready")
    w.check(not ask(p, 1, "ls").get("block"), "it allows")
    w.check(ask(p, 2, "rm")["block"], "it blocks")
    r = ask(p, 3, "x", "turn_start")
    w.check(not r.get("block"), "what it does not watch is allowed", r)
    start = time.time()
    r = ask(p, 4, "slow")
    took = time.time() - start
    w.equal(r["block"], True, "no answer: blocked")
    w.check(4.2 < took < 4.9, "before the host's own 5 s: %.2f" % took)
    w.contains(r["reason"], 'required guard "g" gave no answer in 4.5 s; '
               'blocked: tool_call bash')
    p.send({"type": "event_intercept", "id": "i5", "event": "tool_call",
            "tool_name": "bash", "tool_args": {"command": "die"}})
    r = p.until("event_intercept_response", 15)
    w.equal((r["id"], r["block"]), ("i5", True), "it died: blocked", r)
    w.contains(r["reason"], "is not running (exited with status 9)")
    w.check(ask(p, 6, "ls")["block"], "and from then on")
    w.equal(p.shutdown(), 9, "until shutdown, then its status")
    w.contains(w.log("g"), "gave no answer in 4.5 s for tool_call bash; "
               "blocked")


main()
