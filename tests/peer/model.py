"""model - a model server on loopback that says what it was told to say, so that
an agent can run whole turns.

    m = Model([tool("tide", harbour="Cork"), say("done")])
    m.url           what the agent is given as its base URL
    m.requests      bodies of the requests so far: what a model was shown
    m.play([...])   the replies from now on; when they are used up, "ok"

It speaks chat completions, in one piece or as a stream."""
import http.server
import json
import threading


def say(text):
    return {"content": text}


def tool(name, **args):
    return tools((name, args))


def tools(*calls):
    return {"calls": calls}


class Model:
    def __init__(self, replies=()):
        self.lock = threading.Lock()
        self.requests, self.replies, self.n_calls = [], list(replies), 0
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                answer(self, "application/json", json.dumps(
                    {"data": [{"id": "parrot", "object": "model"}]}))

            def do_POST(self):
                request = json.loads(read_body(self))
                message, reason = model.next(request)
                if request.get("stream"):
                    answer(self, "text/event-stream", stream(message, reason))
                else:
                    answer(self, "application/json", json.dumps(
                        {"object": "chat.completion", "choices": [{
                            "index": 0, "message": message,
                            "finish_reason": reason}]}))

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                      Handler)
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever,
                         daemon=True).start()

    def play(self, replies):
        with self.lock:
            self.replies = list(replies)

    def next(self, request):
        with self.lock:
            self.requests.append(request)
            reply = self.replies.pop(0) if self.replies else say("ok")
            message = {"role": "assistant", "content": reply.get("content",
                                                                 "")}
            if "calls" not in reply:
                return message, "stop"
            message["tool_calls"] = []
            for i, (name, args) in enumerate(reply["calls"]):
                self.n_calls += 1
                message["tool_calls"].append({
                    "index": i, "id": "call_%d" % self.n_calls,
                    "type": "function", "function": {
                        "name": name, "arguments": json.dumps(args)}})
            return message, "tool_calls"

    def shown(self, n=-1):
        """Names of the tools that the n-th request offered."""
        return [t["function"]["name"]
                for t in self.requests[n].get("tools") or []]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def read_body(request):
    if "chunked" not in request.headers.get("Transfer-Encoding", ""):
        return request.rfile.read(int(request.headers["Content-Length"]))
    body = b""
    while True:
        size = int(request.rfile.readline().split(b";")[0], 16)
        body += request.rfile.read(size)
        request.rfile.readline()
        if not size:
            return body


def answer(request, kind, text):
    data = text.encode()
    request.send_response(200)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(data)))
    request.end_headers()
    request.wfile.write(data)


def stream(message, reason):
    parts = [
        {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 1,
                                  "total_tokens": 3}},
    ]
    return "".join("data: %s\n\n" % json.dumps(p) for p in parts) + \
        "data: [DONE]\n\n"
