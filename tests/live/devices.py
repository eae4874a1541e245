#!/usr/bin/env python3
"""What stands in /dev and /proc. The devices are the host's own. Their owner is
root, so what runs as root must not change them by a descriptor either. Each
attempt asks for what is so already: if it worked, nothing would be lost."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *

BODY = '''
import stat, struct
hello("dev", "tools"); tool("t"); ready()
ACL = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, 6, 0xffffffff) for tag in (1, 4, 32))
def tried(f, *a, **kw):
    try: f(*a, **kw); return "ok"
    except OSError as e: return "errno %d" % e.errno
def t(f):
    fd = os.open(f["args"]["p"], os.O_RDWR)
    st = os.fstat(fd)
    text(f["id"], " ".join((
        "write", tried(os.write, fd, b"x"),
        "fchmod", tried(os.fchmod, fd, stat.S_IMODE(st.st_mode)),
        "times", tried(os.utime, fd, ns=(st.st_atime_ns, st.st_mtime_ns)),
        "acl", tried(os.setxattr, fd, "system.posix_acl_access", ACL))))
serve(tool_call=t)
'''


@test("what is changed by a descriptor", needs="sandbox", seconds=60)
def changed(w):
    w.mkext("dev", BODY)
    for name in "null", "zero", "random", "urandom":
        path = "/dev/" + name
        if os.geteuid() == 0:
            got = w.bare("dev", "t", {"p": path})
            w.check("fchmod ok times ok" in got, "control: " + path, got)
        c = w.console("./dev", call("t", p=path))
        w.equal(c.result(), "write ok fchmod errno 1 times errno 1 "
                "acl errno 1", "attempt: " + path, c)
        r = w.denied("dev", "fs.meta", path)
        w.check(r and r["errno"] == "EPERM" and r["grant"] is None and
                "host's own" in r["rule"], "cause: " + path,
                w.ledger("dev"))


@test("nothing in /proc is opened for writing", needs="sandbox", seconds=60)
def read_only_proc(w):
    """No record: paths through /proc are left to the kernel. What refuses is
    the mount."""
    w.mkext("prc", '''
        hello("prc", "tools"); tool("t"); ready()
        def t(f):
            mount = "read-only" if os.statvfs("/proc").f_flag & 1 else "writable"
            try:
                os.close(os.open(f["args"]["p"], os.O_WRONLY))
                text(f["id"], mount + ", opened")
            except OSError as e: text(f["id"], mount + ", errno %d" % e.errno)
        serve(tool_call=t)
    ''')
    for name in "clear_refs", "comm", "oom_score_adj":
        path = "/proc/self/" + name
        w.contains(w.bare("prc", "t", {"p": path}), ", opened",
                   "control: " + path)
        c = w.console("./prc", call("t", p=path))
        w.equal(c.result(), "read-only, errno 30",
                "attempt and cause: " + path, c)


@test("a terminal of its own is its own", needs="sandbox", seconds=30)
def terminal(w):
    w.mkext("pty", '''
        import pty
        hello("pty", "tools"); tool("t"); ready()
        def t(f):
            a, b = pty.openpty()
            os.fchmod(b, 0o620)
            text(f["id"], "%o" % (os.fstat(b).st_mode & 0o777))
        serve(tool_call=t)
    ''')
    c = w.console("./pty", call("t"))
    w.equal(c.result(), "620", "its mode can be changed", c)


main()
