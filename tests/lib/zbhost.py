"""zbhost - one `zotbox host` and its client, for the live tests.

    h = Host(w, "./e", "./f", policy="strict", env={}, cwd=None, more=(),
             before=None)               before: called in the new process
        "./e" is w.dir/e, given with --ext. Every line it writes is checked
        against policies/host-api.schema.json when it is read, and what is
        sent too; h.faults collects what is wrong with them.
    h.ask(TYPE, **fields, timeout=20) -> the reply
    h.send(TYPE, **fields) -> id           h.reply(id, timeout=20) -> the reply
    h.raw(bytes)                           a line as it is
    h.event(TYPE, ext=None, timeout=10)    the next such event not taken yet
    h.events(TYPE=None, ext=None)          all that came so far, taken or not
    h.ready()                              wait until all is settled
    h.pump(seconds)                        read for a while
    h.close() -> exit status               end of input; the rest is read
    h.shutdown() -> exit status            the request, then the end
    h.rc, h.err                            after either
    data(reply) -> reply["data"], or the failure as a string
"""
import json
import os
import select
import time

import json_schema
from zbtest import SRC, ZOTBOX

SCHEMA = json_schema.load(os.path.join(SRC, "policies/host-api.schema.json"))


def part(name):
    return SCHEMA.at("#/definitions/" + name)


KNOWN = {n: part(n) for n in SCHEMA.schema["definitions"]}


def faults_of(line):
    """What the schema says of a line that the host wrote."""
    t = line.get("type")
    if t != "response":
        s = KNOWN.get("event.%s" % t)
        return s.check(line) if s else ["no event called %r" % t]
    if not line.get("success"):
        return KNOWN["failure"].check(line)
    s = KNOWN.get("data.%s" % line.get("command"))
    bad = [] if set(line) == {"type", "id", "command", "success", "data"} \
        else ["members of a response: %s" % sorted(line)]
    return bad + (s.check(line["data"]) if s else ["no such command"])


def data(reply):
    if reply.get("success"):
        return reply["data"]
    return "%s: %s" % (reply.get("code"), reply.get("error"))


class Host:
    def __init__(self, w, *exts, policy=None, env=None, cwd=None, more=(),
                 before=None):
        args = [ZOTBOX, "host"]
        for e in exts:
            args += ["--ext", w.path(e[2:]) if e.startswith("./") else e]
        if policy:
            args += ["--policy", policy]
        self.w, self.buf, self.n = w, b"", 0
        self.replies, self.seen, self.taken = {}, [], set()
        self.faults, self.ended, self.rc, self.err = [], False, None, ""
        self.errfile = open(w.path("host-%d.err" % len(os.listdir(w.dir))),
                            "w+b")
        import subprocess
        self.p = w.spawn(args + list(more), stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=self.errfile,
                         cwd=cwd or w.project, env=dict(w.env, **(env or {})),
                         bufsize=0, preexec_fn=before)

    # -- lines --

    def raw(self, b):
        self.p.stdin.write(b)

    def send(self, kind, **fields):
        self.n += 1
        q = dict({"id": self.n, "type": kind}, **fields)
        self.faults += ["sent: " + f for f in
                        KNOWN["request." + kind].check(q)]
        self.raw(json.dumps(q).encode() + b"\n")
        return q["id"]

    def take(self, line):
        try:
            f = json_schema.loads(line.decode())
        except ValueError as e:
            self.faults.append("no JSON: %s: %r" % (e, line[:200]))
            return
        self.faults += ["%s: %s" % (line[:200], x) for x in faults_of(f)]
        if f.get("type") == "response":
            self.replies.setdefault(json.dumps(f["id"]), []).append(f)
        else:
            self.seen.append(f)

    def read(self, timeout):
        """Some lines; False at the end or when time is up."""
        fd = self.p.stdout.fileno()
        if self.ended or not select.select([fd], [], [], max(0, timeout))[0]:
            return False
        more = os.read(fd, 1 << 18)
        if not more:
            self.ended = True
            return False
        lines = (self.buf + more).split(b"\n")
        self.buf = lines.pop()
        for line in lines:
            self.take(line)
        return True

    def wait_for(self, what, timeout):
        end = time.time() + timeout
        while True:
            got = what()
            if got is not None:
                return got
            if time.time() > end or (self.ended and not self.read(0)):
                return None
            self.read(min(1, end - time.time()))

    def pump(self, seconds):
        end = time.time() + seconds
        while time.time() < end and not self.ended:
            self.read(end - time.time())

    # -- meaning --

    def reply(self, id, timeout=20):
        key = json.dumps(id)

        def first():
            l = self.replies.get(key)
            return l.pop(0) if l else None
        got = self.wait_for(first, timeout)
        return got or {"code": "none", "error": "no reply to %s" % key}

    def ask(self, kind, timeout=20, **fields):
        return self.reply(self.send(kind, **fields), timeout)

    def event(self, kind, ext=None, timeout=10):
        def first():
            for i, f in enumerate(self.seen):
                if i not in self.taken and f["type"] == kind and \
                        ext in (None, f["extension"]):
                    self.taken.add(i)
                    return f
            return None
        return self.wait_for(first, timeout)

    def events(self, kind=None, ext=None):
        return [f for f in self.seen if kind in (None, f["type"]) and
                ext in (None, f["extension"])]

    def ready(self, timeout=20):
        end = time.time() + timeout
        while time.time() < end:
            if data(self.ask("state")).get("settled"):
                return True
            self.pump(0.02)
        return False

    def finish(self, timeout=20):
        end = time.time() + timeout
        while not self.ended and time.time() < end:
            self.read(end - time.time())
        self.rc = self.p.wait(timeout)
        self.errfile.seek(0)
        self.err = self.errfile.read().decode("utf-8", "backslashreplace")
        self.errfile.close()
        return self.rc

    def close(self):
        self.p.stdin.close()
        return self.finish()

    def shutdown(self):
        self.bye = self.ask("shutdown")
        return self.close()
