#!/usr/bin/env python3
"""Where descriptors, processes, memory or the size of a file are short: the
supervisor says so and ends with a code of its own, never by a signal and never
hanging, and what it does start is confined."""
import json
import os
import resource
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *

SECONDS = 20        # for one run; all of them need a tenth of one
# In the log of one that wrap ends like, as it says in README.
AS_IT_DID = ("[zotbox] x ended by", "[zotbox] x did not end within",
             "[zotbox] x out of memory", "[zotbox] x exited with status")
LOADER = "error while loading shared libraries"

BODY = '''
    import pathlib
    hello("x", "tools"); tool("t"); ready()
    def t(f):
        held = not os.path.exists(f["args"]["secret"])
        text(f["id"], "HELD" if held else "LOOSE")
    serve(tool_call=t)
'''


def prepare(w):
    w.secret = w.write("secret", "of the user")
    w.mkext("x", BODY)
    w.equal(w.bare("x", "t", {"secret": w.secret}), "LOOSE",
            "control: it is seen without a sandbox")
    w.install("x", scope={"limits": {"hello_seconds": 5}})
    w.dir_of_x = os.path.join(w.zot_home, "extensions", "x")
    r = console(w, None)
    w.contains(r.out, "HELD", "control: it works where nothing is short", r)


def console(w, before):
    return w.console("x", call("t", secret=w.secret), timeout=SECONDS,
                     preexec_fn=before)


def wrap(w, before):
    frames = [{"type": "hello_ack", "protocol_version": 1, "cwd": w.project},
              {"type": "tool_call", "id": "1", "name": "t",
               "args": {"secret": w.secret}}, {"type": "shutdown"}]
    return w.zotbox("wrap", "x", cwd=w.dir_of_x, timeout=SECONDS,
                    input="".join(json.dumps(f) + "\n" for f in frames),
                    preexec_fn=before)


def host(w, before):
    """Its input stays open until it has answered."""
    line = json.dumps({"id": 1, "type": "tool_call", "name": "t",
                       "args": {"secret": w.secret}})
    p = w.spawn([ZOTBOX, "host"], stdin=subprocess.PIPE, preexec_fn=before,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out = ""
    try:
        p.stdin.write(line.encode() + b"\n")
        p.stdin.flush()
        while '"id":1' not in out:
            more = p.stdout.readline().decode()
            if not more:
                break
            out += more
    except BrokenPipeError:
        pass
    try:
        rest, err = p.communicate(timeout=SECONDS)
    except BrokenPipeError:
        rest, err = p.stdout.read(), p.stderr.read()
        p.wait(SECONDS)
    return Run(p.returncode, out + rest.decode(), err.decode(), 0)


def doctor(w, before):
    return w.zotbox("ext", "doctor", "x", timeout=SECONDS, preexec_fn=before)


WAYS = {"console": console, "wrap": wrap, "host": host, "doctor": doctor}


def left(w):
    """Processes with this world's HOME."""
    found = []
    for n in os.listdir("/proc"):
        try:
            with open("/proc/%s/environ" % n, "rb") as f:
                if n.isdigit() and w.home.encode() in f.read():
                    found.append(n)
        except OSError:
            pass
    return found


def fault(way, r, words):
    """What is wrong with this end, or None."""
    text = r.out + r.err
    if "[zbtest: killed" in text:
        return "hung"
    if "LOOSE" in text:
        return "started without its sandbox"
    if "Assertion" in text:
        return "an assertion"
    if r.rc == 127 and LOADER in text:      # of zotbox or of the extension
        return None
    if way == "wrap" and any(s in text for s in AS_IT_DID):
        return None
    if r.rc < 0:
        return "died of signal %d" % -r.rc
    if r.rc not in (0, 1, 3, 4) and not (way == "doctor" and r.rc == 5):
        return "an exit code that means nothing: %d" % r.rc
    if r.rc == 1 and words and not any(s in text for s in words):
        return "does not say why"
    return None


def sweep(w, which, values, words, ways=tuple(WAYS)):
    """One point a way. Return: how many of all runs said why."""
    told = 0
    for way in ways:
        wrong = None
        for v in values:
            def before():
                resource.setrlimit(which, (v, v))
            r = WAYS[way](w, before)
            told += any(s in r.out + r.err for s in words)
            what = fault(way, r, words)
            if what and not wrong:
                wrong = ["at %d: %s" % (v, what), r]
        w.check(not wrong, way, *(wrong or []))
    w.equal(left(w), [], "nothing is left")
    return told


@test("few descriptors", needs="sandbox")
def descriptors(w):
    prepare(w)
    told = sweep(w, resource.RLIMIT_NOFILE, range(3, 41), ["ulimit -n"],
                 ("console", "wrap", "host"))
    sweep(w, resource.RLIMIT_NOFILE, range(3, 41, 4), ["ulimit -n"],
          ("doctor",))
    w.check(told > 3 * 20, "most of these said why: %d" % told)


@test("a low limit that may be raised is", needs="sandbox")
def raised(w):
    prepare(w)
    for way in ("console", "wrap", "host"):
        def before():
            resource.setrlimit(resource.RLIMIT_NOFILE, (12, 1024))
        r = WAYS[way](w, before)
        w.contains(r.out, "HELD", way, r)


@test("small files", needs="sandbox")
def files(w):
    prepare(w)
    told = sweep(w, resource.RLIMIT_FSIZE, (0, 1, 100, 4096), ["ulimit -f"])
    w.check(told >= 3 * 4, "they said why: %d" % told)
    sweep(w, resource.RLIMIT_FSIZE, (20000, 100000, 1 << 20),
          ["ulimit -f", "File too large"])


@test("SIGXFSZ is the extension's own", needs="sandbox")
def disposition(w):
    script = '''#!/bin/sh
while read -r key value; do
    case $key in SigIgn:) echo "ignored $value" >&2;; esac
done </proc/self/status
exit 3
'''
    w.mkext("s", "", program="main.sh")
    w.write("s/main.sh", script, 0o755)
    bit = 1 << (signal.SIGXFSZ - 1)

    def mask(text):
        words = text.split("ignored ")[1].split()
        return int(words[0].split("(")[0], 16)

    def ignored():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    p = w.spawn([w.path("s/main.sh")], stderr=subprocess.PIPE,
                restore_signals=False, preexec_fn=ignored)
    w.check(mask(p.communicate()[1].decode()) & bit,
            "control: what was ignored at its start is seen")
    for name, kw in (("as usual", {}),
                     ("where it was ignored", {"restore_signals": False,
                                               "preexec_fn": ignored})):
        r = w.console("./s", "", **kw)
        w.check("ignored " in r.err and not mask(r.err) & bit, name, r)


@test("few processes", needs=("sandbox", "user"))
def processes(w):
    prepare(w)

    def mine():
        n = 0
        for pid in os.listdir("/proc"):
            try:
                if pid.isdigit() and \
                        os.stat("/proc/" + pid).st_uid == os.getuid():
                    n += len(os.listdir("/proc/%s/task" % pid))
            except OSError:
                pass
        return n
    n = mine()
    sweep(w, resource.RLIMIT_NPROC, [1] + [n + k for k in range(0, 24)], [])


@test("little memory", needs="sandbox")
def memory(w):
    prepare(w)
    mb = (6, 8, 9, 10, 11, 12, 13, 14, 16, 20, 24, 32, 64)
    sweep(w, resource.RLIMIT_AS, [n << 20 for n in mb], [])


main()
