"""talk - rows: transcripts of a client, a host and extensions, read from files.

README.md describes the format. read(PATH) gives the rows of a file."""
import json
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))

# What an extension of a row may do where the host asks for permission: all.
# A row that needs less, or another limit, says so.
SCOPE = {"protocol": {
    "panels": "any", "submit": True, "slash": ["help", "skills"],
    "call_tool": ["read"], "event_content": True,
    "events": ["session_start", "turn_start", "turn_end", "tool_call",
               "tool_confirmation_requested", "assistant_message"],
    "intercept": {"tool_call": ["block", "modify:look"],
                  "turn_start": ["block"],
                  "assistant_message": ["block", "replace"]}},
    "limits": {"submits": 50}}


class Row:
    def __init__(self, file, name, title):
        self.file, self.name, self.title = file, name, title
        self.skips = {}         # driver: why
        self.scope = None
        self.exts = []          # names, in load order
        self.manifests = {}     # name: what differs from the usual
        self.runs = {}          # name: [[step]], a list a start
        self.host = []          # [step]

    def merged_scope(self):
        return merge(SCOPE, self.scope or {})

    def types(self):
        """What the client is to see."""
        return {t for s in flat(self.host) if s[0] == "sees"
                for _, t, _ in s[1]}

    def verbs(self):
        """What the client does."""
        return {"cmd" if s[1][0] == "/" else s[1].split()[0]
                for s in flat(self.host) if s[0] == "do"}


def merge(a, b):
    if not isinstance(a, dict) or not isinstance(b, dict):
        return b
    return {k: merge(a[k], b[k]) if k in a and k in b else b.get(k, a.get(k))
            for k in list(a) + [k for k in b if k not in a]}


def flat(steps):
    for s in steps:
        if s[0] == "repeat":
            yield from flat(s[2])
        else:
            yield s


class BadRow(Exception):
    pass


# ---- steps of an extension ----

ACK = {"type": "hello_ack", "...": 0}


def up(what):
    """What an extension says and hears until it is ready."""
    name = what.pop("name")
    caps = what.pop("capabilities", ["commands", "tools", "events", "panels"])
    steps = [["say", {"type": "hello", "name": name, "version": "1.0.0",
                      "capabilities": caps}], ["hear", [ACK]]]
    for n in what.pop("commands", []):
        steps.append(["say", {"type": "register_command", "name": n,
                              "description": "command " + n}])
    for key in ("tools", "deferred"):
        for n in what.pop(key, []):
            f = {"type": "register_tool", "name": n,
                 "description": "tool " + n, "schema": {"type": "object"}}
            if key == "deferred":
                f["deferred"] = True
            steps.append(["say", f])
    events, cut = what.pop("events", []), what.pop("intercept", [])
    if events or cut:
        steps.append(["say", {"type": "subscribe", "events": events,
                              "intercept": cut}])
    if what:
        raise BadRow("up: %s?" % list(what))
    return steps + [["say", {"type": "ready"}]]


def ext_steps(name, verb, rest):
    if verb == "<":
        return [["say", json.loads(rest)]]
    if verb in (">", ">*"):
        return [["hear", [json.loads(rest)]]]
    if verb == "soon":
        seconds, text = rest.split(None, 1)
        return [["hear", [json.loads(text)], float(seconds)]]
    if verb == "hello":
        return up({"name": name})[:2]
    if verb == "up":
        return up(dict(json.loads(rest or "{}"), name=name))
    if verb == "raw":
        text, at = json.JSONDecoder().raw_decode(rest)
        return [["raw", text, int(rest[at:] or 1)]]
    if verb == "err":
        return [["err", json.loads(rest)]]
    if verb == "name":
        return [["name", rest]]
    if verb in ("sleep", "quiet"):
        return [[verb, float(rest)]]
    if verb in ("exit", "signal"):
        return [[verb, int(rest)]]
    if verb in ("close", "hang", "refused", "mute"):
        return [[verb]]
    raise BadRow("%s %s?" % (name, verb))


# ---- steps of the client ----

def host_steps(verb, rest):
    if verb in ("sees", "sees*"):
        ext, kind, text = (rest.split(None, 2) + ["{}"])[:3]
        return [["sees", [[ext, kind, json.loads(text)]]]]
    if verb in ("wait", "quiet"):
        return [[verb, float(rest)]]
    if verb in ("log", "nolog"):
        ext, text = rest.split(None, 1)
        return [[verb, ext, text]]
    return [["do", (verb + " " + rest).rstrip()]]


def add(steps, new, joins):
    """`>*` and `sees*` after one of their kind: any order among them."""
    if joins and steps and steps[-1][0] == new[0][0] and steps[-1][-1] == "*":
        steps[-1][1].extend(new[0][1])
        return
    steps.extend([s + ["*"] if joins else s for s in new])


def unmarked(steps):
    return [["repeat", s[1], unmarked(s[2])] if s[0] == "repeat" else
            s[:-1] if s[-1] == "*" else s for s in steps]


LINE = re.compile(r"(?:(\d+)x\s+)?(\S+)\s+(\S+)(?:\s+(.*))?")


def read_line(row, line):
    m = LINE.fullmatch(line)
    if not m:
        raise BadRow("what is this?")
    times, who, verb, rest = m[1], m[2], m[3], m[4] or ""
    if who == "skip":
        row.skips[verb.rstrip(":")] = rest
    elif who == "scope":
        row.scope = json.loads(line[6:])
    elif who == "ext":
        row.exts.append(verb)
        row.manifests[verb] = json.loads(rest or "{}")
        row.runs[verb] = [[]]
    elif who == "host":
        step(row.host, host_steps(verb, rest), times, verb[-1] == "*")
    elif who in row.runs and verb == "again":
        row.runs[who].append([])
    elif who in row.runs:
        step(row.runs[who][-1], ext_steps(who, verb, rest), times,
             verb == ">*")
    else:
        raise BadRow("no extension %s" % who)


def step(steps, new, times, joins):
    """A line with a number plays as often; consecutive ones together."""
    if not times:
        add(steps, new, joins)
    elif steps and steps[-1][0] == "repeat" and steps[-1][1] == int(times):
        add(steps[-1][2], new, joins)
    else:
        steps.append(["repeat", int(times), []])
        add(steps[-1][2], new, joins)


def read(path):
    rows, file = [], os.path.basename(path)[:-5]
    with open(path, encoding="utf-8") as f:
        for n, line in enumerate(f.read().splitlines(), 1):
            line = line.strip()
            if not line or line[0] == "#":
                continue
            try:
                if line.startswith("row "):
                    name, title = line[4:].split(":", 1)
                    rows.append(Row(file, name.strip(), title.strip()))
                else:
                    read_line(rows[-1], line)
            except (ValueError, IndexError, BadRow) as e:
                raise BadRow("%s:%d: %s (%s)" % (path, n, line, e)) from None
    for r in rows:
        r.host = unmarked(r.host)
        r.runs = {k: [unmarked(s) for s in v] for k, v in r.runs.items()}
    return rows


def all_rows():
    top = os.path.join(HERE, "rows")
    return [r for n in sorted(os.listdir(top)) if n.endswith(".talk")
            for r in read(os.path.join(top, n))]
