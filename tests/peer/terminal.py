"""terminal - a program on a terminal of its own, and what its user sees.

    t = Terminal(w, ["zot", ...])
    t.until("text")     wait until the screen shows it
    t.type("text")      t.key("enter"), t.key("esc"), ...
    t.screen()          the lines as they stand
    t.raw               every byte that was written
    t.wait(), t.end()   exit status; end it however it is"""
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
import unicodedata

ROWS, COLS = 50, 120
KEYS = {"enter": "\r", "esc": "\x1b", "up": "\x1b[A", "down": "\x1b[B",
        "backspace": "\x7f", "ctrl-c": "\x03", "ctrl-d": "\x04"}
PIECE = re.compile(
    r"\x1b\[([0-?]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[PX^_][^\x1b]*\x1b\\|\x1b[()*+].|\x1b([^\[\]PX^_()*+])|([^\x1b])",
    re.S)


class Terminal:
    def __init__(self, w, argv, cwd=None, env=None):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ,
                    struct.pack("HHHH", ROWS, COLS, 0, 0))

        def take():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self.p = w.spawn(argv, cwd=cwd or w.project, stdin=theirs,
                         stdout=theirs, stderr=theirs, start_new_session=True,
                         preexec_fn=take,
                         env=dict(w.env, TERM="xterm-256color", **(env or {})))
        os.close(theirs)
        self.fd = ours
        self.raw = b""
        self.text, self.at = "", 0      # decoded, and how far it was drawn
        self.row = self.col = 0
        self.clear()

    def clear(self):
        self.lines = [[" "] * COLS for _ in range(ROWS)]

    # -- what the program writes --

    def read(self, seconds):
        """False at the end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            more = os.read(self.fd, 1 << 16)
        except OSError:
            more = b""
        self.raw += more
        if b"\x1b[6n" in more:
            self.write("\x1b[1;1R")
        if b"\x1b[c" in more:
            self.write("\x1b[?1;2c")
        self.draw()
        return bool(more)

    def draw(self):
        # What is cut off in the middle waits for its rest.
        self.text = self.raw.decode("utf-8", "ignore")
        while True:
            m = PIECE.match(self.text, self.at)
            if not m:
                return
            self.at = m.end()
            if m[2]:
                self.control(m[1], m[2])
            elif m[4]:
                self.put(m[4])

    def put(self, c):
        if c == "\r":
            self.col = 0
        elif c == "\n":
            self.down()
        elif c == "\b":
            self.col = max(0, self.col - 1)
        elif c >= " ":
            wide = unicodedata.east_asian_width(c) in "WF"
            if unicodedata.combining(c):
                return
            if self.col >= COLS:
                self.col = 0
                self.down()
            self.lines[self.row][self.col] = c
            if wide and self.col + 1 < COLS:
                self.lines[self.row][self.col + 1] = ""
            self.col += 1 + wide

    def down(self):
        if self.row + 1 < ROWS:
            self.row += 1
        else:
            del self.lines[0]
            self.lines.append([" "] * COLS)

    def control(self, args, final):
        if args[:1] in ("?", ">", "<", "="):
            if final in "hl" and "1049" in args:
                self.clear()
            return
        n = [int(a) if a.isdigit() else 0 for a in re.split("[;:]", args)]
        one = max(1, n[0])
        if final in "Hf":
            self.row = min(ROWS, one) - 1
            self.col = min(COLS, max(1, (n + [1])[1])) - 1
        elif final in "AF":
            self.row = max(0, self.row - one)
        elif final in "BE":
            self.row = min(ROWS - 1, self.row + one)
        elif final == "C":
            self.col = min(COLS - 1, self.col + one)
        elif final == "D":
            self.col = max(0, self.col - one)
        elif final in "G`":
            self.col = min(COLS, one) - 1
        elif final == "d":
            self.row = min(ROWS, one) - 1
        elif final == "K":
            self.erase(self.row, n[0])
        elif final == "J":
            self.erase(self.row, n[0])
            if n[0] in (0, 2, 3):
                for r in range(self.row + 1, ROWS):
                    self.lines[r] = [" "] * COLS
            if n[0] in (1, 2, 3):
                for r in range(self.row):
                    self.lines[r] = [" "] * COLS
        if final in "EF":
            self.col = 0

    def erase(self, row, how):
        col = min(self.col, COLS - 1)
        first, end = ((col, COLS), (0, col + 1), (0, COLS), (0, COLS))[how]
        self.lines[row][first:end] = [" "] * (end - first)

    # -- what the user sees and does --

    def screen(self):
        return "\n".join("".join(l).rstrip() for l in self.lines)

    def until(self, what, seconds=15):
        """what: a text, or a function of the screen. Is it seen in time?"""
        seen = what if callable(what) else lambda s: what in s
        end = time.time() + seconds
        while not seen(self.screen()):
            left = end - time.time()
            if left <= 0 or not self.read(min(left, 0.2)):
                return seen(self.screen())
        return True

    def settle(self, seconds=0.3):
        """Until it is quiet for so long."""
        last = time.time()
        while time.time() - last < seconds:
            before = len(self.raw)
            if not self.read(0.05):
                return
            if len(self.raw) > before:
                last = time.time()

    def write(self, text):
        os.write(self.fd, text.encode())

    def type(self, text):
        for c in text:
            self.write(c)
            self.read(0.01)

    def key(self, *names):
        for name in names:
            self.write(KEYS[name])
            self.read(0.05)

    def wait(self, seconds=10):
        """Exit status, None if it does not end."""
        end = time.time() + seconds
        while self.p.poll() is None and time.time() < end:
            self.read(0.05)
        return self.p.poll()

    def end(self):
        if self.p.poll() is None:
            self.p.kill()
            self.p.wait()
        os.close(self.fd)
