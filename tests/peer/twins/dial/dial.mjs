// dial - commands of a program with manners of its own: it registers before it
// is greeted back, and never says that it is ready.
import { createInterface } from "node:readline";

const since = Date.now();
const emit = (frame) => process.stdout.write(JSON.stringify(frame) + "\n");

emit({ type: "hello", name: "dial", version: "1.0.0",
  capabilities: ["commands"] });
emit({ type: "register_command", name: "time",
  description: "what the dial shows" });
emit({ type: "register_command", name: "awake",
  description: "let the model say how long the dial has run" });

const answers = {
  time: () => ({ action: "display",
    display: `the dial shows\n${new Date().toISOString()}` }),
  awake: (args) => ({ action: "prompt",
    prompt: `The dial has run for ${Math.floor((Date.now() - since) / 36e5)} h. `
      + `One sentence about that${args ? ", and about " + args : ""}.` }),
};

const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const f = JSON.parse(line);
  if (f.type === "command_invoked") {
    const answer = answers[f.name];
    emit({ type: "command_response", id: f.id,
      ...(answer ? answer((f.args || "").trim())
        : { action: "noop", error: `the dial has no ${f.name}` }) });
  } else if (f.type === "shutdown") {
    emit({ type: "shutdown_ack" });
    lines.close();
  } else {
    process.stderr.write(`dial: ${f.type}\n`);
  }
});
lines.on("close", () => process.exit(0));
