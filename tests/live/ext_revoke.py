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


main()
