#!/usr/bin/env python3
"""Transcripts of a real host and its extensions (tests/peer/transcripts, and
those in the directory that ZB_GOLDEN names), from the host's side: the client
does what made that host say its frames, the extension says what it said, and
must hear what it heard. Not compared: ids, the host's own name, model and
directories, and the order in which that host says things that belong to one
call - events and intercepts are on their way side by side there."""
import concurrent.futures
import glob
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import suite
import talk
import zbtest
from driver_console import Console
from driver_host import Host

# Played again with a fault.
CONTROLS = ("tide, rpc", "sentry, json")
HOSTS = {"console": Console, "host": Host}


def runs(path):
    found = []
    with open(path, encoding="utf-8") as f:
        for line in f.read().splitlines():
            if line.startswith("# run:"):
                found.append((line[6:].strip(), []))
            elif line[:2] in ("> ", "< "):
                found[-1][1].append((line[0], json.loads(line[2:])))
            elif line[:2] == "! ":
                found[-1][1].append(("!", int(line[2:])))
    return found


class Maker:
    """A row out of one run."""
    def __init__(self, file, title, lines):
        self.row = talk.Row("golden", file + ", " + title, "")
        self.lines = lines
        self.name = lines[0][1]["name"]
        self.row.exts = [self.name]
        self.row.manifests = {self.name: {}}
        self.steps, self.host = [], self.row.host
        self.row.runs = {self.name: [self.steps]}
        self.asked = {}         # id: its name in patterns
        self.open = None        # the panel that the user sees

    def make(self):
        for mark, f in self.lines:
            if mark == ">":
                self.hears(f)
            elif mark == "<":
                self.says(f)
            elif f:
                self.steps.append(["exit", f])

    def again(self, title, lines):
        """The same host goes on, after a reload."""
        self.row.name += ", " + title
        self.lines, self.asked, self.open = lines, {}, None
        self.host.append(["do", "reload " + self.name])
        self.host.append(["sees", [[self.name, "reload", {
            "stopped": 1, "loaded": 1, "ready": 1, "errors": []}]]])
        self.steps = []
        self.row.runs[self.name].append(self.steps)
        self.make()

    # -- the host says --

    def hears(self, f):
        kind = f["type"]
        if kind in ("hello_ack", "shutdown"):
            if kind == "hello_ack":
                self.hear({"type": kind, "protocol_version":
                           f["protocol_version"], **{
                               k: "$string" for k in f if k not in
                               ("type", "protocol_version")}, "...": 0})
            return              # the player hears shutdown by itself
        if "id" in f:
            name = "id%d_%d" % (len(self.row.runs[self.name]),
                                len(self.asked))
            self.asked[f["id"]] = (name, f)
            f = dict(f, id="$" + name)
        if f == {"type": "command_invoked", "id": f.get("id"),
                 "name": f.get("name")}:
            f["args?"] = ""
        self.hear(f)
        line = self.line_of(f)
        if line:
            self.host.append(["do", line])

    def hear(self, pattern):
        """Frames one behind the other may come in any order where they
        belong to events; keys and calls keep theirs."""
        last = self.steps[-1] if self.steps else [""]
        loose = ("event", "event_intercept")
        if last[0] == "hear" and pattern["type"] in loose and all(
                p["type"] in loose for p in last[1]):
            last[1].append(pattern)
        else:
            self.steps.append(["hear", [pattern]])

    def line_of(self, f):
        rest = {k: v for k, v in f.items() if k not in ("type", "id", "event")}
        kind = f["type"]
        if kind == "event":
            # The host says this one itself.
            return None if f["event"] == "session_start" else \
                "event %s %s" % (f["event"], json.dumps(rest))
        if kind == "event_intercept":
            return "intercept %s %s &" % (f["event"], json.dumps(rest))
        if kind == "tool_call":
            return "call %s %s &" % (json.dumps(f["name"]),
                                     json.dumps(f["args"]))
        if kind == "command_invoked":
            return "cmd %s %s &" % (json.dumps(f["name"]), f.get("args", ""))
        if kind == "panel_key":
            return "key %s %s %s" % (json.dumps(f["panel_id"]), f["key"],
                                     f.get("text", ""))
        if kind == "panel_close":
            self.open = None
            return "panel_close " + json.dumps(f["panel_id"])
        raise ValueError("the host says %s" % kind)

    # -- the extension says --

    def says(self, f):
        kind = f["type"]
        if kind == "shutdown_ack":
            return
        said = f
        if f.get("id") in self.asked:
            said = dict(f, id="$" + self.asked[f["id"]][0])
        self.steps.append(["say", said])
        seen = self.seen(f)
        if seen:
            self.host.append(["sees", [[self.name, *seen]]])

    def seen(self, f):
        """What the client is to see of it."""
        rest = {k: v for k, v in f.items() if k not in ("type", "id")}
        kind = f["type"]
        if kind in ("hello", "ready", "subscribe", "register_command",
                    "register_tool"):
            return None
        if kind == "event_intercept_response":
            by = {"by?": "$any"}
            if rest.get("block"):
                return "block", dict(rest, **by)
            return "allow", dict(rest, **{"reason?": "$any"}, **by)
        if kind == "command_response":
            if f["action"] == "open_panel":
                self.open = f["open_panel"]["id"]
            return f["action"], rest
        if kind == "tool_result":
            return "result", rest
        if kind == "open_panel":
            self.open = f["panel"]["id"]
        if kind == "panel_render" and f["panel_id"] != self.open:
            return None         # nobody sees it, and the host drops it
        if kind == "panel_close":
            self.open = None
        return kind, rest


def rows_of(path):
    made = []
    for title, lines in runs(path):
        if title.endswith("after it"):
            made[-1].again(title, lines)
        else:
            made.append(Maker(os.path.basename(path)[:-7], title, lines))
            made[-1].make()
    return [m.row for m in made]


def files():
    more = os.environ.get("ZB_GOLDEN")
    for top in [os.path.join(talk.HERE, "../peer/transcripts")] + (
            [more] if more else []):
        yield from sorted(glob.glob(os.path.join(top, "*.frames")))


def main():
    tap, why = zbtest.tap, zbtest.can_sandbox()
    rows = [r for p in files() for r in rows_of(p)]
    todo = [(host, r) for host in HOSTS for r in suite.chosen(
        rows, sys.argv[1:])]
    with concurrent.futures.ThreadPoolExecutor(suite.WORKERS) as pool:
        jobs = [None if why else pool.submit(suite.run, r, HOSTS[h]())
                for h, r in todo]
        for (host, row), job in zip(todo, jobs):
            what = "%s: %s" % (host, row.name)
            if why:
                tap.skip(what, why)
                continue
            wrong = job.result()
            tap.line(not wrong, what)
            for line in "\n".join(wrong).splitlines():
                tap.note(line)
    tap.line(len(rows) > 15, "%d transcripts" % len(rows))
    for row in [r for r in rows if not why and r.name in CONTROLS]:
        for spoil in ({"kind": "value", "nth": 3}, {"kind": "twice", "nth": 2}):
            wrong = suite.run(row, Console(), dict(spoil, ext=row.exts[0]))
            tap.line(bool(wrong), "%s: a difference is noticed: %s" % (
                row.name, spoil["kind"]))
    print("1..%d" % tap.count, flush=True)
    sys.exit(1 if tap.failed else 0)


if __name__ == "__main__":
    main()
