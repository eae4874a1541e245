#!/usr/bin/env python3
"""What one sandboxed extension costs while it lives, and how soon all of it is
gone when its supervisor is killed.

    alive.py ROUNDS ZOTBOX wrap NAME
"""
import os
import signal
import statistics
import subprocess
import sys
import time

rounds, argv = int(sys.argv[1]), sys.argv[2:]


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


def private_kb(pid):
    with open("/proc/%d/smaps_rollup" % pid) as f:
        return sum(int(line.split()[1]) for line in f if line.startswith("Private_"))


def start():
    p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    p.stdout.readline()
    p.stdin.write(b'{"type":"hello_ack","protocol_version":1,"zot_version":"0","provider":"p","model":"m","cwd":"/","extension_dir":"/","data_dir":"/"}\n')
    p.stdin.flush()
    while b'"ready"' not in p.stdout.readline():
        pass
    return p


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


p = start()
time.sleep(0.3)
pids = tree(p.pid)
names = [open("/proc/%d/comm" % q).read().strip() for q in pids]
costs = [private_kb(q) for q in pids]
print("\nmemory of one extension (private kB)")
for q, name, kb in zip(pids, names, costs):
    print("  %-44s %8d kB" % (name + ("  (the extension itself)" if q == pids[-1] else ""), kb))
print("  %-44s %8d kB in %d processes" % ("together, the extension itself aside", sum(costs[:-1]), len(pids)))

gone = []
for i in range(rounds):
    if i:
        p = start()
        pids = tree(p.pid)
    begin = time.monotonic()
    os.kill(p.pid, signal.SIGKILL)
    p.wait()
    while any(alive(q) for q in pids):
        if time.monotonic() - begin > 10:
            sys.exit("still alive after 10 s: %s" % [q for q in pids if alive(q)])
        time.sleep(0.0005)
    gone.append((time.monotonic() - begin) * 1e3)
    p.stdin.close()
    p.stdout.close()
print("\nkill -9 of the supervisor until every process is gone")
print("  median %.1f ms, max %.1f ms (%d rounds; bar 100 ms)" % (statistics.median(gone), max(gone), len(gone)))
