"""suite - plays the rows against one host, through its driver.

A driver is a class:

    name                how rows call it in `skip`
    lacks(row)          why this host cannot be asked that at all, or ""
    start(w, row, dirs) start the host with the extensions in dirs, in order;
                        w is a World of tests/lib/zbtest.py
    do(line)            the client does something: a verb of README.md
    next(seconds)       what reached the client next: (extension, type, object),
                        None when there is nothing in time or it is over
    stop()              end it in good manner; what is wrong with its end, ""
    log(w, ext)         text of that extension's log

run(ROW, DRIVER) gives what is wrong, a list of texts; main(DRIVER CLASS) is
the test program."""
import concurrent.futures
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../..")), "tests/lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import zbtest
import player
import talk

WAIT = 10           # seconds for what must come
WORKERS = 6         # a row mostly waits


def put_extensions(w, row, spoil=None):
    dirs = []
    for name in row.exts:
        d = w.path(name)
        dirs.append(d)
        os.makedirs(d)
        with open(os.path.join(talk.HERE, "player.py")) as f:
            text = f.read().replace("/usr/bin/env python3", zbtest.PYTHON, 1)
        w.write(name + "/player.py", text, 0o755)
        play = {"name": name, "runs": row.runs[name]}
        if spoil and spoil["ext"] == name:
            play["spoil"] = spoil
        w.write(name + "/play.json", json.dumps(play))
        w.write(name + "/extension.json", json.dumps(dict(
            {"name": name, "version": "1.0.0", "exec": "./player.py",
             "enabled": True}, **row.manifests[name])))
    return dirs


def bad_end(status, good, said):
    """What is wrong with the end of one of our programs, ""."""
    if status not in good:
        return "ended with %s" % status
    if "Sanitizer" in said or "runtime error:" in said:
        return "a sanitizer found something"
    return ""


class Play:
    """One row being played."""
    def __init__(self, row, driver, wait):
        self.row, self.driver, self.wait = row, driver, wait
        self.wrong, self.names, self.seen = [], {}, []
        self.wanted = row.types()
        self.logs = []

    def next(self, seconds):
        """Refusals and what a host says beside the protocol do not count
        where the row does not ask for them."""
        end = time.monotonic() + seconds
        while True:
            line = self.driver.next(max(0, end - time.monotonic()))
            if line is None:
                return None
            self.seen.append(line)
            if line[1] in self.wanted or line[1] not in ("denied",):
                return line

    def sees(self, group):
        left = player.fill(group, self.names)
        while left:
            line = self.next(self.wait)
            if line is None:
                self.wrong.append("the client does not see %s" %
                                  json.dumps(left)[:1500])
                return False
            for want in left:
                names = dict(self.names)
                if player.match(want, list(line), names):
                    self.names = names
                    left.remove(want)
                    break
            else:
                self.wrong.append("the client sees %s; wanted %s" % (
                    json.dumps(line)[:1500], json.dumps(left)[:1500]))
                return False
        return True

    def steps(self, steps):
        """False when there is no use in going on."""
        for s in steps:
            if s[0] == "do":
                self.driver.do(re.sub(
                    r"\$(\w+)", lambda m: str(self.names[m[1]]), s[1]))
            elif s[0] == "sees":
                if not self.sees(s[1]):
                    return False
            elif s[0] == "wait":
                time.sleep(s[1])
            elif s[0] == "quiet":
                line = self.next(s[1])
                if line:
                    self.wrong.append("the client sees %s; wanted nothing" %
                                      json.dumps(line)[:1500])
            elif s[0] == "repeat":
                for i in range(s[1]):
                    self.names["i"] = str(i)
                    if not self.steps(s[2]):
                        return False
            else:
                self.logs.append(s)
        return True

    def end(self, w):
        fault = self.driver.stop()
        if fault:
            self.wrong.append("the host: " + fault)
        while not self.wrong:
            line = self.next(0)
            if line is None:
                break
            self.wrong.append("the client sees too much: %s" %
                              json.dumps(line)[:1500])
        for name in self.row.exts:
            if self.row.runs[name] != [[]]:
                self.check_player(name, self.driver.log(w, name))
        for kind, name, text in self.logs:
            if (text in self.driver.log(w, name)) != (kind == "log"):
                self.wrong.append("the log of %s %s %r:\n%s" % (
                    name, "lacks" if kind == "log" else "has", text,
                    self.driver.log(w, name)[-1500:]))

    def check_player(self, name, log):
        for line in log.splitlines():
            if "conform: wrong" in line:
                self.wrong.append("%s: %s" % (name, line))
        runs = self.row.runs[name]
        for i, steps in enumerate(runs):
            if "conform: done %d" % i not in log and \
                    steps[-1:] != [["refused"]]:
                self.wrong.append("%s: run %d was not played to its end" % (
                    name, i))
        if "conform: done %d" % len(runs) in log:
            self.wrong.append("%s: started too often" % name)
        polite = sum(not s or s[-1][0] not in player.ENDS or
                     s[-1][0] == "mute" for s in runs)
        if "conform: end without shutdown" in log:
            self.wrong.append("%s: its stdin ended without shutdown" % name)
        if log.count("conform: shutdown") < polite:
            self.wrong.append("%s: was not shut down" % name)


def run(row, driver, spoil=None, wait=WAIT):
    """What is wrong with the host, by this row."""
    w = zbtest.World(row.name)
    p = Play(row, driver, wait)
    try:
        dirs = put_extensions(w, row, spoil)
        driver.start(w, row, dirs)
        p.steps(row.host)
        p.end(w)
        if p.wrong:
            p.wrong.append("seen: " + "\n      ".join(
                json.dumps(s)[:400] for s in p.seen[-12:]))
            p.wrong.append("said: " + driver.words()[-1500:])
    except Exception as e:
        p.wrong.append("%r" % e)
    finally:
        w.done()
    return p.wrong


def chosen(rows, names):
    return [r for r in rows if not names or any(
        n in r.file + "/" + r.name for n in names)]


def outcome(row, make):
    """(skip, wrong, seconds) of one row."""
    driver = make()
    why = row.skips.get(driver.name) or driver.lacks(row)
    if why:
        return why, [], 0
    start = time.time()
    return "", run(row, driver), time.time() - start


def main(make, missing=""):
    """missing: why this host is not there."""
    tap, rows = zbtest.tap, chosen(talk.all_rows(), sys.argv[1:])
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        jobs = [] if missing else [pool.submit(outcome, r, make)
                                   for r in rows]
        for i, row in enumerate(rows):
            skip, wrong, secs = (missing, [], 0) if missing else \
                jobs[i].result()
            what = "%s/%s: %s" % (row.file, row.name, row.title)
            if skip:
                tap.skip(what, skip)
                continue
            tap.line(not wrong, what)
            for text in wrong:
                for line in text.split("\n"):
                    tap.note(line)
            if secs > 15:
                tap.note("%.1f s" % secs)
    print("1..%d" % tap.count, flush=True)
    sys.exit(1 if tap.failed else 0)
