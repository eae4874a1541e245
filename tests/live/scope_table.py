#!/usr/bin/env python3
"""A table of scopes, operations and targets (scope_table.rows), each held
against three: the evaluator's answer (ext why), the act itself inside a real
sandbox, and the ledger. None may disagree with the row or with another."""
import errno
import json
import os
import re
import shlex
import socket
import sys
import threading
import time

SRC = os.environ.get("ZB_SRC", ".")
sys.path.insert(0, os.path.join(SRC, "tests/lib"))
from zbtest import *

ROWS = os.path.join(SRC, "tests/live/scope_table.rows")

# Does each act, and says how it ended. What the protocol says to an act is
# seen from outside.
ACTOR = r'''
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
CALLS = {"mount": 165, "ptrace": 101, "bpf": 321, "getpid": 39}
if os.uname().machine == "aarch64":
    CALLS = {"mount": 40, "ptrace": 117, "bpf": 280, "getpid": 172}
def look(p):
    fd = os.open(p, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if os.path.isdir("/proc/self/fd/%d" % fd): os.listdir(fd)
        else: os.read(fd, 1)
    finally: os.close(fd)
def shut(fd): os.close(fd)
def run(p):
    _, st = os.waitpid(os.posix_spawn(p, [p], os.environ), 0)
    if st in (126 << 8, 127 << 8): raise OSError(errno.EIO, "status")
def dial(t):
    host, port = t.rsplit(":", 1)
    s = socket.socket(); s.settimeout(3); s.connect((host, int(port)))
def serve_on(t):
    host, port = t.rsplit(":", 1)
    s = socket.socket(); s.bind((host, int(port))); s.listen()
def knock(t):
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0" + t[1:] if t[0] == "@" else t)
def call(n):
    libc.syscall.restype = ctypes.c_long
    if libc.syscall(CALLS[n], 0, 0, 0, 0, 0) == -1:
        raise OSError(ctypes.get_errno(), n)
def env(n):
    if n not in os.environ: raise OSError(errno.ENODATA, n)
ACTS = {"fs.read": look,
  "fs.write": lambda p: shut(os.open(p, os.O_WRONLY)),
  "fs.create": lambda p: shut(os.open(p, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)),
  "fs.delete": os.unlink, "fs.rename": lambda p: os.rename(p, p + "~"),
  "fs.meta": lambda p: os.chmod(p, 0o644), "fs.exec": run,
  "net.connect": dial, "net.listen": serve_on, "net.unix": knock,
  "syscall": call, "env": env,
  "proto.notify": lambda n: emit(type="notify", level="info", message="proto"),
  "proto.submit": lambda n: emit(type="submit", text="proto"),
  "proto.slash": lambda n: emit(type="submit_slash", text="/" + n),
  "proto.call_tool": lambda n: emit(type="call_tool", id="p1", name=n, args={}),
}
hello("t", "tools", "events")
tool("act")
emit(type="subscribe", events=["turn_start", "turn_end"], intercept=["tool_call"])
ready()
seen = []
def act(f):
    a = f["args"]
    if "seen" in a: return text(f["id"], json.dumps(seen))
    try: os.chdir(a["project"])
    except OSError: pass
    with open(a["data"] + "/started", "w"): pass
    while not os.path.exists(a["data"] + "/go"): time.sleep(0.01)
    out = []
    for op, target in a["acts"]:
        if op not in ACTS: out.append(None); continue
        try: ACTS[op](target); out.append("ok")
        except OSError as e: out.append(errno.errorcode.get(e.errno, str(e)))
    text(f["id"], json.dumps(out))
serve(tool_call=act, event=lambda f: seen.append(f["event"]),
      event_intercept=lambda f: emit(type="event_intercept_response",
          id=f["id"], block=True, reason="no"))
'''


class Row:
    def __init__(self, line, number):
        m = re.match(r'(\S+) ("(?:[^"\\]|\\.)*"|\S+) (allow|deny|absent)'
                     r'(?: (E\w+))?$', line)
        assert m, "line %d: %s" % (number, line)
        self.op, self.target, self.want, self.errno = m.groups()
        if self.target[0] == '"':
            self.target = json.loads(self.target)
        self.name = "%d: %s %s" % (number, self.op, self.target)
        self.late = "late" in self.target


def groups():
    found = []
    with open(ROWS, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if line.startswith("= "):
                _, name, scope = line.split(" ", 2)
                found.append((name, json.loads(scope), []))
            elif line and line[0] != "#":
                found[-1][2].append(Row(line, number))
    return found


def fixture(w):
    """What lies on the host."""
    for name in (
            "home/.ssh/id", "home/.bashrc", "home/notes/a.txt",
            "home/notes/secret.key", "home/notes/sub/b.txt", "home/docs/x1",
            "home/docs/x2", "home/docs/y1", "home/docs/xdir/deep.txt",
            "home/docs/ydir/deep.txt", "zot/auth.json", "srv/data.txt",
            "srv/a/x", "srv/a/y", "srv/a/b/x", "project/README.md",
            "project/.env", "project/.env.local", "project/.envx",
            "project/x.env", "project/src/main.c", "project/src/del.txt",
            "project/src/ren.txt", "project/src/deep/d.txt",
            "project/src/deep/a/b/c.txt", "project/src/deeper/d.txt",
            "project/keys/k.pem", "project/keys/readme",
            "project/keys/id_rsa", "project/keys/id_rsa.pub",
            "project/credentials.json", "project/.aws/config",
            "project/caf\u00e9", "project/cafe\u0301",
            "project/caf\u00e9.key", "project/cafe\u0301.key",
            "project/.git/config", "project/.git/hooks/pre-commit.sample",
            "project/.zot/keep", "project/swap-late/id",
            "project/swap-late2/README.md"):
        w.write(name, "x")
    for name in ("opt/tool", "opt/other", "home/notes/run.sh",
                 "project/run.sh"):
        w.write(name, "#!/bin/sh\nexit 0\n", 0o755)
    if os.path.exists("/usr/bin/true"):
        for name in "opt/tool", "opt/other":
            with open("/usr/bin/true", "rb") as f, \
                    open(w.path(name), "wb") as to:
                to.write(f.read())
    for name, to in (("home/link", "notes"), ("home/notes/out", "../.ssh"),
                     ("home/docs/to-y1", "y1"), ("home/docs/x-to-y", "y1"),
                     ("project/to-env", ".env"), ("project/src/up", ".."),
                     ("project/out", "../home/.ssh"),
                     ("project/to-readme", "README.md"),
                     ("project/to-git", ".git"), ("opt/to-other", "other")):
        os.symlink(to, w.path(name))
    s = socket.socket(socket.AF_UNIX)
    s.bind(w.path("srv/sock"))
    s.listen()
    return s


def extension(w):
    w.mkext("t", ACTOR, files={"state.json": "{}", "script.sh":
                               "#!%s -I\n" % PYTHON})
    os.chmod(w.path("t/script.sh"), 0o755)
    w.install("t")
    box = os.path.join(w.zot_home, "zotbox/t")
    for n in "own.txt", "own-del.txt", "own-ren.txt":
        with open(os.path.join(box, "home", n), "w") as f:
            f.write("x")
    with open("/usr/bin/true", "rb") as f, \
            open(os.path.join(box, "home/own-tool"), "wb") as to:
        to.write(f.read())
    os.chmod(os.path.join(box, "home/own-tool"), 0o755)
    return box


def make_late(w, rows, variables):
    """What comes after the start: files, and directories that change."""
    for r in rows:
        p = expand(r.target, variables, w)
        if not r.late or r.op != "fs.read":
            continue
        if "swap-late2" in p:
            d = os.path.dirname(p)
            os.rename(d, d + ".was")
            os.symlink(".", d)
        elif "swap-late" in p:
            d = os.path.dirname(p)
            os.rename(d, d + ".was")
            os.symlink("../home/.ssh", d)
        else:
            os.makedirs(os.path.dirname(p), exist_ok=True)
            with open(p, "w") as f:
                f.write("x")


def expand(target, variables, w):
    for name, value in variables.items():
        if target.startswith(name):
            return value + target[len(name):]
    if target.startswith("@/"):
        return w.dir + target[1:]
    if target.startswith("/proc/self/root@"):
        return "/proc/self/root" + w.dir + target[16:]
    return target


def place(value, w):
    if isinstance(value, dict):
        return {k: place(v, w) for k, v in value.items()}
    if isinstance(value, list):
        return [place(v, w) for v in value]
    return w.dir + value[1:] if isinstance(value, str) and \
        value.startswith("@/") else value


def ask(w, row, target):
    args = ["ext", "why", "t", row.op, target if row.target != "-" else "",
            "--json"]
    r = w.zotbox(*args)
    try:
        return r.rc, json.loads(r.out)
    except ValueError:
        w.check(False, row.name + ": ext why answers", r)
        return r.rc, {}


def attempt(w, name, rows, targets, box, variables, beside):
    data = os.path.join(box, "data")
    for n in "started", "go":
        if os.path.exists(os.path.join(data, n)):
            os.unlink(os.path.join(data, n))

    def later():
        end = time.time() + 30
        while time.time() < end and not os.path.exists(data + "/started"):
            time.sleep(0.01)
        make_late(w, rows, variables)
        open(data + "/go", "w").close()
    inside = variables["${extension_dir}"] if beside else data
    helper = threading.Thread(target=later)
    helper.start()
    acts = [[r.op, t] for r, t in zip(rows, targets)]
    c = w.console("t", [call("act", acts=acts, project=w.project, data=inside),
                        event("turn_start"), event("turn_end"),
                        intercept("tool_call", tool_name="x", tool_args={}),
                        "sleep 0.2", call("act", seen=1), "sleep 0.2"])
    helper.join()
    out = c.result("t")
    if out is None or out[:1] != "[":
        w.check(False, name + ": the acts", c, w.log("t"))
        return None
    out = json.loads(out)
    seen = json.loads(c.result("t", 1))
    for i, r in enumerate(rows):
        if r.op == "proto.notify":
            out[i] = "ok" if any(h.json.get("message") == "proto"
                                 for h in c.of("notify")) else "none"
        elif r.op == "proto.submit":
            out[i] = "ok" if any(h.json.get("text") == "proto"
                                 for h in c.of("submit")) else "none"
        elif r.op == "proto.slash":
            out[i] = "ok" if "/" + r.target in [
                h.json.get("text") for h in c.of("submit_slash")] else "none"
        elif r.op == "proto.call_tool":
            out[i] = "ok" if c.of("call_tool") else "none"
        elif r.op == "proto.events":
            out[i] = "ok" if r.target in seen else "none"
        elif r.op == "proto.intercept":
            out[i] = "ok" if c.of("block") else "none"
        elif r.op == "env" and out[i] != "ok":
            out[i] = "none"
    return out


def recorded(w, row, answer):
    """The record of this refusal. Those of one start about the environment
    name all variables; of a name that an event or a verb is called by, the
    mediator's has it behind the verb."""
    for r in w.ledger("t"):
        if row.op == "env" and r["op"] == "env":
            if row.target in json.dumps(r):
                return r
        elif row.op == "syscall" and r["op"] == row.op:
            if r["target"].split()[0] == row.target:
                return r
        elif row.op.startswith("proto.") and r["op"] == row.op:
            if row.target == "-" or \
                    row.target.split(":")[0] in r.get("target", ""):
                return r
        elif r["op"] == row.op and (row.target == "-" or
                                    r.get("target") == answer.get("target")):
            return r
    return None


def judge(w, row, rc, answer, outcome):
    record = recorded(w, row, answer)
    said = answer.get("allowed")
    notes = " ".join(answer.get("notes", []))
    diag = ("why: %d %s" % (rc, json.dumps(answer)), "act: %s" % outcome,
            "record: %s" % json.dumps(record))
    if row.want == "allow":
        ok = rc == 0 and said is True and outcome == "ok" and not record
    elif row.want == "absent":
        ok = outcome == row.errno and not record and (
            (rc == 0 and said is True) or
            (rc == 3 and said is False and answer.get("errno") == row.errno and
             "no record" in notes))
    else:
        ok = rc == 3 and said is False and record and (
            outcome == (row.errno or "none")) and \
            answer.get("errno") == row.errno and \
            record.get("errno") == row.errno
    w.check(ok, "%s: %s %s" % (row.name, row.want, row.errno or ""), *diag)


def run(w, name, scope, rows):
    w.env.update(MY_TOKEN="a", LC_ALL="C.UTF-8", OTHER_TOKEN="b",
                 AWS_SECRET="c")
    keep = fixture(w)
    box = extension(w)
    variables = {"${project}": w.project, "${zot_home}": w.zot_home,
                 "${extension_dir}": os.path.join(w.zot_home, "extensions/t"),
                 "${data_dir}": os.path.join(box, "data"), "~": w.home}
    full = dict({"zotbox": 1, "extends": "strict"}, **place(scope, w))
    with open(os.path.join(box, "scope.json"), "w") as f:
        json.dump(full, f)
    targets = [expand(r.target, variables, w) for r in rows]
    answers = [None if r.late else ask(w, r, t)
               for r, t in zip(rows, targets)]
    outcomes = attempt(w, name, rows, targets, box, variables,
                       full["extends"] == "standard" or
                       full.get("fs", {}).get("state") == "beside")
    for i, r in enumerate(rows):
        if outcomes:
            judge(w, r, *(answers[i] or ask(w, r, targets[i])), outcomes[i])
    keep.close()


@test("the table is large enough")
def size(w):
    n = sum(len(rows) for _, _, rows in groups())
    w.check(n >= 150, "rows: %d" % n)


for name, scope, rows in groups():
    test(name, needs="sandbox", seconds=120)(
        lambda w, g=(name, scope, rows): run(w, *g))

main()
