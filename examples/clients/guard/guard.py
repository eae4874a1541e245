#!/usr/bin/env python3
"""An interceptor that blocks one kind of command."""
import json
import sys


def emit(**frame):
    print(json.dumps(frame), flush=True)


emit(type="hello", name="guard", version="1.0.0", capabilities=["events"])
for line in sys.stdin:
    f = json.loads(line)
    if f["type"] == "hello_ack":
        emit(type="subscribe", events=[], intercept=["tool_call"])
        emit(type="ready")
    elif f["type"] == "event_intercept":
        bad = "rm " in f["tool_args"].get("command", "")
        emit(type="event_intercept_response", id=f["id"],
             **({"block": True, "reason": "guard: no rm"} if bad else {}))
    elif f["type"] == "shutdown":
        emit(type="shutdown_ack")
        break
