#!/usr/bin/env python3
"""The rows, against zotbox console on pipes: its verbs and its lines are those
of README.md."""
import json
import os
import queue
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import suite
import zbtest


class Console:
    name = "console"

    def lacks(self, row):
        return ""

    def start(self, w, row, dirs):
        self.lines = queue.Queue()
        scope = w.scope("row", row.merged_scope())
        self.err = open(w.path("stderr"), "w+b")
        # A directory of the row's own kind is named by its path.
        self.p = w.spawn([zbtest.ZOTBOX, "console", "--scope", scope,
                          "--yes-i-mean-it", *dirs], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=self.err, bufsize=0)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.p.stdout:
            line = line.decode("utf-8", "backslashreplace").rstrip("\n")
            m = zbtest.H_LINE.fullmatch(line)
            self.lines.put((m[1], m[2], json.loads(m[3])) if m else
                           ("-", "no line of ours", line))
        self.lines.put(None)

    def do(self, line):
        try:
            self.p.stdin.write(line.encode() + b"\n")
        except BrokenPipeError:     # it ended; what is missing will tell
            pass

    def next(self, seconds):
        try:
            line = self.lines.get(timeout=seconds) if seconds else \
                self.lines.get_nowait()
        except queue.Empty:
            return None
        if line is None:
            self.lines.put(None)
        return line

    def stop(self):
        self.p.stdin.close()
        try:
            self.p.wait(10)
            self.reader.join(5)
        except subprocess.TimeoutExpired:
            return "does not end"
        finally:
            self.err.seek(0)
            self.said = self.err.read().decode("utf-8", "backslashreplace")
            self.err.close()
        # 2 to 4: nothing could start, by what is wrong with the first.
        return suite.bad_end(self.p.returncode, range(5), self.said)

    def log(self, w, ext):
        return w.log(ext)

    def words(self):
        """What it said to people, for whoever looks for a fault."""
        return getattr(self, "said", "")


if __name__ == "__main__":
    suite.main(Console, zbtest.can_sandbox())
