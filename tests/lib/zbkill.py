"""zbkill - kill -9 at any point, and what must be there afterwards.

    left(SNAP)          a snapshot without lock files, which stay with a NAME
    recover(w)          a command that finishes what was cut short
    is_one_of(w, {WORD: SNAP}, WHAT, *DIAG)     TAP point; which one it is now
    duration(w, ARGS)   seconds that it takes; TAP point: it works
    killed(w, ARGS, SECS, MAKE, STATES, SEED, ROUNDS)
                        kill -9 at ROUNDS random points of SECS; MAKE puts the
                        old state back before each
    sweep(w, ARGS, MAKE, STATES, CALLS)
                        kill -9 at the first of these system calls, at the
                        next, and so on; needs strace
    strace_works(w)     does it, here?
    CALLS               kinds of calls that change something
"""
import os
import random
import signal
import subprocess
import time

from zbtest import *
from zbverbs import *

__all__ = ["left", "recover", "is_one_of", "duration", "killed", "sweep",
           "strace_works", "CALLS"]


def recover(w):
    """A command that changes nothing, but finishes what was cut short."""
    w.zotbox("ext", "disable", "nobody")


def left(snap):
    """Without the lock files, which stay with a NAME."""
    return {k: v for k, v in snap.items() if "/.lock-" not in k}


def is_one_of(w, states, what, *diag):
    recover(w)
    now = left(snapshot(w))
    for name, state in states.items():
        if now == left(state):
            return name
    near = min(states.values(), key=lambda s: len(
        {k for k in set(s) | set(now) if s.get(k) != now.get(k)}))
    same(w, left(near), now, what, *diag)
    return None


def killed(w, args, secs, make, states, seed, rounds):
    """kill -9 at random points; after each, one of the states."""
    rng, seen = random.Random(seed), {}
    for i in range(rounds):
        make()
        p = w.spawn([ZOTBOX, *args], stdin=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * secs * 1.2)
        p.kill()
        p.wait()
        got = is_one_of(w, states, "%s killed, round %d" % (args[1], i))
        seen[got] = seen.get(got, 0) + 1
    w.check(None not in seen, "%s: %d kills leave the old state or the new" %
            (args[1], rounds), seen)
    w.note("%s: %r" % (args[1], seen))


def duration(w, args):
    start = time.time()
    r = w.zotbox(*args)
    w.equal(r.rc, 0, " ".join(args[:2]), r)
    return time.time() - start


def sweep(w, args, make, states, calls):
    """Killed at the first of the calls that change something, at the next,
    and so on (with gaps where it goes on long) until one gets through."""
    at, seen = 0, {}
    while at < 200:
        make()
        at += 1 if at < 12 else 7
        p = subprocess.run(
            ["strace", "-qq", "-o", "/dev/null", "-e", "trace=" + calls, "-e",
             "inject=%s:signal=KILL:when=%d" % (calls, at), ZOTBOX, *args],
            env=w.env, cwd=w.project, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
        got = is_one_of(w, states, "%s: %s number %d" % (args[1], calls, at),
                        p.stderr.decode())
        if p.returncode not in (-signal.SIGKILL, 128 + signal.SIGKILL):
            break
        seen[got] = seen.get(got, 0) + 1
    w.check(at >= 3 and None not in seen, "%s: killed at each %s" % (
        args[1], calls), at, seen)
    w.note("%s %s: %d, %r" % (args[1], calls, at, seen))


def strace_works(w):
    p = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"],
                       env=w.env, stderr=subprocess.PIPE)
    return p.returncode == 0


CALLS = ("rename,renameat,renameat2", "unlink,unlinkat,rmdir",
         "mkdir,mkdirat", "fsync")
