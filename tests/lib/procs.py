"""procs - processes of this machine, told apart from others that get the same
number later.

    tree(PID)           it and all below it: a set of (pid, start time)
    alive(SET)          those that still run
    gone(SET, SECONDS)  are all of them gone in time?"""
import os
import time


def stat(pid):
    """(parent, start time, is a zombie), None if there is no such process."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            fields = f.read().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return int(fields[1]), int(fields[19]), fields[0] == "Z"


def table():
    found = {}
    for n in os.listdir("/proc"):
        if n.isdigit():
            s = stat(int(n))
            if s:
                found[int(n)] = s
    return found


def tree(pid):
    all = table()
    found = {pid} & set(all)
    while True:
        more = {p for p in all if all[p][0] in found} - found
        if not more:
            return {(p, all[p][1]) for p in found}
        found |= more


def alive(some):
    return {(p, t) for p, t in some
            for s in [stat(p)] if s and s[1] == t and not s[2]}


def gone(some, seconds):
    end = time.time() + seconds
    while alive(some):
        if time.time() > end:
            return False
        time.sleep(0.01)
    return True


def command(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""
