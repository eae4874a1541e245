"""twins - the extensions of tests/peer/twins, made ready to run."""
import json
import os
import shutil
import subprocess

from zbtest import SRC, SYSTEM_PATH

HERE = os.path.join(SRC, "tests/peer")

# What each needs beyond strict.
SCOPES = {
    "sentry": {"protocol": {
        "events": ["session_start", "turn_start", "tool_call", "turn_end"],
        "event_content": True, "intercept": {"tool_call": ["block"]}}},
}
PROGRAMS = {"greeter": "c", "consent": "c", "tally": "go", "vault": "node",
            "dial": "node"}
NAMES = {"board": "task-board"}     # where the manifest has another name


def unavailable(twin):
    """Why this twin cannot run here, or an empty string."""
    need = {"go": "go", "node": "node"}.get(PROGRAMS.get(twin))
    if need and not shutil.which(need, path=path()):
        return need + " is not installed"
    return ""


def path():
    """PATH of what is run: node and go may live anywhere."""
    more = [os.path.dirname(shutil.which(p)) for p in ("node", "go")
            if shutil.which(p)]
    return ":".join([SYSTEM_PATH] + more)


def make(w, twin, rel):
    """Copy it to w.dir/rel and build it. Returns its name, None if it cannot
    be built here (a skipped point says why)."""
    to = w.path(rel)
    shutil.copytree(os.path.join(HERE, "twins", twin), to)
    subprocess.run(["chmod", "-R", "u+w", to], check=True)
    kind = PROGRAMS.get(twin)
    if kind == "c":
        cc = os.environ.get("ZB_CC", "cc").split()
        argv = cc + ["-O1", "-o", os.path.join(to, twin), os.path.join(
            HERE, "twins", twin, twin + ".c")]
        env = None
    elif kind == "go":
        argv = [shutil.which("go"), "build", "-o", twin, "."]
        env = dict(os.environ, GOCACHE=w.path("gocache"), GOFLAGS="",
                   CGO_ENABLED="0", GO111MODULE="on", GOPROXY="off",
                   GOTOOLCHAIN="local", HOME=w.home)
    if kind in ("c", "go"):
        r = subprocess.run(argv, cwd=to, env=env, capture_output=True,
                           text=True)
        if r.returncode:
            w.skip(twin, "cannot be built: " + r.stderr.strip()[:300])
            return None
    return NAMES.get(twin, twin)


def tape(dir):
    """Let the extension in dir be started by tape.py."""
    shutil.copy(os.path.join(HERE, "tape.py"), dir)
    at = os.path.join(dir, "extension.json")
    with open(at) as f:
        m = json.load(f)
    m["args"] = [m["exec"], *m.get("args", [])]
    m["exec"] = "./tape.py"
    with open(at, "w") as f:
        json.dump(m, f)
    return m["args"][0]
