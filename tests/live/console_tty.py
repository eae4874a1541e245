#!/usr/bin/env python3
"""The console for a person, in a pseudo-terminal: what is on the screen, which
keys arrive, and in what state the terminal is left."""
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *
from screen import Terminal

# Answers /p and the tool "open" with a panel, renders each key, and does what
# some keys say.
PANEL = r'''
    hello(NAME, "commands", "panels", "tools"); cmd("p"); tool("open")
    tool("t"); tool("slow"); ready()
    P = {"id": "main", "title": "My panel", "footer": "the footer",
         "lines": ["first line", "wide \u6f22\u5b57 e\u0301nd"]}
    seen = []
    def panel(**kw): emit(type="open_panel", panel=dict(P, **kw))
    def render(*lines): emit(type="panel_render", panel_id="main",
                             lines=list(lines), footer="")
    def command(f):
        emit(type="command_response", id=f["id"], action="open_panel",
             open_panel=P)
    def key(f):
        seen.append(f["key"] + ":" + f.get("text", "") if "text" in f
                    else f["key"])
        t = f.get("text")
        if t == "C": emit(type="panel_close", panel_id="main")
        elif t == "N": note("a note meanwhile")
        elif t == "X": os._exit(3)
        elif t == "D":
            try: open("/etc/shadow")
            except OSError: pass
        else: render(" ".join(seen[-40:]))
    def closed(f): note("closed by the user after " + str(len(seen)))
    def call(f):
        if f["name"] == "open": panel()
        if f["name"] == "slow": time.sleep(f["args"].get("s", 2))
        text(f["id"], "answer of " + f["name"])
    serve(command_invoked=command, panel_key=key, panel_close=closed,
          tool_call=call)
'''


def mk(w, name="pn", body=PANEL):
    return w.mkext(name, body.replace("NAME", repr(name)))


def start(w, *names, rows=24, cols=80, env={}, options=(), ready=True):
    t = Terminal(w, ["console", *options, *[w.path(n) for n in names]],
                 rows=rows, cols=cols, env=env)
    if ready:
        if not t.see("ready", "it starts", 30):
            raise RuntimeError("it did not start")
    return t


def ends(w, t, rc=0, how="\x04"):
    """End it; the terminal is as it was."""
    if how:
        t.type(how)
    w.equal(t.wait(15), rc, "exit", t.text())
    w.equal(t.modes(), t.before, "the terminal's modes are as they were")
    w.check(not t.screen.alternate and not t.screen.hidden,
            "the shell's screen and cursor are back")
    w.equal(t.unknown, [], "nothing but known sequences")


@test("nothing is installed")
def nothing(w):
    r = w.zotbox("console", input="exts\n")
    w.contains(r.err, "zotbox ext install PATH|GIT-URL", "a script", r)
    t = start(w, ready=False)
    t.see("zotbox ext install PATH|GIT-URL", "a terminal")
    w.check("0 of 0" not in t.text(), "no sum of nothing")
    ends(w, t)


@test("prompt, answers, errors, history, completion", needs="sandbox")
def prompt(w):
    mk(w)
    t = start(w, "pn")
    w.equal(t.row(0)[:36], "zotbox: 1 of 1 extensions are ready;", "greeting")
    t.type("call t\n")
    t.see("[pn] result: answer of t")
    t.type("nonsense\n")
    t.see('unknown verb "nonsense"', "a bad line is told, and no end")
    t.type("call nobody\n")
    t.see("[-] error: ", "an unknown tool too")
    t.type("exts\n")
    t.see("[pn] ready  1.0.0  strict", "lists are for people")
    t.type("\x1b[A\x1b[A\x1b[A\x1b[A")
    t.see("zotbox> call t", "history")
    t.type("\x05\x15ca\t o\t\n")
    t.see("[pn] result: answer of open", "completion of verb and tool")
    t.see("My panel")
    t.type("\x1b")
    t.gone("My panel")
    t.type("/\t")
    t.see("zotbox> /p", "completion of a command")
    t.type("\x15rel\tp\t")
    t.see("zotbox> reload pn", "completion of a name")
    t.type("\x15s\t\t")
    t.see("shutdown", "what there is to choose from")
    t.type("\x15intercept tool\t")
    t.see("intercept tool_call", "completion of an event")
    t.type("\x15")
    before = {f for d, _, fs in os.walk(w.dir) for f in fs}
    ends(w, t)
    w.check(not {f for f in before if "hist" in f},
            "no history in a file", before)


@test("what is said does not wreck the line", needs="sandbox")
def live(w):
    w.mkext("talk", r'''
        hello("talk", "tools"); tool("t"); ready()
        def call(f):
            for i in range(3):
                time.sleep(0.4); note("note %d" % i)
            try: open("/etc/shadow")
            except OSError: pass
            text(f["id"], "done")
        serve(tool_call=call)
    ''')
    t = start(w, "talk")
    t.type("call t &\nhalf a li")
    t.type("\x02\x02")
    t.see("note 2")
    t.see("denied fs.read /etc/shadow", "a denial")
    t.see("result: done")
    w.check(t.until(lambda: t.text().rstrip().endswith("zotbox> half a li")),
            "the line is below", t.text())
    w.equal([r for r in t.text().splitlines() if "half" in r],
            ["zotbox> half a li"], "and nowhere else")
    t.type("XY")
    t.see("zotbox> half a XYli", "with the cursor where it was")
    rows = [r for r in t.text().splitlines() if "note" in r]
    w.equal(rows, ["[talk] note %d" % i for i in range(3)], "whole rows")
    t.type("\x05\x15")
    ends(w, t)


@test("what is too long begins no row of its own", needs="sandbox")
def long_rows(w):
    w.mkext("evil", r'''
        hello("evil", "tools"); tool("t"); ready()
        def call(f):
            note("x" * 73 + "zotbox> FALSE")
            note("\u6f22" * 36 + " zotbox: FALSE")
            text(f["id"], "ok".ljust(80 - len("[evil] result: ")) +
                 "zotbox: FALSE")
        serve(tool_call=call)
    ''')
    t = start(w, "evil")
    t.type("call t\n")
    t.see("result: ok")
    rows = [r for r in t.text().splitlines() if "FALSE" in r]
    w.equal(len(rows), 3, "all of it is shown", t.text())
    w.check(all(r.startswith("[evil] ") for r in rows),
            "each row says who speaks", t.text())
    ends(w, t)


@test("what was refused begins no row of its own", needs="sandbox")
def long_refusal(w):
    name = w.write("home/d/" + "FALSE" * 40, "x")
    mk(w, "evil", r'''
        hello("evil", "tools"); tool("t"); ready()
        def call(f):
            try: open(NAME)
            except OSError as e: text(f["id"], "errno %d" % e.errno)
        serve(tool_call=call)
    '''.replace("NAME", repr(name)))
    t = start(w, "evil")
    t.type("call t\n")
    t.see("result: errno 2")
    t.see("nothing grants")
    rows = [r for r in t.text().splitlines() if "ALSEF" in r]
    w.check(len(rows) >= 3, "it takes several rows", t.text())
    w.check(all(r.startswith("[evil] ") for r in rows),
            "each row says who speaks", t.text())
    ends(w, t)


KEYS = [
    ("\x1b[A", "up"), ("\x1b[B", "down"), ("\x1b[C", "right"),
    ("\x1b[D", "left"), ("\x1bOA", "up"), ("\x1bOB", "down"),
    ("\x1bOC", "right"), ("\x1bOD", "left"), ("\r", "enter"),
    ("\n", "enter"), ("\t", "tab"), ("\x1b[5~", "pageup"),
    ("\x1b[6~", "pagedown"), ("\x1b[H", "home"), ("\x1bOH", "home"),
    ("\x1b[1~", "home"), ("\x1b[F", "end"), ("\x1bOF", "end"),
    ("\x1b[4~", "end"), ("\x7f", "backspace"), ("\x08", "backspace"),
    ("\x1b[3~", "delete"), ("x", "rune:x"), (" ", "rune: "),
    ("é", "rune:é"), ("漢", "rune:漢"), ("\U0001f600", "rune:\U0001f600"),
    ("\x1b[15~", "unknown"), ("\x1bOP", "unknown"), ("\x01", "unknown"),
    ("\x1b[1;5A", "unknown"), ("\x1bx", "unknown"), ("\x1b[Z", "unknown"),
    ("\x1a", "unknown"), ("\x1c", "unknown"),
]


@test("a panel and all its keys", needs="sandbox")
def keys(w):
    mk(w)
    t = start(w, "pn", cols=100)
    t.type("/p\n")
    t.see("first line")
    w.equal(t.row(0), " pn: My panel", "whose it is, and its title")
    w.check("reverse" in t.style("My panel"), "the row is ours")
    w.equal(t.row(2), "wide 漢字 e\u0301nd", "characters")
    w.equal(t.column("nd"), 11, "wide ones are two columns, marks none")
    w.equal(t.row(-2), "the footer")
    w.equal(t.row(-1), "Esc closes".rjust(99), "how to leave")
    w.check(t.screen.alternate and t.screen.hidden, "a screen of its own")
    want = []
    for sent, name in KEYS:
        want.append(name)
        t.type(sent)
        shown = "".join(want[-40:]).replace(" ", "")
        got = t.until(lambda: shown in "".join(t.screen.lines()).replace(
            " ", ""), 5)
        w.check(got, "%r is %s" % (sent, name), t.text())
        if not got:
            break
    t.type("\x1b")
    t.gone("My panel", "Esc closes it")
    t.see("[pn] closed by the user after %d" % len(KEYS),
          "and the extension is told")
    t.type("/p\n")
    t.see("My panel")
    t.type("\x03")
    t.gone("My panel", "so does Ctrl-C")
    t.see("zotbox> ", "back at the prompt")
    t.type("call t\n")
    t.see("answer of t", "which works")
    ends(w, t)


@test("what happens while a panel is open", needs="sandbox")
def meanwhile(w):
    mk(w)
    t = start(w, "pn")
    t.type("half")
    t.settle()
    t.type("\x15/p\n")
    t.see("My panel")
    t.type("N")
    w.check(t.until(lambda: "a note meanwhile" in t.row(-1)),
            "a note is in the last row", t.text())
    t.type("D")
    w.check(t.until(lambda: "denied fs.read /etc/shadow" in t.row(-1)),
            "so is a denial", t.text())
    t.type("C")
    t.gone("My panel", "its extension closes it")
    t.see("[pn] a note meanwhile", "what was said is above the prompt")
    t.see("[pn] denied fs.read /etc/shadow")
    w.check(t.until(lambda: t.text().rstrip().endswith("zotbox>")),
            "and the prompt below", t.text())
    t.type("/p\n")
    t.see("My panel")
    t.type("X")
    t.gone("My panel", "its extension dies")
    t.see("pn exited with status 3")
    t.type("reload pn\n")
    t.see('[pn] reload: {"stopped":0,"loaded":1,"ready":1', "reload")
    t.type("/p\n")
    t.see("My panel", "and again")
    t.type("\x1b")
    t.gone("My panel")
    t.type("sleep 0.5 &\nkill pn 9\n")
    t.see("pn ended by signal 9", "killed")
    ends(w, t)


@test("one panel at a time", needs="sandbox")
def one_panel(w):
    mk(w)
    w.mkext("other", '''
        hello("other", "commands", "panels"); cmd("o"); ready()
        serve(command_invoked=lambda f: emit(type="command_response",
              id=f["id"], action="open_panel", open_panel={"id": "main",
              "title": "Another", "lines": ["x"]}),
              panel_key=lambda f: emit(type="panel_render", panel_id="main",
              lines=["other got " + f["key"]]))
    ''')
    t = start(w, "pn", "other")
    t.type("sleep 1.5\n/p\n")
    t.see("waiting>")
    t.type("/o\n")
    t.see("Another", "the last one opened")
    w.equal(t.row(0), " other: Another", "is the one", t.text())
    w.check(t.until(lambda: "closed by the user" in t.row(-1)),
            "and the first one is told", t.text())
    t.type("\x1b[A")
    t.see("other got up", "keys go to the second, of the same id")
    t.type("\x1b")
    t.gone("Another")
    w.check("My panel" not in t.text(), "the first does not come back")
    ends(w, t)


@test("an extension killed while its panel is open", needs="sandbox")
def killed(w):
    mk(w)
    t = start(w, "pn")
    # The next line waits until the panel was opened, and then ends it.
    t.type("sleep 1\n/p\n")
    t.type("sleep 1\nkill pn 9\n")
    t.see("My panel")
    t.gone("My panel", "back at the prompt", 15)
    t.see("pn ended by signal 9", "why")
    t.settle()
    w.equal(t.row(t.screen.y), "zotbox>", "the cursor is at the prompt")
    ends(w, t)


@test("sizes", needs="sandbox")
def sizes(w):
    w.mkext("big", r'''
        hello("big", "commands", "panels"); cmd("p"); ready()
        L = ["line %02d" % i for i in range(40)]
        L[30] = "\u25b8 chosen"
        serve(command_invoked=lambda f: emit(type="command_response",
            id=f["id"], action="open_panel", open_panel={"id": "m",
            "title": "Title", "lines": ["x" * 50] + L, "footer": "foot"}))
    ''')
    t = start(w, "big", rows=24, cols=80)
    t.type("/p\n")
    t.see("chosen", "the chosen line is in sight")
    w.check("bold" in t.style("chosen"), "and stands out")
    w.check("of 41" in t.row(0), "what part it is", t.row(0))
    t.resize(50, 100)
    w.check(t.until(lambda: t.row(1) == "x" * 50 and t.row(41) == "line 39"
                    and t.row(-1).endswith("Esc closes")),
            "resized: all of it", t.text())
    t.resize(10, 20)
    w.check(t.until(lambda: t.row(0) == " big: Title" and
                    "chosen" in t.text() and
                    t.row(-1).endswith("  Esc closes")),
            "20 columns", t.text())
    t.resize(1, 1)
    t.settle()
    t.resize(4, 3)
    t.settle()
    t.resize(60, 20)
    w.check(t.until(lambda: t.row(3) == "x" * 10), "long lines go on",
            t.text())
    t.type("\x1b")
    t.gone("Title")
    w.check(t.until(lambda: any(r == ">" for r in t.screen.lines())),
            "a short prompt", t.text())
    t.type("event turn_end " + "y" * 30)
    t.see("y" * 10)
    t.resize(20, 70)
    t.type("z")
    w.check(t.until(lambda: "z" in t.text()), "resized while editing",
            t.text())
    t.type("\x15")
    ends(w, t)
    t = start(w, "big", rows=12, cols=20)
    t.type("/p\n")
    t.see("chosen", "20 columns from the start")
    t.type("\x1b")
    t.gone("chosen")
    ends(w, t)


@test("colours, and none", needs="sandbox")
def colours(w):
    w.mkext("col", r'''
        hello("col", "commands", "panels"); cmd("p"); ready()
        note("careful", "warn")
        serve(command_invoked=lambda f: emit(type="command_response",
            id=f["id"], action="open_panel", open_panel={"id": "m",
            "title": "Title", "footer": "", "lines": [
            "\x1b[31mred\x1b[0m \x1b[1;4mstrong\x1b[0m plain",
            "\x1b[38;5;208morange\x1b[0m \x1b[38;2;0;0;255mblue"]}))
    ''')
    t = start(w, "col")
    t.see("careful")
    w.check("38;3" in t.style("[col] careful"), "a warning is yellow",
            t.style("careful"))
    t.type("/p\n")
    t.see("orange")
    w.equal(t.style("red"), {"38;1"}, "red")
    w.equal(t.style("strong"), {"bold", "underline"}, "strong")
    w.equal(t.style("plain"), set(), "plain")
    w.equal(t.style("orange"), {"38;208"}, "of 256")
    w.equal(t.style("blue"), {"38;21"}, "the nearest")
    t.type("\x1b")
    t.gone("orange")
    ends(w, t)
    t = start(w, "col", env={"NO_COLOR": "1"})
    t.see("careful")
    t.type("/p\n")
    t.see("orange")
    w.equal((t.style("red"), t.style("strong")), (set(),
            {"bold", "underline"}), "NO_COLOR: no colour, the rest stays")
    w.equal(re.findall(rb"\x1b\[(?:[0-9;]*;)?[349][0-8][0-9;]*m", t.raw), [],
            "not one anywhere")
    t.type("\x1b")
    t.gone("orange")
    ends(w, t)
    t = start(w, "col", env={"TERM": "vt100"})
    t.type("/p\n")
    t.see("orange", "a terminal without colours")
    t.type("\x1b")
    t.gone("Esc closes")
    t.type("\x04")
    w.equal(t.wait(), 0)
    w.equal(t.modes(), t.before, "vt100: modes")


@test("terminals that cannot draw", needs="sandbox")
def dumb(w):
    mk(w)
    for term in ("dumb", None, "no-such-terminal"):
        t = start(w, "pn", env={"TERM": term}, cols=100)
        t.type("/p\n")
        t.see("panels need a better terminal (%s" % (
            "TERM is dumb" if term == "dumb" else "TERM is not set"
            if term is None else "this terminal cannot move its cursor"),
            "TERM=%s" % term)
        t.see("[pn] panel My panel")
        t.see("[pn] first line")
        t.type("key main up\n")
        t.see("[pn] up", "keys by the verb")
        t.type("panel_close main\n")
        t.see("closed by the user")
        w.check(b"\x1b" not in t.raw, "not one sequence", repr(
            t.raw[max(0, t.raw.find(b"\x1b") - 60):][:200]))
        t.type("\x04")
        w.equal(t.wait(), 0, "exit", t.text())
        w.equal(t.modes(), t.before, "modes")


@test("Ctrl-C", needs="sandbox")
def interrupt(w):
    mk(w)
    t = start(w, "pn")
    t.type("half a line")
    t.see("zotbox> half a line")
    t.type("\x03")
    t.see("half a line^C", "the line is dropped")
    t.type("call t\n")
    t.see("answer of t", "and nothing else happened")
    t.type('call slow {"s": 3}\n')
    t.see("waiting>")
    t.type("call t\n")
    t.see("waiting> call t")
    t.type("\x03")
    t.see("not waited for any longer")
    t.see("zotbox>")
    t.type("exts\n")
    t.see("[pn] ready", "the prompt is back at once")
    t.see("answer of slow", "and the answer comes when it comes")
    w.equal(t.text().count("answer of t"), 1,
            "what was to follow is not run")
    t.type("sleep 60\n")
    w.check(t.until(lambda: t.row(t.screen.y) == "waiting>"), "it waits",
            t.text())
    t.type("\x03")
    w.check(t.until(lambda: t.row(t.screen.y) == "zotbox>"), "it does not",
            t.text())
    ends(w, t, how="\x03")
    t = start(w, "pn")
    t.type("\x03")
    t.see("Ctrl-C again, or Ctrl-D, ends")
    t.type("call t\n")
    t.see("answer of t")
    t.type("\x03")
    t.settle()
    w.equal(t.p.poll(), None, "a line in between starts anew")
    ends(w, t, how="\x03")
    w.mkext("can", '''
        hello("can", "tools", "tool_cancel"); tool("long"); ready()
        serve(tool_call=lambda f: None,
              tool_cancel=lambda f: text(f["id"], "given up"))
    ''')
    t = start(w, "can")
    t.type("call long\n")
    t.see("waiting>")
    t.type("\x03")
    t.see("its extension was told to cancel it", "tool_cancel")
    t.see("given up", "it did")
    ends(w, t)
    w.mkext("deaf", '''
        hello("deaf"); ready()
        import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True: time.sleep(1)
    ''')
    t = start(w, "deaf")
    begin = time.time()
    t.type("\x04")
    t.until(lambda: t.modes() == t.before)
    w.check(t.p.poll() is None, "it waits for the extension, cooked")
    t.type("\x03")
    w.equal(t.wait(), 130, "Ctrl-C then ends at once", time.time() - begin)
    w.equal(t.modes(), t.before, "modes")


@test("ended by signals", needs="sandbox")
def signals(w):
    mk(w)
    for signo in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        for panel in (False, True):
            t = start(w, "pn")
            if panel:
                t.type("/p\n")
                t.see("My panel")
            w.check(t.modes() != t.before, "control: the modes are others")
            t.p.send_signal(signo)
            ends(w, t, 128 + signo, how=None)
    t = start(w, "pn")
    t.type("\x1c")
    ends(w, t, 128 + signal.SIGQUIT, how=None)


@test("stopped and continued", needs="sandbox")
def stopped(w):
    mk(w)
    for panel in (False, True):
        t = start(w, "pn")
        if panel:
            t.type("/p\n")
            t.see("My panel")
        t.p.send_signal(signal.SIGTSTP)
        w.check(t.until(lambda: open("/proc/%d/stat" % t.p.pid).read()
                        .rpartition(")")[2].split()[0] == "T"), "stopped")
        w.equal(t.modes(), t.before, "with the shell's modes")
        w.check(t.until(lambda: not t.screen.alternate), "and screen")
        t.p.send_signal(signal.SIGCONT)
        if panel:
            t.until(lambda: t.screen.alternate)
            t.see("My panel", "it is drawn again")
            t.type("z")
            t.see("rune:z")
            t.type("\x1b")
            t.gone("My panel")
        t.type("call t\n")
        t.see("answer of t", "it goes on")
        ends(w, t)


@test("the terminal goes away", needs="sandbox")
def hangup(w):
    mk(w)
    for panel in (False, True):
        t = start(w, "pn")
        if panel:
            t.type("/p\n")
            t.see("My panel")
        t.close()
        try:
            rc = t.p.wait(15)
        except Exception as e:
            rc = e
        w.check(rc in (0, 129, -1), "it ends: %s" % rc)


HOSTILE = r'''
    hello("evil", "commands", "panels", "tools"); cmd("p"); tool("t"); ready()
    E = ["\x1b]0;owned\x07", "\x1b]52;c;aWQ=\x07", "\x1b[2J\x1b[H", "\x1b[5A",
         "\x1bc", "\x1b[?1049l", "\x1bPq\x1b\\", "\x9b2J", "\x1b[31", "\x1b",
         "\x1b]0;no end", "\r", "\b\b\b", "\x07", "\x0e", "\u202eabc",
         "\u200bzw", "\x1b[8mhidden", "\x1b[>4;2m", "\x1b[6n", "\x00",
         "\ue000", "\ufffe", "\u2028", "\u0301" * 60, "\t" * 40, "\n" * 9]
    L = ["<" + e + ">" for e in E] + ["\x1b[" + "1;" * 200 + "m.", "\u6f22" * 500]
    P = {"id": "m", "title": "T" + "".join(E), "lines": L, "footer": "F" +
         "".join(E)}
    def command(f):
        for e in E: note(e)
        note("[zotbox] fake\nzotbox: fake\nzotbox> fake")
        emit(type="command_response", id=f["id"], action="open_panel",
             open_panel=P)
    serve(command_invoked=command, panel_key=lambda f: emit(
        type="panel_render", panel_id="m", title=P["title"] + f["key"],
        lines=L[::-1], footer=P["footer"]),
        tool_call=lambda f: text(f["id"], "".join(E)))
'''


@test("a hostile panel draws characters, and nothing else", needs="sandbox")
def hostile(w):
    w.mkext("evil", HOSTILE)
    for cols in (80, 20):
        t = start(w, "evil", rows=50, cols=cols)
        t.type("/p\n")
        t.see("Esc closes")
        t.type("\x1b[A\x1b[B")
        t.settle(1)
        w.equal(t.row(0)[:5], " evil", "the first row is ours", t.text())
        w.check(t.screen.alternate, "the screen is ours")
        t.type("\x1b")
        t.gone("Esc closes")
        t.type("call t\n")
        t.see("[evil] result")
        t.settle()
        w.equal(set(t.titles) - {b"104"}, set(), "no title, no clipboard "
                "(104: ncurses, the colours as they were)")
        w.equal(t.unknown, [], "no sequence of its own")
        for bad in (b"\x1b]0", b"\x1b]5", b"\x1bP", b"\x1bc", b"\x1b[6n", b"\x1b[8m",
                    b"\xc2\x9b", "\u202e".encode(), "\u200b".encode(),
                    b"owned"):
            w.check(bad not in t.raw, "%r never reached the terminal" % bad)
        w.check(not any(r.startswith(("zotbox> fake", "[zotbox]"))
                        for r in t.screen.lines()),
                "and no line passes for ours", t.text())
        ends(w, t)
    t = start(w, "evil", rows=50, env={"TERM": "dumb"})
    t.type("/p\ncall t\n")
    t.see("[evil] result")
    t.settle()
    w.check(b"\x1b" not in t.raw and b"\x9b" not in t.raw,
            "printed lines are as clean")
    t.type("\x04")
    w.equal(t.wait(), 0)


@test("a flood of renders and notes stops nobody's keys", needs="sandbox")
def flood(w):
    w.mkext("flood", r'''
        import threading
        hello("flood", "panels", "commands"); cmd("p"); ready()
        def run():
            for i in range(20000):
                emit(type="panel_render", panel_id="m",
                     lines=["row %d %d" % (i, k) for k in range(20)])
                note("note %d" % i)
        def command(f):
            emit(type="command_response", id=f["id"], action="open_panel",
                 open_panel={"id": "m", "title": "Flood", "lines": []})
            threading.Thread(target=run, daemon=True).start()
        serve(command_invoked=command)
    ''')
    t = start(w, "flood")
    t.type("/p\n")
    t.see("row ")
    begin = time.time()
    t.type("\x03")
    w.check(t.until(lambda: not t.screen.alternate, 10),
            "the panel closes: %.1f s" % (time.time() - begin), t.text())
    begin = time.time()
    t.type("\x04")
    ends(w, t, how=None)
    w.check(time.time() - begin < 10, "and it ends")


@test("nobody is kept in panels", needs="sandbox")
def trapped(w):
    w.mkext("trap", r'''
        hello("trap", "panels", "tools"); tool("go"); ready(); n = [0]
        def again(f=None):
            n[0] += 1
            emit(type="open_panel", panel={"id": "t%d" % n[0],
                 "title": "Trap %d" % n[0], "lines": []})
        def go(f): text(f["id"], "going"); again()
        serve(tool_call=go, panel_close=again)
    ''')
    scope = w.scope("trap", {"protocol": {"panels": "any"}})
    t = start(w, "trap", options=("--scope", scope))
    t.type("call go\n")
    for i in (1, 2, 3):
        t.see("Trap %d" % i)
        t.type("\x03")
    t.see("trap opens a panel again; it is closed until you enter a line",
          "held back after three")
    t.type("call go\n")
    w.check(t.until(lambda: "Trap" in t.row(0)),
            "and shown again after a line", t.text())
    t.p.send_signal(signal.SIGTERM)
    ends(w, t, 143, how=None)


@test("last open wins", needs="sandbox")
def last(w):
    body = r'''
        hello("NAME", "panels", "tools"); tool("NAME"); ready()
        def call(f):
            text(f["id"], "opened"); time.sleep(f["args"].get("s", 0))
            emit(type="open_panel", panel={"id": "same",
                 "title": "of NAME", "lines": []})
        serve(tool_call=call, panel_close=lambda f: note("closed"),
            panel_key=lambda f: emit(type="panel_render", panel_id="same",
                lines=["NAME got " + f["key"] + f.get("text", "")]))
    '''
    scope = w.scope("any", {"protocol": {"panels": "any"}})
    for first, second in (("aa", "bb"), ("bb", "aa")):
        for n in ("aa", "bb"):
            w.mkext(n, body.replace("NAME", n)) \
                if not os.path.exists(w.path(n)) else None
        t = start(w, "aa", "bb", options=("--scope", scope))
        t.type('call %s {"s": 1} &\ncall %s\n' % (second, first))
        t.see("%s: of %s" % (first, first))
        t.type("k")
        t.see("%s got runek" % first)
        t.see("%s: of %s" % (second, second), "the second takes its place")
        t.type("q")
        t.see("%s got runeq" % second, "and its keys")
        w.check("%s got runeq" % first not in t.text(), "the first none")
        t.type("\x1b")
        t.gone("of " + second)
        t.see("[%s] closed" % first, "the first was told")
        t.see("[%s] closed" % second, "the second too")
        ends(w, t)


@test("scripts are as they were", needs="sandbox")
def script(w):
    mk(w)
    c = w.console("./pn", ["call t", "/p", "key main up", "sleep 0.3"])
    w.equal([h.type for h in c.lines], ["result", "open_panel",
                                        "panel_render"], "frames", c)
    # Only one of the two is a terminal: a script.
    t = Terminal(w, ["console", w.path("pn")])
    t.close()
    t.p.wait(15)
    master, slave = os.openpty()
    p = w.spawn([ZOTBOX, "console", w.path("pn")], stdin=slave,
                stdout=-1, stderr=-1, start_new_session=True)
    os.write(master, b"call t\nshutdown\n")
    out = p.communicate(timeout=20)[0]
    w.check(out.startswith(b"H: pn result {"), "output into a pipe", out)
    os.close(master)
    os.close(slave)


main()
