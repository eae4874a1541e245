#!/usr/bin/env python3
"""sentry - watches what happens, and refuses commands that destroy. It keeps a
diary in the directory for temporary files."""
import json
import os
import re
import sys
import tempfile

WATCHED = ["session_start", "turn_start", "tool_call", "turn_end"]
REFUSED = [r"\brm\s+-\w*r", r"\bmkfs\b", r"\bshutdown\b"]
diary = open(os.path.join(tempfile.gettempdir(), "sentry-diary.log"), "a")


def emit(**frame):
    sys.stdout.write(json.dumps(frame, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def note(*words):
    for out in (diary, sys.stderr):
        print("sentry:", *words, file=out, flush=True)


def judge(f):
    if f.get("tool_name") != "bash":
        return {}
    command = str((f.get("tool_args") or {}).get("command"))
    for pattern in REFUSED:
        if re.search(pattern, command):
            note("refused", command)
            return {"block": True, "reason": "sentry: \"%s\" is not for you "
                    "(rule %s)" % (command, pattern)}
    return {}


emit(type="hello", name="sentry", version="3.0.0",
     capabilities=["commands", "tools", "events", "panels"])
for line in sys.stdin:
    f = json.loads(line)
    if f["type"] == "hello_ack":
        emit(type="subscribe", events=WATCHED, intercept=["tool_call"])
        emit(type="ready")
    elif f["type"] == "event":
        note(f["event"], f.get("tool_name", ""), f.get("stop", ""),
             json.dumps(f.get("tool_args")))
    elif f["type"] == "event_intercept":
        emit(type="event_intercept_response", id=f["id"], **judge(f))
    elif f["type"] == "shutdown":
        emit(type="shutdown_ack")
        break
