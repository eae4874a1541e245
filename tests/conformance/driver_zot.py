#!/usr/bin/env python3
"""The rows, against a real zot, where ZOTBOX_ZOT names one or PATH has one:
its rpc mode, with a scripted model (tests/peer/model.py) that calls a tool when
the row does. Its extensions run as zot starts them, without us.

Much of the rows cannot be asked that way: rpc mode has no slash commands, no
panels, no prompts of extensions, and a turn says all its events. Those rows are
skipped, each with the reason."""
import json
import os
import queue
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import suite
import talk

sys.path.insert(0, os.path.join(talk.HERE, "../peer"))
from model import Model, say, tools
from real import find_zot, only_loopback

ZOT, WHY = find_zot()
VERBS = {"call": "", "event": "", "idle": "",
         "cmd": "rpc mode has no slash commands of extensions",
         "intercept": "an intercept is part of a turn of its own",
         "key": "rpc mode has no panels", "panel_close":
         "rpc mode has no panels", "resize": "rpc mode has no panels",
         "reload": "rpc mode has no reload",
         "kill": "rpc mode does not tell what died",
         "tools": "rpc mode has no list of tools",
         "commands": "rpc mode has no list of commands",
         "exts": "rpc mode has no list of extensions"}
TYPES = {"result", "notify", "display", "clear_notes", "load_error"}


class Zot:
    name = "zot"

    def lacks(self, row):
        for verb in sorted(row.verbs()):
            if VERBS[verb]:
                return VERBS[verb]
        for kind in sorted(row.types() - TYPES):
            return "rpc mode does not tell: " + kind
        for s in talk.flat(row.host):
            if s[0] == "do" and s[1].startswith("event") and \
                    json.loads(s[1].split(None, 2)[2]) != {"stop": "end"}:
                return "such an event is part of a turn of its own"
        return ""

    def start(self, w, row, dirs):
        self.lines = queue.Queue()
        self.model = Model()
        self.done = threading.Event()
        self.done.set()
        self.owners = {}
        for name in reversed(row.exts):
            for s in talk.flat(row.runs[name][0]):
                f = s[1] if s[0] == "say" else {}
                if f.get("type") == "register_tool":
                    self.owners[f["name"]] = name
        self.names = {d: os.path.basename(d) for d in dirs}
        self.called = "-"
        args = [ZOT, "rpc", "--provider", "llama.cpp", "--model", "parrot",
                "--base-url", self.model.url, "--api-key", "x", "--cwd",
                w.project, "--no-session", "--no-ext"]
        for d in dirs:
            args += ["--ext", d]
        self.p = w.spawn(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, bufsize=0)
        self.words_said = []
        self.readers = [threading.Thread(target=f, daemon=True)
                        for f in (self.read, self.read_errors)]
        for r in self.readers:
            r.start()

    def read(self):
        for line in self.p.stdout:
            f = json.loads(line)
            kind, ext = f.pop("type", None), f.pop("extension", "-")
            if kind == "tool_result":
                self.result(f)
            elif kind in ("ext_notify", "ext_display", "ext_clear_notes"):
                self.lines.put((ext, kind[4:], f))
            elif kind == "done":
                self.done.set()
        self.done.set()
        self.lines.put(None)

    def result(self, f):
        c = f.get("content") or ""
        text = c if isinstance(c, str) else "".join(
            b.get("text", "") for b in c)
        self.lines.put((self.called, "result", {
            "content": [{"type": "text", "text": text}],
            "is_error": bool(f.get("is_error"))}))

    def read_errors(self):
        for line in self.p.stderr:
            line = line.decode("utf-8", "backslashreplace").rstrip("\n")
            self.words_said.append(line)
            for d, name in self.names.items():
                if line.startswith("extension load: %s: " % d):
                    self.lines.put((name, "load_error", {"error": line}))

    def do(self, line):
        self.done.wait(20)
        verb, _, rest = line.removesuffix(" &").partition(" ")
        self.model.play([say("ok")])
        if verb == "call":
            name, _, args = rest.partition(" ")
            self.called = self.owners.get(name, "-")
            self.model.play([tools((name, json.loads(args or "{}"))),
                             say("ok")])
        self.done.clear()
        self.p.stdin.write(b'{"id":"1","type":"prompt","message":"go"}\n')

    def next(self, seconds):
        try:
            line = self.lines.get(timeout=seconds) if seconds else \
                self.lines.get_nowait()
        except queue.Empty:
            return None
        if line is None:
            self.lines.put(None)
        return line

    def stop(self):
        self.done.wait(20)
        self.p.stdin.close()
        try:
            self.p.wait(15)
        except subprocess.TimeoutExpired:
            return "does not end"
        finally:
            self.model.close()
        for r in self.readers:
            r.join(5)
        return "" if self.p.returncode == 0 else \
            "ended with %s" % self.p.returncode

    def log(self, w, ext):
        return w.log(ext)

    def words(self):
        return "\n".join(self.words_said)


if __name__ == "__main__":
    suite.main(Zot, WHY or only_loopback())
