"""real - the real zot, if there is one, and a network with nothing in it.

    find_zot()          its path and "", or None and why there is none
    only_loopback()     leave the host's network for one of our own; "", or why
                        not"""
import ctypes
import fcntl
import os
import socket
import struct

from zbtest import ZOTBOX


def find_zot():
    """Its path, or why there is none."""
    named = os.environ.get("ZOTBOX_ZOT")
    found = [named] if named else [
        os.path.join(d, "zot") for d in
        os.environ.get("PATH", "").split(":") if d.startswith("/")]
    for path in found:
        if os.access(path, os.X_OK) and os.path.isfile(path) and \
                not os.path.samefile(path, ZOTBOX):
            return os.path.realpath(path), ""
    if named:
        return None, "ZOTBOX_ZOT is %s, which is no program" % named
    return None, "no zot in PATH, and ZOTBOX_ZOT is not set"


def only_loopback():
    """Leave the host's network for one of our own. Why not, if not."""
    libc = ctypes.CDLL(None, use_errno=True)
    newuser, newnet = 0x10000000, 0x40000000
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(newnet):
        if libc.unshare(newuser | newnet):
            return "no network namespace: " + os.strerror(ctypes.get_errno())
        for name, text in (("setgroups", "deny"),
                           ("uid_map", "%d %d 1" % (uid, uid)),
                           ("gid_map", "%d %d 1" % (gid, gid))):
            with open("/proc/self/" + name, "w") as f:
                f.write(text)
    with socket.socket() as s:
        ifreq = struct.pack("16sh14x", b"lo", 1)       # IFF_UP
        fcntl.ioctl(s, 0x8914, ifreq)                   # SIOCSIFFLAGS
    return ""
