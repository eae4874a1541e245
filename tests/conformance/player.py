#!/usr/bin/env python3
"""player - an extension that plays its part of a row.

It is copied into the extension's directory beside play.json, and runs inside
the sandbox: nothing but the standard library. Every start of the extension
plays the next run of play.json; at the last one it stays.

What it finds goes to standard error, which a host keeps in the extension's
log: `conform: wrong ...` for a difference, `conform: done N` when run N is
played, `conform: shutdown` when the host ended it in good manner."""
import json
import os
import re
import select
import sys
import time

DEADLINE = 10       # seconds for a frame to come


# ---- patterns ----

def match(p, v, names):
    """Is value v what pattern p says? Names that p binds go into names."""
    if isinstance(p, str) and p[:1] == "$" and len(p) > 1:
        return match_name(p[1:], v, names)
    if isinstance(p, str) and p[:1] == "~":
        return isinstance(v, str) and re.search(p[1:], v, re.S) is not None
    if isinstance(p, dict):
        return isinstance(v, dict) and match_object(p, v, names)
    if isinstance(p, list):
        return isinstance(v, list) and len(p) == len(v) and all(
            match(a, b, names) for a, b in zip(p, v))
    return type(p) is type(v) and p == v


def match_name(name, v, names):
    if name == "any":
        return True
    if name == "string":
        return isinstance(v, str) and v != ""
    if name in names:
        return v == names[name]
    names[name] = v
    return v is not None


def match_object(p, v, names):
    known = set()
    for key, want in p.items():
        if key == "...":
            continue
        name = key[:-1] if key[-1:] == "?" else key
        known.add(name)
        if name not in v:
            if name == key:
                return False
        elif not match(want, v[name], names):
            return False
    return "..." in p or set(v) <= known


def fill(p, names):
    """p with the names that are known put in. In a line that is played
    several times `$i` is the how-manieth time it is, also inside a text or a
    name, `$#i` the same as a number."""
    if isinstance(p, str) and p == "$#i":
        return int(names["i"])
    if isinstance(p, str):
        if "i" in names:
            p = re.sub(r"\$i\b", names["i"], p)
        if p[:1] == "$" and p[1:] in names:
            return names[p[1:]]
        return p
    if isinstance(p, dict):
        return {fill(k, names): fill(v, names) for k, v in p.items()}
    if isinstance(p, list):
        return [fill(v, names) for v in p]
    return p


def spoil_value(p, v):
    """v with the first thing that p insists on changed; None if there is
    none."""
    if isinstance(p, dict) and isinstance(v, dict):
        for key in p:
            name = key[:-1] if key[-1:] == "?" else key
            if name in v and name != "type":
                new = spoil_value(p[key], v[name])
                if new is not None:
                    return dict(v, **{name: new})
        return None
    if isinstance(p, list) and isinstance(v, list):
        for i, (a, b) in enumerate(zip(p, v)):
            new = spoil_value(a, b)
            if new is not None:
                return v[:i] + [new] + v[i + 1:]
        return v + [None]
    if isinstance(p, str) and p[:1] in ("$", "~"):
        return None
    return "spoilt by %r" % (v,)


# ---- the extension ----

class Player:
    def __init__(self, play):
        self.names = {}
        self.buf, self.ended = b"", False
        self.spoil = play.get("spoil") or {}
        self.heard, self.again = 0, None

    def say(self, what):
        sys.stdout.buffer.write(what)
        sys.stdout.buffer.flush()

    def wrong(self, text):
        print("conform: wrong:", text, file=sys.stderr, flush=True)
        os._exit(99)

    def line(self, seconds):
        """The next line, None when there is none in time or at the end."""
        end = time.monotonic() + seconds
        while b"\n" not in self.buf:
            left = max(0, end - time.monotonic())
            if not select.select([0], [], [], left)[0]:
                return None
            more = os.read(0, 1 << 16)
            if not more:
                self.ended = True
                return None
            self.buf += more
        line, self.buf = self.buf.split(b"\n", 1)
        return line

    def frame(self, seconds, pattern=None):
        if self.again is not None:
            f, self.again = self.again, None
            return f
        line = self.line(seconds)
        if line is None:
            return None
        try:
            f = json.loads(line)
        except ValueError:
            self.wrong("not JSON: %r" % line[:200])
        self.heard += 1
        if self.heard == self.spoil.get("nth"):
            return self.spoilt(f, seconds, pattern)
        return f

    def spoilt(self, f, seconds, pattern):
        kind = self.spoil["kind"]
        if kind == "drop":
            return self.frame(seconds, pattern)
        if kind == "twice":
            self.again = f
        elif kind == "type":
            f = dict(f, type="other_" + f.get("type", ""))
        elif kind == "extra":
            f = dict(f, conformance_extra=1)
        elif kind == "value" and pattern is not None:
            f = spoil_value(pattern, f) or dict(f, conformance_extra=1)
        return f

    # -- steps --

    def do_say(self, f):
        self.say(json.dumps(fill(f, self.names), ensure_ascii=False,
                            separators=(",", ":")).encode() + b"\n")

    def do_raw(self, text, count=1):
        self.say(text.encode("latin-1") * count)

    def do_err(self, text):
        sys.stderr.write(text)
        sys.stderr.flush()

    def do_name(self, name):
        """A name that was heard, alone."""
        self.say(self.names[name].encode())

    def do_hear(self, patterns, seconds=DEADLINE):
        left = fill(patterns, self.names)
        while left:
            f = self.frame(seconds, left[0])
            if f is None:
                self.wrong("nothing came; wanted %s" % json.dumps(left))
            for p in left:
                names = dict(self.names)
                if match(p, f, names):
                    self.names = names
                    left.remove(p)
                    break
            else:
                self.wrong("got %s; wanted %s (with %s)" % (
                    json.dumps(f)[:2000], json.dumps(left)[:2000],
                    json.dumps(self.names)[:500]))

    def do_sleep(self, seconds):
        time.sleep(seconds)

    def do_quiet(self, seconds):
        f = self.frame(seconds)
        if f is not None:
            self.wrong("got %s; wanted nothing" % json.dumps(f)[:2000])

    def do_repeat(self, count, steps):
        for i in range(count):
            self.names["i"] = str(i)
            self.play(steps)
        del self.names["i"]

    def do_exit(self, status):
        os._exit(status)

    def do_signal(self, number):
        os.kill(os.getpid(), number)
        time.sleep(DEADLINE)

    def do_close(self):
        os.close(1)
        time.sleep(60)

    def do_hang(self):
        """Whatever comes, no answer; the host must end it."""
        while True:
            time.sleep(60)

    do_refused = do_hang    # likewise, and the host ends it at once

    def do_mute(self):
        """The shutdown is heard, not answered, and obeyed."""
        self.rest(answer=False)

    def play(self, steps):
        for step in steps:
            getattr(self, "do_" + step[0])(*step[1:])

    def rest(self, answer=True):
        while True:
            f = self.frame(60)
            if f is None:
                print("conform: end without shutdown", file=sys.stderr,
                      flush=True)
                os._exit(98)
            if f.get("type") != "shutdown":
                self.wrong("got %s; wanted shutdown" % json.dumps(f)[:2000])
            if answer:
                self.say(b'{"type":"shutdown_ack"}\n')
            print("conform: shutdown", file=sys.stderr, flush=True)
            os._exit(0)


ENDS = ("exit", "signal", "close", "hang", "refused", "mute")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "play.json"), encoding="utf-8") as f:
        play = json.load(f)
    # Which run this is: HOME is there in every host, and kept.
    count = os.path.join(os.environ["HOME"], ".conform-" + play["name"])
    n = os.path.getsize(count) if os.path.exists(count) else 0
    with open(count, "a") as f:
        f.write("x")
    run = play["runs"][min(n, len(play["runs"]) - 1)]
    p = Player(play)
    ending = []
    if run and run[-1][0] in ENDS:
        run, ending = run[:-1], [run[-1]]
    p.play(run)
    print("conform: done %d" % n, file=sys.stderr, flush=True)
    p.play(ending)
    p.rest()


if __name__ == "__main__":
    main()
