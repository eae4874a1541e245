#!/usr/bin/env node
// vault - a tool that needs a word which only the user knows. The word is
// typed into a panel that shows stars; no frame ever holds it.
"use strict";

const asks = new Map(); // panel id -> {id, door, word}
let opened = 0;

const emit = (frame) => process.stdout.write(JSON.stringify(frame) + "\n");

const panel = (a) => ({
  title: "A word for the vault",
  lines: [`Door: ${a.door}`, "", `Word: ${"*".repeat([...a.word].length)}_`],
  footer: "enter gives it, esc keeps it",
});

const result = (a, text, failed) =>
  emit({ type: "tool_result", id: a.id, content: [{ type: "text", text }],
    ...(failed ? { is_error: true } : {}) });

function call(f) {
  const door = String((f.args || {}).door || "").trim();
  if (!door) return result(f, "which door?", true);
  const id = `vault-${++opened}`;
  const a = { id: f.id, door, word: "" };
  asks.set(id, a);
  emit({ type: "open_panel", panel: { id, ...panel(a) } });
}

function done(id, close, given) {
  const a = asks.get(id);
  asks.delete(id);
  if (close) emit({ type: "panel_close", panel_id: id });
  if (!given) return result(a, "the user kept the word", true);
  if (!a.word) return result(a, "an empty word opens nothing", true);
  result(a, `${a.door} is open (a word of ${[...a.word].length} letters)`);
}

function key(f) {
  const a = asks.get(f.panel_id);
  if (!a) return;
  if (f.key === "enter") return done(f.panel_id, true, true);
  if (f.key === "rune") a.word += f.text;
  else if (f.key === "backspace") a.word = [...a.word].slice(0, -1).join("");
  else return;
  emit({ type: "panel_render", panel_id: f.panel_id, ...panel(a) });
}

emit({ type: "hello", name: "vault", version: "1.1.0",
  capabilities: ["commands", "tools", "events", "panels"] });
require("readline").createInterface({ input: process.stdin })
  .on("line", (line) => {
    const f = JSON.parse(line);
    if (f.type === "hello_ack") {
      emit({ type: "register_tool", name: "open_vault",
        description: "Open a door for which the user has the word.",
        schema: { type: "object", properties: { door: { type: "string" } },
          required: ["door"] } });
      emit({ type: "ready" });
    } else if (f.type === "tool_call") call(f);
    else if (f.type === "panel_key") key(f);
    else if (f.type === "panel_close") {
      if (asks.has(f.panel_id)) done(f.panel_id, false, false);
    } else if (f.type === "shutdown") {
      emit({ type: "shutdown_ack" });
      process.exit(0);
    }
  });
