#!/usr/bin/env python3
"""The rows, against zotbox host: each verb becomes a request of its API, each
reply and event a line of README.md.

What the API says and the rows do not ask for is left out: who is ready, what
it logs, panels that it closes because their extension ended, and the event
that goes before the reply of a command and says the same."""
import json
import os
import queue
import select
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import suite
import zbtest

PLAIN = {"ext_notify": "notify", "ext_display": "display",
         "ext_clear_notes": "clear_notes", "ext_panel_render": "panel_render",
         "ext_panel_close": "panel_close", "ext_denied": "denied"}
# Events that may only be the other half of the next line.
HALVES = ("ext_display", "ext_prompt", "ext_insert", "ext_panel_open",
          "ext_panel_close", "ext_tool_prompt")


class Host:
    name = "host"

    def lacks(self, row):
        return "" if "call_tool" not in row.types() else \
            "it answers call_tool itself and tells nobody"

    def start(self, w, row, dirs):
        self.lines, self.replies = queue.Queue(), {}
        self.waits, self.next_id = {}, 0
        self.owners = {}            # ("tool", name): extension
        self.busy, self.detached = None, set()
        self.settled = self.ending = self.over = False
        self.lock = threading.Condition()
        scope = dict(row.merged_scope(), extends="strict")
        self.err = open(w.path("stderr"), "w+b")
        args = [zbtest.ZOTBOX, "host", "--no-ext", "--policy",
                w.scope("row", scope)]
        for d in dirs:
            args += ["--ext", d]
        self.p = w.spawn(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=self.err, bufsize=0)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    # -- what it says --

    def read(self):
        buf, held = b"", None
        fd = self.p.stdout.fileno()
        while True:
            while b"\n" in buf:
                line, buf = buf.split(b"\n", 1)
                held = self.take(self.parse(line), held)
            if held and not select.select([fd], [], [], 0.1)[0]:
                self.event(held)
                held = None
            more = os.read(fd, 1 << 16)
            if not more:
                break
            buf += more
        if held:
            self.event(held)
        with self.lock:
            self.over = True
            self.lock.notify_all()
        self.lines.put(None)

    def parse(self, line):
        try:
            return json.loads(line)
        except ValueError:
            return {"type": "no line of JSON", "text": ascii(line)}

    def take(self, f, held):
        """One line; an event of HALVES is held until the next one is here."""
        if held and not self.same(held, f):
            self.event(held)
        if f["type"] in HALVES:
            return f
        if f["type"] == "response":
            self.response(f)
        else:
            self.event(f)
        return None

    def same(self, half, f):
        """Does f say again what half said?"""
        if half["type"] == "ext_panel_close":
            return f["type"] == "ext_exit" and \
                f["extension"] == half["extension"]
        if f["type"] != "response" or f["command"] != "invoke" or \
                not f["success"]:
            return False
        action = f["data"].get("action")
        said = f["data"].get(action)
        if half["type"] == "ext_panel_open":
            return action == "open_panel" and said["id"] == half["panel_id"]
        if half["type"] == "ext_tool_prompt":
            return action == "tool_prompt" and \
                f["data"]["tool_name"] == half["name"]
        return half["type"] == "ext_" + str(action) and \
            said == half.get("text")

    def see(self, ext, kind, data):
        self.lines.put((ext, kind, data))

    def event(self, f):
        kind, ext = f.pop("type"), f.pop("extension", "-")
        if kind in ("ext_ready", "ext_exit", "ext_tools_changed"):
            self.owners.clear()
        if kind == "ext_panel_close" and (self.ending or any(
                w[0] == "reload" for w in list(self.waits.values()))):
            return
        if kind in PLAIN:
            self.see(ext, PLAIN[kind], f)
        elif kind == "ext_panel_open":
            f["id"] = f.pop("panel_id")
            self.see(ext, "open_panel", {"panel": f})
        elif kind == "ext_submit":
            self.see(ext, "submit_slash" if f["slash"] else "submit", f)
        elif kind == "ext_load_error":
            self.see(ext, "load_error", {"error": f["error"]})
        elif kind == "ext_exit":
            # With an error only if nobody asked for it.
            if f.get("error"):
                self.see(ext, "exit", {k: f[k] for k in (
                    "status", "signal", "error") if k in f})
        elif kind not in ("ext_ready", "ext_log", "ext_tools_changed"):
            self.see(ext, kind, f)

    def response(self, f):
        with self.lock:
            wait = self.waits.pop(f["id"], None)
            if wait:
                verb, name, ext = wait
                self.show(verb, name, ext, f)
            else:
                self.replies[f["id"]] = f
            if f["id"] == self.busy:
                self.busy = None
            self.detached.discard(f["id"])
            self.lock.notify_all()

    def show(self, verb, name, ext, f):
        """The reply as a line."""
        if not f["success"]:
            if verb in ("call", "cmd") and f["code"] == "exited" and \
                    "was stopped" in f["error"]:
                return          # by a reload that was asked for
            self.see(ext, "builtin" if f["code"] == "unsupported" else
                     "error", {"error": f["error"]})
        elif verb == "call":
            self.see(ext, "result", f["data"])
        elif verb == "cmd":
            self.see(ext, f["data"].get("action") or "noop", f["data"])
        elif verb == "intercept":
            self.verdict(f["data"])
        elif verb == "reload":
            self.see(name or "-", "reload", f["data"])
        elif verb in ("tools", "commands", "exts"):
            key = {"exts": "extensions"}.get(verb, verb)
            for row in f["data"][key]:
                self.see(row.pop("extension", row["name"]), verb[:-1], row)

    def verdict(self, data):
        by = data["by"]
        who = [o["extension"] for o in by if o["outcome"] == "rewrite"] or \
            [o["extension"] for o in by] or ["-"]
        if data.pop("block"):
            self.see(by[-1]["extension"], "block", dict(data, block=True))
        else:
            self.see(who[-1], "allow", data)

    # -- what it is asked --

    def send(self, kind, wait=None, detached=False, **fields):
        with self.lock:
            self.next_id += 1
            n = self.next_id
            if wait:
                self.waits[n] = wait
                if detached:
                    self.detached.add(n)
                else:
                    self.busy = n
        # Events and intercepts have members of any name.
        line = dict(fields, id=n, type=kind)
        try:
            self.p.stdin.write(json.dumps(line).encode() + b"\n")
        except BrokenPipeError:
            pass
        return n

    def ask(self, kind, **fields):
        """The data of a reply, at once."""
        n = self.send(kind, **fields)
        with self.lock:
            self.lock.wait_for(lambda: n in self.replies or self.over, 10)
            f = self.replies.pop(n, {"success": False})
        return f["data"] if f["success"] else {}

    def settle(self):
        end = time.time() + 15
        while not self.settled and time.time() < end and not self.over:
            self.settled = self.ask("state").get("settled", False)
            if not self.settled:
                time.sleep(0.02)

    def owner(self, kind, name):
        """Whose it is: a reply does not say."""
        if (kind, name) not in self.owners:
            for t in self.ask("list_tools").get("tools", []):
                self.owners["tool", t["name"]] = t["extension"]
            for c in self.ask("list_commands").get("commands", []):
                if not c["shadowed"]:
                    self.owners["command", c["name"].lower()] = c["extension"]
        return self.owners.get((kind, name), "-")

    def do(self, line):
        self.settle()
        with self.lock:
            self.lock.wait_for(lambda: self.busy is None or self.over, 20)
        detached = line.endswith(" &")
        if detached:
            line = line[:-2]
        elif line.endswith("\\&"):
            line = line[:-2] + "&"
        if line[0] == "/":
            line = "cmd " + line[1:]
        verb, _, rest = line.partition(" ")
        name, rest = word(rest)
        getattr(self, "do_" + verb)(name, rest, detached)

    def do_call(self, name, rest, detached):
        self.send("tool_call", ("call", name, self.owner("tool", name)),
                  detached, name=name, args=json.loads(rest or "{}"))

    def do_cmd(self, name, rest, detached):
        self.send("invoke", ("cmd", name, self.owner("command",
                                                     name.lower())),
                  detached, name=name, args=rest.strip())

    def do_intercept(self, name, rest, detached):
        self.send("intercept", ("intercept", name, "-"), detached,
                  **dict(json.loads(rest or "{}"), event=name))

    def do_event(self, name, rest, detached):
        self.send("event", **dict(json.loads(rest or "{}"), event=name))

    def do_idle(self, name, rest, detached):
        self.send("event", event="turn_end", stop="end")

    def do_key(self, name, rest, detached):
        key, _, text = rest.partition(" ")
        self.send("panel_key", ("key", name, "-"), panel_id=name, key=key,
                  **({"text": text} if text else {}))

    def do_panel_close(self, name, rest, detached):
        self.send("panel_close", ("panel_close", name, "-"), panel_id=name)

    def do_resize(self, name, rest, detached):
        columns, rows = rest.split()
        self.send("panel_resize", ("resize", name, "-"), panel_id=name,
                  columns=int(columns), rows=int(rows))

    def do_reload(self, name, rest, detached):
        self.send("reload", ("reload", name, name or "-"), detached,
                  **({"name": name} if name else {}))
        self.owners.clear()

    def do_kill(self, name, rest, detached):
        for row in self.ask("list_extensions")["extensions"]:
            if row["name"] == name and row["pid"]:
                os.kill(row["pid"], int(rest))

    def do_tools(self, name, rest, detached):
        self.send("list_tools", ("tools", "", "-"))

    def do_commands(self, name, rest, detached):
        self.send("list_commands", ("commands", "", "-"))

    def do_exts(self, name, rest, detached):
        self.send("list_extensions", ("exts", "", "-"))

    # -- the driver --

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
        """As the console does: what runs is waited for."""
        self.settle()
        with self.lock:
            self.lock.wait_for(lambda: self.over or (
                self.busy is None and not self.detached), 20)
        self.ending = True
        self.send("shutdown")
        self.p.stdin.close()
        try:
            self.p.wait(10)
            self.reader.join(5)
        except subprocess.TimeoutExpired:
            return "does not end"
        finally:
            self.err.seek(0)
            self.said = self.err.read().decode("utf-8", "backslashreplace")
            self.err.close()
        return suite.bad_end(self.p.returncode, (0,), self.said)

    def log(self, w, ext):
        return w.log(ext)

    def words(self):
        return getattr(self, "said", "")


def word(text):
    """A word or a JSON string, and the rest behind one blank."""
    text = text.lstrip()
    if text[:1] == '"':
        name, at = json.JSONDecoder().raw_decode(text)
        return name, text[at:].removeprefix(" ")
    name, _, rest = text.partition(" ")
    return name, rest


if __name__ == "__main__":
    suite.main(Host, zbtest.can_sandbox())
