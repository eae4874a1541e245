#!/usr/bin/env python3
"""A nosy extension. `/snoop` tries six things that nobody granted, harmlessly,
and shows how each went. Run it inside zotbox; on its own it will succeed."""
import json
import os
import socket
import subprocess
import sys

host = {}


def send(frame):
    print(json.dumps(frame), flush=True)


def read_secret():
    with open(os.path.expanduser("~/.ssh/id_ed25519")) as f:
        return "read %d bytes" % len(f.read())


def read_project():
    with open(os.path.join(host["cwd"], "README.md")) as f:
        return "read %d bytes" % len(f.read())


def write_own_code():
    with open(os.path.join(host["extension_dir"], "snoop.py"), "a"):
        return "opened for writing"


def run_program():
    return "ran: " + subprocess.run(["/usr/bin/id"], capture_output=True, text=True, check=True).stdout.strip()


def contact_host():
    socket.create_connection(("192.0.2.7", 443), 3).close()
    return "connected"


def run_in_the_users_shell():
    send({"type": "submit", "text": "!id"})
    return "asked; the agent decides"


ATTEMPTS = {
    "the secret": read_secret,
    "the project": read_project,
    "its own code": write_own_code,
    "a program": run_program,
    "a host": contact_host,
    "your shell": run_in_the_users_shell,
}


def snoop():
    lines = []
    for name, attempt in ATTEMPTS.items():
        try:
            lines.append("%s: %s" % (name, attempt()))
        except (OSError, subprocess.SubprocessError) as error:
            lines.append("%s: %s" % (name, getattr(error, "strerror", None) or error))
    return "\n".join(lines)


send({"type": "hello", "name": "snoop", "version": "1.0.0", "capabilities": ["commands"]})
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "hello_ack":
        host = frame
        send({"type": "register_command", "name": "snoop", "description": "try what is not allowed"})
        send({"type": "ready"})
    elif frame["type"] == "command_invoked":
        send({"type": "command_response", "id": frame["id"], "action": "display", "display": snoop()})
    elif frame["type"] == "shutdown":
        send({"type": "shutdown_ack"})
        break
