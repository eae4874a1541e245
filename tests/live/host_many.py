#!/usr/bin/env python3
"""zotbox host with many extensions: every reply to its own call, and bad
neighbours that nobody notices; a client that does not read."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *
from zbhost import *

CALLS = int(os.environ.get("ZB_HOST_CALLS", "10000"))

COUNT = '''
    hello("%s", "tools"); tool("t%s"); ready()
    serve(tool_call=lambda f: text(f["id"], "%s:%%d" %% f["args"]["n"]))
'''


def rss_kb(pid):
    with open("/proc/%d/status" % pid) as f:
        for line in f:
            if line.startswith("VmRSS"):
                return int(line.split()[1])
    return 0


def said(r):
    d = data(r)
    return d if isinstance(d, str) else "".join(
        b.get("text", "") for b in d["content"])


def up(h):
    """All are ready; those too that the machine was too busy to let register
    in time, with the next turn."""
    return h.ready(60) and h.ask("event", event="turn_end",
                                 stop="end")["success"]


@test("pipelined calls over twenty extensions", needs="sandbox", seconds=180)
def pipelined(w):
    names = ["e%d" % i for i in range(20)]
    for n in names:
        w.mkext(n, COUNT % (n, n, n))
    h = Host(w, *["./" + n for n in names])
    w.check(up(h), "all ready")
    w.equal(len(h.events("ext_ready")), 20, "twenty of them")
    start = time.time()
    want, sent = {}, 0
    h.replies.clear()
    while sent < CALLS:
        batch = b""
        for i in range(sent, min(sent + 200, CALLS)):
            name = names[i * 7 % 20]
            want["c%d" % i] = "%s:%d" % (name, i)
            batch += json.dumps({"id": "c%d" % i, "type": "tool_call", "name":
                                 "t" + name, "args": {"n": i}}).encode() + b"\n"
            sent += 1
        # Not all at once into a pipe that nobody empties.
        at = 0
        while at < len(batch):
            at += h.p.stdin.write(batch[at:at + 8192])
            while h.read(0):
                pass
    end = time.time() + 120
    while sum(map(len, h.replies.values())) < CALLS and time.time() < end:
        if not h.read(1) and h.ended:
            break
    w.note("%d calls in %.2f s" % (CALLS, time.time() - start))
    w.equal(len(h.replies), CALLS, "every call is answered")
    wrong = [k for k, v in want.items()
             if len(h.replies.get(json.dumps(k), [])) != 1 or
             said(h.replies[json.dumps(k)][0]) != v]
    w.equal(wrong[:5], [], "each with its own answer, once")
    h.replies.clear()
    w.equal(h.shutdown(), 0, "exit", h.err)
    w.equal(h.faults, [], "every line fits the schema")


@test("more than the usual limit of descriptors allows", needs="sandbox",
      seconds=90)
def descriptors(w):
    import resource
    names = ["e%d" % i for i in range(30)]
    for n in names:
        w.mkext(n, COUNT % (n, n, n))

    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (
            256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    h = Host(w, *["./" + n for n in names], before=lower)
    w.check(up(h), "all ready")
    w.equal([e["error"] for e in h.events("ext_load_error")][:1], [],
            "none is missing")
    w.check(len(os.listdir("/proc/%d/fd" % h.p.pid)) > 256, "control: it is "
            "more than the limit it was started with")
    w.equal(h.shutdown(), 0, "exit", h.err)


@test("late answers", needs="sandbox")
def late(w):
    w.mkext("l", '''
        import threading
        hello("l", "tools"); tool("t"); ready()
        def call(f):
            def answer(): text(f["id"], str(f["args"]["n"]))
            threading.Timer(f["args"]["s"], answer).start()
        serve(tool_call=call)
    ''')
    h = Host(w, "./l")
    up(h)
    slow = [h.send("tool_call", name="t", args={"n": i, "s": 0.5},
                   timeout_ms=50 + i) for i in range(50)]
    fast = [h.send("tool_call", name="t", args={"n": i, "s": 0.6})
            for i in range(100, 150)]
    w.equal({h.reply(i).get("code") for i in slow}, {"timeout"},
            "given up")
    w.equal([said(h.reply(i)) for i in fast], [str(i) for i in range(100, 150)],
            "no late answer takes the place of another")
    w.equal(h.shutdown(), 0, "exit", h.err)


@test("bad neighbours", needs="sandbox", seconds=90)
def neighbours(w):
    w.mkext("deaf", '''
        hello("deaf", "tools"); tool("tdeaf"); ready()
        while True: time.sleep(9)
    ''')
    w.mkext("flood", '''
        hello("flood", "tools"); tool("tflood"); ready()
        while True: note("x" * 200)
    ''')
    w.mkext("dies", '''
        hello("dies", "tools"); tool("tdies"); ready()
        serve(tool_call=lambda f: os.kill(os.getpid(), 9))
    ''')
    w.mkext("stays", '''
        import signal
        for s in (signal.SIGTERM, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)
        hello("stays", "tools"); tool("tstays"); ready()
        while True:
            try: recv()
            except SystemExit: pass
            time.sleep(0.1)
    ''')
    good = ["g%d" % i for i in range(6)]
    for n in good:
        w.mkext(n, COUNT % (n, n, n))
    h = Host(w, "./deaf", "./flood", "./dies", "./stays",
             *["./" + n for n in good])
    w.check(up(h), "all start")
    # More than its queue holds: the first ones wait, the rest are refused.
    large = {"x": "y" * 100000}
    deaf = [h.send("tool_call", name="tdeaf", args=large) for _ in range(40)]
    codes = {h.reply(i).get("code") for i in deaf[30:]}
    w.equal(codes, {"limit"}, "what a deaf one cannot take is refused")
    h.ask("tool_call", name="tdies")
    e = h.event("ext_exit", "dies")
    w.equal(e and e.get("signal"), 9, "one dies")
    worst, base = 0, rss_kb(h.p.pid)
    for i in range(300):
        n = good[i % len(good)]
        at = time.time()
        r = said(h.ask("tool_call", name="t" + n, args={"n": i}))
        worst = max(worst, time.time() - at)
        if r != "%s:%d" % (n, i):
            w.check(False, "an answer", r)
    w.note("300 round trips among them, slowest %.0f ms" % (worst * 1000))
    w.check(worst < 2, "the others do not notice", worst)
    w.check(rss_kb(h.p.pid) - base < 16384, "nor does memory grow",
            base, rss_kb(h.p.pid))
    start = time.time()
    w.equal(h.shutdown(), 0, "exit", h.err)
    w.check(time.time() - start < 4, "and they end in time")
    w.equal(h.faults, [], "every line fits the schema")


@test("a client that does not read", needs="sandbox", seconds=60)
def unread(w):
    w.mkext("flood", '''
        hello("flood", "tools"); ready()
        while True: note("x" * 1000)
    ''')
    w.scope("g", {"extends": "strict", "limits": {"frames_per_second": 100000}})
    for how in ("eof", "term"):
        h = Host(w, "./flood", policy=w.path("g.scope.json"))
        h.event("ext_ready")
        before = rss_kb(h.p.pid)
        time.sleep(1.5)         # nobody reads
        grown = rss_kb(h.p.pid) - before
        w.check(grown < 16384, "memory is bounded: %d KiB more" % grown)
        start = time.time()
        if how == "eof":
            h.p.stdin.close()
        else:
            h.p.terminate()
        rc = h.p.wait(10)
        w.check(time.time() - start < 6, "it ends all the same")
        w.equal(rc, 1 if how == "eof" else 143, "exit after " + how)
    h = Host(w, "./flood", policy=w.path("g.scope.json"))
    h.event("ext_ready")
    time.sleep(0.5)
    w.equal(data(h.ask("ping")), {}, "one that reads on gets on")
    n = len(h.seen)
    h.pump(0.3)
    w.check(len(h.seen) > n, "with the events")
    w.equal(h.shutdown(), 0, "exit", h.err)
    h = Host(w, "./flood", policy=w.path("g.scope.json"))
    h.event("ext_ready")
    h.p.stdout.close()          # it is gone
    w.equal(h.p.wait(10), 1, "a client that closed its end")


main()
