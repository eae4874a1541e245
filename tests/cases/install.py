#!/usr/bin/env python3
"""Faults that installers of plugins are known for: sources that are options,
names that are paths, links, half-made installs, passwords, submodules, .git,
strange paths, toggles, links in the directory, three names for one thing; and
a hidden directory that can be written. Each test bears the id of its case and
says what must hold here."""
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *
from zbverbs import *
from zbkill import *


def ext(w, name="", rel=""):
    return os.path.join(w.zot_home, "extensions", name, rel).rstrip("/")


def install(w, source, *args, **kw):
    return w.zotbox("ext", "install", "--yes", "--", source, *args, **kw)


def nothing_logged(w, what):
    logs = os.path.join(w.zot_home, "logs")
    w.equal(os.listdir(logs) if os.path.isdir(logs) else [], [],
            what + ": nothing in the logs")


def refused(w, rc, what, source, *words, run=install):
    before = left(snapshot(w))
    r = run(w, source)
    w.equal(r.rc, rc, what + ": exit", r)
    for word in words:
        w.contains(r.err, word, what + ": says " + word, r)
    w.check("\x1b" not in r.err and all(
        x.startswith("zotbox: ") for x in r.err.splitlines()),
        what + ": in lines of our own", r)
    same(w, before, left(snapshot(w)), what + ": nothing is new")
    return r


@test("D01 a URL that is an option for git", seconds=120)
def d01(w):
    m = w.path("marker")
    w.write("bin/git", '#!/bin/sh\necho "$@" >> %s\nexec /usr/bin/git "$@"\n' %
            w.path("git.log"), 0o755)
    w.env["PATH"] = w.path("bin") + ":" + w.env["PATH"]
    for rc, u in ((2, "--upload-pack=touch %s;" % m),
                  (2, "-cprotocol.ext.allow=always"),
                  (3, "ext::sh -c touch% " + m), (2, "--template=/tmp/x"),
                  (2, "ssh://-oProxyCommand=touch%20" + m + "/x"),
                  (2, "-oProxyCommand=x@h:y"), (3, "fd::17/x"),
                  (2, "https://h/a\nb"), (3, "http://127.0.0.1:1/x"),
                  (2, ""), (2, "ssh://h/x#--upload-pack=touch"),
                  (2, "u@-oProxyCommand=x:y")):
        text = '"%s" is not a path or git URL' % u if u[:1] == "-" else ""
        refused(w, rc, repr(u)[:40], u, text)
    r = w.zotbox("ext", "install", "--upload-pack=touch " + m)
    w.equal(r.rc, 2, "without -- it is an unknown option", r)
    w.check(not os.path.exists(m), "no marker")
    w.check(not os.path.exists(w.path("git.log")), "git was never started")
    nothing_logged(w, "D01")


@test("D02 a manifest name that is a path", needs="sandbox", seconds=120)
def d02(w):
    hello(w, "good")
    w.equal(install(w, w.path("good")).rc, 0, "a good one")
    for n in (".", "..", "../x", "/etc/zz", "a/b", "a\\b", "", " ", "-rf",
              "--", "a\nb", "a\0b", "x" * 300, ".git", "~", "*", "con.",
              "ａ", "é", "\u200bgood"):
        d = hello(w, "s", manifest={"name": n})
        refused(w, 2, "name %r" % n[:12], d,
                *["start with a letter or a digit"] if n and "\0" not in n
                else [])
        for verb in ("remove", "enable", "update", "logs"):
            if "\0" in n or n in ("", "--", "-rf"):
                continue
            r = w.zotbox("ext", verb, *["--yes"] * (verb == "remove"), "--",
                         n)
            w.check(r.rc in (2, 3), "ext %s %r" % (verb, n[:12]), r)
    d = hello(w, "s")
    for text in ('{"exec":"./main.py"}', '{"name":5,"exec":"./main.py"}',
                 '{"name":"q","name":"../z","exec":"./main.py"}', '[]', ''):
        w.write("s/extension.json", text)
        refused(w, 2, "manifest " + text, d)
    c = w.console("good", call("t"))
    w.equal(c.result(), "pong", "good is whole", c)


@test("D05 symlinks inside the source", seconds=120)
def d05(w):
    w.write("secret", "TOPSECRET")
    w.write("outdir/f", "TOPSECRET")
    w.write("m.json", '{"name":"sx","exec":"./main.py"}')
    for what, rc, links in (
            ("in", 0, {"node_modules/.bin/c": "../p/c.js"}),
            ("abs", 3, {"k": "/etc/passwd"}), ("rel", 3, {"k": "../secret"}),
            ("dir", 3, {"d": "../outdir"}),
            ("chain", 3, {"a": "..", "b": "a/secret"}),
            ("absin", 3, {"k": w.path("sx/main.py")}),
            ("man", 3, {"extension.json": "../m.json"}),
            ("exe", 3, {"main.py": "/usr/bin/true"}),
            ("dang", 0, {"k": "missing"}),
            ("loop", 0, {"k": "k2", "k2": "k"}), ("selfd", 0, {"me": "."})):
        shutil.rmtree(w.path("sx"), ignore_errors=True)
        d = hello(w, "sx", files={"node_modules/p/c.js": "1"})
        for name, target in links.items():
            path = os.path.join(d, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if os.path.lexists(path):
                os.unlink(path)
            os.symlink(target, path)
        if rc:
            r = refused(w, rc, what, d, "points outside the extension")
            w.check(re.search(r"refused: \S+ -> \S+ points outside", r.err),
                    what + ": names the link and its target", r)
        else:
            r = install(w, d)
            w.equal(r.rc, 0, what + ": exit", r)
            w.equal({n: os.readlink(ext(w, "sx", n)) for n in links}, links,
                    what + ": links are kept as links")
            w.equal("leads nowhere" in r.err, what in ("dang", "loop"),
                    what + ": a warning for what leads nowhere", r)
        w.equal(subprocess.run(["grep", "-rl", "TOPSECRET", w.zot_home],
                               stdout=subprocess.PIPE).stdout, b"",
                what + ": no byte from outside")
        w.zotbox("ext", "remove", "sx", "-y")
        w.check(not os.listdir(ext(w)), what + ": nothing stays")
    nothing_logged(w, "D05")


@test("D06 a failed install leaves nothing", seconds=120)
def d06(w):
    d = hello(w, "big")
    for i in range(40):
        w.write("big/f%d" % i, os.urandom(1000000))
    if os.geteuid() == 0:
        os.mkdir(w.path("full"))
        p = subprocess.run(
            ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=20m none '
             '"$1" || exit 77; ZOT_HOME=$1 "$2" ext install "$3"; '
             'echo "rc=$?"; find "$1" -mindepth 1', "sh", w.path("full"),
             ZOTBOX, d], env=w.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        if p.returncode == 77:
            w.skip("a full disk", "cannot mount here")
        else:
            err = p.stderr.decode()
            w.equal(p.stdout.decode().split(), ["rc=1"],
                    "a full disk: exit 1, nothing there", err)
            w.contains(err, "No space left on device")
            w.contains(err, "nothing was installed")
    else:
        os.chmod(d + "/f20", 0)
        refused(w, 1, "a file that cannot be read", d, "Permission denied",
                "nothing was installed")
        os.chmod(d + "/f20", 0o644)
    bare = left(snapshot(w))
    secs = duration(w, ["ext", "install", d])
    full = left(snapshot(w))
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL) * 3:
        w.zotbox("ext", "remove", "big", "-y")
        p = w.spawn([ZOTBOX, "ext", "install", d], stdin=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL)
        time.sleep(secs * 0.4)
        p.send_signal(sig)
        rc = p.wait(30)
        w.check(rc in (0, -sig, 128 + sig), "%s: exit" % sig.name, rc)
        w.check(os.listdir(ext(w)) in ([], ["big"]) if os.path.isdir(ext(w))
                else True, "%s: absent or there" % sig.name)
        recover(w)
        now = left(snapshot(w))
        w.check({k: v for k, v in now.items() if "/" in k} in (
            {k: v for k, v in bare.items() if "/" in k},
            {k: v for k, v in full.items() if "/" in k}),
            "%s: the old state or the new" % sig.name, sorted(now)[:20])
    w.zotbox("ext", "remove", "big", "-y")
    w.equal(install(w, d).rc, 0, "at the end it installs")
    w.equal(os.listdir(ext(w)), ["big"], "and only it is there")


@test("D11 a clone that waits for a password", needs="git", seconds=120)
def d11(w):
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
    refused(w, 3, "plain http", url, "--allow-http")
    start = time.time()                      # on a terminal that could ask
    rc, out = on_terminal(w, ["ext", "install", url, "--allow-http"])
    asks.shutdown()
    asks.server_close()
    w.check(rc == 1 and time.time() - start < 10, "exit 1 in under 10 s", rc,
            out)
    w.contains(out, "authentication needed for %s (prompts are off)"
               % url)
    with socket.socket() as silent:          # takes connections, says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = "http://127.0.0.1:%d/x.git" % silent.getsockname()[1]
        p = w.spawn([ZOTBOX, "ext", "install", url, "--allow-http"],
                    stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        conn = silent.accept()[0]
        p.send_signal(signal.SIGINT)
        w.equal(p.wait(10), 130, "a silent server: Ctrl-C ends it")
        conn.settimeout(10)
        try:
            while conn.recv(4096):
                pass
            gone = True
        except ConnectionError:
            gone = True
        except TimeoutError:
            gone = False
        conn.close()
        w.check(gone, "git has gone as well")
    w.check(not os.path.isdir(ext(w)) or not os.listdir(ext(w)),
            "nothing is left behind")


@test("D12 submodules are named, not silently empty", needs="git",
      seconds=120)
def d12(w):
    w.write("lib/a", "1")
    repo(w, "lib")
    hello(w, "sm")
    git(w, "init", "-q", cwd=w.path("sm"))
    git(w, "submodule", "-q", "add", "file://" + w.path("lib"), "vendor/lib",
        cwd=w.path("sm"))
    repo(w, "sm")
    w.write("lib/a", "2")                    # the recorded one is not the tip
    git(w, "commit", "-q", "-a", "-m", "y", cwd=w.path("lib"))
    r = install(w, "file://" + w.path("sm"))
    w.equal(r.rc, 0, "exit", r)
    w.contains(r.err, "submodule vendor/lib (file://%s) was not fetched" %
               w.path("lib"), "named with its URL")
    w.check(os.path.exists(ext(w, "sm", "main.py")), "the main tree is there")
    w.zotbox("ext", "remove", "sm", "-y")
    m = w.path("marker")
    git(w, "config", "-f", ".gitmodules", "submodule.vendor/lib.url",
        "ext::sh -c touch% " + m, cwd=w.path("sm"))
    git(w, "commit", "-q", "-a", "-m", "z", cwd=w.path("sm"))
    r = install(w, "file://" + w.path("sm"))
    w.equal((r.rc, os.path.exists(m)), (0, False),
            "whatever its URL is, nothing is fetched or run", r)
    w.contains(r.err, "submodule vendor/lib (ext::", "named all the same")
    nothing_logged(w, "D12")


@test("D14 a .git that would run something", needs=("git", "sandbox"),
      seconds=120)
def d14(w):
    m = w.path("marker")
    hello(w, "gm")
    run = w.write("gm/fsm", "#!/bin/sh\ntouch %s\n" % m, 0o755)
    commit = repo(w, "gm")
    shutil.copytree(w.path("gm/.git"), w.path("gm/sub/.git"))
    for hook in ("post-checkout", "post-merge", "post-commit"):
        shutil.copy(run, w.path("gm/.git/hooks/" + hook))
    git(w, "config", "core.fsmonitor", run, cwd=w.path("gm"))
    git(w, "status", cwd=w.path("gm"))
    w.check(os.path.exists(m), "control: git status runs it")
    os.unlink(m)
    for source in (w.path("gm"), "file://" + w.path("gm")):
        r = install(w, source)
        w.equal(r.rc, 0, source + ": exit", r)
        if source[0] == "/":
            w.contains(r.err, ".git left out (source commit %s recorded)" %
                       commit)
        with open(os.path.join(w.zot_home, "zotbox/gm/lock.json")) as f:
            lock = json.load(f)
        w.equal((lock["source"], lock["commit"]), (source, commit),
                "source and commit are kept for an update")
        w.equal([k for k in snapshot(w) if ".git" in k.split("/")], [],
                "no .git at any depth")
        for verb in (("list",), ("doctor",), ("disable", "gm"),
                     ("update", "gm", "-y"), ("remove", "gm", "-y")):
            w.zotbox("ext", *verb)
            if verb[0] == "disable":
                subprocess.run(["git", "status"], cwd=ext(w, "gm"),
                               env=w.env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
            w.check(not os.path.exists(m), "nothing ran at " + verb[0])


@test("D15 spaces, quotes, line breaks, unicode and dashes in paths",
      needs="sandbox", seconds=240)
def d15(w):
    w.mkext("odd", '''
        a = hello("odd", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: text(f["id"], repr((
            os.getcwd() == a["extension_dir"], os.path.isdir(a["cwd"])))))
    ''')
    for n in ("a b", "it's", 'q"q', "$HOME", "`id`", ";id", "-n", "--",
              "new\nline", "tab\t", "ü😀", "a\\b", "%s%n", "#h", "~", "[x]",
              "trail ", "&", "l" * 200):
        top = os.path.join(w.dir, n)
        os.makedirs(top + "/cwd")
        shutil.copytree(w.path("odd"), top + "/src")
        env = {"ZOT_HOME": top + "/zot"}
        r = w.zotbox("ext", "install", "--policy", "standard", "--",
                     "./src" if n[0] == "-" else top + "/src", cwd=top,
                     env=env)
        what = repr(n)[:20]
        w.equal(r.rc, 0, what + ": installs", r)
        w.check(all(x.startswith("zotbox: ") for x in r.err.splitlines()),
                what + ": shown on one line", r)
        c = w.console("odd", call("t"), cwd=top + "/cwd", env=env)
        w.equal(c.result(), "(True, True)", what + ": runs", c)
        with open(top + "/src/new.txt", "w") as f:
            f.write("x")
        r = w.zotbox("ext", "update", "odd", "-y", env=env)
        w.equal((r.rc, os.path.exists(top + "/zot/extensions/odd/new.txt")),
                (0, True), what + ": updates", r)
    top = os.fsencode(w.dir) + b"/\xff\xfe"
    os.mkdir(top)
    r = install(w, w.path("odd"), env={"ZOT_HOME": os.fsdecode(top)})
    w.equal(r.rc, 2, "not UTF-8: refused", r)
    w.contains(r.err, "\\xff\\xfe", "by name")


@test("D17 enable and disable change one value", seconds=60)
def d17(w):
    hello(w, "tg")
    shipped = ('{\r\n\t"zzz": 9007199254740993,  "name":"tg",\r\n "exec" : '
               '"./main.py", "x-custom": {"b":1.10,"a":"\\u00e9"},\r\n '
               '"enabled": true }')
    with open(w.path("tg/extension.json"), "w", newline="") as f:
        f.write(shipped)
    os.chmod(w.path("tg/extension.json"), 0o600)
    w.equal(install(w, w.path("tg")).rc, 0, "installed")
    at = ext(w, "tg", "extension.json")
    # Unknown fields are kept in the shipped manifest, never in the wrapped one.
    kept = os.path.join(w.zot_home, "zotbox/tg/manifest.json")

    def state():
        with open(at, "rb") as f, open(kept, "rb") as g:
            return (f.read(), oct(os.stat(at).st_mode & 0o777), g.read())
    first = state()
    w.equal((first[1], first[2]), ("0o600", shipped.encode()),
            "the mode, and the shipped one byte by byte")
    for verb, enabled in (("disable", False), ("disable", False),
                          ("enable", True)):
        r = w.zotbox("ext", verb, "tg")
        w.equal((r.rc, json.loads(state()[0])["enabled"]), (0, enabled),
                verb, r)
        w.equal(state()[1:], first[1:], verb + ": mode and shipped one stay")
    w.equal(state(), first, "twice toggled: the same bytes")
    # Bare, as zot's own: everything but the value stays.
    shutil.copytree(w.path("tg"), ext(w, "bare"))
    bare = ext(w, "bare", "extension.json")
    text = shipped.replace('"tg"', '"bare"')
    with open(bare, "w", newline="") as f:
        f.write(text)
    os.chmod(bare, 0o600)
    w.zotbox("ext", "disable", "bare")
    with open(bare, newline="") as f:
        w.equal(f.read(), text.replace("true", "false"), "a bare one: only "
                "that value")
    w.zotbox("ext", "enable", "bare")
    with open(bare, newline="") as f:
        w.equal((f.read(), oct(os.stat(bare).st_mode & 0o777)),
                (text, "0o600"), "and back")
    nothing_logged(w, "D17")


@test("D19 every entry of the directory is listed", needs="sandbox",
      seconds=60)
def d19(w):
    src = hello(w, "src")
    for d in ("empty", "bad", "noread"):
        os.makedirs(ext(w, d))
    os.symlink(src, ext(w, "lk"))
    os.symlink("/none", ext(w, "broken"))
    w.write("zot/extensions/file", "x")
    w.write("zot/extensions/bad/extension.json", "{")
    os.chmod(ext(w, "noread"), 0)
    want = {"lk": None, "broken": "broken link",
            "file": "not a directory", "empty": "missing extension.json",
            "bad": "parse manifest"}
    if os.geteuid():
        want["noread"] = "not readable"
    r = w.zotbox("ext", "list")
    w.equal(r.rc, 0, "list: exit", r)
    by = {os.path.basename(e["dir"]): e for e in json.loads(
        w.zotbox("ext", "list", "--json").out)["extensions"]}
    w.equal(sorted(by), sorted(os.listdir(ext(w))), "one row for each")
    for name, why in want.items():
        if why:
            w.contains(by[name]["problem"] or "", why, name + ": says why")
        line = [x for x in r.out.splitlines() if "extensions/" + name in x or
                x.startswith(name)]
        w.check(line, name + ": a line in the table", r)
    w.contains(r.out, "-> " + src, "the linked one is shown as a link")
    r = w.zotbox("ext", "doctor")
    w.equal(r.rc, 5, "doctor: 5 for the broken ones", r)
    for name, why in want.items():
        w.contains(r.out, why or "src", "doctor: " + name)
    os.chmod(ext(w, "noread"), 0o755)


@test("D21 directory, manifest and hello have three names", needs="sandbox",
      seconds=120)
def d21(w):
    hello(w, "nm")
    os.rename(w.path("nm"), w.path("Source-Dir.git"))
    r = w.zotbox("ext", "install", w.path("Source-Dir.git"))
    w.equal((r.rc, os.listdir(ext(w))), (0, ["nm"]),
            "installed under the manifest's name", r)
    for verb in ("disable", "nm"), ("enable", "nm"), ("update", "nm", "-y"), \
            ("remove", "nm", "-y"):
        r = w.zotbox("ext", *verb)
        w.equal(r.rc, 0, "ext " + verb[0] + " nm", r)
    w.equal(os.listdir(ext(w)), [], "all gone")
    shutil.copytree(hello(w, "nm2"), ext(w, "dirx"))
    r = w.zotbox("ext", "list")
    w.check(re.search(r"\bnm2\b.*dirx", r.out), "listed as nm2, in dirx",
            r)
    r = w.zotbox("ext", "remove", "nm2", "-y")
    w.equal((r.rc, os.listdir(ext(w))), (0, []), "and removed as nm2", r)
    w.mkext("nm", 'hello("other", "tools"); tool("t"); ready(); '
            'serve(tool_call=lambda f: text(f["id"], "pong"))')
    w.install("nm")
    r = w.zotbox("ext", "doctor", "nm")
    w.equal(r.rc, 0, "another name in hello is a warning", r)
    w.contains(r.out, "other", "which doctor shows")
    c = w.console("nm", call("t"))
    w.equal(c.result(), "pong", "it runs under its installed name", c)
    w.contains(w.log("nm"), "other", "the log has it")


@test("B33 a hidden directory is not writable", needs="sandbox", seconds=120)
def b33(w):
    key = w.write("project/s/key", "K")
    w.mkext("hd", '''
        hello("hd", "tools"); tool("t"); ready()
        def tr(g):
            try: g(); return "OK"
            except OSError as e: return e.errno
        def call(f):
            d = f["args"]["d"]
            text(f["id"], json.dumps([
                tr(lambda: open(d + "/new", "w").write("x")),
                tr(lambda: os.mkdir(d + "/sub")),
                tr(lambda: open(d + "/key"))]))
        serve(tool_call=call)
    ''')
    d = w.path("project/s")
    w.equal(json.loads(w.bare("hd", "t", {"d": d})), ["OK", "OK", "OK"],
            "control: outside all three succeed")
    os.unlink(d + "/new")
    os.rmdir(d + "/sub")
    for what, fs in (
            ("hidden by strict", {}),
            ("a denied part of what may be read",
             {"read": ["${project}"], "deny": ["${project}/s"]}),
            ("a denied part of what may be written",
             {"read": ["${project}"], "write": ["${project}"],
              "deny": ["${project}/s"]})):
        c = w.console("./hd", call("t", d=d), "--scope",
                      w.scope("hd", {"fs": fs}))
        w.equal(c.rc, 0, what + ": exit", c)
        got = json.loads(c.result() or "[]")
        w.check(len(got) == 3 and "OK" not in got,
                what + ": never success for what is thrown away", got)
        w.check(w.denied("hd", "fs.create", d + "/new") or
                w.denied("hd", "fs.write", d + "/new"),
                what + ": the write is recorded", w.ledger("hd"))
        w.check(w.denied("hd", "fs.read", key), what + ": and the read",
                w.ledger("hd"))
        w.equal(os.listdir(d), ["key"], what + ": on the host only the key")
        shutil.rmtree(os.path.join(w.zot_home, "logs"))


main()
