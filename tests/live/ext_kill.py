#!/usr/bin/env python3
"""kill -9 at 200 random points of install, update, remove and allow, and at
each step of an update: afterwards everything is as it was, or as it should
be."""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *
from zbverbs import *
from zbkill import *

ROUNDS = 200


def tiny(w, text="1", name="k"):
    shutil.rmtree(w.path(name), ignore_errors=True)
    w.write(name + "/extension.json", '{"name":"%s","exec":"./m"}' % name)
    w.write(name + "/m", "#!/bin/sh\necho %s\n" % text, 0o755)
    w.write(name + "/sub/" + text, text)
    w.write(name + "/permissions.json", json.dumps(
        {"zotbox": 1, "env": {"pass": ["V" + text]}}))
    return w.path(name)


class Kept:
    """$ZOT_HOME as it is now, to be put back as often as needed."""
    def __init__(self, w):
        self.w, self.at = w, w.path("kept-%d" % len(os.listdir(w.dir)))
        shutil.copytree(w.zot_home, self.at, symlinks=True)
        self.state = snapshot(w)

    def back(self):
        shutil.rmtree(self.w.zot_home)
        shutil.copytree(self.at, self.w.zot_home, symlinks=True)


def two_hundred(w, args, old, seed):
    """From the state @old, which is there now."""
    secs = duration(w, args)
    states = {"old": old.state, "new": snapshot(w)}
    w.check(states["old"] != states["new"], "%s changes something" % args[1])
    # With time for a process to begin, and to be through.
    killed(w, args, secs, old.back, states, seed, ROUNDS)


@test("200 installs", seconds=300)
def install(w):
    w.zotbox("ext", "install", tiny(w, name="other"))
    two_hundred(w, ["ext", "install", tiny(w), "--yes"], Kept(w), 1)


@test("200 updates", seconds=300)
def update(w):
    w.zotbox("ext", "install", tiny(w))
    w.write("zot/zotbox/k/data/mine", "kept")
    tiny(w, "2")
    two_hundred(w, ["ext", "update", "k", "--yes"], Kept(w), 2)


@test("200 removals", seconds=300)
def remove(w):
    w.zotbox("ext", "install", tiny(w, name="other"))
    w.zotbox("ext", "install", tiny(w))
    two_hundred(w, ["ext", "remove", "k", "-y"], Kept(w), 3)


@test("200 grants", seconds=300)
def allow(w):
    w.zotbox("ext", "install", tiny(w))
    two_hundred(w, ["ext", "allow", "k", "env.pass", "X"], Kept(w), 4)


def approval(w):
    """What says that a path may start, and under which scope; the rest of its box
    is made by whoever looks."""
    box = os.path.join(w.zot_home, "zotbox")
    found = {}
    for base, _, files in os.walk(box):
        for n in files:
            if "/@" in base and n in ("lock.json", "scope.json"):
                with open(os.path.join(base, n)) as f:
                    found[n] = re.sub(r'"installed": "[^"]*"', "", f.read())
    return (found["lock.json"], found["scope.json"]) \
        if "lock.json" in found else None


def litter(w):
    """Files that are only on their way to be something."""
    return [os.path.join(b, n) for b, ds, fs in os.walk(w.zot_home)
            for n in ds + fs if n.startswith((".zb-", ".stage-", ".scope-"))]


def trusts(w, args, old, seed):
    """kill -9 at any point of @args, from @old, which is there now."""
    was = approval(w)
    secs = duration(w, args)
    states, seen = {was: "old", approval(w): "new"}, {}
    w.equal(len(states), 2, "it changes something")
    rng = random.Random(seed)
    for i in range(ROUNDS):
        old.back()
        p = w.spawn([ZOTBOX, *args], stdin=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * secs * 1.2)
        p.kill()
        p.wait()
        recover(w)
        got = states.get(approval(w))
        left = litter(w)
        if got is None or left:
            w.check(False, "trust killed, round %d: %s" % (i, got), left)
        seen[got] = seen.get(got, 0) + 1
    w.check(None not in seen, "%d kills leave the old state or the new, and "
            "nothing beside it" % ROUNDS, seen)
    w.note("trust: %r" % seen)


@test("200 approvals, and 200 of new files", seconds=300)
def trust(w):
    w.zotbox("ext", "install", tiny(w, name="other"))
    d = w.path("project/.zot/extensions/k")
    shutil.copytree(tiny(w), d)
    trusts(w, ["ext", "trust", d, "--yes", "--policy", "standard"],
           Kept(w), 5)
    w.check(approval(w), "trusted")
    w.write("project/.zot/extensions/k/more", "more")
    trusts(w, ["ext", "trust", d, "--yes"], Kept(w), 6)


@test("what a killed approval, start or question leaves of a path")
def path_box(w):
    d = w.path("project/.zot/extensions/k")
    shutil.copytree(tiny(w), d)
    r = w.zotbox("ext", "trust", d, "--yes")
    box, = (os.path.join(w.zot_home, "zotbox", n) for n in
            os.listdir(os.path.join(w.zot_home, "zotbox")) if n[0] == "@")
    kept = approval(w)
    w.write(box + "/.zb-AbCdEf", "half a line")
    w.write(box + "/data/.zb-AbCdEf", "the extension's own")
    w.write(w.zot_home + "/zotbox/@0123456789abcdef/.zb-AbCdEf", "x")
    w.write(w.zot_home + "/zotbox/@0123456789abcdef.own/.zb-AbCdEf", "x")
    recover(w)
    w.equal([os.path.exists(box + n) for n in (
        "/.zb-AbCdEf", "/data/.zb-AbCdEf", "/path", "/lock.json")],
        [False, True, True, True], "a temporary file goes, the rest stays")
    w.equal([os.path.exists(w.zot_home + "/zotbox/" + n) for n in (
        "@0123456789abcdef", "@0123456789abcdef.own",
        ".lock-@0123456789abcdef")],
        [False, True, False], "a box that is nobody's goes")
    w.equal(approval(w), kept, "the approval stays")
    # A scope without an approval is of a trust that was killed: its policy
    # was never agreed to.
    os.unlink(box + "/lock.json")
    w.write(box + "/scope.json", '{"zotbox":1,"extends":"standard"}')
    r = w.zotbox("ext", "trust", d, "--yes")
    w.equal((r.rc, approval(w)[1]), (0, kept[1]), "it does not count", r)


@test("an update, killed at each step", needs="strace", seconds=240)
def each_step(w):
    if not strace_works(w):
        w.skip("", "strace does not work here")
        return
    w.zotbox("ext", "install", tiny(w))
    w.write("zot/zotbox/k/data/mine", "kept")
    tiny(w, "2")
    old = Kept(w)
    args = ["ext", "update", "k", "--yes"]
    duration(w, args)
    states = {"old": old.state, "new": snapshot(w)}
    for calls in CALLS:
        sweep(w, args, old.back, states, calls)


main()
