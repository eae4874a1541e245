#!/usr/bin/env python3
"""Extensions that are wrong (tests/fixtures/faults), met three ways: console,
wrap and doctor live on, say what is wrong, and nothing reaches the host that a
strict reader would refuse."""
import json
import os
import re
import shutil
import sys
import time

SRC_DIR = os.environ.get("ZB_SRC", ".")
sys.path[:0] = [os.path.join(SRC_DIR, "tests/lib"),
                os.path.join(SRC_DIR, "tests/fixtures/faults")]
from zbtest import *
from table import FAULTS, build

NO_HELLO = "first stdout line is not a hello frame: "

# name: exit of install, exit of console, exit status of wrap (what zot sees
# after its own shutdown), status in doctor, and what each of them has to say:
# in console's and doctor's lines and in the log.
SAYS = {
    "no-manifest": (2, 3, 3, "error", ["extension.json"]),
    "cut-manifest": (2, 2, 2, "error",
                     ["parse manifest: 1:26: a string is not closed"]),
    "nameless": (2, 2, 2, "error", ["manifest: name is required"]),
    "execless": (2, 2, 2, "error", ["manifest: exec is required"]),
    "no-such-program": (2, 2, 2, "error", ["exec ./absent: not found"]),
    "only-a-theme": (0, 3, None, "theme-only", []),
    "switched-off": (0, 0, 0, "disabled", []),
    "other-directory": (0, 0, 0, "unconfined", []),
    "status-23": (0, 1, 23, "not loaded",
                  ["exited with status 23 before hello",
                   "cannot find my settings"]),
    "terminates-itself": (0, 1, -15, "not loaded",
                          ["ended by signal 15 (Terminated) before hello"]),
    "shuts-stdout": (0, 1, None, "not loaded",
                     ["closed stdout before hello without exiting"]),
    "ready-first": (0, 1, 1, "not loaded",
                    [NO_HELLO + '"{"type":"ready"}"']),
    "prints-first": (0, 1, 1, "not loaded",
                     [NO_HELLO + '"Hello, world"']),
    "stays-silent": (0, 1, None, "not loaded", ["sent no hello within 2 s"]),
    "never-ready": (0, 0, 0, "auto-ready",
                    ["no ready frame; taken as ready after 250 ms"]),
    "other-name": (0, 0, 0, "warning",
                   ['hello says "somebody-else", the manifest "other-name"']),
    "greets-twice": (0, 0, 0, "warning",
                     ["second hello; dropped", "second ready; dropped",
                      'unknown frame type "hello_ack"']),
    "loud-keys": (0, 1, 1, "not loaded",
                  [NO_HELLO + '"{"Type":"hello","NAME":"loud-keys"}"']),
    "folded-keys": (0, 0, 0, "warning",
                    ['duplicate key: "type" and "TYPE"',
                     'duplicate key: "name" and "Name"',
                     'duplicate key "name" in a frame; refused',
                     'a key that only folds to "message"',
                     'a key that only folds to "type"']),
    "bom-and-crlf": (0, 0, 0, "warning",
                     ['skipped line that is not a frame: "\\u{feff}{"type"',
                      "byte-order mark"]),
    "twin-one": (0, 0, 0, "ok", []),
    "twin-two": (0, 0, 0, "warning", []),
    "twice-in-case": (0, 0, 0, "warning",
                      ['command "big" already registered as "Big"; ignored']),
    "takes-builtins": (0, 0, 0, "warning",
                       ['command "HELP" has the name of a built-in one',
                        'tool "read" not registered: a built-in tool']),
    "odd-names": (0, 0, 0, "warning",
                  ['command "" not registered',
                   'command "two words" not registered',
                   'command "/slash" not registered',
                   'command "tab\\x09here" not registered',
                   'command "\\u{202e}right" not registered',
                   'tool "not a name!" not registered',
                   'tool "%s" not registered' % ("x" * 65),
                   'tool "" not registered']),
    "bad-schemas": (0, 0, 0, "warning",
                    ['tool "text" not registered: "schema" must be an object '
                     '(got string)',
                     "skipped line that is not a frame: "
                     '"{"type":"register_tool","name":"syntax"',
                     'tool "nested" not registered: schema.properties must']),
    "wrong-types": (0, 0, 0, "warning",
                    ['register_command: "name" must be a string (got number)',
                     'subscribe: "events" must be an array (got string)',
                     'event "no_such_event" is not granted',
                     'intercept of "turn_end" is not granted']),
    "registers-late": (0, 0, 0, None,
                       ['register_command "late" after ready']),
    "unknown-frame": (0, 0, 0, "warning",
                      ['unknown frame type "teleport"; ignored']),
    "no-frames": (0, 0, 0, "warning",
                  ['not a frame: "{half" (unexpected \'h\'',
                   'not a frame: "[]" (not an object',
                   'not a frame: "null"', 'not a frame: "42"',
                   '"type" is no string', 'no "type"',
                   "more text after the end of the value; 8 so far"]),
    "long-line": (0, 0, 0, "warning",
                  ["line of 4194349 bytes is longer than 4194303; dropped"]),
    "quits-after-ready": (0, 1, 7, None, ["exited with status 7"]),
}
QUICK = {"limits": {"hello_seconds": 2}}
# What is late, and what a settled doctor does not wait for.
LATE = ("registers-late", "quits-after-ready")


@test("every fault is in the table")
def table(w):
    w.equal(sorted(SAYS), sorted(FAULTS))


@test("console", needs="sandbox", seconds=120)
def console(w):
    names = {}
    for name in FAULTS:
        d = build(w, name)
        script = ["commands", "tools"] + ["sleep 0.4"] * (name in LATE)
        c = w.console("./" + os.path.basename(d), script, "--scope",
                      w.scope(name, QUICK))
        _, rc, _, _, words = SAYS[name]
        w.equal(c.rc, rc, name + ": exit", c)
        missing = [x for x in words if x not in c.err]
        w.equal(missing, [], name + ": said on stderr", c)
        w.check(all(H_LINE.fullmatch(x) for x in c.out.splitlines()),
                name + ": every line's form", c)
        # A line of JSON on stdout and a sentence of ours on stderr.
        w.check(all(x.startswith("zotbox: ") or x.startswith("  ")
                    for x in c.err.splitlines()), name + ": its own voice", c)
        names[name] = [(h.type, h.json["name"], h.json["shadowed"])
                       for h in c.of("command")] + \
            [("tool", h.json["name"]) for h in c.of("tool")]
    got = {k: v for k, v in names.items() if v}
    w.equal(got, {
        "never-ready": [("command", "slow", False)],
        "folded-keys": [("command", "key", False)],
        "twin-one": [("command", "Twin", False)],
        "twin-two": [("command", "tWIN", False)],
        "twice-in-case": [("command", "Big", False)],
        "takes-builtins": [("command", "HELP", True)],
        "odd-names": [("command", "d\u00e9j\u00e0", False)],
        "bad-schemas": [("tool", "without")],
        "long-line": [("command", "before", False),
                      ("command", "after", False)],
        "quits-after-ready": [("command", "gone", False)],
    }, "what is registered at all")


@test("two with one name", needs="sandbox")
def twins(w):
    for name in ("twin-one", "twin-two"):
        build(w, name)
    c = w.console(["./twin-one", "./twin-two"], "commands")
    w.contains(c.err, 'twin-two: command "tWIN" already registered by '
               'twin-one as "Twin"; ignored', "", c)
    w.equal([(h.ext, h.json["shadowed"], h.json.get("by"))
             for h in c.of("command")],
            [("twin-one", False, None), ("twin-two", True, "twin-one")],
            "the first one has it", c)


FLOOD = r'''
    hello("flood"); emit(type="subscribe",
                         events=["e%d" % i for i in range(100)]); ready()
    for i in range(300): raw("junk %d\n" % i)
    for i in range(300): emit(type="t%d" % i)
    note("end"); serve()
'''


@test("a flood of faults is told up to a bound", needs="sandbox")
def flood(w):
    w.mkext("flood", FLOOD)
    c = w.console("./flood", "sleep 0.5")
    w.equal(len(c.of("notify")), 1, "it goes on", c)
    told = [x for x in c.err.splitlines() if x.startswith("zotbox: flood: ")]
    w.check(100 < len(told) < 110, "lines on stderr: %d" % len(told))
    w.contains(c.err, "more is wrong with its frames; the rest is in its log")
    log = w.log("flood")
    w.check("junk 299" in log and "t299" in log, "where all are")
    w.install("flood")
    r = w.zotbox("ext", "doctor", "flood", "--json")
    e = strict(r.out)["extensions"][0]
    n = len([x for x in e["warnings"] if x.startswith("denied ")])
    w.check(0 < n <= 50, "refusals in doctor: %d" % n)
    w.check(len(e["warnings"]) < 160, "warnings: %d" % len(e["warnings"]))


def by_hand(w, name, d):
    """Put an extension that install refuses where zot would find it."""
    where = os.path.join(w.zot_home, "extensions", os.path.basename(d))
    shutil.copytree(d, where)
    return where


@test("doctor", needs="sandbox", seconds=120)
def doctor(w):
    for name in FAULTS:
        d = build(w, name)
        r = None
        if name != "other-directory":
            r = w.install(name, "strict", QUICK, may_fail=True)
            w.equal(r.rc, SAYS[name][0], name + ": exit of install", r)
        if r and r.rc:
            words = SAYS[name][4]
            w.equal([x for x in words if x not in r.err], [],
                    name + ": install says it", r)
            w.check(not os.path.exists(os.path.join(
                w.zot_home, "extensions", name)), name + ": nothing is left")
        if not r or r.rc:
            by_hand(w, name, d)
    r = w.zotbox("ext", "doctor", "--json")
    w.equal(r.rc, 5, "exit", r)
    found = {e["name"]: e for e in strict(r.out)["extensions"]}
    w.equal(sorted(found), sorted(FAULTS), "all are there")
    text = w.zotbox("ext", "doctor")
    w.equal(text.rc, 5, "exit of the text form", text)
    w.check(not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]",
                          text.out), "nothing that a terminal acts on")
    for name, (_, _, _, status, words) in SAYS.items():
        e = found[name]
        if status:
            w.equal(e["status"], status, name + ": status", e)
        said = "\n".join(e["warnings"] + e["errors"])
        words = [] if name in LATE else list(words)
        if name == "twin-two":
            words = ['command "tWIN" already registered by twin-one as '
                     '"Twin"; ignored']
        w.equal([x for x in words if x not in said], [], name + ": said", e)
        head = re.search(r"^%s \[global\] (.*) \(.*\)$(\n  .*)*" %
                         re.escape(name), text.out, re.M)
        w.check(head and (not status or head[1] == status) and
                all(x in head[0] for x in words),
                name + ": said in the text form", head and head[0])
    w.equal([(c["name"], c["state"], c["by"])
             for n in ("twin-one", "twin-two", "takes-builtins")
             for c in found[n]["commands"]],
            [("Twin", "active", None), ("tWIN", "shadowed", "twin-one"),
             ("HELP", "shadowed", "zot")], "who has a name")
    quick = min(e["start_ms"] for e in found.values() if e["start_ms"])
    w.check(quick < 1000, "each has its own start-up time: %d ms" % quick)
    listed = w.zotbox("ext", "list")
    w.equal(listed.rc, 0, "list", listed)
    w.equal([n for n in FAULTS if n not in listed.out], [], "lists them all")


def strict(text):
    """As the strictest of hosts reads JSON."""
    def unique(pairs):
        keys = [k.casefold() for k, _ in pairs]
        if len(set(keys)) != len(keys):
            raise ValueError("two keys are the same: %r" % keys)
        return dict(pairs)

    def constant(word):
        raise ValueError(word)
    return json.loads(text, object_pairs_hook=unique,
                      parse_constant=constant)


KNOWN = {"hello", "ready", "register_command", "register_tool", "subscribe",
         "notify", "shutdown_ack"}


def frames_end(lines, name):
    """Has it said all that it will?"""
    return name not in LATE and b'{"type":"ready"}' in lines


def host(w, name):
    """Be zot for one wrapped extension. Return: lines, exit status."""
    p = w.wrap(name)
    lines, greeted, end = [], False, time.time() + 10
    while time.time() < end:
        try:
            done = frames_end(lines, name)
            f = p.recv(0.05 if done else 1 if greeted else 5)
        except TimeoutError:
            break
        if f is None:
            break
        lines.append(p.raw)
        if f.get("type") == "hello" and not greeted:
            greeted = True
            p.send({"type": "hello_ack", "protocol_version": 1,
                    "cwd": w.project, "extension_dir": "/x",
                    "data_dir": "/x"})
    try:
        rc = p.shutdown()
    except BrokenPipeError:
        rc = p.wait()
    return lines, rc


def wrapped_by_hand(w, name, d):
    """As an install would have left it, had it not refused."""
    e = os.path.join(w.zot_home, "extensions", name)
    box = os.path.join(w.zot_home, "zotbox", name)
    shutil.copytree(d, e)
    os.makedirs(os.path.join(box, "data"), exist_ok=True)
    os.makedirs(os.path.join(box, "home"), exist_ok=True)
    if os.path.exists(os.path.join(e, "extension.json")):
        os.rename(os.path.join(e, "extension.json"),
                  os.path.join(box, "manifest.json"))
    with open(os.path.join(e, "extension.json"), "w") as f:
        json.dump({"name": name, "version": "1.0.0", "exec": ZOTBOX,
                   "args": ["wrap", name]}, f)
    with open(os.path.join(box, "scope.json"), "w") as f:
        json.dump({"zotbox": 1, "extends": "strict"}, f)


@test("wrap", needs="sandbox", seconds=120)
def wrap(w):
    passed = {}
    for name in FAULTS:
        d = build(w, name)
        install_rc, _, rc, _, words = SAYS[name]
        if name == "only-a-theme":
            continue                            # it starts nothing
        if install_rc:
            wrapped_by_hand(w, name, d)
        else:
            w.install(os.path.basename(d), "strict", QUICK)
        lines, got = host(w, name)
        if install_rc:
            # Its lock is missing as well: either stops it.
            w.check(got in (2, 3), name + ": does not start: %s" % got,
                    w.log(name))
            w.equal(lines, [], name + ": not a byte before that")
            continue
        if rc is None:
            w.check(got != 0, name + ": ends with a fault: %s" % got)
        else:
            w.equal(got, rc, name + ": exit status", w.log(name))
        if name == "never-ready":
            words = []                          # zot is who decides that
        w.equal([x for x in words if x not in w.log(name)], [],
                name + ": the log says it", w.log(name)[-3000:])
        frames = []
        for line in lines:
            try:
                frames.append(strict(line.decode()))
            except ValueError as e:
                w.check(False, name + ": a strict reader refuses a line", e,
                        line[:200])
        bad = [f for f in frames if f.get("type") not in KNOWN]
        w.equal(bad, [], name + ": only frames that zot knows")
        w.check(len([f for f in frames if f["type"] == "hello"]) ==
                bool(frames) and len([f for f in frames
                                      if f["type"] == "ready"]) <= 1,
                name + ": one hello, one ready", frames)
        names = [(f["type"], f["name"]) for f in frames
                 if f["type"].startswith("register_")]
        if names:
            passed[name] = names
        subscribed = [f for f in frames if f["type"] == "subscribe" and
                      (f.get("events") or f.get("intercept"))]
        w.equal(subscribed, [], name + ": nothing is subscribed")
    w.equal(passed, {
        "never-ready": [("register_command", "slow")],
        "folded-keys": [("register_command", "key")],
        "twin-one": [("register_command", "Twin")],
        "twin-two": [("register_command", "tWIN")],
        "twice-in-case": [("register_command", "Big")],
        "takes-builtins": [("register_command", "HELP")],
        "odd-names": [("register_command", "d\u00e9j\u00e0")],
        "bad-schemas": [("register_tool", "without")],
        "registers-late": [("register_command", "late")],
        "long-line": [("register_command", "before"),
                      ("register_command", "after")],
        "quits-after-ready": [("register_command", "gone")],
    }, "registrations that reach zot")


main()
