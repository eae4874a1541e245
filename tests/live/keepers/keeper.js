// See keeper.py: the same in node.
"use strict";
const fs = require("fs"), path = require("path");
const emit = (f) => process.stdout.write(JSON.stringify(f) + "\n");
let data;

async function work({ op, base }) {
  const at = path.join(base === "data" ? data : process.cwd(), "state");
  try {
    if (op === "put") {
      await fs.promises.writeFile(at + ".new", "kept");
      await fs.promises.rename(at + ".new", at);
      return "ok";
    }
    if (op === "take") return await fs.promises.readFile(at, "utf8");
    await fs.promises.appendFile(op === "spoil" ? __filename
      : path.join(__dirname, "added"), "\n");
    return "done";
  } catch {
    return "refused";
  }
}

emit({ type: "hello", name: process.argv[2], version: "1",
  capabilities: ["tools"] });
require("readline").createInterface({ input: process.stdin })
  .on("line", async (line) => {
    const f = JSON.parse(line);
    if (f.type === "hello_ack") {
      data = f.data_dir;
      emit({ type: "register_tool", name: "t", description: "t",
        schema: { type: "object" } });
      emit({ type: "ready" });
    } else if (f.type === "tool_call") {
      emit({ type: "tool_result", id: f.id,
        content: [{ type: "text", text: await work(f.args) }] });
    } else if (f.type === "shutdown") {
      emit({ type: "shutdown_ack" });
      process.exit(0);
    }
  });
