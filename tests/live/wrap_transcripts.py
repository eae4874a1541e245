#!/usr/bin/env python3
"""Recorded sessions between a host and extensions, replayed through wrap: both
sides get byte for byte what the other one said. An actor plays the extension's
side of a transcript inside the sandbox; this program plays the host's.

A transcript: `# run:` starts a session, `>` is a line of the host, `<` one of
the extension, `! N` its exit status. ZB_TRANSCRIPTS names a directory of more.
Not compared: the directories in hello_ack (they are the private ones) and
hello's capabilities (cut to what is granted); a panel_render for a panel that
is not open must not arrive."""
import glob
import json
import os
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *

ACTOR = r'''
import time
for line in open(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                              "play"), encoding="utf-8"):
    kind, text_ = line[0], line[2:].rstrip("\n")
    if kind == "<":
        raw(text_ + "\n")
    elif kind == ">":
        got = sys.stdin.buffer.readline().decode().rstrip("\n")
        if '"hello_ack"' in text_:
            want, have = json.loads(text_), json.loads(got)
            for d in (want, have):
                for k in ("cwd", "data_dir", "extension_dir"): d.pop(k)
            same = want == have
        else:
            same = text_ == got
        if not same:
            print("want", text_, "\ngot ", got, file=sys.stderr)
            os._exit(99)
    elif kind == "!":
        sys.stdout.flush()
        os._exit(int(text_))
'''

SCOPE = {"protocol": {
    "panels": "any", "event_content": True,
    "events": ["session_start", "turn_start", "tool_call", "turn_end",
               "assistant_message"],
    "intercept": {"tool_call": ["block"]}}}


def sessions(path):
    """[(title, [(kind, text)])]"""
    found = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            line = line.rstrip("\n")
            if line.startswith("# run:"):
                found.append((line[6:].strip(), []))
            elif line[:2] in ("< ", "> ", "! "):
                found[-1][1].append((line[0], line[2:]))
    return found


def same_hello(got, want):
    got, want = json.loads(got), json.loads(want)
    caps = set(got.pop("capabilities", []))
    return caps <= set(want.pop("capabilities", [])) and got == want


def replay(w, name, title, lines):
    ext = json.loads(lines[0][1])["name"]
    w.mkext(ext, ACTOR, files={
        "play": "".join("%s %s\n" % line for line in lines)})
    w.install(ext, "strict", SCOPE, "--yes-i-mean-it")
    p = w.wrap(ext)
    wrong, panels = [], set()
    for kind, text in lines:
        frame = json.loads(text) if kind != "!" else {}
        t = frame.get("type")
        if kind == ">":
            text = text.replace("$PROJECT", w.project)
            p.send(text.replace("$ZOT_HOME", w.zot_home).encode())
            if t == "panel_close":
                panels.discard(frame["panel_id"])
            continue
        if kind == "!":
            if p.recv() is not None:
                wrong.append("more: %s" % p.raw)
            p.close()
            status = p.wait()
            if status != int(text):
                wrong.append("status %s, not %s" % (status, text))
            continue
        opened = frame.get("open_panel") or frame.get("panel")
        if opened:
            panels.add(opened["id"])
        if t == "panel_render" and frame["panel_id"] not in panels:
            continue
        if t == "panel_close":
            panels.discard(frame["panel_id"])
        if p.recv() is None:
            wrong.append("ended before %s" % text)
            break
        if p.raw != text.encode() and not (
                t == "hello" and same_hello(p.raw, text)):
            wrong.append("got  %s\nwant %s" % (p.raw.decode(), text))
    w.check(not wrong, "%s, %s" % (name, title), "\n".join(wrong),
            w.log(ext))
    w.zotbox("ext", "remove", ext, "--yes")


def transcripts():
    here = os.path.join(SRC, "tests/live/transcripts")
    more = os.environ.get("ZB_TRANSCRIPTS")
    for d in [here] + ([more] if more else []):
        for path in sorted(glob.glob(os.path.join(d, "*.frames"))):
            yield path


@test("replayed", needs="sandbox", seconds=120)
def replayed(w):
    count = 0
    for path in transcripts():
        for title, lines in sessions(path):
            count += 1
            replay(w, os.path.basename(path)[:-7], title, lines)
    w.check(count >= 7, "%d sessions" % count)


@test("a difference is noticed", needs="sandbox")
def control(w):
    """The replay itself can fail: a changed byte on either side."""
    path = os.path.join(SRC, "tests/live/transcripts/tool.frames")
    title, lines = sessions(path)[0]
    w.mkext("lookup", ACTOR, files={
        "play": "".join("%s %s\n" % (k, t.replace("1.50", "1.5"))
                        for k, t in lines)})
    w.install("lookup", "strict", SCOPE, "--yes-i-mean-it")
    p = w.wrap("lookup")
    p.recv()
    p.send(lines[1][1].encode())
    p.until("ready")
    p.send(lines[4][1].encode())
    w.equal(p.wait(), 99, "host to extension")
    w.contains(w.log("lookup"), '"B":[1.5,', "and told")


main()
