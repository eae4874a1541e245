#!/usr/bin/env python3
"""What an extension reaches for, under strict and under standard: one sandbox
a policy, some hundred attempts in each."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from attempts import ALWAYS, CARVED, GRANTED, STRICT, WRITABLE
from field import *
from zbtest import main, test


@test("strict", needs="sandbox", seconds=80)
def strict(w):
    f = Field(w)
    try:
        judge(f, ALWAYS + STRICT, "--policy", "strict")
        w.check(f.signals() > 0, "the victim heard from the controls")
    finally:
        f.close()


@test("standard", needs="sandbox", seconds=80)
def standard(w):
    f = Field(w)
    try:
        judge(f, ALWAYS + CARVED, "--policy", "standard")
    finally:
        f.close()


@test("one directory granted", needs="sandbox", seconds=80)
def granted(w):
    f = Field(w)
    try:
        w.equal(f.outside(["read", "{docs}/secret"]), "ok S3CRET-DOC",
                "control: there is something in the grant")
        scope = w.scope("esc", {"extends": "strict",
                                "fs": {"read": ["~/docs"]}})
        judge(f, GRANTED, "--scope", scope)
        if HAS_ATTRIBUTES:
            os.setxattr(w.home + "/docs/note", "user.zb", b"S3CRET-ATTRIBUTE")
            w.equal(f.inside([["read-attribute", "{docs}/note"],
                              ["list-attributes", "{docs}/note"]],
                             "--scope", scope),
                    ["ok S3CRET-ATTRIBUTE", "ok"],
                    "attributes of what is granted can be read")
    finally:
        f.close()


@test("the project granted for writing", needs="sandbox", seconds=120)
def writable(w):
    f = Field(w)
    try:
        for rel in (".git/config", ".vscode/settings.json", "lib/.git/HEAD",
                    "w/.keep"):
            w.write("home/code/app/" + rel, "S3CRET-HOST\n")
        os.mkdir(w.project + "/.zot")
        if HAS_ATTRIBUTES:
            os.setxattr(w.project + "/.git/config", "user.zb", b"S3CRET")
        scope = w.scope("esc", {"extends": "standard",
                                "fs": {"write": ["${project}"]}})
        reads = [a for a in CARVED if a.act[0] in (
            "read", "read-at", "chdir-read", "through-symlink",
            "reopen-read")]
        judge(f, reads + WRITABLE, "--scope", scope,
              work=(w.project + "/w", w.project + "/w/set-id"))
    finally:
        f.close()


def quiet(w, mode):
    """Less is watched then; no more is allowed. The installed extension's
    code is elsewhere: attempts on it are left out."""
    f = Field(w)
    try:
        tried = [a for a in ALWAYS + CARVED
                 if fits(a) and not re.search(r"{ext}|{code}", str(a.act))]
        f.plant_named(tried)
        before = f.snapshot()
        # The long races were run above.
        acts = [["3000" if x in ("100000", "10000") else x for x in a.act]
                for a in tried]
        got = f.wrapped(acts,
                        {"extends": "standard", "ledger": mode})
        for a, g in zip(tried, got):
            w.check(re.fullmatch(r"no (%s)( .*)?" % a.errno, g, re.S),
                    a.name + ": attempt", g)
        last = max(r["session"] for r in f.records)
        reads = [r for r in f.records
                 if r["session"] == last and r["op"] == "fs.read" and
                 (mode == "writes" or "stat" in r["syscall"])]
        w.equal(reads, [], "what was watched was as little as that")
        same(f, before)
    finally:
        f.close()


for m in ("open", "writes"):
    test("standard, installed, ledger " + m, needs="sandbox", seconds=80)(
        lambda w, m=m: quiet(w, m))
main()
