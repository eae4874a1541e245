#!/usr/bin/env python3
"""What is taken back is gone, in whichever spelling of HOME it was granted."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *

EXTENSION = '''
    hello("e", "tools"); tool("t"); ready()
    serve(tool_call=lambda f: text(f["id"], "ok"))
'''


@test("ext revoke, both spellings of HOME", needs="sandbox")
def spellings(w):
    w.mkext("e", EXTENSION)
    scope = os.path.join(w.zot_home, "zotbox/e/scope.json")
    full, tilde = os.path.join(w.home, "secret"), "~/secret"
    with open(full, "w") as f:
        f.write("planted")
    w.equal(w.zotbox("ext", "install", w.path("e")).rc, 0, "installed")
    for granted in ([full], [tilde], [full, tilde]):
        for taken in (full, tilde):
            for value in granted:
                r = w.zotbox("ext", "allow", "e", "fs.read", value)
                w.equal(r.rc, 0, "control: granted", r)
            w.contains(open(scope).read(), "secret", "control: it is there")
            r = w.zotbox("ext", "revoke", "e", "fs.read", taken)
            w.equal(r.rc, 0, "revoke", r)
            w.contains(r.err, "revoked fs.read", "it says so", r)
            w.equal("secret" in open(scope).read(), False,
                    "%s granted, %s taken back" % (granted, taken))
    r = w.zotbox("ext", "revoke", "e", "fs.read", "~/other")
    w.contains(r.err, "nothing to change", "what was never granted", r)


@test("ext revoke, other ways to write a path")
def ways(w):
    w.mkext("e", EXTENSION)
    os.makedirs(os.path.join(w.home, "dir"))
    scope = os.path.join(w.zot_home, "zotbox/e/scope.json")
    w.install("e")
    for granted in ("~/dir", "~/dir/", "${home}/dir", w.home + "/dir/"):
        for taken in ("~/dir", "~/dir/", "${home}/dir/", w.home + "/dir"):
            w.equal(w.zotbox("ext", "allow", "e", "fs.read", granted).rc, 0,
                    "control: granted")
            w.contains(open(scope).read(), "dir", "control: it is there")
            w.zotbox("ext", "revoke", "e", "fs.read", taken)
            w.equal("dir" in open(scope).read(), False,
                    "%s granted, %s taken back" % (granted, taken))
    w.zotbox("ext", "allow", "e", "protocol.slash", "/help")
    w.zotbox("ext", "revoke", "e", "protocol.slash", "help")
    w.equal("help" in open(scope).read(), False, "a slash command without /")


@test("ext revoke of what is inherited says where it comes from")
def inherited(w):
    w.mkext("e", EXTENSION)
    w.install("e", policy="standard")
    r = w.zotbox("ext", "revoke", "e", "fs.read", "${project}")
    w.equal(r.rc, 0, "nothing to do", r)
    w.contains(r.err, "comes from standard.json", "where it comes from", r)
    w.contains(r.err, "zotbox ext allow e fs.deny '${project}'", "a way", r)
    r = w.zotbox("ext", "revoke", "e", "env.pass", "SHELL")
    w.contains(r.err, "comes from strict.json", "a variable", r)
    w.contains(r.err, '"!reset"', "the way there", r)
    r = w.zotbox("ext", "allow", "e", "fs.read", "!reset")
    w.equal(r.rc, 2, "!reset is no grant", r)
    r = w.zotbox("ext", "allow", "e", "fs.deny", "${project}")
    w.equal(r.rc, 0, "the way works", r)
    r = w.zotbox("ext", "why", "e", "fs.read", "${project}/x")
    w.equal(r.rc, 3, "it is closed", r)


main()
