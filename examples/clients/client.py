#!/usr/bin/env python3
"""Three extensions driven through `zotbox host`: client.py [ZOTBOX]"""
import json, os, subprocess, sys

here = os.path.dirname(os.path.realpath(__file__)) + "/"
exts = ["--ext=" + here + n for n in ("notes", "picture", "guard")]
host = subprocess.Popen(
    [sys.argv[1] if sys.argv[1:] else "zotbox", "host", "--no-ext", *exts,
     "--policy", here + "policy.json", "--yes-i-mean-it"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
ids, events = iter(range(1, 1000)), []

def read():
    line = json.loads(host.stdout.readline() or sys.exit("the host ended"))
    return line if line["type"] == "response" else events.append(line)

def ask(type, **fields):
    host.stdin.write(json.dumps(dict(fields, type=type, id=next(ids))) + "\n")
    host.stdin.flush()
    while not (reply := read()):
        pass
    return reply["data"] if reply["success"] else sys.exit(reply["error"])

def event(type):
    while not (found := [e for e in events if e["type"] == type]):
        read()
    events.remove(found[0])
    return found[0]

bash = lambda c: ask("intercept", event="tool_call", tool_name="bash", tool_args={"command": c})
print("command", ask("invoke", name="notes", args="milk")["open_panel"]["lines"])
print("panel", event("ext_panel_open")["panel_id"])
for key in ({"key": "rune", "text": "x"}, {"key": "enter"}, {"key": "delete"}):
    ask("panel_key", panel_id="notes", **key)
print("keys", [event("ext_panel_render")["lines"] for _ in range(3)][-1])
print("submit", event("ext_submit")["text"])
print("image", [b.get("mime_type", b.get("text")) for b in ask("tool_call", name="pixel")["content"]])
print("rewrite", bash("ls")["modified_args"]["command"])
print("block", bash("rm x")["reason"], [o["outcome"] for o in bash("rm x")["by"]])
print("reload", ask("reload")["ready"], "shutdown", ask("shutdown"), "exit", host.wait())
