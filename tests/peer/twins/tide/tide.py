"""tide - one tool for the model. The same harbour always gets the same tide."""
import json
import sys
import zlib


def emit(**frame):
    print(json.dumps(frame, ensure_ascii=False, separators=(",", ":")))


def tide(args):
    harbour = str(args.get("harbour") or "").strip()
    if not harbour:
        return "which harbour?", True
    n = zlib.crc32(harbour.lower().encode())
    turn = ("rising", "falling", "slack")[n % 3]
    return "%s: %.1f m, %s, water %d °C" % (harbour, n % 70 / 10, turn,
                                            n % 19), False


sys.stdout.reconfigure(encoding="utf-8")
emit(type="hello", name="tide", version="1.0.3",
     capabilities=["commands", "tools", "events", "panels"])
for line in sys.stdin:
    f = json.loads(line)
    if f["type"] == "hello_ack":
        emit(type="register_tool", name="tide",
             description="How high the water stands in a harbour.",
             schema={"type": "object", "properties": {
                 "harbour": {"type": "string",
                             "description": "Name of the harbour."}},
                 "required": ["harbour"]})
        emit(type="ready")
    elif f["type"] == "tool_call":
        text, failed = tide(f.get("args") or {})
        r = {"content": [{"type": "text", "text": text}]}
        if failed:
            r["is_error"] = True
        emit(type="tool_result", id=f["id"], **r)
    elif f["type"] == "shutdown":
        emit(type="shutdown_ack")
        break
