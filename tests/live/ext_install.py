#!/usr/bin/env python3
"""zotbox ext install: from a path and from git, under a policy, over a scope;
and everything that it refuses, after which nothing is there that was not there
before."""
import glob
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *
from zbverbs import *


def box(w, name, rel=""):
    return os.path.join(w.zot_home, "zotbox", name, rel)


def ext(w, name, rel=""):
    return os.path.join(w.zot_home, "extensions", name, rel)


def read_json(path):
    with open(path) as f:
        return json.load(f)


def refused(w, rc, what, *args, text=None, env=None):
    """The install fails with rc, and $ZOT_HOME is what it was."""
    before = snapshot(w)
    r = w.zotbox("ext", "install", *args, env=env)
    w.equal(r.rc, rc, what + ": exit", r)
    w.equal(r.out, "", what + ": nothing on stdout")
    for t in [text] if isinstance(text, str) else text or []:
        w.contains(r.err, t, what + ": says " + t, r)
    w.contains(r.err, "nothing was installed", what + ": says that", r)
    same(w, before, snapshot(w), what + ": nothing is left")
    return r


@test("install from a path")
def from_path(w):
    d = hello(w, "Source-Dir.git", manifest={
        "name": "nm", "description": "d", "language": "python",
        "x-unknown": 9007199254740993, "args": ["-x"]},
        files={"sub/data.txt": "1", ".hidden": "2"})
    os.chmod(os.path.join(d, "main.py"), 0o6755)
    os.chmod(os.path.join(d, "sub/data.txt"), 0o666)
    os.chmod(os.path.join(d, "extension.json"), 0o600)
    with open(os.path.join(d, "extension.json"), "rb") as f:
        shipped = f.read()
    r = w.zotbox("ext", "install", d, cwd=w.home)
    w.equal((r.rc, r.out), (0, ""), "exit", r)
    w.contains(r.err, "installed %s; it starts under policy strict" %
               ext(w, "nm").rstrip("/"), "says where and how")
    w.equal(sorted(os.listdir(ext(w, ""))), ["nm"], "by the manifest's name")
    m = read_json(ext(w, "nm", "extension.json"))
    w.equal(m, {"name": "nm", "version": "1.0.0", "description": "d",
                "language": "python", "enabled": True, "exec": ZOTBOX_REAL,
                "args": ["wrap", "nm"]}, "the wrapped manifest")
    with open(box(w, "nm", "manifest.json"), "rb") as f:
        w.equal(f.read(), shipped, "the shipped one is kept as it was")
    modes = {p: oct(os.stat(q).st_mode & 0o7777) for p, q in {
        "main": ext(w, "nm", "main.py"), "data": ext(w, "nm", "sub/data.txt"),
        "manifest": ext(w, "nm", "extension.json"), "dir": ext(w, "nm"),
        "box": box(w, "nm"), "home": box(w, "nm", "home"),
        "boxes": box(w, "")}.items()}
    w.equal(modes, {"main": "0o755", "data": "0o644", "manifest": "0o600",
                    "dir": "0o755", "box": "0o700", "home": "0o700",
                    "boxes": "0o700"}, "modes")
    lock = read_json(box(w, "nm", "lock.json"))
    w.equal((lock["source"], lock["policy"], lock["commit"]),
            (d, "strict", None), "the lock")
    w.equal(sorted(f["path"] for f in lock["files"]),
            [".hidden", "extension.json", "h.py", "main.py", "sub/data.txt"],
            "the lock has each file")
    w.equal(read_json(box(w, "nm", "scope.json")),
            {"extends": "strict", "zotbox": 1}, "the scope")
    r = refused(w, 3, "again", d, text=[
        "installed already", "from " + d, "under policy strict",
        "zotbox ext remove nm"])
    w.equal(rows(w)["nm"]["wrapped"], True, "it is still there")


ZOTBOX_REAL = os.path.realpath(ZOTBOX)


@test("umask and source modes", seconds=30)
def modes(w):
    for mask in (0, 0o077, 0o777):
        name = "u%o" % mask
        d = hello(w, name, files={"ro/f": "x"})
        os.chmod(os.path.join(d, "ro"), 0o555)
        os.chmod(os.path.join(d, "ro/f"), 0o444)
        r = w.zotbox("ext", "install", d, umask=mask)
        w.equal(r.rc, 0, "umask %o" % mask, r)
        w.equal(oct(os.stat(box(w, name)).st_mode & 0o777), "0o700",
                "the box, %o" % mask)
        w.equal(oct(os.stat(ext(w, name, "ro")).st_mode & 0o777), "0o755",
                "a directory can be gone through, %o" % mask)
        w.equal(oct(os.stat(ext(w, name, "main.py")).st_mode & 0o777),
                "0o755", "a program, %o" % mask)
        w.equal(w.zotbox("ext", "remove", name, "--yes", umask=mask).rc, 0,
                "removed, %o" % mask)
    w.equal(os.listdir(ext(w, "")), [], "all gone")


@test("install from git", needs="git", seconds=60)
def from_git(w):
    hello(w, "g")
    # Each of these would run something if the clone listened to it.
    marker = w.path("marker")
    run = "touch %s" % marker
    w.write("g/.gitattributes", "* filter=evil text eol=crlf ident\n")
    w.write("g/crlf.txt", "a\r\nb\n$Id$\n")
    w.write("g/hooks/post-checkout", "#!/bin/sh\n%s\n" % run, 0o755)
    commit = repo(w, "g")
    stored = subprocess.check_output(["git", "cat-file", "blob",
                                      "HEAD:crlf.txt"], cwd=w.path("g"))
    git(w, "config", "--global", "filter.evil.smudge", run + "; cat")
    git(w, "config", "--global", "filter.evil.required", "true")
    git(w, "config", "--global", "core.hooksPath", "hooks")
    git(w, "config", "--global", "init.templateDir", w.path("template"))
    w.write("template/hooks/post-checkout", "#!/bin/sh\n%s\n" % run, 0o755)
    git(w, "clone", "-q", "--bare", w.path("g"), w.path("bare.git"))
    if os.path.exists(marker):
        os.unlink(marker)
    w.env["GIT_DIR"] = "/nonexistent"       # as inside a hook of git's
    w.env["GIT_INDEX_FILE"] = "/nonexistent/index"
    w.env["GIT_TEMPLATE_DIR"] = w.path("template")
    w.env["GIT_CONFIG_COUNT"] = "1"
    w.env["GIT_CONFIG_KEY_0"] = "core.fsmonitor"
    w.env["GIT_CONFIG_VALUE_0"] = run
    for source, shown in (("file://" + w.path("g"), None),
                          (w.path("bare.git"), None),
                          ("../bare.git", w.path("bare.git"))):
        r = w.zotbox("ext", "install", source)
        w.equal(r.rc, 0, source, r)
        lock = read_json(box(w, "g", "lock.json"))
        w.equal((lock["source"], lock["commit"]), (shown or source, commit),
                "source and commit are recorded")
        w.check(not os.path.exists(ext(w, "g", ".git")), ".git is not kept")
        with open(ext(w, "g", "crlf.txt"), "rb") as f:
            w.equal(f.read(), stored, "the bytes of the commit")
        w.check(os.access(ext(w, "g", "main.py"), os.X_OK), "modes are kept")
        w.equal(w.zotbox("ext", "remove", "g", "-y").rc, 0, "removed")
    w.check(not os.path.exists(marker), "nothing ran")


@test("over ssh, by a program that stands for it", needs="git", seconds=120)
def over_ssh(w):
    hello(w, "sh")
    commit = repo(w, "sh")
    git(w, "branch", "side/one", cwd=w.path("sh"))
    log = w.path("ssh.log")
    # What ssh would have the other machine run, here.
    w.env["GIT_SSH_COMMAND"] = w.write(
        "ssh", '#!/bin/sh\necho "$@" >> %s\n[ -t 0 ] && exit 9\n'
        'for a; do last=$a; done\nexec sh -c "$last"\n' % log, 0o755)
    w.env["GIT_SSH_VARIANT"] = "simple"
    for source in ("ssh://me@host.example" + w.path("sh"),
                   "me@host.example:" + w.path("sh"),
                   "me@host.example:%s#side/one" % w.path("sh")):
        r = w.zotbox("ext", "install", source)
        w.equal(r.rc, 0, source, r)
        lock = read_json(box(w, "sh", "lock.json"))
        w.equal((lock["source"], lock["commit"]), (source, commit),
                "source and commit")
        w.equal(w.zotbox("ext", "update", "sh", "-y").rc, 0, "updates")
        w.equal(w.zotbox("ext", "remove", "sh", "-y").rc, 0, "removed")
    with open(log) as f:
        text = f.read()
    w.equal(text.count("host.example git-upload-pack"), 6,
            "each clone asked that host, and nothing else", text)
    w.env["GIT_SSH_COMMAND"] = "false"
    refused(w, 1, "ssh that fails", "me@host.example:x",
            text="git clone failed")


@test("a huge tree shows how far it is", seconds=180)
def huge(w):
    d = hello(w, "hu")
    for i in range(120):
        os.makedirs(os.path.join(d, "p%d" % i))
        for k in range(100):
            open(os.path.join(d, "p%d/f%d" % (i, k)), "w").close()

    def pause(pid):
        """Copying takes over a second here, whatever the machine."""
        end = time.time() + 30
        while time.time() < end and not glob.glob(
                box(w, "", ".stage-*/ext/p*")):
            time.sleep(0.005)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(2.2)
        os.kill(pid, signal.SIGCONT)
    rc, out = on_terminal(w, ["ext", "install", d], seconds=120,
                          started=pause)
    w.equal(rc, 0, "12 000 files", out)
    w.check(re.search(r"\r\d+ files, \d+ MB copied ", out),
            "it says how far it is", out)
    w.equal(len(read_json(box(w, "hu", "lock.json"))["files"]), 12003,
            "all are in the lock")
    r = w.zotbox("ext", "update", "hu")
    w.equal(r.rc, 0, "and an update compares them", r)
    w.check("files," not in r.err, "no line of progress without a terminal")
    w.note("update: %.1f s" % r.secs)


@test("a repository that would have its reader run something", needs="git")
def evil_repository(w):
    """Objects are missing, and a program is named that would fetch them."""
    hello(w, "ev")
    repo(w, "ev")
    git(w, "clone", "-q", "--bare", w.path("ev"), w.path("ev.git"))
    blob = git(w, "rev-parse", "HEAD:main.py", cwd=w.path("ev")).strip()
    path = w.path("ev.git/objects/%s/%s" % (blob[:2], blob[2:]))
    for pack in os.listdir(w.path("ev.git/objects/pack")):
        if pack.endswith(".pack"):
            os.rename(w.path("ev.git/objects/pack/" + pack), w.path("p.pack"))
    if os.path.exists(w.path("p.pack")):
        for left in os.listdir(w.path("ev.git/objects/pack")):
            os.unlink(w.path("ev.git/objects/pack/" + left))
        with open(w.path("p.pack")) as f:
            subprocess.run(["git", "unpack-objects", "-q"], stdin=f,
                           cwd=w.path("ev.git"), env=w.env, check=True)
    os.unlink(path)
    marker = w.path("marker")
    for key, value in (("core.repositoryFormatVersion", "1"),
                       ("extensions.partialClone", "origin"),
                       ("remote.origin.promisor", "true"),
                       ("remote.origin.url", w.path("ev")),
                       ("remote.origin.uploadpack", "touch %s;" % marker),
                       ("uploadpack.packObjectsHook", "touch %s;" % marker),
                       ("core.fsmonitor", "touch %s;" % marker),
                       ("core.sshCommand", "touch %s;" % marker)):
        git(w, "config", key, value, cwd=w.path("ev.git"))
    refused(w, 1, "it", w.path("ev.git"), text="git clone failed")
    refused(w, 1, "it, by URL", "file://" + w.path("ev.git"))
    w.check(not os.path.exists(marker), "nothing ran")


@test("a .git in a local source", needs="git")
def local_git(w):
    hello(w, "gm")
    marker = w.path("marker")
    w.write("gm/fsm", "#!/bin/sh\ntouch %s\n" % marker, 0o755)
    commit = repo(w, "gm")
    git(w, "config", "core.fsmonitor", w.path("gm/fsm"), cwd=w.path("gm"))
    w.write("gm/.git/hooks/post-checkout", "#!/bin/sh\ntouch %s\n" % marker,
            0o755)
    w.write("gm/sub/.git", "gitdir: ../.git\n")
    if os.path.exists(marker):
        os.unlink(marker)
    r = w.zotbox("ext", "install", "../gm")
    w.equal(r.rc, 0, "exit", r)
    w.contains(r.err, ".git left out (source commit %s recorded)" % commit)
    w.equal([p for p in snapshot(w) if ".git" in p.split("/")], [],
            "no .git, at any depth")
    w.equal(read_json(box(w, "gm", "lock.json"))["commit"], commit,
            "the commit is recorded")
    for verb in ("list",), ("disable", "gm"), ("remove", "gm", "-y"):
        w.zotbox("ext", *verb)
    w.check(not os.path.exists(marker), "nothing ran")


@test("submodules are named", needs="git")
def submodules(w):
    w.write("lib/a", "1")
    repo(w, "lib")
    hello(w, "sm")
    git(w, "init", "-q", cwd=w.path("sm"))
    git(w, "submodule", "-q", "add", "file://" + w.path("lib"), "vendor/lib",
        cwd=w.path("sm"))
    repo(w, "sm")
    r = w.zotbox("ext", "install", "file://" + w.path("sm"))
    w.equal(r.rc, 0, "exit", r)
    w.contains(r.err, "submodule vendor/lib (file://%s) was not fetched" %
               w.path("lib"))
    w.zotbox("ext", "remove", "sm", "-y")
    git(w, "config", "-f", ".gitmodules", "submodule.vendor/lib.url",
        "ext::sh -c touch% " + w.path("marker"), cwd=w.path("sm"))
    git(w, "commit", "-q", "-a", "-m", "y", cwd=w.path("sm"))
    r = w.zotbox("ext", "install", "file://" + w.path("sm"))
    w.equal((r.rc, os.path.exists(w.path("marker"))), (0, False),
            "whatever its URL is, it is not fetched", r)


@test("what is no source", seconds=30)
def no_source(w):
    w.write("bin/git", "#!/bin/sh\necho \"$@\" >> %s\nexit 1\n" %
            w.path("git.log"), 0o755)
    w.env["PATH"] = w.path("bin") + ":" + w.env["PATH"]
    m = w.path("marker")
    for rc, u in (
            (2, "--upload-pack=touch %s;" % m),
            (2, "-cprotocol.ext.allow=always"), (2, "--template=/tmp/x"),
            (2, "-oProxyCommand=x@h:y"), (2, ""), (2, "./none"), (2, "none"),
            (2, "https://h/a\nb"), (2, "https://h/\x1b[31m"),
            (2, "ssh://-oProxyCommand=touch%20" + m + "/x"),
            (2, "x@-oProxyCommand=touch:x"), (2, "/etc/passwd"),
            (3, "ext::sh -c touch% " + m), (3, "fd::17/x"),
            (3, "git://127.0.0.1:1/x"), (3, "http://127.0.0.1:1/x"),
            (3, "ftp://127.0.0.1:1/x.git")):
        before = snapshot(w)
        r = w.zotbox("ext", "install", "--", u)
        w.equal(r.rc, rc, repr(u)[:60], r)
        w.check("\x1b" not in r.err, "shown escaped, " + repr(u)[:30])
        same(w, before, snapshot(w), "nothing is left, " + repr(u)[:30])
    r = w.zotbox("ext", "install", "--upload-pack=x")
    w.equal(r.rc, 2, "an unknown option", r)
    w.check(not os.path.exists(m), "no marker")
    w.check(not os.path.exists(w.path("git.log")), "git was not started")
    os.mkdir(w.path("empty"))
    refused(w, 2, "no manifest", w.path("empty"),
            text="source lacks extension.json")
    w.write("home/extension.json", '{"name":"h","exec":"./x"}')
    refused(w, 3, "HOME and what it holds", w.dir + "/home",
            env={"ZOT_HOME": w.dir + "/home/zot"},
            text="holds the place where extensions are installed")


@test("git that asks, hangs or is not there", needs="git", seconds=60)
def git_trouble(w):
    import http.server
    import threading

    class Asks(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.end_headers()

        def log_message(self, *a):
            pass
    asks = http.server.HTTPServer(("127.0.0.1", 0), Asks)
    threading.Thread(target=asks.serve_forever, daemon=True).start()
    url = "http://127.0.0.1:%d/x.git" % asks.server_port
    w.env["GIT_ASKPASS"] = w.write("ask", "#!/bin/sh\ntouch %s\necho u\n" %
                                   w.path("asked"), 0o755)
    w.env["SSH_ASKPASS"], w.env["DISPLAY"] = w.env["GIT_ASKPASS"], ":0"
    refused(w, 3, "plain http", url, text="--allow-http")
    pid, fd = pty.fork()                    # on a terminal that could ask
    if pid == 0:
        os.execve(ZOTBOX, ["zotbox", "ext", "install", url, "--allow-http"],
                  w.env)
    out, end = b"", time.time() + 20
    while time.time() < end:
        if select.select([fd], [], [], 0.2)[0]:
            try:
                out += os.read(fd, 4096)
            except OSError:
                break
    status = os.waitpid(pid, os.WNOHANG)
    if not status[0]:
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)
    os.close(fd)
    asks.shutdown()
    asks.server_close()
    w.equal(os.waitstatus_to_exitcode(status[1]), 1, "exit 1", out)
    w.contains(out.decode(), "authentication needed for " + url, "says why")
    w.check(not os.path.exists(w.path("asked")), "nobody was asked")

    with socket.socket() as silent:         # takes connections, says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = "http://127.0.0.1:%d/x.git" % silent.getsockname()[1]
        p = w.spawn([ZOTBOX, "ext", "install", url, "--allow-http"],
                    stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        conn = silent.accept()[0]           # git has started
        start = time.time()
        p.send_signal(signal.SIGINT)
        p.stderr.read()
        w.equal(p.wait(10), 130, "Ctrl-C: exit 130")
        w.check(time.time() - start < 5, "at once")
        conn.settimeout(10)
        try:
            while conn.recv(4096):
                pass
            gone = True
        except ConnectionError:
            gone = True
        except TimeoutError:
            gone = False
        w.check(gone, "git is gone as well")
        conn.close()
    w.env["PATH"] = w.path("nothing")
    refused(w, 1, "no git", "file://" + w.path("x"),
            text="the program git cannot be started")
    w.env["PATH"] = "/usr/bin:/bin"
    refused(w, 1, "no such repository", "file://" + w.path("x"),
            text="git clone failed")


@test("a password in a URL is not kept", needs="git")
def password(w):
    # A git that clones something else than it was told.
    hello(w, "pw")
    repo(w, "pw")
    w.write("bin/git", '#!/bin/sh\nfor a; do last=$a; done\n'
            'GIT_ALLOW_PROTOCOL=file exec git.real clone -q %s "$last"\n' % w.path("pw"), 0o755)
    os.symlink(shutil.which("git"), w.path("bin/git.real"))
    w.env["PATH"] = w.path("bin") + ":" + w.env["PATH"]
    r = w.zotbox("ext", "install", "https://me:geheim@127.0.0.1:1/x.git")
    w.equal(r.rc, 0, "exit", r)
    w.equal(read_json(box(w, "pw", "lock.json"))["source"],
            "https://me@127.0.0.1:1/x.git", "the lock")
    w.check("geheim" not in r.err, "nor shown", r)


@test("links inside the source", seconds=60)
def links(w):
    w.write("secret", "TOPSECRET")
    w.write("outdir/f", "TOPSECRET")
    rows = (
        ("inside", 0, [("node_modules/.bin/c", "../p/c.js")]),
        ("absolute", 3, [("k", "/etc/passwd")]),
        ("out by ..", 3, [("k", "../secret")]),
        ("a directory", 3, [("d", "../outdir")]),
        ("by another link", 3, [("a", ".."), ("b", "a/secret")]),
        ("absolute, inside", 3, [("k", w.path("sx/main.py"))]),
        ("the manifest", 3, [("extension.json", "../m.json")]),
        ("the program", 3, [("main.py", "/usr/bin/true")]),
        ("permissions", 3, [("permissions.json", "../secret")]),
        ("leads nowhere", 0, [("k", "missing")]),
        ("leads nowhere yet", 3, [("k", "missing/../../secret")]),
        ("up and down again", 3, [("k", "../sx/main.py")]),
        ("round and round", 0, [("k", "k2"), ("k2", "k")]),
        ("itself", 0, [("me", ".")]),
        ("a name with a line break", 3, [("x\nzotbox: installed", "/etc")]),
        ("deep", 0, [("a/b/c/k", "../../../main.py")]),
        ("too deep up", 3, [("a/b/c/k", "../../../../secret")]),
    )
    w.write("m.json", '{"name":"sx","exec":"./main.py"}')
    for what, rc, made in rows:
        d = hello(w, "sx", files={"node_modules/p/c.js": "1"})
        for name, target in made:
            path = os.path.join(d, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if os.path.lexists(path):
                os.unlink(path)
            os.symlink(target, path)
        if rc:
            r = refused(w, rc, what, d, text="points outside the extension")
            w.equal(r.err.count("\n"), 1, what + ": one line")
        else:
            r = w.zotbox("ext", "install", d)
            w.equal(r.rc, 0, what, r)
            for name, target in made:
                w.equal(os.readlink(ext(w, "sx", name)), target,
                        what + ": kept as a link")
            if what in ("leads nowhere", "round and round"):
                w.contains(r.err, "is a link that leads nowhere", what)
        found = subprocess.run(["grep", "-rl", "TOPSECRET", w.zot_home],
                               stdout=subprocess.PIPE).stdout
        w.equal(found, b"", what + ": no byte from outside")
        w.zotbox("ext", "remove", "sx", "-y")
        subprocess.run(["rm", "-rf", d])


@test("what is no file", seconds=30)
def specials(w):
    d = hello(w, "sp")
    fifo = os.path.join(d, "fifo")
    os.mkfifo(fifo)
    refused(w, 3, "a FIFO", d, text="fifo is a device, socket or FIFO")
    os.unlink(fifo)
    s = socket.socket(socket.AF_UNIX)
    s.bind(fifo)
    refused(w, 3, "a socket", d, text="fifo is a device, socket or FIFO")
    s.close()
    os.unlink(fifo)
    deep = "/".join(["d"] * 70)
    w.write("sp/%s/f" % deep, "x")
    refused(w, 3, "too deep", d, text="nested too deep")


@test("names", seconds=60)
def names(w):
    hello(w, "good")
    w.equal(w.zotbox("ext", "install", w.path("good")).rc, 0, "a good one")
    bad = [".", "..", "../x", "/etc/zz", "a/b", "a\\b", "", " ", "-rf", "--",
           "a\nb", "a\0b", "x" * 300, "x" * 65, ".git", "~", "*", "con.",
           "ａ", "é", "​good", "a b", "\x1b[31m"]
    for i, n in enumerate(bad):
        d = hello(w, "s", manifest={"name": n})
        r = refused(w, 2, "name %r" % n[:20], d)
        w.check("\x1b" not in r.err and r.err.count("\n") == 1,
                "shown in one line, escaped", r)
    d = w.path("s")
    for text in ('{"exec":"./main.py"}', '{"name":5,"exec":"./main.py"}',
                 '{"name":"q","name":"../z","exec":"./main.py"}',
                 '[]', '', '{', '{"name":"q"}', '{"name":"q","exec":""}',
                 '{"name":"q","exec":5}', '{"name":"q","exec":"./x"} x',
                 '{"name":"q","exec":"./x","args":"y"}', 'null',
                 '\ufeff{"name":"q","exec":"./main.py"}',
                 '{"name":"q","exec":"./main.py","enabled":"yes"}'):
        w.write("s/extension.json", text)
        refused(w, 2, "manifest " + text[:40], d)
    w.equal(list(rows(w)), ["good"], "the good one stays alone")
    longest = "x" * 64
    hello(w, "l", manifest={"name": longest})
    w.equal(w.zotbox("ext", "install", w.path("l")).rc, 0, "64 letters")
    w.equal(w.zotbox("ext", "remove", longest, "-y").rc, 0, "and away")


@test("keys that zot would take for others", seconds=30)
def folding(w):
    d = hello(w, "fk")
    for text in (
            '{"name":"fk","exec":"./main.py","Exec":"./evil"}',
            '{"name":"fk","Exec":"./main.py"}',
            '{"name":"fk","exec":"./main.py","ARGS":["x"]}',
            '{"name":"fk","exec":"./main.py","enabled":true,"Enabled":false}',
            '{"Name":"fk","exec":"./main.py"}',
            '{"name":"fk","exec":"./main.py","arg\u017f":["x"]}',
            '{"name":"fk","exec":"./main.py","x":1,"X":2}',
            '{"name":"fk","exec":"./main.py","descr\u0131ption":"",'
            '"v":{"a":1,"a":2}}'):
        w.write("fk/extension.json", text)
        refused(w, 2, text, d)


@test("themes")
def themes(w):
    w.write("th/extension.json", '{"name":"th","x":1.50}\n')
    w.write("th/theme.json", "{}")
    r = w.zotbox("ext", "install", w.path("th"))
    w.equal(r.rc, 0, "a theme", r)
    w.contains(r.err, "a theme, it starts nothing")
    with open(ext(w, "th", "extension.json")) as f:
        w.equal(f.read(), '{"name":"th","x":1.50}\n', "as it is")
    row = rows(w)["th"]
    w.equal((row["wrapped"], row["policy"], row["problem"]),
            (False, "-", None), "starts nothing")
    w.equal(w.zotbox("ext", "remove", "th", "-y").rc, 0, "removed")
    os.mkdir(w.path("th/themes"))
    os.rename(w.path("th/theme.json"), w.path("th/themes/theme.json"))
    w.equal(w.zotbox("ext", "install", w.path("th")).rc, 0, "in themes/")
    w.zotbox("ext", "remove", "th", "-y")
    w.write("outside.json", "{}")
    os.unlink(w.path("th/themes/theme.json"))
    os.symlink("../../outside.json", w.path("th/themes/theme.json"))
    refused(w, 3, "a link outside", w.path("th"),
            text="points outside the extension")
    os.unlink(w.path("th/themes/theme.json"))
    os.symlink("../real.json", w.path("th/themes/theme.json"))
    w.write("th/real.json", "{}")
    w.equal(w.zotbox("ext", "install", w.path("th")).rc, 0, "a link inside")
    w.zotbox("ext", "remove", "th", "-y")
    for theme in ("../x", "/etc/passwd", "~/x"):
        w.write("th/extension.json", json.dumps({"name": "th",
                                                 "theme": theme}))
        refused(w, 3, "theme " + theme, w.path("th"), text="may lie outside")
    hello(w, "both", files={"theme.json": "{}"})
    w.equal(w.zotbox("ext", "install", w.path("both")).rc, 0, "both")
    w.equal(rows(w)["both"]["wrapped"], True, "is wrapped")


@test("policies and scopes", seconds=60)
def policies(w):
    d = hello(w, "p")

    def install(what, rc, *args, policy=None, text=None, scope=None):
        if rc:
            return refused(w, rc, what, d, *args, text=text)
        r = w.zotbox("ext", "install", d, *args)
        w.equal(r.rc, 0, what, r)
        w.equal(rows(w)["p"]["policy"], policy, what + ": the policy")
        if scope:
            w.equal(read_json(box(w, "p", "scope.json")), scope,
                    what + ": the scope")
        w.zotbox("ext", "remove", "p", "-y")
        return r
    install("default", 0, policy="strict")
    install("standard", 0, "--policy", "standard", policy="standard")
    install("=", 0, "--policy=strict", policy="strict")
    install("unknown", 2, "--policy", "strictt", text="no preset of that name")
    install("observe", 3, "--policy", "observe", text="--yes")
    # It opens the network, which is not built yet.
    install("observe, meant", 4, "--policy", "observe", "--yes",
            text=["observe is not available in this version",
                  "use strict or standard"])
    base = w.write("pol/base.json", json.dumps(
        {"zotbox": 1, "extends": "standard", "env": {"pass": ["X"]}}))
    install("a file", 0, "--policy", base, policy="standard+scope",
            scope={"zotbox": 1, "extends": base})
    install("a file, from here", 0, "--policy", "../pol/base.json",
            policy="standard+scope")
    bad = w.write("bad.json", '{"zotbox":1,"fs":{"reed":[]}}')
    install("a bad file", 2, "--policy", bad, text=["reed", "read"])
    over = w.scope("over", {"env": {"pass": ["Y"]}})
    install("a scope alone", 0, "--scope", over, policy="strict+scope")
    install("both", 0, "--scope", over, "--policy", "standard",
            policy="standard+scope")
    std = w.scope("std", {"extends": "standard", "env": {"pass": ["Y"]}})
    install("what it extends", 0, "--scope", std, policy="standard+scope")
    install("the same twice", 0, "--scope", std, "--policy", "standard",
            policy="standard+scope")
    install("conflict", 2, "--scope", std, "--policy", "strict",
            text=['extends "standard"', '--policy says "strict"'])
    rel = w.write("pol/rel.json",
                  '{\n\t"zotbox": 1,\n\t"extends": "base.json"\n}\n')
    install("relative to the file", 0, "--scope", rel,
            policy="standard+scope",
            scope={"zotbox": 1, "extends": base})
    install("nowhere", 2, "--scope", w.write(
        "pol/lost.json", '{"zotbox":1,"extends":"lost2.json"}'),
        text="no such file")
    lost = w.write("pol/lost.json", '{"zotbox":1}')
    w.zotbox("ext", "install", d, "--policy", lost)
    os.unlink(lost)
    row = rows(w)["p"]
    w.equal((row["policy"], row["problem"]),
            ("unknown", "its scope cannot be read: it does not start"),
            "a policy that went away")
    w.zotbox("ext", "remove", "p", "-y")
    obs = w.scope("obs", {"extends": "observe"})
    install("observe by the back door", 3, "--scope", obs, text="--yes")
    install("no scope file", 2, "--scope", w.path("none.json"))
    install("malformed", 2, "--scope", bad, text=["bad.json:1:", "read"])
    wide = w.scope("wide", {"fs": {"read": ["~"]}})
    r = install("too broad", 3, "--scope", wide, "--yes",
                text="--yes-i-mean-it")
    w.contains(r.err, "wide.scope.json:", "by the name of the file")
    install("too broad, meant", 0, "--scope", wide, "--yes-i-mean-it",
            policy="strict+scope")
    net = w.scope("net", {"net": {"connect": ["example.org:443"]}})
    install("cannot be enforced", 4, "--scope", net, text="net.connect")
    out = w.scope("out", {"fs": {"write": ["${project}"],
                                 "exec": ["${project}"]}})
    install("cannot be enforced in any project", 4, "--scope", out,
            text="the kernel cannot execute")
    r = w.zotbox("ext", "install", d, "--policy", "standard", cwd=w.home)
    w.equal((r.rc, r.err.count("\n")), (0, 1), "standing in HOME is no news",
            r)
    w.zotbox("ext", "remove", "p", "-y")
    r = w.zotbox("ext", "install", d, "--fresh", "--adopt")
    w.equal(r.rc, 2, "--fresh and --adopt", r)
    no = hello(w, "p", manifest={"exec": "./none.py"})
    refused(w, 2, "no program", no, text="./none.py: not found")
    for text, mode, words in (
            ("#!/bin/sh\n", 0o644, "is not executable (chmod +x "),
            ("#!/no/such\n", 0o755, 'interpreter "/no/such" does not exist'),
            ("#!\n", 0o755, "names no interpreter"),
            ("", 0o755, "it is empty"),
            ("MZ", 0o755, "built for Windows")):
        bad = w.mkext("bad", HELLO % "bad")
        w.write("bad/main.py", text, mode)
        refused(w, 2, words, bad, text=words)
        shutil.rmtree(bad)
    hello(w, "p", manifest={"exec": "surely-not-there-9"})
    refused(w, 2, "no program in PATH", no, text="surely-not-there-9")


ASKED = {"zotbox": 1, "why": "because", "fs": {
    "read": ["~/notes", "~", "~/it's"], "exec": ["sh"], "deny": ["!reset"]},
    "net": {"connect": ["example.org:443"]},
    "env": {"pass": ["ASKED", "-n"], "set": {"E": "1"}}, "ledger": "writes",
    "protocol": {"submit": True, "slash": ["/x"], "events": ["turn_start"],
                 "intercept": {"tool_call": ["block", "modify:bash"]},
                 "panels": "any", "on_failure": "block"},
    "limits": {"memory": "2G"}}
CAN = {"env.set E=1", "fs.read ~/notes", "fs.read ~/it's", "fs.exec sh", "env.pass ASKED",
       "protocol.submit true", "protocol.slash /x",
       "protocol.events turn_start", "protocol.intercept.tool_call block",
       "protocol.panels any", "protocol.on_failure block",
       "limits.memory 2147483648"}
CANNOT = {"fs.read ~", "net.connect example.org:443",
          "protocol.intercept.tool_call modify:bash"}


def granted(w, name):
    d = json.loads(w.zotbox("ext", "doctor", name, "--json").out)
    return {"%(key)s %(value)s" % x
            for x in d["extensions"][0]["requested_not_granted"]}


@test("what is asked for", seconds=60)
def asked(w):
    want = dict(ASKED, env={"pass": ["ASKED"], "set": {"E": "1"}})
    d = hello(w, "as", files={"permissions.json": json.dumps(want)})
    w.write("home/notes", "n")
    w.write("home/it's", "n")
    for args in ([], ["--policy", "strict"], ["--policy", "strict", "--yes"]):
        r = w.zotbox("ext", "install", d, *args)
        what = " ".join(args) or "no option"
        w.equal(r.rc, 0, what, r)
        w.equal(read_json(box(w, "as", "scope.json")),
                {"zotbox": 1, "extends": "strict"}, what + ": nothing more")
        w.equal({" ".join(o[3:]) for o in offers(r.err)}, CAN,
                what + ": a command for each that can be granted", r)
        for c in CANNOT:
            w.contains(r.err, "(no command for %s; " % c, what + ": " + c, r)
        if "--yes" not in args:
            w.zotbox("ext", "remove", "as", "-y")
    w.equal({o[0] for o in offers(r.err)} | {tuple(o[:3]) for o in
                                             offers(r.err)},
            {"ext", ("ext", "allow", "as")}, "they are commands")
    for o in offers(r.err):
        w.equal(w.zotbox(*o).rc, 0, "it works: " + " ".join(o))
    w.equal(granted(w, "as"), CANNOT, "and all are granted then")
    one_by_one = read_json(box(w, "as", "scope.json"))
    w.zotbox("ext", "remove", "as", "-y")
    r = w.zotbox("ext", "install", d, "--yes")
    w.equal(r.rc, 0, "--yes", r)
    w.equal(read_json(box(w, "as", "scope.json")), one_by_one,
            "grants the same, and nothing that was not named")
    w.contains(r.err, "granted what it asks for: ", "says so")
    w.equal(offers(r.err), [], "no command is left")
    for c in CANNOT:
        w.contains(r.err, "(no command for %s; " % c, "--yes: " + c, r)
    w.zotbox("ext", "remove", "as", "-y")
    r = w.zotbox("ext", "install", d, "--yes", "--yes-i-mean-it")
    w.equal(granted(w, "as"), {"net.connect example.org:443"},
            "also what is too broad, if it is meant", r)
    w.zotbox("ext", "remove", "as", "-y")
    r = w.zotbox("ext", "install", d, "--yes", "--scope",
                 w.scope("own", {"env": {"pass": ["OWN"]}}))
    w.equal(read_json(box(w, "as", "scope.json")),
            {"zotbox": 1, "extends": "strict", "env": {"pass": ["OWN"]}},
            "a scope of the user's own is not added to", r)


@test("strange things asked for", seconds=30)
def strange(w):
    d = hello(w, "st")
    for text, part in (
            ('{', "what the extension asks for is not understood"),
            ('{"zotbox":1,"fs":{"reed":[]}}', "reed"),
            ('[]', "what the extension asks for is not understood")):
        w.write("st/permissions.json", text)
        r = w.zotbox("ext", "install", d, "--yes")
        w.equal(r.rc, 0, "it grants nothing, so it is only said: " + text, r)
        w.contains(r.err, part, text)
        w.zotbox("ext", "remove", "st", "-y")
    many = {"zotbox": 1, "env": {"pass": ["V%d" % i for i in range(300)]},
            "fs": {"read": ["~", "~/\x1b[31m\nzotbox ext allow st fs.read /"],
                   "exec": ["-x"]}}
    w.write("st/permissions.json", json.dumps(many))
    r = w.zotbox("ext", "install", d)
    w.equal(r.rc, 0, "many", r)
    w.check("\x1b" not in r.err, "escaped")
    w.check(all(line.startswith("zotbox: ") for line in
                r.err.splitlines()), "no line of its own", r)
    w.contains(r.err, "and 203 more: zotbox ext doctor st", "not all are shown")
    w.check(r.secs < 20, "in time")


@test("standard asks on a terminal", seconds=60)
def asks(w):
    d = hello(w, "at", files={"permissions.json": json.dumps(
        {"zotbox": 1, "env": {"pass": ["ASKED"]}, "fs": {"read": ["~"]}})})
    args = ["ext", "install", d, "--policy", "standard"]
    for answer, scope in ((b"n\n", {}), (b"\n", {}),
                          (b"y\n", {"env": {"pass": ["ASKED"]}})):
        rc, out = on_terminal(w, args, answer)
        w.equal(rc, 0, repr(answer), out)
        w.contains(out, "env.pass ASKED", "says what")
        w.equal(read_json(box(w, "at", "scope.json")),
                dict({"zotbox": 1, "extends": "standard"}, **scope),
                "%r is what it says" % answer)
        w.zotbox("ext", "remove", "at", "-y")
    before = snapshot(w)
    rc, out = on_terminal(w, args, b"\x03")
    w.equal(rc, 130, "Ctrl-C at the question", out)
    same(w, before, snapshot(w), "leaves nothing")
    rc, out = on_terminal(w, ["ext", "install", d], b"y\n")
    w.check("[y/N]" not in out and rc == 0, "strict does not ask", out)
    rc, out = on_terminal(w, ["ext", "remove", "at"], b"n\n")
    w.equal((rc, "at" in rows(w)), (3, True), "remove asks, and takes no", out)
    rc, out = on_terminal(w, ["ext", "remove", "at"], b"y\n")
    w.equal((rc, "at" in rows(w)), (0, False), "and yes", out)


@test("what is asked for: the worst first, with what it opens", seconds=60)
def by_risk(w):
    d = hello(w, "br", files={"permissions.json": json.dumps(
        {"zotbox": 1, "limits": {"memory": "2G"}, "env": {"pass": ["PLAIN"]},
         "fs": {"read": ["~/keys", "~"], "write": ["~/.bashrc"]},
         "protocol": {"submit": True, "intercept": {
             "tool_call": ["modify:bash", "block"]}}})})
    w.write("home/keys/id_rsa", "k")
    w.write("home/keys/a", "a")
    w.write("home/.bashrc", "")
    r = w.zotbox("ext", "install", d)
    lines = r.err.splitlines()
    want = ["whatever it likes:", "read ~: your whole home directory",
            "change, replace and delete ~/.bashrc;", "run later",
            "as good as a shell", "in your name:",
            "read ~/keys: 2 files, 1 of them with names of keys or passwords "
            "(id_rsa)", "zotbox ext allow br fs.read ~/keys",
            "write to the agent in your name", "within bounds:",
            "read the variable PLAIN", "see every tool call", "harmless:",
            "memory"]
    at = -1
    for part in want:
        found = [i for i, x in enumerate(lines) if part in x and i >= at]
        w.check(found, "in this order: " + part, r.err)
        at = found[0] if found else at
    w.zotbox("ext", "remove", "br", "-y")
    for env, red in (({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False),
                     ({"TERM": "xterm", "NO_COLOR": "1"}, False)):
        w.env.pop("NO_COLOR", None)
        w.env.update(env)
        rc, out = on_terminal(w, ["ext", "install", d, "--policy",
                                  "standard"], b"n\n")
        w.equal((rc, "\x1b[31m  with this it can do" in out), (0, red),
                "red: %r" % env, out)
        w.zotbox("ext", "remove", "br", "-y")


@test("one yes to everything grants nothing that is grave", seconds=60)
def yes_is_not_grave(w):
    d = hello(w, "yg", files={"permissions.json": json.dumps(
        {"zotbox": 1, "fs": {"read": ["~/notes"],
                             "write": ["~/.bashrc", "~/out"]},
         "protocol": {"intercept": {"assistant_message": ["replace"]}}})})
    w.write("home/notes/a", "a")
    w.write("home/.bashrc", "")
    w.write("home/out/b", "b")

    def granted():
        with open(box(w, "yg") + "scope.json") as f:
            text = f.read()
        return [x in text for x in ("notes", "out", ".bashrc", "replace")]
    r = w.zotbox("ext", "install", d, "--policy", "standard", "--yes")
    w.equal((r.rc, granted()), (0, [True, True, False, False]),
            "only what is not", r.err)
    for line in ("zotbox ext allow yg fs.write ~/.bashrc",
                 "zotbox ext allow yg protocol.intercept.assistant_message "
                 "replace", "asks for 2 things"):
        w.check(line in r.err, "told: " + line, r.err)
    w.zotbox("ext", "remove", "yg", "-y")
    r = w.zotbox("ext", "install", d, "--policy", "standard", "--yes",
                 "--yes-i-mean-it")
    w.equal((r.rc, granted()), (0, [True] * 4), "unless it is meant", r.err)


@test("left-overs: --fresh and --adopt", seconds=60)
def left_overs(w):
    d = hello(w, "lo")
    w.install("lo", "standard", {"env": {"pass": ["MINE"]}})
    w.write("zot/zotbox/lo/data/state", "kept")
    w.write("zot/zotbox/lo/home/.cfg", "kept")
    subprocess.run(["rm", "-rf", ext(w, "lo")], check=True)
    before = snapshot(w)
    refused(w, 3, "neither", d, text=["--fresh", "--adopt", box(w, "lo")[:-1]])
    refused(w, 2, "adopt under another policy", d, "--adopt", "--policy",
            "strict", text="--adopt keeps the scope")
    refused(w, 2, "adopt with a scope", d, "--adopt", "--scope",
            w.scope("o", {}), text="--adopt keeps the scope")
    net = w.scope("net", {"net": {"connect": ["example.org:443"]}})
    refused(w, 4, "fresh that fails", d, "--fresh", "--scope", net)
    r = w.zotbox("ext", "install", d, "--adopt")
    w.equal(r.rc, 0, "adopt", r)
    w.equal(rows(w)["lo"]["policy"], "standard+scope", "the scope is kept")
    w.equal(read_json(box(w, "lo", "lock.json"))["policy"], "standard",
            "and the lock says so")
    after = snapshot(w)
    same(w, before, {k: v for k, v in after.items()
                     if not k.startswith("extensions/lo")},
         "everything of the box is kept")
    subprocess.run(["rm", "-rf", ext(w, "lo")], check=True)
    w.write("lo/more.py", "")
    hello(w, "lo", manifest={"exec": "./nothing.py"})
    refused(w, 2, "adopt that fails", d, "--adopt")
    hello(w, "lo")
    r = w.zotbox("ext", "install", d, "--adopt", "--policy", "standard")
    w.equal(r.rc, 0, "the policy that it has may be said", r)
    subprocess.run(["rm", "-rf", ext(w, "lo")], check=True)
    r = w.zotbox("ext", "install", d, "--fresh")
    w.equal((r.rc, rows(w)["lo"]["policy"]), (0, "strict"), "fresh", r)
    w.check(not os.path.exists(box(w, "lo", "data/state")), "is fresh")
    subprocess.run(["rm", "-rf", ext(w, "lo")], check=True)
    w.equal(w.zotbox("ext", "remove", "lo").rc, 2, "remove asks")
    r = w.zotbox("ext", "remove", "lo", "-y")
    w.equal((r.rc, [k for k in snapshot(w) if "lo" in k]), (0, []),
            "remove takes a left-over away", r)
    w.equal(w.zotbox("ext", "remove", "lo", "-y").rc, 3, "once")


@test("a wrapped copy is not a source")
def wrapped_source(w):
    hello(w, "wc")
    w.install("wc")
    subprocess.run(["cp", "-r", ext(w, "wc"), w.path("copy")], check=True)
    w.zotbox("ext", "remove", "wc", "-y")
    refused(w, 3, "it", w.path("copy"), text="install it from where it came")


@test("nothing is executed, no file is opened to run", needs="strace",
      seconds=60)
def no_exec(w):
    hello(w, "ne", files={"permissions.json": json.dumps(ASKED)})
    log = w.path("strace")
    p = subprocess.run(
        ["strace", "-f", "-o", log, "-e", "trace=execve,execveat", ZOTBOX,
         "ext", "install", w.path("ne"), "--yes"], env=w.env, cwd=w.project,
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=50)
    if p.returncode:
        w.skip("", "strace does not work here")
        return
    with open(log) as f:
        lines = [x for x in f if "execve" in x]
    w.equal(len(lines), 1, "only zotbox itself", *lines)


@test("a full disk", needs="root", seconds=60)
def full_disk(w):
    d = hello(w, "big")
    for i in range(40):
        w.write("big/f%d" % i, os.urandom(1000000))
    small = hello(w, "small")
    script = '''
        set -e; mount -t tmpfs -o size=20m none "$1" || exit 77
        export ZOT_HOME=$1; cd /
        "$2" ext install "$3" && exit 10 || [ $? = 1 ]
        find "$1" | grep -v '^'"$1"'$' && exit 11
        "$2" ext install "$4"
        dd if=/dev/zero of="$1/fill" bs=4096 2>/dev/null || true
        "$2" ext list | grep -q small || exit 12
        "$2" ext allow small env.pass X && exit 13 || [ $? = 1 ]
        "$2" ext disable small && exit 14 || [ $? = 1 ]
        "$2" ext remove small -y || exit 15
        rm "$1/fill"; find "$1" -mindepth 2
    '''
    at = w.path("full")
    os.mkdir(at)
    p = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", at, ZOTBOX,
                        d, small], env=w.env, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=50)
    if p.returncode == 77:
        w.skip("", "cannot mount here")
        return
    err = p.stderr.decode()
    w.equal((p.returncode, p.stdout), (0, b""), "nothing is left, and "
            "removing works on a full disk", err, p.stdout)
    w.contains(err, "No space left on device", "says why")
    w.contains(err, "nothing was installed", "says what of it")


@test("a file that cannot be read", needs="user")
def unreadable(w):
    d = hello(w, "ur", files={"f": "x", "d/f": "x"})
    os.chmod(os.path.join(d, "f"), 0)
    refused(w, 1, "a file", d, text="open f: Permission denied")
    os.chmod(os.path.join(d, "f"), 0o644)
    os.chmod(os.path.join(d, "d"), 0)
    refused(w, 1, "a directory", d, text="open d: Permission denied")
    os.chmod(os.path.join(d, "d"), 0o755)
    w.equal(w.zotbox("ext", "install", d).rc, 0, "control")


@test("paths of all kinds", needs="sandbox", seconds=120)
def paths(w):
    body = '''
        a = hello("odd", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: text(f["id"], repr((
            os.getcwd() == a["extension_dir"], os.path.isdir(a["cwd"])))))
    '''
    w.mkext("odd", body)
    for n in ("a b", "it's", 'q"q', "$HOME", "`id`", ";id", "-n", "--",
              "new\nline", "tab\t", "ü😀", "a\\b", "%s%n", "#h", "~", "[x]",
              "trail ", "&", "l" * 200):
        top = os.path.join(w.dir, n)
        os.makedirs(top + "/cwd")
        subprocess.run(["cp", "-r", w.path("odd"), top + "/src"], check=True)
        env = {"ZOT_HOME": top + "/zot"}
        r = w.zotbox("ext", "install", "./src" if n == "-n" else top + "/src",
                     "--policy", "standard", cwd=top, env=env)
        w.equal(r.rc, 0, repr(n)[:20], r)
        c = w.console("odd", call("t"), cwd=top + "/cwd", env=env)
        w.equal(c.result(), "(True, True)", repr(n)[:20] + " runs", c)
    top = os.fsencode(w.dir) + b"/\xff\xfe"
    os.mkdir(top)
    r = w.zotbox("ext", "install", w.path("odd"), env={
        "ZOT_HOME": os.fsdecode(top)})
    w.equal(r.rc, 2, "no UTF-8: refused by name", r)
    w.contains(r.err, "\\xff\\xfe", "shown")
    subprocess.run([b"cp", b"-r", os.fsencode(w.path("odd")), top + b"/src"],
                   check=True)
    r = w.zotbox("ext", "install", os.fsdecode(top + b"/src"))
    w.equal(r.rc, 0, "as a source it is fine", r)


@test("HOME, ZOT_HOME and XDG_STATE_HOME", needs="sandbox", seconds=60)
def homes(w):
    hello(w, "hm")
    os.symlink(w.home, w.path("home-link"))
    os.symlink(w.zot_home, w.path("zot-link"))
    for what, env, where in (
            ("HOME is a link", {"HOME": w.path("home-link")}, w.zot_home),
            ("ZOT_HOME is a link", {"ZOT_HOME": w.path("zot-link")},
             w.zot_home),
            ("both", {"HOME": w.path("home-link"),
                      "ZOT_HOME": w.path("zot-link")}, w.zot_home),
            ("XDG_STATE_HOME", {"ZOT_HOME": "",
                                "XDG_STATE_HOME": w.path("state")},
             w.path("state/zot")),
            ("HOME alone", {"ZOT_HOME": ""},
             w.path("home/.local/state/zot"))):
        r = w.zotbox("ext", "install", w.path("hm"), env=env)
        w.equal(r.rc, 0, what, r)
        w.check(os.path.isdir(where + "/extensions/hm"), what + ": there")
        if "-link" in str(env.get("ZOT_HOME")):
            w.contains(r.err, w.path("zot-link"), what + ": keeps its "
                       "spelling")
        c = w.console("hm", call("t"), env=env)
        w.equal(c.result(), "pong", what + ": runs", c)
        w.equal(w.zotbox("ext", "remove", "hm", "-y", env=env).rc, 0,
                what + ": removed")
        w.equal(os.listdir(where + "/extensions"), [], what + ": gone")
    for env in ({"HOME": ""}, {"ZOT_HOME": "rel"}, {"HOME": "rel",
                                                    "ZOT_HOME": ""}):
        r = w.zotbox("ext", "list", env=env)
        w.equal(r.rc, 2, repr(env), r)


main()
