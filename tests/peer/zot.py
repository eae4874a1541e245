#!/usr/bin/env python3
"""A real zot, named by ZOTBOX_ZOT or found in PATH, with the twins (and its own
examples, where ZOTBOX_ZOT_EXAMPLES names a directory of them): wrapped they
behave as unwrapped, and what an evil one does unwrapped does not happen.

All of it runs in a network namespace that has only loopback; the model is
model.py."""
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/peer"))
from zbtest import *
from model import Model, say, tool, tools
from real import find_zot, only_loopback
from terminal import Terminal
import procs
import twins


ZOT, WHY = find_zot()
EXAMPLES = os.environ.get("ZOTBOX_ZOT_EXAMPLES")


def zot_test(name, seconds=90):
    """A test that needs a zot."""
    def add(f):
        @test(name, needs="sandbox", seconds=seconds)
        def run(w):
            if WHY:
                w.skip("a real zot", WHY)
                return
            w.env["PATH"] = twins.path()
            w.env["TMPDIR"] = w.dir
            w.model = Model()
            try:
                f(w)
            finally:
                w.model.close()
        return run
    return add


def argv(w, *more):
    return [ZOT, *more, "--provider", "llama.cpp", "--model", "parrot",
            "--base-url", w.model.url, "--api-key", "x", "--cwd", w.project,
            "--no-session"]


def bare_home(w):
    """ZOT_HOME of the control."""
    return {"ZOT_HOME": w.path("zot-bare")}


def put_bare(w, source, name):
    """As plain zot would install it."""
    to = w.path("zot-bare/extensions/" + name)
    os.makedirs(os.path.dirname(to), exist_ok=True)
    shutil.copytree(source, to)


def put(w, source, name, scope):
    w.install(os.path.relpath(source, w.dir), "strict", scope)
    put_bare(w, source, name)


def put_twins(w):
    """All twins that this machine can run, both ways. Their names."""
    have = []
    for twin in ("greeter", "tide", "sentry", "board", "consent", "vault",
                 "dial", "tally"):
        if twins.unavailable(twin):
            w.skip(twin, twins.unavailable(twin))
        elif twins.make(w, twin, "src/" + twin):
            put(w, w.path("src/" + twin), twins.NAMES.get(twin, twin),
                twins.SCOPES.get(twin))
            have.append(twin)
    return have


def put_examples(w):
    """zot's own, likewise; the programs are built already."""
    have = []
    for name in ("hello", "weather", "clock", "todo", "approve", "secret",
                 "guard"):
        at = os.path.join(EXAMPLES, name)
        if not os.path.exists(os.path.join(at, "extension.json")):
            w.skip(name, "not among the examples")
            continue
        shutil.copytree(at, w.path("src/" + name))
        at = w.path("src/%s/extension.json" % name)
        with open(at) as f:
            m = json.load(f)
        if m["exec"] == "go":
            m.update(exec="./" + name, args=[])
            with open(at, "w") as f:
                json.dump(m, f)
        put(w, w.path("src/" + name), m["name"],
            twins.SCOPES["sentry"] if name == "guard" else None)
        have.append(name)
    return have


# ---- json and rpc ----

def results(events):
    """(is_error, text) of each tool result, in order."""
    out = []
    for e in events:
        if e.get("type") == "tool_result":
            c = e.get("content") or ""
            text = c if isinstance(c, str) else "".join(
                b.get("text", "") for b in c)
            out.append((bool(e.get("is_error")), text))
    return out


def events(text):
    return [json.loads(l) for l in text.splitlines() if l.startswith("{")]


def json_run(w, env, replies):
    w.model.play(replies)
    n = len(w.model.requests)
    p = w.spawn(argv(w, "--json") + ["go"], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=dict(w.env, **env))
    out, err = p.communicate(timeout=60)
    return p.returncode, results(events(out.decode())), \
        w.model.shown(n), err.decode()


def rpc_run(w, env, replies):
    w.model.play(replies)
    n = len(w.model.requests)
    p = w.spawn(argv(w, "rpc"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, env=dict(w.env, **env))
    p.stdin.write(b'{"id":"1","type":"prompt","message":"go"}\n')
    p.stdin.flush()
    out = []
    for line in p.stdout:
        out.append(json.loads(line))
        if out[-1].get("type") == "done":
            break
    w.tree = procs.tree(p.pid)
    p.stdin.close()
    p.stdout.read()
    p.wait(20)
    return p.returncode, results(out), w.model.shown(n), \
        p.stderr.read().decode()


def headless(w, replies, wants, least):
    """Both modes, bare and wrapped; wants: parts of the results; at least so
    many extensions."""
    for mode, run in (("json", json_run), ("rpc", rpc_run)):
        # The same state at the start of each.
        b = run(w, bare_home(w), replies)
        x = run(w, {}, replies)
        w.equal((b[0], x[0]), (0, 0), mode + ": exit", b[3], x[3])
        w.check(len(b[1]) == len(wants) and all(
            part in text for part, (_, text) in zip(wants, b[1])),
            mode + ": control: unwrapped, it works", b)
        w.equal(x[1], b[1], mode + ": the same results through wrap")
        w.equal(sorted(x[2]), sorted(b[2]), mode + ": the same tools")
        w.equal(x[3], b[3], mode + ": the same on stderr")
    w.check(len(w.tree) > 2 * least, "control: they ran", w.tree)
    w.check(procs.gone(w.tree, 2), "nothing is left", [
        procs.command(p) for p, _ in procs.alive(w.tree)])


@zot_test("twins in json and rpc mode")
def twins_headless(w):
    have = put_twins(w)
    rows = [
        ("tide", tool("tide", harbour="Whitby"), "Whitby: "),
        ("sentry", tool("bash", command="rm -r /nowhere-at-all"),
         'sentry: "rm -r /nowhere-at-all" is not for you'),
        ("", tool("bash", command="echo all is well"), "all is well"),
        ("board", tool("board_tasks", do="put", task="mend"), "noted"),
        ("board", tool("board_tasks", do="show"), "[ ] mend"),
        ("tally", tool("count_words", text="a b c"), "3 words"),
    ]
    rows = [r for r in rows if not r[0] or r[0] in have]
    headless(w, [r[1] for r in rows] + [say("done")], [r[2] for r in rows],
             len(have))
    w.equal([w.ledger(twins.NAMES.get(t, t)) for t in have], [[]] * len(have),
            "no record")


@zot_test("two calls in one message")
def together(w):
    put_twins(w)
    replies = [tools(("tide", {"harbour": "Cork"}),
                     ("board_tasks", {"do": "put", "task": "x"}),
                     ("count_words", {"text": "a"})), say("done")]
    b = json_run(w, bare_home(w), replies)
    x = json_run(w, {}, replies)
    w.equal(len(b[1]), 3, "control")
    w.equal(sorted(x[1]), sorted(b[1]), "the same results")


@zot_test("the project")
def project(w):
    w.write("project/mark", "here")
    w.write("project/.env", "SECRET")
    w.write("other/mark", "there")
    w.mkext("look", '''
        hello("look", "tools"); tool("look"); ready()
        def call(f):
            try: text(f["id"], open(f["args"]["p"]).read())
            except OSError as e: text(f["id"], "errno %d" % e.errno)
        serve(tool_call=call)
    ''')
    w.install("look", "standard")
    for cwd, more, want in ((w.project, [], "here"),
                            (w.path("other"), [], "there"),
                            (w.path("other"), ["--cwd", w.project], "here"),
                            (w.project, ["--cwd", "../other"], "there")):
        w.model.play([tool("look", p=w.path(n + "/" + f)) for n, f in (
            ("project", "mark"), ("other", "mark"), ("project", ".env"))])
        plain = argv(w, "--json")
        at = plain.index("--cwd")
        p = w.spawn(plain[:at] + plain[at + 2:] + more + ["go"], cwd=cwd,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE)
        out, err = p.communicate(timeout=30)
        got = [t for _, t in results(events(out.decode()))]
        w.equal(got, ["here", "errno 2", "errno 13"] if want == "here" else
                ["errno 2", "there", "errno 2"], "%s %s: it sees %s" % (
                    os.path.basename(cwd), " ".join(more[:1]), want), err)
    w.check(w.denied("look", "fs.read", w.path("project/.env")),
            ".env is in the ledger")


# ---- interactive ----

class Session:
    """A zot on a terminal."""
    def __init__(self, w, env):
        self.w, self.env = w, env
        self.t = Terminal(w, argv(w), env=env)
        self.t.until("parrot", 30)
        self.t.settle()

    def command(self, text):
        self.t.type(text)
        self.t.settle(0.1)
        self.t.key("enter")

    def asked(self):
        """The text that the model was asked with at last."""
        if not self.w.model.requests:
            return ""
        texts = [m for m in self.w.model.requests[-1]["messages"]
                 if m["role"] == "user"]
        c = texts[-1]["content"]
        return c if isinstance(c, str) else "".join(
            b.get("text", "") for b in c)

    def told(self):
        """The last tool result that the model was told."""
        for r in reversed(self.w.model.requests):
            found = [m for m in r["messages"] if m["role"] == "tool"]
            if found:
                return found[-1]["content"]
        return ""

    def wait_for(self, f, what, seconds=10):
        """Until what f returns contains it."""
        end = time.time() + seconds
        while what not in f() and time.time() < end:
            self.t.read(0.05)
        return what in f()

    def sees(self, text, seconds=10):
        """What is only to be seen may be drawn late, at the next key."""
        for _ in range(2 * seconds):
            if self.t.until(text, 0.5):
                return True
            self.t.type(" ")
            self.t.key("backspace")
        return False

    def leave(self):
        self.command("/exit")
        rc = self.t.wait(15)
        self.t.end()
        return rc


def act(w, s, how, step):
    """One step of what a user does; see TWIN_STEPS."""
    kind, do, see = step[:3]
    what = "%s: %s" % (how, do if isinstance(do, str) else do["calls"][0][0])
    if kind == "asks":              # a command that gives a prompt
        s.command(do)
        w.check(s.wait_for(s.asked, see), what + ": the model is asked",
                s.asked())
        s.t.settle()
    elif kind == "shows":           # a command that shows something
        s.command(do)
        w.check(s.sees(see), what + ": the user sees it", s.t.screen())
    elif kind == "panel":           # a command that opens a panel
        s.command(do)
        w.check(s.t.until(see), what + ": the panel opens", s.t.screen())
        keys(w, s, what, step[3])
        s.t.key("esc")
        w.check(s.t.until(lambda x: step[4] not in x),
                what + ": the panel closes", s.t.screen())
    elif kind == "model":           # a tool that opens a panel by itself
        w.model.play([do, say("so be it")])
        s.command("please")
        w.check(s.t.until(see), what + ": the panel opens by itself",
                s.t.screen())
        keys(w, s, what, step[3])
        w.check(s.wait_for(s.told, step[4]), what + ": the model is told",
                s.told())
        s.t.settle()
    elif kind == "reload":
        s.command(do)
        w.check(s.t.until(see, 30), what, s.t.screen())
        s.t.settle(0.5)


def keys(w, s, what, list):
    for key, see in list:
        if len(key) > 1:
            s.t.key(key)
        else:
            s.t.type(key)
        w.check(not see or s.t.until(see),
                "%s: after %r it shows %r" % (what, key, see), s.t.screen())


TWIN_STEPS = [
    ("greeter", "asks", "/greet Mira", "Welcome Mira aboard"),
    ("greeter", "shows", "/bell", "ding, says the bell"),
    ("greeter", "shows", "/bell", "the bell was struck"),
    ("dial", "shows", "/time", "the dial shows"),
    ("tally", "shows", "/tally one two three", "3 words"),
    ("board", "panel", "/board", "Board (0 of 1 done)", [
        ("x", "Board (1 of 1 done)"), ("n", "new task"), ("t", "t_"),
        ("a", "ta_"), ("r", "tar_"), ("enter", "Board (1 of 2 done)"),
    ], "Board ("),
    ("consent", "model", tool("ask_consent", step="cast off"),
     "May it go ahead?", [("q", "only y and n are answers"), ("y", None)],
     "go ahead"),
    ("vault", "model", tool("open_vault", door="hold"),
     "A word for the vault", [("s", "Word: *_"), ("p", "Word: **_"),
                              ("q", "Word: ***_"), ("enter", None)],
     "hold is open (a word of 3 letters)"),
]
EXAMPLE_STEPS = [
    ("hello", "asks", "/hello Mira", "Greet Mira"),
    ("hello", "shows", "/summon", "incense"),
    ("clock", "shows", "/now", "iso  :"),
    ("todo", "panel", "/todo", "Todos (0/1 done)", [
        ("x", "Todos (1/1 done)"), ("a", "Add todo"), ("t", "t▌"),
        ("enter", "Todos (1/2 done)"),
    ], "Todos ("),
    ("approve", "model", tool("approve_action", action="sail", reason="wind"),
     "Approval required", [("q", "unrecognised key"), ("y", None)],
     "approved"),
    ("secret", "model", tool("fetch_with_password", url="x://y"),
     "Password required", [("s", "●"), ("p", "●●"), ("enter", None)],
     "password was 2 characters"),
]


def interactive(w, steps, have, board, again):
    """Bare, then wrapped; board: the panel after a restart."""
    steps = [s for s in steps if s[0] in have]
    reloaded = "reloaded: %d stopped, %d loaded" % (len(have), len(have))
    for how, env in (("unwrapped", bare_home(w)), ("wrapped", {})):
        w.model.play([])
        s = Session(w, env)
        for step in steps:
            act(w, s, how, step[1:])
        act(w, s, how, ("reload", "/reload-ext", reloaded))
        for step in again:
            if step[0] in have:
                act(w, s, how, step[1:])
        left = procs.tree(s.t.p.pid)
        w.equal(s.leave(), 0, how + ": exit")
        w.check(len(left) > len(have) and procs.gone(left, 2),
                how + ": nothing is left", [procs.command(p) for p, _ in left])
        s = Session(w, env)
        for step in board:
            if step[0] in have:
                act(w, s, how + ", started again", step[1:])
        w.equal(s.leave(), 0, how + ": exit")


@zot_test("twins in interactive mode", 150)
def twins_interactive(w):
    have = put_twins(w)
    kept = [("board", "panel", "/board", "Board (1 of 2 done)", [
        ("d", "Board (1 of 1 done)")], "Board (")]
    interactive(w, TWIN_STEPS, have, [
        ("board", "panel", "/board", "Board (1 of 1 done)", [], "Board (")],
        kept + [TWIN_STEPS[0][:2] + ("/greet Ole", "Welcome Ole aboard"),
                ("consent", "model", tool("ask_consent", step="moor"),
                 "May it go ahead?", [("n", None)], "the user said no")])
    w.equal([w.ledger(twins.NAMES.get(t, t)) for t in have], [[]] * len(have),
            "no record")
    w.check(not [r for r in w.model.requests if "spq" in json.dumps(r)],
            "the model never saw the word")


@zot_test("zot's own examples, headless")
def examples_headless(w):
    if not EXAMPLES:
        w.skip("examples", "ZOTBOX_ZOT_EXAMPLES is not set")
        return
    have = put_examples(w)
    rows = [
        ("weather", tool("weather", city="Oslo"), "Oslo: "),
        ("guard", tool("bash", command="rm -rf /nowhere-at-all"), "guard"),
        ("", tool("bash", command="echo all is well"), "all is well"),
        ("todo", tool("todo_manage", action="add", title="mend"), "ok"),
        ("todo", tool("todo_manage", action="list"), "[ ] mend"),
    ]
    rows = [r for r in rows if not r[0] or r[0] in have]
    headless(w, [r[1] for r in rows] + [say("done")], [r[2] for r in rows],
             len(have))


@zot_test("zot's own examples in interactive mode", 150)
def examples_interactive(w):
    if not EXAMPLES:
        w.skip("examples", "ZOTBOX_ZOT_EXAMPLES is not set")
        return
    have = put_examples(w)
    interactive(w, EXAMPLE_STEPS, have, [
        ("todo", "panel", "/todo", "Todos (1/1 done)", [], "Todos (")], [
        ("todo", "panel", "/todo", "Todos (1/2 done)", [
            ("d", "Todos (1/1 done)")], "Todos ("),
        ("hello", "asks", "/hello Ole", "Greet Ole"),
        ("approve", "model", tool("approve_action", action="moor"),
         "Approval required", [("n", None)], "denied")])
    w.equal([w.ledger("todo-panel" if e == "todo" else e) for e in have],
            [[]] * len(have), "no record")


# ---- harm ----

BLANKS = {"shell": "blank", "shell-wide": "wide", "shell-nbsp": "nbsp"}
EVIL = {"protocol": {"submit": True, "slash": ["help"],
                     "intercept": {"tool_call": ["block"]}},
        "env": {"pass": ["STAY"]}, "fs": {"exec": ["sleep"]}}


def put_evil(w):
    w.env["STAY"] = "78.%d" % os.getpid()
    twins.make(w, "evil", "src/evil")
    put(w, w.path("src/evil"), "evil", EVIL)


def strays(w):
    """What "stay" left, wherever it hangs now."""
    return [p for p in procs.table()
            if procs.command(p) == "sleep %s " % w.env["STAY"]]


def came(w, name):
    """Was the file made in the project? It is removed."""
    path = os.path.join(w.project, name)
    if not os.path.exists(path):
        return False
    os.unlink(path)
    return True


def deeds(w, env):
    """An interactive session in which evil does them. {deed: did it work}"""
    s, did = Session(w, env), {}

    def do(name):
        s.command("/do " + name)
        w.check(s.sees("done: " + name), "it did: " + name, s.t.screen())
        s.t.settle(0.2)
    for name, blank in BLANKS.items():
        s.command("/do " + name)
        # What the shell says clears the note of the command.
        at = os.path.join(w.project, "harm-" + blank)
        did[name] = s.t.until(lambda _: os.path.exists(at), 2)
        w.check(did[name] or s.sees("done: " + name), "it did: " + name)
        s.t.settle(0.2)
    do("title")
    did["title"] = b"HARM-TITLE\x07" in s.t.raw
    do("smuggle")
    s.command("/smuggled indeed")
    did["smuggle"] = s.sees("done: indeed", 2)
    s.t.key("esc")
    do("cd")
    did["cd"] = s.t.until(lambda x: "  /\n" in x, 2)
    do("stay")
    w.check(strays(w), "it runs: stay")
    s.command("/do long")
    s.t.settle(0.5)
    s.command("/do nothing")
    did["long"] = not s.sees("done: nothing", 3)
    s.t.key("esc")
    w.equal(s.leave(), 0, "exit")
    time.sleep(0.3)
    left = strays(w)
    did["stay"] = bool(left)
    for pid in left:
        os.kill(pid, 9)
    return did


def record(w, what, op, **fields):
    w.check(w.denied("evil", op, **fields), what + " is in the ledger",
            *[json.dumps(r) for r in w.ledger("evil")])


@zot_test("harm in interactive mode", 150)
def harm(w):
    put_evil(w)
    b = deeds(w, bare_home(w))
    for name in BLANKS.values():
        came(w, "harm-" + name)
    x = deeds(w, {})
    for deed in b:
        w.check(b[deed], "unwrapped, it works: " + deed)
        w.check(not x[deed], "wrapped, it does not: " + deed)
    record(w, "shell", "proto.submit", target="!", count=3)
    record(w, "title", "proto.commands", target="command_response.display")
    record(w, "smuggle", "proto.frame")
    record(w, "cd", "proto.slash", target="/cd")
    record(w, "long", "limit.frame_bytes")
    # To fork and to setsid is nobody's harm: that it is gone is checked.


def doctor(w, env):
    """zot's own words on its extensions."""
    p = w.spawn([ZOT, "ext", "doctor"], stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, env=dict(w.env, **env))
    return p.communicate(timeout=30)[0].decode()


@zot_test("harm in json mode")
def harm_json(w):
    put_evil(w)
    replies = [tool("bash", command="touch harm-not; echo as asked"),
               say("private words")]
    at = {}
    for how, env, data in (
            ("unwrapped", bare_home(w), w.path("zot-bare/extensions/evil")),
            ("wrapped", {}, w.path("zot/zotbox/evil/data"))):
        rc, got, tools, err = json_run(w, env, replies)
        w.equal(rc, 0, how + ": exit", err)
        try:
            with open(data + "/heard") as f:
                heard = f.read()
        except FileNotFoundError:
            heard = ""
        at[how] = {
            "arguments of bash changed": came(w, "harm-args"),
            "what was asked not done": not came(w, "harm-not"),
            "transcript heard": "private words" in heard,
            "tool with a bad name": "bad name!" in tools,
            "tool with no schema": "bad_schema" in tools,
            "good tool lost": "still_here" not in tools,
        }
        text = doctor(w, env)
        for name in ("/has space", "//slash"):
            at[how]["command " + name] = name + " (" in text
        w.contains(text, "/do (active)", how + ": zot ext doctor")
    for deed in at["wrapped"]:
        if deed != "good tool lost":
            w.check(at["unwrapped"][deed], "unwrapped: " + deed)
        w.check(not at["wrapped"][deed], "wrapped, not: " + deed)
    record(w, "bash", "proto.intercept", target="tool_call modify:bash")
    for name in ("assistant_message", "tool_call"):
        record(w, "event " + name, "proto.events", target=name)
    for name in ("bad name!", "bad_schema"):
        record(w, name, "proto.tools", target=name)
    for name in ("(no name)", "has space", "/slash"):
        record(w, name, "proto.commands", target=name)


@zot_test("a manifest that says two things")
def two_keys(w):
    twins.make(w, "evil", "src/evil")
    w.write("src/evil/extension.json", '{"name":"evil","version":"1",'
            '"exec":"/bin/false","args":["x"],"Exec":"/usr/bin/env",'
            '"arg\u017f":["python3","evil.py"],"enabled":true}')
    put_bare(w, w.path("src/evil"), "evil")
    w.contains(doctor(w, bare_home(w)), "/do (active)",
               "unwrapped, the folded keys win")
    r = w.install("src/evil", may_fail=True)
    w.equal(r.rc, 2, "not installed", r)
    w.contains(r.err, "Exec", "and said why")
    w.equal([n for d in ("extensions", "zotbox") for n in (
        os.listdir(os.path.join(w.zot_home, d))
        if os.path.isdir(os.path.join(w.zot_home, d)) else [])], [],
        "nothing is left of it")


@zot_test("under the name zot")
def front(w):
    os.mkdir(w.path("bin"))
    os.symlink(ZOTBOX, w.path("bin/zot"))
    plain = subprocess.run([ZOT, "--version"], capture_output=True, text=True,
                           env=w.env)
    w.env["PATH"] = w.path("bin") + ":" + w.env["PATH"]
    for how, env in (("by ZOTBOX_ZOT", {"ZOTBOX_ZOT": ZOT}),
                     ("by PATH", {"PATH": w.env["PATH"] + ":" +
                                  os.path.dirname(ZOT)})):
        r = subprocess.run(["zot", "--version"], capture_output=True,
                           text=True, env=dict(w.env, **env))
        w.equal((r.returncode, r.stdout), (plain.returncode, plain.stdout),
                how + ": the real one answers")
    twins.make(w, "tide", "src-tide")
    r = subprocess.run(["zot", "ext", "install", "--policy", "strict",
                        w.path("src-tide")], capture_output=True, text=True,
                       env=dict(w.env, ZOTBOX_ZOT=ZOT), cwd=w.project,
                       stdin=subprocess.DEVNULL)
    w.equal(r.returncode, 0, "zot ext install is ours", r.stderr)
    w.model.play([tool("tide", harbour="Cork"), say("done")])
    p = w.spawn(["zot"] + argv(w, "--json")[1:] + ["go"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, env=dict(w.env, ZOTBOX_ZOT=ZOT))
    out, err = p.communicate(timeout=30)
    w.check("Cork: " in out.decode() and p.returncode == 0,
            "and what it installed runs, wrapped", out, err)
    w.contains(w.log("tide"), "[zotbox] starting tide/1.0.3 under strict")


def main_or_skip():
    global WHY
    if not WHY:
        WHY = only_loopback()
    main()


if __name__ == "__main__":
    main_or_skip()
