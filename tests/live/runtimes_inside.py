#!/usr/bin/env python3
"""What programs expect to work wherever they run, inside: processes and what
they share, pipes with names, terminals of their own, databases, words and
times of this place, servers and clients on loopback. None of it is denied."""
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ.get("ZB_SRC", "."), "tests/lib"))
from zbtest import *

PY = '''
    import asyncio, concurrent.futures, fcntl, functools, http.server, locale
    import mmap, multiprocessing, os, pty, select, signal, sqlite3, ssl, sys
    import subprocess, tempfile, threading, time, urllib.request, zoneinfo

    def same(got, want):
        if got != want:
            raise AssertionError("%r is not %r" % (got, want))

    def put(q, x): q.put(x + 1)
    def pool():
        with multiprocessing.Pool(2) as p: same(p.map(abs, range(-9, 0)), list(range(9, 0, -1)))
    def spawned():
        with multiprocessing.get_context("spawn").Pool(1) as p: same(p.map(abs, [-1]), [1])
    def queue():
        q = multiprocessing.Queue()
        p = multiprocessing.Process(target=put, args=(q, 1)); p.start()
        same(q.get(timeout=10), 2); p.join(10)
    def manager():
        with multiprocessing.Manager() as m:
            l = m.list([1]); l.append(2); same(list(l), [1, 2])
    def lock_and_memory():
        from multiprocessing import shared_memory
        with multiprocessing.Lock(): pass
        s = shared_memory.SharedMemory(create=True, size=99)
        s.buf[0] = 7; o = shared_memory.SharedMemory(s.name); same(o.buf[0], 7)
        o.close(); s.close(); s.unlink()
    def executor():
        with concurrent.futures.ProcessPoolExecutor(1) as p: same(p.submit(abs, -3).result(20), 3)
    def child():
        r = subprocess.run([sys.executable, "-c", "import sys; print(sys.stdin.read() * 2)"], input="ab", capture_output=True, text=True)
        same((r.stdout, r.stderr, r.returncode), ("abab\\n", "", 0))
        p = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
        os.killpg(p.pid, signal.SIGTERM); same(p.wait(10), -15)
    def async_child():
        async def go():
            p = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(5)", stdout=-1)
            return (await p.communicate())[0]
        same(asyncio.run(go()), b"5\\n")
    def terminal():
        pid, fd = pty.fork()
        if not pid:
            os.write(1, repr((os.isatty(0), os.ttyname(1)[:9])).encode()); os._exit(0)
        out = b""
        try:
            while True:
                more = os.read(fd, 999)
                if not more: break
                out += more
        except OSError: pass
        os.waitpid(pid, 0)
        same(out, b"(True, '/dev/pts/')")
    def terminal_spawn():
        out = []
        null = os.open("/dev/null", os.O_RDONLY); keep = os.dup(0); os.dup2(null, 0)
        one = os.dup(1); w = os.open("/tmp/out", os.O_RDWR | os.O_CREAT); os.dup2(w, 1)
        try: same(pty.spawn([sys.executable, "-c", "import os; print(os.ttyname(1))"]), 0)
        finally: os.dup2(keep, 0); os.dup2(one, 1)
        same(open("/tmp/out").read()[:9], "/dev/pts/")
    def database():
        for mode in ("delete", "wal"):
            p = os.path.join(data, "db-" + mode)
            d = sqlite3.connect(p); d.execute("pragma journal_mode=" + mode)
            d.execute("create table t(x)"); d.execute("insert into t values(1)"); d.commit()
            same(sqlite3.connect(p).execute("select x from t").fetchall(), [(1,)])
            d.close()
    def words():
        same(locale.setlocale(locale.LC_ALL, "").upper().replace("-", ""), "C.UTF8")
        same(sys.getfilesystemencoding(), "utf-8")
        open("/tmp/\\u00e9\\u6f22", "w").close(); same("\\u00e9\\u6f22" in os.listdir("/tmp"), True)
    def times():
        same(os.environ["TZ"], "Asia/Kolkata"); same(time.tzname[0], "IST")
        same(zoneinfo.ZoneInfo("Europe/Oslo").key, "Europe/Oslo")
    def user():
        import pwd, getpass
        same(pwd.getpwuid(os.getuid()).pw_dir, os.environ["HOME"]); same(getpass.getuser(), "tester")
    def temporary():
        with tempfile.TemporaryDirectory() as d: open(d + "/x", "w").close()
        with tempfile.TemporaryFile() as f: f.write(b"x")
    def locks():
        with open(os.path.join(data, "lock"), "w") as f: fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX)
    def mapped():
        with open(os.path.join(data, "map"), "w+b") as f:
            f.truncate(4096); m = mmap.mmap(f.fileno(), 0); m[0] = 65; m.flush(); same(f.read(1), b"A")
    def events():
        e = select.epoll(); r, w = os.pipe(); e.register(r, select.EPOLLIN); os.write(w, b"x"); same(e.poll(5), [(r, 1)])
        os.mkfifo("/tmp/fifo"); t = threading.Thread(target=lambda: open("/tmp/fifo", "w").write("f")); t.start(); same(open("/tmp/fifo").read(), "f")
    def loopback():
        class H(http.server.BaseHTTPRequestHandler):
            def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b"own")
            def log_message(self, *a): pass
        s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), H); threading.Thread(target=s.serve_forever, daemon=True).start()
        for host in ("127.0.0.1", "localhost"):
            same(urllib.request.urlopen("http://%s:%d/" % (host, s.server_port), timeout=10).read(), b"own")
        s.shutdown()
    def home():
        p = os.path.expanduser("~/.cache/x"); os.makedirs(p, exist_ok=True); open(p + "/y", "w").write("z"); same(open(p + "/y").read(), "z")
    def modules():
        import ctypes, curses, decimal, hashlib, readline, uuid, venv, xml.etree.ElementTree, bz2, lzma, zlib
        ssl.create_default_context(); ctypes.CDLL(None).getpid(); same(len(uuid.uuid4().hex), 32)

    DEEDS = {f.__name__: f for f in (pool, spawned, queue, manager, lock_and_memory, executor, child, async_child,
        terminal, terminal_spawn, database, words, times, user, temporary, locks, mapped, events, loopback, home, modules)}

    def call(f):
        try: DEEDS[f["args"]["do"]](); text(f["id"], "ok")
        except BaseException as e: text(f["id"], repr(e))

    if __name__ == "__main__":
        data = hello("in", "tools")["data_dir"]; tool("t"); ready(); serve(tool_call=call)
'''

NODE = r'''
const fs = require("fs"), cp = require("child_process"), path = require("path");
const assert = require("assert"), http = require("http"), os = require("os");
const { Worker } = require("worker_threads");
const emit = (f) => process.stdout.write(JSON.stringify(f) + "\n");
let data;
const ended = (c) => new Promise((r) => c.on("exit", r));
const deeds = {
  async files() {
    const d = path.join(data, "d");
    await fs.promises.mkdir(d);
    await fs.promises.writeFile(d + "/a", "x");
    await fs.promises.rename(d + "/a", d + "/b");
    await fs.promises.copyFile(d + "/b", d + "/c");
    assert.deepStrictEqual(await fs.promises.readdir(d), ["b", "c"]);
    const h = await fs.promises.open(d + "/b", "r+");
    await h.write("yz"); await h.close();
    assert.strictEqual(await fs.promises.readFile(d + "/b", "utf8"), "yz");
    await fs.promises.rm(d, { recursive: true });
    await fs.promises.mkdtemp(path.join(os.tmpdir(), "x"));
  },
  async streams() {
    const p = os.tmpdir() + "/s";
    await require("stream/promises").pipeline(
      require("stream").Readable.from(["a".repeat(1e6)]),
      require("zlib").createGzip(), fs.createWriteStream(p));
    assert(fs.statSync(p).size > 100);
  },
  async watching() {
    const p = os.tmpdir() + "/w"; fs.mkdirSync(p);
    const w = fs.watch(p);
    const seen = new Promise((r) => w.once("change", r));
    fs.writeFileSync(p + "/f", "");
    await seen; w.close();
  },
  async children() {
    assert.strictEqual(cp.execFileSync(process.execPath, ["-p", "6*7"]) + "", "42\n");
    const c = cp.spawn(process.execPath, ["-e", "process.stdin.pipe(process.stdout)"]);
    let out = ""; c.stdout.on("data", (d) => out += d); c.stdin.end("through");
    await ended(c); assert.strictEqual(out, "through");
    const k = cp.spawn(process.execPath, ["-e", "setInterval(() => 0, 999)"]);
    k.kill(); assert.strictEqual(await new Promise((r) => k.on("exit", (c, s) => r(s))), "SIGTERM");
  },
  async fork() {
    const f = cp.fork(__dirname + "/fork.js");
    f.send({ x: 1 });
    assert.deepStrictEqual(await new Promise((r) => f.on("message", r)), { x: 2 });
    f.disconnect(); await ended(f);
  },
  async shell() { // granted by name
    assert.strictEqual(cp.execSync("echo $((40+2)) | cat") + "", "42\n");
    assert.strictEqual((await require("util").promisify(cp.exec)("printf %s x")).stdout, "x");
  },
  async workers() {
    const w = new Worker("const t = require('worker_threads'); t.parentPort.postMessage(t.workerData + 1)",
      { eval: true, workerData: 1 });
    assert.strictEqual(await new Promise((r) => w.on("message", r)), 2);
  },
  async loopback() {
    const s = http.createServer((q, a) => a.end("own")).listen(0, "127.0.0.1");
    await new Promise((r) => s.on("listening", r));
    for (const host of ["127.0.0.1", "localhost"]) {
      const r = await fetch(`http://${host}:${s.address().port}/`);
      assert.strictEqual(await r.text(), "own");
    }
    s.closeAllConnections(); s.close();
    const p = os.tmpdir() + "/sock", u = require("net").createServer((c) => c.end("u")).listen(p);
    await new Promise((r) => u.on("listening", r));
    const c = require("net").connect(p); let got = "";
    c.on("data", (d) => got += d); await new Promise((r) => c.on("close", r));
    assert.strictEqual(got, "u"); u.close();
  },
  async words() {
    assert.strictEqual(new Date(0).getTimezoneOffset(), -330);
    assert.strictEqual(new Intl.DateTimeFormat("nb", { timeZone: "Europe/Oslo", month: "long" }).format(0), "januar");
    assert.strictEqual(os.userInfo().homedir, process.env.HOME);
    assert.strictEqual(require("crypto").randomBytes(9).length, 9);
    assert(os.cpus && os.totalmem() > 0 && os.hostname());
  },
};
emit({ type: "hello", name: "nin", version: "1", capabilities: ["tools"] });
require("readline").createInterface({ input: process.stdin }).on("line", async (l) => {
  const f = JSON.parse(l);
  if (f.type === "hello_ack") {
    data = f.data_dir;
    emit({ type: "register_tool", name: "t", description: "t", schema: { type: "object" } });
    emit({ type: "ready" });
  } else if (f.type === "tool_call") {
    const text = await deeds[f.args.do]().then(() => "ok", (e) => String(e.stack));
    emit({ type: "tool_result", id: f.id, content: [{ type: "text", text }] });
  } else if (f.type === "shutdown") { emit({ type: "shutdown_ack" }); process.exit(0); }
});
'''

# name: (command, what it prints)
BASH = {
    "substitution": ("cat <(echo a) <(echo b) | tr -d '\\n'", "ab"),
    "into": ("echo x > >(cat > /tmp/o; echo > /tmp/done); while [ ! -e "
             "/tmp/done ]; do sleep 0.01; done; cat /tmp/o", "x"),
    "here": ("cat <<< here", "here"),
    "document": ("tr a-z A-Z <<E\nword\nE", "WORD"),
    "lines": ("mapfile -t l < <(printf '1\\n2\\n'); echo ${#l[@]}", "2"),
    "coprocess": ("coproc { read -r x; echo \"got $x\"; }; echo y "
                  ">&\"${COPROC[1]}\"; read -r r <&\"${COPROC[0]}\"; echo $r",
                  "got y"),
    "pipes": ("for i in {1..20}; do seq 100 | sort -rn | head -1 | cat; done "
              "| uniq", "100"),
    "jobs": ("sleep 0.1 & wait $!; echo $?", "0"),
    "trap": ("(trap 'echo caught' TERM; kill $BASHPID; :)", "caught"),
    "awk": ("printf '1 2\\n3 4\\n' | awk '{s += $2} END {print s}'", "6"),
    "awk-files": ("awk 'BEGIN { print \"x\" > \"/dev/stderr\" }' 2>&1; "
                  "awk 'BEGIN { \"echo y\" | getline l; print l }'", "x y"),
    "find": ("mkdir -p /tmp/f/g; touch /tmp/f/g/h; find /tmp/f -name h | "
             "xargs -n1 basename", "h"),
    "temporary": ("t=$(mktemp -d); echo z >$t/a; cat $t/a; rm -r $t", "z"),
    "zone": ("date -d @0 +%H%M; printf '%(%Z)T\\n' 0", "0530 IST"),
    "null": ("echo q >/dev/null; head -c4 /dev/zero | wc -c; [ -r "
             "/dev/urandom ] && echo r", "4 r"),
    "fd": ("exec 3>/tmp/three; echo t >&3; cat /dev/fd/0 </tmp/three", "t"),
    "home": ("echo ~ | sed \"s,^$HOME$,same,\"; touch ~/x && ls ~ | grep -c "
             "'^x$'", "same 1"),
    # Granted by name.
    "diff": ("diff <(printf 'a\\nb\\n') <(printf 'a\\nc\\n') | grep -c '^[<>]'",
             "2"),
    "openssl": ("echo k | openssl dgst -sha256 -r | cut -c1-8; openssl rand "
                "-hex 4 | wc -c; printf %s hidden | openssl enc -aes-128-cbc "
                "-pbkdf2 -pass pass:p | openssl enc -d -aes-128-cbc -pbkdf2 "
                "-pass pass:p", "19732980 9 hidden"),
    "script": ("script -qec 'tty; stty size >/dev/null && echo sized' "
               "/dev/null </dev/null | tr -d '\\r' | sed 's,/[0-9]*$,/N,'",
               "/dev/pts/N sized"),
    "git": ("cd /tmp && git init -q r && cd r && echo a >a && git add a && "
            "git -c user.name=a -c user.email=b commit -qm m && git log "
            "--oneline | wc -l", "1"),
}

GRANTED = ("diff", "openssl", "script", "git")

BASH_EXT = r'''
echo '{"type":"hello","name":"sin","version":"1","capabilities":["tools"]}'
while IFS= read -r line; do
  case $line in
  *'"hello_ack"'*)
    echo '{"type":"register_tool","name":"t","description":"t","schema":{"type":"object"}}'
    echo '{"type":"ready"}' ;;
  *'"tool_call"'*)
    id=$(sed 's/.*"id":"\([^"]*\)".*/\1/' <<< "$line")
    name=$(sed 's/.*"do": *"\([^"]*\)".*/\1/' <<< "$line")
    out=$(bash "$(dirname "$0")/$name.bash" 2>&1 </dev/null | tr '\n"\\' '   ')
    echo "{\"type\":\"tool_result\",\"id\":\"$id\",\"content\":[{\"type\":\"text\",\"text\":\"${out%% }\"}]}" ;;
  *'"shutdown"'*) echo '{"type":"shutdown_ack"}'; exit 0 ;;
  esac
done
'''


def each(w, name, deeds, *options, **kw):
    """All deeds in one start; want: what a deed answers."""
    w.env["TZ"] = "Asia/Kolkata"
    c = w.console("./" + name, [call("t", do=d) for d in deeds], *options,
                  **kw)
    w.equal(c.rc, 0, "exit", c)
    got = [h.text() for h in c.of("result", name)]
    w.equal(len(got), len(deeds), "all answer", c)
    for (deed, want), text in zip(deeds.items(), got):
        w.equal(text, want, deed)
    w.equal([(r["op"], r.get("syscall"), r.get("asked"))
             for r in w.ledger(name)], [], "nothing is denied")


def python_deeds():
    inside = PY[PY.index("for f in (") + 10:]
    return {n.strip(): "ok" for n in
            inside[:inside.index(")")].replace("\n", " ").split(",")}


@test("python inside, under strict", needs="sandbox", seconds=120)
def python(w):
    w.mkext("in", PY)
    each(w, "in", python_deeds())


@test("python inside, under standard", needs="sandbox", seconds=120)
def python_standard(w):
    w.mkext("in", PY)
    # A project below /tmp would have the broker serve /tmp, which opens files
    # and directories, but no pipe.
    project = tempfile.mkdtemp(prefix="zbtest-", dir="/var/tmp")
    try:
        each(w, "in", python_deeds(), "--policy", "standard", cwd=project)
    finally:
        os.rmdir(project)


@test("node inside", needs=["sandbox", "node"], seconds=60)
def node(w):
    w.env["PATH"] = os.path.dirname(shutil.which("node")) + ":" + w.env["PATH"]
    w.write("nin/main.js", "#!/usr/bin/env node\n" + NODE, 0o755)
    w.write("nin/fork.js",
            "process.on('message', (m) => process.send({ x: m.x + 1 }));\n")
    w.write("nin/extension.json", '{"name":"nin","exec":"./main.js"}\n')
    deeds = {l.split("(")[0][8:]: "ok" for l in NODE.splitlines()
             if l.startswith("  async ")}
    each(w, "nin", deeds, "--scope", w.scope("nin", {"fs": {"exec": ["sh"]}}))


@test("bash inside", needs=["sandbox", "bash"], seconds=60)
def bash(w):
    more = [p for p in GRANTED
            if shutil.which(p, path=os.defpath)]
    deeds = {n: want for n, (_, want) in BASH.items()
             if n not in GRANTED or n in more}
    w.write("sin/main", "#!/usr/bin/env bash\n" + BASH_EXT, 0o755)
    for n in deeds:
        w.write("sin/%s.bash" % n, BASH[n][0] + "\n")
    w.write("sin/extension.json", '{"name":"sin","exec":"./main"}\n')
    each(w, "sin", deeds, "--scope",
         w.scope("sin", {"fs": {"exec": more}}))


main()
