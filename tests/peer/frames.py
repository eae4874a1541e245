"""frames - what host and extension say to each other, written down and played.

A transcript is a text of runs; each starts with `# run: TITLE`, then a line a
frame: `> FRAME` the host says, `< FRAME` the extension says, and `! STATUS` at
the end. `$NAME` stands for what the player is told, `TIME` for any point in
time (RFC 3339, UTC).

play() takes the host's part. It says what stands behind `>` and waits for as
many frames as stand behind `<`, whatever they say: comparing is the caller's.
Renders of a panel that is not open are kept apart, since a host drops them and
whoever stands between may.
"""
import json
import re
import subprocess

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Played:
    def __init__(self):
        self.said = []      # what the host said, lines
        self.heard = []     # what it heard, lines, without stray renders
        self.stray = []     # renders of panels that are not open
        self.wanted = []    # what the transcript has in place of heard
        self.rc = self.want_rc = None


def runs(path, names):
    """[(title, [(mark, line)])]"""
    found = []
    with open(path, encoding="utf-8") as f:
        for line in f.read().splitlines():
            if line.startswith("# run: "):
                found.append((line[7:], []))
            elif line[:2] in ("> ", "< ", "! "):
                for k in sorted(names, key=len, reverse=True):
                    line = line.replace("$" + k, names[k])
                found[-1][1].append((line[0], line[2:]))
    return found


def untimed(line):
    return TIME.sub("TIME", line)


class Panels:
    """Which panel the user sees, from both sides' frames."""
    def __init__(self):
        self.open = None

    def is_stray(self, line):
        f = json.loads(line)
        return f["type"] == "panel_render" and f["panel_id"] != self.open

    def note(self, line):
        f = json.loads(line)
        if f["type"] == "open_panel":
            self.open = f["panel"]["id"]
        elif f.get("action") == "open_panel":
            self.open = f["open_panel"]["id"]
        elif f["type"] == "panel_close" and f["panel_id"] == self.open:
            self.open = None


def play(peer, entries, drops_stray):
    """peer: .send(bytes) .recv(seconds) -> frame, .raw, .close() .wait()"""
    p, panels = Played(), Panels()
    for mark, line in entries:
        if mark == ">":
            panels.note(line)
            p.said.append(line)
            peer.send(line.encode())
            if json.loads(line)["type"] == "shutdown":
                peer.close()        # as the host does, at once
        elif mark == "<":
            stray = panels.is_stray(line)
            panels.note(line)
            if not stray:
                p.wanted.append(line)
            if stray and drops_stray:
                continue
            try:
                ended = peer.recv(10) is None
            except TimeoutError:
                ended = True
            got = "(nothing)" if ended else untimed(peer.raw.decode())
            (p.stray if stray else p.heard).append(got)
        else:
            p.want_rc = int(line)
    peer.close()
    try:
        while peer.recv(5) is not None:
            p.heard.append("too much: " + peer.raw.decode())
        p.rc = peer.wait(5)
    except (TimeoutError, subprocess.TimeoutExpired):
        p.rc = "does not end"
    return p


def without_capabilities(lines):
    """`hello` as data without its capabilities, the rest as it is."""
    out = []
    for line in lines:
        f = json.loads(line) if line.startswith("{") else {}
        if f.get("type") == "hello":
            f.pop("capabilities", None)
            line = json.dumps(f, sort_keys=True)
        out.append(line)
    return out


def without_data_dir(lines):
    """`hello_ack` as data without data_dir, the rest as it is."""
    out = []
    for line in lines:
        f = json.loads(line)
        if f.get("type") == "hello_ack":
            f.pop("data_dir", None)
            line = json.dumps(f, sort_keys=True)
        out.append(line)
    return out
