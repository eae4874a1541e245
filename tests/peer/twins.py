"""twins - the extensions of tests/peer/twins, made ready to run."""
import atexit
import json
import os
import shutil
import subprocess
import tempfile

from gobuild import go_build
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


built = {}      # twin: directory, or why there is none


def make(w, twin, rel):
    """A copy, ready to run, at w.dir/rel. Its name, None if it cannot be built
    here (a skipped point says why)."""
    if twin not in built:
        top = tempfile.mkdtemp(prefix="zbtest-")
        atexit.register(shutil.rmtree, top, ignore_errors=True)
        built[twin] = build(twin, os.path.join(top, twin), top)
    if not os.path.isdir(built[twin]):
        w.skip(twin, "cannot be built: " + built[twin])
        return None
    os.makedirs(os.path.dirname(w.path(rel)), exist_ok=True)
    subprocess.run(["cp", "-a", built[twin], w.path(rel)], check=True)
    return NAMES.get(twin, twin)


def build(twin, to, top):
    source = os.path.join(HERE, "twins", twin)
    shutil.copytree(source, to)
    subprocess.run(["chmod", "-R", "u+w", top], check=True)
    if PROGRAMS.get(twin) == "go":
        return go_build(to, os.path.join(to, twin)) or to
    if PROGRAMS.get(twin) != "c":
        return to
    r = subprocess.run(os.environ.get("ZB_CC", "cc").split() + [
        "-O1", "-o", os.path.join(to, twin),
        os.path.join(source, twin + ".c")], capture_output=True, text=True)
    return to if not r.returncode else r.stderr.strip()[:300] or "failed"


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
