#!/usr/bin/env python3
"""kill -9 at 200 random points of install, update, remove and allow, and at
each step of an update: afterwards everything is as it was, or as it should
be."""
import json
import os
import shutil
import sys

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
