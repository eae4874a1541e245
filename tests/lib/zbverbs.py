"""zbverbs - what the tests of the ext verbs share.

    snapshot(w)         {path below $ZOT_HOME: (kind, mode, content)}, without
                        the logs; of lock.json the time of the install is left
                        out
    same(w, A, B, WHAT) one TAP point: two snapshots are equal
    HELLO               body of an extension that only says hello
    hello(w, NAME)      such an extension; its directory
    git(w, *ARGS, cwd)  the git program, in the world's environment
    repo(w, NAME)       make w.dir/NAME a repository with one commit; its hash
    rows(w)             {name: row} of `ext list --json`
    offers(TEXT)        argument lists of the `zotbox ext allow` lines in TEXT
    on_terminal(w, ARGS, *ANSWERS)      (exit status, output) of zotbox on a
                        terminal; each [y/N] gets the next of the answers,
                        after meanwhile(); started(PID) is called first
"""
import hashlib
import json
import os
import pty
import re
import select
import shlex
import signal
import stat
import subprocess
import time

from zbtest import ZOTBOX

HELLO = 'hello(%r, "tools"); tool("t"); ready(); ' \
        'serve(tool_call=lambda f: text(f["id"], "pong"))'


def hello(w, name, **kw):
    return w.mkext(name, HELLO % name, **kw)


def snapshot(w, top=None):
    top = top or w.zot_home
    found = {}
    for base, dirs, files in os.walk(top):
        if base == top and "logs" in dirs:
            dirs.remove("logs")
        for n in dirs + files:
            path = os.path.join(base, n)
            st = os.lstat(path)
            mode = oct(stat.S_IMODE(st.st_mode))
            rel = os.path.relpath(path, top)
            if stat.S_ISLNK(st.st_mode):
                found[rel] = ("link", os.readlink(path))
            elif stat.S_ISDIR(st.st_mode):
                found[rel] = ("dir", mode)
            else:
                with open(path, "rb") as f:
                    data = f.read()
                if n == "lock.json":
                    data = re.sub(rb'"installed": "[^"]*"', b"", data)
                found[rel] = ("file", mode, hashlib.sha256(data).hexdigest())
    return found


def same(w, a, b, what, *diag):
    differ = ["%s: %r -> %r" % (k, a.get(k), b.get(k))
              for k in sorted(set(a) | set(b)) if a.get(k) != b.get(k)]
    return w.check(not differ, what, *differ[:20], *diag)


def git(w, *args, cwd=None):
    return subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b",
         "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always",
         "-c", "commit.gpgsign=false", *args],
        cwd=cwd or w.dir, env=w.env, check=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=60).stdout.decode()


def repo(w, name):
    d = w.path(name)
    git(w, "init", "-q", cwd=d)
    git(w, "add", "-A", cwd=d)
    git(w, "commit", "-q", "-m", "x", cwd=d)
    return git(w, "rev-parse", "HEAD", cwd=d).strip()


def rows(w, **kw):
    r = w.zotbox("ext", "list", "--json", **kw)
    return {e["name"]: e for e in json.loads(r.out)["extensions"]}


def offers(text):
    return [shlex.split(line)[1:] for line in
            re.findall(r"zotbox ext allow .*", text)]


def on_terminal(w, args, *answers, seconds=30, meanwhile=None, started=None):
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(ZOTBOX, ["zotbox", *args], w.env)
    if started:
        started(pid)
    out, end, given = b"", time.time() + seconds, 0
    while time.time() < end:
        if select.select([fd], [], [], 0.2)[0]:
            try:
                out += os.read(fd, 4096)
            except OSError:
                break
        if out.count(b"[y/N]") > given and given < len(answers):
            if meanwhile:
                meanwhile()
            os.write(fd, answers[given])
            given += 1
    else:
        os.kill(pid, signal.SIGKILL)
    rc = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(fd)
    return rc, out.decode("utf-8", "backslashreplace")
