from json import dumps, loads
import os
import sys

# A keeper has one tool: {"op": put | take | spoil | add, "base": data | code}.
# put and take keep a word in a file (made by renaming) in data_dir or beside
# the code; spoil appends to the program itself, add puts a new file beside it.


def emit(**frame):
    print(dumps(frame), flush=True)


def work(op, base):
    path = os.path.join(base, "state")
    try:
        if op == "put":
            with open(path + ".new", "w") as f:
                f.write("kept")
            os.rename(path + ".new", path)
            return "ok"
        if op == "take":
            with open(path) as f:
                return f.read()
        with open(os.path.abspath(__file__) if op == "spoil" else
                  os.path.join(os.path.dirname(os.path.abspath(__file__)),
                               "added"), "a") as f:
            f.write("\n")
        return "done"
    except OSError:
        return "refused"


emit(type="hello", name=sys.argv[1], version="1", capabilities=["tools"])
for line in sys.stdin:
    f = loads(line)
    if f["type"] == "hello_ack":
        data = f["data_dir"]
        emit(type="register_tool", name="t", description="t",
             schema={"type": "object"})
        emit(type="ready")
    elif f["type"] == "tool_call":
        a = f["args"]
        emit(type="tool_result", id=f["id"], content=[{
            "type": "text", "text": work(
                a["op"], data if a["base"] == "data" else os.getcwd())}])
    elif f["type"] == "shutdown":
        emit(type="shutdown_ack")
        break
