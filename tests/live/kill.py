#!/usr/bin/env python3
"""However it ends - the supervisor killed, a signal, a good end, an extension
that will not - nothing is left: no process, no file, no mount; the project is
untouched, the ledger is whole, and the next start works. Fifty starts in a row
leave what two leave.

The file runs with a /tmp, /var/tmp and /dev/shm of its own where it may, so
that whatever appears there is ours."""
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *
import procs

SHARED = ["/tmp", "/var/tmp", "/dev/shm"]


def own_places():
    """Why not, if not."""
    libc = ctypes.CDLL(None, use_errno=True)
    newuser, newns, bind, rec, private = 1 << 28, 1 << 17, 4096, 16384, 1 << 18
    uid, gid = os.getuid(), os.getgid()

    def mount(what, where, kind, flags):
        if libc.mount(what and what.encode(), where.encode(),
                      kind and kind.encode(), flags, None):
            raise OSError(ctypes.get_errno(), where)
    if libc.unshare(newns):
        if libc.unshare(newuser | newns):
            return os.strerror(ctypes.get_errno())
        for name, text in (("setgroups", "deny"),
                           ("uid_map", "%d %d 1" % (uid, uid)),
                           ("gid_map", "%d %d 1" % (gid, gid))):
            with open("/proc/self/" + name, "w") as f:
                f.write(text)
    # What the build has below them is put back.
    kept = {os.path.realpath(p) for p in (BUILD, SRC)}
    kept = {p: os.open(p, os.O_PATH) for p in kept
            if any(p.startswith(s + "/") for s in SHARED)}
    done = []
    try:
        mount(None, "/", None, rec | private)
        for s in SHARED:
            mount("none", s, "tmpfs", 0)
            done.append(s)
            os.chmod(s, 0o1777)
        for p, fd in kept.items():
            os.makedirs(p, exist_ok=True)
            mount("/proc/self/fd/%d" % fd, p, None, bind | rec)
            os.close(fd)
    except OSError as e:
        for s in done:
            libc.umount2(s.encode(), 2)
        return str(e)
    return ""


OWN = own_places()

# A process two forks and a session away that no polite signal ends; and one
# that the first process started in the ordinary way.
STRAY = '''
    import itertools, signal
    def stray():
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)
                while True: time.sleep(1)
            os._exit(0)
        if os.fork() == 0:
            while True: time.sleep(1)
        os.wait()
    def call(f):
        do = f["args"]["do"]
        if do == "exit": os._exit(f["args"].get("status", 0))
        if do == "flood":
            text(f["id"], "on it")
            for i in itertools.count():
                try: open(f["args"]["at"] + "/secret-%d" % (i % 300))
                except OSError: pass
        text(f["id"], "?")
'''
GOOD = STRAY + '''
    hello("NAME", "tools"); stray(); tool("t"); ready(); serve(tool_call=call)
'''
DEAF = STRAY + '''
    signal.signal(15, signal.SIG_IGN)
    hello("NAME", "tools"); stray(); tool("t"); ready()
    while True: time.sleep(1)
'''


def shape(top, but=()):
    """Everything below: kind, mode, size, time of change."""
    found = {}
    for at, dirs, files in os.walk(top):
        dirs[:] = [d for d in dirs if os.path.join(at, d) not in but]
        for n in dirs + files + ["."]:
            st = os.lstat(os.path.join(at, n))
            found[os.path.join(at, n)] = (st.st_mode, st.st_size,
                                          st.st_mtime_ns)
    return found


def project(w):
    """A git work tree with things that scopes carve out, and things that they
    name and it lacks."""
    w.write("project/src/a.c", "int a;\n")
    w.write("project/.env", "SECRET\n")
    w.write("project/.gitignore", ".env\n")
    if shutil.which("git"):
        for a in (["init", "-q"], ["add", "."],
                  ["-c", "user.name=a", "-c", "user.email=a@b", "commit",
                   "-qm", "m"]):
            subprocess.run(["git", *a], cwd=w.project, check=True, env=w.env)


def status(w):
    if not shutil.which("git"):
        return ""
    return subprocess.run(
        ["git", "--no-optional-locks", "status", "--porcelain", "--ignored"],
        cwd=w.project, env=w.env, capture_output=True, text=True).stdout


def outside(w):
    """All that is not $ZOT_HOME."""
    found = shape(w.dir, [w.zot_home])
    for d in SHARED:
        found[d] = sorted(os.listdir(d)) if not OWN else None
    return found


def mounts():
    with open("/proc/self/mountinfo") as f:
        return f.read()


SCOPE = {"extends": "standard", "fs": {
    "read": ["${project}"],
    "deny": ["${project}/absent/deep/**", "${project}/src/none"]}}


def install(w, name, body):
    project(w)
    w.mkext(name, body.replace("NAME", name))
    w.install(name, None, SCOPE)


def start(w, name):
    p = w.wrap(name)
    p.handshake()
    p.until("ready")
    return p


def started(w, p):
    """Its processes: wrap, bwrap, stage, the extension and two strays."""
    end = time.time() + 5
    while len(procs.tree(p)) < 6 and time.time() < end:
        time.sleep(0.02)
    tree = procs.tree(p)
    w.check(len(tree) >= 6, "control: they run",
            *[procs.command(n) for n, _ in tree])
    return tree


def all_gone(w, tree, what, seconds=2):
    since = time.time()
    w.check(procs.gone(tree, seconds), what + ": all are gone",
            *[procs.command(n) for n, _ in procs.alive(tree)])
    w.note("%s: %.0f ms" % (what, (time.time() - since) * 1000))


def whole(w, name):
    """Each line of the ledger is a record. How many?"""
    n = 0
    path = w.path("zot/logs/ext-%s.denials.jsonl" % name)
    with open(path, "rb") as f:
        text = f.read()
    w.check(text.endswith(b"\n"), "the last line is whole")
    for line in text.splitlines():
        n += "v" in json.loads(line)
    return n


def works_again(w, name):
    p = start(w, name)
    p.send({"type": "tool_call", "id": "1", "name": "t", "args": {"do": ""}})
    w.equal(p.until("tool_result")["content"][0]["text"], "?",
            "the next start works")
    tree = procs.tree(p.pid)
    w.equal(p.shutdown(), 0, "and ends")
    all_gone(w, tree, "shutdown")


@test("control: without a sandbox the grandchild stays", needs="linux")
def control(w):
    w.mkext("bare", GOOD.replace("NAME", "bare"))
    p = w.spawn([w.path("bare/main.py")], cwd=w.path("bare"), stdin=-1,
                stdout=-1)
    p.stdout.readline()
    p.stdin.write(b'{"type":"hello_ack","data_dir":"/"}\n')
    p.stdin.flush()
    while b"ready" not in p.stdout.readline():
        pass
    end = time.time() + 5
    while len(procs.tree(p.pid)) < 2 and time.time() < end:
        time.sleep(0.01)
    mine = {n: t for n, t in procs.table().items()
            if "bare/main.py" in procs.command(n)}
    p.kill()
    p.wait()
    time.sleep(0.3)
    left = [n for n in mine if n != p.pid and procs.stat(n)]
    w.equal(len(left), 2, "two stay")
    for n in left:
        os.kill(n, signal.SIGKILL)


@test("wrap is killed", needs="sandbox")
def killed(w):
    install(w, "k", GOOD)
    w.skip("places of our own", OWN) if OWN else w.check(
        len(os.listdir("/dev/shm")) == 0, "places of our own")
    before, clean, at = outside(w), status(w), mounts()
    p = start(w, "k")
    tree = started(w, p.pid)
    os.kill(p.pid, signal.SIGKILL)
    all_gone(w, tree, "killed")
    w.equal(p.wait(), -signal.SIGKILL, "as killed")
    pid = [n for n in os.listdir(w.dir) if n.startswith("wrap-")]
    for n in pid:       # the test's own
        os.unlink(w.path(n))
    after = outside(w)
    w.equal({n: (before.get(n), after.get(n)) for n in {**before, **after}
             if before.get(n) != after.get(n) and n != w.dir + "/."}, {},
            "nothing was made or changed outside $ZOT_HOME")
    w.equal(status(w), clean, "git status is as before")
    w.equal(mounts(), at, "no mount is left")
    works_again(w, "k")


@test("killed in the middle of a start", needs="sandbox")
def early(w):
    install(w, "k", GOOD)
    before, at = outside(w), mounts()
    for ms in (0, 2, 5, 10, 15, 20, 30, 50):
        p = w.wrap("k")
        time.sleep(ms / 1000)
        tree = procs.tree(p.pid)
        os.kill(p.pid, signal.SIGKILL)
        # What was born after the look hangs on what was seen.
        w.check(procs.gone(tree, 2), "after %d ms: all are gone" % ms,
                *[procs.command(n) for n, _ in procs.alive(tree)])
        p.wait()
    for n in os.listdir(w.dir):
        if n.startswith("wrap-"):
            os.unlink(w.path(n))
    time.sleep(0.5)
    ours = [procs.command(n) for n in procs.table()
            if w.path("k") in procs.command(n) or
            w.zot_home in procs.command(n)]
    w.equal(ours, [], "none came later")
    after = outside(w)
    w.equal({n for n in {**before, **after} if before.get(n) != after.get(n)
             and n != w.dir + "/."}, set(), "nothing was made")
    w.equal(mounts(), at, "no mount is left")
    works_again(w, "k")


@test("killed while it writes its ledger", needs="sandbox")
def flood(w):
    install(w, "k", GOOD)
    for i in range(300):
        w.write("home/deep/secret-%d" % i, "x")
    records = 0
    for round in range(4):
        p = start(w, "k")
        p.send({"type": "tool_call", "id": "1", "name": "t",
                "args": {"do": "flood", "at": w.path("home/deep")}})
        p.until("tool_result")
        time.sleep(0.03 * (round + 1))
        tree = procs.tree(p.pid)
        os.kill(p.pid, signal.SIGKILL)
        all_gone(w, tree, "killed in round %d" % (round + 1))
        p.wait()
        n = whole(w, "k")
        w.check(n > records, "records of this round: %d" % (n - records))
        records = n
    r = w.zotbox("ext", "logs", "k", "--denials", "--json")
    w.check(r.rc == 0 and len(r.out.splitlines()) > 0 and
            all(json.loads(l)["op"] == "fs.read"
                for l in r.out.splitlines()), "ext logs reads it", r)
    works_again(w, "k")


@test("console is killed", needs="sandbox")
def console(w):
    project(w)
    for name in ("a", "b"):
        w.mkext(name, GOOD.replace("NAME", name))
    before, clean = outside(w), status(w)
    p = w.spawn([ZOTBOX, "console", "--scope", w.scope("a", SCOPE),
                 w.path("a"), w.path("b")], stdin=-1, stdout=-1, stderr=-3)
    before[w.path("a.scope.json")] = outside(w)[w.path("a.scope.json")]
    p.stdin.write(b"tools\n")
    p.stdin.flush()
    p.stdout.readline()
    end = time.time() + 10
    while len(procs.tree(p.pid)) < 11 and time.time() < end:
        time.sleep(0.02)
    tree = procs.tree(p.pid)
    w.check(len(tree) >= 11, "control: both run with their strays",
            *[procs.command(n) for n, _ in tree])
    p.kill()
    all_gone(w, tree, "killed")
    after = outside(w)
    w.equal({n for n in {**before, **after} if before.get(n) != after.get(n)
             and n != w.dir + "/."}, set(), "nothing was made outside")
    w.equal(status(w), clean, "git status is as before")


@test("other ends", needs="sandbox")
def ends(w):
    install(w, "k", GOOD)
    project_before = shape(w.project)

    def exits(p):
        p.send({"type": "tool_call", "id": "1", "name": "t",
                "args": {"do": "exit"}})
    rows = [
        ("SIGTERM to wrap", lambda p: os.kill(p.pid, signal.SIGTERM), -15),
        ("SIGHUP to wrap", lambda p: os.kill(p.pid, signal.SIGHUP), None),
        ("SIGINT to wrap", lambda p: os.kill(p.pid, signal.SIGINT), None),
        ("end of input", lambda p: p.close(), None),
        ("shutdown", lambda p: (p.send({"type": "shutdown"}), p.close()), 0),
    ]
    for what, end, want in rows:
        p = start(w, "k")
        tree = started(w, p.pid)
        end(p)
        rc = p.wait(5)
        w.check(want in (None, rc), "%s: exit %s" % (what, rc))
        all_gone(w, tree, what)
    w.equal(shape(w.project), project_before, "the project is as it was")
    # The strays hold its stdout: they go on, as ordered, until that is closed;
    # the host ends it then.
    p = start(w, "k")
    tree = started(w, p.pid)
    exits(p)
    time.sleep(0.3)
    w.check(len(procs.alive(tree)) >= 4, "exit 0: its children go on")
    p.send({"type": "shutdown"})
    p.close()
    w.equal(p.wait(5), 0, "exit 0: the status is passed on")
    all_gone(w, tree, "exit 0")


@test("one that ignores everything", needs="sandbox")
def deaf(w):
    install(w, "d", DEAF)
    p = start(w, "d")
    tree = started(w, p.pid)
    since = time.time()
    p.send({"type": "shutdown"})
    p.close()
    w.equal(p.wait(5), -signal.SIGKILL, "killed")
    w.check(time.time() - since < 2, "before the host's patience ends")
    all_gone(w, tree, "ignored shutdown", 0.3)
    p = start(w, "d")
    tree = started(w, p.pid)
    os.kill(p.pid, signal.SIGTERM)
    w.equal(p.wait(5), -signal.SIGTERM, "SIGTERM")
    all_gone(w, tree, "ignored SIGTERM", 0.3)


def open_files(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


@test("fifty starts", needs="sandbox", seconds=120)
def fifty(w):
    project(w)
    w.mkext("f", '''
        hello("f", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: text(f["id"], "x"))
    ''')
    w.install("f", None, SCOPE)

    def one():
        p = start(w, "f")
        tree = procs.tree(p.pid)
        w.equal(p.shutdown(), 0, "ends") if one.n < 3 else p.shutdown()
        one.n += 1
        for n in os.listdir(w.dir):
            if n.startswith("wrap-"):
                os.unlink(w.path(n))
        return tree
    one.n = 0
    seen = one() | one()

    def files():
        return {n: v[:2] for n, v in shape(w.dir).items()
                if not n.startswith(w.zot_home + "/logs/")}
    before, shared = files(), outside(w)
    for _ in range(48):
        seen |= one()
    w.check(procs.gone(seen, 2), "no process is left")
    after = files()
    w.equal({n for n in {**before, **after} if before.get(n) != after.get(n)},
            set(), "no file is left")
    w.equal({d: shared[d] for d in SHARED}, {d: outside(w)[d] for d in SHARED},
            "nor in /tmp")


@test("fifty starts in one supervisor", needs="sandbox", seconds=120)
def reloads(w):
    w.mkext("f", '''
        hello("f", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: text(f["id"], "x"))
    ''')
    p = w.spawn([ZOTBOX, "console", w.path("f")], stdin=-1, stdout=-1,
                stderr=-3)

    def reload(n):
        for _ in range(n):
            p.stdin.write(b"reload\ncall t {}\n")
            p.stdin.flush()
            while b" result " not in p.stdout.readline():
                pass

    def rss():
        with open("/proc/%d/status" % p.pid) as f:
            return [int(l.split()[1]) for l in f if l.startswith("VmRSS")][0]
    reload(5)
    seen, fds, size = procs.tree(p.pid), open_files(p.pid), rss()
    reload(45)
    time.sleep(0.3)
    w.equal(open_files(p.pid), fds, "descriptors are as many as after five")
    w.equal(len(procs.tree(p.pid)), len(seen), "processes too")
    if "ZB_SANITIZED" not in os.environ:    # it keeps what is freed
        w.check(rss() < size + 4096, "memory: %d kB, then %d" % (size, rss()))
    w.check(procs.gone(seen - {(p.pid, procs.stat(p.pid)[1])}, 2),
            "earlier ones are gone")
    p.stdin.close()
    w.equal(p.wait(10), 0, "exit")


main()
