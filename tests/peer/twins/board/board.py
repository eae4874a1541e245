#!/usr/bin/env python3
"""board - tasks in a panel and behind a tool. They are kept in a file in the
directory that the host names, and written by renaming."""
import json
import os
import sys

PANEL = "board-%s" % sys.argv[2]
FOOTER = "up/down move - x done - d drop - n new - esc leave"
data_dir = None
board = None        # {"tasks": [[text, done]], "at": n}
typing = None       # text of a new task while it is typed


def emit(**frame):
    sys.stdout.write(json.dumps(frame, ensure_ascii=False,
                                separators=(",", ":")) + "\n")
    sys.stdout.flush()


def load():
    global board
    if board is not None:
        return
    try:
        with open(os.path.join(data_dir, "board.json")) as f:
            board = json.load(f)
    except FileNotFoundError:
        board = {"tasks": [["sweep the deck", False]], "at": 0}
        save()


def save():
    board["at"] = max(0, min(board["at"], len(board["tasks"]) - 1))
    path = os.path.join(data_dir, "board.json")
    with open(path + ".new", "w") as f:
        json.dump(board, f)
    os.rename(path + ".new", path)


def panel():
    tasks = board["tasks"]
    done = sum(1 for t in tasks if t[1])
    if typing is not None:
        lines = ["new task", "", typing + "_"]
    else:
        lines = ["%s %s %s" % (">" if i == board["at"] else " ",
                               "✔" if d else "·", text)
                 for i, (text, d) in enumerate(tasks)] or ["nothing to do"]
    return {"title": "Board (%d of %d done)" % (done, len(tasks)),
            "lines": lines, "footer": FOOTER}


def render():
    emit(type="panel_render", panel_id=PANEL, **panel())


def key(k, text):
    global typing
    load()
    tasks, at = board["tasks"], board["at"]
    if typing is not None:
        if k == "enter":
            if typing.strip():
                tasks.append([typing.strip(), False])
                board["at"] = len(tasks) - 1
            typing = None
        elif k == "backspace":
            typing = typing[:-1]
        elif k == "rune":
            typing += text
    elif k in ("up", "down"):
        board["at"] += 1 if k == "down" else -1
    elif text == "x" and tasks:
        tasks[at][1] = not tasks[at][1]
    elif text == "d" and tasks:
        del tasks[at]
    elif text == "n":
        typing = ""
    save()
    render()


def tool(args):
    load()
    do, name = args.get("do"), str(args.get("task") or "").strip()
    at = [i for i, t in enumerate(board["tasks"]) if t[0] == name]
    if do == "show":
        return "\n".join("[%s] %s" % ("x" if d else " ", t)
                         for t, d in board["tasks"]) or "nothing", False
    if do == "put" and name:
        board["tasks"].append([name, False])
        board["at"] = len(board["tasks"]) - 1
    elif do == "finish" and at:
        board["tasks"][at[0]][1] = True
    else:
        return "the board cannot do that", True
    save()
    render()        # also when nobody looks
    return "noted", False


emit(type="hello", name="task-board", version="0.4.0",
     capabilities=["commands", "tools", "events", "panels"])
for line in sys.stdin:
    f = json.loads(line)
    kind = f["type"]
    if kind == "hello_ack":
        data_dir = f.get("data_dir") or f["extension_dir"]
        emit(type="register_command", name="board",
             description="look at the board of tasks")
        emit(type="register_tool", name="board_tasks",
             description="Show, put or finish tasks on the board.",
             schema={"type": "object", "properties": {
                 "do": {"type": "string", "enum": ["show", "put", "finish"]},
                 "task": {"type": "string"}}, "required": ["do"]})
        emit(type="ready")
    elif kind == "command_invoked":
        load()
        emit(type="command_response", id=f["id"], action="open_panel",
             open_panel={"id": PANEL, **panel()})
    elif kind == "panel_key" and f["panel_id"] == PANEL:
        key(f["key"], f.get("text", ""))
    elif kind == "tool_call":
        text, failed = tool(f.get("args") or {})
        r = {"content": [{"type": "text", "text": text}]}
        if failed:
            r["is_error"] = True
        emit(type="tool_result", id=f["id"], **r)
    elif kind == "shutdown":
        emit(type="shutdown_ack")
        break
