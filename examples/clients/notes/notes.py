#!/usr/bin/env python3
"""A command that opens a panel, keys that change it, a prompt submitted."""
import json
import sys


def emit(**frame):
    print(json.dumps(frame), flush=True)


def panel():
    return {"title": "Notes", "lines": lines or ["(none)"],
            "footer": "type, enter keeps it, delete submits them"}


lines, typed = [], ""
emit(type="hello", name="notes", version="1.0.0",
     capabilities=["commands", "panels"])
for line in sys.stdin:
    f = json.loads(line)
    if f["type"] == "hello_ack":
        emit(type="register_command", name="Notes", description="show them")
        emit(type="subscribe", events=["turn_end"], intercept=["tool_call"])
        emit(type="ready")
    elif f["type"] == "command_invoked":
        lines += [f["args"]] if f.get("args") else []
        emit(type="command_response", id=f["id"], action="open_panel",
             open_panel=dict(panel(), id="notes"))
    elif f["type"] == "panel_key":
        if f["key"] == "rune":
            typed += f["text"]
        elif f["key"] == "enter":
            lines, typed = lines + [typed], ""
        elif f["key"] == "delete":
            emit(type="submit", text="Summarize: " + "; ".join(lines))
        emit(type="panel_render", panel_id="notes", **panel())
    elif f["type"] == "event":
        emit(type="notify", level="info", message="%d notes" % len(lines))
    elif f["type"] == "event_intercept":
        emit(type="event_intercept_response", id=f["id"])
    elif f["type"] == "shutdown":
        emit(type="shutdown_ack")
        break
