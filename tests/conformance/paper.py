#!/usr/bin/env python3
"""A host on paper: the least that a host must do for the rows named below, with
no sandbox and no care. Done right it passes them; then it makes, one at a time,
the mistakes that hosts make, and the rows must see each. So a row that passes
says something of the host it was played against."""
import concurrent.futures
import copy
import json
import os
import queue
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import suite
import talk
import zbtest

BUILTIN = ("exit", "model", "help")
LIMITS = {"tool": 60, "command": 30, "intercept": 5, "hello": 30}


class Ext:
    def __init__(self, name, dir):
        self.name, self.dir = name, dir
        self.state = "starting"
        self.commands, self.tools, self.deferred = [], [], set()
        self.events, self.cuts = [], []
        self.quiet = self.late = float("inf")


class Call:
    def __init__(self, ext, kind, name, until, then):
        self.ext, self.kind, self.name = ext, kind, name
        self.until, self.then, self.over = until, then, False


class Paper:
    name = "paper"

    def __init__(self, mistake=""):
        self.mistake = mistake

    def lacks(self, row):
        return ""

    def wrong(self, mistake):
        if self.mistake != mistake:
            return False
        self.made = True
        return True

    def start(self, w, row, dirs):
        self.w, self.made = w, False
        self.lines, self.inbox = queue.Queue(), queue.Queue()
        self.calls, self.n, self.todo, self.busy = {}, 0, [], 0
        self.detached, self.begun = 0, False
        self.panels, self.order, self.closing = {}, [], False
        limits = row.merged_scope()["limits"]
        self.limits = {k: limits.get(k + "_seconds", v)
                       for k, v in LIMITS.items()}
        os.makedirs(w.zot_home + "/logs", exist_ok=True)
        self.exts = [Ext(json.load(open(d + "/extension.json"))["name"], d)
                     for d in dirs]
        for e in self.exts:
            e.log = open(w.zot_home + "/logs/ext-%s.log" % e.name, "ab")
            e.p = w.spawn([e.dir + "/player.py"], cwd=e.dir, bufsize=0,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=e.log)
            e.late = time.time() + self.limits["hello"]
            e.reader = threading.Thread(target=self.read, args=(e,),
                                        daemon=True)
            e.reader.start()
        self.thread = threading.Thread(target=self.loop, daemon=True)
        self.thread.start()

    def read(self, e):
        for line in e.p.stdout:
            self.inbox.put(("line", e, line))
        self.inbox.put(("end", e, e.p.wait()))

    # -- one thread does everything --

    def loop(self):
        try:
            self.turn()
        except Exception as e:
            self.see("-", "the host on paper is broken", {"why": repr(e)})

    def turn(self):
        while True:
            try:
                kind, e, x = self.inbox.get(timeout=0.02)
            except queue.Empty:
                kind = ""
            if kind == "line" and e.state != "gone":
                self.line(e, x)
            elif kind == "end":
                self.ended(e, x)
            elif kind == "do":
                self.todo.append(x)
            elif kind == "stop":
                return
            self.clock(time.time())
            if self.settled() and not self.begun:
                self.begun = True
                self.do_event("session_start", "{}", lambda: None)
            while self.todo and not self.busy and self.settled():
                self.verb(self.todo.pop(0))

    def settled(self):
        return all(e.state in ("ready", "gone") for e in self.exts)

    def clock(self, now):
        for e in self.exts:
            if e.state == "registering" and (
                    now > e.late or (now > e.quiet and not self.wrong(
                        "who never says ready is never ready"))):
                self.note(e, "ready without saying so")
                e.state = "ready"
            if e.state == "starting" and now > e.late:
                self.refuse(e, "no hello within %s s" % self.limits["hello"])
        for call in list(self.calls.values()):
            if not call.over and now > call.until:
                self.finish(call, None, "%s timed out" % call.name)

    def note(self, e, text):
        e.log.write(("[host] %s\n" % text).encode())
        e.log.flush()

    def see(self, ext, kind, data):
        self.lines.put((ext, kind, data))

    def send(self, e, **frame):
        try:
            e.p.stdin.write(json.dumps(frame).encode() + b"\n")
        except (BrokenPipeError, ValueError):
            pass

    def refuse(self, e, why):
        e.state = "gone"
        self.see(e.name, "load_error", {"error": why})
        e.p.kill()

    def ended(self, e, status):
        if e.state != "gone" and not self.closing and not self.wrong(
                "the death of one is not told"):
            how = "signal" if status < 0 else "status"
            why = "%s ended with %d (ext-%s.log)" % (e.name, abs(status),
                                                     e.name)
            if e.state == "starting":
                self.see(e.name, "load_error", {"error": why})
            else:
                self.see(e.name, "exit", {how: abs(status), "error": why})
        e.state = "gone"
        self.panels = {k: v for k, v in self.panels.items() if v is not e}
        for call in list(self.calls.values()):
            if call.ext is e and not call.over:
                self.finish(call, None, "%s ended with %d" % (e.name,
                                                              abs(status)))

    # -- frames --

    def line(self, e, line):
        try:
            f = json.loads(line.decode("utf-8"))
            if len(line) > 4 << 20 or not isinstance(f, dict):
                raise ValueError
        except ValueError:
            if e.state == "starting":
                self.refuse(e, "no hello")
            elif self.wrong("a bad line ends the reading"):
                e.state = "gone"
            return
        kind = f.get("type")
        if e.state == "starting":
            if kind != "hello":
                self.refuse(e, "no hello")
                return
            if self.wrong("an event comes before hello_ack"):
                self.send(e, type="event", event="session_start")
            self.send(e, type="hello_ack", protocol_version=1,
                      zot_version="0", provider="p", model="m",
                      cwd=self.w.project, extension_dir=e.dir,
                      data_dir=e.dir)
            e.state = "registering"
            e.late = time.time() + 3
        e.quiet = time.time() + 0.25
        frame = getattr(self, "on_" + str(kind), None)
        if frame:
            frame(e, f)

    def on_ready(self, e, f):
        e.state = "ready"

    def on_register_command(self, e, f):
        name = f["name"]
        if name.lower() in BUILTIN:
            self.note(e, "command %s is the host's own" % name)
        e.commands.append(name)
        self.arrived(e)

    def on_register_tool(self, e, f):
        e.tools.append(f["name"])
        if f.get("deferred"):
            e.deferred.add(f["name"])
        self.arrived(e)

    def arrived(self, e):
        if e not in self.order:
            self.order.append(e)
        mine = {n.lower() for n in e.commands + e.tools}
        for o in self.exts:
            for n in o.commands + o.tools if o is not e else ():
                if n.lower() in mine:
                    later = max(o, e, key=self.exts.index)
                    for spelt in later.commands + later.tools:
                        self.note(later, "shadowed: " + spelt)

    def on_subscribe(self, e, f):
        e.events, e.cuts = f.get("events", []), f.get("intercept", [])

    def answer(self, e, f, kind):
        call = self.calls.get(str(f.get("id")))
        if (call is None or call.over) and self.wrong(
                "a late answer goes to the next call"):
            call = ([c for c in self.calls.values() if c.ext is e and
                     not c.over] + [None])[0]
        if call and call.over and not self.wrong("the second answer counts"):
            call = None
        if not call or call.kind != kind:
            return
        if call.ext is not e and not self.wrong("anybody may answer"):
            return
        rest = {k: v for k, v in f.items() if k not in ("type", "id")}
        self.finish(call, rest, "")

    def on_tool_result(self, e, f):
        for n in f.get("activate_tools", []):
            e.deferred.discard(n)
        self.answer(e, f, "tool")

    def on_command_response(self, e, f):
        if "open_panel" in f:
            self.opened(e, f["open_panel"]["id"])
        self.answer(e, f, "command")

    def on_event_intercept_response(self, e, f):
        self.answer(e, f, "intercept")

    def on_notify(self, e, f):
        if isinstance(f.get("message"), str):
            self.see(e.name, "notify", {k: f[k] for k in (
                "level", "message") if k in f})

    def on_submit(self, e, f):
        text = f.get("text")
        if isinstance(text, str) and (text.strip() or self.wrong(
                "a blank prompt is submitted")):
            self.see(e.name, "submit", {"text": text})

    def on_open_panel(self, e, f):
        self.opened(e, f["panel"]["id"])
        self.see(e.name, "open_panel", {"panel": f["panel"]})

    def opened(self, e, name):
        for old, owner in self.panels.items():
            if owner is not e:
                if not self.wrong("whose panel gives way is not told"):
                    self.send(owner, type="panel_close", panel_id=old)
                self.see(owner.name, "panel_close", {"panel_id": old})
        if name not in self.panels or not self.wrong(
                "keys go to the first one of an id"):
            self.panels = {name: e}

    def on_panel_render(self, e, f):
        if self.panels.get(f["panel_id"]) is e or self.wrong(
                "anybody draws in any panel"):
            self.see(e.name, "panel_render", {
                k: v for k, v in f.items() if k not in ("type", "id")})

    def on_panel_close(self, e, f):
        if self.panels.get(f["panel_id"]) is e or self.wrong(
                "anybody closes any panel"):
            self.panels.pop(f["panel_id"], None)
            self.see(e.name, "panel_close", {"panel_id": f["panel_id"]})

    # -- calls --

    def ask(self, e, kind, what, then, **frame):
        self.n += 1
        n = "1" if self.wrong("ids are used again") else str(self.n)
        self.calls[n] = Call(e, kind, what,
                             time.time() + self.limits[kind], then)
        self.send(e, id=n, **frame)

    def finish(self, call, data, why):
        call.over = True
        call.then(call.ext, data, why)

    def find(self, name, kind):
        exts = self.order if self.wrong(
            "a name belongs to whoever comes first") else self.exts
        for e in exts:
            for n in e.tools if kind == "tool" else e.commands:
                if e.state != "gone" and (n == name or (
                        kind == "command" and n.lower() == name.lower() and
                        not self.wrong("case counts in commands"))):
                    return e, n
        return None, name

    def verb(self, line):
        detached = line.endswith(" &")
        line = line[:-2] if detached else \
            line[:-2] + "&" if line.endswith("\\&") else line
        verb, _, rest = ("cmd " + line[1:] if line[0] == "/" else
                         line).partition(" ")
        self.busy += not detached
        self.detached += detached

        def done():
            if detached:
                self.detached -= 1
            else:
                self.busy -= 1
        name, _, rest = rest.lstrip().partition(" ")
        getattr(self, "do_" + verb)(name, rest.strip(), done)

    def do_call(self, name, rest, done):
        e, _ = self.find(name, "tool")
        hidden = e and name in e.deferred and not self.wrong(
            "what is deferred is there at once")
        if not e or hidden or name == "bash":
            self.see("-", "error", {"error": "no tool " + name})
            return done()

        def then(e, data, why):
            self.see(e.name, *(("result", data) if data is not None else
                               ("error", {"error": why})))
            done()
        self.ask(e, "tool", name, then, type="tool_call", name=name,
                 args=json.loads(rest or "{}"))

    def do_cmd(self, name, rest, done):
        if name.lower() in BUILTIN:
            self.see("-", "builtin", {"error": name})
            return done()
        e, known = self.find(name, "command")
        if not e:
            self.see("-", "error", {"error": "no command " + name})
            return done()

        def then(e, data, why):
            self.see(e.name, *((data.get("action", "noop"), data)
                               if data is not None else
                               ("error", {"error": why})))
            done()
        if self.wrong("a command is called as the user spelt it"):
            known = name
        if self.wrong("only the first word is sent"):
            rest = rest.split(" ")[0]
        self.ask(e, "command", "/" + name, then, type="command_invoked",
                 name=known, args=rest)

    def do_commands(self, name, rest, done):
        for e in self.exts:
            for n in e.commands:
                self.see(e.name, "command", {
                    "name": n, "description": "command " + n,
                    "shadowed": self.find(n, "command")[0] is not e})
        done()

    def do_event(self, name, rest, done):
        for e in self.exts:
            if e.state == "ready" and (name in e.events or (
                    e.events and self.wrong("events go to everybody"))):
                self.send(e, type="event", event=name, **json.loads(rest))
        done()

    def do_key(self, name, rest, done):
        key, _, text = rest.partition(" ")
        if name in self.panels:
            self.send(self.panels[name], type="panel_key", panel_id=name,
                      key=key, **({"text": text} if text else {}))
        else:
            self.see("-", "error", {"error": "no panel " + name})
        done()

    def do_panel_close(self, name, rest, done):
        self.send(self.panels.pop(name), type="panel_close", panel_id=name)
        done()

    def do_intercept(self, event, rest, done):
        fields = json.loads(rest)
        original = copy.deepcopy(fields)
        key, said = {"tool_call": ("tool_args", "modified_args"),
                     "assistant_message": ("text", "replace_text")}.get(
                         event, ("", ""))
        waiting = [e for e in self.exts if event in e.cuts and
                   e.state == "ready"]
        found = {"by": [], "who": "-", "reason": None, "block": False}

        def outcome(e, word):
            found["by"].append({"extension": e.name, "outcome": word})

        def step(e, data, why):
            data = data or {}
            if why:
                outcome(e, "timeout" if "timed" in why else "gone")
            elif data.get("block") is True and not self.wrong(
                    "a block is taken for a note"):
                outcome(e, "block")
                found.update(block=True, reason=data.get("reason"),
                             who=e.name)
                if not self.wrong("those behind a block are asked too"):
                    return finish()
            elif said and data.get(said):
                fields[key] = data[said]
                outcome(e, "rewrite")
                found["who"] = e.name
            else:
                outcome(e, "allow")
                if self.wrong("an empty answer takes the rewrite away"):
                    fields.update(copy.deepcopy(original))
            following()

        def following():
            if not waiting:
                return finish()
            e = waiting.pop(0)
            shown = original if self.wrong("all are shown the original") \
                else fields
            self.ask(e, "intercept", event, step, type="event_intercept",
                     event=event, **shown)

        def finish():
            data = {"by": found["by"]}
            if found["reason"]:
                data["reason"] = found["reason"]
            if found["block"]:
                self.see(found["who"], "block", dict(data, block=True))
            else:
                if fields != original:
                    data[said] = fields[key]
                who = found["who"] if fields != original else (
                    [o["extension"] for o in found["by"]] or ["-"])[-1]
                self.see(who, "allow", data)
            done()
        following()

    # -- the driver --

    def do(self, line):
        self.inbox.put(("do", None, line))

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
        end = time.time() + (3 if self.mistake else 12)
        while time.time() < end and self.thread.is_alive() and (
                not self.settled() or self.todo or self.busy or
                self.detached or not self.inbox.empty()):
            time.sleep(0.02)
        self.closing = True
        for e in self.exts:
            if e.state != "gone" and not self.wrong(
                    "stdin is closed without shutdown"):
                self.send(e, type="shutdown")
            e.p.stdin.close()
        end = time.time() + 2
        for e in self.exts:
            try:
                e.p.wait(max(0.01, end - time.time()))
            except subprocess.TimeoutExpired:
                e.p.kill()
                e.p.wait()
            e.reader.join(5)
        self.inbox.put(("stop", None, None))
        self.thread.join(5)
        self.lines.put(None)
        for e in self.exts:
            e.log.close()
        return ""

    def log(self, w, ext):
        return w.log(ext)

    def words(self):
        return ""


MISTAKES = {
    "a late answer goes to the next call": ("tools/late", "tools/wrong-id",
                                            "commands/timeout"),
    "the second answer counts": ("tools/answered-twice",),
    "anybody may answer": ("tools/foreign-id",),
    "ids are used again": ("tools/ids-differ", "lines/pipelined"),
    "a name belongs to whoever comes first": ("tools/same-tool",
                                              "commands/same-name"),
    "case counts in commands": ("commands/case",),
    "a command is called as the user spelt it": ("commands/case",),
    "only the first word is sent": ("commands/arguments",),
    "what is deferred is there at once": ("tools/deferred",),
    "all are shown the original": ("intercept/chain-of-three",
                                   "intercept/message-chain"),
    "an empty answer takes the rewrite away": ("intercept/chain-of-three",),
    "those behind a block are asked too": ("intercept/chain-block",),
    "a block is taken for a note": ("intercept/block",
                                    "intercept/block-and-rewrite"),
    "an event comes before hello_ack": ("handshake/hello-ack-first",
                                        "handshake/early-registration"),
    "who never says ready is never ready": ("handshake/auto-ready",),
    "a bad line ends the reading": ("lines/malformed", "lines/not-utf8"),
    "events go to everybody": ("events/subscribed",),
    "a blank prompt is submitted": ("user/submit",),
    "anybody draws in any panel": ("panels/foreign", "panels/never-opened",
                                   "panels/closed-by-user"),
    "anybody closes any panel": ("panels/foreign",),
    "whose panel gives way is not told": ("panels/one-at-a-time",),
    "keys go to the first one of an id": ("panels/one-at-a-time",),
    "the death of one is not told": ("ends/crash-status",
                                     "ends/signal-before-hello"),
    "stdin is closed without shutdown": ("ends/shutdown",
                                         "ends/shutdown-mute"),
}


def main():
    tap = zbtest.tap
    rows = {r.file + "/" + r.name: r for r in talk.all_rows()}
    todo = [("", n) for n in sorted({n for v in MISTAKES.values()
                                     for n in v})]
    todo += [(m, n) for m, v in MISTAKES.items() for n in v]
    todo = [(m, n) for m, n in todo if not sys.argv[1:] or any(
        a in m + n for a in sys.argv[1:])]
    with concurrent.futures.ThreadPoolExecutor(suite.WORKERS) as pool:
        hosts = [Paper(m) for m, _ in todo]
        jobs = [pool.submit(suite.run, rows[n], h, None, 10 if not h.mistake
                            else 2) for (_, n), h in zip(todo, hosts)]
        for (mistake, n), host, job in zip(todo, hosts, jobs):
            wrong = job.result()
            if not mistake:
                tap.line(not wrong, n + ": done right")
                for line in "\n".join(wrong).splitlines():
                    tap.note(line)
            else:
                tap.line(wrong and host.made, "%s sees it: %s" % (n, mistake))
    print("1..%d" % tap.count, flush=True)
    sys.exit(1 if tap.failed else 0)


if __name__ == "__main__":
    main()
