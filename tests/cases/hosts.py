#!/usr/bin/env python3
"""Hosts that cannot build the sandbox, or build it differently: each cause has
its own words and remedy, and nothing ever runs unconfined. Each test bears the
id of its case and says what must hold here."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *

TAKEN = os.path.join(BUILD, "tests/cases/taken")
# New namespaces for a host made up: mounts (and pids, with its own /proc).
OWN = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
OWN_PROC = [OWN[0], OWN[1] + "pf", "--mount-proc"]


def marked(w, name="fc"):
    """An extension that leaves a mark on the host if it is not confined."""
    w.mkext(name, '''
        open(%r, "w").write("ran"); hello(%r); ready(); serve()
    ''' % (w.path("marker"), name))
    w.spawn([w.path(name + "/main.py")], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait(20)
    if not os.path.exists(w.path("marker")):
        w.check(False, "control: outside it leaves its mark")
    else:
        os.unlink(w.path("marker"))


def ran(w):
    return os.path.exists(w.path("marker"))


def put_first(w, name, text):
    """A bwrap of ours, first in PATH of what is run from now on."""
    w.write(name + "/bwrap", text, 0o755)
    w.env["PATH"] = w.path(name) + ":" + SYSTEM
    return w.path(name) + "/bwrap"


SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def every_way(w, name, words, prefix=()):
    """Each way to start one ends with 4 and these words."""
    where = os.path.join(w.zot_home, "extensions", name)
    for what, args, cwd in (
            ("console", ["console", name], None),
            ("console of a path", ["console", w.path(name)], None),
            ("wrap", ["wrap", name], where),
            ("doctor", ["ext", "doctor"], None)):
        p = w.spawn([*prefix, ZOTBOX, *args], cwd=cwd or w.project,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE)
        out, err = (b.decode() for b in p.communicate(timeout=60))
        w.equal(p.returncode, 4, what + ": exit", out + err)
        said = out if what == "doctor" else err
        w.equal([x for x in words if x not in said], [], what + ": says why",
                said)
        if what == "wrap":
            w.equal(out, "", "wrap: nothing on stdout")
        if what == "doctor":
            w.contains(out, "remedy: ", "doctor has a remedy")
    w.check(not ran(w), "it did not run")


@test("B09 refused, not installed, too old: told apart", needs="sandbox")
def b09(w):
    marked(w, "aa")
    w.install("aa")
    put_first(w, "refused", """#!/bin/sh
case $1 in --version) echo "bubblewrap 0.9.0";;
*) echo "bwrap: setting up uid map: Permission denied" >&2; exit 1;; esac
""")
    said = "cannot create the sandbox: bwrap: setting up uid map: " \
           "Permission denied"
    every_way(w, "aa", [said])
    w.contains(w.log("aa"), said, "bwrap's own words are in the log")
    at = put_first(w, "old", """#!/bin/sh
case $1 in --version) echo "bubblewrap 0.4.0";;
*) echo "bwrap: Unknown option --perms" >&2; exit 1;; esac
""")
    every_way(w, "aa", ["bwrap 0.4.0 at %s is too old: need 0.5.0 for "
                        "--perms" % at])
    w.env["PATH"] = "/nonexistent"
    every_way(w, "aa", ["bubblewrap is not installed"])


@test("B10 a /proc that is masked, as in a container", needs=("sandbox",
                                                             "unshare"))
def b10(w):
    marked(w)
    w.install("fc")
    # What a container does: something lies on a part of /proc.
    mask = ["sh", "-c", "mount -t tmpfs none /proc/acpi 2>/dev/null || "
            "mount --bind /dev/null /proc/kcore || exit 99; exec \"$@\"", "_"]
    if w.spawn([*OWN_PROC, *mask, "true"], stderr=subprocess.DEVNULL) \
            .wait(20):
        w.skip("", "no way to mask a /proc here")
        return
    # There is no weaker mode: the host's /proc is never bound instead.
    every_way(w, "fc", ["cannot mount /proc in the sandbox (masked /proc: "
                        "nested container?)", "remedy: "],
              [*OWN_PROC, *mask])
    every_way(w, "fc", ["cannot mount /proc in the sandbox"],
              [*OWN_PROC, *mask, "unshare", "-U", "-r"])


@test("B25 no bwrap, no listener, no namespaces: no start", needs="sandbox")
def b25(w):
    marked(w)
    w.install("fc")
    put_first(w, "none", "#!/bin/sh\nexit 1\n")
    every_way(w, "fc", ["bubblewrap does not work"])
    w.contains(w.log("fc"), "fc not started: cannot create the sandbox",
               "in the log")
    w.env["PATH"] = SYSTEM
    every_way(w, "fc", ["seccomp user-notification unavailable: a listener "
                        "already sits on this process"], [TAKEN])
    if w.spawn(["unshare", "-r", "true"], stderr=subprocess.DEVNULL).wait(20):
        w.skip("max_user_namespaces", "no user namespace to set it in")
        return
    every_way(w, "fc", ["user namespaces are refused",
                        "user.max_user_namespaces=0"],
              ["unshare", "-r", "sh", "-c", "echo 0 > "
               "/proc/sys/user/max_user_namespaces; exec \"$@\"", "_"])


@test("B25 a sandbox that stops working: no fallback at reload",
      needs="sandbox")
def b25_reload(w):
    w.mkext("fc", '''
        hello("fc", "tools"); tool("t"); ready()
        def call(f):
            try: open(%r, "w"); r = "ran"
            except OSError as e: r = "errno %%d" %% e.errno
            text(f["id"], r)
        serve(tool_call=call)
    ''' % w.path("marker"))
    put_first(w, "fading", """#!/bin/sh
[ -e %s ] && { echo "bwrap: gone bad" >&2; exit 1; }
exec /usr/bin/bwrap "$@"
""" % w.path("bad"))
    p = w.spawn([ZOTBOX, "console", w.path("fc")], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    p.stdin.write("call t\n")
    p.stdin.flush()
    line = p.stdout.readline()
    while line and " result " not in line:
        line = p.stdout.readline()
    w.contains(line, "errno", "confined at first")
    w.write("bad", "")
    out, err = p.communicate("reload fc\ncall t\n", 30)
    w.contains(err, "bwrap: gone bad", "said", out)
    w.check(" result " not in out, "nobody answers after it", out)
    w.equal(p.returncode, 1, "exit: one that failed to load")
    w.check(not ran(w), "no mark")


# A bwrap between ours and the system's: records what it is asked for, and
# refuses as another version would.
BETWEEN = r'''#!%s
import os, sys
words = sys.argv[1:]
if "--version" in words:
    print("bubblewrap %s"); sys.exit()
fd = int(words[words.index("--args") + 1]) if "--args" in words else -1
text = b""
while fd >= 0:
    more = os.read(fd, 65536)
    if not more: break
    text += more
given = [x.decode("utf-8", "surrogateescape")
         for x in text.split(b"\0")[:-1]] + words
with open(%r, "a") as f:
    print("\n".join(given), file=f)
def die(*what):
    print("bwrap:", *what, file=sys.stderr); sys.exit(1)
%s
if fd >= 0:
    m = os.memfd_create("args", 0)
    os.write(m, text); os.lseek(m, 0, 0); os.dup2(m, fd)
os.execv("/usr/bin/bwrap", ["bwrap"] + words)
'''

# Options that came after 0.5.0, the oldest that will do.
NEWER = ["--size", "--assert-userns-disabled", "--disable-userns", "--argv0",
         "--level-prefix", "--bind-fd", "--ro-bind-fd", "--overlay-src",
         "--overlay", "--tmp-overlay", "--ro-overlay"]


@test("B26 only options that the oldest bwrap knows", needs="sandbox")
def b26(w):
    w.mkext("ver", '''
        hello("ver", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: text(f["id"], sys.argv[0]))
    ''')
    used = w.path("used")
    put_first(w, "between", BETWEEN % (
        PYTHON, "0.6.0", used,
        "for a in given:\n    if a in %r: die('Unknown option', a)" % NEWER))
    w.install("ver")
    c = w.console("ver", "call t")
    w.equal((c.rc, os.path.basename(c.result() or "")), (0, "main.py"),
            "it starts", c)
    with open(used) as f:
        given = f.read().split("\n")
    w.check("--unshare-net" in given and "--ro-bind" in given,
            "control: the options are seen", given[:20])
    w.equal([a for a in given if a in NEWER], [], "no newer one")
    r = w.zotbox("ext", "doctor", "ver")
    w.equal(r.rc, 0, "doctor", r)
    w.contains(r.out, "bubblewrap 0.6.0 at " + w.path("between") + "/bwrap",
               "version and path")


# The two-operand options of bwrap that mount or make something, and the others
# that take operands.
LINKS = r'''
TWO = {"--bind", "--ro-bind", "--dev-bind", "--bind-try", "--ro-bind-try",
       "--dev-bind-try", "--ro-bind-data", "--bind-data", "--file"}
ONE = {"--tmpfs", "--proc", "--dev", "--dir", "--remount-ro", "--mqueue"}
OTHER = {"--perms": 1, "--chdir": 1, "--hostname": 1, "--cap-drop": 1,
         "--cap-add": 1, "--args": 1, "--uid": 1, "--gid": 1}
links, binds, i = set(), [], 0
def host(path):
    """What of the host is at this place, if it lies in a bind."""
    for source, dest in reversed(binds):
        if path != dest and path.startswith(dest.rstrip("/") + "/"):
            return source + path[len(dest.rstrip("/")):]
def check(dest):
    at = dest
    while at != "/":
        h = host(at)
        if at in links or h and os.path.islink(h):
            die("Can't mount on symlink destination", dest)
        at = os.path.dirname(at)
while i < len(given):
    o = given[i]
    if o == "--": break
    if o == "--symlink": links.add(given[i + 2]); i += 3
    elif o in TWO:
        check(given[i + 2])
        if "bind" in o and "data" not in o:
            binds.append((given[i + 1], given[i + 2]))
        i += 3
    elif o in ONE: check(given[i + 1]); i += 2
    else: i += 1 + OTHER.get(o, 0)
'''


@test("B07 no mount is made on a link, as newer versions refuse",
      needs="sandbox")
def b07(w):
    w.write("real/1.2/f", "hi")
    os.symlink("1.2", w.path("real/latest"))
    os.symlink(w.path("real"), w.path("linked"))
    w.mkext("dst", '''
        hello("dst", "tools"); tool("t"); ready()
        serve(tool_call=lambda f: text(f["id"], open(f["args"]["p"]).read()))
    ''')
    put_first(w, "newer", BETWEEN % (PYTHON, "0.12.0", w.path("used"), LINKS))
    names = [w.path("real/latest/f"), w.path("real/1.2/f"),
             w.path("linked/latest/f")]
    c = w.console("./dst", [call("t", p=p) for p in names], "--scope",
                  w.scope("dst", {"fs": {"read": [
                      w.path("real/latest"), "${project}",
                      w.path("linked/latest")]}}))
    w.equal(c.rc, 0, "it starts", c)
    w.equal([c.result(n=i) for i in range(3)], ["hi"] * 3, "all spellings", c)
    # The check itself works: a plan that did it would not start.
    check = w.write("check.py", "import os\ngiven = ['--symlink', 'a', "
                    "'/lib', '--tmpfs', '/lib/x']\ndef die(*a): "
                    "raise SystemExit(3)\n" + LINKS)
    w.equal(w.spawn([PYTHON, check]).wait(20), 3, "control")


# ---- other layouts of the file system ----

USR = '''
    import subprocess
    hello("usr", "tools"); tool("t"); ready()
    serve(tool_call=lambda f: text(f["id"], subprocess.run(
        ["/bin/sh", "-c", "echo $0; /usr/bin/env true && for d in /bin /lib; "
         "do [ -L $d ] && echo link || echo directory; done"],
        capture_output=True, text=True).stdout))
'''

# A root in which /bin, /sbin and /lib* are directories: $1, then a command.
UNMERGED = r'''
set -e
root=$1; shift
mount --make-rprivate /
mkdir -p "$root"
mount -t tmpfs root "$root"
for d in /*; do
    case $d in /lost+found|/newroot) continue;; esac
    if [ -L "$d" ] && [ -d "$d" ]; then
        mkdir "$root$d"; mount --bind "$(readlink -f "$d")" "$root$d"
    elif [ -d "$d" ]; then
        mkdir "$root$d"; mount --rbind "$d" "$root$d"
    fi
done
mkdir "$root/.old"
cd "$root"
pivot_root . .old
umount -l /.old
rmdir /.old 2>/dev/null || :
cd "$PWD0"
exec "$@"
'''


@test("B04 /bin and /lib as links and as directories", needs=("sandbox",
                                                             "unshare"))
def b04(w):
    w.mkext("usr", USR)
    scope = w.scope("usr", {"fs": {"exec": ["sh", "env", "true"]}})
    c = w.console("./usr", "call t", "--scope", scope)
    here = "link" if os.path.islink("/bin") else "directory"
    w.equal(c.result(), "/bin/sh\n%s\n%s\n" % (here, here), "as it is here",
            c)
    if here != "link":
        w.skip("the other layout", "only made from links here")
        return
    p = w.spawn([*OWN, "sh", "-c", UNMERGED, "_", w.path("root"), ZOTBOX,
                 "console", "--scope", scope, w.path("usr")],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, env=dict(w.env, PWD0=w.project))
    out, err = (b.decode() for b in p.communicate(b"call t\n", 60))
    w.equal(p.returncode, 0, "exit", out + err)
    got = [json.loads(m[3])["content"][0]["text"] for m in
           map(H_LINE.fullmatch, out.splitlines()) if m and m[2] == "result"]
    w.equal(got, ["/bin/sh\ndirectory\ndirectory\n"],
            "the same where they are directories", out + err)


@test("B06 a certificate bundle that is a link out of the tree",
      needs=("sandbox", "unshare"))
def b06(w):
    bundle = "/etc/ssl/certs/ca-certificates.crt"
    if not os.path.exists(bundle):
        w.skip("", "no " + bundle)
        return
    with open(bundle, "rb") as f:
        w.write("opt/ca/b.pem", f.read())
    w.mkext("ca", '''
        import ssl
        hello("ca", "tools"); tool("t"); ready()
        def call(f):
            try: n = ssl.create_default_context(cafile=%r).cert_store_stats()
            except OSError as e: n = {"x509": -e.errno}
            text(f["id"], json.dumps([n["x509"] > 0,
                                      os.path.islink(%r)]))
        serve(tool_call=call)
    ''' % (bundle, bundle))
    p = w.spawn([*OWN, "sh", "-c", "mount -t tmpfs none /etc/ssl/certs && "
                 "ln -s %s %s && exec \"$@\"" % (w.path("opt/ca/b.pem"),
                                                bundle), "_",
                 ZOTBOX, "console", w.path("ca")], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = (b.decode() for b in p.communicate(b"call t\n", 60))
    w.equal(p.returncode, 0, "exit", out + err)
    w.contains(out, "[true, true]", "read through the link", err)


main()
