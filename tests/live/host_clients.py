#!/usr/bin/env python3
"""The example clients of zotbox host: short, and what they drive works."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *

DIR = os.path.join(SRC, "examples/clients")
WANT = [
    "command ['milk']",
    "panel notes",
    "keys ['milk', 'x']",
    "submit Summarize: milk; x",
    "image ['red', 'image/png']",
    "rewrite set -x; ls",
    "block guard: no rm ['allow', 'rewrite', 'block']",
    "reload 3 shutdown {} exit 0",
]


def run(w, program, name):
    path = os.path.join(DIR, name)
    with open(path) as f:
        w.check(len(f.readlines()) <= 40, name + " has at most 40 lines")
    import subprocess
    p = w.spawn([program, path, ZOTBOX], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    out, err = p.communicate(timeout=50)
    got = [x.rstrip().replace('","', "', '").replace('["', "['")
           .replace('"]', "']") for x in out.decode().splitlines()]
    for want, line in zip(WANT, got + [""] * len(WANT)):
        w.equal(line, want, name, err.decode()[-500:])
    w.equal((len(got), p.returncode), (len(WANT), 0), name + " ends well")


@test("the client in Python", needs="sandbox")
def python(w):
    run(w, PYTHON, "client.py")


@test("the client in JavaScript", needs=["sandbox", "node"])
def javascript(w):
    run(w, "node", "client.mjs")


main()
