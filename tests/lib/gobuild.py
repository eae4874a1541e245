"""gobuild - build a program in Go for a test.

    go_build(DIRECTORY, OUT)    why it cannot be built, or ""

No network, no cgo, no HOME of anybody. What the compiler keeps lies in the
build directory (make clean removes it), so that each library is compiled once
and not by each test."""
import os
import shutil
import subprocess
import tempfile

from zbtest import BUILD


def go_build(directory, out):
    go = shutil.which("go")
    if not go:
        return "go is not installed"
    cache = os.path.join(BUILD, "tests/gocache")
    with tempfile.TemporaryDirectory(prefix="zbtest-") as top:
        try:
            os.makedirs(cache, exist_ok=True)
        except OSError:
            pass
        if not os.access(cache, os.W_OK):
            cache = os.path.join(top, "cache")
        r = subprocess.run([go, "build", "-o", out, "."], cwd=directory,
                           capture_output=True, text=True, env=dict(
                               os.environ, GOCACHE=cache, GOFLAGS="",
                               CGO_ENABLED="0", GOPROXY="off", HOME=top,
                               GO111MODULE="on", GOTOOLCHAIN="local"))
    return "" if not r.returncode else r.stderr.strip()[:300] or "failed"
