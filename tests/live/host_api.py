#!/usr/bin/env python3
"""zotbox host: every request, every event, against real sandboxed extensions;
every line that it reads or writes is checked against the schema."""
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *
from zbhost import *

ECHO = '''
    hello("%s", "commands", "tools"); tool("t%s"); cmd("c%s"); ready()
    serve(tool_call=lambda f: text(f["id"], json.dumps(f["args"])),
          command_invoked=lambda f: emit(type="command_response", id=f["id"],
              action="display", display=f["name"] + "|" + f.get("args", "")))
'''


def said(r):
    """Text of a tool_call's reply."""
    d = data(r)
    return d if isinstance(d, str) else "".join(
        b.get("text", "") for b in d["content"])


def done(w, h, rc=0):
    w.equal(h.shutdown(), rc, "exit status", h.err)
    w.equal(data(h.bye), {}, "shutdown is answered when all is over")
    w.equal(h.faults, [], "every line fits the schema")


def code(r):
    return r.get("code")


@test("requests are answered", needs="sandbox")
def answered(w):
    w.mkext("e", ECHO % ("e", "", ""))
    h = Host(w, "./e", more=["--provider", "p", "--model", "m"])
    r = h.ask("hello")
    w.equal(data(r).get("protocol_version"), 1, "hello")
    w.equal(r["command"], "hello", "its command")
    rows = data(h.ask("list_extensions"))["extensions"]
    w.equal([x["name"] for x in rows], ["e"], "served from the first moment")
    w.check(rows[0]["state"] in ("starting", "registering", "ready"), "state")
    w.check(h.event("ext_ready", "e"), "ext_ready")
    rows = data(h.ask("list_extensions"))["extensions"]
    w.equal((rows[0]["state"], rows[0]["policy"], rows[0]["problem"],
             rows[0]["scope"]), ("ready", "strict", None, "path"), "its row")
    w.check(rows[0]["pid"] > 0, "its pid")
    w.equal(data(h.ask("list_commands"))["commands"],
            [{"name": "c", "description": "c", "extension": "e",
              "shadowed": False}], "commands")
    w.equal(data(h.ask("list_tools"))["tools"],
            [{"name": "t", "description": "t", "schema": {"type": "object"},
              "extension": "e", "deferred": False, "active": True}], "tools")
    w.equal(said(h.ask("tool_call", name="t", args={"a": 1})), '{"a": 1}',
            "tool_call")
    w.equal(said(h.ask("tool_call", name="t")), "{}", "without arguments")
    w.equal(data(h.ask("invoke", name="/C", args="  x ")),
            {"action": "display", "display": "c|x"},
            "invoke: any case, canonical spelling, trimmed")
    w.equal(h.event("ext_display")["text"], "c|x", "and the event of it")
    w.equal(data(h.ask("ping")), {}, "ping")
    w.equal(data(h.ask("state")), {"idle": True, "queued": 0, "settled": True,
                                   "panel": None}, "state")
    done(w, h)


@test("what is no request", needs="sandbox")
def usage(w):
    w.mkext("e", ECHO % ("e", "", ""))
    h = Host(w, "./e")
    rows = [
        (b'nonsense', "null", "malformed JSON at byte 1"),
        (b'[]', "null", "a request is a JSON object"),
        (b'{}', "null", 'needs a "type"'),
        (b'{"id":7}', "7", 'needs a "type"'),
        (b'{"id":7,"type":7}', "7", 'needs a "type"'),
        (b'{"id":"x","type":"pin"}', '"x"', 'did you mean "ping"?'),
        (b'{"id":1e0,"type":"ping","x":1}', "1.0", 'no field "x"'),
        (b'{"id":{},"type":"ping"}', "null", "id must be a string or"),
        (b'{"id":[1],"type":"ping"}', "null", "id must be a string or"),
        (b'{"id":2,"id":3,"type":"ping"}', "null", "duplicate key"),
        (b'{"id":2,"Id":3,"type":"ping"}', "null", "duplicate key"),
        (b'{"id":2,"type":"invoke"}', "2", 'invoke needs "name"'),
        (b'{"id":2,"type":"invoke","name":""}', "2", 'needs "name"'),
        (b'{"id":2,"type":"invoke","name":5}', "2", "must be a string"),
        (b'{"id":2,"type":"tool_call","name":"t","args":[]}', "2",
         "args must be an object"),
        (b'{"id":2,"type":"tool_call","name":"t","timeout_ms":0}', "2",
         "timeout_ms must be a whole number"),
        (b'{"id":2,"type":"tool_call","name":"t","timout_ms":9}', "2",
         'did you mean "timeout_ms"?'),
        (b'{"id":2,"type":"hello","builtin_tools":["x",1]}', "2",
         "builtin_tools must be a list"),
        (b'{"id":2,"type":"list_tools","format":"x"}', "2",
         "format must be zot"),
        (b'{"id":2,"type":"denials","since":"soon"}', "2", "since must be"),
        (b'{"id":"' + b'x' * 300 + b'","type":"ping"}', "null",
         "id is longer"),
        (b'\xff{}', "null", "malformed JSON"),
    ]
    for line, id, why in rows:
        h.raw(line + b"\n")
        r = h.reply(json.loads(id))
        w.equal((code(r), r.get("success")), ("usage", False),
                line[:60].decode("latin-1"), r)
        w.contains(r["error"], why, "why")
    h.raw(b'\n\r\n{"type":"ping"}\r\n')
    r = h.reply(None)
    w.equal(r["success"], True, "blank lines say nothing; no id is null")
    h.raw(b'{"id":"\\u00e9 \\"","type":"ping"}\n')
    w.equal(h.reply('\u00e9 "')["success"], True, "a string as id")
    h.raw(b'{"id":"long","type":"ping","x":"' + b"y" * (33 << 20) + b'"}\n')
    r = h.reply(None)
    w.equal(code(r), "usage", "an over-long line", r)
    w.equal(data(h.ask("ping")), {}, "costs only itself")
    h.faults = [f for f in h.faults if not f.startswith("sent")]
    done(w, h)


@test("what is not there", needs="sandbox")
def unknown(w):
    w.mkext("e", ECHO % ("e", "", ""))
    h = Host(w, "./e")
    h.ready()
    for kind, fields, want in (
            ("tool_call", {"name": "none"}, "unknown"),
            ("invoke", {"name": "none"}, "unknown"),
            ("invoke", {"name": "help"}, "unsupported"),
            ("panel_key", {"panel_id": "p", "key": "up"}, "unknown"),
            ("panel_close", {"panel_id": "p"}, "unknown"),
            ("panel_resize", {"panel_id": "p"}, "unknown"),
            ("reload", {"name": "none"}, "unknown"),
            ("denials", {"name": "none"}, "unknown")):
        r = h.ask(kind, **fields)
        w.equal(code(r), want, kind, r)
    done(w, h)


@test("requests before all are there wait for them", needs="sandbox")
def early(w):
    w.mkext("slow", '''
        time.sleep(3); hello("slow", "events"); tool("s")
        emit(type="subscribe", events=["turn_start"], intercept=["tool_call"])
        ready()
        serve(event_intercept=lambda f: emit(type="event_intercept_response",
                  id=f["id"], block=True, reason="no"),
              tool_call=lambda f: text(f["id"], "here"))
    ''')
    w.mkext("e", ECHO % ("e", "", ""))
    w.scope("g", {"extends": "strict", "protocol": {
        "events": ["turn_start"], "intercept": {"tool_call": ["block"]}}})
    h = Host(w, "./slow", "./e", policy=w.path("g.scope.json"))
    t = h.send("tool_call", name="s")
    i = h.send("intercept", event="tool_call", tool_name="bash", tool_args={})
    v = h.send("event", event="turn_start", step=1)
    u = h.send("tool_call", name="none")
    w.check(h.event("ext_ready", "e"), "the quick one is ready")
    w.equal(said(h.ask("tool_call", name="t")), "{}", "and works")
    w.equal(h.events("ext_ready", "slow"), [], "before the slow one is there")
    w.equal(said(h.reply(t)), "here", "a tool nobody had yet")
    w.equal(data(h.reply(i)), {"block": True, "reason": "no", "by": [
        {"extension": "slow", "outcome": "block"}]}, "a slow guard is not missed")
    w.equal(data(h.reply(v)), {"delivered": ["slow"]}, "nor a subscriber")
    w.equal(code(h.reply(u)), "unknown", "what nobody has after all")
    done(w, h)


@test("token", needs="sandbox")
def token(w):
    w.mkext("e", '''
        hello("e", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: text(f["id"], repr(dict(os.environ))))
    ''')
    env = {"ZOTBOX_HOST_TOKEN": "s3cret"}
    for first in (b'{"id":1,"type":"ping"}\n', b'{"id":1,"type":"hello"}\n',
                  b'{"id":1,"type":"hello","token":"s3creT"}\n',
                  b'{"id":1,"type":"ping","token":"s3cret"}\n', b'x\n'):
        h = Host(w, "./e", env=env)
        h.raw(first + b'{"id":2,"type":"hello","token":"s3cret"}\n')
        h.finish()
        w.equal(h.rc, 3, "exit after %r" % first, h.err)
        w.equal([len(h.seen), sum(map(len, h.replies.values()))], [0, 1],
                "one failure and nothing else")
    w.check(not os.path.exists(os.path.join(w.zot_home, "logs")),
            "nothing was started")
    h = Host(w, "./e", env=env)
    w.equal(data(h.ask("hello", token="s3cret"))["protocol_version"], 1,
            "the right one")
    w.check("s3cret" not in said(h.ask("tool_call", name="t")),
            "it is in no extension's environment")
    with open("/proc/%d/environ" % h.p.pid, "rb") as f:
        w.check(b"s3cret" not in f.read(), "nor in ours any more")
    done(w, h)


@test("notes and their one shot", needs="sandbox")
def notes(w):
    w.mkext("n", '''
        hello("n", "commands"); cmd("c"); ready()
        def c(f):
            if f.get("args") == "clear": emit(type="clear_notes")
            else: note("hi", "warning")
            emit(type="command_response", id=f["id"], action="noop")
        serve(command_invoked=c)
    ''')
    h = Host(w, "./n")
    w.equal(data(h.ask("invoke", name="c")), {"action": "noop"}, "noop")
    n = h.event("ext_notify", "n")
    w.equal((n["level"], n["message"]), ("warning", "hi"), "ext_notify")
    h.ask("invoke", name="c", args="clear")
    w.check(h.event("ext_clear_notes", "n"), "clear_notes")
    h.ask("event", event="turn_start", step=1)
    h.ask("event", event="turn_end", stop="end")
    w.equal(len(h.events("ext_clear_notes")), 1, "nothing left to clear")
    h.ask("invoke", name="c")
    h.ask("event", event="turn_start", step=1)
    w.check(h.event("ext_clear_notes", "n"), "the user's next prompt")
    h.ask("event", event="turn_end", stop="tool_use")
    h.ask("invoke", name="c")
    h.ask("event", event="turn_start", step=2)
    h.ask("ping")
    w.equal(len(h.events("ext_clear_notes")), 2, "not within a turn")
    done(w, h)


@test("submit: idle, queued, blank", needs="sandbox")
def submit(w):
    w.mkext("s", '''
        hello("s", "commands"); cmd("c"); ready()
        def c(f):
            for t in json.loads(f["args"]): emit(type="submit", text=t)
            emit(type="command_response", id=f["id"], action="noop")
        serve(command_invoked=c)
    ''')
    w.scope("g", {"extends": "strict", "protocol": {"submit": True}})
    h = Host(w, "./s", policy=w.path("g.scope.json"))
    h.ask("invoke", name="c", args='["one", "two", " \\n\\t", "three"]')
    e = h.event("ext_submit", "s")
    w.equal((e["text"], e["queued"], e["slash"]), ("one", False, False),
            "idle: at once")
    w.equal(data(h.ask("state")), {"idle": False, "queued": 2, "settled": True,
                                   "panel": None}, "two wait, the blank is gone")
    h.ask("event", event="turn_start", step=1)
    h.ask("event", event="turn_end", stop="tool_use")
    w.equal(len(h.events("ext_submit")), 1, "the turn goes on after a tool")
    h.ask("event", event="turn_end", stop="end")
    e = h.event("ext_submit", "s")
    w.equal((e["text"], e["queued"]), ("two", True), "then the next")
    h.ask("event", event="turn_end", stop="end")
    w.equal(h.event("ext_submit")["text"], "three", "and the next")
    h.ask("event", event="turn_end", stop="aborted")
    w.equal(data(h.ask("state"))["idle"], True, "idle")
    h.ask("invoke", name="c", args=json.dumps(["x"] * 100))
    w.equal(data(h.ask("state"))["queued"], 64, "a bounded queue")
    w.check(h.event("ext_log", "s"), "what found no room is said")
    done(w, h)


@test("slash commands of the agent, and frames of newer ones", needs="sandbox")
def newer(w):
    w.mkext("s", '''
        hello("s", "commands", "tools", "call_tool", "tool_cancel")
        cmd("c"); emit(type="register_tool", name="t", description="d",
            schema={"type": "object"}, output_schema={"type": "object"},
            namespace="n", exposure="direct", interactive=True)
        emit(type="subscribe", events=["session_end", "nothing_yet"],
             intercept=["before_agent_start"])
        ready()
        def c(f):
            if f["args"] == "prompt":
                emit(type="command_response", id=f["id"], action="tool_prompt",
                     prompt="p", tool_name="bash", tool_args={"command": "id"})
                return
            for t in ("/compact", "/unjail", " /compact now"):
                emit(type="submit_slash", text=t)
            emit(type="call_tool", id="k", name="bash", args={"command": "id"})
            emit(type="call_tool_cancel", id="k")
            emit(type="status", key="k", text="t")
            emit(type="command_response", id=f["id"], action="noop")
        def t(f):
            emit(type="tool_result", id=f["id"], structured_content={"a": 1},
                 content=[{"type": "text", "text": "x", "format": "markdown"}])
        serve(command_invoked=c, tool_call=t, tool_result=lambda f: note(
            json.dumps(f)))
    ''')
    w.scope("g", {"extends": "strict", "protocol": {"slash": ["compact"],
                                                    "events": ["nothing_yet"]}})
    h = Host(w, "./s", policy=w.path("g.scope.json"), more=["--yes-i-mean-it"])
    w.equal(data(h.ask("invoke", name="c", args="x")), {"action": "noop"},
            "nothing of it breaks anything", h.seen)
    w.equal([(e["text"], e["slash"]) for e in h.events("ext_submit")],
            [("/compact", True), (" /compact now", True)],
            "what is granted, at once", h.seen)
    h.wait_for(lambda: [e for e in h.events("ext_denied")
                        if e["denial"]["op"] == "proto.call_tool"] or None, 5)
    ops = sorted({e["denial"]["op"] for e in h.events("ext_denied")})
    w.check("proto.slash" in ops and "proto.call_tool" in ops,
            "what is not is refused and said", ops)
    n = h.event("ext_notify", "s", 3)
    w.check(n and json.loads(n["message"]).get("is_error"),
            "a call_tool gets an answer", n)
    r = data(h.ask("tool_call", name="t"))
    w.equal(r["content"][0]["text"], "x", "a result of the newer kind", r)
    r = data(h.ask("invoke", name="c", args="prompt"))
    w.check(isinstance(r, dict) and "tool_name" not in r,
            "tool_prompt runs nothing", r)
    w.equal(data(h.ask("event", event="nothing_yet", sequence=1))["delivered"],
            ["s"], "an event nobody knows yet", h.seen)
    w.equal(data(h.ask("intercept", event="before_agent_start",
                       system_prompt="p"))["block"], False, "an intercept too")
    done(w, h)


@test("tool_prompt by grant", needs="sandbox")
def tool_prompt(w):
    w.mkext("s", '''
        hello("s", "commands"); cmd("c"); ready()
        serve(command_invoked=lambda f: emit(type="command_response",
              id=f["id"], action="tool_prompt", **json.loads(f["args"])))
    ''')
    w.scope("g", {"extends": "strict", "protocol": {"call_tool": ["fetch"]}})
    h = Host(w, "./s", policy=w.path("g.scope.json"))
    ask = {"tool_name": "fetch", "tool_args": {"url": "u"}, "prompt": "sum up"}
    r = data(h.ask("invoke", name="c", args=json.dumps(ask)))
    w.equal(r, dict(ask, action="tool_prompt"), "the reply")
    e = h.event("ext_tool_prompt", "s")
    w.equal(e and (e["name"], e["args"], e["text"]),
            ("fetch", {"url": "u"}, "sum up"), "the event", h.seen)
    h.ask("invoke", name="c", args=json.dumps({"tool_name": "fetch"}))
    e = h.event("ext_tool_prompt", "s")
    w.equal(sorted(e or {}), ["extension", "name", "type"], "with no more")
    h.ask("invoke", name="c", args=json.dumps(dict(ask, tool_name="bash")))
    w.equal(h.event("ext_denied", "s")["denial"]["op"], "proto.call_tool",
            "another tool")
    w.equal(len(h.events("ext_tool_prompt")), 2, "is not asked for")
    done(w, h)


@test("a tool whose time is up is cancelled", needs="sandbox")
def cancelled(w):
    body = '''
        hello("%s", %s); tool("t%s"); ready()
        serve(tool_call=lambda f: note("call " + f["id"]),
              tool_cancel=lambda f: note("cancel " + f["id"]))
    '''
    w.mkext("y", body % ("y", '"tools", "tool_cancel"', "y"))
    w.mkext("n", body % ("n", '"tools"', "n"))
    h = Host(w, "./y", "./n")
    for x in "yn":
        r = h.ask("tool_call", name="t" + x, timeout_ms=500)
        w.equal(code(r), "timeout", "time is up", r)
    h.wait_for(lambda: len(h.events("ext_notify", "y")) > 1 or None, 10)
    h.pump(0.2)
    said = [e["message"] for e in h.events("ext_notify", "y")]
    w.equal(said, [said[0], said[0].replace("call", "cancel")],
            "who announced it is told which")
    w.equal(len(h.events("ext_notify", "n")), 1, "who did not is not")
    done(w, h)


@test("submit without a grant", needs="sandbox")
def no_submit(w):
    w.mkext("s", '''
        hello("s", "commands"); cmd("c"); ready()
        def c(f):
            emit(type="submit", text=" !id")
            emit(type="command_response", id=f["id"], action="noop")
        serve(command_invoked=c)
    ''')
    h = Host(w, "./s")
    h.ask("invoke", name="c")
    d = h.event("ext_denied", "s")
    w.equal(d and d["denial"]["op"], "proto.submit", "ext_denied", h.seen)
    w.equal(h.events("ext_submit"), [], "no ext_submit")
    r = data(h.ask("denials", name="s"))
    w.equal([x["op"] for x in r["denials"]], ["proto.submit"], "denials")
    w.check(r["blind_spots"] and r["complete"], "and what is not seen")
    w.equal(data(h.ask("denials", since="1h"))["denials"][0]["op"],
            "proto.submit", "since")
    done(w, h)


PANEL = '''
    hello("%s", "commands", "panels"); cmd("open%s"); tool("pop%s"); ready()
    def on(f):
        emit(type="command_response", id=f["id"], action="open_panel",
             open_panel={"id": "p", "title": "T", "lines": ["a"], "footer": "f"})
    def pop(f):
        emit(type="open_panel", panel={"id": "q", "title": "Q", "lines": []})
        text(f["id"], "ok")
    def key(f):
        k = f["key"] + ":" + f.get("text", "")
        if f["key"] == "enter": emit(type="panel_close", panel_id=f["panel_id"])
        elif f["key"] == "delete": os._exit(3)
        else: emit(type="panel_render", panel_id=f["panel_id"], title="T",
                   lines=["%s " + k], footer="f")
    serve(command_invoked=on, tool_call=pop, panel_key=key,
          panel_close=lambda f: note("closed " + f["panel_id"]),
          panel_resize=lambda f: note("size %%sx%%s" %% (f["columns"], f["rows"])))
'''


@test("panels", needs="sandbox")
def panels(w):
    w.mkext("p", PANEL % ("p", "", "", "p"))
    w.mkext("o", PANEL % ("o", "2", "2", "o"))
    w.scope("g", {"extends": "strict", "protocol": {"panels": "any"}})
    h = Host(w, "./p", "./o", policy=w.path("g.scope.json"))
    r = data(h.ask("invoke", name="open"))
    w.equal(r["open_panel"]["id"], "p", "the reply", r)
    e = h.event("ext_panel_open", "p")
    w.equal((e["panel_id"], e["title"], e["lines"], e["footer"]),
            ("p", "T", ["a"], "f"), "ext_panel_open")
    w.equal(data(h.ask("state"))["panel"], {"extension": "p", "panel_id": "p"},
            "state")
    keys = ["up", "down", "left", "right", "esc", "tab", "pageup", "pagedown",
            "home", "end", "backspace", "rune"]
    for k in keys:
        w.equal(data(h.ask("panel_key", panel_id="p", key=k,
                           **({"text": "\u00fc"} if k == "rune" else {}))),
                {}, "key " + k)
    got = [h.event("ext_panel_render", "p")["lines"][0] for k in keys]
    w.equal(got, ["p %s:%s" % (k, "\u00fc" if k == "rune" else "")
                  for k in keys], "in order")
    w.equal(data(h.ask("panel_resize", panel_id="p", columns=80, rows=24)), {},
            "panel_resize")
    w.equal(h.event("ext_notify", "p")["message"], "size 80x24", "arrives")
    h.ask("invoke", name="open2")
    w.equal([e["type"] for e in h.seen
             if e["type"] in ("ext_panel_close", "ext_panel_open")][-2:],
            ["ext_panel_close", "ext_panel_open"], "one at a time", h.seen)
    w.equal(h.event("ext_panel_close", "p")["panel_id"], "p", "the last wins")
    w.check(h.event("ext_panel_open", "o"), "another of the same id")
    w.equal(h.event("ext_notify", "p")["message"], "closed p",
            "whose gave way is told")
    w.equal(data(h.ask("state"))["panel"], {"extension": "o", "panel_id": "p"},
            "state")
    h.ask("panel_key", panel_id="p", key="x")
    w.equal(h.event("ext_panel_render")["lines"], ["o x:"], "keys are its own")
    for k, more in (("panel_key", {"key": "y"}), ("panel_close", {}),
                    ("panel_resize", {"columns": 1})):
        w.equal(code(h.ask(k, panel_id="p", extension="p", **more)),
                "unknown", k + " for another's of the same id")
    h.ask("panel_key", panel_id="p", key="z", extension="o")
    w.equal(h.event("ext_panel_render")["lines"], ["o z:"], "not touched by it")
    h.ask("panel_close", panel_id="p", extension="o")
    w.equal(h.event("ext_notify", "o")["message"], "closed p", "the user closes")
    w.equal(code(h.ask("panel_key", panel_id="p", key="up")), "unknown",
            "then it is gone")
    h.ask("invoke", name="open2")
    h.event("ext_panel_open", "o")
    h.ask("panel_key", panel_id="p", key="enter")
    w.equal(h.event("ext_panel_close", "o")["panel_id"], "p",
            "the extension closes")
    h.ask("invoke", name="open")
    h.event("ext_panel_open", "p")
    w.equal(said(h.ask("tool_call", name="pop")), "ok", "open_panel of a tool")
    w.equal(h.event("ext_panel_open", "p")["panel_id"], "q", "spontaneous")
    w.equal(h.event("ext_panel_close", "p")["panel_id"], "p",
            "it gives way to another of its own")
    h.ask("panel_key", panel_id="q", key="up")
    w.check(h.event("ext_panel_render", "p"), "it goes on")
    w.equal([e["message"] for e in h.events("ext_notify", "p")
             if e["message"].startswith("closed")], ["closed p"],
            "which it knows by itself")
    h.ask("panel_key", panel_id="q", key="delete")
    w.check(h.event("ext_panel_close", "p"), "closed when its owner dies")
    w.equal(data(h.ask("state"))["panel"], None, "state")
    e = h.event("ext_exit", "p")
    w.equal(e["status"], 3, "ext_exit")
    w.contains(e["error"], "exited with status 3", "why")
    done(w, h)


@test("command responses", needs="sandbox")
def responses(w):
    w.mkext("r", '''
        hello("r", "commands"); cmd("c"); ready()
        serve(command_invoked=lambda f: emit(type="command_response",
              id=f["id"], **json.loads(f["args"])))
    ''')
    h = Host(w, "./r")
    for response, kind in (
            ({"action": "prompt", "prompt": "P"}, "ext_prompt"),
            ({"action": "insert", "insert": "I"}, "ext_insert"),
            ({"action": "display", "display": "D"}, "ext_display"),
            ({"action": "display", "display": "D", "error": "E"},
             "ext_display"),
            ({"action": "noop"}, None),
            ({"action": "noop", "error": "E"}, None)):
        n = len(h.seen)
        r = h.ask("invoke", name="c", args=json.dumps(response))
        w.equal(data(r), response, "reply %s" % response)
        events = [e for e in h.seen[n:] if e["type"] != "ext_ready"]
        w.equal([(e["type"], e["text"]) for e in events],
                [(kind, response[response["action"]])] if kind else [],
                "events of it")
    done(w, h)


INTERCEPT = '''
    hello("%s", "events")
    emit(type="subscribe", events=["tool_call", "turn_end"],
         intercept=["tool_call", "turn_start", "assistant_message"])
    ready()
    def on(f):
        a = %s
        if a is not None:
            emit(type="event_intercept_response", id=f["id"], **a)
    serve(event_intercept=on, event=lambda f: note(json.dumps(f)))
'''
GRANT = {"extends": "strict", "limits": {"intercept_seconds": 1}, "protocol": {
    "events": ["tool_call", "turn_end"], "event_content": True, "intercept": {
        "tool_call": ["block", "modify:bash"], "turn_start": ["block"],
        "assistant_message": ["block", "replace"]}}}


@test("intercepts and events", needs="sandbox")
def intercepts(w):
    w.mkext("a", INTERCEPT % ("a", '{"modified_args": {"command": "a:" + '
                              'f["tool_args"]["command"]}} if f["event"] == '
                              '"tool_call" else {"replace_text": f["text"] + '
                              '"!"} if f["event"] == "assistant_message" '
                              'else {}'))
    w.mkext("b", INTERCEPT % ("b", '{"modified_args": {"command": "b:" + '
                              'f["tool_args"]["command"]}} if f["event"] == '
                              '"tool_call" else {"block": f.get("step") == 2, '
                              '"reason": "late"}'))
    w.mkext("c", INTERCEPT % ("c", '{"block": "rm" in f.get("tool_args", {})'
                              '.get("command", ""), "reason": "seen " + '
                              'str(f.get("tool_args"))}'))
    w.scope("g", GRANT)
    h = Host(w, "./a", "./b", "./c", policy=w.path("g.scope.json"),
             more=["--yes-i-mean-it"])
    r = data(h.ask("intercept", event="tool_call", tool_id="1",
                   tool_name="bash", tool_args={"command": "ls"}))
    w.equal(r["modified_args"], {"command": "b:a:ls"}, "rewrites chain", r)
    w.equal([x["extension"] + " " + x["outcome"] for x in r["by"]],
            ["a rewrite", "b rewrite", "c allow"], "in load order")
    r = data(h.ask("intercept", event="tool_call", tool_name="bash",
                   tool_args={"command": "rm"}))
    w.equal((r["block"], r["reason"]),
            (True, "seen {'command': 'b:a:rm'}"), "a block, after rewrites", r)
    w.check("modified_args" not in r, "nothing is rewritten then")
    r = data(h.ask("intercept", event="turn_start", step=2))
    w.equal((r["block"], len(r["by"])), (True, 2), "the first block ends it", r)
    r = data(h.ask("intercept", event="assistant_message", text="x"))
    w.equal(r.get("replace_text"), "x!", "replace_text", r)
    r = data(h.ask("intercept", event="nothing_such"))
    w.equal(r, {"block": False, "by": []}, "nobody is asked")
    for i in range(200):
        h.send("event", event="tool_call", tool_id=str(i), tool_name="t",
               tool_args={"n": i})
    r = data(h.ask("event", event="turn_end", stop="end"))
    w.equal(r, {"delivered": ["a", "b", "c"]}, "delivered", r)
    w.wait = h.wait_for(lambda: len(h.events("ext_notify", "c")) > 200 or
                        None, 10)
    got = [json.loads(e["message"]).get("tool_id") for e in
           h.events("ext_notify", "c")]
    w.equal(got, [str(i) for i in range(200)] + [None], "events in order")
    w.equal(data(h.ask("event", event="session_end")), {"delivered": []},
            "nobody wants it")
    done(w, h)


@test("an intercept without an answer", needs="sandbox")
def silence(w):
    w.mkext("a", INTERCEPT % ("a", 'None if f["event"] == "tool_call" else '
                              'os._exit(4)'))
    w.mkext("b", INTERCEPT % ("b", "{}"))
    w.scope("g", GRANT)
    h = Host(w, "./a", "./b", policy=w.path("g.scope.json"),
             more=["--yes-i-mean-it"])
    r = data(h.ask("intercept", event="tool_call", tool_name="x", tool_args={}))
    w.equal((r["block"], [x["outcome"] for x in r["by"]]),
            (False, ["timeout", "allow"]), "time is up: allowed, and said")
    w.contains(h.event("ext_log", "a")["text"], "gave no answer", "in the log")
    r = data(h.ask("intercept", event="turn_start", step=1))
    w.equal([x["outcome"] for x in r["by"]], ["gone", "allow"],
            "it ends meanwhile")
    w.equal(h.event("ext_exit", "a")["status"], 4, "ext_exit")
    done(w, h)


@test("deferred tools in four forms", needs="sandbox")
def deferred(w):
    w.mkext("d", '''
        hello("d", "tools"); tool("load", {"type": "object", "properties": {}})
        for n in "xyz": emit(type="register_tool", name=n, description=n,
                             schema={"type": "object"}, deferred=True)
        ready()
        def call(f):
            if f["name"] == "load":
                emit(type="tool_result", id=f["id"], activate_tools=
                     f["args"].get("n", ["x", "y", "nobody"]),
                     content=[{"type": "text", "text": "ok"}])
            elif f["name"] == "late": text(f["id"], "late")
            else:
                tool("late"); text(f["id"], "called " + f["name"])
        serve(tool_call=call)
    ''')
    h = Host(w, "./d")

    def names(form):
        l = data(h.ask("list_tools", format=form))
        return [t.get("name") or t["function"]["name"] for t in l["tools"]]
    h.ready()
    w.equal(names("openai"), ["load"], "at first")
    w.equal([t["active"] for t in data(h.ask("list_tools"))["tools"]],
            [True, False, False, False], "zot: all, and which are active")
    w.equal(code(h.ask("tool_call", name="x")), "unknown", "not callable")
    h.raw(b'{"id":"load-1","type":"tool_call","name":"load"}\n')
    r = h.reply("load-1")
    w.equal(data(r)["activate_tools"], ["x", "y"], "the result", r)
    w.check(h.event("ext_tools_changed", "d"), "ext_tools_changed")
    w.equal(names("anthropic"), ["load", "x", "y"], "anthropic: the whole list")
    w.equal(names("openai"), ["load", "x", "y"], "openai: the whole list")
    w.equal(data(h.ask("list_tools", format="anthropic"))["tools"][1],
            {"name": "x", "description": "x", "input_schema":
             {"type": "object"}}, "its form")
    k = data(h.ask("list_tools", format="kimi"))
    w.equal([t["function"]["name"] for t in k["tools"]], ["load"],
            "kimi: the first list stays")
    w.equal([(p["after"], [t["function"]["name"] for t in
                           p["message"]["tools"]]) for p in k["placed"]],
            [("load-1", ["x", "y"])], "and what came later has its place")
    h.raw(b'{"id":99,"type":"tool_call","name":"load","args":{"n":["x","z"]}}\n')
    h.reply(99)
    k = data(h.ask("list_tools", format="kimi"))
    w.equal([(p["after"], [t["function"]["name"] for t in
                           p["message"]["tools"]]) for p in k["placed"]],
            [("load-1", ["x", "y"]), (99, ["z"])], "once each")
    w.equal(said(h.ask("tool_call", name="x")), "called x", "callable")
    w.check(h.event("ext_tools_changed"), "z")
    w.equal(code(h.ask("tool_call", name="late")), "unknown",
            "registered after ready: not yet")
    h.ask("event", event="turn_end", stop="end")
    w.check(h.event("ext_tools_changed", "d"), "with the next turn")
    w.equal(said(h.ask("tool_call", name="late")), "late", "callable")
    done(w, h)


@test("names of the agent's own", needs="sandbox")
def builtins(w):
    w.mkext("a", ECHO % ("a", "", ""))
    w.mkext("b", ECHO % ("b", "", "2"))
    h = Host(w, "./a", "./b")
    h.ready()
    l = data(h.ask("list_commands"))["commands"]
    w.equal([(c["name"], c["shadowed"]) for c in l],
            [("c", False), ("c2", False)], "each its own", l)
    w.equal(len(data(h.ask("list_tools"))["tools"]), 1,
            "a tool that another has first is not there")
    w.check("already registered by a" in w.log("b"), "logged, in its own log")
    h.ask("hello", builtin_commands=["C"], builtin_tools=["T"])
    l = data(h.ask("list_commands"))["commands"]
    w.equal([(c["name"], c["shadowed"]) for c in l],
            [("c", True), ("c2", False)], "given by the client", l)
    w.equal(data(h.ask("list_tools"))["tools"], [], "tools too")
    w.equal(code(h.ask("invoke", name="c")), "unsupported", "not invoked")
    w.contains(w.log("a"), 'command "c" is the host\'s own', "logged")
    done(w, h)


@test("time limits", needs="sandbox")
def timeouts(w):
    w.mkext("e", '''
        hello("e", "tools"); tool("t"); ready()
        def call(f):
            time.sleep(f["args"]["s"]); text(f["id"], str(f["args"]["n"]))
        serve(tool_call=call)
    ''')
    h = Host(w, "./e")
    h.ready()
    start = time.time()
    r = h.ask("tool_call", name="t", args={"s": 0.5, "n": 1}, timeout_ms=200)
    w.equal(code(r), "timeout", "timeout_ms", r)
    w.contains(r["error"], "timed out after 200 ms", "says so")
    w.check(time.time() - start < 0.45, "in time")
    w.equal(said(h.ask("tool_call", name="t", args={"s": 0, "n": 2},
                       timeout_ms=5000)), "2", "the late one answers nobody")
    w.contains(w.log("e"), "late", "and is logged")
    done(w, h)


@test("start errors", needs="sandbox")
def load_errors(w):
    key = w.write("home/.ssh/id", "KEY")
    w.mkext("early", '''
        print("boom", file=sys.stderr); sys.stderr.flush()
        try: open(%r)
        except OSError: pass
        sys.exit(23)
    ''' % key)
    w.mkext("shot", "import signal; os.kill(os.getpid(), signal.SIGTERM)")
    w.mkext("e", ECHO % ("e", "", ""))
    w.write("bad/extension.json", "{")
    h = Host(w, "./early", "./shot", "./bad", "./e", "/nonexistent/x")
    e = h.event("ext_load_error", "early")
    w.equal(e["status"], 23, "its status", e)
    w.equal(e["stderr"], ["boom"], "what it wrote")
    w.check(any(d["target"] == key for d in e["denials"]),
            "what it was denied", e)
    w.contains(e["error"], "exited with status 23 before hello", "in words")
    w.contains(e["error"], "to allow: fs.read ", "and the remedy, which is not "
               "a grant for whoever is installed as that")
    w.check("ext allow" not in e["error"], "no command for another", e)
    w.contains(e["error"], e["log"], "and the log")
    e = h.event("ext_load_error", "shot")
    w.equal(e.get("signal"), 15, "a signal", e)
    e = h.event("ext_load_error", "bad")
    w.contains(e["error"], "parse manifest", "a bad manifest", e)
    w.check("status" not in e, "which ran nothing")
    e = h.event("ext_load_error", "x")
    w.contains(e["error"], "No such file", "a path that is not there", e)
    h.ready()
    rows = {x["name"]: x for x in data(h.ask("list_extensions"))["extensions"]}
    w.equal({n: r["state"] for n, r in rows.items()},
            {"early": "gone", "shot": "gone", "bad": "gone", "x": "gone",
             "e": "ready"}, "the others start")
    w.contains(rows["early"]["problem"], "status 23", "kept")
    w.mkext("early", ECHO % ("early", "2", "2"))
    r = data(h.ask("reload", name="early"))
    w.equal(r, {"stopped": 0, "loaded": 1, "ready": 1, "errors": []},
            "a good reload")
    rows = {x["name"]: x for x in data(h.ask("list_extensions"))["extensions"]}
    w.equal(rows["early"]["problem"], None, "forgets it")
    done(w, h)


@test("what a project brings along: its policy is told before it is started",
      needs="sandbox")
def trusted_policy(w):
    w.mkext("local", ECHO % ("local", "l", "l"))
    os.makedirs(os.path.join(w.project, ".zot/extensions"))
    there = os.path.join(w.project, ".zot/extensions/local")
    os.rename(w.path("local"), there)
    w.equal(w.zotbox("ext", "trust", there, "--policy", "standard", "--yes",
                     cwd=w.project).rc, 0, "trusted")
    h = Host(w)
    first = data(h.ask("list_extensions"))["extensions"][0]
    h.ready()
    last = data(h.ask("list_extensions"))["extensions"][0]
    w.equal((first["name"], first["policy"], last["policy"]),
            ("local", "standard", "standard"), "first %s, then %s" %
            (first["state"], last["state"]))
    done(w, h)


@test("discovery, precedence and reload", needs="sandbox")
def discovery(w):
    w.mkext("g", ECHO % ("g", "g", "g"))
    w.install("g")
    w.mkext("off", ECHO % ("off", "o", "o"), {"enabled": False})
    w.install("off")
    ext = os.path.join(w.zot_home, "extensions")
    for name, body in (("plain", ECHO % ("plain", "p", "p")),
                       ("same", ECHO % ("same", "s", "s"))):
        w.mkext(name, body)
        os.rename(w.path(name), os.path.join(ext, name))
    w.mkext("same", ECHO % ("same", "s", "mine"))
    w.mkext("local", ECHO % ("local", "l", "l"))
    os.makedirs(os.path.join(w.project, ".zot/extensions"))
    os.rename(w.path("local"), os.path.join(w.project, ".zot/extensions/local"))
    w.write("home/theme.json", "{}")
    os.makedirs(os.path.join(ext, "th"))
    for f, t in (("theme.json", "{}"), ("extension.json", '{"name":"th"}')):
        with open(os.path.join(ext, "th", f), "w") as o:
            o.write(t)
    h = Host(w, "./same")
    h.ready()

    def rows():
        return [(r["name"], r["scope"], r["state"]) for r in
                data(h.ask("list_extensions"))["extensions"]]
    w.equal(rows(), [("same", "path", "ready"), ("local", "project", "off"),
                     ("g", "global", "ready"), ("off", "global", "off"),
                     ("plain", "global", "ready"), ("same", "global", "off"),
                     ("th", "global", "off")], "--ext, project, global")
    l = {(r["name"], r["scope"]): r for r in
         data(h.ask("list_extensions"))["extensions"]}
    w.contains(l["local", "project"]["problem"], "trust", "not trusted")
    w.contains(l["off", "global"]["problem"], "disabled", "disabled")
    w.contains(l["same", "global"]["problem"], "comes first", "shadowed")
    w.equal(l["plain", "global"]["policy"], "strict", "unwrapped: confined")
    w.equal(data(h.ask("invoke", name="cmine"))["display"], "cmine|", "--ext wins")
    w.mkext("new", ECHO % ("new", "n", "n"))
    os.rename(w.path("new"), os.path.join(ext, "new"))
    w.zotbox("ext", "remove", "g", "--yes")
    w.zotbox("ext", "enable", "off")
    r = data(h.ask("reload"))
    w.equal(r, {"stopped": 3, "loaded": 4, "ready": 4, "errors": []}, "reload")
    w.equal([x[0] for x in rows() if x[2] == "ready"],
            ["same", "new", "off", "plain"], "what there is now")
    w.equal(said(h.ask("tool_call", name="tn")), "{}", "the new one works")
    w.equal(data(h.ask("reload", name="new"))["stopped"], 1, "one alone")
    w.equal([(e["error"], e["status"]) for e in h.events("ext_exit", "new")],
            [(None, 0)], "its first run ended, as asked", h.seen)
    a, b = h.send("reload"), h.send("tool_call", name="tn")
    w.equal(data(h.reply(a))["ready"], 4, "again")
    w.equal(said(h.reply(b)), "{}", "a call behind it waits for it")
    done(w, h)
    h = Host(w, "./same", more=["--no-ext"])
    h.ready()
    w.equal([x[:2] for x in rows()], [("same", "path")], "--no-ext")
    done(w, h)


@test("a guard that cannot be started", needs="sandbox")
def lost_guard(w):
    w.mkext("guard", INTERCEPT % ("guard", "{}"))
    w.install("guard", None, {"extends": "strict", "protocol": {
        "intercept": {"tool_call": ["block"]}, "on_failure": "block"}})
    w.mkext("e", ECHO % ("e", "", ""))
    h = Host(w, "./e")
    r = data(h.ask("intercept", event="tool_call", tool_name="x", tool_args={}))
    w.equal(r["block"], False, "control: it is there", r)
    h.shutdown()
    where = os.path.join(w.zot_home, "extensions/guard/extension.json")
    with open(where, "w") as f:
        f.write("{")
    h = Host(w, "./e")
    r = data(h.ask("intercept", event="tool_call", tool_name="x", tool_args={}))
    w.equal((r["block"], [x["outcome"] for x in r["by"]]),
            (True, ["not running"]), "a broken manifest does not disarm it", r)
    w.contains(r["reason"], 'required guard "guard" is not running', "why")
    w.check(h.event("ext_load_error", "guard"), "and it is said")
    done(w, h)


@test("ends", needs="sandbox")
def ends(w):
    w.mkext("e", ECHO % ("e", "", ""))
    w.mkext("deaf", '''
        import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)
        hello("deaf"); tool("hang"); ready()
        while True: time.sleep(9)
    ''')
    for how, rc in (("close", 0), (signal.SIGTERM, -15), (signal.SIGINT, -2),
                    (signal.SIGHUP, -1)):
        h = Host(w, "./e", "./deaf")
        h.ready()
        pids = [r["pid"] for r in data(h.ask("list_extensions"))["extensions"]]
        c = h.send("tool_call", name="hang")
        h.ask("ping")
        start = time.time()
        if how == "close":
            h.close()
        else:
            h.p.send_signal(how)
            h.finish()
        w.check(h.rc in (rc, 128 - rc), "exit after %s" % how, h.rc, h.err)
        w.check(time.time() - start < 4, "in time")
        w.equal(code(h.reply(c)), "exited", "an open call is answered")
        w.check(not any(os.path.exists("/proc/%d" % p) for p in pids),
                "nothing is left")
        w.equal(h.faults, [], "every line fits the schema")
    h = Host(w, "./e", "./deaf")
    h.ready()
    pids = [r["pid"] for r in data(h.ask("list_extensions"))["extensions"]]
    w.check(all(os.path.exists("/proc/%d" % p) for p in pids), "control")
    h.p.kill()
    h.p.wait()
    end = time.time() + 3
    while time.time() < end and any(os.path.exists("/proc/%d" % p)
                                    for p in pids):
        time.sleep(0.02)
    w.check(not any(os.path.exists("/proc/%d" % p) for p in pids),
            "killed: nothing is left")
    h = Host(w, more=["--no-ext"])
    w.check(h.ready(5), "none at all")
    w.equal(data(h.ask("reload")), {"stopped": 0, "loaded": 0, "ready": 0,
                                    "errors": []}, "reload of none")
    done(w, h)
    r = w.zotbox("host", "--nonsense")
    w.equal(r.rc, 2, "an unknown option", r)
    r = w.zotbox("host", "--cwd", "/nonexistent")
    w.equal(r.rc, 2, "no such directory", r)


main()
