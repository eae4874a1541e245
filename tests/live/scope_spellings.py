#!/usr/bin/env python3
"""A deny and the carve-outs that are built in, against every way to spell, or
to come by, the same file. Each way is tried without a sandbox first, where it
must work."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *

# Ways to read @secret (below @d), and to write it. Each gets the directory, the
# name in it, and a scratch directory of its own.
WAYS = r'''
import ctypes, errno, mmap, socket, threading
libc = ctypes.CDLL(None, use_errno=True)
def slurp(p, **kw):
    fd = os.open(p, os.O_RDONLY, **kw)
    try: return os.read(fd, 100).decode()
    finally: os.close(fd)
def dirfd(p, flags=os.O_RDONLY): return os.open(p, flags | os.O_DIRECTORY)
def sub(d): return d + "/src"
def link(make, d, n, s):
    make(d + "/" + n, s + "/link")
    return slurp(s + "/link")
def rename(d, n, s):
    shutil_move(d + "/" + n, s + "/moved")
    try: return slurp(s + "/moved")
    finally: shutil_move(s + "/moved", d + "/" + n)
def shutil_move(a, b): os.rename(a, b)
def chdir_to(d): os.chdir(d)
def by_cwd(d, n, s): chdir_to(d); return slurp("/proc/self/cwd/" + n)
def by_relative(d, n, s): chdir_to(d); return slurp(n)
def by_dot(d, n, s): chdir_to(sub(d)); return slurp("./.././" + n)
def by_fd(d, n, s): return slurp("/proc/self/fd/%d/%s" % (dirfd(d), n))
def by_thread_fd(d, n, s): return slurp("/proc/thread-self/fd/%d/%s" % (dirfd(d), n))
def by_at(d, n, s): return slurp(n, dir_fd=dirfd(d))
def by_at_up(d, n, s): return slurp("../" + n, dir_fd=dirfd(sub(d)))
def by_at_path(d, n, s): return slurp(n, dir_fd=dirfd(d, os.O_PATH))
def by_o_path(d, n, s):
    fd = os.open(d + "/" + n, os.O_PATH)
    return slurp("/proc/self/fd/%d" % fd)
def by_dev_fd(d, n, s):
    fd = os.open(d + "/" + n, os.O_PATH)
    return slurp("/dev/fd/%d" % fd)
def by_renamed_dir(d, n, s):
    os.rename(d + "/src", d + "/src2")
    try: return slurp(d + "/src2/../" + n)
    finally: os.rename(d + "/src2", d + "/src")
def by_link_chain(d, n, s):
    os.symlink(d, s + "/a"); os.symlink("a/src/..", s + "/b")
    return slurp(s + "/b/" + n)
def by_child(d, n, s):
    r, w = os.pipe()
    if not os.fork():
        try: os.write(w, slurp(d + "/" + n).encode())
        except OSError: pass
        os._exit(0)
    os.close(w); return os.read(r, 100).decode()
def by_cat(d, n, s):
    import subprocess
    return subprocess.run(["cat", d + "/" + n], stdout=-1, stderr=-3).stdout.decode()
def by_mmap(d, n, s):
    fd = os.open(d + "/" + n, os.O_RDONLY)
    return mmap.mmap(fd, 0, prot=mmap.PROT_READ)[:20].decode()
def by_sendfile(d, n, s):
    fd = os.open(d + "/" + n, os.O_RDONLY); r, w = os.pipe()
    os.sendfile(w, fd, 0, 20); return os.read(r, 20).decode()
def by_rdwr(d, n, s):
    fd = os.open(d + "/" + n, os.O_RDWR); return os.read(fd, 20).decode()
def by_creat(d, n, s):
    fd = os.open(d + "/" + n, os.O_RDWR | os.O_CREAT); return os.read(fd, 20).decode()
READS = {
  "as it is": lambda d, n, s: slurp(d + "/" + n),
  "slashes": lambda d, n, s: slurp("//" + d.replace("/", "///") + "//" + n),
  "dots": lambda d, n, s: slurp(d + "/./src/.././" + n),
  "proc root": lambda d, n, s: slurp("/proc/self/root" + d + "/" + n),
  "proc root twice": lambda d, n, s: slurp("/proc/self/root/proc/self/root" + d + "/" + n),
  "proc pid root": lambda d, n, s: slurp("/proc/%d/root%s/%s" % (os.getpid(), d, n)),
  "proc cwd": by_cwd, "relative": by_relative, "relative, up": by_dot,
  "fd": by_fd, "thread's fd": by_thread_fd, "at": by_at, "at, up": by_at_up,
  "at a path": by_at_path, "O_PATH, reopened": by_o_path, "dev fd": by_dev_fd,
  "symlink": lambda d, n, s: link(os.symlink, d, n, s),
  "hard link": lambda d, n, s: link(os.link, d, n, s),
  "symlink of its directory": by_link_chain, "another process": by_child,
  "another program": by_cat, "mmap": by_mmap, "sendfile": by_sendfile,
  "for writing too": by_rdwr, "creating": by_creat,
  "renamed": rename, "below a renamed directory": by_renamed_dir,
}
def put(p, flags=os.O_WRONLY | os.O_CREAT, **kw):
    fd = os.open(p, flags, 0o755, **kw)
    try: os.write(fd, b"PLANTED")
    finally: os.close(fd)
def stage(s):
    p = s + "/stage"; put(p); return p
def in_dir(d, n): return os.path.dirname(d + "/" + n), os.path.basename(n)
def w_cwd(d, n, s): chdir_to(d); put(n)
def w_fd(d, n, s):
    p, b = in_dir(d, n); put("/proc/self/fd/%d/%s" % (dirfd(p), b))
def w_at(d, n, s):
    p, b = in_dir(d, n); put(b, dir_fd=dirfd(p))
def w_near(d):
    p = d + "/src/near"; put(p); return p
def w_dir_swap(d, n, s):
    top = n.split("/")[0]; os.makedirs(d + "/src/prep", exist_ok=True)
    q = d + "/src/prep" + n[len(top):]
    os.makedirs(os.path.dirname(q), exist_ok=True)
    if q == d + "/src/prep": os.rmdir(q)
    put(q)
    if os.path.exists(d + "/" + top): os.rename(d + "/" + top, d + "/src/old")
    os.rename(d + "/src/prep", d + "/" + top)
def w_tmpfile(d, n, s, at=""):
    fd = os.open(d + at, os.O_TMPFILE | os.O_WRONLY, 0o755); os.write(fd, b"PLANTED")
    os.link("proc/self/fd/%d" % fd, d + "/" + n, src_dir_fd=dirfd("/"), follow_symlinks=True)
def w_tmpfile_below(d, n, s): w_tmpfile(d, n, s, "/src")
def w_exchange(d, n, s):
    a = w_near(d).encode(); b = (d + "/" + n).encode()
    if not os.path.exists(b): put(b)
    if libc.renameat2(-100, a, -100, b, 2):
        raise OSError(ctypes.get_errno(), "renameat2")
def w_dir_in(d, n, s):
    p, b = in_dir(d, n); q = d + "/src/around"
    if p == d: return put(d + "/" + n)
    os.rename(p, q)
    try: put(q + "/" + b)
    finally: os.rename(q, p)
WRITES = {
  "as it is": lambda d, n, s: put(d + "/" + n),
  "dots": lambda d, n, s: put(d + "/src/../" + n),
  "slashes": lambda d, n, s: put(d + "///" + n.replace("/", "//")),
  "proc root": lambda d, n, s: put("/proc/self/root" + d + "/" + n),
  "relative": w_cwd, "fd": w_fd, "at": w_at,
  "exclusively": lambda d, n, s: put(d + "/" + n, os.O_WRONLY | os.O_CREAT | os.O_EXCL),
  "truncating": lambda d, n, s: put(d + "/" + n, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
  "symlink to its directory": lambda d, n, s: (os.symlink(in_dir(d, n)[0], d + "/src/l"), put(d + "/src/l/" + in_dir(d, n)[1])),
  "renamed to": lambda d, n, s: os.rename(w_near(d), d + "/" + n),
  "linked to": lambda d, n, s: os.link(w_near(d), d + "/" + n),
  "O_TMPFILE": w_tmpfile, "O_TMPFILE from below": w_tmpfile_below,
  "changing places": w_exchange, "a directory renamed around it": w_dir_in,
  "a directory put in its place": w_dir_swap,
}
'''
BODY = WAYS + r'''
hello("s", "tools"); tool("t"); ready()
def t(f):
    a = f["args"]; ways = READS if a["do"] == "read" else WRITES
    if a["do"] == "names": return text(f["id"], json.dumps([list(READS), list(WRITES)]))
    os.chdir("/"); os.makedirs(a["scratch"], exist_ok=True)
    try: got = ways[a["way"]](a["d"], a["n"], a["scratch"])
    except OSError as e: got = "E %s" % errno.errorcode.get(e.errno)
    except Exception as e: got = "E %s %s" % (type(e).__name__, e)
    text(f["id"], str(got))
serve(tool_call=t)
'''


def names(which):
    found = {}
    exec("import os\n" + WAYS, found)
    return list(found[which])


def project(w, name="project"):
    top = w.path(name)
    shutil.rmtree(top, ignore_errors=True)
    for n in (".env", "src/deep.pem", "caf\u00e9.key"):
        w.write(name + "/" + n, "SECRET")
    w.write(name + "/src/main.c", "x")
    w.write(name + "/lib/old", "x")
    w.write(name + "/.git/config", "x")
    w.write(name + "/.git/hooks/pre-push.sample", "x")
    os.makedirs(top + "/.zot")
    return top


def run(w, ways, do, d, n, scratch=None):
    script = [call("t", do=do, way=way, d=d, n=n,
                   scratch="%s/scratch%d" % (scratch or w.home, i))
              for i, way in enumerate(ways)]
    c = w.console("s", script, timeout=110)
    return {way: c.result("s", i) for i, way in enumerate(ways)}, c


def planted(top, n):
    p = os.path.join(top, n)
    if os.path.islink(p):
        return True
    if not os.path.isfile(p):
        return False
    with open(p, "rb") as f:
        return b"PLANTED" in f.read()


def reads(w, scope, policy, denied=(".env", "src/deep.pem", "caf\u00e9.key"),
          aside=None):
    w.mkext("s", BODY)
    d = project(w)
    ways = names("READS")
    for way in ways:
        d = project(w)
        scratch = w.path("control-" + way.replace(" ", "-").replace("'", ""))
        w.equal(w.bare("s", "t", {"do": "read", "way": way, "d": d,
                                  "n": ".env", "scratch": scratch}), "SECRET",
                "control: " + way)
    w.install("s", policy=policy, scope=scope)
    for n in denied:
        d = project(w)
        got, c = run(w, ways, "read", d, n, aside and d + aside)
        for way in ways:
            w.check(got[way] is not None and "SECRET" not in got[way],
                    "%s: %s" % (n, way), got[way], c if not got[way] else "")
        with open(os.path.join(d, n)) as f:
            w.equal(f.read(), "SECRET", n + " is as it was")
        w.check(w.denied("s", "fs.read", os.path.join(d, n)),
                n + ": the ledger names it")


@test("denied for reading, in a project that may be read", needs="sandbox",
      seconds=120)
def read_only(w):
    reads(w, None, "standard")


@test("denied for reading, in a project that may be written", needs="sandbox",
      seconds=120)
def read_write(w):
    reads(w, {"extends": "standard", "fs": {"write": ["${project}"]}}, None)


@test("beside the pattern that may be written", needs="sandbox", seconds=120)
def read_beside(w):
    reads(w, {"fs": {"write": ["${project}/sr*"]}}, None,
          (".env", "caf\u00e9.key"), "/src")


def plant_all(w, scope, targets):
    w.mkext("s", BODY)
    ways = names("WRITES")
    for way in ways:
        d = project(w)
        n = "src/new" if "directory" not in way else ".zot/new"
        w.bare("s", "t", {"do": "write", "way": way, "d": d, "n": n,
                          "scratch": w.path("control")})
        w.check(planted(d, n), "control: " + way)
    w.install("s", policy=None, scope={"fs": scope})
    for n in targets:
        d = project(w)
        if n == ".zot/extensions/x":
            os.mkdir(d + "/.zot/extensions")
        elif n == ".vscode/tasks.json":
            os.mkdir(d + "/.vscode")
        got, c = run(w, ways, "write", d, n)
        for way in ways:
            w.check(got[way] is not None and got[way].startswith("E "),
                    "%s: %s" % (n, way), got[way], c if not got[way] else "")
        w.check(not planted(d, n), n + " is not planted", got)
    return [r for r in w.ledger("s") if r["op"].startswith("fs.")]


@test("carve-outs of a project that may be written", needs="sandbox",
      seconds=240)
def writes(w):
    op = plant_all(w, {"write": ["${project}"]}, (
        ".git/config", ".git/hooks/post-commit", ".envrc",
        ".zot/extensions/x", ".zot/mcp.json", ".vscode/tasks.json", ".claude",
        "src/.envrc", ".git"))
    w.check(any(r["target"].endswith(".git/hooks/post-commit") for r in op) and
            any(r["target"].endswith("/.envrc") for r in op),
            "the ledger names them", op)


@test("names beside the pattern that may be written", needs="sandbox",
      seconds=240)
def writes_beside(w):
    op = plant_all(w, {"read": ["${project}"], "write": ["${project}/sr*"]}, (
        "new", "caf\u00e9.key", "lib/new", "lib/old", "Src", "src/.envrc"))
    w.check({"new", "lib/new", "lib/old"} <=
            {os.path.relpath(r["target"], w.path("project")) for r in op},
            "the ledger names them", op)


main()
