#!/usr/bin/env python3
"""Can the rows fail? Every row is played against the console again, and this
time something is wrong: a frame on its way to an extension, or a line on its
way to the client, is changed, doubled or lost. A row that does not notice is
not ok. (All kinds of faults at all places: `selftest.py all`.)"""
import concurrent.futures
import copy
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import suite
import player
import talk
import zbtest
from driver_console import Console


class Spoilt(Console):
    """A console whose n-th line that counts is not what it should be."""
    def __init__(self, nth, kind, row):
        self.nth, self.kind, self.count = nth, kind, 0
        self.again = None
        self.wants = lines(row)

    def next(self, seconds):
        if self.again is not None:
            line, self.again = self.again, None
            return line
        line = super().next(seconds)
        if line is None or line[1] == "denied":
            return line
        self.count += 1
        if self.count != self.nth:
            return line
        if self.kind == "drop":
            return super().next(1)
        if self.kind == "twice":
            self.again = line
            return line
        if self.kind == "who":
            return ("nobody-is-called-so", line[1], line[2])
        if self.kind == "type":
            return (line[0], "other_" + line[1], line[2])
        new = player.spoil_value(self.wants[self.nth - 1][2], line[2])
        return (line[0], line[1], new if new is not None and
                isinstance(new, dict) else dict(line[2], extra=1))


def spread(steps):
    """The steps as they are played, one behind the other."""
    for s in steps:
        if s[0] == "repeat":
            for i in range(s[1]):
                yield from spread(s[2])
        else:
            yield s


def lines(row):
    """The lines that the client is to see; None where the order is open."""
    return [w if len(s[1]) == 1 else (None, None, {"...": 0})
            for s in spread(row.host) if s[0] == "sees" for w in s[1]]


def open_ended(pattern):
    return isinstance(pattern, dict) and "..." in pattern


def places(row):
    """Where something can be spoilt so that the row must notice: (side, what,
    nth, kind)."""
    found = []
    for name in row.exts:
        if len(row.runs[name]) > 1:     # which run hears it is not known here
            continue
        hears = [p for s in spread(row.runs[name][0]) if s[0] == "hear"
                 for p in s[1]]
        last = row.runs[name][0][-1:]
        gone = last and last[0][0] in ("exit", "signal", "close")
        for n, p in enumerate(hears, 1):
            # Who is gone hears nothing a second time.
            kinds = ["type"] if gone and n == len(hears) else \
                ["type", "twice"]
            if not open_ended(p) and player.spoil_value(p, p) is not None:
                kinds += ["value", "extra"]
            if n == len(hears) and n > 1:
                found += [("ext", name, n, k) for k in kinds]
        if hears and (not last or last[0][0] not in player.ENDS or
                      last[0][0] == "mute"):
            found.append(("ext", name, len(hears) + 1, "drop"))
    seen = lines(row)
    for n, (ext, kind, p) in enumerate(seen, 1):
        if n < len(seen) - 1:
            continue
        kinds = ["type", "twice"] + (
            ["who"] if ext not in (None, "$any") else [])
        if n == len(seen):
            kinds.append("drop")
        if not open_ended(p):
            kinds.append("value")
        found += [("client", "", n, k) for k in kinds]
    return found


def some(rows, everything):
    """Of each row one fault, on either side and of every kind in turn."""
    for i, row in enumerate(rows):
        all = places(row)
        if everything:
            yield from ((row, p) for p in all)
            continue
        mine = [p for p in all if p[0] == ("ext", "client")[i % 2]] or all
        # An ending that is not heard is the last resort.
        better = [p for p in mine if p[3] != "drop"] or mine
        yield row, better[i // 2 % len(better)] if better else None


def spoilt(row, place):
    """True if the row noticed, and how."""
    side, name, nth, kind = place
    row = copy.deepcopy(row)
    if side == "client":
        return suite.run(row, Spoilt(nth, kind, row))
    return suite.run(row, Console(), {"ext": name, "nth": nth, "kind": kind})


class Wrong(Console):
    """A host that makes one mistake, by its name."""
    def __init__(self, mistake):
        self.mistake, self.kept, self.n = mistake, None, 0

    def start(self, w, row, dirs):
        if self.mistake == "arrival is load order":
            dirs = dirs[::-1]
        if self.mistake == "no time limits":
            row = copy.deepcopy(row)
            (row.scope or {}).pop("limits", None)
        super().start(w, row, dirs)

    def do(self, line):
        verb = line.split()[0]
        mistake = self.mistake
        self.n += 1
        if verb == "event" and mistake == "events overtake each other":
            if self.kept is None:
                self.kept = line
                return
            super().do(line)
            line, self.kept = self.kept, None
        elif verb == "event" and mistake == "an event is lost":
            if self.n % 3 == 0:
                return
        elif verb == "event" and mistake == "an event comes twice":
            if self.n == 2:
                super().do(line)
        elif verb == "key" and mistake == "keys are lost":
            if self.n % 2:
                return
        elif verb == "key" and mistake == "a key is another":
            line = line.rsplit(" ", 1)[0] + " up"
        elif line[0] == "/" and mistake == "arguments are lost":
            line = line.split()[0]
        elif verb in ("call", "cmd") and mistake == "arguments are lost":
            line = " ".join(line.split()[:2])
        elif verb == "panel_close" and mistake == "a panel is not closed":
            return
        elif verb == "intercept" and mistake == "nobody is asked":
            self.lines.put(("-", "allow", {}))
            return
        elif verb == "reload" and mistake == "reload does nothing":
            who = (line.split() + ["-"])[1]
            self.lines.put((who, "reload", {"stopped": 1, "loaded": 1,
                                            "ready": 1, "errors": []}))
            return
        super().do(line)

    def next(self, seconds):
        line = super().next(seconds)
        if line and line[1] == "block" and \
                self.mistake == "a block is overlooked":
            return (line[0], "allow", {})
        if line and line[1] in ("error", "load_error") and \
                self.mistake == "no reason is given":
            return (line[0], line[1], {"error": ""})
        return line

    def stop(self):
        if self.mistake == "nobody is told to end":
            self.p.kill()
            super().stop()
            return ""       # that it was killed is not what is to be seen
        return super().stop()


MISTAKES = {
    "arrival is load order": ("tools/same-tool", "commands/same-name",
                              "intercept/chain-of-three", "ends/reload-all"),
    "no time limits": ("commands/timeout",),
    "events overtake each other": ("events/order", "events/order-two",
                                   "events/newer-events"),
    "an event is lost": ("events/order", "events/subscribed"),
    "an event comes twice": ("events/order", "events/subscribed"),
    "keys are lost": ("panels/keys", "panels/render-after-key"),
    "a key is another": ("panels/keys",),
    "arguments are lost": ("commands/arguments", "commands/actions",
                           "tools/call", "tools/ids-differ"),
    "a panel is not closed": ("panels/closed-by-user", "panels/reopened"),
    "nobody is asked": ("intercept/block", "intercept/rewrite",
                        "intercept/allow", "intercept/timeout"),
    "a block is overlooked": ("intercept/block", "intercept/chain-block",
                              "intercept/block-and-rewrite"),
    "reload does nothing": ("ends/reload-one", "ends/reload-session",
                            "ends/reload-all"),
    "no reason is given": ("ends/crash-before-hello", "tools/unknown-tool",
                           "ends/signal-before-hello"),
    "nobody is told to end": ("ends/shutdown", "ends/shutdown-mute",
                              "lines/malformed"),
}


def patterns():
    """The patterns themselves, without any host."""
    tap, m = zbtest.tap, lambda p, v: player.match(p, v, {})
    for ok, what in (
            (m({"a": 1}, {"a": 1}), "equal"),
            (not m({"a": 1}, {"a": 1, "b": 2}), "too much"),
            (not m({"a": 1, "b": 2}, {"a": 1}), "too little"),
            (m({"a": 1, "...": 0}, {"a": 1, "b": 2}), "open"),
            (not m({"a": 1, "...": 0}, {"b": 2}), "open, but incomplete"),
            (m({"a?": 1}, {}) and m({"a?": 1}, {"a": 1}), "may be absent"),
            (not m({"a?": 1}, {"a": 2}), "but not another"),
            (not m(1, True) and not m(0, False) and not m(1, 1.0),
             "true is no number, 1.0 is not 1"),
            (not m([1, 2], [2, 1]) and not m([1], [1, 1]), "lists"),
            (m("~b.d", "abcde") and not m("~b.d", "abde") and
             not m("~5", 5), "texts that contain"),
            (m(["$x", "$x"], ["1", "1"]) and not m(["$x", "$x"], ["1", "2"]),
             "a name is one value"),
            (m("$any", None) and not m("$x", None), "any"),
            (not m("$string", 5) and not m("$string", "") and
             m("$string", "x"), "some text"),
            (player.fill({"a": "$x", "b": "n $i", "c": "$#i"},
                         {"x": "v", "i": "3"}) ==
             {"a": "v", "b": "n 3", "c": 3}, "filled in")):
        tap.line(ok, "patterns: " + what)


# No host of ours says them: hello must ask for it, or a host of tools is needed.
UNSAID = {"tool_cancel"}


def coverage(rows):
    """Every type of frame that the program knows is in some row."""
    with open(os.path.join(talk.HERE, "../../src/proto.c"),
              encoding="utf-8") as f:
        table = f.read()
    for macro, step in (("ROW", "say"), ("HOST", "hear")):
        known = set(re.findall(r'\b%s\(\w+, "(\w+)"' % macro, table))
        there = {"shutdown", "shutdown_ack"}    # in every row, by the player
        for row in rows:
            for run in row.runs.values():
                for s in talk.flat(x for y in run for x in y):
                    if s[0] == step:
                        there |= {f["type"] for f in (
                            s[1] if step == "hear" else [s[1]])
                            if isinstance(f.get("type"), str)}
        zbtest.tap.line(len(known) > 8 and known <= there | UNSAID,
                        "%s: every type of frame is in a row" % step)
        if not known <= there | UNSAID:
            zbtest.tap.note("not there:", *sorted(known - there - UNSAID))


def bad_rows():
    """A row that cannot be read is an error, not nothing."""
    for text in ("row x: y\next a\na > {\n", "row x: y\nb > {}\n",
                 "row x: y\next a\na frobnicate\n", "nothing\n",
                 "row x: y\next a\na up {\"comands\":[]}\n"):
        w = zbtest.World("bad")
        try:
            talk.read(w.write("x.talk", text))
            zbtest.tap.line(False, "read: %r" % text)
        except talk.BadRow as e:
            zbtest.tap.line("x.talk:" in str(e), "refused: %r" % text)
        finally:
            w.done()


def faults(rows, everything):
    """[(what, job)]: a job gives what the row noticed; None: nothing can be
    spoilt."""
    for row, place in some(rows, everything):
        what = "%s/%s" % (row.file, row.name)
        if not place:
            yield what + ": something in it can be spoilt", None
            continue
        side, name, nth, kind = place
        yield "%s notices: %s %d of %s: %s" % (
            what, "frame" if side == "ext" else "line", nth,
            name or "the client", kind), \
            lambda r=row, p=place: spoilt(r, p)


def mistakes(rows):
    known = {r.file + "/" + r.name: r for r in rows}
    for mistake, names in MISTAKES.items():
        for name in names:
            if name in known:
                yield "%s notices a host where %s" % (name, mistake), \
                    lambda r=known[name], m=mistake: suite.run(
                        copy.deepcopy(r), Wrong(m), wait=4)


def main():
    tap = zbtest.tap
    everything = sys.argv[1:2] == ["all"]
    patterns()
    coverage(talk.all_rows())
    bad_rows()
    why = zbtest.can_sandbox()
    rows = suite.chosen(talk.all_rows(), sys.argv[1 + everything:])
    names = {r.file + "/" + r.name for r in talk.all_rows()}
    tap.line(all(n in names for v in MISTAKES.values() for n in v),
             "the rows that are named here exist")
    rows = [r for r in rows if "console" not in r.skips]
    todo = list(faults(rows, everything)) + list(mistakes(rows))
    with concurrent.futures.ThreadPoolExecutor(suite.WORKERS) as pool:
        jobs = [pool.submit(job) if job and not why else None
                for _, job in todo]
        for (what, _), job in zip(todo, jobs):
            if why:
                tap.skip(what, why)
            else:
                tap.line(bool(job and job.result()), what)
    print("1..%d" % tap.count, flush=True)
    sys.exit(1 if tap.failed else 0)


if __name__ == "__main__":
    main()
