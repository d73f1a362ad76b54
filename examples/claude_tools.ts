// Claude with its own bash tool, which expects a shell that remembers: a Sandbank sandbox has one.
//
//     ANTHROPIC_API_KEY=… npx tsx claude_tools.ts "Which Linux is this, and what is it good for?"

import Anthropic from "@anthropic-ai/sdk";
import type { Sandbox } from "sandbank";
import { connect } from "sandbank/node";

const TASK = "Write a shell script that prints a calendar of this month, and show me what it prints.";
const MAX_TURNS = 30;

/** Runs what Claude's bash tool asks for: a command, or a new shell for the next ones. */
function bashIn(sandbox: Sandbox) {
  let shells = 1;
  return async ({ command, restart }: { command?: string; restart?: boolean }): Promise<string> => {
    if (restart) return `this is shell ${++shells}`;
    const shell = sandbox.shell(`shell-${shells}`);
    const { output, ending } = await shell.run(command ?? "", { merged: true, timeoutMs: 120_000 });
    return `${output.slice(-20_000)}\n[it ${ending.describe()}]`;
  };
}

const anthropic = new Anthropic();
const client = await connect();
await using sandbox = await client.sandboxes.create();
console.log(`sandbox ${sandbox.id}`);

const bash = bashIn(sandbox);
const messages: Anthropic.MessageParam[] = [{ role: "user", content: process.argv[2] ?? TASK }];
for (let turn = 0; turn < MAX_TURNS; turn++) {
  const stream = anthropic.messages.stream({
    model: process.env.ANTHROPIC_MODEL ?? "claude-sonnet-5-5",
    max_tokens: 8192,
    tools: [{ type: "bash_20250124", name: "bash" }],
    messages,
  });
  stream.on("text", (text) => process.stdout.write(text));
  const { content, stop_reason } = await stream.finalMessage();
  console.log();
  messages.push({ role: "assistant", content });
  if (stop_reason !== "tool_use") break;

  const results: Anthropic.ToolResultBlockParam[] = [];
  for (const block of content) {
    if (block.type !== "tool_use") continue;
    console.log("$", block.input);
    const output = await bash(block.input as Parameters<typeof bash>[0]);
    console.log(output);
    results.push({ type: "tool_result", tool_use_id: block.id, content: output });
  }
  messages.push({ role: "user", content: results });
}
