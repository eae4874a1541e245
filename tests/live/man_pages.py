#!/usr/bin/env python3
"""The man pages have every command and option that there is, every key of scope
files, and examples that work."""
import json
import os
import re
import sys

SRC = os.environ.get("ZB_SRC", ".")
sys.path.insert(0, os.path.join(SRC, "tests/lib"))
from zbtest import *


def page(name):
    with open(os.path.join(SRC, "man", name), encoding="utf-8") as f:
        return f.read()


def sections(text):
    """What stands below each .Ss, by its name."""
    found = {}
    for part in re.split(r"^\.S[hs] ", text, flags=re.M)[1:]:
        name, _, rest = part.partition("\n")
        found[name] = rest
    return found


@test("every command and option")
def commands(w):
    there = sections(page("zotbox.1"))
    shown = w.zotbox("help").out
    names = re.findall(r"^  ((?:ext )?[a-z]+)  ",
                       shown[shown.index("commands:"):], re.M)
    w.check(len(names) >= 20, "commands are found: %d" % len(names), shown)
    for name in names:
        text = w.zotbox(*name.split(), "--help").out
        options = re.findall(r"^  (?:-(\w), |    )--(\S+)(?: ([A-Z]\S*))?",
                             text, re.M)
        w.check(options, name + ": options are found", text)
        section = there.get(name)
        w.check(section is not None, name + " is in the page")
        items = re.findall(r"^\.It (.*)", section or "", re.M)
        want = [("Fl %s , " % letter if letter else "") + "Fl Fl " + long +
                (" Ar " + value if value else "")
                for letter, long, value in options if long != "help"]
        w.equal(sorted(items), sorted(want), name + ": its options")
    w.equal(sorted(n for n in there if n.islower()), sorted(names),
            "the page has no command that is gone")


def keys(schema):
    for name, value in schema.get("properties", {}).items():
        yield name
        yield from keys(value)


@test("every key of scope files")
def scope_keys(w):
    with open(os.path.join(SRC, "policies/scope.schema.json")) as f:
        schema = json.load(f)
    text = page("zotbox-scope.5")
    words = set(re.findall(r"[$\w]+", " ".join(
        re.findall(r"^\.(?:It Li|Ss|Li) (.*)", text, re.M))))
    all_keys = list(keys(schema))
    w.check(len(all_keys) > 40, "keys are found: %d" % len(all_keys))
    w.equal([k for k in all_keys if k not in words], [], "each is in the page")
    for name in ".git", ".envrc", ".zot/extensions", ".zot/mcp.json", \
            ".claude", ".agents", ".vscode":
        w.contains(text, name)


@test("the example of a scope file", needs="sandbox")
def example(w):
    text = page("zotbox-scope.5")
    block = text[text.index("Sh EXAMPLES"):]
    body = block[block.index("{\n"):block.index(".Ed")]
    w.write("project/notes/a.md", "x")
    w.write("project/notes/a.txt", "x")
    path = w.write("scope.json", body)
    r = w.zotbox("check", path, cwd=w.project)
    w.equal(r.rc, 0, "it is well", r)
    w.mkext("e", """
        hello("e", "tools"); tool("t"); ready()
        def t(f):
            out = []
            for p in f["args"]["paths"]:
                try: open(p, "a").close(); out.append("ok")
                except OSError as e: out.append("no")
            text(f["id"], " ".join(out))
        serve(tool_call=t)
    """)
    c = w.console(w.path("e"), [call("t", paths=[
        os.path.join(w.project, "notes", n) for n in
        ("a.md", "new.md", "a.txt", "new.txt", "private.md")])],
        "--scope", path)
    w.equal([h.text() for h in c.of("result")], ["ok ok no no no"],
            "and holds", c)


main()
