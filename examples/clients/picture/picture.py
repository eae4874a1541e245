#!/usr/bin/env python3
"""A tool that answers with a picture, and an interceptor that rewrites."""
import base64
import json
import struct
import sys
import zlib


def emit(**frame):
    print(json.dumps(frame), flush=True)


def png(r, g, b):
    def part(kind, data):
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + \
            struct.pack(">I", crc)
    return b"\x89PNG\r\n\x1a\n" + \
        part(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + \
        part(b"IDAT", zlib.compress(bytes([0, r, g, b]))) + part(b"IEND", b"")


emit(type="hello", name="picture", version="1.0.0",
     capabilities=["tools", "events"])
for line in sys.stdin:
    f = json.loads(line)
    if f["type"] == "hello_ack":
        emit(type="register_tool", name="pixel", description="one red pixel",
             schema={"type": "object", "properties": {}})
        emit(type="subscribe", events=[], intercept=["tool_call"])
        emit(type="ready")
    elif f["type"] == "tool_call":
        emit(type="tool_result", id=f["id"], content=[
            {"type": "text", "text": "red"},
            {"type": "image", "mime_type": "image/png",
             "data": base64.b64encode(png(255, 0, 0)).decode()}])
    elif f["type"] == "event_intercept":
        args = dict(f["tool_args"])
        args["command"] = "set -x; " + args.get("command", "")
        emit(type="event_intercept_response", id=f["id"], modified_args=args)
    elif f["type"] == "shutdown":
        emit(type="shutdown_ack")
        break
