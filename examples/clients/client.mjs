#!/usr/bin/env node
// Three extensions driven through `zotbox host`: client.mjs [ZOTBOX]
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const here = decodeURIComponent(new URL(".", import.meta.url).pathname);
const exts = ["notes", "picture", "guard"].map(n => "--ext=" + here + n);
const host = spawn(process.argv[2] ?? "zotbox", ["host", "--no-ext", ...exts,
  "--policy", here + "policy.json", "--yes-i-mean-it"], { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise(done => host.on("exit", done));
const lines = createInterface({ input: host.stdout })[Symbol.asyncIterator]();
const show = (...words) => console.log(words.map(w => typeof w == "string" ? w : JSON.stringify(w)).join(" "));
let ids = 0, events = [];

async function read() {
  const { value, done } = await lines.next();
  if (done) throw new Error("the host ended");
  const line = JSON.parse(value);
  return line.type == "response" ? line : void events.push(line);
}
async function ask(type, fields = {}) {
  host.stdin.write(JSON.stringify({ ...fields, type, id: ++ids }) + "\n");
  for (let reply; ;) if ((reply = await read()))
    if (reply.success) return reply.data; else throw new Error(reply.error);
}
async function event(type) {
  for (let i; ; await read())
    if ((i = events.findIndex(e => e.type == type)) >= 0) return events.splice(i, 1)[0];
}
const bash = c => ask("intercept", { event: "tool_call", tool_name: "bash", tool_args: { command: c } });
show("command", (await ask("invoke", { name: "notes", args: "milk" })).open_panel.lines);
show("panel", (await event("ext_panel_open")).panel_id);
for (const key of [{ key: "rune", text: "x" }, { key: "enter" }, { key: "delete" }])
  await ask("panel_key", { panel_id: "notes", ...key });
let r; for (let i = 0; i < 3; i++) r = await event("ext_panel_render");
show("keys", r.lines, "\nsubmit", (await event("ext_submit")).text);
show("image", (await ask("tool_call", { name: "pixel" })).content.map(b => b.mime_type ?? b.text));
show("rewrite", (await bash("ls")).modified_args.command);
show("block", (await bash("rm x")).reason, (await bash("rm x")).by.map(o => o.outcome));
show("reload", (await ask("reload")).ready, "shutdown", await ask("shutdown"), "exit", await ended);
