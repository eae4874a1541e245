"""screen - a program on a terminal, and what a person would see there.

    t = Terminal(w, ["console", w.path("x")], rows=24, cols=80, env={...})
        zotbox in a pseudo-terminal of its own, in the world's environment.
        TERM is xterm-256color unless env says else; None removes a variable.
    t.type("text\\n")       as if typed (str or bytes)
    t.see(PART, WHAT="", seconds=10)     one TAP point: PART comes into sight
    t.gone(PART, WHAT="", seconds=10)    likewise: it is no longer there
    t.until(FUNCTION, seconds=10)        wait; its value
    t.text()                what is on the screen, a line a row
    t.row(N)                one row, N may be negative
    t.column(PART)          the column where PART begins, in its row
    t.style(PART)           the SGR words in force where PART begins: a set
    t.resize(rows, cols)
    t.modes()               termios of the terminal, comparable
    t.wait(seconds=10)      exit status; everything written is read
    t.raw                   every byte that came, t.titles what was set by it
    t.p                     the process

The model knows the sequences that terminfo has for xterm and vt100; anything
else is in t.unknown, so that a test can insist that there is none."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
import unicodedata

from zbtest import ZOTBOX

SEQUENCE = re.compile(
    rb"\x1b\[([?>=]?)([0-9;:]*)([ -/]*)([@-~])|\x1b\]([^\x07\x1b]*)(?:\x07|"
    rb"\x1b\\)|\x1b[PX^_]([^\x1b]*)\x1b\\|\x1b([()*+])(.)|\x1b([=>78DEMHc])")
PARTIAL = re.compile(rb"\x1b(?:\[[?>=]?[0-9;:]*[ -/]*|\][^\x07\x1b]*\x1b?|"
                     rb"[PX^_][^\x1b]*\x1b?|[()*+])?\Z")


def width(ch):
    if unicodedata.combining(ch) or unicodedata.category(ch) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(ch) in "WF" else 1


class Screen:
    def __init__(self, rows, cols):
        self.size(rows, cols)
        self.rest, self.unknown, self.titles = b"", [], []
        self.alternate = self.hidden = False
        self.saved = None

    def size(self, rows, cols):
        old = getattr(self, "grid", [])
        self.rows, self.cols = rows, cols
        self.grid = [[(" ", frozenset())] * cols for _ in range(rows)]
        for r, line in enumerate(old[:rows]):
            self.grid[r][:len(line)] = line[:cols]
        self.y = min(getattr(self, "y", 0), rows - 1)
        self.x = min(getattr(self, "x", 0), cols - 1)
        self.top, self.bottom = 0, rows - 1
        self.sgr = frozenset()
        self.last = " "

    # -- bytes --

    def feed(self, data):
        data = self.rest + data
        self.rest = b""
        i = 0
        while i < len(data):
            c = data[i]
            if c == 0x1b:
                m = SEQUENCE.match(data, i)
                if m:
                    self.sequence(m)
                    i = m.end()
                    continue
                if PARTIAL.match(data, i):
                    self.rest = data[i:]
                    return
                self.unknown.append(data[i:i + 12])
                i += 1
            elif c < 0x20 or c == 0x7f:
                self.control(c)
                i += 1
            else:
                n = 1 if c < 0x80 else 2 if c < 0xe0 else 3 if c < 0xf0 else 4
                if i + n > len(data):
                    self.rest = data[i:]
                    return
                self.put(data[i:i + n].decode("utf-8", "replace")[0])
                i += n

    def control(self, c):
        if c == 13:
            self.x = 0
        elif c in (10, 11, 12):
            self.down()
        elif c == 8:
            self.x = max(0, min(self.x, self.cols - 1) - 1)
        elif c == 9:
            self.x = min(self.cols - 1, self.x // 8 * 8 + 8)
        elif c not in (0, 7, 14, 15):
            self.unknown.append(bytes([c]))

    def down(self):
        if self.y == self.bottom:
            self.scroll(self.top, 1)
        elif self.y < self.rows - 1:
            self.y += 1

    def blank(self):
        return [(" ", frozenset())] * self.cols

    def scroll(self, at, n):
        for _ in range(abs(n)):
            if n > 0:
                del self.grid[at]
                self.grid.insert(self.bottom, self.blank())
            else:
                del self.grid[self.bottom]
                self.grid.insert(at, self.blank())

    def put(self, ch):
        w = width(ch)
        self.last = ch
        if w == 0:
            x = max(0, min(self.x, self.cols) - 1)
            while x and self.grid[self.y][x][0] == "":
                x -= 1
            old = self.grid[self.y][x]
            self.grid[self.y][x] = (old[0] + ch, old[1])
            return
        if self.x + w > self.cols:
            self.x = 0
            self.down()
        self.grid[self.y][self.x] = (ch, self.sgr)
        if w == 2:
            self.grid[self.y][self.x + 1] = ("", self.sgr)
        self.x += w

    # -- sequences --

    def sequence(self, m):
        mark, params, between, final, osc, dcs, cs, _, single = m.groups()
        if osc is not None or dcs is not None:
            self.titles.append(osc if osc is not None else dcs)
        elif cs is not None or (single or b"") in (b"=", b">"):
            pass
        elif single is not None:
            self.single(single)
        elif mark == b"" and between == b"":
            words = [int(p or 0) for p in
                     params.replace(b":", b";").split(b";")]
            self.csi(final.decode(), words, m.group())
        elif mark == b"?" and final in b"hl":
            self.mode(params, final == b"h")
        elif mark in (b"?", b">", b"="):
            pass
        else:
            self.unknown.append(m.group())

    def single(self, c):
        if c == b"7":
            self.saved = (self.y, self.x)
        elif c == b"8" and self.saved:
            self.y, self.x = self.saved
        elif c == b"M":
            if self.y == self.top:
                self.scroll(self.top, -1)
            else:
                self.y = max(0, self.y - 1)
        elif c in (b"D", b"E"):
            self.x = 0 if c == b"E" else self.x
            self.down()
        elif c == b"c":
            self.grid = [self.blank() for _ in range(self.rows)]

    def mode(self, params, on):
        if params == b"25":
            self.hidden = not on
        if params == b"1049" and on != self.alternate:
            self.alternate = on
            if on:
                self.main = (self.grid, self.y, self.x)
                self.grid = [self.blank() for _ in range(self.rows)]
            else:
                grid, self.y, self.x = self.main
                rows, cols = self.rows, self.cols
                self.grid = grid
                self.size(rows, cols)

    def csi(self, c, p, whole):
        n = max(1, p[0])
        self.x = min(self.x, self.cols - 1)
        if c in "ABCDEFGd`":
            self.move(c, n)
        elif c in "Hf":
            self.y = min(self.rows - 1, n - 1)
            self.x = min(self.cols - 1, max(1, p[1] if len(p) > 1 else 1) - 1)
        elif c in "JKX@P":
            self.erase(c, p[0], n)
        elif c in "LM":
            self.scroll(self.y, n if c == "M" else -n)
        elif c in "ST":
            self.scroll(self.top, n if c == "S" else -n)
        elif c == "b":
            for _ in range(n):
                self.put(self.last)
        elif c == "r":
            self.top = n - 1
            self.bottom = min(self.rows, p[1] if len(p) > 1 and p[1]
                              else self.rows) - 1
            self.y = self.x = 0
        elif c == "m":
            self.style(p)
        elif c not in "hlgnct":
            self.unknown.append(whole)

    def move(self, c, n):
        if c in "AF":
            self.y = max(0, self.y - n)
        elif c in "BE":
            self.y = min(self.rows - 1, self.y + n)
        elif c == "C":
            self.x = min(self.cols - 1, self.x + n)
        elif c == "D":
            self.x = max(0, self.x - n)
        elif c == "d":
            self.y = min(self.rows - 1, n - 1)
        if c in "EF":
            self.x = 0
        if c in "G`":
            self.x = min(self.cols - 1, n - 1)

    def erase(self, c, how, n):
        row, e = self.grid[self.y], (" ", self.sgr)
        if c == "P":
            self.grid[self.y] = (row[:self.x] + row[self.x + n:] +
                                 [e] * n)[:self.cols]
        elif c == "@":
            self.grid[self.y] = (row[:self.x] + [e] * n +
                                 row[self.x:])[:self.cols]
        else:
            a, b = (self.x, self.x + n) if c == "X" else \
                [(self.x, self.cols), (0, self.x + 1), (0, self.cols)][how]
            for x in range(a, min(b, self.cols)):
                row[x] = e
        if c == "J":
            for r in {0: range(self.y + 1, self.rows), 1: range(self.y),
                      2: range(self.rows), 3: ()}[how]:
                self.grid[r] = [e] * self.cols

    def style(self, p):
        s, i = set(self.sgr), 0
        while i < len(p):
            v = p[i]
            if v in (38, 48) and i + 2 < len(p):
                s = {x for x in s if not x.startswith("%d;" % v)}
                s.add("%d;%d" % (v, p[i + 2]))
                i += 2
            elif v == 0:
                s = set()
            elif 30 <= v <= 37 or 90 <= v <= 97:
                s = {x for x in s if not x.startswith("38;")}
                s.add("38;%d" % (v - 30 if v < 40 else v - 82))
            elif 40 <= v <= 47 or 100 <= v <= 107:
                s = {x for x in s if not x.startswith("48;")}
                s.add("48;%d" % (v - 40 if v < 50 else v - 92))
            elif v in (39, 49):
                s = {x for x in s if not x.startswith("%d;" % (v - 1))}
            elif v < 10:
                s.add({1: "bold", 2: "dim", 3: "italic", 4: "underline",
                       5: "blink", 7: "reverse"}.get(v, str(v)))
            elif 22 <= v <= 27:
                s -= {22: {"bold", "dim"}, 23: {"italic"}, 24: {"underline"},
                      25: {"blink"}, 27: {"reverse"}}.get(v, set())
            i += 1
        self.sgr = frozenset(s)

    def lines(self):
        return ["".join(c[0] for c in row).rstrip() for row in self.grid]


class Terminal:
    def __init__(self, w, args, rows=24, cols=80, env={}, **popen):
        self.w, self.raw = w, b""
        self.master, self.slave = pty.openpty()
        self.screen = Screen(rows, cols)
        self.winsize(rows, cols)
        self.before = self.modes()
        e = dict(w.env, TERM="xterm-256color", INPUTRC="/dev/null")
        for k in ("NO_COLOR", "LINES", "COLUMNS"):
            e.pop(k, None)
        for k, v in env.items():
            e.pop(k, None)
            if v is not None:
                e[k] = v
        self.p = w.spawn([ZOTBOX, *args], stdin=self.slave, stdout=self.slave,
                         stderr=self.slave, env=e, start_new_session=True,
                         preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY,
                                                        0), **popen)

    def winsize(self, rows, cols):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, cols, 0, 0))

    def resize(self, rows, cols):
        self.screen.size(rows, cols)
        self.winsize(rows, cols)

    def modes(self):
        return termios.tcgetattr(self.slave)

    def type(self, text):
        os.write(self.master, text if isinstance(text, bytes)
                 else text.encode())

    def read(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.raw += data
        self.screen.feed(data)
        return bool(data)

    def until(self, f, seconds=10):
        end = time.time() + seconds
        while True:
            for _ in range(20): # a flood has no end
                if not self.read(0):
                    break
            value = f()
            left = end - time.time()
            if value or left <= 0:
                return value
            self.read(min(left, 0.05))

    def settle(self, seconds=0.3):
        """Until nothing came for a while."""
        end = time.time() + 10
        while time.time() < end and self.read(seconds):
            pass

    def text(self):
        return "\n".join(self.screen.lines())

    def row(self, n):
        return self.screen.lines()[n]

    def find(self, part):
        for y, row in enumerate(self.screen.grid):
            line = "".join(c[0] for c in row)
            at = line.find(part)
            if at >= 0:
                x = n = 0
                while n < at:
                    n += len(row[x][0])
                    x += 1
                while row[x][0] == "" and x + 1 < len(row):
                    x += 1
                return y, x
        return None

    def column(self, part):
        at = self.find(part)
        return at[1] if at else None

    def style(self, part):
        at = self.find(part)
        return set(self.screen.grid[at[0]][at[1]][1]) if at else None

    def see(self, part, what="", seconds=10):
        return self.w.check(self.until(lambda: part in self.text(), seconds),
                            what or "in sight: " + part, self.text())

    def gone(self, part, what="", seconds=10):
        return self.w.check(self.until(lambda: part not in self.text(),
                                       seconds),
                            what or "out of sight: " + part, self.text())

    @property
    def titles(self):
        return self.screen.titles

    @property
    def unknown(self):
        return self.screen.unknown

    def wait(self, seconds=10):
        end = time.time() + seconds
        while self.p.poll() is None and time.time() < end:
            self.read(0.05)
        self.settle(0.1)
        return self.p.poll()

    def close(self):
        for fd in (self.master, self.slave):
            try:
                os.close(fd)
            except OSError:
                pass
