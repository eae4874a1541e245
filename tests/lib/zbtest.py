"""zbtest - what the live, case and escape tests share.

A test file is a program that speaks TAP:

    #!/usr/bin/env python3
    import os, sys
    sys.path.insert(0, os.path.join(os.environ["ZB_SRC"], "tests/lib"))
    from zbtest import *

    @test("reading a secret is denied and recorded", needs="sandbox")
    def secret(w):
        key = w.write("home/.ssh/id", "KEY")
        w.mkext("snoop", '''
            hello("snoop", "tools"); tool("t"); ready()
            def call(f):
                try: text(f["id"], open(f["args"]["p"]).read())
                except OSError as e: text(f["id"], "errno %d" % e.errno)
            serve(tool_call=call)
        ''')
        w.equal(w.bare("snoop", "t", {"p": key}), "KEY", "control")
        c = w.console("./snoop", call("t", p=key))
        w.equal(c.result("snoop"), "errno 2", "attempt")
        w.check(w.denied("snoop", "fs.read", key), "the ledger names it")
        w.equal(c.rc, 0)

    main()

@test(NAME, needs=..., seconds=60)
    One test; its function gets a fresh World. `needs` is a word or a list:
    "sandbox" (this host can build it), "root", "user" (not root), "linux", or
    a program's name. A need that is missing skips the test and says why;
    with ZOTBOX_MUST_SANDBOX=1 a missing sandbox is a failure instead.
    A test runs at most `seconds`, then it fails and its processes are ended.
main()
    Runs all tests of the file (or those whose name contains an argument of
    the command line) and prints TAP. Every check is one TAP point.

World: throw-away directories and an environment of its own
    w.dir                 everything below; removed at the end
    w.home w.zot_home w.project     HOME, ZOT_HOME, a project (current directory
                          of everything that is run, unless cwd= is given)
    w.env                 environment of what is run: a dict, may be changed
    w.path(REL)           w.dir/REL
    w.write(REL, TEXT, mode=0o644)  a file with its directories; its path
    w.check(COND, WHAT, *diag)      one TAP point; returns COND
    w.equal(GOT, WANT, WHAT)        likewise, shows both when they differ
    w.contains(TEXT, PART, WHAT)    likewise: PART is found in TEXT
    w.skip(WHAT, WHY)               one skipped point
    w.note(*words)                  a TAP comment

Extensions
    w.mkext(NAME, BODY, manifest={}, files={}, program="main.py", line1=None)
        w.dir/NAME with extension.json, the helper h.py and the program: BODY
        after `from h import *`. BODY may be indented. line1 replaces the #!
        line; files maps further relative names to text. Returns the directory.
        In BODY: raw(bytes|str) emit(**frame) recv() hello(NAME, *caps)
        tool(NAME[, schema]) cmd(NAME) ready() note(TEXT[, level])
        text(ID, TEXT[, is_error]) serve(FRAME_TYPE=function, ...)
    w.scope(NAME, {...})  w.dir/NAME.scope.json with "zotbox": 1; its path
    w.install(NAME, policy="strict", scope=None, *options)
        zotbox ext install w.dir/NAME; scope is a dict. Returns the Run; a
        failure is a failed point unless may_fail=True.

Running
    w.zotbox(*ARGS, input=None, timeout=60, cwd=None, env=None) -> Run
        .rc .out .err .secs    rc is negative for a signal
    w.console(EXTS, SCRIPT, *OPTIONS, timeout=60, ...) -> Console, a Run with
        .lines       [H(ext, type, json, at)], every `H:` line
        .of(type=None, ext=None)    those that match
        .result(EXT=None, n=0)      text of the n-th tool result, or None
        EXTS is a name or a list; "./NAME" is w.dir/NAME. SCRIPT is text or a
        list of lines.
    call(TOOL, **args) command(NAME, ARGS) intercept(EVENT, **json)
    event(EVENT, **json)           lines for SCRIPT
    w.bare(NAME, TOOL, ARGS, timeout=20) -> text
        The control: the same extension without any sandbox, as plain zot
        would start it; the text of its tool result.
    w.wrap(NAME, project=None, zot_args=(), env=None) -> Wrap
        `zotbox wrap NAME` as zot starts it: current directory = the installed
        extension, standard error = its log, in a parent whose current
        directory is `project` and whose arguments are zot_args.
        .send({..}) .recv(timeout=10) -> dict or None at the end
        .until(TYPE, timeout=10) -> frame, .seen = all received
        .handshake(cwd=None) -> the hello;  sends hello_ack
        .close() closes its stdin, .wait(timeout=10) -> exit status,
        .shutdown() -> exit status after the host's own manner
        .pid of the wrap itself
    w.spawn([ARGS], **popen) -> Popen, ended by pid when the test ends

Records
    w.ledger(NAME)        records of ext-NAME.denials.jsonl, merged by kind
    w.denied(NAME, OP, TARGET=None, **fields)  the first that matches, or None
    w.log(NAME)           text of ext-NAME.log
"""
import inspect
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback

# A test run in the background starts with SIGINT ignored, and so would what it
# runs: with a handler of our own it is the default again in what we start.
signal.signal(signal.SIGINT, signal.default_int_handler)

__all__ = [
    "test", "main", "World", "Run", "Console", "Wrap", "H", "call", "command",
    "intercept", "event", "can_sandbox", "BUILD", "SRC", "ZOTBOX", "PYTHON",
    "H_LINE",
]

BUILD = os.environ.get("ZB_BUILD", os.getcwd())
SRC = os.environ.get("ZB_SRC", os.path.dirname(os.path.dirname(
    os.path.dirname(os.path.abspath(__file__)))))
ZOTBOX = os.path.join(BUILD, "zotbox")
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else \
    os.path.realpath(sys.executable)
MUST = os.environ.get("ZOTBOX_MUST_SANDBOX", "") not in ("", "0")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

HELPER = r'''
import json, os, sys, time
_o = sys.stdout.buffer
def raw(b): _o.write(b if isinstance(b, bytes) else b.encode()); _o.flush()
def emit(**f): raw(json.dumps(f, separators=(",", ":")) + "\n")
_l = iter(sys.stdin.buffer.readline, b"")
def recv():
    for l in _l: return json.loads(l)
    sys.exit(0)
def hello(n, *c): emit(type="hello", name=n, version="1.0.0", capabilities=list(c)); return recv()
def tool(n, schema=None): emit(type="register_tool", name=n, description=n, schema=schema or {"type": "object"})
def cmd(n): emit(type="register_command", name=n, description=n)
def ready(): emit(type="ready")
def note(s, level="info"): emit(type="notify", level=level, message=s)
def text(i, s, err=False): emit(type="tool_result", id=i, content=[{"type": "text", "text": s}], is_error=err)
def serve(**on):
    while True:
        f = recv(); t = f.get("type")
        if t in on: on[t](f)
        elif t == "shutdown": emit(type="shutdown_ack"); return
'''.lstrip()

# A parent in zot's place: it has the current directory and the arguments that
# zot would have, starts wrap on the descriptors it got, and ends as wrap ends.
PARENT = r'''
import os, signal, subprocess, sys
ext, zotbox, name, pidfile = sys.argv[1:5]
p = subprocess.Popen([zotbox, "wrap", name], cwd=ext)
with open(pidfile + ".new", "w") as f: f.write(str(p.pid))
os.rename(pidfile + ".new", pidfile)
os.close(0); os.close(1)
signal.signal(signal.SIGTERM, lambda n, _: p.send_signal(n))
rc = p.wait()
if rc < 0:
    signal.signal(-rc, signal.SIG_DFL) if -rc != signal.SIGKILL else None
    os.kill(os.getpid(), -rc)
os._exit(rc)
'''


# ---- TAP ----

class Tap:
    def __init__(self):
        self.count = self.failed = 0
        self.out = sys.stdout

    def line(self, ok, what, extra=""):
        self.count += 1
        self.failed += not ok
        what = what.replace("#", "\\#").replace("\n", " ")
        print("%sok %d - %s%s" % ("" if ok else "not ", self.count, what,
                                  extra), file=self.out, flush=True)

    def skip(self, what, why):
        self.line(True, what, " # SKIP " + why.replace("\n", " "))

    def note(self, *words):
        for line in " ".join(str(w) for w in words).splitlines() or [""]:
            safe = line.encode("unicode_escape").decode()[:2000]
            print("# " + safe, file=self.out, flush=True)


tap = Tap()
tests = []


class TimeUp(BaseException):
    pass


def test(name, needs=(), seconds=60):
    def add(f):
        words = (needs,) if isinstance(needs, str) else tuple(needs)
        tests.append((name, words, seconds, f))
        return f
    return add


def main():
    wanted = sys.argv[1:]
    for name, needs, seconds, f in tests:
        if wanted and not any(w in name for w in wanted):
            continue
        run_one(name, needs, seconds, f)
    print("1..%d" % tap.count, flush=True)
    sys.exit(1 if tap.failed else 0)


def run_one(name, needs, seconds, f):
    for need in needs:
        why = missing(need)
        if why and need == "sandbox" and MUST:
            tap.line(False, name)
            tap.note("the sandbox must work here:", why)
            return
        if why:
            tap.skip(name, why)
            return

    def late(*_):
        raise TimeUp()
    before = tap.count
    signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    w = World(name)
    try:
        f(w)
        if tap.count == before:
            tap.line(False, name + ": nothing was checked")
    except TimeUp:
        tap.line(False, name + ": not done after %d s" % seconds)
    except Exception:
        tap.line(False, name + ": " + repr(sys.exc_info()[1])[:300])
        tap.note(traceback.format_exc())
    finally:
        signal.alarm(0)
        w.done()


def missing(need):
    if need == "sandbox":
        return can_sandbox()
    if need == "root":
        return "" if os.geteuid() == 0 else "needs root"
    if need == "user":
        return "" if os.geteuid() != 0 else "needs an ordinary user"
    if need == "linux":
        return "" if sys.platform == "linux" else "needs Linux"
    return "" if shutil.which(need, path=SYSTEM_PATH) else \
        "%s is not installed" % need


_sandbox = None


def can_sandbox():
    """"" if a trivial extension starts here, else zotbox's own reason."""
    global _sandbox
    if _sandbox is None:
        w = World("can this host build the sandbox?")
        try:
            w.mkext("probe", 'hello("probe"); ready(); serve()')
            r = w.console("./probe", "")
            _sandbox = "" if r.rc != 4 else \
                "no sandbox here: " + r.err.strip()[:300]
        finally:
            w.done()
    return _sandbox


# ---- lines for a console script ----

def call(name, **args):
    return "call %s %s" % (word(name), json.dumps(args))


def command(name, args=""):
    return "cmd %s %s" % (word(name), args)


def intercept(name, **fields):
    return "intercept %s %s" % (name, json.dumps(fields))


def event(name, **fields):
    return "event %s %s" % (name, json.dumps(fields))


def word(name):
    return name if re.fullmatch(r"[A-Za-z0-9._-]+", name) else json.dumps(name)


# ---- what was run ----

class Run:
    def __init__(self, rc, out, err, secs):
        self.rc, self.out, self.err, self.secs = rc, out, err, secs

    def show(self):
        return "exit %s after %.1f s\nstdout: %s\nstderr: %s" % (
            self.rc, self.secs, self.out[-1500:], self.err[-1500:])


class H:
    """One line of the console."""
    def __init__(self, ext, kind, data, at):
        self.ext, self.type, self.json, self.at = ext, kind, data, at

    def __repr__(self):
        return "H: %s %s %s @%.3f" % (self.ext, self.type,
                                      json.dumps(self.json), self.at)

    def text(self):
        return "".join(b.get("text", "") for b in
                       self.json.get("content") or [])


H_LINE = re.compile(r"H: (\S+) (\S+) (\{.*\}) @(\d+\.\d{3})")


class Console(Run):
    def __init__(self, run):
        super().__init__(run.rc, run.out, run.err, run.secs)
        self.lines = []
        for line in run.out.splitlines():
            m = H_LINE.fullmatch(line)
            if m:
                self.lines.append(H(m[1], m[2], json.loads(m[3]),
                                    float(m[4])))

    def of(self, type=None, ext=None):
        return [h for h in self.lines if (type is None or h.type == type) and
                (ext is None or h.ext == ext)]

    def result(self, ext=None, n=0):
        found = self.of("result", ext)
        return found[n].text() if n < len(found) else None


class Wrap:
    """One `zotbox wrap` and the host's end of its pipes."""
    def __init__(self, world, name, project, zot_args, env):
        w = self.world = world
        self.name, self.seen, self.buf = name, [], b""
        logs = os.path.join(w.zot_home, "logs")
        os.makedirs(logs, exist_ok=True)
        pidfile = w.path("wrap-%d.pid" % len(os.listdir(w.dir)))
        with open(os.path.join(logs, "ext-%s.log" % name), "ab") as log:
            self.p = w.spawn(
                [sys.executable, "-c", PARENT,
                 os.path.join(w.zot_home, "extensions", name), ZOTBOX, name,
                 pidfile, *zot_args],
                cwd=project or w.project, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log,
                env=dict(w.env, **(env or {})))
        end = time.time() + 10
        while not os.path.exists(pidfile) and time.time() < end:
            time.sleep(0.005)
        with open(pidfile) as f:
            self.pid = int(f.read())

    def send(self, frame):
        line = frame if isinstance(frame, bytes) else json.dumps(
            frame, separators=(",", ":"), ensure_ascii=False).encode()
        self.p.stdin.write(line + b"\n")
        self.p.stdin.flush()

    def recv(self, timeout=10):
        end = time.time() + timeout
        fd = self.p.stdout.fileno()
        while b"\n" not in self.buf:
            if not select.select([fd], [], [], max(0, end - time.time()))[0]:
                raise TimeoutError("no frame within %s s" % timeout)
            more = os.read(fd, 1 << 16)
            if not more:
                return None
            self.buf += more
        line, self.buf = self.buf.split(b"\n", 1)
        self.raw = line
        frame = json.loads(line)
        self.seen.append(frame)
        return frame

    def until(self, kind, timeout=10):
        end = time.time() + timeout
        while True:
            f = self.recv(max(0.01, end - time.time()))
            if f is None or f.get("type") == kind:
                return f

    def handshake(self, cwd=None, **more):
        first = self.recv()
        d = os.path.join(self.world.zot_home, "extensions", self.name)
        self.send(dict(type="hello_ack", protocol_version=1,
                       zot_version="0.0.0", provider="test", model="test",
                       cwd=cwd or self.world.project, extension_dir=d,
                       data_dir=d, **more))
        return first

    def close(self):
        self.p.stdin.close()

    def wait(self, timeout=10):
        return self.p.wait(timeout)

    def shutdown(self, timeout=10):
        self.send({"type": "shutdown"})
        self.close()
        return self.wait(timeout)


# ---- a world of its own ----

class World:
    def __init__(self, name):
        self.name = name
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="zbtest-"))
        self.procs = []
        self.home, self.zot_home, self.project = (
            self.path(n) for n in ("home", "zot", "project"))
        for d in (self.home, self.zot_home, self.project):
            os.mkdir(d)
        self.env = {
            "PATH": SYSTEM_PATH, "HOME": self.home, "LANG": "C.UTF-8",
            "ZOT_HOME": self.zot_home, "TERM": "dumb",
            "USER": "tester", "LOGNAME": "tester",
        }
        for k in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if k in os.environ:
                self.env[k] = os.environ[k]

    def path(self, rel):
        return os.path.join(self.dir, rel)

    def done(self):
        for p in self.procs:
            if p.poll() is None:
                p.kill()
            p.wait()
            for f in (p.stdin, p.stdout, p.stderr):
                if f and not f.closed:
                    try:
                        f.close()
                    except OSError:
                        pass

        def open_up(f, path, _):        # a test may have closed a directory
            os.chmod(os.path.dirname(path), 0o700)
            os.chmod(path, 0o700)
            if f in (os.open, os.scandir, os.listdir):
                shutil.rmtree(path, onerror=open_up)
            else:
                f(path)
        try:
            shutil.rmtree(self.dir, onerror=open_up)
        except OSError as e:
            tap.note("left behind:", self.dir, e)

    def write(self, rel, text, mode=0o644):
        path = self.path(rel)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(path, mode)
        return path

    # -- points --

    def point(self, ok, what, *diag):
        tap.line(bool(ok), self.name + (": " + what if what else ""))
        if not ok:
            at = inspect.stack()[2]
            tap.note("line %d" % at.lineno)
            for d in diag:
                tap.note(d.show() if isinstance(d, Run) else d)
        return ok

    def check(self, cond, what="", *diag):
        return self.point(cond, what, *diag)

    def equal(self, got, want, what="", *diag):
        return self.point(got == want, what, "got  %r" % (got,),
                          "want %r" % (want,), *diag)

    def contains(self, text, part, what="", *diag):
        return self.point(part in (text or ""), what or repr(part),
                          "%r lacks %r" % (text, part), *diag)

    def skip(self, what, why):
        tap.skip(self.name + ": " + what, why)

    def note(self, *words):
        tap.note(*words)

    # -- extensions --

    def mkext(self, name, body, manifest=None, files=None, program="main.py",
              line1=None):
        d = self.path(name)
        main = (line1 or "#!" + PYTHON) + "\nfrom h import *\n" + \
            textwrap.dedent(body).strip("\n") + "\n"
        self.write(name + "/h.py", HELPER)
        self.write(name + "/" + program, main, 0o755)
        m = {"name": name, "version": "1.0.0", "exec": "./" + program,
             "enabled": True}
        m.update(manifest or {})
        self.write(name + "/extension.json", json.dumps(m) + "\n")
        for rel, text in (files or {}).items():
            self.write(name + "/" + rel, text)
        return d

    def scope(self, name, rules):
        return self.write(name + ".scope.json",
                          json.dumps(dict({"zotbox": 1}, **rules)))

    def install(self, name, policy="strict", scope=None, *options,
                may_fail=False):
        args = ["ext", "install", self.path(name)]
        if policy:
            args += ["--policy", policy]
        if scope is not None:
            args += ["--scope", self.scope(name, scope)]
        r = self.zotbox(*args, "--yes", *options)
        if r.rc and not may_fail:
            self.check(False, "install " + name, r)
        return r

    # -- running --

    def spawn(self, args, **kw):
        kw.setdefault("env", self.env)
        kw.setdefault("cwd", self.project)
        p = subprocess.Popen(args, **kw)
        self.procs.append(p)
        return p

    def zotbox(self, *args, input=None, timeout=60, cwd=None, env=None,
               **kw):
        start = time.time()
        p = self.spawn([ZOTBOX, *args],
                       stdin=subprocess.DEVNULL if input is None
                       else subprocess.PIPE,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       cwd=cwd or self.project, env=dict(self.env,
                                                         **(env or {})), **kw)
        data = input.encode() if isinstance(input, str) else input
        try:
            out, err = p.communicate(data, timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            err += b"\n[zbtest: killed after %d s]" % timeout
        return Run(p.returncode, out.decode("utf-8", "backslashreplace"),
                   err.decode("utf-8", "backslashreplace"),
                   time.time() - start)

    def console(self, exts, script, *options, **kw):
        names = [exts] if isinstance(exts, str) else list(exts)
        names = [self.path(n[2:]) if n.startswith("./") else n
                 for n in names]
        if not isinstance(script, (str, bytes)):
            script = "\n".join(script)
        if isinstance(script, str) and script and script[-1] != "\n":
            script += "\n"
        return Console(self.zotbox("console", *options, *names, input=script,
                                   **kw))

    def bare(self, name, tool, args=None, timeout=20, dir=None):
        d = dir or self.path(name)
        with open(os.path.join(d, "extension.json")) as f:
            m = json.load(f)
        p = self.spawn([m["exec"], *m.get("args", [])], cwd=d,
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL, bufsize=0)
        end = time.time() + timeout

        def send(**frame):
            p.stdin.write(json.dumps(frame).encode() + b"\n")
            p.stdin.flush()

        asked = greeted = False
        while time.time() < end:
            if not select.select([p.stdout], [], [], 0.3)[0]:
                if greeted and not asked:
                    asked = True
                    send(type="tool_call", id="1", name=tool, args=args or {})
                continue
            line = p.stdout.readline()
            if not line:
                break
            try:
                f = json.loads(line)
            except ValueError:
                continue
            if f.get("type") == "hello":
                greeted = True
                send(type="hello_ack", protocol_version=1, zot_version="0",
                     provider="test", model="test", cwd=self.project,
                     extension_dir=d, data_dir=d)
            elif f.get("type") == "ready" and not asked:
                asked = True
                send(type="tool_call", id="1", name=tool, args=args or {})
            elif f.get("type") == "tool_result" and f.get("id") == "1":
                p.kill()
                return "".join(b.get("text", "") for b in f["content"])
        p.kill()
        return None

    def wrap(self, name, project=None, zot_args=(), env=None):
        return Wrap(self, name, project, zot_args, env)

    # -- records --

    def logs(self, name, suffix):
        """Those of the installed one, and of one run by its path."""
        found = []
        for word in self.boxes(name) + [name]:
            found += self.rotated(word, suffix)
        return found

    def boxes(self, name):
        """The @HASH of each path from which NAME was run."""
        top, found = os.path.join(self.zot_home, "zotbox"), []
        for box in sorted(os.listdir(top)) if os.path.isdir(top) else []:
            path = os.path.join(top, box, "path")
            if not box.startswith("@") or not os.path.exists(path):
                continue
            with open(path, errors="surrogateescape") as f:
                manifest = f.read().rstrip("\n") + "/extension.json"
            try:
                with open(manifest) as f:
                    if json.load(f).get("name") == name:
                        found.append(box)
            except (OSError, ValueError, AttributeError):
                pass
        return found

    def rotated(self, word, suffix):
        base = os.path.join(self.zot_home, "logs", "ext-%s%s" % (word,
                                                                 suffix))
        old = sorted(base + s for s in (".1", ".2", ".3")
                     if os.path.exists(base + s))
        return old[::-1] + [base]

    def log(self, name):
        text = ""
        for path in self.logs(name, ".log"):
            if os.path.exists(path):
                with open(path, "rb") as f:
                    text += f.read().decode("utf-8", "backslashreplace")
        return text

    def ledger(self, name):
        merged = {}
        for path in self.logs(name, ".denials.jsonl"):
            if not os.path.exists(path):
                continue
            with open(path, "rb") as f:
                for line in f:
                    r = json.loads(line)
                    if "op" not in r:       # a mark, not a record
                        continue
                    key = tuple(str(r.get(k)) for k in (
                        "session", "op", "target", "exe", "errno"))
                    if key in merged:
                        r["count"] += merged[key]["count"]
                        r["first"] = merged[key]["first"]
                    merged[key] = r
        return list(merged.values())

    def denied(self, name, op, target=None, **fields):
        for r in self.ledger(name):
            if r["op"] == op and target in (None, r.get("target")) and all(
                    r.get(k) == v for k, v in fields.items()):
                return r
        return None
