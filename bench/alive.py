#!/usr/bin/env python3
"""What one sandboxed extension costs while it lives, and how soon all of it is
gone when its supervisor is killed.

    alive.py ROUNDS ZOTBOX wrap NAME

Memory is private memory: pages that no other process has. One alone has the
pages of its program and libraries for itself; the second shares them with the
first, so both are told. What one alone has differs with whatever else happens
to run (another bubblewrap takes 270 kB off it), so the part that was written,
and is its own in any company, is told apart.
"""
import json
import os
import signal
import statistics
import subprocess
import sys
import time

PEERS = 3
SETTLE = 0.6  # seconds after "ready"
RELAX = 3.0  # after large frames
LARGE = 1000000

rounds, argv = int(sys.argv[1]), sys.argv[2:]
ACK = {"type": "hello_ack", "protocol_version": 1, "zot_version": "0", "provider": "p", "model": "m",
       "cwd": "/", "extension_dir": "/", "data_dir": "/"}


def children(pid):
    found = []
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/children" % (pid, task)) as f:
            found += [int(p) for p in f.read().split()]
    return found


def tree(pid):
    pids = [pid]
    for p in pids:
        pids += children(p)
    return pids


def name(pid):
    with open("/proc/%d/comm" % pid) as f:
        return f.read().strip()


def private_kb(pid, kind="Private_"):
    with open("/proc/%d/smaps_rollup" % pid) as f:
        return sum(int(line.split()[1]) for line in f if line.startswith(kind))


def cost(pids, kind="Private_"):
    """Of everything but the extension's own program, which is the last."""
    return sum(private_kb(p, kind) for p in pids[:-1])


def say(p, frame):
    p.stdin.write(json.dumps(frame, separators=(",", ":")).encode() + b"\n")
    p.stdin.flush()


def start():
    p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    begin = time.monotonic()
    p.stdout.readline()
    p.hello_ms = (time.monotonic() - begin) * 1e3
    say(p, ACK)
    while b'"ready"' not in p.stdout.readline():
        pass
    return p


def end(p):
    p.kill()
    p.wait()
    p.stdin.close()
    p.stdout.close()


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def row(text, value, unit, places=0):
    print("  %-52s %8.*f %s" % (text, places, value, unit))


def result(key, value):
    if "ZB_BENCH_RESULTS" in os.environ:
        with open(os.environ["ZB_BENCH_RESULTS"], "a") as f:
            f.write("%s %.4f\n" % (key, value))


def memory():
    one = start()
    time.sleep(SETTLE)
    pids = tree(one.pid)
    alone = cost(pids)
    written = cost(pids, "Private_Dirty")
    print("\nmemory of one extension (private kB)")
    for pid in pids:
        row(name(pid) + ("  (the extension itself)" if pid == pids[-1] else ""), private_kb(pid), "kB")
    row("together, the extension itself aside, in %d processes" % len(pids), alone, "kB")
    row("of that written", written, "kB")
    for i in range(5):
        say(one, {"type": "tool_call", "id": "c%d" % i, "name": "t", "args": {"pad": "y" * LARGE}})
        one.stdout.readline()
    time.sleep(RELAX)
    row("%d s after five frames of %d bytes" % (RELAX, LARGE), cost(pids), "kB")
    others = [start() for _ in range(PEERS - 1)]
    time.sleep(SETTLE)
    each = statistics.mean(cost(tree(p.pid)) for p in others)
    row("each further one, of %d at the same time" % PEERS, each, "kB")
    for p in others:
        end(p)
    end(one)
    result("memory_alone", alone)
    result("memory_each", each)
    result("processes", len(pids))


def death():
    gone, hello = [], []
    for _ in range(rounds):
        p = start()
        hello.append(p.hello_ms)
        pids = tree(p.pid)
        begin = time.monotonic()
        os.kill(p.pid, signal.SIGKILL)
        p.wait()
        while any(alive(q) for q in pids):
            if time.monotonic() - begin > 10:
                sys.exit("still alive after 10 s: %s" % [q for q in pids if alive(q)])
            time.sleep(0.0005)
        gone.append((time.monotonic() - begin) * 1e3)
        end(p)
    print("\nzotbox wrap, from its start to the extension's hello (%d rounds)" % rounds)
    row("median", statistics.median(hello), "ms", 1)
    print("\nkill -9 of the supervisor until every process is gone (%d rounds)" % rounds)
    row("median", statistics.median(gone), "ms", 1)
    row("longest", max(gone), "ms", 1)
    result("death", max(gone))


memory()
death()
