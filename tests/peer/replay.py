#!/usr/bin/env python3
"""Transcripts of a host and seven extensions, and one more in Go: what the host
says is said again, to the extension bare and through zotbox wrap. Both must
hear and say the same, to the byte; but wrap narrows the capabilities in hello,
keeps data_dir to itself, and drops renders of panels that nobody sees."""
import json
import os
import select
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/peer"))
from zbtest import *
import frames
import twins


class Bare:
    """An extension as a host without us starts it."""
    def __init__(self, w, dir, manifest):
        self.p = w.spawn([manifest["exec"], *manifest.get("args", [])],
                         cwd=dir, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         bufsize=0)
        self.buf = b""

    def send(self, line):
        self.p.stdin.write(line + b"\n")

    def recv(self, seconds):
        end = time.time() + seconds
        while b"\n" not in self.buf:
            left = max(0, end - time.time())
            if not select.select([self.p.stdout], [], [], left)[0]:
                raise TimeoutError()
            more = os.read(self.p.stdout.fileno(), 1 << 16)
            if not more:
                return None
            self.buf += more
        self.raw, self.buf = self.buf.split(b"\n", 1)
        return self.raw

    def close(self):
        self.p.stdin.close()

    def wait(self, seconds):
        return self.p.wait(seconds)


def tapes(dir):
    """What tape.py kept, oldest first; forgets it."""
    found = sorted((n for n in os.listdir(dir) if n.startswith(".tape-")),
                   key=lambda n: int(n[6:]))
    out = []
    for n in found:
        with open(os.path.join(dir, n), "rb") as f:
            out.append(f.read().decode().splitlines())
        os.unlink(os.path.join(dir, n))
    return out


def replay(w, source, transcript, policy, scope):
    """source: a directory with the extension, ready to run."""
    w.env["PATH"] = twins.path()
    w.env["TMPDIR"] = w.dir
    with open(os.path.join(source, "extension.json")) as f:
        name = json.load(f)["name"]
    first = twins.tape(source)
    if first == "node" or first.endswith(".js"):    # tape.py is in Python
        scope = dict(scope, fs={"exec": ["node"]})
    bare_dir = w.path("bare/extensions/" + os.path.basename(source))
    os.makedirs(os.path.dirname(bare_dir))
    subprocess.run(["cp", "-a", source, bare_dir], check=True)
    os.chmod(bare_dir, 0o755)
    with open(os.path.join(source, "extension.json")) as f:
        manifest = json.load(f)
    with open(w.path("scope.json"), "w") as f:
        json.dump(dict({"zotbox": 1}, **scope), f)
    r = w.zotbox("ext", "install", source, "--policy", policy, "--scope",
                 w.path("scope.json"), "--yes")
    w.equal(r.rc, 0, "installed", r)
    names = {"PROJECT": w.project}
    bare = frames.runs(transcript, dict(names, ZOT_HOME=w.path("bare"),
                                        NAME=os.path.basename(source)))
    wrapped = frames.runs(transcript, dict(names, ZOT_HOME=w.zot_home,
                                           NAME=name))
    private = os.path.join(w.zot_home, "zotbox", name, "home")
    for (title, b), (_, x) in zip(bare, wrapped):
        pb = frames.play(Bare(w, bare_dir, manifest), b, False)
        px = frames.play(w.wrap(name), x, True)
        w.equal(pb.heard, pb.wanted, title + ": the transcript holds")
        w.equal(frames.without_capabilities(px.heard),
                frames.without_capabilities(pb.heard),
                title + ": the host hears the same through wrap")
        w.equal((px.rc, pb.rc), (pb.want_rc, pb.want_rc), title + ": exit")
        w.equal(tapes(w.home), [pb.said], title + ": the tape holds")
        heard = tapes(private)
        w.equal([frames.without_data_dir(t) for t in heard],
                [frames.without_data_dir(px.said)],
                title + ": the extension hears the same through wrap")
        ack = json.loads([l for l in heard[0] if '"hello_ack"' in l][0])
        want = os.path.join(w.zot_home, "extensions", name)
        if policy == "strict":
            want = os.path.join(w.zot_home, "zotbox", name, "data")
        w.equal(ack["data_dir"], want, title + ": data_dir under " + policy)
    w.equal(w.ledger(name), [], "no record")


def add(twin, policy):
    title = "%s under %s" % (twin, policy)
    why = twins.unavailable(twin)

    @test(title, needs="sandbox", seconds=60)
    def one(w):
        if why:
            w.skip(twin, why)
            return
        if twins.make(w, twin, twin):
            replay(w, w.path(twin), os.path.join(
                twins.HERE, "transcripts", twin + ".frames"), policy,
                twins.SCOPES.get(twin, {}))
            if twin == "board":
                kept(w)


def kept(w):
    """The board is kept, and not where the host reads."""
    w.check(os.path.exists(w.path("zot/zotbox/task-board/data/board.json")),
            "its state is in the private data")
    w.check(not os.path.exists(w.path("zot/extensions/task-board/board.json")),
            "and not beside the code")


for twin in ("greeter", "tide", "sentry", "board", "consent", "vault", "dial",
             "tally"):
    add(twin, "strict")
add("board", "standard")

if __name__ == "__main__":
    main()
