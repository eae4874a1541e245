#!/usr/bin/env python3
"""Scope files that are wrong, each in one way: one error, at the line and the
column where it is, naming the key, and exit 2. And those that are shipped:
right by the parser and by the schema. The wrong ones are made here, always the
same: a right file is written out with the place of every key and value noted,
and one of them is spoilt."""
import glob
import json
import os
import re
import sys

SRC = os.environ.get("ZB_SRC", ".")
sys.path.insert(0, os.path.join(SRC, "tests/lib"))
from zbtest import *
import json_schema

SCHEMA = os.path.join(SRC, "policies/scope.schema.json")

RIGHT = {
    "$schema": "scope.schema.json", "zotbox": 1, "extends": "strict",
    "why": "a reason \u00e9",
    "fs": {"read": ["${project}", "~/.config/w", "/opt/x*"],
           "write": ["${project}/out/"], "exec": ["git", "/usr/bin/env"],
           "deny": ["${project}/**/*.pem", "~/.config/w/.env*"],
           "state": "apart"},
    "net": {"connect": ["a.org:443", "*.b.org:80,443", "[::1]:9",
                        "10.0.0.0/8:1-9"],
            "listen": ["127.0.0.1:9000"], "unix": ["${xdg_runtime_dir}/s"]},
    "env": {"pass": ["A_KEY", "LC_*"], "set": {"B": "x"}},
    "protocol": {"commands": True, "tools": ["t"], "deferred": True,
                 "panels": "any", "notify": True, "prompt": True,
                 "insert": True, "submit": False, "slash": ["/help"],
                 "call_tool": ["read"], "events": ["turn_end"],
                 "event_content": False,
                 "intercept": {"tool_call": ["block", "modify:t"]},
                 "on_failure": "allow"},
    "limits": {"memory": "512M", "processes": 64, "open_files": 256,
               "file_size": 1000, "cpu_seconds": None, "hello_seconds": 30,
               "tool_seconds": 60, "command_seconds": 30,
               "intercept_seconds": 5, "frame_bytes": 4194303,
               "frames_per_second": 200, "submits": 20, "log_bytes": "16M"},
    "ledger": "open",
}


class Raw(str):
    """Text that stands where a value should."""


def write(value, key=None, put=None):
    """The text of the file, and {path: (offset of key, of value)}; @put: a
    path and what stands there instead, as the value or as the key."""
    out, at = bytearray(), {}

    def text(s):
        out.extend(s.encode("utf-8", "surrogateescape"))

    def value_at(v, path, indent):
        at.setdefault(path, [None, None])[1] = len(out)
        if put and key is None and path == put[0]:
            v = put[1]
        if isinstance(v, Raw):
            text(v)
        elif isinstance(v, dict):
            text("{")
            for i, (k, sub) in enumerate(v.items()):
                name = path + "." + k if path else k
                text(("," if i else "") + "\n" + " " * (indent + 2))
                at[name] = [len(out), None]
                text(json.dumps(put[1] if put and key and name == put[0]
                                else k, ensure_ascii=False) + ": ")
                value_at(sub, name, indent + 2)
            text("\n" + " " * indent + "}")
        elif isinstance(v, list):
            text("[")
            for i, sub in enumerate(v):
                text(", " if i else "")
                value_at(sub, "%s[%d]" % (path, i), indent)
            text("]")
        else:
            text(json.dumps(v, ensure_ascii=False))
    value_at(value, "", 0)
    text("\n")
    return bytes(out), at


def position(data, offset):
    before = data[:offset]
    return (before.count(b"\n") + 1, offset - (before.rfind(b"\n") + 1) + 1)


def paths(v=RIGHT, path=""):
    for k, sub in v.items():
        name = path + "." + k if path else k
        yield name, sub
        if isinstance(sub, dict):
            yield from paths(sub, name)


# What a schema cannot say: an order of numbers, a first place.
BEYOND = ("a.org:9-1", Raw('"!reset"'))

FREE = ("env.set.", "protocol.intercept.")  # maps whose keys are the user's


def typos():
    """A letter doubled, and two exchanged, in every key."""
    for name, _ in paths():
        k = name.rsplit(".", 1)[-1]
        if name.startswith(FREE):
            continue
        yield "typo", name, k[:2] + k[1:], k
        if len(k) > 3 and k[1] != k[2]:
            yield "typo", name, k[0] + k[2] + k[1] + k[3:], k


def other_types():
    """In the place of every value one of another type."""
    for name, v in paths():
        for wrong in ({"a": 1}, [1], "word", 1.5, True, None):
            if isinstance(v, dict) and isinstance(wrong, dict):
                continue
            if isinstance(v, list) and isinstance(wrong, list):
                continue
            if isinstance(wrong, dict) or (isinstance(wrong, list) and
                                           not isinstance(v, list)):
                if name not in ("protocol.commands", "protocol.tools",
                                "protocol.events") or wrong == {"a": 1}:
                    yield "type", name, wrong, name
                break
        if isinstance(v, (dict, list)):
            yield "type", name, 7, name
        if isinstance(v, (str, bool)) and not name.startswith("limits."):
            yield "type", name, 7, name


def values():
    """A value of the right type that cannot stand there."""
    lists = {
        "fs.read[0]": ["x/y", "../x", "/a/../b", "~bob/x", "${projekt}/x",
                       "${project}x", "/a/*/b", "$HOME/x",
                       "/x{a,b}", "/x[ab]*", ""],
        "fs.write[0]": ["x", "/a/..", "${home", "/*/x"],
        "fs.exec[0]": ["git status", "..", "*", "a/b", ""],
        "fs.deny[0]": ["*.pem", "${project}/a**b", "/x{a,b}/*", "/a/../b",
                       "/x[12]*"],
        "net.connect[0]": ["a.org", "a.org:0", "a.org:65536", "a.org:9-1",
                           ":443", "http://a.org:80/", "10.0.0.0/33:1",
                           "[::1:9"],
        "net.listen[0]": ["9000", "a.org:80", "127.0.0.1:1-2",
                          "127.0.0.1:0"],
        "net.unix[0]": ["s", "/run/*.sock"],
        "env.pass[0]": ["*", "A B", "1A", "A*B", "A=B", ""],
        "protocol.tools[0]": ["a b", "x" * 65, "t.t"],
        "protocol.slash[0]": ["/", "a b", ""],
        "protocol.call_tool[0]": ["a/b"],
        "protocol.events[0]": ["turn end", "x" * 65],
        "protocol.intercept.tool_call[0]": ["blok", "modify", "modify:",
                                            "modify:a b", "replace:x"],
    }
    for path, wrong in lists.items():
        for v in wrong:
            yield "value", path, v, path
    for name in ("extends", "why"):
        yield "value", name, "", name
    for name, words in (("fs.state", ("besides", "")),
                        ("protocol.panels", ("ani",)),
                        ("protocol.on_failure", ("blok", "fail")),
                        ("ledger", ("opne", "off"))):
        for v in words:
            yield "value", name, v, name
    for v in (2, 0, 1.5, -1):
        yield "value", "zotbox", v, "zotbox"
    yield "value", "fs.read[1]", Raw('"!reset"'), "fs.read[1]"


def limits():
    """One less than the least, one more than the most, a fraction, a word."""
    s = json_schema.load(SCHEMA).schema["properties"]["limits"]["properties"]
    sizes = {"memory": (2 ** 20, 2 ** 50), "file_size": (0, 2 ** 50),
             "log_bytes": (4096, 2 ** 50)}
    for name in RIGHT["limits"]:
        path = "limits." + name
        lo, hi = sizes.get(name) or (s[name]["minimum"], s[name]["maximum"])
        yield "limit", path, lo - 1, path
        yield "limit", path, hi + 1, path
        yield "limit", path, 10.5, path
        yield "limit", path, "12X" if name in sizes else "10", path


def syntax():
    """No JSON: (name, text, offset of the fault, what)."""
    good, at = write(RIGHT)
    fs = at["fs"][0]
    ledger = at["ledger"]
    yield "a comment", good[:fs] + b"// x\n" + good[fs:], fs, ""
    yield "nothing", b"", 0, ""
    yield "a list", b"[]", 0, "object"
    yield "a string", b'"strict"', 0, "object"
    yield "null", b"null\n", 0, "object"
    yield "a byte-order mark", b"\xef\xbb\xbf" + good, 0, ""
    yield "text behind it", good + b"x", len(good), ""
    yield "two values", good + b"{}", len(good), ""
    yield "a single quote", good.replace(b'"open"', b"'open'"), ledger[1], ""
    yield "no quotes", good.replace(b'"ledger"', b"ledger"), ledger[0], ""
    yield "bad UTF-8", good.replace(b"reason", b"reas\xffn"), \
        good.index(b"reason") + 4, ""
    yield "a control character", good.replace(b"reason", b"reas\x01n"), \
        good.index(b"reason") + 4, ""
    yield "half a surrogate", good.replace(b"reason", b"\\ud800"), \
        good.index(b"reason"), ""
    yield "a comma too many", good.replace(b'"open"', b'"open",'), \
        good.index(b'"open"') + 8, ""
    yield "a number with a zero", good.replace(b": 64", b": 064"), \
        good.index(b": 64") + 3, ""
    for k in ("ledger", "fs", "zotbox"):
        twice = b'  "%s": 1,\n  ' % k.encode()
        where = at["ledger"][0] if k != "ledger" else None
        if where is None:
            end = good.rindex(b"\n}")
            yield "twice " + k, good[:end] + b',\n  "ledger": "open"' + \
                good[end:], end + 4, k
        else:
            yield "twice " + k, good[:where] + twice[2:] + good[where:], \
                where, k
    cut = at["limits"][1] + 1
    yield "cut off", good[:cut], cut, ""


def one_error(w, name, data, offset, *parts):
    file = w.path("wrong.json")
    with open(file, "wb") as f:
        f.write(data)
    r = w.zotbox("check", file)
    line, column = position(data, offset)
    want = "%s:%d:%d: error: " % (file, line, column)
    w.check(r.rc == 2 and r.err == "" and r.out.count("\n") == 1 and
            r.out.startswith(want) and all(p in r.out for p in parts),
            name, "want: 2 %s%s" % (want, parts), r)
    return r


def spoilt(w, kinds, by_schema):
    schema = json_schema.load(SCHEMA)
    n = 0
    for kind, path, wrong, name in kinds:
        typo = kind == "typo"
        data, at = write(RIGHT, key=typo or None, put=(path, wrong))
        what = "%s %s: %s" % (kind, path, json.dumps(wrong)[:60])
        near = ('unknown key "%s"' % wrong, 'did you mean "%s"?' % name)
        one_error(w, what, data, at[path][0 if typo else 1],
                  *(near if typo else (re.sub(r"\[\d+\]$", "", name),)))
        if by_schema and wrong not in BEYOND:
            w.check(not schema.valid(json.loads(data)),
                    what + ": nor by the schema")
        n += 1
    return n


@test("what is shipped is right, by parser and schema")
def shipped(w):
    schema = json_schema.load(SCHEMA)
    files = sorted(f for f in glob.glob(os.path.join(SRC, "policies/*.json"))
                   if not f.endswith(".schema.json"))
    files += sorted(glob.glob(os.path.join(SRC, "examples/**/scope*.json"),
                              recursive=True))
    files += sorted(glob.glob(os.path.join(
        SRC, "examples/**/permissions.json"), recursive=True))
    w.check(len(files) >= 3, "there are some", files)
    with open(os.path.join(SRC, "README.md"), encoding="utf-8") as f:
        for i, block in enumerate(re.findall(r"```json\n(.*?)```", f.read(),
                                             re.S)):
            files.append(w.write("readme%d.json" % i, block))
    data, _ = write(RIGHT)
    files.append(w.write("right.json", data.decode()))
    for f in files:
        with open(f, encoding="utf-8") as t:
            w.equal(schema.check(json_schema.loads(t.read())), [],
                    os.path.basename(f) + " by the schema")
        r = w.zotbox("check", f)
        w.check(r.rc == 0 and ": error: " not in r.out,
                os.path.basename(f) + " by the parser", r)


@test("keys that are no keys", seconds=120)
def wrong_keys(w):
    w.check(spoilt(w, typos(), True) >= 60, "enough of them")


@test("values of another type", seconds=120)
def wrong_types(w):
    w.check(spoilt(w, other_types(), True) >= 60, "enough of them")


@test("limits out of bounds", seconds=120)
def wrong_limits(w):
    w.check(spoilt(w, limits(), True) >= 50, "enough of them")


@test("values that cannot stand there", seconds=120)
def wrong_values(w):
    w.check(spoilt(w, values(), True) >= 60, "enough of them")


# Values that can stand there, beside those of RIGHT.
FINE = {
    "fs.read[0]": ["~", "/", "/**", "/a/x*", "/a/?", "${home}/a b", "/a..b",
                   "/x[1]", "/{a}", "${tmp}", "/a//b/", "/.../x"],
    "fs.deny[0]": ["/**/.env*", "${project}/*/x", "/a/**/b/**", "/[x]"],
    "fs.exec[0]": ["node", "g++", "~/bin/*", "/usr/bin/git*", "a.b"],
    "net.connect[0]": ["*:*", "localhost:00080", "\u00fc.org:1",
                       "10.0.0.0/32:65535", "[fe80::1]:1,2-3", "a_b.c:1"],
    "net.listen[0]": ["localhost:1", "[::1]:65535"],
    "net.unix[0]": ["~/s", "/run/x.sock"],
    "env.pass[0]": ["_", "a1*", "PATH"],
    "protocol.tools[0]": ["a-b_1", "x" * 64],
    "protocol.slash[0]": ["help", "/reload-ext"],
    "protocol.events[0]": ["x" * 64],
    "protocol.intercept.tool_call[0]": ["replace", "modify:a-b"],
    "limits.memory": ["1048576", 1048576, 2 ** 50, None, "1g"],
    "limits.file_size": [0, "0"], "limits.cpu_seconds": [1, 2.0],
    "protocol.panels": [True, False], "protocol.events": [True, []],
    "protocol.slash": [False, []], "fs.read": [[], ["!reset"]],
}


@test("values that can stand there", seconds=60)
def right_values(w):
    schema = json_schema.load(SCHEMA)
    for path, good in FINE.items():
        for v in good:
            data, _ = write(RIGHT, put=(path, v))
            what = "%s: %s" % (path, json.dumps(v)[:60])
            w.equal(schema.check(json.loads(data)), [],
                    what + " by the schema")
            f = w.write("fine.json", data.decode())
            r = w.zotbox("check", f)
            w.check(r.rc == 0 and ": error: " not in r.out,
                    what + " by the parser", r)


@test("what is no JSON", seconds=60)
def wrong_syntax(w):
    for name, data, offset, part in syntax():
        one_error(w, name, data, offset, part)


@test("many findings, many files, other commands")
def many(w):
    a = w.write("a.json", '{"zotbox":1,\n"fsx":{},\n"ledger":"x"}')
    b = w.write("b.json", '{"zotbox":1,"env":{"pass":["*"]}}')
    c = w.write("c.json", '{"zotbox":1}')
    r = w.zotbox("check", a, b, c, w.path("none.json"))
    w.equal(r.rc, 2, "malformed", r)
    w.equal([re.sub(r"^.*/([a-z]+\.json[:0-9]*): .*", r"\1", line)
             for line in r.out.splitlines()],
            ["a.json:2:1", "a.json:3:10", "b.json:1:28", "none.json"],
            "every finding of every file", r)
    r = w.zotbox("check", "--json", a, c)
    j = json.loads(r.out)
    w.equal((r.rc, [f["ok"] for f in j["files"]],
             [(x["severity"], x["line"], x["column"])
              for x in j["files"][0]["findings"]]),
            (2, [False, True], [("error", 2, 1), ("error", 3, 10)]), "JSON", r)
    w.equal(w.zotbox("check").rc, 2, "without a file")
    w.mkext("e", 'hello("e", "tools"); ready(); serve()')
    for args in (["ext", "install", w.path("e"), "--scope", a],
                 ["ext", "install", w.path("e"), "--policy", b],
                 ["console", w.path("e"), "--scope", a],
                 ["ext", "why", w.path("e"), "fs.read", "/x", "--scope", b]):
        r = w.zotbox(*args)
        w.equal(r.rc, 2, " ".join(args[:2]) + " does not take it", r)


@test("a chain that leads nowhere")
def chains(w):
    for name, extends, part in (
            ("absent", "./nothere.json", "nothere.json"),
            ("circle", "./circle.json", "circle"),
            ("typo", "strikt", "strikt"),
            ("dir", "/", "")):
        f = w.write(name + ".json", json.dumps(
            {"zotbox": 1, "extends": extends}))
        r = w.zotbox("check", f)
        w.equal((r.rc, r.out.count("\n")), (2, 1), name, r)
        w.contains(r.out, part)


@test("what looks as if it were not meant")
def warnings(w):
    os.makedirs(w.path("home/.config/w"))
    os.makedirs(w.path("project/sub"))
    w.write("home/.netrc", "x")
    w.write("home/.bashrc", "x")
    f = w.write("w.json", json.dumps({
        "zotbox": 1, "extends": "standard",
        "fs": {"read": ["~", "${project}", "${project}/sub", "/nonexistent",
                        "~/.config/w", "~/.config/w", "${zot_home}/zotbox"],
               "write": ["${project}/.git", "~/.bashrc", "~/new",
                         "${project}/out/"],
               "exec": ["nosuchprogram"],
               "deny": ["/opt/**/x", "~/.netrc"]},
        "net": {"connect": ["a.org:443"]},
        "env": {"pass": ["PATH", "X"]},
        "protocol": {"call_tool": ["bash"], "slash": ["/jail"],
                     "event_content": True, "on_failure": "block",
                     "intercept": {"before_agent_start": ["replace"]}},
    }, indent=1))
    r = w.zotbox("check", f)
    w.equal(r.rc, 0, "well-formed all the same", r)
    for part in ('fs.read[0] "~": it is or holds your whole HOME',
                 'fs.read[1] "${project}": standard.json has it already',
                 'fs.read[2] "${project}/sub": adds nothing',
                 'fs.read[3] "/nonexistent": does not exist',
                 'fs.read[5] "~/.config/w": stands there twice',
                 'fs.read[6] "${zot_home}/zotbox": the supervisor',
                 'fs.write[0] "${project}/.git": ',
                 'fs.write[1] "~/.bashrc": a single file',
                 'fs.write[2] "~/new": does not exist',
                 'fs.exec[0] "nosuchprogram": a start under it is refused',
                 'fs.deny[0] "/opt/**/x": nothing that it covers is granted',
                 'net.connect[0] "a.org:443": this version',
                 'env.pass[0] "PATH": strict.json has it already',
                 'call_tool[0] "bash": opens a shell',
                 'slash[0] "/jail": cannot be granted',
                 'before_agent_start[0] "replace": opens the system prompt',
                 "protocol.event_content is true"):
        w.contains(r.out, part)
    w.check('fs.write[3]' not in r.out, "a directory to be made is fine", r)
    w.check('fs.deny[1]' not in r.out, "a deny that is needed is fine", r)
    w.check('env.pass[1]' not in r.out, "and so is a variable", r)
    f = w.write("ev.json", json.dumps({"zotbox": 1, "protocol": {
        "events": ["turn_end", "turn_edn", "of_tomorrow"],
        "intercept": {"tool_cal": ["block"], "tool_call": ["block"]}}}))
    r = w.zotbox("check", f)
    w.equal(r.rc, 0, "a newer zot may have them", r)
    for part in ('events[1] "turn_edn": this is not an event that zot sends '
                 "today; did you mean turn_end?",
                 'events[2] "of_tomorrow": this is not an event',
                 'tool_cal[0] "block": this is not an event that zot sends '
                 "today; did you mean tool_call?"):
        w.contains(r.out, part)
    w.equal(r.out.count("\n"), 3, "and no more", r)
    r = w.zotbox("check", w.write("ob.json",
                                  '{"zotbox": 1, "extends": "observe"}'))
    w.contains(r.out, "what it extends wants the network")
    f = w.write("ok.json", json.dumps(
        {"zotbox": 1, "fs": {"read": ["${project}", "~/.config/w"],
                             "deny": ["${project}/**/*.pem"]}}))
    r = w.zotbox("check", f)
    w.equal((r.rc, r.out, r.err), (0, "", ""), "nothing to say", r)
    r = w.zotbox("check", f, cwd=w.home)
    w.equal((r.rc, r.out), (0, ""), "where there is no project", r)


main()
