#!/usr/bin/env python3
"""The console's verbs on the real floor: calls, commands, panels, events,
intercepts, lists, exit codes."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *

ECHO = '''
    hello("%s", "commands", "tools"); tool("t%s"); cmd("c%s"); ready()
    serve(tool_call=lambda f: text(f["id"], json.dumps(f["args"])),
          command_invoked=lambda f: emit(type="command_response", id=f["id"],
              action="display", display=f["name"] + "|" + f.get("args", "")))
'''


@test("output lines", needs="sandbox")
def lines(w):
    w.mkext("e", ECHO % ("e", "", ""))
    c = w.console("./e", ["# a comment", "", call("t", a=1), "/c  x  y ",
                          'call t {"n": 9007199254740993}'])
    w.equal(c.rc, 0, "exit", c)
    w.equal([h.type for h in c.lines], ["result", "display", "result"],
            "types, in order", c)
    w.equal(c.lines[0].json, {"content": [{"type": "text",
                                           "text": '{"a": 1}'}],
                              "is_error": False},
            "the frame without type and id")
    w.equal(c.lines[1].json["display"], "c|x  y", "trimmed arguments")
    w.equal(c.result("e", 1), '{"n": 9007199254740993}', "numbers survive")
    w.check(all(H_LINE.fullmatch(x) for x in c.out.splitlines()), "every line's form",
            c)
    w.check(c.lines[0].at <= c.lines[1].at, "times grow")
    j = w.console("./e", [call("t", a=1)], "--json")
    w.equal(json.loads(j.out)["content"][0]["text"], '{"a": 1}',
            "--json: the object alone", j)


@test("exit codes", needs="sandbox")
def codes(w):
    w.mkext("e", ECHO % ("e", "", ""))
    w.mkext("err", '''
        hello("err", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: text(f["id"], "no", True))
    ''')
    w.equal(w.console("./err", "call t").rc, 0, "an error result is 0")
    c = w.console("./e", "call none")
    w.equal(c.rc, 1, "unknown tool", c)
    w.contains(c.lines[0].json["error"], 'unknown tool "none"', "said")
    w.equal(w.console("./e", "/none").rc, 1, "unknown command")
    w.equal(w.console("./e", "/exit").rc, 0, "a built-in is no fault")
    c = w.console("./e", "call t\nfrobnicate\ncall t")
    w.equal(c.rc, 2, "a bad line", c)
    w.contains(c.err, 'line 2: unknown verb "frobnicate"', "named")
    w.equal(len(c.of("result")), 1, "the lines before it ran")
    c = w.console("nobody", "call t")
    w.equal(c.rc, 3, "nothing could start", c)
    w.equal(c.of("load_error")[0].ext, "nobody", "load_error", c)
    c = w.console(["nobody", "./e"], "call t")
    w.equal((c.rc, c.result("e")), (1, "{}"), "one failed, the other runs", c)
    w.equal(w.zotbox("console", "--cwd", "/nonexistent").rc, 2, "--cwd")
    w.equal(w.console([], "exts").rc, 0, "no extension at all")


@test("names: load order, case, shadowing", needs="sandbox")
def names(w):
    w.mkext("k1", '''
        time.sleep(0.3)
        hello("k1", "commands", "tools"); cmd("Deploy"); tool("both"); ready()
        serve(command_invoked=lambda f: emit(type="command_response",
              id=f["id"], action="display", display="k1 " + f["name"]),
              tool_call=lambda f: text(f["id"], "k1"))
    ''')
    w.mkext("k2", '''
        hello("k2", "commands", "tools"); cmd("DEPLOY"); tool("both"); ready()
        serve(command_invoked=lambda f: emit(type="command_response",
              id=f["id"], action="display", display="k2"),
              tool_call=lambda f: text(f["id"], "k2"))
    ''')
    c = w.console(["./k1", "./k2"], ["cmd dEPLOY", "call both", "commands",
                                     "tools", "exts"])
    w.equal(c.of("display")[0].json["display"], "k1 Deploy",
            "first in load order, canonical spelling", c)
    w.equal(c.result(), "k1", "tools likewise")
    w.equal([(h.ext, h.json["shadowed"], h.json.get("by"))
             for h in c.of("command")],
            [("k1", False, None), ("k2", True, "k1")], "commands", c)
    w.equal([(h.ext, h.json["active"]) for h in c.of("tool")],
            [("k1", True), ("k2", False)], "tools", c)
    w.equal([h.json["state"] for h in c.of("ext")], ["ready", "ready"],
            "exts", c)
    w.contains(w.log("k2"), 'command "DEPLOY" already registered by k1 as '
               '"Deploy"; ignored', "its own log")
    c = w.console(["./k2", w.path("k2") + "/"], "call both")
    w.equal((c.rc, c.result(), len(c.of("load_error"))), (1, "k2", 1),
            "two of one name: the first has it", c)
    w.contains(c.err, "another extension called k2 is loaded already")


@test("panels and keys", needs="sandbox")
def panels(w):
    w.mkext("p", '''
        hello("p", "commands", "panels"); cmd("open"); ready()
        def command(f):
            emit(type="command_response", id=f["id"], action="open_panel",
                 open_panel={"id": "main", "title": "T", "lines": ["a"]})
        def key(f):
            emit(type="panel_render", panel_id="main", title="T",
                 lines=[f["key"] + f.get("text", "")])
        def closed(f):
            note("closed " + f["panel_id"])
        serve(command_invoked=command, panel_key=key, panel_close=closed)
    ''')
    c = w.console("./p", ["key main up", "/open", "key main down",
                          "key main rune x", "sleep 0.2",
                          "panel_close main", "sleep 0.2", "key main up"])
    w.equal([h.type for h in c.lines],
            ["error", "open_panel", "panel_render", "panel_render", "notify",
             "error"], "in order", c)
    w.equal(c.of("open_panel")[0].json["open_panel"]["title"], "T",
            "an action names the line")
    w.equal([h.json["lines"][0] for h in c.of("panel_render")],
            ["down", "runex"], "keys arrive")
    w.equal(c.rc, 1, "no such panel", c)


@test("one panel at a time", needs="sandbox")
def one_panel(w):
    for n in ("a", "b"):
        w.mkext(n, '''
            hello("%s", "commands", "panels"); cmd("%s"); ready()
            serve(command_invoked=lambda f: emit(type="command_response",
                  id=f["id"], action="open_panel",
                  open_panel={"id": "main", "title": "T", "lines": []}),
                  panel_key=lambda f: note("key " + f["key"]),
                  panel_close=lambda f: note("closed " + f["panel_id"]))
        ''' % (n, n))
    c = w.console(["./a", "./b"], ["/a", "/b", "sleep 0.2", "key main up",
                                   "sleep 0.2", "panel_close main",
                                   "sleep 0.2", "key main up"])
    w.equal([(h.ext, h.type, h.json.get("message")) for h in c.lines][:-1],
            [("a", "open_panel", None), ("a", "panel_close", None),
             ("b", "open_panel", None), ("a", "notify", "closed main"),
             ("b", "notify", "key up"), ("b", "notify", "closed main")],
            "the last one opened", c)
    w.equal(c.of("panel_close")[0].json, {"panel_id": "main"}, "which")
    w.equal(c.lines[-1].type, "error", "then there is none")


@test("tool_prompt", needs="sandbox")
def tool_prompt(w):
    w.mkext("tp", '''
        hello("tp", "commands"); cmd("c"); ready()
        serve(command_invoked=lambda f: emit(type="command_response",
              id=f["id"], action="tool_prompt", tool_name="fetch",
              tool_args={"url": "u"}, prompt="sum up"))
    ''')
    c = w.console("./tp", "/c", "--scope", w.scope("tp", {
        "protocol": {"call_tool": ["fetch"]}}))
    w.equal((c.of("tool_prompt") or [None])[0] and c.lines[0].json,
            {"action": "tool_prompt", "tool_name": "fetch",
             "tool_args": {"url": "u"}, "prompt": "sum up"}, "printed", c)
    c = w.console("./tp", "/c")
    w.equal(c.of("tool_prompt"), [], "control: not without the grant", c)


@test("many extensions", needs="sandbox")
def many(w):
    import resource
    names = ["m%d" % i for i in range(10)]
    for n in names:
        w.mkext(n, '''
            import resource
            hello("%s", "commands"); cmd("%s"); ready()
            serve(command_invoked=lambda f: emit(type="command_response",
                  id=f["id"], action="display", display=str(
                      resource.getrlimit(resource.RLIMIT_NOFILE))))
        ''' % (n, n))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1024:
        return w.skip("many", "the hard limit of open files is low")
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (96, hard))
        c = w.console(["./" + n for n in names], ["/m0", "/m9"])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    w.equal((c.rc, len(c.of("load_error"))), (0, 0),
            "more than 96 descriptors are for", c)
    w.equal({h.json["display"] for h in c.of("display")}, {"(256, 256)"},
            "an extension has what its scope says", c)


@test("events, session_start, idle", needs="sandbox")
def events(w):
    w.mkext("ev", '''
        hello("ev"); emit(type="subscribe", events=["session_start",
            "turn_end", "tool_call"], intercept=[]); ready()
        serve(event=lambda f: note(json.dumps(f, sort_keys=True)))
    ''')
    scope = w.scope("ev", {"protocol": {"events": ["session_start",
                                                   "turn_end"]}})
    c = w.console("./ev", ["idle", event("tool_call", tool_name="x"),
                           event("turn_end", stop="error"), "sleep 0.2"],
                  "--scope", scope)
    got = [json.loads(h.json["message"]) for h in c.of("notify")]
    w.equal([(f["event"], f.get("stop")) for f in got],
            [("session_start", None), ("turn_end", "end"),
             ("turn_end", "error")], "granted ones, in order", c)
    w.equal(c.rc, 0, "exit", c)


RW = '''
    hello("%s"); emit(type="subscribe", events=[],
        intercept=["tool_call", "assistant_message"]); ready()
    serve(event_intercept=lambda f: emit(type="event_intercept_response",
        id=f["id"], %s))
'''
ALL = {"protocol": {"intercept": {
    "tool_call": ["block", "modify:weather"],
    "assistant_message": ["block", "replace"]}}}


@test("intercepts chain", needs="sandbox")
def chains(w):
    w.mkext("rw", RW % ("rw", 'modified_args={"city": "MODIFIED"}, '
                        'replace_text="MODIFIED"'))
    w.mkext("em", RW % ("em", ""))
    w.mkext("nu", RW % ("nu", 'block=False, reason="", modified_args=None, '
                        'replace_text=None'))
    w.mkext("no", RW % ("no", 'block=True, reason="not this"'))
    scope = w.scope("all", ALL)
    ask = [intercept("tool_call", tool_name="weather",
                     tool_args={"city": "ORIGINAL"}),
           intercept("assistant_message", text="ORIGINAL")]
    for order in ("rw em nu", "em rw nu", "nu em rw"):
        c = w.console(["./" + n for n in order.split()], ask, "--scope",
                      scope)
        w.equal([h.type for h in c.lines], ["allow", "allow"], order, c)
        w.equal((c.lines[0].ext, c.lines[0].json["modified_args"],
                 c.lines[1].json["replace_text"]),
                ("rw", {"city": "MODIFIED"}, "MODIFIED"), order)
        w.equal([o["outcome"] for o in c.lines[0].json["by"]],
                ["rewrite" if n == "rw" else "allow"
                 for n in order.split()], "by whom")
    c = w.console(["./rw", "./no", "./em"], ask, "--scope", scope)
    w.equal([(h.type, h.ext, h.json["reason"]) for h in c.lines],
            [("block", "no", "not this")] * 2, "first block ends it", c)
    w.check("modified_args" not in c.lines[0].json, "without the rewrite")
    w.equal(c.rc, 0, "a block is 0")
    c = w.console("./em", intercept("turn_start"), "--scope", scope)
    w.equal((c.lines[0].ext, c.lines[0].type, c.lines[0].json),
            ("-", "allow", {}), "nobody is subscribed", c)


@test("an identity rewrite brings nothing back", needs="sandbox")
def identity(w):
    w.mkext("red", '''
        hello("red"); emit(type="subscribe", events=[],
            intercept=["assistant_message"]); ready()
        serve(event_intercept=lambda f: emit(type="event_intercept_response",
            id=f["id"], replace_text=f["text"].replace("sk-zz", "[redacted]")))
    ''')
    w.mkext("id", '''
        hello("id"); emit(type="subscribe", events=[],
            intercept=["assistant_message"]); ready()
        def ic(f):
            print("saw", f["text"], file=sys.stderr, flush=True)
            emit(type="event_intercept_response", id=f["id"],
                 replace_text=f["text"])
        serve(event_intercept=ic)
    ''')
    scope = w.scope("all", ALL)
    for order in (["./red", "./id"], ["./id", "./red"]):
        c = w.console(order, intercept("assistant_message", text="key sk-zz"),
                      "--scope", scope)
        w.equal(c.lines[0].json["replace_text"], "key [redacted]",
                " ".join(order), c)
    w.equal(w.log("id").count("sk-zz"), 1, "seen once, by design")


@test("detached verbs", needs="sandbox")
def detached(w):
    w.mkext("slow", '''
        import threading
        hello("slow", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: threading.Timer(f["args"]["s"], text,
              [f["id"], str(f["args"]["s"])]).start())
    ''')
    c = w.console("./slow", ['call t {"s": 0.8} &', 'call t {"s": 0.1}'])
    w.equal([c.result("slow", i) for i in (0, 1)], ["0.1", "0.8"],
            "the end waits for what was detached", c)
    w.equal(c.rc, 0)


@test("late tools wait for a turn", needs="sandbox")
def late_tools(w):
    w.mkext("lt", '''
        hello("lt", "tools"); tool("t"); ready(); ready()
        def call(f):
            if f["name"] == "t": tool("late"); cmd("latecmd")
            text(f["id"], "ok " + f["name"])
        serve(tool_call=call)
    ''')
    c = w.console("./lt", ["call t", "call late", "idle", "call late"])
    w.equal([h.type for h in c.lines], ["result", "error", "result"], "", c)
    w.contains(c.lines[1].json["error"], "from the next turn on")
    w.equal(c.result("lt", 1), "ok late")
    w.contains(w.log("lt"), 'register_tool "late" after ready; takes effect '
               'with the next turn')


main()
