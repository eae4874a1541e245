"""field - what the escape suite has in common: a throw-away world full of
twins of what an attacker wants, the attempts, and how one is judged.

An attempt is an act of `escapist` (escapist.c) with three parts:

    control   the same act outside the sandbox succeeds, on the same planted
              thing or, if it changes something, on a twin of it
    attempt   inside it fails, with the errno that is expected
    cause     why: a record of the ledger that names it, or, where nobody
              decides at run time, a fact that can be looked at

Acts of one policy are tried one after the other in one sandbox. When all are
done nothing on the host may be other than it was.
"""
import ctypes
import glob
import hashlib
import os
import random
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
import zbtest
from zbtest import World, call

ESCAPIST = os.path.join(zbtest.BUILD, "tests/escape/escapist")
SECRET = "S3CRET"


def has_attributes():
    with tempfile.NamedTemporaryFile() as f:
        try:
            os.setxattr(f.name, "user.zb", b"x")
        except OSError:
            return False
        return True


HAS_ATTRIBUTES = has_attributes()


# ---- attempts ---------------------------------------------------------------

class Ledger:
    """A record: op, target (None: any), and fields of it."""
    def __init__(self, op, target=None, by="broker", **fields):
        self.op, self.target = op, target
        self.fields = dict(fields, decided_by=by)

    def holds(self, f, facts):
        want = {k: f.fill(v) for k, v in self.fields.items()}
        target = f.fill(self.target)
        for r in f.records:
            if r["op"] == self.op and target in (None, r.get("target")) and \
                    all(r.get(k) == v for k, v in want.items()):
                return True
        f.w.note("no record", self.op, target, want)
        for r in f.records:
            if r["op"].split(".")[0] == self.op.split(".")[0]:
                f.w.note("  has", r["op"], r.get("target"), r["decided_by"],
                         r.get("floor"), r.get("errno"), r.get("syscall"))
        return False

    def acts(self):
        return []


class Fact:
    """An act inside says "ok TEXT", where the regular expression matches."""
    def __init__(self, act, text):
        self.act, self.text = act, text

    def holds(self, f, facts):
        got = facts[tuple(self.act)]
        if re.fullmatch(f.fill(self.text), got):
            return True
        f.w.note("fact", self.act, "is", got, "and not", f.fill(self.text))
        return False

    def acts(self):
        return [self.act]


class Attempt:
    """NAME, the act, the errno it gets inside (or several with | between),
    the cause; `control`: another act for outside, or None where there is
    none, with `no_control` saying why. `refused`: errnos with which a host
    may refuse it to everybody: then the control is skipped. `needs`: root,
    user, attributes (user.* ones can be kept here). `lone`: not tried where a layer is taken out."""
    def __init__(self, name, act, errno, *cause, control=True, refused="",
                 needs=(), no_control="", lone=False):
        self.name, self.act, self.errno, self.cause = name, act, errno, cause
        self.control, self.no_control = control, no_control
        self.refused = refused.split("|") if refused else []
        self.needs, self.lone = needs, lone


CAPS = Fact(["status", "CapEff"], "ok 0000000000000000")
FILTER = Fact(["status", "Seccomp"], "ok 2")
NO_NEW_PRIVS = Fact(["status", "NoNewPrivs"], "ok 1")


def absent(path):
    return Fact(["absent", path], "ok yes")


def read_only(path):
    return Fact(["read-only", path], "ok yes")


def other_namespace(kind):
    return Fact(["namespace", kind],
                "ok (?!%s).+" % re.escape(os.readlink("/proc/self/ns/" +
                                                      kind)))


# ---- the world --------------------------------------------------------------

class Host:
    """The host's own servers: each says a secret to whoever comes."""
    def __init__(self, f):
        self.socks, self.heard = {}, []
        self.stop_r, self.stop_w = os.pipe()
        tcp = self.add(self.inet(socket.AF_INET, socket.SOCK_STREAM), "say")
        f.vars["tcp"] = str(tcp.getsockname()[1])
        try:
            tcp6 = self.add(self.inet(socket.AF_INET6, socket.SOCK_STREAM),
                            "say")
            f.vars["tcp6"] = str(tcp6.getsockname()[1])
        except OSError:
            f.vars["tcp6"] = ""
        udp = self.add(self.inet(socket.AF_INET, socket.SOCK_DGRAM), "answer")
        f.vars["udp"] = str(udp.getsockname()[1])
        for name, kind, how in (("stream", socket.SOCK_STREAM, "say"),
                                ("fdsock", socket.SOCK_STREAM, "give"),
                                ("abstract", socket.SOCK_STREAM, "say"),
                                ("docsock", socket.SOCK_STREAM, "say"),
                                ("docgram", socket.SOCK_DGRAM, "hear"),
                                ("dgram", socket.SOCK_DGRAM, "hear")):
            s = socket.socket(socket.AF_UNIX, kind)
            s.bind(f.vars[name].replace("@", "\0"))
            self.add(s, how)
        self.key = f.vars["key"]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    @staticmethod
    def inet(family, kind):
        s = socket.socket(family, kind)
        s.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
        return s

    def add(self, s, how):
        if how in ("say", "give"):
            s.listen(64)
        self.socks[s] = how
        return s

    def run(self):
        while True:
            ready = select.select([*self.socks, self.stop_r], [], [])[0]
            for s in ready:
                if s == self.stop_r:
                    return
                try:
                    self.serve(s, self.socks[s])
                except OSError:
                    pass

    def serve(self, s, how):
        if how in ("say", "give"):
            c, _ = s.accept()
            with c:
                if how == "say":
                    c.sendall(b"S3CRET-SERVER")
                else:
                    with open(self.key, "rb") as k:
                        socket.send_fds(c, [b"x"], [k.fileno()])
        else:
            data, peer = s.recvfrom(4096)
            self.heard.append(data)
            if how == "answer":
                s.sendto(b"S3CRET-SERVER", peer)

    def done(self):
        os.write(self.stop_w, b"x")
        self.thread.join(10)
        for s in self.socks:
            s.close()
        os.close(self.stop_r)
        os.close(self.stop_w)


class Ipc:
    """Semaphores, shared memory and a message queue of the host's, and a file
    in its /dev/shm."""
    def __init__(self, f):
        libc = self.libc = ctypes.CDLL(None, use_errno=True)
        key = random.randint(1 << 20, (1 << 30) - 1)
        IPC_CREAT, mode = 0o1000, 0o600
        self.sem = libc.semget(key, 1, IPC_CREAT | mode)
        self.shm = libc.shmget(key, 4096, IPC_CREAT | mode)
        self.queue = b"/zb-escape-%d" % key
        try:
            rt = ctypes.CDLL("librt.so.1")
            self.mq_unlink = rt.mq_unlink
            rt.mq_open(self.queue, os.O_RDWR | os.O_CREAT, mode, None)
        except (OSError, AttributeError):
            self.mq_unlink = None
        self.file = "/dev/shm/zb-escape-%d" % key
        try:
            with open(self.file, "w") as out:
                out.write("S3CRET-SHM")
        except OSError:
            self.file = "/dev/shm/none"
        f.vars.update(ipckey=str(key), queue=self.queue.decode(),
                      shmfile=self.file)

    def done(self):
        IPC_RMID = 0
        if self.sem >= 0:
            self.libc.semctl(self.sem, 0, IPC_RMID, 0)
        if self.shm >= 0:
            self.libc.shmctl(self.shm, IPC_RMID, None)
        if self.mq_unlink:
            self.mq_unlink(self.queue)
        if os.path.exists(self.file):
            os.unlink(self.file)


class Field:
    """One world with everything in it. `close` it."""
    def __init__(self, w, servers=True):
        self.w, self.records, self.parts = w, [], []
        d = w.dir
        w.project = os.path.join(w.home, "code/app")
        self.ext = os.path.join(w.home, "code/esc")
        v = self.vars = {
            "dir": d, "home": w.home, "zot": w.zot_home, "ext": self.ext,
            "project": w.project, "outside": d + "/outside",
            "twin": d + "/twin",
            "key": w.home + "/.ssh/id_ed25519",
            "vault": w.home + "/vault", "code": self.ext,
            "env": w.project + "/.env", "ok": w.project + "/notes.txt",
            "stream": w.project + "/app.sock",
            "fdsock": w.project + "/fd.sock",
            "dgram": w.project + "/log.sock",
            "docs": w.home + "/docs", "docsock": w.home + "/docs/s.sock",
            "docgram": w.home + "/docs/d.sock",
            "abstract": "@zb-escape-%s" % os.path.basename(d),
            "work": w.project + "/w",
            "self": str(os.getpid()),
            # what its log and ledger are called after
            "box": "@" + hashlib.sha256(os.path.realpath(
                self.ext).encode()).hexdigest()[:16],
            "tmp": "/tmp/zb-escape-" + os.path.basename(d),
        }
        self.plant()
        if servers:
            self.ipc = Ipc(self)
            self.parts.append(self.ipc)
            self.host = Host(self)
            self.parts.append(self.host)
            self.victim()
        v["euid"] = str(os.geteuid())

    def plant(self):
        w = self.w
        tree = {
            "home/.ssh/id_ed25519": "S3CRET-KEY\n",
            "home/.bashrc": "# mine\n",
            "home/.config/app/token": "S3CRET-TOKEN\n",
            "home/code/app/notes.txt": "notes\n",
            "home/vault/innocent": "S3CRET-INNOCENT\n",
            "home/vault/up": "S3CRET-UP\n",
            "home/code/app/deploy/id_rsa": "S3CRET-RSA\n",
            "home/code/app/src/main.c": "int main;\n",
            "home/code/app/.env.d/token": "S3CRET-D\n",
            "home/code/app/.aws/config": "S3CRET-AWS\n",
            "home/docs/note": "note\n",
            "home/docs/secret": "S3CRET-DOC\n",
            "home/docs2/secret": "S3CRET-DOC2\n",
            "twin/docs/note": "note\n",
            "outside/diary": "S3CRET-DIARY\n",
            "zot/auth.json": '{"key":"S3CRET-AUTH"}\n',
            "zot/zotbox/other/scope.json": "{}\n",
            "zot/zotbox/other/lock.json": "{}\n",
            "twin/tree/below/file": "x\n",
        }
        for rel, text in tree.items():
            w.write(rel, text)
        w.write("home/code/app/tool.sh", "#!/bin/sh\nexit 0\n", 0o755)
        shutil.copy(ESCAPIST, w.project + "/tool")
        for name in ("tool", "tool2", "tool3"):
            shutil.copy(ESCAPIST, w.home + "/docs/" + name)
        os.symlink("../vault/out", w.home + "/docs/out")
        os.symlink("../../vault/innocent", w.project + "/innocent.txt")
        os.symlink("../..", w.project + "/up")
        self.plant_escapist(self.ext)

    def plant_escapist(self, where):
        os.makedirs(where, exist_ok=True)
        shutil.copy(ESCAPIST, where + "/escapist")
        with open(where + "/extension.json", "w") as f:
            f.write('{"name":"esc","version":"1.0.0","exec":"./escapist",'
                    '"enabled":true}\n')

    def plant_named(self, attempts):
        """The files that attempts name, each with a secret in it."""
        for a in attempts:
            words = [*a.act, *(a.control if isinstance(a.control, list)
                               else [])]
            for c in a.cause:
                words += [getattr(c, "target", None) or "",
                          *getattr(c, "act", [])]
            for top, name in re.findall(
                    r"\{(vault\}/|env\}\.|code\}/|twin\}/x-)([\w-]+)",
                    " ".join(words)):
                rel = {"v": "home/vault/", "e": "home/code/app/.env.",
                       "c": "home/code/esc/", "t": "twin/x-"}[top[0]]
                path = self.w.write(rel + name, "S3CRET-%s\n" % name)
                if HAS_ATTRIBUTES:
                    os.setxattr(path, "user.zb", b"S3CRET-ATTRIBUTE")

    def victim(self):
        """Somebody of the same user who lets all look that may at all."""
        p = self.victim_proc = self.w.spawn(
            [ESCAPIST, "victim"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env={"TOKEN": "S3CRET-ENVIRON"})
        self.vars["victim"] = str(p.pid)
        self.vars["memory"] = p.stdout.readline().decode().strip()

    def signals(self):
        """How many signals the victim got so far."""
        self.victim_proc.stdin.write(b"?")
        self.victim_proc.stdin.flush()
        return int(self.victim_proc.stdout.readline())

    def close(self):
        for p in self.parts:
            p.done()
        # Of a sandbox that lacked its own /tmp.
        for path in glob.glob(self.vars["tmp"] + "-*"):
            os.unlink(path) if not os.path.isdir(path) else os.rmdir(path)

    def fill(self, x):
        if isinstance(x, str):
            return re.sub(r"\{(\w+)\}",
                          lambda m: self.vars.get(m[1], m[0]), x)
        if isinstance(x, (list, tuple)):
            return [self.fill(y) for y in x]
        return x

    # -- doing --

    def outside(self, act, env=None, **kw):
        """The act without any sandbox."""
        with open(self.w.path("twin/log"), "a") as log:
            log.write("a line\n")
            log.flush()
            r = subprocess.run([ESCAPIST, *self.fill(act)], timeout=60,
                               cwd=self.ext, env=env or self.w.env,
                               stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=log, **kw)
        return r.stdout.decode("utf-8", "backslashreplace").strip()

    def inside(self, acts, *options, zotbox=None, **kw):
        """The acts in one sandbox: their outcomes, in order."""
        script = [call("act", argv=self.fill(a)) for a in acts]
        was = zbtest.ZOTBOX
        zbtest.ZOTBOX = zotbox or was
        try:
            c = self.w.console(self.ext, script, *options, **kw)
        finally:
            zbtest.ZOTBOX = was
        self.run = c
        out = [h.text() if h.type == "result" else h.type
               for h in c.lines if h.type in ("result", "error", "timeout")]
        self.records = self.w.ledger("esc")
        return out + ["nothing"] * (len(acts) - len(out))

    def wrapped(self, acts, scope, warm=3):
        """The acts of the installed extension, as zot starts it, after it was
        started often enough for the ledger to go by its scope."""
        os.symlink(self.ext, self.w.path("esc"))
        self.w.install("esc", None, scope, "--yes-i-mean-it")
        for _ in range(warm):
            x = self.w.wrap("esc")
            x.handshake()
            x.until("ready")
            x.shutdown()
        x = self.w.wrap("esc")
        x.handshake()
        x.until("ready")
        out = []
        for i, a in enumerate(acts):
            x.send({"type": "tool_call", "id": "c%d" % i, "name": "act",
                    "args": {"argv": self.fill(a)}})
            got = x.until("tool_result", 50)
            out.append(got["content"][0]["text"] if got else "nothing")
        x.shutdown()
        self.records = self.w.ledger("esc")
        return out

    # -- what must not change --

    def snapshot(self):
        """All that an attempt could change on the host, but for what belongs
        to the extension: its private directories, its log and its ledger."""
        seen = {}
        for top in (self.w.home, self.vars["outside"], self.vars["zot"]):
            for path, dirs, files in os.walk(top):
                rel = os.path.relpath(path, self.w.zot_home)
                if re.match("logs|extensions|zotbox/(@|esc)", rel):
                    continue
                for name in [".", *files]:
                    if name.startswith(".lock-"):
                        continue
                    p = os.path.join(path, name)
                    seen[os.path.normpath(p)] = self.look(p)
        return seen

    def look(self, p):
        st = os.lstat(p)
        text = b""
        if os.path.isfile(p) and not os.path.islink(p):
            with open(p, "rb") as f:
                text = f.read()
        elif os.path.islink(p):
            text = os.readlink(p).encode()
        links = 0 if os.path.isdir(p) else st.st_nlink
        # zot's own directory gets new entries of ours
        times = 0 if os.path.normpath(p) in (
            self.w.zot_home, self.w.zot_home + "/zotbox") else st.st_mtime_ns
        return (st.st_mode, st.st_uid, st.st_gid, links, st.st_size if text
                else 0, times, text, tuple(xattrs(p)))


def xattrs(p):
    try:
        return sorted(os.listxattr(p, follow_symlinks=False))
    except OSError:
        return []


# ---- judging ----------------------------------------------------------------

def fits(a):
    """May this user try it?"""
    if a.needs == "root":
        return os.geteuid() == 0
    if a.needs == "user":
        return os.geteuid() != 0
    if a.needs == "attributes":
        return HAS_ATTRIBUTES
    return True


def judge_control(f, a):
    w = f.w
    if a.control is None:
        w.skip(a.name + ": control", a.no_control)
        return
    got = f.outside(a.act if a.control is True else a.control)
    word = got.split(" ")[1] if got.startswith("no ") else ""
    if word and word in a.refused:
        w.skip(a.name + ": control",
               "this host refuses it to everybody: " + word)
        return
    w.check(got.startswith("ok"), a.name + ": control", got)


def judge(f, attempts, *options, work=()):
    """Control, attempt and cause of each, three points. What is in @work may
    be changed, and nothing else."""
    w = f.w
    attempts = [a for a in attempts if fits(a)]
    f.plant_named(attempts)
    for a in attempts:
        judge_control(f, a)
    facts = []
    for a in attempts:
        for c in a.cause:
            facts += [x for x in c.acts() if x not in facts]
    before = f.snapshot()
    got = f.inside([a.act for a in attempts] + facts, *options)
    w.check(f.run.rc == 0, "the sandbox ran to its end", f.run)
    values = dict(zip(map(tuple, facts), got[len(attempts):]))
    for a, g in zip(attempts, got):
        ok = re.fullmatch(r"no (%s)( .*)?" % a.errno, g, re.S)
        w.check(ok, a.name + ": attempt", g)
        w.check(all(c.holds(f, values) for c in a.cause),
                a.name + ": cause")
    same(f, before, work)
    return got


def same(f, before, work=()):
    after = f.snapshot()
    diff = sorted(p for p in set(before) | set(after)
                  if before.get(p) != after.get(p) and p not in work)
    f.w.check(not diff, "nothing on the host has changed",
              *["%s: %s -> %s" % (p, before.get(p), after.get(p))
                for p in diff])
