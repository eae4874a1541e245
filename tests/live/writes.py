#!/usr/bin/env python3
"""Unchanged programs in a directory that is granted for writing: each does
what it does outside, the host has it, and nothing is recorded that the program
does not need; what zot, git and editors run stays closed to each of them."""
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
import zbtest
from zbtest import call, main, test

MAIN = '''
    import subprocess
    hello("p", "tools"); tool("sh"); ready()
    def t(f):
        r = subprocess.run(["/bin/sh", "-c", f["args"]["c"]], cwd=f["args"]["d"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, timeout=100)
        text(f["id"], "%d %s" % (r.returncode,
                                 r.stdout.decode("utf-8", "replace")))
    serve(tool_call=t)
'''
# What programs and compilers are made of.
TOOLS = [p for p in ("/usr/bin", "/usr/lib/git-core", "/usr/lib/gcc",
                     "/usr/libexec/gcc", "/usr/lib/node_modules/npm",
                     "/usr/share/nodejs/npm") if os.path.isdir(p)]
PARTS = [p for p in ("/usr/share", "/usr/lib", "/usr/include")
         if os.path.isdir(p)]


class Shell:
    """An extension that runs what it is told, in a project that it may write
    to. `where`: home (then the private HOME around it is the broker's as
    well) or srv."""
    def __init__(self, w, where="home", base="standard", write=("${project}",),
                 **fs):
        self.w = w
        w.project = w.path(where + "/proj")
        os.makedirs(w.project, exist_ok=True)
        w.mkext("p", MAIN)
        self.rules = {"extends": base, "fs": dict(
            {"write": list(write), "exec": TOOLS, "read": PARTS}, **fs)}

    def run(self, *commands):
        """Return: (status, output) of each, in one sandbox."""
        c = self.w.console(
            self.w.path("p"),
            [call("sh", c=x, d=self.w.project) for x in commands],
            "--scope", self.w.scope("p", self.rules), timeout=150)
        return self.taken([h.text() for h in c.of("result")], commands, c)

    def installed(self, *commands):
        """The same, with what only --yes-i-mean-it grants."""
        self.w.install("p", None, self.rules, "--yes-i-mean-it")
        x = self.w.wrap("p")
        x.handshake()
        x.until("ready")
        out = []
        for i, c in enumerate(commands):
            x.send({"type": "tool_call", "id": "c%d" % i, "name": "sh",
                    "args": {"c": c, "d": self.w.project}})
            got = x.until("tool_result", 100)
            out.append(got["content"][0]["text"] if got else "")
        x.shutdown()
        return self.taken(out, commands, "")

    def taken(self, texts, commands, diag):
        self.w.check(len(texts) == len(commands), "each command was run",
                     diag)
        pairs = [t.split(" ", 1) for t in texts if " " in t]
        return [(int(a), b) for a, b in pairs] + \
            [(-1, "")] * (len(commands) - len(pairs))

    def changes(self):
        """Records of changes: of what is only looked for there are others."""
        return ["%s %s" % (r["op"], r["target"]) for r in self.w.ledger("p")
                if r["op"][:3] == "fs." and r["op"] not in
                ("fs.read", "fs.exec")]

    def host(self, rel):
        try:
            with open(os.path.join(self.w.project, rel)) as f:
                return f.read()
        except OSError as e:
            return str(e)


def program(name, needs, *steps, **files):
    """Each step: a command, and what it prints (a regular expression)."""
    def add(look):
        for where in ("home", "srv"):
            test("%s (%s)" % (name, where), needs=["sandbox", *needs],
                 seconds=150)(lambda w, where=where: one(w, where))

        def one(w, where):
            s = Shell(w, where)
            for rel, text in files.items():
                w.write(where + "/proj/" + rel.replace("__", "."), text)
            got = s.run(*(c for c, _ in steps))
            for (c, want), (rc, out) in zip(steps, got):
                w.check(rc == 0 and re.search(want, out), c, rc, out)
            w.equal(s.changes(), [], "nothing it needs is refused")
            look(w, s)
        return look
    return add


@program("tar", ["tar"],
         ("mkdir -p t/d/e; echo x > t/d/e/f; ln -s f t/d/e/l; "
          "ln t/d/e/f t/d/e/h; chmod 750 t/d; mkfifo t/p; "
          "touch -d '2001-02-03 04:05:06 UTC' t/d/e/f; tar cf t.tar t", ""),
         ("rm -r t && tar xpf t.tar && ls -lR t", r"l -> f"),
         ("tar xpf t.tar", ""))
def tar(w, s):
    st = os.stat(s.w.project + "/t/d/e/f")
    w.equal((int(st.st_mtime), st.st_nlink), (981173106, 2),
            "times and links are kept")
    w.equal(os.stat(s.w.project + "/t/d").st_mode & 0o777, 0o750, "modes too")


@program("python's atomic save", ["python3"],
         ("python3 -c '"
          "import os, tempfile\n"
          "with tempfile.NamedTemporaryFile(dir=\".\", delete=False) as f:\n"
          "    f.write(b\"new\"); f.flush(); os.fsync(f.fileno())\n"
          "os.chmod(f.name, 0o640)\n"
          "os.replace(f.name, \"save\")\n"
          "t = tempfile.TemporaryFile(dir=\".\"); t.write(b\"y\")\n"
          "print(os.fstat(t.fileno()).st_nlink)'", r"^0$"),
         ("python3 -c '"
          "import shutil, os\n"
          "os.makedirs(\"a/b\"); open(\"a/b/c\", \"w\").write(\"c\")\n"
          "shutil.move(\"a\", \"d\"); shutil.copytree(\"d\", \"e\")\n"
          "shutil.rmtree(\"d\"); print(os.listdir(\"e/b\"))'", "c"),
         save="old\n")
def save(w, s):
    w.equal(s.host("save"), "new", "the host has it")


@program("sed, cp, mv, install", ["sed"],
         ("sed -i s/a/b/ f && cat f", "b"),
         ("cp -a f g && mv g h && mkdir d && mv h d/ && cp -a d e && "
          "mv e d/e && rm -r d/e && cat d/h", "b"),
         ("mv -n f d/h; install -m 700 d/h i && cat i; ln -sf i j; "
          "ln -sfn d k; rm k j", "b"),
         f="a\n")
def sed(w, s):
    w.equal((s.host("f"), s.host("d/h")), ("b\n", "b\n"), "the host has it")


@program("sqlite", ["python3"],
         ("python3 -c '"
          "import sqlite3\n"
          "for mode in (\"delete\", \"wal\"):\n"
          "    c = sqlite3.connect(mode + \".db\")\n"
          "    print(c.execute(\"pragma journal_mode=\" + mode).fetchone())\n"
          "    c.execute(\"create table t(a)\")\n"
          "    c.executemany(\"insert into t values(?)\","
          " [(i,) for i in range(500)])\n"
          "    c.commit()\n"
          "    print(c.execute(\"select sum(a) from t\").fetchone()[0])\n"
          "    c.execute(\"vacuum\"); c.close()'", "124750[^$]*wal[^$]*124750"))
def sqlite(w, s):
    w.check(os.path.getsize(w.project + "/wal.db") > 4000, "the host has it")


@program("vim", ["vim"],
         ("vim -es -u NONE -c '%s/x/zz/' -c wq f; cat f", "zz"),
         ("vim -es -u NONE -c 'set backupcopy=no' -c '%s/zz/y/' -c wq f; "
          "ls; cat f", "^f\ny"),
         f="x\n")
def vim(w, s):
    w.equal(s.host("f"), "y\n", "the host has it")


# The job server of make 4.4 and later is a FIFO in /tmp. HOME lies below /tmp in
# these tests, so the broker serves /tmp, and there no FIFO is opened.
MAKE = "make -j2"
if shutil.which("make") and "jobserver-style" in subprocess.run(
        ["make", "--help"], capture_output=True, text=True).stdout:
    MAKE += " --jobserver-style=pipe"


@program("a file opened again by its descriptor", ["python3"],
         ("cat /dev/stdin <a; cat /dev/fd/5 5<a; cat /proc/self/fd/0 <a",
          r"^A1\nA1\nA1\n$"),
         ("python3 /dev/stdin <s.py", r"^7$"),
         ("sh -c 'echo hi >/dev/stdout' >out; "
          "sh -c 'echo ho >>/dev/stderr' 2>>out; cat out", r"^hi\nho\n$"),
         ("sh -c 'echo hi >/dev/stdout' >$HOME/out; cat $HOME/out", r"^hi$"),
         ("python3 -c '"
          "import subprocess, tempfile\n"
          "t = tempfile.TemporaryFile(dir=\".\"); t.write(b\"x\" * 100000)\n"
          "t.seek(0); subprocess.run([\"wc\", \"-c\", \"/dev/stdin\"], "
          "stdin=t)'", r"^100000 "),
         a="A1\n", s__py="print(7)\n")
def again(w, s):
    w.equal(s.host("out"), "hi\nho\n", "the host has it")


@test("a closed file opened again by its descriptor", needs="sandbox",
      seconds=60)
def closed(w):
    s = Shell(w, "srv")
    for rel in (".git/config", ".env"):
        w.write("srv/proj/" + rel, "S3CRET\n")
    path = s.w.project + "/.git/config"
    asks = ["sh -c 'echo x >/dev/stdin' <.git/config", "cat /dev/stdin <.env"]
    out = [subprocess.run(["sh", "-c", a], cwd=s.w.project,
                          stdout=subprocess.PIPE).returncode for a in asks]
    w.equal(out, [0, 0], "control: outside it works")
    w.write("srv/proj/.git/config", "S3CRET\n")
    got = s.run("cat .git/config", *asks)
    w.equal(got[0], (0, "S3CRET\n"), "it may be read")
    w.check(got[1][0] and "S3CRET" not in got[2][1] and got[2][0],
            "not written, nor what is denied read", got)
    w.equal(s.host(".git/config"), "S3CRET\n", "the host's is as it was")
    r = [x for x in s.w.ledger("p") if x["target"] == path]
    w.equal([(x["op"], x["asked"], x["decided_by"]) for x in r],
            [("fs.write", "/dev/stdin", "broker")], "the record names it")
    w.check(r and "--yes-i-mean-it" in r[0]["cannot"], "and what it takes", r)


@test("a file for reading opened again by its descriptor", needs="sandbox",
      seconds=60)
def for_reading(w):
    s = Shell(w, "srv", write=())
    w.write("srv/proj/a", "old\n")
    got = s.run("cat /dev/stdin <a", "sh -c 'echo x >/dev/stdin' <a")
    w.equal(got[0], (0, "old\n"), "it is read")
    w.check(got[1][0] and s.host("a") == "old\n", "and not written", got)
    r = w.denied("p", "fs.write", s.w.project + "/a", errno="EROFS")
    w.equal(r and r["grant"], {"key": "fs.write", "value": "${project}/a"},
            "the record says what would allow it")


@program("make and a compiler", ["make", "gcc"],
         ("mkdir src; for i in $(seq 20); do "
          "echo \"int f$i(void) { return $i; }\" > src/f$i.c; done; "
          "echo 'int main(void) { return 0; }' > src/main.c", ""),
         (MAKE, "ar rc"), ("make", "up to date"),
         ("make clean; ls", "Makefile"),
         Makefile="O = $(patsubst %.c,%.o,$(wildcard src/*.c))\n"
                  "prog: lib.a src/main.o\n\tgcc -o $@ src/main.o lib.a\n"
                  "lib.a: $(O)\n\tar rc $@ $^\n"
                  "src/%.o: src/%.c\n\tgcc -c -o $@ $<\n"
                  "clean:\n\trm -f src/*.o lib.a prog\n")
def build(w, s):
    w.equal(sorted(os.listdir(w.project)), ["Makefile", "src"],
            "and the host is clean again")


@program("a build of two thousand files", ["make"],
         ("mkdir in && for i in $(seq 1000); do echo $i > in/$i; done", ""),
         (MAKE + " -s && ls out | wc -l", "^1000\n"),
         ("make -s -q && echo up to date", "up to date"),
         ("cat out/* | sha256sum; rm -r out && " + MAKE + " -s && "
          "cat out/* | sha256sum; ls out | wc -l", r"^(\w+)  -\n\1  -\n1000\n"),
         Makefile="all: $(patsubst in/%,out/%,$(wildcard in/*))\n"
                  "out/%: in/% | out\n"
                  "\t@cp $< $@.tmp && mv $@.tmp $@\n"
                  "out:\n\t@mkdir out\n")
def many(w, s):
    w.equal(len(os.listdir(w.project + "/in")) +
            len(os.listdir(w.project + "/out")), 2000, "the host has them")


@test("npm install of a local package", needs=["sandbox", "npm"],
      seconds=150)
def npm(w):
    s = Shell(w)
    w.write("home/proj/package.json", '{"name":"a","version":"1.0.0"}')
    w.write("home/proj/dep/package.json",
            '{"name":"dep","version":"1.0.0","main":"i.js"}')
    w.write("home/proj/dep/i.js", "module.exports = 42\n")
    got = s.run(
        "cd dep && npm pack --offline && mv dep-1.0.0.tgz ..",
        "npm install --offline --no-audit --no-fund ./dep-1.0.0.tgz",
        "node -e 'console.log(require(\"dep\"))'",
        "npm uninstall --offline --no-audit --no-fund dep; ls node_modules")
    for rc, out in got[:3]:
        w.equal(rc, 0, "a step", out)
    w.contains(got[2][1], "42", "it is there")
    w.equal(s.changes(), [], "nothing it needs is refused")


# ---- git --------------------------------------------------------------------

GIT = "git -c user.name=u -c user.email=e@e -c init.defaultBranch=main "


@test("git, its .git granted by name", needs=["sandbox", "git"], seconds=150)
def git(w):
    s = Shell(w, write=["${project}", "${project}/.git"])
    w.write("home/proj/f", "one\n")
    subprocess.run(["git", "init", "-q", "-b", "main", w.project], check=True, env=w.env)
    got = s.installed(
        GIT + "add f", GIT + "commit -q -m first",
        "echo two >> f; " + GIT + "commit -q -a -m second",
        GIT + "checkout -q -b other HEAD~1; cat f",
        "echo x > g; " + GIT + "add g; " + GIT + "commit -q -m third",
        GIT + "merge -q -m merged main; " + GIT + "log --oneline | wc -l",
        GIT + "gc -q; " + GIT + "fsck", GIT + "stash list; " +
        GIT + "status --short", GIT + "mv g h && " + GIT + "reset -q --hard")
    for (rc, out) in got:
        w.equal(rc, 0, "a step", out)
    w.contains(got[5][1], "4", "four commits")
    w.equal(s.changes(), [], "nothing it needs is refused")
    r = subprocess.run(["git", "-C", w.project, "log", "--format=%s"],
                       capture_output=True, text=True, env=w.env)
    w.contains(r.stdout, "merged", "the host's git sees them", r)


@test("git, its .git not granted", needs=["sandbox", "git"], seconds=60)
def no_git(w):
    s = Shell(w)
    w.write("home/proj/f", "one\n")
    subprocess.run(["git", "init", "-q", "-b", "main", w.project], check=True, env=w.env)
    before = s.host(".git/config")
    got = s.run(GIT + "status --short", GIT + "add f",
                GIT + "config core.hooksPath .", "git init -q sub",
                "printf x > .git/hooks/post-checkout",
                "mkdir d d/hooks; mv d .git; mv d/hooks .git/hooks2; "
                "cp -r d sub; mv sub/hooks sub/.git")
    w.check(got[0][0] == 0 and "f" in got[0][1], "it can be looked at", got)
    for rc, out in got[1:]:
        w.check(rc != 0, "and not changed", out)
    w.equal(s.host(".git/config"), before, "the host's is what it was")
    w.check(not os.path.exists(w.project + "/.git/hooks/post-checkout") and
            not os.path.exists(w.project + "/.git/hooks2") and
            not os.path.exists(w.project + "/sub/.git"), "nothing is planted")
    for op, rel in (("fs.create", ".git/index.lock"),
                    ("fs.create", ".git/config.lock"),
                    ("fs.create", "sub/.git"),
                    ("fs.create", ".git/hooks/post-checkout"),
                    ("fs.rename", "sub/.git")):
        w.check(w.denied("p", op, w.project + "/" + rel, errno="EACCES"),
                "recorded: %s %s" % (op, rel), s.changes())


# ---- links that it could make ------------------------------------------------

@test("links on the way to what is closed", needs="sandbox", seconds=60)
def ways(w):
    s = Shell(w)
    p = w.project
    os.makedirs(p + "/store/real/hooks")
    os.symlink("real", p + "/store/mid")
    os.symlink("store/mid", p + "/.git")
    os.makedirs(p + "/other/sub")
    os.symlink("other", p + "/dir")
    os.symlink("dir/sub", p + "/.claude")
    w.write("home/proj/keep/a/pem", "S3CRET")
    os.symlink("keep", p + "/kept")
    s.rules["fs"]["deny"] = ["${project}/kept/a/**"]
    for link in ("store/mid", "dir", "kept"):
        was = os.readlink(os.path.join(p, link))
        s.run("rm " + link, "mv %s x" % link, "ln -sfn . " + link,
              "mv -T other %s" % link, "echo x >y; mv y " + link)
        w.equal(os.readlink(os.path.join(p, link)), was, link + " stays")
        r = w.denied("p", "fs.delete", os.path.join(p, link))
        w.check(r, link + ": recorded", s.changes())
    w.contains(r["rule"], "p.scope.json", "by the rule that it serves", r)
    w.contains(r["cannot"], "fs.deny", "and what would open it", r)
    w.check(not os.path.exists(p + "/.git/hooks/x"), "nothing is planted")


@test("a grant through a link that it could make", needs="sandbox", seconds=60)
def through(w):
    s = Shell(w)
    p = w.project
    w.write("home/.ssh/lib/id", "S3CRET")
    read = "cat %s/.ssh/lib/id; echo x >%s/.ssh/lib/x" % (w.home, w.home)
    for key, value, link, to in (
            ("read", "${project}/v/lib", "v", "../.ssh"),
            ("read", "${project}/v/*", "v", "../.ssh/lib"),
            ("write", "${project}/out", "out", "../.ssh/lib"),
            ("write", "${project}/new/", "new", "../fresh")):
        s.rules["fs"]["read"] = list(PARTS)
        s.rules["fs"]["write"] = ["${project}"]
        got = s.run("ln -s %s %s" % (to, link))
        s.rules["fs"][key].append(value)
        w.equal(got[0][0], 0, value + ": the link is made")
        c = w.console(w.path("p"), [call("sh", c=read, d=p)], "--scope",
                      w.scope("p", s.rules))
        w.equal(c.rc, 3, value + ": does not start with it", c)
        w.contains(c.err, "which the extension may replace", value + ": why")
        w.check(not os.path.exists(w.home + "/fresh") and
                not os.path.exists(w.home + "/.ssh/lib/x"),
                value + ": nothing is made")
        os.unlink(os.path.join(p, link))
    os.makedirs(p + "/packages/one")
    os.symlink("packages/one", p + "/one")
    s.rules["fs"]["write"] = ["${project}", "${project}/one"]
    w.equal(s.run("echo x >one/f")[0], (0, ""),
            "one that stays in what may be written to is no matter")
    os.symlink("packages", p + "/mine")
    os.symlink("packages", p + "/its.log")
    for value, rc in (("mine", 0), ("its.log", 3)):
        s.rules["fs"]["write"] = ["${project}/*.log"]
        s.rules["fs"]["read"] = PARTS + ["${project}/" + value]
        c = w.console(w.path("p"), "", "--scope", w.scope("p", s.rules))
        w.equal(c.rc, rc, "a pattern for writing, and " + value, c)
    # A project as it was cloned: nothing may be written, "docs" is a link.
    os.symlink("../.ssh", p + "/docs")
    for value, rc in (("mine", 0), ("docs", 3), ("docs/lib", 3)):
        s.rules["fs"].update(read=PARTS + ["${project}/" + value], write=[])
        c = w.console(w.path("p"), "", "--scope", w.scope("p", s.rules))
        w.equal(c.rc, rc, "a link of the project's own: " + value, c)
    w.contains(c.err, "outside the project", "and why")


# ---- a single file -----------------------------------------------------------

SAVE = ("python3 -c 'import os; open(\"g\", \"w\").write(\"%s\"); "
        "os.replace(\"g\", \"f\")'")


@test("a single file, saved by renaming onto it", needs=["sandbox", "python3"],
      seconds=60)
def one_file(w):
    s = Shell(w, base="strict", write=["${project}/f"])
    p = w.write("home/proj/f", "a much longer text\n", 0o640)
    was = os.stat(p)
    got = s.run(SAVE % "one", "cat f; ls", "echo two > h; mv h f; cat f; ls",
                "sed -i s/two/three/ f; cat f; ls", "chmod 600 f; echo 4 >> f",
                "ln f k", "mv f away", "mkdir d; mv d f",
                "ln -s f l; mv -T l f", "mkfifo p; mv p f")
    w.equal([rc for rc, _ in got[:5]], [0] * 5, "each is served", got)
    w.equal([out for _, out in got[1:4]],
            ["onef\n", "two\nf\n", "three\nf\n"],
            "the new content is there, the new file gone")
    w.check(all(rc for rc, _ in got[5:]), "and nothing else is renamed", got)
    w.equal(s.host("f"), "three\n4\n", "the host has it")
    st = os.stat(p)
    w.equal((st.st_ino, st.st_mode & 0o777, os.listdir(w.project)),
            (was.st_ino, 0o600, ["f"]), "in the file it was")
    w.check(w.denied("p", "fs.rename", p, errno="EBUSY"), "and a record",
            s.changes())
    got = s.run("truncate -s 65M b; mv b f")
    w.check(got[0][0] and "64 MiB" in " ".join(
        r["rule"] for r in w.ledger("p")), "nor what is too large, recorded",
        got, w.ledger("p"))


@test("a single file that the host replaces", needs=["sandbox", "python3"],
      seconds=60)
def stale(w):
    s = Shell(w, base="strict", write=["${project}/f"])
    p = w.write("home/proj/f", "old\n")
    w.install("p", None, s.rules)
    x = w.wrap("p")
    x.handshake()
    x.until("ready")

    def run(c):
        x.send({"type": "tool_call", "id": c[:9], "name": "sh",
                "args": {"c": c, "d": w.project}})
        return x.until("tool_result", 30)["content"][0]["text"]
    w.equal(run("echo 1 >> f; cat f"), "0 old\n1\n", "control: it is written")
    w.write("home/proj/new", "the user's\n")
    os.rename(w.path("home/proj/new"), p)
    w.contains(run("cat f"), "old", "inside it is the old one")
    w.contains(run("echo 2 >> f"), "Stale", "which is written to no more")
    w.contains(run(SAVE % "3"), "Stale", "nor saved onto")
    w.contains(run("python3 -c 'import os; os.truncate(\"f\", 0)'"), "Stale",
               "nor cut")
    x.shutdown()
    w.equal(s.host("f"), "the user's\n", "the user's stays")
    for op in "fs.write", "fs.rename":
        r = w.denied("p", op, p, errno="ESTALE")
        w.check(r and "stale_grant" in r["rule"], op + " is recorded", r)
    got = s.run("echo 4 >> f")
    w.equal((got[0][0], s.host("f")), (0, "the user's\n4\n"),
            "the next start has the new one")


# ---- what is said of it ------------------------------------------------------

@test("doctor and the suggestions", needs="sandbox", seconds=60)
def says(w):
    s = Shell(w, base="strict", write=[])
    w.write("home/proj/f", "one\n")
    s.rules["fs"]["read"] = PARTS + ["${project}"]
    s.run("echo x > new", "mkdir .vscode")
    r = w.denied("p", "fs.create", w.project + "/new")
    w.check(r and r["grant"] == {"key": "fs.write", "value": "${project}"},
            "a file that is to be made: its directory is what is granted", r)
    r = w.denied("p", "fs.create", w.project + "/.vscode")
    w.check(r and not r["grant"] and "own name" in r["cannot"],
            "but for what an editor runs", r)
    s.rules["fs"]["write"] = ["${project}"]
    w.install("p", None, s.rules)
    r = w.zotbox("ext", "doctor", "p", "--json")
    rows = {x["rule"]: x["by"] for x in
            json.loads(r.out)["extensions"][0]["enforced_by"]}
    w.contains(rows.get("fs.write ${project}", ""), "broker",
               "the rule is enforced by the broker", rows)
    w.contains(rows.get("built-in deny /**/.git", ""), "broker",
               "and so is what stays closed", rows)


main()
