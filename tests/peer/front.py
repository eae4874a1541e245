#!/usr/bin/env python3
"""Started under the name zot: `zot ext` is ours, everything else starts the
real zot as if nobody stood in between. The real one is played by a script."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/peer"))
from zbtest import *
from terminal import Terminal

FAKE = r'''#!/bin/sh
case $1 in
show) printf '%s\n' "real" "$$" "$#"; printf '<%s>' "$@";;
exit) exit "$2";;
die) kill -"$2" $$;;
wait) echo up; exec sleep 60;;
state) grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; ls /proc/$$/fd; env;;
tty) tty; stty size; IFS= read -r x; echo "read $x";;
esac
'''


def put(w, real=True):
    """bin/zot is ours, real/zot the script."""
    os.makedirs(w.path("bin"))
    os.symlink(ZOTBOX, w.path("bin/zot"))
    w.env["PATH"] = w.path("bin") + ":" + os.defpath
    if real:
        w.write("real/zot", FAKE, 0o755)
        w.env["PATH"] = "%s:%s:%s" % (w.path("bin"), w.path("real"),
                                      os.defpath)


def run(w, *args, zot="bin/zot", env=None, **kw):
    return subprocess.run([w.path(zot), *args], capture_output=True,
                          text=True, cwd=w.project, timeout=20,
                          env=dict(w.env, **(env or {})), **kw)


@test("ext is ours")
def ours(w):
    put(w)
    r = run(w, "ext", "list", "--json")
    w.equal((r.returncode, r.stdout), (0, '{"v":1,"extensions":[]}\n'),
            "zot ext list", r.stderr)
    r = run(w, "ext", "nonsense")
    w.equal(r.returncode, 2, "and its mistakes")
    w.check("real" not in r.stdout + r.stderr, "never the real one's")
    r = run(w, "show", "ext")
    w.contains(r.stdout, "real", "only as the first word")


@test("arguments, status and signals")
def passes(w):
    put(w)
    args = ["show", "", "a b", "--ext", "x", "\u00e9\n", "*"]
    p = w.spawn([w.path("bin/zot"), *args], stdout=subprocess.PIPE)
    out = p.communicate(timeout=20)[0].decode().split("\n", 3)
    w.equal(out[0], "real", "the real one runs")
    w.equal(out[1], str(p.pid), "in our place: the same process")
    w.equal(out[3], "".join("<%s>" % a for a in args), "arguments as given")
    for n in (0, 1, 7, 255):
        w.equal(run(w, "exit", str(n)).returncode, n, "status %d" % n)
    for n in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGSEGV):
        w.equal(run(w, "die", str(int(n))).returncode, -n, "death by %d" % n)
    for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        p = w.spawn([w.path("bin/zot"), "wait"], stdout=subprocess.PIPE)
        p.stdout.readline()
        p.send_signal(n)
        w.equal(p.wait(10), -n, "signal %d reaches it" % n)


@test("what it inherits")
def inherits(w):
    put(w)

    def state(path, **kw):
        r = subprocess.run([path, "state"], capture_output=True, text=True,
                           env=w.env, stdin=subprocess.DEVNULL,
                           cwd=w.project, **kw)
        return sorted(l for l in r.stdout.splitlines()
                      if not l.startswith("_="))
    real, ours = w.path("real/zot"), w.path("bin/zot")
    w.equal(state(ours), state(real), "signals, descriptors, environment")
    w.check(len(state(ours)) > 8, "control: there is something to compare")
    more = os.open("/dev/null", os.O_RDONLY)
    one = state(ours, pass_fds=[more])
    w.equal(one, state(real, pass_fds=[more]), "a descriptor more")
    w.check(str(more) in one, "control: it is there")
    os.close(more)

    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        os.close(2)
    one = state(ours, preexec_fn=ignore)
    w.equal(one, state(real, preexec_fn=ignore), "ignored and blocked ones")
    w.check(one != state(ours), "control: that is another state")


@test("the terminal")
def terminal(w):
    put(w)
    t = Terminal(w, [w.path("bin/zot"), "tty"])
    w.check(t.until("50 120"), "its size", t.screen())
    w.contains(t.screen(), "/dev/pts/", "its name")
    t.type("hello")
    t.key("enter")
    w.check(t.until("read hello"), "what is typed", t.screen())
    w.equal(t.wait(), 0, "and the end")
    t.end()
    t = Terminal(w, [w.path("bin/zot"), "wait"])
    t.until("up")
    t.key("ctrl-c")
    w.equal(t.wait(), -signal.SIGINT, "ctrl-c")
    t.end()


@test("which one is the real one")
def which(w):
    put(w)
    w.write("other/zot", "#!/bin/sh\necho other\n", 0o755)
    other = w.path("other/zot")
    w.equal(run(w, env={"ZOTBOX_ZOT": other}).stdout, "other\n",
            "ZOTBOX_ZOT names it")
    os.makedirs(w.path("more"))
    os.link(w.path("bin/zot"), w.path("more/zot"), follow_symlinks=False)
    w.env["PATH"] = "%s:%s:%s" % (w.path("more"), w.path("bin"),
                                  w.path("real"))
    r = run(w, "show", zot="more/zot")
    w.contains(r.stdout, "real", "any number of links to us is passed over")
    for named, why in ((w.path("bin/zot"), "itself"), (ZOTBOX, "itself"),
                       (w.path("none"), "nothing"), (w.project, "no file")):
        r = run(w, "show", env={"ZOTBOX_ZOT": named})
        w.equal(r.returncode, 2, "ZOTBOX_ZOT is " + why, r.stderr)
        w.contains(r.stderr, "ZOTBOX_ZOT is " + named, "and named")
    r = run(w, "show", env={"PATH": w.path("bin") + ":."}, )
    w.equal((r.returncode, r.stdout), (2, ""), "there is none")
    w.contains(r.stderr, "set ZOTBOX_ZOT", "what to do")
    w.write("project/zot", FAKE, 0o755)
    r = run(w, "show", env={"PATH": w.path("bin") + ":.:"})
    w.equal(r.returncode, 2, "not one of the directory one stands in")
    r = run(w, "ext", "list", env={"PATH": w.path("bin")})
    w.equal(r.returncode, 0, "ext needs none")


main()
