#!/usr/bin/env python3
"""Faults that hosts of extensions are known for, in what is registered, when,
and by whom: bad schemas, late registrations, guards that are not there, answers
of an instance that was replaced. Each test bears the id of its case and says
what must hold here."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *

# (schema, what is said; None: taken)
SCHEMAS = (
    (None, None),       # as if it had none
    ([], '"schema" must be an object (got array)'),
    ({}, None),
    ({"type": "string"}, 'schema.type must be "object"'),
    ({"type": "object", "properties": {"a": {"type": "string"},
                                       "required": ["a"]}},
     "each of schema.properties must be an object"),
    ({"type": "object", "properties": []},
     "schema.properties must be an object"),
    ({"type": "object", "required": "a"}, "schema.required must be an array"),
    ({"type": "object", "properties": {"a": {"type": "int"}}},
     "the type of a property must be one that JSON Schema knows"),
    # Contradicts itself, but is a schema.
    ({"type": "object", "properties": {"a": {"enum": ["A"],
                                             "type": "null"}}}, None),
    ({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}},
     "schema has a $ref outside of itself"),
    ({"type": "object", "description": "x" * 2_000_000},
     '"schema" is longer than 65536 bytes'),
)


@test("E23 a bad schema costs its own tool", needs="sandbox")
def e23(w):
    w.mkext("sch", r'''
        hello("sch", "tools")
        here = os.path.dirname(os.path.abspath(__file__))
        for i, s in enumerate(json.load(open(here + "/schemas.json"))):
            emit(type="register_tool", name="b%%d" %% i, description="b", schema=s)
        emit(type="register_tool", name="no_schema", description="n")
        emit(type="register_tool", name="bad name!", schema={"type": "object"})
        emit(type="register_tool", name="n" * 65, schema={"type": "object"})
        emit(type="register_tool", name="nodesc", schema={"type": "object"})
        tool("good"); ready()
        serve(tool_call=lambda f: text(f["id"], "ok"))
    '''.replace("%%", "%"), files={
        "schemas.json": json.dumps([s for s, _ in SCHEMAS])})
    w.install("sch")
    c = w.console("sch", ["call good", "tools"])
    w.equal((c.rc, c.result()), (0, "ok"), "the good one works", c)
    w.equal([h.json["name"] for h in c.of("tool")],
            ["b%d" % i for i, (_, said) in enumerate(SCHEMAS) if not said] +
            ["no_schema", "nodesc", "good"], "the others are not there")
    w.equal({json.dumps(h.json["schema"]) for h in c.of("tool")
             if h.json["name"] in ("b0", "b2", "no_schema")}, {"{}"},
            "no schema is an empty one")
    said = [("b%d" % i, said) for i, (_, said) in enumerate(SCHEMAS) if said]
    said += [("bad name!", "a name is [A-Za-z0-9_-]{1,64}"),
             ("n" * 65, "a name is [A-Za-z0-9_-]{1,64}")]
    r = w.zotbox("ext", "doctor", "sch")
    log = w.log("sch")
    for name, why in said:
        text = 'tool "%s" not registered: %s' % (name, why)
        w.equal(c.err.count("sch: " + text), 1, text[:80], c)
        w.contains(log, text, "in the log")
        w.contains(r.out, "warning: " + text, "doctor")
        w.check(w.denied("sch", "proto.tools", name), "on record")
    w.equal(r.rc, 0, "doctor: warnings are 0", r)


@test("E25 what is registered late is told, and when it takes effect",
      needs="sandbox")
def e25(w):
    w.mkext("lt", '''
        hello("lt", "tools"); tool("t"); ready(); ready()
        emit(type="hello", name="lt2", version="2", capabilities=["submit"])
        def call(f):
            if f["name"] == "t":
                tool("late"); cmd("latecmd")
                emit(type="subscribe", events=["turn_end"], intercept=[])
            text(f["id"], "ok " + f["name"])
        serve(tool_call=call, event=lambda f: note("heard " + f["event"]),
              command_invoked=lambda f: emit(type="command_response",
                  id=f["id"], action="display", display="late command"))
    ''')
    w.mkext("early", 'tool("x"); hello("early", "tools"); ready(); serve()')
    w.mkext("never", '''
        hello("never", "tools"); tool("nv")
        serve(tool_call=lambda f: text(f["id"], "ok nv"))
    ''')
    c = w.console(["./lt", "./early", "./never"], [
        "call t", "call late", "idle", "call late", "/latecmd", "call nv",
        "sleep 0.1"], "--scope", w.scope("lt", {"protocol": {
            "events": ["turn_end"]}}))
    w.equal([(h.ext, h.type) for h in c.lines], [
        ("early", "load_error"), ("lt", "result"), ("-", "error"),
        ("lt", "notify"), ("lt", "result"), ("lt", "display"),
        ("never", "result")], "the tool from the next turn on, the "
        "subscription at once", c)
    w.contains(c.lines[2].json["error"], "from the next turn on")
    w.equal([c.result("lt", i) for i in (0, 1)], ["ok t", "ok late"])
    w.contains(c.of("load_error")[0].json["error"],
               "first stdout line is not a hello frame", "before hello")
    log = w.log("lt")
    for text in ('register_tool "late" after ready; takes effect with the '
                 "next turn", 'register_command "latecmd" after ready',
                 "subscribe after ready", "second hello; dropped",
                 "second ready; dropped"):
        w.equal(log.count(text), 1, text, log)
    w.contains(w.log("never"), "no ready frame; taken as ready after 250 ms "
               "of silence")
    w.equal(c.rc, 1, "one did not load")


@test("E28 a guard that is not there", needs="sandbox")
def e28(w):
    w.mkext("fw", '''
        if os.path.exists(os.path.join(os.path.dirname(
                os.path.abspath(__file__)), "broken")):
            raise ImportError("no module named shared")
        hello("fw"); emit(type="subscribe", events=[], intercept=["tool_call"])
        ready()
        serve(event_intercept=lambda f: emit(type="event_intercept_response",
            id=f["id"], block="rm" in f["tool_args"]["command"], reason="fw"))
    ''')
    rules = {"protocol": {"intercept": {"tool_call": ["block"]},
                          "on_failure": "block"}}

    def ask(command):
        return intercept("tool_call", tool_name="bash",
                         tool_args={"command": command})

    def console(*script):
        return w.console("./fw", script, "--scope", w.scope("fw", rules))
    c = console(ask("ls"), ask("rm x"))
    w.equal([h.type for h in c.lines], ["allow", "block"], "it works", c)
    w.write("fw/broken", "")
    c = console(ask("ls"), ask("rm x"))
    w.equal([h.type for h in c.lines], ["load_error", "block", "block"],
            "not loaded: all is blocked", c)
    why = 'required guard "fw" is not running (exited with status 1 before ' \
        'hello); tool calls are blocked'
    w.equal({h.json["reason"] for h in c.of("block")}, {why}, "and why")
    # There is no log of its own to write to any more: the user is told.
    w.contains(c.err, why, "the user is told", c)
    del rules["protocol"]["on_failure"]
    c = console(ask("rm x"))
    w.equal([h.type for h in c.lines], ["load_error", "allow"],
            "without the flag: the failure is seen, and the call allowed", c)
    rules["protocol"]["on_failure"] = "block"
    os.unlink(w.path("fw/broken"))
    c = console(ask("ls"), "kill fw 9", "sleep 0.3", ask("ls"), "reload fw",
                ask("ls"))
    w.equal([h.type for h in c.lines], ["allow", "exit", "block", "reload",
                                        "allow"],
            "died: blocked until it is back", c)
    w.install("fw", "strict", rules)
    w.write("zot/extensions/fw/broken", "")
    r = w.zotbox("ext", "doctor", "fw")
    w.equal(r.rc, 5, "doctor", r)


@test("E30 what is rewritten is what runs, and what is shown", needs="sandbox")
def e30(w):
    w.mkext("rr", '''
        hello("rr"); emit(type="subscribe", events=[
            "tool_confirmation_requested", "tool_call"],
            intercept=["tool_call"]); ready()
        serve(event=lambda f: print("EV", json.dumps(f), file=sys.stderr,
                                    flush=True),
              event_intercept=lambda f: emit(type="event_intercept_response",
                  id=f["id"], modified_args={"command": "echo SAFE"}))
    ''')
    scope = w.scope("rr", {"protocol": {
        "events": ["tool_confirmation_requested", "tool_call"],
        "event_content": True,
        "intercept": {"tool_call": ["block", "modify:bash"]}}})
    # The agent gets the rewrite; what it asks and says of the call after that
    # is its own, and arrives as it says it.
    c = w.console("./rr", [
        intercept("tool_call", tool_name="bash",
                  tool_args={"command": "echo ORIG"}),
        event("tool_confirmation_requested", tool_name="bash",
              tool_preview="echo SAFE"),
        event("tool_call", tool_name="bash",
              tool_args={"command": "echo SAFE"}), "sleep 0.1"],
        "--scope", scope, "--yes-i-mean-it")
    w.equal([(h.type, h.json.get("modified_args")) for h in c.lines],
            [("allow", {"command": "echo SAFE"})], "the agent gets it", c)
    log = w.log("rr")
    w.equal([json.loads(l[3:]) for l in log.splitlines()
             if l.startswith("EV ")], [
        {"type": "event", "event": "tool_confirmation_requested",
         "tool_name": "bash", "tool_preview": "echo SAFE"},
        {"type": "event", "event": "tool_call", "tool_name": "bash",
         "tool_args": {"command": "echo SAFE"}}], "the events say the same")
    w.equal(c.rc, 0, "exit")


@test("E31 what the old instance says after a reload is dropped",
      needs="sandbox")
def e31(w):
    w.mkext("co", '''
        import threading
        hello("co", "commands", "panels"); cmd("pause"); cmd("new"); ready()
        def late(f):
            note("late"); emit(type="submit", text="late")
            emit(type="panel_render", panel_id="x", title="late", lines=[])
            emit(type="command_response", id=f["id"], action="prompt",
                 prompt="late")
        while True:
            f = recv()
            if f["type"] == "command_invoked" and f["name"] == "pause":
                emit(type="open_panel", panel={"id": "x", "title": "old",
                                               "lines": []})
                threading.Timer(0.5, late, [f]).start()
            elif f["type"] == "command_invoked":
                emit(type="command_response", id=f["id"], action="display",
                     display="new")
            if f["type"] == "shutdown":
                time.sleep(0.9); emit(type="shutdown_ack"); os._exit(0)
    ''')
    c = w.console("./co", ["cmd pause &", "sleep 0.2", "reload co", "/new",
                           "key x up", "sleep 0.3"], "--scope",
                  w.scope("co", {"protocol": {"submit": True,
                                              "panels": "any"}}))
    w.equal([h.type for h in c.lines], ["open_panel", "reload", "display",
                                        "error"],
            "nothing late; the panel is gone, the new one answers", c)
    w.check("late" not in c.out, "no late text", c)
    log = w.log("co")
    w.contains(log, "command_response from the previous instance; dropped")
    w.contains(log, "notify from the previous instance; dropped")


main()
