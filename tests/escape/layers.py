#!/usr/bin/env python3
"""Each layer of the floor is there for something: with any one of them taken
out, by name, an attempt that fails against what is shipped gets out."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from attempts import ALWAYS, CARVED
from field import *
import protocol
from zbtest import BUILD, main, test

ACTS = [a for a in ALWAYS + CARVED if not a.lone]


def program(layer):
    return os.path.join(BUILD, "tests/escape/without-%s/zotbox" % layer)


def got_out(w, program):
    f = Field(w)
    try:
        tried = [a for a in ACTS if fits(a)]
        f.plant_named(tried)
        got = f.inside([a.act for a in tried], "--policy", "standard",
                       zotbox=program)
        w.check(f.run.rc == 0 and len(got) == len(tried) and
                "nothing" not in got, "all were tried", f.run)
        return [a.name for a, g in zip(tried, got) if g.startswith("ok")]
    finally:
        f.close()


@test("shipped", needs="sandbox")
def shipped(w):
    w.equal(got_out(w, None), [], "nothing gets out")


def without(layer):
    @test("without " + layer, needs="sandbox")
    def run(w):
        out = got_out(w, program(layer))
        w.check(out, "%d get out: %s" % (len(out), ", ".join(out)))


@test("without mediator", needs="sandbox", seconds=80)
def without_mediator(w):
    was, out = zbtest.ZOTBOX, []
    zbtest.ZOTBOX = program("mediator")
    try:
        for a in protocol.ATTEMPTS:
            w1 = World(a.name)
            try:
                if not protocol.prepare(w1, a).rc and any(
                        map(a.got, protocol.wrapped(w1, a))):
                    out.append(a.name)
            finally:
                w1.done()
    finally:
        zbtest.ZOTBOX = was
    w.check(out, "%d get out: %s" % (len(out), ", ".join(out)))


for layer in ("mounts", "landlock", "seccomp", "netns", "caps"):
    without(layer)


main()
