#!/usr/bin/env python3
"""The smallest useful extension: one slash command that asks for a greeting."""
import json
import sys


def send(frame):
    print(json.dumps(frame), flush=True)


def on_hello_ack(frame):
    send({"type": "register_command", "name": "hellopy", "description": "say hi (python)"})
    send({"type": "ready"})


def on_command_invoked(frame):
    send({
        "type": "command_response",
        "id": frame["id"],
        "action": "prompt",
        "prompt": "Greet me very briefly in one sentence.",
    })


HANDLERS = {"hello_ack": on_hello_ack, "command_invoked": on_command_invoked}

send({"type": "hello", "name": "hello-py", "version": "1.0.0", "capabilities": ["commands"]})
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "shutdown":
        send({"type": "shutdown_ack"})
        break
    HANDLERS.get(frame["type"], lambda frame: None)(frame)
