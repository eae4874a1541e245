#!/usr/bin/env python3
"""Many extensions under one zotbox host: how soon all are ready, what it costs,
and whether four bad ones (one never reads, one floods, one dies, one ignores
shutdown) are noticed by the others.

    many.py COUNT ZOTBOX
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

count, zotbox = int(sys.argv[1]), sys.argv[2]
GOOD = r'''
import json, sys
def emit(**f): print(json.dumps(f), flush=True)
name = "%s"
emit(type="hello", name=name, version="1", capabilities=["tools"])
for line in sys.stdin:
    f = json.loads(line)
    if f["type"] == "hello_ack":
        emit(type="register_tool", name=name, description=name, schema={})
        emit(type="ready")
        %s
    elif f["type"] == "tool_call":
        %s
    elif f["type"] == "shutdown":
        %s
'''
ANSWER = 'emit(type="tool_result", id=f["id"], content=[{"type": "text", "text": name}])'
BYE = 'emit(type="shutdown_ack"); break'
BAD = {
    "deaf": ("import time; time.sleep(1000)", ANSWER, BYE),
    "flood": ("while True: emit(type='notify', level='info', message='x' * 100)", ANSWER, BYE),
    "dies": ("pass", "import os; os.kill(os.getpid(), 9)", BYE),
    "stays": ("pass", ANSWER, "import time; time.sleep(1000)"),
}


def write(top, name, parts):
    os.mkdir(os.path.join(top, name))
    with open(os.path.join(top, name, "x.py"), "w") as f:
        f.write(GOOD % ((name,) + parts))
    with open(os.path.join(top, name, "extension.json"), "w") as f:
        json.dump({"name": name, "exec": "/usr/bin/python3", "args": ["x.py"]}, f)
    return ["--ext", os.path.join(top, name)]


class Host:
    def __init__(self, args):
        self.begin, self.ids, self.events = time.monotonic(), 0, []
        self.p = subprocess.Popen([zotbox, "host", "--no-ext"] + args, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ask(self, kind, **fields):
        self.ids += 1
        self.p.stdin.write(json.dumps(dict(fields, id=self.ids, type=kind)).encode() + b"\n")
        self.p.stdin.flush()
        while True:
            line = json.loads(self.p.stdout.readline())
            if line["type"] == "response" and line["id"] == self.ids:
                return line
            self.events.append(line["type"])

    def settle(self):
        while not self.ask("state")["data"]["settled"]:
            time.sleep(0.02)
        return time.monotonic() - self.begin

    def trips(self, names, n):
        took = []
        for i in range(n):
            at = time.monotonic()
            if not self.ask("tool_call", name=names[i % len(names)], args={})["success"]:
                sys.exit("a call failed")
            took.append((time.monotonic() - at) * 1e6)
        return statistics.median(took), statistics.quantiles(took, n=100)[98]

    def rss_kb(self):
        with open("/proc/%d/status" % self.p.pid) as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))

    def end(self):
        at = time.monotonic()
        self.ask("shutdown")
        self.p.wait()
        return time.monotonic() - at


def row(text, value, unit, places=0):
    print("  %-52s %8.*f %s" % (text, places, value, unit))


def run(bad):
    with tempfile.TemporaryDirectory() as top:
        names = ["e%d" % i for i in range(count - (len(BAD) if bad else 0))]
        args = [a for n in names for a in write(top, n, ("pass", ANSWER, BYE))]
        args += [a for n in BAD if bad for a in write(top, n, BAD[n])]
        h = Host(args)
        row("until all are ready", h.settle(), "s", 2)
        if h.events.count("ext_ready") != count:
            sys.exit("%d of %d are ready" % (h.events.count("ext_ready"), count))
        row("memory of the host (RSS)", h.rss_kb(), "kB")
        if bad:
            h.ask("tool_call", name="dies", args={})
        median, high = h.trips(names, 2000)
        row("round trip of a tool call, median", median, "us")
        row("of a hundred, the second slowest", high, "us")
        row("until all are gone", h.end(), "s", 2)


for bad in (False, True):
    print("\n%d extensions under one host%s" % (count, ", four of them bad" if bad else ""))
    run(bad)
